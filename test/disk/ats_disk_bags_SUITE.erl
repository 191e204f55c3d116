%% Bags on disk, in which each object is a record of its own.
-module(ats_disk_bags_SUITE).

-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0, init_per_testcase/2, end_per_testcase/2]).
-export([
    golden_tables/1,
    old_tables_are_rewritten/1,
    read_only/1,
    objects_cost_their_own_bytes/1,
    equal_objects/1,
    order_of_insertion/1,
    ordered_bags/1,
    programs_on_ordered_bags/1
]).

-define(TYPES, [bag, duplicate_bag, ordered_bag, ordered_duplicate_bag]).
-define(ALL, [{'_', [], ['$_']}]).

suite() -> [{timetrap, {minutes, 10}}].

all() ->
    [
        golden_tables,
        old_tables_are_rewritten,
        read_only,
        objects_cost_their_own_bytes,
        equal_objects,
        order_of_insertion,
        ordered_bags,
        programs_on_ordered_bags
    ].

init_per_testcase(Case, Config) ->
    ats_disk_lib:begin_case(Case, Config).

end_per_testcase(_, _) ->
    ats_disk_lib:end_case().

%%--------------------------------------------------------------------------------------------
%% Golden tables: each has the objects of these calls. Format 1 has all objects of a key in one
%% record, format 2 each in a record of its own.
%%--------------------------------------------------------------------------------------------

inserted() ->
    [{k, 2}, {k, 1}, {k, 2}, {1, int}, {1.0, float}, {"list", #{a => 1}},
     {{tuple, 1}, <<"binary">>}] ++
        [{1, again} | [{many, N rem 50} || N <- lists:seq(1, 100)]].

golden_tables(Config) ->
    [
        begin
            T = golden(Config, Name, []),
            is_as_inserted(T, dats:info(T, type), inserted()),
            ok = dats:close(T)
        end
     || Name <- golden(Config)
    ].

golden(Config) ->
    {ok, Names} = file:list_dir(proplists:get_value(data_dir, Config)),
    ?assertEqual(6, length(Names)),
    lists:sort(Names).

%% Opens a copy of a golden table.
golden(Config, Name, Options) ->
    From = filename:join(proplists:get_value(data_dir, Config), Name),
    To = ats_disk_lib:file(Config, Name),
    {ok, Files} = file:list_dir(From),
    [
        begin
            Copy = filename:join(To, File),
            ok = filelib:ensure_dir(Copy),
            {ok, _} = file:copy(filename:join(From, File), Copy)
        end
     || File <- Files
    ],
    {ok, T} = dats:open_file(list_to_atom(Name), [{file, To} | Options]),
    T.

is_as_inserted(T, Type, Objects) ->
    Model = lists:foldl(fun(Object, Model) -> add(Type, Object, Model) end, [], Objects),
    ?assertEqual(length(Model), dats:info(T, size)),
    [
        ?assertEqual([O || O <- Model, same_key(Type, Key, element(1, O))], dats:lookup(T, Key))
     || Key <- lists:usort([element(1, O) || O <- Model])
    ],
    ?assertEqual(lists:sort(Model), lists:sort(dats:match_object(T, '_'))),
    ?assertEqual(lists:sort(Model), lists:sort(dats:foldl(fun(O, Acc) -> [O | Acc] end, [], T))),
    Model.

add(Type, Object, Model) when Type =:= bag; Type =:= ordered_bag ->
    case lists:any(fun(Other) -> Other =:= Object end, Model) of
        true -> Model;
        false -> Model ++ [Object]
    end;
add(_, Object, Model) ->
    Model ++ [Object].

same_key(Type, A, B) when Type =:= bag; Type =:= duplicate_bag -> A =:= B;
same_key(_, A, B) -> A == B.

%% Each key when it changes, and all that are left by `compact'.
old_tables_are_rewritten(Config) ->
    [
        begin
            T = golden(Config, atom_to_list(Type) ++ "-1", []),
            ok = dats:insert(T, [{k, 1}, {k, 3}, {new, 1}, {k, 2}]),
            ok = dats:delete_object(T, {1, int}),
            ok = dats:delete(T, "list"),
            ?assertEqual([{many, 7} || _ <- lists:seq(1, many(Type))], [
                O
             || {_, 7} = O <- dats:lookup(T, many)
            ]),
            ok = dats:delete_object(T, {many, 7}),
            Gone = [{1, int}, {"list", #{a => 1}}, {many, 7}],
            All = inserted() ++ [{k, 1}, {k, 3}, {new, 1}, {k, 2}],
            Changed = [O || O <- All, not lists:member(O, Gone)],
            is_as_inserted(T, Type, Changed),
            Opened = reopen(Config, T, atom_to_list(Type) ++ "-1"),
            is_as_inserted(Opened, Type, Changed),
            ok = dats:compact(Opened),
            is_as_inserted(Opened, Type, Changed),
            #{run_entries := Entries} = dats:info(Opened, stats),
            %% The table has as many records as objects.
            ?assertEqual(Entries, dats:info(Opened, size)),
            Again = reopen(Config, Opened, atom_to_list(Type) ++ "-1"),
            Model = is_as_inserted(Again, Type, Changed),
            ok = dats:delete_all_objects(Again),
            ?assertEqual(0, dats:info(Again, size)),
            ok = dats:insert(Again, Model),
            is_as_inserted(Again, Type, Model)
        end
     || Type <- [bag, duplicate_bag]
    ].

many(bag) -> 1;
many(duplicate_bag) -> 2.

reopen(Config, T, Name) ->
    ok = dats:close(T),
    {ok, T} = dats:open_file(T, [{file, ats_disk_lib:file(Config, Name)}]),
    T.

%% Nothing is rewritten where nothing may be written.
read_only(Config) ->
    [
        begin
            T = golden(Config, Name, [{access, read}]),
            Before = contents(Config, Name),
            is_as_inserted(T, dats:info(T, type), inserted()),
            ?assertMatch({error, _}, dats:insert(T, {k, 9})),
            ok = dats:close(T),
            ?assertEqual(Before, contents(Config, Name))
        end
     || Name <- golden(Config)
    ].

contents(Config, Name) ->
    Directory = ats_disk_lib:file(Config, Name),
    {ok, Files} = file:list_dir(Directory),
    [{File, file:read_file(filename:join(Directory, File))} || File <- lists:sort(Files)].

%%--------------------------------------------------------------------------------------------
%% Cost of changes
%%--------------------------------------------------------------------------------------------

-define(BYTES, 64).

%% The bytes that a change writes do not grow with the objects that its key has.
objects_cost_their_own_bytes(Config) ->
    [
        begin
            T = ats_disk_lib:open(Config, Type, [{type, Type}]),
            N = 4000,
            One = written(T, fun() -> [ok = dats:insert(T, {k, I}) || I <- lists:seq(1, N)] end),
            ?assert(One < N * ?BYTES),
            Objects = [{k, -I} || I <- lists:seq(1, N)],
            List = written(T, fun() -> ok = dats:insert(T, Objects) end),
            ?assert(List < N * ?BYTES),
            ?assertEqual(2 * N, length(dats:lookup(T, k))),
            Deleted = written(T, fun() ->
                [ok = dats:delete_object(T, {k, I}) || I <- lists:seq(2, N)]
            end),
            ?assert(Deleted < N * ?BYTES),
            Selected = written(T, fun() ->
                N = dats:select_delete(T, [{{k, '$1'}, [{'<', '$1', 0}], [true]}])
            end),
            ?assert(Selected < N * ?BYTES),
            Key = written(T, fun() -> ok = dats:delete(T, k) end),
            ?assert(Key < 10 * ?BYTES),
            ?assertEqual(0, dats:info(T, size))
        end
     || Type <- ?TYPES
    ].

written(T, Change) ->
    #{written_bytes := Before} = dats:info(T, stats),
    Change(),
    #{written_bytes := After} = dats:info(T, stats),
    After - Before.

%%--------------------------------------------------------------------------------------------
%% Meaning
%%--------------------------------------------------------------------------------------------

%% Equal objects need not have the same bytes, and objects with the same key need not be equal.
equal_objects(Config) ->
    Keys = lists:seq(1, 100),
    Map = maps:from_list([{K, K} || K <- Keys]),
    Same = lists:foldr(fun(K, Acc) -> Acc#{K => K} end, #{}, Keys),
    T = ats_disk_lib:open(Config, equal, [{type, bag}]),
    [ok = dats:insert(T, {k, O}) || O <- [Map, Same, 1, 1.0, 1 bsl 70, "a", <<"a">>, Map]],
    ?assertEqual([{k, O} || O <- [Map, 1, 1.0, 1 bsl 70, "a", <<"a">>]], dats:lookup(T, k)),
    ok = dats:delete_object(T, {k, Same}),
    ok = dats:delete_object(T, {k, 1.0}),
    ?assertEqual([{k, O} || O <- [1, 1 bsl 70, "a", <<"a">>]], dats:lookup(T, k)),
    %% Comparison follows `ets' in this release.
    E = ets:new(e, [bag]),
    Zeros = [{z, 0.0}, {z, -0.0}, {z, [0.0]}, {z, [-0.0]}],
    [begin ets:insert(E, O), ok = dats:insert(T, O) end || O <- Zeros],
    ?assertEqual(ets:lookup(E, z), dats:lookup(T, z)),
    ets:delete_object(E, {z, -0.0}),
    ok = dats:delete_object(T, {z, -0.0}),
    ?assertEqual(ets:lookup(E, z), dats:lookup(T, z)).

%% The order survives flushes, compactions and closing in between.
order_of_insertion(Config) ->
    [
        begin
            T = ats_disk_lib:open(Config, Type, [{type, Type}]),
            Objects = [
                begin
                    Object = {k, erlang:phash2(N, 1000)},
                    ok = dats:insert(T, Object),
                    case N rem 50 of
                        0 -> ok = dats:sync(T);
                        20 -> ok = dats:compact(T);
                        40 -> reopen(Config, T, Type);
                        _ -> ok
                    end,
                    Object
                end
             || N <- lists:seq(1, 300)
            ],
            is_as_inserted(T, Type, Objects)
        end
     || Type <- ?TYPES
    ].

%% Objects are in the order of keys, for every function that has the order.
ordered_bags(Config) ->
    Objects = [{K, N} || N <- [3, 1, 2, 3], K <- [b, 1, {a, 2}, "s", {a, 1}, 1.0, <<"b">>]],
    [
        begin
            T = ats_disk_lib:open(Config, Type, [{type, Type}]),
            ok = dats:insert(T, Objects),
            Model = lists:foldl(fun(O, Model) -> add(Type, O, Model) end, [], Objects),
            InOrder = lists:keysort(1, Model),
            ?assertEqual(InOrder, dats:select(T, ?ALL)),
            ?assertEqual(InOrder, dats:foldr(fun(O, Acc) -> [O | Acc] end, [], T)),
            ?assertEqual(1, dats:first(T)),
            ?assertEqual(<<"b">>, dats:last(T)),
            ?assertEqual(b, dats:next(T, 1.0)),
            ?assertEqual(1, dats:prev(T, b)),
            Prefix = [O || {{a, _}, _} = O <- InOrder],
            ?assertEqual(Prefix, dats:select(T, [{{{a, '_'}, '_'}, [], ['$_']}])),
            ?assertEqual(Prefix, dats:prefix(T, {a, '_'})),
            ?assertEqual([O || {K, _} = O <- InOrder, K >= b, K =< {a, 2}],
                         dats:range(T, b, {a, 2})),
            reopen(Config, T, Type),
            ?assertEqual(InOrder, dats:select(T, ?ALL)),
            ?assertEqual(Type, dats:info(T, type)),
            ok = dats:close(T),
            Bag = [{file, ats_disk_lib:file(Config, Type)}, {type, bag}],
            ?assertMatch({error, {type_mismatch, _}}, dats:open_file(T, Bag))
        end
     || Type <- [ordered_bag, ordered_duplicate_bag]
    ].

%% The programs of the oracle, on a table that is flushed, merged, left and opened again and again.
programs_on_ordered_bags(_Config) ->
    ok = ats_ordered_bag_prop:start_counting(),
    Target = list_to_integer(os:getenv("ATS_DISK_BAG_COMMANDS", "4000")),
    os:putenv("ATS_SUBJECT", "ats_on_disk"),
    try programs(Target, 20)
    after os:unsetenv("ATS_SUBJECT")
    end.

programs(Target, Size) ->
    Silent = fun(_, _) -> ok end,
    Options = [noshrink, {numtests, 20}, {max_size, Size}, {on_output, Silent}],
    Properties = [ats_ordered_bag_prop:prop_programs(), ats_ordered_bag_prop:prop_many_of_a_key()],
    [
        proper:quickcheck(Property, Options) =:= true orelse ct:fail(counterexample_found)
     || Property <- Properties
    ],
    case ats_ordered_bag_prop:commands_done() of
        Done when Done >= Target -> {comment, integer_to_list(Done) ++ " commands"};
        _ -> programs(Target, min(Size + 5, 60))
    end.

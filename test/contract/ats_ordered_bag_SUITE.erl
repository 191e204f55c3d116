%% `ordered_bag' and `ordered_duplicate_bag': bags whose keys are in order, which `ets' does not
%% have. Random programs are compared with a model; ATS_ORDERED_BAG_COMMANDS sets the number of
%% commands.
-module(ats_ordered_bag_SUITE).

-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0]).
-export([
    programs/1,
    many_of_a_key/1,
    forced_adaptation/1,
    on_stores_of_bytes/1,
    dets/1,
    on_disk/1,
    every_kind_of_term/1,
    same_key_and_different_objects/1,
    lists_are_atomic/1,
    reading_back/1,
    the_type_shows/1,
    refused_as_for_bags/1,
    ranks_count_objects/1,
    walks_that_go_on_after_changes/1,
    files/1,
    queries_of_lists/1,
    to_other_owners/1
]).

-define(TYPES, [ordered_bag, ordered_duplicate_bag]).
-define(ALL, [{'_', [], ['$_']}]).
-define(BATCH, 100).

suite() ->
    [{timetrap, {minutes, 20}}].

all() ->
    [
        every_kind_of_term,
        same_key_and_different_objects,
        lists_are_atomic,
        reading_back,
        the_type_shows,
        refused_as_for_bags,
        ranks_count_objects,
        walks_that_go_on_after_changes,
        files,
        queries_of_lists,
        to_other_owners,
        dets,
        on_disk,
        programs,
        many_of_a_key,
        forced_adaptation,
        on_stores_of_bytes
    ].

%%--------------------------------------------------------------------------------------------
%% Random programs
%%--------------------------------------------------------------------------------------------

programs(_) ->
    compare(ats_ordered_bag_prop:prop_programs(), 50).

many_of_a_key(_) ->
    compare(ats_ordered_bag_prop:prop_many_of_a_key(), 25).

forced_adaptation(_) ->
    ok = ats_test_lib:force_adaptation(),
    try
        {comment, _} = compare(ats_ordered_bag_prop:prop_programs(), 15),
        compare(ats_ordered_bag_prop:prop_many_of_a_key(), 10)
    after
        ats_test_lib:stop_forcing()
    end.

%% Tests tables whose objects are bytes: in a plain B-tree, and on disk.
on_stores_of_bytes(_) ->
    lists:foreach(fun on_store/1, ["ats_on_btree", "ats_on_disk"]).

on_store(Subject) ->
    os:putenv("ATS_SUBJECT", Subject),
    try
        {comment, _} = compare(ats_ordered_bag_prop:prop_programs(), 10),
        compare(ats_ordered_bag_prop:prop_many_of_a_key(), 5)
    after
        os:unsetenv("ATS_SUBJECT")
    end.

%% The percentage of all commands.
compare(Property, Percent) ->
    ok = ats_ordered_bag_prop:start_counting(),
    Commands = list_to_integer(os:getenv("ATS_ORDERED_BAG_COMMANDS", "49000")),
    compare_batches(Property, Commands * Percent div 100, 42).

compare_batches(Property, Target, Size) ->
    Silent = fun(_, _) -> ok end,
    Options = [noshrink, {numtests, ?BATCH}, {max_size, Size}, {on_output, Silent}],
    proper:quickcheck(Property, Options) =:= true orelse ct:fail(counterexample_found),
    case ats_ordered_bag_prop:commands_done() of
        Done when Done >= Target -> {comment, integer_to_list(Done) ++ " commands"};
        _ -> compare_batches(Property, Target, min(Size + 2, 150))
    end.

%%--------------------------------------------------------------------------------------------
%% One thing each
%%--------------------------------------------------------------------------------------------

every_kind_of_term(_) ->
    ok = ats_term_gen:prepare(),
    Recipes = ats_term_gen:one_of_each(),
    Objects = [{recipe, {tuple, [Key, {lit, N}]}} || Key <- Recipes, N <- [1, 2, 1]],
    Keys = [{recipe, Key} || Key <- Recipes],
    Commands =
        [{insert, [O]} || O <- Objects] ++
            [{F, [Key]} || Key <- Keys, F <- [lookup, next, prev, rank]] ++
            [{tab2list, []}] ++
            [{take, [Key]} || Key <- Keys],
    [
        ok = ats_ordered_bag_prop:run({{Type, 1, Options, Ticks}, Some})
     || Type <- ?TYPES,
        Options <- [[], [compressed]],
        Ticks <- [3, 1000000],
        Some <- [Commands, lists:reverse(Commands)]
    ],
    ok.

same_key_and_different_objects(_) ->
    Objects = [{1, a}, {1.0, a}, {1, b}, {1, a}, {1.0, a}],
    {Once, All} = {[{1, a}, {1.0, a}, {1, b}], Objects},
    [
        begin
            T = filled(Type, Objects),
            ?assertEqual(Expected, ats:lookup(T, 1)),
            ?assertEqual(Expected, ats:lookup(T, 1.0)),
            ?assertEqual(1, ats:first(T)),
            ?assertEqual('$end_of_table', ats:next(T, 1.0)),
            %% Patterns tell the keys apart, as they do in an `ordered_set'.
            ?assertEqual([O || {1.0, _} = O <- Expected], ats:match_object(T, {1.0, '_'})),
            true = ats:delete_object(T, {1, a}),
            ?assertEqual([O || O <- Expected, O =/= {1, a}], ats:tab2list(T)),
            ?assertEqual(1.0, ats:last(T)),
            ?assertEqual([O || O <- Expected, O =/= {1, a}], ats:take(T, 1)),
            ?assertEqual(0, ats:info(T, size))
        end
     || {Type, Expected} <- [{ordered_bag, Once}, {ordered_duplicate_bag, All}]
    ],
    ok.

lists_are_atomic(_) ->
    [
        begin
            T = filled(Type, [{2, x}]),
            ?assertEqual(false, ats:insert_new(T, [{1, a}, {2, b}, {3, c}])),
            ?assertError(badarg, ats:insert(T, [{1, a}, {3, c}, nothing])),
            ?assertEqual([{2, x}], ats:tab2list(T)),
            ?assertEqual(true, ats:insert_new(T, [{3, b}, {1, a}, {3, a}])),
            ?assertEqual([{1, a}, {2, x}, {3, b}, {3, a}], ats:tab2list(T))
        end
     || Type <- ?TYPES
    ],
    ok.

%% Every walk downwards is the exact reverse of the walk upwards, for keys with few objects and with
%% many.
reading_back(_) ->
    Objects = [{Key, N} || N <- lists:seq(1, 300), Key <- [1, 2, 3]] ++ [{K, x} || K <- [a, b, c]],
    InOrder = lists:keysort(1, Objects),
    Back = lists:reverse(InOrder),
    Cons = fun(Object, Acc) -> [Object | Acc] end,
    [
        begin
            T = filled(Type, Objects),
            ?assertEqual(InOrder, ats:tab2list(T)),
            ?assertEqual(InOrder, ats:select(T, ?ALL)),
            ?assertEqual(Back, ats:select_reverse(T, ?ALL)),
            ?assertEqual(Back, ats:foldl(Cons, [], T)),
            ?assertEqual(InOrder, ats:foldr(Cons, [], T)),
            [
                begin
                    ?assertEqual(InOrder, chunks(ats:select(T, ?ALL, Limit))),
                    ?assertEqual(Back, chunks(ats:select_reverse(T, ?ALL, Limit)))
                end
             || Limit <- [1, 7, 299, 300, 301, 5000]
            ],
            ?assertEqual(Back, ats:range(T, 0, z, [reverse])),
            Fifty = lists:seq(1, 50),
            ?assertEqual(lists:sublist(Back, 50), [hd(ats:take_last(T)) || _ <- Fifty]),
            ?assertEqual(lists:sublist(InOrder, 50), [hd(ats:take_first(T)) || _ <- Fifty]),
            ?assertEqual(length(Objects) - 100, length(ats:select_take(T, [{'$1', [], [true]}])))
        end
     || Type <- ?TYPES
    ],
    ok.

chunks('$end_of_table') -> [];
chunks({Chunk, Continuation}) -> Chunk ++ chunks(ats:select(Continuation)).

the_type_shows(_) ->
    [
        begin
            T = ats:new(shown, [Type, {write_concurrency, true}]),
            ?assertEqual(Type, ats:info(T, type)),
            ?assertEqual(Type, proplists:get_value(type, ats:info(T))),
            ?assertError(badarg, ats:new(wrong, [Type, {write_concurrency, locks(64)}])),
            ?assertEqual(Type, ats:info(ats:new(last, [bag, Type]), type))
        end
     || Type <- ?TYPES
    ],
    ok.

locks(N) -> {debug_hash_fixed_number_of_locks, N}.

refused_as_for_bags(_) ->
    Spec = [{{'$1', '$2'}, [], [{{'$1', {'+', '$2', 1}}}]}],
    Wrong = <<
        "the table identifier refers to an ATS table of a type not supported by this operation"
    >>,
    [
        begin
            Bag = filled(Type, [{1, 1}]),
            Calls =
                [
                    {update_counter, [Bag, 1, 1]},
                    {update_counter, [Bag, 1, 1, {1, 1}]},
                    {update_element, [Bag, 1, {2, 1}]},
                    {merge, [Bag, 1, 1, sum]}
                ] ++
                    [{select_replace, [Bag, Spec]} || Type =:= ordered_bag],
            [
                begin
                    {fail, error, badarg, Stack} = ats_oracle:call(ats, F, Args),
                    ?assertEqual(#{1 => Wrong}, ats_oracle:blame(Stack))
                end
             || {F, Args} <- Calls
            ],
            ?assertEqual([{1, 1}], ats:tab2list(Bag))
        end
     || Type <- ?TYPES
    ],
    T = filled(ordered_duplicate_bag, [{1, 1}, {1.0, 1}, {2, 7}]),
    ?assertEqual(3, ats:select_replace(T, Spec)),
    ?assertEqual([{1, 2}, {1.0, 2}, {2, 8}], ats:tab2list(T)).

ranks_count_objects(_) ->
    [
        begin
            T = filled(Type, [{Key, N} || Key <- lists:seq(1, 1000), N <- lists:seq(1, Key rem 5)]),
            true = ats:insert(T, [{500.0, N} || N <- lists:seq(1, 100000)]),
            All = ats:tab2list(T),
            Size = length(All),
            ?assertEqual(Size, ats:range_count(T, 0, 0, [{low, unbounded}, {high, unbounded}])),
            ?assertEqual(length([O || {K, _} = O <- All, K < 700]), ats:rank(T, 700)),
            [
                begin
                    ?assertEqual(lists:nth(N, All), ats:nth(T, N)),
                    ?assertEqual(lists:nth(Size + 1 - N, All), ats:nth(T, -N)),
                    ?assertEqual([lists:nth(N, All)], ats:slot(T, N - 1))
                end
             || N <- [1, 2, 10, 999, 1000, 1100, 50000, 100999, 101900, Size]
            ],
            ?assertEqual('$end_of_table', ats:nth(T, Size + 1)),
            ?assertEqual('$end_of_table', ats:slot(T, Size)),
            ?assertError(badarg, ats:slot(T, Size + 1))
        end
     || Type <- ?TYPES
    ],
    ok.

%% A continuation is a position, among the objects of a key as well: those that are there throughout
%% are met once.
walks_that_go_on_after_changes(_) ->
    Objects = [{Key, N} || Key <- [1, 2], N <- lists:seq(1, 400)],
    [
        begin
            T = filled(Type, Objects),
            {Met, Continuation} = ats:F(T, ?ALL, 500),
            true = ats:insert(T, [{1, new}, {2, new}, {1.5, new}]),
            [true = ats:delete_object(T, {Key, N}) || Key <- [1, 2], N <- lists:seq(2, 400, 2)],
            All = Met ++ chunks(ats:select(Continuation)),
            ?assertEqual(length(All), length(lists:usort(All))),
            ?assertEqual([], [{K, N} || {K, N} <- Objects, N rem 2 =:= 1] -- All)
        end
     || Type <- ?TYPES, F <- [select, select_reverse]
    ],
    ok.

files(Config) ->
    File = filename:join(proplists:get_value(priv_dir, Config), "ordered_bag"),
    [
        begin
            T = filled(Type, [{2, x}, {1, b}, {1.0, c}, {1, a}]),
            ok = ats:tab2file(T, File, [{extended_info, [object_count, md5sum]}]),
            {ok, Read} = ats:file2tab(File, [{verify, true}]),
            ?assertEqual(Type, ats:info(Read, type)),
            ?assertEqual([{1, b}, {1.0, c}, {1, a}, {2, x}], ats:tab2list(Read)),
            {ok, Info} = ats:tabfile_info(File),
            ?assertEqual(Type, proplists:get_value(type, Info))
        end
     || Type <- ?TYPES
    ],
    ok.

queries_of_lists(_) ->
    [
        begin
            T = filled(Type, [{3, c}, {1, b}, {1.0, c}, {1, a}, {2, x}, {1, a}]),
            Handle = ats:table(T),
            ?assertEqual(ats:tab2list(T), qlc:eval(Handle)),
            %% Keys are the same if `==', so both are looked up.
            Key = qlc:string_to_handle("[O || {K, _} = O <- H, K == 1.0].", [], [{'H', Handle}]),
            ?assertEqual(ats:lookup(T, 1), qlc:eval(Key)),
            ?assertNotEqual(nomatch, string:find(qlc:info(Key), "lookup")),
            Sorted = qlc:keysort(1, Handle),
            ?assertEqual(ats:tab2list(T), qlc:eval(Sorted)),
            Unique = qlc:eval(Handle, [unique_all]),
            ?assertEqual([{1, b}, {1.0, c}, {1, a}, {2, x}, {3, c}], Unique)
        end
     || Type <- ?TYPES
    ],
    ok.

to_other_owners(_) ->
    [
        begin
            T = ats:new(Type, [Type, named_table, public]),
            true = ats:insert(T, [{2, x}, {1, b}, {1, a}]),
            renamed_table = ats:rename(T, renamed_table),
            true = ats:setopts(renamed_table, {heir, self(), back}),
            Receiver = spawn(fun() ->
                receive
                    {'ETS-TRANSFER', _, _, _} -> ok
                end
            end),
            true = ats:give_away(renamed_table, Receiver, gift),
            receive
                {'ETS-TRANSFER', _, Receiver, back} -> ok
            end,
            true = ats:safe_fixtable(renamed_table, true),
            ?assertEqual([{1, b}, {1, a}], ats:take(renamed_table, 1)),
            ?assertEqual(2, ats:next(renamed_table, 1)),
            true = ats:safe_fixtable(renamed_table, false),
            true = ats:delete(renamed_table)
        end
     || Type <- ?TYPES
    ],
    ok.

dets(Config) ->
    File = filename:join(proplists:get_value(priv_dir, Config), "dets"),
    Objects = [{Key, N} || Key <- [2, 1], N <- lists:seq(1, 300)],
    {ok, dets} = dets:open_file(dets, [{file, File}, {type, duplicate_bag}]),
    [
        begin
            dets = ats:to_dets(filled(Type, Objects), dets),
            ?assertEqual(lists:sort(Objects), lists:sort(dets:match_object(dets, '_'))),
            T = ats:new(Type, [Type]),
            true = ats:from_dets(T, dets),
            ?assertEqual(lists:keysort(1, Objects), ats:tab2list(T))
        end
     || Type <- ?TYPES
    ],
    ok = dets:close(dets).

on_disk(Config) ->
    {ok, _} = application:ensure_all_started(ats),
    [
        begin
            Directory = filename:join([proplists:get_value(priv_dir, Config), disk, Type]),
            ok = filelib:ensure_dir(Directory),
            Options = [{file, Directory}, {type, Type}],
            {ok, Type} = dats:open_file(Type, Options),
            ok = dats:insert(Type, [{2, x}, {1, b}, {1.0, c}, {1, a}, {1, b}]),
            ok = dats:close(Type),
            {error, _} = dats:open_file(Type, [{file, Directory}, {type, bag}]),
            {ok, Type} = dats:open_file(Type, Options),
            ?assertEqual(Type, dats:info(Type, type)),
            Twice = [{1, b} || Type =:= ordered_duplicate_bag],
            InOrder = [{1, b}, {1.0, c}, {1, a}] ++ Twice ++ [{2, x}],
            ?assertEqual(InOrder, dats:tab2list(Type)),
            ?assertEqual(InOrder, dats:select(Type, ?ALL)),
            ?assertEqual(lists:reverse(InOrder), dats:select_reverse(Type, ?ALL)),
            ?assertEqual(length(InOrder), dats:range_count(Type, 0, 9)),
            ?assertEqual([{2, x}], dats:slot(Type, length(InOrder) - 1)),
            ?assertEqual([{1, b}], dats:take_first(Type)),
            ?assertEqual(tl(InOrder), dats:tab2list(Type)),
            ok = dats:close(Type)
        end
     || Type <- ?TYPES
    ],
    ok.

filled(Type, Objects) ->
    T = ats:new(filled, [Type, public]),
    true = ats:insert(T, Objects),
    T.

%% An `ordered_set' of `ets' and one on disk do the same, with terms of every kind: the functions
%% that programs call for the ordered tables on disk of tcerl, one by one.
%%
%% Objects, keys and match specifications are random. Objects are partly in memory, partly in files
%% of small blocks, and the table is closed and opened again on the way.
-module(ats_tcerl_SUITE).

-include_lib("proper/include/proper.hrl").
-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0, init_per_suite/1, end_per_suite/1]).
-export([init_per_testcase/2, end_per_testcase/2]).
-export([
    changes/1, steps/1, folds/1, selections/1, chunked_selections/1, deletions/1,
    transfers/1, fillings/1, the_latest_write_counts/1
]).

-import(ats_test_lib, [check/2]).

-define(NAME, tcerl).

suite() -> [{timetrap, {minutes, 15}}].

all() ->
    [
        changes,
        steps,
        folds,
        selections,
        chunked_selections,
        deletions,
        transfers,
        fillings,
        the_latest_write_counts
    ].

init_per_suite(Config) ->
    ok = ats_term_gen:prepare(),
    Config.

end_per_suite(_) ->
    ok.

init_per_testcase(Case, Config) ->
    ats_disk_lib:begin_case(Case, Config).

end_per_testcase(_, _) ->
    ats_disk_lib:end_case().

%% ----- changes and reads of one key -----

changes(Config) ->
    Property = ?FORALL(Calls, list(a_call()), begin
        Pair = both(Config, 1),
        [same(Pair, Call) || Call <- Calls],
        are_equal(Pair)
    end),
    check(Property, 150).

a_call() ->
    Key = ats_term_gen:key(),
    Object = ?LET({K, V}, {Key, ats_term_gen:value()}, {tuple, [K, V]}),
    Change = integer(-1000, 1 bsl 70),
    frequency([
        {6, {insert, [Object]}},
        {2, {insert, [{list, resize(6, list(Object))}]}},
        {2, {insert_new, [Object]}},
        {1, {insert_new, [{list, resize(6, list(Object))}]}},
        {3, {lookup, [Key]}},
        {2, {member, [Key]}},
        {2, {delete, [Key]}},
        {2, {delete_object, [Object]}},
        {2, {update_counter, [Key, {lit, Change}]}},
        {2, {update_counter, [Key, {lit, {2, Change}}, {tuple, [{lit, 0}, {lit, 0}]}]}},
        {1, {insert, [Key]}},
        {1, ?LET(How, elements([sync, flush, compact, close]), How)}
    ]).

%% Calls that change nothing, and have no equal in `ets'.
same({_Ets, Config} = Pair, How) when is_atom(How) ->
    stored(How, Config),
    ?assert(are_equal(Pair));
same({Ets, _Config}, {Function, Recipes}) ->
    Args = [ats_term_gen:realize(R) || R <- Recipes],
    %% A float is a counter as in `dets', but not in `ets'.
    case Function =:= update_counter andalso ets:lookup(Ets, hd(Args)) of
        [{_, Float}] when is_float(Float) -> ok;
        _ -> same(Ets, Function, Args)
    end.

same(Ets, Function, Args) ->
    Expected = outcome(ets, Function, [Ets | Args]),
    ?assertEqual({Function, Args, Expected},
                 {Function, Args, outcome(dats, Function, [?NAME | Args])}).

%% ----- steps and folds -----

steps(Config) ->
    Keys = ?LET(N, integer(0, 40), vector(N, ats_term_gen:key())),
    Property = ?FORALL({Recipes, Others}, {Keys, Keys}, begin
        {Ets, _} = Pair = both(Config, 1),
        filled(Pair, [{ats_term_gen:realize(R), N} || {R, N} <- numbered(Recipes)]),
        [
            ?assertEqual(outcome(ets, F, [Ets]), outcome(dats, F, [?NAME]))
         || F <- [first, last]
        ],
        [
            ?assertEqual(
                {F, Key, outcome(ets, F, [Ets, Key])}, {F, Key, outcome(dats, F, [?NAME, Key])}
            )
         || R <- Recipes ++ Others, Key <- [ats_term_gen:realize(R)], F <- [next, prev]
        ],
        walk(dats, ?NAME, first, next) =:= walk(ets, Ets, first, next) andalso
            walk(dats, ?NAME, last, prev) =:= walk(ets, Ets, last, prev)
    end),
    check(Property, 60).

walk(M, T, First, Next) ->
    walk_from(M, T, Next, M:First(T)).

walk_from(_, _, _, '$end_of_table') -> [];
walk_from(M, T, Next, Key) -> [Key | walk_from(M, T, Next, M:Next(T, Key))].

folds(Config) ->
    Property = ?FORALL(Recipes, list(ats_term_gen:object()), begin
        {Ets, _} = Pair = both(Config, 1),
        filled(Pair, [ats_term_gen:realize(R) || R <- Recipes]),
        Collect = fun(Object, Acc) -> [Object | Acc] end,
        %% The folds of `ets' of some releases stop at the key '$end_of_table'.
        Objects = ets:tab2list(Ets),
        ?assertEqual(lists:reverse(Objects), dats:foldl(Collect, [], ?NAME)),
        ?assertEqual(Objects, dats:foldr(Collect, [], ?NAME)),
        Half = length(Objects) div 2,
        Skip = fun
            (Object) when tuple_size(Object) rem 2 =:= 1 -> continue;
            (Object) -> {continue, Object}
        end,
        ?assertEqual(
            [O || O <- Objects, tuple_size(O) rem 2 =:= 0],
            lists:reverse(dats:traverse(?NAME, Skip))
        ),
        put(seen, 0),
        UpTo = fun(Object) ->
            case put(seen, get(seen) + 1) of
                Half -> {done, Object};
                _ -> {continue, Object}
            end
        end,
        ?assertEqual(
            lists:sublist(Objects, Half + 1), lists:reverse(dats:traverse(?NAME, UpTo))
        ),
        dats:info(?NAME, size) =:= length(Objects) andalso
            dats:info(?NAME, type) =:= ordered_set andalso dats:info(?NAME, keypos) =:= 1
    end),
    check(Property, 60).

%% ----- match specifications -----

selections(Config) ->
    on_tables(Config, 25, fun(Table, Pair) ->
        Spec = [{Head, _, _} | _] = ats_spec_gen:spec(Table),
        [
            compare(Pair, Table, Call, Argument)
         || {Call, Argument} <- [
                {select, Spec},
                {select_reverse, Spec},
                {select_count, Spec},
                {match, Head},
                {match_object, Head}
            ]
        ]
    end).

%% Selects in chunks of any length, in both directions.
chunked_selections(Config) ->
    on_tables(Config, 25, fun(Table, Pair) ->
        Spec = [{Head, _, _} | _] = ats_spec_gen:spec(Table),
        Limit = ats_spec_gen:pick({1, 2, 3, 5, 10, 100}),
        [
            compare(Pair, Table, {Call, Limit}, Argument)
         || {Call, Argument} <- [
                {chunks, Spec},
                {reverse_chunks, Spec},
                {match_chunks, Head},
                {object_chunks, Head}
            ]
        ]
    end).

deletions(Config) ->
    on_tables(Config, 15, fun(Table, {Ets, _} = Pair) ->
        Spec = [{Head, _, _} | _] = ats_spec_gen:spec(Table),
        Deleting = [{H, G, [true]} || {H, G, _} <- Spec],
        {Call, Argument} = ats_spec_gen:pick({
            {select_delete, Spec}, {select_delete, Deleting}, {match_delete, Head}
        }),
        Before = ets:tab2list(Ets),
        compare(Pair, Table, Call, Argument),
        ?assert(are_equal(Pair)),
        %% Restores the objects for the next deletion.
        true = ets:insert(Ets, Before),
        ok = dats:insert(?NAME, Before)
    end).

on_tables(Config, Tables, Do) ->
    _ = rand:seed(exsss, Seed = erlang:unique_integer([positive]) + erlang:system_time()),
    ct:pal("seed ~b", [Seed]),
    [
        begin
            #{keypos := KeyPos, objects := Objects} = Made = ats_spec_gen:table(),
            Table = Made#{type := ordered_set},
            Pair = both(Config, KeyPos),
            filled(Pair, tuple_to_list(Objects)),
            [Do(Table, Pair) || _ <- lists:seq(1, 25)]
        end
     || _ <- lists:seq(1, Tables)
    ],
    ok.

%% The table on disk gives the answer of `ets', or the right one where `ets' is known to be wrong,
%% and has the same objects afterwards.
compare({Ets, _}, #{keypos := KeyPos} = Table, Call, Argument) ->
    Contents = ets:tab2list(Ets),
    Answer = outcome(fun() -> answer(dats, ?NAME, Call, Argument) end),
    {Expected, Left} =
        case is_right(KeyPos, Call, Argument) of
            true ->
                Answered = outcome(fun() -> answer(ets, Ets, Call, Argument) end),
                {Answered, ets:tab2list(Ets)};
            false ->
                {Model, After} =
                    ats_select_model:answer(Call, Table#{contents => Contents}, Argument),
                true = ets:delete_all_objects(Ets),
                true = ets:insert(Ets, After),
                {modelled(Call, Model), After}
        end,
    ?assertEqual({Call, Argument, Contents, Expected}, {Call, Argument, Contents, Answer}),
    ?assertEqual(Left, dats:tab2list(?NAME)).

is_right(KeyPos, Call, Argument) ->
    Spec =
        case lists:member(Call, [match, match_object, match_delete]) orelse is_pattern(Call) of
            true -> [{Argument, [], ['$_']}];
            false -> Argument
        end,
    %% A pattern that no tuple can match, `ets' alone takes for an error.
    IsPattern = fun({Head, _, _}) -> is_tuple(Head) orelse is_atom(Head) end,
    lists:all(IsPattern, Spec) andalso ats_ets_faults:is_right(ordered_set, KeyPos, Spec).

is_pattern({Call, _}) -> lists:member(Call, [match_chunks, object_chunks]);
is_pattern(_) -> false.

answer(M, T, {Call, Limit}, Argument) ->
    Function = maps:get(Call, #{
        chunks => select,
        reverse_chunks => select_reverse,
        match_chunks => match,
        object_chunks => match_object
    }),
    chunks(M, Function, Limit, M:Function(T, Argument, Limit));
answer(_, T, match_delete, Pattern) when T =:= ?NAME ->
    dats:match_delete(T, Pattern) =:= ok;
answer(M, T, Function, Argument) ->
    M:Function(T, Argument).

chunks(_, _, _, '$end_of_table') ->
    [];
chunks(M, Function, Limit, {Results, Continuation}) ->
    ?assert(Results =/= [] andalso length(Results) =< Limit),
    Results ++ chunks(M, Function, Limit, M:Function(Continuation)).

modelled({_, _}, {returned, Chunks}) -> {returned, lists:append(Chunks)};
modelled(_, {returned, Result}) -> {returned, Result};
modelled(_, {raised, Reason, _}) -> {error, Reason}.

%% ----- whole tables -----

%% A table of `ets' and back. Old objects of the target are gone on the way to the disk, and stay on
%% the way back.
transfers(Config) ->
    Property = ?FORALL({Old, New}, {objects(), objects()}, begin
        {Ets, _} = Pair = both(Config, 1),
        filled(Pair, Old),
        Source = ets:new(source, [ordered_set]),
        true = ets:insert(Source, New),
        ok = dats:from_ets(?NAME, Source),
        Source = dats:to_ets(?NAME, Source),
        Copy = ets:tab2list(Source) =:= dats:tab2list(?NAME),
        Ets = dats:to_ets(?NAME, Ets),
        Kept = dats:tab2list(?NAME) =:= ets:tab2list(Source),
        true = ets:delete(Source),
        Both = lists:all(fun(O) -> ets:lookup(Ets, element(1, O)) =/= [] end, Old ++ New),
        Copy andalso Kept andalso Both
    end),
    check(Property, 40).

%% Several lists, also empty ones, with keys that come again.
fillings(Config) ->
    Property = ?FORALL({Old, Lists}, {objects(), resize(4, list(objects()))}, begin
        {Ets, _} = Pair = both(Config, 1),
        filled(Pair, Old),
        ok = dats:init_table(?NAME, provider(Lists)),
        true = ets:init_table(Ets, provider(Lists)),
        are_equal(Pair)
    end),
    check(Property, 40).

provider([]) -> fun(_) -> end_of_input end;
provider([List | Lists]) -> fun(_) -> {List, provider(Lists)} end.

%% Numbers that are equal are one key, and the object that was written last has it, however many
%% files the writes are in.
the_latest_write_counts(Config) ->
    {Ets, _} = Pair = both(Config, 1),
    Keys = [1, 1.0, {1, 2.0}, {1.0, 2}, [1 | 2.0], [1.0 | 2], {a, #{1 => 1}}, {a, #{1 => 1.0}}, 2],
    [
        begin
            ok = dats:insert(?NAME, {Key, N}),
            true = ets:insert(Ets, {Key, N}),
            stored(How, Config),
            ?assert(are_equal(Pair)),
            ?assertEqual(ets:lookup(Ets, Key), dats:lookup(?NAME, Key))
        end
     || {Key, N} <- numbered(Keys ++ lists:reverse(Keys)), How <- [flush, none, close, compact]
    ],
    ok.

objects() ->
    ?LET(Recipes, list(ats_term_gen:object()), [ats_term_gen:realize(R) || R <- Recipes]).

numbered(List) -> lists:zip(List, lists:seq(1, length(List))).

%% ----- pairs of tables -----

%% A table of `ets', and an empty one on disk with blocks of a few objects.
both(Config, KeyPos) ->
    _ = dats:close(?NAME),
    _ = file:del_dir_r(ats_disk_lib:file(Config, ?NAME)),
    Options = [{type, ordered_set}, {keypos, KeyPos}, {block_size, 256}, {durability, system}],
    ?NAME = ats_disk_lib:open(Config, ?NAME, Options),
    {ets:new(reference, [ordered_set, {keypos, KeyPos}]), Config}.

%% The objects that are inserted first are in files.
filled({Ets, Config}, Objects) ->
    {First, Then} = lists:split(rand:uniform(length(Objects) + 1) - 1, Objects),
    ok = dats:insert(?NAME, First),
    stored(ats_spec_gen:pick({flush, compact, close, none}), Config),
    ok = dats:insert(?NAME, Then),
    true = ets:insert(Ets, Objects).

stored(none, _) ->
    ok;
stored(close, Config) ->
    ok = dats:close(?NAME),
    ?NAME = ats_disk_lib:open(Config, ?NAME, []),
    ok;
stored(Function, _) ->
    ok = dats:Function(?NAME).

are_equal({Ets, _}) ->
    Objects = ets:tab2list(Ets),
    ?assertEqual(Objects, dats:tab2list(?NAME)),
    dats:info(?NAME, size) =:= length(Objects).

%% Returns the result of a function, in the words of `ets', or the reason of its exception.
outcome(M, Function, Args) ->
    case outcome(fun() -> apply(M, Function, Args) end) of
        {returned, ok} -> {returned, true};
        Outcome -> Outcome
    end.

outcome(Fun) ->
    try
        {returned, Fun()}
    catch
        error:Reason -> {error, Reason}
    end.

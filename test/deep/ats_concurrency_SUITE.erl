%% Many processes on one table.
%%
%% Random schedules cannot be compared call by call, so each case is built around something that
%% must hold in every schedule: a model that only one process changes, operations that commute,
%% values that are written once, keys that are never touched. All cases run twice: as chance has
%% it, and on tables that are forced to adapt all the time.
%%
%% ATS_STRESS_OPS sets the operations of the longest case, `deleted_in_the_middle' (a million by
%% default).
-module(ats_concurrency_SUITE).

-include_lib("stdlib/include/assert.hrl").

-export([all/0, groups/0, suite/0, init_per_group/2, end_per_group/2]).
-export([
    disjoint_writers/1,
    counters_lose_nothing/1,
    insert_new_has_one_winner/1,
    insert_new_lists/1,
    take_gives_once/1,
    objects_are_never_torn/1,
    counters_are_never_torn/1,
    list_insert_is_atomic/1,
    list_insert_is_isolated/1,
    lists_in_bags_keep_order/1,
    delete_all_is_atomic/1,
    traversal_misses_nothing/1,
    deleted_in_the_middle/1,
    adaptation_was_forced/1
]).

-import(ats_test_lib, [parallel/1, until/2, check_consistency/1]).

-define(KINDS, [
    {set, []},
    {set, [{write_concurrency, true}, compressed]},
    {ordered_set, []},
    {ordered_set, [{write_concurrency, true}, compressed]}
]).

suite() -> [{timetrap, {minutes, 30}}].

all() ->
    [{group, by_chance}, {group, forced}].

groups() ->
    [{by_chance, [], cases()}, {forced, [], cases() ++ [adaptation_was_forced]}].

init_per_group(Group, Config) -> ats_test_lib:begin_group(Group, Config).
end_per_group(Group, _) -> ats_test_lib:end_group(Group).

cases() ->
    [
        disjoint_writers,
        counters_lose_nothing,
        insert_new_has_one_winner,
        insert_new_lists,
        take_gives_once,
        objects_are_never_torn,
        counters_are_never_torn,
        list_insert_is_atomic,
        list_insert_is_isolated,
        lists_in_bags_keep_order,
        delete_all_is_atomic,
        traversal_misses_nothing,
        deleted_in_the_middle
    ].

%% ----- one writer for each key -----

%% Eight processes write keys of their own. No other process changes them, so every answer about
%% them is known beforehand. At the end the table is the union of the models.
disjoint_writers(_) ->
    for_each(
        ?KINDS ++ [{bag, []}, {duplicate_bag, []}],
        fun(M, T) ->
            Models = parallel([
                fun() -> write_own_keys(M, T, Me, 8, 6000, #{}) end
             || Me <- lists:seq(0, 7)
            ]),
            Expected = lists:foldl(fun maps:merge/2, #{}, Models),
            ?assertEqual(lists:sort(maps:to_list(Expected)), lists:sort(M:tab2list(T))),
            check_consistency(T)
        end
    ).

write_own_keys(_, _, _, _, 0, Model) ->
    Model;
write_own_keys(M, T, Me, Stride, N, Model) ->
    Key = Me + Stride * rand:uniform(300),
    Old = [{Key, V} || {ok, V} <- [maps:find(Key, Model)]],
    IsBag = lists:member(M:info(T, type), [bag, duplicate_bag]),
    New =
        case rand:uniform(8) of
            1 when not IsBag ->
                ?assert(M:insert(T, {Key, N})),
                Model#{Key => N};
            2 when not IsBag ->
                ?assertEqual(Old =/= [], M:update_element(T, Key, {2, N})),
                maps:map(
                    fun
                        (K, _) when K =:= Key -> N;
                        (_, V) -> V
                    end,
                    Model
                );
            3 ->
                ?assertEqual(Old, M:take(T, Key)),
                maps:remove(Key, Model);
            4 ->
                ?assert(M:delete(T, Key)),
                maps:remove(Key, Model);
            5 ->
                ?assertEqual(Old =/= [], M:member(T, Key)),
                Model;
            6 ->
                ?assert(M:delete_object(T, {Key, N + 1})),
                maps:filter(fun(K, V) -> {K, V} =/= {Key, N + 1} end, Model);
            _ ->
                ?assertEqual(Old =:= [], M:insert_new(T, {Key, N})),
                maps:merge(#{Key => N}, Model)
        end,
    ?assertEqual([{Key, V} || {ok, V} <- [maps:find(Key, New)]], M:lookup(T, Key)),
    write_own_keys(M, T, Me, Stride, N - 1, New).

%% ----- operations that commute -----

%% Every increment by one returns a number of its own, so the numbers that all processes got are
%% exactly 1 to the total. A lost or doubled update would leave a gap or a pair.
counters_lose_nothing(_) ->
    for_each(?KINDS, fun(M, T) ->
        PerProcess = 8000,
        Numbers = parallel([
            fun() ->
                [
                    {C, M:update_counter(T, C, {2, 1}, {C, 0})}
                 || I <- lists:seq(1, PerProcess), C <- [counter(I)]
                ]
            end
         || _ <- lists:seq(1, 8)
        ]),
        All = lists:append(Numbers),
        lists:foreach(
            fun(C) ->
                Got = lists:sort([V || {D, V} <- All, D =:= C]),
                ?assertEqual(lists:seq(1, length(Got)), Got),
                ?assertEqual([{C, length(Got)}], M:lookup(T, C))
            end,
            [1, 2, 3]
        ),
        ?assertEqual(8 * PerProcess, length(All))
    end).

counter(I) when I rem 4 =:= 0 -> 2;
counter(I) when I rem 16 =:= 1 -> 3;
counter(_) -> 1.

insert_new_has_one_winner(_) ->
    for_each(?KINDS, fun(M, T) ->
        Keys = lists:seq(1, 5000),
        Wins = parallel([
            fun() -> [{K, Me} || K <- Keys, M:insert_new(T, {K, Me})] end
         || Me <- lists:seq(1, 6)
        ]),
        Winners = lists:sort(lists:append(Wins)),
        ?assertEqual(Keys, [K || {K, _} <- Winners]),
        ?assertEqual(Winners, lists:sort(M:tab2list(T)))
    end).

%% Lists of keys that overlap at random: a list gets in with all its objects or with none.
insert_new_lists(_) ->
    for_each(?KINDS, fun(M, T) ->
        lists:foreach(
            fun(Round) ->
                Wins = parallel([
                    fun() -> [L || L <- random_lists(Round, Me), M:insert_new(T, L)] end
                 || Me <- lists:seq(1, 4)
                ]),
                Expected = lists:sort(lists:append(lists:append(Wins))),
                ?assertEqual(Expected, lists:sort(M:tab2list(T))),
                M:delete_all_objects(T)
            end,
            lists:seq(1, 40)
        )
    end).

random_lists(Round, Me) ->
    [
        [{K, {Round, Me, I}} || K <- distinct(1 + rand:uniform(6), 100)]
     || I <- lists:seq(1, 25)
    ].

distinct(N, Max) ->
    lists:sublist(shuffle(lists:seq(1, Max)), N).

shuffle(L) ->
    [X || {_, X} <- lists:sort([{rand:uniform(), X} || X <- L])].

take_gives_once(_) ->
    for_each(?KINDS ++ [{bag, []}, {duplicate_bag, []}], fun(M, T) ->
        Keys = lists:seq(1, 5000),
        M:insert(T, [{K, x} || K <- Keys]),
        Taken = parallel([
            fun() -> lists:append([M:take(T, K) || K <- shuffle(Keys)]) end
         || _ <- lists:seq(1, 4)
        ]),
        ?assertEqual([{K, x} || K <- Keys], lists:sort(lists:append(Taken))),
        ?assertEqual([], M:tab2list(T)),
        ?assertEqual(0, M:info(T, size))
    end).

%% ----- atomic and isolated -----

%% All elements of an object are written together, so they are read together.
objects_are_never_torn(_) ->
    for_each(?KINDS, fun(M, T) ->
        Object = fun(N) -> {k, N, {N, N}, <<N:64, 0:2000>>, N} end,
        M:insert(T, Object(0)),
        while_running(
            [
                fun() -> [M:insert(T, Object(N)) || N <- lists:seq(1, 20000)] end,
                fun() ->
                    [
                        M:update_element(T, k, [{2, N}, {3, {N, N}}, {4, <<N:64>>}, {5, N}])
                     || N <- lists:seq(1, 20000)
                    ]
                end
            ],
            [
                fun() ->
                    [{k, N, {N1, N2}, <<B:64, _/binary>>, N3}] = M:lookup(T, k),
                    ?assertEqual([N], lists:usort([N, N1, N2, N3, B]))
                end
            ]
        )
    end).

%% Counters change in place, those of one object together, and they only grow. This holds beyond the
%% small integers, while the object is replaced by an equal one, and for every reader.
counters_are_never_torn(_) ->
    for_each(?KINDS, fun(M, T) ->
        Start = (1 bsl 59) - 10000,
        Object = {k, Start, text, Start, <<0:800>>, Start},
        M:insert(T, [Object, {alone, 0}]),
        Count = fun(N) ->
            [A, B, A] = M:update_counter(T, k, [{2, 1}, {4, 1}, {2, 0}]),
            ?assertEqual(A, B),
            N rem 3 =:= 0 andalso M:update_counter(T, alone, 1),
            N rem 100 =:= 0 andalso M:update_element(T, k, {3, N}),
            N rem 7 =:= 0 andalso M:insert(T, {{other, N rem 300}, N})
        end,
        Read = fun() ->
            {A, A} = counters(M:lookup(T, k)),
            {B, B} = counters([O || O <- M:tab2list(T), element(1, O) =:= k]),
            {C, C} = counters(M:foldl(fun collect_counters/2, [], T)),
            ?assert(Start =< A andalso A =< B andalso B =< C),
            D = M:lookup_element(T, k, 4),
            ?assert(C =< D andalso D =< M:lookup_element(T, k, 2)),
            ?assert(M:lookup_element(T, alone, 2) =< M:lookup_element(T, alone, 2)),
            ?assertEqual(Start, M:lookup_element(T, k, 6))
        end,
        while_running(
            [fun() -> lists:foreach(Count, lists:seq(1, 30000)) end || _ <- [1, 2]],
            [Read, Read]
        ),
        ?assertEqual({Start + 60000, Start + 60000}, counters(M:lookup(T, k))),
        ?assertEqual(20000, M:lookup_element(T, alone, 2))
    end).

counters([{k, A, _, B, <<0:800>>, _}]) -> {A, B}.

collect_counters(Object, Acc) when element(1, Object) =:= k -> [Object | Acc];
collect_counters(_, Acc) -> Acc.

%% One writer inserts lists with a growing number. A reader that has read N at one key cannot read
%% less than N at another key afterwards, in whichever order the keys are in the list and the table.
list_insert_is_isolated(_) ->
    for_each(?KINDS, fun(M, T) ->
        M:insert(T, [{{other, I}, I} || I <- lists:seq(1, 3000)]),
        Keys = [{K, I} || I <- lists:seq(1, 12), K <- [a, z]],
        M:insert(T, [{K, 0} || K <- Keys]),
        while_running(
            [
                fun() ->
                    [
                        M:insert(T, [{K, N} || K <- shuffle(Keys)])
                     || N <- lists:seq(1, 3000)
                    ]
                end,
                fun() -> disturb(M, T, 20000) end
            ],
            [
                fun() ->
                    Seen = [value(M, T, K) || K <- shuffle(Keys)],
                    ?assertEqual(lists:sort(Seen), Seen)
                end
             || _ <- [1, 2]
            ]
        )
    end).

%% Several writers, every value written once. A key that has value V before and after had it all
%% the time in between, so that the other keys of the list must have had it, too.
list_insert_is_atomic(_) ->
    for_each(?KINDS, fun(M, T) ->
        M:insert(T, [{{other, I}, I} || I <- lists:seq(1, 3000)]),
        Keys = [1, 1000000, {other, 0}, z, <<"key">>],
        M:insert(T, [{K, first} || K <- Keys]),
        Writer = fun(Me) ->
            [M:insert(T, [{K, {Me, N}} || K <- shuffle(Keys)]) || N <- lists:seq(1, 4000)]
        end,
        while_running(
            [fun() -> Writer(Me) end || Me <- [1, 2]] ++ [fun() -> disturb(M, T, 10000) end],
            [fun() -> read_between(M, T, Keys) end || _ <- [1, 2]]
        )
    end).

%% Lists with one object for each of several keys of a bag: the objects of each key are in the order
%% in which the lists came, so in the same order, while other objects come and go between them. A
%% reader that reads one key and then another finds at the second key all that it found at the first
%% one, and perhaps more.
lists_in_bags_keep_order(_) ->
    case ats_oracle:subject() of
        ats_reference -> {skip, "the reference inserts lists into bags one object at a time"};
        _ -> lists_in_bags_keep_order()
    end.

lists_in_bags_keep_order() ->
    for_each([{bag, []}, {bag, [compressed]}, {duplicate_bag, []}], fun(M, T) ->
        Keys = [a, {b}, "c"],
        Write = fun(Me) ->
            [M:insert(T, [{K, {Me, N}} || K <- shuffle(Keys)]) || N <- lists:seq(1, 250)]
        end,
        PassBy = fun() ->
            lists:foreach(
                fun(N) ->
                    K = lists:nth(1 + N rem 3, Keys),
                    M:insert(T, {K, N}),
                    M:insert(T, [{K, {passing, N}}, {K, {passing, -N}}]),
                    [M:delete_object(T, {K, V}) || V <- [N, {passing, -N}, {passing, N}]]
                end,
                lists:seq(1, 2000)
            )
        end,
        while_running(
            [fun() -> Write(Me) end || Me <- [1, 2]] ++ [PassBy],
            [
                fun() ->
                    [First, Second | _] = shuffle(Keys),
                    Before = listed(M, T, First),
                    After = listed(M, T, Second),
                    ?assert(lists:prefix(Before, After))
                end
             || _ <- [1, 2]
            ]
        ),
        [Order, Order, Order] = [listed(M, T, K) || K <- Keys],
        [?assertEqual(lists:seq(1, 250), [N || {Me, N} <- Order, Me =:= W]) || W <- [1, 2]],
        ?assertEqual(3 * 500, M:info(T, size))
    end).

listed(M, T, Key) ->
    [{Me, N} || {K, {Me, N}} <- M:lookup(T, Key), K =:= Key, is_integer(Me)].

delete_all_is_atomic(_) ->
    for_each(?KINDS, fun(M, T) ->
        Keys = lists:seq(1, 300, 30),
        Fill = [{K, filling} || K <- lists:seq(1001, 1300)],
        while_running(
            [
                fun() ->
                    lists:foreach(
                        fun(N) ->
                            M:insert(T, [{K, N} || K <- shuffle(Keys)] ++ Fill),
                            M:delete_all_objects(T),
                            ?assertEqual([], M:lookup(T, hd(Keys)))
                        end,
                        lists:seq(1, 1500)
                    )
                end
            ],
            [fun() -> read_between(M, T, Keys) end || _ <- [1, 2]]
        )
    end).

%% Reads one key, another, and the first again.
read_between(M, T, Keys) ->
    [A, B | _] = shuffle(Keys),
    Before = M:lookup(T, A),
    Between = M:lookup(T, B),
    After = M:lookup(T, A),
    case {Before, After} of
        {[{A, V}], [{A, V}]} -> ?assertEqual([{B, V}], Between);
        _ -> ok
    end.

value(M, T, K) ->
    [{K, V}] = M:lookup(T, K),
    V.

%% Work on other keys, so that the structure under the watched keys changes all the time.
disturb(M, T, N) ->
    lists:foreach(
        fun(_) ->
            K = {other, rand:uniform(6000)},
            case rand:uniform(2) of
                1 -> M:insert(T, {K, 1});
                2 -> M:delete(T, K)
            end
        end,
        lists:seq(1, N)
    ).

%% ----- traversals -----

%% Even keys are never touched while odd ones come and go. Every walk sees each even key once.
traversal_misses_nothing(_) ->
    Max = 2000,
    Even = lists:seq(2, Max, 2),
    for_each(?KINDS ++ [{bag, []}, {duplicate_bag, []}], fun(M, T) ->
        M:insert(T, [{K, K} || K <- Even]),
        Writer = fun() ->
            lists:foreach(
                fun(_) ->
                    K = 2 * rand:uniform(Max) - 1,
                    case rand:uniform(2) of
                        1 -> M:insert(T, {K, K});
                        2 -> M:delete(T, K)
                    end
                end,
                lists:seq(1, 16000)
            )
        end,
        Type = M:info(T, type),
        Walks = [
            fun() -> walk(M, T, M:first(T), next) end,
            fun() -> walk(M, T, M:last(T), prev) end,
            fun() -> [K || {K, _} <- M:tab2list(T)] end,
            fun() -> M:foldl(fun({K, _}, Acc) -> [K | Acc] end, [], T) end,
            fun() -> M:foldr(fun({K, _}, Acc) -> [K | Acc] end, [], T) end
        ],
        Directions = [up, down, up, down, up],
        while_running([Writer, Writer], [
            fun() -> check_walk(M, T, Type, Direction, Walk, Even) end
         || {Direction, Walk} <- lists:zip(Directions, Walks)
        ])
    end).

check_walk(M, T, Type, Direction, Walk, Even) ->
    M:safe_fixtable(T, Type =/= ordered_set),
    Keys = Walk(),
    M:safe_fixtable(T, false),
    ?assertEqual([], Even -- Keys),
    %% A key that was deleted and came back may be seen twice; one that stayed may not.
    Stayed = [K || K <- Keys, K rem 2 =:= 0],
    ?assertEqual(length(Even), length(Stayed)),
    case {Type, Direction} of
        {ordered_set, up} -> ?assertEqual(lists:sort(Keys), Keys);
        {ordered_set, down} -> ?assertEqual(lists:reverse(lists:sort(Keys)), Keys);
        _ -> ok
    end.

walk(_, _, '$end_of_table', _) -> [];
walk(M, T, Key, Step) -> [Key | walk(M, T, M:Step(T, Key), Step)].

%% ----- deletion under load, and memory -----

%% Sixteen processes at work while the table is deleted: the only failure is badarg, and only
%% after the deletion began; nothing crashes and all memory comes back.
deleted_in_the_middle(_) ->
    Total = list_to_integer(os:getenv("ATS_STRESS_OPS", "1000000")),
    Kinds = ?KINDS ++ [{bag, []}, {duplicate_bag, [{write_concurrency, true}]}],
    PerRound = 160000,
    Cold = ats_test_lib:settled_memory(),
    %% The first rounds fill the pools of the allocators; a leak would show in all that follow.
    lists:foreach(fun(Kind) -> stress_round(Kind, PerRound) end, Kinds),
    Before = ats_test_lib:settled_memory(),
    Rounds = max(length(Kinds), Total div PerRound),
    Done = lists:sum([
        stress_round(lists:nth(1 + R rem length(Kinds), Kinds), PerRound)
     || R <- lists:seq(1, Rounds)
    ]),
    ct:pal("~b operations in ~b rounds; memory before the first round ~p", [Done, Rounds, Cold]),
    ats_test_lib:assert_memory_returns(Before, 0.05).

stress_round({Type, Options}, Operations) ->
    M = ats_oracle:subject(),
    T = ats_test_lib:new(stressed, [Type, public | Options]),
    Done = counters:new(1, [write_concurrency]),
    Deleting = atomics:new(1, []),
    PerProcess = Operations div 16,
    Worker = fun() -> stress(M, T, PerProcess, Done, Deleting) end,
    Deleter = fun() ->
        until(fun() -> counters:get(Done, 1) >= Operations div 2 end, 120000),
        check_size_is_sane(M, T),
        ok = ats_test_lib:count_adaptation(T),
        atomics:put(Deleting, 1, 1),
        %% An ets table can only be deleted by another process if that is allowed; it is public.
        true = M:delete(T),
        ?assertEqual(undefined, M:info(T))
    end,
    _ = parallel([Deleter | lists:duplicate(16, Worker)]),
    counters:get(Done, 1).

check_size_is_sane(M, T) ->
    Size = M:info(T, size),
    ?assert(is_integer(Size) andalso Size >= 0).

stress(_, _, 0, _, _) ->
    ok;
stress(M, T, N, Done, Deleting) ->
    Goes =
        try
            random_operation(M, T),
            true
        catch
            error:badarg:Stack ->
                case {atomics:get(Deleting, 1), M:info(T, size)} of
                    {1, undefined} -> false;
                    %% A hash table refuses the next of a key that is gone.
                    {_, _} -> is_next(Stack)
                end
        end,
    counters:add(Done, 1, 1),
    case Goes of
        true -> stress(M, T, N - 1, Done, Deleting);
        false -> use_deleted(M, T, N, Done)
    end.

is_next([{_, F, _, _} | _] = Stack) ->
    case lists:member(F, [next, prev, next_lookup, prev_lookup, update_counter]) of
        true -> true;
        false -> error({unexpected_badarg, Stack})
    end.

%% A process that goes on using a deleted table gets badarg and nothing else.
use_deleted(_, _, 0, _) ->
    ok;
use_deleted(M, T, N, Done) ->
    ?assertError(badarg, random_operation(M, T)),
    counters:add(Done, 1, 1),
    use_deleted(M, T, N - 1, Done).

random_operation(M, T) ->
    K = rand:uniform(2000),
    case rand:uniform(24) of
        1 -> M:delete(T, K);
        2 -> M:delete(T, {K});
        3 -> M:take(T, K);
        4 -> M:insert_new(T, {K, 1, <<0:(8 * (K rem 200))>>});
        5 -> M:insert(T, [{K + I, 1, a} || I <- lists:seq(1, 5)]);
        6 -> M:insert_new(T, [{{K, I}, 1, a} || I <- lists:seq(1, 5)]);
        7 -> M:insert(T, {{K}, 1, <<0:(8 * 3000)>>});
        8 -> M:insert(T, {{K}, 1, #{K => make_ref()}});
        9 -> M:next(T, K);
        10 -> M:prev(T, K);
        11 -> M:first(T);
        12 -> M:last_lookup(T);
        13 -> M:member(T, K);
        14 -> M:lookup_element(T, K, 2, none);
        15 -> M:delete_object(T, {K, 1, a});
        16 -> is_counted(M, T) andalso M:update_counter(T, K, {2, 1}, {K, 0, a});
        17 -> is_counted(M, T) andalso M:update_element(T, K, {2, 7});
        18 -> fix_and_unfix(M, T, K);
        19 -> rarely(fun() -> M:tab2list(T) end, fun() -> M:lookup(T, K) end);
        20 -> rarely(fun() -> M:delete_all_objects(T) end, fun() -> M:lookup(T, K) end);
        21 -> M:lookup(T, K);
        22 -> M:lookup(T, {K});
        _ -> M:insert(T, {K, K, <<0:(8 * (K rem 300))>>})
    end.

is_counted(M, T) ->
    case M:info(T, type) of
        undefined -> error(badarg);
        Type -> Type =:= set orelse Type =:= ordered_set
    end.

fix_and_unfix(M, T, K) ->
    true = M:safe_fixtable(T, true),
    M:delete(T, K),
    true = M:safe_fixtable(T, false).

rarely(Seldom, Mostly) ->
    case rand:uniform(400) of
        1 -> Seldom();
        _ -> Mostly()
    end.

%% ----- the forced cases -----

adaptation_was_forced(_) ->
    Seen = ats_test_lib:forced_so_far(),
    ct:pal("~p", [Seen]),
    ?assertEqual([], [{Item, N} || {Item, N} <- maps:to_list(Seen), N =< 10000]).

%% ----- help -----

for_each(Kinds, Case) ->
    M = ats_oracle:subject(),
    lists:foreach(
        fun({Type, Options}) ->
            T = ats_test_lib:new(shared, [Type, public | Options]),
            try
                Case(M, T)
            catch
                Class:Reason:Stack ->
                    ct:pal("with ~p", [[Type | Options]]),
                    erlang:raise(Class, Reason, Stack)
            after
                ok = ats_test_lib:count_adaptation(T),
                M:delete(T)
            end
        end,
        Kinds
    ).

%% Repeats the watchers, each in a process of its own, until all workers are done.
while_running(Workers, Watchers) ->
    Stop = atomics:new(1, []),
    Watch = fun(W) ->
        fun Loop() ->
            W(),
            case atomics:get(Stop, 1) of
                0 -> Loop();
                1 -> ok
            end
        end
    end,
    Work = fun() ->
        try
            parallel(Workers)
        after
            atomics:put(Stop, 1, 1)
        end
    end,
    parallel([Work | [Watch(W) || W <- Watchers]]).

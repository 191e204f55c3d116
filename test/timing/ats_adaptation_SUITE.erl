%% The adaptation of tables to contention, as `info(T, stats)' shows it: the numbers, forced splits
%% and joins of ordered tables, and the way back to one base node when no process writes any more;
%% forced doubling and halving of the locks of the others.
-module(ats_adaptation_SUITE).

-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0, init_per_suite/1, end_per_suite/1]).
-export([
    every_type_answers/1,
    access_is_that_of_info/1,
    writes_are_counted/1,
    splits_and_joins_are_forced/1,
    monotone_keys_split_too/1,
    buckets_follow_objects/1,
    locks_are_doubled_and_halved/1,
    forcing_checks_its_arguments/1,
    clearing_starts_anew/1,
    read_only_table_coarsens/1,
    idle_tables_coarsen/1,
    a_written_table_coarsens_too/1,
    nothing_shows_through/1,
    split_tables_come_and_go/1
]).

-import(ats_test_lib, [parallel/1, until/2]).

-define(ITEMS,
        [base_nodes, contended, depth, joins, retries, route_nodes, splits, uncontended]).
-define(HASH_ITEMS,
        [buckets, contended, doublings, halvings, lines, locks, retries, uncontended]).
-define(HASH_TYPES, [set, bag, duplicate_bag]).
-define(WHOLE, #{base_nodes := 1, route_nodes := 0, depth := 0}).
%% Until the last base nodes are joined. It takes a second or two where nothing else is running.
-define(COARSE_WITHIN_MS, 60000).

suite() -> [{timetrap, {minutes, 10}}].

all() ->
    [
        every_type_answers,
        access_is_that_of_info,
        writes_are_counted,
        splits_and_joins_are_forced,
        monotone_keys_split_too,
        buckets_follow_objects,
        locks_are_doubled_and_halved,
        forcing_checks_its_arguments,
        clearing_starts_anew,
        read_only_table_coarsens,
        idle_tables_coarsen,
        a_written_table_coarsens_too,
        nothing_shows_through,
        split_tables_come_and_go
    ].

init_per_suite(Config) ->
    case ats_oracle:subject() of
        ats -> Config;
        _ -> {skip, "only ats tells how it adapts"}
    end.

end_per_suite(_) -> ok.

%% ----- numbers -----

every_type_answers(_) ->
    lists:foreach(
        fun(Type) ->
            Stats = ats:info(ats:new(t, [Type]), stats),
            ?assertEqual(?HASH_ITEMS, lists:sort(maps:keys(Stats))),
            ?assertMatch(#{doublings := 0, halvings := 0}, Stats),
            ?assertMatch(#{contended := 0, uncontended := 0, lines := 0}, Stats),
            #{buckets := Buckets, locks := Locks} = Stats,
            ?assert(Locks >= 1 andalso Buckets >= Locks)
        end,
        ?HASH_TYPES
    ),
    T = ats:new(t, [ordered_set]),
    Stats = ats:info(T, stats),
    ?assertEqual(?ITEMS, lists:sort(maps:keys(Stats))),
    ?assertMatch(?WHOLE, Stats),
    ?assertMatch(#{splits := 0, joins := 0, contended := 0, uncontended := 0}, Stats),
    ?assertNot(lists:keymember(stats, 1, ats:info(T))),
    ats:delete(T),
    ?assertEqual(undefined, ats:info(T, stats)),
    ?assertEqual(undefined, ats:info(no_such_table, stats)),
    ?assertError(badarg, ats:info(17, stats)).

%% Any process that has the identifier or the name of a table may read its statistics. This holds
%% for private tables, too.
access_is_that_of_info(_) ->
    T = ats:new(adapting, [ordered_set, private, named_table]),
    [Stats] = parallel([fun() -> ats:info(T, stats) end]),
    ?assertMatch(?WHOLE, Stats),
    ?assertEqual(Stats, ats:info(ats:whereis(T), stats)).

writes_are_counted(_) ->
    T = ats:new(t, [ordered_set, public]),
    write(T, 3000, fun(N) -> N end),
    #{contended := 0, uncontended := Alone} = ats:info(T, stats),
    ?assert(Alone >= 3000),
    [ats:lookup(T, N) || N <- lists:seq(1, 3000)],
    ?assertMatch(#{uncontended := Alone}, ats:info(T, stats)),
    Write = fun() -> write(T, 20000, fun(N) -> N rem 3 end) end,
    _ = parallel([Write, Write, Write, Write]),
    #{contended := Waited, uncontended := Free} = ats:info(T, stats),
    ?assert(Waited + Free >= Alone + 80000).

%% ----- forced adaptation -----

splits_and_joins_are_forced(_) ->
    T = split(2000, fun(N) -> erlang:phash2(N) end),
    #{base_nodes := Fine, joins := 0} = is_consistent(ats:info(T, stats)),
    ?assert(Fine > 50),
    true = ats_nif:force_adaptation(T, 0, 1),
    [ats:insert(T, {erlang:phash2(N), again}) || N <- lists:seq(1, 2000)],
    #{base_nodes := Coarse, joins := Joins} = is_consistent(ats:info(T, stats)),
    ?assert(Coarse < Fine div 2),
    ?assert(Joins > 0),
    ats_test_lib:check_consistency(T).

%% The part that is written to is always the last, or the first, one.
monotone_keys_split_too(_) ->
    Orders = [fun(N) -> N end, fun(N) -> -N end],
    [
        begin
            #{base_nodes := Fine} = is_consistent(ats:info(T, stats)),
            ?assert(Fine > 50),
            ats_test_lib:check_consistency(T)
        end
     || Order <- Orders, T <- [split(2000, Order)]
    ].

%% Checks relations that must hold between the numbers while no process writes.
is_consistent(#{base_nodes := Bases, route_nodes := Routes, depth := Depth} = Stats) ->
    #{splits := Splits, joins := Joins} = Stats,
    %% The background may be joining.
    ?assert(Bases >= 1),
    ?assert(Bases =< 1 + Splits),
    ?assert(Joins =< Splits),
    ?assertEqual(Bases > 1, Routes > 0),
    ?assertEqual(Bases > 1, Depth > 0),
    ?assert(Depth =< Routes),
    Stats.

forcing_checks_its_arguments(_) ->
    T = ats:new(t, [ordered_set]),
    true = ats_nif:force_adaptation(T, 0, 16#FFFFFFFF),
    Wrong = [-1, 1 bsl 32, 1 bsl 64, 1.0, a],
    [?assertError({ats_error, none}, ats_nif:force_adaptation(T, N, 1)) || N <- Wrong],
    [?assertError({ats_error, none}, ats_nif:force_adaptation(T, 1, N)) || N <- Wrong],
    Refused = fun() -> ?assertError({ats_error, access}, ats_nif:force_adaptation(T, 1, 1)) end,
    _ = parallel([Refused]),
    ats:delete(T),
    ?assertError({ats_error, id}, ats_nif:force_adaptation(T, 1, 1)).

buckets_follow_objects(_) ->
    lists:foreach(
        fun(Type) ->
            T = ats:new(t, [Type, public]),
            #{buckets := Empty} = ats:info(T, stats),
            write(T, 20000, fun(N) -> N end),
            #{buckets := Full, uncontended := Alone} = ats:info(T, stats),
            ?assert(Full > 10 * Empty),
            ?assert(Alone >= 20000),
            [ats:delete(T, N) || N <- lists:seq(1, 20000)],
            #{buckets := Left} = ats:info(T, stats),
            ?assert(Left < Full div 10)
        end,
        ?HASH_TYPES
    ).

locks_are_doubled_and_halved(_) ->
    lists:foreach(
        fun(Type) ->
            T = ats:new(t, [Type, public]),
            write(T, 2000, fun(N) -> N end),
            true = ats_nif:force_adaptation(T, 1, 0),
            write(T, 100, fun(N) -> -N end),
            #{locks := Many, doublings := Doublings} = ats:info(T, stats),
            ?assert(Many > 1),
            ?assert(Doublings > 0),
            true = ats_nif:force_adaptation(T, 0, 1),
            write(T, 100, fun(N) -> {N} end),
            #{locks := Few, halvings := Halvings} = ats:info(T, stats),
            ?assert(Few < Many),
            ?assert(Halvings > 0),
            ats_test_lib:check_consistency(T)
        end,
        ?HASH_TYPES
    ).

clearing_starts_anew(_) ->
    T = split(2000, fun(N) -> N end),
    ats:delete_all_objects(T),
    ?assertMatch(#{splits := 0, joins := 0, base_nodes := 1}, ats:info(T, stats)),
    %% Forced adaptation stays forced.
    true = ats_nif:force_adaptation(T, 1, 0),
    ats:delete_all_objects(T),
    write(T, 1000, fun(N) -> N end),
    #{base_nodes := Bases} = ats:info(T, stats),
    ?assert(Bases > 20).

%% ----- the way back -----

read_only_table_coarsens(_) ->
    T = split(10000, fun(N) -> erlang:phash2(N, 1 bsl 20) end),
    #{base_nodes := Fine} = ats:info(T, stats),
    ?assert(Fine > 200),
    Size = ats:info(T, size),
    Stop = atomics:new(1, []),
    Read = fun() -> read(T, Stop, 0) end,
    Wait = fun() ->
        Ms = wait_until_whole(T),
        atomics:put(Stop, 1, 1),
        Ms
    end,
    [Ms | Reads] = parallel([Wait, Read, Read]),
    ct:pal("from ~b base nodes to one in ~b ms, beside ~p reads", [Fine, Ms, Reads]),
    ?assertEqual(Size, length(ats:tab2list(T))),
    ats_test_lib:check_consistency(T),
    #{splits := Splits, joins := Joins} = ats:info(T, stats),
    ?assertEqual(Splits, Joins).

read(T, Stop, N) ->
    case atomics:get(Stop, 1) of
        0 ->
            _ = ats:lookup(T, rand:uniform(1 bsl 20)),
            _ = ats:next(T, rand:uniform(1 bsl 20)),
            read(T, Stop, N + 1);
        1 ->
            N
    end.

%% Many tables at once, and no process accesses them.
idle_tables_coarsen(_) ->
    Tables = [split(300, fun(N) -> N end) || _ <- lists:seq(1, 200)],
    timer:sleep(1000),
    Times = [wait_until_whole(T) || T <- Tables],
    ct:pal("200 tables are whole after another ~b ms", [lists:sum(Times)]),
    lists:foreach(fun ats:delete/1, Tables).

%% One process that keeps writing in one place contends with no other process.
a_written_table_coarsens_too(_) ->
    T = split(3000, fun(N) -> N end),
    Stop = atomics:new(1, []),
    Write = fun() -> write_until(T, Stop) end,
    Wait = fun() ->
        Ms = wait_until_whole(T),
        atomics:put(Stop, 1, 1),
        Ms
    end,
    [Ms | _] = parallel([Wait, Write]),
    ct:pal("whole in ~b ms beside a writer", [Ms]).

write_until(T, Stop) ->
    case atomics:get(Stop, 1) of
        0 ->
            ats:insert(T, {1 + rand:uniform(10), again}),
            write_until(T, Stop);
        1 ->
            ok
    end.

wait_until_whole(T) ->
    Start = erlang:monotonic_time(millisecond),
    until(
        fun() ->
            case ats:info(T, stats) of
                ?WHOLE -> true;
                #{} -> false
            end
        end,
        ?COARSE_WITHIN_MS
    ),
    erlang:monotonic_time(millisecond) - Start.

%% ----- invisible adaptation -----

%% Walks and lookups while the table is torn apart and put together under them.
nothing_shows_through(_) ->
    [nothing_shows_through(Type, splits, joins) || Type <- [ordered_set]],
    [nothing_shows_through(Type, doublings, halvings) || Type <- ?HASH_TYPES].

nothing_shows_through(Type, Finer, Coarser) ->
    T = ats:new(t, [Type, public]),
    Keys = lists:seq(2, 4000, 2),
    ats:insert(T, [{K, K} || K <- Keys]),
    true = ats_nif:force_adaptation(T, 3, 2),
    Stop = atomics:new(1, []),
    Writer = fun() ->
        lists:foreach(
            fun(_) ->
                K = 2 * rand:uniform(2000) + 1,
                ats:insert(T, {K, K}),
                ats:delete(T, K)
            end,
            lists:seq(1, 30000)
        ),
        atomics:put(Stop, 1, 1)
    end,
    Reader = fun() -> repeat(fun() -> see_all(T, Type, Keys) end, Stop) end,
    _ = parallel([Writer, Reader, Reader]),
    #{Finer := Fine, Coarser := Coarse} = ats:info(T, stats),
    ct:pal("~b ~s and ~b ~s were not noticed", [Fine, Finer, Coarse, Coarser]),
    ?assert(Fine > 1000),
    ?assert(Coarse > 1000).

see_all(T, Type, Keys) ->
    Met = ats:foldr(fun({K, K}, Acc) -> [K | Acc] end, [], T),
    Up =
        case Type of
            ordered_set -> Met;
            _ -> lists:sort(Met)
        end,
    ?assertEqual(Keys, [K || K <- Up, K rem 2 =:= 0]),
    ?assertEqual(lists:usort(Up), Up),
    lists:foreach(fun(K) -> ?assertEqual([{K, K}], ats:lookup(T, K)) end, Keys).

repeat(Fun, Stop) ->
    Fun(),
    case atomics:get(Stop, 1) of
        0 -> repeat(Fun, Stop);
        1 -> ok
    end.

%% Tables are deleted and cleared while they wait to be coarsened, or are just being.
split_tables_come_and_go(_) ->
    come_and_go(200),
    Before = ats_test_lib:settled_memory(),
    come_and_go(1500),
    ats_test_lib:assert_memory_returns(Before, 0.05).

come_and_go(Rounds) ->
    Stop = atomics:new(1, []),
    Work = fun() ->
        lists:foreach(
            fun(N) ->
                T = split(200, fun(K) -> K end),
                N rem 3 =:= 0 andalso ats:delete_all_objects(T),
                N rem 50 =:= 0 andalso timer:sleep(N rem 170),
                ats:delete(T)
            end,
            lists:seq(1, Rounds)
        ),
        atomics:put(Stop, 1, 1)
    end,
    Staying = split(200, fun(K) -> K end),
    Watch = fun() -> repeat(fun() -> ?assertEqual(200, ats:info(Staying, size)) end, Stop) end,
    _ = parallel([Work, Watch]),
    ats:delete(Staying).

%% ----- help -----

%% A table of that many objects, every insertion of which forced a split; it is left to itself now.
split(N, KeyOf) ->
    T = ats:new(split, [ordered_set, public]),
    true = ats_nif:force_adaptation(T, 1, 0),
    write(T, N, KeyOf),
    true = ats_nif:force_adaptation(T, 0, 0),
    T.

write(T, N, KeyOf) ->
    %% An immediate value would change in place, and the value that is there would not be written:
    %% both without a lock.
    lists:foreach(fun(I) -> ats:insert(T, {KeyOf(I), [self(), I]}) end, lists:seq(1, N)).

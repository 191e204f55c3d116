%% Calls never keep a scheduler for long: long work is done in slices or elsewhere, so that other
%% processes go on. Measured twice: by the machine itself (`long_schedule' of
%% erlang:system_monitor/2), and by processes that look at the clock all the time.
%%
%% The limits are wide, since the machine that runs the tests may have other work; the longest
%% times seen are printed.
%%
%% ATS_LARGE_OBJECTS sets how many objects the largest table has (a million by default),
%% ATS_LARGE_KEY_OBJECTS how many there are of one key of a bag (120,000 by default).
-module(ats_responsive_SUITE).

-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0]).
-export([
    long_list_insert/1,
    long_list_insert_new/1,
    delete_large_table/1,
    delete_all_objects/1,
    largest_table_goes/1,
    owner_of_large_table_dies/1,
    owner_of_many_tables_dies/1,
    read_large_table/1,
    unfix_large_table/1,
    much_is_taken/1,
    uncounted_ranks/1,
    ranks_on_disk/1,
    large_objects_are_copied/1,
    large_objects_are_changed/1,
    large_values_are_merged/1,
    nobody_waits_for_large_merges/1,
    readers_do_not_wait/1,
    one_large_key_is_changed/1,
    one_large_key_costs_no_more/1,
    one_large_key_is_read/1,
    one_large_key_goes/1
]).

-define(LONG_SCHEDULE_MS, 20).
%% The time at which a call is too long, and fails.
-define(LIMIT_MS, 60).
-define(OBJECTS, 500000).
%% The same for calls that do next to nothing themselves.
-define(SHORT_SCHEDULE_MS, 1).
-define(SHORT_LIMIT_MS, 2).
%% Other work of the machine can easily make a short call look longer than that.
-define(SHORT_ATTEMPTS, 8).
%% The least memory that an object of a table takes.
-define(OBJECT_BYTES, 40).
-define(KINDS, [set, ordered_set]).
%% Objects of one key of a bag.
-define(OBJECTS_OF_ONE_KEY, "120000").

suite() -> [{timetrap, {minutes, 10}}].

all() ->
    [
        long_list_insert,
        long_list_insert_new,
        delete_large_table,
        delete_all_objects,
        largest_table_goes,
        owner_of_large_table_dies,
        owner_of_many_tables_dies,
        read_large_table,
        unfix_large_table,
        much_is_taken,
        uncounted_ranks,
        ranks_on_disk,
        large_objects_are_copied,
        large_objects_are_changed,
        large_values_are_merged,
        nobody_waits_for_large_merges,
        readers_do_not_wait,
        one_large_key_is_changed,
        one_large_key_costs_no_more,
        one_large_key_is_read,
        one_large_key_goes
    ].

long_list_insert(_) ->
    M = ats_oracle:subject(),
    Objects = [{N, N} || N <- lists:seq(1, 200000)],
    for_each(fun(Type) ->
        T = M:new(t, [Type, public]),
        watch({insert, Type}, fun() -> M:insert(T, Objects) end),
        ?assertEqual(200000, M:info(T, size)),
        M:delete(T)
    end).

long_list_insert_new(_) ->
    M = ats_oracle:subject(),
    Objects = [{N, N} || N <- lists:seq(1, 200000)],
    for_each(fun(Type) ->
        T = M:new(t, [Type, public]),
        M:insert(T, {200000, there}),
        watch({insert_new, Type}, fun() -> ?assertNot(M:insert_new(T, Objects)) end),
        ?assertEqual(1, M:info(T, size)),
        M:delete(T, 200000),
        watch({insert_new, Type}, fun() -> ?assert(M:insert_new(T, Objects)) end),
        M:delete(T)
    end).

delete_large_table(_) ->
    M = ats_oracle:subject(),
    for_each(fun(Type) ->
        T = filled(M, Type),
        watch({delete, Type}, fun() -> M:delete(T) end),
        ?assertEqual(undefined, M:info(T))
    end).

delete_all_objects(_) ->
    M = ats_oracle:subject(),
    for_each(fun(Type) ->
        T = filled(M, Type),
        watch({delete_all_objects, Type}, fun() -> M:delete_all_objects(T) end),
        ?assertEqual([], M:tab2list(T)),
        M:delete(T)
    end).

%% Clearing and deleting a table take no longer when it is large, neither for the caller nor for a
%% scheduler, and the operating system gets all the memory back.
largest_table_goes(_) ->
    case {ats_oracle:subject(), ats_test_lib:resident_growth(ats_test_lib:settled_memory())} of
        {ats_reference, _} -> {skip, "ets keeps the memory for itself"};
        {_, unknown} -> {skip, "this system does not tell what it gave"};
        {M, _} -> largest_table_goes_of(M)
    end.

largest_table_goes_of(M) ->
    Objects = list_to_integer(os:getenv("ATS_LARGE_OBJECTS", "1000000")),
    for_each(fun(Type) ->
        T = M:new(largest, [Type, public]),
        %% Fills the pools that stay.
        ok = fill(M, T, 10000),
        true = M:delete_all_objects(T),
        ok = ats_test_lib:wait_for_cached_segments(),
        Before = ats_test_lib:settled_memory(),
        goes({cleared, Type, Objects}, M, T, fun() -> M:delete_all_objects(T) end, Before),
        ?assertEqual([], M:tab2list(T)),
        goes({deleted, Type, Objects}, M, T, fun() -> M:delete(T) end, Before),
        ?assertEqual(undefined, M:info(T))
    end).

goes({_, _, Objects} = What, M, T, Call, Before) ->
    ok = fill(M, T, Objects),
    Filled = ats_test_lib:resident_growth(Before),
    ?assert(Filled > Objects * ?OBJECT_BYTES),
    Caller = self(),
    Long = measure(
        What,
        fun() ->
            {Us, true} = timer:tc(Call),
            ct:pal("~0p: ~b MB, the call took ~b us", [What, Filled bsr 20, Us]),
            %% Another process waits, since the system may take a scheduler's thread from its
            %% processor for the thread that frees: that must not look like a long call.
            IsGone = fun() -> ats_test_lib:resident_growth(Before) < Filled div 10 end,
            [ok] = ats_test_lib:parallel([fun() -> ats_test_lib:until(IsGone, 60000) end])
        end,
        ?SHORT_SCHEDULE_MS
    ),
    %% The allocator of the system may keep a little of the memory of overflowing buckets.
    ats_test_lib:assert_memory_returns(Before, 0.05, 6 * 1024 * 1024 + Filled div 20),
    %% Nor does work in the background keep any process waiting for long.
    ?assertEqual([], [E || {_, Ms, _} = E <- Long, Ms > ?LIMIT_MS]),
    OfCaller = longest_first([E || {Pid, _, _} = E <- Long, Pid =:= Caller]),
    Limit = short_limit_ms(OfCaller),
    ?assertEqual([], [E || {_, Ms, _} = E <- OfCaller, Ms > Limit]).

%% Done by another process, so that its garbage goes with it.
fill(M, T, N) ->
    [ok] = ats_test_lib:parallel([fun() -> fill_up(M, T, N) end]),
    ok.

fill_up(_, _, 0) ->
    ok;
fill_up(M, T, N) ->
    true = M:insert(T, {N, {value, N}}),
    fill_up(M, T, N - 1).

owner_of_large_table_dies(_) ->
    M = ats_oracle:subject(),
    for_each(fun(Type) ->
        Test = self(),
        Owner = spawn(fun() ->
            Test ! {self(), filled(M, Type)},
            receive
                stop -> ok
            end
        end),
        T =
            receive
                {Owner, Table} -> Table
            end,
        watch({exit, Type}, fun() ->
            ats_test_lib:kill(Owner),
            ats_test_lib:until(fun() -> M:info(T) =:= undefined end, 10000),
            %% The objects may be freed in the background. That must not disturb any process
            %% either.
            timer:sleep(300)
        end)
    end).

%% Nor does it take long to end a process that owns a thousand tables, or to inherit them.
owner_of_many_tables_dies(_) ->
    M = ats_oracle:subject(),
    Number = 1000,
    lists:foreach(
        fun({What, Options, Left}) ->
            Heir = self(),
            watch_briefly(
                {What, Number},
                fun() -> owner_of_tables(M, Number, Options(Heir)) end,
                fun({Owner, Tables}) ->
                    ats_test_lib:kill(Owner),
                    ?assertEqual(Left(Heir), M:info(hd(Tables), owner)),
                    ?assertEqual(Left(Heir), M:info(lists:last(Tables), owner)),
                    timer:sleep(200)
                end,
                fun({_, Tables}) ->
                    ?assertEqual([Left(Heir)], lists:usort([M:info(T, owner) || T <- Tables])),
                    [M:delete(T) || T <- Tables, M:info(T, id) =/= undefined],
                    true
                end
            )
        end,
        [
            {gone, fun(_) -> [] end, fun(_) -> undefined end},
            {inherited, fun(Heir) -> [{heir, Heir, x}] end, fun(Heir) -> Heir end}
        ]
    ).

owner_of_tables(M, Number, Options) ->
    Test = self(),
    Owner = spawn(fun() ->
        Test ! {self(), [owned_table(M, N, Options) || N <- lists:seq(1, Number)]},
        receive
            stop -> ok
        end
    end),
    receive
        {Owner, Tables} -> {Owner, Tables}
    end.

owned_table(M, N, Options) ->
    T = M:new(owned, [lists:nth(1 + N rem 2, ?KINDS) | Options]),
    M:insert(T, [{K, N} || K <- lists:seq(1, 20)]),
    T.

read_large_table(_) ->
    M = ats_oracle:subject(),
    for_each(fun(Type) ->
        T = filled(M, Type),
        %% The list itself is garbage of the reader, which the collector needs time for; a large
        %% heap from the beginning leaves that out of the measurement.
        Read = fun(Fun) -> fun() -> in_large_process(Fun) end end,
        Count = fun(_, N) -> N + 1 end,
        Length = fun() -> ?assertEqual(?OBJECTS, length(M:tab2list(T))) end,
        Left = fun() -> ?assertEqual(?OBJECTS, M:foldl(Count, 0, T)) end,
        Right = fun() -> ?assertEqual(?OBJECTS, M:foldr(Count, 0, T)) end,
        watch({tab2list, Type}, Read(Length)),
        watch({foldl, Type}, Read(Left)),
        watch({foldr, Type}, Read(Right)),
        M:delete(T)
    end).

%% Deletions under a fixation are cleared away at its end, all at once, as real tables do it. That
%% takes its time; it is measured, and not limited.
unfix_large_table(_) ->
    M = ats_oracle:subject(),
    Objects = 200000,
    for_each(fun(Type) ->
        T = M:new(t, [Type, public]),
        M:insert(T, [{N, {value, N}} || N <- lists:seq(1, Objects)]),
        M:safe_fixtable(T, true),
        [M:delete(T, N) || N <- lists:seq(1, Objects)],
        measure({unfix, Type}, fun() -> M:safe_fixtable(T, false) end),
        ?assertEqual(0, M:info(T, size)),
        M:delete(T)
    end).

%% ----- beyond `ets' -----

%% Half of the objects by a specification, and then the rest.
much_is_taken(_) ->
    N = 300000,
    Half = [{{'$1', '_'}, [{'=:=', {'rem', '$1', 2}, 0}], [true]}],
    beyond_ets(fun(M) ->
        for_each(fun(Type) ->
            T = M:new(t, [Type, public]),
            M:insert(T, [{K, {value, K}} || K <- lists:seq(1, N)]),
            Take = fun(Function) -> fun() -> in_large_process(Function) end end,
            Some = fun() -> ?assertEqual(N div 2, length(M:select_take(T, Half))) end,
            All = fun() -> ?assertEqual(N div 2, length(M:take_all_objects(T))) end,
            watch({select_take, Type}, Take(Some)),
            watch({take_all_objects, Type}, Take(All)),
            ?assertEqual(0, M:info(T, size)),
            M:delete(T)
        end)
    end).

%% The first call that needs ranks counts the whole table.
uncounted_ranks(_) ->
    Calls = [
        {rank, fun(M, T) -> ?assertEqual(?OBJECTS, M:rank(T, x)) end},
        {nth, fun(M, T) -> ?assertMatch({_, _}, M:nth(T, ?OBJECTS - 10)) end},
        {last, fun(M, T) -> ?assertMatch({_, _}, M:nth(T, 10 - ?OBJECTS)) end}
    ],
    beyond_ets(fun(M) ->
        [
            attempt(
                fun(_) ->
                    T = filled(M, ordered_set),
                    watch({What, ordered_set}, fun() -> Call(M, T) end),
                    M:delete(T)
                end,
                What,
                3
            )
         || {What, Call} <- Calls
        ]
    end).

%% A table on disk has no counts, so objects are passed one by one, in the memtable and in a file.
ranks_on_disk(Config) ->
    File = filename:join(proplists:get_value(priv_dir, Config), "ranks"),
    Count = 250000,
    {ok, T} = dats:open_file(ranks, [{file, File}, {type, ordered_set}]),
    Objects = [{N, {value, N}} || N <- lists:seq(1, Count)],
    Calls = [
        {rank, fun() -> ?assertEqual(Count, dats:rank(T, x)) end},
        {nth, fun() -> ?assertMatch({_, _}, dats:nth(T, Count - 10)) end},
        {last, fun() -> ?assertMatch({_, _}, dats:nth(T, 10 - Count)) end},
        {range_count, fun() -> ?assertEqual(Count, dats:range_count(T, 1, x)) end},
        {take_all_objects, fun() ->
            in_large_process(fun() -> ?assertEqual(Count, length(dats:take_all_objects(T))) end)
        end}
    ],
    [
        attempt(
            fun(_) ->
                ok = dats:insert(T, Objects),
                _ = Flushes andalso (ok = dats:flush(T)),
                watch({What, Flushes}, Call)
            end,
            What,
            3
        )
     || {What, Call} <- Calls, Flushes <- [false, true]
    ],
    ok = dats:close(T).

%% An object of a million words, in and out.
large_objects_are_copied(_) ->
    M = ats_oracle:subject(),
    case M of
        ats_reference -> {skip, "ets copies an object in one piece"};
        _ -> [large_objects_are_copied(M, Type) || Type <- [bag | ?KINDS]]
    end.

large_objects_are_copied(M, Type) ->
    %% Processes need no copy of it.
    Large = lists:seq(1, 500000),
    persistent_term:put(?MODULE, {{key, Large}, {key, small, Large}, [{other, Large}, {key, 1}]}),
    T = M:new(t, [Type, public]),
    Writes = [
        {insert, fun({Object, _, _}) -> M:insert(T, Object) end},
        {insert_new, fun({Object, _, _}) -> not M:insert_new(T, Object) end},
        {insert_list, fun({_, _, Objects}) -> M:insert(T, Objects) end},
        {delete_object, fun({Object, _, _}) -> M:delete_object(T, Object) end},
        {insert, fun({_, Object, _}) -> M:insert(T, Object) end}
    ],
    [
        watch_briefly({What, Type}, fun() ->
            in_large_process(fun() -> ?assert(Write(persistent_term:get(?MODULE))) end)
        end)
     || {What, Write} <- Writes
    ],
    %% The answer is not compared as a whole, which would take long by itself.
    Reads = [
        {lookup, fun() -> element(2, hd(M:lookup(T, other))) end},
        {lookup, fun() -> element(3, lists:last(M:lookup(T, key))) end},
        {lookup_element, fun() -> one(M:lookup_element(T, other, 2)) end},
        {lookup_elements, fun() -> one(one(M:lookup_elements(T, other, [2]))) end}
    ],
    [
        watch_briefly({What, Type}, fun() ->
            in_large_process(fun() -> ?assertEqual(500000, length(Read())) end)
        end)
     || {What, Read} <- Reads
    ],
    M:delete(T),
    persistent_term:erase(?MODULE).

%% Large parts are in the objects, or in the call, or in both.
large_objects_are_changed(_) ->
    beyond_ets(fun(M) -> for_each(fun(Type) -> large_objects_are_changed(M, Type) end) end).

large_objects_are_changed(M, Type) ->
    Large = lists:seq(1, 500000),
    persistent_term:put(?MODULE, {{key, Large, 0}, [{3, N} || N <- Large]}),
    T = M:new(t, [Type, public]),
    Small = fun() -> M:insert(T, {key, small, 0}) end,
    Filled = fun() -> M:insert(T, element(1, persistent_term:get(?MODULE))) end,
    Empty = fun() -> M:delete_all_objects(T) end,
    Default = {other, small, 0},
    Changes = [
        {update_element, Small, fun(Object, _) ->
            M:update_element(T, key, {2, element(2, Object)})
        end},
        {update_element, Filled, fun(_, _) -> M:update_element(T, key, {3, new}) end},
        {update_element, Empty, fun(Object, _) -> M:update_element(T, key, {3, new}, Object) end},
        {update_elements, Small, fun(_, List) -> M:update_element(T, key, List) end},
        {update_counter, Filled, fun(_, _) -> M:update_counter(T, key, {3, 1}) =:= 1 end},
        {update_counter, Empty, fun(Object, _) ->
            M:update_counter(T, key, {3, 1}, Object) =:= 1
        end},
        {update_counters, Filled, fun(_, _) ->
            M:update_counter(T, key, [{3, 1}, {3, 2}]) =:= [1, 3]
        end},
        {update_counters, Empty, fun(_, List) ->
            500000 =:= length(M:update_counter(T, key, List, Default))
        end},
        {merge, Filled, fun(_, _) -> M:merge(T, key, 2, {3, sum}) =:= 2 end},
        {merge, Empty, fun(Object, _) -> M:merge(T, key, 2, {3, sum}, Object) =:= 2 end},
        {take, Filled, fun(Object, _) -> is_alike(Object, M:take(T, key)) end},
        {take_first, Filled, fun(Object, _) -> is_alike(Object, M:take_first(T)) end},
        {take_last, Filled, fun(Object, _) -> is_alike(Object, M:take_last(T)) end}
    ],
    [
        watch_briefly(
            {What, Type},
            Before,
            fun(true) ->
                in_large_process(fun() ->
                    {Object, List} = persistent_term:get(?MODULE),
                    ?assert(Change(Object, List))
                end)
            end,
            fun(true) -> true end
        )
     || {What, Before, Change} <- Changes
    ],
    M:delete(T),
    persistent_term:erase(?MODULE).

%% The objects are not compared as a whole, which would take long by itself.
is_alike({Key, [A, B | _], Value}, [{Key, [A, B | _], Value}]) -> true.

%% The value comes in a list from a bag, or with other elements.
one([Value]) -> Value;
one(Value) -> Value.

%% Both ways round: a large operand, and a large value in the table.
large_values_are_merged(_) ->
    beyond_ets(fun(M) ->
        %% Processes need no copies of persistent terms.
        persistent_term:put(?MODULE, merges()),
        try
            [
                attempt(fun(_) -> large_values_are_merged(M, Kind) end, Kind, 3)
             || {Kind, _, _} <- persistent_term:get(?MODULE)
            ]
        after
            persistent_term:erase(?MODULE)
        end
    end).

large_values_are_merged(M, Kind) ->
    T = M:new(t, [ordered_set, public]),
    watch({merge, Kind}, fun() ->
        in_large_process(fun() ->
            {Kind, Merge, Values} = lists:keyfind(Kind, 1, persistent_term:get(?MODULE)),
            lists:foreach(fun(V) -> M:merge(T, key, V, {2, Merge}) end, Values)
        end)
    end),
    M:delete(T).

merges() ->
    Numbers = lists:seq(1, 200000),
    Map = maps:from_list([{N, N} || N <- Numbers]),
    Bytes = binary:copy(<<"bytes">>, 2000000),
    [
        {lists, append, [[x], Numbers, [y]]},
        {binaries, append, [<<"x">>, Bytes, <<"y">>]},
        {sets, union, [[0], Numbers, [-1]]},
        {maps, union, [#{x => y}, Map, #{y => z}]},
        {both_sets, intersection, [Numbers, [0 | Numbers], [7]]},
        {both_maps, intersection, [Map, Map#{x => y}, #{1 => z}]},
        {pruned_sets, {prune, union}, [[], Numbers, []]},
        {timestamps, {last, 1}, [{Numbers}, {Numbers}]},
        {numbers, statistics, [1 bsl 4000000, -(1 bsl 4000000)]},
        {many, {vector, [sum || _ <- Numbers]}, [list_to_tuple(Numbers), list_to_tuple(Numbers)]},
        {greatest, max, [[0], Numbers, [2], Numbers]},
        {least, min, [Map#{0 => 0}, Map]},
        {united_vectors, {vector, [union, sum]}, [{#{x => y}, 1}, {Map, 2}, {#{}, 3}]},
        {appended_vectors, {vector, [append, max]}, [{[x], Map}, {Numbers, Map}, {[y], Map}]}
    ].

%% Neighbours of a large value in the table can be written while it is merged with another one.
nobody_waits_for_large_merges(_) ->
    Set = [{N, <<"name">>} || N <- lists:seq(1, 200000)],
    beyond_ets(fun(M) ->
        for_each(fun(Type) ->
            T = M:new(t, [Type, public]),
            M:insert(T, [{N, N} || N <- lists:seq(1, 100)]),
            M:insert(T, {50, Set}),
            Stop = atomics:new(1, []),
            Write = fun() -> [M:insert(T, {N, x}) || N <- lists:seq(1, 100), N =/= 50] end,
            [Merge, Longest] = ats_test_lib:parallel([
                fun() ->
                    {Us, _} = timer:tc(fun() -> M:merge(T, 50, [{0, zero}], union) end),
                    atomics:put(Stop, 1, 1),
                    Us
                end,
                fun() -> longest_gap(Write, Stop) end
            ]),
            ct:pal("~p: a merge of ~b us, longest 99 inserts meanwhile ~b us", [
                Type, Merge, Longest
            ]),
            ?assertEqual([], [Longest || Longest > 1000 * ?LIMIT_MS]),
            M:delete(T)
        end)
    end).

beyond_ets(Test) ->
    case ats_oracle:subject() of
        ats_reference -> {skip, "ets has no such functions"};
        M -> Test(M)
    end.

%% A reader of a table is not held up by a writer that inserts long lists into it.
readers_do_not_wait(_) ->
    M = ats_oracle:subject(),
    Objects = [{N, N} || N <- lists:seq(1, 100000)],
    for_each(fun(Type) ->
        T = M:new(t, [Type, public]),
        M:insert(T, Objects),
        Stop = atomics:new(1, []),
        [_ | Longest] = ats_test_lib:parallel([
            fun() ->
                [M:insert(T, Objects) || _ <- lists:seq(1, 10)],
                atomics:put(Stop, 1, 1)
            end,
            fun() -> longest_gap(fun() -> M:lookup(T, rand:uniform(100000)) end, Stop) end
        ]),
        ct:pal("~p: longest lookup beside list inserts: ~b us", [Type, lists:max(Longest)]),
        case M of
            ats_reference -> ok;
            _ -> ?assert(lists:max(Longest) < 400000)
        end,
        M:delete(T)
    end).

%% ----- bags with many objects of one key -----

%% Changes of one object take no longer if its key has many others, and calls that change or read
%% all of them work in slices or elsewhere: a scheduler is never kept for more than a moment. In
%% `ets' each of these takes time in proportion to the number of objects.

%% Changes of an object do not yield, so the time of a call is the time it keeps a scheduler. A few
%% calls may be interrupted by other work of the machine.
one_large_key_is_changed(_) ->
    N = objects_of_one_key(),
    Changes = [
        {delete_object, fun(M, T, V) -> M:delete_object(T, {key, V}) end},
        {insert, fun(M, T, V) -> M:insert(T, {key, V}) end},
        {insert_new, fun(M, T, V) -> M:insert_new(T, {key, V}) end},
        {insert_list, fun(M, T, V) -> M:insert(T, [{key, -V}, {other, V}, {key, {V}}]) end},
        {delete_object_of_list, fun(M, T, V) -> M:delete_object(T, {key, {V}}) end},
        {member, fun(M, T, _) -> M:member(T, key) end}
    ],
    for_each_large_key(fun(M, T, Type) ->
        Values = lists:seq(1, N, N div 1000),
        [
            begin
                Times = lists:sort([element(1, timer:tc(Change, [M, T, V])) || V <- Values]),
                Usual = lists:nth(9 * length(Times) div 10, Times),
                ct:pal("~p: 90 % take less than ~b us, one ~b us", [
                    {What, Type}, Usual, lists:last(Times)
                ]),
                ?assert(Usual < 1000 * ?SHORT_SCHEDULE_MS)
            end
         || {What, Change} <- Changes
        ],
        ?assertEqual(N + length(Values), length(M:lookup(T, key)))
    end).

%% Changing any of many objects takes hardly longer than changing one of a few.
one_large_key_costs_no_more(_) ->
    case ats_oracle:subject() of
        ats_reference -> {skip, "ets looks at all objects"};
        M -> lists:foreach(fun(Type) -> costs_no_more(M, Type) end, [bag, duplicate_bag])
    end.

costs_no_more(M, Type) ->
    N = objects_of_one_key(),
    T = M:new(large_key, [Type, public]),
    insert_values(M, T, N div 60),
    Few = fastest_changes(M, T, N div 60),
    insert_values(M, T, N),
    Many = fastest_changes(M, T, N),
    ct:pal("~p: 1000 changes with ~b objects ~b us, with ~b ~b us", [
        Type, N div 60, Few, N, Many
    ]),
    ?assert(Many < 10 * Few),
    M:delete(T).

fastest_changes(M, T, N) ->
    Change = fun() ->
        V = rand:uniform(N),
        M:delete_object(T, {key, V}),
        M:insert(T, {key, V})
    end,
    Changes = fun() -> [Change() || _ <- lists:seq(1, 500)] end,
    lists:min([element(1, timer:tc(Changes)) || _ <- lists:seq(1, 5)]).

%% The lists are garbage of a process that has room for them from the beginning.
one_large_key_is_read(_) ->
    Reads = [
        {lookup, fun(M, T) -> M:lookup(T, key) end},
        {lookup_element, fun(M, T) -> M:lookup_element(T, key, 2) end},
        {first_lookup, fun(M, T) -> element(2, M:first_lookup(T)) end},
        {tab2list, fun(M, T) -> M:tab2list(T) end},
        {foldl, fun(M, T) -> M:foldl(fun(O, Acc) -> [O | Acc] end, [], T) end},
        {slot, fun(M, T) -> all_slots(M, T, 0) end}
    ],
    N = objects_of_one_key(),
    for_each_large_key(fun(M, T, Type) ->
        [
            watch_briefly({What, Type}, fun() ->
                in_large_process(fun() -> ?assertEqual(N, length(Read(M, T))) end)
            end)
         || {What, Read} <- Reads
        ]
    end).

for_each_large_key(Fun) ->
    M = ats_oracle:subject(),
    lists:foreach(
        fun(Type) ->
            T = large_key(M, Type),
            Fun(M, T, Type),
            M:delete(T)
        end,
        [bag, duplicate_bag]
    ).

all_slots(M, T, I) ->
    case M:slot(T, I) of
        '$end_of_table' -> [];
        [] -> all_slots(M, T, I + 1);
        Objects -> Objects ++ all_slots(M, T, I + 1)
    end.

one_large_key_goes(_) ->
    Ways = [
        {take, fun(M, T) -> in_large_process(fun() -> length(M:take(T, key)) end) end},
        {delete, fun(M, T) -> M:delete(T, key) end},
        {delete_all_objects, fun(M, T) -> M:delete_all_objects(T) end},
        {delete_table, fun(M, T) -> M:delete(T) end},
        {delete_after_list, fun(M, T) ->
            M:insert(T, [{key, {more, N}} || N <- lists:seq(1, 5000)]),
            M:delete(T, key)
        end}
    ],
    M = ats_oracle:subject(),
    lists:foreach(
        fun({What, Go, Type}) ->
            watch_briefly(
                {What, Type},
                fun() -> large_key(M, Type) end,
                fun(T) ->
                    Go(M, T),
                    %% Freeing goes on behind the scenes.
                    timer:sleep(200)
                end,
                fun(T) -> is_empty(M, T) orelse error({left, M:info(T, size)}) end
            )
        end,
        [{What, Go, Type} || {What, Go} <- Ways, Type <- [bag, duplicate_bag]]
    ).

is_empty(M, T) ->
    case M:info(T, size) of
        undefined -> true;
        Size -> Size =:= 0 andalso M:lookup(T, key) =:= [] andalso M:delete(T)
    end.

objects_of_one_key() ->
    list_to_integer(os:getenv("ATS_LARGE_KEY_OBJECTS", ?OBJECTS_OF_ONE_KEY)).

large_key(M, Type) ->
    T = M:new(large_key, [Type, public]),
    insert_values(M, T, objects_of_one_key()),
    T.

insert_values(_, _, 0) ->
    ok;
insert_values(M, T, N) ->
    true = M:insert(T, {key, N}),
    insert_values(M, T, N - 1).

%% Fails if the function kept a scheduler for more than a moment each time it was tried, and for
%% longer than something harmless did then. It must be possible to repeat it.
watch_briefly(What, Fun) ->
    watch_briefly(What, fun() -> ok end, fun(ok) -> Fun() end, fun(ok) -> true end).

%% The same, with work before and behind that is not watched.
watch_briefly(What, Before, Fun, Behind) ->
    Try = fun(_) ->
        Prepared = Before(),
        Long = longest_first(measure(What, fun() -> Fun(Prepared) end, ?SHORT_SCHEDULE_MS)),
        true = Behind(Prepared),
        Limit = short_limit_ms(Long),
        ?assertEqual([], [E || {_, Ms, _} = E <- Long, Ms > Limit])
    end,
    attempt(Try, What, ?SHORT_ATTEMPTS).

longest_first(Events) -> lists:reverse(lists:keysort(2, Events)).

%% Looks at the effect of other work of the machine only where it matters.
short_limit_ms([{_, Ms, _} | _]) when Ms > ?SHORT_LIMIT_MS ->
    End = erlang:monotonic_time(millisecond) + 100,
    Harmless = fun() -> ats_test_lib:parallel([fun() -> be_harmless(End) end]) end,
    case longest_first(measure(harmless, Harmless, ?SHORT_SCHEDULE_MS)) of
        [{_, Noise, _} | _] -> max(?SHORT_LIMIT_MS, Noise);
        [] -> ?SHORT_LIMIT_MS
    end;
short_limit_ms(_) ->
    ?SHORT_LIMIT_MS.

be_harmless(End) ->
    _ = lists:seq(1, 100),
    erlang:monotonic_time(millisecond) > End orelse be_harmless(End).

%% ----- measuring -----

%% Fails if a process that is busy with the function kept a scheduler for long.
watch(What, Fun) ->
    ?assertEqual([], [Event || {_, Ms, _} = Event <- measure(What, Fun), Ms > ?LIMIT_MS]).

measure(What, Fun) ->
    measure(What, Fun, ?LONG_SCHEDULE_MS).

%% Runs a function while tickers on all schedulers look at the clock. Prints the results, and
%% returns the processes other than the tickers that kept a scheduler, how long, and where.
measure(What, Fun, LongMs) ->
    erlang:garbage_collect(),
    {Watcher, Mon} = spawn_opt(fun() -> collect_long([]) end, [monitor, {priority, high}]),
    Stop = atomics:new(1, []),
    Old = erlang:system_monitor(Watcher, [{long_schedule, LongMs}]),
    Test = self(),
    Tickers = [
        spawn_monitor(fun() ->
            Test ! {self(), ready},
            exit({gap, longest_gap(fun() -> ok end, Stop)})
        end)
     || _ <- lists:seq(1, erlang:system_info(schedulers_online))
    ],
    [
        receive
            {Ticker, ready} -> ok
        end
     || {Ticker, _} <- Tickers
    ],
    Start = erlang:monotonic_time(millisecond),
    try
        Fun(),
        %% The machine reports a process when it leaves its scheduler.
        timer:sleep(1)
    after
        atomics:put(Stop, 1, 1),
        erlang:system_monitor(Old)
    end,
    TookMs = erlang:monotonic_time(millisecond) - Start - 1,
    Gaps = [
        receive
            {'DOWN', TickerMon, process, _, {gap, Us}} -> Us
        end
     || {_, TickerMon} <- Tickers
    ],
    Watcher ! {report, self()},
    Long =
        receive
            {Watcher, Events} -> Events
        end,
    erlang:demonitor(Mon, [flush]),
    Ours = [E || {Pid, _, _} = E <- Long, not lists:keymember(Pid, 1, Tickers)],
    Longest = lists:last([none | lists:keysort(2, Ours)]),
    ct:pal("~p: took ~b ms, longest gap of another process ~.1f ms, longest schedule ~0p", [
        What, TookMs, lists:max(Gaps) / 1000, Longest
    ]),
    Ours.

collect_long(Events) ->
    receive
        {monitor, Pid, long_schedule, Info} when is_pid(Pid) ->
            Ms = proplists:get_value(timeout, Info),
            Where = proplists:get_value(in, Info),
            collect_long([{Pid, Ms, Where} | Events]);
        {report, To} ->
            To ! {self(), lists:reverse(Events)}
    end.

%% The longest time in microseconds from one call of the function to the next: that of the
%% function itself, and that without a scheduler.
longest_gap(Fun, Stop) ->
    longest_gap(Fun, Stop, erlang:monotonic_time(microsecond), 0).

longest_gap(Fun, Stop, Last, Longest) ->
    Fun(),
    Now = erlang:monotonic_time(microsecond),
    case atomics:get(Stop, 1) of
        0 -> longest_gap(Fun, Stop, Now, max(Now - Last, Longest));
        1 -> max(Now - Last, Longest)
    end.

in_large_process(Fun) ->
    {Pid, Mon} = spawn_opt(fun() -> exit({done, Fun()}) end, [
        monitor, {min_heap_size, 20 * ?OBJECTS}
    ]),
    receive
        {'DOWN', Mon, process, Pid, {done, Result}} -> Result;
        {'DOWN', Mon, process, Pid, Reason} -> error(Reason)
    end.

filled(M, Type) ->
    T = M:new(large, [Type, public]),
    lists:foreach(fun(N) -> M:insert(T, {N, {value, N}}) end, lists:seq(1, ?OBJECTS)),
    T.

%% A machine with other work to do can make any call look long, but hardly three times.
for_each(Fun) ->
    lists:foreach(fun(Type) -> attempt(Fun, Type, 3) end, ?KINDS).

attempt(Fun, Type, 1) ->
    Fun(Type);
attempt(Fun, Type, Tries) ->
    try
        Fun(Type)
    catch
        error:{assertEqual, _} = Reason ->
            ct:pal("~p: once more after ~0p", [Type, Reason]),
            attempt(Fun, Type, Tries - 1)
    end.

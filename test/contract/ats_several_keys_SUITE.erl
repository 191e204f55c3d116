%% Functions of several keys answer as those of one key do, called one after the other.
-module(ats_several_keys_SUITE).

-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0]).
-export([
    one_after_the_other/1,
    long_lists/1,
    large_objects_and_bags/1,
    keys_of_all_types/1,
    counters_are_taken_with_their_last_value/1,
    snapshots/1,
    fixed_tables/1,
    a_name_is_found_once/1,
    rights/1,
    no_lists/1,
    nothing_is_taken_twice/1,
    tables_that_end/1,
    others_run_meanwhile/1
]).

-define(TYPES, [set, ordered_set, bag, duplicate_bag, ordered_bag, ordered_duplicate_bag]).
-define(NAME, ats_test_several).

suite() -> [{timetrap, {minutes, 10}}].

all() ->
    [
        one_after_the_other,
        long_lists,
        large_objects_and_bags,
        keys_of_all_types,
        counters_are_taken_with_their_last_value,
        snapshots,
        fixed_tables,
        a_name_is_found_once,
        rights,
        no_lists,
        nothing_is_taken_twice,
        tables_that_end,
        others_run_meanwhile
    ].

%% Compares the three functions with loops, on two tables with the same objects.
compare(Type, Options, Objects, Keys) ->
    [One, Many] = Tables = [ats:new(?NAME, [Type | Options]) || _ <- [one, many]],
    [true = ats:insert(T, Objects) || T <- Tables],
    Looked = [ats:lookup(One, Key) || Key <- Keys],
    ?assertEqual(Looked, ats:lookup_many(Many, Keys)),
    {Taken, Deleted} = lists:split(length(Keys) div 2, Keys),
    ?assertEqual([ats:take(One, Key) || Key <- Taken], ats:take_many(Many, Taken)),
    ?assertEqual(content(One), content(Many)),
    [true = ats:delete(One, Key) || Key <- Deleted],
    ?assertEqual(true, ats:delete_many(Many, Deleted)),
    ?assertEqual(content(One), content(Many)),
    ?assertEqual(ats:info(One, size), ats:info(Many, size)),
    [true = ats:delete(T) || T <- Tables],
    ok.

%% Sorts the objects by key, which keeps the order of those of one key: tables without order have
%% orders of their own.
content(T) -> lists:keysort(ats:info(T, keypos), ats:tab2list(T)).

%% Keys come once, twice, or are not there. Lists end within a group of keys that are fetched
%% together, and at its end.
one_after_the_other(_) ->
    Objects = [{N rem 60, N} || N <- lists:seq(1, 100)],
    [
        compare(Type, Options, Objects, [N * 7 rem 90 || N <- lists:seq(1, Count)])
     || Type <- ?TYPES,
        Options <- [[], [compressed], [public, {write_concurrency, true}]],
        Count <- [0, 1, 2, 15, 16, 17, 31, 32, 33, 100]
    ],
    ok.

%% Each list takes many native calls.
long_lists(_) ->
    Objects = [{{key, N}, N} || N <- lists:seq(1, 5000)],
    [
        compare(Type, [], Objects, [{key, N * 7919 rem 6000} || N <- lists:seq(1, Count)])
     || Type <- ?TYPES, Count <- [255, 256, 257, 511, 512, 513, 5000]
    ],
    ok.

%% Objects that no call copies beside others, and keys of more objects than a normal scheduler
%% reads.
large_objects_and_bags(_) ->
    Large = lists:seq(1, 20000),
    Small = [{N, small} || N <- lists:seq(1, 40)],
    Keys = lists:seq(0, 41),
    [
        compare(Type, Options, Small ++ [{N, Large} || N <- At], Keys)
     || Type <- ?TYPES, Options <- [[], [compressed]], At <- [[1], [2], [40], [7, 8, 9, 20]]
    ],
    [
        compare(Type, [], Small ++ [{7, N} || N <- lists:seq(1, Count)], [1, 7, 7, 2, 7, 3])
     || Type <- ?TYPES, Count <- [100, 999, 1001, 30000]
    ],
    %% Keys that are large themselves.
    [
        compare(Type, [], [{{Large, N}, N} || N <- [1, 2, 3, 4]], [{Large, N} || N <- [3, 9, 1, 4]])
     || Type <- ?TYPES
    ],
    ok.

keys_of_all_types(_) ->
    Keys = [ats_term_gen:realize(R) || R <- ats_term_gen:one_of_each()],
    [
        compare(Type, [{keypos, 2}], [{[K], K} || K <- Keys], Keys ++ lists:reverse(Keys))
     || Type <- ?TYPES
    ],
    %% An ordered table takes 1 and 1.0 for one key.
    T = ats:new(?NAME, [ordered_set]),
    true = ats:insert(T, [{1, int}, {2.0, float}]),
    ?assertEqual([[{1, int}], [{2.0, float}]], ats:lookup_many(T, [1.0, 2])),
    true = ats:delete_many(T, [1.0, 2]),
    ?assertEqual([], ats:tab2list(T)).

counters_are_taken_with_their_last_value(_) ->
    [
        begin
            T = ats:new(?NAME, [Type, public]),
            true = ats:insert(T, [{N, 0} || N <- lists:seq(1, 100)]),
            Count = fun() ->
                lists:sum([1 || _ <- lists:seq(1, 30000),
                                ats:update_counter(T, rand:uniform(100), 1, {new, 0}) > 0])
            end,
            Take = fun() ->
                Keys = lists:seq(1, 100),
                lists:sum([N || _ <- lists:seq(1, 200), [{_, N}] <- ats:take_many(T, Keys)])
            end,
            [Counted, Taken] = ats_test_lib:parallel([Count, Take]),
            Left = lists:sum([N || {_, N} <- ats:tab2list(T)]),
            ?assertEqual(Counted, Taken + Left),
            true = ats:delete(T)
        end
     || Type <- [set, ordered_set]
    ],
    ok.

%% The objects of a snapshot have one moment. Nobody changes it.
snapshots(_) ->
    [
        begin
            T = ats:new(?NAME, [Type]),
            true = ats:insert(T, [{N, before} || N <- lists:seq(1, 1000)]),
            Snapshot = ats:snapshot(T),
            true = ats:insert(T, [{N, later} || N <- lists:seq(500, 1500)]),
            true = ats:delete_many(T, lists:seq(1, 100)),
            Keys = lists:seq(1, 1500),
            Expected = [[{N, before} || N =< 1000] || N <- Keys],
            ?assertEqual(Expected, ats:lookup_many(Snapshot, Keys)),
            ?assertError(badarg, ats:take_many(Snapshot, [1])),
            ?assertError(badarg, ats:delete_many(Snapshot, [1])),
            true = ats:release(Snapshot),
            ?assertError(badarg, ats:lookup_many(Snapshot, [1])),
            true = ats:delete(T)
        end
     || Type <- [set, ordered_set, bag, ordered_bag]
    ],
    ok.

%% A walk of a fixed table goes on behind keys that were removed.
fixed_tables(_) ->
    [
        begin
            T = ats:new(?NAME, [Type]),
            true = ats:insert(T, [{N, N} || N <- lists:seq(1, 100)]),
            true = ats:safe_fixtable(T, true),
            First = ats:first(T),
            true = ats:delete_many(T, lists:seq(1, 100) -- [50]),
            _ = ats:take_many(T, [1, 2, 3]),
            Rest = walked(T, First, []),
            ?assertEqual([50], lists:delete(First, Rest) ++ [50 || First =:= 50]),
            true = ats:safe_fixtable(T, false),
            ?assertEqual([{50, 50}], ats:tab2list(T)),
            true = ats:delete(T)
        end
     || Type <- ?TYPES
    ],
    ok.

walked(_, '$end_of_table', Keys) -> lists:reverse(Keys);
walked(T, Key, Keys) -> walked(T, ats:next(T, Key), [Key | Keys]).

%% The table is renamed, and another one gets its name, while a process deletes.
a_name_is_found_once(_) ->
    Objects = [{N, old} || N <- lists:seq(1, 100000)],
    Keys = lists:seq(1, 100000),
    [
        begin
            ?NAME = ats:new(?NAME, [named_table, public, Type]),
            true = ats:insert(?NAME, Objects),
            Id = ats:whereis(?NAME),
            Rename = fun() ->
                ok = ats_test_lib:until(fun() -> ats:info(Id, size) < 100000 end, 60000),
                ats_test_moved = ats:rename(?NAME, ats_test_moved),
                ?NAME = ats:new(?NAME, [named_table, public, Type]),
                true = ats:insert(?NAME, {1, new}),
                ok = ats_test_lib:until(fun() -> ats:info(Id, size) =:= 0 end, 60000),
                ?assertEqual([{1, new}], ats:tab2list(?NAME))
            end,
            Remove = fun() -> _ = ats:Function(?NAME, Keys) end,
            [ok, _] = ats_test_lib:parallel([Rename, Remove]),
            true = ats:delete(Id)
        end
     || Type <- [set, ordered_set], Function <- [take_many, delete_many]
    ],
    ok.

rights(_) ->
    Denied = #{1 => "the table identifier refers to an ATS table with insufficient access rights"},
    Reads = [lookup_many],
    Writes = [take_many, delete_many],
    Self = self(),
    Owner = spawn_link(fun() ->
        Self ! [ats:new(?NAME, [Protection]) || Protection <- [private, protected]],
        receive stop -> ok end
    end),
    [Private, Protected] = receive Tables -> Tables end,
    [
        ?assertEqual({badarg, Denied}, blame(Function, [T, Keys]))
     || {T, Functions} <- [{Private, Reads ++ Writes}, {Protected, Writes}],
        Function <- Functions,
        Keys <- [[], [1], x, [1 | 2]]
    ],
    ?assertEqual([[]], ats:lookup_many(Protected, [1])),
    unlink(Owner),
    ats_test_lib:kill(Owner).

%% Nothing is removed for a list that is none, however long it is.
no_lists(_) ->
    T = ats:new(?NAME, []),
    Objects = [{N, N} || N <- lists:seq(1, 1000)],
    true = ats:insert(T, Objects),
    [
        ?assertEqual({badarg, #{2 => "not a list of keys"}}, blame(Function, [T, Keys]))
     || Function <- [lookup_many, take_many, delete_many],
        Keys <- [1, {1}, #{}, [1 | 2], lists:seq(1, 1000) ++ 1001]
    ],
    ?assertEqual(Objects, lists:sort(ats:tab2list(T))),
    [
        ?assertMatch({badarg, #{1 := _}}, blame(Function, [Wrong, Keys]))
     || Function <- [lookup_many, take_many, delete_many],
        Wrong <- [ats_test_none, make_ref(), "table", 7],
        Keys <- [[], [1], x]
    ].

blame(Function, Arguments) ->
    {fail, error, Reason, Stack} = ats_oracle:call(ats, Function, Arguments),
    Texts = ats_oracle:blame(Stack),
    {Reason, maps:map(fun(_, Text) -> unicode:characters_to_list(Text) end, Texts)}.

nothing_is_taken_twice(_) ->
    [
        begin
            T = ats:new(?NAME, [Type, public]),
            true = ats:insert(T, [{N, N} || N <- lists:seq(1, 20000)]),
            Take = fun() -> lists:append(ats:take_many(T, lists:seq(1, 20000))) end,
            Taken = ats_test_lib:parallel([Take, Take, Take]),
            ?assertEqual([{N, N} || N <- lists:seq(1, 20000)], lists:sort(lists:append(Taken))),
            ?assertEqual([], ats:tab2list(T)),
            true = ats:delete(T)
        end
     || Type <- ?TYPES
    ],
    ok.

%% A table that is deleted, or whose owner ends, in the middle of a call ends it with `badarg'.
tables_that_end(_) ->
    Keys = lists:seq(1, 200000),
    [
        begin
            T = ats:new(?NAME, [public]),
            {Pid, Monitor} = spawn_monitor(fun() -> again(fun() -> ats:Function(T, Keys) end) end),
            timer:sleep(30),
            true = ats:delete(T),
            receive
                {'DOWN', Monitor, process, Pid, {badarg, [{ats, Function, [T, Keys], _} | _]}} -> ok
            end
        end
     || Function <- [lookup_many, take_many, delete_many]
    ],
    ok.

again(Do) ->
    _ = Do(),
    again(Do).

%% A process that looks up many keys lets others run.
others_run_meanwhile(_) ->
    T = ats:new(?NAME, [public]),
    true = ats:insert(T, [{N, lists:seq(1, 20)} || N <- lists:seq(1, 100000)]),
    Keys = [N rem 100000 || N <- lists:seq(1, 300000)],
    Looking = [spawn_monitor(fun() -> _ = ats:lookup_many(T, Keys) end)
               || _ <- lists:seq(1, erlang:system_info(schedulers_online))],
    Others = [spawn_monitor(fun() -> ok end) || _ <- lists:seq(1, 100)],
    [receive {'DOWN', M, process, Pid, normal} -> ok end || {Pid, M} <- Others],
    ?assert(lists:any(fun({Pid, _}) -> is_process_alive(Pid) end, Looking)),
    [receive {'DOWN', M, process, Pid, normal} -> ok end || {Pid, M} <- Looking],
    ok.

%% Programs that follow tables on disk: dats:follow/2, and the functions beside it.
%%
%% The process that follows is the same as for tables in memory, so its
%% dealings with the receiver are tested there; this suite is about moments of tables on disk.
-module(ats_disk_follow_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-import(ats_follow_lib, [followers/0, looked/0, snapshots/1, length_of/1]).
-import(ats_follow_lib, [empty/0, objects/1, next/3, batch/2]).
-import(ats_follow_lib, [until_equal/4, until_equal/5]).
-import(ats_follow_lib, [no_more/1, ended/2]).
-import(ats_follow_lib, [writers/1, stop/1, are_whole/1, is_set/1]).

-export([all/0, suite/0, init_per_suite/1, end_per_suite/1]).
-export([init_per_testcase/2, end_per_testcase/2]).
-export([copies_beside_writers/1, first_moments/1, batches/1, few_changes_of_many_objects/1,
         idle_tables/1, options/1, batches_of_many_changes/1, slow_receivers/1, lost_changes/1,
         ends_of_tables/1, ends_of_receivers/1, damaged/1, expired/1, expired_seldom/1,
         merged_by_a_module/1, invalid/1]).

-define(TYPES, [set, ordered_set, bag, duplicate_bag, ordered_bag, ordered_duplicate_bag]).

suite() -> [{timetrap, {minutes, 10}}].

all() ->
    [copies_beside_writers, first_moments, batches, few_changes_of_many_objects, idle_tables,
     options, batches_of_many_changes, slow_receivers, lost_changes, ends_of_tables,
     ends_of_receivers, damaged, expired, expired_seldom, merged_by_a_module, invalid].

init_per_suite(Config) ->
    {ok, Started} = application:ensure_all_started(ats),
    [{started, Started} | Config].

end_per_suite(Config) ->
    [application:stop(Application) || Application <- ?config(started, Config)].

init_per_testcase(Case, Config) ->
    ats_disk_lib:begin_case(Case, Config).

%% Nothing is left of any case.
end_per_testcase(_Case, _Config) ->
    {ok, _} = application:ensure_all_started(ats),
    ats_disk_lib:end_case(),
    ats_test_lib:until(fun() -> followers() =:= [] end, 10000).

open(Config, Type) -> open(Config, Type, []).

open(Config, Type, Options) ->
    {dats, ats_disk_lib:open(Config, Type, [{type, Type} | Options])}.

%% Each batch of two writers makes a state that the table had, while memory is written to files and
%% files are compacted: pairs that are written as one are whole, and in the end the copy equals the
%% table.
copies_beside_writers(Config) ->
    [begin
         {dats, T} = Table = open(Config, Type, [{memory, 1 bsl 17}]),
         ok = dats:insert(T, [{{early, N}, 0} || N <- lists:seq(1, 2500)]),
         {ok, Ref} = dats:follow(T, #{snapshot => true, every => 1}),
         First = next(Ref, 1, empty()),
         Writers = writers(fun(Writer, N) -> ok = change(T, Writer, N) end),
         Told = fun(Seq, Copy) ->
                        Later = next(Ref, Seq, Copy),
                        are_whole(Later),
                        Later
                end,
         Copy = lists:foldl(Told, First, lists:seq(2, 40)),
         ok = stop(Writers),
         _ = until_equal(Ref, Table, 41, Copy, fun ats_follow_lib:are_whole/1),
         ok = dats:unfollow(Ref),
         ?assertEqual(0, snapshots(Table)),
         ok = dats:close(T)
     end || Type <- ?TYPES],
    ok.

change(T, Writer, N) ->
    K = rand:uniform(50),
    case rand:uniform(12) of
        1 -> dats:delete(T, {Writer, single, K});
        2 -> dats:delete_object(T, {{early, rand:uniform(2500)}, 0});
        3 -> dats:insert(T, [{{Writer, many, M}, N, <<0:4000>>} || M <- lists:seq(K, K + 20)]);
        4 when N rem 200 =:= 0 -> dats:delete_all_objects(T);
        4 when N rem 40 =:= 0 -> dats:flush(T);
        4 when N rem 100 =:= 1 -> dats:compact(T);
        X when X > 8 -> dats:insert(T, [{{Writer, left, K}, N}, {{Writer, right, K}, N}]);
        _ -> dats:insert(T, {{Writer, single, K}, N, [K]})
    end.

%% All objects of the first moment are the first batch, also those that are in files.
first_moments(Config) ->
    [begin
         {dats, T} = open(Config, Type, [{keypos, 2}]),
         Objects = [{N, N} || N <- lists:seq(1, Number)],
         ok = dats:insert(T, Objects),
         ok = dats:flush(T),
         {ok, Ref} = dats:follow(T, #{snapshot => true, every => 5}),
         ?assertEqual(Objects, objects(next(Ref, 1, empty()))),
         no_more(Ref),
         ok = dats:insert(T, {1, new}),
         receive {ats_changes, Ref, 2, Changes} -> ?assertEqual([{insert, {1, new}}], Changes) end,
         ok = dats:unfollow(Ref),
         ok = dats:delete_all_objects(T),
         ok = dats:close(T)
     end || Type <- ?TYPES, Number <- [0, 1000, 1001]],
    ok.

%% Only changes are told; a key that has changed back is none.
batches(Config) ->
    [begin
         {dats, T} = Table = open(Config, Type),
         ok = dats:insert(T, {a, 1}),
         {ok, Ref} = dats:follow(T, #{every => 50}),
         ok = dats:insert(T, {b, 1}),
         receive {ats_changes, Ref, 1, One} -> ?assertEqual([{insert, {b, 1}}], One) end,
         ok = dats:delete(T, b),
         receive {ats_changes, Ref, 2, Two} -> ?assertEqual([{delete, {b, 1}}], Two) end,
         ok = dats:delete_all_objects(T),
         receive {ats_changes, Ref, 3, Three} -> ?assertEqual([{delete, {a, 1}}], Three) end,
         ok = dats:insert(T, [{c, 1}, {c, 2}]),
         Both = case is_set(Type) of
                    true -> [{insert, {c, 2}}];
                    false -> [{insert, {c, 1}}, {insert, {c, 2}}]
                end,
         receive {ats_changes, Ref, 4, Four} -> ?assertEqual(Both, lists:sort(Four)) end,
         ok = dats:insert(T, {c, 3}),
         Fifth = case is_set(Type) of
                     true -> [{change, {c, 2}, {c, 3}}];
                     false -> [{insert, {c, 3}}]
                 end,
         receive {ats_changes, Ref, 5, Five} -> ?assertEqual(Fifth, Five) end,
         %% A file that is written, or written again, is no change.
         ok = dats:flush(T),
         ok = dats:compact(T),
         ok = dats:insert(T, {d, 1}),
         receive {ats_changes, Ref, 6, Six} -> ?assertEqual([{insert, {d, 1}}], Six) end,
         ok = dats:unfollow(Ref),
         ?assertEqual(0, snapshots(Table))
     end || Type <- ?TYPES],
    ok.

%% Each changed key is looked up in two moments, and no other key is. A write looks a key up, too.
few_changes_of_many_objects(Config) ->
    [begin
         {dats, T} = open(Config, Type, [{memory, 1 bsl 24}]),
         ok = dats:insert(T, [{N, 0} || N <- lists:seq(1, 20000)]),
         {ok, Ref} = dats:follow(T, #{every => 5}),
         ok = dats:insert(T, {1, 1}),
         receive {ats_changes, Ref, 1, _} -> ok end,
         Reads = reads(T),
         Write = fun(N) ->
                         ok = dats:insert(T, {N, 1}),
                         receive
                             {ats_changes, Ref, N, Changes} ->
                                 ?assertEqual([{change, {N, 0}, {N, 1}}], Changes)
                         end
                 end,
         lists:foreach(Write, lists:seq(2, 11)),
         ?assertEqual(10 + 20, reads(T) - Reads),
         ok = dats:unfollow(Ref)
     end || Type <- [set, ordered_set]],
    ok.

reads(T) -> maps:get(reads, dats:info(T, stats)).

%% A table that nobody writes to is not read, and no moment of it is made.
idle_tables(Config) ->
    {dats, T} = Table = open(Config, set),
    ok = dats:insert(T, [{N, 0} || N <- lists:seq(1, 5000)]),
    {ok, Ref} = dats:follow(T, #{every => 1, snapshot => true}),
    _ = next(Ref, 1, empty()),
    ats_test_lib:until(fun() -> snapshots(Table) =:= 1 end, 10000),
    [Follower] = followers(),
    Reads = reads(T),
    1 = erlang:trace(Follower, true, [call]),
    Trace = fun(How) ->
                    [1 = erlang:trace_pattern({ats_nif, F, 2}, How, [])
                     || F <- [disk_is_current, hold_disk_snapshot]]
            end,
    _ = Trace(true),
    ?assertEqual([disk_is_current], lists:usort(traced(12))),
    no_more(Ref),
    ?assertEqual(Reads, reads(T)),
    1 = erlang:trace(Follower, false, [call]),
    _ = Trace(false),
    ok = dats:unfollow(Ref).

%% The next native functions that are called.
traced(Number) ->
    [receive {trace, _, call, {ats_nif, Function, _}} -> Function end
     || _ <- lists:seq(1, Number)].

options(Config) ->
    [begin
         {dats, T} = open(Config, Type),
         ok = dats:insert(T, [{N, N} || N <- lists:seq(1, 2000)]),
         Spec = [{{'_', '$1'}, [{'>', '$1', 1990}], ['$_']}],
         {ok, Objects} = dats:follow(T, #{snapshot => true, every => 5, spec => Spec}),
         {ok, Keys} = dats:follow(T, #{snapshot => true, every => 5, spec => Spec, keys => true}),
         ?assertEqual([{N, N} || N <- lists:seq(1991, 2000)], objects(next(Objects, 1, empty()))),
         receive
             {ats_changes, Keys, 1, Told} ->
                 ?assertEqual([{insert, N} || N <- lists:seq(1991, 2000)], lists:sort(Told))
         end,
         ok = dats:insert(T, {0, 1}),
         no_more(Objects),
         ok = dats:insert(T, {0, 3000}),
         receive {ats_changes, Objects, 2, Two} -> ?assertEqual([{insert, {0, 3000}}], Two) end,
         receive {ats_changes, Keys, 2, Second} -> ?assertEqual([{insert, 0}], Second) end,
         ok = dats:delete(T, 0),
         receive {ats_changes, Objects, 3, Three} -> ?assertEqual([{delete, {0, 3000}}], Three) end,
         receive {ats_changes, Keys, 3, Third} -> ?assertEqual([{delete, 0}], Third) end,
         %% References are those of both modules.
         true = ats:unfollow(Objects),
         ok = dats:unfollow(Keys),
         ?assertEqual([], followers())
     end || Type <- ?TYPES],
    ok.

%% Changes of several moments are joined until there are enough, also over files.
batches_of_many_changes(Config) ->
    [begin
         {dats, T} = Table = open(Config, Type),
         ok = dats:insert(T, {a, 1}),
         {ok, Ref} = dats:follow(T, #{every => 1, at_least => 3}),
         ok = dats:insert(T, {b, 1}),
         looked(),
         ok = dats:delete(T, a),
         looked(),
         ok = dats:flush(T),
         ok = dats:insert(T, {a, 1}),
         looked(),
         Reads = reads(T),
         looked(),
         ?assertEqual(Reads, reads(T)),
         ok = dats:compact(T),
         ok = dats:insert(T, {c, 1}),
         looked(),
         ?assertEqual(0, length_of(self())),
         ok = dats:insert(T, {d, 1}),
         ?assertEqual([{insert, {K, 1}} || K <- [b, c, d]], lists:sort(batch(Ref, 1))),
         ok = dats:unfollow(Ref),
         %% Too few changes are told after some time.
         {ok, Within} = dats:follow(T, #{every => 1, at_least => 3, within => 5}),
         ok = dats:delete(T, a),
         ?assertEqual([{delete, {a, 1}}], batch(Within, 1)),
         ok = dats:unfollow(Within),
         ?assertEqual(0, snapshots(Table))
     end || Type <- ?TYPES],
    ok.

%% A receiver that sleeps, or does not ask for more, gets few batches, and the last state.
slow_receivers(Config) ->
    {dats, T} = Table = open(Config, ordered_set, [{memory, 1 bsl 17}]),
    {ok, Ref} = dats:follow(T, #{snapshot => true, every => 1, max_queue => 5}),
    {ok, Asked} = dats:follow(T, #{every => 1, active => 1}),
    Write = fun(Writer) ->
                    fun() ->
                            [ok = dats:insert(T, {{Writer, N rem 500}, N})
                             || N <- lists:seq(1, 5000)]
                    end
            end,
    _ = ats_test_lib:parallel([Write(a), Write(b)]),
    ?assert(length_of(self()) =< 7),
    ?assert(snapshots(Table) =< 2),
    {_, Next} = until_equal(Ref, Table, 1, empty()),
    ?assert(Next < 12),
    receive {ats_changes, Asked, 1, _} -> ok end,
    no_more(Asked),
    true = dats:follow_more(Asked, 1),
    receive
        {ats_changes, Asked, 2, {part, _}} -> ok;
        {ats_changes, Asked, 2, Last} -> ?assert(length(Last) =< 1000)
    end,
    ok = dats:unfollow(Ref),
    ok = dats:unfollow(Asked),
    ?assertNot(dats:follow_more(Asked, true)),
    ?assertEqual(0, length_of(self())).

%% The last told moment ends if it keeps more memory and files than the table allows.
lost_changes(Config) ->
    [begin
         {dats, T} = Table = open(Config, Type, [{memory, 1 bsl 17}, {snapshot_memory, 0}]),
         ok = dats:insert(T, [{N, <<N:4000>>} || N <- lists:seq(1, 1000)]),
         {ok, Ref} = dats:follow(T, #{every => 5, active => 1, snapshot => true}),
         _ = next(Ref, 1, empty()),
         ok = dats:insert(T, [{N, <<0:4000>>} || N <- lists:seq(1, 1000)]),
         ok = dats:compact(T),
         Evicted = fun() -> maps:get(evicted, dats:info(T, snapshots)) > 0 end,
         ats_test_lib:until(Evicted, 10000),
         true = dats:follow_more(Ref, 1),
         ?assertEqual(lost, next(Ref, 2, empty())),
         true = dats:follow_more(Ref, true),
         {_, _} = until_equal(Ref, Table, 3, empty()),
         ok = dats:unfollow(Ref),
         ok = dats:close(T)
     end || Type <- [ordered_set, bag]],
    ok.

ends_of_tables(Config) ->
    [begin
         {dats, T} = open(Config, Type),
         ok = dats:insert(T, {a, 1}),
         {ok, Ref} = dats:follow(T, #{every => 5}),
         {ok, Waits} = dats:follow(T, #{every => 5, active => 1, snapshot => true}),
         [{a, 1}] = objects(next(Waits, 1, empty())),
         ok = dats:close(T),
         ended(Ref, closed),
         ended(Waits, closed),
         ok = dats:unfollow(Ref),
         ?assertNot(dats:follow_more(Ref, 1)),
         %% A table that is opened once more is another one.
         {dats, T} = open(Config, Type),
         {ok, Again} = dats:follow(T, #{every => 300}),
         ok = dats:close(T),
         {dats, T} = open(Config, Type),
         ok = dats:insert(T, {b, 1}),
         ended(Again, closed),
         ok = dats:close(T)
     end || Type <- [set, ordered_bag]],
    %% The table ends with the process that has opened it.
    Self = self(),
    Owner = spawn(fun() ->
                          T = ats_disk_lib:open(Config, owned, []),
                          Self ! {opened, T},
                          receive stop -> ok end
                  end),
    Owned = receive {opened, Opened} -> Opened after 10000 -> error(not_opened) end,
    {ok, OfOwned} = dats:follow(Owned, #{every => 5}),
    ats_test_lib:kill(Owner),
    ended(OfOwned, closed),
    %% The application stops.
    {dats, Last} = open(Config, set),
    {ok, Stopped} = dats:follow(Last, #{every => 5}),
    ok = application:stop(ats),
    ended(Stopped, stopped).

ends_of_receivers(Config) ->
    {dats, T} = Table = open(Config, set),
    Self = self(),
    [begin
         Pid = spawn(fun() ->
                             {ok, _} = dats:follow(T, #{every => 5, snapshot => IsWithSnapshot}),
                             Self ! following,
                             receive stop -> ok end
                     end),
         receive following -> ok after 10000 -> error(not_following) end,
         ?assertEqual(1, length(followers())),
         ats_test_lib:kill(Pid),
         ats_test_lib:until(fun() -> followers() =:= [] andalso snapshots(Table) =:= 0 end, 10000)
     end || IsWithSnapshot <- [true, false]],
    ok.

%% Files that cannot be read end the messages, with the reason that a read answers.
damaged(Config) ->
    {dats, T} = open(Config, ordered_set, [{auto_save, infinity}]),
    ok = dats:insert(T, [{N, <<N:4000>>} || N <- lists:seq(1, 2000)]),
    ok = dats:flush(T),
    ok = dats:close(T),
    Directory = ats_disk_lib:file(Config, ordered_set),
    [Run | _] = filelib:wildcard(filename:join(Directory, "run-*")),
    {ok, File} = file:open(Run, [read, write, raw, binary]),
    {ok, <<Byte>>} = file:pread(File, 5000, 1),
    ok = file:pwrite(File, 5000, <<(Byte bxor 1)>>),
    ok = file:close(File),
    {dats, T} = open(Config, ordered_set, [{repair, false}]),
    {ok, Ref} = dats:follow(T, #{snapshot => true}),
    Why = receive {ats_changes, Ref, ended, Told} -> Told after 20000 -> error(not_told) end,
    ?assertMatch({error, {damaged, Directory, _}}, Why).

%% Objects that expire are deleted.
expired(Config) ->
    [begin
         {dats, T} = Table = open(Config, Type, [{ttl, 60000}]),
         ok = dats:insert(T, [{a, 1}, {b, 1}]),
         ok = dats:insert(T, {stays, 1}, #{ttl => infinity}),
         {ok, Ref} = dats:follow(T, #{snapshot => true, every => 5}),
         Copy = next(Ref, 1, empty()),
         ?assertEqual(3, map_size(Copy)),
         true = ats_nif:advance_clock(30000),
         no_more(Ref),
         true = ats_nif:advance_clock(30000),
         {Left, Seq} = until_equal(Ref, Table, 2, Copy),
         ?assertEqual([{stays, 1}], objects(Left)),
         %% A new time for an object is no change of it.
         true = dats:touch(T, stays, 60000),
         no_more(Ref),
         true = ats_nif:advance_clock(60000),
         {_, _} = until_equal(Ref, Table, Seq, Left),
         ?assertEqual([], dats:tab2list(T)),
         ok = dats:unfollow(Ref),
         ok = dats:close(T)
     end || Type <- ?TYPES],
    ok.

%% A table whose objects expire is read as a whole once, and then only if one has expired.
expired_seldom(Config) ->
    {dats, T} = Table = open(Config, ordered_set, [{ttl, 600000}]),
    ok = dats:insert(T, [{N, 0} || N <- lists:seq(1, 5000)]),
    {ok, Ref} = dats:follow(T, #{every => 1}),
    %% The log of keys begins with the first differences.
    [begin
         ok = dats:insert(T, {0, N}),
         receive {ats_changes, Ref, N, _} -> ok end
     end || N <- [1, 2]],
    Reads = reads(T),
    no_more(Ref),
    ok = dats:insert(T, {0, 3}, #{ttl => 1000}),
    receive {ats_changes, Ref, 3, [{change, {0, 2}, {0, 3}}]} -> ok end,
    no_more(Ref),
    ?assertEqual(1 + 2, reads(T) - Reads),
    true = ats_nif:advance_clock(1000),
    receive {ats_changes, Ref, 4, Four} -> ?assertEqual([{delete, {0, 3}}], Four) end,
    ?assert(reads(T) - Reads > 5000),
    true = ats_nif:advance_clock(600000),
    Copy = maps:from_keys([{N, 0} || N <- lists:seq(1, 5000)], 1),
    {_, 6} = until_equal(Ref, Table, 5, Copy),
    ok = dats:unfollow(Ref).

%% Changes are those of the merged values, not of the operands.
merged_by_a_module(Config) ->
    Options = [{type, ordered_set}, {merge, {module, ats_sum_merge}}],
    T = ats_disk_lib:open(Config, merged, Options),
    ok = dats:merge(T, a, 1),
    {ok, Ref} = dats:follow(T, #{snapshot => true, every => 20}),
    Copy = next(Ref, 1, empty()),
    ?assertEqual([{a, 1}], objects(Copy)),
    [ok = dats:merge(T, a, 1) || _ <- lists:seq(1, 10)],
    {_, _} = until_equal(Ref, {dats, T}, 2, Copy),
    ok = dats:unfollow(Ref).

invalid(Config) ->
    {dats, T} = open(Config, set),
    Text = fun(Function, Arguments) -> ats_test_lib:refusal(dats, Function, Arguments) end,
    [?assertEqual({Options, #{2 => Why}}, {Options, Text(follow, [T, Options])})
     || {Options, Why} <-
            [{[], <<"the options are not a map">>},
             {#{evry => 5}, <<"there is no option evry; is `every' meant?">>},
             {#{every => 0}, <<"`every' is not a number of milliseconds from 1 to 49 days">>},
             {#{to => here}, <<"`to' is not a pid">>}]],
    ?assertMatch(#{1 := <<"this table of dats is not open", _/binary>>}, Text(follow, [none, #{}])),
    ?assertMatch(#{1 := <<"this table of dats is not open", _/binary>>}, Text(follow, [none])),
    S = dats:snapshot(T),
    ?assertMatch(#{1 := <<"the table is a snapshot", _/binary>>}, Text(follow, [S])),
    ?assertEqual(#{1 => <<"not a reference of follow/2">>}, Text(unfollow, [T])),
    ?assertEqual(#{1 => <<"not a reference of follow/2">>}, Text(follow_more, [x, 1])),
    ?assertEqual(#{2 => <<"not a positive number, nor true">>}, Text(follow_more, [make_ref(), 0])),
    ?assertNot(dats:follow_more(make_ref(), 1)),
    ok = dats:unfollow(make_ref()),
    ok = dats:release(S).

%% Programs that follow tables: ats:follow/2, and the functions beside it. ATS_FOLLOW_BATCHES says
%% how many batches copies of each type get beside writers (20 by default).
-module(ats_follow_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-import(ats_follow_lib, [followers/0, looked/0, snapshots/1, length_of/1]).
-import(ats_follow_lib, [empty/0, applied/2, objects/1, next/3, batch/2]).
-import(ats_follow_lib, [until_equal/4, until_equal/5]).
-import(ats_follow_lib, [no_more/1, ended/2]).
-import(ats_follow_lib, [writers/1, stop/1, are_whole/1, is_set/1]).

-export([all/0, suite/0, init_per_suite/1, end_per_suite/1, end_per_testcase/2]).
-export([length_here/1]).
-export([copies_beside_writers/1, first_moments/1, batches/1, lists_are_whole/1,
         receivers_that_sleep/1, slow_receivers_of_large_batches/1, batches_that_are_asked_for/1,
         batches_of_many_changes/1, remainders/1, many_random_changes/1,
         lost_changes/1, lost_within_a_batch/1, lost_by_the_slow_one/1, lost_all_the_time/1,
         ends_of_tables/1, owners/1, ends_of_receivers/1,
         ends_of_processes/1, unfollowed/1, many_followers/1, filters/1, keys/1, expired/1,
         receivers_elsewhere/1, invalid/1]).

-define(TYPES, [set, ordered_set, bag, duplicate_bag, ordered_bag, ordered_duplicate_bag]).

suite() -> [{timetrap, {minutes, 10}}].

all() ->
    [copies_beside_writers, first_moments, batches, lists_are_whole, receivers_that_sleep,
     slow_receivers_of_large_batches, batches_that_are_asked_for,
     batches_of_many_changes, remainders, many_random_changes, lost_changes, lost_within_a_batch,
     lost_by_the_slow_one, lost_all_the_time,
     ends_of_tables, owners, ends_of_receivers, ends_of_processes, unfollowed, many_followers,
     filters, keys, expired, receivers_elsewhere, invalid].

init_per_suite(Config) ->
    {ok, Started} = application:ensure_all_started(ats),
    [{started, Started} | Config].

end_per_suite(Config) ->
    [application:stop(Application) || Application <- ?config(started, Config)].

%% Nothing is left of any case.
end_per_testcase(_Case, _Config) ->
    {ok, _} = application:ensure_all_started(ats),
    ats_test_lib:until(fun() -> followers() =:= [] end, 10000).

new(Type) -> new(Type, []).

new(Type, Options) -> ats:new(followed, [Type, public | Options]).

%% ----- copies -----

%% Each batch of two writers makes a state that the table had: pairs that are written as one are
%% whole, no key of a set has two objects, and in the end the copy equals the table.
copies_beside_writers(_Config) ->
    [begin
         T = new(Type, [named_table | Options]),
         Tid = ats:whereis(T),
         true = ats:insert(T, [{{early, N}, 0} || N <- lists:seq(1, 2500)]),
         {ok, Ref} = ats:follow(T, #{snapshot => true, every => 1}),
         First = next(Ref, 1, empty()),
         Writers = writers(fun(Writer, N) -> change(Tid, Writer, N) end),
         Told = fun(Seq, Copy) ->
                        Later = next(Ref, Seq, Copy),
                        checks(Type, Later),
                        Later
                end,
         Copy = lists:foldl(Told, First, lists:seq(2, batches())),
         ok = stop(Writers),
         _ = until_equal(Ref, Tid, batches() + 1, Copy, fun(Later) -> checks(Type, Later) end),
         true = ats:unfollow(Ref),
         ?assertEqual(0, snapshots(Tid)),
         true = ats:delete(Tid)
     end || Type <- ?TYPES, Options <- [[], [compressed]]],
    ok.

batches() -> list_to_integer(os:getenv("ATS_FOLLOW_BATCHES", "20")).

checks(Type, Copy) ->
    ok = are_whole(Copy),
    Keys = [element(1, Object) || Object <- maps:keys(Copy)],
    is_set(Type) andalso ?assertEqual(length(Keys), length(lists:usort(Keys))),
    Type =/= duplicate_bag andalso Type =/= ordered_duplicate_bag andalso
        ?assertEqual([], [Object || {Object, Number} <- maps:to_list(Copy), Number > 1]).

change(T, Writer, N) ->
    K = rand:uniform(50),
    case rand:uniform(12) of
        1 -> ats:delete(T, {Writer, single, K});
        2 -> ats:delete_object(T, {{early, rand:uniform(2500)}, 0});
        3 -> ats:take(T, {early, rand:uniform(2500)});
        4 -> ats:insert(T, [{{Writer, many, M}, N} || M <- lists:seq(K, K + 20)]);
        5 when N rem 200 =:= 0 -> ats:delete_all_objects(T);
        5 -> ats:insert_new(T, {{Writer, single, K}, N});
        6 when N rem 50 =:= 0 ->
            Name = list_to_atom("followed_" ++ integer_to_list(rand:uniform(5))),
            try ats:rename(T, Name) catch error:badarg -> ok end;
        6 when N rem 20 =:= 0 ->
            true = ats:safe_fixtable(T, true),
            ats:delete(T, {Writer, single, K}),
            true = ats:safe_fixtable(T, false);
        X when X > 9 -> ats:insert(T, [{{Writer, left, K}, N}, {{Writer, right, K}, N}]);
        _ -> ats:insert(T, {{Writer, single, K}, N, [K]})
    end.

%% All objects of the first moment are the first batch, which is there even if it is empty.
first_moments(_Config) ->
    [begin
         T = new(Type),
         Objects = [{N, N} || N <- lists:seq(1, Number)],
         true = ats:insert(T, Objects),
         {ok, Ref} = ats:follow(T, #{snapshot => true, every => 5}),
         Parts = max(0, (Number - 1) div 1000),
         Told = [receive {ats_changes, Ref, 1, {part, Part}} -> Part end
                 || _ <- lists:seq(1, Parts)],
         receive
             {ats_changes, Ref, 1, Last} when is_list(Last) ->
                 ?assertEqual([{insert, Object} || Object <- Objects],
                              lists:sort(lists:append([Last | Told])))
         end,
         no_more(Ref),
         true = ats:insert(T, {new, 1}),
         receive {ats_changes, Ref, 2, Changes} -> ?assertEqual([{insert, {new, 1}}], Changes) end,
         true = ats:unfollow(Ref)
     end || Type <- ?TYPES, Number <- [0, 1, 999, 1000, 1001, 5000]],
    ok.

%% Only changes are told; a key that has changed back is none.
batches(_Config) ->
    [begin
         T = new(Type),
         true = ats:insert(T, {a, 1}),
         {ok, Ref} = ats:follow(T, #{every => 50}),
         no_more(Ref),
         true = ats:insert(T, {b, 1}),
         receive {ats_changes, Ref, 1, One} -> ?assertEqual([{insert, {b, 1}}], One) end,
         true = ats:delete(T, b),
         receive {ats_changes, Ref, 2, Two} -> ?assertEqual([{delete, {b, 1}}], Two) end,
         true = ats:delete_all_objects(T),
         receive {ats_changes, Ref, 3, Three} -> ?assertEqual([{delete, {a, 1}}], Three) end,
         %% A list is one moment.
         true = ats:insert(T, [{c, 1}, {c, 2}]),
         Both = case is_set(Type) of
                    true -> [{insert, {c, 2}}];
                    false -> [{insert, {c, 1}}, {insert, {c, 2}}]
                end,
         receive {ats_changes, Ref, 4, Four} -> ?assertEqual(Both, lists:sort(Four)) end,
         true = ats:insert(T, {c, 3}),
         Fifth = case is_set(Type) of
                     true -> [{change, {c, 2}, {c, 3}}];
                     false -> [{insert, {c, 3}}]
                 end,
         receive {ats_changes, Ref, 5, Five} -> ?assertEqual(Fifth, Five) end,
         true = ats:unfollow(Ref)
     end || Type <- ?TYPES],
    %% A counter.
    T = new(set),
    true = ats:insert(T, {counter, 0}),
    {ok, Ref} = ats:follow(T, #{every => 5, snapshot => true}),
    Copy = next(Ref, 1, empty()),
    [ats:update_counter(T, counter, 1) || _ <- lists:seq(1, 100000)],
    {_, Next} = until_equal(Ref, T, 2, Copy),
    ?assert(Next < 50000),
    true = ats:unfollow(Ref).

%% Follows until all writers are done.
beside(_Ref, Seq, Copy, 0, _Check) ->
    {Copy, Seq};
beside(Ref, Seq, Copy, Writers, Check) ->
    receive
        written ->
            beside(Ref, Seq, Copy, Writers - 1, Check)
    after 0 ->
        Later = next(Ref, Seq, Copy),
        Check(Later),
        beside(Ref, Seq + 1, Later, Writers, Check)
    end.

%% Long lists are told whole: all objects of the table are of the same list after each batch.
lists_are_whole(_Config) ->
    [begin
         T = new(Type),
         Test = self(),
         {ok, Ref} = ats:follow(T, #{snapshot => true, every => 1}),
         spawn_link(fun() ->
                            [true = ats:insert(T, [{K, N} || K <- lists:seq(1, 3000)])
                             || N <- lists:seq(1, 60)],
                            Test ! written
                    end),
         Check = fun(Copy) ->
                         ?assert(length(lists:usort([N || {_, N} <- maps:keys(Copy)])) =< 1),
                         ?assert(lists:member(map_size(Copy), [0, 3000]))
                 end,
         {Copy, Seq} = beside(Ref, 2, next(Ref, 1, empty()), 1, Check),
         until_equal(Ref, T, Seq, Copy, Check),
         true = ats:unfollow(Ref)
     end || Type <- [set, ordered_set]],
    ok.

%% ----- slow receivers -----

%% The queue of a receiver that sleeps beside two writers stays short, and it gets the last state.
receivers_that_sleep(_Config) ->
    [begin
         T = new(Type),
         Self = self(),
         Receiver = spawn_link(fun() ->
                                       {ok, Ref} = ats:follow(T, #{snapshot => true, every => 1,
                                                                   max_queue => 5}),
                                       Self ! following,
                                       receive go -> ok end,
                                       {_, Next} = until_equal(Ref, T, 1, empty()),
                                       true = ats:unfollow(Ref),
                                       Self ! {done, Next}
                               end),
         receive following -> ok end,
         Write = fun(Writer) ->
                         fun() ->
                                 [begin
                                      true = ats:insert(T, {{Writer, N rem 500}, N}),
                                      N rem 100 =:= 0 andalso
                                          ?assertEqual(6, length_of(Receiver))
                                  end || N <- lists:seq(1, 30000)]
                         end
                 end,
         Fill = fun() ->
                        true = ats:insert(T, {fill, rand:uniform(1000000)}),
                        length_of(Receiver) > 5
                end,
         ats_test_lib:until(Fill, 10000),
         _ = ats_test_lib:parallel([Write(a), Write(b)]),
         ?assertEqual(6, length_of(Receiver)),
         {memory, Memory} = process_info(Receiver, memory),
         ?assert(Memory < 2000000),
         ?assertEqual(1, snapshots(T)),
         Receiver ! go,
         receive {done, Next} -> ?assert(Next < 20) end,
         ?assertEqual(0, snapshots(T))
     end || Type <- [set, ordered_set]],
    ok.

%% A batch of many parts waits for its receiver, too.
slow_receivers_of_large_batches(_Config) ->
    T = new(set),
    true = ats:insert(T, [{N, N} || N <- lists:seq(1, 50000)]),
    {ok, Ref} = ats:follow(T, #{snapshot => true, every => 5, max_queue => 3}),
    ats_test_lib:until(fun() -> length_of(self()) > 3 end, 10000),
    true = ats:insert(T, [{N, 0} || N <- lists:seq(1, 50000)]),
    receive after 200 -> ok end,
    ?assertEqual(4, length_of(self())),
    First = next(Ref, 1, empty()),
    ?assertEqual([{N, N} || N <- lists:seq(1, 50000)], objects(First)),
    {_, 3} = until_equal(Ref, T, 2, First),
    %% A process that waits can be told to stop.
    true = ats:insert(T, [{N, 1} || N <- lists:seq(1, 50000)]),
    ats_test_lib:until(fun() -> length_of(self()) > 3 end, 10000),
    true = ats:unfollow(Ref),
    ?assertEqual(0, length_of(self())),
    ?assertEqual(0, snapshots(T)).

batches_that_are_asked_for(_Config) ->
    T = new(set),
    {ok, Ref} = ats:follow(T, #{every => 5, active => 2}),
    true = ats:insert(T, {a, 1}),
    receive {ats_changes, Ref, 1, [{insert, {a, 1}}]} -> ok end,
    true = ats:insert(T, {b, 1}),
    receive {ats_changes, Ref, 2, [{insert, {b, 1}}]} -> ok end,
    true = ats:insert(T, {a, 2}),
    true = ats:insert(T, {c, 1}),
    true = ats:insert(T, {a, 3}),
    true = ats:delete(T, b),
    no_more(Ref),
    true = ats:follow_more(Ref, 1),
    receive
        {ats_changes, Ref, 3, Merged} ->
            ?assertEqual([{delete, {b, 1}}, {insert, {c, 1}}, {change, {a, 1}, {a, 3}}],
                         lists:sort(Merged))
    end,
    true = ats:insert(T, {a, 4}),
    no_more(Ref),
    %% Numbers add up; all is more than any number.
    true = ats:follow_more(Ref, 1),
    true = ats:follow_more(Ref, 1),
    receive {ats_changes, Ref, 4, [{change, {a, 3}, {a, 4}}]} -> ok end,
    true = ats:delete(T, a),
    receive {ats_changes, Ref, 5, [{delete, {a, 4}}]} -> ok end,
    true = ats:insert(T, {a, 5}),
    no_more(Ref),
    true = ats:follow_more(Ref, true),
    true = ats:follow_more(Ref, 1),
    receive {ats_changes, Ref, 6, [{insert, {a, 5}}]} -> ok end,
    [begin
         true = ats:insert(T, {a, N}),
         receive {ats_changes, Ref, N, [{change, _, {a, N}}]} -> ok end
     end || N <- lists:seq(7, 12)],
    true = ats:unfollow(Ref),
    ?assertNot(ats:follow_more(Ref, 1)),
    %% The batch with the first objects counts once; the end of the table is told in any case.
    true = ats:insert(T, [{N, N} || N <- lists:seq(1, 3000)]),
    {ok, Again} = ats:follow(T, #{every => 5, active => 1, snapshot => true}),
    _ = next(Again, 1, empty()),
    true = ats:insert(T, {a, 99}),
    no_more(Again),
    true = ats:delete(T),
    ended(Again, deleted).

%% ----- batches of at least so many changes -----

%% Changes of several moments are joined until there are enough. A key that changes back does not
%% count, nor does an object that the receiver does not want.
batches_of_many_changes(_Config) ->
    Write = fun(T, Objects) -> true = ats:insert(T, Objects), looked() end,
    [begin
         T = new(Type),
         true = ats:insert(T, [{a, 1}, {z, 1}]),
         Spec = [{{'_', '$1'}, [{'<', '$1', 100}], ['$_']}],
         {ok, Ref} = ats:follow(T, #{every => 1, at_least => 3, snapshot => true, spec => Spec,
                                     keys => Keys}),
         ?assertEqual(2, length(batch(Ref, 1))),
         Write(T, {b, 1}),
         true = ats:delete(T, a),
         looked(),
         Write(T, {a, 1}),
         Write(T, [{N, 100} || N <- lists:seq(1, 10)]),
         Write(T, {c, 1}),
         ?assertEqual(0, length_of(self())),
         true = ats:delete(T, z),
         Told = [{delete, {z, 1}}, {insert, {b, 1}}, {insert, {c, 1}}],
         ?assertEqual(told(Keys, Told), lists:sort(batch(Ref, 2))),
         %% Changes of one key are one change; a bag has more of them, unless only keys are told.
         Write(T, {a, 2}),
         Write(T, {b, 2}),
         ?assertEqual(0, length_of(self())),
         Write(T, {b, 3}),
         _ = [Write(T, {c, 3}) || is_set(Type) orelse Keys],
         Later = case is_set(Type) of
                     true -> [{change, {K, 1}, {K, N}} || {K, N} <- [{a, 2}, {b, 3}, {c, 3}]];
                     false when Keys -> [{change, {K, 1}, none} || K <- [a, b, c]];
                     false -> [{insert, {a, 2}}, {insert, {b, 2}}, {insert, {b, 3}}]
                 end,
         ?assertEqual(told(Keys, Later), lists:sort(batch(Ref, 3))),
         true = ats:unfollow(Ref)
     end || Type <- ?TYPES, Keys <- [false, true]],
    %% A batch of parts, of which some changes have waited.
    T = new(ordered_set),
    {ok, Ref} = ats:follow(T, #{every => 1, at_least => 1500, active => 2}),
    Write(T, [{N, 0} || N <- lists:seq(1, 1000)]),
    true = ats:insert(T, [{N, 1} || N <- lists:seq(501, 5000)]),
    Parts = batch(Ref, 1),
    ?assertEqual(5000, length(Parts)),
    ?assertEqual(lists:sort(ats:tab2list(T)), objects(applied(Parts, empty()))),
    %% Numbers are equal keys of an ordered table.
    Write(T, [{float(N), 0} || N <- lists:seq(1, 1000)]),
    Write(T, [{N, 2} || N <- lists:seq(1, 1000)]),
    ?assertEqual(0, length_of(self())),
    true = ats:insert(T, [{N, 3} || N <- lists:seq(1001, 1500)]),
    Changes = [{change, {N, case N > 500 of true -> 1; false -> 0 end},
                {N, case N > 1000 of true -> 3; false -> 2 end}} || N <- lists:seq(1, 1500)],
    ?assertEqual(Changes, lists:sort(batch(Ref, 2))),
    %% The receiver has asked for no more batches.
    true = ats:delete_all_objects(T),
    looked(),
    ?assertEqual(0, length_of(self())),
    true = ats:follow_more(Ref, 1),
    ?assertEqual(5000, length(batch(Ref, 3))),
    true = ats:unfollow(Ref),
    ?assertEqual(0, snapshots(T)).

told(false, Changes) -> lists:sort(Changes);
told(true, Changes) ->
    lists:sort([{element(1, Change), element(1, element(2, Change))} || Change <- Changes]).

%% Too few changes wait for `within', if at all, and do not outlive their table.
remainders(_Config) ->
    T = new(set),
    {ok, Ref} = ats:follow(T, #{every => 1, at_least => 100, within => 5}),
    true = ats:insert(T, {a, 1}),
    ?assertEqual([{insert, {a, 1}}], batch(Ref, 1)),
    %% Enough changes do not wait.
    true = ats:unfollow(Ref),
    {ok, Patient} = ats:follow(T, #{every => 1, at_least => 100, within => 1 bsl 70}),
    true = ats:insert(T, {a, 2}),
    looked(),
    true = ats:insert(T, [{N, 0} || N <- lists:seq(1, 99)]),
    ?assertEqual(100, length(batch(Patient, 1))),
    true = ats:insert(T, {a, 3}),
    looked(),
    ?assertEqual(0, length_of(self())),
    true = ats:delete(T),
    ended(Patient, deleted),
    %% Changes that are lost do not wait.
    Small = new(set, [{snapshot_memory, 100000}]),
    true = ats:insert(Small, [{N, N} || N <- lists:seq(1, 3000)]),
    {ok, Lost} = ats:follow(Small, #{every => 1, at_least => 2, active => 1, snapshot => true}),
    _ = next(Lost, 1, empty()),
    true = ats:follow_more(Lost, 1),
    true = ats:insert(Small, {0, 0}),
    looked(),
    ok = sleeping(hd(followers()),
                  fun() ->
                          true = ats:insert(Small, [{N, [new, N]} || N <- lists:seq(1, 3000)]),
                          Evicted = fun() -> maps:get(evicted, ats:info(Small, snapshots)) > 0 end,
                          ats_test_lib:until(Evicted, 10000)
                  end),
    ?assertEqual(lost, next(Lost, 2, empty())),
    true = ats:follow_more(Lost, true),
    {Copy, 4} = until_equal(Lost, Small, 3, empty()),
    true = ats:insert(Small, [{0, 1}, {1, 1}]),
    {_, 5} = until_equal(Lost, Small, 4, Copy),
    true = ats:unfollow(Lost).

sleeping(Pid, Do) ->
    true = erlang:suspend_process(Pid),
    Do(),
    true = erlang:resume_process(Pid),
    ok.

%% Each batch beside two writers has enough changes, and makes a copy in which lists are whole.
many_random_changes(_Config) ->
    [begin
         T = new(Type, [named_table]),
         Tid = ats:whereis(T),
         {ok, Ref} = ats:follow(T, #{every => 1, at_least => 40}),
         Writers = writers(fun(Writer, N) -> change(Tid, Writer, N) end),
         Told = fun(Seq, Before) ->
                        Changes = batch(Ref, Seq),
                        ?assert(length(Changes) >= 40),
                        Later = applied(Changes, Before),
                        checks(Type, Later),
                        Later
                end,
         Copy = lists:foldl(Told, empty(), lists:seq(1, 20)),
         ok = stop(Writers),
         true = ats:insert(Tid, [{{last, N}, 0} || N <- lists:seq(1, 40)]),
         _ = until_equal(Ref, Tid, 21, Copy, fun(Later) -> checks(Type, Later) end),
         true = ats:unfollow(Ref),
         true = ats:delete(Tid)
     end || Type <- ?TYPES],
    ok.

%% ----- lost changes -----

lost_changes(_Config) ->
    [begin
         T = new(Type, [{snapshot_memory, 100000}]),
         true = ats:insert(T, [{N, N} || N <- lists:seq(1, 3000)]),
         {ok, Ref} = ats:follow(T, #{every => 5, active => 1, snapshot => WithSnapshot}),
         Copy = case WithSnapshot of
                    true ->
                        next(Ref, 1, empty());
                    false ->
                        true = ats:insert(T, {0, 0}),
                        receive {ats_changes, Ref, 1, [{insert, {0, 0}}]} -> empty() end
                end,
         true = ats:insert(T, [{N, [new, N]} || N <- lists:seq(1, 3000)]),
         ats_test_lib:until(fun() -> maps:get(evicted, ats:info(T, snapshots)) > 0 end, 10000),
         true = ats:follow_more(Ref, 1),
         ?assertEqual(lost, next(Ref, 2, Copy)),
         no_more(Ref),
         true = ats:follow_more(Ref, true),
         case WithSnapshot of
             true ->
                 {_, 4} = until_equal(Ref, T, 3, empty());
             false ->
                 no_more(Ref),
                 true = ats:insert(T, {a, 1}),
                 receive {ats_changes, Ref, 3, [{insert, {a, 1}}]} -> ok end
         end,
         true = ats:unfollow(Ref),
         ?assertEqual(0, snapshots(T))
     end || Type <- ?TYPES, WithSnapshot <- [true, false]],
    ok.

%% The moments of a batch end while its receiver sleeps.
lost_within_a_batch(_Config) ->
    [begin
         T = new(Type, [{snapshot_memory, 100000}]),
         true = ats:insert(T, [{N, 0} || N <- lists:seq(1, 20000)]),
         {ok, Ref} = ats:follow(T, #{every => 5, max_queue => 2, snapshot => true}),
         ats_test_lib:until(fun() -> length_of(self()) > 2 end, 10000),
         true = ats:insert(T, [{N, 1} || N <- lists:seq(1, 20000)]),
         ats_test_lib:until(fun() -> maps:get(evicted, ats:info(T, snapshots)) > 0 end, 10000),
         ?assertEqual(lost, next_or_lost(Ref, 1, empty())),
         {Copy, 4} = until_equal(Ref, T, 3, empty()),
         %% Changes that are few are told.
         true = ats:insert(T, [{N, 2} || N <- lists:seq(1, 100)]),
         {_, 5} = until_equal(Ref, T, 4, Copy),
         true = ats:unfollow(Ref)
     end || Type <- [set, ordered_set]],
    ok.

%% A batch whose parts were sent keeps its number; `lost' has the next.
next_or_lost(Ref, Seq, Copy) ->
    receive
        {ats_changes, Ref, Seq, {part, Changes}} -> next_or_lost(Ref, Seq, applied(Changes, Copy));
        {ats_changes, Ref, Next, lost} when Next =:= Seq + 1 -> lost
    after 20000 -> error(not_told)
    end.

%% A receiver that sleeps loses its changes, and not those of one that keeps up.
lost_by_the_slow_one(_Config) ->
    T = new(set, [{snapshot_memory, 200000}]),
    {ok, Slow} = ats:follow(T, #{every => 5, active => 1}),
    {ok, Quick} = ats:follow(T, #{every => 5, snapshot => true}),
    Empty = next(Quick, 1, empty()),
    Write = fun(N, {Seq, Copy}) ->
                    true = ats:insert(T, [{{N rem 50, K}, N, lists:seq(1, 20)}
                                          || K <- lists:seq(1, 100)]),
                    {Later, Next} = until_equal(Quick, T, Seq, Copy),
                    {Next, Later}
            end,
    _ = lists:foldl(Write, {2, Empty}, lists:seq(1, 150)),
    ?assertEqual(1, maps:get(evicted, ats:info(T, snapshots))),
    receive {ats_changes, Slow, 1, _} -> ok end,
    true = ats:follow_more(Slow, 1),
    receive {ats_changes, Slow, 2, Told} -> ?assertEqual(lost, Told) end,
    true = ats:unfollow(Slow),
    true = ats:unfollow(Quick).

%% A table that keeps nothing back for a moment is told again and again, and exactly.
lost_all_the_time(_Config) ->
    T = new(set, [{snapshot_memory, 0}]),
    {ok, Ref} = ats:follow(T, #{every => 1, snapshot => true}),
    Write = fun Write(N) ->
                    true = ats:insert(T, [{K, N} || K <- lists:seq(1, 1500)]),
                    Write(N + 1)
            end,
    Writer = spawn_link(fun() -> Write(1) end),
    ok = equal_after_losses(Ref, T, empty(), Writer),
    true = ats:unfollow(Ref).

%% Applies all messages, which begin again after each loss, until the copy equals the table that is
%% not written any more. The first loss stops the writer.
equal_after_losses(Ref, T, Copy, Writer) ->
    receive
        {ats_changes, Ref, _, lost} ->
            _ = [begin unlink(Writer), ats_test_lib:kill(Writer) end || Writer =/= none],
            equal_after_losses(Ref, T, empty(), none);
        {ats_changes, Ref, _, {part, Changes}} ->
            equal_after_losses(Ref, T, applied(Changes, Copy), Writer);
        {ats_changes, Ref, _, Changes} ->
            Later = applied(Changes, Copy),
            case Writer =:= none andalso objects(Later) =:= lists:sort(ats:tab2list(T)) of
                true -> ok;
                false -> equal_after_losses(Ref, T, Later, Writer)
            end
    after 20000 ->
        error(not_told)
    end.

%% ----- ends -----

ends_of_tables(_Config) ->
    T = new(set),
    {ok, Ref} = ats:follow(T, #{every => 5}),
    true = ats:delete(T),
    ended(Ref, deleted),
    ?assert(ats:unfollow(Ref)),
    ?assertNot(ats:follow_more(Ref, 1)),
    %% A new table of the name is another table.
    named = ats:new(named, [named_table, public]),
    {ok, Named} = ats:follow(named, #{every => 5}),
    true = ats:delete(named),
    named = ats:new(named, [named_table, public]),
    true = ats:insert(named, {a, 1}),
    ended(Named, deleted),
    %% A new name of the table does not matter.
    {ok, Renamed} = ats:follow(named, #{every => 5}),
    other = ats:rename(named, other),
    true = ats:insert(other, {a, 2}),
    receive {ats_changes, Renamed, 1, [{change, {a, 1}, {a, 2}}]} -> ok end,
    true = ats:delete(other),
    ended(Renamed, deleted).

owners(_Config) ->
    Self = self(),
    Owner = fun(Options) ->
                    Pid = spawn(fun() ->
                                        Self ! {table, ats:new(t, [public | Options])},
                                        receive
                                            {private, Table} ->
                                                true = ats:setopts(Table, {protection, private}),
                                                receive stop -> ok end;
                                            stop -> ok
                                        end
                                end),
                    receive {table, T} -> {Pid, T} end
            end,
    {NoHeir, T} = Owner([]),
    {ok, Ref} = ats:follow(T, #{every => 5}),
    NoHeir ! stop,
    ended(Ref, deleted),
    {Killed, Inherited} = Owner([{heir, self(), data}]),
    {ok, Heir} = ats:follow(Inherited, #{every => 5}),
    ats_test_lib:kill(Killed),
    receive {'ETS-TRANSFER', Inherited, Killed, data} -> ok end,
    true = ats:insert(Inherited, {a, 1}),
    receive {ats_changes, Heir, 1, [{insert, {a, 1}}]} -> ok end,
    Next = spawn_link(fun() -> receive stop -> ok end end),
    true = ats:give_away(Inherited, Next, gift),
    true = ats:insert(Inherited, {b, 1}),
    receive {ats_changes, Heir, 2, [{insert, {b, 1}}]} -> ok end,
    true = ats:unfollow(Heir),
    Next ! stop,
    %% Nobody else may read a table that becomes private.
    [begin
         {Private, P} = Owner([]),
         {ok, R} = ats:follow(P, #{every => 5, active => Active, snapshot => true}),
         [] = objects(next(R, 1, empty())),
         Private ! {private, P},
         ended(R, private),
         Private ! stop
     end || Active <- [1, true]].

%% A program that follows a table ends.
ends_of_receivers(_Config) ->
    T = new(set),
    Self = self(),
    [begin
         Pid = spawn(fun() ->
                             {ok, _} = ats:follow(T, #{every => 5, snapshot => IsWithSnapshot}),
                             Self ! following,
                             receive stop -> ok end
                     end),
         receive following -> ok end,
         ?assertEqual(1, length(followers())),
         End(Pid),
         ats_test_lib:until(fun() -> followers() =:= [] andalso snapshots(T) =:= 0 end, 10000)
     end || End <- [fun ats_test_lib:kill/1, fun(Pid) -> Pid ! stop end],
            IsWithSnapshot <- [true, false]],
    %% A receiver that has ended before.
    {Dead, Monitor} = spawn_monitor(fun() -> ok end),
    receive {'DOWN', Monitor, process, Dead, normal} -> ok end,
    {ok, _} = ats:follow(T, #{to => Dead}),
    ats_test_lib:until(fun() -> followers() =:= [] andalso snapshots(T) =:= 0 end, 10000).

ends_of_processes(_Config) ->
    T = new(set),
    %% A killed process.
    {ok, Ref} = ats:follow(T, #{every => 5}),
    [Pid] = followers(),
    ats_test_lib:kill(Pid),
    ended(Ref, killed),
    ats_test_lib:until(fun() -> snapshots(T) =:= 0 end, 10000),
    ?assert(ats:unfollow(Ref)),
    ?assertNot(ats:follow_more(Ref, 1)),
    %% The server is killed.
    {ok, Other} = ats:follow(T, #{every => 5}),
    Server = whereis(ats_follow),
    ats_test_lib:kill(Server),
    ended(Other, stopped),
    ats_test_lib:until(fun() -> is_pid(whereis(ats_follow)) end, 10000),
    ?assertNot(ats:follow_more(Other, 1)),
    %% The application stops, and is started when it is needed.
    {ok, Third} = ats:follow(T, #{every => 5}),
    ok = application:stop(ats),
    ended(Third, stopped),
    ?assert(ats:unfollow(Third)),
    ?assertNot(ats:follow_more(Third, 1)),
    {ok, Fourth} = ats:follow(T, #{every => 5}),
    true = ats:insert(T, {a, 1}),
    receive {ats_changes, Fourth, 1, [{insert, {a, 1}}]} -> ok end,
    true = ats:unfollow(Fourth).

%% After unfollow/1 there are no messages, and nothing is left.
unfollowed(_Config) ->
    T = new(set),
    ats_test_lib:beside(
      [fun(N) -> ats:insert(T, {N rem 100, N}) end], 1000,
      fun() ->
              {ok, Ref} = ats:follow(T, #{every => 1, snapshot => rand:uniform(2) =:= 1}),
              receive {ats_changes, Ref, 1, _} -> ok end,
              receive after rand:uniform(5) -> ok end,
              true = ats:unfollow(Ref),
              ?assertEqual(0, length_of(self())),
              ?assertEqual(0, snapshots(T))
      end),
    no_more('_'),
    ?assertEqual([], followers()),
    %% Another process may end it, too.
    {ok, Ref} = ats:follow(T, #{every => 5}),
    {Pid, Monitor} = spawn_monitor(fun() -> true = ats:unfollow(Ref) end),
    receive {'DOWN', Monitor, process, Pid, normal} -> ok end,
    ?assertEqual([], followers()),
    true = ats:unfollow(Ref).

%% Followers of one table do not know of each other.
many_followers(_Config) ->
    T = new(ordered_set),
    Follow = fun(N) ->
                     fun() ->
                             {ok, Ref} = ats:follow(T, #{snapshot => true, every => N}),
                             {_, _} = until_end(Ref, 1, empty()),
                             true = ats:unfollow(Ref)
                     end
             end,
    Write = fun() ->
                    [change(T, w, N) || N <- lists:seq(1, 10000)],
                    true = ats:insert(T, {'end', ats:tab2list(T)})
            end,
    _ = ats_test_lib:parallel([Write | [Follow(N) || N <- lists:seq(1, 10)]]),
    ?assertEqual(0, snapshots(T)).

%% The last object has all others.
until_end(Ref, Seq, Copy) ->
    case [Objects || {'end', Objects} <- maps:keys(Copy)] of
        [Objects] ->
            ?assertEqual(lists:sort([{'end', Objects} | Objects]), objects(Copy)),
            {Copy, Seq};
        [] ->
            until_end(Ref, Seq + 1, next(Ref, Seq, Copy))
    end.

%% ----- options -----

filters(_Config) ->
    Spec = [{{'_', '$1'}, [{'>', '$1', 10}], ['$_']}, {{always, '_'}, [], ['$_']}],
    [begin
         T = new(Type),
         true = ats:insert(T, [{a, 1}, {b, 11}, {always, 0}]),
         {ok, Ref} = ats:follow(T, #{snapshot => true, every => 5, spec => Spec}),
         Copy = next(Ref, 1, empty()),
         ?assertEqual([{always, 0}, {b, 11}], objects(Copy)),
         true = ats:insert(T, {c, 2}),
         no_more(Ref),
         true = ats:insert(T, {c, 12}),
         receive {ats_changes, Ref, 2, [{insert, {c, 12}}]} -> ok end,
         true = ats:delete_object(T, {c, 12}),
         receive {ats_changes, Ref, 3, [{delete, {c, 12}}]} -> ok end,
         _ = [begin
                  true = ats:insert(T, {b, 3}),
                  receive {ats_changes, Ref, 4, [{delete, {b, 11}}]} -> ok end,
                  true = ats:insert(T, {always, 1}),
                  receive {ats_changes, Ref, 5, [{change, {always, 0}, {always, 1}}]} -> ok end
              end || is_set(Type)],
         true = ats:unfollow(Ref)
     end || Type <- ?TYPES],
    %% Objects that are not told do not make messages, however many they are.
    T = new(set),
    true = ats:insert(T, [{N, N} || N <- lists:seq(1, 20000)]),
    {ok, Ref} = ats:follow(T, #{every => 5, spec => [{{last, '_'}, [], ['$_']}]}),
    true = ats:insert(T, [{N, 0} || N <- lists:seq(1, 20000)]),
    true = ats:insert(T, {last, 1}),
    receive {ats_changes, Ref, 1, [{insert, {last, 1}}]} -> ok end,
    true = ats:unfollow(Ref),
    %% A table that does not want to be read whole.
    Refuses = new(set, [{full_scan, refuse}]),
    true = ats:insert(Refuses, {a, 1}),
    {ok, Whole} = ats:follow(Refuses, #{snapshot => true, spec => [{{'_', 1}, [], ['$_']}]}),
    ?assertEqual([{a, 1}], objects(next(Whole, 1, empty()))),
    true = ats:unfollow(Whole).

keys(_Config) ->
    [begin
         T = new(Type, [{keypos, 2}]),
         true = ats:insert(T, [{N, N} || N <- lists:seq(1, 1500)] ++ [{0, 7}, {1, 7}]),
         {ok, Ref} = ats:follow(T, #{snapshot => true, every => 5, keys => true}),
         First = batch(Ref, 1),
         ?assertEqual([{insert, N} || N <- lists:seq(1, 1500)], lists:sort(First)),
         true = ats:insert(T, {2, 7}),
         receive {ats_changes, Ref, 2, [{change, 7}]} -> ok end,
         true = ats:delete(T, 7),
         receive {ats_changes, Ref, 3, [{delete, 7}]} -> ok end,
         true = ats:insert(T, [{3, 7}, {4, 7}]),
         receive {ats_changes, Ref, 4, [{insert, 7}]} -> ok end,
         true = ats:unfollow(Ref),
         %% A key is there if the filter passes one of its objects.
         Spec = [{{'$1', '_'}, [{'<', '$1', 4}], ['$_']}],
         {ok, Filtered} = ats:follow(T, #{every => 5, keys => true, spec => Spec}),
         true = ats:delete_object(T, {3, 7}),
         _ = [receive {ats_changes, Filtered, 1, [{delete, 7}]} -> ok end || not is_set(Type)],
         true = ats:insert(T, {9, 8000}),
         true = ats:insert(T, {1, 9000}),
         Seq = case is_set(Type) of true -> 1; false -> 2 end,
         receive {ats_changes, Filtered, Seq, [{insert, 9000}]} -> ok end,
         true = ats:unfollow(Filtered)
     end || Type <- ?TYPES],
    %% The many objects of one key are in several chunks.
    [begin
         T = new(Type),
         true = ats:insert(T, [{K, N} || K <- [a, b, c], N <- lists:seq(1, 2500)]),
         {ok, Ref} = ats:follow(T, #{snapshot => true, keys => true}),
         ?assertEqual([{insert, K} || K <- [a, b, c]], lists:sort(batch(Ref, 1))),
         true = ats:unfollow(Ref)
     end || Type <- ?TYPES, not is_set(Type)],
    ok.

%% Objects that expire are deleted, and following does not read them as programs do.
expired(_Config) ->
    [begin
         T = new(Type, [{ttl, Ttl}]),
         true = ats:insert(T, [{a, 1}, {b, 1}]),
         true = ats:insert(T, {stays, 1}, #{ttl => infinity}),
         {ok, Ref} = ats:follow(T, #{snapshot => true, every => 5}),
         Copy = next(Ref, 1, empty()),
         ?assertEqual(3, map_size(Copy)),
         ats_nif:advance_clock(30000),
         no_more(Ref),
         ats_nif:advance_clock(30000),
         {Left, Seq} = until_equal(Ref, T, 2, Copy),
         ?assertEqual([{stays, 1}], objects(Left)),
         %% A new time for an object is no change of it.
         true = ats:touch(T, stays, 60000),
         no_more(Ref),
         ats_nif:advance_clock(60000),
         {_, _} = until_equal(Ref, T, Seq, Left),
         ?assertEqual([], ats:tab2list(T)),
         true = ats:unfollow(Ref),
         true = ats:delete(T)
     end || Type <- ?TYPES, Ttl <- [60000, {idle, 60000}]],
    %% Bounded tables.
    T = new(set, [{max_objects, 100}]),
    {ok, Ref} = ats:follow(T, #{snapshot => true, every => 5}),
    [true = ats:insert(T, {N, N}) || N <- lists:seq(1, 5000)],
    _ = until_equal(Ref, T, 1, empty()),
    true = ats:unfollow(Ref).

%% A process of another node follows a table of this one.
receivers_elsewhere(_Config) ->
    _ = os:cmd("epmd -daemon"),
    ats_test_lib:until(fun() -> element(1, erl_epmd:names()) =:= ok end, 10000),
    Name = list_to_atom("ats_follow_" ++ os:getpid()),
    {ok, _} = net_kernel:start([Name, shortnames]),
    {ok, Peer, _} = ats_test_lib:start_vm(["-sname", atom_to_list(Name) ++ "_peer"]),
    Node = ats_test_lib:call(Peer, erlang, node, []),
    try
        T = new(set),
        true = ats:insert(T, {a, 1}),
        Self = self(),
        Receiver = spawn(Node, fun() ->
                                   Follow = [T, #{snapshot => true, every => 5, to => self(),
                                                  max_queue => 2}],
                                   {ok, Ref} = erpc:call(node(Self), ats, follow, Follow),
                                   Self ! {following, Ref},
                                   elsewhere(Ref, Self)
                           end),
        Ref = receive {following, R} -> R after 20000 -> error(not_following) end,
        receive {told, Ref, 1, One} -> ?assertEqual([{insert, {a, 1}}], One) end,
        true = ats:insert(T, {b, 1}),
        receive {told, Ref, 2, Two} -> ?assertEqual([{insert, {b, 1}}], Two) end,
        ?assert(ats_test_lib:call(Peer, ats, follow_more, [Ref, true])),
        Receiver ! sleep,
        [begin
             true = ats:insert(T, {N, N}),
             receive after 20 -> ok end
         end || N <- lists:seq(1, 20)],
        ?assert(ats_test_lib:call(Peer, ?MODULE, length_here, [Receiver]) =< 5),
        Receiver ! go,
        Told = told(Ref, 3, 20),
        ?assertEqual([{insert, {N, N}} || N <- lists:seq(1, 20)], lists:sort(Told)),
        Receiver ! unfollow,
        receive unfollowed -> ok end,
        ?assertEqual(0, snapshots(T)),
        %% The node ends.
        {ok, _} = ats:follow(T, #{to => Receiver, every => 5}),
        ?assertEqual(1, length(followers()))
    after
        ats_test_lib:stop_vm(Peer)
    end,
    ats_test_lib:until(fun() -> followers() =:= [] end, 10000),
    ok = net_kernel:stop(),
    %% A node that is not there.
    true = ats:unfollow(binary_to_term(<<131, 90, 0, 3, 119, 9, "no@where!", 1:32, 1:32, 2:32,
                                         3:32>>)).

%% Called on another node.
length_here(Pid) -> length_of(Pid).

elsewhere(Ref, Test) ->
    receive
        sleep -> receive go -> elsewhere(Ref, Test) end;
        unfollow -> true = ats:unfollow(Ref), Test ! unfollowed, receive stop -> ok end;
        {ats_changes, Ref, Seq, Changes} -> Test ! {told, Ref, Seq, Changes}, elsewhere(Ref, Test)
    end.

told(_Ref, _Seq, 0) -> [];
told(Ref, Seq, Number) ->
    receive
        {told, Ref, Seq, Changes} -> Changes ++ told(Ref, Seq + 1, Number - length(Changes))
    end.

%% ----- refusals -----

invalid(_Config) ->
    T = new(set),
    Text = fun(Function, Arguments) -> ats_test_lib:refusal(ats, Function, Arguments) end,
    [?assertEqual({Options, #{2 => Why}}, {Options, Text(follow, [T, Options])})
     || {Options, Why} <-
            [{[], <<"the options are not a map">>},
             {#{evry => 5}, <<"there is no option evry; is `every' meant?">>},
             {#{"a" => 5}, <<"there is no option \"a\"">>},
             {#{every => 0}, <<"`every' is not a number of milliseconds from 1 to 49 days">>},
             {#{every => 1 bsl 32},
              <<"`every' is not a number of milliseconds from 1 to 49 days">>},
             {#{snapshot => 1}, <<"`snapshot' is not a boolean value">>},
             {#{keys => yes}, <<"`keys' is not a boolean value">>},
             {#{at_least => 0}, <<"`at_least' is not a positive number of changes">>},
             {#{at_least => infinity}, <<"`at_least' is not a positive number of changes">>},
             {#{within => 0},
              <<"`within' is not a positive number of milliseconds, nor infinity">>},
             {#{active => false}, <<"`active' is not a positive number, nor true">>},
             {#{active => 0}, <<"`active' is not a positive number, nor true">>},
             {#{max_queue => -1}, <<"`max_queue' is not a number of messages">>},
             {#{to => here}, <<"`to' is not a pid">>},
             {#{spec => [{'_', [], [true]}]},
              <<"a clause of `spec' has another body than ['$_']">>},
             {#{spec => [{'_', [], ['$_', '$_']}]},
              <<"a clause of `spec' has another body than ['$_']">>}]
            ++ [{#{spec => Spec}, <<"`spec' is not a list of clauses of a match specification">>}
                || Spec <- [x, [{'_', [{bad}], ['$_']}], [{'_', [], ['$_']} | x],
                            ats:match_spec_compile([{'_', [], ['$_']}])]]],
    ?assertMatch(#{1 := <<"not an atom or a table identifier">>}, Text(follow, [1, #{}])),
    ?assertMatch(#{1 := <<"the table identifier does not", _/binary>>}, Text(follow, [none, #{}])),
    ?assertMatch(#{1 := <<"the table identifier does not", _/binary>>}, Text(follow, [none])),
    Private = ats:new(t, [private]),
    ?assertMatch(#{1 := <<"the table is private, so no other process can", _/binary>>},
                 Text(follow, [Private, #{}])),
    {Pid, Monitor} =
        spawn_monitor(fun() ->
                              #{1 := Refused} = Text(follow, [Private]),
                              ?assertMatch({_, _}, binary:match(Refused, <<"insufficient access">>))
                      end),
    receive {'DOWN', Monitor, process, Pid, Why} -> ?assertEqual(normal, Why) end,
    S = ats:snapshot(T),
    ?assertMatch(#{1 := <<"the table is a snapshot", _/binary>>}, Text(follow, [S])),
    ?assertMatch(#{1 := <<"the store of the table has no snapshots">>},
                 Text(follow, [ats:new(t, [{backend, btree}])])),
    [?assertEqual(#{1 => <<"not a reference of follow/2">>}, Text(unfollow, [Ref]))
     || Ref <- [1, T, self()], not is_reference(Ref)],
    ?assertEqual(#{1 => <<"not a reference of follow/2">>}, Text(follow_more, [x, 1])),
    [?assertEqual(#{2 => <<"not a positive number, nor true">>},
                  Text(follow_more, [make_ref(), N]))
     || N <- [0, -1, false, 1.0]],
    ?assertNot(ats:follow_more(make_ref(), 1)),
    ?assert(ats:unfollow(make_ref())).

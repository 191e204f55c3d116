%% Snapshots of tables in memory, and reads in many calls: both show one moment, with any writes
%% meanwhile, and leave nothing behind.
-module(ats_snapshots_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").
-include_lib("stdlib/include/qlc.hrl").

-export([all/0, suite/0, init_per_suite/1, end_per_suite/1]).
-export([snapshots_equal_their_table/1, every_function_that_reads/1, nothing_is_changed/1,
         many_at_once/1, differences/1, differences_beside_writers/1, sums_in_many_calls/1,
         folds_do_not_meet_their_own_changes/1, folds_of_few_and_more/1, transfers_beside_chunks/1,
         how_a_snapshot_ends/1, memory_is_bound/1, memory_of_binaries_is_bound/1,
         owners_that_are_killed/1, many_end_with_their_owner/1,
         tables_that_are_deleted/1, tables_that_are_cleared/1, counters_and_merges/1,
         continuations_that_are_dropped/1, checkpoints/1, checkpoints_leave_others_alone/1,
         checkpoints_by_any_spelling/1, checkpoints_of_killed_callers/1, wrong_arguments/1]).

-define(TYPES, [set, ordered_set, bag, duplicate_bag, ordered_bag, ordered_duplicate_bag]).
-define(ALL, [{'_', [], ['$_']}]).

suite() -> [{timetrap, {minutes, 15}}].

all() ->
    [snapshots_equal_their_table, every_function_that_reads, nothing_is_changed, many_at_once,
     differences, differences_beside_writers, sums_in_many_calls,
     folds_do_not_meet_their_own_changes, folds_of_few_and_more, transfers_beside_chunks,
     how_a_snapshot_ends, memory_is_bound, memory_of_binaries_is_bound, owners_that_are_killed,
     many_end_with_their_owner, tables_that_are_deleted, tables_that_are_cleared,
     counters_and_merges, continuations_that_are_dropped, checkpoints,
     checkpoints_leave_others_alone, checkpoints_by_any_spelling, checkpoints_of_killed_callers,
     wrong_arguments].

init_per_suite(Config) ->
    {ok, Started} = application:ensure_all_started(ats),
    [{started, Started} | Config].

end_per_suite(Config) ->
    [application:stop(Application) || Application <- ?config(started, Config)].

%% ----- contents of snapshots -----

%% Random changes; after some of them a snapshot, which is compared with the table of that moment.
snapshots_equal_their_table(_Config) ->
    [begin
         T = new(Type, Options),
         Taken = lists:foldl(
                   fun(Round, Snapshots) ->
                           [change(T, Round) || _ <- lists:seq(1, 50)],
                           Kept = case length(Snapshots) of
                                      5 ->
                                          {Given, [{Last, _}]} = lists:split(4, Snapshots),
                                          true = ats:release(Last),
                                          Given;
                                      _ ->
                                          Snapshots
                                  end,
                           [?assertEqual(Was, sorted(ats:tab2list(S))) || {S, Was} <- Kept],
                           [{ats:snapshot(T), sorted(ats:tab2list(T))} | Kept]
                   end,
                   [], lists:seq(1, 60)),
         [?assertEqual(length(Was), ats:info(S, size)) || {S, Was} <- Taken],
         [true = ats:release(S) || {S, _} <- Taken],
         true = ats:delete(T)
     end || Type <- ?TYPES, Options <- [[], [compressed]]],
    ok.

new(Type, Options) ->
    T = ats:new(t, [Type, public | Options]),
    true = ats:insert(T, [object(0) || _ <- lists:seq(1, 300)]),
    T.

object(Round) -> {key(), Round, lists:duplicate(rand:uniform(5), x)}.

key() ->
    case rand:uniform(400) of
        N when N rem 4 =:= 0 -> {N, [a]};
        N when N rem 7 =:= 0 -> float(N);
        N when N rem 9 =:= 0 -> <<N:32>>;
        N -> N
    end.

change(T, Round) ->
    case rand:uniform(8) of
        N when N < 4 -> ats:insert(T, object(Round));
        4 -> ats:insert(T, [object(Round) || _ <- lists:seq(1, 20)]);
        5 -> ats:delete(T, key());
        6 -> ats:take(T, key());
        7 -> ats:select_delete(T, [{{'$1', '_', '_'}, [{'=:=', '$1', key_guard()}], [true]}]);
        8 when Round rem 20 =:= 0 -> ats:delete_all_objects(T);
        8 -> ats:insert_new(T, object(Round))
    end.

key_guard() -> rand:uniform(400).

sorted(Objects) -> lists:sort(Objects).

%% Each function answers as it would of a copy of the table at that moment.
every_function_that_reads(_Config) ->
    [begin
         T = new(Type, []),
         Copy = ats:new(copy, [Type, public]),
         true = ats:insert(Copy, ats:tab2list(T)),
         Order = lists:member(Type, [ordered_set, ordered_bag, ordered_duplicate_bag]),
         S = ats:snapshot(T),
         [change(T, 1) || _ <- lists:seq(1, 500)],
         Keys = lists:usort([element(1, O) || O <- ats:tab2list(Copy)]) ++ [none, 1.5],
         [?assertEqual(sorted(ats:lookup(Copy, K)), sorted(ats:lookup(S, K))) || K <- Keys],
         [?assertEqual(ats:member(Copy, K), ats:member(S, K)) || K <- Keys],
         Walk = fun(First, Next, From) ->
                        walk(ats:First(From), fun(K) -> ats:Next(From, K) end)
                end,
         [begin
              Mine = [V || V <- Walk(First, Next, S)],
              case Order of
                  true -> ?assertEqual(Walk(First, Next, Copy), Mine);
                  false -> ?assertEqual(sorted(Walk(First, Next, Copy)), sorted(Mine))
              end
          end || {First, Next} <- [{first, next}, {last, prev}]],
         Specs = [?ALL, [{{'$1', '$2', '_'}, [{is_integer, '$1'}], [{{'$1', '$2'}}]}],
                  [{{{'$1', '_'}, '_', '_'}, [], ['$1']}], [{{7, '_', '_'}, [], ['$_']}]],
         [begin
              ?assertEqual(sorted(ats:select(Copy, Spec)), sorted(ats:select(S, Spec))),
              [?assertEqual(sorted(ats:select(Copy, Spec)),
                            sorted(chunks(ats:select(S, Spec, N)))) || N <- [1, 7, 1000]],
              ?assertEqual(sorted(ats:select_reverse(Copy, Spec)),
                           sorted(ats:select_reverse(S, Spec)))
          end || Spec <- Specs],
         ?assertEqual(sorted(ats:match_object(Copy, {'_', 0, '_'})),
                      sorted(ats:match_object(S, {'_', 0, '_'}))),
         ?assertEqual(sorted(ats:match(Copy, {'$1', '_', '_'})),
                      sorted(ats:match(S, {'$1', '_', '_'}))),
         Collect = fun(O, Acc) -> [O | Acc] end,
         [?assertEqual(sorted(ats:Fold(Collect, [], Copy)), sorted(ats:Fold(Collect, [], S)))
          || Fold <- [foldl, foldr]],
         ?assertEqual(ats:info(Copy, size), ats:info(S, size)),
         [?assertEqual(sorted(ats:tab2list(Copy)), sorted(qlc:e(ats:table(S, Option))))
          || Option <- [[], {traverse, first_next}, {traverse, last_prev}]],
         Slots = slots(S, 0),
         ?assertEqual(sorted(ats:tab2list(Copy)), sorted(lists:append(Slots))),
         case Order of
             true ->
                 Size = ats:info(Copy, size),
                 [?assertEqual(ats:nth(Copy, N), ats:nth(S, N))
                  || N <- [1, 2, Size div 2, Size, -1, -Size, Size + 1]],
                 [?assertEqual(ats:rank(Copy, K), ats:rank(S, K)) || K <- Keys],
                 ?assertEqual(ats:range_count(Copy, 10, 200), ats:range_count(S, 10, 200)),
                 ?assertEqual(ats:range(Copy, 10, 200), ats:range(S, 10, 200)),
                 Limited = fun(From) -> ats:range(From, 10, 200, [reverse, {limit, 5}]) end,
                 ?assertEqual(element(1, Limited(Copy)), element(1, Limited(S))),
                 ?assertEqual(ats:prefix(Copy, {8, '_'}), ats:prefix(S, {8, '_'}));
             false ->
                 ok
         end,
         [true = ats:delete(X) || X <- [T, Copy, S]]
     end || Type <- ?TYPES],
    ok.

walk('$end_of_table', _Next) -> [];
walk(Key, Next) -> [Key | walk(Next(Key), Next)].

chunks('$end_of_table') -> [];
chunks({Results, Continuation}) -> Results ++ chunks(ats:select(Continuation)).

slots(S, I) ->
    case ats:slot(S, I) of
        '$end_of_table' -> [];
        Objects -> [Objects | slots(S, I + 1)]
    end.

%% A snapshot is changed by no function, of its owner or of others.
nothing_is_changed(_Config) ->
    [begin
         T = ats:new(t, [Type, public]),
         true = ats:insert(T, [{K, K} || K <- lists:seq(1, 100)]),
         S = ats:snapshot(T),
         Was = sorted(ats:tab2list(T)),
         Other = spawn_link(fun() -> receive stop -> ok end end),
         Calls = [{insert, [S, []]}, {insert_new, [S, []]}, {select_delete, [S, []]},
                  {update_counter, [S, 2, []]}, {update_element, [S, 2, []]},
                  {rename, [S, other]}, {give_away, [S, Other, gift]},
                  {setopts, [S, {heir, Other, data}]}, {setopts, [S, {heir, none}]},
                  {setopts, [S, [{protection, public}]]}, {setopts, [S, [{owner, none}]]},
                  {setopts, [S, []]}, {init_table, [S, fun(read) -> end_of_input end]},
                  {insert, [S, {1, 2}]}, {insert, [S, [{1, 2}, {2, 3}]]},
                  {insert, [S, [{K, 0} || K <- lists:seq(1, 20000)]]},
                  {insert_new, [S, {999, 1}]}, {insert_new, [S, [{998, 1}, {999, 1}]]},
                  {delete, [S, 2]}, {delete_object, [S, {2, 2}]}, {delete_all_objects, [S]},
                  {take, [S, 2]}, {take_first, [S]}, {take_last, [S]}, {take_all_objects, [S]},
                  {update_counter, [S, 2, 1]}, {update_counter, [S, 2, [{2, 1}, {2, 1}]]},
                  {update_counter, [S, 777, 1, {777, 1}]}, {update_element, [S, 2, {2, x}]},
                  {merge, [S, 2, 1, sum]}, {merge, [S, 2, [1], append]},
                  {match_delete, [S, '_']}, {select_delete, [S, [{'_', [], [true]}]]},
                  {select_take, [S, [{'_', [], [true]}]]}, {from_dets, [S, no_table]}]
             ++ [{select_replace, [S, [{{'$1', '_'}, [], [{{'$1', 1}}]}]]} || Type =/= bag,
                                                                             Type =/= ordered_bag]
             ++ [{range_delete, [S, 1, 5]} || Type =:= ordered_set],
         Try = fun() ->
                       [?assertMatch({_, {'EXIT', {badarg, _}}}, {F, catch apply(ats, F, A)})
                        || {F, A} <- Calls]
               end,
         Try(),
         in_another_process(Try),
         ?assertEqual(Was, sorted(ats:tab2list(S))),
         ?assertEqual(Was, sorted(ats:tab2list(T))),
         [begin
              {'EXIT', {badarg, Stack}} = catch apply(ats, F, A),
              ?assertMatch({F, #{1 := <<"the table is a snapshot, which can only be read">>}},
                           {F, ats_oracle:without_hints(ats_errors:format_error(badarg, Stack))})
          end || {F, A} <- Calls, F =/= from_dets],
         ?assertEqual([self(), none, protected, t],
                      [ats:info(S, Item) || Item <- [owner, heir, protection, name]]),
         ?assertMatch(#{number := 1}, ats:info(T, snapshots)),
         in_another_process(fun() -> ?assertError(badarg, ats:delete(S)) end),
         Other ! stop,
         true = ats:release(S),
         true = ats:delete(T)
     end || Type <- ?TYPES],
    ok.

in_another_process(Work) ->
    {Pid, Monitor} = spawn_monitor(Work),
    receive {'DOWN', Monitor, process, Pid, Why} -> ?assertEqual(normal, Why) end.

%% A hundred snapshots beside writers: each stays as its own reader saw it first.
many_at_once(_Config) ->
    [begin
         T = ats:new(t, [Type, public]),
         true = ats:insert(T, [{K, 0} || K <- lists:seq(1, 500)]),
         Writers = [spawn_link(fun() -> write_for_ever(T, 1) end) || _ <- [1, 2]],
         Taken = [begin
                      S = ats:snapshot(T),
                      {S, erlang:phash2(sorted(ats:tab2list(S)))}
                  end || _ <- lists:seq(1, 100)],
         #{number := 100} = ats:info(T, snapshots),
         ats_test_lib:until(fun() -> maps:get(memory, ats:info(T, snapshots)) > 0 end, 5000),
         [?assertEqual(Hash, erlang:phash2(sorted(ats:tab2list(S)))) || {S, Hash} <- Taken],
         stop(Writers),
         [true = ats:release(S) || {S, _} <- lists:sort(Taken)],
         nothing_held(T),
         true = ats:delete(T)
     end || Type <- [set, ordered_set, bag]],
    ok.

write_for_ever(T, N) ->
    K = rand:uniform(500),
    true = case rand:uniform(4) of
               1 -> ats:delete(T, K);
               2 -> ats:insert(T, [{rand:uniform(500), N} || _ <- lists:seq(1, 10)]);
               _ -> ats:insert(T, {K, N})
           end,
    write_for_ever(T, N + 1).

stop(Processes) ->
    [begin unlink(P), ats_test_lib:kill(P) end || P <- Processes].

nothing_held(T) ->
    Empty = fun() ->
                    #{number := N, queries := Q, memory := M} = ats:info(T, snapshots),
                    {N, Q, M} =:= {0, 0, 0}
            end,
    ats_test_lib:until(Empty, 5000).

%% ----- differences -----

differences(_Config) ->
    [begin
         T = new(Type, []),
         First = ats:snapshot(T),
         Was = ats:tab2list(T),
         [change(T, 1) || _ <- lists:seq(1, Changes)],
         Second = ats:snapshot(T),
         Is = ats:tab2list(T),
         %% Later changes do not matter.
         [change(T, 2) || _ <- lists:seq(1, 100)],
         ?assertEqual(sorted(Is), sorted(apply_all(ats:diff(First, Second), Was))),
         ?assertEqual(sorted(Was), sorted(apply_all(ats:diff(Second, First), Is))),
         ?assertEqual([], ats:diff(First, First)),
         Count = fun(_, N) -> N + 1 end,
         ?assertEqual(length(ats:diff(First, Second)), ats:diff(First, Second, Count, 0)),
         [true = ats:release(S) || S <- [First, Second]],
         true = ats:delete(T)
     end || Type <- ?TYPES, Changes <- [0, 1, 30, 3000]],
    ok.

apply_all(Differences, Objects) ->
    lists:foldl(fun({insert, O}, All) -> [O | All];
                   ({delete, O}, All) -> remove(O, All);
                   ({change, Old, New}, All) -> [New | remove(Old, All)]
                end, Objects, Differences).

remove(Object, [Object | Rest]) -> Rest;
remove(Object, [Other | Rest]) -> [Other | remove(Object, Rest)].

%% Differences of snapshots that are made beside writers of objects, lists, long lists and clears.
differences_beside_writers(_Config) ->
    [begin
         T = ats:new(t, [Type, public]),
         Long = fun Long(N) ->
                        true = ats:insert(T, [{K, N} || K <- lists:seq(1, 3000)]),
                        _ = [ats:delete(T, K) || K <- lists:seq(1, 3000, 7)],
                        Long(N + 1)
                end,
         Writers = [spawn_link(fun() -> write_for_ever(T, 1) end),
                    spawn_link(fun() -> Long(1000000) end)],
         [begin
              First = ats:snapshot(T),
              timer:sleep(rand:uniform(10)),
              Round rem 10 =:= 0 andalso ats:delete_all_objects(T),
              Second = ats:snapshot(T),
              Made = apply_all(ats:diff(First, Second), ats:tab2list(First)),
              ?assertEqual(sorted(ats:tab2list(Second)), sorted(Made)),
              [true = ats:release(S) || S <- [First, Second]]
          end || Round <- lists:seq(1, 60)],
         stop(Writers),
         nothing_held(T),
         true = ats:delete(T)
     end || Type <- [set, ordered_set]],
    ok.

%% ----- reads in many calls -----

%% Money goes from account to account, in lists and in steps that only a moment sees as a whole;
%% reads in many calls find all of it.
sums_in_many_calls(Config) ->
    [begin
         T = ats:new(t, [Type, public]),
         Accounts = 3000,
         true = ats:insert(T, [{K, 100} || K <- lists:seq(1, Accounts)]),
         Writers = [spawn_link(fun() -> transfer_for_ever(T, Accounts, Odd) end) || Odd <- [0, 1]],
         File = filename:join(?config(priv_dir, Config), "sums"),
         Sum = fun(Objects) -> lists:sum([V || {_, V} <- Objects]) end,
         Add = fun({_, V}, N) -> N + V end,
         Reads = [fun() -> ats:foldl(Add, 0, T) end,
                  fun() -> ats:foldr(Add, 0, T) end,
                  fun() -> Sum(chunks(ats:select(T, ?ALL, 10))) end,
                  fun() -> Sum(chunks_of(match_object, ats:match_object(T, '_', 7))) end,
                  fun() ->
                          Bound = chunks_of(match, ats:match(T, {'_', '$1'}, 9)),
                          lists:sum([V || [V] <- Bound])
                  end,
                  fun() -> lists:sum(qlc:e(qlc:q([V || {_, V} <- ats:table(T)]))) end,
                  fun() ->
                          Steps = ats:table(T, {traverse, first_next}),
                          lists:sum(qlc:e(qlc:q([V || {_, V} <- Steps])))
                  end,
                  fun() ->
                          ok = ats:tab2file(T, File, [{extended_info, [object_count]}]),
                          {ok, Read} = ats:file2tab(File, [{verify, true}]),
                          N = Sum(ats:tab2list(Read)),
                          true = ats:delete(Read),
                          N
                  end]
             ++ [fun() ->
                         Sum(chunks_of(select, ats:select_reverse(T, ?ALL, 11)))
                 end || Type =:= ordered_set],
         [?assertEqual({Type, N, 100 * Accounts}, {Type, N, Read()})
          || _ <- lists:seq(1, 5), {N, Read} <- lists:zip(lists:seq(1, length(Reads)), Reads)],
         stop(Writers),
         nothing_held(T),
         true = ats:delete(T)
     end || Type <- [set, ordered_set]],
    ok.

chunks_of(_Function, '$end_of_table') -> [];
chunks_of(Function, {Results, Continuation}) ->
    Results ++ chunks_of(Function, ats:Function(Continuation)).

transfer_for_ever(T, Accounts, Odd) ->
    Half = Accounts div 2,
    From = 2 * rand:uniform(Half) - Odd,
    case 2 * rand:uniform(Half) - Odd of
        From ->
            ok;
        To ->
            [{_, A}] = ats:lookup(T, From),
            [{_, B}] = ats:lookup(T, To),
            true = ats:insert(T, [{From, A - 1}, {To, B + 1}])
    end,
    transfer_for_ever(T, Accounts, Odd).

%% A fold that inserts for each object two others ends, and one that deletes meets all.
folds_do_not_meet_their_own_changes(_Config) ->
    [begin
         T = ats:new(t, [Type, public]),
         true = ats:insert(T, [{K, K} || K <- lists:seq(1, 1000)]),
         Grow = fun({K, _}, N) ->
                        true = ats:insert(T, [{{new, K}, 1}, {K + 100000, 1}]),
                        N + 1
                end,
         ?assertEqual(1000, ats:Fold(Grow, 0, T)),
         ?assertEqual(3000, ats:info(T, size)),
         Shrink = fun({K, _}, N) ->
                          true = ats:delete(T, K),
                          _ = ats:delete(T, {new, K}),
                          N + 1
                  end,
         ?assertEqual(3000, ats:Fold(Shrink, 0, T)),
         ?assertEqual(0, ats:info(T, size)),
         nothing_held(T),
         %% A function that fails leaves nothing.
         true = ats:insert(T, {a, 1}),
         ?assertError(function_clause, ats:Fold(fun(b, c) -> d end, 0, T)),
         nothing_held(T),
         true = ats:delete(T)
     end || Type <- ?TYPES, Fold <- [foldl, foldr]],
    ok.

%% A fold meets the objects that the table lists, in the same order, for any number of objects and
%% of keys.
folds_of_few_and_more(_Config) ->
    [begin
         T = ats:new(t, [Type, public]),
         true = ats:insert(T, [{Key(N), N} || N <- lists:seq(1, Size)]),
         S = ats:snapshot(T),
         All = ats:tab2list(T),
         Collect = fun(Object, Acc) ->
                           true = ats:insert(T, {{new, Object}, 1}),
                           [Object | Acc]
                   end,
         ?assertEqual(sorted(All), sorted(ats:foldl(Collect, [], T))),
         ?assertEqual(sorted(All), sorted(ats:foldr(fun(O, Acc) -> [O | Acc] end, [], S))),
         Order = lists:member(Type, [ordered_set, ordered_bag, ordered_duplicate_bag]),
         [begin
              ?assertEqual(All, lists:reverse(ats:foldl(fun(O, Acc) -> [O | Acc] end, [], S))),
              ?assertEqual(All, ats:foldr(fun(O, Acc) -> [O | Acc] end, [], S))
          end || Order],
         true = ats:release(S),
         nothing_held(T),
         true = ats:delete(T),
         ?assertError(badarg, ats:foldl(Collect, [], T))
     end || Type <- ?TYPES, Size <- [0, 1, 2, 31, 32, 33, 34, 65, 150],
            Key <- [fun(N) -> N end, fun(N) -> N rem 3 end]],
    ok.

%% Chunks of one continuation beside single moves, which leave the sum right at each moment between
%% two lists only.
transfers_beside_chunks(_Config) ->
    T = ats:new(t, [ordered_set, public]),
    true = ats:insert(T, [{K, 0} || K <- lists:seq(1, 1000)]),
    true = ats:insert(T, {1, 1}),
    %% Lists move one object round; without one moment it is met twice, or not at all.
    Round = fun Round(K) ->
                    Next = K rem 1000 + 1,
                    true = ats:insert(T, [{K, 0}, {Next, 1}]),
                    Round(Next)
            end,
    Writer = spawn_link(fun() -> Round(1) end),
    [begin
         Spec = [{{'_', '$1'}, [], ['$1']}],
         ?assertEqual(1, lists:sum(chunks(ats:select(T, Spec, N)))),
         ?assertEqual(1, lists:sum(chunks(ats:select_reverse(T, Spec, N))))
     end || _ <- lists:seq(1, 20), N <- [1, 10, 999]],
    stop([Writer]),
    nothing_held(T),
    true = ats:delete(T).

%% ----- ends -----

how_a_snapshot_ends(_Config) ->
    T = ats:new(prices, [set, public]),
    true = ats:insert(T, {a, 1}),
    Reason = fun(S) ->
                     {'EXIT', {badarg, Stack}} = catch ats:lookup(S, a),
                     Texts = ats_errors:format_error(badarg, Stack),
                     #{1 := Text} = ats_oracle:without_hints(Texts),
                     Text
             end,
    Released = ats:snapshot(T),
    ?assertEqual(T, ats:info(Released, snapshot_of)),
    ?assertEqual(self(), ats:info(Released, owner)),
    ?assert(is_integer(ats:info(Released, age))),
    ?assertEqual(undefined, ats:info(T, snapshot_of)),
    true = ats:release(Released),
    ?assertEqual(<<"the snapshot was released">>, Reason(Released)),
    ?assertError(badarg, ats:release(Released)),
    Old = ats:snapshot(T, [{max_age, 50}]),
    ?assertEqual([{a, 1}], ats:lookup(Old, a)),
    ats_test_lib:until(fun() -> ats:info(T, snapshots) =:= none_left(1) end, 5000),
    ?assertEqual(<<"the snapshot has ended: it is older than its option `max_age' says">>,
                 Reason(Old)),
    ?assertEqual([undefined || _ <- [all | info_items()]],
                 [ats:info(Old) | [ats:info(Old, Item) || Item <- info_items()]]),
    true = ats:release(Old),
    Deleted = ats:snapshot(T),
    true = ats:delete(Deleted),
    ?assertEqual(<<"the snapshot was released">>, Reason(Deleted)),
    ?assertError(badarg, ats:release(Deleted)),
    Self = self(),
    {Owner, Monitor} = spawn_monitor(fun() -> Self ! {snapshot, ats:snapshot(T)} end),
    Orphan = receive {snapshot, S} -> S end,
    receive {'DOWN', Monitor, process, Owner, normal} -> ok end,
    ?assertEqual(<<"the snapshot has ended with the process that made it">>, Reason(Orphan)),
    Forever = ats:snapshot(T, [{max_age, infinity}]),
    true = ats:delete(T),
    ?assertEqual([{a, 1}], ats:lookup(Forever, a)),
    ?assertEqual(false, lists:member(Forever, ats:all())),
    true = ats:release(Forever).

info_items() ->
    [size, memory, id, name, owner, heir, type, keypos, protection, node, snapshot_of, age, fixed,
     safe_fixed, safe_fixed_monotonic_time, stats, snapshots, full_scan, binary].

none_left(Evicted) ->
    #{number => 0, queries => 0, oldest => 0, memory => 0, evicted => Evicted}.

%% The oldest end when more is held back than may be; queries on their way do not.
memory_is_bound(_Config) ->
    T = ats:new(t, [set, public, {snapshot_memory, 2000000}]),
    Large = fun(N) -> [{K, N, binary_to_list(<<0:(8 * 200)>>)} || K <- lists:seq(1, 1000)] end,
    true = ats:insert(T, Large(0)),
    Add = fun(_, N) ->
                  %% Everything is replaced more than once in the middle of the fold.
                  N rem 500 =:= 0 andalso ats:insert(T, Large(N)),
                  timer:sleep(N div 999 * 300),
                  N + 1
          end,
    First = ats:snapshot(T),
    ?assertEqual(1000, ats:foldl(Add, 0, T)),
    Others = [begin
                  S = ats:snapshot(T),
                  true = ats:insert(T, Large(N)),
                  S
              end || N <- lists:seq(1, 20)],
    ats_test_lib:until(fun() -> maps:get(memory, ats:info(T, snapshots)) =< 2000000 end, 5000),
    {'EXIT', {badarg, Stack}} = catch ats:lookup(First, 1),
    #{1 := Text} = ats_oracle:without_hints(ats_errors:format_error(badarg, Stack)),
    ?assertMatch({match, _}, re:run(Text, "snapshot_memory")),
    %% Snapshots are counted just after they have ended.
    Counted = fun() -> #{number := N, evicted := E} = ats:info(T, snapshots), N + E =:= 21 end,
    ats_test_lib:until(Counted, 5000),
    #{number := Left} = ats:info(T, snapshots),
    ?assert(Left < 20),
    %% The remaining snapshots are the newest.
    {Ended, Living} = lists:split(20 - Left, Others),
    [?assertError(badarg, ats:lookup(S, 1)) || S <- Ended],
    [?assertMatch([{1, N, _}], ats:lookup(S, 1))
     || {N, S} <- lists:zip(lists:seq(20 - Left, 19), Living)],
    true = ats:delete(T),
    ?assertError(badarg, ats:new(t, [{snapshot_memory, -1}])),
    ?assertError(badarg, ats:new(t, [{snapshot_memory, many}])),
    true = ats:delete(ats:new(t, [{snapshot_memory, infinity}])).

%% Held-back memory includes binaries that it shares with nothing later: those that were replaced,
%% and not one that stays while something beside it changes. It includes those of large bags, too.
memory_of_binaries_is_bound(_Config) ->
    Binary = fun() -> binary:copy(<<7>>, 100000) end,
    [begin
         T = ats:new(t, [Type, public, {snapshot_memory, 1000000}]),
         true = ats:insert(T, [{K, Binary(), 0} || K <- [k, l]]),
         Type =:= bag
             andalso ats:insert(T, [{k, binary:copy(<<N>>, 2000), N} || N <- lists:seq(1, 200)]),
         Kept = ats:snapshot(T),
         [begin
              S = ats:snapshot(T),
              Type =:= bag orelse ats:update_counter(T, k, {3, 1}),
              Type =:= bag andalso ats:insert(T, {k, <<>>, N}),
              S
          end || N <- lists:seq(1001, 1030)],
         timer:sleep(300),
         #{evicted := None, memory := Little} = ats:info(T, snapshots),
         ?assertEqual(0, None),
         ?assert(Little < 300000),
         Others = [begin
                       S = ats:snapshot(T),
                       true = ats:delete(T, l),
                       true = ats:insert(T, {l, Binary(), N}),
                       S
                   end || N <- lists:seq(1, 30)],
         Bound = fun() -> maps:get(memory, ats:info(T, snapshots)) =< 1000000 end,
         ats_test_lib:until(Bound, 5000),
         #{evicted := Evicted} = ats:info(T, snapshots),
         ?assert(Evicted > 20),
         ?assertError(badarg, ats:lookup(Kept, k)),
         ?assertMatch([_ | _], ats:lookup(lists:last(Others), l)),
         true = ats:delete(T),
         true = ats:release(Kept)
     end || Type <- [set, ordered_set, bag]],
    ok.

%% Whoever hears of the end of a process counts none of its snapshots, however many there were.
many_end_with_their_owner(_Config) ->
    T = ats:new(t, [public]),
    Mine = ats:snapshot(T),
    {Owner, Monitor} = spawn_monitor(fun() -> [ats:snapshot(T) || _ <- lists:seq(1, 10000)] end),
    receive {'DOWN', Monitor, process, Owner, normal} -> ok end,
    ?assertMatch(#{number := 1}, ats:info(T, snapshots)),
    true = ats:release(Mine),
    ?assertMatch(#{number := 0, oldest := 0}, ats:info(T, snapshots)),
    true = ats:delete(T).

owners_that_are_killed(_Config) ->
    [begin
         T = ats:new(t, [Type, public]),
         true = ats:insert(T, [{K, 0} || K <- lists:seq(1, 2000)]),
         Processes = [spawn(fun() -> Work(T) end)
                      || Work <- [fun(X) -> ats:snapshot(X), timer:sleep(infinity) end,
                                  fun(X) ->
                                          ats:foldl(fun(_, _) -> timer:sleep(infinity) end, 0, X)
                                  end,
                                  fun(X) ->
                                          Kept = ats:select(X, ?ALL, 1),
                                          timer:sleep(infinity),
                                          Kept
                                  end,
                                  fun(X) ->
                                          Cursor = qlc:cursor(ats:table(X, {n_objects, 1})),
                                          [_] = qlc:next_answers(Cursor, 1),
                                          timer:sleep(infinity)
                                  end]],
         ats_test_lib:until(
           fun() ->
                   #{number := N, queries := Q} = ats:info(T, snapshots),
                   {N, Q >= 3} =:= {1, true}
           end, 5000),
         true = ats:insert(T, [{K, 1} || K <- lists:seq(1, 2000)]),
         [ats_test_lib:kill(P) || P <- Processes],
         nothing_held(T),
         true = ats:delete(T)
     end || Type <- [set, ordered_set, bag]],
    ok.

%% A query whose table is deleted ends as in `ets'; a snapshot stays.
tables_that_are_deleted(_Config) ->
    [begin
         T = ats:new(t, [Type, public]),
         true = ats:insert(T, [{K, 0} || K <- lists:seq(1, 1000)]),
         S = ats:snapshot(T),
         {_, Chunk} = ats:select(T, ?ALL, 5),
         Delete = fun(_, N) -> N =:= 150 andalso ats:delete(T), N + 1 end,
         ?assertError(badarg, ats:foldl(Delete, 0, T)),
         ?assertError(badarg, ats:select(Chunk)),
         ?assertEqual(1000, length(ats:tab2list(S))),
         true = ats:release(S)
     end || Type <- [set, ordered_set]],
    ok.

tables_that_are_cleared(_Config) ->
    [begin
         T = ats:new(t, [Type, public]),
         true = ats:insert(T, [{K, 0} || K <- lists:seq(1, 20000)]),
         S = ats:snapshot(T),
         {First, Chunk} = ats:select(T, ?ALL, 5),
         true = ats:delete_all_objects(T),
         true = ats:insert(T, {1, new}),
         After = ats:snapshot(T),
         ?assertEqual(20000, length(ats:tab2list(S))),
         ?assertEqual(20000, length(First ++ chunks(ats:select(Chunk)))),
         ?assertEqual([{1, new}], ats:tab2list(After)),
         %% All of the old objects are held back.
         ?assert(maps:get(memory, ats:info(T, snapshots)) > 20000 * 16),
         ?assertEqual([{1, new}], apply_all(ats:diff(S, After), ats:tab2list(S))),
         true = ats:release(S),
         true = ats:release(After),
         nothing_held(T),
         true = ats:delete(T)
     end || Type <- ?TYPES],
    ok.

%% Counters and merges in place leave a snapshot as it is, and go on in place afterwards.
counters_and_merges(_Config) ->
    [begin
         T = ats:new(t, [Type, public]),
         true = ats:insert(T, [{c, 0}, {m, 0}]),
         [ats:update_counter(T, c, 1) || _ <- lists:seq(1, 10)],
         S = ats:snapshot(T),
         [begin ats:update_counter(T, c, 1), ats:merge(T, m, 5, sum) end
          || _ <- lists:seq(1, 100)],
         ?assertEqual([{c, 10}, {m, 0}], sorted(ats:tab2list(S))),
         ?assertEqual([{c, 110}, {m, 500}], sorted(ats:tab2list(T))),
         Writers = [spawn_link(fun Count() -> ats:update_counter(T, c, 1), Count() end)
                    || _ <- [1, 2]],
         [begin
              Now = ats:snapshot(T),
              [{c, N}] = ats:lookup(Now, c),
              timer:sleep(1),
              ?assertEqual([{c, N}], ats:lookup(Now, c)),
              true = ats:release(Now)
          end || _ <- lists:seq(1, 100)],
         stop(Writers),
         true = ats:release(S),
         true = ats:delete(T)
     end || Type <- [set, ordered_set]],
    ok.

%% A program that asks for one chunk only, a thousand times, holds nothing back in the end.
continuations_that_are_dropped(_Config) ->
    T = ats:new(t, [ordered_set, public]),
    true = ats:insert(T, [{K, 0} || K <- lists:seq(1, 1000)]),
    in_another_process(
      fun() ->
              [begin
                   {[_], _} = ats:select(T, ?ALL, 1),
                   true = ats:insert(T, {rand:uniform(1000), N})
               end || N <- lists:seq(1, 1000)],
              true = erlang:garbage_collect(),
              nothing_held(T)
      end),
    true = ats:delete(T).

%% ----- on disk -----

checkpoints(Config) ->
    [begin
         T = ats:new(t, [Type, public, {keypos, 2}]),
         true = ats:insert(T, [{K rem 7, K, make_ref()} || K <- lists:seq(1, 2000)]),
         Directory = filename:join(?config(priv_dir, Config), Type),
         ?assertEqual(ok, ats:checkpoint(T, Directory)),
         {ok, Name} = dats:open_file(Directory),
         ?assertEqual(Type, dats:info(Name, type)),
         ?assertEqual(2, dats:info(Name, keypos)),
         ?assertEqual(sorted(ats:tab2list(T)), sorted(dats:tab2list(Name))),
         ok = dats:close(Name),
         %% An existing directory stays.
         ?assertEqual({error, {file_error, Directory, eexist}}, ats:checkpoint(T, Directory)),
         {ok, Again} = dats:open_file(Directory),
         ?assertEqual(2000, dats:info(Again, size)),
         ok = dats:close(Again),
         {error, _} = ats:checkpoint(T, filename:join([Directory, "no", "way"])),
         ?assertEqual([], temporary(?config(priv_dir, Config))),
         true = ats:delete(T)
     end || Type <- ?TYPES],
    ok.

%% Returns the names in a folder that are not those of its tables.
temporary(Folder) ->
    {ok, Names} = file:list_dir(Folder),
    [Name || "." ++ _ = Name <- Names].

%% Names that a program may use are not taken.
checkpoints_leave_others_alone(Config) ->
    Folder = filename:join(?config(priv_dir, Config), "alone"),
    ok = file:make_dir(Folder),
    At = fun(Name) -> filename:join(Folder, Name) end,
    Others = ["bar.unfinished", "bar.repair", "bar.new", ".bar"],
    [begin
         {ok, U} = dats:open_file(u, [{file, At(Name)}]),
         ok = dats:insert(U, {precious, Name}),
         ok = dats:close(U)
     end || Name <- Others],
    T = ats:new(t, []),
    true = ats:insert(T, {k, 1}),
    ?assertEqual(ok, ats:checkpoint(T, At("bar"))),
    ok = file:delete(filename:join(At("bar"), "manifest")),
    {ok, bar} = dats:open_file(bar, [{file, At("bar")}, {repair, true}]),
    ok = dats:close(bar),
    [begin
         {ok, U} = dats:open_file(u, [{file, At(Name)}]),
         ?assertEqual([{precious, Name}], dats:tab2list(U)),
         ok = dats:close(U)
     end || Name <- Others],
    {ok, Names} = file:list_dir(Folder),
    ?assertEqual(lists:sort(["bar", "bar.damaged" | Others]), lists:sort(Names)),
    %% Temporary names are for nobody else.
    Reserved = filename:join(At(".ats-temporary-0"), "x"),
    ?assertError(badarg, ats:checkpoint(T, Reserved)),
    ?assertError(badarg, dats:open_file(u, [{file, Reserved}])),
    ?assertError(badarg, dats:copy_table(At("bar"), Reserved)),
    true = ats:delete(T).

checkpoints_by_any_spelling(Config) ->
    Folder = filename:join(?config(priv_dir, Config), "spelled"),
    ok = file:make_dir(Folder),
    {ok, Before} = file:get_cwd(),
    ok = file:set_cwd(Folder),
    T = ats:new(t, []),
    true = ats:insert(T, {k, 1}),
    {ok, u} = dats:open_file(u, [{file, "u"}]),
    try
        [begin
             ?assertEqual({Spelling, ok}, {Spelling, Make(Spelling)}),
             ?assertEqual({Spelling, {error, {file_error, Spelling, eexist}}},
                          {Spelling, Make(Spelling)}),
             ?assertEqual(true, dats:is_dats_file(Spelling)),
             {ok, S} = dats:open_file(s, [{file, Spelling}, {repair, force}]),
             ok = dats:close(S),
             ?assertEqual(ok, dats:copy_table(Spelling, "copy/")),
             ?assertEqual(ok, dats:rename_table("./copy//", Spelling)),
             ?assertEqual(ok, dats:rename_table(Spelling, "renamed/.")),
             ?assertEqual(ok, dats:destroy("renamed/")),
             ?assertEqual(["u"], element(2, file:list_dir(".")))
         end || Make <- [fun(To) -> ats:checkpoint(T, To) end,
                         fun(To) -> dats:checkpoint(u, To) end],
                Spelling <- ["a", "a/", "a//", "./a", "a/.", "./././a/./", <<"a/">>, <<"./a">>,
                             ["a", "/"], [$a, [$/, [$.]]], a, filename:absname("a") ++ "//",
                             filename:join(Folder, "/") ++ Folder ++ "/./a/"]]
    after
        ok = dats:close(u),
        ok = file:set_cwd(Before)
    end,
    true = ats:delete(T).

%% Nothing stays of the work of a killed process, or of a killed virtual machine.
checkpoints_of_killed_callers(Config) ->
    Folder = filename:join(?config(priv_dir, Config), "killed"),
    ok = file:make_dir(Folder),
    To = filename:join(Folder, "table"),
    T = ats:new(t, [public]),
    true = ats:insert(T, [{K, binary:copy(<<K:64>>, 100)} || K <- lists:seq(1, 50000)]),
    [begin
         {Pid, Monitor} = spawn_monitor(fun() -> ats:checkpoint(T, To) end),
         ok = ats_test_lib:until(fun() -> temporary(Folder) =/= [] end, 5000),
         timer:sleep(Wait),
         true = exit(Pid, kill),
         receive {'DOWN', Monitor, process, Pid, _} -> ok end,
         ok = ats_test_lib:until(fun() -> temporary(Folder) =:= [] end, 5000),
         %% Unless it was done before.
         _ = dats:destroy(To),
         ?assertEqual({ok, []}, file:list_dir(Folder))
     end || Wait <- [0, 10, 30]],
    {ok, Vm, _} = ats_test_lib:start_vm([]),
    Begin = fun() ->
                    Of = ats:new(t, [public]),
                    true = ats:insert(Of, [{K, binary:copy(<<K:64>>, 100)}
                                           || K <- lists:seq(1, 50000)]),
                    ats:checkpoint(Of, To)
            end,
    Kill = ats_test_lib:killer_of(Vm),
    _ = spawn(fun() -> ats_test_lib:call(Vm, erlang, apply, [Begin, []]) end),
    ok = ats_test_lib:until(fun() -> temporary(Folder) =/= [] end, 10000),
    %% Directories in use stay.
    Other = [{file, filename:join(Folder, "u")}],
    {ok, u} = dats:open_file(u, Other),
    ?assertMatch([_], temporary(Folder)),
    ok = dats:close(u),
    ok = Kill(),
    ok = ats_test_lib:until(fun() ->
                                    {ok, u} = dats:open_file(u, Other),
                                    ok = dats:close(u),
                                    temporary(Folder) =:= []
                            end, 5000),
    ?assertEqual({ok, ["u"]}, file:list_dir(Folder)),
    true = ats:delete(T).

wrong_arguments(_Config) ->
    T = ats:new(t, [set]),
    Other = ats:new(t, [set]),
    B = ats:new(t, [set, {backend, btree}]),
    [S, O] = [ats:snapshot(X) || X <- [T, Other]],
    Text = fun(Function, Arguments) ->
                   {'EXIT', {badarg, Stack}} = catch apply(ats, Function, Arguments),
                   ats_oracle:without_hints(ats_errors:format_error(badarg, Stack))
           end,
    [?assertEqual(#{2 => <<"invalid options">>}, Text(snapshot, [T, Options]))
     || Options <- [[{max_age, 0}], [{max_age, a}], [max_age], x, [{max_age, 1} | x]]],
    ?assertMatch(#{1 := _}, Text(snapshot, [no_table])),
    ?assertMatch(#{1 := <<"the table is a snapshot", _/binary>>}, Text(snapshot, [S])),
    ?assertMatch(#{1 := _}, Text(snapshot, [B])),
    ?assertMatch(#{1 := <<"not a snapshot of a table">>}, Text(release, [T])),
    ?assertMatch(#{1 := <<"not a snapshot of a table">>}, Text(release, [make_ref()])),
    ?assertMatch(#{1 := <<"not a snapshot of a table">>}, Text(diff, [T, S])),
    ?assertMatch(#{2 := <<"not a snapshot of a table">>}, Text(diff, [S, T])),
    ?assertMatch(#{2 := <<"a snapshot of another table">>}, Text(diff, [S, O])),
    Private = ats:new(t, [private]),
    in_another_process(fun() -> ?assertError(badarg, ats:snapshot(Private)) end),
    ?assertError(badarg, dats:lookup(S, a)),
    ?assertError(badarg, ats:checkpoint(no_table, "x")),
    [true = ats:delete(X) || X <- [T, Other, B, Private, S, O]],
    ok.

%% Nobody waits for a holder: every call returns beside processes that have a snapshot, a
%% continuation, a fixation or a fold of the table, and never let go. `docs/inside/limits.md' names
%% the tests of the other waits.
-module(ats_waits_SUITE).

-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0]).
-export([calls_beside_others/1, calls_of_the_holder/1, taking_beside_holders/1,
         takers_that_are_killed/1, tables_on_disk/1]).

-define(TYPES, [set, ordered_set, bag]).
-define(ALL, [{'_', [], ['$_']}]).
-define(SIZE, 300).
%% A call that waits for a holder waits longer: a continuation that nobody uses ends after ten
%% seconds.
-define(MS, 5000).

suite() -> [{timetrap, {minutes, 2}}].

all() ->
    [calls_beside_others, calls_of_the_holder, taking_beside_holders, takers_that_are_killed,
     tables_on_disk].

%% ----- holders -----

%% Ways of a process to hold a table: functions that call another one meanwhile.
holds(Module) ->
    Fold = fun(F) ->
                   fun(T, Do) ->
                           Module:F(fun(_, first) -> Do(); (_, done) -> done end, first, T)
                   end
           end,
    [{snapshot, fun(T, Do) -> S = Module:snapshot(T), Do(), Module:info(S, size) end},
     {continuation, fun(T, Do) -> {[_], C} = Module:select(T, ?ALL, 1), Do(), C end},
     {fixation, fun(T, Do) -> Module:safe_fixtable(T, true), Do() end},
     {foldl, Fold(foldl)},
     {foldr, Fold(foldr)}].

%% A process that holds a table for ever. It is suspended, so that not even a message moves it.
holder(T, Hold) ->
    Test = self(),
    {Pid, _} = spawn_monitor(fun() ->
                                     Hold(T, fun() ->
                                                     Test ! {held, self()},
                                                     receive never -> done end
                                             end)
                             end),
    receive
        {held, Pid} -> true = erlang:suspend_process(Pid);
        {'DOWN', _, process, Pid, Why} -> ct:fail(Why)
    end,
    Pid.

%% Runs calls in a process of its own. The text of the first one that does not return is told.
returns(What, Calls) ->
    Test = self(),
    {Pid, Monitor} = spawn_monitor(fun() ->
                                           [begin
                                                Test ! {self(), Name},
                                                Call()
                                            end || {Name, Call} <- Calls]
                                   end),
    returns(What, Pid, Monitor, none).

returns(What, Pid, Monitor, Last) ->
    receive
        {Pid, Name} -> returns(What, Pid, Monitor, Name);
        {'DOWN', Monitor, process, Pid, normal} -> ok;
        {'DOWN', Monitor, process, Pid, Why} -> ct:fail({What, Last, Why})
    after ?MS ->
        exit(Pid, kill),
        ct:fail({What, Last, waits})
    end.

objects() -> [{K, K} || K <- lists:seq(1, ?SIZE)].

filled(Type) ->
    T = ats:new(t, [Type, public]),
    true = ats:insert(T, objects()),
    T.

%% ----- tables in memory -----

%% Each writes to the table, reads all of it or changes its state. Calls that empty it fill it
%% again.
calls(T) ->
    Type = ats:info(T, type),
    Fill = fun(_) -> true = ats:insert(T, objects()) end,
    Long = [{K, long} || K <- lists:seq(1, 2000)],
    Always =
        [{insert, fun() -> ats:insert(T, {1, 2}) end},
         {insert_list, fun() -> ats:insert(T, [{1, 2}, {2, 3}]) end},
         {insert_long_list, fun() -> ats:insert(T, Long) end},
         {insert_new, fun() -> ats:insert_new(T, [{a, 2}, {b, 3}]) end},
         {take, fun() -> [_ | _] = ats:take(T, 2) end},
         {delete, fun() -> ats:delete(T, 3) end},
         {delete_object, fun() -> ats:delete_object(T, {4, 4}) end},
         {select_delete, fun() -> ats:select_delete(T, [{{'$1', '_'}, [], [{'<', '$1', 9}]}]) end},
         {match_delete, fun() -> ats:match_delete(T, {10, '_'}) end},
         {select_take, fun() -> ats:select_take(T, [{{11, '_'}, [], [true]}]) end},
         {snapshot, fun() -> ats:release(ats:snapshot(T)) end},
         {diff, fun() ->
                        [First, Second] = [ats:snapshot(T), ats:snapshot(T)],
                        [] = ats:diff(First, Second)
                end},
         {tab2list, fun() -> [_ | _] = ats:tab2list(T) end},
         {select, fun() -> {[_], _} = ats:select(T, ?ALL, 1) end},
         {foldl, fun() -> ats:foldl(fun(_, N) -> N + 1 end, 0, T) end},
         {walk, fun() -> ats:next(T, ats:first(T)) end},
         {slot, fun() -> ats:slot(T, 0) end},
         {info, fun() -> [_ | _] = ats:info(T) end},
         {memory, fun() -> true = ats:info(T, memory) > 0 end},
         {snapshots, fun() -> #{} = ats:info(T, snapshots) end},
         {binaries, fun() -> ats:info(T, binary) end},
         {safe_fixtable, fun() -> ats:safe_fixtable(T, true), ats:safe_fixtable(T, false) end},
         {rename, fun() -> ats:rename(T, u) end},
         {take_all_objects, fun() -> Fill([_ | _] = ats:take_all_objects(T)) end},
         {select_take_all, fun() -> Fill([_ | _] = ats:select_take(T, [{'_', [], [true]}])) end},
         {delete_all_objects, fun() -> Fill(ats:delete_all_objects(T)) end}],
    Single =
        [{update_counter, fun() -> ats:update_counter(T, 12, 1) end},
         {update_element, fun() -> ats:update_element(T, 13, {2, x}) end},
         {merge, fun() -> ats:merge(T, 14, 1, sum) end},
         {select_replace,
          fun() -> ats:select_replace(T, [{{'$1', '_'}, [], [{{'$1', 1}}]}]) end}],
    Ordered =
        [{take_first, fun() -> [_] = ats:take_first(T) end},
         {take_last, fun() -> [_] = ats:take_last(T) end},
         {range_delete, fun() -> ats:range_delete(T, 20, 30) end},
         {rank, fun() -> ats:rank(T, 40) end},
         {nth, fun() -> ats:nth(T, 5) end}],
    [Call || Call <- Single, Type =/= bag] ++ [Call || Call <- Ordered, Type =:= ordered_set]
        ++ Always.

calls_beside_others(_) ->
    [begin
         T = filled(Type),
         Holder = holder(T, Hold),
         ok = returns({Type, Name}, calls(T) ++ [{end_of_table, fun() -> ats:delete(T) end}]),
         ats_test_lib:kill(Holder)
     end || Type <- ?TYPES, {Name, Hold} <- holds(ats)].

%% The process that calls is the holder itself.
calls_of_the_holder(_) ->
    [begin
         T = filled(Type),
         Inside = fun() -> [Call() || {_, Call} <- calls(T)], done end,
         ok = returns({Type, Name}, [{inside, fun() -> Hold(T, Inside) end}]),
         true = ats:delete(T)
     end || Type <- ?TYPES, {Name, Hold} <- holds(ats)].

%% All objects are taken, and the holders see the old ones.
taking_beside_holders(_) ->
    All = lists:sort(objects()),
    Takes = [fun ats:take_all_objects/1, fun(T) -> ats:select_take(T, [{'_', [], [true]}]) end],
    [begin
         T = filled(Type),
         Holders = [holder(T, Hold) || {_, Hold} <- holds(ats)],
         S = ats:snapshot(T),
         {[First], C} = ats:select(T, ?ALL, 1),
         ?assertEqual(All, lists:sort(Take(T))),
         ?assertEqual(0, ats:info(T, size)),
         true = ats:insert(T, {new, new}),
         ?assertEqual(All, lists:sort(ats:tab2list(S))),
         ?assertEqual(All, lists:sort([First | rest(C)])),
         ?assertEqual([{new, new}], Take(T)),
         [ats_test_lib:kill(Holder) || Holder <- Holders],
         true = ats:delete(T)
     end || Type <- ?TYPES, Take <- Takes].

rest(C) ->
    case ats:select(C) of
        {Objects, Next} -> Objects ++ rest(Next);
        '$end_of_table' -> []
    end.

%% A long list is written all the time, and processes that take all objects are killed. Those that
%% had to wait have taken nothing: each list is there, or was taken as a whole.
takers_that_are_killed(_) ->
    List = [{K, K} || K <- lists:seq(1, 5000)],
    Size = length(List),
    T = ats:new(t, [set, public]),
    Writer = spawn_link(fun() -> write_for_ever(T, List) end),
    [begin
         Taker = spawn(fun() -> take_for_ever(T, Size) end),
         receive after rand:uniform(5) -> ok end,
         ats_test_lib:kill(Taker),
         Found = ats:info(T, size),
         ?assert(Found =:= 0 orelse Found =:= Size)
     end || _ <- lists:seq(1, 50)],
    %% One that comes and goes holds up nobody for longer than a moment.
    ats_test_lib:until(fun() -> ats:info(T, size) =:= Size end, ?MS),
    unlink(Writer),
    ats_test_lib:kill(Writer),
    true = ats:delete(T).

write_for_ever(T, List) ->
    true = ats:insert(T, List),
    write_for_ever(T, List).

take_for_ever(T, Size) ->
    case length(ats:take_all_objects(T)) of
        N when N =:= 0; N =:= Size -> take_for_ever(T, Size)
    end.

%% ----- tables on disk -----

%% Closing leaves the files to the last process that goes through the table. It takes milliseconds,
%% and is tried more than once since others may take the processor.
tables_on_disk(Config) ->
    {ok, Started} = application:ensure_all_started(ats),
    [begin
         File = filename:join(proplists:get_value(priv_dir, Config), Name),
         {ok, T} = dats:open_file(Name, [{type, ordered_set}, {file, File}]),
         ok = dats:insert(T, objects()),
         Holder = holder(T, Hold),
         Fill = fun(_) -> ok = dats:insert(T, objects()) end,
         ok = returns(
                Name,
                [{insert, fun() -> ok = dats:insert(T, {1, 2}) end},
                 {insert_list, fun() -> ok = dats:insert(T, [{1, 2}, {2, 3}]) end},
                 {take, fun() -> [_ | _] = dats:take(T, 2) end},
                 {take_first, fun() -> [_] = dats:take_first(T) end},
                 {delete, fun() -> ok = dats:delete(T, 3) end},
                 {select_take, fun() -> dats:select_take(T, [{{5, '_'}, [], [true]}]) end},
                 {tab2list, fun() -> [_ | _] = dats:tab2list(T) end},
                 {delete_all_objects, fun() -> Fill(dats:delete_all_objects(T)) end},
                 {sync, fun() -> ok = dats:sync(T) end},
                 {flush, fun() -> ok = dats:flush(T) end},
                 {compact, fun() -> ok = dats:compact(T) end},
                 {info, fun() -> [_ | _] = dats:info(T) end},
                 {checkpoint, fun() -> ok = dats:checkpoint(T, File ++ "_checkpoint") end},
                 {diff, fun() -> [] = dats:diff(dats:snapshot(T), dats:snapshot(T)) end}]),
         Reopen = fun() ->
                          ok = dats:close(T),
                          {ok, T} = dats:open_file(Name, [{file, File}])
                  end,
         Again = [begin
                      Other = holder(T, Hold),
                      {Microseconds, _} = timer:tc(Reopen),
                      ats_test_lib:kill(Other),
                      Microseconds
                  end || _ <- lists:seq(1, 3)],
         ?assert(lists:min(Again) < 250000, {Name, Again}),
         ?assertEqual(objects(), dats:tab2list(T)),
         ok = dats:close(T),
         ats_test_lib:kill(Holder)
     end || {Name, Hold} <- holds(dats)],
    [ok = application:stop(Application) || Application <- lists:reverse(Started)],
    ok.

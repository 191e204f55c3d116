%% `fetch/3': values that are made once, for all processes that ask for them at the same time.
-module(ats_fetch_SUITE).

-include_lib("stdlib/include/assert.hrl").

-export([all/0]).
-export([found_or_made/1, made_once/1, failures_are_passed_over/1, ended_holders/1]).
-export([ended_waiters/1, claims_of_ended_holders/1, many_at_a_time/1, killed_at_any_time/1]).
-export([newer_objects/1, nested/1, waits_for_itself/1, deleted_tables/1, killed_servers/1]).
-export([on_disk/1, invalid_on_disk/1, stopped_application/1, invalid/1]).
-export([for_a_time/1]).

-define(TYPES, [set, ordered_set]).

all() ->
    [found_or_made, made_once, failures_are_passed_over, ended_holders, ended_waiters,
     claims_of_ended_holders, many_at_a_time, killed_at_any_time, newer_objects, nested,
     waits_for_itself, deleted_tables, killed_servers, on_disk, invalid_on_disk,
     stopped_application, invalid, for_a_time].

table() -> ats:new(fetched, [public]).

unused() -> fun(_) -> error(called) end.

%% Calls fetch in a new process, which sends the result.
start(T, Key, Function) -> start(ats, T, Key, Function).

start(Module, T, Key, Function) ->
    Self = self(),
    spawn(fun() ->
                  Self ! {self(), try {ok, Module:fetch(T, Key, Function)}
                                  catch Class:Reason -> {Class, Reason} end}
          end).

result(Pid) ->
    receive {Pid, Result} -> Result after 5000 -> error({no_result, Pid}) end.

%% Returns a function that tells this process when it runs, and returns or fails when told.
told() ->
    Self = self(),
    fun(Key) ->
            Self ! {runs, self(), Key},
            receive {return, Value} -> Value; {fail, Reason} -> error(Reason) end
    end.

runs(Pid, Key) ->
    receive {runs, Pid, Key} -> ok after 5000 -> error({does_not_run, Pid}) end.

runs_not() ->
    receive {runs, Pid, Key} -> error({runs, Pid, Key}) after 50 -> ok end.

%% Waits until so many processes wait for the value of a key.
wait_for_waiting(Number) ->
    {state, _Table, _Claims, _Places, Waits} = sys:get_state(ats_fetch),
    case map_size(Waits) of
        Number -> ok;
        _ -> timer:sleep(1), wait_for_waiting(Number)
    end.

%% Checks that nothing is left in the server.
check_rest() ->
    {state, Table, Claims, Places, Waits} = sys:get_state(ats_fetch),
    ?assertEqual({#{}, #{}, #{}}, {Claims, Places, Waits}),
    ?assertEqual([], ets:tab2list(Table)),
    ?assertEqual({monitors, []}, process_info(whereis(ats_fetch), monitors)).

found_or_made(_) ->
    [begin
         T = ats:new(fetched, [Type, named_table]),
         ?assertEqual(1, ats:fetch(T, a, fun(a) -> 1 end)),
         ?assertEqual(1, ats:fetch(T, a, unused())),
         ?assertEqual([{a, 1}], ats:lookup(T, a)),
         true = ats:insert(T, {b, 2, 3}),
         ?assertEqual(2, ats:fetch(T, b, unused())),
         Key = {<<"long">>, [1.5, #{x => self()}]},
         Large = lists:seq(1, 100000),
         ?assertEqual(Large, ats:fetch(T, Key, fun(Same) when Same =:= Key -> Large end)),
         ?assertEqual(Large, ats:fetch(T, Key, unused())),
         ats:delete(T)
     end || Type <- ?TYPES],
    T = ats:new(fetched, [ordered_set]),
    ?assertEqual(one, ats:fetch(T, 1, fun(1) -> one end)),
    ?assertEqual(one, ats:fetch(T, 1.0, unused())),
    check_rest().

made_once(_) ->
    T = table(),
    Calls = counters:new(1, []),
    Make = fun(Key) -> counters:add(Calls, 1, 1), timer:sleep(20), {made, Key} end,
    [begin
         Pids = [start(T, Key, Make) || _ <- lists:seq(1, 1000)],
         [?assertEqual({ok, {made, Key}}, result(Pid)) || Pid <- Pids],
         ?assertEqual(Key, counters:get(Calls, 1))
     end || Key <- lists:seq(1, 5)],
    %% Different keys are made at the same time.
    Told = told(),
    Two = [{start(T, Key, Told), Key} || Key <- [x, y]],
    [runs(Pid, Key) || {Pid, Key} <- Two],
    [Pid ! {return, Key} || {Pid, Key} <- Two],
    [?assertEqual({ok, Key}, result(Pid)) || {Pid, Key} <- Two],
    check_rest().

failures_are_passed_over(_) ->
    T = table(),
    First = start(T, k, told()),
    runs(First, k),
    Second = start(T, k, told()),
    wait_for_waiting(1),
    Third = start(T, k, unused()),
    wait_for_waiting(2),
    runs_not(),
    First ! {fail, reason},
    ?assertEqual({error, reason}, result(First)),
    runs(Second, k),
    Second ! {return, 2},
    [?assertEqual({ok, 2}, result(Pid)) || Pid <- [Second, Third]],
    %% Exceptions of all classes pass unchanged.
    [?assertEqual({Class, x}, try ats:fetch(T, other, fun(_) -> erlang:Class(x) end)
                              catch C:R -> {C, R} end) || Class <- [error, exit, throw]],
    ?assertEqual(false, ats:member(T, other)),
    check_rest().

ended_holders(_) ->
    T = table(),
    Pids = [First | Others] = [begin
                                   Pid = start(T, k, told()),
                                   Before =:= 0 andalso runs(Pid, k),
                                   wait_for_waiting(Before),
                                   Pid
                               end || Before <- lists:seq(0, 9)],
    ?assertEqual(10, length(Pids)),
    lists:foldl(fun(Next, Holder) ->
                        exit(Holder, kill),
                        runs(Next, k),
                        Next
                end, First, Others),
    Last = lists:last(Others),
    Last ! {return, v},
    ?assertEqual({ok, v}, result(Last)),
    check_rest().

ended_waiters(_) ->
    T = table(),
    Holder = start(T, k, told()),
    runs(Holder, k),
    Waiting = [start(T, k, unused()) || _ <- lists:seq(1, 100)],
    wait_for_waiting(100),
    [exit(Pid, kill) || Pid <- Waiting],
    Last = start(T, k, fun(_) -> last end),
    wait_for_waiting(101),
    %% The server asks no process that has ended to make the value.
    Holder ! {fail, reason},
    ?assertEqual({ok, last}, result(Last)),
    _ = sys:get_state(ats_fetch),
    check_rest().

%% A holder that was killed while nobody waited leaves a claim, which is removed in the background,
%% or by the next one that asks.
claims_of_ended_holders(_) ->
    T = table(),
    Left = fun(Key) ->
                   Pid = start(T, Key, told()),
                   runs(Pid, Key),
                   Monitor = monitor(process, Pid),
                   exit(Pid, kill),
                   receive {'DOWN', Monitor, process, Pid, killed} -> ok end
           end,
    Left(k),
    ?assertEqual(1, ats:fetch(T, k, fun(k) -> 1 end)),
    check_rest(),
    [Left(Key) || Key <- lists:seq(1, 10)],
    Holder = start(T, held, told()),
    runs(Holder, held),
    ats_fetch ! look,
    Table = element(2, sys:get_state(ats_fetch)),
    ?assertMatch([{{_, held}, Holder, 0}], ets:tab2list(Table)),
    Holder ! {return, 1},
    ?assertEqual({ok, 1}, result(Holder)),
    check_rest().

%% Processes that fetch few keys, some of which fail, delete the value, or are killed: one function
%% of a key runs at a time, and nothing is left.
many_at_a_time(_) ->
    [begin
         T = table(),
         Running = ets:new(running, [public]),
         Once = fun(Key) ->
                        ?assert(ets:insert_new(Running, {Key})),
                        rand:uniform(3) =:= 1 andalso erlang:yield(),
                        true = ets:delete(Running, Key),
                        case rand:uniform(4) of
                            1 -> error(failed);
                            _ -> Key
                        end
                end,
         Fetch = fun(Key) ->
                         try ats:fetch(T, Key, Once) of
                             Value -> ?assertEqual(Key, Value)
                         catch error:failed -> ok
                         end,
                         rand:uniform(2) =:= 1 andalso ats:delete(T, Key)
                 end,
         Pids = [spawn_monitor(fun() -> [Fetch(rand:uniform(Keys)) || _ <- lists:seq(1, 1000)] end)
                 || _ <- lists:seq(1, 8)],
         [receive {'DOWN', Monitor, process, Pid, Why} -> ?assertEqual(normal, Why) end
          || {Pid, Monitor} <- Pids],
         check_rest()
     end || Keys <- [1, 2, 10], _ <- lists:seq(1, 5)].

killed_at_any_time(_) ->
    T = table(),
    Make = fun(Key) -> rand:uniform(2) =:= 1 andalso erlang:yield(), Key end,
    Fetch = fun F() ->
                    Key = rand:uniform(3),
                    Key = ats:fetch(T, Key, Make),
                    ats:delete(T, Key),
                    F()
            end,
    [begin
         Pid = spawn(Fetch),
         _ = spawn_link(fun() -> [Key = ats:fetch(T, Key, Make) || Key <- [1, 2, 3]] end),
         Round rem 3 =:= 0 andalso timer:sleep(1),
         exit(Pid, kill)
     end || Round <- lists:seq(1, 1000)],
    [?assertEqual(Key, ats:fetch(T, Key, Make)) || Key <- [1, 2, 3]],
    ats_fetch ! look,
    _ = sys:get_state(ats_fetch),
    wait_for_waiting(0),
    check_rest().

newer_objects(_) ->
    T = table(),
    Holder = start(T, k, told()),
    runs(Holder, k),
    Waiting = start(T, k, unused()),
    wait_for_waiting(1),
    true = ats:insert(T, {k, newer}),
    Holder ! {return, old},
    [?assertEqual({ok, newer}, result(Pid)) || Pid <- [Holder, Waiting]],
    ?assertEqual([{k, newer}], ats:lookup(T, k)),
    %% A value that is removed at once reaches those that wait.
    Again = start(T, removed, told()),
    runs(Again, removed),
    Waits = start(T, removed, unused()),
    wait_for_waiting(1),
    Again ! {return, v},
    [?assertEqual({ok, v}, result(Pid)) || Pid <- [Again, Waits]],
    check_rest().

nested(_) ->
    T = table(),
    Other = table(),
    Fib = fun F(N) when N < 2 -> N;
              F(N) -> ats:fetch(T, N - 1, F) + ats:fetch(T, N - 2, F)
          end,
    ?assertEqual(354224848179261915075, ats:fetch(T, 100, Fib)),
    ?assertEqual(1, ats:fetch(T, same, fun(Key) -> ats:fetch(Other, Key, fun(_) -> 1 end) end)),
    check_rest().

waits_for_itself(_) ->
    T = table(),
    Itself = fun F(Key) -> ats:fetch(T, Key, F) end,
    ?assertError(badarg, ats:fetch(T, k, Itself)),
    %% Three processes, each of which needs the key of the next one.
    Self = self(),
    Next = fun(Key) ->
                   fun(_) ->
                           Self ! {runs, self(), Key},
                           receive go -> ats:fetch(T, Key, unused()) end
                   end
           end,
    Pids = [A, B, C] = [start(T, Key, Next((Key + 1) rem 3)) || Key <- [0, 1, 2]],
    [runs(Pid, (Key + 1) rem 3) || {Pid, Key} <- lists:zip(Pids, [0, 1, 2])],
    A ! go,
    wait_for_waiting(1),
    B ! go,
    wait_for_waiting(2),
    C ! go,
    %% The last one is refused; the others call their own functions then.
    ?assertEqual({error, badarg}, result(C)),
    ?assertMatch([{error, called}, {error, called}], [result(Pid) || Pid <- [B, A]]),
    check_rest().

deleted_tables(_) ->
    T = table(),
    Holder = start(T, k, told()),
    runs(Holder, k),
    Waiting = start(T, k, unused()),
    wait_for_waiting(1),
    ats:delete(T),
    Holder ! {return, v},
    [?assertEqual({error, badarg}, result(Pid)) || Pid <- [Holder, Waiting]],
    check_rest().

killed_servers(_) ->
    T = table(),
    Told = told(),
    Holder = start(T, k, Told),
    runs(Holder, k),
    Waiting = start(T, k, Told),
    wait_for_waiting(1),
    exit(whereis(ats_fetch), kill),
    %% Nobody knows of the holder any more, so the other one makes the value, too.
    runs(Waiting, k),
    Holder ! {return, 1},
    ?assertEqual({ok, 1}, result(Holder)),
    Waiting ! {return, 2},
    ?assertEqual({ok, 1}, result(Waiting)),
    check_rest().

open(Config, Name, Options) ->
    File = filename:join(proplists:get_value(priv_dir, Config), Name),
    {ok, Name} = dats:open_file(Name, [{file, File} | Options]),
    Name.

on_disk(Config) ->
    [begin
         T = open(Config, Type, [{type, Type}]),
         Calls = counters:new(1, []),
         Make = fun(Key) -> counters:add(Calls, 1, 1), timer:sleep(20), {error, Key} end,
         Pids = [start(dats, T, k, Make) || _ <- lists:seq(1, 100)],
         [?assertEqual({ok, {error, k}}, result(Pid)) || Pid <- Pids],
         ?assertEqual(1, counters:get(Calls, 1)),
         ?assertEqual([{k, {error, k}}], dats:lookup(T, k)),
         %% A table in memory has other keys.
         Memory = table(),
         Inner = fun(Key) -> ats:fetch(Memory, Key, fun(_) -> 1 end) end,
         ?assertEqual(1, dats:fetch(T, same, Inner)),
         First = start(dats, T, failing, told()),
         runs(First, failing),
         Next = start(dats, T, failing, fun(_) -> next end),
         wait_for_waiting(1),
         First ! {fail, reason},
         ?assertEqual({error, reason}, result(First)),
         ?assertEqual({ok, next}, result(Next)),
         ok = dats:close(T)
     end || Type <- ?TYPES],
    check_rest().

invalid_on_disk(Config) ->
    One = fun(_) -> 1 end,
    T = open(Config, refused, []),
    ?assertError(badarg, dats:fetch(T, k, f)),
    ?assertError(badarg, dats:fetch(none, k, One)),
    ?assertError(badarg, dats:fetch(T, k, fun F(Key) -> dats:fetch(T, Key, F) end)),
    [begin
         Other = open(Config, Name, Options),
         ?assertError(badarg, dats:fetch(Other, k, One)),
         ?assertEqual([], dats:lookup(Other, k)),
         ok = dats:close(Other)
     end || {Name, Options} <- [{a_bag, [{type, bag}]}, {key_second, [{keypos, 2}]}]],
    %% The table is closed while the function runs.
    ?assertError(badarg, dats:fetch(T, k, fun(_) -> dats:close(T) end)),
    check_rest().

stopped_application(_) ->
    T = table(),
    _ = application:stop(ats),
    ?assertEqual(1, ats:fetch(T, k, fun(_) -> 1 end)),
    _ = application:stop(ats),
    ?assertEqual(1, ats:fetch(T, k, unused())),
    ?assertEqual(undefined, whereis(ats_fetch)).

invalid(_) ->
    One = fun(_) -> 1 end,
    T = table(),
    [?assertError(badarg, ats:fetch(T, k, F)) || F <- [f, fun() -> 1 end, fun(_, _) -> 1 end]],
    [?assertError(badarg, ats:fetch(Table, k, F)) || Table <- [none, 1, make_ref()], F <- [One, f]],
    true = ats:insert(T, {short}),
    ?assertError(badarg, ats:fetch(T, short, One)),
    [begin
         Other = ats:new(fetched, Options),
         ?assertError(badarg, ats:fetch(Other, k, One)),
         ?assertEqual([], ats:tab2list(Other))
     end || Options <- [[bag], [duplicate_bag], [{keypos, 2}]]],
    [begin
         Other = ats:new(fetched, [Access]),
         ?assertEqual({error, badarg}, result(start(Other, k, One)))
     end || Access <- [protected, private]],
    Snapshot = ats:snapshot(T),
    ?assertError(badarg, ats:fetch(Snapshot, k, One)),
    [?assertEqual(Text, text(Arguments))
     || {Arguments, Text} <-
            [{[T, k, f], #{3 => <<"not a function of one argument">>}},
             {[T, short, One], #{2 => <<"the key of an object without a second element">>}},
             {[ats:new(fetched, [{keypos, 2}]), k, One],
              #{1 => <<"the key of the table is not the first element of its objects">>}},
             {[T, k, fun(_) -> ats:fetch(T, k, One) end],
              #{2 => <<"a key whose value is being made by this process, or by one that waits for "
                       "it">>}}]],
    check_rest().

text(Arguments) ->
    try apply(ats, fetch, Arguments) of
        Value -> {no_error, Value}
    catch
        error:Reason:Stack -> ats_errors:format_error(Reason, Stack)
    end.

%% A value that is made is there for its time, and is made again.
for_a_time(_) ->
    [begin
         T = ats:new(fetched, [Type, public, {ttl, 60000}]),
         ?assertEqual(1, ats:fetch(T, a, fun(a) -> 1 end, #{ttl => 60000})),
         ?assertEqual(1, ats:fetch(T, a, unused(), #{ttl => 10})),
         ?assertEqual(5, ats:fetch(T, b, fun(b) -> 5 end)),
         ?assert(ats:ttl(T, b) > 50000),
         ats_nif:advance_clock(60000),
         ?assertEqual(2, ats:fetch(T, a, fun(a) -> 2 end, #{ttl => infinity})),
         ?assertEqual(infinity, ats:ttl(T, a)),
         ?assertError(badarg, ats:fetch(T, a, unused(), #{ttl => 0})),
         ?assertError(badarg, ats:fetch(T, a, unused(), [])),
         ?assertError(badarg, ats:fetch(T, c, nofun, #{ttl => 10})),
         ats:delete(T)
     end || Type <- ?TYPES],
    Without = table(),
    ?assertError(badarg, ats:fetch(Without, a, unused(), #{ttl => 10})),
    true = ats:insert(Without, {a, 1}),
    ?assertEqual(1, ats:fetch(Without, a, unused(), #{ttl => 10})),
    check_rest().

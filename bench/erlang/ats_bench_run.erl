%% @private
%% @doc Runs the loops of the benchmark in processes.
%%
%% Workers wait until all of them are ready, draw operations until their time is up, and tell how
%% many they did a second. They look at the clock after ever more operations, until that takes
%% little of the time.
-module(ats_bench_run).

-export([rate/5, start/5, finish/1]).
-export([in_process/1, in_processes/1]).

-export_type([operation/0, work/0, generator/0, workers/0]).

-type operation() :: lookup | member | element | insert | insert_value | insert_new | delete
                   | update_element | take_and_insert | counter | counter_or_new | insert_list
                   | two_counters | two_elements | three_numbers
                   | first | next | size | all_objects | count_all
                   | {next | count_range | lookup_list, pos_integer()}.
%% Operations of a worker. In a mix, random numbers of 32 bits below the first bound select the
%% first operation, and so on.
-type work() :: {only, operation()} | {mix, [{Below :: pos_integer(), operation()}, ...]}
              | {program, atom()}.
-type tables() :: ats_bench:table() | {module(), [ats_bench:table()]}.
-type generator() :: pos_integer().
-opaque workers() :: [{pid(), reference()}].

%% The least time between two looks at the clock.
-define(LOOK_US, 500).

%% @doc Runs some work in as many processes as there are seeds; operations per second of all.
-spec rate({module(), tables()}, work(), ats_bench_keys:span(), [pos_integer()],
           pos_integer()) -> float().
rate(Table, Work, Span, Seeds, RunMs) ->
    finish(start(Table, Work, Span, Seeds, RunMs)).

%% @doc Starts the processes of {@link rate/5}; {@link finish/1} returns their work.
-spec start({module(), tables()}, work(), ats_bench_keys:span(), [pos_integer()],
            pos_integer()) -> workers().
start(Table, Work, Span, Seeds, RunMs) ->
    Parent = self(),
    Workers = [spawn_monitor(fun() -> worker(Parent, Table, Work, Span, Seed, RunMs) end)
               || Seed <- Seeds],
    lists:foreach(fun({Pid, Monitor}) -> await(ready, Pid, Monitor) end, Workers),
    lists:foreach(fun({Pid, _}) -> Pid ! go end, Workers),
    Workers.

%% @doc Waits for the processes to end; operations per second of all.
-spec finish(workers()) -> float().
finish(Workers) ->
    Rate = lists:sum([await(rate, Pid, Monitor) || {Pid, Monitor} <- Workers]),
    demonitor_all(Workers),
    Rate.

worker(Parent, {Loops, Table}, Work, Span, Seed, RunMs) ->
    Keys = ats_bench_keys:drawn(Span),
    Run = fun(State, Count) -> Loops:run(Work, Table, Keys, State, Count) end,
    State = rand:mwc59_seed(Seed),
    Parent ! {ready, self(), ok},
    receive go -> ok end,
    Start = erlang:monotonic_time(),
    Deadline = Start + erlang:convert_time_unit(RunMs, millisecond, native),
    {Operations, End} = run_until(Deadline, Run, State, 1, Start, 0),
    Seconds = erlang:convert_time_unit(End - Start, native, nanosecond) / 1.0e9,
    Parent ! {rate, self(), Operations / Seconds}.

run_until(Deadline, Run, State0, Count, Before, Done0) ->
    State = Run(State0, Count),
    Done = Done0 + Count,
    Now = erlang:monotonic_time(),
    Us = erlang:convert_time_unit(Now - Before, native, microsecond),
    if
        Now >= Deadline -> {Done, Now};
        Us < ?LOOK_US -> run_until(Deadline, Run, State, 2 * Count, Now, Done);
        Us > 4 * ?LOOK_US -> run_until(Deadline, Run, State, (Count + 1) div 2, Now, Done);
        true -> run_until(Deadline, Run, State, Count, Now, Done)
    end.

%% @doc Calls a function in a process of its own, so that no other process holds its garbage.
-spec in_process(fun(() -> Result)) -> Result.
in_process(Fun) ->
    Parent = self(),
    {Pid, Monitor} = spawn_monitor(fun() -> Parent ! {done, self(), Fun()} end),
    Result = await(done, Pid, Monitor),
    true = erlang:demonitor(Monitor, [flush]),
    Result.

%% @doc Calls functions at the same time, each in a process of its own; nanoseconds until all have
%% returned.
-spec in_processes([fun(() -> ok)]) -> non_neg_integer().
in_processes(Funs) ->
    Parent = self(),
    Workers = [spawn_monitor(fun() ->
                                     receive go -> ok end,
                                     Parent ! {done, self(), Fun()}
                             end) || Fun <- Funs],
    Start = erlang:monotonic_time(),
    lists:foreach(fun({Pid, _}) -> Pid ! go end, Workers),
    lists:foreach(fun({Pid, Monitor}) -> ok = await(done, Pid, Monitor) end, Workers),
    End = erlang:monotonic_time(),
    demonitor_all(Workers),
    erlang:convert_time_unit(End - Start, native, nanosecond).

%% Removes monitors, so that the ends of old workers do not pile up before the messages of new ones.
demonitor_all(Workers) ->
    lists:foreach(fun({_, Monitor}) -> true = erlang:demonitor(Monitor, [flush]) end, Workers).

await(What, Pid, Monitor) ->
    receive
        {What, Pid, Value} -> Value;
        {'DOWN', Monitor, process, Pid, Reason} -> error({worker_failed, Reason})
    end.

%% @private
%% @doc Runs the loops of the benchmark in processes.
%%
%% Workers wait until all of them are ready, run their operations over and over until their time is
%% up, and tell how many they did a second. They look at the clock between chunks only.
-module(ats_bench_run).

-export([loops/1, store/2, forget/1]).
-export([rate/5, start/5, finish/1]).
-export([in_process/1, in_processes/1]).

-export_type([side/0, loop/0, handle/0, workers/0]).

-type side() :: ats | ets_plain | ets_wc.
-type loop() :: lookup | mixed | chains | counter | counter_or_new | idle
              | lookup_terms | mixed_terms | idle_terms
              | insert_lists | idle_lists.
-type handle() :: {?MODULE, pos_integer()}.
-opaque workers() :: [{pid(), reference()}].

%% @doc The module whose loops call the tables of a side.
-spec loops(side()) -> module().
loops(ats) -> ats_bench_ats;
loops(_) -> ats_bench_ets.

%% @doc Keeps the operations of the N-th process, which come in chunks. As a persistent term they
%% are a literal: no process copies them, no garbage collector walks over them.
-spec store(pos_integer(), [[term()]]) -> handle().
store(N, Chunks) ->
    Handle = {?MODULE, N},
    persistent_term:put(Handle, Chunks),
    Handle.

%% @doc Drops stored operations.
-spec forget([handle()]) -> ok.
forget(Handles) ->
    lists:foreach(fun(Handle) -> true = persistent_term:erase(Handle) end, Handles).

%% @doc Runs one loop in as many processes as there are handles; operations per second of all.
-spec rate(module(), loop(), ats_bench:table() | none, [handle()], pos_integer()) -> float().
rate(Loops, Loop, Table, Handles, RunMs) ->
    finish(start(Loops, Loop, Table, Handles, RunMs)).

%% @doc Starts the processes of {@link rate/5}; what they did is to be had from {@link finish/1}.
-spec start(module(), loop(), ats_bench:table() | none, [handle()], pos_integer()) -> workers().
start(Loops, Loop, Table, Handles, RunMs) ->
    Parent = self(),
    Workers = [spawn_monitor(fun() -> worker(Parent, Loops, Loop, Table, Handle, RunMs) end)
               || Handle <- Handles],
    lists:foreach(fun({Pid, Monitor}) -> await(ready, Pid, Monitor) end, Workers),
    lists:foreach(fun({Pid, _}) -> Pid ! go end, Workers),
    Workers.

%% @doc Waits for the processes to end; operations per second of all.
-spec finish(workers()) -> float().
finish(Workers) ->
    Rate = lists:sum([await(rate, Pid, Monitor) || {Pid, Monitor} <- Workers]),
    demonitor_all(Workers),
    Rate.

worker(Parent, Loops, Loop, Table, Handle, RunMs) ->
    Chunks = persistent_term:get(Handle),
    Parent ! {ready, self(), ok},
    receive go -> ok end,
    Start = erlang:monotonic_time(),
    Deadline = Start + erlang:convert_time_unit(RunMs, millisecond, native),
    {Operations, End} = run_chunks(Chunks, Chunks, Loops, Loop, Table, Deadline, 0),
    Seconds = erlang:convert_time_unit(End - Start, native, nanosecond) / 1.0e9,
    Parent ! {rate, self(), Operations / Seconds}.

run_chunks([], All, Loops, Loop, Table, Deadline, Done) ->
    run_chunks(All, All, Loops, Loop, Table, Deadline, Done);
run_chunks([Chunk | Rest], All, Loops, Loop, Table, Deadline, Done0) ->
    ok = Loops:run(Loop, Table, Chunk),
    Done = Done0 + length(Chunk),
    case erlang:monotonic_time() of
        Now when Now >= Deadline -> {Done, Now};
        _ -> run_chunks(Rest, All, Loops, Loop, Table, Deadline, Done)
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

%% So that the ends of old workers do not pile up before the messages of new ones.
demonitor_all(Workers) ->
    lists:foreach(fun({_, Monitor}) -> true = erlang:demonitor(Monitor, [flush]) end, Workers).

await(What, Pid, Monitor) ->
    receive
        {What, Pid, Value} -> Value;
        {'DOWN', Monitor, process, Pid, Reason} -> error({worker_failed, Reason})
    end.

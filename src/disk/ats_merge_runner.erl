%% @private A process that has a batch of merges done, whatever the module does.
%%
%% ```
%%   client -----> runner -----> worker: calls the module, key after key
%%      ^             |  <----- one outcome for each key
%%      +-------------+          is killed if one takes too long
%%     all outcomes
%% '''
%%
%% The worker is another process, because only another process can end a function that does not
%% return. What it was at when it ended fails; a new worker goes on with the rest. That can take as
%% long as the limit each time, so after a few times the rest of the batch is not tried.
%%
%% The runner ends with its client and with the process that has started it, and the worker with the
%% runner.
-module(ats_merge_runner).

-export([start_link/3, run/2]).

-export_type([limits/0]).

-type limits() :: #{ms := pos_integer(), heap_words := pos_integer()}.
%% For one key, and for what a worker has in its heap.

%% So many workers of a batch may be lost.
-define(MOST_LOST, 2).

-record(state,
        {client :: pid(),
         client_monitor :: reference(),
         parent :: pid(),
         module :: module(),
         limits :: limits(),
         %% How many workers were lost.
         lost = 0 :: non_neg_integer()}).

%% @doc Starts a runner for a process, which then calls {@link run/2}.
-spec start_link(pid(), module(), limits()) -> pid().
start_link(Client, Module, Limits) ->
    Parent = self(),
    spawn_link(fun() -> init(Parent, Client, Module, Limits) end).

%% @doc Has a runner do the jobs. The outcomes are in the order of the jobs. Exits if the runner
%% does.
-spec run(pid(), [ats_merge:job()]) -> [ats_merge:outcome()].
run(Runner, Jobs) ->
    Ref = monitor(process, Runner),
    Runner ! {jobs, Ref, Jobs},
    receive
        {Ref, Outcomes} ->
            true = demonitor(Ref, [flush]),
            Outcomes;
        {'DOWN', Ref, process, Runner, Reason} ->
            exit({Reason, {?MODULE, run, [Runner, length(Jobs)]}})
    end.

-spec init(pid(), pid(), module(), limits()) -> ok.
init(Parent, Client, Module, Limits) ->
    false = process_flag(trap_exit, true),
    State = #state{client = Client, client_monitor = monitor(process, Client), parent = Parent,
                   module = Module, limits = Limits},
    ClientMonitor = State#state.client_monitor,
    receive
        {jobs, Ref, Jobs} ->
            Client ! {Ref, outcomes(Jobs, [], State)},
            ok;
        {'DOWN', ClientMonitor, process, _, _} ->
            ok;
        {'EXIT', Parent, Reason} ->
            exit(Reason)
    end.

-spec outcomes([ats_merge:job()], [ats_merge:outcome()], #state{}) -> [ats_merge:outcome()].
outcomes([], Done, _State) ->
    lists:reverse(Done);
outcomes(Jobs, Done, #state{lost = Lost} = State) when Lost >= ?MOST_LOST ->
    NotTried = failed(not_tried, State),
    lists:reverse(Done, [NotTried || _ <- Jobs]);
outcomes(Jobs, Done, State) ->
    #state{module = Module, limits = #{heap_words := HeapWords}} = State,
    Runner = self(),
    Ref = make_ref(),
    MaxHeap = #{size => HeapWords, kill => true, error_logger => false},
    Work = fun() -> work(Runner, Ref, Module, Jobs) end,
    Worker = spawn_opt(Work, [link, {priority, low}, {max_heap_size, MaxHeap}]),
    gather(Worker, Ref, Jobs, Done, State).

-spec work(pid(), reference(), module(), [ats_merge:job()]) -> ok.
work(Runner, Ref, Module, Jobs) ->
    lists:foreach(fun(Job) -> Runner ! {Ref, ats_merge:run(Module, Job)} end, Jobs).

%% Takes one outcome after the other.
-spec gather(pid(), reference(), [ats_merge:job()], [ats_merge:outcome()], #state{}) ->
          [ats_merge:outcome()].
gather(Worker, _Ref, [], Done, State) ->
    stop(Worker),
    outcomes([], Done, State);
gather(Worker, Ref, [_ | Rest] = Jobs, Done, State) ->
    #state{client_monitor = ClientMonitor, parent = Parent, limits = #{ms := Ms}} = State,
    receive
        {Ref, Outcome} ->
            gather(Worker, Ref, Rest, [Outcome | Done], State);
        {'EXIT', Worker, Reason} ->
            lost({ended, Reason}, Ref, Jobs, Done, State);
        {'DOWN', ClientMonitor, process, _, _} ->
            stop(Worker),
            exit(normal);
        {'EXIT', Parent, Reason} ->
            stop(Worker),
            exit(Reason)
    after Ms ->
        stop(Worker),
        lost({took_longer, Ms}, Ref, Jobs, Done, State)
    end.

%% The worker has ended. What it has sent before is there.
-spec lost(ats_merge:cause(), reference(), [ats_merge:job()], [ats_merge:outcome()], #state{}) ->
          [ats_merge:outcome()].
lost(Cause, Ref, [_ | Rest] = Jobs, Done, State) ->
    receive
        {Ref, Outcome} ->
            case Rest of
                [] -> outcomes([], [Outcome | Done], State);
                _ -> lost(Cause, Ref, Rest, [Outcome | Done], State)
            end
    after 0 ->
        Lost = State#state.lost + 1,
        [_ | ToDo] = Jobs,
        outcomes(ToDo, [failed(Cause, State) | Done], State#state{lost = Lost})
    end.

%% Does not wait until it has ended: that may be long, if it is in a native function.
-spec stop(pid()) -> ok.
stop(Worker) ->
    true = unlink(Worker),
    true = exit(Worker, kill),
    receive
        {'EXIT', Worker, _} -> ok
    after 0 ->
        ok
    end.

-spec failed(ats_merge:cause(), #state{}) -> {failed, ats_merge:failure()}.
failed(Cause, #state{module = Module}) ->
    {failed, {Module, any, Cause}}.

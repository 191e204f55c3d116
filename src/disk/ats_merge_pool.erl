%% @doc Processes that merge by modules of programs, a few batches at the same time.
%%
%% A store on disk that is being compacted gives its merges here, in batches, so that no thread that
%% serves others ever calls a program's functions. A batch waits until a worker is free, and is then
%% merged in processes of its own, of low priority. Whatever the module does, there is an outcome
%% for each key:
%%
%% <table border="1">
%% <tr><th>the module</th><th>outcome of the key</th><th>the other keys of the batch</th></tr>
%% <tr><td>raises an exception, or returns what makes no sense</td><td>`{failed, Failure}'</td>
%% <td>are merged</td></tr>
%% <tr><td>takes longer for a key than `ms', ends the process, or needs more memory than
%% `heap_words'</td><td>`{failed, Failure}'</td><td>are merged, until that has happened twice; then
%% they fail with `not_tried'</td></tr>
%% </table>
%%
%% So a batch takes no longer than its merges, and twice `ms'. If the process that waits for a batch
%% ends, or the pool does, the batch ends as well.
%%
%% The pool knows nothing of stores. It belongs below a supervisor; see {@link child_spec/1}.
-module(ats_merge_pool).

-behaviour(gen_server).

-export([child_spec/1, start_link/1, run/3, info/1]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2, terminate/2]).

-export_type([options/0, pool/0, info/0]).

-type pool() :: pid() | atom().
-type options() ::
        #{name => atom(),
          workers => pos_integer(),
          ms => pos_integer(),
          heap_words => pos_integer()}.
%% The name under which it is registered, if it is to be; how many batches are merged at the same
%% time (half as many as there are schedulers); how long a key may take, in milliseconds (5,000), of
%% which a worker does not get all on a busy machine, because it has low priority; how many words
%% the heap of a worker may have (32 Mi, which are 256 MiB).
-type info() ::
        #{workers := pos_integer(), busy := non_neg_integer(), waiting := non_neg_integer()}.

-record(state,
        {limits :: ats_merge_runner:limits(),
         workers :: pos_integer(),
         runners = #{} :: #{pid() => true},
         waiting = queue:new() :: queue:queue({gen_server:from(), module()})}).

-define(MS, 5000).
-define(HEAP_WORDS, 32 * 1024 * 1024).

%% @doc The pool as a child of a supervisor.
-spec child_spec(options()) -> supervisor:child_spec().
child_spec(Options) ->
    #{id => ?MODULE, start => {?MODULE, start_link, [Options]}, shutdown => 5000}.

%% @doc Starts a pool. Fails with `badarg' if an option is unknown or wrong.
-spec start_link(options()) -> {ok, pid()} | {error, term()}.
start_link(Options) ->
    ok = check(Options),
    case Options of
        #{name := Name} -> gen_server:start_link({local, Name}, ?MODULE, Options, []);
        #{} -> gen_server:start_link(?MODULE, Options, [])
    end.

-spec check(options()) -> ok.
check(Options) when is_map(Options) ->
    case lists:all(fun is_option/1, maps:to_list(Options)) of
        true -> ok;
        false -> error(badarg, [Options])
    end;
check(Options) ->
    error(badarg, [Options]).

-spec is_option({term(), term()}) -> boolean().
is_option({name, Name}) ->
    is_atom(Name) andalso Name =/= undefined;
is_option({Option, Number}) ->
    lists:member(Option, [workers, ms, heap_words]) andalso is_integer(Number) andalso Number > 0.

%% @doc Has the values of keys merged by a module. The outcomes are in the order of the jobs. Waits
%% for a free worker, and exits if the pool ends.
-spec run(pool(), module(), [ats_merge:job()]) -> [ats_merge:outcome()].
run(_Pool, _Module, []) ->
    [];
run(Pool, Module, Jobs) ->
    Runner = gen_server:call(Pool, {runner, Module}, infinity),
    ats_merge_runner:run(Runner, Jobs).

%% @doc How many batches can be merged at the same time, are merged, and wait.
-spec info(pool()) -> info().
info(Pool) ->
    gen_server:call(Pool, info, infinity).

%%--------------------------------------------------------------------------------------------
%% The server
%%--------------------------------------------------------------------------------------------

%% @private
-spec init(options()) -> {ok, #state{}}.
init(Options) ->
    %% Runners are linked, and end in all kinds of ways.
    false = process_flag(trap_exit, true),
    Half = max(1, erlang:system_info(schedulers_online) div 2),
    Limits = #{ms => maps:get(ms, Options, ?MS),
               heap_words => maps:get(heap_words, Options, ?HEAP_WORDS)},
    {ok, #state{limits = Limits, workers = maps:get(workers, Options, Half)}}.

%% @private
-spec handle_call(term(), gen_server:from(), #state{}) ->
          {reply, term(), #state{}} | {noreply, #state{}}.
handle_call({runner, Module}, From, State) ->
    Waiting = queue:in({From, Module}, State#state.waiting),
    {noreply, start_runners(State#state{waiting = Waiting})};
handle_call(info, _From, State) ->
    #state{workers = Workers, runners = Runners, waiting = Waiting} = State,
    {reply, #{workers => Workers, busy => map_size(Runners), waiting => queue:len(Waiting)}, State}.

%% @private
-spec handle_cast(term(), #state{}) -> {noreply, #state{}}.
handle_cast(_Message, State) ->
    {noreply, State}.

%% @private
-spec handle_info(term(), #state{}) -> {noreply, #state{}}.
handle_info({'EXIT', Pid, _Reason}, State) ->
    Runners = maps:remove(Pid, State#state.runners),
    {noreply, start_runners(State#state{runners = Runners})};
handle_info(_Message, State) ->
    {noreply, State}.

%% @private
-spec terminate(term(), #state{}) -> ok.
terminate(_Reason, #state{runners = Runners}) ->
    lists:foreach(fun(Runner) -> exit(Runner, shutdown) end, maps:keys(Runners)).

%% A runner whose client has ended while it waited ends at once.
-spec start_runners(#state{}) -> #state{}.
start_runners(#state{workers = Workers, runners = Runners} = State)
  when map_size(Runners) >= Workers ->
    State;
start_runners(#state{runners = Runners, waiting = Waiting, limits = Limits} = State) ->
    case queue:out(Waiting) of
        {empty, _} ->
            State;
        {{value, {{Client, _} = From, Module}}, Rest} ->
            Runner = ats_merge_runner:start_link(Client, Module, Limits),
            gen_server:reply(From, Runner),
            start_runners(State#state{runners = Runners#{Runner => true}, waiting = Rest})
    end.

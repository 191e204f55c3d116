%% @private @doc The process that ends calls of modules that do not return, and the failures of the
%% keys for which that happened.
%%
%% A worker ({@link ats_merge_runner}) counts the calls that it makes of a module. This process
%% looks at the number of each worker now and then, and ends the worker if it stays the same for
%% too long, or if the process that waits for it has ended. Most workers are done before it looks
%% for the first time.
%%
%% One worker at a time merges a key: the others that want to read it wait for that one. If it was
%% ended, or ended by itself, the key fails at once for a while, as long as the module and the
%% values stay the same. So a key whose merge hangs costs a processor and its readers only now and
%% then, and others nothing.
-module(ats_merge_watchdog).

-behaviour(gen_server).

-export([start_link/0, prepare/0, limits/0]).
-export([new_calls/0, watch/4, end_after/1, unwatch/1]).
-export([count_call/1, count_outcome/1, stop_timing/1, was_ended/1]).
-export([enter/1, leave/1, known_failure/3, remember/4]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).

-export_type([lock/0, calls/0]).

-type lock() :: {Table :: term(), Key :: term()}.
-type calls() :: counters:counters_ref().
%% The number of calls, the state of the worker, and how many outcomes it has told.
-type watched() :: {Worker :: pid(), Client :: pid(), calls(), Ms :: pos_integer(), fun(() -> ok)}.

%% `{Lock, Worker}'.
-define(BUSY, ats_merge_busy).
%% `{Lock, Until, Code, Size, Checksum, Failure}'.
-define(HUNG, ats_merge_hung).

-define(MS, 5000).
-define(HEAP_WORDS, 32 * 1024 * 1024).
%% A key fails for this multiple of the time limit.
-define(TIMES, 6).
-define(LOOKS, 4).
%% The most bytes of a chain that are compared.
-define(COMPARED, 65536).

-define(CALLS, 1).
-define(FATE, 2).
-define(TOLD, 3).
-define(DONE, 1).
-define(ENDED, 2).

-spec start_link() -> {ok, pid()} | {error, term()}.
start_link() ->
    gen_server:start_link({local, ?MODULE}, ?MODULE, [], []).

%% @doc Makes the tables, for the caller, which has to live as long as the application, and reads
%% its parameters.
-spec prepare() -> ok.
prepare() ->
    Options = [public, named_table, {read_concurrency, true}, {write_concurrency, true}],
    _ = [ets:new(Name, Options) || Name <- [?BUSY, ?HUNG]],
    persistent_term:put(?MODULE, {application:get_env(ats, merge_ms, ?MS),
                                  application:get_env(ats, merge_heap_words, ?HEAP_WORDS)}).

%% @doc Returns the most milliseconds of a call, and the most words of the heap of a worker:
%% the parameters `merge_ms' and `merge_heap_words' that the application had when it was started.
-spec limits() -> {Ms :: pos_integer(), HeapWords :: pos_integer()}.
limits() ->
    persistent_term:get(?MODULE, {?MS, ?HEAP_WORDS}).

%%--------------------------------------------------------------------------------------------
%% Workers
%%--------------------------------------------------------------------------------------------

-spec new_calls() -> calls().
new_calls() ->
    counters:new(3, []).

%% @doc Has the calling worker watched, which works for a client. `Remember' is called before it is
%% ended, if it has told no outcome, so that those who wait for it know.
-spec watch(Client :: pid(), calls(), Ms :: pos_integer(), Remember :: fun(() -> ok)) ->
          reference().
watch(Client, Calls, Ms, Remember) ->
    look_later({self(), Client, Calls, Ms, Remember}, 0, erlang:monotonic_time(millisecond)).

-spec look_later(watched(), non_neg_integer(), integer()) -> reference().
look_later({_, _, _, Ms, _} = Watched, Count, Since) ->
    erlang:send_after(Ms div ?LOOKS + 1, ?MODULE, {look, Watched, Count, Since}).

%% @doc Has the calling worker ended if it is not done by then.
-spec end_after(Ms :: pos_integer()) -> reference().
end_after(Ms) ->
    erlang:send_after(Ms, ?MODULE, {late, self()}).

%% @doc Stops watching a worker that is done.
-spec unwatch(reference()) -> ok.
unwatch(Timer) ->
    _ = erlang:cancel_timer(Timer, [{async, true}, {info, false}]),
    ok.

%% @doc Counts a call.
-spec count_call(calls()) -> ok.
count_call(Calls) ->
    counters:add(Calls, ?CALLS, 1).

%% @doc Counts an outcome.
-spec count_outcome(calls()) -> ok.
count_outcome(Calls) ->
    counters:add(Calls, ?TOLD, 1).

%% @doc Lifts the time limit of a worker that has made its last call of the module.
-spec stop_timing(calls()) -> ok.
stop_timing(Calls) ->
    counters:put(Calls, ?FATE, ?DONE).

%% @doc Returns `true' if a worker was ended because it took too long.
-spec was_ended(calls()) -> boolean().
was_ended(Calls) ->
    counters:get(Calls, ?FATE) =:= ?ENDED.

%%--------------------------------------------------------------------------------------------
%% Keys
%%--------------------------------------------------------------------------------------------

%% @doc Makes the calling worker the one that merges a key, if there is no other.
-spec enter(lock()) -> entered | {busy, pid()}.
enter(Lock) ->
    case ets:insert_new(?BUSY, {Lock, self()}) of
        true -> entered;
        false -> enter_unless_busy(Lock, ets:lookup(?BUSY, Lock))
    end.

-spec enter_unless_busy(lock(), [{lock(), pid()}]) -> entered | {busy, pid()}.
enter_unless_busy(Lock, []) ->
    enter(Lock);
enter_unless_busy(Lock, [{_, Worker} = Busy]) ->
    case is_process_alive(Worker) of
        true ->
            {busy, Worker};
        false ->
            true = ets:delete_object(?BUSY, Busy),
            enter(Lock)
    end.

-spec leave(lock()) -> ok.
leave(Lock) ->
    true = ets:delete_object(?BUSY, {Lock, self()}),
    ok.

%% @doc Returns the failure of a module for the values of a key, if it is known.
-spec known_failure(lock(), ats_merge:merge(), binary()) ->
          {failed, ats_merge:failure()} | unknown.
known_failure(Lock, Merge, Chain) ->
    case ets:lookup(?HUNG, Lock) of
        [] -> unknown;
        [{_, Until, Code, Size, Checksum, Failure}] ->
            IsSame = erlang:monotonic_time(millisecond) < Until
                andalso byte_size(Chain) >= Size
                andalso checksum(Chain, Size) =:= Checksum
                andalso code(Merge) =:= Code,
            case IsSame of
                true -> {failed, Failure};
                false -> unknown
            end
    end.

%% @doc Has a key fail for a while.
-spec remember(lock(), ats_merge:merge(), binary(), ats_merge:failure()) -> ok.
remember(Lock, Merge, Chain, Failure) ->
    {Ms, _} = limits(),
    Now = erlang:monotonic_time(millisecond),
    _ = ets:select_delete(?HUNG, [{{'_', '$1', '_', '_', '_', '_'}, [{'<', '$1', Now}], [true]}]),
    Size = byte_size(Chain),
    Known = {Lock, Now + ?TIMES * Ms, code(Merge), Size, checksum(Chain, Size), Failure},
    true = ets:insert(?HUNG, Known),
    ok.

-spec checksum(binary(), non_neg_integer()) -> non_neg_integer().
checksum(Chain, Size) ->
    erlang:crc32(binary:part(Chain, 0, min(Size, ?COMPARED))).

%% Returns a term that tells one code of a merge from another.
-spec code(ats_merge:merge()) -> term().
code({convert, Function}) when is_function(Function) ->
    Function;
code({Program, _Version}) ->
    ats_merge:code(Program).

%%--------------------------------------------------------------------------------------------
%% The process
%%--------------------------------------------------------------------------------------------

-spec init([]) -> {ok, none}.
init([]) ->
    _ = process_flag(priority, high),
    {ok, none}.

-spec handle_call(term(), gen_server:from(), none) -> {reply, ok, none}.
handle_call(_Nothing, _From, State) ->
    {reply, ok, State}.

-spec handle_cast(term(), none) -> {noreply, none}.
handle_cast(_Nothing, State) ->
    {noreply, State}.

-spec handle_info(term(), none) -> {noreply, none}.
handle_info({look, {Worker, Client, Calls, Ms, Remember} = Watched, Before, Since}, State) ->
    Now = erlang:monotonic_time(millisecond),
    IsAtWork = is_process_alive(Worker) andalso counters:get(Calls, ?FATE) =:= 0,
    _ = case {IsAtWork, is_process_alive(Client), counters:get(Calls, ?CALLS)} of
            {false, _, _} ->
                ok;
            {true, false, _} ->
                exit(Worker, kill);
            {true, true, Before} when Now - Since >= Ms ->
                ok = counters:put(Calls, ?FATE, ?ENDED),
                _ = counters:get(Calls, ?TOLD) =:= 0 andalso Remember(),
                exit(Worker, kill);
            {true, true, Before} ->
                look_later(Watched, Before, Since);
            {true, true, Count} ->
                look_later(Watched, Count, Now)
        end,
    {noreply, State};
handle_info({late, Worker}, State) ->
    true = exit(Worker, kill),
    {noreply, State};
handle_info(_Other, State) ->
    {noreply, State}.

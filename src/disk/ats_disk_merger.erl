%% @private
%% @doc The process that has pending keys of tables on disk merged in the background.
%%
%% A store notes the keys of which it has put several values one behind the other, and tells this
%% process that there are some: when runs are merged, and when a key was read. For each table one
%% process at a time takes a batch of such keys after the other, has {@link ats_merge_pool} merge
%% their values, and replaces them. What cannot be merged stays as it was.
-module(ats_disk_merger).

-behaviour(gen_server).

-include_lib("kernel/include/logger.hrl").

-export([child_specs/1, start_link/1, watch/1, pending/1]).
-export([init/1, handle_continue/2, handle_call/3, handle_cast/2, handle_info/2]).

%% Tables with a process at work, and whether there will be more to do when it has ended.
-record(state, {working = #{} :: #{ats:tid() => boolean()}}).

-define(POOL, ats_merge_writers).
%% So many keys are merged at once.
-define(BATCH, 256).

%% @doc This process, and the pools of processes that merge: one for calls that wait for an answer, so
%% that they do not wait for others. The application's parameters `merge_ms' and `merge_heap_words'
%% say what a merge may take for one key. `Tables' is a function that returns the open tables, by its
%% module and name.
-spec child_specs(Tables :: {module(), atom()}) -> [supervisor:child_spec()].
child_specs(Tables) ->
    Limits = maps:from_list([{Option, Value} || {Option, Parameter} <- [{ms, merge_ms},
                                                                       {heap_words,
                                                                        merge_heap_words}],
                                                {ok, Value} <- [application:get_env(ats, Parameter)]]),
    Schedulers = erlang:system_info(schedulers_online),
    Readers = ats_disk_merged:readers(),
    [(ats_merge_pool:child_spec(Limits#{name => Readers, workers => 4 * Schedulers}))
     #{id => Readers},
     (ats_merge_pool:child_spec(Limits#{name => ?POOL}))#{id => ?POOL},
     #{id => ?MODULE, start => {?MODULE, start_link, [Tables]}}].

-spec start_link(Tables :: {module(), atom()}) -> {ok, pid()} | {error, term()}.
start_link(Tables) ->
    gen_server:start_link({local, ?MODULE}, ?MODULE, Tables, []).

%% @doc Has the keys of a table merged from now on, if a module merges them.
-spec watch(ats:tid()) -> ok.
watch(Table) ->
    gen_server:cast(?MODULE, {watch, Table}).

%% @doc Says that keys of a table are pending.
-spec pending(ats:tid()) -> ok.
pending(Table) ->
    gen_server:cast(?MODULE, {pending, Table}).

-spec init({module(), atom()}) -> {ok, #state{}, {continue, {watch, {module(), atom()}}}}.
init(Tables) ->
    {ok, #state{}, {continue, {watch, Tables}}}.

%% If there was such a process before, tables have told that one.
-spec handle_continue({watch, {module(), atom()}}, #state{}) -> {noreply, #state{}}.
handle_continue({watch, {Module, Function}}, State) ->
    {noreply, lists:foldl(fun watched/2, State, Module:Function())}.

-spec handle_call(term(), gen_server:from(), #state{}) -> {reply, ok, #state{}}.
handle_call(_Nothing, _From, State) ->
    {reply, ok, State}.

-spec handle_cast(term(), #state{}) -> {noreply, #state{}}.
handle_cast({watch, Table}, State) ->
    {noreply, watched(Table, State)};
handle_cast({pending, Table}, State) ->
    {noreply, work(Table, State)}.

-spec handle_info(term(), #state{}) -> {noreply, #state{}}.
handle_info({pending, Table}, State) ->
    {noreply, work(Table, State)};
handle_info({{ended, Table}, _Monitor, process, _, _}, #state{working = Working}) ->
    {Again, Rest} = maps:take(Table, Working),
    Done = #state{working = Rest},
    case Again of
        true -> {noreply, work(Table, Done)};
        false -> {noreply, Done}
    end;
handle_info(_Other, State) ->
    {noreply, State}.

-spec watched(ats:tid(), #state{}) -> #state{}.
watched(Table, State) ->
    try ats_nif:disk_program(Table) of
        undefined ->
            State;
        _Module ->
            true = ats_nif:disk_watch(Table, self()),
            work(Table, State)
    catch
        %% It was closed.
        error:{ats_error, id} -> State
    end.

-spec work(ats:tid(), #state{}) -> #state{}.
work(Table, #state{working = Working}) when is_map_key(Table, Working) ->
    #state{working = Working#{Table := true}};
work(Table, #state{working = Working}) ->
    _ = spawn_opt(fun() -> batches(Table) end, [link, {monitor, [{tag, {ended, Table}}]}]),
    #state{working = Working#{Table => false}}.

%% Ends without an error, so that the other process does not.
-spec batches(ats:tid()) -> ok.
batches(Table) ->
    try batch(Table, ats_nif:disk_program(Table), false)
    catch
        %% It was closed.
        error:{ats_error, id} ->
            ok;
        Class:Reason:Stack ->
            ?LOG_WARNING("values of the table ~tp were not merged: ~tp",
                         [Table, {Class, Reason, Stack}], #{domain => [ats]})
    end.

%% Warns once, however many keys are concerned.
-spec batch(ats:tid(), module() | undefined, boolean()) -> ok.
batch(_Table, undefined, _HasWarned) ->
    ok;
batch(Table, Module, HasWarned) ->
    case ats_nif:disk_noted(Table, ?BATCH) of
        [] ->
            ok;
        Records ->
            Failures = merge(Table, Module, Records),
            _ = HasWarned orelse warn(Table, Failures),
            batch(Table, Module, HasWarned orelse Failures =/= [])
    end.

%% After some keys for which the module has not returned, the others are not tried. They are tried
%% without those.
-spec merge(ats:tid(), module(), [ats_nif:disk_record()]) -> [ats_merge:failure()].
merge(_Table, _Module, []) ->
    [];
merge(Table, Module, Records) ->
    Outcomes = ats_disk_merged:jobs(?POOL, Module, Records),
    IsTried = fun({_Record, Outcome}) -> Outcome =/= {failed, {Module, any, not_tried}} end,
    {Tried, Left} = lists:partition(IsTried, Outcomes),
    Failures = [Failure || {Record, Outcome} <- Tried,
                           Failure <- replaced(Table, Record, Outcome)],
    Failures ++ merge(Table, Module, [Record || {Record, _} <- Left]).

-spec replaced(ats:tid(), ats_nif:disk_record(), ats_merge:outcome()) -> [ats_merge:failure()].
replaced(_Table, _Record, {failed, Failure}) ->
    [Failure];
replaced(Table, {Key, Value, _} = Record, Outcome) ->
    _ = ats_nif:disk_replace(Table, Key, Value, ats_disk_merged:object(Record, Outcome), false),
    [].

-spec warn(ats:tid(), [ats_merge:failure()]) -> ok.
warn(_Table, []) ->
    ok;
warn(Table, [Failure | _] = Failures) ->
    ?LOG_WARNING("the values of ~b keys of the table ~tp cannot be merged: ~ts",
                 [length(Failures), Table, ats_merge:format_failure(Failure)],
                 #{domain => [ats]}).

%% @private
%% @doc The process that has pending keys of tables on disk merged in the background.
%%
%% A store notes the keys of which it has put several values one behind the other. This process is
%% told that there are some when runs are merged, when a key was read, and when a key has got some
%% hundreds of values. For each table one process at a time takes some of these keys after the
%% other, has {@link ats_merge_runner} merge their values, and replaces them. Keys whose merge takes
%% long are left for last. A value that cannot be merged stays as it was, but for its beginning.
-module(ats_merge_background).

-behaviour(gen_server).

-include_lib("kernel/include/logger.hrl").

-export([child_specs/1, start_link/1, watch/1, pending/1]).
-export([init/1, handle_continue/2, handle_call/3, handle_cast/2, handle_info/2]).

%% Tables with a process at work, and whether there will be more to do when it has ended.
-record(state, {working = #{} :: #{ats:tid() => boolean()}}).

%% The most keys that are taken at once.
-define(BATCH, 256).

%% @doc Returns the specifications of this process, and of the one that ends merges that do not
%% return. `Tables' is a function that returns the open tables, by its module and name.
-spec child_specs(Tables :: {module(), atom()}) -> [supervisor:child_spec()].
child_specs(Tables) ->
    [#{id => ats_merge_watchdog, start => {ats_merge_watchdog, start_link, []}},
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

%% Asks all open tables, as they may have told an earlier process that has ended.
-spec handle_continue({watch, {module(), atom()}}, #state{}) -> {noreply, #state{}}.
handle_continue({watch, {Module, Function}}, State) ->
    {noreply, lists:foldl(fun watch_table/2, State, Module:Function())}.

-spec handle_call(term(), gen_server:from(), #state{}) -> {reply, ok, #state{}}.
handle_call(_Nothing, _From, State) ->
    {reply, ok, State}.

-spec handle_cast(term(), #state{}) -> {noreply, #state{}}.
handle_cast({watch, Table}, State) ->
    {noreply, watch_table(Table, State)};
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

-spec watch_table(ats:tid(), #state{}) -> #state{}.
watch_table(Table, State) ->
    try ats_merge_pending:program(Table) of
        none ->
            State;
        _Program ->
            true = ats_nif:disk_watch(Table, self()),
            work(Table, State)
    catch
        %% The table was closed.
        error:{ats_error, id} -> State
    end.

-spec work(ats:tid(), #state{}) -> #state{}.
work(Table, #state{working = Working}) when is_map_key(Table, Working) ->
    #state{working = Working#{Table := true}};
work(Table, #state{working = Working}) ->
    _ = spawn_opt(fun() -> merge_batches(Table) end, [link, {monitor, [{tag, {ended, Table}}]}]),
    #state{working = Working#{Table => false}}.

%% Ends without an error, so that the other process does not.
-spec merge_batches(ats:tid()) -> ok.
merge_batches(Table) ->
    try merge_batches(Table, ats_merge_pending:program(Table), false)
    catch
        %% The table was closed, or can only be read.
        error:{ats_error, Cause} when Cause =:= id; Cause =:= access ->
            ok;
        Class:Reason:Stack ->
            ?LOG_WARNING("values of the table ~tp were not merged: ~tp",
                         [Table, {Class, Reason, Stack}], #{domain => [ats]})
    end.

%% Warns once, however many keys are concerned.
-spec merge_batches(ats:tid(), ats_merge_pending:program() | none, HasWarned :: boolean()) -> ok.
merge_batches(_Table, none, _HasWarned) ->
    ok;
merge_batches(Table, Program, HasWarned) ->
    case ats_nif:disk_take_noted(Table, ?BATCH) of
        [] ->
            ok;
        Records ->
            {Late, Failures} = merge(Table, Program, Records),
            All = lists:flatmap(fun(R) -> merge_late(Table, Program, R) end, Late) ++ Failures,
            _ = HasWarned orelse warn(Table, All),
            merge_batches(Table, Program, HasWarned orelse All =/= [])
    end.

%% Returns the records that are not merged promptly, and the failures that are known at once.
-spec merge(ats:tid(), ats_merge_pending:program(), [ats_nif:disk_record()]) ->
          {[ats_nif:disk_record()], [ats_merge:failure()]}.
merge(_Table, _Program, []) ->
    {[], []};
merge(Table, Program, Records) ->
    Outcomes = run(Table, Program, Records, true),
    {Tried, Left} = lists:split(length(Outcomes), Records),
    Failures = replace_merged(Table, Tried, Outcomes),
    case Left of
        [] ->
            {[], Failures};
        [Next | Rest] ->
            %% The merge was not prompt, or has failed.
            {Late, Others} = merge(Table, Program, Rest),
            {[Next | Late], Failures ++ Others}
    end.

%% The key may have other values by now.
-spec merge_late(ats:tid(), ats_merge_pending:program(), ats_nif:disk_record()) ->
          [ats_merge:failure()].
merge_late(Table, Program, Record) ->
    case run(Table, Program, [Record], false) of
        [] -> [];
        Outcomes -> replace_merged(Table, [Record], Outcomes)
    end.

-spec run(ats:tid(), ats_merge_pending:program(), [ats_nif:disk_record(), ...], boolean()) ->
          [ats_merge_operands:outcome()].
run(Table, {Merge, Id}, Records, IsPrompt) ->
    case ats_merge_runner:run(#{merge => Merge, table => Id, jobs => Records, priority => low,
                                formats => ats_format:of_table(Table), prompt => IsPrompt}) of
        %% A reader has merged it, and has had it replaced.
        again -> [];
        Outcomes -> Outcomes
    end.

-spec replace_merged(ats:tid(), [ats_nif:disk_record()], [ats_merge_operands:outcome()]) ->
          [ats_merge:failure()].
replace_merged(Table, Records, Outcomes) ->
    lists:append(
      lists:zipwith(fun({Key, Chain}, Outcome) ->
                            _ = ats_merge_pending:replace_merged(Table, Key, Chain, Outcome),
                            [Failure || {failed, Failure, _} <- [Outcome]]
                    end, Records, Outcomes)).

-spec warn(ats:tid(), [ats_merge:failure()]) -> ok.
warn(_Table, []) ->
    ok;
warn(Table, [Failure | _] = Failures) ->
    ?LOG_WARNING("the values of ~b keys of the table ~tp cannot be merged: ~ts",
                 [length(Failures), Table, ats_merge:format_failure(Failure)],
                 #{domain => [ats]}).

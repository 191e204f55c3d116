%% @doc Events of `telemetry' about tables.
%%
%% ```
%% {ats_telemetry, [{period, 10000}, {tables, 50}]}       % a child of a supervisor, in Elixir
%% ats_telemetry:child_spec([{period, 10000}])            % and in Erlang
%% '''
%%
%% A process looks at the tables every `period' milliseconds; operations on tables cause no event.
%% The library `telemetry' has to be there, which this application does not depend on.
%%
%% <dl>
%% <dt>`[ats, table]', for each of the `tables' that take most memory, and all others as one</dt>
%% <dd>measurements `size', `memory_bytes', `locks', `contended', `uncontended', `fixations',
%% `expired', `evicted', `hits', `misses', `tables'; metadata `name', `type'</dd>
%% <dt>`[ats, total]'</dt><dd>the sums over all tables in memory</dd>
%% <dt>`[ats, disk]', for each open table on disk</dt><dd>measurements as `dats:info(Name, stats)'
%% has them; metadata `name'</dd>
%% <dt>`[ats, disk, stall]', if writes were slowed down since the table was looked at before</dt>
%% <dd>measurements `count', `microseconds'; metadata `name'</dd>
%% <dt>`[ats, disk, merge]', if the background has merged runs since then</dt><dd>measurements
%% `count', `read_bytes', `written_bytes'; metadata `name'</dd>
%% <dt>`[ats, evicted]', if snapshots of a table have ended since then because they were too old or
%% held back too much memory</dt><dd>measurement `count'; metadata `table', `kind': `memory' or
%% `disk'</dd>
%% <dt>`[ats, full_scan]', when a table with the option `{full_scan, warn}' warns, which is once a
%% second at most</dt><dd>measurement `count'; metadata `table', `pid'</dd>
%% </dl>
-module(ats_telemetry).

-behaviour(gen_server).

-export([child_spec/1, start_link/1]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2, terminate/2]).

-export_type([option/0]).

-type option() :: {period, pos_integer()} | {tables, non_neg_integer()} | {library, module()}.
%% `library' is another module than `telemetry' with a function `execute/3'.

-record(state, {period :: pos_integer(),
                tables :: non_neg_integer(),
                library :: module(),
                handler :: pid(),
                disk = #{} :: #{term() => #{atom() => integer()}},
                evicted = #{} :: #{{memory | disk, term()} => pos_integer()}}).

-define(DEFAULTS, #{period => 10000, tables => 50, library => telemetry}).

-define(STALL, [{count, stalls}, {microseconds, stalled_microseconds}]).
-define(MERGE, [{count, merges}, {read_bytes, merge_read_bytes},
                {written_bytes, merge_written_bytes}]).

%% @doc Describes the process to a supervisor.
-spec child_spec([option()]) -> supervisor:child_spec().
child_spec(Options) ->
    #{id => ?MODULE, start => {?MODULE, start_link, [Options]}}.

%% @doc Starts the process. Fails with `{no_library, Module}' if there is no `telemetry', and with
%% `{bad_option, Option}' if an option is unknown or has a wrong value.
-spec start_link([option()]) -> gen_server:start_ret().
start_link(Options) ->
    gen_server:start_link({local, ?MODULE}, ?MODULE, Options, []).

%% @hidden
-spec init([option()]) -> {ok, #state{}} | {stop, term()}.
init(Options) ->
    process_flag(trap_exit, true),
    case settings(Options, ?DEFAULTS) of
        #{period := Period, tables := Tables, library := Library} ->
            _ = code:ensure_loaded(Library),
            case erlang:function_exported(Library, execute, 3) of
                true ->
                    {ok, Handler} = ats_telemetry_handler:start_link(Library),
                    self() ! poll,
                    {ok, #state{period = Period, tables = Tables, library = Library,
                                handler = Handler}};
                false ->
                    {stop, {no_library, Library}}
            end;
        {error, Option} ->
            {stop, {bad_option, Option}}
    end.

-spec settings([option()], Settings) -> Settings | {error, term()} when Settings :: map().
settings([{Name, Value} = Option | Options], Settings) ->
    case is_map_key(Name, Settings) andalso is_right(Name, Value) of
        true -> settings(Options, Settings#{Name := Value});
        false -> {error, Option}
    end;
settings([], Settings) ->
    Settings;
settings([Other | _], _) ->
    {error, Other};
settings(Other, _) ->
    {error, Other}.

%% A timer cannot wait for longer than 32 bits of milliseconds.
-spec is_right(period | tables | library, term()) -> boolean().
is_right(period, Period) -> is_integer(Period) andalso Period > 0 andalso Period < 1 bsl 32;
is_right(tables, Tables) -> is_integer(Tables) andalso Tables >= 0;
is_right(library, Library) -> is_atom(Library).

%% @hidden
-spec handle_call(term(), gen_server:from(), #state{}) -> {noreply, #state{}}.
handle_call(_, _, State) -> {noreply, State}.

%% @hidden
-spec handle_cast(term(), #state{}) -> {noreply, #state{}}.
handle_cast(_, State) -> {noreply, State}.

%% @hidden
-spec handle_info(term(), #state{}) -> {noreply, #state{}} | {stop, term(), #state{}}.
handle_info(poll, #state{period = Period, disk = Before} = State) ->
    _ = erlang:send_after(Period, self(), poll),
    lists:foreach(fun(Table) -> report_table(State, Table) end,
                  ats_watch:tables(State#state.tables)),
    Totals = ats_metrics:totals(),
    execute(State, [ats, total], Totals, #{}),
    Disk = maps:from_list(ats_metrics:disk()),
    maps:foreach(fun(Name, Stats) ->
                         report_disk(State, Name, Stats, maps:get(Name, Before, #{}))
                 end, Disk),
    Evicted = maps:from_list(ats_watch:evicted()),
    maps:foreach(fun(Table, Number) -> report_evicted(State, Table, Number) end, Evicted),
    {noreply, State#state{disk = Disk, evicted = Evicted}};
handle_info({'EXIT', Handler, Reason}, #state{handler = Handler} = State) ->
    {stop, {handler, Reason}, State};
handle_info(_, State) ->
    {noreply, State}.

%% @hidden
-spec terminate(term(), #state{}) -> ok.
terminate(_, #state{handler = Handler}) ->
    ats_telemetry_handler:stop(Handler).

-spec report_table(#state{}, ats_watch:table()) -> ok.
report_table(State, Table) ->
    execute(State, [ats, table], maps:without([name, type], Table), maps:with([name, type], Table)).

-spec report_disk(#state{}, term(), #{atom() => integer()}, #{atom() => integer()}) -> ok.
report_disk(State, Name, Stats, Before) ->
    execute(State, [ats, disk], Stats, #{name => Name}),
    report_growth(State, [ats, disk, stall], Name, ?STALL, Stats, Before),
    report_growth(State, [ats, disk, merge], Name, ?MERGE, Stats, Before).

-spec report_evicted(#state{}, {memory | disk, term()}, pos_integer()) -> ok.
report_evicted(#state{evicted = Before} = State, {Kind, Name} = Table, Number) ->
    case maps:get(Table, Before, 0) of
        Number -> ok;
        Earlier when Earlier < Number -> evicted(State, Kind, Name, Number - Earlier);
        _ -> evicted(State, Kind, Name, Number)
    end.

-spec evicted(#state{}, memory | disk, term(), pos_integer()) -> ok.
evicted(State, Kind, Table, Count) ->
    execute(State, [ats, evicted], #{count => Count}, #{table => Table, kind => Kind}).

%% The numbers of a table that was closed and opened again begin with 0.
-spec report_growth(#state{}, [atom()], term(), [{atom(), atom()}], map(), map()) -> ok.
report_growth(State, Event, Name, Items, Stats, Before) ->
    [{_, First} | _] = Items,
    Base = case maps:get(First, Stats) >= maps:get(First, Before, 0) of
               true -> Before;
               false -> #{}
           end,
    Growth = maps:from_list([{Item, maps:get(Key, Stats) - maps:get(Key, Base, 0)}
                             || {Item, Key} <- Items]),
    case Growth of
        #{count := 0} -> ok;
        _ -> execute(State, Event, Growth, #{name => Name})
    end.

-spec execute(#state{}, [atom()], map(), map()) -> ok.
execute(#state{library = Library}, Event, Measurements, Metadata) ->
    _ = Library:execute(Event, Measurements, Metadata),
    ok.

%% @doc Measures how long other processes wait while one process works on a large table.
%%
%% One process makes one call that takes long: it reads, fills, clears or deletes a table of five
%% million objects. Meanwhile another one looks an object up in the same table and sends a message
%% to and fro, ten thousand times a second. (A table that is being deleted has no objects; then the
%% lookups are in another one.) The output is the latency of most of them, and that of the slowest
%% few.
%%
%% Requests come when they come, whether or not the one before was answered. So a stall counts
%% for every request that would have come meanwhile: one of 50 ms is 500 late answers, and not one.
%%
%% The computer may have other work, which must not count: a latency longer than the time that the
%% virtual machine had a processor meanwhile counts as that time and a millisecond. The row
%% `nothing', in which no process makes a long call, shows how much of such noise is left.
%%
%% Sides are measured one after the other, since each takes much memory.
-module(ats_bench_latency).

-export([main/1]).
%% Exported for tests.
-export([measure/4, percentile/2]).

-export_type([call/0, latencies/0, histogram/0]).

-type side() :: ats | ets.
-type call() :: nothing | tab2list | select | select_count | insert | delete_all_objects | delete.
-type latencies() :: #{lookup := histogram(), round_trip := histogram(), call_ms := number()}.
%% The counts of all buckets; see bucket/1.
-opaque histogram() :: [{Bucket :: non_neg_integer(), Count :: pos_integer()}].

-record(options,
        {objects = 5000000 :: pos_integer(),
         list = 1000000 :: pos_integer(),
         only = all :: all | string(),
         results = "bench/results" :: string()}).

-record(watch,
        {side :: side(),
         table :: ats:table(),
         keys :: pos_integer(),
         echo :: pid(),
         lookups :: counters:counters_ref(),
         trips :: counters:counters_ref()}).

-define(TYPES, [set, ordered_set, bag]).
-define(SIDES, [ats, ets]).
-define(INTERVAL_NS, 100000).
%% Least time to watch: work that a call leaves to the background counts, too.
-define(LOOK_MS, 1500).
-define(REST_MS, 3000).
%% A prime that divides no number of objects here, so that multiplying scatters keys.
-define(SCATTER, 387420489).

%%--------------------------------------------------------------------------------------------
%% Command
%%--------------------------------------------------------------------------------------------

%% @doc Measures all calls on all types of tables on both sides, and stops the virtual machine.
%% Arguments: `--objects N' (of a table), `--list N' (objects inserted as one), `--only TEXT'
%% (rows whose title, such as `ats, ordered_set, tab2list', contains it), `--quick' (smaller
%% tables), `--results FOLDER'.
-spec main([string()]) -> no_return().
main(Args) ->
    Usage = "ats_bench_latency [--quick] [--objects N] [--list N] [--only TEXT] "
            "[--results FOLDER]",
    ats_bench_command:run(Usage, fun() -> measure_all(options(Args, #options{})) =:= ok end).

measure_all(#options{results = Folder} = Options) ->
    print_head(Options),
    Rows = [Row || Type <- ?TYPES, Side <- ?SIDES, Row <- measure_side(Type, Side, Options)],
    io:format("~nwritten to ~ts~n",
              [ats_bench_report:write("latency", Rows, ats_bench_report:machine_facts(), Folder)]).

options([], Options) ->
    Options;
options(["--quick" | Rest], Options) ->
    options(Rest, Options#options{objects = 500000, list = 100000});
options(["--objects", N | Rest], Options) ->
    options(Rest, Options#options{objects = ats_bench_command:positive(N)});
options(["--list", N | Rest], Options) ->
    options(Rest, Options#options{list = ats_bench_command:positive(N)});
options(["--only", Text | Rest], Options) ->
    options(Rest, Options#options{only = Text});
options(["--results", Folder | Rest], Options) ->
    options(Rest, Options#options{results = Folder});
options([What | _], _) ->
    ats_bench_command:unknown(What).

print_head(#options{objects = Objects, list = List}) ->
    io:format("~b schedulers, tables of ~b objects, lists of ~b; microseconds~n~n",
              [erlang:system_info(schedulers_online), Objects, List]),
    io:format("~-36s ~9s ~39s ~39s~n~-36s ~9s", ["", "", "lookup ", "round trip ", "", "call ms"]),
    lists:foreach(fun(Column) -> io:format(" ~9s", [Column]) end,
                  ["p50", "p99", "p99.9", "max", "p50", "p99", "p99.9", "max"]),
    io:nl().

measure_side(Type, Side, Options) ->
    Calls = [{nothing, tab2list, select, select_count, insert, delete_all_objects}, {delete}],
    [Row || OfOneTable <- Calls,
            Chosen <- [[Call || Call <- tuple_to_list(OfOneTable),
                                is_chosen(title(Side, Type, Call), Options)]],
            Chosen =/= [],
            Row <- measure_table(Side, Type, Chosen, Options)].

title(Side, Type, Call) -> lists:flatten(io_lib:format("~s, ~s, ~s", [Side, Type, Call])).

is_chosen(Title, #options{only = Only}) -> ats_bench_command:is_chosen(Title, Only).

measure_table(Side, Type, Calls, #options{objects = Objects, list = List}) ->
    Table = filled(Side, Type, Objects),
    Other = filled(Side, Type, 100000),
    Rows = [begin
                Watched = case Call of
                              delete -> {Other, 100000};
                              _ -> {Table, Objects}
                          end,
                %% Earlier work shall not be measured.
                timer:sleep(?REST_MS),
                Latencies = measure(Side, Watched, prepared(Call, Side, Table, List), ?LOOK_MS),
                print(title(Side, Type, Call), Latencies),
                row(Side, Type, Call, Latencies)
            end || Call <- Calls],
    true = Side:delete(Other),
    lists:member(delete, Calls) orelse Side:delete(Table),
    Rows.

row(Side, Type, Call, #{lookup := Lookups, round_trip := Trips, call_ms := CallMs}) ->
    #{kind => latency, name => Call, side => Side, type => Type, call_ms => CallMs,
      unit => "microseconds", better => less,
      lookup => ats_bench_report:percentiles(fun(Part) -> percentile(Part, Lookups) end),
      message => ats_bench_report:percentiles(fun(Part) -> percentile(Part, Trips) end)}.

print(Title, #{lookup := Lookups, round_trip := Trips, call_ms := CallMs}) ->
    io:format("~-36s ~9b", [Title, round(CallMs)]),
    lists:foreach(fun({Histogram, Part}) ->
                          io:format(" ~9.1f", [percentile(Part, Histogram) / 1000])
                  end, [{H, Part} || H <- [Lookups, Trips], Part <- [0.5, 0.99, 0.999, 1.0]]),
    io:nl().

filled(Side, Type, Count) ->
    Table = Side:new(latency, [Type, public]),
    ok = ats_bench_run:in_process(fun() -> fill(Side, Table, Count, Count) end),
    Table.

fill(_, _, _, 0) ->
    ok;
fill(Side, Table, Count, N) ->
    true = Side:insert(Table, object(1 + N * ?SCATTER rem Count)),
    fill(Side, Table, Count, N - 1).

object(N) -> {N, {value, N}}.

%%--------------------------------------------------------------------------------------------
%% Calls
%%--------------------------------------------------------------------------------------------

%% Returns a function that makes ready, and returns the call.
prepared(nothing, _, _, _) ->
    fun() -> fun() -> ok end end;
prepared(insert, Side, Table, Count) ->
    fun() ->
            %% Some are there already, some are not.
            Objects = [object(10 * N) || N <- lists:seq(1, Count)],
            fun() -> Side:insert(Table, Objects) end
    end;
prepared(select, Side, Table, _) ->
    fun() -> fun() -> Side:select(Table, [{{'$1', '_'}, [], ['$1']}]) end end;
prepared(select_count, Side, Table, _) ->
    fun() -> fun() -> Side:select_count(Table, [{{'_', {x, '_'}}, [], [true]}]) end end;
prepared(Call, Side, Table, _) ->
    fun() -> fun() -> Side:Call(Table) end end.

%%--------------------------------------------------------------------------------------------
%% Watching
%%--------------------------------------------------------------------------------------------

%% @doc Measures the time that lookups in a table and round trips of messages take while another
%% process makes a call, and at least for some time.
%%
%% `Prepare' is called by that process before, and returns the call. The keys of the table are the
%% integers from 1.
-spec measure(side(), {ats:table(), Keys :: pos_integer()},
              Prepare :: fun(() -> fun(() -> term())), LookMs :: pos_integer()) -> latencies().
measure(Side, {Table, Keys}, Prepare, LookMs) ->
    Echo = spawn_link(fun echo/0),
    Watcher = self(),
    Worker = spawn_link(fun() -> work(Watcher, Prepare) end),
    receive {Worker, ready} -> ok end,
    true = erlang:garbage_collect(),
    Watch = #watch{side = Side, table = Table, keys = Keys, echo = Echo,
                   lookups = counters:new(buckets(), []), trips = counters:new(buckets(), [])},
    %% Everything is loaded.
    _ = cycle(Watch, 0),
    Worker ! go,
    CallMs = watch(Watch, Worker, monotonic_ms() + LookMs),
    unlink(Worker),
    exit(Worker, kill),
    unlink(Echo),
    exit(Echo, kill),
    #{lookup => histogram(Watch#watch.lookups), round_trip => histogram(Watch#watch.trips),
      call_ms => CallMs}.

work(Watcher, Prepare) ->
    Call = Prepare(),
    Watcher ! {self(), ready},
    receive go -> ok end,
    %% The result stays until all is measured: to give back its memory is no part of the call.
    {Us, Result} = timer:tc(Call),
    Watcher ! {self(), done, Us / 1000},
    receive stop -> Result end.

watch(Watch, Worker, Until) ->
    watch(Watch, Worker, Until, 1, erlang:monotonic_time(nanosecond), none).

watch(Watch, Worker, Until, N, Due, CallMs) ->
    ok = wait(Due),
    ok = cycle(Watch, N),
    Next = max(Due + ?INTERVAL_NS, erlang:monotonic_time(nanosecond)),
    receive
        {Worker, done, Ms} -> watch(Watch, Worker, Until, N + 1, Next, Ms)
    after 0 ->
        case CallMs =/= none andalso monotonic_ms() >= Until of
            true -> CallMs;
            false -> watch(Watch, Worker, Until, N + 1, Next, CallMs)
        end
    end.

monotonic_ms() -> erlang:monotonic_time(millisecond).

%% Others have their turn meanwhile, as if this process slept; but it need not be woken up.
wait(Due) ->
    case erlang:monotonic_time(nanosecond) of
        Now when Now >= Due -> ok;
        _ -> erlang:yield(), wait(Due)
    end.

%% One lookup and one round trip.
cycle(#watch{side = Side, table = Table, keys = Keys, echo = Echo} = Watch, N) ->
    Key = 1 + N * ?SCATTER rem Keys,
    {Cpu0, _} = erlang:statistics(runtime),
    T0 = erlang:monotonic_time(nanosecond),
    _ = Side:lookup(Table, Key),
    T1 = erlang:monotonic_time(nanosecond),
    {Cpu1, _} = erlang:statistics(runtime),
    T2 = erlang:monotonic_time(nanosecond),
    Echo ! self(),
    receive Echo -> ok end,
    T3 = erlang:monotonic_time(nanosecond),
    {Cpu2, _} = erlang:statistics(runtime),
    count(Watch#watch.lookups, counted(T1 - T0, Cpu1 - Cpu0)),
    count(Watch#watch.trips, counted(T3 - T2, Cpu2 - Cpu1)).

%% Time without a processor is not counted.
counted(Ns, CpuMs) -> min(Ns, 1000000 * (CpuMs + 1)).

echo() ->
    receive Pid -> Pid ! self() end,
    echo().

%%--------------------------------------------------------------------------------------------
%% Histograms
%%--------------------------------------------------------------------------------------------

%% Buckets of 0.1 us up to 0.1 ms, of 10 us up to 10 ms, and so on.
-define(OF_ONE_WIDTH, 1000).
-define(WIDTHS, [100, 10000, 1000000, 100000000]).

buckets() -> 1 + length(?WIDTHS) * ?OF_ONE_WIDTH.

bucket(Ns) -> bucket(Ns, ?WIDTHS, 1).

bucket(Ns, [Width | _], First) when Ns < Width * ?OF_ONE_WIDTH -> First + Ns div Width;
bucket(Ns, [_ | Widths], First) -> bucket(Ns, Widths, First + ?OF_ONE_WIDTH);
bucket(_, [], First) -> First.

%% Returns the longest time of a bucket.
upper(Bucket) ->
    Index = Bucket - 1,
    case Index div ?OF_ONE_WIDTH < length(?WIDTHS) of
        true -> lists:nth(1 + Index div ?OF_ONE_WIDTH, ?WIDTHS) * (1 + Index rem ?OF_ONE_WIDTH);
        false -> lists:last(?WIDTHS) * ?OF_ONE_WIDTH
    end.

%% Counts a time, and those of all requests that would have come meanwhile.
count(_, Ns) when Ns < 0 ->
    ok;
count(Counters, Ns) ->
    ok = counters:add(Counters, bucket(Ns), 1),
    count(Counters, Ns - ?INTERVAL_NS).

histogram(Counters) ->
    [{Bucket, Count} || Bucket <- lists:seq(1, buckets()),
                        Count <- [counters:get(Counters, Bucket)], Count > 0].

%% @doc Returns the nanoseconds that this part of all took at most.
-spec percentile(float(), histogram()) -> non_neg_integer().
percentile(Part, Histogram) ->
    All = lists:sum([Count || {_, Count} <- Histogram]),
    percentile_of(ceil(Part * All), Histogram).

percentile_of(Rank, [{Bucket, Count} | Rest]) when Rank =< Count; Rest =:= [] ->
    upper(Bucket);
percentile_of(Rank, [{_, Count} | Rest]) ->
    percentile_of(Rank - Count, Rest).

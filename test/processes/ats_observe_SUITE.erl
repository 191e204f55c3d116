%% Observation of the tables of `ets': their uses are found, nothing is left behind, and others that
%% trace are not disturbed.
-module(ats_observe_SUITE).

-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0, end_per_testcase/2]).
-export([
    uses_are_found/1,
    queries_are_told_apart/1,
    lines_are_printed/1,
    a_flood_of_calls_is_bounded/1,
    nothing_is_left/1,
    killed_callers_and_observers/1,
    others_that_trace/1,
    wrong_options/1
]).

suite() -> [{timetrap, {minutes, 3}}].

all() ->
    [
        uses_are_found,
        queries_are_told_apart,
        lines_are_printed,
        a_flood_of_calls_is_bounded,
        nothing_is_left,
        killed_callers_and_observers,
        others_that_trace,
        wrong_options
    ].

end_per_testcase(_, _) ->
    %% A session of its own leaves these alone.
    ?assertEqual({traced, false}, erlang:trace_info({ets, lookup, 2}, traced)).

%% Runs a function over and over in a process, while another function runs.
beside(Functions, Run) ->
    Loop = fun Loop(Function) ->
        Function(),
        timer:sleep(1),
        Loop(Function)
    end,
    Pids = [spawn_link(fun() -> Loop(Function) end) || Function <- Functions],
    try
        Run()
    after
        [
            begin
                unlink(Pid),
                exit(Pid, kill)
            end
         || Pid <- Pids
        ]
    end.

%% Returns the observed use of a table, observing until it was called.
seen(Table, Options) ->
    {Seconds, Tables} = ats_observe:sample(Options),
    ?assert(Seconds > 0),
    case [Observed || #{table := T} = Observed <- Tables, T =:= Table] of
        [Observed] -> Observed;
        [] -> seen(Table, Options)
    end.

%% A busy machine may not let each of the three processes run while they are observed.
all_seen(T) ->
    case seen(T, #{time => 400}) of
        #{use := #{readers := 1, writers := 2}} = Observed -> {ok, Observed};
        #{use := #{readers := Readers, writers := Writers}} when Readers < 2, Writers < 3 -> false
    end.

uses_are_found(_) ->
    T = ets:new(?FUNCTION_NAME, [ordered_set, public]),
    Named = ets:new(named_observed, [bag, public, named_table, {keypos, 2}]),
    true = ets:insert(T, [{N, N} || N <- lists:seq(1, 50)]),
    Owner = self(),
    Words = ets:info(T, memory) * erlang:system_info(wordsize),
    Write = fun() -> ets:update_counter(T, 7, 0) end,
    Read = fun() -> [ets:lookup(T, 3), ets:next(T, 4), ets:member(T, 9)] end,
    ReadNamed = fun() -> ets:lookup(named_observed, 1) end,
    beside([Write, Write, Read, ReadNamed], fun() ->
        Observed = found(fun() -> all_seen(T) end),
        #{name := ?FUNCTION_NAME, type := ordered_set, size := 50, owner := Owner, use := Use} =
            Observed,
        ?assertEqual(Words, maps:get(memory, Observed)),
        #{reads := Reads, writes := Writes, scans := 0, ranges := 0} = Use,
        ?assert(Reads > 0 andalso Writes > 1, Use),
        #{type := bag, use := #{writes := 0}} = seen(ets:whereis(Named), #{time => 400})
    end).

%% Tries queries of an ordered table, and of one without order.
queries_are_told_apart(_) ->
    [
        begin
            T = ets:new(?FUNCTION_NAME, [Type, public, {keypos, 2}]),
            true = ets:insert(T, [{N, {N, a}} || N <- lists:seq(1, 50)]),
            beside([fun() -> Query(T) end], fun() ->
                #{use := Use} = seen(T, #{time => 200}),
                Used = [Kind || Kind <- [reads, scans, ranges, writes], map_get(Kind, Use) > 0],
                ?assertEqual(Expected, Used, {Type, Number})
            end),
            true = ets:delete(T)
        end
     || {Type, Number, Query, Expected} <- queries()
    ].

queries() ->
    Clause = fun(Key, Guards) -> [{{'_', Key}, Guards, ['$_']}] end,
    Both = [
        {fun(T) -> ets:select(T, Clause({3, a}, [])) end, [reads]},
        {fun(T) -> ets:match_object(T, {'_', {3, a}}) end, [reads]},
        {fun(T) -> ets:match(T, {'$1', {3, '$0a'}}) end, [reads]},
        {fun(T) -> ets:select(T, Clause({'_', a}, [])) end, [scans]},
        {fun(T) -> ets:tab2list(T) end, [scans]},
        {fun(T) -> ets:select(T, Clause('$1', []), 10) end, [scans]},
        {fun(T) -> ets:select_count(T, [{'_', [], [true]}]) end, [scans]},
        {fun(T) -> ets:select_delete(T, [{'_', [{'=:=', {size, '$_'}, 7}], [true]}]) end, [
            scans, writes
        ]},
        {fun(T) -> ats_test_lib:attempt(fun() -> ets:select(T, not_a_spec) end) end, [reads]}
    ],
    Ordered = [
        {fun(T) -> ets:select(T, Clause({3, '_'}, [])) end, [reads]},
        {fun(T) -> ets:select_reverse(T, Clause('$1', [{'>', '$1', {{45, a}}}])) end, [ranges]}
    ],
    Unordered = [
        {fun(T) -> ets:select(T, Clause({3, '_'}, [])) end, [scans]},
        {fun(T) -> ets:select(T, Clause('$1', [{'=:=', '$1', {{45, a}}}])) end, [ranges]}
    ],
    [
        {Type, Number, Query, Expected}
     || {Type, Queries} <- [{ordered_set, Both ++ Ordered}, {set, Both ++ Unordered}],
        {Number, {Query, Expected}} <- lists:enumerate(Queries)
    ].

lines_are_printed(_) ->
    T = ets:new(a_table_with_a_long_name, [public, named_table]),
    Other = ets:new(other, [public]),
    beside([fun() -> ets:insert(T, {1}) end, fun() -> ets:insert(Other, {1}) end], fun() ->
        _ = seen(ets:whereis(T), #{time => 100}),
        ct:capture_start(),
        ok = ats:observe(#{time => 300, lines => 1000}),
        ct:capture_stop()
    end),
    Lines = string:split(lists:append(ct:capture_get()), "\n", all),
    [Line] = [Line || "a_table_with_a_long_name " ++ Line <- Lines],
    ?assertMatch(["set", "1", _, "100%", "-", "1", "stay:" | _], string:lexemes(Line, " ")),
    Named = lists:flatten(io_lib:format("other ~w ", [Other])),
    ?assertMatch([_], [Begin || Begin <- Lines, lists:prefix(Named, Begin)]).

%% Processes that do nothing else call as often as they can.
a_flood_of_calls_is_bounded(_) ->
    T = ets:new(?FUNCTION_NAME, [public]),
    Flood = fun Flood() ->
        ets:insert(T, {1}),
        Flood()
    end,
    Pids = [spawn_link(Flood) || _ <- lists:seq(1, 4)],
    #{use := #{writes := Writes, writers := Writers}} = seen(T, #{time => 1000, calls => 1000}),
    ct:pal("~b calls were seen", [Writes]),
    ?assert(Writes >= 250),
    ?assert(Writers =< 4),
    [
        begin
            unlink(Pid),
            exit(Pid, kill)
        end
     || Pid <- Pids
    ].

nothing_is_left(_) ->
    Tables = ats:all(),
    Queue = process_info(self(), message_queue_len),
    Processes = length(processes()),
    T = ets:new(?FUNCTION_NAME, [public]),
    beside([fun() -> ets:select(T, [{{'_', 1}, [], ['$_']}]) end], fun() ->
        seen(T, #{time => 100})
    end),
    ?assertEqual(Tables, ats:all()),
    ?assertEqual(Queue, process_info(self(), message_queue_len)),
    ok = until(fun() -> length(processes()) =< Processes end),
    {flags, []} = erlang:trace_info(self(), flags).

killed_callers_and_observers(_) ->
    Before = processes(),
    Begin = fun() ->
        Caller = spawn(fun() -> ats:observe(#{time => 3600_000}) end),
        Find = fun() ->
            case processes() -- [Caller | Before] of
                [Observer | _] -> {ok, Observer};
                [] -> false
            end
        end,
        {Caller, found(Find)}
    end,
    {Caller, Observer} = Begin(),
    Ended = monitor(process, Observer),
    exit(Caller, kill),
    receive
        {'DOWN', Ended, process, _, _} -> ok
    end,
    {KilledCaller, Killed} = Begin(),
    Failed = monitor(process, KilledCaller),
    exit(Killed, kill),
    receive
        {'DOWN', Failed, process, _, Reason} -> ?assertEqual(killed, Reason)
    end,
    %% The patterns of the one that was killed are no reason to refuse, and go with the next.
    T = ets:new(?FUNCTION_NAME, [public]),
    beside([fun() -> ets:insert(T, {1}) end], fun() -> seen(T, #{time => 100}) end).

until(IsDone) ->
    case IsDone() of
        true ->
            ok;
        false ->
            timer:sleep(5),
            until(IsDone)
    end.

found(Find) ->
    case Find() of
        {ok, Found} ->
            Found;
        false ->
            timer:sleep(5),
            found(Find)
    end.

others_that_trace(_) ->
    T = ets:new(?FUNCTION_NAME, [public]),
    Self = self(),
    Traced = spawn_link(fun Loop() ->
        receive
            {call, Pid} -> Pid ! {called, ets:lookup(T, 1)}
        end,
        Loop()
    end),
    1 = erlang:trace(Traced, true, [procs, {tracer, Self}]),
    case code:which(trace) of
        non_existing ->
            ?assertError(badarg, ats:observe(#{time => 100})),
            {tracer, Self} = erlang:trace_info(Traced, tracer);
        _ ->
            beside([fun() -> ets:insert(T, {1}) end], fun() -> seen(T, #{time => 100}) end),
            {tracer, Self} = erlang:trace_info(Traced, tracer)
    end,
    {flags, [procs]} = erlang:trace_info(Traced, flags),
    1 = erlang:trace(Traced, false, [procs]),
    unlink(Traced),
    exit(Traced, kill).

wrong_options(_) ->
    Text = fun(Options) ->
        try ats:observe(Options) of
            ok -> ct:fail({accepted, Options})
        catch
            error:badarg:Stack ->
                [{ats, observe, [Options], _} | _] = Stack,
                #{1 := Words} = ats_errors:format_error(badarg, Stack),
                Words
        end
    end,
    [
        ?assertEqual(<<"invalid options: ", Expected/binary>>, Text(Options))
     || {Options, Expected} <- [
            {[], <<"the options are not a map">>},
            {#{time => 0}, <<"`time' is not a number of milliseconds from 1 to an hour">>},
            {#{time => 3600_001}, <<"`time' is not a number of milliseconds from 1 to an hour">>},
            {#{calls => infinity}, <<"`calls' is not a number from 1 to 100,000">>},
            {#{lines => -1}, <<"`lines' is not a positive number">>},
            {#{tiem => 5}, <<"there is no option tiem; is `time' meant?">>}
        ]
    ].

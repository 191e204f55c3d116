%% @doc Shows how an `ordered_set' adapts: looks at its statistics every 20 milliseconds while it
%% is written by two processes, by eight, by one, then only read, then written in one narrow range,
%% and then left alone until it is coarse again.
%%
%% The observations go to `adaptation.csv', the number of base nodes as a picture to
%% `adaptation.svg'. At the end it is checked that the tree became finer where there was contention
%% and coarse again where there was none. A machine that is busy with something else has less
%% contention than one that is not, and may fail the check.
-module(ats_bench_trace).

-export([main/1]).

-record(options,
        {phase_ms = 3000 :: pos_integer(),
         folder = "docs/inside" :: string()}).

-record(phase,
        {name :: atom(),
         label :: string(),
         processes = 0 :: non_neg_integer(),
         loop = mixed :: ats_bench_run:loop(),
         mix = {50, 50, 0} :: ats_bench_keys:mix(),
         span = all :: all | ats_bench_keys:span()}).

-record(sample,
        {%% Since the first sample.
         ms :: non_neg_integer(),
         phase :: atom(),
         stats :: #{atom() => non_neg_integer()}}).

-type samples() :: [#sample{}, ...].

-define(LOG2, 20).
-define(EVERY_MS, 20).
-define(HOT_KEYS, 64).
%% The time for which it is watched after it has become coarse, and the most that this may take.
-define(REST_MS, 1000).
-define(LONGEST_IDLE_MS, 60000).
-define(ITEMS, [route_nodes, base_nodes, depth, splits, joins, contended, uncontended]).
-define(OPERATIONS, 1 bsl 16).
-define(CHUNK, 1024).
%% A tree that two writers contend for is split into at least so many.
-define(FINE, 4).

%% @doc Runs the phases and stops the virtual machine, with exit code 1 if the tree did not adapt
%% as it should. Arguments: `--ms N' (length of a phase), `--folder NAME' (for the files),
%% `--quick' (half a second each, files in `bench/results').
-spec main([string()]) -> no_return().
main(Args) ->
    Usage = "ats_bench_trace [--quick] [--ms N] [--folder NAME]",
    ats_bench_command:run(Usage, fun() -> trace(options(Args, #options{})) end).

options([], Options) ->
    Options;
options(["--quick" | Rest], Options) ->
    options(Rest, Options#options{phase_ms = 500, folder = "bench/results"});
options(["--ms", N | Rest], Options) ->
    options(Rest, Options#options{phase_ms = ats_bench_command:positive(N)});
options(["--folder", Folder | Rest], Options) ->
    options(Rest, Options#options{folder = Folder});
options([What | _], _) ->
    ats_bench_command:unknown(What).

trace(Options) ->
    %% The clock of the samples must not wait behind eight writers.
    _ = process_flag(priority, high),
    Table = filled_table(),
    Prepared = prepared(phases()),
    Start = erlang:monotonic_time(millisecond),
    {Loads, Samples} = lists:unzip([run(Phase, Handles, Table, Start, Options)
                                    || {Phase, Handles} <- Prepared]),
    true = ats:delete(Table),
    print(Loads, Samples),
    save(lists:append(Samples), Options),
    is_as_expected(lists:append(Samples)).

phases() ->
    [#phase{name = two_writers, label = "2 writing", processes = 2},
     #phase{name = eight_writers, label = "8 writing", processes = 8},
     #phase{name = one_writer, label = "1 writing", processes = 1},
     #phase{name = readers, label = "2 reading", processes = 2, loop = lookup, mix = {0, 0, 0}},
     #phase{name = hot_range, label = "4 writing 64 keys", processes = 4,
            span = {1 bsl (?LOG2 - 1), ?HOT_KEYS}},
     #phase{name = idle, label = "idle"}].

filled_table() ->
    Table = ats:new(trace, [ordered_set, public]),
    is_map(ats:info(Table, stats)) orelse
        throw({refused, "this build of ats does not tell statistics of an ordered_set"}),
    ok = ats_bench_run:in_process(
        fun() ->
                lists:foreach(fun(N) -> ats:insert(Table, {N, N}) end,
                              ats_bench_keys:shuffled_half(?LOG2))
        end),
    Table.

%%--------------------------------------------------------------------------------------------
%% Phases and samples
%%--------------------------------------------------------------------------------------------

%% All operations exist before the first phase, so that one follows right after the other.
prepared(Phases) ->
    {Prepared, _} = lists:mapfoldl(
        fun(#phase{processes = P} = Phase, Stored) ->
                Handles = [ats_bench_run:store(Stored + N, operations(Phase, N))
                           || N <- lists:seq(1, P)],
                {{Phase, Handles}, Stored + P}
        end, 0, Phases),
    Prepared.

%% Operations per second of all processes, how many processors they had, and what was seen.
-spec run(#phase{}, [ats_bench_run:handle()], ats:table(), integer(), #options{}) ->
          {{float(), float()}, samples()}.
run(Phase, [], Table, Start, _) ->
    {{0.0, 0.0}, sample_until_coarse(Phase, Table, Start)};
run(Phase, Handles, Table, Start, #options{phase_ms = PhaseMs}) ->
    Begin = erlang:monotonic_time(millisecond),
    {Runtime, _} = statistics(runtime),
    First = sample(Phase, Table, Start),
    Workers = ats_bench_run:start(ats_bench_ats, Phase#phase.loop, Table, Handles, PhaseMs),
    wait(First, Start),
    Samples = sample_until(Begin + PhaseMs, Phase, Table, Start),
    Rate = ats_bench_run:finish(Workers),
    {RuntimeThen, _} = statistics(runtime),
    Processors = (RuntimeThen - Runtime) / (erlang:monotonic_time(millisecond) - Begin),
    {{Rate, Processors}, [First | Samples]}.

operations(#phase{span = all} = Phase, Process) ->
    operations(Phase#phase{span = {0, 1 bsl ?LOG2}}, Process);
operations(#phase{span = Span, mix = Mix}, Process) ->
    ats_bench_run:in_process(
        fun() ->
                ats_bench_keys:operations(integers, Span, Mix, {Process, ?OPERATIONS, ?CHUNK})
        end).

-spec sample_until(integer(), #phase{}, ats:table(), integer()) -> samples().
sample_until(End, Phase, Table, Start) ->
    Sample = sample(Phase, Table, Start),
    wait(Sample, Start),
    case erlang:monotonic_time(millisecond) of
        Now when Now >= End -> [Sample];
        _ -> [Sample | sample_until(End, Phase, Table, Start)]
    end.

%% Until it has been coarse for a while, or for too long has not become so.
-spec sample_until_coarse(#phase{}, ats:table(), integer()) -> samples().
sample_until_coarse(Phase, Table, Start) ->
    Now = erlang:monotonic_time(millisecond),
    sample_until_coarse(Phase, Table, Start, Now, Now + ?LONGEST_IDLE_MS).

sample_until_coarse(Phase, Table, Start, Since0, End) ->
    Sample = sample(Phase, Table, Start),
    wait(Sample, Start),
    Now = erlang:monotonic_time(millisecond),
    Since = case base_nodes(Sample) of
                1 -> Since0;
                _ -> Now
            end,
    case Now - Since >= ?REST_MS orelse Now >= End of
        true -> [Sample];
        false -> [Sample | sample_until_coarse(Phase, Table, Start, Since, End)]
    end.

sample(#phase{name = Name}, Table, Start) ->
    Stats = ats:info(Table, stats),
    #sample{ms = erlang:monotonic_time(millisecond) - Start, phase = Name, stats = Stats}.

%% Samples are due at multiples of their distance, so that delays do not add up.
wait(#sample{ms = Ms}, Start) ->
    Due = Start + (Ms div ?EVERY_MS + 1) * ?EVERY_MS,
    timer:sleep(max(0, Due - erlang:monotonic_time(millisecond))).

base_nodes(Sample) -> item(base_nodes, Sample).

item(Item, #sample{stats = Stats}) -> maps:get(Item, Stats).

%%--------------------------------------------------------------------------------------------
%% Results
%%--------------------------------------------------------------------------------------------

print(Loads, Samples) ->
    Format = "~-20ts ~8ts ~8ts ~8ts ~8ts ~8ts ~8ts ~8ts ~10ts~n",
    io:format(Format, ["phase", "base", "highest", "base", "depth", "splits", "joins", "million",
                       "processors"]),
    io:format(Format, ["", "at first", "", "at last", "at last", "", "", "ops/s", "used"]),
    lists:foreach(
        fun({#phase{label = Label}, {Rate, Processors}, [First | _] = Seen}) ->
                Last = lists:last(Seen),
                Grown = fun(Item) -> item(Item, Last) - item(Item, First) end,
                Numbers = [base_nodes(First), highest(Seen), base_nodes(Last), item(depth, Last),
                           Grown(splits), Grown(joins)],
                io:format(Format, [Label | [integer_to_list(N) || N <- Numbers]]
                                  ++ [float_to_list(Rate / 1.0e6, [{decimals, 3}]),
                                      float_to_list(Processors, [{decimals, 2}])])
        end, lists:zip3(phases(), Loads, Samples)).

highest(Samples) -> lists:max([base_nodes(S) || S <- Samples]).

save(Samples, #options{folder = Folder}) ->
    Csv = filename:join(Folder, "adaptation.csv"),
    Svg = filename:join(Folder, "adaptation.svg"),
    ok = filelib:ensure_dir(Csv),
    ok = file:write_file(Csv, csv(Samples)),
    ok = file:write_file(Svg, picture(Samples)),
    io:format("~nwritten to ~ts and ~ts~n", [Csv, Svg]).

csv(Samples) ->
    Header = ["ms", "phase" | [atom_to_list(Item) || Item <- ?ITEMS]],
    Lines = [[integer_to_list(Ms), atom_to_list(Phase)
              | [integer_to_list(item(Item, Sample)) || Item <- ?ITEMS]]
             || #sample{ms = Ms, phase = Phase} = Sample <- Samples],
    [[lists:join($,, Line), $\n] || Line <- [Header | Lines]].

picture(Samples) ->
    Title = io_lib:format("Base nodes of an ordered_set of ~b objects (Erlang/OTP ~s, "
                          "~b schedulers)",
                          [1 bsl (?LOG2 - 1), erlang:system_info(otp_release),
                           erlang:system_info(schedulers_online)]),
    Points = [{Ms / 1000, base_nodes(Sample)} || #sample{ms = Ms} = Sample <- Samples],
    ats_bench_svg:steps(#{title => lists:flatten(Title), x_title => "seconds",
                          bands => bands(Samples), points => Points}).

%% A band ends where the next begins.
bands(Samples) ->
    Begins = [begin_of(Name, Samples) || #phase{name = Name} <- phases()],
    Ends = tl(Begins) ++ [(lists:last(Samples))#sample.ms / 1000],
    [{Begin, End, Label}
     || {Begin, End, #phase{label = Label}} <- lists:zip3(Begins, Ends, phases())].

begin_of(Name, Samples) ->
    [#sample{ms = Ms} | _] = of_phase(Name, Samples),
    Ms / 1000.

of_phase(Name, Samples) -> [S || #sample{phase = Phase} = S <- Samples, Phase =:= Name].

%% Prints what was expected and whether it was seen.
is_as_expected(Samples) ->
    Contention = of_phase(two_writers, Samples) ++ of_phase(eight_writers, Samples),
    Highest = highest(Contention),
    AfterOne = base_nodes(lists:last(of_phase(one_writer, Samples))),
    AfterReaders = base_nodes(lists:last(of_phase(readers, Samples))),
    [HotFirst | _] = Hot = of_phase(hot_range, Samples),
    HotSplits = item(splits, lists:last(Hot)) - item(splits, HotFirst),
    Expectations =
        [{"one base node after filling by one process", base_nodes(hd(Samples)) =:= 1},
         {"several base nodes under contention", Highest >= ?FINE},
         {"at most half of them after one process wrote alone", 2 * AfterOne =< Highest},
         {"not more of them after reading", AfterReaders =< AfterOne},
         {"splits by writers of neighbouring keys", HotSplits > 0 andalso highest(Hot) > 1},
         {"one base node in the end", base_nodes(lists:last(Samples)) =:= 1}],
    lists:foreach(fun({Text, true}) -> io:format("  ok      ~ts~n", [Text]);
                     ({Text, false}) -> io:format("  NOT SO  ~ts~n", [Text])
                  end, Expectations),
    IsSo = lists:all(fun({_, Is}) -> Is end, Expectations),
    IsSo orelse io:format("Writers contend only where they run at the same time: this needs two "
                          "processors~nwith nothing else to do; the last column says how many "
                          "there were.~n"),
    IsSo.

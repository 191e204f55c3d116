%% @doc Shows how an `ordered_set' adapts: looks at its statistics every 20 milliseconds while it
%% is written by two processes, by eight, by one, then only read, then written in one narrow range,
%% and then left alone until it is coarse again.
%%
%% The observations go to `adaptation.csv', the number of base nodes as a picture to
%% `adaptation.svg'; with `--trees' the nodes of the tree go to `trees.jsonl' as well, a dozen times
%% in each phase. At the end it is checked that the tree became finer where there was contention
%% and coarse again where there was none. A machine that is busy with something else has less
%% contention than one that is not, and may fail the check.
-module(ats_bench_trace).

-export([main/1]).

-define(LOG2, 20).

-record(options,
        {phase_ms = 3000 :: pos_integer(),
         has_trees = false :: boolean(),
         folder = "docs/inside" :: string()}).

-record(phase,
        {name :: atom(),
         label :: string(),
         processes = 0 :: non_neg_integer(),
         work = {mix, [{1 bsl 31, insert}, {1 bsl 32, delete}]} :: ats_bench_run:work(),
         span = {integers, 0, 1 bsl ?LOG2} :: ats_bench_keys:span()}).

-record(sample,
        {%% Since the first sample.
         ms :: non_neg_integer(),
         phase :: atom(),
         stats :: #{atom() => non_neg_integer()},
         %% The shape of the tree, in some samples only.
         nodes = none :: none | [ats_nif:shape_node()]}).

-type samples() :: [#sample{}, ...].

-define(EVERY_MS, 20).
%% The number of trees of a phase.
-define(TREES, 12).
-define(HOT_KEYS, 64).
%% The time for which it is watched after it has become coarse, and the most that this may take.
-define(REST_MS, 1000).
-define(LONGEST_IDLE_MS, 60000).
-define(ITEMS, [route_nodes, base_nodes, depth, splits, joins, contended, uncontended]).
%% A tree that two writers contend for is split into at least this number of base nodes.
-define(FINE, 4).

%% @doc Runs the phases and stops the virtual machine, with exit code 1 if the tree did not adapt
%% as it should. Arguments: `--ms N' (length of a phase), `--folder NAME' (for the files),
%% `--trees' (the nodes, too), `--quick' (half a second each, files in `bench/results').
-spec main([string()]) -> no_return().
main(Args) ->
    Usage = "ats_bench_trace [--quick] [--ms N] [--trees] [--folder NAME]",
    ats_bench_command:run(Usage, fun() -> trace(options(Args, #options{})) end).

options([], Options) ->
    Options;
options(["--quick" | Rest], Options) ->
    options(Rest, Options#options{phase_ms = 500, folder = "bench/results"});
options(["--ms", N | Rest], Options) ->
    options(Rest, Options#options{phase_ms = ats_bench_command:positive(N)});
options(["--trees" | Rest], Options) ->
    options(Rest, Options#options{has_trees = true});
options(["--folder", Folder | Rest], Options) ->
    options(Rest, Options#options{folder = Folder});
options([What | _], _) ->
    ats_bench_command:unknown(What).

trace(Options) ->
    %% The clock of the samples must not wait behind eight writers.
    _ = process_flag(priority, high),
    Table = filled_table(),
    Start = erlang:monotonic_time(millisecond),
    Look = look(Table, Start, Options),
    {Loads, Samples} = lists:unzip([run(Phase, Table, Look, Options) || Phase <- phases()]),
    true = ats:delete(Table),
    print(Loads, Samples),
    save(lists:append(Samples), Options),
    is_as_expected(lists:append(Samples)).

phases() ->
    [#phase{name = two_writers, label = "2 writing", processes = 2},
     #phase{name = eight_writers, label = "8 writing", processes = 8},
     #phase{name = one_writer, label = "1 writing", processes = 1},
     #phase{name = readers, label = "2 reading", processes = 2, work = {only, lookup}},
     #phase{name = hot_range, label = "4 writing 64 keys", processes = 4,
            span = {integers, 1 bsl (?LOG2 - 1), ?HOT_KEYS}},
     #phase{name = idle, label = "idle"}].

filled_table() ->
    Table = ats:new(trace, [ordered_set, public]),
    is_map(ats:info(Table, stats)) orelse
        throw({refused, "this build of ats does not tell statistics of an ordered_set"}),
    ok = ats_bench_run:in_process(
        fun() ->
                lists:foreach(fun(N) -> ats:insert(Table, {N, N}) end,
                              ats_bench_keys:numbers(half, 1 bsl ?LOG2))
        end),
    Table.

%%--------------------------------------------------------------------------------------------
%% Phases and samples
%%--------------------------------------------------------------------------------------------

-type look() :: fun((#phase{}) -> #sample{}).

%% Returns a function that takes a sample and then waits until the next one is due.
-spec look(ats:table(), integer(), #options{}) -> look().
look(Table, Start, #options{phase_ms = PhaseMs, has_trees = HasTrees}) ->
    Every = max(1, PhaseMs div (?TREES * ?EVERY_MS)),
    fun(#phase{name = Name}) ->
            Ms = erlang:monotonic_time(millisecond) - Start,
            Nodes = case HasTrees andalso Ms div ?EVERY_MS rem Every =:= 0 of
                        true -> ats_nif:shape(Table);
                        false -> none
                    end,
            Stats = ats:info(Table, stats),
            %% Samples are due at multiples of their distance, so that delays do not add up.
            Due = Start + (Ms div ?EVERY_MS + 1) * ?EVERY_MS,
            timer:sleep(max(0, Due - erlang:monotonic_time(millisecond))),
            #sample{ms = Ms, phase = Name, stats = Stats, nodes = Nodes}
    end.

%% Runs a phase. Returns operations per second of all processes, the number of processors they had,
%% and the samples.
-spec run(#phase{}, ats:table(), look(), #options{}) -> {{float(), float()}, samples()}.
run(#phase{processes = 0} = Phase, _, Look, _) ->
    Now = erlang:monotonic_time(millisecond),
    {{0.0, 0.0}, look_until_coarse(Phase, Look, Now, Now + ?LONGEST_IDLE_MS)};
run(Phase, Table, Look, #options{phase_ms = PhaseMs}) ->
    Begin = erlang:monotonic_time(millisecond),
    {Runtime, _} = statistics(runtime),
    First = Look(Phase),
    Workers = ats_bench_run:start({ats_bench_ats, Table}, Phase#phase.work, Phase#phase.span,
                                  lists:seq(1, Phase#phase.processes), PhaseMs),
    Samples = look_until(Begin + PhaseMs, Phase, Look),
    Rate = ats_bench_run:finish(Workers),
    {RuntimeThen, _} = statistics(runtime),
    Processors = (RuntimeThen - Runtime) / (erlang:monotonic_time(millisecond) - Begin),
    {{Rate, Processors}, [First | Samples]}.

-spec look_until(integer(), #phase{}, look()) -> samples().
look_until(End, Phase, Look) ->
    Sample = Look(Phase),
    case erlang:monotonic_time(millisecond) of
        Now when Now >= End -> [Sample];
        _ -> [Sample | look_until(End, Phase, Look)]
    end.

%% Until it has been coarse for a while, or for too long has not become so.
-spec look_until_coarse(#phase{}, look(), integer(), integer()) -> samples().
look_until_coarse(Phase, Look, Since0, End) ->
    Sample = Look(Phase),
    Now = erlang:monotonic_time(millisecond),
    Since = case base_nodes(Sample) of
                1 -> Since0;
                _ -> Now
            end,
    case Now - Since >= ?REST_MS orelse Now >= End of
        true -> [Sample];
        false -> [Sample | look_until_coarse(Phase, Look, Since, End)]
    end.

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

save(Samples, #options{folder = Folder, has_trees = HasTrees}) ->
    Csv = filename:join(Folder, "adaptation.csv"),
    Svg = filename:join(Folder, "adaptation.svg"),
    ok = filelib:ensure_dir(Csv),
    ok = file:write_file(Csv, csv(Samples)),
    ok = file:write_file(Svg, picture(Samples)),
    _ = [ok = file:write_file(filename:join(Folder, "trees.jsonl"), trees(Samples)) || HasTrees],
    io:format("~nwritten to ~ts and ~ts~n", [Csv, Svg]).

%% One JSON object a line. A base node is a list of its numbers, a route node one of its depth.
trees(Samples) ->
    [io_lib:format("{\"kind\":\"tree\",\"ms\":~b,\"phase\":\"~s\",\"nodes\":~w}~n",
                   [Ms, Phase, [numbers(Node) || Node <- Nodes]])
     || #sample{ms = Ms, phase = Phase, nodes = Nodes} <- Samples, is_list(Nodes)].

numbers(Node) when is_tuple(Node) -> tuple_to_list(Node);
numbers(Depth) -> [Depth].

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

%% Prints the expectations and whether they were met.
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

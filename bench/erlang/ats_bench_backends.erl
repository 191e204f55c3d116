%% @doc Measures the stores that a table can have beside one another, and beside `ets'.
%%
%% A mix of operations is run on a table in each store, with one process and with more, in turn,
%% several rounds. The result is the median over the rounds of the ratio over `ets' with
%% `write_concurrency' and `read_concurrency' within a round. Keys are integers, drawn evenly from a
%% range of 2^20, half of which is in the table.
%%
%% Good for: what each structure gives, all else being the same, since the calls go the same way up
%% to the store. Not good for: more processors than the machine has; see docs/inside/scaling.md for
%% these.
-module(ats_bench_backends).

-export([main/1]).

-record(options,
        {rounds = 5 :: pos_integer(),
         run_ms = 500 :: pos_integer(),
         range_log2 = 20 :: pos_integer(),
         processes = [1, 2] :: [pos_integer()],
         only = all :: all | string()}).

-define(OPERATIONS, 1 bsl 17).

%% @doc Measures all mixes on all stores, prints a table for each type, and stops the virtual
%% machine. Arguments: `--quick', `--rounds N', `--ms N' (length of a run), `--processes N' (1, 2
%% and so many), `--only TEXT' (rows whose title, such as `ordered_set, 100 % lookup', contains it).
-spec main([string()]) -> no_return().
main(Args) ->
    Usage = "ats_bench_backends [--quick] [--rounds N] [--ms N] [--processes N] [--only TEXT]",
    ats_bench_command:run(Usage, fun() -> measure(options(Args, #options{})) =:= ok end).

options([], Options) ->
    Options;
options(["--quick" | Rest], Options) ->
    options(Rest, Options#options{rounds = 3, run_ms = 50, range_log2 = 16});
options(["--rounds", N | Rest], Options) ->
    options(Rest, Options#options{rounds = ats_bench_command:positive(N)});
options(["--ms", N | Rest], Options) ->
    options(Rest, Options#options{run_ms = ats_bench_command:positive(N)});
options(["--processes", N | Rest], Options) ->
    options(Rest, Options#options{processes = lists:usort([1, 2, ats_bench_command:positive(N)])});
options(["--only", Text | Rest], Options) ->
    options(Rest, Options#options{only = Text});
options([What | _], _) ->
    ats_bench_command:unknown(What).

measure(Options) ->
    io:format("stores of tables, beside ets~n"),
    ats_bench_report:print_facts(ats_bench_report:machine_facts()),
    lists:foreach(fun(Type) -> measure_type(Type, Options) end, [ordered_set, set]).

%% The sides of a type: what they are called, the module with their loops, and the options of their
%% tables.
sides(Type) ->
    Ats = [{atom_to_list(Backend), ats_bench_ats, [{backend, Backend}]}
           || Backend <- backends(Type)],
    Wc = [{write_concurrency, true}, {read_concurrency, true}],
    [{"ets wc", ats_bench_ets, Wc}, {"ets", ats_bench_ets, []} | Ats].

backends(ordered_set) -> [default, paper_tree, lock_free_tree, skip_list, single_lock, btree];
backends(set) -> [default, hash_map, btree].

%% The mix of operations, by per cent of inserts, deletes and chains of `next'.
mixes(Type) ->
    [{"100 % lookup", {0, 0, 0}},
     {"80 % lookup, 10 insert, 10 delete", {10, 10, 0}},
     {"50 % insert, 50 % delete", {50, 50, 0}}
     | [{"40 % lookup, 20 updates, 40 chains of 1000 next", {10, 10, 40}} || Type =:= ordered_set]].

measure_type(Type, #options{only = Only} = Options) ->
    Title = fun(Name) -> atom_to_list(Type) ++ ", " ++ Name end,
    case [Mix || {Name, _} = Mix <- mixes(Type), ats_bench_command:is_chosen(Title(Name), Only)] of
        [] ->
            ok;
        Mixes ->
            Sides = sides(Type),
            Tables = [fill(Side, Type, Options) || Side <- Sides],
            print_head(Type, Sides),
            lists:foreach(fun(Mix) -> measure_mix(Mix, Sides, Tables, Options) end, Mixes),
            lists:foreach(fun({{_, Loops, _}, Table}) -> true = Loops:delete(Table) end,
                          lists:zip(Sides, Tables))
    end.

fill({Name, Loops, Options}, Type, #options{range_log2 = Log2}) ->
    ats_bench_report:progress("filling ~s of ~s", [Name, Type]),
    Table = Loops:new(benchmark, [Type, public | Options]),
    ok = ats_bench_run:in_process(
        fun() ->
                lists:foreach(fun(N) -> Loops:insert(Table, {N, 0}) end,
                              ats_bench_keys:shuffled_half(Log2))
        end),
    Table.

measure_mix({Name, Mix}, Sides, Tables, #options{processes = Processes} = Options) ->
    Handles = [ats_bench_run:store(N, operations(N, Mix, Options))
               || N <- lists:seq(1, lists:max(Processes))],
    lists:foreach(
        fun(P) ->
                Rounds = [measure_round({Name, Mix}, P, Round, Handles, Sides, Tables, Options)
                          || Round <- lists:seq(1, Options#options.rounds)],
                print_row(Name, P, Rounds)
        end, Processes),
    ok = ats_bench_run:forget(Handles).

operations(Process, {_, _, Chains} = Mix, #options{range_log2 = Log2}) ->
    Chunk = case Chains of
                0 -> 4096;
                _ -> 20
            end,
    Count = ?OPERATIONS div (1 + 300 * Chains div 100),
    ats_bench_keys:operations(integers, {0, 1 bsl Log2}, Mix, {Process, Count, Chunk}).

%% The rates of all sides. Every round begins with another side.
measure_round({Name, {_, _, Chains}}, P, Round, Handles, Sides, Tables, Options) ->
    Loop = case Chains of
               0 -> mixed;
               _ -> chains
           end,
    Numbered = lists:zip3(lists:seq(1, length(Sides)), Sides, Tables),
    {Before, After} = lists:split(Round rem length(Sides), Numbered),
    Rates = [begin
                 ats_bench_report:progress("~s, ~b process(es), round ~b: ~s",
                                           [Name, P, Round, Side]),
                 Of = lists:sublist(Handles, P),
                 {N, ats_bench_run:rate(Loops, Loop, Table, Of, Options#options.run_ms)}
             end || {N, {Side, Loops, _}, Table} <- After ++ Before],
    [Rate || {_, Rate} <- lists:sort(Rates)].

%%--------------------------------------------------------------------------------------------
%% Printing: tables of Markdown
%%--------------------------------------------------------------------------------------------

print_head(Type, [{Base, _, _} | Sides]) ->
    ats_bench_report:progress_done(),
    Names = [Name || {Name, _, _} <- Sides],
    io:format("~nratios over ~s; ~s itself in million operations a second~n~n", [Base, Base]),
    io:format("| ~s | processes | ~s |~n", [Type, lists:join(" | ", [Base | Names])]),
    io:format("|---|---|~s~n", [lists:duplicate(length(Names) + 1, "---|")]).

print_row(Name, P, Rounds) ->
    ats_bench_report:progress_done(),
    Base = median([Rate || [Rate | _] <- Rounds]),
    Ratios = [[Rate / First || Rate <- Rest] || [First | Rest] <- Rounds],
    Medians = [median(Column) || Column <- transposed(Ratios)],
    Columns = [io_lib:format("~.2f", [Number]) || Number <- [Base / 1.0e6 | Medians]],
    io:format("| ~s | ~b | ~s |~n", [Name, P, lists:join(" | ", Columns)]).

transposed([[] | _]) -> [];
transposed(Rows) -> [[hd(Row) || Row <- Rows] | transposed([tl(Row) || Row <- Rows])].

median(Numbers) -> lists:nth(length(Numbers) div 2 + 1, lists:sort(Numbers)).

%% @private
%% @doc Ten everyday programs on tables of `ats' beside those of `ets'.
%%
%% The programs are in `ats_bench_programs.hrl'. Processes do steps of a program until their time is
%% up, with the same random numbers on all sides. A program of `ets' runs on plain tables, and on
%% tables with `{write_concurrency, true}' and `{read_concurrency, true}'.
-module(ats_bench_programs).

-export([rows/4, run/5]).

%% @doc Measures the programs whose title is chosen.
-spec rows(fun((string()) -> boolean()), [pos_integer()], pos_integer(), pos_integer()) ->
          [ats_bench_report:row()].
rows(IsChosen, Processes, Rounds, RunMs) ->
    [Row || Program <- ats_bench_programs_ats:programs(), IsChosen(title(Program)),
            Row <- measure(Program, Processes, Rounds, RunMs)].

title(Program) -> "program: " ++ name(Program).

name(Program) -> string:replace(atom_to_list(Program), "_", " ", all).

measure(Program, Processes, Rounds, RunMs) ->
    Sides = ats_bench_sides:sides(ets, set),
    Found = [maps:from_list([begin
                                 ats_bench_report:progress("~ts, ~b process(es), round ~b of ~b",
                                                           [title(Program), P, Round, Rounds]),
                                 {{ats_bench_sides:name(Side), P},
                                  rate(Program, Side, P, Round, RunMs)}
                             end || P <- Processes, Side <- ats_bench_sides:turned(Round, Sides)])
             || Round <- lists:seq(1, Rounds)],
    Labels = #{name => lists:flatten(name(Program)), field => programs, keys => "Term", set => new,
               type => set, loop_ns => null},
    ats_bench_report:workload_rows(Labels, [ats_bench_sides:name(S) || S <- Sides], Processes,
                                   Found).

%% Steps a second. Each run has new tables.
rate(Program, Side, P, Round, RunMs) ->
    Programs = programs(ats_bench_sides:loops(Side)),
    Tables = Programs:open(Program, ats_bench_sides:options(Side)),
    Seeds = [1000 * Round + N || N <- lists:seq(1, P)],
    Span = {integers, 0, 1},
    Rate = ats_bench_run:rate({?MODULE, {Programs, Tables}}, {program, Program}, Span, Seeds,
                              RunMs),
    ok = Programs:close(Tables),
    Rate.

programs(ats_bench_ats) -> ats_bench_programs_ats;
programs(ats_bench_ets) -> ats_bench_programs_ets.

%% @doc Does steps of a program, as {@link ats_bench_run} wants it.
-spec run(ats_bench_run:work(), {module(), [ats_bench:table()]}, ats_bench_keys:drawn(),
          ats_bench_run:generator(), non_neg_integer()) -> ats_bench_run:generator().
run({program, Program}, {Programs, Tables}, _, State, Count) ->
    Programs:run(Program, Tables, State, Count).

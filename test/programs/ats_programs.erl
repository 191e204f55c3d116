%% Runs the tests that come with programs of others, as they are and on tables of `ats'.
%%
%% scripts/programs.sh gets sources and packages, and starts a node for each of the functions here.
%% The programs are the rows of test/programs/programs.terms:
%%
%%   {Name, #{about := Text,               a few words for the page
%%            source := Package,           the source package of Debian that has the tests
%%            folder => Folder,            the folder of the program in it; default all
%%            packages => [Package],       packages of Debian that the setup does not install
%%            applications => [App],       compiled applications that are rewritten
%%            modules => {App, [Module]},  modules of an application that are
%%            compiled => [{App, Path}],   applications that are compiled with the tests inside, by
%%                                         their path in all sources, and are rewritten
%%            beside => [Path],            others that these need, which are not rewritten
%%            except => [Module],          modules that stay with `ets'
%%            ct => [Suite],               tests: suites of common_test, or 'Suite:Case',
%%            eunit => [Module],           modules with tests of EUnit, or `all',
%%            exunit => {Folder, [File]},  or files of ExUnit, which may be patterns
%%            empty => [File],             files that Debian has left out, and tests want to copy
%%            started => [App],            applications that are started before
%%            helpers => [File],           sources in the folder test that are compiled, too;
%%                                         default all without a suite
%%            data => [Folder],            folders in the folder test that tests read
%%            macros => [{Name, Value}],   macros that the makefile of the tests defines
%%            minutes => N,                after which a run is ended; default 15
%%            known => [{Test, Why}],      tests that do not count, and why
%%            quick => true}}              part of the quick run
-module(ats_programs).

-export([list/1, prepare/1, run/1, compare/1, page/1]).

%% ----- rows -----

%% Prints a line for each program: its name, source packages with commas, and packages.
list([Table | Names]) ->
    Rows = rows(Table),
    Unknown = Names -- ["quick" | [atom_to_list(Name) || {Name, _} <- Rows]],
    [begin io:format(standard_error, "programs: there is no ~ts~n", [Name]), halt(2) end
     || Name <- Unknown],
    [io:format("~ts ~ts ~ts~n", [Name, lists:join(",", sources(Row)),
                                 lists:join(" ", maps:get(packages, Row, []))])
     || {Name, Row} <- Rows, is_chosen(Name, Row, Names)],
    halt(0).

is_chosen(_, _, []) -> true;
is_chosen(_, Row, ["quick"]) -> maps:get(quick, Row, false);
is_chosen(Name, _, Names) -> lists:member(atom_to_list(Name), Names).

sources(#{source := Source} = Row) ->
    lists:uniq([Source | [hd(filename:split(Path)) || Path <- maps:get(beside, Row, []) ++
                              [Path || {_, Path} <- maps:get(compiled, Row, [])]]]).

rows(Table) ->
    {ok, Rows} = file:consult(Table),
    Rows.

row(Table, Name) ->
    {_, Row} = lists:keyfind(list_to_atom(Name), 1, rows(Table)),
    Row.

%% ----- before -----

%% Compiles the tests of a program, and rewrites it with them.
prepare([Table, Dir, Work, Name]) ->
    _ = file:del_dir_r(Work),
    ats_programs_build:build(row(Table, Name), filename:join(Dir, "sources"), Work),
    halt(0).

%% ----- running -----

%% Runs the tests in this node, in the current folder, which gets the files `verdicts' and, for the
%% run with `ats', `evidence': the rewritten modules that are loaded, the number of tables of `ats'
%% that were made and of all calls of `ats'.
run([Table, Work, Name, Which]) ->
    Row = row(Table, Name),
    spawn(fun() -> end_late(maps:get(minutes, Row, 15)) end),
    Evidence = filename:absname("evidence"),
    Counter = [start_counter() || Which =:= "ours"],
    [{ok, _} = application:ensure_all_started(App) || App <- maps:get(started, Row, [])],
    tests(Row, filename:join(Work, Which)),
    [write_evidence(Evidence, Work, Pid) || Pid <- Counter],
    halt(0).

end_late(Minutes) ->
    timer:sleep(Minutes * 60_000),
    io:format("the time of ~b minutes is over~n", [Minutes]),
    halt(1, [{flush, false}]).

tests(#{ct := Suites} = Row, Folder) ->
    Known = maps:from_list(maps:get(known, Row, [])),
    ats_otp_cases:run(filename:join(Folder, "lib/tests/ebin"), filename:absname("verdicts"), Known,
                      [atom_to_list(Suite) || Suite <- Suites]);
tests(#{eunit := all} = Row, Folder) ->
    Apps = ["tests" | [atom_to_list(App) || {App, _} <- maps:get(compiled, Row)]],
    Modules = [list_to_atom(filename:basename(File, ".beam"))
               || App <- Apps, File <- filelib:wildcard(filename:join([Folder, "lib", App, "ebin",
                                                                      "*.beam"]))],
    tests(Row#{eunit := Modules}, Folder);
tests(#{eunit := Modules}, _) ->
    Report = {report, {ats_programs_eunit, filename:absname("verdicts")}},
    [eunit:test(Module, [no_tty, Report]) || Module <- Modules];
tests(#{exunit := {Path, Patterns}}, Folder) ->
    ats_programs_exunit:run(filename:join([Folder, "source", Path]), Patterns,
                            filename:absname("verdicts")).

write_evidence(Evidence, Work, Counter) ->
    {ok, [#{rewritten := Rewritten}]} = file:consult(filename:join(Work, "report")),
    Ours = filename:join(Work, "ours"),
    Loaded = [Module || {Module, _} <- Rewritten, {file, File} <- [code:is_loaded(Module)],
                        is_list(File), lists:prefix(Ours, File)],
    Counter ! {stop, self()},
    {Tables, Calls} = receive
                          {counted, New, All} -> {New, All}
                      end,
    ok = file:write_file(Evidence, io_lib:format("~p.~n", [#{loaded => Loaded, tables => Tables,
                                                             calls => Calls}])).

%% Some tests end all tracing, so the counts are read often, and counted anew from then on.
start_counter() ->
    {ok, _} = application:ensure_all_started(ats),
    {module, ats} = code:ensure_loaded(ats),
    Functions = [{ats, F, A} || {F, A} <- ats:module_info(exports)],
    spawn(fun() -> count(Functions, #{}, #{}) end).

count(Functions, Before, Last) ->
    Now = maps:from_list([{F, N} || F <- Functions,
                                    {call_count, N} <- [erlang:trace_info(F, call_count)],
                                    is_integer(N)]),
    receive
        {stop, From} ->
            All = sum(Before, Now),
            From ! {counted, lists:sum([N || {{ats, new, _}, N} <- maps:to_list(All)]),
                    lists:sum(maps:values(All))}
    after 100 ->
            case map_size(Now) of
                0 ->
                    _ = erlang:trace_pattern({ats, '_', '_'}, true, [call_count]),
                    count(Functions, sum(Before, Last), #{});
                _ ->
                    count(Functions, Before, Now)
            end
    end.

sum(A, B) -> maps:fold(fun(F, N, Sum) -> Sum#{F => N + maps:get(F, Sum, 0)} end, A, B).

%% ----- comparison -----

%% Prints the judgement on a program by two runs, and writes it into the file `result'.
compare([Table, Work, Name]) ->
    Row = row(Table, Name),
    Known = maps:from_list(maps:get(known, Row, [])),
    [Theirs, Ours] = [read(filename:join([Work, Run, "verdicts"])) || Run <- ["run_theirs",
                                                                              "run_ours"]],
    Judged = [{Test, ats_verdicts:judge(Verdict, maps:get(Test, Ours, none),
                                        maps:find(Test, Known))}
              || {Test, Verdict} <- lists:sort(maps:to_list(Theirs))],
    [io:format("not ok: ~ts: ~ts passes with ets and not with ats: ~ts~n",
               [Name, Test, ats_verdicts:reason(Why)]) || {Test, {failed, Why}} <- Judged],
    Passed = length([ok || {_, ok} <- Judged]),
    Failed = length([Test || {Test, {failed, _}} <- Judged]),
    Neither = length([Test || {Test, {not_run, {control, _}}} <- Judged]),
    {ok, [#{rewritten := Rewritten}]} = file:consult(filename:join(Work, "report")),
    #{loaded := Loaded, tables := Tables, calls := Calls} = evidence(Work),
    Sites = lists:sum([N || {Module, N} <- Rewritten, lists:member(Module, Loaded)]),
    Result = #{passed => Passed, failed => Failed, neither => Neither, sites => Sites,
               modules => length(Loaded)},
    ok = file:write_file(filename:join(Work, "result"), io_lib:format("~tp.~n", [Result])),
    Proof = io_lib:format("~b modules with ~b calls of ets rewritten, ~b tables and ~b calls of"
                          " ats; ~b do not pass with ets",
                          [length(Loaded), Sites, Tables, Calls, Neither]),
    if
        Passed =:= 0; Tables =:= 0; Loaded =:= [] ->
            io:format("not ok: ~ts: ~b tests pass, which proves nothing (~ts)~n",
                      [Name, Passed, Proof]),
            halt(1);
        Failed > 0 ->
            io:format("not ok: ~ts: ~b of ~b tests (~ts)~n", [Name, Failed, Passed + Failed,
                                                              Proof]),
            halt(1);
        true ->
            io:format("ok: ~ts: ~b tests (~ts)~n", [Name, Passed, Proof]),
            halt(0)
    end.

read(File) ->
    case filelib:is_regular(File) of
        true -> ats_verdicts:read(File);
        false -> #{}
    end.

evidence(Work) ->
    case file:consult(filename:join(Work, "run_ours/evidence")) of
        {ok, [Evidence]} -> Evidence;
        {error, enoent} -> #{loaded => [], tables => 0, calls => 0}
    end.

%% ----- the page -----

%% Writes the page from the results of all programs.
page([Table, Dir, Page]) ->
    Rows = rows(Table),
    ok = file:write_file(Page, unicode:characters_to_binary(
                                 [start(), [line(Dir, Row) || Row <- Rows], middle(Dir, Rows),
                                  [known(Row) || Row <- Rows], ending()])),
    halt(0).

start() ->
    "# Programs that run on ats\n"
    "\n"
    "The tests that come with these programs ran twice: as they are, and with the program and its\n"
    "tests rewritten by [`ats try`](moving-from-ets.md), so that they keep their tables in `ats`.\n"
    "Nobody changed a line of them by hand; in scripts of Elixir, `:ats.` takes the place of\n"
    "`:ets.`. `scripts/programs.sh page` runs all, and writes this page.\n"
    "\n"
    "- *rewritten*: the number of modules that were, and of the calls of `ets` in them.\n"
    "- *both*: the tests that pass with `ets` and with `ats`.\n"
    "- *only ets*: the tests that pass with `ets` and not with `ats`.\n"
    "- *neither*: the tests that do not pass as they are on the machine of the run. They miss\n"
    "  files or programs that Debian does not ship, need a network, or are meant to fail: ExUnit\n"
    "  tests itself with tests that do.\n"
    "- *left out*: the tests that do not count, for the reasons below.\n"
    "\n"
    "| program | source | rewritten | both | only ets | neither | left out |\n"
    "|---|---|---|---|---|---|---|\n".

line(Dir, {Name, #{source := Source, about := About} = Row}) ->
    Program = io_lib:format("| `~ts`: ~ts | ~ts ~ts |",
                            [Name, About, Source, version(Dir, Source)]),
    case result(Dir, Name) of
        #{passed := Passed, failed := Failed, neither := Neither, sites := Sites,
          modules := Modules} ->
            io_lib:format("~ts ~b, ~b | ~b | ~b | ~b | ~b |~n",
                          [Program, Modules, Sites, Passed, Failed, Neither,
                           length(maps:get(known, Row, []))]);
        none ->
            [Program, " not run | | | | |\n"]
    end.

result(Dir, Name) ->
    case file:consult(filename:join([Dir, "work", Name, "result"])) of
        {ok, [Result]} -> Result;
        {error, enoent} -> none
    end.

version(Dir, Source) ->
    case file:read_file(filename:join([Dir, "sources", Source ++ ".version"])) of
        {ok, Version} -> string:trim(Version);
        {error, enoent} -> ""
    end.

middle(Dir, Rows) ->
    Passed = [Passed || {Name, _} <- Rows, #{passed := Passed} <- [result(Dir, Name)]],
    [io_lib:format("~nThese are ~b tests of ~b programs that pass on both. ",
                   [lists:sum(Passed), length(Passed)]),
     "A run counts only if the rewritten\n"
     "modules were loaded and tables of `ats` were made.\n"
     "\n",
     [io_lib:format("In `~ts`, ~ts uses a table of the virtual machine, and stays with `ets`.~n~n",
                    [Name, lists:join(", ", [io_lib:format("`~ts`", [M]) || M <- Modules])])
      || {Name, #{except := Modules}} <- Rows],
     "## Tests that are left out\n"].

known({_, Row}) when not is_map_key(known, Row) -> "";
known({Name, #{known := Known}}) ->
    [io_lib:format("~n`~ts`:~n~n", [Name]),
     [io_lib:format("- ~ts:~n  ~ts~n", [Test, Why]) || {Test, Why} <- Known]].

ending() ->
    "\nRabbitMQ and ejabberd themselves run on tables of `ats`, too:\n"
    "`make test-others WHAT=servers` starts both, passes messages, and restarts them.\n"
    "`make test-others WHAT=otp` runs the suites of `ets`, `dets` and `qlc` on `ats` and `dats`.\n".

%% Runs suites of Erlang/OTP by common_test, and compares two runs. scripts/others/otp.sh compiles
%% the suites and starts the nodes.
-module(ats_otp_cases).

-export([run/1, run/4, compare/1]).

%% Called by suites of tables on disk in the place of file:delete/1 and dets:lookup_keys/2.
-export([delete/1, lookup_keys/2]).

%% Callbacks of common_test, since this is a hook of its own.
-export([init/2, pre_init_per_testcase/4, post_end_per_testcase/5, on_tc_fail/4, on_tc_skip/4]).

%% Runs suites, or cases of a suite, which are in a folder. The verdict of each case is in the file
%% `verdicts' of the current folder.
run([Folder, Listed | Arguments]) ->
    run(Folder, filename:absname("verdicts"), ats_verdicts:read_listed(Listed), Arguments),
    halt(0).

%% The same, with the file for the verdicts, and the reasons of cases that are not run. A case has
%% five minutes unless its suite says something else.
run(Folder, Verdicts, Known, Arguments) ->
    ok = filelib:ensure_path("logs"),
    Tests = lists:foldl(fun add/2, #{}, Arguments),
    maps:foreach(
      fun(Suite, Cases) ->
              Only = [{testcase, Cases} || Cases =/= all],
              {_, _, _} = ct:run_test([{dir, Folder}, {suite, Suite}, {auto_compile, false},
                                       {logdir, "logs"}, {timetrap, {minutes, 5}},
                                       {ct_hooks, [{?MODULE, {Verdicts, Known}}]} | Only])
      end, Tests).

add(Argument, Tests) ->
    case [list_to_atom(Word) || Word <- string:lexemes(Argument, ":")] of
        [Suite] -> Tests#{Suite => all};
        [Suite, Case] -> maps:update_with(Suite, fun(Cases) -> [Case | Cases] end, [Case], Tests)
    end.

%% ----- the hook -----

init(_Id, State) -> {ok, State}.

pre_init_per_testcase(Suite, Case, Config, {_Verdicts, Known} = State) ->
    case maps:find(name(Suite, Case), Known) of
        {ok, Why} -> {{skip, Why}, State};
        error -> {Config, State}
    end.

post_end_per_testcase(Suite, Case, _Config, Return, State) ->
    {Return, note(Suite, Case, ok, State)}.

on_tc_fail(Suite, Case, Reason, State) -> note(Suite, Case, {failed, Reason}, State).

on_tc_skip(Suite, Case, Reason, State) -> note(Suite, Case, {skipped, Reason}, State).

note(Suite, {Case, _Group}, Verdict, State) ->
    note(Suite, Case, Verdict, State);
note(Suite, Case, Verdict, {Verdicts, _Known} = State) ->
    ok = ats_verdicts:note(Verdicts, name(Suite, Case), Verdict),
    State.

name(Suite, Case) -> lists:concat([Suite, ":", Case]).

%% ----- tables on disk -----

%% Deletes the folder of a table, or a file.
delete(Name) ->
    case filelib:is_dir(Name) of
        true -> file:del_dir_r(Name);
        false -> file:delete(Name)
    end.

lookup_keys(Table, Keys) -> lists:append([dats:lookup(Table, Key) || Key <- Keys]).

%% ----- comparison -----

%% Prints a line for each case of the control run, whose verdicts are in the first file. Lists the
%% reasons in a file beside the second.
compare([Theirs, Ours, Listed]) ->
    Known = ats_verdicts:read_listed(Listed),
    {Control, Replaced} = {ats_verdicts:read(Theirs), ats_verdicts:read(Ours)},
    Verdicts = [{Name, ats_verdicts:judge(Verdict, maps:get(Name, Replaced, none),
                                          maps:find(Name, Known))}
                || {Name, Verdict} <- lists:sort(maps:to_list(Control))],
    [io:format("~ts~n", [text(Name, Verdict)]) || {Name, Verdict} <- Verdicts],
    [Passed, Failed, NotRun] = [length([V || {_, V} <- Verdicts, ats_verdicts:kind(V) =:= Kind])
                                || Kind <- [ok, failed, not_run]],
    io:format("~b cases passed, ~b failed, ~b were not run~n", [Passed, Failed, NotRun]),
    halt(case Verdicts of
             [] -> 1;
             _ -> min(Failed, 1)
         end).

text(Name, ok) -> ["ok: ", Name];
text(Name, {failed, Reason}) -> ["not ok: ", Name, ": ", ats_verdicts:reason(Reason)];
text(Name, {not_run, {control, Reason}}) ->
    ["not run: ", Name, ": the original does not pass here: ", ats_verdicts:reason(Reason)];
text(Name, {not_run, Why}) -> ["not run: ", Name, ": ", Why].

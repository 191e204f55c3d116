%% Runs suites of Erlang/OTP by common_test, and compares two runs. scripts/others/otp.sh compiles
%% the suites and starts the nodes.
-module(ats_otp_cases).

-export([run/1, compare/1]).

%% Called by suites of tables on disk in the place of file:delete/1 and dets:lookup_keys/2.
-export([delete/1, lookup_keys/2]).

%% Callbacks of common_test, since this is a hook of its own.
-export([init/2, pre_init_per_testcase/4, post_end_per_testcase/5, on_tc_fail/4, on_tc_skip/4]).

%% Runs suites, or cases of a suite, which are in a folder. The verdict of each case is in the file
%% `verdicts' of the current folder, also if the machine does not live to see the end.
run([Folder, Listed | Arguments]) ->
    ok = filelib:ensure_path("logs"),
    Verdicts = filename:absname("verdicts"),
    Known = read_listed(Listed),
    Tests = lists:foldl(fun add/2, #{}, Arguments),
    maps:foreach(
      fun(Suite, Cases) ->
              Only = [{testcase, Cases} || Cases =/= all],
              {_, _, _} = ct:run_test([{dir, Folder}, {suite, Suite}, {auto_compile, false},
                                       {logdir, "logs"},
                                       {ct_hooks, [{?MODULE, {Verdicts, Known}}]} | Only])
      end, Tests),
    halt(0).

add(Argument, Tests) ->
    case [list_to_atom(Word) || Word <- string:lexemes(Argument, ":")] of
        [Suite] -> Tests#{Suite => all};
        [Suite, Case] -> maps:update_with(Suite, fun(Cases) -> [Case | Cases] end, [Case], Tests)
    end.

%% Lines are `Suite:Case Reason'.
read_listed(Listed) ->
    {ok, Text} = file:read_file(Listed),
    maps:from_list([{Name, Why} || Line <- string:lexemes(binary_to_list(Text), "\n"),
                                   [Name, Why] <- [string:split(Line, " ")]]).

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
    %% Writes the verdict as text if it cannot be read as a term.
    Line = io_lib:format("{~0tp, ~0tp}.~n", [name(Suite, Case), as_text(Verdict)]),
    ok = file:write_file(Verdicts, unicode:characters_to_binary(Line), [append]),
    State.

as_text(ok) -> ok;
as_text({Kind, Reason}) -> {Kind, lists:flatten(io_lib:format("~0tP", [Reason, 30]))}.

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
    Known = read_listed(Listed),
    {Control, Replaced} = {read(Theirs), read(Ours)},
    Verdicts = [{Name, judge(Verdict, maps:get(Name, Replaced, none), maps:find(Name, Known))}
                || {Name, Verdict} <- lists:sort(maps:to_list(Control))],
    [io:format("~ts~n", [text(Name, Verdict)]) || {Name, Verdict} <- Verdicts],
    [Passed, Failed, NotRun] = [length([V || {_, V} <- Verdicts, kind(V) =:= Kind])
                                || Kind <- [ok, failed, not_run]],
    io:format("~b cases passed, ~b failed, ~b were not run~n", [Passed, Failed, NotRun]),
    halt(case Verdicts of
             [] -> 1;
             _ -> min(Failed, 1)
         end).

%% The last word about a case counts; of one that runs several times, the worst does.
read(File) ->
    {ok, Lines} = file:consult(File),
    lists:foldl(fun({Name, Verdict}, Verdicts) ->
                        maps:update_with(Name, fun(Before) -> worse(Before, Verdict) end, Verdict,
                                         Verdicts)
                end, #{}, Lines).

worse({failed, _} = Failed, _) -> Failed;
worse(_, {failed, _} = Failed) -> Failed;
worse({skipped, _}, ok) -> ok;
worse(_, Verdict) -> Verdict.

judge(_, _, {ok, Why}) -> {not_run, Why};
judge(ok, ok, error) -> ok;
judge(ok, none, error) -> {failed, "the machine ended before"};
judge(ok, {_, Reason}, error) -> {failed, Reason};
judge({_, Reason}, _, error) -> {not_run, {control, Reason}}.

kind(ok) -> ok;
kind({Kind, _}) -> Kind.

text(Name, ok) -> ["ok: ", Name];
text(Name, {failed, Reason}) -> ["not ok: ", Name, ": ", reason(Reason)];
text(Name, {not_run, {control, Reason}}) ->
    ["not run: ", Name, ": the original does not pass here: ", reason(Reason)];
text(Name, {not_run, Why}) -> ["not run: ", Name, ": ", Why].

reason(Text) -> string:slice(Text, 0, 300).

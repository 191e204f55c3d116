%% Verdicts on the tests of others: a run writes them into a file, and two runs are compared.
-module(ats_verdicts).

-export([note/3, read/1, read_listed/1, judge/3, kind/1, reason/1]).

-export_type([verdict/0, judgement/0]).

-type verdict() :: ok | {failed | skipped, Why :: term()}.
-type judgement() :: ok | {failed, Why :: string()}
                   | {not_run, Why :: string() | {control, Why :: string()}}.

%% Adds the verdict on a test to a file, also if the machine does not live to see the end of the
%% run. A reason is written as text, so that every reason can be read.
-spec note(file:filename(), string(), verdict()) -> ok.
note(File, Name, Verdict) ->
    Line = io_lib:format("{~0tp, ~0tp}.~n", [Name, as_text(Verdict)]),
    ok = file:write_file(File, unicode:characters_to_binary(Line), [append]).

as_text(ok) -> ok;
as_text({Kind, Reason}) -> {Kind, lists:flatten(io_lib:format("~0tP", [Reason, 30]))}.

%% Returns the verdicts of a file. The last word about a test counts; of one that runs several
%% times, the worst does.
-spec read(file:filename()) -> #{string() => verdict()}.
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

%% Returns the reasons of a file whose lines are `Suite:Case Reason'.
-spec read_listed(file:filename()) -> #{string() => string()}.
read_listed(File) ->
    {ok, Text} = file:read_file(File),
    maps:from_list([{Name, Why} || Line <- string:lexemes(binary_to_list(Text), "\n"),
                                   [Name, Why] <- [string:split(Line, " ")]]).

%% Judges the verdicts of the control run and of the other one, and why a test is left out.
-spec judge(verdict(), verdict() | none, {ok, string()} | error) -> judgement().
judge(_, _, {ok, Why}) -> {not_run, Why};
judge(ok, ok, error) -> ok;
judge(ok, none, error) -> {failed, "the machine ended before"};
judge(ok, {_, Reason}, error) -> {failed, Reason};
judge({_, Reason}, _, error) -> {not_run, {control, Reason}}.

-spec kind(judgement()) -> ok | failed | not_run.
kind(ok) -> ok;
kind({Kind, _}) -> Kind.

-spec reason(string()) -> string().
reason(Text) -> string:slice(Text, 0, 300).

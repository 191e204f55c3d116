%% Writes verdicts on tests of EUnit.
-module(ats_programs_eunit).

-behaviour(eunit_listener).

-export([start/1, init/1, handle_begin/3, handle_end/3, handle_cancel/3, terminate/2]).

start(File) -> eunit_listener:start(?MODULE, [{file, File}]).

init(Options) -> proplists:get_value(file, Options).

handle_begin(_, _, File) -> File.

handle_end(test, Data, File) ->
    note(Data, proplists:get_value(status, Data), File);
handle_end(group, _, File) ->
    File.

%% The set-up of a group may fail, or a test take too long.
handle_cancel(test, Data, File) -> note(Data, proplists:get_value(reason, Data), File);
handle_cancel(group, _, File) -> File.

note(Data, Status, File) ->
    {Module, Function, _} = proplists:get_value(source, Data),
    Name = case proplists:get_value(desc, Data) of
               Nothing when Nothing =:= undefined; Nothing =:= <<>>; Nothing =:= "" ->
                   io_lib:format("~ts:~b", [Function, proplists:get_value(line, Data, 0)]);
               Text ->
                   Text
           end,
    ok = ats_verdicts:note(File, lists:flatten(io_lib:format("~ts: ~ts", [Module, Name])),
                           verdict(Status)),
    File.

verdict(ok) -> ok;
verdict({skipped, Why}) -> {skipped, Why};
verdict(Why) -> {failed, Why}.

terminate(_, _) -> ok.

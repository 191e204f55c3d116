%% Runs tests of ExUnit, and writes the verdicts.
-module(ats_programs_exunit).

-behaviour(gen_server).

-export([run/3]).
-export([init/1, handle_call/3, handle_cast/2]).

%% Runs files of tests, which may be patterns, in a folder that has `test_helper.exs'.
run(Folder, Patterns, Verdicts) ->
    {ok, _} = application:ensure_all_started(ex_unit),
    persistent_term:put(?MODULE, Verdicts),
    ok = file:set_cwd(Folder),
    'Elixir.Code':require_file(<<"test_helper.exs">>),
    %% Tests of ExUnit itself read the output of its formatter. All run one after the other.
    ok = 'Elixir.ExUnit':configure([{formatters, [?MODULE, 'Elixir.ExUnit.CLIFormatter']},
                                    {autorun, false}, {seed, 0}, {max_cases, 1}]),
    [require(File) || Pattern <- Patterns,
                      File <- filelib:wildcard(filename:join(Folder, Pattern))],
    'Elixir.ExUnit':run().

%% A file that cannot be compiled on this release has no tests.
require(File) ->
    try
        'Elixir.Code':require_file(unicode:characters_to_binary(File))
    catch
        Class:Reason -> io:format("~ts: ~p ~tp~n", [File, Class, Reason])
    end.

%% ----- the formatter -----

init(_) -> {ok, persistent_term:get(?MODULE)}.

handle_call(_, _, File) -> {reply, ok, File}.

handle_cast({test_finished, #{module := Module, name := Name, state := State}}, File) ->
    "Elixir." ++ Short = atom_to_list(Module),
    ok = ats_verdicts:note(File, Short ++ ": " ++ atom_to_list(Name), verdict(State)),
    {noreply, File};
handle_cast(_, File) ->
    {noreply, File}.

verdict(nil) -> ok;
verdict({Kind, Why}) when Kind =:= skipped; Kind =:= excluded -> {skipped, Why};
verdict({_, Why}) -> {failed, Why}.

%% A hook of common_test that prints failures with their causes, cases that skip themselves, and
%% the cases that take longest, as `scripts/test.sh` reads them.
-module(ats_test_report).

-export([main/1]).
-export([id/1, init/2, pre_init_per_testcase/4, post_end_per_testcase/5, on_tc_fail/4,
         on_tc_skip/4]).

%% Cases that take longer are named with their time.
-define(LONG_MS, 10_000).

%% Runs suites. Halts the virtual machine, with the status 1 if a case has failed or could not be
%% prepared. The first folder has the compiled suites, the second gets the logs.
-spec main([string()]) -> no_return().
main([Folder, Logs | Suites]) ->
    Result = ct:run_test([{dir, Folder}, {suite, [list_to_atom(Suite) || Suite <- Suites]},
                          {auto_compile, false}, {logdir, Logs}, {ct_hooks, [?MODULE]}]),
    case Result of
        {Passed, Failed, {Skipped, Unprepared}} ->
            io:format("Failed ~b tests. Skipped ~b (~b, ~b) tests. Passed ~b tests.~n",
                      [Failed, Skipped + Unprepared, Skipped, Unprepared, Passed]),
            halt(case Failed + Unprepared of 0 -> 0; _ -> 1 end);
        Error ->
            io:format("==> ~s: FAILED~n~tp~n", [lists:join(" ", Suites), Error]),
            halt(1)
    end.

id(_) ->
    ?MODULE.

init(_, _) ->
    {ok, #{}}.

pre_init_per_testcase(Suite, Case, Config, Begun) ->
    {Config, Begun#{{Suite, Case} => erlang:monotonic_time(millisecond)}}.

post_end_per_testcase(Suite, Case, _, Result, Begun) ->
    Now = erlang:monotonic_time(millisecond),
    case Begun of
        #{{Suite, Case} := Begin} when Now - Begin > ?LONG_MS ->
            io:format(user, "long: ~s:~s: ~b s~n", [Suite, Case, (Now - Begin) div 1000]);
        #{} ->
            ok
    end,
    {Result, maps:remove({Suite, Case}, Begun)}.

on_tc_fail(Suite, Case, Reason, State) ->
    io:format(user, "==> ~s:~s: FAILED~n~tp~n~n", [Suite, name(Case), Reason]),
    State.

on_tc_skip(Suite, Case, {tc_user_skip, Reason}, State) ->
    io:format(user, "not run: ~s:~s: ~ts~n", [Suite, name(Case), text(Reason)]),
    State;
on_tc_skip(Suite, Case, {tc_auto_skip, Reason}, State) ->
    on_tc_fail(Suite, Case, Reason, State).

name({Case, Group}) -> io_lib:format("~s.~s", [Group, Case]);
name(Case) -> atom_to_list(Case).

text(Reason) ->
    try unicode:characters_to_list(Reason) of
        Text when is_list(Text) -> Text;
        _ -> io_lib:format("~tp", [Reason])
    catch
        error:badarg -> io_lib:format("~tp", [Reason])
    end.

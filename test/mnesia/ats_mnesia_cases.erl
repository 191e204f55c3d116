%% Runs cases of the test suites of mnesia, one after the other, on this node and two more that the
%% suites start. scripts/others/mnesia.sh compiles the suites and starts the node.
-module(ats_mnesia_cases).

-export([main/1, plain/1]).

%% The longest time of a case, for the suites, and for those that they do not end themselves.
-define(LONGEST, timer:minutes(3)).
-define(LONGEST_BY_FAR, timer:minutes(5)).

%% Each argument behind the first two is a suite, `Suite:Case' or `Suite:Group'. Prints a line for
%% each case, and leaves its output in a file of `logs'. A case that skips itself, and one that the
%% file `Listed' names as failing in this mode, is not run.
main([Mode, Listed | Arguments]) ->
    ok = logger:remove_handler(default),
    ok = filelib:ensure_dir("logs/"),
    Known = read_listed(Mode, Listed),
    Config = [{nodes, [node() | other_nodes()]}, {tc_timeout, ?LONGEST}],
    Cases = lists:uniq(lists:flatmap(fun expand/1, Arguments)),
    Verdicts = [report(name(Case), run(Case, Config), Known) || Case <- Cases],
    stop_nodes(),
    [Passed, Failed, NotRun] = [length([V || V <- Verdicts, V =:= Kind])
                                || Kind <- [ok, failed, not_run]],
    io:format("~b cases passed, ~b failed, ~b were not run~n", [Passed, Failed, NotRun]),
    halt(min(Failed, 1)).

%% Lines are `Mode Suite:Case Reason'; the mode `base' concerns all others, too.
read_listed(Mode, Listed) ->
    {ok, Text} = file:read_file(Listed),
    maps:from_list([{Name, Why}
                    || Line <- string:lexemes(binary_to_list(Text), "\n"),
                       [For, Name, Why] <- [re:split(Line, " ", [{parts, 3}, {return, list}])],
                       lists:member(For, [Mode, "base"])]).

%% Returns the copies of a table as mnesia tells them, with the names of types that programs give.
plain({ext, Alias, _Module}) -> Alias;
plain({Node, Type}) when is_atom(Node) -> {Node, plain(Type)};
plain(Copies) when is_list(Copies) -> lists:map(fun plain/1, Copies);
plain(Other) -> Other.

other_nodes() ->
    [Name, Host] = string:lexemes(atom_to_list(node()), "@"),
    [list_to_atom(Name ++ Digit ++ "@" ++ Host) || Digit <- ["1", "2"]].

expand(Argument) ->
    case [list_to_atom(Word) || Word <- string:lexemes(Argument, ":")] of
        [Suite] -> expand_test({Suite, all});
        [Suite, Name] ->
            case lists:keymember(Name, 1, Suite:groups()) of
                true -> expand_test({Suite, {group, Name}});
                false -> [{Suite, Name}]
            end
    end.

expand_test(Test) ->
    leaves(mnesia_test_lib:test_driver(Test, suite)).

leaves({Suite, Case, _}) -> [{Suite, Case}];
leaves({{_Suite, _Group}, Tests}) -> leaves(Tests);
leaves(Tests) when is_list(Tests) -> lists:flatmap(fun leaves/1, Tests).

%% Runs a case in a process of its own, whose output is the log.
run({Suite, Case} = Name, Config) ->
    {ok, Log} = file:open(log_name(Name), [write, {encoding, utf8}]),
    Start = erlang:monotonic_time(second),
    {Pid, Monitor} = spawn_monitor(fun() ->
        group_leader(Log, self()),
        exit({result, mnesia_test_lib:eval_test_case(Suite, Case, Config)})
    end),
    Outcome =
        receive
            {'DOWN', Monitor, process, Pid, {result, {ok, _, _}}} -> ok;
            {'DOWN', Monitor, process, Pid, {result, {skip, _, Why}}} -> {skipped, Why};
            {'DOWN', Monitor, process, Pid, {result, {_, _, Why}}} -> {failed, Why};
            {'DOWN', Monitor, process, Pid, Why} -> {failed, Why}
        after ?LONGEST_BY_FAR ->
            exit(Pid, kill),
            {failed, took_too_long}
        end,
    Seconds = erlang:monotonic_time(second) - Start,
    % Stops nodes, so that a failed case does not make others fail.
    is_tuple(Outcome) andalso element(1, Outcome) =:= failed andalso stop_nodes(),
    _ = file:close(Log),
    {Outcome, Seconds}.

report(Name, {Outcome, Seconds}, Known) ->
    case {Outcome, Known} of
        {ok, _} ->
            io:format("ok: ~s (~b s)~n", [Name, Seconds]),
            ok;
        {{skipped, Why}, _} ->
            io:format("not run: ~s: ~s~n", [Name, one_line(Why)]),
            not_run;
        {{failed, _}, #{Name := Why}} ->
            io:format("not run: ~s: ~s (~b s)~n", [Name, Why, Seconds]),
            not_run;
        {{failed, Why}, _} ->
            io:format("not ok: ~s (~b s): ~s~n", [Name, Seconds, one_line(Why)]),
            failed
    end.

name({Suite, Case}) ->
    lists:concat([Suite, ":", Case]).

one_line(Why) ->
    string:slice(io_lib:format("~0p", [Why]), 0, 300).

log_name(Name) ->
    filename:join("logs", lists:flatten(string:replace(name(Name), ":", ".")) ++ ".log").

stop_nodes() ->
    mnesia:lkill(),
    Nodes = nodes(),
    lists:foreach(fun(Node) -> monitor_node(Node, true) end, Nodes),
    lists:foreach(fun(Node) -> rpc:cast(Node, erlang, halt, []) end, Nodes),
    lists:foreach(fun(Node) -> receive {nodedown, Node} -> ok after 10000 -> ok end end, Nodes).

%% @private
%% @doc The common part of the commands of the benchmarks: how they take their arguments, and how
%% they end.
-module(ats_bench_command).

-export([run/2, positive/1, unknown/1, is_chosen/2]).

%% @doc Does the work of a command and stops the virtual machine: with 0 if the work returns
%% `true', 1 if not or if it fails, and 2 if it refuses to begin, for which it throws
%% `{usage, Why}', or `{refused, Why}' if other arguments would not help.
-spec run(string(), fun(() -> boolean())) -> no_return().
run(Usage, Work) ->
    try Work() of
        true -> halt(0);
        false -> halt(1)
    catch
        throw:{usage, Why} ->
            io:format(standard_error, "~ts~nusage: ~ts~n", [Why, Usage]),
            halt(2);
        throw:{refused, Why} ->
            io:format(standard_error, "~ts~n", [Why]),
            halt(2);
        Class:Reason:Stack ->
            io:format(standard_error, "~ts~n", [erl_error:format_exception(Class, Reason, Stack)]),
            halt(1)
    end.

%% @doc Returns an argument that has to be a positive number.
-spec positive(string()) -> pos_integer().
positive(Text) ->
    case string:to_integer(Text) of
        {N, []} when N > 0 -> N;
        _ -> throw({usage, [Text, " is not a positive number"]})
    end.

%% @doc Refuses an argument that the command does not have.
-spec unknown(string()) -> no_return().
unknown(Text) ->
    throw({usage, ["what is ", Text, "?"]}).

%% @doc Returns `true' if a row is wanted: all are, or those whose title contains a text.
-spec is_chosen(string(), all | string()) -> boolean().
is_chosen(_, all) -> true;
is_chosen(Title, Text) -> string:find(Title, Text) =/= nomatch.

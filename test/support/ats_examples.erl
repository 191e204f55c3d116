%% Examples in documentation: lines of a shell, which are run and compared with the results in them.
-module(ats_examples).

-export([of_doc/1, run/1]).

%% The examples in a text of documentation: blocks of code that begin with the first prompt.
-spec of_doc(shell_docs:chunk_elements()) -> [string()].
of_doc(Elements) when is_list(Elements) ->
    lists:flatmap(fun of_doc/1, Elements);
of_doc({pre, _, Content}) ->
    [Text || "1> " ++ _ = Text <- [string:trim(text(Content))]];
of_doc({_, _, Content}) ->
    of_doc(Content);
of_doc(Text) when is_binary(Text) ->
    [].

text(Content) when is_list(Content) -> lists:flatmap(fun text/1, Content);
text({_, _, Content}) -> text(Content);
text(Text) -> unicode:characters_to_list(Text).

%% The expressions of an example with another value than it says: all that is after a prompt, and
%% the value. Values are compared as terms, so lines may be broken in other places than the shell
%% would break them.
-spec run(string()) -> [{Step :: string(), Got :: term()}].
run(Example) ->
    Steps = re:split(Example, "^ *[0-9]+> ", [multiline, trim, {return, list}]),
    {Wrong, _} = lists:foldl(fun step/2, {[], erl_eval:new_bindings()}, tl(Steps)),
    lists:reverse(Wrong).

step(Step, {Wrong, Bindings}) ->
    {done, {ok, Tokens, _}, Expected} = erl_scan:tokens([], Step ++ "\n", 1),
    {ok, Expressions} = erl_parse:parse_exprs(Tokens),
    {value, Got, Bound} = erl_eval:exprs(Expressions, Bindings),
    case Got =:= term(Expected) of
        true -> {Wrong, Bound};
        false -> {[{Step, Got} | Wrong], Bound}
    end.

term(Text) ->
    {ok, Tokens, _} = erl_scan:string(Text ++ "."),
    {ok, Term} = erl_parse:parse_term(Tokens),
    Term.

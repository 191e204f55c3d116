%% @doc A parse transform that makes match specifications of funs.
%%
%% `ats:fun2ms(fun({Key, Value}) when Value > 3 -> Key end)' becomes a match specification when the
%% module is compiled, as `ets:fun2ms/1' does with the parse transform `ms_transform' of the
%% standard library, which does the work. Use it with
%%
%% ```
%% -include_lib("ats/include/ms_transform.hrl").
%% '''
%%
%% Calls of `ets:fun2ms/1' and `dbg:fun2ms/1' are transformed, too, so it takes the place of the
%% other include file.
-module(ats_ms_transform).

-export([parse_transform/2, format_error/1]).

%% @doc The callback of the compiler.
-spec parse_transform([erl_parse:abstract_form() | erl_parse:form_info()], [term()]) ->
          [erl_parse:abstract_form() | erl_parse:form_info()]
        | {warning, [term()], [term()]} | {error, [term()], [term()]}.
parse_transform(Forms, Options) ->
    ms_transform:parse_transform(redirect(Forms), Options).

%% @doc Says in words why a fun cannot be translated.
-spec format_error(term()) -> unicode:chardata().
format_error(Error) ->
    ms_transform:format_error(Error).

%% Turns calls of `ats:fun2ms/1' into those that the other transform knows. An element of the syntax
%% tree is seldom deeper than a program is wide, so this may recur.
-spec redirect(term()) -> term().
redirect({call, Anno, {remote, Remote, {atom, Module, ats}, {atom, Function, fun2ms}}, [Fun]}) ->
    {call, Anno, {remote, Remote, {atom, Module, ets}, {atom, Function, fun2ms}}, [redirect(Fun)]};
redirect(Tuple) when is_tuple(Tuple) ->
    list_to_tuple(redirect(tuple_to_list(Tuple)));
redirect([Head | Tail]) ->
    [redirect(Head) | redirect(Tail)];
redirect(Other) ->
    Other.

%% The examples of the pages that users read first run as they stand there.
-module(ats_pages_SUITE).

-export([all/0, front_page/1, tables_in_memory/1]).

all() -> [front_page, tables_in_memory].

front_page(Config) ->
    run("README.md", Config).

tables_in_memory(Config) ->
    run("docs/use/tables-in-memory.md", Config).

%% Evaluates the Erlang of a page from top to bottom. Files are in the folder of the test.
run(Page, Config) ->
    {ok, Text} = file:read_file(filename:join(ats_test_lib:project(), Page)),
    Here = proplists:get_value(priv_dir, Config),
    Local = string:replace(Text, "/tmp/", Here, all),
    {match, Examples} = re:run(Local, "^```erlang\n(.*?)^```",
                               [global, multiline, dotall, {capture, all_but_first, list}]),
    lists:foldl(fun evaluated/2, erl_eval:new_bindings(), Examples).

evaluated([Example], Bindings) ->
    {ok, Tokens, _} = erl_scan:string(Example),
    {ok, Expressions} = erl_parse:parse_exprs(Tokens),
    {value, _, After} = erl_eval:exprs(Expressions, Bindings),
    After.

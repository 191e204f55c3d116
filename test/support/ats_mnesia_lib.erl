%% Nodes with Mnesia, and tables of Mnesia on ats and dats.
-module(ats_mnesia_lib).

-include_lib("stdlib/include/assert.hrl").
-include("ats_mnesia_lib.hrl").

-export([begin_case/2, on_one_node/2, on_nodes/3, on_restarted_node/2, call/2, call/4,
         directories/1]).
-export([aliases/0, types/0, tables/0, names/0, definition/3, create/4, create_all/1]).
-export([object/1, objects/1, fill/2, transaction/1, contents/1, chunks/1, restart/0, wait/1]).

-define(WAIT, 30000).

%% Gives a test a directory and nodes a cookie.
begin_case(Case, Config) ->
    Directory = filename:join(proplists:get_value(priv_dir, Config), Case),
    [{directory, Directory}, {cookie, peer:random_name()} | Config].

aliases() -> [ats_ram, dats_disc, ats_disc].

types() -> [set, ordered_set, bag].

%% ----- nodes -----

start_node(Config, N) ->
    Directory = filename:join(proplists:get_value(directory, Config), integer_to_list(N)),
    ok = filelib:ensure_dir(filename:join(Directory, "x")),
    Paths = lists:append([["-pa", P] || P <- code:get_path(), filelib:is_dir(P)]),
    {ok, Peer, Node} = peer:start_link(#{
        name => lists:concat([proplists:get_value(cookie, Config), "_", N]),
        connection => standard_io,
        args => Paths ++ ["-mnesia", "dir", "\"" ++ Directory ++ "\"",
                          "-setcookie", proplists:get_value(cookie, Config)]
    }),
    {Peer, Node}.

call({Peer, _}, Function) when is_function(Function) ->
    peer:call(Peer, erlang, apply, [Function, []], ?WAIT).

call({Peer, _}, Module, Function, Arguments) ->
    peer:call(Peer, Module, Function, Arguments, ?WAIT).

on_one_node(Config, Function) ->
    on_nodes(Config, 1, fun([Node]) -> call(Node, Function) end).

on_nodes(Config, Count, Function) ->
    Nodes = [start_node(Config, N) || N <- lists:seq(1, Count)],
    try
        Names = [Name || {_, Name} <- Nodes],
        ok = call(hd(Nodes), mnesia, create_schema,
                  [Names, [{backend_types, ats_mnesia:types()}]]),
        [ok = call(Node, mnesia, start, []) || Node <- Nodes],
        Function(Nodes)
    after
        [peer:stop(Peer) || {Peer, _} <- Nodes, is_process_alive(Peer)]
    end.

%% With the schema that is there.
on_restarted_node(Config, Function) ->
    {Peer, _} = Node = start_node(Config, 1),
    try
        ok = call(Node, mnesia, start, []),
        call(Node, Function)
    after
        peer:stop(Peer)
    end.

%% ----- tables -----

tables() ->
    [{list_to_atom(lists:concat([Alias, "_", Type])), Alias, Type}
     || Alias <- aliases(), Type <- types()].

names() ->
    [Name || {Name, _, _} <- tables()].

definition(Alias, Type, Nodes) ->
    [{Alias, Nodes}, {type, Type}, {record_name, person},
     {attributes, record_info(fields, person)}].

create(Name, Alias, Type, More) ->
    {atomic, ok} = mnesia:create_table(Name, More ++ definition(Alias, Type, [node()])),
    ok.

create_all(More) ->
    [create(Name, Alias, Type, More) || {Name, Alias, Type} <- tables()],
    ok.

object(N) ->
    #person{key = N, value = N rem 10, more = [N]}.

fill(Name, Count) ->
    transaction(fun() -> [mnesia:write(Name, object(N), write) || N <- lists:seq(1, Count)] end),
    ok.

transaction(Function) ->
    {atomic, Result} = mnesia:transaction(Function),
    Result.

%% What a table has, through Mnesia, sorted; and what its indexes tell must agree.
contents(Name) ->
    All = transaction(fun() -> mnesia:match_object(Name, mnesia:table_info(Name, wild_pattern),
                                                   read) end),
    ?assertEqual(length(All), mnesia:table_info(Name, size)),
    [?assertEqual(lists:sort([P || P <- All, element(Pos, P) =:= Value]),
                  lists:sort(mnesia:dirty_index_read(Name, Value, Pos)))
     || Pos <- mnesia:table_info(Name, index), Value <- lists:seq(-1, 10)],
    lists:sort(All).

restart() ->
    stopped = mnesia:stop(),
    ok = mnesia:start(),
    wait(mnesia:system_info(local_tables)).

wait(Tables) ->
    ok = mnesia:wait_for_tables(Tables, ?WAIT).

objects(Count) -> [object(N) || N <- lists:seq(1, Count)].

%% The rest of a select in chunks.
chunks('$end_of_table') -> [];
chunks({Matches, Continuation}) -> Matches ++ chunks(mnesia:select(Continuation)).

%% Directories of tables and indexes of a node.
directories(Node) ->
    call(Node, fun() ->
        filelib:wildcard(filename:join(mnesia:system_info(directory), "*.dats*"))
    end).

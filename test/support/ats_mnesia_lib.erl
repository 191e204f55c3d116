%% Nodes with Mnesia, and tables of Mnesia on ats and dats.
-module(ats_mnesia_lib).

-include_lib("stdlib/include/assert.hrl").
-include("ats_mnesia_lib.hrl").

-export([begin_case/2, on_one_node/2, on_nodes/3, on_bare_nodes/3, start/1, call/2, call/4,
         directories/1]).
-export([aliases/0, types/0, tables/0, names/0, definition/3, create/4, create_all/1]).
-export([run_programs/3]).
-export([object/1, objects/1, fill/2, transaction/1, contents/1, chunks/1, restart/0, wait/1]).

-define(WAIT, 30000).

%% Gives a test a directory.
begin_case(Case, Config) ->
    [{directory, filename:join(proplists:get_value(priv_dir, Config), Case)} | Config].

aliases() -> [ats_ram, dats_disc, ats_disc].

types() -> [set, ordered_set, bag].

%% ----- nodes -----

on_one_node(Config, Function) ->
    on_nodes(Config, 1, fun([Node]) -> call(Node, Function) end).

%% Runs a function with nodes that run Mnesia, with a schema on all their disks.
on_nodes(Config, Count, Function) ->
    on_bare_nodes(Config, Count, fun([First | _] = Nodes) ->
        Names = [Name || {_, Name} <- Nodes],
        lists:foreach(fun configure/1, Nodes),
        ok = call(First, mnesia, create_schema, [Names, [{backend_types, ats_mnesia:types()}]]),
        [ok = call(Node, mnesia, start, []) || Node <- Nodes],
        Function(Nodes)
    end).

%% A node is a cluster and a name. It has to see others although this machine is busy.
on_bare_nodes(Config, Count, Function) ->
    {Cluster, Names} = ats_cluster:start(
        Count, #{directory => proplists:get_value(directory, Config), ticktime => 60}
    ),
    try
        ok = ats_cluster:connect(Cluster),
        Function([{Cluster, Name} || Name <- Names])
    after
        ats_cluster:stop(Cluster)
    end.

configure({Cluster, Name} = Node) ->
    ok = call(Node, application, load, [mnesia]),
    Directory = filename:join(ats_cluster:directory(Cluster, Name), "mnesia"),
    ok = call(Node, application, set_env, [mnesia, dir, Directory]).

%% Starts a node that has ended, and Mnesia, with the schema that is there.
start({Cluster, Name} = Node) ->
    ok = ats_cluster:restart(Cluster, Name),
    configure(Node),
    ok = call(Node, mnesia, start, []).

call(Node, Function) when is_function(Function) ->
    call(Node, erlang, apply, [Function, []]).

call({Cluster, Name}, Module, Function, Arguments) ->
    ats_cluster:call(Cluster, Name, Module, Function, Arguments).

%% Random programs of `ats_mnesia_program' in one node. ATS_MNESIA_SEED names the first of them, and
%% ATS_MNESIA_PROGRAMS says how many they are.
run_programs(Config, Seed, Count) ->
    First = list_to_integer(os:getenv("ATS_MNESIA_SEED", integer_to_list(Seed))),
    Last = First + list_to_integer(os:getenv("ATS_MNESIA_PROGRAMS", integer_to_list(Count))) - 1,
    Directory = filename:join(proplists:get_value(directory, Config), "program"),
    on_bare_nodes(Config, 1, fun([Node]) ->
        [?assertEqual(ok, call(Node, ats_mnesia_program, run, [Directory, Program, 18]))
         || Program <- lists:seq(First, Last)]
    end).

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

%% Returns the objects of a table, through Mnesia, sorted; checks that its indexes agree.
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

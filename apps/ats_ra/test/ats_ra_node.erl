%% Functions for nodes of ats_cluster: servers of clusters of `ra', and clients that record their
%% calls.
-module(ats_ra_node).

-export([start/1, restart/1, contents/1, code/1, load/1, run/1]).
-export([start_clients/2, stop_clients/0]).

%% Starts `ra' with its files in a folder.
-spec start(file:filename()) -> ok.
start(Directory) ->
    ok = logger:set_primary_config(level, error),
    {ok, _} = ra:start_in(Directory),
    {ok, _} = application:ensure_all_started(ats),
    ok.

%% Starts servers of this node again.
-spec restart([atom()]) -> ok.
restart(Names) ->
    lists:foreach(fun(Name) -> ok = ra:restart_server(default, {Name, node()}) end, Names).

%% Returns the objects of each key of the table of this node, in their order, and the index of the
%% last applied entry.
-spec contents(atom()) -> #{term() => [tuple()]}.
contents(Name) ->
    {Module, Id} = ats_ra:table(Name),
    KeyPos = Module:info(Id, keypos),
    Keys = [element(KeyPos, Object) || Object <- Module:tab2list(Id)],
    maps:from_list([{Key, Module:lookup(Id, Key)} || Key <- Keys]).

%% Returns the file of a module of this node.
-spec code(module()) -> file:filename().
code(Module) -> code:which(Module).

%% Loads faulty code.
-spec load({module(), file:filename(), binary()}) -> ok.
load({Module, File, Binary}) ->
    {module, Module} = code:load_binary(Module, File, Binary),
    ok.

%% Runs expressions.
-spec run(string()) -> ok.
run(Text) ->
    {ok, Tokens, _} = erl_scan:string(Text),
    {ok, Expressions} = erl_parse:parse_exprs(Tokens),
    {value, _, _} = erl_eval:exprs(Expressions, []),
    ok.

%% ----- clients -----

%% Clients for each cluster. Each calls a server that it chooses anew whenever one does not answer.
%% `Kinds' says which objects a cluster has: `single' are registers, sets and accounts, `several'
%% are lists.
-spec start_clients([{Name :: atom(), single | several}], [node()]) -> ok.
start_clients(Clusters, Nodes) ->
    Me = self(),
    _ = spawn(fun() ->
        true = register(?MODULE, self()),
        Recorder = ats_history:new(),
        Generation = counters:new(1, []),
        Me ! started,
        Clients = [
            spawn_link(fun() -> client(Name, Family, Nodes, Recorder, Generation, []) end)
         || {Name, Kind} <- Clusters,
            Family <- families(Kind),
            _ <- lists:seq(1, 3)
        ],
        renew(Generation, Recorder, Clients)
    end),
    receive started -> ok end.

families(single) -> [register, set, bank];
families(several) -> [list].

%% Every second clients turn to other objects, so that histories are short.
renew(Generation, Recorder, Clients) ->
    receive
        {stop, Reader, Ref} ->
            Monitors = [erlang:monitor(process, Client) || Client <- Clients],
            _ = [Client ! stop || Client <- Clients],
            _ = [receive {'DOWN', M, process, _, _} -> ok end || M <- Monitors],
            Reader ! {Ref, ats_history:events(Recorder)}
    after 500 ->
        ok = counters:add(Generation, 1, 1),
        renew(Generation, Recorder, Clients)
    end.

-spec stop_clients() -> [ats_history:event()].
stop_clients() ->
    Ref = erlang:monitor(process, ?MODULE),
    ?MODULE ! {stop, self(), Ref},
    receive
        {Ref, Events} -> Events;
        {'DOWN', Ref, process, _, Reason} -> error(Reason)
    end.

%% Unknown outcomes make it hard to judge a history: a client that met one waits for others.
client(Name, Family, Nodes, Recorder, Generation, Before) ->
    receive
        stop -> ok
    after 10 + rand:uniform(20) ->
        Number = counters:get(Generation, 1),
        Object = {Name, Family, Number},
        case Before =:= Object of
            true ->
                client(Name, Family, Nodes, Recorder, Generation, Before);
            false ->
                Server = {Name, lists:nth(rand:uniform(length(Nodes)), Nodes)},
                Operation = operation(Family),
                Do = fun() -> do(Family, Operation, Number, Server) end,
                Next = case ats_history:record(Recorder, Object, Operation, Do) of
                    unknown -> Object;
                    _ -> []
                end,
                client(Name, Family, Nodes, Recorder, Generation, Next)
        end
    end.

operation(Family) ->
    Value = erlang:unique_integer([positive]),
    operation(Family, rand:uniform(3), Value).

operation(_, 1, _) -> read;
operation(register, 2, Value) -> {write, Value rem 5};
operation(register, 3, Value) -> {change, Value rem 5, rand:uniform(5) - 1};
operation(set, _, Value) -> {add, Value};
operation(list, _, Value) -> {append, Value};
operation(bank, _, Value) ->
    [From, To | _] = lists:nth(1 + Value rem 3, [[a, b], [b, c], [c, a]]),
    {move, From, To, rand:uniform(9)}.

do(register, read, N, Server) ->
    read(Server, lookup, [{register, N}], fun([]) -> none; ([{_, Value}]) -> Value end);
do(register, {write, Value}, N, Server) ->
    command(Server, {insert, {{register, N}, Value}}, fun(_) -> true end);
do(register, {change, Old, New}, N, Server) ->
    Spec = [{{{register, N}, Old}, [], [{{{{register, N}}, New}}]}],
    command(Server, {select_replace, Spec}, fun(Count) -> Count =:= 1 end);
do(set, read, N, Server) ->
    Spec = [{{{set, N, '$1'}}, [], ['$1']}],
    read(Server, select, [Spec], fun lists:sort/1);
do(set, {add, Value}, N, Server) ->
    command(Server, {insert, {{set, N, Value}}}, fun(_) -> true end);
do(list, read, N, Server) ->
    read(Server, lookup, [{list, N}], fun(Objects) -> [Value || {_, Value} <- Objects] end);
do(list, {append, Value}, N, Server) ->
    command(Server, {insert, {{list, N}, Value}}, fun(_) -> true end);
do(bank, read, N, Server) ->
    Spec = [{{{bank, N, '$1'}, '$2'}, [], [{{'$1', '$2'}}]}],
    Empty = #{a => 100, b => 100, c => 100},
    read(Server, select, [Spec], fun(Found) -> maps:merge(Empty, maps:from_list(Found)) end);
do(bank, {move, From, To, Amount}, N, Server) ->
    Commands = [
        {update_counter, {bank, N, Account}, {2, Change}, {{bank, N, Account}, 100}}
     || {Account, Change} <- [{From, -Amount}, {To, Amount}]
    ],
    command(Server, Commands, fun(Results) -> Results end).

command(Server, Command, Result) ->
    case ended(fun() -> ats_ra:command(Server, Command, 2000) end) of
        {ok, Answer} -> {ok, Result(Answer)};
        {error, {badarg, _} = Reason} -> exit(Reason);
        {error, _} -> unknown
    end.

%% A server that ends in the middle of a call ends the call.
ended(Call) ->
    try Call()
    catch exit:Reason -> {error, Reason}
    end.

read(Server, Function, Arguments, Result) ->
    case ended(fun() -> ats_ra:read(consistent, Server, Function, Arguments, 2000) end) of
        {ok, Answer} -> {ok, Result(Answer)};
        {error, {badarg, _} = Reason} -> exit(Reason);
        {error, _} -> failed
    end.

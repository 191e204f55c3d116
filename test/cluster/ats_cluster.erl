%% Several nodes on this machine, for tests and the demonstration of faults: each is an operating
%% system process with a folder of its own. They can be killed, stopped, and cut off from each
%% other. The process that started them talks to them by their standard input, which no fault of the
%% network reaches.
%%
%% Two networks can be between them. `relay' needs nothing: see ats_cluster_network. `namespace' is
%% a network namespace of Linux, in which the system drops the packets; it needs `unshare',
%% `nsenter' and `ip', and a system that lets its users make namespaces.
%%
%% The nodes end with the process that started them, and with its virtual machine.
-module(ats_cluster).
-behaviour(gen_server).

-export([start/2, stop/1, names/1, directory/2, is_possible/1]).
-export([call/5, call/6, state/2, is_running/2]).
-export([kill/2, suspend/2, resume/2, restart/2, partition/2, cut/2, disconnect/1, heal/1]).
-export([connect/1, is_connected/1, wait_until/2]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2, terminate/2]).

-export_type([cluster/0, options/0]).

-type cluster() :: pid().
-type options() :: #{
    %% The directory for the folders of the nodes.
    directory := file:filename(),
    network => relay | namespace,
    %% Time in seconds for which a silent neighbour counts as alive: `net_ticktime' of the kernel.
    ticktime => pos_integer(),
    %% Further arguments of `erl'.
    args => [string()]
}.

-record(node, {
    name :: node(),
    arguments :: map(),
    peer :: pid() | undefined,
    os_pid :: string() | undefined,
    guard :: port() | undefined,
    state = down :: running | suspended | down
}).

-define(BOOT_MS, 300000).
-define(CALL_MS, 300000).
-define(CONNECT_MS, 300000).

%% ----- starting and stopping -----

%% Starts nodes, which are not connected yet. They end with the calling process.
-spec start(pos_integer(), options()) -> {cluster(), [node()]}.
start(Count, Options) ->
    {ok, Cluster} = gen_server:start_link(?MODULE, {Count, Options}, [{timeout, 2 * ?BOOT_MS}]),
    {Cluster, names(Cluster)}.

-spec stop(cluster()) -> ok.
stop(Cluster) ->
    gen_server:stop(Cluster, normal, ?BOOT_MS).

-spec names(cluster()) -> [node()].
names(Cluster) ->
    ask(Cluster, names).

%% Returns the folder of a node, which it has again after a restart.
-spec directory(cluster(), node()) -> file:filename().
directory(Cluster, Node) ->
    ask(Cluster, {directory, Node}).

%% Tells if this machine can have such a network, or why not.
-spec is_possible(relay | namespace) -> true | {false, string()}.
is_possible(relay) ->
    true;
is_possible(namespace) ->
    case [Tool || Tool <- ["unshare", "nsenter", "ip"], os:find_executable(Tool) =:= false] of
        [] ->
            case os:cmd("unshare -rn ip rule add pref 10 blackhole 2>&1") of
                "" -> true;
                Why -> {false, "no network namespaces here: " ++ string:trim(Why)}
            end;
        [Tool | _] ->
            {false, "there is no program " ++ Tool}
    end.

%% ----- functions of nodes -----

%% Calls a function on a node, and raises its exceptions.
-spec call(cluster(), node(), module(), atom(), [term()]) -> term().
call(Cluster, Node, Module, Function, Arguments) ->
    call(Cluster, Node, Module, Function, Arguments, ?CALL_MS).

-spec call(cluster(), node(), module(), atom(), [term()], timeout()) -> term().
call(Cluster, Node, Module, Function, Arguments, TimeoutMs) ->
    peer:call(ask(Cluster, {peer, Node}), Module, Function, Arguments, TimeoutMs).

-spec state(cluster(), node()) -> running | suspended | down.
state(Cluster, Node) ->
    ask(Cluster, {state, Node}).

-spec is_running(cluster(), node()) -> boolean().
is_running(Cluster, Node) ->
    state(Cluster, Node) =:= running.

%% ----- faults -----

%% Kills a node as `kill -9' does. Returns when the process of the operating system is gone.
-spec kill(cluster(), node()) -> ok.
kill(Cluster, Node) ->
    ask(Cluster, {kill, Node}).

%% Stops a node where it is, as SIGSTOP does.
-spec suspend(cluster(), node()) -> ok.
suspend(Cluster, Node) ->
    ask(Cluster, {suspend, Node}).

-spec resume(cluster(), node()) -> ok.
resume(Cluster, Node) ->
    ask(Cluster, {resume, Node}).

%% Starts a node that was killed, with the folder that it had. A node that runs is killed first.
-spec restart(cluster(), node()) -> ok.
restart(Cluster, Node) ->
    ask(Cluster, {restart, Node}).

%% Makes islands of the nodes: between two of them nothing passes, and nobody is told. Nodes that
%% are in none are an island together. Replaces earlier partitions.
-spec partition(cluster(), [[node()]]) -> ok.
partition(Cluster, Islands) ->
    Rest = names(Cluster) -- lists:append(Islands),
    cut(Cluster, pairs([Rest | Islands])).

pairs([]) -> [];
pairs([Island | Others]) -> [{A, B} || A <- Island, B <- lists:append(Others)] ++ pairs(Others).

%% Lets nothing pass between these pairs of nodes, and everything between all others.
-spec cut(cluster(), [{node(), node()}]) -> ok.
cut(Cluster, Pairs) ->
    ask(Cluster, {cut, Pairs}).

%% Has nodes between which nothing passes notice at once, as if their connections had been reset,
%% without waiting for the silence to become too long.
-spec disconnect(cluster()) -> ok.
disconnect(Cluster) ->
    ask(Cluster, disconnect).

%% Lets everything pass again. Connections that nobody gave up go on with the delayed messages.
-spec heal(cluster()) -> ok.
heal(Cluster) ->
    cut(Cluster, []).

%% ----- waiting -----

%% Connects all nodes that run with each other, however long old connections take to end.
-spec connect(cluster()) -> ok.
connect(Cluster) ->
    Running = running(Cluster),
    wait_until(
        fun() ->
            [
                call(Cluster, A, net_kernel, connect_node, [B])
             || A <- Running, B <- Running, A < B
            ],
            is_connected(Cluster)
        end,
        ?CONNECT_MS
    ).

%% Tells if each node that runs sees all others that run.
-spec is_connected(cluster()) -> boolean().
is_connected(Cluster) ->
    Running = running(Cluster),
    lists:all(
        fun(Node) ->
            (Running -- [Node]) -- call(Cluster, Node, erlang, nodes, []) =:= []
        end,
        Running
    ).

running(Cluster) ->
    [Node || Node <- names(Cluster), is_running(Cluster, Node)].

%% Waits for a condition. A node that is asked may be in the middle of anything, so exceptions mean
%% that it does not hold yet, and the last one is raised when the time is over.
-spec wait_until(fun(() -> boolean()), pos_integer()) -> ok.
wait_until(Condition, TimeoutMs) ->
    wait_until(Condition, TimeoutMs, erlang:monotonic_time(millisecond) + TimeoutMs).

wait_until(Condition, TimeoutMs, Deadline) ->
    Result =
        try
            Condition()
        catch
            C:R:S -> {C, R, S}
        end,
    case {Result, erlang:monotonic_time(millisecond) < Deadline} of
        {true, _} ->
            ok;
        {_, true} ->
            timer:sleep(50),
            wait_until(Condition, TimeoutMs, Deadline);
        {false, false} ->
            error({not_within_ms, TimeoutMs});
        {{Class, Reason, Stack}, false} ->
            erlang:raise(Class, Reason, Stack)
    end.

%% ----- the process that has the nodes -----

ask(Cluster, Question) ->
    case gen_server:call(Cluster, Question, 2 * ?BOOT_MS) of
        {raise, Reason} -> error(Reason);
        Answer -> Answer
    end.

init({Count, Options}) ->
    process_flag(trap_exit, true),
    Directory = filename:absname(maps:get(directory, Options)),
    ok = filelib:ensure_path(Directory),
    Network = network(maps:get(network, Options, relay)),
    Run = lists:flatten(io_lib:format("~s~b", [os:getpid(), erlang:unique_integer([positive])])),
    Common = common_arguments(Directory, Options),
    Nodes = [
        #node{
            name = list_to_atom(Name ++ "@" ++ Host),
            arguments = arguments(Name, Host, Network, filename:join(Directory, Name), Common)
        }
     || N <- lists:seq(1, Count),
        Name <- [lists:flatten(io_lib:format("ats~b_~s", [N, Run]))],
        Host <- [host(Network, N)]
    ],
    State = #{directory => Directory, network => Network, cut => [], nodes => #{}},
    Started = lists:foldl(fun(Node, S) -> boot(Node, S) end, State, Nodes),
    {ok, Started#{order => [Node#node.name || Node <- Nodes]}}.

handle_call(Question, _From, State) ->
    try
        {Answer, After} = answer(Question, State),
        {reply, Answer, After}
    catch
        error:Reason:Stack -> {reply, {raise, {Reason, Stack}}, State}
    end.

handle_cast(_, State) ->
    {noreply, State}.

%% Nodes that end, and programs that guard them: that is looked at when somebody asks.
handle_info(_, State) ->
    {noreply, State}.

terminate(_, #{nodes := Nodes, network := Network}) ->
    lists:foreach(fun end_node/1, maps:values(Nodes)),
    case Network of
        relay -> ok;
        {namespace, Holder, _} -> port_close(Holder)
    end.

answer(names, #{order := Order} = State) ->
    {Order, State};
answer({directory, Name}, State) ->
    #node{arguments = #{directory := Directory}} = node_of(Name, State),
    {Directory, State};
answer({state, Name}, State) ->
    {state_of(node_of(Name, State)), State};
answer({peer, Name}, State) ->
    #node{peer = Peer, state = running} = node_of(Name, State),
    {Peer, State};
answer({kill, Name}, State) ->
    {ok, keep(end_node(node_of(Name, State)), State)};
answer({suspend, Name}, State) ->
    #node{state = running} = Node = node_of(Name, State),
    ok = signal("STOP", Node),
    {ok, keep(Node#node{state = suspended}, State)};
answer({resume, Name}, State) ->
    #node{state = suspended} = Node = node_of(Name, State),
    ok = signal("CONT", Node),
    After = keep(Node#node{state = running}, State),
    {ok, apply_cut(Name, After)};
answer({restart, Name}, State) ->
    {ok, boot(end_node(node_of(Name, State)), State)};
answer({cut, Pairs}, #{order := Order} = State) ->
    After = State#{cut := Pairs},
    {ok, apply_cuts(After, Order)};
answer(disconnect, #{cut := Pairs} = State) ->
    [
        peer:call(Peer, erlang, disconnect_node, [Other])
     || {A, B} <- Pairs,
        {Name, Other} <- [{A, B}, {B, A}],
        #node{peer = Peer, state = running} <- [node_of(Name, State)]
    ],
    {ok, State}.

node_of(Name, #{nodes := Nodes}) ->
    maps:get(Name, Nodes).

keep(Node, #{nodes := Nodes} = State) ->
    State#{nodes := Nodes#{Node#node.name => Node}}.

%% A node may have ended itself.
state_of(#node{state = running, peer = Peer}) ->
    case is_process_alive(Peer) of
        true -> running;
        false -> down
    end;
state_of(#node{state = State}) ->
    State.

%% ----- one node -----

common_arguments(Directory, Options) ->
    %% Leaves out libraries of OTP, which the nodes find themselves.
    Ours = [
        filename:absname(Path)
     || Path <- code:get_path(), not lists:prefix(code:lib_dir(), Path), filelib:is_dir(Path)
    ],
    Ticktime = integer_to_list(maps:get(ticktime, Options, 4)),
    %% The last one comes first.
    ["-pa" | lists:reverse(Ours)] ++
        ["-setcookie", integer_to_list(rand:uniform(1 bsl 60), 36)] ++
        ["-start_epmd", "false", "-epmd_module", "ats_cluster_network"] ++
        ["-ats_cluster", Directory] ++
        ["-kernel", "net_ticktime", Ticktime] ++
        maps:get(args, Options, []).

arguments(Name, Host, Network, Directory, Common) ->
    ok = filelib:ensure_path(Directory),
    Log = io_lib:format(
        "[{handler, default, logger_std_h, #{config => #{file => ~0p}}}]", [Directory ++ ".log"]
    ),
    Peer = #{
        name => Name,
        host => Host,
        longnames => true,
        connection => standard_io,
        wait_boot => ?BOOT_MS,
        env => [{"ERL_CRASH_DUMP", Directory ++ ".dump"}, {"ERL_CRASH_DUMP_SECONDS", "0"}],
        args => Common ++ ["-kernel", "logger", lists:flatten(Log)] ++ interface(Network, Host)
    },
    #{directory => Directory, peer => maps:merge(Peer, executable(Network))}.

boot(#node{name = Name, arguments = #{peer := Arguments}} = Node, State) ->
    {ok, Peer, Name} = peer:start_link(Arguments),
    OsPid = peer:call(Peer, os, getpid, []),
    Running = Node#node{peer = Peer, os_pid = OsPid, guard = guard(OsPid), state = running},
    apply_cut(Name, keep(Running, State)).

%% A program that kills a node when this virtual machine ends without having done so: a node that is
%% stopped does not notice.
guard(OsPid) ->
    Script = "read -r line; [ \"$line\" = ended ] || kill -9 " ++ OsPid,
    open_port({spawn_executable, "/bin/sh"}, [{args, ["-c", Script]}]).

end_node(#node{state = down} = Node) ->
    Node;
end_node(#node{peer = Peer, guard = Guard} = Node) ->
    Monitor = erlang:monitor(process, Peer),
    _ = signal("KILL", Node),
    receive
        {'DOWN', Monitor, process, Peer, _} -> ok
    after ?BOOT_MS ->
        exit(Peer, kill)
    end,
    wait_until(fun() -> signal("0", Node) =/= ok end, ?BOOT_MS),
    try
        port_command(Guard, "ended\n")
    catch
        %% The process has ended before.
        error:badarg -> true
    end,
    Node#node{peer = undefined, guard = undefined, state = down}.

signal(Signal, #node{os_pid = OsPid}) ->
    case os:cmd("kill -" ++ Signal ++ " " ++ OsPid ++ " 2>&1") of
        "" -> ok;
        Error -> {error, Error}
    end.

%% ----- networks -----

network(relay) ->
    relay;
network(namespace) ->
    %% A program that has the namespace, until its input ends. The rule for addresses of this
    %% machine makes room for others before it.
    Script =
        "ip link set lo up && ip rule add pref 100 lookup local && ip rule del pref 0 && "
        "echo $$ && exec cat",
    Holder = open_port(
        {spawn_executable, os:find_executable("unshare")},
        [{args, ["-rn", "/bin/sh", "-c", Script]}, {line, 80}, stderr_to_stdout]
    ),
    receive
        {Holder, {data, {eol, Line}}} -> {namespace, Holder, integer_to_list(list_to_integer(Line))}
    after ?BOOT_MS -> error(no_namespace)
    end.

host(relay, _) -> "127.0.0.1";
host({namespace, _, _}, N) -> "127.0.0." ++ integer_to_list(N).

interface(relay, _) ->
    [];
interface({namespace, _, _}, Host) ->
    {ok, Address} = inet:parse_address(Host),
    Text = lists:flatten(io_lib:format("~0p", [Address])),
    ["-kernel", "inet_dist_use_interface", Text] ++
        ["-kernel", "inet_dist_connect_options", "[{ip," ++ Text ++ "}]", "-ats_cluster_direct"].

executable(relay) ->
    #{};
executable({namespace, _, OsPid}) ->
    [Enter | Arguments] = enter(OsPid),
    #{exec => {Enter, Arguments ++ [os:find_executable("erl")]}}.

enter(OsPid) ->
    [os:find_executable("nsenter"), "--preserve-credentials", "-U", "-n", "-t", OsPid, "--"].

apply_cuts(#{network := relay} = State, Names) ->
    lists:foldl(fun apply_cut/2, State, Names);
apply_cuts(#{network := {namespace, _, OsPid}, cut := Pairs} = State, _) ->
    Rules = [
        ["ip rule add pref 10 from ", address(From), " to ", address(To), " blackhole && "]
     || {A, B} <- Pairs, {From, To} <- [{A, B}, {B, A}]
    ],
    Script = ["while ip rule del pref 10 2>/dev/null; do :; done; ", Rules, "echo done"],
    Command = [lists:join(" ", enter(OsPid)), " /bin/sh -c '", Script, "' 2>&1"],
    "done\n" = os:cmd(lists:flatten(Command)),
    State.

address(Node) ->
    [_, Host] = string:split(atom_to_list(Node), "@"),
    Host.

apply_cut(Name, #{network := relay, cut := Pairs} = State) ->
    case node_of(Name, State) of
        #node{state = running, peer = Peer} ->
            Others = [B || {A, B} <- Pairs, A =:= Name] ++ [A || {A, B} <- Pairs, B =:= Name],
            ok = peer:call(Peer, ats_cluster_network, block, [Others]);
        _ ->
            ok
    end,
    State;
apply_cut(_, State) ->
    State.

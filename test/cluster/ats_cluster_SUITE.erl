%% The nodes that other suites of this folder use: their faults work as described, and end.
-module(ats_cluster_SUITE).

-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0, groups/0, init_per_group/2, end_per_group/2]).
-export([init_per_testcase/2, end_per_testcase/2]).
-export([a_cut_is_silent/1, messages_arrive_after_a_short_cut/1, killed_nodes_come_back/1]).
-export([stopped_nodes_wake_up/1, no_node_is_left/1]).
-export([start_receiver/0, start_two/1]).

suite() -> [{timetrap, {minutes, 15}}].

all() -> [{group, relay}, {group, namespace}].

groups() ->
    Cases = [a_cut_is_silent, messages_arrive_after_a_short_cut, killed_nodes_come_back,
             stopped_nodes_wake_up, no_node_is_left],
    [{relay, [], Cases}, {namespace, [], Cases}].

init_per_group(Network, Config) ->
    case ats_cluster:is_possible(Network) of
        true -> [{network, Network} | Config];
        {false, Why} -> {skip, Why}
    end.

end_per_group(_, _) ->
    ok.

init_per_testcase(Case, Config) ->
    Network = proplists:get_value(network, Config),
    Name = lists:flatten(io_lib:format("~s_~s", [Network, Case])),
    Directory = filename:join(proplists:get_value(priv_dir, Config), Name),
    {Cluster, Nodes} = ats_cluster:start(
        3, #{directory => Directory, network => Network, ticktime => 2}
    ),
    ok = ats_cluster:connect(Cluster),
    [{cluster, Cluster}, {nodes, Nodes} | Config].

end_per_testcase(_, Config) ->
    Cluster = proplists:get_value(cluster, Config),
    not is_process_alive(Cluster) orelse ats_cluster:stop(Cluster).

setting(Config) ->
    {proplists:get_value(cluster, Config), proplists:get_value(nodes, Config)}.

a_cut_is_silent(Config) ->
    {Cluster, [A, B, C]} = setting(Config),
    ok = ats_cluster:partition(Cluster, [[A], [B, C]]),
    Seen = fun(Node) -> lists:sort(ats_cluster:call(Cluster, Node, erlang, nodes, [])) end,
    %% Nobody was told.
    ?assertEqual([B, C], Seen(A)),
    ?assertEqual([A, B], Seen(C)),
    ok = ats_cluster:wait_until(
        fun() -> [[], [C], [B]] =:= [Seen(Node) || Node <- [A, B, C]] end, 30000
    ),
    ?assertEqual(pang, ats_cluster:call(Cluster, A, net_adm, ping, [B])),
    ?assertEqual(pang, ats_cluster:call(Cluster, C, net_adm, ping, [A])),
    ok = ats_cluster:heal(Cluster),
    ok = ats_cluster:connect(Cluster),
    %% The nodes notice at once when they are also disconnected.
    ok = ats_cluster:cut(Cluster, [{A, B}, {A, C}]),
    ok = ats_cluster:disconnect(Cluster),
    ok = ats_cluster:wait_until(
        fun() -> [[], [C], [B]] =:= [Seen(Node) || Node <- [A, B, C]] end, 1000
    ),
    ok = ats_cluster:heal(Cluster),
    ok = ats_cluster:connect(Cluster).

messages_arrive_after_a_short_cut(Config) ->
    {Cluster, [A, B, _]} = setting(Config),
    ok = ats_cluster:call(Cluster, B, ?MODULE, start_receiver, []),
    ok = ats_cluster:partition(Cluster, [[A]]),
    hello = ats_cluster:call(Cluster, A, erlang, send, [{receiver, B}, hello]),
    timer:sleep(300),
    Queue = fun() ->
        Pid = ats_cluster:call(Cluster, B, erlang, whereis, [receiver]),
        ats_cluster:call(Cluster, B, erlang, process_info, [Pid, messages])
    end,
    ?assertEqual({messages, []}, Queue()),
    ok = ats_cluster:heal(Cluster),
    ok = ats_cluster:wait_until(fun() -> Queue() =:= {messages, [hello]} end, 10000).

killed_nodes_come_back(Config) ->
    {Cluster, [A, B, C]} = setting(Config),
    File = filename:join(ats_cluster:directory(Cluster, B), "file"),
    ok = ats_cluster:call(Cluster, B, file, write_file, [File, "kept"]),
    OsPid = ats_cluster:call(Cluster, B, os, getpid, []),
    ok = ats_cluster:kill(Cluster, B),
    ?assertNot(is_there(OsPid)),
    ?assertNot(ats_cluster:is_running(Cluster, B)),
    ok = ats_cluster:wait_until(
        fun() -> [C] =:= ats_cluster:call(Cluster, A, erlang, nodes, []) end, 10000
    ),
    %% A cut made while a node is down holds when it comes back.
    ok = ats_cluster:partition(Cluster, [[A]]),
    ok = ats_cluster:restart(Cluster, B),
    ?assertEqual({ok, <<"kept">>}, ats_cluster:call(Cluster, B, file, read_file, [File])),
    ?assertEqual(pang, ats_cluster:call(Cluster, B, net_adm, ping, [A])),
    ?assertEqual(pong, ats_cluster:call(Cluster, B, net_adm, ping, [C])),
    ok = ats_cluster:heal(Cluster),
    ok = ats_cluster:connect(Cluster).

stopped_nodes_wake_up(Config) ->
    {Cluster, [A, B, C]} = setting(Config),
    ok = ats_cluster:suspend(Cluster, C),
    ok = ats_cluster:wait_until(
        fun() -> [B] =:= ats_cluster:call(Cluster, A, erlang, nodes, []) end, 30000
    ),
    ok = ats_cluster:resume(Cluster, C),
    ok = ats_cluster:connect(Cluster),
    ok = ats_cluster:suspend(Cluster, C),
    ok = ats_cluster:kill(Cluster, C).

no_node_is_left(Config) ->
    {Cluster, [A, B, C]} = setting(Config),
    OsPids = os_pids(Cluster, [A, B, C]),
    ?assertEqual([true, true, true], [is_there(OsPid) || OsPid <- OsPids]),
    ok = ats_cluster:suspend(Cluster, B),
    ok = ats_cluster:stop(Cluster),
    ?assertEqual([false, false, false], [is_there(OsPid) || OsPid <- OsPids]),
    %% A virtual machine that ends without a word takes its nodes along.
    Directory = filename:join(proplists:get_value(priv_dir, Config), "left"),
    {ok, Vm, _} = ats_test_lib:start_vm([]),
    Kill = ats_test_lib:killer_of(Vm),
    Left = ats_test_lib:call(Vm, ?MODULE, start_two, [Directory]),
    ok = Kill(),
    ok = ats_cluster:wait_until(
        fun() -> [false, false] =:= [is_there(OsPid) || OsPid <- Left] end, 10000
    ).

os_pids(Cluster, Nodes) ->
    [ats_cluster:call(Cluster, Node, os, getpid, []) || Node <- Nodes].

is_there(OsPid) ->
    "" =:= os:cmd("kill -0 " ++ OsPid ++ " 2>&1").

%% ----- in other virtual machines -----

start_receiver() ->
    true = register(receiver, spawn(fun() -> timer:sleep(infinity) end)),
    ok.

%% Nodes of a process that does not end, one of which is stopped; their numbers in the system.
start_two(Directory) ->
    Me = self(),
    spawn(fun() ->
        {Cluster, [A, B]} = ats_cluster:start(2, #{directory => Directory}),
        OsPids = os_pids(Cluster, [A, B]),
        ok = ats_cluster:suspend(Cluster, A),
        Me ! {two, OsPids},
        timer:sleep(infinity)
    end),
    receive {two, OsPids} -> OsPids end.

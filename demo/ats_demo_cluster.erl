%% @doc The demonstration behind `make demo WHAT=cluster': three nodes with the same tables in
%% Mnesia, one of which is killed, and another one stopped, while all of them write.
%%
%% The nodes are virtual machines on this machine. Each notes in a file which of its transactions
%% were acknowledged; in the end each is asked whether it has them all.
-module(ats_demo_cluster).

-export([main/1]).

-type demo() :: #{cluster := ats_cluster:cluster(),
                  nodes := [node()],
                  start := Milliseconds :: integer(),
                  kind := terminal | plain}.

%% One table of each type: in memory, on disk, and in both.
-define(FAMILY, {demo, [{in_memory, ats_ram, ordered_set},
                        {on_disk, dats_disc, ordered_set},
                        {in_both, ats_disc, set}]}).
-define(TABLES, [in_memory, on_disk, in_both]).
-define(REDRAW_MS, 200).
-define(MOST_MS, 60000).

-spec main([string()]) -> no_return().
main([Kind]) ->
    ok = ats_demo_terminal:init(kind(Kind)),
    Directory = filename:join(os:getenv("TMPDIR", "/tmp"), "ats-demo-cluster-" ++ os:getpid()),
    Kept = try run(kind(Kind), Directory)
           after _ = file:del_dir_r(Directory)
           end,
    case Kept of
        true -> ats_demo_terminal:line("~nNothing was lost.", []), halt(0);
        false -> ats_demo_terminal:line("~nSomething was lost; see above.", []), halt(1)
    end.

-spec kind(string()) -> terminal | plain.
kind("terminal") -> terminal;
kind("plain") -> plain.

-spec run(terminal | plain, file:filename()) -> boolean().
run(Kind, Directory) ->
    ats_demo_terminal:heading("Three nodes, one database"),
    ats_demo_terminal:line(
      "Three virtual machines have the same three tables in Mnesia: one in memory (ats_ram), one~n"
      "on disk (dats_disc), one in both (ats_disc). Each makes transactions that write to all~n"
      "three tables, on all nodes; a transaction counts when it was acknowledged. The tables~n"
      "take writes only where a majority of the nodes is: {majority, true}.~n", []),
    Start = erlang:monotonic_time(millisecond),
    %% A node that was given up must not be connected again before it knows.
    Options = #{directory => Directory, args => ["-kernel", "dist_auto_connect", "once"]},
    {Cluster, Nodes} = ats_cluster:start(3, Options),
    Demo = #{cluster => Cluster, nodes => Nodes, start => Start, kind => Kind},
    Kept = try
               ok = prepare(Demo),
               ok = tell(Demo),
               check(Demo)
           after
               ats_cluster:stop(Cluster)
           end,
    Kept.

-spec prepare(demo()) -> ok.
prepare(#{nodes := [First | _] = Nodes, cluster := Cluster} = Demo) ->
    ok = ats_cluster:connect(Cluster),
    lists:foreach(fun(Node) -> configure(Demo, Node) end, Nodes),
    ok = on(Demo, First, create_schema, [Nodes, ats_mnesia:types()]),
    lists:foreach(fun(Node) -> ok = on(Demo, Node, start, [[]]) end, Nodes),
    ok = on(Demo, First, create_tables, [Nodes, [?FAMILY]]),
    lists:foreach(fun(Node) -> start_writer(Demo, Node) end, Nodes).

%% @doc Kills and stops nodes, brings them back, and tells of it.
-spec tell(demo()) -> ok.
tell(#{cluster := Cluster, nodes := [One, Two, Three]} = Demo) ->
    say(Demo, "The nodes write."),
    ok = watch(Demo, 4000),

    ok = ats_cluster:kill(Cluster, Two),
    say(Demo, "Node 2 was killed (kill -9). The others have a majority, and go on."),
    ok = watch(Demo, 4000),

    ok = ats_cluster:restart(Cluster, Two),
    configure(Demo, Two),
    ok = on(Demo, Two, start, [?TABLES]),
    start_writer(Demo, Two),
    say(Demo, "Node 2 was started again, has loaded what it missed, and writes."),
    ok = watch(Demo, 3000),

    ok = ats_cluster:suspend(Cluster, Three),
    say(Demo, "Node 3 was stopped (SIGSTOP). The others wait for it, until they give it up."),
    ok = watch_until(Demo, fun() -> on(Demo, One, running, []) =:= lists:sort([One, Two]) end),
    say(Demo, "They have given it up, after ~b s of silence, and go on.", [ticktime(Demo)]),
    ok = watch(Demo, 4000),

    ok = ats_cluster:resume(Cluster, Three),
    IsAlone = fun() -> on(Demo, Three, running, []) =:= [Three] end,
    ok = ats_cluster:wait_until(IsAlone, ?MOST_MS),
    say(Demo, "Node 3 was woken, and finds itself alone: it takes no writes."),
    ok = ats_cluster:connect(Cluster),
    ok = watch_until(Demo, fun() -> [] =/= [E || {running_partitioned_network, _} = E
                                                     <- on(Demo, Three, events, [])] end),
    say(Demo, "Mnesia has reported a partitioned network there. The operator has node 3 load its~n"
        "         tables from the others: mnesia:set_master_nodes/1, and Mnesia anew."),
    ok = on(Demo, Three, stop_writers, []),
    ok = on(Demo, Three, restart_from, [[One, Two], ?TABLES]),
    start_writer(Demo, Three),
    ok = watch(Demo, 3000).

%% @doc Ends the writers, and asks each node.
-spec check(demo()) -> boolean().
check(#{nodes := Nodes} = Demo) ->
    lists:foreach(fun(Node) -> ok = on(Demo, Node, stop_writers, []) end, Nodes),
    say(Demo, "The nodes write no more, and are asked what they have."),
    Contents = [[on(Demo, Node, contents, [Table]) || Table <- ?TABLES] || Node <- Nodes],
    Numbers = [[acknowledged(Demo, Node)
               | [lists:min([last(number(Demo, Node), Objects) || Objects <- OfNode])
                  || OfNode <- Contents]]
               || Node <- Nodes],
    ats_demo_terminal:table(
      ["transactions of", "acknowledged" | ["found on " ++ name(Demo, Node) || Node <- Nodes]],
      [[name(Demo, Node) | [ats_demo_terminal:count(N) || N <- Row]]
       || {Node, Row} <- lists:zip(Nodes, Numbers)]),
    AreEqual = length(lists:usort(Contents)) =:= 1,
    ats_demo_terminal:line("~n  The tables have the same objects on all nodes: ~ts",
                           [case AreEqual of true -> "yes"; false -> "NO" end]),
    AreEqual andalso lists:all(fun([Acknowledged | Found]) ->
                                       lists:min(Found) >= Acknowledged
                               end, Numbers).

%% Each node has one writer, whose number is that of the node.
-spec last(pos_integer(), [tuple()]) -> non_neg_integer().
last(Writer, Objects) ->
    lists:sum([N || {_, {W, last}, N} <- Objects, W =:= Writer]).

%%--------------------------------------------------------------------------------------------
%% Output
%%--------------------------------------------------------------------------------------------

-spec say(demo(), string()) -> ok.
say(Demo, Text) ->
    say(Demo, Text, []).

-spec say(demo(), string(), [term()]) -> ok.
say(#{start := Start}, Text, Arguments) ->
    Seconds = (erlang:monotonic_time(millisecond) - Start) / 1000,
    ats_demo_terminal:line("~n~6.1f s " ++ Text, [Seconds | Arguments]).

%% @doc Shows for a time how many transactions were acknowledged.
-spec watch(demo(), Milliseconds :: pos_integer()) -> ok.
watch(Demo, Milliseconds) ->
    End = erlang:monotonic_time(millisecond) + Milliseconds,
    watch_until(Demo, fun() -> erlang:monotonic_time(millisecond) >= End end).

-spec watch_until(demo(), fun(() -> boolean())) -> ok.
watch_until(Demo, IsOver) ->
    watch_until(Demo, IsOver, erlang:monotonic_time(millisecond) + ?MOST_MS).

watch_until(#{kind := Kind} = Demo, IsOver, Latest) ->
    Kind =:= plain orelse io:format("\r\e[K~ts", [status(Demo)]),
    case IsOver() of
        true ->
            Kind =:= plain andalso io:format("~ts", [status(Demo)]),
            ats_demo_terminal:line("", []);
        false ->
            true = erlang:monotonic_time(millisecond) < Latest,
            timer:sleep(?REDRAW_MS),
            watch_until(Demo, IsOver, Latest)
    end.

-spec status(demo()) -> iolist().
status(#{nodes := Nodes, cluster := Cluster} = Demo) ->
    ["         transactions:",
     [io_lib:format("  ~ts ~7ts~ts", [name(Demo, Node),
                                      ats_demo_terminal:count(acknowledged(Demo, Node)),
                                      case ats_cluster:state(Cluster, Node) of
                                          running -> "";
                                          suspended -> " (stopped)";
                                          down -> " (killed)"
                                      end])
      || Node <- Nodes]].

-spec name(demo(), node()) -> string().
name(Demo, Node) ->
    "node " ++ integer_to_list(number(Demo, Node)).

%%--------------------------------------------------------------------------------------------
%% Nodes
%%--------------------------------------------------------------------------------------------

-spec on(demo(), node(), atom(), [term()]) -> term().
on(#{cluster := Cluster}, Node, Function, Arguments) ->
    ats_cluster:call(Cluster, Node, ats_mnesia_node, Function, Arguments).

-spec configure(demo(), node()) -> ok.
configure(Demo, Node) ->
    ok = on(Demo, Node, configure, [directory(Demo, Node)]).

-spec start_writer(demo(), node()) -> ok.
start_writer(Demo, Node) ->
    ok = on(Demo, Node, start_writers, [directory(Demo, Node), [{number(Demo, Node), ?FAMILY}]]).

-spec acknowledged(demo(), node()) -> non_neg_integer().
acknowledged(Demo, Node) ->
    ats_mnesia_node:acknowledged(directory(Demo, Node), element(1, ?FAMILY), number(Demo, Node)).

-spec directory(demo(), node()) -> file:filename().
directory(#{cluster := Cluster}, Node) ->
    ats_cluster:directory(Cluster, Node).

-spec number(demo(), node()) -> pos_integer().
number(#{nodes := Nodes}, Node) ->
    length(lists:takewhile(fun(Other) -> Other =/= Node end, Nodes)) + 1.

%% Seconds after which a silent node is given up.
-spec ticktime(demo()) -> pos_integer().
ticktime(#{cluster := Cluster, nodes := [First | _]}) ->
    ats_cluster:call(Cluster, First, net_kernel, get_net_ticktime, []).

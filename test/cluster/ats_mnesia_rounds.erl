%% Rounds of faults on nodes with tables in mnesia, while all nodes write; the steps of an operator
%% after each; and the judgement about the tables then.
%%
%% Nothing that was acknowledged may be lost, with two exceptions that are mnesia's. A node that was
%% cut off, or stopped for so long that the others went on without it, may acknowledge the
%% transactions that were under way in that moment, and the others may have dropped them:
%% acknowledgements of such a node after the beginning of the fault do not count. When all nodes
%% die, only those count that came before `mnesia:sync_log/0' was called on each of them.
-module(ats_mnesia_rounds).

-export([start/5, stop/1, round/2, acknowledged/1]).

-export_type([setting/0, kind/0, violation/0]).

-type kind() :: kill | restart | suspend | wake_slowly | partition | kill_all.
-type setting() :: map().
-type violation() :: {Family :: atom(), term()}.

-define(WRITERS, 2).
-define(SETTLE_MS, 60000).
-define(SLOW_MS, 1000).
-define(JUDGE_TRIES, 20).

%% ----- beginning and end -----

%% Nodes that have copies of the tables of all families, and write to them. The last argument is for
%% `erl'.
-spec start(
    pos_integer(), file:filename(), [ats_mnesia_node:family()], [{atom(), module()}], [string()]
) -> setting().
start(Count, Directory, Families, BackendTypes, Arguments) ->
    Options = #{directory => Directory, args => Arguments},
    {Cluster, [First | _] = Nodes} = ats_cluster:start(Count, Options),
    ok = ats_cluster:connect(Cluster),
    Setting = #{
        cluster => Cluster,
        nodes => Nodes,
        families => Families,
        tables => [Table || {_, Tables} <- Families, {Table, _, _} <- Tables],
        writers => [
            {Family, 10 * N + I, Node}
         || {Family, _} <- Families,
            {N, Node} <- lists:zip(lists:seq(1, Count), Nodes),
            I <- lists:seq(1, ?WRITERS)
        ]
    },
    _ = each(Setting, Nodes, configure, fun(Node) -> [directory(Setting, Node)] end),
    ok = at(Setting, First, create_schema, [Nodes, BackendTypes]),
    _ = each(Setting, Nodes, start, fun(_) -> [[]] end),
    ok = at(Setting, First, create_tables, [Nodes, Families]),
    ok = start_writers(Setting),
    Setting.

-spec stop(setting()) -> ok.
stop(#{cluster := Cluster}) ->
    ats_cluster:stop(Cluster).

%% Returns the number of transactions that were acknowledged in each family.
-spec acknowledged(setting()) -> [{Family :: atom(), non_neg_integer()}].
acknowledged(#{families := Families} = Setting) ->
    Acks = acks(Setting),
    [
        {Family, lists:sum([N || {{F, _, _}, N} <- maps:to_list(Acks), F =:= Family])}
     || {Family, _} <- Families
    ].

%% ----- rounds -----

%% Returns the violations after a fault; an empty list if all is well.
-spec round(kind(), setting()) -> [violation()].
round(Kind, #{nodes := Nodes} = Setting) ->
    timer:sleep(100 + rand:uniform(500)),
    Victim = lists:nth(rand:uniform(length(Nodes)), Nodes),
    Before = acks(Setting),
    {Cut, Violations} = fault(Kind, Victim, Nodes -- [Victim], Setting),
    _ = each(Setting, Nodes, stop_writers, fun(_) -> [] end),
    Acks = acks(Setting),
    Counting = maps:map(
        fun({_, _, Node} = Writer, N) ->
            case lists:member(Node, Cut) of
                true -> maps:get(Writer, Before);
                false -> N
            end
        end,
        Acks
    ),
    Found = judge_soon(Counting, Acks, Setting, ?JUDGE_TRIES),
    ok = start_writers(Setting),
    Violations ++ Found.

%% Causes a fault, waits until the remaining nodes go on, and brings all nodes back. Returns the
%% nodes whose last acknowledgements do not count, and violations.
fault(kill, Victim, Others, #{cluster := Cluster} = Setting) ->
    ok = ats_cluster:kill(Cluster, Victim),
    ok = wait_for_progress(Setting, Others),
    timer:sleep(rand:uniform(500)),
    ok = ats_cluster:restart(Cluster, Victim),
    ok = start_mnesia(Setting, [Victim]),
    {[], []};
fault(restart, Victim, Others, #{tables := Tables} = Setting) ->
    ok = at(Setting, Victim, stop_writers, []),
    ok = at(Setting, Victim, stop, []),
    ok = wait_for_progress(Setting, Others),
    ok = at(Setting, Victim, start, [Tables]),
    {[], []};
fault(suspend, Victim, Others, #{cluster := Cluster} = Setting) ->
    _ = each(Setting, [Victim | Others], events, fun(_) -> [] end),
    ok = ats_cluster:suspend(Cluster, Victim),
    Noticed = wait_for_notice(Setting, Others),
    ok = ats_cluster:resume(Cluster, Victim),
    recover(Noticed, Victim, Others, Setting);
fault(wake_slowly, Victim, Others, #{cluster := Cluster} = Setting) ->
    _ = each(Setting, [Victim | Others], events, fun(_) -> [] end),
    ok = at(Setting, Victim, hold_notice, []),
    ok = ats_cluster:suspend(Cluster, Victim),
    ok = wait_until_given_up(Setting, Others),
    %% The others change the values that the victim has read.
    timer:sleep(?SLOW_MS),
    ok = ats_cluster:resume(Cluster, Victim),
    timer:sleep(?SLOW_MS),
    ok = at(Setting, Victim, take_notice, []),
    recover(true, Victim, Others, Setting);
fault(partition, Victim, Others, #{cluster := Cluster} = Setting) ->
    _ = each(Setting, [Victim | Others], events, fun(_) -> [] end),
    ok = ats_cluster:partition(Cluster, [[Victim], Others]),
    Noticed = wait_for_notice(Setting, Others),
    Violations = [V || Noticed, V <- minority_writes(Setting, Victim)],
    ok = ats_cluster:heal(Cluster),
    {Cut, More} = recover(Noticed, Victim, Others, Setting),
    {Cut, Violations ++ More};
fault(kill_all, _, _, #{cluster := Cluster, nodes := Nodes} = Setting) ->
    [ok = sync_log(Setting, Node) || Node <- Nodes],
    timer:sleep(rand:uniform(300)),
    [ok = ats_cluster:kill(Cluster, Node) || Node <- shuffle(Nodes)],
    [ok = ats_cluster:restart(Cluster, Node) || Node <- Nodes],
    ok = start_mnesia(Setting, Nodes),
    {Nodes, []}.

%% Waits until the others have given a node up and go on without it, or for less than that.
wait_for_notice(Setting, Others) ->
    case rand:uniform(4) of
        1 ->
            timer:sleep(200 + rand:uniform(800)),
            false;
        _ ->
            ok = wait_until_given_up(Setting, Others),
            timer:sleep(rand:uniform(500)),
            true
    end.

wait_until_given_up(Setting, Others) ->
    ok = wait_for_running(Setting, Others, Others),
    wait_for_progress(Setting, Others).

%% A node that knows that it is cut off takes no writes.
minority_writes(#{families := Families} = Setting, Victim) ->
    ok = wait_for_running(Setting, [Victim], [Victim]),
    %% Transactions under way are over when writes are refused.
    IsRefused = fun() ->
        [] =/= [Table || {no_majority, Table} <- at(Setting, Victim, aborts, [])]
    end,
    Refused = holds_soon(IsRefused),
    Before = acks(Setting),
    timer:sleep(300),
    [{mnesia, minority_refuses_nothing} || not Refused] ++
        [
            {Family, {written_in_minority, Victim}}
         || {Family, _} <- Families,
            acks_of(Setting, Before, Family, Victim) =/=
                acks_of(Setting, acks(Setting), Family, Victim)
        ].

%% Recovers as an operator does when the network is back. A node that was given up finds out that it
%% is alone before it is connected again. Then mnesia reports that its tables may differ from those
%% of the others; it takes theirs.
recover(false, _, _, #{cluster := Cluster, nodes := Nodes} = Setting) ->
    ok = ats_cluster:connect(Cluster),
    ok = wait_for_running(Setting, Nodes, Nodes),
    {[], []};
recover(true, Victim, Others, #{cluster := Cluster, nodes := Nodes, tables := Tables} = Setting) ->
    ok = wait_for_running(Setting, [Victim], [Victim]),
    ok = ats_cluster:connect(Cluster),
    Reported = fun() ->
        Events = lists:append(each(Setting, Nodes, events, fun(_) -> [] end)),
        [] =/= [Node || {running_partitioned_network, Node} <- Events]
    end,
    Violations = [{mnesia, partition_is_not_reported} || not holds_soon(Reported)],
    ok = at(Setting, Victim, stop_writers, []),
    ok = at(Setting, Victim, restart_from, [Others, Tables]),
    ok = wait_for_running(Setting, Nodes, Nodes),
    {[Victim], Violations}.

start_mnesia(#{nodes := All, tables := Tables} = Setting, Nodes) ->
    _ = each(Setting, Nodes, configure, fun(Node) -> [directory(Setting, Node)] end),
    _ = each(Setting, Nodes, start, fun(_) -> [Tables] end),
    wait_for_running(Setting, All, All).

wait_for_running(Setting, Nodes, Running) ->
    ats_cluster:wait_until(
        fun() ->
            lists:all(
                fun(Node) -> at(Setting, Node, running, []) =:= lists:sort(Running) end, Nodes
            )
        end,
        ?SETTLE_MS
    ).

holds_soon(Condition) ->
    try ats_cluster:wait_until(Condition, ?SETTLE_MS) of
        ok -> true
    catch
        error:{not_within_ms, _} -> false
    end.

%% Each writer of these nodes gets another transaction acknowledged.
wait_for_progress(Setting, Nodes) ->
    Before = acks(Setting),
    Stuck = fun() ->
        Acks = acks(Setting),
        [
            Writer
         || {{_, _, Node} = Writer, N} <- maps:to_list(Before),
            lists:member(Node, Nodes),
            maps:get(Writer, Acks) =:= N
        ]
    end,
    try
        ats_cluster:wait_until(fun() -> Stuck() =:= [] end, ?SETTLE_MS)
    catch
        error:{not_within_ms, _} ->
            error({stuck, Stuck(), lists:usort(each(Setting, Nodes, aborts, fun(_) -> [] end))})
    end.

%% ----- judgement -----

%% A node that has just loaded a table can be read, and is waited for no more, some milliseconds
%% before it has done the last changes that were made meanwhile.
judge_soon(Counting, Acks, #{families := Families} = Setting, Tries) ->
    case lists:append([judge(Family, Counting, Acks, Setting) || Family <- Families]) of
        [_ | _] when Tries > 1 ->
            timer:sleep(100),
            judge_soon(Counting, Acks, Setting, Tries - 1);
        Wrong ->
            Wrong
    end.

%% `Counting' has the transactions of each writer that must be there, `Acks' its last
%% acknowledgements.
judge({Family, Tables}, Counting, Acks, Setting) ->
    Contents = contents(Tables, Setting),
    Accounts = [
        {Table, ats_mnesia_node:accounts(Objects)}
     || {Table, Type, [Objects | _]} <- Contents, Type =/= bag
    ],
    Writers = lists:append([
        judge_writer(Family, W, maps:get(Writer, Counting), maps:get(Writer, Acks), Contents)
     || {F, W, _} = Writer <- maps:keys(Acks), F =:= Family
    ]),
    differing(Family, Contents) ++ wrong_in_index(Family, Tables, Setting) ++ Writers ++
        [{Family, Wrong} || Wrong <- judge_accounts(Accounts)].

%% Nothing comes or goes when amounts are moved, and each transaction moves the same in all tables.
judge_accounts(Accounts) ->
    [
        {wrong_sum, Table, Sum}
     || {Table, Amounts} <- Accounts,
        Sum <- [lists:sum([Amount || {_, Amount} <- Amounts])],
        Sum =/= ats_mnesia_node:total()
    ] ++
        [
            {tables_differ, [{Table, Amounts -- First} || {Table, Amounts} <- Accounts]}
         || [{_, First} | _] <- [Accounts],
            lists:any(fun({_, Amounts}) -> Amounts =/= First end, Accounts)
        ].

contents(Tables, #{nodes := Nodes} = Setting) ->
    [
        {Table, Type, each(Setting, Nodes, contents, fun(_) -> [Table] end)}
     || {Table, _, Type} <- Tables
    ].

differing(Family, Contents) ->
    [
        {Family, {replicas_differ, Table, [difference(First, O) || O <- Copies, O =/= First]}}
     || {Table, _, [First | _] = Copies} <- Contents,
        lists:any(fun(Objects) -> Objects =/= First end, Copies)
    ].

wrong_in_index(Family, Tables, #{nodes := Nodes} = Setting) ->
    [
        {Family, {wrong_in_index, Table, Wrong}}
     || {Table, _, _} <- Tables,
        Wrong <- each(Setting, Nodes, wrong_in_index, fun(_) -> [Table] end),
        Wrong =/= []
    ].

of_writer(W, Objects) ->
    [Object || {_, {Key, _}, _} = Object <- Objects, Key =:= W].

judge_writer(Family, W, AtLeast, Acknowledged, Contents) ->
    OfWriter = [{Table, Type, of_writer(W, Objects)} || {Table, Type, [Objects | _]} <- Contents],
    case lists:usort([last(W, Objects) || {_, _, Objects} <- OfWriter]) of
        [N] ->
            [{Family, {lost, W, AtLeast, N}} || N < AtLeast] ++
                [{Family, {invented, W, Acknowledged, N}} || N > Acknowledged + 1] ++
                [
                    {Family, {wrong_objects, Table, W, N, difference(Expected, Objects)}}
                 || {Table, Type, Objects} <- OfWriter,
                    Expected <- [ats_mnesia_node:objects(Table, Type, W, N)],
                    Objects =/= Expected
                ];
        _ ->
            [{Family, {torn, W, [{Table, last(W, Objects)} || {Table, _, Objects} <- OfWriter]}}]
    end.

%% Returns the keys of missing and of surplus objects.
difference(Expected, Objects) ->
    [{missing, keys(Expected -- Objects)}, {too_many, keys(Objects -- Expected)}].

keys(Objects) ->
    [element(2, Object) || Object <- Objects].

last(W, Objects) ->
    case [N || {_, {Key, last}, N} <- Objects, Key =:= W] of
        [] -> 0;
        [N] -> N;
        Several -> Several
    end.

%% ----- small tools -----

start_writers(#{nodes := Nodes, families := Families, writers := Writers} = Setting) ->
    Of = fun(Node) ->
        [{W, lists:keyfind(Family, 1, Families)} || {Family, W, N} <- Writers, N =:= Node]
    end,
    _ = each(Setting, Nodes, start_writers, fun(Node) -> [directory(Setting, Node), Of(Node)] end),
    ok.

acks(#{writers := Writers} = Setting) ->
    maps:from_list([
        {Writer, ats_mnesia_node:acknowledged(directory(Setting, Node), Family, W)}
     || {Family, W, Node} = Writer <- Writers
    ]).

acks_of(#{writers := Writers}, Acks, Family, Node) ->
    [maps:get(Writer, Acks) || {F, _, N} = Writer <- Writers, F =:= Family, N =:= Node].

directory(#{cluster := Cluster}, Node) ->
    ats_cluster:directory(Cluster, Node).

sync_log(#{cluster := Cluster}, Node) ->
    ats_cluster:call(Cluster, Node, mnesia, sync_log, []).

at(#{cluster := Cluster}, Node, Function, Arguments) ->
    ats_cluster:call(Cluster, Node, ats_mnesia_node, Function, Arguments, 2 * ?SETTLE_MS).

%% Calls a function on several nodes at the same time.
each(Setting, Nodes, Function, Arguments) ->
    ats_test_lib:parallel([
        fun() -> at(Setting, Node, Function, Arguments(Node)) end
     || Node <- Nodes
    ]).

shuffle(List) ->
    [Item || {_, Item} <- lists:sort([{rand:uniform(), Item} || Item <- List])].

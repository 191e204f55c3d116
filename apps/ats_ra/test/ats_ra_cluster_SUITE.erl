%% Three nodes that keep tables, and one that has clients: killed, stopped, cut off, and emptied.
%%
%% ATS_RA_ROUNDS says how often each fault comes (5 by default).
-module(ats_ra_cluster_SUITE).

-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0, init_per_testcase/2, end_per_testcase/2]).
-export([the_page/1, calls_of_all_nodes/1, a_member_that_was_away/1, a_member_that_lost_all/1]).
-export([all_nodes_are_killed/1, kill_rounds/1, stop_rounds/1, partition_rounds/1]).
-export([early_snapshots_are_found/1, old_tables_are_found/1, stale_reads_are_found/1]).

%% Each kind of table that histories need.
-define(CLUSTERS, [
    {ats_single, single, {ats, [ordered_set]}},
    {ats_several, several, {ats, [bag]}},
    {dats_single, single, {dats, [{type, ordered_set}]}},
    {dats_several, several, {dats, [{type, bag}]}}
]).
-define(EVERY, 64).
%% A snapshot that was not answered `ra' sends again after two minutes.
-define(SETTLE_MS, 180000).

suite() -> [{timetrap, {minutes, 15 + 2 * rounds()}}].

all() ->
    [
        the_page,
        calls_of_all_nodes,
        a_member_that_was_away,
        a_member_that_lost_all,
        all_nodes_are_killed,
        kill_rounds,
        stop_rounds,
        partition_rounds,
        early_snapshots_are_found,
        old_tables_are_found,
        stale_reads_are_found
    ].

rounds() ->
    list_to_integer(os:getenv("ATS_RA_ROUNDS", "5")).

init_per_testcase(Case, Config) ->
    Directory = filename:join(proplists:get_value(priv_dir, Config), Case),
    {Cluster, Nodes} = ats_cluster:start(4, #{directory => Directory}),
    ok = ats_cluster:connect(Cluster),
    {Members, [Client]} = lists:split(3, Nodes),
    Setting = #{cluster => Cluster, members => Members, client => Client},
    [{setting, Setting} | Config].

end_per_testcase(_, Config) ->
    #{cluster := Cluster} = setting(Config),
    not is_process_alive(Cluster) orelse ats_cluster:stop(Cluster).

setting(Config) -> proplists:get_value(setting, Config).

%% ----- functions of nodes -----

at(#{cluster := Cluster}, Node, Function, Arguments) ->
    ats_cluster:call(Cluster, Node, ats_ra_node, Function, Arguments).

%% Calls a function from the node with the clients.
ask(#{cluster := Cluster, client := Client}, Module, Function, Arguments) ->
    ats_cluster:call(Cluster, Client, Module, Function, Arguments).

command(Setting, Server, Command) ->
    {ok, Result} = ask(Setting, ats_ra, command, [Server, Command]),
    Result.

start(Setting) -> start(Setting, ?CLUSTERS).

start(#{cluster := Cluster, members := Members} = Setting, Clusters) ->
    [start_node(Setting, Node) || Node <- Members],
    [
        {ok, [_, _, _], []} = ats_cluster:call(Cluster, hd(Members), ats_ra, start_cluster, [
            default, Name, Table, [{Name, Node} || Node <- Members], #{snapshot_every => ?EVERY}
        ])
     || {Name, _, Table} <- Clusters
    ],
    %% Until then `ra' may forget that it has a server, if the node is killed.
    timer:sleep(1500),
    Setting#{names => [Name || {Name, _, _} <- Clusters]}.

start_node(#{cluster := Cluster} = Setting, Node) ->
    _ = [ok = at(Setting, Node, load, [Code]) || #{fault := Code} <- [Setting]],
    ok = at(Setting, Node, start, [ats_cluster:directory(Cluster, Node)]).

restart(#{cluster := Cluster, names := Names} = Setting, Node) ->
    ok = ats_cluster:restart(Cluster, Node),
    start_node(Setting, Node),
    ok = at(Setting, Node, restart, [Names]).

leader(#{members := Members} = Setting, Name) ->
    Servers = [{Name, Node} || Node <- Members],
    {ok, _, {Name, Leader}} = ask(Setting, ra, members, [Servers]),
    Leader.

%% Waits until all members have the same objects, and returns them. Otherwise raises the index that
%% each has applied, what each knows of the others, and keys that differ.
settled(#{members := Members} = Setting, Name) ->
    Get = fun() -> [at(Setting, Node, contents, [Name]) || Node <- Members] end,
    AreEqual = fun() ->
        %% Waits until all logged commands are applied.
        _ = leader(Setting, Name),
        length(lists:usort(Get())) =:= 1
    end,
    try ats_cluster:wait_until(AreEqual, maps:get(settle_ms, Setting, ?SETTLE_MS)) of
        ok -> hd(Get())
    catch
        error:{not_within_ms, _} = Reason ->
            Applied = [
                {Node, applied(Setting, {Name, Node}), member(Setting, {Name, Node})}
             || Node <- Members
            ],
            Different = differences(Get()),
            error({Reason, Name, Applied, length(Different), lists:sublist(Different, 20)})
    end.

%% Returns the index of the last entry that a member has applied.
applied(Setting, Server) ->
    {ok, {{Index, _Term}, _}, _} = ask(Setting, ra, local_query, [Server, fun erlang:is_map/1]),
    Index.

%% Returns the state of a member, and how far it believes the others to be.
member(#{cluster := Cluster} = Setting, {_, Node} = Server) ->
    {ok, Overview, _} = ask(Setting, ra, member_overview, [Server]),
    Sent = maps:with([current_term, leader_id, last_applied, commit_index, cluster], Overview),
    {ats_cluster:call(Cluster, Node, ets, lookup, [ra_state, element(1, Server)]), Sent}.

%% Returns the keys that members have different objects of, with those.
differences(Contents) ->
    Keys = lists:usort(lists:append([maps:keys(Content) || Content <- Contents])),
    All = [{Key, [maps:get(Key, Content, none) || Content <- Contents]} || Key <- Keys],
    [{Key, Objects} || {Key, Objects} <- All, length(lists:usort(Objects)) > 1].

%% ----- cases -----

%% The lines of the page `docs/use/raft.md' about three nodes.
the_page(Config) ->
    #{cluster := Cluster, members := [First | _] = Members} = setting(Config),
    {ok, Page} = file:read_file(os:getenv("ATS_RA_PAGE")),
    [_, Behind] = binary:split(Page, <<"```erlang\n">>),
    [Lines, _] = binary:split(Behind, <<"```">>),
    Directory = filename:join(proplists:get_value(priv_dir, Config), "page"),
    Text = lists:foldl(
        fun({Written, Meant}, Before) ->
            [Left, Right] = binary:split(Before, list_to_binary(Written)),
            iolist_to_binary([Left, io_lib:format("~0p", [Meant]), Right])
        end,
        Lines,
        [{"['a@one', 'b@two', 'c@three']", Members}, {"\"/var/lib/ra\"", Directory}]
    ),
    ok = ats_cluster:call(Cluster, First, ats_ra_node, run, [binary_to_list(Text)]).

calls_of_all_nodes(Config) ->
    #{members := [A, B, C] = Members} = Setting = start(setting(Config)),
    %% All have the same code, also where a part of `ra' stands in for another.
    Code = [at(Setting, Node, code, [ra_server]) || Node <- Members],
    ?assertEqual([code:which(ra_server)], lists:usort(Code)),
    [
        begin
            [command(Setting, {Name, Node}, {insert, {Node, 1}}) || Node <- Members],
            {ok, [{C, 1}]} = ask(Setting, ats_ra, read, [consistent, {Name, A}, lookup, [C]]),
            {ok, [{C, 1}]} = ask(Setting, ats_ra, read, [leader, {Name, B}, lookup, [C]]),
            {error, {badarg, _}} =
                ask(Setting, ats_ra, command, [{Name, A}, [{delete, A}, {insert, none}]]),
            Expected = maps:from_list([{Node, [{Node, 1}]} || Node <- Members]),
            ?assertEqual(Expected, settled(Setting, Name))
        end
     || {Name, _, _} <- ?CLUSTERS
    ].

%% A member is away while the others take snapshots and delete the entries of the log that it would
%% need.
a_member_that_was_away(Config) ->
    check_away(start(setting(Config))).

check_away(#{cluster := Cluster, members := [A, B, C], names := Names} = Setting) ->
    [
        [command(Setting, {Name, A}, {insert, {N, N}}) || N <- lists:seq(1, 100)]
     || Name <- Names
    ],
    ok = ats_cluster:kill(Cluster, C),
    [
        [command(Setting, {Name, A}, {insert, {{N, 2}, N}}) || N <- lists:seq(1, 2 * ?EVERY + 1)] ++
        [command(Setting, {Name, B}, {delete, N}) || N <- lists:seq(50, 60)]
     || Name <- Names
    ],
    ok = restart(Setting, C),
    [
        ?assertEqual(100 - 11 + 2 * ?EVERY + 1, maps:size(settled(Setting, Name)), Name)
     || Name <- Names
    ],
    [true = has_snapshot(Setting, C, Name) || Name <- Names].

%% Checks that the member has got the snapshot of another one.
has_snapshot(#{cluster := Cluster}, Node, Name) ->
    #{counters := #{{Name, Node} := #{snapshot_installed := Installed}}} =
        ats_cluster:call(Cluster, Node, ra, overview, []),
    Installed > 0.

%% A member loses its files, and another one takes its place.
a_member_that_lost_all(Config) ->
    #{cluster := Cluster, members := [A, _, C] = Members, names := Names} =
        Setting = start(setting(Config)),
    [
        [command(Setting, {Name, A}, {insert, {N, N}}) || N <- lists:seq(1, 3 * ?EVERY)]
     || Name <- Names
    ],
    ok = ats_cluster:kill(Cluster, C),
    ok = file:del_dir_r(ats_cluster:directory(Cluster, C)),
    ok = filelib:ensure_path(ats_cluster:directory(Cluster, C)),
    [{ok, _, _} = ask(Setting, ra, remove_member, [{Name, A}, {Name, C}]) || Name <- Names],
    ok = ats_cluster:restart(Cluster, C),
    start_node(Setting, C),
    ok = ats_cluster:connect(Cluster),
    [
        begin
            Machine = ats_ra:machine(Table, #{snapshot_every => ?EVERY}),
            {ok, _, _} = ask(Setting, ra, add_member, [{Name, A}, {Name, C}]),
            Others = [{Name, Node} || Node <- Members, Node =/= C],
            ok = ats_cluster:call(
                Cluster, C, ra, start_server, [default, Name, {Name, C}, Machine, Others]
            )
        end
     || {Name, _, Table} <- ?CLUSTERS
    ],
    [?assertEqual(3 * ?EVERY, maps:size(settled(Setting, Name))) || Name <- Names],
    [true = has_snapshot(Setting, C, Name) || Name <- Names].

%% Checks that answered commands are applied once after all nodes were killed.
all_nodes_are_killed(Config) ->
    check_all_killed(start(setting(Config))).

check_all_killed(#{cluster := Cluster, members := Members, names := Names} = Setting) ->
    Singles = [Name || {Name, single, _} <- ?CLUSTERS, lists:member(Name, Names)],
    lists:foreach(
        fun(Round) ->
            [
                command(Setting, {Name, hd(Members)}, {update_counter, counter, 1, {counter, 0}})
             || Name <- Singles, _ <- lists:seq(1, 50)
            ],
            [
                command(Setting, {Name, hd(Members)}, {insert, {Round, N}})
             || Name <- Names -- Singles, N <- lists:seq(1, 50)
            ],
            [ok = ats_cluster:kill(Cluster, Node) || Node <- Members],
            [ok = restart(Setting, Node) || Node <- Members],
            ok = ats_cluster:connect(Cluster),
            [
                ?assertEqual(#{counter => [{counter, Round * 50}]}, settled(Setting, Name), Name)
             || Name <- Singles
            ],
            [
                ?assertEqual(Inserted, settled(Setting, Name), Name)
             || Inserted <- [
                    maps:from_list([
                        {R, [{R, N} || N <- lists:seq(1, 50)]}
                     || R <- lists:seq(1, Round)
                    ])
                ],
                Name <- Names -- Singles
            ]
        end,
        lists:seq(1, 3)
    ).

%% ----- rounds of faults -----

kill_rounds(Config) ->
    rounds(Config, fun(#{cluster := Cluster} = Setting, Node) ->
        ok = ats_cluster:kill(Cluster, Node),
        timer:sleep(2000),
        ok = restart(Setting, Node)
    end).

stop_rounds(Config) ->
    rounds(Config, fun(#{cluster := Cluster}, Node) ->
        ok = ats_cluster:suspend(Cluster, Node),
        %% Others take its place, or it comes back before.
        timer:sleep(lists:nth(rand:uniform(2), [1000, 6000])),
        ok = ats_cluster:resume(Cluster, Node)
    end).

%% The clients reach all nodes, also the leader that is alone.
partition_rounds(Config) ->
    rounds(Config, fun(#{cluster := Cluster, members := Members}, Node) ->
        ok = ats_cluster:cut(Cluster, [{Node, Other} || Other <- Members, Other =/= Node]),
        timer:sleep(3500),
        ok = ats_cluster:heal(Cluster)
    end).

%% Clients work while the leader of a cluster, or another member, has a fault.
rounds(Config, Fault) ->
    Setting = start(setting(Config)),
    ok = begin_histories(Setting),
    lists:foreach(
        fun(Round) ->
            Name = lists:nth(1 + Round rem 4, [ats_single, dats_single, ats_several, dats_several]),
            Leader = leader(Setting, Name),
            #{members := Members, cluster := Cluster} = Setting,
            Node = case Round rem 3 of
                0 -> hd(Members -- [Leader]);
                _ -> Leader
            end,
            Fault(Setting, Node),
            ok = ats_cluster:connect(Cluster),
            timer:sleep(500)
        end,
        lists:seq(1, rounds())
    ),
    ?assertEqual([], end_histories(Setting)).

begin_histories(#{members := Members} = Setting) ->
    Clusters = [{Name, Kind} || {Name, Kind, _} <- ?CLUSTERS],
    ask(Setting, ats_ra_node, start_clients, [Clusters, Members]).

%% Returns the events that cannot be explained. At the end all members have the same objects, with
%% those of the last commands.
end_histories(#{names := Names} = Setting) ->
    Events = ask(Setting, ats_ra_node, stop_clients, []),
    _ = [settled(Setting, Name) || Name <- Names],
    Known = length([known || #{outcome := {ok, _}} <- Events]),
    ct:pal("~b operations, ~b of unknown outcome", [length(Events), length(Events) - Known]),
    ?assert(Known > 100),
    ats_history:check(
        fun({_, Family, _}, History) -> ats_history:model(model(Family), History) end, Events
    ).

model(bank) -> {bank, #{a => 100, b => 100, c => 100}};
model(Family) -> Family.

%% ----- faults of ours -----

early_snapshots_are_found(Config) ->
    is_found(early_snapshot, setting(Config), fun check_away/1).

old_tables_are_found(Config) ->
    is_found(old_table, setting(Config), fun check_all_killed/1).

%% A check fails on nodes with a fault.
is_found(Fault, Setting, Check) ->
    Faulty = Setting#{fault => ats_ra_faults:code(Fault), settle_ms => 10000},
    try Check(start(Faulty)) of
        _ -> ct:fail({not_found, Fault})
    catch
        error:Reason -> ct:log("~p is found: ~P", [Fault, Reason, 100])
    end.

%% The member is with the clients. A member that is alone misses later writes of the others, and
%% clients read there, too.
stale_reads_are_found(Config) ->
    #{client := Client, cluster := Cluster, members := Members} = Setting = start(setting(Config)),
    [Alone | _] = Members -- [leader(Setting, ats_single)],
    ok = at(Setting, Client, load, [ats_ra_faults:code(stale_reads)]),
    ok = begin_histories(Setting),
    timer:sleep(1000),
    ok = ats_cluster:cut(Cluster, [{Alone, Other} || Other <- Members, Other =/= Alone]),
    timer:sleep(3000),
    ok = ats_cluster:heal(Cluster),
    ok = ats_cluster:connect(Cluster),
    timer:sleep(500),
    ?assertMatch([{_, [_ | _]} | _], end_histories(Setting)).

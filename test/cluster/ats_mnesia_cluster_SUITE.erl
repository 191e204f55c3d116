%% Three nodes with tables in mnesia, under faults, while all of them write: mnesia's promise for
%% `{majority, true}' and `sync_transaction' holds for our types. Its own types go through the same
%% rounds at the same time; their losses are mnesia's, and are only reported.
%%
%% ATS_CLUSTER_ROUNDS says how many rounds of each kind there are: 5 by default.
-module(ats_mnesia_cluster_SUITE).

-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0, init_per_suite/1, end_per_suite/1]).
-export([nothing_is_lost_while_a_majority_lives/1, nothing_synced_is_lost_when_all_die/1]).
-export([transactions_of_a_single_node_are_whole/1, values_read_before_a_stop_are_not_written/1]).
-export([planted_faults_are_found/1, examples_of_the_page/1]).
-export([evaluate/2]).

%% Nodes connect again only if they are told to: see values_read_before_a_stop_are_not_written/1.
-define(CONNECT_ONCE, ["-kernel", "dist_auto_connect", "once"]).
%% Rounds without a fault, of cases that look for faults too.
-define(SOUND_ROUNDS, 3).
%% The number of rounds in which an injected fault must be found. Most are found in the first one.
-define(FAULT_ROUNDS, 30).

suite() -> [{timetrap, {minutes, 15 + rounds()}}].

all() ->
    [nothing_is_lost_while_a_majority_lives, nothing_synced_is_lost_when_all_die,
     transactions_of_a_single_node_are_whole, values_read_before_a_stop_are_not_written,
     planted_faults_are_found, examples_of_the_page].

rounds() -> list_to_integer(os:getenv("ATS_CLUSTER_ROUNDS", "5")).

init_per_suite(Config) ->
    case code:which(mnesia) of
        non_existing -> {skip, "mnesia is not installed"};
        _ -> Config
    end.

end_per_suite(_) ->
    ok.

nothing_is_lost_while_a_majority_lives(Config) ->
    check(Config, 3, [kill, restart, suspend, partition], [family(ours, all), family(own, all)]).

nothing_synced_is_lost_when_all_die(Config) ->
    check(Config, 3, [kill_all], [family(ours, kept), family(own, kept)]).

%% Only the killed node has its data.
transactions_of_a_single_node_are_whole(Config) ->
    check(Config, 1, [kill_all], [family(ours, kept), family(own, kept)]).

%% Rounds of these kinds on `Nodes' nodes, in any order.
check(Config, Nodes, Kinds, Families) ->
    Setting = ats_mnesia_rounds:start(
        Nodes, directory(Config), Families, ats_mnesia:types(), ?CONNECT_ONCE
    ),
    Rounds = shuffle([Kind || Kind <- Kinds, _ <- lists:seq(1, rounds())]),
    {Ours, Others} = run(Rounds, Setting, {[], []}),
    Acknowledged = ats_mnesia_rounds:acknowledged(Setting),
    ok = ats_mnesia_rounds:stop(Setting),
    ?assertEqual([], Ours),
    ok = file:del_dir_r(directory(Config)),
    {comment, io_lib:format("~b rounds; acknowledged: ~0p; wrong in mnesia's own types: ~s",
                            [length(Rounds), Acknowledged, describe(Others)])}.

%% Returns the violations of our tables, and of mnesia's own, each after the first round with a
%% violation.
run([], _, Wrong) ->
    Wrong;
run([Kind | Rounds], Setting, {[], Others}) ->
    Wrong = ats_mnesia_rounds:round(Kind, Setting),
    ct:log("~s, ~b rounds are left; wrong: ~0P", [Kind, length(Rounds), Wrong, 100]),
    {Own, Ours} = lists:partition(fun({Family, _}) -> Family =:= own end, Wrong),
    First = [{Kind, Own} || Own =/= [], Others =:= []],
    run(Rounds, Setting, {[{Kind, W} || W <- Ours], First ++ Others});
run(_, _, Wrong) ->
    Wrong.

describe([]) -> "nothing";
describe([{Kind, Wrong} | _]) -> io_lib:format("~s, ~0p", [Kind, lists:sublist(Wrong, 3)]).

%% A node that was given up, and wakes, goes on with its transactions until mnesia knows there that
%% the others are gone. If its messages make a new connection, mnesia on the others takes part, with
%% the values that the node read before it was stopped and without its locks: with mnesia's own
%% tables alone amounts come and go. Nodes that connect by themselves only once take no part.
values_read_before_a_stop_are_not_written(Config) ->
    Own = [{ram_set, ram_copies, set}, {disc_set, disc_copies, set}],
    Ours = [{Alias, Alias, set} || {Alias, _} <- ats_mnesia:types()],
    ?assertEqual([], wake_slowly(Config, once, Own ++ Ours, ?CONNECT_ONCE, ?SOUND_ROUNDS)),
    ?assertMatch([_ | _], wake_slowly(Config, always, Own, [], ?FAULT_ROUNDS)).

wake_slowly(Config, Name, Tables, Arguments, Rounds) ->
    Setting = ats_mnesia_rounds:start(
        3, filename:join(directory(Config), Name), [{mixed, Tables}], ats_mnesia:types(), Arguments
    ),
    find(Name, wake_slowly, Rounds, Setting).

%% Each fault is found, and the module that plants them has no other.
planted_faults_are_found(Config) ->
    ?assertEqual([], find(Config, none, ?SOUND_ROUNDS)),
    Faults = ats_faulty_backend:faults(),
    ?assertEqual([], [Fault || Fault <- Faults, find(Config, Fault, ?FAULT_ROUNDS) =:= []]).

find(Config, Fault, Rounds) ->
    Directory = filename:join(directory(Config), Fault),
    Setting = ats_mnesia_rounds:start(
        3, Directory, [family(ours, all)], ats_faulty_backend:types(),
        ?CONNECT_ONCE ++ ats_faulty_backend:arguments(Fault)
    ),
    find(Fault, kill, Rounds, Setting).

%% Returns the violations after the first round of this kind that has one; then all is stopped.
find(Name, Kind, Rounds, Setting) ->
    Wrong = first_wrong(Kind, Rounds, Setting),
    ok = ats_mnesia_rounds:stop(Setting),
    ct:pal("~s: ~0P", [Name, Wrong, 50]),
    Wrong.

first_wrong(_, 0, _) ->
    [];
first_wrong(Kind, Rounds, Setting) ->
    %% Writers do not go on if the object that a fault has lost is an account.
    try ats_mnesia_rounds:round(Kind, Setting) of
        [] -> first_wrong(Kind, Rounds - 1, Setting);
        Wrong -> ct:log("found; ~b rounds are left", [Rounds - 1]), Wrong
    catch
        error:{stuck, _, _} = Stuck -> [Stuck]
    end.

%% The examples of `docs/use/more-than-one-machine.md' run as they stand there, but for the names of
%% the nodes. The third one has died when it is replaced.
examples_of_the_page(Config) ->
    Examples = ats_page_blocks:blocks("docs/use/more-than-one-machine.md", "erlang"),
    ?assert(length(Examples) >= 6),
    {Cluster, [First, _, Third, _] = Nodes} = ats_cluster:start(
        4, #{directory => directory(Config)}
    ),
    [
        ok = ats_cluster:call(Cluster, Node, ats_mnesia_node, configure,
                              [ats_cluster:directory(Cluster, Node)])
     || Node <- Nodes
    ],
    lists:foldl(
        fun(Example, Bindings) ->
            string:find(Example, "del_table_copy(schema") =:= nomatch orelse
                ats_cluster:kill(Cluster, Third),
            Local = with_nodes(string:replace(Example, "/tmp", directory(Config), all), Nodes),
            ats_cluster:call(Cluster, First, ?MODULE, evaluate, [lists:flatten(Local), Bindings])
        end,
        erl_eval:new_bindings(),
        Examples
    ),
    ok = ats_cluster:stop(Cluster).

with_nodes(Example, Nodes) ->
    lists:foldl(
        fun({Name, Node}, Text) ->
            string:replace(lists:flatten(Text), Name, io_lib:format("~p", [Node]), all)
        end,
        Example,
        lists:zip(["'a@one'", "'b@two'", "'c@three'", "'d@four'"], Nodes)
    ).

evaluate(Example, Bindings) ->
    {ok, Tokens, _} = erl_scan:string(Example),
    {ok, Expressions} = erl_parse:parse_exprs(Tokens),
    {value, _, After} = erl_eval:exprs(Expressions, Bindings),
    After.

%% ----- tables -----

family(Name, Which) ->
    {Name, [
        {list_to_atom(lists:concat([Storage, "_", Type])), Storage, Type}
     || {Storage, Types} <- storages(Name),
        Which =:= all orelse not lists:member(Storage, [ram_copies, ats_ram]),
        Type <- Types
    ]}.

storages(ours) ->
    [{Alias, [set, ordered_set, bag]} || {Alias, _} <- ats_mnesia:types()];
storages(own) ->
    [{ram_copies, [set, ordered_set, bag]},
     {disc_copies, [set, ordered_set, bag]},
     {disc_only_copies, [set, bag]}].

directory(Config) ->
    filename:join(proplists:get_value(priv_dir, Config), "nodes").

shuffle(List) ->
    [Item || {_, Item} <- lists:sort([{rand:uniform(), Item} || Item <- List])].

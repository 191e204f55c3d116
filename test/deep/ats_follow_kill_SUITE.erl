%% Programs that follow tables of another node, which is killed, or cut off, again and again.
%%
%% In each of its lives the program has an exact copy of the table, and after each nothing of it is
%% left on the node of the table. ATS_FOLLOW_ROUNDS says how often its node is killed: 10 times by
%% default.
%%
%% The last case has a receiver that sleeps beside two writers for so many seconds as
%% ATS_FOLLOW_SLEEP says: 2 by default, a 30th part of a minute.
-module(ats_follow_kill_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-import(ats_follow_lib, [followers/0, snapshots/1, length_of/1]).
-import(ats_follow_lib, [empty/0, applied/2, objects/1, until_equal/4]).

-export([all/0, suite/0, init_per_suite/1, end_per_suite/1]).
-export([init_per_testcase/2, end_per_testcase/2]).
-export([killed_nodes/1, lost_connections/1, receivers_that_sleep/1]).
-export([copy/2]).

-define(KEYS, 500).

suite() -> [{timetrap, {minutes, 15 + rounds()}}].

all() -> [killed_nodes, lost_connections, receivers_that_sleep].

rounds() -> list_to_integer(os:getenv("ATS_FOLLOW_ROUNDS", "10")).

sleep_seconds() -> list_to_integer(os:getenv("ATS_FOLLOW_SLEEP", "2")).

init_per_suite(Config) ->
    {ok, Started} = application:ensure_all_started(ats),
    _ = os:cmd("epmd -daemon"),
    ats_test_lib:until(fun() -> element(1, erl_epmd:names()) =:= ok end, 10000),
    {ok, _} = net_kernel:start([list_to_atom(name()), shortnames]),
    [{started, Started} | Config].

end_per_suite(Config) ->
    ok = net_kernel:stop(),
    [application:stop(Application) || Application <- ?config(started, Config)].

init_per_testcase(Case, Config) ->
    ats_disk_lib:begin_case(Case, Config).

end_per_testcase(_Case, _Config) ->
    ats_disk_lib:end_case(),
    ats_test_lib:until(fun() -> followers() =:= [] end, 10000).

name() -> "ats_follow_kill_" ++ os:getpid().

start_peer() ->
    {ok, Peer, _} = ats_test_lib:start_vm(["-sname", name() ++ "_peer"]),
    {Peer, ats_test_lib:call(Peer, erlang, node, [])}.

%% A table in memory and one on disk, of which the second writes its memory to files often.
tables(Config) ->
    Memory = ats:new(followed, [set, public]),
    Disk = ats_disk_lib:open(Config, followed, [{type, ordered_set}, {memory, 1 bsl 17}]),
    [{ats, Memory}, {dats, Disk}].

list({Module, Table}) -> Module:tab2list(Table).

of_lib({ats, Table}) -> Table;
of_lib(Table) -> Table.

%% ----- writers -----

%% Writes to tables until it is told to pause, and again when it is told to go on.
write(Tables, N) ->
    [begin
         K = rand:uniform(?KEYS),
         _ = case N rem 10 of
                 0 -> Module:delete(Table, K);
                 1 -> Module:insert(Table, [{M, N} || M <- lists:seq(K, K + 20)]);
                 _ -> Module:insert(Table, {K, N, lists:seq(1, N rem 50)})
             end
     end || {Module, Table} <- Tables],
    receive
        {pause, From} ->
            From ! {paused, self()},
            receive go_on -> write(Tables, N + 1) end
    after 0 ->
        write(Tables, N + 1)
    end.

paused(Writers, Do) ->
    [Writer ! {pause, self()} || Writer <- Writers],
    [receive {paused, Writer} -> ok end || Writer <- Writers],
    Answer = Do(),
    [Writer ! go_on || Writer <- Writers],
    Answer.

%% ----- the program that follows, on the other node -----

%% Keeps a copy of a table of the test's node, and begins anew when the connection is lost.
copy({Module, Table} = Of, Test) ->
    true = monitor_node(node(Test), true),
    Options = #{snapshot => true, every => 5, to => self()},
    {ok, Ref} = erpc:call(node(Test), Module, follow, [Table, Options]),
    Test ! {following, self()},
    copy(Of, Test, Ref, 1, empty()).

copy({_, _} = Of, Test, Ref, Seq, Copy) ->
    receive
        {ats_changes, Ref, Seq, {part, Changes}} ->
            copy(Of, Test, Ref, Seq, applied(Changes, Copy));
        {ats_changes, Ref, Seq, lost} ->
            copy(Of, Test, Ref, Seq + 1, empty());
        {ats_changes, Ref, Seq, Changes} when is_list(Changes) ->
            copy(Of, Test, Ref, Seq + 1, applied(Changes, Copy));
        {objects, From} ->
            From ! {objects, self(), objects(Copy)},
            copy(Of, Test, Ref, Seq, Copy);
        {nodedown, Node} when Node =:= node(Test) ->
            copy(Of, Test)
    end.

follow_all(Node, Tables) ->
    Self = self(),
    Receivers = [{Of, spawn(Node, ?MODULE, copy, [Of, Self])} || Of <- Tables],
    [await_following(Receiver) || {_, Receiver} <- Receivers],
    Receivers.

await_following(Receiver) ->
    receive {following, Receiver} -> ok
    after 60000 -> error({not_following, Receiver})
    end.

%% Waits until the copies equal the tables, while nobody writes.
are_equal(Receivers) ->
    [ats_test_lib:until(fun() -> copied(Receiver) =:= lists:sort(list(Of)) end, 60000)
     || {Of, Receiver} <- Receivers].

copied(Receiver) ->
    Receiver ! {objects, self()},
    receive {objects, Receiver, Objects} -> Objects
    after 60000 -> error({no_answer, Receiver})
    end.

%% Nothing is left on this node: no process, no moment, and nothing that is kept for one.
nothing_is_left(Tables) ->
    ats_test_lib:until(fun() -> followers() =:= [] end, 60000),
    [begin
         ats_test_lib:until(fun() -> snapshots(of_lib(Of)) =:= 0 end, 60000),
         Held = fun() -> maps:get(memory, Module:info(Table, snapshots)) end,
         ats_test_lib:until(fun() -> Held() =:= 0 end, 60000)
     end || {Module, Table} = Of <- Tables].

killed_nodes(Config) ->
    Tables = tables(Config),
    Writers = [spawn_link(fun() -> write(Tables, 1) end) || _ <- [a, b]],
    Round = fun(_) ->
                    {Peer, Node} = start_peer(),
                    Kill = ats_test_lib:killer_of(Peer),
                    Receivers = follow_all(Node, Tables),
                    ?assertEqual(2, length(followers())),
                    paused(Writers, fun() -> are_equal(Receivers) end),
                    receive after rand:uniform(100) -> ok end,
                    ok = Kill(),
                    paused(Writers, fun() -> nothing_is_left(Tables) end)
            end,
    %% The first rounds make what stays: code, atoms, and memory of tables.
    _ = [Round(N) || N <- [1, 2]],
    Before = paused(Writers, fun ats_test_lib:settled_memory/0),
    Processes = erlang:system_info(process_count),
    _ = [Round(N) || N <- lists:seq(3, rounds())],
    paused(Writers,
           fun() ->
                   ok = ats_test_lib:assert_memory_returns(Before, 1.5),
                   ats_test_lib:until(fun() -> erlang:system_info(process_count) =< Processes end,
                                      60000)
           end),
    [ats_test_lib:kill(Writer) || Writer <- Writers, unlink(Writer)],
    {comment, io_lib:format("~b rounds", [rounds()])}.

%% A program that lives on is told nothing when the connection is lost, and monitors the node. Its
%% process here ends.
lost_connections(Config) ->
    Tables = tables(Config),
    {Peer, Node} = start_peer(),
    Receivers = follow_all(Node, Tables),
    [begin
         Before = followers(),
         ?assertEqual(2, length(Before)),
         [Module:insert(Table, {N, Round}) || {Module, Table} <- Tables, N <- lists:seq(1, 50)],
         are_equal(Receivers),
         true = erlang:disconnect_node(Node),
         [begin
              Monitor = monitor(process, Pid),
              receive {'DOWN', Monitor, process, Pid, _} -> ok
              after 60000 -> error({not_ended, Pid})
              end
          end || Pid <- Before],
         [await_following(Receiver) || {_, Receiver} <- Receivers],
         are_equal(Receivers),
         [?assertEqual(1, snapshots(of_lib(Of))) || Of <- Tables]
     end || Round <- [1, 2, 3]],
    ats_test_lib:stop_vm(Peer),
    nothing_is_left(Tables).

%% ----- memory -----

%% The queue of a receiver that sleeps, and the old versions that are kept for it, stay small for
%% any time: there is one old version of each key at most.
receivers_that_sleep(Config) ->
    Tables = tables(Config),
    [Module:insert(Table, [{K, 0} || K <- lists:seq(1, ?KEYS + 20)]) || {Module, Table} <- Tables],
    Self = self(),
    Options = #{snapshot => true, every => 1, max_queue => 5},
    Receivers =
        [begin
             Receiver = spawn_link(fun() ->
                                           {ok, Ref} = Module:follow(Table, Options),
                                           Self ! {following, self()},
                                           receive go -> ok end,
                                           _ = until_equal(Ref, of_lib(Of), 1, empty()),
                                           _ = Module:unfollow(Ref),
                                           Self ! {done, self()}
                                   end),
             await_following(Receiver),
             {Of, Receiver}
         end || {Module, Table} = Of <- Tables],
    Writers = [spawn_link(fun() -> write(Tables, 1) end) || _ <- [a, b]],
    End = erlang:monotonic_time(millisecond) + 1000 * sleep_seconds(),
    Figures = watch(Receivers, End, #{}),
    [Writer ! {pause, self()} || Writer <- Writers],
    [receive {paused, Writer} -> ok end || Writer <- Writers],
    [Receiver ! go || {_, Receiver} <- Receivers],
    [receive {done, Receiver} -> ok after 60000 -> error({not_done, Receiver}) end
     || {_, Receiver} <- Receivers],
    nothing_is_left(Tables),
    ct:pal("~b s: ~0p", [sleep_seconds(), Figures]),
    {comment, io_lib:format("~b s: ~0p", [sleep_seconds(), Figures])}.

%% Returns the most of each table: messages in the queue of its receiver, bytes of the
%% receiver, and bytes that are held back for its snapshot.
watch(Receivers, End, Figures) ->
    More = lists:foldl(fun watch_one/2, Figures, Receivers),
    receive after 50 -> ok end,
    case erlang:monotonic_time(millisecond) < End of
        true -> watch(Receivers, End, More);
        false -> More
    end.

watch_one({{Module, Table}, Receiver}, Figures) ->
    #{memory := Held, number := Number} = Module:info(Table, snapshots),
    {memory, Memory} = process_info(Receiver, memory),
    Now = {length_of(Receiver), Memory, Held},
    ?assert(Number =< 2),
    ?assert(element(1, Now) =< 6),
    ?assertEqual({Module, Memory, true}, {Module, Memory, Memory < 4_000_000}),
    %% A table on disk keeps the memory with the last moment until that is told.
    ?assertEqual({Module, Held, true}, {Module, Held, Held < 4_000_000}),
    Most = fun({A, B, C}) -> {max(A, element(1, Now)), max(B, Memory), max(C, Held)} end,
    maps:update_with(Module, Most, Now, Figures).

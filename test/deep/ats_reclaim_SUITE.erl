%% Memory that a table does not need any longer is given back soon, also if no process does anything
%% afterwards and nothing asks for it: targets of references in deleted and replaced objects,
%% objects that lists on dirty schedulers have replaced, and terms that an operation has looked at
%% and not stored.
%%
%% All of it comes back within 100 ms. The computer that runs the tests may have other work, so the
%% tests wait for a few seconds; without its being collected it would stay for ever.
-module(ats_reclaim_SUITE).

-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0]).
-export([kept_nodes/1]).
-export([
    deleted_objects/1,
    replaced_objects/1,
    garbage_beside_busy_processes/1,
    lists_on_dirty_schedulers/1,
    arrays_of_counters/1,
    objects_not_stored/1,
    nodes_of_specifications/1,
    binaries_of_specifications/1,
    large_results/1
]).

-define(TYPES, [set, ordered_set, bag, duplicate_bag]).
-define(MEGABYTE, 1000000).
%% A limit far above the tested times, which take a fiftieth of it.
-define(PATIENCE_MS, 5000).

suite() -> [{timetrap, {minutes, 15}}].

all() ->
    [
        lists_on_dirty_schedulers,
        deleted_objects,
        replaced_objects,
        garbage_beside_busy_processes,
        arrays_of_counters,
        objects_not_stored,
        nodes_of_specifications,
        binaries_of_specifications,
        large_results
    ].

%% ----- objects that go -----

deleted_objects(_) ->
    [
        begin
            T = ats:new(reclaim, [Type, public]),
            Before = binaries(),
            apart(fun() -> [ats:insert(T, {N, binary(1)}) || N <- lists:seq(1, 100)] end),
            ?assert(binaries() >= Before + 95 * ?MEGABYTE),
            apart(fun() -> [Delete(T, N) || N <- lists:seq(1, 100)] end),
            assert_binaries_return({Type, What}, Before),
            ats:delete(T)
        end
     || Type <- ?TYPES,
        {What, Delete} <- [
            {delete, fun ats:delete/2},
            {take, fun ats:take/2},
            {match_delete, fun(T, N) -> ats:match_delete(T, {N, '_'}) end}
        ]
    ],
    ok.

%% Little more than the last few objects is kept, even during the writes.
replaced_objects(_) ->
    [
        begin
            T = ats:new(reclaim, [Type, public]),
            Before = binaries(),
            apart(fun() ->
                Most = lists:max([
                    begin
                        true = ats:insert(T, {key, binary(1)}),
                        erlang:garbage_collect(),
                        erlang:memory(binary) - Before
                    end
                 || _ <- lists:seq(1, 400)
                ]),
                ?assert(Most < 100 * ?MEGABYTE, {Type, Most})
            end),
            true = ats:delete(T, key),
            assert_binaries_return(Type, Before),
            ats:delete(T)
        end
     || Type <- [set, ordered_set]
    ],
    ok.

%% Busy writers neither free the garbage of a process, nor do they keep it.
garbage_beside_busy_processes(_) ->
    Busy = ats:new(busy, [public]),
    Writers = [spawn_link(fun() -> write(Busy, N, 0) end) || N <- [1, 2]],
    T = ats:new(reclaim, [public]),
    Before = binaries(),
    apart(fun() -> [ats:insert(T, {N, binary(1)}) || N <- lists:seq(1, 100)] end),
    apart(fun() -> [ats:delete(T, N) || N <- lists:seq(1, 100)] end),
    assert_binaries_return(busy, Before),
    [
        begin
            unlink(Writer),
            exit(Writer, kill)
        end
     || Writer <- Writers
    ],
    ats:delete(T),
    ats:delete(Busy).

write(T, Writer, N) ->
    ats:insert(T, {{Writer, N rem 1000}, N}),
    write(T, Writer, N + 1).

%% Questions here come after the garbage was collected, and so find nothing.
lists_on_dirty_schedulers(_) ->
    [
        begin
            T = ats:new(reclaim, [Type, public]),
            [
                apart(fun() ->
                    ats:insert(T, [{N, Round, <<N:800>>} || N <- lists:seq(1, 50000)])
                end)
             || Round <- [1, 2]
            ],
            timer:sleep(?PATIENCE_MS div 2),
            ?assert(ats_nif:collect() < 100, Type),
            ats:delete(T)
        end
     || Type <- [set, ordered_set]
    ],
    ok.

%% The virtual machine does not tell how large they are.
arrays_of_counters(_) ->
    T = ats:new(reclaim, [public]),
    Before = all_memory(),
    apart(fun() -> [ats:insert(T, {N, counters:new(125000, [])}) || N <- lists:seq(1, 100)] end),
    ?assert(all_memory() >= Before + 95 * ?MEGABYTE),
    apart(fun() -> [ats:delete(T, N) || N <- lists:seq(1, 100)] end),
    %% The virtual machine itself needs more or less meanwhile.
    assert_returns(counters, fun all_memory/0, Before, 5 * ?MEGABYTE),
    ats:delete(T).

%% ----- objects that stay where they were -----

objects_not_stored(_) ->
    [
        begin
            T = ats:new(reclaim, [Type, public | Options]),
            true = ats:insert(T, {key, 1}),
            Before = binaries(),
            apart(fun() -> Operation(T, {key, Make()}) end),
            assert_binaries_return({Type, Options, What}, Before),
            ?assertEqual([{key, 1}], ats:lookup(T, key)),
            ats:delete(T)
        end
     || Type <- ?TYPES,
        Options <- [[], [compressed]],
        Make <- [fun() -> binary(50) end, fun() -> lists:seq(1, 3000000) end],
        {What, Operation} <- [
            {delete_object, fun ats:delete_object/2},
            {insert_new, fun ats:insert_new/2},
            {insert_new_list, fun(T, Object) -> ats:insert_new(T, [Object, {other, Object}]) end},
            {insert_bad, fun(T, Object) ->
                ats_test_lib:attempt(fun() -> ats:insert(T, [Object, not_an_object]) end)
            end},
            {lookup, fun ats:lookup/2},
            {update_element, fun(T, {_, New}) ->
                ats_test_lib:attempt(fun() -> ats:update_element(T, key, [{2, New}, {3, New}]) end)
            end},
            {update_counter, fun(T, Object) ->
                ats_test_lib:attempt(fun() -> ats:update_counter(T, other, {2, 1}, Object) end)
            end}
        ]
    ],
    ok.

%% Results that were taken out, or read, are not also kept by the thread that did it.
large_results(_) ->
    [
        begin
            Before = binaries(),
            T = ats:new(reclaim, [Type, public | Options]),
            apart(fun() -> ats:insert(T, {key, binary(50), binary(50)}) end),
            apart(fun() -> [{key, _, _}] = Read(T) end),
            true = ats:delete(T),
            assert_binaries_return({Type, Options, What}, Before)
        end
     || Type <- ?TYPES,
        Options <- [[], [compressed]],
        {What, Read} <- [
            {lookup, fun(T) -> ats:lookup(T, key) end},
            {take, fun(T) -> ats:take(T, key) end},
            {tab2list, fun ats:tab2list/1},
            {select, fun(T) -> ats:select(T, [{{key, '_', '$1'}, [{is_binary, '$1'}], ['$_']}]) end}
        ]
    ],
    ok.

%% ----- match specifications that each scheduler remembers -----

%% A pid of another node keeps the entry of the virtual machine about that node. The machine is one
%% of its own, for the node must be known to nobody else.
nodes_of_specifications(_) ->
    {ok, Peer, _} = ats_test_lib:start_vm(["+zdntgc", "0"]),
    try
        [
            ?assertEqual({What, []}, {What, ats_test_lib:call(Peer, ?MODULE, kept_nodes, [What])})
         || What <- [pid, port, reference, old_pid, old_reference]
        ]
    after
        ats_test_lib:stop_vm(Peer)
    end.

%% Returns the references to a node of which a specification has named something.
kept_nodes(What) ->
    Node = list_to_atom(atom_to_list(What) ++ "@away"),
    ok = logger:set_primary_config(level, error),
    _ = erts_debug:set_internal_state(available_internal_state, true),
    apart(fun() ->
        T = ats:new(reclaim, [ordered_set, public]),
        Identifier = binary_to_term(of_node(What, atom_to_binary(Node))),
        [[] = ats:select(T, spec(Identifier)) || _ <- [1, 2, 3]]
    end),
    Deadline = erlang:monotonic_time(millisecond) + ?PATIENCE_MS,
    kept_nodes(Node, Deadline).

spec(Constant) -> [{{Constant, '$1'}, [{'=/=', '$1', Constant}], ['$1']}].

kept_nodes(Node, Deadline) ->
    _ = [erlang:garbage_collect(Pid) || Pid <- processes()],
    {{node_references, Nodes}, _} = erts_debug:get_internal_state(node_and_dist_references),
    Kept = [{Count, Holders} || {{Known, _}, Count, Holders} <- Nodes, Known =:= Node, Count > 0],
    case Kept =:= [] orelse erlang:monotonic_time(millisecond) > Deadline of
        true ->
            Kept;
        false ->
            timer:sleep(20),
            kept_nodes(Node, Deadline)
    end.

%% Identifiers of a node in the external term format; old ones name no incarnation of their node.
of_node(What, Node) ->
    Name = <<119, (byte_size(Node)), Node/binary>>,
    Old = lists:prefix("old_", atom_to_list(What)),
    Creation = case Old of true -> 0; false -> 77 end,
    case What of
        port -> <<131, 89, Name/binary, 5:32, Creation:32>>;
        _ when What =:= pid; What =:= old_pid -> <<131, 88, Name/binary, 1:32, 2:32, Creation:32>>;
        _ -> <<131, 90, 3:16, Name/binary, Creation:32, 1:32, 2:32, 3:32>>
    end.

%% A small part of a large binary, which a specification has as a constant.
binaries_of_specifications(_) ->
    T = ats:new(reclaim, [ordered_set, public]),
    Before = binaries(),
    apart(fun() ->
        <<Part:100/binary, _/binary>> = binary(5),
        [[] = ats:select(T, spec(Part)) || _ <- [1, 2, 3]]
    end),
    assert_binaries_return(part, Before),
    ats:delete(T).

%% ----- memory -----

binary(Megabytes) -> binary:copy(<<1>>, Megabytes * ?MEGABYTE).

%% Runs something in a process that is gone afterwards, with all it had.
apart(Fun) ->
    {Pid, Monitor} = spawn_monitor(fun() ->
        _ = Fun(),
        ok
    end),
    receive
        {'DOWN', Monitor, process, Pid, Reason} -> ?assertEqual(normal, Reason)
    end.

binaries() ->
    erlang:garbage_collect(),
    erlang:memory(binary).

all_memory() ->
    erlang:garbage_collect(),
    erlang:memory(system).

%% Checks that no object is kept: they are of a megabyte at least. The next measurement begins with
%% none of them, too.
assert_binaries_return(What, Before) -> assert_returns(What, fun binaries/0, Before, ?MEGABYTE).

%% Checks that less than `Most' bytes are kept.
assert_returns(What, Measure, Before, Most) ->
    Deadline = erlang:monotonic_time(millisecond) + ?PATIENCE_MS,
    assert_returns(What, Measure, Before, Most, Deadline).

assert_returns(What, Measure, Before, Most, Deadline) ->
    case Measure() - Before of
        Kept when Kept < Most ->
            ok;
        Kept ->
            erlang:monotonic_time(millisecond) < Deadline orelse ct:fail({What, keeps, Kept}),
            timer:sleep(5),
            assert_returns(What, Measure, Before, Most, Deadline)
    end.

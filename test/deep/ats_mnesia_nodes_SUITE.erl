%% Mnesia on several nodes of this machine with tables of ats and dats.
-module(ats_mnesia_nodes_SUITE).

-include_lib("stdlib/include/assert.hrl").
-include("../support/ats_mnesia_lib.hrl").

-export([all/0, suite/0, init_per_testcase/2, end_per_testcase/2]).
-export([
    failed_writes_stop_mnesia/1,
    the_system_stops_under_writers/1,
    copies_of_other_nodes/1,
    copies_on_disk_are_loaded_first/1,
    a_node_without_disk_takes_nothing_away/1,
    a_broken_copy_leaves_the_old_one/1,
    selects_of_other_nodes/1,
    many_programs/1
]).

-import(ats_mnesia_lib, [on_nodes/3, call/2, call/4, directories/1]).
-import(ats_mnesia_lib, [aliases/0, definition/3, create/4]).
-import(ats_mnesia_lib, [object/1, objects/1, fill/2, transaction/1, contents/1, chunks/1,
                         wait/1]).

-define(WAIT, 30000).

suite() -> [{timetrap, {minutes, 15}}].

all() ->
    [
        failed_writes_stop_mnesia,
        the_system_stops_under_writers,
        copies_of_other_nodes,
        copies_on_disk_are_loaded_first,
        a_node_without_disk_takes_nothing_away,
        a_broken_copy_leaves_the_old_one,
        selects_of_other_nodes,
        many_programs
    ].

init_per_testcase(Case, Config) ->
    ats_mnesia_lib:begin_case(Case, Config).

end_per_testcase(_, _) ->
    ok.

%% Mnesia would go on without the object.
failed_writes_stop_mnesia(Config) ->
    on_nodes(Config, 1, fun([Node]) ->
        Before = call(Node, fun() ->
            create(t, dats_disc, set, []),
            fill(t, 10),
            ok = application:stop(ats),
            spawn(fun() -> mnesia:dirty_write(t, object(11)) end),
            mnesia:system_info(is_running)
        end),
        ?assertEqual(yes, Before),
        IsThere = fun() ->
            lists:keymember(mnesia, 1, call(Node, application, which_applications, []))
        end,
        ats_test_lib:until(fun() -> not IsThere() end, 30000),
        call(Node, fun() -> ok = application:start(ats), ok = mnesia:start(), wait([t]) end),
        ?assertEqual(objects(11), call(Node, ats_mnesia_lib, contents, [t]))
    end).

%% Applications stop one after the other, and processes that no application knows go on meanwhile.
the_system_stops_under_writers(Config) ->
    on_nodes(Config, 1, fun([{Cluster, Name} = Node]) ->
        call(Node, fun() ->
            [create(Table, Alias, set, [{index, [value]}])
             || {Table, Alias} <- [{t, dats_disc}, {u, ats_disc}]],
            ?assertMatch([{mnesia, _, _}, {ats, _, _} | _], application:which_applications())
        end),
        call(Node, fun() ->
            spawn(fun() ->
                {ok, File} = file:open(acknowledged(Config), [raw, append]),
                write_on(File, 1)
            end)
        end),
        timer:sleep(1000),
        call(Node, init, stop, []),
        ats_test_lib:until(fun() -> not ats_cluster:is_running(Cluster, Name) end, 60000),
        ok = ats_mnesia_lib:start(Node),
        call(Node, fun() ->
            wait([t, u]),
            {ok, Lines} = file:read_file(acknowledged(Config)),
            Count = length(binary:split(Lines, <<"\n">>, [global, trim])),
            ?assert(Count > 100),
            [?assertEqual(objects(Count), lists:sublist(contents(Table), Count))
             || Table <- [t, u]]
        end)
    end).

acknowledged(Config) ->
    filename:join(proplists:get_value(directory, Config), "acknowledged").

write_on(File, N) ->
    transaction(fun() -> [mnesia:write(Name, object(N), write) || Name <- [t, u]] end),
    ok = file:write(File, "x\n"),
    write_on(File, N + 1).

copies_of_other_nodes(Config) ->
    on_nodes(Config, 2, fun([{_, A} = First, {_, B} = Second]) ->
        Own = [ram_copies, disc_copies, disc_only_copies],
        Pairs = [{From, To} || From <- Own ++ aliases(), To <- Own ++ aliases(),
                               lists:member(From, aliases()) orelse lists:member(To, aliases())],
        [begin
             Definition = [{index, [value]} | definition(From, Type, [A])],
             ?assertEqual({atomic, ok}, call(First, mnesia, create_table, [t, Definition])),
             ok = call(First, ats_mnesia_lib, fill, [t, 5000]),
             ?assertEqual({atomic, ok}, call(First, mnesia, add_table_copy, [t, B, To])),
             ?assertEqual(objects(5000), call(Second, ats_mnesia_lib, contents, [t]), {From, To}),
             %% The second goes, misses some, and comes back.
             stopped = call(Second, mnesia, stop, []),
             ok = call(First, ats_mnesia_lib, fill, [t, 5100]),
             ok = call(First, mnesia, dirty_delete, [t, 17]),
             ok = call(Second, mnesia, start, []),
             ok = call(Second, mnesia, wait_for_tables, [[t], ?WAIT]),
             Expected = objects(5100) -- [object(17)],
             ?assertEqual(Expected, call(Second, ats_mnesia_lib, contents, [t]), {From, To}),
             stopped = call(First, mnesia, stop, []),
             ?assertEqual(Expected, call(Second, ats_mnesia_lib, contents, [t]), {From, To}),
             ok = call(First, mnesia, start, []),
             ok = call(First, mnesia, wait_for_tables, [[t], ?WAIT]),
             ?assertEqual(Expected, call(First, ats_mnesia_lib, contents, [t]), {From, To}),
             {atomic, ok} = call(First, mnesia, delete_table, [t]),
             [?assertEqual([], directories(Node)) || Node <- [First, Second]]
         end || {From, To} <- Pairs, Type <- [set]]
    end).

%% The node with the copy in memory stops last, so Mnesia takes it for the one that knows most.
copies_on_disk_are_loaded_first(Config) ->
    on_nodes(Config, 2, fun(Nodes) ->
        [begin
             create_on_both(InMemory, OnDisk, Type),
             stopped = call(OnDisk, mnesia, stop, []),
             stopped = call(InMemory, mnesia, stop, []),
             ok = call(InMemory, mnesia, start, []),
             ?assertEqual({timeout, [t]}, call(InMemory, mnesia, wait_for_tables, [[t], 500])),
             ok = call(OnDisk, mnesia, start, []),
             [begin
                  ok = call(Node, mnesia, wait_for_tables, [[t], ?WAIT]),
                  ?assertEqual(objects(10), call(Node, ats_mnesia_lib, contents, [t]))
              end || Node <- Nodes],
             [ats_test_lib:until(fun() ->
                  call(Node, mnesia, table_info, [t, master_nodes]) =:= []
              end, ?WAIT) || Node <- Nodes],
             {atomic, ok} = call(InMemory, mnesia, delete_table, [t])
         end || [InMemory, OnDisk] <- [Nodes, lists:reverse(Nodes)],
                Type <- [disc_copies, disc_only_copies, dats_disc, ats_disc]]
    end).

create_on_both({_, InMemory} = Node, {_, OnDisk}, Type) ->
    Definition = [{Type, [OnDisk]} | definition(ats_ram, set, [InMemory])],
    {atomic, ok} = call(Node, mnesia, create_table, [t, Definition]),
    ok = call(Node, ats_mnesia_lib, fill, [t, 10]),
    ok = call(Node, mnesia, sync_log, []).

%% A node without disk knows no table when it starts. If it would be the first to load one it stops.
a_node_without_disk_takes_nothing_away(Config) ->
    on_nodes(Config, 3, fun([OnDisk, First, Second] = Nodes) ->
        InMemory = [Name || {_, Name} <- [First, Second]],
        [{atomic, ok} = call(OnDisk, mnesia, change_table_copy_type, [schema, Name, ram_copies])
         || Name <- InMemory],
        {_, Name} = OnDisk,
        Definition = [{disc_copies, [Name]} | definition(ats_ram, set, InMemory)],
        {atomic, ok} = call(OnDisk, mnesia, create_table, [t, Definition]),
        ok = call(OnDisk, ats_mnesia_lib, fill, [t, 10]),
        [stopped = call(Node, mnesia, stop, []) || Node <- Nodes],
        [begin
             ok = call(Node, application, set_env,
                       [mnesia, schema, [{backend_types, ats_mnesia:types()}]]),
             ok = call(Node, mnesia, start, [])
         end || Node <- [First, Second]],
        {ok, _} = call(Second, mnesia, change_config, [extra_db_nodes, [hd(InMemory)]]),
        ok = call(OnDisk, mnesia, start, []),
        ok = call(OnDisk, mnesia, wait_for_tables, [[t], ?WAIT]),
        ?assertEqual(objects(10), call(OnDisk, ats_mnesia_lib, contents, [t]))
    end).

%% The old copy is kept until the new one is complete, in case the other node ends.
a_broken_copy_leaves_the_old_one(Config) ->
    on_nodes(Config, 2, fun([{Cluster, A} = First, {_, B} = Second]) ->
        [{atomic, ok} = call(First, mnesia, create_table, [Name, definition(Alias, set, [A, B])])
         || {Name, Alias} <- [{t, dats_disc}, {u, ats_disc}]],
        [ok = call(First, ats_mnesia_lib, fill, [Name, 1000]) || Name <- [t, u]],
        %% A transaction may still be on its way to the other node when it is done on the first.
        [ats_test_lib:until(fun() -> call(Second, mnesia, table_info, [Name, size]) =:= 1000 end,
                            20000)
         || Name <- [t, u]],
        stopped = call(Second, mnesia, stop, []),
        [ok = call(First, ats_mnesia_lib, fill, [Name, 200000]) || Name <- [t, u]],
        %% The first sends nothing any more once it has begun.
        call(First, fun() ->
            spawn(fun() ->
                {module, _} = code:ensure_loaded(ats_mnesia_transfer),
                erlang:trace(all, true, [call, {tracer, self()}]),
                erlang:trace_pattern({ats_mnesia_transfer, send, 2}, true, [local]),
                receive {trace, _, call, _} -> ok end,
                %% Ends at once: a shell that kills would come when much has been sent.
                erlang:halt(137, [{flush, false}])
            end)
        end),
        ok = call(Second, mnesia, start, []),
        ats_test_lib:until(fun() -> not ats_cluster:is_running(Cluster, A) end, 20000),
        %% Mnesia must have given the copies up: a table that is loaded meanwhile is in its way.
        ats_test_lib:until(fun() ->
            call(Second, fun() ->
                {workers, Loaders, _, _} = mnesia_controller:get_workers(5000),
                Loaders =:= [] andalso mnesia:system_info(running_db_nodes) =:= [node()]
            end)
        end, 20000),
        [yes = call(Second, mnesia, force_load_table, [Name]) || Name <- [t, u]],
        [?assertEqual(objects(1000), call(Second, ats_mnesia_lib, contents, [Name]))
         || Name <- [t, u]]
    end).

%% A continuation that comes back from the node that has the table.
selects_of_other_nodes(Config) ->
    on_nodes(Config, 2, fun([{_, A} = First, Second]) ->
        [begin
             {atomic, ok} = call(First, mnesia, create_table,
                                 [t, definition(Alias, ordered_set, [A])]),
             ok = call(First, ats_mnesia_lib, fill, [t, 1000]),
             Found = call(Second, fun() ->
                 MatchSpec = [{#person{key = '$1', value = 3, _ = '_'}, [], ['$1']}],
                 transaction(fun() -> chunks(mnesia:select(t, MatchSpec, 10, read)) end)
             end),
             ?assertEqual(lists:seq(3, 1000, 10), Found),
             {atomic, ok} = call(First, mnesia, delete_table, [t])
         end || Alias <- aliases()]
    end).

%% Programs of schemas, indexes and restarts, beside `disc_copies'.
many_programs(Config) ->
    ats_mnesia_lib:run_programs(Config, 1001, 60).

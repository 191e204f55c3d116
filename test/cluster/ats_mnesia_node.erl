%% A node of a cluster that has tables in mnesia: starting it as an operator would, and processes
%% that write to its tables in transactions and note the acknowledgements.
%%
%% Writer number `W' of a family of tables makes one transaction after the other, of number 1, 2, 3
%% and so on. Each changes all tables of the family, so the objects of this writer after transaction
%% `N' are known: see objects/4. It notes the number of each acknowledged transaction in a file, by
%% a write of the system, which outlives the node.
-module(ats_mnesia_node).

-export([configure/1, start/1, stop/0, restart_from/2, create_schema/2, create_tables/2]).
-export([running/0, events/0, aborts/0, hold_notice/0, take_notice/0]).
-export([start_writers/2, stop_writers/0]).
-export([contents/1, wrong_in_index/1, acknowledged/3, objects/4, accounts/1, total/0]).

-export_type([family/0, table/0, writer/0]).

-type storage() :: atom().
-type table() :: {Name :: atom(), storage(), set | ordered_set | bag}.
-type family() :: {Name :: atom(), [table()]}.
-type writer() :: pos_integer().

%% Number of objects of each writer in a table; older ones are deleted.
-define(WINDOW, 60).
%% The number of keys of objects in a bag.
-define(BAG_KEYS, 7).
%% The number of accounts between which writers move amounts, too, the same in each table.
-define(ACCOUNTS, 20).
-define(DEPOSIT, 100).
-define(PAUSE_MS, 2).
-define(NO_MAJORITY_PAUSE_MS, 50).
-define(LOAD_MS, 60000).
-define(STOP_MS, 60000).
-define(NOTES, ?MODULE).
-define(HOLDER, ats_mnesia_node_holder).

%% ----- steps of an operator -----

%% Configures mnesia before it starts. Its log is written to the tables often, so that faults meet
%% that.
-spec configure(file:filename()) -> ok.
configure(Directory) ->
    Settings = [
        {dir, filename:join(Directory, "mnesia")},
        {core_dir, Directory},
        {dump_log_write_threshold, 300},
        {dump_log_time_threshold, 3000}
    ],
    _ = application:load(mnesia),
    [ok = application:set_env(mnesia, Key, Value) || {Key, Value} <- Settings],
    watcher().

-spec start([atom()]) -> ok.
start(Tables) ->
    ok = mnesia:start(),
    ok = watch(),
    wait_for_tables(Tables).

-spec stop() -> ok.
stop() ->
    stopped = mnesia:stop(),
    ok.

%% Starts mnesia on a node that was cut off: its tables are loaded from these nodes, not from its
%% own disk.
-spec restart_from([node()], [atom()]) -> ok.
restart_from(Nodes, Tables) ->
    stopped = mnesia:stop(),
    [true = net_kernel:connect_node(Node) || Node <- Nodes],
    ok = mnesia:set_master_nodes(Nodes),
    ok = mnesia:start(),
    ok = watch(),
    ok = wait_for_tables(Tables),
    %% The next start is again from whoever was last.
    ok = mnesia:set_master_nodes([]).

-spec create_schema([node()], [{storage(), module()}]) -> ok.
create_schema(Nodes, []) ->
    mnesia:create_schema(Nodes);
create_schema(Nodes, BackendTypes) ->
    mnesia:create_schema(Nodes, [{backend_types, BackendTypes}]).

-spec create_tables([node()], [family()]) -> ok.
create_tables(Nodes, Families) ->
    [
        {atomic, ok} = mnesia:create_table(
            Table, [{Storage, Nodes}, {type, Type}, {majority, true}, {index, [val]}]
        )
     || {_, Tables} <- Families, {Table, Storage, Type} <- Tables
    ],
    [
        {atomic, _} = mnesia:sync_transaction(fun() ->
            [
                ok = mnesia:write({Table, {account, Account}, ?DEPOSIT})
             || {Table, _, Type} <- Tables, Type =/= bag, Account <- lists:seq(1, ?ACCOUNTS)
            ]
        end)
     || {_, Tables} <- Families
    ],
    ok.

wait_for_tables(Tables) ->
    ok = mnesia:wait_for_tables(Tables, ?LOAD_MS).

%% Nodes that this node shares its tables with now.
-spec running() -> [node()].
running() ->
    lists:sort(mnesia:system_info(running_db_nodes)).

%% ----- events of mnesia -----

%% Has events of mnesia noted; once after each start.
watch() ->
    ?NOTES ! {watch, self()},
    receive {?NOTES, Answer} -> Answer after ?STOP_MS -> error(not_watched) end.

%% Starts a process that keeps events of mnesia.
watcher() ->
    Me = self(),
    spawn(fun() ->
        true = register(?NOTES, self()),
        ?NOTES = ets:new(?NOTES, [named_table, public, bag]),
        Me ! {?NOTES, ready},
        note_events()
    end),
    receive {?NOTES, ready} -> ok after ?STOP_MS -> error(not_watched) end.

note_events() ->
    receive
        {watch, From} ->
            {ok, _} = mnesia:subscribe(system),
            From ! {?NOTES, ok};
        {mnesia_system_event, {inconsistent_database, Context, Node}} ->
            true = ets:insert(?NOTES, {event, {Context, Node}});
        _ ->
            ok
    end,
    note_events().

%% Returns the inconsistencies that mnesia has reported since the last call.
-spec events() -> [{Context :: atom(), node()}].
events() ->
    [Event || {event, Event} <- ets:take(?NOTES, event)].

%% Why transactions were aborted since the last call, each reason once.
-spec aborts() -> [term()].
aborts() ->
    [Reason || {abort, Reason} <- ets:take(?NOTES, abort)].

%% Has mnesia take no notice of lost nodes until take_notice/0 is called. So it is while the disk is
%% slow: mnesia waits until it is on disk that a node is lost, and tells transactions then.
-spec hold_notice() -> ok.
hold_notice() ->
    Me = self(),
    {_, Monitor} = spawn_monitor(fun() ->
        true = register(?HOLDER, self()),
        true = erlang:suspend_process(whereis(mnesia_controller)),
        Me ! {?HOLDER, held},
        receive take_notice -> ok end
    end),
    receive
        {?HOLDER, held} -> true = erlang:demonitor(Monitor, [flush]), ok;
        {'DOWN', Monitor, process, _, Reason} -> error(Reason)
    end.

-spec take_notice() -> ok.
take_notice() ->
    ?HOLDER ! take_notice,
    ok.

%% ----- writers -----

%% Starts writers, which go on behind the last transaction in the tables.
-spec start_writers(file:filename(), [{writer(), family()}]) -> ok.
start_writers(Directory, Writers) ->
    Started = [
        {W, spawn(fun() -> start_writer(Directory, W, Family) end)}
     || {W, Family} <- Writers
    ],
    true = ets:insert(?NOTES, [{writer, Pid} || {_, Pid} <- Started]),
    ok.

%% Ends the writers, each after its transaction.
-spec stop_writers() -> ok.
stop_writers() ->
    Monitors = [
        begin
            Monitor = erlang:monitor(process, Pid),
            Pid ! stop,
            {Pid, Monitor}
        end
     || {writer, Pid} <- ets:take(?NOTES, writer)
    ],
    lists:foreach(
        fun({Pid, Monitor}) ->
            receive
                {'DOWN', Monitor, process, Pid, normal} -> ok;
                {'DOWN', Monitor, process, Pid, Reason} -> error({writer, Reason})
            after ?STOP_MS ->
                error({writer_hangs, process_info(Pid, current_stacktrace)})
            end
        end,
        Monitors
    ).

start_writer(Directory, W, {Family, [{First, _, _} | _] = Tables}) ->
    {ok, Log} = file:open(log(Directory, Family, W), [append, raw, binary]),
    %% Another node may hold a lock while it finds out the outcome of the last transaction.
    {atomic, Last} = mnesia:sync_transaction(fun() -> mnesia:read(First, {W, last}) end),
    Done =
        case Last of
            [] -> 0;
            [{First, _, N}] -> N
        end,
    ok = file:write(Log, <<Done:64>>),
    write(Log, W, Done + 1, Tables).

write(Log, W, N, Tables) ->
    receive
        stop -> ok
    after ?PAUSE_MS ->
        case mnesia:sync_transaction(fun() -> change(Tables, W, N) end) of
            {atomic, ok} ->
                ok = file:write(Log, <<N:64>>),
                write(Log, W, N + 1, Tables);
            {aborted, Reason} ->
                true = ets:insert(?NOTES, {abort, Reason}),
                timer:sleep(?NO_MAJORITY_PAUSE_MS),
                %% Once more the same: if it was done all the same, nothing changes.
                write(Log, W, N, Tables)
        end
    end.

change(Tables, W, N) ->
    lists:foreach(
        fun
            ({Table, _, bag}) ->
                [New] = numbered(Table, bag, W, [N]),
                ok = mnesia:write(New),
                [
                    ok = mnesia:delete_object(Old)
                 || Old <- numbered(Table, bag, W, [M || M <- [N - ?WINDOW], M > 0])
                ],
                ok = mnesia:delete({Table, {W, last}}),
                ok = mnesia:write({Table, {W, last}, N});
            ({Table, _, Type}) ->
                [New] = numbered(Table, Type, W, [N]),
                ok = mnesia:write(New),
                ok = mnesia:delete({Table, {W, N - ?WINDOW}}),
                ok = mnesia:write({Table, {W, last}, N})
        end,
        Tables
    ),
    [From, To] = [{account, rand:uniform(?ACCOUNTS)} || _ <- [from, to]],
    [ok = move(Table, From, To) || {Table, _, Type} <- Tables, Type =/= bag],
    ok.

move(Table, From, To) ->
    [{_, From, Rich}] = mnesia:read(Table, From, write),
    ok = mnesia:write({Table, From, Rich - 1}),
    [{_, To, Poor}] = mnesia:read(Table, To, write),
    mnesia:write({Table, To, Poor + 1}).

numbered(Table, bag, W, Numbers) ->
    [{Table, {W, N rem ?BAG_KEYS}, {N, filling(N)}} || N <- Numbers];
numbered(Table, _, W, Numbers) ->
    [{Table, {W, N}, {N, filling(N)}} || N <- Numbers].

filling(N) ->
    binary:copy(<<N>>, 40 + N rem 200).

log(Directory, Family, W) ->
    filename:join(Directory, lists:flatten(io_lib:format("~s~b.acknowledged", [Family, W]))).

%% ----- the contents -----

%% Returns all objects of the copy of this node, sorted.
-spec contents(atom()) -> [tuple()].
contents(Table) ->
    Here = node(),
    Here = mnesia:table_info(Table, where_to_read),
    lists:sort(mnesia:dirty_select(Table, [{'_', [], ['$_']}])).

%% Returns the values by which the index of the copy of this node does not find the objects that
%% have them.
-spec wrong_in_index(atom()) -> [term()].
wrong_in_index(Table) ->
    Objects = contents(Table),
    [
        Value
     || Value <- lists:usort([Value || {_, _, Value} <- Objects]),
        lists:sort(mnesia:dirty_index_read(Table, Value, val)) =/=
            [Object || {_, _, V} = Object <- Objects, V =:= Value]
    ].

%% Returns the number of the last transaction that a writer got acknowledged.
-spec acknowledged(file:filename(), Family :: atom(), writer()) -> non_neg_integer().
acknowledged(Directory, Family, W) ->
    case file:read_file(log(Directory, Family, W)) of
        {ok, Bytes} when byte_size(Bytes) >= 8 ->
            Last = byte_size(Bytes) div 8 * 8 - 8,
            <<_:Last/binary, N:64, _/binary>> = Bytes,
            N;
        {ok, _} ->
            0;
        {error, enoent} ->
            0
    end.

%% Returns all that a table has of a writer after transaction `N', sorted.
-spec objects(atom(), set | ordered_set | bag, writer(), non_neg_integer()) -> [tuple()].
objects(_, _, _, 0) ->
    [];
objects(Table, Type, W, N) ->
    Numbers = lists:seq(max(1, N - ?WINDOW + 1), N),
    lists:sort([{Table, {W, last}, N} | numbered(Table, Type, W, Numbers)]).

%% Returns the accounts of a table with their amounts, in order, from its objects.
-spec accounts([tuple()]) -> [{pos_integer(), integer()}].
accounts(Objects) ->
    [{Account, Amount} || {_, {account, Account}, Amount} <- Objects].

-spec total() -> integer().
total() ->
    ?ACCOUNTS * ?DEPOSIT.

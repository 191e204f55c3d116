%% @doc Tables of `ats' and `dats' as storage types of Mnesia.
%%
%% A program of Mnesia keeps its code, and gives its tables other copies: `{ats_ram, Nodes}' where
%% it had `{ram_copies, Nodes}', `{ats_disc, Nodes}' for `disc_copies', and `{dats_disc, Nodes}' for
%% `disc_only_copies'. Transactions, replication, indexes, backups and fragments are those of
%% Mnesia.
%%
%% <dl>
%% <dt>`ats_ram'</dt><dd>in memory, in a table of `ats'. It is empty when Mnesia starts, and is
%% loaded from another node, as `ram_copies' are</dd>
%% <dt>`dats_disc'</dt><dd>on disk, in a table of `dats'. Unlike `disc_only_copies' it can be an
%% `ordered_set', has no limit of 2 GB, and needs no repair</dd>
%% <dt>`ats_disc'</dt><dd>both: writes go to memory and to disk, reads come from memory</dd>
%% </dl>
%%
%% Changes reach the disk some milliseconds after they were made, behind the log of Mnesia. After a
%% crash Mnesia replays its log, so a transaction is there as a whole or not at all.
%%
%% The types are told to Mnesia by {@link register/0}, when it runs; when a schema is made, by
%% {@link types/0}; or by the parameter `{ats, [{mnesia, true}]}' of an application `ats' that
%% starts before Mnesia. Options of a table are `{storage_properties, [{ats, [ats:option()]}, {dats,
%% [dats:option()]}]}'; those for `ets' are taken, too.
%%
%% Mnesia takes no notice when a write to a table fails, and goes on without it. Here it stops on
%% this node, as it does when its own log fails; so a full disk takes the node away, and no data.
%%
%% The page `docs/use/more-than-one-machine.md' states the guarantees.
%%
%% Good for: programs that use Mnesia, tables on disk that are ordered or large, ranges and prefixes
%% of keys in `mnesia:select/2'. Not good for: networks that part; see the application `ats_ra'.
-module(ats_mnesia).

-behaviour(mnesia_backend_type).
%% Mnesia describes the behaviour by a function, which Dialyzer does not read.
-dialyzer(no_undefined_callbacks).

-export([register/0, types/0, prepare/0, table/1, insert_local/2]).

-export([init_backend/0, add_aliases/1, remove_aliases/1, semantics/2, check_definition/4]).
-export([real_suffixes/0, tmp_suffixes/0]).
-export([create_table/3, load_table/4, close_table/2, sync_close_table/2, delete_table/2]).
-export([is_index_consistent/2, index_is_consistent/3]).
-export([sender_init/4, receiver_first_message/4, receive_data/5, receive_done/4]).
-export([validate_key/6, validate_record/6, info/3, fixtable/3]).
-export([insert/3, delete/3, match_delete/3, update_counter/4]).
-export([lookup/3, first/2, last/2, next/3, prev/3, slot/3]).
-export([select/1, select/3, select/4, repair_continuation/2]).

-export_type([alias/0, tab/0]).

-type alias() :: ats_ram | ats_disc | dats_disc.
%% A storage type.
-type tab() :: atom() | {atom(), index, {Position :: term(), ordered | bag}}
             | {atom(), retainer, Checkpoint :: term()}.
%% A table of Mnesia, an index of one, or the old objects that a checkpoint retains.
-type continuation() :: {ats | dats, term()} | '$end_of_table'.

-define(ALIASES, [ats_ram, ats_disc, dats_disc]).

%%--------------------------------------------------------------------------------------------
%% Functions for programs
%%--------------------------------------------------------------------------------------------

%% @doc Adds the storage types to the schema of Mnesia, which must run. All nodes of the schema have
%% them then, and need the application `ats' in their code path. Types that the schema has already
%% are left as they are.
-spec register() -> ok | {error, Reason :: term()}.
register() ->
    lists:foldl(fun register_type/2, ok, types()).

-spec register_type({alias(), module()}, ok | Failed) -> ok | Failed when Failed :: {error, term()}.
register_type({Alias, Module}, ok) ->
    case mnesia:add_backend_type(Alias, Module) of
        {atomic, ok} -> ok;
        {aborted, {backend_type_already_exists, Alias}} -> ok;
        {aborted, Reason} -> {error, Reason}
    end;
register_type(_Type, Failed) ->
    Failed.

%% @doc Returns the storage types as Mnesia wants them where a schema is made. That is a call of
%% `mnesia:create_schema(Nodes, [{backend_types, ats_mnesia:types()}])', or the parameter `{schema,
%% [{backend_types, Types}]}' of the application `mnesia'.
-spec types() -> [{alias(), module()}].
types() ->
    [{Alias, ?MODULE} || Alias <- ?ALIASES].

%% Tells Mnesia the types of this module, if the application `ats' has the parameter `mnesia'.
%% Mnesia reads its parameter when it makes a schema; a schema on disk does not change. @private
-spec prepare() -> ok | {error, term()}.
prepare() ->
    case mnesia:system_info(is_running) of
        yes ->
            register();
        _ ->
            Schema = application:get_env(mnesia, schema, []),
            Given = proplists:get_value(backend_types, Schema, []),
            Types = lists:ukeymerge(1, lists:ukeysort(1, Given), lists:ukeysort(1, types())),
            Added = lists:keystore(backend_types, 1, Schema, {backend_types, Types}),
            application:set_env(mnesia, schema, Added, [{persistent, true}])
    end.

%% @doc Returns the table in which this node keeps its copy of a table of Mnesia, and the module
%% whose functions read it: for reads that Mnesia need not see, such as {@link ats:range/3}. They
%% take no lock of Mnesia and see the latest writes of this node, as `mnesia:dirty_read/2' does. A
%% `dats_disc' shows all writes from before this call; later writes follow within some hundredths of
%% a second, so call this function again before you read. Objects that are written to the table by
%% other ways than Mnesia or {@link insert_local/2} are in this copy only, and for an `ats_disc' in
%% memory only. Fails with `badarg' if this node has no loaded copy of one of the types of this
%% module.
-spec table(atom()) -> {ats, ats:table()} | {dats, dats:tab_name()}.
table(Tab) ->
    reader(Tab).

%% @doc Inserts objects into a table that only this node has, as one: others see all of them or
%% none, and so does the table after a crash. Locks the table, so transactions are isolated from it,
%% but writes nothing to the log of Mnesia. For a table on disk it is as durable as its option
%% `durability' says.
%%
%% Refuses a table that has copies on other nodes, indexes, checkpoints or subscribers, of which
%% Mnesia would have to know: `{aborted, {not_only_here, Tab}}'.
-spec insert_local(atom(), [tuple()]) -> {atomic, ok} | {aborted, Reason :: term()}.
insert_local(Tab, Objects) ->
    mnesia:transaction(
      fun() ->
              mnesia:write_lock_table(Tab),
              lists:foreach(fun(Object) -> mnesia_lib:validate_record(Tab, Object) end, Objects),
              is_only_here(Tab) orelse mnesia:abort({not_only_here, Tab}),
              change(Tab, insert, [Objects])
      end).

%% Returns `true' if no other part of Mnesia must see a change: commits also update indexes,
%% checkpoints and subscribers.
-spec is_only_here(atom()) -> boolean().
is_only_here(Tab) ->
    mnesia_lib:val({Tab, commit_work}) =:= []
        andalso (mnesia_lib:val({Tab, local_content})
                 orelse [N || {N, _} <- mnesia_lib:val({Tab, where_to_commit})] =:= [node()]).

%%--------------------------------------------------------------------------------------------
%% Types
%%--------------------------------------------------------------------------------------------

%% Mnesia calls this while it starts, but traverses a fallback before that; so tables do not rely on
%% it. It is for the end of the system, where applications stop in the reverse order of their start:
%% Mnesia must do so first. And it is the moment before Mnesia decides which tables it loads.
%% @private
-spec init_backend() -> ok | {error, term()}.
init_backend() ->
    case ats_disk_tables:ensure_started() of
        ok -> ats_mnesia_order:prepare();
        {error, _} = Failed -> Failed
    end.

%% @private
-spec add_aliases([alias()]) -> ok.
add_aliases(_Aliases) -> ok.

%% @private
-spec remove_aliases([alias()]) -> ok.
remove_aliases(_Aliases) -> ok.

%% @private
-spec semantics(alias(), atom()) -> term().
semantics(ats_ram, storage) -> ram_copies;
%% Mnesia would write logs of its own for `disc_copies', from a table of `ets'. It asks also when it
%% dumps its log.
semantics(Alias, storage) when Alias =:= ats_disc; Alias =:= dats_disc ->
    ok = ats_mnesia_writer:flush_for_dump(),
    disc_only_copies;
semantics(Alias, types) -> of_alias(Alias, [set, ordered_set, bag]);
semantics(Alias, index_types) -> of_alias(Alias, [ordered, bag]);
semantics(_Alias, _Item) -> undefined.

of_alias(Alias, Types) ->
    case lists:member(Alias, ?ALIASES) of
        true -> Types;
        false -> undefined
    end.

%% @private
-spec check_definition(alias(), atom(), [node()], [{atom(), term()}]) -> ok | {error, term()}.
check_definition(Alias, Tab, _Nodes, Properties) ->
    case ats_mnesia_indexes:check_plugins(Tab, Properties) of
        ok -> ats_mnesia_tables:check_options(Alias, Properties);
        {error, _} = Failed -> Failed
    end.

%% @private
-spec real_suffixes() -> [string()].
real_suffixes() -> ats_mnesia_tables:suffixes().

%% @private
-spec tmp_suffixes() -> [string()].
tmp_suffixes() -> ats_mnesia_tables:temporary_suffixes().

%%--------------------------------------------------------------------------------------------
%% Tables
%%--------------------------------------------------------------------------------------------

%% @private
-spec create_table(alias(), tab(), [{atom(), term()}]) -> ok | {error, term()}.
%% Mnesia makes a table that a backup restores without properties, and gives them later.
create_table(_Alias, _Tab, []) -> ok;
create_table(Alias, Tab, Properties) -> ats_mnesia_tables:open(Alias, Tab, Properties).

%% @private
-spec load_table(alias(), tab(), Reason :: term(), [{atom(), term()}]) -> ok.
load_table(Alias, Tab, Reason, Properties) ->
    is_atom(Tab) andalso is_made_anew(Reason) andalso ats_mnesia_indexes:forget(Tab),
    Alias =:= ats_ram andalso done(ats_mnesia_order:check(Tab, Reason), Tab),
    Reason =:= {dumper, create_table} andalso remove_own_table(Tab),
    done(ats_mnesia_tables:load(Alias, Tab, Reason, Properties), Tab).

%% Mnesia makes the indexes when it has loaded the table, unless it only replays its log.
-spec is_made_anew(Reason :: term()) -> boolean().
is_made_anew(Reason) -> Reason =/= startup andalso Reason =/= restore.

%% Removes the table of `ets' that Mnesia makes when a backup makes a table in memory anew, for each
%% type. Mnesia would fail to make it the next time, and stop. If the table was of a type of Mnesia,
%% its files stay, too, and a later change of type would take them for those of the table; and
%% Mnesia goes on to write to a log that it has opened for the table.
-spec remove_own_table(atom()) -> ok.
remove_own_table(Tab) ->
    _ = is_own_in_memory(Tab) andalso ets:delete(Tab),
    case mnesia_monitor:use_dir() of
        true ->
            _ = erase({mnesia_dumper, Tab}),
            ok = mnesia_monitor:unsafe_close_log({mnesia_dumper, Tab}),
            _ = mnesia_monitor:unsafe_close_dets(Tab),
            _ = [file:delete(mnesia_lib:Name(Tab)) || Name <- [tab2dat, tab2dcd, tab2dcl]],
            ok;
        false ->
            ok
    end.

-spec is_own_in_memory(tab()) -> boolean().
is_own_in_memory(Tab) ->
    Monitor = erlang:whereis(mnesia_monitor),
    is_atom(Tab) andalso is_pid(Monitor) andalso ets:info(Tab, owner) =:= Monitor.

-spec done(ok | {error, term()}, tab()) -> ok.
done(ok, _Tab) -> ok;
done({error, Reason}, Tab) -> exit({ats_mnesia, Tab, Reason}).

%% Each change of a schema has a process of its own.
%% @private
-spec close_table(alias(), tab()) -> ok.
close_table(_Alias, Tab) ->
    _ = ats_mnesia_tables:is_open(Tab) andalso put({?MODULE, closed, Tab}, true),
    done(ats_mnesia_tables:close(Tab), Tab).

%% @private
-spec sync_close_table(alias(), tab()) -> ok.
sync_close_table(Alias, Tab) ->
    close_table(Alias, Tab).

%% A process of Mnesia that cannot get a copy from another node deletes the table. Only the received
%% objects are to be deleted, not those that this node had before. @private
-spec delete_table(alias(), tab()) -> ok.
delete_table(Alias, Tab) ->
    case is_receiving(Tab) of
        true ->
            done(ats_mnesia_tables:stop_loading(Tab), Tab);
        false ->
            ok = forget_index(Tab),
            is_made_from_own(Tab) andalso remove_own_table(Tab),
            done(ats_mnesia_tables:delete(Alias, Tab), Tab),
            becomes_disc_copies(Tab) andalso ats_mnesia_log:write_dump(Tab),
            ok
    end.

%% Returns `true' if a backup makes a table one of ours that is in memory and of a type of Mnesia.
%% There is a table of `ets', too, when one of ours becomes one of Mnesia. It has the objects then,
%% and this process has closed ours.
-spec is_made_from_own(tab()) -> boolean().
is_made_from_own(Tab) ->
    is_own_in_memory(Tab) andalso get({?MODULE, closed, Tab}) =:= undefined.

-spec forget_index(tab()) -> ok.
forget_index({Tab, index, _}) -> ats_mnesia_indexes:prepare_deletion(Tab);
forget_index({_, retainer, _}) -> ok;
forget_index(Tab) -> ats_mnesia_indexes:forget(Tab).

%% Returns `true' if Mnesia is changing the type of a table. It has noted the new one then.
-spec becomes_disc_copies(tab()) -> boolean().
becomes_disc_copies(Tab) ->
    mnesia_lib:is_running() =/= no
        andalso ets:lookup(mnesia_gvar, {Tab, storage_type})
            =:= [{{Tab, storage_type}, disc_copies}].

%% Reads the note that the loader of Mnesia leaves in its process for people who look at a crash.
-spec is_receiving(tab()) -> boolean().
is_receiving(Tab) ->
    lists:any(fun(Note) -> is_tuple(Note) andalso element(1, Note) =:= Tab end,
              [get(mnesia_table_sender_node), get(mnesia_table_receiver)]).

%% @private
-spec is_index_consistent(alias(), tab()) -> boolean().
is_index_consistent(_Alias, Tab) -> ats_mnesia_tables:is_built(Tab).

%% @private
-spec index_is_consistent(alias(), tab(), boolean()) -> ok.
index_is_consistent(_Alias, Tab, IsConsistent) -> ats_mnesia_tables:set_built(Tab, IsConsistent).

%%--------------------------------------------------------------------------------------------
%% Copies to other nodes
%%--------------------------------------------------------------------------------------------

%% @private
-spec sender_init(alias(), atom(), Remote :: term(), pid()) ->
          {standard, fun(), fun()} | {fun(), fun()}.
sender_init(_Alias, Tab, Remote, Receiver) ->
    Store = ats_mnesia_tables:find(Tab),
    case Remote of
        {ext, RemoteAlias, ?MODULE} when RemoteAlias =/= ats_ram ->
            ats_mnesia_transfer:send(Store, Receiver);
        _ ->
            ats_mnesia_transfer:send_objects(Store)
    end.

%% @private
-spec receiver_first_message(pid(), {first, term()}, alias(), atom()) ->
          {non_neg_integer(), ats_mnesia_transfer:receiver()}.
receiver_first_message(_Sender, {first, First}, _Alias, _Tab) ->
    ats_mnesia_transfer:begin_receiving(First).

%% @private
-spec receive_data(term(), alias(), atom(), pid(), ats_mnesia_transfer:receiver()) ->
          {more, ats_mnesia_transfer:receiver()}.
receive_data(Data, _Alias, Tab, _Sender, Receiver) ->
    {more, ats_mnesia_transfer:take(Data, ats_mnesia_tables:loading(Tab), Receiver)}.

%% @private
-spec receive_done(alias(), atom(), pid(), ats_mnesia_transfer:receiver()) -> ok.
receive_done(_Alias, Tab, _Sender, Receiver) ->
    ok = ats_mnesia_transfer:finish(Receiver),
    done(ats_mnesia_tables:finish_loading(Tab), Tab).

%%--------------------------------------------------------------------------------------------
%% Descriptions
%%--------------------------------------------------------------------------------------------

%% @private
-spec validate_key(alias(), atom(), Name, Arity, Type, Key :: term()) -> {Name, Arity, Type}.
validate_key(_Alias, _Tab, Name, Arity, Type, _Key) -> {Name, Arity, Type}.

%% @private
-spec validate_record(alias(), atom(), Name, Arity, Type, tuple()) -> {Name, Arity, Type}.
validate_record(_Alias, _Tab, Name, Arity, Type, _Object) -> {Name, Arity, Type}.

%% @private
-spec info(alias(), tab(), Item :: atom()) -> term().
info(_Alias, Tab, Item) ->
    try find_described(Tab, Item) of
        {pending, Pending, Name} ->
            in_words(dats:info(Name, memory)) + ats_mnesia_pending:memory(Pending);
        {dats, Name} when Item =:= memory ->
            in_words(dats:info(Name, memory));
        {dats, Name} ->
            dats:info(Name, Item);
        Store ->
            ats:info(element(2, Store), Item)
    catch
        error:badarg -> undefined
    end.

%% Pending changes count for the memory. Any other item is read once none is pending.
find_described(Tab, memory) -> ats_mnesia_tables:find(Tab);
find_described(Tab, _Item) -> reader(Tab).

in_words(Bytes) when is_integer(Bytes) -> Bytes div erlang:system_info(wordsize);
in_words(undefined) -> undefined.

%% @private
-spec fixtable(alias(), tab(), boolean()) -> ok.
fixtable(_Alias, Tab, Fix) ->
    {Module, Table} = reader(Tab),
    _ = Module:safe_fixtable(Table, Fix),
    ok.

%%--------------------------------------------------------------------------------------------
%% Writing
%%--------------------------------------------------------------------------------------------

%% @private
-spec insert(alias(), tab(), tuple()) -> ok.
insert(_Alias, Tab, Object) ->
    change(Tab, insert, [Object]).

%% @private
-spec delete(alias(), tab(), Key :: term()) -> ok.
delete(_Alias, Tab, Key) ->
    change(Tab, delete, [Key]).

%% Mnesia clears tables by the pattern `_', and deletes objects by patterns that are objects. With
%% those, a map would match all maps that have more keys.
%% @private
-spec match_delete(alias(), tab(), tuple() | '_') -> ok.
match_delete(_Alias, Tab, '_') ->
    change(Tab, delete_all_objects, []);
match_delete(_Alias, Tab, Pattern) ->
    case mnesia:has_var(Pattern) of
        true -> change(Tab, match_delete, [Pattern]);
        false -> change(Tab, delete_object, [Pattern])
    end.

%% @private
-spec update_counter(alias(), tab(), Key :: term(), Increment :: integer()) -> integer().
update_counter(_Alias, Tab, Key, Increment) ->
    case ats_mnesia_tables:find(Tab) of
        {ats, Table} ->
            ats:update_counter(Table, Key, Increment);
        {both, Table, Name} ->
            Value = ats:update_counter(Table, Key, Increment),
            ok = ats_mnesia_writer:write(Tab, none, Name, take, [Table, Key]),
            Value;
        {pending, Pending, Name} ->
            ats_mnesia_pending:find(Pending, Key) =:= none orelse ats_mnesia_writer:flush(),
            ok = ats_mnesia_log:write(),
            ats_mnesia_writer:write_now(Tab, Name, update_counter, [Key, Increment]);
        {dats, Name} ->
            ats_mnesia_writer:write_now(Tab, Name, update_counter, [Key, Increment])
    end.

-spec change(tab(), Function :: atom(), Arguments :: [term()]) -> ok.
change(Tab, Function, Arguments) ->
    case ats_mnesia_tables:find(Tab) of
        {ats, Table} ->
            _ = change_in_memory(Table, Function, Arguments),
            ok;
        {both, Table, Name} ->
            _ = change_in_memory(Table, Function, Arguments),
            ats_mnesia_writer:write(Tab, none, Name, Function, Arguments);
        {pending, Pending, Name} ->
            case is_of_one_key(Function, Arguments) of
                true -> ats_mnesia_writer:write(Tab, Pending, Name, Function, Arguments);
                false -> change_now(Tab, Name, Function, Arguments)
            end;
        {dats, Name} ->
            _ = ats_mnesia_writer:write_now(Tab, Name, Function, Arguments),
            ok
    end.

%% Calls the most frequent changes directly.
change_in_memory(Table, insert, [Object]) -> ats:insert(Table, Object);
change_in_memory(Table, delete, [Key]) -> ats:delete(Table, Key);
change_in_memory(Table, Function, Arguments) -> apply(ats, Function, [Table | Arguments]).

is_of_one_key(insert, [Object]) -> is_tuple(Object);
is_of_one_key(delete, _Key) -> true;
is_of_one_key(delete_object, _Object) -> true;
is_of_one_key(_Function, _Arguments) -> false.

-spec change_now(tab(), dats:tab_name(), Function :: atom(), Arguments :: [term()]) -> ok.
change_now(Tab, Name, Function, Arguments) ->
    ok = ats_mnesia_writer:flush(),
    ok = ats_mnesia_log:write(),
    _ = ats_mnesia_writer:write_now(Tab, Name, Function, Arguments),
    ok.

%%--------------------------------------------------------------------------------------------
%% Reading
%%--------------------------------------------------------------------------------------------

%% Returns the table that is read, once no change is pending that must be read.
-spec reader(tab()) -> {ats, ats:table()} | {dats, dats:tab_name()}.
reader(Tab) ->
    case ats_mnesia_tables:find(Tab) of
        {both, Table, _Name} ->
            {ats, Table};
        {pending, Pending, Name} ->
            ats_mnesia_pending:is_empty(Pending) orelse ats_mnesia_writer:flush(),
            {dats, Name};
        Store ->
            Store
    end.

read(Tab, Function, Arguments) ->
    {Module, Table} = reader(Tab),
    check_read(Tab, apply(Module, Function, [Table | Arguments])).

%% A table on disk returns errors of its files.
check_read(Tab, {error, Reason}) -> mnesia:abort({ats_mnesia, Tab, Reason});
check_read(_Tab, Answer) -> Answer.

%% @private
-spec lookup(alias(), tab(), Key :: term()) -> [tuple()].
lookup(_Alias, Tab, Key) ->
    case ats_mnesia_tables:find(Tab) of
        {pending, Pending, Name} -> check_read(Tab, lookup_pending(Pending, Name, Key));
        {dats, Name} -> check_read(Tab, dats:lookup(Name, Key));
        Store -> ats:lookup(element(2, Store), Key)
    end.

lookup_pending(Pending, Name, Key) ->
    case ats_mnesia_pending:find(Pending, Key) of
        none ->
            dats:lookup(Name, Key);
        unknown ->
            ok = ats_mnesia_writer:flush(),
            dats:lookup(Name, Key);
        Objects ->
            Objects
    end.

%% @private
-spec first(alias(), tab()) -> term().
first(_Alias, Tab) -> read(Tab, first, []).

%% @private
-spec last(alias(), tab()) -> term().
last(_Alias, Tab) -> read(Tab, last, []).

%% @private
-spec next(alias(), tab(), Key :: term()) -> term().
next(_Alias, Tab, Key) -> step(Tab, next, Key).

%% @private
-spec prev(alias(), tab(), Key :: term()) -> term().
prev(_Alias, Tab, Key) -> step(Tab, prev, Key).

%% A table on disk has a step from any key. A transaction also walks through keys that it has
%% written and that are not in the table yet: Mnesia goes on with the next one of these if the step
%% fails, as in tables of `ets', and otherwise meets keys of the table again, without end. In an
%% `ordered_set' Mnesia sorts the keys of both.
-spec step(tab(), next | prev, Key :: term()) -> term().
step(Tab, Function, Key) ->
    case reader(Tab) of
        {dats, Name} ->
            is_only_written(Tab, Name, Key) andalso erlang:error(badarg),
            check_read(Tab, dats:Function(Name, Key));
        {ats, Table} ->
            ats:Function(Table, Key)
    end.

%% Returns `true' if the transaction of this process has written a key of a table without order
%% that does not have it.
-spec is_only_written(tab(), dats:tab_name(), Key :: term()) -> boolean().
is_only_written(Tab, Name, Key) ->
    case get(mnesia_activity_state) of
        {_, Tid, Ts} when element(1, Tid) =:= tid ->
            Changes = ets:lookup(element(2, Ts), {Tab, Key}),
            Changes =/= []
                andalso element(3, lists:last(Changes)) =/= delete
                andalso dats:info(Name, type) =/= ordered_set
                andalso not dats:member(Name, Key);
        _ ->
            false
    end.

%% @private
-spec slot(alias(), tab(), non_neg_integer()) -> [tuple()] | '$end_of_table'.
slot(_Alias, Tab, Slot) -> read(Tab, slot, [Slot]).

%% @private
-spec select(alias(), tab(), ats:match_spec()) -> [term()].
select(_Alias, Tab, MatchSpec) -> read(Tab, select, [MatchSpec]).

%% @private
-spec select(alias(), tab(), ats:match_spec(), pos_integer()) ->
          {[term()], continuation()} | '$end_of_table'.
select(_Alias, Tab, MatchSpec, Limit) ->
    {Module, _} = reader(Tab),
    name_module(Module, read(Tab, select, [MatchSpec, Limit])).

%% @private
-spec select(continuation()) -> {[term()], continuation()} | '$end_of_table'.
select('$end_of_table') ->
    '$end_of_table';
select({Module, Continuation}) ->
    case Module:select(Continuation) of
        {error, Reason} -> mnesia:abort({ats_mnesia, Reason});
        Chunk -> name_module(Module, Chunk)
    end.

name_module(_Module, '$end_of_table') -> '$end_of_table';
name_module(Module, {Matches, Continuation}) -> {Matches, {Module, Continuation}}.

%% The match specification is often not that of the continuation, which needs it only when it has
%% been a binary in between.
%% @private
-spec repair_continuation(continuation(), ats:match_spec() | '_') -> continuation().
repair_continuation({Module, Continuation}, MatchSpec) when is_list(MatchSpec) ->
    {Module, Module:repair_continuation(Continuation, MatchSpec)};
repair_continuation(Continuation, _MatchSpec) ->
    Continuation.

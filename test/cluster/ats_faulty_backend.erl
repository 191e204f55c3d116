%% The backend of mnesia for tables of ats and dats, with a fault: to see that tests find it. Nodes
%% are told which fault by their arguments: see arguments/1.
-module(ats_faulty_backend).

-behaviour(mnesia_backend_type).

-export([faults/0, arguments/1, types/0]).
-export([init_backend/0, add_aliases/1, remove_aliases/1, semantics/2, check_definition/4]).
-export([real_suffixes/0, tmp_suffixes/0]).
-export([create_table/3, load_table/4, close_table/2, sync_close_table/2, delete_table/2]).
-export([is_index_consistent/2, index_is_consistent/3]).
-export([sender_init/4, receiver_first_message/4, receive_data/5, receive_done/4]).
-export([validate_key/6, validate_record/6, info/3, fixtable/3]).
-export([insert/3, delete/3, match_delete/3, update_counter/4]).
-export([lookup/3, first/2, last/2, next/3, prev/3, slot/3]).
-export([select/1, select/3, select/4, repair_continuation/2]).

-export_type([fault/0]).

-type fault() ::
    %% None: what tests find must not come from this module.
    none
    %% Writes return before they are done.
    | answers_early
    %% What is written to memory and disk is forgotten by the disk.
    | forgets_disk
    | forgets_deletes
    %% What was there before a copy came from another node is still there afterwards.
    | keeps_stale_objects
    %% One object of each chunk of a copy is missing.
    | loses_an_object.

-define(EARLY_MS, 40).

-spec faults() -> [fault()].
faults() ->
    [answers_early, forgets_disk, forgets_deletes, keeps_stale_objects, loses_an_object].

-spec arguments(fault()) -> [string()].
arguments(Fault) ->
    ["-ats", "planted_fault", atom_to_list(Fault)].

is_planted(Fault) ->
    application:get_env(ats, planted_fault) =:= {ok, Fault}.

types() ->
    [{Alias, ?MODULE} || {Alias, _} <- ats_mnesia:types()].

%% ----- with faults -----

insert(Alias, Tab, Object) -> change(Tab, insert, [Alias, Tab, Object]).

delete(Alias, Tab, Key) -> change(Tab, delete, [Alias, Tab, Key]).

match_delete(Alias, Tab, Pattern) -> change(Tab, match_delete, [Alias, Tab, Pattern]).

change(Tab, Function, [Alias, _, Argument] = Arguments) ->
    case lists:filter(fun is_planted/1, faults()) of
        [answers_early] ->
            _ = spawn(fun() ->
                timer:sleep(rand:uniform(?EARLY_MS)),
                apply(ats_mnesia, Function, Arguments)
            end),
            ok;
        [forgets_disk] when Alias =:= ats_disc, Function =/= match_delete ->
            {both, Table, _} = ats_mnesia_tables:find(Tab),
            true = ats:Function(Table, Argument),
            ok;
        [forgets_deletes] when Function =:= delete ->
            ok;
        _ ->
            apply(ats_mnesia, Function, Arguments)
    end.

receive_data(Data, Alias, Tab, Sender, State) ->
    Taken =
        case is_planted(loses_an_object) of
            true when is_list(Data) -> tl(Data);
            _ -> Data
        end,
    ats_mnesia:receive_data(Taken, Alias, Tab, Sender, State).

receive_done(Alias, Tab, Sender, State) ->
    Stale =
        case is_planted(keeps_stale_objects) of
            true -> ats_mnesia:select(Alias, Tab, [{'_', [], ['$_']}]);
            false -> []
        end,
    ok = ats_mnesia:receive_done(Alias, Tab, Sender, State),
    lists:foreach(
        fun(Object) ->
            [] =/= ats_mnesia:lookup(Alias, Tab, element(2, Object)) orelse
                ats_mnesia:insert(Alias, Tab, Object)
        end,
        Stale
    ).

%% The sender must know its like.
sender_init(Alias, Tab, {ext, Remote, ?MODULE}, Receiver) ->
    ats_mnesia:sender_init(Alias, Tab, {ext, Remote, ats_mnesia}, Receiver);
sender_init(Alias, Tab, Remote, Receiver) ->
    ats_mnesia:sender_init(Alias, Tab, Remote, Receiver).

%% ----- without -----

init_backend() -> ats_mnesia:init_backend().
add_aliases(Aliases) -> ats_mnesia:add_aliases(Aliases).
remove_aliases(Aliases) -> ats_mnesia:remove_aliases(Aliases).
semantics(Alias, Item) -> ats_mnesia:semantics(Alias, Item).
check_definition(Alias, Tab, Nodes, Props) -> ats_mnesia:check_definition(Alias, Tab, Nodes, Props).
real_suffixes() -> ats_mnesia:real_suffixes().
tmp_suffixes() -> ats_mnesia:tmp_suffixes().
create_table(Alias, Tab, Props) -> ats_mnesia:create_table(Alias, Tab, Props).
load_table(Alias, Tab, Reason, Props) -> ats_mnesia:load_table(Alias, Tab, Reason, Props).
close_table(Alias, Tab) -> ats_mnesia:close_table(Alias, Tab).
sync_close_table(Alias, Tab) -> ats_mnesia:sync_close_table(Alias, Tab).
delete_table(Alias, Tab) -> ats_mnesia:delete_table(Alias, Tab).
is_index_consistent(Alias, Tab) -> ats_mnesia:is_index_consistent(Alias, Tab).
index_is_consistent(Alias, Tab, Is) -> ats_mnesia:index_is_consistent(Alias, Tab, Is).
receiver_first_message(Sender, Message, Alias, Tab) ->
    ats_mnesia:receiver_first_message(Sender, Message, Alias, Tab).
validate_key(A, T, Name, Arity, Type, Key) -> ats_mnesia:validate_key(A, T, Name, Arity, Type, Key).
validate_record(A, T, Name, Arity, Type, Object) ->
    ats_mnesia:validate_record(A, T, Name, Arity, Type, Object).
info(Alias, Tab, Item) -> ats_mnesia:info(Alias, Tab, Item).
fixtable(Alias, Tab, Fix) -> ats_mnesia:fixtable(Alias, Tab, Fix).
update_counter(Alias, Tab, Key, By) -> ats_mnesia:update_counter(Alias, Tab, Key, By).
lookup(Alias, Tab, Key) -> ats_mnesia:lookup(Alias, Tab, Key).
first(Alias, Tab) -> ats_mnesia:first(Alias, Tab).
last(Alias, Tab) -> ats_mnesia:last(Alias, Tab).
next(Alias, Tab, Key) -> ats_mnesia:next(Alias, Tab, Key).
prev(Alias, Tab, Key) -> ats_mnesia:prev(Alias, Tab, Key).
slot(Alias, Tab, Slot) -> ats_mnesia:slot(Alias, Tab, Slot).
select(Continuation) -> ats_mnesia:select(Continuation).
select(Alias, Tab, Spec) -> ats_mnesia:select(Alias, Tab, Spec).
select(Alias, Tab, Spec, Limit) -> ats_mnesia:select(Alias, Tab, Spec, Limit).
repair_continuation(Continuation, Spec) -> ats_mnesia:repair_continuation(Continuation, Spec).

%% The storage types that the test suites of mnesia know, as those of ats_mnesia. The suites bring a
%% module of this name, whose place this one takes: so their cases with tables of an external type
%% run on ours. Besides the names of the types nothing is changed on the way.
-module(ext_test).

-behaviour(mnesia_backend_type).

-export([init_backend/0, add_aliases/1, remove_aliases/1, semantics/2, check_definition/4]).
-export([real_suffixes/0, tmp_suffixes/0]).
-export([create_table/3, load_table/4, close_table/2, sync_close_table/2, delete_table/2]).
-export([is_index_consistent/2, index_is_consistent/3]).
-export([sender_init/4, receiver_first_message/4, receive_data/5, receive_done/4]).
-export([validate_key/6, validate_record/6, info/3, fixtable/3]).
-export([insert/3, delete/3, match_delete/3, update_counter/4]).
-export([lookup/3, first/2, last/2, next/3, prev/3, slot/3]).
-export([select/1, select/3, select/4, repair_continuation/2]).

-define(OURS, ats_mnesia).

%% Erlang/OTP 25 has the first two, 27 the others.
ours(ext_ets) -> ats_ram;
ours(ext_dets) -> dats_disc;
ours(ext_ram_copies) -> ats_ram;
ours(ext_disc_only_copies) -> dats_disc;
ours(Other) -> Other.

init_backend() -> ?OURS:init_backend().

add_aliases(Aliases) -> ?OURS:add_aliases(lists:map(fun ours/1, Aliases)).

remove_aliases(Aliases) -> ?OURS:remove_aliases(lists:map(fun ours/1, Aliases)).

semantics(Alias, Item) -> ?OURS:semantics(ours(Alias), Item).

check_definition(Alias, Tab, Nodes, Properties) ->
    ?OURS:check_definition(ours(Alias), Tab, Nodes, Properties).

real_suffixes() -> ?OURS:real_suffixes().

tmp_suffixes() -> ?OURS:tmp_suffixes().

create_table(Alias, Tab, Properties) -> ?OURS:create_table(ours(Alias), Tab, Properties).

load_table(Alias, Tab, Reason, Properties) ->
    ?OURS:load_table(ours(Alias), Tab, Reason, Properties).

close_table(Alias, Tab) -> ?OURS:close_table(ours(Alias), Tab).

sync_close_table(Alias, Tab) -> ?OURS:sync_close_table(ours(Alias), Tab).

delete_table(Alias, Tab) -> ?OURS:delete_table(ours(Alias), Tab).

is_index_consistent(Alias, Tab) -> ?OURS:is_index_consistent(ours(Alias), Tab).

index_is_consistent(Alias, Tab, IsConsistent) ->
    ?OURS:index_is_consistent(ours(Alias), Tab, IsConsistent).

sender_init(Alias, Tab, {ext, Remote, ?MODULE}, Pid) ->
    ?OURS:sender_init(ours(Alias), Tab, {ext, ours(Remote), ?OURS}, Pid);
sender_init(Alias, Tab, Remote, Pid) ->
    ?OURS:sender_init(ours(Alias), Tab, Remote, Pid).

receiver_first_message(Sender, Message, Alias, Tab) ->
    ?OURS:receiver_first_message(Sender, Message, ours(Alias), Tab).

receive_data(Data, Alias, Tab, Sender, Receiver) ->
    ?OURS:receive_data(Data, ours(Alias), Tab, Sender, Receiver).

receive_done(Alias, Tab, Sender, Receiver) ->
    ?OURS:receive_done(ours(Alias), Tab, Sender, Receiver).

validate_key(Alias, Tab, Name, Arity, Type, Key) ->
    ?OURS:validate_key(ours(Alias), Tab, Name, Arity, Type, Key).

validate_record(Alias, Tab, Name, Arity, Type, Object) ->
    ?OURS:validate_record(ours(Alias), Tab, Name, Arity, Type, Object).

info(Alias, Tab, Item) -> ?OURS:info(ours(Alias), Tab, Item).

fixtable(Alias, Tab, Fix) -> ?OURS:fixtable(ours(Alias), Tab, Fix).

insert(Alias, Tab, Object) -> ?OURS:insert(ours(Alias), Tab, Object).

delete(Alias, Tab, Key) -> ?OURS:delete(ours(Alias), Tab, Key).

match_delete(Alias, Tab, Pattern) -> ?OURS:match_delete(ours(Alias), Tab, Pattern).

update_counter(Alias, Tab, Key, Increment) ->
    ?OURS:update_counter(ours(Alias), Tab, Key, Increment).

lookup(Alias, Tab, Key) -> ?OURS:lookup(ours(Alias), Tab, Key).

first(Alias, Tab) -> ?OURS:first(ours(Alias), Tab).

last(Alias, Tab) -> ?OURS:last(ours(Alias), Tab).

next(Alias, Tab, Key) -> ?OURS:next(ours(Alias), Tab, Key).

prev(Alias, Tab, Key) -> ?OURS:prev(ours(Alias), Tab, Key).

slot(Alias, Tab, Position) -> ?OURS:slot(ours(Alias), Tab, Position).

select(Continuation) -> ?OURS:select(Continuation).

select(Alias, Tab, Spec) -> ?OURS:select(ours(Alias), Tab, Spec).

select(Alias, Tab, Spec, Limit) -> ?OURS:select(ours(Alias), Tab, Spec, Limit).

repair_continuation(Continuation, Spec) -> ?OURS:repair_continuation(Continuation, Spec).

%% The callbacks of a storage type of Mnesia, each of which passes its name and its arguments on to
%% `callback/2' of the module that includes this.
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

init_backend() -> callback(init_backend, []).
add_aliases(A) -> callback(add_aliases, [A]).
remove_aliases(A) -> callback(remove_aliases, [A]).
semantics(A, B) -> callback(semantics, [A, B]).
check_definition(A, B, C, D) -> callback(check_definition, [A, B, C, D]).
real_suffixes() -> callback(real_suffixes, []).
tmp_suffixes() -> callback(tmp_suffixes, []).
create_table(A, B, C) -> callback(create_table, [A, B, C]).
load_table(A, B, C, D) -> callback(load_table, [A, B, C, D]).
close_table(A, B) -> callback(close_table, [A, B]).
sync_close_table(A, B) -> callback(sync_close_table, [A, B]).
delete_table(A, B) -> callback(delete_table, [A, B]).
is_index_consistent(A, B) -> callback(is_index_consistent, [A, B]).
index_is_consistent(A, B, C) -> callback(index_is_consistent, [A, B, C]).
sender_init(A, B, C, D) -> callback(sender_init, [A, B, C, D]).
receiver_first_message(A, B, C, D) -> callback(receiver_first_message, [A, B, C, D]).
receive_data(A, B, C, D, E) -> callback(receive_data, [A, B, C, D, E]).
receive_done(A, B, C, D) -> callback(receive_done, [A, B, C, D]).
validate_key(A, B, C, D, E, F) -> callback(validate_key, [A, B, C, D, E, F]).
validate_record(A, B, C, D, E, F) -> callback(validate_record, [A, B, C, D, E, F]).
info(A, B, C) -> callback(info, [A, B, C]).
fixtable(A, B, C) -> callback(fixtable, [A, B, C]).
insert(A, B, C) -> callback(insert, [A, B, C]).
delete(A, B, C) -> callback(delete, [A, B, C]).
match_delete(A, B, C) -> callback(match_delete, [A, B, C]).
update_counter(A, B, C, D) -> callback(update_counter, [A, B, C, D]).
lookup(A, B, C) -> callback(lookup, [A, B, C]).
first(A, B) -> callback(first, [A, B]).
last(A, B) -> callback(last, [A, B]).
next(A, B, C) -> callback(next, [A, B, C]).
prev(A, B, C) -> callback(prev, [A, B, C]).
slot(A, B, C) -> callback(slot, [A, B, C]).
select(A) -> callback(select, [A]).
select(A, B, C) -> callback(select, [A, B, C]).
select(A, B, C, D) -> callback(select, [A, B, C, D]).
repair_continuation(A, B) -> callback(repair_continuation, [A, B]).

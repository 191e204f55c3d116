%% @private Tables that do nothing, as quickly as a function can.
-module(ats_bench_nothing).

-export([new/2, delete/1, info/2, insert/2, insert_new/2, lookup/2, lookup_element/3, member/2,
         take/2, delete/2, delete_object/2, first/1, next/2, tab2list/1, update_element/3,
         update_counter/3, update_counter/4, select_count/2]).

-spec new(atom(), list()) -> atom().
new(Name, _) -> Name.

-spec delete(atom()) -> true.
delete(_) -> true.

-spec info(atom(), size | memory) -> 0.
info(_, _) -> 0.

-spec insert(atom(), tuple() | [tuple()]) -> true.
insert(_, _) -> true.

-spec insert_new(atom(), tuple()) -> false.
insert_new(_, _) -> false.

-spec lookup(atom(), term()) -> [].
lookup(_, _) -> [].

-spec lookup_element(atom(), term(), pos_integer()) -> 0.
lookup_element(_, _, _) -> 0.

-spec member(atom(), term()) -> false.
member(_, _) -> false.

-spec take(atom(), term()) -> [].
take(_, _) -> [].

-spec delete(atom(), term()) -> true.
delete(_, _) -> true.

-spec delete_object(atom(), tuple()) -> true.
delete_object(_, _) -> true.

-spec first(atom()) -> '$end_of_table'.
first(_) -> '$end_of_table'.

-spec next(atom(), term()) -> '$end_of_table'.
next(_, _) -> '$end_of_table'.

-spec tab2list(atom()) -> [].
tab2list(_) -> [].

-spec update_element(atom(), term(), tuple() | [tuple()]) -> true.
update_element(_, _, _) -> true.

-spec update_counter(atom(), term(), integer() | [tuple()]) -> 0.
update_counter(_, _, _) -> 0.

-spec update_counter(atom(), term(), integer(), tuple()) -> 0.
update_counter(_, _, _, _) -> 0.

-spec select_count(atom(), ets:match_spec()) -> 0.
select_count(_, _) -> 0.

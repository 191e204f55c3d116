%% @private Tables that do nothing, as quickly as a function can.
-module(ats_bench_nothing).

-export([new/2, delete/1, info/2, insert/2, lookup/2, member/2, delete/2, delete_object/2, next/2,
         update_counter/3, update_counter/4, select_count/2]).

-spec new(atom(), list()) -> atom().
new(Name, _) -> Name.

-spec delete(atom()) -> true.
delete(_) -> true.

-spec info(atom(), size | memory) -> 0.
info(_, _) -> 0.

-spec insert(atom(), tuple() | [tuple()]) -> true.
insert(_, _) -> true.

-spec lookup(atom(), term()) -> [].
lookup(_, _) -> [].

-spec member(atom(), term()) -> false.
member(_, _) -> false.

-spec delete(atom(), term()) -> true.
delete(_, _) -> true.

-spec delete_object(atom(), tuple()) -> true.
delete_object(_, _) -> true.

-spec next(atom(), term()) -> '$end_of_table'.
next(_, _) -> '$end_of_table'.

-spec update_counter(atom(), term(), integer()) -> 0.
update_counter(_, _, _) -> 0.

-spec update_counter(atom(), term(), integer(), tuple()) -> 0.
update_counter(_, _, _, _) -> 0.

-spec select_count(atom(), ets:match_spec()) -> 0.
select_count(_, _) -> 0.

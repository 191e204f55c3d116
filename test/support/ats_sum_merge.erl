%% A merge that adds numbers, unless the key tells it to do harm. Long binaries may stand for
%% numbers: the last one is kept.
-module(ats_sum_merge).

-behaviour(ats_merge).

-export([merge/3, short_circuit/2, delete/2, version/0]).

-spec merge(term(), term(), term()) -> term().
merge(sleeps, _, _) -> timer:sleep(infinity);
merge(loops, A, B) -> merge(loops, B, A);
merge(_, A, B) when is_binary(A), is_binary(B) -> B;
merge(_, A, B) -> A + B.

-spec short_circuit(term(), term()) -> boolean().
short_circuit(_, _) -> false.

-spec delete(term(), term()) -> boolean().
delete(_, Value) -> Value =:= 0.

-spec version() -> ats_merge:version().
version() -> 1.

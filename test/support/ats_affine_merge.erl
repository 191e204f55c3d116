%% A merge that does not commute: values are maps {A, B} of numbers, X -> A * X + B modulo a prime,
%% and merged one after the other. The map that is none, {1, 0}, counts as missing, and one with A =
%% 0 hides all before it. A key can tell it to fail.
-module(ats_affine_merge).

-behaviour(ats_merge).

-export([merge/3, short_circuit/2, delete/2, version/0]).

-define(PRIME, 1009).

-spec merge(term(), term(), term()) -> term().
merge({fails, raise}, _, _) -> error(told_to);
merge({fails, hang}, _, _) -> timer:sleep(infinity);
merge({fails, eat}, A, B) -> eat([A, B]);
merge(_, {A, B}, {C, D}) -> {A * C rem ?PRIME, (B * C + D) rem ?PRIME}.

eat(Terms) -> eat([Terms | lists:duplicate(1000, hd(Terms))]).

-spec short_circuit(term(), term()) -> boolean().
short_circuit({fails, _}, _) -> false;
short_circuit(_, {A, _}) -> A =:= 0.

-spec delete(term(), term()) -> boolean().
delete({fails, delete}, _) -> nonsense;
delete({fails, _}, _) -> false;
delete(_, Map) -> Map =:= {1, 0}.

-spec version() -> ats_merge:version().
version() -> 3.

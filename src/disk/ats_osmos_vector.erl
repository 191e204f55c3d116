%% @private @doc The merge of osmos that adds tuples of integers, element by element. If one has
%% more elements than the other, these stay as they are. The value `delete' deletes.
-module(ats_osmos_vector).

-behaviour(ats_merge).

-export([merge/3, short_circuit/2, delete/2, version/0]).

-spec merge(term(), term(), term()) -> term().
merge(_Key, Earlier, Later) when is_tuple(Earlier), is_tuple(Later) ->
    list_to_tuple(add(tuple_to_list(Earlier), tuple_to_list(Later)));
merge(_Key, _Earlier, delete) ->
    delete;
merge(_Key, delete, Later) ->
    Later.

-spec add([integer()], [integer()]) -> [integer()].
add([A | Earlier], [B | Later]) -> [A + B | add(Earlier, Later)];
add([], Later) -> Later;
add(Earlier, []) -> Earlier.

-spec short_circuit(term(), term()) -> boolean().
short_circuit(_Key, Value) -> Value =:= delete.

-spec delete(term(), term()) -> boolean().
delete(_Key, Value) -> Value =:= delete.

-spec version() -> ats_merge:version().
version() -> 1.

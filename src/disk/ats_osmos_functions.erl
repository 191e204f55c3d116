%% @private
%% @doc The functions of osmos that formats of a program may have beside functions of its own.
%%
%% Tables remember them by these names, so none may become another.
-module(ats_osmos_functions).

-export([merge_return_later/3, merge_uint64_sum_delete/3, merge_uint64_vector_sum_delete/3]).
-export([always/2, never/2, value_is_delete/2]).

-spec merge_return_later(term(), term(), term()) -> term().
merge_return_later(_Key, _Earlier, Later) -> Later.

-spec merge_uint64_sum_delete(term(), delete | integer(), delete | integer()) ->
          delete | integer().
merge_uint64_sum_delete(_Key, _Earlier, delete) -> delete;
merge_uint64_sum_delete(_Key, delete, Later) -> Later;
merge_uint64_sum_delete(_Key, Earlier, Later) -> Earlier + Later.

-spec merge_uint64_vector_sum_delete(term(), delete | tuple(), delete | tuple()) ->
          delete | tuple().
merge_uint64_vector_sum_delete(Key, Earlier, Later) -> ats_osmos_vector:merge(Key, Earlier, Later).

-spec always(term(), term()) -> true.
always(_Key, _Value) -> true.

-spec never(term(), term()) -> false.
never(_Key, _Value) -> false.

-spec value_is_delete(term(), term()) -> boolean().
value_is_delete(_Key, Value) -> Value =:= delete.

%% @private
%% @doc Counters that are floats, as `dets' has them.
%%
%% The native library adds integers. A float is read, and its object replaced if nobody has changed
%% it meanwhile.
-module(ats_disk_number).

-export([add/3]).

%% @doc Adds to a number inside the object with a key, and returns the sum. Integers are added as in
%% `ats'.
-spec add(ats:tid(), Key :: term(), term()) -> number() | [integer()].
add(Table, Key, UpdateOp) ->
    case ats_merge_access:try_change(Table, update_counter, [Key, UpdateOp]) of
        {ok, Sum} ->
            Sum;
        {refused, Cause} ->
            case number(ats_nif:disk_kind(Table), UpdateOp) of
                none -> erlang:error({ats_error, Cause});
                Number -> replace(Table, Key, Number, Cause)
            end
    end.

-type addend() :: {KeyPos :: pos_integer(), Pos :: pos_integer(), number()}.

%% Returns the number to be added, and the position. That of the key counts for integers alone.
-spec number({ats:table_type(), KeyPos :: pos_integer(), ats_nif:fixed()}, term()) ->
          addend() | none.
number({Type, KeyPos, _Fixed}, Operation) ->
    IsBag = ats_disk_options:is_bag(Type),
    case Operation of
        _ when IsBag -> none;
        {KeyPos, _} -> none;
        Number when is_number(Number) -> {KeyPos, KeyPos + 1, Number};
        {Pos, Number} when is_integer(Pos), Pos > 0, is_number(Number) -> {KeyPos, Pos, Number};
        _ -> none
    end.

-spec replace(ats:tid(), term(), addend(), ats_errors:cause()) -> number().
replace(Table, Key, {KeyPos, Pos, Number}, Cause) ->
    case ats_merge_access:lookup(Table, Key) of
        [Object] when Pos =< tuple_size(Object), is_number(element(Pos, Object)) ->
            case sum(element(Pos, Object), Number) of
                none ->
                    erlang:error({ats_error, Cause});
                Sum ->
                    New = setelement(Pos, Object, Sum),
                    case exchange(Table, exchange_spec(KeyPos, Object, New)) of
                        1 -> Sum;
                        0 -> add(Table, Key, {Pos, Number})
                    end
            end;
        _ ->
            erlang:error({ats_error, Cause})
    end.

%% `none' if there is no such float.
-spec sum(number(), number()) -> number() | none.
sum(A, B) ->
    try A + B
    catch error:badarith -> none
    end.

-spec exchange(ats:tid(), ats:match_spec()) -> 0 | 1.
exchange(Table, Exchange) ->
    case ats_merge_access:is_merged_by_program(Table) of
        false -> ats_select:replace(Table, Exchange);
        true -> ats_merge_access:replace(Table, Exchange)
    end.

%% Replaces this object, if it is still there; reads one key. The body must show that the key stays.
-spec exchange_spec(KeyPos :: pos_integer(), tuple(), tuple()) -> ats:match_spec().
exchange_spec(KeyPos, Object, New) ->
    Head = setelement(KeyPos, erlang:make_tuple(tuple_size(Object), '_'), '$1'),
    Elements = list_to_tuple([{const, Element} || Element <- tuple_to_list(New)]),
    [{Head, [{'=:=', '$1', {const, element(KeyPos, Object)}}, {'=:=', '$_', {const, Object}}],
      [{setelement(KeyPos, Elements, '$1')}]}].

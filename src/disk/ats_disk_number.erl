%% @private
%% @doc Counters that are floats, as `dets' has them.
%%
%% The native library adds integers. A float is read, and its object replaced if nobody has changed
%% it meanwhile.
-module(ats_disk_number).

-export([add/3]).

%% @doc Adds to a number inside the object with a key, and returns the sum. What is no float is
%% added as in `ats'.
-spec add(ats:tid(), Key :: term(), term()) -> number() | [integer()].
add(Table, Key, UpdateOp) ->
    try ats_nif:update_counter(Table, Key, UpdateOp)
    catch
        error:{ats_error, Cause}:Stack ->
            case number(Table, UpdateOp) of
                none -> erlang:raise(error, {ats_error, Cause}, Stack);
                {Pos, Number} -> replace(Table, Key, Pos, Number, Cause)
            end
    end.

%% The number to be added, and the position. That of the key counts for integers alone.
-spec number(ats:tid(), term()) -> {pos_integer(), number()} | none.
number(Table, Operation) ->
    {Type, KeyPos, _Fixed} = ats_nif:disk_kind(Table),
    IsBag = ats_disk_options:is_bag(Type),
    case Operation of
        _ when IsBag -> none;
        {KeyPos, _} -> none;
        Number when is_number(Number) -> {KeyPos + 1, Number};
        {Pos, Number} when is_integer(Pos), Pos > 0, is_number(Number) -> {Pos, Number};
        _ -> none
    end.

-spec replace(ats:tid(), term(), pos_integer(), number(), ats_errors:cause()) -> number().
replace(Table, Key, Pos, Number, Cause) ->
    case ats_nif:lookup(Table, Key) of
        [Object] when Pos =< tuple_size(Object), is_number(element(Pos, Object)) ->
            case sum(element(Pos, Object), Number) of
                none ->
                    erlang:error({ats_error, Cause});
                Sum ->
                    New = setelement(Pos, Object, Sum),
                    case ats_select:replace(Table, exchange(Table, Object, New)) of
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

%% Replaces this object, if it is still there; reads one key. The body must show that the key stays.
-spec exchange(ats:tid(), tuple(), tuple()) -> ats:match_spec().
exchange(Table, Object, New) ->
    {_Type, KeyPos, _Fixed} = ats_nif:disk_kind(Table),
    Head = setelement(KeyPos, erlang:make_tuple(tuple_size(Object), '_'), '$1'),
    Elements = list_to_tuple([{const, Element} || Element <- tuple_to_list(New)]),
    [{Head, [{'=:=', '$1', {const, element(KeyPos, Object)}}, {'=:=', '$_', {const, Object}}],
      [{setelement(KeyPos, Elements, '$1')}]}].

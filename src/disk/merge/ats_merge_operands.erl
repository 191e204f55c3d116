%% @private
%% @doc The values of a key, one behind the other, and how they become one.
%%
%% The store keeps a *chain* of objects `{Key, Value}', each in the external term format:
%%
%% ```
%%   chain   = object, if nothing older is merged with it | operand | operand | ...
%%   object  = length, 4 bytes | bytes
%%   operand = mark, 4 bytes | object      least significant byte first; marks are above lengths
%% '''
%%
%% {@link collapse/3} takes one object after the other, so that only a few are in memory as terms,
%% however long the chain is: it keeps values of growing numbers of objects on a stack, as a
%% binary counter has digits, and merges two of the same number. Of values that are put one behind
%% the other each part is copied O(log n) times. The oldest value, which is often the largest, is
%% merged last.
%%
%% If the module fails on the way, the merged parts take the place of the beginning of the chain: at
%% most one object for each digit. A long chain tells of such parts on the way, too, at each power
%% of two, in case the module does not return. So no attempt is in vain.
-module(ats_merge_operands).

-export([collapse/3, collapse/5, objects/1, key/1, object/1]).

-export_type([chain/0, outcome/0, part/0]).

-type chain() :: binary().
-type outcome() :: {put, chain()} | missing | {failed, ats_merge:failure(), part() | none}.
%% The result of a chain: one object, or nothing.
-type part() :: {Expected :: chain(), New :: chain()}.
%% The beginning of a chain, and the chain that takes its place.

-record(state, {module :: ats_merge:program(),
                formats :: ats_format:formats(),
                %% Called before each call of the module.
                tick :: fun(() -> term()),
                %% Called with parts on the way.
                told :: fun((part()) -> term()),
                %% The key that the module is told, and the one that was written last.
                key :: term(),
                last_key :: term(),
                oldest :: term(),
                %% The bytes of the oldest object with its mark.
                oldest_bytes :: chain(),
                %% `{Digit, Value}', the newest first.
                stack = [] :: [{non_neg_integer(), term()}],
                count = 1 :: pos_integer()}).

-define(UNKNOWN, 16#FFFFFFFF).
-define(PRESENT, 16#FFFFFFFE).
%% The least number of objects that a replaced beginning must save.
-define(WORTH, 64).
%% The number of objects that are merged before a part is told of.
-define(FIRST_PART, 4096).

%% @equiv collapse(Merge, none, Chain, Tick, fun(_Part) -> ok end)
-spec collapse(ats_merge:merge(), chain(), Tick :: fun(() -> term())) -> outcome().
collapse(Merge, Chain, Tick) ->
    collapse(Merge, none, Chain, Tick, fun(_Part) -> ok end).

%% @doc Merges the values of a chain, which have these formats, in the calling process, and never
%% raises an exception. `Tick' is called before each call of the module, and `Told' with the part
%% that is merged so far.
-spec collapse(ats_merge:merge(), ats_format:formats(), chain(), Tick :: fun(() -> term()),
               Told :: fun((part()) -> term())) -> outcome().
collapse(Merge, Formats, Chain, Tick, Told) ->
    try collapse_values(Merge, Formats, Chain, Tick, Told)
    catch
        throw:{ats_merge, Failure} -> {failed, Failure, none};
        error:{ats_error, {format_failed, Failure}} -> {failed, Failure, none};
        error:{ats_error, {value_format, Failure}} -> {failed, Failure, none}
    end.

-spec collapse_values(ats_merge:merge(), ats_format:formats(), chain(), fun(() -> term()),
                      fun((part()) -> term())) -> outcome().
collapse_values({convert, Function}, Formats, Chain, _Tick, _Told) when is_function(Function) ->
    Objects = objects(Chain),
    Key = ats_format:decode_key(Formats, key(Chain)),
    Values = [value(convert, Object, Formats) || Object <- Objects],
    case ats_merge:convert(Function, Key, Values) of
        {value, Value} ->
            {put, object({element(1, lists:last(Objects)), ats_format:value(Formats, Value)})};
        delete ->
            missing
    end;
collapse_values({Module, Version}, Formats, Chain, Tick, Told) ->
    {Object, Rest} = next(Chain),
    Oldest = binary_to_term(Object),
    State = #state{module = Module, formats = Formats, tick = Tick, told = Told,
                   key = ats_format:decode_key(Formats, element(1, Oldest)),
                   last_key = element(1, Oldest), oldest = value(Module, Oldest, Formats),
                   oldest_bytes = binary:part(Chain, 0, byte_size(Chain) - byte_size(Rest))},
    _ = Tick(),
    ok = ats_merge:check_version(Module, Version),
    Outcome = step(Rest, Chain, State),
    ok = ats_merge:check_version(Module, Version),
    Outcome.

-spec step(chain(), chain(), #state{}) -> outcome().
step(<<>>, Chain, State) ->
    %% The stack stays as it is if that fails.
    try finish(State)
    catch throw:{ats_merge, Failure} -> {failed, Failure, part(<<>>, Chain, State)}
    end;
step(Rest, Chain, #state{module = Module, formats = Formats, stack = Stack,
                         count = Count} = State) ->
    {Object, Behind} = next(Rest),
    Term = binary_to_term(Object),
    try push(0, value(Module, Term, Formats), Stack, State) of
        NewStack ->
            NewState = State#state{stack = NewStack, last_key = element(1, Term),
                                   count = Count + 1},
            _ = is_power(Count) andalso (State#state.told)(part(Behind, Chain, NewState)),
            step(Behind, Chain, NewState)
    catch
        throw:{ats_merge, Failure} -> {failed, Failure, part(Rest, Chain, State)}
    end.

-spec is_power(pos_integer()) -> boolean().
is_power(Count) ->
    Count >= ?FIRST_PART andalso Count band (Count - 1) =:= 0.

%% Returns the value of an object, which has none if it was inserted without a second element.
-spec value(module(), tuple(), ats_format:formats()) -> term().
value(_Module, Term, Formats) when tuple_size(Term) >= 2 ->
    ats_format:decode_value(Formats, element(2, Term));
value(Module, _Term, _Formats) ->
    throw({ats_merge, {Module, any, no_value}}).

-spec push(non_neg_integer(), term(), [{non_neg_integer(), term()}], #state{}) ->
          [{non_neg_integer(), term()}].
push(Digit, Value, [{Digit, Earlier} | Stack], State) ->
    push(Digit + 1, merge(Earlier, Value, State), Stack, State);
push(Digit, Value, Stack, _State) ->
    [{Digit, Value} | Stack].

-spec finish(#state{}) -> outcome().
finish(#state{module = Module, key = Key, oldest = Oldest, stack = Stack} = State) ->
    Value = case Stack of
                [] ->
                    Oldest;
                [{_, Newest} | Older] ->
                    Merge = fun({_, Earlier}, Later) -> merge(Earlier, Later, State) end,
                    merge(Oldest, lists:foldl(Merge, Newest, Older), State)
            end,
    _ = (State#state.tick)(),
    case ats_merge:is(Module, delete, Key, Value) of
        true -> missing;
        false -> {put, make_stored(Value, State)}
    end.

%% Returns the object with a value, as the table keeps it.
-spec make_stored(term(), #state{}) -> chain().
make_stored(Value, #state{formats = Formats, last_key = Key}) ->
    object({Key, ats_format:value(Formats, Value)}).

-spec merge(term(), term(), #state{}) -> term().
merge(Earlier, Later, #state{module = Module, key = Key, tick = Tick}) ->
    _ = Tick(),
    ats_merge:merge(Module, Key, Earlier, Later).

%% Returns the part that takes the place of all but the rest of a chain, if that is worth it.
-spec part(chain(), chain(), #state{}) -> part() | none.
part(_Rest, _Chain, #state{stack = Stack, count = Count}) when Count - length(Stack) < ?WORTH ->
    none;
part(Rest, Chain, #state{stack = Stack, oldest_bytes = Oldest} = State) ->
    Expected = binary:part(Chain, 0, byte_size(Chain) - byte_size(Rest)),
    Operand = fun({_, Value}) -> [<<?UNKNOWN:32/little>>, make_stored(Value, State)] end,
    Operands = lists:map(Operand, lists:reverse(Stack)),
    {Expected, iolist_to_binary([Oldest | Operands])}.

%% Returns the bytes of the first object, and the rest of the chain.
-spec next(chain()) -> {binary(), chain()}.
next(<<Mark:32/little, Length:32/little, Object:Length/binary, Rest/binary>>)
  when Mark >= ?PRESENT ->
    {Object, Rest};
next(<<Length:32/little, Object:Length/binary, Rest/binary>>) ->
    {Object, Rest}.

%% @doc Returns a chain of one object, with which nothing older is merged.
-spec object(tuple()) -> chain().
object(Object) ->
    Bytes = term_to_binary(Object),
    <<(byte_size(Bytes)):32/little, Bytes/binary>>.

%% @doc Returns the objects of a chain, from the oldest to the newest.
-spec objects(chain()) -> [tuple()].
objects(<<>>) ->
    [];
objects(Chain) ->
    {Object, Rest} = next(Chain),
    [binary_to_term(Object) | objects(Rest)].

%% @doc Returns the key, as it was written first.
-spec key(chain()) -> term().
key(Chain) ->
    {Object, _} = next(Chain),
    element(1, binary_to_term(Object)).

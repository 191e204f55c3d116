%% @private
%% @doc Going through all objects of a table on disk, as they are at one moment.
%%
%% The native library gives the bytes of the objects of many keys at once, of which the caller
%% makes terms: so the objects that are in memory are those of one chunk.
-module(ats_disk_walk).

-export([fold/4, fold_chunks/4, list/1, take_all/1, count/3, nth/4]).
-export([chunk/3, step/3, key/3, key/4, objects/3, objects/4, slot/2]).

%% The most objects that a native function passes: more than a table has.
-define(ALL, ((1 bsl 59) - 1)).

%% @doc Folds a function over all objects. Those of one key come oldest first on the way up.
-spec fold(fun((Object :: tuple(), Acc) -> Acc), Acc, ats:tid(), up | down) -> Acc.
fold(Function, Acc, Table, Direction) ->
    OfChunk = fun(Objects, Before) -> each(Function, Before, Objects) end,
    fold_chunks(OfChunk, Acc, Table, Direction).

%% Folds like `lists:foldl/3', but does not look at the function if there are no objects.
-spec each(fun((tuple(), Acc) -> Acc), Acc, [tuple()]) -> Acc.
each(_Function, Acc, []) -> Acc;
each(Function, Acc, [Object | Objects]) -> each(Function, Function(Object, Acc), Objects).

%% @doc Folds a function over lists of objects, some of which may be empty.
-spec fold_chunks(fun(([tuple()], Acc) -> Acc), Acc, ats:tid(), up | down) -> Acc.
fold_chunks(Function, Acc, Table, Direction) ->
    ats_disk_reading:of_table(
      Table, fun(Snapshot) -> chunks(Function, Acc, Snapshot, Direction, start) end).

-spec chunks(fun(([tuple()], Acc) -> Acc), Acc, ats:tid(), up | down, start | (Key :: binary())) ->
          Acc.
chunks(Function, Before, Snapshot, Direction, Last) ->
    {Tag, Bytes, Next} = ats_nif:disk_chunk(Snapshot, Direction, Last),
    Acc = Function(terms(Bytes), Before),
    case Tag of
        done ->
            Acc;
        more ->
            chunks(Function, Acc, Snapshot, Direction, Next);
        pending ->
            ok = ats_merge_pending:resolve(Snapshot),
            chunks(Function, Acc, Snapshot, Direction, Next)
    end.

%% @doc Returns all objects, those of one key oldest first.
-spec list(ats:tid()) -> [tuple()].
list(Table) ->
    ats_disk_reading:of_table(Table, fun list_of/1).

-spec list_of(ats:tid()) -> [tuple()].
list_of(Snapshot) ->
    chunks(fun lists:reverse/2, [], Snapshot, down, start).

%% @doc Removes all objects at one moment, and returns them like {@link list/1}.
-spec take_all(ats:tid()) -> [tuple()].
take_all(Table) ->
    Taken = ats_nif:disk_take_all(Table),
    try list_of(Taken)
    after ats_nif:delete(Taken)
    end.

%% @doc Returns how many objects of a snapshot are between two cuts. O(that number).
-spec count(ats:tid(), ats_nif:cut(), ats_nif:cut()) -> non_neg_integer().
count(Snapshot, From, To) ->
    skip(Snapshot, From, To, up, ?ALL, 0).

%% @doc Returns the N-th object of a snapshot between two cuts, from 1, or from the end, from -1.
%% O(N).
-spec nth(ats:tid(), ats_nif:cut(), ats_nif:cut(), N :: integer()) -> tuple() | '$end_of_table'.
nth(Snapshot, From, To, N) ->
    Direction = case N > 0 of
                    true -> up;
                    false -> down
                end,
    case skip(Snapshot, From, To, Direction, abs(N) - 1, 0) of
        Object when is_tuple(Object) -> Object;
        _Number -> '$end_of_table'
    end.

%% Returns the object behind so many others, or the number of all if there are fewer.
-spec skip(ats:tid(), ats_nif:cut(), ats_nif:cut(), up | down, Left :: non_neg_integer(),
           Passed :: non_neg_integer()) -> tuple() | non_neg_integer().
skip(Snapshot, From, To, Direction, Left, Passed) ->
    {Tag, More, Reached} = ats_nif:disk_skip(Snapshot, From, To, Direction, Left),
    case Tag of
        object ->
            Reached;
        done ->
            Passed + More;
        _ ->
            Tag =:= more orelse ats_merge_pending:resolve(Snapshot),
            {NewFrom, NewTo} = case {Reached, Direction} of
                                   {none, _} -> {From, To};
                                   {_, up} -> {{bytes, Reached}, To};
                                   {_, down} -> {From, {bytes, Reached}}
                               end,
            skip(Snapshot, NewFrom, NewTo, Direction, Left - More, Passed + More)
    end.

%% @doc Returns the objects of some keys behind one, as the external term format of a list, as they
%% are at the moment.
-spec chunk(ats:tid(), up | down, start | (Key :: binary())) ->
          {done | more, Objects :: binary(), Last :: start | (Key :: binary())}.
chunk(Table, Direction, Last) ->
    ats_disk_reading:of_table(Table, fun(Snapshot) -> chunk_in(Snapshot, Direction, Last) end).

-spec chunk_in(ats:tid(), up | down, start | binary()) ->
          {done | more, binary(), start | binary()}.
chunk_in(Snapshot, Direction, Last) ->
    case ats_nif:disk_chunk(Snapshot, Direction, Last) of
        {pending, _NoObjects, Last} ->
            ok = ats_merge_pending:resolve(Snapshot),
            chunk_in(Snapshot, Direction, Last);
        {pending, Objects, Next} ->
            {more, Objects, Next};
        Chunk ->
            Chunk
    end.

%% @doc Returns the first object behind a key, or from the end that `up' or `down' begins at.
-spec step(ats:tid(), up | down, start | {behind, Key :: term()}) -> tuple() | none.
step(Table, Direction, From) ->
    InOrder = case ats_nif:disk_kind(Table) of
                  %% Same order as in the native functions.
                  {Type, _, _} when Type =:= set; Type =:= bag; Type =:= duplicate_bag -> up;
                  _ -> Direction
              end,
    ats_disk_reading:of_table(
      Table, fun(Snapshot) -> step_in(Snapshot, InOrder, place(Snapshot, From)) end).

-spec place(ats:tid(), start | {behind, term()}) -> start | binary().
place(_Snapshot, start) -> start;
place(Snapshot, {behind, Key}) -> ats_nif:disk_key(Snapshot, Key).

-spec step_in(ats:tid(), up | down, start | binary()) -> tuple() | none.
step_in(Snapshot, Direction, Last) ->
    {Tag, Bytes, Next} = ats_nif:disk_step(Snapshot, Direction, Last),
    case {terms(Bytes), Tag} of
        {[Object | _], _} ->
            Object;
        {[], done} ->
            none;
        {[], more} ->
            step_in(Snapshot, Direction, Next);
        {[], pending} ->
            ok = ats_merge_pending:resolve(Snapshot),
            step_in(Snapshot, Direction, Next)
    end.

%%--------------------------------------------------------------------------------------------
%% Steps, which the native library refuses with the cause `pending' if it meets a key whose values
%% have to be merged first, and `badkey' if a table without order does not have the key it is to
%% step from. Keys are in some order on disk, so the next one can be told as `dets' tells it.
%%--------------------------------------------------------------------------------------------

%% @doc Returns the key that a native function finds at an end of the table.
-spec key(first | last, ats:tid(), up | down) -> Key :: term() | '$end_of_table'.
key(Function, Table, Direction) ->
    case ats_nif:disk_try(Table, Function, []) of
        {ok, Key} -> Key;
        {refused, pending} -> key_of(step(Table, Direction, start), Table);
        {refused, Cause} -> erlang:error({ats_error, Cause})
    end.

%% @doc Returns the key that a native function finds behind another one.
-spec key(next | prev, ats:tid(), up | down, From :: term()) -> Key :: term() | '$end_of_table'.
key(Function, Table, Direction, From) ->
    case ats_nif:disk_try(Table, Function, [From]) of
        {ok, Key} ->
            Key;
        {refused, Cause} when Cause =:= pending; Cause =:= badkey ->
            key_of(step(Table, Direction, {behind, From}), Table);
        {refused, Cause} ->
            erlang:error({ats_error, Cause})
    end.

-spec key_of(tuple() | none, ats:tid()) -> term().
key_of(none, _Table) -> '$end_of_table';
key_of(Object, Table) -> element(element(2, ats_nif:disk_kind(Table)), Object).

%% @doc Like {@link key/3}, with the objects of the key.
-spec objects(first_lookup | last_lookup, ats:tid(), up | down) ->
          {Key :: term(), [tuple()]} | '$end_of_table'.
objects(Function, Table, Direction) ->
    case ats_nif:disk_try(Table, Function, []) of
        {ok, Found} -> Found;
        {refused, pending} -> with_key(step(Table, Direction, start), Table, Direction);
        {refused, Cause} -> erlang:error({ats_error, Cause})
    end.

%% @doc Like {@link key/4}, with the objects of the key.
-spec objects(next_lookup | prev_lookup, ats:tid(), up | down, From :: term()) ->
          {Key :: term(), [tuple()]} | '$end_of_table'.
objects(Function, Table, Direction, From) ->
    case ats_nif:disk_try(Table, Function, [From]) of
        {ok, Found} ->
            Found;
        {refused, Cause} when Cause =:= pending; Cause =:= badkey ->
            with_key(step(Table, Direction, {behind, From}), Table, Direction);
        {refused, Cause} ->
            erlang:error({ats_error, Cause})
    end.

%% The objects of a bag have to be looked up. If they are gone meanwhile, the next key counts.
-spec with_key(tuple() | none, ats:tid(), up | down) -> {term(), [tuple()]} | '$end_of_table'.
with_key(none, _Table, _Way) ->
    '$end_of_table';
with_key(Object, Table, Direction) ->
    {Type, KeyPos, _Fixed} = ats_nif:disk_kind(Table),
    Key = element(KeyPos, Object),
    case ats_disk_options:is_bag(Type) of
        false ->
            {Key, [Object]};
        true ->
            case ats_nif:lookup(Table, Key) of
                [] -> with_key(step(Table, Direction, {behind, Key}), Table, Direction);
                Objects -> {Key, Objects}
            end
    end.

%% @doc Returns the objects of the key at a place. As in `dets', there is an end of the table beyond
%% its end, too.
-spec slot(ats:tid(), non_neg_integer()) -> [tuple()] | '$end_of_table'.
slot(Table, I) ->
    case ats_nif:disk_try(Table, slot, [I]) of
        {ok, Objects} ->
            Objects;
        {refused, pending} ->
            Nth = fun(Object, 0) -> throw({?MODULE, [Object]});
                     (_Object, Left) -> Left - 1
                  end,
            try fold(Nth, I, Table, up) of
                _Left -> '$end_of_table'
            catch throw:{?MODULE, Objects} -> Objects
            end;
        {refused, none} ->
            '$end_of_table';
        {refused, Cause} ->
            erlang:error({ats_error, Cause})
    end.

-spec terms(binary()) -> [tuple()].
terms(Bytes) ->
    try binary_to_term(Bytes)
    catch error:badarg -> erlang:error({ats_error, damaged})
    end.

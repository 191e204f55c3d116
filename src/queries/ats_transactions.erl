%% @private @doc Transactions of tables in memory, as {@link ats:transact/1}, {@link
%% ats:transact/4} and {@link ats:update/3} call them, and the parts that tables on disk share.
-module(ats_transactions).

-export([run/1, run/4, update/3, done/1, update/6]).

%% Number of attempts of an update. Each ends without success only if another process has written
%% the key meanwhile.
-define(ATTEMPTS, 1000).

-spec run([ats:table_part()]) -> {boolean(), [[term()]]}.
run(Parts) ->
    case ats_nif:transact(Parts) of
        {Held, _} = Done when is_boolean(Held) ->
            Done;
        {Number, Cause} when is_atom(Cause), Cause =/= table ->
            Table = element(1, lists:nth(Number, Parts)),
            error({ats_error, {in_table, Number, cause(Table, Cause)}});
        {Number, Failed} ->
            error({ats_error, {in_table, Number, Failed}})
    end.

-spec run(ats:table(), [ats:condition()], [ats:step()], [ats:step()]) -> {boolean(), [term()]}.
run(Table, Conditions, Then, Else) ->
    done(ats_nif:transact(Table, Conditions, Then, Else)).

%% @doc Returns the answer of the native function, or raises the fault of a part.
-spec done({boolean(), [term()]} | {condition | then | 'else', pos_integer(), atom()}) ->
          {boolean(), [term()]}.
done({_, _} = Done) -> Done;
done({Part, Number, Cause}) -> error({ats_error, {part, Part, Number, Cause}}).

%% Returns the cause why a table takes no part: it is none in memory, or is one of `dats'.
-spec cause(term(), ats_errors:cause()) -> ats_errors:cause().
cause(Table, Cause) when Cause =:= id; Cause =:= type ->
    try ats_disk_tables:find_table(Table) of
        _ -> disk
    catch
        error:{ats_error, _} -> Cause
    end;
cause(_Table, Cause) ->
    Cause.

-spec update(ats:table(), Key, fun((Before) -> After)) -> After
              when Key :: term(), Before :: [tuple()], After :: [tuple()].
update(Table, Key, Function) ->
    update(Table, fun() -> {ats_info:item(type, Table), ats_info:item(keypos, Table)} end, Key,
           Function, fun() -> ats_nif:lookup(Table, Key) end,
           fun(Before, After) -> ats_nif:exchange(Table, Before, After) end).

%% @doc Replaces the objects of a key in a table of this type and key position, which is read by
%% `Lookup' and changed by `Exchange'.
-spec update(ats:table(), fun(() -> {ats:table_type() | undefined, pos_integer() | undefined}), Key,
             fun((Before) -> After), Lookup, Exchange) -> After
              when Key :: term(), Before :: [tuple()], After :: [tuple()],
                   Lookup :: fun(() -> Before), Exchange :: fun((Before, After) -> boolean()).
update(Table, Kind, Key, Function, Lookup, Exchange) ->
    is_function(Function, 1) orelse error({ats_error, function}),
    {Type, KeyPos} = Kind(),
    %% The look-up names the reason why there is no such table.
    lists:member(Type, [set, ordered_set, undefined]) orelse error({ats_error, table_type}),
    attempt(Table, Function, Lookup, Exchange, is_key(Type, Key, KeyPos), ?ATTEMPTS).

attempt(_Table, _Function, _Lookup, _Exchange, _IsKey, 0) ->
    error({ats_error, contended});
attempt(Table, Function, Lookup, Exchange, IsKey, Left) ->
    Before = Lookup(),
    case Function(Before) of
        Before ->
            Before;
        After ->
            check(IsKey, After),
            case Exchange(Before, After) of
                true ->
                    After;
                false ->
                    ok = ats_nif:count_retry(Table),
                    erlang:yield(),
                    attempt(Table, Function, Lookup, Exchange, IsKey, Left - 1)
            end
    end.

check(_IsKey, []) -> ok;
check(IsKey, [Object]) -> IsKey(Object) orelse error({ats_error, object});
check(_IsKey, _Other) -> error({ats_error, object}).

%% Returns a function that tells whether a term is an object with this key.
is_key(Type, Key, KeyPos) ->
    fun(Object) when is_tuple(Object), tuple_size(Object) >= KeyPos ->
            Own = element(KeyPos, Object),
            Own =:= Key orelse Type =:= ordered_set andalso Own == Key;
       (_Other) ->
            false
    end.

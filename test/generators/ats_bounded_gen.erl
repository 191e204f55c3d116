%% Random match specifications that bound the key: by how they are made one can tell which keys
%% have to be read at most, so it is seen that planning goes on working.
-module(ats_bounded_gen).

-export([spec/1]).

-type within() :: fun((Key :: term()) -> boolean()).

-import(ats_spec_gen, [pick/1]).

%% A specification, and the test for the keys of the objects that have to be read for it.
-spec spec(ats_spec_gen:table()) -> {ets:match_spec(), within()}.
spec(Table) ->
    Clauses = [clause(Table) || _ <- lists:seq(1, pick({1, 1, 1, 2, 3}))],
    Withins = [Within || {_, Within} <- Clauses],
    {[Clause || {Clause, _} <- Clauses], fun(Key) -> lists:any(fun(W) -> W(Key) end, Withins) end}.

clause(Table) ->
    {Key, Guards, Within} = bound(Table),
    %% Further conditions make nothing wider, wherever they stand.
    Others = pick({[], [], [{'/=', '$_', x}], [{is_tuple, '$_'}, {'not', {'==', 1, '$_'}}]}),
    Body = pick({'$_', '$_', true, '$$'}),
    {{head(Key, Table), pick({Guards ++ Others, Others ++ Guards}), [Body]}, Within}.

head(Key, #{keypos := KeyPos, objects := Objects}) ->
    Size =
        case Objects of
            {} -> KeyPos;
            _ -> tuple_size(pick(Objects))
        end,
    setelement(KeyPos, list_to_tuple([pick({'_', '$8'}) || _ <- lists:seq(1, Size)]), Key).

bound(#{type := ordered_set} = Table) ->
    case pick({known, compared, compared, compared, prefix, prefix, binary, type}) of
        known -> known_key(Table);
        compared -> compared_key(Table);
        prefix -> prefix(key(Table), Table);
        binary -> binary_prefix(key(Table));
        type -> type()
    end;
bound(Table) ->
    case pick({known, compared}) of
        known -> known_key(Table);
        compared -> compared_key(Table)
    end.

%% ----- whole keys -----

known_key(Table) ->
    Key = key(Table),
    {Key, [], fun(K) -> K == Key end}.

compared_key(#{keypos := KeyPos} = Table) ->
    Operand = pick({'$1', '$1', {element, KeyPos, '$_'}}),
    {Guard, Within} = condition(Operand, true, 3, fun() -> key(Table) end, Table),
    {'$1', [Guard], Within}.

%% A condition on an operand, and the values that are within bounds if its value is this one. It
%% compares with results of `Constant'.
condition(Operand, Truth, 0, Constant, Table) ->
    comparison(Operand, Truth, Constant(), Table);
condition(Operand, Truth, Depth, Constant, Table) ->
    Inner = fun(Value) -> condition(Operand, Value, Depth - 1, Constant, Table) end,
    case rand:uniform(6) of
        1 ->
            {Denied, Within} = Inner(not Truth),
            {{'not', Denied}, Within};
        2 ->
            {{A, WithinA}, {B, WithinB}} = {Inner(Truth), Inner(Truth)},
            {{all(Truth), A, B}, fun(Key) -> WithinA(Key) andalso WithinB(Key) end};
        3 ->
            {{A, WithinA}, {B, WithinB}} = {Inner(Truth), Inner(Truth)},
            {{all(not Truth), A, B}, fun(Key) -> WithinA(Key) orelse WithinB(Key) end};
        _ ->
            comparison(Operand, Truth, Constant(), Table)
    end.

%% A call that has this value only if all its arguments have.
all(true) -> pick({'and', 'andalso'});
all(false) -> pick({'or', 'orelse'}).

comparison(Operand, Truth, Constant, #{type := Type}) ->
    Operator =
        case Type of
            ordered_set -> pick({'<', '=<', '>', '>=', '==', '=:='});
            _ -> pick({'==', '=:='})
        end,
    Written =
        case Truth of
            true -> Operator;
            false -> opposite(Operator)
        end,
    Expression = pick({{const, Constant}, ats_spec_gen:written(Constant)}),
    Guard = pick({{Written, Operand, Expression}, {turned(Written), Expression, Operand}}),
    %% Plans do not always tell keys apart that are equal but not identical.
    Compare =
        case Operator of
            '=:=' -> '==';
            _ -> Operator
        end,
    {Guard, fun(Key) -> erlang:Compare(Key, Constant) end}.

opposite('<') -> '>=';
opposite('=<') -> '>';
opposite('>') -> '=<';
opposite('>=') -> '<';
opposite('==') -> '/=';
opposite('=:=') -> '=/='.

turned('<') -> '>';
turned('=<') -> '>=';
turned('>') -> '<';
turned('>=') -> '=<';
turned(Same) -> Same.

%% ----- parts of keys of ordered_set tables -----

prefix(Tuple, Table) when tuple_size(Tuple) > 1 ->
    Elements = tuple_to_list(Tuple),
    N = rand:uniform(length(Elements) - 1),
    {Known, [_ | Rest]} = lists:split(N, Elements),
    {Guards, Within} = next_part(Table),
    Key = list_to_tuple(Known ++ ['$1' | ['_' || _ <- Rest]]),
    {Key, Guards, fun(K) ->
        tuple_size_of(K) =:= tuple_size(Tuple) andalso begins(Known, Within, tuple_to_list(K))
    end};
prefix([Known | _], Table) ->
    {Guards, Within} = next_part(Table),
    {[Known, '$1' | '_'], Guards, fun(K) -> is_list(K) andalso begins([Known], Within, K) end};
prefix(Constant, Table) ->
    prefix({foo, Constant}, Table).

next_part(Table) ->
    case rand:uniform(3) of
        1 ->
            {[], fun(_) -> true end};
        _ ->
            {Guard, Within} = condition('$1', true, 1, fun() -> constant(Table) end, Table),
            {[Guard], Within}
    end.

tuple_size_of(Tuple) when is_tuple(Tuple) -> tuple_size(Tuple);
tuple_size_of(_) -> none.

begins([Known | Rest], Within, [Element | Elements]) ->
    Known == Element andalso begins(Rest, Within, Elements);
begins([], Within, [Element | _]) ->
    Within(Element);
begins(_, _, _) ->
    false.

binary_prefix(Constant) ->
    Prefix =
        case Constant of
            <<First, _/bits>> -> <<First>>;
            _ -> pick({<<>>, <<"a">>, <<"ab">>, <<255>>})
        end,
    Size = byte_size(Prefix),
    Part = pick({{binary_part, '$1', 0, Size}, {binary_part, '$1', {{0, Size}}}}),
    Equal = pick({'==', '=:='}),
    Guard = pick({{Equal, Part, Prefix}, {Equal, Prefix, Part}}),
    Within = fun(Key) ->
        case Key of
            <<Prefix:Size/binary, _/bits>> -> true;
            _ -> false
        end
    end,
    {'$1', [Guard], Within}.

%% Mixes numbers, and binaries with bit strings that have no whole bytes.
type() ->
    {Test, Within} = pick({
        {is_atom, fun erlang:is_atom/1},
        {is_number, fun erlang:is_number/1},
        {is_integer, fun erlang:is_number/1},
        {is_float, fun erlang:is_number/1},
        {is_binary, fun erlang:is_bitstring/1},
        {is_list, fun erlang:is_list/1},
        {is_tuple, fun erlang:is_tuple/1},
        {is_map, fun erlang:is_map/1},
        {is_pid, fun erlang:is_pid/1},
        {is_port, fun erlang:is_port/1},
        {is_reference, fun erlang:is_reference/1},
        {is_function, fun erlang:is_function/1}
    }),
    {'$1', [{Test, '$1'}], Within}.

%% ----- constants -----

%% Something that occurs in the table, or nearly. Maps are not looked into.
constant(#{parts := Parts}) ->
    plain(pick(Parts)).

%% A key, or nearly.
key(#{keypos := KeyPos, objects := Objects} = Table) ->
    case Objects of
        {} -> constant(Table);
        _ -> plain(element(KeyPos, pick(Objects)))
    end.

plain(Term) ->
    Near = ats_spec_gen:near(Term),
    case is_plain(Near) of
        true -> Near;
        false -> pick({17, a, {foo, 1, 2}, [a, 1]})
    end.

is_plain([Head | Tail]) -> is_plain(Head) andalso is_plain(Tail);
is_plain(Tuple) when is_tuple(Tuple) -> lists:all(fun is_plain/1, tuple_to_list(Tuple));
is_plain(Atom) when is_atom(Atom) ->
    Atom =/= '_' andalso ats_spec_model:is_variable(Atom) =:= false;
is_plain(Term) -> not is_map(Term) andalso not is_function(Term).

%% Random tables and match specifications for them.
%%
%% Specifications are made of the objects of the table: heads are objects with some parts replaced by
%% variables, and guards compare with terms that occur in objects, so that much matches. About one in
%% ten is not a specification at all.
-module(ats_select_gen).

-export([objects/2, spec/2, term/0, key/0]).

%% So many objects with their key at this position.
objects(N, KeyPos) ->
    [object(KeyPos) || _ <- lists:seq(1, N)].

object(1) ->
    list_to_tuple([key() | [value() || _ <- lists:seq(1, rand:uniform(4) - 1)]]);
object(2) ->
    list_to_tuple([value(), key() | [value() || _ <- lists:seq(1, rand:uniform(3) - 1)]]).

key() ->
    case rand:uniform(14) of
        1 -> small() * 1.0;
        2 -> {small(), small()};
        3 -> {foo, small(), small()};
        4 -> {foo, {small(), atom()}, small()};
        5 -> [atom(), small()];
        6 -> [small(), small() | atom()];
        7 -> binary();
        8 -> #{atom() => small()};
        9 -> {#{atom() => small()}, small()};
        10 -> pick([1 bsl 60, 1 bsl 70, -(1 bsl 70), 1 bsl 53, float(1 bsl 53), (1 bsl 53) + 1]);
        11 -> pick([0, 0.0, -0.0, 0.5, [], {}, ""]);
        12 -> atom();
        _ -> small()
    end.

value() ->
    case rand:uniform(6) of
        1 -> term();
        _ -> key()
    end.

term() ->
    term(3).

term(0) ->
    key();
term(Depth) ->
    case rand:uniform(9) of
        1 -> {term(Depth - 1), term(Depth - 1)};
        2 -> [term(Depth - 1) | term(Depth - 1)];
        3 -> #{key() => term(Depth - 1), atom() => key()};
        4 -> pick([self(), <<5:3>>, fun erlang:abs/1, 1.0e300, binary:copy(<<"x">>, 70), true, false]);
        _ -> key()
    end.

small() -> rand:uniform(8) - 2.

atom() -> pick([a, b, c, foo, true, '$x']).

binary() -> pick([<<>>, <<"a">>, <<"ab">>, <<"abc">>, <<"abd">>, <<"b">>, <<255>>, <<255, 255>>]).

pick(List) -> lists:nth(rand:uniform(length(List)), List).

pick_or(_Default, [_ | _] = List) -> pick(List);
pick_or(Default, []) -> Default.

one_in(N) -> rand:uniform(N) =:= 1.

%% Before Erlang/OTP 27, `ets' can end the virtual machine when it is given many wrong specifications,
%% or makes maps, so it is asked less there.
pick_by_release(Since27, Before) ->
    case erlang:system_info(otp_release) >= "27" of
        true -> Since27();
        false -> Before()
    end.

%% A specification for a table with these objects.
spec(KeyPos, Objects) ->
    case erlang:system_info(otp_release) >= "27" of
        true -> spec(Objects);
        false -> without_map_keys(KeyPos, spec(Objects))
    end.

%% Before Erlang/OTP 27, `ets' looks a map in the place of the key up as if it were a literal.
without_map_keys(KeyPos, Clauses) when is_list(Clauses) ->
    without_map_keys_in(KeyPos, Clauses);
without_map_keys(_, Other) ->
    Other.

without_map_keys_in(KeyPos, [{Head, Guards, Body} | Clauses]) when tuple_size(Head) >= KeyPos ->
    Key = without_maps(element(KeyPos, Head)),
    %% The variables that were in the map are bound somewhere else.
    Lost = variables(Head) -- variables(setelement(KeyPos, Head, Key)),
    Clause =
        case Lost of
            [] -> {setelement(KeyPos, Head, Key), Guards, Body};
            _ -> {setelement(KeyPos, Head, hd(Lost)), [], ['$_']}
        end,
    [Clause | without_map_keys_in(KeyPos, Clauses)];
without_map_keys_in(KeyPos, [Clause | Clauses]) ->
    [Clause | without_map_keys_in(KeyPos, Clauses)];
without_map_keys_in(_, End) ->
    End.

without_maps(Map) when is_map(Map) -> '_';
without_maps(Tuple) when is_tuple(Tuple) ->
    list_to_tuple([without_maps(E) || E <- tuple_to_list(Tuple)]);
without_maps([Head | Tail]) -> [without_maps(Head) | without_maps(Tail)];
without_maps(Term) -> Term.

spec(Objects) ->
    case rand:uniform(40) of
        1 -> pick_by_release(fun() -> broken(Objects) end, fun() -> [clause(Objects)] end);
        N when N < 30 -> [clause(Objects)];
        N when N < 38 -> [clause(Objects), clause(Objects)];
        _ -> [clause(Objects) || _ <- lists:seq(1, rand:uniform(5))]
    end.

broken(Objects) ->
    Clause = {Head, Guards, Body} = clause(Objects),
    pick([
        [],
        Clause,
        [Clause | x],
        [{Head, Guards}],
        [{Head, Guards, []}],
        [{Head, x, Body}],
        [{Head, Guards, x}],
        [{Head, [{foo, 1}], Body}],
        [{Head, [{message, 1}], Body}],
        [{Head, Guards, ['$17']}],
        [{Head, Guards, [{1, 2}]}],
        [{Head, [{is_atom, a, b}], Body}],
        [{Head, [{self, 1}], Body}],
        [{Head, [{'and'}], Body}],
        [{Head, [{const}], Body}],
        [{Head, Guards, [{const, 1, 2}]}],
        [{{#{'$1' => x}}, [], [true]}],
        [{{#{'_' => x}}, [], [true]}],
        [x]
    ]).

clause(Objects) ->
    Head = head(Objects),
    Vars = variables(Head),
    Guards = [guard(Objects, Vars, 3) || _ <- lists:seq(1, rand:uniform(3) - 1)],
    Body = [body(Objects, Vars, 2) || _ <- lists:seq(1, pick([1, 1, 1, 1, 2]))],
    {Head, Guards, Body}.

head(Objects) ->
    case rand:uniform(12) of
        1 -> '_';
        2 -> '$1';
        3 -> pick([foo, 1, [], [x], #{}]);
        4 -> list_to_tuple([pick(['_', '$1', '$2']) || _ <- lists:seq(1, rand:uniform(5) - 1)]);
        _ -> list_to_tuple([pattern(E) || E <- tuple_to_list(some_object(Objects))])
    end.

some_object(Objects) -> pick_or({1, 2, 3}, Objects).

%% The term with some parts replaced.
pattern(Term) ->
    case rand:uniform(10) of
        N when N < 4 -> pick(['$1', '$2', '$3', '$12', '$300']);
        4 -> '_';
        5 -> term();
        _ -> descend(Term)
    end.

descend([Head | Tail]) ->
    [pattern(Head) | case one_in(5) of true -> pattern(Tail); false -> descend(Tail) end];
descend(Tuple) when is_tuple(Tuple) -> list_to_tuple([pattern(E) || E <- tuple_to_list(Tuple)]);
descend(Map) when is_map(Map) ->
    maps:from_list([{K, pattern(V)} || {K, V} <- maps:to_list(Map), not one_in(4)]);
descend(Term) -> Term.

variables(Head) -> lists:usort(variables(Head, [])).

variables([Head | Tail], Acc) -> variables(Tail, variables(Head, Acc));
variables(Tuple, Acc) when is_tuple(Tuple) -> variables(tuple_to_list(Tuple), Acc);
variables(Map, Acc) when is_map(Map) -> variables(maps:values(Map), Acc);
variables(Var, Acc) when
    Var =:= '$1'; Var =:= '$2'; Var =:= '$3'; Var =:= '$12'; Var =:= '$300'
->
    [Var | Acc];
variables(_, Acc) -> Acc.

guard(Objects, Vars, Depth) ->
    guard(Objects, Vars, Depth, ['and', 'or', 'andalso', 'orelse']).

guard(Objects, Vars, Depth, Forms) ->
    case rand:uniform(14) of
        1 when Depth > 0 -> {'not', guard(Objects, Vars, Depth - 1, Forms)};
        N when Depth > 0, N < 5 ->
            Form = pick(Forms),
            Parts = [guard(Objects, Vars, Depth - 1, Forms) || _ <- lists:seq(1, rand:uniform(3))],
            list_to_tuple([Form | Parts]);
        5 when Depth > 0 ->
            {'xor', guard(Objects, Vars, Depth - 1, Forms), guard(Objects, Vars, Depth - 1, Forms)};
        6 ->
            Test = pick([
                is_atom, is_float, is_integer, is_list, is_number, is_pid, is_port, is_reference,
                is_tuple, is_map, is_binary, is_function
            ]),
            {Test, place(Vars)};
        7 ->
            {pick(['=:=', '==', '=/=']), {binary_part, place(Vars), 0, rand:uniform(3) - 1},
                binary()};
        8 -> pick([true, false, {is_record, '$_', foo, 3}, place(Vars)]);
        _ ->
            Compare = pick(['<', '=<', '>', '>=', '==', '=:=', '/=', '=/=']),
            {A, B} = {place(Vars), constant(Objects)},
            case rand:uniform(6) of
                1 -> {Compare, B, A};
                2 -> {Compare, A, expression(Objects, Vars, 2)};
                _ -> {Compare, A, B}
            end
    end.

place(Vars) ->
    case rand:uniform(8) of
        1 -> {element, pick([1, 2, 3]), '$_'};
        2 -> '$_';
        _ -> pick_or({element, 1, '$_'}, Vars)
    end.

%% A term of an object, written as a constant.
constant(Objects) ->
    Object = some_object(Objects),
    Term =
        case one_in(4) of
            true -> term();
            false when tuple_size(Object) > 0 -> element(rand:uniform(tuple_size(Object)), Object);
            false -> Object
        end,
    case one_in(3) of
        true -> {const, Term};
        false -> written(Term)
    end.

%% The expression whose value is the term.
written(Tuple) when is_tuple(Tuple) ->
    {list_to_tuple([written(E) || E <- tuple_to_list(Tuple)])};
written([Head | Tail]) -> [written(Head) | written(Tail)];
written(Map) when is_map(Map) ->
    Written = fun() ->
        maps:from_list([{written(K), written(V)} || {K, V} <- maps:to_list(Map)])
    end,
    pick_by_release(Written, fun() -> {const, Map} end);
written(Term) -> Term.

expression(Objects, Vars, 0) ->
    case one_in(3) of
        true -> constant(Objects);
        false -> place(Vars)
    end;
expression(Objects, Vars, Depth) ->
    Part = fun() -> expression(Objects, Vars, Depth - 1) end,
    case rand:uniform(8) of
        1 -> {pick(['+', '-', '*', '/', 'div', 'rem', 'band', 'bor', 'bxor', map_get]), Part(), Part()};
        2 ->
            One = [
                abs, hd, tl, length, round, trunc, float, size, map_size, bit_size, byte_size, '+',
                '-', 'bnot', 'not', node
            ],
            {pick(One), Part()};
        3 -> {element, pick([0, 1, 2, 3]), Part()};
        4 -> {is_map_key, Part(), Part()};
        5 -> pick([{self}, {node}, '$$', '$_', {'bsl', 1, 3}]);
        _ -> expression(Objects, Vars, 0)
    end.

body(Objects, Vars, Depth) ->
    Part = fun() -> body(Objects, Vars, Depth - 1) end,
    case rand:uniform(12) of
        N when N < 3 -> '$_';
        3 -> '$$';
        4 -> true;
        5 when Depth > 0 -> {{Part(), Part()}};
        6 when Depth > 0 -> [Part() | Part()];
        7 when Depth > 0 ->
            pick_by_release(fun() -> #{Part() => Part()} end, fun() -> [Part()] end);
        8 -> expression(Objects, Vars, 2);
        %% `ets' copies a variable to the heap of the caller where a body mentions it first. If that
        %% is skipped by `andalso' or `orelse', the result refers to the table, until it crashes.
        9 -> guard(Objects, Vars, 1, ['and', 'or']);
        _ -> place(Vars)
    end.

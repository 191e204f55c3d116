%% Random tables, and match specifications that fit them.
%%
%% A specification is made from the objects of its table: heads are objects with some parts
%% replaced by variables, and guards compare with parts of keys and values, or with their
%% neighbours. So much matches, bounds lie among the keys, and terms meet that are equal but not
%% identical.
%%
%% Plain random numbers rather than PropEr: a specification costs some ten microseconds, and there
%% are to be many. `simpler/1' makes failing ones small.
-module(ats_spec_gen).

-export([table/0, spec/1, family/1, bad_spec/1, replacement/1]).
-export([simpler/1, pick/1, near/1, written/1]).

-export_type([table/0]).

-type table() :: #{
    type := ets:type(),
    keypos := pos_integer(),
    options := [term()],
    objects := tuple(),
    %% Parts of keys and values, to compare with.
    parts := tuple()
}.

-define(OFTEN(Percent), (rand:uniform(100) =< Percent)).

%% ----- families -----

%% Specifications of one clause each that differ in their literals, mostly in nothing else. The keys
%% of many are those of objects, as in programs that ask for one after the other.
-spec family(table()) -> [ets:match_spec()].
family(Table) ->
    [{Head, Guards, Body} | _] = spec(Table),
    HasKey = ?OFTEN(60),
    [
        [{with_key(Table, HasKey, another(Head)), another_list(Guards), another_list(Body)}]
     || _ <- lists:seq(1, 6)
    ].

with_key(#{keypos := KeyPos, objects := Objects}, true, Head) when
    tuple_size(Head) >= KeyPos, Objects =/= {}
->
    setelement(KeyPos, Head, element(KeyPos, pick(Objects)));
with_key(_, _, Head) ->
    Head.

%% The same pattern, sometimes with other literals. Maps stay as they are.
another([Head | Tail]) ->
    [another(Head) | another(Tail)];
another(Tuple) when is_tuple(Tuple) ->
    list_to_tuple([another(Element) || Element <- tuple_to_list(Tuple)]);
another(Atom) when is_atom(Atom) ->
    case atom_to_list(Atom) of
        [$$ | _] -> Atom;
        "_" -> Atom;
        _ -> another_of(Atom, atom)
    end;
another(Integer) when is_integer(Integer) -> another_of(Integer, pick({small, small, number}));
another(Float) when is_float(Float) -> another_of(Float, number);
another(Binary) when is_bitstring(Binary) -> another_of(Binary, binary);
another(Term) ->
    Term.

another_of(Term, Kind) ->
    case ?OFTEN(50) of
        true -> term(Kind);
        false -> Term
    end.

another_list([Expression | Expressions]) ->
    [another_expression(Expression) | another_list(Expressions)];
another_list(Tail) ->
    Tail.

%% The names of functions stay as they are.
another_expression({Expression}) ->
    {another(Expression)};
another_expression(Tuple) when tuple_size(Tuple) > 0 ->
    [Name | Arguments] = tuple_to_list(Tuple),
    list_to_tuple([Name | [another_expression(Argument) || Argument <- Arguments]]);
another_expression(Expression) ->
    another(Expression).

%% ----- tables -----

-spec table() -> table().
table() ->
    KeyPos = pick({1, 1, 1, 2, 3}),
    %% Mostly keys of one kind, so that bounds in guards cut a range out of many.
    Kind = pick({number, number, tuple, tuple, list, binary, atom, map, nested, any, any, any}),
    Size = pick({0, 1, 2, 5, 10, 20, 20, 30, 40, 60}),
    Objects = [object(Kind, KeyPos) || _ <- lists:seq(1, Size)],
    Type = pick({set, ordered_set, ordered_set, ordered_set, bag, duplicate_bag}),
    More = pick({[], [], [{write_concurrency, true}], [compressed]}),
    #{
        type => Type,
        keypos => KeyPos,
        options => [Type, public, {keypos, KeyPos} | More],
        objects => list_to_tuple(Objects),
        parts => list_to_tuple(lists:foldl(fun parts/2, [0], Objects))
    }.

object(Kind, KeyPos) ->
    Before = [value() || _ <- lists:seq(2, KeyPos)],
    After = [value() || _ <- lists:seq(1, pick({0, 1, 1, 2, 2, 3}))],
    list_to_tuple(Before ++ [key(Kind) | After]).

key(any) ->
    key(pick({number, number, atom, tuple, nested, list, binary, map, exotic, small}));
key(Kind) when Kind =/= number ->
    case rand:uniform(12) of
        1 -> key(any);
        _ -> term(Kind)
    end;
key(number) ->
    number().

value() ->
    case rand:uniform(10) of
        N when N < 5 -> small();
        N when N < 7 -> atom();
        N when N < 9 -> term(pick({number, tuple, list, binary, map}));
        _ -> term(pick({nested, exotic, number, deep, large_map}))
    end.

term(small) -> small();
term(number) -> number();
term(atom) -> atom();
term(tuple) ->
    case rand:uniform(8) of
        N when N < 4 -> {foo, small(), small()};
        4 -> {small(), small()};
        5 -> {foo, number(), atom()};
        6 -> {number(), small()};
        7 -> {foo, small()};
        8 -> pick({{}, {foo}, {1}, {1.0}})
    end;
term(nested) ->
    case rand:uniform(5) of
        1 -> {foo, {atom(), small()}, small()};
        2 -> {{small(), [atom(), small()]}, small()};
        3 -> [{atom(), small()}, small()];
        4 -> {foo, [small(), small() | pick({[], a, 1})], small()};
        5 -> {{{small()}}, number()}
    end;
term(list) ->
    case rand:uniform(6) of
        1 -> [];
        2 -> [small(), small()];
        3 -> [atom(), small(), small()];
        4 -> [atom(), small() | atom()];
        5 -> pick({"", "a", "ab", "abc", "b"});
        6 -> [number() | number()]
    end;
term(binary) ->
    pick({
        <<>>, <<"a">>, <<"ab">>, <<"abc">>, <<"abd">>, <<"ac">>, <<"b">>, <<0>>, <<0, 0>>,
        <<"a", 0>>, <<255>>, <<255, 255>>, <<"a", 255>>, <<1:1>>, <<"ab", 1:3>>,
        <<"a long binary that is shared">>
    });
term(map) ->
    case rand:uniform(6) of
        1 -> #{atom() => small()};
        2 -> #{atom() => small(), small() => atom()};
        3 -> {#{atom() => small()}, small()};
        4 -> #{number() => small()};
        5 -> [#{a => {small(), small()}} | small()];
        6 -> #{}
    end;
term(large_map) ->
    %% More than `ets' keeps as a sorted array.
    maps:from_list([{N, small()} || N <- lists:seq(1, 40)] ++ [{atom(), number()}]);
term(deep) ->
    deep(3);
term(exotic) ->
    Kinds = {ref, pid, local_fun, closure, external_fun, magic_ref, external_pid, port},
    ats_term_gen:exotic(pick(Kinds), rand:uniform(3)).

deep(0) ->
    term(pick({small, number, atom, list, binary, tuple, map}));
deep(Depth) ->
    Inner = fun() -> deep(Depth - 1) end,
    case rand:uniform(5) of
        1 -> {Inner(), Inner()};
        2 -> [Inner() | Inner()];
        3 -> #{small() => Inner(), atom() => Inner()};
        _ -> deep(0)
    end.

small() -> rand:uniform(7) - 2.

number() ->
    case rand:uniform(8) of
        N when N < 4 -> small();
        4 -> float(small());
        5 -> small() + 0.5;
        6 -> pick({0, 0.0, ats_term_gen:negative_zero(), -1, 1.0e-300});
        7 ->
            Two53 = 1 bsl 53,
            pick({Two53, float(Two53), Two53 + 1, Two53 + 2, float(Two53 + 2), -Two53 - 1});
        8 ->
            pick({
                1 bsl 59, 1 bsl 64, (1 bsl 64) + 1, -(1 bsl 64), float(1 bsl 64), 1.0e300,
                -1.0e300, 1 bsl 1000, -(1 bsl 1000)
            })
    end.

atom() -> pick({a, b, c, foo, true, false, '$x', '_'}).

%% The parts of an object: its elements, and theirs.
parts(Object, Parts) ->
    lists:foldl(
        fun(Element, Acc) -> [Element | elements(Element)] ++ Acc end,
        Parts,
        tuple_to_list(Object)
    ).

elements(Tuple) when is_tuple(Tuple) -> tuple_to_list(Tuple);
elements([Head | Tail]) -> [Head, Tail];
elements(Map) when is_map(Map) -> maps:values(Map);
elements(_) -> [].

%% ----- specifications -----

-spec spec(table()) -> ets:match_spec().
spec(Table) ->
    [clause(Table) || _ <- lists:seq(1, pick({1, 1, 1, 1, 1, 1, 2, 2, 3, 5}))].

%% Variables with high numbers: `ets' also renames atoms in constants that look like variables.
clause(Table) ->
    Variables = pick({
        {'$1', '$2', '$3', '$4'},
        {'$0', '$1', '$2', '$3'},
        {'$3', '$2', '$1'},
        {'$1'},
        {'$300', '$7', '$26', '$1'}
    }),
    Head = head(Table, Variables),
    Scope = Table#{bound => list_to_tuple(variables(Head)), first => element(1, Variables)},
    Guards = [guard(Scope, 3) || _ <- lists:seq(1, pick({0, 1, 1, 1, 2}))],
    Body = [body(Scope, 2) || _ <- lists:seq(1, pick({1, 1, 1, 1, 1, 2}))],
    {Head, Guards, Body}.

head(#{objects := Objects, keypos := KeyPos} = Table, Variables) ->
    case rand:uniform(25) of
        1 -> '_';
        2 -> element(1, Variables);
        3 -> pick({foo, 17, [], [x], #{}, {}, {'_'}});
        4 -> list_to_tuple([variable(Variables) || _ <- lists:seq(1, rand:uniform(4))]);
        _ when Objects =:= {} -> {element(1, Variables), '_'};
        _ -> list_to_tuple(patterns(1, KeyPos, tuple_to_list(pick(Objects)), Table, Variables))
    end.

variable(Variables) ->
    case rand:uniform(5) of
        1 -> '_';
        2 -> pick(Variables);
        %% Repeated less often.
        _ -> element(1, Variables)
    end.

patterns(_, _, [], _, _) ->
    [];
patterns(KeyPos, KeyPos, [Key | Rest], Table, Variables) ->
    [key_pattern(Key, Table, Variables) | patterns(KeyPos + 1, KeyPos, Rest, Table, Variables)];
patterns(I, KeyPos, [Element | Rest], Table, Variables) ->
    Pattern =
        case rand:uniform(10) of
            N when N < 4 -> '_';
            N when N < 7 -> pick(Variables);
            _ -> pattern(Element, Table, Variables)
        end,
    [Pattern | patterns(I + 1, KeyPos, Rest, Table, Variables)].

key_pattern(Key, Table, Variables) ->
    case rand:uniform(10) of
        N when N < 4 -> element(1, Variables);
        4 -> '_';
        5 -> Key;
        _ -> descend(Key, Table, Variables)
    end.

pattern(Term, Table, Variables) ->
    case rand:uniform(12) of
        N when N < 4 -> pick(Variables);
        4 -> '_';
        5 -> near(pick(maps:get(parts, Table)));
        6 -> near(Term);
        _ -> descend(Term, Table, Variables)
    end.

descend([Head | Tail], Table, Variables) ->
    [pattern(Head, Table, Variables) | pattern(Tail, Table, Variables)];
descend(Tuple, Table, Variables) when is_tuple(Tuple) ->
    list_to_tuple([pattern(E, Table, Variables) || E <- tuple_to_list(Tuple)]);
descend(Map, Table, Variables) when is_map(Map) ->
    %% Heads match maps that have more.
    maps:from_list([
        {K, pattern(V, Table, Variables)}
     || {K, V} <- maps:to_list(Map), K =/= '_', ?OFTEN(75)
    ]);
descend(Term, _, _) ->
    Term.

%% A term, its neighbour, or one that is equal but not identical.
-spec near(term()) -> term().
near(Number) when is_integer(Number), abs(Number) < 1 bsl 70 ->
    case rand:uniform(8) of
        1 -> Number + 1;
        2 -> Number - 1;
        3 -> float(Number);
        4 -> Number + 0.5;
        _ -> Number
    end;
near(Number) when is_float(Number), abs(Number) < 1.0e30 ->
    case rand:uniform(6) of
        1 -> trunc(Number);
        2 -> -Number;
        _ -> Number
    end;
near(Tuple) when is_tuple(Tuple), Tuple =/= {} ->
    case rand:uniform(3) of
        1 ->
            I = rand:uniform(tuple_size(Tuple)),
            setelement(I, Tuple, near(element(I, Tuple)));
        _ ->
            Tuple
    end;
near([Head | Tail]) ->
    pick({[Head | Tail], [near(Head) | Tail], [Head | near(Tail)]});
near(Term) ->
    Term.

-spec variables(term()) -> [atom()].
variables(Head) -> lists:usort(variables(Head, [])).

variables([Head | Tail], Found) ->
    variables(Tail, variables(Head, Found));
variables(Tuple, Found) when is_tuple(Tuple) -> variables(tuple_to_list(Tuple), Found);
variables(Map, Found) when is_map(Map) -> variables(maps:values(Map), Found);
variables(Atom, Found) when is_atom(Atom) ->
    case is_variable(Atom) of
        true -> [Atom | Found];
        false -> Found
    end;
variables(_, Found) ->
    Found.

is_variable(Atom) ->
    case atom_to_list(Atom) of
        [$$, Digit | _] -> Digit >= $0 andalso Digit =< $9;
        _ -> false
    end.

%% ----- guards -----

guard(Scope, 0) ->
    test(Scope);
guard(Scope, Depth) ->
    Inner = fun() -> guard(Scope, Depth - 1) end,
    case rand:uniform(20) of
        1 -> {'not', Inner()};
        2 -> {'xor', Inner(), Inner()};
        N when N < 9 ->
            Operator = pick({'and', 'or', 'andalso', 'orelse'}),
            list_to_tuple([Operator | [Inner() || _ <- lists:seq(1, pick({1, 2, 2, 2, 3}))]]);
        N when N < 12 ->
            between(operand(Scope), Scope);
        _ ->
            test(Scope)
    end.

%% The arguments of functions of ranges.
between(Operand, Scope) ->
    {
        pick({'and', 'andalso'}),
        {pick({'>', '>='}), Operand, constant(Scope)},
        {pick({'<', '=<'}), Operand, constant(Scope)}
    }.

test(Scope) ->
    case rand:uniform(20) of
        N when N < 10 ->
            comparison(operand(Scope), constant(Scope));
        N when N < 12 ->
            comparison(operand(Scope), expression(Scope, 2));
        12 ->
            comparison(expression(Scope, 2), constant(Scope));
        13 ->
            {type_test(), operand(Scope)};
        14 ->
            {'not', {type_test(), operand(Scope)}};
        15 ->
            prefix_test(Scope);
        16 ->
            map_test(Scope);
        17 ->
            pick({true, false, other, operand(Scope), {'==', 1, 1.0}, {is_record, '$_', foo, 2}});
        18 ->
            %% Fails always, or on most objects.
            pick({
                {'==', {hd, operand(Scope)}, constant(Scope)},
                {'>', {'div', 1, 0}, 1},
                {'=:=', {element, 9, '$_'}, 1},
                {'and', true, other},
                {'orelse', {'>', operand(Scope), constant(Scope)},
                           {'==', {length, operand(Scope)}, 2}}
            });
        19 ->
            comparison({element, maps:get(keypos, Scope), '$_'}, constant(Scope));
        20 ->
            comparison(pick({'$_', '$$'}), constant(Scope))
    end.

comparison(A, B) ->
    Operator = pick({'<', '=<', '>', '>=', '==', '=:=', '<', '=<', '>', '>=', '/=', '=/='}),
    case rand:uniform(3) of
        1 -> {Operator, B, A};
        _ -> {Operator, A, B}
    end.

type_test() ->
    New =
        case has_new_functions() of
            true -> pick({is_boolean, is_bitstring});
            false -> is_atom
        end,
    pick({
        is_atom, is_float, is_integer, is_list, is_number, is_pid, is_port, is_reference, is_tuple,
        is_map, is_binary, is_function, New
    }).

%% Since Erlang/OTP 27 a specification may call eight more.
has_new_functions() ->
    list_to_integer(erlang:system_info(otp_release)) >= 27.

prefix_test(Scope) ->
    Operand = operand(Scope),
    N = rand:uniform(3) - 1,
    Binary = <<(term(binary))/bits>>,
    Part = pick({{binary_part, Operand, 0, N}, {binary_part, Operand, {{0, N}}}}),
    pick({
        {'=:=', Part, Binary},
        {'==', Binary, Part},
        {'andalso', {'>=', {byte_size, Operand}, N}, {'==', Part, Binary}},
        {'and', {'>=', Operand, Binary}, {'<', Operand, <<Binary/bits, 255>>}},
        {'>', {bit_size, Operand}, 8 * N}
    }).

map_test(#{parts := Parts} = Scope) ->
    Key = written(pick(Parts)),
    pick({
        {is_map_key, Key, operand(Scope)},
        {'==', {map_get, Key, operand(Scope)}, constant(Scope)},
        {'>', {map_size, operand(Scope)}, 0}
    }).

%% The operands of a comparison: mostly a variable, of these mostly the one that may be the key.
operand(#{bound := {}, keypos := KeyPos}) ->
    pick({'$_', {element, KeyPos, '$_'}});
operand(#{bound := Bound, first := First, keypos := KeyPos}) ->
    case rand:uniform(12) of
        1 -> {element, KeyPos, '$_'};
        2 -> {element, pick({1, 2}), pick(Bound)};
        3 -> {pick({hd, tl}), pick(Bound)};
        N when N < 8 ->
            case lists:member(First, tuple_to_list(Bound)) of
                true -> First;
                false -> pick(Bound)
            end;
        _ -> pick(Bound)
    end.

constant(#{parts := Parts} = Scope) ->
    Term = near(pick(Parts)),
    case rand:uniform(12) of
        N when N < 4 -> {const, Term};
        4 when is_integer(Term) -> {'+', Term - 1, 1};
        5 -> {{written(Term), first_or(Scope)}};
        6 -> written(number());
        _ -> written(Term)
    end.

first_or(#{bound := {}}) -> true;
first_or(#{bound := Bound}) -> element(1, Bound).

%% Returns the expression whose value is the term.
-spec written(term()) -> term().
written(Tuple) when is_tuple(Tuple) ->
    {list_to_tuple([written(E) || E <- tuple_to_list(Tuple)])};
written([Head | Tail]) ->
    [written(Head) | written(Tail)];
written(Map) when is_map(Map) ->
    maps:from_list([{written(K), written(V)} || {K, V} <- maps:to_list(Map)]);
written(Term) ->
    Term.

%% ----- expressions and bodies -----

expression(Scope, 0) ->
    case rand:uniform(3) of
        1 -> constant(Scope);
        _ -> operand(Scope)
    end;
expression(Scope, Depth) ->
    Inner = fun() -> expression(Scope, Depth - 1) end,
    case rand:uniform(12) of
        1 -> {pick({'+', '-', '*', '/', 'div', 'rem'}), Inner(), Inner()};
        2 -> {pick({'+', '-'}), Inner(), small()};
        3 -> {pick({'band', 'bor', 'bxor'}), Inner(), Inner()};
        4 -> {pick({'bsl', 'bsr'}), Inner(), small()};
        5 ->
            One = {
                abs, hd, tl, length, round, trunc, float, size, map_size, bit_size, byte_size,
                '+', '-', 'bnot', 'not', node
            },
            {pick(One), Inner()};
        6 -> {element, pick({0, 1, 2, 3, Inner()}), Inner()};
        7 -> pick({{map_get, Inner(), Inner()}, {is_map_key, Inner(), Inner()}});
        8 -> pick({{self}, {node}, '$$', '$_', {is_record, Inner(), foo, 3}});
        9 -> {{Inner(), Inner()}};
        10 ->
            case has_new_functions() of
                true ->
                    pick({
                        {pick({max, min, is_function}), Inner(), Inner()},
                        {pick({ceil, floor, tuple_size}), Inner()}
                    });
                false ->
                    #{Inner() => a, b => Inner()}
            end;
        _ -> expression(Scope, 0)
    end.

body(Scope, 0) ->
    case rand:uniform(3) of
        1 -> '$_';
        _ -> operand(Scope)
    end;
body(Scope, Depth) ->
    Inner = fun() -> body(Scope, Depth - 1) end,
    case rand:uniform(16) of
        N when N < 4 -> '$_';
        4 -> '$$';
        N when N < 7 -> true;
        7 -> {{Inner(), Inner()}};
        8 -> {{}};
        9 -> [Inner() | pick({Inner(), [], [Inner()]})];
        10 ->
            pick({
                #{Inner() => {element, 1, '$_'}},
                #{a => Inner(), b => Inner()},
                #{Inner() => 1, Inner() => Inner(), Inner() => x}
            });
        11 -> expression(Scope, 2);
        12 -> guard(Scope, 2);
        13 -> constant(Scope);
        14 ->
            pick({
                {hd, x}, {'+', Inner(), 1}, {'div', 1, 0}, {element, 9, '$_'}, {'and', true, x}
            });
        _ -> operand(Scope)
    end.

%% A specification for select_replace/2: most keep the key, and of those that do not some would if
%% one looked closer.
-spec replacement(table()) -> ets:match_spec().
replacement(#{keypos := KeyPos} = Table) ->
    IsGood = ?OFTEN(70),
    [replacing(IsGood, Clause, KeyPos, Table) || Clause <- spec(Table)].

replacing(IsGood, {Head, Guards, Body}, KeyPos, _) when tuple_size(Head) >= KeyPos ->
    Key = element(KeyPos, Head),
    New = list_to_tuple([pick({1, new, '$_', {const, {a}}}) || _ <- tuple_to_list(Head)]),
    Built = fun(E) -> {setelement(KeyPos, New, E)} end,
    Kept = Built(pick({rebuilt(Key), {element, KeyPos, '$_'}})),
    Others = {
        Built(rebuilt(Key)),
        Built({const, Key}),
        Built(near(rebuilt(Key))),
        Built({element, KeyPos rem 3 + 1, '$_'}),
        {const, setelement(KeyPos, New, Key)},
        New,
        hd(Body)
    },
    %% A head cannot say `any' and keep it.
    case IsGood of
        true when Key =:= '_' -> {Head, Guards, ['$_']};
        true -> {Head, pick({Guards, []}), [pick({Kept, Kept, Kept, '$_'})]};
        false -> {Head, Guards, [pick(Others) | pick({[], [], [], [], [], ['$_']})]}
    end;
replacing(true, {Head, Guards, _}, KeyPos, _) ->
    New = setelement(KeyPos, {x, y, z}, {element, KeyPos, '$_'}),
    {Head, Guards, [pick({'$_', {New}})]};
replacing(false, {Head, Guards, Body}, _, #{parts := Parts}) ->
    {Head, Guards, [pick({{const, {pick(Parts), 1}}, hd(Body)})]}.

%% Returns the key of a head as an expression, some of its parts as constants.
rebuilt(Tuple) when is_tuple(Tuple) ->
    {list_to_tuple([rebuilt(E) || E <- tuple_to_list(Tuple)])};
rebuilt([Head | Tail]) ->
    [rebuilt(Head) | rebuilt(Tail)];
rebuilt(Map) when is_map(Map) ->
    Map;
rebuilt(Atom) when is_atom(Atom) ->
    Atom;
rebuilt(Term) ->
    pick({Term, Term, {const, Term}}).

%% A term that is no specification, although most of it is.
-spec bad_spec(table()) -> term().
bad_spec(Table) ->
    [{Head, Guards, Body} | _] = Good = spec(Table),
    Guard = pick({
        {foo, 1}, {message, 1}, {is_atom, a, b}, {'and'}, {'orelse'}, {self, 1}, {const},
        {const, 1, 2}, {}, {1, 2}, {{1}, 2}, {'$1'}, '$55', {'>', '$1', '$77'}, {ceil, 1.5},
        {max, 1, 2}, {is_record, '$_', x}, {return_trace}, {tuple_size, '$_'},
        #{'$88' => 1}, ['$99'], {'==', 1}
    }),
    pick({
        [{Head, Guards ++ [Guard], Body} | tl(Good)],
        Good ++ [{Head, Guards, Body ++ [Guard]}],
        [{Head, [{'or', true, {'not', Guard}}], Body}],
        [{Head, Guards, [{{1, [Guard]}}]}],
        pick({
            [],
            x,
            {Head, Guards, Body},
            Good ++ [x],
            Good ++ x,
            [{Head, Guards}],
            [{Head, Guards, Body, x}],
            [{Head, x, Body}],
            [{Head, Guards, x}],
            [{Head, Guards, []}],
            [{Head, Guards ++ x, Body}],
            [{Head, Guards, Body ++ x}],
            [{{#{'$1' => x}}, [], [true]}],
            [{{#{'_' => x}}, [], [true]}],
            [{{{1, [#{'$1' => x}]}}, [], [true]}],
            Good ++ [{#{'_' => 1}, [], ['$_']}],
            <<"x">>,
            17
        })
    }).

%% ----- simpler cases -----

%% Clauses that are simpler in one place.
-spec simpler(term()) -> [term()].
simpler({Head, Guards, Body}) when is_list(Guards), is_list(Body) ->
    [{Head, without(I, Guards), Body} || I <- lists:seq(1, length(Guards))] ++
        [{Head, Guards, ['$_']} || Body =/= ['$_']] ++
        [{Head, Guards, [true]} || Body =/= [true], Body =/= ['$_']] ++
        [{Head, Simpler, Body} || Simpler <- with_simpler_part(Guards)] ++
        [{Head, Guards, Simpler} || Simpler <- with_simpler_part(Body)] ++
        [{H, Guards, Body} || H <- simpler_head(Head)];
simpler(_) ->
    [].

simpler_head(Head) when is_tuple(Head) ->
    [
        setelement(I, Head, '_')
     || I <- lists:seq(1, tuple_size(Head)), element(I, Head) =/= '_'
    ];
simpler_head(_) ->
    [].

within(Tuple) when tuple_size(Tuple) > 0 ->
    Parts = tuple_to_list(Tuple),
    Parts ++ [list_to_tuple(Simpler) || Simpler <- with_simpler_part(Parts)];
within([Head | Tail]) ->
    [Head, Tail];
within(Map) when is_map(Map) ->
    maps:keys(Map) ++ maps:values(Map);
within(_) ->
    [].

with_simpler_part(Parts) ->
    [replaced(I, Parts, P) || {I, Part} <- numbered(Parts), P <- within(Part)].

numbered(List) -> lists:zip(lists:seq(1, length(List)), List).

without(I, List) -> lists:sublist(List, I - 1) ++ lists:nthtail(I, List).

replaced(I, List, New) -> lists:sublist(List, I - 1) ++ [New | lists:nthtail(I, List)].

%% ----- help -----

%% One element of a tuple.
-spec pick(tuple()) -> term().
pick(Tuple) -> element(rand:uniform(tuple_size(Tuple)), Tuple).

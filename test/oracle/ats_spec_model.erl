%% The meaning of a match specification, said as plainly as possible.
%%
%% A reference beside `ets', which does not give the right answer to everything in every release
%% (see `ats_ets_faults'). There are no plans and no compilation here: each object is matched with
%% the heads, and guards and bodies are evaluated by calling the functions they name.
-module(ats_spec_model).

-export([is_valid/1, run/2, keeps_key/2, is_variable/1]).

-type scope() :: {guard | body, Bound :: #{non_neg_integer() => term()}, Object :: term()}.

-define(IS_LOGICAL(Form), (Form =:= 'and' orelse Form =:= 'or')).
-define(IS_LAZY(Form), (Form =:= 'andalso' orelse Form =:= 'andthen' orelse Form =:= 'orelse')).

%% ----- running -----

%% The result of the first clause that the object satisfies.
-spec run(ets:match_spec(), term()) -> {value, term()} | none.
run([], _) ->
    none;
run([{Head, Guards, Body} | Clauses], Object) ->
    case match(Head, Object) of
        fail ->
            run(Clauses, Object);
        Bound ->
            case pass(Guards, {guard, Bound, Object}) of
                true -> {value, lists:last([value(E, {body, Bound, Object}) || E <- Body])};
                false -> run(Clauses, Object)
            end
    end.

pass(Guards, Scope) ->
    try
        lists:all(fun(Guard) -> value(Guard, Scope) =:= true end, Guards)
    catch
        throw:failed -> false
    end.

%% ----- heads -----

%% The terms to which variables are bound, by their numbers.
match(Head, Object) ->
    match([{Head, Object}], [], #{}).

%% Terms of one level are matched before those inside of them, and of several inside the last comes
%% first. This decides which zero a variable has that stands for several, where 0.0 =:= -0.0.
match([], [], Bound) ->
    Bound;
match([], [{Pattern, Term} | Inside], Bound) ->
    match(parts(Pattern, Term), Inside, Bound);
match([{Pattern, Term} | Rest], Inside, Bound) ->
    case kind(Pattern) of
        any -> match(Rest, Inside, Bound);
        compound -> match_compound(Pattern, Term, Rest, Inside, Bound);
        literal -> match_if(is_literal(Pattern, Term), Rest, Inside, Bound);
        {variable, N} when is_map_key(N, Bound) ->
            match_if(map_get(N, Bound) =:= Term, Rest, Inside, Bound);
        {variable, N} -> match(Rest, Inside, Bound#{N => Term})
    end.

match_if(true, Rest, Inside, Bound) -> match(Rest, Inside, Bound);
match_if(false, _, _, _) -> fail.

match_compound(Pattern, Term, Rest, Inside, Bound) ->
    case is_alike(Pattern, Term) of
        true -> match(Rest, [{Pattern, Term} | Inside], Bound);
        false -> fail
    end.

kind('_') ->
    any;
kind(Atom) when is_atom(Atom) ->
    case is_variable(Atom) of
        {true, N} -> {variable, N};
        false -> literal
    end;
kind(Term) when is_tuple(Term); is_map(Term); is_list(Term), Term =/= [] -> compound;
kind(_) ->
    literal.

is_alike([_ | _], [_ | _]) -> true;
is_alike(Pattern, Map) when is_map(Pattern), is_map(Map) ->
    lists:all(fun(Key) -> is_map_key(Key, Map) end, maps:keys(Pattern));
is_alike(Pattern, Tuple) when is_tuple(Pattern), is_tuple(Tuple) ->
    tuple_size(Pattern) =:= tuple_size(Tuple);
is_alike(_, _) ->
    false.

parts([Head | Tail], [Term | Terms]) -> [{Head, Term} | tail_parts(Tail, Terms)];
parts(Map, Term) when is_map(Map) -> [{P, map_get(Key, Term)} || {Key, P} <- maps:to_list(Map)];
parts(Tuple, Term) -> lists:zip(tuple_to_list(Tuple), tuple_to_list(Term)).

%% All elements of a list are on one level.
tail_parts([_ | _] = Pattern, [_ | _] = Term) -> parts(Pattern, Term);
tail_parts(Pattern, Term) -> [{Pattern, Term}].

%% A head takes -0.0 and 0.0 for different terms even where Erlang does not.
is_literal(A, B) when is_float(A), is_float(B) -> <<A/float>> =:= <<B/float>>;
is_literal(A, B) -> A =:= B.

%% The number of a variable: '$0', '$1' and so on, but not '$01'.
-spec is_variable(term()) -> {true, non_neg_integer()} | false.
is_variable('$1') ->
    {true, 1};
is_variable(Atom) when is_atom(Atom) ->
    case atom_to_list(Atom) of
        "$0" -> {true, 0};
        [$$, First | Rest] when First >= $1, First =< $9 ->
            case lists:all(fun(C) -> C >= $0 andalso C =< $9 end, Rest) of
                true -> {true, list_to_integer([First | Rest])};
                false -> false
            end;
        _ -> false
    end;
is_variable(_) ->
    false.

%% ----- guards and bodies -----

%% A failure in a guard is thrown; in a body its value is `EXIT', and the rest goes on with that.
-spec value(term(), scope()) -> term().
value('$_', {_, _, Object}) ->
    Object;
value('$$', {_, Bound, _}) ->
    [Term || {_, Term} <- lists:keysort(1, maps:to_list(Bound))];
value(Atom, {_, Bound, _}) when is_atom(Atom) ->
    case is_variable(Atom) of
        {true, N} -> map_get(N, Bound);
        false -> Atom
    end;
value([Head | Tail], Scope) ->
    [value(Head, Scope) | value(Tail, Scope)];
value(Map, Scope) when is_map(Map) ->
    %% The last of several equal keys wins, in the order of the source.
    Pairs = lists:sort(fun({A, _}, {B, _}) -> is_before(A, B) end, maps:to_list(Map)),
    maps:from_list([{value(Key, Scope), value(Value, Scope)} || {Key, Value} <- Pairs]);
value({const, Term}, _) ->
    Term;
value({Tuple}, Scope) when is_tuple(Tuple) ->
    list_to_tuple([value(E, Scope) || E <- tuple_to_list(Tuple)]);
value({self}, _) ->
    self();
value(Call, Scope) when is_tuple(Call) ->
    [Name | Arguments] = tuple_to_list(Call),
    call(Name, Arguments, Scope);
value(Term, _) ->
    Term.

%% The order of the keys of a map, in which 1 comes before 1.0: only maps are compared like that.
is_before(A, B) -> #{A => x} =< #{B => x}.

call(Name, Arguments, Scope) when ?IS_LAZY(Name) ->
    lazy(Name =:= 'orelse', Arguments, Scope);
call(Name, Arguments, Scope) ->
    Values = [value(Argument, Scope) || Argument <- Arguments],
    try
        apply_to(Name, Values)
    catch
        error:_ -> failed(Scope)
    end.

%% All are evaluated, and all have to be booleans.
apply_to(Name, Values) when ?IS_LOGICAL(Name) ->
    true = lists:all(fun is_boolean/1, Values),
    case Name of
        'and' -> lists:all(fun(Value) -> Value end, Values);
        'or' -> lists:any(fun(Value) -> Value end, Values)
    end;
apply_to(Name, Values) ->
    apply(erlang, Name, Values).

%% Evaluates as many terms as are needed; the last may be anything.
lazy(_, [Last], Scope) ->
    value(Last, Scope);
lazy(Decides, [Argument | Arguments], Scope) ->
    case value(Argument, Scope) of
        Decides -> Decides;
        Value when is_boolean(Value) -> lazy(Decides, Arguments, Scope);
        _ -> failed(Scope)
    end.

-spec failed(scope()) -> 'EXIT'.
failed({guard, _, _}) -> throw(failed);
failed({body, _, _}) -> 'EXIT'.

%% ----- valid specifications -----

%% An empty one is none, although functions on tables take it.
-spec is_valid(term()) -> boolean().
is_valid([_ | _] = Clauses) -> is_list_of(fun is_clause/1, Clauses);
is_valid(_) -> false.

%% The list is a proper one.
is_list_of(Is, [Element | Rest]) -> Is(Element) andalso is_list_of(Is, Rest);
is_list_of(_, End) -> End =:= [].

is_clause({Head, Guards, [_ | _] = Body}) ->
    is_head(Head) andalso
        begin
            Bound = variables(Head, []),
            Is = fun(Expression) -> is_expression(Expression, Bound) end,
            is_list_of(Is, Guards) andalso is_list_of(Is, Body)
        end;
is_clause(_) ->
    false.

%% Keys of maps are neither variables nor `_', but may contain such.
is_head([Head | Tail]) -> is_head(Head) andalso is_head(Tail);
is_head(Tuple) when is_tuple(Tuple) -> lists:all(fun is_head/1, tuple_to_list(Tuple));
is_head(Map) when is_map(Map) ->
    IsKey = fun(Key) -> Key =/= '_' andalso is_variable(Key) =:= false end,
    lists:all(IsKey, maps:keys(Map)) andalso lists:all(fun is_head/1, maps:values(Map));
is_head(_) ->
    true.

variables([Head | Tail], Found) -> variables(Tail, variables(Head, Found));
variables(Tuple, Found) when is_tuple(Tuple) -> variables(tuple_to_list(Tuple), Found);
variables(Map, Found) when is_map(Map) -> variables(maps:values(Map), Found);
variables(Term, Found) ->
    case is_variable(Term) of
        {true, _} -> [Term | Found];
        false -> Found
    end.

is_expression([Head | Tail], Bound) ->
    is_expression(Head, Bound) andalso is_expression(Tail, Bound);
is_expression(Map, Bound) when is_map(Map) ->
    are_expressions(maps:keys(Map) ++ maps:values(Map), Bound);
is_expression({const, _}, _) ->
    true;
is_expression({Tuple}, Bound) when is_tuple(Tuple) ->
    are_expressions(tuple_to_list(Tuple), Bound);
is_expression(Call, Bound) when is_tuple(Call) ->
    case tuple_to_list(Call) of
        [Name | Arguments] ->
            is_callable(Name, length(Arguments)) andalso are_expressions(Arguments, Bound);
        [] ->
            false
    end;
is_expression(Term, Bound) ->
    is_variable(Term) =:= false orelse lists:member(Term, Bound).

are_expressions(Expressions, Bound) ->
    lists:all(fun(E) -> is_expression(E, Bound) end, Expressions).

is_callable(self, Arity) ->
    Arity =:= 0;
is_callable(Name, Arity) when ?IS_LOGICAL(Name); ?IS_LAZY(Name) ->
    Arity > 0;
is_callable(Name, Arity) ->
    lists:member({Name, Arity}, functions()) orelse
        (release() >= 27 andalso lists:member({Name, Arity}, new_functions())).

functions() ->
    [
        {is_atom, 1}, {is_float, 1}, {is_integer, 1}, {is_list, 1}, {is_number, 1}, {is_pid, 1},
        {is_port, 1}, {is_reference, 1}, {is_tuple, 1}, {is_map, 1}, {is_binary, 1},
        {is_function, 1}, {is_record, 3}, {is_map_key, 2}, {abs, 1}, {element, 2}, {hd, 1},
        {tl, 1}, {length, 1}, {node, 0}, {node, 1}, {round, 1}, {trunc, 1}, {float, 1}, {size, 1},
        {map_size, 1}, {map_get, 2}, {bit_size, 1}, {byte_size, 1}, {binary_part, 2},
        {binary_part, 3}, {'+', 1}, {'-', 1}, {'+', 2}, {'-', 2}, {'*', 2}, {'/', 2}, {'div', 2},
        {'rem', 2}, {'band', 2}, {'bor', 2}, {'bxor', 2}, {'bnot', 1}, {'bsl', 2}, {'bsr', 2},
        {'>', 2}, {'>=', 2}, {'<', 2}, {'=<', 2}, {'==', 2}, {'=:=', 2}, {'=/=', 2}, {'/=', 2},
        {'not', 1}, {'xor', 2}
    ].

new_functions() ->
    [
        {is_bitstring, 1}, {is_boolean, 1}, {is_function, 2}, {max, 2}, {min, 2}, {tuple_size, 1},
        {ceil, 1}, {floor, 1}
    ].

release() -> list_to_integer(erlang:system_info(otp_release)).

%% ----- replacing -----

%% Returns `true' if select_replace/2 takes a valid specification: one can see that no clause
%% changes a key.
-spec keeps_key(ets:match_spec(), pos_integer()) -> boolean().
keeps_key(Clauses, KeyPos) ->
    lists:all(fun({Head, _, Body}) -> is_key_kept(Head, Body, KeyPos) end, Clauses).

is_key_kept(_, ['$_'], _) ->
    true;
is_key_kept(Head, [{const, New}], KeyPos) when
    tuple_size(Head) >= KeyPos, tuple_size(New) >= KeyPos
->
    is_same_constant(element(KeyPos, Head), element(KeyPos, New));
is_key_kept(Head, [{New}], KeyPos) when tuple_size(Head) >= KeyPos, tuple_size(New) >= KeyPos ->
    Key = element(KeyPos, New),
    Key =:= {element, KeyPos, '$_'} orelse makes(element(KeyPos, Head), Key);
is_key_kept(_, _, _) ->
    false.

%% Returns `true' if the expression makes a term that the pattern matches.
makes([P | Ps], [E | Es]) -> makes(P, E) andalso makes(Ps, Es);
makes(Pattern, {const, Term}) -> is_same_constant(Pattern, Term);
makes(Pattern, {Tuple}) when is_tuple(Pattern), tuple_size(Pattern) =:= tuple_size(Tuple) ->
    lists:all(fun({P, E}) -> makes(P, E) end, parts(Pattern, Tuple));
makes(Pattern, Expression) ->
    is_simple(Expression) andalso Pattern =:= Expression.

%% The pattern matches nothing but this term, and that is in it as it is.
is_same_constant([P | Ps], [T | Ts]) ->
    is_same_constant(P, T) andalso is_same_constant(Ps, Ts);
is_same_constant(Pattern, Term) when is_tuple(Pattern), tuple_size(Pattern) =:= tuple_size(Term) ->
    lists:all(fun({P, T}) -> is_same_constant(P, T) end, parts(Pattern, Term));
is_same_constant(Pattern, Term) ->
    is_simple(Term) andalso Pattern =:= Term andalso is_variable(Term) =:= false.

is_simple(Term) ->
    kind(Term) =/= compound andalso not lists:member(Term, ['_', '$_', '$$']).

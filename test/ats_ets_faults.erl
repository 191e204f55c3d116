%% Which match specifications `ets' of this release gives wrong answers to, or does not survive, or
%% answers in a way that cannot be foretold.
%%
%% Found by comparing it with `ats_spec_model', and in its source code. It must not be asked these
%% in a virtual machine that is to go on: some leave a heap behind that the next garbage
%% collection trips over.
-module(ats_ets_faults).

-export([is_right/3]).

%% Tells whether `ets' can be relied upon for a specification on tables of a type with a position
%% of keys; the specification may be anything.
-spec is_right(ets:type(), pos_integer(), term()) -> boolean().
is_right(Type, KeyPos, Spec) ->
    Clauses = clauses(Spec),
    not (Type =:= ordered_set andalso has_confusing_keys(Clauses, KeyPos)) andalso
        case release() >= 27 of
            true -> not lists:any(fun is_undetermined/1, Clauses);
            false -> not lists:any(fun(C) -> is_mistaken(C, KeyPos) end, Clauses)
        end.

clauses([{_, _, _} = Clause | Clauses]) -> [Clause | clauses(Clauses)];
clauses([_ | Clauses]) -> clauses(Clauses);
clauses(_) -> [].

release() -> list_to_integer(erlang:system_info(otp_release)).

%% ----- several keys in an ordered_set -----

%% The range of keys to be read is made of the keys in the heads. That goes wrong if they have
%% tuples of different size inside, or numbers there that are equal but not identical.
has_confusing_keys(Clauses, KeyPos) ->
    Keys = lists:usort([Key || Key <- keys(Clauses, KeyPos), is_compound(Key)]),
    length(Keys) > 1 andalso lists:any(fun is_confusing/1, Keys).

keys(Clauses, KeyPos) ->
    [element(KeyPos, Head) || {Head, _, _} <- Clauses, tuple_size(Head) >= KeyPos].

is_confusing(Key) -> has(fun(Part) -> is_float(Part) orelse is_tuple(Part) end, parts(Key)).

%% ----- before Erlang/OTP 27 -----

is_mistaken({Head, Guards, Body}, KeyPos) ->
    has(fun erlang:is_map/1, keys([{Head, Guards, Body}], KeyPos)) orelse
        has(fun is_unsafe_map/1, [Guards, Body]) orelse
        has(fun is_unsafe_choice/1, Body).

%% Two keys may turn out to be the same, then words between terms are not initialised. If only
%% keys are computed, or there are many of them, results refer to the memory of the table.
is_unsafe_map(Map) when is_map(Map) ->
    map_size(Map) > 32 orelse lists:any(fun is_computed/1, maps:keys(Map));
is_unsafe_map(_) ->
    false.

is_computed(Term) -> is_compound(Term) orelse Term =:= '$_' orelse is_bound(Term).

%% A variable is copied out of the table where it stands first; if that is not evaluated, it is
%% where it stands next that refers to the memory of the table.
is_unsafe_choice(Call) when is_tuple(Call), tuple_size(Call) > 2 ->
    [Form, _ | Skipped] = tuple_to_list(Call),
    lists:member(Form, ['andalso', 'andthen', 'orelse']) andalso has(fun is_bound/1, Skipped);
is_unsafe_choice(_) ->
    false.

is_bound('$$') -> true;
is_bound(Term) -> ats_spec_model:is_variable(Term) =/= false.

%% ----- Erlang/OTP 27 -----

%% Of keys that turn out to be the same the last one counts, but atoms are in no particular order.
%% If there is a third key, the result may have a key twice.
is_undetermined({_, Guards, Body}) ->
    has(fun is_doubtful_map/1, [Guards, Body]).

is_doubtful_map(Map) when is_map(Map) ->
    Keys = maps:keys(Map),
    (length(Keys) > 2 orelse lists:all(fun erlang:is_atom/1, Keys)) andalso
        lists:any(fun is_computed/1, Keys);
is_doubtful_map(_) ->
    false.

%% ----- terms -----

is_compound(Term) -> is_map(Term) orelse is_tuple(Term) orelse (is_list(Term) andalso Term =/= []).

%% Tells whether a term has such a part, or is one.
has(Is, Term) ->
    Is(Term) orelse (is_compound(Term) andalso lists:any(fun(P) -> has(Is, P) end, parts(Term))).

parts([Head | Tail]) -> [Head, Tail];
parts(Tuple) when is_tuple(Tuple) -> tuple_to_list(Tuple);
parts(Map) -> maps:keys(Map) ++ maps:values(Map).

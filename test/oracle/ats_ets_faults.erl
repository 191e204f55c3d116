%% Match specifications to which `ets' gives wrong answers, or which it does not survive.
%%
%% Found by comparing it with `ats_spec_model', and in its source code; all but one are still there
%% in Erlang/OTP 27. It must not be asked these in a virtual machine that is to go on: some leave a
%% heap behind that the next garbage collection trips over.
-module(ats_ets_faults).

-export([is_right/3]).

%% Tells whether `ets' can be relied upon for a specification on tables of a type with a position
%% of keys; the specification may be anything.
-spec is_right(ets:type(), pos_integer(), term()) -> boolean().
is_right(Type, KeyPos, Spec) ->
    Clauses = clauses(Spec),
    Keys = keys(Clauses, KeyPos),
    not ((Type =:= ordered_set andalso are_confusing(Keys)) orelse
        (release() < 27 andalso has(fun erlang:is_map/1, Keys)) orelse
        has(fun is_unsafe_map/1, [[Guards, Body] || {_, Guards, Body} <- Clauses]) orelse
        has(fun is_unsafe_choice/1, [Body || {_, _, Body} <- Clauses])).

clauses([{_, _, _} = Clause | Clauses]) -> [Clause | clauses(Clauses)];
clauses([_ | Clauses]) -> clauses(Clauses);
clauses(_) -> [].

release() -> list_to_integer(erlang:system_info(otp_release)).

%% ----- keys in heads -----

keys(Clauses, KeyPos) ->
    [element(KeyPos, Head) || {Head, _, _} <- Clauses, tuple_size(Head) >= KeyPos].

%% The range of keys to be read in an ordered_set is made of the keys in all heads. That goes wrong
%% if they have tuples of different size inside, or numbers there that are equal but not identical.
%%
%% Maps in keys were looked up as they are written before Erlang/OTP 26.2.5.
are_confusing(Keys) ->
    Compound = lists:usort(lists:filter(fun is_compound/1, Keys)),
    length(Compound) > 1 andalso lists:any(fun is_confusing/1, Compound).

is_confusing(Key) ->
    has(fun(Part) -> is_float(Part) orelse is_tuple(Part) end, parts(Key)).

%% ----- guards and bodies -----

%% Two keys may turn out to be the same. Then the map may have a key twice, and there are words
%% between terms that are not initialised. If only keys are computed, or there are many of them,
%% results refer to the memory of the table.
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

%% ----- terms -----

is_compound(Term) -> is_map(Term) orelse is_tuple(Term) orelse (is_list(Term) andalso Term =/= []).

%% Tells whether a term has such a part, or is one.
has(Is, Term) ->
    Is(Term) orelse (is_compound(Term) andalso lists:any(fun(P) -> has(Is, P) end, parts(Term))).

parts([Head | Tail]) -> [Head, Tail];
parts(Tuple) when is_tuple(Tuple) -> tuple_to_list(Tuple);
parts(Map) -> maps:keys(Map) ++ maps:values(Map).

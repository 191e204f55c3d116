%% Copies of modules of Erlang/OTP under other names, made of the code in their object files.
%%
%% A copy is compiled with `ats_transform', so that its tables are tables of `ats', or without it.
-module(ats_module_copy).

-export([load/2, load/3, unload/1, name/2, forms/1, check/2, same/2, sort/1]).

-type kind() :: moved | plain.
%% The module of tables that a copy uses: `ats' or `ets'.

%% The name of the copy of a module.
-spec name(kind(), module()) -> module().
name(Kind, Module) ->
    list_to_atom(atom_to_list(Kind) ++ "_" ++ atom_to_list(Module)).

-spec load(kind(), [module()]) -> [module()].
load(Kind, Modules) ->
    load(Kind, Modules, #{}).

%% Compiles and loads copies of modules that call each other. Any atom that is the name of one of
%% them becomes the name of its copy, be it a module, a record or a tag: that is more than is
%% needed, and consistent. More atoms can be replaced, too.
-spec load(kind(), [module()], #{atom() => atom()}) -> [module()].
load(Kind, Modules, More) ->
    Copies = [name(Kind, Module) || Module <- Modules],
    Names = maps:merge(More, maps:from_list(lists:zip(Modules, Copies))),
    lists:foreach(fun(Module) -> load_copy(Kind, Module, Names) end, Modules),
    Copies.

-spec unload([module()]) -> ok.
unload(Copies) ->
    lists:foreach(fun(Copy) -> code:delete(Copy), code:purge(Copy) end, Copies).

%% The forms of a module.
-spec forms(module()) -> [erl_parse:abstract_form()].
forms(Module) ->
    {ok, {Module, [{abstract_code, {raw_abstract_v1, Forms}}]}} =
        beam_lib:chunks(object_file(Module), [abstract_code]),
    Forms.

%% Modules that are there from the start are not found where they were loaded from.
object_file(Module) ->
    case code:which(Module) of
        preloaded -> code:where_is_file(atom_to_list(Module) ++ ".beam");
        File when is_list(File) -> File
    end.

%% Tries a property of copies and originals `Runs' times. A counterexample is printed with the
%% `difference' that the property has left in the process dictionary.
-spec check(term(), pos_integer()) -> ok.
check(Property, Runs) ->
    Options = [{numtests, Runs}, long_result, {on_output, fun(_, _) -> ok end}],
    case proper:quickcheck(Property, Options) of
        true ->
            ok;
        Counterexample ->
            ct:pal("~0tp~n~0tp", [Counterexample, get(difference)]),
            ct:fail(counterexample_found)
    end.

%% Remembers a difference for the report of the smallest case.
-spec same(term(), term()) -> boolean().
same(Expected, Expected) ->
    true;
same([E | Expected], [E | Got]) ->
    same(Expected, Got);
same([E | _], [G | _]) ->
    same(E, G);
same(Expected, Got) ->
    put(difference, {{expected, Expected}, {got, Got}}),
    false.

%% Elements that come in the order of a hash table, in one that is theirs alone: in the order of
%% terms 1 and 1.0 are equal, and would stay as they came.
-spec sort([Element]) -> [Element].
sort(List) ->
    lists:sort(fun(A, B) -> {A, term_to_binary(A)} =< {B, term_to_binary(B)} end, List).

load_copy(Kind, Module, Names) ->
    Copy = maps:get(Module, Names),
    Transforms = [{parse_transform, ats_transform} || Kind =:= moved],
    Renamed = rename(forms(Module), Names),
    case compile:forms(Renamed, [return_errors, debug_info | Transforms]) of
        {ok, Copy, Binary} ->
            {ok, {Copy, [{imports, Imports}]}} = beam_lib:chunks(Binary, [imports]),
            %% Otherwise the comparison would be one of `ets' with itself.
            Kind = kind([M || {M, _, _} <- Imports, M =:= ets orelse M =:= ats], Kind),
            {module, Copy} = code:load_binary(Copy, atom_to_list(Copy), Binary)
    end.

kind(Used, Kind) ->
    case lists:usort(Used) of
        [ats] -> moved;
        [ets] -> plain;
        [] -> Kind
    end.

rename(Atom, Names) when is_atom(Atom) -> maps:get(Atom, Names, Atom);
rename([Head | Tail], Names) -> [rename(Head, Names) | rename(Tail, Names)];
rename(Tuple, Names) when is_tuple(Tuple) ->
    list_to_tuple([rename(Element, Names) || Element <- tuple_to_list(Tuple)]);
rename(Other, _Names) -> Other.

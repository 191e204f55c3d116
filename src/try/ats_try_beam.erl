%% @private
%% @doc Compiled modules that call `ets', changed so that they call `ats'.
%%
%% The names of modules in a compiled module are entries of one table of atoms, which calls of other
%% modules refer to, and so does code that has an atom as data. If all code that has the atom `ets'
%% has it as the module of a call, the entry becomes `ats', which has the same length. Otherwise the
%% table gets a new entry, and only calls refer to it. Calls of `dets' that take a table go to
%% functions that do the same with a table of `ats'.
-module(ats_try_beam).

-export([look/1, carried/1, patch/1]).

-export_type([findings/0]).

-type findings() ::
        #{module := module(),
          calls := [{atom(), arity()}],
          applied := non_neg_integer(),
          data := non_neg_integer(),
          carried => none | changed | unread,
          lacking := [{atom(), arity()}],
          created := [atom()],
          used := [atom()],
          places := [ats_try_places:place()]}.
%% `calls' are the functions of `ets' that the module calls by name, or has as funs; `applied' is
%% the number of calls of functions of `ets' in variables. `data' is how often the atom `ets' is
%% something else. `carried' is the code that the module has with it, for coverage and mocks. A copy
%% has it changed, or not at all if it is `unread'. `ats' does not have the functions in `lacking'.
%% `created' and `used' are names of tables, as far as they are written out. `places' see the inside
%% of `ets', or mean another thing in a copy.

%%--------------------------------------------------------------------------------------------
%% Looking
%%--------------------------------------------------------------------------------------------

%% @doc Finds the uses of `ets' in a compiled module. A file that is no module is `unread', and so
%% is a module of a later release, whose instructions are not known.
-spec look(Beam :: binary()) -> findings() | unread.
look(Beam) ->
    try {beam_lib:chunks(Beam, [imports]), beam_disasm:file(Beam)} of
        {{ok, {Module, [{imports, Imports}]}}, File} when element(1, File) =:= beam_file ->
            look(Module, Imports, Beam, element(6, File));
        _ ->
            unread
    catch
        exit:_ -> unread
    end.

-spec look(module(), [mfa()], binary(), [tuple()]) -> findings().
look(Module, Imports, Beam, Functions) ->
    %% The instructions of each function.
    Code = [element(5, Function) || Function <- Functions],
    Funs = lists:append([ats_try_terms:funs(I) || Function <- Code, I <- Function]),
    Calls = lists:usort([{F, A} || {ets, F, A} <- Imports] ++ Funs),
    Uses = lists:append([uses(Function) || Function <- Code]),
    Names = lists:append([names(Function, unknown) || Function <- Code]),
    Data = length([data || data <- Uses]),
    Lacking = [Call || Call <- Calls, not has(Call)],
    Rules = #{lacking => Lacking, stays => Data > 0 orelse Lacking =/= []},
    #{module => Module,
      calls => Calls,
      applied => length([applied || applied <- Uses]),
      data => Data,
      lacking => Lacking,
      places => ats_try_places:find(Beam, Functions, Rules),
      created => lists:usort([Name || {new, Name} <- Names]),
      used => lists:usort([Name || {Function, Name} <- Names, Function =/= new])}.

%% @doc Tells whether a copy of a compiled module has the code with it that the module has.
-spec carried(Beam :: binary()) -> none | changed | unread.
carried(Beam) ->
    case beam_lib:chunks(Beam, ["Dbgi"], [allow_missing_chunks]) of
        {ok, {_, [{_, Bytes}]}} when is_binary(Bytes) ->
            case ats_try_code:change(Bytes, calls, fun has/1) of
                {ok, _} -> changed;
                NoCode -> NoCode
            end;
        _ ->
            none
    end.

-spec has({atom(), arity()}) -> boolean().
has({Function, Arity}) ->
    {module, ats} = code:ensure_loaded(ats),
    erlang:function_exported(ats, Function, Arity).

%% Returns an element for each time that the atom stands in the code of a function.
-spec uses([term()]) -> [applied | data].
uses([]) ->
    [];
uses([{move, {atom, ets}, {x, Register}} | Rest]) ->
    [case is_applied(Register, Rest) of
         true -> applied;
         false -> data
     end | uses(Rest)];
uses([Instruction | Rest]) ->
    [data || _ <- lists:seq(1, atoms(Instruction))] ++ uses(Rest).

%% A register with the name of a module is that of the next call.
-spec is_applied(non_neg_integer(), [term()]) -> boolean().
is_applied(Register, [{apply, Arity} | _]) -> Register =:= Arity;
is_applied(Register, [{apply_last, Arity, _} | _]) -> Register =:= Arity;
is_applied(Register, [{move, {x, Register}, _} | _]) -> false;
is_applied(Register, [{Does, _} | Rest]) when Does =:= line; Does =:= trim ->
    is_applied(Register, Rest);
is_applied(Register, [{Does, _, Target} | Rest]) when Does =:= move; Does =:= put_tuple2 ->
    Target =/= {x, Register} andalso is_applied(Register, Rest);
is_applied(Register, [{Does, _, _} | Rest]) when Does =:= test_heap; Does =:= trim ->
    is_applied(Register, Rest);
is_applied(Register, [{put_list, _, _, Target} | Rest]) ->
    Target =/= {x, Register} andalso is_applied(Register, Rest);
is_applied(0, [Call | _]) ->
    case called(Call) of
        {extfunc, Module, Function, 3} -> ats_try_rules:is_applying(Module, Function);
        _ -> false
    end;
is_applied(_, _) ->
    false.

%% Returns the number of times that the atom is in an instruction, other than as the module of a
%% call.
-spec atoms(term()) -> non_neg_integer().
atoms({extfunc, ets, _, _}) -> 0;
atoms({func_info, _, _, _}) -> 0;
atoms({literal, Literal}) ->
    ats_try_terms:fold(fun(ets, N) -> N + 1;
                          (_, N) -> N
                       end, 0, Literal);
atoms({atom, ets}) -> 1;
atoms(Tuple) when is_tuple(Tuple) -> atoms(tuple_to_list(Tuple));
atoms([First | Rest]) -> atoms(First) + atoms(Rest);
atoms(_) -> 0.

%% Returns the names of tables in calls: the atom that was moved to the first register just before.
-spec names([term()], {ok, atom()} | unknown) -> [{atom(), atom()}].
names([], _) -> [];
names([{move, {atom, Name}, {x, 0}} | Rest], _) -> names(Rest, {ok, Name});
names([{move, _, {x, 0}} | Rest], _) -> names(Rest, unknown);
names([{label, _} | Rest], _) -> names(Rest, unknown);
names([Instruction | Rest], First) ->
    case {called(Instruction), First} of
        {{extfunc, ets, Function, _}, {ok, Name}} -> [{Function, Name} | names(Rest, unknown)];
        {none, _} -> names(Rest, First);
        _ -> names(Rest, unknown)
    end.

-spec called(term()) -> term().
called({call_ext, _, Function}) -> Function;
called({call_ext_only, _, Function}) -> Function;
called({call_ext_last, _, Function, _}) -> Function;
called(Instruction) when is_tuple(Instruction) ->
    case atom_to_list(element(1, Instruction)) of
        "call" ++ _ -> other;
        _ -> none
    end;
called(_) -> none.

%%--------------------------------------------------------------------------------------------
%% Changing
%%--------------------------------------------------------------------------------------------

%% @doc Returns the module as one that calls `ats'. Calls of functions that `ats' does not have, and
%% the atom `ets' as data, stay.
-spec patch(Beam :: binary()) -> {ok, binary()} | unchanged.
patch(Beam) ->
    case look(Beam) of
        #{calls := [], applied := 0} ->
            unchanged;
        #{} = Findings ->
            {ok, _, Chunks} = beam_lib:all_chunks(Beam),
            {ok, Patched} = beam_lib:build_module([chunk(C, Chunks, Findings) || C <- Chunks]),
            {ok, Patched}
    end.

-type chunk() :: {string(), binary()}.

-spec chunk(chunk(), [chunk()], findings()) -> chunk().
chunk({"AtU8" = Name, Atoms}, Chunks, Findings) ->
    {Name, case is_module_only(Chunks, Findings) of
               true -> add_atoms(replace_atom(Atoms));
               false -> add_atoms(Atoms)
           end};
chunk({"ImpT" = Name, Imports}, Chunks, Findings) ->
    {Name, redirect(Imports, Chunks, Findings)};
chunk({"LitT" = Name, Literals}, _, _) ->
    {Name, change_literals(Literals)};
chunk({"Dbgi" = Name, Code}, Chunks, Findings) ->
    Scope = case is_module_only(Chunks, Findings) of
                true -> atoms;
                false -> calls
            end,
    {Name, case ats_try_code:change(Code, Scope, fun has/1) of
               {ok, Changed} -> Changed;
               none -> Code;
               unread -> term_to_binary({debug_info_v1, erl_abstract_code, {none, []}})
           end};
%% Before Erlang/OTP 20 the code was here, in which no compiler of today puts it.
chunk({"Abst" = Name, _}, _, _) ->
    {Name, <<>>};
chunk(Chunk, _, _) ->
    Chunk.

%% Calls in variables cannot be told from data in the code of a module that has both: all stay.
-spec is_module_only([chunk()], findings()) -> boolean().
is_module_only(Chunks, #{data := 0, lacking := []}) ->
    Ets = index(<<"ets">>, Chunks),
    Named = [Index || {Table, Size} <- [{"ImpT", 12}, {"ExpT", 12}, {"LocT", 12}, {"FunT", 24}],
                      {_, <<_:32, Entries/binary>>} <- [proplists:lookup(Table, Chunks)],
                      Index <- function_names(Table, Size, Entries)],
    Ets =/= none andalso not lists:member(Ets, Named);
is_module_only(_, _) ->
    false.

-spec function_names(string(), pos_integer(), binary()) -> [pos_integer()].
function_names("ImpT", 12, Entries) -> [Name || <<_:32, Name:32, _:32>> <= Entries];
function_names(_, Size, Entries) ->
    Rest = Size - 4,
    [Name || <<Name:32, _:Rest/binary>> <= Entries].

%% Returns the atoms of a module, with the numbers that code has for them. Since Erlang/OTP 28 the
%% lengths can be longer, which a negative number of atoms tells.
-spec atoms_of(binary()) -> [binary()].
atoms_of(<<Count:32/signed, Atoms/binary>>) when Count >= 0 ->
    [Atom || <<Length, Atom:Length/binary>> <= Atoms];
atoms_of(<<_:32/signed, Atoms/binary>>) ->
    long_atoms(Atoms).

-spec long_atoms(binary()) -> [binary()].
long_atoms(<<Length:4, 0:4, Atom:Length/binary, Rest/binary>>) ->
    [Atom | long_atoms(Rest)];
long_atoms(<<High:3, 8:5, Low, Rest/binary>>) ->
    Length = (High bsl 8) bor Low,
    <<Atom:Length/binary, Others/binary>> = Rest,
    [Atom | long_atoms(Others)];
long_atoms(<<>>) ->
    [].

-spec index(binary(), [chunk()]) -> pos_integer() | none.
index(Atom, Chunks) ->
    {_, Table} = lists:keyfind("AtU8", 1, Chunks),
    case lists:splitwith(fun(Other) -> Other =/= Atom end, atoms_of(Table)) of
        {_, []} -> none;
        {Before, _} -> length(Before) + 1
    end.

-spec replace_atom(binary()) -> binary().
replace_atom(<<Count:32/signed, _/binary>> = Table) ->
    Atoms = atoms_of(Table),
    <<Count:32/signed, (entries(Count, [case Atom of
                                     <<"ets">> -> <<"ats">>;
                                     _ -> Atom
                                 end || Atom <- Atoms]))/binary>>.

%% Names of modules that calls go to, after all atoms that were there.
-spec add_atoms(binary()) -> binary().
add_atoms(<<Count:32/signed, _/binary>> = Table) ->
    Next = case Count >= 0 of
               true -> Count + 2;
               false -> Count - 2
           end,
    Atoms = atoms_of(Table) ++ [<<"ats">>, <<"ats_try_dets">>],
    <<Next:32/signed, (entries(Next, Atoms))/binary>>.

-spec entries(integer(), [binary()]) -> binary().
entries(Count, Atoms) when Count >= 0 ->
    << <<(byte_size(Atom)), Atom/binary>> || Atom <- Atoms >>;
entries(_, Atoms) ->
    << <<(long_entry(Atom))/binary>> || Atom <- Atoms >>.

-spec long_entry(binary()) -> binary().
long_entry(Atom) when byte_size(Atom) < 16 -> <<(byte_size(Atom)):4, 0:4, Atom/binary>>;
long_entry(Atom) -> <<(byte_size(Atom) bsr 8):3, 8:5, (byte_size(Atom) band 255), Atom/binary>>.

%% Calls of `ets', and of functions of `dets' that take its tables, refer to atoms that were added.
-spec redirect(binary(), [chunk()], findings()) -> binary().
redirect(<<Count:32, Entries/binary>>, Chunks, #{lacking := Lacking}) ->
    {_, Table} = lists:keyfind("AtU8", 1, Chunks),
    Atoms = list_to_tuple(atoms_of(Table)),
    Changed = << <<(case called_instead(element(Module, Atoms), element(Function, Atoms), Arity,
                                        Lacking) of
                        ats -> tuple_size(Atoms) + 1;
                        dets -> tuple_size(Atoms) + 2;
                        none -> Module
                    end):32, Function:32, Arity:32>>
                 || <<Module:32, Function:32, Arity:32>> <= Entries >>,
    <<Count:32, Changed/binary>>.

-spec called_instead(binary(), binary(), arity(), [{atom(), arity()}]) -> ats | dets | none.
called_instead(<<"ets">>, Function, Arity, Lacking) ->
    case lists:member({binary_to_atom(Function), Arity}, Lacking) of
        true -> none;
        false -> ats
    end;
called_instead(<<"dets">>, Function, 2, _)
  when Function =:= <<"to_ets">>; Function =:= <<"from_ets">> ->
    dets;
called_instead(_, _, _, _) ->
    none.

%% Literals are compressed, or, with the size 0, are not.
-spec change_literals(binary()) -> binary().
change_literals(<<0:32, Literals/binary>>) ->
    <<0:32, (change_terms(Literals))/binary>>;
change_literals(<<_:32, Compressed/binary>>) ->
    Changed = change_terms(zlib:uncompress(Compressed)),
    <<(byte_size(Changed)):32, (zlib:compress(Changed))/binary>>.

-spec change_terms(binary()) -> binary().
change_terms(<<Count:32, Terms/binary>>) ->
    Changed = << <<(change_term(Term))/binary>> || <<Size:32, Term:Size/binary>> <= Terms >>,
    <<Count:32, Changed/binary>>.

%% Bytes of literals without such a fun stay as they are.
-spec change_term(binary()) -> binary().
change_term(Bytes) ->
    Term = binary_to_term(Bytes),
    Changed = case [Fun || Fun <- ats_try_terms:funs(Term), has(Fun)] of
                  [] -> Bytes;
                  _ -> term_to_binary(rename(Term))
              end,
    <<(byte_size(Changed)):32, Changed/binary>>.

-spec rename(term()) -> term().
rename([First | Rest]) -> [rename(First) | rename(Rest)];
rename(Tuple) when is_tuple(Tuple) -> list_to_tuple(rename(tuple_to_list(Tuple)));
rename(Map) when is_map(Map) -> maps:from_list(rename(maps:to_list(Map)));
rename(Fun) when is_function(Fun) ->
    {Name, Arity} = ats_try_terms:name_of(Fun),
    case erlang:fun_info(Fun, module) =:= {module, ets} andalso has({Name, Arity}) of
        true -> fun ats:Name/Arity;
        false -> Fun
    end;
rename(Term) -> Term.

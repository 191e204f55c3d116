%% @private
%% @doc Lines of the source of compiled modules.
%%
%% The table of lines of a module names those of calls that may fail. The last call of a function,
%% to a function that is not built in, and atoms are not in it. Their lines come from the syntax
%% tree that a module may carry for debuggers, of Erlang or of Elixir.
-module(ats_try_lines).

-export([table/1, line/2, carried/1]).

-export_type([table/0, line/0, carried/0]).

-type line() :: unknown | pos_integer() | {File :: string(), pos_integer()}.
%% A line is in the file of the module, or in another one, such as an include file.

-opaque table() :: tuple().
%% The lines that instructions `line' refer to, by their numbers.

-type carried() :: {{atom(), arity()}, mfa() | atom(), line()}.
%% A function of the module, a call or an atom in it, and its line. Functions inside count as the
%% one that they are written in.

%%--------------------------------------------------------------------------------------------
%% The table of lines
%%--------------------------------------------------------------------------------------------

%% @doc Returns the lines of a module. The table is empty if the module has none.
-spec table(Beam :: binary()) -> table().
table(Beam) ->
    case beam_lib:chunks(Beam, ["Line"], [allow_missing_chunks]) of
        {ok, {Module, [{_, <<0:32, _Flags:32, _:32, Lines:32, Files:32, Bytes/binary>>}]}} ->
            {Items, Names} = items(Lines, 0, Bytes, []),
            InFiles = list_to_tuple(names(Files, Names)),
            list_to_tuple([with_file(Module, File, Line, InFiles) || {File, Line} <- Items]);
        _ ->
            {}
    end.

%% @doc Returns the line with that number.
-spec line(non_neg_integer(), table()) -> line().
line(Number, Table) when Number >= 1, Number =< tuple_size(Table) -> element(Number, Table);
line(_, _) -> unknown.

%% Lines are integers, and atoms are numbers of the file of the lines that follow.
-spec items(non_neg_integer(), non_neg_integer(), binary(), [{non_neg_integer(), integer()}]) ->
          {[{non_neg_integer(), integer()}], binary()}.
items(0, _, Bytes, Items) ->
    {lists:reverse(Items), Bytes};
items(Left, File, Bytes, Items) ->
    case number(Bytes) of
        {1, Line, Rest} -> items(Left - 1, File, Rest, [{File, Line} | Items]);
        {2, Other, Rest} -> items(Left, Other, Rest, Items)
    end.

%% An argument of an instruction: a kind of three bits, and a number in one of three lengths.
-spec number(binary()) -> {Kind :: 0..7, integer(), binary()}.
number(<<Number:4, 0:1, Kind:3, Rest/binary>>) -> {Kind, Number, Rest};
number(<<High:3, 1:2, Kind:3, Low, Rest/binary>>) -> {Kind, (High bsl 8) bor Low, Rest};
number(<<Size:3, 3:2, Kind:3, Rest/binary>>) ->
    Bits = (Size + 2) * 8,
    <<Number:Bits/signed, Others/binary>> = Rest,
    {Kind, Number, Others}.

-spec names(non_neg_integer(), binary()) -> [string()].
names(0, _) ->
    [];
names(Left, <<Size:16, Name:Size/binary, Rest/binary>>) ->
    Text = case unicode:characters_to_list(Name) of
               Characters when is_list(Characters) -> Characters;
               _ -> binary_to_list(Name)
           end,
    [Text | names(Left - 1, Rest)].

%% The file with the number 0 is that of the module, which has no name in the table.
-spec with_file(module(), non_neg_integer(), pos_integer(), tuple()) -> line().
with_file(Module, File, Line, Names) when File >= 1, File =< tuple_size(Names) ->
    in_file(Module, element(File, Names), Line);
with_file(_, _, Line, _) ->
    Line.

-spec in_file(module(), string(), pos_integer()) -> line().
in_file(Module, Path, Line) ->
    Own = atom_to_list(Module) ++ ".erl",
    case filename:basename(Path) of
        Own -> Line;
        File -> {File, Line}
    end.

%%--------------------------------------------------------------------------------------------
%% The syntax tree
%%--------------------------------------------------------------------------------------------

%% @doc Returns the calls and atoms of the syntax tree that a module carries, in the order of the
%% source. There are none if it carries no tree that can be read.
-spec carried(Beam :: binary()) -> [carried()].
carried(Beam) ->
    case beam_lib:chunks(Beam, ["Dbgi"], [allow_missing_chunks]) of
        {ok, {Module, [{_, Bytes}]}} when is_binary(Bytes) -> functions(Module, Bytes);
        _ -> []
    end.

-spec functions(module(), binary()) -> [carried()].
functions(Module, Bytes) ->
    try binary_to_term(Bytes) of
        {debug_info_v1, erl_abstract_code, {Forms, _}} when is_list(Forms) ->
            in_forms(Module, "", Forms);
        {debug_info_v1, elixir_erl, {elixir_v1, #{definitions := Definitions} = Code, _}} ->
            File = unicode:characters_to_list(maps:get(file, Code, "")),
            [{Name, What, in_file(Module, File, Line)}
             || {Name, _, Meta, Clauses} <- Definitions,
                {_, Arguments, Guards, Body} <- Clauses,
                {What, Line} <- lists:reverse(elixir([Arguments, Guards, Body], line_of(Meta, 0),
                                                     []))];
        _ ->
            []
    catch
        error:badarg -> []
    end.

-spec in_forms(module(), string(), [term()]) -> [carried()].
in_forms(Module, _, [{attribute, _, file, {File, _}} | Forms]) ->
    in_forms(Module, File, Forms);
in_forms(Module, File, [{function, _, Name, Arity, Clauses} | Forms]) ->
    [{{Name, Arity}, What, in_file(Module, File, Line)}
     || {What, Line} <- lists:reverse(erlang(Clauses, []))] ++ in_forms(Module, File, Forms);
in_forms(Module, File, [_ | Forms]) ->
    in_forms(Module, File, Forms);
in_forms(_, _, []) ->
    [].

-type found() :: [{mfa() | atom(), pos_integer()}].

-spec erlang(term(), found()) -> found().
erlang({call, Anno, {remote, _, {atom, _, Module}, {atom, _, Name}}, Arguments}, Found) ->
    erlang(Arguments, [{{Module, Name, length(Arguments)}, erl_anno:line(Anno)} | Found]);
erlang({call, Anno, {atom, At, Name}, Arguments}, Found) ->
    Arity = length(Arguments),
    erlang(Arguments, [{{erlang, Name, Arity}, erl_anno:line(Anno)}
                       || erl_internal:bif(Name, Arity)] ++ [{Name, erl_anno:line(At)} | Found]);
erlang({atom, Anno, Atom}, Found) ->
    [{Atom, erl_anno:line(Anno)} | Found];
erlang([First | Rest], Found) ->
    erlang(Rest, erlang(First, Found));
erlang(Tuple, Found) when is_tuple(Tuple) ->
    erlang(tuple_to_list(Tuple), Found);
erlang(_, Found) ->
    Found.

%% An atom has no line of its own there: it has that of the node around it.
-spec elixir(term(), non_neg_integer(), found()) -> found().
elixir({{'.', _, [Module, Name]}, Meta, Arguments}, Around, Found)
  when is_atom(Module), is_atom(Name), is_list(Arguments) ->
    Line = line_of(Meta, Around),
    elixir(Arguments, Line, [{{Module, Name, length(Arguments)}, Line} || Line > 0] ++ Found);
elixir({Name, Meta, Arguments}, Around, Found) when is_list(Meta) ->
    Line = line_of(Meta, Around),
    elixir(Arguments, Line, case is_atom(Name) of
                                true -> Found;
                                false -> elixir(Name, Line, Found)
                            end);
elixir({Left, Right}, Around, Found) ->
    elixir(Right, Around, elixir(Left, Around, Found));
elixir([First | Rest], Around, Found) ->
    elixir(Rest, Around, elixir(First, Around, Found));
elixir(Atom, Around, Found) when is_atom(Atom), Around > 0 ->
    [{Atom, Around} | Found];
elixir(_, _, Found) ->
    Found.

-spec line_of(term(), non_neg_integer()) -> non_neg_integer().
line_of([_ | _] = Meta, Around) ->
    case lists:keyfind(line, 1, Meta) of
        {line, Line} when is_integer(Line), Line > 0 -> Line;
        _ -> Around
    end;
line_of(_, Around) ->
    Around.

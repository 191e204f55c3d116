%% @private
%% @doc The code that compiled modules carry for coverage, mocks and debuggers, changed as the
%% instructions are.
%%
%% It is a syntax tree, of Erlang or of Elixir. If all code that has the atom `ets' means the
%% module, every such atom becomes `ats', and otherwise those of calls and funs that are written
%% out.
-module(ats_try_code).

-export([change/3]).

-type scope() :: atoms | calls.
-type has() :: fun(({Function :: atom(), arity()}) -> boolean()).
%% Tells whether `ats' has a function.

%% Parts of syntax trees.
-type tree() :: term().

-record(context, {scope :: scope(), has :: has()}).

%% @doc Changes the content of the chunk `Dbgi'. There may be `none', or it may be `unread': code of
%% another language, or encrypted.
-spec change(binary(), scope(), has()) -> {ok, binary()} | none | unread.
change(Bytes, Scope, Has) ->
    Context = #context{scope = Scope, has = Has},
    try binary_to_term(Bytes) of
        {debug_info_v1, erl_abstract_code, {none, _}} ->
            none;
        {debug_info_v1, elixir_erl, none} ->
            none;
        {debug_info_v1, erl_abstract_code, {Forms, Options}} when is_list(Forms) ->
            Changed = lists:flatmap(fun(Form) -> form(Form, Context) end, Forms),
            info(erl_abstract_code, {Changed, Options});
        {debug_info_v1, elixir_erl, {elixir_v1, #{definitions := Definitions} = Module, Specs}} ->
            Changed = [{Name, Kind, Meta, [{M, elixir(Arguments, Context), elixir(Guards, Context),
                                            elixir(Body, Context)}
                                           || {M, Arguments, Guards, Body} <- Clauses]}
                       || {Name, Kind, Meta, Clauses} <- Definitions],
            info(elixir_erl, {elixir_v1, Module#{definitions := Changed}, Specs});
        _ ->
            unread
    catch
        error:badarg -> unread
    end.

-spec info(module(), term()) -> {ok, binary()}.
info(Backend, Data) ->
    {ok, term_to_binary({debug_info_v1, Backend, Data}, [compressed])}.

%%--------------------------------------------------------------------------------------------
%% Erlang
%%--------------------------------------------------------------------------------------------

-spec form(tree(), #context{}) -> [tree()].
form({attribute, Anno, import, {ets, Functions}}, #context{has = Has}) ->
    {Moved, Kept} = lists:partition(Has, Functions),
    [{attribute, Anno, import, {Module, Names}}
     || {Module, Names} <- [{ats, Moved}, {ets, Kept}], Names =/= []];
form({attribute, _, record, _} = Record, Context) ->
    [erlang(Record, Context)];
form({function, _, _, _, _} = Function, Context) ->
    [erlang(Function, Context)];
form(Form, _) ->
    [Form].

-spec erlang(tree(), #context{}) -> tree().
erlang({atom, Anno, ets}, #context{scope = atoms}) ->
    {atom, Anno, ats};
erlang({call, Anno, {remote, Remote, {atom, At, Module}, {atom, _, Name} = Function}, Arguments},
       Context) ->
    New = module(Module, Name, length(Arguments), Context),
    {call, Anno, {remote, Remote, {atom, At, New}, Function},
     applied(Module, Name, erlang(Arguments, Context), Context)};
erlang({call, Anno, {atom, _, apply} = Apply, Arguments}, Context) ->
    {call, Anno, Apply, applied(erlang, apply, erlang(Arguments, Context), Context)};
erlang({'fun', Anno, {function, {atom, At, Module}, {atom, _, Name} = Function,
                      {integer, _, Arity} = Number}}, Context) ->
    {'fun', Anno, {function, {atom, At, module(Module, Name, Arity, Context)}, Function, Number}};
erlang([First | Rest], Context) ->
    [erlang(First, Context) | erlang(Rest, Context)];
erlang(Tuple, Context) when is_tuple(Tuple) ->
    list_to_tuple(erlang(tuple_to_list(Tuple), Context));
erlang(Tree, _) ->
    Tree.

%% The compiler makes a call of an `apply' whose arguments are written out.
-spec applied(module(), atom(), [tree()], #context{}) -> [tree()].
applied(erlang, apply, [{atom, At, Module}, {atom, _, Name} = Function, List], Context) ->
    New = case number(List, 0) of
              unknown -> Module;
              Arity -> module(Module, Name, Arity, Context)
          end,
    [{atom, At, New}, Function, List];
applied(_, _, Arguments, _) ->
    Arguments.

-spec number(tree(), non_neg_integer()) -> non_neg_integer() | unknown.
number({nil, _}, Number) -> Number;
number({cons, _, _, Rest}, Number) -> number(Rest, Number + 1);
number(_, _) -> unknown.

-spec module(module(), atom(), arity(), #context{}) -> module().
module(ets, Function, Arity, #context{has = Has}) ->
    case Has({Function, Arity}) of
        true -> ats;
        false -> ets
    end;
module(dets, Function, 2, _) when Function =:= to_ets; Function =:= from_ets ->
    ats_try_dets;
module(Module, _, _, _) ->
    Module.

%%--------------------------------------------------------------------------------------------
%% Elixir
%%
%% A node is `{Name, Meta, Arguments}'. An atom in the place of the name is the name of a variable
%% or of a function of the module.
%%--------------------------------------------------------------------------------------------

-spec elixir(tree(), #context{}) -> tree().
elixir(ets, #context{scope = atoms}) ->
    ats;
elixir({'&', Meta, [{'/', Of, [{{'.', At, [Module, Name]}, Call, []}, Arity]}]}, Context)
  when is_atom(Module), is_atom(Name), is_integer(Arity) ->
    Function = {'.', At, [module(Module, Name, Arity, Context), Name]},
    {'&', Meta, [{'/', Of, [{Function, Call, []}, Arity]}]};
elixir({{'.', At, [Module, Name]}, Meta, Arguments}, Context)
  when is_atom(Module), is_atom(Name), is_list(Arguments) ->
    New = module(Module, Name, length(Arguments), Context),
    {{'.', At, [New, Name]}, Meta, elixir(Arguments, Context)};
elixir({Name, Meta, Arguments}, Context) when is_atom(Name), is_list(Meta) ->
    {Name, Meta, case is_list(Arguments) of
                     true -> elixir(Arguments, Context);
                     false -> Arguments
                 end};
elixir({Called, Meta, Arguments}, Context) ->
    {elixir(Called, Context), Meta, elixir(Arguments, Context)};
elixir({Left, Right}, Context) ->
    {elixir(Left, Context), elixir(Right, Context)};
elixir([First | Rest], Context) ->
    [elixir(First, Context) | elixir(Rest, Context)];
elixir(Tree, _) ->
    Tree.

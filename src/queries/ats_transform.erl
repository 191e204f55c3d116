%% @doc A parse transform that makes a module use `ats' where it says `ets'.
%%
%% ```
%% -compile({parse_transform, ats_transform}).
%% '''
%%
%% or the compiler option `{parse_transform, ats_transform}' for a whole application. The source
%% stays as it is. Calls that are certain to be of `ets', and its types, are renamed:
%%
%% <ul>
%% <li>`ets:insert(Table, Object)', and `ets:Function(Table)' with a variable function;</li>
%% <li>`fun ets:insert/2', with variables, too, and `erlang:make_fun(ets, insert, 2)';</li>
%% <li>`-import(ets, [insert/2])';</li>
%% <li>`apply(ets, insert, Arguments)', and likewise all functions of the modules `erlang',
%% `proc_lib', `timer', `rpc' and `erpc' that take a module, a function and a list of arguments and
%% call it: `spawn', `spawn_link', `hibernate', `apply_after', `tc', `call', `multicall' and so on.
%% Those that call it on another node are among them, because a program that was moved has moved
%% on all its nodes;</li>
%% <li>`ets:tid()' and the other types, wherever types can be.</li>
%% </ul>
%%
%% Everything else stays, since it may mean something else. A module that is in a variable is not
%% seen. The atom `ets' beside the name of one of its functions, as in `{ets, insert, Arguments}'
%% or `add_hook(ets, insert)', is data, of which the compiler warns; so it does of `dets:to_ets/2'
%% and `dets:from_ets/2', which know no other tables than those of `ets'.
%%
%% A call of a function that `ats' does not have is an error. Calls of `ets:fun2ms/1' are left to
%% `ms_transform' or {@link ats_ms_transform}, which replace them by a constant. One of them may
%% come before this transform, or after it.
%%
%% == Options ==
%%
%% Some tables belong to other code, which keeps them in `ets'. The option
%% `{ats_transform, Options}' of the compiler, or of an attribute `-compile(...)', says which. It
%% can be given several times.
%%
%% <ul>
%% <li>`{except, [{Function, Arity} | Function]}': calls of these functions stay with `ets'. Where
%% the number of arguments cannot be seen, as in `apply(ets, insert, Arguments)', so do those of
%% any function of that name.</li>
%% <li>`{except_tables, [Name]}': calls with one of these atoms in the place of the table stay with
%% `ets'.</li>
%% <li>`nowarn': no warnings of this transform.</li>
%% </ul>
-module(ats_transform).

-export([parse_transform/2, format_error/1]).

-export_type([option/0]).

-type option() :: {except, [{Function :: atom(), arity()} | (Function :: atom())]}
                | {except_tables, [Name :: atom()]}
                | nowarn.


-record(context,
        {except = [] :: [{atom(), arity()} | atom()],
         tables = [] :: [atom()],
         %% Functions of the module, which hide built-in functions of the same name.
         local = [] :: [{atom(), arity()}]}).

-type form() :: erl_parse:abstract_form() | erl_parse:form_info().
-type anno() :: erl_anno:anno().
-type message() :: {erl_anno:location(), module(), term()}.
-type messages() :: [{file:filename(), [message()]}].
%% A part of a syntax tree: an expression, a clause, a type, a list of them.
-type tree() :: term().
%% The findings in a form, the last one first.
-type found() :: [{error | warning, anno(), term()}].

-define(ATTRIBUTES_WITH_TYPES, [spec, callback, type, opaque, nominal, record]).
-define(TYPES, [table, tab, tid, table_type, table_access, match_spec, compiled_match_spec,
                comp_match_spec, match_pattern, continuation]).

%% @doc The callback of the compiler.
-spec parse_transform([form()], [term()]) ->
          [form()] | {warning, [form()], messages()} | {error, messages(), messages()}.
parse_transform(Forms, CompilerOptions) ->
    {Options, Wrong} = options(CompilerOptions, Forms),
    Context = context(Options, Forms),
    Rewrite = fun(Form, FileAndFound) -> rewrite(Form, Context, FileAndFound) end,
    Start = {"no file", [{"no file", {error, erl_anno:new(1), {bad_option, W}}} || W <- Wrong]},
    {NewForms, {_, Found}} = lists:mapfoldl(Rewrite, Start, Forms),
    Errors = messages(error, Found),
    Warnings = [Message || not lists:member(nowarn, Options), Message <- messages(warning, Found)],
    case {Errors, Warnings} of
        {[], []} -> lists:append(NewForms);
        {[], _} -> {warning, lists:append(NewForms), Warnings};
        {_, _} -> {error, Errors, Warnings}
    end.

%% @doc Says in words why a call cannot be translated.
-spec format_error(term()) -> unicode:chardata().
format_error({missing, Function, unknown}) ->
    io_lib:format("ats has no function ~tw", [Function]);
format_error({missing, Function, Arity}) ->
    io_lib:format("ats has no function ~tw/~w", [Function, Arity]);
format_error({missing_type, Type, Arity}) ->
    io_lib:format("ats has no type ~tw/~w", [Type, Arity]);
format_error({data, Function}) ->
    io_lib:format("ets beside ~tw may be no call, and stays ets", [Function]);
format_error(variable_function) ->
    "the function is a variable: the call goes to ats, even if the function is excepted";
format_error({dets, Function}) ->
    io_lib:format("dets:~tw/2 takes a table of ets, not one of ats", [Function]);
format_error({bad_option, Option}) ->
    io_lib:format("not an option of ats_transform: ~tp", [Option]).

%%--------------------------------------------------------------------------------------------
%% Options and messages
%%--------------------------------------------------------------------------------------------

%% The compiler does not add the attributes to the options that it passes.
-spec options([term()], [form()]) -> {[option()], Wrong :: [term()]}.
options(CompilerOptions, Forms) ->
    InModule = lists:append([as_list(Value) || {attribute, _, compile, Value} <- Forms]),
    Given = [as_list(Option) || {?MODULE, Option} <- CompilerOptions ++ InModule],
    lists:partition(fun is_option/1, lists:append(Given)).

-spec as_list(term()) -> [term()].
as_list(List) when is_list(List) -> List;
as_list(Term) -> [Term].

-spec is_option(term()) -> boolean().
is_option(nowarn) -> true;
is_option({except, Functions}) when is_list(Functions) -> lists:all(fun is_exception/1, Functions);
is_option({except_tables, Names}) when is_list(Names) -> lists:all(fun is_atom/1, Names);
is_option(_) -> false.

%% An exception with a slip of the pen would except nothing.
-spec is_exception(term()) -> boolean().
is_exception({Function, Arity}) -> is_function_of(ets, Function, Arity);
is_exception(Function) -> is_function_of(ets, Function, unknown).

-spec context([option()], [form()]) -> #context{}.
context(Options, Forms) ->
    Defined = [{Name, Arity} || {function, _, Name, Arity, _} <- Forms],
    Imported = [Functions || {attribute, _, import, {_, Functions}} <- Forms],
    #context{except = lists:append([Functions || {except, Functions} <- Options]),
             tables = lists:append([Names || {except_tables, Names} <- Options]),
             local = lists:append([Defined | Imported])}.

-spec messages(error | warning, [{file:filename(), {error | warning, anno(), term()}}]) ->
          messages().
messages(Kind, Found) ->
    [{File, [{erl_anno:location(Anno), ?MODULE, What}]}
     || {File, {FoundKind, Anno, What}} <- lists:reverse(Found), FoundKind =:= Kind].

%% Functions of `ets' are also those that it got in later versions of Erlang/OTP than this one.
-spec is_function_of(ets | ats, term(), arity() | unknown) -> boolean().
is_function_of(ets, Function, Arity) ->
    is_exported(ets, Function, Arity) orelse is_exported(ats, Function, Arity);
is_function_of(ats, Function, Arity) ->
    is_exported(ats, Function, Arity).

-spec is_exported(module(), term(), arity() | unknown) -> boolean().
is_exported(Module, Function, unknown) ->
    lists:keymember(Function, 1, Module:module_info(exports));
is_exported(Module, Function, Arity) ->
    lists:member({Function, Arity}, Module:module_info(exports)).

%%--------------------------------------------------------------------------------------------
%% Forms
%%--------------------------------------------------------------------------------------------

%% A form with the name of a file precedes those that come from it.
-spec rewrite(form(), #context{}, {file:filename(), [{file:filename(), term()}]}) ->
          {[form()], {file:filename(), [{file:filename(), term()}]}}.
rewrite({attribute, _, file, {NewFile, _}} = Form, _Context, {_File, Found}) ->
    {[Form], {NewFile, Found}};
rewrite(Form, Context, {File, Found}) ->
    {NewForms, NewFound} = form(Form, Context),
    {NewForms, {File, [{File, What} || What <- NewFound] ++ Found}}.

-spec form(form(), #context{}) -> {[form()], found()}.
form({attribute, Anno, import, {ets, Functions}}, Context) ->
    import(Anno, Functions, Context);
form({attribute, Anno, Name, Value} = Form, Context) ->
    case lists:member(Name, ?ATTRIBUTES_WITH_TYPES) of
        true ->
            {NewValue, Found} = walk(Value, Context, []),
            {[{attribute, Anno, Name, NewValue}], Found};
        false ->
            {[Form], []}
    end;
form({function, Anno, Name, Arity, Clauses}, Context) ->
    {NewClauses, Found} = walk(Clauses, Context, []),
    {[{function, Anno, Name, Arity, NewClauses}], Found};
form(Form, _Context) ->
    {[Form], []}.

%% Calls of imported functions look like those of local ones, so this function decides which are
%% meant.
-spec import(anno(), [{atom(), arity()}], #context{}) -> {[form()], found()}.
import(Anno, Functions, Context) ->
    {Kept, Moved} = lists:partition(fun({Name, Arity}) -> is_excepted(Name, Arity, Context) end,
                                    Functions),
    {[{attribute, Anno, import, {Module, Names}}
      || {Module, Names} <- [{ets, Kept}, {ats, Moved}], Names =/= []],
     [{error, Anno, {missing, Name, Arity}}
      || {Name, Arity} <- Moved, not is_function_of(ats, Name, Arity)]}.

%%--------------------------------------------------------------------------------------------
%% Expressions and types
%%--------------------------------------------------------------------------------------------

%% Names everything in a tree anew. The fun of `ets:fun2ms/1' is a specification, not code.
-spec walk(tree(), #context{}, found()) -> {tree(), found()}.
walk({call, _, {remote, _, {atom, _, ets}, {atom, _, fun2ms}}, [_]} = Call, _Context, Found) ->
    {Call, Found};
walk({call, Anno, {remote, RemoteAnno, {atom, ModuleAnno, ets}, Function}, Arguments}, Context,
     Found) ->
    {Module, Found1} = module_for(Function, Arguments, Anno, Context, Found),
    {NewFunction, Found2} = walk(Function, Context, Found1),
    {NewArguments, Found3} = walk(Arguments, Context, Found2),
    Remote = {remote, RemoteAnno, {atom, ModuleAnno, Module}, NewFunction},
    {{call, Anno, Remote, NewArguments}, Found3};
walk({call, Anno, Callee, Arguments}, Context, Found) ->
    {NewCallee, Found1} = walk(Callee, Context, Found),
    {NewArguments, Found2} = arguments(Callee, Arguments, Anno, Context, Found1),
    {{call, Anno, NewCallee, NewArguments}, Found2};
walk({'fun', Anno, {function, {atom, ModuleAnno, ets}, Function, Arity}}, Context, Found) ->
    {Module, Found1} = module_for(Function, Arity, Anno, Context, Found),
    {{'fun', Anno, {function, {atom, ModuleAnno, Module}, Function, Arity}}, Found1};
walk({remote_type, Anno, [{atom, ModuleAnno, ets}, Type, Parameters]}, _Context, Found) ->
    {atom, _, Name} = Type,
    Known = Parameters =:= [] andalso lists:member(Name, ?TYPES),
    {{remote_type, Anno, [{atom, ModuleAnno, ats}, Type, Parameters]},
     [{error, Anno, {missing_type, Name, length(Parameters)}} || not Known] ++ Found};
walk({tuple, Anno, Elements}, Context, Found) ->
    {NewElements, NewFound} = walk(Elements, Context, data(Elements, Found)),
    {{tuple, Anno, NewElements}, NewFound};
walk({cons, Anno, Head, {cons, _, Second, _} = Tail}, Context, Found) ->
    {NewHead, Found1} = walk(Head, Context, data([Head, Second], Found)),
    {NewTail, Found2} = walk(Tail, Context, Found1),
    {{cons, Anno, NewHead, NewTail}, Found2};
walk(Tuple, Context, Found) when is_tuple(Tuple) ->
    {List, NewFound} = walk(tuple_to_list(Tuple), Context, Found),
    {list_to_tuple(List), NewFound};
walk(List, Context, Found) when is_list(List) ->
    lists:mapfoldl(fun(Tree, FoundSoFar) -> walk(Tree, Context, FoundSoFar) end, Found, List);
walk(Other, _Context, Found) ->
    {Other, Found}.

%% Returns the arguments of a call of any function but those of `ets'.
-spec arguments(tree(), [tree()], anno(), #context{}, found()) -> {[tree()], found()}.
arguments(Callee, Arguments, Anno, Context, Found) ->
    {Module, Function} = callee(Callee, length(Arguments), Context),
    Positions = positions(Module, Function, length(Arguments)),
    case [Before || Position <- Positions,
                    {Before, [{atom, _, ets} | _]} <- [lists:split(Position - 1, Arguments)]] of
        [Before | _] ->
            [Ets, Name, Passed | After] = lists:nthtail(length(Before), Arguments),
            {Target, Found1} = module_for(Name, passed_arguments(Passed), Anno, Context, Found),
            {NewRest, Found2} = walk(Before ++ [Name, Passed | After], Context, Found1),
            {NewBefore, NewAfter} = lists:split(length(Before), NewRest),
            {NewBefore ++ [setelement(3, Ets, Target) | NewAfter], Found2};
        [] ->
            Found1 = data(Arguments, dets({Module, Function, Arguments}, Anno, Found)),
            walk(Arguments, Context, Found1)
    end.

%% Returns the module in which to call a function of `ets'.
-spec module_for(tree(), [tree()] | tree(), anno(), #context{}, found()) -> {ets | ats, found()}.
module_for({atom, _, Function}, Arguments, Anno, Context, Found) ->
    Arity = arity(Arguments),
    case is_excepted(Function, Arity, Context)
        orelse has_excepted_table(Function, Arguments, Context)
    of
        true ->
            {ets, Found};
        false ->
            Missing = [{error, Anno, {missing, Function, Arity}}
                       || not is_function_of(ats, Function, Arity)],
            {ats, Missing ++ Found}
    end;
module_for(_Variable, _Arguments, Anno, #context{except = Except}, Found) ->
    {ats, [{warning, Anno, variable_function} || Except =/= []] ++ Found}.

-spec arity([tree()] | tree()) -> arity() | unknown.
arity(Arguments) when is_list(Arguments) -> length(Arguments);
arity({integer, _, Arity}) -> Arity;
arity(_Variable) -> unknown.

-spec is_excepted(atom(), arity() | unknown, #context{}) -> boolean().
is_excepted(Function, Arity, #context{except = Except}) ->
    lists:any(fun({Name, A}) -> Name =:= Function andalso (A =:= Arity orelse Arity =:= unknown);
                 (Name) -> Name =:= Function
              end, Except).

-spec has_excepted_table(atom(), [tree()] | tree(), #context{}) -> boolean().
has_excepted_table(Function, Arguments, #context{tables = Tables}) when is_list(Arguments) ->
    Position = case lists:member(Function, [foldl, foldr]) of
                   true -> 3;
                   false -> 1
               end,
    case length(Arguments) >= Position andalso lists:nth(Position, Arguments) of
        {atom, _, Name} -> lists:member(Name, Tables);
        _ -> false
    end;
has_excepted_table(_Function, _Arguments, _Context) ->
    false.

%% Notes `ets' and the name of one of its functions, side by side.
-spec data([tree()], found()) -> found().
data([{atom, Anno, ets} | [{atom, _, Function} | _] = Rest], Found) ->
    case is_function_of(ets, Function, unknown) of
        true -> data(Rest, [{warning, Anno, {data, Function}} | Found]);
        false -> data(Rest, Found)
    end;
data([_ | Rest], Found) ->
    data(Rest, Found);
data([], Found) ->
    Found.

-spec dets({module(), atom(), [tree()]}, anno(), found()) -> found().
dets({dets, Function, [_, _]}, Anno, Found) when Function =:= to_ets; Function =:= from_ets ->
    [{warning, Anno, {dets, Function}} | Found];
dets(_Call, _Anno, Found) ->
    Found.

%%--------------------------------------------------------------------------------------------
%% Functions that call a function
%%--------------------------------------------------------------------------------------------

%% Returns the arguments in a list that is written out, as a list of trees.
-spec passed_arguments(tree()) -> [tree()] | tree().
passed_arguments(Tree) ->
    case elements(Tree, []) of
        unknown -> Tree;
        Elements -> Elements
    end.

-spec elements(tree(), [tree()]) -> [tree()] | unknown.
elements({cons, _, Head, Tail}, Elements) -> elements(Tail, [Head | Elements]);
elements({nil, _}, Elements) -> lists:reverse(Elements);
elements(_, _Elements) -> unknown.

-spec callee(tree(), arity(), #context{}) -> {module() | none, atom()}.
callee({remote, _, {atom, _, Module}, {atom, _, Function}}, _Arity, _Context) ->
    {Module, Function};
callee({atom, _, Function}, Arity, #context{local = Local}) ->
    case erl_internal:bif(Function, Arity) andalso not lists:member({Function, Arity}, Local) of
        true -> {erlang, Function};
        false -> {none, Function}
    end;
callee(_Other, _Arity, _Context) ->
    {none, none}.

%% Returns the positions at which a module may be among the arguments, with a function and its
%% arguments behind it.
-spec positions(module() | none, atom(), arity()) -> [pos_integer()].
positions(erlang, Function, Arity) ->
    case {Function, Arity} of
        {apply, 3} -> [1];
        {hibernate, 3} -> [1];
        {make_fun, 3} -> [1];
        {spawn_request, 3} -> [1];
        {spawn_request, 4} -> [1, 2];
        {spawn_request, 5} -> [2];
        _ -> spawn_positions(Function, Arity)
    end;
positions(proc_lib, hibernate, 3) -> [1];
positions(proc_lib, Function, Arity) -> spawn_positions(Function, Arity);
positions(timer, tc, Arity) when Arity =:= 3; Arity =:= 4 -> [1];
positions(timer, Function, 4) ->
    [2 || lists:member(Function, [apply_after, apply_interval, apply_repeatedly])];
positions(rpc, Function, Arity) when Function =:= multicall; Function =:= eval_everywhere ->
    case Arity of
        3 -> [1];
        4 -> [1, 2];
        5 -> [2];
        _ -> []
    end;
positions(rpc, Function, Arity) when Arity =:= 4; Arity =:= 5 ->
    [2 || lists:member(Function, [call, cast, block_call, async_call])];
positions(erpc, Function, Arity) when Arity >= 4 ->
    [2 || lists:member(Function, [call, cast, send_request, multicall, multicast])];
positions(_Module, _Function, _Arity) ->
    [].

-spec spawn_positions(atom(), arity()) -> [pos_integer()].
spawn_positions(spawn_opt, 4) -> [1];
spawn_positions(spawn_opt, 5) -> [2];
spawn_positions(Function, Arity) ->
    case lists:member(Function, [spawn, spawn_link, spawn_monitor]) of
        true when Arity =:= 3 -> [1];
        true when Arity =:= 4 -> [2];
        _ -> []
    end.

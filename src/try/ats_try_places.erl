%% @private
%% @doc Places of a compiled module that see the inside of `ets', or that mean another thing in a
%% copy: a call of `ats' with other results, or a look at `ets' from outside.
%%
%% The code is read from one instruction to the next, with the constants in registers; behind a
%% label nothing is known of them. So a place is found where its arguments are written out, in any
%% language. {@link ats_try_rules} decides which calls and atoms are places.
-module(ats_try_places).

-export([find/3]).

-export_type([place/0]).

-type place() :: {Function :: {atom(), arity()}, ats_try_lines:line(), certain | if_ets,
                  Text :: string()}.

-record(state, {rules :: ats_try_rules:context(),
                lines :: ats_try_lines:table(),
                %% The number of the line, which holds until the next one.
                line = 0 :: non_neg_integer(),
                registers = #{} :: #{term() => term()},
                %% A place tells of the atom.
                told = false :: boolean(),
                found = [] :: [found()]}).

-type found() :: {ats_try_lines:line() | {sought, mfa() | atom()}, {certain | if_ets, string()}}.
%% The line of a call or an atom that is sought is in the syntax tree alone.

%% @doc Returns the places in the code of a module, in the order of lines. `Functions' are those of
%% `beam_disasm:file/1'.
-spec find(Beam :: binary(), Functions :: [tuple()], ats_try_rules:context()) -> [place()].
find(Beam, Functions, Rules) ->
    Lines = ats_try_lines:table(Beam),
    Found = [{written_in(Name, Arity), Item}
             || {function, Name, Arity, _, Instructions} <- Functions,
                Item <- function(Instructions, #state{rules = Rules, lines = Lines})],
    Sought = [Sought || {_, {{sought, _}, _} = Sought} <- Found],
    Tree = case Sought of
               [] -> [];
               _ -> ats_try_lines:carried(Beam)
           end,
    Known = sets:from_list([{Function, Line} || {Function, {Line, _}} <- Found]),
    Placed = [{with_line(Function, Line, Known, Tree), Function, Finding}
              || {Function, {Line, Finding}} <- Found],
    [{Function, Line, Is, Text} || {Line, Function, {Is, Text}} <- lists:usort(Placed)].

%% Functions inside have the name of the one that they are written in.
-spec written_in(atom(), arity()) -> {atom(), arity()}.
written_in(Name, Arity) ->
    case re:run(atom_to_list(Name), "^-(.*?)/(\\d+)-", [{capture, all_but_first, list}, unicode]) of
        {match, [Outer, Number]} -> {list_to_atom(Outer), list_to_integer(Number)};
        nomatch -> {Name, Arity}
    end.

%% The line is known if the tree has one such call or atom, or one more than lines are known.
-spec with_line({atom(), arity()}, ats_try_lines:line() | {sought, mfa() | atom()}, sets:set(),
                [ats_try_lines:carried()]) -> ats_try_lines:line().
with_line(Function, {sought, What}, Known, Tree) ->
    Lines = lists:usort([Line || {In, Is, Line} <- Tree, In =:= Function, Is =:= What]),
    case {Lines, [Line || Line <- Lines, not sets:is_element({Function, Line}, Known)]} of
        {[Line], _} -> Line;
        {_, [Line]} -> Line;
        _ -> unknown
    end;
with_line(_, Line, _, _) ->
    Line.

%%--------------------------------------------------------------------------------------------
%% Instructions
%%--------------------------------------------------------------------------------------------

%% The atom may be in a term that is lost from sight: it is told of where the function has it.
-spec function([term()], #state{}) -> [found()].
function(Instructions, State) ->
    End = lists:foldl(fun instruction/2, State, Instructions),
    #state{rules = #{stays := Stays}, told = IsTold} = End,
    IsData = Stays andalso not IsTold andalso lists:member(ets, atoms(Instructions)),
    #state{found = Found} = case IsData of
                                true -> data(ets, End);
                                false -> End
                            end,
    Found.

-spec instruction(term(), #state{}) -> #state{}.
instruction({line, Number}, State) ->
    State#state{line = Number};
instruction({func_info, _, _, _}, State) ->
    State;
instruction({label, _}, State) ->
    forget(State);
instruction({move, From, To}, State) ->
    set(To, value(From, State), funs(From, State));
instruction({swap, One, Other}, State) ->
    set(One, value(Other, State), set(Other, value(One, State), State));
instruction({bif, self, _, [], To}, State) ->
    set(To, ats_try_rules:self_process(), State);
instruction({put_tuple2, To, {list, Elements}}, State) ->
    set(To, list_to_tuple([value(E, State) || E <- Elements]), State);
instruction({put_list, First, Rest, To}, State) ->
    set(To, [value(First, State) | value(Rest, State)], State);
instruction({call_ext, Arity, {extfunc, Module, Name, Arity}}, State) ->
    called(call(Module, Name, Arity, body, State));
instruction({call_ext_only, Arity, {extfunc, Module, Name, Arity}}, State) ->
    forget(called(call(Module, Name, Arity, tail, State)));
instruction({call_ext_last, Arity, {extfunc, Module, Name, Arity}, _}, State) ->
    forget(called(call(Module, Name, Arity, tail, State)));
instruction({apply, Arity}, State) ->
    called(apply_call(Arity, body, State));
instruction({apply_last, Arity, _}, State) ->
    forget(called(apply_call(Arity, tail, State)));
instruction({Does, Arity, _}, State) when Does =:= call; Does =:= call_only ->
    called(handed_on(Arity, State));
instruction({call_last, Arity, _, _}, State) ->
    forget(called(handed_on(Arity, State)));
instruction({call_fun, Arity}, State) ->
    called(handed_on(Arity, State));
instruction({call_fun2, _, Arity, _}, State) ->
    called(handed_on(Arity, State));
instruction(send, State) ->
    called(handed_on(2, State));
instruction(End, State) when End =:= return; element(1, End) =:= jump ->
    forget(State);
instruction(Instruction, State) ->
    overwritten(Instruction, lists:foldl(fun data/2, funs(Instruction, State),
                                         atoms(Instruction))).

%% The value of an operand, or `ats_try_rules:unknown/0' if it is not written out.
-spec value(term(), #state{}) -> term().
value({atom, Atom}, _) -> Atom;
value({literal, Literal}, _) -> Literal;
value({integer, Integer}, _) -> Integer;
value(nil, _) -> [];
value({tr, Register, _}, State) -> value(Register, State);
value(Register, #state{registers = Registers}) ->
    maps:get(Register, Registers, ats_try_rules:unknown()).

-spec set(term(), term(), #state{}) -> #state{}.
set(To, Value, #state{registers = Registers} = State) ->
    State#state{registers = Registers#{To => Value}}.

%% A call gives its arguments away, and leaves a result of which nothing is known.
-spec called(#state{}) -> #state{}.
called(State) -> only(y, State).

-spec only(x | y, #state{}) -> #state{}.
only(Kind, #state{registers = Registers} = State) ->
    State#state{registers = maps:filter(fun({Is, _}, _) -> Is =:= Kind end, Registers)}.

%% Ends the knowledge of registers: an atom in one of them is data from now on.
-spec forget(#state{}) -> #state{}.
forget(#state{registers = Registers} = State) ->
    (handed_on(maps:values(Registers), State))#state{registers = #{}}.

%% Keeps the registers that an instruction does not mention, or only reads.
-spec overwritten(term(), #state{}) -> #state{}.
overwritten(Instruction, State) when element(1, Instruction) =:= test ->
    State;
overwritten({Does, _, _}, State) when Does =:= trim; Does =:= allocate ->
    only(x, State);
overwritten({deallocate, _}, State) ->
    only(x, State);
overwritten(Instruction, #state{registers = Registers} = State) ->
    State#state{registers = maps:without(registers(Instruction), Registers)}.

-spec registers(term()) -> [term()].
registers({Kind, Number} = Register) when (Kind =:= x orelse Kind =:= y), is_integer(Number) ->
    [Register];
registers(Tuple) when is_tuple(Tuple) ->
    registers(tuple_to_list(Tuple));
registers([First | Rest]) ->
    registers(First) ++ registers(Rest);
registers(_) ->
    [].

%%--------------------------------------------------------------------------------------------
%% Places
%%--------------------------------------------------------------------------------------------

%% The last call of a function has a line of its own only if it goes to a function that is built in.
-spec call(module(), atom(), arity(), body | tail, #state{}) -> #state{}.
call(Module, Name, Arity, Where, State) ->
    Arguments = arguments(Arity, State),
    Line = case Where =:= body orelse erlang:is_builtin(Module, Name, Arity) of
               true -> current;
               false -> {Module, Name, Arity}
           end,
    Told = told(lists:member(ets, atoms_in(Arguments)), State),
    add(ats_try_rules:call(Module, Name, Arguments, State#state.rules), Line, Told).

-spec told(boolean(), #state{}) -> #state{}.
told(IsTold, #state{told = IsBefore} = State) ->
    State#state{told = IsBefore orelse IsTold}.

-spec arguments(arity(), #state{}) -> [term()].
arguments(Arity, State) ->
    [value({x, Number}, State) || Number <- lists:seq(0, Arity - 1)].

%% The module and the function are behind the arguments.
-spec apply_call(arity(), body | tail, #state{}) -> #state{}.
apply_call(Arity, Where, #state{rules = Rules} = State) ->
    [Module, Name | _] = lists:nthtail(Arity, arguments(Arity + 2, State)),
    Line = case Where of
               body -> current;
               tail -> Name
           end,
    Arguments = arguments(Arity, State),
    add(ats_try_rules:call_in_variables(Module, Name, Arity, Rules), Line,
        handed_on(Arguments, told(Module =:= ets, State))).

%% The atom goes to another function of the module, or out of this one.
-spec handed_on(arity() | [term()], #state{}) -> #state{}.
handed_on(Arity, State) when is_integer(Arity) ->
    handed_on(arguments(Arity, State), State);
handed_on(Values, State) ->
    case lists:member(ets, atoms_in(Values)) of
        true -> data(ets, State);
        false -> State
    end.

-spec data(atom(), #state{}) -> #state{}.
data(Atom, State) ->
    add(ats_try_rules:data(Atom), Atom, told(Atom =:= ets, State)).

-spec funs(term(), #state{}) -> #state{}.
funs(Instruction, State) ->
    lists:foldl(fun({Name, Arity}, Before) ->
                        Unknown = lists:duplicate(Arity, ats_try_rules:unknown()),
                        add(ats_try_rules:call(ets, Name, Unknown, State#state.rules), Name, Before)
                end, State, ats_try_terms:funs(Instruction)).

-spec add(ats_try_rules:finding(), current | mfa() | atom(), #state{}) -> #state{}.
add(none, _, State) ->
    State;
add(Finding, current, #state{line = Number, lines = Lines, found = Found} = State) ->
    State#state{found = [{ats_try_lines:line(Number, Lines), Finding} | Found]};
add(Finding, Sought, #state{found = Found} = State) ->
    State#state{found = [{{sought, Sought}, Finding} | Found]}.

%% Returns the atoms of an instruction that may be a place, other than as the module of a call.
-spec atoms(term()) -> [atom()].
atoms({extfunc, _, _, _}) -> [];
atoms({func_info, _, _, _}) -> [];
atoms({atom, Atom}) -> [Atom || ats_try_rules:data(Atom) =/= none];
atoms({literal, Literal}) -> lists:usort(atoms_in(Literal));
atoms(Tuple) when is_tuple(Tuple) -> atoms(tuple_to_list(Tuple));
atoms([First | Rest]) -> atoms(First) ++ atoms(Rest);
atoms(_) -> [].

-spec atoms_in(term()) -> [atom()].
atoms_in(Term) ->
    ats_try_terms:fold(fun(Atom, Found) when is_atom(Atom) ->
                               [Atom || ats_try_rules:data(Atom) =/= none] ++ Found;
                          (_, Found) ->
                               Found
                       end, [], Term).

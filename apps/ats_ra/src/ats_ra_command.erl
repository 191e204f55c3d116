%% @private
%% @doc Commands: calls of `ats' or `dats' as data, `{insert, {a, 1}}' for `insert(Table, {a, 1})'.
%%
%% A list of commands is one step: if one of them fails, the changes of the others are undone. All
%% members must come to the same table, so a command that could have another meaning on another node
%% is refused, and a fault of a command is its answer.
-module(ats_ra_command).

-export([run/2, text/2]).

-export_type([commands/0, answer/0]).

-type commands() :: tuple() | [tuple()].
-type answer() :: {ok, Result :: term()} | {error, Reason :: term()}.

%% Functions, how many arguments they have behind the table, and which objects they change.
-define(KINDS,
        #{{delete, 1} => key, {take, 1} => key, {update_counter, 2} => key,
          {update_counter, 3} => key, {update_element, 2} => key, {update_element, 3} => key,
          {merge, 3} => key, {merge, 4} => key, {write, 2} => key,
          {insert, 1} => objects, {insert_new, 1} => objects, {delete_object, 1} => objects,
          {select_delete, 1} => spec, {select_replace, 1} => spec, {select_take, 1} => spec,
          {match_delete, 1} => pattern, {delete_all_objects, 0} => all,
          {range_delete, 2} => range, {range_delete, 3} => range,
          {take_first, 0} => first, {take_last, 0} => last}).

%% @doc Runs a command, or all commands of a list.
-spec run(commands(), ats_ra_table:table()) -> answer().
run(Command, Table) when is_tuple(Command) ->
    case run([Command], Table) of
        {ok, [Result]} -> {ok, Result};
        Failed -> Failed
    end;
run(Commands, Table) when length(Commands) > 0 ->
    try
        Kinds = [check(Command, Table) || Command <- Commands],
        {ok, run_each(lists:zip(Kinds, Commands), Table, [], [])}
    catch throw:{?MODULE, Reason} -> {error, Reason}
    end;
run(_Other, _Table) ->
    {error, {badarg, <<"neither a command nor a list of commands">>}}.

%% `Saved' has the old objects of the changed keys, those of the last command first.
run_each([], _Table, _Saved, Results) ->
    lists:reverse(Results);
run_each([{Kind, Command} | Commands], {Module, Id} = Table, Saved, Results) ->
    [Function | Arguments] = tuple_to_list(Command),
    %% Functions change all or nothing by themselves, but for this one.
    IsAlone = Saved =:= [] andalso Commands =:= [] andalso Function =/= select_replace,
    Keys = [Key || not IsAlone, Key <- keys(Kind, Arguments, Table)],
    Now = [{Key, attempt(Table, Saved, lookup, [Key])} || Key <- Keys] ++ Saved,
    Result = attempt({Module, Id}, Now, Function, Arguments),
    run_each(Commands, Table, Now, [Result | Results]).

%% Makes a call. If it is refused, the old objects of its keys are put back.
attempt({Module, Id}, Saved, Function, Arguments) ->
    try answer(apply(Module, Function, [Id | Arguments]))
    catch
        Class:Reason:Stack when Class =:= throw; Reason =:= badarg; Reason =:= system_limit ->
            _ = [{answer(Module:delete(Id, Key)), answer(Module:insert(Id, Objects))}
                 || {Key, Objects} <- Saved],
            Class =:= throw andalso throw(Reason),
            throw({?MODULE, {Reason, text(Reason, Stack)}})
    end.

%% A merge that fails here fails on every node. Any other failure is one of the disk of this node:
%% it ends the server, since its table differs from the others now.
answer({error, {Failed, _Directory, Key, Why}})
  when Failed =:= merge_failed; Failed =:= merge_mismatch ->
    throw({?MODULE, {Failed, Key, Why}});
answer({error, Reason}) ->
    exit({ats_ra, Reason});
answer(Answer) ->
    Answer.

%% @doc Returns the error of a call in words.
-spec text(badarg | system_limit, erlang:stacktrace()) -> binary().
text(Reason, [{_Module, _Function, _Arguments, Location} | _] = Stack) ->
    Texts = case proplists:get_value(error_info, Location) of
                #{module := Module} -> maps:values(Module:format_error(Reason, Stack));
                _ -> [atom_to_list(Reason)]
            end,
    unicode:characters_to_binary(lists:join("; ", Texts)).

%% Returns the keys that a command changes. Some are missing only if it will be refused.
keys(Kind, Arguments, Table) ->
    try find_keys(Kind, Arguments, Table)
    catch error:_ -> []
    end.

find_keys(key, [Key | _], _Table) ->
    [Key];
find_keys(objects, [Object], Table) when is_tuple(Object) ->
    find_keys(objects, [[Object]], Table);
find_keys(objects, [Objects], {Module, Id}) ->
    KeyPos = Module:info(Id, keypos),
    lists:usort([element(KeyPos, Object) || Object <- Objects]);
find_keys(all, [], Table) ->
    find_keys(pattern, ['_'], Table);
find_keys(pattern, [Pattern], Table) ->
    find_keys(spec, [[{Pattern, [], [true]}]], Table);
find_keys(spec, [Spec], {Module, Id} = Table) ->
    Found = [{Head, Guards, ['$_']} || {Head, Guards, _Body} <- Spec],
    find_keys(objects, [answer(Module:select(Id, Found))], Table);
find_keys(range, Arguments, {Module, Id} = Table) ->
    find_keys(objects, [answer(apply(Module, range, [Id | Arguments]))], Table);
find_keys(End, [], {Module, Id}) ->
    [Key || Key <- [Module:End(Id)], Key =/= '$end_of_table'].

%% Returns the kind of a command.
check(Command, {Module, Id}) when is_tuple(Command), tuple_size(Command) > 0 ->
    [Function | Arguments] = tuple_to_list(Command),
    Arity = length(Arguments),
    Kind = maps:get({Function, Arity}, ?KINDS, none),
    Kind =/= none andalso erlang:function_exported(Module, Function, Arity + 1)
        orelse refuse(Command, "is no command of such a table"),
    has(fun erlang:is_function/1, Arguments) andalso refuse(Command, "has a fun in it"),
    Kind =:= spec andalso not is_same_everywhere(hd(Arguments))
        andalso refuse(Command, "needs a match specification without self and node"),
    IsHashed = lists:member(Module:info(Id, type), [set, bag, duplicate_bag]),
    lists:member(Kind, [first, last]) andalso IsHashed
        andalso refuse(Command, "needs a table with an order"),
    Kind;
check(Command, _Table) ->
    refuse(Command, "is no command").

refuse(Command, Text) ->
    throw({?MODULE, {badarg, iolist_to_binary(io_lib:format("~0P ~s", [Command, 9, Text]))}}).

%% A compiled specification is a reference, which only one node knows.
is_same_everywhere(Spec) ->
    IsPlace = fun(Term) -> Term =:= {self} orelse Term =:= {node} end,
    is_list(Spec) andalso not has(IsPlace, [{Guards, Body} || {_Head, Guards, Body} <- Spec]).

%% `true' if a predicate holds of something in a term.
has(Is, [Head | Tail]) -> has(Is, Head) orelse has(Is, Tail);
has(Is, Map) when is_map(Map) -> has(Is, maps:to_list(Map));
has(Is, Tuple) when is_tuple(Tuple) -> Is(Tuple) orelse has(Is, tuple_to_list(Tuple));
has(Is, Term) -> Is(Term).

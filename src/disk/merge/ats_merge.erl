%% @doc Merges that a program writes itself, for tables on disk.
%%
%% A value of a table on disk may be the result of many writes, combined by a *merge*. Most merges
%% have a name, as `sum'; see `ats:merge/4'. For all others a module implements this behaviour,
%% which is that of osmos (Radford, 2009):
%%
%% ```
%% -module(highest_bid).
%% -behaviour(ats_merge).
%% -export([merge/3, short_circuit/2, delete/2, version/0]).
%%
%% %% A bid is {Amount, Bidder}, or `sold', after which no bid counts.
%% merge(_Item, sold, _Bid) -> sold;
%% merge(_Item, _Bid, sold) -> sold;
%% merge(_Item, {A, _} = Earlier, {B, _}) when A >= B -> Earlier;
%% merge(_Item, _Earlier, Later) -> Later.
%%
%% short_circuit(_Item, Value) -> Value =:= sold.
%% delete(_Item, _Value) -> false.
%% version() -> 1.
%% '''
%%
%% == Laws ==
%%
%% <ul>
%% <li>`merge(Key, Earlier, Later)' is associative. `Earlier' was written before `Later'. It need
%% not commute: only neighbours in time are merged.</li>
%% <li>If `short_circuit(Key, Later)' is `true', then `merge(Key, Earlier, Later)' is `Later',
%% whatever `Earlier' is. So older values need not be read.</li>
%% <li>If `delete(Key, Earlier)' is `true', then `merge(Key, Earlier, Later)' is `Later', whatever
%% `Later' is. A key counts as missing if all its values merge to such a value.</li>
%% <li>All three are functions of their arguments. They are called again for the same values, at
%% other times and in other processes, any number of times.</li>
%% <li>`version()' changes whenever one of the others changes its meaning. Values that were written
%% to a table under one version are merged by no other: see `dats:upgrade_merge/2'.</li>
%% </ul>
%%
%% == When it fails ==
%%
%% A module that raises an exception, takes too long, uses too much memory or returns a wrong term
%% fails for that key alone: {@type failure()} describes the fault, and {@link format_failure/1}
%% says it in words. It is called by processes of its own, which it may end, link and make trap
%% exits; see {@link ats_merge_runner}.
-module(ats_merge).

-export([check/1, check/2, check_functions/1, check_version/2, merge/4, is/4, code/1, convert/3]).
-export([format_failure/1]).

-export_type([merge/0, program/0, function_name/0, convert/0, failure/0, cause/0]).
-export_type([version/0, check_error/0]).

-type version() :: 0..16#FFFFFFFF.
-type program() :: module()
                 | {functions, Merge :: function_name(), ShortCircuit :: function_name(),
                    Delete :: function_name()}.
%% A module, or its functions one by one, which have no version but 0.
-type function_name() :: {module(), Name :: atom()}.
-type merge() :: {program(), version()} | {convert, convert()}.
%% A program, and the version that it must have; or a function that merges all values of a key at
%% once.
-type convert() :: fun((Key :: term(), [Value :: term(), ...]) -> {value, term()} | delete).
-type failure() :: {program(), Function :: atom(), cause()}.
%% The function is `any' where it is not known which one it was.
-type cause() ::
        {raised, error | exit | throw, Reason :: term(), [term()]}
      | {returned, term()}
      | {took_longer, Ms :: pos_integer()}
      | {ended, Reason :: term()}
      | {other_version, OfTable :: version(), OfModule :: version()}
      | written_meanwhile
      | no_value.
-type check_error() ::
        {not_a_module, term()}
      | {not_loaded, module(), Reason :: atom()}
      | {not_exported, module(), [{atom(), arity()}, ...]}
      | {failed, failure()}.

-define(CALLBACKS, [{merge, 3}, {short_circuit, 2}, {delete, 2}, {version, 0}]).
-define(MOST_VERSION, 16#FFFFFFFF).
-define(MS, 5000).

-callback merge(Key :: term(), Earlier :: term(), Later :: term()) -> term().
-callback short_circuit(Key :: term(), Value :: term()) -> boolean().
-callback delete(Key :: term(), Value :: term()) -> boolean().
-callback version() -> version().

%% @doc Checks that a program can merge: it can be loaded, and exports all functions that are
%% called. Returns its version.
-spec check(term()) -> {ok, version()} | {error, check_error()}.
check({functions, Merge, ShortCircuit, Delete}) ->
    case check_functions([{Merge, 3}, {ShortCircuit, 2}, {Delete, 2}]) of
        ok -> {ok, 0};
        {error, _} = Wrong -> Wrong
    end;
check(Module) ->
    check(Module, ?CALLBACKS).

%% @doc Checks that functions can be called: their modules can be loaded, and export them.
-spec check_functions([{function_name(), arity()}]) -> ok | {error, check_error()}.
check_functions([{{Module, Function}, Arity} | Functions])
  when is_atom(Module), is_atom(Function) ->
    case code:ensure_loaded(Module) of
        {module, Module} ->
            case erlang:function_exported(Module, Function, Arity)
                orelse erlang:is_builtin(Module, Function, Arity) of
                true -> check_functions(Functions);
                false -> {error, {not_exported, Module, [{Function, Arity}]}}
            end;
        {error, Reason} ->
            {error, {not_loaded, Module, Reason}}
    end;
check_functions([]) ->
    ok;
check_functions([{Other, _Arity} | _]) ->
    {error, {not_a_module, Other}}.

%% @doc Checks that a module can be loaded, and exports all of these functions, of which one is
%% `version/0'. Returns its version.
-spec check(term(), [{Function :: atom(), arity()}]) -> {ok, version()} | {error, check_error()}.
check(Module, Callbacks) when is_atom(Module) ->
    case code:ensure_loaded(Module) of
        {module, Module} -> check_exports(Module, Callbacks);
        {error, Reason} -> {error, {not_loaded, Module, Reason}}
    end;
check(Term, _Callbacks) ->
    {error, {not_a_module, Term}}.

-spec check_exports(module(), [{atom(), arity()}]) -> {ok, version()} | {error, check_error()}.
check_exports(Module, Callbacks) ->
    case [Callback || {Function, Arity} = Callback <- Callbacks,
                      not erlang:function_exported(Module, Function, Arity)] of
        [] -> check_version(Module);
        Missing -> {error, {not_exported, Module, Missing}}
    end.

%% Reads the version in a process of its own, which the module can harm as it likes.
-spec check_version(module()) -> {ok, version()} | {error, check_error()}.
check_version(Module) ->
    Ask = fun() -> exit({?MODULE, call_version(Module)}) end,
    {Pid, Monitor} = spawn_monitor(Ask),
    receive
        {'DOWN', Monitor, process, Pid, {?MODULE, Answer}} ->
            Answer;
        {'DOWN', Monitor, process, Pid, Reason} ->
            {error, {failed, {Module, version, {ended, Reason}}}}
    after ?MS ->
        true = demonitor(Monitor, [flush]),
        true = exit(Pid, kill),
        {error, {failed, {Module, version, {took_longer, ?MS}}}}
    end.

-spec call_version(module()) -> {ok, version()} | {error, check_error()}.
call_version(Module) ->
    try {ok, version(Module)}
    catch throw:{?MODULE, Failure} -> {error, {failed, Failure}}
    end.

-spec version(program()) -> version().
version({functions, _Merge, _ShortCircuit, _Delete}) ->
    0;
version(Module) ->
    IsVersion = fun(V) -> is_integer(V) andalso V >= 0 andalso V =< ?MOST_VERSION end,
    call(Module, version, [], IsVersion).

%%--------------------------------------------------------------------------------------------
%% Calls, which throw `{ats_merge, Failure}'. They are made by processes that the module can harm.
%%--------------------------------------------------------------------------------------------

%% @doc Throws a failure unless a program has this version now. Each call of a module is one of the
%% code that is loaded then, so a value is merged by one version if this is called before and
%% behind that.
-spec check_version(program(), version()) -> ok.
check_version(Program, Version) ->
    case version(Program) of
        Version -> ok;
        Other -> throw({?MODULE, {Program, version, {other_version, Version, Other}}})
    end.

%% @doc Merges two values.
-spec merge(program(), Key :: term(), Earlier :: term(), Later :: term()) -> term().
merge(Program, Key, Earlier, Later) ->
    {Module, Function} = function(Program, merge),
    call(Module, Function, [Key, Earlier, Later], fun(_Any) -> true end).

%% @doc Returns the answer of `short_circuit' or `delete' for a value.
-spec is(program(), short_circuit | delete, Key :: term(), Value :: term()) -> boolean().
is(Program, Callback, Key, Value) ->
    {Module, Function} = function(Program, Callback),
    call(Module, Function, [Key, Value], fun erlang:is_boolean/1).

-spec function(program(), merge | short_circuit | delete) -> function_name().
function({functions, Merge, _, _}, merge) -> Merge;
function({functions, _, ShortCircuit, _}, short_circuit) -> ShortCircuit;
function({functions, _, _, Delete}, delete) -> Delete;
function(Module, Callback) -> {Module, Callback}.

%% @doc Returns a term that tells one code of a program from another.
-spec code(program()) -> term().
code({functions, {A, _}, {B, _}, {C, _}}) ->
    [code(Module) || Module <- lists:usort([A, B, C])];
code(Module) ->
    try Module:module_info(md5)
    catch error:undef -> undefined
    end.

%% @doc Converts all values of a key by a function, which must not fail.
-spec convert(convert(), Key :: term(), [Value :: term(), ...]) -> {value, term()} | delete.
convert(Function, Key, Values) ->
    try Function(Key, Values) of
        {value, _} = Value -> Value;
        delete -> delete;
        Other -> throw({?MODULE, {convert, convert, {returned, Other}}})
    catch
        Class:Reason:Stack -> throw({?MODULE, {convert, convert, {raised, Class, Reason, Stack}}})
    end.

%% Throws faults of the module. Only this function calls the module, so a throw of the module is not
%% taken for one of these.
-spec call(module(), atom(), [term()], fun((term()) -> boolean())) -> term().
call(Module, Function, Arguments, IsRight) ->
    try apply(Module, Function, Arguments) of
        Result ->
            case IsRight(Result) of
                true -> Result;
                false -> throw({?MODULE, {Module, Function, {returned, Result}}})
            end
    catch
        Class:Reason:Stack ->
            throw({?MODULE, {Module, Function, {raised, Class, Reason, Stack}}})
    end.

%% @doc Returns a failure, or an error of {@link check/1}, in words.
-spec format_failure(failure() | check_error()) -> unicode:chardata().
format_failure({not_a_module, Term}) ->
    io_lib:format("~0tP is not the name of a module", [Term, 20]);
format_failure({not_loaded, Module, Reason}) ->
    io_lib:format("the module ~tw cannot be loaded: ~tw", [Module, Reason]);
format_failure({not_exported, Module, Missing}) ->
    Names = [io_lib:format("~tw/~b", [Function, Arity]) || {Function, Arity} <- Missing],
    io_lib:format("the module ~tw does not export ~ts", [Module, lists:join(", ", Names)]);
format_failure({failed, Failure}) ->
    format_failure(Failure);
format_failure({Module, Function, Cause}) ->
    [function_text(Module, Function), $\s, format_cause(Function, Cause)].

-spec function_text(module(), atom()) -> unicode:chardata().
function_text(Module, Function) ->
    case lists:keyfind(Function, 1, ?CALLBACKS) of
        {_, Arity} -> io_lib:format("~tw:~tw/~b", [Module, Function, Arity]);
        false when Function =:= any -> io_lib:format("the merge ~tw", [Module]);
        false -> io_lib:format("~tw:~tw", [Module, Function])
    end.

-spec format_cause(atom(), cause()) -> unicode:chardata().
format_cause(_Function, {raised, Class, Reason, _Stack}) ->
    io_lib:format("raised ~tw:~0tP", [Class, Reason, 20]);
format_cause(version, {returned, Term}) ->
    io_lib:format("returned ~0tP, which is not an integer of 32 bits", [Term, 20]);
format_cause(convert, {returned, Term}) ->
    io_lib:format("returned ~0tP, which is neither {value, Value} nor delete", [Term, 20]);
format_cause(_Function, {returned, Term}) ->
    io_lib:format("returned ~0tP, which is not a boolean", [Term, 20]);
format_cause(_Function, {took_longer, Ms}) ->
    io_lib:format("took longer than ~b ms for one call", [Ms]);
format_cause(version, {other_version, OfTable, OfModule}) ->
    io_lib:format("returned ~b, but the table has values of version ~b", [OfModule, OfTable]);
format_cause(_Function, {ended, killed}) ->
    "was killed: it used too much memory, or killed itself";
format_cause(_Function, {ended, Reason}) ->
    io_lib:format("ended its process: ~0tP", [Reason, 20]);
format_cause(_Function, written_meanwhile) ->
    "was given other values again and again, because others write to the key all the time";
format_cause(_Function, no_value) ->
    "was given an object without a value behind its key".

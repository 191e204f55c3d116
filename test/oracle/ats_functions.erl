%% Calls of every function of `ets', right and wrong ones, on `ets' and on `ats'.
%%
%% A case is a function with arguments, and the kind of table they are about. It runs in a process
%% of its own, on one side and then on the other, and results are turned into terms that must be
%% equal: identifiers and processes into their roles, continuations and compiled specifications into
%% their results, and the order of tables without order into another one. With the answer come the
%% content and the options of the table after the call, and the messages to processes.
-module(ats_functions).

-export([documented/0, later/0, internal/0, interactive/0, cases/0, cases/1, compare/1, compare/2]).

-export_type([function_name/0, test_case/0, verdict/0]).

-type function_name() :: {atom(), arity()}.
-type argument() ::
    tab
    | name
    | recipient
    | file
    | new_file
    | dets
    | collector
    | init_fun
    | shell_fun
    | {compiled, term()}
    | {continuation, atom(), [term()]}
    | {raw, term()}
    | {recipe, ats_term_gen:recipe()}.
-type situation() :: own | deleted | foreign.
-type test_case() :: #{
    function := atom(),
    arguments := [argument()],
    type := atom(),
    objects := [tuple()],
    situation := situation()
}.
%% The result of comparing the two sides in one case. An answer is a result or an exception;
%% explanations are only compared between exceptions, and `more' are those of `ats' where `ets' has
%% nothing to say.
-type verdict() :: #{
    kind := result | exception,
    answer := same | {differs, term(), term()},
    texts := same | more | none | {differs, map(), map()}
}.

-define(TYPES, [set, ordered_set, bag, duplicate_bag]).
-define(NAME, ats_functions_table).
-define(THREE, [{k1, 1, x}, {k2, 2, y}, {k3, 3, z}]).
-define(SPEC, [{{'$1', '$2', '_'}, [{'>', '$2', 1}], [{{'$2', '$1'}}]}]).
-define(TRUE_SPEC, [{{'_', '$1', '_'}, [{'>', '$1', 1}], [true]}]).
-define(PATTERN, {'$1', '_', '$2'}).
-define(ONE(F), (F =:= first orelse F =:= last orelse F =:= next orelse F =:= prev)).
-define(ONE_LOOKUP(F),
    (F =:= first_lookup orelse F =:= last_lookup orelse
        F =:= next_lookup orelse F =:= prev_lookup)
).
-define(CHUNKED(F),
    (F =:= select orelse F =:= select_reverse orelse F =:= match orelse F =:= match_object)
).

%% Returns the documented functions of `ets' in Erlang/OTP 27.
-spec documented() -> [function_name()].
documented() ->
    [
        {Function, Arity}
     || {Function, Arities} <- [
            {all, [0]},
            {delete, [1, 2]},
            {delete_all_objects, [1]},
            {delete_object, [2]},
            {file2tab, [1, 2]},
            {first, [1]},
            {first_lookup, [1]},
            {foldl, [3]},
            {foldr, [3]},
            {from_dets, [2]},
            {fun2ms, [1]},
            {give_away, [3]},
            {i, [0, 1]},
            {info, [1, 2]},
            {init_table, [2]},
            {insert, [2]},
            {insert_new, [2]},
            {is_compiled_ms, [1]},
            {last, [1]},
            {last_lookup, [1]},
            {lookup, [2]},
            {lookup_element, [3, 4]},
            {match, [1, 2, 3]},
            {match_delete, [2]},
            {match_object, [1, 2, 3]},
            {match_spec_compile, [1]},
            {match_spec_run, [2]},
            {member, [2]},
            {new, [2]},
            {next, [2]},
            {next_lookup, [2]},
            {prev, [2]},
            {prev_lookup, [2]},
            {rename, [2]},
            {repair_continuation, [2]},
            {safe_fixtable, [2]},
            {select, [1, 2, 3]},
            {select_count, [2]},
            {select_delete, [2]},
            {select_replace, [2]},
            {select_reverse, [1, 2, 3]},
            {setopts, [2]},
            {slot, [2]},
            {tab2file, [2, 3]},
            {tab2list, [1]},
            {tabfile_info, [1]},
            {table, [1, 2]},
            {take, [2]},
            {test_ms, [2]},
            {to_dets, [2]},
            {update_counter, [3, 4]},
            {update_element, [3, 4]},
            {whereis, [1]}
        ],
        Arity <- Arities
    ].

%% Returns the functions that are newer than the oldest release that `ats' runs on, and the releases
%% that have them. There the texts of exceptions have something to be compared with.
-spec later() -> [{function_name(), Release :: pos_integer()}].
later() ->
    [
        {{first_lookup, 1}, 27},
        {{last_lookup, 1}, 27},
        {{lookup_element, 4}, 26},
        {{next_lookup, 2}, 27},
        {{prev_lookup, 2}, 27},
        {{update_element, 4}, 27}
    ].

%% Returns the functions that `ets' exports for its own use, without documentation.
-spec internal() -> [function_name()].
internal() ->
    [
        {internal_delete_all, 2},
        {internal_request_all, 0},
        {internal_select_delete, 2},
        {match_spec_run_r, 3},
        {module_info, 0},
        {module_info, 1}
    ].

%% Functions that talk to a person; other tests play that person.
-spec interactive() -> [function_name()].
interactive() ->
    [{i, 1}, {i, 2}, {i, 3}].

%% ----- calls and their arguments -----

%% Right arguments for a table of `{Key, Integer, Atom}' objects.
calls() ->
    Key = {raw, k1},
    Absent = {raw, absent},
    Object = {raw, {k1, 1, x}},
    Spec = {raw, ?SPEC},
    True = {raw, ?TRUE_SPEC},
    Pattern = {raw, ?PATTERN},
    Two = {raw, 2},
    [
        {all, []},
        {delete, [tab]},
        {delete, [name]},
        {delete, [tab, Key]},
        {delete_all_objects, [tab]},
        {delete_object, [tab, Object]},
        {file2tab, [file]},
        {file2tab, [file, {raw, []}]},
        {file2tab, [file, {raw, [{verify, true}]}]},
        {first, [tab]},
        {first_lookup, [tab]},
        {foldl, [collector, {raw, []}, tab]},
        {foldr, [collector, {raw, []}, tab]},
        {from_dets, [tab, dets]},
        {fun2ms, [shell_fun]},
        {give_away, [tab, recipient, {raw, gift}]},
        {i, []},
        {info, [tab]},
        {info, [tab, {raw, size}]},
        {init_table, [tab, init_fun]},
        {insert, [tab, Object]},
        {insert, [tab, {raw, [{k1, 5, x}, {k7, 2, y}]}]},
        {insert_new, [tab, Object]},
        {insert_new, [tab, {raw, [{k8, 1, x}, {k9, 2, y}]}]},
        {is_compiled_ms, [{compiled, ?SPEC}]},
        {last, [tab]},
        {last_lookup, [tab]},
        {lookup, [tab, Key]},
        {lookup, [name, Key]},
        {lookup_element, [tab, Key, Two]},
        {lookup_element, [tab, Absent, Two]},
        {lookup_element, [tab, Key, Two, {raw, default}]},
        {lookup_element, [tab, Absent, Two, {raw, default}]},
        {match_delete, [tab, {raw, {'_', 2, '_'}}]},
        {match_delete, [tab, {raw, '_'}]},
        {match_spec_compile, [Spec]},
        {match_spec_run, [{raw, ?THREE}, {compiled, ?SPEC}]},
        {member, [tab, Key]},
        {new, [{raw, ?NAME}, {raw, []}]},
        {new, [{raw, ?NAME}, {raw, [bag, named_table, public, {keypos, 2}]}]},
        {next, [tab, Key]},
        {next_lookup, [tab, Key]},
        {prev, [tab, Key]},
        {prev_lookup, [tab, Key]},
        {rename, [tab, {raw, new_name}]},
        {rename, [name, {raw, new_name}]},
        {repair_continuation, [{continuation, select, [?SPEC, 1]}, Spec]},
        {safe_fixtable, [tab, {raw, true}]},
        {select_count, [tab, True]},
        {select_delete, [tab, True]},
        {select_delete, [tab, {raw, [{'_', [], [true]}]}]},
        {select_replace, [
            tab,
            {raw, [{{'$1', '$2', '$3'}, [{'>', '$2', 1}], [{{'$1', {'+', '$2', 5}, '$3'}}]}]}
        ]},
        {setopts, [tab, {raw, {protection, public}}]},
        {setopts, [tab, {raw, [{protection, private}, {heir, none}]}]},
        {slot, [tab, {raw, 0}]},
        {tab2file, [tab, new_file]},
        {tab2file, [tab, new_file, {raw, []}]},
        {tab2file, [
            tab, new_file, {raw, [{extended_info, [object_count, md5sum]}, {sync, true}]}
        ]},
        {tab2list, [tab]},
        {tabfile_info, [file]},
        {table, [tab]},
        {table, [tab, {raw, []}]},
        {table, [tab, {raw, [{traverse, first_next}, {n_objects, 2}]}]},
        {table, [tab, {raw, {traverse, {select, ?SPEC}}}]},
        {take, [tab, Key]},
        {test_ms, [{raw, {k2, 2, y}}, Spec]},
        {to_dets, [tab, dets]},
        {update_counter, [tab, Key, {raw, {2, 1}}]},
        {update_counter, [tab, Absent, {raw, {2, 1}}]},
        {update_counter, [tab, Key, {raw, [{2, 1}, {2, 5, 6, 0}]}, {raw, {k, 1, x}}]},
        {update_counter, [tab, Absent, {raw, {2, 1}}, {raw, {k, 1, x}}]},
        {update_element, [tab, Key, {raw, {2, 1}}]},
        {update_element, [tab, Absent, {raw, {2, 1}}]},
        {update_element, [tab, Key, {raw, [{2, 1}, {3, z}]}, {raw, {k, 1, x}}]},
        {update_element, [tab, Absent, {raw, {2, 1}}, {raw, {k, 1, x}}]},
        {whereis, [name]}
    ] ++
        [
            Call
         || Select <- [select, select_reverse],
            Call <- [
                {Select, [tab, Spec]},
                {Select, [tab, Spec, {raw, 1}]},
                {Select, [tab, Spec, {raw, 100}]},
                {Select, [{continuation, Select, [?SPEC, 1]}]},
                {Select, [{raw, '$end_of_table'}]}
            ]
        ] ++
        [
            Call
         || Match <- [match, match_object],
            Call <- [
                {Match, [tab, Pattern]},
                {Match, [tab, Pattern, {raw, 1}]},
                {Match, [tab, Pattern, {raw, 100}]},
                {Match, [{continuation, Match, [?PATTERN, 1]}]},
                {Match, [{raw, '$end_of_table'}]}
            ]
        ].

%% Returns all cases.
-spec cases() -> [test_case()].
cases() ->
    Functions = lists:usort([{F, length(A)} || {F, A} <- calls()]),
    lists:append([cases(Function) || Function <- Functions]).

%% Returns the cases of a function.
-spec cases(function_name()) -> [test_case()].
cases({Function, Arity}) ->
    lists:append([
        right_cases(Function, Args) ++ wrong_cases(Function, Args)
     || {F, Args} <- calls(), F =:= Function, length(Args) =:= Arity
    ]).

right_cases(Function, Args) ->
    [
        test_case(Function, Args, Type, Objects, Situation)
     || Type <- types(Args),
        Objects <- [?THREE, [{k1, 1, x}], []],
        Situation <- [own, deleted, foreign]
    ].

wrong_cases(Function, Args) ->
    [
        test_case(Function, replace(N, Wrong, Args), Type, ?THREE, own)
     || Type <- types_for_wrong(Args),
        N <- lists:seq(1, length(Args)),
        Wrong <- ats_wrong_terms:all() ++ wrong_specifications() ++ wrong_options(),
        is_bearable(lists:nth(N, Args), Wrong)
    ].

%% Disks are slow, and the type of the table matters little to them.
types_for_wrong(Args) ->
    case Args -- [file, new_file, dets] of
        Args -> types(Args);
        _ -> [ordered_set]
    end.

%% `ets' waits forever for a file whose name is no name.
is_bearable(new_file, {raw, Name}) -> is_list(Name) orelse is_atom(Name) orelse is_binary(Name);
is_bearable(new_file, {recipe, _}) -> false;
is_bearable(_, _) -> true.

test_case(Function, Args, Type, Objects, Situation) ->
    #{
        function => Function,
        arguments => Args,
        type => Type,
        objects => Objects,
        situation => Situation
    }.

types([]) -> [set];
types(_) -> ?TYPES.

replace(N, Term, Args) ->
    lists:sublist(Args, N - 1) ++ [Term | lists:nthtail(N, Args)].

wrong_specifications() ->
    [
        {raw, T}
     || T <- [
            [{'$1', [], []}],
            [{'$1', [], ['$1']}],
            [{'_', [], ['$_'], more}],
            [{{'$1', '$2', '$3'}, [{no_guard, '$1'}], ['$1']}],
            [{{'$1', '$2', '$3'}, [{'>', '$2', 1}], [{no_such, '$1'}]}],
            [{{'$1', '$2', '$3'}, [{'>', '$9', 1}], ['$_']}],
            [{{'$1', '$2', '$3'}, true, ['$_']}],
            [{{'$1', '$2', '$3'}, [], '$_'}],
            [{{'$1', '$2', '$3'}, [], [{{'$2', '$1'}}]} | more],
            [{{'$1', '$2', '$3'}, [], ['$_']}],
            {'_', '_', '_'},
            {'$1', '$1', '_'},
            {k2, '_', y},
            '_',
            '$1'
        ]
    ].

wrong_options() ->
    [
        {raw, T}
     || T <- [
            [no_such_option],
            [named_table | more],
            [{keypos, 0}],
            {keypos, 2},
            {heir, none},
            {heir, self, data},
            {protection, secret},
            {protection, private},
            [{protection, private}, {protection, private}],
            {traverse, last_prev},
            [{traverse, never}],
            [{n_objects, 0}],
            [{n_objects, default}],
            [{verify, maybe_not}],
            [{verify, true}, {verify, false}],
            {verify, true},
            [{extended_info, [object_count, color]}],
            [{extended_info, md5sum}],
            [{sync, yes}],
            "no such file/at all"
        ]
    ].

%% ----- running a case on both sides -----

-spec compare(test_case()) -> verdict().
compare(#{arguments := Args} = Case) ->
    %% Terms are made once, so that both sides get the very same.
    Made = Case#{arguments := [term(A) || A <- Args]},
    compare(Made, Made).

%% Compares one case on `ets' with the other one on `ats'.
-spec compare(test_case(), test_case()) -> verdict().
compare(RefCase, SubCase) ->
    Ref = observe(reference, RefCase),
    Sub = observe(ats, SubCase),
    case {answer(Ref), answer(Sub)} of
        {{{fail, _, _}, _} = Same, Same} ->
            #{kind => exception, answer => same, texts => compare_texts(Ref, Sub)};
        {Same, Same} ->
            #{kind => result, answer => same, texts => none};
        {{{ok, _}, _} = One, {{ok, _}, _} = Other} ->
            #{kind => result, answer => {differs, One, Other}, texts => none};
        {One, Other} ->
            #{kind => exception, answer => {differs, One, Other}, texts => none}
    end.

term({recipe, Recipe}) -> {raw, ats_term_gen:realize(Recipe)};
term(Argument) -> Argument.

answer(#{answer := Answer, state := State}) -> {Answer, State}.

compare_texts(#{texts := Same}, #{texts := Same}) when map_size(Same) =:= 0 -> none;
compare_texts(#{texts := Same}, #{texts := Same}) -> same;
compare_texts(#{texts := Ref}, #{}) when map_size(Ref) =:= 0 -> more;
compare_texts(#{texts := Ref}, #{texts := Sub}) -> {differs, Ref, Sub}.

%% Runs a case in a process that owns all it needs, and waits until that is gone.
observe(Side, #{situation := Situation} = Case) ->
    {Pid, Monitor} = spawn_monitor(fun() ->
        Owner = self(),
        Env = prepare(Side, Case),
        case Situation of
            foreign ->
                {Stranger, Ref} = spawn_monitor(fun() -> exit({outcome, run(Env, Case)}) end),
                receive {'DOWN', Ref, process, Stranger, Outcome} -> exit(Outcome) end;
            _ ->
                Owner = maps:get(owner, Env),
                exit({outcome, run(Env, Case)})
        end
    end),
    receive
        {'DOWN', Monitor, process, Pid, {outcome, Outcome}} -> Outcome;
        {'DOWN', Monitor, process, Pid, Other} -> error({cannot_run, Side, Case, Other})
    after 30000 ->
        exit(Pid, kill),
        error({hangs, Side, Case})
    end.

prepare(Side, #{arguments := Args, type := Type, objects := Objects} = Case) ->
    Base = base(Side),
    Named = [named_table || lists:member(name, Args)],
    Protection = [private || maps:get(situation, Case) =:= foreign],
    T = Base:new(?NAME, [Type | Named ++ Protection]),
    true = Base:insert(T, Objects),
    Env0 = #{side => Side, type => Type, owner => self(), id => Base:info(T, id), tab => T},
    Env = lists:foldl(fun(A, E) -> add(A, Type, E) end, Env0, Args),
    case Case of
        #{situation := deleted} -> Base:delete(T);
        _ -> true
    end,
    Env.

%% Returns the value of an argument on this side.
add(recipient, _, Env) ->
    Env#{recipient => spawn_link(fun() -> receive {gifts, From} -> From ! flush() end end)};
add(file, Type, Env) ->
    File = "functions.tab",
    T = ets:new(written, [Type, {keypos, 2}]),
    true = ets:insert(T, ?THREE),
    ok = ets:tab2file(T, File, [{extended_info, [object_count]}]),
    true = ets:delete(T),
    Env#{file => File};
add(new_file, _, Env) ->
    File = "functions.new",
    _ = file:delete(File),
    Env#{new_file => File};
add(dets, Type, Env) ->
    File = "functions.dets",
    _ = file:delete(File),
    DetsType = proplists:get_value(Type, [{ordered_set, set}], Type),
    {ok, Dets} = dets:open_file(functions_dets, [{file, File}, {type, DetsType}]),
    ok = dets:insert(Dets, [{k2, 5, z}, {k5, 5, z}]),
    Env#{dets => Dets};
add(_, _, Env) ->
    Env.

%% Returns the module to call a function of: differences between releases are levelled by the
%% reference. It always composes steps that return objects, also if there are such functions.
module(ats, _) ->
    ats;
module(reference, {Function, Arity}) ->
    {module, _} = code:ensure_loaded(ats_reference),
    IsThere = ?ONE_LOOKUP(Function) andalso erlang:function_exported(ets, Function, Arity),
    case erlang:function_exported(ats_reference, Function, Arity) andalso not IsThere of
        true -> ats_reference;
        false -> ets
    end.

base(ats) -> ats;
base(reference) -> ets.

run(#{side := Side, tab := T} = Env, #{function := F, arguments := Args0}) ->
    Args = [argument(A, Env) || A <- Args0],
    Module = module(Side, {F, length(Args)}),
    {Answer, Texts} =
        try printing_nothing(fun() -> apply(Module, F, Args) end) of
            Result -> {{ok, result(F, Args, Result, Env)}, #{}}
        catch
            Class:Reason:Stack -> {{fail, Class, plain(Reason, Env)}, texts(Stack)}
        end,
    State = state(T, Env),
    maps:is_key(dets, Env) andalso dets:close(maps:get(dets, Env)),
    #{answer => Answer, texts => Texts, state => State}.

argument(tab, #{tab := T}) -> T;
argument(name, _) -> ?NAME;
argument({raw, Term}, _) -> Term;
argument(collector, _) -> fun(Object, Acc) -> [Object | Acc] end;
argument(init_fun, _) -> init_fun([[{n1, 1}, {n2, 2}], [], [{n3, 3}]]);
argument(shell_fun, _) -> shell_fun();
argument({compiled, Spec}, #{side := Side}) -> (base(Side)):match_spec_compile(Spec);
argument({continuation, F, Args}, #{side := Side, tab := T} = Env) ->
    continuation(base(Side), F, T, Args, Env);
argument(Role, Env) -> maps:get(Role, Env).

%% A table that is gone, or private to another process, has no continuation.
continuation(Base, F, T, Args, _) ->
    try apply(Base, F, [T | Args]) of
        {First, Continuation} ->
            %% The next chunk depends on the first.
            put(first_chunk, First),
            Continuation;
        '$end_of_table' ->
            '$end_of_table'
    catch
        error:badarg -> '$end_of_table'
    end.

init_fun([]) ->
    fun
        (read) -> end_of_input;
        (close) -> ok
    end;
init_fun([Objects | More]) ->
    fun
        (read) -> {Objects, init_fun(More)};
        (close) -> ok
    end.

%% A fun as the shell makes it: its source is part of it.
shell_fun() ->
    {ok, Tokens, _} = erl_scan:string("fun({K, N, _}) when N > 1 -> {K, N} end."),
    {ok, [Expression]} = erl_parse:parse_exprs(Tokens),
    {value, Fun, _} = erl_eval:expr(Expression, []),
    Fun.

%% Runs a function with an output that takes everything and shows nothing.
printing_nothing(Fun) ->
    Leader = group_leader(),
    Silent = spawn_link(fun silent/0),
    group_leader(Silent, self()),
    try
        Fun()
    after
        group_leader(Leader, self()),
        unlink(Silent),
        exit(Silent, kill)
    end.

silent() ->
    receive
        {io_request, From, As, _} ->
            From ! {io_reply, As, ok},
            silent()
    end.

flush() ->
    receive
        Message -> [Message | flush()]
    after 0 -> []
    end.

%% ----- turning outcomes into terms that must be equal -----

%% The state of the table after the call, and the messages that the processes got.
state(T0, #{side := Side, id := Id} = Env) ->
    Base = base(Side),
    T =
        case is_reference(T0) of
            true -> T0;
            false -> Id
        end,
    Items = [
        {Item, plain(Base:info(T, Item), Env)}
     || Item <- [type, keypos, protection, named_table, name, size, owner, heir, compressed, fixed]
    ],
    Content =
        try
            in_order(Base:info(T, type), Base:tab2list(T))
        catch
            error:badarg -> unreadable
        end,
    Dets =
        case Env of
            #{dets := Name} -> lists:sort(dets:match_object(Name, '_'));
            _ -> none
        end,
    File =
        case Env of
            #{new_file := New} -> file_content(New, Env);
            _ -> none
        end,
    #{
        items => Items,
        content => Content,
        dets => Dets,
        file => File,
        received => plain(flush() ++ gifts(Env), Env)
    }.

%% A message that is on its way from here is there before our question.
gifts(#{recipient := Recipient}) ->
    Recipient ! {gifts, self()},
    receive
        Messages when is_list(Messages) -> Messages
    after 5000 -> none
    end;
gifts(_) ->
    [].

%% A file of either side is one that `ets' can read.
file_content(File, Env) ->
    case filelib:is_regular(File) of
        true ->
            {ok, T} = ets:file2tab(File, [{verify, true}]),
            {ok, Info} = ets:tabfile_info(File),
            Content = in_order(ets:info(T, type), ets:tab2list(T)),
            true = ets:delete(T),
            {Content, plain(Info, Env)};
        false ->
            none
    end.

result(new, _, T, #{side := Side} = Env) ->
    described(base(Side), T, Env);
result(file2tab, _, {ok, T}, #{side := Side} = Env) ->
    {ok, described(base(Side), T, Env)};
result(all, _, Tables, #{tab := T}) ->
    lists:member(T, Tables);
result(info, [_], Items, Env) when is_list(Items) ->
    [{Item, item(Item, Value, Env)} || {Item, Value} <- Items];
result(info, [_, Item], Value, Env) ->
    item(Item, Value, Env);
result(tabfile_info, _, {ok, Items}, Env) ->
    {ok, plain(Items, Env)};
result(table, _, Handle, #{type := Type}) ->
    try qlc:eval(Handle) of
        Objects -> in_order(Type, Objects)
    catch
        Class:Reason -> {Class, Reason}
    end;
result(match_spec_compile, _, Compiled, #{side := Side}) ->
    Base = base(Side),
    {Base:is_compiled_ms(Compiled), Base:match_spec_run(?THREE, Compiled)};
result(repair_continuation, _, Continuation, #{type := Type, side := Side}) ->
    in_order(Type, first_chunk() ++ chunks(base(Side), select, {[], Continuation}));
result(F, [_, _], Results, #{type := Type}) when ?CHUNKED(F) ->
    in_order(Type, Results);
result(F, _, Chunk, #{type := Type, side := Side}) when ?CHUNKED(F) ->
    in_order(Type, first_chunk() ++ chunks(base(Side), F, Chunk));
result(F, _, Results, #{type := Type}) when F =:= tab2list; F =:= foldl; F =:= foldr ->
    in_order(Type, Results);
result(F, _, Step, #{type := Type} = Env) when
    (?ONE(F) orelse ?ONE_LOOKUP(F)) andalso Type =/= ordered_set
->
    step(F, Step, Env);
result(slot, [T, I], _, #{type := Type, side := Side}) when Type =/= ordered_set, I =:= 0 ->
    lists:sort(slots(base(Side), T, 0));
result(slot, _, _, #{type := Type}) when Type =/= ordered_set ->
    %% The number of slots is not specified.
    somewhere;
result(_, _, Result, Env) ->
    plain(Result, Env).

described(Base, T, Env) ->
    Items = [{I, V} || {I, V} <- Base:info(T), I =/= id, I =/= memory],
    {plain(Items, Env#{tab => T, id => Base:info(T, id)}), lists:sort(Base:tab2list(T))}.

item(memory, Value, _) -> is_integer(Value) andalso Value > 0;
item(stats, _, _) -> any;
item(_, Value, Env) -> plain(Value, Env).

first_chunk() ->
    case erase(first_chunk) of
        undefined -> [];
        First -> First
    end.

%% All results, from a chunk to the end.
chunks(_, _, '$end_of_table') -> [];
chunks(_, _, {Results, '$end_of_table'}) -> Results;
chunks(Base, F, {Results, Continuation}) -> Results ++ chunks(Base, F, Base:F(Continuation)).

slots(Base, T, I) ->
    case Base:slot(T, I) of
        '$end_of_table' -> [];
        Objects -> Objects ++ slots(Base, T, I + 1)
    end.

%% A step through a table without order may lead to any key, unless there is only one; but the key
%% must exist.
step(F, Step, #{side := Side, tab := T}) ->
    Base = base(Side),
    Objects =
        case Step of
            '$end_of_table' -> end_or_object;
            {Key, Found} when ?ONE_LOOKUP(F) -> Base:lookup(T, Key) =:= Found;
            Key -> Base:member(T, Key)
        end,
    case Base:info(T, size) =< 1 of
        true -> Step;
        false when F =:= first; F =:= last; F =:= first_lookup; F =:= last_lookup -> Objects;
        false when Objects =:= false -> false;
        false -> end_or_object
    end.

%% A list that may have an improper end: a fold can start with anything.
in_order(ordered_set, List) ->
    List;
in_order(_, List) ->
    {Elements, End} = split(List, []),
    {[E || {_, E} <- lists:sort([{term_to_binary(E), E} || E <- Elements])], End}.

split([Element | Rest], Elements) -> split(Rest, [Element | Elements]);
split(End, Elements) -> {Elements, End}.

%% Returns a term with roles instead of identifiers.
plain(T, #{id := T}) -> '$table';
plain(Pid, #{owner := Pid}) -> '$owner';
plain(Pid, #{recipient := Pid}) -> '$recipient';
plain(Pid, _) when Pid =:= self() -> '$caller';
plain(Module, _) when Module =:= ets; Module =:= ats; Module =:= ats_reference -> '$module';
plain([Head | Tail], Env) -> [plain(Head, Env) | plain(Tail, Env)];
plain(Tuple, Env) when is_tuple(Tuple) -> list_to_tuple(plain(tuple_to_list(Tuple), Env));
plain(Term, _) -> Term.

%% Returns the explanations of the arguments, as the shell would print them.
texts(Stack) ->
    %% Words of `ats' behind those of `ets' are no difference.
    case ats_oracle:blame(Stack) of
        none -> #{};
        Texts -> maps:map(fun(_, Text) -> own_name(Text) end, maps:without([general], Texts))
    end.

own_name(Text) ->
    re:replace(unicode:characters_to_binary(Text), "ETS table", "ATS table", [
        global, {return, binary}
    ]).

%% @doc Tests of the calls that `ats_transform' renames, those that it leaves alone, and its
%% messages.
%%
%% Small modules are compiled here and run. The result of a call shows if it goes to `ats': a table
%% of one is not accepted by the other.
-module(ats_transform_SUITE).

-include_lib("stdlib/include/assert.hrl").

-export([all/0, init_per_testcase/2, end_per_testcase/2]).
-export([calls_are_renamed/1, calls_in_other_processes_are_renamed/1,
         imports_are_renamed/1, types_are_renamed/1, all_types_exist/1,
         fun2ms_works_in_every_order/1, only_certain_calls_are_renamed/1,
         local_functions_that_hide_built_in_ones_stay/1, functions_are_excepted/1,
         tables_are_excepted/1, variable_functions_are_never_excepted/1,
         missing_functions_are_errors/1, doubts_are_warnings/1, wrong_options_are_errors/1,
         messages_name_the_included_file/1, transforming_twice_changes_nothing/1]).

all() ->
    [calls_are_renamed, calls_in_other_processes_are_renamed, imports_are_renamed,
     types_are_renamed, all_types_exist, fun2ms_works_in_every_order,
     only_certain_calls_are_renamed, local_functions_that_hide_built_in_ones_stay,
     functions_are_excepted, tables_are_excepted, variable_functions_are_never_excepted,
     missing_functions_are_errors, doubts_are_warnings, wrong_options_are_errors,
     messages_name_the_included_file, transforming_twice_changes_nothing].

%% The module that is compiled, over and over.
-define(MOVED, ats_transform_moved).
-define(TRANSFORM, "-compile({parse_transform, ats_transform}).\n").

init_per_testcase(_, Config) ->
    Ats = ats:new(?MODULE, [public, named_table]),
    Ets = ets:new(?MODULE, [public, named_table]),
    true = ats:insert(Ats, {k, ats}),
    true = ets:insert(Ets, {k, ets}),
    Config.

%% The tables end with the process of the test case.
end_per_testcase(_, _) ->
    code:purge(?MOVED),
    code:delete(?MOVED).

%%--------------------------------------------------------------------------------------------
%% Renamed calls
%%--------------------------------------------------------------------------------------------

calls_are_renamed(_) ->
    Lookups = ["ets:lookup(T, k)",
               "F = lookup, ets:F(T, k)",
               "ets:(element(1, {lookup}))(T, k)",
               "(fun ets:lookup/2)(T, k)",
               "F = lookup, A = 2, (fun ets:F/A)(T, k)",
               "hd(lists:map(fun(X) -> ets:lookup(X, k) end, [T]))",
               "hd([ets:lookup(X, k) || X <- [T]])",
               "try ets:lookup(T, nobody) of [] -> ets:lookup(T, k) catch _:_ -> ets end",
               "case catch ets:lookup_element(T, k, 2) of ats -> ets:lookup(T, k) end",
               "ets:lookup(hd([T || [_] <- [ets:lookup(T, k)]]), k)",
               "apply(ets, lookup, [T, k])",
               "erlang:apply(ets, lookup, [T, k])",
               "apply(ets, lookup, [T | [k]])",
               "Args = [T, k], apply(ets, lookup, Args)",
               "F = lookup, apply(ets, F, [T, k])",
               "apply(fun ets:lookup/2, [T, k])",
               "(erlang:make_fun(ets, lookup, 2))(T, k)",
               "element(2, timer:tc(ets, lookup, [T, k]))",
               "rpc:call(node(), ets, lookup, [T, k])",
               "rpc:call(node(), ets, lookup, [T, k], 5000)",
               "rpc:block_call(node(), ets, lookup, [T, k])",
               "rpc:block_call(node(), ets, lookup, [T, k], 5000)",
               "rpc:yield(rpc:async_call(node(), ets, lookup, [T, k]))",
               "{[R], []} = rpc:multicall(ets, lookup, [T, k]), R",
               "{[R], []} = rpc:multicall([node()], ets, lookup, [T, k]), R",
               "{[R], []} = rpc:multicall(ets, lookup, [T, k], 5000), R",
               "{[R], []} = rpc:multicall([node()], ets, lookup, [T, k], 5000), R",
               "erpc:call(node(), ets, lookup, [T, k])",
               "erpc:call(node(), ets, lookup, [T, k], 5000)",
               "erpc:receive_response(erpc:send_request(node(), ets, lookup, [T, k]))",
               "[{ok, R}] = erpc:multicall([node()], ets, lookup, [T, k]), R",
               "[{ok, R}] = erpc:multicall([node()], ets, lookup, [T, k], 5000), R",
               "Q = spawn_request(ets, lookup, [T, k]),"
               " receive {spawn_reply, Q, ok, _} -> ets:lookup(T, k) end"]
        ++ ["element(2, timer:tc(ets, lookup, [T, k], millisecond))"
            || lists:member({tc, 4}, timer:module_info(exports))],
    [?assertEqual({Code, [{k, ats}]}, {Code, run(Code, ats)}) || Code <- Lookups],
    %% Each of them would have gone to the table of `ets' before.
    [?assertEqual({Code, [{k, ets}]}, {Code, run_as_it_is(Code, ets)})
     || Code <- Lookups, string:find(Code, "ats") =:= nomatch],
    ok.

calls_in_other_processes_are_renamed(_) ->
    Spawns = ["(N, ets, insert, [T, {x, N}])", "(ets, insert, [T, {x, N}])"],
    WithOptions = ["(N, ets, insert, [T, {x, N}], [])", "(ets, insert, [T, {x, N}], [])"],
    Inserts = [Function ++ Arguments
               || Function <- ["spawn", "spawn_link", "spawn_monitor", "erlang:spawn",
                               "proc_lib:spawn", "proc_lib:spawn_link"],
                  Arguments <- Spawns]
        ++ [Function ++ Arguments
            || Function <- ["spawn_opt", "erlang:spawn_opt", "proc_lib:spawn_opt",
                            "spawn_request"],
               Arguments <- WithOptions]
        ++ ["spawn_request(ets, insert, [T, {x, N}])",
            "timer:apply_after(0, ets, insert, [T, {x, N}])",
            "{ok, Ref} = timer:apply_interval(1, ets, insert, [T, {x, N}]),"
            " timer:sleep(20), timer:cancel(Ref)",
            "rpc:cast(N, ets, insert, [T, {x, N}])",
            "rpc:eval_everywhere(ets, insert, [T, {x, N}])",
            "rpc:eval_everywhere([N], ets, insert, [T, {x, N}])",
            "erpc:cast(N, ets, insert, [T, {x, N}])",
            "erpc:multicast([N], ets, insert, [T, {x, N}])",
            "P = spawn(fun() -> erlang:hibernate(ets, insert, [T, {x, N}]) end), P ! go",
            "P = spawn(fun() -> proc_lib:hibernate(ets, insert, [T, {x, N}]) end), P ! go"],
    [begin
         true = ats:delete(?MODULE, x),
         run("N = node(), " ++ Code, ats),
         ats_test_lib:until(fun() -> ats:lookup(?MODULE, x) =:= [{x, node()}] end, 5000)
     end || Code <- Inserts],
    ?assertEqual([], ets:lookup(?MODULE, x)).

imports_are_renamed(_) ->
    Head = "-import(ets, [lookup/2, lookup_element/3]).\n-import(lists, [map/2]).\n",
    ?assertEqual([{k, ats}], run(Head, "lookup(T, k)", ats)),
    ?assertEqual([ats], run(Head, "map(fun(X) -> lookup_element(X, k, 2) end, [T])", ats)),
    Except = "-compile({ats_transform, {except, [{lookup_element, 3}]}}).\n",
    ?assertEqual([{k, ats}], run(Except ++ Head, "lookup(T, k)", ats)),
    ?assertEqual(ets, run(Except ++ Head, "lookup_element(T, k, 2)", ets)).

types_are_renamed(_) ->
    {Forms, []} = transformed(
        "-record(r, {t :: ets:tid() | none, u = ets:whereis(x) :: [ets:table()]}).\n"
        "-type a() :: #{ets:tab() => {tagged, ets:table_type()}}.\n"
        "-opaque b(X) :: fun((ets:match_spec()) -> X).\n"
        "-callback c(ets:comp_match_spec()) -> ets:match_pattern().\n"
        "-spec f(T) -> T when T :: ets:compiled_match_spec() | ets:table_access().\n"
        "f(T) -> T.\n"
        "-spec g() -> {ok, a(), b(#r{t :: ets:tid()})}.\n"
        "g() -> error(f(#r{})).\n"),
    ?assertEqual([], [Form || Form <- Forms, mentions(ets, Form)]),
    ?assertEqual(6, length([Form || Form <- Forms, mentions(ats, Form)])),
    {error, Errors, []} = transform("-spec f(ets:no_such_type()) -> ets:tid(term()).\n"
                                    "f(_) -> ok.\n"),
    ?assertEqual([{1, "ats has no type no_such_type/0"}, {1, "ats has no type tid/1"}],
                 texts(Errors)).

%% The transform has a list of the types: unlike functions, they cannot be asked for.
all_types_exist(_) ->
    [begin
         {Forms, []} = transformed(io_lib:format("-type t() :: ets:~w().\n", [Type])),
         ?assert(lists:any(fun(Form) -> mentions(ats, Form) end, Forms)),
         ?assert(lists:member({Type, 0}, types(ats)), Type)
     end || {Type, 0} <- types(ets)],
    ok.

fun2ms_works_in_every_order(_) ->
    Code = "ets:select(T, ets:fun2ms(fun({k, V}) when V =/= ets -> {V, k} end))",
    [begin
         Transforms = [["-compile({parse_transform, ", Name, "}).\n"] || Name <- Names],
         ?assertEqual([{ats, k}], run_as_it_is(lists:append(Transforms), Code, ats))
     end || Other <- ["ms_transform", "ats_ms_transform"],
            Names <- [["ats_transform", Other], [Other, "ats_transform"]]],
    %% A fun that comes from a shell needs no transform.
    ?assertMatch({'EXIT', {function_clause, [{ets, fun2ms, _, _} | _]}},
                 run("catch ets:fun2ms(T)", ats)).

%%--------------------------------------------------------------------------------------------
%% Calls that stay
%%--------------------------------------------------------------------------------------------

only_certain_calls_are_renamed(_) ->
    Stay = ["M = ets, M:lookup(T, k)",
            "M = ets, apply(M, lookup, [T, k])",
            "lists:last([[ets], lists]), X = [ets, T], (hd(X)):lookup(lists:last(X), k)",
            "#{ets := M} = #{ets => ets}, M:lookup(T, k)"],
    [?assertEqual({Code, [{k, ets}]}, {Code, run(Code, ets)}) || Code <- Stay],
    ?assertEqual({ets, [ets, "ets:lookup", <<"ets">>]},
                 run("{ets, [ets, \"ets:lookup\", <<\"ets\">>]}", ets)),
    ?assertEqual(x, run("-author({ets, lookup}).\n-vsn(ets).\n", "T", x)),
    ?assertEqual([ets], proplists:get_value(vsn, ?MOVED:module_info(attributes))),
    %% A function of another module may call it or not.
    ?assertEqual([{k, ets}], run("", "[X] = lists:usort([{ets, lookup, [T, k]}]),"
                                     " {M, F, A} = X, apply(M, F, A)", ets, [nowarn])).

local_functions_that_hide_built_in_ones_stay(_) ->
    Local = "-compile({no_auto_import, [apply/3]}).\n",
    Definition = "apply(M, _F, _A) -> M.\n",
    Code = "{apply(ets, lookup, [T]), erlang:apply(ets, lookup_element, [T, k, 2])}",
    ?assertEqual({ets, ats}, run_compiled([?TRANSFORM, Local, function(Code), Definition], ats,
                                          [{ats_transform, nowarn}])).

functions_are_excepted(_) ->
    Except = "-compile({ats_transform, [{except, [{lookup, 2}, member]}]}).\n",
    Lookups = ["ets:lookup(T, k)", "(fun ets:lookup/2)(T, k)", "apply(ets, lookup, [T, k])",
               "A = [T, k], apply(ets, lookup, A)", "(erlang:make_fun(ets, lookup, 2))(T, k)",
               "rpc:call(node(), ets, lookup, [T, k])",
               "case ets:member(T, k) of true -> ets:lookup(T, k) end"],
    [?assertEqual({Code, [{k, ets}]}, {Code, run(Except, Code, ets)}) || Code <- Lookups],
    ?assertEqual([{k, ets}], run("", "ets:lookup(T, k)", ets, [{except, [lookup]}])),
    %% The arity counts, where it can be seen.
    ?assertEqual(ats, run("", "ets:lookup_element(T, k, 2)", ats,
                          [{except, [{lookup_element, 4}]}])),
    ?assertEqual(ats, run(Except, "ets:lookup_element(T, k, 2)", ats)),
    %% Options of the module and of the compiler add up.
    ?assertEqual(ets, run(Except, "[_] = ets:lookup(T, k), ets:lookup_element(T, k, 2)", ets,
                          [{except, [lookup_element]}])).

tables_are_excepted(_) ->
    Except = [{except_tables, [other, ?MODULE]}],
    Name = atom_to_list(?MODULE),
    Codes = ["ets:lookup_element(~s, k, 2)", "(apply(ets, lookup_element, [~s, k, 2]))",
             "ets:foldl(fun({_, V}, _) -> V end, none, ~s)",
             "rpc:call(node(), ets, foldr, [fun({_, V}, _) -> V end, none, ~s])",
             "ets:lookup_element(ets:whereis(~s), k, 2)"],
    [begin
         Code = io_lib:format(Pattern, [Name]),
         ?assertEqual({Pattern, ats}, {Pattern, run("", Code, x, [])}),
         case string:find(Pattern, "whereis") of
             nomatch -> ?assertEqual({Pattern, ets}, {Pattern, run("", Code, x, Except)});
             _ -> ?assertError(badarg, run("", Code, x, Except))
         end
     end || Pattern <- Codes],
    ?assertEqual([{k, ats}], run("", "ets:lookup(T, k)", ats, Except)).

variable_functions_are_never_excepted(_) ->
    Source = "f(T, F) -> ets:F(T).\n",
    {_, []} = transformed(Source),
    {Forms, Warnings} = transformed(Source, [{except, [lookup]}]),
    ?assert(lists:any(fun(Form) -> mentions(ats, Form) end, Forms)),
    ?assertMatch([{1, "the function is a variable" ++ _}], texts(Warnings)),
    ?assertMatch({_, []}, transformed(Source, [nowarn, {except, [lookup]}])).

%%--------------------------------------------------------------------------------------------
%% Messages
%%--------------------------------------------------------------------------------------------

missing_functions_are_errors(_) ->
    {error, Errors, []} =
        transform("-import(ets, [lookup/2, lookup/7]).\n"
                  "f(T) ->\n"
                  "    ets:no_such(T),\n"
                  "    ets:lookup(T),\n"
                  "    apply(ets, lookup, [T]),\n"
                  "    X = [T], apply(ets, no_such, X),\n"
                  "    fun ets:lookup/3,\n"
                  "    spawn(node(), ets, lookup, []),\n"
                  "    ets:fun2ms(T, T).\n"),
    ?assertEqual([{1, "ats has no function lookup/7"}, {3, "ats has no function no_such/1"},
                  {4, "ats has no function lookup/1"}, {5, "ats has no function lookup/1"},
                  {6, "ats has no function no_such"}, {7, "ats has no function lookup/3"},
                  {8, "ats has no function lookup/0"}, {9, "ats has no function fun2ms/2"}],
                 texts(Errors)),
    %% The compiler reports them like its own.
    {error, [{_, [{3, ats_transform, _}]}], []} =
        compile("f(T) ->\n\n    ets:no_such(T).\n", [{parse_transform, ats_transform}]).

doubts_are_warnings(_) ->
    Source = "f(T) ->\n"
             "    {ets, insert, [T, x]},\n"
             "    add_hook(ets, insert),\n"
             "    other:start_link(T, ets, lookup, []),\n"
             "    [ets, lookup, T],\n"
             "    dets:to_ets(T, T),\n"
             "    dets:from_ets(T, T),\n"
             "    {ets, nothing, [ets], ets},\n"
             "    dets:lookup(T, T).\n"
             "add_hook(_, _) -> ok.\n",
    {_, Warnings} = transformed(Source),
    ?assertEqual([{2, "ets beside insert may be no call, and stays ets"},
                  {3, "ets beside insert may be no call, and stays ets"},
                  {4, "ets beside lookup may be no call, and stays ets"},
                  {5, "ets beside lookup may be no call, and stays ets"},
                  {6, "dets:to_ets/2 takes a table of ets, not one of ats"},
                  {7, "dets:from_ets/2 takes a table of ets, not one of ats"}],
                 texts(Warnings)),
    ?assertMatch({_, []}, transformed(Source, [nowarn])).

wrong_options_are_errors(_) ->
    [begin
         {error, [{_, [{_, ats_transform, Error}]}], _} = transform("f() -> ok.\n", [Option]),
         ?assertEqual({bad_option, Option}, Error)
     end || Option <- [nothing, {except, lookup}, {except, [{lookup, 7}]}, {except, [loookup]},
                       {except_tables, ["name"]}, {except, lookup, 2}]],
    ok.

messages_name_the_included_file(_) ->
    {error, Errors, []} =
        transform("f() -> ok.\n-file(\"included.hrl\", 7).\ng() -> ets:no_such().\n"
                  "-file(\"moved.erl\", 3).\nh() -> ets:no_such().\n"),
    ?assertMatch([{"included.hrl", [_]}, {"moved.erl", [_]}], Errors).

transforming_twice_changes_nothing(_) ->
    {Forms, []} = transformed("-import(ets, [lookup/2]).\nf(T) -> {ets:all(), lookup(T, T)}.\n"),
    ?assertEqual(Forms, ats_transform:parse_transform(Forms, [])).

%%--------------------------------------------------------------------------------------------
%% Compiling and running
%%--------------------------------------------------------------------------------------------

%% Returns the result of `Code' with `T' as the identifier of a table of `ats' or `ets'.
run(Code, Which) -> run("", Code, Which).

run(Attributes, Code, Which) -> run(Attributes, Code, Which, []).

run(Attributes, Code, Which, Options) ->
    run_compiled([?TRANSFORM, Attributes, function(Code)], Which, [{ats_transform, Options}]).

run_as_it_is(Code, Which) -> run_as_it_is("", Code, Which).

run_as_it_is(Attributes, Code, Which) ->
    run_compiled([Attributes, function(Code)], Which, []).

function(Code) -> ["-export([f/1]).\nf(T) -> _ = T, ", Code, ".\n"].

run_compiled(Source, Which, Options) ->
    {ok, ?MOVED, Binary, []} = compile(Source, [nowarn_unused_vars | Options]),
    {module, ?MOVED} = code:load_binary(?MOVED, "moved.erl", Binary),
    Result = ?MOVED:f(table(Which)),
    code:purge(?MOVED),
    Result.

table(ats) -> ats:whereis(?MODULE);
table(ets) -> ets:whereis(?MODULE);
table(Other) -> Other.

compile(Source, Options) ->
    compile:forms([{attribute, 1, module, ?MOVED} | forms(Source)],
                  [binary, return, nowarn_unused_function, nowarn_unused_type | Options]).

%% The transform alone: its forms and warnings.
transformed(Source) -> transformed(Source, []).

transformed(Source, Options) ->
    case transform(Source, Options) of
        {warning, Forms, Warnings} -> {Forms, Warnings};
        Forms when is_list(Forms) -> {Forms, []}
    end.

transform(Source) -> transform(Source, []).

transform(Source, Options) ->
    ats_transform:parse_transform(forms(Source), [{ats_transform, Options}]).

forms(Source) ->
    {ok, Tokens, _} = erl_scan:string(lists:flatten(Source)),
    forms(Tokens, [], []).

forms([{dot, _} = Dot | Tokens], Form, Forms) ->
    {ok, Parsed} = erl_parse:parse_form(lists:reverse(Form, [Dot])),
    forms(Tokens, [], [Parsed | Forms]);
forms([Token | Tokens], Form, Forms) ->
    forms(Tokens, [Token | Form], Forms);
forms([], [], Forms) ->
    lists:reverse(Forms).

texts(Messages) ->
    [{Line, lists:flatten(Module:format_error(What))}
     || {_File, InFile} <- Messages, {Line, Module, What} <- InFile].

mentions(Atom, Atom) -> true;
mentions(Atom, Tuple) when is_tuple(Tuple) -> mentions(Atom, tuple_to_list(Tuple));
mentions(Atom, [Head | Tail]) -> mentions(Atom, Head) orelse mentions(Atom, Tail);
mentions(_, _) -> false.

types(Module) ->
    {ok, {_, [{abstract_code, {_, Forms}}]}} =
        beam_lib:chunks(code:which(Module), [abstract_code]),
    lists:append([Types || {attribute, _, export_type, Types} <- Forms]).

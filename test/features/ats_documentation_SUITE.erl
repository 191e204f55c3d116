%% Documentation in the shell: `h(ats)' finds it, and its examples are true.
-module(ats_documentation_SUITE).

-include_lib("kernel/include/eep48.hrl").
-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0, init_per_suite/1, end_per_suite/1, end_per_testcase/2]).
-export([every_function_is_documented/1, every_function_has_an_example/1]).
-export([every_example_holds/1, sees_wrong_examples/1, shell_shows_functions/1]).
-export([groups_agree/1, other_public_modules_are_documented/1, internal_modules_are_not/1]).

%% A dialogue; and a function that needs two versions of a module. Their groups have examples.
-define(GROUPED, [{ats, i}, {dats, upgrade_merge}]).
-define(OTHERS, [ats_format, ats_merge, ats_metrics, ats_ms_transform, ats_observer_cli,
                 ats_prometheus, ats_telemetry, ats_transform, ats_try]).

suite() -> [{timetrap, {minutes, 15}}].

all() ->
    [every_function_is_documented, every_function_has_an_example, every_example_holds,
     sees_wrong_examples, shell_shows_functions, groups_agree,
     other_public_modules_are_documented, internal_modules_are_not].

init_per_suite(Config) ->
    case {ats_oracle:subject(), code:which(edoc), code:get_doc(ats)} of
        {ats, non_existing, {error, _}} -> {skip, "there is no EDoc here"};
        {ats, _, _} -> Config;
        _ -> {skip, "the documentation is that of ats"}
    end.

end_per_suite(_) ->
    ok.

end_per_testcase(_, _) ->
    ats_disk_lib:end_case().

every_function_is_documented(_) ->
    Documented = [
        {Module, Function}
     || Module <- [ats, dats],
        {Function, #{<<"en">> := [_ | _]}, #{group := _}} <- functions(Module)
    ],
    Exported = [{Module, Function} || Module <- [ats, dats], Function <- exported(Module)],
    ?assertEqual([], Exported -- Documented),
    Inner = [
        {Module, Function}
     || Module <- [ats, dats | ?OTHERS],
        {Function, _, _} <- functions(Module),
        not lists:member(Function, exported(Module))
    ],
    ?assertEqual([], Inner).

%% A name has an example if any of its arities is called in one.
every_function_has_an_example(_) ->
    Lacking = [
        {Module, Name}
     || Module <- [ats, dats],
        Called <- [called(Module)],
        {Name, _} <- exported(Module),
        not lists:member(Name, Called),
        not lists:member({Module, Name}, ?GROUPED)
    ],
    ?assertEqual([], Lacking).

every_example_holds(Config) ->
    Examples = [
        {{Module, Function}, Example}
     || Module <- [ats, dats],
        {Function, Doc, _} <- functions(Module),
        Example <- examples(Doc)
    ],
    Wrong = [{Of, W} || {Of, Example} <- Examples, W <- [outcome(Config, Of, Example)], W =/= []],
    ?assertEqual([], Wrong),
    {comment, io_lib:format("~b examples", [length(Examples)])}.

sees_wrong_examples(_) ->
    ?assertEqual([], ats_examples:run("1> X = 1 + 1.\n2\n2> {X,\n   a}.\n{2,\n a}\n")),
    ?assertMatch([{_, 2}], ats_examples:run("1> 1 + 1.\n3\n")),
    ?assertEqual(["1> a.\na"], ats_examples:of_doc([{p, [], [{pre, [], [<<"1> a.\na">>]}]}])).

shell_shows_functions(_) ->
    ?assertMatch({match, _}, re:run(shown([ats]), "Adaptive\\s+Term\\s+Storage")),
    [shows_groups(Module) || Module <- [ats, dats]],
    ?assertMatch({match, _}, re:run(shown([ats, select, 2]), "match\\s+specification")),
    ?assertMatch({match, _}, re:run(shown([dats, open_file, 2]), "auto_save")).

%% All functions are shown, each below the title of its group, in the order of the source.
shows_groups(Module) ->
    [_, Listed] = string:split(words(shown([Module])), " Functions ", trailing),
    Expected = [
        [Title, ": ", lists:join(", ", [[atom_to_list(N), "/", integer_to_list(A)]
                                       || {N, A} <- Functions])]
     || {Title, Functions} <- ats_docs_page:groups(Module)
    ],
    ?assertEqual(lists:flatten(lists:join(" ", Expected)), Listed),
    %% The text is for those who call the functions.
    ?assertEqual(nomatch, re:run(words(shown([Module])), "native call|end of the file")).

words(Text) ->
    string:trim(re:replace(Text, "\\s+", " ", [global, unicode, {return, list}])).

%% The groups of functions of `dats' are those of its sections and of the pages about it, in the
%% same order.
groups_agree(_) ->
    Titles = [Title || {Title, _} <- ats_docs_page:groups(dats)],
    Source = proplists:get_value(source, dats:module_info(compile)),
    Page = fun(Name) -> filename:join([ats_test_lib:project(), "docs", "use", Name]) end,
    [
        ?assertEqual({File, Titles}, {File, lists:sublist(titles(File, Pattern), length(Titles))})
     || {File, Pattern} <- [
            {Source, "^%%-+\n%% (.*)$"},
            {Source, "^%% <dt>([A-Z].*?)</dt>"},
            {Page("tables-on-disk.md"), "^\\| ([A-Z].*?) \\|"},
            {Page("functions-on-disk.md"), "^## (.*)$"}
        ]
    ].

titles(File, Pattern) ->
    {ok, Text} = file:read_file(File),
    {match, Titles} = re:run(Text, Pattern, [global, multiline, {capture, all_but_first, list}]),
    lists:append(Titles).

other_public_modules_are_documented(_) ->
    [
        ?assertMatch({ok, #docs_v1{module_doc = #{<<"en">> := [_ | _]}}}, code:get_doc(Module))
     || Module <- ?OTHERS
    ].

internal_modules_are_not(_) ->
    {ok, Modules} = application:get_key(ats, modules),
    Shown = [M || M <- Modules, {ok, #docs_v1{module_doc = #{}}} <- [code:get_doc(M)]],
    ?assertEqual([], lists:sort(Shown) -- [ats, dats | ?OTHERS]).

%% ----- documented functions -----

exported(Module) ->
    Module:module_info(exports) -- [{module_info, 0}, {module_info, 1}].

%% Returns the functions of a module, each with its documentation.
functions(Module) ->
    {ok, #docs_v1{docs = Docs}} = code:get_doc(Module),
    [
        {{Name, Arity}, Doc, Metadata}
     || {{function, Name, Arity}, _, _, Doc, Metadata} <- Docs
    ].

examples(#{<<"en">> := Text}) -> ats_examples:of_doc(Text);
examples(_) -> [].

%% Returns the names of functions of a module that its examples call.
called(Module) ->
    Examples = [Example || {_, Doc, _} <- functions(Module), Example <- examples(Doc)],
    Call = io_lib:format("\\b~s:([a-z0-9_]+)\\(", [Module]),
    {match, Calls} = re:run(Examples, Call, [global, {capture, all_but_first, list}]),
    [list_to_atom(Name) || [Name] <- Calls].

%% ----- running -----

%% Returns the fault of an example, if any. It has a directory of its own, and a process whose
%% tables end.
outcome(Config, {Module, {Name, Arity}}, Example) ->
    Folder = lists:flatten(io_lib:format("~s_~s_~b", [Module, Name, Arity])),
    _ = file:del_dir_r(filename:join(proplists:get_value(priv_dir, Config), Folder)),
    ats_docs_page:in_scratch_directory(Config, Folder, fun() ->
        {Pid, Monitor} = spawn_monitor(fun() ->
            Wrong = ats_examples:run(Example),
            lists:foreach(fun dats:close/1, dats:all()),
            exit({ran, Wrong})
        end),
        receive
            {'DOWN', Monitor, process, Pid, {ran, Wrong}} -> Wrong;
            {'DOWN', Monitor, process, Pid, Reason} -> Reason
        end
    end).

%% Returns the output of `h', which asks now and then if it shall go on.
shown([Module | Function]) ->
    {ok, Docs} = code:get_doc(Module),
    unicode:characters_to_list(apply(shell_docs, render, [Module] ++ Function ++ [Docs])).

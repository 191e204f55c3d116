%% Every function of `ets', called on `ets' and on `ats', and the results as a page of the
%% documentation.
%%
%% The page docs/use/functions.md is written by this suite, if ATS_WRITE_DOCS is set (`make
%% functions'). If it is not, the page must be up to date. A difference that has no reason below is
%% a failure.
-module(ats_functions_SUITE).

-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0, init_per_suite/1, end_per_suite/1]).
-export([every_function_is_there/1, every_function_is_called/1, sees_differences/1, page/1]).

-define(PAGE, "functions.md").

suite() -> [{timetrap, {minutes, 30}}].

all() ->
    [every_function_is_there, every_function_is_called, sees_differences, page].

init_per_suite(Config) ->
    case ats_oracle:subject() of
        ats ->
            ok = ats_term_gen:prepare(),
            Config;
        _ ->
            {skip, "the page is about ats"}
    end.

end_per_suite(_) ->
    ok.

%% ----- documented functions -----

every_function_is_there(_) ->
    Exported = ats:module_info(exports),
    ?assertEqual([], ats_functions:documented() -- Exported),
    Public = ets:module_info(exports) -- ats_functions:internal(),
    ?assertEqual([], Public -- Exported),
    %% Functions that `ets' has and the list lacks were added by a later release.
    ?assertEqual([], (Public -- ats_functions:documented()) -- ats_functions:interactive()).

every_function_is_called(_) ->
    Uncalled = [
        Function
     || Function <- ats_functions:documented() -- ats_functions:interactive(),
        ats_functions:cases(Function) =:= []
    ],
    ?assertEqual([], Uncalled).

%% The comparison is worth nothing if it cannot see a difference.
sees_differences(Config) ->
    in_scratch_directory(Config, fun() ->
        Case = #{
            function => info,
            arguments => [tab, {raw, no_such_item}],
            type => set,
            objects => [],
            situation => own
        },
        ?assertMatch(
            #{kind := exception, answer := same, texts := same}, ats_functions:compare(Case)
        ),
        ?assertMatch(
            #{answer := {differs, _, _}},
            ats_functions:compare(Case, Case#{function := tab2list, arguments := [tab]})
        ),
        ?assertMatch(
            #{answer := same, texts := {differs, _, _}},
            ats_functions:compare(
                Case#{function := delete, arguments := [{raw, no_table}]},
                Case#{function := delete, arguments := [{raw, {}}]}
            )
        )
    end).

%% ----- the page -----

page(Config) ->
    Functions = ats_functions:documented() -- ats_functions:interactive(),
    Rows = in_scratch_directory(Config, fun() -> [row(F) || F <- Functions] end),
    Unexplained = lists:append([U || #{unexplained := U} <- Rows]),
    ByFunction = maps:groups_from_list(fun({#{function := F}, _}) -> F end, Unexplained),
    [
        ct:pal("~0tp~n~0tp", [Case, Verdict])
     || Some <- maps:values(ByFunction), {Case, Verdict} <- lists:sublist(Some, 3)
    ],
    ?assertEqual(#{}, maps:map(fun(_, Some) -> length(Some) end, ByFunction)),
    Table = [
        introduction(),
        table_of([R || #{line := R} <- Rows] ++ [interactive_line(F) || F <- [{i, 1}]])
    ],
    Calls = lists:sum([N || #{calls := N} <- Rows]),
    ok = ats_docs_page:compare(?PAGE, Table, fun additions/0),
    {comment, io_lib:format("~b calls", [Calls])}.

introduction() ->
    [
        "# Function by function\n\n",
        "All functions that Erlang/OTP 27 documents for `ets`, as a test has found them in "
        "`ats`. Each was\n"
        "called with right arguments, and with each argument replaced by terms of every kind, "
        "on tables of\n"
        "all types, of the caller, of others, and deleted. *Results* are what calls return, "
        "and what the\n"
        "table is like afterwards; *exceptions* are class and reason; *texts* are the "
        "explanations of the\n"
        "arguments that the shell prints, which begin with the words of `ets`. \"More\" says "
        "that there are\nalso texts where `ets` explains nothing.\n\n",
        "This page is written by `make functions`, and `make test-deep` fails if it is out of "
        "date.\n\n"
    ].

table_of(Lines) ->
    [
        "| function | present | results | exceptions | texts | remark |\n",
        "|---|---|---|---|---|---|\n",
        Lines
    ].

interactive_line(Function) ->
    line(Function, ["same", "same", "same", "a dialogue: compared as such, by another test"]).

line({F, A}, Cells) ->
    Name = io_lib:format("`~s/~b`", [F, A]),
    ["| ", lists:join(" | ", [Name, "yes" | Cells]), " |\n"].

%% Returns the result of all calls of a function.
row(Function) ->
    Cases = ats_functions:cases(Function),
    Verdicts = [{Case, verdict(Case)} || Case <- Cases],
    Judged = [{judge(Function, Case, V), Case, V} || {Case, V} <- Verdicts],
    Allowed = [Reason || {{allowed, Reason}, _, _} <- Judged],
    Reasons = lists:usort([iolist_to_binary(R) || R <- Allowed ++ later_remarks(Function)]),
    #{
        calls => length(Cases),
        unexplained => [{Case, V} || {unexplained, Case, V} <- Judged],
        line => line(Function, [
            cell(result, Judged),
            cell(exception, Judged),
            texts_cell(Function, Judged),
            lists:join("; ", Reasons)
        ])
    }.

verdict(Case) ->
    try
        ats_functions:compare(Case)
    catch
        error:Reason -> #{kind => result, answer => {differs, error, Reason}, texts => none}
    end.

judge(_, _, #{answer := same, texts := Texts}) when is_atom(Texts) ->
    same;
judge(Function, Case, Verdict) ->
    case [Reason || {F, Is, Reason} <- allowed(), F =:= Function, Is(Case, Verdict)] of
        [Reason | _] -> {allowed, Reason};
        [] -> unexplained
    end.

cell(Kind, Judged) ->
    case [A || {_, _, #{kind := K, answer := A}} <- Judged, K =:= Kind] of
        [] -> "none";
        Answers -> cell_of(lists:all(fun(A) -> A =:= same end, Answers))
    end.

cell_of(true) -> "same";
cell_of(false) -> "see remark".

texts_cell(Function, Judged) ->
    Texts = [T || {_, _, #{kind := exception, answer := same, texts := T}} <- Judged],
    IsSame = [T || {differs, _, _} = T <- Texts] =:= [],
    IsRemarked = length(later_remarks(Function)) > 1,
    case {is_missing(Function), IsSame, lists:usort(Texts) -- [none]} of
        {true, _, _} when IsRemarked -> "see remark";
        {true, _, _} -> "same";
        {false, false, _} -> "see remark";
        {false, true, []} -> "none";
        {false, true, [same]} -> "same";
        {false, true, _} -> "same, and more"
    end.

%% The page is the same on all releases: remarks about later ones are on it, too.
later_remarks(Function) ->
    case lists:keyfind(Function, 1, ats_functions:later()) of
        {_, Since} -> [later_remark(Since) | [R || {F, _, R} <- differences(), F =:= Function]];
        false -> []
    end.

later_remark(Since) ->
    Text = "on all releases; in `ets` since Erlang/OTP ~b, with which it is compared",
    io_lib:format(Text, [Since]).

is_missing(Function) ->
    not lists:member(Function, ets:module_info(exports)).

%% ----- differences that have a reason -----

%% The function, the differences that are meant, and the reason.
allowed() ->
    differences() ++
        [
            {F, fun only_texts/2, later_remark(Since)}
         || {F, Since} <- ats_functions:later(), is_missing(F)
        ].

differences() ->
    [
        {{foldl, 3}, fun only_texts/2, "`ets` blames argument 1 for what is wrong with the table"},
        {{foldr, 3}, fun only_texts/2, "`ets` blames argument 1 for what is wrong with the table"},
        {{table, 2}, fun only_texts/2, "`ets` blames an argument 3 that it does not have"},
        {{update_element, 3}, fun is_bag/2, "of a bag, it says that the type is not supported"},
        {{update_element, 4}, fun is_bag/2, "of a bag, it says that the type is not supported"},
        {
            {update_element, 4},
            fun blames_positions/2,
            "`ets` says that positions are out of range if something is wrong with the table"
        }
    ].

blames_positions(_, #{answer := same, texts := {differs, #{3 := <<"out of range">>}, #{1 := _}}}) ->
    true;
blames_positions(_, _) ->
    false.

is_bag(#{type := Type} = Case, Verdict) ->
    lists:member(Type, [bag, duplicate_bag]) andalso only_texts(Case, Verdict).

only_texts(_, #{answer := Answer}) -> Answer =:= same.

%% ----- functions that `ets' does not have -----

additions() ->
    Known = lists:append([
        ets:module_info(exports),
        ats_functions:documented(),
        ats_functions:interactive(),
        ats_functions:internal()
    ]),
    Added = lists:sort(ats:module_info(exports)) -- Known,
    Briefs = ats_docs_page:briefs(ats),
    [
        "\n## Functions that `ets` does not have\n\n",
        "| function | what it does |\n|---|---|\n",
        [
            io_lib:format("| `~s/~b` | ~ts |\n", [F, A, maps:get({F, A}, Briefs)])
         || {F, A} <- Added
        ]
    ].

%% ----- help -----

in_scratch_directory(Config, Fun) ->
    ats_docs_page:in_scratch_directory(Config, "functions", Fun).

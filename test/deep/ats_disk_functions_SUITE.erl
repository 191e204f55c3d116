%% Every function of `dets', called on `dets' and on `dats', those of osmos and tcerl, and the
%% results as a page of the documentation.
%%
%% The page docs/use/functions-on-disk.md is written by this suite, if ATS_WRITE_DOCS is set (`make
%% functions'). If it is not, the page must be up to date. A difference that has no reason below is
%% a failure.
-module(ats_disk_functions_SUITE).

-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0, end_per_testcase/2]).
-export([every_function_is_told/1, every_function_is_called/1, page/1]).

-define(PAGE, "functions-on-disk.md").

suite() -> [{timetrap, {minutes, 30}}].

all() -> [every_function_is_told, every_function_is_called, page].

end_per_testcase(_, _) ->
    _ = [dets:close(Name) || Name <- dets:all()],
    ats_disk_lib:end_case().

every_function_is_told(_) ->
    Exported = dats:module_info(exports),
    Known = ats_disk_functions:documented() ++ [F || {F, _} <- ats_disk_functions:undocumented()],
    ?assertEqual([], (dets:module_info(exports) -- own()) -- Known),
    ?assertEqual(Known, lists:uniq(Known)),
    ?assertEqual(lists:sort([F || {F, _} <- missing()]),
                 lists:sort(ats_disk_functions:documented() -- Exported)),
    [?assertNot(lists:member(F, Exported)) || {F, _} <- ats_disk_functions:undocumented()],
    Counterparts = ats_disk_functions:osmos() ++ ats_disk_functions:tcerl(),
    Named = [F || {_, F, _} <- Counterparts, F =/= none],
    ?assertEqual([], Named -- lists:append(lists:duplicate(9, Exported))).

every_function_is_called(_) ->
    Uncalled = [F || F <- ats_disk_functions:documented(), ats_disk_functions:cases(F) =:= []],
    ?assertEqual([], Uncalled).

own() -> [{module_info, 0}, {module_info, 1}].

%% ----- the page -----

page(Config) ->
    Functions = ats_disk_functions:documented(),
    Rows = ats_docs_page:in_scratch_directory(Config, "functions_on_disk", fun() ->
        [row(F) || F <- Functions]
    end),
    Unexplained = lists:append([U || #{unexplained := U} <- Rows]),
    [ct:pal("~0tp~n~0tp", [Case, Verdict]) || {Case, Verdict} <- lists:sublist(Unexplained, 40)],
    ?assertEqual([], lists:usort([{F, length(Args)} || {{F, Args, _, _}, _} <- Unexplained])),
    ok = ats_docs_page:compare(?PAGE, introduction(), fun() ->
        [
            groups(maps:from_list([{F, Cells} || #{function := F, cells := Cells} <- Rows])),
            undocumented(),
            counterparts("osmos", osmos, ats_disk_functions:osmos()),
            counterparts("tcerl", tcbdbets, ats_disk_functions:tcerl())
        ]
    end),
    Calls = lists:sum([N || #{calls := N} <- Rows]),
    {comment, io_lib:format("~b calls", [Calls])}.

introduction() ->
    [
        "# Function by function: tables on disk\n\n",
        "The functions of `dats`, in the groups of its documentation. A test has called those\n"
        "that Erlang/OTP 27 documents for `dets` with right arguments, and with each argument\n"
        "replaced by terms of other kinds, on tables of all types of `dets` and on tables that\n"
        "can only be read. It has compared their *results*, errors of files included, and the\n"
        "objects afterwards with those of `dets`; and their *exceptions*, by class and reason.\n"
        "[Where `dats` differs](moving-from-dets.md#where-it-differs-from-dets) has the reasons.\n"
        "All functions of osmos and tcerl follow.\n\n",
        "This page is written by `make functions`, and `make test-deep` fails if it is out of "
        "date.\n\n"
    ].

row(Function) ->
    case lists:keyfind(Function, 1, missing()) of
        {_, Why} ->
            #{function => Function, calls => 0, unexplained => [], cells => ["missing", "", Why]};
        false ->
            Cases = ats_disk_functions:cases(Function),
            Judged = [{judge(Function, Case, V), Case, V}
                      || Case <- Cases, V <- [ats_disk_functions:compare(Case)]],
            Reasons = lists:usort([Reason || {{allowed, Reason}, _, _} <- Judged]),
            #{
                function => Function,
                calls => length(Cases),
                unexplained => [{Case, V} || {unexplained, Case, V} <- Judged],
                cells => [cell(result, Judged), cell(exception, Judged), lists:join("; ", Reasons)]
            }
    end.

%% Functions that `dets' does not have are described.
groups(Compared) ->
    Briefs = ats_docs_page:briefs(dats),
    [
        [
            ["## ", Title, "\n\n"],
            "| function | results | exceptions | remark |\n|---|---|---|---|\n",
            [
                line(F, A, maps:get({F, A}, Compared, ["", "", maps:get({F, A}, Briefs, "")]))
             || {F, A} <- Functions ++ [F || {F, _} <- missing(), Title =:= "Names of dets"]
            ],
            "\n"
        ]
     || {Title, Functions} <- ats_docs_page:groups(dats)
    ].

line(F, A, Cells) ->
    ["| ", lists:join(" | ", [io_lib:format("`~s/~b`", [F, A]) | Cells]), " |\n"].

judge(_, _, {_, same}) ->
    same;
judge(Function, {_, Args, Type, Access}, {_, {differs, Expected, Got}}) ->
    Case = #{args => Args, type => Type, access => Access, dets => Expected, dats => Got},
    case [Reason || {F, Is, Reason} <- differences(), F =:= Function, Is(Case)] of
        [Reason | _] -> {allowed, Reason};
        [] -> unexplained
    end.

cell(Kind, Judged) ->
    case [J || {J, _, {K, _}} <- Judged, K =:= Kind] of
        [] -> "none";
        All -> cell_of(lists:all(fun(J) -> J =:= same end, All))
    end.

cell_of(true) -> "same";
cell_of(false) -> "see remark".

%% Documented functions of `dets' that `dats' has not.
missing() ->
    [{{pid2name, 1}, "one process owns all tables, so none has a table's name"}].

%% The function, the differences that are meant, and the reason.
differences() ->
    Fails = "if the function fails, the exception is its own, and the table is as before",
    Lists = "takes lists of operations, too",
    [
        {{info, 2}, fun is_item_of_slots/1, "`hash`, `no_slots` and `version` are `undefined`"},
        {{init_table, 2}, fun fails_in_function/1, Fails},
        {{init_table, 3}, fun fails_in_function/1, Fails},
        {{open_file, 1}, fun has_binary/1, "names of files can be binaries"},
        {{open_file, 2}, fun tells_no_type/1, "a table that is there needs no `type`"},
        {{is_dets_file, 1}, fun has_binary/1, "names of files can be binaries"},
        {{update_counter, 3}, fun has_empty_list/1, Lists}
    ].

is_item_of_slots(#{args := [tab, {raw, Item}], dats := {undefined, _}}) ->
    lists:member(Item, [hash, no_slots, version]);
is_item_of_slots(_) ->
    false.

fails_in_function(#{dets := {{raised, throw, Reason}, _},
                    dats := {{raised, _, Reason}, {After, _}}}) ->
    length(After) =:= 3;
fails_in_function(_) ->
    false.

tells_no_type(#{args := [tab, {raw, Options}]}) -> not lists:keymember(type, 1, Options);
tells_no_type(_) -> false.

has_binary(#{args := [{raw, Name}]}) -> is_binary(Name).

has_empty_list(#{args := [_, _, {raw, Operations}]}) -> Operations =:= [].

undocumented() ->
    [
        "## Functions that `dets` exports without documentation\n\n",
        "`dats` has none of them.\n\n",
        "| function | why, or what there is instead |\n|---|---|\n",
        [line(F, A, [Why]) || {{F, A}, Why} <- ats_disk_functions:undocumented()]
    ].

counterparts(Name, Module, Rows) ->
    [
        io_lib:format("\n## Functions of ~s\n\n", [Name]),
        io_lib:format("| `~s` | `dats` | remark |\n|---|---|---|\n", [Module]),
        [line(F, A, [there(There), Remark]) || {{F, A}, There, Remark} <- Rows]
    ].

there(none) -> "missing";
there({F, A}) -> io_lib:format("`~s/~b`", [F, A]).

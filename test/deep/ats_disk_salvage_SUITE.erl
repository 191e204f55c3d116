%% Damaged tables: `dats` opens the tables that the command `ats disk salvage` saves of them.
-module(ats_disk_salvage_SUITE).

-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0, init_per_suite/1, end_per_suite/1]).
-export([init_per_testcase/2, end_per_testcase/2]).
-export([salvaged_tables_can_be_opened/1, a_lost_description_is_made_again/1]).
-export([options_are_asked_for/1, page_about_operating/1, page_about_moving/1]).

-define(KEYS, 3000).

suite() -> [{timetrap, {minutes, 10}}].

all() ->
    [salvaged_tables_can_be_opened, a_lost_description_is_made_again, options_are_asked_for,
     page_about_operating, page_about_moving].

%% ATS_COMMAND is a command that was built elsewhere.
init_per_suite(Config) ->
    case {os:getenv("ATS_COMMAND"), os:find_executable("cargo")} of
        {false, false} -> {skip, "cargo, which builds the command `ats`, is not there"};
        {false, _} ->
            Folder = ats_test_lib:cargo_build("-p ats-cli"),
            [{command, filename:join(Folder, "ats")} | Config];
        {Command, _} -> [{command, Command} | Config]
    end.

end_per_suite(_) ->
    ok.

init_per_testcase(Case, Config) ->
    ats_disk_lib:begin_case(Case, Config).

end_per_testcase(_, _) ->
    ats_disk_lib:end_case().

%% The name, the options, and the options to be given when the description is lost.
tables() ->
    [
        {set, [{type, set}, {keypos, 2}], "--type set"},
        {ordered_set, [{type, ordered_set}, {keypos, 2}], ""},
        {ordered_bag, [{type, ordered_bag}, {keypos, 2}], "--type ordered_bag"},
        {bag, [{type, bag}, {keypos, 2}], "--type bag"},
        {duplicate_bag, [{type, duplicate_bag}, {keypos, 2}], "--type duplicate_bag --keypos 2"},
        {sum_of_set, [{type, set}, {merge, sum}], ""},
        {sum_of_ordered_set, [{type, ordered_set}, {merge, sum}], ""},
        {nested, [{type, set}, {merge, {vector, [sum, {prune, append}, {last, 2}]}}], ""},
        {module, [{type, set}, {merge, {module, ats_keyed_merge}}], ""},
        {ordered_module, [{type, ordered_set}, {merge, {module, ats_keyed_merge}}], "--keypos 1"}
    ].

%% Files of records are damaged; the file that describes the table is not.
salvaged_tables_can_be_opened(Config) ->
    lists:foreach(
        fun({Name, Options, _}) ->
            Before = make(Config, Name, Options),
            spoil(Config, Name),
            {1, Said} = salvage(Config, Name, ""),
            ?assertMatch({_, true}, {Said, string:find(Said, "wrong checksum") =/= nomatch}),
            check(Config, Name, Options, Before)
        end,
        tables()
    ).

%% Files of records are damaged, and the file that describes the table is missing or empty.
a_lost_description_is_made_again(Config) ->
    lists:foreach(
        fun({{Name, Options, Told}, Number}) ->
            Before = make(Config, Name, Options),
            spoil(Config, Name),
            Description = filename:join(ats_disk_lib:file(Config, Name), "table"),
            case Number rem 2 of
                0 -> ok = file:delete(Description);
                1 -> ok = file:write_file(Description, <<>>)
            end,
            {1, Verified} = ats(Config, ["verify '", ats_disk_lib:file(Config, Name), "'"]),
            ?assertMatch({_, true}, {Verified, string:find(Verified, " table: ") =/= nomatch}),
            {1, _} = salvage(Config, Name, Told),
            check(Config, Name, Options, Before)
        end,
        lists:zip(tables(), lists:seq(1, length(tables())))
    ).

%% Nothing is saved before the type of the table is known.
options_are_asked_for(Config) ->
    _ = make(Config, t, [{type, bag}, {keypos, 2}]),
    ok = file:delete(filename:join(ats_disk_lib:file(Config, t), "table")),
    lists:foreach(
        fun({Told, Answer}) ->
            {3, Said} = salvage(Config, t, Told),
            ?assertMatch({_, true}, {Said, string:find(Said, Answer) =/= nomatch}),
            ?assertNot(filelib:is_dir(saved(Config, t)))
        end,
        [
            {"", "--type bag or duplicate_bag and --keypos 2"},
            {"--type set", "the options do not fit"},
            {"--type bag --keypos 1", "the options do not fit"}
        ]
    ).

%% ----- blocks of pages -----

%% The commands of `docs/use/operating.md' print what the page says. The first ones are for a table
%% with a damaged block, the others for tables whose descriptions are lost.
page_about_operating(Config) ->
    [Damaged, Lost] = ats_page_blocks:blocks("docs/use/operating.md", "console"),
    Words = [{lists:flatten(io_lib:format("word ~4..0b", [N])), N} || N <- lists:seq(0, 9999)],
    make_words(Config, [{type, ordered_set}], Words),
    damage(Config, words, 2048),
    printed(Config, Damaged),
    ok = file:del_dir_r(ats_disk_lib:file(Config, words)),
    ok = file:del_dir_r(saved_as(Config, words)),
    make_words(Config, [{type, set}], Words),
    [Module] = [
        Text || "-module(highest_bid)" ++ _ = Text <- ats_page_blocks:blocks(
            "docs/use/tables-on-disk.md", "erlang")
    ],
    ats_docs_page:in_scratch_directory(Config, "modules", fun() ->
        ats_page_blocks:evaluate(Module, erl_eval:new_bindings())
    end),
    bids = ats_disk_lib:open(Config, bids, [{type, set}, {merge, {module, highest_bid}}]),
    ok = dats:merge(bids, vase, {100, ann}),
    ok = dats:close(bids),
    [ok = file:delete(filename:join(ats_disk_lib:file(Config, T), "table")) || T <- [words, bids]],
    printed(Config, Lost),
    [
        begin
            {ok, T} = dats:open_file(T, [{file, saved_as(Config, T)}]),
            ?assertEqual([Object], dats:lookup(T, element(1, Object))),
            ok = dats:close(T)
        end
     || {T, Object} <- [{words, {"word 0007", 7}}, {bids, {vase, {100, ann}}}]
    ],
    ok.

make_words(Config, Options, Words) ->
    words = ats_disk_lib:open(Config, words, Options),
    ok = dats:insert(words, Words),
    ok = dats:compact(words),
    ok = dats:close(words).

saved_as(Config, Table) ->
    ats_disk_lib:file(Config, atom_to_list(Table) ++ ".saved").

damage(Config, Table, Offset) ->
    [Run] = filelib:wildcard(filename:join(ats_disk_lib:file(Config, Table), "run-*")),
    {ok, <<Start:Offset/binary, Byte, Rest/binary>>} = file:read_file(Run),
    ok = file:write_file(Run, <<Start/binary, (Byte bxor 1), Rest/binary>>).

%% Runs the commands behind the prompts of a block, and compares what they print, if the block shows
%% it. Dots stand for any text.
printed(Config, Block) ->
    Joined = re:replace(Block, "\\\\\n *", "", [global, {return, list}]),
    [begin
         [Command | Shown] = string:split(Step, "\n"),
         Said = shell(Config, ats_page_blocks:at("", Command)),
         Expected = string:trim(Shown),
         Expected =:= "" orelse ?assertMatch({match, _}, re:run(Said, pattern(Expected)), Said)
     end || Step <- tl(re:split(Joined, "^\\$ ", [multiline, {return, list}]))].

pattern(Shown) ->
    Literal = ["\\Q", string:replace(Shown, "...", "\\E(?s:.*)\\Q", all), "\\E"],
    unicode:characters_to_binary(["^", Literal, "\\s*$"]).

directory(Config) ->
    proplists:get_value(directory, Config).

%% Returns what a command prints that runs in the directory of the test and finds `ats'.
shell(Config, Command) ->
    Path = filename:dirname(filename:absname(proplists:get_value(command, Config))),
    {_, Said} = ats_test_lib:run_program(
        "/bin/sh", ["-c", Command], directory(Config),
        [{"PATH", Path ++ ":" ++ os:getenv("PATH")},
         {"ERL_LIBS", filename:join(directory(Config), "libraries")}]
    ),
    unicode:characters_to_list(Said).

%% The commands of `docs/use/moving-from-ets.md' copy applications, whose copies use `ats'.
page_about_moving(Config) ->
    [Block] = ats_page_blocks:blocks("docs/use/moving-from-ets.md", "sh"),
    [_Build, Try, Start] = string:lexemes(Block, "\n"),
    Ours = filename:dirname(filename:dirname(code:which(ats))),
    Applications = ["_build/default/lib/my_app", "libraries/other_app"],
    [application(Config, Folder) || Folder <- Applications],
    %% The block names it under the folder of the program's build.
    ok = file:make_symlink(Ours, ats_disk_lib:file(Config, "_build/default/lib/ats")),
    ok = file:make_symlink(Ours, ats_disk_lib:file(Config, "libraries/ats")),
    Said = shell(Config, Try),
    ?assertMatch({_, true}, {Said, filelib:is_dir(ats_disk_lib:file(Config, "copies/my_app"))}),
    [Command, _] = string:split(Start, "#"),
    Asked = " -noinput -eval 'io:format(\"~p\", [[my_app:run(), other_app:run()]]), halt().'",
    ?assertEqual("[[{a,1}],[{a,1}]]", string:trim(shell(Config, string:trim(Command) ++ Asked))).

%% An application of one module, whose table has to be one of `ats'.
application(Config, Folder) ->
    Name = filename:basename(Folder),
    Ebin = filename:join(ats_disk_lib:file(Config, Folder), "ebin"),
    ok = filelib:ensure_path(Ebin),
    Source = filename:join(Ebin, Name ++ ".erl"),
    ok = file:write_file(Source, [
        "-module(", Name, "). -export([run/0]).\n",
        "run() -> T = ets:new(t, []), true = ets:insert(T, {a, 1}), ats:tab2list(T).\n"
    ]),
    {ok, _} = compile:file(Source, [debug_info, {outdir, Ebin}]),
    Module = list_to_atom(Name),
    Term = {application, Module, [{vsn, "1"}, {modules, [Module]}, {registered, []},
                                  {applications, [kernel, stdlib]}]},
    ok = file:write_file(filename:join(Ebin, Name ++ ".app"), io_lib:format("~p.~n", [Term])).

%% Makes a table with many keys in one run. Returns all that it has.
make(Config, Name, Options) ->
    Name = ats_disk_lib:open(Config, Name, Options),
    [fill(Name, {key, N}, Options) || N <- lists:seq(1, ?KEYS)],
    ok = dats:compact(Name),
    Before = dats:tab2list(Name),
    ok = dats:close(Name),
    Before.

fill(Table, {key, N} = Key, Options) ->
    case proplists:get_value(merge, Options) of
        undefined ->
            %% Two equal objects, and another one, as far as the type keeps them.
            Objects = [{X, Key, "text"} || X <- [1, 1, {two, N}]],
            lists:foreach(fun(Object) -> ok = dats:insert(Table, Object) end, Objects);
        Merge ->
            Write = fun(Value) -> ok = dats:write(Table, Key, Value) end,
            lists:foreach(Write, values(Merge, N))
    end.

values(sum, N) -> [N, 1];
values({vector, _}, N) -> [{N, [N], {a, N}}, {1, [b], {b, N + 1}}];
values({module, _}, N) -> [[N], [b]].

%% Changes a byte of the first block of each file. Records that a module has merged in the
%% background are in several.
spoil(Config, Name) ->
    Files = filelib:wildcard(filename:join(ats_disk_lib:file(Config, Name), "run-*")),
    lists:foreach(
        fun(File) ->
            {ok, <<Start:5/binary, Byte, Rest/binary>>} = file:read_file(File),
            ok = file:write_file(File, <<Start/binary, (Byte bxor 1), Rest/binary>>)
        end,
        Files
    ).

saved(Config, Name) ->
    ats_disk_lib:file(Config, atom_to_list(Name) ++ " saved").

salvage(Config, Name, Told) ->
    Source = ats_disk_lib:file(Config, Name),
    ats(Config, ["salvage ", Told, " '", Source, "' '", saved(Config, Name), "'"]).

%% Returns the exit status of the command, and its output.
ats(Config, Arguments) ->
    Command = ["'", proplists:get_value(command, Config), "' disk ", Arguments],
    Printed = os:cmd(lists:flatten([Command, " 2>&1; printf '\\n%s' $?"])),
    [Output, Code] = string:split(Printed, "\n", trailing),
    {list_to_integer(Code), Output}.

%% Saved objects are sound, are most of the old ones, and are found and changed as before.
check(Config, Name, Options, Before) ->
    Directory = saved(Config, Name),
    {0, _} = ats(Config, ["verify '", Directory, "'"]),
    {ok, Name} = dats:open_file(Name, [{file, Directory} | Options]),
    After = dats:tab2list(Name),
    ?assertEqual([], After -- Before),
    ?assert(length(After) < length(Before)),
    ?assert(length(After) > length(Before) div 2),
    At = proplists:get_value(keypos, Options, 1),
    ?assert(lists:all(fun(O) -> lists:member(O, dats:lookup(Name, element(At, O))) end, After)),
    ok = fill(Name, {key, ?KEYS + 1}, Options),
    ?assertNotEqual([], dats:lookup(Name, {key, ?KEYS + 1})),
    ok = dats:close(Name),
    {ok, Name} = dats:open_file(Name, [{file, Directory} | lists:keydelete(merge, 1, Options)]),
    ok = dats:close(Name),
    ok = file:del_dir_r(Directory),
    ok = file:del_dir_r(ats_disk_lib:file(Config, Name)).

%% Blocks of code of pages run as they stand there, in the order of the page.
%%
%% `test/moving/pages.terms' says for all pages how their blocks run.
-module(ats_pages_SUITE).

-include_lib("stdlib/include/assert.hrl").

-export([all/0, init_per_testcase/2, end_per_testcase/2]).
-export([every_block_has_a_way/1, ways_run_blocks/1, sees_wrong_blocks/1]).
-export([blocks_for_a_shell/1, attributes_of_modules/1, terms/1, manifests/1]).
-export([memory_of_tables_on_disk/1]).

all() ->
    [every_block_has_a_way, ways_run_blocks, sees_wrong_blocks, blocks_for_a_shell,
     attributes_of_modules, terms, manifests, memory_of_tables_on_disk].

init_per_testcase(_, Config) ->
    Config.

end_per_testcase(_, _) ->
    ats_disk_lib:end_case().

%% ----- blocks and ways -----

every_block_has_a_way(_) ->
    Ways = ats_page_blocks:ways(),
    Blocks = [{Page, Block} || Page <- ats_page_blocks:pages(),
                               Block <- ats_page_blocks:blocks(Page)],
    ?assertEqual([], [Left || Left <- Blocks, not has_way(Left, Ways)]),
    %% Each way is for blocks that are there.
    Languages = [{Page, Language} || {Page, {Language, _}} <- Blocks],
    Named = [{Page, Language} || {Page, Language, _} <- Ways],
    ?assertEqual(lists:usort(Languages), lists:sort(Named)),
    [
        ?assertEqual(
            lists:sort([first_line(Text) || Text <- ats_page_blocks:blocks(Page, Language)]),
            lists:sort([Line || {Line, _} <- Not_run])
        )
     || {Page, Language, {not_run, Not_run}} <- Ways
    ],
    Running = [Block || {Page, {Language, _}} = Block <- Blocks, runs(way(Page, Language, Ways))],
    {comment, io_lib:format("~b blocks, ~b run", [length(Blocks), length(Running)])}.

has_way({Page, {Language, Text}}, Ways) ->
    case way(Page, Language, Ways) of
        none -> false;
        {not_run, Blocks} -> lists:keymember(first_line(Text), 1, Blocks);
        _ -> true
    end.

way(Page, Language, Ways) ->
    case [Way || {P, L, Way} <- Ways, P =:= Page, L =:= Language] of
        [] -> none;
        [Way] -> Way
    end.

runs({not_run, _}) -> false;
runs(drawing) -> false;
runs(_) -> true.

first_line(Text) ->
    hd(string:split(Text, "\n")).

%% Whoever is named as running the blocks of a page reads that page.
ways_run_blocks(Config) ->
    ats_docs_page:in_scratch_directory(Config, "ways", fun() ->
        [checked(Way, Page, Language) || {Page, Language, Way} <- ats_page_blocks:ways()]
    end),
    ok.

checked(doctest, Page, "rust") ->
    ?assertMatch({_, {match, _}}, {Page, mentioned(Page, "crates/ats/src/lib.rs")});
checked({test, File}, Page, _) ->
    ?assertMatch({_, {match, _}}, {Page, mentioned(filename:basename(Page), File)});
checked(elixir, _, "elixir") ->
    {match, _} = mentioned("pages.terms", "test/elixir/pages_test.exs"),
    {match, _} = mentioned("pages_test.exs", "test/elixir/run.exs");
checked(drawing, Page, Language) ->
    [
        ?assertMatch({_, error}, {Drawing, parsed(Drawing)})
     || Drawing <- ats_page_blocks:blocks(Page, Language)
    ];
checked({not_run, _}, Page, Language) when Language =:= "sh"; Language =:= "" ->
    [
        begin
            ok = file:write_file("block.sh", Text),
            ?assertEqual({Page, ""}, {Page, os:cmd("sh -n block.sh")}),
            [?assertMatch({_, {match, _}}, {Target, mentioned("\n" ++ Target ++ ":", "Makefile")})
             || Target <- targets(Text)]
        end
     || Text <- ats_page_blocks:blocks(Page, Language)
    ];
checked({not_run, _}, _, Language) ->
    ?assert(lists:member(Language, ["elixir", "rust"]));
checked(Way, _, "erlang" ++ _) ->
    ?assert(lists:member(Way, [shell, attributes, rebar, terms]));
checked(manifest, _, "toml") ->
    ok.

%% Returns the targets of make that a block for a shell names.
targets(Text) ->
    case re:run(Text, "^make ([a-z-]+)", [global, multiline, {capture, [1], list}]) of
        nomatch -> [];
        {match, Targets} -> lists:append(Targets)
    end.

mentioned(Text, File) ->
    {ok, Source} = file:read_file(filename:join(ats_test_lib:project(), File)),
    re:run(Source, ["\\Q", Text]).

%% Returns the expressions of Erlang that a text is, if it is such.
parsed(Text) ->
    maybe_parsed(erl_scan:string(Text ++ ".")).

maybe_parsed({ok, Tokens, _}) ->
    case erl_parse:parse_exprs(Tokens) of
        {ok, [_, _ | _] = Expressions} -> Expressions;
        _ -> error
    end;
maybe_parsed(_) ->
    error.

sees_wrong_blocks(Config) ->
    Ways = ats_page_blocks:ways(),
    New = [{"README.md", {"python", "print(1)\n"}}, {"docs/new.md", {"erlang", "a.\n"}},
           {"docs/use/installing.md", {"sh", "true\n"}}],
    [?assertNot(has_way(Block, Ways)) || Block <- New],
    ?assert(has_way({"README.md", {"erlang", "a.\n"}}, Ways)),
    ats_docs_page:in_scratch_directory(Config, "wrong", fun() ->
        [
            ?assertError(_, ats_page_blocks:evaluate(Text, erl_eval:new_bindings()))
         || Text <- ["1 = 2.", "X.", "no such thing.", "-module(m).\n-export([f/0]).\n"]
        ]
    end),
    ok.

%% ----- running -----

blocks_for_a_shell(Config) ->
    [evaluated(Page, Config) || {Page, _, shell} <- ats_page_blocks:ways()],
    ok.

%% A process of its own has the page's tables and messages.
evaluated(Page, Config) ->
    Folder = filename:basename(Page, ".md"),
    _ = file:del_dir_r(filename:join(proplists:get_value(priv_dir, Config), Folder)),
    ats_docs_page:in_scratch_directory(Config, Folder, fun() ->
        {ok, Here} = file:get_cwd(),
        ok = prepare(Folder),
        {Pid, Monitor} = spawn_monitor(fun() ->
            Blocks = ats_page_blocks:blocks(Page, "erlang"),
            _ = lists:foldl(
                fun(Text, Bindings) ->
                    ok = before(Text),
                    ats_page_blocks:evaluate(ats_page_blocks:at(Here ++ "/", Text), Bindings)
                end,
                erl_eval:new_bindings(),
                Blocks
            ),
            exit({evaluated, length(Blocks)})
        end),
        receive
            {'DOWN', Monitor, process, Pid, Result} -> ?assertMatch({_, {evaluated, _}},
                                                                    {Page, Result})
        end,
        ats_disk_lib:end_case()
    end).

%% Makes what a page takes for granted.
prepare("moving-from-dets") ->
    {ok, old} = dets:open_file(old, [{file, "words.dets"}]),
    ok = dets:insert(old, {"pear", 3}),
    dets:close(old);
prepare("moving-from-osmos") ->
    ok = ats_test_lib:load_module(
        tcbdbets,
        "foldl(Fun, Acc, old) -> lists:foldl(Fun, Acc, [{N, N} || N <- lists:seq(1, 2500)])."
    );
prepare(_) ->
    ok.

%% The functions that have merged until now get another name, and others take their place.
before(Text) ->
    case string:find(Text, "{old, highest_bid_1}") of
        nomatch ->
            ok;
        _ ->
            {ok, Source} = file:read_file("highest_bid.erl"),
            Old = string:replace(Source, "(highest_bid)", "(highest_bid_1)"),
            highest_bid_1 = ats_page_blocks:compile("highest_bid_1", lists:flatten(
                [unicode:characters_to_list(Old)]), []),
            New = string:replace(Source, "version() -> 1", "version() -> 2"),
            highest_bid = ats_page_blocks:compile("highest_bid", lists:flatten(
                [unicode:characters_to_list(New)]), []),
            ok
    end.

%% Modules with the attributes of a page make tables of `ats'.
attributes_of_modules(Config) ->
    ats_docs_page:in_scratch_directory(Config, "attributes", fun() ->
        [
            lists:foldl(
                fun(Text, Before) ->
                    All = Before ++ Text,
                    makes_table_of_ats(All, []),
                    All
                end,
                "",
                ats_page_blocks:blocks(Page, Language)
            )
         || {Page, Language, attributes} <- ats_page_blocks:ways()
        ]
    end),
    ok.

makes_table_of_ats(Attributes, Options) ->
    Source = "-module(ats_page).\n" ++ Attributes ++
        "-export([run/0]).\nrun() -> ets:new(page, []).\n",
    Module = ats_page_blocks:compile("ats_page", Source, Options),
    Table = Module:run(),
    ?assertEqual(page, ats:info(Table, name)),
    true = ats:delete(Table),
    true = code:delete(Module),
    _ = code:purge(Module).

terms(Config) ->
    ats_docs_page:in_scratch_directory(Config, "terms", fun() ->
        [
            configured(Way, consulted(Text))
         || {Page, Language, Way} <- ats_page_blocks:ways(),
            Way =:= rebar orelse Way =:= terms,
            Text <- ats_page_blocks:blocks(Page, Language)
        ]
    end),
    ok.

consulted(Text) ->
    ok = file:write_file("block.terms", unicode:characters_to_binary(Text)),
    {ok, Terms} = file:consult("block.terms"),
    Terms.

configured(rebar, [{erl_opts, Options}]) ->
    makes_table_of_ats("", Options);
configured(rebar, [{deps, Dependencies}]) ->
    [?assert(is_atom(Name) andalso is_tuple(From)) || {Name, From} <- Dependencies];
configured(terms, [[{observer_cli, [{plugins, [#{module := Module}]}]}]]) ->
    ?assertMatch({module, Module}, code:ensure_loaded(Module)).

%% The crates that a page names are those of this folder; cargo finds their features.
manifests(Config) ->
    case os:find_executable("cargo") of
        false ->
            {skip, "cargo is not there"};
        Cargo ->
            ats_docs_page:in_scratch_directory(Config, "manifests", fun() ->
                [
                    manifest(Cargo, Text)
                 || {Page, Language, manifest} <- ats_page_blocks:ways(),
                    Text <- ats_page_blocks:blocks(Page, Language)
                ]
            end),
            ok
    end.

manifest(Cargo, Text) ->
    Crate = "path = \"" ++ filename:join(ats_test_lib:project(), "crates/ats") ++ "\"",
    Local = string:replace(Text, "git = \"URL of this repository\"", Crate),
    ok = filelib:ensure_path("src"),
    ok = file:write_file("src/lib.rs", ""),
    {ok, _} = file:copy(filename:join(ats_test_lib:project(), "Cargo.lock"), "Cargo.lock"),
    ok = file:write_file("Cargo.toml", unicode:characters_to_binary([
        "[package]\nname = \"page\"\nversion = \"0.1.0\"\nedition = \"2024\"\n[workspace]\n\n",
        Local
    ])),
    {ok, Here} = file:get_cwd(),
    {Status, Said} = ats_test_lib:run_program(
        Cargo, ["metadata", "--offline", "--quiet", "--format-version", "1"], Here, []
    ),
    ?assertMatch({0, _}, {Status, Said}).

%% ----- numbers -----

%% Pages and documentation have the limit that tables share, and `memory' is another one.
memory_of_tables_on_disk(Config) ->
    #{budget := Bytes, memtables := Before} = dats:shared_memory(),
    Said = integer_to_list(Bytes bsr 20) ++ " MiB",
    Sources = ["docs/use/operating.md", "docs/inside/limits.md", "src/disk/dats.erl"],
    [?assertMatch({_, {match, _}}, {Source, mentioned(Said, Source)}) || Source <- Sources],
    ?assertEqual(nomatch, mentioned("320 MiB", "src/disk/dats.erl")),
    Here = proplists:get_value(priv_dir, Config),
    Written = fun(Name, Options) ->
        {ok, Name} = dats:open_file(Name, [{file, filename:join(Here, Name)} | Options]),
        ok = dats:insert(Name, [{N, binary:copy(<<N>>, 1000)} || N <- lists:seq(1, 100)]),
        maps:get(memtables, dats:shared_memory()) - Before
    end,
    ?assertEqual(0, Written(with_memory, [{memory, 1 bsl 24}])),
    ?assert(Written(without_memory, []) > 100_000).

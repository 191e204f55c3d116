%% @doc The package as hex has it: unpacked elsewhere, it is built by rebar3 and by Mix, without
%% cargo, by a precompiled library. And the scripts that make the other parts of a release.
-module(ats_package_SUITE).

-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0, init_per_suite/1, end_per_suite/1]).
-export([has_all_files_for_a_build/1, built_by_rebar3/1, built_by_mix/1]).
-export([lists_crates/1, wants_licenses/1, compares_interfaces/1, wants_changes/1]).

suite() -> [{timetrap, {minutes, 10}}].

all() ->
    [has_all_files_for_a_build, built_by_rebar3, built_by_mix, lists_crates, wants_licenses,
     compares_interfaces, wants_changes].

init_per_suite(Config) ->
    Folder = proplists:get_value(priv_dir, Config),
    Tarball = filename:join(Folder, "ats.tar"),
    Pack = filename:join(ats_test_lib:project(), "scripts/package.escript"),
    case os:find_executable("rebar3") of
        false ->
            {skip, "there is no rebar3 here"};
        _ ->
            {0, _} = run(Folder, "escript", [Pack, Tarball], []),
            {ok, Outer} = erl_tar:extract(Tarball, [memory]),
            Package = filename:join(Folder, "package"),
            Contents = proplists:get_value("contents.tar.gz", Outer),
            ok = erl_tar:extract({binary, Contents}, [compressed, {cwd, Package}]),
            serve(Package, filename:join(Folder, "served")),
            [{metadata, proplists:get_value("metadata.config", Outer)}, {package, Package},
             {url, "file://" ++ filename:join(Folder, "served")} | Config]
    end.

end_per_suite(_) -> ok.

%% The library of the release, as the archive that the package names. That of tests has functions of
%% which the modules of a release know nothing.
serve(Package, Folder) ->
    Library = filename:join(ats_test_lib:project(), "priv/ats_nif.so"),
    filelib:is_regular(Library) orelse
        ({0, _} = run(ats_test_lib:project(), "rebar3", ["compile"], [])),
    Machine = string:trim(os:cmd("rustc -vV | sed -n 's/^host: //p'")),
    ok = filelib:ensure_dir(filename:join(Folder, "x")),
    {ok, [{application, ats, Properties}]} =
        file:consult(filename:join(Package, "src/ats.app.src")),
    Name = lists:concat(["ats_nif-", proplists:get_value(vsn, Properties), "-nif-2.16-", Machine,
                         ".tar.gz"]),
    Archive = filename:join(Folder, Name),
    ok = erl_tar:create(Archive, [{"ats_nif.so", Library}], [compressed]),
    {ok, Bytes} = file:read_file(Archive),
    Sum = binary_to_list(binary:encode_hex(crypto:hash(sha256, Bytes))),
    ok = file:write_file(filename:join(Package, "checksums.term"),
                         io_lib:format("~p.~n", [{Name, Sum}])).

%% The metadata have the fields that hex needs. The package has no library and no test, but all
%% files from which cargo builds a library.
has_all_files_for_a_build(Config) ->
    Package = proplists:get_value(package, Config),
    Metadata = proplists:get_value(metadata, Config),
    [?assertNotEqual(nomatch, binary:match(Metadata, Text))
     || Text <- [<<"MIT">>, <<"Apache-2.0">>, <<"description">>, <<"build_tools">>]],
    Files = filelib:wildcard("**", Package),
    ?assertEqual([], [F || F <- Files, Suffix <- [".so", "_SUITE.erl"], lists:suffix(Suffix, F)]),
    [?assert(filelib:is_file(filename:join(Package, File)), File)
     || File <- ["build_nif.sh", "Cargo.lock", "crates/ats-nif/build.rs", "LICENSE-MIT",
                 "LICENSE-APACHE", "README.md", "lib/ats.ex", "usage-rules.md"]],
    {ok, #{mode := Mode}} = {ok, mode(filename:join(Package, "build_nif.sh"))},
    ?assertEqual(8#100, Mode band 8#100),
    Cargo = os:find_executable("cargo"),
    Cargo =:= false orelse
        ?assertMatch({0, _}, run(Package, "cargo",
                                 ["metadata", "--offline", "--locked", "--format-version", "1",
                                  "--no-deps"], [])).

mode(File) ->
    {ok, Info} = file:read_file_info(File),
    #{mode => element(8, Info)}.

built_by_rebar3(Config) ->
    Project = project(Config, "by_rebar3"),
    ok = file:write_file(filename:join(Project, "rebar.config"), "{deps, [ats]}.\n"),
    ok = filelib:ensure_dir(filename:join(Project, "src/x")),
    ok = file:write_file(filename:join(Project, "src/shop.app.src"),
                         "{application, shop, [{vsn, \"1\"},"
                         " {applications, [kernel, stdlib, ats]}]}."),
    copy(proplists:get_value(package, Config), filename:join(Project, "_checkouts/ats")),
    {0, _} = run(Project, "rebar3", ["compile"], environment(Config)),
    Ebin = filename:join(Project, "_build/default/checkouts/ats/ebin"),
    {0, Said} = run(Project, "erl", ["-noinput", "-pa", Ebin, "-eval",
                                     "T = ats:new(t, []), true = ats:insert(T, {k, v}),"
                                     "io:format(\"~p\", [ats:lookup(T, k)]), halt()."], []),
    ?assertNotEqual(nomatch, string:find(Said, "[{k,v}]")).

built_by_mix(Config) ->
    case os:find_executable("mix") of
        false ->
            {skip, "Elixir is not installed"};
        _ ->
            Project = project(Config, "by_mix"),
            Package = filename:join(Project, "ats"),
            copy(proplists:get_value(package, Config), Package),
            ok = file:write_file(filename:join(Project, "mix.exs"),
                                 "defmodule Shop.MixProject do\n  use Mix.Project\n"
                                 "  def project, do: [app: :shop, version: \"0.1.0\",\n"
                                 "    deps: [{:ats, path: \"ats\"}]]\nend\n"),
            Program = "[{:k, :v}] = (t = ATS.Table.new(:t); :ats.insert(t.id, {:k, :v});"
                      " Enum.to_list(t)) |> IO.inspect()",
            {0, Said} = run(Project, "mix", ["run", "-e", Program], environment(Config)),
            ?assertNotEqual(nomatch, string:find(Said, "[k: :v]"))
    end.

%% ----- what is in the library -----

%% The list has the crates of the library, with the sums of Cargo.lock, and none of tests. What an
%% equal state gives is equal.
lists_crates(Config) ->
    case os:find_executable("cargo") of
        false ->
            {skip, "there is no cargo here"};
        _ ->
            Script = filename:join(ats_test_lib:project(), "scripts/sbom.escript"),
            [One, Two] = [filename:join(project(Config, "sbom"), Name) || Name <- ["1", "2"]],
            [{0, _} = run(ats_test_lib:project(), "escript", [Script, File],
                          [{"SOURCE_DATE_EPOCH", "86400"}]) || File <- [One, Two]],
            {ok, Json} = file:read_file(One),
            ?assertEqual({ok, Json}, file:read_file(Two)),
            {ok, Lock} = file:read_file(filename:join(ats_test_lib:project(), "Cargo.lock")),
            Quoted = "\"name\": \"([^\"]+)\"",
            Names = [Name || [Name] <- found(Json, Quoted)],
            [?assert(lists:member(Name, Names), Name)
             || Name <- [<<"ats-nif">>, <<"ats-disk">>, <<"smallvec">>, <<"std">>]],
            [?assertNot(lists:member(Name, Names), Name)
             || Name <- [<<"ats-rivals">>, <<"ats-cli">>, <<"proptest">>, <<"loom">>]],
            ?assertEqual(length(Names), length(found(Json, "\"expression\": \"[^\"]+\""))),
            Sums = [Sum || [Sum] <- found(Json, "\"content\": \"([0-9a-f]{64})\"")],
            ?assert(length(Sums) > 10),
            [?assertNotEqual(nomatch, binary:match(Lock, Sum)) || Sum <- Sums],
            ?assertNotEqual(nomatch, binary:match(Json, <<"\"1970-01-02T00:00:00Z\"">>))
    end.

found(Text, Pattern) ->
    case re:run(Text, Pattern, [global, {capture, all_but_first, binary}]) of
        {match, Found} -> Found;
        nomatch -> []
    end.

%% A crate without a license is named, and no list is written.
wants_licenses(Config) ->
    case os:find_executable("cargo") of
        false ->
            {skip, "there is no cargo here"};
        _ ->
            Project = project(Config, "licenses"),
            Script = filename:join(Project, "scripts/sbom.escript"),
            copy(filename:join(ats_test_lib:project(), "scripts/sbom.escript"), Script),
            Crate = fun(Name, Text) ->
                            Folder = filename:join([Project, "crates", Name]),
                            ok = filelib:ensure_dir(filename:join(Folder, "src/x")),
                            ok = file:write_file(filename:join(Folder, "src/lib.rs"), ""),
                            ok = file:write_file(filename:join(Folder, "Cargo.toml"),
                                                 ["[package]\nname = \"", Name, "\"\n",
                                                  "version = \"0.1.0\"\n", Text])
                    end,
            ok = file:write_file(filename:join(Project, "Cargo.toml"),
                                 "[workspace]\nresolver = \"2\"\nmembers = [\"crates/*\"]\n"),
            Crate("ats-nif", "license = \"MIT/Apache-2.0\"\n"
                  "[dependencies]\nbare = { path = \"../bare\" }\n"),
            File = filename:join(Project, "list"),
            [begin
                 Crate("bare", License),
                 {0, _} = run(Project, "cargo", ["generate-lockfile", "--offline"], []),
                 {1, Said} = run(Project, "escript", [Script, File], []),
                 ?assertNotEqual(nomatch, string:find(Said, "bare@0.1.0 names no license"), Said),
                 ?assertNot(filelib:is_file(File))
             end || License <- ["", "license = \" \"\n", "license-file = \"x\"\n"]],
            Crate("bare", "license = \"Zlib AND (MIT OR Apache-2.0 WITH LLVM-exception)\"\n"),
            {0, _} = run(Project, "escript", [Script, File], []),
            {ok, Json} = file:read_file(File),
            ?assertNotEqual(nomatch, binary:match(Json, <<"\"MIT OR Apache-2.0\"">>))
    end.

%% ----- what has changed -----

%% A removed function, type or callback is found, and so are changed ones. The names of variables
%% and arguments are no change, nor is what an opaque type is.
compares_interfaces(Config) ->
    Same = "-opaque o() :: integer().\n"
           "-spec same(Key :: term(), [A]) -> {A, o()} when A :: atom().\n"
           "same(_, [A]) -> {A, 1}.\n",
    Old = compiled(Config, "old", ats,
                   ["-export([gone/1, same/2, other/1]).\n-export_type([o/0, p/2, left/0]).\n"
                    "-type p(A, B) :: {A, B}.\n-type left() :: 1.\n"
                    "-callback called(atom()) -> ok.\n", Same,
                    "-spec gone(atom()) -> ok.\ngone(_) -> ok.\n"
                    "-spec other(atom()) -> ok.\nother(_) -> ok.\n"]),
    New = compiled(Config, "new", ats,
                   ["-export([same/2, other/1, new/0]).\n-export_type([o/0, p/2]).\n"
                    "-type p(A, B) :: {B, A}.\n\n-opaque o() :: atom().\n"
                    "-spec same(term(), [B]) -> {B, Own :: o()} when B :: atom().\n"
                    "same(_, [B]) -> {B, x}.\n"
                    "-spec other(atom()) -> error.\nother(_) -> error.\n"
                    "-spec new() -> ok.\nnew() -> ok.\n"]),
    {0, Said} = interfaces(Config, [Old, New]),
    %% A behaviour has the function `behaviour_info/1' for as long as it has callbacks.
    ?assertEqual(["removed: callback ats:called/1", "removed: ats:behaviour_info/1",
                  "removed: ats:gone/1", "removed: type ats:left/0", "changed: ats:other/1",
                  "changed: type ats:p/2", "added: ats:new/0", "4 removed, 2 changed, 1 added"],
                 string:lexemes(Said, "\n")),
    ?assertEqual({0, "0 removed, 0 changed, 0 added\n"}, interfaces(Config, [Old, Old])),
    {1, Nothing} = interfaces(Config, [filename:join(Old, "nowhere"), New]),
    ?assertNotEqual(nomatch, string:find(Nothing, "neither a folder nor a revision")).

%% The first part of a CHANGELOG has to name what was added or removed, in backquotes and whole.
wants_changes(Config) ->
    Old = compiled(Config, "before", dats, "-export([gone/1]).\ngone(_) -> ok.\n"),
    After = compiled(Config, "after", dats, "-export([put_new/0]).\nput_new() -> ok.\n"),
    Changes = filename:join(Old, "CHANGELOG.md"),
    Part = fun(Text) ->
                   ok = file:write_file(Changes, ["# Changes\n\n## Unreleased\n\n### Added\n", Text,
                                                  "\n## 0.1.0\n- `dats:put_new/0`, `gone/1`\n"]),
                   interfaces(Config, [Old, After, Changes])
           end,
    {0, _} = Part("- `dats:put_new/0` is new, and `gone/1` is no more."),
    Gone = "removed: dats:gone/1",
    New = "added: dats:put_new/0",
    [begin
         {1, Said} = Part(Text),
         [_, Last] = string:split(Said, "does not name, in its first part:\n"),
         ?assertEqual(Missing, string:lexemes(Last, "\n"), Text)
     end || {Text, Missing} <- [{"", [Gone, New]}, {"- `gone/1`", [New]},
                                {"- `put_new/0`, put gone away", [Gone]},
                                {"- `gone/1`, `put_newer/0`, `xput_new`", [New]}]].

interfaces(Config, Arguments) ->
    Script = filename:join(ats_test_lib:project(), "scripts/interfaces.escript"),
    run(proplists:get_value(priv_dir, Config), "escript", [Script | Arguments], []).

%% Returns a folder with one module.
compiled(Config, Name, Module, Text) ->
    Folder = project(Config, Name),
    Source = filename:join(Folder, atom_to_list(Module) ++ ".erl"),
    ok = file:write_file(Source, ["-module(", atom_to_list(Module), ").\n", Text]),
    {ok, _} = compile:file(Source, [debug_info, {outdir, Folder}]),
    Folder.

%% ----- projects -----

project(Config, Name) ->
    Folder = filename:join(proplists:get_value(priv_dir, Config), Name),
    ok = filelib:ensure_dir(filename:join(Folder, "x")),
    Folder.

copy(From, To) ->
    ok = filelib:ensure_dir(To),
    "" = os:cmd(["cp -R ", ats_test_lib:quoted(From), " ", ats_test_lib:quoted(To)]).

%% A program in the place of cargo fails, so only a precompiled library can be there in the end.
environment(Config) ->
    Bin = filename:join(proplists:get_value(priv_dir, Config), "bin"),
    ok = filelib:ensure_dir(filename:join(Bin, "x")),
    ok = file:write_file(filename:join(Bin, "cargo"), "#!/bin/sh\nexit 1\n"),
    ok = file:change_mode(filename:join(Bin, "cargo"), 8#755),
    [{"PATH", Bin ++ ":" ++ os:getenv("PATH")},
     {"ATS_PRECOMPILED_URL", proplists:get_value(url, Config)},
     {"ATS_PRECOMPILED_CACHE", filename:join(proplists:get_value(priv_dir, Config), "cache")}].

%% Returns the status of a program, and its output. Variables set by a build by rebar3 do not reach
%% it.
run(Folder, Program, Arguments, Env) ->
    Unset = [{Name, false} || Name <- ["REBAR_ROOT_DIR", "REBAR_BUILD_DIR", "REBAR_DEPS_DIR",
                                       "REBAR_CHECKOUTS_OUT_DIR", "ERL_LIBS", "ERL_FLAGS",
                                       "ATS_SKIP_NIF_BUILD", "ATS_NIF_PATH", "MIX_ENV"]],
    ats_test_lib:run_program(os:find_executable(Program), Arguments, Folder, Unset ++ Env).

%% @doc The package as hex has it: unpacked elsewhere, it is built by rebar3 and by Mix, without
%% cargo, by a precompiled library.
-module(ats_package_SUITE).

-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0, init_per_suite/1, end_per_suite/1]).
-export([has_all_files_for_a_build/1, built_by_rebar3/1, built_by_mix/1]).

suite() -> [{timetrap, {minutes, 10}}].

all() -> [has_all_files_for_a_build, built_by_rebar3, built_by_mix].

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

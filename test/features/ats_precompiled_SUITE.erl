%% @doc Precompiled libraries: files that `build_nif.sh' fetches, files that it refuses, and its
%% output when it builds the library instead.
%%
%% A server on this machine has the archives. A package is a copy of the files that take part; cargo
%% is out of its sight, or in its place is a program that leaves a file of a few bytes.
-module(ats_precompiled_SUITE).

-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0, init_per_suite/1, end_per_suite/1, init_per_testcase/2]).
-export([fetched/1, wrong_checksum/1, no_server/1, not_on_the_server/1, wrong_target/1]).
-export([other_interfaces/1, no_checksums/1, checksums_elsewhere/1, not_an_archive/1]).
-export([cannot_be_loaded/1]).
-export([kept/1, without_home/1, cache_that_cannot_be_written/1, from_a_folder/1, redirected/1]).
-export([through_a_proxy/1, without_certificates/1, other_schemes/1, other_checksums/1]).
-export([cargo_is_not_asked/1, dependency/1, needs_are_checked/1, made_by_the_script/1]).

suite() -> [{timetrap, {minutes, 15}}].

all() ->
    [fetched, wrong_checksum, no_server, not_on_the_server, wrong_target, other_interfaces,
     no_checksums, checksums_elsewhere, not_an_archive, cannot_be_loaded, kept, without_home,
     cache_that_cannot_be_written, from_a_folder, redirected, through_a_proxy,
     without_certificates, other_schemes, other_checksums, cargo_is_not_asked, dependency,
     needs_are_checked, made_by_the_script].

init_per_suite(Config) ->
    %% `httpd' serves no folder with an accent in its path.
    Folder = filename:join("/tmp", "ats-served-" ++ os:getpid()),
    ok = filelib:ensure_dir(filename:join(Folder, "x")),
    {ok, _} = application:ensure_all_started(inets),
    {ok, Server} = inets:start(httpd, [{port, 0}, {server_name, "ats"}, {server_root, Folder},
                                       {document_root, Folder}, {bind_address, {127, 0, 0, 1}}]),
    [{port, Port}] = httpd:info(Server, [port]),
    Library = filename:join(code:priv_dir(ats), "ats_nif.so"),
    %% Files and no binaries, because the configuration goes to the log before each case.
    Archive = filename:join(proplists:get_value(priv_dir, Config), "library.tar.gz"),
    ok = file:write_file(Archive, archive("ats_nif.so", content(Library))),
    [{server, Server}, {served, Folder}, {library, Library}, {archive, Archive},
     {url, "http://127.0.0.1:" ++ integer_to_list(Port)} | Config].

end_per_suite(Config) ->
    inets:stop(httpd, proplists:get_value(server, Config)),
    ok = file:del_dir_r(proplists:get_value(served, Config)).

%% Each case has a package of its own, with the archive that fits this machine.
init_per_testcase(Case, Config) ->
    Package = filename:join(proplists:get_value(priv_dir, Config), Case),
    [begin
         Copy = filename:join(Package, File),
         ok = filelib:ensure_dir(Copy),
         {ok, _} = file:copy(filename:join(ats_test_lib:project(), File), Copy),
         ok = file:change_mode(Copy, 8#755)
     end || File <- ["build_nif.sh", "scripts/precompiled.escript", "src/ats.app.src"]],
    All = [{package, Package} | Config],
    serve(name(interface()), content(proplists:get_value(archive, Config)), All),
    All.

%% ----- the view of a user -----

fetched(Config) ->
    {0, Said} = build(Config, [{"CARGO", none}]),
    said(Said, [name(interface()) ++ " is used"]),
    ?assertEqual({ok, content(proplists:get_value(library, Config))}, installed(Config)),
    %% Nothing else is left behind.
    ?assertEqual(["ats_nif.so"], files(Config, "priv")).

wrong_checksum(Config) ->
    name_sum(name(interface()), lists:duplicate(64, $0), Config),
    falls_back(Config, ["has the SHA-256 ", "but checksums.term says 0000", "it is not used"]).

no_server(Config) ->
    {ok, Socket} = gen_tcp:listen(0, [{ip, {127, 0, 0, 1}}]),
    {ok, Port} = inet:port(Socket),
    ok = gen_tcp:close(Socket),
    Closed = "http://127.0.0.1:" ++ integer_to_list(Port),
    falls_back([{url, Closed} | Config], [Closed, "econnrefused"]).

not_on_the_server(Config) ->
    ok = file:delete(filename:join(proplists:get_value(served, Config), name(interface()))),
    falls_back(Config, [": 404 "]).

wrong_target(Config) ->
    Env = [{"CARGO_BUILD_TARGET", "riscv64gc-unknown-linux-gnu"}],
    falls_back(Config, Env, ["has none of " ++ version() ++ " for riscv64gc-unknown-linux-gnu"]).

%% A later virtual machine loads libraries for an earlier interface, and never the other way.
other_interfaces(Config) ->
    [Major, Minor] = [list_to_integer(P) || P <- string:split(interface(), ".")],
    Later = lists:concat([Major, ".", Minor + 1]),
    Earlier = lists:concat([Major, ".", Minor - 1]),
    Archive = content(proplists:get_value(archive, Config)),
    serve(name(Later), Archive, Config),
    falls_back(Config, ["has none of"]),
    serve(name(Earlier), Archive, Config),
    {0, Said} = build(Config, [{"CARGO", none}]),
    said(Said, [name(Earlier) ++ " is used"]),
    ?assertEqual({ok, content(proplists:get_value(library, Config))}, installed(Config)).

no_checksums(Config) ->
    ok = file:delete(in(Config, "checksums.term")),
    Ways = ["make precompiled", "ATS_PRECOMPILED_CHECKSUMS", "ATS_NIF_PATH"],
    falls_back(Config, ["this package names none" | Ways]),
    {1, [Said]} = fetch([{url, "file:///nowhere"} | Config], []),
    said(Said, ["this package names none", "there is no /nowhere/checksums.term" | Ways]).

%% A package without checksums takes those of a folder on this machine, and for a server those of a
%% file that the user names, which come before those of the package.
checksums_elsewhere(Config) ->
    Served = proplists:get_value(served, Config),
    Local = in(Config, "local é"),
    Sums = filename:join(Local, "checksums.term"),
    ok = filelib:ensure_dir(Sums),
    ok = file:rename(in(Config, "checksums.term"), Sums),
    Name = name(interface()),
    {ok, _} = file:copy(filename:join(Served, Name), filename:join(Local, Name)),
    {0, _} = fetch([{url, "file://" ++ Local ++ "/"} | Config], without_cache()),
    Named = [{"ATS_PRECOMPILED_CHECKSUMS", Sums} | without_cache()],
    {0, _} = fetch(Config, Named),
    ok = file:write_file(in(Config, "checksums.term"), ""),
    {0, _} = fetch(Config, Named),
    {1, [Said]} = fetch([{url, "file://" ++ Local} | Config], without_cache()),
    said(Said, ["checksums.term has none of"]).

not_an_archive(Config) ->
    serve(name(interface()), <<"no archive at all">>, Config),
    falls_back(Config, ["has no library in it"]),
    serve(name(interface()), archive("other.so", <<"x">>), Config),
    falls_back(Config, ["has no library in it"]).

cannot_be_loaded(Config) ->
    serve(name(interface()), archive("ats_nif.so", <<"no library at all">>), Config),
    falls_back(Config, ["it cannot be loaded here"]).

%% The second build needs no server, and a damaged copy is fetched again.
kept(Config) ->
    {0, _} = build(Config, [{"CARGO", none}]),
    [Kept] = files(Config, "cache"),
    ok = file:delete(in(Config, "priv/ats_nif.so")),
    {0, _} = build([{url, "http://127.0.0.1:1"} | Config], [{"CARGO", none}]),
    ?assertEqual({ok, content(proplists:get_value(library, Config))}, installed(Config)),
    ok = file:write_file(in(Config, "cache/" ++ Kept), "spoilt"),
    {1, _} = build([{url, "http://127.0.0.1:1"} | Config], [{"CARGO", none}]),
    {0, _} = build(Config, [{"CARGO", none}]).

%% A container has no user.
without_home(Config) ->
    {0, [_]} = fetch(Config, [{"HOME", false}]),
    ?assertMatch([_], files(Config, "cache")),
    {0, [Said, _]} = fetch(Config, without_cache()),
    said(Said, ["not kept, because HOME is not set: ATS_PRECOMPILED_CACHE"]).

%% A file is in the place of the folder, since permissions do not keep out who builds as root.
cache_that_cannot_be_written(Config) ->
    Cache = in(Config, "file"),
    ok = file:write_file(Cache, ""),
    {0, [Said, _]} = fetch(Config, [{"ATS_PRECOMPILED_CACHE", Cache}]),
    said(Said, ["is not kept: " ++ Cache, "names another folder"]),
    %% A folder in the place of the archive.
    ok = filelib:ensure_dir(in(Config, "cache/" ++ name(interface()) ++ "/x")),
    {0, [_, _]} = fetch(Config, []),
    ?assertEqual([name(interface())], files(Config, "cache")).

%% Names may be encoded, and need not.
from_a_folder(Config) ->
    Folder = filename:join(proplists:get_value(priv_dir, Config), "with é and 100% space"),
    ok = filelib:ensure_dir(filename:join(Folder, "x")),
    {ok, _} = file:copy(filename:join(proplists:get_value(served, Config), name(interface())),
                        filename:join(Folder, name(interface()))),
    {0, _} = build([{url, "file://" ++ Folder} | Config], [{"CARGO", none}]),
    ?assertEqual({ok, content(proplists:get_value(library, Config))}, installed(Config)),
    {0, _} = fetch([{url, "file://" ++ percent_encoded(Folder) ++ "/"} | Config],
                   without_cache()).

without_cache() ->
    [{"HOME", false}, {"XDG_CACHE_HOME", false}, {"ATS_PRECOMPILED_CACHE", false}].

percent_encoded(Text) ->
    lists:append([case Byte of
                      _ when Byte > 32, Byte < 127, Byte =/= $% -> [Byte];
                      _ -> "%" ++ integer_to_list(Byte, 16)
                  end || <<Byte>> <= unicode:characters_to_binary(Text)]).

%% Redirections relative to the request, and absolute ones.
redirected(Config) ->
    Archive = content(proplists:get_value(archive, Config)),
    Steps = #{"ats" => "/absolute/x", "absolute" => "../up/x", "up" => "a/../../dots/x",
              "dots" => "//localhost:PORT/host/x", "host" => "http://127.0.0.1:PORT/full/x"},
    Server = answering(fun(Path, Port) ->
        Folder = lists:takewhile(fun(C) -> C =/= $/ end, tl(Path)),
        case Steps of
            #{Folder := Next} -> redirection(string:replace(Next, "PORT", Port));
            #{} -> {"200 OK", "", Archive}
        end
    end),
    {0, _} = fetch([{url, Server ++ "/ats"} | Config], []),
    [begin
         Always = answering(fun(_, _) -> redirection(Location) end),
         {1, [Said]} = fetch([{url, Always} | Config], without_cache()),
         said(Said, [Text])
     end || {Location, Text} <- [{"again", "302 Found, 10 times"},
                                 {"file:///etc/passwd", "leads to file:///etc/passwd"}]].

redirection(Location) -> {"302 Found", ["location: ", Location], ""}.

%% The proxy gets the whole address, with or without a name and a password.
through_a_proxy(Config) ->
    Test = self(),
    Archive = content(proplists:get_value(archive, Config)),
    Proxy = answering(fun(Path, _) -> Test ! {asked, Path}, {"200 OK", "", Archive} end),
    "http://" ++ Host = Proxy,
    Nowhere = [{url, "http://archives.example.com/ats"} | Config],
    Fetch = fun(From, Env) -> fetch(From, Env ++ without_cache()) end,
    [begin
         {0, _} = Fetch(Nowhere, Env),
         receive {asked, "http://archives.example.com/ats/" ++ _} -> ok end
     end || Env <- [[{"HTTP_PROXY", Host}, {"NO_PROXY", "xample.com, .org"}],
                    [{"all_proxy", "http://me:p%40ss@" ++ Host ++ "/"}]]],
    {0, _} = Fetch(Config, [{"http_proxy", Proxy}, {"no_proxy", "x.com,.0.0.1"}]),
    receive {asked, Path} -> ct:fail(Path) after 0 -> ok end,
    {1, [Said]} = Fetch(Nowhere, [{"http_proxy", "socks5://x:1"}]),
    said(Said, ["socks5://x:1 is no proxy that can be used"]).

%% A small container has none. A module that finds none is in the place of the library.
without_certificates(Config) ->
    Hidden = in(Config, "hidden/public_key.beam"),
    ok = filelib:ensure_dir(Hidden),
    {ok, Tokens, _} = erl_scan:string("cacerts_get() -> error(enoent)."),
    {ok, Function} = erl_parse:parse_form(Tokens),
    {ok, _, Beam} = compile:forms([{attribute, 1, module, public_key},
                                   {attribute, 1, export, [{cacerts_get, 0}]}, Function]),
    ok = file:write_file(Hidden, Beam),
    {1, [Said]} = fetch([{url, "https://127.0.0.1:1"} | Config],
                        [{"ERL_FLAGS", "-pa \"" ++ filename:dirname(Hidden) ++ "\""}]),
    said(Said, ["install ca-certificates"]).

other_schemes(Config) ->
    {1, [Said]} = fetch([{url, "/srv/archives"} | Config], []),
    said(Said, ["/srv/archives", "begins with https://, http:// or file://"]).

%% Lists of checksums that others have.
other_checksums(Config) ->
    [begin
         ok = file:write_file(in(Config, "checksums.term"), Content),
         {1, [Said]} = fetch(Config, []),
         said(Said, ["checksums.term"])
     end || Content <- ["[{\"a\", \"00\"}].\n", "{<<\"a\">>, \"00\"}.\n",
                        "%{\"a\" => \"sha256:00\"}\n", "00  a\n"]].

%% Runs the script alone. Returns its status, and the lines that it has said.
fetch(Config, Env) ->
    Package = proplists:get_value(package, Config),
    Arguments = [in(Config, "scripts/precompiled.escript"), proplists:get_value(url, Config),
                 in(Config, "fetched.so")],
    {Status, Said} = run(Package, os:find_executable("escript"), Arguments,
                         with(Env, [{"ATS_PRECOMPILED_CACHE", in(Config, "cache")}])),
    {Status, string:lexemes(Said, "\n")}.

with(Env, Usual) ->
    lists:ukeymerge(1, lists:ukeysort(1, Env), lists:ukeysort(1, Usual)).

%% Without a folder of libraries, the message names that way.
cargo_is_not_asked(Config) ->
    {1, Said} = build([{url, ""} | Config], [{"CARGO", none}]),
    said(Said, ["Rust is needed", "ATS_PRECOMPILED_URL"]).

%% A dependency is built once, and nothing but the library is left. It is built again after a change
%% of its source or of the settings, and where another library has come in its place.
dependency(Config) ->
    Package = in(Config, "deps/ats"),
    Copies = ["build_nif.sh", "scripts/precompiled.escript", "src/ats.app.src"],
    [begin
         ok = filelib:ensure_dir(filename:join(Package, File)),
         case lists:member(File, Copies) of
             true -> {ok, _} = file:copy(in(Config, File), filename:join(Package, File));
             false -> ok = file:write_file(filename:join(Package, File), "")
         end
     end || File <- ["Cargo.toml", "Cargo.lock", "crates/x.rs" | Copies]],
    ok = file:change_mode(filename:join(Package, "build_nif.sh"), 8#755),
    Own = [{package, Package}, {url, ""} | Config],
    Build = fun(Cargo, Env) ->
                    element(1, build(Own, [{"CARGO", Cargo}, {"CARGO_TARGET_DIR", false} | Env]))
            end,
    0 = Build(fake, []),
    ?assertEqual({ok, <<"built by cargo\n">>}, installed(Own)),
    ?assertEqual([".built", "ats_nif.so"], files(Own, "priv")),
    ?assertNot(filelib:is_dir(filename:join(Package, "target"))),
    0 = Build(none, []),
    1 = Build(none, [{"ATS_CARGO_FLAGS", "--offline"}]),
    ok = file:write_file(filename:join(Package, "priv/ats_nif.so"), "another"),
    1 = Build(none, []),
    0 = Build(fake, []),
    ok = file:change_time(filename:join(Package, "crates/x.rs"), {{2100, 1, 1}, {0, 0, 0}}),
    1 = Build(none, []).

%% ----- making a release -----

%% The needs of the library that was built here are those of this machine.
needs_are_checked(Config) ->
    Library = proplists:get_value(library, Config),
    case {os:type(), os:find_executable("readelf")} of
        {{unix, linux}, Found} when is_list(Found) ->
            Check = fun(Target, Glibc) ->
                            run(ats_test_lib:project(), "scripts/precompile.sh",
                                ["--needs", Library, Target], [{"ATS_GLIBC", Glibc}])
                    end,
            case re:run(target(), "gnu") of
                {match, _} ->
                    ?assertMatch({0, _}, Check(target(), "2.99")),
                    {1, Old} = Check(target(), "2.2"),
                    said(Old, ["which is newer than 2.2"]),
                    Other = re:replace(target(), "gnu", "musl", [{return, list}]),
                    {1, Musl} = Check(Other, "2.99"),
                    said(Musl, ["needs libgcc_s.so.1", "needs glibc"]);
                nomatch ->
                    ?assertMatch({0, _}, Check(target(), "2.99"))
            end;
        _ ->
            {skip, "there is no readelf here"}
    end.

%% A build accepts the archive that the script makes from a library.
made_by_the_script(Config) ->
    case {os:type(), os:find_executable("readelf")} of
        {{unix, linux}, Found} when is_list(Found) ->
            Made = filename:join(proplists:get_value(priv_dir, Config), "made"),
            [begin
                 Copy = filename:join(Made, File),
                 ok = filelib:ensure_dir(Copy),
                 {ok, _} = file:copy(filename:join(ats_test_lib:project(), File), Copy),
                 ok = file:change_mode(Copy, 8#755)
             end || File <- ["scripts/precompile.sh", "src/ats.app.src",
                             "crates/ats-nif/src/sys.rs"]],
            Env = [{"ATS_NIF_PATH", proplists:get_value(library, Config)}, {"ATS_GLIBC", "2.99"}],
            {0, _} = run(Made, "scripts/precompile.sh", [target()], Env),
            {ok, Sums} = file:read_file(filename:join(Made, "checksums.term")),
            ok = file:write_file(in(Config, "checksums.term"), Sums),
            Url = "file://" ++ filename:join(Made, "_build/precompiled"),
            [begin
                 {0, _} = build([{url, Url} | Config], [{"CARGO", none}]),
                 ?assertEqual({ok, content(proplists:get_value(library, Config))},
                              installed(Config)),
                 ok = file:delete(in(Config, "priv/ats_nif.so")),
                 %% The second time the folder's own checksums serve.
                 file:delete(in(Config, "checksums.term"))
             end || _ <- [1, 2]];
        _ ->
            {skip, "there is no readelf here"}
    end.

%% ----- builds -----

%% Without cargo the build fails and says why; with it, cargo builds, which is said too.
falls_back(Config, Texts) -> falls_back(Config, [], Texts).

falls_back(Config, Env, Texts) ->
    {1, Without} = build(Config, [{"CARGO", none} | Env]),
    said(Without, Texts ++ ["Rust is needed"]),
    ?assertEqual({error, enoent}, installed(Config)),
    ?assertEqual([], files(Config, "priv")),
    {0, With} = build(Config, [{"CARGO", fake} | Env]),
    said(With, Texts ++ ["the library is built by cargo instead"]),
    ?assertEqual({ok, <<"built by cargo\n">>}, installed(Config)),
    ok = file:delete(in(Config, "priv/ats_nif.so")).

build(Config, Env) ->
    Package = proplists:get_value(package, Config),
    {Cargo, Other} = lists:partition(fun({Name, _}) -> Name =:= "CARGO" end, Env),
    Path = path_without_cargo(Config),
    Own = case Cargo of
              [{_, none}] -> Path;
              [{_, fake}] -> fake_cargo(Package) ++ ":" ++ Path
          end,
    Usual = [{"PATH", Own}, {"ATS_PRECOMPILED_URL", proplists:get_value(url, Config)},
             {"ATS_PRECOMPILED_CACHE", in(Config, "cache")}, {"CARGO_TARGET_DIR", "target"}],
    run(Package, "build_nif.sh", [], with(Other, Usual)).

%% Leaves a file where cargo leaves the library.
fake_cargo(Package) ->
    Script = filename:join([Package, "bin", "cargo"]),
    ok = filelib:ensure_dir(Script),
    ok = file:write_file(Script, "#!/bin/sh\n"
                         "profile=$3\n"
                         "while [ \"$1\" != --target-dir ]; do shift; done\n"
                         "folder=$2/${CARGO_BUILD_TARGET:+$CARGO_BUILD_TARGET/}$profile\n"
                         "mkdir -p \"$folder\"\n"
                         "echo built by cargo | tee \"$folder/libats_nif.so\" "
                         ">\"$folder/libats_nif.dylib\"\n"),
    ok = file:change_mode(Script, 8#755),
    filename:dirname(Script).

%% Replaces a folder with cargo by one with links to all other programs in it.
path_without_cargo(Config) ->
    Folders = string:lexemes(os:getenv("PATH"), ":"),
    lists:flatten(lists:join(":", [without_cargo(Folder, Config) || Folder <- Folders])).

without_cargo(Folder, Config) ->
    case filelib:is_regular(filename:join(Folder, "cargo")) of
        false ->
            Folder;
        true ->
            Links = filename:join([proplists:get_value(priv_dir, Config), "links",
                                   integer_to_list(erlang:phash2(Folder))]),
            {ok, Names} = file:list_dir(Folder),
            ok = filelib:ensure_dir(filename:join(Links, "x")),
            [file:make_symlink(filename:join(Folder, Name), filename:join(Links, Name))
             || Name <- Names, Name =/= "cargo"],
            Links
    end.

%% Returns the status of a script, and its output. Variables set by a build by rebar3 do not reach
%% it.
run(Folder, Script, Arguments, Env) ->
    Unset = [{Name, false} || Name <- ["REBAR_ROOT_DIR", "REBAR_BUILD_DIR", "ATS_SKIP_NIF_BUILD",
                                       "ATS_PRECOMPILED_CHECKSUMS", "ATS_NIF_PATH",
                                       "ATS_CARGO_FLAGS", "CARGO_BUILD_TARGET"]
                                 ++ proxies(),
                              not lists:keymember(Name, 1, Env)],
    ats_test_lib:run_program(filename:join(Folder, Script), Arguments, Folder, Unset ++ Env).

proxies() ->
    Names = [Name ++ "_proxy" || Name <- ["http", "https", "all", "no"]],
    Names ++ [string:uppercase(Name) || Name <- Names].

said(Text, Parts) ->
    [?assertNotEqual(nomatch, string:find(Text, Part), Text) || Part <- Parts].

installed(Config) ->
    file:read_file(in(Config, "priv/ats_nif.so")).

in(Config, File) ->
    filename:join(proplists:get_value(package, Config), File).

files(Config, Folder) ->
    filelib:wildcard("*", in(Config, Folder)) ++ filelib:wildcard(".*so", in(Config, Folder)).

%% The address of a server that gives to each path an answer, as long as this process lives.
answering(Answer) ->
    Test = self(),
    Server = spawn_link(fun() ->
        {ok, Socket} = gen_tcp:listen(0, [binary, {packet, http}, {active, false},
                                          {ip, {127, 0, 0, 1}}]),
        {ok, Number} = inet:port(Socket),
        Port = integer_to_list(Number),
        Test ! {self(), Port},
        answer_each(Socket, fun(Path) -> Answer(Path, Port) end)
    end),
    receive {Server, Port} -> "http://127.0.0.1:" ++ Port end.

answer_each(Listening, Answer) ->
    {ok, Socket} = gen_tcp:accept(Listening),
    {ok, {http_request, _, Path, _}} = gen_tcp:recv(Socket, 0),
    ok = skip_fields(Socket),
    {Status, Field, Body} = Answer(case Path of
                                       {absoluteURI, Scheme, Host, _, Rest} ->
                                           lists:concat([Scheme, "://", Host, Rest]);
                                       {abs_path, Own} ->
                                           Own
                                   end),
    ok = gen_tcp:send(Socket, ["HTTP/1.1 ", Status, "\r\n", [[Field, "\r\n"] || Field =/= ""],
                               "content-length: ", integer_to_list(iolist_size(Body)),
                               "\r\nconnection: close\r\n\r\n", Body]),
    ok = gen_tcp:close(Socket),
    answer_each(Listening, Answer).

skip_fields(Socket) ->
    case gen_tcp:recv(Socket, 0) of
        {ok, http_eoh} -> ok;
        {ok, _} -> skip_fields(Socket)
    end.

%% ----- archives -----

%% Puts an archive on the server, and its sum into the package.
serve(Name, Archive, Config) ->
    ok = file:write_file(filename:join(proplists:get_value(served, Config), Name), Archive),
    Sum = binary_to_list(binary:encode_hex(crypto:hash(sha256, Archive))),
    name_sum(Name, Sum, Config).

name_sum(Name, Sum, Config) ->
    ok = file:write_file(in(Config, "checksums.term"), io_lib:format("~p.~n", [{Name, Sum}])).

content(File) ->
    {ok, Bytes} = file:read_file(File),
    Bytes.

archive(File, Bytes) ->
    Name = filename:join("/tmp", "ats-" ++ os:getpid() ++ ".tar.gz"),
    ok = erl_tar:create(Name, [{File, Bytes}], [compressed]),
    {ok, Archive} = file:read_file(Name),
    ok = file:delete(Name),
    Archive.

name(Interface) ->
    "ats_nif-" ++ version() ++ "-nif-" ++ Interface ++ "-" ++ target() ++ ".tar.gz".

interface() -> erlang:system_info(nif_version).

version() ->
    {ok, [{application, ats, Properties}]} =
        file:consult(filename:join(ats_test_lib:project(), "src/ats.app.src")),
    proplists:get_value(vsn, Properties).

%% The target of this machine, as the script has to find it out.
target() ->
    Architecture = erlang:system_info(system_architecture),
    [Processor | _] = string:split(Architecture, "-"),
    {match, [System]} = re:run(Architecture, "linux-gnu|linux-musl|darwin|freebsd",
                               [{capture, first, list}]),
    Vendor = case System of
                 "darwin" -> "-apple-";
                 _ -> "-unknown-"
             end,
    Processor ++ Vendor ++ System.

#!/usr/bin/env escript
%% Fetches the native library that fits this machine, so that it need not be built.
%%
%%   escript scripts/precompiled.escript URL LIBRARY
%%
%% Takes the archive from the folder at URL (http, https or file), and writes the library in it to
%% the file LIBRARY. Which archives there are, and the SHA-256 of each, says `checksums.term' in the
%% package; what is not named there is not fetched, and what differs is not used. Archives are kept
%% in the cache of the user, or in the folder that ATS_PRECOMPILED_CACHE names.
%%
%% An archive is for a version of the package, a version of the interface of native functions, and a
%% target as Rust calls it, such as ats_nif-0.1.0-nif-2.16-x86_64-unknown-linux-gnu.tar.gz.
%% CARGO_BUILD_TARGET names another target than that of the virtual machine.
%%
%% If there is no library, the status is 1, and standard error tells why.
-mode(compile).

-define(LIMIT_MS, 120000).

main([Url, Library]) ->
    try
        {Name, Sum} = find(version(), target(), checksums()),
        Archive = cached(Name, Sum, string:trim(Url, trailing, "/") ++ "/" ++ Name),
        ok = file:write_file(Library, library_in(Name, Archive)),
        try_to_load(Library),
        say("~ts is used", [Name])
    catch
        throw:{Format, Arguments} ->
            say(Format, Arguments),
            halt(1)
    end.

say(Format, Arguments) ->
    io:format(standard_error, "precompiled library: " ++ Format ++ "~n", Arguments).

refuse(Format, Arguments) ->
    throw({Format, Arguments}).

%% ----- which archive -----

version() ->
    {ok, [{application, ats, Properties}]} = file:consult(in_package("src/ats.app.src")),
    proplists:get_value(vsn, Properties).

in_package(File) ->
    Scripts = filename:dirname(filename:absname(escript:script_name())),
    filename:join(filename:dirname(Scripts), File).

checksums() ->
    case file:consult(in_package("checksums.term")) of
        {ok, Sums} -> Sums;
        {error, enoent} -> refuse("this package names none, because it has no checksums.term", []);
        {error, Reason} -> refuse("checksums.term: ~ts", [file:format_error(Reason)])
    end.

target() ->
    case os:getenv("CARGO_BUILD_TARGET", "") of
        "" -> target(erlang:system_info(system_architecture));
        Named -> Named
    end.

%% From the name that the GNU tools have for a machine.
target(Architecture) ->
    [Processor | _] = string:split(Architecture, "-"),
    processor(Processor) ++ system(Architecture).

processor("amd64") -> "x86_64";
processor("arm64") -> "aarch64";
processor(Name) -> Name.

system(Architecture) ->
    Systems = [{"linux-gnu", "-unknown-linux-gnu"}, {"linux-musl", "-unknown-linux-musl"},
               {"darwin", "-apple-darwin"}, {"freebsd", "-unknown-freebsd"}],
    case [Name || {Part, Name} <- Systems, string:find(Architecture, Part) =/= nomatch] of
        [Name] -> Name;
        [] -> refuse("there are none for ~ts", [Architecture])
    end.

%% The archive for the latest interface that this virtual machine has.
find(Version, Target, Sums) ->
    Interface = numbers(erlang:system_info(nif_version)),
    Prefix = "ats_nif-" ++ Version ++ "-nif-",
    Suffix = "-" ++ Target ++ ".tar.gz",
    Fitting = [{Built, {Name, Sum}} || {Name, Sum} <- Sums,
                                       [_, _] = Built <- [between(Prefix, Name, Suffix)],
                                       hd(Built) =:= hd(Interface), Built =< Interface],
    case lists:sort(Fitting) of
        [] ->
            refuse("checksums.term has none of ~ts for ~ts and version ~ts of native functions",
                   [Version, Target, erlang:system_info(nif_version)]);
        Sorted ->
            element(2, lists:last(Sorted))
    end.

between(Prefix, Name, Suffix) ->
    case string:prefix(Name, Prefix) of
        nomatch -> none;
        Rest ->
            case string:split(Rest, Suffix, trailing) of
                [Middle, ""] -> numbers(Middle);
                _ -> none
            end
    end.

numbers(Text) ->
    try [list_to_integer(Part) || Part <- string:split(Text, ".", all)]
    catch error:badarg -> none
    end.

%% ----- its bytes -----

cached(Name, Sum, Url) ->
    Folder = os:getenv("ATS_PRECOMPILED_CACHE", filename:basedir(user_cache, "ats")),
    File = filename:join(Folder, Name),
    case file:read_file(File) of
        {ok, Archive} ->
            case sum(Archive) =:= string:lowercase(Sum) of
                true -> Archive;
                false -> fetch(Url, Sum, File)
            end;
        {error, _} ->
            fetch(Url, Sum, File)
    end.

fetch(Url, Sum, File) ->
    Archive = download(Url),
    case sum(Archive) =:= string:lowercase(Sum) of
        true ->
            keep(File, Archive),
            Archive;
        false ->
            refuse("~ts has the SHA-256 ~ts, but checksums.term says ~ts: it is not used",
                   [Url, sum(Archive), Sum])
    end.

sum(Archive) ->
    lists:flatten([io_lib:format("~2.16.0b", [Byte]) || <<Byte>> <= crypto:hash(sha256, Archive)]).

%% Another build may read or write the same file. Without a cache, each build fetches.
keep(File, Archive) ->
    Temporary = File ++ "." ++ os:getpid() ++ ".tmp",
    try
        ok = filelib:ensure_dir(File),
        ok = file:write_file(Temporary, Archive),
        ok = file:rename(Temporary, File)
    catch
        error:{badmatch, {error, Reason}} ->
            say("it cannot be kept: ~ts", [file:format_error(Reason)])
    end.

download("file://" ++ Path = Url) ->
    case file:read_file(uri_string:percent_decode(Path)) of
        {ok, Archive} -> Archive;
        {error, Reason} -> refuse("~ts: ~ts", [Url, file:format_error(Reason)])
    end;
download(Url) ->
    lists:foreach(fun start/1, [inets, ssl]),
    Options = [{timeout, ?LIMIT_MS}, {connect_timeout, 10000}, {ssl, tls(Url)}],
    case httpc:request(get, {Url, []}, Options, [{body_format, binary}]) of
        {ok, {{_, 200, _}, _, Archive}} -> Archive;
        {ok, {{_, Status, Text}, _, _}} -> refuse("~ts: ~b ~ts", [Url, Status, Text]);
        {error, Reason} -> refuse("~ts: ~tp", [Url, Reason])
    end.

start(Application) ->
    case application:ensure_all_started(Application) of
        {ok, _} -> ok;
        {error, {Missing, _}} -> refuse("Erlang's application ~w is not installed", [Missing])
    end.

tls("https:" ++ _) ->
    [{verify, verify_peer}, {cacerts, public_key:cacerts_get()}, {depth, 10},
     {customize_hostname_check, [{match_fun, public_key:pkix_verify_hostname_match_fun(https)}]}];
tls(_) ->
    [].

library_in(Name, Archive) ->
    case erl_tar:extract({binary, Archive}, [memory, compressed, {files, ["ats_nif.so"]}]) of
        {ok, [{_, Library}]} -> Library;
        Other -> refuse("~ts has no library in it: ~tp", [Name, Other])
    end.

%% The name of an archive does not tell the libraries that it needs in turn. The virtual machine
%% opens it, and then finds that it belongs to another module. A library of another target is not
%% opened.
try_to_load(Library) ->
    case os:getenv("CARGO_BUILD_TARGET", "") =:= "" andalso
        erlang:load_nif(filename:rootname(filename:absname(Library)), 0)
    of
        {error, {load_failed, Text}} -> refuse("it cannot be loaded here: ~ts", [Text]);
        _ -> ok
    end.

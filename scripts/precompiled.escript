#!/usr/bin/env escript
%% Fetches the native library that fits this machine, so that it need not be built.
%%
%%   escript scripts/precompiled.escript URL LIBRARY
%%
%% Takes the archive from the folder at URL (http, https or file), and writes the library in it to
%% the file LIBRARY. Which archives there are, and the SHA-256 of each, says `checksums.term' in the
%% package, or another file that ATS_PRECOMPILED_CHECKSUMS names; a package without that file takes
%% the one of a folder on this machine. What is not named there is not fetched, and what differs is
%% not used. Archives are kept in the folder that ATS_PRECOMPILED_CACHE names, or in the cache of the
%% user. The variables HTTPS_PROXY, HTTP_PROXY and NO_PROXY name proxies, also in small letters, as
%% for curl.
%%
%% An archive is for a version of the package, a version of the interface of native functions, and a
%% target as Rust calls it, such as ats_nif-0.1.0-nif-2.16-x86_64-unknown-linux-gnu.tar.gz.
%% CARGO_BUILD_TARGET names another target than that of the virtual machine.
%%
%% If there is no library, the status is 1, and a line on standard error tells why.
-mode(compile).

-define(LIMIT_MS, 120000).
-define(REDIRECTIONS, 10).

main([Url, Library]) ->
    %% Names of files are written as the system has them.
    _ = [io:setopts(standard_error, [{encoding, unicode}])
         || file:native_name_encoding() =:= utf8],
    try
        ok = start(crypto),
        Folder = string:trim(Url, trailing, "/"),
        {Name, Sum} = find(version(), target(), checksums(Folder)),
        Archive = cached(Name, Sum, Folder ++ "/" ++ Name),
        case file:write_file(Library, library_in(Name, Archive)) of
            ok -> ok;
            {error, Reason} -> refuse("~ts: ~ts", [Library, file:format_error(Reason)])
        end,
        try_to_load(Library),
        say("~ts is used", [Name])
    catch
        throw:{refused, Format, Arguments} ->
            say(Format, Arguments),
            halt(1);
        Class:Error:Stack ->
            say("~0tp, which is a fault of this script (~0tp)", [{Class, Error}, hd(Stack)]),
            halt(1)
    end.

%% One line, whatever is in it.
say(Format, Arguments) ->
    Text = io_lib:format("precompiled library: " ++ Format, Arguments),
    io:format(standard_error, "~ts~n", [re:replace(Text, "\\s*\n\\s*", " ", [global, unicode])]).

refuse(Format, Arguments) ->
    throw({refused, Format, Arguments}).

%% ----- which archive -----

version() ->
    {ok, [{application, ats, Properties}]} = file:consult(in_package("src/ats.app.src")),
    proplists:get_value(vsn, Properties).

in_package(File) ->
    Scripts = filename:dirname(filename:absname(escript:script_name())),
    filename:join(filename:dirname(Scripts), File).

checksums(Url) ->
    InPackage = in_package("checksums.term"),
    case {os:getenv("ATS_PRECOMPILED_CHECKSUMS", ""), filelib:is_regular(InPackage), Url} of
        {"", true, _} -> checksums_in(InPackage);
        {"", false, "file://" ++ Folder} -> checksums_in(decoded(Folder ++ "/checksums.term"));
        {"", false, _} -> no_checksums("no checksums.term");
        {Named, _, _} -> checksums_in(Named)
    end.

checksums_in(File) ->
    case file:consult(File) of
        {ok, Sums} -> [checksum(Sum) || Sum <- Sums];
        {error, enoent} -> no_checksums(["there is no ", File]);
        {error, Reason} -> refuse("checksums.term: ~ts", [file:format_error(Reason)])
    end.

no_checksums(Why) ->
    refuse("this package names none, since none is published yet (~ts). What works: `make"
           " precompiled' in a clone of the repository, on a machine with Rust, makes a folder, which"
           " ATS_PRECOMPILED_URL names as file:///FOLDER, or https://SERVER/FOLDER together with"
           " ATS_PRECOMPILED_CHECKSUMS=FILE; or ATS_NIF_PATH names a library", [Why]).

checksum({Name, Sum} = Pair) ->
    case io_lib:printable_unicode_list(Name) andalso io_lib:printable_unicode_list(Sum) of
        true -> {Name, string:lowercase(Sum)};
        false -> no_checksum(Pair)
    end;
checksum(Other) ->
    no_checksum(Other).

no_checksum(Term) ->
    refuse("checksums.term is of another kind: ~0tP is no {\"ARCHIVE\", \"SHA-256\"}", [Term, 12]).

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
    Folder = cache(),
    case Folder =/= none andalso file:read_file(filename:join(Folder, Name)) of
        {ok, Archive} ->
            case sum(Archive) of
                Sum -> Archive;
                _ -> fetch(Url, Sum, Name, Folder)
            end;
        _ ->
            fetch(Url, Sum, Name, Folder)
    end.

cache() ->
    case os:getenv("ATS_PRECOMPILED_CACHE", "") of
        "" ->
            %% It needs HOME.
            try filename:basedir(user_cache, "ats")
            catch error:_ -> none
            end;
        Folder ->
            Folder
    end.

fetch(Url, Sum, Name, Folder) ->
    Archive = download(Url, ?REDIRECTIONS),
    case sum(Archive) of
        Sum ->
            keep(Name, Folder, Archive),
            Archive;
        Other ->
            refuse("~ts has the SHA-256 ~ts, but checksums.term says ~ts: it is not used",
                   [Url, Other, Sum])
    end.

sum(Archive) ->
    lists:flatten([io_lib:format("~2.16.0b", [Byte]) || <<Byte>> <= crypto:hash(sha256, Archive)]).

%% Another build may read or write the same file, in another container, too. Without a cache, each
%% build fetches.
keep(_, none, _) ->
    say("it is not kept, because HOME is not set: ATS_PRECOMPILED_CACHE names a folder for it", []);
keep(Name, Folder, Archive) ->
    File = filename:join(Folder, Name),
    Names = filelib:wildcard(Name ++ ".*.tmp", Folder),
    [file:delete(Left) || Made <- Names, Left <- [filename:join(Folder, Made)], is_old(Left)],
    Random = binary:decode_unsigned(crypto:strong_rand_bytes(8)),
    Temporary = lists:concat([File, ".", Random, ".tmp"]),
    try
        ok = filelib:ensure_dir(File),
        ok = file:write_file(Temporary, Archive, [exclusive]),
        ok = file:rename(Temporary, File)
    catch
        error:{badmatch, {error, Reason}} ->
            say("it is not kept: ~ts: ~ts (ATS_PRECOMPILED_CACHE names another folder)",
                [Folder, file:format_error(Reason)])
    after
        file:delete(Temporary)
    end.

%% A build that writes it has ended long ago.
is_old(File) ->
    case file:read_file_info(File, [{time, posix}]) of
        {ok, Info} -> element(6, Info) + 24 * 60 * 60 < os:system_time(second);
        {error, _} -> false
    end.

download("file://" ++ Path = Url, _) ->
    case file:read_file(decoded(Path)) of
        {ok, Archive} -> Archive;
        {error, Reason} -> refuse("~ts: ~ts", [Url, file:format_error(Reason)])
    end;
download(Url, Left) ->
    Scheme = scheme(Url),
    lists:foreach(fun start/1, [inets, ssl]),
    %% What is relative in a redirection is not followed by httpc.
    Options = [{timeout, ?LIMIT_MS}, {connect_timeout, 10000}, {autoredirect, false},
               {ssl, tls(Scheme)} | proxy(Scheme, Url)],
    case httpc:request(get, {encoded(Url), []}, Options, [{body_format, binary}]) of
        {ok, {{_, 200, _}, _, Archive}} ->
            Archive;
        {ok, {{_, Status, Text}, Fields, _}} when Status >= 301, Status =< 308, Status =/= 304 ->
            case lists:keyfind("location", 1, Fields) of
                {_, Location} when Left > 0 ->
                    download(followed(Location, Url, Scheme), Left - 1);
                _ ->
                    refuse("~ts: ~b ~ts, ~b times", [Url, Status, Text, ?REDIRECTIONS - Left])
            end;
        {ok, {{_, 407, _}, _, _}} ->
            refuse("~ts: the proxy wants another name and password: HTTPS_PROXY and HTTP_PROXY are"
                   " http://NAME:PASSWORD@HOST:PORT", [Url]);
        {ok, {{_, Status, Text}, _, _}} ->
            refuse("~ts: ~b ~ts", [Url, Status, Text]);
        {error, Reason} ->
            refuse("~ts: ~0tp", [Url, Reason])
    end.

%% A redirection leads to no file of this machine, and from https to no connection that others can
%% change.
followed(Location, Url, Scheme) ->
    Next = uri_string:resolve(Location, encoded(Url)),
    case is_tuple(Next) orelse scheme_of(Next) of
        Scheme -> Next;
        "https" -> Next;
        _ -> refuse("~ts: leads to ~ts, which is not followed", [Url, Location])
    end.

scheme(Url) ->
    case scheme_of(Url) of
        Scheme when Scheme =:= "http"; Scheme =:= "https" -> Scheme;
        _ -> refuse("~ts: ATS_PRECOMPILED_URL begins with https://, http:// or file://", [Url])
    end.

scheme_of(Url) ->
    string:lowercase(lists:flatten(hd(string:split(Url, "://")))).

%% Bytes of a name as the system has them, which may be written as `%20'.
decoded(Path) ->
    Bytes = unicode:characters_to_binary(Path, unicode, file:native_name_encoding()),
    decode(Bytes).

decode(<<$%, High, Low, Rest/binary>>) when High < 128, Low < 128 ->
    try <<(list_to_integer([High, Low], 16)), (decode(Rest))/binary>>
    catch error:badarg -> <<$%, High, Low, (decode(Rest))/binary>>
    end;
decode(<<Byte, Rest/binary>>) -> <<Byte, (decode(Rest))/binary>>;
decode(<<>>) -> <<>>.

encoded(Url) ->
    lists:append([encoded_byte(Byte) || <<Byte>> <= unicode:characters_to_binary(Url)]).

encoded_byte(Byte) when Byte > 32, Byte < 127 -> [Byte];
encoded_byte(Byte) -> lists:flatten(io_lib:format("%~2.16.0B", [Byte])).

%% ----- proxies -----

%% httpc has a proxy for each scheme, and its name and password in each request.
proxy(Scheme, Url) ->
    Option = case Scheme of
                 "https" -> https_proxy;
                 "http" -> proxy
             end,
    case variable([Scheme ++ "_proxy", "all_proxy"]) of
        "" ->
            [];
        Given ->
            #{host := Host} = Proxy = parsed(Given),
            Without = [string:trim(string:trim(Name), leading, ".*")
                       || Name <- string:lexemes(variable(["no_proxy"]), ", ")],
            Own = maps:get(host, uri_string:parse(Url)),
            Direct = [Own || lists:any(fun(Name) -> is_in_domain(Own, Name) end, Without)],
            ok = httpc:set_options([{Option, {{Host, maps:get(port, Proxy, 80)}, Direct}}]),
            [{proxy_auth, list_to_tuple([uri_string:percent_decode(Part)
                                         || Part <- string:split(Login, ":")])}
             || #{userinfo := Login} <- [Proxy], string:find(Login, ":") =/= nomatch]
    end.

parsed(Given) ->
    Full = case string:find(Given, "://") of
               nomatch -> "http://" ++ Given;
               _ -> Given
           end,
    case uri_string:parse(Full) of
        #{scheme := "http", host := [_ | _]} = Proxy -> Proxy;
        _ -> refuse("~ts is no proxy that can be used: http://HOST:PORT", [Given])
    end.

%% `Host' has that name, or is in the domain with that name.
is_in_domain(_, "") -> true;
is_in_domain(Host, Name) ->
    lists:suffix("." ++ string:lowercase(Name), "." ++ string:lowercase(Host)).

%% In small letters at first, as programs have it.
variable(Names) ->
    Values = [Value || Name <- Names, Spelt <- [Name, string:uppercase(Name)],
                       Value <- [os:getenv(Spelt, "")], Value =/= ""],
    case Values of
        [Value | _] -> Value;
        [] -> ""
    end.

%% ----- connections -----

start(Application) ->
    case application:ensure_all_started(Application) of
        {ok, _} ->
            ok;
        {error, {Missing, _}} ->
            refuse("Erlang's application ~w is not installed (Debian: erlang-~w)",
                   [Missing, Missing])
    end.

tls("https") ->
    Trusted = try public_key:cacerts_get()
              catch error:_ ->
                      refuse("no certificates are installed, which https needs: install"
                             " ca-certificates", [])
              end,
    Match = public_key:pkix_verify_hostname_match_fun(https),
    [{verify, verify_peer}, {cacerts, Trusted}, {depth, 10},
     {customize_hostname_check, [{match_fun, Match}]}];
tls("http") ->
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

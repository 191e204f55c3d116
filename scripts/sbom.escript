#!/usr/bin/env escript
%% Writes the list of what is in the native library (SBOM), as JSON of CycloneDX 1.5.
%%
%%   escript scripts/sbom.escript FILE [TARGET...]
%%
%% Cargo says which crates the library needs on each target, as Rust calls targets; without one, on
%% this machine. Crates that only write code for the compiler are in the list with the scope
%% "excluded", since none of their code is in the library. Cargo.lock has the sums of the crates
%% from a registry. A crate without a license, or one of a registry without a sum, makes the script
%% fail, and no file is written.
%%
%% SOURCE_DATE_EPOCH, in seconds, is the time in the list, which otherwise is that of the clock.
-mode(compile).

main([File | Targets]) ->
    Root = filename:dirname(filename:dirname(filename:absname(escript:script_name()))),
    Output = filename:absname(File),
    ok = file:set_cwd(Root),
    Trees = [tree(Target) || Target <- targets(Targets)],
    Found = lists:usort(lists:append([with_scopes(Tree, none) || Tree <- Trees])),
    Crates = [Crate || Crate <- Found, element(5, Crate) =:= required orelse
                           not lists:member(setelement(5, Crate, required), Found)],
    Edges = lists:usort(lists:append([edges(Tree) || Tree <- Trees])),
    Sums = sums(),
    case lists:append([faults(Crate, Sums) || Crate <- Crates]) of
        [] ->
            Json = [json(bom(element(2, hd(hd(Trees))), Crates, Edges, Sums)), $\n],
            ok = file:write_file(Output, unicode:characters_to_binary(Json)),
            io:format("~ts: ~b crates and the standard library of Rust~n",
                      [File, length(Crates) - 1]);
        Faults ->
            stop("~ts", [lists:join("\n", Faults)])
    end;
main([]) ->
    stop("usage: escript scripts/sbom.escript FILE [TARGET...]", []).

-spec stop(string(), [term()]) -> no_return().
stop(Format, Arguments) ->
    io:format(standard_error, "sbom.escript: " ++ Format ++ "~n", Arguments),
    halt(1).

%% ----- what cargo says -----

targets([]) -> [[]];
targets(Targets) -> [["--target", Target] || Target <- Targets].

%% Returns the crates of the library with their depths, in the order of a walk of the tree.
tree(Target) ->
    Lines = run("cargo", ["tree", "--locked", "-p", "ats-nif", "-e", "normal", "--no-dedupe",
                          "--prefix", "depth", "--format", "{p}\t{l}" | Target]),
    [crate(Line) || Line <- string:lexemes(Lines, "\n")].

%% A crate is its name, its version, where it comes from, its license, and whether code of it is in
%% the library.
crate(Line) ->
    Pattern = "^([0-9]+)([^ ]+) v([^ \t]+)( \\(proc-macro\\))?( \\(.*\\))?\t(.*)$",
    {match, [Depth, Name, Version, Macro, Place, License]} =
        re:run(Line, Pattern, [unicode, {capture, all_but_first, list}]),
    Source = case Place of
                 "" -> registry;
                 _ -> elsewhere
             end,
    Scope = case Macro of
                "" -> required;
                _ -> excluded
            end,
    {list_to_integer(Depth), {Name, Version, Source, string:trim(License), Scope}}.

%% Returns the crates. What only a crate for the compiler needs is as little in the library.
with_scopes([{Depth, Crate} | Rest], Macro) when Macro =/= none, Depth > Macro ->
    [setelement(5, Crate, excluded) | with_scopes(Rest, Macro)];
with_scopes([{Depth, {_, _, _, _, excluded} = Crate} | Rest], _) ->
    [Crate | with_scopes(Rest, Depth)];
with_scopes([{_, Crate} | Rest], _) ->
    [Crate | with_scopes(Rest, none)];
with_scopes([], _) ->
    [].

%% Returns which crate needs which, from the depths.
edges(Tree) -> edges(Tree, []).

edges([{Depth, Crate} | Rest], Path) ->
    Above = lists:dropwhile(fun({Other, _}) -> Other >= Depth end, Path),
    [{ref(User), ref(Crate)} || {_, User} <- lists:sublist(Above, 1)] ++
        edges(Rest, [{Depth, Crate} | Above]);
edges([], _) ->
    [].

%% Returns the sums of the crates in Cargo.lock by name and version.
sums() ->
    {ok, Lock} = file:read_file("Cargo.lock"),
    Pattern = "name = \"(.*)\"\nversion = \"(.*)\"\nsource = \".*\"\nchecksum = \"([0-9a-f]{64})\"",
    case re:run(Lock, Pattern, [global, {capture, all_but_first, list}]) of
        {match, Found} -> maps:from_list([{{Name, Version}, Sum} || [Name, Version, Sum] <- Found]);
        nomatch -> #{}
    end.

faults({_, _, Source, License, _} = Crate, Sums) ->
    [[ref(Crate), " names no license that can be read: \"", License, "\""]
     || not is_license(expression(License))] ++
        [[ref(Crate), " has no sum in Cargo.lock"]
         || Source =:= registry, not is_map_key(key(Crate), Sums)].

%% Older crates have a slash between licenses.
expression(License) -> lists:append(string:replace(License, "/", " OR ", all)).

%% Names of licenses, between which there are AND, OR and WITH. The names themselves are not
%% looked up.
is_license(Expression) ->
    Names = string:lexemes(Expression, " ()"),
    Wanted = [not lists:member(Name, ["AND", "OR", "WITH"]) || Name <- Names],
    Alternating = [Index rem 2 =:= 1 || Index <- lists:seq(1, length(Names))],
    Names =/= [] andalso length(Names) rem 2 =:= 1 andalso Wanted =:= Alternating andalso
        re:run(Expression, "^[A-Za-z0-9.+:() -]+$") =/= nomatch.

run(Program, Arguments) ->
    case os:find_executable(Program) of
        false ->
            stop("there is no ~ts here", [Program]);
        Path ->
            Port = open_port({spawn_executable, Path},
                             [{args, Arguments}, exit_status, binary, hide]),
            output(Port, Program, [])
    end.

output(Port, Program, Said) ->
    receive
        {Port, {data, Bytes}} -> output(Port, Program, [Said, Bytes]);
        {Port, {exit_status, 0}} -> unicode:characters_to_list(Said);
        {Port, {exit_status, Status}} -> stop("~ts failed with status ~b", [Program, Status])
    end.

%% ----- the list -----

key({Name, Version, _, _, _}) -> {Name, Version}.

ref({Name, Version, _, _, _}) -> Name ++ "@" ++ Version.

bom(Library, Crates, Edges, Sums) ->
    Rust = string:trim(run("rustc", ["-V"])),
    Others = lists:delete(Library, Crates),
    Standard = "rust-std",
    {[{"bomFormat", "CycloneDX"}, {"specVersion", "1.5"}, {"version", 1},
      {"metadata", {[{"timestamp", timestamp()}, {"component", component(Library, Sums)}]}},
      {"components", {list, [component(Crate, Sums) || Crate <- Others] ++
                                [standard(Standard, Rust)]}},
      {"dependencies",
       {list, [needs(ref(Crate), [Needed || {User, Needed} <- Edges, User =:= ref(Crate)] ++
                                     [Standard || Crate =:= Library])
               || Crate <- Crates]}}]}.

component({Name, Version, Source, License, Scope} = Crate, Sums) ->
    {[{"type", "library"}, {"bom-ref", ref(Crate)}, {"name", Name}, {"version", Version},
      {"scope", atom_to_list(Scope)}] ++
         [{"hashes", {list, [{[{"alg", "SHA-256"}, {"content", maps:get(key(Crate), Sums)}]}]}}
          || Source =:= registry] ++
         licenses(expression(License)) ++
         [{"purl", "pkg:cargo/" ++ ref(Crate)} || Source =:= registry]}.

standard(Ref, Rust) ->
    [_, Version | _] = string:lexemes(Rust, " "),
    {[{"type", "library"}, {"bom-ref", Ref}, {"name", "std"}, {"version", Version},
      {"description", "The standard library of " ++ Rust}, {"scope", "required"}] ++
         licenses("MIT OR Apache-2.0")}.

licenses(Expression) -> [{"licenses", {list, [{[{"expression", Expression}]}]}}].

needs(User, Needed) -> {[{"ref", User}, {"dependsOn", {list, Needed}}]}.

timestamp() ->
    Seconds = case os:getenv("SOURCE_DATE_EPOCH", "") of
                  "" -> os:system_time(second);
                  Given -> list_to_integer(Given)
              end,
    calendar:system_time_to_rfc3339(Seconds, [{offset, "Z"}]).

%% ----- JSON -----

%% An object is `{Pairs}', an array `{list, Values}', a text a list of characters.
json(Value) -> json(Value, "\n").

json({Pairs}, Line) ->
    Deeper = Line ++ "  ",
    enclosed("{", [[text(Name), ": ", json(Value, Deeper)] || {Name, Value} <- Pairs], "}", Line);
json({list, Values}, Line) ->
    Deeper = Line ++ "  ",
    enclosed("[", [json(Value, Deeper) || Value <- Values], "]", Line);
json(Number, _) when is_integer(Number) ->
    integer_to_list(Number);
json(Text, _) ->
    text(Text).

enclosed(Open, [], Close, _) -> [Open, Close];
enclosed(Open, Parts, Close, Line) ->
    Deeper = Line ++ "  ",
    [Open, Deeper, lists:join([",", Deeper], Parts), Line, Close].

text(Text) -> [$", [escaped(Char) || Char <- Text], $"].

escaped(Char) when Char =:= $"; Char =:= $\\ -> [$\\, Char];
escaped(Char) when Char < 32 -> io_lib:format("\\u~4.16.0b", [Char]);
escaped(Char) -> Char.

#!/usr/bin/env escript
%% Compares two states of the Erlang modules: functions, types and callbacks that were added,
%% removed or changed.
%%
%%   escript scripts/interfaces.escript OLD NEW [CHANGES]
%%
%% OLD and NEW are folders of compiled modules (with debug_info), or revisions of git, whose public
%% modules are compiled in memory: those without `@private'. Of a folder, modules without a chunk of
%% documentation in `../doc/chunks' are left out, if there are any chunks. A function or
%% callback is changed if its specification is, a type if its definition is; names of variables do
%% not matter.
%%
%% CHANGES is a CHANGELOG. Its first part has to name each function of `ats' and `dats' that was
%% added or removed, in backquotes. The status is 1 if it does not, and the last lines say which are
%% missing.
-mode(compile).

-define(FACADES, [ats, dats]).

main([Old, New]) ->
    _ = report(Old, New);
main([Old, New, Changes]) ->
    Differences = report(Old, New),
    Part = spans(first_part(Changes)),
    Missing = [Line || {Kind, {Module, {function, Name, _}}} = Difference <- Differences,
                       Kind =/= changed, lists:member(Module, ?FACADES),
                       not is_named(atom_to_binary(Name), Part), Line <- [line(Difference)]],
    case Missing of
        [] -> io:format("~ts names all functions that were added or removed~n", [Changes]);
        _ -> stop("~ts does not name, in its first part:~n~ts", [Changes, Missing])
    end;
main(_) ->
    stop("usage: escript scripts/interfaces.escript OLD NEW [CHANGES]", []).

-spec stop(string(), [term()]) -> no_return().
stop(Format, Arguments) ->
    io:format(standard_error, "interfaces.escript: " ++ Format ++ "~n", Arguments),
    halt(1).

report(Old, New) ->
    Differences = differences(interface(Old), interface(New)),
    io:put_chars([line(Difference) || Difference <- Differences]),
    Count = fun(Kind) -> length([Kind || {Found, _} <- Differences, Found =:= Kind]) end,
    io:format("~b removed, ~b changed, ~b added~n", [Count(K) || K <- [removed, changed, added]]),
    Differences.

line({Kind, {Module, {function, Name, Arity}}}) ->
    io_lib:format("~w: ~w:~w/~b~n", [Kind, Module, Name, Arity]);
line({Kind, {Module, {Thing, Name, Arity}}}) ->
    io_lib:format("~w: ~w ~w:~w/~b~n", [Kind, Thing, Module, Name, Arity]).

%% Removed before changed before added.
differences(Old, New) ->
    [{removed, Key} || Key <- lists:sort(maps:keys(Old)), not is_map_key(Key, New)] ++
        [{changed, Key} || {Key, Meaning} <- lists:sort(maps:to_list(Old)),
                           is_map_key(Key, New), map_get(Key, New) =/= Meaning] ++
        [{added, Key} || Key <- lists:sort(maps:keys(New)), not is_map_key(Key, Old)].

%% ----- interfaces -----

%% Returns what modules export, each function with its specification, each type with its definition.
interface(Place) ->
    Modules = case filelib:is_dir(Place) of
                  true -> in_folder(Place);
                  false -> in_revision(Place)
              end,
    Modules =/= [] orelse stop("~ts has no compiled module", [Place]),
    maps:from_list(lists:append([exported(Beam) || Beam <- Modules])).

in_folder(Folder) ->
    Beams = filelib:wildcard(filename:join(Folder, "*.beam")),
    Chunk = fun(Beam) ->
                    filename:join([Folder, "..", "doc", "chunks",
                                   filename:basename(Beam, ".beam") ++ ".chunk"])
            end,
    case [Beam || Beam <- Beams, filelib:is_regular(Chunk(Beam))] of
        [] -> Beams;
        Public -> Public
    end.

in_revision(Revision) ->
    Root = filename:dirname(filename:dirname(filename:absname(escript:script_name()))),
    {0, Commit} = git(Root, ["rev-parse", "--verify", "--quiet", "--end-of-options",
                             Revision ++ "^{commit}"], Revision),
    {0, Archive} = git(Root, ["archive", "--format=tar", string:trim(Commit), "src", "include"],
                       Revision),
    Folder = temporary(),
    try
        ok = erl_tar:extract({binary, Archive}, [{cwd, Folder}]),
        Sources = filelib:wildcard(filename:join(Folder, "src/**/*.erl")),
        [compiled(Source, Folder) || Source <- Sources, is_public(Source)]
    after
        file:del_dir_r(Folder)
    end.

temporary() ->
    Random = binary:decode_unsigned(crypto:strong_rand_bytes(8)),
    Folder = filename:join(os:getenv("TMPDIR", "/tmp"), lists:concat(["ats-interfaces-", Random])),
    ok = file:make_dir(Folder),
    Folder.

git(Root, Arguments, Revision) ->
    Git = os:find_executable("git"),
    Git =/= false orelse stop("there is no git here", []),
    Port = open_port({spawn_executable, Git},
                     [{args, Arguments}, {cd, Root}, exit_status, binary, hide]),
    case output(Port, []) of
        {0, _} = Done -> Done;
        _ -> stop("~ts is neither a folder nor a revision with modules", [Revision])
    end.

output(Port, Said) ->
    receive
        {Port, {data, Bytes}} -> output(Port, [Said, Bytes]);
        {Port, {exit_status, Status}} -> {Status, iolist_to_binary(Said)}
    end.

is_public(Source) ->
    {ok, Text} = file:read_file(Source),
    re:run(Text, "^%% @private", [multiline]) =:= nomatch.

compiled(Source, Folder) ->
    Options = [binary, debug_info, return_errors, {i, filename:join(Folder, "include")},
               {i, filename:dirname(Source)}],
    case compile:file(Source, Options) of
        {ok, _, Beam} -> Beam;
        {error, Errors, _} -> stop("~ts: ~tp", [filename:basename(Source), Errors])
    end.

exported(Beam) ->
    case beam_lib:chunks(Beam, [exports, abstract_code]) of
        {ok, {Module, [{exports, Functions}, {abstract_code, {_, Forms}}]}} ->
            Specs = maps:from_list([Spec || {attribute, _, spec, Spec} <- Forms]),
            Types = maps:from_list([{{Name, length(Variables)}, {Kind, Variables, Definition}}
                                    || {attribute, _, Kind, {Name, Definition, Variables}} <- Forms,
                                       Kind =:= type orelse Kind =:= opaque]),
            Public = lists:append([Names || {attribute, _, export_type, Names} <- Forms]),
            [{{Module, {function, Name, Arity}}, plain(maps:get({Name, Arity}, Specs, none))}
             || {Name, Arity} <- Functions, Name =/= module_info] ++
                [{{Module, {type, Name, Arity}}, definition(maps:get({Name, Arity}, Types))}
                 || {Name, Arity} <- Public] ++
                [{{Module, {callback, Name, Arity}}, plain(Clauses)}
                 || {attribute, _, callback, {{Name, Arity}, Clauses}} <- Forms];
        {ok, {Module, _}} ->
            stop("~w was compiled without debug_info", [Module]);
        {error, beam_lib, Reason} ->
            stop("~ts", [beam_lib:format_error(Reason)])
    end.

%% Users cannot depend on what an opaque type is.
definition({opaque, _, _}) -> opaque;
definition({type, Variables, Definition}) -> plain(Variables ++ [Definition]).

%% Takes away what does not matter to users: lines, names of arguments, and which names variables
%% have.
plain(Form) ->
    {Plain, _} = plain(Form, #{}),
    Plain.

plain({ann_type, _, [_, Type]}, Names) ->
    plain(Type, Names);
plain({var, _, '_'}, Names) ->
    {{var, '_'}, Names};
plain({var, _, Name}, Names) ->
    Known = maps:merge(#{Name => map_size(Names)}, Names),
    {{var, map_get(Name, Known)}, Known};
plain([First | Rest], Names) ->
    {Plain, Known} = plain(First, Names),
    {Others, All} = plain(Rest, Known),
    {[Plain | Others], All};
plain(Tuple, Names) when is_tuple(Tuple), tuple_size(Tuple) >= 3 ->
    {Parts, Known} = plain(tl(tuple_to_list(setelement(2, Tuple, 0))), Names),
    {{element(1, Tuple), Parts}, Known};
plain(Other, Names) ->
    {Other, Names}.

%% ----- changes -----

%% Returns the text from the first heading of a version to the next one.
first_part(File) ->
    case file:read_file(File) of
        {ok, Text} ->
            case re:split(Text, "^## .*$", [multiline]) of
                [_, Part | _] -> Part;
                [_] -> stop("~ts has no heading of a version", [File])
            end;
        {error, Reason} ->
            stop("~ts: ~ts", [File, file:format_error(Reason)])
    end.

%% Returns all that is in backquotes.
spans(Text) ->
    case re:run(Text, "`([^`]+)`", [global, {capture, all_but_first, binary}]) of
        {match, Spans} -> lists:append(Spans);
        nomatch -> []
    end.

is_named(Name, Spans) ->
    Word = <<"(?<![A-Za-z0-9_])", Name/binary, "(?![A-Za-z0-9_])">>,
    lists:any(fun(Span) -> re:run(Span, Word) =/= nomatch end, Spans).

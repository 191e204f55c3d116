%% Compiles tests that come with programs of others, and rewrites these programs by ats_try.
-module(ats_programs_build).

-export([build/3]).

%% Makes the folders `theirs' and `ours' in a folder, with the applications of each in `lib', and
%% beside them the files `theirs.flags' and `ours.flags', by which nodes find these, and `report'.
build(Row, Sources, Work) ->
    Theirs = filename:join(Work, "theirs/lib"),
    Ours = filename:join(Work, "ours/lib"),
    [compile_application(Path, Sources, Theirs) || Path <- maps:get(beside, Row, [])],
    Compiled = [compile_application(Path, Sources, Theirs)
                || {_, Path} <- maps:get(compiled, Row, [])],
    Parts = [part(App, Modules, Theirs) || {App, Modules} <- [maps:get(modules, Row, none)]],
    Folder = filename:join([Sources, maps:get(source, Row), maps:get(folder, Row, "")]),
    Tests = compile_tests(Row, Folder, Theirs),
    Libraries = [code:lib_dir(App) || App <- maps:get(applications, Row, [])],
    Rewritten = Libraries ++ Parts ++ Compiled ++ Tests,
    Report = ats_try:copy(Rewritten, Ours, [{except, maps:get(except, Row, [])}]),
    ok = file:write_file(filename:join(Work, "ats_try.report"),
                         unicode:characters_to_binary(ats_try:format(Report))),
    [copy_scripts(Folder, maps:get(empty, Row, []), Work) || is_map_key(exunit, Row)],
    write(Work, "theirs.flags", flags(ebins(Theirs))),
    write(Work, "ours.flags", flags(ebins(Ours) ++ beside(Theirs, Ours))),
    Names = [Module || #{module := Module} <- maps:get(modules, Report)],
    Sites = [{Module, Sites} || App <- Rewritten, File <- beams(App),
                                {Module, Sites} <- [sites(File)], lists:member(Module, Names)],
    write(Work, "report", io_lib:format("~p.~n", [#{rewritten => lists:sort(Sites)}])).

write(Work, Name, Text) -> ok = file:write_file(filename:join(Work, Name), Text).

flags([]) -> "";
flags(Ebins) -> ["-pa ", lists:join(" ", Ebins)].

ebins(Side) -> filelib:wildcard(filename:join(Side, "*/ebin")).

%% Returns folders of applications that are not rewritten.
beside(Theirs, Ours) ->
    Names = [filename:basename(filename:dirname(Ebin)) || Ebin <- ebins(Ours)],
    [Ebin || Ebin <- ebins(Theirs),
             not lists:member(filename:basename(filename:dirname(Ebin)), Names)].

beams(App) -> filelib:wildcard(filename:join(App, "ebin/*.beam")).

%% Returns the number of calls of `ets' that a module has.
sites(File) ->
    {beam_file, Module, _, _, _, Code} = beam_disasm:file(File),
    {Module, calls(Code)}.

calls({extfunc, ets, _, _}) -> 1;
calls(Tuple) when is_tuple(Tuple) -> calls(tuple_to_list(Tuple));
calls([First | Rest]) -> calls(First) + calls(Rest);
calls(_) -> 0.

%% Makes a folder of some modules of an application. Its name is another one, so that the folder
%% does not take the place of the whole application.
part(App, Modules, Theirs) ->
    Part = filename:join(Theirs, lists:concat([App, "_part"])),
    Ebin = filename:join(Part, "ebin"),
    ok = filelib:ensure_path(Ebin),
    [{ok, _} = file:copy(filename:join(code:lib_dir(App, ebin), lists:concat([Module, ".beam"])),
                         filename:join(Ebin, lists:concat([Module, ".beam"])))
     || Module <- Modules],
    Part.

copy(From, To) ->
    ok = filelib:ensure_dir(To),
    "" = os:cmd(lists:flatten(io_lib:format("cp -R ~ts ~ts", [From, To]))).

%% Copies tests that are scripts, and rewrites them, too.
copy_scripts(Folder, Empty, Work) ->
    [Theirs, Ours] = [filename:join(Work, Side) || Side <- ["theirs/source", "ours/source"]],
    [copy(Folder, Side) || Side <- [Theirs, Ours]],
    [write(Side, File, "") || Side <- [Theirs, Ours], File <- Empty],
    [begin
         {ok, Text} = file:read_file(File),
         write(Ours, File, re:replace(Text, "(?<![\\w:]):ets\\.", ":ats.", [global]))
     end || File <- filelib:wildcard(filename:join(Ours, "test/**/*.exs"))].

%% ----- sources -----

%% Compiles the suites, and modules beside them. Suites have more code than a compiler likes; to
%% optimise it would take longer than to run it.
compile_tests(#{ct := Chosen} = Row, Folder, Theirs) ->
    Test = filename:join(Folder, "test"),
    Suites = lists:usort([hd(string:lexemes(atom_to_list(Suite), ":")) || Suite <- Chosen]),
    Data = [Entry || Suite <- Suites,
                     Entry <- filelib:wildcard(lists:concat([Suite, "_data"]), Test)],
    compile_tests(Test, [filename:join(Test, lists:concat([Suite, ".erl"])) || Suite <- Suites] ++
                      helpers(Row, Test), Data ++ maps:get(data, Row, []),
                  [{i, code:lib_dir(App, include)} || App <- maps:get(applications, Row, [])] ++
                      [{d, Macro, Value} || {Macro, Value} <- maps:get(macros, Row, [])],
                  Theirs);
compile_tests(#{eunit := _} = Row, Folder, Theirs) ->
    Test = filename:join(Folder, "test"),
    compile_tests(Test, filelib:wildcard(filename:join(Test, "*.erl")), maps:get(data, Row, []),
                  [], Theirs);
compile_tests(_, _, _) ->
    [].

helpers(#{helpers := Names}, Test) ->
    [filename:join(Test, lists:concat([Name, ".erl"])) || Name <- Names];
helpers(_, Test) ->
    [File || File <- filelib:wildcard(filename:join(Test, "*.erl")),
             not lists:suffix("_SUITE.erl", File)].

compile_tests(_, [], _, _, _) ->
    [];
compile_tests(Test, Files, Data, Options, Theirs) ->
    Ebin = filename:join(Theirs, "tests/ebin"),
    Folder = filename:dirname(Test),
    %% Suites include headers that an installation does not have, by the name of the application.
    Named = filename:join(filename:dirname(Theirs), "headers"),
    ok = filelib:ensure_path(Named),
    ok = file:make_symlink(Folder, filename:join(Named, filename:basename(Folder))),
    Headers = [Test, Named, filename:join(Folder, "include"), filename:join(Folder, "src") |
               [Path || Path <- filelib:wildcard(filename:join(Folder, "src/**")),
                        filelib:is_dir(Path)]],
    compile(Files, Ebin, [debug_info, no_ssa_opt | [{i, Header} || Header <- Headers] ++ Options]),
    %% The debugger looks for sources beside modules.
    [copy(filename:join(Test, Entry), filename:join(Ebin, Entry))
     || Entry <- Data ++ [filename:basename(File) || File <- Files]],
    %% Programs in C that suites run. Those that are libraries cannot be linked, and are not needed.
    [os:cmd(lists:flatten(["cc -o ", filename:rootname(File), " ", File]))
     || File <- filelib:wildcard(filename:join(Ebin, "*_data/*.c"))],
    [filename:dirname(Ebin)].

%% Compiles an application with the tests that its modules have inside.
compile_application(Path, Sources, Theirs) ->
    Folder = filename:join(Sources, Path),
    [File] = filelib:wildcard(filename:join(Folder, "src/*.app.src")),
    {ok, [{application, App, Properties}]} = file:consult(File),
    To = filename:join(Theirs, App),
    Ebin = filename:join(To, "ebin"),
    compile(filelib:wildcard(filename:join(Folder, "src/**/*.erl")), Ebin,
            [debug_info, {i, filename:join(Folder, "include")}, {i, filename:join(Folder, "src")},
             {d, 'TEST'}]),
    Modules = [list_to_atom(filename:basename(Beam, ".beam")) || Beam <- beams(To)],
    Told = lists:keystore(modules, 1, lists:keystore(vsn, 1, Properties, {vsn, "1"}),
                          {modules, Modules}),
    write(Ebin, lists:concat([App, ".app"]), io_lib:format("~p.~n", [{application, App, Told}])),
    To.

%% Compiles modules into a folder. Those that want another one of them first come again. Modules
%% that cannot be compiled here are told in a file.
compile(Files, Ebin, Options) ->
    ok = filelib:ensure_path(Ebin),
    true = code:add_patha(Ebin),
    compile(Files, Ebin, [{outdir, Ebin}, return, nowarn_export_all | Options], length(Files)).

compile(Files, Ebin, Options, Before) ->
    Results = [{File, compile:file(File, Options)} || File <- Files],
    case [{File, Errors} || {File, {error, Errors, _}} <- Results] of
        [] ->
            ok;
        Failed when length(Failed) < Before ->
            compile([File || {File, _} <- Failed], Ebin, Options, length(Failed));
        Failed ->
            write(Ebin, "../not_compiled", io_lib:format("~tp.~n", [Failed]))
    end.

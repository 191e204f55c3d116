#!/usr/bin/env escript
%% -*- erlang -*-
%% Looks for contradictions between types, with Dialyzer, in compiled modules.
%%
%%   scripts/dialyze.escript FOLDER...
%%
%% Of Erlang/OTP, Dialyzer reads the modules that these ones call and whose types they name, and
%% those whose types these name in turn: a fifth of the modules of the applications that they are
%% part of, and a tenth of the time. Each warning is printed; the status is 1 if there is any.

%% Modules that call modules of tests or of other projects, which are not there.
-define(LEFT_OUT, ["ats_demo_cluster", "ats_bench_mnesia", "ats_bench_disk"]).

main(Folders) ->
    Files = [File || Folder <- Folders,
                     File <- filelib:wildcard(filename:join(Folder, "*.beam")),
                     not lists:member(filename:basename(File, ".beam"), ?LEFT_OUT)],
    Own = [list_to_atom(filename:basename(File, ".beam")) || File <- Files],
    Others = lists:usort([M || File <- Files, M <- called(File) ++ named(File)]) -- Own,
    Plt = filename:join(filename:dirname(hd(Folders)), "types.plt"),
    Known = with_types(Others, []),
    %% What the modules of Erlang/OTP do not know of each other is of no interest here.
    _ = dialyzer:run([{analysis_type, plt_build}, {output_plt, Plt}, {files, Known}]),
    Warnings = dialyzer:run([{init_plt, Plt}, {files, Files},
                             {warnings, [unmatched_returns, unknown]}]),
    [io:put_chars(dialyzer:format_warning(Warning)) || Warning <- Warnings],
    io:format("~b modules, beside ~b of Erlang/OTP: ~b warnings~n",
              [length(Files), length(Known), length(Warnings)]),
    halt(min(1, length(Warnings))).

%% Returns the files of modules, and of those whose types they name.
with_types([], Files) ->
    lists:reverse(Files);
with_types([Module | Modules], Files) ->
    case file_of(Module) of
        none -> with_types(Modules, Files);
        File ->
            case lists:member(File, Files) of
                true -> with_types(Modules, Files);
                false -> with_types(Modules ++ named(File), [File | Files])
            end
    end.

file_of(Module) ->
    case code:which(Module) of
        preloaded ->
            Release = filename:join([code:root_dir(), "lib", "erts-" ++ erlang:system_info(version)]),
            filename:join([Release, "ebin", atom_to_list(Module) ++ ".beam"]);
        File when is_list(File), File =/= [] -> File;
        _ -> none
    end.

%% Returns the modules that a module calls.
called(File) ->
    {ok, {_, [{imports, Imports}]}} = beam_lib:chunks(File, [imports]),
    [Module || {Module, _, _} <- Imports].

%% Returns the modules whose types a module names.
named(File) ->
    {ok, {_, [{abstract_code, {_, Forms}}]}} = beam_lib:chunks(File, [abstract_code]),
    lists:usort(named_in(Forms, [])).

named_in({remote_type, _, [{atom, _, Module} | Type]}, Modules) ->
    named_in(Type, [Module | Modules]);
named_in(Term, Modules) when is_tuple(Term) ->
    named_in(tuple_to_list(Term), Modules);
named_in([Head | Tail], Modules) ->
    named_in(Tail, named_in(Head, Modules));
named_in(_, Modules) ->
    Modules.

#!/usr/bin/env escript
%% Writes the package as hex has it, without sending it anywhere: the archive that `rebar3 hex
%% build` and `mix hex.build` write, where those are not installed.
%%
%%   escript scripts/package.escript TARBALL
%%
%% The files and the metadata are those of src/ats.app.src. The format is that of the functions for
%% archives which are part of rebar3.
-mode(compile).

main([Tarball]) ->
    load_rebar3(["r3_hex_tarball", "r3_hex_core", "r3_hex_erl_tar", "r3_hex_filename"]),
    Root = filename:dirname(filename:dirname(filename:absname(escript:script_name()))),
    ok = file:set_cwd(Root),
    {ok, [{application, ats, Properties}]} = file:consult("src/ats.app.src"),
    Files = lists:usort(lists:append([files(P) || P <- proplists:get_value(files, Properties)])),
    {ok, #{tarball := Bytes}} = r3_hex_tarball:create(metadata(Properties), Files),
    ok = file:write_file(Tarball, Bytes),
    io:format("~ts: ~b files, ~b bytes~n", [Tarball, length(Files), byte_size(Bytes)]).

load_rebar3(Modules) ->
    {ok, Sections} = escript:extract(os:find_executable("rebar3"), []),
    Wanted = ["rebar/ebin/" ++ Module ++ ".beam" || Module <- Modules],
    {ok, Found} = zip:unzip(proplists:get_value(archive, Sections),
                            [memory, {file_filter, fun(File) ->
                                                       lists:member(element(2, File), Wanted)
                                                   end}]),
    [{module, _} = code:load_binary(list_to_atom(filename:basename(File, ".beam")), File, Beam)
     || {File, Beam} <- Found].

%% A folder stands for all that is in it. What is not there, a list of precompiled libraries for
%% example, is left out.
files(Pattern) ->
    lists:append([case filelib:is_dir(Name) of
                      true -> files(filename:join(Name, "*"));
                      false -> [Name]
                  end || Name <- filelib:wildcard(Pattern)]).

metadata(Properties) ->
    Text = fun(Key) -> unicode:characters_to_binary(proplists:get_value(Key, Properties)) end,
    Texts = fun(Key) -> [list_to_binary(T) || T <- proplists:get_value(Key, Properties)] end,
    #{<<"name">> => <<"ats">>, <<"app">> => <<"ats">>, <<"version">> => Text(vsn),
      <<"description">> => Text(description), <<"licenses">> => Texts(licenses),
      <<"build_tools">> => Texts(build_tools), <<"requirements">> => #{},
      <<"links">> => maps:from_list([{list_to_binary(Name), list_to_binary(Address)}
                       || {Name, Address} <- proplists:get_value(links, Properties)])}.

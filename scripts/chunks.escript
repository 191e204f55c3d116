#!/usr/bin/env escript
%% Writes chunks of documentation of modules; see chunks.sh. EDoc knows no groups of functions: the
%% comment in front of an export list is the name of a group, which is added to the metadata of the
%% functions, where ex_doc finds it, and the groups with their functions to the documentation of the
%% module, which is what `h(Module)' shows. EDoc lists functions that are not exported, too; they are
%% taken out.

main([Folder | Sources]) ->
    case code:which(edoc) of
        non_existing ->
            io:put_chars(standard_error, "chunks: Erlang/OTP has no EDoc here\n"),
            halt(1);
        _ ->
            ok = edoc:files(Sources, [{doclet, edoc_doclet_chunks}, {layout, edoc_layout_chunks},
                                      {preprocess, true}, {dir, Folder}]),
            lists:foreach(fun(Source) -> finish(Folder, Source) end, Sources)
    end.

finish(Folder, Source) ->
    Module = filename:basename(Source, ".erl"),
    File = filename:join([Folder, "chunks", Module ++ ".chunk"]),
    {ok, Chunk} = file:read_file(File),
    {ok, Forms} = epp:parse_file(Source, []),
    Exported = lists:append([Functions || {attribute, _, export, Functions} <- Forms]),
    {ok, Text} = file:read_file(Source),
    Groups = groups(Text),
    Docs = binary_to_term(Chunk),
    Entries = [with_group(Entry, Groups) || Entry <- element(7, Docs), is_public(Entry, Exported)],
    Listed = setelement(5, Docs, with_list(element(5, Docs), Groups)),
    ok = file:write_file(File, term_to_binary(setelement(7, Listed, Entries), [compressed])).

%% Adds the functions of each group, if there are groups, to the documentation of a module.
with_list(#{<<"en">> := Text} = Doc, [_ | _] = Groups) ->
    Titles = lists:foldr(fun({_, Title}, Rest) -> [Title | lists:delete(Title, Rest)] end, [],
                         Groups),
    Listed = [[{dt, [], [Title]},
               {dd, [], [{code, [], [functions([F || {F, T} <- Groups, T =:= Title])]}]}]
              || Title <- Titles],
    Doc#{<<"en">> := Text ++ [{h4, [], [<<"Functions">>]}, {dl, [], lists:append(Listed)}]};
with_list(Doc, _Groups) ->
    Doc.

functions(Functions) ->
    Named = [[Name, "/", Arity] || [Name, Arity] <- Functions],
    unicode:characters_to_binary(lists:join(", ", Named)).

%% Returns the exported functions, each with its group, as texts.
groups(Text) ->
    Group = "^%% (.*)\n((?:-export\\(.*\n)+)",
    [{[Name, Arity], Title}
     || [Title, Exports] <- all_matches(Text, Group),
        [Name, Arity] <- all_matches(Exports, "([a-z0-9_]+)/([0-9]+)")].

all_matches(Text, Pattern) ->
    case re:run(Text, Pattern, [global, multiline, {capture, all_but_first, binary}]) of
        {match, Matches} -> Matches;
        nomatch -> []
    end.

is_public({{function, Name, Arity}, _, _, _, _}, Exported) -> lists:member({Name, Arity}, Exported);
is_public(_Entry, _Exported) -> true.

with_group({{function, Name, Arity} = Id, Anno, Signature, Doc, Metadata}, Groups) ->
    case lists:keyfind([atom_to_binary(Name), integer_to_binary(Arity)], 1, Groups) of
        {_, Group} -> {Id, Anno, Signature, Doc, Metadata#{group => Group}};
        false -> {Id, Anno, Signature, Doc, Metadata}
    end;
with_group(Entry, _Groups) ->
    Entry.

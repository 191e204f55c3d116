%% Pages of the documentation that tests write: comparing and writing them, and texts from the
%% documentation of modules.
-module(ats_docs_page).

-include_lib("stdlib/include/assert.hrl").
-include_lib("xmerl/include/xmerl.hrl").

-export([compare/3, briefs/1, groups/1, in_scratch_directory/3]).

%% Checks that a page of `docs/use' is up to date, or writes it if ATS_WRITE_DOCS is set. `Rest'
%% returns the part from the documentation of modules.
-spec compare(file:filename(), iodata(), fun(() -> iodata())) -> ok.
compare(Name, Table, Rest) ->
    File = filename:join([ats_test_lib:project(), "docs", "use", Name]),
    case os:getenv("ATS_WRITE_DOCS") of
        false ->
            {ok, Page} = file:read_file(File),
            Found = lines(Page),
            Expected = lines(Table),
            %% `make functions' writes it.
            ?assertEqual(Expected, lists:sublist(Found, length(Expected))),
            %% The rest is the same on all releases. Not every machine has EDoc.
            code:which(edoc) =:= non_existing orelse
                ?assertEqual(lines([Table, Rest()]), Found),
            ok;
        _ ->
            ok = file:write_file(File, unicode:characters_to_binary([Table, Rest()]))
    end.

lines(Text) ->
    string:lexemes(unicode:characters_to_binary(Text), "\n").

%% The first sentence of the documentation of each function.
-spec briefs(module()) -> #{{atom(), arity()} => iodata()}.
briefs(Module) ->
    Source = proplists:get_value(source, Module:module_info(compile)),
    {_, Documentation} = edoc:get_doc(Source, [{preprocess, true}]),
    maps:from_list([
        {{attribute(name, F), attribute(arity, F)}, brief(F)}
     || F <- xmerl_xpath:string("//function", Documentation)
    ]).

%% The groups of the functions of a module, in order: each has a comment in front of its exports.
-spec groups(module()) -> [{Title :: string(), [{atom(), arity()}]}].
groups(Module) ->
    {ok, Source} = file:read_file(proplists:get_value(source, Module:module_info(compile))),
    Options = [global, multiline, {capture, all_but_first, list}],
    {match, Groups} = re:run(Source, "^%% (.*)\n((?:-export\\(.*\n)+)", Options),
    [{Title, exports(Exports, Options)} || [Title, Exports] <- Groups].

exports(Text, Options) ->
    {match, Functions} = re:run(Text, "([a-z0-9_]+)/([0-9]+)", Options),
    [{list_to_atom(Name), list_to_integer(Arity)} || [Name, Arity] <- Functions].

attribute(arity, Element) -> list_to_integer(attribute("arity", Element));
attribute(name, Element) -> list_to_atom(attribute("name", Element));
attribute(Name, Element) ->
    #xmlObj{value = Value} = xmerl_xpath:string("string(@" ++ Name ++ ")", Element),
    Value.

brief(Function) ->
    case xmerl_xpath:string("description/briefDescription | equiv/expr", Function) of
        [#xmlElement{name = expr, content = Content}] -> ["the same as `", text(Content), "`"];
        [#xmlElement{content = Content} | _] -> on_one_line(text(Content))
    end.

on_one_line(Text) ->
    re:replace(unicode:characters_to_binary(Text), "\\s+", " ", [global, {return, binary}]).

text(Content) -> lists:map(fun text_of/1, Content).

text_of(#xmlText{value = Value}) -> Value;
text_of(#xmlElement{name = code, content = [#xmlElement{} | _] = Content}) -> text(Content);
text_of(#xmlElement{name = N, content = Content}) when N =:= code; N =:= tt ->
    ["`", text(Content), "`"];
text_of(#xmlElement{content = Content}) -> text(Content).

%% Some of the wrong arguments are names of files, and some of those can be written.
-spec in_scratch_directory([{atom(), term()}], file:filename(), fun(() -> Answer)) -> Answer.
in_scratch_directory(Config, Name, Fun) ->
    {ok, Here} = file:get_cwd(),
    Scratch = filename:join(proplists:get_value(priv_dir, Config), Name),
    ok = filelib:ensure_path(Scratch),
    ok = file:set_cwd(Scratch),
    try
        Fun()
    after
        ok = file:set_cwd(Here)
    end.

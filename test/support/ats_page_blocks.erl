%% Blocks of code of the pages of the documentation: finding them, and evaluating those in Erlang.
-module(ats_page_blocks).

-export([pages/0, blocks/1, blocks/2, ways/0, evaluate/2, compile/3, at/2]).

-export_type([block/0]).

%% The language is all that stands behind the fence.
-type block() :: {Language :: string(), Text :: string()}.

%% Folders that have nothing of the project's own.
-define(SKIPPED, ["_build", "target", "deps", "node_modules"]).

%% Returns all pages of the project, as paths from its folder.
-spec pages() -> [file:filename()].
pages() ->
    lists:sort(pages("")).

pages(Folder) ->
    {ok, Names} = file:list_dir(filename:join(ats_test_lib:project(), Folder)),
    lists:flatmap(
        fun(Name) ->
            Path = case Folder of "" -> Name; _ -> filename:join(Folder, Name) end,
            IsFolder = filelib:is_dir(filename:join(ats_test_lib:project(), Path)),
            case {IsFolder, filename:extension(Name)} of
                {true, _} -> [Page || is_own(Name), Page <- pages(Path)];
                {false, ".md"} -> [Path];
                {false, _} -> []
            end
        end,
        Names
    ).

is_own("." ++ _) -> false;
is_own(Name) -> not lists:member(Name, ?SKIPPED).

%% Returns the blocks of a page, in order.
-spec blocks(file:filename()) -> [block()].
blocks(Page) ->
    {ok, Text} = file:read_file(filename:join(ats_test_lib:project(), Page)),
    Fence = "^( *)```([^\n]*)\n(.*?)^ *```$",
    Found = case re:run(Text, Fence, [global, multiline, dotall, {capture, [1, 2, 3], binary}]) of
        nomatch -> [];
        {match, Blocks} -> Blocks
    end,
    %% Blocks that are written in another way are not overlooked.
    Fences = re:split(Text, "^[ >]*(?:```|~~~)", [multiline]),
    length(Fences) =:= 2 * length(Found) + 1 orelse error({fences, Page}),
    [block(Block) || Block <- Found].

block([Indent, Language, Text]) ->
    Lines = re:replace(Text, ["^", Indent], "", [global, multiline]),
    {unicode:characters_to_list(Language), unicode:characters_to_list(Lines)}.

%% Returns the texts of the blocks of a page in one language, in order.
-spec blocks(file:filename(), Language :: string()) -> [string()].
blocks(Page, Language) ->
    [Text || {Other, Text} <- blocks(Page), Other =:= Language].

%% Returns how the blocks of each page run; the file tells more.
-spec ways() -> [{Page :: file:filename(), Language :: string(), Way :: term()}].
ways() ->
    File = filename:join([ats_test_lib:project(), "test", "moving", "pages.terms"]),
    {ok, Ways} = file:consult(File),
    Ways.

%% Evaluates a block, or loads the module that it is. Returns the bindings afterwards.
-spec evaluate(string(), Bindings) -> Bindings when Bindings :: erl_eval:binding_struct().
evaluate("-module(" ++ _ = Module, Bindings) ->
    {ok, Here} = file:get_cwd(),
    {match, [Name]} = re:run(Module, "^-module\\(([a-z0-9_]+)\\)", [{capture, [1], list}]),
    _ = compile(Name, Module, [{outdir, Here}]),
    Bindings;
evaluate(Text, Bindings) ->
    {ok, Tokens, _} = erl_scan:string(Text),
    {ok, Expressions} = erl_parse:parse_exprs(Tokens),
    {value, _, After} = erl_eval:exprs(Expressions, Bindings),
    After.

%% Compiles a module in the current directory, without warnings, and loads it.
-spec compile(Name :: string(), Text :: string(), [compile:option()]) -> module().
compile(Name, Text, Options) ->
    File = Name ++ ".erl",
    ok = file:write_file(File, unicode:characters_to_binary(Text)),
    Silent = [binary, return_errors, warnings_as_errors, report_warnings],
    {ok, Module, Code} = compile:file(File, Silent ++ Options),
    _ = code:purge(Module),
    {module, Module} = code:load_binary(Module, File, Code),
    Module.

%% Returns a block whose files are in a directory; its name ends with a slash if it has any.
-spec at(Directory :: string(), string()) -> string().
at(Directory, Text) ->
    Parts = re:split(Text, "/tmp/|/var/lib/|/backup/", [unicode, {return, list}]),
    string:join(Parts, Directory).

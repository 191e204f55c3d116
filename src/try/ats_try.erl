%% @doc A copy of a compiled application that uses `ats' where the original uses `ets', to try `ats'
%% without its source.
%%
%% ```
%% ats try APPLICATION... OUT
%% erl -noinput -pa _build/default/lib/*/ebin -run ats_try main APPLICATION... OUT
%% '''
%%
%% The first is the command of the crate `ats-cli', which starts Erlang.
%%
%% An application is a name or a folder. The copies go to the folder OUT, which a virtual machine
%% finds by `ERL_LIBS=OUT'; the originals stay as they are. Applications written in Erlang, Elixir
%% or Gleam are the same in this.
%%
%% Only files in the folder of an application are copied: no pipes or the like, and nothing outside.
%% Links that lead outside lead to the same place in the copy. The report names both.
%%
%% Other code stays with `ets'. A table that it shares with the copied applications is not found
%% there, and the report names such tables as far as their names are written out. Tables that are
%% handed over in variables are not seen; give all applications that share tables in one call.
-module(ats_try).

-export([main/1, copy/2, copy/3, format/1]).

-export_type([report/0, option/0]).

-type report() ::
        #{modules := [ats_try_beam:findings()],
          places := [{module(), [ats_try_places:place()]}],
          shared := [{Table :: atom(), [module()]}],
          unmade := [{Table :: atom(), [module()]}],
          outside := [file:filename_all()],
          left_out := [file:filename_all()],
          unread := [file:filename_all()],
          copies := [file:filename()]}.
%% `places' are those of copied modules, with or without calls of `ets', that see the inside of
%% `ets', or mean another thing in the copy. `shared' has tables that modules outside use too, and
%% these modules; `unmade' has tables that the copied modules use but nobody in the copies creates,
%% at least not under a name that is written out. `outside' are links that lead outside, `left_out'
%% things that are no files, and `unread' files of `ebin' that are no modules that this release can
%% read, which stay as they are.
-type option() :: {except, [module()]}.
%% Modules that stay with `ets'.

%% @doc Copies applications, and prints the report, for the command line. The words `--except
%% MODULE' name a module that stays as it is; `erl' hands them on behind `-extra' only, which `ats
%% try' knows.
-spec main([string()]) -> no_return().
main(Arguments) ->
    Encoding = case file:native_name_encoding() of
                   utf8 -> unicode;
                   latin1 -> latin1
               end,
    _ = [io:setopts(Device, [{encoding, Encoding}]) || Device <- [standard_io, standard_error]],
    {Words, Options} = options(Arguments, [], []),
    case lists:reverse(Words) of
        [Out, _ | _] ->
            Names = lists:droplast(Words),
            try copy(Names, Out, [{except, Options}]) of
                Report ->
                    io:put_chars(format(Report)),
                    halt(0)
            catch
                throw:{ats_try, Text} ->
                    io:format(standard_error, "ats_try: ~ts~n", [Text]),
                    halt(1)
            end;
        _ ->
            io:put_chars(standard_error,
                         "usage: ats_try [--except MODULE]... APPLICATION... OUT\n"),
            halt(2)
    end.

-spec options([string()], [string()], [module()]) -> {[string()], [module()]}.
options(["--except", Module | Rest], Words, Except) ->
    options(Rest, Words, [list_to_atom(Module) | Except]);
options([Word | Rest], Words, Except) ->
    options(Rest, [Word | Words], Except);
options([], Words, Except) ->
    {lists:reverse(Words), Except}.

%% @equiv copy(Applications, Out, [])
-spec copy([Application :: file:name_all()], Out :: file:name_all()) -> report().
copy(Applications, Out) ->
    copy(Applications, Out, []).

%% @doc Copies applications into the folder `Out' and returns the findings. Throws `{ats_try, Text}'
%% if that cannot be done.
-spec copy([Application :: file:name_all()], Out :: file:name_all(), [option()]) -> report().
copy(Applications, Out, Options) ->
    Except = proplists:get_value(except, Options, []),
    Folders = [folder(Application) || Application <- Applications],
    {Copies, Told} = lists:unzip(copy_folders(Folders, Out)),
    Looked = [patch_file(File, Except) || Copy <- Copies, File <- beams(Copy),
                                          ats_try_files:is_inside(File, Copy)],
    Modules = [Findings || {patched, Findings} <- Looked],
    Outside = [Findings || {kept, Findings} <- Looked] ++
        [Findings || Folder <- required(Copies, Folders), File <- beams(Folder),
                     #{} = Findings <- [ats_try_beam:look(read(File))]],
    Created = lists:append([maps:get(created, M) || M <- Modules]),
    Used = lists:usort(lists:append([maps:get(used, M) || M <- Modules])),
    Shared = [{Table, Users} || Table <- lists:usort(Created ++ Used),
                                Users <- [users(Table, Outside)], Users =/= []],
    #{modules => Modules,
      places => places_in([Findings || {Is, #{} = Findings} <- Looked, Is =/= kept]),
      shared => Shared,
      unmade => [{Table, users(Table, Modules)} || Table <- Used -- Created,
                                                   not lists:keymember(Table, 1, Shared)],
      outside => [File || {outside, File} <- lists:append(Told)],
      left_out => [File || {left_out, File} <- lists:append(Told)],
      unread => [File || {unread, File} <- Looked],
      copies => Copies}.

%% A module in a variable can be `ets' only if the atom is somewhere. That a module outside hands it
%% in is not seen.
-spec places_in([ats_try_beam:findings()]) -> [{module(), [ats_try_places:place()]}].
places_in(Findings) ->
    IsSomewhere = lists:any(fun(#{data := Number}) -> Number > 0 end, Findings),
    [{Module, Kept} || #{module := Module, places := Places} <- Findings,
                       Kept <- [[Place || Place <- Places,
                                          IsSomewhere orelse element(3, Place) =:= certain]],
                       Kept =/= []].

-spec users(atom(), [ats_try_beam:findings()]) -> [module()].
users(Table, Findings) ->
    lists:sort([Module || #{module := Module, created := Created, used := Used} <- Findings,
                          lists:member(Table, Created) orelse lists:member(Table, Used)]).

%%--------------------------------------------------------------------------------------------
%% Files
%%--------------------------------------------------------------------------------------------

-spec folder(file:name_all()) -> file:filename().
folder(Application) ->
    Name = unicode:characters_to_list(Application),
    case {filelib:is_dir(filename:join(Name, "ebin")), code:lib_dir(list_to_atom(Name))} of
        {true, _} -> Name;
        {false, {error, bad_name}} -> refuse("there is no application ~ts", [Name]);
        {false, Folder} -> Folder
    end.

-spec refuse(io:format(), [term()]) -> no_return().
refuse(Format, Arguments) ->
    throw({ats_try, unicode:characters_to_list(io_lib:format(Format, Arguments))}).

%% Copies all folders. No copy is left if one of them cannot be copied.
-spec copy_folders([file:filename()], file:name_all()) ->
          [{Copy :: file:filename(), [ats_try_files:told()]}].
copy_folders([], _) ->
    [];
copy_folders([Folder | Folders], Out) ->
    Copy = filename:join(unicode:characters_to_list(Out), name(Folder)),
    _ = filelib:is_file(Copy) andalso refuse("~ts is there already", [Copy]),
    Told = try ats_try_files:copy(Folder, Copy, Out)
           catch
               throw:{File, Reason} -> refuse("~ts: ~ts", [text(File), file:format_error(Reason)])
           end,
    try [{Copy, Told} | copy_folders(Folders, Out)]
    catch
        throw:Refused ->
            _ = file:del_dir_r(Copy),
            throw(Refused)
    end.

-spec name(file:filename()) -> file:filename().
name(Folder) ->
    case filename:basename(Folder) of
        [$. | _] -> text(filename:basename(ats_try_files:real(Folder)));
        Name -> Name
    end.

%% A name may be bytes that are no text.
-spec text(file:filename_all()) -> string().
text(File) when is_list(File) ->
    File;
text(File) ->
    case unicode:characters_to_list(File, file:native_name_encoding()) of
        Text when is_list(Text) -> Text;
        _ -> lists:flatten(io_lib:format("~0tp", [File]))
    end.

-spec beams(file:filename()) -> [file:filename_all()].
beams(Folder) ->
    ats_try_files:files(filename:join(Folder, "ebin"), ".beam").

-spec read(file:filename_all()) -> binary().
read(File) ->
    case file:read_file(File) of
        {ok, Bytes} -> Bytes;
        {error, Reason} -> refuse("~ts: ~ts", [text(File), file:format_error(Reason)])
    end.

-spec patch_file(file:filename_all(), [module()]) ->
          {patched | kept | unconcerned, ats_try_beam:findings()} | {unread, file:filename_all()}.
patch_file(File, Except) ->
    Beam = read(File),
    case ats_try_beam:look(Beam) of
        #{module := Module} = Findings ->
            case lists:member(Module, Except) orelse ats_try_beam:patch(Beam) of
                true ->
                    {kept, Findings};
                unchanged ->
                    {unconcerned, Findings};
                {ok, Patched} ->
                    ok = ats_try_files:replace(File, Patched),
                    {patched, Findings#{carried => ats_try_beam:carried(Beam)}}
            end;
        unread ->
            {unread, File}
    end.

%% Returns the folders of the applications that the copied ones need, other than themselves.
-spec required([file:filename()], [file:filename()]) -> [file:filename()].
required(Copies, Folders) ->
    Needed = lists:usort(lists:append([needs(Copy) || Copy <- Copies])),
    [Folder || Application <- Needed, Folder <- [code:lib_dir(Application)], is_list(Folder),
               not lists:member(Folder, Folders)].

-spec needs(file:filename()) -> [atom()].
needs(Copy) ->
    [Application || File <- ats_try_files:files(filename:join(Copy, "ebin"), ".app"),
                    ats_try_files:is_inside(File, Copy),
                    {ok, [{application, _, Properties}]} <- [file:consult(File)],
                    Key <- [applications, included_applications, optional_applications],
                    Application <- proplists:get_value(Key, Properties, [])].

%%--------------------------------------------------------------------------------------------
%% The report
%%--------------------------------------------------------------------------------------------

%% @doc Returns a report as text.
-spec format(report()) -> unicode:chardata().
format(#{modules := Modules, shared := Shared, unmade := Unmade, copies := Copies} = Report) ->
    [[io_lib:format("~ts~n", [Copy]) || Copy <- Copies],
     io_lib:format("~n~b modules call ats in the place of ets:~n", [length(Modules)]),
     [format_module(Findings) || Findings <- Modules],
     section("Tables that modules outside use, too, which stay with ets", Shared),
     section("Tables that no module in the copies creates by this name", Unmade),
     section("Code for coverage and mocks that cannot be read, which the copies do not have",
             [{M, [debug_info]} || #{module := M, carried := unread} <- Modules]),
     places(maps:get(places, Report)),
     files("Links that lead outside, which the copies share", maps:get(outside, Report)),
     files("Left out, because these are no files or the copies", maps:get(left_out, Report)),
     files("No modules that can be read, which stay as they are", maps:get(unread, Report))].

-spec files(string(), [file:filename_all()]) -> unicode:chardata().
files(_, []) ->
    [];
files(Title, Files) ->
    [io_lib:format("~n~ts:~n", [Title]), [io_lib:format("  ~ts~n", [text(F)]) || F <- Files]].

%% One place is one line.
-spec places([{module(), [ats_try_places:place()]}]) -> unicode:chardata().
places([]) ->
    [];
places(Modules) ->
    ["\nPlaces that see the inside of ets, or mean another thing (see differences-from-ets):\n",
     [io_lib:format("  ~ts ~tw/~b: ~ts~n", [where(Module, Line), Name, Arity, Text])
      || {Module, Places} <- Modules, {{Name, Arity}, Line, _, Text} <- Places]].

-spec where(module(), ats_try_lines:line()) -> unicode:chardata().
where(Module, unknown) -> io_lib:format("~tw", [Module]);
where(Module, {File, Line}) -> io_lib:format("~tw (~ts:~b)", [Module, File, Line]);
where(Module, Line) -> io_lib:format("~tw:~b", [Module, Line]).

-spec format_module(ats_try_beam:findings()) -> unicode:chardata().
format_module(#{module := Module, calls := Calls, applied := Applied}) ->
    Names = [io_lib:format("~tw/~b", [Function, Arity]) || {Function, Arity} <- Calls] ++
        [io_lib:format("~b in variables", [Applied]) || Applied > 0],
    io_lib:format("  ~tw: ~ts~n", [Module, lists:join(", ", Names)]).

-spec section(string(), [{term(), [term()]}]) -> unicode:chardata().
section(_, []) ->
    [];
section(Title, Lines) ->
    [io_lib:format("~n~ts:~n", [Title]),
     [io_lib:format("  ~tw: ~ts~n",
                    [Item, lists:join(", ", [io_lib:format("~tw", [D]) || D <- Details])])
      || {Item, Details} <- Lines]].

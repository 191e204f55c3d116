%% @private
%% @doc Copies of the folders of applications, which read nothing outside them.
%%
%% A link that leads to a place in the folder becomes a link to that place in the copy, whether that
%% exists or not. One that leads outside becomes a link to the same place. Anything but a file, a
%% folder or a link is left out, and so is a link outside that leads to such a thing.
-module(ats_try_files).

-include_lib("kernel/include/file.hrl").

-export([copy/3, files/2, is_inside/2, real/1, replace/2]).

-export_type([told/0]).

-type told() :: {outside | left_out, file:filename_all()}.
%% Things that a copy lacks, and links that lead outside.

-record(tour, {root :: binary(), made :: [binary()]}).
%% `made' are folders of copies, which may be in the folder.

%% The most links in a path.
-define(LINKS, 40).

%% @doc Copies a folder to another one, which is made. `Out' is not copied. Throws `{File, Reason}',
%% and leaves nothing then.
-spec copy(file:name_all(), file:name_all(), Out :: file:name_all()) -> [told()].
copy(Folder, Copy, Out) ->
    Root = real(Folder),
    ok = check(Copy, filelib:ensure_dir(Copy)),
    ok = check(Copy, file:make_dir(Copy)),
    try copy_names(Root, native(Copy), #tour{root = Root, made = [real(Out), real(Copy)]})
    catch
        Class:Reason:Stack ->
            _ = file:del_dir_r(Copy),
            erlang:raise(Class, Reason, Stack)
    end.

-spec check(file:name_all(), ok | {ok, term()} | {error, term()}) -> ok.
check(_, ok) -> ok;
check(_, {ok, _}) -> ok;
check(File, {error, Reason}) -> throw({File, Reason}).

-spec copy_names(binary(), binary(), #tour{}) -> [told()].
copy_names(From, To, Tour) ->
    case file:list_dir_all(From) of
        {ok, Names} ->
            lists:append([copy_any(filename:join(From, Name), filename:join(To, Name), Tour)
                          || Name <- lists:sort(Names)]);
        {error, Reason} ->
            throw({From, Reason})
    end.

-spec copy_any(binary(), binary(), #tour{}) -> [told()].
copy_any(From, To, #tour{made = Made} = Tour) ->
    case file:read_link_info(From) of
        {ok, #file_info{type = directory}} ->
            case lists:member(From, Made) of
                true ->
                    [{left_out, From}];
                false ->
                    ok = check(To, file:make_dir(To)),
                    copy_names(From, To, Tour)
            end;
        {ok, #file_info{type = symlink}} ->
            copy_link(From, To, Tour);
        {ok, #file_info{type = regular} = Info} ->
            ok = check(From, file:copy(From, To)),
            ok = set_mode(To, Info),
            [];
        {ok, _} ->
            [{left_out, From}];
        {error, Reason} ->
            throw({From, Reason})
    end.

%% The owner stays who makes the copy.
-spec set_mode(file:name_all(), file:file_info()) -> ok.
set_mode(File, #file_info{mode = Mode, mtime = Changed}) ->
    check(File, file:write_file_info(File, #file_info{mode = Mode, mtime = Changed})).

-spec copy_link(binary(), binary(), #tour{}) -> [told()].
copy_link(From, To, #tour{root = Root}) ->
    Target = real(From),
    case parts_below(Root, Target) of
        {ok, Parts} ->
            {ok, Own} = parts_below(Root, filename:dirname(From)),
            ok = check(To, file:make_symlink(relative(Own, Parts), To)),
            [];
        none ->
            case file:read_file_info(From) of
                {ok, #file_info{type = Type}} when Type =:= regular; Type =:= directory ->
                    ok = check(To, file:make_symlink(Target, To)),
                    [{outside, From}];
                _ ->
                    [{left_out, From}]
            end
    end.

-spec relative([binary()], [binary()]) -> binary().
relative([Same | From], [Same | To]) -> relative(From, To);
relative(From, To) ->
    case [<<"..">> || _ <- From] ++ To of
        [] -> <<".">>;
        Parts -> filename:join(Parts)
    end.

%% @doc Returns the regular files in a folder whose names have that ending, in their order.
-spec files(file:name_all(), Ending :: string()) -> [file:filename_all()].
files(Folder, Ending) ->
    Names = case file:list_dir_all(Folder) of
                {ok, All} -> lists:sort(All);
                {error, _} -> []
            end,
    [File || Name <- Names, native(filename:extension(Name)) =:= native(Ending),
             File <- [filename:join(Folder, Name)], filelib:is_regular(File)].

%% @doc Returns `true' if a file is in a folder, and not only a link to it.
-spec is_inside(file:name_all(), Folder :: file:name_all()) -> boolean().
is_inside(File, Folder) ->
    parts_below(real(Folder), real(File)) =/= none.

%% @doc Writes another file in the place of one, or of a link.
-spec replace(file:name_all(), binary()) -> ok.
replace(File, Bytes) ->
    {ok, Info} = file:read_file_info(File),
    ok = check(File, file:delete(File)),
    ok = check(File, file:write_file(File, Bytes)),
    set_mode(File, Info).

-spec parts_below(binary(), binary()) -> {ok, [binary()]} | none.
parts_below(Root, Path) ->
    Parts = filename:split(Root),
    All = filename:split(Path),
    case lists:prefix(Parts, All) of
        true -> {ok, lists:nthtail(length(Parts), All)};
        false -> none
    end.

%% @doc Returns the place that a path leads to, through all links. A path that does not exist has no
%% links, and a circle of links leads to one of them.
-spec real(file:name_all()) -> binary().
real(Path) ->
    real(filename:split(native(filename:absname(Path))), <<>>, ?LINKS).

-spec real([binary()], binary(), non_neg_integer()) -> binary().
real([], Done, _) ->
    Done;
real([<<".">> | Names], Done, Left) ->
    real(Names, Done, Left);
real([<<"..">> | Names], Done, Left) ->
    real(Names, filename:dirname(Done), Left);
real([Name | Names], Done, Left) ->
    Path = filename:join(Done, Name),
    case file:read_link_all(Path) of
        {ok, Target} when Left > 0 -> real(filename:split(native(Target)) ++ Names, Done, Left - 1);
        _ -> real(Names, Path, Left)
    end.

%% Returns the bytes that the system has for a name.
-spec native(file:name_all()) -> binary().
native(Name) when is_binary(Name) -> Name;
native(Name) -> unicode:characters_to_binary(Name, unicode, file:native_name_encoding()).

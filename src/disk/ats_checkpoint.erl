%% @private
%% @doc Checkpoints of tables in memory: a moment of a table, as a table on disk.
-module(ats_checkpoint).

-export([make/2]).

%% @doc Writes the objects that a table has at one moment to a directory, which must not be there.
-spec make(ats:table(), file:name_all()) -> ok | {error, dats:reason()}.
make(Table, Directory) ->
    ats_moment:read(Table, fun(Source) -> write(Source, Directory) end).

-spec write(ats:table(), file:name_all()) -> ok | {error, dats:reason()}.
write(Source, Directory) ->
    case file:read_link_info(Directory) of
        {error, enoent} -> write_and_rename(Source, Directory, unfinished(Directory));
        {ok, _} -> {error, {file_error, Directory, eexist}};
        {error, badarg} -> erlang:error({ats_error, none});
        {error, Reason} -> {error, {file_error, Directory, Reason}}
    end.

%% A machine that stops meanwhile leaves another name than that of a checkpoint.
-spec unfinished(file:name_all()) -> file:name_all().
unfinished(Directory) when is_binary(Directory) -> <<Directory/binary, ".unfinished">>;
unfinished(Directory) -> lists:append(filename:flatten(Directory), ".unfinished").

-spec write_and_rename(ats:table(), file:name_all(), file:name_all()) ->
          ok | {error, dats:reason()}.
write_and_rename(Source, Directory, Unfinished) ->
    _ = dats:destroy(Unfinished),
    Options = [{file, Unfinished},
               {type, ats_info:item(type, Source)},
               {keypos, ats_info:item(keypos, Source)},
               {durability, system}],
    case dats:open_file(make_ref(), Options) of
        {ok, Name} ->
            Written = fill(Name, Source),
            case then(then(Written, fun() -> dats:close(Name) end),
                      fun() -> dats:rename_table(Unfinished, Directory) end) of
                ok ->
                    ok;
                {error, _} = Failed ->
                    _ = dats:close(Name),
                    _ = dats:destroy(Unfinished),
                    Failed
            end;
        {error, _} = Failed ->
            Failed
    end.

-spec fill(dats:tab_name(), ats:table()) -> ok | {error, dats:reason()}.
fill(Name, Source) ->
    try then(dats:from_ats(Name, Source), fun() -> dats:sync(Name) end)
    catch
        error:Reason:Stack ->
            _ = dats:close(Name),
            erlang:raise(error, Reason, Stack)
    end.

-spec then(ok | {error, Reason}, fun(() -> ok | {error, Reason})) -> ok | {error, Reason}.
then(ok, Next) -> Next();
then({error, _} = Failed, _Next) -> Failed.

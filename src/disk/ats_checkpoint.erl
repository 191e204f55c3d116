%% @private
%% @doc Checkpoints of tables in memory: a moment of a table, as a table on disk.
%%
%% The table is made in a temporary directory, and gets its own when it is complete. Whoever ends
%% meanwhile leaves nothing: the process that owns the open tables closes it, which removes it.
-module(ats_checkpoint).

-export([make/2]).

%% @doc Writes the objects that a table has at one moment to a directory, which must not be there.
-spec make(ats:table(), file:name_all()) -> ok | {error, dats:reason()}.
make(Table, Directory) ->
    ats_snapshot:read(Table, fun(Source) -> write(Source, Directory) end).

-spec write(ats:table(), file:name_all()) -> ok | {error, dats:reason()}.
write(Source, Directory) ->
    Options = [{file, Directory},
               {type, ats_info:item(type, Source)},
               {keypos, ats_info:item(keypos, Source)},
               {durability, system}],
    case ats_disk_options:parse_temporary(Options) of
        {ok, Parsed} ->
            then(check_free(Directory, Parsed), fun() -> write_and_publish(Source, Parsed) end);
        badarg ->
            erlang:error({ats_error, none});
        {error, _} = Failed ->
            Failed
    end.

%% Checks the directory before the objects are written.
-spec check_free(file:name_all(), ats_disk_options:parsed()) -> ok | {error, dats:reason()}.
check_free(Directory, #{directory := Path}) ->
    case file:read_link_info(Path, [raw]) of
        {error, enoent} -> ok;
        {ok, _} -> {error, {file_error, Directory, eexist}};
        {error, Reason} -> {error, {file_error, Directory, Reason}}
    end.

-spec write_and_publish(ats:table(), ats_disk_options:parsed()) -> ok | {error, dats:reason()}.
write_and_publish(Source, Options) ->
    Name = make_ref(),
    then(then(ats_disk_tables:ensure_started(), fun() -> ats_disk_tables:open(Name, Options) end),
         fun() ->
                 try then(dats:from_ats(Name, Source), fun() -> ats_disk_tables:publish(Name) end)
                 after
                     %% A published table is closed already.
                     _ = dats:close(Name)
                 end
         end).

-spec then(ok | {error, Reason}, fun(() -> ok | {error, Reason})) -> ok | {error, Reason}.
then(ok, Next) -> Next();
then({error, _} = Failed, _Next) -> Failed.

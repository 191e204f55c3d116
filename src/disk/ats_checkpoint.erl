%% @private
%% @doc Checkpoints of tables in memory: a moment of a table, as a table on disk.
%%
%% The table is made in a temporary directory, and gets its own when it is complete. Whoever ends
%% meanwhile leaves nothing: the process that owns the open tables closes it, which removes it.
-module(ats_checkpoint).

-export([make/2]).

%% @doc Writes the objects that a table has at one moment to a directory, which must not be there.
%% If the objects of the table expire, those in the directory do, at the same time.
-spec make(ats:table(), file:name_all()) -> ok | {error, dats:reason()}.
make(Table, Directory) ->
    Ttl = ttl(ats_info:item(ttl, Table)),
    ats_snapshot:read(Table, fun(Source) -> write(Source, Ttl, Directory) end).

%% Returns the time of the table on disk. Its objects get what is left of theirs.
-spec ttl(false | ats:ttl() | undefined) -> [{ttl, infinity | pos_integer()}].
ttl(None) when None =:= false; None =:= undefined -> [];
ttl({idle, _}) -> [{ttl, infinity}];
ttl({spread, Ms, _}) -> [{ttl, Ms}];
ttl(Ttl) -> [{ttl, Ttl}].

-spec write(ats:table(), [{ttl, infinity | pos_integer()}], file:name_all()) ->
          ok | {error, dats:reason()}.
write(Source, Ttl, Directory) ->
    Options = [{file, Directory},
               {type, ats_info:item(type, Source)},
               {keypos, ats_info:item(keypos, Source)},
               {durability, system} | Ttl],
    case ats_disk_options:parse_temporary(Options) of
        {ok, Parsed} ->
            Date = case Ttl of
                       [] -> fun(_) -> ok end;
                       _ -> fun(Name) -> date(Name, Source, start) end
                   end,
            then(check_free(Directory, Parsed),
                 fun() -> write_and_publish(Source, Parsed, Date) end);
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

-spec write_and_publish(ats:table(), ats_disk_options:parsed(), fun((reference()) -> ok)) ->
          ok | {error, dats:reason()}.
write_and_publish(Source, Options, Date) ->
    Name = make_ref(),
    then(then(ats_disk_tables:ensure_started(), fun() -> ats_disk_tables:open(Name, Options) end),
         fun() ->
                 try then(then(dats:from_ats(Name, Source), fun() -> Date(Name) end),
                          fun() -> ats_disk_tables:publish(Name) end)
                 after
                     %% A published table is closed already.
                     _ = dats:close(Name)
                 end
         end).

%% Gives the objects of a table on disk the time that is left to those of the source.
-spec date(reference(), ats:table(), ats_nif:position()) -> ok.
date(Name, Source, Position) ->
    {Objects, Next} = ats_nif:chunk(Source, Position, 100),
    KeyPos = ats_info:item(keypos, Source),
    lists:foreach(fun(Key) ->
                          Left = ats_nif:ttl(Source, Key),
                          %% The integer is less than `infinity'.
                          _ = dats:touch(Name, Key, max(1, Left))
                  end, lists:usort([element(KeyPos, Object) || Object <- Objects])),
    case Next of
        done -> ok;
        _ -> date(Name, Source, Next)
    end.

-spec then(ok | {error, Reason}, fun(() -> ok | {error, Reason})) -> ok | {error, Reason}.
then(ok, Next) -> Next();
then({error, _} = Failed, _Next) -> Failed.

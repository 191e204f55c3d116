%% @private
%% @doc Snapshots of the log: a file with the objects of a table, in a directory that `ra' names. A
%% table on disk is a directory beside the file, which has no objects then.
%%
%% The file is a row of frames behind eight bytes: the size of a term in the external term format,
%% in 64 bits, its CRC-32, and the term. The first is the header. After the last come 64 bits of
%% zero and the number of frames: so a file that was not written to its end is not taken for a
%% snapshot. It is written last.
-module(ats_ra_snapshot).
-behaviour(ra_snapshot).

-export([prepare/2, write/3, write/4, sync/1, begin_read/1, begin_read/2, read_chunk/3]).
-export([begin_accept/2, accept_chunk/2, complete_accept/2, recover/1, validate/1, read_meta/1]).

-define(MAGIC, <<"ats_ra 1">>).

-type snapshot() :: {ats_ra_machine:config(), ats_ra_moment:moment()}.
-type reading() :: [{Name :: file:filename(), file:fd()}].
%% Files, the first of which is being read. A chunk has bytes of one, and at its end none.

-spec prepare(term(), snapshot()) -> snapshot().
prepare(_Meta, {_Config, Moment} = Snapshot) ->
    ok = ats_ra_moment:use(Moment),
    Snapshot.

-spec write(file:filename(), ra_snapshot:meta(), snapshot()) -> ok | {error, term()}.
write(Dir, Meta, {Config, Moment}) ->
    _ = [move(From, directory(Dir)) || {checkpoint, From} <- [Moment]],
    File = open(path(Dir), [write, binary]),
    ok = file:write(File, [?MAGIC, frame({Meta, Config})]),
    Put = fun(Chunk, Count) -> ok = file:write(File, frame(Chunk)), Count + 1 end,
    case ats_ra_moment:fold(Put, 1, Moment) of
        {ok, Count} ->
            ok = file:write(File, <<0:64, Count:32>>),
            ok = close_durably(File),
            sync_directories([Dir, filename:dirname(Dir)]);
        Failed -> Failed
    end.

%% Only into another file system it has to be copied.
move(From, To) ->
    case dats:rename_table(From, To) of
        ok -> ok;
        _ -> ok = dats:copy_table(From, To), ok = dats:destroy(From)
    end.

%% @doc Writes a snapshot durably. Later releases of `ra' pass a flag and call {@link sync/1}; both
%% change nothing.
-spec write(file:filename(), ra_snapshot:meta(), snapshot(), boolean()) -> ok | {error, term()}.
write(Dir, Meta, Snapshot, _Sync) -> write(Dir, Meta, Snapshot).

-spec sync(file:filename()) -> ok.
sync(_Dir) -> ok.

path(Dir) -> filename:join(Dir, "table").

directory(Dir) -> filename:join(Dir, "dats").

frame(Term) ->
    Bytes = term_to_binary(Term),
    [<<(byte_size(Bytes)):64, (erlang:crc32(Bytes)):32>>, Bytes].

open(Path, Modes) ->
    {ok, File} = file:open(Path, [raw | Modes]),
    File.

%% Before `ra' deletes the log, a snapshot has to be on disk, and its names.
close_durably(File) ->
    ok = file:sync(File),
    ok = file:close(File).

sync_directories(Dirs) ->
    lists:foreach(fun(Dir) -> close_durably(open(Dir, [read, directory])) end, Dirs).

%%--------------------------------------------------------------------------------------------
%% Transfer to another member: the bytes of the files
%%--------------------------------------------------------------------------------------------

%% @doc Opens all files, because another snapshot can take the place of this one meanwhile.
-spec begin_read(file:filename()) -> {ok, ra_snapshot:meta(), reading()}.
begin_read(Dir) ->
    {ok, Meta} = read_meta(Dir),
    Names = filelib:wildcard("dats/*", Dir) ++ ["table"],
    {ok, Meta, [{Name, open(filename:join(Dir, Name), [read, binary])} || Name <- Names]}.

%% @doc Like {@link begin_read/1}, for later releases of `ra'.
-spec begin_read(file:filename(), Context :: map()) -> {ok, ra_snapshot:meta(), reading()}.
begin_read(Dir, _Context) -> begin_read(Dir).

-spec read_chunk(reading(), pos_integer(), file:filename()) ->
          {ok, {Name :: file:filename(), binary()}, {next, reading()} | last} | {error, term()}.
read_chunk([{Name, File} | Others] = Files, Size, _Dir) ->
    case file:read(File, Size) of
        {ok, Bytes} ->
            {ok, {Name, Bytes}, {next, Files}};
        eof ->
            ok = file:close(File),
            {ok, {Name, <<>>}, case Others of [] -> last; _ -> {next, Others} end};
        Failed -> Failed
    end.

-spec begin_accept(file:filename(), ra_snapshot:meta()) -> {ok, file:filename()}.
begin_accept(Dir, _Meta) ->
    ok = file:del_dir_r(Dir),
    ok = filelib:ensure_path(directory(Dir)),
    {ok, Dir}.

-spec accept_chunk({file:filename(), binary()}, file:filename()) -> {ok, file:filename()}.
accept_chunk({Name, Bytes}, Dir) ->
    File = open(filename:join(Dir, Name), [append, binary]),
    ok = file:write(File, Bytes),
    ok = close_durably(File),
    {ok, Dir}.

-spec complete_accept({file:filename(), binary()}, file:filename()) -> ok | {error, term()}.
complete_accept(Chunk, Dir) ->
    {ok, Dir} = accept_chunk(Chunk, Dir),
    ok = sync_directories([directory(Dir), Dir, filename:dirname(Dir)]),
    validate(Dir).

%%--------------------------------------------------------------------------------------------
%% Reading
%%--------------------------------------------------------------------------------------------

-spec recover(file:filename()) ->
          {ok, ra_snapshot:meta(), ats_ra_machine:state()} | {error, term()}.
recover(Dir) ->
    {registered_name, Server} = process_info(self(), registered_name),
    Load = fun({Meta, Config}, none) -> {Meta, ats_ra_machine:make(Server, Config, directory(Dir))};
              (Objects, {_Meta, #{table := {ats, Id}}} = Made) ->
                   true = ats:insert(Id, Objects),
                   Made
           end,
    case fold(Dir, Load, none) of
        {ok, {Meta, #{table := Table} = State}} ->
            ok = ats_ra_moment:drop(),
            ok = ats_ra_table:publish(Server, Table),
            {ok, Meta, State};
        Failed ->
            Failed
    end.

-spec validate(file:filename()) -> ok | {error, term()}.
validate(Dir) ->
    case fold(Dir, fun(Header, none) -> Header; (_Chunk, Header) -> Header end, none) of
        {ok, {_Meta, #{table := {dats, _} = Table}}} -> ats_ra_table:check(directory(Dir), Table);
        {ok, _InMemory} -> ok;
        Failed -> Failed
    end.

-spec read_meta(file:filename()) -> {ok, ra_snapshot:meta()} | {error, term()}.
read_meta(Dir) ->
    try fold(Dir, fun({Meta, _Config}, none) -> throw({ok, Meta}) end, none)
    catch throw:{ok, Meta} -> {ok, Meta}
    end.

%% Folds a function over the terms of a file.
fold(Dir, Function, Acc) ->
    case file:open(path(Dir), [read, raw, binary, {read_ahead, 1 bsl 20}]) of
        {ok, File} ->
            try file:read(File, byte_size(?MAGIC)) of
                {ok, ?MAGIC} -> fold_frames(File, filelib:file_size(path(Dir)), Function, Acc, 0);
                _ -> {error, invalid_format}
            after file:close(File)
            end;
        Failed -> Failed
    end.

fold_frames(File, Size, Function, Acc, Count) ->
    case read_frame(File, Size) of
        {ok, Term} -> fold_frames(File, Size, Function, Function(Term, Acc), Count + 1);
        {'end', Count} -> {ok, Acc};
        _ -> {error, damaged}
    end.

read_frame(File, Most) ->
    case file:read(File, 12) of
        {ok, <<0:64, Count:32>>} -> {'end', Count};
        {ok, <<Size:64, Checksum:32>>} when Size =< Most ->
            Bytes = case file:read(File, Size) of {ok, Read} -> Read; _ -> <<>> end,
            case erlang:crc32(Bytes) of
                Checksum -> {ok, binary_to_term(Bytes)};
                _ -> damaged
            end;
        Failed -> Failed
    end.

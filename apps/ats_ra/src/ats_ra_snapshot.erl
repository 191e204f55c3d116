%% @private
%% @doc Snapshots of the log: a file with the objects of a table, in a directory that `ra' names.
%%
%% The file is a row of frames behind eight bytes: the size of a term in the external term format,
%% in 64 bits, its CRC-32, and the term. The first is the header. After the last come 64 bits of
%% zero and the number of frames: so what was not written to its end is not taken for a snapshot.
-module(ats_ra_snapshot).
-behaviour(ra_snapshot).

-export([prepare/2, write/3, write/4, sync/1, begin_read/1, begin_read/2, read_chunk/3]).
-export([begin_accept/2, accept_chunk/2, complete_accept/2, recover/1, validate/1, read_meta/1]).

-define(MAGIC, <<"ats_ra 1">>).

-type snapshot() :: {ats_ra_machine:config(), ats_ra_moment:moment()}.
-type accepting() :: {file:fd(), file:filename()}.

-spec prepare(term(), snapshot()) -> snapshot().
prepare(_Meta, {_Config, Moment} = Snapshot) ->
    ok = ats_ra_moment:use(Moment),
    Snapshot.

-spec write(file:filename(), ra_snapshot:meta(), snapshot()) -> ok | {error, term()}.
write(Dir, Meta, {Config, Moment}) ->
    {ok, File} = file:open(path(Dir), [write, raw, binary]),
    ok = file:write(File, [?MAGIC, frame({Meta, Config})]),
    Put = fun(Chunk, Count) -> ok = file:write(File, frame(Chunk)), Count + 1 end,
    case ats_ra_moment:fold(Put, 1, Moment) of
        {ok, Count} ->
            ok = file:write(File, <<0:64, Count:32>>),
            close_durably(File, Dir);
        Failed ->
            Failed
    end.

%% @doc Writes it durably, whatever later releases of `ra' ask for, which then call {@link sync/1}.
-spec write(file:filename(), ra_snapshot:meta(), snapshot(), boolean()) -> ok | {error, term()}.
write(Dir, Meta, Snapshot, _Sync) -> write(Dir, Meta, Snapshot).

-spec sync(file:filename()) -> ok.
sync(_Dir) -> ok.

path(Dir) -> filename:join(Dir, "table").

frame(Term) ->
    Bytes = term_to_binary(Term),
    [<<(byte_size(Bytes)):64, (erlang:crc32(Bytes)):32>>, Bytes].

%% Before `ra' deletes the log, a snapshot has to be on disk, and its names.
close_durably(File, Dir) ->
    ok = file:sync(File),
    ok = file:close(File),
    lists:foreach(fun(Each) ->
                          {ok, Directory} = file:open(Each, [read, raw, directory]),
                          ok = file:sync(Directory),
                          ok = file:close(Directory)
                  end, [Dir, filename:dirname(Dir)]).

%%--------------------------------------------------------------------------------------------
%% To another member: the bytes of the file
%%--------------------------------------------------------------------------------------------

-spec begin_read(file:filename()) -> {ok, ra_snapshot:meta(), file:fd()}.
begin_read(Dir) ->
    {ok, Meta} = read_meta(Dir),
    {ok, File} = file:open(path(Dir), [read, raw, binary]),
    {ok, Meta, File}.

%% @doc Does what {@link begin_read/1} does, for later releases of `ra'.
-spec begin_read(file:filename(), Context :: map()) -> {ok, ra_snapshot:meta(), file:fd()}.
begin_read(Dir, _Context) -> begin_read(Dir).

-spec read_chunk(file:fd(), pos_integer(), file:filename()) ->
          {ok, binary(), {next, file:fd()} | last} | {error, term()}.
read_chunk(File, Size, _Dir) ->
    case file:read(File, Size) of
        {ok, Bytes} when byte_size(Bytes) =:= Size -> {ok, Bytes, {next, File}};
        {ok, Bytes} -> {ok, Bytes, last};
        eof -> {ok, <<>>, last};
        Failed -> Failed
    end.

-spec begin_accept(file:filename(), ra_snapshot:meta()) -> {ok, accepting()}.
begin_accept(Dir, _Meta) ->
    {ok, File} = file:open(path(Dir), [write, raw, binary]),
    {ok, {File, Dir}}.

-spec accept_chunk(binary(), accepting()) -> {ok, accepting()}.
accept_chunk(Bytes, {File, _Dir} = Accepting) ->
    ok = file:write(File, Bytes),
    {ok, Accepting}.

-spec complete_accept(binary(), accepting()) -> ok | {error, term()}.
complete_accept(Bytes, {File, Dir}) ->
    ok = file:write(File, Bytes),
    ok = close_durably(File, Dir),
    validate(Dir).

%%--------------------------------------------------------------------------------------------
%% Reading
%%--------------------------------------------------------------------------------------------

-spec recover(file:filename()) ->
          {ok, ra_snapshot:meta(), ats_ra_machine:state()} | {error, term()}.
recover(Dir) ->
    {registered_name, Server} = process_info(self(), registered_name),
    Load = fun({Meta, Config}, none) -> {Meta, ats_ra_machine:make(Server, Config)};
              (Chunk, {_Meta, #{table := Table}} = Made) -> load(Chunk, Table), Made
           end,
    case fold(Dir, Load, none) of
        {ok, {Meta, #{table := Table} = State}} ->
            ok = ats_ra_moment:drop(),
            ok = ats_ra_table:publish(Server, Table),
            {ok, Meta, State};
        Failed ->
            Failed
    end.

load({objects, Objects}, {Module, Id}) ->
    insert(Module, Id, Objects);
load({kept, Kept}, {Module, Id}) ->
    lists:foreach(fun({Key, Objects}) ->
                          _ = Module:delete(Id, Key),
                          insert(Module, Id, Objects)
                  end, Kept).

insert(Module, Id, Objects) ->
    Done = Module:insert(Id, Objects),
    Done =:= true orelse Done =:= ok orelse exit({ats_ra, Done}).

-spec validate(file:filename()) -> ok | {error, term()}.
validate(Dir) ->
    case fold(Dir, fun(_Term, none) -> none end, none) of {ok, none} -> ok; Failed -> Failed end.

-spec read_meta(file:filename()) -> {ok, ra_snapshot:meta()} | {error, term()}.
read_meta(Dir) ->
    open(Dir, fun(File, Size) ->
                      case read_frame(File, Size) of
                          {ok, {Meta, _Config}} -> {ok, Meta};
                          _ -> {error, damaged}
                      end
              end).

%% Folds a function over the terms of a file.
fold(Dir, Function, Acc) ->
    open(Dir, fun(File, Size) -> fold_frames(File, Size, Function, Acc, 0) end).

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
            case file:read(File, Size) of
                {ok, Bytes} ->
                    case erlang:crc32(Bytes) of
                        Checksum -> {ok, binary_to_term(Bytes)};
                        _ -> damaged
                    end;
                Failed -> Failed
            end;
        Failed -> Failed
    end.

%% Has a function read the frames of a file, which is of that size.
open(Dir, Read) ->
    case file:open(path(Dir), [read, raw, binary, {read_ahead, 1 bsl 20}]) of
        {ok, File} ->
            Answer = case file:read(File, byte_size(?MAGIC)) of
                         {ok, ?MAGIC} -> Read(File, filelib:file_size(path(Dir)));
                         _ -> {error, invalid_format}
                     end,
            _ = file:close(File),
            Answer;
        Failed -> Failed
    end.

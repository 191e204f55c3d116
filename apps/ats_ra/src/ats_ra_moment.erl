%% @private
%% @doc A table as it was at one moment, while its server goes on to change it.
%%
%% Of a table on disk it is a checkpoint, another table. Of one in memory it is a snapshot, which a
%% process of its own reads for whoever asks for the chunks, so that it ends with each of them.
-module(ats_ra_moment).

-export([take/1, use/1, is_in_use/0, drop/0, fold/3, read/2]).

-export_type([moment/0]).

-type moment() :: {reader, pid()} | {checkpoint, file:filename()}.
%% A source of the objects of one moment. They are read in chunks, which are lists.

-define(AT_ONCE, 1000).

%% @doc Takes the moment that is now, in place of an earlier one. It ends when it was read, and with
%% the caller, which has it in its dictionary: a server that gets a snapshot forgets its state.
-spec take(ats_ra_table:table()) -> moment().
take(Table) ->
    ok = drop(),
    Moment = begin_moment(Table),
    _ = put(?MODULE, {unused, Moment}),
    Moment.

begin_moment({dats, Name}) ->
    Dir = lists:concat([dats:info(Name, filename), "_", erlang:unique_integer([positive])]),
    %% Flushes first: a missing end of the journal would not be noticed, a missing file is.
    ok = dats:flush(Name),
    ok = dats:checkpoint(Name, Dir),
    {checkpoint, Dir};
begin_moment({ats, Id}) ->
    {reader, _Pid} = proc_lib:start(?MODULE, read, [Id, self()]).

%% @doc Says that a moment will be read.
-spec use(moment()) -> ok.
use(Moment) ->
    _ = [put(?MODULE, {used, Moment}) || get(?MODULE) =:= {unused, Moment}],
    ok.

%% @doc Returns `true' while a moment of a table in memory is being read.
-spec is_in_use() -> boolean().
is_in_use() ->
    case get(?MODULE) of
        {used, {reader, Pid}} -> is_process_alive(Pid);
        _ -> false
    end.

%% A checkpoint that is used belongs to whoever writes the snapshot.
-spec drop() -> ok.
drop() -> drop(erase(?MODULE)).

drop({unused, {checkpoint, Dir}}) -> _ = dats:destroy(Dir), ok;
drop({_Use, {reader, Pid}}) -> true = exit(Pid, kill), ok;
drop(_UsedOrNone) -> ok.

%% @doc Folds a function over the chunks of a moment, in any process. A checkpoint has none.
-spec fold(fun(([tuple()], Acc) -> Acc), Acc, moment()) -> {ok, Acc} | {error, term()}.
fold(_Function, Acc, {checkpoint, _}) ->
    {ok, Acc};
fold(Function, Acc, {reader, Pid}) ->
    fold(Function, Acc, Pid, erlang:monitor(process, Pid)).

fold(Function, Acc, Pid, Monitor) ->
    Pid ! {next, self(), Monitor},
    receive
        {Monitor, done} -> true = erlang:demonitor(Monitor, [flush]), {ok, Acc};
        {Monitor, Chunk} -> fold(Function, Function(Chunk, Acc), Pid, Monitor);
        {'DOWN', Monitor, process, Pid, Reason} -> {error, Reason}
    end.

%%--------------------------------------------------------------------------------------------
%% The process
%%--------------------------------------------------------------------------------------------

%% @doc Reads a table as it is now, for whoever asks for the chunks.
-spec read(ats:tid(), Server :: pid()) -> ok.
read(Id, Server) ->
    _ = erlang:monitor(process, Server),
    Snapshot = ats:snapshot(Id),
    ok = proc_lib:init_ack({reader, self()}),
    slices(ats:select(Snapshot, [{'_', [], ['$_']}], ?AT_ONCE)),
    give(done).

slices('$end_of_table') ->
    ok;
slices({Objects, Continuation}) ->
    give(Objects),
    slices(ats:select(Continuation)).

%% Waits for the reader. It is over when that or the server has ended.
give(Chunk) ->
    receive
        {next, Reader, Tag} ->
            put(reader, Reader) =:= undefined andalso erlang:monitor(process, Reader),
            _ = Reader ! {Tag, Chunk},
            ok;
        {'DOWN', _, process, _, _} ->
            exit(normal)
    end.

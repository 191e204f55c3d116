%% @private
%% @doc A table as it was at one moment, while its server goes on to change it.
%%
%% Of a table on disk it is a checkpoint, another table. One in memory is read by a process of its
%% own, in slices of what is there now: before the server changes a key for the first time since the
%% moment, it keeps what the key had, and these keys are read last. What was kept of a key is right,
%% whatever the slices had of it; keys of which nothing was kept have not changed.
-module(ats_ra_moment).

-export([take/1, before/1, use/1, is_in_use/0, drop/0, fold/3, read/2]).

-export_type([moment/0]).

-type moment() :: {pid(), Kept :: ats:tid()} | {checkpoint, file:filename()}.
%% Its chunks are `{objects, [Object]}' and `{kept, [{Key, [Object]}]}'.

-define(AT_ONCE, 1000).

%% @doc The moment that is now, in place of an earlier one. It ends when it was read, and with the
%% caller, which has it in its dictionary: a server that gets a snapshot forgets its state.
-spec take(ats_ra_table:table()) -> moment().
take(Table) ->
    ok = drop(),
    Moment = begin_moment(Table),
    _ = put(?MODULE, {unused, Moment}),
    Moment.

begin_moment({dats, Name}) ->
    Dir = lists:concat([dats:info(Name, filename), "_", erlang:unique_integer([positive])]),
    %% What is not in sorted files nobody would miss if it were cut off.
    ok = dats:flush(Name),
    ok = dats:checkpoint(Name, Dir),
    {checkpoint, Dir};
begin_moment({ats, Id}) ->
    {_Pid, _Kept} = proc_lib:start(?MODULE, read, [Id, self()]).

%% @doc Returns the function to be called before the caller changes a key of a table.
-spec before(ats_ra_table:table()) -> ats_ra_command:before().
before({_Module, Id}) ->
    case kept() of
        [{_Use, Kept}] -> fun(Key) -> keep(Kept, Key, Id) end;
        [] -> none
    end.

%% Where a process that reads finds what keys had.
kept() ->
    case get(?MODULE) of
        {Use, {Pid, Kept}} when is_pid(Pid) -> [{Use, Kept} || is_process_alive(Pid)];
        _ -> []
    end.

%% If the moment was read just now, what was kept is gone.
keep(Kept, Key, Id) ->
    try ats:member(Kept, Key) orelse ats:insert(Kept, {Key, ats:lookup(Id, Key)})
    catch error:badarg -> true
    end.

%% @doc Says that a moment will be read.
-spec use(moment()) -> ok.
use(Moment) ->
    _ = [put(?MODULE, {used, Moment}) || get(?MODULE) =:= {unused, Moment}],
    ok.

%% @doc Returns `true' while the server has to keep what keys had.
-spec is_in_use() -> boolean().
is_in_use() -> lists:keymember(used, 1, kept()).

%% A checkpoint that is used belongs to whoever writes the snapshot.
-spec drop() -> ok.
drop() -> drop(erase(?MODULE)).

drop({unused, {checkpoint, Dir}}) -> _ = dats:destroy(Dir), ok;
drop({_, {Pid, _}}) when is_pid(Pid) -> true = exit(Pid, kill), ok;
drop(_UsedOrNone) -> ok.

%% @doc Folds a function over the chunks of a moment, in any process. A checkpoint has none.
-spec fold(fun((tuple(), Acc) -> Acc), Acc, moment()) -> {ok, Acc} | {error, term()}.
fold(_Function, Acc, {checkpoint, _}) ->
    {ok, Acc};
fold(Function, Acc, {Pid, _}) ->
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

%% @doc Reads a table, for whoever asks for the chunks.
-spec read(ats:tid(), Server :: pid()) -> ok.
read(Id, Server) ->
    _ = erlang:monitor(process, Server),
    IsHashed = lists:member(ats:info(Id, type), [set, bag, duplicate_bag]),
    Kept = ats:new(?MODULE, [public | [ordered_set || not IsHashed]]),
    ok = proc_lib:init_ack({self(), Kept}),
    slices(objects, ats:select(Id, [{'_', [], ['$_']}], ?AT_ONCE)),
    slices(kept, ats:select(Kept, [{'_', [], ['$_']}], ?AT_ONCE)),
    give(done).

slices(_Kind, '$end_of_table') ->
    ok;
slices(Kind, {Objects, Continuation}) ->
    give({Kind, Objects}),
    slices(Kind, ats:select(Continuation)).

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

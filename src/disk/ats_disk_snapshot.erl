%% @private
%% @doc Reading a table on disk as it is at one moment, however long that takes.
%%
%% A snapshot is a table of its own, which shares with the other what is on disk and in memory, and
%% which no call changes. It belongs to the process that took it: if that is killed, it ends.
-module(ats_disk_snapshot).

-export([of_table/2, walk/2, read/2]).

%% @doc Has a function read a snapshot of a table. It is called again if it meets values that a module
%% has to merge first.
-spec of_table(ats:tid(), fun((Snapshot :: ats:tid()) -> Answer)) -> Answer.
of_table(Table, Read) ->
    walk(Table, fun(Snapshot) -> read(Snapshot, fun() -> Read(Snapshot) end) end).

%% @doc Has a function read a snapshot of a table, which is called once. Each of its reads goes through
%% {@link read/2}.
-spec walk(ats:tid(), fun((Snapshot :: ats:tid()) -> Answer)) -> Answer.
walk(Table, Read) ->
    Snapshot = ats_nif:disk_snapshot(Table),
    try Read(Snapshot)
    after ats_nif:delete(Snapshot)
    end.

%% @doc Calls a function that reads a snapshot, until it meets no pending keys.
-spec read(Snapshot :: ats:tid(), fun(() -> Answer)) -> Answer.
read(Snapshot, Read) ->
    read(Snapshot, Read, 1).

-spec read(ats:tid(), fun(() -> Answer), pos_integer()) -> Answer.
read(Snapshot, Read, AtOnce) ->
    try Read()
    catch
        error:{ats_error, merge_failed} ->
            resolve(Snapshot, AtOnce),
            read(Snapshot, Read, 2 * AtOnce)
    end.

%% The first of the keys is the one that was met. The others are merged with it because they may be
%% met next: if that fails, they are left as they are.
-spec resolve(ats:tid(), pos_integer()) -> ok.
resolve(Snapshot, AtOnce) ->
    Module = ats_disk_merged:module(Snapshot),
    case ats_nif:disk_pending(Snapshot, AtOnce) of
        [] -> erlang:error({ats_error, merge_failed});
        Records -> resolved(Snapshot, ats_disk_merged:jobs(Module, Records))
    end.

-spec resolved(ats:tid(), [{ats_nif:disk_record(), ats_merge:outcome()}]) -> ok.
resolved(_Snapshot, [{{_, _, [Object | _]}, {failed, Failure}} | _]) ->
    ats_disk_merged:failed(element(1, binary_to_term(Object)), Failure);
resolved(Snapshot, Outcomes) ->
    lists:foreach(fun({_Record, {failed, _}}) -> ok;
                     ({{KeyBytes, _, _} = Record, Outcome}) ->
                          Object = ats_disk_merged:object(Record, Outcome),
                          true = ats_nif:disk_resolve(Snapshot, KeyBytes, Object)
                  end, Outcomes).

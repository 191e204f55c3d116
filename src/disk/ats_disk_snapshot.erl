%% @private
%% @doc Reading a table on disk as it is at one moment, however long that takes.
%%
%% A snapshot is a table of its own, which shares with the other what is on disk and in memory, and
%% which no call changes. It belongs to the process that took it: if that is killed, it ends.
-module(ats_disk_snapshot).

-export([of_table/2, walk/2]).

%% @doc Has a function read a snapshot of a table. It is called again if it meets values that a module
%% has to merge first.
-spec of_table(ats:tid(), fun((Snapshot :: ats:tid()) -> Answer)) -> Answer.
of_table(Table, Read) ->
    walk(Table, fun(Snapshot) -> ats_disk_merging:read(Snapshot, fun() -> Read(Snapshot) end) end).

%% @doc Has a function read a snapshot of a table, which is called once. Each of its reads goes through
%% {@link ats_disk_merging:read/2}.
-spec walk(ats:tid(), fun((Snapshot :: ats:tid()) -> Answer)) -> Answer.
walk(Table, Read) ->
    Snapshot = ats_nif:disk_snapshot(Table),
    try Read(Snapshot)
    after ats_nif:delete(Snapshot)
    end.

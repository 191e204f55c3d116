%% @private
%% @doc Reading a table on disk as it is at one moment, however long that takes.
%%
%% A snapshot is a table of its own, which shares files and memory with the other, and which no call
%% changes. It belongs to the process that took it: if that is killed, it ends.
%%
%% If a module merges the values of the table, a walk of a snapshot goes on by itself. A read
%% of one key is refused with the cause `pending' if its values are still to be merged: then they
%% are, and it is made again.
-module(ats_disk_reading).

-export([of_table/2, of_key/3]).

%% @doc Has a function walk through a snapshot of a table.
-spec of_table(ats:tid(), fun((Snapshot :: ats:tid()) -> Answer)) -> Answer.
of_table(Table, Read) ->
    Snapshot = ats_nif:disk_snapshot(Table, default),
    try Read(Snapshot)
    after ats_nif:delete(Snapshot)
    end.

%% @doc Has a native function read a key of a snapshot of a table.
-spec of_key(ats:tid(), ats_nif:disk_read(), Arguments :: [term()]) -> Answer :: term().
of_key(Table, Function, Arguments) ->
    of_table(Table, fun(Snapshot) -> read_resolving(Snapshot, Function, Arguments) end).

-spec read_resolving(ats:tid(), ats_nif:disk_read(), [term()]) -> term().
read_resolving(Snapshot, Function, Arguments) ->
    case ats_nif:disk_try(Snapshot, Function, Arguments) of
        {ok, Answer} ->
            Answer;
        {refused, pending} ->
            ok = ats_merge_pending:resolve(Snapshot),
            read_resolving(Snapshot, Function, Arguments);
        {refused, Cause} ->
            erlang:error({ats_error, Cause})
    end.

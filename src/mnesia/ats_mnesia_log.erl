%% @private
%% @doc The log of Mnesia, which must not be behind its tables on disk.
%%
%% Mnesia logs a transaction before it writes to tables, but the log keeps what it got in memory for
%% up to two seconds. If the virtual machine is killed the log ends earlier than the tables. What
%% Mnesia does once more when it starts would then make some objects older than others of the same
%% transaction. So the log is handed to the operating system before a transaction writes to a table.
%%
%% To read the end of a log does that, and nothing else does without waiting for the disk. Where a
%% reader has stopped is in a table, so each record is read once.
%%
%% Dirty operations do not wait: each is a transaction of its own, of which no part can be missing.
-module(ats_mnesia_log).

-export([start/0, write/0]).

-define(LOG, latest_log).
-define(ENDS, ?MODULE).
-define(WRITTEN_FOR, ?MODULE).

%% @doc Makes the table of ends, for the calling process.
-spec start() -> ok.
start() ->
    ?ENDS = ats:new(?ENDS, [named_table, public]),
    ok.

%% @doc Hands what was logged to the operating system, once for each transaction that this process
%% commits.
-spec write() -> ok.
write() ->
    Commit = find_commit(get(mnesia_activity_state)),
    case Commit =:= none orelse get(?WRITTEN_FOR) =:= Commit of
        true -> ok;
        false -> write_for(Commit)
    end.

%% A process of a program commits its own transaction. On other nodes there is a process for each
%% transaction, or the manager does all, which shows by how many the log has still room for.
-spec find_commit(Activity :: tuple() | undefined) -> none | term().
find_commit({_, Tid, _}) when element(1, Tid) =:= tid ->
    Tid;
find_commit(undefined) ->
    case process_info(self(), [initial_call, registered_name]) of
        [{_, {mnesia_tm, commit_participant, _}}, _] -> self();
        [_, {_, mnesia_tm}] -> mnesia_lib:read_counter(trans_log_writes_left);
        _ -> none
    end;
find_commit(_Dirty) ->
    none.

%% What Mnesia does while it starts is in the log already.
-spec write_for(Commit :: term()) -> ok.
write_for(Commit) ->
    case mnesia:system_info(is_running) =:= yes andalso mnesia_monitor:use_dir() of
        true ->
            %% This process logs which transactions were committed.
            _ = mnesia_recover:sync(),
            ok = read_from(ats:lookup_element(?ENDS, ?LOG, 2, start)),
            _ = put(?WRITTEN_FOR, Commit),
            ok;
        false ->
            ok
    end.

-spec read_from(start | disk_log:continuation()) -> ok.
read_from(Position) ->
    case disk_log:bchunk(?LOG, Position) of
        eof ->
            true = ats:insert(?ENDS, {?LOG, Position}),
            ok;
        {error, _} when Position =/= start ->
            %% The log was dumped, and another one begun.
            read_from(start);
        {error, _} ->
            %% It is being dumped, and was closed for that.
            ok;
        Chunk ->
            read_from(element(1, Chunk))
    end.

%% @private @doc The log of Mnesia, which must be ahead of its tables on disk.
%%
%% Mnesia logs a transaction before it writes to tables, but the log keeps its entries in memory for
%% up to two seconds. If the virtual machine is killed, the log ends earlier than the tables. When
%% Mnesia then replays its log, some objects become older than others of the same transaction. So
%% the log is handed to the operating system before tables on disk are written.
%%
%% To read any part of a log does that, and nothing else does without waiting for the disk. A call
%% reads one part, since others may write faster than this process reads: it would never come to the
%% end. The place behind that part is in a table, so each record is read once at most.
-module(ats_mnesia_log).

-export([start/0, write/0, write_now/0, find_commit/0, write_dump/1]).

-define(LOG, latest_log).
-define(PLACES, ?MODULE).
-define(WRITTEN_FOR, ?MODULE).

%% @doc Makes the table of places in logs, for the calling process.
-spec start() -> ok.
start() ->
    ?PLACES = ats:new(?PLACES, [named_table, public]),
    ok.

%% @doc Hands the log entries to the operating system, once for each transaction that this process
%% commits. Dirty operations do not wait: each is a transaction of its own, of which no part can be
%% missing.
-spec write() -> ok.
write() ->
    Commit = find_commit(),
    case Commit =:= none orelse get(?WRITTEN_FOR) =:= Commit of
        true ->
            ok;
        false ->
            ok = write_now(),
            _ = put(?WRITTEN_FOR, Commit),
            ok
    end.

%% @doc Returns an identifier of the transaction that this process commits, or `none' outside of a
%% transaction. A process of a program commits its own transaction. On other nodes a process for
%% each transaction commits, or the manager does, whose transactions differ in the number of entries
%% that the log still has room for.
-spec find_commit() -> none | term().
find_commit() ->
    find_commit(get(mnesia_activity_state)).

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

%% @doc Hands the log entries to the operating system. Changes that Mnesia makes while it starts are
%% in the log already.
-spec write_now() -> ok.
write_now() ->
    case mnesia:system_info(is_running) =/= starting andalso mnesia_monitor:use_dir() of
        true ->
            ok = write_decisions(),
            read_from(ats:lookup_element(?PLACES, ?LOG, 2, start));
        false ->
            ok
    end.

%% A process of Mnesia logs which transactions were committed. It ends when Mnesia stops, and has
%% them written then.
-spec write_decisions() -> ok.
write_decisions() ->
    try mnesia_recover:sync() of
        _ -> ok
    catch
        exit:_ -> ok
    end.

-spec read_from(start | disk_log:continuation()) -> ok.
read_from(Position) ->
    case disk_log:bchunk(?LOG, Position) of
        eof ->
            remember(Position);
        {error, _} when Position =/= start ->
            %% The log was dumped, and another one begun.
            read_from(start);
        {error, _} ->
            %% The log is being dumped, and was closed for that.
            ok;
        Chunk ->
            remember(element(1, Chunk))
    end.

-spec remember(start | disk_log:continuation()) -> ok.
remember(Position) ->
    true = ats:insert(?PLACES, {?LOG, Position}),
    ok.

%% @doc Writes the file from which Mnesia loads a table of its type `disc_copies', from the objects
%% that it has put aside to change the type of a table. Mnesia does not do so for external types,
%% and the objects would be gone after a restart. After a crash in between, the change may have been
%% made already.
-spec write_dump(atom()) -> ok.
write_dump(Tab) ->
    Aside = mnesia_lib:tab2logtmp(Tab),
    case mnesia_lib:exists(Aside) of
        true ->
            Temporary = mnesia_lib:tab2tmp(Tab),
            _ = file:delete(Temporary),
            Header = mnesia_log:dcd_log_header(),
            To = mnesia_log:open_log({Tab, ?MODULE}, Header, Temporary, false),
            From = open_aside(Aside),
            ok = copy(disk_log:chunk(From, start), From, To),
            ok = disk_log:close(From),
            _ = mnesia_log:close_log(To),
            ok = file:rename(Temporary, mnesia_lib:tab2dcd(Tab)),
            _ = file:delete(mnesia_lib:tab2dcl(Tab)),
            ok;
        false ->
            ok
    end.

open_aside(File) ->
    case disk_log:open([{name, make_ref()}, {file, File}, {repair, true}]) of
        {ok, Log} -> Log;
        {repaired, Log, _, _} -> Log
    end.

copy(eof, _From, _To) ->
    ok;
copy({Next, Objects}, From, To) ->
    ok = disk_log:log_terms(To, Objects),
    copy(disk_log:chunk(From, Next), From, To).

%% @private
%% @doc The common part of the servers of followers and of views: how a call asks one.
-module(ats_follow_server).

-export([ask/3]).

%% @doc Asks a server to read a table, and returns its answer, or fails with its cause. Another
%% process may be starting the application, or a supervisor the server.
-spec ask(Server :: atom(), Request :: term(), ats:tid()) -> term().
ask(Server, Request, Table) ->
    ok = ats_disk_tables:ensure_started(),
    try gen_server:call(Server, Request, infinity) of
        {ok, Answer} -> Answer;
        {error, access} -> erlang:error({ats_error, access(Table)});
        {error, Cause} -> erlang:error({ats_error, Cause})
    catch
        exit:{noproc, _} ->
            receive after 1 -> ask(Server, Request, Table) end
    end.

%% The owner may read its private table, but the process of the server may not.
-spec access(ats:tid()) -> ats_errors:cause().
access(Table) ->
    case ats_info:item(owner, Table) =:= self() of
        true -> private;
        false -> access
    end.

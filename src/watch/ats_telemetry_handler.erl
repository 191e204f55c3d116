%% @private
%% @doc The handler of `logger' that makes events of the warnings of full scans, and the process
%% that takes it back.
%%
%% Logger keeps a handler when the process that has added it ends. The reporter may be killed, so
%% another process, to which it is linked, adds the handler and removes it when the reporter ends.
%% If that process is killed instead, the reporter removes the handler and ends.
-module(ats_telemetry_handler).

-export([start_link/1, stop/1]).
-export([init/2, log/2]).

%% The handler has the name of the reporter, for those who look for it.
-define(HANDLER, ats_telemetry).

%% @doc Adds the handler for the calling process, which gets to know the process that removes it.
-spec start_link(Library :: module()) -> {ok, pid()} | {error, term()}.
start_link(Library) ->
    proc_lib:start_link(?MODULE, init, [self(), Library]).

%% @doc Removes the handler, and returns when it is gone.
-spec stop(pid()) -> ok.
stop(Pid) ->
    Monitor = erlang:monitor(process, Pid),
    true = exit(Pid, shutdown),
    receive
        {'DOWN', Monitor, process, Pid, _} -> remove()
    end.

%% The end of an application kills all processes of its group.
%% @private
-spec init(Reporter :: pid(), Library :: module()) -> ok.
init(Reporter, Library) ->
    _ = process_flag(trap_exit, true),
    true = erlang:group_leader(whereis(init), self()),
    true = take_name(),
    ok = remove(),
    ok = logger:add_handler(?HANDLER, ?MODULE, #{config => #{library => Library},
                                                 level => warning}),
    proc_lib:init_ack({ok, self()}),
    receive
        {'EXIT', Reporter, _} -> remove()
    end.

%% The process of a reporter that was killed may not have removed its handler yet. It must not
%% remove that of the next reporter, which therefore waits for its end.
-spec take_name() -> true.
take_name() ->
    try register(?MODULE, self())
    catch
        error:badarg ->
            Monitor = erlang:monitor(process, ?MODULE),
            receive
                {'DOWN', Monitor, process, _, _} -> take_name()
            end
    end.

%% A handler is also there if both processes were killed.
-spec remove() -> ok.
remove() ->
    _ = logger:remove_handler(?HANDLER),
    ok.

%% The callback of `logger'.
%% @private
-spec log(logger:log_event(), logger:handler_config()) -> ok.
log(#{meta := #{ats_event := full_scan, ats_table := Table, pid := Pid}},
    #{config := #{library := Library}}) ->
    _ = Library:execute([ats, full_scan], #{count => 1}, #{table => Table, pid => Pid}),
    ok;
log(_, _) ->
    ok.

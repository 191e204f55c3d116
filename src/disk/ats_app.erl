%% @private
%% @doc The application: one supervisor, of the process that owns open tables on disk, of those that
%% merge their values by modules of programs, of the one that knows which values are being made, of
%% the one that tells of objects that are gone from tables, of the one whose processes tell programs
%% of the changes of tables, and of the one whose processes maintain views.
%%
%% Tables in memory need no process, so a program that has only those need not start the
%% application. {@link ats:fetch/3}, {@link ats:follow/2} and {@link ats:view/3} start it when they
%% need it.
-module(ats_app).

-behaviour(application).
-behaviour(supervisor).

-export([start/2, stop/1]).
-export([init/1]).

-spec start(application:start_type(), term()) -> {ok, pid()} | {error, term()}.
start(_Type, _Arguments) ->
    case set_shared_memory(application:get_env(ats, disk_memory)) of
        ok -> start_supervisor(application:get_env(ats, mnesia, false));
        Error -> Error
    end.

set_shared_memory({ok, Bytes}) -> ats_disk_options:set_shared_memory(Bytes);
set_shared_memory(undefined) -> ok.

start_supervisor(WithMnesia) ->
    case supervisor:start_link(?MODULE, []) of
        {ok, Supervisor} when WithMnesia -> add_to_mnesia(Supervisor);
        {ok, Supervisor} -> {ok, Supervisor};
        Other -> {error, Other}
    end.

add_to_mnesia(Supervisor) ->
    case ats_mnesia:prepare() of
        ok -> {ok, Supervisor};
        Error -> Error
    end.

-spec stop(term()) -> ok.
stop(_State) ->
    ok.

%% The server may take its time to stop: closing a table takes as long as writing its records in
%% memory.
-spec init([]) -> {ok, {supervisor:sup_flags(), [supervisor:child_spec()]}}.
init([]) ->
    ok = ats_merge_watchdog:prepare(),
    {ok, {#{strategy => one_for_one, intensity => 3, period => 5},
          ats_merge_background:child_specs({ats_disk_tables, ids}) ++
              [#{id => ats_disk_tables,
                 start => {ats_disk_tables, start_link, []},
                 shutdown => infinity},
               #{id => ats_fetch, start => {ats_fetch, start_link, []}},
               #{id => ats_evicted, start => {ats_evicted, start_link, []}},
               #{id => ats_follow, start => {ats_follow, start_link, []}},
               #{id => ats_view, start => {ats_view, start_link, []}}]}}.

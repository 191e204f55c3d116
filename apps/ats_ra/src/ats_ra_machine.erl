%% @private
%% @doc The state machine: a table that commands of the log change, and nobody else.
-module(ats_ra_machine).
-behaviour(ra_machine).

-export([init/1, apply/3, state_enter/2, snapshot_module/0]).
-export([version/0, which_module/1, make/3, query/3]).

-export_type([state/0, config/0]).

-type config() :: #{table := ats_ra_table:config(), snapshot_every := pos_integer()}.
-type state() :: #{name := atom(), config := config(), table := ats_ra_table:table(),
                   since := non_neg_integer()}.
%% `since' counts commands since a moment was taken for a snapshot.

%% Most objects that are written to snapshots for each command. Checkpoints write none.
-define(OBJECTS_A_COMMAND, 8).

%% Functions that only read.
-define(READS, [lookup, lookup_element, lookup_elements, member, info, first, last, next, prev,
                first_lookup, last_lookup, next_lookup, prev_lookup, select, select_reverse,
                select_count, match, match_object, tab2list, range, range_count, prefix, rank, nth,
                range_nth, read]).

-spec init(#{name := atom(), config := config(), _ => _}) -> state().
init(#{name := Server, config := Config}) ->
    #{table := Table} = State = make(Server, Config, none),
    ok = ats_ra_table:publish(Server, Table),
    State.

%% @doc Makes a machine whose table cannot be found by its name yet. The table is empty, or has the
%% objects of a snapshot on disk.
-spec make(Server :: atom(), config(), From :: file:filename() | none) -> state().
make(Server, #{table := Table} = Config, From) ->
    #{name => Server, config => Config, table => ats_ra_table:make(Server, Table, From),
      since => 0}.

%% @doc Applies a command. Messages of `ra' itself change no table.
-spec apply(ra_machine:command_meta_data(), Command :: term(), state()) ->
          {state(), Reply :: term(), ra_machine:effects()}.
apply(#{index := Index}, {?MODULE, Command}, #{table := Table, since := Since} = State) ->
    Answer = ats_ra_command:run(Command, Table),
    %% Takes the moment here, since `ra' may have applied more commands when it handles the effect.
    %% It can refuse the effect; then the next one takes its place.
    case is_due(Since + 1, State) of
        true ->
            Snapshot = {maps:get(config, State), ats_ra_moment:take(Table)},
            {State#{since := 0}, Answer, [{release_cursor, Index, Snapshot}]};
        false ->
            {State#{since := Since + 1}, Answer, []}
    end;
apply(_Meta, _Other, State) ->
    {State, ok, []}.

is_due(Since, #{config := #{snapshot_every := Every}, table := {Module, Id}}) ->
    Since rem Every =:= 0 andalso not ats_ra_moment:is_in_use()
        andalso (Module =:= dats orelse Since * ?OBJECTS_A_COMMAND >= ats:info(Id, size)).

-spec state_enter(ra_server:ra_state() | eol, state()) -> ra_machine:effects().
state_enter(eol, #{name := Server}) ->
    ok = ats_ra_table:delete(Server),
    [];
state_enter(_RaftState, _State) ->
    [].

-spec snapshot_module() -> module().
snapshot_module() -> ats_ra_snapshot.

%% @doc Returns the version. One that does something else with a command gets a number, and the
%% earlier ones modules of their own: members change over when all of them have it.
-spec version() -> pos_integer().
version() -> 1.

-spec which_module(ra_machine:version()) -> module().
which_module(_Version) -> ?MODULE.

%% @doc Calls a function that reads a table. The server that does must survive it.
-spec query(Function :: atom(), [term()], state() | ats_ra_table:table() | undefined) ->
          ats_ra_command:answer().
query(Function, Arguments, #{table := Table}) ->
    query(Function, Arguments, Table);
query(_Function, _Arguments, undefined) ->
    {error, noproc};
query(Function, Arguments, {Module, Id}) ->
    IsRead = lists:member(Function, ?READS)
        andalso erlang:function_exported(Module, Function, length(Arguments) + 1),
    try IsRead andalso {ok, erlang:apply(Module, Function, [Id | Arguments])} of
        false -> {error, {badarg, <<"no function that only reads">>}};
        {ok, {error, _} = Failed} -> Failed;
        Answer -> Answer
    catch
        error:badarg:Stack -> {error, {badarg, ats_ra_command:text(badarg, Stack)}};
        _:Reason -> {error, Reason}
    end.

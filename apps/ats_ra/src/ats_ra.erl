%% @doc Tables that several machines keep, by Raft: a change is in the log of a majority before it
%% is answered, and all members make the same changes in the same order.
%%
%% The page `docs/use/raft.md' states the guarantees. `ra' runs the servers; its functions for them,
%% such as `ra:add_member/2' and `ra:restart_server/2', are used beside this module.
%%
%% ```
%% Servers = [{prices, Node} || Node <- Nodes],
%% {ok, _, _} = ats_ra:start_cluster(default, prices, {ats, [ordered_set]}, Servers),
%% {ok, true} = ats_ra:command(hd(Servers), {insert, {pear, 4}}),
%% {ok, [true, 3]} = ats_ra:command(hd(Servers), [{insert, {fig, 2}}, {update_counter, fig, 1}]),
%% {ok, [{fig, 3}]} = ats_ra:read(consistent, hd(Servers), lookup, [fig]).
%% '''
-module(ats_ra).

-export([start_cluster/4, start_cluster/5, machine/2]).
-export([command/2, command/3, read/4, read/5, table/1]).

-type options() :: #{snapshot_every => pos_integer()}.
%% The number of commands after which a snapshot takes the place of the log, 4096 by default. There
%% are more if the table has many objects.
-type started() :: {ok, Started :: [ra:server_id()], NotStarted :: [ra:server_id()]}
                 | {error, cluster_not_formed}.

-define(TIMEOUT, 5000).
%% Options that let others than the server write, or that are chosen here.
-define(RESERVED, [named_table, public, private, protected, heir, owner, file, access, repair]).

%% @equiv start_cluster(System, Name, Table, Servers, #{})
-spec start_cluster(System :: atom(), Name :: atom(), ats_ra_table:config(), [ra:server_id()]) ->
          started().
start_cluster(System, Name, Table, Servers) ->
    start_cluster(System, Name, Table, Servers, #{}).

%% @doc Starts servers that keep a table, made with options of `ats:new/2' or `dats:open_file/2',
%% but for those that say who may use it and where it is.
-spec start_cluster(System :: atom(), Name :: atom(), ats_ra_table:config(), [ra:server_id()],
                    options()) -> started().
start_cluster(System, Name, Table, Servers, Options) ->
    {module, _, #{config := #{snapshot_every := Every}}} = Machine = machine(Table, Options),
    Configs = [begin
                   Uid = ra:new_uid(atom_to_binary(Name)),
                   #{id => Server, uid => Uid, cluster_name => Name, initial_members => Servers,
                     log_init_args => #{uid => Uid, snapshot_interval => Every - 1},
                     machine => Machine}
               end || Server <- Servers],
    ra:start_cluster(System, Configs).

%% @doc Returns the machine, for those who make the configuration of servers themselves.
-spec machine(ats_ra_table:config(), options()) -> ra_server:machine_conf().
machine({Module, Options} = Table, More) when Module =:= ats; Module =:= dats ->
    lists:any(fun(Option) -> lists:member(Option, ?RESERVED) end, proplists:get_keys(Options))
        andalso erlang:error(badarg, [Table, More]),
    Config = maps:merge(#{table => Table, snapshot_every => 4096}, More),
    {module, ats_ra_machine, #{config => Config}}.

%% @equiv command(Server, Command, 5000)
-spec command(ra:server_id(), ats_ra_command:commands()) -> ats_ra_command:answer().
command(Server, Command) ->
    command(Server, Command, ?TIMEOUT).

%% @doc Has the leader log a command, or a list of them as one, and returns its result. `{error,
%% {badarg, Text}}' says that it changed nothing. After another error, such as `timeout' or
%% `nodedown', the command may have been applied, or may be applied later.
-spec command(ra:server_id(), ats_ra_command:commands(), timeout()) -> ats_ra_command:answer().
command({_, _} = Server, Command, Timeout) ->
    answer(ra:process_command(Server, {ats_ra_machine, Command}, Timeout)).

%% @equiv read(How, Server, Function, Arguments, 5000)
-spec read(local | leader | consistent, ra:server_id(), Function :: atom(),
           Arguments :: [term()]) -> ats_ra_command:answer().
read(How, Server, Function, Arguments) ->
    read(How, Server, Function, Arguments, ?TIMEOUT).

%% @doc Calls a function that reads. `local' reads the table of this node in the calling process: it
%% may lag behind, and the commands of a list arrive there one by one. `leader' has it done by the
%% server that takes itself for the leader, and `consistent' by one that a majority has confirmed
%% since: it sees all commands that were answered before.
-spec read(local | leader | consistent, ra:server_id(), Function :: atom(),
           Arguments :: [term()], timeout()) -> ats_ra_command:answer().
read(local, {Name, Node} = Server, Function, Arguments, Timeout) when Node =:= node() ->
    Table = table(Name),
    Answer = ats_ra_machine:query(Function, Arguments, Table),
    case table(Name) of
        Table -> Answer;
        _Newer -> read(local, Server, Function, Arguments, Timeout)
    end;
read(leader, Server, Function, Arguments, Timeout) ->
    answer(ra:leader_query(Server, {ats_ra_machine, query, [Function, Arguments]}, Timeout));
read(consistent, Server, Function, Arguments, Timeout) ->
    answer(ra:consistent_query(Server, {ats_ra_machine, query, [Function, Arguments]}, Timeout)).

answer({ok, {{_Index, _Term}, Answer}, _Leader}) -> Answer;
answer({ok, Answer, _Leader}) -> Answer;
answer({timeout, _Server}) -> {error, timeout};
answer({error, Reason}) -> {error, Reason}.

%% @doc Returns the table of this node, to be read by the functions of its module; nobody may write.
%% A server that starts again, or gets a snapshot, makes another one.
-spec table(Name :: atom()) -> ats_ra_table:table() | undefined.
table(Name) ->
    ats_ra_table:find(Name).

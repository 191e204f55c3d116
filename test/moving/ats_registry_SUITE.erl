%% @doc Elixir's `Registry', moved to `ats' by `ats_transform', works as on `ets'.
%%
%% It is the code of Elixir that leans most on tables: one of them for keys and one for processes in
%% each partition, read and written by every process that calls `Registry'. A copy is made of its
%% object files, and copy and original get the same random work, done by the same processes, some of
%% which are killed.
-module(ats_registry_SUITE).

-include_lib("proper/include/proper.hrl").
-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0, init_per_suite/1, end_per_suite/1]).
-export([unique_keys/1, duplicate_keys/1, names_of_processes/1]).
%% A process that is found by name.
-export([init/1, handle_call/3, handle_cast/2]).

-behaviour(gen_server).

-import(ats_module_copy, [check/2, same/2, sort/1]).

-define(MODULES, ['Elixir.Registry', 'Elixir.Registry.Partition', 'Elixir.Registry.Supervisor']).
-define(WORKERS, 3).

suite() -> [{timetrap, {minutes, 15}}].

all() -> [unique_keys, duplicate_keys, names_of_processes].

init_per_suite(Config) ->
    case find_elixir() of
        none ->
            {skip, "Elixir is not installed"};
        Folder ->
            true = code:add_pathz(Folder),
            [{copies, ats_module_copy:load(moved, ?MODULES)} | Config]
    end.

end_per_suite(Config) ->
    ats_module_copy:unload(proplists:get_value(copies, Config)).

%% The folder of its object files; the program knows best.
find_elixir() ->
    Command = "elixir -e 'IO.write(:code.lib_dir(:elixir, :ebin))' 2>/dev/null",
    case {code:which('Elixir.Registry'), os:find_executable("elixir")} of
        {Found, _} when is_list(Found) -> filename:dirname(Found);
        {_, false} -> none;
        _ -> os:cmd(Command)
    end.

%%--------------------------------------------------------------------------------------------
%% Random work
%%--------------------------------------------------------------------------------------------

unique_keys(Config) -> compare(unique, Config).

duplicate_keys(Config) -> compare(duplicate, Config).

compare(Keys, Config) ->
    [Copy | _] = proplists:get_value(copies, Config),
    Property = ?FORALL({Partitions, Commands}, {integer(1, 3), list(command())},
                       same_work(Keys, Partitions, Commands, ['Elixir.Registry', Copy])),
    check(Property, 200).

command() ->
    frequency(
      [{12, {by, worker(), register, [key(), value()]}},
       {3, {by, worker(), unregister, [key()]}},
       {2, {by, worker(), unregister_match, [key(), pattern(), guards()]}},
       {2, {by, worker(), unregister_match, [key(), pattern()]}},
       {3, {by, worker(), update_value, [key(), fun(Value) -> {was, Value} end]}},
       {6, {ask, lookup, [key()]}},
       {2, {ask, match, [key(), pattern(), guards()]}},
       {2, {ask, match, [key(), pattern()]}},
       {3, {ask, keys, [{worker, worker()}]}},
       {2, {ask, values, [key(), {worker, worker()}]}},
       {2, {ask, count, []}},
       {1, {ask, count_match, [key(), pattern(), guards()]}},
       {2, {ask, select, [spec()]}},
       {1, {ask, count_select, [spec()]}},
       {1, {ask, put_meta, [meta_key(), value()]}},
       {1, {ask, meta, [meta_key()]}},
       {1, {ask, delete_meta, [meta_key()]}},
       {2, {dispatch, key()}},
       {1, {kill, worker()}}]).

worker() -> integer(1, ?WORKERS).

key() -> oneof([a, b, {c, 1}, 1, 1.0, <<"key">>, integer(1, 20), []]).

meta_key() -> frequency([{4, oneof([a, b])}, {1, 1}]).

value() -> oneof([integer(1, 5), {x, integer(1, 5)}, nil, <<"value">>, #{k => 1}, 'a b']).

pattern() ->
    frequency([{3, oneof(['_', '$1'])},
               {4, oneof([{x, '$1'}, {'_', 2}, nil, 3, #{k => '$1'}, {x, '$1', '$2'}])}]).

guards() ->
    frequency([{3, []},
               {4, oneof([[{'>', '$1', 2}], [{is_integer, '$1'}], [{'==', '$1', 1}, true]])},
               {1, oneof([[{nonsense}], x])}]).

%% Elixir's specifications have a tuple of three in their heads: key, process and value.
spec() ->
    Head = {oneof(['_', '$1', '$1', 1, a, {c, '_'}]), oneof(['_', '$2']), oneof(['$3', pattern()])},
    Body = oneof([true, '$_', '$$', {element, 1, '$_'}, '$1', {{'$1', '$2'}}]),
    Spec = {Head, guards(), [Body]},
    frequency([{6, ?LET(One, Spec, [One])},
               {2, list(Spec)},
               {1, oneof([x, [{{'_', '_'}, [], [true]}]])}]).

same_work(Keys, Partitions, Commands, Modules) ->
    Registries = [start(Module, Keys, Partitions) || Module <- Modules],
    Workers = maps:from_list([{N, new_worker()} || N <- lists:seq(1, ?WORKERS)]),
    {Results, Last} = lists:mapfoldl(
        fun(Command, Processes) -> do(Command, Registries, Processes) end, Workers, Commands),
    [stop_worker(Pid, Registries) || Pid <- maps:values(Last)],
    [?assertEqual(0, Module:count(Name)) || {Module, Name, _} <- Registries],
    lists:foreach(fun stop/1, Registries),
    lists:all(fun({Command, [A, B]}) -> same({Command, A}, {Command, B}) end, Results).

start(Module, Keys, Partitions) ->
    Name = list_to_atom("registry_" ++ atom_to_list(Module)),
    Options = [{keys, Keys}, {name, Name}, {partitions, Partitions}],
    {ok, Supervisor} = Module:start_link(Options),
    {Module, Name, Supervisor}.

stop({_, _, Supervisor}) ->
    unlink(Supervisor),
    Monitor = monitor(process, Supervisor),
    exit(Supervisor, shutdown),
    receive {'DOWN', Monitor, process, Supervisor, _} -> ok end.

do({by, N, Function, Arguments} = Command, Registries, Workers) ->
    Worker = maps:get(N, Workers),
    {{Command, [in_worker(Worker, R, Function, Arguments) || R <- Registries]}, Workers};
do({ask, Function, Arguments} = Command, Registries, Workers) ->
    Given = [worker_or(Argument, Workers) || Argument <- Arguments],
    {{Command, [call(Registry, Function, Given) || Registry <- Registries]}, Workers};
do({dispatch, Key} = Command, Registries, Workers) ->
    {{Command, [dispatched(Registry, Key) || Registry <- Registries]}, Workers};
do({kill, N} = Command, Registries, Workers) ->
    stop_worker(maps:get(N, Workers), Registries),
    {{Command, [killed, killed]}, Workers#{N := new_worker()}}.

worker_or({worker, N}, Workers) -> maps:get(N, Workers);
worker_or(Argument, _Workers) -> Argument.

%% Keys come in the order of a hash table. A registry's name is the one thing that must differ.
call({Module, Name, _}, Function, Arguments) ->
    try apply(Module, Function, [Name | Arguments]) of
        List when is_list(List), Function =:= select orelse Function =:= keys -> sort(List);
        %% The process that keeps the entry; each registry has its own.
        {ok, Partition} when is_pid(Partition) -> registered;
        Result -> Result
    catch
        Class:Reason -> {Class, Reason}
    end.

dispatched({Module, Name, _}, Key) ->
    Self = self(),
    Tag = make_ref(),
    ok = Module:dispatch(Name, Key, fun(Entries) -> Self ! {Tag, Entries} end),
    fun Collect() -> receive {Tag, Entries} -> [Entries | Collect()] after 0 -> [] end end().

%%--------------------------------------------------------------------------------------------
%% The processes that register
%%--------------------------------------------------------------------------------------------

new_worker() ->
    spawn(fun worker_loop/0).

worker_loop() ->
    receive
        {From, Registry, Function, Arguments} ->
            From ! {self(), call(Registry, Function, Arguments)},
            worker_loop()
    end.

in_worker(Worker, Registry, Function, Arguments) ->
    Worker ! {self(), Registry, Function, Arguments},
    receive {Worker, Result} -> Result end.

%% Kills a process, and waits until both registries have forgotten it.
stop_worker(Worker, Registries) ->
    exit(Worker, kill),
    [
        begin
            ats_test_lib:until(fun() -> Module:keys(Name, Worker) =:= [] end, 5000),
            %% The process that forgets a worker first removes the entry that `keys' reads. This
            %% waits for it to finish.
            [sys:get_state(Pid) || {_, Pid, worker, _} <- supervisor:which_children(Supervisor)]
        end
     || {Module, Name, Supervisor} <- Registries
    ].

%%--------------------------------------------------------------------------------------------
%% The usual use
%%--------------------------------------------------------------------------------------------

%% Processes that are found by name, of which the names are taken over when they die.
names_of_processes(Config) ->
    [Copy | _] = proplists:get_value(copies, Config),
    Registry = {_, Name, _} = start(Copy, unique, 2),
    Via = {via, Copy, {Name, "counter"}},
    {ok, First} = gen_server:start(Via, ?MODULE, [], []),
    Taken = {error, {already_started, First}},
    ?assertEqual(Taken, gen_server:start(Via, ?MODULE, [], [])),
    ?assertEqual(First, Copy:whereis_name({Name, "counter"})),
    ?assertEqual(First, gen_server:call(Via, who)),
    exit(First, kill),
    ats_test_lib:until(fun() -> Copy:whereis_name({Name, "counter"}) =:= undefined end, 5000),
    {ok, Second} = gen_server:start(Via, ?MODULE, [], []),
    ?assertEqual(Second, gen_server:call(Via, who)),
    ?assertExit({noproc, _}, gen_server:call({via, Copy, {Name, "other"}}, who)),
    exit(Second, kill),
    stop(Registry).

init([]) -> {ok, none}.

handle_call(who, _From, State) -> {reply, self(), State}.

handle_cast(_, State) -> {noreply, State}.

%% The native library is loaded, reloaded and unloaded while tables exist. Each case runs in a
%% machine of its own, since a mistake here ends the machine.
-module(ats_reload_SUITE).

-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0, init_per_suite/1, end_per_suite/1]).
-export([
    tables_survive_reload/1,
    reload_under_load/1,
    delete_and_load_again/1,
    old_code_goes_on/1,
    everything_reloaded/1,
    halt_with_tables/1
]).
%% Called in another machine.
-export([reload/0, load/0, delete/0, old/0, all_modules/0, leave_tables/0]).

-import(ats_test_lib, [until/2]).

suite() -> [{timetrap, {minutes, 15}}].

all() ->
    [
        tables_survive_reload,
        reload_under_load,
        delete_and_load_again,
        old_code_goes_on,
        everything_reloaded,
        halt_with_tables
    ].

init_per_suite(Config) ->
    case ats_oracle:subject() of
        ats -> Config;
        _ -> {skip, "nothing native to load"}
    end.

end_per_suite(_) ->
    ok.

tables_survive_reload(_) -> elsewhere(reload).
reload_under_load(_) -> elsewhere(load).
delete_and_load_again(_) -> elsewhere(delete).
old_code_goes_on(_) -> elsewhere(old).
everything_reloaded(_) -> elsewhere(all_modules).

%% Checks that the machine still runs after the code server and the garbage collector had time to
%% unload unused code.
elsewhere(Function) ->
    {ok, Peer, _} = ats_test_lib:start_vm([]),
    try
        ?assertEqual(ok, peer:call(Peer, ?MODULE, Function, [], 120000)),
        timer:sleep(200),
        ?assertEqual(pong, ats_test_lib:call(Peer, erlang, apply, [fun() -> pong end, []]))
    after
        ats_test_lib:stop_vm(Peer)
    end.

%% A machine that stops with tables, fixations and running calls stops normally.
halt_with_tables(_) ->
    Paths = lists:append([[" -pa '", P, "'"] || P <- code:get_path(), filelib:is_dir(P)]),
    Command =
        "erl -noinput" ++ Paths ++ " -run " ++ atom_to_list(?MODULE) ++ " leave_tables; echo $?",
    Output = string:trim(os:cmd(Command)),
    ?assertEqual("0", lists:last(string:lexemes(Output, "\n"))).

leave_tables() ->
    T = ats:new(left, [ordered_set, public]),
    ats:insert(T, [{N, <<N:8000>>, make_ref()} || N <- lists:seq(1, 20000)]),
    ats:safe_fixtable(T, true),
    [spawn(fun() -> busy(T) end) || _ <- [1, 2, 3, 4]],
    timer:sleep(100),
    halt(0).

busy(T) ->
    K = rand:uniform(40000),
    ats:insert(T, {K, <<0:8000>>, make_ref()}),
    ats:lookup(T, K),
    K rem 100 =:= 0 andalso ats:tab2list(T),
    busy(T).

%% ----- in the other machine -----

reload() ->
    Tables = [filled(Type) || Type <- [set, ordered_set, bag, duplicate_bag]],
    Named = ats:new(named, [named_table, public]),
    lists:foreach(
        fun(Round) ->
            reload_module(ats_nif),
            [check(T) || T <- Tables],
            ats:insert(Named, {round, Round}),
            [{round, Round}] = ats:lookup(Named, round),
            %% New tables of the new code live beside the old ones.
            check(filled(set)),
            lists:foreach(fun erlang:garbage_collect/1, processes())
        end,
        lists:seq(1, 10)
    ),
    [ats:delete(T) || T <- [Named | Tables]],
    ok.

load() ->
    T = filled(ordered_set),
    Stop = atomics:new(1, []),
    Workers = [spawn_monitor(fun() -> work(T, Stop) end) || _ <- [1, 2, 3, 4]],
    [
        begin
            soft_reload(ats_nif),
            timer:sleep(20)
        end
     || _ <- lists:seq(1, 30)
    ],
    atomics:put(Stop, 1, 1),
    [
        receive
            {'DOWN', Mon, process, _, Reason} -> normal = Reason
        end
     || {_, Mon} <- Workers
    ],
    ats_test_lib:check_consistency(T),
    ok.

delete() ->
    T = filled(set),
    [
        begin
            true = code:delete(ats_nif),
            code:purge(ats_nif),
            {module, ats_nif} = code:load_file(ats_nif),
            %% Tables may have gone with the library, but then they are gone, not broken.
            case ats:info(T, size) of
                undefined ->
                    Gone = ats_test_lib:attempt(fun() -> ats:lookup(T, 1) end),
                    {'EXIT', {badarg, _}} = Gone;
                1000 -> check(T)
            end,
            check(filled(ordered_set)),
            lists:foreach(fun erlang:garbage_collect/1, processes())
        end
     || _ <- lists:seq(1, 10)
    ],
    ok.

%% A process inside of the old code, a table made by it, and the new code at the same time.
old() ->
    T = filled(set),
    Stop = atomics:new(1, []),
    {Pid, Mon} = spawn_monitor(fun() -> work(T, Stop) end),
    {module, ats_nif} = code:load_file(ats_nif),
    [[{N, _}] = ats:lookup(T, N) || N <- lists:seq(1, 1000)],
    timer:sleep(50),
    atomics:put(Stop, 1, 1),
    receive
        {'DOWN', Mon, process, Pid, normal} -> ok
    end,
    code:purge(ats_nif),
    check(T),
    ok.

all_modules() ->
    T = filled(ordered_set),
    {ok, Modules} = application_modules(),
    [
        begin
            [reload_module(Module) || Module <- Modules],
            check(T)
        end
     || _ <- [1, 2, 3]
    ],
    ok.

application_modules() ->
    _ = application:load(ats),
    application:get_key(ats, modules).

reload_module(Module) ->
    code:purge(Module),
    {module, Module} = code:load_file(Module),
    ok.

%% Never kills a process that is still in the old code.
soft_reload(Module) ->
    case code:soft_purge(Module) of
        true ->
            {module, Module} = code:load_file(Module),
            ok;
        false ->
            ok
    end.

filled(Type) ->
    T = ats:new(filled, [Type, public]),
    ats:insert(T, [{N, object(N)} || N <- lists:seq(1, 1000)]),
    T.

object(N) -> {N, <<N:16000>>, #{n => N}, float(N)}.

check(T) ->
    1000 = ats:info(T, size),
    [[{N, _}] = ats:lookup(T, N) || N <- [1, 500, 1000]],
    Expected = [{N, object(N)} || N <- lists:seq(1, 1000)],
    Expected = lists:sort(ats:tab2list(T)),
    ok.

work(T, Stop) ->
    K = 2000 + rand:uniform(1000),
    ats:insert(T, {K, x}),
    ats:lookup(T, K),
    ats:next(T, 1),
    ats:delete(T, K),
    case atomics:get(Stop, 1) of
        0 -> work(T, Stop);
        1 -> ok
    end.

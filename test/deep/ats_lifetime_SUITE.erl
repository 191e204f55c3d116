%% Life and death: of tables, of their owners and heirs, of processes in the middle of a call, of
%% the whole virtual machine.
-module(ats_lifetime_SUITE).

-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0]).
-export([
    owner_dies/1,
    name_is_free_after_death/1,
    supervisor_restarts/1,
    heir_receives/1,
    heir_is_dead/1,
    heir_chain/1,
    fixation_ends_with_process/1,
    named_tables_race/1,
    deleted_while_made/1,
    rename_race/1,
    renamings_by_identifier/1,
    one_name_at_a_time/1,
    made_and_deleted_for_both_names/1,
    rename_after_death/1,
    tables_are_listed/1,
    many_tables/1,
    killed_in_any_call/1,
    killed_in_list_insert/1,
    owner_killed_under_load/1,
    vm_killed/1
]).
-export([work_in_background/1]).

-import(ats_test_lib, [parallel/1, until/2, kill/1, ask/2, check_consistency/1]).

-define(SOON_MS, 2000).
%% The time for which the last call of a killed process may go on.
-define(STRAGGLER_MS, 500).

suite() -> [{timetrap, {minutes, 10}}].

all() ->
    [
        owner_dies,
        name_is_free_after_death,
        supervisor_restarts,
        heir_receives,
        heir_is_dead,
        heir_chain,
        fixation_ends_with_process,
        named_tables_race,
        deleted_while_made,
        rename_race,
        renamings_by_identifier,
        one_name_at_a_time,
        made_and_deleted_for_both_names,
        rename_after_death,
        tables_are_listed,
        many_tables,
        killed_in_any_call,
        killed_in_list_insert,
        owner_killed_under_load,
        vm_killed
    ].

%% ----- owners and heirs -----

owner_dies(_) ->
    M = ats_oracle:subject(),
    lists:foreach(
        fun(End) ->
            {Owner, T} = owner(M, mortal, [public]),
            ?assertEqual(Owner, M:info(T, owner)),
            M:insert(T, [{K, <<0:8000>>} || K <- lists:seq(1, 1000)]),
            Mon = erlang:monitor(process, Owner),
            End(Owner),
            receive
                {'DOWN', Mon, process, Owner, _} -> ok
            end,
            ?assertEqual(undefined, M:info(T)),
            ?assertError(badarg, M:lookup(T, 1)),
            ?assertError(badarg, M:insert(T, {1})),
            ?assertNot(lists:member(T, M:all()))
        end,
        [fun ats_test_lib:kill/1, fun(Pid) -> Pid ! stop end, fun(Pid) -> exit(Pid, crash) end]
    ).

%% A process that has received the 'DOWN' or 'EXIT' of an owner can use the name of its table at
%% once.
name_is_free_after_death(_) ->
    M = ats_oracle:subject(),
    lists:foreach(
        fun(_) ->
            {Owner, T} = owner(M, ats_test_reborn, [named_table, public]),
            ?assertEqual(ats_test_reborn, T),
            kill(Owner),
            {Next, T} = owner(M, ats_test_reborn, [named_table]),
            ?assertEqual(Next, M:info(T, owner)),
            kill(Next)
        end,
        lists:seq(1, 200)
    ).

%% A supervisor restarts its child as soon as the 'EXIT' arrives. That may be before any other
%% process learns of the death.
supervisor_restarts(_) ->
    M = ats_oracle:subject(),
    Child = fun() ->
        {ok,
            proc_lib:spawn_link(fun() ->
                M:new(ats_test_supervised, [named_table, public]),
                M:insert(ats_test_supervised, {owner, self()}),
                receive
                    stop -> ok
                end
            end)}
    end,
    with_children(Child, fun() ->
        lists:foreach(
            fun(_) ->
                until(fun() -> is_alive(M, ats_test_supervised) end, ?SOON_MS),
                [{owner, Pid}] = M:lookup(ats_test_supervised, owner),
                exit(Pid, kill)
            end,
            lists:seq(1, 100)
        )
    end).

%% A supervisor in miniature. Its child must never fail to make its table.
with_children(Start, Test) ->
    Supervisor = spawn(fun() ->
        process_flag(trap_exit, true),
        {ok, First} = Start(),
        supervise(Start, First)
    end),
    Mon = erlang:monitor(process, Supervisor),
    try
        Test()
    after
        erlang:demonitor(Mon, [flush]),
        Alive = is_process_alive(Supervisor),
        kill(Supervisor),
        ?assert(Alive)
    end.

supervise(Start, Child) ->
    receive
        {'EXIT', Child, killed} ->
            {ok, Next} = Start(),
            supervise(Start, Next);
        {'EXIT', Child, Reason} ->
            exit({child_failed, Reason})
    end.

is_alive(M, Name) ->
    try
        case M:lookup(Name, owner) of
            [{owner, Pid}] -> is_process_alive(Pid);
            [] -> false
        end
    catch
        error:badarg -> false
    end.

heir_receives(_) ->
    M = ats_oracle:subject(),
    lists:foreach(
        fun(Options) ->
            Data = {inheritance, make_ref(), <<1:3>>},
            {Owner, T} = owner(M, ats_test_estate, [{heir, self(), Data} | Options]),
            ?assertEqual(self(), M:info(T, heir)),
            ask(Owner, fun() -> M:insert(T, [{K, v} || K <- lists:seq(1, 100)]) end),
            ?assertError(badarg, M:insert(T, {a, b})),
            kill(Owner),
            receive
                {'ETS-TRANSFER', T, Owner, Data} -> ok
            after ?SOON_MS -> ct:fail(nothing_inherited)
            end,
            ?assertEqual(self(), M:info(T, owner)),
            ?assertEqual(100, M:info(T, size)),
            ?assert(M:insert(T, {a, b})),
            M:delete(T)
        end,
        [[], [private], [named_table], [ordered_set, protected], [bag, named_table, private]]
    ).

heir_is_dead(_) ->
    M = ats_oracle:subject(),
    {Heir, _} = spawn_monitor(fun() -> ok end),
    receive
        {'DOWN', _, process, Heir, _} -> ok
    end,
    {Owner, T} = owner(M, estate, [{heir, Heir, nothing}]),
    kill(Owner),
    ?assertEqual(undefined, M:info(T)),
    %% An heir that dies before the owner inherits nothing either.
    Short = spawn(fun() -> timer:sleep(infinity) end),
    {Owner2, T2} = owner(M, estate, [{heir, Short, nothing}]),
    kill(Short),
    kill(Owner2),
    ?assertEqual(undefined, M:info(T2)).

%% The heir becomes the owner: when it dies, the table goes with it.
heir_chain(_) ->
    M = ats_oracle:subject(),
    Heir = spawn(fun() -> server(#{}) end),
    {Owner, T} = owner(M, estate, [{heir, Heir, gift}, private]),
    ask(Owner, fun() -> M:insert(T, {k, v}) end),
    kill(Owner),
    ?assertEqual(Heir, M:info(T, owner)),
    ?assertEqual([{k, v}], ask(Heir, fun() -> M:lookup(T, k) end)),
    kill(Heir),
    ?assertEqual(undefined, M:info(T)).

fixation_ends_with_process(_) ->
    M = ats_oracle:subject(),
    lists:foreach(
        fun(Type) ->
            T = M:new(fixed, [Type, public]),
            M:insert(T, [{K, v} || K <- lists:seq(1, 100)]),
            Fixer = spawn(fun() -> server(#{}) end),
            ask(Fixer, fun() -> M:safe_fixtable(T, true), M:safe_fixtable(T, true) end),
            ?assert(M:info(T, fixed)),
            ?assertMatch({_, [{Fixer, 2}]}, M:info(T, safe_fixed)),
            ?assertMatch({_, [{Fixer, 2}]}, M:info(T, safe_fixed_monotonic_time)),
            [M:delete(T, K) || K <- lists:seq(1, 50)],
            kill(Fixer),
            ?assertEqual(false, M:info(T, safe_fixed)),
            ?assertNot(M:info(T, fixed)),
            ?assertEqual(50, M:info(T, size)),
            check_consistency(T),
            M:delete(T)
        end,
        [set, ordered_set, bag, duplicate_bag]
    ).

%% ----- names -----

%% A table is found by its name before its maker has returned. If it is deleted then, it is not
%% listed.
deleted_while_made(_) ->
    M = ats_oracle:subject(),
    Before = lists:sort(M:all()),
    Options = [named_table, public],
    Try = fun(Call, Times) -> [ats_test_lib:attempt(Call) || _ <- lists:seq(1, Times)] end,
    Make = fun() -> Try(fun() -> M:new(ats_test_brief, Options) end, 20000) end,
    Delete = fun() -> Try(fun() -> M:delete(ats_test_brief) end, 40000) end,
    IsTable = fun(T) -> is_atom(T) orelse is_reference(T) end,
    List = fun() -> [true = lists:all(IsTable, M:all()) || _ <- lists:seq(1, 2000)] end,
    _ = parallel([Make, Make, Delete, Delete, List]),
    _ = ats_test_lib:attempt(fun() -> M:delete(ats_test_brief) end),
    ?assertEqual(Before, lists:sort(M:all())).

named_tables_race(_) ->
    M = ats_oracle:subject(),
    lists:foreach(
        fun(_) ->
            Test = self(),
            Racers = [
                spawn_monitor(fun() ->
                    Got = ats_oracle:call(M, new, [ats_test_prize, [named_table]]),
                    Test ! {self(), Got},
                    receive
                        stop -> ok
                    end
                end)
             || _ <- lists:seq(1, 4)
            ],
            Results = [
                receive
                    {Pid, Got} -> Got
                end
             || {Pid, _} <- Racers
            ],
            ?assertEqual(1, length([ok || {ok, ats_test_prize} <- Results])),
            ?assertEqual(3, length([ok || {fail, error, badarg, _} <- Results])),
            [kill(Pid) || {Pid, _} <- Racers],
            receive_all_downs(Racers),
            ?assertEqual(undefined, M:whereis(ats_test_prize))
        end,
        lists:seq(1, 50)
    ).

receive_all_downs(Racers) ->
    [
        receive
            {'DOWN', Mon, process, _, _} -> ok
        end
     || {_, Mon} <- Racers
    ].

%% Two tables that want the same name: exactly one gets it, and each keeps its own objects.
rename_race(_) ->
    M = ats_oracle:subject(),
    lists:foreach(
        fun(_) ->
            Names = [ats_test_a, ats_test_b, ats_test_c],
            [M:insert(M:new(N, [named_table, public]), {name, N}) || N <- Names],
            Tids = [M:whereis(N) || N <- Names],
            Won = parallel([
                fun() -> ats_oracle:call(M, rename, [N, ats_test_d]) end
             || N <- Names
            ]),
            ?assertEqual(1, length([ok || {ok, ats_test_d} <- Won])),
            [Winner] = [N || {N, {ok, _}} <- lists:zip(Names, Won)],
            ?assertEqual([{name, Winner}], M:lookup(ats_test_d, name)),
            ?assertEqual(undefined, M:whereis(Winner)),
            ?assertEqual([[{name, N}] || N <- Names], [M:lookup(T, name) || T <- Tids]),
            [M:delete(T) || T <- Tids]
        end,
        lists:seq(1, 50)
    ).

%% A process that knows the identifier can rename the table, also while other processes do.
renamings_by_identifier(_) ->
    M = ats_oracle:subject(),
    T = M:whereis(M:new(ats_test_a, [named_table, public])),
    Renamer = fun(Names) ->
        fun() ->
            [?assertEqual(Name, M:rename(T, Name)) || _ <- lists:seq(1, 50000), Name <- Names]
        end
    end,
    _ = parallel([
        Renamer([ats_test_1, ats_test_2]),
        Renamer([ats_test_3, ats_test_4]),
        Renamer([ats_test_5, ats_test_6])
    ]),
    Name = M:info(T, name),
    ?assertEqual(T, M:whereis(Name)),
    Names = [ats_test_a, ats_test_1, ats_test_2, ats_test_3, ats_test_4, ats_test_5, ats_test_6],
    ?assertEqual([Name], [N || N <- Names, M:whereis(N) =/= undefined]),
    true = M:delete(T),
    ok.

%% A table whose name changes is never found under the next name and then under the one before.
one_name_at_a_time(_) ->
    M = ats_oracle:subject(),
    {Rounds, Ring} = {100000, 1000},
    Names = list_to_tuple([
        list_to_atom("ats_test_" ++ integer_to_list(N))
     || N <- lists:seq(1, Ring)
    ]),
    Nth = fun(N) -> element(N rem Ring + 1, Names) end,
    Counter = atomics:new(1, []),
    T = M:whereis(M:new(Nth(0), [named_table, public])),
    Rename = fun() ->
        [
            begin
                ?assertEqual(Nth(N), M:rename(Nth(N - 1), Nth(N))),
                atomics:put(Counter, 1, N)
            end
         || N <- lists:seq(1, Rounds)
        ]
    end,
    Look = fun Look(Looks) ->
        Before = atomics:get(Counter, 1),
        Found = [M:whereis(Nth(Before + 1)), M:whereis(Nth(Before))],
        %% More than that, and the name may have gone round.
        After = atomics:get(Counter, 1),
        ?assertNot(Found =:= [T, T] andalso After - Before < Ring - 10, {Before, After}),
        case Before of
            Rounds -> Looks;
            _ -> Look(Looks + 1)
        end
    end,
    [_, Looks] = parallel([Rename, fun() -> Look(0) end]),
    ct:pal("~b looks", [Looks]),
    true = M:delete(T),
    ok.

%% A table that is deleted is neither found by its identifier nor by its name, and one that is new
%% is found by both.
made_and_deleted_for_both_names(_) ->
    M = ats_oracle:subject(),
    Rounds = 20000,
    Name = ats_test_both,
    Found = fun Found() ->
        case M:whereis(Name) of
            undefined -> Found();
            T -> T
        end
    end,
    Gone = fun Gone(T) -> M:info(T, id) =:= undefined orelse Gone(T) end,
    Deleter = self(),
    Watch = fun() ->
        [
            begin
                T = Found(),
                ?assertEqual(T, M:info(T, id)),
                Deleter ! {found, T},
                true = Gone(T),
                ?assertEqual(undefined, M:whereis(Name)),
                Name = M:new(Name, [named_table, public]),
                New = M:whereis(Name),
                ?assertEqual(New, M:info(New, id)),
                true = M:delete(New),
                Deleter ! again
            end
         || _ <- lists:seq(1, Rounds)
        ]
    end,
    {Watcher, Monitor} = spawn_monitor(Watch),
    Await = fun(Message) ->
        receive
            {found, _} = Found1 when Message =:= found -> Found1;
            again when Message =:= again -> again;
            {'DOWN', Monitor, process, Watcher, Reason} -> error(Reason)
        end
    end,
    [
        begin
            Name = M:new(Name, [named_table, public]),
            {found, T} = Await(found),
            true = M:delete(T),
            again = Await(again)
        end
     || _ <- lists:seq(1, Rounds)
    ],
    receive
        {'DOWN', Monitor, process, Watcher, Reason} -> ?assertEqual(normal, Reason)
    end.

%% A process that knows that an owner is dead can give the name of the owner's table to another
%% table at once.
rename_after_death(_) ->
    M = ats_oracle:subject(),
    Rename = fun() ->
        T = M:new(ats_test_before, [named_table]),
        exit({renamed, M:rename(T, ats_test_after)})
    end,
    lists:foreach(
        fun(_) ->
            {Pid, Mon} = spawn_monitor(Rename),
            receive
                {'DOWN', Mon, process, Pid, Reason} ->
                    ?assertEqual({renamed, ats_test_after}, Reason)
            end
        end,
        lists:seq(1, 2000)
    ),
    ?assertEqual(undefined, M:whereis(ats_test_after)).

tables_are_listed(_) ->
    M = ats_oracle:subject(),
    Before = M:all(),
    Unnamed = [M:new(listed, []) || _ <- lists:seq(1, 20)],
    Named = [M:new(N, [named_table]) || N <- [ats_test_l1, ats_test_l2]],
    ?assertEqual(lists:sort(Unnamed ++ Named), lists:sort(M:all() -- Before)),
    [M:delete(T) || T <- Unnamed ++ Named],
    ?assertEqual([], M:all() -- Before).

%% Tables are cheap to make and leave nothing behind.
many_tables(_) ->
    M = ats_oracle:subject(),
    Make = fun(N) ->
        Types = {set, ordered_set, bag},
        Tables = [M:new(t, [element(1 + I rem 3, Types)]) || I <- lists:seq(1, N)],
        [M:insert(T, {K, <<0:800>>}) || T <- Tables, K <- [1, 2, 3]],
        [?assertMatch([{2, _}], M:lookup(T, 2)) || T <- Tables],
        [M:delete(T) || T <- Tables]
    end,
    In = fun(N) -> parallel([fun() -> Make(N) end]) end,
    In(5000),
    Before = ats_test_lib:settled_memory(),
    [In(5000) || _ <- [1, 2, 3, 4]],
    ats_test_lib:assert_memory_returns(Before, 0.05).

%% ----- kill at any moment -----

%% A process that repeats one kind of call is killed after a random time, again and again. Every
%% kind of call has its turn; the table is consistent and usable after each.
killed_in_any_call(_) ->
    M = ats_oracle:subject(),
    lists:foreach(
        fun({Type, Options}) ->
            T = M:new(victim, [Type, public | Options]),
            M:insert(T, [{K, 0, x} || K <- lists:seq(1, 300)]),
            lists:foreach(
                fun(Call) ->
                    [kill_during(fun() -> Call(M, T, rand:uniform(400)) end) || _ <- [1, 2, 3]],
                    until(fun() -> M:info(T, safe_fixed) =:= false end, ?SOON_MS),
                    check_consistency(T),
                    ?assert(M:insert(T, {alive, 1, x})),
                    ?assertMatch([_ | _], M:take(T, alive))
                end,
                calls(Type)
            ),
            M:delete(T)
        end,
        [
            {set, []},
            {set, [{write_concurrency, true}]},
            {ordered_set, []},
            {ordered_set, [{write_concurrency, true}]},
            {bag, []},
            {duplicate_bag, []}
        ]
    ).

calls(Type) ->
    [
        fun(M, T, K) -> M:insert(T, {K, 1, x}), M:delete(T, K) end,
        fun(M, T, K) -> M:insert(T, [{K + I, 1, x} || I <- lists:seq(1, 50)]) end,
        fun(M, T, K) -> M:insert_new(T, [{{K, I}, 1, x} || I <- lists:seq(1, 5)]) end,
        fun(M, T, K) -> M:insert(T, {K, 1, <<0:80000>>}), M:take(T, K) end,
        fun(M, T, K) -> M:delete_object(T, {K, 1, x}), M:insert_new(T, {K, 1, x}) end,
        fun(M, T, K) -> M:lookup(T, K), M:member(T, K), M:lookup_element(T, K, 2, none) end,
        fun(M, T, _) -> M:first(T), M:last(T), M:first_lookup(T), M:last_lookup(T) end,
        fun(M, T, _) -> M:tab2list(T) end,
        fun(M, T, _) -> M:foldl(fun(_, N) -> N + 1 end, 0, T) end,
        fun(M, T, _) -> M:foldr(fun(_, N) -> N + 1 end, 0, T) end,
        fun(M, T, _) -> M:safe_fixtable(T, true), M:delete(T, 5), M:insert(T, {5, 1, x}) end,
        fun(M, T, _) -> M:info(T), M:info(T, memory), M:info(T, stats) end,
        fun(M, _, _) -> M:delete(M:new(temporary, [])), M:all() end,
        fun(M, T, _) -> M:rename(T, victim2), M:rename(T, victim) end
    ] ++
        [
            Call
         || lists:member(Type, [set, ordered_set]),
            Call <- [
                fun(M, T, K) -> M:update_counter(T, K, {2, 1}, {K, 0, x}) end,
                fun(M, T, K) -> M:update_element(T, K, [{2, K}, {3, <<0:8000>>}]) end,
                fun(M, T, K) -> M:update_element(T, K, {2, K}, {K, 0, x}) end
            ]
        ] ++
        [
            fun(M, T, _) ->
                M:delete_all_objects(T),
                M:insert(T, [{I, 0, x} || I <- lists:seq(1, 300)])
            end
        ].

kill_during(Call) ->
    {Pid, Mon} = spawn_monitor(fun() -> forever(Call) end),
    busy_wait_us(rand:uniform(3000)),
    exit(Pid, kill),
    receive
        {'DOWN', Mon, process, Pid, Reason} -> ?assertEqual(killed, Reason)
    end.

forever(Call) ->
    Call(),
    forever(Call).

busy_wait_us(Us) ->
    Until = erlang:monotonic_time(microsecond) + Us,
    busy_wait_until(Until).

busy_wait_until(Until) ->
    case erlang:monotonic_time(microsecond) < Until of
        true -> busy_wait_until(Until);
        false -> ok
    end.

%% A list insert of a killed process is there as a whole or not at all, short or long.
killed_in_list_insert(_) ->
    M = ats_oracle:subject(),
    [
        begin
            T = M:new(victim, [Type, public | Options]),
            Keys = lists:seq(1, Length),
            M:insert(T, [{K, 0} || K <- Keys]),
            [
                begin
                    kill_during(fun() ->
                        V = erlang:unique_integer(),
                        M:insert(T, [{K, V} || K <- Keys])
                    end),
                    %% The call of a dead process may still be on its way in another thread, and
                    %% reading a whole table is no snapshot.
                    until(fun() -> length(values(M, T)) =:= 1 end, ?SOON_MS),
                    ?assertEqual(Length, M:info(T, size))
                end
             || _ <- lists:seq(1, Times)
            ],
            timer:sleep(?STRAGGLER_MS),
            ?assertMatch([_], values(M, T)),
            check_consistency(T),
            M:delete(T)
        end
     || Type <- [set, ordered_set],
        Options <- [[], [{write_concurrency, true}]],
        {Length, Times} <- [{20, 50}, {2000, 10}, {20000, 4}]
    ].

values(M, T) ->
    lists:usort([V || {_, V} <- M:tab2list(T)]).

%% The owner dies while others work on its table: they get badarg, and nothing else happens.
owner_killed_under_load(_) ->
    M = ats_oracle:subject(),
    lists:foreach(
        fun({Type, Size}) ->
            {Owner, T} = owner(M, doomed, [Type, public]),
            M:insert(T, [{K, 0, x} || K <- lists:seq(1, Size)]),
            Workers = [
                spawn_monitor(fun() -> until_badarg(Call, M, T) end)
             || Call <- calls(set)
            ],
            timer:sleep(rand:uniform(20)),
            kill(Owner),
            [
                receive
                    {'DOWN', Mon, process, _, Reason} -> ?assertEqual(normal, Reason)
                after 30000 -> ct:fail({hangs, process_info(Pid, current_stacktrace)})
                end
             || {Pid, Mon} <- Workers
            ],
            ?assertEqual(undefined, M:info(T))
        end,
        [{Type, Size} || _ <- [1, 2, 3, 4, 5], Type <- [set, ordered_set], Size <- [300, 20000]]
    ).

%% Some calls work on other tables and some fail for a key that is gone, so the end of the table
%% is asked for.
until_badarg(Call, M, T) ->
    try
        Call(M, T, rand:uniform(400))
    catch
        error:badarg -> ok
    end,
    case M:info(T, size) of
        undefined -> ?assertError(badarg, M:insert(T, {a, 1, x}));
        _ -> until_badarg(Call, M, T)
    end.

%% ----- the whole virtual machine -----

%% kill -9 of a machine at work ends it at once, whichever work its schedulers do.
vm_killed(_) ->
    M = ats_oracle:subject(),
    lists:foreach(
        fun(WaitMs) ->
            {ok, Peer, _} = ats_test_lib:start_vm([]),
            unlink(Peer),
            Mon = erlang:monitor(process, Peer),
            OsPid = ats_test_lib:call(Peer, os, getpid, []),
            ok = ats_test_lib:call(Peer, ?MODULE, work_in_background, [M]),
            timer:sleep(WaitMs),
            os:cmd("kill -9 " ++ OsPid),
            receive
                {'DOWN', Mon, process, Peer, _} -> ok
            after 10000 -> ct:fail(machine_survives_kill)
            end,
            until(fun() -> not is_running(OsPid) end, 10000)
        end,
        [20, 100, 300]
    ).

work_in_background(M) ->
    Test = self(),
    spawn(fun() ->
        T = M:new(t, [ordered_set, public]),
        Test ! ready,
        Forever = fun(Call) -> forever(fun() -> Call(M, T, rand:uniform(400)) end) end,
        parallel([fun() -> Forever(Call) end || Call <- calls(set)])
    end),
    receive
        ready -> ok
    end.

is_running(OsPid) ->
    case file:read_file("/proc/" ++ OsPid ++ "/stat") of
        {ok, Stat} -> binary:match(Stat, <<") Z ">>) =:= nomatch;
        {error, _} -> false
    end.

%% ----- help -----

%% A process that makes a table, then runs functions until it is stopped.
owner(M, Name, Options) ->
    Test = self(),
    Pid = spawn(fun() ->
        Test ! {self(), M:new(Name, Options)},
        server(#{})
    end),
    Mon = erlang:monitor(process, Pid),
    receive
        {Pid, T} ->
            erlang:demonitor(Mon, [flush]),
            {Pid, T};
        {'DOWN', Mon, process, Pid, Reason} ->
            error({no_table, Reason})
    end.

server(State) ->
    receive
        {From, Ref, Fun} when is_function(Fun) ->
            From ! {Ref, Fun()},
            server(State);
        stop ->
            ok;
        _ ->
            server(State)
    end.

%% Merges by modules of programs: what is asked of a module, and that no module, whatever it does,
%% harms more than the key at which it does it.
-module(ats_user_merge_SUITE).

-include_lib("proper/include/proper.hrl").
-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0]).
-export([
    modules_are_checked/1,
    wrong_versions/1,
    values_are_merged_in_order/1,
    each_part_is_copied_a_few_times/1,
    places/1,
    exceptions/1,
    batches_as_a_model/1,
    what_never_returns/1,
    what_ends_the_process/1,
    too_much_at_once/1,
    slow_but_not_too_slow/1,
    many_clients/1,
    no_more_workers_than_allowed/1,
    clients_that_end/1,
    pools_that_end/1,
    failures_in_words/1,
    options/1,
    under_a_supervisor/1
]).

-define(MODULE_UNDER_TEST, ats_keyed_merge).

suite() -> [{timetrap, {minutes, 3}}].

all() ->
    [
        modules_are_checked,
        wrong_versions,
        values_are_merged_in_order,
        each_part_is_copied_a_few_times,
        places,
        exceptions,
        batches_as_a_model,
        what_never_returns,
        what_ends_the_process,
        too_much_at_once,
        slow_but_not_too_slow,
        many_clients,
        no_more_workers_than_allowed,
        clients_that_end,
        pools_that_end,
        failures_in_words,
        options,
        under_a_supervisor
    ].

%% ----- modules -----

modules_are_checked(_) ->
    ?assertEqual({ok, 7}, ats_merge:check(?MODULE_UNDER_TEST)),
    ?assertEqual(<<"erlang.ats_keyed_merge">>, ats_merge:name(?MODULE_UNDER_TEST)),
    [
        ?assertEqual({error, {not_a_module, Term}}, ats_merge:check(Term))
     || Term <- ["ats_keyed_merge", {ats_keyed_merge, 1}, <<"x">>, 7, fun lists:append/2]
    ],
    ?assertEqual({error, {not_loaded, no_such_merge, nofile}}, ats_merge:check(no_such_merge)),
    All = [{merge, 3}, {short_circuit, 2}, {delete, 2}, {version, 0}],
    ?assertEqual({error, {not_exported, gb_sets, All -- [{delete, 2}]}}, ats_merge:check(gb_sets)),
    load(merges_only, "merge(_, A, _) -> A."),
    ?assertEqual({error, {not_exported, merges_only, tl(All)}}, ats_merge:check(merges_only)),
    %% A module that has just been written is loaded.
    code:delete(?MODULE_UNDER_TEST),
    code:purge(?MODULE_UNDER_TEST),
    ?assertEqual({ok, 7}, ats_merge:check(?MODULE_UNDER_TEST)).

wrong_versions(_) ->
    Check = fun(Version) ->
        load(
            versioned,
            "merge(_, A, _) -> A. short_circuit(_, _) -> false. delete(_, _) -> false."
            " version() -> " ++ Version ++ "."
        ),
        ats_merge:check(versioned)
    end,
    [?assertEqual({ok, V}, Check(integer_to_list(V))) || V <- [0, 1, 16#FFFFFFFF]],
    [
        ?assertEqual(
            {error, {failed, {versioned, version, {returned, V}}}},
            Check(lists:concat([V]))
        )
     || V <- [-1, 16#100000000, a, 1.0]
    ],
    ?assertMatch(
        {error, {failed, {versioned, version, {raised, error, none, _}}}},
        Check("error(none)")
    ).

%% A module with these functions.
load(Name, Functions) ->
    Source = lists:concat(["-module(", Name, "). -compile([export_all, nowarn_export_all]). "]),
    {ok, Tokens, _} = erl_scan:string(Source ++ Functions),
    {ok, Name, Code} = compile:forms(forms(Tokens, [])),
    {module, Name} = code:load_binary(Name, "none", Code).

forms([], []) ->
    [];
forms([{dot, _} = Dot | Rest], Form) ->
    {ok, Parsed} = erl_parse:parse_form(lists:reverse(Form, [Dot])),
    [Parsed | forms(Rest, [])];
forms([Token | Rest], Form) ->
    forms(Rest, [Token | Form]).

%% ----- jobs -----

values_are_merged_in_order(_) ->
    [
        begin
            Values = [[N] || N <- lists:seq(1, Count)],
            Expected = {operand, lists:seq(1, Count)},
            ?assertEqual(Expected, ats_merge:run(?MODULE_UNDER_TEST, {key, Values, above}))
        end
     || Count <- lists:seq(1, 70)
    ].

%% Of values that are put one behind the other. The oldest one, which may be long, is copied once.
each_part_is_copied_a_few_times(_) ->
    load(
        copies,
        "merge(_, A, B) ->"
        "    put(copied, get(copied) + length(A)), put(merges, get(merges) + 1), A ++ B."
        " short_circuit(_, _) -> false. delete(_, _) -> false. version() -> 1."
    ),
    Count = 1024,
    Oldest = lists:seq(1, 100000),
    put(copied, 0),
    put(merges, 0),
    {operand, Value} =
        ats_merge:run(copies, {key, [Oldest | lists:duplicate(Count, [x])], above}),
    ?assertEqual(100000 + Count, length(Value)),
    ?assertEqual(Count, erase(merges)),
    ?assertEqual(100000 + 10 * Count div 2, erase(copied)).

places(_) ->
    Run = fun(Values, Place) -> ats_merge:run(?MODULE_UNDER_TEST, {key, Values, Place}) end,
    ?assertEqual({operand, [a]}, Run([[a]], above)),
    ?assertEqual({put, [a]}, Run([[a]], bottom)),
    ?assertEqual({put, [base, a]}, Run([[base], [a]], above)),
    ?assertEqual({put, [base, a]}, Run([[base], [a]], bottom)),
    ?assertEqual({operand, []}, Run([[], []], above)),
    ?assertEqual(missing, Run([[], []], bottom)),
    ?assertEqual(missing, Run([[]], bottom)).

%% The process that calls goes on.
exceptions(_) ->
    Run = fun(Key, Place) -> ats_merge:run(?MODULE_UNDER_TEST, {Key, [[a], [b], [c]], Place}) end,
    [
        ?assertMatch(
            {failed, {?MODULE_UNDER_TEST, merge, {raised, Class, Reason, _}}},
            Run({raise, Class, Reason}, Place)
        )
     || Class <- [error, exit, throw],
        Reason <- [badarg, {ats_merge, x}, kill],
        Place <- [above, bottom]
    ],
    ?assertMatch(
        {failed, {?MODULE_UNDER_TEST, short_circuit, {raised, error, here, _}}},
        Run({raise_in, short_circuit}, above)
    ),
    ?assertMatch(
        {failed, {?MODULE_UNDER_TEST, delete, {raised, throw, {ats_merge, {strange, f, _}}, _}}},
        Run({raise_in, delete}, bottom)
    ),
    ?assertEqual(
        {failed, {?MODULE_UNDER_TEST, short_circuit, {returned, 'maybe'}}},
        Run(is_no_boolean, above)
    ),
    ?assertEqual(
        {failed, {?MODULE_UNDER_TEST, delete, {returned, []}}},
        Run(is_no_boolean, bottom)
    ),
    ?assertMatch(
        {failed, {no_such_merge, merge, {raised, error, undef, _}}},
        ats_merge:run(no_such_merge, {key, [a, b], above})
    ),
    %% What is not of the kind that the module expects.
    ?assertMatch(
        {failed, {?MODULE_UNDER_TEST, merge, {raised, error, badarg, _}}},
        ats_merge:run(?MODULE_UNDER_TEST, {key, [a, b], above})
    ).

%% ----- batches -----

pool(Options) ->
    {ok, Pool} = ats_merge_pool:start_link(Options),
    Pool.

stop(Pool) ->
    ok = gen_server:stop(Pool).

batch(Pool, Jobs) ->
    ats_merge_pool:run(Pool, ?MODULE_UNDER_TEST, Jobs).

%% As in the calling process, in the same order.
batches_as_a_model(_) ->
    Pool = pool(#{workers => 2}),
    Key = frequency([
        {8, key},
        {1, is_no_boolean},
        {1, chats},
        {1, {raise_in, oneof([short_circuit, delete])}},
        {1, {raise, oneof([error, exit, throw]), reason}}
    ]),
    Value = list(oneof([a, b, base])),
    Job = {Key, non_empty(list(Value)), oneof([above, bottom])},
    ats_test_lib:check(
        ?FORALL(
            Jobs,
            list(Job),
            begin
                Expected = [ats_merge:run(?MODULE_UNDER_TEST, J) || J <- Jobs],
                without_stacks(batch(Pool, Jobs)) =:= without_stacks(Expected)
            end
        ),
        500
    ),
    ?assertEqual([], batch(Pool, [])),
    stop(Pool).

without_stacks(Outcomes) ->
    [
        case Outcome of
            {failed, {M, F, {raised, Class, Reason, Stack}}} when is_list(Stack) ->
                {failed, {M, F, {raised, Class, Reason}}};
            _ ->
                Outcome
        end
     || Outcome <- Outcomes
    ].

job(Key) -> {Key, [[a], [b]], above}.

%% The keys before and behind it are merged.
what_never_returns(_) ->
    [
        begin
            Pool = pool(#{ms => 100}),
            {Us, Outcomes} =
                timer:tc(fun() -> batch(Pool, [job(1), job(2), job(Key), job(3), job(4)]) end),
            Good = {operand, [a, b]},
            Failed = {failed, {?MODULE_UNDER_TEST, any, {took_longer, 100}}},
            ?assertEqual([Good, Good, Failed, Good, Good], Outcomes),
            ?assert(Us >= 100000),
            %% Where it is the first, the last, and all.
            ?assertEqual([Failed, Good], batch(Pool, [job(Key), job(1)])),
            ?assertEqual([Good, Failed], batch(Pool, [job(1), job(Key)])),
            ?assertEqual([Failed], batch(Pool, [job(Key)])),
            ?assertEqual([], workers()),
            stop(Pool)
        end
     || Key <- [sleeps, loops, traps]
    ].

what_ends_the_process(_) ->
    Pool = pool(#{ms => 20000, heap_words => 1000000}),
    Good = {operand, [a, b]},
    [
        ?assertEqual(
            [Good, {failed, {?MODULE_UNDER_TEST, any, {ended, Reason}}}, Good],
            batch(Pool, [job(1), job(Key), job(2)])
        )
     || {Key, Reason} <- [{kills, killed}, {links, linked}, {eats, killed}]
    ],
    ?assertEqual([], workers()),
    stop(Pool).

%% A module that fails always does not keep a worker for as long as the limit for each key.
too_much_at_once(_) ->
    Pool = pool(#{ms => 100}),
    Keys = [1, sleeps, 2, kills, 3, loops, 4],
    [_, {failed, {_, any, {took_longer, 100}}}, _, {failed, {_, any, {ended, killed}}} | Rest] =
        batch(Pool, [job(K) || K <- Keys]),
    NotTried = {failed, {?MODULE_UNDER_TEST, any, not_tried}},
    ?assertEqual([NotTried, NotTried, NotTried], Rest),
    {Us, Outcomes} = timer:tc(fun() -> batch(Pool, [job(sleeps) || _ <- lists:seq(1, 100)]) end),
    ?assertEqual(98, length([O || O <- Outcomes, O =:= NotTried])),
    ?assert(Us < 2000000),
    %% The next batch begins anew, and exceptions do not count.
    Raising = [job({raise, error, x}) || _ <- lists:seq(1, 100)],
    ?assertEqual({operand, [a, b]}, lists:last(batch(Pool, Raising ++ [job(1)]))),
    stop(Pool).

%% The limit is for each key, not for the batch.
slow_but_not_too_slow(_) ->
    Pool = pool(#{ms => 400}),
    Jobs = [job({after_ms, 80}) || _ <- lists:seq(1, 12)],
    ?assertEqual(lists:duplicate(12, {operand, [a, b]}), batch(Pool, Jobs)),
    stop(Pool).

many_clients(_) ->
    Pool = pool(#{workers => 3}),
    Work = fun(Client) ->
        fun() ->
            [
                ?assertEqual(
                    [{operand, [Client, N, K]} || K <- lists:seq(1, 20)],
                    batch(Pool, [{K, [[Client], [N], [K]], above} || K <- lists:seq(1, 20)])
                )
             || N <- lists:seq(1, 50)
            ],
            done
        end
    end,
    Done = ats_test_lib:parallel([Work(Client) || Client <- lists:seq(1, 20)]),
    ?assertEqual(lists:duplicate(20, done), Done),
    idle(Pool, 3),
    stop(Pool).

no_more_workers_than_allowed(_) ->
    Pool = pool(#{workers => 2, ms => 60000}),
    Self = self(),
    Clients = [spawn(fun() -> batch(Pool, [job({tell, Self})]) end) || _ <- lists:seq(1, 5)],
    Busy = [receive {worker, Pid} -> Pid end || _ <- [1, 2]],
    ats_test_lib:until(fun() -> maps:get(waiting, ats_merge_pool:info(Pool)) =:= 3 end, 5000),
    ?assertEqual(#{workers => 2, busy => 2, waiting => 3}, ats_merge_pool:info(Pool)),
    ?assertEqual(nothing, receive {worker, _} -> something after 100 -> nothing end),
    %% Two clients, two runners, and two that work.
    ?assertEqual(6, length(workers())),
    ?assertEqual([], Busy -- workers()),
    %% A worker that has ended is followed by the next.
    exit(hd(Busy), kill),
    receive {worker, _} -> ok end,
    [exit(Client, kill) || Client <- Clients],
    idle(Pool, 2),
    ?assertEqual([], workers()),
    stop(Pool).

idle(Pool, Workers) ->
    Idle = #{workers => Workers, busy => 0, waiting => 0},
    ats_test_lib:until(fun() -> ats_merge_pool:info(Pool) =:= Idle end, 5000).

%% No worker runs for a process that has ended, nor are those that wait behind it forgotten.
clients_that_end(_) ->
    Pool = pool(#{workers => 1, ms => 60000}),
    Self = self(),
    First = spawn(fun() -> batch(Pool, [job({tell, Self})]) end),
    Worker = receive {worker, Pid} -> Pid end,
    Waiting = [spawn(fun() -> batch(Pool, [job({tell, Self})]) end) || _ <- lists:seq(1, 3)],
    ats_test_lib:until(fun() -> maps:get(waiting, ats_merge_pool:info(Pool)) =:= 3 end, 5000),
    [exit(Client, kill) || Client <- Waiting],
    Last = spawn(fun() -> Self ! {outcomes, batch(Pool, [job(1)])} end),
    Monitor = monitor(process, Worker),
    exit(First, kill),
    receive {'DOWN', Monitor, process, Worker, killed} -> ok end,
    receive {outcomes, Outcomes} -> ?assertEqual([{operand, [a, b]}], Outcomes) end,
    idle(Pool, 1),
    ?assertEqual(false, is_process_alive(Last)),
    ?assertEqual([], workers()),
    stop(Pool).

%% The one that waits for its batch is told, and so is one that waits for a worker.
pools_that_end(_) ->
    Self = self(),
    [
        begin
            process_flag(trap_exit, true),
            Pool = pool(#{workers => 1, ms => 60000}),
            Client = fun() -> exit({outcomes, batch(Pool, [job({tell, Self})])}) end,
            {_, First} = spawn_monitor(Client),
            Worker = receive {worker, Pid} -> Pid end,
            {_, Second} = spawn_monitor(Client),
            ats_test_lib:until(
                fun() -> maps:get(waiting, ats_merge_pool:info(Pool)) =:= 1 end, 5000
            ),
            Monitor = monitor(process, Worker),
            End(Pool),
            receive {'DOWN', Monitor, process, _, killed} -> ok end,
            [
                receive
                    {'DOWN', M, process, _, Reason} ->
                        ?assertNotMatch({outcomes, _}, Reason),
                        ?assertNotEqual(normal, Reason)
                end
             || M <- [First, Second]
            ],
            receive {'EXIT', Pool, _} -> ok end,
            process_flag(trap_exit, false),
            ?assertEqual([], workers())
        end
     || End <- [
            fun gen_server:stop/1,
            fun(Pool) -> exit(Pool, shutdown) end,
            fun(Pool) -> exit(Pool, kill) end
        ]
    ].

%% Runners, and processes that work for one, once those that were killed are gone.
workers() ->
    timer:sleep(50),
    [
        P
     || P <- processes(),
        P =/= self(),
        {current_stacktrace, Stack} <- [process_info(P, current_stacktrace)],
        lists:any(fun({M, _, _, _}) -> lists:member(M, [ats_merge, ats_merge_runner]) end, Stack),
        not lists:any(fun({M, _, _, _}) -> M =:= ?MODULE end, Stack)
    ].

%% ----- words -----

failures_in_words(_) ->
    M = ?MODULE_UNDER_TEST,
    Cases = [
        {{not_a_module, "x"}, "\"x\" is not the name of a module"},
        {{not_loaded, m, nofile}, "the module m cannot be loaded: nofile"},
        {{not_exported, m, [{merge, 3}, {version, 0}]},
         "the module m does not export merge/3, version/0"},
        {{failed, {M, version, {returned, a}}},
         "ats_keyed_merge:version/0 returned a, which is not an integer of 32 bits"},
        {{M, delete, {returned, [1, 2]}},
         "ats_keyed_merge:delete/2 returned [1,2], which is not a boolean"},
        {{M, merge, {raised, error, badarith, []}},
         "ats_keyed_merge:merge/3 raised error:badarith"},
        {{M, any, {took_longer, 5000}},
         "the merge ats_keyed_merge took longer than 5000 ms for one key"},
        {{M, any, {ended, killed}},
         "the merge ats_keyed_merge was killed: it used too much memory, or killed itself"},
        {{M, any, {ended, {a, "b"}}}, "the merge ats_keyed_merge ended its process: {a,\"b\"}"},
        {{M, any, not_tried},
         "the merge ats_keyed_merge was not tried, because it ended or took too long for other keys"
         " of the batch"}
    ],
    [
        ?assertEqual(Text, lists:flatten(unicode:characters_to_list(ats_merge:format_failure(F))))
     || {F, Text} <- Cases
    ],
    %% However large the reason is, the text is not.
    Huge = {M, merge, {raised, error, lists:seq(1, 100000), []}},
    ?assert(string:length(ats_merge:format_failure(Huge)) < 300).

%% ----- the pool -----

options(_) ->
    [
        ?assertError(badarg, ats_merge_pool:start_link(Options))
     || Options <- [
            [], x, #{workers => 0}, #{workers => -1}, #{ms => infinity}, #{ms => 0}, #{ms => 1.0},
            #{heap_words => a}, #{name => "x"}, #{name => undefined}, #{other => 1}, #{1 => 1}
        ]
    ],
    {ok, Pool} = ats_merge_pool:start_link(#{name => merges, workers => 2}),
    ?assertEqual(Pool, whereis(merges)),
    ?assertEqual([{operand, [a, b]}], batch(merges, [job(1)])),
    %% What is not for it is dropped.
    merges ! noise,
    ok = gen_server:cast(merges, noise),
    idle(merges, 2),
    stop(merges),
    ?assertExit({noproc, _}, batch(merges, [job(1)])).

%% A pool that was killed is there again.
under_a_supervisor(_) ->
    Spec = ats_merge_pool:child_spec(#{name => merges}),
    {ok, Supervisor} = ats_test_supervisor:start_link([Spec]),
    ?assertEqual([{operand, [a, b]}], batch(merges, [job(1)])),
    Old = whereis(merges),
    exit(Old, kill),
    ats_test_lib:until(fun() -> not lists:member(whereis(merges), [undefined, Old]) end, 5000),
    ?assertEqual([{operand, [a, b]}], batch(merges, [job(1)])),
    unlink(Supervisor),
    Monitor = monitor(process, Supervisor),
    exit(Supervisor, shutdown),
    receive {'DOWN', Monitor, process, _, shutdown} -> ok end,
    ?assertEqual(undefined, whereis(merges)).

%% Merges by modules of programs: calls of a module, and that no module harms more than the key at
%% which it fails.
-module(ats_user_merge_SUITE).

-include_lib("proper/include/proper.hrl").
-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0, init_per_suite/1, end_per_suite/1]).
-export([
    modules_are_checked/1,
    wrong_versions/1,
    values_are_merged_in_order/1,
    each_part_is_copied_a_few_times/1,
    chains/1,
    exceptions/1,
    a_failed_merge_keeps_merged_parts/1,
    batches_as_a_model/1,
    a_merge_that_never_returns/1,
    a_merge_that_ends_its_process/1,
    a_merge_that_hung_fails_fast/1,
    the_limit_is_for_one_call/1,
    many_calls_take_longer_than_the_limit/1,
    keys_beforehand/1,
    one_worker_for_a_key/1,
    clients_that_end/1,
    other_versions/1,
    values_are_classified_before_writing/1,
    failures_in_words/1
]).

-define(MODULE_UNDER_TEST, ats_keyed_merge).
-define(MS, 600).

suite() -> [{timetrap, {minutes, 15}}].

all() ->
    [
        modules_are_checked,
        wrong_versions,
        values_are_merged_in_order,
        each_part_is_copied_a_few_times,
        chains,
        exceptions,
        a_failed_merge_keeps_merged_parts,
        batches_as_a_model,
        a_merge_that_never_returns,
        a_merge_that_ends_its_process,
        a_merge_that_hung_fails_fast,
        the_limit_is_for_one_call,
        many_calls_take_longer_than_the_limit,
        keys_beforehand,
        one_worker_for_a_key,
        clients_that_end,
        other_versions,
        values_are_classified_before_writing,
        failures_in_words
    ].

init_per_suite(Config) ->
    _ = application:stop(ats),
    ok = application:set_env(ats, merge_ms, ?MS),
    ok = application:set_env(ats, merge_heap_words, 1000000),
    ok = application:start(ats),
    Config.

end_per_suite(_) ->
    ok = application:stop(ats),
    ok = application:unset_env(ats, merge_ms),
    ok = application:unset_env(ats, merge_heap_words).

%% ----- modules -----

modules_are_checked(_) ->
    ?assertEqual({ok, 7}, ats_merge:check(?MODULE_UNDER_TEST)),
    [
        ?assertEqual({error, {not_a_module, Term}}, ats_merge:check(Term))
     || Term <- ["ats_keyed_merge", {ats_keyed_merge, 1}, <<"x">>, 7, fun lists:append/2]
    ],
    ?assertEqual({error, {not_loaded, no_such_merge, nofile}}, ats_merge:check(no_such_merge)),
    All = [{merge, 3}, {short_circuit, 2}, {delete, 2}, {version, 0}],
    ?assertEqual({error, {not_exported, gb_sets, All -- [{delete, 2}]}}, ats_merge:check(gb_sets)),
    ats_test_lib:load_module(merges_only, "merge(_, A, _) -> A."),
    ?assertEqual({error, {not_exported, merges_only, tl(All)}}, ats_merge:check(merges_only)),
    %% A module that has just been written is loaded.
    code:delete(?MODULE_UNDER_TEST),
    code:purge(?MODULE_UNDER_TEST),
    ?assertEqual({ok, 7}, ats_merge:check(?MODULE_UNDER_TEST)).

wrong_versions(_) ->
    Check = fun(Version) ->
        ats_test_lib:load_module(
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
    ),
    %% The asking process goes on with any fault.
    {links, Links} = process_info(self(), links),
    ?assertEqual(
        {error, {failed, {versioned, version, {ended, harm}}}},
        Check("spawn_link(fun() -> exit(harm) end), timer:sleep(infinity)")
    ),
    ?assertEqual({links, Links}, process_info(self(), links)).

%% ----- chains -----

%% Values of a key as the store has them.
chain(Key, [First | Operands]) ->
    Operand = fun(Value) ->
        [<<16#FFFFFFFF:32/little>>, ats_merge_operands:object({Key, Value})]
    end,
    iolist_to_binary([ats_merge_operands:object({Key, First}) | lists:map(Operand, Operands)]).

collapse(Module, Version, Key, Values) ->
    decoded(ats_merge_operands:collapse({Module, Version}, chain(Key, Values), fun() -> ok end)).

decoded({put, Chain}) -> [{_Key, Value}] = ats_merge_operands:objects(Chain), {put, Value};
decoded(Outcome) -> Outcome.

values_are_merged_in_order(_) ->
    [
        begin
            Values = [[N] || N <- lists:seq(1, Count)],
            Expected = {put, lists:seq(1, Count)},
            ?assertEqual(Expected, collapse(?MODULE_UNDER_TEST, 7, key, Values))
        end
     || Count <- lists:seq(1, 70)
    ].

%% Parts of a chain of values: the oldest one, which may be long, is copied once.
each_part_is_copied_a_few_times(_) ->
    ats_test_lib:load_module(
        copies,
        "merge(_, A, B) ->"
        "    put(copied, get(copied) + length(A)), put(merges, get(merges) + 1), A ++ B."
        " short_circuit(_, _) -> false. delete(_, _) -> false. version() -> 1."
    ),
    Count = 1024,
    Oldest = lists:seq(1, 100000),
    put(copied, 0),
    put(merges, 0),
    {put, Value} = collapse(copies, 1, key, [Oldest | lists:duplicate(Count, [x])]),
    ?assertEqual(100000 + Count, length(Value)),
    ?assertEqual(Count, erase(merges)),
    ?assertEqual(100000 + 10 * Count div 2, erase(copied)).

chains(_) ->
    Run = fun(Values) -> collapse(?MODULE_UNDER_TEST, 7, key, Values) end,
    ?assertEqual({put, [a]}, Run([[a]])),
    ?assertEqual({put, [base, a]}, Run([[base], [a]])),
    ?assertEqual(missing, Run([[], []])),
    ?assertEqual(missing, Run([[]])),
    %% The first object may have any mark. The key is the one that was written last.
    Present = <<16#FFFFFFFE:32/little>>,
    [First, Second] = [ats_merge_operands:object(O) || O <- [{1, [a], more}, {1.0, [b]}]],
    [
        begin
            Chain = iolist_to_binary([Mark, First, Present, Second]),
            Outcome = ats_merge_operands:collapse({?MODULE_UNDER_TEST, 7}, Chain, fun() -> ok end),
            ?assertEqual({put, ats_merge_operands:object({1.0, [a, b]})}, Outcome),
            ?assertEqual(1, ats_merge_operands:key(Chain)),
            ?assertEqual([{1, [a], more}, {1.0, [b]}], ats_merge_operands:objects(Chain))
        end
     || Mark <- [<<>>, Present, <<16#FFFFFFFF:32/little>>]
    ],
    NoValue = <<(ats_merge_operands:object({1}))/binary, Present/binary, Second/binary>>,
    ?assertEqual(
        {failed, {?MODULE_UNDER_TEST, any, no_value}, none},
        ats_merge_operands:collapse({?MODULE_UNDER_TEST, 7}, NoValue, fun() -> ok end)
    ).

%% The process that calls goes on.
exceptions(_) ->
    Run = fun(Key) -> collapse(?MODULE_UNDER_TEST, 7, Key, [[a], [b], [c]]) end,
    [
        ?assertMatch(
            {failed, {?MODULE_UNDER_TEST, merge, {raised, Class, Reason, _}}, none},
            Run({raise, Class, Reason})
        )
     || Class <- [error, exit, throw],
        Reason <- [badarg, {ats_merge, x}, kill]
    ],
    ?assertMatch(
        {failed, {?MODULE_UNDER_TEST, delete, {raised, throw, {ats_merge, {strange, f, _}}, _}},
         none},
        Run({raise_in, delete})
    ),
    ?assertEqual(
        {failed, {?MODULE_UNDER_TEST, delete, {returned, []}}, none},
        Run(is_no_boolean)
    ),
    ?assertMatch(
        {failed, {no_such_merge, version, {raised, error, undef, _}}, none},
        collapse(no_such_merge, 1, key, [a, b])
    ),
    %% Values that are not of the kind that the module expects.
    ?assertMatch(
        {failed, {?MODULE_UNDER_TEST, merge, {raised, error, badarg, _}}, none},
        collapse(?MODULE_UNDER_TEST, 7, key, [a, b])
    ).

%% A merged part replaces its values, so the chain means the same and is shorter.
a_failed_merge_keeps_merged_parts(_) ->
    ats_test_lib:load_module(
        poisoned,
        "merge(_, A, B) when is_list(A), is_list(B) -> A ++ B."
        " short_circuit(_, _) -> false. delete(_, _) -> false. version() -> 1."
    ),
    Values = [[N] || N <- lists:seq(1, 1000)],
    [
        begin
            {Good, [_ | Rest]} = lists:split(At, Values),
            Chain = chain(key, Good ++ [poison | Rest]),
            {failed, {_, merge, {raised, error, function_clause, _}}, Part} =
                ats_merge_operands:collapse({poisoned, 1}, Chain, fun() -> ok end),
            case At < 70 of
                true ->
                    ?assertEqual(none, Part);
                false ->
                    {Expected, New} = Part,
                    {Expected, Behind} = split_binary(Chain, byte_size(Expected)),
                    Parts = [V || {key, V} <- ats_merge_operands:objects(New)],
                    ?assert(length(Parts) =< 12),
                    Left = [V || {key, V} <- ats_merge_operands:objects(Behind)],
                    ?assertEqual(lists:append(Good) ++ [poison] ++ lists:append(Rest),
                                 lists:append([case V of poison -> [V]; _ -> V end
                                               || V <- Parts ++ Left]))
            end
        end
     || At <- [1, 2, 63, 200, 511, 513, 900]
    ].

%% ----- workers -----

run(Jobs) -> run(Jobs, #{}).

run(Jobs, Options) ->
    Request = Options#{
        merge => {?MODULE_UNDER_TEST, 7},
        table => {?MODULE, self()},
        jobs => [{term_to_binary({Key, Values}), chain(Key, Values)} || {Key, Values} <- Jobs]
    },
    case ats_merge_runner:run(Request) of
        again -> again;
        Outcomes -> [without_stack(decoded(Outcome)) || Outcome <- Outcomes]
    end.

without_stack({failed, {M, F, {raised, Class, Reason, Stack}}, _}) when is_list(Stack) ->
    {failed, {M, F, {raised, Class, Reason}}};
without_stack({failed, Failure, _}) ->
    {failed, Failure};
without_stack(Outcome) ->
    Outcome.

job(Key) -> {Key, [[a], [b]]}.

%% Batches merge as in the calling process, in the same order, up to one that fails behind the
%% first.
batches_as_a_model(_) ->
    Key = frequency([
        {20, key},
        {1, is_no_boolean},
        {1, chats},
        {1, {raise_in, delete}},
        {1, {raise, oneof([error, exit, throw]), reason}}
    ]),
    Value = list(oneof([a, b, base])),
    ats_test_lib:check(
        ?FORALL(
            Jobs,
            non_empty(list({Key, non_empty(list(Value))})),
            begin
                Expected = [
                    without_stack(collapse(?MODULE_UNDER_TEST, 7, K, Values))
                 || {K, Values} <- Jobs
                ],
                run(Jobs) =:= [hd(Expected) | lists:takewhile(fun is_good/1, tl(Expected))]
            end
        ),
        500
    ).

is_good({failed, _}) -> false;
is_good(_) -> true.

a_merge_that_never_returns(_) ->
    [
        begin
            {Us, Outcomes} = timer:tc(fun() -> run([job(Key), job(1)]) end),
            ?assertEqual([{failed, {?MODULE_UNDER_TEST, any, {took_longer, ?MS}}}], Outcomes),
            ?assert(Us >= 1000 * ?MS),
            ?assertEqual([], workers())
        end
     || Key <- [sleeps, loops, traps]
    ].

a_merge_that_ends_its_process(_) ->
    {links, Links} = process_info(self(), links),
    [
        ?assertEqual([{failed, {?MODULE_UNDER_TEST, any, {ended, Reason}}}], run([job(Key)]))
     || {Key, Reason} <- [{kills, killed}, {links, linked}, {eats, killed}]
    ],
    ?assertEqual({links, Links}, process_info(self(), links)),
    ?assertEqual({messages, []}, process_info(self(), messages)),
    ?assertEqual([], workers()).

%% Until something else is written, or for a while.
a_merge_that_hung_fails_fast(_) ->
    Failed = [{failed, {?MODULE_UNDER_TEST, any, {took_longer, ?MS}}}],
    Table = make_ref(),
    Chain = chain(sleeps, [[a], [b]]),
    Run = fun(C) ->
        Request = #{merge => {?MODULE_UNDER_TEST, 7}, table => Table, jobs => [{<<"key">>, C}]},
        {Us, Outcomes} = timer:tc(fun() -> ats_merge_runner:run(Request) end),
        {Us < 1000 * ?MS div 2, [without_stack(decoded(Outcome)) || Outcome <- Outcomes]}
    end,
    ?assertEqual({false, Failed}, Run(Chain)),
    ?assertEqual({true, Failed}, Run(Chain)),
    %% A later write does not help.
    ?assertEqual({true, Failed}, Run(<<Chain/binary, (chain(sleeps, [[c]]))/binary>>)),
    ?assertEqual({true, [{put, [a, b]}]}, Run(chain(other, [[a], [b]]))),
    timer:sleep(7 * ?MS),
    ?assertEqual({false, Failed}, Run(Chain)),
    %% Another code is tried at once.
    {_, Binary, File} = code:get_object_code(?MODULE_UNDER_TEST),
    ?assertEqual({true, Failed}, Run(Chain)),
    ats_test_lib:load_module(
        ?MODULE_UNDER_TEST,
        "merge(_, A, B) -> A ++ B. short_circuit(_, _) -> false. delete(_, _) -> false."
        " version() -> 7."
    ),
    ?assertEqual({true, [{put, [a, b]}]}, Run(Chain)),
    code:purge(?MODULE_UNDER_TEST),
    {module, _} = code:load_binary(?MODULE_UNDER_TEST, File, Binary).

%% A call can take longer than it needs, where the machine does something else.
the_limit_is_for_one_call(_) ->
    Slow = {{after_ms, ?MS div 5}, [[N] || N <- lists:seq(1, 12)]},
    Expected = [{put, lists:seq(1, 12)}],
    ats_test_lib:until(fun() -> run([Slow]) =:= Expected end, 60000).

%% Memory is no limit, either: garbage of a call is collected.
many_calls_take_longer_than_the_limit(_) ->
    Count = 300000,
    {Us, [{put, Value}]} = timer:tc(fun() -> run([{longest, lists:duplicate(Count, [x])}]) end),
    ct:pal("~b values in ~b us", [Count, Us]),
    ?assertEqual([x], Value).

%% Others are merged with the first one as long as that is no trouble.
keys_beforehand(_) ->
    Good = {put, [a, b]},
    ?assertEqual([Good, Good], run([job(1), job(2)])),
    {Us, Outcomes} = timer:tc(fun() -> run([job(1), job(2), job(sleeps), job(3)]) end),
    ?assertEqual([Good, Good], Outcomes),
    ?assert(Us < 1000 * ?MS),
    ?assertEqual([Good], run([job(1), job(kills), job(3)])),
    ?assertEqual([Good], run([job(1), job({raise, error, x}), job(3)])),
    ?assertEqual([], run([job(sleeps), job(1)], #{prompt => true})),
    ?assertEqual({messages, []}, process_info(self(), messages)),
    ?assertEqual([], workers()).

%% The other processes wait for the worker, or get its outcome.
one_worker_for_a_key(_) ->
    Self = self(),
    Table = make_ref(),
    Request = #{
        merge => {?MODULE_UNDER_TEST, 7},
        table => Table,
        jobs => [{<<"key">>, chain({tell, Self}, [[a], [b]])}]
    },
    Read = fun Read() ->
        case ats_merge_runner:run(Request) of
            again -> Read();
            Outcomes -> Outcomes
        end
    end,
    Readers = [spawn_monitor(fun() -> exit(Read()) end) || _ <- lists:seq(1, 40)],
    receive {worker, _} -> ok end,
    [
        receive
            {'DOWN', Monitor, process, _, Outcomes} ->
                ?assertMatch([{failed, {_, any, {took_longer, _}}, none}], Outcomes)
        end
     || {_, Monitor} <- Readers
    ],
    ?assertEqual(nothing, receive {worker, _} -> something after 0 -> nothing end),
    ?assertEqual([], workers()).

%% A worker ends with its client, and the key is free.
clients_that_end(_) ->
    Self = self(),
    Table = make_ref(),
    Run = fun(Key) ->
        ats_merge_runner:run(#{
            merge => {?MODULE_UNDER_TEST, 7},
            table => Table,
            jobs => [{<<"key">>, chain(Key, [[a], [b]])}]
        })
    end,
    Client = spawn(fun() -> Run({tell, Self}) end),
    Worker = receive {worker, Pid} -> Pid end,
    Monitor = monitor(process, Worker),
    exit(Client, kill),
    receive {'DOWN', Monitor, process, Worker, killed} -> ok end,
    ?assertMatch([{put, _}], Run(key)),
    ?assertEqual([], workers()).

other_versions(_) ->
    ?assertEqual(
        {failed, {?MODULE_UNDER_TEST, version, {other_version, 6, 7}}, none},
        collapse(?MODULE_UNDER_TEST, 6, key, [[a], [b]])
    ),
    %% Also if it changes on the way.
    ats_test_lib:load_module(
        changes,
        "merge(_, A, B) -> put(v, 2), A ++ B. short_circuit(_, _) -> false. delete(_, _) -> false."
        " version() -> case get(v) of undefined -> 1; V -> V end."
    ),
    ?assertMatch(
        {failed, {changes, version, {other_version, 1, 2}}, _},
        collapse(changes, 1, key, [[a], [b]])
    ),
    erase(v).

values_are_classified_before_writing(_) ->
    Ask = fun(Key, Value) -> ats_merge_runner:ask(?MODULE_UNDER_TEST, 7, Key, Value) end,
    ?assertEqual(present, Ask(key, [a])),
    ?assertEqual(object, Ask(key, [base])),
    ?assertEqual(undefined, Ask(key, [])),
    ?assertEqual(undefined, Ask(is_no_boolean, [a])),
    ?assertEqual(present, Ask({raise_in, short_circuit}, [a])),
    ?assertEqual(undefined, Ask({raise_in, delete}, [a])),
    ?assertEqual(
        {failed, {?MODULE_UNDER_TEST, version, {other_version, 8, 7}}},
        ats_merge_runner:ask(?MODULE_UNDER_TEST, 8, key, [a])
    ),
    ats_test_lib:load_module(
        harms,
        "merge(_, A, _) -> A. delete(_, _) -> true. version() -> 1."
        " short_circuit(kills, _) -> exit(self(), kill), timer:sleep(infinity);"
        " short_circuit(links, P) -> link(P), exit(P, kill), timer:sleep(infinity);"
        " short_circuit(chats, _) -> self() ! hello, put(key, value), true;"
        " short_circuit(traps, _) -> process_flag(trap_exit, true);"
        " short_circuit(_, _) -> timer:sleep(infinity)."
    ),
    {links, Links} = process_info(self(), links),
    Other = spawn(fun() -> timer:sleep(infinity) end),
    ?assertEqual(undefined, ats_merge_runner:ask(harms, 1, kills, x)),
    ?assertEqual(undefined, ats_merge_runner:ask(harms, 1, links, Other)),
    ?assertEqual(delete, ats_merge_runner:ask(harms, 1, chats, x)),
    ?assertEqual(undefined, ats_merge_runner:ask(harms, 1, traps, x)),
    {Us, undefined} = timer:tc(fun() -> ats_merge_runner:ask(harms, 1, hangs, x) end),
    ?assert(Us >= 1000 * ?MS),
    {Again, undefined} = timer:tc(fun() -> ats_merge_runner:ask(harms, 1, hangs, x) end),
    ?assert(Again < 1000 * ?MS),
    ?assertEqual({links, Links}, process_info(self(), links)),
    ?assertEqual({messages, []}, process_info(self(), messages)),
    ?assertEqual({trap_exit, false}, process_info(self(), trap_exit)),
    ?assertEqual(undefined, get(key)).

%% Processes that work for one, once those that were killed are gone.
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
         "the merge ats_keyed_merge took longer than 5000 ms for one call"},
        {{M, any, {ended, killed}},
         "the merge ats_keyed_merge was killed: it used too much memory, or killed itself"},
        {{M, any, {ended, {a, "b"}}}, "the merge ats_keyed_merge ended its process: {a,\"b\"}"},
        {{M, version, {other_version, 1, 2}},
         "ats_keyed_merge:version/0 returned 2, but the table has values of version 1"}
    ],
    [
        ?assertEqual(Text, lists:flatten(unicode:characters_to_list(ats_merge:format_failure(F))))
     || {F, Text} <- Cases
    ],
    %% However large the reason is, the text is not.
    Huge = {M, merge, {raised, error, lists:seq(1, 100000), []}},
    ?assert(string:length(ats_merge:format_failure(Huge)) < 300).

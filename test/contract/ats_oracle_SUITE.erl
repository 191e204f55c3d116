%% `ats' answers as `ets' does: random programs with `ets' as the oracle.
%%
%% ATS_ORACLE_COMMANDS sets how many commands to compare (196000 by default); ATS_SOAK_SECONDS, if
%% set, keeps the properties running for that long, with growing programs. Half of both is for
%% tables that are forced to adapt.
-module(ats_oracle_SUITE).

-export([all/0, suite/0, init_per_suite/1, end_per_suite/1]).
-export([programs/1, bags/1, beyond_ets/1, bulk/1, traversal/1, every_kind_of_term/1]).
-export([oracle_finds_differences/1, forced_adaptation/1]).
%% Exported for ats_oracle_stores_SUITE, which compares in other stores.
-export([compare_everything/0, commands/1]).

-define(BATCH, 100).
-define(DEFAULT_COMMANDS, "196000").

suite() ->
    Soak = list_to_integer(os:getenv("ATS_SOAK_SECONDS", "0")),
    [{timetrap, {seconds, 1800 + 2 * Soak}}].

all() ->
    [
        oracle_finds_differences,
        every_kind_of_term,
        bulk,
        traversal,
        bags,
        beyond_ets,
        programs,
        forced_adaptation
    ].

init_per_suite(Config) ->
    ok = ats_term_gen:prepare(),
    ok = ats_oracle_prop:start_counting(),
    Config.

end_per_suite(_) ->
    ok.

programs(_) ->
    run(ats_oracle_prop:prop_programs(), commands(40000), 0.2).

bags(_) ->
    run(ats_oracle_prop:prop_bags(), commands(8000), 0.08).

beyond_ets(_) ->
    run(ats_oracle_prop:prop_beyond(), commands(10000), 0.08).

bulk(_) ->
    run(ats_oracle_prop:prop_bulk(), commands(20000), 0.07).

traversal(_) ->
    run(ats_oracle_prop:prop_traversal(), commands(20000), 0.07).

%% All of this once more, on tables that keep adapting.
forced_adaptation(_) ->
    case ats_oracle:subject() of
        ats ->
            ok = ats_test_lib:force_adaptation(),
            try
                compare_everything(),
                Seen = ats_test_lib:forced_so_far(),
                Least = commands(1000),
                [] = [{Item, N} || {Item, N} <- maps:to_list(Seen), N =< Least],
                {comment, io_lib:format("~0p", [Seen])}
            after
                ats_test_lib:stop_forcing()
            end;
        _ ->
            {skip, "only ats can be forced"}
    end.

compare_everything() ->
    lists:foreach(fun(Case) -> ?MODULE:Case(none) end, [
        every_kind_of_term,
        bulk,
        traversal,
        bags,
        beyond_ets,
        programs
    ]).

%% The share of a property, in all that are to be compared.
commands(Share) ->
    Share * list_to_integer(os:getenv("ATS_ORACLE_COMMANDS", ?DEFAULT_COMMANDS)) div 196000.

%% Coverage without chance: every kind of term as a key and as a value, in every table type.
every_kind_of_term(_) ->
    Terms = [ats_term_gen:realize(R) || R <- ats_term_gen:one_of_each()],
    [
        ok = ats_oracle_prop:check_bulk([Type | Options], Order)
     || Type <- [set, ordered_set, bag, duplicate_bag],
        Options <- [[], [{write_concurrency, true}], [compressed]],
        Order <- [Terms, lists:reverse(Terms)]
    ],
    ok.

%% The oracle is worth nothing if it cannot see a difference.
oracle_finds_differences(_) ->
    A = ets:new(a, [ordered_set]),
    B = ets:new(b, [ordered_set]),
    Module = os:getenv("ATS_SUBJECT"),
    os:putenv("ATS_SUBJECT", "ets"),
    try
        ok = ats_oracle:compare_contents(A, B, false),
        ets:insert(A, {1, x}),
        {difference, _} = ats_oracle:compare_contents(A, B, false),
        ets:insert(B, {1.0, x}),
        {difference, _} = ats_oracle:compare_contents(A, B, false),
        ets:insert(B, {1, x}),
        ok = ats_oracle:compare_contents(A, B, false),
        ets:insert(A, {2, 0.0}),
        ets:insert(B, {2, ats_term_gen:negative_zero()}),
        {difference, _} = ats_oracle:compare_contents(A, B, false),
        ok
    after
        case Module of
            false -> os:unsetenv("ATS_SUBJECT");
            _ -> os:putenv("ATS_SUBJECT", Module)
        end
    end.

%% Runs batches of a property until enough commands were compared and its share of the time of a
%% soak is over.
run(Property, Target, Share) ->
    Soak = list_to_integer(os:getenv("ATS_SOAK_SECONDS", "0")),
    Deadline = erlang:monotonic_time(second) + round(Share * Soak),
    ok = ats_oracle_prop:start_counting(),
    run_batches(Property, Target, Deadline, 42).

run_batches(Property, Target, Deadline, Size) ->
    %% Failing cases are made small and printed by the properties themselves.
    Silent = fun(_, _) -> ok end,
    Options = [noshrink, {numtests, ?BATCH}, {max_size, Size}, {on_output, Silent}],
    case proper:quickcheck(Property, Options) of
        true ->
            Done = ats_oracle_prop:commands_done(),
            IsEnough =
                Done >= Target andalso erlang:monotonic_time(second) >= Deadline,
            case IsEnough of
                true ->
                    ct:pal("~b commands compared", [Done]),
                    {comment, integer_to_list(Done) ++ " commands"};
                false ->
                    run_batches(Property, Target, Deadline, min(Size + 2, 150))
            end;
        _ ->
            ct:fail(counterexample_found)
    end.

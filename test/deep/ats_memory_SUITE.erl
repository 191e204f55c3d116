%% Memory does not grow, however long tables are worked with.
%%
%% A virtual machine of its own works on tables in cycles (see `ats_churn'): they grow, change and
%% shrink, and are cleared. Twice in a cycle the machine is left in peace, and resident memory is
%% noted: with the tables full, and with the tables empty. The samples of the last quarter of the
%% time are compared with those of the second one; in the first one pools fill up that stay.
%%
%% ATS_SOAK_SECONDS says how long (a few seconds by default, which only tells that everything
%% works); `make soak WHAT=memory' sets it. The samples go to a file, `memory.csv', which is named
%% at the beginning.
-module(ats_memory_SUITE).

-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0]).
-export([memory_never_falls_by_inserts/1,
    memory_falls_when_objects_go/1,
    memory_does_not_grow/1]).

-define(DEFAULT_SECONDS, "8").
-define(WORKERS, 4).
%% The least number of cycles for a judgement to a few per cent.
-define(ENOUGH_CYCLES, 24).
%% Memory that tables gave up is kept for a moment, in case it is wanted again.
-define(KEPT_MS, 3000).

suite() ->
    [{timetrap, {seconds, 600 + 2 * soak_seconds()}}].

all() ->
    [
        memory_never_falls_by_inserts,
        memory_falls_when_objects_go,memory_does_not_grow].

soak_seconds() ->
    list_to_integer(os:getenv("ATS_SOAK_SECONDS", ?DEFAULT_SECONDS)).

memory_does_not_grow(Config) ->
    File = filename:join(proplists:get_value(priv_dir, Config), "memory.csv"),
    io:format(user, "~nsamples of memory: ~ts~n", [File]),
    Samples = soak(File, soak_seconds()),
    Cycles = length([S || #{kind := filled} = S <- Samples]),
    Judgements = [judgement(Kind, Cycles, Samples) || Kind <- [filled, empty]],
    ct:pal("~b cycles~n~p", [Cycles, Judgements]),
    ?assertEqual([], [J || #{is_fine := false} = J <- Judgements]),
    {comment, io_lib:format("~b cycles", [Cycles])}.

%% ----- working and looking -----

soak(File, Seconds) ->
    {ok, Peer, _} = ats_test_lib:start_vm(["+MMmcs", "0"]),
    {ok, Csv} = file:open(File, [write, raw]),
    ok = file:write(Csv, "seconds,kind,resident,erlang,objects\n"),
    try
        ok = ats_test_lib:call(Peer, ats_churn, start, []),
        Begin = erlang:monotonic_time(second),
        cycles(Peer, Csv, Begin, Begin + Seconds, calls(Seconds))
    after
        ok = file:close(Csv),
        ats_test_lib:stop_vm(Peer)
    end.

%% Returns the number of calls that each worker makes in each of the three phases of a cycle. A long
%% soak has long cycles, too.
calls(Seconds) -> max(10000, min(100000, Seconds * 250)).

cycles(Peer, Csv, Begin, End, Calls) ->
    RestMs = min(?KEPT_MS, 100 * (End - Begin)),
    Phase = fun(Mode) ->
        ok = peer:call(Peer, ats_churn, phase, [Mode, Calls, ?WORKERS], infinity)
    end,
    ok = Phase(grow),
    ok = Phase(change),
    timer:sleep(RestMs),
    Filled = sample(filled, Peer, Csv, Begin),
    ok = Phase(shrink),
    ok = peer:call(Peer, ats_churn, clear, [], infinity),
    timer:sleep(RestMs),
    Empty = sample(empty, Peer, Csv, Begin),
    ?assertEqual(0, maps:get(objects, Empty)),
    case erlang:monotonic_time(second) >= End of
        true -> [Filled, Empty];
        false -> [Filled, Empty | cycles(Peer, Csv, Begin, End, Calls)]
    end.

sample(Kind, Peer, Csv, Begin) ->
    Memory = peer:call(Peer, ats_test_lib, settled_memory, [], infinity),
    #{resident := Resident, erlang := Erlang} = Memory,
    Objects = peer:call(Peer, ats_churn, objects, [], infinity),
    Seconds = erlang:monotonic_time(second) - Begin,
    ok = file:write(
        Csv,
        io_lib:format("~b,~s,~b,~b,~b~n", [Seconds, Kind, Resident, Erlang, Objects])
    ),
    #{
        seconds => Seconds,
        kind => Kind,
        resident => Resident,
        erlang => Erlang,
        objects => Objects
    }.

%% ----- judging -----

%% Compares the typical values of the second and the last quarter of the samples.
judgement(Kind, Cycles, Samples) ->
    OfKind = [S || #{kind := K} = S <- Samples, K =:= Kind],
    Second = typical(lists:sublist(OfKind, 1 + Cycles div 4, max(1, Cycles div 4))),
    Last = typical(lists:nthtail(Cycles - max(1, Cycles div 4), OfKind)),
    Most = maps:map(fun(_, Bytes) -> most(Cycles, Bytes) end, Second),
    #{
        kind => Kind,
        second_quarter => Second,
        last_quarter => Last,
        is_fine => lists:all(
            fun(Item) -> maps:get(Item, Last) =< maps:get(Item, Most) end,
            maps:keys(Most)
        )
    }.

most(Cycles, Bytes) when Cycles >= ?ENOUGH_CYCLES -> Bytes * 1.03 + 2 * 1024 * 1024;
most(_, Bytes) -> Bytes * 1.25 + 32 * 1024 * 1024.

typical(Samples) ->
    maps:from_list([
        {Item, ats_test_lib:median([maps:get(Item, S) || S <- Samples])}
     || Item <- [resident, erlang]
    ]).

%% ----- reports -----

%% However a table adapts, also when others have written before, it takes more memory after each
%% insert of something new.
memory_never_falls_by_inserts(_) ->
    [
        begin
            T = ats:new(memory, [Type, public | Options]),
            true = ats_nif:force_adaptation(T, Splits, Joins),
            Writers = [
                fun() -> [ats:insert(T, {{Writer, N}, N}) || N <- lists:seq(1, 3000)] end
             || Writer <- [a, b]
            ],
            _ = ats_test_lib:parallel(Writers),
            Kind = {Type, Options, Splits, Joins, Name},
            _ = lists:foldl(
                fun(N, Before) ->
                    true = ats:insert(T, Object(N)),
                    After = ats:info(T, memory),
                    ?assert(After >= Before, {Kind, N, Before, After}),
                    After
                end,
                ats:info(T, memory),
                lists:seq(1, 6000)
            ),
            true = ats:delete(T)
        end
     || Type <- [set, ordered_set, bag, duplicate_bag],
        Options <- [[], [compressed]],
        {Splits, Joins} <- [{0, 0}, {8, 8}, {2, 3}, {0, 2}],
        {Name, Object} <- objects(Type)
    ],
    ok.

objects(Type) when Type =:= set; Type =:= ordered_set ->
    [
        {up, fun(N) -> {N, x} end},
        {down, fun(N) -> {-N, "text"} end},
        %% A permutation of the numbers, and objects of different sizes.
        {random, fun(N) -> {N * 7919 rem 6007, lists:seq(1, N rem 9)} end}
    ];
objects(_) ->
    [
        {one_key, fun(N) -> {1, N} end},
        {few_keys, fun(N) -> {N * 7919 rem 60, N, <<N:64>>} end}
        | objects(set)
    ].

%% Memory does not only grow: removed objects are not reported any longer.
memory_falls_when_objects_go(_) ->
    [
        begin
            T = ats:new(memory, [Type]),
            Empty = ats:info(T, memory),
            [true = ats:insert(T, {N, x}) || N <- lists:seq(1, 20000)],
            Full = ats:info(T, memory),
            [true = ats:insert(T, {N, erlang:make_tuple(100, y)}) || N <- lists:seq(1, 100)],
            ?assert(ats:info(T, memory) > Full + 100 * 90),
            [true = ats:delete(T, N) || N <- lists:seq(1, 19000)],
            ?assert(ats:info(T, memory) < Empty + (Full - Empty) div 4),
            [true = ats:delete(T, N) || N <- lists:seq(19001, 20000)],
            ?assert(ats:info(T, memory) < Empty + (Full - Empty) div 20)
        end
     || Type <- [set, ordered_set, bag, duplicate_bag]
    ],
    ok.

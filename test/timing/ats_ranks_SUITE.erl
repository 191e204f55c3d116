%% Objects of an `ordered_set' by their rank: rank, nth, slot and counts, in tables that are
%% large, change, and split. Keys of all types, and errors, are tested by ats_range_SUITE.
-module(ats_ranks_SUITE).

-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0]).
-export([
    examples/1,
    changing_tables/1,
    slots_are_ranks/1,
    cleared_tables/1,
    undone_inserts_do_not_count/1,
    writers_beside/1,
    counting_is_fast/1,
    the_first_count_keeps_nobody_waiting/1
]).

-define(NUMBERS, 30000).

suite() -> [{timetrap, {minutes, 15}}].

all() ->
    [
        examples,
        changing_tables,
        slots_are_ranks,
        cleared_tables,
        undone_inserts_do_not_count,
        writers_beside,
        counting_is_fast,
        the_first_count_keeps_nobody_waiting
    ].

examples(_) ->
    T = ats:new(t, [ordered_set]),
    ?assertEqual(0, ats:rank(T, x)),
    ?assertEqual('$end_of_table', ats:nth(T, 1)),
    ?assertEqual('$end_of_table', ats:nth(T, -1)),
    true = ats:insert(T, [{K, x} || K <- [10, 20, 30, {a}, "b"]]),
    ?assertEqual([0, 0, 1, 1, 2, 3, 5], [ats:rank(T, K) || K <- [1, 10, 10.5, 20, 20.5, a, <<>>]]),
    ?assertEqual([{10, x}, {"b", x}, '$end_of_table'], [ats:nth(T, N) || N <- [1, 5, 6]]),
    ?assertEqual([{"b", x}, {10, x}, '$end_of_table'], [ats:nth(T, N) || N <- [-1, -5, -6]]),
    ?assertEqual('$end_of_table', ats:nth(T, 1 bsl 100)),
    ?assertEqual('$end_of_table', ats:nth(T, -(1 bsl 100))),
    ?assertEqual({30, x}, ats:range_nth(T, 20, 30, 2)),
    ?assertEqual('$end_of_table', ats:range_nth(T, 20, 30, 2, [{high, exclusive}])),
    ?assertEqual({{a}, x}, ats:range_nth(T, 20, 30, 3, [{high, unbounded}])),
    ?assertEqual({10, x}, ats:range_nth(T, 20, 30, -3, [{low, unbounded}])),
    ?assertEqual('$end_of_table', ats:range_nth(T, 30, 20, 1)),
    true = ats:delete(T).

%% Any changes, with counts in between. The model is a list of the keys that are there.
changing_tables(_) ->
    [change(Seed, Kind, Adapts) || Seed <- [1, 2], Kind <- [short, long], Adapts <- [false, true]].

change(Seed, Kind, Adapts) ->
    _ = rand:seed(exsss, Seed),
    T = ats:new(t, [ordered_set, public]),
    true = not Adapts orelse ats_nif:force_adaptation(T, 200, 250),
    Model = lists:foldl(
        fun(_, There) ->
            Now = change_somehow(T, Kind, There),
            check_ranks(T, Kind, Now),
            Now
        end,
        ordsets:new(),
        lists:seq(1, 60)
    ),
    ?assertEqual([key(Kind, N) || N <- Model], [K || {K, _} <- ats:tab2list(T)]),
    true = ats:delete(T).

key(short, N) -> N;
key(long, N) -> {some_key, N div 10, "with a tail that is long enough", N}.

change_somehow(T, Kind, There) ->
    Some = [rand:uniform(?NUMBERS) || _ <- lists:seq(1, rand:uniform(1500))],
    Start = rand:uniform(?NUMBERS),
    Row = lists:seq(Start, min(?NUMBERS, Start + rand:uniform(2000))),
    Objects = fun(Numbers) -> [{key(Kind, N), N} || N <- Numbers] end,
    case rand:uniform(5) of
        1 ->
            true = ats:insert(T, Objects(Some)),
            ordsets:union(There, ordsets:from_list(Some));
        2 ->
            [true = ats:insert(T, Object) || Object <- Objects(Row)],
            ordsets:union(There, Row);
        3 ->
            [true = ats:insert(T, Object) || Object <- Objects(Some)],
            ordsets:union(There, ordsets:from_list(Some));
        4 ->
            [true = ats:delete(T, key(Kind, N)) || N <- Some],
            ordsets:subtract(There, ordsets:from_list(Some));
        5 ->
            ats:range_delete(T, key(Kind, Start), key(Kind, lists:last(Row))),
            ordsets:subtract(There, Row)
    end.

check_ranks(T, Kind, There) ->
    Size = length(There),
    Keys = list_to_tuple([key(Kind, N) || N <- There]),
    ?assertEqual(Size, ats:range_count(T, x, x, [{low, unbounded}, {high, unbounded}])),
    ?assertEqual('$end_of_table', ats:nth(T, Size + 1)),
    [
        begin
            Key = element(N, Keys),
            ?assertMatch({Key, _}, ats:nth(T, N)),
            ?assertMatch({Key, _}, ats:nth(T, N - Size - 1)),
            ?assertEqual(N - 1, ats:rank(T, Key)),
            Other = rand:uniform(Size),
            {First, Last} = {min(N, Other), max(N, Other)},
            {Low, High} = {element(First, Keys), element(Last, Keys)},
            ?assertEqual(Last - First + 1, ats:range_count(T, Low, High)),
            Within = rand:uniform(Last - First + 1),
            Expected = element(First + Within - 1, Keys),
            ?assertMatch({Expected, _}, ats:range_nth(T, Low, High, Within))
        end
     || Size > 0, N <- [1, Size | [rand:uniform(Size) || _ <- lists:seq(1, 10)]]
    ].

slots_are_ranks(_) ->
    T = ats:new(t, [ordered_set]),
    Objects = [{N, N * N} || N <- lists:seq(1, 5000)],
    true = ats:insert(T, Objects),
    ?assertEqual(Objects, lists:append([ats:slot(T, I) || I <- lists:seq(0, 4999)])),
    ?assertEqual('$end_of_table', ats:slot(T, 5000)),
    ?assertError(badarg, ats:slot(T, 5001)),
    true = ats:delete(T).

cleared_tables(_) ->
    T = ats:new(t, [ordered_set]),
    Fill = fun(Numbers) -> [true = ats:insert(T, {N}) || N <- Numbers] end,
    Fill(lists:seq(1, 10000)),
    ?assertEqual(5000, ats:rank(T, 5001)),
    true = ats:delete_all_objects(T),
    ?assertEqual(0, ats:rank(T, 5001)),
    Fill(lists:seq(1, 10000, 2)),
    ?assertEqual(2500, ats:rank(T, 5001)),
    true = ats:delete(T).

%% Lists of which a key is there already, so that nothing is inserted.
undone_inserts_do_not_count(_) ->
    T = ats:new(t, [ordered_set]),
    true = ats:insert(T, [{2 * N} || N <- lists:seq(1, 5000)]),
    ?assertEqual(2500, ats:rank(T, 5001)),
    [
        begin
            List = [{N} || N <- lists:seq(1, 2 * Tried, 2)] ++ [{2 * Tried}],
            false = ats:insert_new(T, List),
            ?assertEqual({2500, 5000}, {ats:rank(T, 5001), ats:rank(T, x)})
        end
     || Tried <- [1, 10, 100, 5000]
    ],
    true = ats:insert_new(T, [{N} || N <- lists:seq(1, 10000, 2)]),
    ?assertEqual({5000, 10000}, {ats:rank(T, 5001), ats:rank(T, x)}),
    true = ats:delete(T).

%% A count beside writers includes each object that stays and none that the table does not get.
%% After the writes, all counts are exact.
writers_beside(_) ->
    T = ats:new(t, [ordered_set, public]),
    true = ats_nif:force_adaptation(T, 2000, 2000),
    true = ats:insert(T, [{N, x} || N <- lists:seq(2, ?NUMBERS, 2)]),
    Counter = spawn_link(fun() -> count(T) end),
    Writers = [fun() -> come_and_go(T, 20000) end || _ <- [1, 2]],
    _ = ats_test_lib:parallel(Writers),
    unlink(Counter),
    ats_test_lib:kill(Counter),
    ?assertEqual(length(ats:tab2list(T)), ats:rank(T, x)),
    check_ranks(T, short, [N || {N, x} <- ats:tab2list(T)]),
    true = ats:delete(T).

come_and_go(_T, 0) ->
    ok;
come_and_go(T, Left) ->
    Key = rand:uniform(?NUMBERS div 2) * 2 - 1,
    true =
        case rand:uniform(2) of
            1 -> ats:insert(T, {Key, x});
            2 -> ats:delete(T, Key)
        end,
    come_and_go(T, Left - 1).

count(T) ->
    [Low, High] = lists:sort([rand:uniform(?NUMBERS), rand:uniform(?NUMBERS)]),
    Stay = High div 2 - (Low - 1) div 2,
    Count = ats:range_count(T, Low, High),
    ?assert(Count >= Stay andalso Count =< High - Low + 1),
    N = rand:uniform(High - Low + 1),
    [
        case ats:range_nth(T, Low, High, Rank) of
            '$end_of_table' -> ?assert(N > Stay);
            {Key, x} -> ?assert(Key >= Low andalso Key =< High)
        end
     || Rank <- [N, -N]
    ],
    count(T).

%% A count after a few writes does not read the whole table.
counting_is_fast(_) ->
    N = 1000000,
    T = ats:new(t, [ordered_set]),
    true = ats:insert(T, [{2 * K} || K <- lists:seq(1, N)]),
    N = ats:rank(T, x),
    Scan = fun() -> ats:select_count(T, [{'_', [], [true]}]) end,
    Calls = [
        {count, fun(Low) -> ats:range_count(T, Low, 2 * N) end},
        {rank, fun(Key) -> ats:rank(T, Key) end},
        {nth, fun(Rank) -> ats:nth(T, Rank) end},
        {last, fun(Rank) -> ats:nth(T, -Rank) end},
        {slot, fun(Rank) -> ats:slot(T, Rank div 2) end}
    ],
    Whole = lists:min([element(1, timer:tc(Scan)) || _ <- [1, 2, 3]]),
    Random = fun() -> rand:uniform(N) end,
    [
        begin
            Times = [
                begin
                    [ats:insert(T, {Random() * 2 - Odd}) || Odd <- [0, 1], _ <- lists:seq(1, 50)],
                    element(1, timer:tc(Call, [Random()]))
                end
             || _ <- lists:seq(1, 10)
            ],
            ct:pal("~p: ~p us, after 100 writes each; a scan: ~b us", [What, Times, Whole]),
            ?assert({What, lists:min(Times)} < {What, Whole div 100})
        end
     || {What, Call} <- Calls
    ],
    true = ats:delete(T).

%% Counting everything for the first time takes a while, but not on a normal scheduler.
the_first_count_keeps_nobody_waiting(_) ->
    N = 1000000,
    T = ats:new(t, [ordered_set, public]),
    true = ats:insert(T, [{K} || K <- lists:seq(1, N)]),
    Schedulers = erlang:system_info(schedulers_online),
    _ = erlang:system_flag(schedulers_online, 1),
    try
        Counter = spawn_monitor(fun() -> exit({counted, ats:rank(T, x)}) end),
        true = erlang:yield(),
        Least = lists:min([element(1, timer:tc(fun erlang:yield/0)) || _ <- lists:seq(1, 5)]),
        {Pid, Monitor} = Counter,
        receive
            {'DOWN', Monitor, process, Pid, Reason} -> ?assertEqual({counted, N}, Reason)
        end,
        ?assert(Least < 5000)
    after
        erlang:system_flag(schedulers_online, Schedulers)
    end,
    true = ats:delete(T).

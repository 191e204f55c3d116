%% A thousand snapshots of a table of a million objects, beside two writers.
%%
%% The snapshots of the one table are held all the time; another one is like it, and has none. The
%% writers put random objects over others, in the one table and in the other by turns, so that both
%% meet the same other work of the machine. Their rates are compared, in time of the clock and in
%% time that processors spend on the virtual machine, which other work disturbs little. The memory
%% that the snapshots hold back is checked after each turn.
%%
%% ATS_SOAK_SECONDS says how long the table with snapshots is written to in all (a few seconds by
%% default, which only tell that everything works), and ATS_SNAPSHOT_OBJECTS how many objects the
%% tables have.
-module(ats_many_snapshots_SUITE).

-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0, init_per_suite/1, end_per_suite/1]).
-export([set/1, ordered_set/1]).

-define(DEFAULT_SECONDS, "3").
-define(DEFAULT_OBJECTS, "1000000").
-define(SNAPSHOTS, 1000).
-define(MEMORY, (1 bsl 30)).
%% Part of the rate of writers without snapshots that is left with them. A short run tells nothing.
-define(LEFT, 0.6).
-define(ENOUGH_SECONDS, 60).

suite() -> [{timetrap, {seconds, 900 + 4 * seconds()}}].

all() -> [set, ordered_set].

seconds() -> list_to_integer(os:getenv("ATS_SOAK_SECONDS", ?DEFAULT_SECONDS)).

objects() -> list_to_integer(os:getenv("ATS_SNAPSHOT_OBJECTS", ?DEFAULT_OBJECTS)).

init_per_suite(Config) ->
    {ok, Started} = application:ensure_all_started(ats),
    [{started, Started} | Config].

end_per_suite(Config) ->
    [application:stop(Application) || Application <- proplists:get_value(started, Config)].

set(_Config) -> thousand(set).

ordered_set(_Config) -> thousand(ordered_set).

thousand(Type) ->
    [Held, Free] = [filled(Type), filled(Type)],
    First = ats:snapshot(Held),
    %% The others are of moments between which writers write.
    Making = fun() -> [begin timer:sleep(1), ats:snapshot(Held) end
                       || _ <- lists:seq(2, ?SNAPSHOTS)] end,
    {Others, _} = beside_writers(Held, Making),
    Last = lists:last(Others),
    Sum = sum(Last),
    Turn = min(1000, 200 * seconds()),
    Turns = [turn(Held, Free, Turn) || _ <- lists:seq(1, 1000 * seconds() div Turn)],
    %% Each snapshot is unchanged.
    ?assertEqual(0, sum(First)),
    ?assertEqual(Sum, sum(Last)),
    Ratios = fun(Clock) -> lists:sort([element(Clock, With) / element(Clock, Without)
                                       || {With, Without, _} <- Turns]) end,
    {Wall, Processor} = {Ratios(1), Ratios(2)},
    Ratio = ats_test_lib:median(Processor),
    Memory = lists:max([Bytes || {_, _, Bytes} <- Turns]),
    {{Rate, _}, _, _} = lists:last(Turns),
    Text = io_lib:format("~.2f of the rate without snapshots in time of processors (~.2f to ~.2f "
                         "in ~b turns), ~.2f in that of the clock (~.2f to ~.2f), ~b writes a "
                         "second in the last turn, ~b MB held back",
                         [Ratio, hd(Processor), lists:last(Processor), length(Turns),
                          ats_test_lib:median(Wall), hd(Wall), lists:last(Wall), round(Rate),
                          Memory div 1000000]),
    ct:pal("~s: ~s", [Type, Text]),
    [true = ats:release(S) || S <- [First | Others]],
    ats_test_lib:until(fun() -> maps:get(memory, ats:info(Held, snapshots)) =:= 0 end, 30000),
    [true = ats:delete(T) || T <- [Held, Free]],
    ?assert(Ratio >= ?LEFT orelse seconds() < ?ENOUGH_SECONDS),
    {comment, Text}.

filled(Type) ->
    Table = ats:new(t, [Type, public, {snapshot_memory, ?MEMORY}]),
    Part = objects() div 10,
    [true = ats:insert(Table, [{K, 0} || K <- lists:seq(P * Part, (P + 1) * Part - 1)])
     || P <- lists:seq(0, 9)],
    Table.

sum(Snapshot) -> ats:foldl(fun({_, Value}, Sum) -> Sum + Value end, 0, Snapshot).

%% Writes a second of both clocks, with snapshots and without, and the bytes that snapshots hold
%% back then.
turn(Held, Free, Ms) ->
    With = rates(Held, Ms),
    #{number := ?SNAPSHOTS, memory := Memory} = ats:info(Held, snapshots),
    ?assert(Memory =< ?MEMORY),
    %% Background work of one table must not fall into the turn of the other.
    timer:sleep(200),
    Without = rates(Free, Ms),
    timer:sleep(200),
    {With, Without, Memory}.

rates(Table, Ms) ->
    Start = erlang:monotonic_time(millisecond),
    {Before, _} = statistics(runtime),
    {ok, Writes} = beside_writers(Table, fun() -> timer:sleep(Ms) end),
    {After, _} = statistics(runtime),
    Took = erlang:monotonic_time(millisecond) - Start,
    {1000 * Writes / Took, 1000 * Writes / max(1, After - Before)}.

%% Returns the result of a function beside writers, and the number of writes.
beside_writers(Table, Do) ->
    Writers = [spawn_monitor(fun() -> write(Table, rand:mwc59_seed(), 0) end) || _ <- [1, 2]],
    Done = Do(),
    [Pid ! stop || {Pid, _} <- Writers],
    Writes = [receive {'DOWN', Monitor, process, _, {written, N}} -> N end
              || {_, Monitor} <- Writers],
    {Done, lists:sum(Writes)}.

write(Table, Random0, N) ->
    receive
        stop -> exit({written, N})
    after 0 ->
        write(Table, write_some(Table, objects(), Random0, 100), N + 100)
    end.

write_some(_Table, _Objects, Random, 0) ->
    Random;
write_some(Table, Objects, Random0, N) ->
    Random = rand:mwc59(Random0),
    Key = rand:mwc59_value32(Random) * Objects bsr 32,
    true = ats:insert(Table, {Key, Random}),
    write_some(Table, Objects, Random, N - 1).

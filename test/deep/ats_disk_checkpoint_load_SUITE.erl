%% Checkpoints of a large table on disk beside two writers that write as fast as they can: the time
%% of a call, and the longest writes beside it. Windows of a second with a checkpoint and without
%% one take turns; each write counts in the window that it touches.
%%
%% ATS_CHECKPOINT_MB is the size of the table: little by default, which tells that everything works
%% and how long it took. The folder of the suite needs some three times that much room.
-module(ats_disk_checkpoint_load_SUITE).

-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0, init_per_testcase/2, end_per_testcase/2]).
-export([checkpoints_beside_writers/1]).

-define(DEFAULT_MB, "200").
-define(BYTES, 1000).
-define(WINDOW_MS, 1000).
-define(SETTLE_MS, 3000).
%% Writes that take longer count as this long.
-define(LONGEST_US, 1000000).

suite() -> [{timetrap, {minutes, 15 + megabytes() div 100}}].

all() -> [checkpoints_beside_writers].

megabytes() -> list_to_integer(os:getenv("ATS_CHECKPOINT_MB", ?DEFAULT_MB)).

init_per_testcase(Case, Config) -> ats_disk_lib:begin_case(Case, Config).

end_per_testcase(_, Config) ->
    ats_disk_lib:end_case(),
    %% Removes the directory, which may be large.
    ok = file:del_dir_r(ats_disk_lib:file(Config, "")).

checkpoints_beside_writers(Config) ->
    T = ats_disk_lib:open(Config, t, [{type, ordered_set}]),
    Objects = megabytes() * 1000000 div ?BYTES,
    fill(T, Objects),
    ct:pal("~b objects", [Objects]),
    %% Loads the module, so that no call does so beside the writers.
    {module, _} = code:ensure_loaded(ats_disk_checkpoint),
    timer:sleep(?SETTLE_MS),
    Phase = atomics:new(1, []),
    Counts = [{Name, counters:new(?LONGEST_US + 1, [])} || Name <- [without, with]],
    Writers = [spawn_link(fun() -> write(T, Objects, Phase, list_to_tuple(Counts), Seed) end)
               || Seed <- [1, 2]],
    Calls = [begin
                 during(1, Phase, fun() -> ok end),
                 To = ats_disk_lib:file(Config, "to-" ++ integer_to_list(N)),
                 Took = during(2, Phase, fun() -> timed(fun() -> dats:checkpoint(T, To) end) end),
                 Size = disk_size(To),
                 %% The files of the table that only the checkpoint has are freed between windows.
                 ok = check(N, To, Objects),
                 {Took, Size}
             end || N <- lists:seq(1, rounds())],
    [begin unlink(W), ats_test_lib:kill(W) end || W <- Writers],
    Times = [Took || {Took, _} <- Calls],
    Text = [io_lib:format("~b MB in ~b checkpoints: calls of ~b to ~b us, half of them within ~b",
                          [element(2, lists:last(Calls)) div 1000000, length(Calls),
                           lists:min(Times), lists:max(Times),
                           ats_test_lib:median(Times)])
            | [io_lib:format("; ~s: ~b writes, 99.99 % within ~b us, longest ~b us",
                             [Name, total(Of), percentile(Of, 0.9999), percentile(Of, 1)])
               || {Name, Of} <- Counts]],
    ct:pal("~s~ncalls in us: ~w", [Text, Times]),
    [?assert(total(Of) > 0, Name) || {Name, Of} <- Counts],
    {comment, Text}.

rounds() -> min(30, 5 + megabytes() div 200).

fill(T, Objects) ->
    Part = fun(Odd) ->
                   fun() -> [ok = dats:insert(T, {K, value(K)})
                             || K <- lists:seq(1 + Odd, Objects, 2)], ok end
           end,
    [ok, ok] = ats_test_lib:parallel([Part(0), Part(1)]),
    ok.

%% Bytes that do not compress.
value(Seed) ->
    {Bytes, _} = rand:bytes_s(?BYTES, rand:seed_s(exsss, Seed)),
    Bytes.

%% Does something while writes count in a window.
during(Window, Phase, Do) ->
    ok = atomics:put(Phase, 1, Window),
    End = erlang:monotonic_time(millisecond) + ?WINDOW_MS,
    Result = Do(),
    timer:sleep(max(0, End - erlang:monotonic_time(millisecond))),
    ok = atomics:put(Phase, 1, 0),
    Result.

timed(Do) ->
    {Took, ok} = timer:tc(Do),
    Took.

write(T, Objects, Phase, Counts, Seed) ->
    Value = value(Seed),
    write(T, Objects, Phase, Counts, rand:mwc59_seed(Seed), Value).

write(T, Objects, Phase, Counts, Random0, Value) ->
    Random = rand:mwc59(Random0),
    Key = 1 + (rand:mwc59_value32(Random) * Objects bsr 32),
    Start = erlang:monotonic_time(),
    Begun = atomics:get(Phase, 1),
    ok = dats:insert(T, {Key, Value}),
    %% A write that lasts into a window, or out of one, counts in it.
    case max(Begun, atomics:get(Phase, 1)) of
        0 ->
            ok;
        Window ->
            Took = erlang:monotonic_time() - Start,
            Us = min(?LONGEST_US, erlang:convert_time_unit(Took, native, microsecond)),
            {_, Count} = element(Window, Counts),
            counters:add(Count, Us + 1, 1)
    end,
    write(T, Objects, Phase, Counts, Random, Value).

check(N, To, Objects) ->
    N =:= rounds() andalso check_last(To, Objects),
    dats:destroy(To).

%% The copy is whole, beside the writers.
check_last(To, Objects) ->
    {ok, Copy} = dats:open_file(To),
    ?assertEqual(Objects, dats:info(Copy, size)),
    [?assertMatch([{K, <<_:?BYTES/binary>>}], dats:lookup(Copy, K))
     || _ <- lists:seq(1, 1000), K <- [rand:uniform(Objects)]],
    dats:close(Copy).

disk_size(Directory) ->
    lists:sum([filelib:file_size(File) || File <- filelib:wildcard(Directory ++ "/*")]).

total(Counts) -> lists:sum(numbers(Counts)).

numbers(Counts) -> [counters:get(Counts, I) || I <- lists:seq(1, ?LONGEST_US + 1)].

%% Returns the microseconds within which this part of the writes was done.
percentile(Counts, Part) ->
    Numbers = numbers(Counts),
    percentile(Numbers, 0, Part * lists:sum(Numbers)).

percentile([N | _], Us, Wanted) when N >= Wanted -> Us;
percentile([N | Rest], Us, Wanted) -> percentile(Rest, Us + 1, Wanted - N).

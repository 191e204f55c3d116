%% Many values that a module of a program has to merge: a million of one key, and more of many keys
%% than memory holds. The virtual machine is killed in between.
-module(ats_disk_chains_SUITE).

-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0, init_per_testcase/2, end_per_testcase/2]).
-export([
    a_million_values_of_a_key/1,
    nothing_is_lost_or_counted_twice/1,
    more_values_than_memory/1
]).
%% Called in other machines.
-export([write_long/2, read_long/1, write_for_ever/2, fill/1, walk/2]).

-define(MILLION, 1000000).
-define(MB, (1024 * 1024)).

suite() -> [{timetrap, {minutes, 15}}].

all() ->
    [a_million_values_of_a_key, nothing_is_lost_or_counted_twice, more_values_than_memory].

init_per_testcase(Case, Config) ->
    ats_disk_lib:begin_case(Case, Config).

end_per_testcase(_, _) ->
    ats_disk_lib:end_case().

%% Calls a function of this module in a new machine, which is killed then.
in_machine(Function, Arguments) ->
    {ok, Vm, _} = ats_test_lib:start_vm([]),
    Kill = ats_test_lib:killer_of(Vm),
    Answer = peer:call(Vm, ?MODULE, Function, Arguments, 280000),
    ok = Kill(),
    Answer.

%% Opens a table for as long as the machine lives.
open(Name, Directory, Options) ->
    Me = self(),
    spawn(fun() ->
        All = [{file, Directory}, {type, ordered_set}, {merge, {module, ats_sum_merge}} | Options],
        Me ! {self(), dats:open_file(Name, All)},
        timer:sleep(infinity)
    end),
    receive {_, {ok, Name}} -> Name end.

%% ----- one key -----

%% Merges in the background, and merges at the time of the first read.
a_million_values_of_a_key(Config) ->
    Ways = [background, nobody],
    Found = [
        begin
            Directory = ats_disk_lib:file(Config, Way),
            ok = in_machine(write_long, [Directory, Way]),
            {Value, Ms, Bytes} = in_machine(read_long, [Directory]),
            ?assertEqual({ok, ?MILLION}, Value),
            {Way, Ms, Bytes div ?MB}
        end
     || Way <- Ways
    ],
    ct:pal("ms and MiB of a read: ~p", [Found]),
    [?assert(MiB < 64) || {_, _, MiB} <- Found],
    {comment, io_lib:format("~0p", [Found])}.

write_long(Directory, Way) ->
    ok = application:start(ats),
    _ = Way =:= nobody andalso sys:suspend(ats_merge_background),
    long = open(long, Directory, []),
    Half = ?MILLION div 2,
    write_ones(Half),
    ok = dats:flush(long),
    write_ones(?MILLION - Half).

write_ones(0) -> ok;
write_ones(Left) ->
    ok = dats:write(long, key, 1),
    write_ones(Left - 1).

read_long(Directory) ->
    ok = application:start(ats),
    ok = sys:suspend(ats_merge_background),
    long = open(long, Directory, []),
    {Growth, {Us, Value}} = with_growth(fun() -> timer:tc(fun() -> dats:read(long, key) end) end),
    [{key, ?MILLION}] = dats:tab2list(long),
    {Value, Us div 1000, Growth}.

%% Values are merged in the background, and by readers and writers, while the machine is killed.
nothing_is_lost_or_counted_twice(Config) ->
    Directory = ats_disk_lib:file(Config, "killed"),
    Written = lists:foldl(fun(_, Before) -> kill_round(Directory, Before) end, 0, lists:seq(1, 8)),
    {comment, io_lib:format("~b", [Written])}.

kill_round(Directory, Before) ->
    {ok, Vm, _} = ats_test_lib:start_vm([]),
    Kill = ats_test_lib:killer_of(Vm),
    ok = ats_test_lib:call(Vm, ?MODULE, write_for_ever, [Directory, Before]),
    timer:sleep(200 + rand:uniform(600)),
    ok = Kill(),
    {ok, <<Acknowledged:64>>} = file:read_file(Directory ++ ".log"),
    {ok, t} = dats:open_file(t, [{file, Directory}, {type, ordered_set}]),
    Found = case dats:read(t, hot) of
                {ok, Value} -> Value;
                not_found -> 0
            end,
    ct:pal("~b acknowledged, ~b found", [Acknowledged, Found]),
    ?assert(Found >= Acknowledged),
    ?assert(Found =< Acknowledged + 100),
    ok = dats:close(t),
    Found.

write_for_ever(Directory, Before) ->
    t = open(t, Directory, [{memory, 300000}]),
    {ok, Log} = file:open(Directory ++ ".log", [read, write, raw, binary]),
    ok = file:pwrite(Log, 0, <<Before:64>>),
    spawn(fun() -> write_hundreds(Log, Before) end),
    spawn(fun Read() -> {ok, _} = dats:read(t, hot), timer:sleep(5), Read() end),
    ok.

%% A hundred are acknowledged at once.
write_hundreds(Log, N) ->
    [ok = dats:write(t, hot, 1) || _ <- lists:seq(1, 100)],
    ok = file:pwrite(Log, 0, <<(N + 100):64>>),
    write_hundreds(Log, N + 100).

%% ----- many keys -----

-define(KEYS, 25000).
-define(BYTES, 4000).

%% 200 MB of values, two of each key, in a machine that has a tenth of that for them.
more_values_than_memory(Config) ->
    Directory = ats_disk_lib:file(Config, "many"),
    ok = in_machine(fill, [Directory]),
    Growths = [
        begin
            {Growth, Answer} = in_machine(walk, [Directory, Walk]),
            ?assertEqual(?KEYS, Answer),
            {Walk, Growth div ?MB}
        end
     || Walk <- [select, select_count, range, range_count, fold, foldr, select_range]
    ],
    ct:pal("MiB that walks take: ~p", [Growths]),
    [?assert(MiB < 64) || {_, MiB} <- Growths],
    {comment, io_lib:format("~0p", [Growths])}.

fill(Directory) ->
    ok = application:start(ats),
    ok = sys:suspend(ats_merge_background),
    many = open(many, Directory, [{memory, 12 * ?MB}]),
    Filling = binary:copy(<<7>>, ?BYTES),
    [ok = dats:write(many, K, <<K:32, N, Filling/binary>>)
     || N <- [1, 2], K <- lists:seq(1, ?KEYS)],
    ok.

walk(Directory, Walk) ->
    ok = application:start(ats),
    ok = sys:suspend(ats_merge_background),
    many = open(many, Directory, [{memory, 12 * ?MB}]),
    with_growth(fun() -> walk(Walk) end).

%% Returns the number of keys that are met.
walk(select) -> length(dats:select(many, [{{'$1', '_'}, [{'>', '$1', 0}], ['$1']}]));
walk(select_count) -> dats:select_count(many, [{'_', [], [true]}]);
walk(range) -> length(dats:range(many, 1, ?KEYS, [keys]));
walk(range_count) -> dats:range_count(many, 1, ?KEYS);
walk(fold) -> dats:foldl(fun({K, <<K:32, 2, _/binary>>}, N) -> N + 1 end, 0, many);
walk(foldr) -> dats:foldr(fun({K, <<K:32, 2, _/binary>>}, N) -> N + 1 end, 0, many);
walk(select_range) ->
    Rows = fun Rows({ok, Found, Select}, N) when length(Found) =:= 100 ->
                   Rows(dats:select_continue(many, Select, 100), N + 100);
               Rows({ok, Found, _}, N) ->
                   N + length(Found)
           end,
    Rows(dats:select_range(many, {key, 0}, unbounded, fun(_, _) -> true end, 100), 0).

%% Returns the most bytes that the machine has more while a function runs.
with_growth(Function) ->
    Before = ats_test_lib:settled_memory(),
    Test = self(),
    Meter = spawn_link(fun() -> meter(Before, 0, Test) end),
    Answer = Function(),
    Meter ! stop,
    receive {Meter, Growth} -> {Growth, Answer} end.

meter(Before, Most, Test) ->
    Now = case ats_test_lib:resident_growth(Before) of
              unknown -> 0;
              Growth -> Growth
          end,
    receive
        stop -> Test ! {self(), max(Most, Now)}
    after 10 ->
        meter(Before, max(Most, Now), Test)
    end.

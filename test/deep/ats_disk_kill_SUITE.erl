%% A virtual machine that writes to tables on disk is killed, again and again: acknowledged writes
%% are there, each list as a whole, and nothing else.
%%
%% Writers note each answer in a file, by a write of the system, which outlives them.
%% ATS_KILL_ROUNDS says how often the machine is killed for each durability: 10 times by default.
-module(ats_disk_kill_SUITE).

-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0]).
-export([nothing_that_was_acknowledged_is_lost/1]).
-export([write_for_ever/3]).

-define(WRITERS, 3).
-define(DURABILITIES, [sync, {interval, 20}, system]).
%% The number of rounds after which others begin with an empty directory: each round reads all that
%% was written before.
-define(ROUNDS_ON_ONE, 20).

suite() -> [{timetrap, {minutes, 15 + rounds()}}].

all() -> [nothing_that_was_acknowledged_is_lost].

rounds() -> list_to_integer(os:getenv("ATS_KILL_ROUNDS", "10")).

nothing_that_was_acknowledged_is_lost(Config) ->
    Writes = [{Durability, runs(Config, Durability, rounds())} || Durability <- ?DURABILITIES],
    {comment, io_lib:format("~0p", [Writes])}.

%% Returns the last acknowledged writes of each run.
runs(_Config, _Durability, 0) ->
    [];
runs(Config, Durability, Left) ->
    Rounds = min(Left, ?ROUNDS_ON_ONE),
    Name = lists:flatten(io_lib:format("~0p ~b", [Durability, Left])),
    Directory = filename:join(proplists:get_value(priv_dir, Config), Name),
    ok = filelib:ensure_dir(filename:join(Directory, "x")),
    Written = round(Directory, Durability, Rounds, {0, 0, 0}),
    ok = file:del_dir_r(Directory),
    [Written | runs(Config, Durability, Left - Rounds)].

%% `Done' has the acknowledged writes of each writer before this round, of which nothing may ever be
%% lost.
round(Directory, Durability, Left, Done) ->
    {ok, Vm, _} = ats_test_lib:start_vm([]),
    Kill = ats_test_lib:killer_of(Vm),
    ok = ats_test_lib:call(Vm, ?MODULE, write_for_ever, [Directory, Durability, Done]),
    timer:sleep(30 + rand:uniform(400)),
    ok = Kill(),
    Found = found(Directory, Done),
    case Left of
        1 -> Found;
        _ -> round(Directory, Durability, Left - 1, Found)
    end.

files(Directory) ->
    {filename:join(Directory, "objects"), filename:join(Directory, "sums")}.

%% ----- in the machine that is killed -----

write_for_ever(Directory, Durability, Done) ->
    Me = self(),
    spawn(fun() ->
        {Objects, Sums} = files(Directory),
        %% Small memtables, so that files are written and merged all the time.
        Options = [{durability, Durability}, {memory, 300000}],
        {ok, o} = dats:open_file(o, [{file, Objects}, {type, ordered_set} | Options]),
        {ok, s} = dats:open_file(s, [{file, Sums}, {merge, sum} | Options]),
        [spawn_link(fun() -> start_writer(Directory, W, element(W, Done)) end)
         || W <- lists:seq(1, ?WRITERS)],
        Me ! {self(), ok},
        timer:sleep(infinity)
    end),
    receive {Pid, Answer} when is_pid(Pid) -> Answer end.

start_writer(Directory, W, Done) ->
    {ok, Log} = file:open(log(Directory, W), [write, raw, binary]),
    write(Log, W, Done + 1).

log(Directory, W) ->
    filename:join(Directory, "log" ++ integer_to_list(W)).

write(Log, W, N) ->
    Filling = binary:copy(<<N:64>>, rand:uniform(50)),
    ok = dats:insert(o, [{{W, N, a}, Filling}, {{W, N, b}, Filling}]),
    ok = dats:write(s, {sum, W}, 1),
    ok = dats:write(s, {sum, W, N rem 10}, N),
    ok = file:write(Log, <<N:64>>),
    write(Log, W, N + 1).

%% ----- the state after a kill -----

%% Returns the number of writes of each writer, all of which must be there.
found(Directory, Before) ->
    {Objects, Sums} = files(Directory),
    {ok, o} = dats:open_file(o, [{file, Objects}, {type, ordered_set}]),
    {ok, s} = dats:open_file(s, [{file, Sums}]),
    Found = [found(Directory, W, element(W, Before)) || W <- lists:seq(1, ?WRITERS)],
    %% And nothing else is.
    ?assertEqual(2 * lists:sum(Found), length(dats:tab2list(o))),
    ok = dats:close(o),
    ok = dats:close(s),
    list_to_tuple(Found).

found(Directory, W, Before) ->
    Acknowledged = acknowledged(log(Directory, W), Before),
    Keys = dats:select(o, [{{{W, '$1', a}, '$2'}, [], ['$1']}]),
    Written = length(Keys),
    ?assertEqual(lists:seq(1, Written), Keys),
    %% The last list may have been written without an answer.
    ?assert(Written >= Acknowledged),
    ?assert(Written =< Acknowledged + 1),
    [
        ?assertMatch([[{_, Filling}], [{_, Filling}]],
                     [dats:lookup(o, {W, N, Part}) || Part <- [a, b]])
     || N <- lists:nthtail(max(0, Written - 200), Keys)
    ],
    Sum = value({sum, W}),
    ?assert(Sum >= Acknowledged),
    ?assert(Sum =< Acknowledged + 1),
    InParts = lists:sum([value({sum, W, Part}) || Part <- lists:seq(0, 9)]),
    Upto = fun(N) -> N * (N + 1) div 2 end,
    ?assert(lists:member(InParts, [Upto(Acknowledged), Upto(Acknowledged + 1)])),
    %% Makes the next round go on from the same number everywhere.
    case {Written, Sum, InParts - Upto(Acknowledged)} of
        {Acknowledged, Acknowledged, 0} ->
            Acknowledged;
        _ ->
            Next = Acknowledged + 1,
            ok = dats:insert(o, [{{W, Next, Part}, <<>>} || Part <- [a, b]]),
            ok = dats:insert(s, {{sum, W}, Next}),
            case InParts =:= Upto(Next) of
                true -> ok;
                false -> ok = dats:write(s, {sum, W, Next rem 10}, Next)
            end,
            Next
    end.

value(Key) ->
    case dats:read(s, Key) of
        {ok, Value} -> Value;
        not_found -> 0
    end.

acknowledged(Log, Before) ->
    case file:read_file(Log) of
        {ok, <<>>} -> Before;
        {error, enoent} -> Before;
        {ok, Bytes} ->
            Last = byte_size(Bytes) div 8 * 8 - 8,
            <<_:Last/binary, N:64, _/binary>> = Bytes,
            max(N, Before)
    end.

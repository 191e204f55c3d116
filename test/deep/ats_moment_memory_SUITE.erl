%% Memory that was held back for a moment comes back when the moment ends: a table of a million
%% objects is changed entirely while it is read, and takes as much memory afterwards as before.
%%
%% A virtual machine of its own does that. The memory by the counts of `ats' and the resident memory
%% are asked for all the time. Chunks of memory that have been thinned out stay.
-module(ats_moment_memory_SUITE).

-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0]).
-export([memory_returns/1]).
-export([measure/2]).

-define(OBJECTS, 1000000).
%% Parts by which memory may grow: counted, and resident.
-define(COUNTED, 0.01).
-define(RESIDENT, 0.15).
-define(PATIENCE_MS, 10000).

suite() -> [{timetrap, {minutes, 10}}].

all() -> [memory_returns].

memory_returns(_Config) ->
    Figures = [{Type, Reader, in_machine(Type, Reader)}
               || Type <- [set, ordered_set], Reader <- [snapshot, chunks, fold]],
    Text = [io_lib:format("~n~s, ~s: ~b MB; while it was read ~b held back, ~b resident; counted "
                          "as before after ~b ms, resident nearly so after ~b ms, ~b in the end",
                          [Type, Reader, mega(Before), mega(Held), mega(Most), Counted, Nearly,
                           mega(After)])
            || {Type, Reader, {Before, Held, Most, Counted, Nearly, After}} <- Figures],
    ct:pal("~s", [Text]).

mega(Bytes) -> Bytes div 1000000.

in_machine(Type, Reader) ->
    {ok, Machine, _} = ats_test_lib:start_vm(["+MMmcs", "0"]),
    try peer:call(Machine, ?MODULE, measure, [Type, Reader], infinity)
    after ats_test_lib:stop_vm(Machine)
    end.

%% Returns resident bytes before, held-back bytes, and resident bytes then; milliseconds until the
%% counted bytes are as before, and until the resident ones nearly are; resident bytes a little
%% later.
measure(Type, Reader) ->
    {ok, _} = application:ensure_all_started(ats),
    T = ats:new(t, [Type, public, {snapshot_memory, infinity}]),
    %% The resident memory of a table that has been written to for a while stays the same.
    [change(T, Round) || Round <- [1, 2, 3]],
    _ = ats_test_lib:settled_memory(),
    {Counted, Resident} = {counted(T), ats_test_lib:resident_bytes()},
    Change = fun() ->
                     change(T, 4),
                     timer:sleep(200),
                     #{memory := Held} = ats:info(T, snapshots),
                     {Held, ats_test_lib:resident_bytes()}
             end,
    {Held, Most} = read(Reader, T, Change),
    Ended = erlang:monotonic_time(millisecond),
    HeldAfter = wait(fun() -> maps:get(memory, ats:info(T, snapshots)) end, 0, Ended),
    CountedAfter = wait(fun() -> counted(T) end, Counted * (1 + ?COUNTED), Ended),
    Nearly = wait(fun ats_test_lib:resident_bytes/0, Resident * (1 + ?RESIDENT), Ended),
    timer:sleep(300),
    {Resident, Held, Most, max(HeldAfter, CountedAfter), Nearly, ats_test_lib:resident_bytes()}.

counted(T) -> ats:info(T, memory) * erlang:system_info(wordsize).

%% Changes objects in a random order, in a process that leaves nothing.
change(T, Round) ->
    Write = fun Write(_, 0) -> ok;
                Write(Key, Left) ->
                    true = ats:insert(T, {Key, Round}),
                    Write((Key + 618033) rem ?OBJECTS, Left - 1)
            end,
    [ok] = ats_test_lib:parallel([fun() -> Write(Round, ?OBJECTS) end]).

%% Changes a table in the midst of its being read.
read(snapshot, T, Change) ->
    S = ats:snapshot(T),
    Changed = Change(),
    true = ats:release(S),
    Changed;
read(chunks, T, Change) ->
    {_, Continuation} = ats:select(T, [{'_', [], [true]}], 1000),
    Changed = Change(),
    ok = to_the_end(Continuation),
    Changed;
read(fold, T, Change) ->
    Add = fun(_, undefined) -> Change();
             (_, Changed) -> Changed
          end,
    ats:foldl(Add, undefined, T).

to_the_end('$end_of_table') -> ok;
to_the_end(Continuation) ->
    case ats:select(Continuation) of
        '$end_of_table' -> ok;
        {_, Next} -> to_the_end(Next)
    end.

%% Returns the milliseconds from a time until the bytes are at most these.
wait(Bytes, Most, Start) ->
    Took = erlang:monotonic_time(millisecond) - Start,
    case Bytes() of
        Few when Few =< Most ->
            Took;
        TooMany ->
            Took < ?PATIENCE_MS orelse error({not_given_back, TooMany, Most}),
            timer:sleep(2),
            wait(Bytes, Most, Start)
    end.

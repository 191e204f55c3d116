%% @private @doc The bytes that an object takes: by `info(Table, memory)', and by the operating
%% system.
%%
%% The latter is the resident memory after filling less that before the table was made. So every
%% measurement has a machine of its own, in which no freed memory waits to be used again (and the
%% emulator keeps no segments for later, `+MMmcs 0'); all code is loaded and all objects exist
%% before it begins; and inserting them leaves no garbage.
-module(ats_bench_memory).

-export([objects/0, name/1, bytes_an_object/4, in_this_machine/4]).

-export_type([objects/0]).

-type objects() :: pairs | tagged.

-define(OBJECTS, {?MODULE, objects}).
-define(FILLING_TAKES_AT_MOST_MS, 120000).

%% @doc Returns the kinds of objects measured.
-spec objects() -> [objects()].
objects() -> [pairs, tagged].

%% @doc Returns the name of a kind of objects in a row of the results.
-spec name(objects()) -> string().
name(pairs) -> "{Int,Int}";
name(tagged) -> "{{a,Int},Bin16}".

object(pairs, N) -> {N, N};
object(tagged, N) -> {{a, N}, erlang:md5(<<N:32>>)}.

%% @doc Returns the bytes an object of a table that is filled in random order with 2^(Log2 - 1)
%% objects, in a machine of its own. The second is `null' if the operating system does not report
%% resident memory.
-spec bytes_an_object(ats_bench_sides:side(), ats:table_type(), objects(), pos_integer()) ->
          {Reported :: float(), Resident :: float() | null}.
bytes_an_object(Side, Type, Objects, Log2) ->
    Paths = lists:append([["-pa", Path] || Path <- code:get_path()]),
    {ok, Peer, _} = peer:start_link(#{connection => standard_io,
                                      args => ["+MMmcs", "0" | Paths]}),
    try
        peer:call(Peer, ?MODULE, in_this_machine, [Side, Type, Objects, Log2],
                  ?FILLING_TAKES_AT_MOST_MS)
    after
        peer:stop(Peer)
    end.

%% @doc Measures the same in this machine, which should be fresh.
-spec in_this_machine(ats_bench_sides:side(), ats:table_type(), objects(), pos_integer()) ->
          {Reported :: float(), Resident :: float() | null}.
in_this_machine(Side, Type, Objects, Log2) ->
    Loops = ats_bench_sides:loops(Side),
    ok = exercise(Loops, Type),
    ok = ats_bench_run:in_process(fun() -> store_objects(Objects, Log2) end),
    Before = steady_resident_bytes(Loops),
    Table = ats_bench_sides:new(Side, Type),
    Stored = persistent_term:get(?OBJECTS),
    ok = insert_all(Loops, Table, Stored),
    After = steady_resident_bytes(Loops),
    Count = length(Stored),
    Reported = Loops:memory_words(Table) * erlang:system_info(wordsize) / Count,
    true = Loops:delete(Table),
    {Reported, resident_an_object(Before, After, Count)}.

resident_an_object(Before, After, Count) when is_integer(Before), is_integer(After) ->
    (After - Before) / Count;
resident_an_object(_, _, _) ->
    null.

%% Every function that is going to be called is loaded and has run once, on an empty table: its
%% memory is not that of the objects.
exercise(Loops, Type) ->
    Table = Loops:new(empty, [Type, public]),
    _ = Loops:memory_words(Table),
    ok = insert_all(Loops, Table, []),
    true = Loops:delete(Table),
    ok.

store_objects(Objects, Log2) ->
    Stored = [object(Objects, N) || N <- ats_bench_keys:numbers(half, 1 bsl Log2)],
    persistent_term:put(?OBJECTS, Stored).

insert_all(Loops, Table, [Object | Rest]) ->
    true = Loops:insert(Table, Object),
    insert_all(Loops, Table, Rest);
insert_all(_, _, []) ->
    ok.

%% Returns the resident memory when it does not change any more: the heap of a process that has
%% ended is given back a little later, and `ats' frees late, when no reader can be looking any more.
steady_resident_bytes(Loops) ->
    true = erlang:garbage_collect(),
    steady_resident_bytes(Loops, none, 40).

steady_resident_bytes(Loops, Last, Tries) ->
    ok = collect(Loops),
    timer:sleep(50),
    case resident_bytes() of
        Last -> Last;
        Bytes when Tries =:= 0 -> Bytes;
        Bytes -> steady_resident_bytes(Loops, Bytes, Tries - 1)
    end.

collect(ats_bench_ats) ->
    _ = ats_nif:collect(),
    ok;
collect(_) ->
    ok.

%% The kernel sums this up over all mappings; the figure in `/proc/self/statm' is a rough one on
%% several processors. Memory that was swapped out was resident, too.
resident_bytes() ->
    case file:read_file("/proc/self/smaps_rollup") of
        {ok, Text} -> kilobytes(Text, "Rss") + kilobytes(Text, "Swap");
        {error, _} -> null
    end.

kilobytes(Text, Item) ->
    {match, [Kb]} = re:run(Text, ["^", Item, ":\\s*([0-9]+)"],
                           [multiline, {capture, all_but_first, list}]),
    1024 * list_to_integer(Kb).

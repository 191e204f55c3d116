%% Many small tables: each takes no more memory than one of ets. The suite measures the resident
%% memory of a virtual machine of its own for each number, so nothing that was there before can take
%% part.
-module(ats_small_SUITE).

-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0]).
-export([resident_memory/1]).
%% Called in the other virtual machines.
-export([resident_growth/3]).

-define(TABLES, 20000).
%% Pages, and other work of the virtual machine, differ from run to run.
-define(TOLERANCE, 1.05).

suite() ->
    [{timetrap, {minutes, 15}}].

all() ->
    [resident_memory].

resident_memory(_) ->
    case file:read_file("/proc/self/statm") of
        {ok, _} ->
            [
                begin
                    Ets = apart(ets, Type, Objects),
                    Ats = apart_once_more(3, Ets * ?TOLERANCE, Type, Objects),
                    ct:pal("~p of ~p objects: ets ~p bytes, ats ~p", [Type, Objects, Ets, Ats]),
                    ?assert(Ats =< Ets * ?TOLERANCE, {Type, Objects, Ets, Ats})
                end
             || Type <- [set, ordered_set, bag], Objects <- [0, 1, 10]
            ],
            ok;
        {error, enoent} ->
            {skip, "resident memory is not known here"}
    end.

%% Memory of other work of the node only adds. So the least of some runs counts.
apart_once_more(Times, Most, Type, Objects) ->
    case apart(ats, Type, Objects) of
        Ats when Ats > Most, Times > 1 ->
            min(Ats, apart_once_more(Times - 1, Most, Type, Objects));
        Ats ->
            Ats
    end.

apart(Module, Type, Objects) ->
    {ok, Peer, _} = peer:start_link(#{
        connection => standard_io,
        args => ["+S", "2:2", "-pa" | code:get_path()]
    }),
    try
        ats_test_lib:call(Peer, ?MODULE, resident_growth, [Module, Type, Objects])
    after
        peer:stop(Peer)
    end.

%% Bytes for each of many tables with so many objects.
resident_growth(Module, Type, Objects) ->
    _ = make(Module, Type, Objects, 100),
    Before = resident_bytes(),
    Tables = make(Module, Type, Objects, ?TABLES),
    erlang:garbage_collect(),
    Growth = resident_bytes() - Before,
    ?TABLES = length(Tables),
    Growth div ?TABLES.

make(Module, Type, Objects, Count) ->
    [
        begin
            T = Module:new(small, [Type]),
            [true = Module:insert(T, {N, N}) || N <- lists:seq(1, Objects)],
            T
        end
     || _ <- lists:seq(1, Count)
    ].

resident_bytes() ->
    {ok, Text} = file:read_file("/proc/self/statm"),
    [_, Pages | _] = binary:split(Text, <<" ">>, [global]),
    binary_to_integer(Pages) * 4096.

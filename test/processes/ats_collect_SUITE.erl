%% Lists that take many slices: they are whole and in order, and the heap that they are built on is
%% neither collected over and over, nor any different afterwards.
-module(ats_collect_SUITE).

-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0]).
-export([
    few_collections/1,
    a_large_heap_stays_as_it_is/1,
    shared_binaries_take_no_room/1,
    the_usual_size_returns/1,
    limits_are_respected/1,
    large_keys_of_bags/1
]).

-define(OBJECTS, 300000).
%% Words of an object and its cell of the list.
-define(WORDS, 8).

suite() -> [{timetrap, {minutes, 15}}].

all() ->
    [
        few_collections,
        a_large_heap_stays_as_it_is,
        shared_binaries_take_no_room,
        the_usual_size_returns,
        limits_are_respected,
        large_keys_of_bags
    ].

%% ----- collections -----

%% The virtual machine alone would collect some thirty times.
few_collections(_) ->
    [
        begin
            T = filled(Type),
            {?OBJECTS, Collections} = collections(fun() -> length(list(Call, T)) end, []),
            ct:pal("~p, ~p: ~w", [Type, Call, Collections]),
            Most =
                case Call of
                    tab2list -> 5;
                    _ -> 8
                end,
            ?assert(length(Collections) =< Most, {Type, Call, Collections}),
            true = ats:delete(T)
        end
     || Type <- [set, ordered_set, bag, duplicate_bag],
        Call <- calls(Type)
    ],
    ok.

%% The heap gets room for the results, not a multiple of its size.
a_large_heap_stays_as_it_is(_) ->
    T = filled(set),
    Run = fun() ->
        Own = lists:seq(1, 10000000),
        true = erlang:garbage_collect(),
        Results = list(select, T),
        {length(Own), length(Results), total_heap_size()}
    end,
    {{10000000, ?OBJECTS, Words}, Collections} = collections(Run, []),
    ct:pal("~b words, ~w", [Words, Collections]),
    ?assert(Words < 4 * (20000000 + ?OBJECTS * ?WORDS)),
    true = ats:delete(T),
    ok.

%% Binaries that a list shares with others make the virtual machine collect a heap that is all but
%% empty, again and again.
shared_binaries_take_no_room(Config) ->
    Objects = 100000,
    Insert = fun(Table, Write) ->
        [Write(Table, {K, binary:copy(<<K:64>>, 25)}) || K <- lists:seq(1, Objects)]
    end,
    T = ats:new(binaries, [ordered_set, public]),
    _ = Insert(T, fun ats:insert/2),
    Directory = filename:join(proplists:get_value(priv_dir, Config), "binaries"),
    {ok, d} = dats:open_file(d, [{file, Directory}, {type, ordered_set}]),
    _ = Insert(d, fun dats:insert/2),
    [
        begin
            Run = fun() -> {length(List()), total_heap_size()} end,
            {{Objects, Words}, Collections} = collections(Run, []),
            ct:pal("~b words, ~w", [Words, Collections]),
            ?assert(Words < 10 * Objects * ?WORDS, {Words, Collections})
        end
     || List <- [
            fun() -> ats:tab2list(T) end,
            fun() -> list(select, T) end,
            fun() -> dats:tab2list(d) end
        ]
    ],
    ok = dats:close(d),
    true = ats:delete(T),
    ok.

the_usual_size_returns(_) ->
    T = filled(ordered_set),
    Bag = filled(bag),
    Sizes = fun(Call, Table) ->
        fun() ->
            Before = min_heap_size(),
            Length = length(list(Call, Table)),
            Between = min_heap_size(),
            true = erlang:garbage_collect(),
            {Length, Before, Between, total_heap_size()}
        end
    end,
    [
        begin
            Options = [{min_heap_size, Usual}],
            {{?OBJECTS, Before, Between, Heap}, _} = collections(Sizes(Call, Table), Options),
            ?assertEqual({Call, Before}, {Call, Between}),
            ?assert(Before >= Usual),
            ?assert(Heap < 2 * Before, {Call, Heap})
        end
     || {Call, Table} <- [{tab2list, T}, {select, T}, {range, T}, {match_object, Bag}],
        Usual <- [233, 100000]
    ],
    %% Also if it fails on the way.
    Failing = fun() ->
        Before = min_heap_size(),
        spawn(fun() -> ats:delete(T) end),
        Read = fun() -> [length(ats:tab2list(T)) || _ <- lists:seq(1, 1000)] end,
        Failed = ats_test_lib:attempt(Read),
        {Failed, Before, min_heap_size()}
    end,
    {{{'EXIT', {badarg, [{ats, tab2list, _, _} | _]}}, Same, Same}, _} = collections(Failing, []),
    true = ats:delete(Bag),
    ok.

%% Room that is never used counts towards `max_heap_size', too. So a process with that limit gets no
%% more room than the virtual machine gives by itself.
limits_are_respected(_) ->
    %% Enough slices on any machine: their duration decides about the number of collections.
    Objects = 3 * ?OBJECTS,
    T = filled(ordered_set, Objects),
    Limit = #{size => 5 * Objects * ?WORDS, kill => true, error_logger => false},
    Run = fun() -> length(list(select, T)) end,
    {Objects, Collections} = collections(Run, [{max_heap_size, Limit}]),
    ?assert(length(Collections) > 10, Collections),
    ?assert(lists:max(Collections) < 2 * Objects * ?WORDS),
    true = ats:delete(T),
    ok.

%% Returns the result of a process, and the size of its young heap after each collection meanwhile.
collections(Fun, Options) ->
    Test = self(),
    {Worker, Monitor} = spawn_opt(
        fun() ->
            receive
                go -> ok
            end,
            Test ! {self(), Fun()},
            receive
                stop -> ok
            end
        end,
        [monitor | Options]
    ),
    1 = erlang:trace(Worker, true, [garbage_collection]),
    Worker ! go,
    receive
        {Worker, Result} ->
            1 = erlang:trace(Worker, false, [garbage_collection]),
            Delivered = erlang:trace_delivered(Worker),
            receive
                {trace_delivered, Worker, Delivered} -> ok
            end,
            Worker ! stop,
            receive
                {'DOWN', Monitor, process, Worker, normal} -> ok
            end,
            {Result, traced(Worker)};
        {'DOWN', Monitor, process, Worker, Reason} ->
            error(Reason)
    end.

traced(Worker) ->
    receive
        {trace, Worker, End, Info} when End =:= gc_minor_end; End =:= gc_major_end ->
            [proplists:get_value(heap_block_size, Info) | traced(Worker)];
        {trace, Worker, _, _} ->
            traced(Worker)
    after 0 -> []
    end.

min_heap_size() ->
    {garbage_collection, Settings} = process_info(self(), garbage_collection),
    proplists:get_value(min_heap_size, Settings).

total_heap_size() ->
    {total_heap_size, Words} = process_info(self(), total_heap_size),
    Words.

filled(Type) -> filled(Type, ?OBJECTS).

filled(Type, Objects) ->
    T = ats:new(filled, [Type, public]),
    [true = ats:insert(T, {K, {value, K}}) || K <- lists:seq(1, Objects)],
    T.

calls(ordered_set) -> [range | calls(set)];
calls(_) -> [tab2list, select, match_object, select_take, take_all].

list(tab2list, T) -> ats:tab2list(T);
list(select, T) -> ats:select(T, [{'$1', [], ['$1']}]);
list(match_object, T) -> ats:match_object(T, {'_', '_'});
list(range, T) -> ats:range(T, 0, x, [{low, unbounded}]);
list(select_take, T) -> ats:select_take(T, [{{'_', '_'}, [], [true]}]);
list(take_all, T) -> ats:take_all_objects(T).

%% ----- bags -----

%% Slices end within a key, and between keys; either way each object comes once, and those of a
%% key oldest first.
large_keys_of_bags(_) ->
    Large = 20000,
    Keys = [a, b, c],
    [
        begin
            T = ats:new(filled, [Type, public]),
            Fill = fun() ->
                [
                    begin
                        ats:insert(T, [{Key, {value, N}} || Key <- Keys]),
                        ats:insert(T, {{small, N div 2}, {value, N}})
                    end
                 || N <- lists:seq(1, Large)
                ]
            end,
            Fill(),
            [
                begin
                    Lists = grouped(list(Call, T)),
                    Smalls = maps:from_list([
                        {{small, K}, [N || N <- [2 * K, 2 * K + 1], N >= 1, N =< Large]}
                     || K <- lists:seq(0, Large div 2)
                    ]),
                    ?assertEqual([], [K || K <- Keys, map_get(K, Lists) =/= lists:seq(1, Large)]),
                    ?assert(Smalls =:= maps:without(Keys, Lists)),
                    ats:info(T, size) =:= 0 andalso Fill()
                end
             || Call <- calls(Type)
            ],
            true = ats:delete(T)
        end
     || Type <- [bag, duplicate_bag]
    ],
    ok.

grouped(Objects) ->
    lists:foldr(
        fun({Key, {value, N}}, Groups) ->
            Groups#{Key => [N | maps:get(Key, Groups, [])]}
        end,
        #{},
        Objects
    ).

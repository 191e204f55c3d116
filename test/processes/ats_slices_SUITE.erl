%% Queries are run in slices of time, and a list must not show where one slice ended and the next
%% began: two reads of an unchanged table are equal, and of a table without order `select' and
%% `select_reverse' are.
%%
%% Slices of half a millisecond end anywhere. Here they are forced to end after a few keys and
%% objects, or never.
-module(ats_slices_SUITE).

-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0, end_per_testcase/2]).
-export([
    two_reads_are_equal/1,
    slices_do_not_show/1,
    taking_in_slices/1,
    changing_in_slices/1,
    keys_that_go_between_slices/1,
    objects_in_the_order_of_ets/1
]).

-import(ats_test_lib, [new/2]).

-define(TYPES, [set, ordered_set, bag, duplicate_bag]).
-define(ALL, [{'_', [], ['$_']}]).
%% Larger than all the work of a test.
-define(NEVER, 16#ffffffff).
-define(TABLES, 60).

suite() -> [{timetrap, {minutes, 10}}].

all() ->
    [
        two_reads_are_equal,
        slices_do_not_show,
        taking_in_slices,
        changing_in_slices,
        keys_that_go_between_slices,
        objects_in_the_order_of_ets
    ].

end_per_testcase(_, _) ->
    true = ats_nif:force_slices(0).

%% Checks that slices take as long as usual.
two_reads_are_equal(_) ->
    [
        begin
            T = new(slices, [Type | Options]),
            [true = ats:insert(T, {K, x}) || K <- lists:seq(1, 10000)],
            [true = ats:insert(T, {large, N}) || N <- lists:seq(1, 3000)],
            [
                begin
                    Objects = ats:tab2list(T),
                    ?assertEqual(Objects, ats:tab2list(T)),
                    ?assertEqual(Objects, ats:match_object(T, '_')),
                    Results = ats:select(T, ?ALL),
                    ?assertEqual(Results, ats:select(T, ?ALL)),
                    Reversed = ats:select_reverse(T, ?ALL),
                    case Type of
                        ordered_set -> ?assertEqual(lists:reverse(Results), Reversed);
                        _ -> ?assertEqual(Results, Reversed)
                    end
                end
             || _ <- lists:seq(1, 20)
            ],
            true = ats:delete(T)
        end
     || Type <- ?TYPES, Options <- [[], [compressed]]
    ],
    ok.

%% Every list, of random tables.
slices_do_not_show(_) ->
    for_random_tables(fun(T, _Type) ->
        Reads = [{Name, Read} || {Name, Read} <- reads()],
        true = ats_nif:force_slices(?NEVER),
        Expected = [{Name, Read(T)} || {Name, Read} <- Reads],
        [
            begin
                true = ats_nif:force_slices(Ticks),
                ?assertEqual({Ticks, Expected}, {Ticks, [{Name, Read(T)} || {Name, Read} <- Reads]})
            end
         || Ticks <- ticks()
        ]
    end).

%% Taken objects come in the order in which they would have been read.
taking_in_slices(_) ->
    for_random_tables(fun(T, _Type) ->
        true = ats_nif:force_slices(?NEVER),
        Even = [{{'$1', '$2'}, [{'=:=', {'rem', '$2', 2}, 0}], [true]}],
        {Taken, Left} = lists:partition(fun is_even/1, ats:tab2list(T)),
        [Ticks | _] = ticks(),
        true = ats_nif:force_slices(Ticks),
        ?assertEqual({Ticks, Taken}, {Ticks, ats:select_take(T, Even)}),
        ?assertEqual({Ticks, Left}, {Ticks, ats:tab2list(T)}),
        ?assertEqual({Ticks, Left}, {Ticks, ats:take_all_objects(T)})
    end).

changing_in_slices(_) ->
    for_random_tables(fun(T, Type) ->
        true = ats_nif:force_slices(?NEVER),
        [Ticks | _] = ticks(),
        Replacing = [
            {{'$1', '$2'}, [{'=:=', {'rem', '$2', 3}, 0}], [{{'$1', {'+', '$2', 10000000}}}]}
        ],
        Replaced = fun
            ({K, V}) when V rem 3 =:= 0 -> {K, V + 10000000};
            (Object) -> Object
        end,
        case Type of
            bag ->
                ok;
            _ ->
                Changed = lists:map(Replaced, ats:tab2list(T)),
                true = ats_nif:force_slices(Ticks),
                _ = ats:select_replace(T, Replacing),
                ?assertEqual({Ticks, Changed}, {Ticks, ats:tab2list(T)})
        end,
        Odd = [{{'$1', '$2'}, [{'=:=', {'rem', '$2', 2}, 1}], [true]}],
        {Left, Deleted} = lists:partition(fun is_even/1, ats:tab2list(T)),
        true = ats_nif:force_slices(Ticks),
        ?assertEqual(length(Deleted), ats:select_count(T, Odd)),
        ?assertEqual(length(Deleted), ats:select_delete(T, Odd)),
        ?assertEqual({Ticks, Left}, {Ticks, ats:tab2list(T)})
    end).

%% The key at the end of a slice may be gone, or be another, when the next one goes on: the list has
%% the objects of its beginning.
keys_that_go_between_slices(_) ->
    true = ats_nif:force_slices(5),
    [
        begin
            T = ats:new(slices, [Type, public]),
            Fill = fun(Key) -> [ats:insert(T, {Key, N}) || N <- lists:seq(1, 500)] end,
            [Fill(Key) || Key <- [a, b, c]],
            ats:insert(T, [{{small, N}, N} || N <- lists:seq(1, 100)]),
            {Selected, Key} = ended_within(ats_nif:select_start(T, ?ALL, up)),
            Change(T, Key),
            List = ats_select:list_more(Selected, up),
            [?assertEqual(lists:seq(1, 500), [N || {K, N} <- List, K =:= O]) || O <- [a, b, c]],
            ?assertEqual(lists:seq(1, 100), lists:sort([N || {{small, _}, N} <- List])),
            true = ats:delete(T)
        end
     || Type <- [bag, duplicate_bag],
        Change <- [
            fun(T, Key) -> ats:delete(T, Key) end,
            fun(T, Key) -> ats:delete_object(T, {Key, 500}) end,
            fun(T, Key) -> ats:insert(T, {Key, 501}) end,
            fun(T, Key) -> ats:delete(T, Key), ats:insert(T, {Key, 7}) end,
            fun(T, _Key) -> ats:delete_all_objects(T) end
        ]
    ],
    ok.

%% Returns the results of the first slice that ended among objects, and their key.
ended_within({part, _, _, _, {[{Key, 1} | _], _}} = Selected) ->
    {Selected, Key};
ended_within({more, T, Compiled, Place, SoFar}) ->
    ended_within(ats_nif:select_more(T, Compiled, Place, up, SoFar)).

%% The objects of each key of a bag, oldest first, as `ets' lists them.
objects_in_the_order_of_ets(_) ->
    [
        begin
            Ets = ets:new(slices, [Type]),
            Ats = new(slices, [Type]),
            [
                begin
                    Object = {rand:uniform(3), rand:uniform(300)},
                    [true = M:insert(T, Object) || {M, T} <- [{ets, Ets}, {ats, Ats}]],
                    rand:uniform(3) =:= 1 andalso
                        [M:delete_object(T, Object) || {M, T} <- [{ets, Ets}, {ats, Ats}]]
                end
             || _ <- lists:seq(1, 2000)
            ],
            [
                [
                    begin
                        Expected = ets:lookup(Ets, Key),
                        true = ats_nif:force_slices(Ticks),
                        ?assertEqual(Expected, of_key(Key, ets:tab2list(Ets))),
                        ?assertEqual(Expected, ats:lookup(Ats, Key)),
                        ?assertEqual(Expected, of_key(Key, ats:tab2list(Ats))),
                        ?assertEqual(Expected, of_key(Key, ats:select(Ats, ?ALL))),
                        ?assertEqual(Expected, of_key(Key, ats:match_object(Ats, {Key, '_'})))
                    end
                 || Ticks <- [0, ?NEVER | ticks()]
                ]
             || Key <- [1, 2, 3]
            ],
            true = ats:delete(Ats),
            true = ets:delete(Ets)
        end
     || Type <- [bag, duplicate_bag]
    ],
    ok.

of_key(Key, Objects) -> [Object || {K, _} = Object <- Objects, K =:= Key].

%% ----- tables -----

for_random_tables(Test) ->
    Seed = rand:seed_s(exsss),
    _ = rand:seed(Seed),
    ct:pal("~p", [rand:export_seed_s(Seed)]),
    [
        begin
            T = new(slices, [Type, public | Options]),
            fill(T),
            Adapting = rand:uniform(2) =:= 1,
            Adapting andalso ats_nif:force_adaptation(T, 5, 5),
            Test(T, Type),
            true = ats:delete(T)
        end
     || Type <- ?TYPES,
        Options <- [[], [compressed]],
        _ <- lists:seq(1, ?TABLES div 8)
    ],
    ok.

%% Some keys have so many objects that slices end among them; others have a few, or one.
fill(T) ->
    Keys = rand:uniform(200),
    [ats:insert(T, {K, K}) || K <- lists:seq(1, Keys)],
    [
        ats:insert(T, {rand:uniform(Keys), rand:uniform(1000)})
     || _ <- lists:seq(1, rand:uniform(300))
    ],
    [
        [ats:insert(T, {{large, L}, N}) || N <- lists:seq(1, rand:uniform(400))]
     || L <- lists:seq(1, rand:uniform(5) - 1)
    ].

ticks() -> [rand:uniform(3), rand:uniform(10), rand:uniform(60), rand:uniform(400)].

is_even({_, V}) -> V rem 2 =:= 0.

reads() ->
    Some = [{{'$1', '$2'}, [{'=/=', {'rem', '$2', 3}, 0}], [{{'$2', '$1'}}]}],
    [
        {tab2list, fun ats:tab2list/1},
        {all, fun(T) -> ats:select(T, ?ALL) end},
        {reverse, fun(T) -> ats:select_reverse(T, ?ALL) end},
        {some, fun(T) -> ats:select(T, Some) end},
        {some_reverse, fun(T) -> ats:select_reverse(T, Some) end},
        {keys, fun(T) -> ats:select(T, [{{K, '_'}, [], ['$_']} || K <- [3, {large, 1}, 5]]) end},
        {count, fun(T) -> ats:select_count(T, [{{'_', '$1'}, [{'>', '$1', 50}], [true]}]) end},
        {match, fun(T) -> ats:match(T, {'$1', '$2'}) end},
        {match_object, fun(T) -> ats:match_object(T, {{large, '_'}, '_'}) end},
        {foldl, fun(T) -> ats:foldl(fun(Object, Acc) -> [Object | Acc] end, [], T) end},
        {foldr, fun(T) -> ats:foldr(fun(Object, Acc) -> [Object | Acc] end, [], T) end}
    ] ++
        [
            {{Name, Limit}, fun(T) -> chunks(More, First(T, Limit), Limit) end}
         || {Name, First, More} <- [
                {select, fun(T, N) -> ats:select(T, Some, N) end, fun ats:select/1},
                {reverse, fun(T, N) -> ats:select_reverse(T, Some, N) end,
                    fun ats:select_reverse/1},
                {match, fun(T, N) -> ats:match(T, {'$1', '$2'}, N) end, fun ats:match/1},
                {object, fun(T, N) -> ats:match_object(T, '_', N) end, fun ats:match_object/1}
            ],
            Limit <- [1, 7, 100]
        ].

chunks(_, '$end_of_table', _) ->
    [];
chunks(More, {Results, Continuation}, Limit) ->
    ?assert(length(Results) =< Limit),
    Results ++ chunks(More, More(Continuation), Limit).

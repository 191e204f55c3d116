%% Functions that do at one moment the work of two calls of `ets': taking matching objects, taking
%% all, taking from the ends, merging. Tests with several processes count that no object is lost or
%% comes twice.
-module(ats_beyond_SUITE).

-include_lib("stdlib/include/assert.hrl").
-include_lib("proper/include/proper.hrl").

-export([all/0, suite/0, init_per_suite/1, end_per_suite/1]).
-export([
    takes_remove_matching_objects/1,
    takes_whatever_it_is/1,
    one_taker_gets_it/1,
    counters_are_taken_whole/1,
    long_takes_go_on/1,
    killed_takers/1,
    takes_all/1,
    all_beside_writers/1,
    counters_beside_drains/1,
    drains_of_fixed_tables/1,
    killed_drains/1,
    ends_in_order/1,
    ends_of_other_types/1,
    consumers_share_a_queue/1,
    merges/1,
    more_merges/1,
    pruned_merges/1,
    pruned_merges_beside_each_other/1,
    merges_as_a_model/1,
    merges_beside_each_other/1,
    large_merges/1,
    refused_merges/1,
    errors/1,
    access/1
]).

-define(TYPES, [set, ordered_set, bag, duplicate_bag]).
-define(ALL, [{'_', [], [true]}]).

suite() -> [{timetrap, {minutes, 10}}].

all() ->
    [
        takes_remove_matching_objects,
        takes_whatever_it_is,
        one_taker_gets_it,
        counters_are_taken_whole,
        long_takes_go_on,
        killed_takers,
        takes_all,
        all_beside_writers,
        counters_beside_drains,
        drains_of_fixed_tables,
        killed_drains,
        ends_in_order,
        ends_of_other_types,
        consumers_share_a_queue,
        merges,
        more_merges,
        pruned_merges,
        pruned_merges_beside_each_other,
        merges_as_a_model,
        merges_beside_each_other,
        large_merges,
        refused_merges,
        errors,
        access
    ].

init_per_suite(Config) ->
    ok = ats_term_gen:prepare(),
    Config.

end_per_suite(_) ->
    ok.

is_bag(Type) -> lists:member(Type, [bag, duplicate_bag]).

in_order(ordered_set, Objects) -> Objects;
in_order(_, Objects) -> lists:sort(Objects).

%% ----- matching objects -----

%% `ets' gives the matching objects, and the remaining ones.
takes_remove_matching_objects(_) ->
    ats_test_lib:check(?FORALL(
        {Type, Options, Objects, Spec},
        {oneof(?TYPES), oneof([[], [compressed]]), small_objects(), spec()},
        begin
            Ets = ets:new(t, [Type]),
            Ats = ats:new(t, [Type | Options]),
            %% One by one, since of several in a list any may win.
            [true = M:insert(T, O) || {M, T} <- [{ets, Ets}, {ats, Ats}], O <- Objects],
            Count = ets:select_count(Ets, Spec),
            Before = ets:tab2list(Ets),
            Count = ets:select_delete(Ets, Spec),
            Left = ets:tab2list(Ets),
            Taken = ats:select_take(Ats, Spec),
            ?assertEqual(in_order(Type, Before -- Left), in_order(Type, Taken)),
            ?assertEqual(Count, length(Taken)),
            ?assertEqual(in_order(Type, Left), in_order(Type, ats:tab2list(Ats))),
            ?assertEqual(length(Left), ats:info(Ats, size)),
            ?assert(are_oldest_first(Type, Objects, Taken)),
            ats:delete(Ats),
            ets:delete(Ets)
        end
    ), 2000).

small_objects() ->
    Key = oneof([integer(1, 5), integer(1, 50)]),
    list({Key, integer(1, 8), oneof([a, b, 1.0])}).

spec() ->
    Clause = {
        oneof(['_', '$1', {'$1', '$2', '_'}, {integer(1, 5), '$2', '$3'}, {'$1', '$2', a}]),
        list({oneof(['<', '>', '=/=']), oneof(['$1', '$2']), integer(1, 8)}),
        [oneof([true, true, true, {'>', '$2', integer(1, 8)}, '$2', {'andalso', true, true}])]
    },
    ?LET(Spec, non_empty(list(Clause)), lists:sublist([bound(C) || C <- Spec], 2)).

%% Guards and bodies speak of variables of the head only.
bound({Head, _, [Result]}) when is_atom(Head) ->
    {Head, [], [if is_tuple(Result), element(1, Result) =:= 'andalso' -> Result; true -> true end]};
bound({Head, Guards, Body}) when is_integer(element(1, Head)) ->
    {Head, [Guard || {_, '$2', _} = Guard <- Guards], Body};
bound(Clause) ->
    Clause.

%% Returns `true' if of each key the objects come in the order in which they were inserted.
are_oldest_first(Type, _, _) when Type =:= set; Type =:= ordered_set ->
    true;
are_oldest_first(_, Inserted, Taken) ->
    Keys = lists:usort([element(1, Object) || Object <- Taken]),
    lists:all(
        fun(Key) ->
            With = fun(Objects) -> [O || O <- Objects, element(1, O) =:= Key] end,
            is_subsequence(With(Taken), With(Inserted))
        end,
        Keys
    ).

is_subsequence([], _) -> true;
is_subsequence([X | Rest], [X | Others]) -> is_subsequence(Rest, Others);
is_subsequence(Some, [_ | Others]) -> is_subsequence(Some, Others);
is_subsequence(_, []) -> false.

%% Terms of all kinds come back as they were.
takes_whatever_it_is(_) ->
    Terms = [ats_term_gen:realize(R) || R <- ats_term_gen:one_of_each()],
    [
        begin
            Objects = [{N, Term, [Term]} || {N, Term} <- lists:enumerate(Terms)],
            Take = fun(Function) ->
                T = ats:new(t, [Type | Options]),
                true = ats:insert(T, Objects),
                Taken = Function(T),
                ?assertEqual(0, ats:info(T, size)),
                true = ats:delete(T),
                ?assertEqual(Objects, lists:keysort(1, Taken))
            end,
            Take(fun(T) -> ats:select_take(T, [{{'$1', '_', '_'}, [{'>', '$1', 0}], [true]}]) end),
            Take(fun ats:take_all_objects/1),
            Take(fun(T) -> ats:select_take(T, ?ALL) end),
            Take(fun(T) -> lists:append([ats:take_last(T) || _ <- Objects]) end)
        end
     || Type <- ?TYPES, Options <- [[], [compressed]]
    ].

%% Several processes take objects that others insert: each object goes to one of them.
one_taker_gets_it(_) ->
    Count = 10000,
    [
        begin
            T = ats_test_lib:new(t, [Type, public]),
            Insert = fun(Part) ->
                fun() ->
                    [ats:insert(T, {key(Type, N), N}) || N <- lists:seq(Part, Count, 2)],
                    []
                end
            end,
            Take = fun() -> take_until(T, Count) end,
            Taken = ats_test_lib:parallel([Insert(1), Insert(2), Take, Take]),
            Rest = ats:select_take(T, [{{'_', '$1'}, [{'>', '$1', 0}], [true]}]),
            Numbers = [N || {_, N} <- lists:append([Rest | Taken]), is_integer(N)],
            ?assertEqual(lists:seq(1, Count), lists:sort(Numbers)),
            ?assertEqual(0, ats:info(T, size)),
            true = ats:delete(T)
        end
     || Type <- ?TYPES
    ].

%% Bags have many objects of one key.
key(Type, N) ->
    case is_bag(Type) of
        true -> N rem 10;
        false -> N
    end.

%% Takes the odd and the even numbers in turn, until this or another process has taken the last one.
take_until(T, Count) ->
    Spec = fun(Rest) -> [{{'_', '$1'}, [{'=:=', {'rem', '$1', 2}, Rest}], [true]}] end,
    (fun Loop(Taken) ->
        New = ats:select_take(T, Spec(0)) ++ ats:select_take(T, Spec(1)),
        case lists:keymember(Count, 2, New) orelse ats:member(T, stop) of
            true ->
                ats:insert(T, {stop, stop}),
                New ++ Taken;
            false ->
                Loop(New ++ Taken)
        end
    end)([]).

counters_are_taken_whole(_) ->
    Count = 100000,
    [
        begin
            T = ats_test_lib:new(t, [Type, public]),
            Inc = fun() ->
                [ats:update_counter(T, N rem 3, 1, {0, 0}) || N <- lists:seq(1, Count)],
                []
            end,
            Take = fun() ->
                [
                    ats:select_take(T, [{{'$1', '$2'}, [{'>', '$2', N rem 5}], [true]}])
                 || N <- lists:seq(1, 2000)
                ]
            end,
            Taken = ats_test_lib:parallel([Inc, Inc, Take]),
            All = lists:flatten([ats:tab2list(T) | Taken]),
            ?assertEqual(2 * Count, lists:sum([N || {_, N} <- All])),
            true = ats:delete(T)
        end
     || Type <- [set, ordered_set]
    ].

%% More than fits a slice; of bags also within a key.
long_takes_go_on(_) ->
    Count = 50000,
    [
        begin
            T = ats:new(t, [Type]),
            Key = fun(N) -> case is_bag(Type) of true -> N rem Keys; false -> N end end,
            Objects = [{Key(N), N, <<"value">>} || N <- lists:seq(1, Count)],
            true = ats:insert(T, Objects),
            Taken = ats:select_take(T, [{{'_', '$1', '_'}, [{'>', '$1', 10}], [true]}]),
            ?assertEqual(lists:seq(11, Count), lists:sort([N || {_, N, _} <- Taken])),
            %% The objects are in order, as far as the type has one.
            ?assert(
                Type =:= set orelse (is_bag(Type) andalso Keys > 1) orelse
                    lists:sort(Taken) =:= Taken
            ),
            ?assertEqual(10, ats:info(T, size)),
            true = ats:delete(T)
        end
     || Type <- ?TYPES, Keys <- [1, 100]
    ].

%% The objects that they have taken are gone, but nothing else.
killed_takers(_) ->
    Count = 100000,
    [
        begin
            T = ats:new(t, [Type, public]),
            true = ats:insert(T, [{N, N} || N <- lists:seq(1, Count)]),
            Taker = spawn(fun() -> ats:select_take(T, [{{'$1', '$1'}, [], [true]}]) end),
            erlang:yield(),
            timer:sleep(Wait),
            ats_test_lib:kill(Taker),
            Left = ats:info(T, size),
            Rest = ats:select_take(T, [{{'$1', '$1'}, [], [true]}]),
            ?assertEqual(Left, length(lists:usort(Rest))),
            ?assertEqual(0, ats:info(T, size)),
            true = ats:delete(T)
        end
     || Type <- ?TYPES, Wait <- [0, 1, 3, 10]
    ].

%% ----- all objects -----

takes_all(_) ->
    ats_test_lib:check(?FORALL(
        {Type, Options, Objects},
        {oneof(?TYPES), oneof([[], [compressed], [{keypos, 2}]]), list(ats_term_gen:object())},
        begin
            T = ats:new(t, [Type | Options]),
            KeyPos = ats:info(T, keypos),
            Cooked = [ats_term_gen:realize(Object) || Object <- Objects],
            [ats:insert(T, Object) || Object <- Cooked, tuple_size(Object) >= KeyPos],
            All = ats:tab2list(T),
            Taken = ats:take_all_objects(T),
            %% Compares without sorting, since 1 and 1.0 have no order.
            ?assertEqual({[], []}, {All -- Taken, Taken -- All}),
            ?assert(Type =/= ordered_set orelse All =:= Taken),
            ?assertEqual([], ats:tab2list(T)),
            ?assertEqual([], ats:take_all_objects(T)),
            ats:delete(T)
        end
    ), 1500).

%% Lists are inserted as one, and so they come out.
all_beside_writers(_) ->
    Count = 20000,
    [
        begin
            T = ats_test_lib:new(t, [Type, public]),
            Insert = fun(Part) ->
                fun() ->
                    [
                        ats:insert(T, [{{key(Type, N), I}, N} || I <- [1, 2, 3]])
                     || N <- lists:seq(Part, Count, 2)
                    ],
                    done
                end
            end,
            Self = self(),
            Writers = spawn_link(fun() ->
                Self ! {self(), ats_test_lib:parallel([Insert(1), Insert(2)])}
            end),
            Drains = drain_until(T, Writers, []),
            [are_whole(Drain) || Drain <- Drains],
            Numbers = lists:sort([N || {_, N} <- lists:append(Drains)]),
            ?assertEqual(
                lists:append([[N, N, N] || N <- lists:seq(1, Count)]),
                Numbers
            ),
            true = ats:delete(T)
        end
     || Type <- ?TYPES
    ].

%% Returns `true' if three objects of each number have come out together.
are_whole(Drain) ->
    Counts = lists:foldl(
        fun({_, N}, Counts) -> maps:update_with(N, fun(C) -> C + 1 end, 1, Counts) end, #{}, Drain
    ),
    ?assertEqual([], [N || {N, Count} <- maps:to_list(Counts), Count =/= 3]).

drain_until(T, Writers, Drains) ->
    receive
        {Writers, _} -> [ats:take_all_objects(T) | Drains]
    after 0 ->
        drain_until(T, Writers, [ats:take_all_objects(T) | Drains])
    end.

counters_beside_drains(_) ->
    Count = 200000,
    [
        begin
            T = ats_test_lib:new(t, [Type, public]),
            Inc = fun() ->
                [ats:update_counter(T, N rem 3, 1, {0, 0}) || N <- lists:seq(1, Count)]
            end,
            Self = self(),
            Writers = spawn_link(fun() ->
                _ = ats_test_lib:parallel([Inc, Inc]),
                Self ! {self(), done}
            end),
            Drains = drain_until(T, Writers, []),
            ?assert(length(Drains) > 1),
            ?assertEqual(2 * Count, lists:sum([N || {_, N} <- lists:append(Drains)])),
            true = ats:delete(T)
        end
     || Type <- [set, ordered_set]
    ].

%% A walk that goes on ends, as after delete_all_objects/1.
drains_of_fixed_tables(_) ->
    [
        begin
            T = ats:new(t, [Type]),
            true = ats:insert(T, [{N, N} || N <- lists:seq(1, 1000)]),
            true = ats:safe_fixtable(T, true),
            First = ats:first(T),
            ?assertEqual(1000, length(ats:take_all_objects(T))),
            ?assertEqual('$end_of_table', ats:next(T, First)),
            true = ats:insert(T, {a, b}),
            true = ats:safe_fixtable(T, false),
            ?assertEqual([{a, b}], ats:take_all_objects(T)),
            true = ats:delete(T)
        end
     || Type <- ?TYPES
    ].

%% Objects that a killed process was taking are freed.
killed_drains(_) ->
    Before = ats_test_lib:settled_memory(),
    [
        begin
            T = ats:new(t, [Type, public]),
            true = ats:insert(T, [{N, binary:copy(<<"x">>, 100)} || N <- lists:seq(1, 100000)]),
            Drainer = spawn(fun() -> ats:take_all_objects(T) end),
            ats_test_lib:until(fun() -> ats:info(T, size) =:= 0 end, 5000),
            ats_test_lib:kill(Drainer),
            ?assertEqual([], ats:tab2list(T)),
            true = ats:delete(T)
        end
     || Type <- [set, ordered_set, bag], _ <- [1, 2]
    ],
    ats_test_lib:assert_memory_returns(Before, 0.05).

%% ----- the ends -----

ends_in_order(_) ->
    ats_test_lib:check(?FORALL(
        {Options, Recipes, Ends},
        {oneof([[], [compressed]]), list(ats_term_gen:key()), list(oneof([take_first, take_last]))},
        begin
            T = ats_test_lib:new(t, [ordered_set | Options]),
            true = ats:insert(T, [{ats_term_gen:realize(R), n} || R <- Recipes]),
            lists:foldl(
                fun(End, Left) ->
                    {Expected, Rest} = taken_from(End, Left),
                    ?assertEqual(Expected, ats:End(T)),
                    ?assertEqual(Rest, ats:tab2list(T)),
                    Rest
                end,
                ats:tab2list(T),
                Ends
            ),
            ats:delete(T)
        end
    ), 1000).

taken_from(_, []) -> {[], []};
taken_from(take_first, [Object | Rest]) -> {[Object], Rest};
taken_from(take_last, Objects) -> {[lists:last(Objects)], lists:droplast(Objects)}.

ends_of_other_types(_) ->
    Objects = [{N rem 7, N} || N <- lists:seq(1, 2000)],
    [
        begin
            T = ats:new(t, [Type]),
            true = ats:insert(T, Objects),
            Size = ats:info(T, size),
            Taken = lists:append([ats:Take(T) || _ <- lists:seq(1, Size)]),
            ?assertEqual(lists:sort(Taken), lists:sort(ats_objects(Type, Objects))),
            ?assert(are_oldest_first(Type, Objects, Taken)),
            ?assertEqual([], ats:Take(T)),
            ?assertEqual(0, ats:info(T, size)),
            true = ats:delete(T)
        end
     || Type <- [set, bag, duplicate_bag], Take <- [take_first, take_last]
    ].

ats_objects(set, Objects) -> maps:to_list(maps:from_list(Objects));
ats_objects(_, Objects) -> Objects.

%% Producers put numbers that ascend, and consumers get each once, in ascending order; no consumer
%% takes a number less than one it has seen put before all others.
consumers_share_a_queue(_) ->
    Count = 20000,
    [
        begin
            T = ats_test_lib:new(t, [Type, public]),
            Put = fun() -> [ats:insert(T, {N, N}) || N <- lists:seq(1, Count)], [] end,
            Take = fun() -> consume(T, Count, []) end,
            Taken = ats_test_lib:parallel([Put, Take, Take]),
            [?assertEqual(lists:sort(Ns), Ns) || Ns <- Taken, Type =:= ordered_set],
            Rest = [N || {N, N} <- ats:tab2list(T), is_integer(N)],
            ?assertEqual(lists:seq(1, Count), lists:sort(lists:append([Rest | Taken]))),
            true = ats:delete(T)
        end
     || Type <- ?TYPES
    ].

consume(T, Count, Taken) ->
    case ats:take_first(T) of
        [{Count, Count}] ->
            ats:insert(T, {stop, stop}),
            lists:reverse(Taken, [Count]);
        [{stop, stop}] ->
            ats:insert(T, {stop, stop}),
            lists:reverse(Taken);
        [{N, N}] ->
            consume(T, Count, [N | Taken]);
        [] ->
            consume(T, Count, Taken)
    end.

%% ----- merges -----

merges(_) ->
    [
        begin
            T = ats:new(t, [Type | Options]),
            ?assertEqual(5, ats:merge(T, k, 5, sum)),
            ?assertEqual(8, ats:merge(T, k, 3, sum)),
            ?assertEqual(8.5, ats:merge(T, k, 0.5, sum)),
            ?assertEqual([{k, 8.5}], ats:lookup(T, k)),
            ?assertEqual(1 bsl 70, ats:merge(T, big, 1 bsl 70, sum)),
            ?assertEqual(0, ats:merge(T, big, -(1 bsl 70), sum)),
            ?assertEqual(1 bsl 59, ats:merge(T, big, 1 bsl 59, sum)),
            ?assertEqual(1 bsl 63, ats:merge(T, big, (1 bsl 63) - (1 bsl 59), sum)),
            ?assertEqual(7, ats:merge(T, min, 7, min)),
            ?assertEqual([3, 3, 3, 1], [ats:merge(T, min, N, min) || N <- [3, 5, 3.0, 1]]),
            ?assertEqual([7, 7, b, []], [ats:merge(T, max, N, max) || N <- [7, 7.0, b, []]]),
            ?assertEqual([a, a], [ats:merge(T, first, X, first) || X <- [a, b]]),
            ?assertEqual([a, b], [ats:merge(T, last, X, last) || X <- [a, b]]),
            ?assertEqual("abc", lists:last([ats:merge(T, l, X, append) || X <- ["a", "", "bc"]])),
            Binaries = [ats:merge(T, b, X, append) || X <- [<<"a">>, <<"b">>]],
            ?assertEqual(<<"ab">>, lists:last(Binaries)),
            Sets = [ats:merge(T, s, X, union) || X <- [[1, 3], [1.0, 2]]],
            ?assertEqual([1, 2, 3], lists:last(Sets)),
            ?assertEqual(
                #{a => 2, b => 1},
                lists:last([ats:merge(T, m, X, union) || X <- [#{a => 1, b => 1}, #{a => 2}]])
            ),
            Vector = {vector, [sum, min, {last}, append]},
            ?assertError(badarg, ats:merge(T, v, {1, 1, a, []}, Vector)),
            Good = {vector, [sum, min, last, append]},
            ?assertEqual({1, 5, a, [x]}, ats:merge(T, v, {1, 5, a, [x]}, Good)),
            ?assertEqual({3, 4, b, [x, y]}, ats:merge(T, v, {2, 4, b, [y]}, Good)),
            ?assertEqual([{v, {3, 4, b, [x, y]}}], ats:lookup(T, v)),
            %% Positions and defaults.
            true = ats:insert(T, {pos, 1, 2, 3}),
            ?assertEqual(12, ats:merge(T, pos, 10, {3, sum})),
            ?assertEqual([{pos, 1, 12, 3}], ats:lookup(T, pos)),
            ?assertEqual(11, ats:merge(T, new, 1, {3, sum}, {x, y, 10, z})),
            ?assertEqual([{new, y, 11, z}], ats:lookup(T, new)),
            ?assertEqual(13, ats:merge(T, new, 2, {3, sum}, {x, y, 10, z})),
            ?assertEqual(10, ats:merge(T, new2, 20, {3, min}, {x, y, 10, z})),
            ?assertEqual([{new2, y, 10, z}], ats:lookup(T, new2)),
            true = ats:delete(T)
        end
     || Type <- [set, ordered_set], Options <- [[], [compressed]]
    ].

%% Values of one key after the other: the merge, the written value, and the result each time.
more_merges(_) ->
    Stamped = {vector, [{last, 1}, statistics]},
    Late = {1, late},
    Cases = [
        {replace, [a, 1], [a, 1]},
        {{last, 1}, [{2, a}, Late, {2.0, b}, {3}], [{2, a}, {2, a}, {2.0, b}, {3}]},
        {{last, 2}, [{a, 1 bsl 53}, {b, float(1 bsl 53)}, {c, (1 bsl 53) + 1}, {d, x}],
         [{a, 1 bsl 53}, {b, float(1 bsl 53)}, {c, (1 bsl 53) + 1}, {d, x}]},
        {{last, 2}, [{a, (1 bsl 53) + 1}, {b, float(1 bsl 53)}],
         [{a, (1 bsl 53) + 1}, {a, (1 bsl 53) + 1}]},
        {statistics, [5, 3, {1, 9, 10, 2}, 2.5, 1 bsl 70],
         [
             {5, 5, 5, 1},
             {3, 5, 8, 2},
             {1, 9, 18, 4},
             {1, 9, 20.5, 5},
             {1, 1 bsl 70, 20.5 + (1 bsl 70), 6}
         ]},
        {statistics, [-(1 bsl 62), -1, 1 bsl 63],
         [
             {-(1 bsl 62), -(1 bsl 62), -(1 bsl 62), 1},
             {-(1 bsl 62), -1, -(1 bsl 62) - 1, 2},
             {-(1 bsl 62), 1 bsl 63, (1 bsl 62) - 1, 3}
         ]},
        {intersection, [[1, 2, 3, a], [1.0, 3, 4], [], [1]], [[1, 2, 3, a], [1, 3], [], []]},
        {intersection, [#{a => 1, b => 2}, #{b => 3, c => 4}, #{}],
         [#{a => 1, b => 2}, #{b => 3}, #{}]},
        {{vector, [sum, {vector, [max, append]}]}, [{1, {2, "a"}}, {3, {1, "b"}}],
         [{1, {2, "a"}}, {4, {2, "ab"}}]},
        {Stamped, [{{7, a}, 5}, {Late, 1.0}],
         [{{7, a}, {5, 5, 5, 1}}, {{7, a}, {1.0, 5, 6.0, 2}}]}
    ],
    [
        begin
            T = ats:new(t, [Type | Options]),
            ?assertEqual({Merge, Results}, {Merge, [ats:merge(T, k, X, Merge) || X <- Operands]}),
            ?assertEqual([{k, lists:last(Results)}], ats:tab2list(T)),
            %% A number in the table is that of one sample, too.
            true = ats:insert(T, {n, 1, 5}),
            ?assertEqual({3, 5, 8, 2}, ats:merge(T, n, 3, {3, statistics})),
            ?assertEqual({7, 8, 15, 2}, ats:merge(T, m, 7, {3, statistics}, {x, y, 8})),
            ?assertEqual([{m, y, {7, 8, 15, 2}}], ats:lookup(T, m)),
            true = ats:delete(T)
        end
     || Type <- [set, ordered_set], Options <- [[], [compressed], [{backend, btree}]],
        {Merge, Operands, Results} <- Cases
    ].

%% An empty value is returned, and its object is gone.
pruned_merges(_) ->
    Counts = {vector, [{prune, sum}, {prune, append}]},
    Cases = [
        {{prune, sum}, [1, 2, -3], 0},
        {{prune, sum}, [0], 0},
        {{prune, sum}, [1 bsl 70, -(1 bsl 70)], 0},
        {{prune, append}, [[]], []},
        {{prune, append}, [<<>>], <<>>},
        {{prune, union}, [#{}], #{}},
        {Counts, [{1, []}, {-1, []}], {0, []}},
        {{vector, [Counts]}, [{{0, <<>>}}], {{0, <<>>}}}
    ],
    [
        begin
            T = ats:new(t, [Type | Options]),
            ?assertEqual(Empty, lists:last([ats:merge(T, k, X, Merge) || X <- Operands])),
            ?assertEqual({Merge, []}, {Merge, ats:tab2list(T)}),
            ?assertEqual(0, ats:info(T, size)),
            true = ats:delete(T)
        end
     || Type <- [set, ordered_set], Options <- [[], [compressed], [{backend, btree}]],
        {Merge, Operands, Empty} <- Cases
    ],
    T = ats:new(t, []),
    Prune = {prune, sum},
    %% Cases in which the object stays, and with an empty value of another kind.
    ?assertEqual(0.0, lists:last([ats:merge(T, float, X, Prune) || X <- [1, -1.0]])),
    ?assertEqual({0, a}, ats:merge(T, vector, {0, a}, {vector, [Prune, last]})),
    ?assertEqual({}, ats:merge(T, none, {}, {vector, []})),
    true = ats:insert(T, [{list, []}, {map, #{}}]),
    ?assertEqual(<<"a">>, ats:merge(T, list, <<"a">>, {prune, append})),
    ?assertEqual([a], ats:merge(T, map, [a], {prune, union})),
    ?assertEqual([a], ats:merge(T, map, #{}, {prune, union})),
    ?assertEqual(
        [{float, 0.0}, {list, <<"a">>}, {map, [a]}, {none, {}}, {vector, {0, a}}],
        lists:sort(ats:tab2list(T))
    ),
    true = ats:delete_all_objects(T),
    %% The whole object goes, also one that is counted in place, and none comes by a default.
    true = ats:insert(T, {page, title, 2}),
    ?assertEqual(3, ats:update_counter(T, page, {3, 1})),
    ?assertEqual(4, ats:update_counter(T, page, {3, 1})),
    ?assertEqual(1, ats:merge(T, page, -3, {3, Prune})),
    ?assertEqual([{page, title, 1}], ats:lookup(T, page)),
    ?assertEqual(0, ats:merge(T, page, -1, {3, Prune})),
    ?assertEqual(0, ats:merge(T, page, -1, {3, Prune}, {page, title, 1})),
    ?assertEqual([], ats:tab2list(T)),
    ?assertEqual(2, ats:merge(T, page, 1, {3, Prune}, {page, title, 1})),
    true = ats:safe_fixtable(T, true),
    ?assertEqual(0, ats:merge(T, page, -2, {3, Prune})),
    ?assertEqual('$end_of_table', ats:first(T)),
    true = ats:safe_fixtable(T, false),
    ?assertEqual([], ats:tab2list(T)).

%% References that come and go leave nothing.
pruned_merges_beside_each_other(_) ->
    Count = 20000,
    [
        begin
            T = ats_test_lib:new(t, [Type, public]),
            Work = fun() ->
                [
                    begin
                        _ = ats:merge(T, N rem 3, 1, {prune, sum}),
                        _ = ats:merge(T, N rem 3, -1, {prune, sum})
                    end
                 || N <- lists:seq(1, Count)
                ],
                done
            end,
            ?assertEqual([done, done], ats_test_lib:parallel([Work, Work])),
            ?assertEqual([], ats:tab2list(T)),
            ?assertEqual(0, ats:info(T, size))
        end
     || Type <- [set, ordered_set]
    ].

%% Any values of any kind, one after the other, against the functions of Erlang.
merges_as_a_model(_) ->
    ats_test_lib:check(?FORALL(
        {Type, Options, {Merge, Operands}},
        {oneof([set, ordered_set]), oneof([[], [compressed]]), merge_and_operands()},
        begin
            T = ats:new(t, [Type | Options]),
            Cooked = [ats_beyond_gen:cook(Operand) || Operand <- Operands],
            lists:foldl(
                fun(Operand, Before) ->
                    Expected = ats_beyond_reference:merged(Merge, Before, Operand),
                    ?assertEqual(Expected, merged(T, Operand, Merge)),
                    After =
                        case Expected of
                            {ok, Value} ->
                                case ats_beyond_reference:is_absent(Merge, Value) of
                                    true -> none;
                                    false -> {value, Value}
                                end;
                            {refused, _} ->
                                Before
                        end,
                    Found = [{value, V} || {k, V} <- ats:lookup(T, k)],
                    ?assertEqual([A || {value, _} = A <- [After]], Found),
                    After
                end,
                none,
                Cooked
            ),
            ats:delete(T)
        end
    ), 2000).

merged(T, Operand, Merge) ->
    try
        {ok, ats:merge(T, k, Operand, Merge)}
    catch
        error:Reason:Stack ->
            [{ats, merge, _, Info} | _] = Stack,
            #{cause := Cause} = proplists:get_value(error_info, Info),
            ?assertEqual(Reason, ats_errors:reason(Cause)),
            {refused, Cause}
    end.

merge_and_operands() ->
    ?LET(Merge, ats_beyond_gen:merge(), {Merge, resize(10, list(ats_beyond_gen:operand(Merge)))}).

merges_beside_each_other(_) ->
    Count = 20000,
    [
        begin
            T = ats_test_lib:new(t, [Type, public]),
            Work = fun(Part) ->
                fun() ->
                    Numbers = [N || N <- lists:seq(Part, Count, 2)],
                    [ats:merge(T, sum, N, sum) || N <- Numbers],
                    [ats:merge(T, min, N, min) || N <- Numbers],
                    [ats:merge(T, max, N, max) || N <- Numbers],
                    [ats:merge(T, v, {N, 1}, {vector, [sum, sum]}) || N <- Numbers],
                    [ats:merge(T, set, [N rem 100], union) || N <- Numbers],
                    [ats:merge(T, list, [N], append) || N <- Numbers, N rem 10 < 2],
                    done
                end
            end,
            [done, done] = ats_test_lib:parallel([Work(1), Work(2)]),
            Sum = Count * (Count + 1) div 2,
            ?assertEqual([{sum, Sum}], ats:lookup(T, sum)),
            ?assertEqual([{min, 1}], ats:lookup(T, min)),
            ?assertEqual([{max, Count}], ats:lookup(T, max)),
            ?assertEqual([{v, {Sum, Count}}], ats:lookup(T, v)),
            ?assertEqual([{set, lists:seq(0, 99)}], ats:lookup(T, set)),
            [{list, List}] = ats:lookup(T, list),
            ?assertEqual([N || N <- lists:seq(1, Count), N rem 10 < 2], lists:sort(List)),
            %% Each process finds its own in the order in which it put them.
            [
                ?assertEqual(lists:sort(Own), Own)
             || Rest <- [0, 1], Own <- [[N || N <- List, N rem 2 =:= Rest]]
            ],
            true = ats:delete(T)
        end
     || Type <- [set, ordered_set]
    ].

%% Large merges run on another scheduler, with the same result.
large_merges(_) ->
    T = ats:new(t, []),
    Large = lists:seq(1, 20000),
    ?assertEqual(Large, ats:merge(T, l, Large, append)),
    ?assertEqual(Large ++ [x], ats:merge(T, l, [x], append)),
    ?assertEqual(Large, ats:merge(T, s, Large, union)),
    ?assertEqual(Large ++ [20001], ats:merge(T, s, [5, 20001], union)),
    Map = maps:from_list([{N, N} || N <- Large]),
    ?assertEqual(Map, ats:merge(T, m, Map, union)),
    ?assertEqual(Map#{a => b}, ats:merge(T, m, #{a => b}, union)),
    Binary = binary:copy(<<"x">>, 100000),
    ?assertEqual(Binary, ats:merge(T, b, Binary, append)),
    ?assertEqual(<<Binary/binary, "y">>, ats:merge(T, b, <<"y">>, append)),
    ?assertEqual(<<Binary/binary, "y">>, ats:lookup_element(T, b, 2)),
    true = ats:delete(T).

%% Nothing changes, and the exception says why.
refused_merges(_) ->
    T = ats:new(t, []),
    KeyPos2 = ats:new(t, [{keypos, 2}]),
    Bag = ats:new(t, [bag]),
    Objects = [{k, 1}, {l, [a]}, {m, #{}}, {b, <<"b">>}, {v, {1, 2}}, {t, 1, b}],
    true = ats:insert(T, Objects),
    Operand = fun(Merge) -> "not a value that can be merged in this way: " ++ needs(Merge) end,
    Value = fun(Merge) ->
        "the value in the given position, in the object, cannot be merged in this way: " ++
            needs(Merge)
    end,
    NoKey = "not a key that exists in the table, and its object would need more than the operand",
    Calls =
        [{[T, K, X, M], #{3 => Operand(M)}}
         || {K, X, M} <- [
                {k, a, sum}, {new, a, sum}, {l, b, append}, {new, [a | b], append},
                {l, <<"b">>, append}, {b, "b", append}, {b, <<1:3>>, append},
                {new, <<1:3>>, append}, {m, [], union}, {new, [b, a], union}, {l, [b, a], union},
                {new, {1}, {vector, [sum, sum]}}, {v, {1, a}, {vector, [sum, sum]}},
                {v, 7, {vector, [sum, sum]}}, {k, {2, 1, 1, 1}, statistics},
                {new, {1, 2, 3, 0}, statistics}, {new, {1}, {last, 2}}, {k, 1, {last, 1}},
                {m, [], intersection}, {new, [1, 1.0], intersection}, {k, [], {prune, sum}},
                {l, <<"b">>, {prune, append}}, {new, [b, a], {prune, union}},
                {v, {1, {1}}, {vector, [sum, {vector, [sum, sum]}]}}
            ]] ++
        [{[T, K, X, M], #{4 => Value(M)}}
         || {K, X, M} <- [
                {l, 1, sum}, {k, [], append}, {k, [], union}, {v, 1, sum},
                {v, {1}, {vector, [sum]}}, {k, {1}, {vector, [sum]}}, {t, 1, {3, sum}},
                {l, 1, statistics},
                {v, {1, 2, 3}, {last, 3}}, {b, [], intersection}, {k, [], {prune, append}}
            ]] ++
        [{[T, k, 1, M], #{4 => "not a valid merge"}}
         || M <- [
                plus, 1, {sum, 1}, {vector, sum}, {vector, [sum | min]}, {vector, [x]},
                {vector, [{last}]}, {2, plus}, {2, 3, sum}, [], {2, {2, sum}}, {last, 0},
                {last, 1 bsl 24}, {last, 1.0}, {last, a}, {last, 1 bsl 70}, {first, 1},
                {prune, last}, {prune, intersection}, {prune, {prune, sum}}, {prune, {2, sum}},
                {prune, {vector, [sum]}}, {sum, last},
                lists:foldl(fun(_, Inner) -> {vector, [Inner]} end, sum, lists:seq(1, 9))
            ]] ++
        [
            {[T, k, 1, {P, sum}], #{4 => "the position is out of range"}}
         || P <- [0, -1, 3, 1 bsl 40]
        ] ++
        [{[T, k, 1, {1, sum}], #{4 => "the position is the same as the key position"}}] ++
        [{[T, new, 1, {3, sum}], #{2 => NoKey}}] ++
        [{[KeyPos2, new, 1, sum], #{2 => NoKey}}] ++
        [{[T, k, 1, sum, D], #{5 => Text}}
         || {D, Text} <- [{x, "not a tuple"}, {{}, "is an empty tuple"}]] ++
        [{[KeyPos2, new, 1, {1, sum}, {1}], #{5 => "has no element at the key position 2"}}] ++
        [{[T, new, 1, sum, {x}], #{4 => "the position is out of range"}}] ++
        [{[T, new, 1, sum, {x, y}], #{4 => Value(sum)}}] ++
        [{[Bag, k, 1, sum],
          #{1 => "the table identifier refers to an ATS table of a type not supported by"
                 " this operation"}}],
    [
        ?assertEqual({Args, {badarg, Blamed}}, {Args, blame(merge, Args)})
     || {Args, Blamed} <- Calls
    ],
    1.7e308 = ats:merge(T, f, 1.7e308, sum),
    ?assertError(system_limit, ats:merge(T, f, 1.7e308, sum)),
    true = ats:delete(T, f),
    ?assertEqual(lists:sort(Objects), lists:sort(ats:tab2list(T))),
    ?assertEqual([], ats:tab2list(KeyPos2)),
    ?assertEqual(6, ats:merge(KeyPos2, new, 1, {1, sum}, {5, x})),
    ?assertEqual([{6, new}], ats:tab2list(KeyPos2)).

%% Returns the text of an explanation about a merge, also of one with a position.
needs({Pos, Merge}) when is_integer(Pos) -> ats_beyond_reference:needs(Merge);
needs(Merge) -> ats_beyond_reference:needs(Merge).

%% ----- wrong arguments -----

errors(_) ->
    Gone = ats:new(t, []),
    true = ats:delete(Gone),
    T = ats:new(t, []),
    Tables = [
        {Gone, "the table identifier does not refer to an existing ATS table"},
        {no_such_table, "the table identifier does not refer to an existing ATS table"},
        {17, "not an atom or a table identifier"},
        {make_ref(), "not a valid table identifier"}
    ],
    [
        ?assertEqual({F, Args, {badarg, #{1 => Text}}}, {F, Args, blame(F, Args)})
     || {Wrong, Text} <- Tables,
        {F, Args} <- [
            {select_take, [Wrong, ?ALL]},
            {select_take, [Wrong, [{{1, '_'}, [], [true]}]]},
            {select_take, [Wrong, nonsense]},
            {take_all_objects, [Wrong]},
            {take_first, [Wrong]},
            {take_last, [Wrong]},
            {merge, [Wrong, k, 1, sum]},
            {merge, [Wrong, k, 1, nonsense]},
            {merge, [Wrong, k, 1, sum, {k, 1}]}
        ]
    ],
    [
        ?assertEqual(
            {badarg, #{2 => "not a valid match specification"}},
            blame(select_take, [T, Spec])
        )
     || Spec <- [nonsense, [{'_', [], []}], [{'_', [{x}], [true]}]]
    ],
    ?assertEqual([], ats:select_take(T, [])).

blame(Function, Args) ->
    try apply(ats, Function, Args) of
        Result -> {returned, Result}
    catch
        error:Reason:Stack ->
            [{ats, Function, Args, Info} | _] = Stack,
            #{module := Module} = proplists:get_value(error_info, Info),
            Texts = ats_oracle:without_hints(Module:format_error(Reason, Stack)),
            {Reason, maps:map(fun(_, Text) -> unicode:characters_to_list(Text) end, Texts)}
    end.

%% All of them write.
access(_) ->
    Test = self(),
    Owner = spawn_link(fun() ->
        Tables = [ats:new(t, [P]) || P <- [private, protected, public]],
        [true = ats:insert(T, {k, 1}) || T <- Tables],
        Test ! Tables,
        receive
            stop -> ok
        end
    end),
    [Private, Protected, Public] =
        receive
            Tables -> Tables
        end,
    Calls = [
        {select_take, fun(T) -> [T, ?ALL] end, [{k, 1}]},
        {select_take, fun(T) -> [T, [{{k, '_'}, [], [true]}]] end, [{k, 1}]},
        {take_all_objects, fun(T) -> [T] end, [{k, 1}]},
        {take_first, fun(T) -> [T] end, [{k, 1}]},
        {take_last, fun(T) -> [T] end, [{k, 1}]},
        {merge, fun(T) -> [T, k, 1, sum] end, 2},
        {merge, fun(T) -> [T, k, 1, sum, {k, 0}] end, 2}
    ],
    Denied = "the table identifier refers to an ATS table with insufficient access rights",
    [
        ?assertEqual({Function, {badarg, #{1 => Denied}}}, {Function, blame(Function, Args(T))})
     || T <- [Private, Protected], {Function, Args, _} <- Calls
    ],
    [
        begin
            true = ats:insert(Public, {k, 1}),
            ?assertEqual(Result, apply(ats, Function, Args(Public)))
        end
     || {Function, Args, Result} <- Calls
    ],
    ?assertEqual([{k, 1}], ats:lookup(Protected, k)),
    unlink(Owner),
    ats_test_lib:kill(Owner).

%% Ranges, prefixes and lookups of several elements, which `ets' does not have. The model is a
%% sorted list of all objects, filtered by the comparisons of Erlang.
-module(ats_range_SUITE).

-include_lib("stdlib/include/assert.hrl").
-include_lib("proper/include/proper.hrl").

-export([all/0, suite/0, init_per_suite/1, end_per_suite/1]).
-export([
    ranges/1,
    prefixes/1,
    examples/1,
    examples_of_prefixes/1,
    deep_bounds/1,
    folds/1,
    chunks_go_on/1,
    chunks_cannot_be_repaired/1,
    writers_beside/1,
    little_is_read/1,
    several_elements/1,
    elements_of_many_objects/1,
    elements_of_counters/1,
    errors/1,
    access/1
]).

-import(ats_test_lib, [check/2]).

-define(TYPES, [set, ordered_set, bag, duplicate_bag]).
-define(TABLES, 1500).
-define(RANGES_PER_TABLE, 6).

suite() -> [{timetrap, {minutes, 10}}].

all() ->
    [
        ranges,
        prefixes,
        examples,
        examples_of_prefixes,
        deep_bounds,
        folds,
        chunks_go_on,
        chunks_cannot_be_repaired,
        writers_beside,
        little_is_read,
        several_elements,
        elements_of_many_objects,
        elements_of_counters,
        errors,
        access
    ].

init_per_suite(Config) ->
    ok = ats_term_gen:prepare(),
    Config.

end_per_suite(_) ->
    ok.

%% ----- any ranges of any tables -----

ranges(_) ->
    check(?FORALL(
        {KeyPos, Options, Keys, Ranges},
        {integer(1, 3), table_options(), keys(), vector(?RANGES_PER_TABLE, range())},
        begin
            {T, All} = table(KeyPos, Options, Keys),
            [check_range(T, KeyPos, All, realize(Range, Keys)) || Range <- Ranges],
            ats:delete(T)
        end
    ), ?TABLES).

table_options() ->
    oneof([[], [], [compressed], [{write_concurrency, true}]]).

%% Keys of all types, and among them some that begin alike.
keys() ->
    Key = ats_term_gen:key(),
    Small = ?LET(N, integer(1, 2), {lit, N}),
    Kinds = frequency([
        {6, Key},
        {2, ?LET({N, A}, {Small, Key}, {tuple, [{lit, foo}, N, A]})},
        {1, ?LET({N, A}, {Small, Key}, {tuple, [{tuple, [N, A]}, {lit, 2}]})},
        {1, ?LET({N, A}, {Small, Key}, {improper, [{lit, a}, N], A})},
        {1, ?LET({N, A}, {Small, Key}, {list, [N, A]})},
        {1, ?LET({A, B}, {Key, Key}, {map, [{A, B}]})}
    ]),
    ?LET(N, oneof([integer(0, 5), integer(0, 50)]), vector(N, Kinds)).

%% Ends are keys of the table, or lie anywhere.
range() ->
    {bound(), bound(), bounds(), integer(1, 12)}.

bound() ->
    frequency([
        {3, {key, integer(1, 1000)}},
        {1, {around, integer(1, 1000)}},
        {1, ats_term_gen:key()}
    ]).

bounds() ->
    How = oneof([default, default, inclusive, exclusive, unbounded]),
    ?LET(
        {Low, High},
        {How, How},
        [{End, H} || {End, H} <- [{high, High}, {low, Low}], H =/= default]
    ).

realize({Low, High, Bounds, Limit}, Keys) ->
    {realize_bound(Low, Keys), realize_bound(High, Keys), Bounds, Limit}.

realize_bound({key, _}, []) ->
    17;
realize_bound({key, N}, Keys) ->
    ats_term_gen:realize(lists:nth(1 + N rem length(Keys), Keys));
realize_bound({around, N}, Keys) ->
    case realize_bound({key, N}, Keys) of
        Number when is_float(Number) -> Number / 3;
        Small when is_integer(Small), abs(Small) < 1 bsl 50 -> Small + N rem 2 - 0.5;
        Large when is_integer(Large) -> Large + N rem 3 - 1;
        Bits when is_bitstring(Bits) -> <<Bits/bits, 0>>;
        [Head | _] -> [Head];
        Tuple when is_tuple(Tuple), Tuple =/= {} -> setelement(tuple_size(Tuple), Tuple, m);
        Other -> {Other}
    end;
realize_bound(Recipe, _) ->
    ats_term_gen:realize(Recipe).

%% A table and its objects in the order of their keys.
table(KeyPos, Options, Keys) ->
    Both = [ordered_set, public, {keypos, KeyPos}],
    T = ats:new(ranges, Both ++ Options),
    E = ets:new(ranges, Both),
    [
        begin
            Object = object(KeyPos, ats_term_gen:realize(Key), N),
            true = ats:insert(T, Object),
            true = ets:insert(E, Object)
        end
     || {N, Key} <- lists:enumerate(Keys)
    ],
    All = ets:tab2list(E),
    true = ets:delete(E),
    {T, All}.

%% Three to six elements, so that some positions are beyond the end.
object(KeyPos, Key, N) ->
    setelement(KeyPos, list_to_tuple([{value, N, I} || I <- lists:seq(1, 3 + N rem 4)]), Key).

check_range(T, KeyPos, All, {Low, High, Bounds, Limit}) ->
    Inside = fun(O) -> is_inside(element(KeyPos, O), Low, High, Bounds) end,
    {Objects, Others} = lists:partition(Inside, All),
    Keys = [element(KeyPos, O) || O <- Objects],
    Range = fun(Options) -> ats:range(T, Low, High, Bounds ++ Options) end,
    Bounds =:= [] andalso ?assertEqual(Objects, ats:range(T, Low, High)),
    check_reads(Range, KeyPos, Objects, Limit),
    Fold = fun(Options) ->
        lists:reverse(
            ats:range_fold(fun(O, Acc) -> [O | Acc] end, [], T, Low, High, Options ++ Bounds)
        )
    end,
    ?assertEqual(Objects, Fold([])),
    ?assertEqual(lists:sublist(lists:reverse(Keys), Limit), Fold([reverse, keys, {limit, Limit}])),
    ?assertEqual(length(Objects), ats:range_count(T, Low, High, Bounds)),
    check_ranks(T, KeyPos, All, {Low, High, Bounds}, Objects),
    ?assertEqual(length(Objects), ats:range_delete(T, Low, High, Bounds)),
    ?assertEqual(Others, ats:tab2list(T)),
    ?assertEqual(length(Others), ats:info(T, size)),
    ?assertEqual(0, ats:range_count(T, Low, High, Bounds)),
    ?assert(ats:insert(T, Objects)).

%% Objects by their rank, in the range and in the table.
check_ranks(T, KeyPos, All, {Low, High, Bounds}, Objects) ->
    Ranks = lists:seq(1, length(Objects)),
    Nth = fun(N) -> ats:range_nth(T, Low, High, N, Bounds) end,
    ?assertEqual(Objects, [Nth(N) || N <- Ranks]),
    ?assertEqual(lists:reverse(Objects), [Nth(-N) || N <- Ranks]),
    [?assertEqual('$end_of_table', Nth(N)) || N <- [length(Objects) + 1, -length(Objects) - 1]],
    [
        ?assertEqual(length([O || O <- All, element(KeyPos, O) < Key]), ats:rank(T, Key))
     || Key <- [Low, High]
    ],
    [?assertEqual(O, ats:nth(T, ats:rank(T, element(KeyPos, O)) + 1)) || O <- Objects].

%% All ways to read the same.
check_reads(Read, KeyPos, Objects, Limit) ->
    Keys = [element(KeyPos, O) || O <- Objects],
    Elements = [[part(P, O) || P <- [4, 1, 4, 6]] || O <- Objects],
    [
        begin
            ?assertEqual(Expected, Read([Shape])),
            ?assertEqual(lists:reverse(Expected), Read([Shape, reverse])),
            ?assertEqual(chunks(Expected, Limit), chunks_of(Read([{limit, Limit}, Shape]))),
            ?assertEqual(
                chunks(lists:reverse(Expected), Limit),
                chunks_of(Read([{reverse, true}, Shape, {limit, Limit}]))
            )
        end
     || {Shape, Expected} <- [
            {objects, Objects},
            {keys, Keys},
            {{positions, [4, 1, 4, 6]}, Elements},
            {{positions, []}, [[] || _ <- Objects]}
        ]
    ].

is_inside(Key, Low, High, Bounds) ->
    IsAbove =
        case proplists:get_value(low, Bounds, inclusive) of
            inclusive -> Key >= Low;
            exclusive -> Key > Low;
            unbounded -> true
        end,
    IsBelow =
        case proplists:get_value(high, Bounds, inclusive) of
            inclusive -> Key =< High;
            exclusive -> Key < High;
            unbounded -> true
        end,
    IsAbove andalso IsBelow.

part(P, Object) when P =< tuple_size(Object) -> element(P, Object);
part(_, _) -> 'EXIT'.

chunks([], _) -> [];
chunks(List, Limit) when length(List) =< Limit -> [List];
chunks(List, Limit) ->
    {Chunk, Rest} = lists:split(Limit, List),
    [Chunk | chunks(Rest, Limit)].

chunks_of('$end_of_table') -> [];
chunks_of({Chunk, Continuation}) -> [Chunk | chunks_of(ats:select(Continuation))].

%% ----- any prefixes -----

prefixes(_) ->
    check(?FORALL(
        {Options, Keys, Patterns},
        {table_options(), keys(), vector(?RANGES_PER_TABLE, pattern())},
        begin
            {T, All} = table(2, Options, Keys),
            [check_prefix(T, All, realize_pattern(P, Keys), Limit) || {P, Limit} <- Patterns],
            ats:delete(T)
        end
    ), ?TABLES).

%% Returns a key in which everything behind some part is left open, or some part anywhere.
pattern() ->
    Pattern = frequency([
        {6, {open_behind, integer(1, 1000), integer(0, 5)}},
        {1, {open_at, integer(1, 1000), integer(0, 5)}},
        {1, ats_term_gen:key()}
    ]),
    {Pattern, integer(1, 12)}.

realize_pattern({Kind, N, Part}, Keys) when Kind =:= open_behind; Kind =:= open_at ->
    {Pattern, _} = open(Kind, realize_bound({key, N}, Keys), Part),
    Pattern;
realize_pattern(Recipe, _) ->
    ats_term_gen:realize(Recipe).

%% Parts are numbered in the order in which they are compared. Answers how many are left.
open(open_behind, _, Left) when Left =< 0 ->
    {'_', 0};
open(open_at, _, 0) ->
    {'_', -1};
open(Kind, Tuple, Left) when is_tuple(Tuple) ->
    {Elements, NewLeft} =
        lists:mapfoldl(fun(E, L) -> open(Kind, E, L) end, Left - 1, tuple_to_list(Tuple)),
    {list_to_tuple(Elements), NewLeft};
open(Kind, [Head | Tail], Left) ->
    {NewHead, Between} = open(Kind, Head, Left - 1),
    {NewTail, NewLeft} = open(Kind, Tail, Between),
    {[NewHead | NewTail], NewLeft};
open(_, Term, Left) ->
    {Term, Left - 1}.

check_prefix(T, All, Pattern, Limit) ->
    case ats_beyond_reference:is_prefix(Pattern) of
        true ->
            Objects = [O || O <- All, ats_beyond_reference:begins(Pattern, element(2, O))],
            ?assertEqual(Objects, ats:prefix(T, Pattern)),
            check_reads(fun(Options) -> ats:prefix(T, Pattern, Options) end, 2, Objects, Limit);
        false ->
            ?assertError(badarg, ats:prefix(T, Pattern)),
            ?assertError(badarg, ats:prefix(T, Pattern, [{limit, Limit}]))
    end.

%% ----- examples, as in the documentation -----

examples(_) ->
    T = ats:new(t, [ordered_set, {keypos, 2}, {full_scan, refuse}]),
    ?assertEqual([], ats:range(T, a, b)),
    ?assertEqual('$end_of_table', ats:range(T, a, b, [{limit, 1}])),
    ?assertEqual(0, ats:range_count(T, a, b)),
    ?assertEqual(0, ats:range_delete(T, a, b)),
    true = ats:insert(T, [{v, K, K * K} || K <- lists:seq(1, 10)]),
    ?assertEqual([{v, 3, 9}, {v, 4, 16}], ats:range(T, 2.5, 4.0)),
    ?assertEqual([{v, 3, 9}], ats:range(T, 3.0, 3)),
    ?assertEqual([], ats:range(T, 3, 3, [{low, exclusive}])),
    ?assertEqual([], ats:range(T, 4, 3)),
    ?assertEqual('$end_of_table', ats:range(T, 4, 3, [{limit, 2}, {high, exclusive}])),
    ?assertEqual([3, 4], ats:range(T, 2, 4, [keys, {low, exclusive}])),
    ?assertEqual([[9], [4]], ats:range(T, 2, 3, [reverse, {positions, [3]}])),
    ?assertEqual([[9, 'EXIT', v]], ats:range(T, 3, 3, [{positions, [3, 1 bsl 70, 1]}])),
    %% A range is no scan, even if it has no ends. A limit that cannot be reached is none.
    Unbounded = [{low, unbounded}, {high, unbounded}],
    ?assertEqual(lists:seq(1, 10), ats:range(T, x, x, [keys | Unbounded])),
    ?assertEqual(
        {lists:seq(1, 10), '$end_of_table'},
        ats:range(T, x, x, [keys, {limit, 1 bsl 80} | Unbounded])
    ),
    %% The last one counts.
    Last = [reverse, keys, {low, unbounded}, {low, exclusive}, {reverse, false}],
    ?assertEqual([2, 3], ats:range(T, 1, 3, Last)),
    ?assertEqual(8, ats:range_delete(T, 2, 9)),
    ?assertEqual([{v, 1, 1}, {v, 10, 100}], ats:tab2list(T)),
    ?assertEqual(2, ats:range_delete(T, x, x, Unbounded)),
    true = ats:delete(T).

examples_of_prefixes(_) ->
    T = ats:new(t, [ordered_set]),
    User17 = [{user, 17, a}, {user, 17, b}, {user, 17.0, c}],
    Nested = [{{user, 1}, 1}, {{user, 1}, 2}, {{user, 2}, 1}, {{user, 1, 1}, 1}],
    Lists = [[a], [a, b], [a, b, c], [a, b | c], [a, c], [a | b], "ab", "abc", "ac"],
    Others = [{user, 17}, {user, 17.5, a}, {user, 18, a}, <<"ab">>, <<"abc">>],
    Keys = User17 ++ Nested ++ Lists ++ Others,
    true = ats:insert(T, [{K} || K <- Keys]),
    [
        ?assertEqual({Pattern, lists:sort(Expected)}, {Pattern, ats:prefix(T, Pattern, [keys])})
     || {Pattern, Expected} <- [
            {{user, 17, '_'}, User17},
            {{user, '_', '_'}, [{user, 17.5, a}, {user, 18, a} | User17]},
            {{user, '_'}, [{user, 17}]},
            {{user, 17}, [{user, 17}]},
            {{{user, '_'}, '_'}, [{{user, 1}, 1}, {{user, 1}, 2}, {{user, 2}, 1}]},
            {{{user, 1}, '_'}, [{{user, 1}, 1}, {{user, 1}, 2}]},
            {{'_', '_'}, [{user, 17} | Nested]},
            {[a, b | '_'], [[a, b], [a, b, c], [a, b | c]]},
            {[a | '_'], [[a], [a, b], [a, b, c], [a, b | c], [a, c], [a | b]]},
            %% A second element is asked for.
            {[a, '_' | '_'], [[a, b], [a, b, c], [a, b | c], [a, c]]},
            {"ab" ++ '_', ["ab", "abc"]},
            {<<"ab">>, [<<"ab">>]},
            {nothing, []},
            {{}, []},
            {'_', Keys}
        ]
    ],
    Binaries = ats:range(T, <<"ab">>, <<"ac">>, [keys, {high, exclusive}]),
    ?assertEqual([<<"ab">>, <<"abc">>], Binaries),
    [
        ?assertError(badarg, ats:prefix(T, Pattern))
     || Pattern <- [
            {'_', 1}, {'_', {}}, {'_', {'_'}}, {{'_', a}, '_'}, ['_'], [a, '_'], ['_', '_' | '_'],
            ['_' | b], #{a => '_'}, #{'_' => a}, {a, #{a => [{'_'}]}, '_'}
        ]
    ],
    true = ats:insert(T, {{#{a => 1}, x}}),
    ?assertEqual([{{#{a => 1}, x}}], ats:prefix(T, {#{a => 1}, '_'})),
    true = ats:delete(T).

%% Nothing recurses on the depth of terms.
deep_bounds(_) ->
    Deep = fun(Kind) -> ats_term_gen:realize({nest, Kind, 300000, {lit, 1}}) end,
    T = ats:new(t, [ordered_set]),
    [
        begin
            Key = Deep(Kind),
            true = ats:insert(T, {Key, Kind}),
            ?assertEqual([[Kind]], ats:range(T, Key, Key, [{positions, [2]}])),
            ?assertEqual([[Kind]], ats:prefix(T, Key, [{positions, [2]}])),
            ?assertEqual(1, ats:range_delete(T, Key, Key))
        end
     || Kind <- [list, tuple, cons]
    ],
    true = ats:delete(T).

%% A fold is done in chunks; the function may do anything.
folds(_) ->
    T = ats:new(t, [ordered_set, public]),
    N = 2500,
    true = ats:insert(T, [{K, K} || K <- lists:seq(1, N)]),
    Sum = fun({_, V}, Acc) -> V + Acc end,
    ?assertEqual(N * (N + 1) div 2, ats:range_fold(Sum, 0, T, 0, N)),
    [
        ?assertEqual(
            lists:seq(N, N - Limit + 1, -1),
            lists:reverse(
                ats:range_fold(
                    fun(K, Acc) -> [K | Acc] end, [], T, 0, N, [keys, reverse, {limit, Limit}]
                )
            )
        )
     || Limit <- [1, 99, 100, 101, 200, 250, N]
    ],
    %% The fold meets deleted objects only once, and objects inserted behind it not at all.
    Change = fun({K, _}, Acc) ->
        true = ats:delete(T, K),
        true = ats:insert(T, {K - 0.5, again}),
        [K | Acc]
    end,
    ?assertEqual(lists:seq(1, N), lists:reverse(ats:range_fold(Change, [], T, 0, N))),
    ?assertEqual(N, ats:info(T, size)),
    ?assertThrow(stop, ats:range_fold(fun(_, _) -> throw(stop) end, 0, T, 0, N)),
    ?assertError(badarg, ats:range_fold(fun(_, _) -> ats:delete(T) end, 0, T, 0, N)).

%% ----- continuations -----

chunks_go_on(_) ->
    T = ats:new(named, [ordered_set, named_table, public]),
    true = ats:insert(T, [{K} || K <- lists:seq(1, 100)]),
    {[1, 2], C} = ats:range(T, 1, 9, [keys, {limit, 2}]),
    Rest = [[3, 4], [5, 6], [7, 8], [9]],
    ?assertEqual(Rest, chunks_of(ats:select(C))),
    ?assertEqual(Rest, chunks_of(ats:select_reverse(C))),
    ?assertEqual(Rest, chunks_of(ats:match(C))),
    ?assertEqual(Rest, chunks_of(ats:match_object(C))),
    moved = ats:rename(T, moved),
    %% The key where it stopped, and one within a chunk to come, go.
    true = ats:delete(moved, 2),
    true = ats:delete(moved, 5),
    ?assertEqual([[3, 4], [6, 7], [8, 9]], chunks_of(ats:select(C))),
    {[{9}, {8}], Down} = ats:range(moved, 6, 9, [reverse, {limit, 2}]),
    ?assertEqual([[{7}, {6}]], chunks_of(ats:select(Down))),
    %% A continuation can be a binary in between, as long as the original exists.
    Kept = binary_to_term(term_to_binary(C)),
    ?assertEqual([[3, 4], [6, 7], [8, 9]], chunks_of(ats:select(Kept))),
    ?assertEqual(C, ats:repair_continuation(C, [])),
    true = ats:delete(moved),
    ?assertError(badarg, ats:select(C)).

%% A continuation that was lost as a binary is refused, as no specification says where its range
%% ends; it must not go on through the rest of the table.
chunks_cannot_be_repaired(_) ->
    T = ats:new(t, [ordered_set]),
    true = ats:insert(T, [{K} || K <- lists:seq(1, 100)]),
    Binary = begun_and_forgotten(T),
    erlang:garbage_collect(),
    Lost = binary_to_term(Binary),
    All = [{'_', [], ['$_']}],
    ?assertError(badarg, ats:select(Lost)),
    ?assertEqual({badarg, #{1 => "the continuation of a range, which cannot be repaired"}},
        blame(repair_continuation, [Lost, All])),
    %% The specification is to blame if it has to be compiled.
    {_, C} = ats:select(T, All, 1),
    ?assertEqual({badarg, #{2 => "not a valid match specification"}},
        blame(repair_continuation, [setelement(4, C, make_ref()), nonsense])).

begun_and_forgotten(T) ->
    {_, C} = ats:range(T, 1, 9, [{limit, 2}]),
    term_to_binary(C).

%% Objects that are there throughout are met exactly once and in order, with any changes of other
%% keys.
writers_beside(_) ->
    [
        writers_beside(Force, Options)
     || Force <- [false, true], Options <- [[], [{limit, 7}], [reverse, {limit, 500}]]
    ].

writers_beside(Force, Options) ->
    Force andalso ats_test_lib:force_adaptation(),
    T = ats_test_lib:new(t, [ordered_set, public, {write_concurrency, true}]),
    Staying = [{K, 1} || K <- lists:seq(1, 2000)],
    true = ats:insert(T, [{{stays, K}} || K <- Staying]),
    Writers = [spawn_link(fun() -> come_and_go(T) end) || _ <- [1, 2]],
    Low = {stays, {500, 1}},
    High = {stays, {1500, 1}},
    Expected = [{stays, K} || {N, 1} = K <- Staying, N >= 500, N =< 1500],
    Finish = erlang:monotonic_time(millisecond) + 300,
    read_beside(T, Low, High, Expected, Options, Finish),
    lists:foreach(fun(W) -> unlink(W), ats_test_lib:kill(W) end, Writers),
    ats_test_lib:check_consistency(T),
    true = ats:delete(T),
    Force andalso ats_test_lib:stop_forcing().

read_beside(T, Low, High, Expected, Options, Finish) ->
    Met =
        case lists:member(reverse, Options) of
            true -> lists:reverse(met(T, Low, High, Options));
            false -> met(T, Low, High, Options)
        end,
    %% The keys are in order, unique, and inside of the range.
    ?assertEqual(lists:usort(Met), Met),
    ?assertEqual(Expected, [Key || {stays, {_, 1}} = Key <- Met]),
    ?assertEqual([], [Key || Key <- Met, Key < Low orelse Key > High]),
    ?assert(ats:range_count(T, Low, High) >= length(Expected)),
    Goes = {stays, {700, 2}},
    Before = ats:range_delete(T, Goes, {stays, {701, 1}}, [{high, exclusive}]),
    ?assert(Before =< 3),
    case erlang:monotonic_time(millisecond) < Finish of
        true -> read_beside(T, Low, High, Expected, Options, Finish);
        false -> ok
    end.

met(T, Low, High, Options) ->
    case ats:range(T, Low, High, [keys | Options]) of
        Keys when is_list(Keys) -> Keys;
        Chunk -> lists:append(chunks_of(Chunk))
    end.

%% Keys between and outside of those that stay.
come_and_go(T) ->
    Key = fun() -> {stays, {rand:uniform(2000), 1 + rand:uniform(3)}} end,
    true = ats:insert(T, [{Key()} || _ <- lists:seq(1, 20)]),
    [true = ats:delete(T, Key()) || _ <- lists:seq(1, 20)],
    come_and_go(T).

%% Reading a range takes time for its objects, not for the table.
little_is_read(_) ->
    N = 200000,
    T = ats:new(t, [ordered_set]),
    true = ats:insert(T, [{{foo, K div 10, K}, K} || K <- lists:seq(1, N)]),
    Whole = fastest(fun() -> N = ats:select_count(T, [{'_', [], [true]}]) end, 5),
    {Low, High} = {{foo, 5000, 0}, {foo, 5000, 50009}},
    Ten = [{{foo, 5000, K}, K} || K <- lists:seq(50000, 50009)],
    [
        begin
            Time = fastest(Few, 20),
            ct:pal("~p: ~b us of ~b us", [What, Time, Whole]),
            ?assert({What, Time} =< {What, Whole div 100})
        end
     || {What, Few} <- [
            {range, fun() -> Ten = ats:range(T, Low, High) end},
            {reverse, fun() -> [_, _ | _] = ats:range(T, Low, High, [reverse]) end},
            {chunk, fun() ->
                {Ten, _} = ats:range(T, Low, x, [{limit, 10}, {high, unbounded}])
            end},
            {count, fun() -> 10 = ats:range_count(T, Low, High) end},
            {prefix, fun() -> Ten = ats:prefix(T, {foo, 5000, '_'}) end},
            {fold, fun() -> 10 = ats:range_fold(fun(_, C) -> C + 1 end, 0, T, Low, High) end},
            {delete, fun() ->
                10 = ats:range_delete(T, Low, High),
                true = ats:insert(T, Ten)
            end}
        ]
    ],
    true = ats:delete(T).

fastest(Fun, Times) ->
    lists:min([element(1, timer:tc(Fun)) || _ <- lists:seq(1, Times)]).

%% ----- several elements -----

several_elements(_) ->
    Terms = [ats_term_gen:realize(R) || R <- ats_term_gen:one_of_each()],
    [
        begin
            T = ats:new(t, [Type | Options]),
            true = ats:insert(T, [{N, Term, [Term], N} || {N, Term} <- lists:enumerate(Terms)]),
            [
                ?assertEqual(
                    as_looked_up(Type, ats:lookup(T, N), Positions),
                    ats:lookup_elements(T, N, Positions)
                )
             || N <- lists:seq(1, length(Terms)),
                Positions <- [[], [2], [3, 2], [1, 2, 3, 4], [2, 2]]
            ],
            true = ats:delete(T)
        end
     || Type <- ?TYPES, Options <- [[], [compressed]]
    ].

as_looked_up(Type, Objects, Positions) ->
    Lists = [[element(P, O) || P <- Positions] || O <- Objects],
    case {lists:member(Type, [bag, duplicate_bag]), Lists} of
        {true, _} -> Lists;
        {false, [List]} -> List
    end.

%% Also more of them than a normal scheduler is kept for.
elements_of_many_objects(_) ->
    [
        begin
            T = ats:new(t, [Type | Options]),
            true = ats:insert(T, [{key, K, <<"value">>} || K <- lists:seq(1, Count)]),
            [
                ?assertEqual(
                    as_looked_up(Type, ats:lookup(T, key), Positions),
                    ats:lookup_elements(T, key, Positions)
                )
             || Positions <- [[], [2], [3, 2, 1], lists:duplicate(3000 div Count + 2, 2)]
            ],
            %% One that is shorter than the others is enough.
            true = ats:insert(T, {key, short}),
            ?assertError(badarg, ats:lookup_elements(T, key, [1, 3])),
            ?assertEqual([key, short], lists:last(ats:lookup_elements(T, key, [1, 2]))),
            true = ats:delete(T)
        end
     || Type <- [bag, duplicate_bag],
        Options <- [[], [compressed]],
        Count <- [2, 30, 100, 1001, 3000]
    ].

elements_of_counters(_) ->
    [
        begin
            T = ats:new(t, [Type, public | Options]),
            true = ats:insert(T, {c, 0, x, 10}),
            [ats:update_counter(T, c, 1) || _ <- lists:seq(1, 100)],
            ?assertEqual([100, c, 100, 10], ats:lookup_elements(T, c, [2, 1, 2, 4])),
            %% An element that comes twice is the same both times.
            Count = fun() -> [ats:update_counter(T, c, 1) || _ <- lists:seq(1, 20000)], ok end,
            Look = fun() ->
                [
                    begin
                        [A, A] = ats:lookup_elements(T, c, [2, 2]),
                        A
                    end
                 || _ <- lists:seq(1, 20000)
                ]
            end,
            [ok, Seen] = ats_test_lib:parallel([Count, Look]),
            ?assertEqual(lists:sort(Seen), Seen),
            ?assertEqual([20100], ats:lookup_elements(T, c, [2])),
            true = ats:delete(T)
        end
     || Type <- [set, ordered_set], Options <- [[], [compressed]]
    ].

%% ----- wrong arguments -----

errors(_) ->
    T = ats:new(t, [ordered_set]),
    true = ats:insert(T, {k, a}),
    Set = ats:new(t, []),
    Gone = ats:new(t, [ordered_set]),
    true = ats:delete(Gone),
    F = fun(_, Acc) -> Acc end,
    Options = [
        {x, "not a list"}, {[reverse | x], "not a proper list"}, {[x], "invalid options"},
        {[{limit, 0}], "invalid options"}, {[{limit, 1.0}], "invalid options"},
        {[{reverse, 1}], "invalid options"}, {[{low, x}], "invalid options"},
        {[{high, 1, 2}], "invalid options"}, {[{positions, 1}], "invalid options"},
        {[{positions, [0]}], "invalid options"}, {[{positions, [1 | 2]}], "invalid options"},
        {[keys, {positions, [1, x]}], "invalid options"}
    ],
    NoBounds = [{[Option], "invalid options (not only bounds)"}
                || Option <- [reverse, keys, {limit, 1}, {positions, [1]}]],
    Bounds = [{[keys, {End, inclusive}], "invalid options (a prefix has no bounds)"}
              || End <- [low, high]],
    Patterns = [{P, "not a pattern with '_' at its end only"} || P <- [{'_', 1}, #{a => '_'}]],
    NoRanks = [{0, "out of range"}, {1.0, "not an integer"}, {x, "not an integer"}],
    Calls =
        [{range, [T, 1, 2, O], #{4 => Text}} || {O, Text} <- Options] ++
        [{range_fold, [F, 0, T, 1, 2, O], #{6 => Text}} || {O, Text} <- Options] ++
        [{Change, [T, 1, 2, O], #{4 => Text}}
         || Change <- [range_count, range_delete], {O, Text} <- Options ++ NoBounds] ++
        [{range_nth, [T, 1, 2, 1, O], #{5 => Text}} || {O, Text} <- Options ++ NoBounds] ++
        [{range_nth, [T, 1, 2, N, []], #{4 => Text}} || {N, Text} <- NoRanks] ++
        [{range_nth, [T, 1, 2, N], #{4 => Text}} || {N, Text} <- NoRanks] ++
        [{nth, [T, N], #{2 => Text}} || {N, Text} <- NoRanks] ++
        [{prefix, [T, {a, '_'}, O], #{3 => Text}} || {O, Text} <- Options ++ Bounds] ++
        [{prefix, [T, P | O], #{2 => Text}} || {P, Text} <- Patterns, O <- [[], [[]], [[keys]]]] ++
        [{range_fold, [Fun, 0, T, 1, 2 | O], #{1 => "not a function of two arguments"}}
         || Fun <- [x, fun(_) -> x end], O <- [[], [[keys]]]] ++
        [{lookup_elements, [T, k, P], #{3 => "not a list of positions"}}
         || P <- [x, [0], [1 | 2], [1, x], [-1], [1 bsl 70], 1]] ++
        [{lookup_elements, [T, k, [1, 3]],
          #{3 => "a position is greater than the size of the object"}},
         {lookup_elements, [T, x, [1]], #{2 => "not a key that exists in the table"}}] ++
        %% The table counts more than anything else.
        [{Function, Args(Wrong), #{Argument => Text}}
         || {Argument, Function, Args} <- [
                {1, range, fun(X) -> [X, 1, 2] end},
                {1, range, fun(X) -> [X, 1, 2, [nonsense]] end},
                {1, range_count, fun(X) -> [X, 1, 2] end},
                {1, range_count, fun(X) -> [X, 1, 2, nonsense] end},
                {1, range_nth, fun(X) -> [X, 1, 2, 1] end},
                {1, range_nth, fun(X) -> [X, 1, 2, 0, nonsense] end},
                {1, nth, fun(X) -> [X, 1] end},
                {1, nth, fun(X) -> [X, 0] end},
                {1, rank, fun(X) -> [X, 1] end},
                {1, range_delete, fun(X) -> [X, 1, 2] end},
                {1, range_delete, fun(X) -> [X, 1, 2, [keys]] end},
                {1, prefix, fun(X) -> [X, {'_', 1}] end},
                {1, prefix, fun(X) -> [X, {'_', 1}, nonsense] end},
                {3, range_fold, fun(X) -> [F, 0, X, 1, 2] end},
                {3, range_fold, fun(X) -> [nonsense, 0, X, 1, 2, []] end}
            ],
            {Wrong, Text} <- [
                {Gone, "the table identifier does not refer to an existing ATS table"},
                {no_such_table, "the table identifier does not refer to an existing ATS table"},
                {17, "not an atom or a table identifier"},
                {make_ref(), "not a valid table identifier"},
                {Set, "the table identifier refers to an ATS table of a type not supported by"
                      " this operation"}
            ]],
    [
        ?assertEqual({Function, Args, {badarg, Blamed}}, {Function, Args, blame(Function, Args)})
     || {Function, Args, Blamed} <- Calls
    ],
    ?assertEqual([{k, a}], ats:tab2list(T)).

%% Returns the text of an exception for each argument. The exception comes from the function that
%% was called.
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

access(_) ->
    Test = self(),
    Owner = spawn_link(fun() ->
        Test ! [ats:new(t, [ordered_set, P]) || P <- [private, protected, public]],
        receive
            stop -> ok
        end
    end),
    [Private, Protected, Public] =
        receive
            Tables -> Tables
        end,
    Reads = [
        {range, fun(T) -> [T, 1, 2] end},
        {range, fun(T) -> [T, 1, 2, [keys]] end},
        {range, fun(T) -> [T, 1, 2, [{limit, 1}]] end},
        {range, fun(T) -> [T, 1, 2, nonsense] end},
        {range_count, fun(T) -> [T, 1, 2] end},
        {range_nth, fun(T) -> [T, 1, 2, 1] end},
        {nth, fun(T) -> [T, 0] end},
        {rank, fun(T) -> [T, 1] end},
        {prefix, fun(T) -> [T, '_'] end},
        {lookup_elements, fun(T) -> [T, k, [1]] end}
    ],
    Writes = [{range_delete, fun(T) -> [T, 1, 2] end}, {range_delete, fun(T) -> [T, 1, 2, x] end}],
    Denied = "the table identifier refers to an ATS table with insufficient access rights",
    [
        ?assertEqual({Function, {badarg, #{1 => Denied}}}, {Function, blame(Function, Args(T))})
     || {T, Calls} <- [{Private, Reads ++ Writes}, {Protected, Writes}], {Function, Args} <- Calls
    ],
    ?assertEqual([], ats:range(Protected, 1, 2, [keys])),
    ?assertEqual([], ats:prefix(Protected, '_')),
    ?assertEqual(0, ats:range_delete(Public, 1, 2)),
    unlink(Owner),
    ats_test_lib:kill(Owner).

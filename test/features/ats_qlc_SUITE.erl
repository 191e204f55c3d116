%% Queries of `qlc' over tables: the same results, explained in the same words, as over those of
%% `ets', and no more read than the conditions on the key ask for.
-module(ats_qlc_SUITE).

-include_lib("stdlib/include/assert.hrl").
-include_lib("stdlib/include/qlc.hrl").
-include_lib("proper/include/proper.hrl").

-export([all/0, suite/0]).
-export([
    queries/1,
    random_queries/1,
    traversals/1,
    key_like_the_end/1,
    joins/1,
    joins_with_ets/1,
    chunks/1,
    explanations/1,
    ranges_are_pushed_down/1,
    fixation_ends/1,
    concurrent_changes/1,
    walked_again/1,
    walks_that_are_left/1,
    wrong_options/1,
    lost_tables/1
]).

-define(TYPES, [set, ordered_set, bag, duplicate_bag]).

suite() -> [{timetrap, {minutes, 15}}].

all() ->
    [
        queries,
        random_queries,
        traversals,
        key_like_the_end,
        joins,
        joins_with_ets,
        chunks,
        explanations,
        ranges_are_pushed_down,
        fixation_ends,
        concurrent_changes,
        walked_again,
        walks_that_are_left,
        wrong_options,
        lost_tables
    ].

subject() -> ats_oracle:subject().

%% ----- queries -----

objects() ->
    [
        {1, a, 10}, {1.0, b, 11}, {2, a, 12}, {2, c, 13}, {2, c, 13}, {2.5, d, 14}, {3, a, 15},
        {{x, 1}, a, 16}, {{x, 2}, b, 17}, {{x, 2.0}, c, 18}, {{y, 1}, d, 19},
        {[a, b], a, 20}, {"text", b, 21}, {<<"bin">>, c, 22}, {#{k => 1}, d, 23}
    ] ++ [{N, e, N} || N <- lists:seq(100, 400)].

%% The same query over a table of any module, with and without options.
query(all, M, T, O) -> qlc:q([X || X <- M:table(T, O)]);
query(value, M, T, O) -> qlc:q([K || {K, a, _} <- M:table(T, O)]);
query(same_key, M, T, O) -> qlc:q([X || {2, _, _} = X <- M:table(T, O)]);
query(equal_key, M, T, O) -> qlc:q([X || {K, _, _} = X <- M:table(T, O), K == 2]);
query(identical_key, M, T, O) -> qlc:q([X || {K, _, _} = X <- M:table(T, O), K =:= 1.0]);
query(several_keys, M, T, O) ->
    qlc:q([X || {K, _, _} = X <- M:table(T, O), K =:= 3 orelse K =:= 150 orelse K =:= none]);
query(nested_key, M, T, O) -> qlc:q([X || {{x, 2}, _, _} = X <- M:table(T, O)]);
query(nested_equal, M, T, O) -> qlc:q([X || {K, _, _} = X <- M:table(T, O), K == {x, 2}]);
query(part_of_key, M, T, O) -> qlc:q([V || {{x, N}, V, _} <- M:table(T, O), N > 1]);
query(map_key, M, T, O) -> qlc:q([X || {#{k := 1}, _, _} = X <- M:table(T, O)]);
query(bounds, M, T, O) -> qlc:q([K || {K, _, _} <- M:table(T, O), K > 150, K =< 160]);
query(function, M, T, O) -> qlc:q([K || {K, _, N} <- M:table(T, O), is_integer(N), odd(N)]);
query(made, M, T, O) -> qlc:q([{V, [N | K]} || {K, V, N} <- M:table(T, O), N < 20]);
query(unique, M, T, O) -> qlc:q([V || {_, V, _} <- M:table(T, O)], unique);
query(cached, M, T, O) ->
    qlc:q([{A, B} || A <- [1, 2], {_, e, B} <- M:table(T, O), B < 103], cache);
query(nested, M, T, O) ->
    Inner = qlc:q([{K, V} || {K, V, _} <- M:table(T, O), V =/= e]),
    qlc:q([K || {K, d} <- Inner]);
query(nothing, M, T, O) -> qlc:q([X || {no, such, pattern} = X <- M:table(T, O)]).

odd(N) -> N rem 2 =:= 1.

names() ->
    [
        all, value, same_key, equal_key, identical_key, several_keys, nested_key, nested_equal,
        part_of_key, map_key, bounds, function, made, unique, cached, nested, nothing
    ].

queries(_) ->
    [
        compare(Type, fun(M, T) ->
            [
                {Name, O, result(M, T, qlc:e(query(Name, M, T, O)))}
             || Name <- names(),
                O <- [[], [{n_objects, 1}], [{n_objects, 7}], {traverse, first_next},
                    [{n_objects, default}, {traverse, last_prev}], {traverse, select}]
            ]
        end)
     || Type <- ?TYPES
    ],
    ok.

%% Runs the same with a table of each module that holds the same objects.
compare(Type, Function) ->
    [Expected, Found] = [
        begin
            T = Module:new(numbers, [Type, named_table]),
            [true = Module:insert(T, Object) || Object <- objects()],
            Result = Function(Module, T),
            ?assertEqual(false, Module:info(T, safe_fixed)),
            Module:delete(T),
            Result
        end
     || Module <- [ets, subject()]
    ],
    case {Expected, Found} of
        {[_ | _], [_ | _]} when length(Expected) =:= length(Found) ->
            [?assertEqual(E, F) || {E, F} <- lists:zip(Expected, Found)];
        _ ->
            ?assertEqual(Expected, Found)
    end,
    Found.

%% The order is part of the result if the table has one.
result(M, T, Results) ->
    case M:info(T, type) of
        ordered_set -> Results;
        _ -> sorted(Results)
    end.

%% Also where results are equal but not the same.
sorted(Results) ->
    lists:sort([{erlang:phash2(R), R} || R <- Results]).

%% Conditions made of comparisons on keys and values, as text.
random_queries(_) ->
    Compared = oneof(["==", "=:=", "/=", "<", ">", "=<", ">="]),
    Constant = oneof([
        "1", "1.0", "2", "{x, 1}", "{x, 2}", "[]", "150", "160", "a", "<<\"bin\">>"
    ]),
    Variable = oneof(["K", "V", "N", "K", "K"]),
    Term = ?LET(
        {V, C, K, Turned},
        {Variable, Compared, Constant, boolean()},
        case Turned of
            true -> [K, " ", C, " ", V];
            false -> [V, " ", C, " ", K]
        end
    ),
    Filter = oneof([
        Term,
        ?LET({A, B}, {Term, Term}, ["(", A, ") andalso (", B, ")"]),
        ?LET({A, B}, {Term, Term}, ["(", A, ") orelse (", B, ")"]),
        ?LET(A, Term, ["not (", A, ")"])
    ]),
    Pattern = oneof(["{K, V, N}", "{K, a = V, N}", "{{x, K}, V, N}", "{K, V, N} = {_, _, _}"]),
    Property = ?FORALL(
        {Type, P, Filters, Result},
        {oneof(?TYPES), Pattern, list(Filter), oneof(["{K, V, N}", "K", "[N, V]"])},
        begin
            Text = fun(M) ->
                lists:flatten([
                    "[", Result, " || ", P, " <- ", atom_to_list(M), ":table(numbers)",
                    [[", ", F] || F <- Filters], "]."
                ])
            end,
            Same = fun(M, T) ->
                Handle = qlc:string_to_handle(Text(M)),
                try qlc:e(Handle) of
                    Results -> result(M, T, Results)
                catch
                    error:Reason -> {error, Reason}
                end
            end,
            try compare(Type, Same) of
                _ -> true
            catch
                _:Difference ->
                    ct:pal("~s~n~p", [Text(m), Difference]),
                    false
            end
        end
    ),
    ?assert(proper:quickcheck(Property, [{numtests, 150}, {max_size, 3}, {to_file, user}])).

traversals(_) ->
    [
        compare(Type, fun(M, T) ->
            Forwards = qlc:e(M:table(T, {traverse, first_next})),
            Backwards = qlc:e(M:table(T, {traverse, last_prev})),
            Spec = [{{'$1', '$2', '$3'}, [{'<', '$3', 15}], [{{'$2', '$1'}}]}],
            Selected = qlc:e(M:table(T, [{traverse, {select, Spec}}, {n_objects, 2}])),
            Filtered = qlc:e(
                qlc:q([K || {a, K} <- M:table(T, [{traverse, {select, Spec}}])])
            ),
            ?assertEqual(lists:sort(Forwards), lists:sort(Backwards)),
            Type =:= ordered_set andalso
                ?assertEqual(Forwards, lists:reverse(Backwards)),
            [result(M, T, L) || L <- [Forwards, Backwards, Selected, Filtered]]
        end)
     || Type <- ?TYPES
    ],
    ok.

%% A key that looks like the end of the table: nothing behind it is lost without a word.
key_like_the_end(_) ->
    S = subject(),
    Objects = [{'$end_of_table', 1}, {a, 2}, {b, 3}],
    [
        begin
            T = S:new(t, [Type]),
            true = S:insert(T, Objects),
            ?assertEqual(Objects, lists:sort(qlc:e(S:table(T)))),
            case {Type, answer(qlc, e, [S:table(T, {traverse, Way})])} of
                {ordered_set, Answer} -> ?assertEqual({error, badarg}, Answer);
                _ -> ?assertEqual(Objects, lists:sort(qlc:e(S:table(T, {traverse, Way}))))
            end,
            ?assertEqual(false, S:info(T, safe_fixed)),
            S:delete(T)
        end
     || Type <- ?TYPES, Way <- [first_next, last_prev]
    ],
    ok.

joins(_) ->
    [
        compare(Type, fun(M, T) ->
            Other = M:new(other, [OtherType]),
            [true = M:insert(Other, {K, N}) || {K, _, N} <- objects(), N rem 3 =:= 0],
            true = M:insert(Other, {2.0, float}),
            Equal = fun(Join) ->
                qlc:q(
                    [{K1, V, N} || {K1, V, _} <- M:table(T), {K2, N} <- M:table(Other), K1 == K2],
                    {join, Join}
                )
            end,
            Identical = fun(Join) ->
                qlc:q(
                    [{K1, V, N}
                     || {K1, V, _} <- M:table(T), {K2, N} <- M:table(Other), K1 =:= K2],
                    {join, Join}
                )
            end,
            Results =
                [
                    {Join, sorted(qlc:e(Q(Join)))}
                 || Q <- [Equal, Identical], Join <- [any, merge, nested_loop]
                ] ++
                    [
                        {lookup, ats_test_lib:attempt(fun() -> sorted(qlc:e(Equal(lookup))) end)}
                     || Type =:= ordered_set
                    ] ++
                    [{lookup, sorted(qlc:e(Identical(lookup)))}],
            ByValue = qlc:e(
                qlc:q([{A, B} || {A, _, N1} <- M:table(T), {B, N2} <- M:table(Other), N1 =:= N2])
            ),
            M:delete(Other),
            [sorted(ByValue) | Results]
        end)
     || Type <- ?TYPES, OtherType <- ?TYPES
    ],
    ok.

%% A query may be over tables of both modules.
joins_with_ets(_) ->
    [
        begin
            E = ets:new(e, [Type]),
            A = (subject()):new(a, [Type]),
            ets:insert(E, [{K, N} || {K, _, N} <- objects()]),
            true = (subject()):insert(A, [{N, K} || {K, _, N} <- objects()]),
            S = subject(),
            [
                ?assertEqual(
                    lists:sort(qlc:e(qlc:q([{K, N} || {K, N} <- ets:table(E), is_integer(N)]))),
                    lists:sort(
                        qlc:e(
                            qlc:q(
                                [
                                    {K1, N1}
                                 || {K1, N1} <- ets:table(E), {N2, _} <- S:table(A), N1 =:= N2
                                ],
                                [unique, {join, Join}]
                            )
                        )
                    )
                )
             || Join <- [any, merge, lookup, nested_loop]
            ],
            ets:delete(E),
            S:delete(A)
        end
     || Type <- [set, ordered_set]
    ],
    ok.

%% Results come in pieces of the size that was asked for.
chunks(_) ->
    [
        compare(Type, fun(M, T) ->
            Cursor = qlc:cursor(query(all, M, T, [{n_objects, 10}])),
            Pieces = pieces(Cursor),
            ok = qlc:delete_cursor(Cursor),
            Folded = qlc:fold(fun(X, Acc) -> [X | Acc] end, [], query(all, M, T, [])),
            ?assertEqual(lists:sort(lists:append(Pieces)), lists:sort(Folded)),
            [length(P) || P <- Pieces]
        end)
     || Type <- ?TYPES
    ],
    ok.

pieces(Cursor) ->
    case qlc:next_answers(Cursor, 25) of
        [] -> [];
        Piece -> [Piece | pieces(Cursor)]
    end.

%% ----- explanations and plans -----

%% Descriptions of queries by `qlc' are the same but for the name of the module. (The functions that
%% run match specifications on lists are always those of `ets'.)
explanations(_) ->
    [
        compare(Type, fun(M, T) ->
            [
                {Name, O, F, explanation(M, query(Name, M, T, O), F)}
             || Name <- names(),
                O <- [
                    [],
                    {n_objects, 5},
                    [{traverse, first_next}],
                    [{traverse, {select, [{'$1', [], ['$1']}]}}]
                ],
                F <- [[], [{format, abstract_code}], [{depth, 1}], [{n_elements, 2}]],
                Name =/= cached
            ]
        end)
     || Type <- ?TYPES
    ],
    T = (subject()):new(t, []),
    Name = atom_to_list(subject()),
    ?assertEqual(
        Name ++ ":table(" ++ ref_to_list(T) ++ ")",
        unquoted(qlc:info((subject()):table(T)))
    ),
    (subject()):delete(T).

explanation(M, Query, Options) ->
    Text = qlc:info(Query, Options),
    re:replace(
        io_lib:format("~0p", [Text]),
        ["\\b(ets|", atom_to_list(M), ")\\b"],
        "m",
        [global, {return, list}]
    ).

unquoted(Text) -> [C || C <- lists:flatten(Text), C =/= $", C =/= $\n, C =/= $\s].

%% The specification that `qlc' makes of a query with bounds on the key reads only objects between
%% them.
ranges_are_pushed_down(_) ->
    T = ats:new(large, [ordered_set, {keypos, 2}]),
    true = ats:insert(T, [{N rem 10, {N div 100, N}, v} || N <- lists:seq(0, 99999)]),
    true = ats:insert(T, [{N rem 10, N, v} || N <- lists:seq(0, 99999)]),
    Queries = [
        {qlc:q([N || {_, N, _} <- ats:table(T), N >= 5000, N < 5010]), 10, 10},
        {qlc:q([N || {_, N, _} <- ats:table(T), N > 99989.5, is_integer(N)]), 10, 10},
        {qlc:q([N || {X, N, _} <- ats:table(T), 5000 =< N, N < 5100, X =:= 3]), 10, 100},
        {qlc:q([N || {_, N, _} <- ats:table(T), N =:= 7 orelse N > 500 andalso N < 510]), 10, 10},
        {qlc:q([N || {_, {77, N}, _} <- ats:table(T)]), 100, 100},
        {qlc:q([N || {_, {77, N}, _} <- ats:table(T), N > 7750, N =< 7752]), 2, 2},
        {qlc:q([N || {_, {M, N}, _} <- ats:table(T), M =:= 5, N < 503]), 3, 3}
    ],
    [
        begin
            Spec = pushed_down(qlc:info(Query, [{format, abstract_code}])),
            Explained = ats:explain(T, Spec),
            ?assertMatch(#{access := ranges, rows_returned := Returned}, Explained),
            ?assert(maps:get(rows_read, Explained) =< Read + 2),
            ?assertEqual(Returned, length(qlc:e(Query)))
        end
     || {Query, Returned, Read} <- Queries
    ],
    %% And it does make a difference: so many queries would take minutes otherwise.
    {Time, ok} = timer:tc(fun() ->
        lists:foreach(
            fun(N) ->
                Query = qlc:q([K || {_, K, _} <- ats:table(T), K >= N, K < N + 3]),
                ?assertEqual([N, N + 1, N + 2], qlc:e(Query))
            end,
            lists:seq(1, 90000, 90)
        )
    end),
    ct:pal("1000 range queries over 200000 objects: ~b ms", [Time div 1000]),
    ?assert(Time < 60000000),
    ats:delete(T).

%% Returns the match specification in the text of a query.
pushed_down(Code) ->
    Options = find_traverse(Code),
    {ok, {traverse, {select, Spec}}} = Options,
    Spec.

find_traverse({tuple, _, [{atom, _, traverse}, {tuple, _, [{atom, _, select}, Spec]}]}) ->
    {ok, {traverse, {select, normalise(Spec)}}};
find_traverse(Code) when is_tuple(Code) ->
    find_traverse(tuple_to_list(Code));
find_traverse([Head | Tail]) ->
    case find_traverse(Head) of
        none -> find_traverse(Tail);
        Found -> Found
    end;
find_traverse(_) ->
    none.

%% A specification is a call of ets:match_spec... never: it is written out as a term.
normalise(Code) -> erl_parse:normalise(Code).

%% ----- leftovers -----

%% A query that runs fixes a table.
is_read(M, T) -> M:info(T, safe_fixed) =/= false.

%% However a query ends, the table is not read afterwards.
fixation_ends(_) ->
    [
        compare(Type, fun(M, T) ->
            Fails = qlc:q([odd(1 div (N - 250)) || {_, _, N} <- M:table(T)]),
            {'EXIT', {badarith, _}} = ats_test_lib:attempt(fun() -> qlc:e(Fails) end),
            ?assertEqual(false, is_read(M, T)),
            Cursor = qlc:cursor(query(all, M, T, [{n_objects, 2}])),
            [_] = qlc:next_answers(Cursor, 1),
            ?assertEqual(true, is_read(M, T)),
            ok = qlc:delete_cursor(Cursor),
            ats_test_lib:until(fun() -> not is_read(M, T) end, 5000),
            Throw = fun(_, _) -> throw(thrown) end,
            thrown = ats_test_lib:attempt(fun() -> qlc:fold(Throw, [], M:table(T)) end),
            ?assertEqual(false, is_read(M, T))
        end)
     || Type <- ?TYPES
    ],
    ok.

%% Objects that are there throughout are met once, in every kind of traversal.
concurrent_changes(_) ->
    S = subject(),
    Stable = lists:seq(2, 2000, 2),
    [
        begin
            T = ats_test_lib:new(changing, [Type, public]),
            true = S:insert(T, [{N, stable} || N <- Stable]),
            Writer = spawn_link(fun() -> come_and_go(S, T) end),
            [
                ?assertEqual(
                    Stable,
                    lists:sort(qlc:e(qlc:q([N || {N, stable} <- S:table(T, Options)])))
                )
             || Options <- [{traverse, first_next}, {traverse, last_prev}, [], {n_objects, 3}],
                _ <- [1, 2, 3]
            ],
            unlink(Writer),
            ats_test_lib:kill(Writer),
            S:delete(T)
        end
     || Type <- ?TYPES
    ],
    ok.

%% A generator that is walked once more shows later writes, and a walk that goes on shows nothing of
%% it. The same handle may be there twice, and be walked by a filter.
walked_again(_) ->
    [
        compare(Type, fun(M, T) ->
            M:delete_all_objects(T),
            M:insert(T, [{N, v, N} || N <- lists:seq(1, 3)]),
            Handle = M:table(T, Options),
            Write = fun(X) ->
                ?assertEqual(true, is_read(M, T)),
                M:insert(T, {X, v, X})
            end,
            Inner = qlc:e(
                qlc:q([{X, K} || X <- [11, 12], Write(X), {K, _, _} <- Handle], {max_lookup, 0})
            ),
            Twice = qlc:e(qlc:q([{A, B} || {A, _, _} <- Handle, {B, _, _} <- Handle, A =/= B])),
            Filtered = qlc:e(
                qlc:q([A || {A, _, _} <- Handle, A < length(qlc:e(qlc:q([B || B <- Handle])))])
            ),
            Looked = qlc:e(qlc:q([K || X <- [21, 22], Write(X), {K, _, _} <- Handle, K =:= X])),
            [result(M, T, L) || L <- [Inner, Twice, Filtered, Looked]]
        end)
     || Type <- ?TYPES, Options <- [[], {traverse, first_next}, {traverse, last_prev}]
    ],
    S = subject(),
    T = S:new(t, [ordered_set]),
    true = S:insert(T, [{N} || N <- lists:seq(1, 1000)]),
    Add = fun(N) -> S:insert(T, {N + 1000}) end,
    ?assertEqual(
        lists:seq(1, 1000), qlc:e(qlc:q([N || {N} <- S:table(T, {n_objects, 10}), Add(N)]))
    ),
    ?assertEqual(2000, length(qlc:e(S:table(T)))),
    ?assertEqual(0, maps:get(queries, S:info(T, snapshots))),
    S:delete(T).

%% A join stops to walk through one side when the other has no more. The moments of such walks do
%% not pile up until the end of the query, and none is left then.
walks_that_are_left(_) ->
    S = subject(),
    [Short, Long] = Tables = [S:new(t, [ordered_set]) || _ <- [1, 2]],
    true = S:insert(Short, [{N} || N <- lists:seq(1, 5)]),
    true = S:insert(Long, [{N} || N <- lists:seq(1, 500)]),
    Count = fun() -> maps:get(queries, S:info(Long, snapshots)) end,
    Seen = fun(_) -> put(most, max(Count(), get(most))), true end,
    put(most, 0),
    Query = qlc:q(
        [
            {X, A}
         || X <- lists:seq(1, 5000),
            {A} <- S:table(Short),
            {B} <- S:table(Long, {n_objects, 10}),
            A =:= B,
            Seen(X)
        ],
        {join, merge}
    ),
    ?assertEqual(25000, length(qlc:e(Query))),
    ?assert(get(most) < 2500),
    ?assertEqual(0, Count()),
    [S:delete(T) || T <- Tables].

come_and_go(S, T) ->
    true = S:insert(T, {2 * rand:uniform(1000) + 1, x}),
    true = S:delete(T, 2 * rand:uniform(1000) + 1),
    come_and_go(S, T).

wrong_options(_) ->
    Wrong = [
        [{n_objects, 0}], [{n_objects, a}], [{n_objects, 1.0}], [{traverse, a}],
        [{traverse, {select}}], [{traverse, {select, a, b}}], [{unknown, 1}], [n_objects],
        [{n_objects, 1} | a], [a | b], a, {}, {traverse, a}, {n_objects, 0},
        [{traverse, select}, {traverse, select}], [{n_objects, 1}, {n_objects, 2}],
        [{key_equality, '=='}], 17, <<>>, [[]], #{}
    ],
    [
        begin
            Answers = [
                begin
                    T = M:new(t, [Type]),
                    Answer = answer(M, table, [T, O]),
                    M:delete(T),
                    Answer
                end
             || M <- [ets, subject()]
            ],
            ?assertMatch({_, [Same, Same]}, {O, Answers})
        end
     || O <- Wrong, Type <- [set, ordered_set]
    ],
    [
        ?assertEqual({A, answer(ats_reference, table, A)}, {A, answer(subject(), table, A)})
     || T <- [1, "name", {}, <<>>, no_such_table], A <- [[T], [T, []], [T, a]]
    ],
    S = subject(),
    T = S:new(t, []),
    %% Arguments for which `ets' raises undocumented exceptions.
    ?assertEqual({error, badarg}, answer(S, table, [T, [{n_objects}]])),
    {fail, error, badarg, [{S, table, [T, a], _} | _] = Stack} = ats_oracle:call(S, table, [T, a]),
    Text = erl_error:format_exception(error, badarg, Stack),
    ?assertMatch([_ | _], string:find(Text, "argument 2: invalid options")),
    S:delete(T).

%% Handles outlive tables; queries over them do not succeed.
lost_tables(_) ->
    [Same, Same] = [
        begin
            T = M:new(t, [ordered_set]),
            true = M:insert(T, [{N, N} || N <- lists:seq(1, 100)]),
            Handle = M:table(T, {n_objects, 10}),
            Cursor = qlc:cursor(qlc:q([X || X <- Handle])),
            [_] = qlc:next_answers(Cursor, 1),
            M:delete(T),
            Next = ats_test_lib:attempt(fun() -> qlc:next_answers(Cursor, 50) end),
            {error_class(Next), answer(qlc, e, [Handle])}
        end
     || M <- [ets, subject()]
    ],
    {badarg, {error, badarg}} = Same,
    ok.

error_class({'EXIT', {badarg, _}}) -> badarg;
error_class({'EXIT', {{badarg, _}, _}}) -> badarg;
error_class(Other) -> Other.

answer(Module, Function, Arguments) ->
    try apply(Module, Function, Arguments) of
        _ -> ok
    catch
        Class:Reason -> {Class, Reason}
    end.

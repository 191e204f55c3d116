%% Match specifications have the same effect on tables of `ats' as on those of `ets'.
-module(ats_select_SUITE).

-include_lib("stdlib/include/assert.hrl").
-include_lib("ats/include/ms_transform.hrl").

-export([all/0, suite/0]).
-export([
    skipped_in_bodies/1,
    type_tests/1,
    chunks/1,
    chunk_shapes/1,
    objects_of_a_key_in_order/1,
    large_bag/1,
    compressed/1,
    continuations/1,
    continuations_by_name/1,
    new_and_renamed/1,
    compiled/1,
    lists/1,
    funs/1,
    all_at_once/1,
    errors/1,
    access/1,
    several_slices/1,
    writers_beside/1,
    counters_beside/1,
    killed/1,
    ranges_read_little/1
]).

-define(TYPES, [set, ordered_set, bag, duplicate_bag]).

suite() -> [{timetrap, {minutes, 15}}].

all() ->
    [
        skipped_in_bodies,
        type_tests,
        chunks,
        chunk_shapes,
        objects_of_a_key_in_order,
        large_bag,
        compressed,
        continuations,
        continuations_by_name,
        new_and_renamed,
        compiled,
        lists,
        funs,
        all_at_once,
        errors,
        access,
        several_slices,
        writers_beside,
        counters_beside,
        killed,
        ranges_read_little
    ].

%% Parts of bodies that are not evaluated. Some must not be given to `ets', see `ats_ets_faults'.
skipped_in_bodies(_) ->
    {E, A} = both(ordered_set, [], [{K, [K]} || K <- [false, true, 1]]),
    [
        begin
            Spec = [{{'$1', '$2'}, [], [Body]}],
            ?assertEqual(ets:select(E, Spec), ats:select(A, Spec))
        end
     || Body <- [
            {'andalso', '$1', '$2'},
            {'orelse', '$1', '$2'},
            {{{'orelse', '$1', true, x}, '$2'}},
            [{'andalso', '$1', {'orelse', false, '$2'}}]
        ]
    ],
    ?assertEqual(
        [{'EXIT', [1]}, {false, [false]}, {[true], [true]}],
        ats:select(A, [{{'$1', '$2'}, [], [{{{'andalso', '$1', '$2'}, '$2'}}]}])
    ).

%% Every type test, and its opposite, on keys of all types. A plan may leave out keys of other
%% types, but `not' must not make it leave out keys that match.
type_tests(_) ->
    Port = hd(erlang:ports()),
    Keys = [
        0, -1, 1.5, 1 bsl 70, -1.0e300, a, true, false, make_ref(), fun lists:map/3,
        fun(X) -> X end, Port,
        self(), {}, {1}, {true}, #{}, #{a => 1}, [], [1], [1 | 2], <<>>, <<"ab">>, <<1:1>>, <<"ab",
        1:3>>
    ],
    Since27 = [is_boolean, is_bitstring],
    Tests = [
        is_atom, is_float, is_integer, is_list, is_number, is_pid, is_port, is_reference,
        is_tuple, is_map, is_binary, is_function
    ],
    Known = Tests ++ [T || T <- Since27, is_release(27)],
    [
        begin
            {E, A} = both(Type, [], [{K, x} || K <- Keys]),
            [same_types(E, A, Keys, Test) || Test <- Known],
            [
                ?assertError(badarg, M:select(T, [{{'$1', '_'}, [{'not', {Test, '$1'}}], ['$1']}]))
             || Test <- Since27 -- Known, {M, T} <- [{ets, E}, {ats, A}]
            ]
        end
     || Type <- ?TYPES
    ].

is_release(Least) -> list_to_integer(erlang:system_info(otp_release)) >= Least.

same_types(E, A, Keys, Test) ->
    {Are, AreNot} = lists:partition(fun erlang:Test/1, Keys),
    [
        begin
            Spec = [{{'$1', '_'}, [Guard], ['$1']}],
            ?assertEqual({Spec, lists:sort(Expected)}, {Spec, lists:sort(ats:select(A, Spec))}),
            ?assertEqual(lists:sort(Expected), lists:sort(ets:select(E, Spec)))
        end
     || {Expected, Guard} <- [
            {Are, {Test, '$1'}},
            {Are, {Test, {element, 1, '$_'}}},
            {AreNot, {'not', {Test, '$1'}}},
            {Are, {'not', {'not', {Test, '$1'}}}},
            {AreNot, {'not', {'or', {Test, '$1'}, {Test, '$1'}}}},
            {AreNot, {'not', {'andalso', {Test, '$1'}, true}}},
            {AreNot, {'==', {Test, '$1'}, false}},
            {AreNot, {'xor', {Test, '$1'}, true}},
            {[], {'and', {Test, '$1'}, {'not', {Test, '$1'}}}},
            {Keys, {'orelse', {Test, '$1'}, {'not', {Test, '$1'}}}},
            {[K || K <- AreNot, K > a], {'and', {'not', {Test, '$1'}}, {'>', '$1', a}}}
        ]
    ].

chunks(_) ->
    Objects = [{K, K rem 7} || K <- lists:seq(1, 1000)],
    [
        begin
            {E, A} = both(Type, [], Objects),
            Spec = [{{'$1', '$2'}, [{'<', '$2', 3}], ['$1']}],
            [
                ?assertEqual(
                    order(Type, rest(ets, F, ets:F(E, Spec, N), N)),
                    order(Type, rest(ats, F, ats:F(A, Spec, N), N))
                )
             || F <- [select, select_reverse], N <- [1, 2, 7, 100, 10000]
            ],
            ?assertEqual(
                order(Type, rest(ets, match, ets:match(E, {'$1', 3}, 9), 9)),
                order(Type, rest(ats, match, ats:match(A, {'$1', 3}, 9), 9))
            ),
            ?assertEqual(
                order(Type, rest(ets, match_object, ets:match_object(E, {'_', 3}, 9), 9)),
                order(Type, rest(ats, match_object, ats:match_object(A, {'_', 3}, 9), 9))
            )
        end
     || Type <- ?TYPES
    ].

%% The chunks of an ordered_set have the same boundaries, and the last one says so in the same way.
chunk_shapes(_) ->
    {E, A} = both(ordered_set, [], [{K, x} || K <- lists:seq(1, 20)]),
    Specs = [
        [{'_', [], ['$_']}],
        [{{'$1', '_'}, [{'>', '$1', 3}], ['$1']}],
        [{{7, '_'}, [], ['$_']}],
        [{{21, '_'}, [], ['$_']}],
        [{foo, [], ['$_']}],
        []
    ],
    [
        ?assertEqual(
            {Spec, N, shapes(ets, F, ets:F(E, Spec, N))},
            {Spec, N, shapes(ats, F, ats:F(A, Spec, N))}
        )
     || Spec <- Specs, N <- [1, 3, 5, 17, 20, 21], F <- [select, select_reverse]
    ].

shapes(_Module, _Function, '$end_of_table') -> ['$end_of_table'];
shapes(Module, Function, {Results, '$end_of_table'}) ->
    %% Also a continuation.
    '$end_of_table' = Module:Function('$end_of_table'),
    [Results];
shapes(Module, Function, {Results, Continuation}) ->
    [Results, more | shapes(Module, Function, Module:Function(Continuation))].

objects_of_a_key_in_order(_) ->
    [
        begin
            Objects = [{K, N} || N <- lists:seq(1, 30), K <- [a, b, c]],
            {_, A} = both(Type, [], Objects),
            All = ats:select(A, [{'_', [], ['$_']}]),
            Chunks = rest(ats, select, ats:select(A, [{'_', [], ['$_']}], 4), 4),
            [
                ?assertEqual(
                    [{K, N} || N <- lists:seq(1, 30)], [O || {Key, _} = O <- List, Key =:= K]
                )
             || K <- [a, b, c], List <- [All, Chunks]
            ]
        end
     || Type <- [bag, duplicate_bag]
    ].

%% One key with so many objects that a slice ends among them.
large_bag(_) ->
    N = 20000,
    [
        begin
            A = ats:new(a, [Type, public]),
            true = ats:insert(A, [{k, I, I rem 10} || I <- lists:seq(1, N)]),
            true = ats:insert(A, [{other, I, x} || I <- lists:seq(1, 10)]),
            Keep = [{k, I, I rem 10} || I <- lists:seq(1, N), I rem 10 =/= 3],
            ?assertEqual(N, length(ats:match_object(A, {k, '_', '_'}))),
            ?assertEqual(N + 10, ats:select_count(A, [{'_', [], [true]}])),
            Third = ats:select(A, [{{'_', '$1', 3}, [], ['$1']}], 100),
            ?assertEqual(
                [I || I <- lists:seq(1, N), I rem 10 =:= 3], rest(ats, select, Third, 100)
            ),
            ?assertEqual(N div 10, ats:select_delete(A, [{{k, '_', 3}, [], [true]}])),
            ?assertEqual(Keep, ats:lookup(A, k)),
            case Type of
                bag ->
                    ok;
                duplicate_bag ->
                    Replace = [{{k, '$1', 4}, [], [{{k, '$1', four}}]}],
                    ?assertEqual(N div 10, ats:select_replace(A, Replace)),
                    Four = fun({k, I, 4}) -> {k, I, four}; (O) -> O end,
                    ?assertEqual(lists:map(Four, Keep), ats:lookup(A, k)),
                    true = ats:delete_object(A, {k, 4, four}),
                    true = ats:insert(A, {k, 14, four}),
                    true = ats:delete_object(A, {k, 14, four}),
                    Left = [O || {_, I, _} = O <- lists:map(Four, Keep), I =/= 4, I =/= 14],
                    ?assertEqual(Left, ats:lookup(A, k))
            end,
            _ = ats:select_delete(A, [{{k, '_', '_'}, [], [true]}]),
            ?assertEqual([], ats:lookup(A, k)),
            ?assertEqual(10, ats:info(A, size)),
            ats:delete(A)
        end
     || Type <- [bag, duplicate_bag]
    ].

compressed(_) ->
    Objects = [{K, lists:duplicate(20, K rem 5), "text"} || K <- lists:seq(1, 300)],
    [
        begin
            {E, A} = both(Type, [compressed], Objects),
            Specs = [
                [{{'$1', '$2', '_'}, [{'==', {hd, '$2'}, 3}], [{{'$1', '$2'}}]}],
                [{{'$1', '_', "text"}, [{'<', '$1', 9}], ['$_']}]
            ],
            [
                ?assertEqual(order(Type, ets:select(E, S)), order(Type, ats:select(A, S)))
             || S <- Specs
            ],
            Delete = [{{'$1', '_', '_'}, [{'<', '$1', 100}], [true]}],
            ?assertEqual(99, ats:select_delete(A, Delete)),
            99 = ets:select_delete(E, Delete),
            case Type of
                bag ->
                    ok;
                _ ->
                    Replace = [{{'$1', '$2', '_'}, [], [{{'$1', "other", '$2'}}]}],
                    ?assertEqual(ets:select_replace(E, Replace), ats:select_replace(A, Replace))
            end,
            ?assertEqual(lists:sort(ets:tab2list(E)), lists:sort(ats:tab2list(A)))
        end
     || Type <- ?TYPES
    ].

continuations(_) ->
    All = [{'_', [], ['$_']}],
    [
        begin
            A = ats:new(continuations, [Type, named_table, public]),
            true = ats:insert(A, [{K} || K <- lists:seq(1, 10)]),
            %% A continuation belongs to the table, which is selected from by its identifier.
            {First, C} = ats:select(ats:whereis(A), All, 4),
            moved = ats:rename(A, moved),
            _ = ats:new(continuations, [Type, named_table]),
            Rest = rest(ats, select, ats:select(C), 4),
            ?assertEqual([{K} || K <- lists:seq(1, 10)], lists:sort(First ++ Rest)),
            ?assertEqual(Rest, rest(ats, match_object, ats:match_object(C), 4)),
            ?assertEqual(Rest, rest(ats, match, ats:match(C), 4)),
            ?assertEqual(Rest, rest(ats, select_reverse, ats:select_reverse(C), 4)),
            %% A continuation can be kept as a binary and repaired.
            Kept = binary_to_term(term_to_binary(C)),
            Repaired = ats:repair_continuation(Kept, All),
            ?assertEqual(Rest, rest(ats, select, ats:select(Repaired), 4)),
            Broken = setelement(4, C, make_ref()),
            ?assertError(badarg, ats:select(Broken)),
            Mended = ats:repair_continuation(Broken, All),
            ?assertEqual(Rest, rest(ats, select, ats:select(Mended), 4)),
            ?assertEqual('$end_of_table', ats:repair_continuation('$end_of_table', All)),
            ?assertError(function_clause, ats:repair_continuation(nonsense, All)),
            %% Keys may come and go in between, also the one where it stopped.
            [true = ats:delete(moved, K) || {K} <- First],
            ?assertEqual(Rest, rest(ats, select, ats:select(C), 4)),
            true = ats:delete(moved),
            ?assertError(badarg, ats:select(C)),
            true = ats:delete(continuations)
        end
     || Type <- ?TYPES
    ],
    [
        ?assertError(badarg, ats:F(Nonsense))
     || F <- [select, select_reverse, match, match_object],
        Nonsense <- [x, {}, {x, y, 1, z, []}, {x, {up, 0, start}, 1, make_ref(), []}, 17]
    ].

%% A continuation goes on with the table, or with the one that has its name then, as that of `ets'.
continuations_by_name(_) ->
    Rename = fun(M) -> moved = M:rename(continuations, moved) end,
    Make = fun(Options) ->
        fun(M) ->
            continuations = M:new(continuations, [named_table | Options]),
            true = M:insert(continuations, [{K, K, new} || K <- lists:seq(1, 10)])
        end
    end,
    Delete = fun(Name) -> fun(M) -> true = M:delete(Name) end end,
    Steps = [
        Rename,
        Make([ordered_set]),
        Delete(moved),
        Delete(continuations),
        Make([ordered_set, {keypos, 2}]),
        Delete(continuations),
        Make([set]),
        Delete(continuations)
    ],
    [
        ?assertEqual(
            by_name(ets, Type, Function, Limit, Steps),
            by_name(ats, Type, Function, Limit, Steps)
        )
     || Type <- ?TYPES,
        Function <- [select, select_reverse, match, match_object],
        Limit <- [1, 4, 9]
    ].

%% Returns the results of a continuation after each step, without those that have no order.
by_name(M, Type, Function, Limit, Steps) ->
    continuations = M:new(continuations, [Type, named_table, public]),
    true = M:insert(continuations, [{K, K, old} || K <- lists:seq(1, 10)]),
    What =
        case lists:prefix("match", atom_to_list(Function)) of
            true -> '_';
            false -> [{'_', [], ['$_']}]
        end,
    {_, C} = M:Function(continuations, What, Limit),
    [
        begin
            _ = Step(M),
            try
                {Results, Next} = M:Function(C),
                case Type of
                    ordered_set -> {Results, element(1, M:Function(Next))};
                    _ -> length(Results)
                end
            catch
                error:badarg -> badarg
            end
        end
     || Step <- Steps
    ].

%% Another process may rename a table before the call that makes it has returned.
new_and_renamed(_) ->
    Renamers = [spawn_link(fun renaming/0) || _ <- lists:seq(1, 3)],
    ?assertEqual([], other_names(1_000_000, [])),
    [
        begin
            unlink(Renamer),
            exit(Renamer, kill)
        end
     || Renamer <- Renamers
    ].

renaming() ->
    _ = ats_test_lib:attempt(fun() -> ats:rename(renamed_a, renamed_b) end),
    renaming().

%% Returns the names that tables got instead of `renamed_a'.
other_names(Tries, []) when Tries > 0 ->
    Name = ats:new(renamed_a, [named_table, public]),
    _ = ats_test_lib:attempt(fun() -> ats:delete(renamed_a) end),
    _ = ats_test_lib:attempt(fun() -> ats:delete(renamed_b) end),
    other_names(Tries - 1, [Name || Name =/= renamed_a]);
other_names(_, Others) ->
    Others.

compiled(_) ->
    {E, A} = both(ordered_set, [], [{K, K} || K <- lists:seq(1, 10)]),
    Spec = [{{'$1', '_'}, [{'>', '$1', 7}], ['$1']}],
    Compiled = ats:match_spec_compile(Spec),
    ?assert(ats:is_compiled_ms(Compiled)),
    [
        ?assertNot(ats:is_compiled_ms(T))
     || T <- [Spec, make_ref(), x, ets:match_spec_compile(Spec), A]
    ],
    ?assertEqual(ets:select(E, Spec), ats:select(A, Compiled)),
    {_, Set} = both(set, [{keypos, 2}], [{x, 9}, {8, 8}]),
    ?assertEqual([8, x], lists:sort(ats:select(Set, Compiled))),
    ?assertEqual([8, 9, 10], ats:select(A, Compiled)),
    Parent = self(),
    spawn_link(fun() -> Parent ! ats:select(A, Compiled) end),
    receive Result -> ?assertEqual([8, 9, 10], Result) end,
    [?assertError(badarg, ats:match_spec_compile(S)) || S <- [[], x, [x], [{x, [], []}]]].

lists(_) ->
    Terms = [{1, a}, {2, b}, x, [y], #{}, 3.0, {}],
    Specs = [
        [{'$1', [], ['$1']}],
        [{{'$1', '_'}, [], ['$1']}, {'_', [], [other]}],
        [{x, [], [found]}],
        [{'$1', [{is_list, '$1'}], [{hd, '$1'}]}]
    ],
    [
        ?assertEqual(
            ets:match_spec_run(Terms, ets:match_spec_compile(Spec)),
            ats:match_spec_run(Terms, ats:match_spec_compile(Spec))
        )
     || Spec <- Specs
    ],
    Compiled = ats:match_spec_compile(hd(Specs)),
    ?assertEqual([], ats:match_spec_run([], Compiled)),
    [?assertError(badarg, ats:match_spec_run(L, Compiled)) || L <- [x, [1 | 2]]],
    [?assertError(badarg, ats:match_spec_run([1], C)) || C <- [x, make_ref(), hd(Specs)]],
    [
        ?assertEqual(ets:test_ms(Tuple, Spec), ats:test_ms(Tuple, Spec))
     || Tuple <- [{1, a}, {}], Spec <- Specs ++ [[], [{{'_'}, [], ['$1']}]]
    ].

funs(_) ->
    Bound = 5,
    Spec = ats:fun2ms(fun({K, V}) when K > Bound, is_atom(V) -> [V, K] end),
    ?assertEqual(ets:fun2ms(fun({K, V}) when K > Bound, is_atom(V) -> [V, K] end), Spec),
    {_, A} = both(set, [], [{4, a}, {6, b}, {7, 8}]),
    ?assertEqual([[b, 6]], ats:select(A, Spec)),
    ?assertExit({badarg, {ats, fun2ms, _}}, apply(ats, fun2ms, [fun(X) -> X end])),
    {ok, Tokens, _} = erl_scan:string("ats:fun2ms(fun({A}) -> A end)."),
    {ok, Parsed} = erl_parse:parse_exprs(Tokens),
    ?assertMatch({value, [{{'$1'}, [], ['$1']}], _}, erl_eval:exprs(Parsed, [])).

all_at_once(_) ->
    [
        begin
            {_, A} = both(Type, [], [{K, K} || K <- lists:seq(1, 100)]),
            ?assertEqual(100, ats:select_delete(A, [{'_', [], [true]}])),
            ?assertEqual(0, ats:select_delete(A, [{'_', [], [true]}])),
            true = ats:insert(A, {1, 1}),
            ?assert(ats:match_delete(A, '_')),
            ?assertEqual([], ats:tab2list(A))
        end
     || Type <- ?TYPES
    ].

%% Class, reason and the arguments that are blamed.
errors(_) ->
    Wrong = [x, [x], [{x, [], []}], [{'_', [], ['$1']}], [{'_', [], [true]} | x], {}],
    Limits = [0, -1, x, 1.0, 1 bsl 70],
    Good = [{'_', [], ['$_']}],
    Calls =
        [{F, [S]} || F <- [select_replace, select_count, select_delete], S <- Wrong] ++
        [{F, [S]} || F <- [select, select_reverse], S <- Wrong] ++
        [{F, [x, 1]} || F <- [select, select_reverse]] ++
        [{F, [S, L]} || F <- [select, select_reverse], S <- [Good, x], L <- Limits] ++
        [{F, [P, L]} || F <- [match, match_object], P <- [{'_'}], L <- Limits] ++
        [{select_replace, [[{{'$1', '$2'}, [], [{{'$2', '$1'}}]}]]}],
    [
        begin
            {E, A} = both(Type, [], [{1, 2}]),
            Gone = {ets:new(x, []), ats:new(x, [])},
            true = ets:delete(element(1, Gone)),
            true = ats:delete(element(2, Gone)),
            NoTables = [no_such_table, 17, make_ref()],
            Tables = [{E, A}, Gone | [{No, No} || No <- NoTables]],
            [
                ?assertEqual(
                    {F, Args, blame(fun() -> apply(ets, F, [T1 | Args]) end)},
                    {F, Args, blame(fun() -> apply(ats, F, [T2 | Args]) end)}
                )
             || {F, Args} <- Calls, {T1, T2} <- Tables
            ]
        end
     || Type <- ?TYPES
    ],
    [
        ?assertEqual(blame(fun() -> ets:F(x) end), blame(fun() -> ats:F(x) end))
     || F <- [select, select_reverse, match, match_object, match_spec_compile]
    ].

%% Returns the arguments that an exception blames, as text that does not name the module.
blame(Fun) ->
    try Fun() of
        Result -> {ok, Result}
    catch
        error:Reason:Stack ->
            [{_, _, Args, Info} | _] = Stack,
            Default = #{module => erl_stdlib_errors},
            #{module := Module} = proplists:get_value(error_info, Info, Default),
            true = is_list(Args),
            Texts = maps:map(
                fun(_, Text) ->
                    string:replace(unicode:characters_to_list(Text), "ATS", "ETS", all)
                end,
                ats_oracle:without_hints(Module:format_error(Reason, Stack))
            ),
            {Reason, maps:map(fun(_, Text) -> lists:flatten(Text) end, Texts)}
    end.

access(_) ->
    Parent = self(),
    Owner = spawn_link(fun() ->
        Parent ! [ats:new(x, [P]) || P <- [private, protected, public]],
        receive stop -> ok end
    end),
    [Private, Protected, Public] = receive Tables -> Tables end,
    All = [{'_', [], [true]}, {'_', [], [true]}],
    [?assertError(badarg, ats:F(Private, All)) || F <- [select, select_count, select_delete]],
    [?assertError(badarg, ats:F(Protected, All)) || F <- [select_delete, select_replace]],
    ?assertError(badarg, ats:match_delete(Protected, {x})),
    ?assertEqual([], ats:select(Protected, All)),
    ?assertEqual(0, ats:select_delete(Public, All)),
    Owner ! stop.

%% More than fits in a slice.
several_slices(_) ->
    N = 100000,
    [
        begin
            A = ats:new(x, [Type, public]),
            true = ats:insert(A, [{K, K rem 3} || K <- lists:seq(1, N)]),
            All = ats:select(A, [{{'$1', '_'}, [], ['$1']}]),
            ?assertEqual(lists:seq(1, N), lists:sort(All)),
            Type =:= ordered_set andalso ?assertEqual(lists:seq(1, N), All),
            Reverse = ats:select_reverse(A, [{{'$1', '_'}, [], ['$1']}]),
            ?assertEqual(lists:sort(All), lists:sort(Reverse)),
            ?assertEqual(N div 3, ats:select_count(A, [{{'_', 0}, [], [true]}])),
            {Big, _} = ats:select(A, [{'_', [], ['$_']}], 70000),
            ?assertEqual(70000, length(lists:usort(Big))),
            Type =:= bag orelse
                ?assertEqual(N div 3, ats:select_replace(A, [{{'$1', 0}, [], [{{'$1', zero}}]}])),
            ?assertEqual(N div 3, ats:select_delete(A, [{{'_', 2}, [], [true]}]) - 0),
            ?assertEqual(N - N div 3, ats:info(A, size)),
            _ = ats:select_delete(A, [{{'$1', '_'}, [{'>', '$1', 10}], [true]}]),
            Left = ats:select(A, [{{'$1', '_'}, [], ['$1']}]),
            ?assertEqual([1, 3, 4, 6, 7, 9, 10], lists:sort(Left)),
            ats:delete(A)
        end
     || Type <- ?TYPES
    ].

%% Objects that stay are met exactly once while others come and go.
writers_beside(_) ->
    [
        begin
            A = ats:new(x, [Type, public, {write_concurrency, true}]),
            true = ats:insert(A, [{{stays, K}, K} || K <- lists:seq(1, 5000)]),
            Writer = spawn_link(fun() -> come_and_go(A, 1) end),
            [
                begin
                    Met = [K || {stays, K} <- ats:select(A, [{{'$1', '_'}, [], ['$1']}])],
                    ?assertEqual(lists:seq(1, 5000), lists:sort(Met)),
                    Chunks = rest(ats, match, ats:match(A, {{stays, '$1'}, '_'}, 100), 100),
                    ?assertEqual([[K] || K <- lists:seq(1, 5000)], lists:sort(Chunks)),
                    ?assertEqual(5000, ats:select_count(A, [{{{stays, '_'}, '_'}, [], [true]}])),
                    _ = ats:select_delete(A, [{{{goes, '_'}, '_'}, [], [true]}])
                end
             || _ <- lists:seq(1, 20)
            ],
            unlink(Writer),
            ats_test_lib:kill(Writer),
            ats:delete(A)
        end
     || Type <- ?TYPES
    ].

come_and_go(A, N) ->
    true = ats:insert(A, [{{goes, rand:uniform(20000)}, N} || _ <- lists:seq(1, 10)]),
    true = ats:delete(A, {goes, rand:uniform(20000)}),
    come_and_go(A, N + 1).

%% A counter is counted until the moment its object is deleted or replaced.
counters_beside(_) ->
    [
        begin
            A = ats:new(x, [Type, public]),
            true = ats:insert(A, {c, 0, 0}),
            Counted = fun() -> [ats:update_counter(A, c, 1) || _ <- lists:seq(1, 30000)], ok end,
            Replaced = fun() ->
                [
                    ats:select_replace(A, [{{c, '$1', '$2'}, [], [{{c, '$1', {'+', '$2', 1}}}]}])
                 || _ <- lists:seq(1, 3000)
                ],
                ok
            end,
            _ = ats_test_lib:parallel([Counted, Replaced]),
            ?assertEqual([{c, 30000, 3000}], ats:lookup(A, c))
        end
     || Type <- [set, ordered_set]
    ].

%% A process that is killed in the middle leaves nothing behind.
killed(_) ->
    [
        begin
            A = ats:new(x, [Type, public]),
            true = ats:insert(A, [{K, K} || K <- lists:seq(1, 50000)]),
            [
                begin
                    Pid = spawn(fun() -> busy(A) end),
                    timer:sleep(rand:uniform(10)),
                    ats_test_lib:kill(Pid)
                end
             || _ <- lists:seq(1, 10)
            ],
            ?assertEqual(false, ats:info(A, safe_fixed)),
            ?assertEqual(50000, ats:select_count(A, [{'_', [], [true]}])),
            ats:delete(A)
        end
     || Type <- ?TYPES
    ].

busy(A) ->
    _ = ats:select(A, [{'_', [], ['$_']}]),
    _ = ats:select_delete(A, [{{'_', none}, [], [true]}]),
    busy(A).

%% Bounds of the key, in the head or in the guards, decide how much is read.
ranges_read_little(_) ->
    N = 50000,
    {_, A} = both(ordered_set, [], []),
    true = ats:insert(A, [{{foo, K div 10, K}, bar} || K <- lists:seq(1, N)]),
    Text = fun(Letter, K) -> <<Letter, (integer_to_binary(K))/binary>> end,
    true = ats:insert(A, [{Text(Letter, K), K} || Letter <- "abc", K <- lists:seq(1, 10)]),
    Key = {element, 1, '$_'},
    [
        begin
            #{access := GotAccess, rows_read := Read, rows_returned := Returned} =
                ats:explain(A, Spec),
            ?assertEqual({Spec, Access, Expected}, {Spec, GotAccess, Returned}),
            ?assert({Spec, Read} =< {Spec, MostRead})
        end
     || {Access, Expected, MostRead, Spec} <- [
            {points, 1, 1, [{{{foo, 1, 10}, '_'}, [], [true]}]},
            {points, 0, 1, [{{{foo, 1.0, 10}, '_'}, [], [true]}]},
            {points, 1, 1, [{{'$1', '_'}, [{'=:=', '$1', {{foo, 1, 10}}}], [true]}]},
            {points, 2, 2, [
                {{{foo, 1, 10}, '_'}, [], [true]}, {{{foo, 2, 20}, '_'}, [], [true]}
            ]},
            {ranges, 10, 10, [{{{foo, 77, '_'}, '_'}, [], [true]}]},
            {ranges, 20, 20, [
                {{{foo, '$1', '_'}, '_'}, [{'>=', '$1', 50}, {'<', '$1', 52}], [true]}
            ]},
            {points, 1, 1, [
                {{{foo, '$1', '$2'}, '_'}, [{'=:=', '$1', 50}, {'==', '$2', 503}], [true]}
            ]},
            {ranges, 20, 20, [
                {{{foo, '$1', '_'}, '_'}, [{'or', {'==', '$1', 3}, {'==', 9, '$1'}}], [true]}
            ]},
            {ranges, 9, 9, [
                {{{foo, '$1', '_'}, '_'}, [{'not', {'>=', '$1', 1}}], [true]}
            ]},
            {ranges, 10, 10, [
                {{'$1', '_'}, [{'==', {binary_part, '$1', 0, 1}, <<"b">>}], [true]}
            ]},
            {ranges, 30, 30, [{{'$1', '_'}, [{is_binary, '$1'}], [true]}]},
            {ranges, 1, 1, [{'_', [{'<', Key, {{foo, 0, 2}}}], [true]}]},
            {nothing, 0, 0, [{foo, [], [true]}]},
            {nothing, 0, 0, [{{'$1', '_'}, [{'<', '$1', 3}, {'>', '$1', 5}], [true]}]},
            {ranges, 10, N, [{{{foo, '_', '$1'}, '_'}, [{'<', '$1', 11}], [true]}]},
            {everything, 3, N + 30, [{{'_', 7}, [], [true]}]}
        ]
    ],
    {_, Set} = both(set, [], [{K, K} || K <- lists:seq(1, 1000)]),
    [
        ?assertMatch(
            #{access := points, rows_read := Most, rows_returned := 1}, ats:explain(Set, Spec)
        )
     || {Most, Spec} <- [
            {1, [{{5, '_'}, [], [true]}]},
            {1, [{{'$1', '_'}, [{'=:=', '$1', 5}], [true]}]},
            {1, [{{'$1', '_'}, [{'==', 5.0, '$1'}], [true]}]}
        ]
    ],
    Scan = [{{'_', 5}, [], [true]}],
    ?assertMatch(#{access := everything, rows_read := 1000}, ats:explain(Set, Scan)),
    %% Known the second time, mostly: another scheduler may not know it yet.
    IsKnown = fun(_) -> maps:get(known, ats:explain(Set, [{{'_', 6}, [], [true]}])) end,
    ?assert(lists:any(IsKnown, lists:seq(1, 100))).

%% ----- helpers -----

both(Type, Options, Objects) ->
    E = ets:new(x, [Type, public | Options]),
    A = ats:new(x, [Type, public | Options]),
    [true = M:insert(T, O) || O <- Objects, {M, T} <- [{ets, E}, {ats, A}]],
    {E, A}.

%% Returns all chunks from this one on.
rest(_Module, _Function, '$end_of_table', _Limit) ->
    [];
rest(Module, Function, {Results, Continuation}, Limit) ->
    ?assert(length(Results) =< Limit),
    Results ++ rest(Module, Function, Module:Function(Continuation), Limit).

%% Only an ordered_set has an order.
order(ordered_set, Results) -> Results;
order(_, Results) ->
    [Result || {_, Result} <- lists:sort([{term_to_binary(R), R} || R <- Results])].

%% Match specifications with `ets' as the oracle, and the objects that bounds save from being read.
%%
%% ATS_SELECT_SPECS sets how many specifications are compared (60000 by default), ATS_SELECT_SEED
%% which.
-module(ats_select_oracle_SUITE).

-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0]).
-export([
    random_specs/1,
    families_of_specs/1,
    random_replacements/1,
    not_specifications/1,
    bounded_specs/1,
    oracle_finds_differences/1,
    bounds_of_ordered_tables/1,
    bounds_of_strange_keys/1,
    keys_of_hash_tables/1
]).

-define(OBJECTS, 50000).

suite() -> [{timetrap, {minutes, 10}}].

all() ->
    [
        oracle_finds_differences,
        random_specs,
        families_of_specs,
        random_replacements,
        not_specifications,
        bounded_specs,
        bounds_of_ordered_tables,
        bounds_of_strange_keys,
        keys_of_hash_tables
    ].

%% ----- the oracle -----

random_specs(_) ->
    Specs = list_to_integer(os:getenv("ATS_SELECT_SPECS", "60000")),
    Seed = seed(),
    Counts = ats_test_lib:parallel([
        fun() -> apart(specs, [Specs div 2, Seed + N]) end
     || N <- [1, 2]
    ]),
    Add = fun(A, B) -> maps:merge_with(fun(_, X, Y) -> X + Y end, A, B) end,
    Sum = lists:foldl(Add, #{}, Counts),
    ct:pal("~p", [Sum]),
    #{
        specs := Tried,
        with_results := WithResults,
        of_several_clauses := Several,
        asked_of_ets := Asked
    } = Sum,
    ?assert(Tried >= Specs - 1),
    %% Specifications that match nothing compare little.
    ?assert(WithResults > Tried div 6),
    ?assert(Several > Tried div 6),
    %% Most of them must be compared with `ets', too, and not only with the model.
    ?assert(Asked > Tried div 2),
    {comment, integer_to_list(Tried) ++ " specifications"}.

%% Specifications that differ in their literals share a program.
families_of_specs(_) ->
    Families = list_to_integer(os:getenv("ATS_SELECT_SPECS", "60000")) div 6,
    #{families := Tried, with_results := WithResults} = apart(families, [Families, seed()]),
    ?assert(WithResults > Tried div 3).

random_replacements(_) ->
    #{specs := Tried, refused := Refused, replacing := Replacing} = apart(replacements, [seed()]),
    ?assert(Refused > Tried div 10),
    ?assert(Replacing > Tried div 10).

not_specifications(_) ->
    #{specs := Tried, refused := Refused} = apart(bad_specs, [seed()]),
    ?assert(Refused > Tried div 2).

bounded_specs(_) ->
    #{specs := Tried, reading := Reading, sparing := Sparing} = apart(bounded_specs, [seed()]),
    ?assert(Reading > Tried div 2),
    ?assert(Sparing > Tried div 2).

%% Calls the oracle in a virtual machine of its own. If `ets' brings that machine down in a way that
%% is not known yet, the seed is reported and the other tests go on.
apart(Function, Args) ->
    {ok, Peer, _} = ats_test_lib:start_vm([]),
    try
        peer:call(Peer, ats_select_prop, Function, Args, infinity)
    catch
        error:{difference, Call, Text} ->
            ct:pal("~ts", [Text]),
            error({difference, Call, Args, string:lexemes(Text, "\n")});
        exit:Reason ->
            error({virtual_machine_ended, Function, Args, Reason})
    after
        ats_test_lib:attempt(fun() -> ats_test_lib:stop_vm(Peer) end)
    end.

%% The oracle is worth nothing if it cannot see a difference.
oracle_finds_differences(_) ->
    _ = rand:seed(exsss, 1),
    Table = fun(Type) ->
        #{
            type => Type,
            keypos => 1,
            options => [Type, public],
            objects => {{1, a}, {2, b}},
            parts => {0}
        }
    end,
    Spec = [{{'$1', '_'}, [], ['$1']}],
    ?assertEqual(ok, ats_select_prop:compare(Table(ordered_set), select, Spec)),
    %% The order of results decides which function has answered.
    ?assertMatch(
        {difference, model, {{returned, [1, 2]}, _}, {{returned, [2, 1]}, _}},
        ats_select_prop:compare(Table(ordered_set), select, Spec, fun lists:reverse/1)
    ),
    ?assertMatch(
        {difference, _, _, _},
        ats_select_prop:compare(Table(set), select_count, [{'_', [], [true]}], fun(N) -> N + 1 end)
    ),
    ?assertMatch(
        {difference, _, _, _},
        ats_select_prop:compare(Table(bag), tagged, Spec, fun(L) -> [{1, 1.0} | tl(L)] end)
    ),
    [oracle_finds_excess(Table(Type)) || Type <- [set, ordered_set]].

oracle_finds_excess(#{type := Type} = Table) ->
    Pair = ats_select_prop:new_pair(Table),
    Excess = fun(Guards, Within) ->
        ats_select_prop:excess(Table, Pair, [{{'$1', '_'}, Guards, [true]}], Within)
    end,
    ?assertEqual(none, Excess([{'==', '$1', 2}], fun(Key) -> Key == 2 end)),
    ?assertMatch({difference, _, _, _}, Excess([], fun(Key) -> Key == 2 end)),
    ?assertMatch({difference, _, _, _}, Excess([{'==', '$1', 2}], fun(Key) -> Key > 2 end)),
    %% A hash table is not to be read as a whole, even if nothing else is in it.
    ?assertEqual(Type =:= ordered_set, none =:= Excess([], fun(_) -> true end)),
    ok = ats_select_prop:delete_pair(Pair).

seed() ->
    Seed = list_to_integer(os:getenv("ATS_SELECT_SEED", "2")),
    ct:pal("seed ~b", [Seed]),
    Seed.

%% ----- bounds -----

%% Every form of a bound, in heads and guards: `{Results, Head, Guards}'.
bounds_of_ordered_tables(_) ->
    Numbers = table(ordered_set, fun(N) -> N end),
    lists:foreach(fun(Case) -> reads_little(Numbers, Case) end, [
        {1, {77, '_'}, []},
        {0, {77.0, '_'}, []},
        {1, {'$1', '_'}, [{'=:=', '$1', 77}]},
        {1, {'$1', '_'}, [{'==', '$1', 77.0}]},
        {1, {'$1', '_'}, [{'==', {const, 77}, '$1'}]},
        {9, {'$1', '_'}, [{'<', '$1', 10}]},
        {10, {'$1', '_'}, [{'=<', '$1', 10}]},
        {9, {'$1', '_'}, [{'>', 10, '$1'}]},
        {10, {'$1', '_'}, [{'>=', 10, '$1'}]},
        {9, {'$1', '_'}, [{'>', '$1', ?OBJECTS - 9}]},
        {10, {'$1', '_'}, [{'>=', '$1', ?OBJECTS - 9}]},
        {9, {'$1', '_'}, [{'<', ?OBJECTS - 9, '$1'}]},
        {9, {'$1', '_'}, [{'>', '$1', 100}, {'<', '$1', 110}]},
        {9, {'$1', '_'}, [{'and', {'>', '$1', 100}, {'<', '$1', 110}}]},
        {9, {'$1', '_'}, [{'andalso', {'>', '$1', 100}, {'<', '$1', 110}}]},
        {18, {'$1', '_'}, [{'or', {'<', '$1', 10}, {'>', '$1', ?OBJECTS - 9}}]},
        {18, {'$1', '_'}, [{'orelse', {'<', '$1', 10}, {'>', '$1', ?OBJECTS - 9}}]},
        {9, {'$1', '_'}, [{'not', {'>=', '$1', 10}}]},
        {9, {'$1', '_'}, [{'not', {'or', {'>=', '$1', 110}, {'=<', '$1', 100}}}]},
        {9, '_', [{'<', {element, 1, '$_'}, 10}]},
        {9, {'$1', '_'}, [{'<', '$1', {'+', 7, 3}}]},
        {0, {'$1', '_'}, [{'>', '$1', 10}, {'<', '$1', 5}]},
        {0, {'$1', '_'}, [{is_atom, '$1'}]},
        {0, {'$1', '_'}, [{is_binary, '$1'}]},
        {0, {'$1', '_'}, [{'>', '$1', a}]},
        {0, {a, '_'}, []},
        {0, foo, []},
        {0, {}, []}
    ]),
    reads_little_of(Numbers, 12, [
        {{'$1', '_'}, [{'<', '$1', 10}], [true]},
        {{?OBJECTS, '_'}, [], [true]},
        {{'$1', '_'}, [{'>', '$1', 70}, {'<', '$1', 73}], [true]}
    ]),
    gone(Numbers).

bounds_of_strange_keys(_) ->
    Tuples = table(ordered_set, fun(N) -> {foo, N div 10, N} end),
    lists:foreach(fun(Case) -> reads_little(Tuples, Case) end, [
        {1, {{foo, 7, 77}, '_'}, []},
        {10, {{foo, 7, '_'}, '_'}, []},
        {10, {{foo, 7, '$1'}, '$2'}, []},
        {2, {{foo, 7, '$1'}, '_'}, [{'>', '$1', 77}]},
        {20, {{foo, '$1', '_'}, '_'}, [{'>=', '$1', 70}, {'<', '$1', 72}]},
        {3, {{foo, '$1', '$2'}, '_'}, [{'=:=', '$1', 7}, {'<', '$2', 73}]},
        {10, {'$1', '_'}, [{'>=', '$1', {{foo, 7, 0}}}, {'<', '$1', {const, {foo, 8, 0}}}]},
        {0, {{bar, '_', '_'}, '_'}, []},
        {0, {{foo, '_'}, '_'}, []}
    ]),
    gone(Tuples),
    Nested = table(ordered_set, fun(N) -> {{a, [N div 10, b]}, N} end),
    lists:foreach(fun(Case) -> reads_little(Nested, Case) end, [
        {10, {{{a, [7, b]}, '_'}, '_'}, []},
        {10, {{{a, [7 | '_']}, '_'}, '_'}, []},
        {20, {{{a, ['$1' | '_']}, '_'}, '_'}, [{'>=', '$1', 70}, {'<', '$1', 72}]}
    ]),
    gone(Nested),
    Lists = table(ordered_set, fun(N) -> [N div 10, N] end),
    lists:foreach(fun(Case) -> reads_little(Lists, Case) end, [
        {10, {[7 | '_'], '_'}, []},
        {10, {[7, '_'], '_'}, []},
        {20, {['$1', '_'], '_'}, [{'>=', '$1', 70}, {'<', '$1', 72}]}
    ]),
    gone(Lists),
    Binaries = table(ordered_set, fun(N) -> integer_to_binary(1000000 + N) end),
    lists:foreach(fun(Case) -> reads_little(Binaries, Case) end, [
        {10, {'$1', '_'}, [{'=:=', {binary_part, '$1', 0, 6}, <<"100007">>}]},
        {10, {'$1', '_'}, [{'==', <<"100007">>, {binary_part, '$1', {{0, 6}}}}]},
        {10, {'$1', '_'}, [{'>=', '$1', <<"100007">>}, {'<', '$1', <<"100008">>}]}
    ]),
    gone(Binaries).

keys_of_hash_tables(_) ->
    lists:foreach(
        fun(Type) ->
            T = table(Type, fun(N) -> {a, N} end),
            lists:foreach(fun(Case) -> reads_little(T, Case) end, [
                {1, {{a, 77}, '_'}, []},
                {0, {{a, 77.0}, '_'}, []},
                {1, {'$1', '_'}, [{'=:=', '$1', {{a, 77}}}]},
                {1, {'$1', '_'}, [{'==', '$1', {const, {a, 77.0}}}]},
                {1, '_', [{'==', {element, 1, '$_'}, {{a, 77}}}]},
                {2, {'$1', '_'}, [{'or', {'=:=', '$1', {{a, 77}}}, {'=:=', '$1', {{a, 78}}}}]},
                {0, {'$1', '_'}, [{'=:=', '$1', {{a, 77}}}, {'=:=', '$1', {{a, 78}}}]},
                {0, foo, []}
            ]),
            gone(T)
        end,
        [set, bag, duplicate_bag]
    ).

table(Type, Key) ->
    T = ats:new(bounded, [Type, public]),
    lists:foreach(fun(N) -> ats:insert(T, {Key(N), N}) end, lists:seq(1, ?OBJECTS)),
    put({scan, T}, quickest(fun() -> 0 = ats:select_count(T, [{{'_', none}, [], [true]}]) end)),
    T.

gone(T) ->
    _ = erase({scan, T}),
    true = ats:delete(T).

reads_little(T, {Count, Head, Guards}) ->
    reads_little_of(T, Count, [{Head, Guards, [true]}]).

%% Some twenty of fifty thousand objects are far quicker to find than all are to read.
reads_little_of(T, Count, Spec) ->
    Counting = fun() -> ?assertEqual({Spec, Count}, {Spec, ats:select_count(T, Spec)}) end,
    Bounded = quickest(Counting),
    ?assertMatch({_, Us, Scan} when Us * 10 < Scan, {Spec, Bounded, get({scan, T})}),
    %% Other functions have the same plan.
    Objects = [{Head, Guards, ['$_']} || {Head, Guards, _} <- Spec],
    Listed = quickest(fun() -> Count = length(ats:select(T, Objects)) end),
    ?assertMatch({_, Us, Scan} when Us * 10 < Scan, {Objects, Listed, get({scan, T})}).

%% Returns the least time in microseconds, as disturbances only make it longer.
quickest(Fun) ->
    lists:min([element(1, timer:tc(Fun)) || _ <- lists:seq(1, 5)]).

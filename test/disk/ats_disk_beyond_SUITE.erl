%% The functions of `ats' that `ets' lacks, on tables on disk: taking all objects, ranks, merges.
%% Tables of `ats' with the same contents are the model.
-module(ats_disk_beyond_SUITE).

-include_lib("proper/include/proper.hrl").
-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0, init_per_testcase/2, end_per_testcase/2]).
-export([
    as_in_memory/1,
    merges_of_tables/1,
    empty_tables/1,
    refusals/1,
    merged_by_a_module/1,
    many_pending_keys/1,
    unmergeable_keys/1,
    no_holder_keeps_it_waiting/1,
    all_beside_writers/1,
    killed_callers/1,
    one_moment/1
]).

-define(TYPES, [set, ordered_set, bag, duplicate_bag, ordered_bag, ordered_duplicate_bag]).
-define(ALL, [{'_', [], [true]}]).
-define(KEYS, [0, 1, 1.0, 2, -1, 1 bsl 70, a, b, {a, 1}, {a, 1.0}, "text", <<"bytes">>, [], #{}]).

suite() -> [{timetrap, {minutes, 15}}].

all() ->
    [as_in_memory, merges_of_tables, empty_tables, refusals, merged_by_a_module, many_pending_keys,
     unmergeable_keys, no_holder_keeps_it_waiting, all_beside_writers, killed_callers, one_moment].

init_per_testcase(Case, Config) ->
    ats_disk_lib:begin_case(Case, Config).

end_per_testcase(_, _) ->
    ats_disk_lib:end_case().

%% ----- beside a table in memory -----

as_in_memory(Config) ->
    ok = ats_term_gen:prepare(),
    [run(Config, Type, KeyPos) || Type <- ?TYPES, KeyPos <- [1, 2]],
    ok.

run(Config, Type, KeyPos) ->
    Seed = {erlang:phash2(make_ref()), erlang:phash2(self()), erlang:phash2(Type)},
    ct:log("~p, keypos ~p: seed ~p", [Type, KeyPos, Seed]),
    _ = rand:seed(exsplus, Seed),
    Name = list_to_atom(lists:concat([Type, KeyPos])),
    Options = [{type, Type}, {keypos, KeyPos}, {memory, 1 bsl 17}],
    Dats = ats_disk_lib:open(Config, Name, Options),
    Ats = ats:new(t, [Type, {keypos, KeyPos}]),
    [step(Dats, Ats, KeyPos) || _ <- lists:seq(1, 1500)],
    ok = dats:close(Dats),
    Dats = ats_disk_lib:open(Config, Name, Options),
    ?assertEqual(in_order(Type, ats:tab2list(Ats)), in_order(Type, dats:tab2list(Dats))),
    true = ats:delete(Ats),
    ok = dats:close(Dats).

step(Dats, Ats, KeyPos) ->
    {Function, Arguments} = call(KeyPos, rand:uniform(100)),
    Expected = answer(ats, Function, [Ats | Arguments]),
    %% Functions that read take a snapshot, too.
    IsRead = lists:member(Function, [rank, nth, range_nth]),
    Tables = [Dats | [dats:snapshot(Dats) || IsRead, rand:uniform(4) =:= 1]],
    [
        ?assertEqual({Function, Arguments, Expected},
                     {Function, Arguments, answer(dats, Function, [T | Arguments])})
     || T <- Tables
    ],
    [ok = dats:release(S) || S <- tl(Tables)],
    case rand:uniform(40) of
        1 -> ok = dats:flush(Dats);
        2 -> ok = dats:compact(Dats);
        _ -> ok
    end.

call(_KeyPos, N) when N =< 6 -> {rank, [key()]};
call(_KeyPos, N) when N =< 14 -> {nth, [any_rank()]};
call(_KeyPos, N) when N =< 18 -> {range_nth, [key(), key(), any_rank()]};
call(_KeyPos, N) when N =< 24 -> {range_nth, [key(), key(), any_rank(), pick(bounds)]};
call(_KeyPos, N) when N =< 26 -> {range_count, [key(), key(), pick(bounds)]};
call(KeyPos, N) when N =< 36 ->
    Merge = pick(merge),
    {merge, [key(), operand(Merge), at(KeyPos, Merge)]};
call(KeyPos, N) when N =< 46 ->
    Merge = pick(merge),
    {merge, [key(), operand(Merge), at(KeyPos, Merge), object(KeyPos)]};
call(_KeyPos, 47) -> {merge, [key(), 1, wrong]};
call(_KeyPos, 48) -> {merge, [key(), 1, sum, no_object]};
call(_KeyPos, 49) -> {take_all_objects, []};
call(_KeyPos, 50) -> {select_take, [?ALL]};
call(_KeyPos, N) when N =< 60 -> {delete, [key()]};
call(KeyPos, _N) -> {insert, [object(KeyPos)]}.

key() -> lists:nth(rand:uniform(length(?KEYS)), ?KEYS).

any_rank() ->
    lists:nth(rand:uniform(13), [1, 2, 3, 5, 8, -1, -2, -3, -7, 0, x, 1 bsl 100, -(1 bsl 100)]).

%% Positions of elements that are there, that are not, and that of the key.
at(KeyPos, Merge) ->
    case rand:uniform(8) of
        1 -> {KeyPos, Merge};
        2 -> {4, Merge};
        3 -> Merge;
        _ -> {3 - KeyPos, Merge}
    end.

object(KeyPos) ->
    Value = case rand:uniform(3) of
                1 -> lists:nth(rand:uniform(4), [[], [a, b], #{}, {1, 2, 3, 1}]);
                _ -> rand:uniform(100)
            end,
    case KeyPos of
        1 -> {key(), Value};
        2 -> {Value, key()}
    end.

pick(Function) ->
    {ok, Term} = proper_gen:pick(ats_beyond_gen:Function(), 8),
    Term.

operand(Merge) ->
    {ok, Recipe} = proper_gen:pick(ats_beyond_gen:operand(Merge), 8),
    ats_beyond_gen:cook(Recipe).

%% The answer of a call, as `ats' gives it: `ok' is `true' there. Of a type without order, the order
%% of objects means nothing. An exception is told by its texts.
answer(Module, Function, [T | _] = Arguments) ->
    try apply(Module, Function, Arguments) of
        ok -> true;
        Objects when Function =:= take_all_objects; Function =:= select_take ->
            ?assertEqual(0, Module:info(T, size)),
            ?assertEqual([], Module:tab2list(T)),
            in_order(Module:info(T, type), Objects);
        Answer -> Answer
    catch
        error:Reason:Stack ->
            [{Module, Function, _, _} | _] = Stack,
            Texts = ats_errors:format_error(Reason, Stack),
            {Reason, maps:map(fun(_, Text) -> iolist_to_binary(Text) end, Texts)}
    end.

%% Objects of a key of a bag are in the order in which they were inserted. Here the objects of all
%% keys are sorted, by what they are.
in_order(ordered_set, Objects) ->
    Objects;
in_order(_Type, Objects) ->
    [Object || {_, Object} <- lists:sort([{term_to_binary(Object), Object} || Object <- Objects])].

%% ----- the merge of a table -----

%% `merge/3' is `write/3' without `delete'. Both may be called in turn.
merges_of_tables(Config) ->
    Cases = [
        {sum, [1, 2, 3.5], 6.5, [a, delete]},
        {max, [5, a, 3], a, []},
        {append, ["ab", "c"], "abc", [a, delete]},
        {union, [[a, c], [b, c]], [a, b, c], [[b, a], delete]},
        {statistics, [5, 1, 9], {1, 9, 15, 3}, [a, delete]},
        {{vector, [sum, min]}, [{1, 2}, {4, 5}], {5, 2}, [{1}, delete]},
        {replace, [x, delete], delete, []},
        {{module, ats_sum_merge}, [1, 2, 3], 6, []}
    ],
    [
        begin
            Name = list_to_atom(lists:concat([Type, N])),
            T = ats_disk_lib:open(Config, Name, [{type, Type}, {merge, Merge}]),
            [?assertEqual(ok, dats:merge(T, key, Operand)) || Operand <- Operands],
            ?assertEqual([{key, Expected}], dats:lookup(T, key)),
            Text = <<"not a value that the merge of the table takes">>,
            [?assertEqual(#{3 => Text}, words(fun() -> dats:merge(T, key, Operand) end))
             || Operand <- Wrong],
            ?assertEqual([{key, Expected}], dats:lookup(T, key)),
            [First | Others] = Operands,
            ok = dats:insert(T, {1.0, First}),
            [ok = dats:F(T, 1.0, O) || {F, O} <- lists:zip(ways(Others), Others)],
            ok = dats:flush(T),
            ?assertEqual([{1.0, Expected}], dats:lookup(T, 1.0)),
            ?assertEqual(Type =:= ordered_set, dats:member(T, 1)),
            ok = dats:close(T)
        end
     || {N, {Merge, Operands, Expected, Wrong}} <- lists:enumerate(Cases),
        Type <- [set, ordered_set]
    ],
    %% A merge that is told is not that of the table.
    T = ats_disk_lib:open(Config, both, [{merge, sum}]),
    ok = dats:merge(T, a, 3),
    ?assertEqual(2, dats:merge(T, a, 2, min)),
    ok = dats:merge(T, a, 3),
    ?assertEqual([{a, 5}], dats:lookup(T, a)),
    ?assertEqual(12, dats:merge(T, b, 5, sum, {x, 7, y})),
    ?assertEqual([{b, 12, y}], dats:lookup(T, b)).

ways(Others) -> lists:sublist([write, merge, write], length(Others)).

%% ----- empty, closed, read-only -----

empty_tables(Config) ->
    [
        begin
            T = ats_disk_lib:open(Config, Type, [{type, Type}]),
            ?assertEqual([], dats:take_all_objects(T)),
            [
                begin
                    ?assertEqual(0, dats:rank(T, x)),
                    ['$end_of_table' = dats:nth(T, N) || N <- [1, -1, 1 bsl 100]],
                    ['$end_of_table' = dats:range_nth(T, 1, 9, N) || N <- [1, -1]]
                end
             || lists:prefix("ordered", atom_to_list(Type))
            ],
            ok = dats:insert(T, {1, a}),
            ?assertEqual([{1, a}], dats:take_all_objects(T)),
            ?assertEqual([], dats:take_all_objects(T)),
            ok = dats:close(T),
            T = ats_disk_lib:open(Config, Type, [{type, Type}]),
            ?assertEqual([], dats:take_all_objects(T))
        end
     || Type <- ?TYPES
    ].

words(Call) ->
    try {answer, Call()}
    catch
        error:badarg:Stack ->
            [{dats, _, _, _} | _] = Stack,
            maps:map(fun(_, Text) -> iolist_to_binary(Text) end,
                     ats_oracle:without_hints(ats_errors:format_error(badarg, Stack)))
    end.

refusals(Config) ->
    T = ats_disk_lib:open(Config, t, [{type, ordered_set}]),
    ok = dats:insert(T, [{1, a}, {2, b}]),
    S = dats:snapshot(T),
    Writes = [
        {take_all_objects, []}, {select_take, [?ALL]}, {merge, [1, c]}, {merge, [1, c, last]},
        {merge, [1, c, last, {1, d}]}
    ],
    Reads = [{rank, [2]}, {nth, [2]}, {range_nth, [1, 2, -1]}, {range_nth, [1, 2, -1, []]}],
    Call = fun(Name, {F, A}) -> fun() -> apply(dats, F, [Name | A]) end end,
    Snapshot = <<"the table is a snapshot, which can only be read">>,
    [?assertEqual(#{1 => Snapshot}, words(Call(S, W))) || W <- Writes],
    Results = [1 | lists:duplicate(3, {2, b})],
    ?assertEqual(Results, [(Call(S, R))() || R <- Reads]),
    ok = dats:release(S),
    [?assertMatch(#{1 := <<"the snapshot was released">>}, words(Call(S, R)))
     || R <- Writes ++ Reads],
    ok = dats:close(T),
    [?assertMatch(#{1 := <<_/binary>>}, words(Call(T, C))) || C <- Writes ++ Reads],
    T = ats_disk_lib:open(Config, t, [{access, read}]),
    Directory = dats:info(T, filename),
    Refused = {error, {access_mode, filename:absname(Directory)}},
    [?assertEqual(Refused, ats_test_lib:attempt(fun() -> answered(Call(T, W)) end)) || W <- Writes],
    ?assertEqual(Results, [(Call(T, R))() || R <- Reads]),
    ?assertEqual([{1, a}, {2, b}], dats:tab2list(T)),
    %% Types that have no ranks, or no merges.
    OtherType = <<"the table identifier refers to an ATS table of a type not supported by this "
                  "operation">>,
    Set = ats_disk_lib:open(Config, set, []),
    [?assertEqual(#{1 => OtherType}, words(Call(Set, R))) || R <- Reads],
    Bag = ats_disk_lib:open(Config, bag, [{type, ordered_bag}]),
    [?assertEqual(#{1 => OtherType}, words(Call(Bag, W))) || {merge, _} = W <- Writes],
    Behind = ats_disk_lib:open(Config, behind, [{keypos, 2}]),
    ?assertError(badarg, dats:merge(Behind, 1, a)),
    ?assertEqual([], dats:tab2list(Behind)).

%% An answer that could be a value is the reason of an exit.
answered(Call) ->
    try Call()
    catch exit:Answer -> Answer
    end.

%% ----- values that a module merges -----

merged_by_a_module(Config) ->
    Options = [{type, ordered_set}, {merge, {module, ats_sum_merge}}, {memory, 1 bsl 17}],
    T = ats_disk_lib:open(Config, t, Options),
    Write = fun(_, Sums) ->
        {K, V} = {rand:uniform(60), rand:uniform(5) - 3},
        Count = dats:merge(T, K, V),
        ?assertEqual(ok, Count),
        Sum = maps:get(K, Sums, 0) + V,
        case Sum of
            0 -> maps:remove(K, Sums);
            _ -> Sums#{K => Sum}
        end
    end,
    Round = fun(N) ->
        Sums = lists:foldl(Write, #{}, lists:seq(1, 300)),
        _ = N rem 3 =:= 0 andalso (ok = dats:flush(T)),
        Objects = lists:sort(maps:to_list(Sums)),
        Size = length(Objects),
        [
            begin
                ?assertEqual(Object, dats:nth(T, Rank)),
                ?assertEqual(Object, dats:nth(T, Rank - Size - 1)),
                ?assertEqual(Rank - 1, dats:rank(T, element(1, Object)))
            end
         || {Rank, Object} <- lists:enumerate(Objects), Rank rem 7 =:= N rem 7
        ],
        ?assertEqual('$end_of_table', dats:nth(T, Size + 1)),
        {Key, Sum} = lists:nth(Size div 2, Objects),
        ?assertEqual(Sum + 10, dats:merge(T, Key, 10, sum)),
        ?assertEqual(Sum, dats:merge(T, Key, -10, sum)),
        ?assertEqual(Objects, dats:take_all_objects(T)),
        ?assertEqual([], dats:tab2list(T))
    end,
    lists:foreach(Round, lists:seq(1, 8)).

%% More than the values of a window, in both directions, and keys that count as missing.
many_pending_keys(Config) ->
    T = ats_disk_lib:open(Config, t, [{type, ordered_set}, {merge, {module, ats_sum_merge}}]),
    Fill = fun() ->
        [ok = dats:merge(T, K, V) || V <- [1, -1], K <- lists:seq(1, 6000)],
        [ok = dats:merge(T, K, 5) || K <- lists:seq(10, 6000, 10)]
    end,
    Fill(),
    Objects = [{K, 5} || K <- lists:seq(10, 6000, 10)],
    ?assertEqual({5990, 5}, dats:nth(T, 599)),
    ?assertEqual({20, 5}, dats:nth(T, -599)),
    ?assertEqual(600, dats:range_count(T, 1, 6000)),
    ?assertEqual({3000, 5}, dats:range_nth(T, 1001, 3000, -1)),
    Fill(),
    ?assertEqual([{K, 10} || {K, 5} <- Objects], dats:take_all_objects(T)).

%% Nothing is removed, and the answer tells the key.
unmergeable_keys(Config) ->
    T = ats_disk_lib:open(Config, t, [{type, ordered_set}, {merge, {module, ats_sum_merge}}]),
    [ok = dats:merge(T, K, 1) || K <- [1, 2, bad]],
    ok = dats:merge(T, bad, x),
    ?assertMatch({error, {merge_failed, _, bad, _}}, dats:take_all_objects(T)),
    ?assertMatch({error, {merge_failed, _, bad, _}}, dats:rank(T, "text")),
    ?assertExit({error, {merge_failed, _, bad, _}}, dats:nth(T, 3)),
    ?assertExit({error, {merge_failed, _, bad, _}}, dats:merge(T, bad, 1, sum)),
    ?assertEqual({1, 1}, dats:nth(T, 1)),
    ok = dats:delete(T, bad),
    ?assertEqual([{1, 1}, {2, 1}], dats:take_all_objects(T)).

%% ----- processes -----

%% Snapshots, continuations and folds that never end.
no_holder_keeps_it_waiting(Config) ->
    Objects = [{N, N} || N <- lists:seq(1, 3000)],
    [
        begin
            T = ats_disk_lib:open(Config, Type, [{type, Type}]),
            ok = dats:insert(T, Objects),
            S = dats:snapshot(T),
            {_, Continuation} = dats:select(T, [{'_', [], ['$_']}], 10),
            Test = self(),
            Holder = spawn_link(fun() ->
                dats:foldl(fun(_, _) -> Test ! holds, receive never -> ok end end, ok, T)
            end),
            receive holds -> ok end,
            ok = dats:safe_fixtable(T, true),
            Seen = dats:foldl(
                fun(Object, All) ->
                    All =/= [] orelse begin
                        {Us, Taken} = timer:tc(fun() -> dats:take_all_objects(T) end),
                        ?assertEqual(Objects, lists:sort(Taken)),
                        ?assert(Us < 5_000_000)
                    end,
                    [Object | All]
                end,
                [], T),
            ?assertEqual(Objects, lists:sort(Seen)),
            ?assertEqual(Objects, lists:sort(dats:tab2list(S))),
            ?assertEqual('$end_of_table', dats:select(Continuation)),
            ?assertEqual([], dats:take_all_objects(T)),
            ok = dats:safe_fixtable(T, false),
            unlink(Holder),
            ok = ats_test_lib:kill(Holder),
            ok = dats:close(T)
        end
     || Type <- [set, ordered_set]
    ].

%% Each object comes out once, and lists as a whole.
all_beside_writers(Config) ->
    [
        begin
            T = ats_disk_lib:open(Config, Type, [{type, Type}]),
            Insert = fun(Part) ->
                fun() ->
                    [ok = dats:insert(T, [{{N, I}, N} || I <- [1, 2, 3]])
                     || N <- lists:seq(Part, 4000, 2)],
                    done
                end
            end,
            Test = self(),
            Writers = spawn_link(fun() ->
                Test ! {self(), ats_test_lib:parallel([Insert(1), Insert(2)])}
            end),
            Drains = drain(T, Writers, []),
            [?assertEqual(0, length(Drain) rem 3) || Drain <- Drains],
            Numbers = lists:sort([N || {_, N} <- lists:append(Drains)]),
            ?assertEqual(lists:append([[N, N, N] || N <- lists:seq(1, 4000)]), Numbers),
            ok = dats:close(T)
        end
     || Type <- ?TYPES
    ].

drain(T, Writers, Drains) ->
    receive
        {Writers, [done, done]} -> [dats:take_all_objects(T) | Drains]
    after 0 ->
        drain(T, Writers, [dats:take_all_objects(T) | Drains])
    end.

%% A caller that is killed ends at once, whatever it does, and leaves nothing behind: either all
%% objects are in the table, or none.
killed_callers(Config) ->
    T = ats_disk_lib:open(Config, t, [{type, ordered_set}]),
    Objects = [{N, N} || N <- lists:seq(1, 100000)],
    Calls = [
        fun() -> dats:take_all_objects(T) end,
        fun() -> dats:nth(T, 99999) end,
        fun() -> dats:range_nth(T, 1, 100000, -99999) end,
        fun() -> dats:rank(T, x) end
    ],
    [
        begin
            _ = dats:info(T, size) > 0 orelse (ok = dats:insert(T, Objects)),
            Caller = spawn(Call),
            timer:sleep(Ms),
            {Us, ok} = timer:tc(fun() -> ats_test_lib:kill(Caller) end),
            ?assert(Us < 1_000_000),
            ?assert(lists:member(dats:info(T, size), [0, 100000]))
        end
     || Call <- Calls, Ms <- [0, 1, 3, 10, 30]
    ],
    ok = ats_test_lib:until(
           fun() -> maps:get(snapshots, dats:info(T, stats)) =:= 0 end, 10000).

%% Ranks are those of one moment: the number of the objects does not change here.
one_moment(Config) ->
    T = ats_disk_lib:open(Config, t, [{type, ordered_set}]),
    ok = dats:insert(T, [{{N, 0}, x} || N <- lists:seq(1, 2000)]),
    Move = fun(_) ->
        N = rand:uniform(2000),
        [{{_, I}, x}] = dats:range(T, {N, 0}, {N + 1, -1}),
        %% Two keys at once would be three objects in between, or one.
        ok = dats:insert(T, {{N, I + 1}, x}),
        ok = dats:delete(T, {N, I})
    end,
    Look = fun() ->
        Count = dats:rank(T, {2001, 0}),
        ?assert(Count =:= 2000 orelse Count =:= 2001),
        ?assertMatch({{_, _}, x}, dats:nth(T, 2000)),
        ?assertEqual('$end_of_table', dats:nth(T, -2002))
    end,
    ats_test_lib:beside([Move], 2000, Look).

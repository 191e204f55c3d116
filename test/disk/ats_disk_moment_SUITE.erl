%% Snapshots of tables on disk that programs hold, and the differences of two of them.
-module(ats_disk_moment_SUITE).

-include_lib("stdlib/include/assert.hrl").
-include_lib("stdlib/include/qlc.hrl").

-export([all/0, suite/0, init_per_testcase/2, end_per_testcase/2]).
-export([
    oracle/1,
    merges/1,
    merged_by_a_module/1,
    accounts/1,
    counted_lists/1,
    many/1,
    owners/1,
    ages/1,
    bound/1,
    closed/1,
    misuse/1,
    functions_of_ats/1,
    walks_that_lose_it/1,
    large_differences/1,
    deleted_ranges/1,
    read_only/1
]).

-define(TYPES, [set, ordered_set, bag, duplicate_bag, ordered_bag, ordered_duplicate_bag]).
-define(ALL, [{'_', [], ['$_']}]).
-define(ACCOUNTS, 100).
-define(EACH, 100).

suite() -> [{timetrap, {minutes, 15}}].

all() ->
    [oracle, merges, merged_by_a_module, accounts, counted_lists, many, owners, ages, bound,
     closed, misuse, functions_of_ats, walks_that_lose_it, large_differences, deleted_ranges,
     read_only].

init_per_testcase(Case, Config) ->
    ats_disk_lib:begin_case(Case, Config).

end_per_testcase(_, _) ->
    ats_disk_lib:end_case().

%% Returns the words that an exception has for its arguments.
words(Call) ->
    try
        {answer, Call()}
    catch
        error:badarg:Stack ->
            [{dats, _, _, _} | _] = Stack,
            maps:map(fun(_, Text) -> iolist_to_binary(Text) end,
                     ats_oracle:without_hints(ats_errors:format_error(badarg, Stack)))
    end.

%% ----- results of all reading functions -----

is_ordered(Type) -> lists:member(Type, [ordered_set, ordered_bag, ordered_duplicate_bag]).

%% Returns the results of all chunks.
chunks(_Next, '$end_of_table') -> [];
chunks(Next, {Results, Continuation}) -> [Results | chunks(Next, Next(Continuation))].

%% Returns the objects of the chunks of `bchunk'.
pieces(T, Position) ->
    case dats:bchunk(T, Position) of
        '$end_of_table' -> [];
        {Next, Pieces} -> Pieces ++ pieces(T, Next)
    end.

answers(T, Type, Keys) ->
    Big = [{'_', [{'>', {size, '$_'}, 1}], ['$_']}],
    Calls =
        [{lookup, [T, K]} || K <- Keys] ++
        [{member, [T, K]} || K <- Keys] ++
        [{lookup_element, [T, K, 1]} || K <- Keys] ++
        [{lookup_element, [T, K, 2, none]} || K <- Keys] ++
        [{Step, [T, K]} || K <- Keys, Step <- [next, prev, next_lookup, prev_lookup]] ++
        [{lookup_elements, [T, K, [1, 2]]} || K <- Keys, lists:member(Type, [set, ordered_set])] ++
        [{match_object, [T, {K, '_'}]} || K <- Keys, not is_atom(K)] ++
        [{End, [T]} || End <- [first, last, first_lookup, last_lookup, tab2list]] ++
        [{slot, [T, I]} || I <- [0, 1, 7, 100000]] ++
        [{F, [T, Big]} || F <- [select, select_reverse, select_count]] ++
        [{match, [T, {'$1', '_'}]}, {match_object, [T, '_']},
         {traverse, [T, fun(Object) -> {continue, Object} end]},
         {foldl, [fun(Object, All) -> [Object | All] end, [], T]},
         {foldr, [fun(Object, All) -> [Object | All] end, [], T]}] ++
        [{info, [T, Item]} || Item <- [type, keypos, size, no_objects, no_keys]] ++
        [Call || is_ordered(Type), Call <- ranges(T, Keys)],
    [
        {F, [X || X <- A, X =/= T, not is_function(X)], attempt(fun() -> apply(dats, F, A) end)}
     || {F, A} <- Calls
    ] ++
    [
        {chunks_of_select, chunks(fun dats:select/1, dats:select(T, ?ALL, 7))},
        {chunks_of_select_reverse,
            chunks(fun dats:select_reverse/1, dats:select_reverse(T, ?ALL, 7))},
        {chunks_of_match, chunks(fun dats:match/1, dats:match(T, {'_', '$1'}, 7))},
        {chunks_of_match_object, chunks(fun dats:match_object/1, dats:match_object(T, '_', 7))},
        {bchunk, iolist_to_binary(pieces(T, start))},
        {to_ets, copy(T, Type)},
        {to_ats, to_ats(T, Type)},
        {qlc, qlc:e(qlc:q([O || O <- dats:table(T), tuple_size(O) > 1]))},
        %% The key may be '$end_of_table', behind which nothing is looked for.
        {qlc_steps, attempt(fun() -> qlc:e(dats:table(T, [{traverse, first_next}])) end)},
        {explain, is_map(dats:explain(T, ?ALL))}
    ].

ranges(T, Keys) ->
    Pairs = lists:zip(Keys, lists:reverse(Keys)),
    [{range, [T, A, B]} || {A, B} <- Pairs] ++
    [{range_count, [T, A, B]} || {A, B} <- Pairs] ++
    [{rank, [T, K]} || K <- Keys] ++
    [{nth, [T, N]} || N <- [1, 2, 7, -1, -3, 100000]] ++
    [{range_nth, [T, A, B, N]} || {A, B} <- Pairs, N <- [1, -2]] ++
    [{range, [T, A, B, [reverse, keys]]} || {A, B} <- Pairs] ++
    [{range_fold, [fun(O, All) -> [O | All] end, [], T, A, B]} || {A, B} <- Pairs] ++
    [{prefix, [T, {'_'}]}, {prefix, [T, {a, '_'}]}].

attempt(Call) ->
    try {answer, Call()}
    catch Class:Reason -> {Class, Reason}
    end.

ets_type(Type) when Type =:= ordered_bag; Type =:= ordered_duplicate_bag -> duplicate_bag;
ets_type(Type) -> Type.

%% Returns the objects of a copy in `ets'.
copy(T, Type) ->
    Copy = ets:new(copy, [ets_type(Type)]),
    Copy = dats:to_ets(T, Copy),
    Objects = in_order(ets:tab2list(Copy)),
    true = ets:delete(Copy),
    Objects.

to_ats(T, Type) ->
    Copy = ats:new(copy, [Type]),
    Copy = dats:to_ats(T, Copy),
    Objects = ats:tab2list(Copy),
    true = ats:delete(Copy),
    in_order(Objects).

%% Sorted, also of objects that are equal and not the same.
in_order(Objects) ->
    [Object || {_, Object} <- lists:sort([{term_to_binary(Object), Object} || Object <- Objects])].

%% ----- the oracle -----

%% Snapshots of tables of all types show the table as it was when they were made, by every function
%% and at any later time, and their differences are those of the contents.
oracle(Config) ->
    ok = ats_term_gen:prepare(),
    [oracle(Config, Type) || Type <- ?TYPES],
    ok.

oracle(Config, Type) ->
    Seed = {erlang:phash2(make_ref()), erlang:phash2(self()), erlang:phash2(Type)},
    ct:log("~p: seed ~p", [Type, Seed]),
    _ = rand:seed(exsplus, Seed),
    T = ats_disk_lib:open(Config, Type, [{type, Type}, {memory, 1 bsl 17}]),
    Keys = lists:usort([pick(ats_term_gen:key()) || _ <- lists:seq(1, 60)]),
    Round = fun(N, Before) ->
        [write(T, Type, Keys) || _ <- lists:seq(1, 60)],
        Asked = [lists:nth(rand:uniform(length(Keys)), Keys) || _ <- lists:seq(1, 8)],
        S = dats:snapshot(T),
        Taken = {N, S, Asked, answers(T, Type, Asked), dats:tab2list(T)},
        All = [Taken | Before],
        [check(Type, One) || One <- lists:sublist(All, 2)],
        All
    end,
    All = lists:foldl(Round, [], lists:seq(1, 8)),
    [write(T, Type, Keys) || _ <- lists:seq(1, 60)],
    Check = fun() ->
        [check(Type, One) || One <- All],
        [check_diff(Type, A, B) || A <- All, B <- All]
    end,
    Check(),
    ok = dats:flush(T),
    Check(),
    ok = dats:compact(T),
    Check(),
    ?assertMatch(#{number := 8}, dats:info(T, snapshots)),
    [ok = dats:release(S) || {_, S, _, _, _} <- All],
    ?assertMatch(#{number := 0}, dats:info(T, snapshots)).

check(Type, {N, S, Asked, Expected, _Objects}) ->
    Found = answers(S, Type, Asked),
    Different = [{E, F} || {E, F} <- lists:zip(Expected, Found), E =/= F],
    ?assertEqual({N, Type, []}, {N, Type, lists:sublist(Different, 3)}).

check_diff(Type, {N, First, _, _, Old}, {M, Second, _, _, New}) ->
    Found = dats:diff(First, Second),
    Expected = differences(Type, Old, New),
    ?assertEqual({N, M, [], []}, {N, M, Expected -- Found, Found -- Expected}).

%% Returns the differences of two lists of objects.
differences(Type, Old, New) when Type =:= set; Type =:= ordered_set ->
    IsSame = case Type of
        set -> fun erlang:'=:='/2;
        ordered_set -> fun erlang:'=='/2
    end,
    {Deleted, Inserted} = {Old -- New, New -- Old},
    Find = fun(Object, Objects) ->
        [O || O <- Objects, IsSame(element(1, O), element(1, Object))]
    end,
    [case Find(O, Inserted) of
         [] -> {delete, O};
         [N] -> {change, O, N}
     end || O <- Deleted] ++
    [{insert, N} || N <- Inserted, Find(N, Deleted) =:= []];
differences(_Bag, Old, New) ->
    [{delete, O} || O <- Old -- New] ++ [{insert, N} || N <- New -- Old].

pick(Generator) ->
    {ok, Recipe} = proper_gen:pick(Generator, 8),
    ats_term_gen:realize(Recipe).

object(Keys) ->
    Key = lists:nth(rand:uniform(length(Keys)), Keys),
    case rand:uniform(4) of
        1 -> {Key};
        2 -> {Key, rand:uniform(3)};
        3 -> {Key, pick(ats_term_gen:value())};
        4 -> {Key, rand:uniform(3), binary:copy(<<"long">>, 200)}
    end.

write(T, Type, Keys) ->
    Key = lists:nth(rand:uniform(length(Keys)), Keys),
    case rand:uniform(100) of
        N when N =< 45 ->
            ok = dats:insert(T, object(Keys));
        N when N =< 60 ->
            ok = dats:insert(T, [object(Keys) || _ <- lists:seq(1, rand:uniform(10))]);
        N when N =< 75 ->
            ok = dats:delete(T, Key);
        N when N =< 80 ->
            [dats:delete_object(T, O) || O <- lists:sublist(dats:lookup(T, Key), 1)];
        N when N =< 84 ->
            _ = dats:take(T, Key);
        N when N =< 87 ->
            _ = dats:select_delete(T, [{{'_', 2}, [], [true]}]);
        N when N =< 90, Type =/= set, Type =/= bag, Type =/= duplicate_bag ->
            Other = lists:nth(rand:uniform(length(Keys)), Keys),
            _ = dats:range_delete(T, min(Key, Other), max(Key, Other));
        N when N =< 92 ->
            _ = dats:insert_new(T, object(Keys));
        N when N =< 94 ->
            ok = dats:flush(T);
        95 ->
            ok = dats:compact(T);
        96 ->
            ok = dats:delete_all_objects(T);
        97 ->
            Rewritten = ets:new(rewritten, [ets_type(Type)]),
            true = ets:insert(Rewritten, [object(Keys) || _ <- lists:seq(1, 40)]),
            ok = dats:from_ets(T, Rewritten),
            true = ets:delete(Rewritten);
        _ when Type =:= set; Type =:= ordered_set ->
            _ = dats:select_replace(T, [{{'$1', 1}, [], [{{'$1', 3}}]}]);
        _ ->
            ok
    end.

%% ----- merges -----

merges(Config) ->
    T = ats_disk_lib:open(Config, t, [{type, ordered_set}, {merge, sum}, {memory, 1 bsl 17}]),
    sums(T, fun(S, K) -> [V || {_, V} <- dats:lookup(S, K)] end).

%% The module is asked when a snapshot is read, and its results are not written to the table.
merged_by_a_module(Config) ->
    Options = [{type, ordered_set}, {merge, {module, ats_sum_merge}}, {memory, 1 bsl 17}],
    T = ats_disk_lib:open(Config, t, Options),
    sums(T, fun(S, K) ->
        case dats:read(S, K) of
            {ok, V} -> [V];
            not_found -> []
        end
    end),
    %% Several processes read one snapshot of keys that are still to be merged.
    [ok = dats:write(T, K, 1) || _ <- lists:seq(1, 3), K <- lists:seq(1001, 1500)],
    S = dats:snapshot(T),
    [ok = dats:write(T, K, 1) || K <- lists:seq(1001, 1500)],
    Expected = [{K, 3} || K <- lists:seq(1001, 1500)],
    Read = fun() ->
        ?assertEqual(Expected, dats:range(S, 1001, 1500)),
        ?assertEqual([{1200, 3}], dats:lookup(S, 1200)),
        ?assertEqual({1002, [{1002, 3}]}, dats:next_lookup(S, 1001)),
        ?assertEqual(Expected, lists:append(
            chunks(fun dats:select/1, dats:range(S, 1001, 1500, [{limit, 50}]))))
    end,
    ats_test_lib:parallel([Read || _ <- lists:seq(1, 4)]),
    ?assertEqual([{1200, 4}], dats:lookup(T, 1200)),
    %% A failure of the module is an answer.
    ok = dats:write(T, bad, 1),
    Before = dats:snapshot(T),
    ok = dats:write(T, bad, x),
    Failing = dats:snapshot(T),
    ?assertMatch({error, {merge_failed, _, bad, _}}, dats:lookup(Failing, bad)),
    ?assertMatch({error, {merge_failed, _, bad, _}}, dats:diff(Before, Failing)),
    ?assertEqual([{bad, 1}], dats:lookup(Before, bad)).

sums(T, Read) ->
    Write = fun(_, Sums) ->
        {K, V} = {rand:uniform(50), rand:uniform(5)},
        case rand:uniform(20) of
            1 -> ok = dats:delete(T, K), maps:remove(K, Sums);
            _ -> ok = dats:write(T, K, V), maps:update_with(K, fun(S) -> S + V end, V, Sums)
        end
    end,
    Round = fun(N, [{_, Sums} | _] = All) ->
        New = lists:foldl(Write, Sums, lists:seq(1, 200)),
        S = dats:snapshot(T),
        _ = N rem 3 =:= 0 andalso (ok = dats:flush(T)),
        _ = N =:= 7 andalso (ok = dats:compact(T)),
        [{S, New} | All]
    end,
    None = {dats:snapshot(T), #{}},
    All = lists:foldl(Round, [None], lists:seq(1, 10)),
    [
        begin
            Objects = lists:sort(maps:to_list(Sums)),
            ?assertEqual(Objects, dats:tab2list(S)),
            ?assertEqual(Objects, dats:select(S, ?ALL)),
            ?assertEqual(length(Objects), dats:select_count(S, [{'_', [], [true]}])),
            ?assertEqual(Objects, lists:append(chunks(fun dats:select/1, dats:select(S, ?ALL, 9)))),
            [?assertEqual([V || {_, V} <- [{K, maps:get(K, Sums, none)}], V =/= none], Read(S, K))
             || K <- lists:seq(1, 50)],
            ?assertEqual(Objects,
                qlc:e(qlc:q([O || O <- dats:table(S)]))),
            Yes = fun(_, _) -> true end,
            ?assertEqual(lists:sublist(Objects, 5),
                element(2, dats:select_range(S, unbounded, unbounded, Yes, 5)))
        end
     || {S, Sums} <- All
    ],
    [
        ?assertEqual(lists:sort(differences(ordered_set, maps:to_list(A), maps:to_list(B))),
            lists:sort(dats:diff(SA, SB)))
     || {SA, A} <- All, {SB, B} <- All
    ],
    [ok = dats:release(S) || {S, _} <- All].

%% ----- one moment -----

%% Lists that move amounts between accounts are in a snapshot as wholes.
accounts(Config) ->
    [
        begin
            T = ats_disk_lib:open(Config, Type, [{type, Type}, {memory, 1 bsl 17}]),
            ok = dats:insert(T, [{A, ?EACH} || A <- lists:seq(1, ?ACCOUNTS)]),
            Stop = atomics:new(1, []),
            Move = fun(Own) -> fun() -> move(T, Own, Stop) end end,
            Sum = fun() ->
                [begin
                     S = dats:snapshot(T),
                     Total = dats:foldl(fun({_, V}, Before) -> V + Before end, 0, S),
                     ?assertEqual(?ACCOUNTS * ?EACH, Total),
                     ?assertEqual(?ACCOUNTS, dats:info(S, size)),
                     ?assertEqual(Total, lists:sum(dats:select(S, [{{'_', '$1'}, [], ['$1']}]))),
                     ok = dats:release(S)
                 end || _ <- lists:seq(1, 200)],
                ok = atomics:put(Stop, 1, 1)
            end,
            ats_test_lib:parallel([Sum, Move(0), Move(1)]),
            ok = dats:close(T)
        end
     || Type <- [set, ordered_set]
    ].

%% Each process moves amounts between accounts of its own.
move(T, Own, Stop) ->
    case atomics:get(Stop, 1) of
        1 ->
            ok;
        0 ->
            [A, B] = [2 * rand:uniform(?ACCOUNTS div 2) - Own || _ <- [1, 2]],
            _ = A =/= B andalso begin
                [{A, Of}] = dats:lookup(T, A),
                [{B, To}] = dats:lookup(T, B),
                ok = dats:insert(T, [{A, Of - 1}, {B, To + 1}])
            end,
            move(T, Own, Stop)
    end.

%% A count of a table that is written has all objects of a list or none.
counted_lists(Config) ->
    T = ats_disk_lib:open(Config, t, [{type, ordered_set}, {memory, 1 bsl 17}]),
    Stop = atomics:new(1, []),
    Write = fun(W) -> fun() -> insert_lists(T, W, 1, Stop) end end,
    Count = fun() ->
        [
            ?assertEqual(0, dats:range_count(T, 0, {5, 0, 0}, [{high, exclusive}]) rem 5)
         || _ <- lists:seq(1, 300)
        ],
        ok = atomics:put(Stop, 1, 1)
    end,
    ats_test_lib:parallel([Count, Write(1), Write(2)]),
    ok = dats:close(T).

insert_lists(T, W, N, Stop) ->
    case atomics:get(Stop, 1) of
        1 ->
            ok;
        0 ->
            ok = dats:insert(T, [{{Part, W, N}, N} || Part <- lists:seq(0, 4)]),
            N rem 100 =/= 0 orelse (ok = dats:delete_all_objects(T)),
            insert_lists(T, W, N + 1, Stop)
    end.

%% A thousand at once.
many(Config) ->
    T = ats_disk_lib:open(Config, t, [{type, ordered_set}, {memory, 1 bsl 20}]),
    Long = binary:copy(<<"x">>, 100),
    ok = dats:insert(T, [{K, Long} || K <- lists:seq(1, 1000)]),
    Make = fun(N) ->
        ok = dats:insert(T, [{counter, N}, {rand:uniform(1000), <<N:800>>}]),
        dats:snapshot(T)
    end,
    All = [{N, Make(N)} || N <- lists:seq(1, 1000)],
    ?assertMatch(#{number := 1000, oldest := Age} when Age >= 0, dats:info(T, snapshots)),
    [?assertEqual([{counter, N}], dats:lookup(S, counter)) || {N, S} <- All],
    [?assertEqual(1001, dats:info(S, size)) || {_, S} <- All],
    ok = dats:flush(T),
    ok = dats:compact(T),
    [?assertEqual([{counter, N}], dats:lookup(S, counter)) || {N, S} <- All],
    [?assertEqual(1001, dats:select_count(S, [{'_', [], [true]}]))
     || {N, S} <- All, N rem 100 =:= 0],
    #{memory := Memory} = dats:info(T, snapshots),
    ?assert(Memory > 0),
    {_, Oldest} = hd(All),
    {_, Newest} = lists:last(All),
    ?assertMatch([{change, {counter, 1}, {counter, 1000}}],
        [D || {change, {counter, _}, _} = D <- dats:diff(Oldest, Newest)]),
    [ok = dats:release(S) || {_, S} <- All],
    ?assertMatch(#{number := 0, oldest := 0, memory := 0, file_size := 0},
        dats:info(T, snapshots)),
    ats_test_lib:until(fun() -> maps:get(pinned_memory, dats:info(T, stats)) =:= 0 end, 5000).

%% ----- ends -----

owners(Config) ->
    T = ats_disk_lib:open(Config, t, [{type, set}]),
    ok = dats:insert(T, {1, a}),
    Self = self(),
    Owner = spawn(fun() ->
        Self ! {snapshot, dats:snapshot(T)},
        receive after infinity -> ok end
    end),
    S = receive {snapshot, Made} -> Made end,
    ok = dats:insert(T, {1, b}),
    ?assertEqual([{1, a}], dats:lookup(S, 1)),
    ?assertEqual(Owner, dats:info(S, owner)),
    ?assertEqual(T, dats:info(S, snapshot_of)),
    ats_test_lib:kill(Owner),
    Text = <<"the snapshot has ended with the process that made it">>,
    ?assertEqual(#{1 => Text}, words(fun() -> dats:lookup(S, 1) end)),
    ?assertEqual(undefined, dats:info(S)),
    ?assertEqual(undefined, dats:info(S, size)),
    ats_test_lib:until(
        fun() -> maps:get(number, dats:info(T, snapshots)) =:= 0 end, 5000),
    ?assertEqual(ok, dats:release(S)).

ages(Config) ->
    T = ats_disk_lib:open(Config, t, [{type, set}, {continuation_age, 100}]),
    ok = dats:insert(T, {1, a}),
    S = dats:snapshot(T, [{max_age, 200}]),
    Kept = dats:snapshot(T, [{max_age, infinity}]),
    ?assertEqual([{1, a}], dats:lookup(S, 1)),
    timer:sleep(250),
    ?assert(dats:info(Kept, age) >= 250),
    Text = <<"the snapshot has ended: it is older than its option `max_age' says">>,
    ?assertEqual(#{1 => Text}, words(fun() -> dats:lookup(S, 1) end)),
    %% Also if nobody reads it.
    Unread = dats:snapshot(T, [{max_age, 100}]),
    ats_test_lib:until(
        fun() -> maps:get(evicted, dats:info(T, snapshots)) =:= 2 end, 10000),
    ?assertMatch(#{number := 1}, dats:info(T, snapshots)),
    ?assertEqual(#{1 => Text}, words(fun() -> dats:first(Unread) end)),
    %% The age at which those end that the table makes itself does not matter.
    ?assertEqual([{1, a}], dats:lookup(Kept, 1)),
    Wrong = #{2 => <<"invalid options">>},
    [?assertEqual(Wrong, words(fun() -> dats:snapshot(T, Options) end))
     || Options <- [x, [x], [{max_age, 0}], [{max_age, x}], [{max_age, 1} | x]]].

%% The oldest snapshots end when all hold too much memory.
bound(Config) ->
    T = ats_disk_lib:open(Config, t,
        [{type, ordered_set}, {memory, 3 bsl 20}, {snapshot_memory, 2 bsl 20}]),
    ?assertEqual(2 bsl 20, dats:info(T, snapshot_memory)),
    Long = binary:copy(<<"x">>, 1000),
    Make = fun(N) ->
        ok = dats:insert(T, [{K, N, Long} || K <- lists:seq(1, 300)]),
        ok = dats:flush(T),
        dats:snapshot(T)
    end,
    First = Make(0),
    %% Objects in files take no memory.
    ?assertEqual([{1, 0, Long}], dats:lookup(First, 1)),
    Later = [begin
                 ok = dats:insert(T, {1, N}),
                 S = dats:snapshot(T),
                 ok = dats:insert(T, [{K, N, Long} || K <- lists:seq(1, 300)]),
                 ok = dats:flush(T),
                 {N, S}
             end || N <- lists:seq(1, 30)],
    %% Snapshots are counted just after they have ended.
    Counted = fun() -> #{number := N, evicted := E} = dats:info(T, snapshots), N + E =:= 31 end,
    ats_test_lib:until(Counted, 5000),
    #{memory := Memory, number := Number} = dats:info(T, snapshots),
    ?assert(Memory =< 2 bsl 20),
    ?assert(Number >= 1 andalso Number < 31),
    {_, Second} = hd(Later),
    {Last, Newest} = lists:last(Later),
    ?assertMatch(#{1 := <<"the snapshot has ended: it was the oldest", _/binary>>},
        words(fun() -> dats:lookup(Second, 1) end)),
    ?assertEqual([{1, Last}], dats:lookup(Newest, 1)),
    ?assertError(badarg, dats:open_file(x, [{snapshot_memory, -1}])),
    ok = dats:release(Second).

closed(Config) ->
    T = ats_disk_lib:open(Config, t, [{type, bag}]),
    ok = dats:insert(T, [{1, a}, {1, b}]),
    S = dats:snapshot(T),
    {[_], Continuation} = dats:select(S, ?ALL, 1),
    ok = dats:close(T),
    Text = <<"the snapshot has ended: its table was closed">>,
    ?assertEqual(#{1 => Text}, words(fun() -> dats:lookup(S, 1) end)),
    ?assertEqual(#{1 => Text}, words(fun() -> dats:select(Continuation) end)),
    T = ats_disk_lib:open(Config, t, []),
    ?assertEqual(#{1 => Text}, words(fun() -> dats:tab2list(S) end)),
    Again = dats:snapshot(T),
    ?assertEqual([{1, a}, {1, b}], dats:lookup(Again, 1)),
    ?assertMatch(#{number := 1}, dats:info(T, snapshots)),
    ok = dats:release(S),
    ?assertEqual(#{1 => <<"the snapshot was released">>}, words(fun() -> dats:release(S) end)),
    %% The table can be removed at once.
    ok = dats:close(T),
    ?assertEqual(ok, dats:destroy(ats_disk_lib:file(Config, t))).

misuse(Config) ->
    T = ats_disk_lib:open(Config, t, [{type, ordered_set}]),
    Other = ats_disk_lib:open(Config, other, [{type, ordered_set}]),
    ok = dats:insert(T, [{K, K} || K <- lists:seq(1, 9)]),
    S = dats:snapshot(T),
    E = ets:new(e, []),
    Read = fun(read) -> end_of_input end,
    Calls = [
        {insert, [S, {1, x}]}, {insert_new, [S, {10, x}]}, {delete, [S, 1]},
        {delete_object, [S, {1, 1}]}, {delete_all_objects, [S]}, {take, [S, 1]},
        {take_first, [S]}, {take_last, [S]}, {update_counter, [S, 1, 1]},
        {update_counter, [S, 1, 1, {1, 1}]}, {update_element, [S, 1, {2, 2}]},
        {update_element, [S, 1, {2, 2}, {1, 1}]},
        {select_delete, [S, [{'_', [], [true]}]]}, {select_delete, [S, [{{1, '_'}, [], [true]}]]},
        {select_replace, [S, ?ALL]}, {select_take, [S, [{'_', [], [true]}]]},
        {match_delete, [S, '_']}, {match_delete, [S, {1, '_'}]},
        {range_delete, [S, 1, 2]}, {range_delete, [S, 1, 2, []]},
        {init_table, [S, Read]}, {init_table, [S, Read, [{format, bchunk}]]},
        {from_ets, [S, E]}, {from_ats, [S, E]}, {from_dets, [S, E]}, {write, [S, 1, 1]},
        {sync, [S]}, {flush, [S]}, {compact, [S]}, {close, [S]},
        {checkpoint, [S, ats_disk_lib:file(Config, c)]},
        {upgrade_merge, [S, {old, x}]}, {snapshot, [S]}, {snapshot, [S, []]}
    ],
    Text = <<"the table is a snapshot, which can only be read">>,
    [
        begin
            Here = words(fun() -> apply(dats, F, A) end),
            ?assertMatch({F, #{1 := Text}}, {F, Here}),
            %% Other processes must not write either.
            [{F, There}] = ats_test_lib:parallel([fun() ->
                {F, words(fun() -> apply(dats, F, A) end)}
            end]),
            ?assertMatch({F, #{1 := Text}}, {F, There})
        end
     || {F, A} <- Calls
    ],
    ?assertEqual([{K, K} || K <- lists:seq(1, 9)], dats:tab2list(T)),
    ?assertEqual(dats:tab2list(T), dats:tab2list(S)),
    OfOther = dats:snapshot(Other),
    None = <<"not a snapshot of a table">>,
    Closed = <<"the table identifier does not refer to an existing ATS table">>,
    ?assertEqual(#{2 => <<"a snapshot of another table">>},
        words(fun() -> dats:diff(S, OfOther) end)),
    ?assertEqual(#{2 => None}, words(fun() -> dats:diff(S, T) end)),
    ?assertEqual(#{1 => None}, words(fun() -> dats:diff(T, S) end)),
    ?assertEqual(#{2 => Closed}, words(fun() -> dats:diff(S, x) end)),
    [?assertEqual(#{1 => None}, words(fun() -> dats:release(X) end)) || X <- [T, x, make_ref(), 1]],
    ok = dats:release(S),
    Released = <<"the snapshot was released">>,
    Last = dats:snapshot(T),
    ?assertEqual(#{1 => Released}, words(fun() -> dats:diff(S, Last) end)),
    ?assertEqual(#{2 => Released}, words(fun() -> dats:diff(Last, S, fun erlang:'+'/2, 0) end)),
    ?assertEqual(#{3 => Released}, words(fun() -> dats:foldl(fun(_, A) -> A end, 0, S) end)),
    ?assertEqual(#{1 => Released}, words(fun() -> dats:insert(S, {1, 1}) end)),
    ?assertError(badarg, qlc:e(dats:table(S))).

%% The functions of `ats' do not change a snapshot either, nor to whom it belongs.
functions_of_ats(Config) ->
    T = ats_disk_lib:open(Config, t, [{type, ordered_set}]),
    ok = dats:insert(T, [{K, K} || K <- lists:seq(1, 9)]),
    S = dats:snapshot(T),
    Self = self(),
    Other = spawn_link(fun() -> receive stop -> ok end end),
    Calls = [
        {insert, [S, {1, x}]}, {insert, [S, [{1, x}, {2, x}]]}, {insert, [S, []]},
        {insert_new, [S, {10, x}]}, {insert_new, [S, [{10, x}, {11, x}]]}, {delete, [S, 1]},
        {delete_object, [S, {1, 1}]}, {delete_all_objects, [S]}, {take, [S, 1]},
        {take_first, [S]}, {take_last, [S]}, {take_all_objects, [S]},
        {update_counter, [S, 1, 1]}, {update_counter, [S, 1, 1, {1, 1}]},
        {update_element, [S, 1, {2, 2}]}, {merge, [S, 1, 1, sum]},
        {select_delete, [S, [{'_', [], [true]}]]}, {select_delete, [S, [{{1, '_'}, [], [true]}]]},
        {select_replace, [S, ?ALL]}, {select_take, [S, [{'_', [], [true]}]]},
        {match_delete, [S, '_']}, {range_delete, [S, 1, 2]},
        {rename, [S, other]}, {give_away, [S, Other, gift]},
        {setopts, [S, {heir, Other, data}]}, {setopts, [S, [{protection, public}]]}
    ],
    Text = <<"the table is a snapshot, which can only be read">>,
    Try = fun(F, A) ->
        try {answer, apply(ats, F, A)}
        catch Class:Reason:Stack ->
            Words = ats_errors:format_error(Reason, Stack),
            {Class, Reason, maps:map(fun(_, Message) -> iolist_to_binary(Message) end, Words)}
        end
    end,
    [
        begin
            ?assertMatch({F, {error, badarg, #{1 := Text}}}, {F, Try(F, A)}),
            [There] = ats_test_lib:parallel([fun() -> Try(F, A) end]),
            ?assertMatch({F, {error, badarg, #{1 := Text}}}, {F, There})
        end
     || {F, A} <- Calls
    ],
    Other ! stop,
    ?assertEqual(Self, dats:info(S, owner)),
    ?assertMatch(#{number := 1}, dats:info(T, snapshots)),
    ?assertEqual([{K, K} || K <- lists:seq(1, 9)], dats:tab2list(S)),
    ok = dats:release(S).

%% A snapshot that ends while it is read.
walks_that_lose_it(Config) ->
    T = ats_disk_lib:open(Config, t, [{type, ordered_set}]),
    ok = dats:insert(T, [{K, binary:copy(<<"x">>, 1000)} || K <- lists:seq(1, 1000)]),
    S = dats:snapshot(T),
    Release = fun({1, _}, A) -> ok = dats:release(S), A;
                 (_, A) -> A
              end,
    Released = <<"the snapshot was released">>,
    ?assertEqual(#{3 => Released}, words(fun() -> dats:foldl(Release, [], S) end)),
    Empty = dats:snapshot(T),
    ok = dats:insert(T, [{-K, binary:copy(<<"x">>, 1000)} || K <- lists:seq(1, 1000)]),
    Second = dats:snapshot(T),
    Once = fun(_, released) -> released;
              (_, open) -> ok = dats:release(Second), released
           end,
    ?assertEqual(#{2 => Released}, words(fun() -> dats:diff(Empty, Second, Once, open) end)).

%% A difference is not in memory as a whole.
large_differences(Config) ->
    T = ats_disk_lib:open(Config, t, [{type, ordered_set}]),
    First = dats:snapshot(T),
    Long = binary:copy(<<"x">>, 1000),
    [ok = dats:insert(T, [{K, Long} || K <- lists:seq(N, N + 999)])
     || N <- lists:seq(1, 30000, 1000)],
    Second = dats:snapshot(T),
    {Pid, Monitor} = spawn_opt(fun() ->
        Count = fun({insert, {_, _}}, Before) -> Before + 1 end,
        exit({counted, dats:diff(First, Second, Count, 0)})
    end, [monitor, {max_heap_size, #{size => 2000000, kill => true, error_logger => true}}]),
    ?assertEqual({counted, 30000}, receive {'DOWN', Monitor, process, Pid, Why} -> Why end),
    %% Files that both snapshots have are not read.
    ok = dats:compact(T),
    Third = dats:snapshot(T),
    ok = dats:insert(T, {5, new}),
    ok = dats:flush(T),
    Fourth = dats:snapshot(T),
    #{reads := Before} = dats:info(T, stats),
    ?assertEqual([{change, {5, Long}, {5, new}}], dats:diff(Third, Fourth)),
    #{reads := After} = dats:info(T, stats),
    ?assert(After - Before < 100).

%% Keys in ranges that were deleted as wholes are found in the earlier snapshot.
deleted_ranges(Config) ->
    T = ats_disk_lib:open(Config, t, [{type, ordered_set}]),
    ok = dats:insert(T, [{K, K} || K <- lists:seq(1, 5000)]),
    ok = dats:flush(T),
    First = dats:snapshot(T),
    ok = dats:delete_all_objects(T),
    Emptied = dats:snapshot(T),
    Deletes = [{delete, {K, K}} || K <- lists:seq(1, 5000)],
    ?assertEqual(Deletes, dats:diff(First, Emptied)),
    ?assertEqual([{insert, O} || {delete, O} <- Deletes], dats:diff(Emptied, First)),
    ok = dats:insert(T, {7, seven}),
    ok = dats:flush(T),
    Seven = dats:snapshot(T),
    ?assertEqual([{insert, {7, seven}}], dats:diff(Emptied, Seven)),
    Check = fun() ->
        ?assertEqual(4999, length([O || {delete, O} <- dats:diff(First, Seven)])),
        ?assertEqual([{change, {7, 7}, {7, seven}}],
            [D || {change, _, _} = D <- dats:diff(First, Seven)])
    end,
    Check(),
    ok = dats:compact(T),
    Check(),
    Compacted = dats:snapshot(T),
    ?assertEqual([], dats:diff(Seven, Compacted)),
    ?assertEqual([], dats:diff(Compacted, Seven)),
    ?assertEqual([], dats:diff(First, First)).

%% A table that was opened for reading has snapshots, too.
read_only(Config) ->
    T = ats_disk_lib:open(Config, t, [{type, ordered_set}]),
    ok = dats:insert(T, [{K, K} || K <- lists:seq(1, 10)]),
    ok = dats:close(T),
    T = ats_disk_lib:open(Config, t, [{access, read}]),
    S = dats:snapshot(T),
    ?assertEqual(10, dats:info(S, size)),
    ?assertEqual([{3, 3}], dats:lookup(S, 3)),
    ?assertEqual(read, dats:info(S, access)),
    ?assertEqual(ats_disk_lib:file(Config, t), dats:info(S, filename)),
    ok = dats:release(S).

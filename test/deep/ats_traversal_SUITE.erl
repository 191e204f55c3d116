%% Walks through unordered tables that grow to a hundred times their size meanwhile, and shrink
%% again.
%%
%% Some objects stay all the time, others come and go, and each of those only once. So with any
%% schedule, a walk has to meet every object that stays exactly once and in order, and every
%% other one at most once. Keys of bags have several objects, one has thousands, and among those
%% come and go some, too.
%%
%% All cases run twice: as chance has it, and on tables that are forced to adapt all the time.
%%
%% ATS_TRAVERSAL_KEYS sets to how many keys the tables grow (40,000 by default, and 10,000 where
%% they are forced: those adapt with one write in eight, however many keys they have).
-module(ats_traversal_SUITE).

-include_lib("stdlib/include/assert.hrl").

-export([all/0, groups/0, suite/0, init_per_group/2, end_per_group/2]).
-export([
    fixed_steps/1,
    fixed_steps_of_objects/1,
    fixed_lists/1,
    fixed_slots/1,
    lists_that_fix_themselves/1,
    order_does_not_change/1,
    fixers_that_die/1,
    deleted_keys_lead_on/1
]).

-import(ats_test_lib, [parallel/1, check_consistency/1]).

-define(KINDS, [
    {set, []},
    {set, [{write_concurrency, true}, compressed]},
    {bag, []},
    {duplicate_bag, [{write_concurrency, auto}]}
]).
-define(STAYING, 1000).
%% Objects of one key of a bag that stay.
-define(STAYING_OF_ONE_KEY, 3000).
-define(COMING_TO_ONE_KEY, 200).
%% Waves of both together.
-define(WAVES, 4).
-define(WALKS, 5).

suite() -> [{timetrap, {minutes, 30}}].

all() ->
    [{group, by_chance}, {group, forced}].

groups() ->
    [{by_chance, [], cases()}, {forced, [], cases()}].

init_per_group(Group, Config) -> ats_test_lib:begin_group(Group, Config).
end_per_group(Group, _) -> ats_test_lib:end_group(Group).

cases() ->
    [
        fixed_steps,
        fixed_steps_of_objects,
        fixed_lists,
        fixed_slots,
        lists_that_fix_themselves,
        order_does_not_change,
        fixers_that_die,
        deleted_keys_lead_on
    ].

%% ----- walks -----

%% Under a fixation a walk goes on from keys that others, or itself, have deleted.
fixed_steps(_) ->
    for_each(fun(M, T, Type) ->
        while_it_breathes(M, T, Type, fun() ->
            {First, Next} = one_of([{first, next}, {last, prev}]),
            Keys = fixed(M, T, fun() -> steps(M, T, Next, M:First(T)) end),
            check_keys(Keys)
        end)
    end).

steps(_, _, _, '$end_of_table') ->
    [];
steps(M, T, Next, Key) ->
    is_integer(Key) andalso Key rem 3 =:= 0 andalso M:delete(T, Key),
    [Key | steps(M, T, Next, M:Next(T, Key))].

fixed_steps_of_objects(_) ->
    for_each(fun(M, T, Type) ->
        while_it_breathes(M, T, Type, fun() ->
            {First, Next} = one_of([{first_lookup, next_lookup}, {last_lookup, prev_lookup}]),
            Groups = fixed(M, T, fun() -> steps_of_objects(M, T, Next, M:First(T)) end),
            check_keys([Key || {Key, _} <- Groups]),
            check_objects(Type, lists:append([Objects || {_, Objects} <- Groups]))
        end)
    end).

steps_of_objects(_, _, _, '$end_of_table') ->
    [];
steps_of_objects(M, T, Next, {Key, Objects}) ->
    is_integer(Key) andalso Key rem 5 =:= 0 andalso M:take(T, Key),
    [{Key, Objects} | steps_of_objects(M, T, Next, M:Next(T, Key))].

fixed_lists(_) ->
    for_each(fun(M, T, Type) ->
        while_it_breathes(M, T, Type, fun() ->
            check_objects(Type, fixed(M, T, fun() -> whole(M, T) end))
        end)
    end).

%% The slots of a fixed table do not change, and behind the last one it stays empty.
fixed_slots(_) ->
    for_each(fun(M, T, Type) ->
        while_it_breathes(M, T, Type, fun() ->
            {Slots, Objects} = fixed(M, T, fun() ->
                {Slots, _} = Walked = slots(M, T, 0, []),
                ?assertEqual('$end_of_table', M:slot(T, Slots)),
                ?assertError(badarg, M:slot(T, Slots + 1)),
                Walked
            end),
            ?assert(Slots > 0),
            check_objects(Type, Objects)
        end)
    end).

slots(M, T, I, Lists) ->
    case M:slot(T, I) of
        '$end_of_table' -> {I, lists:append(lists:reverse(Lists))};
        Objects -> slots(M, T, I + 1, [Objects | Lists])
    end.

%% Long calls fix the table by themselves.
lists_that_fix_themselves(_) ->
    for_each(fun(M, T, Type) ->
        while_it_breathes(M, T, Type, fun() -> check_objects(Type, whole(M, T)) end)
    end).

whole(M, T) ->
    Collect = fun(Object, Acc) -> [Object | Acc] end,
    case rand:uniform(3) of
        1 -> M:tab2list(T);
        2 -> lists:reverse(M:foldl(Collect, [], T));
        3 -> M:foldr(Collect, [], T)
    end.

%% The order in which `ats' walks does not depend on how large the table is: a walk may even begin
%% again at any key that is there, without any fixation.
order_does_not_change(_) ->
    case ats_oracle:subject() of
        ats ->
            for_each(fun(M, T, Type) ->
                while_it_breathes(M, T, Type, fun() ->
                    First = first_staying(M, T, M:first(T)),
                    check_keys(unfixed_steps(M, T, First, First))
                end)
            end);
        _ ->
            {skip, "other tables change their order when they grow"}
    end.

first_staying(_, _, {staying, _} = Key) ->
    Key;
first_staying(M, T, Key) ->
    try M:next(T, Key) of
        Next -> first_staying(M, T, Next)
    catch
        error:badarg -> first_staying(M, T, M:first(T))
    end.

%% The keys that stay. A key from which it does not go on is one that was deleted; then it begins
%% again at the last one that stays.
unfixed_steps(_, _, '$end_of_table', _) ->
    [];
unfixed_steps(M, T, {staying, _} = Key, _) ->
    [Key | unfixed_steps(M, T, M:next(T, Key), Key)];
unfixed_steps(M, T, Key, LastStaying) ->
    Next =
        try
            M:next(T, Key)
        catch
            error:badarg -> M:next(T, LastStaying)
        end,
    unfixed_steps(M, T, Next, LastStaying).

%% Fixations come and go, also with the processes that hold them. The fixation of another process
%% does not end by that.
fixers_that_die(_) ->
    for_each(fun(M, T, Type) ->
        while_it_breathes(M, T, Type, fun() ->
            Fixers = [
                spawn(fun() ->
                    true = M:safe_fixtable(T, true),
                    true = M:safe_fixtable(T, true),
                    [true = M:safe_fixtable(T, false) || rand:uniform(2) =:= 1],
                    timer:sleep(rand:uniform(100))
                end)
             || _ <- lists:seq(1, 5)
            ],
            Keys = fixed(M, T, fun() ->
                First = M:first(T),
                [exit(Fixer, kill) || Fixer <- Fixers],
                steps(M, T, next, First)
            end),
            check_keys(Keys)
        end)
    end).

%% The same one by one: each key is deleted, others are inserted, then it goes on from there.
deleted_keys_lead_on(_) ->
    %% Forced to adapt, a table does that with every few of these writes.
    Count = case ats_test_lib:is_adaptation_forced() of true -> 1000; false -> 3000 end,
    for_each(fun(M, T, _) ->
        M:delete_all_objects(T),
        M:insert(T, [{N, a} || N <- lists:seq(1, Count)]),
        true = M:safe_fixtable(T, true),
        Keys = delete_and_go_on(M, T, M:first(T), 10000),
        ?assertEqual(lists:seq(1, Count), lists:sort([K || K <- Keys, K =< 10000])),
        ?assertEqual([], Keys -- lists:usort(Keys)),
        true = M:safe_fixtable(T, false),
        Left = lists:sort([K || {K, _} <- M:tab2list(T)]),
        ?assertEqual([], [K || K <- Left, K =< 10000]),
        ?assertEqual(Left, lists:seq(10001, 10000 + 20 * Count) -- Keys),
        check_consistency(T)
    end).

delete_and_go_on(_, _, '$end_of_table', _) ->
    [];
delete_and_go_on(M, T, Key, N) when Key =< 10000 ->
    M:delete(T, Key),
    M:insert(T, [{New, b} || New <- lists:seq(N + 1, N + 20)]),
    [Key | delete_and_go_on(M, T, M:next(T, Key), N + 20)];
delete_and_go_on(M, T, Key, N) ->
    M:delete(T, Key),
    [Key | delete_and_go_on(M, T, M:next(T, Key), N)].

fixed(M, T, Walk) ->
    true = M:safe_fixtable(T, true),
    Met = Walk(),
    true = M:safe_fixtable(T, false),
    Met.

%% ----- objects to be met -----

check_keys(Keys) ->
    {Staying, Others} = lists:partition(fun is_staying/1, Keys),
    ?assertEqual([], staying_keys() -- Staying),
    ?assertEqual(?STAYING, length(Staying)),
    ?assertEqual([], Others -- lists:usort(Others)).

is_staying({staying, _}) -> true;
is_staying(Key) when is_integer(Key) -> false.

staying_keys() -> [{staying, N} || N <- lists:seq(1, ?STAYING)].

check_objects(Type, Objects) ->
    {OfStaying, Others} = lists:partition(fun({Key, _}) -> is_staying(Key) end, Objects),
    Stayed = [O || {_, V} = O <- OfStaying, is_integer(V)],
    Met = maps:groups_from_list(fun({Key, _}) -> Key end, Stayed),
    lists:foreach(
        fun(Key) -> ?assertEqual({Key, staying(Type, Key)}, {Key, maps:get(Key, Met, [])}) end,
        staying_keys()
    ),
    Came = [V || {_, {came, _} = V} <- OfStaying],
    ?assertEqual(length(OfStaying), length(Stayed) + length(Came)),
    ?assertEqual([], Came -- lists:usort(Came)),
    check_others(Type, Others).

%% Objects that come and go are two of a key in a bag, which are the same in a `duplicate_bag'.
check_others(duplicate_bag, Others) ->
    Once = lists:usort(Others),
    ?assertEqual([], (Others -- Once) -- Once);
check_others(_, Others) ->
    ?assertEqual([], Others -- lists:usort(Others)).

%% ----- tables that breathe -----

%% The objects of a key that stays, in their order.
staying(set, {staying, N} = Key) -> [{Key, N}];
staying(_, {staying, 1} = Key) -> [{Key, N} || N <- lists:seq(?STAYING_OF_ONE_KEY, 1, -1)];
staying(bag, {staying, N} = Key) -> [{Key, V} || V <- lists:seq(1, 1 + N rem 5)];
staying(duplicate_bag, {staying, N} = Key) -> [{Key, V div 2} || V <- lists:seq(1, 1 + N rem 5)].

coming(set, K) -> [{K, a}];
coming(bag, K) -> [{K, b}, {K, a}];
coming(duplicate_bag, K) -> [{K, a}, {K, a}].

%% Repeats a walk while the table grows and shrinks, until both have happened several times.
while_it_breathes(M, T, Type, Walk) ->
    lists:foreach(fun(K) -> M:insert(T, staying(Type, K)) end, staying_keys()),
    Waves = counters:new(1, []),
    Stop = atomics:new(1, []),
    IsOver = fun() -> atomics:get(Stop, 1) =:= 1 end,
    Walker = fun() ->
        try
            {walks, walks(Walk, Waves, 1)}
        after
            atomics:put(Stop, 1, 1)
        end
    end,
    [{walks, Walks} | _] = parallel([
        Walker,
        fun() -> breathe(M, T, Type, Waves, IsOver, 0) end,
        fun() -> breathe(M, T, Type, Waves, IsOver, 1) end,
        fun() -> ripple(M, T, Type, IsOver, 1) end
    ]),
    ct:pal("~p: ~b walks in ~b waves", [Type, Walks, counters:get(Waves, 1)]),
    ?assertEqual(staying_keys(), lists:usort([K || {K, _} <- M:tab2list(T)])),
    check_consistency(T).

%% Between two walks nothing is fixed for a moment, so that the table can shrink.
walks(Walk, Waves, N) ->
    Walk(),
    timer:sleep(5),
    case N >= ?WALKS andalso counters:get(Waves, 1) >= ?WAVES of
        true -> N;
        false -> walks(Walk, Waves, N + 1)
    end.

breathe(M, T, Type, Waves, IsOver, Number) ->
    wave(M, T, Type, Number),
    counters:add(Waves, 1, 1),
    IsOver() orelse breathe(M, T, Type, Waves, IsOver, Number + 2).

%% Inserts keys that never were there, and deletes them.
wave(M, T, Type, Number) ->
    Keys = most_keys() div 2,
    First = Number * Keys,
    lists:foreach(
        fun(N) ->
            Some = [O || K <- lists:seq(First + N, First + N + 9), O <- coming(Type, K)],
            case N rem 20 of
                0 -> M:insert(T, Some);
                _ -> lists:foreach(fun(O) -> M:insert(T, O) end, Some)
            end
        end,
        lists:seq(0, Keys - 10, 10)
    ),
    lists:foreach(fun(K) -> leave(M, T, Type, K) end, lists:seq(First, First + Keys - 1)).

most_keys() ->
    Default =
        case ats_test_lib:is_adaptation_forced() of
            true -> "10000";
            false -> "40000"
        end,
    list_to_integer(os:getenv("ATS_TRAVERSAL_KEYS", Default)).

leave(M, T, Type, K) when K rem 3 =:= 0 ->
    lists:foreach(fun(O) -> M:delete_object(T, O) end, coming(Type, K));
leave(M, T, _, K) when K rem 3 =:= 1 ->
    M:take(T, K);
leave(M, T, _, K) ->
    M:delete(T, K).

%% Among the many objects of one key of a bag some come and go.
ripple(_, _, set, _, _) ->
    true;
ripple(M, T, Type, IsOver, N) ->
    Key = {staying, 1},
    M:insert(T, {Key, {came, N}}),
    M:delete_object(T, {Key, {came, N - ?COMING_TO_ONE_KEY}}),
    case IsOver() of
        true ->
            [M:delete_object(T, {Key, {came, V}}) || V <- lists:seq(N - ?COMING_TO_ONE_KEY, N)],
            true;
        false ->
            ripple(M, T, Type, IsOver, N + 1)
    end.

%% ----- help -----

one_of(List) -> lists:nth(rand:uniform(length(List)), List).

for_each(Case) ->
    M = ats_oracle:subject(),
    lists:foreach(
        fun({Type, Options}) ->
            T = ats_test_lib:new(breathing, [Type, public | Options]),
            try
                Case(M, T, Type)
            catch
                Class:Reason:Stack ->
                    ct:pal("with ~p", [[Type | Options]]),
                    erlang:raise(Class, Reason, Stack)
            after
                M:delete(T)
            end
        end,
        ?KINDS
    ).

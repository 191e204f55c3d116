%% `transact/4' and `update/3': several keys are tested and changed as one step.
-module(ats_transact_SUITE).

-include_lib("stdlib/include/assert.hrl").

-export([all/0]).
-export([documented/1, random_transactions/1, conditions/1, bad_parts/1, bank/1, racing/1]).
-export([killed_callers/1, expiring/1, bounds/1, fixed/1, rights/1, snapshots/1, many_keys/1]).
-export([large_values/1, counters_in_place/1, updates/1, updates_race/1, bad_updates/1]).
%% Parts that the suite of tables on disk calls.
-export([random_program/5, check_conditions/3, check_bad_parts/2, transfer/2, in_processes/2]).
-export([until/2, text/2]).

-define(TYPES, [set, ordered_set, bag, duplicate_bag, ordered_bag, ordered_duplicate_bag]).

all() ->
    [documented, random_transactions, conditions, bad_parts, bank, racing, killed_callers,
     expiring, bounds, fixed, rights, snapshots, many_keys, large_values, counters_in_place,
     updates, updates_race, bad_updates].

documented(_) ->
    T = ats:new(bank, []),
    ats:insert(T, [{ann, 100}, {bob, 20}]),
    Enough = {match, ann, {ann, '$1'}, [{'>=', '$1', 30}]},
    Move = [{update_counter, ann, -30}, {update_counter, bob, 30}],
    ?assertEqual({true, [70, 50]}, ats:transact(T, [Enough, {present, bob}], Move, [])),
    ?assertEqual({false, [[{ann, 70}]]},
                 ats:transact(T, [{equals, {ann, 100}}], [{delete, ann}], [{lookup, ann}])),
    ?assertEqual({true, []}, ats:transact(T, [], [], [])),
    ?assertEqual({false, []}, ats:transact(T, [{absent, ann}], [{delete, ann}], [])),
    ?assertEqual(2, ats:info(T, size)).

%%--------------------------------------------------------------------------------------------
%% A random oracle: the same steps one by one on a copy
%%--------------------------------------------------------------------------------------------

random_transactions(_) ->
    [begin
         rand:seed(exsss, {1, 2, erlang:phash2({Type, Options})}),
         T = ats:new(t, [Type | Options]),
         random_program(ats, T, Type, 500, fun() -> ok end),
         ats:delete(T)
     end || Type <- ?TYPES, Options <- [[], [compressed], [{ttl, 1000000}], [{keypos, 2}]]].

%% Runs so many random transactions on a table of a module, and a function before each of them.
random_program(M, T, Type, Number, Beside) ->
    Failed = lists:sum([begin Beside(), random_transaction(M, T, Type) end
                        || _ <- lists:seq(1, Number)]),
    ?assert(Failed > Number / 20 andalso Failed < Number * 4 / 5, {Type, Failed}).

%% Returns 1 if the transaction fails, else 0.
random_transaction(M, T, Type) ->
    KeyPos = M:info(T, keypos),
    Before = M:tab2list(T),
    Copy = ats:new(copy, [Type, {keypos, KeyPos}]),
    ats:insert(Copy, Before),
    Conditions = some(2, fun() -> random_condition(KeyPos) end),
    Branches = [some(5, fun() -> random_step(KeyPos) end) || _ <- [then, 'else']],
    Holds = lists:all(fun(Condition) -> holds(Copy, KeyPos, Condition) end, Conditions),
    Steps = lists:nth(case Holds of true -> 1; false -> 2 end, Branches),
    Expected = try {Holds, [apply(ats, Name, [Copy | Arguments])
                            || [Name | Arguments] <- [tuple_to_list(Step) || Step <- Steps]]}
               catch error:badarg -> badarg
               end,
    [Then, Else] = Branches,
    Done = try M:transact(T, Conditions, Then, Else)
           catch error:badarg -> badarg
           end,
    ?assertEqual(Expected, Done, {Type, Before, Conditions, Branches}),
    After = case Done of badarg -> Before; _ -> ats:tab2list(Copy) end,
    %% The objects of a key have an order, the keys need not.
    ?assertEqual(lists:keysort(KeyPos, After), lists:keysort(KeyPos, M:tab2list(T))),
    ?assertEqual(length(After), M:info(T, size)),
    ats:delete(Copy),
    case Done of badarg -> 1; _ -> 0 end.

some(Most, Make) -> [Make() || _ <- lists:seq(1, rand:uniform(Most + 1) - 1)].

one_of(List) -> lists:nth(rand:uniform(length(List)), List).

key() -> one_of([1, 2, 3, a, "key", {1, <<"b">>}]).

value() -> one_of([0, 1, -5, 1 bsl 70, text, [1, 2], lists:seq(1, 100)]).

object(1) -> {key(), value(), value()};
object(2) -> {value(), key(), value()}.

place(1) -> one_of([2, 2, 3, 3, 1, 4]);
place(2) -> one_of([1, 1, 3, 3, 2, 4]).

random_condition(KeyPos) ->
    case rand:uniform(5) of
        1 -> {absent, key()};
        2 -> {present, key()};
        3 -> {equals, object(KeyPos)};
        4 -> {match, key(), setelement(KeyPos, {'$1', '$1', '$1'}, '_'), []};
        5 -> {match, key(), {'_', '_', '$1'}, [{is_integer, '$1'}]}
    end.

holds(T, _, {absent, Key}) -> ats:lookup(T, Key) =:= [];
holds(T, _, {present, Key}) -> ats:lookup(T, Key) =/= [];
holds(T, KeyPos, {equals, Object}) ->
    lists:member(Object, ats:lookup(T, element(KeyPos, Object)));
holds(T, _, {match, Key, Pattern, Guards}) ->
    [] =/= ats:match_spec_run(ats:lookup(T, Key),
                              ats:match_spec_compile([{Pattern, Guards, [true]}])).

random_step(KeyPos) ->
    Place = place(KeyPos),
    case rand:uniform(14) of
        N when N =< 3 -> {insert, object(KeyPos)};
        4 -> {insert_new, object(KeyPos)};
        5 -> {delete, key()};
        6 -> {delete_object, object(KeyPos)};
        %% The position of the key is refused here also if the key is missing.
        7 -> {update_element, key(), {one_of([3 - KeyPos, 3, 4]), value()}};
        8 -> {update_element, key(), [{Place, value()}, {place(KeyPos), value()}],
              object(KeyPos)};
        9 -> {update_counter, key(), {Place, 7}, setelement(4 - KeyPos, object(KeyPos), 3)};
        10 -> {update_counter, key(), [{Place, 1}, {Place, 5, 10, 0}]};
        11 -> {merge, key(), value(), {Place, one_of([max, sum, first])}, object(KeyPos)};
        12 -> {take, key()};
        _ -> {lookup, key()}
    end.

conditions(_) ->
    [begin
         T = ats:new(t, [Type]),
         check_conditions(ats, T, Type),
         ats:delete(T)
     end || Type <- ?TYPES].

check_conditions(M, T, Type) ->
    M:insert(T, [{a, 1}, {b, 1}]),
    IsBag = lists:member(Type, [bag, duplicate_bag, ordered_bag, ordered_duplicate_bag]),
    IsBag andalso M:insert(T, {a, 2}),
    Holds = fun(Condition) ->
                    {Holds, []} = M:transact(T, [{present, b}, Condition], [], []),
                    Holds
            end,
    ?assert(Holds({equals, {a, 1}})),
    ?assertEqual(IsBag, Holds({equals, {a, 2}})),
    ?assertNot(Holds({equals, {a, 1.0}})),
    ?assertNot(Holds({equals, {c, 1}})),
    ?assert(Holds({match, a, {'_', '$1'}, [{'=:=', '$1', 1}]})),
    ?assertEqual(IsBag, Holds({match, a, {'_', '$1'}, [{'>', '$1', 1}]})),
    ?assertNot(Holds({match, a, {b, '_'}, []})),
    ?assertNot(Holds({match, c, '_', []})),
    ?assert(Holds({match, a, {'$1', '_'}, [{'=:=', {self}, self()}]})),
    ?assert(Holds({absent, c})),
    ?assertNot(Holds({absent, a})),
    ?assertNot(Holds({present, c})).

%%--------------------------------------------------------------------------------------------
%% Errors
%%--------------------------------------------------------------------------------------------

%% Returns the explanation of the argument with this number.
text(Call, Number) ->
    try Call() of
        Result -> error({no_error, Result})
    catch error:badarg:Stack ->
            Texts = ats_oracle:without_hints(ats_errors:format_error(badarg, Stack)),
            unicode:characters_to_list(maps:get(Number, Texts))
    end.

bad_parts(_) ->
    check_bad_parts(ats, ats:new(t, [])),
    Bag = ats:new(t, [bag]),
    ?assertEqual("number 1: not supported by tables of this type",
                 text(fun() -> ats:transact(Bag, [], [{update_counter, a, 1}], []) end, 3)).

check_bad_parts(M, T) ->
    M:insert(T, {a, 1, text}),
    Good = {insert, {b, 2}},
    Counter = "number 2: not a valid object, operation, or counter",
    [begin
         ?assertEqual("number 2: " ++ Text,
                      text(fun() -> M:transact(T, [], [Good, Step], []) end, 3)),
         ?assertEqual("number 2: " ++ Text,
                      text(fun() -> M:transact(T, [{absent, a}], [], [Good, Step]) end, 4)),
         ?assertEqual([{a, 1, text}], M:tab2list(T))
     end || {Step, Text} <- [{{inserted, {a, 1}}, "not a condition or a step"},
                             {insert, "not a condition or a step"},
                             {{}, "not a condition or a step"},
                             {{insert}, "not a condition or a step"},
                             {{lookup, a, b}, "not a condition or a step"},
                             {{range_delete, a, b},
                              "a transaction holds the keys that it names, and this step would "
                              "need others: name each key, as in a step `delete'"},
                             {{update_counter, a, 1, {a, 1}, 5}, "not a condition or a step"},
                             {{insert, a}, lists:nthtail(10, Counter)},
                             {{insert, {}}, lists:nthtail(10, Counter)},
                             {{update_counter, a, {3, 1}}, lists:nthtail(10, Counter)},
                             {{update_counter, a, text}, lists:nthtail(10, Counter)},
                             {{update_counter, a, {4, 1}}, "a position is out of range"},
                             {{update_counter, a, {1, 1}},
                              "the position is the same as the key position"},
                             {{update_counter, c, 1}, "not a key that exists in the table"},
                             {{update_element, a, {4, 1}}, "a position is out of range"},
                             {{merge, a, text, sum}, "not a value that can be merged in this way"},
                             {{merge, a, 1, {3, sum}},
                              "the value in the object cannot be merged in this way"},
                             {{merge, a, 1, total}, "not a valid merge"}]],
    [?assertEqual("number 1: " ++ Text,
                  text(fun() -> M:transact(T, [Part], [Good], [Good]) end, 2))
     || {Part, Text} <- [{{missing, a}, "not a condition or a step"},
                         {{equals, a}, lists:nthtail(10, Counter)},
                         {{match, a, {'_'}}, "not a condition or a step"},
                         {{match, a, {'_'}, [{no_such, 1}]}, "not a valid pattern with guards"},
                         {{match, a, {'_'}, text}, "not a valid pattern with guards"}]],
    ?assertEqual("not a proper list", text(fun() -> M:transact(T, [], [Good | a], []) end, 3)),
    ?assertEqual("not a list", text(fun() -> M:transact(T, a, [Good], []) end, 2)),
    Many = lists:duplicate(10001, {lookup, a}),
    ?assertEqual("more than 10000 conditions and steps",
                 text(fun() -> M:transact(T, [], Many, []) end, 2)),
    ?assertEqual({true, lists:duplicate(10000, [{a, 1, text}])},
                 M:transact(T, [], tl(Many), [])),
    %% A step of the other branch is looked at as far as it needs no table.
    ?assertError(badarg, M:transact(T, [], [Good], [{insert, b}])),
    ?assertEqual({true, []}, M:transact(T, [], [], [{update_counter, c, 1}])),
    ?assertEqual([{a, 1, text}], M:tab2list(T)).

%%--------------------------------------------------------------------------------------------
%% Concurrency
%%--------------------------------------------------------------------------------------------

in_processes(Number, Work) ->
    Pids = [spawn_monitor(fun() -> Work(N) end) || N <- lists:seq(1, Number)],
    fun() ->
            [receive {'DOWN', Monitor, process, Pid, Reason} -> ?assertEqual(normal, Reason) end
             || {Pid, Monitor} <- Pids]
    end.

until(Flag, Work) ->
    case atomics:get(Flag, 1) of
        0 -> Work(), until(Flag, Work);
        1 -> ok
    end.

%% Money moves between accounts, which are closed and opened meanwhile. All sums of one moment are
%% the same.
bank(_) ->
    [begin
         T = ats:new(bank, [Type, public | Options]),
         ats:insert(T, [{Account, 100} || Account <- lists:seq(1, 10)]),
         Over = atomics:new(1, []),
         Wait = in_processes(4, fun(_) -> until(Over, fun() -> transfer(T) end) end),
         [begin
              Snapshot = ats:snapshot(T),
              Sum = fun({_, Amount}, Sum) -> Sum + Amount end,
              ?assertEqual(1000, ats:foldl(Sum, 0, Snapshot)),
              ?assertEqual(ats:info(Snapshot, size), length(ats:tab2list(Snapshot))),
              ats:release(Snapshot),
              {true, All} = ats:transact(T, [], [{lookup, A} || A <- lists:seq(1, 10)], []),
              ?assertEqual(1000, lists:sum([Amount || [{_, Amount}] <- All]))
          end || _ <- lists:seq(1, 200)],
         atomics:put(Over, 1, 1),
         Wait(),
         ?assertEqual(1000, lists:sum([Amount || {_, Amount} <- ats:tab2list(T)])),
         ats:delete(T)
     end || Type <- [set, ordered_set], Options <- [[], [{ttl, 1000000}]]].

transfer(T) -> transfer(ats, T).

transfer(M, T) ->
    case {rand:uniform(10), rand:uniform(10)} of
        {Same, Same} ->
            ok;
        {From, To} ->
            Put = {update_counter, To, {2, 1}, {To, 0}},
            {_, _} = M:transact(T, [{match, From, {From, '$1'}, [{'>', '$1', 1}]}],
                                  [{update_counter, From, -1}, Put],
                                  [{lookup, From}]),
            case M:lookup(T, From) of
                [{From, All}] ->
                    Give = setelement(3, Put, {2, All}),
                    M:transact(T, [{equals, {From, All}}], [{delete, From}, Give], []);
                [] ->
                    ok
            end
    end.

%% One of several callers that want the same key gets it.
racing(_) ->
    [begin
         T = ats:new(t, [Type, public]),
         Self = self(),
         Wait = in_processes(8, fun(N) ->
                                        [case ats:transact(T, [{absent, {lock, K}}],
                                                           [{insert, {{lock, K}, N}},
                                                            {insert, {{owner, K}, N}}],
                                                           [{lookup, {lock, K}},
                                                            {lookup, {owner, K}}]) of
                                             {true, [true, true]} ->
                                                 Self ! {got, K};
                                             {false, [[{{lock, K}, Other}],
                                                      [{{owner, K}, Other}]]} ->
                                                 ok
                                         end || K <- lists:seq(1, 300)]
                                end),
         Wait(),
         [receive {got, K} -> ok after 0 -> error({nobody_got, K}) end || K <- lists:seq(1, 300)],
         receive {got, _} = Twice -> error(Twice) after 0 -> ok end
     end || Type <- ?TYPES].

%% A caller that is killed has done all of its transaction, or nothing.
killed_callers(_) ->
    T = ats:new(t, [public]),
    Keys = lists:seq(1, 300),
    ats:insert(T, [{Key, 0} || Key <- Keys]),
    [begin
         Pid = spawn(fun Loop() ->
                             Odd = [K || K <- Keys, K rem 2 =:= 1],
                             ats:transact(T, [{present, 2}],
                                          [{update_counter, K, 1, {K, 0}} || K <- Keys -- Odd]
                                          ++ [{take, K} || K <- Odd], []),
                             ats:transact(T, [], [{update_counter, K, 1, {K, 0}} || K <- Odd], []),
                             Loop()
                     end),
         timer:sleep(rand:uniform(5)),
         exit(Pid, kill),
         {true, [_ | All]} = ats:transact(T, [], [{lookup, 2} | [{lookup, K} || K <- Keys]], []),
         Found = [{K rem 2, Object =/= []} || {K, Object} <- lists:zip(Keys, All)],
         ?assert(length(lists:usort(Found)) =:= 2)
     end || _ <- lists:seq(1, 100)],
    %% All keys are free.
    ?assert(ats:insert(T, [{Key, 1} || Key <- Keys])).

%%--------------------------------------------------------------------------------------------
%% Kinds of tables
%%--------------------------------------------------------------------------------------------

expiring(_) ->
    T = ats:new(t, [{ttl, 1000}]),
    ats:insert(T, [{a, 1}, {b, 1}]),
    ats_nif:advance_clock(600),
    {true, _} = ats:transact(T, [{present, a}, {present, b}],
                             [{insert, {a, 2}}, {update_counter, b, 1}], []),
    ?assert(ats:ttl(T, a) > 900),
    ?assert(ats:ttl(T, b) =< 400),
    ats_nif:advance_clock(500),
    ?assertEqual({true, [[{a, 2}], [], true]},
                 ats:transact(T, [{absent, b}, {equals, {a, 2}}],
                              [{lookup, a}, {take, b}, {insert_new, {b, 3}}], [])),
    ?assert(ats:ttl(T, b) > 900).

bounds(_) ->
    T = ats:new(t, [{max_objects, 100}]),
    {true, _} = ats:transact(T, [], [{insert, {K, K}} || K <- lists:seq(1, 1000)], []),
    ?assertEqual({100, 900}, {ats:info(T, size), ats:info(T, evicted)}),
    Small = ats:new(t, [{max_memory, 20000}]),
    ats:insert(Small, {a, 1}),
    ?assertError(badarg, ats:transact(Small, [], [{insert, {a, 2}},
                                                  {insert, {b, lists:seq(1, 20000)}}], [])),
    ?assertEqual([{a, 1}], ats:tab2list(Small)).

%% Walks of fixed tables go on from keys that transactions remove.
fixed(_) ->
    [begin
         T = ats:new(t, [Type, public]),
         Keys = lists:seq(1, 200),
         ats:insert(T, [{K, 0} || K <- Keys]),
         ats:safe_fixtable(T, true),
         Met = (fun Walk('$end_of_table', Met) -> Met;
                    Walk(Key, Met) ->
                        {true, _} = ats:transact(T, [{present, Key}],
                                                 [{delete, Key}, {insert, {{gone, Key}, 0}}], []),
                        Walk(ats:next(T, Key), [Key | Met])
                end)(ats:first(T), []),
         ats:safe_fixtable(T, false),
         ?assertEqual([], Keys -- Met),
         ?assertEqual(200, ats:info(T, size)),
         ?assertEqual([], [K || K <- Keys, ats:member(T, K)])
     end || Type <- [set, bag]].

rights(_) ->
    [begin
         T = ats:new(t, [Protection]),
         ats:insert(T, {a, 1}),
         Delete = fun() -> exit(catch ats:transact(T, [], [{delete, a}], [])) end,
         {_, Monitor} = spawn_monitor(Delete),
         receive {'DOWN', Monitor, _, _, {'EXIT', {badarg, _}}} -> ok end,
         ?assertEqual([{a, 1}], ats:tab2list(T))
     end || Protection <- [protected, private]],
    T = ats:new(t, []),
    ats:delete(T),
    ?assertEqual("the table identifier does not refer to an existing ATS table",
                 text(fun() -> ats:transact(T, [], [], []) end, 1)),
    ?assertError(badarg, ats:transact(none, [], [], [])).

snapshots(_) ->
    T = ats:new(t, [ordered_set]),
    ats:insert(T, [{a, 1}, {b, 1}]),
    Snapshot = ats:snapshot(T),
    ?assertEqual("the table is a snapshot, which can only be read",
                 text(fun() -> ats:transact(Snapshot, [], [{delete, a}], []) end, 1)),
    {true, _} = ats:transact(T, [], [{delete, a}, {insert, {b, 2}}, {insert, {c, 1}}], []),
    ?assertEqual([{a, 1}, {b, 1}], ats:tab2list(Snapshot)),
    ?assertEqual([{b, 2}, {c, 1}], ats:tab2list(T)),
    ats:release(Snapshot),
    ?assertEqual([{b, 2}, {c, 1}], ats:tab2list(T)).

many_keys(_) ->
    [begin
         T = ats:new(t, [Type, public]),
         Keys = lists:seq(1, 5000),
         {true, _} = ats:transact(T, [], [{insert, {K, 1}} || K <- Keys], []),
         Over = atomics:new(1, []),
         Wait = in_processes(2, fun(_) ->
                                        until(Over, fun() -> ats:lookup(T, rand:uniform(5000)) end)
                                end),
         [begin
              ?assertMatch({true, _}, ats:transact(T, [{equals, {K, 1}} || K <- Keys],
                                                   [{delete, K} || K <- Keys], [])),
              ?assertEqual(0, ats:info(T, size)),
              ?assertMatch({true, _}, ats:transact(T, [{absent, K} || K <- Keys],
                                                   [{insert_new, {K, 1}} || K <- Keys], [])),
              ?assertEqual(5000, ats:info(T, size))
          end || _ <- lists:seq(1, 10)],
         atomics:put(Over, 1, 1),
         Wait()
     end || Type <- ?TYPES].

large_values(_) ->
    T = ats:new(t, []),
    Large = lists:seq(1, 200000),
    Binary = binary:copy(<<"x">>, 100000),
    ?assertEqual({true, [true, true]},
                 ats:transact(T, [], [{insert, {a, Large}}, {insert, {b, Binary}}], [])),
    ?assertEqual({true, [[{a, Large}], [{b, Binary}], true]},
                 ats:transact(T, [{equals, {a, Large}}, {equals, {b, Binary}},
                                  {match, a, {'_', Large}, []}],
                              [{take, a}, {lookup, b}, {insert, {c, Binary}}], [])),
    ?assertEqual({false, [[{b, Binary}]]},
                 ats:transact(T, [{equals, {b, <<Binary/binary, 1>>}}], [], [{take, b}])),
    ?assertEqual([{c, Binary}], ats:tab2list(T)).

%% Counters that change in place are tested and changed right.
counters_in_place(_) ->
    [begin
         T = ats:new(t, [Type, public]),
         ats:insert(T, [{a, 0, 0}, {b, 0, 0}]),
         HasA = [{match, a, {a, '$1', '_'}, []}],
         Both = [{update_counter, a, 1}, {update_counter, b, 1}],
         Wait = in_processes(4, fun(_) ->
                                        [case rand:uniform(4) of
                                             1 ->
                                                 {true, [_, _]} = ats:transact(T, HasA, Both, []);
                                             2 ->
                                                 {false, [_]} = ats:transact(T, [{absent, a}], [],
                                                                             [{lookup, a}]);
                                             _ ->
                                                 ats:update_counter(T, a, [{2, 1}, {3, 1}]),
                                                 ats:update_counter(T, b, 1)
                                         end || _ <- lists:seq(1, 3000)]
                                end),
         Wait(),
         [{a, A, InPlace}] = ats:lookup(T, a),
         [{b, A, 0}] = ats:lookup(T, b),
         ?assert(InPlace > 0 andalso InPlace < A)
     end || Type <- [set, ordered_set]].

updates(_) ->
    [begin
         T = ats:new(t, [Type, {keypos, 2}]),
         ?assertEqual([{1, a}], ats:update(T, a, fun([]) -> [{1, a}] end)),
         ?assertEqual([{2, a}], ats:update(T, a, fun([{1, a}]) -> [{2, a}] end)),
         ?assertEqual([{2, a}], ats:update(T, a, fun(Same) -> Same end)),
         ?assertEqual([], ats:update(T, a, fun([{2, a}]) -> [] end)),
         ?assertEqual([], ats:update(T, a, fun([]) -> [] end)),
         ?assertEqual([], ats:tab2list(T))
     end || Type <- [set, ordered_set]],
    T = ats:new(t, [ordered_set]),
    ats:insert(T, {1, a}),
    ?assertEqual([{1, b}], ats:update(T, 1.0, fun([{1, a}]) -> [{1, b}] end)),
    ?assertError(from_here, ats:update(T, 1, fun(_) -> error(from_here) end)),
    ?assertEqual([{1, b}], ats:tab2list(T)).

updates_race(_) ->
    T = ats:new(t, [public]),
    Add = fun([]) -> [{a, [1]}]; ([{a, [N | _] = All}]) -> [{a, [N + 1 | All]}] end,
    Wait = in_processes(8, fun(_) -> [ats:update(T, a, Add) || _ <- lists:seq(1, 100)] end),
    Wait(),
    ?assertEqual([{a, lists:seq(800, 1, -1)}], ats:lookup(T, a)).

bad_updates(_) ->
    T = ats:new(t, []),
    ?assertEqual("not a function of one argument",
                 text(fun() -> ats:update(T, a, fun() -> [] end) end, 3)),
    [?assertEqual("has not returned a list of no object or of one with this key",
                  text(fun() -> ats:update(T, a, fun(_) -> Result end) end, 3))
     || Result <- [{a, 1}, [{b, 1}], [{a, 1}, {a, 2}], [a], [{}]]],
    Bag = ats:new(t, [bag]),
    ?assertEqual("the table identifier refers to an ATS table of a type not supported by this "
                 "operation", text(fun() -> ats:update(Bag, a, fun(_) -> [] end) end, 1)),
    Other = fun([]) -> ats:insert(T, {a, 0}), [{a, 1}];
               ([{a, N}]) -> ats:insert(T, {a, N + 1}), [{a, -1}] end,
    ?assertError(contended, ats:update(T, a, Other)),
    ?assertMatch(#{retries := 1000}, ats:info(T, stats)),
    ats:delete(T),
    ?assertError(badarg, ats:update(T, a, fun(_) -> [] end)),
    ?assertError(badarg, ats:update(none, a, fun(_) -> [] end)).

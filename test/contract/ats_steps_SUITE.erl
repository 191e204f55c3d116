%% Steps from key to key of an `ordered_set', of which many tell the next key without a look at its
%% object. Integers and floats that are equal have one position, so which of them is there must
%% not be told by the position alone. `ets' is the oracle.
-module(ats_steps_SUITE).

-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0]).
-export([
    integers_of_all_sizes/1,
    numbers_of_both_kinds/1,
    other_keys/1,
    replaced_by_a_program/1,
    steps_from_keys_that_went/1,
    floats_come_beside_steps/1
]).

-define(PROGRAMS, 300).
-define(CALLS, 200).

suite() -> [{timetrap, {minutes, 15}}].

all() ->
    [
        integers_of_all_sizes,
        numbers_of_both_kinds,
        other_keys,
        replaced_by_a_program,
        steps_from_keys_that_went,
        floats_come_beside_steps
    ].

%% Around all powers of two up to those that are no small integers, and no words.
integers_of_all_sizes(_) ->
    Powers = [1 bsl N || N <- lists:seq(0, 70)],
    Keys = lists:usort([Sign * Power + Near
                        || Sign <- [1, -1], Power <- Powers, Near <- [-1, 0, 1]]),
    same_walks([{Key} || Key <- Keys]),
    same_walks([{Key, a_binary(Key)} || Key <- Keys]).

%% A binary that the table keeps by reference, so that objects are no plain ones.
a_binary(Key) -> <<Key:80, 0:80000>>.

%% Programs over few numbers, most of which are there as integers and as floats in turns.
numbers_of_both_kinds(_) ->
    Numbers = [-1, -1.0, 0, 0.0, 1, 1.0, 1.5, 2, 2.0, 300, 300.0, 1 bsl 40, float(1 bsl 40)],
    Calls = [fun(M, T) -> M:insert(T, {one_of(Numbers), rand:uniform(9)}) end,
             fun(M, T) -> M:insert(T, [{one_of(Numbers), rand:uniform(9)}, {7, 0}]) end,
             fun(M, T) -> M:insert_new(T, {one_of(Numbers), rand:uniform(9)}) end,
             fun(M, T) -> M:delete(T, one_of(Numbers)) end,
             fun(M, T) -> M:update_counter(T, one_of(Numbers), 1, {default, 0}) end,
             fun(M, T) -> M:update_element(T, one_of(Numbers), {2, 5}) end,
             fun(M, T) -> M:next(T, one_of(Numbers)) end,
             fun(M, T) -> M:prev(T, one_of(Numbers)) end,
             fun(M, T) -> M:take(T, one_of(Numbers)) end],
    lists:foreach(fun(Seed) -> same_results(Seed, Calls) end, lists:seq(1, ?PROGRAMS)).

same_results(Seed, Calls) ->
    [Ets, Ats] = [begin
                      _ = rand:seed(exsss, Seed),
                      T = M:new(numbers, [ordered_set, public]),
                      Results = [{(one_of(Calls))(M, T), M:next(T, -5), M:prev(T, 1 bsl 50)}
                                 || _ <- lists:seq(1, ?CALLS)],
                      All = {Results, walk(M, T, first, next), walk(M, T, last, prev)},
                      true = M:delete(T),
                      All
                  end || M <- [ets, ats]],
    ?assert(Ets =:= Ats, {seed, Seed}).

other_keys(_) ->
    same_walks([{Key} || N <- lists:seq(1, 300),
                         Key <- [N, {N}, [N], integer_to_binary(N), N + 0.5, <<N:200>>,
                                 list_to_atom("key_" ++ integer_to_list(N rem 7))]]).

%% A program may put an object under a float where one under an equal integer was.
replaced_by_a_program(_) ->
    Spec = [{{'$1'}, [], [{{{'*', '$1', 1.0}}}]}],
    [A, B] = [begin
                  T = M:new(replaced, [ordered_set, public]),
                  true = M:insert(T, [{N} || N <- lists:seq(1, 100)]),
                  Replaced = try M:select_replace(T, Spec) catch error:badarg -> badarg end,
                  {Replaced, walk(M, T, first, next)}
              end || M <- [ets, ats]],
    ?assertEqual(A, B).

%% A chain goes on from a key that has just been deleted.
steps_from_keys_that_went(_) ->
    T = ats:new(went, [ordered_set, public]),
    true = ats:insert(T, [{N} || N <- lists:seq(1, 2000)]),
    ?assertEqual(lists:seq(1, 2000), deleting(T, ats:first(T), next)),
    ?assertEqual('$end_of_table', ats:first(T)),
    true = ats:insert(T, [{N} || N <- lists:seq(2000, 1, -1)]),
    ?assertEqual(lists:seq(2000, 1, -1), deleting(T, ats:last(T), prev)).

deleting(_, '$end_of_table', _) ->
    [];
deleting(T, Key, Step) ->
    true = ats:delete(T, Key),
    [Key | deleting(T, ats:Step(T, Key), Step)].

%% One process makes floats of integers and integers of floats, another one walks. The walk meets
%% one of both; and the first process finds its own writes.
floats_come_beside_steps(_) ->
    T = ats:new(both, [ordered_set, public]),
    Keys = lists:seq(1, 500),
    true = ats:insert(T, [{Key} || Key <- Keys]),
    {Writer, Monitor} = spawn_monitor(fun() -> exchange(T, Keys, 40) end),
    ok = walks(T, Keys, Monitor),
    ?assertEqual(Keys, [trunc(Key) || Key <- walk(ats, T, first, next)]),
    ?assertNot(is_process_alive(Writer)).

exchange(_, _, 0) ->
    ok;
exchange(T, Keys, Rounds) ->
    lists:foreach(fun(Key) ->
                          true = ats:insert(T, {float(Key)}),
                          ?assertMatch(Float when is_float(Float), ats:next(T, Key - 1)),
                          true = ats:insert(T, {Key}),
                          ?assertEqual(Key, ats:next(T, Key - 1)),
                          true = ats:insert(T, {one_of([Key, float(Key)])})
                  end, Keys),
    exchange(T, Keys, Rounds - 1).

walks(T, Keys, Monitor) ->
    Met = walk(ats, T, first, next),
    ?assert(lists:all(fun({A, B}) -> A == B end, lists:zip(Keys, Met))),
    receive
        {'DOWN', Monitor, process, _, Reason} -> ?assertEqual(normal, Reason), ok
    after 0 ->
        walks(T, Keys, Monitor)
    end.

%% ----- help -----

%% Both walks of a table that is filled in a random order, in which leaves have tails.
same_walks(Objects) ->
    Sorted = lists:sort([{rand:uniform(), Object} || Object <- Objects]),
    Shuffled = [Object || {_, Object} <- Sorted],
    [Ets, Ats] = [begin
                      T = M:new(walked, [ordered_set, public]),
                      [true = M:insert(T, Object) || Object <- Shuffled],
                      Walks = {walk(M, T, first, next), walk(M, T, last, prev)},
                      true = M:delete(T),
                      Walks
                  end || M <- [ets, ats]],
    ?assert(Ets =:= Ats).

walk(M, T, End, Step) -> steps(M, T, Step, M:End(T)).

steps(_, _, _, '$end_of_table') -> [];
steps(M, T, Step, Key) -> [Key | steps(M, T, Step, M:Step(T, Key))].

one_of(List) -> lists:nth(rand:uniform(length(List)), List).

%% The inner loops of the benchmark, compiled once for each side.
%%
%% A module defines TABLES as `ats' or `ets', and LOOKUP_MANY as what looks up a list of keys there,
%% and includes this file, so that every table call is a direct call to a known function, as in a
%% user's program; all else is the same code on both sides. A loop draws the operation and the key
%% as it goes, with `rand:mwc59/1', from a seed that all sides get. The cost of that is part of all
%% figures; `ats_bench_idle' measures it.

-export([run/5, insert_range/4, insert_values/2, delete_values/2, members/2]).
-export([new/2, delete/1, insert/2, size/1, memory_words/1]).

-define(LIST_LENGTH, 10).

%% Does `Count' operations of a mix, and returns the state of the generator.
-spec run(ats_bench_run:work(), ats_bench:table(), ats_bench_keys:drawn(),
          ats_bench_run:generator(), non_neg_integer()) -> ats_bench_run:generator().
run({only, Operation}, Table, Keys, State, Count) -> only(Operation, Table, Keys, State, Count);
run({mix, Steps}, Table, Keys, State, Count) -> mix(Steps, Table, Keys, State, Count).

only(_, _, _, State, 0) ->
    State;
only(Operation, Table, Keys, State0, Count) ->
    State = rand:mwc59(State0),
    _ = operate(Operation, Table, Keys, rand:mwc59_value32(State)),
    only(Operation, Table, Keys, State, Count - 1).

mix(_, _, _, State, 0) ->
    State;
mix(Steps, Table, Keys, State0, Count) ->
    State1 = rand:mwc59(State0),
    State = rand:mwc59(State1),
    _ = operate(chosen(rand:mwc59_value32(State1), Steps), Table, Keys, rand:mwc59_value32(State)),
    mix(Steps, Table, Keys, State, Count - 1).

chosen(Random, [{Below, Operation} | _]) when Random < Below -> Operation;
chosen(Random, [_ | Steps]) -> chosen(Random, Steps).

operate(lookup, Table, Keys, Random) ->
    ?TABLES:lookup(Table, key(Keys, Random));
operate(insert, Table, Keys, Random) ->
    ?TABLES:insert(Table, {key(Keys, Random), Random});
operate(member, Table, Keys, Random) ->
    ?TABLES:member(Table, key(Keys, Random));
operate(element, Table, Keys, Random) ->
    ?TABLES:lookup_element(Table, key(Keys, Random), 2);
operate(insert_value, Table, {valued, _, Value} = Keys, Random) ->
    ?TABLES:insert(Table, {key(Keys, Random), Value});
operate(insert_new, Table, Keys, Random) ->
    ?TABLES:insert_new(Table, {key(Keys, Random), Random});
operate(update_element, Table, Keys, Random) ->
    ?TABLES:update_element(Table, key(Keys, Random), {2, Random});
operate(take_and_insert, Table, Keys, Random) ->
    Key = key(Keys, Random),
    _ = ?TABLES:take(Table, Key),
    ?TABLES:insert(Table, {Key, Random});
operate(first, Table, _, _) ->
    ?TABLES:first(Table);
operate(next, Table, Keys, Random) ->
    ?TABLES:next(Table, key(Keys, Random));
operate(size, Table, _, _) ->
    ?TABLES:info(Table, size);
operate(all_objects, Table, _, _) ->
    ?TABLES:tab2list(Table);
operate(delete, Table, Keys, Random) ->
    ?TABLES:delete(Table, key(Keys, Random));
operate(counter, Table, Keys, Random) ->
    ?TABLES:update_counter(Table, key(Keys, Random), 1);
operate(counter_or_new, Table, Keys, Random) ->
    Key = key(Keys, Random),
    ?TABLES:update_counter(Table, Key, 1, {Key, 0});
operate(two_counters, Table, Keys, Random) ->
    ?TABLES:update_counter(Table, key(Keys, Random), [{2, 1}, {3, 1}]);
operate(two_elements, Table, Keys, Random) ->
    ?TABLES:update_element(Table, key(Keys, Random), [{2, Random}, {3, 0}]);
operate(three_numbers, Table, Keys, Random) ->
    ?TABLES:insert(Table, {key(Keys, Random), Random, 1, Random});
operate(insert_list, Table, Keys, Random) ->
    ?TABLES:insert(Table, objects(?LIST_LENGTH, Keys, Random));
operate({lookup_list, Count}, Table, Keys, Random) ->
    ?LOOKUP_MANY(Table, keys(Count, Keys, Random));
operate({next, Count}, Table, Keys, Random) ->
    chain(Table, Keys, key(Keys, Random), Count);
operate(count_all, Table, _, _) ->
    ?TABLES:select_count(Table, [{'_', [], [true]}]);
operate({count_range, Count}, Table, Keys, Random) ->
    First = key(Keys, Random),
    ?TABLES:select_count(Table, [{{'$1', '_'}, [{'>', '$1', First}, {'=<', '$1', First + Count}],
                                  [true]}]).

objects(0, _, _) ->
    [];
objects(Count, Keys, Random) ->
    State = rand:mwc59(Random bor 1),
    [{key(Keys, rand:mwc59_value32(State)), Count} | objects(Count - 1, Keys, State)].

keys(0, _, _) ->
    [];
keys(Count, Keys, Random) ->
    State = rand:mwc59(Random bor 1),
    [key(Keys, rand:mwc59_value32(State)) | keys(Count - 1, Keys, State)].

%% A set has no key after one that it does not have: there the chain goes on from another key.
chain(_, _, '$end_of_table', _) -> ok;
chain(_, _, _, 0) -> ok;
chain(Table, Keys, Key, Count) -> chain(Table, Keys, next(Table, Keys, Key), Count - 1).

next(Table, Keys, Key) ->
    try
        ?TABLES:next(Table, Key)
    catch
        error:badarg -> key(Keys, erlang:phash2(Key, 1 bsl 32))
    end.

%% The key that a random number below 2^32 stands for.
key({integers, First, Count}, Random) -> First + ((Random * Count) bsr 32);
key({valued, Count, _}, Random) -> {u, (Random * Count) bsr 32};
key({built, Kind, Count}, Random) -> ats_bench_keys:key(Kind, (Random * Count) bsr 32);
key({made, Keys}, Random) -> element(1 + ((Random * tuple_size(Keys)) bsr 32), Keys).

%% Inserts objects of one key.
-spec insert_values(ats_bench:table(), [term()]) -> ok.
insert_values(Table, [Value | Rest]) ->
    ?TABLES:insert(Table, {key, Value}),
    insert_values(Table, Rest);
insert_values(_, []) ->
    ok.

%% Deletes these objects again.
-spec delete_values(ats_bench:table(), [term()]) -> ok.
delete_values(Table, [Value | Rest]) ->
    ?TABLES:delete_object(Table, {key, Value}),
    delete_values(Table, Rest);
delete_values(_, []) ->
    ok.

%% Inserts the integers from First up to Last, one in Step.
-spec insert_range(ats_bench:table(), integer(), integer(), pos_integer()) -> ok.
insert_range(Table, First, Last, Step) when First =< Last ->
    ?TABLES:insert(Table, {First}),
    insert_range(Table, First + Step, Last, Step);
insert_range(_, _, _, _) ->
    ok.

-spec members(ats_bench:table(), non_neg_integer()) -> ok.
members(_, 0) ->
    ok;
members(Table, N) ->
    _ = ?TABLES:member(Table, N),
    members(Table, N - 1).

-spec new(atom(), list()) -> ats_bench:table().
new(Name, Options) -> ?TABLES:new(Name, Options).

-spec delete(ats_bench:table()) -> true.
delete(Table) -> ?TABLES:delete(Table).

-spec insert(ats_bench:table(), tuple() | [tuple()]) -> true.
insert(Table, Objects) -> ?TABLES:insert(Table, Objects).

-spec size(ats_bench:table()) -> non_neg_integer().
size(Table) -> ?TABLES:info(Table, size).

-spec memory_words(ats_bench:table()) -> non_neg_integer().
memory_words(Table) -> ?TABLES:info(Table, memory).

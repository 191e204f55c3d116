%% The inner loops of the benchmark, compiled once for each side.
%%
%% A module defines TABLES as `ats' or `ets' and includes this file, so that every table call is a
%% direct call to a known function, as in a user's program; all else is the same code on both
%% sides. Operations come as a list that was made beforehand, since making random keys inside of
%% the loop would be measured, too. It is a list of integers, of which the low two bits choose the
%% operation and the rest is the key, or, for the loops called `..._terms', of `[Operation | Key]';
%% for those called `..._lists' it is a list of lists of objects.

-export([run/3, insert_range/4, insert_values/2, delete_values/2, members/2]).
-export([new/2, delete/1, insert/2, size/1, memory_words/1]).

-define(CHAIN_LENGTH, 1000).

%% Runs one chunk of operations.
-spec run(ats_bench_run:loop(), ats_bench:table() | none,
          [integer() | maybe_improper_list() | [tuple()]]) -> ok.
run(lookup, Table, Operations) -> lookup(Table, Operations);
run(mixed, Table, Operations) -> mixed(Table, Operations);
run(chains, Table, Operations) -> chains(Table, Operations);
run(counter, Table, Operations) -> counter(Table, Operations);
run(counter_or_new, Table, Operations) -> counter_or_new(Table, Operations);
run(idle, Table, Operations) -> idle(Table, Operations);
run(lookup_terms, Table, Operations) -> lookup_terms(Table, Operations);
run(mixed_terms, Table, Operations) -> mixed_terms(Table, Operations);
run(idle_terms, Table, Operations) -> idle_terms(Table, Operations);
run(insert_lists, Table, Operations) -> insert_lists(Table, Operations);
run(idle_lists, Table, Operations) -> idle_lists(Table, Operations).

lookup(Table, [X | Rest]) ->
    _ = ?TABLES:lookup(Table, X bsr 2),
    lookup(Table, Rest);
lookup(_, []) ->
    ok.

mixed(Table, [X | Rest]) ->
    _ = case X band 3 of
            0 -> ?TABLES:lookup(Table, X bsr 2);
            1 -> ?TABLES:insert(Table, {X bsr 2, X});
            2 -> ?TABLES:delete(Table, X bsr 2)
        end,
    mixed(Table, Rest);
mixed(_, []) ->
    ok.

chains(Table, [X | Rest]) ->
    _ = case X band 3 of
            0 -> ?TABLES:lookup(Table, X bsr 2);
            1 -> ?TABLES:insert(Table, {X bsr 2, X});
            2 -> ?TABLES:delete(Table, X bsr 2);
            3 -> chain(Table, X bsr 2, ?CHAIN_LENGTH)
        end,
    chains(Table, Rest);
chains(_, []) ->
    ok.

chain(_, '$end_of_table', _) -> ok;
chain(_, _, 0) -> ok;
chain(Table, Key, N) -> chain(Table, ?TABLES:next(Table, Key), N - 1).

counter(Table, [X | Rest]) ->
    _ = ?TABLES:update_counter(Table, X bsr 2, 1),
    counter(Table, Rest);
counter(_, []) ->
    ok.

counter_or_new(Table, [X | Rest]) ->
    _ = ?TABLES:update_counter(Table, X bsr 2, 1, {X bsr 2, 0}),
    counter_or_new(Table, Rest);
counter_or_new(_, []) ->
    ok.

%% The cost of the loops without any table.
idle(Table, [X | Rest]) ->
    _ = case X band 3 of
            0 -> X bsr 2;
            1 -> {X bsr 2, X};
            _ -> X bsr 2
        end,
    idle(Table, Rest);
idle(_, []) ->
    ok.

lookup_terms(Table, [[_ | Key] | Rest]) ->
    _ = ?TABLES:lookup(Table, Key),
    lookup_terms(Table, Rest);
lookup_terms(_, []) ->
    ok.

mixed_terms(Table, [[Operation | Key] | Rest]) ->
    _ = case Operation of
            0 -> ?TABLES:lookup(Table, Key);
            1 -> ?TABLES:insert(Table, {Key, Operation});
            2 -> ?TABLES:delete(Table, Key)
        end,
    mixed_terms(Table, Rest);
mixed_terms(_, []) ->
    ok.

idle_terms(Table, [[Operation | Key] | Rest]) ->
    _ = case Operation of
            0 -> Key;
            1 -> {Key, Operation};
            _ -> Key
        end,
    idle_terms(Table, Rest);
idle_terms(_, []) ->
    ok.

insert_lists(Table, [Objects | Rest]) ->
    _ = ?TABLES:insert(Table, Objects),
    insert_lists(Table, Rest);
insert_lists(_, []) ->
    ok.

idle_lists(Table, [_ | Rest]) -> idle_lists(Table, Rest);
idle_lists(_, []) -> ok.

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

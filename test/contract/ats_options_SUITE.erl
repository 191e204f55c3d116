%% `info/1,2' shows the same options of a table as in `ets': for all types, protections and ways to
%% ask for concurrency, in every order that could matter. The owner and another process get the same
%% answer.
-module(ats_options_SUITE).

-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0]).
-export([every_combination/1, every_order/1, options_change_nothing_else/1]).

-define(ITEMS, [
    read_concurrency,
    write_concurrency,
    decentralized_counters,
    compressed,
    type,
    protection,
    keypos,
    named_table,
    heir,
    size,
    fixed
]).
-define(TYPES, [set, ordered_set, bag, duplicate_bag]).
-define(WRITE_CONCURRENCY, [
    [],
    [{write_concurrency, false}],
    [{write_concurrency, true}],
    [{write_concurrency, auto}],
    [{write_concurrency, {debug_hash_fixed_number_of_locks, 1}}],
    [{write_concurrency, {debug_hash_fixed_number_of_locks, 128}}],
    [{write_concurrency, {debug_hash_fixed_number_of_locks, 200}}],
    [{write_concurrency, {debug_hash_fixed_number_of_locks, 40000}}]
]).
-define(READ_CONCURRENCY, [[], [{read_concurrency, true}], [{read_concurrency, false}]]).
-define(DECENTRALIZED_COUNTERS, [
    [],
    [{decentralized_counters, true}],
    [{decentralized_counters, false}]
]).

suite() -> [{timetrap, {minutes, 15}}].

all() ->
    [every_combination, every_order, options_change_nothing_else].

every_combination(_) ->
    Combinations = [
        [Type, Protection] ++ Wc ++ Rc ++ Dc ++ Compressed
     || Type <- ?TYPES,
        Protection <- [private, protected, public],
        Wc <- ?WRITE_CONCURRENCY,
        Rc <- ?READ_CONCURRENCY,
        Dc <- ?DECENTRALIZED_COUNTERS,
        Compressed <- [[], [compressed]]
    ],
    lists:foreach(fun compare/1, Combinations),
    {comment, io_lib:format("~b combinations", [length(Combinations)])}.

%% Conflicting options: the last one wins, and the effect of one may depend on those before it.
every_order(_) ->
    Options = [
        bag,
        ordered_set,
        set,
        public,
        private,
        {write_concurrency, true},
        {write_concurrency, auto},
        {write_concurrency, false},
        {decentralized_counters, true},
        {decentralized_counters, false},
        {read_concurrency, true},
        compressed
    ],
    Lists = [[A, B, C] || A <- Options, B <- Options, C <- Options],
    lists:foreach(fun compare/1, Lists),
    lists:foreach(fun(List) -> compare([public | List]) end, Lists).

compare(Options) ->
    M = ats_oracle:subject(),
    ?assertEqual({Options, made(ets, Options)}, {Options, made(M, Options)}).

%% Returns the description of a table, for its owner and for another process; or that there is none.
made(M, Options) ->
    try M:new(options, Options) of
        T ->
            Own = about(M, T),
            [Others] = ats_test_lib:parallel([fun() -> about(M, T) end]),
            true = M:delete(T),
            ?assertEqual(Own, Others),
            Own
    catch
        error:badarg -> badarg
    end.

about(M, T) ->
    All = M:info(T),
    [{Item, M:info(T, Item), proplists:get_value(Item, All)} || Item <- ?ITEMS].

%% The options are promises about speed and room; the contents of a table are the same with all of
%% them.
options_change_nothing_else(_) ->
    M = ats_oracle:subject(),
    Objects = [
        {K, binary:copy(<<"value">>, N), #{N => {K}}}
     || N <- lists:seq(1, 300), K <- [N rem 50]
    ],
    lists:foreach(
        fun(Type) ->
            [First | Rest] = [
                contents(M, [Type, public] ++ Wc ++ Rc ++ Dc ++ Compressed, Objects)
             || Wc <- [
                    [],
                    [{write_concurrency, true}],
                    [{write_concurrency, auto}]
                ],
                Rc <- ?READ_CONCURRENCY,
                Dc <- ?DECENTRALIZED_COUNTERS,
                Compressed <- [[], [compressed]]
            ],
            lists:foreach(fun(Other) -> ?assertEqual(First, Other) end, Rest)
        end,
        ?TYPES
    ).

contents(M, Options, Objects) ->
    T = M:new(contents, Options),
    true = M:insert(T, Objects),
    [M:delete_object(T, Object) || Object <- lists:sublist(Objects, 3, 20)],
    M:delete(T, 7),
    Found = [{K, M:lookup(T, K)} || K <- lists:seq(0, 60)],
    Size = M:info(T, size),
    Taken = [M:take(T, K) || K <- lists:seq(20, 30)],
    Left = lists:sort(M:tab2list(T)),
    true = M:delete(T),
    {Size, Found, Taken, Left}.

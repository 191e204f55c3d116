%% @private
%% @doc The keys of the benchmark, and the operations on them.
%%
%% Keys are numbered from zero up to a power of two; a kind of keys says which term a number stands
%% for. Half of the numbers, the even ones, are in a table when it is filled. Everything is drawn
%% from fixed seeds, so every run and every side sees the same.
-module(ats_bench_keys).

-export([kinds/1, name/1, key/2, shuffled_half/1, shuffled/2, operations/4]).

-export_type([kind/0, span/0, mix/0]).

-define(LIST_LENGTH, 10).

-type kind() :: integers | counters | binaries | paths | tuples | atoms | tagged | lists.
%% Which numbers are drawn: from `First' on, so many.
-type span() :: {First :: non_neg_integer(), Count :: pos_integer()}.
%% Per cent of inserts, deletes and chains; what is left to 100 are lookups.
-type mix() :: {Inserts :: 0..100, Deletes :: 0..100, Chains :: 0..100}.

%% @doc The kinds of keys other than integers that a type of table is measured with: those of which
%% it depends on the kind how fast it is.
-spec kinds(ats:table_type()) -> [kind()].
kinds(set) -> [binaries, atoms, tagged];
kinds(ordered_set) -> [binaries, paths, tuples].

%% @doc The name of a kind in a row of the results.
-spec name(kind()) -> string().
name(integers) -> "Int";
name(counters) -> "Int";
name(binaries) -> "Bin16..40";
name(paths) -> "Path16..39";
name(tuples) -> "{a,Int,Int}";
name(atoms) -> "Atom";
name(tagged) -> "{a,Int}";
name(lists) -> "Int".

%% @doc The key of a number. Different numbers have different keys.
%%
%% `binaries' are random bytes from the first on, as digests and random identifiers are; `paths'
%% are text of which long beginnings are common to many keys and differences come late. A tree that
%% is good at the one can be bad at the other. `counters' are integers outside of the range of
%% `integers'. `atoms' stay in the atom table for ever, where a virtual machine has room for 2^20
%% unless told otherwise: enough for the half of a range of 2^20 and for what two processes draw.
%% `lists' are not keys of their own but lists of objects with integers as keys.
-spec key(kind(), non_neg_integer()) -> term().
key(integers, N) ->
    N;
key(counters, N) ->
    -N - 1;
key(binaries, N) ->
    Random = <<(erlang:md5(<<N:32>>))/binary, (erlang:md5(<<N:64>>))/binary,
               (erlang:md5(<<N:96>>))/binary>>,
    binary:part(Random, 0, length_of(N));
key(paths, N) ->
    <<(folder(N bsr 17))/binary, (number_text(N band 16#1ffff))/binary>>;
key(tuples, N) ->
    {tag(N), (N bsr 10) band 127, N band 1023};
key(atoms, N) ->
    list_to_atom("key_" ++ integer_to_list(N));
key(tagged, N) ->
    {tag(N), N band 16#1ffff}.

tag(N) ->
    element(1 + (N bsr 17) rem 8, {access, basket, customer, delivery, event, grant, item, job}).

%% Sixteen to forty bytes, each length as often.
length_of(N) -> 16 + erlang:phash2(N, 25).

folder(N) ->
    element(1 + N rem 8, {<<"/baskets/">>,
                          <<"/customers/">>,
                          <<"/customers/orders/">>,
                          <<"/customers/orders/open/">>,
                          <<"/deliveries/">>,
                          <<"/deliveries/by-day/">>,
                          <<"/sessions/active/by-customer/">>,
                          <<"/warehouses/europe/north/places/">>}).

number_text(N) -> iolist_to_binary(io_lib:format("~7..0b", [N])).

%% @doc The even numbers below 2^Log2, in random order.
-spec shuffled_half(pos_integer()) -> [non_neg_integer()].
shuffled_half(Log2) ->
    in_random_order(lists:seq(0, (1 bsl Log2) - 1, 2), 1).

%% @doc The numbers from 1 to `Count' in a random order; another for each seed.
-spec shuffled(pos_integer(), pos_integer()) -> [pos_integer()].
shuffled(Count, Seed) ->
    in_random_order(lists:seq(1, Count), Seed).

in_random_order(Numbers, Seed) ->
    State = rand:seed_s(exsss, Seed),
    {Tagged, _} = lists:mapfoldl(fun(N, S0) ->
                                         {R, S} = rand:uniform_s(1 bsl 30, S0),
                                         {{R, N}, S}
                                 end, State, Numbers),
    [N || {_, N} <- lists:sort(Tagged)].

%% @doc Operations of one process, in chunks of a size after each of which the clock is read: what
%% the loops of ats_bench_loops.hrl take.
-spec operations(kind(), span(), mix(), {Process :: pos_integer(), Count :: pos_integer(),
                                         ChunkSize :: pos_integer()}) -> [[term()]].
operations(lists, Span, _, {Process, Count, Size}) ->
    {Lists, _} = lists:mapfoldl(fun(_, S) -> objects(Span, S) end,
                                rand:seed_s(exsss, {Process, 2, 3}),
                                lists:seq(1, max(Size, Count - Count rem Size))),
    chunks(Lists, Size);
operations(Kind, Span, Mix, {Process, Count, Size}) ->
    {Operations, _} = lists:mapfoldl(
        fun(_, S0) ->
                {Percent, S1} = rand:uniform_s(100, S0),
                {N, S2} = number(Span, S1),
                {operation(Kind, N, code(Percent, Mix)), S2}
        end, rand:seed_s(exsss, {Process, 2, 3}), lists:seq(1, max(Size, Count - Count rem Size))),
    chunks(Operations, Size).

objects(Span, State) ->
    lists:mapfoldl(fun(_, S0) ->
                           {N, S} = number(Span, S0),
                           {{key(integers, N), N}, S}
                   end, State, lists:seq(1, ?LIST_LENGTH)).

number({First, Count}, S0) ->
    {N, S} = rand:uniform_s(Count, S0),
    {First + N - 1, S}.

%% An integer key and the code of its operation fit into one small integer; other keys are made
%% beforehand, as a program would have them at hand.
operation(Kind, N, Code) when Kind =:= integers; Kind =:= counters ->
    (key(Kind, N) bsl 2) bor Code;
operation(Kind, N, Code) ->
    [Code | key(Kind, N)].

code(Percent, {Inserts, _, _}) when Percent =< Inserts -> 1;
code(Percent, {Inserts, Deletes, _}) when Percent =< Inserts + Deletes -> 2;
code(Percent, {Inserts, Deletes, Chains}) when Percent =< Inserts + Deletes + Chains -> 3;
code(_, _) -> 0.

chunks([], _) ->
    [];
chunks(List, Size) ->
    {Chunk, Rest} = lists:split(Size, List),
    [Chunk | chunks(Rest, Size)].

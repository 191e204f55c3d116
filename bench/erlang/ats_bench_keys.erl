%% @private
%% @doc The keys of the benchmark.
%%
%% Keys are numbered from zero up; a kind of keys says which term a number stands for. A table is
%% filled with the even numbers of a span, or with all of them.
-module(ats_bench_keys).

-export([short_kinds/0, long_kinds/1, valued_kinds/0, sets/0, small_sets/0, name/1]).
-export([key/2, value/1, numbers/2, shuffled/2]).
-export([prepare/1, forget/1, drawn/1]).

-export_type([kind/0, set/0, filling/0, span/0, drawn/0]).

-type kind() :: integers | tagged | words | atoms | binaries | paths | tuples | {valued, string()}.
%% A number of keys: one, ten, as many as a program uses all the time, ten times as many, as fit
%% into a cache, and as do not.
-type set() :: one | few | hot | warm | cache | wide.
%% Every other key, all keys, and all keys with several numbers each.
-type filling() :: half | full | several.
%% `Count' keys of a kind, from a number on.
-type span() :: {kind(), First :: non_neg_integer(), Count :: pos_integer()}.
%% Keys as the loops draw them: computed, with the value of their objects or without, built by
%% {@link key/2}, or taken from a tuple.
-type drawn() :: {integers, non_neg_integer(), pos_integer()} | {valued, pos_integer(), term()}
               | {built, kind(), pos_integer()} | {made, tuple()}.

%% @doc Kinds of short keys that are no integers.
-spec short_kinds() -> [kind()].
short_kinds() -> [tagged, words, atoms].

%% @doc Kinds of longer keys: those of which it depends on the kind how fast a type of table is.
-spec long_kinds(ats:table_type()) -> [kind()].
long_kinds(ordered_set) -> [binaries, paths, tuples];
long_kinds(_) -> [binaries].

%% @doc Returns the sizes of key sets.
-spec sets() -> [{set(), pos_integer()}].
sets() -> [{hot, 1000}, {cache, 1 bsl 17}, {wide, 1 bsl 20}].

%% @doc Returns the sizes of small key sets.
-spec small_sets() -> [{set(), pos_integer()}].
small_sets() -> [{few, 10}, {hot, 1000}, {warm, 10000}].

%% @doc Returns the kinds of keys `{u,Int}' whose objects have a value as programs have them, the
%% same in all objects of a table.
-spec valued_kinds() -> [kind()].
valued_kinds() -> [{valued, Name} || {Name, _} <- values()].

values() ->
    Atoms = [name, size, colour, owner, created, changed, state, count, limit, parent],
    Numbers = maps:from_list(lists:zip(Atoms, lists:seq(1, 10))),
    Texts = maps:map(fun(_, N) -> integer_to_binary(N * 1000003) end, Numbers),
    [{"an integer", 7},
     {"a float", 7.5},
     {"a tuple of 10", list_to_tuple(lists:seq(1, 10))},
     {"a map of 10 integers", Numbers},
     {"a map of 10 binaries", Texts},
     {"a map of 40", maps:from_list([{N, N} || N <- lists:seq(1, 40)])},
     {"nested maps", #{name => <<"pear">>, place => #{shelf => 3, row => {2, b}},
                       tags => [fruit, green], weight => 0.25}},
     {"a list of 20", lists:seq(1, 20)},
     {"a list of 1000", lists:seq(1, 1000)},
     {"a binary of 50", binary:copy(<<"x">>, 50)},
     {"a binary of 500", binary:copy(<<"x">>, 500)},
     {"a binary of 5000", binary:copy(<<"x">>, 5000)},
     {"a pid", whereis(init)},
     {"a fun", fun() -> Numbers end}].

%% @doc Returns the value that the objects of a table have at first.
-spec value(kind()) -> term().
value({valued, Name}) ->
    {Name, Value} = lists:keyfind(Name, 1, values()),
    Value;
value(_) ->
    0.

%% @doc Returns the name of a kind in a row of the results.
-spec name(kind()) -> string().
name({valued, Value}) -> "{u,Int}, " ++ Value;
name(integers) -> "Int";
name(words) -> "Bin8";
name(binaries) -> "Bin16..40";
name(paths) -> "Path16..39";
name(tuples) -> "{a,Int,Int}";
name(atoms) -> "Atom";
name(tagged) -> "{a,Int}".

%% @doc Returns the key of a number. Different numbers have different keys.
%%
%% `binaries' are random bytes from the first on, as digests and random identifiers are; `paths'
%% are text of which long beginnings are common to many keys and differences come late. A tree that
%% is good at the one can be bad at the other. `atoms' stay in the atom table for ever, where a
%% virtual machine has room for 2^20 unless told otherwise.
-spec key(kind(), non_neg_integer()) -> term().
key(integers, N) ->
    N;
key({valued, _}, N) ->
    {u, N};
key(words, N) ->
    <<N:64>>;
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

%% @doc Returns the numbers of which a table has the keys, in random order.
-spec numbers(filling(), pos_integer()) -> [non_neg_integer()].
numbers(half, Count) -> in_random_order(lists:seq(0, Count - 1, 2), 1);
numbers(_, Count) -> in_random_order(lists:seq(0, Count - 1), 1).

%% @doc Returns the numbers from 1 to `Count' in a random order; another for each seed.
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

%% @doc Makes the keys that a loop cannot make in little time. As a persistent term they are a
%% literal: no process copies them, no garbage collector walks over them.
-spec prepare(span()) -> ok.
prepare({atoms, _, Count}) ->
    case erlang:system_info(atom_limit) - erlang:system_info(atom_count) > Count + 10000 of
        true -> make({atoms, 0, Count});
        false -> throw({refused, "not enough room for atoms: start erl with +t 4194304"})
    end;
prepare({Kind, _, _} = Span) when Kind =:= binaries; Kind =:= paths ->
    make(Span);
prepare(_) ->
    ok.

make({Kind, First, Count} = Span) ->
    Keys = [key(Kind, N) || N <- lists:seq(First, First + Count - 1)],
    persistent_term:put({?MODULE, Span}, list_to_tuple(Keys)).

%% @doc Deletes the data of a span.
-spec forget(span()) -> ok.
forget(Span) ->
    _ = persistent_term:erase({?MODULE, Span}),
    ok.

%% @doc Returns the keys of a span for a loop.
-spec drawn(span()) -> drawn().
drawn({integers, _, _} = Span) ->
    Span;
drawn({{valued, _} = Kind, 0, Count}) ->
    {valued, Count, value(Kind)};
drawn({Kind, 0, Count} = Span) ->
    case persistent_term:get({?MODULE, Span}, none) of
        none -> {built, Kind, Count};
        Keys -> {made, Keys}
    end.

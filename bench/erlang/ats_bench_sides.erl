%% @private
%% @doc The tables that are compared: in each field `ats' with default options first, then others.
-module(ats_bench_sides).

-export([fields/0, sides/2, turned/2, new/2, loops/1, options/1, name/1]).

-export_type([field/0, side/0]).

-type field() :: ets | everyday | values | options | locks | counters | stores.
%% The name in results, the module with the loops, and the options of a table.
-type side() :: {Name :: string(), Loops :: module(), Options :: list()}.

-define(ATS, {"ats", ats_bench_ats, []}).
-define(WRITE, {write_concurrency, true}).
-define(READ, {read_concurrency, true}).

%% @doc Returns all fields.
-spec fields() -> [field()].
fields() -> [ets, everyday, values, options, locks, counters, stores].

%% @doc Returns the sides of a field. The number of locks of a hash table is an option of `ets' for
%% tests.
-spec sides(field(), ats:table_type()) -> [side()].
sides(Field, _) when Field =:= ets; Field =:= everyday; Field =:= values ->
    [?ATS, ets("ets", []), ets("ets wc", [?WRITE, ?READ])];
sides(options, _) ->
    [?ATS, ets("ets", []), ets("ets r", [?READ]), ets("ets w", [?WRITE]),
     ets("ets rw", [?WRITE, ?READ])];
sides(locks, set) ->
    [?ATS | [ets(lists:concat(["ets ", Locks, " locks"]),
                 [{write_concurrency, {debug_hash_fixed_number_of_locks, Locks}}, ?READ])
             || Locks <- [16, 64, 256, 1024, 16384]]];
sides(locks, _) ->
    [];
sides(counters, _) ->
    [?ATS | [ets(Name, [?WRITE, ?READ, {decentralized_counters, Is}])
             || {Name, Is} <- [{"ets central", false}, {"ets decentralized", true}]]];
sides(stores, Type) ->
    [?ATS | [{atom_to_list(Store), ats_bench_ats, [{backend, Store}]} || Store <- stores(Type)]]
    ++ tl(sides(ets, Type)).

stores(ordered_set) -> [lock_free_tree, skip_list, btree];
stores(_) -> [hash_map, btree].

ets(Name, Options) -> {Name, ats_bench_ets, Options}.

%% @doc Returns the sides in the order of a round. Each round begins with another one, so none
%% always comes after the same.
-spec turned(Round :: non_neg_integer(), [Side, ...]) -> [Side, ...].
turned(Round, Sides) ->
    {Before, After} = lists:split(Round rem length(Sides), Sides),
    After ++ Before.

%% @doc Makes a table of a side.
-spec new(side(), ats:table_type()) -> ats_bench:table().
new({_, Loops, Options}, Type) -> Loops:new(benchmark, [Type, public | Options]).

%% @doc Returns the module whose loops call the tables of a side.
-spec loops(side()) -> module().
loops({_, Loops, _}) -> Loops.

%% @doc Returns the options of the tables of a side, besides their type.
-spec options(side()) -> list().
options({_, _, Options}) -> Options.

%% @doc Returns the name of a side in results.
-spec name(side()) -> string().
name({Name, _, _}) -> Name.

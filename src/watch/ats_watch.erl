%% @private
%% @doc The numbers that tools for watching show: the largest tables in memory, and the snapshots
%% that bounds have ended.
-module(ats_watch).

-export([tables/1, evicted/0]).

-export_type([table/0]).

-type table() :: #{name := atom(), type := atom(), tables := pos_integer(),
                   size := non_neg_integer(), memory_bytes := non_neg_integer(),
                   locks := non_neg_integer(), contended := non_neg_integer(),
                   uncontended := non_neg_integer(), fixations := non_neg_integer(),
                   expired := non_neg_integer(), evicted := non_neg_integer(),
                   hits := non_neg_integer(), misses := non_neg_integer()}.
%% The tables of a name and a type together, of which there are `tables'.

-define(NUMBERS, [tables, size, memory_bytes, locks, contended, uncontended, fixations, expired,
                  evicted, hits, misses]).

%% @doc Returns the `Most' tables that take most memory, the largest first, and all others as one
%% with the name and the type `others'. A program may make any number of tables of one name, or of
%% names, but a tool that keeps series of numbers should not have as many.
-spec tables(Most :: non_neg_integer()) -> [table()].
tables(Most) ->
    ByName = lists:foldl(fun(Metrics, Sums) ->
                                 #{name := Name, type := Type} = Metrics,
                                 Numbers = maps:with(?NUMBERS, Metrics#{tables => 1}),
                                 maps:update_with({Name, Type},
                                                  fun(Sum) -> add(Sum, Numbers) end, Numbers, Sums)
                         end, #{}, ats_metrics:tables()),
    Named = [Sum#{name => Name, type => Type} || {{Name, Type}, Sum} <- maps:to_list(ByName)],
    Sorted = lists:sort(fun(A, B) -> rank(A) =< rank(B) end, Named),
    case length(Sorted) =< Most of
        true ->
            Sorted;
        false ->
            {First, [Next | Rest]} = lists:split(Most, Sorted),
            Others = lists:foldl(fun add/2, Next, Rest),
            First ++ [Others#{name => others, type => others}]
    end.

-spec rank(table()) -> term().
rank(#{memory_bytes := Bytes, name := Name, type := Type}) -> {-Bytes, Name, Type}.

-spec add(map(), map()) -> map().
add(A, B) ->
    maps:map(fun(Key, Number) when is_integer(Number) -> Number + maps:get(Key, B);
                (_, Value) -> Value
             end, A).

%% @doc Returns the tables of which bounds have ended snapshots, in memory by their identifiers and
%% on disk by their names, and how many.
-spec evicted() -> [{{memory | disk, Table :: term()}, Number :: pos_integer()}].
evicted() ->
    [{{Kind, Table}, Number}
     || {Kind, Module} <- [{memory, ats}, {disk, dats}],
        Table <- Module:all(),
        #{evicted := Number} <- [Module:info(Table, snapshots)], Number > 0].

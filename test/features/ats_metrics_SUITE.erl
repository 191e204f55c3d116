%% @doc The maps of `ats_metrics' are correct.
-module(ats_metrics_SUITE).

-include_lib("stdlib/include/assert.hrl").

-export([all/0]).
-export([tables_of_every_kind_are_described/1, numbers_follow_the_table/1,
         contention_is_counted/1, totals_add_up/1, metrics_are_split/1,
         tables_that_come_and_go_do_no_harm/1, a_reused_name_is_not_mixed_up/1]).

all() ->
    [tables_of_every_kind_are_described, numbers_follow_the_table, contention_is_counted,
     totals_add_up, metrics_are_split, tables_that_come_and_go_do_no_harm,
     a_reused_name_is_not_mixed_up].

-define(TYPES, [set, ordered_set, bag, duplicate_bag]).

tables_of_every_kind_are_described(_) ->
    Before = length(ats_metrics:tables()),
    Made = [{ats:new(Type, [Type, Access | Named]), Type, Access, Named}
            || Type <- ?TYPES, Access <- [public, protected, private],
               Named <- [[], [named_table]], Access =:= public orelse Named =:= []],
    %% Private tables of others are seen as well.
    [All] = ats_test_lib:parallel([fun ats_metrics:tables/0]),
    ?assertEqual(length(Made) + Before, length(All)),
    [begin
         Id = case Named of
                  [] -> Table;
                  [named_table] -> ats:whereis(Table)
              end,
         [Metrics] = [M || #{id := I} = M <- All, I =:= Id],
         ?assertMatch(#{name := Type, type := Type, protection := Access, size := 0, locks := 1,
                        contended := 0, uncontended := 0, fixations := 0}, Metrics),
         ?assertEqual(self(), maps:get(owner, Metrics)),
         ?assertEqual(Named =/= [], maps:get(named_table, Metrics)),
         ?assertEqual(Metrics, ats_metrics:table(Table))
     end || {Table, Type, Access, Named} <- Made],
    [ats:delete(Table) || {Table, _, _, _} <- Made],
    Nobodys = ats:new(nobodys, [public, {owner, none}]),
    ?assertMatch(#{owner := none, size := 0}, ats_metrics:table(Nobodys)),
    ats:delete(Nobodys),
    ?assertEqual(undefined, ats_metrics:table(element(1, hd(Made)))),
    ?assertEqual(Before, length(ats_metrics:tables())).

numbers_follow_the_table(_) ->
    [begin
         Table = ats:new(numbers, [Type, public]),
         #{memory_bytes := Empty} = ats_metrics:table(Table),
         [ats:insert(Table, {N, lists:duplicate(100, N)}) || N <- lists:seq(1, 100)],
         true = ats:safe_fixtable(Table, true),
         true = ats:safe_fixtable(Table, true),
         Metrics = ats_metrics:table(Table),
         #{size := 100, memory_bytes := Full, fixations := 1, uncontended := Writes} = Metrics,
         ?assertEqual(ats:info(Table, memory) * erlang:system_info(wordsize), Full),
         ?assert(Full - Empty > 100 * 100, {Empty, Full}),
         ?assert(Writes >= 100, Writes),
         true = ats:delete(Table)
     end || Type <- ?TYPES],
    ok.

contention_is_counted(_) ->
    [begin
         Table = ats:new(contended, [Type, public]),
         %% One write in four is taken for a contended one, so to speak.
         ats_nif:force_adaptation(Table, 4, 1 bsl 30),
         [true = ats:insert(Table, {N, N}) || N <- lists:seq(1, 1000)],
         Stats = ats:info(Table, stats),
         #{locks := Locks, contended := Contended, uncontended := Uncontended} =
             ats_metrics:table(Table),
         ?assert(Locks > 1, Stats),
         ?assertEqual(maps:get(base_nodes, Stats, maps:get(locks, Stats, none)), Locks),
         ?assertMatch(#{contended := Contended, uncontended := Uncontended}, Stats),
         ?assert(Contended + Uncontended >= 1000, Stats),
         true = ats:delete(Table)
     end || Type <- [set, ordered_set]],
    ok.

totals_add_up(_) ->
    #{tables := Tables, size := Size, memory_bytes := Bytes} = ats_metrics:totals(),
    Made = [ats:new(total, [Type]) || Type <- ?TYPES],
    [ats:insert(Table, [{N, N} || N <- lists:seq(1, 50)]) || Table <- Made],
    After = ats_metrics:totals(),
    ?assertEqual({Tables + 4, Size + 200}, {maps:get(tables, After), maps:get(size, After)}),
    Sum = lists:sum([maps:get(memory_bytes, ats_metrics:table(Table)) || Table <- Made]),
    ?assertEqual(Bytes + Sum, maps:get(memory_bytes, After)),
    [ats:delete(Table) || Table <- Made].

metrics_are_split(_) ->
    Table = ats:new(split, []),
    Self = self(),
    ok = ats_metrics:each(fun(Metrics) -> Self ! ats_metrics:split(Metrics) end),
    receive
        {Measurements, #{id := Table} = Metadata} ->
            ?assertEqual(ats_metrics:table(Table), maps:merge(Measurements, Metadata)),
            ?assert(lists:all(fun is_integer/1, maps:values(Measurements)))
    after 0 ->
            ct:fail(not_called)
    end.

%% The poller neither fails nor shows half a table, with any changes between the calls.
tables_that_come_and_go_do_no_harm(_) ->
    Deadline = erlang:monotonic_time(millisecond) + 1000,
    Churn = fun Loop() ->
                    Named = ats:new(?MODULE, [named_table, ordered_set]),
                    Others = [ats:new(other, [Type]) || Type <- ?TYPES],
                    [ats:delete(Table) || Table <- [Named | Others]],
                    erlang:monotonic_time(millisecond) < Deadline andalso Loop()
            end,
    Poll = fun Loop(Seen) ->
                   Tables = ats_metrics:tables(),
                   [] = [M || M <- Tables, maps:size(M) =/= 16],
                   #{tables := _} = ats_metrics:totals(),
                   case erlang:monotonic_time(millisecond) < Deadline of
                       true -> Loop(Seen + length(Tables));
                       false -> Seen
                   end
           end,
    [Seen, _] = ats_test_lib:parallel([fun() -> Poll(0) end, Churn]),
    ?assert(Seen > 0).

%% A name that moves from a table to another one never gets the numbers of both.
a_reused_name_is_not_mixed_up(_) ->
    Deadline = erlang:monotonic_time(millisecond) + 1000,
    Churn = fun Loop() ->
                    [begin
                         Table = ats:new(?MODULE, [named_table, Type, {keypos, 1}]),
                         ats:insert(Table, [{N} || N <- lists:seq(1, Size)]),
                         ats:delete(Table)
                     end || {Type, Size} <- [{set, 1}, {ordered_set, 2}]],
                    erlang:monotonic_time(millisecond) < Deadline andalso Loop()
            end,
    Poll = fun Loop() ->
                   case ats_metrics:table(?MODULE) of
                       undefined -> ok;
                       #{type := set, size := Size} -> ?assert(Size =< 1);
                       #{type := ordered_set, size := Size} -> ?assert(Size =< 2)
                   end,
                   erlang:monotonic_time(millisecond) < Deadline andalso Loop()
           end,
    ats_test_lib:parallel([Poll, Churn]),
    ok.

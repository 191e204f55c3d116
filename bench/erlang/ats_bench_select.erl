%% @private
%% @doc Match specifications on tables of `ats' beside those of `ets'.
%%
%% A row is a call on tables that were filled with the same objects. It is repeated until its time
%% is up, in a process of its own, and at least once; so a row in which `ets' reads everything takes
%% as long as one such call.
-module(ats_bench_select).

-export([rows/3]).

-type row() :: {Name :: string(), ats:table_type(), Objects :: objects(), call()}.
-type objects() :: {scattered | ascending | paths, pos_integer()}.
%% Integers that were inserted in no order, or in ascending order, when what `ets' allocates for
%% neighbours in a tree lies side by side; or tuples, in ascending order.
-type call() :: {select | select_count, ats:match_spec()}.

-define(SIDES, [ats, ets_plain]).
-define(OBJECTS, 500000).
%% A power of 3, so multiplying with it takes numbers below 500,000 to such numbers, each to its
%% own.
-define(SCATTER, 387420489).

-spec all() -> [row()].
all() ->
    Half = ?OBJECTS div 2,
    Thousand = {select_count, [{{'$1', '_'}, [{'>=', '$1', Half}, {'<', '$1', Half + 1000}],
                               [true]}]},
    Value = {select_count, [{{'_', '$1'}, [{'=:=', '$1', Half}], [true]}]},
    [{"select_count of 1000 keys by guards, of 500k", ordered_set, {scattered, ?OBJECTS}, Thousand},
     {"select_count of 1000 keys by guards, of 500k ascending", ordered_set,
      {ascending, ?OBJECTS}, Thousand},
     {"full scan, guard on a value, of 500k", ordered_set, {scattered, ?OBJECTS}, Value},
     {"full scan, guard on a value, of 500k ascending", ordered_set, {ascending, ?OBJECTS}, Value},
     {"full scan, guard on a value, of 500k", set, {scattered, ?OBJECTS}, Value},
     {"full scan, guard on a value, of 500k ascending", set, {ascending, ?OBJECTS}, Value},
     {"guard equality on the key, of 500k", set, {scattered, ?OBJECTS},
      {select, [{{'$1', '_'}, [{'=:=', '$1', Half}], ['$_']}]}},
     {"a point", ordered_set, {scattered, ?OBJECTS}, {select, [{{42, '$1'}, [], ['$1']}]}},
     {"a point", set, {scattered, ?OBJECTS}, {select, [{{42, '$1'}, [], ['$1']}]}},
     {"select of 100k whole objects", ordered_set, {scattered, 100000},
      {select, [{'_', [], ['$_']}]}},
     {"select of 100k whole objects", set, {scattered, 100000}, {select, [{'_', [], ['$_']}]}}]
    ++ [path_row(Power, Bound) || Power <- lists:seq(1, 9), Bound <- [none, prefix, range]].

%% The number of objects is 5 to this power; the key in the middle is asked for.
path_row(Power, Bound) ->
    Count = round(math:pow(5, Power)),
    Middle = Count div 20,
    {Text, Spec} =
        case Bound of
            none ->
                {"unconstrained", [{{'$1', '_'}, [], ['$1']}]};
            prefix ->
                {"prefix bound", [{{{foo, Middle, '_'}, '_'}, [], ['$_']}]};
            range ->
                {"prefix range bound",
                 [{{{foo, '$1', '_'}, '_'}, [{'>=', '$1', Middle}, {'<', '$1', Middle + 2}],
                   ['$_']}]}
        end,
    {lists:append([Text, ", 5^", integer_to_list(Power), " paths"]), ordered_set, {paths, Count},
     {select, Spec}}.

%% @doc Measures the rows whose title is chosen.
-spec rows(fun((string()) -> boolean()), pos_integer(), pos_integer()) ->
          [ats_bench_report:row()].
rows(IsChosen, Rounds, RunMs) ->
    Chosen = [Row || {Name, Type, _, _} = Row <- all(),
                     IsChosen(lists:append(["select: ", Name, ", ", atom_to_list(Type)]))],
    Contents = lists:usort([{Objects, Type} || {_, Type, Objects, _} <- Chosen]),
    [Measured || {Objects, Type} = Content <- Contents,
                 Measured <- measure(Content, [R || {_, T, O, _} = R <- Chosen,
                                                    T =:= Type, O =:= Objects],
                                     Rounds, RunMs)].

measure({Objects, Type}, Rows, Rounds, RunMs) ->
    ats_bench_report:progress("select: filling ~s with ~0p", [Type, Objects]),
    Tables = [{Side, filled(Side, Type, Objects)} || Side <- ?SIDES],
    Measured = [measure_row(Row, Tables, Rounds, RunMs) || Row <- Rows],
    lists:foreach(fun({Side, Table}) -> true = (ats_bench_run:loops(Side)):delete(Table) end,
                  Tables),
    lists:append(Measured).

measure_row({Name, Type, _, Call}, Tables, Rounds, RunMs) ->
    ats_bench_report:progress("select: ~ts, ~s", [Name, Type]),
    Results = [maps:from_list([{{Side, 1}, rate(Side, Table, Call, RunMs)}
                               || {Side, Table} <- turned(Round, Tables)])
               || Round <- lists:seq(1, Rounds)],
    Labels = #{name => Name, keys => "select", type => Type, timed => true, loop_ns => null},
    ats_bench_report:workload_rows(Labels, [1], Results).

turned(Round, Tables) when Round rem 2 =:= 0 -> Tables;
turned(_, Tables) -> lists:reverse(Tables).

filled(Side, Type, {_, Count} = Objects) ->
    Loops = ats_bench_run:loops(Side),
    Table = Loops:new(benchmark, [Type, public]),
    Insert = fun(N) -> true = Loops:insert(Table, object(Objects, N)) end,
    ok = ats_bench_run:in_process(fun() -> lists:foreach(Insert, lists:seq(1, Count)) end),
    Table.

object({scattered, Count}, N) -> object({ascending, Count}, 1 + N * ?SCATTER rem Count);
object({ascending, _}, N) -> {N, N};
object({paths, _}, N) -> {{foo, N div 10, N}, bar}.

%% Calls a second.
rate(Side, Table, Call, RunMs) ->
    ats_bench_run:in_process(
        fun() ->
                Start = erlang:monotonic_time(),
                Until = Start + erlang:convert_time_unit(RunMs, millisecond, native),
                {Calls, End} = repeat(Side, Table, Call, Until, 1, 0),
                Calls * 1.0e9 / erlang:convert_time_unit(End - Start, native, nanosecond)
        end).

%% Looks at the clock after ever more calls, as long as that takes little of the time.
repeat(Side, Table, Call, Until, Batch, Done) ->
    Before = erlang:monotonic_time(),
    ok = call(Side, Table, Call, Batch),
    case erlang:monotonic_time() of
        Now when Now >= Until ->
            {Done + Batch, Now};
        Now when (Now - Before) * 20 < Until - Now ->
            repeat(Side, Table, Call, Until, 2 * Batch, Done + Batch);
        _ ->
            repeat(Side, Table, Call, Until, Batch, Done + Batch)
    end.

call(_, _, _, 0) ->
    ok;
call(ats, Table, {select, Spec} = Call, N) ->
    _ = ats:select(Table, Spec),
    call(ats, Table, Call, N - 1);
call(ats, Table, {select_count, Spec} = Call, N) ->
    _ = ats:select_count(Table, Spec),
    call(ats, Table, Call, N - 1);
call(Side, Table, {select, Spec} = Call, N) ->
    _ = ets:select(Table, Spec),
    call(Side, Table, Call, N - 1);
call(Side, Table, {select_count, Spec} = Call, N) ->
    _ = ets:select_count(Table, Spec),
    call(Side, Table, Call, N - 1).

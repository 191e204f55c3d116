%% @private
%% @doc Match specifications on tables of `ats' beside those of `ets'; and on tables of `dats'
%% beside those of `dets', and beside those of `ets' in memory.
%%
%% A row is a call on tables that were filled with the same objects. It is repeated until its time
%% is up, in a process of its own, and at least once; so a row in which `ets' reads everything takes
%% as long as one such call.
-module(ats_bench_select).

-export([rows/3]).

-type row() :: {Name :: string(), ats:table_type(), Objects :: objects(), call()}.
-type objects() :: {scattered | ascending | paths | paths_on_disk | triples | pairs | records,
                    pos_integer()}.
%% Integers that were inserted in no order, or in ascending order, when what `ets' allocates for
%% neighbours in a tree lies side by side; or tuples, in ascending order. Those of the last three
%% are few, and have a value besides.
-type call() :: {atom(), ats:match_spec()} | {atom(), fun((Drawn :: non_neg_integer()) -> term())}.
%% A specification that is the same in each call, or one with the number that was drawn for it in
%% it: a specification or a pattern, as the function takes.

-define(OBJECTS, 500000).
%% A power of 3, so multiplying with it takes numbers below 500,000 to such numbers, each to its
%% own.
-define(SCATTER, 387420489).
%% The most objects of a table of `dets', which reads all of them in each query.
-define(MOST_IN_DETS, 100000).
-define(LIST, 1000).
%% The objects of a table that is asked with one number after the other.
-define(FEW, 512).

-record(record, {id, name, size, colour}).

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
    ++ [{Name, Type, {Kind, ?FEW}, {Function, Argument}}
        || Type <- [set, ordered_set], {Name, Kind, Function, Argument} <- drawn()]
    ++ [{lists:append(["a drawn prefix, ", atom_to_list(Function)]), ordered_set, {pairs, ?FEW},
         {Function, Argument}}
        || {Function, Argument} <- [{select, fun(N) -> [{{{N, '$1'}, '_'}, [], ['$1']}] end},
                                    {match, fun(N) -> {{N, '$1'}, '_'} end}]]
    ++ [path_row(Place, Power, Bound) || Place <- [paths, paths_on_disk], Power <- lists:seq(1, 9),
                                         Bound <- [none, prefix, range]].

%% Calls that a program makes with one key after the other. The key is in the pattern, so each call
%% has another specification.
drawn() ->
    [{"a drawn key, select", triples, select, fun(N) -> [{{N, '$1', '_'}, [], ['$1']}] end},
     {"a drawn key and a guard, select", triples, select,
      fun(N) -> [{{N, '$1', '_'}, [{'>', '$1', N}], ['$1']}] end},
     {"a drawn key, match", triples, match, fun(N) -> {N, '$1', '_'} end},
     {"a drawn key, match_object", triples, match_object, fun(N) -> {N, '_', '_'} end},
     {"a drawn key, select_count", triples, select_count,
      fun(N) -> [{{N, '_', '_'}, [], [true]}] end},
     {"a drawn key, match_delete of nothing", triples, match_delete, fun(N) -> {N, -1, '_'} end},
     {"a drawn key of a record, match_object", records, match_object,
      fun(N) -> #record{id = N, _ = '_'} end}].

%% The number of objects is 5 to this power; the key in the middle is asked for.
path_row(Place, Power, Bound) ->
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
    {lists:append([Text, place(Place), ", 5^", integer_to_list(Power), " paths"]), ordered_set,
     {Place, Count}, {select, Spec}}.

%% Returns the modules whose tables are compared, ours first.
modules({paths_on_disk, Count}) -> [dats | [dets || Count =< ?MOST_IN_DETS]] ++ [ets];
modules(_) -> [ats, ets].

title({Name, Type, {Place, _}, _}) ->
    lists:append(["select", place(Place), ": ", Name, ", ", atom_to_list(Type)]).

place(paths_on_disk) -> " on disk";
place(_) -> "".

%% @doc Measures the rows whose title is chosen.
-spec rows(fun((string()) -> boolean()), pos_integer(), pos_integer()) ->
          [ats_bench_report:row()].
rows(IsChosen, Rounds, RunMs) ->
    Chosen = [Row || Row <- all(), IsChosen(title(Row))],
    Contents = lists:usort([{Objects, Type} || {_, Type, Objects, _} <- Chosen]),
    [Measured || {Objects, Type} = Content <- Contents,
                 Measured <- measure(Content, [R || {_, T, O, _} = R <- Chosen,
                                                    T =:= Type, O =:= Objects],
                                     Rounds, RunMs)].

measure({Objects, Type}, Rows, Rounds, RunMs) ->
    ats_bench_report:progress("select: filling ~s with ~0p", [Type, Objects]),
    Directory = filename:join(os:getenv("TMPDIR", "/tmp"), "ats-bench-select-" ++ os:getpid()),
    ok = filelib:ensure_dir(filename:join(Directory, "x")),
    try
        Tables = [{Module, filled(Module, Type, Objects, Directory)}
                  || Module <- modules(Objects)],
        Measured = [measure_row(Row, Tables, Rounds, RunMs) || Row <- Rows],
        lists:foreach(fun remove/1, Tables),
        lists:append(Measured)
    after
        _ = file:del_dir_r(Directory)
    end.

remove({Module, Table}) when Module =:= ats; Module =:= ets -> true = Module:delete(Table);
remove({Module, Table}) -> ok = Module:close(Table).

measure_row({Name, Type, _, Call}, Tables, Rounds, RunMs) ->
    ats_bench_report:progress("select: ~ts, ~s", [Name, Type]),
    Results = [maps:from_list([{{atom_to_list(Module), 1}, rate(Module, Table, Call, RunMs)}
                               || {Module, Table} <- ats_bench_sides:turned(Round, Tables)])
               || Round <- lists:seq(1, Rounds)],
    Labels = #{name => Name, field => select, keys => "Term", set => new, type => Type,
               loop_ns => null},
    ats_bench_report:workload_rows(Labels, [atom_to_list(M) || {M, _} <- Tables], [1], Results).

filled(Module, Type, {Kind, Count} = Objects, _) when Module =:= ats; Module =:= ets ->
    Table = Module:new(benchmark, [Type, public | [{keypos, #record.id} || Kind =:= records]]),
    Insert = fun(N) -> true = Module:insert(Table, object(Objects, N)) end,
    ok = ats_bench_run:in_process(fun() -> lists:foreach(Insert, lists:seq(1, Count)) end),
    Table;
filled(Module, Type, {_, Count} = Objects, Directory) ->
    File = filename:join(Directory, atom_to_list(Module)),
    %% Tables of dets have no order.
    Options = [{file, File} | [{type, Type} || Module =:= dats]],
    {ok, Table} = Module:open_file(benchmark, Options),
    lists:foreach(fun(First) ->
                          Last = min(Count, First + ?LIST - 1),
                          ok = Module:insert(Table, [object(Objects, N)
                                                     || N <- lists:seq(First, Last)])
                  end, lists:seq(1, Count, ?LIST)),
    %% Opens the table anew, so that the objects are in its files alone.
    ok = Module:close(Table),
    {ok, Table} = Module:open_file(benchmark, Options),
    Table.

object({scattered, Count}, N) -> object({ascending, Count}, 1 + N * ?SCATTER rem Count);
object({ascending, _}, N) -> {N, N};
object({triples, _}, N) -> {N, N + 1, N};
object({pairs, _}, N) -> {{N, N}, N};
object({records, _}, N) -> #record{id = N, name = N, size = N, colour = none};
object({_, _}, N) -> {{foo, N div 10, N}, bar}.

%% Calls a second.
rate(Module, Table, Call, RunMs) ->
    ats_bench_run:in_process(
        fun() ->
                Start = erlang:monotonic_time(),
                Until = Start + erlang:convert_time_unit(RunMs, millisecond, native),
                {Calls, End} = repeat(Module, Table, Call, Until, 1, 0),
                Calls * 1.0e9 / erlang:convert_time_unit(End - Start, native, nanosecond)
        end).

%% Looks at the clock after ever more calls, as long as that takes little of the time.
repeat(Module, Table, Call, Until, Batch, Done) ->
    Before = erlang:monotonic_time(),
    ok = call(Module, Table, Call, Batch),
    case erlang:monotonic_time() of
        Now when Now >= Until ->
            {Done + Batch, Now};
        Now when (Now - Before) * 20 < Until - Now ->
            repeat(Module, Table, Call, Until, 2 * Batch, Done + Batch);
        _ ->
            repeat(Module, Table, Call, Until, Batch, Done + Batch)
    end.

call(_, _, _, 0) ->
    ok;
call(Module, Table, {Function, Argument} = Call, N) when is_function(Argument) ->
    _ = Module:Function(Table, Argument(1 + N * ?SCATTER rem ?FEW)),
    call(Module, Table, Call, N - 1);
call(Module, Table, {Function, Spec} = Call, N) ->
    _ = Module:Function(Table, Spec),
    call(Module, Table, Call, N - 1).

%% @doc The tables of a node as maps, for a process that polls them.
%%
%% A process that reports metrics calls {@link tables/0}, or {@link each/1}, every few seconds.
%% With the library `telemetry_poller' that is a measurement `{my_metrics, ats, []}', where
%%
%% ```
%% ats() ->
%%     ats_metrics:each(
%%         fun(Metrics) ->
%%             {Measurements, Metadata} = ats_metrics:split(Metrics),
%%             telemetry:execute([ats, table], Measurements, Metadata)
%%         end).
%% '''
%%
%% == Cost ==
%%
%% Nothing when no process asks: the numbers are there anyway. A call takes some microseconds for
%% each table, and more for a table with many locks, since it looks at each of them. It takes no
%% lock, and it delays no reader and no writer. Private tables of other processes are shown, too,
%% but not their contents.
%%
%% Reads are not counted, because a reader of a table leaves no trace in it, except for a part of
%% those of tables whose objects expire or are bounded. Writes are:
%% `contended' and `uncontended' together are how often a writer took a lock, which is about once
%% in a write. Counters that change in place take none.
-module(ats_metrics).

-export([tables/0, table/1, each/1, totals/0, split/1, disk/0]).

-export_type([metrics/0, measurements/0, metadata/0, totals/0]).

-type measurements() ::
        #{size := non_neg_integer(),
          memory_bytes := non_neg_integer(),
          locks := pos_integer(),
          contended := non_neg_integer(),
          uncontended := non_neg_integer(),
          fixations := non_neg_integer(),
          expired := non_neg_integer(),
          evicted := non_neg_integer(),
          hits := non_neg_integer(),
          misses := non_neg_integer()}.
%% Numbers that change.
%%
%% `memory_bytes' is `info(Table, memory)' times the size of a word. `locks' is the number of parts
%% that can be written at the same time: base nodes of an `ordered_set', locks of the others.
%% `contended' and `uncontended' count how often a writer had to wait for one of them, and did not
%% have to; they start at 0 again when all objects are deleted. `fixations' is the number of
%% processes that fix the table. `expired', `evicted', `hits' and `misses' are those of `ats:info/2'
%% of a table with a time or a bound, and 0 for others; they start at 0 again like `contended'.
-type metadata() ::
        #{id := ats:tid(),
          name := atom(),
          named_table := boolean(),
          type := ats:table_type(),
          protection := ats:table_access(),
          owner := pid() | none}.
%% The properties that tell tables apart.
-type metrics() ::
        #{size := non_neg_integer(),
          memory_bytes := non_neg_integer(),
          locks := pos_integer(),
          contended := non_neg_integer(),
          uncontended := non_neg_integer(),
          fixations := non_neg_integer(),
          expired := non_neg_integer(),
          evicted := non_neg_integer(),
          hits := non_neg_integer(),
          misses := non_neg_integer(),
          id := ats:tid(),
          name := atom(),
          named_table := boolean(),
          type := ats:table_type(),
          protection := ats:table_access(),
          owner := pid() | none}.
%% Both together.
-type totals() ::
        #{tables := non_neg_integer(),
          size := non_neg_integer(),
          memory_bytes := non_neg_integer(),
          contended := non_neg_integer(),
          uncontended := non_neg_integer()}.

-define(METADATA, [id, name, named_table, type, protection, owner]).

%% @doc Returns the metrics of all tables of the node, in no particular order. Each table is looked
%% at by itself; one that appears or disappears meanwhile is there or not.
-spec tables() -> [metrics()].
tables() ->
    [Metrics || Table <- ats:all(), #{} = Metrics <- [table(Table)]].

%% @doc Returns the metrics of one table, or `undefined' if it does not exist.
-spec table(ats:table()) -> metrics() | undefined.
table(Table) ->
    case ats:info(Table) of
        undefined -> undefined;
        Information -> with_statistics(maps:from_list(Information))
    end.

%% @doc Calls a function with the metrics of each table. They are not in memory all at once.
-spec each(fun((metrics()) -> term())) -> ok.
each(Function) ->
    lists:foreach(fun(Table) ->
                          case table(Table) of
                              undefined -> ok;
                              Metrics -> Function(Metrics)
                          end
                  end, ats:all()).

%% @doc Adds up the metrics of all tables.
-spec totals() -> totals().
totals() ->
    Zero = #{tables => 0, size => 0, memory_bytes => 0, contended => 0, uncontended => 0},
    lists:foldl(fun(Metrics, Sums) ->
                        maps:map(fun(Key, Sum) -> Sum + maps:get(Key, Metrics, 1) end, Sums)
                end, Zero, tables()).

%% @doc Splits metrics into numbers that change and metadata that identifies the table, as handlers
%% of `telemetry' expect them.
-spec split(metrics()) -> {measurements(), metadata()}.
split(Metrics) ->
    {maps:without(?METADATA, Metrics), maps:with(?METADATA, Metrics)}.

%% A name can belong to another table by now, so it is the identifier that is asked about.
-spec with_statistics(#{atom() => term()}) -> metrics() | undefined.
with_statistics(#{id := Id, size := Size, memory := Words} = Information) ->
    case {ats:info(Id, stats), ats:info(Id, safe_fixed), ats_info:counts(Id)} of
        {#{contended := Contended, uncontended := Uncontended} = Stats, Fixed, #{} = Counts}
          when Fixed =/= undefined ->
            Metadata = maps:with(?METADATA, Information),
            (maps:merge(Metadata, Counts))
                #{size => Size,
                  memory_bytes => Words * erlang:system_info(wordsize),
                  locks => locks(Stats),
                  contended => Contended,
                  uncontended => Uncontended,
                  fixations => fixations(Fixed)};
        _ ->
            undefined
    end.

-spec locks(#{atom() => non_neg_integer()}) -> pos_integer().
locks(#{base_nodes := Count}) -> Count;
locks(#{locks := Count}) -> Count.

-spec fixations(false | {erlang:timestamp(), [{pid(), pos_integer()}]}) -> non_neg_integer().
fixations(false) -> 0;
fixations({_Time, Fixers}) -> length(Fixers).

%% @doc Returns the numbers of all open tables on disk: the integers of `dats:info(Name, stats)',
%% which `docs/use/operating.md' explains, by the names of the tables.
%%
%% ```
%% 1> {ok, _} = dats:open_file(prices, []), ok = dats:insert(prices, {apple, 30}).
%% ok
%% 2> [{prices, #{writes := 1}}] = ats_metrics:disk(), ok.
%% ok
%% '''
-spec disk() -> [{Name :: dats:tab_name(), #{atom() => integer()}}].
disk() ->
    [{Name, maps:filter(fun(_, Value) -> is_integer(Value) end, Stats)}
     || Name <- dats:all(), #{} = Stats <- [dats:info(Name, stats)]].

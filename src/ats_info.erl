%% @private
%% @doc The description of a table, as `ats:info/1,2' shows it.
%%
%% The native library describes a table in one tuple, taken at one moment; this module picks items
%% out of it and lists them in the order that programs know from `ets'. The numbers `size' and
%% `memory', each of which is that of one moment, and `stats' and `binary' are asked for by
%% themselves, because they take longer.
-module(ats_info).

-export([all/1, item/2, items/0, counts/1, fixation/2]).

-define(ITEMS, [id, decentralized_counters, read_concurrency, write_concurrency, compressed,
                memory, owner, heir, name, size, node, named_table, type, keypos, protection]).

-spec all(ats:table()) -> [{atom(), term()}] | undefined.
all(Table) ->
    case ats_nif:info(Table) of
        undefined -> undefined;
        Information -> all(pick(id, Information), Information)
    end.

%% Another table may have its name by now.
-spec all(ats:tid(), ats_nif:information()) -> [{atom(), term()}] | undefined.
all(Id, Information) ->
    case {ats_nif:size(Id), ats_nif:memory(Id)} of
        {Size, Memory} when is_integer(Size), is_integer(Memory) ->
            [case Item of
                 size -> {size, Size};
                 memory -> {memory, Memory};
                 _ -> {Item, pick(Item, Information)}
             end || Item <- ?ITEMS];
        _ ->
            %% The table may have been deleted meanwhile.
            undefined
    end.

%% @doc Returns the names of all items.
-spec items() -> [atom()].
items() ->
    ?ITEMS ++ [stats, snapshots, snapshot_of, age, full_scan, backend, ttl, max_objects, max_memory,
               expired, evicted, hits, misses, binary, fixed, safe_fixed,
               safe_fixed_monotonic_time].

%% A table that does not exist has every item, also an unknown one: `undefined'.
-spec item(term(), ats:table()) -> term().
item(size, Table) ->
    ats_nif:size(Table);
item(memory, Table) ->
    ats_nif:memory(Table);
item(stats, Table) ->
    ats_nif:stats(Table);
item(snapshots, Table) ->
    case ats_nif:snapshots(Table) of
        undefined ->
            undefined;
        {Number, Queries, Oldest, Memory, Evicted} ->
            #{number => Number, queries => Queries, oldest => Oldest, memory => Memory,
              evicted => Evicted}
    end;
item(Item, Table) when Item =:= view; Item =:= lag ->
    ats_view_list:item(Item, item(id, Table));
item(Item, Table) when Item =:= snapshot_of; Item =:= age ->
    of_snapshot(Item, ats_nif:snapshot_state(Table));
item(Item, Table) ->
    case ats_nif:info(Table) of
        undefined -> undefined;
        Information -> pick(Item, Information)
    end.

%% Another table has none of these.
-spec of_snapshot(snapshot_of | age, tuple() | atom()) -> ats:tid() | non_neg_integer() | undefined.
of_snapshot(snapshot_of, {memory, Table, _Owner, _Age}) -> Table;
of_snapshot(age, {memory, _Table, _Owner, Age}) -> Age;
of_snapshot(_Item, _NoSnapshot) -> undefined.

-spec pick(term(), ats_nif:information()) -> term().
pick(Item, {Id, DecentralizedCounters, ReadConcurrency, WriteConcurrency, Compressed,
            Owner, Heir, Name, Named, Type, KeyPos, Protection, Fixed,
            FullScan, Backend, Limits, Expired, Evicted, Hits, Misses}) ->
    case Item of
        id -> Id;
        decentralized_counters -> DecentralizedCounters;
        read_concurrency -> ReadConcurrency;
        write_concurrency -> WriteConcurrency;
        compressed -> Compressed;
        owner -> Owner;
        heir -> Heir;
        name -> Name;
        node -> node();
        named_table -> Named;
        type -> Type;
        keypos -> KeyPos;
        protection -> Protection;
        full_scan -> FullScan;
        backend -> Backend;
        ttl -> limit(1, Limits);
        max_objects -> limit(2, Limits);
        max_memory -> limit(3, Limits);
        expired -> Expired;
        evicted -> Evicted;
        hits -> counted(Hits, Limits);
        misses -> counted(Misses, Limits);
        binary -> ats_binaries:of_table(Id);
        fixed -> Fixed =/= false;
        safe_fixed -> fixation(system_time, Fixed);
        safe_fixed_monotonic_time -> fixation(monotonic_time, Fixed);
        _ -> erlang:error({ats_error, none})
    end.

%% A table without limits has no objects that expire, and any number of them.
-spec limit(1..3, ats_nif:limits()) -> false | infinity | ats:ttl() | pos_integer().
limit(1, false) -> false;
limit(_, false) -> infinity;
limit(Number, Limits) -> element(Number, Limits).

%% @doc Returns the numbers that tables with limits count, which are 0 for others.
-spec counts(ats:table()) -> #{expired | evicted | hits | misses => non_neg_integer()} | undefined.
counts(Table) ->
    case ats_nif:info(Table) of
        undefined ->
            undefined;
        Information ->
            Number = fun(Item) ->
                             case pick(Item, Information) of
                                 false -> 0;
                                 Counted -> Counted
                             end
                     end,
            maps:from_list([{Item, Number(Item)} || Item <- [expired, evicted, hits, misses]])
    end.

%% Reads of a table without limits are not counted.
-spec counted(non_neg_integer(), ats_nif:limits()) -> false | non_neg_integer().
counted(_Number, false) -> false;
counted(Number, _Limits) -> Number.

%% @doc Returns the time since which a table is fixed, and the processes that fix it.
-spec fixation(system_time | monotonic_time, ats_nif:fixed()) ->
          false | {erlang:timestamp() | integer(), [{pid(), pos_integer()}]}.
fixation(_Clock, false) -> false;
fixation(system_time, {Timestamp, _Monotonic, Fixers}) -> {Timestamp, Fixers};
fixation(monotonic_time, {_Timestamp, Nanoseconds, Fixers}) ->
    {erlang:convert_time_unit(Nanoseconds, nanosecond, native), Fixers}.

%% @private
%% @doc The description of a table on disk, as `dats:info/1,2' shows it.
-module(ats_disk_info).

-export([all/1, item/2]).

%% The items that `dets' has.
-define(ITEMS, [type, keypos, size, file_size, filename]).
-define(OF_SNAPSHOT, [type, keypos, size, filename, snapshot_of, owner, age]).

-spec all(dats:tab_name()) -> [{atom(), term()}] | undefined.
all(Name) ->
    case ats_disk_tables:options(Name) of
        undefined ->
            case ats_nif:snapshot_state(Name) of
                {disk, _Table, _Owner, _Age} ->
                    unless_ended(Name, fun() -> [{Item, item(Item, Name)} || Item <- ?OF_SNAPSHOT]
                                       end);
                _ -> undefined
            end;
        _Options ->
            [{Item, item(Item, Name)} || Item <- ?ITEMS]
    end.

-spec item(term(), dats:tab_name()) -> term() | undefined.
item(Item, Name) ->
    case ats_disk_tables:options(Name) of
        undefined ->
            case ats_nif:snapshot_state(Name) of
                {disk, _Table, _Owner, _Age} = Moment ->
                    unless_ended(Name, fun() -> item_of_snapshot(Item, Name, Moment) end);
                _ -> undefined
            end;
        Options ->
            item(Item, Name, Options)
    end.

%% Returns `undefined' if the snapshot ends while it is described.
-spec unless_ended(ats:tid(), fun(() -> Description)) -> Description | undefined.
unless_ended(Snapshot, Describe) ->
    Described = try Describe()
                catch error:{ats_error, Cause} -> {refused, Cause}
                end,
    case {ats_nif:snapshot_state(Snapshot), Described} of
        {{disk, _Table, _Owner, _Age}, {refused, Refusal}} ->
            erlang:error({ats_error, Refusal});
        {{disk, _Table, _Owner, _Age}, _} ->
            Described;
        _ ->
            undefined
    end.

-spec item_of_snapshot(term(), ats:tid(), {disk, ats:tid(), pid(), non_neg_integer()}) ->
          term() | undefined.
item_of_snapshot(snapshot_of, _Snapshot, {disk, Table, _Owner, _Age}) ->
    case ats_disk_tables:name(Table) of
        {ok, Name} -> Name;
        none -> undefined
    end;
item_of_snapshot(owner, _Snapshot, {disk, _Table, Owner, _Age}) ->
    Owner;
item_of_snapshot(age, _Snapshot, {disk, _Table, _Owner, Age}) ->
    Age;
item_of_snapshot(filename, Snapshot, _Moment) ->
    ats_disk_tables:directory(Snapshot);
item_of_snapshot(access, _Snapshot, _Moment) ->
    read;
item_of_snapshot(Item, Snapshot, _Moment)
  when Item =:= type; Item =:= keypos; Item =:= size; Item =:= no_objects; Item =:= no_keys;
       Item =:= fixed; Item =:= safe_fixed; Item =:= safe_fixed_monotonic_time;
       Item =:= bchunk_format ->
    item(Item, Snapshot, #{});
item_of_snapshot(_OfTables, _Snapshot, _Moment) ->
    undefined.

-spec item(term(), dats:tab_name(), ats_disk_options:parsed() | #{}) -> term() | undefined.
item(filename, _Name, #{file := File}) ->
    File;
item(auto_save, _Name, #{auto_save := AutoSave}) ->
    AutoSave;
item(ram_file, _Name, _Options) ->
    false;
item(access, _Name, #{access := Access}) ->
    Access;
item(durability, _Name, #{durability := Durability}) ->
    Durability;
item(compressed, _Name, #{compressed := Compressed}) ->
    Compressed;
item(snapshot_memory, _Name, #{snapshot_memory := Bytes}) ->
    Bytes;
item(snapshots, Name, _Options) ->
    {Number, Oldest, Memory, FileBytes, Evicted} =
        ats_nif:held_disk_snapshots(ats_disk_tables:find(Name)),
    #{number => Number, oldest => Oldest, memory => Memory, file_size => FileBytes,
      evicted => Evicted};
item(ttl, _Name, #{ttl := Ttl}) ->
    Ttl;
item(expired, Name, _Options) ->
    maps:get(expired, stats(Name));
item(users, Name, _Options) ->
    Times = ats_disk_tables:users(Name),
    lists:append([lists:duplicate(N, Pid) || {Pid, N} <- Times]);
%% One process owns all tables.
item(owner, _Name, _Options) ->
    case erlang:whereis(ats_disk_tables) of
        undefined -> undefined;
        Pid -> Pid
    end;
item(bchunk_format, Name, _Options) ->
    {Type, KeyPos, _Fixed} = kind(Name),
    ats_disk_bchunk:format(Type, KeyPos);
item(no_keys, Name, _Options) ->
    keys(ats_disk_tables:find(Name));
item(Size, Name, _Options) when Size =:= size; Size =:= no_objects ->
    ats_nif:disk_size(ats_disk_tables:find(Name));
item(fixed, Name, _Options) ->
    element(3, kind(Name)) =/= false;
item(safe_fixed, Name, _Options) ->
    ats_info:fixation(system_time, element(3, kind(Name)));
item(safe_fixed_monotonic_time, Name, _Options) ->
    ats_info:fixation(monotonic_time, element(3, kind(Name)));
item(memory, Name, _Options) ->
    #{memtable_bytes := Written, cache_bytes := Read} = stats(Name),
    Written + Read;
item(file_size, Name, _Options) ->
    maps:get(file_bytes, stats(Name));
item(files, Name, _Options) ->
    maps:get(runs, stats(Name));
item(file_entries, Name, _Options) ->
    maps:get(run_entries, stats(Name));
item(tree_entries, Name, _Options) ->
    maps:get(memtable_keys, stats(Name));
item(stats, Name, _Options) ->
    stats(Name);
item(type, Name, _Options) ->
    element(1, kind(Name));
item(keypos, Name, _Options) ->
    element(2, kind(Name));
item(_Unknown, _Name, _Options) ->
    undefined.

%% Returns the number of keys. A table without bags has one object for each.
-spec keys(ats:tid()) -> non_neg_integer().
keys(Table) ->
    {Type, KeyPos, _Fixed} = ats_nif:disk_kind(Table),
    case ats_disk_options:is_bag(Type) of
        true ->
            IsSame = same_key(Type),
            Count = fun(Object, {Number, Before}) ->
                            Key = {element(KeyPos, Object)},
                            case IsSame(Key, Before) of
                                true -> {Number, Before};
                                false -> {Number + 1, Key}
                            end
                    end,
            {Keys, _Last} = ats_disk_walk:fold(Count, {0, none}, Table, up),
            Keys;
        false ->
            ats_nif:disk_size(Table)
    end.

-spec same_key(ats:table_type()) -> fun((term(), term()) -> boolean()).
same_key(Type) when Type =:= bag; Type =:= duplicate_bag -> fun erlang:'=:='/2;
same_key(_Ordered) -> fun erlang:'=='/2.

-spec kind(dats:tab_name()) -> {ats:table_type(), pos_integer(), ats_nif:fixed()}.
kind(Name) ->
    ats_nif:disk_kind(ats_disk_tables:find(Name)).

-spec stats(dats:tab_name()) -> ats_nif:disk_stats().
stats(Name) ->
    ats_nif:disk_stats(ats_disk_tables:find(Name)).

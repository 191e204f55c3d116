%% @private
%% @doc Snapshots of tables on disk that programs hold.
%%
%% Such a snapshot is a native table of its own, which shows a moment. Its identifier stands where
%% otherwise the name of a table does. When it has ended, it still tells why.
-module(ats_disk_snapshot).

-export([make/2, diff/4, differences/4, failure/2]).

%% @doc Makes a snapshot of a table, which belongs to the caller.
-spec make(dats:tab_name(), Options :: term()) -> dats:snapshot().
make(Name, Options) ->
    Table = ats_disk_tables:find_table(Name),
    ats_nif:hold_disk_snapshot(Table, ats_snapshot:max_age(Options)).

%% @doc Returns the answer for a cause that a native function has raised, or the cause that the user
%% is told; see {@link ats_disk_failure:of_cause/2}. For a snapshot that has ended, this is the
%% reason of its end.
-spec failure(ats_errors:cause(), dats:tab_name()) ->
          {error, ats_disk_failure:reason()} | {refused, ats_errors:cause()}.
failure(Cause, Name) ->
    Explained = explain(Cause, Name),
    case ats_disk_failure:of_cause(Explained, ats_disk_tables:directory(Name)) of
        refused -> {refused, Explained};
        Failed -> Failed
    end.

-spec explain(ats_errors:cause(), dats:tab_name()) -> ats_errors:cause().
explain(Cause, Name) when Cause =:= id; Cause =:= snapshot_expired ->
    case ats_nif:snapshot_state(Name) of
        Why when is_atom(Why), Why =/= none -> {snapshot_ended, Why};
        _ -> Cause
    end;
explain(Cause, _Name) ->
    Cause.

%%--------------------------------------------------------------------------------------------
%% Differences
%%
%% The native library finds records that are not the same in both snapshots, and returns those of
%% each key together: the objects that are in them, of each snapshot. Of a bag some may be in both,
%% in records of their own. Where a module merges values, records differ that have the same value,
%% so the objects are looked up.
%%--------------------------------------------------------------------------------------------

%% @doc Folds a function over the differences between two snapshots of a table.
-spec diff(dats:snapshot(), dats:snapshot(), fun((dats:difference(), Acc) -> Acc), Acc) -> Acc.
diff(First, Second, Function, Acc) ->
    ok = check(First),
    ok = check_second(Second),
    {Type, _KeyPos, _Fixed} = ats_nif:disk_kind(First),
    Each = fun(Pair, Before) ->
                   lists:foldl(Function, Before, ats_snapshot:differences(Type, Pair))
           end,
    chunks(First, Second, Each, Acc, start).

%% @doc Returns the objects of some keys that two snapshots have differently, and the place at which
%% to go on. See `ats_nif:disk_diff/4' for the deadline.
-spec differences(dats:snapshot(), dats:snapshot(), start | binary(), non_neg_integer()) ->
          {more | done, [{[tuple()], [tuple()]}], Next :: binary(), Deadline :: non_neg_integer()}.
differences(First, Second, Last, Deadline) ->
    {Tag, Bytes, Next, NewDeadline} = ats_nif:disk_diff(First, Second, Last, Deadline),
    Written = terms(Bytes),
    Pairs = case Written =/= [] andalso ats_merge_access:is_merged_by_program(First) of
                false -> Written;
                true -> [merged(Pair, First, Second) || Pair <- Written]
            end,
    {Tag, Pairs, Next, NewDeadline}.

-spec check(term()) -> ok.
check(Snapshot) ->
    case ats_disk_tables:find(Snapshot) of
        Snapshot -> ok;
        _Table -> erlang:error({ats_error, no_snapshot})
    end.

-spec check_second(term()) -> ok.
check_second(Snapshot) ->
    ats_snapshot:second(fun() -> check(Snapshot) end).

-spec chunks(dats:snapshot(), dats:snapshot(), fun(({[tuple()], [tuple()]}, Acc) -> Acc), Acc,
             start | binary()) -> Acc.
chunks(First, Second, Each, Before, Last) ->
    {Tag, Pairs, Next, _Deadline} = chunk(First, Second, Last),
    Acc = lists:foldl(Each, Before, Pairs),
    case Tag of
        done -> Acc;
        more -> chunks(First, Second, Each, Acc, Next)
    end.

-spec chunk(dats:snapshot(), dats:snapshot(), start | binary()) ->
          {more | done, [{[tuple()], [tuple()]}], binary(), non_neg_integer()}.
chunk(First, Second, Last) ->
    try differences(First, Second, Last, 0)
    catch
        error:{ats_error, Cause} when Cause =:= id; Cause =:= snapshot_expired ->
            ok = check(First),
            ok = check_second(Second),
            erlang:error({ats_error, Cause})
    end.

-spec terms(binary()) -> [{[tuple()], [tuple()]}].
terms(Bytes) ->
    try binary_to_term(Bytes)
    catch error:badarg -> erlang:error({ats_error, damaged})
    end.

%% Returns the objects of a key that a module merges.
-spec merged({[tuple()], [tuple()]}, dats:snapshot(), dats:snapshot()) -> {[tuple()], [tuple()]}.
merged({Old, New}, First, Second) ->
    [Written | _] = Old ++ New,
    Key = element(1, Written),
    {lookup(First, Key), lookup_second(Second, Key)}.

-spec lookup(dats:snapshot(), Key :: term()) -> [tuple()].
lookup(Snapshot, Key) ->
    ats_disk_reading:of_key(Snapshot, lookup, [Key]).

-spec lookup_second(dats:snapshot(), Key :: term()) -> [tuple()].
lookup_second(Snapshot, Key) ->
    try lookup(Snapshot, Key)
    catch
        error:{ats_error, Cause} when Cause =:= id; Cause =:= snapshot_expired ->
            ok = check_second(Snapshot),
            erlang:error({ats_error, Cause})
    end.

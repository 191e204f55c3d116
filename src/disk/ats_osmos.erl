%% @private
%% @doc The functions of osmos (Radford, 2009) on tables on disk.
%%
%% An osmos table is an `ordered_set' of pairs of a key and a value. How the values of a key are
%% merged is said by its format, of which osmos has four that are known by name; they are merges
%% here. What osmos calls a format of keys says how keys become bytes: here all terms do, and lie in
%% their standard order, which for binaries and for lists of strings is the order that osmos has.
-module(ats_osmos).

-export([options/1, select_range/6, select_continue/3]).

-export_type([format/0, option/0, bound/0, select/0, goes_on/0]).

-type format() :: {Key :: term | binary | string_vector,
                   Value :: term_replace | binary_replace | uint64_sum_delete
                          | {uint64_vector_sum_delete, Size :: pos_integer()},
                   BlockSize :: pos_integer()}.
-type option() :: {directory, file:name_all()}
                | {format, format()}
                | {max_memory_entries | max_merge_jobs | max_selects, pos_integer()}
                | {select_timeout_secs, number() | infinity}
                | dats:option().
-type bound() :: fun((Key :: term()) -> boolean()) | unbounded | {key, term()}.
-type edge() :: fun((Key :: term()) -> term()) | unbounded | {key, term()}.
%% A bound before its function has been asked.
-type select() :: '$end_of_table' | goes_on().
%% Where a select goes on, if it does.
-opaque goes_on() :: {Snapshot :: ats:tid(), ats:continuation() | '$end_of_table',
                      Rest :: [tuple()], Upper :: edge(), Filter :: fun()}.
%% It reads a snapshot, which belongs to the process that began it.

-define(AT_ONCE, 100).
-define(EVERYTHING, [{'_', [], ['$_']}]).

%% @doc The options of `dats:open_file/2' that mean the same.
-spec options(term()) -> [dats:option()] | badarg.
options(Options) when is_list(Options) ->
    try [{type, ordered_set} | lists:flatmap(fun option/1, Options)]
    catch
        error:function_clause -> badarg
    end;
options(_) ->
    badarg.

-spec option(option()) -> [dats:option()].
option({directory, Directory}) ->
    [{file, Directory}];
option({format, {Key, Value, BlockSize}})
  when Key =:= term; Key =:= binary; Key =:= string_vector ->
    [{block_size, BlockSize} | merge(Value)];
option({select_timeout_secs, infinity}) ->
    [{snapshot_age, infinity}];
option({select_timeout_secs, Seconds}) when is_number(Seconds) ->
    [{snapshot_age, ceil(1000 * Seconds)}];
option({Other, _} = Option) when Other =/= format, Other =/= type, Other =/= keypos ->
    [Option].

-spec merge(term()) -> [dats:option()].
merge(term_replace) -> [];
merge(binary_replace) -> [];
merge(uint64_sum_delete) -> [{merge, sum}];
merge({uint64_vector_sum_delete, Size}) when is_integer(Size), Size > 0 ->
    [{merge, {vector, lists:duplicate(Size, sum)}}].

%% @doc The first rows of a range that a function selects, of the table as it is now. Of selects that
%% are more than `Most', those are given up that were not continued for longest.
-spec select_range(ats:tid(), Most :: default | pos_integer(), bound(), bound(), fun(),
                   pos_integer()) ->
          {ok, [{term(), term()}], select()}.
select_range(Table, Most, Lower, Upper, Filter, N) when is_integer(N), N > 0 ->
    ok = check_pairs(Table),
    Snapshot = ats_nif:disk_snapshot(Table, Most),
    try
        Checked = filter(Filter),
        First = begin_at(Snapshot, Lower, Upper),
        rows(First, Snapshot, Upper, Checked, N, [])
    catch
        Class:Reason:Stack ->
            ats_nif:delete(Snapshot),
            erlang:raise(Class, Reason, Stack)
    end;
select_range(_Table, _Most, _Lower, _Upper, _Filter, _N) ->
    erlang:error({ats_error, none}).

%% The first element of a pair is its key.
-spec check_pairs(ats:tid()) -> ok.
check_pairs(Table) ->
    case ats_nif:disk_kind(Table) of
        {_Type, 1, _Fixed} -> ok;
        {_Type, _KeyPos, _Fixed} -> erlang:error({ats_error, keypos})
    end.

%% @doc The next rows, of the same moment.
-spec select_continue(ats:tid(), Select :: term(), pos_integer()) ->
          {ok, [{term(), term()}], select()} | {error, {bad_select_handle, term()}}.
select_continue(_Table, '$end_of_table', N) when is_integer(N), N > 0 ->
    {ok, [], '$end_of_table'};
select_continue(_Table, Select, N) when is_integer(N), N > 0 ->
    case is_handle(Select) of
        true -> continued(Select, N);
        false -> {error, {bad_select_handle, Select}}
    end;
select_continue(_Table, _Select, _N) ->
    erlang:error({ats_error, none}).

-spec is_handle(term()) -> boolean().
is_handle({Snapshot, Continuation, Rest, _Upper, Filter}) ->
    is_reference(Snapshot) andalso is_list(Rest) andalso is_function(Filter, 2)
        andalso (Continuation =:= '$end_of_table'
                 orelse is_tuple(Continuation) andalso tuple_size(Continuation) =:= 5);
is_handle(_) ->
    false.

-spec continued(goes_on(), pos_integer()) ->
          {ok, [{term(), term()}], select()} | {error, {bad_select_handle, term()}}.
continued({Snapshot, Continuation, Rest, Upper, Filter} = Select, N) ->
    try
        continued(Snapshot, Continuation, Rest, Upper, Filter, N)
    catch
        error:{ats_error, Cause} when Cause =:= id; Cause =:= type; Cause =:= access;
                                      Cause =:= none ->
            {error, {bad_select_handle, Select}};
        error:{ats_error, snapshot_expired} ->
            ok = let_go(Snapshot),
            {error, {bad_select_handle, Select}}
    end.

-spec continued(ats:tid(), ats:continuation() | '$end_of_table', [tuple()], edge(),
                fun((term(), term()) -> term()), pos_integer()) ->
          {ok, [{term(), term()}], select()}.
continued(Snapshot, Continuation, Rest, Upper, Filter, N) ->
    _ = edge(Upper),
    %% Rows that are in the handle do not make it live longer, and are the first to be returned.
    _ = Continuation =:= '$end_of_table' orelse ats_nif:disk_median(Snapshot, <<>>, <<>>),
    _ = lists:member(ats_select:table_of(Continuation), [Snapshot, '$end_of_table'])
        orelse erlang:error({ats_error, none}),
    rows({Rest, Continuation}, Snapshot, Upper, Filter, N, []).

%% The rows from the first on that is not below the range.
-spec begin_at(ats:tid(), edge(), edge()) -> {[tuple()], ats:continuation()} | '$end_of_table'.
begin_at(Snapshot, Lower, Upper) ->
    To = edge(Upper),
    From = case edge(Lower) of
               none when is_function(Lower) ->
                   ats_disk_bisect:low_cut(Snapshot, fun(Key) -> is_below(Lower, Key, lower) end);
               Cut ->
                   Cut
           end,
    ats_range:chunk(Snapshot, From, To, ?AT_ONCE).

%% The cut at an edge; `none' if only a function knows it.
-spec edge(edge()) -> ats_nif:cut().
edge({key, Key}) -> {before, Key};
edge(unbounded) -> none;
edge(Less) when is_function(Less, 1) -> none;
edge(_Other) -> erlang:error({ats_error, none}).

-spec filter(fun()) -> fun((term(), term()) -> term()).
filter(Filter) when is_function(Filter, 2) -> Filter;
filter(Filter) when is_function(Filter, 1) -> fun(Key, Value) -> Filter({Key, Value}) end;
filter(_) -> erlang:error({ats_error, none}).

-spec rows({[tuple()], ats:continuation() | '$end_of_table'} | '$end_of_table', ats:tid(), edge(),
           fun((term(), term()) -> term()), non_neg_integer(), [{term(), term()}]) ->
          {ok, [{term(), term()}], select()}.
rows('$end_of_table', Snapshot, _Upper, _Filter, _Wanted, Found) ->
    ended(Snapshot, Found);
rows({[Row | _] = Rest, Continuation}, Snapshot, Upper, Filter, 0, Found) ->
    case is_below(Upper, element(1, Row), upper) of
        true ->
            %% What is left may be in the handle already.
            _ = [let_go(Snapshot) || Continuation =:= '$end_of_table'],
            {ok, lists:reverse(Found), {Snapshot, Continuation, Rest, Upper, Filter}};
        false ->
            ended(Snapshot, Found)
    end;
rows({[Row | Rest], Continuation}, Snapshot, Upper, Filter, Wanted, Found)
  when tuple_size(Row) >= 2 ->
    Key = element(1, Row),
    Value = element(2, Row),
    case is_below(Upper, Key, upper) of
        false ->
            ended(Snapshot, Found);
        true ->
            case Filter(Key, Value) of
                true ->
                    rows({Rest, Continuation}, Snapshot, Upper, Filter, Wanted - 1,
                         [{Key, Value} | Found]);
                false ->
                    rows({Rest, Continuation}, Snapshot, Upper, Filter, Wanted, Found);
                _ ->
                    erlang:error({ats_error, filter})
            end
    end;
rows({[_NoPair | _], _Continuation}, _Snapshot, _Upper, _Filter, _Wanted, _Found) ->
    erlang:error({ats_error, row});
rows({[], '$end_of_table'}, Snapshot, _Upper, _Filter, _Wanted, Found) ->
    ended(Snapshot, Found);
%% Also when enough was found: what is complete keeps no snapshot.
rows({[], Continuation}, Snapshot, Upper, Filter, Wanted, Found) ->
    rows(ats_select:continue(Continuation), Snapshot, Upper, Filter, Wanted, Found).

%% The cause is that of a function that returns no boolean.
-spec is_below(edge(), term(), lower | upper) -> boolean().
is_below(Less, Key, Cause) when is_function(Less) ->
    case Less(Key) of
        IsBelow when is_boolean(IsBelow) -> IsBelow;
        _ -> erlang:error({ats_error, Cause})
    end;
is_below(_Upper, _Key, _Cause) ->
    true.

%% Nothing is left, so the snapshot is not needed any more.
-spec ended(ats:tid(), [{term(), term()}]) -> {ok, [{term(), term()}], '$end_of_table'}.
ended(Snapshot, Found) ->
    ok = let_go(Snapshot),
    {ok, lists:reverse(Found), '$end_of_table'}.

%% The snapshot may be gone already.
-spec let_go(ats:tid()) -> ok.
let_go(Snapshot) ->
    try ats_nif:delete(Snapshot) of
        true -> ok
    catch
        error:{ats_error, _Cause} -> ok
    end.

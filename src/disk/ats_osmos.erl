%% @private
%% @doc The functions of osmos (Radford, 2009) on tables on disk.
%%
%% An osmos table is an `ordered_set' of pairs of a key and a value. Its format says how the values
%% of a key are merged. Osmos has four formats that are known by name; they are merges here. A
%% format of keys in osmos says how keys become bytes: here all terms do, and lie in their standard
%% order, which is the order that the formats of osmos have. For bytes of its own a program has
%% modules, or functions; see {@link ats_format} and `include/ats_osmos.hrl'.
-module(ats_osmos).

-include("ats_osmos.hrl").

-export([options/1, wrong_option/1, read/2, write/3, merge/3, select_range/6, select_continue/3]).

-export_type([format/0, option/0, bound/0, select/0, goes_on/0]).

-type format() :: {Key :: term | binary | string_vector | {module, module()},
                   Value :: term_replace | binary_replace | uint64_sum_delete
                          | {uint64_vector_sum_delete, Size :: pos_integer()}
                          | {module, module()},
                   BlockSize :: pos_integer()}
                | #osmos_table_format{}.
-type option() :: {directory, file:name_all()}
                | {format, format()}
                | {max_memory_entries | max_merge_jobs | max_selects, pos_integer()}
                | {select_timeout_secs, number() | infinity}
                | dats:option().
-type bound() :: fun((Key :: term()) -> boolean()) | unbounded | {key, term()}.
-type edge() :: fun((Key :: term()) -> term()) | unbounded | {key, term()}.
%% A bound before its function has been asked.
-type select() :: '$end_of_table' | goes_on().
%% The place where a select goes on, if it does.
-opaque goes_on() :: {select, ats:continuation() | '$end_of_table', Rest :: [tuple()], range()}.
%% State of a select: a snapshot, which belongs to the process that began it, and the rest of the
%% range.
-type range() :: {Snapshot :: ats:tid(), ats_format:formats(), Upper :: edge(),
                  Filter :: fun((term(), term()) -> term())}.

-define(AT_ONCE, 100).
-define(EVERYTHING, [{'_', [], ['$_']}]).

%% @doc Returns the options of `dats:open_file/2' that mean the same.
-spec options(term()) -> [dats:option()] | badarg | {error, {unsupported, term()}}.
options(Options) when is_list(Options) ->
    try [{type, ordered_set} | lists:flatmap(fun option/1, Options)]
    catch
        error:function_clause -> badarg;
        throw:{unsupported, _} = Unsupported -> {error, Unsupported}
    end;
options(_) ->
    badarg.

%% @doc Says which option of a list is wrong.
-spec wrong_option(term()) -> binary().
wrong_option(Options) ->
    Known = #{directory => "the name of a directory",
              format => "#osmos_table_format{}, or {Key, Value, BlockSize}",
              select_timeout_secs => "a number or `infinity'"},
    IsRight = fun(Option) ->
                      try is_list(option(Option))
                      catch
                          error:function_clause -> false;
                          throw:_ -> true
                      end
              end,
    ats_hints:options(Options, Known, IsRight, "").

-spec option(option()) -> [dats:option()].
option({directory, Directory}) ->
    [{file, Directory}];
option({format, #osmos_table_format{} = Format}) ->
    ats_osmos_format:options(Format);
option({format, {Key, Value, BlockSize}}) ->
    {ValueFormat, Merge} = value(Value),
    [{block_size, BlockSize}, {formats, {key(Key), ValueFormat}} | Merge];
option({select_timeout_secs, infinity}) ->
    [{continuation_age, infinity}];
option({select_timeout_secs, Seconds}) when is_number(Seconds) ->
    [{continuation_age, ceil(1000 * Seconds)}];
option({Other, _} = Option)
  when Other =/= format, Other =/= formats, Other =/= type, Other =/= keypos,
       Other =/= select_timeout_secs ->
    [Option].

-spec key(term()) -> ats_format:given().
key({module, _} = Format) -> Format;
key(Key) when Key =:= term; Key =:= binary; Key =:= string_vector -> term.

-spec value(term()) -> {ats_format:given(), [dats:option()]}.
value({module, _} = Format) ->
    {Format, []};
value(Replace) when Replace =:= term_replace; Replace =:= binary_replace ->
    {term, []};
value(uint64_sum_delete) ->
    {term, [{merge, sum}]};
value({uint64_vector_sum_delete, Size}) when is_integer(Size), Size > 0 ->
    {term, [{merge, {vector, lists:duplicate(Size, sum)}}]};
value(uint64_vector_sum_delete) ->
    {term, [{merge, {module, ats_osmos_vector}}]}.

%% @doc Returns the value of a key.
-spec read(ats:tid(), Key :: term()) -> {ok, term()} | not_found | no_pair.
read(Table, Key) ->
    Formats = ats_format:of_table(Table),
    case ats_merge_access:lookup(Table, ats_format:key(Formats, Key)) of
        [Object] when tuple_size(Object) >= 2 ->
            {ok, ats_format:decode_value(Formats, element(2, Object))};
        [] ->
            not_found;
        _ ->
            no_pair
    end.

%% @doc Like {@link merge/3}, but `delete' deletes the key if it is no value.
-spec write(ats:tid(), Key :: term(), Value :: term()) -> true.
write(Table, Key, delete) ->
    try merge(Table, Key, delete)
    catch
        error:{ats_error, Cause} when Cause =:= operand; element(1, Cause) =:= value_format ->
            ats_nif:disk_delete_unread(Table, ats_format:key(ats_format:of_table(Table), Key))
    end;
write(Table, Key, Value) ->
    merge(Table, Key, Value).

%% @doc Merges a value with that of a key, which is not read.
-spec merge(ats:tid(), Key :: term(), Value :: term()) -> true.
merge(Table, Key, Value) ->
    Formats = ats_format:of_table(Table),
    case Formats =/= none andalso ats_merge_pending:program(Table) of
        {{Module, Version}, _Id} ->
            ats_merge_access:write(Table, Module, Version, Formats, Key, Value);
        _ ->
            Pair = {ats_format:key(Formats, Key), ats_format:value(Formats, Value)},
            case ats_nif:disk_write(Table, Pair) of
                written ->
                    true;
                operand ->
                    erlang:error({ats_error, operand});
                {ask, Module, Version} ->
                    ats_merge_access:write(Table, Module, Version, Formats, Key, Value)
            end
    end.

%% @doc Returns the first rows of a range that a function selects, of the table as it is now. Beyond
%% `Most' selects, those that were not continued for longest are given up.
-spec select_range(ats:tid(), Most :: default | pos_integer(), bound(), bound(), fun(),
                   pos_integer()) ->
          {ok, [{term(), term()}], select()}.
select_range(Table, Most, Lower, Upper, Filter, N) when is_integer(N), N > 0 ->
    ok = check_pairs(Table),
    Snapshot = ats_nif:disk_snapshot(Table, Most),
    try
        Checked = filter(Filter),
        Formats = ats_format:of_table(Snapshot),
        First = begin_at(Snapshot, Formats, Lower, Upper),
        rows(First, {Snapshot, Formats, Upper, Checked}, N, [])
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

%% @doc Returns the next rows, of the same moment.
-spec select_continue(ats:tid(), Select :: term(), pos_integer()) ->
          {ok, [{term(), term()}], select()} | {error, {bad_select_handle, term()}}.
select_continue(_Table, '$end_of_table', N) when is_integer(N), N > 0 ->
    {ok, [], '$end_of_table'};
select_continue(_Table, Select, N) when is_integer(N), N > 0 ->
    case is_handle(Select) of
        true -> continue_select(Select, N);
        false -> {error, {bad_select_handle, Select}}
    end;
select_continue(_Table, _Select, _N) ->
    erlang:error({ats_error, none}).

-spec is_handle(term()) -> boolean().
is_handle({select, Continuation, Rest, {Snapshot, Formats, _Upper, Filter}}) ->
    is_reference(Snapshot) andalso ats_format:are_formats(Formats)
        andalso is_list(Rest) andalso is_function(Filter, 2)
        andalso (Continuation =:= '$end_of_table'
                 orelse is_tuple(Continuation) andalso tuple_size(Continuation) =:= 5);
is_handle(_) ->
    false.

-spec continue_select(goes_on(), pos_integer()) ->
          {ok, [{term(), term()}], select()} | {error, {bad_select_handle, term()}}.
continue_select({select, Continuation, Rest, {Snapshot, _, _, _} = Range} = Select, N) ->
    try
        continue_select(Continuation, Rest, Range, N)
    catch
        error:{ats_error, Cause} when Cause =:= id; Cause =:= type; Cause =:= access;
                                      Cause =:= none ->
            {error, {bad_select_handle, Select}};
        error:{ats_error, snapshot_expired} ->
            ok = release_snapshot(Snapshot),
            {error, {bad_select_handle, Select}}
    end.

-spec continue_select(ats:continuation() | '$end_of_table', [tuple()], range(), pos_integer()) ->
          {ok, [{term(), term()}], select()}.
continue_select(Continuation, Rest, {Snapshot, Formats, Upper, _Filter} = Range, N) ->
    _ = edge(Formats, Upper),
    %% Rows that are in the handle do not make it live longer, and are the first to be returned.
    _ = Continuation =:= '$end_of_table' orelse ats_nif:disk_median(Snapshot, <<>>, <<>>),
    _ = lists:member(ats_select:table_of(Continuation), [Snapshot, '$end_of_table'])
        orelse erlang:error({ats_error, none}),
    rows({Rest, Continuation}, Range, N, []).

%% Returns the rows from the first on that is not below the range.
-spec begin_at(ats:tid(), ats_format:formats(), edge(), edge()) ->
          {[tuple()], ats:continuation()} | '$end_of_table'.
begin_at(Snapshot, Formats, Lower, Upper) ->
    To = edge(Formats, Upper),
    From = case edge(Formats, Lower) of
               none when is_function(Lower) ->
                   IsBelow = fun(Key) ->
                                     is_below(Lower, ats_format:decode_key(Formats, Key), lower)
                             end,
                   ats_disk_bisect:low_cut(Snapshot, IsBelow);
               Cut ->
                   Cut
           end,
    ats_range:chunk(Snapshot, From, To, ?AT_ONCE).

%% Returns the cut at an edge; `none' if only a function knows it.
-spec edge(ats_format:formats(), edge()) -> ats_nif:cut().
edge(Formats, {key, Key}) -> {before, ats_format:key(Formats, Key)};
edge(_Formats, unbounded) -> none;
edge(_Formats, Less) when is_function(Less, 1) -> none;
edge(_Formats, _Other) -> erlang:error({ats_error, none}).

-spec filter(fun()) -> fun((term(), term()) -> term()).
filter(Filter) when is_function(Filter, 2) -> Filter;
filter(Filter) when is_function(Filter, 1) -> fun(Key, Value) -> Filter({Key, Value}) end;
filter(_) -> erlang:error({ats_error, none}).

-spec rows({[tuple()], ats:continuation() | '$end_of_table'} | '$end_of_table', range(),
           non_neg_integer(), [{term(), term()}]) -> {ok, [{term(), term()}], select()}.
rows('$end_of_table', Range, _Wanted, Found) ->
    end_select(Range, Found);
rows({[Row | _] = Rest, Continuation}, {Snapshot, Formats, Upper, _Filter} = Range, 0, Found) ->
    case is_below(Upper, ats_format:decode_key(Formats, element(1, Row)), upper) of
        true ->
            %% The rest may be in the handle already.
            _ = [release_snapshot(Snapshot) || Continuation =:= '$end_of_table'],
            {ok, lists:reverse(Found), {select, Continuation, Rest, Range}};
        false ->
            end_select(Range, Found)
    end;
rows({[Row | Rest], Continuation}, {_Snapshot, Formats, Upper, Filter} = Range, Wanted, Found)
  when tuple_size(Row) >= 2 ->
    Key = ats_format:decode_key(Formats, element(1, Row)),
    case is_below(Upper, Key, upper) of
        false ->
            end_select(Range, Found);
        true ->
            Value = ats_format:decode_value(Formats, element(2, Row)),
            case Filter(Key, Value) of
                true -> rows({Rest, Continuation}, Range, Wanted - 1, [{Key, Value} | Found]);
                false -> rows({Rest, Continuation}, Range, Wanted, Found);
                _ -> erlang:error({ats_error, filter})
            end
    end;
rows({[_NoPair | _], _Continuation}, _Range, _Wanted, _Found) ->
    erlang:error({ats_error, row});
%% Continues also if enough rows were found: a completed range releases its snapshot.
rows({[], Continuation}, Range, Wanted, Found) ->
    rows(ats_select:continue(Continuation), Range, Wanted, Found).

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
-spec end_select(range(), [{term(), term()}]) -> {ok, [{term(), term()}], '$end_of_table'}.
end_select({Snapshot, _Formats, _Upper, _Filter}, Found) ->
    ok = release_snapshot(Snapshot),
    {ok, lists:reverse(Found), '$end_of_table'}.

%% The snapshot may be gone already.
-spec release_snapshot(ats:tid()) -> ok.
release_snapshot(Snapshot) ->
    try ats_nif:delete(Snapshot) of
        true -> ok
    catch
        error:{ats_error, _Cause} -> ok
    end.

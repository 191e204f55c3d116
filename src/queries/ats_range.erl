%% @private
%% @doc Ranges of the keys of an `ordered_set', without a match specification of the caller.
%%
%% A range is run like a query whose plan is given by its ends. The result of each object is given
%% by a specification with a head that matches everything. There are few of these, so they are not
%% compiled anew.
-module(ats_range).

-export([range/4, chunk/4, prefix/3, count/4, delete/4, fold/6, are_options/2, wrong_option/1]).
-export([rank/2, nth/2, nth/5, cuts/4, place/2]).

-export_type([option/0, bound/0]).

-type bound() :: {low | high, inclusive | exclusive | unbounded}.
-type option() ::
        bound()
      | reverse | {reverse, boolean()}
      | {limit, pos_integer()}
      | objects | keys | {positions, [pos_integer()]}.

-type found() :: [term()] | {[term()], ats:continuation()} | '$end_of_table' | pending.
%% `pending' as in {@link ats_select}.

-define(FOLDED_AT_ONCE, 100).
%% A limit that no range reaches, nor a place, and the largest that the native library takes.
-define(MAX_LIMIT, ((1 bsl 59) - 1)).

-record(range, {low = inclusive :: inclusive | exclusive | unbounded,
                high = inclusive :: inclusive | exclusive | unbounded,
                direction = up :: ats_nif:direction(),
                limit = infinity :: pos_integer() | infinity,
                shape = objects :: objects | keys | {positions, [pos_integer()]}}).

-spec range(ats:table(), term(), term(), [option()]) -> found().
range(Table, Low, High, Options) ->
    Range = options(any, Options, Table, count),
    read(Table, from(Range, Low), to(Range, High), Range).

%% @doc Returns the first objects between two cuts, and the position to go on from.
-spec chunk(ats:table(), ats_nif:cut(), ats_nif:cut(), Limit :: pos_integer()) ->
          {[tuple()], ats:continuation()} | '$end_of_table'.
chunk(Table, From, To, Limit) ->
    read(Table, From, To, #range{limit = Limit}).

-spec prefix(ats:table(), term(), [option()]) -> found().
prefix(Table, Pattern, Options) ->
    Range = options(no_bounds, Options, Table, count),
    read(Table, {prefix, Pattern}, {prefix, Pattern}, Range).

-spec count(ats:table(), term(), term(), [bound()]) -> non_neg_integer().
count(Table, Low, High, Bounds) ->
    {From, To} = cuts(Table, Low, High, Bounds),
    ats_nif:range_size(Table, From, To).

%% @doc Returns the cuts at the ends of a range whose only options are bounds.
-spec cuts(ats:table(), term(), term(), [bound()]) -> {ats_nif:cut(), ats_nif:cut()}.
cuts(Table, Low, High, Bounds) ->
    Range = options(bounds, Bounds, Table, count),
    {from(Range, Low), to(Range, High)}.

%% @doc Returns how many keys are below one.
-spec rank(ats:table(), term()) -> non_neg_integer().
rank(Table, Key) ->
    ats_nif:range_size(Table, none, {before, Key}).

-spec nth(ats:table(), term()) -> tuple() | '$end_of_table'.
nth(Table, N) ->
    ats_nif:range_nth(Table, none, none, place(Table, N)).

-spec nth(ats:table(), term(), term(), term(), [bound()]) -> tuple() | '$end_of_table'.
nth(Table, Low, High, N, Bounds) ->
    {From, To} = cuts(Table, Low, High, Bounds),
    ats_nif:range_nth(Table, From, To, place(Table, N)).

%% @doc Returns the number of a place as the native library takes it.
-spec place(ats:table(), N :: term()) -> integer().
place(_Table, N) when is_integer(N), N =/= 0 ->
    max(-?MAX_LIMIT, min(N, ?MAX_LIMIT));
place(Table, _N) ->
    refuse(Table, count, none).

-spec delete(ats:table(), term(), term(), [bound()]) -> non_neg_integer().
delete(Table, Low, High, Bounds) ->
    Range = options(bounds, Bounds, Table, delete),
    All = [{'_', [], [true]}],
    Selected = ats_nif:range_start(Table, All, from(Range, Low), to(Range, High), delete),
    ats_select:count_more(Selected, delete).

%% @doc Folds a function over the results of {@link range/4}.
-spec fold(fun((term(), Acc) -> Acc), Acc, ats:table(), term(), term(), [option()]) -> Acc.
fold(Function, Acc, Table, Low, High, Options) when is_function(Function, 2) ->
    Range = options(any, Options, Table, count),
    Chunk = read(Table, from(Range, Low), to(Range, High), Range#range{limit = ?FOLDED_AT_ONCE}),
    fold_chunks(Function, Acc, Chunk, Range#range.limit);
fold(_Function, _Acc, Table, _Low, _High, _Options) ->
    refuse(Table, count, function).

-spec fold_chunks(fun((term(), Acc) -> Acc), Acc,
                  {[term()], ats:continuation()} | '$end_of_table', pos_integer() | infinity) ->
                      Acc.
fold_chunks(_Function, Acc, '$end_of_table', _Left) ->
    Acc;
fold_chunks(Function, Acc, {Terms, _Continuation}, Left) when length(Terms) >= Left ->
    lists:foldl(Function, Acc, lists:sublist(Terms, Left));
fold_chunks(Function, Acc, {Terms, Continuation}, Left) ->
    NewAcc = lists:foldl(Function, Acc, Terms),
    NewLeft = case Left of
                  infinity -> infinity;
                  _ -> Left - length(Terms)
              end,
    fold_chunks(Function, NewAcc, ats_select:continue(Continuation), NewLeft).

-spec read(ats:table(), ats_nif:cut(), ats_nif:cut(), #range{}) -> found().
read(Table, From, To, #range{direction = Direction, limit = infinity, shape = Shape}) ->
    Selected = ats_nif:range_start(Table, what(Shape), From, To, Direction),
    ats_select:list_more(Selected, Direction);
read(Table, From, To, #range{direction = Direction, limit = Limit, shape = Shape}) ->
    Selected = ats_nif:range_start(Table, what(Shape), From, To, {Direction, Limit}),
    ats_select:fill_range(Selected, Direction, Limit).

%% Returns the specification of the result of each object.
-spec what(objects | keys | {positions, [pos_integer()]}) -> keys | ats:match_spec().
what(objects) ->
    [{'_', [], ['$_']}];
what(keys) ->
    keys;
what({positions, Positions}) ->
    [{'_', [], [[{element, Position, '$_'} || Position <- Positions]]}].

%% Fails for this cause, or for a fault of the table, which takes precedence.
-spec refuse(ats:table(), count | delete, ats_errors:cause()) -> no_return().
refuse(Table, How, Cause) ->
    Nothing = {before, []},
    0 = ats_nif:range_start(Table, [{'_', [], [true]}], Nothing, Nothing, How),
    erlang:error({ats_error, Cause}).

-spec from(#range{}, term()) -> ats_nif:cut().
from(#range{low = inclusive}, Low) -> {before, Low};
from(#range{low = exclusive}, Low) -> {behind, Low};
from(#range{low = unbounded}, _Low) -> none.

-spec to(#range{}, term()) -> ats_nif:cut().
to(#range{high = inclusive}, High) -> {behind, High};
to(#range{high = exclusive}, High) -> {before, High};
to(#range{high = unbounded}, _High) -> none.

-spec options(any | bounds | no_bounds, term(), ats:table(), count | delete) -> #range{}.
options(Possible, Options, Table, How) ->
    case are_options(Possible, Options) of
        true -> lists:foldl(fun option/2, #range{}, Options);
        false -> refuse(Table, How, options)
    end.

%% @doc Returns `true' if these are options of {@link range/4}, and all of them or none are bounds.
-spec are_options(any | bounds | no_bounds, term()) -> boolean().
are_options(Possible, Options) ->
    IsPossible = fun(Option) ->
                         option(Option, #range{}) =/= wrong andalso
                             (Possible =:= any orelse is_bound(Option) =:= (Possible =:= bounds))
                 end,
    is_list_of(IsPossible, Options).

%% @doc Says which option of a list is wrong.
-spec wrong_option(term()) -> binary().
wrong_option(Options) ->
    Bound = "`inclusive', `exclusive' or `unbounded'",
    Known = #{low => Bound, high => Bound, reverse => "a boolean", limit => "a positive number",
              objects => flag, keys => flag, positions => "a list of positions"},
    IsRight = fun(Option) -> option(Option, #range{}) =/= wrong end,
    ats_hints:options(Options, Known, IsRight, "").

-spec is_bound(option()) -> boolean().
is_bound({low, _}) -> true;
is_bound({high, _}) -> true;
is_bound(_) -> false.

-spec option(term(), #range{}) -> #range{} | wrong.
option({low, How}, Range)
  when How =:= inclusive; How =:= exclusive; How =:= unbounded ->
    Range#range{low = How};
option({high, How}, Range)
  when How =:= inclusive; How =:= exclusive; How =:= unbounded ->
    Range#range{high = How};
option(reverse, Range) ->
    Range#range{direction = down};
option({reverse, true}, Range) ->
    Range#range{direction = down};
option({reverse, false}, Range) ->
    Range#range{direction = up};
option({limit, Limit}, Range) when is_integer(Limit), Limit > 0 ->
    Range#range{limit = min(Limit, ?MAX_LIMIT)};
option(Shape, Range) when Shape =:= objects; Shape =:= keys ->
    Range#range{shape = Shape};
option({positions, Positions} = Shape, Range) ->
    case is_list_of(fun(P) -> is_integer(P) andalso P > 0 end, Positions) of
        true -> Range#range{shape = Shape};
        false -> wrong
    end;
option(_, _Range) ->
    wrong.

%% Like lists:all/2, but returns `false' for a term that is not a proper list.
-spec is_list_of(fun((term()) -> boolean()), term()) -> boolean().
is_list_of(Is, [Element | Rest]) -> Is(Element) andalso is_list_of(Is, Rest);
is_list_of(_Is, End) -> End =:= [].

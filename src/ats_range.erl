%% @private
%% @doc Ranges of the keys of an `ordered_set', without a match specification of the caller.
%%
%% A range is run like a query whose plan is given by its ends. What is made of each object is
%% a specification with a head that matches everything, of which there are few, so they are not
%% compiled anew.
-module(ats_range).

-export([range/4, prefix/3, count/4, delete/4, fold/6]).

-export_type([option/0]).

-type option() ::
        {low | high, inclusive | exclusive | unbounded}
      | reverse | {reverse, boolean()}
      | {limit, pos_integer()}
      | objects | keys | {positions, [pos_integer()]}.

-define(FOLDED_AT_ONCE, 100).

-record(range, {low = inclusive :: inclusive | exclusive | unbounded,
                high = inclusive :: inclusive | exclusive | unbounded,
                reverse = false :: boolean(),
                limit = infinity :: pos_integer() | infinity,
                shape = objects :: objects | keys | {positions, [pos_integer()]}}).

-spec range(ats:table(), term(), term(), [option()]) ->
          [term()] | {[term()], ats:continuation()} | '$end_of_table'.
range(Table, Low, High, Options) ->
    Range = options(Options),
    read(Table, from(Range, Low), to(Range, High), Range).

-spec prefix(ats:table(), term(), [option()]) ->
          [term()] | {[term()], ats:continuation()} | '$end_of_table'.
prefix(Table, Pattern, Options) ->
    read(Table, {prefix, Pattern}, {prefix, Pattern}, options(Options)).

-spec count(ats:table(), term(), term(), [option()]) -> non_neg_integer().
count(Table, Low, High, Options) ->
    change(Table, Low, High, Options, count).

-spec delete(ats:table(), term(), term(), [option()]) -> non_neg_integer().
delete(Table, Low, High, Options) ->
    change(Table, Low, High, Options, delete).

%% @doc Folds a function over what {@link range/4} would return.
-spec fold(fun((term(), Acc) -> Acc), Acc, ats:table(), term(), term(), [option()]) -> Acc.
fold(Function, Acc, Table, Low, High, Options) ->
    Range = options(Options),
    Chunk = read(Table, from(Range, Low), to(Range, High), Range#range{limit = ?FOLDED_AT_ONCE}),
    fold_chunks(Function, Acc, Chunk, Range#range.limit).

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

-spec read(ats:table(), ats_nif:cut(), ats_nif:cut(), #range{}) ->
          [term()] | {[term()], ats:continuation()} | '$end_of_table'.
read(Table, From, To, #range{limit = Limit, reverse = Reverse, shape = Shape}) ->
    MatchSpec = [{'_', [], [body(Table, Shape)]}],
    case {Limit, Reverse} of
        {infinity, false} ->
            ats_select:list_more(ats_nif:range_start(Table, MatchSpec, From, To, all), all);
        {infinity, true} ->
            Selected = ats_nif:range_start(Table, MatchSpec, From, To, reverse),
            ats_select:list_more(Selected, reverse);
        {_, _} ->
            Way = case Reverse of
                      true -> down;
                      false -> up
                  end,
            Selected = ats_nif:range_start(Table, MatchSpec, From, To, {Way, Limit}),
            ats_select:fill(Selected, Way, Limit)
    end.

-spec change(ats:table(), term(), term(), [option()], count | delete) -> non_neg_integer().
change(Table, Low, High, Options, How) ->
    Range = options(Options),
    All = [{'_', [], [true]}],
    Selected = ats_nif:range_start(Table, All, from(Range, Low), to(Range, High), How),
    ats_select:count_more(Selected, How).

-spec body(ats:table(), objects | keys | {positions, [pos_integer()]}) -> term().
body(_Table, objects) ->
    '$_';
body(Table, keys) ->
    {element, keypos(Table), '$_'};
body(_Table, {positions, Positions}) ->
    [{element, Position, '$_'} || Position <- Positions].

-spec keypos(ats:table()) -> pos_integer().
keypos(Table) ->
    case ats_nif:info(Table) of
        undefined -> erlang:error({ats_error, id});
        Information -> element(13, Information)
    end.

-spec from(#range{}, term()) -> ats_nif:cut().
from(#range{low = inclusive}, Low) -> {before, Low};
from(#range{low = exclusive}, Low) -> {behind, Low};
from(#range{low = unbounded}, _Low) -> none.

-spec to(#range{}, term()) -> ats_nif:cut().
to(#range{high = inclusive}, High) -> {behind, High};
to(#range{high = exclusive}, High) -> {before, High};
to(#range{high = unbounded}, _High) -> none.

-spec options(term()) -> #range{}.
options(Options) ->
    options(Options, #range{}).

-spec options(term(), #range{}) -> #range{}.
options([], Range) ->
    Range;
options([Option | Options], Range) ->
    options(Options, option(Option, Range));
options(_, _Range) ->
    erlang:error({ats_error, none}).

-spec option(term(), #range{}) -> #range{}.
option({low, How}, Range)
  when How =:= inclusive; How =:= exclusive; How =:= unbounded ->
    Range#range{low = How};
option({high, How}, Range)
  when How =:= inclusive; How =:= exclusive; How =:= unbounded ->
    Range#range{high = How};
option(reverse, Range) ->
    Range#range{reverse = true};
option({reverse, Reverse}, Range) when is_boolean(Reverse) ->
    Range#range{reverse = Reverse};
option({limit, Limit}, Range) when is_integer(Limit), Limit > 0 ->
    Range#range{limit = Limit};
option(Shape, Range) when Shape =:= objects; Shape =:= keys ->
    Range#range{shape = Shape};
option({positions, Positions} = Shape, Range) when is_list(Positions) ->
    case lists:all(fun(P) -> is_integer(P) andalso P > 0 end, Positions) of
        true -> Range#range{shape = Shape};
        false -> erlang:error({ats_error, none})
    end;
option(_, _Range) ->
    erlang:error({ats_error, none}).

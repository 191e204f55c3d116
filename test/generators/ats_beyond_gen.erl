%% Random arguments of the functions that `ets' does not have. The generators yield recipes, as
%% `ats_term_gen' does; operands of merges need more of them: sets whose elements are in order when
%% they are cooked, and vectors.
-module(ats_beyond_gen).

-include_lib("proper/include/proper.hrl").

-export([merge/0, operand/1, bounds/0, range_options/0, prefix_options/0, prefix/0]).
-export([cook/1, source/1]).

-export_type([operand/0]).

-type operand() ::
    ats_term_gen:recipe()
    | {set_of, [ats_term_gen:recipe()]}
    | {vector_of, [operand()]}.

%% ----- merges -----

merge() ->
    Vector = vector(frequency([{9, simple_merge()}, {1, vector(simple_merge())}])),
    frequency([{7, simple_merge()}, {1, Vector}]).

vector(Merge) ->
    ?LET(Merges, resize(6, list(Merge)), {vector, Merges}).

simple_merge() ->
    Pruned = [{prune, Merge} || Merge <- [sum, append, union]],
    Simple = [sum, min, max, first, last, replace, statistics, append, union, intersection],
    frequency([{10, elements(Simple)}, {3, elements(Pruned)}, {1, {last, range(1, 3)}}]).

%% Mostly of the kind that the merge takes.
operand({vector, Merges}) ->
    frequency([{9, {vector_of, [operand(M) || M <- Merges]}}, {1, operand(last)}]);
operand(Merge) ->
    frequency([{9, ?LAZY(of_kind(Merge))}, {1, ?LAZY(ats_term_gen:any_term())}]).

of_kind({prune, Merge}) ->
    frequency([{2, of_kind(Merge)}, {1, {lit, elements(empty(Merge))}}]);
of_kind({last, N}) ->
    Elements = [ats_term_gen:any_term() || _ <- lists:seq(1, N)],
    {vector_of, lists:droplast(Elements) ++ [oneof([element(), ats_term_gen:any_term()])]};
of_kind(statistics) ->
    Spelled = ?LET(
        {A, B, S, C},
        {integer(), integer(), integer(), range(0, 5)},
        {lit, {A, B, S, C}}
    ),
    frequency([{3, ?LAZY(of_kind(sum))}, {1, Spelled}]);
of_kind(intersection) ->
    of_kind(union);
of_kind(sum) ->
    Int = ?LET(
        {N, S},
        {integer(), elements([0, 0, 30, 55, 58, 59, 60, 62, 64, 100])},
        {lit, N * (1 bsl S)}
    ),
    frequency([{5, Int}, {1, ?LET(F, float(), {lit, F})}, {1, {lit, 1.7e308}}]);
of_kind(append) ->
    oneof([{list, list(ats_term_gen:any_term())}, ?LET(B, binary(), {lit, B})]);
of_kind(union) ->
    oneof([
        {set_of, list(element())},
        {map, list({element(), ats_term_gen:any_term()})}
    ]);
of_kind(_) ->
    oneof([ats_term_gen:key(), ats_term_gen:any_term()]).

empty(sum) -> [0, 0, 0.0];
empty(append) -> [[], <<>>];
empty(union) -> [[], #{}].

%% An element of a set, or a key of a map: often one of those that only some comparisons tell apart.
element() ->
    Zeros = [0, 0.0, ats_term_gen:negative_zero(), {0.0}, {ats_term_gen:negative_zero()}],
    frequency([{1, {lit, elements(Zeros)}}, {2, ats_term_gen:key()}]).

-spec cook(operand()) -> term().
cook({set_of, Recipes}) -> ordsets:from_list([ats_term_gen:realize(R) || R <- Recipes]);
cook({vector_of, Parts}) -> list_to_tuple([cook(P) || P <- Parts]);
cook(Recipe) -> ats_term_gen:realize(Recipe).

%% Returns the operand as Erlang source.
-spec source(operand()) -> iodata().
source({set_of, Recipes}) -> ["ordsets:from_list([", separated(ats_term_gen, Recipes), "])"];
source({vector_of, Parts}) -> ["{", separated(?MODULE, Parts), "}"];
source(Recipe) -> ats_term_gen:source(Recipe).

separated(Module, Parts) -> lists:join(", ", [Module:source(P) || P <- Parts]).

%% ----- ranges -----

%% Options that say which ends belong to a range, sometimes wrong.
bounds() ->
    frequency([{12, list(bound())}, {1, wrong_options()}, {1, [elements([reverse, keys])]}]).

range_options() ->
    options(frequency([{4, bound()}, {8, reading()}])).

%% A prefix has no bounds.
prefix_options() ->
    frequency([{5, options(reading())}, {1, range_options()}]).

options(Option) ->
    frequency([{12, list(Option)}, {1, wrong_options()}]).

%% The results, the direction and the limit of a read.
reading() ->
    oneof([
        elements([objects, keys]),
        {positions, list(integer(1, 4))},
        elements([reverse, {reverse, true}, {reverse, false}]),
        {limit, frequency([{8, integer(1, 5)}, {1, 1 bsl 70}])}
    ]).

bound() ->
    {elements([low, high]), elements([inclusive, exclusive, unbounded])}.

wrong_options() ->
    elements([
        x,
        {low, inclusive},
        [reverse | x],
        [x],
        [{limit, 0}],
        [{limit, 1.0}],
        [{reverse, 1}],
        [{low, x}],
        [{high, 1, 2}],
        [{positions, 1}],
        [{positions, [0]}],
        [{positions, [1 | 2]}],
        [keys, {positions, [1, x]}]
    ]).

%% Patterns of keys that `ats_term_gen' makes, and of others, with and without an open end.
prefix() ->
    frequency([
        {3,
            elements([
                {lit, '_'},
                {lit, {prefix, '_', '_', '_'}},
                {lit, {prefix, shared, 1, '_'}},
                {lit, {'_', '_'}},
                {lit, [prefix | '_']},
                {lit, [prefix, shared | '_']},
                {lit, [prefix, shared, '_' | '_']},
                {lit, "a" ++ '_'},
                {lit, {a, '_'}},
                {lit, {1, '_'}},
                {lit, {}}
            ])},
        {1,
            elements([
                {lit, {'_', 1}},
                {lit, [prefix, '_']},
                {lit, ['_' | b]},
                {lit, #{a => '_'}},
                {lit, {'_', {'_'}}}
            ])},
        {1, ats_term_gen:key()}
    ]).

%% Makes failing cases small.
%%
%% Cases are lists whose elements may hold recipes of `ats_term_gen'. First elements are left out in
%% ever smaller chunks (delta debugging), then the rest is made simpler, until nothing smaller fails
%% or the time is over. A case counts as failing when `Fails' says so, for any reason: a different
%% failure is as good a finding.
-module(ats_shrink).

-export([list/2, list/3, number/2, recipes/1]).

-define(TIME_LIMIT_MS, 60000).

-type fails(T) :: fun((T) -> boolean()).

%% Returns the smallest failing sublist found.
-spec list([T], fails([T])) -> [T].
list(List, Fails) ->
    list(List, Fails, fun(_) -> [] end).

%% The same, with simpler elements where `Simpler' offers some.
-spec list([T], fails([T]), fun((T) -> [T])) -> [T].
list(List, Fails, Simpler) ->
    Deadline = erlang:monotonic_time(millisecond) + ?TIME_LIMIT_MS,
    Timed = fun(L) -> erlang:monotonic_time(millisecond) < Deadline andalso Fails(L) end,
    fixpoint(List, Timed, Simpler).

fixpoint(List, Fails, Simpler) ->
    Shorter = without_chunks(List, max(1, length(List) div 2), Fails),
    case simplify([], Shorter, Fails, Simpler) of
        List -> List;
        Smaller -> fixpoint(Smaller, Fails, Simpler)
    end.

without_chunks(List, Size, Fails) ->
    case {without_chunk([], List, Size, Fails), Size} of
        {Shorter, 1} -> Shorter;
        {Shorter, _} -> without_chunks(Shorter, Size div 2, Fails)
    end.

without_chunk(Before, [], _, _) ->
    lists:reverse(Before);
without_chunk(Before, List, Size, Fails) ->
    {Chunk, After} = lists:split(min(Size, length(List)), List),
    case Fails(lists:reverse(Before, After)) of
        true -> without_chunk(Before, After, Size, Fails);
        false -> without_chunk(lists:reverse(Chunk, Before), After, Size, Fails)
    end.

simplify(Before, [], _, _) ->
    lists:reverse(Before);
simplify(Before, [X | After], Fails, Simpler) ->
    Better = [S || S <- Simpler(X), S =/= X],
    case first(fun(S) -> Fails(lists:reverse(Before, [S | After])) end, Better) of
        {found, S} -> simplify(Before, [S | After], Fails, Simpler);
        none -> simplify([X | Before], After, Fails, Simpler)
    end.

first(_, []) -> none;
first(Test, [X | Rest]) ->
    case Test(X) of
        true -> {found, X};
        false -> first(Test, Rest)
    end.

%% Returns the smallest failing number that halving and counting down lead to.
-spec number(non_neg_integer(), fails(non_neg_integer())) -> non_neg_integer().
number(0, _) -> 0;
number(N, Fails) ->
    case first(Fails, lists:usort([0, N div 2, N - 1])) of
        {found, Smaller} -> number(Smaller, Fails);
        none -> N
    end.

%% Returns simpler versions of a term with recipes: each differs in one place.
-spec recipes(term()) -> [term()].
recipes({recipe, R}) -> [{recipe, S} || S <- simpler(R)];
recipes({recipes, L}) -> [{recipes, S} || S <- one_less(L) ++ one_simpler(L, fun simpler/1)];
recipes({options, L}) -> [{options, S} || S <- one_less(L)];
recipes({Actor, Function, Args}) when is_list(Args) ->
    [{a, Function, Args} || Actor =/= a] ++
        [{Actor, Function, S} || S <- one_simpler(Args, fun recipes/1)];
recipes(_) -> [].

simpler({lit, T}) -> [{lit, S} || S <- [1, a], S =/= T, T =/= 1];
simpler({exotic, K, N}) when N > 1 -> [{lit, 1}, {exotic, K, 1}];
simpler({exotic, _, _}) -> [{lit, 1}];
simpler({tuple, L}) -> inner(L, fun(S) -> {tuple, S} end);
simpler({list, L}) -> inner(L, fun(S) -> {list, S} end);
simpler({improper, L, T}) ->
    [T, {list, L}] ++ inner(L, fun(S) -> {improper, S, T} end) ++
        [{improper, L, S} || S <- simpler(T)];
simpler({map, L}) ->
    [{lit, 1}] ++ [R || {K, V} <- L, R <- [K, V]] ++
        [{map, S} || S <- one_less(L) ++ one_simpler(L, fun simpler_pair/1)];
simpler({big_map, N, R}) -> [R, {big_map, N, {lit, 1}} | [{big_map, N - 1, R} || N > 1]];
simpler({nest, K, D, R}) when D > 1 -> [R, {nest, K, D div 2, R}, {nest, K, D - 1, R}];
simpler({nest, _, _, R}) -> [R];
simpler(_) -> [{lit, 1}].

inner(L, Wrap) ->
    [{lit, 1}] ++ L ++ [Wrap(S) || S <- one_less(L) ++ one_simpler(L, fun simpler/1)].

simpler_pair({K, V}) ->
    [{S, V} || S <- simpler(K)] ++ [{K, S} || S <- simpler(V)].

one_less(L) ->
    [lists:sublist(L, N - 1) ++ lists:nthtail(N, L) || N <- lists:seq(1, length(L))].

one_simpler(L, Simpler) ->
    [
        lists:sublist(L, N - 1) ++ [S | lists:nthtail(N, L)]
     || {N, X} <- lists:enumerate(L), S <- Simpler(X)
    ].

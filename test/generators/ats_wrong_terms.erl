%% Terms of every kind, each of which is wrong as an argument somewhere.
%%
%% They are arguments of programs of `ats_oracle'.
-module(ats_wrong_terms).

-export([all/0, few/0]).

-type argument() :: {raw, term()} | {recipe, ats_term_gen:recipe()}.

-spec all() -> [argument()].
all() ->
    Literals = [
        0,
        -1,
        1,
        4,
        1 bsl 27,
        (1 bsl 59) - 1,
        1 bsl 59,
        1 bsl 64,
        -(1 bsl 64),
        1.0,
        a,
        '',
        true,
        '$end_of_table',
        [],
        [a],
        [a | b],
        [{k1, 1} | {k2, 2}],
        [{k1, 1, x}, a],
        [{k1, 1, x}, {}],
        [{2, 1}],
        [{2, 1}, {2, 1.0}],
        [{2, 1}, {3, 1}],
        [{2, 1} | {2, 1}],
        [[{2, 1}]],
        "text",
        {},
        {a},
        {1},
        {2, 1},
        {1, 1},
        {3, 1},
        {4, 1},
        {0, 1},
        {-1, 1},
        {1 bsl 64, 1},
        {2, a},
        {a, 1},
        {2, 1.0},
        {2, 1, 1},
        {2, 1, 5, 0},
        {2, 1, a, 0},
        {2, 1, 0, a},
        {2, a, 0, 0},
        {2, 1 bsl 70},
        {2, 1, 1 bsl 70, 0},
        {k1, 1, x},
        #{},
        #{a => 1},
        <<>>,
        <<"binary">>,
        <<1:3>>
    ],
    Exotic = [ref, alias_ref, magic_ref, external_ref, pid, external_pid, port, closure],
    [{raw, T} || T <- Literals] ++
        [{recipe, {exotic, K, 1}} || K <- Exotic] ++
        [{recipe, {bin, 5000, 1}}, {recipe, {big_map, 40, {lit, 1}}}].

%% Arguments to be tried in pairs.
-spec few() -> [argument()].
few() ->
    Literals = [0, 1.0, a, [], [a | b], {}, {a}, {2, 1}, {1, 1}, {9, 1}, {2, a}, <<>>, 1 bsl 64],
    [{raw, T} || T <- Literals] ++ [{recipe, {exotic, ref, 1}}].

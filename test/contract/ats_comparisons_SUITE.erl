%% Comparisons in match specifications have the results of those of `ets', for terms of every kind.
%%
%% ATS_COMPARED_TERMS sets how many terms are compared with each other (100 by default),
%% ATS_SELECT_SEED which.
-module(ats_comparisons_SUITE).

-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0]).
-export([terms_of_objects/1, constants/1, made_terms/1, huge_terms/1]).

%% A time that no call keeps a scheduler, also on a busy machine.
-define(LONG_MS, 15).
%% Random terms beside those that are made to meet each other.
-define(RANDOM, 60).
-define(COMPARISONS, ['==', '/=', '=:=', '=/=', '<', '>', '=<', '>=']).

suite() -> [{timetrap, {minutes, 5}}].

all() -> [terms_of_objects, constants, made_terms, huge_terms].

%% Every term with every other one.
terms_of_objects(_) ->
    Terms = terms(),
    Objects = [{{I, J}, A, B} || {I, A} <- Terms, {J, B} <- Terms],
    same_answers(Objects, [{{'$1', '$2', '$3'}, [], [{{'$1', compared('$2', '$3')}}]}]).

%% Constants are compared with terms of objects, as guards and in bodies, from both sides.
constants(_) ->
    Terms = terms(),
    [
        same_answers(Terms, [
            {{'$1', '$2'}, [{'<', '$2', Const}], [{{'$1', less, compared(Const, '$2')}}]},
            {{'$1', '$2'}, [{'/=', Const, '$2'}], [{{'$1', more, compared('$2', Const)}}]},
            {{'$1', '$2'}, [{'==', '$2', Const}], [{{'$1', equal, compared('$2', Const)}}]}
        ])
     || {_, Term} <- Terms,
        Const <- [{const, Term}]
    ].

%% Terms that an expression makes are compared with those of objects:
%% {A, [A | x], #{a => A, A => 1}} with such of another one.
made_terms(_) ->
    Terms = terms(),
    Of = fun(A) -> {A, [A | x], #{a => A, A => 1}} end,
    Made = fun(A) -> {{A, [A | x], #{a => A, A => 1}}} end,
    Objects = [{{I, J}, A, Of(B)} || {I, A} <- Terms, {J, B} <- Terms, abs(I - J) < 8],
    same_answers(Objects, [
        {{'$1', '$2', '$3'}, [], [
            {{'$1', compared(Made('$2'), '$3'), compared('$3', Made('$2'))}}
        ]}
    ]).

%% Operations on a huge object keep no scheduler, and the results are right.
huge_terms(_) ->
    List = lists:seq(1, 1_000_000),
    Part = {binary_part, '$2', 0, 60_000_000},
    Factor = (1 bsl 500_000) - 1,
    Cases = [
        {binary:copy(<<1>>, 60_000_000), [
            {[{'/=', '$2', []}], 1, 1},
            {[{'==', '$2', '$3'}], 1, 1},
            {[{'=:=', '$2', '$3'}], 1, 1},
            {[{'<', '$2', '$3'}], 1, 0},
            {[{'>', {byte_size, Part}, 5}], 1, 1}
        ]},
        {List, [
            {[{'/=', '$2', []}], 1, 1},
            {[{'==', '$2', '$3'}], 1, 1},
            {[{'>', '$2', '$3'}], 1, 0},
            {[{'==', {{'$2', 1}}, {{'$3', 1}}}], 1, 1},
            {[], {length, '$2'}, [1_000_000]},
            {[], '$2', [List]}
        ]},
        {Factor, [{[{'>', {'*', '$2', '$3'}, 1}], 1, 1}]}
    ],
    [
        begin
            T = ats:new(x, [set, public]),
            true = ats:insert(T, {key, Term, Term}),
            [keeps_no_scheduler(T, Guards, Body, Right) || {Guards, Body, Right} <- Asked],
            true = ats:delete(T)
        end
     || {Term, Asked} <- Cases
    ].

keeps_no_scheduler(T, Guards, 1, Right) ->
    Spec = [{{'$1', '$2', '$3'}, Guards, [true]}],
    keeps_no_scheduler(fun() -> ?assertEqual(Right, ats:select_count(T, Spec)) end, Guards, 5);
keeps_no_scheduler(T, Guards, Body, Right) ->
    Spec = [{{'$1', '$2', '$3'}, Guards, [Body]}],
    keeps_no_scheduler(fun() -> true = Right =:= ats:select(T, Spec) end, Body, 5).

%% Other work of the machine can make a call look long, so it is tried several times.
keeps_no_scheduler(Fun, What, Attempts) ->
    Old = erlang:system_monitor(self(), [{long_schedule, ?LONG_MS}]),
    %% A heap that is large from the start is not collected on the way.
    {Pid, Mon} = spawn_opt(Fun, [monitor, {min_heap_size, 5_000_000}]),
    receive {'DOWN', Mon, process, Pid, Why} -> ?assertEqual(normal, Why) end,
    erlang:system_monitor(Old),
    case long_schedules(Pid) of
        [] -> ok;
        Long when Attempts =:= 1 -> error({kept_a_scheduler, What, Long});
        _ -> keeps_no_scheduler(Fun, What, Attempts - 1)
    end.

long_schedules(Pid) ->
    receive
        {monitor, Pid, long_schedule, Info} -> [Info | long_schedules(Pid)];
        {monitor, _, long_schedule, _} -> long_schedules(Pid)
    after 0 -> []
    end.

compared(A, B) -> [{Name, A, B} || Name <- ?COMPARISONS].

same_answers(Objects, Spec) ->
    [E, A] = [M:new(x, [set, public]) || M <- [ets, ats]],
    [true = M:insert(T, Objects) || {M, T} <- [{ets, E}, {ats, A}]],
    [Right, Ours] = [lists:keysort(1, M:select(T, Spec)) || {M, T} <- [{ets, E}, {ats, A}]],
    Wrong = [Difference || {R, O} = Difference <- lists:zip(Right, Ours), R =/= O],
    ?assertEqual([], [
        {Difference, lists:keyfind(element(1, R), 1, Objects)}
     || {R, _} = Difference <- lists:sublist(Wrong, 5)
    ]),
    [true = M:delete(T) || {M, T} <- [{ets, E}, {ats, A}]].

%% Numbered terms.
terms() ->
    ok = ats_term_gen:prepare(),
    Recipes = ats_term_gen:one_of_each() ++ [pick(I) || I <- lists:seq(1, ?RANDOM)],
    Maps = [map(Keys, V) || V <- [1, 1.0, a], Keys <- key_sets()],
    Others = [ats_term_gen:realize(Recipe) || Recipe <- Recipes],
    _ = rand:seed(exsss, list_to_integer(os:getenv("ATS_SELECT_SEED", "2"))),
    Shuffled = [Term || {_, Term} <- lists:keysort(1, [{rand:uniform(), T} || T <- Others])],
    Count = list_to_integer(os:getenv("ATS_COMPARED_TERMS", "100")),
    lists:enumerate(lists:sublist(Maps ++ Shuffled, Count)).

map(Keys, Value) -> maps:from_list([{Key, Value} || Key <- Keys]).

pick(I) ->
    {ok, Recipe} = proper_gen:pick(ats_term_gen:any_term(), 20, {7, 7, I}),
    Recipe.

%% Keys of maps of the same sizes, small and large.
key_sets() ->
    Many = lists:seq(1, 50),
    [
        [a, b, 1],
        [a, b, 1.0],
        [a, b, -1],
        [c, b, -1],
        [-2, 3, -1],
        [-2, 3, b],
        [a, {b}, [c]],
        [a, {b}, [d]],
        [#{a => 1}, #{a => 1.0}, x],
        [#{a => 1}, #{a => 2.0}, x],
        Many,
        [1.0 | tl(Many)],
        [{I, <<I>>} || I <- Many],
        [{1.0, <<1>>} | [{I, <<I>>} || I <- tl(Many)]]
    ].

%% The judge of histories: it accepts histories of calls that were made one after the other, and no
%% others.
-module(ats_history_SUITE).

-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0]).
-export([right_histories/1, wrong_histories/1, unknown_outcomes_are_explained/1, real_ones_pass/1]).
-export([a_lie_in_a_real_one_is_found/1, recorded/1]).

suite() -> [{timetrap, {minutes, 15}}].

all() ->
    [
        right_histories,
        wrong_histories,
        unknown_outcomes_are_explained,
        real_ones_pass,
        a_lie_in_a_real_one_is_found,
        recorded
    ].

-define(BANK, {bank, #{a => 10, b => 10}}).

%% Operations as {Operation, Outcome, Call, Return}.
is_explained(Model, Operations) ->
    Events = [
        #{object => it, operation => Operation, outcome => Outcome, call => Call, return => Return}
     || {Operation, Outcome, Call, Return} <- Operations
    ],
    [] =:= ats_history:check(fun(it, History) -> ats_history:model(Model, History) end, Events).

right_histories(_) ->
    [
        ?assert(is_explained(Model, Operations), Operations)
     || {Model, Operations} <- [
            {register, []},
            {register, [{read, {ok, none}, 1, 2}]},
            {register, [{{write, 1}, {ok, true}, 1, 2}, {read, {ok, 1}, 3, 4}]},
            %% Either value is right during a write.
            {register, [{{write, 1}, {ok, true}, 1, 4}, {read, {ok, none}, 2, 3}]},
            {register, [{{write, 1}, {ok, true}, 1, 4}, {read, {ok, 1}, 2, 3}]},
            {register, [{{write, 1}, {ok, true}, 1, 2}, {{change, 1, 2}, {ok, true}, 3, 4},
                        {{change, 1, 3}, {ok, false}, 3, 5}, {read, {ok, 2}, 6, 7}]},
            {set, [{{add, 2}, {ok, true}, 1, 4}, {{add, 1}, {ok, true}, 2, 3},
                   {read, {ok, [1]}, 3, 5}, {read, {ok, [1, 2]}, 5, 6}]},
            {list, [{{append, 2}, {ok, true}, 1, 4}, {{append, 1}, {ok, true}, 2, 3},
                    {read, {ok, [1, 2]}, 5, 6}]},
            {?BANK, [{{move, a, b, 3}, {ok, [7, 13]}, 1, 2},
                     {read, {ok, #{a => 7, b => 13}}, 3, 4}]}
        ]
    ].

wrong_histories(_) ->
    [
        ?assertNot(is_explained(Model, Operations), Operations)
     || {Model, Operations} <- [
            %% A read from nowhere, one from the future, and one that comes too late.
            {register, [{read, {ok, 1}, 1, 2}]},
            {register, [{read, {ok, 1}, 1, 2}, {{write, 1}, {ok, true}, 3, 4}]},
            {register, [{{write, 1}, {ok, true}, 1, 2}, {{write, 2}, {ok, true}, 3, 4},
                        {read, {ok, 1}, 5, 6}]},
            %% The second read goes back.
            {register, [{{write, 1}, {ok, true}, 1, 8}, {read, {ok, 1}, 2, 3},
                        {read, {ok, none}, 4, 5}]},
            %% Two winners.
            {register, [{{write, 1}, {ok, true}, 1, 2}, {{change, 1, 2}, {ok, true}, 3, 6},
                        {{change, 1, 3}, {ok, true}, 3, 6}]},
            %% An addition that is lost, and an element that nobody added.
            {set, [{{add, 1}, {ok, true}, 1, 2}, {read, {ok, []}, 3, 4}]},
            {set, [{{add, 1}, {ok, true}, 1, 2}, {read, {ok, [1, 2]}, 3, 4}]},
            %% Done twice, and in another order.
            {list, [{{append, 1}, {ok, true}, 1, 2}, {read, {ok, [1, 1]}, 3, 4}]},
            {list, [{{append, 1}, {ok, true}, 1, 2}, {{append, 2}, {ok, true}, 3, 4},
                    {read, {ok, [2, 1]}, 5, 6}]},
            %% Half of it.
            {?BANK, [{{move, a, b, 3}, {ok, [7, 13]}, 1, 4},
                     {read, {ok, #{a => 7, b => 10}}, 2, 3}]},
            {?BANK, [{{move, a, b, 3}, {ok, [7, 13]}, 1, 2},
                     {{move, b, a, 1}, {ok, [9, 11]}, 3, 4}]}
        ]
    ].

unknown_outcomes_are_explained(_) ->
    Write = {{write, 1}, unknown, 1, infinity},
    Reads = fun(Values) ->
        [
            {read, {ok, Value}, 10 * N, 10 * N + 1}
         || {N, Value} <- lists:zip(lists:seq(1, length(Values)), Values)
        ]
    end,
    [
        ?assert(is_explained(register, [Write | Reads(Values)]), Values)
     || Values <- [[none, none], [none, 1], [1, 1]]
    ],
    ?assertNot(is_explained(register, [Write | Reads([1, none])])),
    Append = {{append, 1}, unknown, 1, infinity},
    ?assertNot(is_explained(list, [Append | Reads([[], [1, 1]])])).

%% ----- histories of a process that does one thing after the other -----

real_ones_pass(_) ->
    [
        ?assertEqual([], check(Model, history(Model, Seed)))
     || Model <- [register, set, list, ?BANK], Seed <- lists:seq(1, 50)
    ].

%% A read says something else than it said.
a_lie_in_a_real_one_is_found(_) ->
    [
        begin
            History = history(Model, Seed),
            Reads = [E || #{operation := read} = E <- History],
            #{outcome := {ok, Result}} = Read = lists:nth(rand:uniform(length(Reads)), Reads),
            Wrong = (History -- [Read]) ++ [Read#{outcome := {ok, wrong(Result)}}],
            ?assertMatch([{it, _}], check(Model, Wrong))
        end
     || Model <- [register, set, list, ?BANK], Seed <- lists:seq(1, 50)
    ].

wrong(Value) when Value =:= none; is_integer(Value) -> 1000;
wrong(Elements) when is_list(Elements) -> Elements ++ [1000];
wrong(Balances) -> Balances#{a := 1000}.

check(Model, Events) ->
    ats_history:check(fun(it, History) -> ats_history:model(Model, History) end, Events).

%% Lists are known only when they were read.
model(list) -> {[], fun(List, {append, E}, _) -> {ok, List ++ [E]};
                       (List, read, {ok, List}) -> {ok, List};
                       (_, read, _) -> impossible
                    end};
model(Model) -> ats_history:model(Model, []).

%% Five processes send, and get their answers when they like; the effects happen in one process.
%% Some answers get lost.
history(Model, Seed) ->
    _ = rand:seed(exsss, Seed),
    {First, Apply} = model(Model),
    {Events, _} = lists:mapfoldl(
        fun(N, State) ->
            Operation = operation(Model, State, N),
            Early = 10 * N - rand:uniform(40),
            Late = 10 * N + rand:uniform(40),
            {Result, After} = do(Apply, State, Operation),
            Known = rand:uniform(10) > 1 orelse Operation =:= read,
            Event = #{object => it, operation => Operation, call => Early},
            case Known of
                true -> {Event#{outcome => {ok, Result}, return => Late}, After};
                false -> {Event#{outcome => unknown, return => infinity}, After}
            end
        end,
        First,
        lists:seq(1, 40)
    ),
    Events.

operation(register, _, N) ->
    lists:nth(rand:uniform(3), [read, {write, N}, {change, rand:uniform(N), N}]);
operation(set, _, N) -> lists:nth(rand:uniform(2), [read, {add, N}]);
operation(list, _, N) -> lists:nth(rand:uniform(2), [read, {append, N}]);
operation({bank, _}, _, _) ->
    lists:nth(rand:uniform(2), [read, {move, a, b, rand:uniform(9) - 5}]).

%% The result is the one that is possible.
do(Apply, State, Operation) ->
    Tries = [State, true, false] ++
        case Operation of
            {move, A, B, Amount} ->
                #{A := OfA, B := OfB} = State,
                [[OfA - Amount, OfB + Amount]];
            _ ->
                []
        end,
    hd([
        {Result, After}
     || Result <- Tries, {ok, After} <- [Apply(State, Operation, {ok, Result})]
    ]).

%% ----- recording -----

recorded(_) ->
    Recorder = ats_history:new(),
    Record = fun(Operation, Outcome) ->
        ats_history:record(Recorder, x, Operation, fun() -> Outcome end)
    end,
    {ok, true} = Record({write, 1}, {ok, true}),
    failed = Record({write, 2}, failed),
    unknown = Record({write, 3}, unknown),
    {ok, 3} = Record(read, {ok, 3}),
    {Pid, Monitor} = spawn_monitor(fun() ->
        ats_history:record(Recorder, x, {write, 4}, fun() -> exit(killed) end)
    end),
    receive {'DOWN', Monitor, process, Pid, killed} -> ok end,
    ?assertMatch(
        [
            #{operation := {write, 1}, outcome := {ok, true}},
            #{operation := {write, 3}, outcome := unknown, return := infinity},
            #{operation := read},
            #{operation := {write, 4}, outcome := unknown, return := infinity}
        ],
        ats_history:events(Recorder)
    ),
    Model = fun(x, History) -> ats_history:model(register, History) end,
    ?assertEqual([], ats_history:check(Model, ats_history:events(Recorder))).

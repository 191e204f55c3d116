%% Histories: calls of processes with their results and times, and a check that the calls can have
%% been made one after the other, each at one moment between its call and its return.
%%
%% The search is that of Wing and Gong (1993) with the memory of Lowe (2017): choose an operation
%% that may be the next, apply it, go on; never twice with the same operations done and the same
%% state. An operation with an unknown result may have been done at any moment since it was called,
%% or never.
%%
%% Each object is looked at alone. A model knows its first state, and the next one.
-module(ats_history).

-export([new/0, record/4, events/1, check/2, model/2]).

-export_type([recorder/0, event/0, model/0, outcome/0]).

-type recorder() :: ets:tid().
-type outcome() :: {ok, Result :: term()} | unknown | failed.
%% An operation that failed was not done, and will not be; or it only reads.
-type event() :: #{object := term(), operation := term(), outcome := {ok, term()} | unknown,
                   call := integer(), return := integer() | infinity}.
-type model() :: {State :: term(), fun((State :: term(), Operation :: term(),
                                        {ok, Result :: term()} | unknown) ->
                                           {ok, State :: term()} | impossible)}.

%% ----- recording -----

-spec new() -> recorder().
new() ->
    ets:new(?MODULE, [public, ordered_set, {write_concurrency, true}]).

%% Does something with an object, and records it.
-spec record(recorder(), Object :: term(), Operation :: term(), fun(() -> outcome())) -> outcome().
record(Recorder, Object, Operation, Do) ->
    Key = {erlang:monotonic_time(), erlang:unique_integer()},
    Event = #{object => Object, operation => Operation, outcome => unknown,
              call => element(1, Key), return => infinity},
    %% Until it returns, the result is unknown, also if the process is killed.
    true = ets:insert(Recorder, {Key, Event}),
    case Do() of
        {ok, _} = Done ->
            Known = Event#{outcome := Done, return := erlang:monotonic_time()},
            true = ets:insert(Recorder, {Key, Known}),
            Done;
        failed ->
            true = ets:delete(Recorder, Key),
            failed;
        unknown ->
            unknown
    end.

-spec events(recorder()) -> [event()].
events(Recorder) ->
    [Event || {_, Event} <- ets:tab2list(Recorder)].

%% ----- checking -----

%% The objects that no order explains, each with its history. The function gives the model of one.
-spec check(fun((Object :: term(), [event()]) -> model()), [event()]) ->
          [{Object :: term(), [event()]}].
check(ModelOf, Events) ->
    Objects = lists:foldl(
        fun(#{object := Object} = Event, Map) ->
            maps:update_with(Object, fun(Others) -> [Event | Others] end, [Event], Map)
        end,
        #{},
        Events
    ),
    [
        {Object, lists:reverse(History)}
     || {Object, History} <- lists:sort(maps:to_list(Objects)),
        not is_linearizable(ModelOf(Object, History), History)
    ].

%% Tries operations in the order of their returns, which is often that of their effects. An atom is
%% greater than numbers.
is_linearizable({First, Apply}, History) ->
    ByReturn = lists:sort(fun(#{return := A}, #{return := B}) -> A =< B end, History),
    Numbered = lists:zip(lists:seq(0, length(History) - 1), ByReturn),
    Seen = ets:new(seen, [set, private]),
    try
        search([{0, First, Numbered}], Apply, Seen)
    after
        ets:delete(Seen)
    end.

search([], _Apply, _Seen) ->
    false;
search([{Done, State, Left} | Todo], Apply, Seen) ->
    %% An operation that was called after another one had returned comes after it.
    Return = case Left of
        [{_, #{return := Earliest}} | _] -> Earliest;
        [] -> infinity
    end,
    Next = [
        {Done bor (1 bsl N), After, lists:keydelete(N, 1, Left)}
     || Return =/= infinity,
        {N, #{operation := Operation, outcome := Outcome, call := Call}} <- Left,
        Call < Return,
        {ok, After} <- [Apply(State, Operation, Outcome)],
        ets:insert_new(Seen, {{Done bor (1 bsl N), After}})
    ],
    Return =:= infinity orelse search(Next ++ Todo, Apply, Seen).

%% ----- models -----

%% Objects that tests have: a register, a set, a list that is appended to, and accounts.
-spec model(Kind, [event()]) -> model() when
    Kind :: register | set | list | {bank, Balances :: #{term() => integer()}}.
model(register, _) -> {none, fun register/3};
model(set, _) -> {[], fun set/3};
model(list, History) ->
    {[], longest([Read || #{outcome := {ok, Read}} <- History, is_list(Read)])};
model({bank, Balances}, _) -> {Balances, fun bank/3}.

register(_, {write, Value}, _) -> {ok, Value};
register(Value, read, Outcome) -> result(Value, Outcome, Value);
register(Value, {change, Value, New}, Outcome) -> result(true, Outcome, New);
register(Value, {change, _, _}, Outcome) -> result(false, Outcome, Value).

set(Elements, {add, Element}, _) -> {ok, ordsets:add_element(Element, Elements)};
set(Elements, read, Outcome) -> result(Elements, Outcome, Elements).

%% Returns the lists to be tried: the longest read, with the unseen appends behind it in any order.
longest(Reads) ->
    Longest = lists:last([[] | lists:sort(fun(A, B) -> length(A) =< length(B) end, Reads)]),
    Length = length(Longest),
    fun
        (Elements, {append, Element}, _) when length(Elements) >= Length ->
            {ok, Longest ++ lists:sort([Element | Elements -- Longest])};
        (Elements, {append, Element}, _) ->
            result(lists:nth(length(Elements) + 1, Longest), {ok, Element}, Elements ++ [Element]);
        (Elements, read, Outcome) ->
            result(Elements, Outcome, Elements)
    end.

bank(Balances, {move, From, To, Amount}, Outcome) ->
    #{From := A, To := B} = Balances,
    result([A - Amount, B + Amount], Outcome, Balances#{From := A - Amount, To := B + Amount});
bank(Balances, read, Outcome) ->
    result(Balances, Outcome, Balances).

%% Checks the result against the one that the model requires.
result(Result, {ok, Result}, State) -> {ok, State};
result(_Result, unknown, State) -> {ok, State};
result(_Result, {ok, _}, _State) -> impossible.

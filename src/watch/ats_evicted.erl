%% @private
%% @doc Tells processes of objects that are gone from tables with the option `evicted'.
%%
%% The native library sends the objects to this process, in batches. It passes them on to a receiver
%% that keeps up. A receiver with a long queue of messages is told the number of objects instead,
%% in one message, when its queue is short again.
-module(ats_evicted).

-behaviour(gen_server).

-export([start_link/0]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).

-type reason() :: expired | max_objects | max_memory.
-type batch() :: {reason(), Objects :: [tuple()], MoreObjects :: non_neg_integer()}.

-record(state, {
    %% The numbers of objects of which a receiver will be told.
    counts = #{} :: #{{Receiver :: pid(), ats:tid()} => #{reason() => pos_integer()}}
}).

%% The most messages in the queue of a receiver that keeps up.
-define(LONG, 100).
%% Milliseconds between two looks at receivers that do not.
-define(LOOK_EVERY, 100).

-spec start_link() -> {ok, pid()} | {error, term()}.
start_link() ->
    gen_server:start_link({local, ?MODULE}, ?MODULE, [], []).

-spec init([]) -> {ok, #state{}}.
init([]) ->
    {ok, #state{}}.

-spec handle_call(term(), gen_server:from(), #state{}) -> {noreply, #state{}}.
handle_call(_, _, State) -> {noreply, State}.

-spec handle_cast(term(), #state{}) -> {noreply, #state{}}.
handle_cast(_, State) -> {noreply, State}.

-spec handle_info({gone, ats:tid(), pid(), [batch()]} | look | term(), #state{}) ->
          {noreply, #state{}}.
handle_info({gone, Table, Receiver, Batches}, State) ->
    {noreply, lists:foldl(fun(Batch, Before) -> told(Receiver, Table, Batch, Before) end, State,
                          Batches)};
handle_info(look, #state{counts = Counts} = State) ->
    {noreply, look_later(State#state{counts = maps:filter(fun is_late/2, Counts)})};
handle_info(_, State) ->
    {noreply, State}.

-spec told(pid(), ats:tid(), batch(), #state{}) -> #state{}.
told(Receiver, Table, {Reason, Objects, More}, #state{counts = Counts} = State) ->
    case is_map_key({Receiver, Table}, Counts) orelse state(Receiver) of
        keeps_up ->
            _ = [tell(Receiver, Table, Reason, Objects) || Objects =/= []],
            _ = [tell(Receiver, Table, Reason, More) || More > 0],
            State;
        ended ->
            State;
        _ ->
            count(Receiver, Table, Reason, length(Objects) + More, State)
    end.

-spec count(pid(), ats:tid(), reason(), pos_integer(), #state{}) -> #state{}.
count(Receiver, Table, Reason, Number, #state{counts = Counts} = State) ->
    Add = fun(Before) -> maps:update_with(Reason, fun(N) -> N + Number end, Number, Before) end,
    Later = maps:update_with({Receiver, Table}, Add, #{Reason => Number}, Counts),
    %% The first one begins the looks.
    _ = [look_later(State#state{counts = Later}) || Counts =:= #{}],
    State#state{counts = Later}.

-spec look_later(#state{}) -> #state{}.
look_later(#state{counts = Counts} = State) ->
    _ = [erlang:send_after(?LOOK_EVERY, self(), look) || Counts =/= #{}],
    State.

%% Tells a receiver the numbers. Returns `true' if it does not keep up still.
-spec is_late({pid(), ats:tid()}, #{reason() => pos_integer()}) -> boolean().
is_late({Receiver, Table}, Numbers) ->
    case state(Receiver) of
        keeps_up ->
            maps:foreach(fun(Reason, Number) -> tell(Receiver, Table, Reason, Number) end,
                         Numbers),
            false;
        State ->
            State =:= late
    end.

-spec state(pid()) -> keeps_up | late | ended.
state(Receiver) ->
    case process_info(Receiver, message_queue_len) of
        {message_queue_len, Length} when Length > ?LONG -> late;
        {message_queue_len, _} -> keeps_up;
        undefined -> ended
    end.

-spec tell(pid(), ats:tid(), reason(), [tuple()] | pos_integer()) -> ok.
tell(Receiver, Table, Reason, ObjectsOrNumber) ->
    Receiver ! {'ATS-EVICTED', Table, Reason, ObjectsOrNumber},
    ok.

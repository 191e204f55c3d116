%% @private
%% @doc Makes the value of a missing key once, however many processes ask for it at the same time:
%% {@link ats:fetch/3} and {@link dats:fetch/3}.
%%
%% A process that finds no object *claims* the key: it writes itself into a table of claims, where
%% one process can be for each key. It calls the function of the program, inserts the object, and
%% takes the claim out again. A process that finds another one there waits, by a call of the server.
%% The server marks the claim, so that its holder tells the server its value, which the server sends
%% to all that wait. If the function fails, or the holder ends, the server passes the claim on to
%% the process that has waited longest. So a key that cannot be made costs each caller its own
%% attempt, one after the other, and a caller never gets the exception of another. Who does not wait
%% for others does not call the server.
%%
%% Functions may fetch other keys. A process that would wait for itself, through any number of
%% others, is refused.
%%
%% The states of a claim in the table: only the holder adds ?ENDED, when its function has failed,
%% and only the server adds ?MARKED. Whoever adds the second of both removes the claim: so either
%% the holder sees the mark, or the server the end. A holder that was killed leaves its claim, which
%% the server finds when another process asks for the key, or when it looks for such claims.
%%
%% Keys that are there need no table, and no application: it is started by the first key that is
%% missing.
-module(ats_fetch).

-behaviour(gen_server).

-export([fetch/4, fetch/5]).
-export([start_link/0]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).

-type where() :: memory | disk.
%% The store of a new object, and the time for which it is there.
-type how() :: {where(), ats_nif:lifetime()}.
%% A key of a table.
-type place() :: {ats:tid(), Key :: term()}.

%% The table of claims: objects `{place(), Holder :: pid(), State}'. It is not a table of `ats',
%% so that no list of those has it.
-define(CLAIMS, {?MODULE, claims}).
%% The position of the state.
-define(STATE, 3).
%% Parts of the state.
-define(HELD, 0).
-define(MARKED, 1).
-define(ENDED, 2).
%% Milliseconds between two looks for claims of processes that have ended.
-define(LOOK_EVERY, 60000).

%% A claim that is marked.
-record(claim, {
    holder :: pid(),
    monitor :: reference(),
    %% The waiting processes, from the one that has waited longest on.
    waiting :: queue:queue(gen_server:from())
}).

-record(state, {
    table :: ets:tid(),
    claims = #{} :: #{place() => #claim{}},
    places = #{} :: #{Monitor :: reference() => place()},
    %% The place for which a process waits.
    waits = #{} :: #{pid() => place()}
}).

%%--------------------------------------------------------------------------------------------
%% Calls
%%--------------------------------------------------------------------------------------------

%% @doc Returns the value of a key, which the function makes if there is none, for the time of the
%% table.
-spec fetch(where(), ats:tid(), Key :: term(), fun((Key :: term()) -> Value)) -> Value.
fetch(Where, Table, Key, Function) ->
    fetch(Where, Table, Key, Function, default).

%% @doc Returns the value of a key, which the function makes if there is none, for a time.
-spec fetch(where(), ats:tid(), Key :: term(), fun((Key :: term()) -> Value),
            ats_nif:lifetime()) -> Value.
fetch(Where, Table, Key, Function, Lifetime) when is_function(Function, 1) ->
    case find(Where, Table, Key) of
        {value, Value} ->
            Value;
        none ->
            ok = check(Where, Table),
            ok = check_lifetime(Where, Table, Lifetime),
            claim({Where, Lifetime}, {Table, Key}, Function)
    end;
fetch(Where, Table, Key, _Function, _Lifetime) ->
    _ = lookup(Where, Table, Key),
    erlang:error({ats_error, function}).

lookup(memory, Table, Key) -> ats_nif:lookup(Table, Key);
lookup(disk, Table, Key) -> ats_merge_access:lookup(Table, Key).

insert_new({memory, default}, Table, Object) ->
    ats_nif:insert_new(Table, Object);
insert_new({memory, Lifetime}, Table, Object) ->
    ats_nif:insert_new(Table, Object, Lifetime);
insert_new({disk, default}, Table, Object) ->
    ats_merge_access:change(Table, insert_new, [Object]);
%% A module that merges, which might have to be asked first, is not in tables whose objects expire.
insert_new({disk, Lifetime}, Table, Object) ->
    ats_nif:insert_new(Table, Object, Lifetime).

type(memory, Table) ->
    {ats_info:item(type, Table), ats_info:item(keypos, Table)};
type(disk, Table) ->
    {Type, Keypos, _Fixed} = ats_nif:disk_kind(Table),
    {Type, Keypos}.

ttl(memory, Table) -> ats_info:item(ttl, Table);
ttl(disk, Table) -> ats_nif:disk_ttl(Table).

-spec find(where(), ats:tid(), term()) -> {value, term()} | none.
find(Where, Table, Key) ->
    case lookup(Where, Table, Key) of
        [] -> none;
        [Object] when tuple_size(Object) >= 2 -> {value, element(2, Object)};
        [_] -> erlang:error({ats_error, position});
        _ -> erlang:error({ats_error, table_type})
    end.

%% A look that finds nothing is no second miss of the table.
-spec find_again(where(), ats:tid(), term()) -> {value, term()} | none.
find_again(memory, Table, Key) ->
    case ats_nif:ttl(Table, Key) of
        undefined -> none;
        _ -> find(memory, Table, Key)
    end;
find_again(disk, Table, Key) ->
    find(disk, Table, Key).

%% Checks that the table can get an object of a key and a value.
-spec check(where(), ats:tid()) -> ok.
check(Where, Table) ->
    case type(Where, Table) of
        {bag, _} -> erlang:error({ats_error, table_type});
        {duplicate_bag, _} -> erlang:error({ats_error, table_type});
        {_, 1} -> ok;
        {_, _} -> erlang:error({ats_error, key_not_first})
    end.

%% Checks that objects of the table can have a time, before the function is called.
-spec check_lifetime(where(), ats:tid(), ats_nif:lifetime()) -> ok.
check_lifetime(_Where, _Table, default) ->
    ok;
check_lifetime(Where, Table, _Lifetime) ->
    case ttl(Where, Table) of
        false -> erlang:error({ats_error, ttl});
        _ -> ok
    end.

-spec claim(how(), place(), fun((term()) -> Value)) -> Value.
claim(How, Place, Function) ->
    try
        Claims = persistent_term:get(?CLAIMS),
        {ets:insert_new(Claims, {Place, self(), ?HELD}), Claims}
    of
        {true, Claims} -> make(How, Claims, Place, Function);
        {false, _} -> wait(How, Place, Function)
    catch
        %% The application does not run, or its server was killed, and with it all claims.
        error:badarg ->
            ok = ats_disk_tables:ensure_started(),
            claim(How, Place, Function)
    end.

-spec wait(how(), place(), fun((term()) -> Value)) -> Value.
wait(How, Place, Function) ->
    try gen_server:call(?MODULE, {wait, Place}, infinity) of
        {yours, Claims} -> make(How, Claims, Place, Function);
        {value, Value} -> Value;
        free -> claim(How, Place, Function);
        waits_for_itself -> erlang:error({ats_error, waits_for_itself})
    catch
        exit:{_, {gen_server, call, [?MODULE | _]}} -> claim(How, Place, Function)
    end.

-spec make(how(), ets:tid(), place(), fun((term()) -> Value)) -> Value.
make({Where, _Lifetime} = How, Claims, {Table, Key} = Place, Function) ->
    try
        %% The last holder may have given the claim up after this process has looked.
        case find_again(Where, Table, Key) of
            {value, Found} -> Found;
            none -> put_new(How, Table, Key, Function(Key))
        end
    of
        Value ->
            ok = give_up(Claims, Place, {value, Value}),
            Value
    catch
        Class:Reason:Stack ->
            ok = give_up(Claims, Place, failed),
            erlang:raise(Class, Reason, Stack)
    end.

%% An object that was inserted while the function ran may be newer than the value of the function.
-spec put_new(how(), ats:tid(), term(), Value) -> Value.
put_new({Where, _Lifetime} = How, Table, Key, Value) ->
    case insert_new(How, Table, {Key, Value}) of
        true ->
            Value;
        false ->
            case find(Where, Table, Key) of
                {value, Newer} -> Newer;
                none -> Value
            end
    end.

%% Gives a claim up, and tells the server the result if it is marked.
-spec give_up(ets:tid(), place(), {value, term()} | failed) -> ok.
give_up(Claims, Place, Result) ->
    try is_marked(Claims, Place, Result) of
        true -> gen_server:cast(?MODULE, {given_up, Place, self(), Result});
        false -> ok
    catch
        %% The server was killed, and all claims with it.
        error:badarg -> ok
    end.

%% A holder with a value removes the claim, because others find the value. One without lets the
%% server remove a marked claim, so that no process comes before those that wait.
-spec is_marked(ets:tid(), place(), {value, term()} | failed) -> boolean().
is_marked(Claims, Place, {value, _}) ->
    [{_, _, State}] = ets:take(Claims, Place),
    State =:= ?MARKED;
is_marked(Claims, Place, failed) ->
    case ets:update_counter(Claims, Place, {?STATE, ?ENDED}) of
        ?ENDED ->
            true = ets:delete_object(Claims, {Place, self(), ?ENDED}),
            false;
        _ ->
            true
    end.

%%--------------------------------------------------------------------------------------------
%% The server
%%--------------------------------------------------------------------------------------------

-spec start_link() -> {ok, pid()} | {error, term()}.
start_link() ->
    gen_server:start_link({local, ?MODULE}, ?MODULE, [], []).

-spec init([]) -> {ok, #state{}}.
init([]) ->
    Table = ets:new(?MODULE, [public, {write_concurrency, true}]),
    ok = persistent_term:put(?CLAIMS, Table),
    _ = erlang:send_after(?LOOK_EVERY, self(), look),
    {ok, #state{table = Table}}.

-spec handle_call({wait, place()}, gen_server:from(), #state{}) ->
          {reply, free | waits_for_itself, #state{}} | {noreply, #state{}}.
handle_call({wait, Place}, {Pid, _} = From, Before) ->
    case mark(Place, Before) of
        {#claim{waiting = Waiting} = Claim, State} ->
            case reaches(Claim, Pid, State) of
                true ->
                    {reply, waits_for_itself, State};
                false ->
                    Longer = Claim#claim{waiting = queue:in(From, Waiting)},
                    Claims = (State#state.claims)#{Place := Longer},
                    Waits = (State#state.waits)#{Pid => Place},
                    {noreply, State#state{claims = Claims, waits = Waits}}
            end;
        free ->
            {reply, free, Before}
    end.

-spec handle_cast({given_up, place(), pid(), {value, term()} | failed}, #state{}) ->
          {noreply, #state{}}.
handle_cast({given_up, Place, Pid, Result}, #state{claims = Claims} = State) ->
    case Claims of
        #{Place := #claim{holder = Pid} = Claim} -> {noreply, release(Place, Claim, Result, State)};
        %% The claim was that of a server before this one.
        #{} -> {noreply, State}
    end.

-spec handle_info({'DOWN', reference(), process, pid(), term()} | look | term(), #state{}) ->
          {noreply, #state{}}.
handle_info({'DOWN', Monitor, process, _, _}, #state{places = Places} = State)
  when is_map_key(Monitor, Places) ->
    #{Monitor := Place} = Places,
    #{Place := Claim} = State#state.claims,
    {noreply, release(Place, Claim, failed, State)};
handle_info(look, #state{table = Table} = State) ->
    %% Marked claims have a monitor.
    Unmarked = ets:select(Table, [{{'_', '_', Mark}, [], ['$_']} || Mark <- [?HELD, ?ENDED]]),
    _ = [ets:delete_object(Table, Claim)
         || {_, Holder, _} = Claim <- Unmarked, not is_process_alive(Holder)],
    _ = erlang:send_after(?LOOK_EVERY, self(), look),
    {noreply, State};
handle_info(_, State) ->
    {noreply, State}.

%% Returns the claim of a place, which is marked from now on; `free' if there is none.
-spec mark(place(), #state{}) -> {#claim{}, #state{}} | free.
mark(Place, #state{table = Table, claims = Claims} = State) ->
    case Claims of
        #{Place := Claim} ->
            {Claim, State};
        #{} ->
            try ets:update_counter(Table, Place, {?STATE, ?MARKED}) of
                ?MARKED ->
                    hold_marked(Place, State);
                ?MARKED + ?ENDED ->
                    %% The holder leaves the claim to this process.
                    true = ets:delete(Table, Place),
                    free
            catch
                error:badarg -> free
            end
    end.

%% Tells whether the holder of a claim is this process, or waits for it.
-spec reaches(#claim{}, pid(), #state{}) -> boolean().
reaches(#claim{holder = Pid}, Pid, _State) ->
    true;
reaches(#claim{holder = Holder}, Pid, #state{waits = Waits, claims = Claims} = State) ->
    case Waits of
        #{Holder := Place} -> reaches(maps:get(Place, Claims), Pid, State);
        #{} -> false
    end.

%% The holder may have taken the claim that was marked, and another process may have a new one.
-spec hold_marked(place(), #state{}) -> {#claim{}, #state{}} | free.
hold_marked(Place, #state{table = Table} = State) ->
    case ets:lookup(Table, Place) of
        [{_, Holder, Mark}] when Mark band ?MARKED =/= 0 ->
            hold(Place, Holder, queue:new(), State);
        [_] ->
            mark(Place, State);
        [] ->
            free
    end.

%% Notes a claim that is marked.
-spec hold(place(), pid(), queue:queue(gen_server:from()), #state{}) -> {#claim{}, #state{}}.
hold(Place, Pid, Waiting, #state{claims = Claims, places = Places} = State) ->
    Monitor = erlang:monitor(process, Pid),
    Claim = #claim{holder = Pid, monitor = Monitor, waiting = Waiting},
    {Claim, State#state{claims = Claims#{Place => Claim}, places = Places#{Monitor => Place}}}.

%% Ends a claim. A value goes to all that wait; else the next one has the claim.
-spec release(place(), #claim{}, {value, term()} | failed, #state{}) -> #state{}.
release(Place, #claim{holder = Pid, monitor = Monitor, waiting = Waiting}, Result, State) ->
    true = erlang:demonitor(Monitor, [flush]),
    Free = State#state{claims = maps:remove(Place, State#state.claims),
                       places = maps:remove(Monitor, State#state.places)},
    case Result of
        {value, _} ->
            lists:foldl(fun(From, Before) -> answer(From, Result, Before) end, Free,
                        queue:to_list(Waiting));
        failed ->
            %% A holder that was killed may have taken its claim before.
            _ = [ets:delete_object(State#state.table, {Place, Pid, Last})
                 || Last <- [?MARKED, ?MARKED + ?ENDED]],
            pass_on(Place, Waiting, Free)
    end.

-spec pass_on(place(), queue:queue(gen_server:from()), #state{}) -> #state{}.
pass_on(Place, Waiting, #state{table = Table} = State) ->
    case queue:out(Waiting) of
        {empty, _} ->
            State;
        {{value, {Next, _} = From}, Rest} ->
            case ets:insert_new(Table, {Place, Next, ?MARKED}) of
                true ->
                    %% The monitor says at once if that process has ended.
                    {_, Held} = hold(Place, Next, Rest, State),
                    answer(From, {yours, Table}, Held);
                false ->
                    %% Another process was faster. All wait for it.
                    case mark(Place, State) of
                        free ->
                            pass_on(Place, Waiting, State);
                        {Claim, #state{claims = Claims} = Marked} ->
                            Longer = Claim#claim{waiting = Waiting},
                            Marked#state{claims = Claims#{Place := Longer}}
                    end
            end
    end.

-spec answer(gen_server:from(), term(), #state{}) -> #state{}.
answer({Pid, _} = From, Answer, #state{waits = Waits} = State) ->
    gen_server:reply(From, Answer),
    State#state{waits = maps:remove(Pid, Waits)}.

%% @private
%% @doc Makes the value of a missing key once, however many processes ask for it at the same time:
%% {@link ats:fetch/3} and {@link dats:fetch/3}.
%%
%% A process that finds no object *claims* the key. One process has the claim: it calls the function
%% of the program, inserts the object, and gives the claim up with the value, which the server sends
%% to all others that have asked meanwhile. If the function fails, or the process ends, the server
%% passes the claim on to the one that has waited longest. So a key that cannot be made costs each
%% caller its own attempt, one after the other, and a caller never gets the exception of another.
%%
%% Functions may fetch other keys. A process that would wait for itself, through any number of
%% others, is refused.
%%
%% Keys that are there need no server, and no application: it is started by the first key that is
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

-record(claim, {
    holder :: pid(),
    monitor :: reference(),
    %% The waiting processes, from the one that has waited longest on.
    waiting = queue:new() :: queue:queue(gen_server:from())
}).

-record(state, {
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
            ok = check_lifetime(Table, Lifetime),
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
    ats_merge_access:change(Table, insert_new, [Object]).

type(memory, Table) ->
    {ats_info:item(type, Table), ats_info:item(keypos, Table)};
type(disk, Table) ->
    {Type, Keypos, _Fixed} = ats_nif:disk_kind(Table),
    {Type, Keypos}.

-spec find(where(), ats:tid(), term()) -> {value, term()} | none.
find(Where, Table, Key) ->
    case lookup(Where, Table, Key) of
        [] -> none;
        [Object] when tuple_size(Object) >= 2 -> {value, element(2, Object)};
        [_] -> erlang:error({ats_error, position});
        _ -> erlang:error({ats_error, table_type})
    end.

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
-spec check_lifetime(ats:tid(), ats_nif:lifetime()) -> ok.
check_lifetime(_Table, default) ->
    ok;
check_lifetime(Table, _Lifetime) ->
    case ats_info:item(ttl, Table) of
        false -> erlang:error({ats_error, ttl});
        _ -> ok
    end.

-spec claim(how(), place(), fun((term()) -> Value)) -> Value.
claim(How, Place, Function) ->
    ok = ats_disk_tables:ensure_started(),
    try gen_server:call(?MODULE, {claim, Place}, infinity) of
        yours -> make(How, Place, Function);
        {value, Value} -> Value;
        waits_for_itself -> erlang:error({ats_error, waits_for_itself})
    catch
        %% The application was stopped, or the server was killed, and with it all claims.
        exit:{_, {gen_server, call, [?MODULE | _]}} -> claim(How, Place, Function)
    end.

-spec make(how(), place(), fun((term()) -> Value)) -> Value.
make({Where, _Lifetime} = How, {Table, Key} = Place, Function) ->
    try
        %% The last holder may have given the claim up after this process has looked.
        case find(Where, Table, Key) of
            {value, Found} -> Found;
            none -> put_new(How, Table, Key, Function(Key))
        end
    of
        Value ->
            give_up(Place, {value, Value}),
            Value
    catch
        Class:Reason:Stack ->
            give_up(Place, failed),
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

give_up(Place, Result) ->
    gen_server:cast(?MODULE, {given_up, Place, self(), Result}).

%%--------------------------------------------------------------------------------------------
%% The server
%%--------------------------------------------------------------------------------------------

-spec start_link() -> {ok, pid()} | {error, term()}.
start_link() ->
    gen_server:start_link({local, ?MODULE}, ?MODULE, [], []).

-spec init([]) -> {ok, #state{}}.
init([]) ->
    {ok, #state{}}.

-spec handle_call({claim, place()}, gen_server:from(), #state{}) ->
          {reply, yours | waits_for_itself, #state{}} | {noreply, #state{}}.
handle_call({claim, Place}, {Pid, _} = From, State) ->
    case State#state.claims of
        #{Place := Claim} ->
            case reaches(Claim, Pid, State) of
                true ->
                    {reply, waits_for_itself, State};
                false ->
                    Waiting = queue:in(From, Claim#claim.waiting),
                    Claims = (State#state.claims)#{Place := Claim#claim{waiting = Waiting}},
                    Waits = (State#state.waits)#{Pid => Place},
                    {noreply, State#state{claims = Claims, waits = Waits}}
            end;
        #{} ->
            {reply, yours, hold(Place, Pid, queue:new(), State)}
    end.

-spec handle_cast({given_up, place(), pid(), {value, term()} | failed}, #state{}) ->
          {noreply, #state{}}.
handle_cast({given_up, Place, Pid, Result}, #state{claims = Claims} = State) ->
    case Claims of
        #{Place := #claim{holder = Pid} = Claim} -> {noreply, release(Place, Claim, Result, State)};
        %% The claim was given by a server before this one.
        #{} -> {noreply, State}
    end.

-spec handle_info({'DOWN', reference(), process, pid(), term()} | term(), #state{}) ->
          {noreply, #state{}}.
handle_info({'DOWN', Monitor, process, _, _}, #state{places = Places} = State)
  when is_map_key(Monitor, Places) ->
    #{Monitor := Place} = Places,
    #{Place := Claim} = State#state.claims,
    {noreply, release(Place, Claim, failed, State)};
handle_info(_, State) ->
    {noreply, State}.

%% Tells whether the holder of a claim is this process, or waits for it.
-spec reaches(#claim{}, pid(), #state{}) -> boolean().
reaches(#claim{holder = Pid}, Pid, _State) ->
    true;
reaches(#claim{holder = Holder}, Pid, #state{waits = Waits, claims = Claims} = State) ->
    case Waits of
        #{Holder := Place} -> reaches(maps:get(Place, Claims), Pid, State);
        #{} -> false
    end.

hold(Place, Pid, Waiting, #state{claims = Claims, places = Places} = State) ->
    Monitor = erlang:monitor(process, Pid),
    Claim = #claim{holder = Pid, monitor = Monitor, waiting = Waiting},
    State#state{claims = Claims#{Place => Claim}, places = Places#{Monitor => Place}}.

release(Place, #claim{monitor = Monitor, waiting = Waiting}, Result, State) ->
    true = erlang:demonitor(Monitor, [flush]),
    Free = State#state{claims = maps:remove(Place, State#state.claims),
                       places = maps:remove(Monitor, State#state.places)},
    case {Result, queue:out(Waiting)} of
        {{value, _}, _} ->
            lists:foldl(fun(From, Before) -> answer(From, Result, Before) end, Free,
                        queue:to_list(Waiting));
        {failed, {{value, {Next, _} = From}, Rest}} ->
            %% The monitor says at once if that process has ended.
            hold(Place, Next, Rest, answer(From, yours, Free));
        {failed, {empty, _}} ->
            Free
    end.

answer({Pid, _} = From, Answer, #state{waits = Waits} = State) ->
    gen_server:reply(From, Answer),
    State#state{waits = maps:remove(Pid, Waits)}.

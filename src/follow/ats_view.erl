%% @private
%% @doc Views: tables that follow other tables, see {@link ats:view/3}.
%%
%% Each view has a process that owns and writes it, an {@link ats_viewer}. This server makes views,
%% and is the heir of all of them: if a process ends that it has not ended itself, the view comes to
%% it, and it starts another process for the same table.
%%
%% Two facts hold. A view is in the list if and only if the server knows it. And a table that the
%% server owns has no process: that has ended, or was never given the table.
-module(ats_view).

-behaviour(gen_server).

-export([view/3, delete/1]).
-export([start_link/0]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2, terminate/2]).

-export_type([options/0]).

-type options() ::
        #{type => ats:table_type(),
          keypos => pos_integer(),
          name => atom(),
          protection => protected,
          compressed => boolean(),
          every => pos_integer()}.

-record(view, {
    %% The call that made the view, which is answered once.
    from :: gen_server:from(),
    maker :: reference(),
    description :: ats_view_list:description(),
    pid :: none | pid()
}).

-record(state, {
    views = #{} :: #{ats:tid() => #view{}},
    pids = #{} :: #{pid() => ats:tid()},
    makers = #{} :: #{reference() => ats:tid()}
}).

-define(EVERY, 100).
%% The longest time of a timer, in milliseconds: 49 days.
-define(MAX_EVERY, 16#ffffffff).
-define(MAX_KEYPOS, (1 bsl 59 - 1)).
%% Milliseconds after which a view gets another process, if the last one has failed.
-define(AGAIN, 100).

%%--------------------------------------------------------------------------------------------
%% Functions of programs
%%--------------------------------------------------------------------------------------------

%% @doc Makes a view, which shows the present of its source when the call returns.
-spec view(ats:table(), term(), term()) -> ats:tid() | atom().
view(Source, Spec, Options) ->
    case ats_info:item(id, Source) of
        undefined ->
            erlang:error({ats_error, id});
        Id ->
            Parsed = parse(Options),
            ok = check(Spec, maps:get(keypos, Parsed), ats_info:item(keypos, Id)),
            ats_follow_server:ask(?MODULE, {view, Parsed#{source => Id, spec => Spec}}, Id)
    end.

%% @doc Deletes a table that the caller may not delete, if it is a view that the caller has made.
-spec delete(ats:table()) -> true.
delete(Table) ->
    Id = ats_info:item(id, Table),
    IsDeleted = ats_view_list:item(lag, Id) =/= undefined andalso
        (try gen_server:call(?MODULE, {delete, Id}, infinity)
         catch exit:_ -> false
         end),
    IsDeleted orelse erlang:error({ats_error, access}).

%%--------------------------------------------------------------------------------------------
%% Arguments
%%--------------------------------------------------------------------------------------------

-spec parse(term()) -> map().
parse(Options) when is_map(Options) ->
    Defaults = #{type => set, keypos => 1, name => none, protection => protected,
                 compressed => false, every => ?EVERY},
    maps:foreach(fun option/2, Options),
    maps:merge(Defaults, Options);
parse(_) ->
    invalid("the options are not a map").

-spec option(term(), term()) -> ok.
option(type, Type)
  when Type =:= set; Type =:= bag; Type =:= duplicate_bag;
       Type =:= ordered_set; Type =:= ordered_bag; Type =:= ordered_duplicate_bag ->
    ok;
option(keypos, KeyPos) when is_integer(KeyPos), KeyPos > 0, KeyPos =< ?MAX_KEYPOS ->
    ok;
option(name, Name) when is_atom(Name), Name =/= undefined, Name =/= none ->
    ok;
option(protection, protected) ->
    ok;
option(compressed, IsCompressed) when is_boolean(IsCompressed) ->
    ok;
option(every, Ms) when is_integer(Ms), Ms > 0, Ms =< ?MAX_EVERY ->
    ok;
option(type, Type) ->
    Types = [set, bag, duplicate_bag, ordered_set, ordered_bag, ordered_duplicate_bag],
    invalid("`type' is not a type of tables~ts", [ats_hints:nearest(Type, Types)]);
option(keypos, _) ->
    invalid("`keypos' is not a positive number");
option(name, _) ->
    invalid("`name' is not an atom that can name a table");
option(protection, _) ->
    invalid("`protection' is not protected: all may read a view, and nobody may write to it");
option(compressed, _) ->
    invalid("`compressed' is not a boolean value");
option(every, _) ->
    invalid("`every' is not a number of milliseconds from 1 to 49 days");
option(Unknown, _) ->
    Known = [type, keypos, name, protection, compressed, every],
    invalid("~ts", [ats_hints:unknown_option(Unknown, Known)]).

-spec invalid(string()) -> no_return().
invalid(Text) -> invalid(Text, []).

-spec invalid(string(), [term()]) -> no_return().
invalid(Format, Arguments) -> ats_hints:refuse(3, Format, Arguments).

%% Fails unless each clause makes objects that have a key.
-spec check(term(), pos_integer(), pos_integer()) -> ok.
check(Spec, KeyPos, KeyPosOfSource) ->
    try
        true = is_list(Spec),
        _ = ats_select:compile(Spec),
        lists:all(fun(Clause) -> makes_objects(Clause, KeyPos, KeyPosOfSource) end, Spec)
    of
        true ->
            ok;
        false ->
            wrong_spec("a clause has a body that makes no tuple, or one without a key for the view")
    catch
        error:_ -> wrong_spec("not a list of clauses of a match specification")
    end.

-spec wrong_spec(string()) -> no_return().
wrong_spec(Text) -> ats_hints:refuse(2, Text, []).

-spec makes_objects({term(), [term()], [term()]}, pos_integer(), pos_integer()) -> boolean().
makes_objects({Head, _Guards, Body}, KeyPos, KeyPosOfSource) ->
    case lists:last(Body) of
        {Object} when is_tuple(Object) -> tuple_size(Object) >= KeyPos;
        {const, Object} when is_tuple(Object) -> tuple_size(Object) >= KeyPos;
        '$_' when is_tuple(Head) -> tuple_size(Head) >= KeyPos;
        '$_' -> KeyPosOfSource >= KeyPos;
        _ -> false
    end.

%%--------------------------------------------------------------------------------------------
%% The server
%%--------------------------------------------------------------------------------------------

-spec start_link() -> {ok, pid()} | {error, term()}.
start_link() ->
    gen_server:start_link({local, ?MODULE}, ?MODULE, [], []).

-spec init([]) -> {ok, #state{}}.
init([]) ->
    _ = process_flag(trap_exit, true),
    ok = ats_view_list:make(),
    {ok, #state{}}.

-spec handle_call({view, map()} | {delete, ats:tid()}, gen_server:from(), #state{}) ->
          {reply, term(), #state{}} | {noreply, #state{}}.
handle_call({view, Options}, {Maker, _} = From, #state{makers = Makers} = State) ->
    try create(Options) of
        {Table, Id} ->
            Numbers = ats_view_list:numbers(),
            Description = Options#{answer => Table, numbers => Numbers},
            true = ats_view_list:add(Id, Description),
            Monitor = erlang:monitor(process, Maker),
            View = #view{from = From, maker = Monitor, description = Description, pid = none},
            {noreply, start(Id, View, State#state{makers = Makers#{Monitor => Id}})}
    catch
        error:{ats_error, Cause} -> {reply, {error, Cause}, State}
    end;
handle_call({delete, Id}, {Pid, _}, #state{views = Views} = State) ->
    case Views of
        #{Id := #view{from = {Pid, _}}} -> {reply, true, close(Id, State)};
        #{} -> {reply, false, State}
    end.

-spec create(map()) -> {ats:tid() | atom(), ats:tid()}.
create(#{type := Type, keypos := KeyPos, name := Name, compressed := IsCompressed}) ->
    Options = [Type, {keypos, KeyPos}, {heir, self(), view}]
        ++ [compressed || IsCompressed] ++ [named_table || Name =/= none],
    Table = case Name of
                none -> ats_options:create(ats_view, Options);
                _ -> ats_options:create(Name, Options)
            end,
    {Table, ats_info:item(id, Table)}.

%% Starts a process for a view that the server owns.
-spec start(ats:tid(), #view{}, #state{}) -> #state{}.
start(Id, #view{from = From, description = Description} = View, State) ->
    #state{views = Views, pids = Pids} = State,
    Pid = ats_viewer:start_link(Id, From, Description),
    %% Somebody may have killed it. Then its end is on the way.
    _ = try ats_nif:give_away(Id, Pid, view, group_leader())
        catch error:{ats_error, _} -> false
        end,
    State#state{views = Views#{Id => View#view{pid = Pid}}, pids = Pids#{Pid => Id}}.

-spec handle_cast(term(), #state{}) -> {noreply, #state{}}.
handle_cast(_, State) -> {noreply, State}.

%% The table of a process that has ended is here before its end is told.
-spec handle_info(term(), #state{}) -> {noreply, #state{}}.
handle_info({'EXIT', Pid, Reason}, #state{views = Views, pids = Pids} = State) ->
    case maps:take(Pid, Pids) of
        {Id, Rest} ->
            #{Id := View} = Views,
            Without = View#view{pid = none},
            Left = State#state{views = Views#{Id := Without}, pids = Rest},
            case Reason of
                {shutdown, Cause} ->
                    Later = close(Id, Left),
                    %% The caller has its answer, unless the view was being made.
                    ok = gen_server:reply(View#view.from, {error, Cause}),
                    {noreply, Later};
                killed ->
                    {noreply, start(Id, Without, Left)};
                _ ->
                    _ = erlang:send_after(?AGAIN, self(), {start, Id}),
                    {noreply, Left}
            end;
        error ->
            {noreply, State}
    end;
handle_info({start, Id}, #state{views = Views} = State) ->
    case Views of
        #{Id := #view{pid = none} = View} -> {noreply, start(Id, View, State)};
        #{} -> {noreply, State}
    end;
handle_info({'DOWN', Monitor, process, _, _}, #state{makers = Makers} = State) ->
    case Makers of
        #{Monitor := Id} -> {noreply, close(Id, State)};
        #{} -> {noreply, State}
    end;
handle_info(_, State) ->
    {noreply, State}.

%% Deletes a view.
-spec close(ats:tid(), #state{}) -> #state{}.
close(Id, #state{views = Views, pids = Pids, makers = Makers}) ->
    {#view{maker = Monitor, pid = Pid}, Rest} = maps:take(Id, Views),
    true = erlang:demonitor(Monitor, [flush]),
    ok = kill(Pid),
    true = ats_view_list:remove(Id),
    true = ats_nif:delete(Id),
    #state{views = Rest, pids = maps:remove(Pid, Pids), makers = maps:remove(Monitor, Makers)}.

-spec kill(none | pid()) -> ok.
kill(none) ->
    ok;
kill(Pid) ->
    true = exit(Pid, kill),
    receive {'EXIT', Pid, _} -> ok end.

%% The views end with the server, and their processes before.
-spec terminate(term(), #state{}) -> ok.
terminate(_Reason, #state{pids = Pids}) ->
    lists:foreach(fun kill/1, maps:keys(Pids)).

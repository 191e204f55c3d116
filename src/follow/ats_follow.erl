%% @private
%% @doc Programs that follow tables: {@link ats:follow/2}, {@link dats:follow/2}, and the functions
%% beside them.
%%
%% Each program that follows a table has a process of its own, an {@link ats_follower}, which reads
%% the table and sends the changes. This server starts these processes, finds them by the references
%% that programs have, and tells a program if its process was killed.
-module(ats_follow).

-behaviour(gen_server).

-export([follow/2, follow_on_disk/2, unfollow/1, more/2]).
-export([start_link/0]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2, terminate/2]).

-export_type([ref/0, options/0, change/0]).

-type ref() :: reference().

-type options() ::
        #{snapshot => boolean(),
          spec => ats:match_spec(),
          keys => boolean(),
          every => pos_integer(),
          at_least => pos_integer(),
          within => pos_integer() | infinity,
          active => true | pos_integer(),
          max_queue => non_neg_integer(),
          to => pid()}.

-type change() :: ats:difference() | {insert | delete | change, Key :: term()}.

-record(state, {
    references = #{} :: #{pid() => {ref(), Receiver :: pid()}},
    pids = #{} :: #{ref() => pid()}
}).

%% The defaults of the milliseconds between two moments, and of the most messages in the queue of a
%% receiver that keeps up.
-define(EVERY, 100).
-define(MAX_QUEUE, 20).
%% The longest time of a timer, in milliseconds: 49 days.
-define(MAX_EVERY, 16#ffffffff).

%%--------------------------------------------------------------------------------------------
%% Functions of programs
%%--------------------------------------------------------------------------------------------

%% @doc Begins to send the changes of a table in memory.
-spec follow(ats:table(), term()) -> {ok, ref()}.
follow(Table, Options) ->
    follow(ats_follow_memory, Table, Options).

%% @doc Begins to send the changes of a table on disk.
-spec follow_on_disk(dats:tab_name(), term()) -> {ok, ref()}.
follow_on_disk(Name, Options) ->
    follow(ats_follow_disk, Name, Options).

-spec follow(module(), ats:table() | dats:tab_name(), term()) -> {ok, ref()}.
follow(Kind, Table, Options) ->
    Id = Kind:find(Table),
    Defaults = #{snapshot => false, spec => all, keys => false, every => ?EVERY, at_least => 1,
                 within => infinity, active => true, max_queue => ?MAX_QUEUE, to => self()},
    Parsed = maps:merge(Defaults, parse(Options)),
    {ok, ats_follow_server:ask(?MODULE, {follow, Kind, Id, Parsed}, Id)}.

%% @doc Ends the changes. No message of them comes to the caller after that.
-spec unfollow(term()) -> true.
unfollow(Ref) when is_reference(Ref) ->
    case call(Ref, {unfollow, Ref}) of
        {ok, Pid} ->
            Monitor = erlang:monitor(process, Pid),
            Pid ! stop,
            receive {'DOWN', Monitor, process, Pid, _} -> flush(Ref) end;
        none ->
            flush(Ref)
    end;
unfollow(_) ->
    erlang:error({ats_error, none}).

-spec flush(ref()) -> true.
flush(Ref) ->
    receive {ats_changes, Ref, _, _} -> flush(Ref)
    after 0 -> true
    end.

%% @doc Lets more changes be sent.
-spec more(term(), term()) -> boolean().
more(Ref, Number)
  when is_reference(Ref), (Number =:= true orelse is_integer(Number) andalso Number > 0) ->
    call(Ref, {more, Ref, Number}) =:= ok;
more(_, _) ->
    erlang:error({ats_error, none}).

%% The server runs on the node where the reference was made. If it does not run, or there is no such
%% node, no process of it is there.
-spec call(ref(), term()) -> ok | {ok, pid()} | none.
call(Ref, Request) ->
    try gen_server:call({?MODULE, node(Ref)}, Request, infinity)
    catch exit:_ -> none
    end.

%%--------------------------------------------------------------------------------------------
%% Options
%%--------------------------------------------------------------------------------------------

-spec parse(term()) -> map().
parse(Options) when is_map(Options) -> maps:map(fun option/2, Options);
parse(_) -> invalid("the options are not a map").

-spec option(term(), term()) -> term().
option(spec, Spec) ->
    IsWhole = fun({_Head, _Guards, Body}) -> Body =:= ['$_'];
                 (_) -> false
              end,
    try lists:all(IsWhole, Spec) andalso ats_select:compile(Spec) of
        false -> invalid("a clause of `spec' has another body than ['$_']");
        Compiled -> Compiled
    catch
        error:_ -> invalid("`spec' is not a list of clauses of a match specification")
    end;
option(Option, Flag) when is_boolean(Flag), (Option =:= snapshot orelse Option =:= keys) ->
    Flag;
option(every, Ms) when is_integer(Ms), Ms > 0, Ms =< ?MAX_EVERY ->
    Ms;
option(at_least, Number) when is_integer(Number), Number > 0 ->
    Number;
option(within, Ms) when Ms =:= infinity; is_integer(Ms), Ms > 0 ->
    Ms;
option(active, Number) when Number =:= true; is_integer(Number), Number > 0 ->
    Number;
option(max_queue, Number) when is_integer(Number), Number >= 0 ->
    Number;
option(to, Pid) when is_pid(Pid) ->
    Pid;
option(Option, _) when Option =:= snapshot; Option =:= keys ->
    invalid("`~ts' is not a boolean value", [Option]);
option(every, _) ->
    invalid("`every' is not a number of milliseconds from 1 to 49 days");
option(at_least, _) ->
    invalid("`at_least' is not a positive number of changes");
option(within, _) ->
    invalid("`within' is not a positive number of milliseconds, nor infinity");
option(active, _) ->
    invalid("`active' is not a positive number, nor true");
option(max_queue, _) ->
    invalid("`max_queue' is not a number of messages");
option(to, _) ->
    invalid("`to' is not a pid");
option(Unknown, _) ->
    Known = [snapshot, spec, keys, every, at_least, within, active, max_queue, to],
    invalid("~ts", [ats_hints:unknown_option(Unknown, Known)]).

-spec invalid(string()) -> no_return().
invalid(Text) -> invalid(Text, []).

-spec invalid(string(), [term()]) -> no_return().
invalid(Format, Arguments) -> ats_hints:refuse(2, Format, Arguments).

%%--------------------------------------------------------------------------------------------
%% The server
%%--------------------------------------------------------------------------------------------

-spec start_link() -> {ok, pid()} | {error, term()}.
start_link() ->
    gen_server:start_link({local, ?MODULE}, ?MODULE, [], []).

-spec init([]) -> {ok, #state{}}.
init([]) ->
    process_flag(trap_exit, true),
    {ok, #state{}}.

-spec handle_call({follow, module(), ats:tid(), map()} | {unfollow, ref()}
                  | {more, ref(), true | pos_integer()}, gen_server:from(), #state{}) ->
          {reply, term(), #state{}} | {noreply, #state{}}.
handle_call({follow, Kind, Table, #{to := Receiver} = Options}, From, State) ->
    #state{references = References, pids = Pids} = State,
    Ref = make_ref(),
    %% The process answers the caller when the first moment of the table is there.
    Pid = ats_follower:start_link(Ref, From, Kind, Table, Options),
    {noreply, State#state{references = References#{Pid => {Ref, Receiver}},
                          pids = Pids#{Ref => Pid}}};
handle_call({unfollow, Ref}, _From, State) ->
    case find(Ref, State) of
        %% Nobody is told if the process is killed from now on.
        {ok, Pid} -> {reply, {ok, Pid}, forget(Pid, State)};
        none -> {reply, none, State}
    end;
handle_call({more, Ref, Number}, _From, State) ->
    case find(Ref, State) of
        {ok, Pid} ->
            Pid ! {more, Number},
            {reply, ok, State};
        none ->
            {reply, none, State}
    end.

-spec handle_cast(term(), #state{}) -> {noreply, #state{}}.
handle_cast(_, State) -> {noreply, State}.

-spec handle_info({'EXIT', pid(), term()} | term(), #state{}) -> {noreply, #state{}}.
handle_info({'EXIT', Pid, Reason}, #state{references = References} = State) ->
    _ = case References of
            #{Pid := {Ref, Receiver}} when Reason =/= normal ->
                Receiver ! {ats_changes, Ref, ended, Reason};
            #{} ->
                ok
        end,
    {noreply, forget(Pid, State)};
handle_info(_, State) ->
    {noreply, State}.

%% Programs are told before the application kills its processes.
-spec terminate(term(), #state{}) -> ok.
terminate(_Reason, #state{references = References}) ->
    Pids = maps:keys(References),
    _ = [exit(Pid, shutdown) || Pid <- Pids],
    _ = [receive {'EXIT', Pid, _} -> ok end || Pid <- Pids],
    ok.

-spec find(ref(), #state{}) -> {ok, pid()} | none.
find(Ref, #state{pids = Pids}) ->
    case Pids of
        #{Ref := Pid} -> {ok, Pid};
        #{} -> none
    end.

-spec forget(pid(), #state{}) -> #state{}.
forget(Pid, #state{references = References, pids = Pids} = State) ->
    case maps:take(Pid, References) of
        {{Ref, _Receiver}, Rest} ->
            State#state{references = Rest, pids = maps:remove(Ref, Pids)};
        error ->
            State
    end.

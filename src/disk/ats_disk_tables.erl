%% @private
%% @doc The process that owns the open tables on disk.
%%
%% It counts how often each process has opened each table. When the last of them has closed it, or
%% has ended, the table is closed; and so are all tables when the application stops, or the whole
%% system. Opening and closing read and write files, which takes long; both are done by processes of
%% their own, and requests about the same table wait for them meanwhile. A process that opens the
%% directory of a table that is being closed waits, too, also under another name or spelling:
%% directories are compared by identity.
%%
%% Users find a table by its name in an `ets' table, without asking this process.
-module(ats_disk_tables).

-behaviour(gen_server).

-include_lib("kernel/include/file.hrl").

-export([start_link/0, ensure_started/0]).
-export([is_being_closed/1, open/2, close/1, publish/1]).
-export([set_merge/2, find/1, find_table/1, name/1]).
-export([directory/1, options/1]).
-export([max_selects/1, names/0, ids/0, users/1]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2, terminate/2]).

-export_type([name/0]).

-type name() :: term().

%% A table that is open.
-record(table, {id :: ats:tid(),
                place :: place(),
                options :: ats_disk_options:parsed(),
                users = #{} :: #{pid() => pos_integer()}}).

%% A table that is being opened or closed, and the requests that wait for it.
-record(changing, {waiting = queue:new() :: queue:queue(request())}).

-type request() :: {open, gen_server:from(), ats_disk_options:parsed()}
                 | {close | publish, gen_server:from()}.

-record(state, {tables = #{} :: #{name() => #table{} | #changing{}},
                %% Monitors of users.
                users = #{} :: #{pid() => reference()},
                %% The work of the processes that open and close tables.
                workers = #{} :: #{reference() => work()},
                %% Names under which the directories of tables are opened that are being closed.
                parked = #{} :: #{place() => [{name(), request()}, ...]},
                %% The number of tables that have been closed.
                closed = 0 :: non_neg_integer()}).

-type work() :: {opening, name(), request(), Closed :: non_neg_integer()}
              | {closing, name(), gen_server:from() | none, #table{}}.
-type place() :: {Device :: integer(), Inode :: integer()} | unknown.
%% Identity of a directory, independent of its name.

%% `{Name, Id, Options}'.
-define(NAMES, ?MODULE).

%%--------------------------------------------------------------------------------------------
%% Calls
%%--------------------------------------------------------------------------------------------

-spec start_link() -> {ok, pid()} | {error, term()}.
start_link() ->
    gen_server:start_link({local, ?MODULE}, ?MODULE, [], []).

%% @doc Starts the application, if the program has not.
-spec ensure_started() -> ok | {error, term()}.
ensure_started() ->
    case erlang:whereis(?MODULE) of
        undefined -> application:ensure_started(ats);
        _ -> ok
    end.

%% @doc Opens a table for the caller.
-spec open(name(), ats_disk_options:parsed()) -> ok | {error, term()}.
open(Name, Options) ->
    gen_server:call(?MODULE, {open, Name, Options}, infinity).

%% @doc Closes a table, once, for the caller.
-spec close(name()) -> ok | {error, term()}.
close(Name) ->
    try gen_server:call(?MODULE, {close, Name}, infinity)
    catch
        exit:{noproc, _} -> {error, not_owner}
    end.

%% @doc Closes a table that was made elsewhere, and gives it its directory. There is no table if
%% that fails, or if it is closed otherwise.
-spec publish(name()) -> ok | {error, term()}.
publish(Name) ->
    gen_server:call(?MODULE, {publish, Name}, infinity).

%% @doc Returns `true' if the table in a directory is closed at the moment.
-spec is_being_closed(Directory :: file:name_all()) -> boolean().
is_being_closed(Directory) ->
    try gen_server:call(?MODULE, {is_being_closed, place(#{directory => Directory})}, infinity)
    catch
        exit:{noproc, _} -> false
    end.

%% @doc Sets the merge of a table from now on.
-spec set_merge(name(), term()) -> ok.
set_merge(Name, Merge) ->
    gen_server:call(?MODULE, {set_merge, Name, Merge}, infinity).

%% @doc Returns the table of that name, or a snapshot. Fails if none is open.
-spec find(name()) -> ats:tid().
find(Name) ->
    try ets:lookup_element(?NAMES, Name, 2)
    catch
        error:badarg -> find_snapshot(Name)
    end.

-spec find_snapshot(term()) -> ats:tid().
find_snapshot(Term) ->
    case ats_nif:snapshot_state(Term) of
        none -> erlang:error({ats_error, id});
        {disk, _Table, _Owner, _Age} -> Term;
        {memory, _Table, _Owner, _Age} -> erlang:error({ats_error, id});
        Why -> erlang:error({ats_error, {snapshot_ended, Why}})
    end.

%% @doc Returns the table of that name, which must be no snapshot.
-spec find_table(name()) -> ats:tid().
find_table(Name) ->
    case find(Name) of
        Name -> erlang:error({ats_error, snapshot});
        Table -> Table
    end.

%% @doc Returns the name of an open table.
-spec name(ats:tid()) -> {ok, name()} | none.
name(Id) ->
    try ets:select(?NAMES, [{{'$1', Id, '_'}, [], ['$1']}]) of
        [Name | _] -> {ok, Name};
        [] -> none
    catch
        error:badarg -> none
    end.

-spec options(name()) -> ats_disk_options:parsed() | undefined.
options(Name) ->
    try ets:lookup_element(?NAMES, Name, 3)
    catch
        error:badarg -> undefined
    end.

%% @doc Returns the directory of a table as the process that opened it has spelled it. That of a
%% snapshot is the directory of its table.
-spec directory(name()) -> file:filename_all() | undefined.
directory(Name) ->
    case options(Name) of
        undefined ->
            case ats_nif:snapshot_state(Name) of
                {disk, Table, _Owner, _Age} -> directory_of(name(Table));
                _ -> undefined
            end;
        #{file := File} ->
            File
    end.

-spec directory_of({ok, name()} | none) -> file:filename_all() | undefined.
directory_of({ok, Name}) -> directory(Name);
directory_of(none) -> undefined.

%% @doc Returns the most selects that a table continues.
-spec max_selects(name()) -> default | pos_integer().
max_selects(Name) ->
    case options(Name) of
        undefined -> default;
        #{max_selects := Most} -> Most
    end.

%% @doc Returns the names of all open tables.
-spec names() -> [name()].
names() ->
    try ets:select(?NAMES, [{{'$1', '_', '_'}, [], ['$1']}])
    catch
        error:badarg -> []
    end.

%% @doc Returns the open tables themselves.
-spec ids() -> [ats:tid()].
ids() ->
    try ets:select(?NAMES, [{{'_', '$1', '_'}, [], ['$1']}])
    catch
        error:badarg -> []
    end.

%% @doc Returns the processes that have opened a table, and how often each has.
-spec users(name()) -> [{pid(), pos_integer()}].
users(Name) ->
    try gen_server:call(?MODULE, {users, Name}, infinity)
    catch
        exit:{noproc, _} -> []
    end.

%%--------------------------------------------------------------------------------------------
%% The process
%%--------------------------------------------------------------------------------------------

-spec init([]) -> {ok, #state{}}.
init([]) ->
    _ = process_flag(trap_exit, true),
    ?NAMES = ets:new(?NAMES, [set, protected, named_table, {read_concurrency, true}]),
    {ok, #state{}}.

-spec handle_call(term(), gen_server:from(), #state{}) ->
          {reply, term(), #state{}} | {noreply, #state{}}.
handle_call({open, Name, Options}, From, State) ->
    {noreply, ask(Name, {open, From, Options}, State)};
handle_call({Ending, Name}, From, State) when Ending =:= close; Ending =:= publish ->
    {noreply, ask(Name, {Ending, From}, State)};
handle_call({is_being_closed, Place}, _From, State) ->
    {reply, is_being_closed(Place, State), State};
handle_call({set_merge, Name, Merge}, _From, #state{tables = Tables} = State) ->
    case Tables of
        #{Name := #table{id = Id, options = #{merge := Opened} = Options} = Table}
          when Opened =/= default ->
            Changed = Options#{merge := Merge},
            true = ets:insert(?NAMES, {Name, Id, Changed}),
            {reply, ok, put_table(Name, Table#table{options = Changed}, State)};
        #{} ->
            {reply, ok, State}
    end;
handle_call({users, Name}, _From, #state{tables = Tables} = State) ->
    Users = case Tables of
                #{Name := #table{users = Counts}} -> maps:to_list(Counts);
                #{} -> []
            end,
    {reply, Users, State}.

-spec handle_cast(term(), #state{}) -> {noreply, #state{}}.
handle_cast(_Nothing, State) ->
    {noreply, State}.

-spec handle_info(term(), #state{}) -> {noreply, #state{}}.
handle_info({'DOWN', Monitor, process, Pid, Reason}, #state{workers = Workers} = State) ->
    case maps:take(Monitor, Workers) of
        {Work, Rest} -> {noreply, end_work(Work, outcome(Reason), State#state{workers = Rest})};
        error -> {noreply, user_ended(Pid, State)}
    end;
handle_info(_Other, State) ->
    {noreply, State}.

%% Nothing is opened or closed any more when this returns, and no process is told.
-spec terminate(term(), #state{}) -> ok.
terminate(_Reason, #state{tables = Tables, workers = Workers}) ->
    Opened = [outcome(await_end(Monitor)) || Monitor <- maps:keys(Workers)],
    Open = [Id || #table{id = Id} <- maps:values(Tables)] ++ [Id || {{ok, Id}, _} <- Opened],
    Closing = [Monitor || Id <- Open, {_, Monitor} <- [closer(Id)]],
    _ = [await_end(Monitor) || Monitor <- Closing],
    ok.

%% Waits for the end of a process.
-spec await_end(reference()) -> term().
await_end(Monitor) ->
    receive {'DOWN', Monitor, process, _, Reason} -> Reason end.

%%--------------------------------------------------------------------------------------------
%% Opening and closing
%%--------------------------------------------------------------------------------------------

%% Handles a request about a table, or queues it.
-spec ask(name(), request(), #state{}) -> #state{}.
ask(Name, Request, #state{tables = Tables} = State) ->
    case Tables of
        #{Name := #changing{waiting = Waiting} = Changing} ->
            Later = Changing#changing{waiting = queue:in(Request, Waiting)},
            State#state{tables = Tables#{Name := Later}};
        #{Name := Table} ->
            answer_request(Name, Request, Table, State);
        #{} ->
            answer_unopened(Name, Request, State)
    end.

-spec answer_request(name(), request(), #table{}, #state{}) -> #state{}.
answer_request(Name, {open, From, Asked}, #table{options = Options} = Table, State) ->
    case ats_disk_options:fits(use_spelling(Table, Asked), Options) of
        true ->
            gen_server:reply(From, ok),
            add_user(Name, Table, caller(From), State);
        false ->
            gen_server:reply(From, {error, incompatible_arguments}),
            State
    end;
answer_request(Name, {close, From}, #table{users = Users} = Table, State) ->
    User = caller(From),
    case Users of
        #{User := 1} when map_size(Users) =:= 1 ->
            end_table(closer(Table#table.id), Name, Table, From, forget_user(User, Name, State));
        #{User := 1} ->
            gen_server:reply(From, ok),
            Left = put_table(Name, Table#table{users = maps:remove(User, Users)}, State),
            forget_user(User, Name, Left);
        #{User := Count} ->
            gen_server:reply(From, ok),
            put_table(Name, Table#table{users = Users#{User := Count - 1}}, State);
        #{} ->
            gen_server:reply(From, {error, not_owner}),
            State
    end;
answer_request(Name, {publish, From}, #table{id = Id} = Table, State) ->
    end_table(publisher(Id), Name, Table, From, forget_user(caller(From), Name, State)).

%% Returns the options that are asked for, with the directory as it was spelled when the table was
%% opened, if it is that one.
-spec use_spelling(#table{}, ats_disk_options:parsed()) -> ats_disk_options:parsed().
use_spelling(#table{options = #{directory := Directory}}, #{directory := Directory} = Asked) ->
    Asked;
use_spelling(#table{place = Place, options = #{directory := Directory}}, Asked) ->
    case place(Asked) of
        Place when Place =/= unknown -> Asked#{directory := Directory};
        _ -> Asked
    end.

-spec answer_unopened(name(), request(), #state{}) -> #state{}.
answer_unopened(_Name, {Ending, From}, State) when Ending =:= close; Ending =:= publish ->
    gen_server:reply(From, {error, not_owner}),
    State;
answer_unopened(Name, {open, _From, _Options} = Request, State) ->
    open_table(Name, Request, #changing{}, State).

-spec open_table(name(), request(), #changing{}, #state{}) -> #state{}.
open_table(Name, {open, _From, Options} = Request, Changing, #state{closed = Closed} = State) ->
    Owner = self(),
    Open = fun() -> {open_native(Options, Owner), place(Options)} end,
    work(Name, Changing, {opening, Name, Request, Closed}, worker(Open), State).

-spec open_native(ats_disk_options:parsed(), pid()) ->
          {ok, ats:tid()} | {error, term(), term()}.
open_native(Options, Owner) ->
    {Directory, Native} = ats_disk_options:native(Options),
    Open = fun() ->
                   case ats_disk_options:check_modules(Options) of
                       ok -> ats_nif:disk_open(Directory, Native, Owner);
                       Failed -> Failed
                   end
           end,
    ats_disk_repair:open(Options, Directory, Open).

-spec place(#{directory := file:name_all(), _ => _}) -> place().
place(#{directory := Directory}) ->
    case file:read_file_info(Directory, [raw]) of
        {ok, #file_info{major_device = Device, inode = Inode}} -> {Device, Inode};
        {error, _} -> unknown
    end.

%% A process closes a table.
-spec end_table({pid(), reference()}, name(), #table{}, gen_server:from() | none, #state{}) ->
          #state{}.
end_table(Worker, Name, Table, From, State) ->
    true = ets:delete(?NAMES, Name),
    work(Name, #changing{}, {closing, Name, From, Table}, Worker, State).

-spec work(name(), #changing{}, work(), {pid(), reference()}, #state{}) -> #state{}.
work(Name, Changing, Work, {_Pid, Monitor}, #state{tables = Tables, workers = Workers} = State) ->
    State#state{tables = Tables#{Name => Changing},
                workers = Workers#{Monitor => Work}}.

-spec closer(ats:tid()) -> {pid(), reference()}.
closer(Id) ->
    worker(fun() -> ats_nif:disk_close(Id) end).

-spec publisher(ats:tid()) -> {pid(), reference()}.
publisher(Id) ->
    worker(fun() -> ats_nif:disk_publish(Id) end).

-spec worker(fun(() -> term())) -> {pid(), reference()}.
worker(Work) ->
    spawn_monitor(fun() -> exit({done, Work()}) end).

-spec outcome(term()) -> term().
outcome({done, Outcome}) -> Outcome;
outcome(Crash) -> {error, crash, Crash}.

%% A process has opened or closed a table, or has failed.
-spec end_work(work(), term(), #state{}) -> #state{}.
end_work({opening, Name, {open, From, Asked}, _Closed}, {{ok, Id}, Place}, State) ->
    {Type, KeyPos, _Fixed} = ats_nif:disk_kind(Id),
    Options = Asked#{type := Type, keypos := KeyPos, ttl := ats_nif:disk_ttl(Id)},
    true = ets:insert(?NAMES, {Name, Id, Options}),
    ok = ats_merge_background:watch(Id),
    {Waiting, Rest} = take_waiting(Name, State),
    gen_server:reply(From, ok),
    Table = #table{id = Id, place = Place, options = Options},
    go_on(Name, Waiting, add_user(Name, Table, caller(From), Rest));
end_work({opening, Name, Request, Closed}, {{error, in_use, _} = Failed, Place}, State) ->
    case {is_being_closed(Place, State), State} of
        {true, #state{parked = Parked}} ->
            Park = fun(Requests) -> [{Name, Request} | Requests] end,
            State#state{parked = maps:update_with(Place, Park, [{Name, Request}], Parked)};
        {false, #state{closed = Closed}} ->
            fail_open(Name, Request, Failed, State);
        {false, #state{}} ->
            %% A table has been closed meanwhile, which may have been in this directory.
            open_again(Name, Request, State)
    end;
end_work({opening, Name, Request, _Closed}, {Failed, _Place}, State) ->
    fail_open(Name, Request, Failed, State);
end_work({opening, Name, Request, _Closed}, Crash, State) ->
    fail_open(Name, Request, Crash, State);
end_work({closing, Name, From, #table{place = Place, options = #{file := File}}}, Outcome,
         #state{closed = Closed, parked = Parked} = State) ->
    {Waiting, Rest} = take_waiting(Name, State),
    case From of
        none -> ok;
        _ -> gen_server:reply(From, ats_disk_failure:of_call(Outcome, File))
    end,
    Requests = lists:reverse(maps:get(Place, Parked, [])),
    Free = Rest#state{closed = Closed + 1, parked = maps:remove(Place, Parked)},
    Opening = lists:foldl(fun({Other, Request}, Before) -> open_again(Other, Request, Before) end,
                          Free, Requests),
    go_on(Name, Waiting, Opening).

-spec fail_open(name(), request(), term(), #state{}) -> #state{}.
fail_open(Name, {open, From, #{file := File}}, Failed, State) ->
    {Waiting, Rest} = take_waiting(Name, State),
    gen_server:reply(From, ats_disk_failure:of_call(Failed, File)),
    go_on(Name, Waiting, Rest).

-spec open_again(name(), request(), #state{}) -> #state{}.
open_again(Name, Request, #state{tables = Tables} = State) ->
    #{Name := Changing} = Tables,
    open_table(Name, Request, Changing, State).

-spec is_being_closed(place(), #state{}) -> boolean().
is_being_closed(unknown, _State) ->
    false;
is_being_closed(Place, #state{workers = Workers}) ->
    lists:any(fun({closing, _Name, _From, #table{place = At}}) -> At =:= Place;
                 (_Opening) -> false
              end, maps:values(Workers)).

-spec take_waiting(name(), #state{}) -> {[request()], #state{}}.
take_waiting(Name, #state{tables = Tables} = State) ->
    {#changing{waiting = Waiting}, Others} = maps:take(Name, Tables),
    {queue:to_list(Waiting), State#state{tables = Others}}.

-spec go_on(name(), [request()], #state{}) -> #state{}.
go_on(Name, Waiting, State) ->
    lists:foldl(fun(Request, Before) -> ask(Name, Request, Before) end, State, Waiting).

%%--------------------------------------------------------------------------------------------
%% Users
%%--------------------------------------------------------------------------------------------

-spec caller(gen_server:from()) -> pid().
caller({Pid, _Tag}) -> Pid.

-spec put_table(name(), #table{}, #state{}) -> #state{}.
put_table(Name, Table, #state{tables = Tables} = State) ->
    State#state{tables = Tables#{Name => Table}}.

%% Monitors a process. If it has ended already, the message of the monitor comes at once.
-spec add_user(name(), #table{}, pid(), #state{}) -> #state{}.
add_user(Name, #table{users = Counts} = Table, Pid, #state{users = Users} = State) ->
    Counted = maps:update_with(Pid, fun(Count) -> Count + 1 end, 1, Counts),
    Monitored = case Users of
                    #{Pid := _} -> Users;
                    #{} -> Users#{Pid => erlang:monitor(process, Pid)}
                end,
    put_table(Name, Table#table{users = Counted}, State#state{users = Monitored}).

%% A process has closed a table as often as it had opened it.
-spec forget_user(pid(), name(), #state{}) -> #state{}.
forget_user(Pid, Closed, #state{tables = Tables, users = Users} = State) ->
    IsUsed = fun({Name, #table{users = Counts}}) -> Name =/= Closed andalso is_map_key(Pid, Counts);
                ({_Name, #changing{}}) -> false
             end,
    case lists:any(IsUsed, maps:to_list(Tables)) of
        true ->
            State;
        false ->
            {Monitor, Others} = maps:take(Pid, Users),
            true = erlang:demonitor(Monitor, [flush]),
            State#state{users = Others}
    end.

-spec user_ended(pid(), #state{}) -> #state{}.
user_ended(Pid, #state{tables = Tables, users = Users} = State) ->
    Left = State#state{users = maps:remove(Pid, Users)},
    maps:fold(fun(Name, #table{users = #{Pid := _} = Counts} = Table, Before) ->
                      case maps:remove(Pid, Counts) of
                          None when map_size(None) =:= 0 ->
                              end_table(closer(Table#table.id), Name, Table, none, Before);
                          Others -> put_table(Name, Table#table{users = Others}, Before)
                      end;
                 (_Name, _Other, Before) ->
                      Before
              end, Left, Tables).

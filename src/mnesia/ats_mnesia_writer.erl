%% @private
%% @doc The process that brings changes of tables to disk.
%%
%% A process that changes a table notes the change in a queue and goes on. Tables in memory are read
%% there; for tables on disk `ats_mnesia_pending' has the changes that are not on disk yet. This
%% process waits some milliseconds for more, hands the log of Mnesia to the operating system, and
%% then makes the changes that it took before, those of each table in their order, as lists of
%% objects. So the disk is never ahead of the log, a replay of the log after a crash leaves no
%% transaction in part, and a transaction does not wait for a file. A counter may be changed by
%% several processes at once, so the writer reads its value in memory when it makes the change.
%%
%% After a crash Mnesia replays its log for a table on disk. It discards that log after a while (it
%% dumps it) without a look at such tables, as it takes them to be ahead. So all noted changes must
%% be on disk before: the dump asks for the kind of each table whose changes it meets, and
%% `flush_for_dump/0' is called then. When Mnesia starts it closes each table that it has changed
%% before it discards the log, and closing waits for this process, too.
%%
%% If changes that wait take much memory, those who write wait. A change that fails stops Mnesia on
%% this node. It is in the log, which is kept.
-module(ats_mnesia_writer).

-export([start_link/0, write/5, write_now/4, flush/0, flush_for_dump/0]).
-export([init/1]).

%% Milliseconds that the first change waits for others.
-define(COLLECT, 5).
%% Limit of the bytes of changes that may wait, and the bytes that each takes besides its arguments.
-define(WAITING, 16#1000000).
-define(OVERHEAD, 100).

%% `{Number, Bytes, Tab, Pending, Name, Function, Argument}'.
-define(QUEUE, ?MODULE).
-define(FLUSHED_FOR, ?MODULE).

%% Places of the counters: bytes that wait, and 1 if the process knows that there is work.
-define(COUNTS, ?MODULE).
-define(BYTES, 1).
-define(AWAKE, 2).

-type pending() :: none | ats_mnesia_pending:pending().
-type change() :: {ats_mnesia_pending:change_number(), Bytes :: pos_integer(), ats_mnesia:tab(),
                   pending(), dats:tab_name(), Function :: atom(), Arguments :: [term()]}.

%% Work for one table: calls, and before them inserts that are made as one call, with their keys.
%% Their entries in `pending' are removed afterwards.
-record(work, {tab :: ats_mnesia:tab(),
               pending :: pending(),
               is_bag :: boolean(),
               calls = [] :: [{Function :: atom(), [term()]}],
               inserts = [] :: [tuple()],
               keys = #{} :: #{Key :: term() => later},
               noted = [] :: [{ats_mnesia_pending:change_number(), Function :: atom(), term()}]}).

%% @doc Starts the process, for the process that owns the tables.
-spec start_link() -> {ok, pid()}.
start_link() ->
    proc_lib:start_link(?MODULE, init, [self()]).

%% @doc Has a change made on disk soon.
-spec write(ats_mnesia:tab(), pending(), dats:tab_name(), Function :: atom(), [term()]) -> ok.
write(Tab, Pending, Name, Function, Arguments) ->
    Counts = persistent_term:get(?COUNTS),
    atomics:get(Counts, ?BYTES) < ?WAITING orelse flush(),
    Number = erlang:unique_integer([monotonic]),
    Bytes = erlang:external_size(Arguments) + ?OVERHEAD,
    Pending =:= none orelse ats_mnesia_pending:add(Pending, Number, Function, hd(Arguments)),
    ok = atomics:add(Counts, ?BYTES, Bytes),
    true = ats:insert(?QUEUE, {Number, Bytes, Tab, Pending, Name, Function, Arguments}),
    _ = atomics:get(Counts, ?AWAKE) =:= 0
        andalso atomics:exchange(Counts, ?AWAKE, 1) =:= 0
        andalso (?MODULE ! work),
    ok.

%% @doc Makes a change on disk. If that fails Mnesia stops, and the call does not return: Mnesia
%% would catch an exception, and go on as if the change were made.
-spec write_now(ats_mnesia:tab(), dats:tab_name(), Function :: atom(), Arguments :: [term()]) ->
          term().
write_now(Tab, Name, Function, Arguments) ->
    case attempt(Name, Function, Arguments) of
        {ok, Answer} -> Answer;
        {badarg, Stack} -> erlang:raise(error, badarg, Stack);
        {failed, Why} -> stop(Tab, Why), exit({ats_mnesia, Tab})
    end.

-spec attempt(dats:tab_name(), Function :: atom(), Arguments :: [term()]) ->
          {ok, Answer :: term()} | {badarg, Stack :: list()} | {failed, unicode:chardata()}.
attempt(Name, Function, Arguments) ->
    try apply(dats, Function, [Name | Arguments]) of
        {error, _} = Failed -> {failed, dats:format_error(Failed)};
        Answer -> {ok, Answer}
    catch
        error:badarg:Stack ->
            case dats:info(Name) of
                undefined -> {failed, "the application ats was stopped"};
                _ -> {badarg, Stack}
            end
    end.

%% Stops Mnesia, unless the whole system stops: then Mnesia replays its log at the next start.
-spec stop(ats_mnesia:tab(), Why :: unicode:chardata()) -> term().
stop(Tab, Why) ->
    case init:get_status() of
        {stopping, _} -> timer:sleep(infinity);
        _ -> mnesia_lib:fatal("Cannot write to ~tp: ~ts~n", [Tab, Why])
    end.

%% @doc Waits until all changes are on disk that were noted before.
-spec flush() -> ok.
flush() ->
    case is_flushed() of
        true -> ok;
        Reason -> exit({?MODULE, Reason})
    end.

-spec is_flushed() -> true | Reason :: term().
is_flushed() ->
    Monitor = erlang:monitor(process, ?MODULE),
    _ = try ?MODULE ! {flush, self(), Monitor} catch error:badarg -> gone end,
    receive
        {Monitor, flushed} -> erlang:demonitor(Monitor, [flush]);
        {'DOWN', Monitor, process, _, Reason} -> Reason
    end.

%% @doc Waits, once for each dump of the log of Mnesia. If the process has ended, Mnesia stops. It
%% would take any other exit for a damaged log, and throw that away.
-spec flush_for_dump() -> ok.
flush_for_dump() ->
    Dump = ats_mnesia_log:find_commit(),
    case erlang:whereis(?MODULE) =:= undefined orelse get(?FLUSHED_FOR) =:= Dump of
        true ->
            ok;
        false ->
            is_flushed() =:= true orelse exit(fatal),
            _ = put(?FLUSHED_FOR, Dump),
            ok
    end.

%%--------------------------------------------------------------------------------------------
%% The process
%%--------------------------------------------------------------------------------------------

%% Processes of Mnesia that this one calls link themselves to it, and end before it.
%% @private
-spec init(pid()) -> no_return().
init(Parent) ->
    _ = process_flag(trap_exit, true),
    true = register(?MODULE, self()),
    ?QUEUE = ats:new(?QUEUE, [named_table, ordered_set, public]),
    Counts = make_counts(),
    proc_lib:init_ack({ok, self()}),
    loop(Parent, Counts).

%% Terms of this kind are costly to replace.
-spec make_counts() -> atomics:atomics_ref().
make_counts() ->
    case persistent_term:get(?COUNTS, none) of
        none ->
            Counts = atomics:new(2, [{signed, true}]),
            ok = persistent_term:put(?COUNTS, Counts),
            Counts;
        Counts ->
            ok = atomics:put(Counts, ?BYTES, 0),
            ok = atomics:put(Counts, ?AWAKE, 0),
            Counts
    end.

-spec loop(Parent :: pid(), atomics:atomics_ref()) -> no_return().
loop(Parent, Counts) ->
    receive
        work ->
            receive
                {flush, From, Tag} -> answer_flush(From, Tag, Counts)
            after ?COLLECT ->
                ok = make_all(Counts)
            end,
            loop(Parent, Counts);
        {flush, From, Tag} ->
            ok = answer_flush(From, Tag, Counts),
            loop(Parent, Counts);
        {'EXIT', Parent, Reason} ->
            exit(Reason);
        _ ->
            loop(Parent, Counts)
    end.

-spec answer_flush(pid(), reference(), atomics:atomics_ref()) -> ok.
answer_flush(From, Tag, Counts) ->
    ok = make_all(Counts),
    From ! {Tag, flushed},
    ok.

%% Makes the changes that are in the queue now. Whoever adds one later sends a message again.
-spec make_all(atomics:atomics_ref()) -> ok.
make_all(Counts) ->
    ok = atomics:put(Counts, ?AWAKE, 0),
    case ats:take_all_objects(?QUEUE) of
        [] ->
            ok;
        Changes ->
            Works = lists:foldr(fun add_change/2, #{}, Changes),
            ok = ats_mnesia_log:write_now(),
            ok = maps:foreach(fun make_changes/2, Works),
            atomics:sub(Counts, ?BYTES, lists:sum([element(2, Change) || Change <- Changes]))
    end.

%% The last change comes first.
-spec add_change(change(), #{dats:tab_name() => #work{}}) -> #{dats:tab_name() => #work{}}.
add_change({Number, _Bytes, Tab, Pending, Name, Function, Arguments}, Works) ->
    Work = case Works of
               #{Name := Found} -> Found;
               #{} -> #work{tab = Tab, pending = Pending, is_bag = dats:info(Name, type) =:= bag}
           end,
    Works#{Name => add_call(Function, Arguments, Number, Work)}.

%% Objects that are inserted one after the other go into a table as one. Of those with one key the
%% last remains, unless the table is a bag.
-spec add_call(Function :: atom(), [term()], ats_mnesia_pending:change_number(), #work{}) ->
          #work{}.
add_call(take, [Table, Key], Number, Work) ->
    {Function, Argument} = read_counter(Table, Key),
    add_call(Function, [Argument], Number, Work);
add_call(insert, [Objects], Number, Work) when is_list(Objects) ->
    Add = fun(Object, Changed) -> add_call(insert, [Object], Number, Changed) end,
    lists:foldr(Add, Work, Objects);
add_call(insert, [Object], Number, #work{inserts = Objects, keys = Keys} = Work) ->
    Key = element(2, Object),
    case Keys of
        #{Key := _} when not Work#work.is_bag ->
            Work;
        #{} ->
            note(insert, [Object], Number,
                 Work#work{inserts = [Object | Objects], keys = Keys#{Key => later}})
    end;
add_call(Function, Arguments, Number, Work) ->
    #work{calls = Calls} = Joined = join_inserts(Work),
    note(Function, Arguments, Number, Joined#work{calls = [{Function, Arguments} | Calls]}).

%% Reads a counter from memory, since the order in which others have changed it is not known. This
%% must be done before the log is written.
-spec read_counter(ats:table(), Key :: term()) -> {insert, tuple()} | {delete, Key :: term()}.
read_counter(Table, Key) ->
    case ats:lookup(Table, Key) of
        [] -> {delete, Key};
        [Object] -> {insert, Object}
    end.

-spec join_inserts(#work{}) -> #work{}.
join_inserts(#work{inserts = []} = Work) ->
    Work;
join_inserts(#work{inserts = Objects, calls = Calls} = Work) ->
    Work#work{inserts = [], keys = #{}, calls = [{insert, [Objects]} | Calls]}.

-spec note(Function :: atom(), [term()], ats_mnesia_pending:change_number(), #work{}) -> #work{}.
note(_Function, _Arguments, _Number, #work{pending = none} = Work) ->
    Work;
note(Function, [Argument], Number, #work{noted = Noted} = Work) ->
    Work#work{noted = [{Number, Function, Argument} | Noted]}.

-spec make_changes(dats:tab_name(), #work{}) -> ok.
make_changes(Name, #work{tab = Tab, pending = Pending, noted = Noted} = Work) ->
    #work{calls = Calls} = join_inserts(Work),
    lists:foreach(fun({Function, Arguments}) ->
                          case attempt(Name, Function, Arguments) of
                              {ok, _} -> ok;
                              {badarg, _} -> give_up(Tab, "badarg");
                              {failed, Why} -> give_up(Tab, Why)
                          end
                  end, Calls),
    lists:foreach(fun({Number, Function, Argument}) ->
                          ats_mnesia_pending:remove(Pending, Number, Function, Argument)
                  end, Noted).

%% Mnesia waits until this process has ended when it stops.
-spec give_up(ats_mnesia:tab(), Why :: unicode:chardata()) -> no_return().
give_up(Tab, Why) ->
    _ = spawn(fun() -> stop(Tab, Why) end),
    exit({ats_mnesia, Tab}).

%% @private @doc Observation of the tables of `ets' of a running node: the calls of each, and its
%% gain or loss on `ats'. See {@link ats:observe/1}.
%%
%% Calls are sampled by tracing, in turns of a quarter of a second. A turn ends early when it has
%% seen its share of calls, so that a busy node is traced for a few milliseconds of each turn, and a
%% quiet one throughout. A process of its own, with a high priority, gets the messages of the
%% tracer. It ends with the caller, and the tracing with it.
-module(ats_observe).

-export([run/1, sample/1]).

-export_type([options/0, observed/0]).

-type options() :: #{time => pos_integer(), calls => pos_integer(), lines => pos_integer()}.
%% Milliseconds of the observation, 5000 if missing; calls that each second may be seen at most,
%% 4000; and lines to print, 20.

-type use() :: #{reads := non_neg_integer(), writes := non_neg_integer(),
                 scans := non_neg_integer(), ranges := non_neg_integer(),
                 readers := non_neg_integer(), writers := non_neg_integer()}.
%% Calls that were seen: of one key or the next one, that change objects, that read the whole table
%% on both, and that read it on `ets' and a part of it on `ats'. Processes are counted up to
%% `?MOST_PROCESSES'.

-type observed() :: #{table := ets:table(), name := atom(), type := atom(), size := integer(),
                      memory := integer(), owner := pid(), use := use()}.

-define(TRACED, "another process traces this node, and only Erlang/OTP 27 and later have trace "
                "sessions beside each other").
-define(TURN_MS, 250).
%% Callers of one table that are told from each other.
-define(MOST_PROCESSES, 64).
%% The longest observation, and the most calls that each second may be seen.
-define(MOST_MS, 3600_000).
-define(MOST_CALLS, 100_000).
%% Objects from which on a table is larger than the caches of processors, and below which the
%% overhead of a native call is most of its time.
-define(WIDE, 100_000).
-define(SMALL, 1000).

%%--------------------------------------------------------------------------------------------
%% Calls
%%--------------------------------------------------------------------------------------------

%% @doc Observes the node, and prints a line for each table, those with most calls first.
-spec run(options()) -> ok.
run(Options) ->
    #{lines := Lines} = Parsed = parse(Options),
    {Seconds, Tables} = sample_parsed(Parsed),
    print(Seconds, Tables, Lines).

%% @doc Observes the node. Returns for how many seconds calls were seen, and the tables that had
%% some, those with most first.
-spec sample(options()) -> {Seconds :: float(), [observed()]}.
sample(Options) -> sample_parsed(parse(Options)).

-spec sample_parsed(parsed()) -> {Seconds :: float(), [observed()]}.
sample_parsed(#{time := Time, calls := Calls}) ->
    Caller = self(),
    %% Others that are ready to run must not delay the end of a turn.
    {Pid, Monitor} = spawn_opt(fun() -> observe(Caller, Time, Calls) end,
                               [monitor, {priority, high}]),
    receive
        {Pid, Answer} ->
            erlang:demonitor(Monitor, [flush]),
            case Answer of
                is_traced -> ats_hints:refuse(1, ?TRACED, []);
                {_, _} -> Answer
            end;
        {'DOWN', Monitor, process, Pid, Reason} ->
            exit(Reason)
    end.

-type parsed() :: #{time := pos_integer(), calls := pos_integer(), lines := pos_integer()}.

-spec parse(term()) -> parsed().
parse(Options) when is_map(Options) ->
    maps:foreach(fun option/2, Options),
    maps:merge(#{time => 5000, calls => 4000, lines => 20}, Options);
parse(_) ->
    invalid("the options are not a map").

-spec option(term(), term()) -> ok.
option(time, Ms) when is_integer(Ms), Ms > 0, Ms =< ?MOST_MS -> ok;
option(calls, Number) when is_integer(Number), Number > 0, Number =< ?MOST_CALLS -> ok;
option(lines, Number) when is_integer(Number), Number > 0 -> ok;
option(time, _) -> invalid("`time' is not a number of milliseconds from 1 to an hour");
option(calls, _) -> invalid("`calls' is not a number from 1 to 100,000");
option(lines, _) -> invalid("`lines' is not a positive number");
option(Unknown, _) -> invalid(ats_hints:unknown_option(Unknown, [time, calls, lines])).

-spec invalid(unicode:chardata()) -> no_return().
invalid(Words) ->
    ats_hints:refuse(1, "invalid options: ~ts", [Words]).

%%--------------------------------------------------------------------------------------------
%% The process that observes
%%--------------------------------------------------------------------------------------------

-record(state, {caller :: reference(),
                %% Calls that a turn may see.
                share :: pos_integer(),
                %% Milliseconds in which calls were seen.
                seen_ms = 0 :: number(),
                tables = #{} :: #{ets:tid() => {use(), #{pid() => []}, #{pid() => []}}},
                %% The part of a table that a query reads, by the hash of its specification.
                queries = #{} :: #{integer() => ranges | scans | reads}}).

-spec observe(pid(), pos_integer(), pos_integer()) -> term().
observe(Caller, Time, Calls) ->
    State = #state{caller = monitor(process, Caller), share = max(1, Calls * ?TURN_MS div 1000)},
    Answer = case begin_session() of
                 is_traced ->
                     is_traced;
                 Session ->
                     Seen = try
                                turns(Session, now_ms() + Time, State)
                            after
                                end_session(Session)
                            end,
                     {Seen#state.seen_ms / 1000, observed(Seen)}
             end,
    Caller ! {self(), Answer}.

-spec turns(term(), number(), #state{}) -> #state{}.
turns(Session, End, #state{caller = Caller, share = Share} = State) ->
    Begin = now_ms(),
    case Begin >= End of
        true ->
            State;
        false ->
            TurnEnd = min(Begin + ?TURN_MS, End),
            trace(Session, true),
            Seen = calls(Share, TurnEnd, State),
            trace(Session, false),
            Ms = now_ms() - Begin,
            %% Messages that were sent until the tracer ended belong to the turn.
            All = rest(Seen#state{seen_ms = State#state.seen_ms + Ms}),
            receive {'DOWN', Caller, process, _, _} -> exit(normal)
            after max(0, ceil(TurnEnd - now_ms())) -> turns(Session, End, All)
            end
    end.

%% Receives calls until the turn ends, or has seen its share.
-spec calls(non_neg_integer(), number(), #state{}) -> #state{}.
calls(0, _End, State) ->
    State;
calls(Left, End, State) ->
    receive
        {trace, Pid, call, {ets, Function, _}, Subject} ->
            calls(Left - 1, End, seen(Pid, Function, Subject, State))
    after max(0, ceil(End - now_ms())) -> State
    end.

-spec rest(#state{}) -> #state{}.
rest(State) ->
    Delivered = erlang:trace_delivered(all),
    rest(Delivered, State).

-spec rest(reference(), #state{}) -> #state{}.
rest(Delivered, State) ->
    receive
        {trace, Pid, call, {ets, Function, _}, Subject} ->
            rest(Delivered, seen(Pid, Function, Subject, State));
        {trace_delivered, all, Delivered} ->
            State
    end.

-spec now_ms() -> float().
now_ms() -> erlang:monotonic_time(microsecond) / 1000.

%%--------------------------------------------------------------------------------------------
%% Tracing
%%--------------------------------------------------------------------------------------------

%% Returns the kind of the calls of a function. All of those that are observed are built into the
%% emulator, and have the table as their first argument. Others call these.
-spec kind(atom()) -> reads | writes | query | other.
kind(lookup) -> reads;
kind(lookup_element) -> reads;
kind(member) -> reads;
kind(next) -> reads;
kind(prev) -> reads;
kind(first) -> reads;
kind(last) -> reads;
kind(next_lookup) -> reads;
kind(prev_lookup) -> reads;
kind(first_lookup) -> reads;
kind(last_lookup) -> reads;
kind(insert) -> writes;
kind(insert_new) -> writes;
kind(delete) -> writes;
kind(delete_object) -> writes;
kind(delete_all_objects) -> writes;
kind(update_counter) -> writes;
kind(update_element) -> writes;
kind(take) -> writes;
kind(match) -> query;
kind(match_object) -> query;
kind(select) -> query;
kind(select_reverse) -> query;
kind(select_count) -> query;
kind(select_delete) -> query;
kind(select_replace) -> query;
kind(_) -> other.

%% Returns the patterns of the calls that are traced, each with the arguments that a message has. A
%% change of a pattern waits for all schedulers, so they are few: first all functions, with the
%% table, and then queries, also with the specification.
-spec patterns() -> [{{module(), atom(), '_'}, [tuple()]}].
patterns() ->
    First = {hd, '$_'},
    Two = {{First, {hd, {tl, '$_'}}}},
    [{{ets, '_', '_'}, [{'_', [], [{message, First}]}]}
     | [{{ets, Function, '_'}, [{'_', [], [{message, Two}]}]}
        || Function <- [match, match_object, select, select_reverse, select_count, select_delete,
                        select_replace]]].

%% Begins to trace: in a session of its own, if this release of Erlang/OTP has such.
-spec begin_session() -> {session, module(), term()} | global | is_traced.
begin_session() ->
    Patterns = patterns(),
    case list_to_integer(erlang:system_info(otp_release)) >= 27 of
        true ->
            Module = trace,
            Session = Module:session_create(?MODULE, self(), []),
            _ = [Module:function(Session, Called, Spec, []) || {Called, Spec} <- Patterns],
            {session, Module, Session};
        false ->
            %% Looking for the module would ask the server of code, which takes many turns of a
            %% busy node.
            case is_traced() of
                true ->
                    is_traced;
                false ->
                    _ = [erlang:trace_pattern(Called, Spec, []) || {Called, Spec} <- Patterns],
                    global
            end
    end.

%% Tells whether somebody else traces: a process has one tracer, which would lose its flags.
-spec is_traced() -> boolean().
is_traced() ->
    HasTracer = fun(Traced) ->
                        case erlang:trace_info(Traced, tracer) of
                            {tracer, []} -> false;
                            undefined -> false;
                            _ -> true
                        end
                end,
    %% A process that observed the node and was killed has left its patterns.
    Own = [Spec || {_, Spec} <- patterns()],
    IsSet = fun({Function, Arity}) ->
                    {match_spec, Spec} = erlang:trace_info({ets, Function, Arity}, match_spec),
                    Spec =/= false andalso not lists:member(Spec, Own)
            end,
    HasTracer(new_processes) orelse lists:any(HasTracer, processes() -- [self()])
        orelse lists:any(IsSet, ets:module_info(exports)).

-spec trace({session, module(), term()} | global, boolean()) -> non_neg_integer().
trace({session, Module, Session}, IsOn) -> Module:process(Session, all, IsOn, [call, arity]);
trace(global, IsOn) -> erlang:trace(processes, IsOn, [call, arity]).

-spec end_session({session, module(), term()} | global) -> term().
end_session({session, Module, Session}) ->
    Module:session_destroy(Session);
end_session(global) ->
    trace(global, false),
    erlang:trace_pattern({ets, '_', '_'}, false, []).

%%--------------------------------------------------------------------------------------------
%% Counting
%%--------------------------------------------------------------------------------------------

-spec seen(pid(), atom(), term(), #state{}) -> #state{}.
seen(Pid, Function, {Name, Spec}, State) ->
    case table(Name) of
        undefined ->
            State;
        Table ->
            {Reads, Counted} = reads_of_query(Table, Spec, is_match(Function), State),
            Writes = lists:member(Function, [select_delete, select_replace]),
            count(Table, Pid, [Reads | [writes || Writes]], Counted)
    end;
seen(Pid, Function, Name, State) ->
    case {kind(Function), table(Name)} of
        {Kind, Table} when Table =/= undefined, Kind =/= other, Kind =/= query ->
            count(Table, Pid, [Kind], State);
        _ ->
            State
    end.

-spec is_match(atom()) -> boolean().
is_match(Function) -> Function =:= match orelse Function =:= match_object.

%% Returns the identifier of a table, which may have ended meanwhile, or be none.
-spec table(term()) -> ets:tid() | undefined.
table(Name) when is_atom(Name) -> ets:whereis(Name);
table(Table) when is_reference(Table) -> Table;
table(_) -> undefined.

-spec count(ets:tid(), pid(), [atom()], #state{}) -> #state{}.
count(Table, Pid, Kinds, #state{tables = Tables} = State) ->
    New = {#{reads => 0, writes => 0, scans => 0, ranges => 0}, #{}, #{}},
    {Use, Readers, Writers} = maps:get(Table, Tables, New),
    Counted = lists:foldl(fun(Kind, Counts) -> Counts#{Kind := map_get(Kind, Counts) + 1} end, Use,
                          Kinds),
    Entry = case lists:member(writes, Kinds) of
                true -> {Counted, Readers, with_process(Pid, Writers)};
                false -> {Counted, with_process(Pid, Readers), Writers}
            end,
    State#state{tables = Tables#{Table => Entry}}.

-spec with_process(pid(), #{pid() => []}) -> #{pid() => []}.
with_process(Pid, Processes) when map_size(Processes) < ?MOST_PROCESSES -> Processes#{Pid => []};
with_process(_Pid, Processes) -> Processes.

%% Returns the part of a table that a query reads: a few keys, all of the table, or all of it on
%% `ets' only.
-spec reads_of_query(ets:tid(), term(), boolean(), #state{}) ->
          {reads | scans | ranges, #state{}}.
reads_of_query(Table, Spec, IsMatch, #state{queries = Queries} = State) ->
    Hash = erlang:phash2({Table, Spec, IsMatch}, 1 bsl 32),
    case Queries of
        #{Hash := Reads} ->
            {Reads, State};
        #{} ->
            Clauses = case IsMatch of
                          true -> [{Spec, [], ['$_']}];
                          false -> Spec
                      end,
            Reads = reads_of_clauses(ets:info(Table, type), ets:info(Table, keypos), Clauses),
            %% A program that makes a specification for each call has many.
            Kept = case map_size(Queries) < 1000 of
                       true -> Queries;
                       false -> #{}
                   end,
            {Reads, State#state{queries = Kept#{Hash => Reads}}}
    end.

-spec reads_of_clauses(atom(), pos_integer() | undefined, term()) -> reads | scans | ranges.
reads_of_clauses(Type, KeyPos, Clauses) when is_list(Clauses), is_integer(KeyPos) ->
    case lists:all(fun(Clause) -> is_bound(Type, KeyPos, Clause) end, Clauses) of
        true -> reads;
        false -> reads_on_ats(Type, KeyPos, Clauses)
    end;
reads_of_clauses(_Type, _KeyPos, _Clauses) ->
    reads.

%% Tells whether `ets' finds the objects of a clause by their key: it has no variable, or begins
%% with something that has none, in a table with order.
-spec is_bound(atom(), pos_integer(), term()) -> boolean().
is_bound(Type, KeyPos, {Head, _, _}) when is_tuple(Head), tuple_size(Head) >= KeyPos ->
    Key = element(KeyPos, Head),
    is_ground(Key) orelse Type =:= ordered_set andalso begins_bound(Key);
is_bound(_Type, _KeyPos, _Clause) ->
    false.

-spec begins_bound(term()) -> boolean().
begins_bound([First | _]) -> is_ground(First) orelse begins_bound(First);
begins_bound(Key) when tuple_size(Key) > 0 ->
    is_ground(element(1, Key)) orelse begins_bound(element(1, Key));
begins_bound(_) -> false.

-spec is_ground(term()) -> boolean().
is_ground('_') -> false;
is_ground(Atom) when is_atom(Atom) ->
    case atom_to_list(Atom) of
        [$$ | Digits] -> Digits =:= [] orelse not lists:all(fun is_digit/1, Digits);
        _ -> true
    end;
is_ground(Tuple) when is_tuple(Tuple) -> lists:all(fun is_ground/1, tuple_to_list(Tuple));
is_ground([First | Rest]) -> is_ground(First) andalso is_ground(Rest);
is_ground(Map) when is_map(Map) -> lists:all(fun is_ground/1, maps:values(Map));
is_ground(_) -> true.

-spec is_digit(char()) -> boolean().
is_digit(Character) -> Character >= $0 andalso Character =< $9.

%% Asks an empty table of the same kind. Terms that are no specification are left to `ets'.
-spec reads_on_ats(atom(), pos_integer(), list()) -> reads | scans | ranges.
reads_on_ats(Type, KeyPos, Clauses) ->
    Table = ats_options:create(?MODULE, [Type, {keypos, KeyPos}]),
    try ats_nif:explain(Table, Clauses) of
        {everything, _, _, _, _} -> scans;
        {_, Plan, _, _, _} -> reads_of_plan(Plan)
    catch
        error:_ -> reads
    after
        ats_nif:delete(Table)
    end.

%% Conditions on the form of keys spare little of a table, whose keys mostly have the same.
-spec reads_of_plan(binary()) -> scans | ranges.
reads_of_plan(Plan) ->
    Forms = "^(Key = ([_,{}|\\[\\]]|[a-z]+\\(\\))*\n)*$",
    case re:run(Plan, Forms, [{capture, none}]) of
        match -> scans;
        nomatch -> ranges
    end.

%% Returns the tables that are still there, those with most calls first.
-spec observed(#state{}) -> [observed()].
observed(#state{tables = Tables}) ->
    All = [described(Table, Use#{readers => map_size(maps:without(maps:keys(Writers), Readers)),
                                 writers => map_size(Writers)}, Info)
           || {Table, {Use, Readers, Writers}} <- maps:to_list(Tables),
              Info <- [ets:info(Table)], Info =/= undefined],
    lists:sort(fun(#{use := One}, #{use := Other}) -> calls(One) >= calls(Other) end, All).

-spec described(ets:tid(), use(), [{atom(), term()}]) -> observed().
described(Table, Use, Info) ->
    #{name := Name, type := Type, size := Size, memory := Words, owner := Owner} =
        maps:from_list(Info),
    #{table => Table, name => Name, type => Type, size => Size, owner => Owner, use => Use,
      memory => Words * erlang:system_info(wordsize)}.

-spec calls(use()) -> non_neg_integer().
calls(#{reads := Reads, writes := Writes, scans := Scans, ranges := Ranges}) ->
    Reads + Writes + Scans + Ranges.

%%--------------------------------------------------------------------------------------------
%% Printing
%%--------------------------------------------------------------------------------------------

%% Characters of the columns, at least.
-define(LEAST, [24, 13, 9, 9, 9, 7, 9]).

-spec print(float(), [observed()], pos_integer()) -> ok.
print(Seconds, Tables, Lines) ->
    Calls = lists:sum([calls(Use) || #{use := Use} <- Tables]),
    io:format("~b calls of ets in ~.2f seconds that were watched, on ~b tables~n",
              [Calls, Seconds, length(Tables)]),
    Rows = [["table", "type", "objects", "calls/s", "writes", "scans", "processes", "on ats"]
            | [row(Seconds, Table) || Table <- lists:sublist(Tables, Lines)]],
    Widths = ats_columns:widths(Rows, ?LEAST),
    _ = [io:format("~ts~n", [ats_columns:line(Row, Widths)]) || Row <- Rows],
    length(Tables) =< Lines orelse
        io:format("... and ~b with fewer calls~n", [length(Tables) - Lines]),
    io:format("writes and scans: of the calls; a scan reads the whole table. Ratios: of the~n"
              "experiments integers-wide and integers-hot of ats, on two processors.~n").

-spec row(float(), observed()) -> [unicode:chardata()].
row(Seconds, #{type := Type, size := Size, use := Use} = Table) ->
    #{writes := Writes, scans := Scans, ranges := Ranges, readers := Readers, writers := Writers} =
        Use,
    Calls = calls(Use),
    [name(Table), atom_to_list(Type), integer_to_list(Size),
     integer_to_list(round(Calls / max(0.001, Seconds))), percent(Writes, Calls),
     percent(Scans + Ranges, Calls), processes(Readers + Writers), advice(Table)].

-spec name(observed()) -> unicode:chardata().
name(#{table := Table, name := Name}) ->
    case ets:whereis(Name) of
        Table -> io_lib:format("~tp", [Name]);
        _ -> io_lib:format("~tp ~w", [Name, Table])
    end.

-spec percent(non_neg_integer(), non_neg_integer()) -> string().
percent(_Part, 0) -> "-";
percent(0, _All) -> "-";
percent(Part, All) when Part * 100 < All -> "<1%";
percent(Part, All) -> integer_to_list(Part * 100 div All) ++ "%".

-spec processes(non_neg_integer()) -> string().
processes(Number) when Number >= ?MOST_PROCESSES -> integer_to_list(?MOST_PROCESSES) ++ "+";
processes(Number) -> integer_to_list(Number).

%% Returns the gain or the loss of the table on `ats', in words.
-spec advice(observed()) -> unicode:chardata().
advice(#{size := Size, use := #{ranges := Ranges}}) when Ranges > 0, Size > ?SMALL ->
    "ranges: queries read a part of it, not all";
advice(#{size := Size, use := #{scans := Scans}}) when Scans > 0, Size > ?SMALL ->
    "queries of one moment; a view or another key would spare scans";
advice(#{type := Type, size := Size}) when Size >= ?WIDE ->
    case Type of
        ordered_set -> "2 to 4 times as fast";
        _ -> "1.5 to 2 times as fast"
    end;
advice(#{use := #{readers := Readers, writers := Writers}}) when Readers + Writers > 1 ->
    case Writers of
        0 -> "about as fast";
        _ -> "about as fast, and more so on more processors"
    end;
advice(_) ->
    "stay: one process, half as fast".

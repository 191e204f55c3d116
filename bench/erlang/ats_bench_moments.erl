%% @private @doc Measures the cost of queries of one moment: this version of `ats' beside another
%% one.
%%
%% Each version has a virtual machine of its own, and these take turns: a round of a row is a short
%% run in the one and one in the other, first the one and then the other in every second round. The
%% result is the median of the ratios within rounds, with the least and the largest beside it.
%%
%% `updates' are objects put over others, `counters' are `update_counter/3', `lists' are inserts of
%% ten objects; in a table of 100,000 objects, by one process and by two, first alone and then
%% beside a process that queries all the time. The rate of that one is in the rows `queries'. The
%% rows `calls' are calls on small tables, which have `ets' as a third side.
%%
%% On a machine that others use, too, `--clock processor' gives rates in a second of the time that
%% the processors spend on a virtual machine, of the rows in which no process queries beside others.
%%
%% Good for: the cost of a version. Not good for: the time of a query beside writers, which depends
%% on how the schedulers share the processors.
-module(ats_bench_moments).

-export([main/1]).
-export([prepare/0, by_clock/3, writers/5, reading/3, calls/4]).

-define(OBJECTS, 100000).
-define(SPAN, {integers, 0, ?OBJECTS}).
-define(TYPES, [set, ordered_set]).
-define(WORKS, [{"updates", insert}, {"counters", counter}, {"lists", insert_list}]).
-define(SMALL, [1, 10, 100, 1000]).
-define(TABLES, {?MODULE, tables}).
-define(ALL, [{'_', [], ['$_']}]).

-record(options, {before = none :: none | file:filename(),
                  rounds = 7 :: pos_integer(),
                  run_ms = 400 :: pos_integer(),
                  clock = wall :: wall | processor,
                  only = all :: all | string(),
                  results = "bench/results" :: string()}).

%% A name, a type of tables, a number of processes, the sides, and the run of a side in a round. It
%% tells a rate for each of some suffixes of the name.
-record(row, {name :: string(),
              type :: ats:table_type(),
              processes = 1 :: pos_integer(),
              sides = ["ats", "before"] :: [string()],
              call :: {Function :: atom(), fun((Round :: pos_integer()) -> [term()])}}).

%%--------------------------------------------------------------------------------------------
%% Command
%%--------------------------------------------------------------------------------------------

%% @doc Runs the benchmark and stops the virtual machine. Arguments: `--before FOLDER' (that has
%% `ebin' and `priv' of the other version; it must be given), `--quick', `--rounds N', `--ms N'
%% (length of a run), `--clock wall' or `--clock processor', `--only TEXT' (rows whose title
%% contains it), `--results FOLDER'.
-spec main([string()]) -> no_return().
main(Args) ->
    Usage = "ats_bench_moments --before FOLDER [--quick] [--rounds N] [--ms N] "
            "[--clock wall | processor] [--only TEXT] [--results FOLDER]",
    ats_bench_command:run(Usage, fun() -> measure(options(Args, #options{})) =:= ok end).

options([], #options{before = none}) ->
    throw({usage, "the other version is missing"});
options([], Options) ->
    Options;
options(["--before", Folder | Rest], Options) ->
    options(Rest, Options#options{before = Folder});
options(["--quick" | Rest], Options) ->
    options(Rest, Options#options{rounds = 3, run_ms = 20});
options(["--rounds", N | Rest], Options) ->
    options(Rest, Options#options{rounds = ats_bench_command:positive(N)});
options(["--ms", N | Rest], Options) ->
    options(Rest, Options#options{run_ms = ats_bench_command:positive(N)});
options(["--clock", Clock | Rest], Options) when Clock =:= "wall"; Clock =:= "processor" ->
    options(Rest, Options#options{clock = list_to_atom(Clock)});
options(["--only", Text | Rest], Options) ->
    options(Rest, Options#options{only = Text});
options(["--results", Folder | Rest], Options) ->
    options(Rest, Options#options{results = Folder});
options([What | _], _) ->
    ats_bench_command:unknown(What).

measure(#options{before = Before, results = Results} = Options) ->
    Facts = ats_bench_report:machine_facts(),
    ats_bench_report:print_facts(Facts),
    Machines = #{"ats" => start(filename:dirname(code:which(ats))),
                 "before" => start(filename:join(Before, "ebin"))},
    io:format("~n~-42s ~-11s ~1s ~12s ~7s ~7s ~7s ~8s~n",
              ["rate of ats, and over the other side", "type", "P", "a second", "median", "least",
               "most", "side"]),
    Rows = [Found || #row{name = Name} = Row <- rows(Options),
                     ats_bench_command:is_chosen(Name, Options#options.only),
                     Found <- measure_row(Row, Machines, Options)],
    io:format("~nwritten to ~ts~n", [ats_bench_report:write("moments", Rows, Facts, Results)]).

start(Ebin) ->
    Bench = filename:dirname(code:which(?MODULE)),
    {ok, Machine, _} = peer:start_link(#{connection => standard_io, wait_boot => 30000,
                                         args => ["+sbwt", "none", "-pa", Bench, "-pa", Ebin]}),
    %% Checks the path, so that the wrong version is not measured.
    Ebin = filename:dirname(peer:call(Machine, code, which, [ats])),
    ok = peer:call(Machine, ?MODULE, prepare, []),
    Machine.

%%--------------------------------------------------------------------------------------------
%% Rows
%%--------------------------------------------------------------------------------------------

rows(#options{run_ms = Ms, clock = Clock}) ->
    [write_row("lookups, no query", Type, lookup, P, none, Ms) || Type <- ?TYPES, P <- [1, 2]]
    ++ [write_row(Name ++ Suffix, Type, Work, P, Reader, Ms)
        || {Suffix, Reader} <- [{", no query", none}, {", queried", query}],
           Reader =:= none orelse Clock =:= wall,
           Type <- ?TYPES, {Name, Work} <- ?WORKS, P <- [1, 2]]
    ++ [#row{name = "scans, " ++ atom_to_list(Query), type = Type,
             call = {reading, fun(_) -> [Type, Query, Ms] end}}
        || Type <- ?TYPES, Query <- [tab2list, select, range], has(Type, Query)]
    ++ [#row{name = lists:concat(["calls, ", Call, " of ", Size]), type = Type,
             sides = ["ats", "before", "ets"],
             call = {calls, fun(_) -> [Type, Call, Size, Ms] end}}
        || Type <- ?TYPES, Size <- ?SMALL, Call <- [select_first, select_all, foldl, tab2list]].

write_row(Name, Type, Work, P, Reader, Ms) ->
    Arguments = fun(Round) ->
                        Seeds = [1000 * Round + N || N <- lists:seq(1, P)],
                        [Type, {only, Work}, Seeds, Reader, Ms]
                end,
    #row{name = Name, type = Type, processes = P, call = {writers, Arguments}}.

has(Type, range) -> Type =:= ordered_set;
has(_, _) -> true.

measure_row(#row{sides = Sides} = Row, Machines, #options{rounds = Count, clock = Clock}) ->
    Rounds = [maps:from_list([{Side, run(Row, Side, Machines, {Clock, Round})}
                              || Side <- ats_bench_sides:turned(Round, Sides)])
              || Round <- lists:seq(1, Count)],
    [print(found(Row, Suffix, Rounds)) || Suffix <- maps:keys(maps:get("ats", hd(Rounds)))].

run(#row{call = {calls, Arguments}}, "ets", Machines, {Clock, Round}) ->
    [Type | Rest] = Arguments(Round),
    run(maps:get("ats", Machines), [Clock, calls, [{ets, Type} | Rest]]);
run(#row{call = {Function, Arguments}}, Side, Machines, {Clock, Round}) ->
    run(maps:get(Side, Machines), [Clock, Function, Arguments(Round)]).

run(Machine, Arguments) -> peer:call(Machine, ?MODULE, by_clock, Arguments, infinity).

found(#row{name = Name, type = Type, processes = P, sides = Sides}, Suffix, Rounds) ->
    Rates = [maps:from_list([{{Side, P}, maps:get(Suffix, maps:get(Side, Round))} || Side <- Sides])
             || Round <- Rounds],
    Labels = #{name => Name ++ Suffix, field => moments, keys => "Int", set => cache,
               type => Type, loop_ns => null},
    [Found] = ats_bench_report:workload_rows(Labels, Sides, [P], Rates),
    Found.

print(#{name := Name, type := Type, processes := P, sides := [Ours | Others],
        rates := Rates} = Row) ->
    [begin
         Ratios = lists:zipwith(fun(Mine, Theirs) -> Mine / Theirs end,
                                maps:get(Ours, Rates), maps:get(Side, Rates)),
         io:format("~-42s ~-11s ~b ~12b ~7.2f ~7.2f ~7.2f ~8s~n",
                   [Name, Type, P, round(ats_bench_report:median(maps:get(Ours, Rates))),
                    ats_bench_report:median(Ratios), lists:min(Ratios), lists:max(Ratios), Side])
     end || Side <- Others],
    Row.

%%--------------------------------------------------------------------------------------------
%% The virtual machine of a version
%%--------------------------------------------------------------------------------------------

%% @doc Makes the tables, which stay as long as the virtual machine.
-spec prepare() -> ok.
prepare() ->
    Caller = self(),
    _ = spawn(fun() ->
                      Large = [{{ats, Type, ?OBJECTS}, filled(ats, Type, ?OBJECTS)}
                               || Type <- ?TYPES],
                      Small = [{{Module, Type, Size}, filled(Module, Type, Size)}
                               || Module <- [ats, ets], Type <- ?TYPES, Size <- ?SMALL],
                      persistent_term:put(?TABLES, maps:from_list(Large ++ Small)),
                      Caller ! prepared,
                      receive stop -> ok end
              end),
    receive prepared -> ok end.

filled(Module, Type, Size) ->
    Table = Module:new(benchmark, [Type, public]),
    _ = [Module:insert(Table, {N - 1, 0}) || N <- ats_bench_keys:shuffled(Size, 1)],
    Table.

table(Module, Type, Size) -> maps:get({Module, Type, Size}, persistent_term:get(?TABLES)).

%% @doc Returns the rates that a function of this module tells, in seconds of a clock.
-spec by_clock(wall | processor, atom(), [term()]) -> #{string() => float()}.
by_clock(wall, Function, Arguments) ->
    apply(?MODULE, Function, Arguments);
by_clock(processor, Function, Arguments) ->
    Start = erlang:monotonic_time(),
    {Before, _} = statistics(runtime),
    Rates = apply(?MODULE, Function, Arguments),
    {After, _} = statistics(runtime),
    Seconds = seconds_since(Start),
    maps:map(fun(_, Rate) -> 1000 * Rate * Seconds / max(1, After - Before) end, Rates).

%% @doc Operations a second of writers, and objects a second that a reader beside them has read.
-spec writers(ats:table_type(), ats_bench_run:work(), [pos_integer()], none | query,
              pos_integer()) -> #{string() => float()}.
writers(Type, Work, Seeds, Reader, Ms) ->
    Table = table(ats, Type, ?OBJECTS),
    Run = fun() -> ats_bench_run:rate({ats_bench_ats, Table}, Work, ?SPAN, Seeds, Ms) end,
    case Reader of
        none ->
            #{"" => Run()};
        query ->
            Queries = [Query || Query <- [tab2list, select, range], has(Type, Query)],
            {Pid, Monitor} = spawn_monitor(fun() -> read_until_told(Table, Queries) end),
            Rate = Run(),
            Pid ! {tell, self()},
            Read = receive
                       {read, Pid, ObjectsASecond} -> ObjectsASecond;
                       {'DOWN', Monitor, process, Pid, Reason} -> error(Reason)
                   end,
            true = demonitor(Monitor, [flush]),
            #{"" => Rate, ", its queries" => Read}
    end.

%% @doc Objects a second that one reader reads by a query, all the time, beside no writer.
-spec reading(ats:table_type(), atom(), pos_integer()) -> #{string() => float()}.
reading(Type, Query, Ms) ->
    Table = table(ats, Type, ?OBJECTS),
    {Pid, _} = spawn_monitor(fun() -> read_until_told(Table, [Query]) end),
    timer:sleep(Ms),
    Pid ! {tell, self()},
    receive {read, Pid, ObjectsASecond} -> #{"" => ObjectsASecond} end.

read_until_told(Table, Queries) -> read(Table, Queries, Queries, 0, erlang:monotonic_time()).

read(Table, [], Queries, Count, Start) ->
    receive
        {tell, Whom} -> Whom ! {read, self(), Count / seconds_since(Start)}
    after 0 -> read(Table, Queries, Queries, Count, Start)
    end;
read(Table, [Query | Rest], Queries, Count, Start) ->
    read(Table, Rest, Queries, Count + query(Query, Table), Start).

seconds_since(Start) ->
    erlang:convert_time_unit(erlang:monotonic_time() - Start, native, nanosecond) / 1.0e9.

%% Returns the number of objects that a query has looked at.
query(tab2list, Table) -> length(ats:tab2list(Table));
query(range, Table) -> length(ats:range(Table, 0, ?OBJECTS));
query(select, Table) ->
    [] = ats:select(Table, [{{'_', '$1'}, [{'<', '$1', 0}], ['$1']}]),
    ?OBJECTS.

%% @doc Calls a second on a small table.
-spec calls(ats:table_type() | {ets, ats:table_type()}, atom(), pos_integer(), pos_integer()) ->
          #{string() => float()}.
calls({ets, Type}, Call, Size, Ms) -> calls(ets, Type, Call, Size, Ms);
calls(Type, Call, Size, Ms) -> calls(ats, Type, Call, Size, Ms).

calls(Module, Type, Call, Size, Ms) ->
    Table = table(Module, Type, Size),
    Deadline = erlang:monotonic_time(millisecond) + Ms,
    Run = fun() -> calls_until(Deadline, Module, Call, Table, 0, erlang:monotonic_time()) end,
    #{"" => ats_bench_run:in_process(Run)}.

calls_until(Deadline, Module, Call, Table, Count, Start) ->
    _ = [small(Call, Module, Table) || _ <- lists:seq(1, 100)],
    case erlang:monotonic_time(millisecond) < Deadline of
        true -> calls_until(Deadline, Module, Call, Table, Count + 100, Start);
        false -> (Count + 100) / seconds_since(Start)
    end.

small(select_first, Module, Table) -> Module:select(Table, ?ALL, 10);
small(select_all, Module, Table) -> to_the_end(Module, Module:select(Table, ?ALL, 10));
small(foldl, Module, Table) -> Module:foldl(fun(_, N) -> N + 1 end, 0, Table);
small(tab2list, Module, Table) -> Module:tab2list(Table).

to_the_end(_, '$end_of_table') -> ok;
to_the_end(Module, {_, Continuation}) -> to_the_end(Module, Module:select(Continuation)).

%% @doc Measures `ats' beside `ets' in the same virtual machine.
%%
%% A workload is run on the tables of all sides in turn, with one process and with more, several
%% rounds; the result is the median over the rounds of the ratio within a round. Absolute numbers
%% drift with the machine and its mood, ratios taken side by side do not. The sides are `ats' with
%% default options, a plain `ets' table, and one with `{write_concurrency, true}' and
%% `{read_concurrency, true}'; other fields have others, see {@link ats_bench_sides}.
%%
%% Operations and keys are drawn in the loop, with the same generator and seed for every side, and
%% with another seed in each round. The cost of the loop itself, which is part of all figures, is
%% measured and stated. Keys are drawn evenly from a set that is hot (1000 keys), fits into a cache
%% (2^17), or is wide (2^20). Half of it is in the table; where counters are incremented and lists
%% inserted, all of it. Objects are pairs. The mixes are those of the throughput benchmark for `ets'
%% of Erlang/OTP.
%%
%% Good for: comparing versions and sides on one machine. Not good for: comparing machines, or
%% latency, which needs another method.
-module(ats_bench).

-export([main/0, main/1]).

-export_type([table/0]).

-type table() :: atom() | reference().

-record(workload,
        {name :: string(),
         work :: ats_bench_run:work(),
         filling = half :: ats_bench_keys:filling()}).

%% The place of a workload: tables of a type, and keys of a kind from a set.
-record(place,
        {type :: ats:table_type(),
         keys :: ats_bench_keys:kind(),
         set :: ats_bench_keys:set(),
         count :: pos_integer()}).

-record(options,
        {rounds = 5 :: pos_integer(),
         run_ms = 700 :: pos_integer(),
         disjoint = [1000000] :: [pos_integer()],
         one_key = 8000 :: pos_integer(),
         is_full = false :: boolean(),
         calls = 3000000 :: pos_integer(),
         fillings = 3 :: pos_integer(),
         processes = [1, 2] :: [pos_integer()],
         field = ets :: ats_bench_sides:field(),
         only = all :: all | string(),
         results = "bench/results" :: string()}).

%% The number of objects of one key with which a row takes `ets' minutes.
-define(MANY_OF_ONE_KEY, 120000).
-define(OBJECTS_LOG2, 20).

%%--------------------------------------------------------------------------------------------
%% Command
%%--------------------------------------------------------------------------------------------

%% @doc Runs the benchmark with the options of the command line, see {@link main/1}: those after
%% `-extra', and those the emulator took for flags of its own since they begin with a dash.
-spec main() -> no_return().
main() ->
    Flags = [["-" ++ Name | Values]
             || {Flag, Values} <- init:get_arguments(), "-" ++ _ = Name <- [atom_to_list(Flag)]],
    main(lists:append(Flags) ++ init:get_plain_arguments()).

%% @doc Runs the benchmark and stops the virtual machine. Arguments: `--quick' (few and short
%% rounds: tells that everything works, and not much more), `--rounds N', `--ms N' (length of a
%% run), `--processes N,N' (numbers of processes), `--disjoint N,N' (integers that are inserted in
%% ascending order), `--field NAME' (the sides, and what they do: `ets', `everyday', `values',
%% `options', `locks', `counters' or `stores'), `--only TEXT' (rows whose title, such as `100 %
%% lookup, {a,Int,Int}, wide, ordered_set', contains it), `--full' (also the rows that take `ets'
%% minutes, once: bags with 120,000 objects of one key; `--only "120000 of one key"' is these
%% alone), `--results FOLDER'.
-spec main([string()]) -> no_return().
main(Args) ->
    Usage = "ats_bench [--quick] [--full] [--rounds N] [--ms N] [--processes N,N] [--disjoint N,N] "
            "[--field NAME] [--only TEXT] [--results FOLDER]",
    ats_bench_command:run(Usage, fun() -> measure(options(Args, #options{})) =:= ok end).

options([], Options) ->
    Options;
options(["--quick" | Rest], Options) ->
    options(Rest, Options#options{rounds = 3, run_ms = 20, disjoint = [200000], one_key = 2000,
                                  calls = 500000, fillings = 1});
options(["--full" | Rest], Options) ->
    options(Rest, Options#options{is_full = true});
options(["--rounds", N | Rest], Options) ->
    options(Rest, Options#options{rounds = ats_bench_command:positive(N)});
options(["--ms", N | Rest], Options) ->
    options(Rest, Options#options{run_ms = ats_bench_command:positive(N)});
options(["--processes", List | Rest], Options) ->
    options(Rest, Options#options{processes = numbers(List)});
options(["--disjoint", List | Rest], Options) ->
    options(Rest, Options#options{disjoint = numbers(List)});
options(["--field", Name | Rest], Options) ->
    case [Field || Field <- ats_bench_sides:fields(), atom_to_list(Field) =:= Name] of
        [Field] -> options(Rest, Options#options{field = Field});
        [] -> throw({usage, ["there is no field ", Name]})
    end;
options(["--only", Text | Rest], Options) ->
    options(Rest, Options#options{only = Text});
options(["--results", Folder | Rest], Options) ->
    options(Rest, Options#options{results = Folder});
options([What | _], _) ->
    ats_bench_command:unknown(What).

numbers(List) ->
    lists:usort([ats_bench_command:positive(N) || N <- string:split(List, ",", all)]).

measure(#options{field = Field} = Options) ->
    Facts = ats_bench_report:machine_facts(),
    io:format("ats beside ~s~n", [Field]),
    ats_bench_report:print_facts(Facts),
    Rows = measure_field(Field, Options),
    ats_bench_report:progress_done(),
    Rows =/= [] orelse throw({usage, "no row has that in its title"}),
    ats_bench_report:print(Rows),
    io:format("~nwritten to ~ts~n",
              [ats_bench_report:write(atom_to_list(Field), Rows, Facts, Options#options.results)]).

measure_field(ets, Options) ->
    lists:append([measure_boundary(Options),
                  measure_type(set, Options),
                  measure_one_key(Options),
                  measure_small_tables(Options),
                  measure_type(ordered_set, Options),
                  measure_ascending(Options),
                  measure_select(Options),
                  measure_memory(Options)]);
measure_field(everyday, Options) ->
    lists:append([measure_type(set, Options),
                  measure_type(ordered_set, Options),
                  measure_programs(Options)]);
measure_field(_, Options) ->
    measure_type(set, Options) ++ measure_type(ordered_set, Options).

is_chosen(Title, #options{only = Only}) -> ats_bench_command:is_chosen(Title, Only).

progress(Title, P, Round, #options{rounds = Rounds}, Side) ->
    ats_bench_report:progress("~ts, ~b process(es), round ~b of ~b: ~s",
                              [Title, P, Round, Rounds, ats_bench_sides:name(Side)]).

%%--------------------------------------------------------------------------------------------
%% Workloads
%%--------------------------------------------------------------------------------------------

measure_type(Type, #options{field = Field} = Options) ->
    [Row || Sides <- [ats_bench_sides:sides(Field, Type)], Sides =/= [],
            Kind <- kinds(Field, Type),
            {Set, Count} <- sets(Field),
            Filling <- [half, full, several],
            Row <- measure_tables(#place{type = Type, keys = Kind, set = Set, count = Count},
                                  Filling, Sides, Options)].

sets(everyday) -> ats_bench_keys:small_sets();
sets(values) -> [lists:keyfind(hot, 1, ats_bench_keys:small_sets())];
sets(_) -> [{one, 1} | ats_bench_keys:sets()].

kinds(ets, Type) ->
    [integers | ats_bench_keys:short_kinds()] ++ ats_bench_keys:long_kinds(Type);
kinds(everyday, _) ->
    [integers | ats_bench_keys:short_kinds()];
kinds(values, _) ->
    ats_bench_keys:valued_kinds();
kinds(_, _) ->
    [integers].

%% Returns the workloads of a field in a place.
workloads(ets, #place{keys = integers, set = one}) ->
    [counter()];
workloads(everyday, #place{keys = Kind, set = Set}) when Kind =:= integers; Set =:= hot ->
    everyday();
workloads(everyday, _) ->
    [];
workloads(values, _) ->
    [on_full(Name, Operation) || {Name, Operation} <- [{"lookup", lookup},
                                                       {"lookup_element", element},
                                                       {"insert", insert_value}]];
workloads(_, #place{set = one}) ->
    [];
workloads(ets, #place{keys = integers}) ->
    otp_mixes()
    ++ [counter(), counter_or_new(),
        on_full("lookup_many of 100 keys", {lookup_list, 100}),
        on_full("insert lists of 10", insert_list)]
    ++ several();
workloads(ets, #place{set = cache}) ->
    [];
workloads(ets, #place{type = Type, keys = Kind}) ->
    case lists:member(Kind, ats_bench_keys:short_kinds()) of
        true when Type =:= ordered_set -> updates() ++ chains() ++ [counter(), counter_or_new()];
        true -> updates() ++ [counter(), counter_or_new()];
        false -> lists:sublist(updates(), 2)
    end;
workloads(options, _) ->
    [lookups(0), lookups(1), lookups(10)];
workloads(stores, #place{type = ordered_set}) ->
    updates() ++ [chains_mixed(1000)];
workloads(stores, _) ->
    updates();
workloads(_, _) ->
    updates().

counter() -> on_full("update_counter", counter).

counter_or_new() -> on_full("update_counter with a default", counter_or_new).

%% Returns the calls that most programs make most often, all of keys that are there.
everyday() ->
    [on_full(Name, Operation)
     || {Name, Operation} <- [{"lookup", lookup}, {"member", member}, {"lookup_element", element},
                              {"insert", insert}, {"insert_new of a key that is there", insert_new},
                              {"take, insert", take_and_insert}, {"update_element", update_element},
                              {"update_counter", counter}, {"first", first}, {"next", next},
                              {"chains of 100 next", {next, 100}}, {"info(T, size)", size},
                              {"insert lists of 10", insert_list}]]
    ++ [#workload{name = "lookup, and tab2list in 1 of 100", filling = full,
                  work = mix([{99, lookup}, {1, all_objects}])}]
    ++ several().

%% Returns the calls that change several elements of an object.
several() ->
    [#workload{name = Name, work = {only, Operation}, filling = several}
     || {Name, Operation} <- [{"update_counter of two counters", two_counters},
                              {"update_element of two elements", two_elements},
                              {"insert of three new numbers", three_numbers}]].

%% Returns the workload of one operation on a table that has all keys.
on_full(Name, Operation) -> #workload{name = Name, work = {only, Operation}, filling = full}.

updates() -> [lookups(0), lookups(20), lookups(100)].

chains() -> [chains_mixed(10), all_chains()].

%% Lookups, and inserts and deletes in equal parts.
lookups(0) ->
    #workload{name = "100 % lookup", work = {only, lookup}};
lookups(100) ->
    #workload{name = "50 % insert, 50 delete", work = mix([{50, insert}, {50, delete}])};
lookups(Updates) when Updates rem 2 =:= 1 ->
    #workload{name = lists:concat([100 - Updates, " % lookup, ", Updates, " updates"]),
              work = mix([{100 - Updates, lookup}, {Updates / 2, insert}, {Updates / 2, delete}])};
lookups(Updates) ->
    Half = Updates div 2,
    #workload{name = lists:concat([100 - Updates, " % lookup, ", Half, " insert, ", Half,
                                   " delete"]),
              work = mix([{100 - Updates, lookup}, {Half, insert}, {Half, delete}])}.

%% Returns the mixes of the throughput benchmark of OTP.
otp_mixes() ->
    [lookups(100), lookups(20), lookups(2), lookups(0)]
    ++ [chains_mixed(Length) || Length <- [10, 100, 1000]]
    ++ [all_chains()]
    ++ [#workload{name = lists:concat([Rest, " % lookup, 20 updates, ", Percent, " ", Name]),
                  work = mix([{100 - 20 - Part, lookup}, {10, insert}, {10, delete},
                              {Part, Operation}])}
        || {Name, Operation} <- [{"count of all", count_all},
                                 {"count of 1000", {count_range, 1000}}],
           {Part, Percent, Rest} <- [{1, "1", "79"}, {0.01, "0.01", "79.99"},
                                     {0.0001, "0.0001", "79.9999"}]].

chains_mixed(Length) ->
    #workload{name = lists:concat(["40 % lookup, 20 updates, 40 chains of ", Length, " next"]),
              work = mix([{40, lookup}, {10, insert}, {10, delete}, {40, {next, Length}}])}.

all_chains() ->
    #workload{name = "100 % chains of 1000 next", work = {only, {next, 1000}}}.

%% The last operation takes the remainder of the rounding.
mix(Percents) ->
    {Steps, _} = lists:mapfoldl(fun({Percent, Operation}, Before) ->
                                        Below = Before + Percent,
                                        {{round(Below / 100 * (1 bsl 32)), Operation}, Below}
                                end, 0, Percents),
    {_, Last} = lists:last(Steps),
    {mix, lists:droplast(Steps) ++ [{1 bsl 32, Last}]}.

title(#workload{name = Name}, #place{type = Type, keys = Keys, set = Set}) ->
    lists:concat([Name, ", ", ats_bench_keys:name(Keys), ", ", Set, ", ", Type]).

%% Measures all workloads of a place that need tables that are filled alike. The tables are filled
%% once: the mixes insert as many as they delete, so that half of the keys stay present.
measure_tables(#place{keys = Kind, count = Count} = Place, Filling, Sides,
               #options{field = Field} = Options) ->
    case [W || #workload{filling = F} = W <- workloads(Field, Place), F =:= Filling,
               is_chosen(title(W, Place), Options)] of
        [] ->
            [];
        Workloads ->
            Span = {Kind, 0, Count},
            ok = ats_bench_keys:prepare(Span),
            Tables = [{Side, fill(Side, Place, Filling)} || Side <- Sides],
            Rows = [Row || W <- Workloads,
                           Row <- measure_workload(W, Place, Span, Tables, Options)],
            lists:foreach(fun({Side, Table}) ->
                                  true = (ats_bench_sides:loops(Side)):delete(Table)
                          end, Tables),
            ok = ats_bench_keys:forget(Span),
            Rows
    end.

fill(Side, #place{type = Type, keys = Kind, set = Set, count = Count}, Filling) ->
    ats_bench_report:progress("filling ~s of ~s ~ts (~s)",
                              [Type, Set, ats_bench_keys:name(Kind), ats_bench_sides:name(Side)]),
    Loops = ats_bench_sides:loops(Side),
    Table = ats_bench_sides:new(Side, Type),
    Object = object(Filling, Kind),
    Insert = fun(N) -> Loops:insert(Table, Object(ats_bench_keys:key(Kind, N))) end,
    ok = ats_bench_run:in_process(
        fun() -> lists:foreach(Insert, ats_bench_keys:numbers(Filling, Count)) end),
    Table.

object(several, _) ->
    fun(Key) -> {Key, 0, 0, 0} end;
object(_, Kind) ->
    Value = ats_bench_keys:value(Kind),
    fun(Key) -> {Key, Value} end.

measure_workload(#workload{work = Work} = Workload, Place, Span, Tables,
                 #options{processes = Processes, run_ms = RunMs} = Options) ->
    Rounds = [maps:from_list([measure_side(Workload, Place, Span, SideTable, P, Round, Options)
                              || P <- Processes, SideTable <- ats_bench_sides:turned(Round, Tables)])
              || Round <- lists:seq(1, Options#options.rounds)],
    Idle = lists:max([ats_bench_run:rate({ats_bench_idle, none}, Work, Span, [Seed], RunMs)
                      || Seed <- [1, 2, 3]]),
    Labels = #{name => Workload#workload.name, field => Options#options.field,
               keys => ats_bench_keys:name(Place#place.keys), set => Place#place.set,
               type => Place#place.type, loop_ns => 1.0e9 / Idle},
    ats_bench_report:workload_rows(Labels, names(Tables), Processes, Rounds).

names(Tables) -> [ats_bench_sides:name(Side) || {Side, _} <- Tables].

measure_side(Workload, Place, Span, {Side, Table}, P, Round, Options) ->
    progress(title(Workload, Place), P, Round, Options, Side),
    Seeds = [1000 * Round + N || N <- lists:seq(1, P)],
    Rate = ats_bench_run:rate({ats_bench_sides:loops(Side), Table}, Workload#workload.work, Span,
                              Seeds, Options#options.run_ms),
    {{ats_bench_sides:name(Side), P}, Rate}.

%%--------------------------------------------------------------------------------------------
%% Ascending inserts
%%--------------------------------------------------------------------------------------------

%% P processes insert integers in ascending order into one new table: each a range of its own, or
%% all of them at one end.
measure_ascending(#options{disjoint = Counts} = Options) ->
    [Row || Where <- [disjoint, one_end], Count <- Counts,
            Row <- measure_ascending(Where, Count, Options)].

measure_ascending(Where, Count, Options) ->
    Name = lists:flatten(io_lib:format("insert ~b integers, ~s",
                                       [Count, case Where of
                                                   disjoint -> "disjoint ranges";
                                                   one_end -> "at one end"
                                               end])),
    Processes = [1, 2, 4],
    Sides = ats_bench_sides:sides(ets, ordered_set),
    case is_chosen(Name, Options) of
        true ->
            Rounds = [maps:from_list([begin
                                          progress(Name, P, Round, Options, Side),
                                          {{ats_bench_sides:name(Side), P},
                                           insert_ascending(Where, Side, P, Count)}
                                      end || P <- Processes,
                                             Side <- ats_bench_sides:turned(Round, Sides)])
                      || Round <- lists:seq(1, Options#options.rounds)],
            Labels = #{name => Name, field => ets, keys => ats_bench_keys:name(integers),
                       set => new, type => ordered_set, loop_ns => null},
            ats_bench_report:workload_rows(Labels, [ats_bench_sides:name(S) || S <- Sides],
                                           Processes, Rounds);
        false ->
            []
    end.

insert_ascending(Where, Side, P, Count) ->
    Loops = ats_bench_sides:loops(Side),
    Table = ats_bench_sides:new(Side, ordered_set),
    Each = Count div P,
    Row = fun(N) when Where =:= disjoint -> {N * Each, (N + 1) * Each - 1, 1};
             (N) -> {N, Each * P - 1, P}
          end,
    Ns = ats_bench_run:in_processes(
        [fun() -> {First, Last, Step} = Row(N), Loops:insert_range(Table, First, Last, Step) end
         || N <- lists:seq(0, P - 1)]),
    true = Loops:delete(Table),
    %% ats frees a large table in the background; the next measurement must not pay for that.
    timer:sleep(min(300, Count div 3000)),
    P * Each / (Ns / 1.0e9).

%%--------------------------------------------------------------------------------------------
%% Many objects of one key
%%--------------------------------------------------------------------------------------------

%% One process inserts objects of one key into a new bag, one by one, and deletes them again in
%% another order. `ets' looks at half of the objects each time.
measure_one_key(#options{one_key = Few, rounds = Rounds} = Options) ->
    Sides = ats_bench_sides:sides(ets, bag),
    Sizes = [{Few, Rounds, Sides}
             | [{?MANY_OF_ONE_KEY, 1, lists:sublist(Sides, 2)} || is_long_row_wanted(Options)]],
    [Row || {Count, Repeated, Measured} <- Sizes, Type <- [bag, duplicate_bag],
            Row <- measure_one_key(Type, Count, Measured, Options#options{rounds = Repeated})].

is_long_row_wanted(#options{is_full = true}) ->
    true;
is_long_row_wanted(#options{only = all}) ->
    false;
is_long_row_wanted(#options{only = Text}) ->
    string:find(Text, integer_to_list(?MANY_OF_ONE_KEY)) =/= nomatch.

measure_one_key(Type, Count, Sides, Options) ->
    Name = lists:flatten(io_lib:format("insert, delete_object: ~b of one key", [Count])),
    Title = lists:append([Name, ", ", atom_to_list(Type)]),
    case is_chosen(Title, Options) of
        true ->
            Orders = {ats_bench_keys:shuffled(Count, 1), ats_bench_keys:shuffled(Count, 2)},
            Rounds = [maps:from_list([begin
                                          progress(Title, 1, Round, Options, Side),
                                          {{ats_bench_sides:name(Side), 1},
                                           fill_and_empty(Side, Type, Orders)}
                                      end || Side <- ats_bench_sides:turned(Round, Sides)])
                      || Round <- lists:seq(1, Options#options.rounds)],
            Labels = #{name => Name, field => ets, keys => ats_bench_keys:name(integers),
                       set => new, type => Type, loop_ns => null},
            ats_bench_report:workload_rows(Labels, [ats_bench_sides:name(S) || S <- Sides], [1],
                                           Rounds);
        false ->
            []
    end.

fill_and_empty(Side, Type, {First, Second}) ->
    Loops = ats_bench_sides:loops(Side),
    Table = ats_bench_sides:new(Side, Type),
    Ns = ats_bench_run:in_processes(
        [fun() ->
                 ok = Loops:insert_values(Table, First),
                 Loops:delete_values(Table, Second)
         end]),
    0 = Loops:size(Table),
    true = Loops:delete(Table),
    2 * length(First) / (Ns / 1.0e9).

%%--------------------------------------------------------------------------------------------
%% Small tables
%%--------------------------------------------------------------------------------------------

%% Processes make tables, insert one object each, and delete them.
measure_small_tables(Options) ->
    lists:append([measure_small_tables(Type, Options) || Type <- [set, ordered_set]]).

measure_small_tables(Type, #options{processes = Processes, run_ms = RunMs} = Options) ->
    Name = "new, insert, delete",
    Title = lists:append([Name, " of a table, ", atom_to_list(Type)]),
    case is_chosen(Title, Options) of
        true ->
            Sides = ats_bench_sides:sides(ets, Type),
            Rounds = [maps:from_list([begin
                                          progress(Title, P, Round, Options, Side),
                                          {{ats_bench_sides:name(Side), P},
                                           small_tables(Side, Type, P, RunMs)}
                                      end || P <- Processes,
                                             Side <- ats_bench_sides:turned(Round, Sides)])
                      || Round <- lists:seq(1, Options#options.rounds)],
            Labels = #{name => Name, field => ets, keys => ats_bench_keys:name(integers),
                       set => new, type => Type, loop_ns => null},
            ats_bench_report:workload_rows(Labels, [ats_bench_sides:name(S) || S <- Sides],
                                           Processes, Rounds);
        false ->
            []
    end.

%% Tables a second. The first measurement says how many fill the time.
small_tables(Side, Type, P, RunMs) ->
    Probe = 500,
    Count = max(Probe, round(small_tables_of(Side, Type, P, Probe) * RunMs / 1000 / P)),
    small_tables_of(Side, Type, P, Count).

small_tables_of(Side, Type, P, Count) ->
    Ns = ats_bench_run:in_processes([fun() -> make_tables(Side, Type, Count) end
                                     || _ <- lists:seq(1, P)]),
    P * Count / (Ns / 1.0e9).

make_tables(_, _, 0) ->
    ok;
make_tables(Side, Type, Count) ->
    Loops = ats_bench_sides:loops(Side),
    Table = ats_bench_sides:new(Side, Type),
    true = Loops:insert(Table, {1, 1}),
    true = Loops:delete(Table),
    make_tables(Side, Type, Count - 1).

%%--------------------------------------------------------------------------------------------
%% Match specifications
%%--------------------------------------------------------------------------------------------

measure_select(#options{rounds = Rounds, run_ms = RunMs} = Options) ->
    ats_bench_select:rows(fun(Title) -> is_chosen(Title, Options) end, Rounds,
                          max(1, RunMs div 7)).

measure_programs(#options{processes = Processes, rounds = Rounds, run_ms = RunMs} = Options) ->
    ats_bench_programs:rows(fun(Title) -> is_chosen(Title, Options) end, Processes, Rounds, RunMs).

%%--------------------------------------------------------------------------------------------
%% Memory, and the cost of the boundary
%%--------------------------------------------------------------------------------------------

measure_memory(Options) ->
    [measure_bytes(Type, Objects, Options)
     || Objects <- ats_bench_memory:objects(), Type <- [set, ordered_set],
        is_chosen(memory_title(Type, Objects), Options)].

memory_title(Type, Objects) ->
    lists:append(["bytes an object, ", ats_bench_memory:name(Objects), ", ", atom_to_list(Type)]).

measure_bytes(Type, Objects, #options{fillings = Fillings}) ->
    Title = memory_title(Type, Objects),
    Sides = [begin
                 Name = ats_bench_sides:name(Side),
                 ats_bench_report:progress("~ts: ~s", [Title, Name]),
                 {Name, [ats_bench_memory:bytes_an_object(Side, Type, Objects, ?OBJECTS_LOG2)
                         || _ <- lists:seq(1, Fillings)]}
             end || Side <- ats_bench_sides:sides(ets, Type)],
    ats_bench_report:memory_row(Type, ats_bench_memory:name(Objects), Sides).

%% Measures the cost of a call before any table does anything: `member/2' of an empty table over a
%% native function that does next to nothing, as it only sees that a number is no reference. Each
%% figure is the best of its blocks, since a disturbance can only make a block longer.
measure_boundary(#options{calls = Calls, rounds = Rounds} = Options) ->
    case is_chosen("a call", Options) of
        true ->
            ats_bench_report:progress("the cost of a call", []),
            Ats = ats_bench_ats:new(empty, [set, public]),
            Ets = ats_bench_ets:new(empty, [set, public]),
            Loops = [fun() -> least_calls(Calls) end,
                     fun() -> ats_bench_ats:members(Ats, Calls) end,
                     fun() -> ats_bench_ets:members(Ets, Calls) end],
            Blocks = [[ats_bench_run:in_processes([Loop]) / Calls || Loop <- Loops]
                      || _ <- lists:seq(1, 2 * Rounds)],
            true = ats_bench_ats:delete(Ats),
            true = ats_bench_ets:delete(Ets),
            [Least, AtsMember, EtsMember] = [lists:min([lists:nth(N, Block) || Block <- Blocks])
                                             || N <- [1, 2, 3]],
            [ats_bench_report:boundary_row(Least, AtsMember, EtsMember)];
        false ->
            []
    end.

least_calls(0) ->
    ok;
least_calls(N) ->
    _ = ats_nif:is_compiled_ms(N),
    least_calls(N - 1).

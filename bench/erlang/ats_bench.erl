%% @doc Measures `ats' beside `ets' in the same virtual machine.
%%
%% A workload is run on `ats' with default options, on a plain `ets' table, and on an `ets' table
%% with `{write_concurrency, true}' and `{read_concurrency, true}', in turn, with one process and
%% with two, several rounds; what counts is the median over the rounds of the ratio within a round.
%% Absolute numbers drift with the machine and its mood, ratios taken side by side do not.
%%
%% Keys are drawn evenly from a range of 2^20, half of which is in the table. Objects are pairs.
%% Inserting lists, and counting with a default, add to a table what their operations name, once;
%% so they come last on their table.
%% The same precomputed operations go to every side, and the time of the loop itself, which is part
%% of all figures, is measured and stated.
%%
%% Good for: comparing versions and sides on one machine. Not good for: comparing machines, or
%% latency, which needs another method.
-module(ats_bench).

-export([main/0, main/1]).

-export_type([table/0]).

-type table() :: atom() | reference().

-record(workload,
        {name :: string(),
         loop :: ats_bench_run:loop(),
         mix = {0, 0, 0} :: ats_bench_keys:mix(),
         keys = integers :: ats_bench_keys:kind(),
         %% The number of keys to draw from.
         among = range :: range | pos_integer(),
         chunk = 4096 :: pos_integer()}).

-record(options,
        {rounds = 5 :: pos_integer(),
         run_ms = 700 :: pos_integer(),
         range_log2 = 20 :: pos_integer(),
         disjoint = 1000000 :: pos_integer(),
         one_key = 8000 :: pos_integer(),
         is_full = false :: boolean(),
         calls = 3000000 :: pos_integer(),
         fillings = 3 :: pos_integer(),
         processes = [1, 2] :: [pos_integer()],
         only = all :: all | string(),
         results = "bench/results" :: string()}).

-define(SIDES, [ats, ets_plain, ets_wc]).
-define(OPERATIONS, 1 bsl 17).
-define(COUNTERS, 1000).
%% The number of objects of one key with which a row takes `ets' minutes.
-define(MANY_OF_ONE_KEY, 120000).

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
%% run), `--disjoint N' (integers that are inserted in ascending order), `--only TEXT' (rows whose
%% title, such as `100 % lookup, {a,Int,Int}, ordered_set', contains it), `--full' (also the rows
%% that take `ets' minutes, once: bags with 120,000 objects of one key; `--only "120000 of one
%% key"' is these alone), `--results FOLDER'.
-spec main([string()]) -> no_return().
main(Args) ->
    Usage = "ats_bench [--quick] [--full] [--rounds N] [--ms N] [--disjoint N] [--only TEXT] "
            "[--results FOLDER]",
    ats_bench_command:run(Usage, fun() -> measure(options(Args, #options{})) =:= ok end).

options([], Options) ->
    Options;
options(["--quick" | Rest], Options) ->
    options(Rest, Options#options{rounds = 3, run_ms = 50, disjoint = 200000, one_key = 2000,
                                  calls = 500000, fillings = 1});
options(["--full" | Rest], Options) ->
    options(Rest, Options#options{is_full = true});
options(["--rounds", N | Rest], Options) ->
    options(Rest, Options#options{rounds = ats_bench_command:positive(N)});
options(["--ms", N | Rest], Options) ->
    options(Rest, Options#options{run_ms = ats_bench_command:positive(N)});
options(["--disjoint", N | Rest], Options) ->
    options(Rest, Options#options{disjoint = ats_bench_command:positive(N)});
options(["--only", Text | Rest], Options) ->
    options(Rest, Options#options{only = Text});
options(["--results", Folder | Rest], Options) ->
    options(Rest, Options#options{results = Folder});
options([What | _], _) ->
    ats_bench_command:unknown(What).

measure(Options) ->
    Facts = ats_bench_report:machine_facts(),
    io:format("ats beside ets~n"),
    ats_bench_report:print_facts(Facts),
    Rows = lists:append([measure_boundary(Options),
                         measure_types([set], Options),
                         measure_one_key(Options),
                         measure_types([ordered_set], Options),
                         measure_ascending(Options),
                         measure_select(Options),
                         measure_memory(Options)]),
    ats_bench_report:progress_done(),
    Rows =/= [] orelse throw({usage, "no row has that in its title"}),
    ats_bench_report:print(Rows),
    io:format("~nwritten to ~ts~n",
              [ats_bench_report:write(Rows, Facts, Options#options.results)]).

is_chosen(Title, #options{only = Only}) -> ats_bench_command:is_chosen(Title, Only).

progress(Title, P, Round, #options{rounds = Rounds}, Side) ->
    ats_bench_report:progress("~ts, ~b process(es), round ~b of ~b: ~s",
                              [Title, P, Round, Rounds, Side]).

%%--------------------------------------------------------------------------------------------
%% Workloads
%%--------------------------------------------------------------------------------------------

measure_types(Types, Options) ->
    [Row || Type <- Types, Keys <- [integers | ats_bench_keys:kinds(Type)],
            Row <- measure_tables(Type, Keys, Options)].

workloads(set, integers) ->
    integer_workloads() ++ [lists_of_ten(), counters_of_all_keys()];
workloads(ordered_set, integers) ->
    [#workload{name = "40 % lookup, 20 updates, 40 chains of 1000 next", loop = chains,
               mix = {10, 10, 40}, chunk = 20}
     | integer_workloads()]
    ++ [lists_of_ten(), counters_of_all_keys()];
workloads(set, Keys) ->
    [#workload{name = "100 % lookup", loop = lookup_terms, keys = Keys}];
workloads(ordered_set, Keys) ->
    [#workload{name = "100 % lookup", loop = lookup_terms, keys = Keys},
     #workload{name = "80 % lookup, 10 insert, 10 delete", loop = mixed_terms, keys = Keys,
               mix = {10, 10, 0}}].

lists_of_ten() ->
    #workload{name = "insert lists of 10", loop = insert_lists, keys = lists, chunk = 400}.

counters_of_all_keys() ->
    #workload{name = "update_counter, all keys, with a default", loop = counter_or_new}.

integer_workloads() ->
    [#workload{name = "100 % lookup", loop = lookup},
     #workload{name = "80 % lookup, 10 insert, 10 delete", loop = mixed, mix = {10, 10, 0}},
     #workload{name = "50 % insert, 50 % delete", loop = mixed, mix = {50, 50, 0}},
     #workload{name = "update_counter, 1 key", loop = counter, keys = counters, among = 1},
     #workload{name = "update_counter, 1000 keys", loop = counter, keys = counters,
               among = ?COUNTERS}].

title(#workload{name = Name, keys = Keys}, Type) ->
    lists:append([Name, ", ", ats_bench_keys:name(Keys), ", ", atom_to_list(Type)]).

%% All workloads on tables of one type with one kind of keys. The tables are filled once: the mixes
%% insert as many as they delete, so that half of the range stays present.
measure_tables(Type, Keys, Options) ->
    case [W || W <- workloads(Type, Keys), is_chosen(title(W, Type), Options)] of
        [] ->
            [];
        Workloads ->
            Tables = [{Side, fill(Side, Type, Keys, Options)} || Side <- ?SIDES],
            Rows = [Row || W <- Workloads, Row <- measure_workload(W, Type, Tables, Options)],
            lists:foreach(fun({Side, Table}) ->
                                  true = (ats_bench_run:loops(Side)):delete(Table)
                          end, Tables),
            Rows
    end.

new_table(ets_wc, Type) ->
    ats_bench_ets:new(benchmark, [Type, public, {write_concurrency, true},
                                  {read_concurrency, true}]);
new_table(Side, Type) ->
    (ats_bench_run:loops(Side)):new(benchmark, [Type, public]).

%% Fills in random order.
fill(Side, Type, Keys, #options{range_log2 = Log2}) ->
    ats_bench_report:progress("filling ~s of ~ts (~s)", [Type, ats_bench_keys:name(Keys), Side]),
    Loops = ats_bench_run:loops(Side),
    Table = new_table(Side, Type),
    Insert = fun(Kind, N) -> Loops:insert(Table, {ats_bench_keys:key(Kind, N), 0}) end,
    ok = ats_bench_run:in_process(
        fun() ->
                lists:foreach(fun(N) -> Insert(Keys, N) end, ats_bench_keys:shuffled_half(Log2))
        end),
    lists:foreach(fun(N) -> Insert(counters, N) end, lists:seq(0, ?COUNTERS - 1)),
    Table.

measure_workload(Workload, Type, Tables, #options{processes = Processes} = Options) ->
    Handles = [ats_bench_run:store(N, operations(Workload, N, Options))
               || N <- lists:seq(1, lists:max(Processes))],
    Rounds = [maps:from_list([measure_side(Workload, Type, SideTable, P, Handles, Round, Options)
                              || P <- Processes, SideTable <- turned(Round, Tables)])
              || Round <- lists:seq(1, Options#options.rounds)],
    Idle = ats_bench_run:rate(ats_bench_ets, idle_loop(Workload), none,
                              lists:sublist(Handles, 1), Options#options.run_ms),
    ok = ats_bench_run:forget(Handles),
    Labels = #{name => Workload#workload.name, keys => ats_bench_keys:name(Workload#workload.keys),
               type => Type, loop_ns => 1.0e9 / Idle},
    ats_bench_report:workload_rows(Labels, Processes, Rounds).

measure_side(Workload, Type, {Side, Table}, P, Handles, Round, Options) ->
    progress(title(Workload, Type), P, Round, Options, Side),
    Rate = ats_bench_run:rate(ats_bench_run:loops(Side), Workload#workload.loop, Table,
                              lists:sublist(Handles, P), Options#options.run_ms),
    {{Side, P}, Rate}.

%% Every round begins with another side, so that none always comes after the same.
turned(Round, Sides) ->
    {Before, After} = lists:split(Round rem length(Sides), Sides),
    After ++ Before.

idle_loop(#workload{loop = Loop}) when Loop =:= lookup_terms; Loop =:= mixed_terms -> idle_terms;
idle_loop(#workload{loop = insert_lists}) -> idle_lists;
idle_loop(_) -> idle.

operations(#workload{keys = Keys, mix = {_, _, Chains} = Mix, chunk = Size} = Workload, Process,
           Options) ->
    Count = case Keys of
                lists -> ?OPERATIONS div 10;
                _ -> ?OPERATIONS div (1 + 300 * Chains div 100)
            end,
    ats_bench_keys:operations(Keys, {0, among(Workload, Options)}, Mix, {Process, Count, Size}).

among(#workload{among = range}, #options{range_log2 = Log2}) -> 1 bsl Log2;
among(#workload{among = Count}, _) -> Count.

%%--------------------------------------------------------------------------------------------
%% Ascending inserts
%%--------------------------------------------------------------------------------------------

%% P processes insert integers in ascending order into one new table: each a range of its own, or
%% all of them at one end.
measure_ascending(Options) ->
    lists:append([measure_ascending(Where, Options) || Where <- [disjoint, one_end]]).

measure_ascending(Where, #options{disjoint = Count} = Options) ->
    Name = lists:flatten(io_lib:format("insert ~b integers, ~s",
                                       [Count, case Where of
                                                   disjoint -> "disjoint ranges";
                                                   one_end -> "at one end"
                                               end])),
    Processes = [1, 2, 4],
    case is_chosen(Name, Options) of
        true ->
            Rounds = [maps:from_list([begin
                                          progress(Name, P, Round, Options, Side),
                                          {{Side, P}, insert_ascending(Where, Side, P, Count)}
                                      end || P <- Processes, Side <- turned(Round, ?SIDES)])
                      || Round <- lists:seq(1, Options#options.rounds)],
            Labels = #{name => Name, keys => ats_bench_keys:name(integers), type => ordered_set,
                       timed => true, loop_ns => null},
            ats_bench_report:workload_rows(Labels, Processes, Rounds);
        false ->
            []
    end.

insert_ascending(Where, Side, P, Count) ->
    Loops = ats_bench_run:loops(Side),
    Table = new_table(Side, ordered_set),
    Each = Count div P,
    Row = fun(N) when Where =:= disjoint -> {N * Each, (N + 1) * Each - 1, 1};
             (N) -> {N, Each * P - 1, P}
          end,
    Ns = ats_bench_run:in_processes(
        [fun() -> {First, Last, Step} = Row(N), Loops:insert_range(Table, First, Last, Step) end
         || N <- lists:seq(0, P - 1)]),
    true = Loops:delete(Table),
    %% ats frees a large table in the background; the next measurement must not pay for that.
    timer:sleep(300),
    P * Each / (Ns / 1.0e9).

%%--------------------------------------------------------------------------------------------
%% Many objects of one key
%%--------------------------------------------------------------------------------------------

%% One process inserts objects of one key into a new bag, one by one, and deletes them again in
%% another order. `ets' looks at half of the objects each time.
measure_one_key(#options{one_key = Few, rounds = Rounds} = Options) ->
    Sizes = [{Few, Rounds, ?SIDES}
             | [{?MANY_OF_ONE_KEY, 1, [ats, ets_plain]} || is_long_row_wanted(Options)]],
    [Row || {Count, Repeated, Sides} <- Sizes, Type <- [bag, duplicate_bag],
            Row <- measure_one_key(Type, Count, Sides, Options#options{rounds = Repeated})].

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
                                          {{Side, 1}, fill_and_empty(Side, Type, Orders)}
                                      end || Side <- turned(Round, Sides)])
                      || Round <- lists:seq(1, Options#options.rounds)],
            Labels = #{name => Name, keys => ats_bench_keys:name(integers), type => Type,
                       timed => true, loop_ns => null},
            ats_bench_report:workload_rows(Labels, [1], Rounds);
        false ->
            []
    end.

fill_and_empty(Side, Type, {First, Second}) ->
    Loops = ats_bench_run:loops(Side),
    Table = new_table(Side, Type),
    Ns = ats_bench_run:in_processes(
        [fun() ->
                 ok = Loops:insert_values(Table, First),
                 Loops:delete_values(Table, Second)
         end]),
    0 = Loops:size(Table),
    true = Loops:delete(Table),
    2 * length(First) / (Ns / 1.0e9).

%%--------------------------------------------------------------------------------------------
%% Match specifications
%%--------------------------------------------------------------------------------------------

measure_select(#options{rounds = Rounds, run_ms = RunMs} = Options) ->
    ats_bench_select:rows(fun(Title) -> is_chosen(Title, Options) end, Rounds,
                          max(1, RunMs div 7)).

%%--------------------------------------------------------------------------------------------
%% Memory, and the cost of the boundary
%%--------------------------------------------------------------------------------------------

measure_memory(Options) ->
    [measure_bytes(Type, Objects, Options)
     || Objects <- ats_bench_memory:objects(), Type <- [set, ordered_set],
        is_chosen(memory_title(Type, Objects), Options)].

memory_title(Type, Objects) ->
    lists:append(["bytes an object, ", ats_bench_memory:name(Objects), ", ", atom_to_list(Type)]).

measure_bytes(Type, Objects, #options{range_log2 = Log2, fillings = Fillings}) ->
    Title = memory_title(Type, Objects),
    Sides = [begin
                 ats_bench_report:progress("~ts: ~s", [Title, Side]),
                 {Side, [ats_bench_memory:bytes_an_object(Side, Type, Objects, Log2)
                         || _ <- lists:seq(1, Fillings)]}
             end || Side <- ?SIDES],
    ats_bench_report:memory_row(Type, ats_bench_memory:name(Objects), Sides).

%% The cost of a call before any table does anything: `member/2' of an empty table over a native
%% function that does next to nothing, as it only sees that a number is no reference. Each figure is
%% the best of its blocks, since whatever disturbs a block can only make it longer.
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

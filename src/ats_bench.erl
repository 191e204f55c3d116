%% @doc Measures `ats' beside `ets' in the same virtual machine.
%%
%% A workload is run on `ats', on a plain `ets' table, and on an `ets' table with
%% `{write_concurrency, true}' and `{read_concurrency, true}', in turn, several rounds; what
%% counts is the median over the rounds of the ratio within a round. Absolute numbers drift with
%% the machine and its mood, ratios taken side by side do not.
%%
%% Integer keys are drawn evenly from a range of 2^20, half of which is in the table. Objects are
%% pairs. The same precomputed operations go to every side, and the time of the loop itself, which
%% is part of all figures, is measured and stated.
%%
%% Good for: comparing versions and sides on one machine. Not good for: comparing machines, or
%% latency, which needs another method.
-module(ats_bench).

-export([main/0, main/1]).
-export([bytes_an_object/3]).

-export_type([loop/0, table/0]).

-type loop() :: lookup | mixed | chains | counter | idle.
-type table() :: atom() | reference().
-type side() :: ats | ets_plain | ets_wc.


-record(workload,
        {name :: string(),
         loop :: loop(),
         %% In per cent; what is left to 100 are lookups.
         inserts = 0 :: 0..100,
         deletes = 0 :: 0..100,
         chains = 0 :: 0..100,
         keys = range :: range | pos_integer(),
         chunk = 4096 :: pos_integer(),
         types = [set, ordered_set] :: [set | ordered_set]}).

-record(options,
        {rounds = 5 :: pos_integer(),
         run_ms = 700 :: pos_integer(),
         range_log2 = 20 :: pos_integer(),
         disjoint = 1000000 :: pos_integer(),
         calls = 3000000 :: pos_integer(),
         processes = [1, 2] :: [pos_integer()],
         only = all :: all | string(),
         results = "bench/results" :: string()}).

-define(SIDES, [ats, ets_plain, ets_wc]).
-define(OPERATIONS, 1 bsl 17).
-define(KEYS, {?MODULE, keys}).

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

%% @doc Runs the benchmark and stops the virtual machine. Arguments: `--quick' (under a minute),
%% `--rounds N', `--ms N' (length of a run), `--disjoint N' (integers of the disjoint ranges),
%% `--only TEXT' (workloads whose name contains it), `--results FOLDER'.
-spec main([string()]) -> no_return().
main(Args) ->
    try
        measure(options(Args, #options{}))
    of
        ok -> halt(0)
    catch
        throw:{usage, What} ->
            io:format(standard_error,
                      "~ts~nusage: ats_bench [--quick] [--rounds N] [--ms N] [--disjoint N] "
                      "[--only TEXT] [--results FOLDER]~n", [What]),
            halt(2);
        Class:Reason:Stack ->
            io:format(standard_error, "~ts~n", [erl_error:format_exception(Class, Reason, Stack)]),
            halt(1)
    end.

options([], Options) ->
    Options;
options(["--quick" | Rest], Options) ->
    options(Rest, Options#options{rounds = 3, run_ms = 90, disjoint = 200000, calls = 500000});
options(["--rounds", N | Rest], Options) ->
    options(Rest, Options#options{rounds = positive(N)});
options(["--ms", N | Rest], Options) ->
    options(Rest, Options#options{run_ms = positive(N)});
options(["--disjoint", N | Rest], Options) ->
    options(Rest, Options#options{disjoint = positive(N)});
options(["--only", Text | Rest], Options) ->
    options(Rest, Options#options{only = Text});
options(["--results", Folder | Rest], Options) ->
    options(Rest, Options#options{results = Folder});
options([What | _], _) ->
    throw({usage, ["what is ", What, "?"]}).

positive(Text) ->
    case string:to_integer(Text) of
        {N, []} when N > 0 -> N;
        _ -> throw({usage, [Text, " is not a positive number"]})
    end.

measure(Options) ->
    Facts = machine_facts(),
    io:format("ats beside ets~n~ts~n", [[io_lib:format("  ~ts: ~ts~n", [K, printed(V)])
                                          || {K, V} <- Facts]]),
    Boundary = measure_boundary(Options),
    Workloads = lists:append([measure_type(Type, Options) || Type <- [set, ordered_set]]),
    Disjoint = measure_disjoint(Options),
    Results = Boundary ++ Workloads ++ Disjoint,
    progress("", []),
    print(Results),
    io:format("~nwritten to ~ts~n", [write(Results, Facts, Options)]).

%%--------------------------------------------------------------------------------------------
%% Workloads
%%--------------------------------------------------------------------------------------------

workloads() ->
    [#workload{name = "100 % lookup", loop = lookup},
     #workload{name = "80 % lookup, 10 insert, 10 delete", loop = mixed,
               inserts = 10, deletes = 10},
     #workload{name = "50 % insert, 50 % delete", loop = mixed, inserts = 50, deletes = 50},
     #workload{name = "40 % lookup, 10+10 updates, 40 chains of 1000 next", loop = chains,
               inserts = 10, deletes = 10, chains = 40, chunk = 20, types = [ordered_set]},
     #workload{name = "update_counter, 1 key", loop = counter, keys = 1},
     #workload{name = "update_counter, 1000 keys", loop = counter, keys = 1000}].

%% All workloads on one table type. The tables are filled once: the mixes insert as many as they
%% delete, so that half of the range stays present.
measure_type(Type, Options) ->
    case [W || W <- workloads(), lists:member(Type, W#workload.types), is_chosen(W, Options)] of
        [] ->
            [];
        Workloads ->
            store_keys(Options),
            Memory = [{Side, measure_memory(Side, Type, Options)} || Side <- ?SIDES],
            Tables = [{Side, fill(Side, Type)} || Side <- ?SIDES],
            Results = [measure_workload(W, Type, P, Tables, Options)
                       || W <- Workloads, P <- Options#options.processes],
            lists:foreach(fun({Side, Table}) -> (loops(Side)):delete(Table) end, Tables),
            [memory_result(Type, Memory) | Results]
    end.

is_chosen(_, #options{only = all}) -> true;
is_chosen(#workload{name = Name}, #options{only = Text}) -> string:find(Name, Text) =/= nomatch.

loops(ats) -> ats_bench_ats;
loops(_) -> ats_bench_ets.

new_table(Side, Type) ->
    Concurrency = case Side of
                      ets_plain -> [];
                      _ -> [{write_concurrency, true}, {read_concurrency, true}]
                  end,
    (loops(Side)):new(benchmark, [Type, public | Concurrency]).

%% Fills in random order, in a process of its own so that its garbage is nobody else's. The
%% counters get keys outside of the range.
fill(Side, Type) ->
    progress("filling ~s (~s)", [Type, Side]),
    Loops = loops(Side),
    Table = new_table(Side, Type),
    ok = in_process(fun() -> insert_pairs(Loops, Table, persistent_term:get(?KEYS)) end),
    true = Loops:insert(Table, [{counter_key(K), 0} || K <- lists:seq(1, 1000)]),
    Table.

insert_pairs(Loops, Table, Keys) ->
    lists:foreach(fun(K) -> Loops:insert(Table, {K, K}) end, Keys).

store_keys(Options) ->
    persistent_term:put(?KEYS, random_half(Options)).

%% Bytes an object takes, as `info/2' says and as the operating system sees it. The latter needs
%% a fresh machine, in which no freed memory waits to be used again.
measure_memory(Side, Type, Options) ->
    progress("memory of ~s (~s)", [Type, Side]),
    Paths = lists:append([["-pa", Path] || Path <- code:get_path()]),
    {ok, Peer, _} = peer:start_link(#{connection => standard_io, args => Paths}),
    try
        peer:call(Peer, ?MODULE, bytes_an_object, [Side, Type, Options], 120000)
    after
        peer:stop(Peer)
    end.

%% @private Runs in the fresh machine.
-spec bytes_an_object(side(), atom(), tuple()) -> {float(), float()}.
bytes_an_object(Side, Type, Options) ->
    ok = in_process(fun() -> store_keys(Options) end),
    Loops = loops(Side),
    Table = new_table(Side, Type),
    Loops:insert(Table, {warm, up}),
    Words0 = Loops:memory_words(Table),
    Resident0 = resident_bytes(),
    Keys = persistent_term:get(?KEYS),
    insert_pairs(Loops, Table, Keys),
    ok = settle(Side),
    Words = Loops:memory_words(Table) - Words0,
    Resident = resident_bytes() - Resident0,
    Objects = length(Keys),
    {Words * erlang:system_info(wordsize) / Objects, Resident / Objects}.

%% `ats' frees late, when nobody can be looking any more; that is not memory of the objects.
settle(ats) ->
    _ = ats_nif:collect(),
    timer:sleep(200),
    _ = ats_nif:collect(),
    ok;
settle(_) ->
    ok.

%% Every second number of the range, shuffled by a fixed seed.
random_half(#options{range_log2 = Log2}) ->
    State = rand:seed_s(exsss, 1),
    Evens = lists:seq(0, (1 bsl Log2) - 1, 2),
    {Tagged, _} = lists:mapfoldl(fun(K, S0) ->
                                         {R, S} = rand:uniform_s(1 bsl 30, S0),
                                         {{R, K}, S}
                                 end, State, Evens),
    [K || {_, K} <- lists:sort(Tagged)].

counter_key(K) -> -K.

measure_workload(Workload, Type, Processes, Tables, Options) ->
    Keys = [operations(Workload, N, Options) || N <- lists:seq(1, Processes)],
    Handles = [store(N, Chunks) || {N, Chunks} <- lists:zip(lists:seq(1, Processes), Keys)],
    Rates = [[begin
                  progress("~ts, ~s, ~b process(es), round ~b of ~b: ~s",
                           [Workload#workload.name, Type, Processes, Round,
                            Options#options.rounds, Side]),
                  {Side, run(loops(Side), Workload#workload.loop, Table, Handles, Options)}
              end || {Side, Table} <- Tables]
             || Round <- lists:seq(1, Options#options.rounds)],
    Idle = run(ats_bench_ets, idle, none, hd_list(Handles), Options),
    lists:foreach(fun persistent_term:erase/1, Handles),
    result(Workload#workload.name, Type, Processes, Rates, Idle).

hd_list([Handle | _]) -> [Handle].

%% Operations of one process, in chunks after each of which the clock is read.
operations(#workload{keys = Keys, chunk = Size} = W, Process, #options{range_log2 = Log2}) ->
    Count = max(Size, ?OPERATIONS div (1 + 300 * W#workload.chains div 100)),
    {Operations, _} = lists:mapfoldl(
        fun(_, S0) ->
                {Percent, S1} = rand:uniform_s(100, S0),
                {Key, S2} = key(Keys, Log2, S1),
                {(Key bsl 2) bor code(Percent, W), S2}
        end, rand:seed_s(exsss, {Process, 2, 3}), lists:seq(1, Count - Count rem Size)),
    chunks(Operations, Size).

key(range, Log2, S0) ->
    {K, S} = rand:uniform_s(1 bsl Log2, S0),
    {K - 1, S};
key(Count, _, S0) ->
    {K, S} = rand:uniform_s(Count, S0),
    {counter_key(K), S}.

code(Percent, #workload{inserts = I}) when Percent =< I -> 1;
code(Percent, #workload{inserts = I, deletes = D}) when Percent =< I + D -> 2;
code(Percent, #workload{inserts = I, deletes = D, chains = C}) when Percent =< I + D + C -> 3;
code(_, _) -> 0.

chunks([], _) ->
    [];
chunks(List, Size) ->
    {Chunk, Rest} = lists:split(Size, List),
    [Chunk | chunks(Rest, Size)].

%% As a persistent term the operations are a literal: no process copies them, no garbage collector
%% walks over them.
store(N, Chunks) ->
    Handle = {?MODULE, operations, N},
    persistent_term:put(Handle, Chunks),
    Handle.

%% Runs one loop in as many processes as there are handles; operations per second of all.
run(Loops, Loop, Table, Handles, #options{run_ms = RunMs}) ->
    Parent = self(),
    Workers = [spawn_monitor(fun() -> worker(Parent, Loops, Loop, Table, Handle, RunMs) end)
               || Handle <- Handles],
    lists:foreach(fun({Pid, Mon}) -> await(ready, Pid, Mon) end, Workers),
    lists:foreach(fun({Pid, _}) -> Pid ! go end, Workers),
    Rate = lists:sum([await(rate, Pid, Mon) || {Pid, Mon} <- Workers]),
    forget(Workers),
    Rate.

worker(Parent, Loops, Loop, Table, Handle, RunMs) ->
    Chunks = persistent_term:get(Handle),
    Parent ! {ready, self(), ok},
    receive go -> ok end,
    Start = erlang:monotonic_time(),
    Deadline = Start + erlang:convert_time_unit(RunMs, millisecond, native),
    {Operations, End} = run_chunks(Chunks, Chunks, Loops, Loop, Table, Deadline, 0),
    Seconds = erlang:convert_time_unit(End - Start, native, nanosecond) / 1.0e9,
    Parent ! {rate, self(), Operations / Seconds}.

run_chunks([], All, Loops, Loop, Table, Deadline, Done) ->
    run_chunks(All, All, Loops, Loop, Table, Deadline, Done);
run_chunks([Chunk | Rest], All, Loops, Loop, Table, Deadline, Done0) ->
    ok = Loops:run(Loop, Table, Chunk),
    Done = Done0 + length(Chunk),
    case erlang:monotonic_time() of
        Now when Now >= Deadline -> {Done, Now};
        _ -> run_chunks(Rest, All, Loops, Loop, Table, Deadline, Done)
    end.

%% So that the ends of old workers do not pile up before the messages of new ones.
forget(Workers) ->
    lists:foreach(fun({_, Mon}) -> erlang:demonitor(Mon, [flush]) end, Workers).

await(What, Pid, Mon) ->
    receive
        {What, Pid, Value} -> Value;
        {'DOWN', Mon, process, Pid, Reason} -> error({worker_failed, Reason})
    end.

in_process(Fun) ->
    Parent = self(),
    {Pid, Mon} = spawn_monitor(fun() -> Parent ! {done, self(), Fun()} end),
    Result = await(done, Pid, Mon),
    true = erlang:demonitor(Mon, [flush]),
    Result.

%%--------------------------------------------------------------------------------------------
%% Disjoint ranges, and the cost of the boundary
%%--------------------------------------------------------------------------------------------

%% P processes insert integers in ascending order, each a range of its own, into one new table.
measure_disjoint(#options{only = Only}) when Only =/= all ->
    [];
measure_disjoint(#options{disjoint = Count} = Options) ->
    [begin
         Rates = [[begin
                       progress("insert ~b integers in ~b disjoint ranges, round ~b of ~b: ~s",
                                [Count, P, Round, Options#options.rounds, Side]),
                       {Side, insert_disjoint(Side, P, Count)}
                   end || Side <- ?SIDES]
                  || Round <- lists:seq(1, Options#options.rounds)],
         Name = lists:flatten(io_lib:format("insert ~b integers, disjoint ranges", [Count])),
         result(Name, ordered_set, P, Rates, none)
     end || P <- [1, 2, 4]].

insert_disjoint(Side, P, Count) ->
    Loops = loops(Side),
    Table = new_table(Side, ordered_set),
    Each = Count div P,
    Parent = self(),
    Workers = [spawn_monitor(fun() ->
                                     receive go -> ok end,
                                     ok = Loops:insert_range(Table, N * Each, (N + 1) * Each - 1),
                                     Parent ! {inserted, self(), ok}
                             end) || N <- lists:seq(0, P - 1)],
    Start = erlang:monotonic_time(),
    lists:foreach(fun({Pid, _}) -> Pid ! go end, Workers),
    lists:foreach(fun({Pid, Mon}) -> await(inserted, Pid, Mon) end, Workers),
    Ns = erlang:convert_time_unit(erlang:monotonic_time() - Start, native, nanosecond),
    forget(Workers),
    Loops:delete(Table),
    P * Each / (Ns / 1.0e9).

%% What a call costs before any table does anything: `member/2' of an empty table over a native
%% function that does nothing. Each figure is the best of its blocks, since whatever disturbs a
%% block can only make it longer.
measure_boundary(#options{only = Only}) when Only =/= all ->
    [];
measure_boundary(#options{calls = Calls, rounds = Rounds}) ->
    progress("the cost of a call", []),
    Ats = ats_bench_ats:new(empty, [set, public]),
    Ets = ats_bench_ets:new(empty, [set, public]),
    Blocks = [[per_call_ns(fun() -> nops(Ats, Calls) end, Calls),
               per_call_ns(fun() -> ats_bench_ats:members(Ats, Calls) end, Calls),
               per_call_ns(fun() -> ats_bench_ets:members(Ets, Calls) end, Calls)]
              || _ <- lists:seq(1, 2 * Rounds)],
    ats_bench_ats:delete(Ats),
    ats_bench_ets:delete(Ets),
    [Nop, AtsMember, EtsMember] = [lists:min(Column) || Column <- transpose(Blocks)],
    [#{kind => boundary, nop_ns => Nop, ats_member_ns => AtsMember, ets_member_ns => EtsMember,
       over_nop_ns => AtsMember - Nop}].

nops(_, 0) ->
    ok;
nops(Table, N) ->
    _ = ats_nif:nop(Table, N),
    nops(Table, N - 1).

per_call_ns(Fun, Calls) ->
    in_process(fun() ->
                       Start = erlang:monotonic_time(),
                       ok = Fun(),
                       Time = erlang:monotonic_time() - Start,
                       erlang:convert_time_unit(Time, native, nanosecond) / Calls
               end).

transpose([[] | _]) -> [];
transpose(Rows) -> [[hd(R) || R <- Rows] | transpose([tl(R) || R <- Rows])].

%%--------------------------------------------------------------------------------------------
%% Results
%%--------------------------------------------------------------------------------------------

%% Rates are operations per second, a list of `{Side, Rate}' for each round.
result(Name, Type, Processes, Rounds, Idle) ->
    Rate = fun(Side) -> median([proplists:get_value(Side, R) || R <- Rounds]) end,
    Ratio = fun(Side) ->
                    median([proplists:get_value(ats, R) / proplists:get_value(Side, R)
                            || R <- Rounds])
            end,
    #{kind => workload, name => Name, type => Type, processes => Processes,
      ats => Rate(ats), ets_plain => Rate(ets_plain), ets_wc => Rate(ets_wc),
      ratio_plain => Ratio(ets_plain), ratio_wc => Ratio(ets_wc),
      loop_ns => case Idle of none -> null; _ -> 1.0e9 / Idle end,
      rounds => [maps:from_list(R) || R <- Rounds]}.

memory_result(Type, Memory) ->
    maps:merge(#{kind => memory, type => Type},
               maps:from_list(lists:append(
                   [[{Side, Reported}, {resident(Side), Resident}]
                    || {Side, {Reported, Resident}} <- Memory]))).

resident(ats) -> ats_resident;
resident(ets_plain) -> ets_plain_resident;
resident(ets_wc) -> ets_wc_resident.

median(Numbers) ->
    Sorted = lists:sort(Numbers),
    Middle = length(Sorted) div 2,
    case length(Sorted) rem 2 of
        1 -> lists:nth(Middle + 1, Sorted);
        0 -> (lists:nth(Middle, Sorted) + lists:nth(Middle + 1, Sorted)) / 2
    end.

print(Results) ->
    io:format("~nmillion operations a second, median; ratios are medians within rounds~n~n"),
    Header = ["workload", "type", "P", "ats", "ets", "ets wc", "ats/ets", "ats/wc"],
    io:format("~-52ts ~-11ts ~1ts ~8ts ~8ts ~8ts ~8ts ~8ts~n", Header),
    lists:foreach(fun print_workload/1, [R || #{kind := workload} = R <- Results]),
    case [Ns || #{loop_ns := Ns} <- Results, is_float(Ns)] of
        [] -> ok;
        Loop -> io:format("~nthe loop itself, part of all figures: ~.1f ns an operation~n",
                          [median(Loop)])
    end,
    lists:foreach(fun print_memory/1, [R || #{kind := memory} = R <- Results]),
    lists:foreach(fun print_boundary/1, [R || #{kind := boundary} = R <- Results]).

print_workload(#{name := Name, type := Type, processes := P, ats := Ats, ets_plain := Plain,
                 ets_wc := Wc, ratio_plain := RatioPlain, ratio_wc := RatioWc}) ->
    io:format("~-52ts ~-11ts ~1b ~8.3f ~8.3f ~8.3f ~8.2f ~8.2f~n",
              [Name, atom_to_list(Type), P, Ats / 1.0e6, Plain / 1.0e6, Wc / 1.0e6,
               RatioPlain, RatioWc]).

print_memory(#{type := Type, ats := Ats, ets_plain := Plain, ets_wc := Wc,
               ats_resident := AtsR, ets_plain_resident := PlainR, ets_wc_resident := WcR}) ->
    io:format("~nbytes an object, ~s of pairs: ats ~.1f, ets ~.1f, ets wc ~.1f as info/2 says; "
              "~.1f, ~.1f, ~.1f as the operating system says~n",
              [Type, Ats, Plain, Wc, AtsR, PlainR, WcR]).

print_boundary(#{nop_ns := Nop, ats_member_ns := Ats, ets_member_ns := Ets, over_nop_ns := Over}) ->
    io:format("~na call: empty native function ~.1f ns, ats:member/2 on an empty table ~.1f ns "
              "(~.1f more), ets:member/2 ~.1f ns, loop included~n", [Nop, Ats, Over, Ets]).

%% On a terminal a line that is overwritten, else one line for each new text.
progress("", _) ->
    case is_terminal() of
        true -> io:format("\r\e[K");
        false -> ok
    end;
progress(Format, Args) ->
    case is_terminal() of
        true -> io:format("\r\e[K  ~ts", [io_lib:format(Format, Args)]);
        false -> io:format("  ~ts~n", [io_lib:format(Format, Args)])
    end.

is_terminal() ->
    case io:columns() of
        {ok, _} -> true;
        {error, _} -> false
    end.

%%--------------------------------------------------------------------------------------------
%% Machine and files
%%--------------------------------------------------------------------------------------------

machine_facts() ->
    [{"date", calendar:system_time_to_rfc3339(erlang:system_time(second))},
     {"erlang", erlang:system_info(otp_release) ++ ", erts " ++ erlang:system_info(version)},
     {"schedulers", erlang:system_info(schedulers_online)},
     {"processor", processor()},
     {"memory_mb", memory_mb()},
     {"system", string:trim(erlang:system_info(system_architecture))},
     {"ats", version()}].

version() ->
    _ = application:load(ats),
    case application:get_key(ats, vsn) of
        {ok, Version} -> Version;
        undefined -> "unknown"
    end.

processor() -> proc_line("/proc/cpuinfo", "model name\\s*:\\s*(.*)", "unknown").

memory_mb() ->
    case string:to_integer(proc_line("/proc/meminfo", "MemTotal:\\s*([0-9]+)", "")) of
        {Kb, _} when is_integer(Kb) -> Kb div 1024;
        _ -> 0
    end.

proc_line(File, Pattern, Default) ->
    case file:read_file(File) of
        {ok, Text} ->
            case re:run(Text, Pattern, [{capture, all_but_first, list}]) of
                {match, [Found]} -> Found;
                nomatch -> Default
            end;
        {error, _} ->
            Default
    end.

resident_bytes() ->
    case file:read_file("/proc/self/statm") of
        {ok, Text} ->
            [_, Pages | _] = binary:split(Text, <<" ">>, [global]),
            binary_to_integer(Pages) * 4096;
        {error, _} ->
            0
    end.

%% One JSON object a line: the machine first, then every result.
write(Results, Facts, #options{results = Folder}) ->
    {{Y, Mo, D}, {H, Mi, S}} = calendar:local_time(),
    Name = io_lib:format("~4..0b-~2..0b-~2..0b_~2..0b~2..0b~2..0b.jsonl", [Y, Mo, D, H, Mi, S]),
    File = filename:join(Folder, Name),
    ok = filelib:ensure_dir(File),
    Machine = maps:from_list([{kind, machine} | [{list_to_atom(K), V} || {K, V} <- Facts]]),
    ok = file:write_file(File, [[json(R), $\n] || R <- [Machine | Results]]),
    File.

printed(Value) when is_integer(Value) -> integer_to_list(Value);
printed(Value) -> Value.

json(Map) when is_map(Map) ->
    Pairs = [[json(atom_to_list(K)), $:, json(V)] || {K, V} <- lists:sort(maps:to_list(Map))],
    [${, lists:join($,, Pairs), $}];
json(null) -> "null";
json(Atom) when is_atom(Atom) -> json(atom_to_list(Atom));
json(Integer) when is_integer(Integer) -> integer_to_list(Integer);
json(Float) when is_float(Float) -> float_to_list(Float, [{decimals, 4}, compact]);
json([Map | _] = List) when is_map(Map) -> [$[, lists:join($,, [json(M) || M <- List]), $]];
json(String) ->
    [$", [escaped(C) || C <- unicode:characters_to_list(String)], $"].

escaped($") -> "\\\"";
escaped($\\) -> "\\\\";
escaped(C) when C < 32 -> io_lib:format("\\u~4.16.0b", [C]);
escaped(C) -> unicode:characters_to_binary([C]).

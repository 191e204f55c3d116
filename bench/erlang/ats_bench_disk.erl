%% @private
%% @doc Tables on disk: the benchmark of osmos, and the same work on `dets', and on `bitcask' if it
%% is installed.
%%
%% The benchmark of osmos (Radford, 2009): one process writes as fast as it can, another reads every
%% ten milliseconds; keys are binaries of about fifteen bytes, some of which come very often. Beside
%% them two processes send each other messages, to show how long other processes wait.
-module(ats_bench_disk).

-export([main/1]).

-record(options,
        {seconds = 60 :: pos_integer(),
         %% Keys of the benchmark of osmos; when all were written it begins with the first again.
         keys = 2000000 :: pos_integer(),
         objects = 1000000 :: pos_integer(),
         rounds = 3 :: pos_integer(),
         results = "bench/results" :: string()}).

%% @doc Measures, and stops the virtual machine. Arguments: `--quick' (for a few seconds),
%% `--rounds N', `--objects N', `--results FOLDER'.
-spec main([string()]) -> no_return().
main(Args) ->
    Usage = "ats_bench_disk [--quick] [--rounds N] [--objects N] [--results FOLDER]",
    ats_bench_command:run(Usage, fun() -> measure(options(Args, #options{})) =:= ok end).

options([], Options) ->
    Options;
options(["--quick" | Rest], Options) ->
    options(Rest, Options#options{seconds = 5, keys = 300000, objects = 50000, rounds = 1});
options(["--rounds", N | Rest], Options) ->
    options(Rest, Options#options{rounds = ats_bench_command:positive(N)});
options(["--objects", N | Rest], Options) ->
    options(Rest, Options#options{objects = ats_bench_command:positive(N)});
options(["--results", Folder | Rest], Options) ->
    options(Rest, Options#options{results = Folder});
options([What | _], _) ->
    ats_bench_command:unknown(What).

measure(#options{seconds = Seconds, keys = Keys, results = Results} = Options) ->
    Directory = filename:join(os:getenv("TMPDIR", "/tmp"), "ats-bench-disk-" ++ os:getpid()),
    ok = filelib:ensure_dir(filename:join(Directory, "x")),
    try
        Rows = osmos(Seconds, Keys, Directory) ++ beside_others(Options, Directory),
        io:format("~nwritten to ~ts~n",
                  [ats_bench_report:write("tables-on-disk", Rows,
                                          ats_bench_report:machine_facts(), Results)])
    after
        _ = file:del_dir_r(Directory)
    end.

%%--------------------------------------------------------------------------------------------
%% The benchmark of osmos
%%--------------------------------------------------------------------------------------------

osmos(Seconds, Count, Directory) ->
    {ok, t} = dats:open(t, [{directory, filename:join(Directory, "osmos")},
                            {format, {term, uint64_sum_delete, 1024}}]),
    %% Keys are made beforehand, since making one takes longer than writing it.
    Keys = [random_key() || _ <- lists:seq(1, Count)],
    End = erlang:monotonic_time(millisecond) + Seconds * 1000,
    Work = [fun() -> write_until(End, Keys) end,
            fun() -> read_until(End, []) end,
            fun() -> ping_until(End, start_echo(), []) end],
    [{Writes, WriteTimes}, Reads, Pings] = parallel(Work),
    io:format("osmos, ~b s: ~b writes a second~n", [Seconds, Writes div Seconds]),
    Rows = [row_of_times(Name, Times)
            || {Name, Times} <- [{"write", WriteTimes}, {"read", Reads},
                                 {"message and back", Pings}]],
    #{stalls := Stalls, runs := Runs, file_bytes := Bytes} = dats:info(t, stats),
    io:format("~b stalls, ~b runs, ~b MB~n", [Stalls, Runs, Bytes div 1000000]),
    ok = dats:close(t),
    [#{kind => disk, name => "osmos: writes", unit => "operations/s", better => more,
       sides => ["dats"], rates => #{"dats" => [Writes / Seconds]}} | Rows].

row_of_times(What, Times) ->
    Sorted = list_to_tuple(lists:sort(Times)),
    At = fun(Share) -> element(max(1, round(tuple_size(Sorted) * Share)), Sorted) end,
    io:format("~-18s p50 ~8.1f us, p90 ~8.1f, p99 ~8.1f, p99.9 ~8.1f, max ~8.1f (~b)~n",
              [What | [At(Share) / 1000 || Share <- [0.5, 0.9, 0.99, 0.999, 1.0]]]
              ++ [tuple_size(Sorted)]),
    #{kind => disk_latency, name => "osmos: " ++ What, unit => "microseconds", better => less,
      times => ats_bench_report:percentiles(At)}.

%% Every 64th call is timed.
-spec write_until(integer(), [binary()]) -> {non_neg_integer(), [non_neg_integer()]}.
write_until(End, Keys) ->
    write_until(End, Keys, Keys, 0, []).

-spec write_until(integer(), [binary()], [binary()], non_neg_integer(), [non_neg_integer()]) ->
          {non_neg_integer(), [non_neg_integer()]}.
write_until(End, [], Keys, Count, Times) ->
    write_until(End, Keys, Keys, Count, Times);
write_until(End, [Key | Rest], Keys, Count, Times) when Count rem 64 =:= 0 ->
    Begun = erlang:monotonic_time(nanosecond),
    ok = dats:write(t, Key, 1),
    Time = erlang:monotonic_time(nanosecond) - Begun,
    case erlang:monotonic_time(millisecond) < End of
        true -> write_until(End, Rest, Keys, Count + 1, [Time | Times]);
        false -> {Count + 1, [Time | Times]}
    end;
write_until(End, [Key | Rest], Keys, Count, Times) ->
    ok = dats:write(t, Key, 1),
    write_until(End, Rest, Keys, Count + 1, Times).

-spec read_until(integer(), [non_neg_integer()]) -> [non_neg_integer()].
read_until(End, Times) ->
    timer:sleep(10),
    Key = random_key(),
    Begun = erlang:monotonic_time(nanosecond),
    _ = dats:read(t, Key),
    Time = erlang:monotonic_time(nanosecond) - Begun,
    case erlang:monotonic_time(millisecond) < End of
        true -> read_until(End, [Time | Times]);
        false -> Times
    end.

-spec start_echo() -> pid().
start_echo() ->
    spawn_link(fun Echo() -> receive From -> From ! echo, Echo() end end).

-spec ping_until(integer(), pid(), [non_neg_integer()]) -> [non_neg_integer()].
ping_until(End, Echo, Times) ->
    timer:sleep(1),
    Begun = erlang:monotonic_time(nanosecond),
    Echo ! self(),
    receive echo -> ok end,
    Time = erlang:monotonic_time(nanosecond) - Begun,
    case erlang:monotonic_time(millisecond) < End of
        true ->
            ping_until(End, Echo, [Time | Times]);
        false ->
            unlink(Echo),
            exit(Echo, kill),
            Times
    end.

%% The length is geometric with a mean of 15, each byte a sum of four numbers below 64.
-spec random_key() -> binary().
random_key() ->
    random_key(<<>>).

-spec random_key(binary()) -> binary().
random_key(Key) ->
    Random = rand:uniform(1 bsl 28) - 1,
    case Random band 15 of
        0 ->
            Key;
        _ ->
            <<A:6, B:6, C:6, D:6>> = <<(Random bsr 4):24>>,
            random_key(<<Key/binary, (A + B + C + D)>>)
    end.

%%--------------------------------------------------------------------------------------------
%% Beside others
%%--------------------------------------------------------------------------------------------

%% Runs all modules in each round, beginning with another one each time.
beside_others(#options{rounds = Rounds, objects = Objects}, Directory) ->
    Modules = [dets, dats | [bitcask || code:which(bitcask) =/= non_existing]],
    Measured = [beside_others(Objects, ats_bench_sides:turned(Round, Modules),
                              filename:join(Directory, integer_to_list(Round)))
                || Round <- lists:seq(1, Rounds)],
    Names = [Name || {Name, _} <- hd(Measured)],
    Rows = [row(Name, Modules, [maps:from_list(proplists:get_value(Name, Round))
                                || Round <- Measured]) || Name <- Names],
    print(Objects, Modules, Rows),
    Rows.

row(Name, Modules, Rounds) ->
    Sides = [M || M <- Modules, lists:all(fun(Round) -> is_map_key(M, Round) end, Rounds)],
    #{kind => disk, name => Name, unit => "s", better => less,
      sides => [atom_to_list(Side) || Side <- Sides],
      rates => maps:from_list([{atom_to_list(Side), [maps:get(Side, Round) || Round <- Rounds]}
                               || Side <- Sides])}.

print(Objects, Modules, Rows) ->
    Columns = [atom_to_list(M) || M <- Modules],
    io:format("~n~b objects, seconds, median~n~-32s", [Objects, ""]),
    lists:foreach(fun(Column) -> io:format(" ~10s", [Column]) end, Columns),
    io:nl(),
    lists:foreach(
        fun(#{name := Name, rates := Rates}) ->
                io:format("~-32s", [Name]),
                lists:foreach(fun(Column) ->
                                      Text = case Rates of
                                                 #{Column := All} ->
                                                     io_lib:format("~.3f", [median(All)]);
                                                 _ ->
                                                     "-"
                                             end,
                                      io:format(" ~10s", [Text])
                              end, Columns),
                io:nl()
        end, Rows).

median(Numbers) -> ats_bench_report:median(Numbers).

%% Seconds of each piece of work by module. Objects of bitcask are binaries; it has neither counters
%% nor lists.
beside_others(Objects, Modules, Directory) ->
    ok = filelib:ensure_dir(filename:join(Directory, "x")),
    File = fun(M) -> filename:join(Directory, atom_to_list(M)) end,
    Opened = fun() -> [{M, open(M, File(M))} || M <- Modules] end,
    Close = fun({M, Table}) -> ok = M:close(Table) end,
    Tables = Opened(),
    Keys = [erlang:phash2({key, N}, 1 bsl 27) || N <- lists:seq(1, Objects)],
    Value = binary:copy(<<"v">>, 100),
    Terms = fun(Of) -> [Table || {M, _} = Table <- Of, M =/= bitcask] end,
    Row = fun(Name, Of, Work) -> {Name, [{M, seconds(Work, Table)} || {M, _} = Table <- Of]} end,
    First =
        [Row("insert one by one", Tables,
             fun(Table) -> [put(Table, Key, Value) || Key <- Keys] end),
         Row("lookup", Tables,
             fun(Table) -> [true = has(Table, Key) || Key <- Keys] end),
         Row("lookup of missing keys", Tables,
             fun(Table) -> [false = has(Table, {none, Key}) || Key <- Keys] end),
         Row("update_counter, 1000 keys", Terms(Tables),
             fun({M, T}) ->
                     _ = [ok = M:insert(T, {{c, N}, 0}) || N <- lists:seq(0, 999)],
                     [M:update_counter(T, {c, Key rem 1000}, 1) || Key <- Keys]
             end),
         Row("fold over all", Tables, fun fold/1),
         Row("insert of lists of 1000", Terms(Tables),
             fun({M, T}) -> insert_lists(M, T, Objects div 1000) end)],
    %% The copy that is left of a table that is open when the machine stops.
    _ = [os:cmd("cp -r " ++ File(M) ++ " " ++ File(M) ++ ".left") || M <- Modules],
    Closed = Row("close", Tables, Close),
    Crashed = {"open after a crash",
               [{M, seconds(fun(_) -> open(M, File(M) ++ ".left") end, M)} || M <- Modules]},
    Again = Opened(),
    Deleted = Row("delete one by one", Again,
                  fun(Table) -> [remove(Table, Key) || Key <- Keys] end),
    lists:foreach(Close, Again),
    First ++ [Closed, Crashed, Deleted].

seconds(Work, Table) ->
    {Time, _} = timer:tc(fun() -> Work(Table) end),
    Time / 1000000.

%% The module is a variable, as it may be missing when this file is compiled and checked.
open(bitcask = M, File) ->
    Store = M:open(File, [read_write]),
    true = is_reference(Store),
    Store;
open(Module, File) ->
    {ok, Table} = Module:open_file({Module, File}, [{file, File}]),
    Table.

put({bitcask = M, Store}, Key, Value) -> ok = M:put(Store, term_to_binary(Key), Value);
put({Module, Table}, Key, Value) -> ok = Module:insert(Table, {Key, Value}).

has({bitcask = M, Store}, Key) -> M:get(Store, term_to_binary(Key)) =/= not_found;
has({Module, Table}, Key) -> Module:lookup(Table, Key) =/= [].

remove({bitcask = M, Store}, Key) -> ok = M:delete(Store, term_to_binary(Key));
remove({Module, Table}, Key) -> ok = Module:delete(Table, Key).

fold({bitcask = M, Store}) -> M:fold(Store, fun(_, _, N) -> N + 1 end, 0);
fold({Module, Table}) -> Module:foldl(fun(_, N) -> N + 1 end, 0, Table).

insert_lists(_, _, 0) ->
    ok;
insert_lists(Module, Table, N) ->
    ok = Module:insert(Table, [{{list, N, I}, I} || I <- lists:seq(1, 1000)]),
    insert_lists(Module, Table, N - 1).

-spec parallel([fun(() -> T)]) -> [T].
parallel(Funs) ->
    Started = [spawn_monitor(fun() -> exit({done, Fun()}) end) || Fun <- Funs],
    [receive {'DOWN', Monitor, process, Pid, {done, Result}} -> Result end
     || {Pid, Monitor} <- Started].

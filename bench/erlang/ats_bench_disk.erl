%% @private
%% @doc Tables on disk: the benchmark of osmos, and the same work on `dets'.
%%
%% The benchmark of osmos (Radford, 2009): one process writes as fast as it can, another reads every
%% ten milliseconds; keys are binaries of about fifteen bytes, some of which come very often. Beside
%% them two processes send each other messages, to see what the others have to wait for.
-module(ats_bench_disk).

-export([main/1, osmos/2, beside_dets/2]).

-define(KEYS, 2_000_000).

%% @doc `--quick' measures for a few seconds.
-spec main([string()]) -> ok.
main(Arguments) ->
    Quick = lists:member("--quick", Arguments),
    Directory = filename:join(os:getenv("TMPDIR", "/tmp"), "ats-bench-disk-" ++ os:getpid()),
    ok = filelib:ensure_dir(filename:join(Directory, "x")),
    try
        {Seconds, Objects} = case Quick of
                                 true -> {5, 100000};
                                 false -> {60, 1000000}
                             end,
        osmos(Seconds, Directory),
        beside_dets(Objects, Directory)
    after
        _ = file:del_dir_r(Directory)
    end,
    ok.

%%--------------------------------------------------------------------------------------------
%% The benchmark of osmos
%%--------------------------------------------------------------------------------------------

-spec osmos(pos_integer(), file:filename()) -> ok.
osmos(Seconds, Directory) ->
    {ok, t} = dats:open(t, [{directory, filename:join(Directory, "osmos")},
                            {format, {term, uint64_sum_delete, 1024}}]),
    %% To make a key takes longer than to write it.
    Keys = [random_key() || _ <- lists:seq(1, ?KEYS)],
    End = erlang:monotonic_time(millisecond) + Seconds * 1000,
    Work = [fun() -> write_until(End, Keys) end,
            fun() -> read_until(End, []) end,
            fun() -> ping_until(End, start_echo(), []) end],
    [{Writes, WriteTimes}, Reads, Pings] = parallel(Work),
    io:format("osmos, ~b s: ~b writes a second~n", [Seconds, Writes div Seconds]),
    show("write", WriteTimes),
    show("read", Reads),
    show("message and back", Pings),
    #{stalls := Stalls, runs := Runs, file_bytes := Bytes} = dats:info(t, stats),
    io:format("~b stalls, ~b runs, ~b MB~n", [Stalls, Runs, Bytes div 1000000]),
    ok = dats:close(t).

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

-spec show(string(), [non_neg_integer()]) -> ok.
show(What, Times) ->
    Sorted = list_to_tuple(lists:sort(Times)),
    At = fun(Share) -> element(max(1, round(tuple_size(Sorted) * Share)), Sorted) / 1000 end,
    io:format("~-18s p50 ~8.1f us, p90 ~8.1f, p99 ~8.1f, p99.9 ~8.1f, max ~8.1f (~b)~n",
              [What, At(0.5), At(0.9), At(0.99), At(0.999), At(1.0), tuple_size(Sorted)]).

%%--------------------------------------------------------------------------------------------
%% Beside dets
%%--------------------------------------------------------------------------------------------

-spec beside_dets(pos_integer(), file:filename()) -> ok.
beside_dets(Objects, Directory) ->
    io:format("~n~b objects, seconds~n~-32s ~10s ~10s ~8s~n",
              [Objects, "", "dets", "dats", "ratio"]),
    Files = [{Module, filename:join(Directory, atom_to_list(Module))} || Module <- [dets, dats]],
    Open = fun({Module, File}) -> {ok, t} = Module:open_file(t, [{file, File}]) end,
    Close = fun({Module, _}) -> ok = Module:close(t) end,
    _ = [Open(Table) || Table <- Files],
    Keys = [erlang:phash2({key, N}, 1 bsl 27) || N <- lists:seq(1, Objects)],
    Row = fun(What, Work) ->
                  [Dets, Dats] = [begin {Time, _} = timer:tc(fun() -> Work(Table) end),
                                        Time / 1000000
                                  end || Table <- Files],
                  io:format("~-32s ~10.2f ~10.2f ~8.1f~n", [What, Dets, Dats, Dets / Dats])
          end,
    Value = binary:copy(<<"v">>, 100),
    Row("insert one by one",
        fun({M, _}) -> [ok = M:insert(t, {Key, Value}) || Key <- Keys] end),
    Row("lookup",
        fun({M, _}) -> [[_] = M:lookup(t, Key) || Key <- Keys] end),
    Row("lookup of missing keys",
        fun({M, _}) -> [[] = M:lookup(t, {none, Key}) || Key <- Keys] end),
    Row("update_counter, 1000 keys",
        fun({M, _}) ->
                _ = [ok = M:insert(t, {{c, N}, 0}) || N <- lists:seq(0, 999)],
                [M:update_counter(t, {c, Key rem 1000}, 1) || Key <- Keys]
        end),
    Row("fold over all",
        fun({M, _}) -> M:foldl(fun(_, N) -> N + 1 end, 0, t) end),
    Row("insert of lists of 1000",
        fun({M, _}) -> insert_lists(M, Objects div 1000) end),
    %% The copy that is left of a table that is open when the machine stops.
    Left = fun({Module, File}) -> {Module, File ++ ".left"} end,
    _ = [os:cmd("cp -r " ++ File ++ " " ++ File ++ ".left") || {_, File} <- Files],
    Row("close", Close),
    Row("open after a crash", fun(Table) -> Open(Left(Table)) end),
    Row("close", Close),
    Row("open", Open),
    Row("delete one by one",
        fun({M, _}) -> [ok = M:delete(t, Key) || Key <- Keys] end),
    _ = [Close(Table) || Table <- Files],
    ok.

-spec insert_lists(module(), non_neg_integer()) -> ok.
insert_lists(_Module, 0) ->
    ok;
insert_lists(Module, N) ->
    ok = Module:insert(t, [{{list, N, I}, I} || I <- lists:seq(1, 1000)]),
    insert_lists(Module, N - 1).

-spec parallel([fun(() -> T)]) -> [T].
parallel(Funs) ->
    Started = [spawn_monitor(fun() -> exit({done, Fun()}) end) || Fun <- Funs],
    [receive {'DOWN', Monitor, process, Pid, {done, Result}} -> Result end
     || {Pid, Monitor} <- Started].

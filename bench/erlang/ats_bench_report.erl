%% @private
%% @doc The findings of the benchmark: rows, how they are printed, and the file they go to.
%%
%% A row is a map that says its `kind': `workload' (operations a second), `memory' (bytes an
%% object) or `boundary' (nanoseconds a call). Ratios are medians over the rounds of the ratio
%% within a round.
-module(ats_bench_report).

-export([workload_rows/3, memory_row/3, boundary_row/3]).
-export([machine_facts/0, print_facts/1, print/1, write/3]).
-export([progress/2, progress_done/0]).

-export_type([row/0, round/0, facts/0]).

-type row() :: #{kind := workload | memory | boundary, atom() => term()}.
%% Operations a second, by side and number of processes.
-type round() :: #{{ats_bench_run:side(), pos_integer()} => float()}.
-type facts() :: [{string(), string() | integer()}].

%%--------------------------------------------------------------------------------------------
%% Rows
%%--------------------------------------------------------------------------------------------

%% @doc The rows of a workload, one for each number of processes.
%%
%% Labels say what it is (`name', `type', `keys', `loop_ns' as a number or `null'). Scaling is the
%% throughput over that of the smallest number of processes on the same side.
-spec workload_rows(map(), [pos_integer()], [round()]) -> [row()].
workload_rows(Labels, [Least | _] = Processes, Rounds) ->
    [maps:merge(Labels, workload_row(P, Least, Rounds)) || P <- Processes].

workload_row(P, Least, Rounds) ->
    Rates = [maps:from_list([{Side, maps:get({Side, P}, Round, null)}
                             || Side <- [ats, ets_plain, ets_wc]]) || Round <- Rounds],
    Rate = fun(Side) -> median([maps:get(Side, R) || R <- Rates]) end,
    Over = fun(Above, Below) -> ratio(rate(Above, P), rate(Below, P), Rounds) end,
    Scaling = fun(_) when P =:= Least -> null;
                 (Side) -> ratio(rate(Side, P), rate(Side, Least), Rounds)
              end,
    #{kind => workload, processes => P, rounds => Rates,
      ats => Rate(ats), ets_plain => Rate(ets_plain), ets_wc => Rate(ets_wc),
      ratio_plain => Over(ats, ets_plain), ratio_wc => Over(ats, ets_wc),
      ratio_better => Over(ats, better),
      time_over_plain => Over(ets_plain, ats), time_over_wc => Over(ets_wc, ats),
      scaling_ats => Scaling(ats), scaling_plain => Scaling(ets_plain),
      scaling_wc => Scaling(ets_wc)}.

%% Takes the rate of a side from a round; `better' is the faster of the two tables of `ets'.
rate(better, P) ->
    fun(Round) ->
            case {(rate(ets_plain, P))(Round), (rate(ets_wc, P))(Round)} of
                {Plain, Wc} when is_float(Plain), is_float(Wc) -> max(Plain, Wc);
                {Plain, null} -> Plain;
                {null, Wc} -> Wc
            end
    end;
rate(Side, P) ->
    fun(Round) -> maps:get({Side, P}, Round, null) end.

ratio(Above, Below, Rounds) ->
    median([case {Above(R), Below(R)} of
                {A, B} when is_float(A), is_float(B) -> A / B;
                _ -> null
            end || R <- Rounds]).

%% @doc The row of a kind of objects in a type of table; bytes by side, as `info/2' says and as is
%% resident.
-spec memory_row(ats:table_type(), string(),
                 [{ats_bench_run:side(), [{float(), float() | null}]}]) -> row().
memory_row(Type, Objects, Sides) ->
    lists:foldl(fun({Side, Measured}, Row) ->
                        {Reported, Resident} = lists:unzip(Measured),
                        Row#{Side => median(Reported), resident(Side) => median(Resident)}
                end, #{kind => memory, type => Type, objects => Objects}, Sides).

resident(ats) -> ats_resident;
resident(ets_plain) -> ets_plain_resident;
resident(ets_wc) -> ets_wc_resident.

%% @doc Nanoseconds of a call: of a native function that does next to nothing, and of `member/2' of
%% both sides.
-spec boundary_row(float(), float(), float()) -> row().
boundary_row(Least, Ats, Ets) ->
    #{kind => boundary, least_ns => Least, ats_member_ns => Ats, ets_member_ns => Ets,
      over_least_ns => Ats - Least}.

%% `null' stands for what could not be measured; one makes the whole unknown.
median(Numbers) ->
    Sorted = lists:sort(Numbers),
    Middle = length(Sorted) div 2,
    case lists:member(null, Sorted) of
        true -> null;
        false when length(Sorted) rem 2 =:= 1 -> lists:nth(Middle + 1, Sorted);
        false -> (lists:nth(Middle, Sorted) + lists:nth(Middle + 1, Sorted)) / 2
    end.

%%--------------------------------------------------------------------------------------------
%% Printing
%%--------------------------------------------------------------------------------------------

%% @doc Prints what is known of the machine.
-spec print_facts(facts()) -> ok.
print_facts(Facts) ->
    lists:foreach(fun({Key, Value}) ->
                          io:format("  ~ts: ~ts~n", [Key, printed(Value)])
                  end, Facts).

printed(Value) when is_integer(Value) -> integer_to_list(Value);
printed(Value) -> Value.

%% @doc Prints the rows.
-spec print([row()]) -> ok.
print(Rows) ->
    print_workloads([R || #{kind := workload} = R <- Rows]),
    print_times([R || #{kind := workload, timed := true} = R <- Rows]),
    print_memory([R || #{kind := memory} = R <- Rows]),
    lists:foreach(fun print_boundary/1, [R || #{kind := boundary} = R <- Rows]).

print_workloads([]) ->
    ok;
print_workloads(Rows) ->
    io:format("~nmillion operations a second, median; ratios are medians within rounds;~n"
              "better is over the faster of the two; "
              "scaling is the throughput over that of one process~n~n"
              "~-72ts ~1s ~26ts ~24ts ~20ts~n", ["", "", "", "ratio ats over", "scaling"]),
    print_line(["workload", "keys", "type", "P",
                "ats", "ets", "ets wc", "ets", "ets wc", "better", "ats", "ets", "ets wc"]),
    lists:foreach(fun print_workload/1, Rows),
    case [Ns || #{loop_ns := Ns} <- Rows, is_float(Ns)] of
        [] -> ok;
        Loop -> io:format("~nthe loop itself, part of all figures: ~.1f to ~.1f ns an operation~n",
                          [lists:min(Loop), lists:max(Loop)])
    end.

print_workload(#{name := Name, keys := Keys, type := Type, processes := P} = Row) ->
    Millions = [decimals(millions(maps:get(Side, Row)), 3) || Side <- [ats, ets_plain, ets_wc]],
    Ratios = [decimals(maps:get(Ratio, Row), 2)
              || Ratio <- [ratio_plain, ratio_wc, ratio_better,
                           scaling_ats, scaling_plain, scaling_wc]],
    print_line([Name, Keys, atom_to_list(Type), integer_to_list(P)] ++ Millions ++ Ratios).

print_line(Columns) ->
    io:format("~-47ts ~-11ts ~-13ts ~1ts ~8ts ~8ts ~8ts ~8ts ~8ts ~6ts ~6ts ~6ts ~6ts~n", Columns).

millions(null) -> null;
millions(Rate) -> Rate / 1.0e6.

%% Where all processes together have a fixed amount of work, the time is what one wants to know.
print_times([]) ->
    ok;
print_times(Rows) ->
    io:format("~ntime of ats over the time of ets: the less the better~n~n"
              "~-47ts ~-13ts ~1ts ~12ts ~12ts~n", ["", "type", "P", "over ets", "over ets wc"]),
    lists:foreach(fun(#{name := Name, type := Type, processes := P, time_over_plain := Plain,
                        time_over_wc := Wc}) ->
                          io:format("~-47ts ~-13ts ~1b ~12ts ~12ts~n",
                                    [Name, atom_to_list(Type), P,
                                     decimals(Plain, 4), decimals(Wc, 4)])
                  end, Rows).

print_memory([]) ->
    ok;
print_memory(Rows) ->
    io:format("~nbytes an object~n~n~-28ts ~26ts  ~26ts~n",
              ["", "info(Table, memory)", "resident"]),
    Format = "~-16ts ~-11ts ~8ts ~8ts ~8ts  ~8ts ~8ts ~8ts~n",
    io:format(Format, ["objects", "type", "ats", "ets", "ets wc", "ats", "ets", "ets wc"]),
    lists:foreach(fun(#{objects := Objects, type := Type} = Row) ->
                          Bytes = [decimals(maps:get(Item, Row), 1)
                                   || Item <- [ats, ets_plain, ets_wc, ats_resident,
                                               ets_plain_resident, ets_wc_resident]],
                          io:format(Format, [Objects, atom_to_list(Type) | Bytes])
                  end, Rows).

print_boundary(#{least_ns := Least, ats_member_ns := Ats, ets_member_ns := Ets,
                 over_least_ns := Over}) ->
    io:format("~na call: is_compiled_ms(0) ~.1f ns, ats:member/2 on an empty table ~.1f ns "
              "(~.1f more), ets:member/2 ~.1f ns, loop included~n", [Least, Ats, Over, Ets]).

decimals(null, _) -> "-";
decimals(Number, Decimals) -> float_to_list(float(Number), [{decimals, Decimals}]).

%% @doc Says what is going on: on a terminal in a line that is overwritten.
-spec progress(io:format(), [term()]) -> ok.
progress(Format, Args) ->
    case is_terminal() of
        true -> io:format("\r\e[K  ~ts", [io_lib:format(Format, Args)]);
        false -> io:format("  ~ts~n", [io_lib:format(Format, Args)])
    end.

%% @doc Takes that line away.
-spec progress_done() -> ok.
progress_done() ->
    case is_terminal() of
        true -> io:format("\r\e[K");
        false -> ok
    end.

is_terminal() ->
    case io:columns() of
        {ok, _} -> true;
        {error, _} -> false
    end.

%%--------------------------------------------------------------------------------------------
%% Machine
%%--------------------------------------------------------------------------------------------

%% @doc The machine on which the figures were taken.
-spec machine_facts() -> facts().
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

%%--------------------------------------------------------------------------------------------
%% Files
%%--------------------------------------------------------------------------------------------

%% @doc Writes one JSON object a line, the machine first, then every row. Returns the file's name.
-spec write([row()], facts(), file:name()) -> file:filename_all().
write(Rows, Facts, Folder) ->
    {{Y, Mo, D}, {H, Mi, S}} = calendar:local_time(),
    Name = io_lib:format("~4..0b-~2..0b-~2..0b_~2..0b~2..0b~2..0b.jsonl", [Y, Mo, D, H, Mi, S]),
    File = filename:join(Folder, Name),
    ok = filelib:ensure_dir(File),
    Machine = maps:from_list([{kind, machine} | [{list_to_atom(K), V} || {K, V} <- Facts]]),
    ok = file:write_file(File, [[json(R), $\n] || R <- [Machine | Rows]]),
    File.

json(Map) when is_map(Map) ->
    Pairs = [[json(atom_to_list(K)), $:, json(V)] || {K, V} <- lists:sort(maps:to_list(Map))],
    [${, lists:join($,, Pairs), $}];
json(Constant) when Constant =:= null; is_boolean(Constant) -> atom_to_list(Constant);
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

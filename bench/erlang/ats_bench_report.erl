%% @private
%% @doc The findings of the benchmark: rows, how they are printed, and the file they go to.
%%
%% A row is a map that says its `kind': `workload', `memory' or `boundary', and has under `rates'
%% the figures of all rounds by side, in the `unit' that it names. Ratios are medians over the
%% rounds of the ratio within a round.
-module(ats_bench_report).

-export([workload_rows/4, memory_row/3, boundary_row/3, percentiles/1]).
-export([machine_facts/0, print_facts/1, print/1, write/4]).
-export([progress/2, progress_done/0, median/1]).

-export_type([row/0, round/0, facts/0]).

-type row() :: #{kind := workload | memory | boundary, atom() => term()}.
%% Operations a second, by side and number of processes.
-type round() :: #{{Side :: string(), pos_integer()} => float()}.
-type facts() :: [{string(), string() | integer()}].

%%--------------------------------------------------------------------------------------------
%% Rows
%%--------------------------------------------------------------------------------------------

%% @doc Returns the rows of a workload, one for each number of processes.
%%
%% Labels identify it (`name', `field', `type', `keys', `set', and `loop_ns' as a number or `null').
%% The first side is compared with the others.
-spec workload_rows(map(), [string(), ...], [pos_integer()], [round()]) -> [row()].
workload_rows(Labels, Sides, Processes, Rounds) ->
    [Labels#{kind => workload, unit => "operations/s", better => more, processes => P,
             sides => Sides,
             rates => maps:from_list([{Side, [maps:get({Side, P}, Round) || Round <- Rounds]}
                                      || Side <- Sides]),
             ratios => ratios(Sides, P, Rounds)} || P <- Processes].

%% Returns the rate of the first side over that of each other one, and over that of the fastest of
%% these.
ratios([Ours | Others], P, Rounds) ->
    Rate = fun(Side, Round) -> maps:get({Side, P}, Round) end,
    Over = fun(Of) -> median([Rate(Ours, Round) / Of(Round) || Round <- Rounds]) end,
    Best = fun(Round) -> lists:max([Rate(Side, Round) || Side <- Others]) end,
    (maps:from_list([{Side, Over(fun(Round) -> Rate(Side, Round) end)} || Side <- Others]))
    #{"best" => Over(Best)}.

%% @doc Returns the row of a kind of objects in a type of table; bytes by side, as `info/2' says and
%% as is resident.
-spec memory_row(ats:table_type(), string(), [{string(), [{float(), float() | null}]}]) -> row().
memory_row(Type, Objects, Sides) ->
    #{kind => memory, type => Type, objects => Objects, unit => "bytes an object", better => less,
      sides => [Side || {Side, _} <- Sides],
      rates => maps:from_list([{Side, [Bytes || {Bytes, _} <- Measured]}
                               || {Side, Measured} <- Sides]),
      resident => maps:from_list([{Side, [Bytes || {_, Bytes} <- Measured]}
                                  || {Side, Measured} <- Sides])}.

%% @doc Nanoseconds of a call: of a native function that does next to nothing, and of `member/2' of
%% both sides.
-spec boundary_row(float(), float(), float()) -> row().
boundary_row(Least, Ats, Ets) ->
    #{kind => boundary, least_ns => Least, ats_member_ns => Ats, ets_member_ns => Ets,
      over_least_ns => Ats - Least}.

%% @doc Microseconds that these parts of calls took at most, as pairs of the part and the time, of a
%% function that tells the nanoseconds of a part.
-spec percentiles(fun((float()) -> number())) -> [[float()]].
percentiles(At) ->
    [[Part, At(Part) / 1000] || Part <- [0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.995, 0.999,
                                         0.9995, 0.9999, 1.0]].

%% @doc Returns the median; `null' if one of the numbers is.
-spec median([number() | null, ...]) -> number() | null.
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

%% @doc Prints the facts about the machine.
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
    Workloads = [R || #{kind := workload} = R <- Rows],
    print_workloads(none, Workloads),
    print_loops([Ns || #{loop_ns := Ns} <- Workloads, is_float(Ns)]),
    print_memory([R || #{kind := memory} = R <- Rows]),
    lists:foreach(fun print_boundary/1, [R || #{kind := boundary} = R <- Rows]).

%% Prints a new head where the sides change.
print_workloads(_, []) ->
    ok;
print_workloads(Sides, [#{sides := Sides} = Row | Rows]) ->
    print_workload(Row),
    print_workloads(Sides, Rows);
print_workloads(_, [#{sides := [Ours | Others] = Sides} | _] = Rows) ->
    io:format("~n~s in million operations a second, median, and ratios over the others, medians "
              "within rounds; best is over the fastest~n~n", [Ours]),
    print_line(["workload", "keys", "set", "type", "P", "loop ns", Ours], Others ++ ["best"]),
    print_workloads(Sides, Rows).

print_workload(#{name := Name, keys := Keys, set := Set, type := Type, processes := P,
                 loop_ns := LoopNs, sides := [Ours | Others], rates := Rates, ratios := Ratios}) ->
    print_line([Name, Keys, atom_to_list(Set), atom_to_list(Type), integer_to_list(P),
                decimals(LoopNs, 1), decimals(median(maps:get(Ours, Rates)) / 1.0e6, 4)],
               [decimals(maps:get(Side, Ratios), 2) || Side <- Others ++ ["best"]]).

print_line(Labels, Ratios) ->
    io:format("~-51ts ~-11ts ~-5ts ~-13ts ~1ts ~8ts ~9ts", Labels),
    lists:foreach(fun(Ratio) -> io:format(" ~8ts", [Ratio]) end, Ratios),
    io:nl().

print_loops([]) ->
    ok;
print_loops(Loops) ->
    io:format("~nthe loop itself, part of all figures: ~.1f to ~.1f ns an operation~n",
              [lists:min(Loops), lists:max(Loops)]).

print_memory([]) ->
    ok;
print_memory([#{sides := Sides} | _] = Rows) ->
    io:format("~nbytes an object: as info(Table, memory) says, and as is resident~n~n"
              "~-16ts ~-11ts", ["objects", "type"]),
    lists:foreach(fun(Column) -> io:format(" ~8ts", [Column]) end, Sides ++ Sides),
    io:nl(),
    lists:foreach(fun(#{objects := Objects, type := Type, rates := Rates, resident := Resident}) ->
                          io:format("~-16ts ~-11ts", [Objects, Type]),
                          lists:foreach(fun({Of, Side}) ->
                                                Bytes = median(maps:get(Side, Of)),
                                                io:format(" ~8ts", [decimals(Bytes, 1)])
                                        end, [{Of, Side} || Of <- [Rates, Resident],
                                                            Side <- Sides]),
                          io:nl()
                  end, Rows).

print_boundary(#{least_ns := Least, ats_member_ns := Ats, ets_member_ns := Ets,
                 over_least_ns := Over}) ->
    io:format("~na call: is_compiled_ms(0) ~.1f ns, ats:member/2 on an empty table ~.1f ns "
              "(~.1f more), ets:member/2 ~.1f ns, loop included~n", [Least, Ats, Over, Ets]).

decimals(null, _) -> "-";
decimals(Number, Decimals) -> float_to_list(float(Number), [{decimals, Decimals}]).

%% @doc Shows the progress: on a terminal in a line that is overwritten.
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

%% @doc Returns the machine on which the figures were taken.
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

%% @doc Writes one JSON object a line, the machine first, then every row. The name of the file,
%% which is returned, begins with that of the measurement.
-spec write(string(), [row()], facts(), file:name()) -> file:filename_all().
write(Measurement, Rows, Facts, Folder) ->
    {{Y, Mo, D}, {H, Mi, S}} = calendar:local_time(),
    Name = io_lib:format("~ts_~4..0b-~2..0b-~2..0b_~2..0b~2..0b~2..0b.jsonl",
                         [Measurement, Y, Mo, D, H, Mi, S]),
    File = filename:join(Folder, Name),
    ok = filelib:ensure_dir(File),
    Machine = maps:from_list([{kind, machine} | [{list_to_atom(K), V} || {K, V} <- Facts]]),
    ok = file:write_file(File, [[json(R), $\n] || R <- [Machine | Rows]]),
    File.

json(Map) when is_map(Map) ->
    Pairs = [[json(text(K)), $:, json(V)] || {K, V} <- lists:sort(maps:to_list(Map))],
    [${, lists:join($,, Pairs), $}];
json(Constant) when Constant =:= null; is_boolean(Constant) -> atom_to_list(Constant);
json(Atom) when is_atom(Atom) -> json(atom_to_list(Atom));
json(Integer) when is_integer(Integer) -> integer_to_list(Integer);
json(Float) when is_float(Float) -> float_to_list(Float, [{decimals, 4}, compact]);
json([First | _] = List) when not is_integer(First) ->
    [$[, lists:join($,, [json(Item) || Item <- List]), $]];
json(String) ->
    [$", [escaped(C) || C <- unicode:characters_to_list(String)], $"].

text(Atom) when is_atom(Atom) -> atom_to_list(Atom);
text(Text) -> Text.

escaped($") -> "\\\"";
escaped($\\) -> "\\\\";
escaped(C) when C < 32 -> io_lib:format("\\u~4.16.0b", [C]);
escaped(C) -> unicode:characters_to_binary([C]).

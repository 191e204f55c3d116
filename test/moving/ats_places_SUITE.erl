%% @doc The report on a copy names the places that see the inside of `ets', or mean another thing.
%%
%% Each row is a source and the sentences about it, with the line and the function of each place.
%% The sentences are the same without debug information, except for lines that only that has.
-module(ats_places_SUITE).

-include_lib("stdlib/include/assert.hrl").

-export([all/0]).
-export([inside_of_tables/1, from_outside/1, atom_as_data/1, variables/1, nothing_to_say/1]).
-export([lines/1, lines_of_other_files/1, lines_without_debug_info/1, lines_of_elixir/1]).
-export([data_has_a_place/1, report/1, example_of_the_page/1]).

all() ->
    [inside_of_tables, from_outside, atom_as_data, variables, nothing_to_say, lines,
     lines_of_other_files, lines_without_debug_info, lines_of_elixir, data_has_a_place, report,
     example_of_the_page].

%% ----- the table -----

-define(NUMBERS, "other numbers, in words as in ets").

%% Calls that go to `ats' in a copy.
inside_of_tables(_) ->
    rows([
        {"f(T) -> ets:info(T, memory) * 8.", ["3 f/1 ets:info(_, memory): " ?NUMBERS]},
        {"f() -> lists:sum([ets:info(T, memory)\n || T <- ets:all()]).",
         ["3 f/0 ets:info(_, memory): " ?NUMBERS,
          "4 f/0 ets:all(): returns the tables of ats, and those of ets no more"]},
        {"f(T) -> ets:info(T, stats).",
         ["3 f/1 ets:info(_, stats): a map of figures about the structures of ats"]},
        {"f(T) -> {ets:info(T, safe_fixed), ets:info(T, safe_fixed_monotonic_time)}.",
         ["3 f/1 ets:info(_, safe_fixed): a select under way fixes no table, and is not shown",
          "3 f/1 ets:info(_, safe_fixed_monotonic_time): a select under way fixes no table, and "
          "is not shown"]},
        {"f(T) -> ets:info(T, binary).",
         ["3 f/1 ets:info(_, binary): lists other binaries, as small ones are copied"]},
        {"f(T) -> ets:info(T, data).",
         ["3 f/1 ets:info(_, data): badarg, as ats does not know the item"]},
        {"f(T, I) -> ets:info(T, I).",
         ["3 f/2 ets:info(_, _): memory, stats, safe_fixed and binary have other values than in "
          "ets"]},
        {"f(T) -> ets:info(T).",
         ["3 f/1 ets:info(_): the memory has other numbers, in words as in ets"]},
        {"f(L) -> ets:all() =:= L.",
         ["3 f/1 ets:all(): returns the tables of ats, and those of ets no more"]},
        {"f() -> ets:i().",
         ["3 f/0 ets:i(): prints the tables of ats, and those of ets no more"]},
        {"f(T) -> ets:i(T), ets:i(T, 5), ets:i(T, 5, 80).",
         ["3 f/1 ets:i(_): prints objects in the order of ats",
          "3 f/1 ets:i(_, 5): prints objects in the order of ats",
          "3 f/1 ets:i(_, 5, 80): prints objects in the order of ats"]},
        {"f(T) -> {ets:table(T), ets:table(T, [{traverse, first_next}])}.",
         ["3 f/1 ets:table(_): each walk shows the table of one moment, and qlc:info/1 names ats",
          "3 f/1 ets:table(_, [{traverse,first_next}]): each walk shows the table of one moment, "
          "and qlc:info/1 names ats"]},
        {"f(T) -> ets:slot(T, 0).",
         ["3 f/1 ets:slot(_, 0): objects are in other slots, and their number is another one"]},
        {"f() -> fun ets:slot/2.",
         ["3 f/0 ets:slot(_, _): objects are in other slots, and their number is another one"]},
        {"f(S) -> ets:match_spec_compile(S).",
         ["3 f/1 ets:match_spec_compile(_): the result is one of ats alone"]},
        {"f(F) -> ets:fun2ms(F).",
         ["3 f/1 ets:fun2ms(_): was not translated by the compiler, and fails as in ets"]},
        {"f() -> ets:module_info(exports).",
         ["3 f/0 ets:module_info(exports): tells of the module ats"]},
        {"f(T) -> ets:internal_request_all(), ets:internal_delete_all(T, undefined).",
         ["3 f/1 ets:internal_delete_all(_, undefined): stays with ets, as ats does not have the "
          "function",
          "3 f/1 ets:internal_request_all(): stays with ets, as ats does not have the function"]},
        {"f() -> receive {'ETS-TRANSFER', T, _, _} -> T end.",
         ["3 f/0 'ETS-TRANSFER': of a table of ats, maybe after the 'DOWN' of its owner"]}]).

%% Calls that look at `ets', and stay.
from_outside(_) ->
    Sees = "sees calls of ets, and copies call ats",
    Native = "native code is not looked into",
    NoAllocator = "tables of ats are in no allocator of the emulator",
    Names = "may name functions of ats in the place of ets",
    rows([
        {"f() -> erlang:memory(ets).", ["3 f/0 erlang:memory(ets): counts no tables of ats"]},
        {"f() -> erlang:memory([ets, binary]).",
         ["3 f/0 erlang:memory([ets,binary]): counts no tables of ats"]},
        {"f() -> erlang:memory(total).", ["3 f/0 erlang:memory(total): counts no tables of ats"]},
        {"f() -> erlang:memory().",
         ["3 f/0 erlang:memory(): counts no tables of ats, neither in ets nor in total"]},
        {"f() -> {erlang:system_info(ets_limit),\n erlang:system_info(ets_count)}.",
         ["3 f/0 erlang:system_info(ets_limit): the number is no limit of tables of ats",
          "4 f/0 erlang:system_info(ets_count): counts no tables of ats"]},
        {"f() -> erlang:system_info({allocator, ets_alloc}).",
         ["3 f/0 erlang:system_info({allocator,ets_alloc}): " ++ NoAllocator]},
        {"f() -> instrument:allocations().", ["3 f/0 instrument:allocations(): " ++ NoAllocator]},
        {"f() -> erts_debug:get_internal_state('DbTable_words').",
         ["3 f/0 erts_debug:get_internal_state('DbTable_words'): the emulator knows no tables of "
          "ats"]},
        {"f(P) -> sys:get_state(P).",
         ["3 f/1 sys:get_state(_): a table in the state is one of ats if the process runs copied "
          "code"]},
        {"f() -> dbg:tp(ets, lookup, []).", ["3 f/0 dbg:tp(ets, lookup, []): " ++ Sees]},
        {"f(F) -> dbg:tpl({ets, F, '_'}, x).", ["3 f/1 dbg:tpl({ets,_,_}, x): " ++ Sees]},
        {"f() -> erlang:trace_pattern({ets, '_', '_'}, true, []).",
         ["3 f/0 erlang:trace_pattern({ets,_,_}, true, []): " ++ Sees]},
        {"f(S) -> trace:function(S, {ets, new, 2}, true, []).",
         ["3 f/1 trace:function(_, {ets,new,2}, true, []): " ++ Sees]},
        {"f() -> recon_trace:calls({ets, insert, 2}, 10).",
         ["3 f/0 recon_trace:calls({ets,insert,2}, 10): " ++ Sees]},
        {"f() -> meck:new(ets, [unstick, passthrough]).",
         ["3 f/0 meck:new(ets, [unstick,passthrough]): replaces ets, and copies call ats"]},
        {"f(P) -> process_info(P, [memory, current_function]).",
         ["3 f/1 erlang:process_info(_, [memory,current_function]): " ++ Names]},
        {"f(P) -> process_info(P).", ["3 f/1 erlang:process_info(_): " ++ Names]},
        {"f(F) -> erlang:load_nif(F, 0).", ["3 f/1 erlang:load_nif(_, 0): " ++ Native]},
        {"f(F) -> erl_ddll:load_driver(F, \"d\").",
         ["3 f/1 erl_ddll:load_driver(_, \"d\"): " ++ Native]},
        {"f() -> mnesia:create_table(t, []).",
         ["3 f/0 mnesia:create_table(t, []): the table is in ats only if Mnesia is copied, too"]},
        {"f(T) -> mnesia:table_info(T, memory).",
         ["3 f/1 mnesia:table_info(_, memory): other numbers than with ets if Mnesia is copied, "
          "too"]},
        {"f(F) -> mnesia:activity(ets, F).",
         ["3 f/1 mnesia:activity(ets, _): works as before: a kind of access of Mnesia"]},
        {"f() -> observer:start().", ["3 f/0 observer:start(): shows no tables of ats"]}]).

%% The atom itself: one place for each use.
atom_as_data(_) ->
    Data = "the atom ets is data, and stays",
    Node = "ets of the node has no tables of copies",
    rows([
        {"f() -> ets.", ["3 f/0 " ++ Data]},
        {"f(X) -> case X of\n ets -> 1;\n _ -> 2 end.", ["4 f/1 " ++ Data]},
        {"f(X) when X =:= ets -> 1.", ["3 f/1 " ++ Data]},
        {"f(X) -> #{module => ets, x => X}.", ["3 f/1 " ++ Data]},
        {"f(X) -> #{X => {ets, X}}.", ["3 f/1 " ++ Data]},
        {"f(P) -> P ! ets, ok.", ["3 f/1 " ++ Data]},
        {"f(X) -> g(ets, X).\ng(M, X) -> {X, M}.", ["3 f/1 " ++ Data]},
        {"f(X) -> F = fun() ->\n {X, ets} end, F.", ["4 f/1 " ++ Data]},
        {"f() -> code:which(ets).", ["3 f/0 code:which(ets): gets the atom ets, which stays"]},
        {"f(N, K) -> rpc:call(N, ets, lookup,\n [t, K]).",
         ["3 f/2 rpc:call(_, ets, lookup, [t,_]): " ++ Node]},
        {"f(N) -> erpc:call(N, ets, all, []).", ["3 f/1 erpc:call(_, ets, all, []): " ++ Node]},
        {"f(N) -> spawn(N, ets, delete, [t]).", ["3 f/1 erlang:spawn(_, ets, delete, [t]): " ++
         Node]},
        {"f(S) -> timer:apply_after(S, ets, delete, [t]).",
         ["3 f/1 timer:apply_after(_, ets, delete, [t]): gets the atom ets, which stays"]},
        {"f() -> id(ets).\nid(X) -> id(X).", ["3 f/0 " ++ Data]}]).

%% Modules and functions in variables.
variables(_) ->
    Stays = "stays with ets, as the module has the atom for something else, too",
    If = "stays with ets if that is the module in the variable",
    rows([
        {"f(M, K) -> M:lookup(t, K), ok.", ["3 f/2 _:lookup/2: " ++ If]},
        {"f(M, A) -> apply(M, insert, A).", ["3 f/2 apply(_, insert, _): " ++ If]},
        {"f(M) -> M:handle(1), M:lookup(1, 2, 3, 4), M:module_info().", []},
        {"f(M, F) -> M:F(1), apply(M, F, []).", []},
        {"f(F) -> ets:F(t), ok.", []},
        {"f(F) -> ets:F(t),\n g(ets).\ng(X) -> X.",
         ["3 f/1 ets:_/1: " ++ Stays, "4 f/1 the atom ets is data, and stays"]},
        {"f(F, A) -> apply(ets, F, A),\n {ets}.",
         ["3 f/2 erlang:apply(ets, _, _): " ++ Stays, "4 f/2 the atom ets is data, and stays"]},
        {"f(F) -> spawn(ets, F, []), [ets].",
         ["3 f/1 erlang:spawn(ets, _, []): " ++ Stays, "3 f/1 the atom ets is data, and stays"]}]).

%% A meaning that is the same with either is not named.
nothing_to_say(_) ->
    rows([{Source, []} || Source <- [
        "f(T) -> {ets:info(T, size), ets:info(T, owner), ets:info(T, type)}.",
        "f(T) -> is_reference(ets:whereis(T)).",
        "f() -> T = ets:new(t, [{heir, self(), x}]), ets:give_away(T, self(), y).",
        "f(T) when is_reference(T); is_atom(T) -> node().",
        "f(T) -> dets:to_ets(d, T), dets:from_ets(d, T), dets:open_file(d, []).",
        "f(T) -> ets:tab2file(T, \"f\"), ets:file2tab(\"f\"), ets:to_dets(T, d).",
        "f(T) -> ets:select(T, [{{'$1'}, [], ['$1']}]), ets:foldl(fun(O, _) -> O end, 0, T).",
        "f() -> fun ets:insert/2.",
        "f() -> {erlang:memory(binary), erlang:system_info(wordsize)}.",
        "f(X) -> {erts_debug:flat_size(X), process_info(self(), current_stacktrace)}.",
        "f(P) -> process_info(P, [memory, message_queue_len]).",
        "f() -> dbg:tp(lists, map, []), meck:new(lists).",
        "f(X) -> mnesia:dirty_write({t, X}), mnesia:transaction(fun() -> mnesia:read(t, X) end).",
        "ets() -> own.\nf() -> ets()."]]).

rows(Rows) ->
    [?assertEqual(lists:sort(Expected), said(compile(Source, [debug_info])), Source)
     || {Source, Expected} <- Rows].

said(Beam) ->
    #{places := Places} = ats_try_beam:look(Beam),
    lists:sort([lists:flatten(io_lib:format("~ts ~tw/~b ~ts", [line(Line), Name, Arity, Text]))
                || {{Name, Arity}, Line, _, Text} <- Places]).

line(unknown) -> "?";
line({File, Line}) -> File ++ ":" ++ integer_to_list(Line);
line(Line) -> integer_to_list(Line).

%% The source begins in the third line.
compile(Source, Options) ->
    Module = list_to_atom("ats_placed_" ++ integer_to_list(erlang:unique_integer([positive]))),
    compiled(Module, Source, Options).

compiled(Module, Source, Options) ->
    Text = io_lib:format("-file(\"~w.erl\", 1). -module(~w).\n-compile(export_all).\n~ts\n",
                         [Module, Module, Source]),
    {ok, Module, Beam} = compile:forms(ats_test_lib:parsed(lists:flatten(Text)),
                                       [nowarn_export_all | Options]),
    Beam.

%% ----- lines -----

-define(SPREAD, "f(T) ->\n A = ets:info(T, memory),\n g(A),\n case ets:info(T, stats) of\n"
                "  #{} ->\n   ets:i();\n  _ ->\n   {ets, A}\n end.\n\n"
                "g(A) -> lists:foreach(fun(T) ->\n   ets:info(T, A), h(),\n   ets:slot(T, 1)\n"
                "  end, [1]).\nh() -> ok.").

lines(_) ->
    ?assertEqual(["4:f/1", "6:f/1", "8:f/1", "10:f/1", "14:g/1", "15:g/1"],
                 placed(compile(?SPREAD, [debug_info]))).

%% Calls that may fail have lines; for others the function is named.
lines_without_debug_info(_) ->
    ?assertEqual(["4:f/1", "6:f/1", "14:g/1", "15:g/1", "?:f/1", "?:f/1"],
                 placed(compile(?SPREAD, []))),
    {ok, {_, Stripped}} = beam_lib:strip(compile(?SPREAD, [debug_info])),
    ?assertEqual(placed(compile(?SPREAD, [])), placed(Stripped)),
    ?assertEqual(lists:duplicate(4, "?:f/1") ++ lists:duplicate(2, "?:g/1"),
                 placed(compile(?SPREAD, [no_line_info]))),
    %% Numbers of several bytes, in files with many lines.
    Far = lists:duplicate(70_000, $\n),
    ?assertEqual(["14:f/1", "2005:f/1", "70005:f/1"],
                 lists:sort(placed(compile("f(T) -> " ++ lists:duplicate(11, $\n) ++
                                           "ets:info(T, stats), " ++ lists:duplicate(1991, $\n) ++
                                           "ets:info(T, memory), " ++
                                           lists:nthtail(2000, Far) ++ "ets:all(), ok.", [])))).

%% Code of an include file is said to be there.
lines_of_other_files(_) ->
    ?assertEqual(["3:f/1", "inc.hrl:5:g/1"],
                 placed(compile("f(T) -> ets:slot(T, 1), g(T).\n-file(\"x/inc.hrl\", 1).\ng(T) "
                                "-> ets:slot(T, 2), ok.", [debug_info]))).

placed(Beam) ->
    #{places := Places} = ats_try_beam:look(Beam),
    [lists:flatten(io_lib:format("~ts:~tw/~b", [line(Line), Name, Arity]))
     || {{Name, Arity}, Line, _, _} <- Places].

lines_of_elixir(Config) ->
    case os:find_executable("elixirc") of
        false ->
            {skip, "Elixir is not installed"};
        Elixirc ->
            Folder = proplists:get_value(priv_dir, Config),
            Source = filename:join(Folder, "placed.ex"),
            ok = file:write_file(Source, "defmodule PlacedInElixir do\n  def run(t) do\n"
                "    words = :ets.info(t, :memory)\n    other(words)\n    :ets.i()\n  end\n"
                "  defp other(_), do: :erlang.memory(:ets)\n"
                "  def data(x), do: {x,\n    :ets}\nend\n"),
            {0, _} = ats_test_lib:run_program(Elixirc, ["-o", Folder, Source], Folder, []),
            {ok, Beam} = file:read_file(filename:join(Folder, "Elixir.PlacedInElixir.beam")),
            ?assertEqual(["placed.ex:3 run/1 ets:info(_, memory): " ?NUMBERS,
                          "placed.ex:5 run/1 ets:i(): prints the tables of ats, and those of ets "
                          "no more",
                          "placed.ex:7 other/1 erlang:memory(ets): counts no tables of ats",
                          "placed.ex:8 data/1 the atom ets is data, and stays"], said(Beam))
    end.

%% ----- whole programs -----

%% A place tells of each module that has the atom as data, in large applications, too.
data_has_a_place(_) ->
    Silent = [Module || Application <- [mnesia, stdlib, kernel],
                        File <- filelib:wildcard(filename:join(code:lib_dir(Application, ebin),
                                                               "*.beam")),
                        {ok, Beam} <- [file:read_file(File)],
                        #{module := Module, data := Data, places := Places}
                            <- [ats_try_beam:look(Beam)],
                        Data > 0, Places =:= []],
    ?assertEqual([], Silent).

%% Modules without calls of `ets' are looked at, too; those that stay are not. A module in a
%% variable is named only if the atom is somewhere.
report(Config) ->
    Looks = "f() -> erlang:memory(ets).",
    Variable = "f(M) -> M:lookup(t, a), ok.",
    Text = report(Config, "some", [{placed_a, Looks}, {placed_b, Variable},
                                   {placed_c, "f(T) -> ets:slot(T, 0)."}], [placed_c]),
    ?assertNotEqual(nomatch, string:find(Text, "\n  placed_a:3 f/0: erlang:memory(ets): counts no "
                                               "tables of ats\n")),
    ?assertNotEqual(nomatch, string:find(Text, "\n  placed_b:3 f/1: _:lookup/2: stays with ets "
                                               "if")),
    ?assertEqual(nomatch, string:find(Text, "slot")),
    ?assertEqual(nomatch, string:find(report(Config, "none", [{placed_b, Variable}], []),
                                      "Places")).

report(Config, Name, Modules, Except) ->
    Private = proplists:get_value(priv_dir, Config),
    Folder = filename:join([Private, "apps", Name]),
    ok = filelib:ensure_dir(filename:join(Folder, "ebin/x")),
    [begin
         Beam = compiled(Module, Source, [debug_info]),
         File = filename:join([Folder, "ebin", atom_to_list(Module) ++ ".beam"]),
         ok = file:write_file(File, Beam)
     end || {Module, Source} <- Modules],
    Report = ats_try:copy([Folder], filename:join(Private, Name ++ "-copies"), [{except, Except}]),
    unicode:characters_to_list(ats_try:format(Report)).

%% The report in docs/use/moving-from-ets.md is that on this module.
example_of_the_page(Config) ->
    Source = "words() ->\n    lists:sum([ets:info(T, memory) || T <- ets:all()]).\n\n"
             "limit() ->\n    erlang:memory(total) > 1 bsl 30.\n\n"
             "handle_info({'ETS-TRANSFER', Table, _, _}, _) ->\n    {noreply, Table}.\n\n"
             "get(Node, Key) ->\n    rpc:call(Node, ets, lookup, [users, Key]).\n\n"
             "backend() ->\n    ets.",
    Text = report(Config, "example", [{my_monitor, Source}], []),
    [_, Places] = string:split(Text, "\nPlaces"),
    {ok, Page} = file:read_file(filename:join(ats_test_lib:project(),
                                          "docs/use/moving-from-ets.md")),
    ct:pal("~ts", [Text]),
    ?assertNotEqual(nomatch, string:find(Page, unicode:characters_to_binary(
                                                    ["```\nPlaces", Places, "```\n"]))).

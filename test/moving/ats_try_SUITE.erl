%% @doc Copies of compiled applications that use `ats' in the place of `ets'.
%%
%% A node of its own runs a copy. There every table that the copied modules make has to be a table
%% of `ats', and what they answer has to be what the original answers.
-module(ats_try_SUITE).

-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0]).
-export([calls/1, funs/1, calls_in_variables/1, atom_as_data/1, both_in_one_module/1]).
-export([name_of_a_function/1, many_atoms/1, copies/1, shared_tables/1, refusals/1]).
-export([elixir/1, mnesia/1]).
%% Called by modules that the cases make.
-export([kind/1]).

suite() -> [{timetrap, {minutes, 15}}].

all() ->
    [calls, funs, calls_in_variables, atom_as_data, both_in_one_module, name_of_a_function,
     many_atoms, copies, shared_tables, refusals, elixir, mnesia].

%% ----- one module -----

calls(_) ->
    Source = "run() -> T = ets:new(made, [public]), ets:insert(T, {a, 1}),"
             " [{_, N}] = ets:lookup(T, a), true = ets:delete(T, a), {kind(T), N}.",
    {Findings, {Kind, 1}} = run(Source),
    ?assertEqual(ats, Kind),
    ?assertMatch(#{calls := [{delete, 2}, {insert, 2}, {lookup, 2}, {new, 2}],
                   applied := 0, data := 0, created := [made]}, Findings).

%% Funs of functions of other modules are literals.
funs(_) ->
    Source = "run() -> T = ets:new(t, []), F = fun ets:insert/2, F(T, {a}), "
             "{[G], #{f := H}} = term(), [{a}] = H(T),"
             " {kind(T), G(T, size), hd([{x, 1.5, \"s\"}])}.\n"
             "term() -> {[fun ets:info/2], #{f => fun ets:tab2list/1, g => fun lists:map/2}}.",
    ?assertMatch({#{applied := 0, data := 0}, {ats, 1, {x, 1.5, "s"}}}, run(Source)).

calls_in_variables(_) ->
    Source = "run() -> T = call(new, [t, []]), F = id(insert), ets:F(T, {a}),"
             " [] = apply(ets, id(lookup), [T, b]), N = ets:(id(info))(T, size), {kind(T), N}.\n"
             "call(F, As) -> apply(ets, F, As).\nid(X) -> X.",
    {Findings, {ats, 1}} = run(Source),
    ?assertMatch(#{applied := 4, data := 0}, Findings).

%% Data stays, calls change.
atom_as_data(_) ->
    Source = "run() -> T = ets:new(t, []), {kind(T), atom_to_list(other(ets)), #{kind => [ets]}}.\n"
             "other(X) when X =:= ets -> X.",
    {Findings, Result} = run(Source),
    ?assertEqual({ats, "ets", #{kind => [ets]}}, Result),
    ?assertMatch(#{applied := 0}, Findings),
    ?assert(maps:get(data, Findings) > 0).

both_in_one_module(_) ->
    Source = "run() -> T = ets:new(t, []), S = call(new, [t, []]), {kind(T), kind(S), id(ets)}.\n"
             "call(F, As) -> apply(ets, F, As).\nid(X) -> X.",
    {Findings, Result} = run(Source),
    ?assertEqual({ats, ets, ets}, Result),
    ?assertMatch(#{applied := 1}, Findings).

%% A function may have the name that a module has.
name_of_a_function(_) ->
    Source = "-export([ets/0]).\nrun() -> T = ets:new(t, []),"
             " {kind(T), ets(), kind(call(new, [t, []]))}.\n"
             "ets() -> own.\ncall(F, As) -> apply(ets, F, As).",
    {_, Result} = run(Source, fun(Module) -> {Module:run(), Module:ets()} end),
    ?assertEqual({{ats, own, ets}, own}, Result).

%% Numbers of atoms beyond those that fit into the shortest form.
many_atoms(_) ->
    Clauses = [io_lib:format("f(x~b) -> y~b;", [N, N]) || N <- lists:seq(1, 3000)],
    Source = lists:flatten(["run() -> T = ets:new(t, []), {kind(T), f(x2999), {ets, 1}}.\n",
                            Clauses, "f(z) -> z."]),
    ?assertMatch({_, {ats, y2999, {ets, 1}}}, run(Source)).

%% Compiles, changes and runs a module; `kind(Table)' says to which of the two a table belongs.
run(Source) -> run(Source, fun(Module) -> Module:run() end).

run(Source, Call) ->
    Module = list_to_atom("ats_tried_" ++ integer_to_list(erlang:unique_integer([positive]))),
    Beam = compile(Module, Source),
    Findings = ats_try_beam:look(Beam),
    {ok, Patched} = ats_try_beam:patch(Beam),
    {module, Module} = code:load_binary(Module, "tried", Patched),
    Result = Call(Module),
    true = code:delete(Module),
    code:purge(Module),
    %% What was changed calls `ats' now; there is nothing left to be changed, or what cannot be.
    {Findings, Result}.

compile(Module, Source) ->
    Text = lists:flatten(io_lib:format("-module(~w).\n-export([run/0]).\n"
                                       "-import(ats_try_SUITE, [kind/1]).\n~s\n",
                                       [Module, Source])),
    {ok, Tokens, _} = erl_scan:string(Text),
    Forms = forms(Tokens, []),
    {ok, Module, Beam} = compile:forms(Forms, [debug_info]),
    Beam.

forms([], Forms) ->
    lists:reverse(Forms);
forms(Tokens, Forms) ->
    {Form, [Dot | Rest]} = lists:splitwith(fun(Token) -> element(1, Token) =/= dot end, Tokens),
    {ok, Parsed} = erl_parse:parse_form(Form ++ [Dot]),
    forms(Rest, [Parsed | Forms]).

%% The module whose table it is.
kind(Table) ->
    case lists:member(Table, ets:all()) of
        true -> ets;
        false -> ats
    end.

%% ----- an application -----

application(Config, Name, Needs, Modules) ->
    Folder = filename:join([proplists:get_value(priv_dir, Config), "apps", Name]),
    Ebin = filename:join(Folder, "ebin"),
    ok = filelib:ensure_dir(filename:join(Ebin, "x")),
    [ok = file:write_file(filename:join(Ebin, atom_to_list(M) ++ ".beam"), compile(M, Source))
     || {M, Source} <- Modules],
    Description = {application, list_to_atom(Name), [{vsn, "1"}, {applications, Needs}]},
    ok = file:write_file(filename:join(Ebin, Name ++ ".app"),
                         io_lib:format("~p.~n", [Description])),
    Folder.

copies(Config) ->
    Folder = application(Config, "tried", [kernel], [
        {tried_a, "run() -> ets:new(tried, [named_table])."},
        {tried_b, "run() -> ets:new(kept, [])."}]),
    {ok, Original} = file:read_file(filename:join(Folder, "ebin/tried_a.beam")),
    Out = filename:join(proplists:get_value(priv_dir, Config), "copies"),
    Report = ats_try:copy([Folder], Out, [{except, [tried_b]}]),
    ?assertMatch(#{modules := [#{module := tried_a}]}, Report),
    ?assertEqual({ok, Original}, file:read_file(filename:join(Folder, "ebin/tried_a.beam"))),
    ?assertEqual(file:read_file(filename:join(Folder, "ebin/tried_b.beam")),
                 file:read_file(filename:join(Out, "tried/ebin/tried_b.beam"))),
    Text = unicode:characters_to_list(ats_try:format(Report)),
    ?assertNotEqual(nomatch, string:find(Text, "tried_a: new/2")).

%% Tables that other modules have too are named, and so are those that nobody creates.
shared_tables(Config) ->
    Outside = application(Config, "outside", [kernel], [
        {outside_a, "run() -> ets:new(common, [named_table, public])."}]),
    true = code:add_pathz(filename:join(Outside, "ebin")),
    Folder = application(Config, "sharing", [kernel, outside], [
        {sharing_a, "run() -> ets:insert(common, {a}), ets:lookup(strange, a)."},
        {sharing_b, "run() -> ets:new(own, []), ets:insert(own, {a})."}]),
    Out = filename:join(proplists:get_value(priv_dir, Config), "sharing-copies"),
    Report = ats_try:copy([Folder], Out),
    ?assertMatch(#{shared := [{common, [outside_a]}], unmade := [{strange, [sharing_a]}]}, Report),
    Text = unicode:characters_to_list(ats_try:format(Report)),
    ?assertNotEqual(nomatch, string:find(Text, "common: outside_a")),
    ?assertNotEqual(nomatch, string:find(Text, "strange: sharing_a")).

refusals(Config) ->
    Out = filename:join(proplists:get_value(priv_dir, Config), "refused"),
    ?assertThrow({ats_try, "there is no application no_such_thing"},
                 ats_try:copy(["no_such_thing"], Out)),
    Folder = application(Config, "twice", [kernel], []),
    #{modules := []} = ats_try:copy([Folder], Out),
    ?assertThrow({ats_try, _}, ats_try:copy([Folder], Out)).

%% ----- programs of others -----

elixir(Config) ->
    case os:find_executable("elixirc") of
        false ->
            {skip, "Elixir is not installed"};
        _ ->
            Folder = application(Config, "ex", [kernel], []),
            Source = filename:join(Folder, "tried.ex"),
            ok = file:write_file(Source, "defmodule TriedInElixir do\n  def run do\n"
                "    t = :ets.new(:t, [])\n    :ets.insert(t, {:a, 1})\n"
                "    f = &:ets.lookup/2\n    {:ats.info(t, :size), f.(t, :a),"
                " apply(:ets, Enum.random([:member]), [t, :a])}\n"
                "  end\nend\n"),
            Said = os:cmd("elixirc -o " ++ filename:join(Folder, "ebin") ++ " " ++ Source),
            {ok, Beam} = file:read_file(filename:join(Folder, "ebin/Elixir.TriedInElixir.beam")),
            {ok, Patched} = ats_try_beam:patch(Beam),
            ct:pal("~ts", [Said]),
            Libraries = os:cmd("elixir -e 'IO.write(:code.lib_dir(:elixir, :ebin))'"),
            true = code:add_pathz(Libraries),
            {module, Module} = code:load_binary('Elixir.TriedInElixir', "tried", Patched),
            ?assertEqual({1, [{a, 1}], true}, Module:run())
    end.

%% A node whose Mnesia is the copy has its tables in `ats', and none of them in `ets'.
mnesia(Config) ->
    Out = filename:join(proplists:get_value(priv_dir, Config), "mnesia"),
    #{copies := [Copy]} = ats_try:copy(["mnesia"], Out),
    {ok, Peer, _} = peer:start_link(#{connection => standard_io, wait_boot => 60000,
                                      args => ["-pa", filename:dirname(code:which(ats)),
                                               filename:join(Copy, "ebin"), "-mnesia", "dir",
                                               "\"" ++ filename:join(Out, "data") ++ "\""]}),
    Call = fun(M, F, A) -> peer:call(Peer, M, F, A, 60000) end,
    ok = Call(mnesia, create_schema, [[nonode@nohost]]),
    ok = Call(mnesia, start, []),
    {atomic, ok} = Call(mnesia, create_table, [words, [{disc_copies, [nonode@nohost]}, {index, [3]},
                                                       {attributes, [word, number]}]]),
    [ok = Call(mnesia, sync_dirty, [fun mnesia:write/1, [{words, N, N rem 7}]])
     || N <- lists:seq(1, 100)],
    ?assertEqual({atomic, [{words, 7, 0}]},
                 Call(mnesia, transaction, [fun mnesia:read/1, [{words, 7}]])),
    ?assertEqual(14, length(Call(mnesia, dirty_index_read, [words, 0, 3]))),
    ?assertEqual(100, Call(ats, info, [words, size])),
    ?assertEqual(undefined, Call(ets, info, [words, size])),
    stopped = Call(mnesia, stop, []),
    ok = Call(mnesia, start, []),
    ok = Call(mnesia, wait_for_tables, [[words], 20000]),
    ?assertEqual(100, Call(mnesia, table_info, [words, size])),
    peer:stop(Peer).

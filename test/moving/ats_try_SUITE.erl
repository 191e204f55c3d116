%% @doc Copies of compiled applications that use `ats' in the place of `ets'.
%%
%% A node of its own runs a copy. There every table that the copied modules make has to be a table
%% of `ats', and their answers have to be those of the original.
-module(ats_try_SUITE).

-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0]).
-export([calls/1, funs/1, calls_in_variables/1, atom_as_data/1, both_in_one_module/1]).
-export([imported_functions/1, name_of_a_function/1, many_atoms/1, unread_code/1]).
-export([copies/1, links/1, no_files/1, modules_that_are_links/1, refusals/1, shared_tables/1]).
-export([covered/1, elixir/1, mnesia/1]).
%% Called by modules that the cases make, and on other nodes.
-export([kind/1, tables_made_by/1]).

suite() -> [{timetrap, {minutes, 15}}].

all() ->
    [calls, funs, calls_in_variables, atom_as_data, both_in_one_module, imported_functions,
     name_of_a_function, many_atoms, unread_code, copies, links, no_files, modules_that_are_links,
     refusals, shared_tables, covered, elixir, mnesia].

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

%% Functions that `ats' does not have stay, and so do data beside them.
imported_functions(_) ->
    Source = "-import(ets, [new/2, tab2list/1, i/1]).\n-record(r, {module = ets}).\n"
             "run() -> T = new(t, []), S = apply(ets, new, [t, []]),"
             " {kind(T), kind(S), tab2list(T), #r{}, id(fun ets:i/1)}.\n"
             "id(X) -> X.",
    {_, {ats, ats, [], {r, ets}, _}} = run(Source),
    Only = "-import(ets, [new/2]).\n-record(r, {module = ets}).\n"
           "run() -> T = new(t, []), S = apply(ets, id(new), [t, []]), #r{module = M} = #r{},"
           " {kind(T), kind(S), kind(M:new(t, []))}.\nid(X) -> X.",
    {_, {ats, _, _}} = run(Only).

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
    %% Changed calls are calls of `ats' now; nothing is left to be changed, except for calls that
    %% cannot be. The code that the copy carries does the same.
    {ok, {_, [{abstract_code, {raw_abstract_v1, Code}}]}} =
        beam_lib:chunks(Patched, [abstract_code]),
    {ok, Module, Again} = compile:forms(Code, [debug_info]),
    {module, Module} = code:load_binary(Module, "again", Again),
    ?assertEqual(Result, Call(Module)),
    true = code:delete(Module),
    code:purge(Module),
    ?assertEqual(changed, ats_try_beam:carried(Beam)),
    {Findings, Result}.

compile(Module, Source) ->
    {ok, Module, Beam} = compile:forms(forms(Module, Source), [debug_info]),
    Beam.

forms(Module, Source) ->
    Text = lists:flatten(io_lib:format("-file(\"tried.erl\", 1).\n-module(~w).\n-export([run/0]).\n"
                                       "-import(ats_try_SUITE, [kind/1]).\n~s\n",
                                       [Module, Source])),
    ats_test_lib:parsed(Text).

%% Returns the module whose table it is.
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

in(Folder, File) ->
    Path = filename:join(Folder, File),
    ok = filelib:ensure_dir(Path),
    Path.

%% The copy has the links, and they lead to the copy; nothing follows them.
links(Config) ->
    Folder = application(Config, "linked", [kernel], [{linked_a, "run() -> ets:new(t, [])."}]),
    Private = proplists:get_value(priv_dir, Config),
    Elsewhere = in(Private, "elsewhere/file"),
    ok = file:write_file(Elsewhere, "elsewhere"),
    ok = file:write_file(in(Folder, "src/sub/file é.erl"), "inside"),
    %% Links with their path and their text in the copy; links outside, and whether their target
    %% exists.
    Inside = [{"priv/up", "..", ".."}, {"priv/self", ".", "."}, {"self", "self", "self"},
              {"one", "two", "two"}, {"two", "one", "one"},
              {"src/.#m.erl", "me@host.1:2", "me@host.1:2"},
              {"priv/file", "../src/sub/file é.erl", "../src/sub/file é.erl"},
              {"priv/absolute", filename:join(Folder, "src/sub"), "../src/sub"},
              {"priv/around", "../../linked/src/sub", "../src/sub"},
              {"priv/through", "absolute/../sub", "../src/sub"}],
    Outside = [{"src/elsewhere", Elsewhere}, {"priv/there", filename:dirname(Elsewhere)},
               {"priv/relative", "../../../elsewhere"}],
    LeftOut = [{"priv/dev", "/dev/zero"}, {"priv/dangling", "/no/such/file"},
               {"priv/far", "../../../no"}],
    [ok = file:make_symlink(To, in(Folder, Link)) || {Link, To, _} <- Inside],
    [ok = file:make_symlink(To, in(Folder, Link)) || {Link, To} <- Outside ++ LeftOut],
    Out = filename:join(Private, "linked copies"),
    #{copies := [Copy], modules := [_]} = Report = ats_try:copy([Folder], Out),
    [?assertEqual({ok, To}, file:read_link(filename:join(Copy, Link)), Link)
     || {Link, _, To} <- Inside, not lists:member(Link, ["self", "one", "two"])],
    [?assertMatch({ok, _}, file:read_link(filename:join(Copy, Link)), Link)
     || {Link, _, _} <- Inside],
    ?assertEqual({ok, <<"inside">>}, file:read_file(filename:join(Copy, "priv/file"))),
    ?assertEqual({ok, <<"elsewhere">>}, file:read_file(filename:join(Copy, "src/elsewhere"))),
    ?assertEqual({ok, <<"elsewhere">>}, file:read_file(filename:join(Copy, "priv/relative/file"))),
    [?assertEqual({error, enoent}, file:read_link(filename:join(Copy, Link)))
     || {Link, _} <- LeftOut],
    Text = unicode:characters_to_list(ats_try:format(Report)),
    [begin
         Named = [unicode:characters_to_list(File) || File <- maps:get(Key, Report)],
         ?assertEqual(lists:sort([Link || {Link, _} <- Links]),
                      lists:sort([string:slice(N, length(real(Folder)) + 1) || N <- Named])),
         [?assertNotEqual(nomatch, string:find(Text, N)) || N <- Named]
     end || {Key, Links} <- [{outside, Outside}, {left_out, LeftOut}]].

real(Path) -> unicode:characters_to_list(ats_try_files:real(Path)).

%% Pipes and the like are not opened, and a file of any content and name is only copied.
no_files(Config) ->
    Folder = application(Config, "strange", [kernel], [{strange_a, "run() -> ets:new(t, [])."}]),
    "" = os:cmd(["mkfifo", [[" ", ats_test_lib:quoted(in(Folder, File))]
                            || File <- ["priv/pipe", "ebin/b.beam"]]]),
    %% The path of a socket must be short.
    Short = "/tmp/ats_try_" ++ os:getpid(),
    ok = file:make_symlink(Folder, Short),
    {ok, Socket} = gen_udp:open(0, [{ifaddr, {local, Short ++ "/priv/socket"}}]),
    ok = file:delete(Short),
    Truncated = binary:part(compile(cut, "run() -> ets:new(t, [])."), 0, 300),
    Files = [{"ebin/x.beam", <<"no module\n">>}, {"ebin/cut.beam", Truncated},
             {"ebin/packed.beam", <<31, 139, 1, 2>>}, {<<"priv/", 255, ".txt">>, <<"x">>},
             {"priv/é \"'$x", <<"y">>}],
    [ok = file:write_file(in(Folder, File), Content) || {File, Content} <- Files],
    ok = filelib:ensure_path(in(Folder, "ebin/folder.beam")),
    %% The copies themselves are among the files.
    Out = filename:join(Folder, "out"),
    #{copies := [Copy], modules := [_]} = Report = ats_try:copy([Folder ++ "/"], Out),
    ok = gen_udp:close(Socket),
    [?assertEqual({ok, Content}, file:read_file(filename:join(Copy, File)))
     || {File, Content} <- Files],
    ?assertEqual([unicode:characters_to_binary(filename:join(real(Folder), File))
                  || File <- ["ebin/b.beam", "out", "priv/pipe", "priv/socket"]],
                 maps:get(left_out, Report)),
    ?assertEqual([filename:join([Copy, "ebin", File])
                  || File <- ["cut.beam", "packed.beam", "x.beam"]], maps:get(unread, Report)),
    ?assert(is_list(unicode:characters_to_list(ats_try:format(Report)))).

%% One that leads outside is not changed, nor is the file that it leads to.
modules_that_are_links(Config) ->
    Private = proplists:get_value(priv_dir, Config),
    Folder = application(Config, "lent", [kernel], [{lent_a, "run() -> ets:new(t, [])."}]),
    Elsewhere = in(Private, "lent elsewhere/lent_b.beam"),
    Beam = compile(lent_b, "run() -> ets:new(t, [])."),
    Inside = in(Folder, "build/lent_c.beam"),
    ok = file:write_file(Elsewhere, Beam),
    ok = file:write_file(Inside, compile(lent_c, "run() -> ets:new(t, []).")),
    ok = file:change_mode(Inside, 8#444),
    ok = file:change_mode(in(Folder, "ebin/lent_a.beam"), 8#400),
    ok = file:make_symlink(Elsewhere, in(Folder, "ebin/lent_b.beam")),
    ok = file:make_symlink("../build/lent_c.beam", in(Folder, "ebin/lent_c.beam")),
    Out = filename:join(Private, "lent copies"),
    #{copies := [Copy], modules := Modules} = ats_try:copy([Folder], Out),
    ?assertEqual([lent_a, lent_c], lists:sort([Module || #{module := Module} <- Modules])),
    ?assertEqual({ok, Beam}, file:read_file(Elsewhere)),
    ?assertEqual(file:read_file(Inside), file:read_file(filename:join(Copy, "build/lent_c.beam"))),
    ?assertNotEqual(file:read_file(Inside),
                    file:read_file(filename:join(Copy, "ebin/lent_c.beam"))).

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
    ?assertThrow({ats_try, _}, ats_try:copy([Folder], Out)),
    %% Nothing of the others is left then.
    Other = application(Config, "other", [kernel], []),
    ?assertThrow({ats_try, _}, ats_try:copy([Other, Folder], Out)),
    ?assertEqual({ok, ["twice"]}, file:list_dir(Out)).

%% ----- the code that copies carry -----

%% A copy that is compiled for coverage is still a copy.
covered(Config) ->
    Folder = application(Config, "covered", [kernel], [
        {covered_a, "run() -> ets:info(ets:new(t, []), size)."}]),
    Out = filename:join(proplists:get_value(priv_dir, Config), "covered copies"),
    #{copies := [Copy]} = ats_try:copy([Folder], Out),
    {ok, Peer, _} = peer:start_link(#{connection => standard_io, wait_boot => 60000,
                                      args => ["-pa", filename:dirname(code:which(ats)),
                                               filename:dirname(code:which(?MODULE)),
                                               filename:join(Copy, "ebin")]}),
    Call = fun(M, F, A) -> ats_test_lib:call(Peer, M, F, A) end,
    {ok, covered_a} = Call(cover, compile_beam, [covered_a]),
    cover_compiled = Call(code, which, [covered_a]),
    ?assertEqual([ats], Call(?MODULE, tables_made_by, [covered_a])),
    peer:stop(Peer).

%% Returns the module with which a function makes tables.
tables_made_by(Module) ->
    Before = [{M, M:all()} || M <- [ats, ets]],
    _ = Module:run(),
    [M || {M, Tables} <- Before, length(M:all()) > length(Tables)].

%% Code that cannot be read is not in the copy, so that nothing is made of it.
unread_code(_) ->
    Forms = forms(ats_tried_key, "run() -> ets:new(t, [])."),
    {ok, Module, Beam} = compile:forms(Forms, [debug_info, {debug_info_key, "key"}]),
    {ok, Patched} = ats_try_beam:patch(Beam),
    ?assertEqual(unread, ats_try_beam:carried(Beam)),
    ?assertEqual({ok, {Module, [{abstract_code, no_abstract_code}]}},
                 beam_lib:chunks(Patched, [abstract_code])),
    {ok, Module, Bare} = compile:forms(Forms, []),
    {ok, _} = ats_try_beam:patch(Bare),
    ?assertEqual(none, ats_try_beam:carried(Bare)).

%% ----- programs of others -----

elixir(Config) ->
    case os:find_executable("elixirc") of
        false ->
            {skip, "Elixir is not installed"};
        Elixirc ->
            Folder = application(Config, "ex", [kernel], []),
            Source = filename:join(Folder, "tried.ex"),
            ok = file:write_file(Source, "defmodule TriedInElixir do\n  def run do\n"
                "    t = :ets.new(:t, [])\n    :ets.insert(t, {:a, 1})\n"
                "    f = &:ets.lookup/2\n    {:ats.info(t, :size), f.(t, :a),"
                " apply(:ets, Enum.random([:member]), [t, :a])}\n"
                "  end\nend\n"
                "defmodule TriedInElixir.Data do\n  def run do\n"
                "    ets = :ets.new(:t, [])\n    f = &:ets.insert/2\n    f.(ets, {:a, 1})\n"
                "    {:ats.info(ets, :size), Enum.random([:ets]), %{ets: ets(1)}}\n  end\n"
                "  defp ets(x) when x != :ets, do: :erlang.phash2(x) > 0\nend\n"),
            {0, Said} = ats_test_lib:run_program(Elixirc, ["-o", filename:join(Folder, "ebin"),
                                                           Source], Folder, []),
            ct:pal("~ts", [Said]),
            Libraries = os:cmd("elixir -e 'IO.write(:code.lib_dir(:elixir, :ebin))'"),
            true = code:add_pathz(Libraries),
            [begin
                 {ok, Beam} = file:read_file(filename:join([Folder, "ebin",
                                                            atom_to_list(Module) ++ ".beam"])),
                 {ok, Patched} = ats_try_beam:patch(Beam),
                 ?assertEqual(changed, ats_try_beam:carried(Beam)),
                 {ok, {_, [{debug_info, {debug_info_v1, Backend, Data}}]}} =
                     beam_lib:chunks(Patched, [debug_info]),
                 {ok, Code} = Backend:debug_info(erlang_v1, Module, Data, []),
                 {ok, Module, Again} = compile:forms(Code, []),
                 [begin
                      {module, Module} = code:load_binary(Module, "tried", Loaded),
                      ?assertEqual(Result, Module:run()),
                      true = code:delete(Module),
                      code:purge(Module)
                  end || Loaded <- [Patched, Again]]
             end || {Module, Result} <- [{'Elixir.TriedInElixir', {1, [{a, 1}], true}},
                                         {'Elixir.TriedInElixir.Data',
                                          {1, ets, #{ets => true}}}]]
    end.

%% A node whose Mnesia is the copy has its tables in `ats', and none of them in `ets'.
mnesia(Config) ->
    Out = filename:join(proplists:get_value(priv_dir, Config), "mnesia"),
    #{copies := [Copy]} = ats_try:copy(["mnesia"], Out),
    {ok, Peer, _} = peer:start_link(#{connection => standard_io, wait_boot => 60000,
                                      args => ["-pa", filename:dirname(code:which(ats)),
                                               filename:join(Copy, "ebin"), "-mnesia", "dir",
                                               "\"" ++ filename:join(Out, "data") ++ "\""]}),
    Call = fun(M, F, A) -> ats_test_lib:call(Peer, M, F, A) end,
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

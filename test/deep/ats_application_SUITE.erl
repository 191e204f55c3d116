%% The parts that a release gets that uses tables: these modules and a library, as `make build'
%% leaves them. Measurements, the demonstration, tests, stores for comparison, and functions for
%% tests are not among them.
%%
%% ATS_RELEASE names the folder of an application that is built already.
-module(ats_application_SUITE).

-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0, init_per_suite/1, end_per_suite/1]).
-export([
    modules/1,
    only_native_functions_are_declared/1,
    nothing_can_be_forced/1,
    no_stores_for_comparison/1
]).

%% The release may have to be built.
suite() -> [{timetrap, {minutes, 10}}].

all() ->
    [modules, only_native_functions_are_declared, nothing_can_be_forced, no_stores_for_comparison].

init_per_suite(Config) ->
    [{release, release(os:getenv("ATS_RELEASE"))} | Config].

end_per_suite(_) ->
    ok.

release(false) ->
    Project = ats_test_lib:project(),
    Folder = ats_test_lib:quoted(Project),
    Output = os:cmd("cd " ++ Folder ++ " && rebar3 compile 2>&1 && echo built"),
    case string:find(Output, "built\n", trailing) of
        "built\n" -> filename:join([Project, "_build", "default", "lib", "ats"]);
        _ -> ct:fail("cannot build the release:~n~ts", [Output])
    end;
release(Folder) ->
    Folder.

file(Config, Folder, Name) ->
    filename:join([proplists:get_value(release, Config), Folder, Name]).

modules(Config) ->
    Expected = [
        ats,
        ats_app,
        ats_binaries,
        ats_browser,
        ats_changes,
        ats_checkpoint,
        ats_collect,
        ats_columns,
        ats_dets,
        ats_disk_bchunk,
        ats_disk_bisect,
        ats_disk_checkpoint,
        ats_disk_closed,
        ats_disk_failure,
        ats_disk_info,
        ats_disk_number,
        ats_disk_options,
        ats_disk_reading,
        ats_disk_repair,
        ats_disk_snapshot,
        ats_disk_tables,
        ats_disk_transactions,
        ats_disk_transfer,
        ats_disk_walk,
        ats_errors,
        ats_evicted,
        ats_fetch,
        ats_file,
        ats_file_check,
        ats_follow,
        ats_follow_disk,
        ats_follow_memory,
        ats_follow_pending,
        ats_follow_server,
        ats_follower,
        ats_format,
        ats_hints,
        ats_info,
        ats_merge,
        ats_merge_access,
        ats_merge_background,
        ats_merge_operands,
        ats_merge_pending,
        ats_merge_runner,
        ats_merge_upgrade,
        ats_merge_watchdog,
        ats_metrics,
        ats_mnesia,
        ats_mnesia_indexes,
        ats_mnesia_log,
        ats_mnesia_order,
        ats_mnesia_pending,
        ats_mnesia_tables,
        ats_mnesia_transfer,
        ats_mnesia_writer,
        ats_ms_transform,
        ats_nif,
        ats_observe,
        ats_observer_cli,
        ats_options,
        ats_osmos,
        ats_osmos_format,
        ats_osmos_functions,
        ats_osmos_vector,
        ats_prometheus,
        ats_qlc,
        ats_range,
        ats_select,
        ats_several_keys,
        ats_snapshot,
        ats_take,
        ats_telemetry,
        ats_telemetry_handler,
        ats_transactions,
        ats_transform,
        ats_try,
        ats_try_beam,
        ats_try_code,
        ats_try_dets,
        ats_try_files,
        ats_try_lines,
        ats_try_places,
        ats_try_rules,
        ats_try_terms,
        ats_view,
        ats_view_list,
        ats_viewer,
        ats_watch,
        dats
    ],
    {ok, [{application, ats, Properties}]} = file:consult(file(Config, "ebin", "ats.app")),
    ?assertEqual(Expected, lists:sort(proplists:get_value(modules, Properties))),
    Compiled = filelib:wildcard(file(Config, "ebin", "*.beam")),
    ?assertEqual([atom_to_list(M) || M <- Expected],
                 lists:sort([filename:basename(File, ".beam") || File <- Compiled])).

%% Each function that the module of the native functions exports is one, and is replaced when the
%% library is loaded.
only_native_functions_are_declared(Config) ->
    {Exported, Nifs} = native(file(Config, "ebin", "ats_nif.beam")),
    ?assertEqual(lists:sort(Nifs), lists:sort(Exported)).

native(Beam) ->
    {ok, {ats_nif, [{abstract_code, {_, Forms}}, {exports, Exports}]}} =
        beam_lib:chunks(Beam, [abstract_code, exports]),
    {Exports -- [{module_info, 0}, {module_info, 1}],
     lists:append([Fs || {attribute, _, nifs, Fs} <- Forms])}.

%% Functions that force tables exist for tests, and in no other build.
nothing_can_be_forced(Config) ->
    {Exported, _} = native(file(Config, "ebin", "ats_nif.beam")),
    {Tested, _} = native(code:which(ats_nif)),
    Forcing = [{advance_clock, 1}, {force_adaptation, 3}, {force_slices, 1}],
    ?assertEqual(Forcing, lists:sort(Tested -- Exported)),
    {ok, Library} = file:read_file(file(Config, "priv", "ats_nif.so")),
    {ok, TestedLibrary} = file:read_file(filename:join(code:priv_dir(ats), "ats_nif.so")),
    [
        begin
            Name = atom_to_binary(Function),
            ?assertNotEqual(nomatch, binary:match(TestedLibrary, Name)),
            ?assertEqual(nomatch, binary:match(Library, Name))
        end
     || {Function, _} <- Forcing
    ].

%% A release refuses a store for comparison as an unknown option, and names the build that has it.
no_stores_for_comparison(Config) ->
    {ok, Peer, _} = peer:start_link(#{connection => standard_io, wait_boot => 30000,
                                      args => ["-pa", file(Config, "ebin", "")]}),
    New = fun(Type, Backend) ->
              ats_test_lib:call(Peer, ats, new, [t, [Type, {backend, Backend}]])
          end,
    [?assert(is_reference(New(Type, default))) || Type <- [set, ordered_set]],
    Rivals = [{set, hash_map}, {set, btree}]
        ++ [{ordered_set, Rival} || Rival <- [btree | ats_on_rival:ordered()]],
    [?assertMatch({match, _}, re:run(refused(fun() -> New(Type, Rival) end), "rebar3 as bench"))
     || {Type, Rival} <- Rivals],
    peer:stop(Peer),
    [?assertEqual(Rival, ats:info(ats:new(t, [Type, {backend, Rival}]), backend))
     || {Type, Rival} <- Rivals].

%% Returns the text of the exception about the options.
refused(Fun) ->
    try Fun() of
        Made -> ct:fail({made, Made})
    catch
        error:badarg:Stack -> maps:get(2, ats_errors:format_error(badarg, Stack))
    end.

%% What a release gets that uses tables: these modules. Measurements, the demonstration and tests
%% are not among them.
-module(ats_application_SUITE).

-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0]).
-export([
    modules/1,
    only_native_functions_are_declared/1
]).

suite() -> [{timetrap, {minutes, 1}}].

all() -> [modules, only_native_functions_are_declared].

modules(_) ->
    Expected = [
        ats,
        ats_binaries,
        ats_browser,
        ats_collect,
        ats_dets,
        ats_errors,
        ats_file,
        ats_file_check,
        ats_info,
        ats_metrics,
        ats_ms_transform,
        ats_nif,
        ats_options,
        ats_qlc,
        ats_range,
        ats_select,
        ats_take,
        ats_transform
    ],
    ok = loaded(application:load(ats)),
    {ok, Listed} = application:get_key(ats, modules),
    ?assertEqual(Expected, lists:sort(Listed)),
    Ebin = filename:dirname(code:which(ats)),
    Compiled = filelib:wildcard("*.beam", Ebin),
    ?assertEqual([atom_to_list(M) ++ ".beam" || M <- Expected], lists:sort(Compiled)).

loaded(ok) -> ok;
loaded({error, {already_loaded, ats}}) -> ok.

%% Each function that the module of the native functions exports is one, and is replaced when the
%% library is loaded.
only_native_functions_are_declared(_) ->
    {ok, {ats_nif, [{abstract_code, {_, Forms}}]}} =
        beam_lib:chunks(code:which(ats_nif), [abstract_code]),
    Nifs = lists:append([Fs || {attribute, _, nifs, Fs} <- Forms]),
    Exported = ats_nif:module_info(exports) -- [{module_info, 0}, {module_info, 1}],
    ?assertEqual(lists:sort(Nifs), lists:sort(Exported)).

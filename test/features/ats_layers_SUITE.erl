%% The order of the modules: calls go downwards, from the facade `ats' to the native library, and
%% modules below the facade serve any other facade, too.
-module(ats_layers_SUITE).

-include_lib("stdlib/include/assert.hrl").
-include_lib("stdlib/include/qlc.hrl").

-export([all/0, suite/0]).
-export([
    no_circles/1,
    the_facade_is_called_from_above/1,
    queries_by_another_facade/1,
    explanations_name_the_facade/1,
    filling_by_another_facade/1,
    errors_of_another_facade/1
]).

suite() -> [{timetrap, {minutes, 15}}].

all() ->
    [
        no_circles,
        the_facade_is_called_from_above,
        queries_by_another_facade,
        explanations_name_the_facade,
        filling_by_another_facade,
        errors_of_another_facade
    ].

%% ----- calls between modules -----

%% Pairs of modules of the application of which the first calls the second.
calls() ->
    {ok, Xref} = xref:start([{xref_mode, functions}]),
    ok = xref:set_default(Xref, [{verbose, false}, {warnings, false}]),
    {ok, Modules} = xref:add_directory(Xref, filename:dirname(code:which(ats))),
    {ok, Calls} = xref:q(Xref, "(Mod) E"),
    stopped = xref:stop(Xref),
    [{A, B} || {A, B} <- Calls, A =/= B, lists:member(A, Modules), lists:member(B, Modules)].

no_circles(_) ->
    Calls = calls(),
    ?assert(lists:member({ats, ats_nif}, Calls)),
    Graph = digraph:new(),
    [digraph:add_vertex(Graph, M) || {A, B} <- Calls, M <- [A, B]],
    [digraph:add_edge(Graph, A, B) || {A, B} <- Calls],
    ?assertEqual([], digraph_utils:cyclic_strong_components(Graph)),
    digraph:delete(Graph).

the_facade_is_called_from_above(_) ->
    ?assertEqual([ats_metrics, ats_mnesia, ats_mnesia_log, ats_mnesia_tables, ats_mnesia_writer,
                  ats_try_beam, ats_try_dets],
                 lists:usort([A || {A, ats} <- calls()])).

%% ----- another facade -----

table(Type) ->
    T = ats:new(t, [Type, {keypos, 2}]),
    true = ats:insert(T, [{value, N} || N <- lists:seq(1, 250)]),
    T.

queries_by_another_facade(_) ->
    Fixed = [info, safe_fixtable],
    Selected = [{value, 7}, {value, 250}],
    Spec = [{V, [], ['$_']} || V <- Selected],
    Cases = [
        {[], [select]},
        {[{n_objects, 1000}], [select]},
        {{traverse, {select, Spec}}, [select]},
        {{traverse, first_next}, [first_lookup, next_lookup]},
        {{traverse, last_prev}, [last_lookup, prev_lookup]}
    ],
    [
        begin
            T = table(Type),
            Read = fun(Facade) -> qlc:e(ats_qlc:table(Facade, T, Options)) end,
            {Found, Called} = ats_call_counter:count_calls(fun() -> Read(ats_call_counter) end),
            ?assertEqual(Read(ats), Found),
            ?assertEqual(lists:sort(Fixed ++ Functions), lists:sort(maps:keys(Called))),
            ?assertEqual(2, maps:get(safe_fixtable, Called)),
            ?assertEqual(false, ats:info(T, safe_fixed)),
            ats:delete(T)
        end
     || Type <- [set, ordered_set, bag, duplicate_bag], {Options, Functions} <- Cases
    ],
    T = table(set),
    Query = fun(Facade) ->
        qlc:q([X || {_, K} = X <- ats_qlc:table(Facade, T, []), K =:= 7 orelse K =:= 250])
    end,
    {Found, Called} = ats_call_counter:count_calls(fun() -> qlc:e(Query(ats_call_counter)) end),
    ?assertEqual(Selected, lists:sort(Found)),
    ?assertMatch(#{lookup := 2}, Called),
    ?assertEqual(false, maps:is_key(select, Called)),
    ats:delete(T).

explanations_name_the_facade(_) ->
    T = table(ordered_set),
    Queries = [
        fun(F) -> ats_qlc:table(F, T, []) end,
        fun(F) -> ats_qlc:table(F, T, {n_objects, 5}) end,
        fun(F) -> qlc:q([X || {_, K} = X <- ats_qlc:table(F, T, []), K == 7]) end,
        fun(F) -> qlc:q([X || {_, K} = X <- ats_qlc:table(F, T, []), K == 7 orelse K == 8]) end,
        fun(F) -> qlc:q([X || {_, K} = X <- ats_qlc:table(F, T, []), K > 7]) end
    ],
    [
        begin
            Info = fun() -> qlc:info(Query(ats_call_counter)) end,
            {Text, _} = ats_call_counter:count_calls(Info),
            ?assertMatch([_ | _], string:find(Text, "ats_call_counter:")),
            Same = string:replace(Text, "ats_call_counter:", "ats:", all),
            ?assertEqual(on_one_line(qlc:info(Query(ats))), on_one_line(Same))
        end
     || Query <- Queries
    ],
    ats:delete(T).

%% The length of the name decides where lines and strings are broken.
on_one_line(Text) -> [C || C <- lists:flatten(Text), not lists:member(C, " \n\"")].

filling_by_another_facade(_) ->
    T = ats:new(t, [ordered_set]),
    Provide = fun(read) -> {[{1}, {2}, [{3}, {4}]], fun(read) -> end_of_input end} end,
    Fill = fun() -> ats_dets:fill(ats_call_counter, T, Provide) end,
    {Result, Called} = ats_call_counter:count_calls(Fill),
    ?assertEqual({true, #{insert => 3}}, {Result, Called}),
    ?assertEqual([{1}, {2}, {3}, {4}], ats:tab2list(T)),
    ats:delete(T).

%% The facade that has raised an exception is asked for the key position.
errors_of_another_facade(_) ->
    T = table(set),
    Location = [{error_info, #{module => ats_errors, cause => none}}],
    Stack = [{ats_call_counter, insert, [T, {one_element}], Location}],
    {Messages, Called} =
        ats_call_counter:count_calls(fun() -> ats_errors:format_error(badarg, Stack) end),
    ?assertEqual(
        <<"has no element at the key position 2">>,
        iolist_to_binary(maps:get(2, Messages))
    ),
    ?assertEqual(#{info => 1}, Called),
    ats:delete(T).

%% Arguments that a function does not come to use: of an empty table, or for a key that is not
%% there, wrong functions, patterns, limits, positions and objects are answered as `ets' and `dets'
%% do.
-module(ats_unused_SUITE).

-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0]).
-export([of_ets/1, of_dets/1]).

-define(KEY, no_such_key).

suite() -> [{timetrap, {minutes, 5}}].

all() -> [of_ets, of_dets].

%% ----- calls and their arguments -----

%% Arguments of functions: the table, a key, and wrong terms of several kinds.
functions() ->
    [
        {foldl, [any, any, table]},
        {foldr, [any, any, table]},
        {select, [table, any]},
        {select, [table, any, any]},
        {select_delete, [table, any]},
        {match, [table, any]},
        {match, [table, any, any]},
        {match_object, [table, any]},
        {match_object, [table, any, any]},
        {match_delete, [table, any]},
        {lookup, [table, any]},
        {member, [table, any]},
        {next, [table, any]},
        {delete, [table, any]},
        {delete_object, [table, any]},
        {update_counter, [table, key, any]},
        {insert, [table, any]},
        {insert_new, [table, any]},
        {info, [table, any]},
        {repair_continuation, [any, any]},
        {select, [any]},
        {match, [any]},
        {match_object, [any]},
        {safe_fixtable, [table, any]},
        {table, [table, any]}
    ].

functions(ets) ->
    functions() ++
        [
            {select_count, [table, any]},
            {slot, [table, any]},
            {init_table, [table, any]},
            {select_reverse, [table, any]},
            {select_reverse, [table, any, any]},
            {select_reverse, [any]},
            {select_replace, [table, any]},
            {lookup_element, [table, key, any]},
            {lookup_element, [table, key, any, any]},
            {update_counter, [table, key, any, any]},
            {update_element, [table, key, any]},
            {update_element, [table, key, any, any]},
            {take, [table, any]},
            {prev, [table, any]},
            {next_lookup, [table, any]},
            {prev_lookup, [table, any]},
            {match_spec_compile, [any]},
            {match_spec_run, [any, any]},
            {is_compiled_ms, [any]},
            {test_ms, [any, any]},
            {setopts, [table, any]},
            {tab2file, [table, any, any]},
            {tab2file, [any, any]},
            {file2tab, [any, any]},
            {tabfile_info, [any]},
            {give_away, [table, any, any]},
            {from_dets, [table, any]},
            {to_dets, [table, any]}
        ];
functions(dets) ->
    functions() ++
        [
            {traverse, [table, any]},
            {from_ets, [table, any]},
            {to_ets, [table, any]},
            {bchunk, [table, any]}
            %% The slots of a table of `dets' are there before its objects, and the exception of a
            %% wrong function for `init_table' is thrown unchanged.
        ].

few() ->
    [
        0, 1, a, '$1', {2, x}, [], [a | b], "no/such/file", fun(_) -> x end, fun(_, Acc) -> Acc end,
        [{'_', [], ['$_']}], [{'_', [], [x | y]}]
    ].

wrong() ->
    few() ++
        [
            -1, 1.0, 1 bsl 70, '', '_', '$end_of_table', default, {}, {a}, {'$1', '_'}, {1, 1},
            {?KEY, 1}, [{2, 1}, x], #{}, <<>>, fun() -> x end, fun(_, _, _) -> x end,
            [{'_', [a], []}], [{a, b}], [{'_', [], [true]}], [{traverse, select}],
            [{traverse, first_next}], {protection, public}
        ].

calls(Module) ->
    [
        {Function, Arguments}
     || {Function, Shape} <- functions(Module), Arguments <- arguments(Shape)
    ].

%% Fewer terms if there are several at a time.
arguments(Shape) ->
    case [any || any <- Shape] of
        [any] -> arguments(Shape, wrong());
        _ -> arguments(Shape, few())
    end.

arguments([], _) -> [[]];
arguments([table | Shape], Terms) -> [[table | Rest] || Rest <- arguments(Shape, Terms)];
arguments([key | Shape], Terms) -> [[?KEY | Rest] || Rest <- arguments(Shape, Terms)];
arguments([any | Shape], Terms) ->
    [[Term | Rest] || Term <- Terms, Rest <- arguments(Shape, Terms)].

%% ----- beside ets and dets -----

of_ets(_) ->
    S = ats_oracle:subject(),
    Differences = [
        {Type, Objects, F, Arguments, Answers}
     || Type <- [set, ordered_set, bag, duplicate_bag],
        Objects <- [[], [{other, 1}]],
        {F, Arguments} <- calls(ets),
        Answers <- [[in_memory(M, Type, Objects, F, Arguments) || M <- [ets, S]]],
        [Expected, Found] <- [Answers],
        Expected =/= Found,
        %% The slot of an object is up to each table.
        F =/= slot orelse Objects =:= []
    ],
    ?assertEqual([], Differences).

%% Functions that the running release lacks, or that answer otherwise than the newest, come from the
%% reference of the oracle.
in_memory(M, Type, Objects, F, Arguments) ->
    T = M:new(t, [Type]),
    true = M:insert(T, Objects),
    {module, _} = code:ensure_loaded(ats_reference),
    IsLevelled = erlang:function_exported(ats_reference, F, length(Arguments)),
    Answer = answer(if M =:= ets, IsLevelled -> ats_reference; true -> M end, F, T, Arguments),
    true = M:delete(T),
    Answer.

of_dets(Config) ->
    Differences = [
        {Type, F, Arguments, Answers}
     || Type <- [set, bag, duplicate_bag],
        Answered <- [[on_disk(Config, M, Type) || M <- [dets, dats]]],
        [Expected, Found] <- [Answered],
        {{F, Arguments}, E, A} <- lists:zip3(calls(dets), Expected, Found),
        Answers <- [[E, A]],
        E =/= A
    ],
    ?assertEqual([], Differences).

on_disk(Config, M, Type) ->
    File = filename:join(proplists:get_value(priv_dir, Config), lists:concat([M, Type])),
    T = {M, Type},
    {ok, T} = M:open_file(T, [{type, Type}, {file, File}]),
    Answers = [
        begin
            %% A failed call may leave a table that has to be opened anew.
            case M:delete_all_objects(T) of
                ok -> ok;
                _ -> _ = M:close(T), ok = file:delete(File),
                     {ok, T} = M:open_file(T, [{type, Type}, {file, File}])
            end,
            answer(M, F, T, Arguments)
        end
     || {F, Arguments} <- calls(dets)
    ],
    ok = M:close(T),
    Answers.

answer(M, F, T, Arguments) ->
    try apply(M, F, [if A =:= table -> T; true -> A end || A <- Arguments]) of
        Value -> {ok, plain(F, T, Value)}
    catch
        %% The function inside a module that fails is up to the module.
        Class:Reason -> {Class, Reason}
    end.

%% The same of each module.
plain(table, _T, _Handle) -> handle;
plain(_F, T, T) -> table;
%% `dets' may return an empty chunk before the end.
plain(_F, _T, {[], Continuation}) when is_tuple(Continuation) -> '$end_of_table';
plain(_F, _T, {Results, Continuation}) when is_list(Results), is_tuple(Continuation) ->
    {Results, more};
plain(_F, _T, Value) when is_reference(Value) -> reference;
plain(_F, _T, Value) -> Value.

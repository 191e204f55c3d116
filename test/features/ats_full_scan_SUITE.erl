%% The option `full_scan': which queries read the whole table, and the reaction of the table.
-module(ats_full_scan_SUITE).

-include_lib("stdlib/include/assert.hrl").
-include_lib("stdlib/include/qlc.hrl").

-export([all/0]).
-export([allowed/1, refused/1, not_concerned/1, warned_of/1, shown/1, invalid/1]).
%% Callback of the handler of `logger'.
-export([log/2]).

-define(TYPES, [set, ordered_set, bag, duplicate_bag]).
-define(SCAN, [{{'_', 7}, [], [true]}]).

all() -> [allowed, refused, not_concerned, warned_of, shown, invalid].

table(Type, Options) ->
    T = ats:new(scanned, [Type, public | Options]),
    true = ats:insert(T, [{{K, K}, K} || K <- lists:seq(1, 100)]),
    T.

for_each_type(Options, Fun) ->
    lists:foreach(
        fun(Type) ->
            T = table(Type, Options),
            Fun(T, Type),
            ats:delete(T)
        end,
        ?TYPES
    ).

%% Calls that read everything, and their results for our table.
scans() ->
    [
        {fun(T) -> ats:select(T, ?SCAN) end, [true]},
        {fun(T) -> element(1, ats:select(T, ?SCAN, 10)) end, [true]},
        {fun(T) -> ats:select_reverse(T, ?SCAN) end, [true]},
        {fun(T) -> ats:select(T, ats:match_spec_compile(?SCAN)) end, [true]},
        {fun(T) -> ats:select_count(T, ?SCAN) end, 1},
        {fun(T) -> ats:select_count(T, [{'_', [], [true]}]) end, 100},
        {fun(T) -> ats:match(T, {'$1', 7}) end, [[{7, 7}]]},
        {fun(T) -> ats:match_object(T, {'_', 7}) end, [{{7, 7}, 7}]},
        {fun(T) -> element(1, ats:match_object(T, {'_', 7}, 5)) end, [{{7, 7}, 7}]},
        {fun(T) -> qlc:e(qlc:q([V || {_, V} <- ats:table(T), V =:= 7])) end, [7]},
        {fun(T) -> length(qlc:e(ats:table(T, {n_objects, 1}))) end, 100},
        {fun(T) -> ats:select_delete(T, ?SCAN) end, 1},
        {fun(T) -> ats:match_delete(T, {'_', 8}) end, true}
    ].

allowed(_) ->
    for_each_type([], fun(T, _) ->
        [?assertEqual(Result, Scan(T)) || {Scan, Result} <- scans()]
    end),
    for_each_type([{full_scan, refuse}, {full_scan, allow}], fun(T, _) ->
        [?assertEqual(Result, Scan(T)) || {Scan, Result} <- scans()]
    end).

refused(_) ->
    for_each_type([{full_scan, refuse}], fun(T, _) ->
        [?assertError(badarg, Scan(T)) || {Scan, _} <- scans()],
        ?assertEqual(100, ats:info(T, size)),
        try ats:select(T, ?SCAN) of
            _ -> ct:fail(not_refused)
        catch
            error:badarg:Stack ->
                ?assertEqual(
                    #{2 => <<"reads the whole table, which its option full_scan refuses">>},
                    ats_errors:format_error(badarg, Stack)
                )
        end
    end),
    T = table(set, [{full_scan, refuse}]),
    ?assertError(badarg, ats:select_replace(T, [{{'$1', 7}, [], [{{'$1', 8}}]}])).

not_concerned(_) ->
    for_each_type([{full_scan, refuse}], fun(T, Type) ->
        ?assertEqual([7], ats:select(T, [{{{7, 7}, '$1'}, [], ['$1']}])),
        ?assertEqual(1, ats:select_count(T, [{{'$1', '_'}, [{'=:=', '$1', {{7, 7}}}], [true]}])),
        ?assertEqual([], ats:match(T, nothing)),
        ?assertEqual([7], qlc:e(qlc:q([V || {{7, 7}, V} <- ats:table(T)]))),
        ?assertEqual(100, length(qlc:e(ats:table(T, {traverse, first_next})))),
        [
            begin
                ?assertEqual([7], ats:select(T, [{{{7, '_'}, '$1'}, [], ['$1']}])),
                ?assertEqual([7], ats:select(T, [{{{'$1', '_'}, '_'}, [{'=:=', '$1', 7}], ['$1']}]))
            end
         || Type =:= ordered_set
        ],
        ?assertEqual(100, length(ats:tab2list(T))),
        ?assertEqual(5050, ats:foldl(fun({_, N}, Sum) -> N + Sum end, 0, T)),
        ?assertMatch(
            #{access := everything, rows_read := 100, rows_returned := 1}, ats:explain(T, ?SCAN)
        ),
        ?assertEqual(100, ats:select_delete(T, [{'_', [], [true]}]))
    end).

%% Warnings come at most once in a second, and the results are there.
warned_of(_) ->
    ok = logger:add_handler(?MODULE, ?MODULE, #{config => self(), level => warning}),
    try
        T = table(ordered_set, [{full_scan, warn}]),
        Begin = erlang:monotonic_time(millisecond),
        [?assertEqual([true], ats:select(T, ?SCAN)) || _ <- lists:seq(1, 1000)],
        Passed = erlang:monotonic_time(millisecond) - Begin,
        Warnings = warnings(),
        ?assertMatch([_ | _], Warnings),
        ?assert(length(Warnings) =< Passed div 1000 + 2),
        [?assertEqual([self(), T, ?SCAN], Arguments) || Arguments <- Warnings],
        timer:sleep(1100),
        [?assertEqual(Result, Scan(T)) || {Scan, Result} <- scans()],
        ?assertMatch([_ | _], warnings()),
        %% A bounded query is no reason to warn.
        timer:sleep(1100),
        ?assertEqual([], ats:select(T, [{{{7, '_'}, '$1'}, [{'>', '$1', 7}], ['$1']}])),
        ?assertEqual([], warnings())
    after
        ok = logger:remove_handler(?MODULE)
    end.

log(#{msg := {_Format, Arguments}, meta := #{domain := [ats]}}, #{config := Pid}) ->
    Pid ! {warned, Arguments},
    ok;
log(_, _) ->
    ok.

warnings() ->
    receive
        {warned, Arguments} -> [Arguments | warnings()]
    after 0 -> []
    end.

shown(_) ->
    ?assertEqual(allow, ats:info(ats:new(x, []), full_scan)),
    [
        ?assertEqual(How, ats:info(ats:new(x, [{full_scan, How}]), full_scan))
     || How <- [allow, warn, refuse]
    ],
    %% Programs that know the list of `ets' find no more in it.
    ?assertEqual(false, lists:keymember(full_scan, 1, ats:info(ats:new(x, [{full_scan, warn}])))).

invalid(_) ->
    [
        ?assertError(badarg, ats:new(x, [{full_scan, How}]))
     || How <- [true, false, "warn", {warn, 1}, []]
    ].

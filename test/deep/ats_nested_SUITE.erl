%% Maps as keys of maps as keys of maps, and other terms of which a small one could take long:
%% operations of `ats' on them take time in proportion to their size, and none keeps a scheduler.
%%
%% The tests of the library itself count the growth of the work; here it is done, through all
%% functions. Where it grew with the square of the depth or faster, the limits would be missed by
%% factors of ten to a thousand.
-module(ats_nested_SUITE).

-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0]).
-export([
    values/1,
    keys/1,
    specifications/1,
    made_maps/1,
    equal_made_keys/1,
    merges/1,
    files/1,
    shapes_come_back/1,
    schedulers_are_not_kept/1
]).

-define(DEPTH, 3000).
%% A size at which work takes tens of seconds if it is done anew at every level, and milliseconds if
%% not.
-define(LIMIT_MS, 2000).
%% The time at which a call on a normal scheduler is too long, on a machine that may have other
%% work.
-define(LONG_SCHEDULE_MS, 60).
-define(TYPES, [
    [set], [ordered_set], [bag], [duplicate_bag], [set, compressed], [ordered_set, compressed]
]).

suite() -> [{timetrap, {minutes, 15}}].

all() ->
    [
        values,
        keys,
        specifications,
        made_maps,
        equal_made_keys,
        merges,
        files,
        shapes_come_back,
        schedulers_are_not_kept
    ].

values(_Config) ->
    V = nested(?DEPTH),
    [
        begin
            T = ats:new(t, Options),
            within("insert", fun() -> true = ats:insert(T, {k, V}) end),
            ?assert(within("lookup", fun() -> ats:lookup(T, k) =:= [{k, V}] end)),
            ?assert(within("tab2list", fun() -> ats:tab2list(T) =:= [{k, V}] end)),
            within("delete_object", fun() -> true = ats:delete_object(T, {k, V}) end),
            ?assertEqual(0, ats:info(T, size)),
            ats:insert(T, {k, 1}),
            is_bag(Options) orelse
                within("update_element", fun() -> true = ats:update_element(T, k, {2, V}) end),
            ats:delete(T)
        end
     || Options <- ?TYPES
    ].

keys(_Config) ->
    K = nested(?DEPTH),
    [
        begin
            T = ats:new(t, Options),
            within("insert", fun() -> true = ats:insert(T, [{K, 1}, {1, 1}]) end),
            ?assert(within("member", fun() -> ats:member(T, K) end)),
            ?assertNot(within("member", fun() -> ats:member(T, nested(?DEPTH - 1)) end)),
            is_bag(Options) orelse
                ?assertEqual(1, within("element", fun() -> ats:lookup_element(T, K, 2) end)),
            is_bag(Options) orelse
                ?assertEqual(2, within("count", fun() -> ats:update_counter(T, K, 1) end)),
            within("next", fun() -> ats:next(T, K) end),
            ?assertMatch([_], within("take", fun() -> ats:take(T, K) end)),
            within("delete", fun() -> true = ats:delete(T, K) end),
            ?assertEqual([{1, 1}], ats:tab2list(T)),
            ats:delete(T)
        end
     || Options <- ?TYPES
    ].

specifications(_Config) ->
    V = nested(?DEPTH),
    T = ats:new(t, [set]),
    ats:insert(T, [{k, V}, {l, #{V => 1}}]),
    Select = fun(Head, Guards, Body) ->
        within("select", fun() -> ats:select(T, [{Head, Guards, [Body]}]) end)
    end,
    ?assertEqual([k], Select({'$1', '$2'}, [{'==', '$2', {const, V}}], '$1')),
    ?assertEqual([k], Select({'$1', '$2'}, [{'=:=', '$2', {const, V}}], '$1')),
    ?assertEqual([l], Select({'$1', '$2'}, [{is_map_key, {const, V}, '$2'}], '$1')),
    ?assertEqual([k], Select({'$1', V}, [], '$1')),
    ?assertEqual([l], Select({'$1', #{V => '_'}}, [], '$1')),
    ?assert(Select({k, '_'}, [], {const, V}) =:= [V]),
    ats:delete(T).

%% Bodies that make a map, which becomes a key of a map, and so on.
made_maps(_Config) ->
    T = ats:new(t, [set]),
    ats:insert(T, {x, 1}),
    Wrap = fun(_, A) -> #{2 => 1, {{}} => 1, A => 1} end,
    Body = lists:foldl(Wrap, #{'$1' => 1}, lists:seq(1, ?DEPTH)),
    Made = lists:foldl(
        fun(_, A) -> #{2 => 1, {} => 1, A => 1} end, #{x => 1}, lists:seq(1, ?DEPTH)
    ),
    Result = within("select", fun() -> ats:select(T, [{{'$1', '_'}, [], [Body]}]) end),
    ?assert(Result =:= [Made]),
    ats:delete(T).

%% The last of several equal keys wins, however they come about. `ets' cannot be asked: it leaves
%% such a map with a key twice, and words that are not initialised (see `ats_ets_faults').
equal_made_keys(_Config) ->
    Objects = [{1, [1]}, {1.0, {1}}, {#{a => 1}, #{{1} => [2], b => #{}}}, {{1, 2}, [1 | 2]}],
    Bodies = [
        #{{{'$1', 1}} => a, {{{{1}}, '$1'}} => b, {{'$1', '$2'}} => c},
        #{['$1'] => a, [1] => b, [1.0] => c},
        #{{{'$1'}} => a, {{1}} => b},
        #{#{'$1' => 1} => a, #{1 => 1} => b, #{1.0 => 1} => c},
        #{#{{{'$1'}} => '$2'} => a, #{{{1}} => [1]} => b, #{{{1.0}} => {{1}}} => c},
        #{['$1' | '$2'] => a, {{'$2', '$1'}} => b, '$2' => c},
        #{#{#{'$1' => 1} => 1, [] => 1} => a, #{#{1 => 1} => 1, ['$1'] => 1} => b},
        #{{{1, '$2'}} => a, {{'$1', [1]}} => b, {{1.0, {{1}}}} => c}
    ],
    [
        begin
            A = ats:new(t, [ordered_set]),
            ats:insert(A, Objects),
            Spec = [{{'$1', '$2'}, [], [Body]}],
            Expected = [
                Result
             || Object <- ats:tab2list(A), {value, Result} <- [ats_spec_model:run(Spec, Object)]
            ],
            ?assertEqual(Expected, ats:select(A, Spec)),
            ats:delete(A)
        end
     || Body <- Bodies
    ].

merges(_Config) ->
    [V, W] = [nested(?DEPTH), nested(?DEPTH - 1)],
    T = ats:new(t, [set]),
    ats:insert(T, [{set, [V]}, {map, #{V => 1}}, {max, V}]),
    Merge = fun(Key, Value, How) ->
        within("merge", fun() -> ats:merge(T, Key, Value, How) end)
    end,
    Set = ordsets:from_list([W, {V}]),
    ?assert(Merge(set, Set, union) =:= ordsets:union([V], Set)),
    ?assert(Merge(map, #{W => 2, V => 3}, union) =:= #{W => 2, V => 3}),
    ?assert(Merge(max, W, max) =:= max(V, W)),
    ats:delete(T).

files(Config) ->
    V = nested(?DEPTH),
    File = filename:join(proplists:get_value(priv_dir, Config), "nested"),
    T = ats:new(t, [ordered_set]),
    ats:insert(T, {V, [V]}),
    within("tab2file", fun() -> ok = ats:tab2file(T, File) end),
    {ok, Read} = within("file2tab", fun() -> ats:file2tab(File) end),
    ?assert(ats:tab2list(Read) =:= [{V, [V]}]),
    [ats:delete(Table) || Table <- [T, Read]].

%% Terms of many shapes are the same again as keys and as values.
shapes_come_back(_Config) ->
    rand:seed(exsss, {1, 2, 3}),
    Shapes = [shape(5) || _ <- lists:seq(1, 300)],
    [
        begin
            {A, E} = {ats:new(t, Options), ets:new(t, Options -- [compressed])},
            [
                begin
                    ats:insert(A, {Shape, [Shape]}),
                    ets:insert(E, {Shape, [Shape]})
                end
             || Shape <- Shapes
            ],
            ?assertEqual(lists:sort(ets:tab2list(E)), lists:sort(ats:tab2list(A))),
            [?assertEqual(ets:lookup(E, Shape), ats:lookup(A, Shape)) || Shape <- Shapes],
            Options =:= [ordered_set] andalso
                ?assertEqual(ets:tab2list(E), ats:tab2list(A)),
            ats:delete(A),
            ets:delete(E)
        end
     || Options <- [[set], [ordered_set], [bag], [set, compressed]]
    ].

%% Keys that take long, of any shape, are no matter for a normal scheduler.
schedulers_are_not_kept(_Config) ->
    Keys = [
        nested(20000),
        lists:seq(1, 1000000),
        maps:from_list([{{N, "key"}, N} || N <- lists:seq(1, 200000)]),
        list_to_tuple(lists:seq(1, 1000000)),
        lists:foldl(fun(_, A) -> #{A => 1, [] => 2, #{} => 3} end, 0, lists:seq(1, 50000))
    ],
    Tables = [ats:new(t, [public | Options]) || Options <- [[set], [ordered_set], [bag]]],
    [ats:insert(T, {N, N}) || T <- Tables, N <- lists:seq(1, 10)],
    Calls = [
        fun ats:member/2,
        fun ats:lookup/2,
        fun ats:delete/2,
        fun ats:take/2,
        fun(T, K) -> ats_test_lib:attempt(fun() -> ats:next(T, K) end) end,
        fun(T, K) -> ats_test_lib:attempt(fun() -> ats:prev(T, K) end) end,
        fun(T, K) -> ats_test_lib:attempt(fun() -> ats:lookup_element(T, K, 2) end) end,
        fun(T, K) -> ats_test_lib:attempt(fun() -> ats:update_counter(T, K, 1) end) end,
        fun(T, K) -> ats_test_lib:attempt(fun() -> ats:update_element(T, K, {2, 1}) end) end
    ],
    Long = [
        Long
     || K <- Keys, T <- Tables, Call <- Calls, Long <- [longest(fun() -> Call(T, K) end)]
    ],
    ct:pal("longest: ~p ms", [lists:max(Long)]),
    ?assertEqual([], [Ms || Ms <- Long, Ms >= ?LONG_SCHEDULE_MS]),
    [ats:delete(T) || T <- Tables].

%% The longest time that a call keeps a normal scheduler, in milliseconds; 0 if it is short. The
%% system may stop a scheduler during any call, but hardly during each of ten.
longest(Call) -> longest(Call, 10).

longest(Call, Times) ->
    case longest_once(Call) of
        Ms when Ms >= ?LONG_SCHEDULE_MS, Times > 1 -> min(Ms, longest(Call, Times - 1));
        Ms -> Ms
    end.

longest_once(Call) ->
    erlang:system_monitor(self(), [{long_schedule, 10}]),
    {Pid, Ref} = spawn_monitor(fun() ->
        % The machine counts from the moment at which the process was scheduled.
        erlang:yield(),
        _ = ats_test_lib:attempt(Call),
        erlang:yield()
    end),
    receive
        {'DOWN', Ref, process, Pid, Reason} -> normal = Reason
    end,
    erlang:system_monitor(undefined),
    longest_of(Pid, 0).

longest_of(Pid, Longest) ->
    receive
        {monitor, Pid, long_schedule, Info} ->
            case proplists:get_value(in, Info) of
                % Copying the arguments for the process takes long, too.
                {erts_internal, _, _} -> longest_of(Pid, Longest);
                undefined -> longest_of(Pid, Longest);
                _ -> longest_of(Pid, max(Longest, proplists:get_value(timeout, Info)))
            end;
        {monitor, _, _, _} ->
            longest_of(Pid, Longest)
    after 0 -> Longest
    end.

nested(Depth) ->
    lists:foldl(fun(_, A) -> #{2 => 1, {} => 1, A => 1} end, #{}, lists:seq(1, Depth)).

shape(0) ->
    Leaves = [1, 2, -1, a, ab, [], {}, #{}, <<>>, "ab", 1.5, 1 bsl 62, 1 bsl 100],
    lists:nth(rand:uniform(length(Leaves)), Leaves);
shape(Depth) ->
    Part = fun() -> shape(rand:uniform(Depth) - 1) end,
    Parts = fun(Most) -> [Part() || _ <- lists:seq(1, rand:uniform(Most))] end,
    case rand:uniform(6) of
        1 -> list_to_tuple(Parts(2));
        2 -> Parts(2);
        3 when Depth < 3 -> maps:from_list([{{Part(), N}, N} || N <- lists:seq(1, 40)]);
        _ -> maps:from_list([{Key, Part()} || Key <- Parts(3)])
    end.

is_bag(Options) ->
    lists:member(bag, Options) orelse lists:member(duplicate_bag, Options).

within(What, Call) ->
    {Us, Result} = timer:tc(Call),
    Us div 1000 < ?LIMIT_MS orelse error({What, Us div 1000, ms}),
    Result.

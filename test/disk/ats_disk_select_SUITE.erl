%% Selects as those of osmos: the part of the table that they keep, and for how long. And how much
%% of a table is read by those that delete objects.
-module(ats_disk_select_SUITE).

-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0, init_per_testcase/2, end_per_testcase/2]).
-export([complete_selects_keep_nothing/1, forgotten_selects/1, selects_in_use/1, slow_folds/1]).
-export([deletes_and_selects_read_the_same_blocks/1]).
-export([bounds_by_functions/1, functions_are_asked_rarely/1, pending_keys_beside_a_range/1]).

-define(FORMAT, {format, {term, term_replace, 4096}}).
%% A limit far above the tested times.
-define(PATIENCE_MS, 20000).

suite() -> [{timetrap, {minutes, 15}}].

all() ->
    [
        complete_selects_keep_nothing,
        forgotten_selects,
        selects_in_use,
        slow_folds,
        deletes_and_selects_read_the_same_blocks,
        bounds_by_functions,
        functions_are_asked_rarely,
        pending_keys_beside_a_range
    ].

init_per_testcase(Case, Config) ->
    ats_disk_lib:begin_case(Case, Config).

end_per_testcase(_, _) ->
    ats_disk_lib:end_case().

open(Config, Options) ->
    Directory = ats_disk_lib:file(Config, t),
    {ok, t} = dats:open(t, [{directory, Directory}, ?FORMAT | Options]),
    [ok = dats:write(t, N, N) || N <- lists:seq(1, 300)],
    t.

snapshots(T) -> maps:get(snapshots, dats:info(T, stats)).

%% All rows that there are have been returned, or are in the handle.
complete_selects_keep_nothing(Config) ->
    T = open(Config, []),
    Yes = fun(_, _) -> true end,
    Below = fun(High) -> fun(Key) -> Key < High end end,
    Complete = [
        {{key, 1}, {key, 2}, 1},
        {{key, 1}, {key, 50}, 10},
        {{key, 250}, unbounded, 20},
        {{key, 250}, unbounded, 51},
        {{key, 250}, unbounded, 100},
        {{key, 5}, Below(7), 2},
        {unbounded, Below(0), 1},
        {{key, 400}, unbounded, 1}
    ],
    [
        begin
            {ok, Rows, Handle} = dats:select_range(T, Lower, Upper, Yes, N),
            none_soon(T),
            All = [{K, K} || {K, _} <- dats:range(T, 1, 300), in(Lower, Upper, K)],
            {ok, Rest, End} = dats:select_continue(T, Handle, 300),
            none_soon(T),
            ?assertEqual(All, Rows ++ Rest),
            ?assertMatch({ok, [], _}, dats:select_continue(T, End, 1))
        end
     || {Lower, Upper, N} <- Complete
    ],
    %% Snapshots of `range/3' go a moment later, too.
    none_soon(T),
    {ok, [_], Handle} = dats:select_range(T, unbounded, unbounded, Yes, 1),
    ?assertEqual(1, snapshots(T)),
    {ok, Rest, _} = dats:select_continue(T, Handle, 299),
    ?assertEqual(299, length(Rest)),
    none_soon(T).

%% Deleted snapshots are freed a moment later.
none_soon(T) ->
    ats_test_lib:until(fun() -> snapshots(T) =:= 0 end, ?PATIENCE_MS).

in({key, Low}, Upper, Key) -> Key >= Low andalso in(unbounded, Upper, Key);
in(unbounded, {key, High}, Key) -> Key < High;
in(unbounded, unbounded, _Key) -> true;
in(unbounded, Upper, Key) -> Upper(Key).

forgotten_selects(Config) ->
    %% A busy machine takes a second or two until all have begun.
    T = open(Config, [{select_timeout_secs, 4}]),
    Yes = fun(_, _) -> true end,
    Handles = [
        begin
            [ok = dats:write(T, N, crypto:strong_rand_bytes(1000)) || N <- lists:seq(1, 300)],
            ok = dats:flush(T),
            {ok, [_], Handle} = dats:select_range(T, unbounded, unbounded, Yes, 1),
            Handle
        end
     || _ <- lists:seq(1, 10)
    ],
    ok = dats:compact(T),
    ?assertMatch(
        #{snapshots := 10, pinned_bytes := Bytes} when Bytes > 900000, dats:info(T, stats)
    ),
    ats_test_lib:until(
        fun() -> maps:with([snapshots, pinned_bytes], dats:info(T, stats)) =:=
                     #{snapshots => 0, pinned_bytes => 0}
        end, ?PATIENCE_MS),
    %% Rows read before are in the handle; later ones are gone.
    [
        ?assertEqual({error, {bad_select_handle, Handle}}, dats:select_continue(T, Handle, 200))
     || Handle <- Handles
    ],
    {ok, Rows, _} = dats:select_range(T, unbounded, unbounded, Yes, 300),
    ?assertEqual(300, length(Rows)).

%% A select that is followed does not expire, however long it takes.
selects_in_use(Config) ->
    T = open(Config, [{select_timeout_secs, 2}]),
    {ok, First, Handle} = dats:select_range(T, unbounded, unbounded, fun(_, _) -> true end, 100),
    ok = dats:delete_all_objects(T),
    Next = fun(_, {Rows, Before}) ->
        timer:sleep(400),
        {ok, More, After} = dats:select_continue(T, Before, 20),
        {Rows ++ More, After}
    end,
    {Rows, _} = lists:foldl(Next, {First, Handle}, lists:seq(1, 11)),
    ?assertEqual([{N, N} || N <- lists:seq(1, 300)], Rows).

%% A fold that reads nothing for longer than that has an answer that says so.
slow_folds(Config) ->
    Directory = ats_disk_lib:file(Config, s),
    {ok, s} = dats:open_file(s, [{file, Directory}, {continuation_age, 300}]),
    Bytes = crypto:strong_rand_bytes(10000),
    [ok = dats:insert(s, {N, Bytes}) || N <- lists:seq(1, 100)],
    Sleep = fun(_, {First, N}) ->
        First andalso timer:sleep(4000),
        {false, N + 1}
    end,
    Failed = dats:foldl(Sleep, {true, 0}, s),
    ?assertEqual({error, {continuation_expired, filename:absname(Directory)}}, Failed),
    ?assert(is_list(unicode:characters_to_list(dats:format_error(Failed)))),
    ?assertEqual({false, 100}, dats:foldl(Sleep, {false, 0}, s)),
    ?assertError(badarg, dats:open_file(x, [{file, Directory}, {continuation_age, 0}])),
    ok = dats:close(s),
    {ok, s} = dats:open_file(s, [{file, Directory}, {continuation_age, infinity}]),
    ?assertEqual({false, 100}, dats:foldl(Sleep, {true, 0}, s)).

%% The bounds of the key in the head or the guards decide how many blocks are read, also where the
%% objects are deleted. The table is opened anew for each call, so none of its blocks is in memory.
%% `select/3' goes upwards, as deletes do; `select/2' goes downwards, which can take a block less or
%% more.
deletes_and_selects_read_the_same_blocks(Config) ->
    Between = [{'>=', '$1', {{b, 100}}}, {'<', '$1', {{b, 150}}}],
    Few = [
        {{{{b, '$1'}, '_'}, [{'<', '$1', 50}]}, 49},
        {{{{b, '$1'}, '_'}, [{'>', '$1', 970}, {'=/=', '$1', 980}]}, 29},
        {{{'$1', '_'}, Between}, 50},
        {{{'$1', '_'}, [{'>', '$1', {{c, 4}}}, {'=<', '$1', {{c, 9}}}]}, 5},
        {{{{c, 500}, '_'}, []}, 1},
        {{{{b, 5000}, '_'}, []}, 0},
        {{{{bb, '_'}, '_'}, []}, 0}
    ],
    Prefix = {{{{c, '_'}, '_'}, []}, 994},
    Point = {{{{c, 500}, '_'}, []}, 1},
    [
        begin
            All = blocks(Config, Type, fun(T) -> 4000 = length(dats:match_object(T, '_')) end),
            [
                begin
                    {Pattern, Guards} = Bounded,
                    Select = fun(T) ->
                        Found = dats:select(T, [{Pattern, Guards, ['$_']}], 5000),
                        Count = length(first(Found))
                    end,
                    Delete = fun(T) -> deleted(T, Pattern, Guards, Count) end,
                    Read = blocks(Config, Type, Select),
                    ?assert(Read < All div 10 orelse Count > 100, {Type, Bounded, Read, All}),
                    ?assert(Read =< All div 3, {Type, Bounded, Read, All}),
                    Deleting = blocks(Config, Type, Delete),
                    %% A key that is deleted is looked up, and lookups also read a filter of keys.
                    ?assert(Deleting =< Read + 1, {Type, Bounded, Deleting, Read}),
                    blocks(Config, Type, fun(T) ->
                        [] = dats:select(T, [{Pattern, Guards, ['$_']}])
                    end)
                end
             || {Bounded, Count} <- Queries
            ]
        end
     || {Type, Queries} <- [{ordered_set, Few ++ [Prefix]}, {set, [Point]}, {bag, [Point]}],
        ok <- [filled(Config, Type)]
    ],
    ok.

%% Guards are for `select_delete/2'; a pattern alone will do for `match_delete/2'.
deleted(T, Pattern, [], _Count) ->
    ok = dats:match_delete(T, Pattern);
deleted(T, Pattern, Guards, Count) ->
    Count = dats:select_delete(T, [{Pattern, Guards, [true]}]).

first('$end_of_table') -> [];
first({Objects, _Continuation}) -> Objects.

filled(Config, Type) ->
    T = opened(Config, Type),
    Bytes = fun() -> rand:bytes(200) end,
    ok = dats:insert(T, [{{A, N}, Bytes()} || A <- [a, b, c, d], N <- lists:seq(1, 1000)]),
    ok = dats:compact(T),
    dats:close(T).

opened(Config, Type) ->
    {ok, Type} = dats:open_file(Type, [
        {file, ats_disk_lib:file(Config, Type)}, {type, Type}, {block_size, 1024}
    ]),
    Type.

%% Returns the number of blocks that a call reads from files.
blocks(Config, Type, Call) ->
    T = opened(Config, Type),
    Read = fun() -> maps:get(cache_misses, dats:info(T, stats)) end,
    Before = Read(),
    _ = Call(T),
    After = Read(),
    ok = dats:compact(T),
    ok = dats:close(T),
    After - Before.
%% Functions and keys as bounds select the same rows, in memory and in several runs, of which some
%% are replaced or deleted.
bounds_by_functions(Config) ->
    {ok, T} = dats:open(t, [{directory, ats_disk_lib:file(Config, t)},
                            {format, {term, uint64_sum_delete, 512}}]),
    Key = fun(N) -> element(N rem 3 + 1, {N, {user, N}, integer_to_binary(N)}) end,
    Write = fun(N) -> ok = dats:write(T, Key(N), N) end,
    Same = fun() ->
        Bound = Key(rand:uniform(12000)),
        Last = Key(rand:uniform(12000)),
        [
            ?assertEqual(rows(T, {key, Bound}, {key, Last}, N),
                         rows(T, fun(K) -> K < Bound end, fun(K) -> K < Last end, N))
         || N <- [1, 150]
        ]
    end,
    Same(),
    lists:foreach(
        fun(Round) ->
            _ = [Write(N) || N <- lists:seq(Round, 10000, Round)],
            _ = [dats:write(T, Key(N), delete) || N <- lists:seq(Round, 10000, 7)],
            _ = [dats:range_delete(T, 4000, 5000) || Round =:= 4],
            _ = [Same() || _ <- lists:seq(1, 50)],
            _ = [ok = dats:flush(T) || Round < 6],
            _ = [Same() || _ <- lists:seq(1, 50)]
        end,
        lists:seq(1, 6)
    ),
    Ends = [{fun(_) -> false end, unbounded}, {fun(_) -> true end, empty}],
    [
        ?assertEqual(case Expected of
                         empty -> {ok, []};
                         _ -> rows(T, Expected, unbounded, 100)
                     end,
                     rows(T, Lower, unbounded, 100))
     || {Lower, Expected} <- Ends
    ].

rows(T, Lower, Upper, N) ->
    {ok, Rows, _} = dats:select_range(T, Lower, Upper, fun(_, _) -> true end, N),
    {ok, Rows}.

%% A table that was just opened has nothing in memory: reads of a search are counted.
functions_are_asked_rarely(Config) ->
    Options = [{directory, ats_disk_lib:file(Config, t)}, {format, {binary, binary_replace, 512}}],
    {ok, T} = dats:open(t, Options),
    Keys = 20000,
    Runs = 2,
    Key = fun(N) -> <<"a long beginning of keys", N:32>> end,
    Write = fun(First) ->
        [ok = dats:write(T, Key(N), <<N:32>>) || N <- lists:seq(First, Keys, Runs)]
    end,
    _ = [begin Write(First), ok = dats:flush(T) end || First <- lists:seq(1, Runs)],
    ok = dats:close(T),
    Halvings = ceil(math:log2(Keys)),
    [
        begin
            {ok, T} = dats:open(t, Options),
            #{runs := Found, cache_misses := Before} = dats:info(T, stats),
            Bound = Key(N),
            Calls = counters:new(1, []),
            Lower = fun(K) -> counters:add(Calls, 1, 1), K < Bound end,
            ?assertEqual({ok, [{Bound, <<N:32>>}]}, rows(T, Lower, fun(K) -> K =< Bound end, 1)),
            #{cache_misses := After} = dats:info(T, stats),
            ok = dats:close(T),
            ct:log("~b calls and ~b reads", [counters:get(Calls, 1), After - Before]),
            ?assert(counters:get(Calls, 1) =< Found * (Halvings + 2)),
            %% A block of the index and one of records of each run, each time, and the chunk of
            %% rows.
            ?assert(After - Before > 0),
            ?assert(After - Before =< 2 * Found * (Halvings + 2))
        end
     || N <- [1, 2, Keys div 3, Keys - 1, Keys]
    ],
    {ok, T} = dats:open(t, Options),
    Bound = Key(Keys - 10),
    Time = fun(Lower) ->
        Once = fun(_) ->
            element(1, timer:tc(fun() -> {ok, [_ | _]} = rows(T, Lower, unbounded, 10) end))
        end,
        lists:nth(10, lists:sort(lists:map(Once, lists:seq(1, 21))))
    end,
    ct:log("~b us by a function, ~b us by a key",
           [Time(fun(K) -> K < Bound end), Time({key, Bound})]).

%% A search may ask about keys that the module cannot merge, which are not in the range.
pending_keys_beside_a_range(Config) ->
    {ok, T} = dats:open_file(t, [{file, ats_disk_lib:file(Config, t)}, {type, ordered_set},
                                 {merge, {module, ats_sum_merge}}]),
    _ = [ok = dats:write(T, N, V) || N <- lists:seq(1, 1000), V <- [1, 2]],
    _ = [ok = dats:write(T, N, bad) || N <- lists:seq(1, 500)],
    ?assertMatch({error, {merge_failed, _, 500, _}}, dats:read(T, 500)),
    [
        ?assertEqual({ok, [{N, 3} || N <- lists:seq(First, 1000)]},
                     rows(T, fun(K) -> K < First end, unbounded, 1000))
     || First <- [501, 502, 750, 1000, 1001]
    ].

%% Tables on disk whose writes merge, the functions of osmos, and tables that are filled from
%% others.
-module(ats_disk_merge_SUITE).

-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0, init_per_testcase/2, end_per_testcase/2]).
-export([
    merges/1,
    a_lone_sample_is_statistics/1,
    a_merge_stays/1,
    operands_that_are_refused/1,
    sums_of_many_passes/1,
    vectors_against_a_model/1,
    formats_of_osmos/1,
    ranges_of_osmos/1,
    a_select_is_one_moment/1,
    writers_at_the_same_time/1,
    many_operands_of_one_key/1,
    to_and_from_tables/1
]).

suite() -> [{timetrap, {minutes, 15}}].

all() ->
    [
        merges,
        a_lone_sample_is_statistics,
        a_merge_stays,
        operands_that_are_refused,
        sums_of_many_passes,
        vectors_against_a_model,
        formats_of_osmos,
        ranges_of_osmos,
        a_select_is_one_moment,
        writers_at_the_same_time,
        many_operands_of_one_key,
        to_and_from_tables
    ].

init_per_testcase(Case, Config) ->
    ats_disk_lib:begin_case(Case, Config).

end_per_testcase(_, _) ->
    ats_disk_lib:end_case().

options(Config, Name, Options) ->
    File = ats_disk_lib:file(Config, atom_to_list(Name)),
    [{file, File} | Options].

%% Closes the table, or merges all, or flushes, and opens it again.
disturb(Config, Name, N) ->
    case N rem 4 of
        0 -> ok = dats:flush(Name);
        1 -> ok = dats:compact(Name);
        2 -> ok = dats:sync(Name);
        3 ->
            Options = [{Item, dats:info(Name, Item)} || Item <- [type, keypos]],
            ok = dats:close(Name),
            Name = ats_disk_lib:open(Config, Name, Options)
    end.

merges(Config) ->
    Cases = [
        {sum, [1, 2, 3.5], 6.5},
        {sum, [1 bsl 62, 1 bsl 62, 1 bsl 70], (1 bsl 63) + (1 bsl 70)},
        {min, [5, a, 3], 3},
        {max, [5, a, 3], a},
        {first, [x, y, z], x},
        {last, [x, y, z], z},
        {replace, [x, y, z], z},
        {append, ["ab", "c", "d"], "abcd"},
        {append, [<<"ab">>, <<"c">>], <<"abc">>},
        {union, [[a, c], [b, c], [d]], [a, b, c, d]},
        {intersection, [[a, b, c], [b, c], [c, d]], [c]},
        {statistics, [5, 1, 9], {1, 9, 15, 3}},
        {{last, 1}, [{1, a}, {3, b}, {2, c}], {3, b}},
        {{vector, [sum, min, max]}, [{1, 2, 3}, {4, 5, 6}], {5, 2, 6}}
    ],
    [
        begin
            Table = list_to_atom("t" ++ integer_to_list(N) ++ atom_to_list(Type)),
            ats_disk_lib:open(Config, Table, [{type, Type}, {merge, Merge}]),
            [
                begin
                    ok = dats:write(Table, key, Operand),
                    disturb(Config, Table, I + Start)
                end
             || {I, Operand} <- lists:enumerate(Operands)
            ],
            ?assertEqual({ok, Expected}, dats:read(Table, key), {Merge, Type, Start}),
            ?assertEqual([{key, Expected}], dats:lookup(Table, key)),
            ?assertEqual([{key, Expected}], dats:tab2list(Table)),
            ?assertEqual(1, dats:info(Table, size)),
            ?assertEqual(not_found, dats:read(Table, other)),
            ok = dats:delete(Table, key),
            ?assertEqual(not_found, dats:read(Table, key)),
            ?assertEqual(0, dats:info(Table, size)),
            %% An insert replaces; a write is merged with the value.
            ok = dats:insert(Table, {key, hd(Operands)}),
            [ok = dats:write(Table, key, Operand) || Operand <- tl(Operands)],
            ?assertEqual({ok, Expected}, dats:read(Table, key)),
            ok = dats:close(Table)
        end
     || {N, {{Merge, Operands, Expected}, Start}} <-
            lists:enumerate([{Case, Start} || Case <- Cases, Start <- [0, 1, 2, 3]]),
        Type <- [set, ordered_set]
    ].

%% A number is a sample of the statistics, also if it is the only one that is written.
a_lone_sample_is_statistics(Config) ->
    T = ats_disk_lib:open(Config, t, [{merge, statistics}]),
    ok = dats:write(T, a, 5),
    ok = dats:write(T, b, {1, 9, 15, 3}),
    ?assertEqual({ok, {5, 5, 5, 1}}, dats:read(T, a)),
    ?assertEqual({ok, {1, 9, 15, 3}}, dats:read(T, b)),
    ok = dats:compact(T),
    ?assertEqual([{a, {5, 5, 5, 1}}], dats:lookup(T, a)).

%% A table that merges is not opened with another merge, or without its own.
a_merge_stays(Config) ->
    T = ats_disk_lib:open(Config, t, [{merge, sum}]),
    File = dats:info(T, filename),
    ok = dats:write(T, a, 1),
    Open = fun(Merge) -> dats:open_file(T, options(Config, T, [{merge, Merge}])) end,
    ?assertEqual({error, incompatible_arguments}, Open(max)),
    ok = dats:close(T),
    [?assertEqual({error, {merge_mismatch, File}}, Open(Merge)) || Merge <- [max, replace, last]],
    ?assertEqual({ok, T}, Open(sum)),
    ok = dats:close(T),
    T = ats_disk_lib:open(Config, t, []),
    ok = dats:write(T, a, 2),
    ?assertEqual({ok, 3}, dats:read(T, a)),
    [
        ?assertMatch({error, {unsupported, _}}, dats:open_file(u, options(Config, u, Options)))
     || Options <- [[{merge, no_such_merge}], [{merge, {vector, sum}}], [{merge, sum}, {type, bag}]]
    ].

operands_that_are_refused(Config) ->
    Sum = ats_disk_lib:open(Config, sum, [{merge, sum}]),
    [?assertError(badarg, dats:write(Sum, k, Wrong)) || Wrong <- [a, [], {1}, <<"1">>, self()]],
    ?assertEqual(not_found, dats:read(Sum, k)),
    %% An inserted value need not be one of the merge. Then later writes cannot be merged with it;
    %% only this key reports that.
    ok = dats:insert(Sum, {k, atom}),
    ok = dats:write(Sum, k, 1),
    ok = dats:write(Sum, other, 1),
    File = dats:info(Sum, filename),
    [
        begin
            ?assertEqual({error, {merge_failed, File}}, dats:lookup(Sum, k)),
            ?assertEqual({error, {merge_failed, File}}, dats:read(Sum, k)),
            ?assertEqual({ok, 1}, dats:read(Sum, other)),
            disturb(Config, Sum, N)
        end
     || N <- lists:seq(0, 5)
    ],
    ?assertEqual({error, {merge_failed, File}}, dats:insert(Sum, {k, 5})),
    ok = dats:delete(Sum, k),
    ?assertEqual(not_found, dats:read(Sum, k)),
    ?assertEqual(1, dats:info(Sum, size)),
    ok = dats:write(Sum, k, 5),
    ?assertEqual({ok, 5}, dats:read(Sum, k)),
    %% Tables have only pairs, as in osmos.
    Third = ats_disk_lib:open(Config, third, [{merge, sum}, {keypos, 2}, {type, ordered_set}]),
    ?assertError(badarg, dats:write(Third, a, 1)),
    Select = fun() -> dats:select_range(Third, unbounded, unbounded, fun(_, _) -> true end, 1) end,
    ?assertError(badarg, Select()).

%% The tests of osmos: numbers are added, and keys deleted, pass by pass.
sums_of_many_passes(Config) ->
    T = sums,
    Directory = ats_disk_lib:file(Config, "sums"),
    Options = [{directory, Directory}, {format, {term, uint64_sum_delete, 1024}},
               {max_memory_entries, 100}, {memory, 200000}],
    {ok, T} = dats:open(T, Options),
    Keys = 1000,
    [
        begin
            [ok = dats:write(T, {key, K}, Pass) || K <- lists:seq(1, Keys)],
            [ok = dats:write(T, {key, K}, delete) || K <- lists:seq(Pass, Keys, 17)],
            case Pass rem 4 of
                0 ->
                    ok = dats:close(T),
                    {ok, T} = dats:open(T, Options);
                _ ->
                    ok
            end
        end
     || Pass <- lists:seq(1, 16)
    ],
    Expected = fun(K) ->
        lists:foldl(
            fun
                (Pass, _) when K >= Pass, (K - Pass) rem 17 =:= 0 -> not_found;
                (Pass, not_found) -> {ok, Pass};
                (Pass, {ok, Sum}) -> {ok, Sum + Pass}
            end,
            not_found,
            lists:seq(1, 16)
        )
    end,
    [?assertEqual(Expected(K), dats:read(T, {key, K}), K) || K <- lists:seq(1, Keys)],
    All = [{{key, K}, V} || K <- lists:seq(1, Keys), {ok, V} <- [Expected(K)]],
    ?assertEqual(All, dats:tab2list(T)),
    ?assertEqual(length(All), dats:info(T, size)),
    [?assert(is_integer(dats:info(T, Item))) || Item <- [files, file_entries]].

vectors_against_a_model(Config) ->
    T = ats_disk_lib:open(Config, t,
                          [{merge, {vector, [sum, sum]}}, {type, ordered_set}, {memory, 100000}]),
    Writes = [{rand:uniform(500), {rand:uniform(100), -rand:uniform(100)}}
              || _ <- lists:seq(1, 20000)],
    Model = lists:foldl(
        fun({N, {K, {A, B}}}, Sums) ->
            ok = dats:write(T, K, {A, B}),
            N rem 5000 =:= 0 andalso disturb(Config, T, N div 5000),
            maps:update_with(K, fun({C, D}) -> {A + C, B + D} end, {A, B}, Sums)
        end,
        #{},
        lists:enumerate(Writes)
    ),
    ?assertEqual(lists:sort(maps:to_list(Model)), dats:tab2list(T)),
    [?assertEqual({ok, V}, dats:read(T, K)) || {K, V} <- maps:to_list(Model)].

formats_of_osmos(Config) ->
    Directory = fun(N) ->
        ats_disk_lib:file(Config, integer_to_list(N))
    end,
    Cases = [
        {{term, term_replace, 512}, [a, {b, 1}, "c"], "c"},
        {{binary, binary_replace, 512}, [<<"a">>, <<"b">>], <<"b">>},
        {{string_vector, uint64_sum_delete, 64}, [1, 2, 3], 6},
        {{term, {uint64_vector_sum_delete, 2}, 4096}, [{1, 2}, {3, 4}], {4, 6}}
    ],
    [
        begin
            {ok, t} = dats:open(t, [{directory, Directory(N)}, {format, Format}]),
            [ok = dats:write(t, k, V) || V <- Values],
            ?assertEqual({ok, Last}, dats:read(t, k)),
            ok = dats:close(t),
            ?assertEqual(ordered_set, begin
                {ok, R} = dats:open_file(Directory(N)),
                Type = dats:info(R, type),
                ok = dats:close(R),
                Type
            end)
        end
     || {N, {Format, Values, Last}} <- lists:enumerate(Cases)
    ],
    [
        ?assertError(badarg, dats:open(t, [{directory, Directory(0)} | Wrong]))
     || Wrong <- [[{format, {term, sum, 64}}], [{format, {float, term_replace, 64}}], [oops],
                  [{type, set}], [{format, {term, term_replace, 63}}]]
    ].

ranges_of_osmos(Config) ->
    T = ats_disk_lib:open(Config, t, [{type, ordered_set}]),
    Rows = [{K, K * K} || K <- lists:seq(1, 1000)],
    ok = dats:insert(T, Rows),
    Below = fun(Bound) -> fun(Key) -> Key < Bound end end,
    Any = fun(_, _) -> true end,
    Expected = [Row || {K, _} = Row <- Rows, K >= 100, K < 900, K rem 3 =:= 0],
    Third = fun({K, _}) -> K rem 3 =:= 0 end,
    [
        begin
            {ok, First, Handle} = dats:select_range(T, Lower, Upper, Select, N),
            ?assertEqual(Expected, rest(T, First, Handle, N))
        end
     || {Lower, Upper} <- [{Below(100), Below(900)}, {{key, 100}, {key, 900}},
                           {{key, 100}, Below(900)}, {Below(100), {key, 900}}],
        Select <- [Third, fun(K, V) -> Third({K, V}) end],
        N <- [1, 7, 100, 267, 268, 10000]
    ],
    {ok, All, _} = dats:select_range(T, unbounded, unbounded, Any, 10000),
    ?assertEqual(Rows, All),
    {ok, [], H} = dats:select_range(T, Below(5000), unbounded, Any, 3),
    ?assertEqual({ok, [], H}, dats:select_continue(T, H, 3)),
    ?assertEqual({error, {bad_select_handle, x}}, dats:select_continue(T, x, 3)),
    [?assertError(badarg, dats:select_range(T, L, unbounded, F, N))
     || {L, F, N} <- [{5, Any, 1}, {unbounded, x, 1}, {unbounded, Any, 0}]],
    ?assertError(badarg, dats:select_range(no_table, unbounded, unbounded, Any, 1)),
    %% A function that fails is the caller's.
    ?assertError(oops, dats:select_range(T, fun(_) -> error(oops) end, unbounded, Any, 1)),
    NoSnapshot = fun() -> maps:get(snapshots, dats:info(T, stats)) =:= 0 end,
    ats_test_lib:until(NoSnapshot, 5000).

rest(T, Rows, Handle, N) when length(Rows) =:= N ->
    {ok, More, Next} = dats:select_continue(T, Handle, N),
    Rows ++ rest(T, More, Next, N);
rest(_, Rows, _, _) ->
    Rows.

a_select_is_one_moment(Config) ->
    T = ats_disk_lib:open(Config, t, [{type, ordered_set}, {merge, sum}]),
    [ok = dats:write(T, K, 1) || K <- lists:seq(1, 1000)],
    Any = fun(_, _) -> true end,
    {ok, First, Handle} = dats:select_range(T, unbounded, unbounded, Any, 10),
    [ok = dats:write(T, K, 1) || K <- lists:seq(1, 2000)],
    ok = dats:compact(T),
    ok = dats:delete_all_objects(T),
    ?assertEqual([{K, 1} || K <- lists:seq(1, 1000)], rest(T, First, Handle, 10)),
    ?assertEqual([], dats:tab2list(T)),
    %% The handle of a process that has ended is none.
    Me = self(),
    Pid = spawn(fun() -> Me ! dats:select_range(T, unbounded, unbounded, Any, 1) end),
    Monitor = monitor(process, Pid),
    ok = dats:write(T, 1, 1),
    receive {'DOWN', Monitor, process, Pid, _} -> ok end,
    receive
        {ok, _, Gone} ->
            case dats:select_continue(T, Gone, 1) of
                {error, {bad_select_handle, Gone}} -> ok;
                {ok, [], _} -> ok
            end
    end.

%% Operands survive while other processes merge, flush and compact.
writers_at_the_same_time(Config) ->
    T = ats_disk_lib:open(Config, t, [{merge, sum}, {memory, 200000}]),
    Writer = fun(Seed) ->
        fun() ->
            rand:seed(exsss, Seed),
            [ok = dats:write(T, rand:uniform(300), 1) || _ <- lists:seq(1, 20000)]
        end
    end,
    Compactor = fun() -> [ok = dats:compact(T) || _ <- lists:seq(1, 5)] end,
    _ = ats_test_lib:parallel([Compactor | [Writer(S) || S <- lists:seq(1, 4)]]),
    ?assertEqual(80000, lists:sum([V || {_, V} <- dats:tab2list(T)])),
    ?assertEqual(300, dats:info(T, size)).

many_operands_of_one_key(Config) ->
    T = ats_disk_lib:open(Config, t, [{merge, append}, {memory, 1 bsl 20}]),
    [ok = dats:write(T, k, <<N:576>>) || N <- lists:seq(1, 50000)],
    {Micros, {ok, Value}} = timer:tc(fun() -> dats:read(T, k) end),
    ?assertEqual(<< <<N:576>> || N <- lists:seq(1, 50000) >>, Value),
    ct:pal("~b us", [Micros]).

to_and_from_tables(Config) ->
    Objects = lists:sort([{N, {x, N, <<N:800>>}} || N <- lists:seq(1, 3456)]),
    Ets = ets:new(t, [public]),
    true = ets:insert(Ets, Objects),
    Ats = ats:new(t, [ordered_set, public]),
    true = ats:insert(Ats, Objects),
    File = ats_disk_lib:file(Config, "dets"),
    {ok, Dets} = dets:open_file(d, [{file, File}]),
    ok = dets:insert(Dets, Objects),
    T = ats_disk_lib:open(Config, t, []),
    Progress = fun(Done, Total) -> self() ! {Done, Total} end,
    [
        begin
            ok = dats:insert(T, {old, old}),
            ok = From(T, Source, [{progress, Progress}]),
            ?assertEqual(Objects, lists:sort(dats:tab2list(T))),
            ?assertEqual({3456, 3456}, lists:last(told()))
        end
     || {From, Source} <- [
            {fun dats:from_ets/3, Ets},
            {fun dats:from_ats/3, Ats},
            {fun dats:from_dets/3, Dets}
        ]
    ],
    ets:delete_all_objects(Ets),
    ats:delete_all_objects(Ats),
    ?assertEqual(Ets, dats:to_ets(T, Ets, [{progress, Progress}])),
    Told = [Done || {Done, unknown} <- told()],
    ?assertEqual(lists:usort(Told), Told),
    ?assert(length(Told) > 2),
    ?assertEqual(3456, lists:last(Told)),
    ?assertEqual(Ats, dats:to_ats(T, Ats)),
    ?assertEqual(Objects, lists:sort(ets:tab2list(Ets))),
    ?assertEqual(Objects, ats:tab2list(Ats)),
    ok = dets:close(Dets),
    [
        ?assertError(badarg, F(T, Source))
     || {F, Source} <- [
            {fun dats:from_ets/2, no_table},
            {fun dats:from_ats/2, no_table},
            {fun dats:from_dets/2, Dets},
            {fun dats:to_ets/2, no_table},
            {fun dats:to_ats/2, no_table}
        ]
    ],
    ?assertError(badarg, dats:to_ets(no_table, Ets)),
    ?assertEqual(3456, dats:info(T, size)).

told() ->
    receive
        {Done, Total} when is_integer(Done) -> [{Done, Total} | told()]
    after 0 -> []
    end.

%% Tables on disk whose values a module of a program merges.
-module(ats_disk_program_SUITE).

-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0, init_per_suite/1, end_per_suite/1, init_per_testcase/2,
         end_per_testcase/2]).
-export([
    against_a_model/1,
    a_module_is_checked/1,
    failures_are_of_one_key/1,
    pending_keys_are_merged_in_the_background/1,
    the_background_goes_on_after_a_failure/1,
    writers_and_changes_at_the_same_time/1,
    functions_that_meet_pending_keys/1,
    filled_while_others_write/1,
    changes_of_objects_that_are_found/1,
    walks_over_many_pending_keys/1,
    objects_that_cannot_be_merged/1,
    a_long_chain/1,
    modules_with_strange_names/1,
    another_version_is_not_mixed/1,
    an_upgrade_merges_first/1,
    an_upgrade_converts/1,
    an_upgrade_that_fails/1,
    walks_meet_pending_keys_in_order/1,
    keys_that_count_as_missing_are_passed_once/1,
    a_chain_that_fails_gets_shorter/1,
    a_chain_that_hangs_gets_shorter/1,
    writers_are_not_harmed/1
]).

-define(MODULE_OF_MERGE, ats_affine_merge).
-define(MS, 500).

suite() -> [{timetrap, {minutes, 15}}].

all() ->
    [
        against_a_model,
        a_module_is_checked,
        failures_are_of_one_key,
        pending_keys_are_merged_in_the_background,
        the_background_goes_on_after_a_failure,
        writers_and_changes_at_the_same_time,
        functions_that_meet_pending_keys,
        filled_while_others_write,
        changes_of_objects_that_are_found,
        walks_over_many_pending_keys,
        objects_that_cannot_be_merged,
        a_long_chain,
        modules_with_strange_names,
        another_version_is_not_mixed,
        an_upgrade_merges_first,
        an_upgrade_converts,
        an_upgrade_that_fails,
        walks_meet_pending_keys_in_order,
        keys_that_count_as_missing_are_passed_once,
        a_chain_that_fails_gets_shorter,
        a_chain_that_hangs_gets_shorter,
        writers_are_not_harmed
    ].

%% A merge may take less long than usual, so that one that hangs does not hold up the tests.
init_per_suite(Config) ->
    _ = application:stop(ats),
    ok = application:set_env(ats, merge_ms, ?MS),
    ok = application:set_env(ats, merge_heap_words, 4 * 1024 * 1024),
    Config.

end_per_suite(_) ->
    _ = application:stop(ats),
    ok = application:unset_env(ats, merge_ms),
    ok = application:unset_env(ats, merge_heap_words).

init_per_testcase(Case, Config) ->
    ats_disk_lib:begin_case(Case, Config).

end_per_testcase(_, _) ->
    _ = [sys:resume(ats_merge_background) || is_pid(whereis(ats_merge_background))],
    ats_disk_lib:end_case().

open(Config, Name, Options) ->
    ats_disk_lib:open(Config, Name, [{memory, 300000} | Options]).

open(Config, Name) ->
    open(Config, Name, [{type, ordered_set}, {merge, {module, ?MODULE_OF_MERGE}}]).

%% Returns the keys that are pending.
pending(Name) ->
    Snapshot = ats_nif:disk_snapshot(ats_disk_tables:find(Name), default),
    try pending(Snapshot, start)
    after true = ats_nif:delete(Snapshot)
    end.

pending(Snapshot, Last) ->
    case ats_nif:disk_chunk(Snapshot, up, Last) of
        {done, _, _} ->
            [];
        {more, _, Next} ->
            pending(Snapshot, Next);
        {pending, _, Next} ->
            Records = ats_nif:disk_pending(Snapshot),
            true = ats_nif:disk_resolve(Snapshot, [{Key, missing} || {Key, _} <- Records]),
            [ats_merge_operands:key(Chain) || {_, Chain} <- Records] ++ pending(Snapshot, Next)
    end.

%% ----- against a model -----

against_a_model(Config) ->
    [model_of_type(Config, Type, Seed) || Type <- [ordered_set, set], Seed <- lists:seq(1, 4)],
    ok.

model_of_type(Config, Type, Seed) ->
    rand:seed(exsss, Seed),
    Name = list_to_atom(lists:concat([Type, Seed])),
    Options = [{type, Type}, {merge, {module, ?MODULE_OF_MERGE}}],
    open(Config, Name, Options),
    Model = lists:foldl(
        fun(N, Before) ->
            After = step(Name, Before),
            _ = N rem 97 =:= 0 andalso disturb(Config, Name),
            _ = N rem 23 =:= 0 andalso compare(Name, Type, After),
            After
        end,
        #{},
        lists:seq(1, 2500)
    ),
    disturb(Config, Name),
    compare(Name, Type, Model),
    ok = dats:close(Name).

disturb(Config, Name) ->
    case rand:uniform(4) of
        1 -> ok = dats:flush(Name);
        2 -> ok = dats:compact(Name);
        3 -> ok = dats:sync(Name);
        4 ->
            Options = [{Item, dats:info(Name, Item)} || Item <- [type, keypos]],
            ok = dats:close(Name),
            open(Config, Name, Options)
    end.

key() -> rand:uniform(40).

%% A third of the values hides older ones or counts as missing.
value() ->
    case rand:uniform(9) of
        1 -> {1, 0};
        2 -> {0, rand:uniform(1000)};
        _ -> {rand:uniform(1008), rand:uniform(1000)}
    end.

merged(Key, Value, Model) ->
    case Model of
        #{Key := Before} -> put_value(Key, ?MODULE_OF_MERGE:merge(Key, Before, Value), Model);
        #{} -> put_value(Key, Value, Model)
    end.

put_value(Key, {1, 0}, Model) -> maps:remove(Key, Model);
put_value(Key, Value, Model) -> Model#{Key => Value}.

step(Name, Model) ->
    Key = key(),
    Value = {A, _} = value(),
    case rand:uniform(30) of
        1 ->
            ok = dats:delete(Name, Key),
            maps:remove(Key, Model);
        2 ->
            %% Inserted objects replace all older values.
            ok = dats:insert(Name, [{Key, {2, 3}}, {Key + 1, {4, 5}}]),
            Model#{Key => {2, 3}, Key + 1 => {4, 5}};
        3 ->
            ?assertEqual([{Key, V} || #{Key := V} <- [Model]], dats:take(Name, Key)),
            maps:remove(Key, Model);
        4 ->
            ?assertEqual(not is_map_key(Key, Model), dats:insert_new(Name, {Key, {7, 7}})),
            maps:merge(#{Key => {7, 7}}, Model);
        5 ->
            ?assertEqual(is_map_key(Key, Model), dats:update_element(Name, Key, {2, {9, 9}})),
            maps:map(fun(K, V) -> case K of Key -> {9, 9}; _ -> V end end, Model);
        6 ->
            Current = maps:get(Key, Model, none),
            ok = dats:delete_object(Name, {Key, Current}),
            maps:remove(Key, Model);
        7 ->
            Low = A rem 40,
            Gone = [K || K <- maps:keys(Model), K >= Low, K =< Low + 2],
            Spec = [{{'$1', '_'}, [{'>=', '$1', Low}, {'=<', '$1', Low + 2}], [true]}],
            ?assertEqual(length(Gone), dats:select_delete(Name, Spec)),
            maps:without(Gone, Model);
        8 ->
            Spec = [{{Key, {'$1', '$2'}}, [], [{{Key, {{'$2', 11}}}}]}],
            ?assertEqual(map_size(maps:with([Key], Model)), dats:select_replace(Name, Spec)),
            maps:map(fun(K, {_, B} = V) -> case K of Key -> {B, 11}; _ -> V end end, Model);
        9 ->
            Spec = [{{Key, '_'}, [], [true]}],
            ?assertEqual([{Key, V} || #{Key := V} <- [Model]], dats:select_take(Name, Spec)),
            maps:remove(Key, Model);
        _ ->
            ok = dats:write(Name, Key, Value),
            merged(Key, Value, Model)
    end.

compare(Name, Type, Model) ->
    Sorted = lists:sort(maps:to_list(Model)),
    Read = fun(Objects) -> case Type of ordered_set -> Objects; set -> lists:sort(Objects) end end,
    case rand:uniform(8) of
        1 -> ?assertEqual(Sorted, Read(dats:tab2list(Name)));
        2 -> ?assertEqual(Sorted,
                          Read(lists:reverse(dats:foldl(fun(O, Os) -> [O | Os] end, [], Name))));
        3 -> ?assertEqual(Sorted, Read(walk(Name, dats:first(Name))));
        4 -> ?assertEqual(Sorted, Read(chunks(dats:select(Name, [{'$1', [], ['$1']}], 3))));
        5 -> ?assertEqual(length(Sorted), dats:select_count(Name, [{'_', [], [true]}]));
        6 ->
            [?assertEqual([{K, V} || #{K := V} <- [Model]], dats:lookup(Name, K))
             || K <- lists:seq(0, 42)];
        7 ->
            [?assertEqual(is_map_key(K, Model), dats:member(Name, K)) || K <- lists:seq(0, 42)],
            [?assertEqual(case Model of #{K := V} -> {ok, V}; #{} -> not_found end,
                          dats:read(Name, K))
             || K <- lists:seq(0, 42)];
        8 when Type =:= ordered_set -> ranges(Name, Sorted);
        8 -> ?assertEqual(Sorted, Read(dats:traverse(Name, fun(O) -> {continue, O} end)))
    end.

ranges(Name, Sorted) ->
    Low = rand:uniform(30),
    High = Low + rand:uniform(15),
    Expected = [Object || {K, _} = Object <- Sorted, K >= Low, K =< High],
    ?assertEqual(Expected, dats:range(Name, Low, High)),
    ?assertEqual(lists:reverse(Expected), dats:range(Name, Low, High, [reverse])),
    ?assertEqual([K || {K, _} <- Expected], dats:range(Name, Low, High, [keys])),
    ?assertEqual(length(Expected), dats:range_count(Name, Low, High)),
    ?assertEqual(lists:reverse(Expected),
                 dats:range_fold(fun(O, Os) -> [O | Os] end, [], Name, Low, High)),
    ?assertEqual(Expected, chunks(dats:range(Name, Low, High, [{limit, 2}]))),
    Last = case Sorted of [] -> '$end_of_table'; _ -> element(1, lists:last(Sorted)) end,
    ?assertEqual(Last, dats:last(Name)),
    All = fun(_, _) -> true end,
    {ok, Rows, _} = dats:select_range(Name, {key, Low}, {key, High + 1}, All, 100),
    ?assertEqual(Expected, Rows).

walk(_Name, '$end_of_table') -> [];
walk(Name, Key) ->
    %% The one that was just met may be read again.
    Here = dats:lookup(Name, Key),
    Here ++ walk(Name, dats:next(Name, Key)).

chunks('$end_of_table') -> [];
chunks({Objects, Continuation}) -> Objects ++ chunks(dats:select(Continuation)).

%% ----- opening -----

a_module_is_checked(Config) ->
    open(Config, t),
    ok = dats:write(t, 1, {2, 3}),
    ok = dats:write(t, 1, {4, 5}),
    ok = dats:close(t),
    File = ats_disk_lib:file(Config, "t"),
    Open = fun(Options) -> dats:open_file(t, [{file, File}, {type, ordered_set} | Options]) end,
    ?assertEqual({error, {merge_mismatch, File}}, Open([{merge, sum}])),
    ?assertEqual({error, {merge_mismatch, File}}, Open([{merge, {module, ats_keyed_merge}}])),
    ?assertMatch({error, {merge, {not_loaded, no_such_module, _}}},
                 Open([{merge, {module, no_such_module}}])),
    ?assertMatch({error, {merge, {not_exported, lists, _}}}, Open([{merge, {module, lists}}])),
    ?assertError(badarg, Open([{merge, {module, 7}}])),
    [?assert(is_list(unicode:characters_to_list(dats:format_error(Open([{merge, Merge}])))))
     || Merge <- [sum, {module, no_such_module}, {module, lists}]],
    %% Without the option, the module is known.
    {ok, t} = Open([]),
    ?assertEqual({ok, {8, 17}}, dats:read(t, 1)),
    ok = dats:close(t),
    %% Another version is another merge.
    with_version(4, fun() ->
        ?assertEqual({error, {merge_mismatch, File}}, Open([{merge, {module, ?MODULE_OF_MERGE}}]))
    end),
    {ok, t} = Open([{merge, {module, ?MODULE_OF_MERGE}}]),
    ?assertEqual({ok, {8, 17}}, dats:read(t, 1)),
    ok = dats:close(t),
    %% A bag is not merged.
    Bag = ats_disk_lib:file(Config, "bag"),
    ?assertMatch({error, _}, dats:open_file(bag, [{file, Bag}, {type, bag},
                                                  {merge, {module, ?MODULE_OF_MERGE}}])).

%% Runs a test while functions of the module have other clauses.
with_clauses(Change, Test) ->
    {_, Binary, File} = code:get_object_code(?MODULE_OF_MERGE),
    {ok, {_, [{abstract_code, {_, Forms}}]}} = beam_lib:chunks(Binary, [abstract_code]),
    Changed = [case Form of
                   {function, L, Name, Arity, Clauses} ->
                       {function, L, Name, Arity, Change(Name, L, Clauses)};
                   _ -> Form
               end || Form <- Forms],
    {ok, _, Other} = compile:forms(Changed, [binary]),
    {module, _} = code:load_binary(?MODULE_OF_MERGE, File, Other),
    try Test()
    after {module, _} = code:load_binary(?MODULE_OF_MERGE, File, Binary)
    end.

with_version(Version, Test) ->
    with_clauses(fun(version, L, _) -> [{clause, L, [], [], [{integer, L, Version}]}];
                    (_, _, Clauses) -> Clauses
                 end, Test).

without_raising(Test) ->
    with_clauses(fun(merge, _, [_Raises | Clauses]) -> Clauses;
                    (_, _, Clauses) -> Clauses
                 end, Test).

%% ----- failures -----

failures_are_of_one_key(Config) ->
    open(Config, t),
    Bad = [{fails, raise}, {fails, hang}, {fails, eat}, {fails, delete}],
    [ok = dats:write(t, Key, {2, N}) || N <- [1, 2], Key <- [a, {z, 1} | Bad]],
    Good = [{a, {4, 4}}, {{z, 1}, {4, 4}}],
    Check = fun() ->
        [?assertEqual([Object], dats:lookup(t, Key)) || {Key, _} = Object <- Good],
        [begin
            Failed = dats:lookup(t, Key),
            ?assertMatch({error, {merge_failed, _, Key, {?MODULE_OF_MERGE, _, _}}}, Failed),
            Text = unicode:characters_to_list(dats:format_error(Failed)),
            ?assertNotEqual(nomatch, string:find(Text, lists:flatten(io_lib:format("~p", [Key])))),
            ?assertMatch({error, {merge_failed, _, Key, _}}, dats:read(t, Key)),
            ?assertMatch({error, {merge_failed, _, Key, _}}, dats:take(t, Key))
         end || Key <- Bad],
        ?assertMatch({error, {merge_failed, _, {fails, _}, _}}, dats:tab2list(t)),
        ?assertEqual([hd(Good)], dats:range(t, a, b)),
        ?assertEqual(a, dats:first(t))
    end,
    Check(),
    ok = dats:compact(t),
    Check(),
    ok = dats:close(t),
    open(Config, t, [{type, ordered_set}]),
    Check(),
    %% A failed merge lost nothing: with another module it can be read.
    without_raising(fun() ->
        ?assertEqual([{{fails, raise}, {4, 4}}], dats:lookup(t, {fails, raise}))
    end),
    %% And it can be written over.
    [ok = dats:delete(t, Key) || Key <- Bad],
    ?assertEqual(Good, dats:tab2list(t)).

objects_that_cannot_be_merged(Config) ->
    open(Config, t),
    ok = dats:insert(t, [{one}, {three, {2, 3}, more}]),
    ok = dats:write(t, one, {2, 2}),
    ok = dats:write(t, three, {2, 2}),
    ?assertMatch({error, {merge_failed, _, one, {_, _, no_value}}}, dats:lookup(t, one)),
    %% All but the value is that of the later one.
    ?assertEqual([{three, {4, 8}}], dats:lookup(t, three)),
    ok = dats:delete(t, one),
    ?assertEqual([{three, {4, 8}}], dats:tab2list(t)).

%% ----- in the background -----

pending_keys_are_merged_in_the_background(Config) ->
    open(Config, t),
    Keys = 3000,
    [ok = dats:write(t, K, {2, N}) || N <- [1, 2, 3], K <- lists:seq(1, Keys)],
    %% Keys are merged without a read: compaction notes them.
    ok = dats:compact(t),
    ats_test_lib:until(fun() -> pending(t) =:= [] end, 60000),
    ?assertEqual([{1, {8, 11}}], dats:lookup(t, 1)),
    ?assertEqual(Keys, length(dats:tab2list(t))),
    %% Processes for merges are supervised.
    [begin
        Pid = whereis(Process),
        exit(Pid, kill),
        ats_test_lib:until(fun() -> is_pid(whereis(Process)) andalso whereis(Process) =/= Pid end,
                           5000),
        [ok = dats:write(t, K, {2, 1}) || _ <- [1, 2], K <- lists:seq(1, 10)],
        ok = dats:compact(t),
        ats_test_lib:until(fun() -> pending(t) =:= [] end, 60000)
     end || Process <- [ats_merge_background, ats_merge_watchdog]],
    [{2, _}] = dats:lookup(t, 2),
    ok = dats:close(t).

the_background_goes_on_after_a_failure(Config) ->
    open(Config, t),
    Bad = {fails, hang},
    [ok = dats:write(t, K, {2, N}) || N <- [1, 2], K <- [Bad | lists:seq(1, 500)]],
    ok = dats:compact(t),
    ats_test_lib:until(fun() -> pending(t) =:= [Bad] end, 60000),
    %% A table that is closed meanwhile is no failure.
    [ok = dats:write(t, K, {2, N}) || N <- [1, 2], K <- lists:seq(1, 500)],
    ok = dats:compact(t),
    ok = dats:close(t),
    open(Config, t, [{type, ordered_set}]),
    ?assertEqual([{7, {16, 20}}], dats:lookup(t, 7)).

%% ----- many at a time -----

writers_and_changes_at_the_same_time(Config) ->
    open(Config, t, [{type, ordered_set}, {merge, {module, ats_keyed_merge}}]),
    Writers = 3,
    Writes = 3000,
    Keys = 20,
    Test = self(),
    Write = fun(W) ->
        [ok = dats:write(t, N rem Keys, [{W, N}]) || N <- lists:seq(1, Writes)],
        Test ! {done, W}
    end,
    _ = [spawn_link(fun() -> Write(W) end) || W <- lists:seq(1, Writers)],
    Disturb = spawn_link(fun() -> disturb_until_stopped(t, Keys) end),
    [receive {done, W} -> ok end || W <- lists:seq(1, Writers)],
    unlink(Disturb),
    exit(Disturb, kill),
    ok = dats:compact(t),
    All = [begin
               {ok, Value} = dats:read(t, K),
               %% The values of each writer are in the order in which it wrote.
               [?assertEqual(lists:seq(case K of 0 -> Keys; _ -> K end, Writes, Keys),
                             [N || {V, N} <- Value, V =:= W])
                || W <- lists:seq(1, Writers)],
               length(Value)
           end || K <- lists:seq(0, Keys - 1)],
    ?assertEqual(Writers * Writes, lists:sum(All)).

%% Disturbs a table without changing its contents.
disturb_until_stopped(T, Keys) ->
    Key = rand:uniform(Keys) - 1,
    _ = case rand:uniform(6) of
            1 -> dats:lookup(T, Key);
            2 -> dats:insert_new(T, {Key, []});
            3 -> dats:select_delete(T, [{{Key, none}, [], [true]}]);
            4 -> dats:flush(T);
            5 -> dats:tab2list(T);
            6 -> dats:delete_object(T, {Key, none})
        end,
    disturb_until_stopped(T, Keys).

%% Each function is called when all keys have several values. The keys are words that tag answers.
functions_that_meet_pending_keys(Config) ->
    _ = ats_disk_tables:ensure_started(),
    ok = load(sums, 1, "A + B"),
    ok = suspend_merger(),
    [
        begin
            T = open(Config, Type, [{type, Type}, {merge, {module, sums}}]),
            [
                begin
                    ok = dats:delete_all_objects(T),
                    [ok = dats:write(T, K, N) || N <- [1, 2], K <- [ok, pending, refused]],
                    ?assertEqual([ok, pending, refused], lists:sort(pending(T))),
                    ?assertEqual({I, Expected}, {I, Call(T)})
                end
             || {I, {Expected, Call}} <- lists:enumerate(reads() ++ changes() ++ ends(Type))
            ],
            ok = dats:close(T)
        end
     || Type <- [ordered_set, set]
    ],
    ok = sys:resume(ats_merge_background).

reads() ->
    Found = [{ok, 3}, {pending, 3}, {refused, 3}],
    Objects = fun(Walk) -> fun(T) -> lists:sort(lists:append(Walk(T))) end end,
    [
        {true, fun(T) -> dats:member(T, pending) end},
        {false, fun(T) -> dats:member(T, none) end},
        {[{pending, 3}], fun(T) -> dats:lookup(T, pending) end},
        {{ok, 3}, fun(T) -> dats:read(T, pending) end},
        {pending, fun(T) -> dats:lookup_element(T, pending, 1) end},
        {3, fun(T) -> dats:lookup_element(T, refused, 2, none) end},
        {none, fun(T) -> dats:lookup_element(T, none, 2, none) end},
        {badarg, failing(fun(T) -> dats:lookup_element(T, none, 2) end)},
        {badarg, failing(fun(T) -> dats:lookup_element(T, pending, 3) end)},
        {[3, pending], fun(T) -> dats:lookup_elements(T, pending, [2, 1]) end},
        {badarg, failing(fun(T) -> dats:lookup_elements(T, pending, [1 | 2]) end)},
        {Found, Objects(fun(T) -> walk(T, fun dats:first/1, fun dats:next/2) end)},
        {Found, Objects(fun(T) -> walk(T, fun dats:last/1, fun dats:prev/2) end)},
        {Found, Objects(fun(T) -> walk(T, fun dats:first_lookup/1, fun dats:next_lookup/2) end)},
        {Found, Objects(fun(T) -> walk(T, fun dats:last_lookup/1, fun dats:prev_lookup/2) end)},
        {Found, Objects(fun(T) -> [dats:slot(T, I) || I <- [0, 1, 2]] end)},
        {'$end_of_table', fun(T) -> dats:slot(T, 3) end},
        {'$end_of_table', fun(T) -> dats:slot(T, 1 bsl 70) end},
        {Found, fun(T) -> lists:sort(chunks(dats:select(T, [{'$1', [], ['$1']}], 1))) end},
        {3, fun(T) -> maps:get(rows_returned, dats:explain(T, [{'_', [], [true]}])) end},
        %% An exception from the function of a caller is not taken for an answer.
        {thrown, fun(T) -> catch dats:foldl(fun(_, _) -> throw(thrown) end, [], T) end}
    ].

changes() ->
    Then = fun(Change) -> fun(T) -> {Change(T), lists:sort(dats:tab2list(T))} end end,
    With = fun(V) -> [{ok, 3}, {pending, V}, {refused, 3}] end,
    Without = [{ok, 3}, {refused, 3}],
    [
        {{ok, With(x)}, Then(fun(T) -> dats:insert(T, {pending, x}) end)},
        {{ok, [{new, 7} | With(x)]},
         Then(fun(T) -> dats:insert(T, [{pending, x}, {new, 7}, {ok, 3}]) end)},
        {{false, With(3)}, Then(fun(T) -> dats:insert_new(T, {pending, x}) end)},
        {{false, With(3)}, Then(fun(T) -> dats:insert_new(T, [{new, 7}, {pending, x}]) end)},
        {{ok, Without}, Then(fun(T) -> dats:delete(T, pending) end)},
        {{ok, Without}, Then(fun(T) -> dats:delete_object(T, {pending, 3}) end)},
        {{ok, With(3)}, Then(fun(T) -> dats:delete_object(T, {pending, 2}) end)},
        {{[{pending, 3}], Without}, Then(fun(T) -> dats:take(T, pending) end)},
        {{8, With(8)}, Then(fun(T) -> dats:update_counter(T, pending, 5) end)},
        {{4.5, With(4.5)}, Then(fun(T) -> dats:update_counter(T, pending, {2, 1.5}) end)},
        {{[4, 9], With(9)}, Then(fun(T) -> dats:update_counter(T, pending, [{2, 1}, {2, 5}]) end)},
        {{4, With(4)}, Then(fun(T) -> dats:update_counter(T, pending, 1, {pending, 7}) end)},
        {{badarg, With(3)}, Then(failing(fun(T) -> dats:update_counter(T, pending, x) end))},
        {{badarg, With(3)}, Then(failing(fun(T) -> dats:update_counter(T, none, 1) end))},
        {{true, With(x)}, Then(fun(T) -> dats:update_element(T, pending, {2, x}) end)},
        {{true, With(x)}, Then(fun(T) -> dats:update_element(T, pending, {2, x}, {pending}) end)},
        {{badarg, With(3)}, Then(failing(fun(T) -> dats:update_element(T, pending, {3, x}) end))}
    ].

ends(ordered_set) ->
    [
        {{[{ok, 3}], 2}, fun(T) -> {dats:take_first(T), dats:info(T, size)} end},
        {{[{refused, 3}], 2}, fun(T) -> {dats:take_last(T), dats:info(T, size)} end}
    ];
ends(set) ->
    %% Some object.
    [{{1, 2}, fun(T) -> {length(Take(T)), dats:info(T, size)} end}
     || Take <- [fun dats:take_first/1, fun dats:take_last/1]].

failing(Call) ->
    fun(T) -> try Call(T) catch error:Reason -> Reason end end.

walk(T, First, Next) -> walk_from(First(T), T, Next).

walk_from('$end_of_table', _T, _Next) -> [];
walk_from({Key, Objects}, T, Next) -> [Objects | walk_from(Next(T, Key), T, Next)];
walk_from(Key, T, Next) ->
    [[{Key, dats:lookup_element(T, Key, 2)}] | walk_from(Next(T, Key), T, Next)].

%% Objects behind the first 128 MiB are inserted into the table itself, where keys may be pending.
filled_while_others_write(Config) ->
    ok = numbers(Config, t, sums, []),
    Bytes = binary:copy(<<0>>, 1 bsl 20),
    Fill = fun
        Fill(N) when N < 140 -> fun(read) -> {[{N, Bytes}], Fill(N + 1)} end;
        Fill(_) ->
            fun(read) ->
                [ok = dats:write(t, k, N) || N <- [1, 2]],
                ?assertEqual([k], pending(t)),
                {[{k, 7}, {l, 8}], fun(read) -> end_of_input end}
            end
    end,
    ?assertEqual(ok, dats:init_table(t, Fill(1))),
    ?assertEqual([{k, 7}, {l, 8}], dats:range(t, k, l)),
    ?assertEqual(141, dats:info(t, size)).

changes_of_objects_that_are_found(Config) ->
    open(Config, t),
    [ok = dats:write(t, K, {2, N}) || N <- [1, 2], K <- lists:seq(1, 20)],
    ?assertEqual([{1, {4, 4}}], dats:take_first(t)),
    ?assertEqual([{20, {4, 4}}], dats:take_last(t)),
    ?assertEqual(3, dats:range_delete(t, 1, 4)),
    ?assertEqual(ok, dats:match_delete(t, {5, '_'})),
    ?assertEqual(14, dats:select_replace(t, [{{'$1', {4, '$2'}}, [], [{{'$1', {{3, '$2'}}}}]}])),
    ?assertError(badarg, dats:select_replace(t, [{{6, '_'}, [], [{{7, {{0, 0}}}}]}])),
    ?assertEqual([{K, {3, 4}} || K <- lists:seq(6, 19)], dats:tab2list(t)),
    %% Keys that count as missing are passed.
    [ok = dats:write(t, K, {1, 0}) || K <- [0, 100]],
    ok = dats:write(t, 1, {5, 5}),
    ok = dats:delete_all_objects(t),
    [ok = dats:write(t, K, V) || V <- [{2, 0}, {505, 0}], K <- [1, 2, 4]],
    ok = dats:write(t, 3, {7, 7}),
    ?assertEqual(3, dats:first(t)),
    ?assertEqual('$end_of_table', dats:next(t, 3)),
    ?assertEqual([{3, {7, 7}}], dats:take_first(t)),
    ?assertEqual([], dats:take_last(t)),
    ?assertEqual([], dats:tab2list(t)).

walks_over_many_pending_keys(Config) ->
    open(Config, t),
    Keys = 20000,
    %% Nothing is merged in the background meanwhile.
    ok = sys:suspend(ats_merge_background),
    [ok = dats:write(t, K, {2, N}) || N <- [1, 2], K <- lists:seq(1, Keys)],
    ?assertEqual(Keys, length(pending(t))),
    {Time, All} = timer:tc(fun() -> dats:tab2list(t) end),
    ?assertEqual([{K, {4, 4}} || K <- lists:seq(1, Keys)], All),
    ct:pal("~b keys in ~b us", [Keys, Time]),
    ?assertEqual(Keys, dats:foldl(fun({_, {4, 4}}, N) -> N + 1 end, 0, t)),
    ?assertEqual(lists:seq(Keys, 1, -1),
                 [K || {K, _} <- dats:select_reverse(t, [{'$1', [], ['$1']}])]),
    Ets = ets:new(t, []),
    Ets = dats:to_ets(t, Ets),
    ?assertEqual(Keys, ets:info(Ets, size)),
    ok = sys:resume(ats_merge_background).

a_long_chain(Config) ->
    open(Config, t, [{merge, {module, ats_keyed_merge}}]),
    Length = 20000,
    [ok = dats:write(t, key, [N]) || N <- lists:seq(1, Length)],
    {ok, Value} = dats:read(t, key),
    ?assertEqual(lists:seq(1, Length), Value).

%% ----- names and versions of modules -----

%% A module of numbers that are merged by an expression of A and B.
load(Module, Version, Expression) ->
    load(Module, Version, Expression, "false").

load(Module, Version, Expression, ShortCircuit) ->
    ats_test_lib:load_module(
        Module,
        io_lib:format(
            "merge(_K, A, B) -> ~s. short_circuit(_K, V) -> _ = V, ~s."
            " delete(_, V) -> V =:= 0. version() -> ~b.",
            [Expression, ShortCircuit, Version]
        )
    ).

%% Nothing is merged in the background until the end of the test.
numbers(Config, Name, Module, Options) ->
    ok = load(Module, 1, "A + B"),
    Name = open(Config, Name, [{type, ordered_set}, {merge, {module, Module}} | Options]),
    suspend_merger().

suspend_merger() ->
    ats_test_lib:until(fun() -> sys:get_state(ats_merge_background) =:= {state, #{}} end, 5000),
    sys:suspend(ats_merge_background).

%% Answers of the native library are told from names of modules.
modules_with_strange_names(Config) ->
    [
        begin
            ok = numbers(Config, Name, Name, []),
            [ok = dats:write(Name, k, N) || N <- [1, 2]],
            ?assertEqual({ok, 3}, dats:read(Name, k)),
            ?assertEqual([{k, 3}], dats:tab2list(Name)),
            ?assertEqual(1, dats:select_delete(Name, [{{k, '_'}, [], [true]}])),
            ok = dats:close(Name),
            ok = sys:resume(ats_merge_background)
        end
     || Name <- [true, false, undefined, ok, none, error, written, hot, module, ask, pending, [],
                 'a b', 'Ü'],
        is_atom(Name)
    ].

another_version_is_not_mixed(Config) ->
    ok = numbers(Config, t, sums, []),
    [ok = dats:write(t, K, N) || N <- [1, 2, 3], K <- [a, b]],
    ok = dats:insert(t, {c, 7}),
    ok = load(sums, 2, "max(A, B)"),
    File = ats_disk_lib:file(Config, "t"),
    Mismatch = fun(Key) -> {error, {merge_mismatch, File, Key, {sums, 1, 2}}} end,
    ?assertEqual(Mismatch(a), dats:read(t, a)),
    ?assertEqual(Mismatch(b), dats:lookup(t, b)),
    ?assertEqual(Mismatch(b), dats:take(t, b)),
    ?assertEqual(Mismatch(b), dats:tab2list(t)),
    ?assertEqual(Mismatch(a), dats:select_count(t, [{'_', [], [true]}])),
    ?assertEqual(Mismatch(b), dats:range_count(t, b, z)),
    ?assertEqual(Mismatch(x), dats:write(t, x, 4)),
    Text = unicode:characters_to_list(dats:format_error(Mismatch(a))),
    ?assertNotEqual(nomatch, string:find(Text, "version 2")),
    %% Values that need no merge can be read, and nothing is merged in the background.
    ?assertEqual([{c, 7}], dats:lookup(t, c)),
    ok = dats:compact(t),
    ok = sys:resume(ats_merge_background),
    ok = dats:close(t),
    ?assertEqual({error, {merge_mismatch, File}},
                 dats:open_file(t, [{file, File}, {type, ordered_set}, {merge, {module, sums}}])),
    open(Config, t, [{type, ordered_set}]),
    ?assertEqual(Mismatch(a), dats:read(t, a)),
    ok = load(sums, 1, "A + B"),
    ?assertEqual([{a, 6}, {b, 6}, {c, 7}], dats:tab2list(t)).

an_upgrade_merges_first(Config) ->
    ok = numbers(Config, t, sums, []),
    Keys = 3000,
    [ok = dats:write(t, K, N) || N <- [1, 2, 3], K <- lists:seq(1, Keys)],
    [ok = dats:write(t, gone, N) || N <- [-1, 1]],
    ok = load(sums, 2, "max(A, B)"),
    ok = load(sums_of_before, 1, "A + B"),
    {error, {merge_mismatch, _, _, _}} = dats:read(t, 1),
    %% A module of another version merges nothing.
    ?assertMatch({error, {merge, {failed, {sums, version, {other_version, 1, 2}}}}},
                 dats:upgrade_merge(t, {old, sums})),
    ?assertError(badarg, dats:upgrade_merge(t, sums)),
    ?assertMatch({error, {merge_mismatch, _, _, _}}, dats:write(t, 1, 5)),
    ok = dats:upgrade_merge(t, {old, sums_of_before}),
    Check = fun(Expected) ->
        ?assertEqual(lists:duplicate(Keys, Expected), [V || {_, V} <- dats:tab2list(t)])
    end,
    Check(6),
    [ok = dats:write(t, K, N) || N <- [4, 9], K <- lists:seq(1, Keys)],
    Check(9),
    %% Another process can open the table with its present options.
    {ok, t} = dats:open_file(t, [{file, ats_disk_lib:file(Config, "t")}, {type, ordered_set},
                                 {merge, {module, sums}}]),
    ok = dats:close(t),
    ok = dats:close(t),
    open(Config, t, [{type, ordered_set}, {merge, {module, sums}}]),
    Check(9),
    %% And so on.
    [ok = dats:write(t, K, 10) || K <- lists:seq(1, Keys)],
    ok = load(sums_of_before, 2, "max(A, B)"),
    ok = load(sums, 3, "min(A, B)"),
    ok = dats:upgrade_merge(t, {old, sums_of_before}),
    Check(10),
    ok = dats:write(t, 1, 3),
    ?assertEqual({ok, 3}, dats:read(t, 1)),
    ok = dats:close(t),
    open(Config, t, [{type, ordered_set}, {merge, {module, sums}}]),
    ?assertEqual({ok, 3}, dats:read(t, 1)).

an_upgrade_converts(Config) ->
    ok = numbers(Config, t, sums, []),
    [ok = dats:write(t, K, N) || N <- [1, 2, 3], K <- [a, b]],
    ok = dats:insert(t, {c, 7}),
    ok = load(sums, 2, "A ++ B"),
    Convert = fun(a, Values) -> {value, Values};
                 (b, [1, 2, 3]) -> delete
              end,
    ok = dats:upgrade_merge(t, {convert, Convert}),
    ok = dats:write(t, a, [4]),
    ?assertEqual([{a, [1, 2, 3, 4]}, {c, 7}], dats:tab2list(t)),
    ?assertError(badarg, dats:upgrade_merge(t, {convert, fun(_) -> delete end})),
    %% A table that no module merges has no version.
    open(Config, native, [{merge, sum}]),
    ?assertError(badarg, dats:upgrade_merge(native, {old, sums})).

%% The table keeps its version, and merged keys stay merged.
an_upgrade_that_fails(Config) ->
    ok = numbers(Config, t, sums, []),
    [ok = dats:write(t, K, N) || N <- [1, 2, 3], K <- [a, b, c]],
    ok = load(sums, 2, "max(A, B)"),
    [
        ?assertMatch({error, {merge_failed, _, b, _}}, dats:upgrade_merge(t, {convert, Convert}))
     || Convert <- [
            fun(b, _) -> exit(self(), kill), timer:sleep(infinity);
               (_, V) -> {value, lists:sum(V)}
            end,
            fun(K, V) -> case K of b -> error(no); _ -> {value, lists:sum(V)} end end,
            fun(K, V) -> case K of b -> V; _ -> {value, lists:sum(V)} end end
        ]
    ],
    ?assertEqual({ok, 6}, dats:read(t, a)),
    ?assertMatch({error, {merge_mismatch, _, b, {sums, 1, 2}}}, dats:read(t, b)),
    ok = load(sums, 1, "A + B"),
    ok = dats:write(t, b, 4),
    ok = load(sums, 2, "max(A, B)"),
    ok = dats:upgrade_merge(t, {convert, fun(_, Values) -> {value, lists:sum(Values)} end}),
    [ok = dats:write(t, K, 7) || K <- [a, b, c]],
    ?assertEqual([{a, 7}, {b, 10}, {c, 7}], dats:tab2list(t)).

%% ----- walks -----

%% Keys are met in order with any neighbours, in both directions, in chunks of all sizes.
walks_meet_pending_keys_in_order(Config) ->
    ok = load(sums, 1, "A + B"),
    _ = ats_disk_tables:ensure_started(),
    ok = suspend_merger(),
    [
        begin
            Name = {Type, Share},
            File = ats_disk_lib:file(Config, lists:concat([Share, Type])),
            {ok, Name} = dats:open_file(Name, [{file, File}, {type, Type}, {memory, 100000},
                                               {merge, {module, sums}}]),
            Objects = [{K, 10 + K} || K <- lists:seq(1, 500)],
            %% Some are one object, some are pending, some are pending and count as missing.
            [
                case (K * 7919) rem 100 < Share of
                    false -> ok = dats:insert(Name, {K, V});
                    true -> [ok = dats:write(Name, K, N) || N <- [V - 1, 1]]
                end
             || {K, V} <- Objects
            ],
            [[ok = dats:write(Name, K + Part, N) || N <- [-1, 1]]
             || {K, _} <- Objects, Part <- [0.25, 0.5]],
            Sorted = fun(Found) when Type =:= ordered_set -> Found;
                        (Found) -> lists:sort(Found)
                     end,
            All = [{'$1', [], ['$1']}],
            ?assertEqual(Objects, Sorted(dats:tab2list(Name))),
            ?assertEqual(Objects, Sorted(dats:select(Name, All))),
            ?assertEqual(500, dats:select_count(Name, [{'_', [], [true]}])),
            Some = [{{'$1', '$2'}, [{'>', '$2', 110}, {'=<', '$2', 120}], ['$2']}],
            ?assertEqual(lists:seq(111, 120), lists:sort(dats:select(Name, Some))),
            [?assertEqual(Objects, Sorted(chunks(dats:select(Name, All, Limit))))
             || Limit <- [1, 7, 499, 501]],
            #{rows_returned := 500} = dats:explain(Name, All),
            ?assertEqual([{77, 87}], dats:slot(Name, position(Name, 77))),
            Type =:= ordered_set andalso
                begin
                    ?assertEqual(lists:reverse(Objects), dats:select_reverse(Name, All)),
                    Range = lists:sublist(Objects, 100, 201),
                    ?assertEqual(Range, dats:range(Name, 100, 300)),
                    ?assertEqual(lists:reverse(Range), dats:range(Name, 100, 300, [reverse])),
                    ?assertEqual(201, dats:range_count(Name, 99.5, 300.5)),
                    ?assertEqual(Range, chunks(dats:range(Name, 100, 300, [{limit, 3}]))),
                    ?assertEqual(lists:reverse(Range),
                                 chunks(dats:range(Name, 100, 300, [{limit, 3}, reverse]))),
                    ?assertEqual(lists:reverse(Range),
                                 dats:range_fold(fun(O, Os) -> [O | Os] end, [], Name, 100, 300)),
                    Rows = fun(Low, High, Yes) ->
                        rows(Name, dats:select_range(Name, Low, High, Yes, 11))
                    end,
                    ?assertEqual(Objects, Rows({key, 0}, unbounded, fun(_, _) -> true end)),
                    IsBelow = fun(K) -> K < 100 end,
                    IsWithin = fun(K) -> K =< 300 end,
                    ?assertEqual(Range, Rows(IsBelow, IsWithin, fun(_) -> true end)),
                    Last = dats:last(Name),
                    ?assertEqual({500, 510}, {Last, dats:lookup_element(Name, Last, 2)}),
                    ?assertEqual({77, [{77, 87}]}, dats:next_lookup(Name, 76)),
                    ?assertEqual({75, [{75, 85}]}, dats:prev_lookup(Name, 76))
                end,
            ok = dats:close(Name)
        end
     || Type <- [ordered_set, set], Share <- [0, 3, 50, 100]
    ].

position(Name, Key) ->
    {Before, _} = lists:splitwith(fun({K, _}) -> K =/= Key end, dats:tab2list(Name)),
    length(Before).

rows(_Name, {ok, Rows, _}) when length(Rows) < 11 -> Rows;
rows(Name, {ok, Rows, Select}) -> Rows ++ rows(Name, dats:select_continue(Name, Select, 11)).

keys_that_count_as_missing_are_passed_once(Config) ->
    ok = numbers(Config, t, sums, []),
    Keys = 20000,
    [ok = dats:write(t, K, N) || N <- [-1, 1], K <- lists:seq(1, Keys)],
    ok = dats:insert(t, {Keys div 2, here}),
    Here = {Keys div 2, here},
    counted_merges(fun() ->
        ?assertEqual([Here], dats:tab2list(t)),
        ?assertEqual([Here], dats:select_reverse(t, [{'$1', [], ['$1']}])),
        ?assertEqual(1, dats:select_count(t, [{'_', [], [true]}])),
        ?assertEqual(Keys div 2, dats:first(t)),
        ?assertEqual(Keys div 2, dats:last(t)),
        ?assertEqual('$end_of_table', dats:next(t, Keys div 2))
    end, 5 * Keys).

%% Checks that at most `Most' calls of `merge' are made.
counted_merges(Test, Most) ->
    Counter = counters:new(1, []),
    persistent_term:put(?MODULE, Counter),
    CountCall = "counters:add(persistent_term:get(" ++ ?MODULE_STRING ++ "), 1, 1)",
    ok = load(sums, 1, "begin " ++ CountCall ++ ", A + B end"),
    Test(),
    Merges = counters:get(Counter, 1),
    ct:pal("~b merges", [Merges]),
    ?assert(Merges =< Most).

%% ----- chains -----

%% Values that were merged before a failure are not merged again.
a_chain_that_fails_gets_shorter(Config) ->
    ok = numbers(Config, t, sums, []),
    Count = 5000,
    [ok = dats:write(t, k, 1) || _ <- lists:seq(1, Count)],
    ok = dats:write(t, k, poison),
    [ok = dats:write(t, k, 1) || _ <- lists:seq(1, 100)],
    Failed = fun() ->
        ?assertMatch({error, {merge_failed, _, k, {sums, merge, {raised, error, badarith, _}}}},
                     dats:read(t, k))
    end,
    counted_merges(Failed, Count + 100),
    ats_test_lib:until(fun() -> values(t, k) < 200 end, 5000),
    counted_merges(fun() -> Failed(), Failed() end, 300),
    %% A mended module returns the merge of all written values.
    ok = load(sums, 1, "case {A, B} of {poison, _} -> B; {_, poison} -> A; _ -> A + B end"),
    ?assertEqual({ok, Count + 100}, dats:read(t, k)).

%% Values that were merged before the module hangs are not merged again.
a_chain_that_hangs_gets_shorter(Config) ->
    ok = numbers(Config, t, sums, []),
    ok = load(sums, 1, "case {A, B} of {hang, _} -> timer:sleep(infinity);"
                       " {_, hang} -> timer:sleep(infinity); _ -> A + B end"),
    [ok = dats:write(t, k, 1) || _ <- lists:seq(1, 5000)],
    ok = dats:write(t, k, hang),
    [ok = dats:write(t, k, 1) || _ <- lists:seq(1, 100)],
    Failed = fun() ->
        timer:tc(fun() ->
            {error, {merge_failed, _, k, {sums, any, {took_longer, ?MS}}}} = dats:read(t, k)
        end)
    end,
    {Slow, _} = Failed(),
    {Fast, _} = Failed(),
    ?assert(Fast < 1000 * ?MS andalso Slow >= 1000 * ?MS),
    ?assert(values(t, k) < 1100),
    ok = load(sums, 1, "case {A, B} of {hang, _} -> B; {_, hang} -> A; _ -> A + B end"),
    ?assertEqual({ok, 5100}, dats:read(t, k)).

%% Returns the number of values that are still to be merged.
values(Name, Key) ->
    case ats_nif:disk_record(ats_disk_tables:find(Name), Key) of
        {pending, {_, Chain}} -> length(ats_merge_operands:objects(Chain));
        _ -> 1
    end.

writers_are_not_harmed(Config) ->
    ok = numbers(Config, t, sums, []),
    {links, Links} = process_info(self(), links),
    [
        begin
            ok = load(sums, 1, "A + B", Harm),
            ?assertEqual(ok, dats:write(t, k, 1))
        end
     || Harm <- [
            "exit(self(), kill)",
            "spawn_link(fun() -> exit(harm) end), timer:sleep(infinity)",
            "process_flag(trap_exit, true), false",
            "self() ! hello, false",
            "timer:sleep(infinity)",
            "exit(normal)",
            "throw({ats_merge, x})"
        ]
    ],
    ?assertEqual({links, Links}, process_info(self(), links)),
    ?assertEqual({messages, []}, process_info(self(), messages)),
    ?assertEqual({trap_exit, false}, process_info(self(), trap_exit)),
    ok = load(sums, 1, "A + B"),
    ?assertEqual({ok, 7}, dats:read(t, k)).

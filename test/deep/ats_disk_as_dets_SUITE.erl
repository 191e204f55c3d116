%% The same programs on `dets' and on `dats', whose answers must be the same.
%%
%% A program calls the functions of a module, in an empty directory for each. The answers are
%% compared, with the process that owns tables as a role and results without order sorted. Intended
%% differences are in docs/use/tables-on-disk.md and not tested here.
-module(ats_disk_as_dets_SUITE).

-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0, init_per_testcase/2, end_per_testcase/2]).
-export([
    sees_differences/1,
    names/1,
    files/1,
    mismatches/1,
    options/1,
    descriptions/1,
    fixed_tables/1,
    init_table/1,
    failures_in_init_table/1,
    specifications/1,
    continuations/1,
    counters/1,
    functions_that_are_none/1,
    walks_that_delete/1,
    random_programs/1
]).

suite() -> [{timetrap, {minutes, 15}}].

all() ->
    [
        sees_differences,
        names,
        files,
        mismatches,
        options,
        descriptions,
        fixed_tables,
        init_table,
        failures_in_init_table,
        specifications,
        continuations,
        counters,
        functions_that_are_none,
        walks_that_delete,
        random_programs
    ].

init_per_testcase(Case, Config) ->
    ats_disk_lib:begin_case(Case, Config).

end_per_testcase(_, _) ->
    _ = [dets:close(Name) || Name <- dets:all()],
    ats_disk_lib:end_case().

%% ----- programs -----

sees_differences(Config) ->
    ?assertError(_, same(Config, fun(M, Ask) -> Ask(name, fun() -> M end) end)),
    Fails = fun(M, Ask) -> Ask(one, fun() -> M =:= dets andalso error(M) end) end,
    ?assertError(_, same(Config, Fails)).

names(Config) ->
    same(Config, fun(_, Ask) ->
        [
            begin
                Ask(open_file, [Name, []]),
                Ask(info, [Name, filename]),
                Ask(insert, [Name, {1, a}]),
                Ask(all, []),
                Ask(close, [Name])
            end
         || Name <- ["path", t, {t}, <<"path">>, 1, "", 1.5, [$a, 0], ["de", $e, "p"], '', [x]]
        ],
        Ask(open_file, [single, {type, bag}]),
        Ask(info, [single, type]),
        Ask(close, [single])
    end).

files(Config) ->
    same(Config, fun(M, Ask) ->
        ok = file:write_file("short", "x"),
        ok = file:write_file("long", lists:duplicate(1000, "x")),
        Ask(open_file, [t, [{file, "t"}]]),
        Ask(close, [t]),
        [
            begin
                Ask(is_dets_file, [File]),
                case Ask(open_file, [File]) of
                    {ok, Name} -> ok = M:close(Name);
                    _ -> ok
                end
            end
         || File <- ["t", t, "no such file", no_such_file, "short", "long", 1, {t}, ""]
        ],
        [
            begin
                Ask(open_file, [t, [{file, File}]]),
                Ask(info, [t, filename]),
                Ask(close, [t])
            end
         || File <- ["t", atom, ["de", $e, "p"], "", "none/t", 1, {t}, [$a, 0], "./t"]
        ]
    end).

mismatches(Config) ->
    same(Config, fun(_, Ask) ->
        %% `dats' takes the existing type if none is given.
        Options = [
            [{type, bag}],
            [{type, bag}, {keypos, 2}],
            [{type, set}, {type, bag}],
            [{type, duplicate_bag}],
            [{type, bag}, {access, read}]
        ],
        Ask(open_file, [t, [{type, bag}]]),
        %% A bag that is open.
        [Ask(open_file, [t, Asked]) || Asked <- Options],
        Ask(info, [t, users]),
        [Ask(close, [t]) || _ <- lists:seq(1, 4)],
        %% A bag that is not.
        [
            begin
                Ask(open_file, [t, Asked]),
                Ask(info, [t]),
                Ask(close, [t])
            end
         || Asked <- Options
        ]
    end).

options(Config) ->
    same(Config, fun(_, Ask) ->
        [
            begin
                Ask(open_file, [t, Options]),
                Ask(info, [t, access]),
                %% The default is another one.
                is_list(Options) andalso Ask(open_file, [a, [{auto_save, 5} | Options]]),
                Ask(info, [a, auto_save]),
                Ask(close, [t]),
                Ask(close, [a])
            end
         || Options <- [
                [{min_no_slots, 0}],
                [{min_no_slots, -1}],
                [{min_no_slots, many}],
                [{min_no_slots, 1000}, {max_no_slots, 500}],
                [{max_no_slots, 500}, {min_no_slots, 500}],
                [{max_no_slots, 100}, {min_no_slots, 50}],
                [{max_no_slots, 0}],
                [{max_no_slots, 1}],
                [{max_no_slots, default}],
                [{max_no_slots, (1 bsl 31) - 1}],
                [{max_no_slots, 1 bsl 31}],
                [{estimated_no_objects, 100000}, {max_no_slots, 10}],
                [{estimated_no_objects, 10}],
                [{version, default}],
                [{version, 9}],
                [{version, 8}],
                [{ram_file, false}],
                [{ram_file, yes}],
                [{repair, true}],
                [{repair, false}],
                [{repair, maybe_not}],
                [{auto_save, infinity}],
                [{auto_save, 0}],
                [{auto_save, 77}],
                [{auto_save, 1}, {auto_save, 77}],
                [{auto_save, -1}],
                [{auto_save, 1.0}],
                [{access, read}],
                [{access, write}],
                [{keypos, 0}],
                [{keypos, 1.0}],
                [{a, b}],
                [{a, b, c}],
                [a],
                a,
                {access, read},
                [{auto_save, 5} | a]
            ]
        ]
    end).

descriptions(Config) ->
    same(Config, fun(_, Ask) ->
        Items = [
            access, auto_save, fixed, keypos, no_keys, no_objects, owner, ram_file, safe_fixed,
            safe_fixed_monotonic_time, size, type, filename, users, foo, {type}
        ],
        [
            begin
                Ask(open_file, [Type, [{type, Type}, {keypos, 2}, {auto_save, 5000}]]),
                Ask(insert, [Type, [{N div 2, N rem 10} || N <- lists:seq(1, 50)]]),
                Ask(insert, [Type, [{x, 1}, {x, 1.0}]]),
                [Ask(info, [Type, Item]) || Item <- Items],
                Ask(open_file, [Type, [{type, Type}, {keypos, 2}]]),
                Ask(info, [Type, users]),
                Ask(safe_fixtable, [Type, true]),
                Ask(info, [Type, fixed]),
                Ask(close, [Type]),
                Ask(close, [Type]),
                [Ask(info, [Type, Item]) || Item <- Items]
            end
         || Type <- [set, bag, duplicate_bag]
        ]
    end).

fixed_tables(Config) ->
    Ets = ets:new(source, [public]),
    same(Config, fun(_, Ask) ->
        Ask(open_file, [t, []]),
        Ask(insert, [t, [{N} || N <- lists:seq(1, 9)]]),
        Ask(safe_fixtable, [t, true]),
        Ask(init_table, [t, noted(end_of_input)]),
        Ask(noted, fun() -> receive closed -> true after 0 -> false end end),
        Ask(from_ets, [t, Ets]),
        Ask(info, [t, size]),
        Ask(delete_all_objects, [t]),
        Ask(info, [t, size]),
        Ask(safe_fixtable, [t, false]),
        Ask(init_table, [t, noted({[{1}], noted(end_of_input)})]),
        Ask(from_ets, [t, Ets]),
        Ask(info, [t, size]),
        Ask(close, [t]),
        Ask(open_file, [t, [{access, read}]]),
        Ask(init_table, [t, noted(end_of_input)]),
        Ask(from_ets, [t, Ets]),
        Ask(close, [t]),
        Ask(init_table, [t, noted(end_of_input)]),
        Ask(from_ets, [t, Ets])
    end).

init_table(Config) ->
    same(Config, fun(_, Ask) ->
        Ask(open_file, [t, []]),
        [
            begin
                Ask(init_table, [t, noted({[{1, a}, {2, b}],
                                           noted({[{1, c}], noted(end_of_input)})}), Options]),
                Ask(foldl, [fun(Object, Objects) -> [Object | Objects] end, [], t])
            end
         || Options <- [
                [],
                {format, term},
                [{format, term}],
                [{foo, bar}],
                [{format, foo}],
                foo,
                [{format, term} | foo],
                [{format, term}, {format, term}],
                [{min_no_slots, foo}],
                [{min_no_slots, -1}],
                [{min_no_slots, 1000}],
                {min_no_slots, default},
                [{min_no_slots, 10}, {format, term}]
            ]
        ],
        Ask(init_table, [t, foo]),
        Ask(init_table, [t, foo, []])
    end).

%% `dets' leaves its table unusable; only the answer for the program is compared, as a `catch'
%% returns it.
failures_in_init_table(Config) ->
    Ends = [
        fun() -> error(oops) end,
        fun() -> throw(oops) end,
        fun() -> exit(oops) end,
        fun() -> foo end,
        fun() -> {foo, bar} end,
        fun() -> {[foo], noted(end_of_input)} end,
        fun() -> {[{}], noted(end_of_input)} end,
        fun() -> {error, foo} end
    ],
    [
        same(Config, fun(M, Ask) ->
            Ask(open_file, [t, []]),
            Fails = fun(read) -> End(); (close) -> ok end,
            Ask(init_table, fun() ->
                case catch M:init_table(t, noted({[{1, new}], Fails})) of
                    {'EXIT', {Reason, _Stack}} -> {'EXIT', Reason};
                    Other -> Other
                end
            end)
        end)
     || End <- Ends
    ].

specifications(Config) ->
    same(Config, fun(_, Ask) ->
        [
            begin
                Ask(open_file, [t, [{type, Type}, {file, atom_to_list(Type)}]]),
                [
                    begin
                        Ask(insert, [t, [{N, N rem 3} || N <- lists:seq(1, 9)]]),
                        Ask(select, [t, Spec]),
                        Ask(select, [t, Spec, 100]),
                        Ask(select_delete, [t, Spec]),
                        Ask(info, [t, safe_fixed]),
                        Ask(match, [t, Spec]),
                        Ask(match_object, [t, Spec]),
                        Ask(match_delete, [t, Spec])
                    end
                 || Spec <- [
                        [],
                        foo,
                        [foo],
                        {},
                        {'_'},
                        {'$1', 1},
                        {1, '_'},
                        '_',
                        "text",
                        [{{'_', 1}, [], ['$_']}],
                        [{{'_', 1}, [], [true]}],
                        [{{'$1', '_'}, [{'>', '$1', 5}], ['$1']}],
                        [{'_', [], [true]}],
                        [{'_', [], []}],
                        [{'_', [foo], [true]}]
                    ]
                ],
                Ask(close, [t])
            end
         || Type <- [set, bag, duplicate_bag]
        ]
    end).

continuations(Config) ->
    Select = [{{'$1', '_'}, [], ['$1']}],
    same(Config, fun(M, Ask) ->
        Ask(open_file, [t, []]),
        Ask(insert, [t, [{N, N} || N <- lists:seq(1, 500)]]),
        Started = [
            {select, M:select(t, Select, 10)},
            {select, M:select(t, [{'_', [], ['$_']}], 10)},
            {match, M:match(t, {'$1', '_'}, 10)},
            {match_object, M:match_object(t, {'_', '_'}, 10)}
        ],
        Rest = fun
            Rest(_, '$end_of_table') -> [];
            Rest(F, {Results, Next}) -> Results ++ Rest(F, M:F(Next))
        end,
        [
            Ask({F, By}, fun() -> lists:sort(Results ++ Rest(F, M:F(Continuation))) end)
         || {By, {Results, Continuation}} <- Started, F <- [select, match, match_object]
        ],
        Copy = fun(Term) -> binary_to_term(term_to_binary(Term)) end,
        [
            Ask(F, fun() -> lists:sort(Results ++ Rest(F, M:F(Copy(Continuation)))) end)
         || {F, {Results, Continuation}} <- Started
        ],
        Ask(repaired, fun() ->
            {Results, Continuation} = M:select(t, Select, 10),
            Repaired = M:repair_continuation(Copy(Continuation), Select),
            lists:sort(Results ++ Rest(select, M:select(Repaired)))
        end),
        [Ask(F, [Wrong])
         || F <- [select, match, match_object], Wrong <- ['$end_of_table', foo, {t}]],
        Ask(repair_continuation, [foo, Select]),
        %% Continuations of a table that was closed.
        Ask(close, [t]),
        [Ask(F, fun() -> M:F(Continuation) end) || {F, {_, Continuation}} <- Started]
    end).

counters(Config) ->
    Adds = [
        1, 0, -1, 1.5, -0.5, 0.0, 1 bsl 70, foo, {}, {2, 1}, {2, 1.5}, {2, foo}, {a, 1}, {0, 1},
        {3, 1},
        {3, 2.5}, {4, 1}, {-1, 1}, {1.0, 1}, {2}, 1.0e308
    ],
    Objects = [
        {integer, 1}, {float, 1.5}, {text, foo, 5}, {zero, 0, 0.0}, {none}, {large, 1 bsl 80, 1},
        {huge, 1.0e308, -1.0e308}, {negative, -1, -2.5}
    ],
    same(Config, fun(_, Ask) ->
        [
            begin
                Ask(open_file, [t, [{type, Type}, {file, atom_to_list(Type)}]]),
                [
                    begin
                        Ask(delete_all_objects, [t]),
                        Ask(insert, [t, Object]),
                        Ask(update_counter, [t, element(1, Object), Add]),
                        Ask(lookup, [t, element(1, Object)])
                    end
                 || Object <- Objects, Add <- Adds
                ],
                [Ask(update_counter, [t, absent, Add]) || Add <- Adds],
                Ask(close, [t])
            end
         || Type <- [set, bag, duplicate_bag]
        ],
        Ask(open_file, [keypos, [{keypos, 2}]]),
        [
            begin
                Ask(insert, [keypos, [{1, k, 2.5}]]),
                Ask(update_counter, [keypos, k, Add]),
                Ask(lookup, [keypos, k])
            end
         || Add <- Adds
        ],
        Ask(close, [keypos])
    end).

functions_that_are_none(Config) ->
    Wrong = [foo, fun() -> foo end, fun(_) -> foo end, fun(_, _, _) -> foo end],
    same(Config, fun(_, Ask) ->
        Ask(open_file, [t, []]),
        [
            begin
                [Ask(Fold, [Function, acc, t]) || Function <- Wrong, Fold <- [foldl, foldr]],
                [Ask(traverse, [t, Function])
                 || Function <- [foo, fun() -> foo end, fun(_, _) -> foo end]],
                %% `dets' stays fixed when a function fails.
                Ask(insert, [t, [{1, a}]])
            end
         || _ <- [empty, with_an_object]
        ]
    end).

%% The order of keys is not that of `dets', which may also miss some that are moved meanwhile.
walks_that_delete(Config) ->
    [
        begin
            Name = ats_disk_lib:open(Config, Type, [{type, Type}, {file, File}]),
            Keys = [{key, N} || N <- lists:seq(1, 300)],
            ok = dats:insert(Name, [{Key, N} || Key <- Keys, N <- [1, 2]]),
            ?assertEqual(lists:sort(Keys), lists:sort(deleted(Name, dats:first(Name)))),
            ?assertEqual('$end_of_table', dats:next(Name, {key, 1})),
            ok = dats:insert(Name, [{Key, N} || Key <- Keys, N <- [1, 2]]),
            First = dats:first(Name),
            Second = dats:next(Name, First),
            ok = dats:delete(Name, First),
            ?assertEqual({Second, dats:lookup(Name, Second)}, dats:next_lookup(Name, First)),
            ?assert(lists:member(dats:next(Name, absent), ['$end_of_table' | Keys])),
            ok = dats:close(Name)
        end
     || Type <- [set, bag, duplicate_bag, ordered_set],
        File <- [ats_disk_lib:file(Config, "walk_" ++ atom_to_list(Type))]
    ].

deleted(_Name, '$end_of_table') ->
    [];
deleted(Name, Key) ->
    ok = dats:delete(Name, Key),
    [Key | deleted(Name, dats:next(Name, Key))].

%% Tables are not fixed: `dets' releases one fixation at a match that has the key.
random_programs(Config) ->
    _ = rand:seed(exsss),
    Seed = rand:export_seed(),
    ct:pal("seed ~0p", [Seed]),
    [
        begin
            Calls = [random_call() || _ <- lists:seq(1, 60)],
            same(Config, fun(_, Ask) ->
                Ask(open_file, [t, [{type, Type}, {auto_save, infinity}]]),
                [Ask(F, Arguments) || {F, Arguments} <- Calls],
                [Ask(close, [t]) || _ <- lists:seq(1, 60)]
            end)
        end
     || _ <- lists:seq(1, 30), Type <- [set, bag, duplicate_bag]
    ].

random_call() ->
    case rand:uniform(22) of
        1 -> {open_file, [t, random_options()]};
        2 -> {close, [t]};
        3 -> {info, [t, random_of([size, no_keys, type, keypos, access, users, fixed, foo])]};
        4 -> {select, [t, [{'_', [], [true]}]]};
        5 -> {init_table, [t, noted({random_objects(), noted(end_of_input)})]};
        6 -> {update_counter,
              [t, random_key(), random_of([1, 1.5, {2, 1}, {2, -2.5}, {3, 1}, foo])]};
        7 -> {select, [t, random_of([[], [{'_', [], ['$_']}], [{{'$1', 1}, [], ['$1']}]])]};
        8 -> {select_delete, [t, [{{'_', random_value()}, [], [true]}]]};
        9 -> {match, [t, {'$1', random_value()}]};
        10 -> {match_object, [t, {random_key(), '_'}]};
        11 -> {match_delete, [t, {random_key(), '_'}]};
        12 -> {delete, [t, random_key()]};
        13 -> {delete_object, [t, random_object()]};
        14 -> {delete_all_objects, [t]};
        15 -> {lookup, [t, random_key()]};
        16 -> {member, [t, random_key()]};
        17 -> {insert_new, [t, random_object()]};
        18 -> {foldl, [fun(Object, Objects) -> [Object | Objects] end, [], t]};
        19 -> {traverse, [t, fun(Object) -> {continue, Object} end]};
        20 -> {sync, [t]};
        _ -> {insert, [t, random_objects()]}
    end.

%% Returns options with a type and an unchanged position of the key: without them `dats' takes the
%% existing ones.
random_options() ->
    Others = [Option || Option <- [{keypos, 1}, {auto_save, 9}], rand:uniform(6) =:= 1],
    [{type, random_of([set, set, bag])} | Others].

random_objects() -> [random_object() || _ <- lists:seq(1, rand:uniform(6))].

random_object() -> {random_key(), random_value()}.

random_key() -> random_of([1, 1.0, 2, a, {b}, "c", <<"d">>]).

random_value() -> random_of([1, 2, 2.0, x]).

random_of(List) -> lists:nth(rand:uniform(length(List)), List).

%% ----- both -----

%% A step of a function that initialises a table.
noted(Step) ->
    Test = self(),
    fun
        (read) -> Step;
        (close) -> Test ! closed
    end.

same(Config, Program) ->
    [Expected, Got] = [answers(Config, M, Program) || M <- [dets, dats]],
    Different = [{E, G} || {E, G} <- lists:zip(Expected, Got), E =/= G],
    ?assertEqual([], Different).

%% Returns the answers of a program, each behind its call.
answers(Config, M, Program) ->
    {ok, Here} = file:get_cwd(),
    Directory = ats_disk_lib:file(Config, atom_to_list(M)),
    _ = file:del_dir_r(Directory),
    ok = file:make_dir(Directory),
    ok = file:set_cwd(Directory),
    _ = put(asked, []),
    Ask = fun(What, Call) ->
        Answer = answer(M, What, Call),
        _ = put(asked, [{What, shown(Call), plain(M, What, Answer)} | get(asked)]),
        Answer
    end,
    try
        _ = Program(M, Ask),
        lists:reverse(erase(asked))
    after
        _ = [close(M, Name) || Name <- M:all()],
        ok = file:set_cwd(Here)
    end.

close(M, Name) ->
    case M:close(Name) of
        ok -> M:info(Name) =:= undefined orelse close(M, Name);
        Failed -> Failed
    end.

answer(M, F, Arguments) when is_list(Arguments) ->
    answer(M, F, fun() -> apply(M, F, Arguments) end);
answer(_, _, Call) ->
    try
        Call()
    catch
        Class:Reason -> {Class, Reason}
    end.

shown(Call) when is_function(Call) -> program;
shown(Arguments) -> Arguments.

plain(_, open_file, {ok, Reference}) when is_reference(Reference) -> {ok, reference};
plain(_, info, Pid) when is_pid(Pid), Pid =/= self() -> owner;
plain(_, info, Items) when is_list(Items) -> [I || I <- Items, not is_file_size(I)];
plain(_, F, List) when
    is_list(List) andalso
        (F =:= foldl orelse F =:= foldr orelse F =:= traverse orelse F =:= select orelse
            F =:= match orelse F =:= match_object orelse F =:= lookup)
->
    lists:sort([term_to_binary(Term) || Term <- List]);
plain(_, F, {Results, _}) when F =:= select, is_list(Results) -> plain(x, F, Results);
plain(M, F, {error, {not_a_dets_file, File}}) -> plain(M, F, {error, {not_a_dats_table, File}});
plain(_, _, Answer) -> Answer.

is_file_size({file_size, _}) -> true;
is_file_size(_) -> false.

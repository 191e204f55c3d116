%% Tables as files: those of `ets' and `ats' are the same, in both directions, also if they are
%% damaged.
%%
%% Each operation of one module on a file is done with the other, too. The answers and the contents
%% of the tables afterwards are compared.
-module(ats_file_SUITE).

-include_lib("stdlib/include/assert.hrl").
-include_lib("proper/include/proper.hrl").

-export([all/0, suite/0, init_per_suite/1, end_per_suite/1, init_per_testcase/2]).
-export([
    every_kind_of_term/1,
    every_kind_of_table/1,
    random_objects/1,
    same_files/1,
    into_a_given_table/1,
    damaged_bits/1,
    damaged_terms/1,
    truncated/1,
    endless/1,
    appended/1,
    foreign_files/1,
    wrong_options/1,
    wrong_arguments/1,
    refused_tables/1,
    name_is_taken/1,
    changing_table/1,
    deleted_meanwhile/1,
    little_memory/1,
    explained/1
]).

-define(TYPES, [set, ordered_set, bag, duplicate_bag]).
-define(EXTENDED, [
    [],
    [{extended_info, [object_count]}],
    [{extended_info, [md5sum]}],
    [{extended_info, [md5sum, object_count]}, {sync, true}]
]).

suite() -> [{timetrap, {minutes, 15}}].

all() ->
    [
        every_kind_of_term,
        every_kind_of_table,
        random_objects,
        same_files,
        into_a_given_table,
        damaged_bits,
        damaged_terms,
        truncated,
        endless,
        appended,
        foreign_files,
        wrong_options,
        wrong_arguments,
        refused_tables,
        name_is_taken,
        changing_table,
        deleted_meanwhile,
        little_memory,
        explained
    ].

init_per_suite(Config) ->
    ok = ats_term_gen:prepare(),
    Config.

end_per_suite(_) ->
    ok.

init_per_testcase(Case, Config) ->
    File = filename:join(proplists:get_value(priv_dir, Config), atom_to_list(Case) ++ ".tab"),
    [{file, File} | Config].

file(Config) -> proplists:get_value(file, Config).

subject() -> ats_oracle:subject().

%% ----- round trips -----

%% Terms of all kinds, in enough objects for several chunks.
every_kind_of_term(Config) ->
    Terms = [ats_term_gen:realize(R) || R <- ats_term_gen:one_of_each()],
    Objects = [{T, N, [T]} || {N, T} <- lists:zip(lists:seq(1, length(Terms)), Terms)],
    ?assert(length(Objects) > 200),
    [
        round_trip(Config, [Type], Objects, Extended)
     || {Type, Extended} <- lists:zip(?TYPES, ?EXTENDED)
    ],
    ok.

every_kind_of_table(Config) ->
    Objects = [{N rem 7, N, N * 1.0, "text"} || N <- lists:seq(1, 120)],
    Options = [
        [private],
        [{keypos, 3}, compressed],
        [public, {write_concurrency, true}],
        [named_table, public, {write_concurrency, auto}, {read_concurrency, true}],
        [named_table, compressed, {keypos, 2}, {heir, self(), data}]
    ],
    [
        round_trip(Config, [Type | O], Objects, [{extended_info, [md5sum]}])
     || Type <- ?TYPES, O <- Options
    ],
    [
        round_trip(Config, [Type], Few, Extended)
     || Few <- [[], [hd(Objects)]], {Type, Extended} <- lists:zip(?TYPES, ?EXTENDED)
    ],
    %% Sizes around that of a chunk.
    [
        round_trip(Config, [Type], [{N, N} || N <- lists:seq(1, Size)], Extended)
     || Size <- [99, 100, 101, 1001],
        {Type, Extended} <- lists:zip([set, ordered_set, set, ordered_set], ?EXTENDED)
    ],
    ok.

random_objects(Config) ->
    Property = ?FORALL(
        {Recipes, Type, Extended},
        {list(ats_term_gen:object()), oneof(?TYPES), oneof(?EXTENDED)},
        begin
            Objects = [ats_term_gen:realize(R) || R <- Recipes],
            round_trip(Config, [Type], Objects, Extended),
            true
        end
    ),
    ?assert(proper:quickcheck(Property, [{numtests, 40}, {to_file, user}, {max_size, 60}])).

%% Both modules write a table, and both read both files, with and without verification.
round_trip(Config, Options, Objects, Extended) ->
    Written = [
        begin
            File = file(Config) ++ atom_to_list(Module),
            T = Module:new(round_trip, Options),
            [true = Module:insert(T, Object) || Object <- Objects],
            ok = Module:tab2file(T, File, Extended),
            Content = content(Module, T),
            Module:delete(T),
            {File, Content}
        end
     || Module <- [ets, subject()]
    ],
    [{_, Content}, {_, Content}] = Written,
    [?assertEqual(ets:tabfile_info(File), (subject()):tabfile_info(File)) || {File, _} <- Written],
    [
        ?assertEqual(outcome(ets, File, Read), outcome(subject(), File, Read))
     || {File, _} <- Written, Read <- [[], [{verify, true}], [{verify, false}]]
    ],
    %% Objects that went through files are unchanged, unless the external format cannot express
    %% them.
    Known = lists:all(fun(O) -> binary_to_term(term_to_binary(O)) =:= O end, Objects),
    Known andalso
        [?assertMatch({ok, _, Content}, outcome(subject(), File, [])) || {File, _} <- Written].

%% The headers of the files differ in memory, owner and identifier only.
same_files(Config) ->
    [
        begin
            [Ets, Ats] = [
                begin
                    T = Module:new(same, [ordered_set, named_table]),
                    true = Module:insert(T, [{N, N} || N <- lists:seq(1, 250)]),
                    ok = Module:tab2file(T, file(Config), Extended),
                    Module:delete(T),
                    terms(file(Config))
                end
             || Module <- [ets, subject()]
            ],
            ?assertEqual(header_items(Ets), header_items(Ats)),
            Ends = [lists:last(L) || L <- [Ets, Ats]],
            case proplists:get_value(extended_info, Extended, []) of
                [] -> [{250, 250}, {250, 250}] = Ends;
                [object_count] -> [['$end_of_table', [{count, 250}]] = E, E] = Ends;
                [md5sum | _] -> [[_, Said], [_, Said2]] = Ends, same_keys(Said, Said2)
            end,
            ?assertEqual(lists:droplast(tl(Ets)), lists:droplast(tl(Ats)))
        end
     || Extended <- ?EXTENDED
    ],
    ok.

same_keys(A, B) ->
    ?assertEqual([K || {K, _} <- A], [K || {K, _} <- B]).

header_items([Header | _]) ->
    [{K, V} || {K, V} <- tuple_to_list(Header), not lists:member(K, [id, memory, owner])].

%% An option that the documentation of `ets' does not mention.
into_a_given_table(Config) ->
    Given = [
        begin
            From = Module:new(from, [bag]),
            true = Module:insert(From, [{a, 1}, {a, 2}, {b, 1}]),
            ok = Module:tab2file(From, file(Config)),
            Into = Module:new(into, [set, compressed]),
            true = Module:insert(Into, [{a, 0}, {c, 0}]),
            {ok, Into} = Module:file2tab(file(Config), [{table, Into}, {verify, true}]),
            %% A file that cannot be read leaves no table, as in `ets'.
            ok = file:write_file(file(Config), damaged(file(Config))),
            Result = answer(Module, file2tab, [file(Config), [{table, Into}, {verify, true}]]),
            {lists:sort(Module:tab2list(From)), Result, Module:info(Into)}
        end
     || Module <- [ets, subject()]
    ],
    [Same, Same] = Given,
    {_, {error, badfile}, undefined} = Same,
    ok.

damaged(File) ->
    {ok, Bytes} = file:read_file(File),
    binary:part(Bytes, 0, byte_size(Bytes) - 3).

%% ----- damaged files -----

%% One bit of every ninth byte of a file is turned over, and each of the last ones.
damaged_bits(Config) ->
    rand:seed(exsss, {1, 2, 3}),
    each_sample(Config, fun(Bytes) ->
        compare_damage(Config, [
            flip(Bytes, Byte, rand:uniform(8) - 1)
         || Byte <- lists:seq(rand:uniform(9), byte_size(Bytes) - 1, 9)
        ]),
        compare_damage(Config, [
            flip(Bytes, byte_size(Bytes) - Byte, Bit)
         || Byte <- lists:seq(1, 25), Bit <- [0, 7], Byte =< byte_size(Bytes)
        ])
    end).

flip(Bytes, Byte, Bit) ->
    <<Before:Byte/binary, Value, After/binary>> = Bytes,
    <<Before/binary, (Value bxor (1 bsl Bit)), After/binary>>.

%% Whole terms that are something else: at each index of the log, and of the header.
damaged_terms(Config) ->
    rand:seed(exsss, {4, 5, 6}),
    Wrong = [a, {}, {a}, [], {k, 1}, ['$end_of_table', []], ['$end_of_table', a], [{a, b}], <<>>],
    each_sample(Config, fun(_) ->
        [Header | Objects] = terms(file(Config)),
        Items = tuple_to_list(Header),
        WrongItems = [a, {a, b}, {major_version, 2}, {name, 1}, {type, foo}, {keypos, 0},
            {protection, set}, {named_table, 'maybe'}, {compressed, yes}, {extended_info, md5sum},
            {write_concurrency, 7}, {read_concurrency, 7}, {size, a}],
        Headers = [
            list_to_tuple(lists:sublist(Items, N - 1) ++ I ++ lists:nthtail(N, Items))
         || N <- lists:seq(1, length(Items)),
            I <- [[] | [[W] || W <- WrongItems, rand:uniform(13) =:= 1]]
        ],
        Indices = lists:usort([1, 2, length(Objects) div 2, length(Objects) - 1, length(Objects)]),
        Logs =
            [[H | Objects] || H <- Headers ++ Wrong] ++
            [[Header | lists:sublist(Objects, P - 1) ++ [W | lists:nthtail(P - 1 + D, Objects)]]
             || P <- Indices, P > 0, W <- Wrong, D <- [0, 1], rand:uniform(3) =:= 1] ++
            [[Header | lists:sublist(Objects, P - 1) ++ lists:nthtail(P, Objects)]
             || P <- Indices, P > 0] ++
            [[], [Header], Objects, [Header, Header | Objects]],
        [compare_damage(Config, [log_of(Config, Terms)]) || Terms <- Logs]
    end).

%% Truncates a file at every eleventh byte, and one of several chunks near its end and anywhere.
truncated(Config) ->
    rand:seed(exsss, {7, 8, 9}),
    each_sample(Config, fun(Bytes) ->
        compare_damage(Config, [
            binary:part(Bytes, 0, Length)
         || Length <- lists:seq(rand:uniform(11), byte_size(Bytes), 11)
        ])
    end),
    T = ets:new(large, [ordered_set]),
    ets:insert(T, [{N, N} || N <- lists:seq(1, 1000)]),
    [
        begin
            ok = ets:tab2file(T, file(Config), Extended),
            {ok, Bytes} = file:read_file(file(Config)),
            compare_damage(Config, [
                binary:part(Bytes, 0, byte_size(Bytes) - Missing)
             || Missing <- lists:seq(0, 30) ++ lists:seq(31, byte_size(Bytes), 1997)
            ])
        end
     || Extended <- ?EXTENDED
    ],
    ok.

%% `disk_log' would not stop reading such a file, but `ats' answers. A file that only looks like one
%% gets its own answer.
endless(Config) ->
    S = subject(),
    File = file(Config),
    T = S:new(t, [ordered_set]),
    true = S:insert(T, [{N, N} || N <- lists:seq(1, 3)]),
    ok = S:tab2file(T, File),
    {ok, Bytes} = file:read_file(File),
    [
        begin
            ok = file:write_file(File, <<Bytes/binary, Size:32, "bWLA", 0:Rest/unit:8>>),
            ?assertEqual({error, badfile}, S:file2tab(File, Options)),
            ?assertEqual({error, badfile}, S:tabfile_info(File))
        end
     || Size <- [65528, 1 bsl 24, (1 bsl 32) - 1],
        Rest <- [0, 1, 15, 16],
        Options <- [[], [{verify, true}]]
    ],
    [
        begin
            Innocent = <<Size:32, "bWLA", 0:Rest/unit:8>>,
            true = S:insert(T, {4, [lists:duplicate(Fill, a), Innocent]}),
            ok = S:tab2file(T, File),
            {ok, Read} = S:file2tab(File, [{verify, true}]),
            ?assertEqual(S:tab2list(T), S:tab2list(Read)),
            S:delete(Read)
        end
     || Size <- [65528, 1 bsl 24], Rest <- [0, 1, 8, 9, 14], Fill <- [0, 100000]
    ],
    S:delete(T).

appended(Config) ->
    each_sample(Config, fun(Bytes) ->
        compare_damage(Config, [
            <<Bytes/binary, More/binary>>
         || More <- [<<0>>, <<"more">>, Bytes, binary:copy(<<255>>, 10000)]
        ])
    end).

foreign_files(Config) ->
    {ok, Beam} = file:read_file(code:which(?MODULE)),
    compare_damage(Config, [<<>>, <<0>>, <<"text">>, Beam, binary:copy(<<0>>, 1000)]),
    File = file(Config) ++ ".dets",
    {ok, Dets} = dets:open_file(?MODULE, [{file, File}]),
    ok = dets:insert(Dets, {a, 1}),
    ok = dets:close(Dets),
    {ok, Bytes} = file:read_file(File),
    compare_damage(Config, [Bytes]),
    Missing = file(Config) ++ ".missing",
    [
        begin
            Answer = answer(ets, F, [Name]),
            {error, _} = Answer,
            ?assertEqual(Answer, answer(subject(), F, [Name]))
        end
     || F <- [file2tab, tabfile_info],
        Name <- [Missing, filename:join(Missing, "x"), filename:dirname(Missing)]
    ],
    ok.

%% Calls the function with small files of all kinds.
each_sample(Config, Function) ->
    [
        begin
            T = Module:new(sample, Options),
            true = Module:insert(T, [{N, N, "t"} || N <- lists:seq(1, Size)]),
            ok = Module:tab2file(T, file(Config), Extended),
            Module:delete(T),
            {ok, Bytes} = file:read_file(file(Config)),
            Function(Bytes)
        end
     || {Module, Options, Size, Extended} <- [
            {ets, [set], 5, []},
            {ets, [ordered_set, named_table], 3, [{extended_info, [object_count]}]},
            {subject(), [duplicate_bag, compressed], 5, [{extended_info, [md5sum]}]},
            {subject(), [bag, {keypos, 2}], 3, [{extended_info, [object_count, md5sum]}]}
        ]
    ],
    ok.

%% Both modules make the same of a damaged file, but `ets' stumbles over some by an exception,
%% where our answer is that the file is bad; and it does not look at the version when it verifies.
compare_damage(Config, Damaged) ->
    File = file(Config) ++ ".damaged",
    lists:foreach(
        fun(Bytes) ->
            ok = file:write_file(File, Bytes),
            [
                case
                    {
                        of_ets(Bytes, File, Read),
                        closing(fun() -> outcome(subject(), File, Read) end)
                    }
                of
                    {Same, Same} -> ok;
                    {{error, _, _}, {error, badfile}} -> ok;
                    {_, {error, {unsupported_file_version, V}}} when Read =/= [], V > {1, 0} -> ok;
                    {A, B} -> ct:fail({differ, Read, A, B, Bytes})
                end
             || Read <- [[], [{verify, true}]]
            ],
            case
                {
                    is_endless(tail(Bytes)) orelse answer(ets, tabfile_info, [File]),
                    answer(subject(), tabfile_info, [File])
                }
            of
                {Same, Same} -> ok;
                {{error, _, _}, {error, badfile}} -> ok;
                {true, {error, badfile}} -> ok;
                {A, B} -> ct:fail({differ, tabfile_info, A, B, Bytes})
            end
        end,
        Damaged
    ).

%% Reads a file with `ets', unless that would never return: `disk_log' does not from a file at whose
%% very end something large seems to begin.
of_ets(Bytes, File, Read) ->
    case is_endless(tail(Bytes)) of
        true -> {error, endless, other};
        false -> outcome(ets, File, Read)
    end.

tail(Bytes) ->
    binary:part(Bytes, byte_size(Bytes), -min(24, byte_size(Bytes))).

is_endless(<<Size:32, "bWLA", _/binary>>) when Size > 65527 -> true;
is_endless(<<_, Rest/binary>>) -> is_endless(Rest);
is_endless(<<>>) -> false.

%% Checks that no log stays open.
closing(Function) ->
    Before = disk_log:all(),
    Result = Function(),
    ?assertEqual(Before, disk_log:all()),
    Result.

%% ----- wrong arguments -----

wrong_options(Config) ->
    Wrong = [
        [{extended_info, [object_count]}, {extended_info, [md5sum]}],
        [{extended_info, [size]}],
        [{extended_info, [object_count, a]}],
        [{extended_info, [md5sum | object_count]}],
        [{extended_info, md5sum}],
        [{sync, a}],
        [{sync, true} | {sync, false}],
        [sync],
        [{verify, true}],
        [{verify, a}],
        [verify],
        [{verify, true} | a],
        [{table, a}, {table, b}],
        [a],
        [[]],
        [],
        a,
        {},
        {verify, true},
        <<>>
    ],
    [
        begin
            T = M:new(t, []),
            ok = M:tab2file(T, file(Config)),
            M:delete(T)
        end
     || M <- [ets]
    ],
    [
        ?assertEqual(
            {O, normal(answer(ets, file2tab, [file(Config), O]))},
            {O, normal(answer(subject(), file2tab, [file(Config), O]))}
        )
     || O <- Wrong
    ],
    [
        ?assertEqual(
            {O, on_table(ets, fun(T) -> answer(ets, tab2file, [T, file(Config), O]) end)},
            {O,
                on_table(subject(), fun(T) ->
                    answer(subject(), tab2file, [T, file(Config), O])
                end)}
        )
     || O <- Wrong
    ],
    ok.

wrong_arguments(Config) ->
    Wrong = [0, 1.5, {}, {a}, [], [a | b], [{}], #{}, <<>>, <<"x">>, make_ref()],
    [
        begin
            Expected = on_table(ets, fun(T) -> answer(ets, tab2file, Args(T)) end),
            ?assertEqual(Expected, on_table(subject(), fun(T) ->
                answer(subject(), tab2file, Args(T))
            end))
        end
     || W <- Wrong,
        Args <- [
            fun(T) -> [T, W] end,
            fun(T) -> [T, W, []] end,
            fun(_) -> [W, file(Config)] end,
            fun(_) -> [W, W] end,
            fun(_) -> [W, file(Config), W] end
        ]
    ],
    [
        ?assertEqual({W, answer(ets, F, [W])}, {W, answer(subject(), F, [W])})
     || W <- Wrong, F <- [file2tab, tabfile_info]
    ],
    ok.

on_table(Module, Function) ->
    T = Module:new(t, []),
    Answer = Function(T),
    Module:delete(T),
    Answer.

%% Tables that cannot be read, and tables that do not exist.
refused_tables(Config) ->
    [
        begin
            T = Module:new(t, [private]),
            ?assertEqual(
                [{error, badarg, badarg}],
                ats_test_lib:parallel([
                    fun() -> answer(Module, tab2file, [T, file(Config)]) end
                ])
            ),
            ?assertNot(filelib:is_file(file(Config))),
            Module:delete(T),
            ?assertEqual({error, badtab}, Module:tab2file(T, file(Config))),
            ?assertEqual({error, badtab}, Module:tab2file(no_such_name, file(Config))),
            ?assertNot(filelib:is_file(file(Config)))
        end
     || Module <- [ets, subject()]
    ],
    ok.

name_is_taken(Config) ->
    [
        begin
            taken = Module:new(taken, [named_table]),
            ok = Module:tab2file(taken, file(Config)),
            ?assertEqual({error, cannot_create_table}, Module:file2tab(file(Config))),
            Module:delete(taken),
            ?assertEqual({ok, taken}, Module:file2tab(file(Config))),
            ?assertEqual(self(), Module:info(taken, owner)),
            Module:delete(taken)
        end
     || Module <- [ets, subject()]
    ],
    ok.

%% ----- tables that change -----

%% Others come and go, but objects that are there throughout are written once.
changing_table(Config) ->
    Stable = lists:seq(2, 3000, 2),
    [
        begin
            T = ats_test_lib:new(changing, [Type, public]),
            true = (subject()):insert(T, [{N, stable} || N <- Stable]),
            Writers = [spawn_link(fun() -> come_and_go(T, Seed) end) || Seed <- [1, 2]],
            [
                begin
                    ok = (subject()):tab2file(T, file(Config), [{extended_info, [object_count]}]),
                    {ok, Read} = ets:file2tab(file(Config), [{verify, false}]),
                    ?assertEqual(Stable, lists:sort([N || {N, stable} <- ets:tab2list(Read)])),
                    Count = ets:info(Read, size),
                    %% The file has the number of its own objects, not that of the table.
                    Objects = tl(lists:droplast(terms(file(Config)))),
                    ?assertEqual(['$end_of_table', [{count, length(Objects)}]],
                                 lists:last(terms(file(Config)))),
                    ?assert(Count =< length(Objects)),
                    ets:delete(Read)
                end
             || _ <- lists:seq(1, 3)
            ],
            [begin unlink(W), ats_test_lib:kill(W) end || W <- Writers],
            ?assertEqual(false, (subject()):info(T, safe_fixed)),
            (subject()):delete(T)
        end
     || Type <- ?TYPES
    ],
    ok.

come_and_go(T, Seed) ->
    Key = 2 * rand:uniform(1500) + 1,
    true = (subject()):insert(T, {Key, Seed}),
    true = (subject()):delete(T, 2 * rand:uniform(1500) + 1),
    come_and_go(T, Seed).

%% A table that goes away while it is written is an exception, and leaves no half file.
deleted_meanwhile(Config) ->
    [deleted_meanwhile(Module, Config, 20) || Module <- [ets, subject()]],
    ok.

deleted_meanwhile(Module, Config, Tries) ->
    T = Module:new(t, [ordered_set, public]),
    true = Module:insert(T, [{N, lists:seq(1, 20)} || N <- lists:seq(1, 100000)]),
    _ = file:delete(file(Config)),
    [Answer, ok] = ats_test_lib:parallel([
        fun() -> answer(Module, tab2file, [T, file(Config)]) end,
        fun() ->
            ats_test_lib:until(fun() -> filelib:file_size(file(Config)) > 1000 end, 20000),
            true = Module:delete(T),
            ok
        end
    ]),
    case Answer of
        %% The file was complete before the other process had its turn.
        ok when Tries > 1 ->
            deleted_meanwhile(Module, Config, Tries - 1);
        _ ->
            ?assertEqual({error, badarg, badarg}, Answer),
            ?assertNot(filelib:is_file(file(Config)))
    end.

%% Neither direction has the whole table on its heap: a process that may have eight megabytes
%% writes and reads a table of many more.
little_memory(Config) ->
    T = (subject()):new(large, [public]),
    Text = lists:duplicate(20, $x),
    [true = (subject()):insert(T, {N, Text}) || N <- lists:seq(1, 200000)],
    Small = [{max_heap_size, #{size => 1000000, kill => true, error_logger => false}}],
    [
        begin
            {Pid, Monitor} = spawn_opt(
                fun() ->
                    ok = (subject()):tab2file(T, file(Config), Extended),
                    {ok, Read} = (subject()):file2tab(file(Config), [{verify, true}]),
                    exit({size, (subject()):info(Read, size)})
                end,
                [monitor | Small]
            ),
            receive
                {'DOWN', Monitor, process, Pid, Reason} -> ?assertEqual({size, 200000}, Reason)
            end
        end
     || Extended <- [[], [{extended_info, [md5sum, object_count]}]]
    ],
    (subject()):delete(T).

%% The text of the exception names the fault.
explained(Config) ->
    Subject = subject(),
    Private = Subject:new(t, [private]),
    Full = Subject:new(full, [{keypos, 3}]),
    ok = on_table(Subject, fun(T) ->
        true = Subject:insert(T, {a, b}),
        Subject:tab2file(T, file(Config))
    end),
    [Access] = ats_test_lib:parallel([
        fun() -> text(Subject, tab2file, [Private, file(Config) ++ "2", []]) end
    ]),
    ?assertMatch([_ | _], string:find(Access, "argument 1: ")),
    ?assertMatch([_ | _], string:find(Access, "insufficient access rights")),
    ?assertMatch([_ | _], string:find(Access, atom_to_list(Subject) ++ ":tab2file")),
    [Option] = ats_test_lib:parallel([
        fun() -> text(Subject, file2tab, [file(Config), [{table, Private}]]) end
    ]),
    ?assertMatch([_ | _], string:find(Option, "argument 2: ")),
    %% An object too short for the table is the fault of the file.
    ?assertEqual({error, badfile}, Subject:file2tab(file(Config), [{table, Full}])),
    ok.

text(Subject, Function, Arguments) ->
    {fail, error, badarg, Stack} = ats_oracle:call(Subject, Function, Arguments),
    unicode:characters_to_list(erl_error:format_exception(error, badarg, Stack)).

%% ----- help -----

%% Returns the result of reading a file: the table's description and content, or an error.
outcome(Module, File, Options) ->
    case answer(Module, file2tab, [File, Options]) of
        {ok, T} ->
            Items = [name, type, protection, named_table, keypos, compressed, size, owner, heir,
                write_concurrency, read_concurrency],
            Outcome = {ok, [{I, Module:info(T, I)} || I <- Items], content(Module, T)},
            Module:delete(T),
            Outcome;
        Failure ->
            Failure
    end.

content(Module, T) ->
    Objects = Module:tab2list(T),
    case Module:info(T, type) of
        ordered_set -> Objects;
        _ -> lists:sort([{exact(O), O} || O <- Objects])
    end.

%% Sorts terms apart that are equal but not the same.
exact(Object) ->
    erlang:phash2(Object).

%% Results and errors without stack traces.
answer(Module, Function, Arguments) ->
    try
        apply(Module, Function, Arguments)
    of
        %% The other options of opening the log differ between the releases of `ets'.
        {error, {badarg, [{file, _} = File | _]}} -> {error, {badarg, [File]}};
        Answer -> Answer
    catch
        Class:Reason -> {Class, reason(Reason), badarg_or_other(Reason)}
    end.

reason({Reason, Stack}) when is_list(Stack) -> Reason;
reason(Reason) -> Reason.

badarg_or_other(badarg) -> badarg;
badarg_or_other(_) -> other.

normal({ok, _}) -> ok;
normal(Answer) -> Answer.

%% Returns the terms in a file.
terms(File) ->
    Log = make_ref(),
    {ok, Log} = disk_log:open([{name, Log}, {file, File}, {mode, read_only}]),
    Terms = terms(Log, disk_log:chunk(Log, start)),
    ok = disk_log:close(Log),
    Terms.

terms(_, eof) -> [];
terms(Log, {Next, Terms}) -> Terms ++ terms(Log, disk_log:chunk(Log, Next));
terms(Log, {Next, Terms, 0}) -> Terms ++ terms(Log, disk_log:chunk(Log, Next)).

%% Returns the bytes of a file with these terms.
log_of(Config, Terms) ->
    File = file(Config) ++ ".log",
    _ = file:delete(File),
    Log = make_ref(),
    {ok, Log} = disk_log:open([{name, Log}, {file, File}]),
    ok = disk_log:log_terms(Log, Terms),
    ok = disk_log:close(Log),
    {ok, Bytes} = file:read_file(File),
    Bytes.

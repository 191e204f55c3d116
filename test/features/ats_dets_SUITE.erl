%% Tables filled by functions, from Dets tables, and Dets tables from them: as `ets' does it.
-module(ats_dets_SUITE).

-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0, init_per_suite/1, end_per_suite/1, init_per_testcase/2]).
-export([
    init_table/1,
    init_table_replaces/1,
    init_functions_that_misbehave/1,
    init_table_refused/1,
    there_and_back/1,
    every_kind_of_term/1,
    several_chunks/1,
    wrong_arguments/1,
    objects_that_do_not_fit/1,
    fixation_ends/1,
    changing_table/1
]).

-define(TYPES, [set, ordered_set, bag, duplicate_bag]).

suite() -> [{timetrap, {minutes, 15}}].

all() ->
    [
        init_table,
        init_table_replaces,
        init_functions_that_misbehave,
        init_table_refused,
        there_and_back,
        every_kind_of_term,
        several_chunks,
        wrong_arguments,
        objects_that_do_not_fit,
        fixation_ends,
        changing_table
    ].

init_per_suite(Config) ->
    ok = ats_term_gen:prepare(),
    Config.

end_per_suite(_) ->
    ok.

init_per_testcase(Case, Config) ->
    [{file, filename:join(proplists:get_value(priv_dir, Config), atom_to_list(Case))} | Config].

subject() -> ats_oracle:subject().

%% Does the same with a table of each module; both answers are the same.
compare(Options, Function) ->
    [Expected, Found] = [
        begin
            T = Module:new(t, Options),
            Result = Function(Module, T),
            Module:info(T) =:= undefined orelse Module:delete(T),
            Result
        end
     || Module <- [ets, subject()]
    ],
    ?assertEqual(Expected, Found),
    Found.

%% ----- init_table -----

init_table(_) ->
    [
        compare([Type], fun(M, T) ->
            true = M:init_table(T, providing(Parts)),
            lists:sort(M:tab2list(T))
        end)
     || Type <- ?TYPES,
        Parts <- [
            [],
            [[]],
            [[{a, 1}]],
            [[], [{a, 1}, {a, 2}], [], [{b, 1}, {a, 1}]],
            %% An element may be a list of objects, since that can be inserted.
            [[[{a, 1}, {b, 1}], {c, 1}, []]],
            [[{N, N} || N <- lists:seq(1, 500)], [{N, a} || N <- lists:seq(400, 900)]]
        ]
    ],
    ok.

providing([]) -> fun(read) -> end_of_input end;
providing([Part | Parts]) -> fun(read) -> {Part, providing(Parts)} end.

init_table_replaces(_) ->
    compare([ordered_set], fun(M, T) ->
        true = M:insert(T, [{old, 1}, {older, 2}]),
        true = M:init_table(T, fun(read) ->
            %% The old objects are gone before anything is asked for.
            [] = M:tab2list(T),
            {[{new, 1}], fun(read) -> end_of_input end}
        end),
        M:tab2list(T)
    end),
    ok.

%% A function may return anything, fail, or provide terms that cannot be inserted: earlier objects
%% stay, and it is told to close if its objects were to blame.
init_functions_that_misbehave(_) ->
    Self = self(),
    Then = fun(close) -> Self ! closed; (read) -> end_of_input end,
    FailsToClose = fun(close) -> Self ! closed, error(close) end,
    Last = fun(Value) -> fun(read) -> Value; (close) -> Self ! closed end end,
    After = fun(Value) -> fun(read) -> {[{before, 1}], Last(Value)} end end,
    Wrong = [
        neither,
        {error, enoent},
        {[{a, 1}], not_a_function},
        {{a, 1}, Then},
        {a, Then},
        {[{a, 1}, b], Then},
        {[{a, 1}, {}], Then},
        {[{a, 1}, {b, 1} | c], Then},
        {[{a, 1} | {b, 1}], Then},
        {[{a, 1}, [{b, 1}, c]], Then},
        {[b], FailsToClose},
        {[{a, 1}], fun() -> end_of_input end},
        {[], fun(_, _) -> end_of_input end},
        [],
        {[], Then, 1}
    ],
    Functions =
        [Last(W) || W <- Wrong] ++ [After(W) || W <- Wrong] ++
            [
                fun(read) -> error(mine) end,
                fun(read) -> exit(mine) end,
                fun(read) -> throw(mine) end,
                fun(read) -> {[{a, 1}], fun(read) -> error(mine) end} end,
                fun(read) -> {[{a, 1}], fun(read) -> throw(mine) end} end,
                fun() -> end_of_input end,
                not_a_function
            ],
    [
        compare([Type], fun(M, T) ->
            true = M:insert(T, {old, 1}),
            Answer = answer(M, init_table, [T, Function]),
            {Answer, lists:sort(M:tab2list(T)), closed()}
        end)
     || Type <- [set, ordered_set, bag], Function <- Functions
    ],
    {{exit, badarg}, [{a, 1}], 1} =
        compare([set], fun(M, T) ->
            Answer = answer(M, init_table, [T, Last({[{a, 1}, b], Then})]),
            {Answer, M:tab2list(T), closed()}
        end),
    ok.

closed() ->
    receive
        closed -> 1 + closed()
    after 0 -> 0
    end.

init_table_refused(_) ->
    S = subject(),
    Provide = providing([[{a, 1}]]),
    compare([protected], fun(M, T) ->
        [Refused] = ats_test_lib:parallel([fun() -> answer(M, init_table, [T, Provide]) end]),
        M:delete(T),
        {Refused, answer(M, init_table, [T, Provide]), answer(M, init_table, [no_such, Provide]),
            answer(M, init_table, ["x", Provide])}
    end),
    %% A table that goes away meanwhile.
    compare([public], fun(M, T) ->
        answer(M, init_table, [T, fun(read) ->
            M:delete(T),
            {[{a, 1}], fun(_) -> end_of_input end}
        end])
    end),
    {fail, error, badarg, Stack} = ats_oracle:call(S, init_table, [no_such, Provide]),
    [{S, init_table, [no_such, Provide], _} | _] = Stack,
    Text = erl_error:format_exception(error, badarg, Stack),
    ?assertMatch([_ | _], string:find(Text, "argument 1: the table identifier")),
    ok.

%% ----- Dets -----

dets(Config, Options, Function) ->
    File = proplists:get_value(file, Config),
    _ = file:delete(File),
    {ok, D} = dets:open_file(make_ref(), [{file, File} | Options]),
    Result = Function(D),
    _ = dets:close(D),
    Result.

%% Objects of Dets come into a table and back.
there_and_back(Config) ->
    [
        compare([Type, {keypos, 2}], fun(M, T) ->
            dets(Config, [{type, DetsType}, {keypos, 2}], fun(D) ->
                ok = dets:insert(D, [{x, 1}, {x, 1, y}, {x, 2}, {z, 2}, {z, 2.0}]),
                true = M:insert(T, [{old, 1}, {old, 3}]),
                true = M:from_dets(T, D),
                Read = sorted(M:tab2list(T)),
                ok = dets:insert(D, {gone, 7}),
                D = M:to_dets(T, D),
                {Read, sorted(dets:match_object(D, '_'))}
            end)
        end)
     || Type <- ?TYPES, DetsType <- [set, bag, duplicate_bag]
    ],
    ok.

%% Also where objects are equal but not the same.
sorted(Objects) ->
    lists:sort([{erlang:phash2(O), O} || O <- Objects]).

every_kind_of_term(Config) ->
    Terms = [ats_term_gen:realize(R) || R <- ats_term_gen:one_of_each()],
    Objects = lists:zip(lists:seq(1, length(Terms)), Terms),
    compare([set], fun(M, T) ->
        dets(Config, [], fun(D) ->
            true = M:insert(T, Objects),
            D = M:to_dets(T, D),
            true = M:delete_all_objects(T),
            true = M:from_dets(T, D),
            lists:keysort(1, M:tab2list(T))
        end)
    end),
    ok.

%% All of a table of any size; of a private one, `ets' can pass on the first hundred only.
several_chunks(Config) ->
    [
        compare([Type, Protection], fun(M, T) ->
            dets(Config, [], fun(D) ->
                true = M:insert(T, [{N, N} || N <- lists:seq(1, Size)]),
                D = M:to_dets(T, D),
                lists:sort(dets:match_object(D, '_'))
            end)
        end)
     || Type <- [set, ordered_set],
        {Protection, Sizes} <- [{public, [0, 1, 99, 100, 101, 1000]}, {private, [0, 1, 99]}],
        Size <- Sizes
    ],
    %% Large objects, which take long to read.
    compare([private], fun(M, T) ->
        dets(Config, [], fun(D) ->
            true = M:insert(T, [{N, lists:seq(N, 20000)} || N <- lists:seq(1, 60)]),
            D = M:to_dets(T, D),
            lists:sort(dets:match_object(D, '_'))
        end)
    end),
    compare([private], fun(M, T) ->
        dets(Config, [], fun(D) ->
            true = M:insert(T, [{N, N} || N <- lists:seq(1, 1000)]),
            answer(M, to_dets, [T, D])
        end)
    end),
    ok.

wrong_arguments(Config) ->
    Wrong = [no_such, 1, {}, "text", make_ref(), self(), <<>>],
    [
        compare([Type], fun(M, T) ->
            dets(Config, [], fun(D) ->
                [answer(M, F, A) || F <- [from_dets, to_dets], A <- [[W, D], [T, W], [W, W]]] ++
                    refused(M, T, D)
            end)
        end)
     || Type <- [set, ordered_set], W <- Wrong
    ],
    S = subject(),
    T = S:new(t, []),
    Texts = [
        begin
            {fail, error, badarg, Stack} = ats_oracle:call(S, F, A),
            [{S, F, A, _} | _] = Stack,
            {F, A, unicode:characters_to_list(erl_error:format_exception(error, badarg, Stack)),
                Expected}
        end
     || F <- [from_dets, to_dets],
        {A, Expected} <- [
            {[T, no_such], "argument 2: not an open Dets table"},
            {[no_such, no_such], "argument 1: the table identifier does not refer"}
        ]
    ],
    [] = [X || {_, _, Text, Expected} = X <- Texts, string:find(Text, Expected) =:= nomatch],
    S:delete(T).

%% A process that may not write, or not read.
refused(M, T, D) ->
    ok = dets:insert(D, {a, 1}),
    Private = M:new(private, [private]),
    Answers = ats_test_lib:parallel([
        fun() -> answer(M, from_dets, [T, D]) end,
        fun() -> answer(M, to_dets, [Private, D]) end
    ]),
    M:delete(Private),
    Answers.

objects_that_do_not_fit(Config) ->
    [
        compare([Type, {keypos, 3}], fun(M, T) ->
            dets(Config, [{keypos, 2}], fun(D) ->
                ok = dets:insert(D, {x, 1}),
                true = M:insert(T, {a, b, c}),
                Refused = answer(M, from_dets, [T, D]),
                {Refused, M:tab2list(T)}
            end)
        end)
     || Type <- ?TYPES
    ],
    compare([set], fun(M, T) ->
        dets(Config, [{keypos, 5}], fun(D) ->
            true = M:insert(T, {a, b, c}),
            {answer(M, to_dets, [T, D]), M:info(T, safe_fixed)}
        end)
    end),
    compare([set], fun(M, T) ->
        File = proplists:get_value(file, Config),
        dets(Config, [], fun(_) -> ok end),
        {ok, D} = dets:open_file(make_ref(), [{file, File}, {access, read}]),
        true = M:insert(T, {a, b}),
        {error, {access_mode, _}} = Answer = answer(M, to_dets, [T, D]),
        true = M:from_dets(T, D),
        ok = dets:close(D),
        Answer
    end),
    ok.

fixation_ends(Config) ->
    S = subject(),
    T = S:new(t, [public]),
    true = S:insert(T, [{N, N} || N <- lists:seq(1, 300)]),
    dets(Config, [], fun(D) ->
        D = S:to_dets(T, D),
        true = S:from_dets(T, D),
        {error, badarg} = answer(S, to_dets, [T, no_such])
    end),
    ?assertEqual(false, S:info(T, safe_fixed)),
    S:delete(T).

%% Objects that are there throughout get into the file.
changing_table(Config) ->
    S = subject(),
    Stable = lists:seq(2, 4000, 2),
    [
        begin
            T = ats_test_lib:new(changing, [Type, public]),
            true = S:insert(T, [{N, stable} || N <- Stable]),
            Writer = spawn_link(fun() -> come_and_go(S, T) end),
            dets(Config, [{type, duplicate_bag}], fun(D) ->
                D = S:to_dets(T, D),
                ?assertEqual(Stable, lists:sort(lists:append(dets:match(D, {'$1', stable}))))
            end),
            unlink(Writer),
            ats_test_lib:kill(Writer),
            S:delete(T)
        end
     || Type <- ?TYPES
    ],
    ok.

come_and_go(S, T) ->
    true = S:insert(T, {2 * rand:uniform(2000) + 1, x}),
    true = S:delete(T, 2 * rand:uniform(2000) + 1),
    come_and_go(S, T).

%% Results, and errors without stack traces.
answer(Module, Function, Arguments) ->
    try apply(Module, Function, Arguments)
    catch
        Class:{Reason, [{_, _, _, _} | _]} -> {Class, Reason};
        Class:Reason -> {Class, Reason}
    end.

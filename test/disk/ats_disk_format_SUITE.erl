%% Formats of keys and values that a program has of its own.
-module(ats_disk_format_SUITE).

-include_lib("stdlib/include/assert.hrl").
-include("../../include/ats_osmos.hrl").

-export([all/0, suite/0, init_per_testcase/2, end_per_testcase/2]).
-export([
    bytes_are_kept/1,
    keys_have_the_order_of_their_bytes/1,
    values_are_merged_as_the_program_has_them/1,
    the_directory_remembers/1,
    another_version/1,
    terms_without_bytes_are_refused/1,
    bytes_that_nobody_wrote/1,
    modules_that_are_none/1,
    records_of_osmos/1,
    functions_of_several_modules/1,
    records_that_cannot_be_kept/1,
    vectors_of_any_length/1
]).

-define(FORMAT, {format, {{module, ats_address_format}, {module, ats_number_format}, 512}}).

suite() -> [{timetrap, {minutes, 15}}].

all() ->
    [
        bytes_are_kept,
        keys_have_the_order_of_their_bytes,
        values_are_merged_as_the_program_has_them,
        the_directory_remembers,
        another_version,
        terms_without_bytes_are_refused,
        bytes_that_nobody_wrote,
        modules_that_are_none,
        records_of_osmos,
        functions_of_several_modules,
        records_that_cannot_be_kept,
        vectors_of_any_length
    ].

init_per_testcase(Case, Config) ->
    ats_disk_lib:begin_case(Case, Config).

end_per_testcase(_, _) ->
    _ = persistent_term:erase(ats_address_format),
    ats_disk_lib:end_case().

open(Config, Options) ->
    dats:open(t, [{directory, ats_disk_lib:file(Config, t)} | Options]).

rows(T, Lower, Upper) ->
    {ok, Rows, Handle} = dats:select_range(T, Lower, Upper, fun(_, _) -> true end, 7),
    rest(T, Rows, Handle).

rest(_T, Rows, '$end_of_table') ->
    Rows;
rest(T, Rows, Handle) ->
    {ok, More, Next} = dats:select_continue(T, Handle, 7),
    rest(T, Rows ++ More, Next).

bytes_are_kept(Config) ->
    {ok, T} = open(Config, [?FORMAT]),
    ok = dats:write(T, {1, 2, 3, 4}, 5),
    ?assertEqual({ok, 5}, dats:read(T, {1, 2, 3, 4})),
    ?assertEqual(not_found, dats:read(T, {4, 3, 2, 1})),
    %% Other functions see the stored form.
    ?assertEqual([{<<4, 3, 2, 1>>, <<5:32>>}], dats:tab2list(T)),
    ok = dats:write(T, {1, 2, 3, 4}, 6),
    ?assertEqual({ok, 6}, dats:read(T, {1, 2, 3, 4})),
    %% A term that is no value of the format deletes.
    ok = dats:write(T, {1, 2, 3, 4}, delete),
    ?assertEqual(not_found, dats:read(T, {1, 2, 3, 4})).

keys_have_the_order_of_their_bytes(Config) ->
    {ok, T} = open(Config, [?FORMAT]),
    Addresses = [{A, B, 0, D} || A <- [1, 2], B <- lists:seq(0, 9), D <- lists:seq(0, 99)],
    Ordered = lists:sort(fun(A, B) -> reversed(A) =< reversed(B) end, Addresses),
    _ = [ok = dats:write(T, A, element(2, A)) || A <- Addresses],
    Check = fun() ->
        ?assertEqual([{A, element(2, A)} || A <- Ordered], rows(T, unbounded, unbounded)),
        Expected = [{A, element(2, A)} || A <- Ordered, element(4, A) >= 10, element(4, A) < 90],
        Below = fun(D) -> fun(A) -> element(4, A) < D end end,
        [
            ?assertEqual(Expected, rows(T, Lower, Upper))
         || Lower <- [Below(10), {key, {0, 0, 0, 10}}], Upper <- [Below(90), {key, {0, 0, 0, 90}}]
        ],
        Odd = fun({{_, B, _, _}, N}) -> B = N, N rem 2 =:= 1 end,
        {ok, Found, _} = dats:select_range(T, Below(50), unbounded, Odd, 3),
        ?assertEqual([{1, 1, 0, 50}, {2, 1, 0, 50}, {1, 3, 0, 50}], [A || {A, _} <- Found])
    end,
    Check(),
    ok = dats:compact(T),
    Check().

reversed({A, B, C, D}) -> {D, C, B, A}.

%% Merges in memory, in several files, in compactions, and in conversions of values. The rows are
%% `{Key, Value}' with the key {N, 0, 0, 0}.
values_are_merged_as_the_program_has_them(Config) ->
    Options = [?FORMAT, {merge, {module, ats_sum_merge}}],
    {ok, T} = open(Config, Options),
    Key = fun(N) -> {N, 0, 0, 0} end,
    Keys = lists:seq(1, 200),
    Write = fun(Value) -> [ok = dats:write(T, Key(N), Value) || N <- Keys] end,
    Check = fun(Sum) ->
        ?assertEqual([{Key(N), Sum} || N <- Keys], rows(T, fun(_) -> false end, unbounded)),
        ?assert(lists:all(fun(N) -> dats:read(T, Key(N)) =:= {ok, Sum} end, Keys))
    end,
    _ = Write(1),
    _ = Write(2),
    Check(3),
    ok = dats:flush(T),
    _ = Write(4),
    Check(7),
    ok = dats:compact(T),
    Check(7),
    %% A sum of which there are no bytes.
    _ = [ok = dats:write(T, Key(1), 4000000000) || _ <- [1, 2]],
    ?assertMatch({error, {merge_failed, _, {1, 0, 0, 0},
                          {ats_number_format, encode, {raised, _, _, _}}}},
                 dats:read(T, Key(1))),
    ?assertEqual({ok, 7}, dats:read(T, Key(2))),
    ok = dats:delete(T, ats_address_format:encode(Key(1))),
    ok = dats:write(T, Key(1), 7),
    _ = Write(1),
    ok = dats:upgrade_merge(T, {convert, fun({N, 0, 0, 0}, [7, 1]) when N > 0 -> {value, 9} end}),
    Check(9),
    ok = dats:close(T),
    {ok, T} = open(Config, Options),
    Check(9).

the_directory_remembers(Config) ->
    Directory = ats_disk_lib:file(Config, t),
    {ok, t} = open(Config, [?FORMAT]),
    ok = dats:write(t, {1, 2, 3, 4}, 5),
    Others = [
        {{module, ats_address_format}, term_replace, 512},
        {term, {module, ats_number_format}, 512},
        {term, term_replace, 512}
    ],
    [
        ?assertEqual({error, incompatible_arguments}, open(Config, [{format, Format}]))
     || Format <- Others
    ],
    ok = dats:close(t),
    [
        begin
            Failed = {error, {format_mismatch, Directory}},
            ?assertEqual(Failed, open(Config, [{format, Format}])),
            ?assert(is_list(unicode:characters_to_list(dats:format_error(Failed))))
        end
     || Format <- Others
    ],
    %% A caller that does not name it gets it.
    {ok, T} = dats:open_file(Directory),
    ?assertEqual({ok, 5}, dats:read(T, {1, 2, 3, 4})),
    ok = dats:close(T),
    {ok, t} = open(Config, [?FORMAT]),
    ?assertEqual({ok, 5}, dats:read(t, {1, 2, 3, 4})),
    ok = dats:close(t),
    %% Nor has a table a format that was made without.
    Plain = ats_disk_lib:file(Config, plain),
    {ok, p} = dats:open(p, [{directory, Plain}, {format, {term, term_replace, 512}}]),
    ok = dats:close(p),
    ?assertEqual({error, {format_mismatch, Plain}}, dats:open(p, [{directory, Plain}, ?FORMAT])).

another_version(Config) ->
    Directory = ats_disk_lib:file(Config, t),
    {ok, t} = open(Config, [?FORMAT]),
    ok = dats:write(t, {1, 2, 3, 4}, 5),
    ok = dats:close(t),
    ok = persistent_term:put(ats_address_format, 2),
    ?assertEqual({error, {format_mismatch, Directory}}, open(Config, [?FORMAT])),
    Failed = dats:open_file(Directory),
    ?assertMatch({error, {format, {failed, {ats_address_format, version, {other_version, 1, 2}}}}},
                 Failed),
    ?assertMatch({match, _}, re:run(dats:format_error(Failed), "of version 1")),
    ok = persistent_term:put(ats_address_format, 1),
    {ok, t} = open(Config, [?FORMAT]),
    ?assertEqual({ok, 5}, dats:read(t, {1, 2, 3, 4})).

terms_without_bytes_are_refused(Config) ->
    {ok, T} = open(Config, [?FORMAT]),
    Words = fun(Call) ->
        try Call() of
            Answer -> Answer
        catch
            error:badarg:Stack ->
                [{dats, _, _, Info} | _] = Stack,
                {error_info, #{module := M}} = lists:keyfind(error_info, 1, Info),
                maps:values(M:format_error(badarg, Stack))
        end
    end,
    [
        ?assertMatch({match, _}, re:run(hd(Words(Call)), Expected))
     || {Call, Expected} <- [
            {fun() -> dats:write(T, 1, 5) end, "ats_address_format:encode/1 makes no binary of it"},
            {fun() -> dats:read(T, 1) end, "ats_address_format:encode/1"},
            {fun() -> dats:write(T, {1, 2, 3, 4}, -1) end, "ats_number_format:encode/1"}
        ]
    ],
    ?assertEqual(not_found, dats:read(T, {1, 2, 3, 4})),
    ?assertEqual([], dats:tab2list(T)).

bytes_that_nobody_wrote(Config) ->
    {ok, T} = open(Config, [?FORMAT]),
    ok = dats:write(T, {1, 2, 3, 4}, 5),
    ok = dats:insert(T, {<<4, 3, 2, 2>>, <<"no number">>}),
    Failed = dats:read(T, {2, 2, 3, 4}),
    ?assertMatch({error, {format_failed, _, {ats_number_format, decode, {raised, error, _, _}}}},
                 Failed),
    ?assertMatch({match, _}, re:run(dats:format_error(Failed), "ats_number_format:decode")),
    ?assertMatch({error, {format_failed, _, _}},
                 dats:select_range(T, unbounded, unbounded, fun(_, _) -> true end, 10)),
    ?assertEqual({ok, 5}, dats:read(T, {1, 2, 3, 4})),
    ok = ats_test_lib:until(fun() -> maps:get(snapshots, dats:info(T, stats)) =:= 0 end, 20000).

modules_that_are_none(Config) ->
    Open = fun(Key, Value) -> open(Config, [{format, {Key, Value, 512}}]) end,
    Missing = Open({module, no_such_module}, term_replace),
    ?assertMatch({error, {format, {not_loaded, no_such_module, nofile}}}, Missing),
    ?assertMatch({match, _}, re:run(dats:format_error(Missing), "no_such_module cannot be loaded")),
    ?assertMatch({error, {format, {not_exported, lists, [{encode, 1} | _]}}},
                 Open(term, {module, lists})),
    ?assertError(badarg, Open({module, 1}, term_replace)),
    ?assertNot(filelib:is_dir(ats_disk_lib:file(Config, t))).

number_format() ->
    #osmos_format{to_binary = fun ats_number_format:to_binary/1,
                  from_binary = fun ats_number_format:from_binary/1}.

term_format() ->
    #osmos_format{to_binary = fun erlang:term_to_binary/1,
                  from_binary = fun erlang:binary_to_term/1}.

replacing() ->
    #osmos_table_format{block_size = 512,
                        key_format = number_format(),
                        key_less = bytes,
                        value_format = term_format(),
                        merge = fun osmos_table_format:merge_return_later/3,
                        short_circuit = fun osmos_table_format:always/2,
                        delete = fun osmos_table_format:never/2}.

records_of_osmos(Config) ->
    Sum = #osmos_table_format{merge = fun osmos_table_format:merge_uint64_sum_delete/3,
                              short_circuit = fun osmos_table_format:value_is_delete/2,
                              delete = fun osmos_table_format:value_is_delete/2},
    Program = (replacing())#osmos_table_format{value_format = number_format(),
                                               merge = fun ats_sum_merge:merge/3,
                                               short_circuit = fun ats_sum_merge:short_circuit/2,
                                               delete = fun ats_sum_merge:delete/2},
    Less = fun erlang:'<'/2,
    Formats = [
        {replacing(), [a, b], b, {<<7:32>>, b}},
        {(replacing())#osmos_table_format{key_less = Less}, [a, b], b, {7, b}},
        {(replacing())#osmos_table_format{value_format = number_format()}, [1, 2], 2,
         {<<7:32>>, <<2:32>>}},
        {Sum#osmos_table_format{block_size = 512, key_format = number_format(), key_less = bytes,
                                value_format = number_format()},
         [1, 2], 3, {<<7:32>>, 3}},
        {Program, [1, 2], 3, {<<7:32>>, <<3:32>>}},
        {several_modules(), [1, 9, 2], 9, {<<7:32>>, <<9:32>>}}
    ],
    [
        begin
            {ok, T} = open(Config, [{format, Format}]),
            _ = [ok = dats:write(T, 7, V) || V <- Values],
            ?assertEqual({ok, Last}, dats:read(T, 7)),
            ?assertEqual([{7, Last}], rows(T, fun(K) -> K < 7 end, fun(K) -> K < 8 end)),
            ?assertEqual([Kept], dats:tab2list(T)),
            ok = dats:close(T),
            {ok, T} = open(Config, [{format, Format}]),
            ?assertEqual({ok, Last}, dats:read(T, 7)),
            ok = dats:close(T),
            ok = file:del_dir_r(ats_disk_lib:file(Config, t))
        end
     || {Format, Values, Last, Kept} <- Formats
    ].

%% Functions of any names, of a module of the program, of one of Erlang/OTP, and of osmos.
several_modules() ->
    (replacing())#osmos_table_format{value_format = number_format(),
                                     merge = fun ats_number_format:larger/3,
                                     short_circuit = fun ats_number_format:is_million/2,
                                     delete = fun osmos_table_format:never/2}.

%% Values of one key are merged by the functions in compaction, in reads, and after opening again
%% without a format.
functions_of_several_modules(Config) ->
    Format = several_modules(),
    Options = [{format, Format}, {max_memory_entries, 16}],
    {ok, T} = open(Config, Options),
    Write = fun(K, V) -> ok = dats:write(T, K, V) end,
    _ = [Write(K, (K * Round * 7919) rem 1000) || Round <- lists:seq(1, 5), K <- lists:seq(1, 100)],
    Largest = fun(K) -> lists:max([(K * Round * 7919) rem 1000 || Round <- lists:seq(1, 5)]) end,
    Expected = [{K, Largest(K)} || K <- lists:seq(1, 100)],
    ?assertEqual(Expected, rows(T, unbounded, unbounded)),
    ok = dats:compact(T),
    ?assertEqual(Expected, rows(T, unbounded, unbounded)),
    _ = [Write(1, V) || V <- [1_000_000, 5]],
    ?assertEqual({ok, 1_000_000}, dats:read(T, 1)),
    ok = dats:close(T),
    {ok, T} = dats:open(T, [{directory, ats_disk_lib:file(Config, t)}]),
    ?assertEqual({ok, 1_000_000}, dats:read(T, 1)),
    ok = dats:write(T, 7, 0),
    ?assertEqual({ok, Largest(7)}, dats:read(T, 7)),
    ok = dats:close(T),
    Other = Format#osmos_table_format{merge = fun ats_sum_merge:merge/3},
    ?assertMatch({error, {merge_mismatch, _}}, open(Config, [{format, Other}])),
    Gone = Format#osmos_table_format{merge = fun ats_number_format:gone/3},
    ?assertMatch({error, {merge, {not_exported, ats_number_format, [{gone, 3}]}}},
                 open(Config, [{format, Gone}])),
    %% One that fails does so for its key.
    {ok, T} = open(Config, [{format, Format}]),
    ok = dats:write(T, 200, 13),
    ok = dats:write(T, 200, 14),
    Failed = dats:read(T, 200),
    ?assertMatch({error, {merge_failed, _, _,
                          {ats_number_format, larger, {raised, error, unlucky, _}}}}, Failed),
    ?assertMatch({match, _}, re:run(dats:format_error(Failed), "ats_number_format:larger")),
    ?assertEqual({ok, Largest(9)}, dats:read(T, 9)).

records_that_cannot_be_kept(Config) ->
    Above = fun(A, B) -> A > B end,
    Wrong = [
        {(replacing())#osmos_table_format{key_less = Above}, key_less,
         "whose bytes have that order"},
        {(replacing())#osmos_table_format{key_less = fun erlang:'>'/2}, key_less,
         "whose bytes have that order"},
        {(replacing())#osmos_table_format{merge = fun(_, _, B) -> B end}, merge, "exported"},
        {(replacing())#osmos_table_format{delete = fun(_, _) -> false end}, delete, "exported"},
        {(replacing())#osmos_table_format{short_circuit = fun osmos_table_format:sometimes/2},
         short_circuit, "exported"},
        {(replacing())#osmos_table_format{key_format = undefined}, key_format, "key_format"}
    ],
    [
        begin
            Failed = open(Config, [{format, Format}]),
            ?assertMatch({error, {unsupported, {Field, _}}}, Failed),
            ?assertMatch({match, _}, re:run(dats:format_error(Failed), Text))
        end
     || {Format, Field, Text} <- Wrong
    ],
    Missing = #osmos_format{to_binary = fun ats_number_format:no_function/1,
                            from_binary = fun ats_number_format:from_binary/1},
    ?assertMatch({error, {format, {not_exported, ats_number_format, [{no_function, 1}]}}},
                 open(Config, [{format, (replacing())#osmos_table_format{key_format = Missing}}])),
    NoBinary = #osmos_format{to_binary = fun ats_number_format:not_a_binary/1,
                             from_binary = fun ats_number_format:from_binary/1},
    {ok, T} = open(Config, [{format, (replacing())#osmos_table_format{key_format = NoBinary}}]),
    ?assertError(badarg, dats:write(T, 1, 1)).

vectors_of_any_length(Config) ->
    {ok, T} = open(Config, [{format, {term, uint64_vector_sum_delete, 512}}]),
    _ = [ok = dats:write(T, k, V) || V <- [{1}, {1, 2, 3}, {10, 10}]],
    ?assertEqual({ok, {12, 12, 3}}, dats:read(T, k)),
    ok = dats:write(T, k, delete),
    ?assertEqual(not_found, dats:read(T, k)),
    ok = dats:write(T, k, {5, 6}),
    ?assertEqual({ok, {5, 6}}, dats:read(T, k)).

%% The functions of osmos on tables on disk: its own tests, cases that these leave out, and its
%% known faults.
-module(ats_osmos_SUITE).

-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0, init_per_testcase/2, end_per_testcase/2]).
-export([
    written_keys_are_there_after_reopening/1,
    selects_of_many_keys/1,
    selects_merge_parts_of_several_files/1,
    the_first_row_is_merged/1,
    deletes_after_a_flush/1,
    values_longer_than_blocks/1,
    selects_while_writing/1,
    writes_do_not_go_behind_a_torn_journal/1,
    poison_harms_its_key/1,
    functions_that_fail_harm_their_caller/1,
    a_slow_function_delays_nobody/1,
    left_over_files/1,
    one_table_in_a_directory/1,
    numbers_that_are_one_key/1,
    most_selects/1,
    ended_selects_do_not_count/1,
    most_entries_in_memory/1,
    formats_are_compact/1,
    wrong_options/1
]).

suite() -> [{timetrap, {minutes, 15}}].

all() ->
    [
        written_keys_are_there_after_reopening,
        selects_of_many_keys,
        selects_merge_parts_of_several_files,
        the_first_row_is_merged,
        deletes_after_a_flush,
        values_longer_than_blocks,
        selects_while_writing,
        writes_do_not_go_behind_a_torn_journal,
        poison_harms_its_key,
        functions_that_fail_harm_their_caller,
        a_slow_function_delays_nobody,
        left_over_files,
        one_table_in_a_directory,
        numbers_that_are_one_key,
        most_selects,
        ended_selects_do_not_count,
        most_entries_in_memory,
        formats_are_compact,
        wrong_options
    ].

init_per_testcase(Case, Config) ->
    ats_disk_lib:begin_case(Case, Config).

end_per_testcase(_, _) ->
    ats_disk_lib:end_case().

open(Config, Format) ->
    open(Config, Format, []).

open(Config, Format, Options) ->
    {ok, t} = dats:open(t, [{directory, ats_disk_lib:file(Config, t)}, {format, Format} | Options]),
    t.

reopen(Config, Format) ->
    ok = dats:close(t),
    open(Config, Format).

%% Returns all rows of a range, in chunks.
rows(T, Lower, Upper, N) ->
    {ok, Rows, Handle} = dats:select_range(T, Lower, Upper, fun(_, _) -> true end, N),
    rest(T, Rows, Handle, N).

rest(T, Rows, Handle, N) when length(Rows) =:= N ->
    {ok, More, Next} = dats:select_continue(T, Handle, N),
    Rows ++ rest(T, More, Next, N);
rest(_T, Rows, Handle, _N) ->
    ?assertEqual('$end_of_table', Handle),
    Rows.

all_rows(T) ->
    rows(T, fun(_) -> false end, fun(_) -> true end, 100).

%%--------------------------------------------------------------------------------------------
%% Reading and writing
%%--------------------------------------------------------------------------------------------

written_keys_are_there_after_reopening(Config) ->
    Format = {term, term_replace, 1024},
    T = open(Config, Format),
    ?assertEqual(not_found, dats:read(T, 1)),
    Numbers = lists:seq(1, 20000),
    _ = [ok = dats:write(T, N, {value, N}) || N <- Numbers],
    _ = [ok = dats:write(T, N, again) || N <- Numbers, N rem 5 =:= 0],
    Expected = fun(N) ->
        case N rem 5 of
            0 -> {ok, again};
            _ -> {ok, {value, N}}
        end
    end,
    Check = fun() -> ?assert(lists:all(fun(N) -> dats:read(T, N) =:= Expected(N) end, Numbers)) end,
    Check(),
    ?assertMatch(Entries when Entries >= 20000,
                 dats:info(T, tree_entries) + dats:info(T, file_entries)),
    T = reopen(Config, Format),
    Check(),
    ?assertEqual({0, 20000}, {dats:info(T, tree_entries), dats:info(T, file_entries)}).

selects_of_many_keys(Config) ->
    T = open(Config, {term, term_replace, 1024}),
    Keys = 30000,
    _ = [ok = dats:write(T, {key, N}, N) || N <- lists:seq(1, Keys)],
    Below = fun(N) -> fun({key, K}) -> K < N end end,
    Check = fun() ->
        [
            ?assertEqual([{{key, N}, N} || N <- lists:seq(From, To - 1)],
                         rows(T, Below(From), Below(To), Chunk))
         || {From, To, Chunk} <- [{1, Keys + 1, 1000}, {100, 1101, 1}, {15000, 15001, 10},
                                  {29990, 30001, 7}, {15000, 15000, 10}]
        ],
        Odd = fun(_, N) -> N rem 2 =:= 1 end,
        ?assertMatch({ok, [{{key, 11}, 11}, {{key, 13}, 13}], _},
                     dats:select_range(T, Below(10), Below(Keys), Odd, 2))
    end,
    Check(),
    ok = dats:flush(T),
    Check().

%% A key of which each of several files has a part, and memory another one.
selects_merge_parts_of_several_files(Config) ->
    T = open(Config, {term, uint64_sum_delete, 256}),
    Keys = lists:seq(1, 500),
    _ = [
        begin
            _ = [ok = dats:write(T, K, K) || K <- Keys, K rem Part =:= 0],
            Part < 4 andalso dats:flush(T)
        end
     || Part <- [1, 2, 3, 4]
    ],
    Sum = fun(K) -> K * length([Part || Part <- [1, 2, 3, 4], K rem Part =:= 0]) end,
    Expected = [{K, Sum(K)} || K <- Keys],
    ?assertEqual(Expected, all_rows(T)),
    ?assertEqual(Expected, [{K, V} || K <- Keys, {ok, V} <- [dats:read(T, K)]]),
    ok = dats:compact(T),
    ?assertEqual(Expected, all_rows(T)).

%% Also the row with which a range begins is merged, and it is not one that was deleted.
the_first_row_is_merged(Config) ->
    T = open(Config, {term, uint64_sum_delete, 256}),
    From = fun(N) -> rows(T, fun(K) -> K < N end, unbounded, 1) end,
    _ = [begin _ = [ok = dats:write(T, K, 1) || K <- [1, 2, 3]], ok = dats:flush(T) end
         || _ <- [1, 2]],
    ok = dats:write(T, 2, 1),
    ?assertEqual([{2, 3}, {3, 2}], From(2)),
    ok = dats:write(T, 2, delete),
    ?assertEqual([{3, 2}], From(2)),
    ok = dats:flush(T),
    ?assertEqual([{3, 2}], From(2)),
    ok = dats:write(T, 2, 7),
    ?assertEqual([{2, 7}, {3, 2}], From(2)).

%% A deleted key stays deleted, wherever older values are; later writes begin anew.
deletes_after_a_flush(Config) ->
    Formats = [{{term, uint64_sum_delete, 128}, 1, 2, 3},
               {{term, {uint64_vector_sum_delete, 2}, 128}, {1, 2}, {3, 4}, {4, 6}}],
    [
        begin
            T = open(Config, Format),
            ok = dats:write(T, k, A),
            ok = dats:flush(T),
            ok = dats:write(T, k, delete),
            ?assertEqual(not_found, dats:read(T, k)),
            ok = dats:flush(T),
            ?assertEqual(not_found, dats:read(T, k)),
            ?assertEqual([], all_rows(T)),
            ok = dats:write(T, k, A),
            ok = dats:write(T, k, B),
            ?assertEqual({ok, Sum}, dats:read(T, k)),
            ok = dats:write(T, k, delete),
            ok = dats:compact(T),
            ?assertEqual(not_found, dats:read(T, k)),
            ok = dats:close(T),
            ok = file:del_dir_r(ats_disk_lib:file(Config, t))
        end
     || {Format, A, B, Sum} <- Formats
    ],
    %% A format that replaces values has no delete in osmos.
    T = open(Config, {binary, binary_replace, 64}),
    ok = dats:write(T, <<"k">>, <<>>),
    ?assertEqual({ok, <<>>}, dats:read(T, <<"k">>)),
    ok = dats:delete(T, <<"k">>),
    ?assertEqual(not_found, dats:read(T, <<"k">>)).

%% Values of many blocks, first, last and in between, in files that are merged.
values_longer_than_blocks(Config) ->
    T = open(Config, {term, binary_replace, 64}),
    Value = fun(K, Round) ->
        binary:copy(<<K:16, Round>>, case K rem 7 of 0 -> 20000; 3 -> 200; _ -> 1 end)
    end,
    Keys = lists:seq(0, 98),
    Check = fun(Round) ->
        Expected = [{K, Value(K, Round)} || K <- Keys],
        ?assertEqual(Expected, all_rows(T)),
        ?assertEqual([lists:last(Expected)], rows(T, fun(K) -> K < 98 end, unbounded, 3))
    end,
    [
        begin
            _ = [ok = dats:write(T, K, Value(K, Round)) || K <- Keys],
            Check(Round),
            ok = dats:flush(T),
            Check(Round)
        end
     || Round <- [1, 2, 3]
    ],
    ok = dats:compact(T),
    Check(3).

selects_while_writing(Config) ->
    T = open(Config, {term, uint64_sum_delete, 512}),
    Keys = lists:seq(1, 2000),
    _ = [ok = dats:write(T, K, 1) || K <- Keys],
    {ok, First, Handle} = dats:select_range(T, fun(_) -> false end, fun(_) -> true end,
                                            fun(_, _) -> true end, 10),
    _ = [ok = dats:write(T, K, 1) || K <- Keys ++ Keys],
    _ = [ok = dats:write(T, K, delete) || K <- lists:seq(1, 2000, 2)],
    ok = dats:flush(T),
    ok = dats:compact(T),
    ?assertEqual([{K, 1} || K <- Keys], rest(T, First, Handle, 10)),
    ?assertEqual([{K, 3} || K <- lists:seq(2, 2000, 2)], all_rows(T)).

%%--------------------------------------------------------------------------------------------
%% Faults
%%--------------------------------------------------------------------------------------------

%% The directory as it is on disk, while the table is open, as a crash leaves it.
crash(Config, From, To) ->
    Directory = ats_disk_lib:file(Config, To),
    ok = file:make_dir(Directory),
    {ok, Names} = file:list_dir(ats_disk_lib:file(Config, From)),
    _ = [
        {ok, _} = file:copy(filename:join(ats_disk_lib:file(Config, From), Name),
                            filename:join(Directory, Name))
     || Name <- Names
    ],
    Directory.

%% Only a part of a write is on disk. Later writes do not go behind it.
writes_do_not_go_behind_a_torn_journal(Config) ->
    T = open(Config, {term, term_replace, 512}),
    _ = [ok = dats:write(T, N, N) || N <- lists:seq(1, 100)],
    ok = dats:sync(T),
    Torn = crash(Config, t, torn),
    Journals = [
        begin
            {ok, Bytes} = file:read_file(Journal),
            {written(Bytes, byte_size(Bytes)), Bytes, Journal}
        end
     || Journal <- filelib:wildcard(filename:join(Torn, "journal-*"))
    ],
    {Written, Content, Longest} = lists:max(Journals),
    ok = file:write_file(Longest, binary:part(Content, 0, Written div 2 + 3)),
    {ok, u} = dats:open(u, [{directory, Torn}, {format, {term, term_replace, 512}}]),
    Found = all_rows(u),
    Last = length(Found),
    ?assert(Last < 100),
    ?assertEqual([{N, N} || N <- lists:seq(1, Last)], Found),
    _ = [ok = dats:write(u, N, N) || N <- lists:seq(101, 200)],
    ok = dats:sync(u),
    Again = crash(Config, torn, again),
    {ok, v} = dats:open(v, [{directory, Again}, {format, {term, term_replace, 512}}]),
    ?assertEqual(Found ++ [{N, N} || N <- lists:seq(101, 200)], all_rows(v)).

%% Room that a journal has for more is zeros.
written(_Bytes, 0) ->
    0;
written(Bytes, Size) ->
    case binary:at(Bytes, Size - 1) of
        0 -> written(Bytes, Size - 1);
        _ -> Size
    end.

%% A value with which the merge fails: the table is opened again, and its other keys are there.
poison_harms_its_key(Config) ->
    Options = [{directory, ats_disk_lib:file(Config, t)}, {merge, {module, ats_sum_merge}}],
    {ok, t} = dats:open(t, Options),
    ok = dats:write(t, good, 1),
    _ = [ok = dats:write(t, bad, V) || V <- [1, poison]],
    _ = [
        begin
            ?assertMatch({error, {merge_failed, _, bad, _}}, dats:read(t, bad)),
            ?assertEqual({ok, Sum}, dats:read(t, good)),
            ok = dats:write(t, good, 1),
            ok = dats:close(t),
            {ok, t} = dats:open(t, Options)
        end
     || Sum <- [1, 2, 3]
    ],
    ok = dats:delete(t, bad),
    ?assertEqual([{good, 4}], all_rows(t)).

functions_that_fail_harm_their_caller(Config) ->
    T = open(Config, {term, term_replace, 512}),
    _ = [ok = dats:write(T, N, N) || N <- lists:seq(1, 100)],
    Fails = fun(_) -> error(oops) end,
    Yes = fun(_, _) -> true end,
    ?assertError(oops, dats:select_range(T, Fails, unbounded, Yes, 1)),
    ?assertError(oops, dats:select_range(T, unbounded, Fails, Yes, 1)),
    ?assertError(oops, dats:select_range(T, unbounded, unbounded, Fails, 1)),
    ?assertError(badarg, dats:select_range(T, fun(_) -> 1 end, unbounded, Yes, 1)),
    ?assertEqual({ok, 1}, dats:read(T, 1)),
    ok = dats:write(T, 1, 2),
    ?assertEqual({ok, 2}, dats:read(T, 1)).

a_slow_function_delays_nobody(Config) ->
    T = open(Config, {term, term_replace, 512}),
    _ = [ok = dats:write(T, N, N) || N <- lists:seq(1, 100)],
    Me = self(),
    Slow = fun(50, _) -> Me ! slow, receive go_on -> true end;
              (_, _) -> true
           end,
    Select = fun() -> Me ! {rows, dats:select_range(T, unbounded, unbounded, Slow, 1000)} end,
    Pid = spawn_link(Select),
    receive slow -> ok end,
    ok = dats:write(T, 51, other),
    ?assertEqual({ok, other}, dats:read(T, 51)),
    ok = dats:compact(T),
    ?assertEqual(100, length(all_rows(T))),
    Pid ! go_on,
    receive
        {rows, {ok, Rows, '$end_of_table'}} ->
            ?assertEqual([{N, N} || N <- lists:seq(1, 100)], Rows)
    end.

%% Files of an incomplete merge are removed.
left_over_files(Config) ->
    Format = {term, term_replace, 512},
    T = open(Config, Format),
    ok = dats:write(T, a, 1),
    ok = dats:close(T),
    Left = filename:join(ats_disk_lib:file(Config, t), "run-00009999"),
    ok = file:write_file(Left, <<"part of a run">>),
    T = open(Config, Format),
    ?assertEqual({ok, 1}, dats:read(T, a)),
    ok = ats_test_lib:until(fun() -> not filelib:is_file(Left) end, 20000).

one_table_in_a_directory(Config) ->
    Format = {format, {term, uint64_sum_delete, 512}},
    Directory = ats_disk_lib:file(Config, t),
    {ok, t} = dats:open(t, [{directory, Directory}, Format]),
    ?assertEqual({error, {in_use, Directory}}, dats:open(u, [{directory, Directory}, Format])),
    {ok, t} = dats:open(t, [{directory, Directory}, Format]),
    Other = {format, {term, {uint64_vector_sum_delete, 2}, 512}},
    ?assertEqual({error, incompatible_arguments}, dats:open(t, [{directory, Directory}, Other])),
    ok = dats:close(t),
    ok = dats:close(t),
    ?assertEqual({error, {merge_mismatch, Directory}},
                 dats:open(t, [{directory, Directory}, Other])).

%% The spelling that was written last is the one that is read, however files are merged.
numbers_that_are_one_key(Config) ->
    T = open(Config, {term, term_replace, 512}),
    Check = fun(Row) ->
        ?assertEqual([Row], all_rows(T)),
        ?assertEqual({ok, element(2, Row)}, dats:read(T, 1)),
        ?assertEqual({ok, element(2, Row)}, dats:read(T, 1.0))
    end,
    ok = dats:write(T, 1, integer),
    ok = dats:flush(T),
    ok = dats:write(T, 1.0, float),
    Check({1.0, float}),
    ok = dats:compact(T),
    Check({1.0, float}),
    ok = dats:write(T, 1, integer),
    Check({1, integer}).

%%--------------------------------------------------------------------------------------------
%% Options
%%--------------------------------------------------------------------------------------------

begun(T) ->
    {ok, [{1, 1}], Handle} = dats:select_range(T, unbounded, unbounded, fun(_, _) -> true end, 1),
    Handle.

%% Beyond the limit, the select that was not continued for longest is given up, however much it has
%% read already.
most_selects(Config) ->
    T = open(Config, {term, term_replace, 512}, [{max_selects, 3}]),
    _ = [ok = dats:write(T, N, N) || N <- lists:seq(1, 1000)],
    [A, B, C] = [begun(T) || _ <- [a, b, c]],
    {ok, [{2, 2}], A2} = dats:select_continue(T, A, 1),
    D = begun(T),
    ?assertEqual({error, {bad_select_handle, B}}, dats:select_continue(T, B, 1)),
    [
        ?assertMatch({ok, Rows, '$end_of_table'} when length(Rows) >= 998,
                     dats:select_continue(T, Handle, 1000))
     || Handle <- [A2, C, D]
    ].

%% Neither selects that came to their end, nor walks of other functions.
ended_selects_do_not_count(Config) ->
    T = open(Config, {term, term_replace, 512}, [{max_selects, 1}]),
    _ = [ok = dats:write(T, N, N) || N <- lists:seq(1, 1000)],
    Handle = begun(T),
    {ok, _, Next} = dats:select_continue(T, Handle, 500),
    ?assertEqual(1000, length(dats:tab2list(T))),
    ?assertEqual(1000, dats:foldl(fun(_, N) -> N + 1 end, 0, T)),
    {ok, Rest, '$end_of_table'} = dats:select_continue(T, Next, 1000),
    ?assertEqual(499, length(Rest)),
    _ = [?assertEqual(1000, length(all_rows(T))) || _ <- lists:seq(1, 10)],
    Last = begun(T),
    ?assertMatch({ok, [{2, 2}], _}, dats:select_continue(T, Last, 1)).

most_entries_in_memory(Config) ->
    T = open(Config, {term, term_replace, 512}, [{max_memory_entries, 100}, {max_merge_jobs, 1}]),
    _ = [ok = dats:write(T, N rem 10, N) || N <- lists:seq(1, 1000)],
    ?assertEqual({10, 0}, {dats:info(T, tree_entries), dats:info(T, files)}),
    _ = [ok = dats:write(T, N, N) || N <- lists:seq(1, 1000)],
    ?assertMatch(#{flushes := Flushes} when Flushes > 0, until_flushed(T)),
    ?assertEqual(1001, length(all_rows(T))).

until_flushed(T) ->
    IsFlushed = fun() -> dats:info(T, files) > 0 andalso dats:info(T, tree_entries) < 200 end,
    ok = ats_test_lib:until(IsFlushed,
                            20000),
    dats:info(T, stats).

wrong_options(Config) ->
    Open = fun(Option) ->
        dats:open(t, [{directory, ats_disk_lib:file(Config, t)},
                      {format, {term, term_replace, 512}}, Option])
    end,
    [
        ?assertError(badarg, Open({Option, N}))
     || Option <- [max_memory_entries, max_merge_jobs, max_selects, select_timeout_secs],
        N <- [0, -1, x]
    ],
    ?assertEqual({ok, t}, Open({select_timeout_secs, 0.5})).

%%--------------------------------------------------------------------------------------------
%% Sizes
%%--------------------------------------------------------------------------------------------

%% A file of osmos has, for each record, the part of its key that differs from the key before, the
%% value, and three bytes of lengths; no filter, no checksums, and no types. Without compression, a
%% table of the same records takes 2.2 to 4.4 times as many bytes.
formats_are_compact(Config) ->
    _ = rand:seed(exsss, 7),
    Random = fun(_) -> base64:encode(rand:bytes(11)) end,
    Counted = fun(N) -> iolist_to_binary(io_lib:format("key~12..0b", [N])) end,
    Strings = fun(Key) ->
        fun(N) ->
            <<A:7/binary, B/binary>> = Key(N),
            [A, B]
        end
    end,
    Bytes = fun(Key) -> Key end,
    Joined = fun(Key) -> <<<<S/binary, 0>> || S <- Key>> end,
    [
        begin
            T = open(Config, {Name, uint64_sum_delete, BlockSize}),
            Keys = lists:usort([Key(N) || N <- lists:seq(1, 20000)]),
            _ = [ok = dats:write(T, K, rand:uniform(1 bsl 32)) || K <- Keys],
            ok = dats:compact(T),
            Here = dats:info(T, file_size),
            There = of_osmos([Encode(K) || K <- Keys], <<>>, 0),
            ct:pal("~p, blocks of ~b: ~b bytes, of osmos ~b: ~.2f",
                   [Name, BlockSize, Here, There, Here / There]),
            ?assert(Here < Most * There),
            ok = dats:close(T),
            ok = file:del_dir_r(ats_disk_lib:file(Config, t))
        end
     || BlockSize <- [1024, 4096],
        {Name, Key, Encode, Most} <- [{binary, Random, Bytes, 1.5},
                                      {binary, Counted, Bytes, 1.7},
                                      {string_vector, Strings(Random), Joined, 1.8},
                                      {string_vector, Strings(Counted), Joined, 1.9}]
    ].

of_osmos([Key | Keys], Before, Bytes) ->
    Shared = binary:longest_common_prefix([Key, Before]),
    of_osmos(Keys, Key, Bytes + 3 + byte_size(Key) - Shared + 8);
of_osmos([], _Before, Bytes) ->
    Bytes.

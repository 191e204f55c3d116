%% Tables on disk: opening and closing, processes that have them open, comparison with `dets', and
%% the state after a new start.
-module(ats_disk_SUITE).

-include_lib("stdlib/include/assert.hrl").
-include_lib("stdlib/include/qlc.hrl").

-export([all/0, suite/0, init_per_testcase/2, end_per_testcase/2]).
-export([
    as_dets_does/1,
    programs_as_dets_runs_them/1,
    objects_survive/1,
    every_kind_of_key_survives_a_restart/1,
    the_last_user_closes/1,
    users_that_end/1,
    opening_at_the_same_time/1,
    options/1,
    mismatches/1,
    other_files_are_no_tables/1,
    one_directory_one_table/1,
    read_only/1,
    types/1,
    too_long/1,
    descriptions/1,
    lists_are_one/1,
    one_moment/1,
    folds_go_through_everything/1,
    chunks/1,
    queries/1,
    filling/1,
    threads_are_not_bound/1,
    the_application_closes_tables/1,
    a_server_that_is_killed/1,
    a_vm_that_is_killed/1,
    spoilt_files/1,
    counts_of_slices/1,
    prefixes_read_few_blocks/1,
    hidden_from_ats/1
]).
-export([write_each/3, open_for_ever/1, processors/0]).

suite() -> [{timetrap, {minutes, 15}}].

all() ->
    [
        as_dets_does,
        programs_as_dets_runs_them,
        objects_survive,
        every_kind_of_key_survives_a_restart,
        the_last_user_closes,
        users_that_end,
        opening_at_the_same_time,
        options,
        mismatches,
        other_files_are_no_tables,
        one_directory_one_table,
        read_only,
        types,
        too_long,
        descriptions,
        lists_are_one,
        one_moment,
        folds_go_through_everything,
        chunks,
        queries,
        filling,
        threads_are_not_bound,
        the_application_closes_tables,
        a_server_that_is_killed,
        a_vm_that_is_killed,
        spoilt_files,
        counts_of_slices,
        prefixes_read_few_blocks,
        hidden_from_ats
    ].

init_per_testcase(Case, Config) ->
    ok = ats_term_gen:prepare(),
    ats_disk_lib:begin_case(Case, Config).

end_per_testcase(_, _) ->
    ats_disk_lib:end_case().

%% ----- as dets -----

%% Compares the answers of both, without the names of files. Faults of `dets' are not tested: it
%% lets a counter be the key, leaves a table fixed after a function has failed and unusable after
%% another has, and spoils one that it may only read when it deletes all objects.
as_dets_does(Config) ->
    Answers = [answers(Module, ats_disk_lib:file(Config, atom_to_list(Module)))
               || Module <- [dets, dats]],
    [Expected, Got] = Answers,
    ?assertEqual([], [{E, G} || {E, G} <- lists:zip(Expected, Got), E =/= G]).

answers(M, File) ->
    Other = File ++ "2",
    Open = [{file, File}],
    E = ets:new(e, []),
    true = ets:insert(E, [{9, 9}, {10, 10}]),
    MS = [{{'$1', '_'}, [], ['$1']}],
    Read = fun(Step) -> fun(read) -> Step; (close) -> ok end end,
    Asked = [
        {close, [t]},
        {lookup, [t, 1]},
        {insert, [t, {1}]},
        {insert_new, [t, {1}]},
        {first, [t]},
        {next, [t, 1]},
        {sync, [t]},
        {info, [t]},
        {info, [t, size]},
        {member, [t, 1]},
        {delete, [t, 1]},
        {delete_object, [t, {1}]},
        {delete_all_objects, [t]},
        {match, [t, '_']},
        {match_object, [t, '_']},
        {match_delete, [t, '_']},
        {select, [t, MS]},
        {select_delete, [t, MS]},
        {update_counter, [t, 1, 1]},
        {foldl, [fun(_, A) -> A end, 0, t]},
        {traverse, [t, fun(_) -> continue end]},
        {safe_fixtable, [t, true]},
        {slot, [t, 0]},
        {open_file, [t, [{foo, 1}]]},
        {open_file, [{t}, []]},
        {open_file, [t, [{type, tree} | Open]]},
        {open_file, [t, [{keypos, 0} | Open]]},
        {open_file, [t, [{access, write} | Open]]},
        {open_file, [t, [{auto_save, -1} | Open]]},
        {open_file, [t, [{type, set} | x]]},
        {open_file, ["/no such directory/at all"]},
        {open_file, [t, [{access, read} | Open]]},
        {open_file, [t, [{file, "/no such directory/t"}]]},
        {open_file, [t, [{estimated_no_objects, 100}, {min_no_slots, default} | Open]]},
        {open_file, [t, [{type, bag} | Open]]},
        {open_file, [t, [{keypos, 2} | Open]]},
        {open_file, [t, [{file, Other}]]},
        {open_file, [t, [{access, read} | Open]]},
        {open_file, [t, [{auto_save, 1000} | Open]]},
        {init_table, [t, Read(end_of_input)]},
        {info, [t, size]},
        {init_table, [t, Read({[{5, 5}, {6, 6}], Read(end_of_input)})]},
        {info, [t, size]},
        {delete_all_objects, [t]},
        {insert, [t, [{1, a}, {2, b}, {3, c}]]},
        {insert, [t, foo]},
        {insert, [t, [{1}, foo]]},
        {insert, [t, {}]},
        {insert, [t, []]},
        {insert_new, [t, [{1, a}, {4, b}]]},
        {insert_new, [t, [{4, b}]]},
        {insert_new, [t, foo]},
        {lookup, [t, 1]},
        {lookup, [t, 1.0]},
        {lookup, [t, 7]},
        {delete, [t, 4]},
        {delete, [t, 4]},
        {delete_object, [t, {9}]},
        {delete_object, [t, 9]},
        {member, [t, 1]},
        {member, [t, 7]},
        {match, [t, {'$1', b}]},
        {match, [t, 99]},
        {match_object, [t, {'$1', b}]},
        {match_object, [t, "no"]},
        {match_delete, [t, {3, '_'}]},
        {match_delete, [t, 7]},
        {select, [t, [{{'$1', '_'}, [{'>', '$1', 1}], ['$1']}]]},
        {select, [t, foo]},
        {select, [foo]},
        {match, [foo]},
        {match_object, [foo]},
        {select, [t, MS, -1]},
        {select_delete, [t, [{{2, '_'}, [], [true]}]]},
        {select_delete, [t, foo]},
        {update_counter, [t, 1, 1]},
        {update_counter, [t, 77, 1]},
        {update_counter, [t, 1, foo]},
        {insert, [t, {1, 1, x}]},
        {update_counter, [t, 1, {2, 3}]},
        {update_counter, [t, 1, 5]},
        {update_counter, [t, 1, {3, 3}]},
        {traverse, [t, fun(O) -> {continue, O} end]},
        {traverse, [t, fun(_) -> continue end]},
        {traverse, [t, fun(_) -> foo end]},
        {traverse, [t, fun(O) -> {done, O} end]},
        {foldl, [fun(O, A) -> [O | A] end, [], t]},
        {foldr, [fun(O, A) -> [O | A] end, [], t]},
        {first, [t]},
        {next, [t, 1]},
        {safe_fixtable, [t, foo]},
        {safe_fixtable, [t, true]},
        {safe_fixtable, [t, false]},
        {slot, [t, foo]},
        {slot, [t, -1]},
        {slot, [t, 100000]},
        {info, [t, type]},
        {info, [t, keypos]},
        {info, [t, size]},
        {info, [t, foo]},
        {sync, [t]},
        {all, []},
        {delete_all_objects, [t]},
        {info, [t, size]},
        {insert, [t, {1, 1}]},
        {close, [t]},
        {close, [t]},
        {close, [t]},
        {open_file, [t, [{access, read} | Open]]},
        {insert, [t, {1, 1}]},
        {insert_new, [t, {1, 1}]},
        {delete, [t, 1]},
        {delete_object, [t, {1, 1}]},
        {update_counter, [t, 1, 1]},
        {select_delete, [t, [{'_', [], [true]}]]},
        {match_delete, [t, '_']},
        {match_delete, [t, {1, '_'}]},
        {lookup, [t, 1]},
        {sync, [t]},
        {close, [t]},
        {open_file, [t, [{type, bag} | Open]]},
        {open_file, [t, [{keypos, 2} | Open]]},
        {close, [t]}
    ],
    Answers = [{Function, N, answer(M, File, Function, Args)}
               || {N, {Function, Args}} <- lists:zip(lists:seq(1, length(Asked)), Asked)],
    ets:delete(E),
    _ = M:close(t),
    Answers.

answer(M, File, F, Args) ->
    try apply(M, F, Args) of
        Answer -> without_file(Answer, File)
    catch
        Class:Reason -> {Class, Reason}
    end.

without_file(File, File) -> file;
without_file(Tuple, File) when is_tuple(Tuple) ->
    list_to_tuple([without_file(Part, File) || Part <- tuple_to_list(Tuple)]);
without_file(Other, _) -> Other.

%% Random programs on both, which close and open their tables now and then.
programs_as_dets_runs_them(Config) ->
    _ = rand:seed(exsss),
    Seed = rand:export_seed(),
    ct:pal("seed ~0p", [Seed]),
    [
        begin
            Open = fun(M) ->
                File = ats_disk_lib:file(Config, atom_to_list(M) ++ atom_to_list(Type)),
                {ok, t} = M:open_file(t, [{file, File}, {type, Type}, {auto_save, infinity}])
            end,
            Both = fun(F, Args) -> [{M, result(M, F, Args)} || M <- [dets, dats]] end,
            [Open(M) || M <- [dets, dats]],
            [
                begin
                    {F, Args} = random_call(Type),
                    [{dets, Expected}, {dats, Got}] = Both(F, Args),
                    ?assertEqual(Expected, Got, {N, Type, F, Args}),
                    N rem 100 =:= 0 andalso
                        begin
                            N rem 300 =:= 0 andalso ok =:= dats:compact(t) orelse dats:flush(t),
                            [ok = M:close(t) || M <- [dets, dats]],
                            [Open(M) || M <- [dets, dats]]
                        end
                end
             || N <- lists:seq(1, 4000)
            ],
            [ok = M:close(t) || M <- [dets, dats]]
        end
     || Type <- [set, bag, duplicate_bag]
    ].

%% Answers without order are put in one. In `dets' the objects of a key of a bag have none either.
result(M, F, Args) ->
    try apply(M, F, [t | Args]) of
        %% 1 and 1.0 are equal when they are sorted.
        List when is_list(List) -> lists:sort([term_to_binary(T) || T <- List]);
        Result -> Result
    catch
        Class:Reason -> {Class, Reason}
    end.

random_call(Type) ->
    case rand:uniform(14) of
        1 -> {insert, [[random_object() || _ <- lists:seq(1, rand:uniform(5))]]};
        2 -> {insert_new, [random_object()]};
        3 -> {insert_new, [[random_object() || _ <- lists:seq(1, rand:uniform(3))]]};
        4 -> {delete, [random_key()]};
        5 -> {delete_object, [random_object()]};
        6 -> {lookup, [random_key()]};
        7 -> {member, [random_key()]};
        8 when Type =:= set -> {update_counter, [random_key(), rand:uniform(5)]};
        9 -> {match_object, [{random_key(), '_'}]};
        10 -> {select, [[{{'$1', '$2'}, [{'>', '$2', rand:uniform(6)}], ['$1']}]]};
        11 -> {match_delete, [{'_', rand:uniform(6)}]};
        12 -> {select_delete, [[{{random_key(), '_'}, [], [true]}]]};
        13 -> {info, [size]};
        _ -> {insert, [random_object()]}
    end.

random_object() -> {random_key(), rand:uniform(6)}.

random_key() ->
    N = rand:uniform(12),
    case rand:uniform(3) of
        1 -> N;
        2 -> N * 1.0;
        3 -> {key, [N]}
    end.

%% ----- survival -----

objects_survive(Config) ->
    [
        begin
            Name = {t, Type},
            Options = [{file, ats_disk_lib:file(Config, atom_to_list(Type))}, {type, Type},
                       {keypos, 2}],
            {ok, Name} = dats:open_file(Name, Options),
            Objects = [{N rem 10, {key, N div 2}, <<"value">>} || N <- lists:seq(1, 1000)],
            ok = dats:insert(Name, Objects),
            ok = dats:delete(Name, {key, 7}),
            All = dats:tab2list(Name),
            Size = dats:info(Name, size),
            ok = dats:close(Name),
            {ok, Name} = dats:open_file(Name, Options),
            ?assertEqual(All, dats:tab2list(Name)),
            ?assertEqual(Size, dats:info(Name, size)),
            ?assertEqual(Size, length(All)),
            ?assertEqual([], dats:lookup(Name, {key, 7})),
            [_ | _] = dats:lookup(Name, {key, 8}),
            ok = dats:close(Name),
            %% Opens the table with its own options, by a new name.
            {ok, Reference} = dats:open_file(ats_disk_lib:file(Config, atom_to_list(Type))),
            ?assertEqual({Type, 2}, {dats:info(Reference, type), dats:info(Reference, keypos)}),
            ?assertEqual(All, dats:tab2list(Reference)),
            ok = dats:close(Reference)
        end
     || Type <- [set, ordered_set, bag, duplicate_bag]
    ].

%% Keys are bytes on disk, and must be the same bytes in another virtual machine, which numbers its
%% atoms in another way.
every_kind_of_key_survives_a_restart(Config) ->
    Literal = [T || {lit, T} <- ats_term_gen:one_of_each()],
    Terms = lists:usort([{a, T} || T <- Literal] ++ [#{T => T} || T <- Literal] ++ Literal),
    [
        begin
            Directory = ats_disk_lib:file(Config, atom_to_list(Type)),
            {ok, Vm, _} = ats_test_lib:start_vm([]),
            %% The atoms of the terms come to be in another order there.
            Reversed = lists:reverse(Terms),
            ok = ats_test_lib:call(Vm, ?MODULE, write_each, [Directory, Type, Reversed]),
            ats_test_lib:stop_vm(Vm),
            {ok, t} = dats:open_file(t, [{file, Directory}, {type, Type}]),
            [?assertMatch([_ | _], [O || {_, V} = O <- dats:lookup(t, T), V =:= T orelse V == T])
             || T <- Terms],
            [ok = dats:delete(t, T) || T <- Terms],
            ?assertEqual([], dats:tab2list(t)),
            ok = dats:close(t)
        end
     || Type <- [set, ordered_set, bag]
    ].

%% Writes in another virtual machine.
write_each(Directory, Type, Terms) ->
    {ok, t} = dats:open_file(t, [{file, Directory}, {type, Type}]),
    [ok = dats:insert(t, {T, T}) || T <- Terms],
    dats:close(t).

%% ----- processes that have it open -----

%% Does something in a process that goes on living.
start_user() ->
    spawn_link(fun Loop() ->
        receive
            {From, Ref, Fun} ->
                From ! {Ref, Fun()},
                Loop()
        end
    end).

in(User, Fun) ->
    ats_test_lib:ask(User, Fun).

the_last_user_closes(Config) ->
    Options = [{file, ats_disk_lib:file(Config, t)}],
    A = start_user(),
    B = start_user(),
    Open = fun() -> dats:open_file(t, Options) end,
    Close = fun() -> dats:close(t) end,
    {ok, t} = in(A, Open),
    {ok, t} = in(A, Open),
    {ok, t} = in(B, Open),
    ?assertEqual(lists:sort([A, A, B]), lists:sort(dats:info(t, users))),
    ?assertEqual({error, not_owner}, dats:close(t)),
    ok = dats:insert(t, {1, all, may}),
    ok = in(A, Close),
    ok = in(A, Close),
    ?assertEqual({error, not_owner}, in(A, Close)),
    ?assertEqual([{1, all, may}], dats:lookup(t, 1)),
    ok = in(B, Close),
    ?assertError(badarg, dats:lookup(t, 1)),
    ?assertEqual(undefined, dats:info(t)),
    [unlink(P) || P <- [A, B]],
    [exit(P, kill) || P <- [A, B]].

users_that_end(Config) ->
    Options = [{file, ats_disk_lib:file(Config, t)}],
    Open = fun() -> dats:open_file(t, Options) end,
    [
        begin
            A = start_user(),
            B = start_user(),
            {ok, t} = in(A, Open),
            {ok, t} = in(B, Open),
            ok = dats:insert(t, {N, N}),
            unlink(A),
            ats_test_lib:kill(A),
            %% The server gets the message about the end before it gets later requests.
            ?assertEqual([B], dats:info(t, users)),
            unlink(B),
            ats_test_lib:kill(B),
            {ok, t} = Open(),
            ?assertEqual([self()], dats:info(t, users)),
            ?assertEqual([{M, M} || M <- lists:seq(1, N)], lists:sort(dats:tab2list(t))),
            ok = dats:close(t)
        end
     || N <- lists:seq(1, 20)
    ].

%% Processes open and close one table as they like: it is there for those that have it.
opening_at_the_same_time(Config) ->
    Options = [{file, ats_disk_lib:file(Config, t)}],
    Work = fun(Me) ->
        fun() ->
            [
                begin
                    {ok, t} = dats:open_file(t, Options),
                    Count = dats:update_counter(t, Me, 1, {Me, 0}),
                    ?assertEqual(N, Count),
                    ok = dats:close(t)
                end
             || N <- lists:seq(1, 50)
            ]
        end
    end,
    _ = ats_test_lib:parallel([Work(Me) || Me <- lists:seq(1, 8)]),
    {ok, t} = dats:open_file(t, Options),
    ?assertEqual([{Me, 50} || Me <- lists:seq(1, 8)], lists:sort(dats:tab2list(t))).

%% ----- options -----

options(Config) ->
    Directory = ats_disk_lib:file(Config, t),
    Taken = [
        {durability, sync},
        {durability, system},
        {durability, {interval, 10}},
        {auto_save, infinity},
        {auto_save, 0},
        {auto_save, 60000},
        {block_size, 64},
        {block_size, 100000},
        {compressed, true},
        {compressed, false},
        {memory, 65536},
        {memory, 1 bsl 30},
        {estimated_no_objects, 1000},
        {min_no_slots, default},
        {max_no_slots, 5},
        {ram_file, false},
        {repair, false},
        {repair, true},
        {version, default}
    ],
    [
        begin
            {ok, t} = dats:open_file(t, [{file, Directory}, Option]),
            ok = dats:insert(t, {N, Option}),
            ok = dats:close(t),
            {ok, t} = dats:open_file(t, [{file, Directory}]),
            ?assertEqual([{N, Option}], dats:lookup(t, N)),
            ok = dats:close(t)
        end
     || {N, Option} <- lists:enumerate(Taken)
    ],
    ?assertEqual({error, {unsupported, {ram_file, true}}}, dats:open_file(t, [{ram_file, true}])),
    Wrong = [
        {durability, always},
        {durability, {interval, 0}},
        {block_size, 63},
        {block_size, big},
        {compressed, lz4},
        compressed,
        {memory, 1},
        {min_no_slots, -1},
        {ram_file, yes},
        {repair, maybe_not},
        {file, {a}},
        {file, "nul\0"},
        {file, [1.5]},
        {keypos, 1.0},
        {type, hash},
        durability,
        {}
    ],
    [?assertError(badarg, dats:open_file(t, [Option])) || Option <- Wrong],
    ?assertError(badarg, dats:open_file(t, not_an_option)),
    {ok, t} = dats:open_file(t, [{file, Directory}, {durability, {interval, 7}}]),
    ?assertEqual({interval, 7}, dats:info(t, durability)),
    %% A name is a directory if it is an atom. It stays that when the path changes.
    {ok, Cwd} = file:get_cwd(),
    ok = file:set_cwd(proplists:get_value(directory, Config)),
    {ok, by_name} = dats:open_file(by_name, []),
    ok = file:set_cwd(Cwd),
    ?assertEqual("by_name", dats:info(by_name, filename)),
    ?assert(dats:is_dats_file(ats_disk_lib:file(Config, by_name))),
    ok = dats:close(by_name),
    %% Names of files as the system has them, in Unicode or not.
    [
        begin
            File = filename:join(ats_disk_lib:file(Config, t) ++ "names", Name),
            ok = filelib:ensure_dir(File),
            {ok, n} = dats:open_file(n, [{file, File}]),
            ok = dats:insert(n, {1}),
            ok = dats:close(n),
            ?assertEqual(true, dats:is_dats_file(File)),
            ?assert(filelib:is_dir(File))
        end
     || Name <- ["plain", "gr\x{fc}n", "\x{3b1}\x{3b2}", <<"raw", 255>>]
    ].

mismatches(Config) ->
    Options = [{file, ats_disk_lib:file(Config, t)}],
    File = ats_disk_lib:file(Config, t),
    {ok, t} = dats:open_file(t, [{type, ordered_set}, {keypos, 2} | Options]),
    %% Options for an open table must be those it has.
    [?assertEqual({error, incompatible_arguments}, dats:open_file(t, Other ++ Options))
     || Other <- [[{type, set}], [{keypos, 1}], [{access, read}]]],
    {ok, t} = dats:open_file(t, [{memory, 1 bsl 20}, {type, ordered_set}, {keypos, 2} | Options]),
    ok = dats:close(t),
    ok = dats:close(t),
    ?assertEqual({error, {type_mismatch, File}}, dats:open_file(t, [{type, set} | Options])),
    ?assertEqual({error, {keypos_mismatch, File}}, dats:open_file(t, [{keypos, 1} | Options])),
    {ok, Ref} = dats:open_file(File),
    ?assertEqual({ordered_set, 2}, {dats:info(Ref, type), dats:info(Ref, keypos)}),
    ok = dats:close(Ref).

other_files_are_no_tables(Config) ->
    Plain = ats_disk_lib:file(Config, plain),
    ok = file:write_file(Plain, "text"),
    Home = ats_disk_lib:file(Config, home),
    ok = filelib:ensure_dir(filename:join(Home, "letter")),
    ok = file:write_file(filename:join(Home, "letter"), "dear"),
    [
        begin
            ?assertEqual({error, {not_a_dats_table, File}}, dats:open_file(t, [{file, File}])),
            ?assertEqual({error, {not_a_dats_table, File}}, dats:open_file(File)),
            ?assertEqual(false, dats:is_dats_file(File))
        end
     || File <- [Plain, Home]
    ],
    %% Nothing was left there.
    ?assertEqual({ok, ["letter"]}, file:list_dir(Home)),
    Missing = ats_disk_lib:file(Config, missing),
    Enoent = {error, {file_error, Missing, enoent}},
    ?assertEqual(Enoent, dats:open_file(Missing)),
    ?assertEqual(Enoent, dats:open_file(t, [{file, Missing}, {access, read}])),
    ?assertEqual(Enoent, dats:is_dats_file(Missing)),
    ?assertEqual(false, filelib:is_file(Missing)),
    ?assertEqual({error, {file_error, {no, name}, badarg}}, dats:is_dats_file({no, name})),
    %% An empty directory can become a table.
    Empty = ats_disk_lib:file(Config, empty),
    ok = file:make_dir(Empty),
    ?assertEqual({error, {file_error, Empty, enoent}}, dats:open_file(Empty)),
    {ok, t} = dats:open_file(t, [{file, Empty}]).

one_directory_one_table(Config) ->
    Directory = ats_disk_lib:file(Config, t),
    {ok, a} = dats:open_file(a, [{file, Directory}]),
    ?assertEqual({error, {in_use, Directory}}, dats:open_file(b, [{file, Directory}])),
    {ok, Vm, _} = ats_test_lib:start_vm([]),
    Elsewhere = ats_test_lib:call(Vm, dats, open_file, [t, [{file, Directory}]]),
    ?assertEqual({error, {in_use, Directory}}, Elsewhere),
    ats_test_lib:stop_vm(Vm),
    [?assert(is_list(unicode:characters_to_list(dats:format_error(E)))) || E <- [Elsewhere]],
    ok = dats:close(a),
    {ok, b} = dats:open_file(b, [{file, Directory}]).

read_only(Config) ->
    File = ats_disk_lib:file(Config, t),
    {ok, t} = dats:open_file(t, [{file, File}, {type, ordered_set}]),
    ok = dats:insert(t, [{N, N} || N <- lists:seq(1, 100)]),
    ok = dats:close(t),
    {ok, t} = dats:open_file(t, [{file, File}, {type, ordered_set}, {access, read}]),
    ?assertEqual(read, dats:info(t, access)),
    Refused = {error, {access_mode, File}},
    [
        ?assertEqual(Refused, apply(dats, F, [t | Args]))
     || {F, Args} <- [
            {insert, [{1}]},
            {insert_new, [{1}]},
            {delete, [1]},
            {delete_object, [{1, 1}]},
            {delete_all_objects, []},
            {take, [1]},
            {take_first, []},
            {update_counter, [1, 1]},
            {update_element, [1, {2, 1}]},
            {select_delete, [[{'_', [], [true]}]]},
            {select_replace, [[{'$1', [], ['$1']}]]},
            {match_delete, ['_']},
            {range_delete, [1, 2]}
        ]
    ],
    ?assertEqual(100, length(dats:tab2list(t))),
    ?assertEqual([{7, 7}], dats:lookup(t, 7)).

types(Config) ->
    S = ats_disk_lib:open(Config, s, [{type, set}]),
    O = ats_disk_lib:open(Config, o, [{type, ordered_set}]),
    B = ats_disk_lib:open(Config, b, [{type, bag}]),
    D = ats_disk_lib:open(Config, d, [{type, duplicate_bag}]),
    Objects = [{1, a}, {1.0, b}, {1, a}, {1, c}],
    [ok = dats:insert(T, Object) || T <- [S, O, B, D], Object <- Objects],
    ?assertEqual([{1, c}], dats:lookup(S, 1)),
    ?assertEqual([{1.0, b}], dats:lookup(S, 1.0)),
    ?assertEqual([{1, c}], dats:lookup(O, 1.0)),
    ?assertEqual([{1, a}, {1, c}], dats:lookup(B, 1)),
    ?assertEqual([{1, a}, {1, a}, {1, c}], dats:lookup(D, 1)),
    ?assertEqual([2, 1, 3, 4], [dats:info(T, size) || T <- [S, O, B, D]]).

descriptions(Config) ->
    T = ats_disk_lib:open(Config, t, []),
    ok = dats:insert(T, [{N, N} || N <- lists:seq(1, 100)]),
    ?assertMatch(
        [{type, set}, {keypos, 1}, {size, 100}, {file_size, _}, {filename, _}],
        dats:info(T)
    ),
    [?assert(is_integer(dats:info(T, Item)) andalso dats:info(T, Item) >= 0)
     || Item <- [size, no_objects, file_size, memory]],
    #{writes := Writes, reads := _} = dats:info(T, stats),
    ?assert(Writes > 0),
    ?assertEqual(false, dats:info(T, safe_fixed)),
    ok = dats:safe_fixtable(T, true),
    ?assertMatch({{_, _, _}, [{_, 1}]}, dats:info(T, safe_fixed)),
    ok = dats:safe_fixtable(T, false),
    ?assertEqual(undefined, dats:info(T, no_such_item)),
    ?assertEqual([T], dats:all()),
    %% The text of an exception.
    try dats:insert(T, not_an_object)
    catch
        error:badarg:Stack ->
            ?assertEqual(
                #{2 => <<"not a tuple">>},
                ats_errors:format_error(badarg, Stack)
            )
    end.

%% ----- several at once -----

%% A list of which a part is wrong is not inserted at all, and others see all of a list or nothing.
lists_are_one(Config) ->
    T = ats_disk_lib:open(Config, t, [{type, ordered_set}]),
    ?assertError(badarg, dats:insert(T, [{1}, {2}, three])),
    ?assertEqual([], dats:tab2list(T)),
    Keys = lists:seq(1, 600),
    ok = dats:insert(T, [{K, 0} || K <- Keys]),
    Write = fun() -> [ok = dats:insert(T, [{K, N} || K <- Keys]) || N <- lists:seq(1, 20)] end,
    Read = fun() ->
        [
            ?assertMatch([_], lists:usort([V || {_, V} <- dats:tab2list(T)]))
         || _ <- lists:seq(1, 100)
        ]
    end,
    _ = ats_test_lib:parallel([Write, Read, Read]),
    ?assertEqual([{K, 20} || K <- Keys], dats:tab2list(T)).

%% Keys that are prefixes of others, objects longer than one read, and both directions.
folds_go_through_everything(Config) ->
    Keys = [<<0:(8 * Zeros)>> || Zeros <- lists:seq(0, 300)] ++ lists:seq(1, 3000) ++
        [{a, K} || K <- lists:seq(1, 50)],
    Size = fun(<<_, _, _>>) -> 3000000;
              (K) when is_integer(K), K rem 500 =:= 0 -> 150000;
              (_) -> 20
           end,
    [
        begin
            ats_disk_lib:open(Config, Type, [{type, Type}, {memory, 1000000}]),
            Copies = case Type of bag -> 3; duplicate_bag -> 2; _ -> 1 end,
            Objects = [{K, N, binary:copy(<<N>>, Size(K))} || K <- Keys, N <- lists:seq(1, Copies)],
            {InFiles, InMemory} = lists:split(length(Objects) div 2, Objects),
            ok = dats:insert(Type, InFiles),
            ok = Arrange(Type),
            ok = dats:insert(Type, InMemory),
            Up = lists:reverse(dats:foldl(fun(O, Os) -> [O | Os] end, [], Type)),
            ?assertEqual(lists:sort(Objects), lists:sort(Up)),
            ?assertEqual(Up, dats:foldr(fun(O, Os) -> [O | Os] end, [], Type)),
            ?assertEqual(Up, dats:tab2list(Type)),
            _ = Type =:= ordered_set andalso ?assertEqual(lists:sort(Objects), Up),
            %% Objects of one key are in the order in which they were inserted.
            [?assertEqual(dats:lookup(Type, K), [O || O <- Up, element(1, O) =:= K])
             || K <- [1, <<0, 0>>, {a, 7}]],
            %% The fold does not see changes by its function.
            Delete = fun(O, N) -> ok = dats:delete(Type, element(1, O)), N + 1 end,
            Seen = dats:foldl(Delete, 0, Type),
            ?assertEqual(length(Objects), Seen),
            ?assertEqual([], dats:tab2list(Type)),
            ats_test_lib:until(fun() -> maps:get(snapshots, dats:info(Type, stats)) =:= 0 end,
                               5000),
            ok = dats:close(Type),
            ok = file:del_dir_r(ats_disk_lib:file(Config, Type))
        end
     || Type <- [set, ordered_set, bag, duplicate_bag],
         Arrange <- [fun dats:flush/1, fun dats:compact/1]
    ],
    ok.

%% Functions that read everything read one moment, in any number of slices.
one_moment(Config) ->
    T = ats_disk_lib:open(Config, t, [{type, ordered_set}]),
    Size = 20000,
    ok = dats:insert(T, [{K, 0} || K <- lists:seq(1, Size)]),
    Fold = fun({K, V}, {N, Sum}) ->
        %% Every object is removed, moved, and changed before the fold comes to it.
        case N of
            0 ->
                ok = dats:insert(T, [{I, 1} || I <- lists:seq(1, Size)]),
                _ = dats:range_delete(T, Size div 2, Size),
                ok = dats:insert(T, [{I, 2} || I <- lists:seq(Size + 1, Size + 100)]);
            _ ->
                ok
        end,
        {N + 1, Sum + V + K - K}
    end,
    ?assertEqual({Size, 0}, dats:foldl(Fold, {0, 0}, T)),
    ?assertEqual(Size div 2 - 1 + 100, dats:info(T, size)),
    Snapshots = fun() -> maps:get(snapshots, dats:info(T, stats)) end,
    NoSnapshot = fun() -> Snapshots() =:= 0 end,
    ats_test_lib:until(NoSnapshot, 5000),
    %% A reader that is killed leaves no snapshot.
    {Reader, Monitor} = spawn_monitor(fun() -> dats:foldl(fun(_, _) -> exit(enough) end, 0, T) end),
    receive {'DOWN', Monitor, process, Reader, enough} -> ok end,
    ats_test_lib:until(NoSnapshot, 5000),
    Killed = spawn(fun() -> dats:foldl(fun(_, _) -> timer:sleep(infinity) end, 0, T) end),
    ats_test_lib:until(fun() -> Snapshots() =:= 1 end, 5000),
    ats_test_lib:kill(Killed),
    ats_test_lib:until(NoSnapshot, 5000).

chunks(Config) ->
    T = ats_disk_lib:open(Config, t, [{type, ordered_set}]),
    Objects = [{{K rem 7, K}, K} || K <- lists:seq(1, 1000)],
    ok = dats:insert(T, Objects),
    Sorted = lists:sort(Objects),
    All = [{'_', [], ['$_']}],
    Chunks = fun(Next) -> chunks_of(select, Next, []) end,
    ?assertEqual(Sorted, Chunks(dats:select(T, All, 37))),
    ?assertEqual(Sorted, Chunks(dats:select(T, All, default))),
    ?assertEqual(lists:reverse(Sorted), Chunks(dats:select_reverse(T, All, 11))),
    ?assertEqual(Sorted, chunks_of(match_object, dats:match_object(T, '_', 100), [])),
    Matches = chunks_of(match, dats:match(T, {'_', '$1'}, 100), []),
    ?assertEqual([[K] || {_, K} <- Sorted], Matches),
    Of3 = [O || {{3, _}, _} = O <- Sorted],
    ?assertEqual(Of3, dats:prefix(T, {3, '_'})),
    ?assertEqual(Of3, Chunks(dats:prefix(T, {3, '_'}, [{limit, 10}]))),
    ?assertEqual(Of3, dats:select(T, [{{{3, '_'}, '_'}, [], ['$_']}])),
    ?assertEqual(length(Of3), dats:select_count(T, [{{{3, '_'}, '_'}, [], [true]}])),
    #{access := ranges, rows_read := Read} = dats:explain(T, [{{{3, '_'}, '_'}, [], ['$_']}]),
    ?assertEqual(length(Of3), Read),
    ?assertEqual('$end_of_table', dats:select(T, [{{x, '_'}, [], ['$_']}], 10)),
    %% A continuation survives being sent to a file.
    {First, Continuation} = dats:select(T, All, 400),
    Sent = binary_to_term(term_to_binary(Continuation)),
    Repaired = dats:repair_continuation(Sent, All),
    ?assertEqual(Sorted, First ++ Chunks(dats:select(Repaired))),
    ok = dats:close(T),
    ?assertError(badarg, dats:select(Continuation)).

chunks_of(_, '$end_of_table', Results) -> Results;
chunks_of(F, {Chunk, Continuation}, Results) ->
    chunks_of(F, dats:F(Continuation), Results ++ Chunk).

queries(Config) ->
    T = ats_disk_lib:open(Config, t, [{type, ordered_set}]),
    ok = dats:insert(T, [{K, K rem 10} || K <- lists:seq(1, 500)]),
    Q = qlc:q([K || {K, 3} <- dats:table(T), K > 200, K < 250]),
    ?assertEqual([203, 213, 223, 233, 243], qlc:e(Q)),
    ?assertMatch([_ | _], string:find(qlc:info(Q), "dats:table")),
    ?assertEqual([{7, 7}], qlc:e(qlc:q([O || {K, _} = O <- dats:table(T), K == 7]))),
    Twice = qlc:q([{K, L} || {K, 1} <- dats:table(T), {L, 2} <- dats:table(T), L =:= K + 1]),
    ?assertEqual(50, length(qlc:e(Twice))),
    ?assertEqual(500, length(qlc:e(dats:table(T, {traverse, first_next})))).

filling(Config) ->
    T = ats_disk_lib:open(Config, t, [{type, bag}]),
    ok = dats:insert(T, {old, old}),
    Step = fun Step(N) ->
        fun
            (read) when N > 5 -> end_of_input;
            (read) -> {[{N, M} || M <- lists:seq(1, 10)], Step(N + 1)};
            (close) -> throw(never_mind)
        end
    end,
    ok = dats:init_table(T, Step(1)),
    ?assertEqual(50, dats:info(T, size)),
    ?assertEqual({error, {init_fun, oops}}, dats:init_table(T, fun(read) -> oops end)),
    Bad = fun(read) -> {[wrong], Step(1)} end,
    ?assertEqual({error, invalid_objects_list}, dats:init_table(T, Bad)),
    ?assertError(badarg, dats:init_table(T, no_function)),
    ?assertMatch(
        {error, {incompatible_bchunk, _}},
        dats:init_table(T, Step(1), [{format, bchunk}])
    ).

%% ----- limits -----

%% Terms that are too long are refused before they are copied, with the limit in words.
too_long(Config) ->
    Part = binary:copy(<<0:8192>>, 65536),
    Long = lists:duplicate(40, Part),
    [
        begin
            Directory = ats_disk_lib:file(Config, Type),
            {ok, t} = dats:open_file(t, [{file, Directory}, {type, Type}]),
            ok = dats:insert(t, {k, short}),
            Before = ats_disk_lib:peak(),
            {error, {system_limit, Directory, Text} = Reason} = dats:insert(t, {k, Long}),
            ?assert(ats_disk_lib:peak() - Before < 1 bsl 30),
            ?assertNotEqual(nomatch, string:find(Text, "2147418112")),
            ?assertNotEqual(nomatch, string:find(dats:format_error(Reason), "2147418112")),
            ?assertEqual([{k, short}], dats:tab2list(t)),
            ok = dats:close(t)
        end
     || Type <- [set, ordered_set, bag]
    ].

%% ----- threads -----

%% Schedulers that are bound to a processor each start the threads of the library.
threads_are_not_bound(Config) ->
    {ok, Vm, _} = ats_test_lib:start_vm(["+sbt", "db"]),
    try
        {ok, t} = ats_test_lib:call(Vm, ?MODULE, open_for_ever, [ats_disk_lib:file(Config, t)]),
        case ats_test_lib:call(Vm, ?MODULE, processors, []) of
            [{_, Only} | _] when Only < 2 -> {skip, "the process may use one processor only"};
            [{_, All} | Threads] -> check_not_bound(All, Threads);
            [] -> {skip, "no list of threads in /proc"}
        end
    after
        ats_test_lib:stop_vm(Vm)
    end.

check_not_bound(All, Threads) ->
    Ours = [T || {"ats" ++ _, _} = T <- Threads],
    Names = lists:usort([Name || {Name, _} <- Ours]),
    ?assertEqual(["ats-disk", "ats_background"], Names -- ["ats-disk-sync", "ats_joiner"]),
    ?assertEqual([], [T || {_, Allowed} = T <- Ours, Allowed =/= All]).

%% The threads of this machine, the first one of the process first, each with the number of
%% processors that it may use.
processors() ->
    Tasks = filelib:wildcard("/proc/" ++ os:getpid() ++ "/task/*"),
    Sorted = lists:sort([{list_to_integer(filename:basename(T)), T} || T <- Tasks]),
    [{name_of(Task), processors_of(Task)} || {_, Task} <- Sorted].

name_of(Task) ->
    {ok, Name} = file:read_file(filename:join(Task, "comm")),
    string:trim(binary_to_list(Name)).

processors_of(Task) ->
    {ok, Status} = file:read_file(filename:join(Task, "status")),
    {match, [List]} = re:run(Status, "Cpus_allowed_list:\\s*(\\S+)", [{capture, [1], list}]),
    lists:sum([count(string:split(Range, "-")) || Range <- string:split(List, ",", all)]).

count([_]) -> 1;
count([Low, High]) -> list_to_integer(High) - list_to_integer(Low) + 1.

%% ----- ends -----

the_application_closes_tables(Config) ->
    Directory = ats_disk_lib:file(Config, t),
    {ok, Vm, _} = ats_test_lib:start_vm([]),
    {ok, t} = ats_test_lib:call(Vm, ?MODULE, open_for_ever, [Directory]),
    [ok = ats_test_lib:call(Vm, dats, insert, [t, {N, N}]) || N <- lists:seq(1, 10)],
    ok = ats_test_lib:call(Vm, application, stop, [ats]),
    %% Nothing is left in the journal, and the directory is free.
    {ok, t} = dats:open_file(t, [{file, Directory}]),
    ?assertEqual(10, length(dats:tab2list(t))),
    ?assertEqual(1, maps:get(runs, dats:info(t, stats))),
    ok = dats:close(t),
    %% The next call that needs it starts it again.
    ?assertEqual([], ats_test_lib:call(Vm, dats, all, [])),
    {ok, t} = ats_test_lib:call(Vm, ?MODULE, open_for_ever, [Directory]),
    ok = ats_test_lib:call(Vm, dats, insert, [t, {11, 11}]),
    ok = ats_test_lib:call(Vm, init, stop, []),
    ats_test_lib:until(fun() -> not is_process_alive(Vm) end, 20000),
    {ok, t} = dats:open_file(t, [{file, Directory}]),
    ?assertEqual(11, length(dats:tab2list(t))),
    ?assertEqual(2, maps:get(runs, dats:info(t, stats))).

%% Opens a table in a process that does not end.
open_for_ever(Directory) ->
    Me = self(),
    spawn(fun() ->
        Me ! {self(), dats:open_file(t, [{file, Directory}])},
        timer:sleep(infinity)
    end),
    receive {Pid, Answer} when is_pid(Pid) -> Answer end.

%% The tables end with the process that owns them; written objects are there.
a_server_that_is_killed(Config) ->
    Directory = ats_disk_lib:file(Config, t),
    [
        begin
            {ok, t} = dats:open_file(t, [{file, Directory}]),
            ok = dats:insert(t, {N, N}),
            ats_test_lib:kill(whereis(ats_disk_tables)),
            ats_test_lib:until(fun() -> whereis(ats_disk_tables) =/= undefined end, 5000),
            ?assertError(badarg, dats:lookup(t, N)),
            Open = fun() -> dats:open_file(t, [{file, Directory}]) end,
            %% The store is let go in the background.
            ats_test_lib:until(fun() -> Open() =:= {ok, t} end, 5000),
            ?assertEqual([{M, M} || M <- lists:seq(1, N)], lists:sort(dats:tab2list(t))),
            ok = dats:close(t),
            %% Pauses, so that the supervisor allows all restarts.
            timer:sleep(2000)
        end
     || N <- lists:seq(1, 3)
    ].

a_vm_that_is_killed(Config) ->
    Directory = ats_disk_lib:file(Config, t),
    {ok, Vm, _} = ats_test_lib:start_vm([]),
    Kill = ats_test_lib:killer_of(Vm),
    {ok, t} = ats_test_lib:call(Vm, ?MODULE, open_for_ever, [Directory]),
    [ok = ats_test_lib:call(Vm, dats, insert, [t, {N, N}]) || N <- lists:seq(1, 100)],
    ok = Kill(),
    {ok, t} = dats:open_file(t, [{file, Directory}]),
    ?assertEqual(100, length(dats:tab2list(t))).

spoilt_files(Config) ->
    Directory = ats_disk_lib:file(Config, t),
    {ok, t} = dats:open_file(t, [{file, Directory}]),
    ok = dats:insert(t, [{N, <<N:8000>>} || N <- lists:seq(1, 100)]),
    ok = dats:close(t),
    Spoil = fun(Name, Change) ->
        File = filename:join(Directory, Name),
        {ok, Good} = file:read_file(File),
        ok = file:write_file(File, Change(Good)),
        fun() -> ok = file:write_file(File, Good) end
    end,
    Flip = fun(Bytes) ->
        %% Files have room behind the written part.
        At = min(150, byte_size(Bytes) - 1),
        <<Before:At/binary, Byte, After/binary>> = Bytes,
        <<Before/binary, (Byte bxor 1), After/binary>>
    end,
    Repair1 = Spoil("table", Flip),
    ?assertMatch({error, {damaged, Directory, _}}, dats:open_file(t, [{file, Directory}])),
    ?assertMatch({error, {damaged, Directory, _}}, dats:is_dats_file(Directory)),
    Repair1(),
    Repair2 = Spoil("manifest", Flip),
    ?assertMatch({error, {damaged, Directory, _}}, dats:open_file(t, [{file, Directory}])),
    Repair2(),
    ok = file:rename(filename:join(Directory, "manifest"), filename:join(Directory, "m")),
    ?assertMatch({error, {damaged, Directory, _}}, dats:open_file(t, [{file, Directory}])),
    ok = file:rename(filename:join(Directory, "m"), filename:join(Directory, "manifest")),
    %% A block is looked at when it is read.
    [Run] = filelib:wildcard("run-*", Directory),
    Repair3 = Spoil(Run, Flip),
    {ok, t} = dats:open_file(t, [{file, Directory}]),
    ?assertMatch({error, {damaged, Directory, _}}, dats:tab2list(t)),
    ?assertMatch({error, {damaged, Directory, _}}, dats:foldl(fun(_, A) -> A end, 0, t)),
    Looked = [dats:lookup(t, N) || N <- lists:seq(1, 100)],
    ?assert(lists:any(fun(Found) -> element_of(Found) =:= damaged end, Looked)),
    ?assert(lists:any(fun is_list/1, Looked)),
    ok = dats:close(t),
    Repair3(),
    {ok, t} = dats:open_file(t, [{file, Directory}]),
    ?assertEqual(100, length(dats:tab2list(t))).

element_of({error, Reason}) -> element(1, Reason);
element_of(_) -> none.

%% Slices that are made again elsewhere, because something was not in memory, count and return each
%% object once.
counts_of_slices(Config) ->
    Directory = ats_disk_lib:file(Config, t),
    Options = [{file, Directory}, {type, ordered_set}, {memory, 65536}, {block_size, 64}],
    Size = 5000,
    Fill = fun() ->
        {ok, t} = dats:open_file(t, Options),
        ok = dats:insert(t, [{K, K rem 2, <<K:200>>} || K <- lists:seq(1, Size)]),
        ok = dats:close(t),
        {ok, t} = dats:open_file(t, Options)
    end,
    Odd = [{{'_', 1, '_'}, [], [true]}],
    Fill(),
    ?assertEqual(Size div 2, dats:select_count(t, Odd)),
    ?assertEqual(Size div 2, dats:select_delete(t, Odd)),
    ?assertEqual(Size div 2, dats:info(t, size)),
    ok = dats:close(t),
    Fill(),
    Taken = dats:select_take(t, Odd),
    ?assertEqual(lists:seq(1, Size, 2), [K || {K, _, _} <- Taken]),
    ok = dats:close(t),
    Fill(),
    Replace = [{{'$1', 1, '$2'}, [], [{{'$1', odd, '$2'}}]}],
    ?assertEqual(Size div 2, dats:select_replace(t, Replace)),
    ?assertEqual(Size div 2, length(dats:match(t, {'$1', odd, '_'}))),
    ?assertEqual(Size, dats:select_delete(t, [{'_', [], [true]}])),
    ?assertEqual(0, dats:info(t, size)),
    ?assertEqual('$end_of_table', dats:first(t)).

hidden_from_ats(Config) ->
    T = ats_disk_lib:open(Config, t, []),
    Before = ats:all(),
    ok = dats:insert(T, {1, 1}),
    ?assertEqual(Before, ats:all()),
    ?assertEqual(undefined, ats:whereis(T)).

%% ----- reads -----

%% A query for a prefix of the key, one of 5^9 rows, reads the blocks of its answer, and one more of
%% each run. The prefix may be in the head or in the guards.
prefixes_read_few_blocks(Config) ->
    %% The bytes of the files tell the number of blocks if these are not compressed.
    Options = [{type, ordered_set}, {compressed, false}],
    ats_disk_lib:open(Config, t, Options),
    Digits = lists:seq(1, 5),
    _ = [
        ok = dats:insert(t, [{{A, B, C, D, E, F, G, H, I}, A + I}
                             || E <- Digits, F <- Digits, G <- Digits, H <- Digits, I <- Digits])
     || A <- Digits, B <- Digits, C <- Digits, D <- Digits
    ],
    ok = dats:compact(t),
    Rows = 1953125,
    #{runs := Runs, file_bytes := Bytes} = dats:info(t, stats),
    %% Nothing is in memory when a query begins.
    Read = fun(Select) ->
        ok = dats:close(t),
        ats_disk_lib:open(Config, t, Options),
        Found = Select(),
        #{cache_misses := Blocks} = dats:info(t, stats),
        {Found, Blocks}
    end,
    Keys = fun(Known) ->
        list_to_tuple(Known ++ [list_to_atom([$$ | integer_to_list(N)])
                                || N <- lists:seq(length(Known) + 1, 9)])
    end,
    [
        begin
            Known = lists:sublist([3, 1, 4, 1, 5, 2, 5, 3, 5], Length),
            Answer = round(math:pow(5, 9 - Length)),
            %% An index has a part for about a hundred blocks.
            Needed = ceil(Answer / Rows * Bytes / 4096),
            Most = Needed + Runs + (1 + Needed div 50),
            InHead = [{{Keys(Known), '_'}, [], [true]}],
            All = Keys([]),
            InGuards = [{{All, '_'}, [{'=:=', element(N, All), lists:nth(N, Known)}
                                      || N <- lists:seq(1, Length)], [true]}],
            [
                begin
                    {Found, Count} = Read(Select),
                    ct:pal("~b known: ~b blocks of ~b", [Length, Count, Most]),
                    ?assertEqual({Length, Answer}, {Length, Found}),
                    ?assert(Count =< Most, {Length, Count, Most})
                end
             || Select <- [
                    fun() -> length(dats:select(t, InHead)) end,
                    fun() -> length(dats:select_reverse(t, InHead)) end,
                    fun() -> length(dats:select(t, InGuards)) end,
                    fun() -> length(dats:select_reverse(t, InGuards)) end,
                    fun() -> dats:select_count(t, InHead) end
                ]
            ]
        end
     || Length <- [2, 4, 6, 8, 9]
    ],
    ok.

%% Checkpoints: a moment of an open table, in another directory.
-module(ats_disk_checkpoint_SUITE).

-include_lib("kernel/include/file.hrl").
-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0, init_per_testcase/2, end_per_testcase/2]).
-export([
    types/1,
    merges/1,
    linked/1,
    other_file_system/1,
    errors/1,
    one_moment/1,
    restored/1
]).

-define(ACCOUNTS, 200).
-define(EACH, 100).

suite() -> [{timetrap, {minutes, 15}}].

all() -> [types, merges, linked, other_file_system, errors, one_moment, restored].

init_per_testcase(Case, Config) ->
    ats_disk_lib:begin_case(Case, Config).

end_per_testcase(_, _) ->
    ats_disk_lib:end_case().

numbers(From, To) -> [{K, K * K} || K <- lists:seq(From, To)].

%% Returns the type and the objects of a closed table.
content(Directory) ->
    {ok, Name} = dats:open_file(Directory),
    Objects = dats:tab2list(Name),
    Type = dats:info(Name, type),
    ok = dats:close(Name),
    {Type, lists:sort(Objects)}.

%% Returns a directory in another file system, if there is one.
elsewhere(Config) ->
    Memory = "/dev/shm/ats-checkpoint-" ++ os:getpid(),
    Here = file:read_file_info(ats_disk_lib:file(Config, "")),
    case {file:make_dir(Memory), file:read_file_info(Memory), Here} of
        {ok, {ok, #file_info{major_device = A}}, {ok, #file_info{major_device = B}}}
          when A =/= B -> {ok, Memory};
        {ok, _, _} -> ok = file:del_dir(Memory), none;
        _ -> none
    end.

inode(Directory, Name) ->
    {ok, #file_info{inode = Inode}} = file:read_file_info(filename:join(Directory, Name)),
    Inode.

runs(Directory) ->
    [filename:basename(Run) || Run <- filelib:wildcard(filename:join(Directory, "run-*"))].

%% Tables of every type, with objects in files and objects in memory only.
types(Config) ->
    [
        begin
            T = ats_disk_lib:open(Config, Type, [{type, Type}, {keypos, 2}]),
            ok = dats:insert(T, numbers(1, 2000)),
            ok = dats:flush(T),
            ok = dats:delete(T, 9),
            ok = dats:insert(T, [{a, 4}, {b, 4}, {b, 4}, {c, 25}]),
            To = ats_disk_lib:file(Config, "to-" ++ atom_to_list(Type)),
            Now = lists:sort(dats:tab2list(T)),
            ?assertEqual(ok, dats:checkpoint(T, To)),
            ok = dats:insert(T, numbers(3000, 3010)),
            ok = dats:compact(T),
            ?assertEqual({Type, Now}, content(To)),
            ?assertEqual({Type, Now}, content(To))
        end
     || Type <- [set, ordered_set, bag, duplicate_bag, ordered_bag, ordered_duplicate_bag]
    ],
    %% A checkpoint of an empty table.
    Empty = ats_disk_lib:open(Config, empty, []),
    To = ats_disk_lib:file(Config, "to-empty"),
    ?assertEqual(ok, dats:checkpoint(Empty, To)),
    ?assertEqual({set, []}, content(To)).

merges(Config) ->
    T = ats_disk_lib:open(Config, t, [{type, ordered_set}, {merge, sum}]),
    [ok = dats:write(T, K, N) || N <- lists:seq(1, 10), K <- lists:seq(1, 100)],
    To = ats_disk_lib:file(Config, to),
    ?assertEqual(ok, dats:checkpoint(T, To)),
    ok = dats:write(T, 1, 1000),
    {ok, Copy} = dats:open_file(To),
    ?assertEqual([{K, 55} || K <- lists:seq(1, 100)], dats:tab2list(Copy)),
    ok = dats:write(Copy, 2, 1),
    ?assertEqual([{2, 56}], dats:lookup(Copy, 2)),
    ?assertEqual([{1, 1055}], dats:lookup(T, 1)),
    ?assertEqual([{2, 55}], dats:lookup(T, 2)).

%% The files of both are the same, and neither sees changes of the other.
linked(Config) ->
    T = ats_disk_lib:open(Config, t, [{type, ordered_set}]),
    ok = dats:insert(T, numbers(1, 1000)),
    ok = dats:flush(T),
    ok = dats:insert(T, numbers(1001, 1100)),
    [First, Second] = [ats_disk_lib:file(Config, Name) || Name <- [first, second]],
    ?assertEqual(ok, dats:checkpoint(T, First)),
    Here = ats_disk_lib:file(Config, t),
    [Run | _] = runs(First),
    ?assertEqual(inode(Here, Run), inode(First, Run)),
    ok = dats:delete_all_objects(T),
    ?assertEqual(ok, dats:checkpoint(T, Second, [{since, First}])),
    ok = dats:compact(T),
    {ok, Copy} = dats:open_file(First),
    ?assertEqual(numbers(1, 1100), dats:tab2list(Copy)),
    ok = dats:insert(Copy, numbers(2000, 2100)),
    ok = dats:compact(Copy),
    ?assertEqual(numbers(1, 1100) ++ numbers(2000, 2100), dats:tab2list(Copy)),
    ?assertEqual([], dats:tab2list(T)),
    ?assertEqual({ordered_set, []}, content(Second)),
    %% A checkpoint of a checkpoint.
    Third = ats_disk_lib:file(Config, third),
    ?assertEqual(ok, dats:checkpoint(Copy, Third)),
    ok = dats:close(Copy),
    ok = dats:destroy(First),
    ?assertEqual({ordered_set, numbers(1, 1100) ++ numbers(2000, 2100)}, content(Third)).

%% Only new files are copied to another file system.
other_file_system(Config) ->
    case elsewhere(Config) of
        {ok, There} -> other_file_system(Config, There);
        none -> {skip, "there is no other file system"}
    end.

other_file_system(Config, There) ->
    try
        T = ats_disk_lib:open(Config, t, [{type, ordered_set}]),
        ok = dats:insert(T, numbers(1, 1000)),
        ok = dats:compact(T),
        [First, Second, Third] = [filename:join(There, Name) || Name <- ["1", "2", "3"]],
        ?assertEqual(ok, dats:checkpoint(T, First)),
        ok = dats:insert(T, numbers(1001, 1010)),
        ok = dats:flush(T),
        ?assertEqual(ok, dats:checkpoint(T, Second, [{since, First}])),
        [Old] = runs(First),
        [Old, New] = lists:sort(runs(Second)),
        ?assertEqual(inode(First, Old), inode(Second, Old)),
        ?assertEqual({ordered_set, numbers(1, 1000)}, content(First)),
        ?assertEqual({ordered_set, numbers(1, 1010)}, content(Second)),
        %% A file with another time of change is another file, also under the same name.
        ok = file:change_time(filename:join(Second, New), {{2001, 1, 1}, {1, 1, 1}}),
        ?assertEqual(ok, dats:checkpoint(T, Third, [{since, Second}])),
        ?assertEqual(inode(Second, Old), inode(Third, Old)),
        ?assertNotEqual(inode(Second, New), inode(Third, New)),
        ?assertEqual({ordered_set, numbers(1, 1010)}, content(Third))
    after
        file:del_dir_r(There)
    end.

errors(Config) ->
    T = ats_disk_lib:open(Config, t, []),
    ok = dats:insert(T, numbers(1, 10)),
    Here = ats_disk_lib:file(Config, t),
    [To, None] = [ats_disk_lib:file(Config, Name) || Name <- [to, none]],
    ?assertEqual({error, {in_use, Here}}, dats:checkpoint(T, Here)),
    Within = filename:join(Here, "within"),
    ?assertEqual({error, {within_table, Within}}, dats:checkpoint(T, Within)),
    %% The directory of another table is no place for it either, nor what leads there.
    U = ats_disk_lib:open(Config, u, []),
    ok = dats:insert(U, {u, 1}),
    OfU = ats_disk_lib:file(Config, u),
    Link = ats_disk_lib:file(Config, link),
    ok = file:make_symlink(OfU, Link),
    {ok, Before} = file:list_dir(OfU),
    M = ats:new(m, []),
    [begin
         Failure = {error, {within_table, Path}},
         ?assertEqual({F, Failure}, {F, dats:checkpoint(T, Path)}),
         ?assertEqual({F, Failure}, {F, ats:checkpoint(M, Path)}),
         ?assertEqual(Path ++ ": the directory is below that of a table",
                      lists:flatten(dats:format_error(Failure))),
         ?assertNot(filelib:is_dir(Path))
     end || F <- [Here, OfU, Link], Path <- [filename:join(F, "in")]],
    {ok, After} = file:list_dir(OfU),
    ?assertEqual(lists:sort(Before), lists:sort(After)),
    ?assertEqual([{u, 1}], dats:tab2list(U)),
    ok = dats:close(U),
    ?assertMatch({error, {within_table, _}}, dats:checkpoint(T, filename:join(OfU, "in"))),
    ?assertEqual(ok, dats:destroy(OfU)),
    ok = file:delete(Link),
    true = ats:delete(M),
    %% The reasons of the system.
    File = ats_disk_lib:file(Config, file),
    ok = file:write_file(File, "x"),
    Loop = ats_disk_lib:file(Config, loop),
    ok = file:make_symlink(Loop, Loop),
    Long = ats_disk_lib:file(Config, lists:duplicate(300, $l)),
    Deep = filename:join([ats_disk_lib:file(Config, deep) | lists:duplicate(900, "deeper")]),
    [?assertEqual({error, {file_error, Path, Posix}}, dats:checkpoint(T, Path))
     || {Path, Posix} <- [{filename:join(File, "in"), enotdir}, {filename:join(Loop, "in"), eloop},
                          {Long, enametoolong}, {filename:join(Long, "in"), enametoolong},
                          {Deep, enametoolong}]],
    Far = filename:join(None, "t"),
    ?assertEqual({error, {file_error, Far, enoent}}, dats:checkpoint(T, Far)),
    ?assertEqual({error, {file_error, None, enoent}},
                 dats:checkpoint(T, To, [{since, None}])),
    ?assertEqual({error, {in_use, Here}}, dats:checkpoint(T, To, [{since, Here}])),
    ?assertNot(filelib:is_dir(To)),
    ok = dats:checkpoint(T, To),
    ?assertEqual({error, {file_error, To, eexist}}, dats:checkpoint(T, To)),
    {ok, Copy} = dats:open_file(To),
    ?assertEqual({error, {in_use, To}}, dats:checkpoint(T, To)),
    ok = dats:close(Copy),
    {ok, r} = dats:open_file(r, [{file, To}, {access, read}]),
    ?assertEqual({error, {access_mode, To}}, dats:checkpoint(r, None)),
    ok = dats:close(r),
    ?assertError(badarg, dats:checkpoint(T, 1)),
    ?assertError(badarg, dats:checkpoint(T, None, [since])),
    ?assertError(badarg, dats:checkpoint(none, None)),
    ?assertNot(filelib:is_dir(None)),
    ?assertEqual(lists:sort(numbers(1, 10)), lists:sort(dats:tab2list(T))).

%% Money moves between accounts in lists of two objects: of each checkpoint the sum is the same, and
%% all is in it that was written before the call.
one_moment(Config) ->
    T = ats_disk_lib:open(Config, t, [{type, ordered_set}, {memory, 4 bsl 20}]),
    Seed = [{K, ?EACH, binary:copy(<<K:64>>, 100)} || K <- lists:seq(1, ?ACCOUNTS)],
    ok = dats:insert(T, Seed),
    Half = ?ACCOUNTS div 2,
    Writers = [
        spawn_link(fun() -> move(T, First, First + Half - 1, rand:seed_s(exsss, First), 0) end)
     || First <- [1, Half + 1]
    ],
    Sums = [
        begin
            ok = dats:insert(T, {now, N}),
            To = ats_disk_lib:file(Config, "to-" ++ integer_to_list(N)),
            ok = dats:checkpoint(T, To),
            {_, Objects} = content(To),
            ?assertEqual({now, N}, lists:keyfind(now, 1, Objects)),
            ok = dats:destroy(To),
            {length(Objects), lists:sum([Money || {_, Money, _} <- Objects])}
        end
     || N <- lists:seq(1, 30)
    ],
    [begin W ! {stop, self()}, receive {moved, W, N} when N > 0 -> ok end end || W <- Writers],
    ?assertEqual([{?ACCOUNTS + 1, ?ACCOUNTS * ?EACH}], lists:usort(Sums)).

move(T, First, Last, Rand, N) ->
    receive
        {stop, Who} -> Who ! {moved, self(), N}
    after 0 ->
        {A, Rand1} = rand:uniform_s(Last - First + 1, Rand),
        {B, Rand2} = rand:uniform_s(Last - First + 1, Rand1),
        Moved = [
            begin
                [{K, Money, Fill}] = dats:lookup(T, K),
                {K, Money + By, Fill}
            end
         || A =/= B, {K, By} <- [{First + A - 1, -1}, {First + B - 1, 1}]
        ],
        ok = dats:insert(T, Moved),
        move(T, First, Last, Rand2, N + 1)
    end.

%% A virtual machine is killed: the checkpoint takes the place of the table.
restored(Config) ->
    Here = ats_disk_lib:file(Config, here),
    To = ats_disk_lib:file(Config, to),
    {ok, Vm, _} = ats_test_lib:start_vm([]),
    Options = [{file, Here}, {type, ordered_set}],
    {ok, t} = ats_test_lib:call(Vm, ats_disk_lib, hold_open, [t, Options]),
    ok = ats_test_lib:call(Vm, dats, insert, [t, numbers(1, 1000)]),
    ok = ats_test_lib:call(Vm, dats, checkpoint, [t, To]),
    ok = ats_test_lib:call(Vm, dats, insert, [t, numbers(1001, 1010)]),
    ats_test_lib:stop_vm(Vm),
    ok = ats_test_lib:until(fun() -> dats:rename_table(To, Here) =:= ok end, 5000),
    ?assertEqual({ordered_set, numbers(1, 1000)}, content(Here)).

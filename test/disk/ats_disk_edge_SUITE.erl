%% Changes by others in the directory of a table: links that are turned, files that are removed or
%% are no files, directories that cannot be written to; and refusals of the system.
-module(ats_disk_edge_SUITE).

-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0, init_per_testcase/2, end_per_testcase/2]).
-export([
    a_link_is_turned/1,
    the_lock_is_that_of_the_directory/1,
    links_are_not_followed/1,
    other_kinds_of_files_are_reported/1,
    reading_writes_nothing/1,
    readers_share_a_table/1,
    paths_are_spelled_differently/1,
    errors_of_the_system_are_told/1,
    descriptors_are_used_up/1
]).
-export([open_many/1, open_in_another_vm/1]).

suite() -> [{timetrap, {minutes, 15}}].

all() ->
    [
        a_link_is_turned,
        the_lock_is_that_of_the_directory,
        links_are_not_followed,
        other_kinds_of_files_are_reported,
        reading_writes_nothing,
        readers_share_a_table,
        paths_are_spelled_differently,
        errors_of_the_system_are_told,
        descriptors_are_used_up
    ].

init_per_testcase(Case, Config) ->
    ats_disk_lib:begin_case(Case, Config).

end_per_testcase(_, _) ->
    ats_disk_lib:end_case().

%% The table stays in the directory that it was opened in, and the one to which its path leads later
%% is not touched.
a_link_is_turned(Config) ->
    [A, B, Link] = [ats_disk_lib:file(Config, Name) || Name <- [a, b, link]],
    ok = file:make_dir(A),
    ok = file:make_dir(B),
    ok = file:make_symlink(A, Link),
    Data = fun(Directory) -> filename:join(Directory, "data") end,
    {ok, other} = dats:open_file(other, [{file, Data(B)}]),
    ok = dats:insert(other, {1, of_b}),
    ok = dats:close(other),
    Before = content(Data(B)),
    {ok, t} = dats:open_file(t, [{file, Data(Link)}]),
    ok = dats:insert(t, {1, of_a}),
    ok = dats:flush(t),
    ok = file:delete(Link),
    ok = file:make_symlink(B, Link),
    ok = dats:insert(t, {2, of_a}),
    ok = dats:flush(t),
    ok = dats:compact(t),
    ok = dats:insert(t, {3, of_a}),
    ok = dats:close(t),
    ?assertEqual(Before, content(Data(B))),
    {ok, t} = dats:open_file(t, [{file, Data(A)}]),
    ?assertEqual([{N, of_a} || N <- [1, 2, 3]], lists:sort(dats:tab2list(t))).

%% Removing files from the directory does not unlock it, for this virtual machine and for another
%% one.
the_lock_is_that_of_the_directory(Config) ->
    T = ats_disk_lib:open(Config, t, []),
    Directory = ats_disk_lib:file(Config, t),
    _ = file:delete(filename:join(Directory, "lock")),
    ok = dats:insert(T, {1, one}),
    ?assertEqual({error, {in_use, Directory}}, dats:open_file(u, [{file, Directory}])),
    ?assertEqual({error, {in_use, Directory}}, in_another_vm(open_in_another_vm, Directory)),
    ok = dats:insert(T, {2, two}),
    ok = dats:close(T),
    ?assertEqual({ok, t}, in_another_vm(open_in_another_vm, Directory)),
    T = ats_disk_lib:open(Config, t, []),
    ?assertEqual([{1, one}, {2, two}], lists:sort(dats:tab2list(T))).

open_in_another_vm(Directory) ->
    dats:open_file(t, [{file, Directory}]).

%% A link with the name of a new file does not redirect the write.
links_are_not_followed(Config) ->
    Precious = ats_disk_lib:file(Config, precious),
    ok = file:write_file(Precious, "precious"),
    Directory = ats_disk_lib:file(Config, t),
    ok = file:make_dir(Directory),
    ok = file:make_symlink(Precious, filename:join(Directory, "table.new")),
    ok = file:make_symlink(Precious, filename:join(Directory, "manifest.new")),
    T = ats_disk_lib:open(Config, t, []),
    ok = dats:insert(T, {1, one}),
    ok = dats:close(T),
    ?assertEqual({ok, <<"precious">>}, file:read_file(Precious)),
    T = ats_disk_lib:open(Config, t, []),
    ?assertEqual([{1, one}], dats:tab2list(T)).

%% Anything else under the name of a file is reported, and not waited for.
other_kinds_of_files_are_reported(Config) ->
    T = ats_disk_lib:open(Config, t, []),
    ok = dats:insert(T, {1, one}),
    ok = dats:close(T),
    Directory = ats_disk_lib:file(Config, t),
    lists:foreach(
        fun({Name, Make, Text}) ->
            File = filename:join(Directory, Name),
            ok = file:rename(File, File ++ ".kept"),
            Make(File),
            lists:foreach(
                fun(Access) ->
                    {error, Reason} = dats:open_file(t, [{file, Directory}, {access, Access}]),
                    ?assertMatch({damaged, Directory, _}, Reason),
                    Said = unicode:characters_to_list(dats:format_error(Reason)),
                    ?assertMatch({_, true}, {Said, string:find(Said, Text) =/= nomatch})
                end,
                [read, read_write]
            ),
            _ = file:delete(File),
            _ = file:del_dir(File),
            ok = file:rename(File ++ ".kept", File)
        end,
        [
            {Name, Make, Text}
         || Name <- ["table", "manifest"],
            {Make, Text} <- [
                {fun(File) -> "" = os:cmd("mkfifo " ++ ats_test_lib:quoted(File)) end, "FIFO"},
                {fun(File) -> ok = file:make_dir(File) end, "directory"},
                {fun(File) -> ok = file:make_symlink("nowhere", File) end, "symbolic link"},
                {fun(File) -> ok = file:make_symlink(File ++ ".kept", File) end, "symbolic link"}
            ]
        ]
    ),
    T = ats_disk_lib:open(Config, t, []),
    ?assertEqual([{1, one}], dats:tab2list(T)).

%% A table that was left by a machine that was killed is read as it is, also where nothing may be
%% written.
reading_writes_nothing(Config) ->
    Directory = ats_disk_lib:file(Config, t),
    ok = in_another_vm(fill_and_die, Directory),
    Before = content(Directory),
    ?assert(lists:any(fun({Name, _}) -> lists:prefix("journal-", Name) end, Before)),
    ok = file:change_mode(Directory, 8#555),
    {ok, t} = dats:open_file(t, [{file, Directory}, {access, read}]),
    ?assertEqual([{N, N} || N <- lists:seq(1, 100)], lists:sort(dats:tab2list(t))),
    ?assertEqual([{7, 7}], dats:lookup(t, 7)),
    ?assertEqual({error, {access_mode, Directory}}, dats:insert(t, {1, 2})),
    ?assertEqual({error, {access_mode, Directory}}, dats:delete(t, 1)),
    ?assertEqual(ok, dats:sync(t)),
    ?assertEqual(ok, dats:close(t)),
    ok = file:change_mode(Directory, 8#755),
    ?assertEqual(Before, content(Directory)),
    None = ats_disk_lib:file(Config, none),
    ?assertEqual(
        {error, {file_error, None, enoent}}, dats:open_file(none, [{file, None}, {access, read}])
    ).

%% Two virtual machines read, and none writes meanwhile.
readers_share_a_table(Config) ->
    T = ats_disk_lib:open(Config, t, []),
    ok = dats:insert(T, {1, one}),
    ok = dats:close(T),
    Directory = ats_disk_lib:file(Config, t),
    T = ats_disk_lib:open(Config, t, [{access, read}]),
    ?assertEqual([{1, one}], in_another_vm(read_all, Directory)),
    ?assertEqual({error, {in_use, Directory}}, in_another_vm(open_in_another_vm, Directory)),
    ok = dats:close(T),
    ?assertEqual({ok, t}, in_another_vm(open_in_another_vm, Directory)).

%% The same name and the same directory are the same table, however the path is written.
paths_are_spelled_differently(Config) ->
    T = ats_disk_lib:open(Config, t, []),
    Directory = ats_disk_lib:file(Config, t),
    Link = ats_disk_lib:file(Config, link),
    ok = file:make_symlink(Directory, Link),
    Base = filename:basename(Directory),
    lists:foreach(
        fun(Path) ->
            ?assertEqual({ok, t}, dats:open_file(t, [{file, Path}])),
            ?assertEqual({error, {in_use, Path}}, dats:open_file(u, [{file, Path}]))
        end,
        [unicode:characters_to_binary(Directory), filename:join([Directory, "..", Base]), Link]
    ),
    Other = ats_disk_lib:file(Config, other),
    ?assertEqual({error, incompatible_arguments}, dats:open_file(t, [{file, Other}])),
    ?assertEqual(lists:duplicate(4, self()), dats:info(t, users)),
    [?assertEqual(ok, dats:close(T)) || _ <- lists:seq(1, 4)],
    ?assertEqual(undefined, dats:info(t)).

%% Errors are those of `dets'.
errors_of_the_system_are_told(Config) ->
    Long = ats_disk_lib:file(Config, lists:duplicate(300, $a)),
    Loop = ats_disk_lib:file(Config, loop),
    ok = file:make_symlink(Loop, Loop),
    Nowhere = ats_disk_lib:file(Config, nowhere),
    ok = file:make_symlink("none", Nowhere),
    lists:foreach(
        fun({Directory, Posix}) ->
            ?assertEqual(
                {error, {file_error, Directory, Posix}}, dats:open_file(t, [{file, Directory}])
            ),
            ?assertEqual(
                {error, {file_error, Directory, Posix}}, dets:open_file(t, [{file, Directory}])
            )
        end,
        [{Long, enametoolong}, {Loop, eloop}]
    ),
    ?assertMatch({error, {file_error, Nowhere, _}}, dats:open_file(t, [{file, Nowhere}])).

%% A lack of file descriptors is reported, and other tables go on.
descriptors_are_used_up(Config) ->
    Answers = in_another_vm(open_many, ats_disk_lib:file(Config, many), "ulimit -n 60; "),
    {Opened, [_ | _] = Failed} =
        lists:partition(fun({_, Answer}) -> Answer =:= written end, Answers),
    ?assert(length(Opened) > 3),
    ?assertEqual([emfile], lists:usort([Posix || {_, {error, {file_error, _, Posix}}} <- Failed])).

open_many(Directory) ->
    ok = file:make_dir(Directory),
    Open = fun(N) ->
        File = filename:join(Directory, integer_to_list(N)),
        case dats:open_file(N, [{file, File}]) of
            {ok, N} -> write(N);
            Failed -> Failed
        end
    end,
    [{N, Open(N)} || N <- lists:seq(1, 40)].

write(N) ->
    case dats:insert(N, {N, N}) of
        ok ->
            [{N, N}] = dats:lookup(N, N),
            written;
        Failed ->
            Failed
    end.

%% ----- tools -----

%% Returns all files of a directory.
content(Directory) ->
    {ok, Names} = file:list_dir(Directory),
    [
        {Name, Bytes}
     || Name <- lists:sort(Names),
        {ok, Bytes} <- [file:read_file(filename:join(Directory, Name))]
    ].

%% Returns the result of a function of this module in another virtual machine, which ends without
%% closing its tables.
in_another_vm(Function, Directory) ->
    in_another_vm(Function, Directory, "").

in_another_vm(Function, Directory, Before) ->
    Paths = [[" -pa ", ats_test_lib:quoted(filename:dirname(code:which(Module)))]
             || Module <- [ats, ?MODULE]],
    Answer = Directory ++ "." ++ atom_to_list(Function),
    Evaluated = io_lib:format(
        "logger:set_primary_config(level, none), R = ~ts, "
        "ok = file:write_file(~tp, term_to_binary(R)), halt(0, [{flush, false}]).",
        [call(Function, Directory), Answer]
    ),
    Output = os:cmd(
        lists:flatten(
            io_lib:format("~serl -noinput~ts -eval ~ts", [
                Before, Paths, ats_test_lib:quoted(lists:flatten(Evaluated))
            ])
        )
    ),
    case file:read_file(Answer) of
        {ok, Bytes} ->
            ok = file:delete(Answer),
            binary_to_term(Bytes);
        {error, _} ->
            ct:fail(Output)
    end.

call(fill_and_die, Directory) ->
    io_lib:format(
        "begin {ok, t} = dats:open_file(t, [{file, ~tp}]), "
        "[ok = dats:insert(t, {N, N}) || N <- lists:seq(1, 50)], ok = dats:flush(t), "
        "[ok = dats:insert(t, {N, N}) || N <- lists:seq(51, 100)], ok end",
        [Directory]
    );
call(read_all, Directory) ->
    io_lib:format(
        "begin {ok, t} = dats:open_file(t, [{file, ~tp}, {access, read}]), dats:tab2list(t) end",
        [Directory]
    );
call(Function, Directory) ->
    io_lib:format("~s:~s(~tp)", [?MODULE, Function, Directory]).

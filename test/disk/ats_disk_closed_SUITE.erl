%% Tables that are not open: removed, renamed, copied, repaired, and made of chunks.
-module(ats_disk_closed_SUITE).

-include_lib("kernel/include/file.hrl").
-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0, init_per_testcase/2, end_per_testcase/2]).
-export([
    destroyed/1,
    renamed/1,
    copied/1,
    open_tables_are_left_alone/1,
    broken_off/1,
    repaired/1,
    a_lost_description/1,
    merges/1,
    chunks/1,
    wrong_chunks/1
]).
-export([log/2]).

suite() -> [{timetrap, {minutes, 15}}].

all() ->
    [
        destroyed,
        renamed,
        copied,
        open_tables_are_left_alone,
        broken_off,
        repaired,
        a_lost_description,
        merges,
        chunks,
        wrong_chunks
    ].

init_per_testcase(Case, Config) ->
    ats_disk_lib:begin_case(Case, Config).

end_per_testcase(_, _) ->
    ats_disk_lib:end_case().

%% A table that is closed, with some files.
make(Config, Name, Options, Objects) ->
    Name = ats_disk_lib:open(Config, Name, Options),
    ok = dats:insert(Name, Objects),
    ok = dats:flush(Name),
    ok = dats:insert(Name, Objects),
    ok = dats:close(Name),
    ats_disk_lib:file(Config, Name).

content(Directory) ->
    {ok, Name} = dats:open_file(Directory),
    Objects = dats:tab2list(Name),
    Type = dats:info(Name, type),
    ok = dats:close(Name),
    {Type, Objects}.

numbers(N) -> [{K, K * K} || K <- lists:seq(1, N)].

destroyed(Config) ->
    Directory = make(Config, t, [], numbers(10)),
    ?assertEqual(ok, dats:destroy(Directory)),
    ?assertEqual({error, enoent}, file:list_dir(Directory)),
    ?assertEqual({error, {file_error, Directory, enoent}}, dats:destroy(Directory)),
    %% Files of others stay.
    Directory = make(Config, t, [], numbers(10)),
    Foreign = ["notes.txt", "run-notes", "journal", "tables"],
    [ok = file:write_file(filename:join(Directory, Name), Name) || Name <- Foreign],
    ok = file:make_dir(filename:join(Directory, "sub")),
    ?assertEqual({ok, lists:sort(["sub" | Foreign])}, dats:destroy(Directory)),
    ?assertEqual({ok, lists:sort(["sub" | Foreign])}, sorted(file:list_dir(Directory))),
    ?assertEqual({error, {not_a_dats_table, Directory}}, dats:destroy(Directory)),
    %% A directory without a table is not touched.
    Plain = ats_disk_lib:file(Config, "plain"),
    ok = file:write_file(Plain, "text"),
    Empty = ats_disk_lib:file(Config, "empty"),
    ok = file:make_dir(Empty),
    [?assertEqual({error, {not_a_dats_table, File}}, dats:destroy(File)) || File <- [Plain, Empty]],
    ?assertEqual({ok, <<"text">>}, file:read_file(Plain)),
    ?assertEqual({ok, []}, file:list_dir(Empty)),
    [?assertError(badarg, dats:destroy(Wrong)) || Wrong <- [1, {t}, "nul\0"]],
    ?assertEqual({error, {file_error, "", enoent}}, dats:destroy("")).

sorted({ok, List}) -> {ok, lists:sort(List)}.

renamed(Config) ->
    From = make(Config, from, [{type, bag}], numbers(10)),
    To = ats_disk_lib:file(Config, to),
    Content = content(From),
    ?assertEqual(ok, dats:rename_table(From, To)),
    ?assertEqual(Content, content(To)),
    ?assertEqual({error, {file_error, From, enoent}}, dats:rename_table(From, To)),
    %% Over another table, and over an empty directory.
    From = make(Config, from, [{type, ordered_set}], numbers(500)),
    Large = content(From),
    ?assertEqual(ok, dats:rename_table(From, To)),
    ?assertEqual(Large, content(To)),
    ?assertEqual({error, enoent}, file:list_dir(From)),
    ok = file:make_dir(From),
    ?assertEqual(ok, dats:rename_table(To, From)),
    ?assertEqual(Large, content(From)),
    %% Renaming replaces nothing but a table.
    Plain = ats_disk_lib:file(Config, "plain"),
    ok = file:write_file(Plain, "text"),
    ?assertEqual({error, {not_a_dats_table, Plain}}, dats:rename_table(From, Plain)),
    Other = make(Config, other, [], numbers(1)),
    ok = file:write_file(filename:join(Other, "notes.txt"), "text"),
    ?assertEqual({error, {not_a_dats_table, Other}}, dats:rename_table(From, Other)),
    %% The name alone does not make a file one of a table.
    Named = ats_disk_lib:file(Config, "named"),
    ok = file:make_dir(Named),
    ok = file:write_file(filename:join(Named, "manifest"), "of a ship"),
    ?assertEqual({error, {not_a_dats_table, Named}}, dats:rename_table(From, Named)),
    ?assertEqual({ok, <<"of a ship">>}, file:read_file(filename:join(Named, "manifest"))),
    %% A table is renamed within its file system.
    Memory = "/dev/shm/" ++ os:getpid() ++ atom_to_list(?MODULE),
    case {file:read_file_info("/dev/shm"), file:read_file_info(From)} of
        {{ok, #file_info{major_device = A}}, {ok, #file_info{major_device = B}}} when A =/= B ->
            ?assertEqual({error, {file_error, From, exdev}}, dats:rename_table(From, Memory));
        _ ->
            ok
    end,
    None = filename:join(ats_disk_lib:file(Config, "none"), "t"),
    ?assertMatch({error, {file_error, _, enoent}}, dats:rename_table(From, None)),
    [begin
         Within = filename:join(Table, "within"),
         ?assertEqual({error, {within_table, Within}}, dats:rename_table(From, Within))
     end || Table <- [From, Other]],
    ?assertEqual({set, numbers(1)}, content(Other)),
    ?assertEqual(Large, content(From)),
    ?assertError(badarg, dats:rename_table(1, To)).

copied(Config) ->
    From = make(Config, from, [{type, bag}, {keypos, 2}], numbers(3000)),
    To = ats_disk_lib:file(Config, to),
    Content = content(From),
    ?assertEqual(ok, dats:copy_table(From, To)),
    ?assertEqual(Content, content(To)),
    ?assertEqual(Content, content(From)),
    ?assertEqual({error, {file_error, To, eexist}}, dats:copy_table(From, To)),
    %% The two have nothing in common.
    ok = dats:destroy(From),
    ?assertEqual(Content, content(To)),
    ok = file:make_dir(From),
    ?assertEqual(ok, dats:copy_table(To, From)),
    ?assertEqual(Content, content(From)),
    None = filename:join(ats_disk_lib:file(Config, "none"), "t"),
    ?assertEqual({error, {file_error, None, enoent}}, dats:copy_table(From, None)),
    Within = filename:join([From, ".", "within"]),
    ?assertEqual({error, {within_table, Within}}, dats:copy_table(From, Within)),
    ?assertEqual({error, enoent}, file:list_dir(Within)),
    %% A copy that fails leaves nothing: a file of the store is a link, which is not followed.
    Spoilt = make(Config, spoilt, [], numbers(10)),
    [Run | _] = filelib:wildcard(filename:join(Spoilt, "run-*")),
    ok = file:rename(Run, Run ++ "x"),
    ok = file:make_symlink(Run ++ "x", Run),
    Fails = ats_disk_lib:file(Config, fails),
    ?assertMatch({error, _}, dats:copy_table(Spoilt, Fails)),
    ?assertEqual({error, enoent}, file:list_dir(Fails)).

open_tables_are_left_alone(Config) ->
    Open = make(Config, open, [], numbers(10)),
    Other = make(Config, other, [], numbers(2)),
    {ok, t} = dats:open_file(t, [{file, Open}]),
    InUse = {error, {in_use, Open}},
    Free = ats_disk_lib:file(Config, free),
    All = fun() ->
        ?assertEqual(InUse, dats:destroy(Open)),
        ?assertEqual(InUse, dats:rename_table(Open, Free)),
        ?assertEqual(InUse, dats:rename_table(Other, Open)),
        ?assertEqual(InUse, dats:copy_table(Open, Free))
    end,
    All(),
    ?assertEqual(lists:sort(numbers(10)), lists:sort(dats:tab2list(t))),
    ok = dats:close(t),
    %% The table is open in another virtual machine.
    {ok, Vm, _} = ats_test_lib:start_vm([]),
    {ok, t} = ats_test_lib:call(Vm, ats_disk_lib, hold_open, [t, [{file, Open}]]),
    All(),
    ats_test_lib:stop_vm(Vm),
    %% The process of the table ends a little later.
    ok = ats_test_lib:until(fun() -> dats:copy_table(Open, Free) =:= ok end, 5000),
    ok = dats:destroy(Free),
    ?assertEqual(10, length(element(2, content(Open)))),
    %% Tables that are only read can be copied.
    {ok, r} = dats:open_file(r, [{file, Open}, {access, read}]),
    ?assertEqual(ok, dats:copy_table(Open, Free)),
    ?assertEqual(InUse, dats:destroy(Open)),
    ok = dats:close(r),
    %% Calls wait for a table that is being closed.
    [
        begin
            Directory = make(Config, closing, [], numbers(N)),
            {Pid, Monitor} = spawn_monitor(fun() ->
                {ok, c} = dats:open_file(c, [{file, Directory}])
            end),
            receive {'DOWN', Monitor, process, Pid, normal} -> ok end,
            %% The server gets the message about the end before it gets later requests.
            _ = dats:info(c, users),
            ?assertEqual(ok, dats:destroy(Directory))
        end
     || N <- lists:seq(1, 20)
    ],
    ?assertEqual(ok, dats:destroy(Free)),
    ?assertEqual(ok, dats:destroy(Other)).

%% A crash leaves a damaged table of one that is being removed; the same call removes it.
broken_off(Config) ->
    Directory = make(Config, t, [], numbers(10)),
    [ok = file:delete(File) || File <- filelib:wildcard(filename:join(Directory, "manifest"))],
    ?assertMatch({error, {damaged, Directory, _}}, dats:open_file(Directory)),
    ?assertEqual(ok, dats:destroy(Directory)),
    Directory = make(Config, t, [], numbers(10)),
    ok = file:write_file(filename:join(Directory, "table"), <<>>),
    ok = file:write_file(filename:join(Directory, "table.new"), <<>>),
    ?assertEqual(ok, dats:destroy(Directory)),
    %% A table of which all files are gone.
    Directory = make(Config, t, [], numbers(10)),
    [ok = file:delete(File) || File <- filelib:wildcard(filename:join(Directory, "*")),
                               filename:basename(File) =/= "table"],
    ?assertMatch({error, {damaged, Directory, _}},
                 dats:open_file(t, [{file, Directory}, {repair, true}])).

%% ----- repair -----

repaired(Config) ->
    [
        begin
            Objects = numbers(5000),
            Options = [{type, Type}, {keypos, 2}],
            Directory = make(Config, Type, Options, Objects),
            Open = fun(Repair) ->
                dats:open_file(Type, [{file, Directory}, {repair, Repair} | Options])
            end,
            %% One that is in order: nothing is lost, and nothing is left beside.
            Before = content(Directory),
            [
                begin
                    {ok, Type} = Open(Repair),
                    ok = dats:close(Type),
                    ?assertEqual(Before, content(Directory)),
                    ?assertEqual([], filelib:wildcard(Directory ++ ".*"))
                end
             || Repair <- [true, false, force]
            ],
            ?assertEqual(
                {error, {access_mode, Directory}},
                dats:open_file(Type, [{file, Directory}, {repair, force}, {access, read} | Options])
            ),
            %% Damage shows when the table is opened.
            ok = file:delete(filename:join(Directory, "manifest")),
            ?assertMatch({error, {damaged, Directory, _}}, dats:open_file(Directory)),
            ?assertEqual({error, {needs_repair, Directory}}, Open(false)),
            Log = start_log(),
            {ok, Type} = Open(true),
            [#{repaired := Directory, records := Records, damaged_files := Kept,
               faults := Faults}] =
                stop_log(Log),
            ?assertEqual(dats:info(Type, size), Records),
            ?assertEqual([<<"manifest: it is missing">>], Faults),
            ok = dats:close(Type),
            ?assertEqual(Before, content(Directory)),
            ?assertEqual([Kept], filelib:wildcard(Directory ++ ".*")),
            ?assertMatch({error, {damaged, Kept, _}}, dats:open_file(Kept)),
            %% Or later.
            [spoil(File) || File <- filelib:wildcard(filename:join(Directory, "run-*"))],
            {ok, Type} = Open(true),
            ?assertMatch({error, {damaged, Directory, _}}, dats:foldl(fun(_, A) -> A end, 0, Type)),
            ok = dats:close(Type),
            Again = start_log(),
            {ok, Type} = Open(force),
            [#{records := Saved, lost_entries := Lost, damaged_files := Second}] = stop_log(Again),
            ?assertEqual(Directory ++ ".damaged-2", Second),
            ?assert(Saved > 0 andalso Lost > 0),
            ?assertEqual(Saved, dats:info(Type, size)),
            ?assertEqual([], lists:usort(dats:tab2list(Type)) -- Objects),
            ok = dats:insert(Type, {0, 0}),
            ok = dats:close(Type)
        end
     || Type <- [set, ordered_set, bag, duplicate_bag]
    ].

%% The options give type and position of keys, unless the records say otherwise.
a_lost_description(Config) ->
    Directory = make(Config, t, [{type, ordered_set}, {keypos, 2}], numbers(100)),
    Before = content(Directory),
    ok = file:write_file(filename:join(Directory, "table"), <<"spoilt">>),
    Open = fun(Options) -> dats:open_file(t, [{file, Directory}, {repair, true} | Options]) end,
    ?assertMatch({error, {damaged, _, _}}, Open([{type, bag}, {keypos, 2}])),
    ?assertMatch({error, {damaged, _, _}}, Open([{type, ordered_set}, {keypos, 1}])),
    {ok, t} = Open([{type, ordered_set}, {keypos, 2}]),
    ok = dats:close(t),
    ?assertEqual(Before, content(Directory)),
    %% Other files are not moved away.
    ok = file:write_file(filename:join(Directory, "notes.txt"), "text"),
    ok = file:delete(filename:join(Directory, "manifest")),
    ?assertEqual({error, {not_a_dats_table, Directory}}, Open([{type, ordered_set}, {keypos, 2}])).

%% Values that are still to be merged are saved; in chunks they are merged.
merges(Config) ->
    [
        begin
            Options = [{type, ordered_set}, {merge, Merge}],
            T = ats_disk_lib:open(Config, t, Options),
            Keys = lists:seq(1, 2000),
            [ok = dats:write(T, K, N) || N <- [1, 2], K <- Keys],
            ok = dats:flush(T),
            [ok = dats:write(T, K, 3) || K <- Keys],
            Copy = ats_disk_lib:open(Config, copy, [{type, ordered_set}]),
            ok = dats:init_table(Copy, provider(all_chunks(T, start)), {format, bchunk}),
            ?assertEqual([{K, 6} || K <- Keys], dats:tab2list(Copy)),
            [ok = dats:write(T, K, 4) || K <- Keys],
            ok = dats:close(T),
            File = ats_disk_lib:file(Config, t),
            ok = file:delete(filename:join(File, "manifest")),
            {ok, T} = dats:open_file(T, [{file, File}, {repair, true} | Options]),
            ?assertEqual([{K, 10} || K <- Keys], dats:tab2list(T)),
            [ok = dats:close(Name) || Name <- [T, Copy]],
            [ok = dats:destroy(ats_disk_lib:file(Config, Name)) || Name <- [t, "t.damaged", copy]]
        end
     || Merge <- [sum, {module, ats_sum_merge}]
    ].

spoil(File) ->
    {ok, <<Start:5/binary, Byte, Rest/binary>>} = file:read_file(File),
    ok = file:write_file(File, <<Start/binary, (Byte bxor 1), Rest/binary>>).

%% Collects the log meanwhile.
start_log() ->
    ok = logger:add_handler(?MODULE, ?MODULE, #{config => self()}),
    self().

stop_log(Pid) when Pid =:= self() ->
    ok = logger:remove_handler(?MODULE),
    logged().

logged() ->
    receive
        {logged, Report} -> [Report | logged()]
    after 0 -> []
    end.

log(#{msg := {report, #{repaired := _} = Report}, meta := #{report_cb := Format}},
    #{config := Pid}) ->
    {Words, Arguments} = Format(Report),
    [_ | _] = lists:flatten(io_lib:format(Words, Arguments)),
    Pid ! {logged, Report};
log(_, _) ->
    ok.

%% ----- chunks -----

chunks(Config) ->
    [
        begin
            Objects = [{K rem 1000, {key, K div 2}, binary:copy(<<K>>, 100)}
                       || K <- lists:seq(1, Size)],
            Options = [{type, Type}, {keypos, 2}],
            T = ats_disk_lib:open(Config, from, Options),
            Copy = ats_disk_lib:open(Config, copy, Options),
            ok = dats:insert(T, Objects),
            ok = dats:insert(Copy, {1, 1}),
            Format = dats:info(T, bchunk_format),
            ?assert(dats:is_compatible_bchunk_format(Copy, Format)),
            Data = all_chunks(T, start),
            ?assertEqual(Format, hd(lists:append(Data))),
            ?assert(lists:all(fun is_binary/1, lists:append(Data))),
            %% Data as lists, tuples and binaries.
            [
                begin
                    ok = dats:init_table(Copy, provider(Shape(Data)), {format, bchunk}),
                    ?assertEqual(dats:tab2list(T), dats:tab2list(Copy)),
                    ok = dats:delete_all_objects(Copy)
                end
             || Shape <- [
                    fun(D) -> D end,
                    fun(D) -> [list_to_tuple(Pieces) || Pieces <- D] end,
                    fun(D) -> lists:append(D) end,
                    fun(D) -> [lists:append(D)] end
                ]
            ],
            [ok = dats:close(Name) || Name <- [T, Copy]],
            [ok = dats:destroy(ats_disk_lib:file(Config, Name)) || Name <- [T, Copy]]
        end
     || Type <- [set, ordered_set, bag, duplicate_bag], Size <- [0, 1, 3000]
    ].

all_chunks(T, Continuation) ->
    case dats:bchunk(T, Continuation) of
        {Next, Data} -> [Data | all_chunks(T, Next)];
        '$end_of_table' -> []
    end.

provider([]) ->
    fun
        (read) -> end_of_input;
        (close) -> ok
    end;
provider([Data | Rest]) ->
    fun
        (read) -> {Data, provider(Rest)};
        (close) -> ok
    end.

wrong_chunks(Config) ->
    T = ats_disk_lib:open(Config, t, []),
    Copy = ats_disk_lib:open(Config, copy, []),
    ok = dats:insert(T, [{K, binary:copy(<<K>>, 1000)} || K <- lists:seq(1, 500)]),
    ok = dats:insert(Copy, {old, 1}),
    [Format | Pieces] = All = lists:append(all_chunks(T, start)),
    [First, Second | Others] = Pieces,
    {Begun, [End]} = lists:split(length(All) - 1, All),
    Bag = ats_disk_lib:open(Config, bag, [{type, bag}]),
    Other = ats_disk_lib:open(Config, other, [{keypos, 2}]),
    <<Magic:10/binary, _Version, Behind/binary>> = Format,
    Flip = fun(Piece, At) ->
        <<Start:At/binary, Byte, Rest/binary>> = Piece,
        <<Start/binary, (Byte bxor 16#40), Rest/binary>>
    end,
    Damaged = [
        {[], missing},
        {Begun, no_end},
        {[Format], no_objects},
        {Pieces, no_format},
        {[Format, Second | Others], one_missing},
        {[Format, First, First, Second | Others], twice},
        {[Format, Second, First | Others], another_order},
        {[Format, End], all_missing},
        {All ++ [End], end_twice},
        {[binary:part(Format, 0, 15) | Pieces], short}
    ] ++
        [{[Format, Flip(First, At), Second | Others], {flipped, At}}
         || At <- [11, 15, 21, 24, 100, byte_size(First) - 1]],
    [
        begin
            Answer = dats:init_table(Copy, provider([Chunks]), [{format, bchunk}]),
            ?assertMatch({{error, {damaged_bchunk, _}}, _}, {Answer, What}),
            ?assertEqual([{old, 1}], dats:tab2list(Copy))
        end
     || {Chunks, What} <- Damaged
    ],
    Incompatible = [
        lists:append(all_chunks(Bag, start)),
        lists:append(all_chunks(Other, start)),
        [<<"text">>],
        [foo],
        [<<Magic/binary, 77, Behind/binary>> | Pieces],
        [term_to_binary({'$hash2', 9}) | Pieces]
    ],
    [
        begin
            Answer = dats:init_table(Copy, provider([Chunks]), [{format, bchunk}]),
            ?assertMatch({error, {incompatible_bchunk, _}}, Answer),
            [_ | _] = unicode:characters_to_list(dats:format_error(Answer)),
            ?assertEqual([{old, 1}], dats:tab2list(Copy))
        end
     || Chunks <- Incompatible
    ],
    ?assertEqual({error, {init_fun, foo}},
                 dats:init_table(Copy, fun(_) -> foo end, {format, bchunk})),
    Improper = fun(read) -> {[Format | First], fun(_) -> end_of_input end} end,
    ?assertMatch({error, {init_fun, _}}, dats:init_table(Copy, Improper, {format, bchunk})),
    {{T, bchunk, Position}, _} = dats:bchunk(T, start),
    [?assertError(badarg, dats:bchunk(T, {T, bchunk, Wrong}))
     || Wrong <- [foo, {}, setelement(2, Position, 1), setelement(3, Position, 0),
                  setelement(3, Position, a), setelement(4, Position, -1),
                  erlang:append_element(Position, 1)]],
    ?assertEqual(true, dats:is_compatible_bchunk_format(Copy, Format)),
    [?assertEqual(false, dats:is_compatible_bchunk_format(Copy, Wrong))
     || Wrong <- [foo, <<>>, First, Flip(Format, 25), dats:info(Bag, bchunk_format),
                  dats:info(Other, bchunk_format)]],
    {Continuation, _} = dats:bchunk(T, start),
    [?assertError(badarg, dats:bchunk(Name, Wrong))
     || {Name, Wrong} <- [{none, start}, {Copy, Continuation}, {T, foo}, {T, '$end_of_table'}]],
    ?assertError(badarg, dats:is_compatible_bchunk_format(none, Format)),
    %% A continuation is one of an opening of a table.
    ToLast = fun Next(From) ->
        {To, _} = dats:bchunk(T, From),
        case dats:bchunk(T, To) of
            '$end_of_table' -> To;
            _ -> Next(To)
        end
    end,
    Last = ToLast(Continuation),
    File = dats:info(T, filename),
    ok = dats:close(T),
    [?assertError(badarg, dats:bchunk(T, Old)) || Old <- [Continuation, Last]],
    {ok, T} = dats:open_file(T, [{file, File}]),
    [?assertError(badarg, dats:bchunk(T, Old)) || Old <- [Continuation, Last]].

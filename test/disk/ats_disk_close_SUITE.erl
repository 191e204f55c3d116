%% Directories of tables that are being closed: opening one waits, under any name.
-module(ats_disk_close_SUITE).

-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0, init_per_testcase/2, end_per_testcase/2]).
-export([
    another_name_waits/1,
    another_spelling_waits/1,
    made_anew/1,
    many_wait/1,
    open_elsewhere/1,
    files_are_closed/1
]).

suite() -> [{timetrap, {minutes, 15}}].

all() ->
    [
        another_name_waits,
        another_spelling_waits,
        made_anew,
        many_wait,
        open_elsewhere,
        files_are_closed
    ].

init_per_testcase(Case, Config) ->
    ats_disk_lib:begin_case(Case, Config).

end_per_testcase(_, _) ->
    ats_disk_lib:end_case().

%% A process opens a table, writes so much that closing takes a while, and is killed.
killed_owner(Directory) ->
    Test = self(),
    Bytes = crypto:strong_rand_bytes(1000),
    {Owner, Monitor} = spawn_monitor(fun() ->
        Name = make_ref(),
        {ok, Name} = dats:open_file(Name, [{file, Directory}]),
        Lists = [[{{K, N}, Bytes} || N <- lists:seq(1, 200)] || K <- lists:seq(1, 100)],
        [ok = dats:insert(Name, List) || List <- Lists],
        Test ! {self(), written},
        timer:sleep(infinity)
    end),
    receive {Owner, written} -> ok end,
    exit(Owner, kill),
    receive {'DOWN', Monitor, process, Owner, killed} -> ok end.

%% The one that opens it gets all that was written.
opens_after_kill(Directory, Spelling) ->
    killed_owner(Directory),
    {ok, Name} = dats:open_file(Spelling),
    ?assertEqual(20000, dats:info(Name, size)),
    ok = dats:close(Name).

another_name_waits(Config) ->
    Directory = ats_disk_lib:file(Config, t),
    [opens_after_kill(Directory, Directory) || _ <- lists:seq(1, 5)].

another_spelling_waits(Config) ->
    Directory = ats_disk_lib:file(Config, t),
    Link = ats_disk_lib:file(Config, link),
    ok = file:make_symlink(Directory, Link),
    Spellings = [
        Link,
        unicode:characters_to_binary(Directory),
        filename:join([Directory, "..", "t"]),
        filename:join(Link, ".")
    ],
    [opens_after_kill(Directory, Spelling) || Spelling <- Spellings].

%% The directory that is there now is another one.
made_anew(Config) ->
    Directory = ats_disk_lib:file(Config, t),
    [
        begin
            killed_owner(Directory),
            ok = removed(Directory),
            {ok, Name} = dats:open_file(make_ref(), [{file, Directory}]),
            ?assertEqual([], dats:tab2list(Name)),
            ok = dats:insert(Name, {1, Round}),
            ok = dats:close(Name),
            {ok, Again} = dats:open_file(Directory),
            ?assertEqual([{1, Round}], dats:tab2list(Again)),
            ok = dats:close(Again)
        end
     || Round <- lists:seq(1, 10)
    ].

%% Files may come while others are removed.
removed(Directory) ->
    case file:del_dir_r(Directory) of
        {error, Reason} when Reason =:= eexist; Reason =:= enotempty; Reason =:= enoent ->
            case filelib:is_dir(Directory) of
                true -> removed(Directory);
                false -> ok
            end;
        Done ->
            Done
    end.

%% One of those that wait gets the table, the others are told that it is in use.
many_wait(Config) ->
    Directory = ats_disk_lib:file(Config, t),
    killed_owner(Directory),
    Test = self(),
    Pids = [
        spawn_link(fun() ->
            Answer = dats:open_file(Directory),
            Test ! {self(), Answer},
            timer:sleep(infinity)
        end)
     || _ <- lists:seq(1, 5)
    ],
    Answers = [receive {Pid, Answer} -> Answer end || Pid <- Pids],
    ?assertMatch([{ok, _}], [Answer || {ok, _} = Answer <- Answers]),
    InUse = {error, {in_use, filename:absname(Directory)}},
    ?assertEqual(lists:duplicate(4, InUse), [Error || {error, _} = Error <- Answers]),
    [
        begin
            unlink(Pid),
            exit(Pid, kill)
        end
     || Pid <- Pids
    ],
    {ok, Name} = dats:open_file(Directory),
    ok = dats:close(Name).

%% A table that stays open is no reason to wait while others are closed.
open_elsewhere(Config) ->
    T = ats_disk_lib:open(Config, t, []),
    killed_owner(ats_disk_lib:file(Config, other)),
    Directory = ats_disk_lib:file(Config, t),
    InUse = {error, {in_use, filename:absname(Directory)}},
    [?assertEqual(InUse, dats:open_file(Directory)) || _ <- lists:seq(1, 20)],
    ok = dats:close(T).

files_are_closed(Config) ->
    Directory = ats_disk_lib:file(Config, t),
    [
        begin
            T = ats_disk_lib:open(Config, t, [{type, Type}]),
            ok = dats:insert(T, [{N, N} || N <- lists:seq(1, 1000)]),
            ok = dats:flush(T),
            1000 = length(dats:tab2list(T)),
            [{7, 7}] = dats:lookup(T, 7),
            ?assert(length(open_files(Directory)) > 0),
            ok = dats:close(T),
            ?assertEqual([], open_files(Directory))
        end
     || Type <- [set, set, set, set]
    ].

open_files(Directory) ->
    {ok, Descriptors} = file:list_dir("/proc/self/fd"),
    Links = [file:read_link(filename:join("/proc/self/fd", D)) || D <- Descriptors],
    [Link || {ok, Link} <- Links, string:prefix(Link, Directory) =/= nomatch].

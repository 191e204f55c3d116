%% Functions of several steps find a named table once: they stay with it when it is renamed, or
%% deleted and another one gets its name, on the way.
-module(ats_names_SUITE).

-include_lib("stdlib/include/assert.hrl").
-include_lib("stdlib/include/qlc.hrl").

-export([all/0, suite/0]).
-export([
    queries/1, no_table_to_query/1, filling/1, files/1, dets_tables/1, descriptions/1, pages/1
]).

-define(NAME, ats_test_named).
-define(OTHER, ats_test_other).
-define(OBJECTS, 2000).

suite() -> [{timetrap, {minutes, 15}}].

all() -> [queries, no_table_to_query, filling, files, dets_tables, descriptions, pages].

%% A query is made for a table, not for a name, however it goes through it.
queries(_) ->
    Old = [{N, old} || N <- lists:seq(1, 500)],
    [
        begin
            T = new(?NAME, ordered_set, Old),
            Handle = ats:table(T, [{n_objects, 10}, {traverse, Traverse}]),
            Query = qlc:q([X || {N, _} = X <- Handle, N > 0]),
            Cursor = qlc:cursor(Query),
            [{_, old} | _] = Begun = qlc:next_answers(Cursor, 5),
            moved = ats:rename(T, moved),
            _ = new(?NAME, set, [{1, new}]),
            Rest = qlc:next_answers(Cursor, all_remaining),
            ok = qlc:delete_cursor(Cursor),
            ?assertEqual(Old, lists:sort(Begun ++ Rest)),
            ?assertEqual(Old, lists:sort(qlc:e(Query))),
            ?assertEqual([{7, old}], qlc:e(qlc:q([X || {7, _} = X <- Handle]))),
            true = ats:delete(moved),
            ?assertError(badarg, qlc:e(Query)),
            true = ats:delete(?NAME)
        end
     || Traverse <- [select, first_next, last_prev, {select, [{'$1', [], ['$1']}]}]
    ],
    ok.

%% Since Erlang/OTP 29 `ets' refuses such a name as well. `qlc' shows the name that was given.
no_table_to_query(_) ->
    ?assertError(badarg, ats:table(?NAME)),
    ?assertError(badarg, ats:table(?NAME, [])),
    T = new(?NAME, set, []),
    ?assertEqual("ats:table(" ++ atom_to_list(?NAME) ++ ")", qlc:info(ats:table(T))),
    true = ats:delete(T).

filling(_) ->
    T = new(?NAME, set, [{gone, old}]),
    Last = fun(read) -> end_of_input end,
    Next = fun(read) -> {[{2, filled}], Last} end,
    First = fun(read) ->
        moved = ats:rename(T, moved),
        _ = new(?NAME, set, [{1, new}]),
        {[{1, filled}], Next}
    end,
    true = ats:init_table(T, First),
    ?assertEqual([{1, filled}, {2, filled}], lists:sort(ats:tab2list(moved))),
    ?assertEqual([{1, new}], ats:tab2list(?NAME)),
    ?assertError(badarg, ats:init_table(no_such_table, fun(read) -> exit(called) end)),
    [true, true] = [ats:delete(D) || D <- [moved, ?NAME]],
    ok.

%% A file has the objects of one table, the number of them, and its description.
files(Config) ->
    File = filename:join(proplists:get_value(priv_dir, Config), "names"),
    while_tables_change_places(fun() ->
        case ats:tab2file(?NAME, File) of
            ok ->
                {ok, Info} = ats:tabfile_info(File),
                Type = proplists:get_value(type, Info),
                Objects = in_file(File),
                ?assertEqual([Type], generations(Objects)),
                ?assertEqual(objects(Type), length(Objects));
            {error, badtab} ->
                ok
        end
    end).

dets_tables(Config) ->
    File = filename:join(proplists:get_value(priv_dir, Config), "names.dets"),
    {ok, Dets} = dets:open_file(make_ref(), [{file, File}]),
    while_tables_change_places(fun() ->
        try ats:to_dets(?NAME, Dets) of
            Dets -> ?assertMatch([_], generations(dets:match_object(Dets, '_')))
        catch
            error:badarg -> ok
        end
    end),
    ok = dets:close(Dets).

descriptions(_) ->
    while_tables_change_places(fun() ->
        [
            ?assertEqual(
                objects(proplists:get_value(type, Info)), proplists:get_value(size, Info)
            )
         || _ <- lists:seq(1, 50), Info <- [ats:info(?NAME)], Info =/= undefined
        ]
    end).

%% The answer `k' deletes the table that is shown.
pages(_) ->
    T = new(?NAME, ordered_set, [{N, old} || N <- lists:seq(1, 100)]),
    Shell = spawn_link(fun() -> shell(T) end),
    Viewer = spawn(fun() ->
        true = group_leader(Shell, self()),
        ats:i(T, 10)
    end),
    Monitor = monitor(process, Viewer),
    receive
        {'DOWN', Monitor, process, Viewer, Reason} -> ?assertEqual(normal, Reason)
    end,
    ?assertEqual(undefined, ats:whereis(moved)),
    ?assertEqual([{1, new}], ats:tab2list(?NAME)),
    true = ats:delete(?NAME).

%% Reads nothing but the answer, before which another table gets the name.
shell(T) ->
    receive
        {io_request, From, Ref, Request} when element(1, Request) =:= get_line ->
            moved = ats:rename(T, moved),
            _ = new(?NAME, set, [{1, new}]),
            From ! {io_reply, Ref, "k\n"},
            shell(T);
        {io_request, From, Ref, _Output} ->
            From ! {io_reply, Ref, ok},
            shell(T)
    end.

%% ----- tables -----

new(Name, Type, Objects) ->
    Name = ats:new(Name, [named_table, public, Type]),
    true = ats:insert(Name, Objects),
    Name.

%% A table cannot be made of the file while another one has its name.
in_file(File) ->
    {ok, Log} = disk_log:open([{name, make_ref()}, {file, File}, {mode, read_only}]),
    Terms = terms(Log, start),
    ok = disk_log:close(Log),
    [Object || Object <- Terms, tuple_size(Object) =:= 3].

terms(Log, From) ->
    case disk_log:chunk(Log, From) of
        eof -> [];
        {Next, Terms} -> [T || T <- Terms, is_tuple(T)] ++ terms(Log, Next)
    end.

generations(Objects) ->
    lists:usort([Generation || {_, Generation, _} <- Objects]).

objects(set) -> ?OBJECTS;
objects(ordered_set) -> ?OBJECTS + 1.

%% Two tables have the name in turn, or none has, while something is done again and again.
while_tables_change_places(Do) ->
    Tables = [
        begin
            Id = ats:new(Name, [public, Type, {keypos, KeyPos}, named_table]),
            Objects = [{N, Type, N} || N <- lists:seq(1, objects(Type))],
            true = ats:insert(Name, Objects),
            Id
        end
     || {Name, Type, KeyPos} <- [{?NAME, set, 1}, {?OTHER, ordered_set, 3}]
    ],
    {Changer, Monitor} = spawn_monitor(fun change_places/0),
    try
        [Do() || _ <- lists:seq(1, 100)]
    after
        exit(Changer, kill),
        receive
            {'DOWN', Monitor, process, Changer, Why} -> ?assertEqual(killed, Why)
        end,
        [ats_test_lib:attempt(fun() -> ats:delete(T) end) || T <- [ats_test_third | Tables]]
    end,
    ok.

change_places() ->
    ats_test_third = ats:rename(?NAME, ats_test_third),
    ?NAME = ats:rename(?OTHER, ?NAME),
    ?OTHER = ats:rename(ats_test_third, ?OTHER),
    change_places().

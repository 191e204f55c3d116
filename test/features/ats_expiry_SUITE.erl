%% Tables that stay small: objects that expire, and bounds of the number of objects.
-module(ats_expiry_SUITE).

-include_lib("stdlib/include/assert.hrl").

-export([all/0]).
-export([gone_for_every_function/1, gone_for_ordered_functions/1, changes_keep_the_deadline/1]).
-export([inserts_begin_again/1, times_of_their_own/1, spread/1, idle/1, locks/1, lists/1, bags/1]).
-export([moments/1, many_at_once/1, memory/1, emptied_tables/1, tables_change_hands/1]).
-export([files_keep_deadlines/1, checkpoints_keep_deadlines/1, deadlines_pass_in_files/1]).
-export([damaged_files/1, keys_that_are_held/1, invalid/1]).
-export([bounds/1, hits/1, bounds_and_reads/1, bounds_and_times/1, bounds_beside_writers/1]).
-export([bounds_and_moments/1, large_lists/1, bounds_of_memory/1]).

-define(TYPES, [set, ordered_set, bag, duplicate_bag, ordered_bag, ordered_duplicate_bag]).
-define(SETS, [set, ordered_set]).

all() ->
    [gone_for_every_function, gone_for_ordered_functions, changes_keep_the_deadline,
     inserts_begin_again, times_of_their_own, spread, idle, locks, lists, bags, moments,
     many_at_once, memory, emptied_tables, tables_change_hands, files_keep_deadlines,
     checkpoints_keep_deadlines, deadlines_pass_in_files, damaged_files, keys_that_are_held,
     invalid, bounds, hits, bounds_and_reads, bounds_and_times, bounds_beside_writers,
     bounds_and_moments, large_lists, bounds_of_memory].

%% Lets all tables believe that this time has passed, so that no test depends on how fast it runs.
pass(Ms) -> ats_nif:advance_clock(Ms).

%% Returns a table whose only object has expired. Nothing removes it before the first call but the
%% background, so that both a record that is there and one that is gone are met.
expired(Options) ->
    T = ats:new(t, [public, {ttl, infinity} | Options]),
    true = ats:insert(T, {key, 1}, #{ttl => 60000}),
    true = pass(60000),
    T.

gone_for_every_function(_) ->
    All = [{'_', [], ['$_']}],
    Calls = [{fun(T) -> ats:lookup(T, key) end, []},
             {fun(T) -> ats:member(T, key) end, false},
             {fun(T) -> ats:lookup_element(T, key, 2, none) end, none},
             {fun(T) -> ats:lookup_many(T, [key]) end, [[]]},
             {fun(T) -> ats:take(T, key) end, []},
             {fun(T) -> ats:take_many(T, [key]) end, [[]]},
             {fun(T) -> ats:first(T) end, '$end_of_table'},
             {fun(T) -> ats:last(T) end, '$end_of_table'},
             {fun(T) -> ats:first_lookup(T) end, '$end_of_table'},
             {fun(T) -> ats:tab2list(T) end, []},
             {fun(T) -> ats:foldl(fun(O, Acc) -> [O | Acc] end, [], T) end, []},
             {fun(T) -> ats:foldr(fun(O, Acc) -> [O | Acc] end, [], T) end, []},
             {fun(T) -> ats:select(T, All) end, []},
             {fun(T) -> ats:select(T, [{{key, '$1'}, [], ['$1']}]) end, []},
             {fun(T) -> ats:select(T, All, 5) end, '$end_of_table'},
             {fun(T) -> ats:select_reverse(T, All) end, []},
             {fun(T) -> ats:select_count(T, [{'_', [], [true]}]) end, 0},
             {fun(T) -> ats:select_delete(T, [{{'_', '_'}, [], [true]}]) end, 0},
             {fun(T) -> ats:select_take(T, All) end, []},
             {fun(T) -> ats:match(T, {'$1', '_'}) end, []},
             {fun(T) -> ats:match_object(T, {key, '_'}) end, []},
             {fun(T) -> ats:take_all_objects(T) end, []},
             {fun(T) -> ats:take_first(T) end, []},
             {fun(T) -> ats:take_last(T) end, []},
             {fun(T) -> ats:info(T, size) end, 0},
             {fun(T) -> ats:ttl(T, key) end, undefined},
             {fun(T) -> ats:touch(T, key, 1000) end, false},
             {fun(T) -> ats:insert_new(T, {key, 2}) end, true},
             {fun(T) -> ats:insert_new(T, [{key, 2}, {other, 3}]) end, true},
             {fun(T) -> ats:insert(T, {key, 2}), ats:lookup(T, key) end, [{key, 2}]},
             {fun(T) -> ats:delete_object(T, {key, 1}), ats:info(T, size) end, 0}],
    [?assertEqual({Type, Number, Expected}, {Type, Number, Call(expired([Type | Options]))})
     || {Number, {Call, Expected}} <- lists:zip(lists:seq(1, length(Calls)), Calls),
        Type <- ?TYPES, Options <- [[], [compressed]]],
    OfSets = [{fun(T) -> ats:update_counter(T, key, 1, {key, 10}) end, 11},
              {fun(T) -> ats:update_element(T, key, {2, x}) end, false},
              {fun(T) -> ats:merge(T, key, 5, sum, {key, 10}) end, 15},
              {fun(T) -> ats:fetch(T, key, fun(key) -> made end) end, made},
              {fun(T) -> ats:select_replace(T, [{{key, '_'}, [], [{{key, x}}]}]) end, 0}],
    [?assertEqual({Type, Number, Expected}, {Type, Number, Call(expired([Type]))})
     || {Number, {Call, Expected}} <- lists:zip(lists:seq(1, length(OfSets)), OfSets),
        Type <- ?SETS],
    [?assertError(badarg, ats:update_counter(expired([Type]), key, 1)) || Type <- ?SETS],
    [?assertError(badarg, ats:lookup_element(expired([Type]), key, 2)) || Type <- ?TYPES].

gone_for_ordered_functions(_) ->
    [begin
         T = ats:new(t, [Type, public, {ttl, infinity}]),
         [ats:insert(T, {Key, v}, #{ttl => case Key rem 3 of 0 -> 1000; _ -> infinity end})
          || Key <- lists:seq(1, 9)],
         pass(1000),
         ?assertEqual([{4, v}, {5, v}, {7, v}], ats:range(T, 3, 7)),
         ?assertEqual(3, ats:range_count(T, 3, 7)),
         ?assertEqual(4, ats:rank(T, 7)),
         ?assertEqual({5, v}, ats:nth(T, 4)),
         ?assertEqual({8, v}, ats:nth(T, -1)),
         ?assertEqual(4, ats:next(T, 2)),
         ?assertEqual(2, ats:prev(T, 4)),
         ?assertEqual([{2, v}], ats:slot(T, 1)),
         ?assertEqual('$end_of_table', ats:slot(T, 6)),
         ?assertEqual(8, ats:last(T)),
         ?assertEqual({1, [{1, v}]}, ats:first_lookup(T)),
         ?assertEqual([{8, v}], ats:take_last(T)),
         ?assertEqual(2, ats:range_delete(T, 2, 4)),
         ?assertEqual([1, 5, 7], ats:range_fold(fun({K, _}, Acc) -> Acc ++ [K] end, [], T, 0, 9)),
         ats:delete(T)
     end || Type <- [ordered_set, ordered_bag, ordered_duplicate_bag]].

changes_keep_the_deadline(_) ->
    [begin
         T = ats:new(t, [Type, public, {ttl, 60000}]),
         Changes = [fun() -> ats:update_counter(T, key, 1) end,
                    fun() -> ats:update_counter(T, key, [{2, 1}, {3, 5}]) end,
                    fun() -> ats:update_element(T, key, {3, 4}) end,
                    fun() -> ats:update_element(T, key, {4, <<0:800>>}) end,
                    fun() -> ats:merge(T, key, 3, sum) end,
                    fun() -> ats:select_replace(T, [{{key, '$1', '$2', '_'}, [],
                                                     [{{key, '$2', '$1', x}}]}]) end,
                    fun() -> ats:insert(T, {key, 1, 2, z}, #{ttl => keep}) end,
                    fun() -> ats:insert(T, [{key, 1, 2, z}, {other, 1}], #{ttl => keep}) end],
         [begin
              true = ats:insert(T, {key, 0, 0, y}, #{ttl => 1000000}),
              Change(),
              Left = ats:ttl(T, key),
              ?assert(Left > 900000 andalso Left =< 1000000)
          end || Change <- Changes ++ Changes],
         %% An object that a change makes has the time of the table.
         7 = ats:update_counter(T, made, 2, {made, 5}),
         ?assert(ats:ttl(T, made) > 50000),
         ats:delete(T)
     end || Type <- ?SETS].

inserts_begin_again(_) ->
    [begin
         T = ats:new(t, [Type, public, {ttl, 60000}]),
         %% The same object, one that differs in a small number, and another one.
         [begin
              true = ats:touch(T, key, 500) orelse Object =:= {key, 1},
              true = ats:insert(T, Object),
              Type =:= bag orelse Type =:= ordered_bag
                  orelse ?assert(ats:ttl(T, key) > 50000)
          end || Object <- [{key, 1}, {key, 1}, {key, 2}, {key, 3}, {key, <<1:800>>}, {key, 4},
                            {key, 4}]],
         ats:delete(T)
     end || Type <- ?TYPES].

times_of_their_own(_) ->
    T = ats:new(t, [public, {ttl, 30000}]),
    ats:insert(T, {own, 1}, #{ttl => infinity}),
    ats:insert(T, {table, 1}),
    ats:insert(T, {long, 1}, #{ttl => 1 bsl 40 - 2}),
    ?assertEqual(infinity, ats:ttl(T, own)),
    ?assert(ats:ttl(T, table) =< 30000),
    ?assert(ats:ttl(T, long) > 1 bsl 39),
    pass(30000),
    ?assertEqual([{long, 1}, {own, 1}], lists:sort(ats:tab2list(T))),
    true = ats:touch(T, own),
    true = ats:touch(T, long, 10000),
    pass(30000),
    ?assertEqual([], ats:tab2list(T)),
    ?assertEqual(3, ats:info(T, expired)),
    ?assertEqual(30000, ats:info(T, ttl)),
    ?assertEqual(false, ats:info(ats:new(u, []), ttl)),
    ?assertEqual({idle, 7}, ats:info(ats:new(u, [{ttl, {idle, 7}}]), ttl)).

%% Objects that are inserted together do not expire together.
spread(_) ->
    T = ats:new(t, [public, {ttl, {spread, 100000, 10}}]),
    ?assertEqual({spread, 100000, 10}, ats:info(T, ttl)),
    true = ats:insert(T, [{Key, v} || Key <- lists:seq(1, 10000)]),
    true = ats:insert(T, {own, v}, #{ttl => 100000}),
    Left = [ats:ttl(T, Key) || Key <- lists:seq(1, 10000)],
    ?assert(lists:max(Left) > 95000 andalso lists:max(Left) =< 100000),
    ?assert(lists:min(Left) < 92000),
    ?assert(length(lists:usort(Left)) > 1000),
    pass(95000),
    Size = ats:info(T, size),
    ?assert(Size > 3000 andalso Size < 7000),
    pass(5000),
    ?assertEqual(0, ats:info(T, size)).

%% Reading an object by its key begins its time again; scans and questions about it do not.
idle(_) ->
    T = ats:new(t, [public, {ttl, {idle, 150000}}]),
    true = ats:insert(T, [{read, 1}, {left, 1}]),
    true = ats:insert(T, {fixed, 1}, #{ttl => 150000}),
    [begin
         pass(15000),
         ?assertEqual([{read, 1}], ats:lookup(T, read)),
         _ = ats:lookup(T, fixed),
         _ = ats:tab2list(T),
         _ = ats:select(T, [{{left, '_'}, [], [true]}]),
         _ = ats:ttl(T, left),
         Number > 5 orelse ?assertEqual(false, ats:insert_new(T, {left, 2}))
     end || Number <- lists:seq(1, 11)],
    ?assertEqual([{read, 1}], ats:tab2list(T)),
    ?assert(ats:ttl(T, read) > 50000),
    pass(150001),
    ?assertEqual([], ats:tab2list(T)).

%% One of several processes has the lock at a time.
locks(_) ->
    T = ats:new(t, [public, {ttl, infinity}]),
    Self = self(),
    Take = fun Take(0) -> ok;
               Take(Left) ->
                   case ats:insert_new(T, {lock, self()}, #{ttl => 5}) of
                       true -> Self ! {taken, self(), erlang:monotonic_time(microsecond)},
                               Take(Left - 1);
                       false -> Take(Left)
                   end
           end,
    Pids = [spawn_link(fun() -> Take(20) end) || _ <- lists:seq(1, 4)],
    Times = [receive {taken, Pid, Time} -> Time end || Pid <- Pids, _ <- lists:seq(1, 20)],
    Sorted = lists:sort(Times),
    Gaps = lists:zipwith(fun(A, B) -> B - A end, lists:droplast(Sorted), tl(Sorted)),
    %% A process may be late to tell, so a gap may be a little shorter than the time.
    ?assert(lists:sum(Gaps) >= 78 * 5000),
    ?assertEqual(80, length(Times)).

%% A list has one deadline, and is gone as a whole.
lists(_) ->
    [begin
         T = ats:new(t, [Type, public, {ttl, infinity}]),
         Objects = [{Key, v} || Key <- lists:seq(1, Number)],
         true = ats:insert_new(T, Objects, #{ttl => 60000}),
         false = ats:insert_new(T, Objects, #{ttl => 60000}),
         ?assertEqual(Number, ats:info(T, size)),
         ?assert(lists:all(fun({Key, _}) -> ats:ttl(T, Key) =< 60000 end, Objects)),
         true = ats:insert(T, Objects, #{ttl => 60000}),
         pass(60000),
         ?assertEqual({Type, Number, 0}, {Type, Number, ats:info(T, size)}),
         ats:delete(T)
     end || Type <- [set, ordered_set, duplicate_bag], Number <- [2, 100, 5000]].

%% All objects of a key of a bag have the deadline of the last insert.
bags(_) ->
    [begin
         T = ats:new(t, [Type, public, {ttl, infinity}]),
         Fill = fun(Number, Time) ->
                        [ats:insert(T, {key, N}, #{ttl => Time}) || N <- lists:seq(1, Number)]
                end,
         [begin
              Fill(Number, 60000),
              ?assertEqual(Number, length(ats:lookup(T, key))),
              ats:delete_object(T, {key, 1}),
              ?assert(ats:ttl(T, key) > 50000),
              ats:insert(T, {key, last}, #{ttl => 60000}),
              pass(60000),
              ?assertEqual([], ats:lookup(T, key)),
              Fill(2, 60000),
              ?assertEqual([{key, 1}, {key, 2}], ats:lookup(T, key)),
              ats:delete(T, key)
          end || Number <- [2, 30, 500, 30]],
         ?assertEqual(0, ats:info(T, size)),
         ats:delete(T)
     end || Type <- [bag, duplicate_bag, ordered_bag, ordered_duplicate_bag]].

%% A snapshot has the objects of its moment, and a difference tells the expired ones as deleted.
moments(_) ->
    [begin
         T = ats:new(t, [Type, public, {ttl, infinity}]),
         ats:insert(T, [{a, 1}, {b, 1}], #{ttl => 60000}),
         ats:insert(T, {c, 1}),
         First = ats:snapshot(T),
         {[_], More} = ats:select(T, [{'_', [], ['$_']}], 1),
         pass(60000),
         Second = ats:snapshot(T),
         ?assertEqual([{a, 1}, {b, 1}, {c, 1}], lists:sort(ats:tab2list(First))),
         ?assertEqual([{a, 1}], ats:lookup(First, a)),
         ?assertEqual(3, ats:info(First, size)),
         ?assertEqual([{c, 1}], ats:tab2list(Second)),
         ?assertEqual([{delete, {a, 1}}, {delete, {b, 1}}], lists:sort(ats:diff(First, Second))),
         %% A select sees one moment, chunk by chunk.
         Count = fun Count('$end_of_table') -> 0;
                     Count({Some, Next}) -> length(Some) + Count(ats:select(Next))
                 end,
         ?assertEqual(2, Count(ats:select(More))),
         ats:delete(T)
     end || Type <- ?TYPES].

%% A great number of objects that expire at the same moment is removed without keeping a scheduler.
many_at_once(_) ->
    T = ats:new(t, [public, {ttl, 60000}]),
    Number = 300000,
    true = ats:insert(T, [{Key, v} || Key <- lists:seq(1, Number)]),
    pass(60000),
    [?assertEqual(0, ats:info(T, size)) || _ <- lists:seq(1, 100)],
    ?assertEqual(Number, ats:info(T, expired)),
    ats:delete(T).

memory(_) ->
    [begin
         T = ats:new(t, [Type, public, {ttl, 60000}]),
         Empty = ats:info(T, memory),
         [ats:insert(T, {Key, <<Key:800>>}) || Key <- lists:seq(1, 10000)],
         ?assert(ats:info(T, memory) > Empty + 100000),
         pass(60000),
         wait(fun() -> ats:info(T, expired) =:= 10000 end),
         ?assert(ats:info(T, memory) < Empty + 20000),
         %% An object that is inserted again and again takes no more.
         [ats:insert(T, {key, Number}, #{ttl => 1000000}) || Number <- lists:seq(1, 50000)],
         ?assert(ats:info(T, memory) < Empty + 20000),
         ats:delete(T)
     end || Type <- ?SETS].

wait(Done) ->
    case Done() of
        true -> ok;
        false -> timer:sleep(5), wait(Done)
    end.

emptied_tables(_) ->
    [begin
         T = ats:new(t, [Type, public, {ttl, 30000}]),
         ats:insert(T, {a, 1}),
         ats:delete_all_objects(T),
         ats:insert(T, {a, 2}),
         ?assertEqual([{a, 2}], ats:take_all_objects(T)),
         ats:insert(T, {a, 3}),
         ?assert(ats:ttl(T, a) =< 30000),
         pass(30000),
         ?assertEqual([], ats:tab2list(T)),
         ats:delete(T)
     end || Type <- ?TYPES].

tables_change_hands(_) ->
    Self = self(),
    {Pid, Monitor} =
        spawn_monitor(fun() ->
                              T = ats:new(moving, [named_table, public, {ttl, 60000},
                                                   {heir, Self, inherited}]),
                              ats:insert(T, {a, 1}),
                              moved = ats:rename(moving, moved)
                      end),
    receive {'DOWN', Monitor, process, Pid, normal} -> ok end,
    receive {'ETS-TRANSFER', _, Pid, inherited} -> ok end,
    ?assertEqual([{a, 1}], ats:lookup(moved, a)),
    pass(60000),
    ?assertEqual([], ats:lookup(moved, a)),
    ats:delete(moved).

%% A file has the options and the deadlines, by the clock of the system, for `ats' alone.
files_keep_deadlines(Config) ->
    File = filename:join(proplists:get_value(priv_dir, Config), "table"),
    [begin
         T = ats:new(t, [Type, public, {ttl, Ttl}, {max_objects, 5000}]),
         Objects = [{Key, Key} || Key <- lists:seq(1, 1000)],
         true = ats:insert(T, Objects),
         true = ats:insert(T, {gone, 1}, #{ttl => 1000}),
         true = ats:insert(T, [{own, 1}, {own, 2}], #{ttl => 500000}),
         true = ats:insert(T, {never, 1}, #{ttl => infinity}),
         pass(1000),
         All = lists:sort(ats:tab2list(T)),
         ok = ats:tab2file(T, File, Options),
         {ok, Read} = ats:file2tab(File, [{verify, true}]),
         ?assertEqual({Ttl, 5000, infinity},
                      {ats:info(Read, ttl), ats:info(Read, max_objects),
                       ats:info(Read, max_memory)}),
         ?assertEqual(All, lists:sort(ats:tab2list(Read))),
         ?assertEqual(infinity, ats:ttl(Read, never)),
         Near = fun(Key, Least, Most) ->
                        Left = ats:ttl(Read, Key),
                        ?assert(Left > Least andalso Left =< Most, {Key, Left})
                end,
         Near(own, 450000, 499000),
         case Ttl of
             infinity -> ?assertEqual(infinity, ats:ttl(Read, 1000));
             {idle, Ms} -> Near(1000, Ms - 50000, Ms);
             _ -> Near(1000, 40000, 99000)
         end,
         ?assertMatch({ok, [{name, t}, {type, Type} | _]}, ats:tabfile_info(File)),
         %% ats reads into a table without times, and ets reads the objects.
         Without = ats:new(t, [Type, public]),
         {ok, Without} = ats:file2tab(File, [{table, Without}]),
         ?assertEqual(All, lists:sort(ats:tab2list(Without))),
         case lists:member(Type, [ordered_bag, ordered_duplicate_bag]) of
             true ->
                 ok;
             false ->
                 {ok, Plain} = ets:file2tab(File, [{verify, true}]),
                 ?assertEqual(All, lists:sort(ets:tab2list(Plain))),
                 ets:delete(Plain)
         end,
         [ats:delete(Table) || Table <- [T, Read, Without]]
     end || Type <- ?TYPES, Ttl <- [100000, {idle, 100000}, {spread, 100000, 10}, infinity],
            Options <- [[], [{extended_info, [md5sum]}]]].

%% A checkpoint has objects that expire when those of the table do.
checkpoints_keep_deadlines(Config) ->
    [begin
         Directory = filename:join(proplists:get_value(priv_dir, Config), "checkpoint" ++ Suffix),
         T = ats:new(t, [Type, public, {ttl, Ttl}]),
         true = ats:insert(T, [{Key, Key} || Key <- lists:seq(1, 300)]),
         true = ats:insert(T, [{own, 1}, {own, 2}], #{ttl => 500000}),
         true = ats:insert(T, {never, 1}, #{ttl => infinity}),
         true = ats:insert(T, {gone, 1}, #{ttl => 1000}),
         pass(1000),
         ok = ats:checkpoint(T, Directory),
         {ok, checkpoint} = dats:open_file(checkpoint, [{file, Directory}, {access, read}]),
         ?assertEqual(lists:sort(ats:tab2list(T)),
                      lists:sort(dats:match_object(checkpoint, '_'))),
         ?assertEqual(infinity, dats:ttl(checkpoint, never)),
         Near = fun(Key) ->
                        {Here, There} = {ats:ttl(T, Key), dats:ttl(checkpoint, Key)},
                        ?assert(Here =:= There orelse abs(Here - There) < 60000, {Here, There})
                end,
         [Near(Key) || Key <- [1, 150, 300, own]],
         ok = dats:close(checkpoint),
         ats:delete(T)
     end || {Suffix, Type, Ttl} <- [{"1", set, 200000}, {"2", ordered_set, {idle, 200000}},
                                    {"3", bag, {spread, 200000, 10}}, {"4", set, infinity}]].

%% The time of objects goes on while they are in a file.
deadlines_pass_in_files(Config) ->
    File = filename:join(proplists:get_value(priv_dir, Config), "table"),
    T = ats:new(t, [public, {ttl, infinity}]),
    true = ats:insert(T, {stays, 1}),
    true = ats:insert(T, {soon, 1}, #{ttl => 3000}),
    Snapshot = ats:snapshot(T),
    ok = ats:tab2file(T, File),
    {ok, First} = ats:file2tab(File),
    ?assert(ats:ttl(First, soon) =< 3000),
    timer:sleep(3000),
    {ok, Second} = ats:file2tab(File, [{verify, true}]),
    ?assertEqual([{stays, 1}], ats:tab2list(Second)),
    %% A snapshot has objects whose time has passed since.
    ok = ats:tab2file(Snapshot, File),
    ?assertEqual(2, length(ats:tab2list(Snapshot))),
    ?assertEqual(0, ats:ttl(Snapshot, soon)),
    {ok, Third} = ats:file2tab(File),
    ?assertEqual(2, ats:info(Third, size)).

%% Bits of the deadlines that are wrong are found.
damaged_files(Config) ->
    File = filename:join(proplists:get_value(priv_dir, Config), "table"),
    T = ats:new(t, [public, {ttl, 100000}]),
    true = ats:insert(T, [{Key, v} || Key <- lists:seq(1, 20)]),
    ok = ats:tab2file(T, File),
    {ok, Bytes} = file:read_file(File),
    <<_:32, Deadline:6/binary, _/binary>> = <<0:32, (erlang:system_time(millisecond)):48>>,
    %% The deadlines begin with the same bytes.
    {Start, _} = binary:match(Bytes, binary:part(Deadline, 0, 2)),
    [begin
         <<Before:At/binary, Byte, After/binary>> = Bytes,
         ok = file:write_file(File, [Before, Byte bxor 4, After]),
         ?assertMatch({error, _}, ats:file2tab(File))
     end || At <- lists:seq(Start + 100, Start + 110)].

%% A fixed table, and a walk that meets keys that expire.
keys_that_are_held(_) ->
    [begin
         T = ats:new(t, [Type, public, {ttl, 30000}]),
         ats:insert(T, [{Key, v} || Key <- lists:seq(1, 100)]),
         ats:safe_fixtable(T, true),
         First = ats:first(T),
         pass(30000),
         ?assertEqual('$end_of_table', ats:next(T, First)),
         ?assertEqual(0, ats:info(T, size)),
         ats:insert(T, {First, w}),
         ?assertEqual([{First, w}], ats:tab2list(T)),
         ats:safe_fixtable(T, false),
         ats:delete(T)
     end || Type <- ?TYPES].

invalid(_) ->
    [?assertError(badarg, ats:new(t, [{ttl, Ttl}]))
     || Ttl <- [0, -1, 1.0, a, keep, default, {idle, 0}, {idle, infinity}, {busy, 1}, 1 bsl 40 - 1,
                1 bsl 80, [], {idle, 1, 2}, {spread, 1000}, {spread, 1000, 0}, {spread, 1000, 100},
                {spread, 0, 10}, {spread, 1000, 5.0}]],
    Without = ats:new(t, [public]),
    With = ats:new(t, [public, {ttl, 60000}]),
    [begin
         ?assertError(badarg, ats:insert(With, {a, 1}, Options)),
         ?assertError(badarg, ats:insert_new(With, {a, 1}, Options))
     end || Options <- [#{}, [], #{ttl => 0}, #{ttl => a}, #{ttl => 1, more => 2}, #{time => 1},
                        [{ttl, 5}], #{ttl => 1 bsl 40}]],
    [?assertError(badarg, ats:touch(With, a, Time)) || Time <- [0, a, 1.5, {idle, 1}]],
    ?assertError(badarg, ats:insert(With, notuple, #{ttl => 1})),
    ?assertError(badarg, ats:insert(With, [{a, 1} | b], #{ttl => 1})),
    ?assertError(badarg, ats:insert(Without, {a, 1}, #{ttl => 1})),
    ?assertError(badarg, ats:insert(Without, [{a, 1}, {b, 1}], #{ttl => keep})),
    ?assertError(badarg, ats:touch(Without, a, 1)),
    ?assertError(badarg, ats:touch(Without, a)),
    ?assertEqual(undefined, ats:ttl(Without, a)),
    true = ats:insert(Without, {a, 1}),
    ?assertEqual(infinity, ats:ttl(Without, a)),
    ?assertEqual([], ats:tab2list(With)),
    ?assertEqual("the objects of the table do not expire: it was made without the option `ttl'",
                 text(fun() -> ats:touch(Without, a, 1) end, 1)),
    ?assertEqual("not a map with the key `ttl' alone",
                 text(fun() -> ats:insert(With, {a, 1}, #{time => 1}) end, 3)).

bounds(_) ->
    [begin
         T = ats:new(t, [Type, public, {max_objects, Max}]),
         [begin
              true = ats:insert(T, {Key, Key}),
              ?assert(ats:info(T, size) =< Max)
          end || Key <- lists:seq(1, 2000)],
         ?assertEqual(Max, ats:info(T, size)),
         ?assertEqual(2000 - Max, ats:info(T, evicted)),
         ?assertEqual(Max, ats:info(T, max_objects)),
         ?assertEqual(infinity, ats:info(T, ttl)),
         ?assertEqual(infinity, ats:ttl(T, 2000)),
         _ = ats:update_counter(T, new, 1, {new, 1}),
         _ = ats:insert_new(T, {newer, 1}),
         _ = ats:merge(T, newest, 1, sum, {newest, 1}),
         ?assertEqual(Max, ats:info(T, size)),
         true = ats:delete_all_objects(T),
         ?assertEqual({0, 0}, {ats:info(T, size), ats:info(T, evicted)}),
         ats:delete(T)
     end || Type <- ?SETS, Max <- [1, 2, 30, 1000]],
    ?assertEqual(infinity, ats:info(ats:new(t, []), max_objects)),
    ?assertEqual(infinity, ats:info(ats:new(t, [{max_objects, infinity}]), max_objects)),
    [?assertError(badarg, ats:new(t, [{max_objects, Max}])) || Max <- [0, -1, a, 1.0, 1 bsl 70]],
    %% The objects of a key of a bag go together.
    Bag = ats:new(t, [bag, {max_objects, 10}]),
    [ats:insert(Bag, {Key, N}) || Key <- lists:seq(1, 9), N <- [1, 2, 3]],
    ?assert(ats:info(Bag, size) =< 10),
    [?assertEqual(3, length(ats:lookup(Bag, Key))) || {Key, 1} <- ats:tab2list(Bag), Key < 9].

%% Hits and misses are estimated, also of reads in a rhythm.
hits(_) ->
    [begin
         T = ats:new(t, [Type, public, {max_objects, 1000}]),
         ?assertEqual({0, 0}, {ats:info(T, hits), ats:info(T, misses)}),
         true = ats:insert(T, [{Key, v} || Key <- lists:seq(0, 511)]),
         [_ = Read(T, Key) || _ <- lists:seq(1, 200), Key <- lists:seq(0, 1023)],
         Hits = ats:info(T, hits),
         Misses = ats:info(T, misses),
         ?assert(Hits > 85000 andalso Hits < 120000, Hits),
         ?assert(Misses > 85000 andalso Misses < 120000, Misses),
         true = ats:delete_all_objects(T),
         ?assertEqual({0, 0}, {ats:info(T, hits), ats:info(T, misses)}),
         ats:delete(T)
     end || Type <- ?SETS,
            Read <- [fun ats:lookup/2, fun ats:member/2,
                     fun(T, Key) -> ats:lookup_element(T, Key, 2, none) end]],
    Without = ats:new(t, []),
    ?assertEqual({false, false}, {ats:info(Without, hits), ats:info(Without, misses)}).

%% Objects that are read stay; those of a scan go.
bounds_and_reads(_) ->
    [begin
         T = ats:new(t, [Type, public, {max_objects, 1000}]),
         Hot = lists:seq(1, 300),
         Read = fun() -> [ats:member(T, Key) || Key <- Hot] end,
         [ats:insert(T, {Key, hot}) || Key <- Hot],
         Read(), Read(),
         [begin
              ats:insert(T, {Key, cold}),
              Key rem 200 =:= 0 andalso Read()
          end || Key <- lists:seq(1000, 20000)],
         ?assert(lists:all(fun(X) -> X end, Read())),
         ats:delete(T)
     end || Type <- ?SETS].

%% Both limits hold, and what has expired goes first or does not count.
bounds_and_times(_) ->
    [begin
         T = ats:new(t, [Type, public, {max_objects, 100}, {ttl, 60000}]),
         [ats:insert(T, {Key, v}) || Key <- lists:seq(1, 500)],
         ?assertEqual(100, ats:info(T, size)),
         ?assertEqual({400, 0}, {ats:info(T, evicted), ats:info(T, expired)}),
         pass(60000),
         ?assertEqual(0, ats:info(T, size)),
         [ats:insert(T, {Key, v}) || Key <- lists:seq(1, 100)],
         ?assertEqual(100, ats:info(T, size)),
         ?assertEqual({400, 100}, {ats:info(T, evicted), ats:info(T, expired)}),
         ats:delete(T)
     end || Type <- ?SETS].

bounds_beside_writers(_) ->
    [begin
         T = ats:new(t, [Type, public, {max_objects, 200}]),
         Write = fun() -> [case rand:uniform(4) of
                               1 -> ats:lookup(T, rand:uniform(1000));
                               2 -> ats:delete(T, rand:uniform(1000));
                               _ -> ats:insert(T, {rand:uniform(1000), v})
                           end || _ <- lists:seq(1, 50000)] end,
         Pids = [spawn_monitor(Write) || _ <- lists:seq(1, 4)],
         [?assert(ats:info(T, size) =< 204) || _ <- lists:seq(1, 2000)],
         [receive {'DOWN', Monitor, process, Pid, Why} -> normal = Why end
          || {Pid, Monitor} <- Pids],
         ?assert(ats:info(T, size) =< 200),
         ats:delete(T)
     end || Type <- ?SETS].

%% A snapshot keeps what is evicted, and a difference tells it as deleted.
bounds_and_moments(_) ->
    [begin
         T = ats:new(t, [Type, public, {max_objects, 5}]),
         ats:insert(T, [{Key, v} || Key <- lists:seq(1, 5)]),
         Snapshot = ats:snapshot(T),
         [ats:insert(T, {Key, v}) || Key <- lists:seq(11, 15)],
         ?assertEqual([{Key, v} || Key <- lists:seq(1, 5)], lists:sort(ats:tab2list(Snapshot))),
         Differences = ats:diff(Snapshot, ats:snapshot(T)),
         ?assertEqual(5, length([Key || {delete, {Key, v}} <- Differences])),
         ?assertEqual(5, length([Key || {insert, {Key, v}} <- Differences])),
         ats:delete(T)
     end || Type <- ?SETS].

%% A list is inserted whole before objects are removed.
large_lists(_) ->
    [begin
         T = ats:new(t, [Type, public, {max_objects, 100}]),
         true = ats:insert(T, [{Key, v} || Key <- lists:seq(1, Number)]),
         ?assertEqual(100, ats:info(T, size)),
         ?assertEqual(Number - 100, ats:info(T, evicted)),
         ats:delete(T)
     end || Type <- ?SETS, Number <- [101, 400, 100000]].

bounds_of_memory(_) ->
    Word = erlang:system_info(wordsize),
    [begin
         T = ats:new(t, [Type, public, {max_memory, Max} | Options]),
         [begin
              true = ats:insert(T, {Key, lists:seq(1, rand:uniform(9))}),
              Key rem 50 =/= 0 orelse ?assert(ats:info(T, memory) * Word =< Max + Max div 100)
          end || Key <- lists:seq(1, 10000)],
         ?assert(ats:info(T, memory) * Word > Max div 10 * 8),
         ?assert(ats:info(T, evicted) > 1000),
         ?assertEqual(Max, ats:info(T, max_memory)),
         Size = ats:info(T, size),
         ?assertError(badarg, ats:insert(T, {1, lists:seq(1, Max)})),
         ?assertEqual("the objects of a key are larger than the option `max_memory' of the table "
                      "says",
                      text(fun() -> ats:insert(T, {1, lists:seq(1, Max)}) end, 1)),
         ?assertEqual(Size, ats:info(T, size)),
         ats:delete(T)
     end || Type <- ?SETS, Max <- [50000, 300000],
            Options <- [[], [{ttl, 100000}], [compressed, {ttl, {idle, 100000}}]]],
    ?assertEqual(infinity, ats:info(ats:new(t, []), max_memory)),
    [?assertError(badarg, ats:new(t, [{max_memory, Max}])) || Max <- [0, -1, a, 1.0, 1 bsl 70]].

%% Returns the explanation of the argument with this number.
text(Call, Number) ->
    try Call() of
        Result -> error({no_error, Result})
    catch error:Reason:Stack ->
            unicode:characters_to_list(maps:get(Number, ats_errors:format_error(Reason, Stack)))
    end.

%% Objects that expire, in tables on disk.
-module(ats_disk_expiry_SUITE).

-include_lib("stdlib/include/assert.hrl").

-export([all/0, init_per_testcase/2, end_per_testcase/2]).
-export([gone_for_every_function/1, gone_for_ordered_functions/1, changes_keep_the_deadline/1]).
-export([bags/1, times_of_their_own/1, merges/1, moments/1, copies/1, opened_again/1, room/1]).
-export([kills/1, many/1, walks/1, fetches/1, repaired/1, invalid/1]).
-export([killed/1]).

-define(SETS, [set, ordered_set]).
-define(BAGS, [bag, duplicate_bag, ordered_bag, ordered_duplicate_bag]).
-define(TYPES, ?SETS ++ ?BAGS).
-define(MINUTE, 60000).

all() ->
    [gone_for_every_function, gone_for_ordered_functions, changes_keep_the_deadline,
     bags, times_of_their_own, merges, moments, copies, opened_again, room, kills, many, walks,
     fetches, repaired, invalid].

init_per_testcase(Case, Config) ->
    ats_disk_lib:begin_case(Case, Config).

end_per_testcase(_, _) ->
    ats_disk_lib:end_case().

%% Lets all tables believe that this time has passed, so that no test depends on how fast it runs.
pass(Ms) -> ats_nif:advance_clock(Ms).

open(Config, Options) ->
    ats_disk_lib:open(Config, t, Options).

%% Opens a new table.
new(Config, Options) ->
    _ = dats:close(t),
    _ = file:del_dir_r(ats_disk_lib:file(Config, t)),
    open(Config, Options).

%% Places in which an object can be that has expired: in memory, in a file, above an older object in
%% another file, and in a file of compacted ones.
places() ->
    [fun(_) -> ok end,
     fun dats:flush/1,
     fun(T) -> ok = dats:flush(T), ok = dats:insert(T, {key, 1}, #{ttl => ?MINUTE}) end,
     fun dats:compact/1].

%% Lets the only object of a table expire.
expire(T, Place) ->
    ok = dats:delete_all_objects(T),
    ok = dats:insert(T, {key, 0}),
    ok = dats:flush(T),
    ok = dats:insert(T, {key, 1}, #{ttl => ?MINUTE}),
    ok = Place(T),
    true = pass(?MINUTE),
    T.

gone_for_every_function(Config) ->
    All = [{'_', [], ['$_']}],
    Calls = [{fun(T) -> dats:lookup(T, key) end, []},
             {fun(T) -> dats:member(T, key) end, false},
             {fun(T) -> dats:lookup_element(T, key, 2, none) end, none},
             {fun(T) -> dats:take(T, key) end, []},
             {fun(T) -> dats:first(T) end, '$end_of_table'},
             {fun(T) -> dats:last(T) end, '$end_of_table'},
             {fun(T) -> dats:first_lookup(T) end, '$end_of_table'},
             {fun(T) -> dats:last_lookup(T) end, '$end_of_table'},
             {fun(T) -> dats:slot(T, 0) end, '$end_of_table'},
             {fun(T) -> dats:tab2list(T) end, []},
             {fun(T) -> dats:foldl(fun(O, Acc) -> [O | Acc] end, [], T) end, []},
             {fun(T) -> dats:foldr(fun(O, Acc) -> [O | Acc] end, [], T) end, []},
             {fun(T) -> dats:traverse(T, fun(O) -> {continue, O} end) end, []},
             {fun(T) -> dats:select(T, All) end, []},
             {fun(T) -> dats:select(T, [{{key, '$1'}, [], ['$1']}]) end, []},
             {fun(T) -> dats:select(T, All, 5) end, '$end_of_table'},
             {fun(T) -> dats:select_reverse(T, All) end, []},
             {fun(T) -> dats:select_count(T, [{'_', [], [true]}]) end, 0},
             {fun(T) -> dats:select_count(T, [{{key, '_'}, [], [true]}]) end, 0},
             {fun(T) -> dats:select_delete(T, [{{'_', '_'}, [], [true]}]) end, 0},
             {fun(T) -> dats:select_delete(T, [{'_', [], [true]}]) end, 0},
             {fun(T) -> dats:select_take(T, All) end, []},
             {fun(T) -> dats:match(T, {'$1', '_'}) end, []},
             {fun(T) -> dats:match_object(T, {key, '_'}) end, []},
             {fun(T) -> dats:take_all_objects(T) end, []},
             {fun(T) -> dats:take_first(T) end, []},
             {fun(T) -> dats:take_last(T) end, []},
             {fun(T) -> dats:info(T, size) end, 0},
             {fun(T) -> dats:info(T, no_keys) end, 0},
             {fun(T) -> dats:info(dats:snapshot(T), size) end, 0},
             {fun(T) -> dats:lookup(dats:snapshot(T), key) end, []},
             {fun(T) -> dats:tab2list(dats:snapshot(T)) end, []},
             {fun(T) -> ets:tab2list(dats:to_ets(T, ets:new(e, []))) end, []},
             {fun(T) -> qlc:e(dats:table(T)) end, []},
             {fun(T) -> dats:ttl(T, key) end, undefined},
             {fun(T) -> dats:touch(T, key) end, false},
             {fun(T) -> dats:touch(T, key, 1000) end, false},
             {fun(T) -> dats:insert_new(T, {key, 2}) end, true},
             {fun(T) -> dats:insert_new(T, {key, 2}, #{ttl => 5}) end, true},
             {fun(T) -> dats:insert_new(T, [{key, 2}, {other, 3}]) end, true},
             {fun(T) -> ok = dats:insert(T, {key, 2}), dats:lookup(T, key) end, [{key, 2}]},
             {fun(T) -> ok = dats:delete_object(T, {key, 1}), dats:info(T, size) end, 0},
             {fun(T) -> ok = dats:delete_object(T, {key, 0}), dats:lookup(T, key) end, []},
             {fun(T) -> ok = dats:delete(T, key), dats:lookup(T, key) end, []},
             {fun(T) -> ok = dats:insert(T, [{key, 2}, {o, 1}]), dats:lookup(T, key) end,
              [{key, 2}]},
             {fun(T) -> ok = dats:insert(T, {key, 2}), dats:info(T, size) end, 1}],
    OfSets = [{fun(T) -> dats:update_counter(T, key, 1, {key, 10}) end, 11},
              {fun(T) -> dats:update_element(T, key, {2, x}) end, false},
              {fun(T) -> dats:merge(T, key, 5, sum, {key, 10}) end, 15},
              {fun(T) -> dats:merge(T, key, 5, sum) end, 5},
              {fun(T) -> dats:fetch(T, key, fun(key) -> made end) end, made},
              {fun(T) -> dats:read(T, key) end, not_found},
              {fun(T) -> dats:select_replace(T, [{{key, '_'}, [], [{{key, x}}]}]) end, 0}],
    [begin
         T = new(Config, [{type, Type}, {ttl, infinity}]),
         OfType = case lists:member(Type, ?SETS) of
                      true -> Calls ++ OfSets;
                      false -> Calls
                  end,
         [?assertEqual({Type, Number, Expected}, {Type, Number, Call(expire(T, Place))})
          || {Number, {Call, Expected}} <- lists:zip(lists:seq(1, length(OfType)), OfType),
             Place <- places()],
         [?assertError(badarg, Call(expire(T, Place)))
          || Call <- [fun(_) -> dats:update_counter(T, key, 1) end,
                      fun(_) -> dats:lookup_element(T, key, 2) end],
             Place <- places()]
     end || Type <- ?TYPES].

gone_for_ordered_functions(Config) ->
    [begin
         T = new(Config, [{type, Type}, {ttl, infinity}]),
         [ok = dats:insert(T, {Key, v},
                           #{ttl => case Key rem 3 of 0 -> 1000; _ -> infinity end})
          || Key <- lists:seq(1, 9)],
         ok = Write(T),
         pass(1000),
         ?assertEqual([{4, v}, {5, v}, {7, v}], dats:range(T, 3, 7)),
         ?assertEqual([{7, v}, {5, v}, {4, v}], dats:range(T, 3, 7, [reverse])),
         ?assertEqual(3, dats:range_count(T, 3, 7)),
         ?assertEqual(4, dats:rank(T, 7)),
         ?assertEqual({5, v}, dats:nth(T, 4)),
         ?assertEqual({8, v}, dats:nth(T, -1)),
         ?assertEqual({4, v}, dats:range_nth(T, 3, 7, 1)),
         ?assertEqual(4, dats:next(T, 2)),
         ?assertEqual(4, dats:next(T, 3)),
         ?assertEqual(2, dats:prev(T, 4)),
         ?assertEqual([{2, v}], dats:slot(T, 1)),
         ?assertEqual('$end_of_table', dats:slot(T, 6)),
         ?assertEqual(8, dats:last(T)),
         ?assertEqual({1, [{1, v}]}, dats:first_lookup(T)),
         ?assertEqual([{8, v}], dats:take_last(T)),
         ?assertEqual(2, dats:range_delete(T, 2, 4)),
         Keys = fun({K, _}, Acc) -> Acc ++ [K] end,
         ?assertEqual([1, 5, 7], dats:range_fold(Keys, [], T, 0, 9))
     end || Write <- [fun(_) -> ok end, fun dats:flush/1, fun dats:compact/1],
            Type <- [ordered_set, ordered_bag, ordered_duplicate_bag]].

changes_keep_the_deadline(Config) ->
    [begin
         T = new(Config, [{type, Type}, {ttl, ?MINUTE}]),
         Changes = [fun() -> dats:update_counter(T, key, 1) end,
                    fun() -> dats:update_counter(T, key, [{2, 1}, {3, 5}]) end,
                    fun() -> dats:update_counter(T, key, 0.5) end,
                    fun() -> dats:update_element(T, key, {3, 4}) end,
                    fun() -> dats:merge(T, key, 3, sum) end,
                    fun() -> dats:select_replace(T, [{{key, '$1', '$2', '_'}, [],
                                                      [{{key, '$2', '$1', x}}]}]) end,
                    fun() -> dats:insert(T, {key, 1, 2, z}, #{ttl => keep}) end,
                    fun() -> dats:insert(T, [{key, 1, 2, z}, {o, 1}], #{ttl => keep}) end],
         [begin
              ok = dats:insert(T, {key, 0, 0, y}, #{ttl => 1000000}),
              pass(100000),
              Change(),
              Left = dats:ttl(T, key),
              ?assert(Left > 800000 andalso Left =< 900000)
          end || Change <- Changes],
         %% An object that a change makes has the time of the table, and an insert begins anew.
         7 = dats:update_counter(T, made, 2, {made, 5}),
         ?assert(dats:ttl(T, made) > 50000 andalso dats:ttl(T, made) =< ?MINUTE),
         ok = dats:insert(T, {key, 1}),
         ?assert(dats:ttl(T, key) > 50000 andalso dats:ttl(T, key) =< ?MINUTE)
     end || Type <- ?SETS].

%% All objects of a key of a bag have the deadline of the last insert.
bags(Config) ->
    [begin
         T = new(Config, [{type, Type}, {ttl, infinity}]),
         Fill = fun(Number, Time) ->
                        [ok = dats:insert(T, {key, N}, #{ttl => Time})
                         || N <- lists:seq(1, Number)]
                end,
         [begin
              Fill(Number, ?MINUTE),
              ok = Write(T),
              ?assertEqual(Number, length(dats:lookup(T, key))),
              ok = dats:delete_object(T, {key, 1}),
              ?assert(dats:ttl(T, key) > 50000),
              ?assertEqual(Number - 1, dats:info(T, size)),
              ok = dats:insert(T, [{key, last}, {key, more}], #{ttl => 2 * ?MINUTE}),
              pass(?MINUTE),
              ?assertEqual(Number + 1, length(dats:lookup(T, key))),
              ok = dats:delete_object(T, {key, last}),
              pass(?MINUTE),
              ?assertEqual([], dats:lookup(T, key)),
              ?assertEqual(0, dats:info(T, size)),
              Fill(2, ?MINUTE),
              ?assertEqual([{key, 1}, {key, 2}], dats:lookup(T, key)),
              ok = dats:delete(T, key)
          end || Number <- [2, 100], Write <- [fun(_) -> ok end, fun dats:compact/1]],
         [ok = dats:insert(T, {K, N}) || K <- [a, b], N <- [1, 2, 2, 3]],
         Objects = lists:sort(dats:tab2list(T)),
         ok = dats:close(T),
         T = open(Config, []),
         ?assertEqual(Objects, lists:sort(dats:tab2list(T))),
         Size = case string:find(atom_to_list(Type), "duplicate") of
                    nomatch -> 6;
                    _ -> 8
                end,
         ?assertEqual({Type, Size, 2}, {Type, dats:info(T, size), dats:info(T, no_keys)}),
         ?assertEqual(Size div 2, length(dats:take(T, a))),
         ?assertEqual(Size div 2, length(dats:take_all_objects(T)))
     end || Type <- ?BAGS].

times_of_their_own(Config) ->
    T = new(Config, [{ttl, 30000}]),
    ok = dats:insert(T, {own, 1}, #{ttl => infinity}),
    ok = dats:insert(T, {table, 1}),
    ok = dats:insert(T, {long, 1}, #{ttl => 1 bsl 40 - 2}),
    ?assertEqual(infinity, dats:ttl(T, own)),
    ?assert(dats:ttl(T, table) =< 30000),
    ?assert(dats:ttl(T, long) > 1 bsl 39),
    pass(30000),
    ?assertEqual([{long, 1}, {own, 1}], lists:sort(dats:tab2list(T))),
    true = dats:touch(T, own),
    true = dats:touch(T, long, 10000),
    ok = dats:insert(T, [{a, 1}, {b, 1}], #{ttl => default}),
    pass(30000),
    ?assertEqual([], dats:tab2list(T)),
    ok = dats:compact(T),
    ?assertEqual(5, dats:info(T, expired)),
    ?assertEqual(5, maps:get(expired, dats:info(T, stats))),
    ?assertEqual(30000, dats:info(T, ttl)),
    U = ats_disk_lib:open(Config, u, []),
    ?assertEqual(false, dats:info(U, ttl)),
    ?assertEqual(infinity, dats:ttl(dats:snapshot(U), none_such) =:= undefined andalso infinity),
    ok = dats:insert(U, {a, 1}),
    ?assertEqual(infinity, dats:ttl(U, a)).

%% A value that is merged with an object keeps the deadline of the object; one that meets none gets
%% that of the table.
merges(Config) ->
    T = new(Config, [{merge, sum}, {ttl, ?MINUTE}]),
    ok = dats:write(T, a, 1),
    ok = dats:flush(T),
    ok = dats:merge(T, a, 2),
    ?assertEqual([{a, 3}], dats:lookup(T, a)),
    true = dats:touch(T, a, 10 * ?MINUTE),
    pass(?MINUTE),
    ok = dats:merge(T, a, 4),
    ?assertEqual([{a, 7}], dats:lookup(T, a)),
    ?assert(dats:ttl(T, a) > 8 * ?MINUTE),
    pass(9 * ?MINUTE),
    ?assertEqual([], dats:lookup(T, a)),
    ok = dats:merge(T, a, 5),
    ok = dats:compact(T),
    ?assertEqual([{a, 5}], dats:lookup(T, a)),
    ?assert(dats:ttl(T, a) =< ?MINUTE),
    ?assertError(badarg, dats:merge(T, a, no_number)),
    ok = dats:close(T),
    T = open(Config, [{merge, sum}]),
    ?assertEqual([{a, 5}], dats:lookup(T, a)),
    ?assertEqual({error, {unsupported, ttl}},
                 dats:open_file(u, [{file, ats_disk_lib:file(Config, u)}, {ttl, 5},
                                    {merge, {module, ats_sum_merge}}])).

%% A snapshot has the objects of its moment, also when the files are compacted, and a difference
%% tells the expired ones as deleted.
moments(Config) ->
    [begin
         T = new(Config, [{type, Type}, {ttl, infinity}]),
         ok = dats:insert(T, [{a, 1}, {b, 1}], #{ttl => ?MINUTE}),
         ok = dats:insert(T, [{c, 1}, {d, 1}]),
         First = dats:snapshot(T),
         ok = dats:flush(T),
         pass(?MINUTE),
         ok = dats:compact(T),
         true = dats:touch(T, d, ?MINUTE),
         Second = dats:snapshot(T),
         ?assertEqual([{a, 1}, {b, 1}, {c, 1}, {d, 1}], lists:sort(dats:tab2list(First))),
         ?assertEqual([{a, 1}], dats:lookup(First, a)),
         ?assertEqual(4, dats:info(First, size)),
         ?assertEqual([{c, 1}, {d, 1}], lists:sort(dats:tab2list(Second))),
         ?assertEqual([{delete, {a, 1}}, {delete, {b, 1}}], lists:sort(dats:diff(First, Second))),
         ?assertEqual([{insert, {a, 1}}, {insert, {b, 1}}], lists:sort(dats:diff(Second, First)))
     end || Type <- ?TYPES].

%% Copies of files have the deadlines, and those of objects have the time of the table.
copies(Config) ->
    [A, B, C] = [ats_disk_lib:file(Config, Name) || Name <- [a, b, c]],
    T = new(Config, [{ttl, 5 * ?MINUTE}]),
    ok = dats:insert(T, [{short, 1}, {shorter, 1}], #{ttl => 2 * ?MINUTE}),
    true = dats:touch(T, shorter, ?MINUTE),
    ok = dats:checkpoint(T, A),
    ok = dats:close(T),
    ok = dats:copy_table(ats_disk_lib:file(Config, t), B),
    pass(?MINUTE),
    [begin
         {ok, Name} = dats:open_file(Directory),
         ?assertEqual([{short, 1}], dats:tab2list(Name)),
         ?assert(dats:ttl(Name, short) =< ?MINUTE),
         ?assertEqual(5 * ?MINUTE, dats:info(Name, ttl)),
         ok = dats:close(Name)
     end || Directory <- [A, B]],
    {ok, From} = dats:open_file(A),
    {ok, c} = dats:open_file(c, [{file, C}, {ttl, 3 * ?MINUTE}]),
    Ets = ets:new(e, []),
    Ets = dats:to_ets(From, Ets),
    ok = dats:from_ets(c, Ets),
    ?assertEqual([{short, 1}], dats:tab2list(c)),
    ?assert(dats:ttl(c, short) > 2 * ?MINUTE),
    ok = dats:init_table(c, fun(read) -> {[{i, 1}], fun(read) -> end_of_input end};
                               (close) -> ok
                            end),
    ?assert(dats:ttl(c, i) > 2 * ?MINUTE),
    pass(3 * ?MINUTE),
    ?assertEqual([], dats:tab2list(c)).

opened_again(Config) ->
    T = new(Config, [{ttl, ?MINUTE}]),
    ok = dats:insert(T, {a, 1}),
    ?assertEqual({ok, T}, dats:open_file(T, [{file, ats_disk_lib:file(Config, t)}])),
    ok = dats:close(T),
    ?assertEqual({error, incompatible_arguments},
                 dats:open_file(T, [{file, ats_disk_lib:file(Config, t)}, {ttl, 5}])),
    ok = dats:close(T),
    %% The table keeps its time, and another time is that of later objects.
    T = open(Config, []),
    ?assertEqual(?MINUTE, dats:info(T, ttl)),
    ?assert(dats:ttl(T, a) =< ?MINUTE),
    ok = dats:close(T),
    T = open(Config, [{ttl, 10 * ?MINUTE}]),
    ok = dats:insert(T, {b, 1}),
    ok = dats:close(T),
    T = open(Config, [{access, read}]),
    ?assertEqual(10 * ?MINUTE, dats:info(T, ttl)),
    ?assert(dats:ttl(T, a) =< ?MINUTE),
    ?assert(dats:ttl(T, b) > 9 * ?MINUTE),
    ?assertEqual({error, {access_mode, ats_disk_lib:file(Config, t)}}, dats:touch(T, b)),
    pass(?MINUTE),
    ?assertEqual([{b, 1}], dats:tab2list(T)),
    ok = dats:close(T),
    T = open(Config, [{ttl, infinity}]),
    ok = dats:insert(T, {c, 1}),
    ?assertEqual(infinity, dats:ttl(T, c)),
    %% One that was made without the option is not opened with it.
    U = ats_disk_lib:open(Config, u, []),
    ok = dats:insert(U, {a, 1}),
    ok = dats:close(U),
    Directory = ats_disk_lib:file(Config, u),
    Refused = dats:open_file(U, [{file, Directory}, {ttl, 5}]),
    ?assertEqual({error, {ttl_mismatch, Directory}}, Refused),
    ?assertMatch({match, _}, re:run(dats:format_error(Refused), "made without the option ttl")),
    U = ats_disk_lib:open(Config, u, []),
    ?assertEqual([{a, 1}], dats:lookup(U, a)).

%% Compactions give the room of expired objects back.
room(Config) ->
    T = new(Config, [{ttl, ?MINUTE}, {compressed, false}]),
    ok = dats:insert(T, [{Key, <<Key:8000>>} || Key <- lists:seq(1, 1000)]),
    ok = dats:compact(T),
    ?assert(dats:info(T, file_size) > 1000000),
    pass(?MINUTE),
    ok = dats:insert(T, {left, 1}),
    ok = dats:compact(T),
    ?assert(dats:info(T, file_size) < 10000),
    ?assertEqual(1000, dats:info(T, expired)),
    ?assertEqual([{left, 1}], dats:tab2list(T)).

%% An object that has expired does not come back when the virtual machine is killed.
kills(Config) ->
    Directory = ats_disk_lib:file(Config, killed),
    Path = lists:append([["-pa", P] || P <- code:get_path(), filelib:is_dir(P)]),
    {ok, Peer, _Node} = peer:start(#{connection => standard_io, args => Path}),
    ok = peer:call(Peer, ?MODULE, killed, [Directory]),
    catch peer:call(Peer, os, cmd, ["kill -9 " ++ peer:call(Peer, os, getpid, [])]),
    catch peer:stop(Peer),
    {ok, T} = dats:open_file(Directory),
    ?assertEqual([{left, 1}], dats:tab2list(T)),
    ok = dats:compact(T),
    ?assertEqual([{left, 1}], dats:tab2list(T)).

killed(Directory) ->
    {ok, T} = dats:open_file(t, [{file, Directory}, {ttl, infinity}]),
    Caller = self(),
    %% The table must not be closed when this call ends.
    Pid = spawn(fun() -> {ok, T} = dats:open_file(T, [{file, Directory}]),
                         Caller ! opened,
                         receive after infinity -> ok end
                end),
    true = is_pid(Pid),
    receive opened -> ok end,
    ok = dats:insert(T, [{Key, old} || Key <- lists:seq(1, 100)]),
    ok = dats:flush(T),
    ok = dats:insert(T, [{Key, new} || Key <- lists:seq(1, 100)], #{ttl => 1}),
    true = ats_nif:advance_clock(1),
    ok = dats:insert(T, {left, 1}).

%% Counting and removing a great number of objects keeps no scheduler.
many(Config) ->
    T = new(Config, [{type, ordered_set}, {ttl, ?MINUTE}]),
    ok = dats:insert(T, [{Key, v} || Key <- lists:seq(1, 50000)]),
    ?assertEqual(50000, dats:info(T, size)),
    pass(?MINUTE),
    ?assertEqual('$end_of_table', dats:first(T)),
    ?assertEqual(0, dats:info(T, size)),
    ok = dats:insert(T, [{Key, w} || Key <- lists:seq(1, 50000, 500)]),
    ?assertEqual(100, length(dats:tab2list(T))),
    ?assertEqual(1, dats:first(T)),
    ?assertEqual(501, dats:next(T, 1)).

%% A walk of a fixed table goes on behind a key that has expired.
walks(Config) ->
    [begin
         T = new(Config, [{type, Type}, {ttl, infinity}]),
         ok = dats:insert(T, [{Key, v} || Key <- lists:seq(1, 9)]),
         First = dats:first(T),
         true = dats:touch(T, First, ?MINUTE),
         ok = dats:safe_fixtable(T, true),
         pass(?MINUTE),
         Walk = fun Walk('$end_of_table') -> [];
                    Walk(Key) -> [Key | Walk(dats:next(T, Key))]
                end,
         ?assertEqual(lists:seq(1, 9) -- [First], lists:sort(Walk(dats:next(T, First)))),
         ok = dats:safe_fixtable(T, false)
     end || Type <- ?TYPES].

fetches(Config) ->
    T = new(Config, [{ttl, ?MINUTE}]),
    Make = fun(Value) -> fun(_) -> Value end end,
    ?assertEqual(1, dats:fetch(T, a, Make(1), #{ttl => 10 * ?MINUTE})),
    ?assertEqual(2, dats:fetch(T, b, Make(2))),
    ?assert(dats:ttl(T, a) > 9 * ?MINUTE),
    pass(?MINUTE),
    ?assertEqual(1, dats:fetch(T, a, Make(3), #{ttl => 5})),
    ?assertEqual(4, dats:fetch(T, b, Make(4), #{ttl => infinity})),
    ?assertEqual(infinity, dats:ttl(T, b)),
    U = ats_disk_lib:open(Config, u, []),
    ?assertError(badarg, dats:fetch(U, a, fun(_) -> error(called) end, #{ttl => 5})).

%% A repair keeps the deadlines, also if the file is lost that describes the table.
repaired(Config) ->
    T = new(Config, [{type, ordered_set}, {ttl, ?MINUTE}]),
    ok = dats:insert(T, {a, 1}),
    ok = dats:insert(T, {b, 1}, #{ttl => infinity}),
    ok = dats:close(T),
    Directory = ats_disk_lib:file(Config, t),
    T = open(Config, [{repair, force}]),
    ?assertEqual(?MINUTE, dats:info(T, ttl)),
    ?assert(dats:ttl(T, a) =< ?MINUTE),
    ok = dats:close(T),
    ok = file:write_file(filename:join(Directory, "table"), "damaged"),
    %% The records could be those of an ordered bag.
    T = open(Config, [{repair, force}, {type, ordered_set}, {keypos, 1}]),
    ?assertEqual(infinity, dats:info(T, ttl)),
    ?assertEqual(ordered_set, dats:info(T, type)),
    ?assertEqual(infinity, dats:ttl(T, b)),
    pass(?MINUTE),
    ?assertEqual([{b, 1}], dats:tab2list(T)),
    ok = dats:close(T),
    %% Without the file it is no table, as any other store.
    ok = file:delete(filename:join(Directory, "table")),
    ?assertEqual({error, {not_a_dats_table, Directory}}, dats:open_file(T, [{file, Directory}])).

invalid(Config) ->
    T = ats_disk_lib:open(Config, t, []),
    ok = dats:insert(T, {a, 1}),
    File = {file, ats_disk_lib:file(Config, x)},
    [?assertError(badarg, dats:open_file(x, [File, {ttl, Ttl}]))
     || Ttl <- [0, -1, 1.5, 1 bsl 40, keep, {idle, 0}, {idle, infinity}, ms]],
    Idle = dats:open_file(x, [File, {ttl, {idle, 5}}]),
    ?assertEqual({error, {unsupported, {ttl, {idle, 5}}}}, Idle),
    ?assertMatch({match, _}, re:run(dats:format_error(Idle), "reads write nothing")),
    Merged = dats:open_file(x, [File, {ttl, 5}, {merge, {module, ats_sum_merge}}]),
    ?assertEqual({error, {unsupported, ttl}}, Merged),
    ?assertMatch({match, _}, re:run(dats:format_error(Merged), "module merges")),
    ?assertEqual(false, filelib:is_dir(element(2, File))),
    Why = fun(Call) ->
                  try Call() of
                      Answer -> Answer
                  catch
                      error:badarg:Stack ->
                          [{Module, _, _, Info} | _] = Stack,
                          #{error_info := #{module := Messages}} = maps:from_list(Info),
                          {Module, Messages:format_error(badarg, Stack)}
                  end
          end,
    [?assertMatch({dats, #{1 := <<"the objects of the table do not expire", _/binary>>}},
                  Why(Call))
     || Call <- [fun() -> dats:insert(T, {a, 2}, #{ttl => 5}) end,
                 fun() -> dats:insert_new(T, {b, 2}, #{ttl => 5}) end,
                 fun() -> dats:touch(T, a) end,
                 fun() -> dats:touch(T, a, 5) end]],
    U = ats_disk_lib:open(Config, u, [{ttl, infinity}]),
    [?assertMatch({Number, {dats, #{2 := _}}}, {Number, Why(Call)})
     || {Number, Call} <- [{1, fun() -> dats:insert(U, not_a_tuple, #{ttl => 5}) end},
                           {2, fun() -> dats:insert(U, {}, #{ttl => 5}) end}]],
    [?assertMatch({Options, {dats, #{3 := _}}},
                  {Options, Why(fun() -> dats:insert(U, {a, 1}, Options) end)})
     || Options <- [#{ttl => 0}, #{}, #{ttl => 5, more => 1}, [{ttl, 5}], 5]],
    ?assertEqual([], dats:tab2list(U)),
    S = dats:snapshot(U),
    ?assertError(badarg, dats:insert(S, {a, 1}, #{ttl => 5})),
    ?assertError(badarg, dats:touch(S, a, 5)).

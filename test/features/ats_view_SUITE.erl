%% Views: tables that follow others, made by ats:view/3.
-module(ats_view_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0, init_per_suite/1, end_per_suite/1, init_per_testcase/2,
         end_per_testcase/2]).
-export([programs/1, index/1, least_objects/1, equal_objects/1, keys_that_are_equal/1,
         readers_see_batches/1, beside_writers/1, large_lists/1, clears_and_renames/1, expired/1,
         bodies_that_fail/1, lost_moments/1, no_moment_lasts/1, lag/1, killed_processes/1,
         killed_while_filled/1, killed_server/1, stopped_application/1, ends/1, only_readers/1,
         views_of_views/1, many_views/1, invalid/1]).

-define(TYPES, [set, ordered_set, bag, duplicate_bag, ordered_bag, ordered_duplicate_bag]).
-define(ALL, [{'_', [], ['$_']}]).
%% Objects of three elements by their second one.
-define(BY_SECOND, [{{'$1', '$2', '$3'}, [{'=/=', '$3', skipped}], [{{'$2', '$1', '$3'}}]}]).

suite() -> [{timetrap, {minutes, 10}}].

all() ->
    [programs, index, least_objects, equal_objects, keys_that_are_equal, readers_see_batches,
     beside_writers, large_lists, clears_and_renames, expired, bodies_that_fail, lost_moments,
     no_moment_lasts, lag, killed_processes, killed_while_filled, killed_server,
     stopped_application, ends, only_readers, views_of_views, many_views, invalid].

init_per_suite(Config) ->
    {ok, Started} = application:ensure_all_started(ats),
    [{started, Started} | Config].

end_per_suite(Config) ->
    [application:stop(Application) || Application <- ?config(started, Config)].

init_per_testcase(_Case, Config) ->
    [{tables, of_others()} | Config].

%% Nothing is left of any case, but the tables that it made itself.
end_per_testcase(_Case, Config) ->
    {ok, _} = application:ensure_all_started(ats),
    ats_test_lib:until(fun() -> processes_of_views() =:= [] end, 10000),
    ats_test_lib:until(fun() -> of_others() -- ?config(tables, Config) =:= [] end, 10000).

of_others() -> [Table || Table <- ats:all(), ats:info(Table, owner) =/= self()].

processes_of_views() ->
    Server = whereis(ats_view),
    {links, Links} = process_info(Server, links),
    {dictionary, Dictionary} = process_info(Server, dictionary),
    [Supervisor | _] = proplists:get_value('$ancestors', Dictionary),
    Links -- [Supervisor].

snapshots(T) -> maps:get(number, ats:info(T, snapshots)).

new(Type) -> new(Type, []).

new(Type, Options) -> ats:new(source, [Type, public | Options]).

%% Waits until views show a moment that comes after this call.
caught_up(View) when not is_list(View) ->
    caught_up([View]);
caught_up(Views) ->
    Since = erlang:monotonic_time(millisecond),
    IsLater = fun(View) ->
                      Now = erlang:monotonic_time(millisecond),
                      Now - ats:info(View, lag) > Since
              end,
    [ats_test_lib:until(fun() -> IsLater(View) end, 20000) || View <- Views].

%% The objects that a view should have.
expected(Type, KeyPos, Made) ->
    exactly(case Type of
                ordered_set -> lists:ukeysort(KeyPos, exactly(Made));
                set -> maps:values(maps:from_list([{element(KeyPos, Object), Object}
                                                   || Object <- lists:reverse(exactly(Made))]));
                _ when Type =:= bag; Type =:= ordered_bag -> maps:keys(maps:from_keys(Made, []));
                _ -> Made
            end).

%% Sorts objects, also those that are equal but not the same.
exactly(Objects) ->
    [Object || {Object, _} <- lists:sort([{Object, term_to_binary(Object, [deterministic])}
                                          || Object <- Objects])].

check(View, Source, Spec) ->
    caught_up(View),
    equals(View, Source, Spec).

equals(View, Source, Spec) ->
    [Type, KeyPos] = [ats:info(View, Item) || Item <- [type, keypos]],
    Made = ats:select(Source, Spec),
    Expected = expected(Type, KeyPos, Made),
    ?assertEqual(Expected, exactly(ats:tab2list(View))),
    ?assertEqual(length(Made) - length(Expected), maps:get(hidden, ats:info(View, view))).

%% ----- content -----

%% Random programs over all types of sources and views.
programs(_Config) ->
    [begin
         T = new(Type, Options),
         [change(T) || _ <- lists:seq(1, 40)],
         Views = [{ats:view(T, Spec, #{type => ViewType, keypos => KeyPos, every => 1,
                                       compressed => Options =/= []}), Spec}
                  || ViewType <- ?TYPES,
                     {Spec, KeyPos} <- [{?BY_SECOND, 1}, {?BY_SECOND, 2},
                                        {[{{'_', '$1', '_'}, [{'<', '$1', b}], ['$_']}], 3}]],
         [equals(View, T, Spec) || {View, Spec} <- Views],
         [begin
              [change(T) || _ <- lists:seq(1, rand:uniform(30))],
              _ = caught_up([View || {View, _} <- Views]),
              [equals(View, T, Spec) || {View, Spec} <- Views]
          end || _ <- lists:seq(1, 10)],
         [true = ats:delete(View) || {View, _} <- Views],
         ?assertEqual(0, snapshots(T)),
         true = ats:delete(T)
     end || Type <- ?TYPES, Options <- [[], [compressed]]],
    ok.

%% Few keys and values, so that many objects of a view have the same key.
change(T) ->
    Key = term(),
    case rand:uniform(12) of
        1 -> ats:delete(T, Key);
        2 -> ats:delete_object(T, object());
        3 -> ats:take(T, Key);
        4 -> ats:insert(T, [object() || _ <- lists:seq(1, 10)]);
        5 -> ats:select_delete(T, [{{Key, '_', '_'}, [], [true]}]);
        6 -> rand:uniform(10) =:= 1 andalso ats:delete_all_objects(T);
        7 -> [ats:insert(T, Object) || Object <- ats:take(T, Key)];
        _ -> ats:insert(T, object())
    end.

object() ->
    {term(), term(), lists:nth(rand:uniform(4), [1, 1.0, skipped, <<"text">>])}.

term() ->
    Terms = [1, 1.0, 2, 2.0, a, b, {1, x}, {1.0, x}, [1], [1.0], "text", <<5:7>>,
             #{1 => a}, #{1.0 => a}, 1 bsl 70, []],
    lists:nth(rand:uniform(length(Terms)), Terms).

%% The index that the manual shows.
index(_Config) ->
    Users = ats:new(users, [named_table, public]),
    true = ats:insert(Users, [{N, {name, N}, N rem 7} || N <- lists:seq(1, 1000)]),
    Spec = [{{'$1', '$2', '$3'}, [], [{{{{'$3', '$1'}}, '$2'}}]}],
    users_by_city = ats:view(Users, Spec, #{type => ordered_set, name => users_by_city,
                                            every => 1}),
    In = fun(City) -> ats:select(users_by_city, [{{{City, '$1'}, '_'}, [], ['$1']}]) end,
    ?assertEqual([N || N <- lists:seq(1, 1000), N rem 7 =:= 3], In(3)),
    true = ats:update_element(Users, 3, {3, 5}),
    true = ats:delete(Users, 10),
    caught_up(users_by_city),
    ?assertEqual([N || N <- lists:seq(17, 1000), N rem 7 =:= 3], In(3)),
    ?assert(lists:member(3, In(5))),
    ?assertEqual(#{source => ats:whereis(Users), spec => Spec, every => 1, hidden => 0},
                 ats:info(users_by_city, view)),
    %% A view without options.
    All = ats:view(Users, [{'_', [], ['$_']}]),
    check(All, Users, ?ALL),
    ?assertEqual(set, ats:info(All, type)),
    true = ats:delete(All),
    true = ats:delete(users_by_city),
    ?assertEqual(undefined, ats:whereis(users_by_city)).

%% A set shows the least of several objects with one key, however they came and went.
least_objects(_Config) ->
    [begin
         T = new(set),
         true = ats:insert(T, [{K, key, 0} || K <- [5, 3, 9]]),
         View = ats:view(T, ?BY_SECOND, #{type => Type, every => 1}),
         Shows = fun(K, Hidden) ->
                         caught_up(View),
                         ?assertEqual([{key, K, 0} || K =/= none], ats:tab2list(View)),
                         ?assertEqual(Hidden, maps:get(hidden, ats:info(View, view)))
                 end,
         Shows(3, 2),
         true = ats:insert(T, {4, key, 0}),
         Shows(3, 3),
         true = ats:insert(T, {2, key, 0}),
         Shows(2, 4),
         true = ats:delete(T, 9),
         Shows(2, 3),
         true = ats:delete(T, 2),
         Shows(3, 2),
         true = ats:insert(T, {3, other, 0}),
         caught_up(View),
         ?assertEqual([{key, 4, 0}, {other, 3, 0}], lists:sort(ats:tab2list(View))),
         true = ats:delete_all_objects(T),
         Shows(none, 0),
         true = ats:delete(View)
     end || Type <- [set, ordered_set]],
    ok.

%% Sources of equal objects. Bags show one of them while there are any.
equal_objects(_Config) ->
    Spec = [{{'_', '$1'}, [], [{{'$1'}}]}],
    [begin
         T = new(set),
         true = ats:insert(T, [{K, same} || K <- lists:seq(1, 3)]),
         View = ats:view(T, Spec, #{type => Type, every => 1}),
         [begin
              check(View, T, Spec),
              true = ats:delete(T, K)
          end || K <- lists:seq(1, 3)],
         check(View, T, Spec),
         ?assertEqual([], ats:tab2list(View)),
         true = ats:delete(View)
     end || Type <- ?TYPES],
    ok.

keys_that_are_equal(_Config) ->
    [begin
         T = new(Type),
         Made = [{Key, Key, 0} || Key <- [1, 1.0, {2, 0}, {2.0, 0}]],
         true = ats:insert(T, Made),
         View = ats:view(T, ?BY_SECOND, #{type => ViewType, every => 1}),
         [begin
              check(View, T, ?BY_SECOND),
              true = ats:delete_object(T, Object)
          end || Object <- Made],
         check(View, T, ?BY_SECOND),
         true = ats:delete(View)
     end || Type <- [set, bag, ordered_bag], ViewType <- ?TYPES],
    ok.

%% A list that is inserted as one comes as one.
readers_see_batches(_Config) ->
    [begin
         T = new(set),
         View = ats:view(T, [{{'$1', '$2'}, [], [{{'$1', '$2'}}]}], #{type => Type, every => 1}),
         Self = self(),
         Writer = spawn_link(fun() ->
                                     [true = ats:insert(T, [{K, N} || K <- lists:seq(1, 500)])
                                      || N <- lists:seq(1, 300)],
                                     Self ! written
                             end),
         read_whole(View, Writer),
         caught_up(View),
         ?assertEqual([{K, 300} || K <- lists:seq(1, 500)], lists:sort(ats:tab2list(View))),
         true = ats:delete(View)
     end || Type <- [set, ordered_set, duplicate_bag]],
    ok.

read_whole(View, Writer) ->
    Objects = ats:select(View, ?ALL),
    ?assert(lists:member(length(Objects), [0, 500])),
    ?assert(length(lists:usort([N || {_, N} <- Objects])) =< 1),
    receive written -> ok
    after 0 -> read_whole(View, Writer)
    end.

beside_writers(_Config) ->
    [begin
         T = new(Type),
         Views = [ats:view(T, ?BY_SECOND, #{type => ViewType, every => 1}) || ViewType <- ?TYPES],
         Write = fun() -> [change(T) || _ <- lists:seq(1, 10000)], ok end,
         _ = ats_test_lib:parallel([Write, Write]),
         [check(View, T, ?BY_SECOND) || View <- Views],
         [true = ats:delete(View) || View <- Views],
         ?assertEqual(0, snapshots(T))
     end || Type <- [set, ordered_bag]],
    ok.

%% Batches of more changes than readers see at once.
large_lists(_Config) ->
    [begin
         T = new(set),
         Numbers = lists:seq(1, 30000),
         true = ats:insert(T, [{N, N rem 20000, 0} || N <- Numbers]),
         View = ats:view(T, ?BY_SECOND, #{type => Type, every => 1}),
         equals(View, T, ?BY_SECOND),
         true = ats:insert(T, [{N, N rem 15000, 1} || N <- Numbers]),
         check(View, T, ?BY_SECOND),
         true = ats:delete_all_objects(T),
         true = ats:insert(T, [{N, N rem 1000, 1} || N <- lists:seq(20000, 25000)]),
         check(View, T, ?BY_SECOND),
         true = ats:delete(View),
         true = ats:delete(T)
     end || Type <- [ordered_set, bag, duplicate_bag]],
    %% One key has them all.
    [begin
         T = new(set),
         true = ats:insert(T, [{N, key, 0} || N <- lists:seq(1, 15000)]),
         View = ats:view(T, ?BY_SECOND, #{type => Type, every => 1}),
         equals(View, T, ?BY_SECOND),
         true = ats:insert(T, [{N, key, 1} || N <- lists:seq(1, 15000)]),
         check(View, T, ?BY_SECOND),
         true = ats:delete(View)
     end || Type <- [set, ordered_bag, duplicate_bag]],
    ok.

clears_and_renames(_Config) ->
    [begin
         T = ats:new(before, [Type, public, named_table]),
         Id = ats:whereis(T),
         View = ats:view(T, ?BY_SECOND, #{type => Type, every => 1}),
         true = ats:insert(T, {1, 2, 3}),
         check(View, T, ?BY_SECOND),
         true = ats:delete_all_objects(T),
         check(View, T, ?BY_SECOND),
         renamed = ats:rename(T, renamed),
         true = ats:insert(renamed, {1, 2, 3}),
         check(View, renamed, ?BY_SECOND),
         [_] = ats:take_all_objects(renamed),
         true = ats:insert(renamed, {1, 5, 3}),
         check(View, renamed, ?BY_SECOND),
         ?assertMatch(#{source := Id}, ats:info(View, view)),
         true = ats:delete(View),
         true = ats:delete(renamed)
     end || Type <- ?TYPES],
    ok.

expired(_Config) ->
    [begin
         T = new(Type, [{ttl, Ttl}]),
         true = ats:insert(T, [{a, x, 1}, {b, x, 1}]),
         true = ats:insert(T, {stays, x, 1}, #{ttl => infinity}),
         View = ats:view(T, ?BY_SECOND, #{type => bag, every => 1}),
         ?assertEqual(3, ats:info(View, size)),
         ats_nif:advance_clock(60000),
         caught_up(View),
         ?assertEqual([{x, stays, 1}], ats:tab2list(View)),
         true = ats:delete(View),
         true = ats:delete(T)
     end || Type <- ?TYPES, Ttl <- [60000, {idle, 60000}]],
    T = new(set, [{max_objects, 100}]),
    View = ats:view(T, ?BY_SECOND, #{type => ordered_set, every => 1}),
    [true = ats:insert(T, {N, N, N}) || N <- lists:seq(1, 5000)],
    check(View, T, ?BY_SECOND),
    true = ats:delete(View).

%% A part of an object that cannot be made is 'EXIT', as in a query.
bodies_that_fail(_Config) ->
    Spec = [{{'$1', '$2'}, [], [{{{hd, '$2'}, '$1'}}]}],
    T = new(set),
    true = ats:insert(T, [{1, [a]}, {2, []}]),
    View = ats:view(T, Spec, #{every => 1}),
    equals(View, T, Spec),
    true = ats:insert(T, [{1, no_list}, {2, [b]}, {3, 5}]),
    check(View, T, Spec),
    ?assertEqual([{'EXIT', 1}, {b, 2}], lists:sort(ats:tab2list(View))),
    true = ats:delete(View).

%% The source keeps no memory for its snapshots, so they end while the view needs them.
lost_moments(_Config) ->
    T = new(set, [{snapshot_memory, 0}]),
    true = ats:insert(T, [{N, N rem 100, 0} || N <- lists:seq(1, 1000)]),
    Views = [ats:view(T, ?BY_SECOND, #{type => Type, every => 150}) || Type <- ?TYPES],
    Evicted = fun() -> maps:get(evicted, ats:info(T, snapshots)) end,
    Write = fun() ->
                    true = ats:insert(T, object()),
                    true = ats:insert(T, {rand:uniform(1000), rand:uniform(100), rand:uniform(5)}),
                    Evicted() > 20
            end,
    ats_test_lib:until(Write, 20000),
    [check(View, T, ?BY_SECOND) || View <- Views],
    [true = ats:delete(View) || View <- Views].

%% A view that cannot be filled is refused, and one that was filled stays while it cannot. Filling
%% takes longer than the tenth of a second after which memory that is held back is counted.
no_moment_lasts(_Config) ->
    T = new(set, [{snapshot_memory, 0}]),
    true = ats:insert(T, [{N, N rem 100, 0} || N <- lists:seq(1, 400000)]),
    Before = ats:view(T, ?BY_SECOND, #{type => duplicate_bag, every => 1}),
    Writer = spawn_link(fun() -> write_one(T, 0) end),
    Text = <<"snapshots of the table end before a view of it is filled: its option "
             "`snapshot_memory' is too small beside its writers">>,
    Refusal = ats_test_lib:refusal(ats, view, [T, ?BY_SECOND, #{every => 1}]),
    ?assertEqual(#{1 => Text}, Refusal),
    true = exit(ats:info(Before, owner), kill),
    ats_test_lib:until(fun() -> is_map(ats:info(Before, view)) end, 10000),
    true = unlink(Writer),
    ok = ats_test_lib:kill(Writer),
    check(Before, T, ?BY_SECOND),
    true = ats:delete(Before).

write_one(T, N) ->
    true = ats:insert(T, {N rem 400000, N rem 7, 1}),
    write_one(T, N + 1).

lag(_Config) ->
    T = new(set),
    View = ats:view(T, ?BY_SECOND, #{every => 1}),
    [caught_up(View) || _ <- lists:seq(1, 5)],
    Owner = ats:info(View, owner),
    true = erlang:suspend_process(Owner),
    true = ats:insert(T, {1, 2, 3}),
    ats_test_lib:until(fun() -> ats:info(View, lag) > 20 end, 10000),
    ?assertEqual([], ats:tab2list(View)),
    true = erlang:resume_process(Owner),
    check(View, T, ?BY_SECOND),
    %% Other tables have none, and a list of all items has none of it.
    [?assertEqual(undefined, ats:info(Other, Item))
     || Other <- [T, no_such_table], Item <- [lag, view]],
    Items = fun(Table) -> [Item || {Item, _} <- ats:info(Table)] end,
    ?assertEqual(Items(T), Items(View)),
    true = ats:delete(View),
    [?assertEqual(undefined, ats:info(View, Item)) || Item <- [lag, view]].

%% ----- ends -----

%% The view stays, and equals the source in the end.
killed_processes(_Config) ->
    [begin
         T = new(set),
         true = ats:insert(T, [{N, N rem 50, 0} || N <- lists:seq(1, 500)]),
         View = ats:view(T, ?BY_SECOND, #{type => Type, name => killed, every => 1}),
         Id = ats:whereis(View),
         Writer = spawn_link(fun() -> write(T) end),
         [begin
              Owner = ats:info(View, owner),
              true = exit(Owner, kill),
              ats_test_lib:until(fun() ->
                                         Now = ats:info(View, owner),
                                         Now =/= Owner andalso Now =/= whereis(ats_view)
                                 end, 10000),
              N rem 4 =:= 0 andalso caught_up(View)
          end || N <- lists:seq(1, 20)],
         true = exit(ats:info(View, owner), failed),
         Writer ! {stop, self()},
         receive stopped -> ok end,
         check(View, T, ?BY_SECOND),
         ?assertEqual(Id, ats:whereis(killed)),
         ?assertEqual(1, snapshots(T)),
         ?assertEqual(1, length(processes_of_views())),
         true = ats:delete(View),
         ?assertEqual(0, snapshots(T))
     end || Type <- ?TYPES],
    ok.

write(T) ->
    true = ats:insert(T, object()),
    true = ats:insert(T, {rand:uniform(500), rand:uniform(50), rand:uniform(5)}),
    true = ats:delete(T, rand:uniform(500)),
    receive {stop, Test} -> Test ! stopped
    after 0 -> write(T)
    end.

%% The call is answered by the process that has filled the view.
killed_while_filled(_Config) ->
    T = new(set),
    true = ats:insert(T, [{N, N rem 50000, 0} || N <- lists:seq(1, 100000)]),
    Self = self(),
    spawn_link(fun() ->
                       [begin
                            ats_test_lib:until(fun() -> processes_of_views() =/= [] end, 10000),
                            [exit(Pid, kill) || Pid <- processes_of_views()]
                        end || _ <- lists:seq(1, 5)],
                       Self ! done
               end),
    View = ats:view(T, ?BY_SECOND, #{type => ordered_set}),
    receive done -> ok end,
    check(View, T, ?BY_SECOND),
    true = ats:delete(View).

%% All views end with the server; others can be made at once.
killed_server(_Config) ->
    T = new(set),
    true = ats:insert(T, {1, 2, 3}),
    View = ats:view(T, ?BY_SECOND, #{name => again}),
    Server = whereis(ats_view),
    true = exit(Server, kill),
    ats_test_lib:until(fun() -> ats:whereis(again) =:= undefined end, 10000),
    ?assertEqual(undefined, ats:info(View, lag)),
    again = ats:view(T, ?BY_SECOND, #{name => again}),
    ?assertEqual([{2, 1, 3}], ats:tab2list(again)),
    true = ats:delete(again),
    ats_test_lib:until(fun() -> snapshots(T) =:= 0 end, 10000).

stopped_application(_Config) ->
    T = new(set),
    View = ats:view(T, ?BY_SECOND, #{}),
    ok = application:stop(ats),
    ?assertEqual(undefined, ats:info(View)),
    ?assertEqual(undefined, ats:info(View, lag)),
    ?assertEqual(0, snapshots(T)),
    %% A view starts it.
    Other = ats:view(T, ?BY_SECOND, #{}),
    true = ats:delete(Other).

ends(_Config) ->
    Gone = fun(Table) -> ats_test_lib:until(fun() -> ats:info(Table) =:= undefined end, 10000) end,
    %% The source is deleted, or made private.
    Deleted = new(set),
    View1 = ats:view(Deleted, ?BY_SECOND, #{every => 1}),
    true = ats:delete(Deleted),
    Gone(View1),
    Private = new(set),
    View2 = ats:view(Private, ?BY_SECOND, #{every => 1}),
    true = ats:setopts(Private, {protection, private}),
    Gone(View2),
    %% The process that made it ends. Another one may not delete it.
    T = new(set),
    Self = self(),
    Maker = spawn_link(fun() ->
                               Self ! {made, ats:view(T, ?BY_SECOND, #{every => 1})},
                               receive stop -> ok end
                       end),
    View3 = receive {made, Made} -> Made end,
    {'EXIT', {badarg, Stack}} = ats_test_lib:attempt(fun() -> ats:delete(View3) end),
    ?assertMatch(#{1 := <<"the table identifier refers to an ATS table with insufficient access",
                         _/binary>>}, ats_errors:format_error(badarg, Stack)),
    check(View3, T, ?BY_SECOND),
    Maker ! stop,
    Gone(View3),
    %% A process that ends while the view is made.
    true = ats:insert(T, [{N, N, 0} || N <- lists:seq(1, 50000)]),
    {Ended, Monitor} = spawn_monitor(fun() ->
                                             half = ats:view(T, ?BY_SECOND, #{name => half}),
                                             receive stop -> ok end
                                     end),
    ats_test_lib:until(fun() -> ats:whereis(half) =/= undefined end, 10000),
    true = exit(Ended, kill),
    receive {'DOWN', Monitor, process, Ended, _} -> ok end,
    Gone(half),
    ats_test_lib:until(fun() -> snapshots(T) =:= 0 end, 10000),
    %% A process that has died makes none.
    View4 = ats:view(T, ?BY_SECOND, #{}),
    true = ats:delete(View4),
    ?assertEqual(undefined, ats:info(View4)),
    ?assertError(badarg, ats:delete(View4)).

%% Nobody else writes to a view, changes its options or gives it away; its maker deletes it.
only_readers(_Config) ->
    T = new(set),
    true = ats:insert(T, {1, 2, 3}),
    View = ats:view(T, ?BY_SECOND, #{}),
    [?assertError(badarg, apply(ats, Function, [View | Arguments]))
     || {Function, Arguments} <- [{insert, [{5, 5}]}, {delete, [2]}, {delete_all_objects, []},
                                  {rename, [other]}, {setopts, [{protection, public}]},
                                  {give_away, [self(), gift]}, {take, [2]},
                                  {update_element, [2, {2, 5}]}, {select_delete, [?ALL]},
                                  {transact, [[], [{delete, 2}], []]}]],
    ?assertEqual([{2, 1, 3}], ats:tab2list(View)),
    true = ats:delete(View).

views_of_views(_Config) ->
    T = new(set),
    true = ats:insert(T, [{N, N rem 10, 0} || N <- lists:seq(1, 100)]),
    First = ats:view(T, ?BY_SECOND, #{type => duplicate_bag, every => 1}),
    Second = ats:view(First, ?BY_SECOND, #{type => ordered_set, every => 1}),
    Third = ats:view(Second, ?BY_SECOND, #{type => set, every => 1}),
    [true = ats:insert(T, {N, N rem 7, 1}) || N <- lists:seq(1, 50)],
    [check(View, Source, ?BY_SECOND)
     || {View, Source} <- [{First, T}, {Second, First}, {Third, Second}]],
    true = ats:delete(First),
    [ats_test_lib:until(fun() -> ats:info(View) =:= undefined end, 10000)
     || View <- [Second, Third]],
    ok.

many_views(_Config) ->
    T = new(ordered_set),
    Views = [ats:view(T, ?BY_SECOND, #{type => Type, every => 20})
             || _ <- lists:seq(1, 15), Type <- ?TYPES],
    [change(T) || _ <- lists:seq(1, 1000)],
    _ = caught_up(Views),
    [equals(View, T, ?BY_SECOND) || View <- Views],
    ?assertEqual(length(Views), length(processes_of_views())),
    true = ats:delete(T),
    [ats_test_lib:until(fun() -> ats:info(View) =:= undefined end, 10000) || View <- Views],
    ok.

%% ----- refusals -----

invalid(_Config) ->
    T = new(set),
    Text = fun(Arguments) -> ats_test_lib:refusal(ats, view, Arguments) end,
    [?assertEqual({Options, #{3 => Why}}, {Options, Text([T, ?ALL, Options])})
     || {Options, Why} <-
            [{[], <<"the options are not a map">>},
             {#{typ => set}, <<"there is no option typ; is `type' meant?">>},
             {#{type => orderd_set},
              <<"`type' is not a type of tables; is `ordered_set' meant?">>},
             {#{type => tree}, <<"`type' is not a type of tables">>},
             {#{keypos => 0}, <<"`keypos' is not a positive number">>},
             {#{name => "name"}, <<"`name' is not an atom that can name a table">>},
             {#{name => undefined}, <<"`name' is not an atom that can name a table">>},
             {#{compressed => 1}, <<"`compressed' is not a boolean value">>},
             {#{every => 0}, <<"`every' is not a number of milliseconds from 1 to 49 days">>},
             {#{every => 1 bsl 32},
              <<"`every' is not a number of milliseconds from 1 to 49 days">>}]
            ++ [{#{protection => Protection},
                 <<"`protection' is not protected: all may read a view, and nobody may write "
                   "to it">>} || Protection <- [public, private]]],
    [?assertEqual({Spec, #{2 => <<"a clause has a body that makes no tuple, or one without a key "
                                  "for the view">>}},
                  {Spec, Text([T, Spec, #{keypos => 2}])})
     || Spec <- [[{{'$1', '$2'}, [], ['$1']}], [{{'$1', '$2'}, [], [{{'$1'}}]}],
                 [{'_', [], ['$_']}], [{{'$1'}, [], ['$_']}], [{'_', [], [{const, a}]}],
                 [{{'$1', '$2'}, [], ['$_']}, {'_', [], [true]}], [{'_', [], ['$$']}]]],
    [?assertEqual({Spec, #{2 => <<"not a list of clauses of a match specification">>}},
                  {Spec, Text([T, Spec])})
     || Spec <- [x, [], [x], [{'_', [{bad}], ['$_']}], [{'_', [], ['$_']} | x], [{'_', [], []}],
                 ats:match_spec_compile(?ALL)]],
    ?assertMatch(#{1 := <<"not an atom or a table identifier">>}, Text([1, ?ALL])),
    ?assertMatch(#{1 := <<"the table identifier does not", _/binary>>}, Text([none, ?ALL, #{}])),
    Private = ats:new(t, [private]),
    ?assertMatch(#{1 := <<"the table is private, so no other process can", _/binary>>},
                 Text([Private, ?ALL, #{}])),
    ?assertMatch(#{1 := <<"the table is a snapshot", _/binary>>}, Text([ats:snapshot(T), ?ALL])),
    ?assertMatch(#{1 := <<"the store of the table has no snapshots">>},
                 Text([ats:new(t, [{backend, btree}]), ?ALL])),
    _ = ats:new(taken, [named_table]),
    ?assertEqual(#{3 => <<"table name already exists">>}, Text([T, ?ALL, #{name => taken}])),
    ?assertEqual([], processes_of_views()),
    %% Specifications of all kinds that make objects.
    [begin
         View = ats:view(T, Spec, #{keypos => 2}),
         check(View, T, Spec),
         true = ats:delete(View)
     end || Spec <- [[{{'$1', '$2'}, [], ['$_']}], [{'_', [], [{const, {1, 2}}]}],
                     [{{'$1', '$2'}, [], [true, {{'$2', '$1'}}]}]]],
    ok.

%% The option `evicted': processes that are told of objects that are gone because of limits.
-module(ats_evicted_SUITE).

-include_lib("stdlib/include/assert.hrl").

-export([all/0]).
-export([expired/1, found_expired/1, bounds/1, large/1, many_writers/1, deleted_tables/1]).
-export([expired_before_clear/1, cleared_tables/1]).
-export([receivers_that_are_slow/1, receivers_that_end/1, no_application/1]).
-export([invalid/1]).

-define(TYPES, [set, ordered_set, bag, duplicate_bag, ordered_bag, ordered_duplicate_bag]).

all() ->
    [expired, found_expired, bounds, large, many_writers, deleted_tables, expired_before_clear,
     cleared_tables, receivers_that_are_slow, receivers_that_end, no_application, invalid].

%% Lets all tables believe that this time has passed.
pass(Ms) -> ats_nif:advance_clock(Ms).

new(Type, Options) ->
    ats:new(told, [Type, public, {evicted, self()} | Options]).

%% Returns the objects that are told until so many were told, with their reasons, sorted.
told(_T, Number) when Number =< 0 ->
    ?assertEqual(0, Number),
    [];
told(T, Number) ->
    receive
        {'ATS-EVICTED', T, Reason, Objects} when is_list(Objects) ->
            lists:sort([{Reason, Object} || Object <- Objects]
                       ++ told(T, Number - length(Objects)))
    after 10000 -> error({not_told, Number})
    end.

told_no_more(T) ->
    receive
        {'ATS-EVICTED', Table, _, _} = More when T =:= Table; T =:= '_' -> error({told, More})
    after 250 -> ok
    end.

%% Returns the number of objects of which this process is told.
number_told(T, Number) when Number > 0 ->
    receive
        {'ATS-EVICTED', T, _, Objects} when is_list(Objects) ->
            number_told(T, Number - length(Objects));
        {'ATS-EVICTED', T, _, Count} ->
            number_told(T, Number - Count)
    after 10000 -> error({not_told, Number})
    end;
number_told(_T, Number) ->
    ?assertEqual(0, Number).

%% The background tells of objects of all kinds of terms, once.
expired(_) ->
    [begin
         T = new(Type, [{ttl, 60000} | Options]),
         Terms = [1, 1.5, 1 bsl 100, atom, "list", <<"bytes">>, <<1:3>>, binary:copy(<<7>>, 1000),
                  self(), make_ref(), fun lists:map/2, #{a => {1}}, {}, [[] | x],
                  lists:seq(1, 1000)],
         Objects = [{Term, Term, [Term]} || Term <- Terms],
         true = ats:insert(T, Objects),
         true = ats:insert(T, {stays, 1}, #{ttl => infinity}),
         true = ats:insert(T, {deleted, 1}),
         true = ats:delete(T, deleted),
         pass(60000),
         ?assertEqual(lists:sort([{expired, Object} || Object <- Objects]),
                      told(T, length(Objects))),
         told_no_more(T),
         ?assertEqual([{stays, 1}], ats:tab2list(T)),
         ats:delete(T)
     end || Type <- ?TYPES, Options <- [[], [compressed]]].

%% An object is told once, whoever finds that it has expired.
found_expired(_) ->
    Calls = [fun(T) -> ats:insert(T, {key, new}) end,
             fun(T) -> ats:insert_new(T, {key, new}) end,
             fun(T) -> ats:insert(T, [{key, new}, {other, new}]) end,
             fun(T) -> ats:insert_new(T, [{key, new}, {other, new}]) end,
             fun(T) -> ats:info(T, size) end,
             fun(T) -> ats:take(T, key) end,
             fun(T) -> ats:take_first(T) end,
             fun(T) -> ats:delete(T, key) end,
             fun(T) -> ats:delete_object(T, {key, old}) end,
             fun(T) -> ats:touch(T, key, 1000) end,
             fun(T) -> ats:snapshot(T) end],
    OfSets = [fun(T) -> ats:update_counter(T, key, {2, 1}, {key, 0}) end,
              fun(T) -> ats:merge(T, key, 1, sum, {key, 0}) end],
    [begin
         T = new(Type, [{ttl, infinity}]),
         true = ats:insert(T, {key, old}, #{ttl => 60000}),
         pass(60000),
         Call(T),
         ?assertEqual([{expired, {key, old}}], told(T, 1)),
         ?assertEqual(1, ats:info(T, expired))
     end || Type <- [set, ordered_set, bag, ordered_duplicate_bag],
            Call <- Calls ++ [Call || Type =:= set orelse Type =:= ordered_set, Call <- OfSets]],
    told_no_more('_').

bounds(_) ->
    [begin
         T = new(Type, [Bound]),
         Objects = [{Key, <<Key:800>>} || Key <- lists:seq(1, 3000)],
         [ats:insert(T, Object) || Object <- Objects],
         Left = ats:tab2list(T),
         Gone = [{Reason, Object} || Object <- Objects -- Left],
         ?assert(length(Gone) > 1000),
         ?assertEqual(ats:info(T, evicted), length(Gone)),
         ?assertEqual(lists:sort(Gone), told(T, length(Gone))),
         told_no_more(T),
         ats:delete(T)
     end || Type <- ?TYPES,
            {Reason, _} = Bound <- [{max_objects, 100}, {max_memory, 100000}]],
    %% Both reasons.
    T = new(set, [{max_objects, 10}, {ttl, 60000}]),
    [ats:insert(T, {Key, 1}) || Key <- lists:seq(1, 15)],
    pass(60000),
    ?assertMatch([{expired, _}, {expired, _}, {expired, _}, {expired, _}, {expired, _},
                  {expired, _}, {expired, _}, {expired, _}, {expired, _}, {expired, _},
                  {max_objects, _}, {max_objects, _}, {max_objects, _}, {max_objects, _},
                  {max_objects, _}], told(T, 15)).

%% Objects that take long to build, or are too many, are counted.
large(_) ->
    T = new(bag, [{ttl, infinity}]),
    ats:insert(T, {large, lists:seq(1, 50000)}, #{ttl => 60000}),
    pass(60000),
    receive {'ATS-EVICTED', T, expired, 1} -> ok after 10000 -> error(not_told) end,
    ats:insert(T, [{many, N} || N <- lists:seq(1, 5000)], #{ttl => 60000}),
    pass(60000),
    receive {'ATS-EVICTED', T, expired, 5000} -> ok after 10000 -> error(not_told) end,
    ats:insert(T, [{N, N} || N <- lists:seq(1, 30000)], #{ttl => 60000}),
    pass(60000),
    number_told(T, 30000),
    told_no_more(T).

%% Each object is told once or is still there.
many_writers(_) ->
    [begin
         T = new(Type, [{max_objects, 500}, {ttl, 50}]),
         Write = fun(Writer) ->
                         [ats:insert(T, {{Writer, N}, N}) || N <- lists:seq(1, 20000)]
                 end,
         Pids = [spawn_monitor(fun() -> Write(Writer) end) || Writer <- [1, 2, 3]],
         [receive {'DOWN', Monitor, process, Pid, normal} -> ok end || {Pid, Monitor} <- Pids],
         pass(60000),
         ?assertEqual(0, ats:info(T, size)),
         number_told(T, 60000),
         told_no_more(T),
         ?assertEqual(60000, ats:info(T, expired) + ats:info(T, evicted)),
         ats:delete(T)
     end || Type <- [set, ordered_set]].

%% Objects that have expired before a table is cleared are told.
expired_before_clear(_) ->
    Clear = [fun(T) -> ats:select_delete(T, [{'_', [], [true]}]) end,
             fun(T) -> ats:delete_all_objects(T) end,
             fun(T) -> ats:take_all_objects(T) end],
    [begin
         T = new(Type, [{ttl, infinity}]),
         true = ats:insert(T, {key, old}, #{ttl => 60000}),
         true = ats:insert(T, {other, 1}),
         pass(60000),
         Call(T),
         ?assertEqual([{expired, {key, old}}], told(T, 1)),
         told_no_more(T),
         ?assertEqual(0, ats:info(T, expired)),
         ats:delete(T)
     end || Type <- ?TYPES, Call <- Clear].

%% Objects that were gone before a table is deleted are told, and its other objects are not.
deleted_tables(_) ->
    [begin
         T = new(set, [{max_objects, 1}]),
         true = ats:insert(T, [{1, 1}, {2, 2}, {3, 3}]),
         ats:delete(T),
         ?assertMatch([{max_objects, _}, {max_objects, _}], told(T, 2)),
         told_no_more(T)
     end || _ <- lists:seq(1, 3)].

cleared_tables(_) ->
    T = new(ordered_set, [{ttl, 60000}]),
    true = ats:insert(T, [{1, 1}, {2, 2}]),
    true = ats:delete_all_objects(T),
    true = ats:insert(T, {3, 3}),
    [{3, 3}] = ats:take_all_objects(T),
    true = ats:insert(T, {4, 4}),
    pass(60000),
    ?assertEqual([{expired, {4, 4}}], told(T, 1)),
    told_no_more(T).

%% The queue of a receiver that does not read stays short, and the numbers are right in the end.
receivers_that_are_slow(_) ->
    T = new(set, [{max_objects, 1}]),
    [self() ! {other, N} || N <- lists:seq(1, 200)],
    [begin
         [ats:insert(T, {{Round, N}, N}) || N <- lists:seq(1, 1000)],
         timer:sleep(20)
     end || Round <- lists:seq(1, 50)],
    timer:sleep(300),
    {message_queue_len, Length} = process_info(self(), message_queue_len),
    ?assert(Length =< 201),
    [receive {other, N} -> ok end || N <- lists:seq(1, 200)],
    number_told(T, 49999),
    told_no_more(T),
    %% The receiver is told objects again.
    ats:insert(T, {last, 1}),
    ?assertMatch([{max_objects, _}], told(T, 1)).

receivers_that_end(_) ->
    T = ats:new(told, [public, {max_objects, 1}, {evicted, spawn(fun() -> ok end)}]),
    Late = spawn(fun() -> receive stop -> ok end end),
    Other = ats:new(told, [public, {max_objects, 1}, {evicted, Late}]),
    [Late ! N || N <- lists:seq(1, 200)],
    [ats:insert(Table, {N, N}) || Table <- [T, Other], N <- lists:seq(1, 1000)],
    timer:sleep(300),
    {state, Counts} = sys:get_state(ats_evicted),
    ?assertEqual([{Late, Other}], maps:keys(Counts)),
    exit(Late, kill),
    timer:sleep(300),
    ?assertEqual({state, #{}}, sys:get_state(ats_evicted)).

%% Tables go on without the application, and tell again when it runs.
no_application(_) ->
    _ = application:stop(ats),
    T = new(set, [{max_objects, 1}]),
    ?assert(is_pid(whereis(ats_evicted))),
    _ = application:stop(ats),
    [ats:insert(T, {N, N}) || N <- lists:seq(1, 1000)],
    timer:sleep(250),
    ?assertEqual(1, ats:info(T, size)),
    ok = application:start(ats),
    ats:insert(T, {last, 1}),
    ?assertMatch([{max_objects, {1000, 1000}}], told(T, 1)),
    told_no_more(T).

invalid(_) ->
    [?assertError(badarg, ats:new(told, [{ttl, 1000}, {evicted, Receiver}]))
     || Receiver <- [1, self, {}, make_ref(), [self()]]],
    ?assertError(badarg, ats:new(told, [{evicted, self()}])),
    ?assertError(badarg, ats:new(told, [{evicted, self()}, {max_objects, infinity}])),
    T = ats:new(told, [{evicted, none}]),
    ?assertEqual(infinity, ats:info(T, max_objects)).

%% Queries see a table as it was at one moment: lists that are inserted as one are seen as a whole,
%% sums stay, and memory kept for queries goes with them.
-module(ats_one_moment_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-export([all/0, init_per_suite/1, end_per_suite/1]).
-export([lists_are_seen_whole/1, lists_of_any_length/1, bags_are_seen_whole/1,
         transfers_keep_the_sum/1, counters_keep_their_order/1, objects_come_and_go/1,
         ranges_are_of_one_moment/1, large_keys_are_read_at_one_moment/1,
         ranks_have_lists_whole/1, ranks_see_each_token/1,
         memory_comes_back/1, killed_queries_leave_nothing/1,
         tables_that_end_under_queries/1]).

all() ->
    [lists_are_seen_whole, lists_of_any_length, bags_are_seen_whole, transfers_keep_the_sum,
     counters_keep_their_order, objects_come_and_go, ranges_are_of_one_moment,
     large_keys_are_read_at_one_moment, ranks_have_lists_whole, ranks_see_each_token,
     memory_comes_back, killed_queries_leave_nothing, tables_that_end_under_queries].

init_per_suite(Config) ->
    {ok, Started} = application:ensure_all_started(ats),
    [{started, Started} | Config].

end_per_suite(Config) ->
    [application:stop(Application) || Application <- ?config(started, Config)].


%% Two writers put lists of two objects, one of which clears the table now and then.
lists_are_seen_whole(_Config) ->
    [begin
         T = ats:new(t, [Type, public]),
         true = ats:insert(T, [{a, 0}, {b, 0}]),
         Writer = fun(N) ->
                          true = ats:insert(T, [{a, N}, {b, N}]),
                          N rem 64 =:= 0 andalso ats:delete_all_objects(T)
                  end,
         beside([Writer, Writer],
                fun() ->
                        [?assert(is_whole(Values)) || Values <- reads(T)]
                end),
         true = ats:delete(T)
     end || Type <- [set, ordered_set]],
    ok.

is_whole([]) -> true;
is_whole([N, N]) -> true;
is_whole(Other) -> Other.

reads(T) ->
    [[V || {_, V} <- ats:tab2list(T)],
     ats:select(T, [{{'_', '$1'}, [], ['$1']}]),
     [V || [V] <- ats:match(T, {'_', '$1'})],
     [V || {_, V} <- ats:match_object(T, {'_', '_'})]].

%% Lists of up to a thousand objects, between others that do not change, in a table that adapts.
lists_of_any_length(_Config) ->
    [begin
         T = ats:new(t, [Type, public]),
         true = ats:insert(T, [{{other, I}, 0} || I <- lists:seq(1, 5000)]),
         Keys = [{I * 7919 rem 100003, I} || I <- lists:seq(1, Length)],
         true = ats:insert(T, [{Key, 0} || Key <- Keys]),
         Writer = fun(N) -> true = ats:insert(T, [{Key, N} || Key <- Keys]) end,
         Spec = [{{{'_', '$1'}, '$2'}, [{'=<', '$1', Length}, {'>', '$2', 0}], ['$2']}],
         beside([Writer, Writer],
                fun() ->
                        Values = ats:select(T, Spec),
                        ?assert(length(lists:usort(Values)) =< 1),
                        ?assert(lists:member(length(Values), [0, Length])),
                        ?assert(lists:member(ats:select_count(T, count_of(Spec)), [0, Length]))
                end),
         true = ats:delete(T)
     end || Type <- [set, ordered_set], Length <- [2, 10, 100, 1000]],
    ok.

count_of([{Head, Guards, _}]) -> [{Head, Guards, [true]}].

%% Each key of a bag, large or not, gets the same objects at one moment.
bags_are_seen_whole(_Config) ->
    [begin
         T = ats:new(t, [Type, public]),
         true = ats:insert(T, [{Key, {old, I}} || Key <- [a, b, c], I <- lists:seq(1, Size)]),
         Writer = fun(N) ->
                          true = ats:insert(T, [{Key, N} || Key <- [a, b, c]]),
                          %% One at a time: each is seen by itself.
                          true = ats:insert(T, {d, N}),
                          true = ats:delete_object(T, {d, N})
                  end,
         beside([Writer],
                fun() ->
                        Objects = ats:tab2list(T),
                        Values = fun(Key) -> [V || {K, V} <- Objects, K =:= Key] end,
                        ?assertEqual(Values(a), Values(b)),
                        ?assertEqual(Values(a), Values(c)),
                        ?assertEqual(lists:seq(1, length(Values(a)) - Size),
                                     lists:sort([V || V <- Values(a), is_integer(V)]))
                end),
         true = ats:delete(T)
     end || Type <- [bag, duplicate_bag], Size <- [1, 200]],
    ok.

%% Money goes from one account to another, as one list; every query finds all of it.
transfers_keep_the_sum(_Config) ->
    [begin
         T = ats:new(t, [Type, public]),
         Accounts = 2000,
         true = ats:insert(T, [{I, 100} || I <- lists:seq(1, Accounts)]),
         Writers = [fun(N) -> transfer(T, Accounts, N, Odd) end || Odd <- [0, 1]],
         beside(Writers,
                fun() ->
                        ?assertEqual(100 * Accounts, lists:sum(values(T))),
                        ?assertEqual(Accounts, length(ats:tab2list(T)))
                end),
         true = ats:delete(T)
     end || Type <- [set, ordered_set]],
    ok.

values(T) -> ats:select(T, [{{'_', '$1'}, [], ['$1']}]).

%% The writers have accounts of their own, so each reads its own writes.
transfer(T, Accounts, N, Odd) ->
    Half = Accounts div 2,
    From = 2 * (N * 31 rem Half) + 1 + Odd,
    To = 2 * (N * 17 rem Half) + 1 + Odd,
    case From =:= To of
        true ->
            ok;
        false ->
            [{_, A}] = ats:lookup(T, From),
            [{_, B}] = ats:lookup(T, To),
            true = ats:insert(T, [{From, A - 1}, {To, B + 1}])
    end.

%% Counters that change in place: the first is always as far as the second, or one ahead.
counters_keep_their_order(_Config) ->
    [begin
         T = ats:new(t, [Type, public]),
         true = ats:insert(T, [{a, 0}, {b, 0}]),
         Writer = fun(N) ->
                          N = ats:update_counter(T, a, 1),
                          N = ats:update_counter(T, b, 1)
                  end,
         beside([Writer],
                fun() ->
                        Objects = ats:tab2list(T),
                        {a, A} = lists:keyfind(a, 1, Objects),
                        {b, B} = lists:keyfind(b, 1, Objects),
                        ?assert(lists:member(A - B, [0, 1])),
                        %% Pauses, so that counters change in place again.
                        timer:sleep(rand:uniform(3))
                end),
         true = ats:delete(T)
     end || Type <- [set, ordered_set]],
    ok.

%% One object is always there: it is put under another key before it is removed.
objects_come_and_go(_Config) ->
    [begin
         T = ats:new(t, [Type, public]),
         true = ats:insert(T, {0, token}),
         Writer = fun(N) ->
                          true = ats:insert(T, {N, token}),
                          [{_, token}] = ats:take(T, N - 1)
                  end,
         beside([Writer],
                fun() ->
                        Keys = lists:sort([K || {K, token} <- ats:tab2list(T)]),
                        case Keys of
                            [_] -> ok;
                            [A, B] -> ?assertEqual(A + 1, B)
                        end
                end),
         true = ats:delete(T)
     end || Type <- [set, ordered_set]],
    ok.

ranges_are_of_one_moment(_Config) ->
    T = ats:new(t, [ordered_set, public]),
    Keys = lists:seq(1, 300),
    true = ats:insert(T, [{{x, I}, 0} || I <- Keys]),
    Writer = fun(N) -> true = ats:insert(T, [{{x, I}, N} || I <- Keys]) end,
    beside([Writer],
           fun() ->
                   Values = [V || {_, V} <- ats:range(T, {x, 10}, {x, 250})],
                   ?assertEqual(1, length(lists:usort(Values))),
                   Others = [V || {_, V} <- ats:prefix(T, {x, '_'})],
                   ?assertEqual([300], [length(Others)]),
                   ?assertEqual(1, length(lists:usort(Others)))
           end),
    true = ats:delete(T),
    ok.

%% One key of a bag with so many objects that they are read in several slices. One more object goes
%% from before all of these to behind them, and back: it is put there before it is removed here.
large_keys_are_read_at_one_moment(_Config) ->
    Size = 60000,
    Spec = [{{key, '$1'}, [{'orelse', {'<', '$1', 1}, {'>', '$1', Size}}], ['$1']}],
    Token = fun(N) when N rem 2 =:= 0 -> {key, -N};
               (N) -> {key, Size + N}
            end,
    [begin
         T = ats:new(t, [Type, public]),
         true = ats:insert(T, [{key, I} || I <- lists:seq(1, Size)]),
         true = ats:insert(T, Token(0)),
         Writer = fun(N) ->
                          true = ats:insert(T, Token(N)),
                          true = ats:delete_object(T, Token(N - 1))
                  end,
         beside([Writer],
                fun() ->
                        Found = ats:select(T, Spec),
                        ?assert(lists:member(length(Found), [1, 2])),
                        ?assert(lists:member(ats:select_count(T, count_of(Spec)), [1, 2])),
                        ?assert(lists:member(length(all_chunks(ats:select(T, Spec, 1))), [1, 2]))
                end),
         true = ats:delete(T)
     end || Type <- [bag, duplicate_bag, ordered_bag, ordered_duplicate_bag]],
    ok.

all_chunks('$end_of_table') -> [];
all_chunks({Chunk, Continuation}) -> Chunk ++ all_chunks(ats:select(Continuation)).

-define(ORDERED, [ordered_set, ordered_bag, ordered_duplicate_bag]).
-define(ALL, [{low, unbounded}, {high, unbounded}]).

%% Lists of new objects, while the table is divided, or is not: a count has all of a list or none,
%% also if lists are on their way all the time.
ranks_have_lists_whole(_Config) ->
    [begin
         T = ats:new(t, [Type, public]),
         true = ats_nif:force_adaptation(T, Adapts, Adapts),
         true = ats:insert(T, [{{5, other, I}, 0} || I <- lists:seq(1, 10 * Length)]),
         Writer = fun(W) ->
                      fun(N) ->
                          true = ats:insert(T, [{{I, W, N}, I} || I <- lists:seq(1, Length)])
                      end
                  end,
         beside([Writer(1), Writer(2)],
                fun() ->
                        Count = ats:range_count(T, x, x, ?ALL),
                        ?assertEqual(0, Count rem Length),
                        Lists = Count div Length - 10,
                        [?assertMatch({{1, _, _}, 1}, ats:nth(T, rand:uniform(Lists)))
                         || Lists > 0],
                        ?assertEqual(0, ats:rank(T, {1})),
                        ?assertEqual(0, ats:rank(T, {Length + 1, 0, 0}) rem Length)
                end),
         true = ats:delete(T)
     end || Type <- ?ORDERED, Length <- [2, 10, 1000], Adapts <- [0, 50]],
    ok.

%% One object of each of two writers is always there: it is put under another key before it is
%% removed.
ranks_see_each_token(_Config) ->
    [begin
         T = ats:new(t, [Type, public]),
         true = ats_nif:force_adaptation(T, Adapts, Adapts),
         true = ats:insert(T, [{{W, 0}, token} || W <- [1, 2]]),
         Writer = fun(W) ->
                      fun(N) ->
                          true = ats:insert(T, {{N * 7919 rem 10007, W, N}, token}),
                          [_] = ats:take(T, case N of
                                                1 -> {W, 0};
                                                _ -> {(N - 1) * 7919 rem 10007, W, N - 1}
                                            end)
                      end
                  end,
         beside([Writer(1), Writer(2)],
                fun() ->
                        ?assert(lists:member(ats:range_count(T, x, x, ?ALL), [2, 3, 4])),
                        ?assertMatch({_, token}, ats:nth(T, 2)),
                        ?assertMatch({_, token}, ats:nth(T, -2)),
                        ?assertEqual('$end_of_table', ats:nth(T, 5)),
                        ?assertEqual('$end_of_table', ats:nth(T, -5))
                end),
         true = ats:delete(T)
     end || Type <- ?ORDERED, Adapts <- [0, 50]],
    ok.

%% Objects that queries have kept go with them.
memory_comes_back(_Config) ->
    [begin
         T = ats:new(t, [Type, public]),
         %% An immediate value would change in place, and the object would take a word more.
         true = ats:insert(T, [{I, [0]} || I <- lists:seq(1, 20000)]),
         Before = ats:info(T, memory),
         Writer = fun(N) -> true = ats:insert(T, {N * 7919 rem 20000 + 1, [N]}) end,
         beside([Writer], fun() -> 20000 = length(ats:tab2list(T)) end),
         timer:sleep(300),
         After = ats:info(T, memory),
         ?assert(abs(After - Before) =< Before div 20),
         true = ats:delete(T)
     end || Type <- [set, ordered_set]],
    ok.

%% A process that is killed in a query gives back at once the memory kept for it.
killed_queries_leave_nothing(_Config) ->
    T = ats:new(t, [ordered_set, public]),
    true = ats:insert(T, [{I, 0} || I <- lists:seq(1, 200000)]),
    [begin
         {Pid, Ref} = spawn_monitor(fun() -> [ats:tab2list(T) || _ <- lists:seq(1, 1000)] end),
         timer:sleep(N),
         true = ats:insert(T, [{I, N} || I <- lists:seq(1, 1000)]),
         exit(Pid, kill),
         receive {'DOWN', Ref, process, Pid, killed} -> ok end
     end || N <- lists:seq(1, 30)],
    200000 = length(ats:tab2list(T)),
    true = ats:delete(T),
    ok.

%% A table that is deleted or cleared while it is read.
tables_that_end_under_queries(_Config) ->
    [begin
         T = ats:new(t, [Type, public]),
         true = ats:insert(T, [{I, 0} || I <- lists:seq(1, 50000)]),
         {Pid, Ref} =
             spawn_monitor(fun() ->
                                   Read = fun Read() ->
                                                  Length = length(ats:tab2list(T)),
                                                  ?assert(lists:member(Length, [0, 50000])),
                                                  Read()
                                          end,
                                   Read()
                           end),
         timer:sleep(20),
         true = ats:delete_all_objects(T),
         timer:sleep(20),
         true = ats:delete(T),
         receive
             {'DOWN', Ref, process, Pid, {badarg, _}} -> ok
         end
     end || Type <- [set, ordered_set], _ <- lists:seq(1, 5)],
    ok.

%% ATS_MOMENT_MS says for how many milliseconds each reader reads beside writers.
beside(Writers, Read) ->
    Time = list_to_integer(os:getenv("ATS_MOMENT_MS", "400")),
    ats_test_lib:beside(Writers, Time, Read).

%% Work that uses up memory in every way a table can, and must give all of it back.
%%
%% A few tables live on, others come and go. Work is done in phases of some calls, by several
%% processes at once: the tables grow, are changed while they stay as large as they are, and
%% shrink. How much is in them afterwards depends on the number of calls, and hardly on chance or on
%% how fast the machine is. After a phase all workers are gone and nothing is fixed any more.
%%
%% The tables are those of the module under test, see `ats_oracle:subject/0'.
-module(ats_churn).

-export([start/0, phase/3, clear/0, objects/0]).

-export_type([mode/0]).

-type mode() :: grow | change | shrink.

-define(TABLES, {?MODULE, tables}).
%% Keys that are written one by one, in lists, as counters.
-define(KEYS, 30000).
-define(LIST_KEYS, 30000).
-define(COUNTERS, 1000).
%% Keys of bags with many objects each, and how many different ones.
-define(HOT_KEYS, 3).
-define(HOT_OBJECTS, 3000).
%% Objects of one key that come in one list and go with one call.
-define(HUGE_OBJECTS, 4000).

%% Makes the tables; the process that owns them lives as long as the virtual machine.
-spec start() -> ok.
start() ->
    Caller = self(),
    {Owner, Mon} = spawn_monitor(fun() ->
        M = ats_oracle:subject(),
        Tables = [{Work, M:new(churned, [public | Options])} || {Work, Options} <- kinds()],
        persistent_term:put(?TABLES, list_to_tuple(Tables)),
        Caller ! {self(), ready},
        receive
            stop -> ok
        end
    end),
    receive
        {Owner, ready} ->
            true = erlang:demonitor(Mon, [flush]),
            ok;
        {'DOWN', Mon, process, Owner, Reason} ->
            error(Reason)
    end.

kinds() ->
    [
        {single, [set]},
        {single, [set, {write_concurrency, auto}, compressed]},
        {single, [ordered_set]},
        {single, [ordered_set, compressed]},
        {bag, [bag]},
        {bag, [bag, compressed]},
        {bag, [duplicate_bag]},
        {counter, [set]},
        {counter, [ordered_set]},
        {list, [set]},
        {list, [ordered_set]}
    ].

%% Runs `Workers' processes, each of which makes `Calls' calls.
-spec phase(mode(), pos_integer(), pos_integer()) -> ok.
phase(Mode, Calls, Workers) ->
    M = ats_oracle:subject(),
    Tables = persistent_term:get(?TABLES),
    Work = fun() -> work(M, Tables, Mode, Calls) end,
    lists:foreach(
        fun(ok) -> ok end,
        ats_test_lib:parallel(lists:duplicate(Workers, Work))
    ).

-spec clear() -> ok.
clear() ->
    M = ats_oracle:subject(),
    Tables = tuple_to_list(persistent_term:get(?TABLES)),
    lists:foreach(fun({_, T}) -> true = M:delete_all_objects(T) end, Tables).

%% Returns the number of objects in the tables.
-spec objects() -> non_neg_integer().
objects() ->
    M = ats_oracle:subject(),
    lists:sum([M:info(T, size) || {_, T} <- tuple_to_list(persistent_term:get(?TABLES))]).

%% ----- one process -----

work(_, _, _, 0) ->
    ok;
work(M, Tables, Mode, Calls) ->
    {Work, T} = element(rand:uniform(tuple_size(Tables)), Tables),
    case rand:uniform(10000) of
        N when N =< 5 -> come_and_go(M);
        N when N =< 15 -> fixed(M, T, Work);
        _ -> operation(Work, M, T, wanted(Mode))
    end,
    work(M, Tables, Mode, Calls - 1).

%% Draws whether this operation puts something in, takes something out, or looks.
wanted(Mode) ->
    case {Mode, rand:uniform(10)} of
        {_, N} when N > 8 -> look;
        {grow, N} when N > 2 -> put;
        {shrink, N} when N =< 6 -> remove;
        {change, N} when N > 4 -> put;
        {grow, _} -> remove;
        {shrink, _} -> put;
        {change, _} -> remove
    end.

operation(single, M, T, Wanted) -> single(M, T, rand:uniform(?KEYS), Wanted);
operation(bag, M, T, Wanted) -> bag(M, T, Wanted);
operation(counter, M, T, Wanted) -> counter(M, T, {counter, rand:uniform(?COUNTERS)}, Wanted);
operation(list, M, T, Wanted) -> list(M, T, Wanted).

single(M, T, K, put) ->
    case rand:uniform(4) of
        1 -> M:insert_new(T, {K, value(), 1});
        2 -> M:update_element(T, K, {2, value()});
        _ -> M:insert(T, {K, value(), 1})
    end;
single(M, T, K, remove) ->
    case rand:uniform(3) of
        1 -> M:take(T, K);
        _ -> M:delete(T, K)
    end;
single(M, T, K, look) ->
    case rand:uniform(3) of
        1 -> M:lookup_element(T, K, 2, none);
        2 -> M:member(T, K);
        3 -> M:lookup(T, K)
    end.

bag(M, T, Wanted) ->
    case rand:uniform(1000) of
        1 -> huge_key(M, T, Wanted);
        N when N =< 500 -> one_of_many(M, T, {hot, rand:uniform(?HOT_KEYS)}, Wanted);
        _ -> few(M, T, rand:uniform(?KEYS div 4), Wanted)
    end.

few(M, T, K, put) -> M:insert(T, {K, value()});
few(M, T, K, remove) -> M:delete(T, K);
few(M, T, K, look) -> M:lookup(T, K).

one_of_many(M, T, K, put) ->
    M:insert(T, {K, rand:uniform(?HOT_OBJECTS)});
one_of_many(M, T, K, remove) ->
    M:delete_object(T, {K, rand:uniform(?HOT_OBJECTS)});
one_of_many(M, T, K, look) ->
    case rand:uniform(50) of
        1 -> M:lookup(T, K);
        _ -> M:member(T, K)
    end.

huge_key(M, T, put) ->
    M:insert(T, [{{huge, 1}, N} || N <- lists:seq(1, ?HUGE_OBJECTS)]),
    M:delete(T, {huge, 1});
huge_key(M, T, remove) ->
    M:take(T, {huge, 1});
huge_key(M, T, look) ->
    M:lookup(T, {huge, 1}).

counter(M, T, K, put) ->
    case rand:uniform(20) of
        1 -> M:update_counter(T, K, {2, 1 bsl 59}, {K, 0, 0});
        2 -> M:update_counter(T, K, [{2, 1}, {3, -1, 0, 1000}], {K, 0, 0});
        _ -> M:update_counter(T, K, {3, 1}, {K, 0, 0})
    end;
counter(M, T, K, remove) ->
    M:delete(T, K);
counter(M, T, K, look) ->
    M:lookup(T, K).

list(M, T, put) ->
    Length =
        case rand:uniform(200) of
            1 -> 1500;
            _ -> 10
        end,
    Objects = [{rand:uniform(?LIST_KEYS), rand:uniform(100)} || _ <- lists:seq(1, Length)],
    case rand:uniform(3) of
        1 -> M:insert_new(T, Objects);
        _ -> M:insert(T, Objects)
    end;
list(M, T, remove) ->
    [M:delete(T, rand:uniform(?LIST_KEYS)) || _ <- lists:seq(1, 10)];
list(M, T, look) ->
    [M:lookup(T, rand:uniform(?LIST_KEYS)) || _ <- lists:seq(1, 10)].

%% Every kind of memory that an object can hold.
value() ->
    case rand:uniform(12) of
        1 -> rand:uniform(1 bsl 70);
        2 -> rand:bytes(rand:uniform(60));
        3 -> rand:bytes(64 + rand:uniform(600));
        4 -> binary:copy(<<"text that is easy to compress ">>, rand:uniform(20));
        5 -> lists:seq(1, rand:uniform(40));
        6 -> maps:from_list([{N, {value, N}} || N <- lists:seq(1, rand:uniform(40))]);
        7 -> rand:uniform();
        8 -> make_ref();
        9 -> atomics:new(10, []);
        10 -> {nested, [self(), {fun value/0, <<1:3>>}]};
        _ -> rand:uniform(1000)
    end.

%% Deletes under a fixation, which ends as it should or with the process that holds it.
fixed(M, T, Work) ->
    Fixed = fun() ->
        true = M:safe_fixtable(T, true),
        [operation(Work, M, T, Wanted) || _ <- lists:seq(1, 30), Wanted <- [remove, put, remove]],
        walk(M, T, M:first(T), 50)
    end,
    case rand:uniform(2) of
        1 ->
            Fixed(),
            true = M:safe_fixtable(T, false);
        2 ->
            {Pid, Mon} = spawn_monitor(fun() ->
                Fixed(),
                exit(fixed)
            end),
            receive
                {'DOWN', Mon, process, Pid, fixed} -> true
            end
    end.

walk(_, _, '$end_of_table', _) -> ok;
walk(_, _, _, 0) -> ok;
walk(M, T, K, N) -> walk(M, T, M:next(T, K), N - 1).

%% A table of its own that goes in one of several ways.
come_and_go(M) ->
    Types = {set, ordered_set, bag, duplicate_bag},
    Type = element(rand:uniform(tuple_size(Types)), Types),
    {Pid, Mon} = spawn_monitor(fun() ->
        T = M:new(passing, [Type, public | [compressed || rand:uniform(2) =:= 1]]),
        [M:insert(T, {rand:uniform(500), value()}) || _ <- lists:seq(1, 1000)],
        M:insert(T, [{N, value()} || N <- lists:seq(1, 1000)]),
        case rand:uniform(4) of
            1 -> M:delete(T);
            2 -> M:delete_all_objects(T);
            3 -> M:safe_fixtable(T, true);
            4 -> ok
        end,
        exit(gone)
    end),
    receive
        {'DOWN', Mon, process, Pid, gone} -> ok
    end.

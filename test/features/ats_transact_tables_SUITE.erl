%% `transact/1': keys of several tables are tested and changed as one step.
-module(ats_transact_tables_SUITE).

-include_lib("stdlib/include/assert.hrl").

-export([all/0]).
-export([documented/1, all_types/1, same_table/1, bad_parts/1, bad_tables/1, disk/1, rights/1]).
-export([limits/1, expiring/1, bounds/1, snapshots/1, long/1]).
-export([bank/1, versions/1, racing/1, killed_callers/1]).
-export([deleted_meanwhile/1, cleared_meanwhile/1]).

-define(TYPES, [set, ordered_set, bag, duplicate_bag, ordered_bag, ordered_duplicate_bag]).

all() ->
    [documented, all_types, same_table, bad_parts, bad_tables, disk, rights, limits, expiring,
     bounds, snapshots, long, bank, versions, racing, killed_callers, deleted_meanwhile,
     cleared_meanwhile].

%%--------------------------------------------------------------------------------------------
%% Results
%%--------------------------------------------------------------------------------------------

documented(_) ->
    Waiting = ats:new(waiting, [ordered_set]),
    Running = ats:new(running, []),
    ats:insert(Waiting, {1, print}),
    Start = [{Waiting, [{present, 1}], [{take, 1}], []},
             {Running, [{absent, printer}], [{insert, {printer, 1}}], [{lookup, printer}]}],
    ?assertEqual({true, [[[{1, print}]], [true]]}, ats:transact(Start)),
    ?assertEqual({false, [[], [[{printer, 1}]]]}, ats:transact(Start)),
    ?assertEqual({[], [{printer, 1}]}, {ats:tab2list(Waiting), ats:tab2list(Running)}),
    ?assertEqual({true, []}, ats:transact([])),
    ?assertEqual({true, [[1]]},
                 ats:transact([{Running, [], [{update_counter, jobs, 1, {jobs, 0}}], []}])).

%% Conditions on one table decide about the steps of all others, of whatever types.
all_types(_) ->
    Tables = [ats:new(t, [Type | Options])
              || Type <- ?TYPES, Options <- [[], [compressed], [{ttl, 1000000}], [{keypos, 2}]]],
    Test = ats:new(test, [ordered_set]),
    ats:insert(Test, {go, 1}),
    Parts = [{T, [], [{insert, {a, b, 1}}, {insert, {b, a, 2}}, {delete, a}],
              [{insert, {a, a, 3}}, {lookup, b}]} || T <- Tables],
    Key = fun(T) -> ats:info(T, keypos) end,
    ?assertEqual({true, [[true, true, true] || _ <- Tables] ++ [[1]]},
                 ats:transact(Parts ++ [{Test, [{present, go}], [{update_counter, go, 0}], []}])),
    [?assertEqual([case Key(T) of 1 -> {b, a, 2}; 2 -> {a, b, 1} end], ats:tab2list(T))
     || T <- Tables],
    ?assertEqual({false, [[]] ++ [[true, ats:lookup(T, b)] || T <- Tables]},
                 ats:transact([{Test, [{absent, go}], [{insert, {gone, 1}}], []} | Parts])),
    [?assertEqual(2, ats:info(T, size)) || T <- Tables],
    ?assertEqual([{go, 1}], ats:tab2list(Test)).

%% The parts of one table are carried out in their order, after all conditions.
same_table(_) ->
    T = ats:new(t, [named_table]),
    U = ats:new(u, []),
    ats:insert(T, {a, 1}),
    ?assertEqual({true, [[2], [4], [[{a, 4}], true]]},
                 ats:transact([{T, [{equals, {a, 1}}], [{update_counter, a, 1}], []},
                               {ats:whereis(T), [{equals, {a, 1}}],
                                [{update_counter, a, 2}], []},
                               {T, [], [{lookup, a}, {delete, a}], []}])),
    ?assertEqual({false, [[[]], [], [true]]},
                 ats:transact([{T, [], [], [{lookup, a}]}, {U, [{present, a}], [], []},
                               {T, [], [], [{insert, {a, 5}}]}])),
    ?assertEqual([{a, 5}], ats:tab2list(T)),
    ats:delete(T).

%%--------------------------------------------------------------------------------------------
%% Errors
%%--------------------------------------------------------------------------------------------

%% Returns the explanation of the only argument.
text(Tables) ->
    try ats:transact(Tables) of
        Result -> error({no_error, Result})
    catch error:badarg:Stack ->
            unicode:characters_to_list(maps:get(1, ats_errors:format_error(badarg, Stack)))
    end.

bad_parts(_) ->
    [T, U, V] = Tables = [ats:new(t, [Type]) || Type <- [set, bag, ordered_set]],
    [ats:insert(Table, {a, 1, text}) || Table <- Tables],
    Good = {T, [{present, a}], [{insert, {b, 2}}, {delete, a}], []},
    [begin
         ?assertEqual("table number 2" ++ Text, text([Good, Bad, Good])),
         [?assertEqual([{a, 1, text}], ats:tab2list(Table)) || Table <- Tables]
     end || {Bad, Text} <-
                [{{U, [{present, a}, {a}], [], []},
                  ", condition number 2: not a condition or a step"},
                 {{U, [{match, a, {'_'}, [{no_such, 1}]}], [], []},
                  ", condition number 1: not a valid pattern with guards"},
                 {{U, [], [{insert, {c, 1}}, {update_counter, a, 1}], []},
                  ", step number 2 of Then: not supported by tables of this type"},
                 {{U, [], [], [{insert, a}]},
                  ", step number 1 of Else: not a valid object, operation, or counter"},
                 {{V, [], [{update_counter, a, {3, 1}}], []},
                  ", step number 1 of Then: not a valid object, operation, or counter"},
                 {{V, [], [{update_counter, missing, 1}], []},
                  ", step number 1 of Then: not a key that exists in the table"},
                 {{U, [], [{range_delete, a, b}], []},
                  ", step number 1 of Then: a transaction holds the keys that it names, and this "
                  "step would need others: name each key, as in a step `delete'"},
                 {{U, a, [], []}, ", conditions: not a proper list"},
                 {{U, [], [{delete, a} | b], []}, ", Then: not a proper list"},
                 {{U, [], [], b}, ", Else: not a proper list"},
                 {{U, [], []}, ": not a tuple of a table, conditions, and two lists of steps"},
                 {U, ": not a tuple of a table, conditions, and two lists of steps"}]],
    ?assertEqual("not a list", text(T)),
    ?assertEqual("not a proper list", text([Good | T])).

bad_tables(_) ->
    T = ats:new(t, []),
    Steps = {T, [], [{insert, {a, 1}}], []},
    Deleted = ats:new(t, []),
    ats:delete(Deleted),
    Snapshot = ats:snapshot(T),
    [?assertEqual("table number 2: " ++ Text, text([Steps, {Table, [], [], []}, Steps]))
     || {Table, Text} <-
            [{Deleted, "the table identifier does not refer to an existing ATS table: it was "
              "deleted, or its owner has ended"},
             {no_such_table, "the table identifier does not refer to an existing ATS table"},
             {make_ref(), "not a valid table identifier"},
             {"t", "not an atom or a table identifier"},
             {Snapshot, "the table is a snapshot, which can only be read"}]],
    ?assertEqual([], ats:tab2list(T)).

disk(Config) ->
    {ok, _} = application:ensure_all_started(ats),
    File = filename:join(proplists:get_value(priv_dir, Config), ?FUNCTION_NAME),
    {ok, D} = dats:open_file(?FUNCTION_NAME, [{file, File}]),
    T = ats:new(t, []),
    Steps = [{insert, {a, 1}}],
    ?assertEqual("table number 2: the table is on disk: dats:transact/4 changes it, and no other "
                 "table with it",
                 text([{T, [], Steps, []}, {D, [], Steps, []}])),
    try ats:transact(D, [], Steps, []) of
        Result -> error({no_error, Result})
    catch error:badarg:Stack ->
            ?assertEqual(#{1 => <<"the table identifier does not refer to an existing ATS table: "
                                  "it is a table of dats">>},
                         ats_errors:format_error(badarg, Stack))
    end,
    ?assertEqual({[], []}, {ats:tab2list(T), dats:tab2list(D)}),
    ok = dats:close(D).

rights(_) ->
    Mine = ats:new(mine, [public]),
    {Pid, Monitor} = spawn_monitor(
                       fun() ->
                               [receive_table(Protection)
                                || Protection <- [protected, private, public]]
                       end),
    Try = fun(Protection) ->
                  Pid ! {make, self()},
                  T = receive {made, Protection, Made} -> Made end,
                  [{Mine, [], [{insert, {Protection, 1}}], []},
                   {T, [], [{insert, {a, 1}}], []}]
          end,
    [?assertEqual("table number 2: the table identifier refers to an ATS table with insufficient "
                  "access rights: it is `" ++ atom_to_list(Protection) ++ "', and another process "
                  "is its owner", text(Try(Protection)))
     || Protection <- [protected, private]],
    Public = Try(public),
    ?assertEqual({true, [[true], [true]]}, ats:transact(Public)),
    ?assertEqual([{public, 1}], ats:tab2list(Mine)),
    %% The table ends with its owner.
    Pid ! stop,
    receive {'DOWN', Monitor, _, _, normal} -> ok end,
    ?assertEqual("table number 2: the table identifier does not refer to an existing ATS table: "
                 "it was deleted, or its owner has ended",
                 text(Public)).

receive_table(Protection) ->
    receive {make, From} -> From ! {made, Protection, ats:new(t, [Protection])} end,
    Protection =:= public andalso receive stop -> ok end.

limits(_) ->
    Tables = [ats:new(t, []) || _ <- lists:seq(1, 65)],
    Parts = [{T, [{absent, a}], [{insert, {a, 1}}], []} || T <- Tables],
    ?assertEqual("table number 65: a transaction has up to 64 tables", text(Parts)),
    ?assertEqual({true, [[true] || _ <- tl(Tables)]}, ats:transact(tl(Parts))),
    ?assertEqual([0 | [1 || _ <- tl(Tables)]], [ats:info(T, size) || T <- Tables]),
    T = hd(Tables),
    Many = [{T, [{absent, a}], [{lookup, a}], []} || _ <- lists:seq(1, 3333)],
    ?assertEqual("more than 10000 tables, conditions and steps", text(Many ++ Many)),
    ?assertEqual("more than 10000 tables, conditions and steps",
                 text([{T, [], [{lookup, a}], []} | Many])),
    ?assertEqual({true, [[[]] || _ <- Many]}, ats:transact(Many)).

%%--------------------------------------------------------------------------------------------
%% Kinds of tables
%%--------------------------------------------------------------------------------------------

expiring(_) ->
    T = ats:new(t, [{ttl, 1000}]),
    U = ats:new(u, [ordered_set]),
    ats:insert(T, {a, 1}),
    ats_nif:advance_clock(1100),
    ?assertEqual({true, [[[], true], [true]]},
                 ats:transact([{T, [{absent, a}], [{take, a}, {insert_new, {a, 2}}], []},
                               {U, [], [{insert, {a, 1}}], []}])),
    ?assert(ats:ttl(T, a) > 900).

bounds(_) ->
    [A, B] = [ats:new(t, [{max_objects, 100}, Type]) || Type <- [set, ordered_set]],
    Inserts = [{insert, {K, K}} || K <- lists:seq(1, 500)],
    {true, _} = ats:transact([{A, [], Inserts, []}, {B, [], Inserts, []}]),
    ?assertEqual([{100, 400}, {100, 400}],
                 [{ats:info(T, size), ats:info(T, evicted)} || T <- [A, B]]),
    Small = ats:new(t, [{max_memory, 20000}]),
    Other = ats:new(t, []),
    ?assertEqual("table number 2: the objects of a key are larger than the option `max_memory' of "
                 "the table says",
                 text([{Other, [], [{insert, {a, 1}}], []},
                       {Small, [], [{insert, {b, lists:seq(1, 20000)}}], []}])),
    ?assertEqual({[], []}, {ats:tab2list(Small), ats:tab2list(Other)}).

snapshots(_) ->
    [A, B] = Tables = [ats:new(t, [Type]) || Type <- [set, ordered_set]],
    [ats:insert(T, [{a, 1}, {b, 1}]) || T <- Tables],
    Before = ats:snapshot(A),
    {true, _} = ats:transact([{T, [], [{delete, a}, {insert, {b, 2}}], []} || T <- Tables]),
    ?assertEqual([{a, 1}, {b, 1}], lists:sort(ats:tab2list(Before))),
    [?assertEqual([{b, 2}], ats:tab2list(T)) || T <- [A, B, ats:snapshot(B)]],
    ats:release(Before),
    ?assertEqual([{b, 2}], ats:tab2list(A)).

%% Many keys and large objects.
long(_) ->
    Tables = [ats:new(t, [Type]) || Type <- ?TYPES],
    Keys = lists:seq(1, 800),
    Large = binary:copy(<<"x">>, 100000),
    {true, _} = ats:transact([{T, [{absent, K} || K <- Keys],
                               [{insert, {K, Large}} || K <- Keys], []} || T <- Tables]),
    {true, _} = ats:transact([{T, [{equals, {K, Large}} || K <- Keys],
                               [{delete, K} || K <- Keys], []} || T <- Tables]),
    [?assertEqual(0, ats:info(T, size)) || T <- Tables].

%%--------------------------------------------------------------------------------------------
%% Concurrency
%%--------------------------------------------------------------------------------------------

in_processes(Number, Work) ->
    Pids = [spawn_monitor(fun() -> Work(N) end) || N <- lists:seq(1, Number)],
    fun() ->
            [receive {'DOWN', Monitor, process, Pid, Reason} -> ?assertEqual(normal, Reason) end
             || {Pid, Monitor} <- Pids]
    end.

until(Flag, Work) ->
    case atomics:get(Flag, 1) of
        0 -> Work(), until(Flag, Work);
        1 -> ok
    end.

%% Money moves between accounts of two tables, which name the tables in different orders. All sums
%% of one step are the same.
bank(_) ->
    [begin
         [A, B] = [ats:new(bank, [Type, public | Options]) || Type <- [set, ordered_set]],
         [ats:insert(T, [{Account, 100} || Account <- lists:seq(1, 5)]) || T <- [A, B]],
         Over = atomics:new(1, []),
         Wait = in_processes(3, fun(N) ->
                                        {From, To} = case N of 2 -> {B, A}; _ -> {A, B} end,
                                        until(Over, fun() -> transfer(From, To) end)
                                end),
         All = [{lookup, Account} || Account <- lists:seq(1, 5)],
         [begin
              {true, Found} = ats:transact([{B, [], All, []}, {A, [], All, []}]),
              Amounts = [Amount || [{_, Amount}] <- lists:append(Found)],
              ?assertEqual({10, 1000}, {length(Amounts), lists:sum(Amounts)})
          end || _ <- lists:seq(1, 300)],
         atomics:put(Over, 1, 1),
         Wait(),
         ?assertEqual(1000, lists:sum([Amount || T <- [A, B], {_, Amount} <- ats:tab2list(T)])),
         ats:delete(A),
         ats:delete(B)
     end || Options <- [[], [{ttl, 1000000}]]].

transfer(From, To) ->
    [Payer, Payee] = [rand:uniform(5) || _ <- [1, 2]],
    {_, [[_], [_]]} = ats:transact([{From, [{match, Payer, {'_', '$1'}, [{'>', '$1', 1}]}],
                                     [{update_counter, Payer, -1}], [{lookup, Payer}]},
                                    {To, [], [{update_counter, Payee, 1}], [{lookup, Payee}]}]).

%% A reader that has seen a change in one table sees it in the others, in whatever order it looks at
%% them, and whether it looks a key up or queries a moment.
versions(_) ->
    Tables = [ats:new(t, [Type, public]) || Type <- [set, ordered_set, set]],
    [ats:insert(T, [{a, 0}, {b, 0}]) || T <- Tables],
    Over = atomics:new(1, []),
    Parts = [{T, [], [{update_element, K, {2, new}} || K <- [a, b]], []} || T <- Tables],
    Next = fun() ->
                   [{a, N}] = ats:lookup(hd(Tables), a),
                   ats:transact([{T, [{equals, {a, N}} || T =:= hd(Tables)],
                                  [setelement(3, Step, {2, N + 1}) || Step <- Steps], []}
                                 || {T, [], Steps, []} <- Parts])
           end,
    Wait = in_processes(2, fun(_) -> until(Over, Next) end),
    Reads = [fun(T) -> ats:lookup_element(T, one_of([a, b]), 2) end,
             fun(T) -> [N, N] = ats:select(T, [{{'_', '$1'}, [], ['$1']}]), N end,
             fun(T) ->
                     S = ats:snapshot(T),
                     [{_, N}, {_, N}] = ats:tab2list(S),
                     ats:release(S),
                     N
             end],
    Readers = in_processes(2, fun(_) -> [look(one_of(Reads), Tables)
                                         || _ <- lists:seq(1, 2000)] end),
    Readers(),
    atomics:put(Over, 1, 1),
    Wait(),
    ?assertMatch([{a, N}, {b, N}], lists:sort(ats:tab2list(hd(Tables)))).

look(Read, Tables) ->
    Seen = [Read(one_of(Tables)) || _ <- [1, 2, 3, 4]],
    ?assertEqual(lists:sort(Seen), Seen).

one_of(List) -> lists:nth(rand:uniform(length(List)), List).

%% One of several callers that want the same keys of two tables gets them.
racing(_) ->
    [A, B] = [ats:new(t, [Type, public]) || Type <- [set, ordered_bag]],
    Keys = lists:seq(1, 200),
    Wait = in_processes(4, fun(N) ->
                                   [begin
                                        Parts = [{T, [{absent, K}], [{insert, {K, N}}],
                                                  [{lookup, K}]} || T <- [A, B]],
                                        Order = case N rem 2 of
                                                    0 -> Parts;
                                                    1 -> lists:reverse(Parts)
                                                end,
                                        case ats:transact(Order) of
                                            {true, [[true], [true]]} -> ok;
                                            {false, [[[{K, Other}]], [[{K, Other}]]]} -> ok
                                        end
                                    end || K <- Keys]
                           end),
    Wait(),
    ?assertEqual(lists:sort(ats:tab2list(A)), ats:tab2list(B)),
    ?assertEqual({200, 200}, {ats:info(A, size), ats:info(B, size)}).

%% A caller that is killed has done all of its transaction, or nothing.
killed_callers(_) ->
    [A, B] = [ats:new(t, [public, Type]) || Type <- [set, ordered_set]],
    Keys = lists:seq(1, 200),
    ats:insert(A, [{K, 0} || K <- Keys]),
    Move = fun(From, To) ->
                   ats:transact([{From, [{present, K} || K <- Keys], [{take, K} || K <- Keys], []},
                                 {To, [], [{insert, {K, 0}} || K <- Keys], []}])
           end,
    [begin
         Pid = spawn(fun Loop() -> Move(A, B), Move(B, A), Loop() end),
         timer:sleep(rand:uniform(5)),
         exit(Pid, kill),
         Lookups = [{lookup, K} || K <- Keys],
         {true, Found} = ats:transact([{A, [], Lookups, []}, {B, [], Lookups, []}]),
         ?assertEqual([0, 200], lists:sort([length(lists:append(Of)) || Of <- Found]))
     end || _ <- lists:seq(1, 50)],
    %% All keys are free.
    [?assert(ats:insert(T, [{K, 1} || K <- Keys])) || T <- [A, B]].

%% Tables that come and go leave transactions whole or undone. When the deletion of a table has
%% returned, no transaction over it changes another one.
deleted_meanwhile(_) ->
    A = ats:new(t, [public]),
    ats:insert(A, {done, 0}),
    Over = atomics:new(1, []),
    Pass = fun() ->
                   T = ats:new(passing, [named_table, public, one_of([set, ordered_set])]),
                   ats:insert(T, {done, 0}),
                   erlang:yield(),
                   ats:delete(T),
                   Done = ats:lookup(A, done),
                   erlang:yield(),
                   ?assertEqual(Done, ats:lookup(A, done))
           end,
    Passing = in_processes(1, fun(_) -> until(Over, Pass) end),
    Step = {update_counter, done, 1, {done, 0}},
    Work = fun(_) -> [one_more(A, Step) || _ <- lists:seq(1, 3000)] end,
    Self = self(),
    Working = in_processes(2, fun(N) -> Self ! {done, lists:sum(Work(N))} end),
    Working(),
    atomics:put(Over, 1, 1),
    Passing(),
    Done = lists:sum([receive {done, Number} -> Number end || _ <- [1, 2]]),
    ?assertEqual([{done, Done}], ats:tab2list(A)).

one_more(A, Step) ->
    try ats:transact([{A, [], [Step], []}, {passing, [], [Step], []}]) of
        {true, [[_], [_]]} -> 1
    catch error:badarg -> 0
    end.

%% A transaction never changes one table before the table is cleared, and another one after that.
cleared_meanwhile(_) ->
    [A, B] = [ats:new(t, [public, Type]) || Type <- [set, ordered_set]],
    Over = atomics:new(1, []),
    Step = {update_counter, done, 1, {done, 0}},
    Count = fun() -> {true, [[_], [_]]} = ats:transact([{T, [], [Step], []} || T <- [A, B]]) end,
    Wait = in_processes(2, fun(_) -> until(Over, Count) end),
    Ahead = fun() ->
                    Look = {lookup, done},
                    {true, [[InA], [InB]]} = ats:transact([{T, [], [Look], []} || T <- [A, B]]),
                    [Of] = [Number || {done, Number} <- InA],
                    Of - lists:sum([Number || {done, Number} <- InB])
            end,
    Count(),
    [begin
         ats:delete_all_objects(B),
         Before = Ahead(),
         erlang:yield(),
         ?assertEqual(Before, Ahead())
     end || _ <- lists:seq(1, 300)],
    atomics:put(Over, 1, 1),
    Wait().

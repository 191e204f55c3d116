%% `dats:transact/4' and `dats:update/3': several keys of a table on disk are tested and changed as
%% one step. The contract is that of the same functions of `ats'.
-module(ats_disk_transact_SUITE).

-include_lib("stdlib/include/assert.hrl").

-export([all/0, init_per_testcase/2, end_per_testcase/2]).
-export([random_transactions/1, conditions/1, bad_parts/1, bank/1, bank_of_bags/1, racing/1]).
-export([killed_callers/1, stopped_at_any_byte/1, expiring/1, merging/1, merged_by_module/1]).
-export([snapshots/1, refused_tables/1, many_keys/1, large_values/1, updates/1, updates_race/1]).
-export([fixed/1, bad_updates/1]).

-import(ats_transact_SUITE, [random_program/5, check_conditions/3, check_bad_parts/2, transfer/2]).
-import(ats_transact_SUITE, [in_processes/2, until/2, text/2]).

-define(TYPES, [set, ordered_set, bag, duplicate_bag, ordered_bag, ordered_duplicate_bag]).
-define(LESS_DURABLE, {durability, system}).

all() ->
    [random_transactions, conditions, bad_parts, bank, bank_of_bags, racing, killed_callers,
     stopped_at_any_byte, expiring, merging, merged_by_module, snapshots, fixed,
     refused_tables, many_keys, large_values, updates, updates_race, bad_updates].

init_per_testcase(Case, Config) ->
    ats_disk_lib:begin_case(Case, Config).

end_per_testcase(_, _) ->
    ats_disk_lib:end_case().

%% Opens a new table.
new(Config, Options) ->
    _ = dats:close(t),
    _ = file:del_dir_r(ats_disk_lib:file(Config, t)),
    ats_disk_lib:open(Config, t, [?LESS_DURABLE | Options]).

%% Runs random transactions while objects go from memory to files, and the table is opened again.
random_transactions(Config) ->
    [begin
         rand:seed(exsss, {1, 2, erlang:phash2({Type, Options})}),
         T = new(Config, [{type, Type} | Options]),
         Beside = fun() ->
                          case rand:uniform(40) of
                              1 -> ok = dats:flush(T);
                              2 -> ok = dats:compact(T);
                              3 -> ok = dats:close(T), ats_disk_lib:open(Config, T, Options);
                              _ -> ok
                          end
                  end,
         random_program(dats, T, Type, 150, Beside)
     end || Type <- ?TYPES, Options <- [[], [{ttl, 1000000}], [{keypos, 2}]]].

conditions(Config) ->
    [check_conditions(dats, new(Config, [{type, Type}]), Type) || Type <- ?TYPES].

bad_parts(Config) ->
    check_bad_parts(dats, new(Config, [])),
    Bag = new(Config, [{type, bag}]),
    ?assertEqual("number 1: not supported by tables of this type",
                 text(fun() -> dats:transact(Bag, [], [{update_counter, a, 1}], []) end, 3)).

%%--------------------------------------------------------------------------------------------
%% Concurrency
%%--------------------------------------------------------------------------------------------

sum(Objects) -> lists:sum([Amount || {_, Amount} <- Objects]).

%% Money moves between accounts, which are closed and opened meanwhile. All sums of one moment are
%% the same: of snapshots, of copies of the open table, of a transaction and of a query.
bank(Config) ->
    [begin
         T = new(Config, [{type, Type}, {memory, 200000} | Options]),
         dats:insert(T, [{Account, 100} || Account <- lists:seq(1, 10)]),
         Over = atomics:new(1, []),
         Wait = in_processes(4, fun(_) -> until(Over, fun() -> transfer(dats, T) end) end),
         [begin
              Snapshot = dats:snapshot(T),
              ?assertEqual(1000, sum(dats:tab2list(Snapshot))),
              dats:release(Snapshot),
              ?assertEqual(1000, sum(dats:tab2list(T))),
              {true, All} = dats:transact(T, [], [{lookup, A} || A <- lists:seq(1, 10)], []),
              ?assertEqual(1000, sum(lists:append(All))),
              N rem 10 =:= 0 andalso dats:flush(T)
          end || N <- lists:seq(1, 50)],
         Copy = ats_disk_lib:file(Config, copy),
         ok = dats:checkpoint(T, Copy),
         {ok, _} = dats:open_file(copy, [{file, Copy}]),
         ?assertEqual(1000, sum(dats:tab2list(copy))),
         ok = dats:close(copy),
         ok = file:del_dir_r(Copy),
         atomics:put(Over, 1, 1),
         Wait(),
         ?assertEqual(1000, sum(dats:tab2list(T)))
     end || Type <- [set, ordered_set], Options <- [[], [{ttl, 1000000}]]].

%% Objects move between the keys of a bag. Other objects come and go by single writes.
bank_of_bags(Config) ->
    [begin
         T = new(Config, [{type, Type}]),
         dats:insert(T, [{1, Coin} || Coin <- lists:seq(1, 20)]),
         Over = atomics:new(1, []),
         Move = fun() ->
                        [From, To, Coin] = [rand:uniform(N) || N <- [4, 4, 20]],
                        dats:transact(T, [{equals, {From, Coin}}],
                                      [{delete_object, {From, Coin}}, {insert, {To, Coin}}], [])
                end,
         Disturb = fun() ->
                           Object = {rand:uniform(4), other},
                           dats:insert(T, Object),
                           dats:delete_object(T, Object)
                   end,
         Wait = in_processes(4, fun(1) -> until(Over, Disturb);
                                   (_) -> until(Over, Move)
                                end),
         [begin
              Coins = [Coin || {_, Coin} <- dats:tab2list(T), Coin =/= other],
              ?assertEqual(lists:seq(1, 20), lists:sort(Coins))
          end || _ <- lists:seq(1, 100)],
         atomics:put(Over, 1, 1),
         Wait(),
         ?assertEqual(20, dats:info(T, size))
     end || Type <- [bag, ordered_duplicate_bag]].

%% One of several callers that want the same key gets it, also against other functions.
racing(Config) ->
    [begin
         T = new(Config, [{type, Type}]),
         Self = self(),
         Got = fun(K, N) when N rem 2 =:= 1 ->
                       {Got, _} = dats:transact(T, [{absent, {lock, K}}],
                                                [{insert, {{lock, K}, N}}, {insert, {{own, K}, N}}],
                                                [{lookup, {lock, K}}]),
                       Got;
                  (K, N) ->
                       dats:insert_new(T, [{{lock, K}, N}, {{own, K}, N}])
               end,
         Wait = in_processes(6, fun(N) -> [Self ! {got, K} || K <- lists:seq(1, 100), Got(K, N)]
                                end),
         Wait(),
         [receive {got, K} -> ok after 0 -> error({nobody_got, K}) end || K <- lists:seq(1, 100)],
         receive {got, _} = Twice -> error(Twice) after 0 -> ok end,
         [?assertMatch([[{_, N}], [{_, N}]], [dats:lookup(T, {Name, K}) || Name <- [lock, own]])
          || K <- lists:seq(1, 100)]
     end || Type <- ?TYPES].

%% A caller that is killed has done all of its transaction, or nothing.
killed_callers(Config) ->
    T = new(Config, []),
    Keys = lists:seq(1, 200),
    dats:insert(T, [{Key, 0} || Key <- Keys]),
    Round = fun() ->
                    {true, _} = dats:transact(T, [{present, 2}],
                                              [{update_counter, K, 1} || K <- Keys], [])
            end,
    [begin
         Pid = spawn(fun Loop() -> Round(), Loop() end),
         timer:sleep(rand:uniform(5)),
         exit(Pid, kill),
         ?assertMatch([_], lists:usort([N || {_, N} <- dats:tab2list(T)]))
     end || _ <- lists:seq(1, 50)],
    %% All keys are free.
    ?assertEqual(ok, dats:insert(T, [{Key, 1} || Key <- Keys])).

%% The journal ends at any byte of a transaction: all of it is there, or nothing.
stopped_at_any_byte(Config) ->
    [begin
         T = new(Config, [{type, Type}]),
         ok = dats:insert(T, [{K, 0} || K <- lists:seq(1, 6)]),
         ok = dats:sync(T),
         Before = lists:sort(dats:tab2list(T)),
         Journal = journal(ats_disk_lib:file(Config, t)),
         First = written(Journal),
         {true, _} = dats:transact(T, [{present, 1}],
                                   [{delete, 1}, {insert, {7, text}}, {insert, {2, 1}},
                                    {take, 3}, {insert, {8, <<0:800>>}}], []),
         ok = dats:sync(T),
         After = lists:sort(dats:tab2list(T)),
         Last = written(Journal),
         ?assert(Last > First + 100),
         States = [begin
                       Copy = ats_disk_lib:file(Config, copy),
                       _ = file:del_dir_r(Copy),
                       ok = copy_until(ats_disk_lib:file(Config, t), Copy, End),
                       {ok, _} = dats:open_file(copy, [{file, Copy}]),
                       State = lists:sort(dats:tab2list(copy)),
                       ok = dats:close(copy),
                       State
                   end || End <- lists:seq(First, Last, 7) ++ [Last]],
         ?assertEqual([], [S || S <- States, S =/= Before, S =/= After]),
         ?assertEqual({Before, After}, {hd(States), lists:last(States)})
     end || Type <- [set, bag]].

journal(Directory) ->
    [Journal] = filelib:wildcard("journal-*", Directory),
    filename:join(Directory, Journal).

%% Returns the bytes of a file without the zeros at its end.
written(File) ->
    {ok, Bytes} = file:read_file(File),
    length(lists:dropwhile(fun(Byte) -> Byte =:= 0 end, lists:reverse(binary_to_list(Bytes)))).

%% Copies a table, with the bytes of its journal up to an end.
copy_until(From, To, End) ->
    ok = file:make_dir(To),
    [begin
         {ok, Bytes} = file:read_file(filename:join(From, Name)),
         Kept = case Name of
                    "journal-" ++ _ -> binary:part(Bytes, 0, End);
                    _ -> Bytes
                end,
         ok = file:write_file(filename:join(To, Name), Kept)
     end || Name <- filelib:wildcard("*", From), not lists:prefix("lock", Name)],
    ok.

%%--------------------------------------------------------------------------------------------
%% Kinds of tables
%%--------------------------------------------------------------------------------------------

expiring(Config) ->
    [begin
         T = new(Config, [{ttl, 60000}, {type, Type}]),
         ok = dats:insert(T, [{a, 1}, {b, 1}]),
         ats_nif:advance_clock(36000),
         {true, _} = dats:transact(T, [{present, a}, {present, b}],
                                   [{insert, {a, 2}}, {update_counter, b, 1}], []),
         ?assert(dats:ttl(T, a) > 54000),
         ?assert(dats:ttl(T, b) =< 24000),
         ats_nif:advance_clock(30000),
         ?assertEqual({true, [[{a, 2}], [], true]},
                      dats:transact(T, [{absent, b}, {equals, {a, 2}}],
                                    [{lookup, a}, {take, b}, {insert_new, {b, 3}}], [])),
         ?assert(dats:ttl(T, b) > 54000),
         ok = dats:insert(T, {c, 1}, #{ttl => infinity}),
         {true, [2]} = dats:transact(T, [], [{update_counter, c, 1}], []),
         ?assertEqual(infinity, dats:ttl(T, c))
     end || Type <- [set, ordered_set]].

%% The values that were merged into a key are read as one, and written as one.
merging(Config) ->
    T = new(Config, [{merge, sum}, {type, ordered_set}]),
    [ok = dats:merge(T, Key, 2) || Key <- [a, a, b]],
    ?assertEqual({true, [5, [{b, 2}], 10, true]},
                 dats:transact(T, [{equals, {a, 4}}, {absent, c}],
                               [{update_counter, a, 1}, {take, b},
                                {merge, a, 10, max}, {insert, {c, 1}}], [])),
    [ok = dats:merge(T, Key, 3) || Key <- [a, b, c]],
    ok = dats:flush(T),
    ?assertEqual([{a, 13}, {b, 3}, {c, 4}], dats:tab2list(T)),
    %% Others merge meanwhile; nothing of it is lost.
    Wait = in_processes(4, fun(1) -> [dats:merge(T, n, 1) || _ <- lists:seq(1, 1000)];
                              (2) -> [dats:merge(T, n, 1) || _ <- lists:seq(1, 1000)];
                              (_) -> [{true, _} = dats:transact(T, [], [{merge, n, 1, sum},
                                                                        {merge, m, 1, sum}], [])
                                      || _ <- lists:seq(1, 500)]
                           end),
    Wait(),
    ?assertEqual([[{n, 3000}], [{m, 1000}]], [dats:lookup(T, Key) || Key <- [n, m]]).

%% Values that a module merges are merged before the transaction sees them.
merged_by_module(Config) ->
    T = new(Config, [{merge, {module, ats_sum_merge}}]),
    [ok = dats:merge(T, Key, 2) || Key <- [a, a, b, c, c]],
    ok = dats:flush(T),
    [ok = dats:merge(T, Key, 1) || Key <- [a, b]],
    ?assertEqual({true, [6, [{b, 3}], [{c, 4}]]},
                 dats:transact(T, [{equals, {a, 5}}, {absent, d}],
                               [{update_counter, a, 1}, {take, b}, {lookup, c}],
                               [{insert, {e, 1}}])),
    [ok = dats:merge(T, Key, 1) || Key <- [a, b, d]],
    ?assertEqual({false, [8]}, dats:transact(T, [{present, e}], [],
                                             [{merge, a, 1, sum}])),
    ?assertEqual([{a, 8}, {b, 1}, {c, 4}, {d, 1}], lists:sort(dats:tab2list(T))),
    ?assertEqual([{b, 3}], begin
                               ok = dats:merge(T, b, 1),
                               dats:update(T, b, fun([{b, N}]) -> [{b, N + 1}] end)
                           end),
    %% The values of a key cannot be merged.
    [ok = dats:merge(T, bad, Value) || Value <- [<<"x">>, 1]],
    ?assertMatch({error, {merge_failed, _, bad, _}},
                 dats:transact(T, [{absent, bad}], [], [{insert, {a, 0}}])),
    ?assertEqual([{a, 8}], dats:lookup(T, a)).

snapshots(Config) ->
    [begin
         T = new(Config, [{type, Type}]),
         ok = dats:insert(T, [{a, 1}, {b, 1}]),
         Snapshot = dats:snapshot(T),
         ?assertEqual("the table is a snapshot, which can only be read",
                      text(fun() -> dats:transact(Snapshot, [], [{delete, a}], []) end, 1)),
         {true, _} = dats:transact(T, [], [{delete, a}, {insert, {c, 1}}, {take, b},
                                           {insert, {b, 2}}], []),
         ok = dats:flush(T),
         ?assertEqual([{a, 1}, {b, 1}], lists:sort(dats:tab2list(Snapshot))),
         ?assertEqual([{b, 2}, {c, 1}], lists:sort(dats:tab2list(T))),
         dats:release(Snapshot),
         ok = dats:compact(T),
         ?assertEqual([{b, 2}, {c, 1}], lists:sort(dats:tab2list(T)))
     end || Type <- ?TYPES].

%% Walks of fixed tables go on from keys that transactions remove.
fixed(Config) ->
    [begin
         T = new(Config, [{type, Type}]),
         Keys = lists:seq(1, 100),
         ok = dats:insert(T, [{K, 0} || K <- Keys]),
         dats:safe_fixtable(T, true),
         Met = (fun Walk('$end_of_table', Met) -> Met;
                    Walk(Key, Met) ->
                        %% Inserted keys come after all others, so the walk may meet them.
                        Steps = [Step || is_integer(Key),
                                         Step <- [{delete, Key}, {insert, {{gone, Key}, 0}}]],
                        {true, _} = dats:transact(T, [{present, Key}], Steps, []),
                        Walk(dats:next(T, Key), [Key | Met])
                end)(dats:first(T), []),
         dats:safe_fixtable(T, false),
         ?assertEqual([], Keys -- Met),
         ?assertEqual(100, dats:info(T, size)),
         ?assertEqual([], [K || K <- Keys, dats:member(T, K)])
     end || Type <- [set, bag]].

refused_tables(Config) ->
    T = new(Config, []),
    ok = dats:insert(T, {a, 1}),
    ok = dats:close(T),
    Closed = "this table of dats is not open",
    ?assertEqual(Closed, text(fun() -> dats:transact(T, [], [], []) end, 1)),
    ?assertEqual(Closed, text(fun() -> dats:update(T, a, fun(B) -> B end) end, 1)),
    ats_disk_lib:open(Config, t, [{access, read}]),
    File = ats_disk_lib:file(Config, t),
    ?assertEqual({error, {access_mode, File}}, dats:transact(T, [], [{delete, a}], [])),
    ?assertEqual({error, {access_mode, File}}, dats:update(T, a, fun(_) -> [] end)),
    ?assertEqual([{a, 1}], dats:lookup(T, a)).

many_keys(Config) ->
    [begin
         T = new(Config, [{type, Type}, {memory, 200000}]),
         Keys = lists:seq(1, 5000),
         {true, _} = dats:transact(T, [], [{insert, {K, 1}} || K <- Keys], []),
         Over = atomics:new(1, []),
         Seen = fun() -> ?assert(lists:member(length(dats:tab2list(T)), [0, 5000])) end,
         Wait = in_processes(1, fun(_) -> until(Over, Seen) end),
         [begin
              ?assertMatch({true, _}, dats:transact(T, [{equals, {K, 1}} || K <- Keys],
                                                    [{delete, K} || K <- Keys], [])),
              ?assertMatch({true, _}, dats:transact(T, [{absent, K} || K <- Keys],
                                                    [{insert_new, {K, 1}} || K <- Keys], []))
          end || _ <- lists:seq(1, 3)],
         atomics:put(Over, 1, 1),
         Wait(),
         ?assertEqual(5000, dats:info(T, size))
     end || Type <- [set, duplicate_bag]].

large_values(Config) ->
    T = new(Config, []),
    Large = lists:seq(1, 200000),
    Binary = binary:copy(<<"x">>, 100000),
    ?assertEqual({true, [true, true]},
                 dats:transact(T, [], [{insert, {a, Large}}, {insert, {b, Binary}}], [])),
    ?assertEqual({true, [[{a, Large}], [{b, Binary}], true]},
                 dats:transact(T, [{equals, {a, Large}}, {equals, {b, Binary}},
                                   {match, a, {'_', Large}, []}],
                               [{take, a}, {lookup, b}, {insert, {c, Binary}}], [])),
    ?assertEqual({false, [[{b, Binary}]]},
                 dats:transact(T, [{equals, {b, <<Binary/binary, 1>>}}], [], [{take, b}])),
    ?assertEqual([{c, Binary}], dats:tab2list(T)).

%%--------------------------------------------------------------------------------------------
%% Updates by functions
%%--------------------------------------------------------------------------------------------

updates(Config) ->
    [begin
         T = new(Config, [{type, Type}, {keypos, 2}]),
         ?assertEqual([{1, a}], dats:update(T, a, fun([]) -> [{1, a}] end)),
         ?assertEqual([{2, a}], dats:update(T, a, fun([{1, a}]) -> [{2, a}] end)),
         ?assertEqual([{2, a}], dats:update(T, a, fun(Same) -> Same end)),
         ?assertEqual([], dats:update(T, a, fun([{2, a}]) -> [] end)),
         ?assertEqual([], dats:update(T, a, fun([]) -> [] end)),
         ?assertEqual([], dats:tab2list(T)),
         %% The function may use the table, also with other keys.
         Both = fun([]) -> dats:update(T, c, fun([]) -> [{2, c}] end), [{1, b}] end,
         ?assertEqual([{1, b}], dats:update(T, b, Both)),
         ?assertEqual(2, dats:info(T, size))
     end || Type <- [set, ordered_set]],
    T = new(Config, [{type, ordered_set}]),
    ok = dats:insert(T, {1, a}),
    ?assertEqual([{1, b}], dats:update(T, 1.0, fun([{1, a}]) -> [{1, b}] end)),
    ?assertError(from_here, dats:update(T, 1, fun(_) -> error(from_here) end)),
    ?assertEqual([{1, b}], dats:tab2list(T)).

updates_race(Config) ->
    T = new(Config, []),
    Add = fun([]) -> [{a, [1]}]; ([{a, [N | _] = All}]) -> [{a, [N + 1 | All]}] end,
    Wait = in_processes(8, fun(_) -> [dats:update(T, a, Add) || _ <- lists:seq(1, 50)] end),
    Wait(),
    ?assertEqual([{a, lists:seq(400, 1, -1)}], dats:lookup(T, a)).

bad_updates(Config) ->
    Bag = new(Config, [{type, bag}]),
    ?assertEqual("the table identifier refers to an ATS table of a type not supported by this "
                 "operation", text(fun() -> dats:update(Bag, a, fun(_) -> [] end) end, 1)),
    T = new(Config, []),
    ?assertEqual("not a function of one argument",
                 text(fun() -> dats:update(T, a, fun() -> [] end) end, 3)),
    [?assertEqual("has not returned a list of no object or of one with this key",
                  text(fun() -> dats:update(T, a, fun(_) -> Result end) end, 3))
     || Result <- [{a, 1}, [{b, 1}], [{a, 1}, {a, 2}], [a], [{}]]],
    Other = fun([]) -> dats:insert(T, {a, 0}), [{a, 1}];
               ([{a, N}]) -> dats:insert(T, {a, N + 1}), [{a, -1}] end,
    ?assertError(contended, dats:update(T, a, Other)),
    ?assertMatch(#{retries := 1000}, dats:info(T, stats)),
    Closes = fun(_) -> ok = dats:close(T), [] end,
    ?assertEqual("this table of dats is not open",
                 text(fun() -> dats:update(T, a, Closes) end, 1)).

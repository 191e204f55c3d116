%% Functions of `dats' that replace all objects: from other tables, and from a function. Errors are
%% found before anything changes, and the objects change at one moment.
-module(ats_disk_replace_SUITE).

-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0, init_per_testcase/2, end_per_testcase/2]).
-export([
    a_failed_replacement_changes_nothing/1,
    as_deleted_and_inserted/1,
    one_moment/1,
    old_or_new_after_a_kill/1,
    more_than_at_one_moment/1,
    source_that_is_renamed/1
]).
-export([replace_for_ever/1]).

-define(TYPES, [set, ordered_set, bag, duplicate_bag]).

suite() -> [{timetrap, {minutes, 15}}].

all() ->
    [
        a_failed_replacement_changes_nothing,
        as_deleted_and_inserted,
        one_moment,
        old_or_new_after_a_kill,
        more_than_at_one_moment,
        source_that_is_renamed
    ].

init_per_testcase(Case, Config) ->
    ats_disk_lib:begin_case(Case, Config).

end_per_testcase(_, _) ->
    ats_disk_lib:end_case().

a_failed_replacement_changes_nothing(Config) ->
    T = ats_disk_lib:open(Config, t, [{keypos, 2}]),
    ok = dats:insert(T, {old, old}),
    [E, A] = [M:new(e, [public]) || M <- [ets, ats]],
    [true = M:insert(S, [{N, N} || N <- lists:seq(1, 5000)]) || {M, S} <- [{ets, E}, {ats, A}]],
    [true = M:insert(S, {no_key}) || {M, S} <- [{ets, E}, {ats, A}]],
    {ok, d} = dets:open_file(d, [{file, ats_disk_lib:file(Config, d)}]),
    ok = dets:from_ets(d, E),
    Close = fun(close) -> ok end,
    Then = fun(Next) -> fun(read) -> {[{a, b}], Next}; (close) -> ok end end,
    Invalid = {error, invalid_objects_list},
    Calls = [
        {from_ets, [T, E], Invalid},
        {from_ats, [T, A], Invalid},
        {from_dets, [T, d], Invalid},
        {from_ets, [T, ats_test_lib:private_table()], badarg},
        {from_ets, [T, none], badarg},
        {from_ats, [T, none], badarg},
        {from_dets, [T, none], badarg},
        {from_ets, [T, source(1), [{progress, fun(_, _) -> error(badarg) end}]], badarg},
        {init_table, [T, fun(read) -> {[{a, b}, {1}], Close} end], Invalid},
        {init_table, [T, Then(fun(read) -> {[{1}], Close} end)], Invalid},
        {init_table, [T, fun(read) -> {[{a, b} | x], Close} end], Invalid},
        {init_table, [T, Then(fun(read) -> oops end)], {error, {init_fun, oops}}},
        {init_table, [T, Then(fun(read) -> error(badarg) end)], badarg},
        {init_table, [T, x], badarg}
    ],
    [
        begin
            Got =
                try
                    apply(dats, Function, Arguments)
                catch
                    error:badarg -> badarg
                end,
            ?assertEqual({Function, Answer}, {Function, Got}),
            ?assertEqual([{old, old}], dats:tab2list(T))
        end
     || {Function, Arguments, Answer} <- Calls
    ],
    ok = dets:close(d),
    ok = dats:close(T),
    T = ats_disk_lib:open(Config, t, [{keypos, 2}]),
    ?assertEqual([{old, old}], dats:tab2list(T)).

%% The type, or the merge, decides about objects of the same key.
as_deleted_and_inserted(Config) ->
    E = ets:new(e, [duplicate_bag]),
    true = ets:insert(E, [{N rem 700, N rem 3} || N <- lists:seq(1, 5000)]),
    true = ets:insert(E, [{1, 0}, {0.0, 1}, {-0.0, 2}]),
    Objects = in_chunks(ets:select(E, [{'_', [], ['$_']}], 1000)),
    Ways = [[{type, Type}] || Type <- ?TYPES] ++ [[{merge, sum}], [{merge, union}]],
    [
        begin
            Name = list_to_atom("t" ++ integer_to_list(erlang:phash2(Way))),
            T = ats_disk_lib:open(Config, Name, Way),
            ok = dats:insert(T, [{N, 7} || N <- lists:seq(500, 900)]),
            ok = dats:delete_all_objects(T),
            ok = dats:insert(T, Objects),
            Expected = dats:tab2list(T),
            ok = dats:insert(T, {old, 1}),
            ok = dats:from_ets(T, E),
            ?assertEqual({Way, Expected}, {Way, dats:tab2list(T)}),
            ?assertEqual(length(Expected), dats:info(T, size)),
            ok = dats:close(T),
            T = ats_disk_lib:open(Config, Name, Way),
            ?assertEqual({Way, Expected}, {Way, dats:tab2list(T)}),
            %% And once more, from a function; by none.
            ok = dats:init_table(T, fun(read) -> {Objects, fun(read) -> end_of_input end} end),
            ?assertEqual({Way, Expected}, {Way, dats:tab2list(T)}),
            ok = dats:init_table(T, fun(read) -> end_of_input end),
            ?assertEqual([], dats:tab2list(T)),
            ok = dats:close(T)
        end
     || Way <- Ways
    ].

%% Objects of a key may have another order than in a list of all.
in_chunks({Objects, Continuation}) -> Objects ++ in_chunks(ets:select(Continuation));
in_chunks('$end_of_table') -> [].

%% Readers see all of the old objects, or all of the new ones.
one_moment(Config) ->
    T = ats_disk_lib:open(Config, t, [{type, ordered_set}]),
    Sources = [source(Version) || Version <- [1, 2]],
    ok = dats:from_ets(T, hd(Sources)),
    Test = self(),
    Readers = [spawn_link(fun() -> read(Test, T, []) end) || _ <- [1, 2]],
    [ok = dats:from_ets(T, E) || _ <- lists:seq(1, 10), E <- Sources],
    [R ! stop || R <- Readers],
    Seen = lists:append([receive {R, Versions} -> Versions end || R <- Readers]),
    ?assertEqual([], lists:usort(Seen) -- [{3000, [1]}, {3000, [2]}]),
    ?assert(Seen =/= []).

source(Version) ->
    E = ets:new(e, []),
    true = ets:insert(E, [{{Version, N}, Version} || N <- lists:seq(1, 3000)]),
    E.

read(Test, T, Versions) ->
    receive
        stop -> Test ! {self(), Versions}
    after 0 ->
        Objects = dats:tab2list(T),
        read(Test, T, [{length(Objects), lists:usort([V || {_, V} <- Objects])} | Versions])
    end.

old_or_new_after_a_kill(Config) ->
    Directory = ats_disk_lib:file(Config, t),
    [
        begin
            {ok, Vm, _} = ats_test_lib:start_vm([]),
            Kill = ats_test_lib:killer_of(Vm),
            ok = ats_test_lib:call(Vm, ?MODULE, replace_for_ever, [Directory]),
            timer:sleep(50 + 37 * Round),
            ok = Kill(),
            {ok, t} = dats:open_file(t, [{file, Directory}]),
            Objects = dats:tab2list(t),
            ?assertMatch(
                {3000, [_]}, {length(Objects), lists:usort([Version || {_, Version} <- Objects])}
            ),
            ok = dats:close(t)
        end
     || Round <- lists:seq(1, 6)
    ].

replace_for_ever(Directory) ->
    Begun = self(),
    spawn(fun() ->
        {ok, t} = dats:open_file(t, [{file, Directory}]),
        Sources = [source(Version) || Version <- [1, 2]],
        ok = dats:from_ets(t, hd(Sources)),
        Begun ! replaced,
        replace(Sources)
    end),
    receive replaced -> ok end.

replace(Sources) ->
    [ok = dats:from_ets(t, E) || E <- Sources],
    replace(Sources).

%% Sources of more than 128 MiB: the first part replaces the old objects, the rest is inserted.
%% Nothing is changed if another table has an object that has no key here.
more_than_at_one_moment(Config) ->
    T = ats_disk_lib:open(Config, t, [{keypos, 2}]),
    ok = dats:insert(T, {old, old}),
    E = ets:new(e, []),
    Bytes = crypto:strong_rand_bytes(1 bsl 20),
    true = ets:insert(E, [{N, N, Bytes} || N <- lists:seq(1, 170)]),
    true = ets:insert(E, [{{N}, N + 1000} || N <- lists:seq(1, 3000)]),
    true = ets:insert(E, {no_key}),
    ?assertEqual({error, invalid_objects_list}, dats:from_ets(T, E)),
    ?assertEqual([{old, old}], dats:tab2list(T)),
    true = ets:delete(E, no_key),
    Test = self(),
    ok = dats:from_ets(T, E, [{progress, fun(Done, Total) -> Test ! {Done, Total} end}]),
    ?assertEqual(3170, dats:info(T, size)),
    ?assertEqual([{170, 170, Bytes}], dats:lookup(T, 170)),
    ?assertEqual([], dats:lookup(T, old)),
    ?assertEqual({3170, 3170}, last_message(none)),
    Parts = fun Part(N) ->
        fun
            (read) when N > 170 -> end_of_input;
            (read) -> {[{x, N, Bytes}], Part(N + 1)}
        end
    end,
    ok = dats:init_table(T, Parts(1)),
    ?assertEqual(170, dats:info(T, size)).

%% The table that was read is released, and not another one that has got its name.
source_that_is_renamed(Config) ->
    T = ats_disk_lib:open(Config, t, []),
    [begin
         Module:new(source, [named_table]),
         true = Module:insert(source, [{N} || N <- lists:seq(1, 5000)]),
         Rename = fun(1000, _) ->
                          Module:rename(source, renamed),
                          Module:new(source, [named_table]),
                          true = Module:safe_fixtable(source, true);
                     (_, _) ->
                          true
                  end,
         ok = dats:From(T, source, [{progress, Rename}]),
         ?assertEqual(5000, dats:info(T, size)),
         ?assertEqual(false, Module:info(renamed, safe_fixed)),
         ?assertMatch({_, [{_, 1}]}, Module:info(source, safe_fixed)),
         [true = Module:delete(Name) || Name <- [source, renamed]]
     end || {Module, From} <- [{ets, from_ets}, {ats, from_ats}]].

last_message(Last) ->
    receive Next -> last_message(Next) after 0 -> Last end.

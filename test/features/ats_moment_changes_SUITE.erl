%% Functions that change the objects they find see a table as it was at one moment, and change
%% objects that nobody has written since: lists that are inserted as one go as a whole, and later
%% objects stay.
-module(ats_moment_changes_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-export([all/0, init_per_suite/1, end_per_suite/1, end_per_testcase/2]).
-export([lists_are_deleted_whole/1, lists_are_taken_whole/1, lists_are_replaced_whole/1,
         ranges_are_deleted_whole/1, counters_keep_their_order/1, later_writes_stay/1,
         equal_objects_are_counted/1, own_results_are_not_met_again/1, cleared_midway/1,
         deleted_midway/1, killed_midway/1]).

all() ->
    [lists_are_deleted_whole, lists_are_taken_whole, lists_are_replaced_whole,
     ranges_are_deleted_whole, counters_keep_their_order, later_writes_stay,
     equal_objects_are_counted, own_results_are_not_met_again, cleared_midway, deleted_midway,
     killed_midway].

init_per_suite(Config) ->
    {ok, Started} = application:ensure_all_started(ats),
    [{started, Started} | Config].

end_per_suite(Config) ->
    [application:stop(Application) || Application <- ?config(started, Config)].

end_per_testcase(_Case, _Config) ->
    true = ats_nif:force_slices(0).

-define(TIME, 150).
-define(SETS, [set, ordered_set]).
-define(DUPLICATE_BAGS, [duplicate_bag, ordered_duplicate_bag]).
-define(BAGS, [bag, ordered_bag | ?DUPLICATE_BAGS]).
%% All objects, but not as it is said to clear a table.
-define(EACH, [{{'_', '_'}, [], [true]}]).

%% Two writers put lists of two objects, which only the function under test takes away.
lists_are_deleted_whole(_Config) ->
    beside_lists(?SETS ++ ?BAGS,
                 fun(T) ->
                         ?assertEqual(0, ats:select_delete(T, ?EACH) rem 2),
                         true = ats:match_delete(T, {'_', '_'})
                 end),
    ok.

lists_are_taken_whole(_Config) ->
    beside_lists(?SETS ++ ?BAGS,
                 fun(T) ->
                         Taken = [{side(K), N} || {K, N} <- ats:select_take(T, ?EACH)],
                         Of = fun(Side) -> lists:sort([N || {S, N} <- Taken, S =:= Side]) end,
                         ?assertEqual(Of(a), Of(z)),
                         ?assertEqual(length(Of(a)), length(lists:usort(Of(a))))
                 end),
    ok.

side({Side, _}) -> Side;
side(Side) -> Side.

lists_are_replaced_whole(_Config) ->
    Replace = [{{'$1', '$2'}, [{is_integer, '$2'}], [{{'$1', {{'$2'}}}}]}],
    Replaced = [{{'_', {'_'}}, [], [true]}],
    beside_lists(?SETS ++ ?DUPLICATE_BAGS,
                 fun(T) ->
                         Count = ats:select_replace(T, Replace),
                         ?assertEqual(0, Count rem 2),
                         ?assertEqual(Count, ats:select_delete(T, Replaced))
                 end),
    ok.

ranges_are_deleted_whole(_Config) ->
    beside_lists([ordered_set],
                 fun(T) -> ?assertEqual(0, ats:range_delete(T, {a, 0}, {z, a}) rem 2) end),
    ok.

%% Changes tables of these types, with and without another query beside.
beside_lists(Types, Change) ->
    [begin
         T = ats:new(t, [Type, public | Options]),
         IsBag = lists:member(Type, ?BAGS),
         Keys = fun(N) when IsBag, N rem 3 > 0 -> [a, z];
                   (N) -> [{a, N}, {z, N}]
                end,
         Put = fun(N) ->
                       true = ats:insert(T, [{Key, N} || Key <- Keys(N)]),
                       %% Waits for room, so that a change of all has an end.
                       N rem 128 < 2 andalso await_room(T)
               end,
         Writers = [fun(N) -> Put(2 * N + Odd) end || Odd <- [0, 1]],
         Readers = [fun(_) -> read_twice(T) end || Reads],
         ats_test_lib:beside(Writers ++ Readers, ?TIME, fun() -> Change(T) end),
         Change(T),
         ?assertEqual(0, ats:info(T, size)),
         true = ats:delete(T)
     end || Type <- Types, {Options, Reads} <- [{[], false}, {[compressed], false}, {[], true}]].

await_room(T) ->
    case ats:info(T, size) < 3000 of
        true ->
            ok;
        false ->
            timer:sleep(1),
            await_room(T)
    end.

%% A snapshot shows objects while they are taken away.
read_twice(T) ->
    Snapshot = ats:snapshot(T),
    Objects = ats:tab2list(Snapshot),
    ?assertEqual(Objects, ats:tab2list(Snapshot)),
    ?assertEqual(length(Objects), ats:info(Snapshot, size)),
    true = ats:release(Snapshot).

%% The first counter is as far as the second one, or one ahead.
counters_keep_their_order(_Config) ->
    [begin
         T = ats:new(t, [Type, public]),
         true = ats:insert(T, [{a, 0}, {z, 0}]),
         Count = fun Count() ->
                         _ = ats:update_counter(T, a, 1),
                         _ = ats:update_counter(T, z, 1),
                         Count()
                 end,
         {Pid, Ref} = spawn_monitor(fun() -> try Count() catch error:badarg -> ok end end),
         timer:sleep(rand:uniform(3)),
         Taken = ats:select_take(T, ?EACH),
         receive {'DOWN', Ref, process, Pid, normal} -> ok after 20 -> exit(Pid, kill) end,
         case {lists:keyfind(a, 1, Taken), lists:keyfind(z, 1, Taken)} of
             {{a, A}, {z, Z}} -> ?assert(lists:member(A - Z, [0, 1]));
             _ -> ok
         end,
         true = ats:delete(T)
     end || Type <- ?SETS, _ <- lists:seq(1, 40)],
    ok.

%% Random programs: between the slices of a change other writes come, and snapshots. Objects that
%% nobody has written are changed, written ones stay as they are, and so do snapshots.
later_writes_stay(_Config) ->
    [begin
         _ = rand:seed(exsss, {Seed, 1, 2}),
         program(Type, Options, How)
     end || Type <- ?SETS ++ ?BAGS,
            How <- [delete, take, replace],
            not (How =:= replace andalso lists:member(Type, [bag, ordered_bag])),
            Options <- [[], [compressed]],
            Seed <- lists:seq(1, 6)],
    ok.

program(Type, Options, How) ->
    T = ats:new(t, [Type, public | Options]),
    IsBag = lists:member(Type, ?BAGS),
    Random = fun rand:uniform/1,
    Keys = case IsBag of true -> 5; false -> 150 end,
    Sizes = [{Key, case IsBag of true -> Random(Random(200)); false -> 1 end}
             || Key <- lists:seq(1, Keys)],
    Then = [{Key, text(Key * 1000 + I), old} || {Key, Size} <- Sizes, I <- lists:seq(1, Size)],
    true = ats:insert(T, Then),
    true = ats_nif:force_slices(Random(20)),
    Later = ets:new(later, [case IsBag of true -> bag; false -> set end]),
    Snapshots = ets:new(snapshots, [bag]),
    Write = fun() -> write(T, IsBag, Later, Snapshots, Then) end,
    Result = run(T, How, fun() -> [Write() || _ <- lists:seq(2, Random(4))] end),
    true = ats_nif:force_slices(0),
    Gone = [Object || {gone, Object} <- ets:lookup(Snapshots, gone)],
    GoneKeys = [Key || {key, Key} <- ets:lookup(Snapshots, key)],
    Written = case IsBag of
                  true -> [Object || {Key, _, _} = Object <- Then,
                                     lists:member(Object, Gone) orelse lists:member(Key, GoneKeys)];
                  false -> [Object || {Key, _, _} = Object <- Then, ets:member(Later, Key)]
              end,
    Untouched = Then -- Written,
    case How of
        take ->
            ?assertEqual([], Result -- Then),
            ?assertEqual([], Untouched -- Result);
        _ ->
            ?assert(Result >= length(Untouched)),
            ?assert(Result =< length(Then))
    end,
    Replaced = [{Key, Id, new} || How =:= replace, {Key, Id, old} <- Untouched],
    %% An object that others delete may have been replaced before.
    May = [{Key, Id, new} || How =:= replace, IsBag, {Key, Id, old} <- Gone,
                             not lists:member(Key, GoneKeys)],
    Now = lists:sort(ats:tab2list(T)),
    Stay = [Object || {_, _, _} = Object <- ets:tab2list(Later), element(2, Object) =/= none],
    ?assertEqual([], (Stay ++ Replaced) -- Now),
    ?assertEqual([], (Now -- (Stay ++ Replaced)) -- May),
    [begin
         ?assertEqual(Content, lists:sort(ats:tab2list(Snapshot))),
         true = ats:release(Snapshot)
     end || {snapshot, Snapshot, Content} <- ets:lookup(Snapshots, snapshot)],
    true = ats:delete(T).

%% Long enough to be packed.
text(I) -> {I, lists:duplicate(20, I rem 7)}.

%% Does all slices, and something else between them.
run(T, How, Between) ->
    Head = {'$1', '$2', '$3'},
    Spec = case How of
               replace -> [{Head, [{'=:=', '$3', old}], [{{'$1', '$2', new}}]}];
               _ -> [{Head, [{'=:=', '$3', old}], [true]}]
           end,
    More = fun(Source, Compiled, Place, SoFar) ->
                   Between(),
                   ats_nif:select_more(Source, Compiled, Place, How, SoFar)
           end,
    Start = ats_nif:select_start(T, Spec, How),
    case How of
        take -> ats_collect:list(More, unknown, Start);
        _ -> count(More, Start)
    end.

count(More, {more, Source, Compiled, Place, SoFar}) ->
    count(More, More(Source, Compiled, Place, SoFar));
count(_More, Count) ->
    Count.

write(T, IsBag, Later, Notes, Then) ->
    {Key, _, _} = Old = lists:nth(rand:uniform(length(Then)), Then),
    New = {Key, text(1000000 + erlang:unique_integer([positive])), old},
    case {rand:uniform(20), IsBag} of
        {N, _} when N =< 8 ->
            true = ats:insert(T, New),
            true = ets:insert(Later, New);
        {N, true} when N =< 12 ->
            News = [setelement(2, New, text(2000000 + erlang:unique_integer([positive])))
                    || _ <- lists:seq(1, rand:uniform(30))],
            true = ats:insert(T, News),
            true = ets:insert(Later, News);
        {N, true} when N =< 16 ->
            true = ats:delete_object(T, Old),
            true = ets:insert(Notes, {gone, Old});
        {17, true} ->
            true = ats:delete(T, Key),
            true = ets:delete(Later, Key),
            true = ets:insert(Notes, {key, Key});
        {N, false} when N =< 16 ->
            true = ats:delete(T, Key),
            true = ets:insert(Later, {Key, none, none});
        {18, _} ->
            Content = lists:sort(ats:tab2list(T)),
            true = ets:insert(Notes, {snapshot, ats:snapshot(T), Content});
        {19, _} ->
            case ets:lookup(Notes, snapshot) of
                [{snapshot, Snapshot, Content} = Note | _] ->
                    ?assertEqual(Content, lists:sort(ats:tab2list(Snapshot))),
                    true = ats:release(Snapshot),
                    true = ets:delete_object(Notes, Note);
                [] ->
                    ok
            end;
        _ ->
            ok
    end.

%% Equal objects go that were there at the moment, also if the key has got more since, and so many
%% that they are kept in another way.
equal_objects_are_counted(_Config) ->
    [begin
         T = ats:new(t, [ordered_duplicate_bag, public]),
         Filler = [{I, x, old} || I <- lists:seq(1, 50)],
         true = ats:insert(T, Filler),
         true = ats:insert(T, lists:duplicate(2, {99, x, old})),
         true = ats:insert(T, lists:duplicate(Others, {99, y, other})),
         true = ats_nif:force_slices(3),
         Once = spawn_once(fun() -> true = ats:insert(T, lists:duplicate(More, {99, x, old})) end),
         Count = run(T, delete, Once),
         true = ats_nif:force_slices(0),
         ?assertEqual(52, Count),
         ?assertEqual(More + Others, ats:info(T, size)),
         ?assertEqual(More, length(ats:match_object(T, {99, x, old}))),
         true = ats:delete(T)
     end || Others <- [0, 300], More <- [1, 400]],
    ok.

%% A function that does something the first time that it is called.
spawn_once(Do) ->
    Key = make_ref(),
    fun() ->
            case put(Key, done) of
                undefined -> Do();
                done -> ok
            end
    end.

%% An object that was replaced would match again.
own_results_are_not_met_again(_Config) ->
    Spec = [{{'$1', '$2'}, [], [{{'$1', {'+', '$2', 1}}}]}],
    [begin
         T = ats:new(t, [Type, public]),
         true = ats:insert(T, [{I rem Keys, 0} || I <- lists:seq(1, 3000)]),
         Size = ats:info(T, size),
         true = ats_nif:force_slices(7),
         ?assertEqual(Size, ats:select_replace(T, Spec)),
         true = ats_nif:force_slices(0),
         ?assertEqual(lists:duplicate(Size, 1), [V || {_, V} <- ats:tab2list(T)]),
         true = ats:delete(T)
     end || Type <- ?SETS ++ ?DUPLICATE_BAGS, Keys <- [1, 10, 4000]],
    ok.

%% A cleared table keeps nothing of the moment; later objects stay.
cleared_midway(_Config) ->
    [begin
         T = ats:new(t, [Type, public]),
         Objects = [{I, x, old} || I <- lists:seq(1, 500)],
         true = ats:insert(T, Objects),
         true = ats_nif:force_slices(10),
         Once = spawn_once(fun() ->
                                   true = ats:delete_all_objects(T),
                                   true = ats:insert(T, Objects)
                           end),
         ?assert(length(run(T, take, Once)) < 500),
         true = ats_nif:force_slices(0),
         ?assertEqual(500, ats:info(T, size)),
         true = ats:delete(T)
     end || Type <- ?SETS ++ ?BAGS],
    ok.

deleted_midway(_Config) ->
    [begin
         T = ats:new(t, [Type, public]),
         true = ats:insert(T, [{I, x, old} || I <- lists:seq(1, 500)]),
         true = ats_nif:force_slices(10),
         Once = spawn_once(fun() -> true = ats:delete(T) end),
         ?assertError(_, run(T, delete, Once)),
         true = ats_nif:force_slices(0)
     end || Type <- ?SETS ++ ?BAGS],
    ok.

%% Objects that a killed process has deleted are gone, the others are there, and nothing is kept for
%% it.
killed_midway(_Config) ->
    [begin
         T = ats:new(t, [Type, public]),
         true = ats:insert(T, [{I, 0} || I <- lists:seq(1, 50000)]),
         {Pid, Ref} = spawn_monitor(fun() -> ats:select_delete(T, ?EACH) end),
         ok = await_begin(T, 50000),
         timer:sleep(N rem 3),
         true = ats:insert(T, [{I, new} || I <- lists:seq(1, 50000, 50)]),
         exit(Pid, kill),
         receive {'DOWN', Ref, process, Pid, _} -> ok end,
         Size = ats:info(T, size),
         ?assert(Size >= 1000),
         ?assertEqual(Size, length(ats:tab2list(T))),
         ?assertEqual(1000, ats:select_count(T, [{{'_', new}, [], [true]}])),
         ?assertEqual(Size, ats:select_delete(T, ?EACH)),
         true = ats:delete(T)
     end || Type <- ?SETS, N <- lists:seq(1, 10)],
    ok.

await_begin(T, Size) ->
    case ats:info(T, size) of
        Size -> await_begin(T, Size);
        _ -> ok
    end.

%% Mnesia on one node with tables of ats and dats.
-module(ats_mnesia_SUITE).

-include_lib("stdlib/include/assert.hrl").
-include_lib("stdlib/include/qlc.hrl").
-include("../support/ats_mnesia_lib.hrl").

-export([all/0, suite/0, init_per_testcase/2, end_per_testcase/2]).
-export([
    types_are_added/1,
    objects_of_all_kinds/1,
    walks_that_write/1,
    restarts/1,
    deleted_tables_stay_deleted/1,
    fallbacks/1,
    restored_backups/1,
    checkpoints/1,
    copies_change_their_type/1,
    changed_copies_are_on_disk/1,
    fragments/1,
    maps_are_deleted_exactly/1,
    selects_read_ranges/1,
    indexes_are_kept/1,
    options/1,
    tables_of_this_node/1,
    followed_tables/1,
    batches_of_this_node/1,
    counters/1
]).

-import(ats_mnesia_lib, [on_one_node/2, on_nodes/3, call/2, call/4, directories/1]).
-import(ats_mnesia_lib, [aliases/0, types/0, tables/0, names/0, definition/3, create/4,
                         create_all/1]).
-import(ats_mnesia_lib, [object/1, objects/1, fill/2, transaction/1, contents/1, chunks/1,
                         restart/0, wait/1]).

suite() -> [{timetrap, {minutes, 15}}].

all() ->
    [
        types_are_added,
        objects_of_all_kinds,
        walks_that_write,
        restarts,
        deleted_tables_stay_deleted,
        fallbacks,
        restored_backups,
        checkpoints,
        copies_change_their_type,
        changed_copies_are_on_disk,
        fragments,
        maps_are_deleted_exactly,
        selects_read_ranges,
        indexes_are_kept,
        options,
        tables_of_this_node,
        followed_tables,
        batches_of_this_node,
        counters
    ].

%% Each case has nodes of its own, the first with a schema on disk.
init_per_testcase(Case, Config) ->
    ats_mnesia_lib:begin_case(Case, Config).

end_per_testcase(_, _) ->
    ok.

%% ----- cases -----

types_are_added(Config) ->
    ats_mnesia_lib:on_bare_nodes(Config, 4, fun([Asked, First, Second, Not]) ->
        Expected = [ats_disc, ats_ram, dats_disc],
        OfMnesia = fun(Node) ->
            Types = call(Node, mnesia, system_info, [backend_types]),
            lists:sort([Type || Type <- Types, lists:member(Type, Expected)])
        end,
        ok = call(Asked, mnesia, start, []),
        ?assertEqual([], OfMnesia(Asked)),
        ?assertEqual([ok, ok], [call(Asked, ats_mnesia, register, []) || _ <- [1, 2]]),
        ?assertEqual(Expected, OfMnesia(Asked)),
        %% Registers by the parameter, with either application started first.
        [begin
             ok = call(Node, application, load, [ats]),
             ok = call(Node, application, set_env, [ats, mnesia, true]),
             [ok = call(Node, application, start, [App]) || App <- Order],
             ?assertEqual(Expected, OfMnesia(Node))
         end || {Node, Order} <- [{First, [ats, mnesia]}, {Second, [mnesia, ats]}]],
        ?assertMatch({error, _}, call(Not, ats_mnesia, register, []))
    end).

%% The same program on a table of Mnesia and on one of each kind of ours.
objects_of_all_kinds(Config) ->
    on_one_node(Config, fun() ->
        [begin
             {atomic, ok} = mnesia:create_table(own, definition(ram_copies, Type, [node()])),
             [begin
                  create(ours, Alias, Type, []),
                  ?assertEqual(program(own, Type), program(ours, Type), {Alias, Type}),
                  {atomic, ok} = mnesia:delete_table(ours),
                  {atomic, ok} = mnesia:clear_table(own)
              end || Alias <- aliases()],
             {atomic, ok} = mnesia:delete_table(own)
         end || Type <- types()]
    end).

program(Name, Type) ->
    %% Mnesia writes `1' and `1.0' in the order that its own table happens to have.
    Keys = [1.0 || Type =/= ordered_set] ++
        [1, a, "text", <<"bytes">>, {1, [x]}, #{k => v}, 1 bsl 70, [], self(), '_x'],
    Write = fun(P) -> mnesia:write(Name, P, write) end,
    transaction(fun() -> [Write(#person{key = K, value = V, more = self()})
                          || K <- Keys, V <- [1, 2]] end),
    %% `1' and `1.0' are two keys, and have no order.
    Ordered = fun(L) when Type =:= ordered_set -> L;
                 (L) -> lists:sort(fun(A, B) -> term_to_binary(A) =< term_to_binary(B) end, L) end,
    Read = [mnesia:dirty_read(Name, K) || K <- Keys],
    Added = transaction(fun() ->
        mnesia:delete({Name, a}),
        Write(#person{key = z, value = 3}),
        mnesia:delete_object(Name, #person{key = "text", value = 2, more = self()}, write),
        {Ordered(mnesia:select(Name, [{#person{key = '$1', value = 2, _ = '_'}, [], ['$1']}])),
         Ordered(mnesia:all_keys(Name)),
         Ordered(mnesia:foldl(fun(P, L) -> L ++ [P] end, [], Name)),
         Ordered(mnesia:foldr(fun(P, L) -> [P | L] end, [], Name))}
    end),
    Aborted = mnesia:transaction(fun() -> Write(#person{key = no}), mnesia:abort(enough) end),
    Walk = Ordered(walk(fun mnesia:dirty_next/2, Name, mnesia:dirty_first(Name))),
    Back = Ordered(lists:reverse(walk(fun mnesia:dirty_prev/2, Name, mnesia:dirty_last(Name)))),
    {Read, Added, Aborted, Walk, Back, mnesia:table_info(Name, size), Ordered(contents(Name)),
     transaction(fun() -> mnesia:first(Name) =/= '$end_of_table' end)}.

walk(_Step, _Name, '$end_of_table') -> [];
walk(Step, Name, Key) -> [Key | walk(Step, Name, Step(Name, Key))].

%% A transaction that writes keys while it walks through a table comes to each of them once at most,
%% and to an end, as in a table of Mnesia.
walks_that_write(Config) ->
    on_one_node(Config, fun() ->
        [begin
             create(walked, Alias, Type, []),
             [mnesia:dirty_write(walked, #person{key = K, value = 0}) || K <- lists:seq(1, 50)],
             Keys = transaction(fun() ->
                 walk_and_write(Step, walked, mnesia:First(walked), 1000)
             end),
             ?assertEqual({Alias, Type, First, expected_keys(Type, First)},
                          {Alias, Type, First, lists:sort(Keys)}),
             Folded = transaction(fun() ->
                 mnesia:Fold(fun(#person{key = K}, L) -> write_before(walked, K), [K | L] end,
                             [], walked)
             end),
             ?assertEqual(lists:seq(-50, -1) ++ lists:seq(1, 50), lists:sort(Folded)),
             %% Transactions inside of others see the keys of those.
             transaction(fun() ->
                 mnesia:write(walked, #person{key = 0, value = 0}, write),
                 {atomic, All} = mnesia:transaction(fun() ->
                     walk(Step, walked, mnesia:First(walked))
                 end),
                 ?assertEqual(lists:seq(-50, 50), lists:sort(All))
             end),
             {atomic, ok} = mnesia:delete_table(walked)
         end || Alias <- [ram_copies | aliases()], Type <- types(),
                {First, Step, Fold} <- [{first, fun mnesia:next/2, foldl},
                                        {last, fun mnesia:prev/2, foldr}]]
    end).

%% Each positive key has the negative one written.
walk_and_write(_Step, _Name, '$end_of_table', _Most) ->
    [];
walk_and_write(Step, Name, Key, Most) when Most > 0 ->
    write_before(Name, Key),
    [Key | walk_and_write(Step, Name, Step(Name, Key), Most - 1)].

write_before(Name, Key) when Key > 0 -> mnesia:write(Name, #person{key = -Key, value = 0}, write);
write_before(_Name, _Key) -> ok.

%% A walk up in the order of the keys has passed the keys that it writes.
expected_keys(ordered_set, first) -> lists:seq(1, 50);
expected_keys(_Type, _First) -> lists:seq(-50, -1) ++ lists:seq(1, 50).

restarts(Config) ->
    on_one_node(Config, fun() ->
        create_all([{index, [value]}]),
        [fill(Name, 500) || Name <- names()],
        ok = mnesia:info(),
        Left = fun(Objects) ->
            [?assertEqual(case Alias of ats_ram -> []; _ -> Objects end, contents(Name), Name)
             || {Name, Alias, _} <- tables()]
        end,
        restart(),
        Left(objects(500)),
        %% Objects in the log are there, too, and so are later writes.
        [fill(Name, 501) || {Name, Alias, _} <- tables(), Alias =/= ats_ram],
        {atomic, ok} = mnesia:add_table_index(dats_disc_set, more),
        restart(),
        Left(objects(501)),
        dumped = mnesia:dump_log(),
        restart(),
        Left(objects(501))
    end).

%% A node that was away when a table was deleted and made anew has the directory of the old one.
deleted_tables_stay_deleted(Config) ->
    on_nodes(Config, 1, fun([Node]) ->
        Create = fun() -> create(t, dats_disc, set, [{index, [value]}]) end,
        call(Node, fun() -> Create(), fill(t, 100), stopped = mnesia:stop() end),
        Old = directories(Node),
        ?assertMatch([_, _], Old),
        Copies = [{Path, Path ++ "_old"} || Path <- Old],
        ["" = os:cmd(["cp -r ", ats_test_lib:quoted(From), " ", ats_test_lib:quoted(To)])
         || {From, To} <- Copies],
        call(Node, fun() ->
            ok = mnesia:start(),
            wait([t]),
            {atomic, ok} = mnesia:delete_table(t)
        end),
        ?assertEqual([], [Path || Path <- Old, filelib:is_dir(Path)]),
        stopped = call(Node, mnesia, stop, []),
        [ok = file:rename(To, From) || {From, To} <- Copies],
        ok = call(Node, mnesia, start, []),
        call(Node, Create),
        ?assertEqual([], call(Node, ats_mnesia_lib, contents, [t])),
        New = directories(Node),
        ?assertMatch([_, _], New),
        ?assertEqual(New, New -- Old)
    end).

%% Mnesia restores a fallback before it has told any storage type that it starts.
fallbacks(Config) ->
    on_one_node(Config, fun() ->
        create_all([{index, [value]}]),
        [fill(Name, 300) || Name <- names()],
        File = filename:join(mnesia:system_info(directory), "backup"),
        ok = mnesia:backup(File),
        [{atomic, ok} = mnesia:clear_table(Name) || Name <- names()],
        ok = mnesia:install_fallback(File),
        restart(),
        [?assertEqual(objects(300), contents(Name), Name) || Name <- names()],
        %% Loads from a dump, as tables in memory are each time.
        restart(),
        [?assertEqual(objects(300), contents(Name), Name) || Name <- names()]
    end).

restored_backups(Config) ->
    on_one_node(Config, fun() ->
        create_all([{index, [value]}]),
        [fill(Name, 300) || Name <- names()],
        File = filename:join(mnesia:system_info(directory), "backup"),
        ok = mnesia:backup(File),
        [fill(Name, 310) || Name <- names()],
        [begin
             {atomic, _} = mnesia:restore(File, [{default_op, Op}]),
             [?assertEqual(objects(300), contents(Name), {Op, Name}) || Name <- names()],
             [fill(Name, 310) || Name <- names()]
         end || Op <- [clear_tables, recreate_tables, recreate_tables]],
        {ok, Traversed} =
            mnesia:traverse_backup(File, mnesia_backup, dummy, read_only,
                                   fun(T, N) when element(1, T) =/= schema -> {[T], N + 1};
                                      (T, N) -> {[T], N} end, 0),
        ?assertEqual(300 * length(names()), Traversed)
    end).

checkpoints(Config) ->
    on_one_node(Config, fun() ->
        create_all([]),
        [fill(Name, 300) || Name <- names()],
        {ok, moment, [_]} = mnesia:activate_checkpoint([{name, moment}, {max, names()}]),
        [fill(Name, 400) || Name <- names()],
        [ok = mnesia:dirty_delete(Name, 7) || Name <- names()],
        File = filename:join(mnesia:system_info(directory), "backup"),
        ok = mnesia:backup_checkpoint(moment, File),
        ok = mnesia:deactivate_checkpoint(moment),
        {atomic, _} = mnesia:restore(File, []),
        [?assertEqual(objects(300), contents(Name), Name) || Name <- names()],
        ?assertEqual([], filelib:wildcard(
                           filename:join(mnesia:system_info(directory), "*.dats_tmp")))
    end).

copies_change_their_type(Config) ->
    on_one_node(Config, fun() ->
        Own = [ram_copies, disc_copies, disc_only_copies],
        Pairs = [{From, To} || From <- Own ++ aliases(), To <- Own ++ aliases(), From =/= To,
                               lists:member(From, aliases()) orelse lists:member(To, aliases())],
        [begin
             create(t, From, Type, [{index, [value]}]),
             fill(t, 200),
             ?assertEqual({atomic, ok}, mnesia:change_table_copy_type(t, node(), To)),
             ?assertEqual(objects(200), contents(t), {From, To, Type}),
             fill(t, 210),
             ?assertEqual(objects(210), contents(t), {From, To, Type}),
             {atomic, ok} = mnesia:delete_table(t)
         end || {From, To} <- Pairs, Type <- [set, bag]],
        ?assertEqual([], filelib:wildcard(
                           filename:join(mnesia:system_info(directory), "*.dats*")))
    end).

%% Mnesia keeps a table in memory that it makes of one of an external type, but for the changes that
%% follow; its `disc_copies' would be empty after a restart.
changed_copies_are_on_disk(Config) ->
    on_one_node(Config, fun() ->
        Kept = [disc_copies, disc_only_copies, ats_disc, dats_disc],
        Changes = [{list_to_atom(lists:concat([From, "_to_", To])), From, To}
                   || From <- [ram_copies | Kept] ++ [ats_ram], To <- Kept, From =/= To,
                      lists:member(From, aliases()) orelse lists:member(To, aliases())],
        [begin
             create(Name, From, set, [{index, [value]}]),
             fill(Name, 200),
             {atomic, ok} = mnesia:change_table_copy_type(Name, node(), To),
             fill(Name, 210),
             ok = mnesia:dirty_delete(Name, 7)
         end || {Name, From, To} <- Changes],
        [begin
             restart(),
             [?assertEqual(objects(210) -- [object(7)], contents(Name), Name)
              || {Name, _, _} <- Changes],
             dumped = mnesia:dump_log()
         end || _ <- [1, 2]]
    end).

%% Mnesia makes fragments of its own types only, as those of the base table are. The others can have
%% other types.
fragments(Config) ->
    on_one_node(Config, fun() ->
        [begin
             {atomic, ok} = mnesia:create_table(
                 t, [{record_name, person}, {attributes, record_info(fields, person)},
                     {type, Type}, {index, [value]},
                     {frag_properties, [{n_fragments, 3}, {node_pool, [node()]},
                                        {n_disc_copies, 1}]}]),
             Change = fun(Fragment) ->
                 {atomic, ok} = mnesia:change_table_copy_type(Fragment, node(), Alias)
             end,
             [Change(Fragment) || Fragment <- [t_frag2, t_frag3]],
             Activity = fun(F) -> mnesia:activity(transaction, F, [], mnesia_frag) end,
             Activity(fun() -> [mnesia:write(t, P, write) || P <- objects(300)] end),
             Read = fun() ->
                 lists:sort(Activity(fun() -> mnesia:match_object(t, #person{_ = '_'}, read) end))
             end,
             {atomic, ok} = mnesia:change_table_frag(t, {add_frag, [node()]}),
             Change(t_frag4),
             ?assertEqual(objects(300), Read()),
             {atomic, ok} = mnesia:change_table_frag(t, del_frag),
             ?assertEqual(objects(300), Read()),
             Sizes = Activity(fun() -> mnesia:table_info(t, frag_size) end),
             ?assertEqual(300, lists:sum([N || {_, N} <- Sizes])),
             ?assertMatch({aborted, _}, mnesia:create_table(
                 u, [{frag_properties, [{n_fragments, 2}, {n_external_copies, 1}]},
                     {Alias, [node()]}])),
             {atomic, ok} = mnesia:delete_table(t)
         end || Alias <- aliases(), Type <- [set, ordered_set]]
    end).

%% A pattern that is an object would match maps with more keys.
maps_are_deleted_exactly(Config) ->
    on_one_node(Config, fun() ->
        [begin
             create(Name, Alias, Type, []),
             Small = #person{key = k, value = #{}},
             Large = #person{key = l, value = #{a => 1}},
             [ok = mnesia:dirty_write(Name, P) || P <- [Small, Large, Large#person{key = k}]],
             ok = mnesia:dirty_delete_object(Name, Small),
             ?assertEqual([Large#person{key = k}, Large], contents(Name), Name)
         end || {Name, Alias, Type} <- tables()]
    end).

selects_read_ranges(Config) ->
    on_one_node(Config, fun() ->
        [begin
             create(t, Alias, ordered_set, []),
             Objects = [#person{key = {N rem 100, N}, value = N} || N <- lists:seq(1, 20000)],
             transaction(fun() -> [mnesia:write(t, P, write) || P <- Objects] end),
             Prefix = [{#person{key = {7, '$1'}, _ = '_'}, [], ['$1']}],
             ?assertEqual(lists:seq(7, 20000, 100),
                          transaction(fun() -> mnesia:select(t, Prefix) end)),
             {Module, Table} = ats_mnesia:table(t),
             ?assertMatch(#{access := ranges, rows_read := 200}, Module:explain(Table, Prefix)),
             Query = qlc:q([V || #person{key = K, value = V} <- mnesia:table(t),
                                 K > {99, 19800}]),
             ?assertEqual([19899, 19999], transaction(fun() -> qlc:e(Query) end)),
             %% Reads in chunks, with writes of the transaction in between.
             Whole = [{#person{key = {7, '_'}, _ = '_'}, [], ['$_']}],
             Chunked = transaction(fun() ->
                 mnesia:write(t, #person{key = {7, 8}, value = new}, write),
                 mnesia:delete({t, {7, 107}}),
                 chunks(mnesia:select(t, Whole, 10, read))
             end),
             ?assertEqual(lists:sort([8 | lists:seq(7, 20000, 100)]) -- [107],
                          [N || #person{key = {7, N}} <- Chunked]),
             {atomic, ok} = mnesia:delete_table(t)
         end || Alias <- aliases()]
    end).

%% After a clean stop an index on disk is used as it is; else it is built anew.
indexes_are_kept(Config) ->
    Fill = fun() ->
        create(t, dats_disc, set, [{index, [value]}]),
        fill(t, 500),
        %% Changes in the log are replayed into the table, and not into its indexes.
        dumped = mnesia:dump_log()
    end,
    IsBuilt = fun(Node) ->
        call(Node, fun() ->
            {Called, _} = count_writes(fun() -> ok = mnesia:start(), wait([t]) end),
            _ = contents(t),
            Called =:= 0
        end)
    end,
    on_nodes(Config, 1, fun([Node]) ->
        call(Node, Fill),
        stopped = call(Node, mnesia, stop, []),
        ?assertEqual(true, IsBuilt(Node)),
        call(Node, fun() -> fill(t, 501), stopped = mnesia:stop() end),
        ?assertEqual(false, IsBuilt(Node)),
        ?assertEqual(objects(501), call(Node, ats_mnesia_lib, contents, [t])),
        call(Node, fun() -> dumped = mnesia:dump_log(), stopped = mnesia:stop() end),
        ?assertEqual(true, IsBuilt(Node)),
        %% Without a clean stop, and with changes in the log. Without these the index may be used:
        %% the process that owns it closes it if it learns in time that Mnesia is gone.
        call(Node, fun() -> fill(t, 502), ok = mnesia:sync_log(), mnesia:lkill() end),
        ?assertEqual(false, IsBuilt(Node)),
        ?assertEqual(objects(502), call(Node, ats_mnesia_lib, contents, [t]))
    end).

count_writes(Function) ->
    erlang:trace(all, true, [call]),
    1 = erlang:trace_pattern({ats_mnesia, insert, 3}, true, [local, call_count]),
    try
        Result = Function(),
        {call_count, Count} = erlang:trace_info({ats_mnesia, insert, 3}, call_count),
        {Count, Result}
    after
        erlang:trace(all, false, [call]),
        erlang:trace_pattern({ats_mnesia, insert, 3}, false, [local, call_count])
    end.

options(Config) ->
    on_one_node(Config, fun() ->
        Make = fun(Alias, Properties) ->
            mnesia:create_table(t, [{Alias, [node()]}, {storage_properties, Properties}])
        end,
        ?assertEqual({atomic, ok}, Make(ats_ram, [{ets, [compressed]}])),
        ?assertEqual(true, info(t, compressed)),
        {atomic, ok} = mnesia:delete_table(t),
        ?assertEqual({atomic, ok}, Make(ats_disc, [{ats, [compressed]},
                                                   {dats, [{durability, sync}]}])),
        ?assertEqual(true, info(t, compressed)),
        {atomic, ok} = mnesia:delete_table(t),
        ?assertEqual({atomic, ok}, Make(dats_disc, [{dats, [{durability, sync}]}])),
        ?assertEqual(sync, info(t, durability)),
        {atomic, ok} = mnesia:delete_table(t),
        [?assertMatch({aborted, {{storage_properties, _}, t, _}}, Make(Alias, Properties))
         || Alias <- [ats_disc],
            Properties <- [[{ats, [private]}], [{ats, [{keypos, 3}]}], [{dats, [{file, "x"}]}],
                           [{dats, [{merge, sum}]}], [{ats, [nonsense]}],
                           [{dats, [{durability, never}]}]]],
        ?assertMatch({aborted, _}, mnesia:create_table(t, [{ats_ram, [node()]},
                                                           {type, duplicate_bag}]))
    end).

info(Name, Item) ->
    {Module, Table} = ats_mnesia:table(Name),
    Module:info(Table, Item).

tables_of_this_node(Config) ->
    on_one_node(Config, fun() ->
        [begin
             create(Name, Alias, Type, []),
             fill(Name, 10),
             {Module, Table} = ats_mnesia:table(Name),
             ?assertEqual(case Alias of dats_disc -> dats; _ -> ats end, Module),
             ?assertEqual([object(3)], Module:lookup(Table, 3))
         end || {Name, Alias, Type} <- tables()],
        {atomic, ok} = mnesia:create_table(own, []),
        ?assertError(badarg, ats_mnesia:table(own)),
        ?assertError(badarg, ats_mnesia:table(nowhere))
    end).

%% A program follows the table beneath one of Mnesia: it is told of the writes of transactions and
%% of dirty functions, and of nothing that was aborted. Subscribers of Mnesia get their events as
%% ever.
followed_tables(Config) ->
    on_one_node(Config, fun() ->
        [followed_table(Alias, Type) || Alias <- aliases(), Type <- types()]
    end).

followed_table(Alias, Type) ->
    create(t, Alias, Type, []),
    fill(t, 3),
    {Module, Table} = ats_mnesia:table(t),
    Followed = case Module of
                   ats -> Table;
                   dats -> {dats, Table}
               end,
    {ok, Ref} = Module:follow(Table, #{snapshot => true, every => 10}),
    {ok, _} = mnesia:subscribe({table, t, simple}),
    {Before, Seq} = ats_follow_lib:until_equal(Ref, Followed, 1, ats_follow_lib:empty()),
    transaction(fun() ->
        [mnesia:write(t, object(N), write) || N <- lists:seq(4, 13)],
        mnesia:delete({t, 1})
    end),
    {aborted, enough} = mnesia:transaction(fun() ->
        mnesia:write(t, object(14), write),
        mnesia:abort(enough)
    end),
    ok = mnesia:dirty_write(t, object(15)),
    ok = mnesia:dirty_delete(t, 2),
    ok = mnesia:async_dirty(fun() -> mnesia:delete_object(t, object(5), write) end),
    Expected = lists:sort([object(N) || N <- [3, 4, 15 | lists:seq(6, 13)]]),
    Copy = until_objects(Ref, Seq, Before, Expected),
    ?assertEqual(Expected, lists:sort(contents(t))),
    Events = [receive {mnesia_table_event, {Event, _, _}} -> Event after 10000 -> none end
              || _ <- lists:seq(1, 14)],
    Number = fun(Kind) -> length([E || E <- Events, E =:= Kind]) end,
    ?assertEqual([11, 2, 1], lists:map(Number, [write, delete, delete_object])),
    {atomic, ok} = mnesia:clear_table(t),
    none_left(Ref, Copy),
    {ok, _} = mnesia:unsubscribe({table, t, simple}),
    {atomic, ok} = mnesia:delete_table(t),
    Why = receive {ats_changes, Ref, ended, Told} -> Told after 10000 -> none end,
    ?assertEqual(case Module of ats -> deleted; dats -> closed end, Why),
    flush().

%% Applies batches until the copy has these objects. Changes of one moment are told as one.
until_objects(Ref, Seq, Copy, Expected) ->
    case ats_follow_lib:objects(Copy) of
        Expected -> {Seq, Copy};
        _ -> until_objects(Ref, Seq + 1, ats_follow_lib:next(Ref, Seq, Copy), Expected)
    end.

none_left(Ref, {Seq, Copy}) ->
    {_, Empty} = until_objects(Ref, Seq, Copy, []),
    ?assertEqual([], ats_follow_lib:objects(Empty)).

flush() ->
    receive {mnesia_table_event, _} -> flush()
    after 0 -> ok
    end.

batches_of_this_node(Config) ->
    on_one_node(Config, fun() ->
        [begin
             create(Name, Alias, Type, []),
             ?assertEqual({atomic, ok}, ats_mnesia:insert_local(Name, objects(100))),
             ?assertEqual(objects(100), contents(Name)),
             Wrong = [object(101), {other, 1, 2, 3}],
             ?assertEqual({aborted, {bad_type, {other, 1, 2, 3}}},
                          ats_mnesia:insert_local(Name, Wrong)),
             ?assertEqual(objects(100), contents(Name)),
             {atomic, ok} = mnesia:add_table_index(Name, value),
             ?assertEqual({aborted, {not_only_here, Name}},
                          ats_mnesia:insert_local(Name, [object(101)]))
         end || {Name, Alias, Type} <- tables()],
        ?assertMatch({aborted, _}, ats_mnesia:insert_local(nowhere, [object(1)])),
        restart(),
        [?assertEqual(objects(100), contents(Name))
         || {Name, Alias, _} <- tables(), Alias =/= ats_ram]
    end).

counters(Config) ->
    on_one_node(Config, fun() ->
        [begin
             {atomic, ok} = mnesia:create_table(t, [{Alias, [node()]}]),
             ?assertEqual([3, 5, 0],
                          [mnesia:dirty_update_counter(t, k, N) || N <- [3, 2, -9]]),
             ats_test_lib:parallel([fun() ->
                 [mnesia:dirty_update_counter(t, k, 1) || _ <- lists:seq(1, 500)]
             end || _ <- lists:seq(1, 4)]),
             Expected = [{t, k, 2000}],
             ?assertEqual(Expected, mnesia:dirty_read(t, k)),
             restart(),
             ?assertEqual(case Alias of ats_ram -> []; _ -> Expected end, mnesia:dirty_read(t, k)),
             {atomic, ok} = mnesia:delete_table(t)
         end || Alias <- aliases()]
    end).

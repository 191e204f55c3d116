%% Indexes of Mnesia on tables of ats and dats beside all that changes a schema, and restarts.
-module(ats_mnesia_program_SUITE).

-include_lib("stdlib/include/assert.hrl").
-include("../support/ats_mnesia_lib.hrl").

-export([all/0, suite/0, init_per_testcase/2, end_per_testcase/2]).
-export([
    programs/1,
    replayed_logs_add_and_delete_indexes/1,
    plugins_survive_changes_of_types/1,
    plugins_are_not_deleted/1,
    plugins_are_not_deleted_with_short_stacks/1,
    backups_make_tables_with_indexes/1,
    backups_change_types/1,
    backups_make_tables_of_mnesia/1
]).
-export([parity/3]).

-import(ats_mnesia_lib, [on_one_node/2, aliases/0, create/4, object/1, objects/1, fill/2,
                         contents/1, restart/0]).

suite() -> [{timetrap, {minutes, 15}}].

all() ->
    [
        programs,
        replayed_logs_add_and_delete_indexes,
        plugins_survive_changes_of_types,
        plugins_are_not_deleted,
        plugins_are_not_deleted_with_short_stacks,
        backups_make_tables_with_indexes,
        backups_change_types,
        backups_make_tables_of_mnesia
    ].

init_per_testcase(Case, Config) ->
    ats_mnesia_lib:begin_case(Case, Config).

end_per_testcase(_, _) ->
    ok.

%% Beside `disc_copies'.
programs(Config) ->
    ats_mnesia_lib:run_programs(Config, 1, 3).

%% An index that the log adds is not built before all of the log is in the table.
replayed_logs_add_and_delete_indexes(Config) ->
    on_one_node(Config, fun() ->
        Tabs = [ats_disc, dats_disc],
        [begin
             create(Tab, Tab, set, []),
             fill(Tab, 20),
             [{atomic, ok} = mnesia:add_table_index(Tab, Position) || Position <- [value, more]],
             {atomic, ok} = mnesia:del_table_index(Tab, more),
             ok = mnesia:dirty_write(Tab, (object(7))#person{value = 8})
         end || Tab <- Tabs],
        restart(),
        [begin
             ?assertEqual([#person.value], mnesia:table_info(Tab, index)),
             ?assertEqual(lists:sort([(object(7))#person{value = 8} | objects(20)] -- [object(7)]),
                          contents(Tab)),
             ?assertMatch({aborted, {no_exists, Tab, _}}, mnesia:del_table_index(Tab, more)),
             {atomic, ok} = mnesia:del_table_index(Tab, value),
             ?assertEqual([], mnesia:table_info(Tab, index))
         end || Tab <- Tabs]
    end).

parity(_Tab, _Position, #person{value = Value}) -> [Value rem 2].

plugins_survive_changes_of_types(Config) ->
    on_one_node(Config, fun() ->
        add_plugin(),
        Own = [ram_copies, disc_copies, disc_only_copies],
        [begin
             create(t, From, set, [{index, [value || IsSecond] ++ [{parity}]}]),
             fill(t, 20),
             ?assertEqual({atomic, ok}, mnesia:change_table_copy_type(t, node(), To)),
             ok = mnesia:dirty_write(t, object(21)),
             ok = mnesia:dirty_delete(t, 1),
             ok = mnesia:dirty_delete_object(t, object(3)),
             Odd = [object(N) || N <- lists:seq(5, 21, 2)],
             ?assertEqual(Odd, lists:sort(mnesia:dirty_index_read(t, 1, {parity})), {From, To}),
             ?assertEqual(19, mnesia:table_info(t, size)),
             {atomic, ok} = mnesia:delete_table(t)
         end || From <- Own ++ aliases(), To <- Own ++ aliases(), From =/= To,
                lists:member(From, aliases()) orelse lists:member(To, aliases()),
                IsSecond <- [false, true]]
    end).

add_plugin() ->
    {atomic, ok} = mnesia_schema:add_index_plugin({parity}, ?MODULE, parity).

%% Mnesia stops, or leaves the table as it is and says that all is well.
plugins_are_not_deleted(Config) ->
    on_one_node(Config, fun refuse_deletion/0).

plugins_are_not_deleted_with_short_stacks(Config) ->
    on_one_node(Config, fun() ->
        _ = erlang:system_flag(backtrace_depth, 2),
        refuse_deletion()
    end).

refuse_deletion() ->
    add_plugin(),
    [begin
         create(t, Alias, set, [{index, [value, {parity}]}]),
         fill(t, 20),
         Refused = fun(Result) ->
             ?assertMatch({aborted, {{cannot_delete_index, [{parity}]}, t, _}}, Result)
         end,
         Refused(mnesia:del_table_index(t, {parity})),
         Refused(mnesia:transform_table(t, fun(P) -> P end, record_info(fields, person))),
         {atomic, ok} = mnesia:del_table_index(t, value),
         {atomic, ok} = mnesia:write_table_property(t, {noted, 1}),
         ok = mnesia:dirty_delete(t, 1),
         ?assertEqual(9, length(mnesia:dirty_index_read(t, 1, {parity}))),
         {atomic, ok} = mnesia:delete_table(t)
     end || Alias <- aliases()].

%% Into a schema that does not know the table, and over one that has the table already.
backups_make_tables_with_indexes(Config) ->
    on_one_node(Config, fun() ->
        add_plugin(),
        [create(Alias, Alias, bag, [{index, [value, {parity}]}]) || Alias <- aliases()],
        [fill(Alias, 20) || Alias <- aliases()],
        File = filename:join(mnesia:system_info(directory), "backup"),
        ok = mnesia:backup(File),
        Restored = fun() ->
            Options = [{recreate_tables, aliases()}, {default_op, skip_tables}],
            ?assertMatch({atomic, _}, mnesia:restore(File, Options)),
            [begin
                 ?assertEqual(2, length(mnesia:table_info(Alias, index))),
                 ok = mnesia:dirty_delete(Alias, 1),
                 ?assertEqual(9, length(mnesia:dirty_index_read(Alias, 1, {parity}))),
                 ?assertEqual(1, length(mnesia:dirty_index_read(Alias, 1, value)))
             end || Alias <- aliases()]
        end,
        Restored(),
        Restored(),
        [{atomic, ok} = mnesia:delete_table(Alias) || Alias <- aliases()],
        Restored()
    end).

%% A table was ours when the backup was made, and is one of Mnesia in memory now.
backups_change_types(Config) ->
    on_one_node(Config, fun() ->
        [begin
             restore_over(Saved, Now, How),
             ?assertEqual(objects(20), contents(t), {Saved, Now, How}),
             ok = mnesia:dirty_write(t, object(21)),
             ?assertEqual(objects(21), contents(t), {Saved, Now, How}),
             {atomic, ok} = mnesia:delete_table(t)
         end || {Saved, Now} <- changes(), How <- [changed, made_anew]]
    end).

%% Mnesia leaves a table empty that it makes `ram_copies', for any earlier type. That the table was
%% one of ours changes nothing, also where it becomes one of ours once more.
backups_make_tables_of_mnesia(Config) ->
    on_one_node(Config, fun() ->
        Types = [{Saved, Now} || Saved <- [ram_copies, disc_copies, disc_only_copies],
                                 Now <- [ram_copies | aliases()]],
        Lasts = lists:append(lists:duplicate(4, aliases())),
        lists:foreach(fun become_ours_again/1, lists:zip(Types, Lasts))
    end).

become_ours_again({{Saved, Now}, Last}) ->
    restore_over(Saved, Now, made_anew),
    Restored = case Saved of
                   ram_copies -> [];
                   _ -> objects(20)
               end,
    ?assertEqual(Restored, contents(t), {Saved, Now}),
    ok = mnesia:dirty_write(t, object(21)),
    Written = Restored ++ [object(21)],
    ?assertEqual(Written, contents(t), {Saved, Now}),
    {atomic, ok} = mnesia:change_table_copy_type(t, node(), Last),
    ?assertEqual(Written, contents(t), {Saved, Now, Last}),
    {atomic, ok} = mnesia:delete_table(t).

changes() ->
    [{Saved, Now} || Saved <- aliases(), Now <- [ram_copies, disc_copies]].

restore_over(Saved, Now, How) ->
    create(t, Saved, set, [{index, [value]}]),
    fill(t, 20),
    File = filename:join(mnesia:system_info(directory), "backup"),
    ok = mnesia:backup(File),
    case How of
        changed ->
            {atomic, ok} = mnesia:change_table_copy_type(t, node(), Now);
        made_anew ->
            {atomic, ok} = mnesia:delete_table(t),
            create(t, Now, set, [{index, [value]}])
    end,
    fill(t, 30),
    Options = [{recreate_tables, [t]}, {default_op, skip_tables}],
    ?assertEqual({atomic, [t]}, mnesia:restore(File, Options), {Saved, Now, How}).

%% Random programs of steps on tables of Mnesia: writes, operations on schemas, indexes on
%% attributes and by plug-ins, backups, and restarts after a stop or a kill. A model has the objects
%% of each table after each step. One table is of the type `disc_copies' all the time, which shows
%% that the model is that of Mnesia; the others begin as our types and change theirs.
%%
%% Mnesia's own tables have faults of their own with indexes, so steps are left out in which only
%% its types take part, and so are those that it cannot do with any index by a plug-in.
-module(ats_mnesia_program).

-export([run/3]).
-export([both/3, each/3, end_mnesia/0]).

-define(WAIT, 30000).
-define(CONTROL, {t_control, disc_copies}).
-define(OURS, [{t_ram, ats_ram}, {t_both, ats_disc}, {t_disk, dats_disc}]).
-define(PLUGINS, [{both}, {each}]).
-define(POSITIONS, [3, 4 | ?PLUGINS]).
-define(KEYS, [1, 2, 3, 4, 5]).
-define(VALUES, [0, 1, 2]).
-define(OTHERS, [a, b]).
-define(ATTRIBUTES, [key, value, other]).

%% `dump' has the objects of a table in memory after a restart.
-record(table, {storage, attributes = ?ATTRIBUTES, index = [], objects = [], dump = none,
                mode = read_write}).

%% `saved' has the tables of the backup. The last step is the first of `done'.
-record(state, {type, file, tables = #{}, saved = none, done = []}).

%% ----- plug-ins -----

both(_Tab, _Position, Object) -> [{element(3, Object), element(4, Object)}].

each(_Tab, _Position, Object) -> [element(3, Object), element(4, Object)].

%% ----- programs -----

%% Runs a program in a directory that is removed before. Returns `ok', or the step and its fault.
run(Directory, Seed, Count) ->
    _ = rand:seed(exsss, Seed),
    end_mnesia(),
    _ = file:del_dir_r(Directory),
    ok = filelib:ensure_dir(filename:join(Directory, "x")),
    ok = application:set_env(mnesia, dir, filename:join(Directory, "mnesia")),
    ok = mnesia:create_schema([node()], [{backend_types, ats_mnesia:types()}]),
    ok = mnesia:start(),
    [{atomic, ok} = mnesia_schema:add_index_plugin({F} = Name, ?MODULE, F)
     || {F} = Name <- ?PLUGINS],
    State = #state{type = pick([set, ordered_set, bag]),
                   file = filename:join(Directory, "backup")},
    try run_steps(Count, State) of
        ok -> ok
    catch
        throw:{failed, #state{done = Done}, What} ->
            {failed, What, {seed, Seed}, {type, State#state.type}, lists:reverse(Done)}
    end.

run_steps(Count, State) ->
    Created = lists:foldl(fun({Tab, Storage}, Before) ->
                                  run_step({create, Tab, Storage, random_index()}, Before)
                          end, State, [?CONTROL | ?OURS]),
    _ = lists:foldl(fun(_, Before) -> run_step(random_step(Before), Before) end,
                    Created, lists:seq(1, Count)),
    ok.

run_step(none, State) ->
    State;
run_step(Step, #state{done = Done} = State) ->
    Expected = expect(Step, State#state{done = [Step | Done]}),
    try
        ok = do(Step, Expected),
        Found = adopt(Step, Expected),
        check(Found),
        Found
    catch
        throw:{wrong, What} -> throw({failed, Expected, What});
        Class:Reason:Stack -> throw({failed, Expected, {Class, Reason, Stack}})
    end.

%% Changes in the log that were not handed to the disk are lost with a kill.
adopt({restart, kill_at_once}, #state{tables = Tables} = State) ->
    State#state{tables = maps:map(fun(Tab, Table) ->
        Found = mnesia:dirty_match_object(Tab, mnesia:table_info(Tab, wild_pattern)),
        Table#table{objects = lists:sort(Found)}
    end, Tables)};
adopt(_Step, State) ->
    State.

%% ----- steps -----

random_step(State) ->
    pick_weighted([{20, fun write/1}, {5, fun add_index/1}, {4, fun del_index/1},
                   {4, fun change_type/1}, {2, fun transform/1}, {1, fun clear/1},
                   {2, fun delete_or_create/1}, {2, fun backup/1}, {3, fun restore/1},
                   {1, fun fallback/1}, {1, fun change_mode/1}, {2, fun describe/1},
                   {3, fun dump/1}, {8, fun restart/1}], State).

pick_weighted(Choices, State) ->
    Kinds = lists:append([lists:duplicate(Weight, Kind) || {Weight, Kind} <- Choices]),
    (pick(Kinds))(State).

write(#state{tables = Tables}) ->
    Operations = [random_write() || _ <- lists:seq(1, rand:uniform(4))],
    Context = pick([transaction, sync_transaction, async_dirty, sync_dirty, dirty]),
    {write, pick([names(Tables), [pick(names(Tables)) || Tables =/= #{}]]), Context, Operations}.

random_write() ->
    pick([fun() -> {write, random_object()} end, fun() -> {write, random_object()} end,
          fun() -> {write, random_object()} end, fun() -> {delete, pick(?KEYS)} end,
          fun() -> {delete_object, random_object()} end]).

random_object() ->
    {pick(?KEYS), pick(?VALUES), pick(?OTHERS)}.

add_index(State) -> {add_index, pick(?POSITIONS), writable(State)}.

del_index(State) -> {del_index, pick([3, 4]), writable(State)}.

%% A table of Mnesia's own goes on as one of ours.
change_type(#state{type = Type} = State) ->
    case [Tab || Tab <- writable(State), Tab =/= element(1, ?CONTROL)] of
        [] ->
            none;
        Tabs ->
            Tab = pick(Tabs),
            #table{storage = From} = table(Tab, State),
            Own = [ram_copies, disc_copies] ++ [disc_only_copies || Type =/= ordered_set],
            case [To || To <- ours() ++ [S || S <- Own, is_ours(From)], To =/= From] of
                [] -> none;
                Others -> {change_type, Tab, pick(Others)}
            end
    end.

%% Mnesia cannot delete an index by a plug-in.
transform(#state{tables = Tables} = State) ->
    Tabs = [Tab || Tab <- writable(State), #table{dump = none} <- [table(Tab, State)],
                   not has_plugin(Tab, State)],
    case pick([values, attributes, ignore]) of
        attributes when map_size(Tables) > 0, Tabs =/= [] -> {transform, Tabs, attributes};
        _ when Tabs =:= [] -> none;
        Kind -> {transform, Tabs, Kind}
    end.

clear(State) -> {clear, writable(State)}.

delete_or_create(#state{tables = Tables}) ->
    {Tab, Storage} = pick([?CONTROL | ?OURS]),
    case Tables of
        #{Tab := #table{mode = read_only}} -> none;
        #{Tab := _} -> {delete, Tab};
        #{} -> {create, Tab, Storage, random_index()}
    end.

backup(_State) -> backup.

restore(#state{saved = none}) ->
    none;
restore(#state{saved = Saved} = State) ->
    {restore, [{Tab, pick(restore_modes(Tab, Table, State))}
               || {Tab, Table} <- maps:to_list(Saved)]}.

%% A table that has other attributes, or is gone, can only be made anew. Only ours are made anew in
%% the place of ours: `disc_copies' lose the writes until the log is dumped, Mnesia does not tell
%% our types when it makes one of its own in their place, and it stops where `ats_ram' follows one
%% of its own in memory.
restore_modes(Tab, #table{attributes = Attributes, storage = Storage}, #state{tables = Tables}) ->
    case Tables of
        #{Tab := #table{mode = read_only}} ->
            [skip_tables];
        #{Tab := #table{attributes = Now, storage = From}} ->
            [skip_tables | [Mode || Mode <- [clear_tables, keep_tables], Now =:= Attributes]]
                ++ [recreate_tables || is_ours(Storage) andalso is_ours(From)];
        #{} ->
            [skip_tables | [recreate_tables || is_ours(Storage)]]
    end.

fallback(#state{saved = none}) -> none;
fallback(_State) -> fallback.

change_mode(#state{tables = Tables} = State) when map_size(Tables) > 0 ->
    Tab = pick(names(Tables)),
    #table{mode = Mode} = table(Tab, State),
    {change_mode, Tab, case Mode of read_only -> read_write; read_write -> read_only end};
change_mode(_State) ->
    none.

describe(State) -> {describe, pick([property, load_order, majority]), writable(State)}.

dump(_State) -> pick([dump_log, sync_log]).

restart(_State) -> {restart, pick([stop, stop, kill, kill_at_once])}.

random_index() ->
    [Position || Position <- ?POSITIONS, rand:uniform(3) =:= 1].

%% ----- the model -----

expect({create, Tab, Storage, Index}, State) ->
    put_table(Tab, #table{storage = Storage, index = Index}, State);
expect({write, Tabs, _Context, Operations}, State) ->
    change(Tabs, fun(#table{mode = read_only} = Table) -> Table;
                    (Table) -> write_all(Operations, Table, State)
                 end, State);
expect({add_index, Position, Tabs}, State) ->
    change(Tabs, fun(#table{index = Index} = Table) ->
                         Table#table{index = lists:usort([Position | Index])}
                 end, State);
expect({del_index, Position, Tabs}, State) ->
    change(Tabs, fun(#table{index = Index} = Table) ->
                         Table#table{index = Index -- [Position]}
                 end, State);
expect({change_type, Tab, To}, State) ->
    change([Tab], fun(Table) -> Table#table{storage = To, dump = none} end, State);
expect({transform, Tabs, Kind}, State) ->
    change(Tabs, fun(Table) -> transform_table(Kind, Table) end, State);
expect({clear, Tabs}, State) ->
    change(Tabs, fun(Table) -> Table#table{objects = []} end, State);
expect({delete, Tab}, #state{tables = Tables} = State) ->
    State#state{tables = maps:remove(Tab, Tables)};
expect(backup, #state{tables = Tables} = State) ->
    State#state{saved = Tables};
expect({restore, Modes}, State) ->
    lists:foldl(fun({Tab, Mode}, Before) -> restore_table(Mode, Tab, Before) end, State, Modes);
expect(fallback, #state{saved = Saved} = State) ->
    State#state{tables = maps:map(fun(_, Table) -> fill_dump(Table) end, Saved)};
expect({change_mode, Tab, Mode}, State) ->
    change([Tab], fun(Table) -> Table#table{mode = Mode} end, State);
expect({restart, _How}, #state{tables = Tables} = State) ->
    State#state{tables = maps:map(fun(_, Table) -> restart_table(Table) end, Tables)};
expect(_Step, State) ->
    State.

write_all(Operations, #table{objects = Objects, attributes = Attributes} = Table, State) ->
    Written = lists:foldl(fun(Operation, Before) ->
                                  write_one(Operation, Before, Attributes, State)
                          end, Objects, Operations),
    Table#table{objects = lists:sort(Written)}.

write_one({write, Values}, Objects, Attributes, #state{type = bag}) ->
    Object = object(Values, Attributes),
    [Object | Objects -- [Object]];
write_one({write, Values}, Objects, Attributes, _State) ->
    Object = object(Values, Attributes),
    [Object | without_key(element(2, Object), Objects)];
write_one({delete, Key}, Objects, _Attributes, _State) ->
    without_key(Key, Objects);
write_one({delete_object, Values}, Objects, Attributes, _State) ->
    Objects -- [object(Values, Attributes)].

without_key(Key, Objects) -> [Object || Object <- Objects, element(2, Object) =/= Key].

object({Key, Value, Other}, [_, _, _ | More]) ->
    list_to_tuple([rec, Key, Value, Other | [x || _ <- More]]).

transform_table(ignore, Table) ->
    Table;
transform_table(Kind, #table{objects = Objects, attributes = Attributes} = Table) ->
    Fun = transformation(Kind, Attributes),
    Table#table{objects = lists:usort(lists:map(Fun, Objects)),
                attributes = new_attributes(Kind, Attributes)}.

new_attributes(attributes, ?ATTRIBUTES) -> ?ATTRIBUTES ++ [more];
new_attributes(attributes, _Attributes) -> ?ATTRIBUTES;
new_attributes(_Kind, Attributes) -> Attributes.

transformation(attributes, ?ATTRIBUTES) -> fun(Object) -> erlang:append_element(Object, x) end;
transformation(attributes, _Attributes) -> fun(Object) -> erlang:delete_element(5, Object) end;
transformation(values, _Attributes) ->
    fun(Object) -> setelement(3, Object, (element(3, Object) + 1) rem 3) end.

restore_table(skip_tables, _Tab, State) ->
    State;
restore_table(recreate_tables, Tab, #state{saved = Saved} = State) ->
    put_table(Tab, (maps:get(Tab, Saved))#table{dump = none}, State);
restore_table(Mode, Tab, #state{saved = Saved, type = Type} = State) ->
    #{Tab := #table{objects = Restored}} = Saved,
    change([Tab], fun(#table{objects = Objects} = Table) ->
        Kept = case Mode of
                   clear_tables -> [];
                   keep_tables when Type =:= bag -> Objects;
                   keep_tables -> [Object || Object <- Objects,
                                             not lists:keymember(element(2, Object), 2, Restored)]
               end,
        Table#table{objects = lists:usort(Kept ++ Restored)}
    end, State).

fill_dump(#table{objects = Objects} = Table) ->
    case is_in_memory(Table) of
        true -> Table#table{dump = Objects};
        false -> Table
    end.

restart_table(#table{dump = Dump} = Table) ->
    case is_in_memory(Table) of
        true when Dump =:= none -> Table#table{objects = []};
        true -> Table#table{objects = Dump};
        false -> Table
    end.

is_in_memory(#table{storage = Storage}) -> Storage =:= ats_ram orelse Storage =:= ram_copies.

%% ----- steps -----

%% Each step is noted, so the model is that after the step.
do({create, Tab, Storage, Index}, #state{type = Type}) ->
    done(mnesia:create_table(Tab, [{Storage, [node()]}, {type, Type}, {record_name, rec},
                                   {attributes, ?ATTRIBUTES}, {index, Index}]));
do({write, Tabs, Context, Operations}, State) ->
    lists:foreach(fun(Tab) ->
        #table{mode = Mode, attributes = Attributes} = table(Tab, State),
        Result = write_in(Context, Tab, Operations, Attributes),
        Mode =:= read_only andalso Result =:= ok andalso throw({wrong, {written, Tab}}),
        Mode =:= read_write andalso Result =/= ok andalso throw({wrong, {Tab, Result}})
    end, Tabs);
do({add_index, Position, Tabs}, _State) ->
    each_table(Tabs, fun(Tab) -> mnesia:add_table_index(Tab, Position) end, already_exists);
do({del_index, Position, Tabs}, _State) ->
    each_table(Tabs, fun(Tab) -> mnesia:del_table_index(Tab, Position) end, no_exists);
do({change_type, Tab, To}, _State) ->
    done(mnesia:change_table_copy_type(Tab, node(), To));
do({transform, Tabs, Kind}, State) ->
    each_table(Tabs, fun(Tab) ->
        #table{attributes = New} = table(Tab, State),
        Fun = case Kind of
                  ignore -> ignore;
                  values -> transformation(values, New);
                  attributes -> transformation(attributes, new_attributes(attributes, New))
              end,
        mnesia:transform_table(Tab, Fun, New)
    end, none);
do({clear, Tabs}, _State) ->
    each_table(Tabs, fun mnesia:clear_table/1, none);
do({delete, Tab}, _State) ->
    done(mnesia:delete_table(Tab));
do(backup, #state{file = File}) ->
    done(mnesia:backup(File));
do({restore, Modes}, #state{file = File}) ->
    Options = [{Mode, [Tab]} || {Tab, Mode} <- Modes],
    {atomic, _} = mnesia:restore(File, [{default_op, skip_tables} | Options]),
    ok;
do(fallback, #state{file = File} = State) ->
    done(mnesia:install_fallback(File)),
    do({restart, stop}, State);
do({change_mode, Tab, Mode}, _State) ->
    done(mnesia:change_table_access_mode(Tab, Mode));
do({describe, Item, Tabs}, _State) ->
    each_table(Tabs, fun(Tab) -> describe(Item, Tab) end, already_exists);
do(dump_log, _State) ->
    dumped = mnesia:dump_log(),
    ok;
do(sync_log, _State) ->
    done(mnesia:sync_log());
do({restart, How}, #state{tables = Tables}) ->
    How =:= kill andalso done(mnesia:sync_log()),
    case How of
        stop -> stopped = mnesia:stop();
        _ -> end_mnesia()
    end,
    done(mnesia:start()),
    done(mnesia:wait_for_tables(names(Tables), ?WAIT)).

done(ok) -> ok;
done({atomic, ok}) -> ok;
done(Other) -> throw({wrong, Other}).

each_table(Tabs, Function, Refusal) ->
    lists:foreach(fun(Tab) ->
        case Function(Tab) of
            {atomic, ok} -> ok;
            {aborted, Reason} when element(1, Reason) =:= Refusal -> ok;
            Other -> throw({wrong, {Tab, Other}})
        end
    end, Tabs).

describe(property, Tab) -> mnesia:write_table_property(Tab, {noted, rand:uniform(9)});
describe(load_order, Tab) -> mnesia:change_table_load_order(Tab, rand:uniform(9));
describe(majority, Tab) -> mnesia:change_table_majority(Tab, rand:uniform(2) =:= 1).

write_in(dirty, Tab, Operations, Attributes) ->
    try
        lists:foreach(fun({write, V}) -> ok = mnesia:dirty_write(Tab, object(V, Attributes));
                         ({delete, Key}) -> ok = mnesia:dirty_delete(Tab, Key);
                         ({delete_object, V}) ->
                              ok = mnesia:dirty_delete_object(Tab, object(V, Attributes))
                      end, Operations)
    catch
        exit:{aborted, _} = Aborted -> Aborted
    end;
write_in(Context, Tab, Operations, Attributes) ->
    try mnesia:activity(Context, fun() ->
            lists:foreach(fun({write, V}) -> mnesia:write(Tab, object(V, Attributes), write);
                             ({delete, Key}) -> mnesia:delete(Tab, Key, write);
                             ({delete_object, V}) ->
                                  mnesia:delete_object(Tab, object(V, Attributes), write)
                          end, Operations)
        end)
    catch
        exit:{aborted, _} = Aborted -> Aborted
    end.

%% Ends Mnesia at once. It is started again when the application has noticed.
end_mnesia() ->
    _ = mnesia:lkill(),
    wait_for_end().

wait_for_end() ->
    case lists:keymember(mnesia, 1, application:which_applications())
        orelse erlang:whereis(mnesia_sup) =/= undefined of
        true -> timer:sleep(5), wait_for_end();
        false -> ok
    end.

%% ----- checks -----

check(#state{tables = Tables} = State) ->
    equal(names(Tables), lists:sort(mnesia:system_info(tables)) -- [schema], tables),
    maps:foreach(fun(Tab, Table) -> check_table(Tab, Table, State) end, Tables),
    check_directories(State).

check_table(Tab, #table{storage = Storage, attributes = Attributes} = Table, _State) ->
    Info = fun(Item) -> mnesia:table_info(Tab, Item) end,
    #table{objects = Objects, index = Index, mode = Mode} = Table,
    equal(Storage, storage(Info(storage_type)), {Tab, storage}),
    equal(Attributes, Info(attributes), {Tab, attributes}),
    equal(Mode, Info(access_mode), {Tab, access_mode}),
    equal(length(Objects), Info(size), {Tab, size}),
    equal(Objects, lists:sort(mnesia:dirty_match_object(Tab, Info(wild_pattern))), {Tab, objects}),
    %% Mnesia's own tables on disk may have two notes of an index.
    Positions = [case P of {Name, _, _} -> Name; _ -> P end || P <- Info(index)],
    equal(Index, case is_ours(Storage) of
                     true -> lists:sort(Positions);
                     false -> lists:usort(Positions)
                 end, {Tab, index}),
    [check_index(Tab, Position, Value, Objects) || Position <- Index, Value <- values(Position)].

check_index(Tab, Position, Value, Objects) ->
    Expected = lists:sort([Object || Object <- Objects,
                                     lists:member(Value, indexed(Position, Object))]),
    Context = {Tab, read_by, Position, Value},
    equal(Expected, lists:sort(mnesia:dirty_index_read(Tab, Value, Position)), Context),
    {atomic, Read} = mnesia:transaction(fun() -> mnesia:index_read(Tab, Value, Position) end),
    equal(Expected, lists:usort(Read), Context).

indexed(Position, Object) when is_integer(Position) -> [element(Position, Object)];
indexed({Plugin}, Object) -> ?MODULE:Plugin(none, none, Object).

values(3) -> ?VALUES;
values(4) -> ?OTHERS;
values({both}) -> [{Value, Other} || Value <- ?VALUES, Other <- ?OTHERS];
values({each}) -> ?VALUES ++ ?OTHERS.

%% Tables on disk have directories, and nothing else has.
check_directories(#state{tables = Tables}) ->
    Names = filelib:wildcard("*.dats*", mnesia:system_info(directory)),
    OnDisk = [Tab || {Tab, #table{storage = Storage}} <- maps:to_list(Tables),
                     lists:member(Storage, [ats_disc, dats_disc])],
    equal(lists:sort(OnDisk), lists:sort([name(N) || N <- Names, lists:suffix(".dats", N)]),
          directories),
    Indexes = [{Tab, Position} || {Tab, #table{storage = dats_disc, index = Index}}
                                      <- maps:to_list(Tables), Position <- Index],
    equal(length(Indexes), length([N || N <- Names, lists:suffix(".dats_index", N)]),
          {directories_of, Indexes, Names}).

name(Directory) -> list_to_atom(hd(string:lexemes(Directory, "."))).

storage({ext, Alias, ats_mnesia}) -> Alias;
storage(Storage) -> Storage.

equal(Same, Same, _Context) -> true;
equal(Expected, Found, Context) ->
    throw({wrong, {Context, {expected, Expected}, {found, Found}}}).

%% ----- tools -----

ours() -> [Alias || {_, Alias} <- ?OURS].

is_ours(Storage) -> lists:member(Storage, ours()).

table(Tab, #state{tables = Tables}) -> maps:get(Tab, Tables).

put_table(Tab, Table, #state{tables = Tables} = State) ->
    State#state{tables = Tables#{Tab => Table}}.

change(Tabs, Function, State) ->
    lists:foldl(fun(Tab, Before) -> put_table(Tab, Function(table(Tab, Before)), Before) end,
                State, Tabs).

names(Tables) -> lists:sort(maps:keys(Tables)).

writable(#state{tables = Tables} = State) ->
    [Tab || Tab <- names(Tables), (table(Tab, State))#table.mode =:= read_write].

has_plugin(Tab, State) -> lists:any(fun is_tuple/1, (table(Tab, State))#table.index).

pick(List) ->
    case lists:nth(rand:uniform(length(List)), List) of
        Function when is_function(Function, 0) -> Function();
        Picked -> Picked
    end.

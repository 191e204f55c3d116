%% @private
%% @doc The indexes that Mnesia notes for a table.
%%
%% Mnesia notes the indexes of a loaded table beside the other work of a commit to that table. It
%% adds a note whenever it makes an index, and it leaves notes where it should remove them: when a
%% table changes its type, when the log that it replays deletes an index, and when a backup makes a
%% table anew. An index that is noted and gone makes Mnesia drop every write to the table; one that
%% is noted and deleted is read. So the notes of a table are removed here before Mnesia makes its
%% indexes.
-module(ats_mnesia_indexes).

-export([forget/1, prepare_deletion/1, check_plugins/2]).

%% @doc Removes the notes of all indexes of a table, and the indexes.
-spec forget(atom()) -> ok.
forget(Tab) ->
    Work = find({Tab, commit_work}),
    case Work =/= none andalso lists:keytake(index, 1, Work) of
        {value, {index, SetOrBag, Indexes}, Others} ->
            lists:foreach(fun({{Position, Type}, Where}) ->
                                  remove(Tab, name(Position), Type, Where)
                          end, Indexes),
            mnesia_lib:set({Tab, commit_work}, Others),
            mnesia_lib:set({Tab, index_info}, mnesia_index:index_info(SetOrBag, [])),
            ok;
        _ ->
            ok
    end.

%% A plug-in is noted with its function, unless the table had an index before.
name({Plugin, _Module, _Function}) -> Plugin;
name(Position) -> Position.

remove(Tab, Position, Type, Where) ->
    ok = remove(Tab, Position, Where),
    _ = [mnesia_lib:unset({Tab, {index, Key}}) || Key <- [Position, {Position, Type}]],
    ok.

remove(_Tab, _Position, {ram, Index}) ->
    _ = ets:info(Index, size) =/= undefined andalso ets:delete(Index),
    ok;
remove(Tab, Position, {dets, Index}) ->
    _ = mnesia_monitor:unsafe_close_dets(Index),
    _ = file:delete(mnesia_index:tab2filename(Tab, Position)),
    ok;
remove(_Tab, _Position, {{ext, Alias, Module}, Index}) ->
    _ = Module:close_table(Alias, Index),
    _ = Module:delete_table(Alias, Index),
    ok.

%% @doc Prepares Mnesia for the deletion of an index. A backup can make a table that Mnesia does not
%% know. It deletes the indexes of the table first, and stops where the table has no commit work.
-spec prepare_deletion(atom()) -> ok.
prepare_deletion(Tab) ->
    _ = mnesia_lib:is_running() =/= no andalso find({Tab, commit_work}) =:= none
        andalso mnesia_lib:set({Tab, commit_work}, []),
    ok.

%% @doc Returns `{error, _}' if Mnesia is about to delete an index by a plug-in, which it also does
%% to transform a table. It cannot do so with an external type: in the middle of the change it would
%% stop, or give the rest of the change up. The calls of this process tell which change it is.
-spec check_plugins(atom(), Properties :: [{atom(), term()}]) ->
          ok | {error, {cannot_delete_index, [Plugin :: {atom()}]}}.
check_plugins(Tab, Properties) ->
    {current_stacktrace, Calls} = process_info(self(), current_stacktrace),
    Changes = [Function || {mnesia_schema, Function, _, _} <- Calls],
    Left = plugins(proplists:get_value(index, Properties, [])),
    Deleted = case [Change || Change <- Changes, is_deletion(Change)] of
                  [make_transform] -> Left;
                  [make_del_table_index] -> plugins(mnesia:table_info(Tab, index)) -- Left;
                  [] -> []
              end,
    case Deleted of
        [] -> ok;
        _ -> {error, {cannot_delete_index, Deleted}}
    end.

is_deletion(Function) ->
    Function =:= make_transform orelse Function =:= make_del_table_index.

plugins(Indexes) ->
    lists:usort([Plugin || Index <- Indexes, {_} = Plugin <- [plugin(Index)]]).

plugin({Plugin, _Module, _Function}) -> Plugin;
plugin({{_} = Plugin, _Type}) -> Plugin;
plugin(Other) -> Other.

find(Key) ->
    case mnesia_lib:is_running() =/= no andalso ets:lookup(mnesia_gvar, Key) of
        [{_, Value}] -> Value;
        _ -> none
    end.

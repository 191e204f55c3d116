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
%% stop, or give the rest of the change up. The calls of this process tell which change it is. Where
%% Mnesia has no functions of these names, no table has an index by a plug-in.
-spec check_plugins(atom(), Properties :: [{atom(), term()}]) -> ok | {error, Reason}
              when Reason :: {cannot_delete_index, [Plugin :: {atom()}]}
                           | {cannot_tell_deletion_of_index, [Plugin :: {atom()}]}.
check_plugins(Tab, Properties) ->
    Left = plugins(proplists:get_value(index, Properties, [])),
    Now = plugins(indexes(Tab)),
    case lists:usort(Left ++ Now) of
        [] ->
            ok;
        All ->
            case [Change || {Change, _} = Function <- deletions(),
                            not lists:member(Function, mnesia_schema:module_info(functions))] of
                [] -> check_deleted([Change || {Change, _} <- deletions(), is_done(Change)],
                                    Now -- Left, Left);
                _ -> {error, {cannot_tell_deletion_of_index, All}}
            end
    end.

deletions() -> [{make_transform, 4}, {make_del_table_index, 2}].

check_deleted([make_del_table_index], [_ | _] = Deleted, _Left) ->
    {error, {cannot_delete_index, Deleted}};
check_deleted([make_transform], _Deleted, [_ | _] = Left) ->
    {error, {cannot_delete_index, Left}};
check_deleted(_Changes, _Deleted, _Left) ->
    ok.

%% A stack as a list has eight calls, or fewer if the system has been told so.
is_done(Change) ->
    {backtrace, Calls} = process_info(self(), backtrace),
    binary:match(Calls, <<"mnesia_schema:", (atom_to_binary(Change))/binary, "/">>) =/= nomatch.

indexes(Tab) ->
    case find({Tab, index}) of
        none -> [];
        Indexes -> Indexes
    end.

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

%% @private
%% @doc The order in which the nodes load a table when Mnesia starts.
%%
%% A node that has a table of Mnesia's type `ram_copies' waits for one that has it on disk. Of other
%% types in memory Mnesia does not know that they are empty: it takes the node that stopped last for
%% the one that knows most, and the copies on disk are then loaded from it, with nothing in them.
%% So for such tables masters are set here, as Mnesia itself does for a while when it has loaded a
%% schema from another node: those on disk if there are any. Where nobody or only this node has the
%% table on disk, it need not wait for others, unless they have loaded the table already. With
%% several copies on disk it still waits for those in memory of nodes that it has not seen stop.
%%
%% Nothing is written to the log of Mnesia, and masters that a program has set stay.
-module(ats_mnesia_order).

-export([prepare/0, check/2]).

%% @doc Sets the masters of the tables of this node. Called when Mnesia knows its tables and has not
%% decided yet which of them it loads.
-spec prepare() -> ok.
prepare() ->
    Masters = [{Tab, Nodes} || mnesia_lib:is_running() =:= starting, Tab <- local_tables(),
                               Nodes <- [masters(mnesia_lib:val({Tab, cstruct}))], Nodes =/= []],
    %% Mnesia answers when this process, its transaction manager, has gone on.
    _ = Masters =/= [] andalso spawn(fun() -> set_and_forget(Masters) end),
    ok.

%% The first call is answered when the masters that a program has set are known.
-spec set_and_forget([{atom(), [node()]}]) -> ok.
set_and_forget(Masters) ->
    ok = mnesia_recover:sync(),
    Ours = [{Tab, Nodes} || {Tab, Nodes} <- Masters, mnesia_recover:get_master_nodes(Tab) =:= []],
    ok = set_masters(Ours),
    lists:foreach(fun forget_when_loaded/1, Ours).

%% Forgets masters once the table is loaded: from then on all copies are equal.
-spec forget_when_loaded({atom(), [node()]}) -> ok | {error, term()}.
forget_when_loaded({Tab, _} = Masters) ->
    case mnesia_lib:is_running() of
        starting ->
            timer:sleep(100),
            forget_when_loaded(Masters);
        yes ->
            case mnesia:wait_for_tables([Tab], infinity) of
                ok -> set_masters([{Tab, []}]);
                {error, _} = Failed -> Failed
            end;
        _ ->
            ok
    end.

-spec masters(Definition :: tuple()) -> [node()].
masters(Definition) ->
    Copies = copies(Definition),
    Nodes = [Node || {Node, _} <- Copies],
    IsExternal = lists:any(fun({_, Type}) -> is_external_in_memory(Type) end, Copies),
    case on_disk(Copies) of
        _ when not IsExternal; Nodes =:= [node()] -> [];
        [] -> Nodes;
        [Node] when Node =:= node() -> Nodes;
        OnDisk ->
            case lists:member(node(), OnDisk) of
                true -> [];
                false -> OnDisk
            end
    end.

-spec is_external_in_memory(Type :: term()) -> boolean().
is_external_in_memory({ext, _, _} = Type) -> is_in_memory(Type);
is_external_in_memory(_Type) -> false.

%% @doc Returns `{error, _}' if the copy of this node, in memory and so without any object, is about
%% to be the first that is loaded while other nodes have the table on disk. A node without a schema
%% on disk comes to that, as it knows no table when it starts.
-spec check(ats_mnesia:tab(), Reason :: term()) -> ok | {error, {copies_on_disk, [node()]}}.
check(Tab, Reason) ->
    case is_first(Reason) andalso not mnesia_lib:val({Tab, local_content})
        andalso on_disk(copies(mnesia_lib:val({Tab, cstruct}))) -- [node()] of
        [_ | _] = Nodes -> {error, {copies_on_disk, Nodes}};
        _ -> ok
    end.

is_first(initial) -> true;
is_first({adopt_orphan, _Node}) -> true;
is_first({_Reason, last_loader_down, _Node}) -> true;
is_first(_Reason) -> false.

-spec local_tables() -> [atom()].
local_tables() ->
    case ets:lookup(mnesia_gvar, {schema, local_tables}) of
        [{_, Tables}] -> Tables -- [schema];
        [] -> []
    end.

-spec is_in_memory(Storage :: term()) -> boolean().
is_in_memory(Storage) -> mnesia_lib:semantics(Storage, storage) =:= ram_copies.

-spec copies(Definition :: tuple()) -> [{node(), Type :: term()}].
copies(Definition) ->
    [{Node, mnesia_lib:cs_to_storage_type(Node, Definition)}
     || Node <- mnesia_lib:copy_holders(Definition)].

-spec on_disk([{node(), Type :: term()}]) -> [node()].
on_disk(Copies) ->
    [Node || {Node, Type} <- Copies, not is_in_memory(Type)].

-spec set_masters([{atom(), [node()]}]) -> ok | {error, term()}.
set_masters(Masters) ->
    mnesia_recover:log_master_nodes(Masters, false, yes).

%% @private
%% @doc A table as it was at one moment, read while its server goes on to change it.
%%
%% A process of its own reads it. Of a table on disk it folds over a snapshot. Of one in memory it
%% reads slices of what is there now: before the server changes a key for the first time since the
%% moment, it keeps what the key had, and these keys are read last. What was kept of a key is right,
%% whatever the slices had of it; keys of which nothing was kept have not changed.
-module(ats_ra_moment).

-export([take/1, before/1, use/1, is_in_use/0, drop/0, fold/3]).

-export_type([moment/0]).

-type moment() :: {pid(), Kept :: ats:tid() | none}.
-type chunk() :: {objects, [tuple()]} | {kept, [{Key :: term(), [tuple()]}]}.

-define(AT_ONCE, 1000).

%% @doc The moment that is now, in place of an earlier one. It ends when it was read, and with the
%% caller, which has it in its dictionary: a server that gets a snapshot forgets its state.
-spec take(ats_ra_table:table()) -> moment().
take(Table) ->
    ok = drop(),
    Server = self(),
    Tag = make_ref(),
    {Pid, Monitor} = spawn_monitor(fun() -> read(Table, Server, Tag) end),
    receive
        {Tag, Kept} ->
            true = erlang:demonitor(Monitor, [flush]),
            _ = put(?MODULE, {unused, {Pid, Kept}}),
            {Pid, Kept};
        {'DOWN', Monitor, process, Pid, Reason} ->
            exit(Reason)
    end.

%% @doc Returns the function to be called before the caller changes a key of a table.
-spec before(ats_ra_table:table()) -> ats_ra_command:before().
before({_Module, Id}) ->
    case get(?MODULE) of
        {_, {Pid, Kept}} when Kept =/= none ->
            case is_process_alive(Pid) of
                true -> fun(Key) -> keep(Kept, Key, Id) end;
                false -> none
            end;
        _ -> none
    end.

%% If the moment was read just now, what was kept is gone.
keep(Kept, Key, Id) ->
    try ats:member(Kept, Key) orelse ats:insert(Kept, {Key, ats:lookup(Id, Key)})
    catch error:badarg -> true
    end.

%% @doc Says that a moment will be read.
-spec use(moment()) -> ok.
use(Moment) ->
    _ = [put(?MODULE, {used, Moment}) || get(?MODULE) =:= {unused, Moment}],
    ok.

-spec is_in_use() -> boolean().
is_in_use() ->
    case get(?MODULE) of
        {used, {Pid, _}} -> is_process_alive(Pid);
        _ -> false
    end.

-spec drop() -> ok.
drop() ->
    _ = [exit(Pid, kill) || {_, {Pid, _}} <- [erase(?MODULE)]],
    ok.

%% @doc Folds a function over the chunks of a moment, in any process.
-spec fold(fun((chunk(), Acc) -> Acc), Acc, moment()) -> {ok, Acc} | {error, term()}.
fold(Function, Acc, {Pid, _}) ->
    fold(Function, Acc, Pid, erlang:monitor(process, Pid)).

fold(Function, Acc, Pid, Monitor) ->
    Pid ! {next, self(), Monitor},
    receive
        {Monitor, done} -> true = erlang:demonitor(Monitor, [flush]), {ok, Acc};
        {Monitor, Chunk} -> fold(Function, Function(Chunk, Acc), Pid, Monitor);
        {'DOWN', Monitor, process, Pid, Reason} -> {error, Reason}
    end.

%%--------------------------------------------------------------------------------------------
%% The process
%%--------------------------------------------------------------------------------------------

read(Table, Server, Tag) ->
    _ = erlang:monitor(process, Server),
    _ = read_all(Table, fun(Kept) -> Server ! {Tag, Kept} end),
    give(done).

read_all({ats, Id}, Tell) ->
    IsHashed = lists:member(ats:info(Id, type), [set, bag, duplicate_bag]),
    Kept = ats:new(?MODULE, [public | [ordered_set || not IsHashed]]),
    _ = Tell(Kept),
    slices(objects, ats:select(Id, [{'_', [], ['$_']}], ?AT_ONCE)),
    slices(kept, ats:select(Kept, [{'_', [], ['$_']}], ?AT_ONCE));
read_all({dats, Name}, Tell) ->
    %% The snapshot is there when the first object is, or none.
    Add = fun(Object, none) -> _ = Tell(none), {1, [Object]};
             (Object, {?AT_ONCE, Objects}) -> give_objects(Objects), {1, [Object]};
             (Object, {Count, Objects}) -> {Count + 1, [Object | Objects]}
          end,
    case dats:foldl(Add, none, Name) of
        none -> Tell(none);
        {error, _} = Failed -> exit(Failed);
        {_, Objects} -> give_objects(Objects)
    end.

slices(_Kind, '$end_of_table') ->
    ok;
slices(Kind, {Objects, Continuation}) ->
    give({Kind, Objects}),
    slices(Kind, ats:select(Continuation)).

give_objects(Backwards) ->
    give({objects, lists:reverse(Backwards)}).

%% Waits for a reader. Only the server is monitored.
give(Chunk) ->
    receive
        {next, Reader, Tag} -> _ = Reader ! {Tag, Chunk}, ok;
        {'DOWN', _, process, _, _} -> exit(normal)
    end.

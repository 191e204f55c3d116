%% Programs that follow tables, for tests: copies that messages are applied to.
%%
%% A table is one of `ats', or `{dats, Name}'.
-module(ats_follow_lib).

-include_lib("stdlib/include/assert.hrl").

-export([followers/0, looked/0, snapshots/1, length_of/1]).
-export([empty/0, applied/2, objects/1, next/3, batch/2, until_equal/4, until_equal/5]).
-export([no_more/1, ended/2]).
-export([writers/1, stop/1, are_whole/1, is_set/1]).

-type table() :: ats:table() | {dats, dats:tab_name()}.
-type copy() :: #{tuple() => pos_integer()}.
%% The number of equal objects of each kind.

%% The processes that follow tables now.
-spec followers() -> [pid()].
followers() ->
    Server = whereis(ats_follow),
    {links, Links} = process_info(Server, links),
    {dictionary, Dictionary} = process_info(Server, dictionary),
    [Supervisor | _] = proplists:get_value('$ancestors', Dictionary),
    Links -- [Supervisor].

%% Returns when the only process that follows a table has looked at it after this call.
-spec looked() -> ok.
looked() ->
    [Pid] = followers(),
    {module, ats_follower} = code:ensure_loaded(ats_follower),
    1 = erlang:trace_pattern({ats_follower, follow, 1}, true, []),
    1 = erlang:trace(Pid, true, [call]),
    %% The follower looks between two of these calls.
    [receive {trace, Pid, call, {ats_follower, follow, _}} -> ok
     after 20000 -> error(not_looked)
     end || _ <- [1, 2]],
    1 = erlang:trace(Pid, false, [call]),
    Delivered = erlang:trace_delivered(Pid),
    receive {trace_delivered, Pid, Delivered} -> flush_traces(Pid) end.

flush_traces(Pid) ->
    receive {trace, Pid, call, _} -> flush_traces(Pid)
    after 0 -> ok
    end.

-spec snapshots(table()) -> non_neg_integer().
snapshots({dats, Name}) -> maps:get(number, dats:info(Name, snapshots));
snapshots(T) -> maps:get(number, ats:info(T, snapshots)).

-spec length_of(pid()) -> non_neg_integer().
length_of(Pid) ->
    {message_queue_len, Length} = process_info(Pid, message_queue_len),
    Length.

%% ----- copies -----

-spec empty() -> copy().
empty() -> #{}.

%% Applies changes, each of which must be possible.
-spec applied([ats:follow_change()], copy()) -> copy().
applied(Changes, Copy) -> lists:foldl(fun apply_one/2, Copy, Changes).

apply_one({insert, Object}, Copy) -> maps:update_with(Object, fun(N) -> N + 1 end, 1, Copy);
apply_one({change, Old, New}, Copy) -> apply_one({insert, New}, apply_one({delete, Old}, Copy));
apply_one({delete, Object}, Copy) ->
    case Copy of
        #{Object := 1} -> maps:remove(Object, Copy);
        #{Object := N} when N > 1 -> Copy#{Object := N - 1}
    end.

-spec objects(copy()) -> [tuple()].
objects(Copy) ->
    lists:sort(lists:append([lists:duplicate(N, Object) || {Object, N} <- maps:to_list(Copy)])).

%% Applies the messages of the next batch.
-spec next(ats:follow_ref(), pos_integer(), copy()) -> copy() | lost.
next(Ref, Seq, Copy) ->
    receive
        {ats_changes, Ref, Seq, {part, Changes}} ->
            ?assertEqual(1000, length(Changes)),
            next(Ref, Seq, applied(Changes, Copy));
        {ats_changes, Ref, Seq, lost} ->
            lost;
        {ats_changes, Ref, Seq, Changes} ->
            ?assert(length(Changes) =< 1000),
            ?assert(Seq =:= 1 orelse Changes =/= []),
            applied(Changes, Copy);
        {ats_changes, Ref, Other, _} = Message when Other =/= Seq ->
            error({unexpected, Seq, Message})
    after 20000 ->
        error({not_told, Seq})
    end.

%% Returns all changes of a batch.
-spec batch(ats:follow_ref(), pos_integer()) -> [ats:follow_change()].
batch(Ref, Seq) ->
    receive
        {ats_changes, Ref, Seq, {part, Changes}} -> Changes ++ batch(Ref, Seq);
        {ats_changes, Ref, Seq, Changes} when is_list(Changes) -> Changes;
        {ats_changes, Ref, _, _} = Message -> error({unexpected, Seq, Message})
    after 20000 ->
        error({not_told, Seq})
    end.

%% Applies batches until the copy equals the table. Returns it and the number of the next batch.
-spec until_equal(ats:follow_ref(), table(), pos_integer(), copy()) -> {copy(), pos_integer()}.
until_equal(Ref, T, Seq, Copy) -> until_equal(Ref, T, Seq, Copy, fun(_) -> ok end).

-spec until_equal(ats:follow_ref(), table(), pos_integer(), copy(), fun((copy()) -> term())) ->
          {copy(), pos_integer()}.
until_equal(Ref, T, Seq, Copy, Check) ->
    Check(Copy),
    case objects(Copy) =:= lists:sort(list(T)) of
        true -> {Copy, Seq};
        false -> until_equal(Ref, T, Seq + 1, next(Ref, Seq, Copy), Check)
    end.

list({dats, Name}) -> dats:tab2list(Name);
list(T) -> ats:tab2list(T).

%% ----- ends -----

-spec no_more(ats:follow_ref()) -> ok.
no_more(Ref) ->
    receive {ats_changes, Ref, _, _} = More -> error({told, More})
    after 250 -> ok
    end.

-spec ended(ats:follow_ref(), term()) -> ok.
ended(Ref, Why) ->
    receive {ats_changes, Ref, ended, Told} -> ?assertEqual(Why, Told)
    after 20000 -> error({not_told, Why})
    end,
    no_more(Ref).

%% ----- writers -----

%% Starts two processes, which make changes until the linked test stops them.
-spec writers(fun((Writer :: atom(), N :: pos_integer()) -> term())) -> [pid()].
writers(Change) -> [spawn_link(fun() -> write(Change, Writer, 1) end) || Writer <- [a, b]].

write(Change, Writer, N) ->
    _ = Change(Writer, N),
    receive {stop, Test} -> Test ! {stopped, self()}
    after 0 -> write(Change, Writer, N + 1)
    end.

-spec stop([pid()]) -> ok.
stop(Writers) ->
    [Writer ! {stop, self()} || Writer <- Writers],
    [receive {stopped, Writer} -> ok end || Writer <- Writers],
    ok.

%% Fails unless the objects that writers insert as a pair are both in a copy, or none.
-spec are_whole(copy()) -> ok.
are_whole(Copy) ->
    [?assertEqual({Pair, true}, {Pair, is_map_key({{Writer, right, K}, N}, Copy)})
     || {{Writer, left, K}, N} = Pair <- maps:keys(Copy)],
    ok.

-spec is_set(ats:table_type()) -> boolean().
is_set(Type) -> Type =:= set orelse Type =:= ordered_set.

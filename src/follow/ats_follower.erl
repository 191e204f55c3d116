%% @private
%% @doc A process that follows a table in memory for a program, the receiver.
%%
%% The process holds a snapshot of the last moment that the receiver was told of. From time to time
%% it makes another one, sends the differences of the two, and releases the older. A receiver that
%% does not keep up is told nothing meanwhile, so its next differences are those of all that time.
%%
%% Two facts hold. All changes that were sent, applied in order to the table of the first moment, or
%% to an empty one, make the table of `last', except after a part or `lost'. And this process alone
%% sends messages until it ends, so a program that has seen its end has all of them.
-module(ats_follower).

-export([start_link/4, init/5, follow/1]).

-record(follower, {
    ref :: ats_follow:ref(),
    parent :: pid(),
    receiver :: pid(),
    monitor :: reference(),
    table :: ats:tid(),
    type :: ats:table_type(),
    %% The objects that the receiver wants.
    spec :: all | ats:compiled_match_spec(),
    keys :: boolean(),
    every :: pos_integer(),
    max_queue :: non_neg_integer(),
    %% The batches that the receiver still wants.
    active :: true | non_neg_integer(),
    %% Objects are told first.
    snapshot :: boolean(),
    %% The number of the last batch.
    seq = 0 :: non_neg_integer(),
    %% The moment that the receiver was told of last; `none' before the objects are told.
    last :: none | ats:snapshot()
}).

%% A batch that is being sent.
-record(batch, {
    changes = [] :: [ats_follow:change()],
    number = 0 :: non_neg_integer(),
    has_parts = false :: boolean()
}).

%% The most changes in one message.
-define(PART, 1000).
%% Milliseconds between two looks at a receiver that does not keep up, within a batch.
-define(LOOK_EVERY, 20).
%% Milliseconds in which another node tells how many messages a receiver has.
-define(REMOTE_MS, 5000).

%% @doc Starts a process, which answers a call with the reference, or the cause why it cannot.
-spec start_link(ats_follow:ref(), gen_server:from(), ats:tid(), map()) -> pid().
start_link(Ref, From, Table, Options) ->
    proc_lib:spawn_link(?MODULE, init, [self(), Ref, From, Table, Options]).

-spec init(pid(), ats_follow:ref(), gen_server:from(), ats:tid(), map()) -> no_return().
init(Parent, Ref, From, Table, Options) ->
    _ = process_flag(trap_exit, true),
    #{to := Receiver, spec := Spec, keys := Keys, every := Every, active := Active,
      max_queue := MaxQueue, snapshot := IsWithSnapshot} = Options,
    Monitor = erlang:monitor(process, Receiver),
    try ats_snapshot:make(Table, []) of
        First ->
            Follower = #follower{ref = Ref, parent = Parent, receiver = Receiver,
                                 monitor = Monitor, table = Table,
                                 type = ats_info:item(type, First), spec = Spec, keys = Keys,
                                 every = Every, max_queue = MaxQueue, active = Active,
                                 snapshot = IsWithSnapshot, last = First},
            gen_server:reply(From, {ok, Ref}),
            case IsWithSnapshot of
                true ->
                    _ = ats_snapshot:release(First),
                    follow(Follower#follower{last = none});
                false ->
                    follow(rest(Every, Follower))
            end
    catch
        error:{ats_error, Cause} ->
            gen_server:reply(From, {error, Cause})
    end.

%% @doc Tells the receiver of changes, again and again.
-spec follow(#follower{}) -> no_return().
follow(#follower{every = Every} = Follower) ->
    Later = case keeps_up(Follower) of
                true -> tell(Follower);
                false -> look(Follower)
            end,
    %% Ended snapshots and native lists of keys go with the garbage.
    true = erlang:garbage_collect(),
    %% A new version of this module goes on from here.
    ?MODULE:follow(rest(Every, Later)).

%%--------------------------------------------------------------------------------------------
%% The receiver
%%--------------------------------------------------------------------------------------------

%% Lets time pass, and obeys other processes meanwhile.
-spec rest(non_neg_integer(), #follower{}) -> #follower{}.
rest(Ms, Follower) ->
    rest_until(erlang:monotonic_time(millisecond) + Ms, Follower).

-spec rest_until(integer(), #follower{}) -> #follower{}.
rest_until(End, #follower{monitor = Monitor, parent = Parent, active = Active} = Follower) ->
    receive
        {more, true} ->
            rest_until(End, Follower#follower{active = true});
        {more, _} when Active =:= true ->
            rest_until(End, Follower);
        {more, Number} ->
            rest_until(End, Follower#follower{active = Active + Number});
        stop ->
            exit(normal);
        {'DOWN', Monitor, process, _, _} ->
            exit(normal);
        {'EXIT', Parent, _} ->
            ended(stopped, Follower);
        _ ->
            rest_until(End, Follower)
    after max(0, End - erlang:monotonic_time(millisecond)) ->
        Follower
    end.

-spec keeps_up(#follower{}) -> boolean().
keeps_up(#follower{active = 0}) ->
    false;
keeps_up(#follower{receiver = Receiver, max_queue = Max}) ->
    case queue_length(Receiver) of
        {message_queue_len, Length} -> Length =< Max;
        _ -> false
    end.

%% A node that does not answer is told of by the monitor, or is late.
-spec queue_length(pid()) -> {message_queue_len, non_neg_integer()} | undefined.
queue_length(Pid) when node(Pid) =:= node() ->
    process_info(Pid, message_queue_len);
queue_length(Pid) ->
    try erpc:call(node(Pid), erlang, process_info, [Pid, message_queue_len], ?REMOTE_MS)
    catch _:_ -> undefined
    end.

-spec send(non_neg_integer() | ended, term(), #follower{}) -> ok.
send(Seq, What, #follower{ref = Ref, receiver = Receiver}) ->
    Receiver ! {ats_changes, Ref, Seq, What},
    ok.

-spec ended(term(), #follower{}) -> no_return().
ended(Why, Follower) ->
    ok = send(ended, Why, Follower),
    exit(normal).

%%--------------------------------------------------------------------------------------------
%% Moments
%%--------------------------------------------------------------------------------------------

%% Looks at a table of which nothing can be told now.
-spec look(#follower{}) -> #follower{}.
look(#follower{table = Table} = Follower) ->
    case ats_info:item(protection, Table) of
        undefined -> ended(deleted, Follower);
        private -> ended(private, Follower);
        _ -> Follower
    end.

%% Makes a snapshot of the present.
-spec moment(#follower{}) -> ats:snapshot().
moment(#follower{table = Table} = Follower) ->
    try ats_snapshot:make(Table, [])
    catch
        error:{ats_error, id} -> ended(deleted, Follower);
        error:{ats_error, access} -> ended(private, Follower)
    end.

%% Tells all that is new.
-spec tell(#follower{}) -> #follower{}.
tell(#follower{last = Last} = Before) ->
    Now = moment(Before),
    try
        case Last of
            none -> objects(Now, Before);
            _ -> differences(Last, Now, Before)
        end
    of
        After ->
            _ = [ats_snapshot:release(Last) || Last =/= none],
            After#follower{last = Now}
    catch
        throw:{lost, Follower} ->
            _ = [ats_snapshot:release(Moment) || Moment <- [Last, Now], Moment =/= none],
            lost(Follower)
    end.

%% Tells that there are no differences, because a moment has ended.
-spec lost(#follower{}) -> #follower{}.
lost(#follower{snapshot = IsWithSnapshot} = Before) ->
    Last = case IsWithSnapshot of
               true -> none;
               false -> moment(Before)
           end,
    Follower = count(Before),
    ok = send(Follower#follower.seq, lost, Follower),
    Follower#follower{last = Last}.

%% Counts a batch.
-spec count(#follower{}) -> #follower{}.
count(#follower{seq = Seq, active = true} = Follower) ->
    Follower#follower{seq = Seq + 1};
count(#follower{seq = Seq, active = Active} = Follower) ->
    Follower#follower{seq = Seq + 1, active = max(0, Active - 1)}.

%% Tells all objects of a moment.
-spec objects(ats:snapshot(), #follower{}) -> #follower{}.
objects(Moment, #follower{spec = Spec, type = Type} = Follower) ->
    Wanted = case Spec of
                 all -> [{'_', [], ['$_']}];
                 _ -> Spec
             end,
    Begin = fun() -> ats_select:chunk(Moment, Wanted, up, ?PART) end,
    KeyPos = ats_info:item(keypos, Moment),
    IsSame = case ats_options:is_ordered(Type) of
                 true -> fun(A, B) -> A == B end;
                 false -> fun(A, B) -> A =:= B end
             end,
    chunks(Begin, {KeyPos, IsSame, none}, [Moment], #batch{}, Follower).

chunks(Next, Keys, Moments, Batch, Before) ->
    Follower = rest(0, Before),
    case native(Next, Moments, Batch, Follower) of
        '$end_of_table' ->
            finish(Batch, Follower);
        {Objects, Continuation} ->
            {Changes, Later} = inserts(Objects, Keys, Follower),
            {More, Told} = add(Changes, Batch, Follower),
            Continue = fun() -> ats_select:continue(Continuation) end,
            chunks(Continue, Later, Moments, More, Told)
    end.

%% The objects of a key of a bag follow each other, also from chunk to chunk.
inserts(Objects, Keys, #follower{keys = false}) ->
    {[{insert, Object} || Object <- Objects], Keys};
inserts(Objects, Keys, _Follower) ->
    Insert = fun(Object, {KeyPos, IsSame, Last}) ->
                     Key = element(KeyPos, Object),
                     case Last of
                         {key, Other} ->
                             {[{insert, Key} || not IsSame(Key, Other)],
                              {KeyPos, IsSame, {key, Key}}};
                         none ->
                             {[{insert, Key}], {KeyPos, IsSame, {key, Key}}}
                     end
             end,
    {Lists, Later} = lists:mapfoldl(Insert, Keys, Objects),
    {lists:append(Lists), Later}.

%% Tells the differences of two moments.
-spec differences(ats:snapshot(), ats:snapshot(), #follower{}) -> #follower{}.
differences(Last, Now, Follower) ->
    Moments = [Last, Now],
    Batch = #batch{},
    Keys = native(fun() -> ats_nif:changed_keys(Last, Now) end, Moments, Batch, Follower),
    slices(Keys, 0, ats_info:item(keypos, Now), Moments, Batch, Follower).

slices(_Keys, done, _KeyPos, _Moments, Batch, Follower) ->
    finish(Batch, Follower);
slices(Keys, From, KeyPos, [Last, Now] = Moments, Batch, Before) ->
    Follower = rest(0, Before),
    Slice = fun() -> ats_nif:differences(Last, Now, Keys, From) end,
    {Pairs, Next} = native(Slice, Moments, Batch, Follower),
    Changes = lists:flatmap(fun(Pair) -> changes(Pair, KeyPos, Follower) end, Pairs),
    {More, Told} = add(Changes, Batch, Follower),
    slices(Keys, Next, KeyPos, Moments, More, Told).

%% Returns the changes that the receiver wants of a key.
-spec changes({[tuple()], [tuple()]}, pos_integer(), #follower{}) -> [ats_follow:change()].
changes({Old, New}, KeyPos, #follower{spec = Spec, keys = Keys, type = Type}) ->
    Wanted = {wanted(Spec, Old), wanted(Spec, New)},
    case ats_snapshot:differences(Type, Wanted) of
        [] ->
            [];
        Differences when not Keys ->
            Differences;
        _ ->
            case Wanted of
                {[], [Object | _]} -> [{insert, element(KeyPos, Object)}];
                {[Object | _], []} -> [{delete, element(KeyPos, Object)}];
                {_, [Object | _]} -> [{change, element(KeyPos, Object)}]
            end
    end.

wanted(all, Objects) -> Objects;
wanted(_Spec, []) -> [];
wanted(Spec, Objects) -> ats_select:run(Objects, Spec).

%% Makes a native call that reads moments. One of them may have ended, because of the memory that
%% was held back for it; the parts that were sent count as a batch then.
native(Call, Moments, Batch, Follower) ->
    try Call()
    catch
        error:{ats_error, _} = Reason:Stack ->
            case lists:any(fun is_ended/1, Moments) of
                true when Batch#batch.has_parts -> throw({lost, count(Follower)});
                true -> throw({lost, Follower});
                false -> erlang:raise(error, Reason, Stack)
            end
    end.

is_ended(Moment) -> is_atom(ats_nif:snapshot_state(Moment)).

%%--------------------------------------------------------------------------------------------
%% Batches
%%--------------------------------------------------------------------------------------------

%% Adds changes to a batch, and sends it as far as it is too long for one message.
-spec add([ats_follow:change()], #batch{}, #follower{}) -> {#batch{}, #follower{}}.
add(New, #batch{changes = Changes, number = Before} = Batch, Follower) ->
    case Before + length(New) of
        Number when Number =< ?PART ->
            {Batch#batch{changes = lists:reverse(New, Changes), number = Number}, Follower};
        Number ->
            parts(lists:reverse(Changes, New), Number, Follower)
    end.

-spec parts([ats_follow:change()], pos_integer(), #follower{}) -> {#batch{}, #follower{}}.
parts(Changes, Number, Follower) when Number =< ?PART ->
    {#batch{changes = lists:reverse(Changes), number = Number, has_parts = true}, Follower};
parts(Changes, Number, Before) ->
    {Part, Rest} = lists:split(?PART, Changes),
    Follower = wait(Before),
    ok = send(Follower#follower.seq + 1, {part, Part}, Follower),
    parts(Rest, Number - ?PART, Follower).

%% Waits for a receiver that does not keep up, before the next part of a batch.
-spec wait(#follower{}) -> #follower{}.
wait(#follower{receiver = Receiver, max_queue = Max} = Follower) ->
    case queue_length(Receiver) of
        {message_queue_len, Length} when Length =< Max -> Follower;
        _ -> wait(rest(?LOOK_EVERY, Follower))
    end.

%% Sends the rest of a batch. One of differences has some.
-spec finish(#batch{}, #follower{}) -> #follower{}.
finish(#batch{changes = [], has_parts = false}, #follower{last = Last} = Follower)
  when Last =/= none ->
    Follower;
finish(#batch{changes = Changes}, Before) ->
    Follower = count(Before),
    ok = send(Follower#follower.seq, lists:reverse(Changes), Follower),
    Follower.

%% @private
%% @doc A process that follows a table for a program, the receiver.
%%
%% The process holds a snapshot of the last moment that the receiver was told of. From time to time
%% it looks if the table has changed since. If so, it makes another one, sends the differences of
%% the two, and releases the older. A receiver that does not keep up is told nothing meanwhile, so
%% its next differences are those of all that time. A receiver that wants many changes at once is
%% told nothing until there are as many: they wait in an {@link ats_follow_pending}.
%%
%% Two facts hold. All changes that were sent, applied in order to the table of the first moment, or
%% to an empty one, make the table of `last', except after a part or `lost', and but for the changes
%% that wait. And this process alone sends messages until it ends, so a program that has seen its
%% end has all of them.
%%
%% A module for each kind of tables makes the moments and finds their differences. Those of a moment
%% and the next one also tell the module something about the next one, which it gets back with it.
-module(ats_follower).

-export([start_link/5, init/6, follow/1]).

-callback begin_moment(ats:tid()) -> ats:snapshot().
-callback kind(Moment :: ats:snapshot()) -> {ats:table_type(), KeyPos :: pos_integer()}.
-callback is_current(ats:tid(), Moment :: ats:snapshot(), Known :: term()) -> boolean().
-callback changed(Last :: ats:snapshot(), Now :: ats:snapshot(), OfLast :: term()) ->
    Place :: term().
-callback differences(Last :: ats:snapshot(), Now :: ats:snapshot(), Place :: term()) ->
    {[{Old :: [tuple()], New :: [tuple()]}], {more, Next :: term()} | {done, OfNow :: term()}}.
-callback unreadable(ats:tid()) -> none | (Why :: term()).
-callback refusal(ats_errors:cause(), ats:tid()) -> none | {ended, Why :: term()}.

-record(follower, {
    ref :: ats_follow:ref(),
    parent :: pid(),
    receiver :: pid(),
    monitor :: reference(),
    kind :: module(),
    table :: ats:tid(),
    type :: ats:table_type(),
    key_pos :: pos_integer(),
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
    %% The changes that wait; `none' if none may.
    pending :: none | ats_follow_pending:pending(),
    %% The moment up to which the receiver was told, or changes wait; `none' before the objects are
    %% told.
    last :: none | ats:snapshot(),
    %% The knowledge of the module of the kind about it.
    known = none :: term()
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
-spec start_link(ats_follow:ref(), gen_server:from(), module(), ats:tid(), map()) -> pid().
start_link(Ref, From, Kind, Table, Options) ->
    proc_lib:spawn_link(?MODULE, init, [self(), Ref, From, Kind, Table, Options]).

-spec init(pid(), ats_follow:ref(), gen_server:from(), module(), ats:tid(), map()) -> no_return().
init(Parent, Ref, From, Kind, Table, Options) ->
    _ = process_flag(trap_exit, true),
    #{to := Receiver, spec := Spec, keys := Keys, every := Every, active := Active,
      max_queue := MaxQueue, snapshot := IsWithSnapshot} = Options,
    Monitor = erlang:monitor(process, Receiver),
    try
        First = Kind:begin_moment(Table),
        {First, Kind:kind(First)}
    of
        {First, {Type, KeyPos}} ->
            Follower = #follower{ref = Ref, parent = Parent, receiver = Receiver,
                                 monitor = Monitor, kind = Kind, table = Table, type = Type,
                                 key_pos = KeyPos, spec = Spec, keys = Keys, every = Every,
                                 max_queue = MaxQueue, active = Active,
                                 snapshot = IsWithSnapshot, last = First,
                                 pending = ats_follow_pending:new(Options, Type)},
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
    _ = [erlang:garbage_collect() || Later#follower.last =/= Follower#follower.last],
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
look(#follower{kind = Kind, table = Table} = Follower) ->
    case Kind:unreadable(Table) of
        none -> Follower;
        Why -> ended(Why, Follower)
    end.

%% Makes a snapshot of the present.
-spec moment(#follower{}) -> ats:snapshot().
moment(#follower{kind = Kind, table = Table} = Follower) ->
    try Kind:begin_moment(Table)
    catch
        error:{ats_error, Cause} = Reason:Stack -> refused(Cause, Reason, Stack, Follower)
    end.

%% Ends because the table cannot be read, or fails.
-spec refused(ats_errors:cause(), term(), list(), #follower{}) -> no_return().
refused(Cause, Reason, Stack, #follower{kind = Kind, table = Table} = Follower) ->
    case Kind:refusal(Cause, Table) of
        {ended, Why} -> ended(Why, Follower);
        none -> erlang:raise(error, Reason, Stack)
    end.

%% Tells all that is new.
-spec tell(#follower{}) -> #follower{}.
tell(#follower{last = Last} = Follower) ->
    case Last =/= none andalso is_current(Follower) of
        true -> finish(#batch{}, Follower);
        false -> tell(moment(Follower), Follower)
    end.

%% Nothing is known of a moment that has ended.
-spec is_current(#follower{}) -> boolean().
is_current(#follower{kind = Kind, table = Table, last = Last, known = Known} = Follower) ->
    try Kind:is_current(Table, Last, Known)
    catch
        error:{ats_error, Cause} = Reason:Stack ->
            not is_ended(Last) andalso refused(Cause, Reason, Stack, Follower)
    end.

-spec tell(ats:snapshot(), #follower{}) -> #follower{}.
tell(Now, #follower{last = Last} = Before) ->
    try
        case Last of
            none -> {objects(Now, Before), none};
            _ -> differences(Last, Now, Before)
        end
    of
        {After, Known} ->
            _ = [ats_snapshot:release(Last) || Last =/= none],
            After#follower{last = Now, known = Known}
    catch
        throw:{lost, Follower} ->
            _ = [ats_snapshot:release(Moment) || Moment <- [Last, Now], Moment =/= none],
            lost(Follower)
    end.

%% Tells that there are no differences, because a moment has ended.
-spec lost(#follower{}) -> #follower{}.
lost(#follower{snapshot = IsWithSnapshot, pending = Pending} = Before) ->
    Last = case IsWithSnapshot of
               true -> none;
               false -> moment(Before)
           end,
    Follower = count(Before),
    ok = send(Follower#follower.seq, lost, Follower),
    None = case Pending of
               none -> none;
               _ -> ats_follow_pending:clear(Pending)
           end,
    Follower#follower{last = Last, known = none, pending = None}.

%% Counts a batch.
-spec count(#follower{}) -> #follower{}.
count(#follower{seq = Seq, active = true} = Follower) ->
    Follower#follower{seq = Seq + 1};
count(#follower{seq = Seq, active = Active} = Follower) ->
    Follower#follower{seq = Seq + 1, active = max(0, Active - 1)}.

%% Tells all objects of a moment.
-spec objects(ats:snapshot(), #follower{}) -> #follower{}.
objects(Moment, #follower{spec = Spec, type = Type, key_pos = KeyPos} = Follower) ->
    Wanted = case Spec of
                 all -> [{'_', [], ['$_']}];
                 _ -> Spec
             end,
    Begin = fun() -> ats_select:chunk(Moment, Wanted, up, ?PART) end,
    IsSame = case ats_options:is_ordered(Type) of
                 true -> fun(A, B) -> A == B end;
                 false -> fun(A, B) -> A =:= B end
             end,
    Inserts = fun(Objects, Keys) -> inserts(Objects, Keys, Follower) end,
    {Batch, Told} = chunks(Begin, Inserts, {KeyPos, IsSame, none}, [Moment], #batch{}, Follower),
    send_last(Batch, Told).

%% Adds what a function makes of all that a query finds.
chunks(Next, Make, Acc, Moments, Batch, Before) ->
    Follower = rest(0, Before),
    case native(Next, Moments, Batch, Follower) of
        '$end_of_table' ->
            {Batch, Follower};
        {Found, Continuation} ->
            {Changes, Later} = Make(Found, Acc),
            {More, Told} = add(Changes, Batch, Follower),
            Continue = fun() -> ats_select:continue(Continuation) end,
            chunks(Continue, Make, Later, Moments, More, Told)
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

%% Tells the differences of two moments. Also returns the knowledge about the later one.
-spec differences(ats:snapshot(), ats:snapshot(), #follower{}) -> {#follower{}, Known :: term()}.
differences(Last, Now, #follower{kind = Kind, known = Known} = Follower) ->
    Moments = [Last, Now],
    Batch = #batch{},
    Changed = fun() -> Kind:changed(Last, Now, Known) end,
    Place = native(Changed, Moments, Batch, Follower),
    slices(Place, Moments, Batch, Follower).

slices(Place, [Last, Now] = Moments, Batch, #follower{kind = Kind} = Before) ->
    Follower = rest(0, Before),
    Slice = fun() -> Kind:differences(Last, Now, Place) end,
    {Pairs, Next} = native(Slice, Moments, Batch, Follower),
    {Nets, Joined} = join(lists:flatmap(fun(Pair) -> net(Pair, Follower) end, Pairs), Follower),
    {More, Told} = add(told(Nets, Joined), Batch, Joined),
    case Next of
        {more, Later} -> slices(Later, Moments, More, Told);
        {done, Known} -> {finish(More, Told), Known}
    end.

%% Returns the difference of the objects of a key that the receiver wants, if there are any.
-spec net({[tuple()], [tuple()]}, #follower{}) -> [ats_follow_pending:net()].
net({Old, New}, #follower{spec = Spec, key_pos = KeyPos}) ->
    case {wanted(Spec, Old), wanted(Spec, New)} of
        {[], []} -> [];
        {OldWanted, NewWanted} -> [ats_follow_pending:net(OldWanted, NewWanted, KeyPos)]
    end.

wanted(all, Objects) -> Objects;
wanted(_Spec, []) -> [];
wanted(Spec, Objects) -> ats_select:run(Objects, Spec).

-spec told([ats_follow_pending:net()], #follower{}) -> [ats_follow:change()].
told(Nets, #follower{keys = Keys, type = Type}) ->
    lists:flatmap(fun(Net) -> ats_follow_pending:told(Net, Keys, Type) end, Nets).

%% Lets differences wait. Returns those that are told at once.
join(Nets, #follower{pending = none} = Follower) ->
    {Nets, Follower};
join(Nets, #follower{pending = Before} = Follower) ->
    {Told, Pending} = ats_follow_pending:join(Nets, Before),
    {Told, Follower#follower{pending = Pending}}.

%% Makes a native call that reads moments. One of them may have ended, because of the memory that
%% was held back for it. The parts that were sent have the number of a batch then, but `active'
%% counts them with the `lost' that follows.
native(Call, Moments, Batch, #follower{seq = Seq} = Follower) ->
    try Call()
    catch
        error:{ats_error, Cause} = Reason:Stack ->
            case lists:any(fun is_ended/1, Moments) of
                true when Batch#batch.has_parts -> throw({lost, Follower#follower{seq = Seq + 1}});
                true -> throw({lost, Follower});
                false -> refused(Cause, Reason, Stack, Follower)
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

%% Sends the rest of a batch of differences, if there are any and they need not wait.
-spec finish(#batch{}, #follower{}) -> #follower{}.
finish(#batch{changes = [], has_parts = false}, #follower{pending = none} = Follower) ->
    Follower;
finish(Batch, #follower{pending = none} = Follower) ->
    send_last(Batch, Follower);
finish(Batch, #follower{pending = Pending} = Follower) ->
    case ats_follow_pending:is_ready(Pending) of
        true ->
            Begin = fun() -> ats_follow_pending:begin_reading(Pending) end,
            Make = fun(Nets, none) -> {told(Nets, Follower), none} end,
            {All, Told} = chunks(Begin, Make, none, [], Batch, Follower),
            send_last(All, Told#follower{pending = ats_follow_pending:clear(Pending)});
        false ->
            Follower#follower{pending = ats_follow_pending:wait(Pending)}
    end.

-spec send_last(#batch{}, #follower{}) -> #follower{}.
send_last(#batch{changes = Changes}, Before) ->
    Follower = count(Before),
    ok = send(Follower#follower.seq, lists:reverse(Changes), Follower),
    Follower.

%% @private
%% @doc Changes that a follower has found and does not tell yet, because they are fewer than its
%% receiver wants at once; see {@link ats_follower}.
%%
%% They are in a table by their keys. What is found of a key is joined to what waits of it, so a key
%% that changes back does not wait any more, and the follower may go on to later moments.
%%
%% A key is found once between two moments. So what was found of other keys since the last moment
%% is final, and as soon as that is enough alone, further changes are told as they are found. At
%% most about twice the number of changes that are wanted at once wait.
-module(ats_follow_pending).

-export([new/2, net/3, told/3, join/2, wait/1, is_ready/1, begin_reading/1, clear/1]).

-export_type([net/0]).

-type net() :: {Key :: term(), Gone :: [tuple()], Come :: [tuple()],
                HadObjects :: boolean(), HasObjects :: boolean()}.
%% The difference of the objects that a key has at two moments.

-record(pending, {
    table :: ats:tid(),
    type :: ats:table_type(),
    keys :: boolean(),
    at_least :: pos_integer(),
    within :: infinity | pos_integer(),
    %% The number of changes in the table, and of those that were found since the last moment.
    number = 0 :: non_neg_integer(),
    found = 0 :: non_neg_integer(),
    %% The time in milliseconds since when changes wait.
    since = none :: none | integer()
}).

-opaque pending() :: #pending{}.
-export_type([pending/0]).

-define(PART, 1000).

%% @doc Returns the place for the changes of a follower with these options; `none' if each change is
%% told at the next moment.
-spec new(map(), ats:table_type()) -> none | pending().
new(#{at_least := 1}, _Type) ->
    none;
new(#{at_least := AtLeast, within := Within, keys := Keys}, Type) ->
    Set = case ats_options:is_ordered(Type) of
              true -> ordered_set;
              false -> set
          end,
    #pending{table = ats_options:create(ats_follow, [Set, private]), type = Type, keys = Keys,
             at_least = AtLeast, within = Within}.

%% @doc Returns the difference of the objects of a key. There are some at one moment at least.
-spec net(Old :: [tuple()], New :: [tuple()], KeyPos :: pos_integer()) -> net().
net(Old, New, KeyPos) ->
    [Object | _] = case New of
                       [] -> Old;
                       _ -> New
                   end,
    {element(KeyPos, Object), Old -- New, New -- Old, Old =/= [], New =/= []}.

%% @doc Returns the changes that a receiver is told of a key.
-spec told(net(), Keys :: boolean(), ats:table_type()) -> [ats_follow:change()].
told({_Key, [], [], _, _}, _Keys, _Type) -> [];
told({_Key, Gone, Come, _, _}, false, Type) -> ats_snapshot:differences(Type, {Gone, Come});
told({Key, _, _, false, true}, true, _Type) -> [{insert, Key}];
told({Key, _, _, true, false}, true, _Type) -> [{delete, Key}];
told({Key, _, _, true, true}, true, _Type) -> [{change, Key}].

%% @doc Joins what was found of keys to what waits. Returns the differences that are told at once.
-spec join([net()], pending()) -> {[net()], pending()}.
join(Nets, #pending{found = Found, at_least = AtLeast} = Pending) when Found >= AtLeast ->
    lists:mapfoldl(fun take/2, Pending, Nets);
join(Nets, Pending) ->
    {[], lists:foldl(fun put/2, Pending, Nets)}.

%% Joins a difference to the one that waits, which does not wait any more.
-spec take(net(), pending()) -> {net(), pending()}.
take({Key, Gone, Come, _Had, Has} = Net, #pending{table = Table, number = Number} = Pending) ->
    case ats_nif:take(Table, Key) of
        [] ->
            {Net, Pending};
        [{_, GoneBefore, ComeBefore, Had, _} = Before] ->
            AllGone = GoneBefore ++ Gone,
            AllCome = ComeBefore ++ Come,
            Joined = {Key, AllGone -- AllCome, AllCome -- AllGone, Had, Has},
            {Joined, Pending#pending{number = Number - count(Before, Pending)}}
    end.

-spec put(net(), pending()) -> pending().
put(Net, Before) ->
    case take(Net, Before) of
        {{_Key, [], [], _, _}, Pending} ->
            Pending;
        {Joined, #pending{table = Table, number = Number, found = Found} = Pending} ->
            true = ats_nif:insert(Table, Joined),
            Count = count(Joined, Pending),
            Pending#pending{number = Number + Count, found = Found + Count}
    end.

-spec count(net(), pending()) -> pos_integer().
count(Net, #pending{keys = Keys, type = Type}) -> length(told(Net, Keys, Type)).

%% @doc Lets the changes wait for those up to a later moment.
-spec wait(pending()) -> pending().
wait(#pending{number = 0} = Pending) ->
    Pending#pending{found = 0, since = none};
wait(#pending{since = none} = Pending) ->
    Pending#pending{found = 0, since = erlang:monotonic_time(millisecond)};
wait(Pending) ->
    Pending#pending{found = 0}.

%% @doc Returns `true' if a batch is to be told: there are enough changes, or some have waited as
%% long as they may.
-spec is_ready(pending()) -> boolean().
is_ready(#pending{found = Found, number = Number, at_least = AtLeast})
  when Found >= AtLeast; Number >= AtLeast ->
    true;
is_ready(#pending{within = infinity}) ->
    false;
is_ready(#pending{since = none}) ->
    false;
is_ready(#pending{within = Within, since = Since}) ->
    erlang:monotonic_time(millisecond) - Since >= Within.

%% @doc Begins to read the differences that wait, in chunks.
-spec begin_reading(pending()) -> '$end_of_table' | {[net()], term()}.
begin_reading(#pending{table = Table}) ->
    ats_select:chunk(Table, [{'_', [], ['$_']}], up, ?PART).

%% @doc Forgets all changes.
-spec clear(pending()) -> pending().
clear(#pending{table = Table} = Pending) ->
    true = ats_nif:delete_all_objects(Table),
    Pending#pending{number = 0, found = 0, since = none}.

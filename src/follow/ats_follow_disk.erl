%% @private
%% @doc The moments of a table on disk, for a process that follows it; see {@link ats_follower}.
%%
%% A moment has a deadline: a time before which none of its objects expires, so
%% that two moments before it differ by writes only. It is 0 for the first moment, and then follows
%% from the differences. For a table whose objects do not expire it stays 0, and is not looked at.
-module(ats_follow_disk).

-behaviour(ats_follower).

-export([find/1, unreadable/1, begin_moment/1, kind/1, is_current/3, changed/3, differences/3]).
-export([refusal/2]).

-type deadline() :: none | non_neg_integer().
-type place() :: {start | binary(), OfLast :: non_neg_integer(), OfNow :: none | non_neg_integer()}.

%% @doc Returns the identifier of an open table, which is no snapshot.
-spec find(dats:tab_name()) -> ats:tid().
find(Name) -> ats_disk_tables:find_table(Name).

%% @doc Returns the reason why the table cannot be read now; `none' if it can.
-spec unreadable(ats:tid()) -> closed | none.
unreadable(Table) ->
    case ats_disk_tables:name(Table) of
        {ok, _Name} -> none;
        none -> closed
    end.

%% @doc Returns the reason for the receiver why the table cannot be read, if a cause is one.
-spec refusal(ats_errors:cause(), ats:tid()) -> {ended, closed | {error, dats:reason()}} | none.
refusal(Cause, _Table) when Cause =:= id; Cause =:= type ->
    {ended, closed};
refusal(Cause, Table) ->
    case ats_disk_tables:name(Table) of
        none ->
            {ended, closed};
        {ok, Name} ->
            case ats_disk_failure:of_cause(Cause, ats_disk_tables:directory(Name)) of
                refused -> none;
                {error, _} = Failed -> {ended, Failed}
            end
    end.

-spec begin_moment(ats:tid()) -> dats:snapshot().
begin_moment(Table) -> ats_nif:hold_disk_snapshot(Table, default).

-spec kind(dats:snapshot()) -> {ats:table_type(), KeyPos :: pos_integer()}.
kind(Moment) ->
    {Type, KeyPos, _Fixed} = ats_nif:disk_kind(Moment),
    {Type, KeyPos}.

%% @doc Returns `true' if the table has not changed since a moment. O(1).
-spec is_current(ats:tid(), dats:snapshot(), deadline()) -> boolean().
is_current(_Table, Moment, Deadline) -> ats_nif:disk_is_current(Moment, number(Deadline)).

%% @doc Begins to look for the keys that differ.
-spec changed(dats:snapshot(), dats:snapshot(), deadline()) -> place().
changed(_Last, _Now, Deadline) -> {start, number(Deadline), none}.

%% @doc Returns the objects of some of the keys that differ.
-spec differences(dats:snapshot(), dats:snapshot(), place()) ->
          {[{[tuple()], [tuple()]}], {more, place()} | {done, deadline()}}.
differences(Last, Now, {From, OfLast, Before}) ->
    {Tag, Pairs, Next, Found} = ats_disk_snapshot:differences(Last, Now, From, OfLast),
    %% An atom is greater than all numbers.
    OfNow = min(Before, Found),
    case Tag of
        done -> {Pairs, {done, OfNow}};
        more -> {Pairs, {more, {Next, OfLast, OfNow}}}
    end.

-spec number(deadline()) -> non_neg_integer().
number(none) -> 0;
number(Deadline) -> Deadline.

%% @private
%% @doc The moments of a table in memory, for a process that follows it; see {@link ats_follower}.
-module(ats_follow_memory).

-behaviour(ats_follower).

-export([find/1, unreadable/1, begin_moment/1, kind/1, is_current/3, changed/3, differences/3]).
-export([refusal/2]).

%% @doc Returns the identifier of a table.
-spec find(ats:table()) -> ats:tid().
find(Table) ->
    case ats_info:item(id, Table) of
        undefined -> erlang:error({ats_error, id});
        Id -> Id
    end.

%% @doc Returns the reason why this process cannot read the table now; `none' if it can.
-spec unreadable(ats:tid()) -> deleted | private | none.
unreadable(Table) ->
    case ats_info:item(protection, Table) of
        undefined -> deleted;
        private -> private;
        _ -> none
    end.

%% @doc Returns the reason for the receiver why the table cannot be read, if a cause is one.
-spec refusal(ats_errors:cause(), ats:tid()) -> {ended, deleted | private} | none.
refusal(id, _Table) -> {ended, deleted};
refusal(access, _Table) -> {ended, private};
refusal(_Cause, _Table) -> none.

-spec begin_moment(ats:tid()) -> ats:snapshot().
begin_moment(Table) -> ats_snapshot:make(Table, []).

-spec kind(ats:snapshot()) -> {ats:table_type(), KeyPos :: pos_integer()}.
kind(Moment) -> {ats_info:item(type, Moment), ats_info:item(keypos, Moment)}.

%% @doc Returns `true' if the table has not changed since a moment, as far as that is known.
-spec is_current(ats:tid(), ats:snapshot(), none) -> boolean().
is_current(Table, Moment, none) -> not ats_nif:may_have_changed(Table, Moment).

%% @doc Finds the keys that differ.
-spec changed(ats:snapshot(), ats:snapshot(), none) -> {Keys :: reference(), From :: 0}.
changed(Last, Now, none) -> {ats_nif:changed_keys(Last, Now), 0}.

%% @doc Returns the objects of some of the keys that differ.
-spec differences(ats:snapshot(), ats:snapshot(), {reference(), non_neg_integer()}) ->
          {[{[tuple()], [tuple()]}], {more, {reference(), non_neg_integer()}} | {done, none}}.
differences(Last, Now, {Keys, From}) ->
    case ats_nif:differences(Last, Now, Keys, From) of
        {Pairs, done} -> {Pairs, {done, none}};
        {Pairs, Next} -> {Pairs, {more, {Keys, Next}}}
    end.

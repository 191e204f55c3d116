%% @private
%% @doc Taking many objects out of a table: those that match, or all.
-module(ats_take).

-export([select_take/2, take_all/1]).

-define(OBJECTS, [{'_', [], ['$_']}]).
%% The number of turns that are given to others before time is. Writers that are on another
%% scheduler finish within microseconds.
-define(YIELDS, 20).

%% @doc Takes the objects that match.
-spec select_take(ats:table(), ats:match_spec()) -> [tuple()].
select_take(Table, MatchSpec) ->
    ats_select:take(Table, MatchSpec).

%% @doc Takes all objects at one moment.
-spec take_all(ats:table()) -> [tuple()].
take_all(Table) ->
    Taken = ats_nif:take_all_start(Table),
    More = fun(_, Compiled, Place, SoFar) ->
                   ats_nif:take_all_more(Taken, Compiled, Place, SoFar)
           end,
    ats_collect:list(More, unknown, await_rest(Taken, ?YIELDS)).

%% The first objects, as soon as no process writes to them any more.
-spec await_rest(ats_nif:taken(), non_neg_integer()) -> ats_nif:taken_slice().
await_rest(Taken, Yields) ->
    case ats_nif:take_all_more(Taken, ?OBJECTS, start, []) of
        wait when Yields > 0 ->
            erlang:yield(),
            await_rest(Taken, Yields - 1);
        wait ->
            receive after 1 -> await_rest(Taken, 0) end;
        Slice ->
            Slice
    end.

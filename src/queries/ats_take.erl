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
    Taken = await(fun() -> ats_nif:take_all_start(Table) end, ?YIELDS),
    More = fun(_, Compiled, Place, SoFar) ->
                   ats_nif:take_all_more(Taken, Compiled, Place, SoFar)
           end,
    First = fun() -> ats_nif:take_all_more(Taken, ?OBJECTS, start, []) end,
    ats_collect:list(More, unknown, await(First, ?YIELDS)).

%% Returns the result of a call as soon as no process writes the objects to be taken: first it waits
%% for lists, before anything is taken, then for single objects.
-spec await(fun(() -> wait | Result), non_neg_integer()) -> Result.
await(Call, Yields) ->
    case Call() of
        wait when Yields > 0 ->
            erlang:yield(),
            await(Call, Yields - 1);
        wait ->
            receive after 1 -> await(Call, 0) end;
        Result ->
            Result
    end.

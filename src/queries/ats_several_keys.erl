%% @private
%% @doc Looks up and removes the objects of several keys. A native call does as many keys as it may
%% without a break, and returns those that are left. The caller finds a named table, so that the
%% calls stay with it if it is renamed meanwhile.
-module(ats_several_keys).

-export([lookup/2, take/2, delete/2]).

-spec lookup(ats:table(), [term()]) -> [[tuple()]].
lookup(Table, Keys) ->
    lists_of(fun ats_nif:lookup_many/2, Table, list(Keys, fun ats_nif:lookup_many/2, Table)).

-spec take(ats:table(), [term()]) -> [[tuple()]].
take(Table, Keys) ->
    lists_of(fun ats_nif:take_many/2, Table, list(Keys, fun ats_nif:take_many/2, Table)).

-spec delete(ats:table(), [term()]) -> true.
delete(Table, Keys) ->
    delete_each(Table, list(Keys, fun ats_nif:delete_many/2, Table)).

%% Returns the keys. Fails before anything is removed if they are no list, unless the table is to
%% blame.
-spec list(term(), fun((ats:table(), []) -> term()), ats:table()) -> [term()].
list(Keys, Native, Table) ->
    try length(Keys) of
        _ -> Keys
    catch
        error:badarg ->
            _ = Native(Table, []),
            erlang:error({ats_error, none})
    end.

-spec lists_of(Native, ats:table(), [term()]) -> [[tuple()]]
              when Native :: fun((ats:table(), [term()]) ->
                                     nonempty_improper_list([term()], [[tuple()]])).
lists_of(Native, Table, Keys) ->
    case Native(Table, Keys) of
        [[] | Lists] -> Lists;
        [Left | Lists] -> Lists ++ lists_of(Native, Table, Left)
    end.

-spec delete_each(ats:table(), [term()]) -> true.
delete_each(Table, Keys) ->
    case ats_nif:delete_many(Table, Keys) of
        [] -> true;
        Left -> delete_each(Table, Left)
    end.

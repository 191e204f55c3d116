%% @private
%% @doc Changes of a table on disk that are not there yet.
%%
%% A table in memory has the last change of each key, and the result of a lookup meanwhile, if it is
%% known. Whoever reads anything but a key waits until nothing is pending. A change stays here until
%% it is on disk, so a reader that asks here first never sees a key as it was before. The table is
%% one of `ets': entries live for some milliseconds, and `ets' copies them without conversion.
-module(ats_mnesia_pending).

-export([new/1, delete/1, add/4, remove/4, find/2, is_empty/1, memory/1]).

-export_type([pending/0, change_number/0]).

-type change_number() :: integer().
%% Numbers grow with time.
-opaque pending() :: {set | bag, ets:table()}.

%% @doc Makes the table, of the type of the table on disk: keys are the same by the same rules.
-spec new(set | ordered_set | bag) -> pending().
new(ordered_set) -> {set, ets:new(?MODULE, [ordered_set, public])};
new(set) -> {set, ets:new(?MODULE, [set, public])};
new(bag) -> {bag, ets:new(?MODULE, [set, public])}.

-spec delete(pending()) -> ok.
delete({_, Table}) ->
    true = ets:delete(Table),
    ok.

%% @doc Notes a change of a key.
-spec add(pending(), change_number(), Function :: atom(), Argument :: term()) -> ok.
add({Kind, Table}, Number, Function, Argument) ->
    true = ets:insert(Table, entry(Kind, Number, Function, Argument)),
    ok.

%% @doc Forgets a change that is on disk, unless the key was changed again.
-spec remove(pending(), change_number(), Function :: atom(), Argument :: term()) -> ok.
remove({Kind, Table}, Number, Function, Argument) ->
    true = ets:delete_object(Table, entry(Kind, Number, Function, Argument)),
    ok.

%% @doc Returns the objects of a key if a change of it is pending.
-spec find(pending(), Key :: term()) -> none | unknown | [tuple()].
find({_, Table}, Key) ->
    case ets:lookup(Table, Key) of
        [{_, _, Objects}] -> Objects;
        [] -> none
    end.

-spec is_empty(pending()) -> boolean().
is_empty({_, Table}) ->
    ets:first(Table) =:= '$end_of_table'.

%% @doc Returns the memory that changes take, in words.
-spec memory(pending()) -> non_neg_integer().
memory({_, Table}) ->
    ets:info(Table, memory).

entry(Kind, Number, Function, Argument) ->
    {find_key(Function, Argument), Number, find_objects(Kind, Function, Argument)}.

%% Tables of Mnesia have their keys there.
find_key(delete, Key) -> Key;
find_key(_InsertOrDeleteObject, Object) -> element(2, Object).

find_objects(_Kind, delete, _Key) -> [];
find_objects(set, insert, Object) -> [Object];
find_objects(_Kind, _Function, _Object) -> unknown.

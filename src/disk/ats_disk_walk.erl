%% @private
%% @doc Going through all objects of a table on disk, as they are at one moment.
%%
%% The native library gives the bytes of the objects of many keys at once, of which the caller makes
%% terms: so the objects that are in memory are those of one chunk.
-module(ats_disk_walk).

-export([fold/4, fold_chunks/4]).

%% @doc Folds a function over all objects. Those of one key come oldest first on the way up.
-spec fold(fun((Object :: tuple(), Acc) -> Acc), Acc, ats:tid(), up | down) -> Acc.
fold(Function, Acc, Table, Way) ->
    fold_chunks(fun(Objects, Before) -> lists:foldl(Function, Before, Objects) end, Acc, Table, Way).

%% @doc Folds a function over lists of objects, some of which may be empty.
-spec fold_chunks(fun(([tuple()], Acc) -> Acc), Acc, ats:tid(), up | down) -> Acc.
fold_chunks(Function, Acc, Table, Way) ->
    ats_disk_snapshot:walk(
      Table, fun(Snapshot) -> chunks(Function, Acc, Snapshot, Way, start) end).

-spec chunks(fun(([tuple()], Acc) -> Acc), Acc, ats:tid(), up | down,
             start | done | (Key :: binary())) -> Acc.
chunks(_Function, Acc, _Snapshot, _Way, done) ->
    Acc;
chunks(Function, Acc, Snapshot, Way, Last) ->
    Read = fun() -> ats_nif:disk_chunk(Snapshot, Way, Last) end,
    {Bytes, Next} = ats_disk_snapshot:read(Snapshot, Read),
    chunks(Function, Function(objects(Bytes), Acc), Snapshot, Way, Next).

-spec objects(binary()) -> [tuple()].
objects(Bytes) ->
    try binary_to_term(Bytes)
    catch error:badarg -> erlang:error({ats_error, damaged})
    end.

%% @private
%% @doc Functions of `dets' that take a table of `ets', for modules that have tables of `ats' there.
-module(ats_try_dets).

-export([to_ets/2, from_ets/2]).

%% @doc Like `dets:to_ets/2'.
-spec to_ets(Name :: dets:tab_name(), ats:table()) -> ats:table().
to_ets(Name, Table) ->
    true = ats:from_dets(Table, Name),
    Table.

%% @doc Like `dets:from_ets/2'.
-spec from_ets(Name :: dets:tab_name(), ats:table()) -> ok.
from_ets(Name, Table) ->
    _ = ats:to_dets(Table, Name),
    ok.

%% @private
%% @doc Checkpoints: a moment of an open table, as a table in another directory.
-module(ats_disk_checkpoint).

-export([make/3]).

%% @doc Makes a checkpoint in a directory. The options may name the directory of an earlier one.
-spec make(dats:tab_name(), To :: term(), Options :: term()) -> ok | {error, term()}.
make(Name, To, Options) ->
    Table = ats_disk_tables:find_table(Name),
    Source = ats_disk_tables:directory(Name),
    Earlier = earlier(Options),
    case ats_disk_info:item(access, Name) of
        read -> {error, {access_mode, Source}};
        read_write -> make(Table, Source, To, Earlier)
    end.

-spec make(ats:tid(), file:filename_all(), To :: term(), Earlier :: [term()]) ->
          ok | {error, term()}.
make(Table, Source, To, Earlier) ->
    Sides = [{source, Source}, {target, To} | [{earlier, Directory} || Directory <- Earlier]],
    Call = fun(Natives) -> answer(Sides, call(Table, Natives)) end,
    case ats_disk_closed:call_with([To | Earlier], Call) of
        badarg -> erlang:error({ats_error, none});
        Answer -> Answer
    end.

-spec call(ats:tid(), [binary()]) -> ok | tuple().
call(Table, [To]) -> ats_nif:disk_checkpoint(Table, To, default);
call(Table, [To, Earlier]) -> ats_nif:disk_checkpoint(Table, To, Earlier).

-spec answer([{source | target | earlier, term()}], ok | tuple()) -> ok | {error, term()}.
answer(_Sides, ok) ->
    ok;
answer(Sides, {error, Side, Cause, Text}) ->
    {Side, Directory} = lists:keyfind(Side, 1, Sides),
    ats_disk_failure:of_call({error, Cause, Text}, Directory).

%% Returns the directory of the earlier checkpoint, if the options name one.
-spec earlier(term()) -> [term()].
earlier([]) -> [];
earlier([{since, Directory}]) -> [Directory];
earlier(_) -> erlang:error({ats_error, none}).

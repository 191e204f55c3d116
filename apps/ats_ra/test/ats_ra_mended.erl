%% The library `ra' as Debian has it, with two faults mended that made consistent reads of 2.2.0
%% stale. Later releases have both (2.4.6, pull requests 340 and 342 of rabbitmq/ra):
%%
%% - A server that becomes leader may answer before the first entry of its term is committed, so
%%   without the commands that the leader before it had answered.
%% - Confirmations of members in an earlier term count in a later one.
-module(ats_ra_mended).

-export([write/2]).

%% The number of places at which expressions change.
-define(PLACES, 2).

%% Writes the mended module of a folder of beams into another one.
-spec write(From :: file:filename(), To :: file:filename()) -> ok.
write(From, To) ->
    {ok, [{application, ra, Keys}]} = file:consult(filename:join(From, "ra.app")),
    "2.2.0" = proplists:get_value(vsn, Keys),
    Beam = filename:join(From, "ra_server.beam"),
    {ok, {Module, [{abstract_code, {_, Forms}}]}} = beam_lib:chunks(Beam, [abstract_code]),
    {Mended, ?PLACES} = mend(Forms, 0),
    {ok, Module, Binary} = compile:forms(Mended, [debug_info]),
    file:write_file(filename:join(To, filename:basename(Beam)), Binary).

mend({map, At, Map, [Field] = Fields}, Places) ->
    case Field of
        {map_field_assoc, _, {atom, _, leader_id}, {var, _, 'Id'}} ->
            {{map, At, Map, Fields ++ [field(At, cluster_change_permitted, {atom, At, false})]},
             Places + 1};
        _ ->
            mend_parts({map, At, Map, Fields}, Places)
    end;
mend({map, At, Map, [{_, _, {atom, _, current_term}, {var, _, _}},
                     {_, _, {atom, _, voted_for}, {var, _, _}}] = Fields}, Places) ->
    {{map, At, Map, Fields ++ [field(At, query_index, {integer, At, 0})]}, Places + 1};
mend(Other, Places) ->
    mend_parts(Other, Places).

mend_parts(Parts, Places) when is_list(Parts) ->
    mend_list(Parts, Places);
mend_parts(Parts, Places) when is_tuple(Parts) ->
    {Mended, Sum} = mend_list(tuple_to_list(Parts), Places),
    {list_to_tuple(Mended), Sum};
mend_parts(Other, Places) ->
    {Other, Places}.

%% Also of a list whose end is none.
mend_list([Part | Parts], Places) ->
    {Mended, Sum} = mend(Part, Places),
    {Others, All} = mend_list(Parts, Sum),
    {[Mended | Others], All};
mend_list(End, Places) ->
    {End, Places}.

field(At, Key, Value) -> {map_field_assoc, At, {atom, At, Key}, Value}.

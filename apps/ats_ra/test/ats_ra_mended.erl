%% The library `ra' as Debian has it, release 2.2.0, with four faults mended. Later releases have
%% not the faults (pull requests 340, 342, 470 and 641 of rabbitmq/ra):
%%
%% - A server that becomes leader may answer before the first entry of its term is committed, so
%%   without the commands that the leader before it had answered. Consistent reads are stale then.
%% - Confirmations of members in an earlier term count in a later one, with the same result.
%% - A member whose leader ends in the middle of a snapshot waits for the rest of it for ever:
%%   messages of the next leader change nothing but the time at which it would give up.
%% - A member does not answer a snapshot of entries that it has applied. The leader sends the same
%%   snapshot again every two minutes, and no entries until then.
-module(ats_ra_mended).

-export([write/2]).

%% The number of expressions that change.
-define(CHANGES, 4).

%% Writes the mended module of a folder of beams into another one.
-spec write(From :: file:filename(), To :: file:filename()) -> ok.
write(From, To) ->
    {ok, [{application, ra, Keys}]} = file:consult(filename:join(From, "ra.app")),
    "2.2.0" = proplists:get_value(vsn, Keys),
    Beam = filename:join(From, "ra_server.beam"),
    {ok, {Module, [{abstract_code, {_, Forms}}]}} = beam_lib:chunks(Beam, [abstract_code]),
    {Mended, ?CHANGES} = mend(Forms, 0),
    {ok, Module, Binary} = compile:forms(Mended, [debug_info]),
    file:write_file(filename:join(To, filename:basename(Beam)), Binary).

mend({function, At, handle_receive_snapshot, 2, Clauses}, Changes) ->
    {{function, At, handle_receive_snapshot, 2, [give_up() | Clauses]}, Changes + 1};
mend({function, At, handle_follower, 2, Clauses}, Changes) ->
    {{function, At, handle_follower, 2, [answer_old_snapshot() | Clauses]}, Changes + 1};
mend({map, At, Map, [Field] = Fields}, Changes) ->
    case Field of
        {map_field_assoc, _, {atom, _, leader_id}, {var, _, 'Id'}} ->
            {{map, At, Map, Fields ++ [field(At, cluster_change_permitted, {atom, At, false})]},
             Changes + 1};
        _ ->
            mend_parts({map, At, Map, Fields}, Changes)
    end;
mend({map, At, Map, [{_, _, {atom, _, current_term}, {var, _, _}},
                     {_, _, {atom, _, voted_for}, {var, _, _}}] = Fields}, Changes) ->
    {{map, At, Map, Fields ++ [field(At, query_index, {integer, At, 0})]}, Changes + 1};
mend(Other, Changes) ->
    mend_parts(Other, Changes).

mend_parts(Parts, Changes) when is_list(Parts) ->
    mend_list(Parts, Changes);
mend_parts(Parts, Changes) when is_tuple(Parts) ->
    {Mended, Sum} = mend_list(tuple_to_list(Parts), Changes),
    {list_to_tuple(Mended), Sum};
mend_parts(Other, Changes) ->
    {Other, Changes}.

%% Also of a list whose end is none.
mend_list([Part | Parts], Changes) ->
    {Mended, Sum} = mend(Part, Changes),
    {Others, All} = mend_list(Parts, Sum),
    {[Mended | Others], All};
mend_list(End, Changes) ->
    {End, Changes}.

%% Returns a clause for entries of a later leader.
give_up() ->
    clause("
        handle_receive_snapshot(#append_entries_rpc{term = Term} = Rpc,
                                #{current_term := Current} = State) when Term > Current ->
            {follower, Follower, []} = handle_receive_snapshot(receive_snapshot_timeout, State),
            {follower, Follower, [{next_event, Rpc}]}.").

%% Returns a clause for a snapshot of entries that are applied: the leader goes on behind it.
answer_old_snapshot() ->
    clause("
        handle_follower(#install_snapshot_rpc{term = Term, meta = #{index := Index, term := Last}},
                        #{current_term := Current, last_applied := Applied} = State)
          when Term >= Current, Index =< Applied ->
            Reply = #install_snapshot_result{term = Current, last_term = Last,
                                             last_index = Index},
            {follower, State, [{reply, Reply}]}.").

clause(Text) ->
    {ok, Tokens, _} = erl_scan:string(Text),
    {ok, {function, _, _, _, [Clause]}} = erl_parse:parse_form(Tokens),
    Clause.

field(At, Key, Value) -> {map_field_assoc, At, {atom, At, Key}, Value}.

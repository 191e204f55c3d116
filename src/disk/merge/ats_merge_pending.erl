%% @private
%% @doc Values of tables on disk that a module has to merge before they can be read.
%%
%% A key is *pending* if the store has several values of it, one behind the other. A walk of a
%% snapshot ends where it meets one. This module merges the key together with some that come behind
%% it, gives their values to the snapshot, and the walk goes on. The snapshot forgets the values it
%% was given before: so a walk takes the memory of a few keys, however many are pending.
-module(ats_merge_pending).

-export([program/1, resolve/1, read/3, replace/3, replace_merged/4, raise_failure/3]).

-export_type([program/0]).

-type program() :: {ats_merge:merge(), Table :: non_neg_integer()}.

%% @doc Returns the module that merges the values of a table, and a number of the table; `none' if
%% none does.
-spec program(ats:tid()) -> program() | none.
program(Table) ->
    case ats_nif:disk_program(Table) of
        none -> none;
        {module, Module, Version, Id} -> {{Module, Version}, Id}
    end.

%% @doc Merges the pending key at which a walk of a snapshot has stopped, and some that come behind
%% it. Fails if the module fails for the first. A table that is no snapshot is not changed.
-spec resolve(Snapshot :: ats:tid()) -> ok | no_snapshot.
resolve(Snapshot) ->
    case ats_nif:disk_pending(Snapshot) of
        none -> no_snapshot;
        [] -> ok;
        [{_, Chain} | _] = Records -> resolve(Snapshot, program(Snapshot), Records, Chain)
    end.

-spec resolve(ats:tid(), program(), [ats_nif:disk_record()], ats_merge_operands:chain()) -> ok.
resolve(Snapshot, {{Module, _} = Merge, Id} = Program, Records, Chain) ->
    case ats_merge_runner:run(#{merge => Merge, table => Id, jobs => Records,
                                formats => ats_format:of_table(Snapshot)}) of
        again ->
            resolve(Snapshot, Program, Records, Chain);
        [{failed, Failure, _} | _] ->
            raise_failure(Module, key(Snapshot, Chain), Failure);
        Outcomes ->
            true = ats_nif:disk_resolve(Snapshot, outcome_values(Records, Outcomes)),
            ok
    end.

-spec outcome_values([ats_nif:disk_record()], [ats_merge_operands:outcome()]) ->
          [{Key :: binary(), ats_merge_operands:chain() | missing}].
outcome_values([{Key, _} | Records], [{put, Value} | Outcomes]) ->
    [{Key, Value} | outcome_values(Records, Outcomes)];
outcome_values([{Key, _} | Records], [missing | Outcomes]) ->
    [{Key, missing} | outcome_values(Records, Outcomes)];
outcome_values(_Records, []) ->
    [].

%% @doc Returns the value of a pending key of a table. If nobody writes to it meanwhile, the store
%% has it as well soon, or the part of it that could be merged. `again' if another process has
%% merged it.
-spec read(ats:tid(), program(), ats_nif:disk_record()) ->
          {ok, ats_merge_operands:chain()} | missing | again.
read(Table, {{Module, _} = Merge, Id}, {_, Chain} = Record) ->
    Save = fun({Key, Before}, Outcome) -> save(Table, Key, Before, Outcome) end,
    case ats_merge_runner:run(#{merge => Merge, table => Id, jobs => [Record], save => Save,
                                formats => ats_format:of_table(Table)}) of
        again -> again;
        [{put, Value}] -> {ok, Value};
        [missing] -> missing;
        [{failed, Failure, _}] -> raise_failure(Module, key(Table, Chain), Failure)
    end.

%% @doc Replaces the values of a pending key by their merge, if they have not changed.
-spec replace(ats:tid(), program(), ats_nif:disk_record()) -> ok | again.
replace(Table, {{Module, _} = Merge, Id}, {Key, Chain} = Record) ->
    case ats_merge_runner:run(#{merge => Merge, table => Id, jobs => [Record],
                                formats => ats_format:of_table(Table)}) of
        again ->
            again;
        [Outcome] ->
            _ = replace_merged(Table, Key, Chain, Outcome),
            case Outcome of
                {failed, Failure, _} -> raise_failure(Module, key(Table, Chain), Failure);
                _ -> ok
            end
    end.

%% Nothing depends on it, and the table may be one that can only be read, or be closed meanwhile.
-spec save(ats:tid(), binary(), ats_merge_operands:chain(), ats_merge_operands:outcome()) ->
          boolean().
save(Table, Key, Chain, Outcome) ->
    try replace_merged(Table, Key, Chain, Outcome)
    catch error:{ats_error, _Cause} -> false
    end.

%% @doc Replaces merged values by the result. Returns `true' if they had not changed.
-spec replace_merged(ats:tid(), binary(), ats_merge_operands:chain(),
                     ats_merge_operands:outcome()) ->
          boolean().
replace_merged(Table, Key, Chain, {put, Value}) ->
    ats_nif:disk_replace(Table, Key, Chain, Value, beginning);
replace_merged(Table, Key, Chain, missing) ->
    ats_nif:disk_replace(Table, Key, Chain, missing, beginning);
replace_merged(Table, Key, _Chain, {failed, _, {Expected, New}}) ->
    ats_nif:disk_replace(Table, Key, Expected, New, beginning);
replace_merged(_Table, _Key, _Chain, {failed, _, none}) ->
    false.

%% Returns the key of a chain, as the program has it.
-spec key(ats:tid(), ats_merge_operands:chain()) -> term().
key(Table, Chain) ->
    ats_format:decode_key(ats_format:of_table(Table), ats_merge_operands:key(Chain)).

%% @doc Raises the answer of a call for a key for which the module has failed.
-spec raise_failure(ats_merge:program(), Key :: term(), ats_merge:failure()) -> no_return().
raise_failure(Module, Key, {Module, version, {other_version, OfTable, OfModule}}) ->
    erlang:error({ats_error, {merge_mismatch, Key, {Module, OfTable, OfModule}}});
raise_failure(_Module, Key, Failure) ->
    erlang:error({ats_error, {merge_failed, Key, Failure}}).

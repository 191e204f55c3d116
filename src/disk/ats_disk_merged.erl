%% @private
%% @doc Merging the values of pending keys of tables on disk by the module of the table.
%%
%% A key is *pending* if the store has several values of it, one behind the other, which are still to
%% be merged. The module is called in processes of {@link ats_merge_pool}, because only another
%% process can end a function that does not return. No lock is held meanwhile, and no thread waits
%% that others need.
-module(ats_disk_merged).

-export([module/1, jobs/2, jobs/3, object/2, one/3, failed/2, readers/0]).

-type record() :: ats_nif:disk_record().

%% @doc The module that merges the values of a table.
-spec module(ats:tid()) -> module().
module(Table) ->
    case ats_nif:disk_program(Table) of
        %% A merge of ours that cannot merge what it was given.
        undefined -> erlang:error({ats_error, merge_failed});
        Module -> Module
    end.

%% @doc What a pending key has, for a call that waits; `undefined' if nothing. Fails with what the
%% module has done wrong.
-spec one(module(), Key :: term(), record()) -> binary() | undefined.
one(Module, Key, Record) ->
    case jobs(Module, [Record]) of
        [{_, {failed, Failure}}] -> failed(Key, Failure);
        [{_, Outcome}] -> object(Record, Outcome)
    end.

%% @doc What the values of some keys are merged to, for a call that waits.
-spec jobs(module(), [record()]) -> [{record(), ats_merge:outcome()}].
jobs(Module, Records) ->
    jobs(readers(), Module, Records).

%% @doc The pool of those that wait for an answer. What is merged in the background has another.
-spec readers() -> ats_merge_pool:pool().
readers() ->
    ats_merge_readers.

%% @doc What the values of some keys are merged to, by processes of a pool.
-spec jobs(ats_merge_pool:pool(), module(), [record()]) -> [{record(), ats_merge:outcome()}].
jobs(Pool, Module, Records) ->
    Jobs = [job(Record) || Record <- Records],
    Merged = ats_merge_pool:run(Pool, Module, [Job || Job <- Jobs, Job =/= no_value]),
    lists:zip(Records, outcomes(Jobs, Module, Merged)).

%% What was inserted may have no second element.
-spec job(record()) -> ats_merge:job() | no_value.
job({_, _, Objects}) ->
    Terms = [binary_to_term(Object) || Object <- Objects],
    case lists:all(fun(Term) -> tuple_size(Term) >= 2 end, Terms) of
        true -> {element(1, hd(Terms)), [element(2, Term) || Term <- Terms], bottom};
        false -> no_value
    end.

-spec outcomes([ats_merge:job() | no_value], module(), [ats_merge:outcome()]) ->
          [ats_merge:outcome()].
outcomes([], _Module, []) ->
    [];
outcomes([no_value | Jobs], Module, Outcomes) ->
    [{failed, {Module, any, no_value}} | outcomes(Jobs, Module, Outcomes)];
outcomes([_Job | Jobs], Module, [Outcome | Outcomes]) ->
    [Outcome | outcomes(Jobs, Module, Outcomes)].

%% @doc The object that a record becomes; `undefined' if none.
-spec object(record(), ats_merge:outcome()) -> binary() | undefined.
object(_Record, missing) -> undefined;
object(Record, {put, Value}) -> term_to_binary({key(Record), Value}).

%% The key as it was written last.
-spec key(record()) -> term().
key({_, _, Objects}) ->
    element(1, binary_to_term(lists:last(Objects))).

%% @doc Raises what a read of the key answers.
-spec failed(Key :: term(), ats_merge:failure()) -> no_return().
failed(Key, Failure) ->
    erlang:error({ats_error, {merge_failed, Key, Failure}}).

%% @private
%% @doc Reading and changing tables on disk whose values a module merges.
%%
%% The store keeps the values that were written to a key one behind the other: the key is *pending*.
%% Requests about pending keys are answered as follows:
%%
%% <table border="1">
%% <tr><td>a lookup</td><td>gets the values with the answer, has them merged, and replaces them in
%% the store by the result</td></tr>
%% <tr><td>another read of a key</td><td>is refused with the cause `pending', and reads a snapshot,
%% which is given the merged value</td></tr>
%% <tr><td>a walk</td><td>reads a snapshot, too, and goes on behind each pending key; see {@link
%% ats_merge_pending}. If it is a chunk, it answers `pending' first</td></tr>
%% <tr><td>a change of keys that are known</td><td>is refused with the cause `pending'. The values
%% of each key are replaced by their merge, if nothing was written to the key meanwhile, and the
%% call is made again</td></tr>
%% <tr><td>a change of keys that are looked for</td><td>reads a snapshot to find them, and then
%% looks at each again when it is changed</td></tr>
%% </table>
-module(ats_merge_access).

-export([is_merged_by_program/1, write/6, lookup/2, read/3, live/2]).
-export([change/3, try_change/3, take/2, delete/2, replace/2, delete_range/4]).

-export_type([decision/1]).

-type decision(Value) :: keep | {remove | {replace, tuple()}, Value}.
%% The decision about an object, and the value that is told of it.

%% Number of attempts to change a key that others write to.
-define(ATTEMPTS, 1000).
%% The most objects that are looked for before they are changed.
-define(AT_ONCE, 1000).

-spec is_merged_by_program(ats:tid()) -> boolean().
is_merged_by_program(Table) ->
    ats_merge_pending:program(Table) =/= none.

%% @doc Writes a value, without reading the old value.
%%
%% The module is first asked about the value alone: so a value that hides all before it needs no
%% merge, and one that stays alone can be read without.
-spec write(ats:tid(), ats_merge:program(), ats_merge:version(), ats_format:formats(),
            Key :: term(), Value :: term()) -> true.
write(Table, Module, Version, Formats, Key, Value) ->
    StoredKey = ats_format:key(Formats, Key),
    case ats_merge_runner:ask(Module, Version, Key, Value) of
        {failed, Failure} ->
            ats_merge_pending:raise_failure(Module, Key, Failure);
        delete ->
            ats_nif:disk_delete_unread(Table, StoredKey);
        How ->
            Object = {StoredKey, ats_format:value(Formats, Value)},
            case ats_nif:disk_operand(Table, Object, How, Version) of
                written ->
                    true;
                {other_version, OfTable} ->
                    Failure = {Module, version, {other_version, OfTable, Version}},
                    ats_merge_pending:raise_failure(Module, Key, Failure);
                hot ->
                    ok = ats_merge_background:pending(Table),
                    true;
                long ->
                    ok = ats_merge_background:pending(Table),
                    ok = shorten(Table, StoredKey),
                    true
            end
    end.

%% The others write faster than the values are merged in the background. If these cannot be merged,
%% that is not the concern of the one who writes.
-spec shorten(ats:tid(), Key :: term()) -> ok.
shorten(Table, Key) ->
    try settle(Table, ats_merge_pending:program(Table), Key)
    catch error:{ats_error, _Cause} -> ok
    end.

%%--------------------------------------------------------------------------------------------
%% Reading
%%--------------------------------------------------------------------------------------------

%% @doc Returns the objects with a key.
-spec lookup(ats:tid(), Key :: term()) -> [tuple()].
lookup(Table, Key) ->
    try ats_nif:disk_lookup(Table, Key) of
        {pending, Record} ->
            case ats_merge_pending:read(Table, ats_merge_pending:program(Table), Record) of
                {ok, Value} -> ats_merge_operands:objects(Value);
                missing -> [];
                again -> lookup(Table, Key)
            end;
        Objects ->
            Objects
    catch
        %% Nothing is replaced in a snapshot.
        error:{ats_error, pending} -> ats_disk_reading:of_key(Table, lookup, [Key])
    end.

%% @doc Has a native function read a key of a table, or of a snapshot of it if it is pending.
-spec read(ats:tid(), ats_nif:disk_read(), Arguments :: [term()]) -> Answer :: term().
read(Table, Function, Arguments) ->
    case ats_nif:disk_try(Table, Function, Arguments) of
        {ok, Answer} ->
            Answer;
        {refused, pending} ->
            Answer = ats_disk_reading:of_key(Table, Function, Arguments),
            ok = ats_merge_background:pending(Table),
            Answer;
        {refused, Cause} ->
            erlang:error({ats_error, Cause})
    end.

%% @doc Has a function walk through a table, or through a snapshot of it if it meets pending keys.
-spec live(ats:tid(), fun((ats:tid()) -> Answer | pending)) -> Answer.
live(Table, Walk) ->
    case Walk(Table) of
        pending ->
            Answer = ats_disk_reading:of_table(Table, Walk),
            ok = ats_merge_background:pending(Table),
            Answer;
        Answer ->
            Answer
    end.

%%--------------------------------------------------------------------------------------------
%% Changing
%%--------------------------------------------------------------------------------------------

%% @doc Has a native function change objects, the keys of which are known.
-spec change(ats:tid(), ats_nif:disk_change(), Arguments :: [term()]) -> Answer :: term().
change(Table, Function, Arguments) ->
    case try_change(Table, Function, Arguments) of
        {ok, Answer} -> Answer;
        {refused, Cause} -> erlang:error({ats_error, Cause})
    end.

%% @doc Like {@link change/3}, but returns why the function refuses to do it.
-spec try_change(ats:tid(), ats_nif:disk_change(), Arguments :: [term()]) ->
          ats_nif:tried(Answer :: term()).
try_change(Table, Function, Arguments) ->
    try_change(Table, Function, Arguments, ?ATTEMPTS).

-spec try_change(ats:tid(), ats_nif:disk_change(), [term()], non_neg_integer()) ->
          ats_nif:tried(term()).
try_change(Table, Function, Arguments, Attempts) ->
    case ats_nif:disk_try(Table, Function, Arguments) of
        {refused, pending} ->
            Program = ats_merge_pending:program(Table),
            [Key | _] = Keys = keys(Function, Arguments),
            _ = Attempts > 0 orelse fail_written_meanwhile(Program, Key),
            lists:foreach(fun(Each) -> settle(Table, Program, Each) end, Keys),
            try_change(Table, Function, Arguments, Attempts - 1);
        Tried ->
            Tried
    end.

%% Returns the keys of a change: the first elements of its objects.
-spec keys(ats_nif:disk_change(), Arguments :: [term()]) -> [Key :: term()].
keys(transact, Parts) ->
    lists:usort(lists:append(lists:map(fun(List) -> lists:map(fun key_of_part/1, List) end,
                                       Parts)));
keys(Function, [Objects])
  when Function =:= insert; Function =:= insert_new; Function =:= delete_object ->
    case is_list(Objects) of
        true -> [element(1, Object) || Object <- Objects];
        false -> [element(1, Objects)]
    end;
keys(_Function, [Key | _]) ->
    [Key].

%% Returns the key of a condition or a step.
-spec key_of_part(ats:condition() | ats:step()) -> Key :: term().
key_of_part({What, Object})
  when What =:= equals; What =:= insert; What =:= insert_new; What =:= delete_object ->
    element(1, Object);
key_of_part(Part) ->
    element(2, Part).

-spec fail_written_meanwhile(ats_merge_pending:program(), Key :: term()) -> no_return().
fail_written_meanwhile({{Module, _Version}, _Id}, Key) ->
    ats_merge_pending:raise_failure(Module, Key, {Module, any, written_meanwhile}).

%% Replaces the values of a key by their merge.
-spec settle(ats:tid(), ats_merge_pending:program(), Key :: term()) -> ok.
settle(Table, Program, Key) ->
    case ats_nif:disk_record(Table, Key) of
        {pending, Record} ->
            case ats_merge_pending:replace(Table, Program, Record) of
                again -> settle(Table, Program, Key);
                ok -> ok
            end;
        _ ->
            ok
    end.

%% @doc Deletes the objects for which the result of a match specification is `true', and returns
%% them.
-spec take(ats:tid(), ats:match_spec()) -> [tuple()].
take(Table, MatchSpec) ->
    each_selected(Table, MatchSpec, fun(Object, [true]) -> {remove, Object};
                                       (_Object, _) -> keep
                                    end).

%% @doc Deletes the objects for which the result of a match specification is `true', and returns
%% how many there were.
-spec delete(ats:tid(), ats:match_spec()) -> non_neg_integer().
delete(Table, MatchSpec) ->
    length(each_selected(Table, MatchSpec, fun(_Object, [true]) -> {remove, true};
                                              (_Object, _) -> keep
                                           end)).

%% @doc Replaces objects by the results of a match specification, which must keep the keys.
%% Returns how many.
-spec replace(ats:tid(), ats:match_spec()) -> non_neg_integer().
replace(Table, MatchSpec) ->
    Replace = fun(Object, [New]) when element(1, New) =:= element(1, Object) ->
                      {{replace, New}, true};
                 (_Object, []) ->
                      keep;
                 (_Object, [_AnotherKey]) ->
                      erlang:error({ats_error, none})
              end,
    length(each_selected(Table, MatchSpec, Replace)).

%% @doc Deletes the objects of a range of keys, and returns how many there were.
-spec delete_range(ats:tid(), term(), term(), [ats:range_bound()]) -> non_neg_integer().
delete_range(Table, Low, High, Bounds) ->
    First = fun(Snapshot) ->
                    ats_range:range(Snapshot, Low, High, [keys, {limit, ?AT_ONCE} | Bounds])
            end,
    length(each(Table, First, fun(_Object) -> {remove, true} end)).

%% The head and the guards find the objects.
-spec each_selected(ats:tid(), ats:match_spec(), fun((tuple(), [term()]) -> decision(Value))) ->
          [Value].
each_selected(Table, MatchSpec, Decide) ->
    Compiled = ats_select:compile(MatchSpec),
    Heads = [{Head, Guards, [{element, 1, '$_'}]} || {Head, Guards, _Body} <- MatchSpec],
    First = fun(Snapshot) -> ats_select:chunk(Snapshot, Heads, up, ?AT_ONCE) end,
    each(Table, First, fun(Object) -> Decide(Object, ats_select:run([Object], Compiled)) end).

%% Calls a function with the object of each key, starting with a given first chunk of keys, if the
%% object exists. The function decides about the change, which is made if the object is still the
%% same; otherwise the function is called again. Returns the values of the decisions.
-spec each(ats:tid(), fun((ats:tid()) -> Chunk), fun((Object :: tuple()) -> decision(Value))) ->
          [Value] when Chunk :: {[Key :: term()], ats:continuation()} | '$end_of_table'.
each(Table, First, Decide) ->
    Program = ats_merge_pending:program(Table),
    Change = fun(Key, Told) -> decide(Table, Program, Key, Decide, ?ATTEMPTS) ++ Told end,
    Told = ats_disk_reading:of_table(
             Table, fun(Snapshot) -> chunks(First(Snapshot), Change, []) end),
    lists:reverse(Told).

-spec chunks({[term()], ats:continuation()} | '$end_of_table', fun((term(), Acc) -> Acc), Acc) ->
          Acc.
chunks('$end_of_table', _Change, Told) ->
    Told;
chunks({Keys, Continuation}, Change, Told) ->
    NewTold = lists:foldl(Change, Told, Keys),
    chunks(ats_select:continue(Continuation), Change, NewTold).

-spec decide(ats:tid(), ats_merge_pending:program(), Key :: term(),
             fun((tuple()) -> decision(Value)), non_neg_integer()) -> [Value].
decide(_Table, Program, Key, _Decide, 0) ->
    fail_written_meanwhile(Program, Key);
decide(Table, Program, Key, Decide, Attempts) ->
    case read_current(Table, Program, Key) of
        undefined ->
            [];
        {Record, Object} ->
            case Decide(Object) of
                keep ->
                    [];
                {What, Told} ->
                    case try_replace(Table, Record, What) of
                        true -> [Told];
                        false -> decide(Table, Program, Key, Decide, Attempts - 1)
                    end
            end
    end.

%% Returns the object of a key, and the record of the store that it was made of.
-spec read_current(ats:tid(), ats_merge_pending:program(), Key :: term()) ->
          {ats_nif:disk_record(), tuple()} | undefined.
read_current(Table, Program, Key) ->
    case ats_nif:disk_record(Table, Key) of
        none ->
            undefined;
        {object, {_, Chain} = Record} ->
            [Object] = ats_merge_operands:objects(Chain),
            {Record, Object};
        {pending, _} ->
            %% Merged once, however often it is tried.
            ok = settle(Table, Program, Key),
            read_current(Table, Program, Key)
    end.

%% Returns `true' if the object was still the one of this record.
-spec try_replace(ats:tid(), ats_nif:disk_record(), remove | {replace, tuple()}) -> boolean().
try_replace(Table, {Key, Chain}, remove) ->
    ats_nif:disk_replace(Table, Key, Chain, missing, all);
try_replace(Table, {Key, Chain}, {replace, Object}) ->
    ats_nif:disk_replace(Table, Key, Chain, ats_merge_operands:object(Object), all).

%% @private
%% @doc Reading and changing tables on disk whose values a module merges.
%%
%% The store keeps what was written to a key, one behind the other: the key is *pending*. What the
%% native library is asked about a pending key it refuses, with the cause `merge_failed'. Then the
%% values are merged here, and the call is made again:
%%
%% <table border="1">
%% <tr><td>a read</td><td>reads a snapshot, which is told what pending keys have. First one key is
%% merged, then two, four and so on, as long as the call meets others</td></tr>
%% <tr><td>a change of keys that are known</td><td>of each key what was written is replaced by what
%% it is merged to, if nothing was written to it meanwhile</td></tr>
%% <tr><td>a change of keys that are looked for</td><td>reads a snapshot to find them, and then
%% looks at each again when it is changed</td></tr>
%% </table>
-module(ats_disk_merging).

-export([is_merged_by_program/1, write/4, lookup/2, live/2]).
-export([change/3, delete/2, replace/2, delete_range/4]).

-export_type([decision/1]).

-type decision(Value) :: keep | {remove | {replace, tuple()}, Value}.
%% What becomes of an object, and what is told of it.
-type record() :: ats_nif:disk_record().

%% So often a change is tried of a key that others write to.
-define(ATTEMPTS, 1000).

-spec is_merged_by_program(ats:tid()) -> boolean().
is_merged_by_program(Table) ->
    ats_nif:disk_program(Table) =/= undefined.

%% @doc Writes a value, without reading what is there.
%%
%% What the module says of a value that is alone is asked here, in the process that writes: so a
%% value that hides all before it needs no merge, and one that is alone can be read without.
-spec write(ats:tid(), module(), Key :: term(), Value :: term()) -> true.
write(Table, Module, Key, Value) ->
    case {ats_merge:asked(Module, short_circuit, Key, Value),
          ats_merge:asked(Module, delete, Key, Value)} of
        {true, true} -> ats_nif:disk_delete(Table, Key);
        {true, false} -> ats_nif:disk_operand(Table, {Key, Value}, object);
        {_, false} -> ats_nif:disk_operand(Table, {Key, Value}, present);
        {_, _} -> ats_nif:disk_operand(Table, {Key, Value}, undefined)
    end.

%%--------------------------------------------------------------------------------------------
%% Reading
%%--------------------------------------------------------------------------------------------

%% @doc The objects with a key.
-spec lookup(ats:tid(), Key :: term()) -> [tuple()].
lookup(Table, Key) ->
    try ats_nif:disk_lookup(Table, Key)
    catch
        error:{ats_error, merge_failed} ->
            live(Table, fun(There) -> ats_nif:lookup(There, Key) end)
    end.

%% @doc Has a function read a table, or a snapshot of it if it meets pending keys.
-spec live(ats:tid(), fun((ats:tid()) -> Answer)) -> Answer.
live(Table, Read) ->
    try Read(Table)
    catch
        error:{ats_error, merge_failed} ->
            Answer = ats_disk_snapshot:of_table(Table, Read),
            ok = ats_disk_merger:pending(Table),
            Answer
    end.

%%--------------------------------------------------------------------------------------------
%% Changing
%%--------------------------------------------------------------------------------------------

%% @doc Has a function change objects, the keys of which are known.
-spec change(ats:tid(), fun(() -> [Key :: term()]), fun((ats:tid()) -> Answer)) -> Answer.
change(Table, Keys, Change) ->
    change(Table, Keys, Change, ?ATTEMPTS).

-spec change(ats:tid(), fun(() -> [term()]), fun((ats:tid()) -> Answer), non_neg_integer()) ->
          Answer.
change(Table, Keys, Change, Attempts) ->
    try Change(Table)
    catch
        error:{ats_error, merge_failed} ->
            Module = ats_disk_merged:module(Table),
            [Key | _] = Known = Keys(),
            _ = Attempts > 0 orelse ats_disk_merged:failed(Key, {Module, any, written_meanwhile}),
            lists:foreach(fun(Each) -> settle(Table, Module, Each) end, Known),
            change(Table, Keys, Change, Attempts - 1)
    end.

%% Replaces what was written to a key by what it is merged to.
-spec settle(ats:tid(), module(), Key :: term()) -> ok.
settle(Table, Module, Key) ->
    case ats_nif:disk_record(Table, Key) of
        {{KeyBytes, Value, _} = Record, true} ->
            Object = ats_disk_merged:one(Module, Key, Record),
            _ = ats_nif:disk_replace(Table, KeyBytes, Value, Object, false),
            ok;
        _ ->
            ok
    end.

%% @doc Deletes the objects for which the result of a match specification is `true', and returns them.
-spec delete(ats:tid(), ats:match_spec()) -> [tuple()].
delete(Table, MatchSpec) ->
    each_selected(Table, MatchSpec, fun(Object, [true]) -> {remove, Object};
                                       (_Object, _) -> keep
                                    end).

%% @doc Replaces objects by the results of a match specification, which must keep the keys. Returns how
%% many.
-spec replace(ats:tid(), ats:match_spec()) -> non_neg_integer().
replace(Table, MatchSpec) ->
    Replace = fun(Object, [New]) when element(1, New) =:= element(1, Object) ->
                      {{replace, New}, New};
                 (_Object, []) ->
                      keep;
                 (_Object, [_AnotherKey]) ->
                      erlang:error({ats_error, none})
              end,
    length(each_selected(Table, MatchSpec, Replace)).

%% @doc Deletes the objects of a range of keys, and returns how many there were.
-spec delete_range(ats:tid(), term(), term(), [ats:range_bound()]) -> non_neg_integer().
delete_range(Table, Low, High, Bounds) ->
    Keys = ats_disk_snapshot:of_table(
             Table, fun(Snapshot) -> ats_range:range(Snapshot, Low, High, [keys | Bounds]) end),
    length(each(Table, Keys, fun(Object) -> {remove, Object} end)).

%% The head and the guards find the objects.
-spec each_selected(ats:tid(), ats:match_spec(), fun((tuple(), [term()]) -> decision(Value))) ->
          [Value].
each_selected(Table, MatchSpec, Decide) ->
    Compiled = ats_select:compile(MatchSpec),
    Heads = [{Head, Guards, ['$_']} || {Head, Guards, _Body} <- MatchSpec],
    Objects = ats_disk_snapshot:of_table(
                Table, fun(Snapshot) -> ats_select:list(Snapshot, Heads, all) end),
    each(Table, [element(1, Object) || Object <- Objects],
         fun(Object) -> Decide(Object, ats_select:run([Object], Compiled)) end).

%% Has a function decide about the object of each of these keys, if it is there. Each is changed
%% as it was when the function saw it, or the function is asked again. Returns what was told.
-spec each(ats:tid(), [Key :: term()], fun((Object :: tuple()) -> decision(Value))) -> [Value].
each(Table, Keys, Decide) ->
    Module = ats_disk_merged:module(Table),
    lists:flatmap(fun(Key) -> decide(Table, Module, Key, Decide, ?ATTEMPTS) end, Keys).

-spec decide(ats:tid(), module(), Key :: term(), fun((tuple()) -> decision(Value)),
             non_neg_integer()) -> [Value].
decide(_Table, Module, Key, _Decide, 0) ->
    ats_disk_merged:failed(Key, {Module, any, written_meanwhile});
decide(Table, Module, Key, Decide, Attempts) ->
    case current(Table, Module, Key) of
        undefined ->
            [];
        {Record, Object} ->
            case Decide(Object) of
                keep ->
                    [];
                {What, Told} ->
                    case replaced(Table, Record, What) of
                        true -> [Told];
                        false -> decide(Table, Module, Key, Decide, Attempts - 1)
                    end
            end
    end.

%% The object of a key, and the record of the store that it was made of.
-spec current(ats:tid(), module(), Key :: term()) -> {record(), tuple()} | undefined.
current(Table, Module, Key) ->
    case ats_nif:disk_record(Table, Key) of
        undefined ->
            undefined;
        {{_, _, [Object]} = Record, false} ->
            {Record, binary_to_term(Object)};
        {Record, true} ->
            case ats_disk_merged:one(Module, Key, Record) of
                undefined -> undefined;
                Object -> {Record, binary_to_term(Object)}
            end
    end.

%% Whether the object was still the one of this record.
-spec replaced(ats:tid(), record(), remove | {replace, tuple()}) -> boolean().
replaced(Table, {KeyBytes, Value, _}, remove) ->
    ats_nif:disk_replace(Table, KeyBytes, Value, undefined, true);
replaced(Table, {KeyBytes, Value, _}, {replace, Object}) ->
    ats_nif:disk_replace(Table, KeyBytes, Value, term_to_binary(Object), true).

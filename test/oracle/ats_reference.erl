%% The reference side of the oracle: `ets', made to give the answers of the newest `ets'.
%%
%% Differences between releases are levelled here, and nowhere else:
%%
%% - functions that the running release lacks are composed from those it has. The composition is
%%   not atomic, which is enough for an oracle that runs alone;
%% - of objects with the same key in one list the last one wins (`ets' leaves that open, and
%%   depends on whether the insertion yields);
%% - a list inserted into a bag keeps its order (releases before 25.3 reverse it);
%% - a failure to open a file says that its contents would be thrown away, as the newest releases
%%   do;
%% - an empty `ordered_set' has its end in slot 0 (with write_concurrency there is no such slot);
%% - a `select_delete' of all objects counts those that are there (where a table was cleared while
%%   it was fixed, with write_concurrency `auto', `ets' counts those once more);
%% - a taken object counts once (from a fixed bag, `ets' also counts objects that were deleted
%%   before, and the size of the table is wrong afterwards, and may be less than nothing);
%% - several changes of one counter that make it large are made one by one (`ets' has not enough
%%   room for the results, and ends the machine);
%% - a query handle needs a table (releases before 29 look for the name when the query is run);
%% - the folds treat the key '$end_of_table' as any other;
%% - a default object shorter than the key position is refused (the releases that only assert it
%%   use it write outside of the object).
-module(ats_reference).

-export([
    new/2,
    tab2file/2,
    tab2file/3,
    table/1,
    table/2,
    insert/2,
    insert_new/2,
    lookup/2,
    lookup_element/3,
    lookup_element/4,
    member/2,
    delete/1,
    delete/2,
    delete_object/2,
    delete_all_objects/1,
    take/2,
    first/1,
    last/1,
    next/2,
    prev/2,
    first_lookup/1,
    last_lookup/1,
    next_lookup/2,
    prev_lookup/2,
    update_counter/3,
    update_counter/4,
    update_element/3,
    update_element/4,
    tab2list/1,
    foldl/3,
    foldr/3,
    info/1,
    info/2,
    whereis/1,
    rename/2,
    all/0,
    safe_fixtable/2,
    give_away/3,
    setopts/2,
    slot/2,
    select/2,
    select_reverse/2,
    select_count/2,
    select_delete/2,
    select_replace/2,
    match/2,
    match_object/2,
    match_delete/2
]).

new(Name, Options) -> ets:new(Name, Options).
tab2file(T, File) -> newest_failure(ets:tab2file(T, File)).
tab2file(T, File, Options) -> newest_failure(ets:tab2file(T, File, Options)).
table(T) ->
    table(T, []).
table(T, Options) ->
    case is_atom(T) andalso ets:whereis(T) of
        undefined -> ets:first(T);
        _ -> ets:table(T, Options)
    end.
give_away(T, Pid, Gift) -> ets:give_away(T, Pid, Gift).
setopts(T, Options) -> ets:setopts(T, Options).
lookup(T, K) -> ets:lookup(T, K).
lookup_element(T, K, Pos) -> ets:lookup_element(T, K, Pos).
member(T, K) -> ets:member(T, K).
delete(T) -> ets:delete(T).
delete(T, K) -> ets:delete(T, K).
delete_object(T, Object) -> ets:delete_object(T, Object).
delete_all_objects(T) -> ets:delete_all_objects(T).
take(T, K) ->
    IsFixed = ets:info(T, fixed) =:= true,
    MayWrite = ets:info(T, protection) =:= public orelse ets:info(T, owner) =:= self(),
    Objects =
        try
            [Object || IsFixed, MayWrite, Object <- ets:lookup(T, K)]
        catch
            error:badarg -> []
        end,
    case Objects of
        [] ->
            ets:take(T, K);
        _ ->
            true = ets:delete(T, K),
            Objects
    end.
first(T) -> ets:first(T).
last(T) -> ets:last(T).
next(T, K) -> ets:next(T, K).
prev(T, K) -> ets:prev(T, K).
tab2list(T) -> ets:tab2list(T).
info(T) -> ets:info(T).
info(T, binary) -> info_binary(T, ets:info(T, id));
info(T, Item) -> ets:info(T, Item).
whereis(Name) -> ets:whereis(Name).
rename(T, Name) -> ets:rename(T, Name).
all() -> ets:all().
safe_fixtable(T, Fix) -> ets:safe_fixtable(T, Fix).
select(T, Spec) -> ets:select(T, Spec).
select_reverse(T, Spec) -> ets:select_reverse(T, Spec).
select_count(T, Spec) -> ets:select_count(T, Spec).
select_delete(T, [{'_', [], [true]}] = All) ->
    Present =
        try ets:info(T, size)
        catch error:badarg -> undefined
        end,
    %% An atom is more than any number.
    min(ets:select_delete(T, All), Present);
select_delete(T, Spec) -> ets:select_delete(T, Spec).
select_replace(T, Spec) -> ets:select_replace(T, Spec).
match(T, Pattern) -> ets:match(T, Pattern).
match_object(T, Pattern) -> ets:match_object(T, Pattern).
match_delete(T, Pattern) -> ets:match_delete(T, Pattern).
slot(T, 0) ->
    case is_empty_tree(T) of
        true -> '$end_of_table';
        false -> ets:slot(T, 0)
    end;
slot(T, I) ->
    ets:slot(T, I).
update_element(T, K, Spec) -> ets:update_element(T, K, Spec).
update_counter(T, K, Ops) -> count(T, K, Ops, []).

%% A missing table would make an exception of this item alone.
info_binary(_, undefined) -> undefined;
info_binary(T, _) -> ets:info(T, binary).

%% The options with which the file was opened are part of the reason.
newest_failure({error, {badarg, [{file, File}]}}) ->
    {error, {badarg, [{file, File}, {repair, truncate}]}};
newest_failure(Result) ->
    Result.

insert(T, Objects) when is_list(Objects), Objects =/= [] ->
    case is_valid_list(T, Objects) andalso is_bag(T) of
        true ->
            lists:foreach(fun(O) -> ets:insert(T, O) end, Objects),
            true;
        false ->
            ets:insert(T, last_of_each_key(T, Objects))
    end;
insert(T, Objects) ->
    ets:insert(T, Objects).

insert_new(T, Objects) when is_list(Objects), Objects =/= [] ->
    case is_valid_list(T, Objects) andalso is_bag(T) andalso is_writable(T) of
        true ->
            KeyPos = ets:info(T, keypos),
            New = not lists:any(fun(O) -> ets:member(T, element(KeyPos, O)) end, Objects),
            New andalso insert(T, Objects);
        false ->
            ets:insert_new(T, last_of_each_key(T, Objects))
    end;
insert_new(T, Objects) ->
    ets:insert_new(T, Objects).

last_of_each_key(T, Objects) ->
    case is_valid_list(T, Objects) of
        true ->
            KeyPos = ets:info(T, keypos),
            case ets:info(T, type) of
                ordered_set ->
                    lists:ukeysort(KeyPos, lists:reverse(Objects));
                _ ->
                    maps:values(maps:from_list([{element(KeyPos, O), O} || O <- Objects]))
            end;
        false ->
            Objects
    end.

lookup_element(T, K, Pos, Default) ->
    case erlang:function_exported(ets, lookup_element, 4) of
        true -> apply(ets, lookup_element, [T, K, Pos, Default]);
        false -> composed_lookup_element(T, K, Pos, Default)
    end.

composed_lookup_element(T, K, Pos, Default) ->
    Objects = ets:lookup(T, K),
    true = (is_integer(Pos) andalso Pos >= 1 andalso Pos < 1 bsl 59) orelse error(badarg),
    case {Objects, is_bag(T)} of
        {[], _} -> Default;
        {[Object], false} -> element(Pos, Object);
        {_, true} -> [element(Pos, O) || O <- Objects]
    end.

%% The key '$end_of_table' is told from the end of the table by its position in the order. In a
%% hash table it cannot be told, and walks through those are not compared step by step.
first_lookup(T) -> with_objects(T, ets:first(T), fun(_) -> true end).
last_lookup(T) -> with_objects(T, ets:last(T), fun(_) -> true end).
next_lookup(T, K) -> with_objects(T, ets:next(T, K), fun(End) -> K < End end).
prev_lookup(T, K) -> with_objects(T, ets:prev(T, K), fun(End) -> K > End end).

with_objects(T, '$end_of_table' = End, IsBeyond) ->
    case ets:lookup(T, End) of
        [_ | _] = Objects -> in_order(IsBeyond(End), {End, Objects}, End);
        [] -> End
    end;
with_objects(T, Key, _) ->
    {Key, ets:lookup(T, Key)}.

in_order(true, Found, _) -> Found;
in_order(false, _, End) -> End.

%% The folds of older releases take the key '$end_of_table' for the end.
foldl(F, Acc, T) -> fold(foldl, F, Acc, ets:tab2list(T)).
foldr(F, Acc, T) -> fold(foldr, F, Acc, ets:tab2list(T)).

%% The function is not looked at if there is nothing to fold over.
fold(_, _, Acc, []) -> Acc;
fold(Fold, F, Acc, Objects) -> lists:Fold(F, Acc, Objects).

update_counter(T, K, Ops, Default) ->
    ok = check_default(T, Default),
    count(T, K, Ops, [Default]).

count(T, K, Ops, Default) ->
    case may_outgrow(T, K, Ops, Default) of
        true -> [hd(apply(ets, update_counter, [T, K, [Op] | Default])) || Op <- Ops];
        false -> apply(ets, update_counter, [T, K, Ops | Default])
    end.

%% Returns `true' if there are several changes of one counter, which succeed and may leave more than
%% a small integer: `ets' makes room for each result as if the others were not there.
may_outgrow(T, K, Ops, Default) when is_list(Ops) ->
    try
        Positions = [element(1, Op) || Op <- Ops],
        true = length(lists:usort(Positions)) < length(Positions),
        true = is_writable(T),
        KeyPos = ets:info(T, keypos),
        [Object | _] = ets:lookup(T, K) ++ [setelement(KeyPos, D, K) || D <- Default],
        Counters = [element(P, Object) || P <- Positions, P =/= KeyPos],
        true = length(Counters) =:= length(Positions),
        Numbers = Counters ++ lists:append([numbers(Op) || Op <- Ops]),
        lists:all(fun is_integer/1, Numbers) andalso
            lists:any(fun(N) -> abs(N) > 1 bsl 50 end, Numbers)
    catch
        error:_ -> false
    end;
may_outgrow(_, _, _, _) ->
    false.

numbers({_, Increment}) -> [Increment];
numbers({_, Increment, Threshold, SetValue}) -> [Increment, Threshold, SetValue].

%% The update is tried on a scratch table first: a failing update must leave no new object.
update_element(T, K, Spec, Default) ->
    ok = check_default(T, Default),
    case erlang:function_exported(ets, update_element, 4) of
        true -> apply(ets, update_element, [T, K, Spec, Default]);
        false -> composed_update_element(T, K, Spec, Default)
    end.

composed_update_element(T, K, Spec, Default) ->
    true = is_tuple(Default) orelse error(badarg),
    case ets:update_element(T, K, Spec) of
        true ->
            true;
        false ->
            KeyPos = ets:info(T, keypos),
            Scratch = ets:new(scratch, [set, {keypos, KeyPos}]),
            try
                true = ets:insert(Scratch, setelement(KeyPos, Default, K)),
                true = ets:update_element(Scratch, K, Spec),
                ets:insert(T, ets:lookup(Scratch, K))
            after
                ets:delete(Scratch)
            end
    end.

check_default(T, Default) ->
    IsUpdatable = lists:member(ets:info(T, type), [set, ordered_set]) andalso is_writable(T),
    case IsUpdatable andalso is_tuple(Default) of
        true ->
            case tuple_size(Default) < ets:info(T, keypos) of
                true -> error(badarg);
                false -> ok
            end;
        false ->
            ok
    end.

is_bag(T) ->
    lists:member(ets:info(T, type), [bag, duplicate_bag]).

is_writable(T) ->
    ets:info(T, protection) =:= public orelse ets:info(T, owner) =:= self().

%% Returns `true' if it is an ordered_set that has no objects and may be read.
is_empty_tree(T) ->
    try [ets:info(T, Item) || Item <- [type, size, protection, owner]] of
        [ordered_set, 0, Protection, Owner] -> Protection =/= private orelse Owner =:= self();
        _ -> false
    catch
        error:badarg -> false
    end.

%% Returns `true' if the table exists and takes these objects; if not, `ets' is left to say so.
is_valid_list(T, Objects) ->
    KeyPos = (is_atom(T) orelse is_reference(T)) andalso ets:info(T, keypos),
    is_integer(KeyPos) andalso is_proper(Objects) andalso
        lists:all(fun(O) -> is_tuple(O) andalso tuple_size(O) >= KeyPos end, Objects).

is_proper([_ | T]) -> is_proper(T);
is_proper(T) -> T =:= [].

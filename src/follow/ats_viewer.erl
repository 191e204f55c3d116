%% @private
%% @doc A process that maintains a view: a table of the objects that a match specification makes of
%% another table, the source.
%%
%% The process holds a snapshot of the moment that the view shows. From time to time it looks if the
%% source has changed since. If so, it makes another one, has the specification make objects of the
%% differences, and changes the view by those.
%%
%% The specification may make several objects with one key, and equal ones. All of them are the
%% objects *of the key*. A view shows as many as its type can have, see `shown/2'; the others are in
%% a table beside it, the hidden ones.
%%
%% Two facts hold. Except within a batch, the shown and the hidden objects are together those that
%% the specification makes of `last'. And those that are shown depend on the objects of the key
%% alone, not on their history, so a view that is filled anew equals one that was changed.
-module(ats_viewer).

-export([start_link/3, init/4, keep/1]).

-record(viewer, {
    view :: ats:tid(),
    type :: ats:table_type(),
    keypos :: pos_integer(),
    source :: ats:tid(),
    %% The specification, also as the virtual machine runs it.
    spec :: ats:match_spec(),
    compiled :: ats:compiled_match_spec(),
    every :: pos_integer(),
    numbers :: ats_view_list:numbers(),
    hidden :: ats:tid(),
    %% The moment that the view shows.
    last :: none | ats:snapshot()
}).

-define(IS_DUPLICATE(Type), (Type =:= duplicate_bag orelse Type =:= ordered_duplicate_bag)).
-define(IS_SET(Type), (Type =:= set orelse Type =:= ordered_set)).

%% Objects that are read at once, the most changes of a batch that readers see as one, and the most
%% steps of a transaction.
-define(PART, 1000).
-define(BATCH, 5000).
-define(STEPS, 10000).
%% Moments that may end before the view is filled for the first time.
-define(TRIES, 10).

%% @doc Starts a process, which waits until it gets the view. It answers the call when the view is
%% filled. If it cannot go on, it ends with the reason `{shutdown, Cause}'.
-spec start_link(View :: ats:tid(), gen_server:from(), ats_view_list:description()) -> pid().
start_link(View, From, Description) ->
    proc_lib:spawn_link(?MODULE, init, [self(), View, From, Description]).

-spec init(pid(), ats:tid(), gen_server:from(), ats_view_list:description()) -> no_return().
init(Server, View, From, Description) ->
    %% The message has the name of a named table.
    receive {'ETS-TRANSFER', _, Server, view} -> ok end,
    #{source := Source, spec := Spec, every := Every, numbers := Numbers, type := Type,
      keypos := KeyPos, answer := Answer} = Description,
    Viewer = #viewer{view = View, type = Type, keypos = KeyPos, source = Source,
                     spec = Spec, compiled = ats_select:compile(Spec), every = Every,
                     numbers = Numbers, hidden = beside(Type, KeyPos), last = none},
    Filled = first_moment(Viewer, ?TRIES),
    ok = gen_server:reply(From, {ok, Answer}),
    keep(Filled).

%% Fills the view. If moments of the source end too early, it tries again, but a view that nobody
%% has yet is given up after some times.
-spec first_moment(#viewer{}, Tries :: integer()) -> #viewer{}.
first_moment(#viewer{every = Every, numbers = Numbers} = Viewer, Tries) ->
    case renew(Viewer) of
        #viewer{last = none} ->
            _ = [exit({shutdown, too_little_memory()})
                 || Tries =:= 1, not ats_view_list:is_filled(Numbers)],
            ok = rest(erlang:monotonic_time(millisecond) + Every),
            first_moment(Viewer, Tries - 1);
        Filled ->
            Filled
    end.

-spec too_little_memory() -> ats_errors:cause().
too_little_memory() ->
    {argument, 1, <<"snapshots of the table end before a view of it is filled: its option "
                    "`snapshot_memory' is too small beside its writers">>}.

%% Makes a table that has all objects of each key, for keys as those of the view.
-spec beside(ats:table_type(), pos_integer()) -> ats:tid().
beside(Type, KeyPos) ->
    Bag = case ats_options:is_ordered(Type) of
              true -> ordered_duplicate_bag;
              false -> duplicate_bag
          end,
    ats_options:create(ats_view, [Bag, private, {keypos, KeyPos}]).

%% @doc Keeps the view up to date, again and again.
-spec keep(#viewer{}) -> no_return().
keep(#viewer{every = Every} = Viewer) ->
    ok = rest(erlang:monotonic_time(millisecond) + Every),
    %% A new version of this module goes on from here.
    ?MODULE:keep(look(Viewer)).

%% Lets time pass. Nobody has anything to tell this process.
-spec rest(integer()) -> ok.
rest(End) ->
    receive _ -> rest(End)
    after max(0, End - erlang:monotonic_time(millisecond)) -> ok
    end.

%%--------------------------------------------------------------------------------------------
%% Moments
%%--------------------------------------------------------------------------------------------

-spec look(#viewer{}) -> #viewer{}.
look(#viewer{source = Source, last = Last} = Viewer) ->
    Time = erlang:monotonic_time(millisecond),
    MayHaveChanged = Last =:= none
        orelse of_source(fun() -> ats_nif:may_have_changed(Source, Last) end),
    case MayHaveChanged of
        true -> renew(Viewer);
        false -> noted(Time, Viewer)
    end.

%% Makes the view show the present.
-spec renew(#viewer{}) -> #viewer{}.
renew(#viewer{source = Source, last = Last} = Before) ->
    Time = erlang:monotonic_time(millisecond),
    Now = of_source(fun() -> ats_snapshot:make(Source, []) end),
    After = try
                ok = case Last of
                         none -> fill(Now, Before);
                         _ -> differences(Last, Now, Before)
                     end,
                noted(Time, Before#viewer{last = Now})
            catch
                error:{ats_error, _} = Reason:Stack ->
                    %% A moment may have ended, because of the memory that was held back for it.
                    case lists:any(fun has_ended/1, [Last, Now]) of
                        true ->
                            _ = ats_snapshot:release(Now),
                            Before#viewer{last = none};
                        false ->
                            erlang:raise(error, Reason, Stack)
                    end
            end,
    _ = [ats_snapshot:release(Last) || Last =/= none],
    %% Ended snapshots and native lists of keys go with the garbage.
    true = erlang:garbage_collect(),
    After.

-spec has_ended(none | ats:snapshot()) -> boolean().
has_ended(none) -> false;
has_ended(Moment) -> is_atom(ats_nif:snapshot_state(Moment)).

%% Ends the view if the source does not exist, may not be read, or has no moments.
-spec of_source(fun(() -> Answer)) -> Answer.
of_source(Call) ->
    try Call()
    catch
        error:{ats_error, Cause}
          when Cause =:= id; Cause =:= access; Cause =:= snapshot; Cause =:= backend ->
            exit({shutdown, Cause})
    end.

-spec noted(integer(), #viewer{}) -> #viewer{}.
noted(Time, #viewer{numbers = Numbers, hidden = Hidden} = Viewer) ->
    ok = ats_view_list:note(Numbers, Time, ats_nif:size(Hidden)),
    Viewer.

%% Changes the view by the differences of two moments.
-spec differences(ats:snapshot(), ats:snapshot(), #viewer{}) -> ok.
differences(Last, Now, Viewer) ->
    slices({Last, Now, ats_nif:changed_keys(Last, Now)}, 0, {[], []}, Viewer).

slices(_Moments, done, {Gone, Come}, Viewer) ->
    change(Gone, Come, Viewer);
slices({Last, Now, Keys} = Moments, From, {Gone, Come}, #viewer{compiled = Compiled} = Viewer) ->
    {Pairs, Next} = ats_nif:differences(Last, Now, Keys, From),
    {Olds, News} = lists:unzip(Pairs),
    Made = fun(Lists) -> ats_select:run(lists:append(Lists), Compiled) end,
    {Old, New} = {Made(Olds), Made(News)},
    {AllGone, AllCome} = {(Old -- New) ++ Gone, (New -- Old) ++ Come},
    case length(AllGone) + length(AllCome) > ?BATCH of
        true ->
            ok = change(AllGone, AllCome, Viewer),
            slices(Moments, Next, {[], []}, Viewer);
        false ->
            slices(Moments, Next, {AllGone, AllCome}, Viewer)
    end.

%%--------------------------------------------------------------------------------------------
%% All objects of a moment
%%--------------------------------------------------------------------------------------------

%% Makes the view show a moment, from any other one.
-spec fill(ats:snapshot(), #viewer{}) -> ok.
fill(Moment, #viewer{view = View, hidden = Hidden, spec = Spec, type = Type} = Viewer) ->
    true = ats_nif:delete_all_objects(Hidden),
    Begin = fun() -> ats_select:chunk(Moment, Spec, up, ?PART) end,
    IsEmpty = ats_nif:size(View) =:= 0,
    case IsEmpty andalso fold(Begin, fun(Made, more) -> first(Made, Viewer) end, more) of
        more ->
            ok;
        _ ->
            All = beside(Type, Viewer#viewer.keypos),
            try
                true = fold(Begin, fun(Made, true) -> ats_nif:insert(All, Made) end, true),
                reconcile(All, Viewer)
            after
                ats_nif:delete(All)
            end
    end.

%% Folds a function over the parts of the results of a query, until it returns `stop'.
-spec fold(fun(() -> term()), fun(([term()], Acc) -> Acc | stop), Acc | stop) -> Acc | stop.
fold(_Next, _Function, stop) ->
    stop;
fold(Next, Function, Acc) ->
    case Next() of
        '$end_of_table' ->
            Acc;
        {Results, Continuation} ->
            More = fun() -> ats_select:continue(Continuation) end,
            fold(More, Function, Function(Results, Acc))
    end.

%% Adds objects to a view that has had none, if it shows all of them in any case.
-spec first([tuple()], #viewer{}) -> more | stop.
first(Objects, #viewer{type = Type, view = View}) when ?IS_DUPLICATE(Type) ->
    true = ats_nif:insert(View, Objects),
    more;
first(Objects, #viewer{type = Type, view = View, keypos = KeyPos}) when ?IS_SET(Type) ->
    Keys = lists:usort([element(KeyPos, Object) || Object <- Objects]),
    case length(Keys) =:= length(Objects) andalso ats_nif:insert_new(View, Objects) of
        true -> more;
        false -> stop
    end;
first(_Objects, _Bag) ->
    stop.

%% Makes a view show all these objects, and no others.
-spec reconcile(All :: ats:tid(), #viewer{}) -> ok.
reconcile(All, #viewer{view = View} = Viewer) ->
    ok = each_key(All, fun(Key) -> set(Key, ats_nif:lookup(All, Key), Viewer) end, Viewer),
    Clear = fun(Key) ->
                    case ats_nif:member(All, Key) of
                        true -> [];
                        false -> set(Key, [], Viewer)
                    end
            end,
    each_key(View, Clear, Viewer).

%% Carries out the steps that a function returns for each key of a table. The objects of a key
%% follow each other, also from part to part.
-spec each_key(ats:tid(), fun((Key :: term()) -> [ats:step()]), #viewer{}) -> ok.
each_key(Table, Steps, #viewer{keypos = KeyPos} = Viewer) ->
    Begin = fun() -> ats_select:chunk(Table, [{'_', [], ['$_']}], up, ?PART) end,
    Part = fun(Objects, Before) ->
                   Pairs = [{element(KeyPos, Object), []} || Object <- Objects],
                   Keys = [Key || {Key, _} <- same_keys(Before ++ Pairs, Viewer)],
                   Done = [Key || {Key, _} <- same_keys(Before, Viewer)],
                   {Last, _} = lists:last(Pairs),
                   ok = write(lists:map(Steps, Keys -- Done), Viewer),
                   [{Last, []}]
           end,
    _ = fold(Begin, Part, []),
    ok.

%%--------------------------------------------------------------------------------------------
%% Changes
%%--------------------------------------------------------------------------------------------

%% Removes some objects that were made before, and adds others.
-spec change([tuple()], [tuple()], #viewer{}) -> ok.
change(Gone, Come, #viewer{keypos = KeyPos} = Viewer) ->
    Changes = [{element(KeyPos, Object), {gone, Object}} || Object <- Gone]
        ++ [{element(KeyPos, Object), {come, Object}} || Object <- Come],
    Steps = fun({Key, Of}) ->
                    change(Key, [Object || {gone, Object} <- Of],
                           [Object || {come, Object} <- Of], Viewer)
            end,
    write(lists:map(Steps, same_keys(Changes, Viewer)), Viewer).

%% Returns the steps for the objects of a key.
-spec change(Key :: term(), [tuple()], [tuple()], #viewer{}) -> [ats:step()].
change(_Key, [], Come, #viewer{type = Type}) when ?IS_DUPLICATE(Type) ->
    [{insert, Object} || Object <- Come];
change(Key, Gone, Come, #viewer{view = View, hidden = Hidden} = Viewer) ->
    Before = ats_nif:lookup(View, Key) ++ ats_nif:lookup(Hidden, Key),
    set(Key, (Before ++ Come) -- Gone, Viewer).

%% Collects the terms that belong to one key.
-spec same_keys([{Key, Term}], #viewer{}) -> [{Key, [Term]}] when Key :: term(), Term :: term().
same_keys(Pairs, #viewer{type = Type}) ->
    case ats_options:is_ordered(Type) of
        true ->
            Add = fun({Key, Term}, [{Same, Of} | Rest]) when Key == Same ->
                          [{Same, [Term | Of]} | Rest];
                     ({Key, Term}, Rest) ->
                          [{Key, [Term]} | Rest]
                  end,
            lists:foldl(Add, [], lists:keysort(1, Pairs));
        false ->
            Groups = maps:groups_from_list(fun({Key, _}) -> Key end, fun({_, Term}) -> Term end,
                                           Pairs),
            maps:to_list(Groups)
    end.

%% Hides some of all objects of a key. Returns the steps after which the view shows the others.
-spec set(Key :: term(), [tuple()], #viewer{}) -> [ats:step()].
set(Key, All, #viewer{view = View, type = Type}) when ?IS_DUPLICATE(Type) ->
    steps(Type, Key, ats_nif:lookup(View, Key), All);
set(Key, All, #viewer{view = View, hidden = Hidden, type = Type}) ->
    Shown = shown(Type, All),
    case {ats_nif:lookup(Hidden, Key), All -- Shown} of
        {[], []} ->
            ok;
        {_, Others} ->
            true = ats_nif:delete(Hidden, Key),
            true = ats_nif:insert(Hidden, Others)
    end,
    steps(Type, Key, ats_nif:lookup(View, Key), Shown).

%% Returns the objects of a key that the view shows: a set the least one, a bag one of equal ones. A
%% bag of duplicates shows all.
-spec shown(ats:table_type(), [tuple()]) -> [tuple()].
shown(_Type, []) -> [];
shown(Type, [First | Rest]) when ?IS_SET(Type) -> [lists:foldl(fun lesser/2, First, Rest)];
shown(_Bag, All) -> distinct(All).

%% Returns the lesser of two objects, also of those that are equal but not the same.
-spec lesser(tuple(), tuple()) -> tuple().
lesser(A, B) when A < B -> A;
lesser(A, B) when A > B; A =:= B -> B;
lesser(A, B) ->
    Image = fun(Object) -> term_to_binary(Object, [deterministic]) end,
    case Image(A) < Image(B) of
        true -> A;
        false -> B
    end.

-spec distinct([tuple()]) -> [tuple()].
distinct(Objects) -> maps:keys(maps:from_keys(Objects, [])).

-spec steps(ats:table_type(), term(), Old :: [tuple()], New :: [tuple()]) -> [ats:step()].
steps(_Type, _Key, Same, Same) ->
    [];
steps(_Type, Key, _Old, []) ->
    [{delete, Key}];
steps(Type, _Key, _Old, [Object]) when ?IS_SET(Type) ->
    [{insert, Object}];
steps(_Bag, _Key, Old, New) ->
    Gone = distinct(Old -- New),
    %% A step deletes all equal objects.
    IsGone = maps:from_keys(Gone, []),
    Kept = [Object || Object <- Old, not is_map_key(Object, IsGone)],
    [{delete_object, Object} || Object <- Gone] ++ [{insert, Object} || Object <- New -- Kept].

%% Carries out the steps of each key. As many as one transaction can have are seen as one.
-spec write([[ats:step()]], #viewer{}) -> ok.
write(OfKeys, Viewer) -> write(OfKeys, 0, [], Viewer).

write([], _Number, Steps, Viewer) ->
    transact(Steps, Viewer);
write([OfKey | Rest], Number, Steps, Viewer) ->
    case Number + length(OfKey) of
        Sum when Sum =< ?STEPS ->
            write(Rest, Sum, [OfKey | Steps], Viewer);
        _ when Number > 0 ->
            ok = transact(Steps, Viewer),
            write([OfKey | Rest], 0, [], Viewer);
        _ ->
            {Part, More} = lists:split(?STEPS, OfKey),
            ok = transact([Part], Viewer),
            write([More | Rest], 0, [], Viewer)
    end.

-spec transact([[ats:step()]], #viewer{}) -> ok.
transact(OfKeys, #viewer{view = View}) ->
    case lists:append(OfKeys) of
        [] ->
            ok;
        Steps ->
            {true, _} = ats_transactions:run(View, [], Steps, []),
            ok
    end.

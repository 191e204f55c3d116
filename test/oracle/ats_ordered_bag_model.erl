%% The answers of an `ordered_bag' or an `ordered_duplicate_bag', by the model of a list.
%%
%% The list has all objects in the order of the table: by key in the standard order of terms, and
%% for keys that are `==' the oldest first. `ets' has no such tables, so it cannot be asked; but it
%% runs the match specifications on objects here, too.
-module(ats_ordered_bag_model).

-export([new/2, call/3]).

-export_type([table/0]).

-type table() :: #{
    type := ordered_bag | ordered_duplicate_bag,
    keypos := pos_integer(),
    objects := [tuple()]
}.

-define(END, '$end_of_table').

-spec new(ordered_bag | ordered_duplicate_bag, pos_integer()) -> table().
new(Type, KeyPos) ->
    #{type => Type, keypos => KeyPos, objects => []}.

%% Returns the answer, or `badarg', and the new table.
-spec call(atom(), [term()], table()) -> {{ok, term()} | badarg, table()}.
call(F, Args, Table) ->
    try
        case answer(F, Args, Table) of
            {write, Answer, Objects} -> {{ok, Answer}, Table#{objects := Objects}};
            Answer -> {{ok, Answer}, Table}
        end
    catch
        throw:badarg -> {badarg, Table}
    end.

%% ----- writing -----

answer(insert, [New], T) when is_list(New) ->
    check_objects(New, T),
    {write, true, lists:foldl(fun(O, Objects) -> insert(O, Objects, T) end, objects(T), New)};
answer(insert, [New], T) ->
    answer(insert, [[New]], T);
answer(insert_new, [New], T) when is_list(New) ->
    check_objects(New, T),
    case lists:any(fun(O) -> with_key(key(O, T), T) =/= [] end, New) of
        true -> false;
        false -> answer(insert, [New], T)
    end;
answer(insert_new, [New], T) ->
    answer(insert_new, [[New]], T);
answer(delete, [Key], T) ->
    {write, true, objects(T) -- with_key(Key, T)};
answer(take, [Key], T) ->
    {write, with_key(Key, T), objects(T) -- with_key(Key, T)};
answer(delete_object, [Object], T) ->
    check_objects([Object], T),
    {write, true, [O || O <- objects(T), O =/= Object]};
answer(delete_all_objects, [], _) ->
    {write, true, []};
answer(take_all_objects, [], T) ->
    {write, objects(T), []};
answer(take_first, [], T) ->
    case objects(T) of
        [] -> [];
        [First | Rest] -> {write, [First], Rest}
    end;
answer(take_last, [], T) ->
    case objects(T) of
        [] -> [];
        Objects -> {write, [lists:last(Objects)], lists:droplast(Objects)}
    end;
answer(select_delete, [Spec], T) ->
    {Taken, Left} = lists:partition(fun(O) -> run([O], Spec) =:= [true] end, valid(Spec, T)),
    {write, length(Taken), Left};
answer(match_delete, [Pattern], T) ->
    {write, _, Left} = answer(select_delete, [[{Pattern, [], [true]}]], T),
    {write, true, Left};
answer(select_take, [Spec], T) ->
    {Taken, Left} = lists:partition(fun(O) -> run([O], Spec) =:= [true] end, valid(Spec, T)),
    {write, Taken, Left};
answer(select_replace, [Spec], #{type := ordered_duplicate_bag} = T) ->
    valid(Spec, T),
    check_keeps_key(Spec, T),
    Replaced = [{O, run([O], Spec)} || O <- objects(T)],
    {write, length([O || {O, [_]} <- Replaced]), [
        case New of
            [] -> O;
            [Other] -> Other
        end
     || {O, New} <- Replaced
    ]};
answer(range_delete, [Low, High, Bounds], T) ->
    Inside = between(Low, High, Bounds, T),
    {write, length(Inside), [O || O <- objects(T), not lists:member(O, Inside)]};
answer(F, _, _) when
    F =:= select_replace; F =:= update_counter; F =:= update_element; F =:= merge
->
    throw(badarg);
%% ----- reading by key -----
answer(lookup, [Key], T) ->
    with_key(Key, T);
answer(member, [Key], T) ->
    with_key(Key, T) =/= [];
answer(lookup_element, [Key, Pos], T) ->
    check(is_integer(Pos) andalso Pos > 0),
    elements(Pos, found(with_key(Key, T)));
answer(lookup_element, [Key, Pos, Default], T) ->
    check(is_integer(Pos) andalso Pos > 0),
    case with_key(Key, T) of
        [] -> Default;
        Objects -> elements(Pos, Objects)
    end;
answer(lookup_elements, [Key, Positions], T) ->
    lists:foreach(fun(Pos) -> check(Pos > 0) end, Positions),
    Objects = found(with_key(Key, T)),
    Lists = [elements(Pos, Objects) || Pos <- Positions],
    [[lists:nth(N, List) || List <- Lists] || N <- lists:seq(1, length(Objects))];
%% ----- steps -----
answer(first, [], T) ->
    first_key(objects(T), T);
answer(last, [], T) ->
    last_key(objects(T), T);
answer(next, [?END], _) ->
    throw(badarg);
answer(prev, [?END], _) ->
    throw(badarg);
answer(next, [Key], T) ->
    first_key([O || O <- objects(T), key(O, T) > Key], T);
answer(prev, [Key], T) ->
    last_key([O || O <- objects(T), key(O, T) < Key], T);
answer(F, Args, T) when
    F =:= first_lookup; F =:= last_lookup; F =:= next_lookup; F =:= prev_lookup
->
    Step = maps:get(F, #{
        first_lookup => first, last_lookup => last, next_lookup => next, prev_lookup => prev
    }),
    %% The key '$end_of_table' is told from the end of the table by its position in the order.
    case answer(Step, Args, T) of
        ?END -> at_end(F, Args, with_key(?END, T));
        Key -> {Key, with_key(Key, T)}
    end;
%% ----- reading all -----
answer(tab2list, [], T) ->
    objects(T);
answer(foldl, [Function, Acc], T) ->
    lists:foldl(Function, Acc, objects(T));
answer(foldr, [Function, Acc], T) ->
    lists:foldr(Function, Acc, objects(T));
answer(info, [size], T) ->
    length(objects(T));
answer(info, [type], T) ->
    maps:get(type, T);
answer(slot, [I], T) ->
    Objects = objects(T),
    check(is_integer(I) andalso I >= 0 andalso I =< length(Objects)),
    case lists:nthtail(I, Objects) of
        [] -> ?END;
        [Object | _] -> [Object]
    end;
answer(select, [Spec], T) ->
    run(valid(Spec, T), Spec);
answer(select_reverse, [Spec], T) ->
    lists:reverse(run(valid(Spec, T), Spec));
answer(select_count, [Spec], T) ->
    length([true || true <- run(valid(Spec, T), Spec)]);
answer(F, [Spec, Limit], T) when F =:= select; F =:= select_reverse ->
    {chunks, chunks(answer(F, [Spec], T), Limit)};
answer(match, [Pattern], T) ->
    run(objects(T), [{Pattern, [], ['$$']}]);
answer(match_object, [Pattern], T) ->
    run(objects(T), [{Pattern, [], ['$_']}]);
%% ----- ranges and ranks -----
answer(rank, [Key], T) ->
    length([O || O <- objects(T), key(O, T) < Key]);
answer(nth, [N], T) ->
    at(N, objects(T));
answer(range_nth, [Low, High, N, Bounds], T) ->
    at(N, between(Low, High, Bounds, T));
answer(range_count, [Low, High, Bounds], T) ->
    length(between(Low, High, Bounds, T));
answer(range, [Low, High, Options], T) ->
    ranged(between(Low, High, Options, T), Options, T);
answer(range_fold, [Function, Acc, Low, High, Options], T) ->
    Read = ranged(between(Low, High, Options, T), lists:keydelete(limit, 1, Options), T),
    lists:foldl(Function, Acc, lists:sublist(Read, proplists:get_value(limit, Options, 1 bsl 50)));
answer(prefix, [Pattern, Options], T) ->
    check(ats_beyond_reference:is_prefix(Pattern)),
    ranged([O || O <- objects(T), ats_beyond_reference:begins(Pattern, key(O, T))], Options, T).

%% ----- help -----

at_end(_, _, []) -> ?END;
at_end(next_lookup, [Key], _) when Key > ?END -> ?END;
at_end(prev_lookup, [Key], _) when Key < ?END -> ?END;
at_end(_, _, Objects) -> {?END, Objects}.

objects(#{objects := Objects}) -> Objects.

key(Object, #{keypos := KeyPos}) -> element(KeyPos, Object).

with_key(Key, T) -> [O || O <- objects(T), key(O, T) == Key].

check(true) -> ok;
check(false) -> throw(badarg).

found([]) -> throw(badarg);
found(Objects) -> Objects.

elements(Pos, Objects) ->
    lists:foreach(fun(O) -> check(Pos =< tuple_size(O)) end, Objects),
    [element(Pos, O) || O <- Objects].

check_objects(Objects, #{keypos := KeyPos}) ->
    check(lists:all(fun(O) -> is_tuple(O) andalso tuple_size(O) >= KeyPos end, Objects)).

insert(New, Objects, #{type := Type} = T) ->
    case Type =:= ordered_bag andalso lists:any(fun(O) -> O =:= New end, Objects) of
        true ->
            Objects;
        false ->
            {Before, After} = lists:splitwith(fun(O) -> key(O, T) =< key(New, T) end, Objects),
            Before ++ [New | After]
    end.

first_key([], _) -> ?END;
first_key([Object | _], T) -> key(Object, T).

%% The key as the oldest object has it.
last_key([], _) ->
    ?END;
last_key(Objects, T) ->
    [Oldest | _] = with_key(key(lists:last(Objects), T), T),
    key(Oldest, T).

%% The objects, if the specification is a valid one.
valid(Spec, T) ->
    try ets:match_spec_compile(Spec) of
        _ -> objects(T)
    catch
        error:badarg -> throw(badarg)
    end.

run(Objects, Spec) ->
    ets:match_spec_run(Objects, ets:match_spec_compile(Spec)).

%% The contents of the table do not decide whether a specification keeps the key.
check_keeps_key(Spec, #{keypos := KeyPos}) ->
    Empty = ets:new(empty, [duplicate_bag, {keypos, KeyPos}]),
    try
        ets:select_replace(Empty, Spec)
    catch
        error:badarg -> throw(badarg)
    after
        ets:delete(Empty)
    end.

between(Low, High, Options, T) ->
    [O || O <- objects(T), is_above(key(O, T), Low, Options), is_below(key(O, T), High, Options)].

is_above(Key, Low, Options) ->
    case proplists:get_value(low, Options, inclusive) of
        inclusive -> Key >= Low;
        exclusive -> Key > Low;
        unbounded -> true
    end.

is_below(Key, High, Options) ->
    case proplists:get_value(high, Options, inclusive) of
        inclusive -> Key =< High;
        exclusive -> Key < High;
        unbounded -> true
    end.

at(N, Objects) when N < 0 -> at(-N, lists:reverse(Objects));
at(N, Objects) when N > 0, N =< length(Objects) -> lists:nth(N, Objects);
at(N, _) ->
    check(N =/= 0),
    ?END.

ranged(Objects, Options, T) ->
    Read =
        case lists:member(keys, Options) of
            true -> [key(O, T) || O <- Objects];
            false -> Objects
        end,
    InOrder =
        case lists:member(reverse, Options) of
            true -> lists:reverse(Read);
            false -> Read
        end,
    case proplists:get_value(limit, Options) of
        undefined -> InOrder;
        Limit -> {chunks, chunks(InOrder, Limit)}
    end.

chunks([], _) -> [];
chunks(Results, Limit) when length(Results) =< Limit -> [Results];
chunks(Results, Limit) ->
    {Chunk, Rest} = lists:split(Limit, Results),
    [Chunk | chunks(Rest, Limit)].

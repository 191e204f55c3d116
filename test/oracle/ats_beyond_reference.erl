%% The answers of the functions of `ats' that `ets' lacks: composed of functions of `ets', of lists
%% and of comparisons. The compositions are not atomic, which is enough for an oracle that runs
%% alone.
%%
%% Exceptions say which arguments are to blame, in the words of `ats'; faults of the table are
%% described in the words of `ets' for a lookup, or for a deletion.
-module(ats_beyond_reference).

-export([
    select_take/2,
    take_all_objects/1,
    take_first/1, take_first/3,
    take_last/1, take_last/3,
    merge/4,
    merge/5,
    rank/2,
    nth/2,
    range/3,
    range/4,
    range_count/3,
    range_count/4,
    range_nth/4,
    range_nth/5,
    range_delete/3,
    range_delete/4,
    range_fold/5,
    range_fold/6,
    prefix/2,
    prefix/3,
    lookup_elements/3,
    lookup_many/2,
    take_many/2,
    delete_many/2
]).
-export([functions/0, format_error/2]).
-export([merged/3, is_absent/2, needs/1, is_prefix/1, begins/2]).

-define(MERGES, [
    replace, last, first, sum, min, max, statistics, append, union, intersection
]).
-define(PRUNED, [sum, append, union]).
-define(MOST_VECTORS, 8).
-define(MOST_ELEMENTS, (1 bsl 24) - 1).
%% A term that is no small integer is no number of a position.
-define(IS_SMALL(N), (is_integer(N) andalso N >= -(1 bsl 59) andalso N < 1 bsl 59)).

%% Returns the functions of `ats' that this module stands for.
-spec functions() -> [atom()].
functions() ->
    [
        select_take,
        take_all_objects,
        take_first,
        take_last,
        merge,
        rank,
        nth,
        range,
        range_count,
        range_nth,
        range_delete,
        range_fold,
        prefix,
        lookup_elements,
        lookup_many,
        take_many,
        delete_many
    ].

%% ----- taking -----

select_take(T, Spec) ->
    check_table(1, T, write, any),
    Before = objects(T),
    try select_delete(T, Before, Spec) of
        _ -> Before -- objects(T)
    catch
        error:badarg -> refuse(#{2 => "not a valid match specification"})
    end.

%% Deletes with `ets', unless the table is fixed with write_concurrency: there `ets' forgets the
%% positions of objects it deletes in this way, and a process that traverses the table cannot go on.
select_delete(T, Objects, Spec) ->
    case ets:info(T, fixed) of
        true ->
            Copy = ets:new(copy, [ets:info(T, type), {keypos, ets:info(T, keypos)}]),
            try
                [true = ets:insert(Copy, O) || O <- Objects],
                _ = ets:select_delete(Copy, Spec),
                [true = ets:delete_object(T, O) || O <- Objects -- ets:tab2list(Copy)]
            after
                ets:delete(Copy)
            end;
        false ->
            ets:select_delete(T, Spec)
    end.

take_all_objects(T) ->
    check_table(1, T, write, any),
    Objects = objects(T),
    true = ets:delete_all_objects(T),
    Objects.

%% All objects, those of a key one behind the other, oldest first.
objects(T) ->
    Objects = ets:tab2list(T),
    case is_bag(T) of
        true ->
            KeyPos = ets:info(T, keypos),
            Keys = maps:keys(maps:from_list([{element(KeyPos, O), key} || O <- Objects])),
            lists:append([ets:lookup(T, Key) || Key <- Keys]);
        false ->
            Objects
    end.

take_first(T) -> take_first(T, none, any).
take_last(T) -> take_last(T, none, any).

%% Takes the object that the other side has taken from a table without order, since it is not
%% specified which one comes out: the object must exist and be the oldest one of its key, unless
%% `any' will do.
take_first(T, Taken, Which) -> take_end(fun erlang:hd/1, T, Taken, Which).
take_last(T, Taken, Which) -> take_end(fun lists:last/1, T, Taken, Which).

take_end(End, T, Taken, Which) ->
    check_table(1, T, write, any),
    case {ets:tab2list(T), ets:info(T, type)} of
        {[], _} ->
            [];
        {Objects, ordered_set} ->
            Object = End(Objects),
            true = ets:delete(T, element(ets:info(T, keypos), Object)),
            [Object];
        {_, _} ->
            take_likewise(T, Taken, Which)
    end.

take_likewise(T, {ok, [Object]}, Which) ->
    KeyPos = ets:info(T, keypos),
    Possible =
        case is_tuple(Object) andalso tuple_size(Object) >= KeyPos of
            true when Which =:= oldest ->
                lists:sublist(ets:lookup(T, element(KeyPos, Object)), 1);
            true -> ets:lookup(T, element(KeyPos, Object));
            false -> []
        end,
    case [O || O <- Possible, ats_oracle:same(O, Object)] of
        [Same | _] ->
            ok = take_one(T, element(KeyPos, Same), Same),
            [Same];
        [] ->
            {possible, Possible}
    end;
take_likewise(T, none, _) ->
    [Some | _] = ets:tab2list(T),
    Key = element(ets:info(T, keypos), Some),
    [Oldest | _] = ets:lookup(T, Key),
    ok = take_one(T, Key, Oldest),
    [Oldest];
take_likewise(T, _, _) ->
    {possible, ets:tab2list(T)}.

%% `ets' deletes all objects of a bag that are equal.
take_one(T, Key, Object) ->
    Others = ets:lookup(T, Key) -- [Object],
    true = ets:delete(T, Key),
    [true = ets:insert(T, Other) || Other <- Others],
    ok.

%% ----- merging -----

merge(T, Key, Operand, How) -> merge_or(T, Key, Operand, How, none).
merge(T, Key, Operand, How, Default) -> merge_or(T, Key, Operand, How, {default, Default}).

merge_or(T, Key, Operand, How, Default) ->
    check_table(1, T, write, [set, ordered_set]),
    KeyPos = ets:info(T, keypos),
    {Pos, Merge} = position_and_merge(How, KeyPos),
    check_default(Default, KeyPos),
    Pos > 0 orelse refuse(#{4 => "the position is out of range"}),
    Pos =/= KeyPos orelse refuse(#{4 => "the position is the same as the key position"}),
    case {merged(Merge, none, Operand), ets:lookup(T, Key), Default} of
        {{refused, Cause}, _, _} ->
            refuse_merge(Merge, Cause);
        {_, [Object], _} ->
            merge_into(T, Object, Pos, Merge, Operand);
        {_, [], {default, Object}} ->
            merge_into(T, setelement(KeyPos, Object, Key), Pos, Merge, Operand);
        {{ok, Value}, [], none} when KeyPos =:= 1, Pos =:= 2 ->
            is_absent(Merge, Value) orelse ets:insert(T, {Key, Value}),
            Value;
        {_, [], none} ->
            refuse(#{
                2 =>
                    "not a key that exists in the table, and its object would need more than the"
                    " operand"
            })
    end.

position_and_merge({Pos, Merge}, _) when ?IS_SMALL(Pos) ->
    Pos >= 0 orelse refuse(#{4 => "the position is out of range"}),
    {Pos, check_merge(Merge)};
position_and_merge(Merge, KeyPos) ->
    {KeyPos + 1, check_merge(Merge)}.

check_merge(Merge) ->
    is_merge(Merge, ?MOST_VECTORS) orelse refuse_merge(Merge, merge),
    Merge.

is_merge({vector, Merges}, Vectors) ->
    Vectors > 0 andalso is_list_of(fun(M) -> is_merge(M, Vectors - 1) end, Merges);
is_merge({prune, Merge}, _) ->
    lists:member(Merge, ?PRUNED);
is_merge({last, N}, _) ->
    is_integer(N) andalso N >= 1 andalso N =< ?MOST_ELEMENTS;
is_merge(Merge, _) ->
    lists:member(Merge, ?MERGES).

check_default(none, _) -> ok;
check_default({default, {}}, _) -> refuse(#{5 => "is an empty tuple"});
check_default({default, D}, KeyPos) when tuple_size(D) >= KeyPos -> ok;
check_default({default, D}, KeyPos) when is_tuple(D) ->
    refuse(#{5 => "has no element at the key position " ++ integer_to_list(KeyPos)});
check_default({default, _}, _) -> refuse(#{5 => "not a tuple"}).

merge_into(_, Object, Pos, _, _) when Pos > tuple_size(Object) ->
    refuse(#{4 => "the position is out of range"});
merge_into(T, Object, Pos, Merge, Operand) ->
    case merged(Merge, {value, element(Pos, Object)}, Operand) of
        {ok, Value} ->
            case is_absent(Merge, Value) of
                true -> ets:delete(T, element(ets:info(T, keypos), Object));
                false -> ets:insert(T, setelement(Pos, Object, Value))
            end,
            Value;
        {refused, Cause} ->
            refuse_merge(Merge, Cause)
    end.

-spec refuse_merge(term(), merge | operand | value | system_limit) -> no_return().
refuse_merge(_, merge) ->
    refuse(#{4 => "not a valid merge"});
refuse_merge(Merge, operand) ->
    refuse(#{3 => "not a value that can be merged in this way: " ++ needs(Merge)});
refuse_merge(Merge, value) ->
    refuse(#{
        4 =>
            "the value in the given position, in the object, cannot be merged in this way: " ++
            needs(Merge)
    });
refuse_merge(_, system_limit) ->
    refuse(system_limit, #{}).

%% Returns the text of an explanation about the values of a merge.
-spec needs(term()) -> string().
needs(sum) -> "sum needs a number";
needs(statistics) -> "statistics needs a number, or {Min, Max, Sum, Count} of numbers";
needs(append) -> "append needs proper lists, or binaries";
needs(union) -> "union needs lists in ascending order without duplicates, or maps";
needs(intersection) -> "intersection needs lists in ascending order without duplicates, or maps";
needs({prune, Merge}) -> needs(Merge);
needs({last, N}) -> lists:concat(["{last, ", N, "} needs a tuple that has this element"]);
needs({vector, Merges}) ->
    lists:concat([
        "{vector, _} needs a tuple of size ", length(Merges),
        ", each element as its merge needs it"
    ]).

%% Merges an earlier value, or none, with a later one, or returns which of them is refused.
-spec merged(Merge :: term(), none | {value, term()}, term()) ->
    {ok, term()} | {refused, operand | value | system_limit}.
merged(Merge, Before, Operand) ->
    case {takes(Merge, Operand), Before} of
        {false, _} -> {refused, operand};
        {true, none} -> {ok, spelled_out(Merge, Operand)};
        {true, {value, Earlier}} -> combined(Merge, Earlier, Operand)
    end.

takes({vector, Merges}, X) ->
    is_tuple(X) andalso tuple_size(X) =:= length(Merges) andalso
        lists:all(fun({M, E}) -> takes(M, E) end, lists:zip(Merges, tuple_to_list(X)));
takes({prune, Merge}, X) -> takes(Merge, X);
takes({last, N}, X) -> is_tuple(X) andalso tuple_size(X) >= N;
takes(sum, X) -> is_number(X);
takes(statistics, {Min, Max, Sum, Count}) ->
    is_number(Min) andalso is_number(Max) andalso is_number(Sum) andalso is_integer(Count) andalso
        Min =< Max andalso Count > 0;
takes(statistics, X) -> is_number(X);
takes(append, X) -> is_binary(X) orelse is_proper(X);
takes(Sets, X) when Sets =:= union; Sets =:= intersection ->
    is_map(X) orelse (is_proper(X) andalso ascends(X));
takes(_, _) -> true.

ascends([A, B | Rest]) -> A < B andalso ascends([B | Rest]);
ascends(_) -> true.

%% Returns the value that an operand becomes if there is none before.
spelled_out(statistics, N) when is_number(N) -> {N, N, N, 1};
spelled_out({vector, Merges}, X) ->
    list_to_tuple([spelled_out(M, E) || {M, E} <- lists:zip(Merges, tuple_to_list(X))]);
spelled_out(_, X) -> X.

%% Returns `true' if a key with this value counts as missing.
-spec is_absent(Merge :: term(), term()) -> boolean().
is_absent({prune, Merge}, X) -> is_empty(Merge, X);
is_absent({vector, [_ | _] = Merges}, X) ->
    lists:all(fun({M, E}) -> is_absent(M, E) end, lists:zip(Merges, tuple_to_list(X)));
is_absent(_, _) -> false.

is_empty(sum, X) -> X =:= 0;
is_empty(append, X) -> X =:= [] orelse X =:= <<>>;
is_empty(union, X) -> X =:= [] orelse X =:= #{}.

combined({vector, Merges}, Earlier, Later) when tuple_size(Earlier) =:= length(Merges) ->
    Parts = [
        combined(M, A, B)
     || {M, A, B} <- lists:zip3(Merges, tuple_to_list(Earlier), tuple_to_list(Later))
    ],
    case [Refusal || {refused, _} = Refusal <- Parts] of
        [First | _] -> First;
        [] -> {ok, list_to_tuple([V || {ok, V} <- Parts])}
    end;
combined({vector, _}, _, _) ->
    {refused, value};
combined({prune, Merge}, Earlier, Later) ->
    case {is_empty(Merge, Earlier), is_empty(Merge, Later), takes(Merge, Earlier)} of
        {true, _, _} -> {ok, Later};
        {false, true, true} -> {ok, Earlier};
        {false, _, _} -> combined(Merge, Earlier, Later)
    end;
combined(Merge, Earlier, Later) ->
    case takes(Merge, Earlier) of
        true -> simply(Merge, Earlier, Later);
        false -> {refused, value}
    end.

simply(sum, A, B) ->
    try
        {ok, A + B}
    catch
        error:_ -> {refused, system_limit}
    end;
simply(min, A, B) -> {ok, min(A, B)};
simply(max, A, B) -> {ok, max(A, B)};
simply(first, A, _) -> {ok, A};
simply(last, _, B) -> {ok, B};
simply(replace, _, B) -> {ok, B};
simply({last, N}, A, B) when element(N, A) > element(N, B) -> {ok, A};
simply({last, _}, _, B) -> {ok, B};
simply(statistics, A, B) ->
    {MinA, MaxA, SumA, CountA} = spelled_out(statistics, A),
    {MinB, MaxB, SumB, CountB} = spelled_out(statistics, B),
    case simply(sum, SumA, SumB) of
        {ok, Sum} -> {ok, {min(MinA, MinB), max(MaxA, MaxB), Sum, CountA + CountB}};
        Refused -> Refused
    end;
simply(append, A, B) when is_binary(A), is_binary(B) -> {ok, <<A/binary, B/binary>>};
simply(append, A, B) when is_list(A), is_list(B) -> {ok, A ++ B};
simply(union, A, B) when is_map(A), is_map(B) -> {ok, maps:merge(A, B)};
simply(union, A, B) when is_list(A), is_list(B) -> {ok, lists:umerge(A, B)};
%% `maps:intersect/2', but with keys of the later map. It takes those of the smaller one, which
%% shows where 0.0 and -0.0 are the same.
simply(intersection, A, B) when is_map(A), is_map(B) ->
    {ok, maps:filter(fun(Key, _) -> is_map_key(Key, A) end, B)};
%% Neighbours decide which of two elements that are `==' is in `ordsets:intersection/2'.
simply(intersection, A, B) when is_list(A), is_list(B) ->
    {ok, [X || X <- A, lists:any(fun(Y) -> X == Y end, B)]};
simply(_, _, _) -> {refused, operand}.

%% ----- ranks and ranges -----

rank(T, Key) ->
    check_table(1, T, read, [ordered_set]),
    KeyPos = ets:info(T, keypos),
    length([O || O <- ets:tab2list(T), element(KeyPos, O) < Key]).

nth(T, N) ->
    check_table(1, T, read, [ordered_set]),
    is_rank(N) orelse refuse(#{2 => wrong_rank(N)}),
    at(N, ets:tab2list(T)).

range_nth(T, Low, High, N) -> range_nth(T, Low, High, N, []).

range_nth(T, Low, High, N, Bounds) ->
    check_table(1, T, read, [ordered_set]),
    Wrong =
        [{4, wrong_rank(N)} || not is_rank(N)] ++
            [{5, Text} || Text <- wrong_options(bounds, Bounds)],
    Wrong =:= [] orelse refuse(maps:from_list(Wrong)),
    at(N, between(T, Low, High, Bounds)).

is_rank(N) -> is_integer(N) andalso N =/= 0.

wrong_rank(N) when is_integer(N) -> "out of range";
wrong_rank(_) -> "not an integer".

at(N, Objects) when N < 0 -> at(-N, lists:reverse(Objects));
at(N, Objects) when N =< length(Objects) -> lists:nth(N, Objects);
at(_, _) -> '$end_of_table'.

range_count(T, Low, High) -> range_count(T, Low, High, []).

range_count(T, Low, High, Bounds) ->
    check_table(1, T, read, [ordered_set]),
    check_options(4, bounds, Bounds),
    length(between(T, Low, High, Bounds)).

range_delete(T, Low, High) -> range_delete(T, Low, High, []).

range_delete(T, Low, High, Bounds) ->
    check_table(1, T, write, [ordered_set]),
    check_options(4, bounds, Bounds),
    Objects = between(T, Low, High, Bounds),
    KeyPos = ets:info(T, keypos),
    [true = ets:delete(T, element(KeyPos, O)) || O <- Objects],
    length(Objects).

range(T, Low, High) -> range(T, Low, High, []).

range(T, Low, High, Options) ->
    check_table(1, T, read, [ordered_set]),
    check_options(4, any, Options),
    in_chunks(read(T, between(T, Low, High, Options), Options), Options).

range_fold(Function, Acc, T, Low, High) -> range_fold(Function, Acc, T, Low, High, []).

range_fold(Function, Acc, T, Low, High, Options) ->
    check_table(3, T, read, [ordered_set], [{6, Text} || Text <- wrong_options(any, Options)]),
    is_function(Function, 2) orelse refuse(#{1 => "not a function of two arguments"}),
    check_options(6, any, Options),
    Read = read(T, between(T, Low, High, Options), Options),
    lists:foldl(Function, Acc, lists:sublist(Read, last_of(limit, Options, length(Read)))).

prefix(T, Pattern) -> prefix(T, Pattern, []).

prefix(T, Pattern, Options) ->
    check_table(1, T, read, [ordered_set]),
    check_options(3, no_bounds, Options),
    is_prefix(Pattern) orelse refuse(#{2 => "not a pattern with '_' at its end only"}),
    KeyPos = ets:info(T, keypos),
    Objects = [O || O <- ets:tab2list(T), begins(Pattern, element(KeyPos, O))],
    in_chunks(read(T, Objects, Options), Options).

lookup_elements(T, Key, Positions) ->
    check_table(1, T, read, any),
    is_list_of(fun(P) -> ?IS_SMALL(P) andalso P > 0 end, Positions) orelse
        refuse(#{3 => "not a list of positions"}),
    Objects = ets:lookup(T, Key),
    Objects =/= [] orelse refuse(#{2 => "not a key that exists in the table"}),
    AreThere = lists:all(fun(O) -> lists:max([1 | Positions]) =< tuple_size(O) end, Objects),
    AreThere orelse refuse(#{3 => "a position is greater than the size of the object"}),
    Lists = [[element(P, O) || P <- Positions] || O <- Objects],
    case is_bag(T) of
        true -> Lists;
        false -> hd(Lists)
    end.

lookup_many(T, Keys) -> of_each(read, T, Keys, fun(Key) -> ets:lookup(T, Key) end).

take_many(T, Keys) -> of_each(write, T, Keys, fun(Key) -> ats_reference:take(T, Key) end).

delete_many(T, Keys) ->
    Answers = of_each(write, T, Keys, fun(Key) -> ets:delete(T, Key) end),
    lists:all(fun(Answer) -> Answer end, Answers).

of_each(Access, T, Keys, Answer) ->
    check_table(1, T, Access, any),
    is_list_of(fun(_) -> true end, Keys) orelse refuse(#{2 => "not a list of keys"}),
    [Answer(Key) || Key <- Keys].

%% Returns the objects of a range, in order.
between(T, Low, High, Options) ->
    KeyPos = ets:info(T, keypos),
    IsAbove =
        case last_of(low, Options, inclusive) of
            inclusive -> fun(Key) -> Key >= Low end;
            exclusive -> fun(Key) -> Key > Low end;
            unbounded -> fun(_) -> true end
        end,
    IsBelow =
        case last_of(high, Options, inclusive) of
            inclusive -> fun(Key) -> Key =< High end;
            exclusive -> fun(Key) -> Key < High end;
            unbounded -> fun(_) -> true end
        end,
    IsInside = fun(Key) -> IsAbove(Key) andalso IsBelow(Key) end,
    [O || O <- ets:tab2list(T), IsInside(element(KeyPos, O))].

%% Returns the results for objects, in the order that is asked for.
read(T, Objects, Options) ->
    KeyPos = ets:info(T, keypos),
    Make =
        case [O || O <- lists:reverse(Options), shape(O) =/= none] of
            [Option | _] -> shape(Option);
            [] -> objects
        end,
    Read =
        case Make of
            objects -> Objects;
            keys -> [element(KeyPos, O) || O <- Objects];
            Positions -> [[part(P, O) || P <- Positions] || O <- Objects]
        end,
    case last_of(reverse, proplists:unfold(Options), false) of
        true -> lists:reverse(Read);
        false -> Read
    end.

shape({positions, Positions}) -> Positions;
shape(Shape) when Shape =:= objects; Shape =:= keys -> Shape;
shape(_) -> none.

part(P, Object) when P =< tuple_size(Object) -> element(P, Object);
part(_, _) -> 'EXIT'.

%% A limit makes chunks, all of which are compared.
in_chunks(Read, Options) ->
    case last_of(limit, Options, none) of
        none -> Read;
        Limit -> {chunks, chunks(Read, Limit)}
    end.

chunks([], _) -> [];
chunks(Read, Limit) when length(Read) =< Limit -> [Read];
chunks(Read, Limit) ->
    {Chunk, Rest} = lists:split(Limit, Read),
    [Chunk | chunks(Rest, Limit)].

%% Returns the last value of an option, which wins if options conflict.
last_of(Name, Options, Default) ->
    case [Value || {N, Value} <- Options, N =:= Name] of
        [] -> Default;
        Values -> lists:last(Values)
    end.

check_options(N, Possible, Options) ->
    case wrong_options(Possible, Options) of
        [] -> ok;
        [Text] -> refuse(#{N => Text})
    end.

wrong_options(_, Options) when not is_list(Options) ->
    ["not a list"];
wrong_options(Possible, Options) ->
    IsBound = fun(O) -> is_tuple(O) andalso lists:member(element(1, O), [low, high]) end,
    case is_proper(Options) andalso lists:all(fun is_option/1, Options) of
        false -> [text_of_list(is_proper(Options))];
        true when Possible =:= any -> [];
        true ->
            Bounds = lists:filter(IsBound, Options),
            case Possible of
                bounds when Bounds =/= Options -> ["invalid options (not only bounds)"];
                no_bounds when Bounds =/= [] -> ["invalid options (a prefix has no bounds)"];
                _ -> []
            end
    end.

text_of_list(true) -> "invalid options";
text_of_list(false) -> "not a proper list".

is_option({End, How}) when End =:= low; End =:= high ->
    lists:member(How, [inclusive, exclusive, unbounded]);
is_option({reverse, How}) -> is_boolean(How);
is_option({limit, N}) -> is_integer(N) andalso N > 0;
is_option({positions, Ps}) -> is_list_of(fun(P) -> is_integer(P) andalso P > 0 end, Ps);
is_option(Option) -> lists:member(Option, [reverse, objects, keys]).

%% ----- patterns of keys -----

%% Returns `true' if there are only open parts behind the first one.
-spec is_prefix(term()) -> boolean().
is_prefix(Pattern) ->
    Parts = lists:dropwhile(fun(Part) -> Part =/= '_' end, parts(Pattern)),
    not lists:member(open_map, parts(Pattern)) andalso lists:all(fun(P) -> P =:= '_' end, Parts).

parts('_') -> ['_'];
parts(Tuple) when is_tuple(Tuple) -> [tuple | lists:flatmap(fun parts/1, tuple_to_list(Tuple))];
parts([Head | Tail]) -> [cons | parts(Head) ++ parts(Tail)];
parts(Map) when is_map(Map) ->
    case lists:any(fun has_open/1, maps:to_list(Map)) of
        true -> [open_map];
        false -> [literal]
    end;
parts(_) -> [literal].

has_open(Term) ->
    lists:any(fun(Part) -> Part =:= '_' orelse Part =:= open_map end, parts(Term)).

%% Returns `true' if a key begins as a pattern does.
-spec begins(term(), term()) -> boolean().
begins('_', _) ->
    true;
begins(Pattern, Key) when is_tuple(Pattern), tuple_size(Pattern) =:= tuple_size(Key) ->
    lists:all(
        fun({P, K}) -> begins(P, K) end, lists:zip(tuple_to_list(Pattern), tuple_to_list(Key))
    );
begins([Head | Tail], [KeyHead | KeyTail]) ->
    begins(Head, KeyHead) andalso begins(Tail, KeyTail);
begins(Pattern, Key) ->
    Pattern == Key.

%% ----- refusing -----

%% The table counts more than all other arguments.
check_table(N, T, Access, Types) -> check_table(N, T, Access, Types, []).

%% The same where more can be said besides.
check_table(N, T, Access, Types, Besides) ->
    Probe = make_ref(),
    Asked =
        case Access of
            read -> ats_oracle:call(ets, lookup, [T, Probe]);
            write -> ats_oracle:call(ets, delete, [T, Probe])
        end,
    case Asked of
        {ok, _} when Types =:= any ->
            ok;
        {ok, _} ->
            lists:member(ets:info(T, type), Types) orelse
                refuse(maps:from_list([{N, of_wrong_type()} | Besides]));
        {fail, error, badarg, Stack} ->
            #{1 := Text} = ats_oracle:blame(Stack),
            OwnText = re:replace(Text, "ETS table", "ATS table", [{return, list}]),
            refuse(maps:from_list([{N, OwnText} | Besides]))
    end.

of_wrong_type() ->
    "the table identifier refers to an ATS table of a type not supported by this operation".

-spec refuse(map()) -> no_return().
refuse(Texts) -> refuse(badarg, Texts).

-spec refuse(term(), map()) -> no_return().
refuse(Reason, Texts) ->
    erlang:error(Reason, none, [{error_info, #{module => ?MODULE, cause => Texts}}]).

%% The callback behind `error_info'.
-spec format_error(term(), list()) -> map().
format_error(_, [{_, _, _, Info} | _]) ->
    maps:get(cause, proplists:get_value(error_info, Info)).

%% ----- help -----

is_bag(T) ->
    lists:member(ets:info(T, type), [bag, duplicate_bag]).

is_list_of(Is, [Element | Rest]) -> Is(Element) andalso is_list_of(Is, Rest);
is_list_of(_, End) -> End =:= [].

is_proper(List) -> is_list_of(fun(_) -> true end, List).

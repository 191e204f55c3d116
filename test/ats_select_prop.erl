%% The select family answers as `ets' does: random specifications over random tables.
%%
%% Whole results, chunks of any size in both directions, compiled specifications, counts, deletions and
%% replacements are compared: those of an ordered table as they are, those of hash tables as multisets
%% in which the results of one key keep their order. Exceptions are compared with what they say about
%% which argument.
%%
%% Where `ets' of this release is wrong, the reference is its own interpreter, run on a list of the
%% objects: before Erlang/OTP 27 it looks up a map in the place of the key as if it were a literal.
-module(ats_select_prop).

-include_lib("stdlib/include/assert.hrl").

-export([specs/2, bad_specs/1, replacements/1, compare/3, compare/4]).

-export_type([counts/0]).

%% How many specifications were tried, and how many of them had results, were refused, and so on.
-type counts() :: #{atom() => non_neg_integer()}.
-type case_() :: {ats_spec_gen:table(), Call :: atom(), Arguments :: [term()]}.

-define(SPECS_A_TABLE, 40).

%% Tries so many specifications, with this seed.
-spec specs(pos_integer(), integer()) -> counts().
specs(Count, Seed) ->
    try_tables(Count, Seed, fun(Table, Pair) ->
        Spec = ats_spec_gen:spec(Table),
        All = check(Table, Pair, select, [Spec]),
        _ = check(Table, Pair, select_count, [Spec]),
        _ = [check(Table, Pair, Call, Args) || {Call, Args} <- further_calls(Table, Spec)],
        #{
            specs => 1,
            with_results => sign(All),
            of_several_clauses => sign(tl(Spec))
        }
    end).

sign([_ | _]) -> 1;
sign(_) -> 0.

%% Tries so many things that are no specifications.
-spec bad_specs(pos_integer()) -> counts().
bad_specs(Seed) ->
    try_tables(3000, Seed, fun(Table, Pair) ->
        Spec = ats_spec_gen:bad_spec(Table),
        Call = ats_spec_gen:pick({
            select, select, select_count, select_delete, select_replace, select_reverse, tagged, compile,
            {chunks, 2}, {chunks, 0}, {chunks, x}, match, match_object, match_delete, match_spec_run
        }),
        {Failed, _} = check_either(Table, Pair, Call, [Spec]),
        #{specs => 1, refused => Failed}
    end).

%% Tries so many specifications for select_replace/2.
-spec replacements(pos_integer()) -> counts().
replacements(Seed) ->
    try_tables(6000, Seed, fun(Table, Pair) ->
        Spec = ats_spec_gen:replacement(Table),
        {Failed, Replaced} = check_either(Table, Pair, select_replace, [Spec]),
        #{
            specs => 1,
            refused => Failed,
            replacing => case Replaced of 0 -> 0; _ -> 1 - Failed end
        }
    end).

%% Deletions change the table, so they come last.
further_calls(Table, [{Head, _, _} | _] = Spec) ->
    Limit = ats_spec_gen:pick({1, 1, 2, 3, 5, 10, 100}),
    Reading = {
        {select_reverse, [Spec]},
        {tagged, [Spec]},
        {{chunks, Limit}, [Spec]},
        {{chunks, Limit}, [Spec]},
        {{reverse_chunks, Limit}, [Spec]},
        {compiled, [Spec]},
        {match, [Head]},
        {match_object, [Head]},
        {{match_chunks, Limit}, [Head]},
        {{object_chunks, Limit}, [Head]}
    },
    Changing = {
        {select_delete, [Spec]},
        {select_delete, [[{H, G, [true]} || {H, G, _} <- Spec]]},
        {match_delete, [Head]},
        {select_replace, [ats_spec_gen:replacement(Table)]}
    },
    [
        ats_spec_gen:pick(Reading),
        ats_spec_gen:pick(Reading)
        | [ats_spec_gen:pick(Changing) || rand:uniform(3) =:= 1]
    ].

%% ----- tables -----

try_tables(Count, Seed, Try) ->
    ok = ats_term_gen:prepare(),
    _ = rand:seed(exsss, Seed),
    try_tables(Count, Try, #{}, 0).

try_tables(Count, _, Counts, Done) when Done >= Count ->
    Counts;
try_tables(Count, Try, Counts, Done) ->
    Table = ats_spec_gen:table(),
    Pair = new_pair(Table),
    New = lists:foldl(
        fun(_, Sum) -> maps:merge_with(fun(_, A, B) -> A + B end, Sum, Try(Table, Pair)) end,
        Counts,
        lists:seq(1, ?SPECS_A_TABLE)
    ),
    ok = delete_pair(Pair),
    try_tables(Count, Try, New, Done + ?SPECS_A_TABLE).

new_pair(#{options := Options} = Table) ->
    Pair = {ets:new(reference, Options), ats:new(subject, Options)},
    ok = fill(Table, Pair),
    Pair.

%% One by one, since `ets' may turn lists around.
fill(#{objects := Objects}, {E, A}) ->
    lists:foreach(
        fun(Object) -> ets:insert(E, Object), ats:insert(A, Object) end,
        tuple_to_list(Objects)
    ).

delete_pair({E, A}) ->
    true = ets:delete(E),
    true = ats:delete(A),
    ok.

%% ----- one call -----

%% The result, which both sides agree upon.
check(Table, Pair, Call, Args) ->
    {_, Result} = check_either(Table, Pair, Call, Args),
    Result.

%% The same; the first element tells whether it is an exception.
check_either(Table, Pair, Call, Args) ->
    Case = {Table, Call, Args},
    case compare_on(Pair, Case) of
        {ok, {returned, Result}} -> {0, Result};
        {ok, {raised, _, _} = Raised} -> {1, Raised};
        {difference, _, _} = Difference -> report(Case, Difference)
    end.

compare_on(Pair, Case) ->
    compare_on(Pair, Case, fun(Result) -> Result end).

compare_on({E, A} = Pair, {#{type := Type, keypos := KeyPos} = Table, Call, Args}, Spoil) ->
    Way = way(Call, Args, KeyPos),
    Seed = rand:export_seed(),
    Reference = outcome(fun() -> call(Way, Call, E, KeyPos, Args) end),
    %% The sizes of chunks and the like are the same for both.
    _ = rand:seed(Seed),
    Subject = outcome(fun() -> Spoil(call(ats, Call, A, KeyPos, Args)) end),
    case are_same(Type, Way, Call, Reference, Subject) of
        false ->
            {difference, Reference, Subject};
        true ->
            case is_changing(Call) andalso contents(E, A, Table) of
                false ->
                    {ok, Reference};
                {Same, Same} ->
                    true = ets:delete_all_objects(E),
                    true = ats:delete_all_objects(A),
                    ok = fill(Table, Pair),
                    {ok, Reference};
                {ReferenceContents, SubjectContents} ->
                    {difference, ReferenceContents, SubjectContents}
            end
    end.

%% Which reference is to be asked.
way(Call, [Argument | _], KeyPos) ->
    Spec =
        case is_pattern_call(Call) of
            true -> [{Argument, [], ['$_']}];
            false -> Argument
        end,
    case ats_spec_gen:has_map_in_key(Spec, KeyPos) andalso not has_maps_as_keys() of
        true -> interpreted;
        false -> ets
    end.

has_maps_as_keys() ->
    list_to_integer(erlang:system_info(otp_release)) >= 27.

is_pattern_call({Call, _}) -> Call =:= match_chunks orelse Call =:= object_chunks;
is_pattern_call(Call) -> lists:member(Call, [match, match_object, match_delete]).

is_changing(Call) -> lists:member(Call, [select_delete, select_replace, match_delete]).

outcome(Fun) ->
    try
        {returned, Fun()}
    catch
        error:Reason:Stack when Reason =:= badarg; Reason =:= system_limit ->
            {raised, Reason, ats_oracle:blame(Stack)};
        error:Reason:Stack ->
            {failed, Reason, Stack}
    end.

call(interpreted, Call, T, KeyPos, [Argument]) ->
    interpreted(Call, T, KeyPos, Argument);
call(M, {Chunks, Limit}, T, _, [Spec]) ->
    {First, Next} = functions(Chunks),
    chunks(M, M:First(T, Spec, Limit), Limit, Next, as_spec(Chunks, Spec));
call(M, tagged, T, KeyPos, [Spec]) ->
    M:select(T, tagged(Spec, KeyPos));
call(ets, compiled, T, _, [Spec]) ->
    ets:select(T, Spec);
call(ats, compiled, T, _, [Spec]) ->
    ats:select(T, ats:match_spec_compile(Spec));
call(M, compile, _, _, [Spec]) ->
    M:is_compiled_ms(M:match_spec_compile(Spec));
call(M, match_spec_run, T, _, [Spec]) ->
    M:match_spec_run(lists:sort(M:tab2list(T)), M:match_spec_compile(Spec));
call(M, Function, T, _, Args) ->
    apply(M, Function, [T | Args]).

functions(chunks) -> {select, select};
functions(reverse_chunks) -> {select_reverse, select_reverse};
functions(match_chunks) -> {match, match};
functions(object_chunks) -> {match_object, match_object}.

as_spec(match_chunks, Pattern) -> [{Pattern, [], ['$$']}];
as_spec(object_chunks, Pattern) -> [{Pattern, [], ['$_']}];
as_spec(_, Spec) -> Spec.

%% Results that tell which key they are of.
tagged(Clauses, KeyPos) when is_list(Clauses) ->
    tagged_clauses(Clauses, KeyPos);
tagged(Other, _) ->
    Other.

tagged_clauses([{Head, Guards, [_ | _] = Body} | Clauses], KeyPos) when length(Body) > 0 ->
    Tagged = [{{{element, KeyPos, '$_'}, lists:last(Body)}}],
    [{Head, Guards, lists:droplast(Body) ++ Tagged} | tagged_clauses(Clauses, KeyPos)];
tagged_clauses([Clause | Clauses], KeyPos) ->
    [Clause | tagged_clauses(Clauses, KeyPos)];
tagged_clauses(End, _) ->
    End.

%% All chunks. A continuation works with every function that takes one, and when it comes back from a
%% binary.
chunks(_, '$end_of_table', _, _, _) ->
    [];
chunks(M, {Results, Continuation}, Limit, Next, Spec) ->
    ?assert(length(Results) =< Limit),
    ?assertNotEqual([], Results),
    [Results | chunks(M, next_chunk(M, Continuation, Next, Spec), Limit, Next, Spec)].

next_chunk(M, Continuation, Next, Spec) ->
    case rand:uniform(6) of
        1 ->
            Returned = binary_to_term(term_to_binary(Continuation)),
            M:Next(M:repair_continuation(Returned, Spec));
        2 ->
            Other = ats_spec_gen:pick({select, select_reverse, match, match_object}),
            M:Other(Continuation);
        _ ->
            M:Next(Continuation)
    end.

%% ----- the reference without plans -----

interpreted(Call, T, KeyPos, Argument) ->
    case Call of
        match ->
            run(T, [{Argument, [], ['$$']}]);
        match_object ->
            run(T, [{Argument, [], ['$_']}]);
        match_delete ->
            _ = interpreted(select_delete, T, KeyPos, [{Argument, [], [true]}]),
            true;
        {match_chunks, Limit} ->
            in_chunks(Limit, run(T, [{Argument, [], ['$$']}]));
        {object_chunks, Limit} ->
            in_chunks(Limit, run(T, [{Argument, [], ['$_']}]));
        {chunks, Limit} ->
            in_chunks(Limit, run(T, Argument));
        {reverse_chunks, Limit} ->
            in_chunks(Limit, lists:reverse(run(T, Argument)));
        tagged ->
            run(T, tagged(Argument, KeyPos));
        select_reverse ->
            lists:reverse(run(T, Argument));
        select_count ->
            length([true || true <- run(T, Argument)]);
        select_delete ->
            Compiled = ets:match_spec_compile(Argument),
            IsMeant = fun(O) -> ets:match_spec_run([O], Compiled) =:= [true] end,
            Meant = lists:filter(IsMeant, ets:tab2list(T)),
            lists:foreach(fun(O) -> ets:delete_object(T, O) end, Meant),
            length(Meant);
        select_replace ->
            interpreted_replace(T, KeyPos, Argument);
        Other when Other =:= compile; Other =:= match_spec_run ->
            call(ets, Call, T, KeyPos, [Argument]);
        Other when Other =:= select; Other =:= compiled ->
            run(T, Argument)
    end.

run(T, Spec) ->
    ets:match_spec_run(ets:tab2list(T), ets:match_spec_compile(Spec)).

in_chunks(Limit, _) when not is_integer(Limit); Limit < 1 ->
    error(badarg);
in_chunks(_, []) ->
    [];
in_chunks(Limit, Results) ->
    {Chunk, Rest} = lists:split(min(Limit, length(Results)), Results),
    [Chunk | in_chunks(Limit, Rest)].

%% Whether it is allowed at all, an empty table tells.
interpreted_replace(T, KeyPos, Spec) ->
    Type = ets:info(T, type),
    Empty = ets:new(empty, [Type, {keypos, KeyPos}]),
    try
        0 = ets:select_replace(Empty, Spec)
    after
        ets:delete(Empty)
    end,
    Compiled = ets:match_spec_compile(Spec),
    Changes = [{O, ets:match_spec_run([O], Compiled)} || O <- ets:tab2list(T)],
    Objects = [case New of [N] -> N; [] -> Old end || {Old, New} <- Changes],
    true = ets:delete_all_objects(T),
    lists:foreach(fun(O) -> ets:insert(T, O) end, Objects),
    length([New || {_, [New]} <- Changes]).

%% ----- comparing -----

are_same(_, Way, Call, {raised, Reason, Reference}, {raised, Reason, Subject}) ->
    %% The interpreter runs under other names, and so does what is called in two steps.
    Way =:= interpreted orelse Call =:= compiled orelse
        same_texts(Call, texts(Reference), texts(Subject));
are_same(Type, _, {Chunks, Limit}, {returned, Reference}, {returned, Subject}) ->
    case Type of
        ordered_set ->
            ats_oracle:same(Reference, Subject);
        _ ->
            is_filled(Limit, Subject) andalso
                same_results(Type, Chunks, lists:append(Reference), lists:append(Subject))
    end;
are_same(Type, _, Call, {returned, Reference}, {returned, Subject}) ->
    same_results(Type, Call, Reference, Subject);
are_same(_, _, _, _, _) ->
    false.

same_results(ordered_set, _, Reference, Subject) ->
    ats_oracle:same(Reference, Subject);
same_results(_, tagged, Reference, Subject) ->
    in_order_of_keys(Reference) =:= in_order_of_keys(Subject);
same_results(_, _, Reference, Subject) when is_list(Reference), is_list(Subject) ->
    encoded(Reference) =:= encoded(Subject);
same_results(_, _, Reference, Subject) ->
    Reference =:= Subject.

encoded(Results) -> lists:sort([term_to_binary(R) || R <- Results]).

%% Stable, so that the results of one key stay in their order.
in_order_of_keys(Results) ->
    lists:keysort(1, [{term_to_binary(Key), term_to_binary(R)} || {Key, R} <- Results]).

%% All chunks but the last are as long as was asked for.
is_filled(_, []) -> true;
is_filled(_, [_]) -> true;
is_filled(Limit, [Chunk | Chunks]) -> length(Chunk) =:= Limit andalso is_filled(Limit, Chunks).

%% Of match_delete/2, `ets' speaks as of another function; about patterns it says nothing.
same_texts(match_delete, Reference, Subject) -> maps:keys(Reference) =:= maps:keys(Subject);
same_texts(_, Reference, _) when map_size(Reference) =:= 0 -> true;
same_texts(_, Reference, Subject) -> Reference =:= Subject.

texts(none) ->
    none;
texts(Blame) ->
    maps:map(
        fun(_, Text) ->
            Named = string:replace(unicode:characters_to_list(Text), "ATS", "ETS", all),
            unicode:characters_to_binary(Named)
        end,
        Blame
    ).

%% What is in the tables, in a form that can be compared.
contents(E, A, #{type := Type, keypos := KeyPos}) ->
    {
        {ets:info(E, size), sorted(Type, KeyPos, ets:tab2list(E))},
        {ats:info(A, size), sorted(Type, KeyPos, ats:tab2list(A))}
    }.

sorted(ordered_set, _, Objects) ->
    [term_to_binary(O) || O <- Objects];
sorted(_, KeyPos, Objects) ->
    %% The order within a key counts.
    in_order_of_keys([{element(KeyPos, O), O} || O <- Objects]).

%% ----- reporting -----

%% Makes a difference small, prints it and fails.
-spec report(case_(), term()) -> no_return().
report({Table, Call, Args}, {difference, Reference, Subject}) ->
    ct:pal("first seen:~n~s", [source(Table, Call, Args, Reference, Subject)]),
    %% Random choices must be the same each time; a few seeds find most of them.
    Fails = fun(Objects, [Argument]) ->
        lists:any(
            fun(Seed) ->
                _ = rand:seed(exsss, Seed),
                is_tuple(compare(Table#{objects := list_to_tuple(Objects)}, Call, Argument))
            end,
            lists:seq(1, 5)
        )
    end,
    All = tuple_to_list(maps:get(objects, Table)),
    case Fails(All, Args) of
        false ->
            ct:pal("it does not happen again on a new table");
        true ->
            [Argument] = Args,
            Fewer = ats_shrink:list(All, fun(Objects) -> Fails(Objects, Args) end),
            Smaller =
                case is_list(Argument) andalso length(Argument) >= 0 of
                    true ->
                        ats_shrink:list(
                            Argument,
                            fun(Spec) -> Fails(Fewer, [Spec]) end,
                            fun ats_spec_gen:simpler/1
                        );
                    false ->
                        Argument
                end,
            Least = ats_shrink:list(Fewer, fun(Objects) -> Fails(Objects, [Smaller]) end),
            Small = Table#{objects := list_to_tuple(Least)},
            _ = Fails(Least, [Smaller]),
            case compare(Small, Call, Smaller) of
                {difference, E, A} ->
                    ct:pal("smallest:~n~s", [source(Small, Call, [Smaller], E, A)]);
                ok ->
                    ct:pal("smallest, sometimes:~n~s", [source(Small, Call, [Smaller], '?', '?')])
            end
    end,
    error({difference, Call}).

source(#{objects := Objects, options := Options}, Call, Args, Reference, Subject) ->
    io_lib:format(
        "options ~0tp~nobjects ~0tp~ncall ~0tp~narguments ~0tp~nets ~0tp~nats ~0tp~n",
        [Options, tuple_to_list(Objects), Call, Args, Reference, Subject]
    ).

%% Compares one call on new tables.
-spec compare(ats_spec_gen:table(), atom() | tuple(), term()) -> ok | {difference, term(), term()}.
compare(Table, Call, Argument) ->
    compare(Table, Call, Argument, fun(Result) -> Result end).

%% The same with a result that was spoiled, to see that this is found.
-spec compare(ats_spec_gen:table(), atom() | tuple(), term(), fun((term()) -> term())) ->
    ok | {difference, term(), term()}.
compare(Table, Call, Argument, Spoil) ->
    Pair = new_pair(Table),
    try compare_on(Pair, {Table, Call, [Argument]}, Spoil) of
        {ok, _} -> ok;
        Difference -> Difference
    after
        delete_pair(Pair)
    end.

%% The select family answers as `ets' does: random specifications over random tables.
%%
%% Whole results, chunks of any size in both directions, compiled specifications, counts, deletions
%% and replacements are compared: those of an ordered table as they are, those of hash tables as
%% multisets in which the results of one key keep their order. Exceptions are compared with their
%% texts about arguments.
%%
%% There are two references: `ets', and `ats_select_model', which alone is asked where `ets' of
%% this release is wrong. So nothing is left out.
-module(ats_select_prop).

-include_lib("stdlib/include/assert.hrl").

-export([specs/2, families/2, bad_specs/1, replacements/1, bounded_specs/1]).
-export([new_pair/1, delete_pair/1, excess/4, compare/3, compare/4]).

-export_type([counts/0, difference/0]).

%% The number of specifications that were tried, and of those that had results, were refused, and so
%% on.
-type counts() :: #{atom() => non_neg_integer()}.
-type pair() :: {ets:tid(), ats:tid()}.
-type case_() :: {ats_spec_gen:table(), ats_select_model:call(), [term()]}.
%% The side that was asked, its outcome, and the outcome of `ats'. An outcome is the answer, and the
%% contents of the table after changes.
-type difference() :: {difference, ets | model, tuple(), tuple()}.

-define(SPECS_A_TABLE, 40).

%% Tries `Count' specifications, with this seed.
-spec specs(pos_integer(), integer()) -> counts().
specs(Count, Seed) ->
    try_tables(Count, Seed, fun(Table, Pair) ->
        Spec = ats_spec_gen:spec(Table),
        All = check(Table, Pair, select, [Spec]),
        _ = check(Table, Pair, select_count, [Spec]),
        _ = [check(Table, Pair, Call, Args) || {Call, Args} <- further_calls(Table, Spec)],
        _ = read_for(Pair, Spec, All),
        #{
            specs => 1,
            with_results => sign(All),
            of_several_clauses => sign(tl(Spec)),
            asked_of_ets => case is_right({Table, select, [Spec]}) of true -> 1; false -> 0 end
        }
    end).

sign([_ | _]) -> 1;
sign(_) -> 0.

%% Tries so many families of specifications, with this seed: a call again and again, each time with
%% other literals.
-spec families(pos_integer(), integer()) -> counts().
families(Count, Seed) ->
    try_tables(Count, Seed, fun(Table, Pair) ->
        Call = ats_spec_gen:pick({
            select, select, select, select_count, select_reverse, match, match_object,
            {chunks, 1}, {chunks, 3}, {match_chunks, 2}, select_delete, match_delete,
            select_replace
        }),
        Results = [
            check(Table, Pair, Call, [argument(Call, Spec)])
         || Spec <- ats_spec_gen:family(Table)
        ],
        #{families => 1, with_results => sign([R || R <- Results, R =/= [], R =/= 0])}
    end).

argument(Call, [{Head, _, _}] = Spec) ->
    case is_pattern_call(Call) of
        true -> Head;
        false -> Spec
    end.

%% Tries so many things that are no specifications.
-spec bad_specs(pos_integer()) -> counts().
bad_specs(Seed) ->
    try_tables(3000, Seed, fun(Table, Pair) ->
        Spec = ats_spec_gen:bad_spec(Table),
        Call = ats_spec_gen:pick({
            select, select, select_count, select_delete, select_replace, select_reverse, tagged,
            compile, {chunks, 2}, {chunks, 0}, {chunks, x}, match, match_object, match_delete,
            match_spec_run
        }),
        %% Lists are left to `ets' by `ats' itself.
        Asked =
            case Call =:= match_spec_run andalso not is_right({Table, Call, [Spec]}) of
                true -> compile;
                false -> Call
            end,
        {Failed, _} = check_either(Table, Pair, Asked, [Spec]),
        #{specs => 1, refused => Failed}
    end).

%% Tries `Count' specifications for select_replace/2.
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

%% Tries `Count' specifications that bound the key, and checks that hardly anything else is read.
-spec bounded_specs(pos_integer()) -> counts().
bounded_specs(Seed) ->
    try_tables(6000, Seed, fun(Table, {E, _} = Pair) ->
        {Spec, Within} = ats_bounded_gen:spec(Table),
        All = check(Table, Pair, select, [Spec]),
        #{rows_read := Read} = read_for(Pair, Spec, All),
        Size = ets:info(E, size),
        case excess(Table, Pair, Spec, Within) of
            none -> #{specs => 1, reading => min(Read, 1), sparing => min(Size - Read, 1)};
            Excess -> error({difference, explain, source({Table, explain, [Spec]}, Excess)})
        end
    end).

%% `true' if objects are read whose keys are not within the bounds.
-spec excess(ats_spec_gen:table(), pair(), ets:match_spec(), fun((term()) -> boolean())) ->
    none | difference().
excess(#{type := Type, keypos := KeyPos}, {E, A}, Spec, Within) ->
    Most = length([O || O <- ets:tab2list(E), Within(element(KeyPos, O))]),
    case ats:explain(A, Spec) of
        #{access := everything} = Explained when Type =/= ordered_set ->
            {difference, model, {access, points}, Explained};
        #{rows_read := Read} = Explained when Read > Most ->
            {difference, model, {most, Most}, Explained};
        _ ->
            none
    end.

%% Checks the objects read for a specification that has these results: at least the objects that
%% have them, and no object twice.
read_for({E, A}, Spec, All) when is_list(All) ->
    Explained = #{rows_read := Read, rows_returned := Returned} = ats:explain(A, Spec),
    ?assertEqual({Spec, length(All)}, {Spec, Returned}),
    ?assert(Returned =< Read),
    ?assert(Read =< ets:info(E, size)),
    Explained;
read_for({_, A}, Spec, {raised, Reason, _}) ->
    ?assertError(Reason, ats:explain(A, Spec)).

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

%% A table of `ets' and one of `ats' with the same objects.
-spec new_pair(ats_spec_gen:table()) -> pair().
new_pair(#{options := Options} = Table) ->
    %% An external fun in a compressed table is the end of `ets' of Erlang/OTP 27.
    Pair = {ets:new(reference, Options -- [compressed]), ats:new(subject, Options)},
    ok = fill(Table, Pair),
    Pair.

%% One by one, since `ets' may turn lists around.
fill(#{objects := Objects}, {E, A}) ->
    lists:foreach(
        fun(Object) -> ets:insert(E, Object), ats:insert(A, Object) end,
        tuple_to_list(Objects)
    ).

-spec delete_pair(pair()) -> ok.
delete_pair({E, A}) ->
    true = ets:delete(E),
    true = ats:delete(A),
    ok.

%% ----- one call -----

%% The result, which all sides agree upon.
check(Table, Pair, Call, Args) ->
    {_, Result} = check_either(Table, Pair, Call, Args),
    Result.

%% The same; the first element tells whether it is an exception.
check_either(Table, Pair, Call, Args) ->
    Case = {Table, Call, Args},
    case compare_on(Pair, Case) of
        {ok, {returned, Result}} -> {0, Result};
        {ok, {raised, _, _} = Raised} -> {1, Raised};
        {difference, _, _, _} = Difference -> report(Case, Difference)
    end.

compare_on(Pair, Case) ->
    compare_on(Pair, Case, fun(Result) -> Result end).

compare_on({E, A} = Pair, {#{keypos := KeyPos} = Table, Call, [Argument] = Args} = Case, Spoil) ->
    Contents = ets:tab2list(E),
    %% Random choices in the course of a call are the same for all.
    Seed = rand:export_seed(),
    Answer = outcome(fun() -> Spoil(call(ats, Call, A, KeyPos, Args)) end),
    Subject = {Answer, after_call(Call, ats, A, Table)},
    {Expected, Left} = ats_select_model:answer(Call, Table#{contents => Contents}, Argument),
    Model = {Expected, is_changing(Call) andalso content(Table, Left)},
    Result =
        case are_same(Case, model, Model, Subject) of
            false ->
                {difference, model, Model, Subject};
            true ->
                _ = rand:seed(Seed),
                compare_with_ets(E, Case, Subject)
        end,
    is_changing(Call) andalso restore(Table, Pair),
    Result.

compare_with_ets(E, {#{keypos := KeyPos} = Table, Call, Args} = Case, Subject) ->
    case is_right(Case) of
        true ->
            Expected = outcome(fun() -> call(ets, Call, E, KeyPos, Args) end),
            Reference = {Expected, after_call(Call, ets, E, Table)},
            case are_same(Case, ets, Reference, Subject) of
                true -> {ok, Expected};
                false -> {difference, ets, Reference, Subject}
            end;
        false ->
            {ok, element(1, Subject)}
    end.

restore(Table, {E, A} = Pair) ->
    true = ets:delete_all_objects(E),
    true = ats:delete_all_objects(A),
    fill(Table, Pair).

%% Returns `true' if `ets' can be asked.
is_right({#{type := Type, keypos := KeyPos}, Call, [Argument]}) ->
    Spec =
        case is_pattern_call(Call) of
            true -> [{Argument, [], ['$_']}];
            false -> Argument
        end,
    ats_ets_faults:is_right(Type, KeyPos, Spec).

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

call(M, {Chunks, Limit}, T, _, [Spec]) ->
    {First, Next} = functions(Chunks),
    chunks(M, M:First(T, Spec, Limit), Limit, Next, as_spec(Chunks, Spec));
call(M, tagged, T, KeyPos, [Spec]) ->
    M:select(T, ats_select_model:tagged(Spec, KeyPos));
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

%% All chunks. A continuation works with every function that takes one, and when it comes back
%% from a binary.
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

%% ----- comparing -----

are_same(Case, Asked, {Expected, Contents}, {Answer, Contents}) ->
    is_same_answer(Case, Asked, Expected, Answer);
are_same(_, _, _, _) ->
    false.

is_same_answer({_, Call, _}, Asked, {raised, Reason, Expected}, {raised, Reason, Answer}) ->
    %% The model explains nothing, and calls in two steps are explained in another way.
    Asked =:= model orelse Call =:= compiled orelse
        same_texts(Call, texts(Expected), texts(Answer));
is_same_answer({#{type := ordered_set}, _, _}, _, {returned, Expected}, {returned, Answer}) ->
    ats_oracle:same(Expected, Answer);
is_same_answer({_, {_, Limit}, _}, _, {returned, Expected}, {returned, Answer}) ->
    is_filled(Limit, Answer) andalso
        same_results(chunks, lists:append(Expected), lists:append(Answer));
is_same_answer({_, Call, _}, _, {returned, Expected}, {returned, Answer}) ->
    same_results(Call, Expected, Answer);
is_same_answer(_, _, _, _) ->
    false.

%% Results of tables without order.
same_results(tagged, Expected, Answer) ->
    in_order_of_keys(Expected) =:= in_order_of_keys(Answer);
same_results(_, Expected, Answer) when is_list(Expected), is_list(Answer) ->
    encoded(Expected) =:= encoded(Answer);
same_results(_, Expected, Answer) ->
    Expected =:= Answer.

encoded(Results) -> lists:sort([term_to_binary(R) || R <- Results]).

%% Stable, so that the results of one key stay in their order.
in_order_of_keys(Results) ->
    lists:keysort(1, [{term_to_binary(Key), term_to_binary(R)} || {Key, R} <- Results]).

%% All chunks but the last are as long as was asked for.
is_filled(_, []) -> true;
is_filled(_, [_]) -> true;
is_filled(Limit, [Chunk | Chunks]) -> length(Chunk) =:= Limit andalso is_filled(Limit, Chunks).

%% The text of `ets' for match_delete/2 is about another function, and says nothing about patterns.
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

%% Returns the content of a table after a call that changes it, in a form that can be compared.
after_call(Call, M, T, Table) ->
    is_changing(Call) andalso
        begin
            Objects = M:tab2list(T),
            ?assertEqual(length(Objects), M:info(T, size)),
            ok = find_all(M, T, Table, Objects),
            content(Table, Objects)
        end.

%% Keys lead to the objects that are there, and to none that were there.
find_all(M, T, #{type := Type, keypos := KeyPos, objects := Before}, Objects) ->
    Key = fun(Object) -> element(KeyPos, Object) end,
    IsSame =
        case Type of
            ordered_set -> fun(A, B) -> A == B end;
            _ -> fun(A, B) -> A =:= B end
        end,
    lists:foreach(
        fun(K) -> ?assertEqual([O || O <- Objects, IsSame(Key(O), K)], M:lookup(T, K)) end,
        lists:usort(lists:map(Key, tuple_to_list(Before)))
    ).

content(#{type := ordered_set}, Objects) ->
    [term_to_binary(O) || O <- Objects];
content(#{keypos := KeyPos}, Objects) ->
    %% The order within a key counts.
    in_order_of_keys([{element(KeyPos, O), O} || O <- Objects]).

%% ----- reporting -----

%% Shrinks a difference and fails with the result.
-spec report(case_(), tuple()) -> no_return().
report({Table, Call, [Argument]} = Case, Difference) ->
    First = source(Case, Difference),
    Smallest =
        case is_failing(Table, Call, Argument) of
            false -> <<"it does not happen again on a new table\n">>;
            true -> smallest(Table, Call, Argument)
        end,
    error({difference, Call, <<"first seen:\n", First/binary, "smallest:\n", Smallest/binary>>}).

smallest(#{objects := Objects} = Table, Call, Argument) ->
    Fewer = fewer(Table, Call, Argument, tuple_to_list(Objects)),
    Simpler =
        case is_list(Argument) andalso length(Argument) >= 0 of
            true ->
                Fails = fun(Spec) -> is_failing(with(Table, Fewer), Call, Spec) end,
                ats_shrink:list(Argument, Fails, fun ats_spec_gen:simpler/1);
            false ->
                Argument
        end,
    Small = with(Table, fewer(Table, Call, Simpler, Fewer)),
    _ = is_failing(Small, Call, Simpler),
    source({Small, Call, [Simpler]}, compare(Small, Call, Simpler)).

fewer(Table, Call, Argument, Objects) ->
    ats_shrink:list(Objects, fun(Few) -> is_failing(with(Table, Few), Call, Argument) end).

with(Table, Objects) -> Table#{objects := list_to_tuple(Objects)}.

%% Random choices must be the same each time; a few seeds find most of them.
is_failing(Table, Call, Argument) ->
    lists:any(
        fun(Seed) ->
            _ = rand:seed(exsss, Seed),
            is_tuple(compare(Table, Call, Argument))
        end,
        lists:seq(1, 5)
    ).

source({#{objects := Objects, options := Options}, Call, [Argument]}, Difference) ->
    {difference, Asked, Expected, Answer} =
        case Difference of
            ok -> {difference, sometimes, '?', '?'};
            _ -> Difference
        end,
    Text = io_lib:format(
        "~p ~0tp~nats ~0tp~ncall ~0tp~nargument ~0tp~noptions ~0tp~nobjects ~0tp~n",
        [Asked, Expected, Answer, Call, Argument, Options, tuple_to_list(Objects)]
    ),
    unicode:characters_to_binary(Text).

%% Compares one call on new tables.
-spec compare(ats_spec_gen:table(), ats_select_model:call(), term()) -> ok | difference().
compare(Table, Call, Argument) ->
    compare(Table, Call, Argument, fun(Result) -> Result end).

%% The same with a result that was spoiled, to see that this is found.
-spec compare(
    ats_spec_gen:table(), ats_select_model:call(), term(), fun((term()) -> term())
) -> ok | difference().
compare(Table, Call, Argument, Spoil) ->
    Pair = new_pair(Table),
    try compare_on(Pair, {Table, Call, [Argument]}, Spoil) of
        {ok, _} -> ok;
        Difference -> Difference
    after
        delete_pair(Pair)
    end.

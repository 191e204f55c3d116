%% The functions of the select family, on a list of objects.
%%
%% `ats_spec_model' has the results for the objects; this module decides which of them are returned
%% and how the objects change.
-module(ats_select_model).

-export([answer/3, tagged/2]).

-export_type([table/0, outcome/0, call/0]).

-type table() :: #{
    type := ets:type(),
    keypos := pos_integer(),
    %% The objects in the order in which a traversal meets them.
    contents := [tuple()],
    _ => _
}.
-type call() ::
    atom() | {chunks | reverse_chunks | match_chunks | object_chunks, Limit :: term()}.
-type outcome() :: {returned, term()} | {raised, badarg, none}.

%% Returns the result of a function for a specification or a pattern, and the objects that are there
%% afterwards.
-spec answer(call(), table(), term()) -> {outcome(), [tuple()]}.
answer(Call, #{contents := Objects} = Table, Argument) ->
    Spec = spec(Call, Table, Argument),
    Met =
        case Call of
            match_spec_run -> lists:sort(Objects);
            _ -> Objects
        end,
    case is_accepted(Call, Table, Spec) of
        true ->
            Runs = [{Object, ats_spec_model:run(Spec, Object)} || Object <- Met],
            {Result, After} = accepted(Call, Table, Runs),
            {{returned, Result}, After};
        false ->
            {{raised, badarg, none}, Objects}
    end.

%% Returns the specification with which the call selects.
spec(match, _, Pattern) -> [{Pattern, [], ['$$']}];
spec({match_chunks, _}, _, Pattern) -> [{Pattern, [], ['$$']}];
spec(match_object, _, Pattern) -> [{Pattern, [], ['$_']}];
spec({object_chunks, _}, _, Pattern) -> [{Pattern, [], ['$_']}];
spec(match_delete, _, Pattern) -> [{Pattern, [], [true]}];
spec(tagged, #{keypos := KeyPos}, Spec) -> tagged(Spec, KeyPos);
spec(_, _, Spec) -> Spec.

%% Only functions that compile a specification refuse an empty one.
is_accepted(Call, Table, Spec) ->
    IsValid = ats_spec_model:is_valid(Spec) orelse (Spec =:= [] andalso not is_compiling(Call)),
    IsValid andalso is_accepted(Call, Table) andalso
        (Call =/= select_replace orelse
            ats_spec_model:keeps_key(Spec, maps:get(keypos, Table))).

is_accepted({_, Limit}, _) -> is_integer(Limit) andalso Limit > 0;
is_accepted(select_replace, #{type := Type}) -> Type =/= bag;
is_accepted(_, _) -> true.

is_compiling(Call) -> lists:member(Call, [compile, compiled, match_spec_run]).

accepted(compile, _, Runs) -> {true, objects(Runs)};
accepted(select_count, _, Runs) -> {length([true || true <- results(Runs)]), objects(Runs)};
accepted(match_delete, _, Runs) -> {true, left(Runs)};
accepted(select_delete, _, Runs) -> {length(Runs) - length(left(Runs)), left(Runs)};
accepted(select_replace, _, Runs) -> {length(results(Runs)), [replaced(Run) || Run <- Runs]};
accepted(select_reverse, Table, Runs) -> {reversed(Table, results(Runs)), objects(Runs)};
accepted({reverse_chunks, Limit}, Table, Runs) ->
    {in_chunks(Limit, reversed(Table, results(Runs))), objects(Runs)};
accepted({_, Limit}, _, Runs) -> {in_chunks(Limit, results(Runs)), objects(Runs)};
accepted(_, _, Runs) -> {results(Runs), objects(Runs)}.

objects(Runs) -> [Object || {Object, _} <- Runs].

results(Runs) -> [Result || {_, {value, Result}} <- Runs].

left(Runs) -> [Object || {Object, Result} <- Runs, Result =/= {value, true}].

replaced({_, {value, New}}) -> New;
replaced({Object, none}) -> Object.

reversed(#{type := ordered_set}, Results) -> lists:reverse(Results);
reversed(_, Results) -> Results.

in_chunks(_, []) ->
    [];
in_chunks(Limit, Results) ->
    {Chunk, Rest} = lists:split(min(Limit, length(Results)), Results),
    [Chunk | in_chunks(Limit, Rest)].

%% The specification with results that tell their key; any other term stays as it is.
-spec tagged(term(), pos_integer()) -> term().
tagged([{Head, Guards, [_ | _] = Body} | Clauses], KeyPos) when length(Body) > 0 ->
    Tagged = [{{{element, KeyPos, '$_'}, lists:last(Body)}}],
    [{Head, Guards, lists:droplast(Body) ++ Tagged} | tagged(Clauses, KeyPos)];
tagged([Clause | Clauses], KeyPos) ->
    [Clause | tagged(Clauses, KeyPos)];
tagged(End, _) ->
    End.

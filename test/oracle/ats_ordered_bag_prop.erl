%% Random programs on an `ordered_bag' or an `ordered_duplicate_bag', compared with
%% `ats_ordered_bag_model', command by command.
%%
%% A program is plain data, as those of `ats_oracle'. All kinds of terms are keys, most of them few
%% enough to meet again; in some programs a few keys have hundreds of objects. Queries are run in
%% slices that end after an amount of work that the program sets, so that they end anywhere.
-module(ats_ordered_bag_prop).

-include_lib("proper/include/proper.hrl").

-export([prop_programs/0, prop_many_of_a_key/0, run/1]).
-export([start_counting/0, commands_done/0]).

-define(COUNTER, {?MODULE, commands}).
%% More work than any query.
-define(NEVER, 1_000_000).

-spec start_counting() -> ok.
start_counting() ->
    persistent_term:put(?COUNTER, counters:new(1, [])).

-spec commands_done() -> non_neg_integer().
commands_done() ->
    counters:get(persistent_term:get(?COUNTER), 1).

prop_programs() ->
    holds_for(program(command(key(), object()))).

prop_many_of_a_key() ->
    holds_for(program(command(hot_key(), hot_object()))).

holds_for(Programs) ->
    ?FORALL(
        {Table, Commands},
        Programs,
        begin
            counters:add(persistent_term:get(?COUNTER), 1, length(Commands)),
            Verdict = run({Table, Commands}),
            ?WHENFAIL(report(Table, Commands), Verdict =:= ok)
        end
    ).

report(Table, Commands) ->
    Fails = fun(Some) -> run({Table, Some}) =/= ok end,
    Small = ats_shrink:list(Commands, Fails, fun simpler/1),
    Told = [{F, [realize(A) || A <- Args]} || {F, Args} <- Small],
    io:format(user, "~0tp:~n~tp~n~tp~n", [Table, Told, run({Table, Small})]).

simpler({F, Args}) ->
    [{F, Simpler} || {_, F1, Simpler} <- ats_shrink:recipes({a, F, Args}), F1 =:= F].

%% ----- running -----

%% `ok', or the command that is answered in another way than the model does.
-spec run({term(), [{atom(), list()}]}) -> ok | {difference, tuple()}.
run({{Type, KeyPos, Options, Ticks}, Commands}) ->
    ok = ats_term_gen:prepare(),
    Subject = ats_oracle:subject(),
    T = ats_test_lib:adapting(Subject:new(ordered_bag, [Type, {keypos, KeyPos} | Options])),
    force_slices(Subject, Ticks),
    try
        Left = commands(Commands, T, ats_ordered_bag_model:new(Type, KeyPos)),
        compare_all(T, Left)
    catch
        throw:{difference, _} = Difference -> Difference
    after
        force_slices(Subject, 0),
        Subject:delete(T)
    end.

force_slices(ats, Ticks) -> true = ats_nif:force_slices(Ticks);
force_slices(_, _) -> true.

commands(Commands, T, Model) ->
    lists:foldl(
        fun({F, Args}, Before) -> step(F, [realize(A) || A <- Args], T, Before) end,
        Model,
        Commands
    ).

step(safe_fixtable, [Fix], T, Model) ->
    true = (ats_oracle:subject()):safe_fixtable(T, Fix),
    Model;
step(F, Args, T, Model) when F =:= foldl; F =:= foldr ->
    %% A fold fails behind the key '$end_of_table', as it does in an `ordered_set'.
    case ats_ordered_bag_model:call(member, ['$end_of_table'], Model) of
        {{ok, true}, _} -> Model;
        {{ok, false}, _} -> compare(F, Args, T, Model)
    end;
step(F, Args, T, Model) ->
    compare(F, Args, T, Model).

compare(F, Args, T, Model) ->
    {Expected, After} = ats_ordered_bag_model:call(F, Args, Model),
    Answer = answer(F, Args, T),
    ats_oracle:same(Expected, Answer) orelse
        throw({difference, {F, Args, {expected, Expected}, {found, Answer}}}),
    After.

compare_all(T, Model) ->
    Calls =
        [
            {tab2list, []},
            {foldl, [fun cons/2, []]},
            {foldr, [fun cons/2, []]},
            {info, [size]},
            {info, [type]},
            {rank, [<<1:1>>]},
            {select_reverse, [[{'_', [], ['$_']}]]}
        ],
    lists:foreach(fun({F, Args}) -> step(F, Args, T, Model) end, Calls).

answer(F, Args, T) ->
    Subject = ats_oracle:subject(),
    try
        chunks(Subject, F, Args, apply(Subject, F, with_table(F, T, Args)))
    catch
        error:badarg -> badarg
    end.

with_table(F, T, [Function, Acc | Rest]) when F =:= foldl; F =:= foldr; F =:= range_fold ->
    [Function, Acc, T | Rest];
with_table(_, T, Args) ->
    [T | Args].

%% A chunk is compared with all that follow.
chunks(Subject, F, Args, Answer) ->
    case is_in_chunks(F, Args) of
        true -> {ok, {chunks, all_chunks(Subject, Answer)}};
        false -> {ok, Answer}
    end.

is_in_chunks(F, [_, _]) when F =:= select; F =:= select_reverse -> true;
is_in_chunks(F, Args) when F =:= range; F =:= prefix ->
    lists:keymember(limit, 1, lists:last(Args));
is_in_chunks(_, _) -> false.

all_chunks(_, '$end_of_table') -> [];
all_chunks(Subject, {Chunk, Continuation}) ->
    [Chunk | all_chunks(Subject, Subject:select(Continuation))].

cons(Object, Acc) -> [Object | Acc].

realize({recipe, Recipe}) -> ats_term_gen:realize(Recipe);
realize({recipes, Recipes}) -> [ats_term_gen:realize(R) || R <- Recipes];
realize({raw, Term}) -> Term.

%% ----- generators -----

program(Command) ->
    {table(), ?SIZED(S, resize(25 + S, list(resize(S, Command))))}.

table() ->
    {
        elements([ordered_bag, ordered_duplicate_bag]),
        frequency([{4, 1}, {1, 2}]),
        list(elements([compressed, {write_concurrency, true}, {write_concurrency, auto}])),
        frequency([{2, ?NEVER}, {3, integer(1, 20)}])
    }.

key() -> {recipe, ats_term_gen:key()}.
object() -> ats_term_gen:object().

hot_key() ->
    {recipe, ?LET(K, frequency([{6, a}, {3, 1}, {2, 1.0}, {1, "key"}, {1, absent}]), {lit, K})}.

hot_object() ->
    ?LET({{recipe, K}, N}, {hot_key(), value()}, {tuple, [K, {lit, N}]}).

value() ->
    frequency([{8, integer(1, 400)}, {1, float(1.0, 4.0)}, {1, "a text"}]).

objects(Object) ->
    frequency([
        {6, ?LET(O, Object, {recipe, O})},
        {6, ?LET(L, list(Object), {recipes, L})},
        {1, ?LET(L, vector(60, Object), {recipes, L})},
        {1, ?LET({L, K}, {list(Object), ats_term_gen:key()}, {recipes, L ++ [K]})}
    ]).

command(Key, Object) ->
    One = ?LET(O, Object, {recipe, O}),
    All = objects(Object),
    Pos = {raw, integer(0, 4)},
    Spec = {raw, spec()},
    Limit = {raw, integer(1, 30)},
    frequency([
        {20, {insert, [All]}},
        {4, {insert_new, [All]}},
        {6, {lookup, [Key]}},
        {2, {lookup_element, [Key, Pos]}},
        {2, {lookup_element, [Key, Pos, {raw, default}]}},
        {1, {lookup_elements, [Key, {raw, list(integer(1, 3))}]}},
        {2, {member, [Key]}},
        {3, {delete, [Key]}},
        {4, {delete_object, [One]}},
        {3, {take, [Key]}},
        {1, {delete_all_objects, []}},
        {1, {take_all_objects, []}},
        {2, {oneof([take_first, take_last]), []}},
        {3, {oneof([first, last, first_lookup, last_lookup]), []}},
        {6, {oneof([next, prev, next_lookup, prev_lookup]), [Key]}},
        {1, {oneof([tab2list]), []}},
        {1, {oneof([foldl, foldr]), [{raw, fun cons/2}, {raw, []}]}},
        {1, {info, [{raw, oneof([size, type])}]}},
        {2, {slot, [{raw, oneof([integer(0, 5), integer(0, 300), a, -1])}]}},
        {2, {safe_fixtable, [{raw, boolean()}]}},
        {1, {update_counter, [Key, {raw, 1}]}},
        {1, {update_element, [Key, {raw, {2, 1}}]}},
        {1, {merge, [Key, {raw, 1}, {raw, sum}]}},
        {3, {select, [Spec]}},
        {3, {select_reverse, [Spec]}},
        {4, {oneof([select, select_reverse]), [Spec, Limit]}},
        {1, {select_count, [Spec]}},
        {1, {select_delete, [Spec]}},
        {1, {select_take, [Spec]}},
        {2, {select_replace, [{raw, replacing_spec()}]}},
        {2, {oneof([match, match_object, match_delete]), [{raw, pattern()}]}},
        {2, {rank, [Key]}},
        {2, {nth, [{raw, any_rank()}]}},
        {2, {range_nth, [Key, Key, {raw, any_rank()}, {raw, bounds()}]}},
        {2, {range_count, [Key, Key, {raw, bounds()}]}},
        {1, {range_delete, [Key, Key, {raw, bounds()}]}},
        {4, {range, [Key, Key, {raw, range_options()}]}},
        {1, {range_fold, [{raw, fun cons/2}, {raw, []}, Key, Key, {raw, range_options()}]}},
        {1, {prefix, [{raw, oneof([{'_', '_'}, {a, '_'}, [$k | '_'], {1, '_'}])}, {raw, shape()}]}}
    ]).

any_rank() -> oneof([integer(-5, 5), integer(-300, 300)]).

bounds() ->
    ?LET(
        {Low, High},
        {oneof([inclusive, exclusive, unbounded]), oneof([inclusive, exclusive, unbounded])},
        [{low, Low}, {high, High}]
    ).

range_options() -> ?LET({Bounds, Shape}, {bounds(), shape()}, Bounds ++ Shape).

shape() ->
    ?LET(
        {Reverse, Keys, Limit},
        {oneof([[], [reverse]]), oneof([[], [keys]]), oneof([[], [{limit, integer(1, 30)}]])},
        Reverse ++ Keys ++ Limit
    ).

%% A head has no map: `ets' would not give the same for all objects.
pattern() ->
    Element = frequency([
        {3, '_'},
        {3, '$1'},
        {2, '$2'},
        {2, elements([a, b, 1, 1.0, 2, 1 bsl 64, "key", {1, a}, <<"binary">>])}
    ]),
    frequency([
        {1, '_'},
        {8, ?LET(N, elements([1, 2, 2, 3]), ?LET(L, vector(N, Element), list_to_tuple(L)))}
    ]).

spec() ->
    frequency([
        {12, ?LET({Head, Guards, Body}, {pattern(), guards(), body()}, [{Head, Guards, Body}])},
        {4, elements([[{'_', [], ['$_']}], [{'_', [], [true]}]])},
        {1, elements([a, [{a, [], [true]}, b], [{'_', [], []}]])}
    ]).

guards() ->
    Operand = elements(['$1', '$1', '$2', 0, 1, 100, 2.0, a]),
    frequency([
        {3, []},
        {4, [{elements(['<', '>=', '=:=', '==', '/=']), Operand, Operand}]},
        {1, [{elements([is_integer, is_atom, is_tuple]), Operand}]}
    ]).

body() ->
    elements([['$_'], ['$$'], ['$1'], [true], [true], [{{'$1', '$_'}}], [{'>', '$1', 1}]]).

replacing_spec() ->
    oneof([
        [{'$1', [], ['$1']}],
        [{{'$1', '$2'}, guards(), [{{'$1', '$2'}}]}],
        [{{'$1', '$2'}, [{is_integer, '$2'}], [{{'$1', {'+', '$2', 1}}}]}],
        [{{'$1', '$2'}, [], [{{{const, new}, '$2'}}]}],
        [{{'$1', '$2', '$3'}, [], [{{'$1', '$3', '$2'}}]}]
    ]).

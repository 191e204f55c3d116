%% The properties of the oracle: random programs, programs with bags of many objects a key or with
%% functions that `ets' lacks, bulk contents, and traversals under change.
%%
%% Each property adds the table operations it compared to a counter, see `commands_done/0'.
-module(ats_oracle_prop).

-include_lib("proper/include/proper.hrl").

-export([prop_programs/0, prop_bags/0, prop_beyond/0, prop_bulk/0, prop_traversal/0]).
-export([start_counting/0, commands_done/0]).
-export([check_bulk/2, check_traversal/2]).

-define(COUNTER, {?MODULE, commands}).
-define(TABLES, 3).

-spec start_counting() -> ok.
start_counting() ->
    persistent_term:put(?COUNTER, counters:new(1, [])).

-spec commands_done() -> non_neg_integer().
commands_done() ->
    counters:get(persistent_term:get(?COUNTER), 1).

count(N) ->
    counters:add(persistent_term:get(?COUNTER), 1, N).

%% ----- programs of commands -----

%% Every command of a program answers as `ets' would.
prop_programs() ->
    holds_for(program()).

%% The same of programs whose bags have hundreds of objects under a few keys.
prop_bags() ->
    holds_for(bag_program()).

%% The same for programs with functions that `ets' lacks, on tables of many objects.
prop_beyond() ->
    holds_for(beyond_program()).

holds_for(Programs) ->
    ?FORALL(
        Program,
        Programs,
        begin
            count(length(Program)),
            Verdict = ats_oracle:run(Program),
            ?WHENFAIL(report_program(Program, Verdict), Verdict =:= ok)
        end
    ).

report_program(Program, First) ->
    report("first seen: ~0tp", [First]),
    Fails = fun(P) -> ats_oracle:run(P) =/= ok end,
    Small = ats_shrink:list(Program, Fails, fun ats_shrink:recipes/1),
    report("smallest: ~n~ts~n~0tp", [ats_oracle:source(Small), ats_oracle:run(Small)]).

program() ->
    ?LET(
        {Setup, Commands},
        {[first_table(1), first_table(2)], ?SIZED(S, resize(25 + S, list(resize(S, command()))))},
        Setup ++ Commands
    ).

first_table(I) ->
    {actor(), {new, I}, [{name, I}, {options, good_options()}]}.

actor() ->
    frequency([{6, a}, {1, b}]).

%% Processes that fix tables, one of which does nothing else and dies more often than others.
fixer() ->
    elements([a, b, c, c]).

good_options() ->
    ?LET(
        {Type, Protection, KeyPos, Named, Tuning},
        {
            elements([set, ordered_set, bag, duplicate_bag, set, ordered_set]),
            frequency([{4, public}, {3, protected}, {1, private}]),
            frequency([{6, 1}, {2, 2}, {1, 3}]),
            frequency([{3, []}, {1, [named_table]}]),
            list(tuning())
        },
        [Type, Protection, {keypos, KeyPos}] ++ Named ++ Tuning
    ).

tuning() ->
    oneof([
        {write_concurrency, elements([true, false, auto])},
        {read_concurrency, boolean()},
        {decentralized_counters, boolean()},
        compressed,
        {heir, none},
        {heir, elements([a, b, c]), gift()}
    ]).

%% Options in any order and number, sometimes wrong.
any_options() ->
    list(
        frequency([
            {3, elements([set, ordered_set, bag, duplicate_bag])},
            {3, elements([public, protected, private])},
            {3, tuning()},
            {2, {keypos, integer(1, 4)}},
            {1, named_table},
            {1,
                elements([
                    {keypos, 0},
                    {keypos, -1},
                    {keypos, a},
                    {keypos, 1 bsl 64},
                    {write_concurrency, 1},
                    {write_concurrency, {debug_hash_fixed_number_of_locks, 128}},
                    {write_concurrency, {debug_hash_fixed_number_of_locks, 0}},
                    {read_concurrency, auto},
                    {heir, nobody, 1},
                    {heir},
                    unknown,
                    1,
                    "x",
                    {named_table, true}
                ])}
        ])
    ).

command() ->
    frequency([
        {14, ?LAZY(?LET(T, table(), command(insert, [T, objects()])))},
        {5, ?LAZY(?LET(T, table(), command(insert_new, [T, objects()])))},
        {6, ?LAZY(command(lookup, [table(), key()]))},
        {3, ?LAZY(command(lookup_element, [table(), key(), position()]))},
        {3, ?LAZY(command(lookup_element, [table(), key(), position(), value()]))},
        {3, ?LAZY(command(member, [table(), key()]))},
        {5, ?LAZY(command(delete, [table(), key()]))},
        {4, ?LAZY(command(delete_object, [table(), object()]))},
        {4, ?LAZY(command(take, [table(), key()]))},
        {1, ?LAZY(command(delete_all_objects, [table()]))},
        {2, ?LAZY(command(first, [table()]))},
        {2, ?LAZY(command(last, [table()]))},
        {3, ?LAZY(command(next, [table(), key()]))},
        {3, ?LAZY(command(prev, [table(), key()]))},
        {2, ?LAZY(command(first_lookup, [table()]))},
        {2, ?LAZY(command(last_lookup, [table()]))},
        {3, ?LAZY(command(next_lookup, [table(), key()]))},
        {3, ?LAZY(command(prev_lookup, [table(), key()]))},
        {5, ?LAZY(command(update_counter, [table(), key(), counter_ops()]))},
        {5, ?LAZY(command(update_counter, [table(), key(), counter_ops(), default()]))},
        {4, ?LAZY(command(update_element, [table(), key(), element_specs()]))},
        {4, ?LAZY(command(update_element, [table(), key(), element_specs(), default()]))},
        {2, ?LAZY(command(tab2list, [table()]))},
        {2, ?LAZY(command(foldl, [collector(), {raw, []}, table()]))},
        {2, ?LAZY(command(foldr, [collector(), {raw, []}, table()]))},
        {1, ?LAZY(command(info, [table()]))},
        {3, ?LAZY(command(info, [table(), {raw, info_item()}]))},
        {1, ?LAZY(command(whereis, [frequency([{4, name()}, {1, key()}])]))},
        {1, ?LAZY(command(rename, [table(), frequency([{4, name()}, {1, not_an_atom()}])]))},
        {1, ?LAZY(command(all, []))},
        {1, ?LAZY(command(give_away, [table(), recipient(), {raw, gift()}]))},
        {3, ?LAZY(command(setopts, [table(), changes()]))},
        {2, ?LAZY({fixer(), safe_fixtable, [table(), {raw, fix()}]})},
        {2, ?LAZY(command(slot, [table(), {raw, slot()}]))},
        {2, ?LAZY(command(select, [table(), {raw, spec()}]))},
        {1, ?LAZY(command(select_reverse, [table(), {raw, spec()}]))},
        {2, ?LAZY(command(select_count, [table(), {raw, spec()}]))},
        {2, ?LAZY(command(select_delete, [table(), {raw, spec()}]))},
        {2, ?LAZY(command(select_replace, [table(), {raw, replacing_spec()}]))},
        {1, ?LAZY(command(match, [table(), {raw, pattern()}]))},
        {1, ?LAZY(command(match_object, [table(), {raw, pattern()}]))},
        {1, ?LAZY(command(match_delete, [table(), {raw, pattern()}]))},
        {1, ?LAZY(command(select_take, [table(), {raw, spec()}]))},
        {1, ?LAZY(command(take_all_objects, [table()]))},
        {2, ?LAZY(command(elements([take_first, take_last]), [table()]))},
        {3, ?LAZY(beyond_command(table(), key(), recipe(prefix())))},
        {1, ?LAZY(command(delete, [table()]))},
        {2, ?LAZY(new_table(good_options()))},
        {1, ?LAZY(new_table(any_options()))},
        {1, ?LAZY({kill, elements([a, b, c, c])})}
    ]).

command(Function, Args) ->
    {actor(), Function, Args}.

new_table(Options) ->
    ?LET(I, integer(1, ?TABLES), command({new, I}, [name(), {options, Options}])).

fix() ->
    frequency([{9, boolean()}, {1, 'maybe'}]).

%% A process that gives a table away gets it back sooner or later. Otherwise the rest of the program
%% would be errors.
recipient() ->
    frequency([
        {6, {actor, elements([a, a, b, c])}},
        {1, {recipe, elements([{exotic, pid, 2}, {exotic, external_pid, 1}, {lit, nobody}])}}
    ]).

gift() ->
    elements([gift, {1.0, "gift"}, <<"gift">>]).

changes() ->
    oneof([{option, change()}, {options, list(change())}]).

change() ->
    frequency([
        {4, {heir, elements([a, b, c]), gift()}},
        {2, {heir, none}},
        {6, {protection, elements([public, public, protected, private])}},
        {1, elements([public, {heir, a}, {heir, none, 1}, {protection, all}, {keypos, 2}, 1])}
    ]).

%% Specifications in the midst of everything else. There is one clause in each, and no map in a
%% head, since `ets' may overlook objects otherwise; other tests try all that specifications can
%% say.
spec() ->
    frequency([
        {12, ?LET({Head, Guards, Body}, {pattern(), guards(), body()}, [{Head, Guards, Body}])},
        {1, elements([[], [{'_', [], [true]}], [a], a, [{a, [], [true]}, b], [{'_', [], []}]])}
    ]).

%% Most of them keep the key, wherever that is.
replacing_spec() ->
    Kept = oneof([
        [{'$1', [], ['$1']}],
        [{{'$1', '$2'}, guards(), [{{'$1', '$2'}}]}],
        [{{'$1', '$2'}, [{is_integer, '$2'}], [{{'$1', {'+', '$2', 1}}}]}],
        [{{'$1', '$2'}, [], [{{{const, new}, '$2'}}]}],
        [{{'$1', '$2', '$3'}, [], [{{'$1', '$3', '$2'}}]}],
        [{{'$1', '$2', '$3'}, [], [{{'$3', '$2', '$1'}}]}]
    ]),
    frequency([{4, Kept}, {1, spec()}]).

pattern() ->
    Element = frequency([
        {3, '_'},
        {3, '$1'},
        {2, '$2'},
        {2, elements([a, b, 1, 1.0, 2, 1 bsl 64, "key", {1, a}, <<"binary">>])}
    ]),
    frequency([
        {1, '_'},
        {1, '$1'},
        {12, ?LET(N, elements([1, 2, 2, 3]), ?LET(L, vector(N, Element), list_to_tuple(L)))}
    ]).

guards() ->
    Operand = elements(['$1', '$1', '$2', 0, 1, 2.0, a]),
    frequency([
        {3, []},
        {3, [{elements(['<', '>=', '=:=', '==', '/=']), Operand, Operand}]},
        {1, [{elements([is_integer, is_atom, is_tuple]), Operand}]}
    ]).

body() ->
    elements([['$_'], ['$$'], ['$1'], [true], [true], [{{'$1', '$_'}}], [{'>', '$1', 1}]]).

slot() ->
    frequency([{6, integer(0, 4)}, {2, integer(0, 400)}, {1, elements([-1, a, 1.0, 1 bsl 64])}]).

table() ->
    frequency([
        {60, {tab, 1}},
        {25, {tab, 2}},
        {4, {tab, 3}},
        {4, {tid, integer(1, ?TABLES)}},
        {4, name()},
        {1, {recipe, no_table()}}
    ]).

%% A term that is not the identifier of a real table of `ets', which would exist on one side only.
no_table() ->
    elements([
        {lit, 1},
        {lit, no_such_table},
        {lit, {}},
        {lit, []},
        {lit, <<"name">>},
        {exotic, ref, 1},
        {exotic, magic_ref, 1},
        {exotic, alias_ref, 1},
        {exotic, external_ref, 1},
        {exotic, pid, 1}
    ]).

name() -> {name, integer(1, 3)}.
not_an_atom() -> {raw, elements([1, "name", {a}, <<"name">>])}.
key() -> {recipe, ats_term_gen:key()}.
value() -> {recipe, ats_term_gen:value()}.
object() -> {recipe, frequency([{20, ats_term_gen:object()}, {1, ats_term_gen:key()}])}.
collector() -> {collector, elements([reverse, append])}.

objects() ->
    frequency([
        {8, object()},
        {8, {recipes, list(ats_term_gen:object())}},
        {1, {recipes, list(frequency([{5, ats_term_gen:object()}, {1, ats_term_gen:key()}]))}}
    ]).

position() ->
    {raw, frequency([{12, integer(1, 4)}, {1, wrong_position()}])}.

wrong_position() ->
    elements([0, -1, 5, 300, a, 1.0, 1 bsl 27, 1 bsl 59, 1 bsl 64, -(1 bsl 64), {1}, []]).

counter_ops() ->
    {raw,
        frequency([
            {5, increment()},
            {6, counter_op()},
            {3, list(counter_op())},
            {1, elements([a, [a], {2}, {2, 1, 1}, {2, 1, 1, 1, 1}, [{2, 1} | {3, 1}], {a, 1}, #{}])}
        ])}.

counter_op() ->
    Pos = frequency([{9, integer(1, 4)}, {1, wrong_position()}]),
    oneof([
        {Pos, increment()},
        {Pos, increment(), increment(), increment()}
    ]).

increment() ->
    frequency([
        {12, integer(-5, 5)},
        {2, elements([(1 bsl 59) - 1, 1 bsl 59, 1 bsl 60, -(1 bsl 63), 1 bsl 64, 1 bsl 200])},
        {1, elements([1.0, a, {}])}
    ]).

element_specs() ->
    Pos = frequency([{12, integer(1, 4)}, {1, wrong_position()}]),
    Spec = {tuple, [?LET(P, Pos, {lit, P}), ats_term_gen:value()]},
    {recipe,
        frequency([
            {6, Spec},
            {4, {list, list(Spec)}},
            {1, {improper, [Spec], Spec}},
            {1, {lit, elements([a, {2}, {2, a, b}, [a], [[{2, a}]], #{}])}}
        ])}.

default() -> object().

info_item() ->
    elements([
        id,
        decentralized_counters,
        read_concurrency,
        write_concurrency,
        compressed,
        memory,
        owner,
        heir,
        name,
        size,
        node,
        named_table,
        type,
        keypos,
        protection,
        fixed,
        safe_fixed,
        safe_fixed_monotonic_time,
        stats,
        binary,
        no_such_item,
        1
    ]).

%% ----- bags with many objects of one key -----

%% Objects are few enough to meet again, and too many for each to be unique: inserting and deleting
%% equal ones, in lists and one by one, before and behind others.
bag_program() ->
    ?LET(
        {Options, Commands},
        {bag_options(), list(bag_command())},
        [{a, {new, 1}, [{name, 1}, {options, Options}]} | Commands]
    ).

bag_options() ->
    ?LET(
        {Type, Tuning},
        {elements([bag, duplicate_bag]), list(tuning())},
        [Type, public, {keypos, 1} | Tuning]
    ).

bag_command() ->
    T = {tab, 1},
    frequency([
        {8, ?LAZY({a, insert, [T, many_objects()]})},
        {6, ?LAZY({a, insert, [T, bag_object()]})},
        {2, ?LAZY({a, insert_new, [T, few_objects()]})},
        {12, ?LAZY({a, delete_object, [T, bag_object()]})},
        {2, ?LAZY({a, take, [T, hot_key()]})},
        {3, ?LAZY({a, elements([take_first, take_last]), [T]})},
        {1, ?LAZY({a, select_take, [T, {raw, taken_values()}]})},
        {1, ?LAZY({a, lookup_elements, [T, hot_key(), {raw, list(integer(1, 2))}]})},
        {1, ?LAZY({a, delete, [T, hot_key()]})},
        {1, ?LAZY({a, elements([lookup_many, take_many, delete_many]), [T, hot_keys()]})},
        {6, ?LAZY({a, lookup, [T, hot_key()]})},
        {4, ?LAZY({a, lookup_element, [T, hot_key(), {raw, elements([1, 2, 2, 3])}]})},
        {2, ?LAZY({a, member, [T, hot_key()]})},
        {2, ?LAZY({a, info, [T, {raw, size}]})},
        {1, ?LAZY({a, tab2list, [T]})},
        {1, ?LAZY({a, foldl, [{collector, reverse}, {raw, []}, T]})},
        {1, ?LAZY({a, foldr, [{collector, reverse}, {raw, []}, T]})},
        {1, ?LAZY({a, slot, [T, {raw, slot()}]})},
        {1, ?LAZY({a, next_lookup, [T, hot_key()]})}
    ]).

hot_key() ->
    {recipe, ?LET(K, frequency([{6, a}, {3, 1}, {2, 1.0}, {1, "key"}, {1, absent}]), {lit, K})}.

hot_keys() -> {recipes, list(?LET({recipe, Key}, hot_key(), Key))}.

%% A few or many of each key; seldom all.
taken_values() ->
    ?LET(
        {Least, Most},
        {integer(0, 400), integer(1, 40)},
        frequency([
            {8,
                [
                    {{'_', '$1'}, [{'>=', '$1', Least}, {'<', '$1', Least + Most}], [true]}
                ]},
            {1, [{'_', [], [true]}]}
        ])
    ).

bag_object() ->
    {recipe, bag_recipe()}.

bag_recipe() ->
    ?LET(
        {{recipe, K}, V},
        {hot_key(), bag_value()},
        {tuple, [K, V]}
    ).

bag_value() ->
    frequency([
        {8, ?LET(N, integer(1, 400), {lit, N})},
        {2, ?LET(N, integer(1, 20), {lit, float(N)})},
        {1, ?LAZY(ats_term_gen:value())}
    ]).

%% Objects in any order or ascending, of one key or of several.
many_objects() ->
    {recipes,
        oneof([
            ?LET(N, integer(1, 150), vector(N, bag_recipe())),
            ?LET(
                {{recipe, K}, First, N},
                {hot_key(), integer(1, 400), integer(1, 150)},
                [{tuple, [K, {lit, V}]} || V <- lists:seq(First, First + N)]
            )
        ])}.

few_objects() ->
    {recipes, resize(4, list(bag_recipe()))}.

%% ----- beyond `ets' -----

%% Tables, mostly ordered, with keys close together.
beyond_program() ->
    Numbers = lists:seq(1, 20),
    ?LET(
        {Options, Commands},
        {beyond_options(), ?SIZED(S, resize(25 + S, list(resize(S, beyond_command()))))},
        [
            {a, {new, 1}, [{name, 1}, {options, Options}]},
            {a, insert, [{tab, 1}, {recipes, [{tuple, [{lit, N}, {lit, N}]} || N <- Numbers]}]}
            | Commands
        ]
    ).

beyond_options() ->
    ?LET(
        {Type, KeyPos, Tuning},
        {
            elements([ordered_set, ordered_set, ordered_set, set]),
            frequency([{6, 1}, {1, 2}]),
            list(tuning())
        },
        [Type, public, {keypos, KeyPos} | Tuning]
    ).

beyond_command() ->
    T = {tab, 1},
    frequency([
        {8, ?LAZY({a, insert, [T, {recipes, list(close_object())}]})},
        {3, ?LAZY({a, insert, [T, {recipe, close_object()}]})},
        {3, ?LAZY({a, delete, [T, close_key()]})},
        {2, ?LAZY({a, lookup, [T, close_key()]})},
        {3, ?LAZY({a, elements([lookup_many, take_many, delete_many]), [T, close_keys()]})},
        {3, ?LAZY({a, elements([take_first, take_last]), [T]})},
        {2, ?LAZY({a, select_take, [T, {raw, taken_values()}]})},
        {30, ?LAZY(beyond_command(T, close_key(), recipe(oneof([prefix(), prefix(), close()]))))}
    ]).

%% Merges, and functions of an `ordered_set'.
beyond_command(Table, Key, Pattern) ->
    Bounds = ats_beyond_gen:bounds(),
    Options = ats_beyond_gen:range_options(),
    Fold = frequency([{12, collector()}, {1, {raw, elements([x, fun erlang:hd/1])}}]),
    frequency([
        {10, ?LAZY(merge_command(Table, Key))},
        {2, ?LAZY(command(rank, [Table, Key]))},
        {2, ?LAZY(command(nth, [Table, {raw, any_rank()}]))},
        {3, ?LAZY(with_options(range_nth, [Table, Key, Key, {raw, any_rank()}], Bounds))},
        {3, ?LAZY(with_options(range_count, [Table, Key, Key], Bounds))},
        {1, ?LAZY(with_options(range_delete, [Table, Key, Key], Bounds))},
        {5, ?LAZY(with_options(range, [Table, Key, Key], Options))},
        {2, ?LAZY(with_options(range_fold, [Fold, {raw, []}, Table, Key, Key], Options))},
        {3, ?LAZY(with_options(prefix, [Table, Pattern], ats_beyond_gen:prefix_options()))},
        {3, ?LAZY(command(lookup_elements, [Table, Key, {raw, positions()}]))}
    ]).

%% The options may be missing.
with_options(Function, Args, Options) ->
    ?LET(Last, frequency([{1, []}, {2, [{raw, Options}]}]), command(Function, Args ++ Last)).

%% A key is often called as the merge, so that values of its kind meet.
merge_command(Table, Key) ->
    ?LET(
        Merge,
        ats_beyond_gen:merge(),
        ?LET(
            Default,
            frequency([{2, []}, {1, [default()]}, {1, [{recipe, close_object()}]}]),
            command(merge, [
                Table,
                frequency([{2, {recipe, {lit, Merge}}}, {1, Key}]),
                {operand, ats_beyond_gen:operand(Merge)},
                {raw, frequency([{6, Merge}, {4, {integer(1, 3), Merge}}, {1, wrong_merge()}])}
                | Default
            ])
        )
    ).

wrong_merge() ->
    ?LET(
        P,
        wrong_position(),
        elements([
            plus, 1, {sum, 1}, {last, 0}, {prune, min}, {vector, sum}, {vector, [sum | min]},
            {P, sum}, {P, plus}
        ])
    ).

any_rank() ->
    frequency([{8, integer(1, 30)}, {6, integer(-30, -1)}, {1, elements([0, a, 1.0, 1 bsl 64])}]).

positions() ->
    frequency([
        {12, list(integer(1, 3))},
        {1, [wrong_position()]},
        {1, elements([x, 1, [1 | 2]])}
    ]).

prefix() -> ats_beyond_gen:prefix().
recipe(Recipe) -> {recipe, Recipe}.
close_key() -> {recipe, close()}.

close_keys() -> {recipes, list(close())}.

%% Keys that are neighbours, or begin alike, or are equal.
close() ->
    Small = integer(1, 60),
    frequency([
        {8, ?LET(N, Small, {lit, N})},
        {2, ?LET(N, Small, {lit, float(N)})},
        {1, ?LET(N, Small, {lit, {prefix, shared, 1, N rem 4}})},
        {1, ?LET(N, Small, {lit, [prefix, shared, N rem 4]})},
        {1, ats_term_gen:key()}
    ]).

%% The values are such that most merges have something to begin with.
close_object() ->
    Value = frequency([
        {4, ?LET(N, integer(1, 400), {lit, N})},
        {2, {lit, "list"}},
        {1, {lit, #{a => 1}}},
        {1, {lit, <<"binary">>}},
        {1, {lit, {1, 2}}},
        {1, close()}
    ]),
    ?LET({K, Values}, {close(), oneof([[Value], [Value, Value]])}, {tuple, [K | Values]}).

%% ----- bulk contents -----

%% Many keys of all kinds in one table: the same contents in the same order, and the same
%% neighbours of every key, whether it is there or not; before and after half is deleted.
prop_bulk() ->
    ?FORALL(
        {Type, Options, Recipes},
        {
            elements([set, ordered_set, ordered_set, bag, duplicate_bag]),
            list(bulk_option()),
            resize(120, list(resize(12, bulk_key())))
        },
        begin
            Options1 = [Type | Options],
            Verdict = check_bulk_recipes(Options1, Recipes),
            ?WHENFAIL(report_bulk(Options1, Recipes, Verdict), Verdict =:= ok)
        end
    ).

report_bulk(Options0, Recipes0, First) ->
    report("first seen: ~0tp", [First]),
    Options = ats_shrink:list(Options0, fun(O) -> check_bulk_recipes(O, Recipes0) =/= ok end),
    Fails = fun(Rs) -> check_bulk_recipes(Options, [R || {recipe, R} <- Rs]) =/= ok end,
    Small = ats_shrink:list([{recipe, R} || R <- Recipes0], Fails, fun ats_shrink:recipes/1),
    Recipes = [R || {recipe, R} <- Small],
    Keys = lists:join(", ", [ats_term_gen:source(R) || R <- Recipes]),
    report(
        "smallest: ats_oracle_prop:check_bulk(~0tp, [~ts])~n~0tp",
        [Options, Keys, check_bulk_recipes(Options, Recipes)]
    ).

check_bulk_recipes(Options, Recipes) ->
    guarded(fun() -> check_bulk(Options, [ats_term_gen:realize(R) || R <- Recipes]) end).

bulk_option() ->
    elements([{write_concurrency, true}, {write_concurrency, auto}, compressed, {keypos, 2}]).

bulk_key() ->
    frequency([{2, ats_term_gen:key()}, {3, ats_term_gen:any_term()}]).

-spec check_bulk([term()], [term()]) -> ok | {difference, term()}.
check_bulk(Options, Keys) ->
    with_two_tables(Options, fun(Ref, Sub) -> check_bulk(Options, Keys, Ref, Sub) end).

check_bulk(Options, Keys, Ref, Sub) ->
    Subject = ats_oracle:subject(),
    KeyPos = proplists:get_value(keypos, lists:reverse(Options), 1),
    Objects = [bulk_object(KeyPos, K, N) || {N, K} <- lists:enumerate(Keys)],
    Numbered = lists:zip(Objects, lists:seq(1, length(Keys))),
    {Inserted, Others} = lists:partition(fun({_, N}) -> N rem 3 > 0 end, Numbered),
    ats_reference:insert(Ref, [O || {O, _} <- Inserted]),
    Subject:insert(Sub, [O || {O, _} <- Inserted]),
    count(3 * length(Keys)),
    Absent = [element(KeyPos, O) || {O, _} <- Others],
    Present = [element(KeyPos, O) || {O, _} <- Inserted],
    IsOrdered = lists:member(ordered_set, Options),
    first_difference([
        fun() -> ats_oracle:compare_contents(Ref, Sub, false) end,
        fun() -> compare_neighbours(IsOrdered, Absent ++ Present, Ref, Sub) end,
        fun() -> compare_ranks(IsOrdered, Absent ++ Present, Ref, Sub) end,
        fun() ->
            Deleted = Absent ++ every_other(Present),
            lists:foreach(fun(K) -> ets:delete(Ref, K), Subject:delete(Sub, K) end, Deleted),
            ats_oracle:compare_contents(Ref, Sub, false)
        end,
        fun() -> compare_neighbours(IsOrdered, Absent ++ Present, Ref, Sub) end,
        fun() -> compare_ranks(IsOrdered, Absent ++ Present, Ref, Sub) end
    ]).

bulk_object(1, Key, N) -> {Key, N};
bulk_object(_, Key, N) -> {N, Key}.

compare_neighbours(false, _, _, _) ->
    ok;
compare_neighbours(true, Keys, Ref, Sub) ->
    Subject = ats_oracle:subject(),
    first_difference([
        fun() ->
            R = ats_oracle:call(ats_reference, F, [Ref, K]),
            S = ats_oracle:call(Subject, F, [Sub, K]),
            case {R, S} of
                {{ok, A}, {ok, B}} -> equal(F, K, A, B);
                {{fail, _, _, _}, {fail, _, _, _}} ->
                    ats_oracle:compare_failures({F, [Sub, K]}, R, S);
                _ -> {difference, {F, K, R, S}}
            end
        end
     || K <- Keys, F <- [next, prev, next_lookup, prev_lookup, lookup, member]
    ]).

%% Every object is where the order of the keys has it, and every key has as many below it.
compare_ranks(false, _, _, _) ->
    ok;
compare_ranks(true, Keys, Ref, Sub) ->
    KeyPos = ets:info(Ref, keypos),
    Objects = ets:tab2list(Ref),
    Size = length(Objects),
    Sorted = lists:sort([element(KeyPos, O) || O <- Objects]),
    Ranks = lists:seq(1, Size + 1),
    Nth = fun(N) -> {ok, Object} = subject_call(nth, [Sub, N]), Object end,
    Rank = fun(Key) -> {ok, Rank} = subject_call(rank, [Sub, Key]), Rank end,
    Below = fun(Key) -> length(lists:takewhile(fun(K) -> K < Key end, Sorted)) end,
    first_difference([
        fun() -> equal(nth, all, Objects ++ ['$end_of_table'], [Nth(N) || N <- Ranks]) end,
        fun() ->
            Backwards = ['$end_of_table' | Objects],
            equal(nth, from_end, Backwards, [Nth(-N) || N <- lists:reverse(Ranks)])
        end,
        fun() ->
            equal(rank, all, [{K, Below(K)} || K <- Keys], [{K, Rank(K)} || K <- Keys])
        end
    ]).

subject_call(F, Args) -> ats_oracle:call(ats_oracle:subject(), F, Args).

equal(F, K, A, B) ->
    case ats_oracle:same(A, B) of
        true -> ok;
        false -> {difference, {F, K, A, B}}
    end.

every_other([X, _ | T]) -> [X | every_other(T)];
every_other(L) -> L.

first_difference([]) -> ok;
first_difference([Check | Rest]) ->
    case Check() of
        ok -> first_difference(Rest);
        Difference -> Difference
    end.

%% ----- traversal while the table changes -----

%% Under a fixation (always, for an ordered_set) a walk with first/next or last/prev visits every
%% key that is there throughout exactly once, and no key that never was there, although the table
%% grows and shrinks between two steps.
prop_traversal() ->
    ?FORALL(
        {Type, Options, Direction, Start, Edits},
        {
            elements([set, ordered_set, bag, duplicate_bag]),
            list(elements([{write_concurrency, true}, {write_concurrency, auto}, compressed])),
            direction(),
            integer(0, 150),
            resize(60, list(edit()))
        },
        begin
            count(Start + 2 * length(Edits)),
            Case = {Direction, Start, Edits},
            Options1 = [Type | Options],
            Verdict = guarded(fun() -> check_traversal(Options1, Case) end),
            ?WHENFAIL(report_traversal(Options1, Case, Verdict), Verdict =:= ok)
        end
    ).

report_traversal(Options, {Direction, Start0, Edits0}, First) ->
    report("first seen: ~0tp", [First]),
    Check = fun(S, Es) -> guarded(fun() -> check_traversal(Options, {Direction, S, Es}) end) end,
    Edits = ats_shrink:list(Edits0, fun(Es) -> Check(Start0, Es) =/= ok end),
    Start = ats_shrink:number(Start0, fun(S) -> Check(S, Edits) =/= ok end),
    report(
        "smallest: ats_oracle_prop:check_traversal(~0tp, ~0tp)~n~0tp",
        [Options, {Direction, Start, Edits}, Check(Start, Edits)]
    ).

direction() ->
    elements([
        {first, next},
        {last, prev},
        {first_lookup, next_lookup},
        {last_lookup, prev_lookup}
    ]).

edit() ->
    frequency([
        {4, {insert, integer(1, 300)}},
        {4, {delete, integer(1, 150)}},
        {3, delete_current},
        {1, {insert_many, integer(1, 3)}},
        {1, {delete_object, integer(1, 150)}},
        {1, {take, integer(1, 150)}},
        {1, {take_end, elements([take_first, take_last])}},
        {1, {select_take, integer(1, 150), integer(0, 9)}}
    ]).

-spec check_traversal([term()], tuple()) -> ok | {difference, term()}.
check_traversal(Options, {Direction, Start, Edits}) ->
    Subject = ats_oracle:subject(),
    Table = ats_test_lib:new(traversed, Options),
    Initial = lists:seq(1, Start),
    Subject:insert(Table, [{K, K} || K <- Initial]),
    IsFixed = not lists:member(ordered_set, Options) orelse Start rem 2 =:= 0,
    IsFixed andalso Subject:safe_fixtable(Table, true),
    {First, _} = Direction,
    State = #{there => sets:from_list(Initial), stable => sets:from_list(Initial)},
    Step = step_key(Subject:First(Table)),
    Ever0 = sets:from_list(Initial),
    try walk(Step, Edits, Direction, Table, State#{ever => Ever0}, []) of
        {Visited, #{stable := Stable, ever := Ever}} ->
            IsFixed andalso Subject:safe_fixtable(Table, false),
            Missed = sets:to_list(sets:subtract(Stable, sets:from_list(Visited))),
            Invented = [K || K <- Visited, not sets:is_element(K, Ever)],
            Twice = Visited -- lists:usort(Visited),
            case {Missed, Invented, Twice} of
                {[], [], []} -> ok;
                _ -> {difference, #{missed => Missed, invented => Invented, twice => Twice}}
            end
    catch
        Class:Reason:Stack -> {difference, {Class, Reason, Stack}}
    after
        ok = ats_test_lib:count_adaptation(Table),
        Subject:delete(Table)
    end.

step_key({Key, [_ | _]}) -> Key;
step_key(Key) when not is_tuple(Key) -> Key.

walk('$end_of_table', _, _, _, State, Visited) ->
    {Visited, State};
walk(Key, [], {_, Next} = Direction, Table, State, Visited) ->
    Subject = ats_oracle:subject(),
    walk(step_key(Subject:Next(Table, Key)), [], Direction, Table, State, [Key | Visited]);
walk(Key, [Edit | Edits], {_, Next} = Direction, Table, State0, Visited) ->
    Subject = ats_oracle:subject(),
    State = edit(Edit, Key, Table, State0),
    walk(step_key(Subject:Next(Table, Key)), Edits, Direction, Table, State, [Key | Visited]).

edit({insert, K}, _, Table, State) ->
    add([K], Table, State);
edit({insert_many, N}, _, Table, State) ->
    add(lists:seq(1000 * N, 1000 * N + 600), Table, State);
edit(delete_current, Current, Table, State) ->
    Subject = ats_oracle:subject(),
    Subject:delete(Table, Current),
    %% The walk stands on this key, so it was visited already and must not come again.
    remove(Current, State);
edit({delete, K}, _, Table, State) ->
    Subject = ats_oracle:subject(),
    Subject:delete(Table, K),
    remove(K, State);
edit({delete_object, K}, _, Table, State) ->
    Subject = ats_oracle:subject(),
    Subject:delete_object(Table, {K, K}),
    remove(K, State);
edit({take, K}, _, Table, State) ->
    Subject = ats_oracle:subject(),
    Subject:take(Table, K),
    remove(K, State);

edit({take_end, End}, _, Table, State) ->
    {ok, Taken} = subject_call(End, [Table]),
    remove_all([K || {K, _} <- Taken], State);
edit({select_take, K, Others}, _, Table, State) ->
    Guards = [{'>=', '$1', K}, {'=<', '$1', K + Others}],
    {ok, Taken} = subject_call(select_take, [Table, [{{'$1', '_'}, Guards, [true]}]]),
    remove_all([Key || {Key, _} <- Taken], State).

add(Keys, Table, #{ever := Ever} = State) ->
    Subject = ats_oracle:subject(),
    Subject:insert(Table, [{K, K} || K <- Keys]),
    State#{ever := sets:union(Ever, sets:from_list(Keys))}.

remove(K, #{stable := Stable} = State) ->
    State#{stable := sets:del_element(K, Stable)}.

remove_all(Keys, State) ->
    lists:foldl(fun remove/2, State, Keys).

%% ----- help -----

%% Returns the report of a failing property as one text.
report(Format, Args) ->
    Text = "~n" ++ Format ++ "~n",
    case erlang:function_exported(ct, pal, 2) of
        true -> ct:pal(Text, Args);
        false -> io:format(Text, Args)
    end.

%% An unexpected exception is a finding like any other: it must be printed and shrunk.
guarded(Fun) ->
    try
        Fun()
    catch
        Class:Reason:Stack -> {difference, {Class, Reason, Stack}}
    end.

with_two_tables(Options, Fun) ->
    Subject = ats_oracle:subject(),
    Ref = ets:new(bulk_reference, Options),
    Sub = ats_test_lib:new(bulk_subject, Options),
    try
        Fun(Ref, Sub)
    after
        ets:delete(Ref),
        Subject:delete(Sub)
    end.

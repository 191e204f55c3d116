%% Wrong arguments fail as they fail in `ets': the same exception, the same argument blamed.
%%
%% Every argument of every function is replaced by every kind of wrong term, alone and in pairs
%% (which shows the order of the checks), on tables of every type, by the owner and by a stranger,
%% on living and on dead tables. The calls are programs of `ats_oracle', which judges them.
-module(ats_badarg_SUITE).

-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0, init_per_suite/1, end_per_suite/1]).
-export([
    one_wrong_argument/1,
    two_wrong_arguments/1,
    wrong_argument_beside_a_long_key/1,
    wrong_access/1,
    deleted_table/1,
    renamed_table/1,
    options_of_new/1,
    options_of_setopts/1,
    giving_away/1,
    wrong_type/1,
    short_objects/1,
    error_text/1,
    nothing_changes_on_error/1
]).

-define(TYPES, [set, ordered_set, bag, duplicate_bag]).

suite() -> [{timetrap, {minutes, 10}}].

all() ->
    [
        one_wrong_argument,
        two_wrong_arguments,
        wrong_argument_beside_a_long_key,
        wrong_access,
        deleted_table,
        renamed_table,
        options_of_new,
        options_of_setopts,
        giving_away,
        wrong_type,
        short_objects,
        error_text,
        nothing_changes_on_error
    ].

init_per_suite(Config) ->
    ok = ats_term_gen:prepare(),
    Config.

end_per_suite(_) ->
    ok.

%% ----- calls and their arguments -----

%% Every function with arguments that are right for a table of `{Key, 1, x}' objects.
calls() ->
    Key = {raw, k1},
    Object = {raw, {k1, 1, x}},
    T = {tab, 1},
    [
        {insert, [T, Object]},
        {insert, [T, {raw, [{k1, 1, x}, {k2, 2, y}]}]},
        {insert_new, [T, Object]},
        {insert_new, [T, {raw, [{k8, 1, x}, {k9, 2, y}]}]},
        {lookup, [T, Key]},
        {lookup_element, [T, Key, {raw, 2}]},
        {lookup_element, [T, {raw, absent}, {raw, 2}]},
        {lookup_element, [T, Key, {raw, 2}, {raw, default}]},
        {lookup_element, [T, {raw, absent}, {raw, 2}, {raw, default}]},
        {member, [T, Key]},
        {delete, [T, Key]},
        {delete_object, [T, Object]},
        {delete_all_objects, [T]},
        {take, [T, Key]},
        {first, [T]},
        {last, [T]},
        {next, [T, Key]},
        {prev, [T, Key]},
        {first_lookup, [T]},
        {last_lookup, [T]},
        {next_lookup, [T, Key]},
        {prev_lookup, [T, Key]},
        {update_counter, [T, Key, {raw, {2, 1}}]},
        {update_counter, [T, {raw, absent}, {raw, {2, 1}}]},
        {update_counter, [T, Key, {raw, {2, 1}}, {raw, {k, 1, x}}]},
        {update_counter, [T, {raw, absent}, {raw, {2, 1}}, {raw, {k, 1, x}}]},
        {update_element, [T, Key, {raw, {2, 1}}]},
        {update_element, [T, {raw, absent}, {raw, {2, 1}}]},
        {update_element, [T, Key, {raw, {2, 1}}, {raw, {k, 1, x}}]},
        {update_element, [T, {raw, absent}, {raw, {2, 1}}, {raw, {k, 1, x}}]},
        {tab2list, [T]},
        {foldl, [{collector, reverse}, {raw, []}, T]},
        {foldr, [{collector, reverse}, {raw, []}, T]},
        {info, [T]},
        {info, [T, {raw, size}]},
        {safe_fixtable, [T, {raw, true}]},
        {slot, [T, {raw, 0}]},
        {rename, [T, {name, 2}]},
        {give_away, [T, {actor, b}, {raw, gift}]},
        {setopts, [T, {raw, {protection, public}}]},
        {setopts, [T, {raw, [{protection, protected}, {heir, none}]}]},
        {delete, [T]},
        {whereis, [{name, 1}]}
    ].

%% A table of its own for every program.
setup(Type, Options) ->
    [
        {a, {new, 1}, [{name, 1}, {options, [Type | Options]}]},
        {a, insert, [{tab, 1}, {raw, [{k1, 1, x}, {k2, 2, y}, {k3, 3, z}]}]}
    ].

replacements(Args, Terms) ->
    [replace(N, Term, Args) || N <- lists:seq(1, length(Args)), Term <- Terms].

replace(N, Term, Args) ->
    lists:sublist(Args, N - 1) ++ [Term | lists:nthtail(N, Args)].

%% ----- cases -----

one_wrong_argument(_) ->
    check(fun ats_oracle:run_strict/1, [
        setup(Type, []) ++ [{a, F, Wrong}]
     || Type <- ?TYPES,
        {F, Args} <- calls(),
        not is_wrong_already(Type, F, Args),
        Wrong <- [Args | replacements(Args, ats_wrong_terms:all())],
        is_comparable(F, Wrong)
    ]),
    check([
        setup(Type, []) ++ [{a, F, Wrong}]
     || Type <- ?TYPES,
        {F, Args} <- calls(),
        is_wrong_already(Type, F, Args),
        Wrong <- [Args | replacements(Args, ats_wrong_terms:all())]
    ]).

%% A key that is not there, or a table whose objects cannot be updated.
is_wrong_already(Type, F, Args) ->
    lists:member({raw, absent}, Args) orelse
        ((Type =:= bag orelse Type =:= duplicate_bag) andalso
            (F =:= update_counter orelse F =:= update_element)).

two_wrong_arguments(_) ->
    check([
        setup(Type, []) ++ [{a, F, Wrong}]
     || Type <- [set, bag],
        {F, Args} <- calls(),
        length(Args) > 1,
        Once <- replacements(Args, ats_wrong_terms:few()),
        Wrong <- replacements(Once, ats_wrong_terms:few()),
        is_comparable(F, Wrong)
    ]).

%% A key that takes long to look for is looked for on a dirty scheduler, also if something else is
%% wrong.
wrong_argument_beside_a_long_key(_) ->
    Long = {recipe, {bin, 300000, 1}},
    check([
        setup(Type, []) ++ [{a, F, Wrong}]
     || Type <- [ordered_set, bag],
        {F, [T, Key | Args]} <- calls(),
        Key =:= {raw, k1} orelse Key =:= {raw, absent},
        Wrong <- [
            [T, Long | Others]
         || Others <- [Args | replacements(Args, ats_wrong_terms:few())]
        ]
    ]).

%% A fold over objects calls back into the test, which can collect them in a list only.
is_comparable(F, [Fun, Acc, _]) when F =:= foldl; F =:= foldr ->
    Fun =:= {collector, reverse} andalso Acc =:= {raw, []};
is_comparable(_, _) ->
    true.

wrong_access(_) ->
    Wrong = [{raw, T} || T <- [a, {}, 0, [a | b], {a}]],
    check([
        setup(Type, [Protection]) ++ [{b, F, A}, {a, info, [{tab, 1}, {raw, protection}]}]
     || Type <- [set, ordered_set, bag],
        Protection <- [private, protected, public],
        {F, Args} <- calls(),
        A <- [Args | replacements(Args, Wrong)],
        is_comparable(F, A)
    ]).

deleted_table(_) ->
    Kill = [[{a, delete, [{tab, 1}]}], [{kill, a}]],
    check([
        setup(Type, Options) ++ Death ++ [{Actor, F, A}]
     || Type <- ?TYPES,
        Options <- [[], [named_table, public]],
        Death <- Kill,
        Actor <- [a, b],
        {F, Args} <- calls(),
        A <- [Args, lists:droplast(Args) ++ [{raw, {}}] | [replace(1, {tid, 1}, Args)]],
        hd(A) =/= {raw, {}},
        is_comparable(F, A)
    ]).

renamed_table(_) ->
    check([
        setup(set, [named_table]) ++
            [
                {a, rename, [{tab, 1}, {name, 2}]},
                {a, F, Args},
                {a, F, [
                    case A of
                        {tab, 1} -> {name, 1};
                        _ -> A
                    end
                 || A <- Args
                ]},
                {a, {new, 2}, [{name, 1}, {options, [named_table]}]},
                {a, {new, 3}, [{name, 2}, {options, [named_table]}]},
                {a, rename, [{name, 1}, {name, 2}]},
                {a, rename, [{name, 2}, {name, 2}]}
            ]
     || {F, Args} <- calls()
    ]).

options_of_new(_) ->
    Single = [
        set,
        ordered_set,
        bag,
        duplicate_bag,
        public,
        protected,
        private,
        named_table,
        compressed,
        {keypos, 1},
        {keypos, 7},
        {keypos, 0},
        {keypos, -1},
        {keypos, 1.0},
        {keypos, 1 bsl 30},
        {keypos, 1 bsl 64},
        {keypos, a},
        {keypos},
        {heir, none},
        {heir, a, data},
        {heir, self, data},
        {heir, a},
        {heir, none, data},
        {write_concurrency, true},
        {write_concurrency, false},
        {write_concurrency, auto},
        {write_concurrency, yes},
        {write_concurrency, {debug_hash_fixed_number_of_locks, 64}},
        {write_concurrency, {debug_hash_fixed_number_of_locks, 100}},
        {write_concurrency, {debug_hash_fixed_number_of_locks, 1}},
        {write_concurrency, {debug_hash_fixed_number_of_locks, 0}},
        {write_concurrency, {debug_hash_fixed_number_of_locks, 40000}},
        {write_concurrency, {debug_hash_fixed_number_of_locks, a}},
        {read_concurrency, true},
        {read_concurrency, false},
        {read_concurrency, auto},
        {decentralized_counters, true},
        {decentralized_counters, false},
        {decentralized_counters, auto},
        {unknown, true},
        unknown,
        1,
        {},
        []
    ],
    Lists = [[]] ++ [[A] || A <- Single] ++ [[A, B] || A <- Single, B <- Single],
    Threes = [
        [Type, A, B]
     || Type <- [ordered_set, bag],
        A <- [{write_concurrency, auto}, {write_concurrency, true}, {decentralized_counters, true}],
        B <- [set, bag, private, {write_concurrency, false}, {decentralized_counters, false}]
    ],
    check([
        [{a, {new, 1}, [{name, 1}, {options, Options}]}, {a, info, [{tab, 1}]}]
     || Options <- Lists ++ Threes
    ]),
    Improper = [a, 1, {}, <<>>, [set | public], [set | {keypos, 1}], #{}],
    check([[{a, {new, 1}, [{name, 1}, {raw, Options}]}] || Options <- Improper]),
    check([[{a, {new, 1}, [Name, {options, []}]}] || Name <- ats_wrong_terms:all()]),
    %% The table exists already.
    check([
        [
            {a, {new, 1}, [{name, 1}, {options, [named_table]}]},
            {Actor, {new, 2}, [{name, 1}, {options, [named_table | More]}]},
            {a, {new, 3}, [{name, 1}, {options, More}]}
        ]
     || Actor <- [a, b], More <- [[], [bag], [unknown]]
    ]).

options_of_setopts(_) ->
    Single = [
        {heir, none},
        {heir, a, data},
        {heir, b, data},
        {heir, self, data},
        {heir, a},
        {heir, none, data},
        {heir},
        {protection, public},
        {protection, protected},
        {protection, private},
        {protection, secret},
        {protection, public, protected},
        {keypos, 1},
        {},
        protected,
        named_table,
        1,
        []
    ],
    Lists = [[]] ++ [[A] || A <- Single] ++ [[A, B] || A <- Single, B <- Single],
    Options = [{options, L} || L <- Lists] ++ [{option, A} || A <- Single],
    check([
        setup(Type, [Protection]) ++
            [
                {Actor, setopts, [{tab, 1}, Changes]},
                {a, info, [{tab, 1}]},
                {b, insert, [{tab, 1}, {raw, {k2, 1, x}}]},
                {b, lookup, [{tab, 1}, {raw, k1}]},
                {kill, a},
                {b, info, [{tab, 1}]}
            ]
     || {Type, Protection} <- [{set, protected}, {ordered_set, public}],
        Actor <- [a, b],
        Changes <- Options
    ]),
    Improper = [{raw, T} || T <- [a, 1, <<>>, [{heir, none} | a], [{heir, none} | {heir, none}]]],
    check(fun ats_oracle:run_strict/1, [
        setup(set, []) ++ [{a, setopts, [{tab, 1}, Changes]}, {a, info, [{tab, 1}]}]
     || Changes <- Improper
    ]).

giving_away(_) ->
    Recipients =
        [{actor, A} || A <- [a, b, c]] ++
            [{recipe, R} || R <- [{exotic, pid, 2}, {exotic, external_pid, 1}]] ++
            [{raw, nobody}],
    check(fun ats_oracle:run_strict/1, [
        setup(set, [Protection | Named]) ++ [{Actor, give_away, [Tab, To, {raw, {gift, "box"}}]}]
     || Protection <- [public, protected, private],
        Named <- [[], [named_table]],
        Actor <- [a, b],
        Tab <- [{tab, 1}, {tid, 1}, {raw, no_such_table}, {raw, 1}],
        To <- Recipients
    ]),
    %% The access rights of every process follow from the new owner. None of them follows from the
    %% old one.
    check([
        setup(Type, [Protection, {heir, Heir, bequest}]) ++
            [
                {a, give_away, [{tab, 1}, {actor, b}, {raw, gift}]},
                {a, give_away, [{tab, 1}, {actor, c}, {raw, gift}]},
                {a, setopts, [{tab, 1}, {raw, {heir, none}}]},
                {Actor, insert, [{tab, 1}, {raw, {k4, 4, w}}]},
                {Actor, lookup, [{tab, 1}, {raw, k4}]},
                {kill, b},
                {Actor, info, [{tab, 1}]},
                {Actor, insert, [{tab, 1}, {raw, {k5, 5, v}}]},
                {kill, Heir},
                {Actor, info, [{tab, 1}]}
            ]
     || Type <- ?TYPES,
        Protection <- [public, protected, private],
        Heir <- [a, b, c],
        Actor <- [a, b, c]
    ]).

wrong_type(_) ->
    Ops = [1, {2, 1}, [{2, 1}], [], a, {1, 1}],
    check([
        setup(Type, []) ++ [{a, F, [{tab, 1}, {raw, Key}, {raw, Op} | Default]}]
     || Type <- ?TYPES,
        F <- [update_counter, update_element],
        Key <- [k1, absent],
        Op <- Ops,
        Default <- [[], [{raw, {d, 1, x}}], [{raw, a}]]
    ]).

%% Objects and defaults around the key position.
short_objects(_) ->
    Objects = [{}, {a}, {a, 1}, {a, 1, 2}, {a, 1, 2, 3}, [{a, 1, 2}, {a}], [{a, 1, 2}, {a, 1}], []],
    check([
        [{a, {new, 1}, [{name, 1}, {options, [Type, {keypos, KeyPos}]}]}, {a, F, [{tab, 1} | Args]}]
     || Type <- ?TYPES,
        KeyPos <- [1, 2, 3, 4, 300],
        Object <- Objects,
        {F, Args} <- [
            {insert, [{raw, Object}]},
            {insert_new, [{raw, Object}]},
            {delete_object, [{raw, Object}]},
            {update_counter, [{raw, 1}, {raw, []}, {raw, Object}]},
            {update_counter, [{raw, 1}, {raw, {2, 1}}, {raw, Object}]},
            {update_counter, [{raw, 1}, {raw, {3, 1}}, {raw, Object}]},
            {update_element, [{raw, 1}, {raw, []}, {raw, Object}]},
            {update_element, [{raw, 1}, {raw, {2, x}}, {raw, Object}]},
            {update_element, [{raw, 1}, {raw, {3, x}}, {raw, Object}]}
        ]
    ]).

%% A person who reads the exception learns which argument is wrong, and how.
error_text(_) ->
    Subject = ats_oracle:subject(),
    Table = Subject:new(readable, []),
    Subject:insert(Table, {k, a}),
    Deleted = Subject:new(deleted, []),
    Subject:delete(Deleted),
    Cases = [
        {lookup, [Deleted, k], "argument 1:", "the table identifier does not refer to"},
        {lookup, [no_such_name, k], "argument 1:", "the table identifier does not refer to"},
        {lookup, ["name", k], "argument 1:", "not an atom or a table identifier"},
        {insert, [Table, not_a_tuple], "argument 2:", "tuple"},
        {insert, [Table, {}], "argument 2:", "tuple"},
        {lookup_element, [Table, absent, 1], "argument 2:", "not a key that exists"},
        {lookup_element, [Table, k, 0], "argument 3:", "out of range"},
        {update_counter, [Table, k, {2, 1}], "argument 3:", "not an integer"},
        {update_counter, [Table, k, {1, 1}], "argument 3:", "key position"},
        {update_counter, [Table, k, {7, 1}], "argument 3:", "out of range"},
        {update_element, [Table, k, {1, x}], "argument 3:", "key position"},
        {new, [readable, [nonsense]], "argument 2:", "invalid options"},
        {new, [readable, [{backend, nonsense}]], "argument 2:", "no store of this build"},
        {new, [{}, []], "argument 1:", "not an atom"},
        {safe_fixtable, [Table, 'maybe'], "argument 2:", "boolean"},
        {give_away, [Table, self(), gift], "argument 2:", "the process is already the owner"},
        {give_away, [Table, a, gift], "argument 2:", "not a pid"},
        {setopts, [Table, {keypos, 1}], "argument 2:", "invalid options"}
    ],
    Texts = [
        {F, Args, unicode:characters_to_list(explain(Subject, F, Args)), Which, What}
     || {F, Args, Which, What} <- Cases
    ],
    [] = [
        {F, Args, Text}
     || {F, Args, Text, Which, What} <- Texts,
        string:find(Text, Which) =:= nomatch orelse string:find(Text, What) =:= nomatch
    ],
    ct:pal("~ts", [[[T, $\n] || {_, _, T, _, _} <- Texts]]),
    Subject:delete(Table),
    ok.

explain(Subject, F, Args) ->
    {fail, error, badarg, Stack} = ats_oracle:call(Subject, F, Args),
    erl_error:format_exception(error, badarg, Stack).

%% A call that fails half way through its list of changes leaves the object as it was.
nothing_changes_on_error(_) ->
    Subject = ats_oracle:subject(),
    [
        begin
            T = Subject:new(t, [Type]),
            Object = {k, 1, 2, x},
            Subject:insert(T, Object),
            lists:foreach(
                fun({F, Args}) ->
                    ?assertMatch({fail, error, badarg, _}, ats_oracle:call(Subject, F, [T | Args])),
                    ?assertEqual([Object], Subject:tab2list(T)),
                    ?assertEqual(1, Subject:info(T, size))
                end,
                [
                    {update_counter, [k, [{2, 1}, {3, 1}, {4, 1}]]},
                    {update_counter, [k, [{2, 1}, {1, 1}]]},
                    {update_counter, [k, [{2, 1}, {9, 1}]]},
                    {update_counter, [k, [{2, 1} | {3, 1}]]},
                    {update_counter, [other, [{2, 1}, {4, 1}], {k, 1, 1, x}]},
                    {update_element, [k, [{2, a}, {1, b}]]},
                    {update_element, [k, [{2, a}, {9, b}]]},
                    {update_element, [other, [{2, a}, {9, b}], Object]},
                    {insert, [[{new, 1}, a]]},
                    {insert, [[{new, 1} | a]]},
                    {insert, [[{new, 1}, {}]]},
                    {insert_new, [[{new, 1}, {}]]}
                ]
            ),
            Subject:delete(T)
        end
     || Type <- [set, ordered_set]
    ],
    ok.

%% ----- help -----

%% Runs all programs; reports one failing program, made small, for each function that fails.
check(Programs) ->
    check(fun ats_oracle:run/1, Programs).

check(Run, Programs) ->
    Failing = lists:filter(fun(Program) -> Run(Program) =/= ok end, Programs),
    ByFunction = maps:from_list([{element(2, lists:last(P)), P} || P <- Failing]),
    maps:foreach(fun(_, Program) -> report(Run, Program) end, ByFunction),
    ct:pal("~b programs compared, ~b differ", [length(Programs), length(Failing)]),
    ?assertEqual([], maps:keys(ByFunction)).

report(Run, Program) ->
    Small = ats_shrink:list(Program, fun(P) -> Run(P) =/= ok end),
    ct:pal("~ts~n~0tp", [ats_oracle:source(Small), Run(Small)]).

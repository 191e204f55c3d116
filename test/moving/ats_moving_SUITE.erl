%% @doc The page "Moving from ets" is true, and names tests that exist.
-module(ats_moving_SUITE).

-include_lib("stdlib/include/assert.hrl").

-export([all/0]).
-export([the_page_names_tests_that_exist/1, tables_are_separate/1, only_the_order_differs/1,
         queries_beside_lists/1, memory_is_that_of_ats/1, faults_are_not_moved/1, dets_wants_ets/1,
         additions_of_later_releases_exist/1]).

all() ->
    [the_page_names_tests_that_exist, tables_are_separate, only_the_order_differs,
     queries_beside_lists, memory_is_that_of_ats, faults_are_not_moved,
     dets_wants_ets, additions_of_later_releases_exist].

the_page_names_tests_that_exist(_) ->
    Name = filename:join([ats_test_lib:project(), "docs", "use", "moving-from-ets.md"]),
    {ok, Page} = file:read_file(Name),
    {match, Named} = re:run(Page, "`(ats_\\w+_SUITE):(\\w+)`",
                            [global, {capture, all_but_first, list}]),
    ?assert(length(Named) >= 10),
    [begin
         {module, _} = code:ensure_loaded(list_to_atom(Suite)),
         ?assert(erlang:function_exported(list_to_atom(Suite), list_to_atom(Case), 1),
                 {Suite, Case})
     end || [Suite, Case] <- Named],
    ok.

tables_are_separate(_) ->
    Ats = ats:new(?MODULE, [named_table]),
    Ets = ets:new(?MODULE, [named_table]),
    true = ats:insert(?MODULE, {k, ats}),
    true = ets:insert(?MODULE, {k, ets}),
    ?assertEqual({[{k, ats}], [{k, ets}]}, {ats:lookup(Ats, k), ets:lookup(Ets, k)}),
    ?assertError(badarg, ets:lookup(ats:whereis(?MODULE), k)),
    ?assertError(badarg, ats:lookup(ets:whereis(?MODULE), k)),
    ?assertNot(lists:member(ats:whereis(?MODULE), ets:all())),
    Spec = [{'_', [], ['$_']}],
    ?assertNot(ets:is_compiled_ms(ats:match_spec_compile(Spec))),
    ?assertNot(ats:is_compiled_ms(ets:match_spec_compile(Spec))),
    true = ats:delete(?MODULE),
    ?assertEqual([{k, ets}], ets:lookup(?MODULE, k)),
    true = ets:delete(?MODULE).

only_the_order_differs(_) ->
    Objects = [{N, N * N} || N <- lists:seq(1, 1000)],
    [begin
         [Ets, Ats] = [Module:new(order, [Type]) || Module <- [ets, ats]],
         true = ets:insert(Ets, Objects),
         true = ats:insert(Ats, Objects),
         ?assertEqual(lists:sort(ets:tab2list(Ets)), lists:sort(ats:tab2list(Ats))),
         ?assertEqual(lists:sort(walk(ets, Ets, ets:first(Ets))),
                      lists:sort(walk(ats, Ats, ats:first(Ats)))),
         case Type of
             ordered_set -> ?assertEqual(ets:tab2list(Ets), ats:tab2list(Ats));
             _ -> ?assertNotEqual(ets:tab2list(Ets), ats:tab2list(Ats))
         end
     end || Type <- [set, ordered_set, bag, duplicate_bag]],
    ok.

walk(_Module, _Table, '$end_of_table') -> [];
walk(Module, Table, Key) -> [Key | walk(Module, Table, Module:next(Table, Key))].

%% Lookups see a list as a whole, one key after the other. A query meets each key once, but may meet
%% one with its object of the list, and another with its old object.
queries_beside_lists(_) ->
    [begin
         Table = ats:new(lists, [Type, public]),
         true = ats:insert(Table, [{a, 0}, {b, 0}]),
         Writer = spawn_link(fun() -> insert_lists(Table, 1) end),
         [begin
              [{a, First}] = ats:lookup(Table, a),
              [{b, Second}] = ats:lookup(Table, b),
              ?assert(First =< Second),
              [{a, A}, {b, B}] = lists:sort(ats:tab2list(Table)),
              [C, D] = ats:select(Table, [{{'_', '$1'}, [], ['$1']}]),
              ?assertEqual({A, C}, {B, D}),
              ?assert(First =< A andalso A =< C, [First, A, C])
          end || _ <- lists:seq(1, 20000)],
         unlink(Writer),
         exit(Writer, kill)
     end || Type <- [set, ordered_set]],
    ok.

insert_lists(Table, N) ->
    true = ats:insert(Table, [{a, N}, {b, N}]),
    insert_lists(Table, N + 1).

%% The numbers are others, but in words as before, and they follow the contents of the table.
memory_is_that_of_ats(_) ->
    [begin
         Table = ats:new(memory, [Type]),
         Empty = ats:info(Table, memory),
         true = ats:insert(Table, [{N, lists:duplicate(8, N)} || N <- lists:seq(1, 1000)]),
         Full = ats:info(Table, memory),
         %% The memory is at least a byte for each number, and at most that of a list in a heap.
         ?assert(Full - Empty > 1000, {Empty, Full}),
         ?assert(Full - Empty < 1000 * (2 + 3 + 2 * 8 + 8), {Empty, Full}),
         ?assert(is_map(ats:info(Table, stats)))
     end || Type <- [set, ordered_set, bag, duplicate_bag]],
    ok.

faults_are_not_moved(_) ->
    Ordered = ats:new(ordered, [ordered_set]),
    Keys = [{{1, 5}, a}, {{1.0, 3}, b}],
    true = ats:insert(Ordered, [{Key} || Key <- Keys]),
    Found = ats:select(Ordered, [{{{{1, 5}, '_'}}, [], ['$_']}, {{{{1.0, 3}, '_'}}, [], ['$_']}]),
    ?assertEqual(lists:sort(Found), lists:sort([{Key} || Key <- Keys])),
    Bag = ats:new(bag, [bag]),
    true = ats:insert(Bag, [{k, 1}, {k, 2}, {k, 3}]),
    ?assertEqual([{k, 1}, {k, 2}, {k, 3}], ats:lookup(Bag, k)),
    [Map] = ats:select(Bag, [{{k, 1}, [], [#{{'+', 1, 1} => x, {'+', 2, 0} => x}]}]),
    ?assertEqual(#{2 => x}, Map),
    ?assertError(badarg, ats:update_counter(ats:new(short, [{keypos, 2}]), k, 1, {k})),
    Counters = ats:new(counters, []),
    Large = 1 bsl 6400,
    Ops = [{2, Large}, {2, 1}, {2, -2}, {2, 1, Large - 1, 0}],
    ?assertEqual([Large, Large + 1, Large - 1, 0],
                 ats:update_counter(Counters, k, Ops, {k, 0})),
    ?assertEqual([{k, 0}], ats:lookup(Counters, k)).

dets_wants_ets(Config) ->
    File = filename:join(proplists:get_value(priv_dir, Config), "ats_moving.dets"),
    {ok, Dets} = dets:open_file(?MODULE, [{file, File}]),
    Table = ats:new(dets, []),
    try
        Tag = fun(Call) -> tag(ats_test_lib:attempt(Call)) end,
        ?assertEqual({'EXIT', badarg}, Tag(fun() -> dets:to_ets(Dets, Table) end)),
        ?assertEqual({'EXIT', badarg}, Tag(fun() -> dets:from_ets(Dets, Table) end))
    after
        dets:close(Dets)
    end.

tag({'EXIT', {Reason, _Stack}}) -> {'EXIT', Reason};
tag(Other) -> Other.

additions_of_later_releases_exist(_) ->
    Table = ats:new(new, [ordered_set]),
    ?assertEqual(none, ats:lookup_element(Table, k, 2, none)),
    ?assertEqual(true, ats:update_element(Table, k, {2, w}, {k, v})),
    ?assertEqual([{k, [{k, w}]}, {k, [{k, w}]}, {k, [{k, w}]}, {k, [{k, w}]}],
                 [ats:first_lookup(Table), ats:last_lookup(Table), ats:next_lookup(Table, j),
                  ats:prev_lookup(Table, l)]).

%% Terms come out of a table identical and alive: for terms of every kind, also if the process that
%% inserted them has ended, the last other holder of a reference is gone, or the node has another
%% name.
-module(ats_values_SUITE).

-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0, init_per_suite/1, end_per_suite/1]).
-export([
    every_kind/1,
    inserting_process_dies/1,
    magic_references_live/1,
    deleted_objects_let_go/1,
    closures_work/1,
    aliases_and_ports/1,
    node_is_renamed/1,
    large_binaries_are_shared/1,
    sub_binaries/1,
    small_binaries_do_not_pin_large_ones/1,
    deep_terms/1,
    wide_terms/1,
    maps_of_the_same_keys/1,
    funs_of_every_shape/1,
    results_are_independent/1
]).
%% Called in another machine.
-export([rename_node/1]).

-import(ats_test_lib, [until/2]).

-define(TYPES, [set, ordered_set, bag, duplicate_bag]).

suite() -> [{timetrap, {minutes, 10}}].

all() ->
    [
        every_kind,
        inserting_process_dies,
        magic_references_live,
        deleted_objects_let_go,
        closures_work,
        aliases_and_ports,
        node_is_renamed,
        large_binaries_are_shared,
        sub_binaries,
        small_binaries_do_not_pin_large_ones,
        deep_terms,
        wide_terms,
        maps_of_the_same_keys,
        funs_of_every_shape,
        results_are_independent
    ].

init_per_suite(Config) ->
    ok = ats_term_gen:prepare(),
    Config.

end_per_suite(_) ->
    ok.

terms() ->
    [ats_term_gen:realize(R) || R <- ats_term_gen:one_of_each()].

%% ----- fidelity -----

every_kind(_) ->
    M = ats_oracle:subject(),
    Numbered = lists:enumerate(terms()),
    lists:foreach(
        fun(Options) ->
            T = M:new(values, Options),
            M:insert(T, [{N, Term, [Term], {Term}} || {N, Term} <- Numbered]),
            [assert_same({N, Term, [Term], {Term}}, M:lookup(T, N)) || {N, Term} <- Numbered],
            [?assert(same(Term, M:lookup_element(T, N, 2))) || {N, Term} <- single(M, T, Numbered)],
            %% One by one, and through updates of a single element.
            M:delete_all_objects(T),
            [M:insert(T, {N, Term}) || {N, Term} <- Numbered],
            [assert_same({N, Term}, M:lookup(T, N)) || {N, Term} <- Numbered],
            [
                begin
                    M:update_element(T, N, {2, nothing}),
                    M:update_element(T, N, {2, Term}),
                    assert_same({N, Term}, M:lookup(T, N))
                end
             || {N, Term} <- single(M, T, Numbered)
            ],
            M:delete(T)
        end,
        [[Type | More] || Type <- ?TYPES, More <- [[], [compressed]]]
    ).

single(M, T, Numbered) ->
    case lists:member(M:info(T, type), [set, ordered_set]) of
        true -> Numbered;
        false -> []
    end.

assert_same(Expected, [Got]) ->
    same(Expected, Got) orelse ct:fail({not_the_same, Expected, Got}).

same(A, B) -> ats_oracle:same(A, B).

%% A dead process leaves behind only the objects it inserted.
inserting_process_dies(_) ->
    M = ats_oracle:subject(),
    T = M:new(values, [public]),
    Test = self(),
    {Pid, Mon} = spawn_monitor(fun() ->
        Large = binary:copy(<<"large">>, 10000),
        Terms = [
            self(),
            make_ref(),
            erlang:monitor(process, Test, [{alias, explicit_unalias}]),
            Large,
            binary:part(Large, 7, 3000),
            #{self() => [make_ref() | Large]},
            fun() -> {self(), Large} end,
            lists:duplicate(1000, {x, 1 bsl 100})
        ],
        Test ! {self(), Terms},
        M:insert(T, [{N, Term} || {N, Term} <- lists:enumerate(Terms)]),
        erlang:garbage_collect(),
        receive
            stop -> ok
        end
    end),
    Terms =
        receive
            {Pid, L} -> L
        end,
    until(fun() -> M:info(T, size) =:= length(Terms) end, 2000),
    ats_test_lib:kill(Pid),
    receive
        {'DOWN', Mon, process, Pid, _} -> ok
    end,
    churn(),
    [assert_same({N, Term}, M:lookup(T, N)) || {N, Term} <- lists:enumerate(Terms)],
    M:delete(T).

%% Makes and drops garbage, so that memory that was freed by mistake is written over.
churn() ->
    Garbage = fun() -> [{N, <<N:(8 * 5000)>>, make_ref()} || N <- lists:seq(1, 2000)] end,
    ats_test_lib:parallel([Garbage, Garbage]),
    erlang:garbage_collect().

%% ----- references that hold something -----

%% The table is the only holder of these references; still their targets are alive.
magic_references_live(_) ->
    M = ats_oracle:subject(),
    lists:foreach(
        fun(Type) ->
            T = M:new(values, [Type, public]),
            ats_test_lib:parallel([
                fun() ->
                    [
                        begin
                            A = atomics:new(1, []),
                            atomics:put(A, 1, N),
                            C = counters:new(1, []),
                            counters:put(C, 1, N),
                            M:insert(T, {N, A, [#{counter => C}]}),
                            M:insert(T, {{key, A}, N})
                        end
                     || N <- lists:seq(1, 100)
                    ]
                end
            ]),
            churn(),
            [
                begin
                    [{N, A, [#{counter := C}]}] = M:lookup(T, N),
                    ?assertEqual(N, atomics:get(A, 1)),
                    ?assertEqual(N, counters:get(C, 1)),
                    ?assertEqual([{{key, A}, N}], M:lookup(T, {key, A}))
                end
             || N <- lists:seq(1, 100)
            ],
            %% Updated copies share the counter.
            [{1, A1, _}] = M:lookup(T, 1),
            [{1, A2, _}] = M:lookup(T, 1),
            atomics:add(A1, 1, 41),
            ?assertEqual(42, atomics:get(A2, 1)),
            M:delete(T)
        end,
        ?TYPES
    ).

%% Resources of a table go when the object or the table goes.
deleted_objects_let_go(_) ->
    M = ats_oracle:subject(),
    Size = 1000000,
    lists:foreach(
        fun({What, Remove}) ->
            T = M:new(values, [public]),
            %% Remains of tables of others may go only now.
            Before = settled(binaries()),
            ats_test_lib:parallel([
                fun() ->
                    Hold = fun(Large) -> {Large, fun() -> byte_size(Large) end} end,
                    [M:insert(T, {N, Hold(binary:copy(<<N>>, Size))}) || N <- lists:seq(1, 50)]
                end
            ]),
            ?assert(binaries() >= Before + 48 * Size),
            Remove(M, T),
            try
                until(
                    fun() -> binaries() < Before + 2 * Size end,
                    10000
                )
            catch
                error:_ -> ct:fail({What, keeps, binaries() - Before})
            end,
            What =:= delete_table orelse M:delete(T)
        end,
        [
            {delete_table, fun(M1, T) -> M1:delete(T) end},
            {delete_all_objects, fun(M1, T) -> M1:delete_all_objects(T) end},
            {delete, fun(M1, T) -> [M1:delete(T, N) || N <- lists:seq(1, 50)] end},
            {take, fun(M1, T) ->
                ats_test_lib:parallel([fun() -> [M1:take(T, N) || N <- lists:seq(1, 50)], ok end])
            end},
            {overwrite, fun(M1, T) -> [M1:insert(T, {N, x}) || N <- lists:seq(1, 50)] end},
            {update, fun(M1, T) -> [M1:update_element(T, N, {2, x}) || N <- lists:seq(1, 50)] end}
        ]
    ).

binaries() ->
    erlang:garbage_collect(),
    erlang:memory(binary).

%% Returns the memory of binaries when they have not become fewer for a while.
settled(Before) ->
    timer:sleep(300),
    case binaries() of
        Now when Now < Before - 100000 -> settled(Now);
        Now -> Now
    end.

closures_work(_) ->
    M = ats_oracle:subject(),
    T = M:new(values, [public]),
    Large = binary:copy(<<"captured">>, 1000),
    Self = self(),
    ats_test_lib:parallel([
        fun() ->
            Ref = make_ref(),
            M:insert(T, {closure, fun(X) -> {X, Self, Large, Ref} end, Ref}),
            M:insert(T, {external, fun erlang:abs/1})
        end
    ]),
    churn(),
    [{closure, Fun, Ref}] = M:lookup(T, closure),
    ?assertEqual({7, Self, Large, Ref}, Fun(7)),
    [{external, Abs}] = M:lookup(T, external),
    ?assertEqual(5, Abs(-5)),
    M:delete(T).

aliases_and_ports(_) ->
    M = ats_oracle:subject(),
    T = M:new(values, []),
    Alias = alias(),
    Port = open_port({spawn, "cat"}, [binary]),
    M:insert(T, [{alias, Alias}, {port, Port}, {self, self()}]),
    [{alias, Alias2}] = M:lookup(T, alias),
    Alias2 ! hello,
    receive
        hello -> ok
    after 1000 -> ct:fail(alias_does_not_work)
    end,
    [{port, Port2}] = M:lookup(T, port),
    port_command(Port2, "echo"),
    receive
        {Port, {data, <<"echo">>}} -> ok
    after 5000 -> ct:fail(port_does_not_work)
    end,
    [{self, Pid}] = M:lookup(T, self),
    Pid ! again,
    receive
        again -> ok
    after 1000 -> ct:fail(pid_does_not_work)
    end,
    port_close(Port),
    unalias(Alias),
    M:delete(T).

%% ----- the node gets a name -----

%% Pids, references and ports made before the node had a name are the same terms afterwards.
node_is_renamed(_) ->
    {ok, Peer, _} = ats_test_lib:start_vm([]),
    try
        ?assertEqual(ok, ats_test_lib:call(Peer, ?MODULE, rename_node, [ats_oracle:subject()]))
    after
        ats_test_lib:stop_vm(Peer)
    end.

rename_node(M) ->
    ok = ats_term_gen:prepare(),
    _ = os:cmd("epmd -daemon"),
    Terms = lists:enumerate(terms()),
    Tables = [M:new(renamed, [Type, public]) || Type <- [set, ordered_set]],
    [M:insert(T, [{N, Term} || {N, Term} <- Terms]) || T <- Tables],
    [M:insert(T, [{{key, Term}, N} || {N, Term} <- Terms]) || T <- Tables],
    Name = list_to_atom("ats_values_" ++ os:getpid()),
    {ok, _} = net_kernel:start([Name, shortnames]),
    true = is_alive(),
    Wrong = [
        Term
     || T <- Tables,
        {N, Term} <- Terms,
        not same([{N, Term}], M:lookup(T, N)) orelse not is_found(M, T, {key, Term})
    ],
    New = [{new, self(), make_ref(), hd(erlang:ports()), fun() -> self() end}],
    WrongNew = [
        Term
     || T <- Tables,
        Term <- New,
        M:insert(T, {new, Term}),
        not same([{new, Term}], M:lookup(T, new))
    ],
    ok = net_kernel:stop(),
    case Wrong ++ WrongNew of
        [] -> ok;
        _ -> {changed, Wrong, WrongNew}
    end.

%% Real hash tables lose keys that hold references or ports when the node gets a name.
is_found(ats_reference, _, _) -> true;
is_found(M, T, Key) -> M:member(T, Key).

%% ----- binaries -----

%% A large binary is not copied: hundred objects with the same one take hardly more memory, and a
%% lookup returns the very same memory.
large_binaries_are_shared(_) ->
    M = ats_oracle:subject(),
    T = M:new(values, []),
    Large = binary:copy(<<"shared">>, 200000),
    Before = binaries(),
    M:insert(T, [{N, Large} || N <- lists:seq(1, 100)]),
    ?assert(binaries() < Before + byte_size(Large)),
    Copies = [B || N <- lists:seq(1, 100), {_, B} <- M:lookup(T, N)],
    ?assert(erlang:memory(binary) < Before + byte_size(Large)),
    ?assertEqual(1, length(lists:usort([Id || {Id, Size, _} <- held(), Size >= byte_size(Large)]))),
    ?assertEqual([Large], lists:usort(Copies)),
    M:delete(T).

held() ->
    {binary, Held} = process_info(self(), binary),
    Held.

sub_binaries(_) ->
    M = ats_oracle:subject(),
    T = M:new(values, [ordered_set]),
    Whole = binary:copy(<<0, 1, 2, 3, 4, 5, 6, 7, 8, 9>>, 1000),
    Parts =
        [
            binary:part(Whole, Skip, Size)
         || Skip <- [0, 1, 9, 500], Size <- [0, 1, 64, 65, 2000, 9000]
        ] ++
            [
                begin
                    <<_:Skip/bits, Part:Size/bits, _/bits>> = Whole,
                    Part
                end
             || Skip <- [1, 7, 8, 13], Size <- [1, 7, 9, 520, 8 * 1024 - 1, 8 * 1024, 8 * 2000 + 3]
            ],
    %% A binary that is still being appended to.
    Growing = lists:foldl(fun(N, Acc) -> <<Acc/binary, N:32>> end, <<>>, lists:seq(1, 1000)),
    [M:insert(T, {{part, P}, P}) || P <- [Growing | Parts]],
    Longer = <<Growing/binary, "more">>,
    M:insert(T, {{part, Longer}, Longer}),
    churn(),
    [?assertEqual([{{part, P}, P}], M:lookup(T, {part, P})) || P <- [Growing, Longer | Parts]],
    M:delete(T).

%% A few bytes cut out of a large binary are copied when they are stored.
small_binaries_do_not_pin_large_ones(_) ->
    M = ats_oracle:subject(),
    T = M:new(values, [public]),
    Before = binaries(),
    ats_test_lib:parallel([
        fun() ->
            [
                M:insert(T, {N, binary:part(binary:copy(<<N>>, 1000000), 5, 20)})
             || N <- lists:seq(1, 50)
            ]
        end
    ]),
    case M of
        %% Only `ats' guarantees that binaries are freed.
        ats_reference -> ok;
        _ -> until(fun() -> binaries() < Before + 10000000 end, 5000)
    end,
    ?assertEqual([{7, binary:copy(<<7>>, 20)}], M:lookup(T, 7)),
    M:delete(T).

%% ----- size and depth -----

deep_terms(_) ->
    M = ats_oracle:subject(),
    lists:foreach(
        fun(Type) ->
            T = M:new(values, [Type]),
            lists:foreach(
                fun({Name, Step}) ->
                    Deep = nest(1000000, Step, x),
                    Other = nest(1000000, Step, y),
                    M:insert(T, {Name, Deep}),
                    [{Name, Got}] = M:lookup(T, Name),
                    ?assert(Got =:= Deep),
                    M:insert(T, {{key, Deep}, value}),
                    ?assertEqual([{{key, Deep}, value}], M:lookup(T, {key, Deep})),
                    ?assertEqual([], M:lookup(T, {key, Other})),
                    M:delete(T, {key, Deep}),
                    ?assertNot(M:member(T, {key, Deep}))
                end,
                [
                    {list, fun(X, _) -> [X] end},
                    {tuple, fun(X, _) -> {X} end},
                    {map, fun(X, _) -> #{a => X} end},
                    {cons, fun(X, N) -> [N | X] end}
                ]
            ),
            M:delete(T)
        end,
        [set, ordered_set]
    ).

nest(0, _, X) -> X;
nest(N, Step, X) -> nest(N - 1, Step, Step(X, N)).

wide_terms(_) ->
    M = ats_oracle:subject(),
    lists:foreach(
        fun(Type) ->
            T = M:new(values, [Type]),
            Wide = [
                lists:seq(1, 300000),
                list_to_tuple(lists:seq(1, 300000)),
                maps:from_list([{N, {N}} || N <- lists:seq(1, 50000)]),
                1 bsl 500000,
                binary:copy(<<1>>, 10000000),
                list_to_atom(lists:duplicate(255, $w)),
                string:copies("text ", 100000)
            ],
            [M:insert(T, {Wide1, Wide1}) || Wide1 <- Wide],
            [?assertEqual([{W, W}], M:lookup(T, W)) || W <- Wide],
            %% An object may be wide, too.
            Object = list_to_tuple([object | lists:seq(1, 100000)]),
            M:insert(T, Object),
            ?assertEqual([Object], M:lookup(T, object)),
            ?assertEqual([99999], lists:flatten([M:lookup_element(T, object, 100000)])),
            M:delete(T)
        end,
        [set, ordered_set, bag]
    ).

%% A thread remembers the layouts of maps whose keys it has met. Maps of all sizes come and go
%% with the same keys, made in different orders, and with other keys in between.
maps_of_the_same_keys(_) ->
    M = ats_oracle:subject(),
    Values = list_to_tuple(terms()),
    Keys = [
        lists:sublist(All, Size)
     || Size <- [0, 3, 4, 5, 32, 33, 100, 256, 257],
        All <- [integers(300), atoms(300), mixed(300)]
    ],
    %% Some sets of keys are met again at once, others after all the others.
    Rounds = Keys ++ [K || Set <- Keys, K <- [Set, Set]] ++ Keys,
    lists:foreach(
        fun(Options) ->
            T = M:new(values, Options),
            lists:foreach(
                fun({N, Set}) ->
                    Pairs = [
                        {K, element((N + I) rem tuple_size(Values) + 1, Values)}
                     || {I, K} <- lists:enumerate(Set)
                    ],
                    Map = maps:from_list(Pairs),
                    Object = {N, Map, [Map, {Map}]},
                    true = M:insert(T, Object),
                    assert_same(Object, M:lookup(T, N)),
                    erlang:garbage_collect(),
                    [{N, Found, [Found2, {Found3}]}] = Results = M:lookup(T, N),
                    erlang:garbage_collect(),
                    [?assert(same(Map, F)) || F <- [Found, Found2, Found3]],
                    %% The VM takes it for one of its own.
                    [?assertEqual(V, maps:get(K, Found)) || {K, V} <- Pairs],
                    ?assertEqual(Map#{more => 1}, Found#{more => 1}),
                    ?assertEqual(maps:without(Set, Map), maps:without(Set, Found)),
                    ?assertEqual(erlang:phash2(Map), erlang:phash2(Found)),
                    ?assertEqual(Results, binary_to_term(term_to_binary(Results))),
                    %% The same map has the same image, in whatever order it was made.
                    Other = lists:foldl(
                        fun({K, V}, A) -> A#{K => V} end, #{}, lists:reverse(Pairs)
                    ),
                    true = M:delete_object(T, {N, Other, [Other, {Other}]}),
                    ?assertEqual([], M:lookup(T, N))
                end,
                lists:enumerate(Rounds)
            ),
            M:delete(T)
        end,
        [[set], [bag, compressed]]
    ).

integers(N) -> [I * 7 - 300 || I <- lists:seq(1, N)].

atoms(N) -> [list_to_atom("key_" ++ integer_to_list(I)) || I <- lists:seq(1, N)].

mixed(N) ->
    Atoms = list_to_tuple(atoms(N)),
    [
        case I rem 5 of
            0 -> <<I:32>>;
            1 -> I * 1.5;
            2 -> [I];
            _ -> element(I, Atoms)
        end
     || I <- lists:seq(1, N)
    ].

%% Closures of several arities and numbers of captured values, beside external funs, also of modules
%% that are not there, as keys and as values, are those of ets, and work.
funs_of_every_shape(_) ->
    Captured = {captured, [make_ref(), 1.5, <<"text">>]},
    Closures =
        [fun() -> Captured end, fun(A) -> A end, fun(A) -> {A, Captured} end, fun(_, B) -> B end,
         fun(A, B) -> {A, B, Captured} end, fun(_, _, C) -> C end]
        ++ [closure(N) || N <- lists:seq(1, 5)],
    External = [fun erlang:abs/1, fun lists:map/2, fun ?MODULE:all/0, fun no_module:no_function/7],
    Funs = Closures ++ External,
    M = ats_oracle:subject(),
    Spec = [{{'$1', '_'}, [{is_function, '$1'}], ['$1']}],
    Keys = Funs ++ [{F, 1} || F <- Funs] ++ [#{F => F} || F <- Funs],
    [begin
         {E, T} = {ets:new(e, [Type]), M:new(t, [Type])},
         [?assertEqual(ets:insert(E, {K, Funs}), M:insert(T, {K, Funs})) || K <- Order(Keys)],
         ?assertEqual(lists:sort(ets:tab2list(E)), lists:sort(M:tab2list(T))),
         [?assertEqual(ets:lookup(E, K), M:lookup(T, K)) || K <- Keys],
         ?assertEqual(lists:sort(ets:select(E, Spec)), lists:sort(M:select(T, Spec))),
         [{Fun, [Fun | _]}] = M:lookup(T, hd(Funs)),
         ?assertEqual(Captured, Fun()),
         M:delete(T)
     end || Type <- ?TYPES, Order <- [fun(Ks) -> Ks end, fun lists:reverse/1]],
    ok.

closure(N) ->
    List = lists:seq(1, N),
    case N of
        1 -> fun() -> List end;
        2 -> [A, B] = List, fun(C) -> {A, B, C} end;
        3 -> [A, B, C] = List, fun() -> {A, B, C} end;
        4 -> [A, B, C, D] = List, fun(E) -> {A, B, C, D, E} end;
        5 -> [A, B, C, D, E] = List, fun(F, G) -> {A, B, C, D, E, F, G} end
    end.

%% A result is the caller's own: it outlives the object, the table and the next insert.
results_are_independent(_) ->
    M = ats_oracle:subject(),
    Terms = terms(),
    T = M:new(values, []),
    M:insert(T, [{N, Term} || {N, Term} <- lists:enumerate(Terms)]),
    Results = [M:lookup(T, N) || N <- lists:seq(1, length(Terms))],
    M:insert(T, [{N, overwritten} || N <- lists:seq(1, length(Terms))]),
    M:delete(T),
    %% Most time until memory is freed that is needed no more.
    timer:sleep(100),
    churn(),
    [
        assert_same({N, Term}, Result)
     || {{N, Term}, Result} <- lists:zip(lists:enumerate(Terms), Results)
    ],
    ok.

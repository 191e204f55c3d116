%% Terms on their way into tables and out: images, order keys and exact keys made by the native
%% library are compared with the answers of the VM about the terms.
%%
%% The library is built with functions for this purpose. ATS_TERM_NIF names one that is built
%% already (without its extension).
-module(ats_term_SUITE).

-include_lib("proper/include/proper.hrl").

-export([all/0, suite/0, init_per_suite/1, end_per_suite/1]).
-export([
    layouts_are_known/1,
    round_trips/1,
    round_trips_at_random/1,
    keys_of_all_pairs/1,
    keys_at_random/1,
    unknown_kinds/1,
    deep_terms/1,
    death_of_the_owner/1,
    last_holder_of_magic_reference/1,
    restored_terms_work/1,
    renamed_node/1,
    large_binaries_are_shared/1,
    nothing_leaks/1,
    concurrent_readers/1,
    atoms_from_many_processes/1,
    panics_are_caught/1,
    calls_are_made_again/1,
    reloading/1,
    other_build_is_refused/1
]).

-import(ats_test_lib, [check/2]).
%% Called on another node.
-export([renaming/0]).

-define(NIF, ats_term_nif).

suite() -> [{timetrap, {minutes, 10}}].

all() ->
    [
        layouts_are_known,
        round_trips,
        round_trips_at_random,
        keys_of_all_pairs,
        keys_at_random,
        unknown_kinds,
        deep_terms,
        death_of_the_owner,
        last_holder_of_magic_reference,
        restored_terms_work,
        renamed_node,
        large_binaries_are_shared,
        nothing_leaks,
        concurrent_readers,
        atoms_from_many_processes,
        panics_are_caught,
        calls_are_made_again,
        reloading,
        other_build_is_refused
    ].

%% ----- the library -----

init_per_suite(Config) ->
    Library = library(),
    true = os:putenv("ATS_TERM_NIF", Library),
    {module, ?NIF} = code:ensure_loaded(?NIF),
    ok = ats_term_gen:prepare(),
    [{library, Library} | Config].

end_per_suite(_) ->
    ok.

library() ->
    case os:getenv("ATS_TERM_NIF") of
        false -> build();
        Path -> Path
    end.

build() ->
    Folder = ats_test_lib:cargo_build("-p ats-nif --features test-nifs"),
    [Built] = filelib:wildcard(filename:join(Folder, "libats_nif.{so,dylib}")),
    %% The VM wants the extension .so everywhere.
    Library = filename:join(Folder, "ats_term_nif"),
    {ok, _} = file:copy(Built, Library ++ ".new"),
    ok = file:rename(Library ++ ".new", Library ++ ".so"),
    Library.

%% ----- terms and their keys -----

%% The ways that work with any layout are slower, and this VM is not meant to need them.
layouts_are_known(_) ->
    {true, true, true, true} = ?NIF:known_layouts().

round_trips(_) ->
    [ok = check_round_trip(T) || T <- one_of_each()],
    ok.

round_trips_at_random(_) ->
    Property = ?FORALL(R, ats_term_gen:any_term(), check_round_trip(realize(R)) =:= ok),
    check(Property, 2000).

check_round_trip(Term) ->
    case ?NIF:roundtrip(Term) of
        Same when Same =:= Term -> ok;
        Other -> {changed, Term, Other}
    end.

keys_of_all_pairs(_) ->
    Terms = one_of_each(),
    Known = [
        {T, ?NIF:order_key(T), ?NIF:exact_key(T), ?NIF:image_store({T})}
     || T <- Terms
    ],
    Wrong = [{A, B, W} || {A, _, _, _} = X <- Known, {B, _, _, _} = Y <- Known, W <- wrong(X, Y)],
    [] = lists:sublist(Wrong, 10),
    [ok = check_image_keys(T) || T <- Terms],
    ok.

keys_at_random(_) ->
    Pair = {ats_term_gen:any_term(), ats_term_gen:any_term()},
    Keys = ?FORALL({R1, R2}, {ats_term_gen:key(), ats_term_gen:key()}, check_pair(R1, R2)),
    Terms = ?FORALL({R1, R2}, Pair, check_pair(R1, R2)),
    Nested = ?FORALL(
        {R1, R2, R3},
        {ats_term_gen:any_term(), ats_term_gen:key(), ats_term_gen:key()},
        check_pair({tuple, [R1, R2]}, {tuple, [R1, R3]}) andalso
            check_pair({list, [R1, R2]}, {list, [R1, R3]}) andalso
            check_pair({map, [{R1, R2}]}, {map, [{R1, R3}]}) andalso
            check_pair({map, [{R2, R1}]}, {map, [{R3, R1}]})
    ),
    check(Keys, 5000),
    check(Terms, 2000),
    check(Nested, 2000).

check_pair(R1, R2) ->
    [X, Y] = [
        {T, ?NIF:order_key(T), ?NIF:exact_key(T), ?NIF:image_store({T})}
     || T <- [realize(R1), realize(R2)]
    ],
    wrong(X, Y) =:= [] andalso wrong(X, X) =:= [] andalso
        check_image_keys(element(1, X)) =:= ok.

%% Returns the differences between the library and the VM for two terms.
wrong({A, OrderA, ExactA, ImageA}, {B, OrderB, ExactB, ImageB}) ->
    Same = A =:= B,
    [
        What
     || {What, Said, True} <- [
            {less, OrderA < OrderB, A < B},
            {equal, OrderA =:= OrderB, A == B},
            {exactly_equal, ExactA =:= ExactB, Same},
            {same_image, ?NIF:image_same(ImageA, ImageB), Same}
        ],
        Said =/= True
    ].

%% Keys made from an image are those made from the term.
check_image_keys(Term) ->
    Keys = {?NIF:order_key({Term}), ?NIF:exact_key({Term})},
    case ?NIF:image_keys(?NIF:image_store({Term})) of
        Keys -> ok;
        Other -> {different_keys, Term, Keys, Other}
    end.

%% A term of a kind that the library does not know comes back, stands between tuples and maps, and
%% is told apart from others: alone, within other terms, and kept by a closure.
unknown_kinds(_) ->
    Unknown = 4711.25,
    Around = [
        fun(T) -> T end,
        fun(T) -> {a, T, [T | T]} end,
        fun(T) -> #{T => T, #{T => 1} => T, x => {T}} end,
        fun(T) -> fun() -> T end end
    ],
    Key = fun(T) -> {?NIF:order_key(T), ?NIF:exact_key(T)} end,
    {KnownOrder, KnownExact} = Key(Unknown),
    true = ?NIF:make_opaque(Unknown),
    try
        {Order, Exact} = Key(Unknown),
        true = Order =/= KnownOrder andalso Exact =/= KnownExact,
        true = ?NIF:order_key({x, 1}) < Order andalso Order < ?NIF:order_key(#{}),
        true = ?NIF:order_key({Unknown}) < ?NIF:order_key({Unknown, 1}),
        [
            begin
                [Term, Same, Other] = [Wrap(F) || F <- [Unknown, Unknown, 4711.5]],
                ok = check_round_trip(Term),
                ok = check_image_keys(Term),
                [Image, SameImage, OtherImage] =
                    [?NIF:image_store({T}) || T <- [Term, Same, Other]],
                true = {Term} =:= ?NIF:image_fetch(Image),
                true = ?NIF:image_same(Image, SameImage),
                false = ?NIF:image_same(Image, OtherImage),
                true = Key(Term) =:= Key(Same),
                false = Key(Term) =:= Key(Other)
            end
         || Wrap <- Around
        ]
    after
        ?NIF:make_opaque(none)
    end,
    {KnownOrder, KnownExact} = Key(Unknown),
    ok.

%% A million levels: nothing here may use the machine stack.
deep_terms(_) ->
    Levels = 1000000,
    [deep_term(Kind, Levels) || Kind <- [list, cons, tuple, map_value, map_key]],
    ok.

deep_term(Kind, Levels) ->
    [One, Two] = [nest(Kind, Levels, Leaf) || Leaf <- [1, 2]],
    ok = check_round_trip(One),
    true = ?NIF:order_key(One) < ?NIF:order_key(Two),
    false = ?NIF:exact_key(One) =:= ?NIF:exact_key(Two),
    Image = ?NIF:image_store({One}),
    true = ?NIF:image_same(Image, ?NIF:image_store({One})),
    false = ?NIF:image_same(Image, ?NIF:image_store({Two})).

%% A key of a map that holds maps is sorted again for each map around it, so that kind is kept low.
nest(map_key, Levels, Term) -> nest_map(Levels div 10000, Term);
nest(_, 0, Term) -> Term;
nest(list = K, N, Term) -> nest(K, N - 1, [Term]);
nest(cons = K, N, Term) -> nest(K, N - 1, [a | Term]);
nest(tuple = K, N, Term) -> nest(K, N - 1, {Term});
nest(map_value = K, N, Term) -> nest(K, N - 1, #{k => Term}).

nest_map(0, Term) -> Term;
nest_map(N, Term) -> nest_map(N - 1, #{Term => v}).

%% ----- terms that outlive their origin -----

%% `ets' keeps the same terms for comparison.
death_of_the_owner(_) ->
    Table = ets:new(?MODULE, [public]),
    Image = in_a_process(fun() ->
        Terms = list_to_tuple(fresh_terms() ++ one_of_each()),
        true = ets:insert(Table, {terms, Terms}),
        ?NIF:image_store(Terms)
    end),
    [erlang:garbage_collect(P) || P <- processes()],
    [{terms, Terms}] = ets:lookup(Table, terms),
    Terms = ?NIF:image_fetch(Image),
    true = Terms =:= ?NIF:image_fetch(Image),
    true = ?NIF:image_same(Image, ?NIF:image_store(Terms)),
    true = ets:delete(Table),
    erlang:garbage_collect(),
    true = Terms =:= ?NIF:image_fetch(Image),
    ok.

%% Terms of the kinds that die with their last reference, which is that of the caller.
fresh_terms() ->
    Array = atomics:new(1, []),
    Counter = counters:new(1, []),
    Bytes = binary:copy(<<"0123456789">>, 1000),
    Self = self(),
    Ref = make_ref(),
    [
        Array,
        Counter,
        Self,
        Ref,
        erlang:monitor(process, Self, [{alias, explicit_unalias}]),
        Bytes,
        binary:part(Bytes, 11, 5000),
        fun() -> {Array, Bytes, Self, Ref} end
    ].

last_holder_of_magic_reference(_) ->
    Image = in_a_process(fun() ->
        Array = atomics:new(1, []),
        ok = atomics:put(Array, 1, 42),
        ?NIF:image_store({Array, [Array], fun() -> atomics:get(Array, 1) end})
    end),
    [erlang:garbage_collect(P) || P <- processes()],
    {Array, [Array], Get} = ?NIF:image_fetch(Image),
    42 = atomics:get(Array, 1),
    ok = atomics:put(Array, 1, 43),
    43 = Get(),
    ok.

restored_terms_work(_) ->
    Self = self(),
    Alias = erlang:monitor(process, spawn(fun timer_sleep/0), [{alias, explicit_unalias}]),
    {Pid, Monitor} = spawn_monitor(fun timer_sleep/0),
    Funs = {fun lists:reverse/1, fun(X) -> {Self, X} end},
    Image = ?NIF:image_store({Self, Alias, Pid, Monitor, Funs}),
    {Self, Alias2, Pid2, Monitor2, {Reverse, Pair}} = ?NIF:image_fetch(Image),
    Alias2 ! {by_alias, 1},
    receive
        {by_alias, 1} -> ok
    after 1000 -> ct:fail("the alias does not work")
    end,
    exit(Pid2, kill),
    receive
        {'DOWN', Monitor2, process, Pid, killed} -> true = Monitor =:= Monitor2
    after 1000 -> ct:fail("the monitor does not work")
    end,
    [2, 1] = Reverse([1, 2]),
    {Self, x} = Pair(x),
    true = erlang:demonitor(Alias2, [flush]),
    ok.

timer_sleep() ->
    timer:sleep(infinity).

%% Runs on a node that has no name yet and gets one.
renamed_node(Config) ->
    Paths = [filename:absname(P) || P <- code:get_path(), P =/= "."],
    {ok, Peer, Node} = peer:start_link(#{
        connection => standard_io,
        args => ["-pa" | Paths],
        env => [{"ATS_TERM_NIF", proplists:get_value(library, Config)}]
    }),
    nonode@nohost = Node,
    ok = ats_test_lib:call(Peer, ?MODULE, renaming, []),
    ok = peer:stop(Peer).

-spec renaming() -> ok.
renaming() ->
    nonode@nohost = node(),
    ok = ats_term_gen:prepare(),
    Table = ets:new(?MODULE, [public]),
    Terms = list_to_tuple(fresh_terms() ++ one_of_each()),
    true = ets:insert(Table, {terms, Terms}),
    Image = ?NIF:image_store(Terms),
    Keys = [keys(T) || T <- tuple_to_list(Terms)],
    ImageKeys = keys(Terms),
    {Before, _} = lists:split(5, tuple_to_list(Terms)),
    Written = term_to_binary(self()),
    _ = os:cmd("epmd -daemon"),
    %% A name of its own, as another run may be going on beside this one.
    {ok, _} = net_kernel:start([list_to_atom("ats_renamed_" ++ os:getpid()), shortnames]),
    true = node() =/= nonode@nohost,
    [{terms, Terms}] = ets:lookup(Table, terms),
    true = Terms =:= ?NIF:image_fetch(Image),
    true = ?NIF:image_same(Image, ?NIF:image_store(Terms)),
    [] = [T || {T, Key} <- lists:zip(tuple_to_list(Terms), Keys), Key =/= keys(T)],
    true = ImageKeys =:= ?NIF:image_keys(Image),
    %% References made under the new name are of the same node as older ones.
    Ref = make_ref(),
    ok = check_round_trip(Ref),
    %% A pid that came as bytes from the time without a name is one of another node now, and
    %% stays one when the name is gone.
    Stranger = binary_to_term(Written),
    false = Stranger =:= self(),
    StrangerImage = ?NIF:image_store({Stranger, #{Stranger => Stranger}}),
    StrangerKeys = keys(Stranger),
    [] = [Old || Old <- Before, (Old < Ref) =/= (?NIF:order_key(Old) < ?NIF:order_key(Ref))],
    ok = net_kernel:stop(),
    true = Terms =:= ?NIF:image_fetch(Image),
    true = ImageKeys =:= keys(Terms),
    true = {Stranger, #{Stranger => Stranger}} =:= ?NIF:image_fetch(StrangerImage),
    true = StrangerKeys =:= keys(Stranger),
    false = StrangerKeys =:= keys(self()),
    ok.

keys(Term) ->
    {?NIF:order_key(Term), ?NIF:exact_key(Term)}.

%% ----- memory -----

large_binaries_are_shared(_) ->
    Size = 4000000,
    Binary = binary:copy(<<7>>, Size),
    Part = binary:part(Binary, 100, 2000),
    Before = binary_memory(),
    Images = [?NIF:image_store({Binary, Part}) || _ <- lists:seq(1, 50)],
    true = binary_memory() - Before < Size,
    {Binary, Part} = ?NIF:image_fetch(hd(Images)),
    Size = binary:referenced_byte_size(element(2, ?NIF:image_fetch(lists:last(Images)))),
    Fetched = [?NIF:image_fetch(I) || I <- Images],
    true = binary_memory() - Before < Size,
    50 = length([ok || {B, P} <- Fetched, B =:= Binary, P =:= Part]),
    %% Appending to a stored binary must not change the stored one.
    Grown = <<Binary/binary, "more">>,
    Stored = ?NIF:image_store({Grown}),
    Other = <<Grown/binary, "one">>,
    Another = <<Grown/binary, "two">>,
    {Grown} = ?NIF:image_fetch(Stored),
    false = Other =:= Another,
    ok.

binary_memory() ->
    erlang:garbage_collect(),
    erlang:memory(binary).

nothing_leaks(_) ->
    Round = fun() ->
        in_a_process(fun() ->
            Terms = list_to_tuple(fresh_terms()),
            [?NIF:image_store(Terms) || _ <- lists:seq(1, 4000)],
            [?NIF:roundtrip(Terms) || _ <- lists:seq(1, 2000)],
            ok
        end),
        settle()
    end,
    Round(),
    First = Round(),
    Last = lists:last([Round() || _ <- lists:seq(1, 8)]),
    %% A leak of the cheapest kind, aliases that share environments, would be 300 KB each round.
    case Last - First < 1000000 of
        true -> ok;
        false -> ct:fail("~b bytes after the first round, ~b after the last", [First, Last])
    end.

%% Memory in use once the VM has run the destructors that wait.
settle() ->
    [erlang:garbage_collect(P) || P <- processes()],
    timer:sleep(100),
    erlang:memory(total) - erlang:memory(processes) - erlang:memory(code).

%% ----- threads -----

concurrent_readers(_) ->
    Image = in_a_process(fun() ->
        ?NIF:image_store(list_to_tuple(fresh_terms() ++ one_of_each()))
    end),
    Terms = ?NIF:image_fetch(Image),
    Keys = ?NIF:image_keys(Image),
    in_parallel(8, fun(N) ->
        [
            begin
                true = Terms =:= ?NIF:image_fetch(Image),
                true = Keys =:= ?NIF:image_keys(Image),
                N rem 2 =:= 0 andalso erlang:garbage_collect(),
                true = ?NIF:image_same(Image, ?NIF:image_store(Terms))
            end
         || _ <- lists:seq(1, 20)
        ]
    end).

%% Threads meet atoms for the first time together, and the text of each is right.
atoms_from_many_processes(_) ->
    Names = [integer_to_binary(N * 7919, 36) || N <- lists:seq(1, 3000)],
    Atoms = [binary_to_atom(<<"ats_term_", Name/binary, "_ü"/utf8>>) || Name <- Names],
    Sorted = lists:sort(Atoms),
    in_parallel(8, fun(_) ->
        Keyed = lists:sort([{?NIF:order_key(A), A} || A <- Atoms]),
        Sorted = [A || {_, A} <- Keyed]
    end).

in_parallel(N, Fun) ->
    Started = [spawn_monitor(fun() -> Fun(I) end) || I <- lists:seq(1, N)],
    [
        receive
            {'DOWN', Monitor, process, Pid, Why} -> normal = Why
        end
     || {Pid, Monitor} <- Started
    ],
    ok.

%% ----- the library itself -----

%% Calls run on the type of scheduler that they ask for, also when they are repeated.
calls_are_made_again(_) ->
    [Type = ?NIF:on_thread(Type, Times) || Type <- [2, 3], Times <- [0, 1, 20]].

panics_are_caught(_) ->
    {'EXIT', {{ats_error, {panic, Text}}, _}} = ats_test_lib:attempt(fun ?NIF:panic/0),
    {match, _} = re:run(Text, "as asked"),
    Store = fun() -> ?NIF:image_store(no_tuple) end,
    {'EXIT', {{ats_error, position}, _}} = ats_test_lib:attempt(Store),
    Fetch = fun() -> ?NIF:image_fetch(make_ref()) end,
    {'EXIT', {{ats_error, type}, _}} = ats_test_lib:attempt(Fetch),
    ok = ?NIF:roundtrip(ok).

reloading(_) ->
    Terms = list_to_tuple(fresh_terms()),
    Image = ?NIF:image_store(Terms),
    [
        begin
            _ = code:purge(?NIF),
            {module, ?NIF} = code:load_file(?NIF),
            Terms = ?NIF:image_fetch(Image)
        end
     || _ <- lists:seq(1, 5)
    ],
    %% Without any code of the module in between.
    _ = code:purge(?NIF),
    true = code:delete(?NIF),
    _ = code:purge(?NIF),
    erlang:garbage_collect(),
    {module, ?NIF} = code:load_file(?NIF),
    Terms = ?NIF:image_fetch(Image),
    true = ?NIF:image_same(Image, ?NIF:image_store(Terms)),
    ok.

%% A second library knows nothing of the first one's tables, so it must not get them.
other_build_is_refused(Config) ->
    Library = proplists:get_value(library, Config),
    Copy = filename:join(proplists:get_value(priv_dir, Config), "copy"),
    {ok, _} = file:copy(Library ++ ".so", Copy ++ ".so"),
    Image = ?NIF:image_store({here}),
    true = os:putenv("ATS_TERM_NIF", Copy),
    _ = code:purge(?NIF),
    {error, on_load_failure} = code:load_file(?NIF),
    {here} = ?NIF:image_fetch(Image),
    _ = code:purge(?NIF),
    true = code:delete(?NIF),
    _ = code:purge(?NIF),
    {module, ?NIF} = code:load_file(?NIF),
    {'EXIT', {{ats_error, type}, _}} = ats_test_lib:attempt(fun() -> ?NIF:image_fetch(Image) end),
    true = os:putenv("ATS_TERM_NIF", Library),
    _ = code:purge(?NIF),
    {error, on_load_failure} = code:load_file(?NIF),
    true = code:delete(?NIF),
    _ = code:purge(?NIF),
    {module, ?NIF} = code:load_file(?NIF),
    {here} = ?NIF:image_fetch(Image),
    ok.

%% ----- helpers -----

one_of_each() ->
    [realize(R) || R <- ats_term_gen:one_of_each()].

realize(Recipe) ->
    ats_term_gen:realize(Recipe).

%% The result of a function, run in a process that is dead when this returns.
in_a_process(Fun) ->
    {Pid, Monitor} = spawn_monitor(fun() -> exit({result, Fun()}) end),
    receive
        {'DOWN', Monitor, process, Pid, {result, Result}} -> Result;
        {'DOWN', Monitor, process, Pid, Why} -> ct:fail(Why)
    end.

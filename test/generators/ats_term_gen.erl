%% Random Erlang terms of every kind, for property tests.
%%
%% A generator yields a *recipe*, not a term. A recipe is plain data, so a failing case shrinks
%% well and can be printed as source text, although terms such as references, ports and funs
%% have no literal syntax. `realize/1' cooks the term; equal recipes give identical terms.
%%
%% Collisions are likely on purpose: `key/0' draws mostly from small pools in which terms meet
%% that are equal but not identical (1 and 1.0, also nested), or that are neighbours in the
%% standard order (both sides of each integer representation boundary).
-module(ats_term_gen).

-include_lib("proper/include/proper.hrl").

-export([
    key/0,
    value/0,
    any_term/0,
    object/0,
    numbers/0,
    pool/0,
    exotic_kinds/0
]).
-export([realize/1, source/1, exotic/2, prepare/0, one_of_each/0, negative_zero/0]).

-export_type([recipe/0]).

-type recipe() ::
    {lit, term()}
    | {exotic, Kind :: atom(), N :: pos_integer()}
    | {bin, Size :: non_neg_integer(), Seed :: byte()}
    | {sub_bin, Skip :: non_neg_integer(), Size :: non_neg_integer(), Seed :: byte()}
    | {bits, Size :: non_neg_integer(), Seed :: byte()}
    | {sub_bits, Skip :: non_neg_integer(), Size :: non_neg_integer(), Seed :: byte()}
    | {tuple, [recipe()]}
    | {list, [recipe()]}
    | {improper, [recipe()], recipe()}
    | {map, [{recipe(), recipe()}]}
    | {big_map, N :: pos_integer(), recipe()}
    | {nest, list | tuple | map | cons, Depth :: non_neg_integer(), recipe()}.

-define(POOL_KEY, {?MODULE, exotic}).
-define(VARIANTS, 3).

%% ----- generators -----

%% A key: mostly from the collision pools, sometimes anything.
key() ->
    frequency([
        {14, ?LAZY(lit(pool))},
        {3, ?LAZY(lit(numbers))},
        {4, ?LAZY(exotic())},
        {2, ?LAZY(near_key())},
        {2, ?LAZY(any_term())}
    ]).

%% A value stored beside a key.
value() ->
    frequency([
        {4, ?LAZY(?LET(N, integer(), {lit, N}))},
        {3, ?LAZY(lit(pool))},
        {2, ?LAZY(lit(numbers))},
        {2, ?LAZY(exotic())},
        {3, ?LAZY(binary_recipe())},
        {3, ?LAZY(any_term())}
    ]).

%% An object: a tuple of one to five elements, any of which can be the key.
object() ->
    frequency([
        {1, ?LAZY(?LET(K, key(), {tuple, [K]}))},
        {5, ?LAZY(?LET({K, V}, {key(), field()}, {tuple, [K, V]}))},
        {6, ?LAZY(?LET({K, V, W}, {key(), field(), field()}, {tuple, [K, V, W]}))},
        {2, ?LAZY(?LET({K, L}, {key(), vector(4, field())}, {tuple, [K | L]}))}
    ]).

field() ->
    frequency([{3, ?LET(N, integer(-3, 3), {lit, N})}, {3, key()}, {2, value()}]).

%% Any term, growing with the size parameter.
any_term() ->
    ?SIZED(Size, any_term(min(Size, 24))).

any_term(0) ->
    leaf();
any_term(Size) ->
    frequency([
        {4, leaf()},
        {2, ?LAZY(?LETSHRINK(L, elements_of(Size), {tuple, L}))},
        {2, ?LAZY(?LETSHRINK(L, elements_of(Size), {list, L}))},
        {1, ?LAZY(?LETSHRINK([H, T], vector(2, any_term(Size div 2)), {improper, [H], T}))},
        {2, ?LAZY(?LET(L, pairs_of(Size), {map, L}))},
        {1, ?LAZY(?LET({N, R}, {integer(30, 70), leaf()}, {big_map, N, R}))},
        {1,
            ?LAZY(
                ?LET(
                    {K, N, R},
                    {elements([list, tuple, map, cons]), integer(1, 200), leaf()},
                    {nest, K, N, R}
                )
            )}
    ]).

elements_of(Size) ->
    ?LET(N, integer(0, 4), vector(N, any_term(Size div 3))).

pairs_of(Size) ->
    ?LET(N, integer(0, 4), vector(N, {any_term(Size div 4), any_term(Size div 4)})).

leaf() ->
    frequency([
        {4, ?LAZY(lit(pool))},
        {4, ?LAZY(lit(numbers))},
        {2, ?LAZY(?LET(N, integer(), {lit, N}))},
        {2, ?LAZY(?LET(F, float(), {lit, F}))},
        {4, ?LAZY(exotic())},
        {4, ?LAZY(binary_recipe())},
        {2, ?LAZY(lit(atoms))}
    ]).

%% Two keys that differ late: same head, another tail. Prefix compression and key heads of an
%% ordered table must still tell them apart.
near_key() ->
    Tail = elements([1, 1.0, 2, a, b, <<>>, <<0>>, [], {}, -1]),
    oneof([
        ?LET(T, Tail, {lit, {prefix, shared, 1, T}}),
        ?LET(T, Tail, {lit, [prefix, shared, 1, T]}),
        ?LET(T, Tail, {lit, [prefix, shared | T]}),
        ?LET(N, elements([0, 1, 254, 255]), {lit, <<"shared prefix ", N>>}),
        ?LET(N, integer(0, 3), {lit, {"a rather long shared prefix of a key", N}})
    ]).

binary_recipe() ->
    Seed = integer(0, 3),
    Bytes = frequency([
        {4, integer(0, 20)},
        {2, elements([63, 64, 65, 255, 256])},
        {2, elements([1023, 1024, 1025, 5000])}
    ]),
    oneof([
        ?LET({N, S}, {Bytes, Seed}, {bin, N, S}),
        ?LET({K, N, S}, {integer(0, 9), Bytes, Seed}, {sub_bin, K, N, S}),
        ?LET({N, S}, {integer(0, 70), Seed}, {bits, N, S}),
        ?LET({K, N, S}, {integer(0, 17), integer(0, 70), Seed}, {sub_bits, K, N, S})
    ]).

exotic() ->
    ?LET(
        {K, N},
        {elements(random_kinds()), integer(1, ?VARIANTS)},
        {exotic, K, N}
    ).

%% External funs in a compressed table end a virtual machine whose `ets' is that of Erlang/OTP 27.
random_kinds() ->
    case list_to_integer(erlang:system_info(otp_release)) of
        Release when Release > 25 -> lists:delete(external_fun, exotic_kinds());
        _ -> exotic_kinds()
    end.

%% One term of a pool. Pools are tuples made once and the choice is an index, since a generator
%% is built anew for every value and `elements/1' would cost in proportion to the pool.
lit(Pool) ->
    Terms = pool_tuple(Pool),
    ?LET(N, integer(1, tuple_size(Terms)), {lit, element(N, Terms)}).

pool_tuple(Pool) ->
    Key = {?MODULE, Pool},
    case persistent_term:get(Key, undefined) of
        undefined ->
            Terms =
                case Pool of
                    pool -> pool();
                    numbers -> numbers();
                    atoms -> atoms()
                end,
            persistent_term:put(Key, list_to_tuple(Terms)),
            pool_tuple(Pool);
        Terms ->
            Terms
    end.

%% ----- pools -----

%% Terms made to meet each other as keys.
-spec pool() -> [term()].
pool() ->
    [
        1,
        1.0,
        2,
        2.0,
        0,
        0.0,
        negative_zero(),
        -1,
        -1.0,
        3,
        a,
        b,
        '',
        true,
        [],
        {},
        #{},
        {1, a},
        {1.0, a},
        {1, b},
        {a},
        {a, 1},
        {a, 1.0},
        [1],
        [1.0],
        [1 | 2],
        [1 | 2.0],
        [a, 1],
        #{1 => a},
        #{1.0 => a},
        #{a => 1},
        #{a => 1.0},
        #{1 => a, 1.0 => b},
        #{1 => b, 1.0 => a},
        #{a => 1, b => 2},
        #{{1, x} => 1},
        #{{1.0, x} => 1},
        {#{1 => 1}},
        {#{1 => 1.0}},
        <<>>,
        <<"k">>,
        <<"k", 0>>,
        <<1:1>>,
        <<1:2>>,
        <<128>>,
        "k",
        "kk",
        '$end_of_table',
        '_',
        '$1'
    ].

%% Made at run time: a compiler for which the two zeros are identical merges the literals.
-spec negative_zero() -> float().
negative_zero() ->
    <<F/float>> = <<1:1, 0:63>>,
    F.

%% Numbers at the boundaries of representations: 28-bit and 59-bit small integers, 53 bits of a
%% float, 63 and 64 bits of a machine word, and beyond.
-spec numbers() -> [number()].
numbers() ->
    Powers = [8, 16, 24, 27, 28, 31, 32, 52, 53, 54, 59, 60, 62, 63, 64, 65, 100, 128, 256, 1000],
    Around = [S * ((1 bsl P) + D) || P <- Powers, D <- [-1, 0, 1], S <- [1, -1]],
    Integral = [S * float(1 bsl P) || P <- [8, 31, 52, 53, 54, 59, 60, 63, 64, 100], S <- [1, -1]],
    Fractions = [
        0.5,
        -0.5,
        1.5,
        1.0e-300,
        5.0e-324,
        -5.0e-324,
        2.2250738585072014e-308,
        1.7976931348623157e308,
        -1.7976931348623157e308,
        9007199254740993.0,
        4503599627370495.5,
        0.1,
        1.0e22,
        1.0e23
    ],
    Around ++ Integral ++ Fractions.

atoms() ->
    [
        '',
        'a b',
        'A',
        'Ä',
        'ÿ',
        binary_to_atom(<<"ā"/utf8>>),
        binary_to_atom(<<"λ-calculus"/utf8>>),
        binary_to_atom(<<"日本語"/utf8>>),
        binary_to_atom(<<"🦀"/utf8>>),
        list_to_atom(lists:duplicate(255, $x)),
        list_to_atom(lists:duplicate(255, 16#65E5)),
        abcd,
        abcde,
        abcdefg,
        abcdefgh,
        abcdefghi
    ].

%% ----- terms without literal syntax -----

-spec exotic_kinds() -> [atom()].
exotic_kinds() ->
    [
        ref,
        alias_ref,
        magic_ref,
        table_ref,
        external_ref,
        pid,
        external_pid,
        port,
        external_port,
        local_fun,
        closure,
        exotic_closure,
        eval_fun,
        external_fun
    ] ++
        case erlang:system_info(otp_release) >= "29" of
            true -> [native_record, record_of_records, closure_of_record];
            false -> []
        end.

%% Makes the exotic terms once; they live until the VM stops, so that a recipe always means the
%% same term.
-spec prepare() -> ok.
prepare() ->
    case persistent_term:get(?POOL_KEY, undefined) of
        undefined ->
            Self = self(),
            {_Pid, Mon} = spawn_monitor(fun() -> make_pool(Self) end),
            receive
                {?MODULE, ready} -> erlang:demonitor(Mon, [flush]);
                {'DOWN', Mon, process, _, Why} -> error({pool_failed, Why})
            end,
            ok;
        _ ->
            ok
    end.

%% The maker of the pool stays alive: ports, aliases and ets tables die with their owner.
make_pool(Client) ->
    Pool = maps:from_list([
        {{Kind, N}, make(Kind, N)}
     || Kind <- exotic_kinds(), N <- lists:seq(1, ?VARIANTS)
    ]),
    persistent_term:put(?POOL_KEY, Pool),
    Client ! {?MODULE, ready},
    receive
        stop -> ok
    end.

-spec exotic(atom(), pos_integer()) -> term().
exotic(Kind, N) ->
    ok = prepare(),
    maps:get({Kind, N}, persistent_term:get(?POOL_KEY)).

make(ref, _) ->
    make_ref();
make(alias_ref, _) ->
    erlang:monitor(process, self(), [{alias, explicit_unalias}]);
make(magic_ref, N) ->
    A = atomics:new(1, []),
    ok = atomics:put(A, 1, N),
    A;
make(table_ref, _) ->
    ets:new(exotic, [public]);
make(external_ref, N) ->
    Node = external_atom(1),
    binary_to_term(<<131, 90, 3:16, Node/binary, 7:32, N:32, 2:32, 1:32>>);
make(pid, 1) ->
    self();
make(pid, _) ->
    spawn(fun() -> ok end);
make(external_pid, N) ->
    Node = external_atom(N rem 2),
    binary_to_term(<<131, 88, Node/binary, (40 + N):32, 0:32, 5:32>>);
make(port, N) ->
    case erlang:ports() of
        Ports when length(Ports) >= N -> lists:nth(N, Ports);
        _ -> open_port({spawn, "cat"}, [])
    end;
make(external_port, N) ->
    Node = external_atom(1),
    binary_to_term(<<131, 89, Node/binary, N:32, 3:32>>);
make(local_fun, 1) ->
    fun(X) -> X end;
make(local_fun, 2) ->
    fun(X, _) -> X end;
make(local_fun, _) ->
    fun local_identity/1;
make(closure, N) ->
    fun(X) -> {X, N} end;
make(exotic_closure, N) ->
    Captured = {self(), make_ref(), make(magic_ref, N), <<0:(8 * 2000)>>, [N | "tail"]},
    fun() -> Captured end;
make(eval_fun, N) ->
    {ok, Tokens, _} = erl_scan:string("fun(X) -> X + " ++ integer_to_list(N) ++ " end."),
    {ok, [Expr]} = erl_parse:parse_exprs(Tokens),
    {value, Fun, _} = erl_eval:expr(Expr, []),
    Fun;
make(external_fun, 1) ->
    fun lists:map/2;
make(external_fun, 2) ->
    fun lists:map/3;
make(external_fun, _) ->
    fun nowhere:missing/255;
make(native_record, N) ->
    record(a, [{y, element(N, {1, 1.0, self()})}, {x, #{1 => [a], 1.0 => <<N>>}}]);
make(record_of_records, N) ->
    record(element(N, {a, b, b}), [{inner, make(native_record, 1)}, {n, {N, record(a, [])}}]);
make(closure_of_record, N) ->
    Record = make(native_record, N),
    fun() -> Record end.

%% Earlier releases do not have the module.
record(Name, Fields) ->
    Module = list_to_atom("records"),
    Module:create(ats, Name, Fields, #{is_exported => Name =:= b}).

local_identity(X) -> X.

external_atom(0) -> <<119, 9, "away@host">>;
external_atom(_) -> <<119, 12, "faraway@host">>.

%% One recipe of every kind, for tests that want coverage rather than chance.
-spec one_of_each() -> [recipe()].
one_of_each() ->
    Exotic = [{exotic, K, N} || K <- exotic_kinds(), N <- lists:seq(1, ?VARIANTS)],
    Flat = [{lit, T} || T <- pool() ++ numbers() ++ atoms()],
    Sizes = [0, 1, 7, 8, 63, 64, 65, 1000, 1023, 1024, 1025, 5000],
    Binaries =
        [{bin, N, 1} || N <- Sizes] ++ [{sub_bin, 3, N, 2} || N <- Sizes],
    Bits = [{bits, N, 1} || N <- [1, 7, 9, 63, 500]] ++ [{sub_bits, 3, N, 1} || N <- [1, 8, 15]],
    Nested = [
        {tuple, Exotic},
        {list, Exotic},
        {improper, Exotic, {exotic, magic_ref, 1}},
        {map, [{E, E} || E <- Exotic]},
        {tuple, [{tuple, [{list, [{bin, 2000, 1}, {exotic, closure, 1}]}]}]},
        {big_map, 33, {exotic, ref, 1}},
        {big_map, 500, {bin, 1500, 3}},
        {map, [{{big_map, 40, {lit, 1}}, {lit, 1}}]}
    ] ++ [{nest, K, D, {exotic, pid, 1}} || K <- [list, tuple, map, cons], D <- [1, 2, 50, 3000]],
    Flat ++ Exotic ++ Binaries ++ Bits ++ Nested.

%% ----- from recipe to term, from recipe to source text -----

-spec realize(recipe()) -> term().
realize({lit, T}) -> T;
realize({exotic, Kind, N}) -> exotic(Kind, N);
realize({bin, Size, Seed}) -> bytes(Size, Seed);
realize({sub_bin, Skip, Size, Seed}) -> binary:part(bytes(Skip + Size, Seed), Skip, Size);
realize({bits, Size, Seed}) -> bits(0, Size, Seed);
realize({sub_bits, Skip, Size, Seed}) -> bits(Skip, Size, Seed);
realize({tuple, L}) -> list_to_tuple([realize(R) || R <- L]);
realize({list, L}) -> [realize(R) || R <- L];
realize({improper, L, T}) -> lists:foldr(fun(R, Acc) -> [realize(R) | Acc] end, realize(T), L);
realize({map, L}) ->
    Pairs = [{realize(K), realize(V)} || {K, V} <- L],
    maps:from_list([Pair || {Key, _} = Pair <- Pairs, is_in_standard_order(Key)]);
realize({big_map, N, R}) -> big_map(N, realize(R));
realize({nest, Kind, Depth, R}) -> nest(Kind, Depth, realize(R)).

%% Returns `true' if the VM compares a term that is the key of a map by the standard order. Since
%% Erlang/OTP 26 it compares a map in such a key by its keys as they are stored, atoms in the
%% order in which the VM has come to know them, which is another one in each run.
is_in_standard_order(Map) when is_map(Map) ->
    Atoms = [K || map_size(Map) =< 32, K <- maps:keys(Map), is_atom(K)],
    Atoms =:= lists:sort(Atoms) andalso
        lists:all(fun is_in_standard_order/1, maps:keys(Map) ++ maps:values(Map));
is_in_standard_order(Tuple) when is_tuple(Tuple) ->
    lists:all(fun is_in_standard_order/1, tuple_to_list(Tuple));
is_in_standard_order([Head | Tail]) ->
    is_in_standard_order(Head) andalso is_in_standard_order(Tail);
is_in_standard_order(_) ->
    true.

%% Returns the recipe as Erlang source that evaluates to the same term.
-spec source(recipe()) -> iolist().
source({lit, T}) -> io_lib:format("~0tp", [T]);
source(Recipe) -> io_lib:format("ats_term_gen:realize(~0tp)", [Recipe]).

bytes(Size, Seed) ->
    << <<((I * 7 + Seed) band 255)>> || I <- lists:seq(1, Size) >>.

bits(Skip, Size, Seed) ->
    Whole = bytes((Skip + Size + 7) div 8, Seed),
    <<_:Skip/bits, Bits:Size/bits, _/bits>> = Whole,
    Bits.

big_map(N, V) ->
    maps:from_list([{map_key(I), {I, V}} || I <- lists:seq(1, N)]).

map_key(I) when I rem 4 =:= 0 -> I;
map_key(I) when I rem 4 =:= 1 -> float(I - 1);
map_key(I) when I rem 4 =:= 2 -> {I};
map_key(I) -> integer_to_binary(I).

nest(_, 0, T) -> T;
nest(list, D, T) -> nest(list, D - 1, [T]);
nest(tuple, D, T) -> nest(tuple, D - 1, {T, D});
nest(map, D, T) -> nest(map, D - 1, #{D => T});
nest(cons, D, T) -> nest(cons, D - 1, [D | T]).

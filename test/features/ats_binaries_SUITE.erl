%% `info(Table, binary)': the binaries that a table refers to, as `ets' lists them.
-module(ats_binaries_SUITE).

-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0]).
-export([
    as_ets_lists_them/1,
    small_ones_are_copies/1,
    each_once/1,
    many_of_one_key/1,
    private_of_another/1,
    of_no_table/1,
    nothing_is_left/1,
    specifications_keep_no_larger_ones/1
]).

-define(TYPES, [set, ordered_set, bag, duplicate_bag]).

suite() -> [{timetrap, {minutes, 15}}].

all() ->
    [
        as_ets_lists_them,
        small_ones_are_copies,
        each_once,
        many_of_one_key,
        private_of_another,
        of_no_table,
        nothing_is_left,
        specifications_keep_no_larger_ones
    ].

bytes(N) -> crypto:strong_rand_bytes(N).

%% Wherever a binary is in an object, and however often: identifiers, sizes and references are the
%% same if both tables have the same objects.
as_ets_lists_them(_) ->
    First = bytes(5000),
    Second = bytes(100000),
    <<_:10/binary, Part:3000/binary, _/binary>> = Second,
    Objects = [
        {1, First},
        {2, Second, First},
        {3, [Part, #{First => Second}]},
        {4, fun() -> {First, Part} end},
        {5, make_ref(), atomics:new(1, []), self(), 1 bsl 100}
    ],
    Pairs = [{M:new(t, [Type, private]), M} || Type <- ?TYPES, M <- [ets, ats]],
    [?assertEqual([], ats:info(T, binary)) || {T, ats} <- Pairs],
    [M:insert(T, Objects) || {T, M} <- Pairs],
    %% Collects garbage, so that the terms used so far are no references when the first is asked.
    erlang:garbage_collect(),
    [Listed | _] = All = [lists:sort(M:info(T, binary)) || {T, M} <- Pairs],
    ?assertEqual([Listed], lists:usort(All)),
    ?assertEqual([5000, 100000], lists:usort([Size || {_, Size, _} <- Listed])),
    %% A large key is listed, too; `ets' then counts references that it makes itself.
    [M:insert(T, {Second, key}) || {T, M} <- Pairs],
    [WithKey | _] = Twice = [lists:sort(names(M:info(T, binary))) || {T, M} <- Pairs],
    ?assertEqual([WithKey], lists:usort(Twice)),
    ?assertEqual(length(Listed) + 1, length(WithKey)),
    %% The variable is a reference, too, until here.
    ?assertEqual(5, length(Objects)).

names(Binaries) -> [{Id, Size} || {Id, Size, _} <- Binaries].

%% A table has a small binary as a copy, and a short part of a larger one, and one of bits; the
%% process that reads it for the list gets a copy of that. Which binaries are small depends on what
%% is known of the release.
small_ones_are_copies(_) ->
    T = ats:new(t, []),
    ats:insert(T, [{Size, bytes(Size)} || Size <- [1, 64, 65, 500, 1024]]),
    ats:insert(T, {bits, <<1:20003>>}),
    ats:insert(T, {part, binary:part(bytes(2000), 1, 1024)}),
    Shared = [Size || {_, Size, _} <- ats:info(T, binary)],
    Release = list_to_integer(erlang:system_info(otp_release)),
    ?assertEqual([65, 500, 1024] -- [Size || Size <- [65, 500, 1024], Release > 26],
                 lists:sort(Shared)),
    ats:insert(T, {large, bytes(1025)}),
    ats:insert(T, {large_part, binary:part(bytes(2000), 1, 1025)}),
    ?assertEqual([1025, 2000], lists:sort([S || {_, S, _} <- ats:info(T, binary)] -- Shared)).

%% A table of many slices, and objects that come and go while it is read: of those that stay, each
%% is listed once.
each_once(_) ->
    [
        begin
            T = ats:new(t, [Type, public]),
            N = 20000,
            [ats:insert(T, {{K, stays}, bytes(1100)}) || K <- lists:seq(1, N)],
            Binaries = ats:info(T, binary),
            ?assertEqual(N, length(Binaries)),
            ?assertEqual(N, length(lists:usort(Binaries))),
            {Writer, Monitor} = spawn_monitor(fun() -> come_and_go(T, N) end),
            Found = [ats:info(T, binary) || _ <- lists:seq(1, 3)],
            exit(Writer, kill),
            receive {'DOWN', Monitor, process, Writer, killed} -> ok end,
            [
                ?assertEqual(
                    [],
                    lists:sort([Id || {Id, _, _} <- Binaries]) --
                        lists:sort([Id || {Id, 1100, _} <- Some])
                )
             || Some <- Found
            ],
            %% Binaries that go are of another size.
            [
                ?assertEqual(N, length([stays || {_, 1100, _} <- Some]))
             || Some <- Found
            ],
            ats:delete(T)
        end
     || Type <- ?TYPES
    ].

come_and_go(T, N) ->
    Key = {rand:uniform(N), goes},
    ats:insert(T, {Key, bytes(1200)}),
    ats:delete(T, {rand:uniform(N), goes}),
    come_and_go(T, N).

many_of_one_key(_) ->
    [
        begin
            T = ats:new(t, [Type]),
            N = 5000,
            [ats:insert(T, {key, I, bytes(1100)}) || I <- lists:seq(1, N)],
            Binaries = ats:info(T, binary),
            ?assertEqual({N, N}, {length(Binaries), length(lists:usort(Binaries))})
        end
     || Type <- [bag, duplicate_bag]
    ].

private_of_another(_) ->
    Self = self(),
    Owner = spawn_link(fun() ->
        T = ats:new(named, [named_table, private]),
        ats:insert(T, {1, bytes(2000)}),
        erlang:garbage_collect(),
        Self ! {table, ats:whereis(T)},
        receive stop -> ok end
    end),
    T = receive {table, Table} -> Table end,
    ?assertError(badarg, ats:lookup(T, 1)),
    ?assertMatch([{_, 2000, 1}], ats:info(T, binary)),
    ?assertMatch([{_, 2000, 1}], ats:info(named, binary)),
    Monitor = monitor(process, Owner),
    Owner ! stop,
    receive {'DOWN', Monitor, process, Owner, _} -> ok end,
    ?assertEqual(undefined, ats:info(T, binary)),
    ?assertEqual(undefined, ats:info(named, binary)).

of_no_table(_) ->
    T = ats:new(t, []),
    ats:delete(T),
    ?assertEqual(undefined, ats:info(T, binary)),
    ?assertEqual(undefined, ats:info(no_such_table, binary)),
    [?assertError(badarg, ats:info(Wrong, binary)) || Wrong <- [1, "t", make_ref(), {t}]].

%% All binaries go with their objects, and no message, monitor, link or process stays.
nothing_is_left(_) ->
    T = ats:new(t, []),
    ats:insert(T, [{K, bytes(2000)} || K <- lists:seq(1, 3000)]),
    erlang:garbage_collect(),
    Before = process_info(self(), [messages, monitors, links]),
    Processes = lists:sort(processes()),
    ?assertEqual(lists:duplicate(3000, {2000, 1}), sizes(ats:info(T, binary))),
    ?assertEqual(lists:duplicate(3000, {2000, 1}), sizes(ats:info(T, binary))),
    ?assertEqual(Before, process_info(self(), [messages, monitors, links])),
    ?assertEqual([], lists:sort(processes()) -- Processes),
    ats:delete_all_objects(T),
    ?assertEqual([], ats:info(T, binary)).

sizes(Binaries) -> [{Size, References} || {_, Size, References} <- Binaries].

%% A scheduler remembers specifications, but not the binary of which one has a part.
specifications_keep_no_larger_ones(_) ->
    T = ats:new(t, [public]),
    Before = erlang:memory(binary),
    Ask = fun() ->
        <<Part:100/binary, _/binary>> = binary:copy(<<7>>, 50000000),
        [[] = ats:select(T, [{{Part, '$1'}, [{'>', '$1', N}], ['$1']}]) || N <- lists:seq(1, 5)]
    end,
    {Pid, Monitor} = spawn_monitor(Ask),
    receive
        {'DOWN', Monitor, process, Pid, Why} -> ?assertEqual(normal, Why)
    end,
    ats_test_lib:until(fun() -> erlang:memory(binary) < Before + 25000000 end, 5000),
    true = ats:delete(T).

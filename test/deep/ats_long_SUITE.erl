%% Objects that are longer than any table takes.
-module(ats_long_SUITE).

-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0, init_per_testcase/2, end_per_testcase/2]).
-export([too_long/1]).
-export([insert_too_long/1]).

suite() -> [{timetrap, {minutes, 10}}].

all() ->
    [too_long].

init_per_testcase(Case, Config) ->
    ats_disk_lib:begin_case(Case, Config).

end_per_testcase(_, _) ->
    ats_disk_lib:end_case().

%% The machine needs 4 GiB for a binary for which the external term format has no room.
too_long(Config) ->
    case available_memory() of
        Bytes when Bytes < 8 bsl 30 ->
            {skip, "needs 8 GiB of memory"};
        _ ->
            {ok, Vm, _} = ats_test_lib:start_vm([]),
            try
                Directory = ats_disk_lib:file(Config, t),
                ?assertEqual(ok, peer:call(Vm, ?MODULE, insert_too_long, [Directory], 200000))
            after
                ats_test_lib:stop_vm(Vm)
            end
    end.

available_memory() ->
    {ok, Text} = file:read_file("/proc/meminfo"),
    {match, [Kilobytes]} = re:run(Text, "MemAvailable: *([0-9]+)", [{capture, [1], list}]),
    1024 * list_to_integer(Kilobytes).

insert_too_long(Directory) ->
    {ok, T} = dats:open_file(t, [{file, Directory}]),
    ok = dats:insert(T, {1, 1}),
    Long = binary:copy(<<0>>, 1 bsl 32),
    [
        {error, {system_limit, _, _}} = Call()
     || Call <- [
            fun() -> dats:insert(T, {1, Long}) end,
            fun() -> dats:insert(T, [{2, 2}, {1, Long}]) end,
            fun() -> dats:write(T, 1, Long) end,
            fun() -> dats:update_element(T, 1, {2, Long}) end
        ]
    ],
    %% A key in memory, which differs from others by the environment of the fun.
    try ats:insert(ats:new(in_memory, []), {fun() -> Long end, 1}) of
        Answer -> error(Answer)
    catch
        error:system_limit:Stack ->
            #{general := Text} = ats_errors:format_error(system_limit, Stack),
            {_, _} = binary:match(Text, <<"4 GiB">>)
    end,
    [{1, 1}] = dats:tab2list(T),
    ok = dats:close(T).

%% Many tables on disk at a time: the memory of each of them, and the memory they share. ATS_TABLES
%% is their number.
-module(ats_disk_many_SUITE).

-include_lib("stdlib/include/assert.hrl").

-export([all/0, init_per_testcase/2, end_per_testcase/2]).
-export([many_tables/1, tables_share_memory/1, wrong_memory/1]).

-define(LONG, 60000).

all() ->
    [many_tables, tables_share_memory, wrong_memory].

init_per_testcase(Case, Config) ->
    _ = application:load(ats),
    {ok, Bytes} = application:get_env(ats, disk_memory),
    [{disk_memory, Bytes} | ats_disk_lib:begin_case(Case, Config)].

%% Suites that follow in this virtual machine have the budget that there was.
end_per_testcase(_, Config) ->
    ok = ats_disk_lib:end_case(),
    Bytes = proplists:get_value(disk_memory, Config),
    ok = restart_with(Bytes),
    #{budget := Bytes} = dats:shared_memory(),
    ok.

restart_with(Bytes) ->
    _ = application:stop(ats),
    ok = application:set_env(ats, disk_memory, Bytes),
    application:start(ats).

%% Opening takes neither longer nor more threads if there are many tables, and a table that is not
%% in use has two descriptors at most: that of its directory, and that of a file that was read
%% lately.
many_tables(Config) ->
    Wanted = list_to_integer(os:getenv("ATS_TABLES", "500")),
    %% Each that was just written to has five.
    Number = max(10, min(Wanted, (descriptor_limit() - 500) div 5)),
    Number < Wanted andalso
        io:format(user, "NOT RUN: more than ~p tables, for want of descriptors~n", [Number]),
    Files = [{{t, N}, ats_disk_lib:file(Config, integer_to_list(N))} || N <- lists:seq(1, Number)],
    Threads = count("task"),
    %% The virtual machine may open some files of its own meanwhile.
    Descriptors = count("fd") + 10,
    Memory = ats_test_lib:resident_bytes(),
    Open = fun({Name, File}) -> {ok, Name} = dats:open_file(Name, [{file, File}]) end,
    Each = fun(Do) -> lists:foreach(fun({Name, _}) -> Do(Name) end, Files) end,
    lists:foreach(
        fun({Name, _} = File) ->
            {ok, Name} = Open(File),
            ok = dats:insert(Name, [{K, Name} || K <- lists:seq(1, 10)])
        end,
        Files
    ),
    Each(fun(Name) -> ok = dats:close(Name) end),
    {Micros, ok} = timer:tc(fun() -> lists:foreach(Open, Files) end),
    ct:pal("~b tables opened in ~b ms", [Number, Micros div 1000]),
    %% Also if there are 10,000, which take a second on an idle machine, and a minute on a busy one.
    ?assert(Micros < 60_000_000),
    Each(fun(Name) -> [{7, Name}] = dats:lookup(Name, 7) end),
    ?assert(count("fd") =< Descriptors + 2 * Number),
    %% Some are written to while others have been for longer than that takes.
    Each(fun(Name) -> ok = dats:insert(Name, {11, Name}) end),
    %% One more than there are processors, four for syncs, and those that free memory.
    MoreThreads = erlang:system_info(logical_processors_available) + 10,
    ?assert(count("task") =< Threads + MoreThreads),
    ?assert(ats_test_lib:resident_bytes() - Memory < 100000000 + 40000 * Number),
    ok = ats_test_lib:until(fun() -> count("fd") =< Descriptors + 2 * Number end, ?LONG),
    %% Nothing happens then.
    Idle = cpu(),
    timer:sleep(1000),
    ?assert(cpu() - Idle < 20),
    Each(fun(Name) -> ok = dats:insert(Name, {12, Name}) end),
    Each(fun(Name) -> ok = dats:close(Name) end),
    ?assert(count("fd") =< Descriptors),
    Some = [File || {{t, N}, _} = File <- Files, N rem 50 =:= 1],
    lists:foreach(
        fun({Name, _} = File) ->
            {ok, Name} = Open(File),
            Expected = [{K, Name} || K <- lists:seq(1, 12)],
            ?assertEqual(Expected, lists:sort(dats:tab2list(Name)))
        end,
        Some
    ).

tables_share_memory(Config) ->
    ok = restart_with(12000000),
    #{budget := 12000000} = dats:shared_memory(),
    Names = [ats_disk_lib:open(Config, list_to_atom("t" ++ integer_to_list(N)),
                               [{type, ordered_set}])
             || N <- lists:seq(1, 20)],
    Own = ats_disk_lib:open(Config, own, [{memory, 50000000}]),
    Value = binary:copy(<<"x">>, 500),
    Most = lists:max([
        begin
            [ok = dats:insert(Name, {{N, K}, Value}) || Name <- Names, K <- lists:seq(1, 50)],
            ok = dats:insert(Own, [{{N, K}, Value} || K <- lists:seq(1, 1000)]),
            shared(memtables)
        end
        || N <- lists:seq(1, 40)
    ]),
    %% A third of it is for the latest writes; writes go on while it is being reached.
    ?assert(Most > 2000000 andalso Most < 8000000),
    ok = ats_test_lib:until(fun() -> shared(memtables) =< 4000000 end, ?LONG),
    %% Each table had too little to write its part to a file by itself.
    Flushes = [maps:get(flushes, dats:info(Name, stats)) || Name <- Names],
    ?assert(lists:sum(Flushes) > 3),
    %% One with memory of its own has written when it had a sixth of that.
    ?assert(maps:get(flushes, dats:info(Own, stats)) < 6),
    [?assertEqual(2000, length(dats:match(Name, {'$1', '_'}))) || Name <- Names],
    ok = ats_test_lib:until(fun() -> shared(cache) =< 8500000 end, ?LONG),
    ?assert(shared(cache) > 1000000),
    ?assert(dats:info(hd(Names), memory) < 4000000),
    [ok = dats:close(Name) || Name <- [Own | Names]],
    #{memtables := 0, cache := 0} = dats:shared_memory(),
    ok.

shared(Item) ->
    maps:get(Item, dats:shared_memory()).

wrong_memory(_Config) ->
    lists:foreach(
        fun(Wrong) ->
            ?assertMatch({error, {{bad_parameter, {disk_memory, Wrong}}, _}}, restart_with(Wrong))
        end,
        [0, -1, 1000, 1 bsl 70, 1.0e9, "1 GiB", infinity]
    ).

%%--------------------------------------------------------------------------------------------
%% The machine
%%--------------------------------------------------------------------------------------------

%% Returns the number of descriptors or of threads of this virtual machine.
count(What) ->
    {ok, Names} = file:list_dir_all("/proc/self/" ++ What),
    length(Names).

descriptor_limit() ->
    {ok, Limits} = file:read_file("/proc/self/limits"),
    Pattern = "Max open files\\s+(\\w+)",
    case re:run(Limits, Pattern, [{capture, [1], list}]) of
        {match, ["unlimited"]} -> 1000000;
        {match, [Limit]} -> list_to_integer(Limit)
    end.

%% Returns the processor time that was used, in hundredths of a second.
cpu() ->
    {ok, Stat} = file:read_file("/proc/self/stat"),
    [_, Rest] = string:split(Stat, ")", trailing),
    Fields = string:lexemes(Rest, " "),
    lists:sum([binary_to_integer(lists:nth(N, Fields)) || N <- [12, 13]]).

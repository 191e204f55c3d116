%% Small tools that several suites use.
-module(ats_test_lib).

-include_lib("stdlib/include/assert.hrl").

-export([attempt/1, refusal/3, parallel/1, until/2, beside/3, kill/1, ask/2, check/2]).
-export([check_consistency/1]).
-export([median/1, parsed/1]).
-export([settled_memory/0, assert_memory_returns/2, assert_memory_returns/3]).
-export([resident_growth/1, resident_bytes/0, wait_for_cached_segments/0]).
-export([start_vm/1, stop_vm/1, killer_of/1, load_module/2, private_table/0]).
-export([call/4, project/0, cargo_build/1, run_program/4, quoted/1]).
-export([begin_group/2, end_group/1]).
-export([force_adaptation/0, stop_forcing/0, is_adaptation_forced/0, forced_so_far/0]).
-export([new/2, adapting/1, count_adaptation/1]).

-export_type([memory/0]).

-opaque memory() :: #{erlang := pos_integer(), resident := pos_integer()}.

-define(SLACK_BYTES, 6 * 1024 * 1024).
%% After two seconds without garbage, free memory goes back to the operating system.
-define(TRIMMED_AFTER_MS, 2300).
%% Each try takes a tenth of a second; ten seconds are enough for the segments of the beginning.
-define(SEGMENT_TRIES, 200).
%% Counters of how tables adapted; there while adaptation is forced.
-define(FORCED, {?MODULE, forced}).
-define(FORCED_ITEMS, [{1, splits}, {2, joins}, {3, doublings}, {4, halvings}]).
%% One in so many writes splits a base node, and one in so many joins two.
-define(ONE_IN_WRITES, 8).

%% Time after which a process counts as hanging: on a busy machine a minute may be too short.
-define(HANGS_MS, 300_000).

%% The result of a function, or that of its exception as old-style `catch' has it, about which
%% Erlang/OTP 29 warns.
-spec attempt(fun(() -> T)) -> T | {'EXIT', term()} | term().
attempt(Fun) ->
    try
        Fun()
    catch
        throw:Thrown -> Thrown;
        exit:Reason -> {'EXIT', Reason};
        error:Reason:Stack -> {'EXIT', {Reason, Stack}}
    end.

%% The texts, by arguments, with which a call says what is wrong with them.
-spec refusal(module(), atom(), [term()]) -> #{term() => term()}.
refusal(Module, Function, Arguments) ->
    {'EXIT', {badarg, Stack}} = attempt(fun() -> apply(Module, Function, Arguments) end),
    ats_errors:format_error(badarg, Stack).

%% The forms of the source of a module, which has no macros.
-spec parsed(string()) -> [erl_parse:abstract_form()].
parsed(Source) ->
    {ok, Tokens, _} = erl_scan:string(Source),
    forms(Tokens, []).

%% The number in the middle; of an even count, the lower one of the two.
-spec median([T, ...]) -> T.
median(Numbers) ->
    lists:nth((length(Numbers) + 1) div 2, lists:sort(Numbers)).

%% Runs functions at the same time; their results in order. The first failure is raised here,
%% after the other processes were stopped.
-spec parallel([fun(() -> T)]) -> [T].
parallel(Funs) ->
    Started = [spawn_monitor(fun() -> exit({done, Fun()}) end) || Fun <- Funs],
    gather(Started, Started, []).

gather([], _, Results) ->
    lists:reverse(Results);
gather([{Pid, Mon} | Rest], All, Results) ->
    %% The first failure must be handled first: other processes may wait for the failed one forever.
    receive
        {'DOWN', Mon, process, Pid, {done, Result}} ->
            gather(Rest, All, [Result | Results]);
        {'DOWN', _, process, Failed, Reason} when
            not is_tuple(Reason); element(1, Reason) =/= done
        ->
            lists:foreach(fun({P, _}) -> exit(P, kill) end, All),
            error({Failed, Reason})
    end.

%% Waits for a condition; fails when the time is over.
-spec until(fun(() -> boolean()), pos_integer()) -> ok.
until(Condition, TimeoutMs) ->
    until_deadline(Condition, erlang:monotonic_time(millisecond) + TimeoutMs).

until_deadline(Condition, Deadline) ->
    case Condition() of
        true ->
            ok;
        false ->
            ?assert(erlang:monotonic_time(millisecond) < Deadline),
            timer:sleep(1),
            until_deadline(Condition, Deadline)
    end.

%% Does something again and again for a time, beside processes that run functions with the arguments
%% 1, 2 and so on. These end between two calls, since a native call that a kill meets may go on; one
%% that waits is killed.
-spec beside([fun((pos_integer()) -> term())], Ms :: pos_integer(), fun(() -> term())) -> ok.
beside(Others, Ms, Do) ->
    IsOver = atomics:new(1, []),
    Pids = [spawn_monitor(fun() -> count(Other, 1, IsOver) end) || Other <- Others],
    ok = repeat(Do, erlang:monotonic_time(millisecond) + Ms),
    ok = atomics:put(IsOver, 1, 1),
    [?assertEqual(normal, reason(Pid, Monitor)) || {Pid, Monitor} <- Pids],
    ok.

reason(Pid, Monitor) ->
    receive
        {'DOWN', Monitor, process, Pid, Reason} -> Reason
    after 1000 ->
        exit(Pid, kill),
        receive
            {'DOWN', Monitor, process, Pid, killed} -> normal;
            {'DOWN', Monitor, process, Pid, Reason} -> Reason
        end
    end.

-spec count(fun((pos_integer()) -> term()), pos_integer(), atomics:atomics_ref()) -> ok.
count(Do, N, IsOver) ->
    _ = Do(N),
    case atomics:get(IsOver, 1) of
        0 -> count(Do, N + 1, IsOver);
        1 -> ok
    end.

repeat(Do, End) ->
    _ = Do(),
    case erlang:monotonic_time(millisecond) < End of
        true -> repeat(Do, End);
        false -> ok
    end.

%% Kills a process and waits for its end.
-spec kill(pid()) -> ok.
kill(Pid) ->
    Mon = erlang:monitor(process, Pid),
    exit(Pid, kill),
    receive
        {'DOWN', Mon, process, _, _} -> ok
    end.

%% Sends a question to a process, as `{From, Ref, Question}', and waits for `{Ref, Answer}'.
-spec ask(pid(), term()) -> term().
ask(Pid, What) ->
    Ref = erlang:monitor(process, Pid),
    Pid ! {self(), Ref, What},
    receive
        {Ref, Answer} ->
            erlang:demonitor(Ref, [flush]),
            Answer;
        {'DOWN', Ref, process, Pid, Reason} ->
            error(Reason)
    after ?HANGS_MS -> error({hangs, process_info(Pid, current_stacktrace)})
    end.

%% Tries a property of PropEr `Runs' times. A counterexample is printed, as small as can be; a dot
%% for each try is not.
-spec check(term(), pos_integer()) -> true.
check(Property, Runs) ->
    Print = fun
        (".", _) -> ok;
        (Format, Arguments) -> io:format(user, Format, Arguments)
    end,
    Options = [{numtests, Runs}, {on_output, Print}, {max_shrinks, 300}],
    true = proper:quickcheck(Property, Options).

%% All ways to read a table give the same, as long as no process changes the table.
-spec check_consistency(term()) -> ok.
check_consistency(T) ->
    M = ats_oracle:subject(),
    Type = M:info(T, type),
    KeyPos = M:info(T, keypos),
    Objects = M:tab2list(T),
    ?assertEqual(length(Objects), M:info(T, size)),
    Up = steps(M, T, M:first(T), next),
    Down = steps(M, T, M:last(T), prev),
    ?assertEqual(lists:usort([element(KeyPos, O) || O <- Objects]), lists:usort(Up)),
    ?assertEqual(lists:usort(Up), lists:usort(Down)),
    ?assertEqual(length(lists:usort(Up)), length(Up)),
    OfKey = maps:groups_from_list(fun(Object) -> element(KeyPos, Object) end, Objects),
    lists:foreach(
        fun(K) ->
            ?assert(M:member(T, K)),
            ?assertEqual([], M:lookup(T, K) -- maps:get(K, OfKey))
        end,
        Up
    ),
    ?assertEqual(length(Objects), lists:sum([length(M:lookup(T, K)) || K <- Up])),
    case Type of
        ordered_set ->
            ?assertEqual(lists:sort(Up), Up),
            ?assertEqual(lists:reverse(Up), Down);
        _ ->
            ok
    end.

steps(_, _, '$end_of_table', _) -> [];
steps(M, T, Key, Step) -> [Key | steps(M, T, M:Step(T, Key), Step)].

%% ----- memory -----

%% Returns the memory by the VM and by the operating system, after all deferred work was done.
-spec settled_memory() -> memory().
settled_memory() ->
    lists:foreach(fun erlang:garbage_collect/1, processes()),
    timer:sleep(?TRIMMED_AFTER_MS),
    settled_memory(resident_bytes()).

%% Deleted objects may still be on their way back: measures again until the memory falls no more.
settled_memory(Before) ->
    timer:sleep(200),
    case resident_bytes() of
        Less when Less < Before - 1024 * 1024 -> settled_memory(Less);
        Resident -> #{erlang => erlang:memory(total), resident => Resident}
    end.

%% Waits for memory that was other tests', tens of megabytes: the virtual machine keeps up to ten
%% segments for each scheduler when it does not need them any longer, and gives one back each
%% second. For tests to which that would look as if a table had given it.
-spec wait_for_cached_segments() -> ok.
wait_for_cached_segments() ->
    lists:foreach(fun erlang:garbage_collect/1, processes()),
    wait_for_cached_segments(?SEGMENT_TRIES).

wait_for_cached_segments(0) ->
    ok;
wait_for_cached_segments(Tries) ->
    case cached_segments() of
        0 ->
            ok;
        _ ->
            timer:sleep(100),
            wait_for_cached_segments(Tries - 1)
    end.

cached_segments() ->
    lists:sum([
        Cached
     || {instance, _, Info} <- erlang:system_info({allocator, mseg_alloc}),
        {memkind, Kind} <- Info,
        {status, Status} <- Kind,
        {cached_segments, Cached} <- Status
    ]).

%% Checks that memory is at most `Part' above the earlier value; freeing may go on for a while, so
%% it waits.
-spec assert_memory_returns(memory(), float()) -> ok.
assert_memory_returns(Before, Part) ->
    assert_memory_returns(Before, Part, ?SLACK_BYTES).

%% The same, with that many bytes more allowed.
-spec assert_memory_returns(memory(), float(), non_neg_integer()) -> ok.
assert_memory_returns(Before, Part, SlackBytes) ->
    Most = maps:map(fun(_, Bytes) -> Bytes * (1 + Part) + SlackBytes end, Before),
    assert_memory_returns(Before, Most, 40, settled_memory()).

assert_memory_returns(Before, Most, Tries, Now) ->
    case {[Kind || {Kind, Bytes} <- maps:to_list(Now), Bytes > maps:get(Kind, Most)], Tries} of
        {[], _} ->
            ct:pal("memory before ~p~nafter ~p", [Before, Now]);
        {_, 0} ->
            ct:fail({memory_grows, #{before => Before, now => Now}});
        _ ->
            timer:sleep(250),
            assert_memory_returns(Before, Most, Tries - 1, settled_memory())
    end.

%% Bytes that the operating system gave since then, where it tells.
-spec resident_growth(memory()) -> integer() | unknown.
resident_growth(#{resident := Before}) ->
    case resident_bytes() of
        1 -> unknown;
        Now -> Now - Before
    end.

%% Bytes of memory that the operating system has given, or 1 where it does not tell.
-spec resident_bytes() -> pos_integer().
resident_bytes() ->
    case file:read_file("/proc/self/statm") of
        {ok, Text} ->
            [_, Pages | _] = binary:split(Text, <<" ">>, [global]),
            binary_to_integer(Pages) * 4096;
        {error, enoent} ->
            %% Other systems than Linux: the figure of the VM alone is checked.
            1
    end.

%% ----- forced adaptation -----

%% Begins a group of a suite whose cases run twice: as chance has it, and on tables that are forced
%% to adapt. Called by `init_per_group'; the counterpart by `end_per_group'.
-spec begin_group(by_chance | forced, Config) -> Config | {skip, string()}.
begin_group(by_chance, Config) ->
    Config;
begin_group(forced, Config) ->
    case ats_oracle:subject() of
        ats ->
            ok = force_adaptation(),
            Config;
        _ ->
            {skip, "only ats can be forced"}
    end.

-spec end_group(by_chance | forced) -> ok.
end_group(by_chance) -> ok;
end_group(forced) -> stop_forcing().

%% Makes tables that tests create with new/2 adapt far more often than contention would make them:
%% ordered ones split and join, others double and halve their locks and get and lose buckets. So
%% every operation meets every stage of this.
-spec force_adaptation() -> ok.
force_adaptation() ->
    persistent_term:put(?FORCED, counters:new(length(?FORCED_ITEMS), [])).

-spec stop_forcing() -> ok.
stop_forcing() ->
    _ = persistent_term:erase(?FORCED),
    ok.

-spec is_adaptation_forced() -> boolean().
is_adaptation_forced() ->
    persistent_term:get(?FORCED, none) =/= none andalso ats_oracle:subject() =:= ats.

%% Splits and joins, and doublings and halvings of locks, of the tables counted since forcing began.
-spec forced_so_far() -> #{splits | joins | doublings | halvings => non_neg_integer()}.
forced_so_far() ->
    Seen = persistent_term:get(?FORCED),
    maps:from_list([{Item, counters:get(Seen, I)} || {I, Item} <- ?FORCED_ITEMS]).

%% A table of the subject.
-spec new(atom(), [term()]) -> term().
new(Name, Options) ->
    Subject = ats_oracle:subject(),
    adapting(Subject:new(Name, Options)).

%% The table, which adapts from now on if that is forced. The caller must have the right to write to
%% it.
-spec adapting(T) -> T.
adapting(T) ->
    is_adaptation_forced() andalso
        ats_nif:force_adaptation(T, ?ONE_IN_WRITES, ?ONE_IN_WRITES),
    T.

%% Adds up the adaptations of a table of the subject, at its end.
-spec count_adaptation(term()) -> ok.
count_adaptation(T) ->
    case is_adaptation_forced() andalso ats:info(T, stats) of
        #{} = Stats ->
            Seen = persistent_term:get(?FORCED),
            [counters:add(Seen, I, maps:get(Item, Stats, 0)) || {I, Item} <- ?FORCED_ITEMS],
            ok;
        _ ->
            ok
    end.

%% ----- other virtual machines -----

%% A second VM with the same code path, controlled through its standard input and output, so that
%% neither needs a network. Stops with this process.
-spec start_vm([string()]) -> {ok, pid(), node()}.
start_vm(Args) ->
    Paths = lists:append([["-pa", P] || P <- code:get_path(), filelib:is_dir(P)]),
    Env = [{"ATS_SUBJECT", os:getenv("ATS_SUBJECT", "ats")}],
    {ok, Peer, Node} = peer:start_link(#{
        connection => standard_io,
        args => Paths ++ Args,
        env => Env,
        wait_boot => ?HANGS_MS
    }),
    {ok, Peer, Node}.

%% Calls a function there.
-spec call(pid(), module(), atom(), [term()]) -> term().
call(Peer, Module, Function, Arguments) ->
    peer:call(Peer, Module, Function, Arguments, ?HANGS_MS).

-spec stop_vm(pid()) -> ok.
stop_vm(Peer) ->
    peer:stop(Peer).

%% A function that kills a VM, as `kill -9' does, and waits until it is gone. That takes long on a
%% busy disk, since a thread that waits for one ends only when it has its answer.
-spec killer_of(pid()) -> fun(() -> ok).
killer_of(Peer) ->
    OsPid = call(Peer, os, getpid, []),
    true = unlink(Peer),
    fun() ->
        _ = os:cmd("kill -9 " ++ OsPid),
        until(fun() -> not is_process_alive(Peer) end, 120000)
    end.

%% ----- settings of tests -----

%% Loads a module that has these functions, and exports them.
-spec load_module(module(), Functions :: iolist()) -> ok.
load_module(Name, Functions) ->
    Header = io_lib:format("-module(~p). -compile([export_all, nowarn_export_all]). ", [Name]),
    {ok, Name, Code} = compile:forms(parsed(lists:flatten([Header, Functions]))),
    _ = code:purge(Name),
    {module, Name} = code:load_binary(Name, "none", Code),
    ok.

forms([], []) ->
    [];
forms([{dot, _} = Dot | Rest], Form) ->
    {ok, Parsed} = erl_parse:parse_form(lists:reverse(Form, [Dot])),
    [Parsed | forms(Rest, [])];
forms([Token | Rest], Form) ->
    forms(Rest, [Token | Form]).

%% A table of `ets' with one object that only another process may read. It is there as long as the
%% calling process.
-spec private_table() -> ets:table().
private_table() ->
    Test = self(),
    spawn_link(fun() ->
        E = ets:new(private, [private]),
        true = ets:insert(E, {1, 1}),
        Test ! {table, E},
        timer:sleep(infinity)
    end),
    receive {table, E} -> E end.

%% ----- the project -----

%% The folder of the project: tests are compiled in it, or in a folder below it.
-spec project() -> file:filename().
project() ->
    project(filename:absname(filename:dirname(code:which(?MODULE)))).

project(Folder) ->
    case filelib:is_regular(filename:join([Folder, "docs", "use", "differences-from-ets.md"])) of
        true -> Folder;
        false -> project(filename:dirname(Folder))
    end.

%% Builds something of the project with cargo. Returns the folder of the build.
%%
%% With debug assertions, which is half the point, but not as slow as without any optimisation. All
%% that tests build is in one folder, so that crates are compiled once.
-spec cargo_build(Arguments :: string()) -> file:filename().
cargo_build(Arguments) ->
    Target = os:getenv("CARGO_TARGET_DIR", filename:join(project(), "target")),
    Command =
        "cd " ++ quoted(project()) ++ " && CARGO_PROFILE_DEV_OPT_LEVEL=1 CARGO_PROFILE_DEV_DEBUG=0 "
        "cargo build --locked " ++ Arguments ++ " --target-dir " ++ quoted(Target) ++
            " 2>&1 && echo built",
    Output = os:cmd(Command),
    case string:find(Output, "built\n", trailing) of
        "built\n" -> filename:join(Target, "debug");
        _ -> ct:fail("cannot build ~ts:~n~ts", [Arguments, Output])
    end.

%% Runs a program in a folder. Returns its status and its output.
-spec run_program(file:filename(), [string()], file:filename(), [{string(), string() | false}]) ->
    {Status :: integer(), Text :: string()}.
run_program(Program, Arguments, Folder, Env) ->
    Port = open_port({spawn_executable, Program},
                     [{args, Arguments}, {cd, Folder}, {env, Env}, exit_status, stderr_to_stdout,
                      binary]),
    output(Port, []).

%% A path or any other text as one word of the shell.
-spec quoted(string()) -> string().
quoted(Text) ->
    lists:append(["'", string:join(string:split(Text, "'", all), "'\\''"), "'"]).

%% A program may write paths as it has them.
as_text(Bytes) ->
    case unicode:characters_to_list(Bytes) of
        Text when is_list(Text) -> Text;
        _ -> binary_to_list(Bytes)
    end.

output(Port, Said) ->
    receive
        {Port, {data, Bytes}} ->
            output(Port, [Said, Bytes]);
        {Port, {exit_status, Status}} ->
            Text = as_text(iolist_to_binary(Said)),
            ct:pal("~ts", [Text]),
            {Status, Text}
    end.

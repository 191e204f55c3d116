%% @private @doc Processes that call modules that merge, so that a faulty module harms no other
%% process.
%%
%% Each call of a program that needs a module starts a worker and waits for it. There is no limit
%% to their number: they are as many as the calls that wait for them, and share the processors
%% with all others. A worker merges keys one after the other, and tells each outcome at once:
%%
%% <table border="1">
%% <tr><th>the module</th><th>outcome of the key</th></tr>
%% <tr><td>raises an exception, returns a wrong term, or has another version than the
%% table</td><td>`{failed, Failure, Part}'</td></tr>
%% <tr><td>takes longer for a call than the parameter `merge_ms' of the application, ends the
%% process, or needs more memory than `merge_heap_words'</td><td>likewise; and the key fails at once
%% for a while, see {@link ats_merge_watchdog}</td></tr>
%% </table>
%%
%% Of several keys only the first is waited for in any case. The others are merged beforehand, as
%% long as their outcomes come promptly. So a key that hangs does not hold up those who read the
%% one before it.
%%
%% This module knows nothing of stores.
-module(ats_merge_runner).

-export([run/1, ask/4]).

-export_type([request/0, job/0]).

-type job() :: {Key :: binary(), ats_merge_operands:chain()}.
-type request() ::
        #{merge := ats_merge:merge(),
          table := term(),
          formats => ats_format:formats(),
          jobs := [job(), ...],
          priority => low | normal,
          prompt => boolean(),
          save => fun((job(), ats_merge_operands:outcome()) -> term())}.
%% `table' tells keys of this table from others. If `prompt' is `true', the first key is waited
%% for no longer than the others, and there may be no outcome. `save' is called by the worker
%% after it has told the outcome of a key.

%% The most milliseconds that are waited for an outcome that is not the first.
-define(PROMPT, 20).
-define(LET_REMEMBER, 5).

%% @doc Has the values of keys merged. Returns the outcomes of the first of them, of one at least;
%% or `again' if another process has merged the first of them meanwhile, who may have replaced it.
-spec run(request()) -> [ats_merge_operands:outcome()] | again.
run(#{merge := Merge, table := Table, jobs := [{Key, Chain} | Others]} = Request) ->
    case ats_merge_watchdog:known_failure({Table, Key}, Merge, Chain) of
        {failed, Failure} ->
            [{failed, Failure, none}];
        unknown ->
            IsUnknown = fun({K, C}) ->
                                ats_merge_watchdog:known_failure({Table, K}, Merge, C) =:= unknown
                        end,
            start(Request#{jobs := [{Key, Chain} | lists:takewhile(IsUnknown, Others)]})
    end.

-spec start(request()) -> [ats_merge_operands:outcome()] | again.
start(Request) ->
    {Ms, HeapWords} = ats_merge_watchdog:limits(),
    Calls = ats_merge_watchdog:new_calls(),
    {Client, Reply} = {self(), alias()},
    {Worker, Monitor} = spawn_worker(fun() -> work(Client, Reply, Calls, Ms, Request) end,
                                     HeapWords, maps:get(priority, Request, normal)),
    Patience = case Request of
                   #{prompt := true} -> ?PROMPT;
                   #{} -> infinity
               end,
    first(Request, Reply, Worker, Monitor, Calls, Ms, Patience, none).

%% Waits for the first outcome. If there will be none, a part may have been told of.
-spec first(request(), reference(), pid(), reference(), ats_merge_watchdog:calls(), pos_integer(),
            timeout(), ats_merge_operands:part() | none) -> [ats_merge_operands:outcome()] | again.
first(Request, Reply, Worker, Monitor, Calls, Ms, Patience, Part) ->
    #{merge := {Module, _} = Merge, table := Table, jobs := [Job | Others]} = Request,
    {Key, Chain} = Job,
    receive
        {Reply, {busy, Other}} ->
            end_worker(Reply, Monitor),
            wait_for(Other),
            again;
        {Reply, {part, NewPart}} ->
            first(Request, Reply, Worker, Monitor, Calls, Ms, Patience, NewPart);
        {Reply, Outcome} ->
            Outcomes = more(Others, [Outcome], Reply, Worker, Monitor),
            end_worker(Reply, Monitor),
            Outcomes;
        {'DOWN', Monitor, process, Worker, Reason} ->
            end_worker(Reply, Monitor),
            Failure = {Module, any, cause(Reason, Calls, Ms)},
            Outcome = {failed, Failure, Part},
            ok = ats_merge_watchdog:remember({Table, Key}, Merge, with_part(Chain, Part), Failure),
            _ = case Request of
                    #{save := Save} -> Save(Job, Outcome);
                    #{} -> ok
                end,
            [Outcome]
    after Patience ->
        true = exit(Worker, kill),
        end_worker(Reply, Monitor),
        []
    end.

%% Returns the chain as it will be.
-spec with_part(ats_merge_operands:chain(), ats_merge_operands:part() | none) ->
          ats_merge_operands:chain().
with_part(Chain, none) ->
    Chain;
with_part(Chain, {Expected, New}) ->
    {_, Rest} = split_binary(Chain, byte_size(Expected)),
    <<New/binary, Rest/binary>>.

-spec spawn_worker(fun(() -> term()), pos_integer(), low | normal) -> {pid(), reference()}.
spawn_worker(Work, HeapWords, Priority) ->
    MaxHeap = #{size => HeapWords, kill => true, error_logger => false},
    spawn_opt(Work, [monitor, {priority, Priority}, {max_heap_size, MaxHeap}]).

-spec cause(term(), ats_merge_watchdog:calls(), pos_integer()) -> ats_merge:cause().
cause(Reason, Calls, Ms) ->
    case ats_merge_watchdog:was_ended(Calls) of
        true -> {took_longer, Ms};
        false -> {ended, Reason}
    end.

%% Nothing of the worker comes any more.
-spec end_worker(reference(), reference()) -> ok.
end_worker(Reply, Monitor) ->
    _ = unalias(Reply),
    true = demonitor(Monitor, [flush]),
    flush(Reply).

-spec flush(reference()) -> ok.
flush(Reply) ->
    receive {Reply, _} -> flush(Reply)
    after 0 -> ok
    end.

-spec wait_for(pid()) -> ok.
wait_for(Worker) ->
    Monitor = monitor(process, Worker),
    receive
        {'DOWN', Monitor, process, Worker, Reason} when Reason =:= normal; Reason =:= noproc ->
            ok;
        {'DOWN', Monitor, process, Worker, _} ->
            %% The process it worked for remembers the key now, if it must.
            receive after ?LET_REMEMBER -> ok end
    end.

%% Returns the outcomes that come promptly. A key that fails will be the first one time, and then
%% fails.
-spec more([job()], [ats_merge_operands:outcome(), ...], reference(), pid(), reference()) ->
          [ats_merge_operands:outcome(), ...].
more([], Done, _Reply, _Worker, _Monitor) ->
    lists:reverse(Done);
more([_ | Others], Done, Reply, Worker, Monitor) ->
    receive
        {Reply, {failed, _, _}} ->
            true = exit(Worker, kill),
            lists:reverse(Done);
        {Reply, Outcome} ->
            more(Others, [Outcome | Done], Reply, Worker, Monitor);
        {'DOWN', Monitor, process, Worker, _} ->
            lists:reverse(Done)
    after ?PROMPT ->
        true = exit(Worker, kill),
        lists:reverse(Done)
    end.

%%--------------------------------------------------------------------------------------------
%% The worker
%%--------------------------------------------------------------------------------------------

-spec work(pid(), reference(), ats_merge_watchdog:calls(), pos_integer(), request()) -> ok.
work(Client, Reply, Calls, Ms, #{merge := Merge, table := Table, jobs := Jobs} = Request) ->
    {Module, _} = Merge,
    [{Key, Chain} | _] = Jobs,
    Lock = {Table, Key},
    case ats_merge_watchdog:enter(Lock) of
        {busy, _} = Busy ->
            Reply ! {Reply, Busy},
            ok;
        entered ->
            TookLonger = {Module, any, {took_longer, Ms}},
            Remember = fun() -> ats_merge_watchdog:remember(Lock, Merge, Chain, TookLonger) end,
            Timer = ats_merge_watchdog:watch(Client, Calls, Ms, Remember),
            Saves = jobs(Reply, Calls, Request),
            ok = ats_merge_watchdog:unwatch(Timer),
            ok = ats_merge_watchdog:stop_timing(Calls),
            lists:foreach(fun(Save) -> Save() end, Saves),
            ats_merge_watchdog:leave(Lock)
    end.

-spec jobs(reference(), ats_merge_watchdog:calls(), request()) -> [fun(() -> term())].
jobs(Reply, Calls, #{merge := Merge, jobs := [First | _] = Jobs} = Request) ->
    Tick = fun() -> ats_merge_watchdog:count_call(Calls) end,
    Formats = maps:get(formats, Request, none),
    lists:flatmap(fun({_, Chain} = Job) ->
                          Told = fun(Part) when Job =:= First -> Reply ! {Reply, {part, Part}};
                                    (_Part) -> ok
                                 end,
                          Outcome = ats_merge_operands:collapse(Merge, Formats, Chain, Tick, Told),
                          ok = ats_merge_watchdog:count_outcome(Calls),
                          Reply ! {Reply, Outcome},
                          case Request of
                              #{save := Save} -> [fun() -> Save(Job, Outcome) end];
                              #{} -> []
                          end
                  end, Jobs).

%%--------------------------------------------------------------------------------------------
%% Writing
%%--------------------------------------------------------------------------------------------

%% @doc Asks a module about a value that is alone. Its key is deleted, the value is an object with
%% which nothing older is merged, it is present, or the module does not say (`undefined').
-spec ask(ats_merge:program(), ats_merge:version(), Key :: term(), Value :: term()) ->
          delete | object | present | undefined | {failed, ats_merge:failure()}.
ask(Module, Version, Key, Value) ->
    Lock = {{ask, Module}, Key},
    case ats_merge_watchdog:known_failure(Lock, {Module, Version}, <<>>) of
        unknown -> ask(Module, Version, Key, Value, Lock);
        {failed, _} -> undefined
    end.

-spec ask(ats_merge:program(), ats_merge:version(), term(), term(), ats_merge_watchdog:lock()) ->
          delete | object | present | undefined | {failed, ats_merge:failure()}.
ask(Module, Version, Key, Value, Lock) ->
    {Ms, HeapWords} = ats_merge_watchdog:limits(),
    {Client, Reply} = {self(), make_ref()},
    Ask = fun() ->
                  Timer = ats_merge_watchdog:end_after(Ms),
                  Client ! {Reply, ask_module(Module, Version, Key, Value)},
                  ats_merge_watchdog:unwatch(Timer)
          end,
    {Worker, Monitor} = spawn_worker(Ask, HeapWords, normal),
    receive
        {Reply, Answer} ->
            true = demonitor(Monitor, [flush]),
            Answer;
        {'DOWN', Monitor, process, Worker, Reason} ->
            Failure = {Module, any, {ended, Reason}},
            ok = ats_merge_watchdog:remember(Lock, {Module, Version}, <<>>, Failure),
            undefined
    end.

-spec ask_module(ats_merge:program(), ats_merge:version(), term(), term()) ->
          delete | object | present | undefined | {failed, ats_merge:failure()}.
ask_module(Module, Version, Key, Value) ->
    try
        ok = ats_merge:check_version(Module, Version),
        Says = {ask_predicate(Module, short_circuit, Key, Value),
                ask_predicate(Module, delete, Key, Value)},
        ok = ats_merge:check_version(Module, Version),
        how(Says)
    catch
        throw:{ats_merge, Failure} -> {failed, Failure}
    end.

-spec how({boolean() | unknown, boolean() | unknown}) -> delete | object | present | undefined.
how({true, true}) -> delete;
how({true, false}) -> object;
how({_, false}) -> present;
how({_, _}) -> undefined.

-spec ask_predicate(ats_merge:program(), short_circuit | delete, term(), term()) ->
          boolean() | unknown.
ask_predicate(Module, Function, Key, Value) ->
    try ats_merge:is(Module, Function, Key, Value)
    catch throw:{ats_merge, _Failure} -> unknown
    end.

%% Tables of Mnesia on disk get changes a little later than transactions are done: reads meanwhile,
%% and changes that wait.
-module(ats_mnesia_writer_SUITE).

-include_lib("stdlib/include/assert.hrl").
-include("../support/ats_mnesia_lib.hrl").

-export([all/0, suite/0, init_per_testcase/2, end_per_testcase/2]).
-export([
    reads_see_waiting_writes/1,
    keys_are_read_without_waiting/1,
    one_part_of_the_log_is_read/1,
    log_is_kept_until_changes_are_on_disk/1,
    tables_are_closed_when_changes_are_on_disk/1,
    changes_that_wait_take_bounded_memory/1,
    failed_changes_are_in_the_log/1
]).

-import(ats_mnesia_lib, [on_one_node/2, on_nodes/3, start/1, call/2]).
-import(ats_mnesia_lib, [tables/0, names/0, create/4, create_all/1]).
-import(ats_mnesia_lib, [object/1, objects/1, fill/2, transaction/1, contents/1, restart/0,
                         wait/1]).

-define(ON_DISK, [{Name, Alias, Type} || {Name, Alias, Type} <- tables(), Alias =/= ats_ram]).
-define(SHORT_MS, 300).
-define(LONG_MS, 20000).
-define(STEPS, 3000).
-define(KEYS, [1, 1.0, 2, 3, "four", {5}]).
-define(LIMIT, 16#1000000).

suite() -> [{timetrap, {minutes, 15}}].

all() ->
    [
        reads_see_waiting_writes,
        keys_are_read_without_waiting,
        one_part_of_the_log_is_read,
        log_is_kept_until_changes_are_on_disk,
        tables_are_closed_when_changes_are_on_disk,
        changes_that_wait_take_bounded_memory,
        failed_changes_are_in_the_log
    ].

init_per_testcase(Case, Config) ->
    ats_mnesia_lib:begin_case(Case, Config).

end_per_testcase(_, _) ->
    ok.

%% ----- cases -----

%% Random steps on one of Mnesia's own tables and on one of ours.
reads_see_waiting_writes(Config) ->
    on_one_node(Config, fun() ->
        [begin
             [{atomic, ok} = mnesia:create_table(Name, [{Storage, [node()]}, {type, Type},
                                                        {record_name, pair}])
              || {Name, Storage} <- [{own, ram_copies}, {ours, Alias}]],
             Seed = rand:export_seed_s(rand:seed(exsss)),
             [take_step(step(Type), {Alias, Type, Seed}) || _ <- lists:seq(1, ?STEPS)],
             Before = sort(contents(own)),
             ?assertEqual(Before, sort(contents(ours))),
             restart(),
             ?assertEqual(Before, sort(contents(ours))),
             [{atomic, ok} = mnesia:delete_table(T) || T <- [own, ours]]
         end || {_, Alias, Type} <- ?ON_DISK]
    end).

step(Type) ->
    Key = pick(?KEYS),
    Object = {pair, Key, rand:uniform(3)},
    case rand:uniform(16) of
        N when N =< 4 -> {dirty_write, [Object]};
        5 -> {dirty_delete, [Key]};
        6 -> {dirty_delete_object, [Object]};
        7 -> {match_object, [{pair, '_', 2}, read]};
        8 -> {dirty_all_keys, []};
        9 -> {table_info, [size]};
        10 -> {select, [[{{pair, '$1', '_'}, [], ['$1']}], read]};
        11 when Type =/= bag -> {dirty_update_counter, [Key, 1]};
        12 -> pick([{clear_table, []}, {dirty_first, []}, {dirty_first, []}, {dirty_first, []}]);
        13 when Type =:= ordered_set -> {dirty_next, [Key]};
        14 when Type =:= ordered_set -> {dirty_last, []};
        _ -> {dirty_read, [Key]}
    end.

pick(List) -> lists:nth(rand:uniform(length(List)), List).

take_step(Step, Run) ->
    ?assertEqual(answer(own, Step), answer(ours, Step), {Step, Run}).

answer(Table, {Function, Arguments}) ->
    answer_in(Function, [Table | Arguments]).

%% Results without order are sorted; the first key of a set is any.
answer_in(dirty_first, [Table]) ->
    case mnesia:table_info(Table, type) of
        ordered_set -> mnesia:dirty_first(Table);
        _ -> mnesia:dirty_first(Table) =:= '$end_of_table'
    end;
answer_in(Function, Arguments) when Function =:= match_object; Function =:= select ->
    sort(transaction(fun() -> apply(mnesia, Function, Arguments) end));
answer_in(Function, Arguments) ->
    case apply(mnesia, Function, Arguments) of
        List when is_list(List) -> sort(List);
        Other -> Other
    end.

%% Keys such as 1 and 1.0 are in an order, too.
sort(List) -> lists:sort([term_to_binary(Term) || Term <- List]).

%% The process that writes to disk does not run.
keys_are_read_without_waiting(Config) ->
    on_one_node(Config, fun() ->
        [create(Name, Alias, Type, []) || {Name, Alias, Type} <- ?ON_DISK],
        Sets = [{Name, Alias} || {Name, Alias, Type} <- ?ON_DISK, Type =/= bag],
        [fill(Name, 3) || {Name, _} <- Sets],
        suspended(fun() ->
            [begin
                 transaction(fun() ->
                     mnesia:write(Name, (object(1))#person{value = new}, write),
                     mnesia:delete(Name, 2, write)
                 end),
                 ?assertEqual([[(object(1))#person{value = new}], [], [object(3)]],
                              [mnesia:dirty_read(Name, N) || N <- [1, 2, 3]])
             end || {Name, _} <- Sets],
            %% Changes of more than one key wait.
            Sizes = [{spawn_size(Name), Alias} || {Name, Alias} <- Sets],
            [?assertEqual(case Alias of ats_disc -> 2; dats_disc -> waits end,
                          receive {Size, N} -> N after ?SHORT_MS -> waits end)
             || {Size, Alias} <- Sizes],
            [Size || {Size, dats_disc} <- Sizes]
        end, fun(Sizes) ->
            [?assertEqual(2, receive {Size, N} -> N after ?LONG_MS -> waits end) || Size <- Sizes]
        end)
    end).

spawn_size(Name) ->
    Me = self(),
    spawn_link(fun() -> Me ! {self(), mnesia:table_info(Name, size)} end).

%% Others may write to the log faster than one process reads it. It would never come to the end.
one_part_of_the_log_is_read(Config) ->
    on_one_node(Config, fun() ->
        create(ours, dats_disc, set, []),
        {atomic, ok} = mnesia:create_table(own, [{disc_copies, [node()]}]),
        [ok = mnesia:dirty_write({own, N, <<0:16000>>}) || N <- lists:seq(1, 500)],
        Read = {disk_log, bchunk, 2},
        1 = erlang:trace_pattern(Read, true, [call_count]),
        ok = ats_mnesia_log:write_now(),
        {call_count, Count} = erlang:trace_info(Read, call_count),
        1 = erlang:trace_pattern(Read, false, [call_count]),
        %% The position may be one in a log that was dumped.
        ?assert(Count =< 2, Count),
        Log = filename:join(mnesia:system_info(directory), "LATEST.LOG"),
        ?assert(filelib:file_size(Log) > 500 * 2000)
    end).

%% Mnesia throws its log away when it has dumped it, and is killed then.
log_is_kept_until_changes_are_on_disk(Config) ->
    on_nodes(Config, 1, fun([Node]) ->
        ?assertExit({normal, _}, call(Node, fun() ->
            create_all([]),
            suspended(fun() ->
                [fill(Name, 10) || Name <- names()],
                {Dumper, Monitor} = spawn_monitor(fun() -> dumped = mnesia:dump_log() end),
                Ended = receive {'DOWN', Monitor, process, Dumper, _} -> true
                        after ?SHORT_MS -> false
                        end,
                ok = mnesia:sync_log(),
                kill_unless(Ended)
            end, fun(_) -> ok end),
            exit(dumped)
        end)),
        ok = start(Node),
        call(Node, fun() ->
            wait(names()),
            [?assertEqual(objects(10), contents(Name), Name) || {Name, _, _} <- ?ON_DISK]
        end)
    end).

kill_unless(true) -> ok;
kill_unless(false) -> os:cmd("kill -KILL " ++ os:getpid()).

tables_are_closed_when_changes_are_on_disk(Config) ->
    on_one_node(Config, fun() ->
        create_all([]),
        [begin
             [fill(Name, Count) || Name <- names()],
             restart(),
             [?assertEqual(objects(Count), contents(Name)) || {Name, _, _} <- ?ON_DISK]
         end || Count <- [100, 101, 102]]
    end).

%% Processes that write more wait.
changes_that_wait_take_bounded_memory(Config) ->
    on_one_node(Config, fun() ->
        [create(Name, Alias, Type, []) || {Name, Alias, Type} <- ?ON_DISK],
        Write = fun(N) ->
            [mnesia:dirty_write(Name, #person{key = N, more = binary:copy(<<N:64>>, 1000)})
             || {Name, _, _} <- ?ON_DISK]
        end,
        suspended(fun() ->
            Writers = [spawn_monitor(fun() -> [Write(N * 1000 + I) || I <- lists:seq(1, 1000)] end)
                       || N <- lists:seq(1, 4)],
            [?assertEqual(waits, receive {'DOWN', Monitor, process, Pid, _} -> ended
                                 after ?SHORT_MS -> waits
                                 end) || {Pid, Monitor} <- Writers],
            ?assert(ats:info(ats_mnesia_writer, memory) * erlang:system_info(wordsize)
                        < 2 * ?LIMIT),
            Writers
        end, fun(Writers) ->
            [?assertEqual(normal, receive {'DOWN', Monitor, process, Pid, Reason} -> Reason
                                  after ?LONG_MS -> waits
                                  end) || {Pid, Monitor} <- Writers]
        end),
        [?assertEqual(4000, mnesia:table_info(Name, size)) || {Name, _, _} <- ?ON_DISK],
        ?assertEqual(0, ats:info(ats_mnesia_writer, size))
    end).

%% A table that cannot be written stops Mnesia. Started again it has all.
failed_changes_are_in_the_log(Config) ->
    on_one_node(Config, fun() ->
        create_all([]),
        [fill(Name, 10) || Name <- names()],
        suspended(fun() ->
            [fill(Name, 20) || {Name, _, _} <- ?ON_DISK],
            ok = application:stop(ats)
        end, fun(_) -> ok end),
        wait_until_stopped(),
        ok = application:ensure_started(ats),
        ok = mnesia:start(),
        wait(names()),
        [?assertEqual(objects(20), contents(Name), Name) || {Name, _, _} <- ?ON_DISK]
    end).

wait_until_stopped() ->
    case lists:keymember(mnesia, 1, application:which_applications()) of
        true -> timer:sleep(100), wait_until_stopped();
        false -> ok
    end.

%% ----- the process that writes to disk -----

%% Calls a function while it does not run, and another one with the answer when it runs again.
suspended(Meanwhile, Later) ->
    Writer = whereis(ats_mnesia_writer),
    true = erlang:suspend_process(Writer),
    Answer = Meanwhile(),
    true = erlang:resume_process(Writer),
    Later(Answer).

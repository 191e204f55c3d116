%% The machine without a cluster: this process is the server. Results of commands are compared with
%% those of the same calls of a table; snapshots are compared with the table of their moment.
-module(ats_ra_SUITE).

-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0, init_per_suite/1, end_per_suite/1, end_per_testcase/2]).
-export([programs/1, lists_are_one_step/1, invalid_commands_are_refused/1, merges/1, reads/1]).
-export([options/1]).
-export([moments_while_all_changes/1, a_moment_that_is_not_used/1, large_tables/1]).
-export([merge/3, short_circuit/2, delete/2, version/0]).
-export([to_another_member/1, damaged_files/1, damaged_tables/1, another_file_system/1]).
-export([power_fails/1, planted_faults/1]).

-define(TYPES, [set, ordered_set, bag, duplicate_bag, ordered_bag, ordered_duplicate_bag]).

suite() -> [{timetrap, {minutes, 10}}].

all() ->
    [
        programs,
        lists_are_one_step,
        invalid_commands_are_refused,
        merges,
        reads,
        options,
        moments_while_all_changes,
        a_moment_that_is_not_used,
        large_tables,
        to_another_member,
        damaged_files,
        damaged_tables,
        another_file_system,
        power_fails,
        planted_faults
    ].

init_per_suite(Config) ->
    {ok, _} = application:ensure_all_started(ats),
    ok = application:load(ats_ra),
    ok = application:set_env(ats_ra, data_dir, filename:join(priv_dir(Config), "tables")),
    Config.

end_per_suite(_) ->
    ok = application:unload(ats_ra).

end_per_testcase(_, _) ->
    ok.

priv_dir(Config) -> proplists:get_value(priv_dir, Config).

%% ----- a server -----

%% Does something in a process that is a server of that name.
as_server(Name, Do) ->
    {Pid, Monitor} = spawn_monitor(fun() ->
        true = register(Name, self()),
        exit({done, Do()})
    end),
    receive
        {'DOWN', Monitor, process, Pid, {done, Result}} -> Result;
        {'DOWN', Monitor, process, Pid, Reason} -> error(Reason)
    end.

init(Name, {Module, Type}, Every) ->
    Options = case Module of
        ats -> [Type, {keypos, 2}];
        dats -> [{type, Type}, {keypos, 2}]
    end,
    More = #{snapshot_every => Every},
    {module, ats_ra_machine, Config} = ats_ra:machine({Module, Options}, More),
    ats_ra_machine:init(Config#{name => Name}).

apply_command(Index, Command, State) ->
    ats_ra_machine:apply(#{index => Index}, {ats_ra_machine, Command}, State).

%% Handles the effect as `ra' does. A snapshot is written by a process of its own.
begin_snapshot(Dir, [{release_cursor, Index, Snapshot}]) ->
    Meta = #{index => Index, term => 1, cluster => [], machine_version => 1},
    Prepared = ats_ra_snapshot:prepare(Meta, Snapshot),
    Path = filename:join(Dir, integer_to_list(erlang:unique_integer([positive]))),
    ok = filelib:ensure_path(Path),
    {_, Monitor} = spawn_monitor(fun() ->
        ok = ats_ra_snapshot:write(Path, Meta, Prepared)
    end),
    {Path, Monitor, Index}.

end_snapshot({Path, Monitor, Index}) ->
    receive {'DOWN', Monitor, process, _, Reason} -> normal = Reason end,
    ok = ats_ra_snapshot:validate(Path),
    {ok, #{index := Index}} = ats_ra_snapshot:read_meta(Path),
    {Path, Index}.

%% Returns the objects of a snapshot.
recovered({Path, Index}) ->
    as_server(recovering, fun() ->
        {ok, #{index := Index}, #{table := Table}} = ats_ra_snapshot:recover(Path),
        Table = ats_ra:table(recovering),
        Contents = contents(Table),
        ok = ats_ra_table:delete(recovering),
        Contents
    end).

%% Objects of each key, in their order.
contents({Module, Id}) ->
    Objects = Module:tab2list(Id),
    maps:from_list([{Key, Module:lookup(Id, Key)} || {_, Key, _} <- Objects]).

%% ----- random programs -----

programs(Config) ->
    [
        program(Config, Kind, Seed)
     || Module <- [ats, dats], Type <- ?TYPES, Kind <- [{Module, Type}], Seed <- lists:seq(1, 4)
    ].

%% A program beside a table of `ats', with a snapshot now and then.
program(Config, {_, Type} = Kind, Seed) ->
    as_server(server, fun() ->
        _ = rand:seed(exsss, Seed),
        Reference = ats:new(reference, [Type, {keypos, 2}]),
        First = init(server, Kind, 25),
        {_, Snapshots} = lists:foldl(
            fun(Index, {Before, Snapshots}) ->
                Command = random(Type),
                {State, Answer, Effects} = apply_command(Index, Command, Before),
                Expected = on_reference(Command, Reference),
                ?assertEqual(Expected, plain(Answer), {Kind, Command}),
                case Effects of
                    [] ->
                        {State, Snapshots};
                    _ ->
                        Snapshot = begin_snapshot(priv_dir(Config), Effects),
                        {State, [{Snapshot, contents({ats, Reference})} | Snapshots]}
                end
            end,
            {First, []},
            lists:seq(1, 300)
        ),
        ?assertEqual(contents({ats, Reference}), contents(ats_ra:table(server))),
        ?assertNotEqual([], Snapshots),
        [?assertEqual(Then, recovered(end_snapshot(S)), Kind) || {S, Then} <- Snapshots],
        ok = ats_ra_table:delete(server)
    end).

%% Removes differences in the errors of tables on disk, and in results without order.
plain({error, {badarg, Text}}) when byte_size(Text) > 0 -> badarg;
plain({error, neither}) -> badarg;
plain({ok, Result}) -> {ok, plain_result(Result)}.

plain_result(ok) -> true;
plain_result([{_, _, _} | _] = Objects) -> lists:sort(Objects);
plain_result(Results) when is_list(Results) -> [plain_result(Result) || Result <- Results];
plain_result(Result) -> Result.

on_reference(Commands, Reference) when is_list(Commands) ->
    Before = contents({ats, Reference}),
    try [call(Reference, Command) || Command <- Commands] of
        Results -> {ok, plain_result(Results)}
    catch
        error:_ ->
            true = ats:delete_all_objects(Reference),
            [true = ats:insert(Reference, Objects) || Objects <- maps:values(Before)],
            badarg
    end;
on_reference(Command, Reference) ->
    try call(Reference, Command) of
        Result -> {ok, plain_result(Result)}
    catch
        error:_ -> badarg
    end.

call(Reference, Command) ->
    [Function | Arguments] = tuple_to_list(Command),
    Hashed = lists:member(ats:info(Reference, type), [set, bag, duplicate_bag]),
    %% Refuses calls that take the first object, which is not the same everywhere.
    Hashed andalso lists:member(Function, [take_first, take_last]) andalso error(badarg),
    apply(ats, Function, [Reference | Arguments]).

random(Type) ->
    case rand:uniform(4) of
        1 -> [random_one(Type) || _ <- lists:seq(1, 1 + rand:uniform(3))];
        _ -> random_one(Type)
    end.

random_one(_Type) ->
    Object = {x, key(), rand:uniform(5)},
    case rand:uniform(24) of
        N when N < 6 -> {insert, Object};
        6 -> {insert, [{x, key(), M} || M <- lists:seq(1, 5)]};
        7 -> {insert_new, Object};
        8 -> {insert_new, [{x, key(), M} || M <- lists:seq(1, 3)]};
        9 -> {delete, key()};
        10 -> {delete_object, Object};
        11 -> {take, key()};
        12 -> {update_counter, key(), {3, 2}};
        13 -> {update_counter, key(), [{3, 1}, {3, 2}], Object};
        14 -> {update_element, key(), {3, 4}};
        15 -> {update_element, key(), {1, y}, Object};
        16 -> {select_delete, [{{'_', '$1', '$2'}, [{'=:=', '$2', 3}], [true]}]};
        17 -> {select_replace, [{{'$1', '$2', '$3'}, [{'<', '$3', 4}],
                                 [{{'$1', '$2', {'+', '$3', 1}}}]}]};
        18 -> {select_take, [{{'_', '_', 5}, [], [true]}]};
        19 -> {match_delete, {'_', '_', rand:uniform(5)}};
        20 -> {range_delete, 10, 13};
        21 -> {range_delete, 10, 20, [{high, exclusive}]};
        22 -> {lists:nth(rand:uniform(2), [take_first, take_last])};
        23 -> lists:nth(rand:uniform(4), [{delete_all_objects}, {insert, {x}}, {delete, 1, 2, 3},
                                         {insert, [{x, key(), 1}, z]}]);
        24 -> {match_delete, '_'}
    end.

key() ->
    case rand:uniform(25) of
        N when N rem 5 =:= 0 -> float(N);
        N when N rem 7 =:= 0 -> {a, N};
        N -> N
    end.

%% ----- commands -----

lists_are_one_step(_) ->
    [
        as_server(server, fun() ->
            State = init(server, {Module, ordered_set}, 1000),
            Insert = {insert, [{x, N, N} || N <- lists:seq(1, 10)]},
            {_, {ok, _}, []} = apply_command(1, Insert, State),
            Before = contents(ats_ra:table(server)),
            %% Checks that all changes of a failed list are undone.
            {_, Answer, []} = apply_command(2, [
                {delete, 1}, {insert, {x, 1, new}}, {insert, {x, 11, 11}},
                {update_counter, 2, {3, 5}},
                {select_delete, [{{'_', '$1', '_'}, [{'>', '$1', 4}], [true]}]},
                {select_replace, [{{x, '$1', '$2'}, [], [{{y, '$1', '$2'}}]}]},
                {match_delete, {y, 3, '_'}}, {take_first}, {update_counter, none, {3, 1}}
            ], State),
            ?assertMatch({error, {badarg, <<"not a key that", _/binary>>}}, Answer),
            ?assertEqual(Before, contents(ats_ra:table(server))),
            {_, {error, {badarg, _}}, []} =
                apply_command(3, [{delete_all_objects}, {insert, none}], State),
            ?assertEqual(Before, contents(ats_ra:table(server))),
            {_, {ok, [Done, 8]}, []} =
                apply_command(4, [{delete, 1}, {update_counter, 2, {3, 6}}], State),
            ?assert(Done =:= ok orelse Done =:= true),
            ok = ats_ra_table:delete(server)
        end)
     || Module <- [ats, dats]
    ].

invalid_commands_are_refused(_) ->
    Compiled = ats:match_spec_compile([{{x, '_', '_'}, [], [true]}]),
    Spec = fun(Guards, Body) -> [{{x, '$1', '$2'}, Guards, Body}] end,
    Refused = [
        none, [], [none], {}, {new}, {insert}, {insert, {x, 1, 1}, 2}, [{insert, {x, 1, 1}} | tail],
        {insert, none}, {insert, [{x, 1, 1} | tail]}, {insert, {x, 1, fun() -> ok end}},
        {insert, #{1 => [fun lists:sort/1]}}, {foldl, fun(_, A) -> A end, a}, {tab2list},
        {delete, 1, 2},
        {take_first}, {take_last}, {select_delete, Compiled}, {select_delete, none},
        {select_delete, Spec([{'=:=', {self}, {self}}], [true])},
        {select_replace, Spec([], [{{x, '$1', {node}}}])},
        {select_take, Spec([{'=:=', '$1', #{a => [{node}]}}], [true])},
        {update_counter, 1, none}, {write, 1, 1}, {select_delete, [none]}, {select_replace, [{{}}]}
    ],
    [
        as_server(server, fun() ->
            State = init(server, {Module, set}, 1000),
            [
                begin
                    {State1, {error, {badarg, Text}}, []} = apply_command(1, Command, State),
                    ?assert(is_binary(Text) andalso byte_size(Text) > 0),
                    ?assertEqual(State#{since := 1}, State1),
                    ?assertEqual(#{}, contents(ats_ra:table(server)), Command)
                end
             || Command <- Refused, Command =/= {write, 1, 1} orelse Module =:= ats
            ],
            %% Messages of `ra' change no table.
            [
                {State, ok, []} = ats_ra_machine:apply(#{index => 2}, Told, State)
             || Told <- [{down, self(), normal}, {nodeup, node()}, {machine_version, 0, 1}]
            ],
            ok = ats_ra_table:delete(server)
        end)
     || Module <- [ats, dats]
    ].

%% Sums, by `ats' and by a module that fails for terms that are no numbers.
merges(_) ->
    as_server(server, fun() ->
        State = init_with(server, {ats, []}),
        Command = fun(Command) -> element(2, apply_command(1, Command, State)) end,
        ?assertEqual({ok, 1}, Command({merge, a, 1, sum})),
        ?assertEqual({ok, [3, 5]}, Command([{merge, a, 2, sum}, {merge, b, 5, sum}])),
        ?assertMatch({error, {badarg, _}}, Command([{merge, a, 2, sum}, {merge, b, x, sum}])),
        ?assertEqual(#{a => [{a, 3}], b => [{b, 5}]}, all(ats_ra:table(server)))
    end),
    as_server(server, fun() ->
        State = init_with(server, {dats, [{merge, {module, ?MODULE}}]}),
        Command = fun(Command) -> element(2, apply_command(1, Command, State)) end,
        [{ok, ok} = Command({write, a, N}) || N <- [1, 2]],
        [{ok, ok} = Command({write, b, V}) || V <- [1, none]],
        ?assertMatch({error, {merge_failed, b, _}}, Command({update_counter, b, 1})),
        %% Checks that the changes before a failed merge are undone.
        List = [{write, a, 10}, {insert, {c, 1}}, {update_counter, b, 1}],
        ?assertMatch({error, {merge_failed, b, _}}, Command(List)),
        {ok, ok} = Command({delete, b}),
        ?assertEqual(#{a => [{a, 3}]}, all(ats_ra:table(server))),
        {ok, [ok, 13]} = Command([{write, a, 9}, {update_counter, a, 1}]),
        ok = ats_ra_table:delete(server)
    end).

init_with(Name, Table) ->
    {module, ats_ra_machine, Config} = ats_ra:machine(Table, #{}),
    ats_ra_machine:init(Config#{name => Name}).

all({Module, Id}) ->
    maps:from_list([{Key, Module:lookup(Id, Key)} || {Key, _} <- Module:tab2list(Id)]).

%% ----- a module that merges -----

merge(_Key, Earlier, Later) -> Earlier + Later.
short_circuit(_Key, _Value) -> false.
delete(_Key, _Value) -> false.
version() -> 1.

reads(_) ->
    [
        as_server(server, fun() ->
            State = init(server, {Module, ordered_set}, 1000),
            {_, {ok, _}, []} = apply_command(1, {insert, {x, 1, 1}}, State),
            Read = fun(Function, Arguments) -> ats_ra_machine:query(Function, Arguments, State) end,
            ?assertEqual({ok, [{x, 1, 1}]}, Read(lookup, [1])),
            ?assertEqual({ok, false}, Read(member, [2])),
            ?assertEqual({ok, [1]}, Read(select, [[{{x, '$1', '_'}, [], ['$1']}]])),
            ?assertEqual({ok, 1}, Read(first, [])),
            ?assertMatch({error, {badarg, <<_, _/binary>>}}, Read(lookup_element, [2, 3])),
            [
                ?assertMatch({error, {badarg, <<_, _/binary>>}}, Read(Function, Arguments))
             || {Function, Arguments} <- [{insert, [{x, 1, 1}]}, {delete, []}, {lookup, []},
                                          {none, []}]
            ],
            Local = {server, node()},
            ?assertEqual({ok, [{x, 1, 1}]}, ats_ra:read(local, Local, lookup, [1])),
            ?assertEqual({error, noproc}, ats_ra:read(local, {nobody, node()}, lookup, [1])),
            [] = ats_ra_machine:state_enter(eol, State),
            ?assertEqual(undefined, ats_ra:table(server))
        end)
     || Module <- [ats, dats]
    ].

options(_) ->
    [
        ?assertError(badarg, ats_ra:machine(Table, #{}))
     || Table <- [{ats, [named_table]}, {ats, [set, public]}, {ats, [{heir, none}]},
                  {dats, [{file, "x"}]}, {dats, [{access, read}]}]
    ],
    ?assertMatch({module, _, _}, ats_ra:machine({dats, [{type, bag}, {memory, 1 bsl 20}]}, #{})).

%% ----- moments -----

%% The server goes on between the chunks: it does so itself, as it reads them.
moments_while_all_changes(_) ->
    [moment_while_all_changes(Type) || Type <- ?TYPES].

moment_while_all_changes(Type) ->
    as_server(server, fun() ->
        _ = rand:seed(exsss, 7),
        State = init(server, {ats, Type}, 100000),
        Insert = {insert, [{x, N div 2, N} || N <- lists:seq(1, 6000)]},
        {_, {ok, _}, []} = apply_command(1, Insert, State),
        Table = ats_ra:table(server),
        Then = contents(Table),
        Moment = ats_ra_moment:take(Table),
        Change = fun() ->
            [
                apply_command(2, Command, State)
             || _ <- lists:seq(1, 100),
                Command <- [
                    {delete, rand:uniform(3000)},
                    {insert, {y, rand:uniform(4000), new}},
                    [{take, rand:uniform(3000)}, {insert, {x, rand:uniform(3000), 0}}],
                    {select_delete, [{{'_', rand:uniform(3000), '_'}, [], [true]}]}
                ]
            ]
        end,
        {ok, Chunks} = ats_ra_moment:fold(
            fun(Chunk, Chunks) ->
                Change(),
                [Chunk | Chunks]
            end,
            [],
            Moment
        ),
        Copy = ats:new(copy, [Type, {keypos, 2}]),
        [true = ats:insert(Copy, Objects) || Objects <- lists:reverse(Chunks)],
        ?assertEqual(Then, contents({ats, Copy}), Type),
        ?assertNotEqual(Then, contents(Table)),
        ?assert(length(Chunks) > 3),
        %% Checks that the moment has ended, and that all else is unchanged.
        ?assertNot(ats_ra_moment:is_in_use()),
        {_, {ok, _}, []} = apply_command(3, {delete_all_objects}, State),
        ?assertEqual(#{}, contents(ats_ra:table(server))),
        all_at_once(State)
    end).

%% Clearing the table is a change of all keys.
all_at_once(#{table := Table} = State) ->
    {_, {ok, _}, []} = apply_command(1, {insert, [{x, N, N} || N <- lists:seq(1, 2500)]}, State),
    Then = contents(Table),
    Moment = ats_ra_moment:take(Table),
    {_, {ok, _}, []} = apply_command(2, {delete_all_objects}, State),
    {ok, Chunks} = ats_ra_moment:fold(fun(Chunk, Chunks) -> [Chunk | Chunks] end, [], Moment),
    Copy = ats:new(copy, [ats:info(element(2, Table), type), {keypos, 2}]),
    [true = ats:insert(Copy, Objects) || Objects <- lists:reverse(Chunks)],
    ?assertEqual(Then, contents({ats, Copy})).

%% Checks that `ra' need not use a moment it is offered, and that the server may end.
a_moment_that_is_not_used(Config) ->
    as_server(server, fun() ->
        First = init(server, {ats, set}, 10),
        {State, Offered} = lists:foldl(
            fun(Index, {Before, Offered}) ->
                {After, {ok, _}, Effects} = apply_command(Index, {insert, {x, Index, 1}}, Before),
                {After, Offered ++ Effects}
            end,
            {First, []},
            lists:seq(1, 35)
        ),
        ?assertMatch([{_, 10, _}, {_, 20, _}, {_, 30, _}], Offered),
        %% Only the last one is there still.
        [{_, 10, {_, {reader, Gone}} = Snapshot}, _, Last] = Offered,
        ?assertNot(is_process_alive(Gone)),
        ?assertMatch({error, _}, ats_ra_snapshot:write(priv_dir(Config), #{}, Snapshot)),
        Writing = begin_snapshot(priv_dir(Config), [Last]),
        ?assertEqual(30, maps:size(recovered(end_snapshot(Writing)))),
        {_, _, [{_, 36, {_, {reader, Pid}}}]} =
            apply_command(36, {delete, 1}, State#{since := 9}),
        self() ! {moment, Pid},
        receive {moment, _} -> ok end,
        put(moment, Pid)
    end),
    ok = wait_until(fun() -> [] =:= [P || P <- processes(), is_reader(P)] end).

%% A table with many objects is not written again and again for a few commands. A checkpoint does
%% not write it.
large_tables(_) ->
    [
        as_server(server, fun() ->
            State = init(server, {Module, set}, 10),
            Insert = {insert, [{x, N, N} || N <- lists:seq(1, 400)]},
            {_, {ok, _}, []} = apply_command(1, Insert, State),
            Taken = [
                Since
             || Since <- lists:seq(1, 100),
                {_, {ok, _}, [_]} <- [apply_command(2, {delete, 0}, State#{since := Since - 1})]
            ],
            Least = case Module of ats -> 50; dats -> 10 end,
            ?assertEqual(lists:seq(Least, 100, 10), Taken, Module),
            ok = ats_ra_table:delete(server)
        end)
     || Module <- [ats, dats]
    ].

is_reader(Pid) ->
    case process_info(Pid, current_function) of
        {_, {ats_ra_moment, _, _}} -> true;
        _ -> false
    end.

wait_until(Condition) ->
    Condition() orelse begin timer:sleep(10), wait_until(Condition) end,
    ok.

%% ----- files -----

written(Config, Count) -> written(Config, Count, ats).

written(Config, Count, Module) ->
    as_server(server, fun() ->
        State = init(server, {Module, bag}, 2),
        Insert = {insert, [{x, N div 2, N} || N <- lists:seq(1, Count)]},
        {State1, {ok, _}, []} = apply_command(1, Insert, State),
        {_, {ok, _}, Effects} = apply_command(2, {delete, 1}, State1#{since := Count - 1}),
        Contents = contents(ats_ra:table(server)),
        Begun = begin_snapshot(priv_dir(Config), Effects),
        {_, {ok, _}, []} = apply_command(3, {delete, 2}, State),
        Written = end_snapshot(Begun),
        ok = ats_ra_table:delete(server),
        {Written, Contents}
    end).

to_another_member(Config) ->
    [to_another_member(Config, Module) || Module <- [ats, dats]].

to_another_member(Config, Module) ->
    {{Path, Index}, Contents} = written(Config, 3000, Module),
    Size = filelib:file_size(filename:join(Path, "table")),
    [
        begin
            Dir = filename:join(priv_dir(Config), lists:concat([Module, "_", ChunkSize])),
            %% The remains of a transfer that was broken off.
            ok = filelib:ensure_path(Dir),
            ok = file:write_file(filename:join(Dir, "table"), "broken off"),
            {ok, #{index := Index} = Meta, File} = ats_ra_snapshot:begin_read(Path, #{}),
            {ok, Accepting} = ats_ra_snapshot:begin_accept(Dir, Meta),
            ok = transfer(Path, File, ChunkSize, Accepting),
            ?assertEqual(ok, ats_ra_snapshot:validate(Dir)),
            ?assertEqual(Contents, recovered({Dir, Index}))
        end
     || ChunkSize <- [100, Size - 1, Size, Size + 1, 1 bsl 20]
    ].

transfer(Path, File, Size, Accepting) ->
    case ats_ra_snapshot:read_chunk(File, Size, Path) of
        {ok, Chunk, {next, Next}} ->
            {ok, After} = ats_ra_snapshot:accept_chunk(Chunk, Accepting),
            transfer(Path, Next, Size, After);
        {ok, Chunk, last} ->
            ats_ra_snapshot:complete_accept(Chunk, Accepting)
    end.

%% Checks that a file with a missing or changed part is no snapshot.
damaged_files(Config) ->
    {{Path, _}, _} = written(Config, 20),
    File = filename:join(Path, "table"),
    {ok, Bytes} = file:read_file(File),
    Invalid = fun(Wrong) ->
        ok = file:write_file(File, Wrong),
        ?assertMatch({error, _}, ats_ra_snapshot:validate(Path))
    end,
    [Invalid(binary:part(Bytes, 0, Length)) || Length <- lists:seq(0, byte_size(Bytes) - 1)],
    [
        begin
            <<Before:At/binary, Byte, Behind/binary>> = Bytes,
            Invalid(<<Before/binary, (Byte bxor 16), Behind/binary>>)
        end
     || At <- lists:seq(0, byte_size(Bytes) - 1)
    ],
    ok = file:write_file(File, Bytes),
    ok = ats_ra_snapshot:validate(Path),
    ok = file:delete(File),
    ?assertEqual({error, enoent}, ats_ra_snapshot:validate(Path)),
    ?assertEqual({error, enoent}, ats_ra_snapshot:read_meta(Path)).

%% Checks that a table on disk with a missing file, or a shortened one, is no snapshot or has lost
%% no object. Damage inside its files is found by whoever reads them.
damaged_tables(Config) ->
    {{Path, Index}, Contents} = written(Config, 3000, dats),
    {ok, Names} = file:list_dir(filename:join(Path, "dats")),
    Verdicts = [
        begin
            Copy = filename:join(priv_dir(Config), "damaged"),
            "" = os:cmd("cp -r '" ++ Path ++ "' '" ++ Copy ++ "'"),
            ok = Damage(filename:join([Copy, "dats", Name])),
            Verdict = ats_ra_snapshot:validate(Copy),
            Verdict =/= ok orelse ?assertEqual(Contents, recovered({Copy, Index}), Name),
            ok = file:del_dir_r(Copy),
            Verdict
        end
     || Name <- Names, Damage <- [fun file:delete/1, fun halve/1]
    ],
    ?assert(length([Wrong || {error, _} = Wrong <- Verdicts]) >= 3),
    ok = file:del_dir_r(filename:join(Path, "dats")),
    ?assertMatch({error, _}, ats_ra_snapshot:validate(Path)).

halve(File) ->
    {ok, Bytes} = file:read_file(File),
    file:write_file(File, binary:part(Bytes, 0, byte_size(Bytes) div 2)).

%% A checkpoint cannot be renamed into that.
another_file_system(Config) ->
    Shared = "/dev/shm",
    {ok, Before} = application:get_env(ats_ra, data_dir),
    case filelib:is_dir(Shared) of
        true ->
            Tables = filename:join(Shared, lists:concat([?MODULE, "_", os:getpid()])),
            ok = application:set_env(ats_ra, data_dir, Tables),
            try
                {Written, Contents} = written(Config, 3000, dats),
                ?assertEqual(Contents, recovered(Written))
            after
                ok = application:set_env(ats_ra, data_dir, Before),
                file:del_dir_r(Tables)
            end;
        false ->
            {skip, "there is no " ++ Shared}
    end.

%% Checks that a reported snapshot is on disk as a whole, with its bytes and its names.
power_fails(Config) ->
    {{Path, _}, _} = written(Config, 3000),
    Dir = filename:join([priv_dir(Config), "power", "1"]),
    ok = filelib:ensure_path(Dir),
    ok = is_durable([filename:dirname(Dir), Dir, filename:join(Dir, "dats")], Dir, fun() ->
        {ok, Meta, File} = ats_ra_snapshot:begin_read(Path),
        {ok, Accepting} = ats_ra_snapshot:begin_accept(Dir, Meta),
        transfer(Path, File, 1000, Accepting)
    end),
    Other = filename:join([priv_dir(Config), "power", "2"]),
    ok = filelib:ensure_path(Other),
    ok = is_durable([filename:dirname(Other), Other], Other, fun() ->
        as_server(server, fun() ->
            State = init(server, {ats, bag}, 1),
            {_, {ok, _}, [{_, _, Snapshot}]} = apply_command(1, {insert, [{x, 1, 1}]}, State),
            %% Calls of later releases of `ra'.
            ok = ats_ra_snapshot:write(Other, #{}, ats_ra_snapshot:prepare(#{}, Snapshot), false),
            ats_ra_snapshot:sync(Other)
        end)
    end).

%% Lets a function write a file, and checks the writes after the last sync.
is_durable(Expected, Dir, Write) ->
    Calls = calls_of_files(Write),
    {After, Writes} = lists:splitwith(
        fun(Call) -> element(1, Call) =/= write end, lists:reverse(Calls)
    ),
    ?assertNotEqual([], Writes),
    ?assertMatch([{sync, _} | _], lists:reverse(After)),
    Directories = [Path || {directory, Path} <- synced(Calls)],
    ?assertEqual(Expected, lists:sort(Directories)),
    ok = ats_ra_snapshot:validate(Dir).

synced([{directory, _} = Directory, {sync, _} | Calls]) -> [Directory | synced(Calls)];
synced([_ | Calls]) -> synced(Calls);
synced([]) -> [].

%% Writes, syncs, and openings of directories, in their order.
calls_of_files(Do) ->
    Me = self(),
    Tracer = spawn_link(fun() -> collect(Me, []) end),
    Functions = [{file, write, 2}, {file, sync, 1}, {file, open, 2}],
    [1 = erlang:trace_pattern(Function, true, []) || Function <- Functions],
    {Pid, Monitor} = spawn_monitor(fun() ->
        receive go -> ok end,
        ok = Do()
    end),
    1 = erlang:trace(Pid, true, [call, set_on_spawn, {tracer, Tracer}]),
    Pid ! go,
    receive {'DOWN', Monitor, process, Pid, Reason} -> ?assertEqual(normal, Reason) end,
    Delivered = erlang:trace_delivered(all),
    receive {trace_delivered, all, Delivered} -> ok end,
    [1 = erlang:trace_pattern(Function, false, []) || Function <- Functions],
    Tracer ! {done, Me},
    receive {calls, Calls} -> Calls end.

collect(Reader, Calls) ->
    receive
        {trace, _, call, {file, write, [_, Data]}} -> collect(Reader, [{write, Data} | Calls]);
        {trace, _, call, {file, sync, [File]}} -> collect(Reader, [{sync, File} | Calls]);
        {trace, _, call, {file, open, [Path, Modes]}} ->
            IsDirectory = lists:member(directory, Modes),
            collect(Reader, [{directory, Path} || IsDirectory] ++ Calls);
        {done, Reader} -> Reader ! {calls, lists:reverse(Calls)}
    end.

%% ----- faults -----

planted_faults(Config) ->
    Checks = [
        {early_snapshot, fun() -> program(Config, {ats, ordered_set}, 1) end},
        {early_snapshot, fun() -> program(Config, {dats, set}, 1) end},
        {late_snapshot, fun() -> moment_while_all_changes(set) end},
        {no_checkpoint, fun() -> program(Config, {dats, set}, 1) end},
        {no_links, fun() -> program(Config, {dats, set}, 1) end},
        {no_check, fun() -> damaged_tables(Config) end},
        {no_flush, fun() -> damaged_tables(Config) end},
        {late_snapshot, fun() -> a_late_snapshot_loads_its_moment(Config) end},
        {half_of_a_list, fun() -> program(Config, {ats, set}, 1) end},
        {half_of_a_list, fun() -> lists_are_one_step(Config) end},
        {no_sync, fun() -> power_fails(Config) end},
        {no_sync_of_directories, fun() -> power_fails(Config) end},
        {no_checksum, fun() -> damaged_files(Config) end},
        {no_end, fun() -> damaged_files(Config) end}
    ],
    [
        begin
            ok = clean(),
            try ats_ra_faults:with(Fault, Check) of
                _ -> ct:fail({not_found, Fault})
            catch
                Class:Reason -> ct:log("~p is found: ~p", [Fault, {Class, Reason}])
            end
        end
     || {Fault, Check} <- Checks
    ],
    ok = clean(),
    a_late_snapshot_loads_its_moment(Config).

%% Names of servers that did not end well.
clean() ->
    lists:foreach(fun ats_ra_table:delete/1, [server, recovering]).

%% Keys that were changed while the snapshot was written.
a_late_snapshot_loads_its_moment(Config) ->
    as_server(server, fun() ->
        First = init(server, {ats, set}, 2),
        Insert = {insert, [{x, N, N} || N <- lists:seq(1, 2000)]},
        {Second, {ok, _}, []} = apply_command(1, Insert, First),
        {Third, {ok, _}, Effects} = apply_command(2, {insert, {x, 1, 1}}, Second#{since := 999}),
        Then = contents(ats_ra:table(server)),
        Changes = [[{delete, N}, {insert, {x, N + 5000, N}}] || N <- lists:seq(1, 2000, 2)],
        _ = lists:foldl(
            fun(Command, Before) ->
                {After, {ok, _}, _} = apply_command(3, Command, Before#{since := 0}),
                After
            end,
            Third,
            Changes
        ),
        Writing = begin_snapshot(priv_dir(Config), Effects),
        ?assertEqual(Then, recovered(end_snapshot(Writing)))
    end).

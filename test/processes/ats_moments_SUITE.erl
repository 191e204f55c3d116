%% Numbers and lists that are those of one moment while processes write: the size of a table, its
%% memory, all tables; and the end of a process that has to do with many tables.
-module(ats_moments_SUITE).

-include_lib("stdlib/include/assert.hrl").

-export([all/0]).
-export([sizes_have_lists_whole/1, sizes_include_announced_objects/1, sizes_beside_takes/1,
         memory_never_falls_while_objects_come/1, memory_returns/1, memory_behind_a_file/1,
         listings_are_of_one_moment/1,
         names_and_listings_agree/1, many_tables_end/1, many_tables_are_inherited/1,
         many_fixations_end/1, watches_follow_gifts/1]).

-define(TYPES, [set, ordered_set, bag, duplicate_bag]).
-define(MILLISECONDS, 300).

all() ->
    [sizes_have_lists_whole, sizes_include_announced_objects, sizes_beside_takes,
     memory_never_falls_while_objects_come, memory_returns, memory_behind_a_file,
     listings_are_of_one_moment,
     names_and_listings_agree, many_tables_end, many_tables_are_inherited, many_fixations_end,
     watches_follow_gifts].

%% A list of ten objects is in no size or in all, and the end of all objects takes them together. No
%% two lists have a key in common, so ten objects are ten more in tables of all types.
sizes_have_lists_whole(_Config) ->
    [begin
         Table = ats:new(table, [Type, public, {write_concurrency, true}]),
         Write = fun(N) ->
                     true = ats:insert(Table, [{I * 100000007 + N, I} || I <- lists:seq(1, 10)]),
                     N rem 5 =:= 0 andalso ats:delete_all_objects(Table)
                 end,
         Look = fun() -> ?assertEqual(0, ats:info(Table, size) rem 10) end,
         beside([Write], Look),
         ats:delete(Table)
     end || Type <- ?TYPES].

%% Two writers each add, tell of it by a counter, and remove: the size includes announced objects.
sizes_include_announced_objects(_Config) ->
    [begin
         Table = ats:new(table, [Type, public]),
         Told = atomics:new(2, []),
         Write = fun(Writer) ->
                     fun(N) ->
                         true = ats:insert(Table,
                                           {Writer + 2 * (N rem 1000) + 2000 * (N div 1000), N}),
                         atomics:put(Told, Writer, N)
                     end
                 end,
         Look = fun() ->
                    Before = atomics:get(Told, 1) + atomics:get(Told, 2),
                    Size = ats:info(Table, size),
                    After = atomics:get(Told, 1) + atomics:get(Told, 2),
                    %% Each writer may have inserted one object more than it has told of.
                    ?assert(Before =< Size),
                    ?assert(Size =< After + 2)
                end,
         beside([Write(1), Write(2)], Look),
         ats:delete(Table)
     end || Type <- ?TYPES].

%% A process that moves one object between keys has one or none in the table, and never two.
sizes_beside_takes(_Config) ->
    [begin
         Table = ats:new(table, [Type, public]),
         Write = fun(N) ->
                     true = ats:insert(Table, {N, object}),
                     [{N, object}] = ats:take(Table, N)
                 end,
         Look = fun() -> ?assert(lists:member(ats:info(Table, size), [0, 1, 2])) end,
         beside([fun(N) -> Write({left, N}) end, fun(N) -> Write({right, N}) end], Look),
         ?assertEqual(0, ats:info(Table, size)),
         ats:delete(Table)
     end || Type <- ?TYPES].

memory_never_falls_while_objects_come(_Config) ->
    [begin
         Table = ats:new(table, [Type, public, {write_concurrency, true}]),
         Least = atomics:new(1, []),
         Write = fun(Writer) ->
                     fun(N) ->
                         ats:insert(Table, {{Writer, N rem 997, N}, lists:seq(1, N rem 7)})
                     end
                 end,
         Look = fun() ->
                    Memory = ats:info(Table, memory),
                    ?assert(Memory >= atomics:get(Least, 1)),
                    atomics:put(Least, 1, Memory)
                end,
         beside([Write(1), Write(2)], Look),
         ats:delete(Table)
     end || Type <- ?TYPES].

%% Objects that come and go one by one, in lists, and in large bags leave no trace in the numbers.
memory_returns(_Config) ->
    [begin
         Table = ats:new(table, [Type, public]),
         Round = fun() ->
                     ats:insert(Table,
                                [{I rem 50, I, lists:seq(1, I rem 9)} || I <- lists:seq(1, 3000)]),
                     [ats:insert(Table, {key, I}) || I <- lists:seq(1, 500)],
                     [ats:update_counter(Table, counter, 1, {counter, 0})
                      || Type =:= set orelse Type =:= ordered_set],
                     [ats:delete_object(Table, {key, I}) || I <- lists:seq(1, 250)],
                     ats:match_delete(Table, {'_', '_', '_'}),
                     [ats:delete(Table, Key) || Key <- [key, counter]]
                 end,
         Round(),
         ?assertEqual(0, ats:info(Table, size)),
         Memory = ats:info(Table, memory),
         [Round() || _ <- lists:seq(1, 5)],
         ?assertEqual(0, ats:info(Table, size)),
         ?assert(ats:info(Table, memory) =< Memory * 1.1),
         ats:delete(Table)
     end || Type <- ?TYPES].

%% A table that was written to a file and read again takes at most a tenth more, with any history.
memory_behind_a_file(Config) ->
    File = filename:join(proplists:get_value(priv_dir, Config), "table"),
    [begin
         Table = ats:new(table, [Type, public]),
         Order = [K || {_, K} <- lists:sort([{erlang:phash2(K), K} || K <- lists:seq(1, 20000)])],
         [ats:insert(Table, {K rem 9000, K, lists:seq(1, K rem 7)}) || K <- Order],
         ok = ats:tab2file(Table, File),
         {ok, Again} = ats:file2tab(File),
         ?assertEqual(ats:info(Table, size), ats:info(Again, size)),
         ?assert(ats:info(Again, memory) =< ats:info(Table, memory) * 1.1),
         [ats:delete(T) || T <- [Table, Again]]
     end || Type <- ?TYPES].

%% One of two tables that take turns always exists, so each listing has one or both.
listings_are_of_one_moment(_Config) ->
    Pairs = [{ats_moments_a, ats_moments_b}, {ats_moments_c, ats_moments_d}],
    [ats:new(Name, [named_table, public]) || {Name, _} <- Pairs],
    Turn = fun({One, Other}) ->
               fun(N) ->
                   {New, Old} = case N rem 2 of 0 -> {One, Other}; 1 -> {Other, One} end,
                   New = ats:new(New, [named_table, public]),
                   ats:delete(Old),
                   %% The next table must outlive this process.
                   ats:setopts(New, [{owner, none}])
               end
           end,
    Look = fun() ->
               All = ats:all(),
               [?assert(lists:member(One, All) orelse lists:member(Other, All))
                || {One, Other} <- Pairs]
           end,
    beside([Turn(Pair) || Pair <- Pairs], Look),
    [ats:delete(Name)
     || {One, Other} <- Pairs, Name <- [One, Other], ats:whereis(Name) =/= undefined].

%% A named table that is found by its name is in the listings that begin later.
names_and_listings_agree(_Config) ->
    Write = fun(N) ->
                Name = case N rem 2 of 0 -> ats_moments_a; 1 -> ats_moments_b end,
                case get(named) of
                    undefined ->
                        put(named, ats:new(Name, [named_table, public]));
                    Old when N rem 3 =:= 0 ->
                        ats:delete(Old),
                        erase(named);
                    Old when Old =/= Name ->
                        put(named, ats:rename(Old, Name));
                    _ ->
                        ok
                end
            end,
    Look = fun() ->
               Found = [Name
                        || Name <- [ats_moments_a, ats_moments_b], ats:whereis(Name) =/= undefined],
               Listed = [Name
                         || Name <- ats:all(), is_atom(Name),
                            lists:prefix("ats_moments_", atom_to_list(Name))],
               ?assert(length(Listed) =< 1),
               length(Found)
           end,
    beside([Write], Look).

%% More than are looked after in the midst of the end of the process.
many_tables_end(_Config) ->
    Before = length(ats:all()),
    {Owner, Monitor} = spawn_monitor(fun() ->
        Tables = [ats:new(table, [public]) || _ <- lists:seq(1, 1000)],
        [ats:new(list_to_atom("ats_moments_" ++ integer_to_list(I)), [named_table])
         || I <- lists:seq(1, 300)],
        exit({made, Tables})
    end),
    receive
        {'DOWN', Monitor, process, Owner, {made, Tables}} ->
            %% Tables are gone at once, although most of them have yet to be freed.
            ?assertEqual([], [Table || Table <- Tables, ats:info(Table) =/= undefined]),
            ?assertEqual(undefined, ats:whereis(ats_moments_7)),
            ?assertEqual(Before, length(ats:all()))
    end.

many_tables_are_inherited(_Config) ->
    Heir = self(),
    Owner = spawn(fun() ->
        [ats:new(table, [public, {heir, Heir, I}]) || I <- lists:seq(1, 500)]
    end),
    Tables = [receive {'ETS-TRANSFER', Table, Owner, I} -> Table
              after 10000 -> error({missing, I})
              end
              || I <- lists:seq(1, 500)],
    ?assertEqual(500, length(lists:usort(Tables))),
    [?assertEqual(Heir, ats:info(Table, owner)) || Table <- Tables],
    [ats:delete(Table) || Table <- Tables].

many_fixations_end(_Config) ->
    Tables = [ats:new(table, [public]) || _ <- lists:seq(1, 300)],
    Fix = fun() -> [ats:safe_fixtable(Table, true) || Table <- Tables] end,
    {Fixer, Monitor} = spawn_monitor(Fix),
    receive {'DOWN', Monitor, process, Fixer, normal} -> ok end,
    ats_test_lib:until(fun() -> [] =:= [Table || Table <- Tables, ats:info(Table, fixed)] end,
                       10000),
    [ats:delete(Table) || Table <- Tables].

%% A table that was given away ends with its new owner, and not with the old one.
watches_follow_gifts(_Config) ->
    Self = self(),
    Receiver = spawn(fun() ->
        receive {'ETS-TRANSFER', _, _, gift} -> Self ! got end,
        receive stop -> ok end
    end),
    {Giver, Monitor} = spawn_monitor(fun() ->
        Table = ats:new(table, [public]),
        ats:give_away(Table, Receiver, gift),
        exit({gave, Table})
    end),
    receive
        {'DOWN', Monitor, process, Giver, {gave, Table}} ->
            receive got -> ok end,
            ?assertEqual(Receiver, ats:info(Table, owner)),
            Ended = monitor(process, Receiver),
            Receiver ! stop,
            receive {'DOWN', Ended, process, Receiver, normal} -> ok end,
            ?assertEqual(undefined, ats:info(Table))
    end.

%% Looks again and again while writers write.
beside(Writers, Look) ->
    Stop = atomics:new(1, []),
    Pids = [spawn_monitor(fun() -> write(Writer, Stop, 1) end) || Writer <- Writers],
    Looks = look(Look, erlang:monotonic_time(millisecond) + ?MILLISECONDS, 0),
    atomics:put(Stop, 1, 1),
    [receive {'DOWN', Monitor, process, Pid, Reason} -> ?assertMatch({wrote, _}, Reason) end
     || {Pid, Monitor} <- Pids],
    ?assert(Looks > 10).

write(Writer, Stop, N) ->
    case atomics:get(Stop, 1) of
        1 -> exit({wrote, N});
        0 -> Writer(N), write(Writer, Stop, N + 1)
    end.

look(Look, Until, Looks) ->
    case erlang:monotonic_time(millisecond) > Until of
        true -> Looks;
        false -> Look(), look(Look, Until, Looks + 1)
    end.

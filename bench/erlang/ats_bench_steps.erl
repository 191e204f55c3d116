%% @private
%% @doc Measures several steps as one, and programs that follow a table, beside what programs do
%% without them.
%%
%% `transfer' moves a random amount between two random accounts if the first has as much, and
%% `update' changes an object by a function: with `ats' in the caller, with `ets' by a process that
%% owns the table, and with Mnesia in a transaction on a table of the type `ram_copies'.
%%
%% `follow' is the rate of writers of random objects until each of some followers has looked at
%% the last change: with `ats' by `follow/2', with `ets' by a message to each follower after
%% each write, and with Mnesia by `mnesia:subscribe/1' and `mnesia:dirty_write/1'.
%%
%% In a round each side has its turn, and another one begins. The result is the median over the
%% rounds of the ratio within a round.
-module(ats_bench_steps).

-behaviour(gen_server).

-export([main/1]).
-export([init/1, handle_call/3, handle_cast/2]).

-record(options, {rounds = 5 :: pos_integer(),
                  run_ms = 1500 :: pos_integer(),
                  only = all :: all | string(),
                  results = "bench/results" :: string()}).

-record(row, {name :: string(),
              kind :: transfer | update | follow,
              keys :: pos_integer(),
              type :: set | ordered_set,
              processes :: pos_integer(),
              followers = 0 :: non_neg_integer()}).

-define(SIDES, ["ats", "ets", "mnesia"]).
%% The number of objects that a writer has at least written when it looks at the clock.
-define(PIECE, 50).

%% @doc Runs the benchmark and stops the virtual machine. Arguments: `--quick', `--rounds N', `--ms
%% N' (length of a run), `--only TEXT' (rows whose title contains it), `--results FOLDER'.
-spec main([string()]) -> no_return().
main(Args) ->
    Usage = "ats_bench_steps [--quick] [--rounds N] [--ms N] [--only TEXT] [--results FOLDER]",
    ats_bench_command:run(Usage, fun() -> measure(options(Args, #options{})) =:= ok end).

options([], Options) ->
    Options;
options(["--quick" | Rest], Options) ->
    options(Rest, Options#options{rounds = 1, run_ms = 300});
options(["--rounds", N | Rest], Options) ->
    options(Rest, Options#options{rounds = ats_bench_command:positive(N)});
options(["--ms", N | Rest], Options) ->
    options(Rest, Options#options{run_ms = ats_bench_command:positive(N)});
options(["--only", Text | Rest], Options) ->
    options(Rest, Options#options{only = Text});
options(["--results", Folder | Rest], Options) ->
    options(Rest, Options#options{results = Folder});
options([What | _], _) ->
    ats_bench_command:unknown(What).

measure(#options{only = Only, results = Results} = Options) ->
    Facts = ats_bench_report:machine_facts(),
    ats_bench_report:print_facts(Facts),
    ok = application:start(mnesia),
    io:format("~n~-28s ~-11s ~6s ~1s", ["rates a second, and ratios", "type", "keys", "P"]),
    _ = [io:format(" ~9s", [Side]) || Side <- ?SIDES ++ ["over ets", "over mn."]],
    io:nl(),
    Rows = [measure_row(Row, Options)
            || #row{name = Name} = Row <- rows(), ats_bench_command:is_chosen(Name, Only)],
    io:format("~nwritten to ~ts~n", [ats_bench_report:write("steps", Rows, Facts, Results)]).

rows() ->
    [#row{name = Name, kind = Kind, keys = Keys, type = Type, processes = P}
     || {Name, Kind} <- [{"transfer", transfer}, {"update of one key", update}],
        Type <- [set, ordered_set], Keys <- [10, 10000], P <- [1, 2]]
    ++ [#row{name = lists:concat(["follow, followers: ", Followers]), kind = follow, keys = Keys,
             type = set, processes = P, followers = Followers}
        || Followers <- [1, 10], Keys <- [1000, 100000], P <- [1, 2]].

measure_row(#row{name = Name, type = Type, keys = Keys, processes = P} = Row,
            #options{rounds = Count} = Options) ->
    Rounds = [maps:from_list([{{Side, P}, run(Side, Row, Options)}
                              || Side <- ats_bench_sides:turned(Round, ?SIDES)])
              || Round <- lists:seq(1, Count)],
    Labels = #{name => Name, field => steps, keys => "Int", set => Keys, type => Type,
               loop_ns => null},
    [#{rates := Rates, ratios := Ratios} = Found] =
        ats_bench_report:workload_rows(Labels, ?SIDES, [P], Rounds),
    io:format("~-28s ~-11s ~6b ~1b", [Name, Type, Keys, P]),
    _ = [io:format(" ~9b", [round(ats_bench_report:median(maps:get(Side, Rates)))])
         || Side <- ?SIDES],
    _ = [io:format(" ~9.2f", [maps:get(Side, Ratios)]) || Side <- tl(?SIDES)],
    io:nl(),
    Found.

%%--------------------------------------------------------------------------------------------
%% Runs
%%--------------------------------------------------------------------------------------------

%% Returns the operations a second of all processes on a new table.
run(Side, Row, Options) ->
    ats_bench_run:in_process(fun() -> run_here(Side, Row, Options) end).

run_here(Side, #row{keys = Keys, processes = P, followers = N} = Row, Options) ->
    Table = new(Side, Row),
    true = lists:all(fun(Key) -> write(Side, Table, {Key, 1000000}) end, lists:seq(1, Keys)),
    Parent = self(),
    Followers = [spawn_monitor(fun() -> begin_to_follow(Side, Table, Parent) end)
                 || _ <- lists:seq(1, N)],
    _ = [receive {ready, Pid} -> ok end || {Pid, _} <- Followers],
    Pids = [Pid || {Pid, _} <- Followers],
    Start = erlang:monotonic_time(millisecond),
    Deadline = Start + Options#options.run_ms,
    Writers = [spawn_monitor(fun() ->
                                     _ = rand:seed(exsss, {Writer, Keys, Start}),
                                     exit({done, work(Side, Table, Row, Pids, Deadline, 0)})
                             end) || Writer <- lists:seq(1, P)],
    Counts = [receive {'DOWN', Monitor, process, _, {done, Count}} -> Count end
              || {_, Monitor} <- Writers],
    true = write(Side, Table, {0, last}),
    told(Side, Pids, {0, last}),
    _ = [receive {'DOWN', Monitor, process, _, seen} -> ok end || {_, Monitor} <- Followers],
    End = erlang:monotonic_time(millisecond),
    true = delete(Side, Table),
    lists:sum(Counts) * 1000 / (End - Start).

work(Side, Table, #row{kind = Kind, keys = Keys} = Row, Pids, Deadline, Count) ->
    _ = [operation(Kind, Side, Table, Keys, Pids) || _ <- lists:seq(1, ?PIECE)],
    case erlang:monotonic_time(millisecond) < Deadline of
        true -> work(Side, Table, Row, Pids, Deadline, Count + ?PIECE);
        false -> Count + ?PIECE
    end.

operation(transfer, Side, Table, Keys, _) ->
    From = rand:uniform(Keys),
    To = (From + rand:uniform(Keys - 1) - 1) rem Keys + 1,
    transfer(Side, Table, From, To, rand:uniform(100));
operation(update, Side, Table, Keys, _) ->
    update(Side, Table, rand:uniform(Keys), rand:uniform(100));
operation(follow, Side, Table, Keys, Pids) ->
    Object = {rand:uniform(Keys), rand:uniform(1000)},
    true = write(Side, Table, Object),
    told(Side, Pids, Object).

%%--------------------------------------------------------------------------------------------
%% Sides
%%--------------------------------------------------------------------------------------------

new("ats", #row{type = Type}) ->
    ats:new(benchmark, [Type, public]);
new("ets", #row{kind = follow, type = Type}) ->
    ets:new(benchmark, [Type, public, {write_concurrency, true}]);
new("ets", #row{type = Type}) ->
    {ok, Server} = gen_server:start_link(?MODULE, Type, []),
    Server;
new("mnesia", #row{type = Type}) ->
    {atomic, ok} = mnesia:create_table(benchmark, [{ram_copies, [node()]}, {type, Type}]),
    benchmark.

delete("ats", Table) -> ats:delete(Table);
delete("ets", Server) when is_pid(Server) -> gen_server:stop(Server) =:= ok;
delete("ets", Table) -> ets:delete(Table);
delete("mnesia", Table) -> mnesia:delete_table(Table) =:= {atomic, ok}.

write("ats", Table, Object) -> ats:insert(Table, Object);
write("ets", Server, Object) when is_pid(Server) -> gen_server:call(Server, {write, Object});
write("ets", Table, Object) -> ets:insert(Table, Object);
write("mnesia", Table, {Key, Value}) -> mnesia:dirty_write({Table, Key, Value}) =:= ok.

transfer("ats", Table, From, To, Amount) ->
    {_, _} = ats:transact(Table, [{match, From, {'_', '$1'}, [{'>=', '$1', Amount}]}],
                          [{update_counter, From, -Amount}, {update_counter, To, Amount}], []);
transfer("ets", Server, From, To, Amount) ->
    gen_server:call(Server, {transfer, From, To, Amount});
transfer("mnesia", Table, From, To, Amount) ->
    Transfer = fun() ->
                       [{_, _, Has}] = mnesia:read(Table, From, write),
                       [{_, _, Gets}] = mnesia:read(Table, To, write),
                       case Has >= Amount of
                           true ->
                               ok = mnesia:write({Table, From, Has - Amount}),
                               mnesia:write({Table, To, Gets + Amount});
                           false ->
                               refused
                       end
               end,
    {atomic, _} = mnesia:transaction(Transfer).

update("ats", Table, Key, Amount) ->
    [_] = ats:update(Table, Key, fun([{_, Value}]) -> [{Key, Value bxor Amount}] end);
update("ets", Server, Key, Amount) ->
    gen_server:call(Server, {update, Key, fun([{_, Value}]) -> [{Key, Value bxor Amount}] end});
update("mnesia", Table, Key, Amount) ->
    Update = fun() ->
                     [{_, _, Value}] = mnesia:read(Table, Key, write),
                     mnesia:write({Table, Key, Value bxor Amount})
             end,
    {atomic, ok} = mnesia:transaction(Update).

told("ets", Pids, Object) -> lists:foreach(fun(Pid) -> Pid ! {changed, Object} end, Pids);
told(_, _, _) -> ok.

%%--------------------------------------------------------------------------------------------
%% The process before a table of `ets'
%%--------------------------------------------------------------------------------------------

-spec init(set | ordered_set) -> {ok, ets:table()}.
init(Type) -> {ok, ets:new(benchmark, [Type])}.

-spec handle_call(term(), gen_server:from(), ets:table()) -> {reply, boolean(), ets:table()}.
handle_call({write, Object}, _, Table) ->
    {reply, ets:insert(Table, Object), Table};
handle_call({transfer, From, To, Amount}, _, Table) ->
    case ets:lookup(Table, From) of
        [{_, Has}] when Has >= Amount ->
            _ = ets:update_counter(Table, From, -Amount),
            _ = ets:update_counter(Table, To, Amount),
            {reply, true, Table};
        _ ->
            {reply, false, Table}
    end;
handle_call({update, Key, Function}, _, Table) ->
    {reply, ets:insert(Table, Function(ets:lookup(Table, Key))), Table}.

-spec handle_cast(term(), ets:table()) -> {noreply, ets:table()}.
handle_cast(_, Table) -> {noreply, Table}.

%%--------------------------------------------------------------------------------------------
%% Followers
%%--------------------------------------------------------------------------------------------

begin_to_follow(Side, Table, Parent) ->
    _ = case Side of
            "ats" -> ats:follow(Table);
            "ets" -> ok;
            "mnesia" -> mnesia:subscribe({table, Table, simple})
        end,
    Parent ! {ready, self()},
    look_at_changes().

look_at_changes() ->
    receive
        {changed, Object} ->
            look_at([Object]);
        {ats_changes, _, _, {part, Changes}} ->
            look_at(Changes);
        {ats_changes, _, _, Changes} ->
            look_at(Changes);
        {mnesia_table_event, {write, {_, Key, Value}, _}} ->
            look_at([{Key, Value}])
    end.

look_at([]) -> look_at_changes();
look_at([{insert, {0, last}} | _]) -> exit(seen);
look_at([{0, last} | _]) -> exit(seen);
look_at([_ | Rest]) -> look_at(Rest).

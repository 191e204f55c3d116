%% @private
%% @doc Transactions of mnesia on its own storage types and on those of `ats_mnesia'.
%%
%% The transactions are those of `mnesia_tpcb', an example of mnesia, which scripts/others/mnesia.sh
%% downloads and compiles: each reads and writes an account, a teller and a branch, and adds a
%% record to a history. In a round each type has its turn in a new database, pairs of types one
%% after the other, in the other order every second round. The result is the median over the rounds
%% of the ratio within a round.
-module(ats_bench_mnesia).

-export([main/1]).

%% Ours, that of mnesia, and the ratio that is wanted. A database on disk has a log, to which mnesia
%% writes the changes of all tables but those of its type `ram_copies'.
-define(PAIRS, [{{memory, ats_ram}, {memory, ram_copies}, 1.0},
                {{disk, ats_ram}, {disk, ram_copies}, none},
                {{disk, ats_disc}, {disk, disc_copies}, 0.8},
                {{disk, dats_disc}, {disk, disc_copies}, none},
                {{disk, dats_disc}, {disk, disc_only_copies}, 5.0}]).

-type subject() :: {memory | disk, Type :: atom()}.

-type config() :: #{rounds := pos_integer(), seconds := pos_integer(),
                    accounts := pos_integer(), drivers := pos_integer(),
                    results := none | file:name()}.

%% @doc `--quick' measures for some twenty seconds, `--drivers N' with several processes; `--rounds
%% N', `--seconds N' (of each type in a round), `--results FOLDER' (for a file of the figures).
-spec main([string()]) -> ok.
main(Arguments) ->
    Directory = filename:join(os:getenv("TMPDIR", "/tmp"), "ats-bench-mnesia-" ++ os:getpid()),
    Config = options(Arguments, #{rounds => 5, seconds => 10, accounts => 100000, drivers => 1,
                                  results => none}),
    try
        ok = application:load(mnesia),
        ok = logger:set_primary_config(level, error),
        ok = application:set_env(mnesia, dir, Directory),
        io:format("~b drivers, ~b accounts, ~b s, ~b rounds~n", [maps:get(Key, Config)
            || Key <- [drivers, accounts, seconds, rounds]]),
        Rounds = [round(N, Config) || N <- lists:seq(1, maps:get(rounds, Config))],
        lists:foreach(fun(Pair) -> show(Pair, Rounds) end, ?PAIRS),
        save([row(Pair, Rounds, Config) || Pair <- ?PAIRS], Config)
    after
        _ = file:del_dir_r(Directory)
    end.

-spec options([string()], config()) -> config().
options([], Config) ->
    Config;
options(["--quick" | Rest], Config) ->
    options(Rest, Config#{rounds := 1, seconds := 2, accounts := 10000});
options(["--drivers", N | Rest], Config) ->
    options(Rest, Config#{drivers := ats_bench_command:positive(N)});
options(["--rounds", N | Rest], Config) ->
    options(Rest, Config#{rounds := ats_bench_command:positive(N)});
options(["--seconds", N | Rest], Config) ->
    options(Rest, Config#{seconds := ats_bench_command:positive(N)});
options(["--results", Folder | Rest], Config) ->
    options(Rest, Config#{results := Folder}).

row({{Database, OurType} = Ours, {_, TheirType} = Theirs, _}, Rounds, #{drivers := Drivers}) ->
    #{kind => workload, field => mnesia, processes => Drivers, unit => "transactions/s",
      better => more,
      name => lists:concat(["TPC-B, database on ", Database, ": ", OurType]),
      sides => [atom_to_list(OurType), atom_to_list(TheirType)],
      rates => maps:from_list([{atom_to_list(Type), [maps:get(Subject, Round) || Round <- Rounds]}
                               || {_, Type} = Subject <- [Ours, Theirs]])}.

save(_, #{results := none}) ->
    ok;
save(Rows, #{results := Folder}) ->
    File = ats_bench_report:write("mnesia", Rows, ats_bench_report:machine_facts(), Folder),
    io:format("~nwritten to ~ts~n", [File]).

%% Transactions a second.
-spec round(pos_integer(), config()) -> #{subject() => float()}.
round(Number, Config) ->
    Pairs = [[Ours, Theirs] || {Ours, Theirs, _} <- ?PAIRS],
    Ordered = case Number rem 2 of
                  1 -> lists:append(Pairs);
                  0 -> lists:append([lists:reverse(Pair) || Pair <- Pairs])
              end,
    maps:from_list([{Subject, measure(Subject, Config)} || Subject <- lists:uniq(Ordered)]).

%% Runs the transactions in a new database. Their reports go nowhere.
-spec measure(subject(), config()) -> float().
measure({Database, Type}, #{seconds := Seconds, accounts := Accounts, drivers := Drivers}) ->
    Leader = group_leader(),
    Nowhere = spawn_link(fun ignore_output/0),
    true = group_leader(Nowhere, self()),
    ok = mnesia:delete_schema([node()]),
    ok = make_schema(Database, [{backend_types, ats_mnesia:types()}]),
    ok = mnesia:start(),
    Arguments = [{replica_type, Type}, {n_accounts_per_branch, Accounts}, {n_branches, Drivers},
                 {n_drivers_per_node, Drivers}, {stop_after, timer:seconds(Seconds)},
                 {use_running_mnesia, true}],
    {ok, {time, Transactions, _, _, Microseconds, _}} = mnesia_tpcb:start(Arguments),
    stopped = mnesia:stop(),
    true = group_leader(Leader, self()),
    unlink(Nowhere),
    exit(Nowhere, kill),
    Transactions * Drivers * 1000000 / Microseconds.

make_schema(disk, Properties) -> mnesia:create_schema([node()], Properties);
make_schema(memory, Properties) -> application:set_env(mnesia, schema, Properties).

-spec ignore_output() -> no_return().
ignore_output() ->
    receive
        {io_request, From, Reference, _} ->
            From ! {io_reply, Reference, ok},
            ignore_output();
        _ ->
            ignore_output()
    end.

-spec show({subject(), subject(), float() | none}, [#{subject() => float()}]) -> ok.
show({Ours = {Database, OurType}, Theirs = {_, TheirType}, Wanted}, Rounds) ->
    [Rate, TheirRate, Ratio] = [median(Values) || Values <- [
        [maps:get(Ours, Round) || Round <- Rounds],
        [maps:get(Theirs, Round) || Round <- Rounds],
        [maps:get(Ours, Round) / maps:get(Theirs, Round) || Round <- Rounds]]],
    io:format("database on ~-7s ~-10s ~7b tps, ~-17s ~7b tps, ratio ~.2f~s~n",
              [Database, OurType, round(Rate), TheirType, round(TheirRate), Ratio, wanted(Wanted)]).

-spec wanted(float() | none) -> iolist().
wanted(none) -> "";
wanted(Ratio) -> io_lib:format(" (wanted: ~.1f)", [Ratio]).

-spec median([float()]) -> float().
median(Numbers) -> lists:nth(length(Numbers) div 2 + 1, lists:sort(Numbers)).

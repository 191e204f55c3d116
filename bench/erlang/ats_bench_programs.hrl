%% Ten everyday programs, compiled once for each side.
%%
%% A module defines TABLES as `ats' or `ets' and includes this file, so each table call is a direct
%% call of a known function, as in a user's program. A program has clauses of three functions:
%% `types' tells the types of its tables, `fill' fills them, and `step' does one piece of work with
%% a random number of 32 bits, which several processes do at the same time.

-export([programs/0, open/2, close/1, run/4]).

-type program() :: atom().
-type tables() :: [ats_bench:table()].

-define(USERS, 2000).
-define(WORDS, {the, quick, brown, fox, jumps, over, lazy, dog, 'and', runs, away, from, every,
                hunter, in, forest}).

%% Returns the programs, in the order in which they are measured.
-spec programs() -> [program(), ...].
programs() ->
    [session_cache, rate_limiter, registry, pub_sub, labelled_counters, job_queue, memoiser,
     feature_flags, graph_walk, word_count].

types(session_cache) -> [set];
types(rate_limiter) -> [set];
types(registry) -> [set, set];
types(pub_sub) -> [bag];
types(labelled_counters) -> [set];
types(job_queue) -> [ordered_set, set];
types(memoiser) -> [set];
types(feature_flags) -> [set];
types(graph_walk) -> [bag];
types(word_count) -> [set].

%% Makes the tables of a program, with these options besides their types, and fills them.
-spec open(program(), list()) -> tables().
open(Program, Options) ->
    Tables = [?TABLES:new(Program, [Type, public | Options]) || Type <- types(Program)],
    ok = fill(Program, Tables),
    Tables.

-spec close(tables()) -> ok.
close(Tables) ->
    lists:foreach(fun(Table) -> true = ?TABLES:delete(Table) end, Tables).

%% Does `Count' steps, and returns the state of the generator.
-spec run(program(), tables(), ats_bench_run:generator(), non_neg_integer()) ->
          ats_bench_run:generator().
run(_, _, State, 0) ->
    State;
run(Program, Tables, State0, Count) ->
    State = rand:mwc59(State0),
    _ = step(Program, Tables, rand:mwc59_value32(State)),
    run(Program, Tables, State, Count - 1).

fill(session_cache, [Sessions]) ->
    each(?USERS div 2, fun(N) -> ?TABLES:insert(Sessions, session(2 * N, 0)) end);
fill(registry, [Names, Pids]) ->
    each(?USERS, fun(N) -> register_name(Names, Pids, N, self()) end);
fill(pub_sub, [Topics]) ->
    each(?USERS, fun(N) -> ?TABLES:insert(Topics, {topic(N), {subscriber, N}}) end);
fill(job_queue, [Jobs, Owners]) ->
    each(200, fun(N) -> enqueue(Jobs, Owners, N * 7919) end);
fill(feature_flags, [Flags]) ->
    each(30, fun(N) -> ?TABLES:insert(Flags, {flag(N), #{on => N rem 3 =/= 0, percent => N,
                                                         groups => [beta, staff]}})
             end);
fill(graph_walk, [Edges]) ->
    each(?USERS, fun(N) ->
                         ?TABLES:insert(Edges, [{N, (N * 3 + K) rem ?USERS} || K <- [1, 2, 5]])
                 end);
fill(_, _) ->
    ok.

each(Count, Fun) -> lists:foreach(Fun, lists:seq(1, Count)).

%% A request finds the session of its token and notes the time, or logs in. One request in 500 ends
%% the sessions that nobody has used.
step(session_cache, [Sessions], Random) ->
    Token = token(Random rem ?USERS),
    Now = Random bsr 8,
    case ?TABLES:lookup(Sessions, Token) of
        [{_, #{user := User}, _}] ->
            _ = ?TABLES:update_element(Sessions, Token, {3, Now}),
            User;
        [] ->
            true = ?TABLES:insert(Sessions, session(Random rem ?USERS, Now))
    end,
    Random rem 500 =:= 0
        andalso ?TABLES:select_delete(Sessions, [{{'_', '_', '$1'},
                                                  [{'<', '$1', Now div 8}], [true]}]);
%% A request counts in the window of its user. One request in 1000 opens a new window, which makes
%% those before it garbage.
step(rate_limiter, [Requests], Random) ->
    User = Random rem ?USERS,
    Window = Random bsr 30,
    Key = {User, Window},
    Count = ?TABLES:update_counter(Requests, Key, {2, 1, 100, 100}, {Key, 0}),
    Random rem 1000 =:= 0
        andalso ?TABLES:match_delete(Requests, {{'_', (Window + 2) rem 4}, '_'}),
    Count < 100;
%% Fifteen of 16 calls look for the process of a name. The others give the name to another one.
step(registry, [Names, Pids], Random) ->
    Number = Random rem ?USERS,
    case Random band 16#f0000000 of
        0 ->
            [{Name, Pid, _}] = take_name(Names, Number),
            true = ?TABLES:delete(Pids, {Pid, Name}),
            register_name(Names, Pids, Number, self());
        _ ->
            case ?TABLES:lookup(Names, {via, Number}) of
                [{_, Pid, _}] -> Pid;
                [] -> undefined
            end
    end;
%% A message goes to all subscribers of its topic. One call in 16 subscribes, one ends that.
step(pub_sub, [Topics], Random) ->
    Topic = topic(Random bsr 8),
    case Random rem 16 of
        0 -> ?TABLES:insert(Topics, {Topic, {subscriber, Random bsr 20}});
        1 -> ?TABLES:delete_object(Topics, {Topic, {subscriber, Random bsr 20}});
        _ -> lists:foldl(fun({_, {subscriber, N}}, Sum) -> Sum + N end, 0,
                         ?TABLES:lookup(Topics, Topic))
    end;
%% Requests are counted by method, path and status, with their time. One in 2000 calls prints all.
step(labelled_counters, [Counters], Random) ->
    Labels = [lists:nth(1 + Random rem 3, [get, put, post]), {path, (Random bsr 4) rem 20},
              lists:nth(1 + (Random bsr 9) rem 4, [200, 201, 404, 500])],
    _ = ?TABLES:update_counter(Counters, {requests, Labels}, 1, {{requests, Labels}, 0}),
    _ = ?TABLES:update_counter(Counters, {micros, Labels}, Random band 1023,
                               {{micros, Labels}, 0}),
    Random rem 2000 =:= 0
        andalso lists:sum([Value || {_, Value} <- ?TABLES:tab2list(Counters)]);
%% A job of a priority comes in, and the first one goes out.
step(job_queue, [Jobs, Owners], Random) ->
    true = enqueue(Jobs, Owners, Random),
    dequeue(Jobs, Owners);
%% The length of a Collatz sequence, from that of the next number. Some results are forgotten.
step(memoiser, [Lengths], Random) ->
    Random rem 50 =:= 0 andalso ?TABLES:delete(Lengths, Random rem 3000),
    collatz(Lengths, 1 + Random rem 3000);
%% Nearly all calls ask for a flag, one in 4000 sets one.
step(feature_flags, [Flags], Random) ->
    Flag = flag(1 + Random rem 32),
    case Random rem 4000 of
        0 -> ?TABLES:insert(Flags, {Flag, #{on => true, percent => 50, groups => []}});
        _ ->
            case ?TABLES:lookup(Flags, Flag) of
                [{_, #{on := true, percent := Percent}}] -> Random rem 100 < Percent;
                _ -> false
            end
    end;
%% The nodes that can be reached by three edges, counted in a table of its own.
step(graph_walk, [Edges], Random) ->
    Seen = ?TABLES:new(seen, [set, private]),
    walk(Edges, Seen, [Random rem ?USERS], 3),
    Size = ?TABLES:info(Seen, size),
    true = ?TABLES:delete(Seen),
    Size;
%% The words of a line are counted. One line in 500 finds those that come most often.
step(word_count, [Counts], Random) ->
    lists:foreach(fun(Word) -> ?TABLES:update_counter(Counts, Word, 1, {Word, 0}) end,
                  line(Random, 12)),
    Random rem 500 =:= 0
        andalso lists:sublist(lists:reverse(lists:keysort(2, ?TABLES:tab2list(Counts))), 10).

session(User, Now) ->
    {token(User), #{user => User, name => <<"somebody">>, roles => [reader, writer]}, Now}.

token(User) -> <<"session-", (User * 2654435761 rem 4294967296):64>>.

register_name(Names, Pids, Number, Pid) ->
    Name = {via, Number},
    ?TABLES:insert_new(Names, {Name, Pid, make_ref()})
        andalso ?TABLES:insert(Pids, {{Pid, Name}, ok}).

%% Another process may have taken the name to give it away.
take_name(Names, Number) ->
    case ?TABLES:take(Names, {via, Number}) of
        [] -> [{{via, Number}, none, none}];
        Taken -> Taken
    end.

topic(N) -> {topic, N rem 400}.

enqueue(Jobs, Owners, Random) ->
    Id = {Random rem 5, Random},
    ?TABLES:insert(Jobs, {Id, {job, Random, [<<"mail">>, Random rem 100]}})
        andalso ?TABLES:insert(Owners, {Id, waiting}).

%% Another process may take the first job before this one.
dequeue(Jobs, Owners) ->
    case ?TABLES:first(Jobs) of
        '$end_of_table' ->
            none;
        First ->
            case ?TABLES:take(Jobs, First) of
                [Job] -> true = ?TABLES:delete(Owners, First), Job;
                [] -> dequeue(Jobs, Owners)
            end
    end.

collatz(_, 1) ->
    0;
collatz(Lengths, N) ->
    case ?TABLES:lookup(Lengths, N) of
        [{_, Length}] ->
            Length;
        [] ->
            Length = 1 + collatz(Lengths, case N rem 2 of
                                              0 -> N div 2;
                                              1 -> 3 * N + 1
                                          end),
            true = ?TABLES:insert(Lengths, {N, Length}),
            Length
    end.

flag(N) -> element(1 + N rem 16, ?WORDS).

walk(_, _, _, 0) ->
    ok;
walk(Edges, Seen, Nodes, Depth) ->
    Next = [To || Node <- Nodes, {_, To} <- ?TABLES:lookup(Edges, Node),
                  ?TABLES:insert_new(Seen, {To})],
    walk(Edges, Seen, Next, Depth - 1).

line(_, 0) ->
    [];
line(Random0, Words) ->
    Random = rand:mwc59(Random0 bor 1),
    Rare = Random rem 3000,
    Word = case Random rem 4 of
               0 -> <<"word", Rare:32>>;
               _ -> atom_to_binary(element(1 + Rare rem 16, ?WORDS))
           end,
    [Word | line(Random, Words - 1)].

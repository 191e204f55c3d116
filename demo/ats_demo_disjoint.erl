%% @doc Several processes fill one ordered table, and read it.
%%
%% The keys come in a scattered order, as those of sessions, users and requests do. Until OTP 22 an
%% ordered_set had one lock for everything, so more processes made it slower ("The New Scalable ETS
%% ordered_set", blog of erlang.org). The processes never touch each other's keys; they share only
%% the table.
-module(ats_demo_disjoint).

-export([run/0]).

-define(BITS, 19).
-define(OBJECTS, (1 bsl ?BITS)).
-define(PROCESSES, [1, 2, 4]).
-define(MAX_ROUNDS, 3).
-define(TIME_LIMIT_US, 75_000_000).
-type variant() :: ets_old | ets_new | ats.
-type work() :: insert | lookup.
-type times() :: #{{work(), variant(), pos_integer()} => [Microseconds :: pos_integer()]}.

-spec run() -> ok.
run() ->
    ats_demo_terminal:heading("3. Many processes, one ordered table"),
    ats_demo_terminal:line(
      "P processes insert ~ts integers into one ordered_set, in a scattered order as keys of~n"
      "sessions or users come, and look all of them up in another. ets without options is how~n"
      "ordered_set was before OTP 22; with write_concurrency (and read_concurrency) it is how it~n"
      "is now. The three take turns; each time is the median of their runs. README names the~n"
      "workloads in which ets is faster.",
      [ats_demo_terminal:count(?OBJECTS)]),
    Total = ?MAX_ROUNDS * length(round_of_runs()),
    {{Times, Rounds}, _} =
        ats_demo_terminal:progress("inserting and looking up", Total,
                                   fun(Report) -> rounds(1, 0, #{}, Report) end),
    report(insert, "inserting", Times),
    report(lookup, "looking up", Times),
    ats_demo_terminal:line("~n  runs of each: ~b", [Rounds]).

%% A round runs each variant once with each number of processes. Another round begins only if there
%% is time for it, so that the demonstration stays short on a slow machine.
-spec rounds(pos_integer(), Spent :: non_neg_integer(), times(),
             fun((non_neg_integer()) -> ok)) -> {times(), Rounds :: pos_integer()}.
rounds(Round, Spent, Times0, Report) ->
    Done = (Round - 1) * length(round_of_runs()),
    {Time, {Times, _}} =
        timer:tc(fun() ->
                         lists:foldl(fun(Run, Acc) -> run_one(Run, Acc, Report) end,
                                     {Times0, Done}, round_of_runs())
                 end),
    case Round < ?MAX_ROUNDS andalso Spent + 2 * Time < ?TIME_LIMIT_US of
        true -> rounds(Round + 1, Spent + Time, Times, Report);
        false -> {Times, Round}
    end.

-spec round_of_runs() -> [{variant(), pos_integer()}].
round_of_runs() ->
    [{Variant, P} || P <- ?PROCESSES, Variant <- [ets_old, ets_new, ats]].

-spec run_one({variant(), pos_integer()}, {times(), non_neg_integer()},
              fun((non_neg_integer()) -> ok)) -> {times(), non_neg_integer()}.
run_one({Variant, P}, {Times, Done}, Report) ->
    Table = new(Variant),
    Insert = in_parallel(P, fun(From, To) -> insert(Variant, Table, From, To) end),
    Lookup = in_parallel(P, fun(From, To) -> lookup(Variant, Table, From, To) end),
    ?OBJECTS = size(Variant, Table),
    delete(Variant, Table),
    Report(Done + 1),
    {add(insert, Variant, P, Insert, add(lookup, Variant, P, Lookup, Times)), Done + 1}.

-spec add(work(), variant(), pos_integer(), pos_integer(), times()) -> times().
add(Work, Variant, P, Time, Times) ->
    maps:update_with({Work, Variant, P}, fun(Old) -> [Time | Old] end, [Time], Times).

%% Lets each of P processes work on its part of 0..?OBJECTS-1. The clock starts when all of them
%% are ready and stops when the last one is done.
-spec in_parallel(pos_integer(), fun((non_neg_integer(), non_neg_integer()) -> ok)) ->
          Microseconds :: pos_integer().
in_parallel(P, Work) ->
    Part = ?OBJECTS div P,
    Workers = [spawn_monitor(fun() ->
                                     receive start -> Work(I * Part, (I + 1) * Part) end
                             end) || I <- lists:seq(0, P - 1)],
    Start = erlang:monotonic_time(microsecond),
    lists:foreach(fun({Pid, _}) -> Pid ! start end, Workers),
    lists:foreach(fun({Pid, Monitor}) ->
                          receive {'DOWN', Monitor, process, Pid, normal} -> ok end
                  end, Workers),
    max(1, erlang:monotonic_time(microsecond) - Start).

%%--------------------------------------------------------------------------------------------
%% The inner loops, once for each module, so that the calls are direct ones
%%--------------------------------------------------------------------------------------------

-define(INSERT_LOOP(Name, Module),
        Name(_Table, To, To) -> ok;
        Name(Table, I, To) ->
            Module:insert(Table, {scattered(I, 16#5A2D3)}),
            Name(Table, I + 1, To)).

-define(LOOKUP_LOOP(Name, Module),
        Name(_Table, To, To) -> ok;
        Name(Table, I, To) ->
            [{_}] = Module:lookup(Table, scattered(I, 16#3C6EF)),
            Name(Table, I + 1, To)).

?INSERT_LOOP(insert_ats, ats).
?INSERT_LOOP(insert_ets, ets).
?LOOKUP_LOOP(lookup_ats, ats).
?LOOKUP_LOOP(lookup_ets, ets).

%% Returns the place of a number in an order of all keys that has no pattern; each odd factor gives
%% another order.
-spec scattered(non_neg_integer(), pos_integer()) -> non_neg_integer().
scattered(I, Factor) ->
    High = (I * Factor + Factor) band (?OBJECTS - 1),
    Mixed = High bxor (High bsr (?BITS div 2)),
    Again = Mixed * Factor band (?OBJECTS - 1),
    Again bxor (Again bsr (?BITS div 2)).

insert(ats, Table, From, To) -> insert_ats(Table, From, To);
insert(_Ets, Table, From, To) -> insert_ets(Table, From, To).

lookup(ats, Table, From, To) -> lookup_ats(Table, From, To);
lookup(_Ets, Table, From, To) -> lookup_ets(Table, From, To).

new(ets_old) -> ets:new(disjoint, [ordered_set, public]);
new(ets_new) -> ets:new(disjoint, concurrent_options());
new(ats) -> ats:new(disjoint, concurrent_options()).

concurrent_options() ->
    [ordered_set, public, {write_concurrency, true}, {read_concurrency, true}].

size(ats, Table) -> ats:info(Table, size);
size(_Ets, Table) -> ets:info(Table, size).

delete(ats, Table) -> ats:delete(Table);
delete(_Ets, Table) -> ets:delete(Table).

%%--------------------------------------------------------------------------------------------
%% Results
%%--------------------------------------------------------------------------------------------

-spec report(work(), string(), times()) -> ok.
report(Work, Label, Times) ->
    ats_demo_terminal:table([Label, "ets, one lock", "ets, write_concurrency", "ats",
                             "faster than one lock", "than write_conc."],
                            [row(Work, P, Times) || P <- ?PROCESSES]).

-spec row(work(), pos_integer(), times()) -> [string()].
row(Work, P, Times) ->
    [Old, New, Ats] = [median(maps:get({Work, Variant, P}, Times))
                       || Variant <- [ets_old, ets_new, ats]],
    [processes(P) | [ats_demo_terminal:seconds(Time) || Time <- [Old, New, Ats]]]
        ++ [ats_demo_terminal:ratio(Old / Ats), ats_demo_terminal:ratio(New / Ats)].

processes(1) -> "1 process";
processes(P) -> integer_to_list(P) ++ " processes".

-spec median([pos_integer()]) -> pos_integer().
median(Times) ->
    lists:nth((length(Times) + 1) div 2, lists:sort(Times)).

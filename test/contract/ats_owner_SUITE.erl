%% Ownership of tables: owners and heirs, giving away, and the view of others when an owner ends.
%%
%% Guarantees of `ets' are expected here without waiting: a process that has got the 'DOWN' or
%% 'EXIT' message of an owner finds its tables gone or inherited, and its fixations released. Only
%% the order of the heir's message is another.
-module(ats_owner_SUITE).

-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0]).
-export([
    down_finds_tables_gone/1,
    exit_finds_tables_gone/1,
    slow_exit/1,
    down_finds_fixations_gone/1,
    fixations_tell_the_time_of_erlang/1,
    name_is_taken_over/1,
    heir_owns_at_once/1,
    heir_is_told_before_down/1,
    heir_of_heir/1,
    heir_in_name_only/1,
    dead_owner_of_many_callers/1,
    given_away_as_in_ets/1,
    protection_counts_at_once/1,
    queries_that_lose_access/1,
    takes_that_lose_access/1,
    hot_potato/1,
    processes_are_watched_once/1,
    table_of_nobody/1,
    table_of_an_application/1,
    owner_option_is_checked/1
]).
-export([start/2, stop/1]).

-import(ats_test_lib, [parallel/1, until/2, kill/1, ask/2]).

-define(SOON_MS, 5000).
-define(APPLICATION, ats_owner_test).

suite() -> [{timetrap, {minutes, 15}}].

all() ->
    [
        down_finds_tables_gone,
        exit_finds_tables_gone,
        slow_exit,
        down_finds_fixations_gone,
        fixations_tell_the_time_of_erlang,
        name_is_taken_over,
        heir_owns_at_once,
        heir_is_told_before_down,
        heir_of_heir,
        heir_in_name_only,
        dead_owner_of_many_callers,
        given_away_as_in_ets,
        protection_counts_at_once,
        queries_that_lose_access,
        takes_that_lose_access,
        hot_potato,
        processes_are_watched_once,
        table_of_nobody,
        table_of_an_application,
        owner_option_is_checked
    ].

%% ----- the end of an owner -----

%% Each of these is, in its turn, the first call after the message.
first_calls(M, T, Name) ->
    Refused = fun(F, Args) ->
        fun() -> ?assertMatch({fail, error, badarg, _}, ats_oracle:call(M, F, Args)) end
    end,
    [
        Refused(lookup, [T, 1]),
        Refused(insert, [T, {2, b}]),
        Refused(insert, [Name, [{2, b}, {3, c}]]),
        Refused(insert_new, [T, {2, b}]),
        Refused(member, [Name, 1]),
        Refused(first, [T]),
        Refused(update_counter, [T, 1, {2, 1}]),
        Refused(delete_all_objects, [T]),
        Refused(tab2list, [T]),
        Refused(safe_fixtable, [T, true]),
        Refused(rename, [Name, ats_test_other]),
        Refused(give_away, [T, self(), gift]),
        Refused(setopts, [T, {heir, none}]),
        Refused(delete, [T]),
        fun() -> ?assertEqual(undefined, M:info(T)) end,
        fun() -> ?assertEqual(undefined, M:info(Name, size)) end,
        fun() -> ?assertEqual(undefined, M:whereis(Name)) end,
        fun() -> ?assertNot(lists:member(Name, M:all())) end,
        fun() ->
            ?assertEqual(Name, M:new(Name, [named_table])),
            M:delete(Name)
        end
    ].

%% The monitor is older than the table, so the VM sends this message before it tells the library.
down_finds_tables_gone(_) ->
    M = ats_oracle:subject(),
    for_each_first_call(fun(Check) ->
        {Owner, Mon} = spawn_monitor(fun() -> owner_of(M) end),
        {T, Name} = ask(Owner, table),
        exit(Owner, kill),
        receive
            {'DOWN', Mon, process, Owner, killed} -> ok
        end,
        Check(M, T, Name)
    end).

exit_finds_tables_gone(_) ->
    M = ats_oracle:subject(),
    process_flag(trap_exit, true),
    for_each_first_call(fun(Check) ->
        Owner = spawn_link(fun() -> owner_of(M) end),
        {T, Name} = ask(Owner, table),
        Owner ! stop,
        receive
            {'EXIT', Owner, normal} -> ok
        end,
        Check(M, T, Name)
    end).

%% The VM takes its time to tell thousands of a death, and lets others run meanwhile.
slow_exit(_) ->
    M = ats_oracle:subject(),
    Test = self(),
    Dependents = [
        spawn(fun() ->
            process_flag(trap_exit, true),
            receive
                {link_to, Pid} ->
                    link(Pid),
                    Test ! {self(), linked},
                    receive
                        {'EXIT', Pid, _} -> ok
                    end
            end
        end)
     || _ <- lists:seq(1, 20000)
    ],
    {Owner, Mon} = spawn_monitor(fun() -> owner_of(M) end),
    {T, Name} = ask(Owner, table),
    [Dependent ! {link_to, Owner} || Dependent <- Dependents],
    [
        receive
            {Dependent, linked} -> ok
        end
     || Dependent <- Dependents
    ],
    Seen = spawn(fun() -> witness(M, T) end),
    exit(Owner, kill),
    %% A process that runs from now on may see the table until it is gone, and never again after
    %% that.
    receive
        {'DOWN', Mon, process, Owner, _} -> ok
    end,
    lists:foreach(fun(Check) -> Check() end, first_calls(M, T, Name)),
    ?assertEqual(gone, ask(Seen, verdict)).

witness(M, T) ->
    case ats_oracle:call(M, lookup, [T, 1]) of
        {ok, [{1, a}]} ->
            witness(M, T);
        {fail, error, badarg, _} ->
            Again = [ats_oracle:call(M, F, [T | Args]) || _ <- lists:seq(1, 1000), {F, Args} <- [
                {lookup, [1]}, {insert, [{1, a}]}, {first, []}
            ]],
            Verdict =
                case [Result || {ok, _} = Result <- Again] of
                    [] -> gone;
                    Back -> {back, hd(Back)}
                end,
            receive
                {From, Ref, verdict} -> From ! {Ref, Verdict}
            end
    end.

for_each_first_call(Test) ->
    Number = length(first_calls(ats_oracle:subject(), none, none)),
    [
        Test(fun(M, T, Name) -> (lists:nth(N, first_calls(M, T, Name)))() end)
     || _ <- lists:seq(1, 20), N <- lists:seq(1, Number)
    ].

owner_of(M) ->
    T = M:new(ats_test_mortal, [named_table, public]),
    M:insert(T, {1, a}),
    server({M:whereis(T), T}).

down_finds_fixations_gone(_) ->
    M = ats_oracle:subject(),
    T = M:new(fixed, [public]),
    [
        begin
            {Fixer, Mon} = spawn_monitor(fun() ->
                M:safe_fixtable(T, true),
                M:safe_fixtable(T, true),
                server(ready)
            end),
            ready = ask(Fixer, state),
            ?assertMatch({_, [{Fixer, 2}]}, M:info(T, safe_fixed)),
            exit(Fixer, kill),
            receive
                {'DOWN', Mon, process, Fixer, _} -> ok
            end,
            ?assertEqual({false, false}, {M:info(T, Item), M:info(T, fixed)})
        end
     || _ <- lists:seq(1, 100), Item <- [safe_fixed, safe_fixed_monotonic_time]
    ],
    M:delete(T).

%% The clock of the machine may be set, and differs from that of Erlang then for hours.
fixations_tell_the_time_of_erlang(_) ->
    M = ats_oracle:subject(),
    T = M:new(fixed, [public]),
    [
        begin
            Before = Clock(),
            true = M:safe_fixtable(T, true),
            After = Clock(),
            {Time, [{_, 1}]} = M:info(T, Item),
            true = M:safe_fixtable(T, false),
            ?assert(Before =< Time andalso Time =< After, {Before, Time, After})
        end
     || _ <- lists:seq(1, 100),
        {Item, Clock} <- [
            {safe_fixed, fun erlang:timestamp/0},
            {safe_fixed_monotonic_time, fun erlang:monotonic_time/0}
        ]
    ],
    M:delete(T).

%% The steps of a supervisor: the next owner of a name comes with the message that the last one is
%% gone.
name_is_taken_over(_) ->
    M = ats_oracle:subject(),
    process_flag(trap_exit, true),
    Start = fun(N) ->
        spawn_link(fun() ->
            ats_test_dynasty = M:new(ats_test_dynasty, [named_table]),
            M:insert(ats_test_dynasty, {number, N}),
            server(N)
        end)
    end,
    Last = lists:foldl(
        fun(N, Owner) ->
            N1 = ask(Owner, state),
            ?assertEqual(N - 1, N1),
            ?assertEqual([{number, N1}], M:lookup(ats_test_dynasty, number)),
            exit(Owner, kill),
            receive
                {'EXIT', Owner, killed} -> Start(N)
            end
        end,
        Start(0),
        lists:seq(1, 500)
    ),
    kill(Last).

%% ----- heirs -----

%% The first operation of the heir finds that the table is its own; the message is there afterwards.
heir_owns_at_once(_) ->
    M = ats_oracle:subject(),
    First = [
        fun(T) -> ?assert(M:insert(T, {2, b})) end,
        fun(T) -> ?assert(M:insert(T, [{2, b}, {3, c}])) end,
        fun(T) -> ?assertEqual([{1, a}], M:lookup(T, 1)) end,
        fun(T) -> ?assertEqual(self(), M:info(T, owner)) end,
        fun(T) -> ?assert(M:setopts(T, {protection, public})) end,
        fun(T) -> ?assert(M:safe_fixtable(T, true)) end
    ],
    [
        begin
            {Owner, Mon} = spawn_monitor(heir_maker(M, self(), [Protection | Named])),
            T = ask(Owner, state),
            exit(Owner, kill),
            receive
                {'DOWN', Mon, process, Owner, _} -> ok
            end,
            Check(T),
            receive
                {'ETS-TRANSFER', T, Owner, {gift, <<"box">>}} -> ok
            after 0 -> ct:fail(no_message)
            end,
            receive
                {'ETS-TRANSFER', _, _, _} -> ct:fail(message_twice)
            after 0 -> M:delete(T)
            end
        end
     || _ <- lists:seq(1, 20),
        Protection <- [protected, private, public],
        Named <- [[], [named_table]],
        Check <- First
    ].

heir_maker(M, Heir, Options) ->
    fun() ->
        T = M:new(ats_test_estate, [{heir, Heir, {gift, <<"box">>}} | Options]),
        M:insert(T, {1, a}),
        server(T)
    end.

%% The VM tells in the order in which it was asked, so a monitor that is younger than the
%% table comes second. In `ets' all do, and links.
heir_is_told_before_down(_) ->
    M = ats_oracle:subject(),
    [
        begin
            Owner = spawn(heir_maker(M, self(), [])),
            T = ask(Owner, state),
            Mon = erlang:monitor(process, Owner),
            exit(Owner, kill),
            First =
                receive
                    {'DOWN', Mon, process, Owner, _} -> down;
                    {'ETS-TRANSFER', T, Owner, _} -> transfer
                end,
            ?assertEqual(transfer, First),
            receive
                {'DOWN', Mon, process, Owner, _} -> M:delete(T)
            end
        end
     || _ <- lists:seq(1, 300)
    ].

%% A table goes from process to process. Each heir names the next one. The last one names no heir,
%% and the table ends with it.
heir_of_heir(_) ->
    M = ats_oracle:subject(),
    Last = spawn(fun() -> server(last) end),
    Owners = lists:foldl(
        fun(_, [Next | _] = Later) ->
            [spawn(fun() -> heir_that_names(M, Next) end) | Later]
        end,
        [Last],
        lists:seq(1, 20)
    ),
    [First | Rest] = Owners,
    T = ask(First, make),
    lists:foldl(
        fun(Next, Owner) ->
            ?assertEqual(Owner, M:info(T, owner)),
            kill(Owner),
            ?assertEqual(Next, M:info(T, owner)),
            %% An heir that has not yet received the message has not named the next heir.
            Next =:= Last orelse (T = ask(Next, state)),
            Next
        end,
        First,
        Rest
    ),
    kill(Last),
    ?assertEqual(undefined, M:info(T)).

heir_that_names(M, Next) ->
    receive
        {From, Ref, make} ->
            T = M:new(estate, [{heir, Next, estate}]),
            From ! {Ref, T},
            server(T);
        {'ETS-TRANSFER', T, _, estate} ->
            M:setopts(T, {heir, Next, estate}),
            server(T)
    end.

%% A dead process, the owner itself, and a process that is no longer the heir inherit nothing.
heir_in_name_only(_) ->
    M = ats_oracle:subject(),
    Dead = spawn(fun() -> ok end),
    kill(Dead),
    Mortal = spawn(fun() -> server(mortal) end),
    Cases = [
        {none, fun(T) -> M:setopts(T, {heir, Dead, x}) end},
        {self, fun(T) -> M:setopts(T, [{heir, self(), x}]) end},
        {none, fun(T) -> M:setopts(T, {heir, none}) end},
        {Mortal, fun(T) ->
            M:setopts(T, {heir, Mortal, x}),
            kill(Mortal)
        end}
    ],
    Test = self(),
    [
        begin
            Owner = spawn(fun() ->
                T = M:new(estate, [{heir, Test, x}]),
                Change(T),
                server(T)
            end),
            T = ask(Owner, state),
            Shown =
                case Heir of
                    self -> Owner;
                    _ -> Heir
                end,
            %% An heir that died later is still shown.
            ?assertEqual(Shown, M:info(T, heir)),
            kill(Owner),
            ?assertEqual(undefined, M:info(T))
        end
     || {Heir, Change} <- Cases
    ],
    receive
        {'ETS-TRANSFER', _, _, _} = Message -> ct:fail(Message)
    after 100 -> ok
    end.

%% Many find the owner dead at the same time, some of them on schedulers for long work; the
%% heir is told once.
dead_owner_of_many_callers(_) ->
    M = ats_oracle:subject(),
    Long = [{K, x} || K <- lists:seq(1, 2000)],
    [
        begin
            {Owner, Mon} = spawn_monitor(heir_maker(M, self(), [public])),
            T = ask(Owner, state),
            Callers = [
                fun() -> until(fun() -> M:info(T, owner) =/= Owner end, ?SOON_MS) end,
                fun() -> [M:insert(T, Long) || _ <- [1, 2, 3]] end,
                fun() -> [[_] = M:lookup(T, 1) || _ <- lists:seq(1, 2000)] end
            ],
            Pids = [spawn_monitor(Caller) || Caller <- Callers],
            exit(Owner, kill),
            [
                receive
                    {'DOWN', M1, process, _, Why} -> ?assertEqual(normal, Why)
                end
             || {_, M1} <- Pids
            ],
            receive
                {'DOWN', Mon, process, Owner, _} -> ok
            end,
            ?assertEqual(self(), M:info(T, owner)),
            ?assertEqual([{'ETS-TRANSFER', T, Owner, {gift, <<"box">>}}], messages()),
            M:delete(T)
        end
     || _ <- lists:seq(1, 50)
    ].

messages() ->
    receive
        Message -> [Message | messages()]
    after 0 -> []
    end.

%% ----- giving away -----

%% The message, the access rights of each process afterwards, and the fixations of the old owner are
%% the same as in `ets'.
given_away_as_in_ets(_) ->
    Subject = ats_oracle:subject(),
    Options = [
        Named ++ [Type, Protection, {heir, self(), {bequest, 1.0}}]
     || Named <- [[], [named_table]],
        Type <- [set, ordered_set, bag],
        Protection <- [public, protected, private]
    ],
    [?assertEqual(give(ets, O), give(Subject, O)) || O <- Options].

give(M, Options) ->
    Next = spawn(fun() -> server(owns_nothing) end),
    Stranger = spawn(fun() -> server(stranger) end),
    T = M:new(ats_test_gift, Options),
    M:insert(T, {k, 1}),
    M:safe_fixtable(T, true),
    Self = self(),
    Roles = #{Self => giver, Next => next, Stranger => stranger},
    Role = fun(Pid) -> maps:get(Pid, Roles, Pid) end,
    Try = fun(F, Args) ->
        case ats_oracle:call(M, F, Args) of
            {fail, C, R, _} -> {C, R};
            {ok, Result} -> Result
        end
    end,
    Rights = fun() ->
        [
            {Role(Pid), ask(Pid, fun() -> Try(F, [T | Args]) end)}
         || Pid <- [Next, Stranger],
            {F, Args} <- [
                {lookup, [k]},
                {insert, [{k, 1}]},
                {setopts, [{heir, none}]},
                {give_away, [Stranger, again]}
            ],
            not (Pid =:= Next andalso (F =:= setopts orelse F =:= give_away))
        ]
    end,
    Before = Rights(),
    Given = Try(give_away, [T, Next, {my, "gift"}]),
    {'ETS-TRANSFER', Which, From, Gift} = ask(Next, state),
    Seen = [
        Before,
        Given,
        {Which =:= T, Role(From), Gift},
        Role(M:info(T, owner)),
        Role(M:info(T, heir)),
        element(2, M:info(T, safe_fixed)) =:= [{Self, 1}],
        Rights(),
        [{F, Try(F, [T | Args])} || {F, Args} <- [
            {lookup, [k]}, {insert, [{k, 1}]}, {setopts, [{heir, none}]}, {give_away, [Self, x]}
        ]]
    ],
    kill(Next),
    Inherited =
        receive
            {'ETS-TRANSFER', T, Next, {bequest, 1.0}} -> Role(M:info(T, owner))
        after ?SOON_MS -> nothing
        end,
    M:delete(T),
    kill(Stranger),
    Seen ++ [Inherited].

%% A reader in full swing is refused from the moment the table is private, and a writer likewise.
protection_counts_at_once(_) ->
    M = ats_oracle:subject(),
    T = M:new(changing, [public, ordered_set]),
    M:insert(T, {k, 0}),
    Calls = [{lookup, [T, k]}, {insert, [T, {k, 1}]}, {update_counter, [T, k, {2, 1}]}],
    Others = [
        spawn(fun() -> until_refused(M, F, Args), server({F, Args}) end)
     || {F, Args} <- Calls
    ],
    timer:sleep(20),
    M:setopts(T, {protection, private}),
    Refused = fun(Expected) ->
        [
            case ask(Pid, fun() -> ats_oracle:call(M, F, Args) end) of
                {ok, _} -> F;
                {fail, error, badarg, _} -> no
            end
         || {Pid, {F, Args}} <- lists:zip(Others, Calls)
        ] =:= Expected
    end,
    ?assert(Refused([no, no, no])),
    M:setopts(T, {protection, protected}),
    ?assert(Refused([lookup, no, no])),
    M:setopts(T, [{protection, public}]),
    ?assert(Refused([lookup, insert, update_counter])),
    ?assertEqual(public, M:info(T, protection)),
    [kill(Pid) || Pid <- Others],
    M:delete(T).

until_refused(M, F, Args) ->
    case ats_oracle:call(M, F, Args) of
        {ok, _} -> until_refused(M, F, Args);
        {fail, error, badarg, _} -> ok
    end.

%% A query that has begun may not go on when the table becomes private: neither in the process that
%% began it nor in another one, in no form of the continuation.
queries_that_lose_access(_) ->
    Subject = ats_oracle:subject(),
    [
        ?assertEqual(
            {Type, Named, [{How, refused} || _ <- [ets, subject]]},
            {Type, Named, [{How, go_on(M, [Type | Named], How)} || M <- [ets, Subject]]}
        )
     || Type <- [set, ordered_set, bag, duplicate_bag],
        Named <- [[], [named_table]],
        How <- [give_away, hand_over, setopts]
    ].

go_on(M, Options, How) ->
    Other = spawn(fun() -> server(owns_nothing) end),
    Protection = case How of setopts -> protected; _ -> private end,
    T = M:new(ats_test_private, [Protection | Options]),
    true = M:insert(T, [{N, N} || N <- lists:seq(1, 2000)]),
    Spec = [{'$1', [], ['$1']}],
    Begun = [
        {select, M:select(T, Spec, 10), Spec},
        {select_reverse, M:select_reverse(T, Spec, 10), Spec},
        {match, M:match(T, '$1', 10), [{'$1', [], ['$$']}]},
        {match_object, M:match_object(T, '$1', 10), [{'$1', [], ['$_']}]}
    ],
    Calls = [
        fun() -> M:F(M:repair_continuation(Form(Continuation), Repaired)) end
     || {F, {_, Continuation}, Repaired} <- Begun,
        Form <- [fun(C) -> C end, fun(C) -> binary_to_term(term_to_binary(C)) end]
    ],
    Go = fun() -> lists:usort([answer(Call) || Call <- Calls]) end,
    Answers =
        case How of
            hand_over ->
                ask(Other, Go);
            setopts ->
                [{10, more}] = ask(Other, Go),
                true = M:setopts(T, {protection, private}),
                ask(Other, Go);
            give_away ->
                [{10, more}] = Go(),
                %% A fold ends in the middle.
                Fold = fun(_, given) -> given; (_, _) -> M:give_away(T, Other, gift), given end,
                refused = answer(fun() -> M:foldl(Fold, begun, T) end),
                Go()
        end,
    kill(Other),
    How =:= give_away orelse M:delete(T),
    case Answers of
        [Answer] -> Answer;
        _ -> Answers
    end.

answer(Call) ->
    try Call() of
        {Results, _Continuation} -> {length(Results), more};
        Result -> Result
    catch
        error:badarg -> refused
    end.

%% Objects that another process has begun to take are not lost when the table becomes private.
takes_that_lose_access(_) ->
    M = ats_oracle:subject(),
    Objects = [{N, N} || N <- lists:seq(1, 15000)],
    Take = fun(T) ->
        case ats_oracle:call(M, select_take, [T, [{{'$1', '_'}, [{'>', '$1', 0}], [true]}]]) of
            {ok, Taken} -> Taken;
            {fail, error, badarg, _} -> []
        end
    end,
    [
        begin
            T = M:new(taken, [public, Type]),
            true = M:insert(T, Objects),
            Test = self(),
            {Pid, Ref} = spawn_monitor(fun() -> Test ! {self(), begun}, exit(Take(T)) end),
            receive {Pid, begun} -> ok end,
            timer:sleep(Ms),
            true = M:setopts(T, {protection, private}),
            Taken = receive {'DOWN', Ref, process, Pid, Result} -> Result end,
            ?assertEqual(Objects, lists:sort(Taken ++ M:tab2list(T))),
            M:delete(T)
        end
     || Type <- [set, ordered_set, bag], Ms <- [0, 1, 3]
    ],
    ok.

%% Processes pass a table on and die at any moment. Exactly one of them owns the table at any time,
%% or the table is gone together with its last owner.
hot_potato(_) ->
    M = ats_oracle:subject(),
    [
        begin
            Test = self(),
            Players = [spawn_monitor(fun() -> play(M, Test) end) || _ <- lists:seq(1, 4)],
            Pids = [Pid || {Pid, _} <- Players],
            [Pid ! {players, Pids} || Pid <- Pids],
            T = M:new(potato, [public]),
            M:insert(T, {holders, 0}),
            M:give_away(T, hd(Pids), go),
            timer:sleep(rand:uniform(5)),
            Order = [Pid || {_, Pid} <- lists:sort([{rand:uniform(), Pid} || Pid <- Pids])],
            Left = [
                begin
                    kill(Pid),
                    case M:info(T, owner) of
                        undefined -> gone;
                        Owner -> ?assertNotEqual(Pid, Owner)
                    end
                end
             || Pid <- Order
            ],
            ?assertEqual(gone, lists:last(Left)),
            [
                receive
                    {'DOWN', Mon, process, Pid, Reason} -> ?assertEqual(killed, Reason)
                end
             || {Pid, Mon} <- Players
            ]
        end
     || _ <- lists:seq(1, 200)
    ].

play(M, Test) ->
    receive
        {players, Pids} -> play(M, Test, Pids)
    end.

play(M, Test, Pids) ->
    receive
        {'ETS-TRANSFER', T, _, go} ->
            Owner = M:info(T, owner),
            Owner =:= self() orelse exit({not_mine, Owner}),
            pass_on(M, T, Pids -- [self()]),
            play(M, Test, Pids)
    end.

%% Some are dead already.
pass_on(_, _, []) ->
    receive
        never -> ok
    end;
pass_on(M, T, Others) ->
    To = lists:nth(rand:uniform(length(Others)), Others),
    case ats_oracle:call(M, give_away, [T, To, go]) of
        {ok, true} -> ok;
        {fail, error, badarg, _} -> pass_on(M, T, Others -- [To])
    end.

%% Repeated fixations and repeated gifts of a table leave nothing behind.
processes_are_watched_once(_) ->
    M = ats_oracle:subject(),
    T = M:new(t, [public]),
    Other = spawn(fun() -> return_to_sender(M) end),
    lists:foreach(
        fun(_) ->
            M:safe_fixtable(T, true),
            M:safe_fixtable(T, false),
            M:tab2list(T),
            M:setopts(T, {heir, Other, x}),
            M:give_away(T, Other, back),
            receive
                {'ETS-TRANSFER', T, Other, back} -> ok
            end
        end,
        lists:seq(1, 1000)
    ),
    [
        begin
            {monitored_by, By} = process_info(Pid, monitored_by),
            ?assert(length(By) < 50)
        end
     || Pid <- [self(), Other]
    ],
    kill(Other),
    M:delete(T).

return_to_sender(M) ->
    receive
        {'ETS-TRANSFER', T, From, Gift} ->
            M:give_away(T, From, Gift),
            return_to_sender(M)
    end.

%% ----- tables that outlive processes -----

table_of_nobody(_) ->
    only_ats(fun(M) ->
        [
            begin
                Maker = spawn(fun() ->
                    T = M:new(ats_test_public, [public, {owner, none} | Named]),
                    M:insert(T, {1, a}),
                    server(T)
                end),
                T = ask(Maker, state),
                kill(Maker),
                ?assertEqual(none, M:info(T, owner)),
                ?assertEqual([{1, a}], M:lookup(T, 1)),
                ?assert(M:insert(T, {2, b})),
                %% Any process may take it. From then on it is a table like others.
                ?assert(M:give_away(T, self(), mine)),
                receive
                    {'ETS-TRANSFER', T, From, mine} -> ?assertEqual(self(), From)
                end,
                ?assert(M:setopts(T, {protection, private})),
                Other = spawn(fun() -> server(other) end),
                Try = fun(F, Args) -> ask(Other, fun() -> ats_oracle:call(M, F, Args) end) end,
                ?assertMatch({fail, error, badarg, _}, Try(lookup, [T, 1])),
                %% A private table cannot be left without an owner, and a table without an owner
                %% cannot be made private.
                ?assertError(badarg, M:setopts(T, {owner, none})),
                ?assertEqual(self(), M:info(T, owner)),
                ?assert(M:setopts(T, [{owner, none}, {protection, public}])),
                ?assertEqual(none, M:info(T, owner)),
                ?assertError(badarg, M:setopts(T, {protection, protected})),
                ?assertEqual(public, M:info(T, protection)),
                ?assertEqual({ok, [{2, b}]}, Try(lookup, [T, 2])),
                ?assertEqual({ok, true}, Try(delete, [T])),
                ?assertEqual(undefined, M:info(T)),
                kill(Other)
            end
         || Named <- [[], [named_table]]
        ]
    end).

table_of_an_application(_) ->
    only_ats(fun(M) ->
        Specification =
            {application, ?APPLICATION, [
                {description, "owns tables"},
                {vsn, "1"},
                {modules, [?MODULE]},
                {registered, []},
                {applications, [kernel, stdlib]},
                {mod, {?MODULE, []}}
            ]},
        ok = application:load(Specification),
        try
            [in_application(M, Heir) || Heir <- [none, self()]]
        after
            application:stop(?APPLICATION),
            ok = application:unload(?APPLICATION)
        end
    end).

in_application(M, Heir) ->
    ok = application:start(?APPLICATION),
    Top = whereis(?APPLICATION),
    {group_leader, Master} = process_info(Top, group_leader),
    Make = fun() ->
        {Pid, Mon} = spawn_monitor(fun() ->
            Options = [{heir, Heir, estate} || Heir =/= none],
            Common = [named_table, public, {owner, application}],
            exit({made, M:new(ats_test_of_app, Common ++ Options)})
        end),
        receive
            {'DOWN', Mon, process, Pid, {made, T}} -> T
        end
    end,
    T = ask(Top, Make),
    %% The maker of the table is gone by now.
    ?assertEqual(Master, M:info(T, owner)),
    ?assert(M:insert(T, {1, a})),
    %% Processes of the application act for it, others do not.
    ?assertMatch(
        {fail, error, badarg, [{M, give_away, _, _} | _]},
        ats_oracle:call(M, give_away, [T, self(), x])
    ),
    ?assertError(badarg, M:setopts(T, {heir, none})),
    ?assertEqual({error, badarg}, ask(Top, fun() -> M:setopts(T, {protection, private}) end)),
    ?assertEqual(true, ask(Top, fun() -> M:give_away(T, self(), to_process) end)),
    ?assertEqual(Top, M:info(T, owner)),
    ?assertEqual(true, ask(Top, fun() -> M:setopts(T, {owner, application}) end)),
    ?assertEqual(Master, M:info(T, owner)),
    ?assertEqual([{1, a}], M:lookup(T, 1)),
    Mon = erlang:monitor(process, Master),
    ok = application:stop(?APPLICATION),
    receive
        {'DOWN', Mon, process, Master, _} -> ok
    end,
    case Heir of
        none ->
            ?assertEqual(undefined, M:info(T));
        _ ->
            ?assertEqual(self(), M:info(T, owner)),
            receive
                {'ETS-TRANSFER', T, Master, estate} -> M:delete(T)
            after 0 -> ct:fail(not_inherited)
            end
    end.

%% The application of the test.
start(_, _) ->
    Self = self(),
    Pid = spawn_link(fun() ->
        register(?APPLICATION, self()),
        Self ! {self(), registered},
        server(top)
    end),
    receive
        {Pid, registered} -> {ok, Pid}
    end.

stop(_) ->
    ok.

owner_option_is_checked(_) ->
    only_ats(fun(M) ->
        Wrong = [
            [{owner, none}],
            [{owner, none}, protected],
            [private, {owner, none}],
            [public, {owner, nobody}],
            [public, {owner, self()}],
            [public, {owner}],
            %% The test process is not part of an application.
            [public, {owner, application}]
        ],
        Before = M:all(),
        [
            begin
                {fail, error, badarg, Stack} = ats_oracle:call(M, new, [t, Options]),
                ?assertMatch(#{2 := <<"invalid options">>}, ats_oracle:blame(Stack))
            end
         || Options <- Wrong
        ],
        ?assertEqual(lists:sort(Before), lists:sort(M:all())),
        T = M:new(t, [public]),
        ?assertError(badarg, M:setopts(T, {owner, application})),
        ?assertError(badarg, M:setopts(T, [{owner, none}, {owner, none}])),
        ?assertError(badarg, M:setopts(T, [{owner, none}, {protection, protected}])),
        ?assertEqual(self(), M:info(T, owner)),
        M:delete(T)
    end).

only_ats(Test) ->
    case ats_oracle:subject() of
        ats -> Test(ats);
        _ -> {skip, "ets has no such option"}
    end.

%% ----- help -----

%% Answers questions and runs functions for a test.
server(State) ->
    receive
        {From, Ref, Fun} when is_function(Fun) ->
            From ! {Ref, outcome(Fun)},
            server(State);
        {From, Ref, _} ->
            From ! {Ref, State},
            server(State);
        {'ETS-TRANSFER', _, _, _} = Transfer ->
            server(Transfer);
        stop ->
            ok
    end.

outcome(Fun) ->
    try
        Fun()
    catch
        Class:Reason -> {Class, Reason}
    end.

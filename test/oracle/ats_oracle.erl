%% Runs programs of table commands on two sides, `ets' and the module under test, and compares
%% every answer.
%%
%% A program is plain data (see `program/0'), so it can be shrunk, printed and replayed. Each
%% command names the process that runs it; process `a' owns the first tables, `b' and `c' are
%% strangers to their access rights. Both sides of a command run in the same process, one after the
%% other, on their own table, with the very same terms as arguments.
%%
%% Compared are: results exactly (`=:=', and the sign of zeros); exceptions by class, reason, and
%% which arguments the error description blames; when a process has died, and after the program, the
%% owner of each table; and after the program the whole content of every table, and the messages
%% about tables that processes got. Where `ets' leaves something open, only the specified part is
%% compared: the slot order of hash tables is any order, the same for each pair of opposite
%% directions. Functions that `ets' lacks are composed of those that it has, see
%% `ats_beyond_reference'; the explanations of their errors are compared in full.
%%
%% The environment variable ATS_SUBJECT names the module under test (`ats' by default; `ets'
%% compares `ets' with itself, which tests the oracle).
-module(ats_oracle).

-export([subject/0, run/1, run_strict/1, replay/1, source/1]).
-export([call/3, blame/1, without_hints/1, same/2, compare_contents/3, compare_failures/3]).

-export_type([program/0, command/0]).

-type actor() :: a | b | c.
-type arg() ::
    {tab, pos_integer()}
    | {tid, pos_integer()}
    | {name, pos_integer()}
    | {raw, term()}
    | {recipe, ats_term_gen:recipe()}
    | {recipes, [ats_term_gen:recipe()]}
    | {operand, ats_beyond_gen:operand()}
    | {actor, actor()}
    | {options, [term()]}
    | {option, term()}
    | {collector, reverse | append}.
-type command() ::
    {actor(), Function :: atom(), [arg()]}
    | {actor(), {new, Table :: pos_integer()}, [arg()]}
    | {kill, actor()}.
-type program() :: [command()].

-record(table, {
    ids :: {term(), term()},
    tids :: {term(), term()},
    type :: atom(),
    keypos :: pos_integer(),
    owner :: actor(),
    %% A fixed bag may revive a deleted object at its old position, with the zeros it had: from then
    %% on the order of the objects of one key is not compared, and neither are signs of zeros.
    was_fixed = false :: boolean()
}).

-record(run, {
    actors :: #{actor() => pid()},
    is_strict = false :: boolean(),
    tables = #{} :: #{pos_integer() | {old, term()} => #table{}}
}).

-define(DIRECTED(F),
    (F =:= first orelse F =:= last orelse F =:= next orelse F =:= prev)
).
-define(DIRECTED_LOOKUP(F),
    (F =:= first_lookup orelse F =:= last_lookup orelse
        F =:= next_lookup orelse F =:= prev_lookup)
).
-define(SELECTS(F),
    (F =:= select orelse F =:= select_reverse orelse F =:= match orelse F =:= match_object)
).
-define(WHOLE(F), (F =:= tab2list orelse F =:= foldl orelse F =:= foldr)).
-define(TAKES_END(F), (F =:= take_first orelse F =:= take_last)).
-define(IN_CHUNKS(F), (F =:= range orelse F =:= prefix)).
-define(TAKES_MANY(F), (F =:= select_take orelse F =:= take_all_objects)).
%% Set in the process that judges: an actor, in a strict run.
-define(STRICT, {?MODULE, strict}).
%% Returns the messages to an actor about tables that are its own now.
-define(TRANSFERS, {?MODULE, transfers}).

%% ----- running programs -----

-spec subject() -> module().
subject() ->
    case os:getenv("ATS_SUBJECT", "ats") of
        "ets" -> ats_reference;
        Name -> list_to_atom(Name)
    end.

%% Runs a program; `ok' or a description of the first difference.
-spec run(program()) -> ok | {difference, map()}.
run(Program) ->
    run_with(Program, false).

%% The same, for a program in which at most one argument of each call is wrong.
-spec run_strict(program()) -> ok | {difference, map()}.
run_strict(Program) ->
    run_with(Program, true).

run_with(Program, IsStrict) ->
    ok = ats_term_gen:prepare(),
    Actors = maps:from_list([{Actor, start_actor(IsStrict)} || Actor <- [a, b, c]]),
    Run = #run{actors = Actors, is_strict = IsStrict},
    try
        run(Program, 1, Run)
    catch
        Class:Reason:Stack -> {difference, #{exception => {Class, Reason, Stack}}}
    end.

run([], _, Run) ->
    Verdict = compare_all(Run),
    case {Verdict, stop(Run)} of
        {ok, []} -> ok;
        {ok, Left} -> {difference, #{outlives_its_process => Left}};
        _ -> Verdict
    end;
run([Command | Rest], N, Run0) ->
    case step(Command, Run0) of
        {ok, Run} ->
            run(Rest, N + 1, Run);
        {difference, What} ->
            stop(Run0),
            {difference, What#{step => N, command => Command}}
    end.

%% Prints the commands of a program and their results, for use in the shell.
-spec replay(program()) -> ok | {difference, map()}.
replay(Program) ->
    io:format("~ts", [source(Program)]),
    run(Program).

step({kill, Actor}, Run) ->
    kill_actor(Actor, Run);
step({Actor, Function, Args}, Run) ->
    F =
        case Function of
            {new, _} -> new;
            _ -> Function
        end,
    RefArgs = [realize(A, 1, Run) || A <- Args],
    SubArgs = [realize(A, 2, Run) || A <- Args],
    Both = fun() ->
        {Ref, Sub} = call_both(F, Args, RefArgs, SubArgs, Run),
        judge(F, Args, SubArgs, Ref, Sub, Run)
    end,
    case on_actor(Actor, Both, Run) of
        {ok, Ref, Sub} -> {ok, note(Function, Args, Actor, Ref, Sub, Run)};
        {difference, _} = Difference -> Difference
    end.

%% The subject chooses the object that comes out of a table without order, and the reference takes
%% the same.
call_both(F, [Tab], RefArgs, SubArgs, Run) when ?TAKES_END(F) ->
    Which =
        case find_table(Tab, Run) of
            #table{was_fixed = true} -> any;
            _ -> oldest
        end,
    Sub = call(subject(), F, SubArgs),
    {call(ats_reference, F, RefArgs ++ [Sub, Which]), Sub};
call_both(F, _, RefArgs, SubArgs, _) ->
    Ref = call(ats_reference, F, RefArgs),
    {Ref, call(subject(), F, SubArgs)}.

realize({tab, I}, Side, #run{tables = Tables}) ->
    case Tables of
        #{I := #table{ids = Ids}} -> element(Side, Ids);
        _ -> never_made
    end;
realize({tid, I}, Side, #run{tables = Tables}) ->
    case Tables of
        #{I := #table{tids = Tids}} -> element(Side, Tids);
        _ -> never_made
    end;
realize({name, N}, Side, _) ->
    name(N, Side);
realize({raw, Term}, _, _) ->
    Term;
realize({recipe, Recipe}, _, _) ->
    ats_term_gen:realize(Recipe);
realize({recipes, Recipes}, _, _) ->
    [ats_term_gen:realize(R) || R <- Recipes];
realize({operand, Operand}, _, _) ->
    ats_beyond_gen:cook(Operand);
realize({actor, Actor}, _, #run{actors = Actors}) ->
    maps:get(Actor, Actors);
realize({options, Options}, _, #run{actors = Actors}) ->
    [realize_option(O, Actors) || O <- Options];
realize({option, Option}, _, #run{actors = Actors}) ->
    realize_option(Option, Actors);
realize({collector, reverse}, _, _) ->
    fun(Object, Acc) -> [Object | Acc] end;
realize({collector, append}, _, _) ->
    fun(Object, Acc) -> Acc ++ [Object] end.

realize_option({heir, Actor, Data}, Actors) when is_map_key(Actor, Actors) ->
    {heir, maps:get(Actor, Actors), Data};
realize_option(Option, _) ->
    Option.

%% The two sides use different names, so that `ets' can be compared with itself.
name(N, 1) -> list_to_atom("oracle_ref_" ++ integer_to_list(N));
name(N, 2) -> list_to_atom("oracle_sub_" ++ integer_to_list(N)).

%% Remembers facts about the tables that later commands need.
note({new, I}, _, Actor, {ok, RefId}, {ok, SubId}, #run{tables = Tables} = Run) ->
    Subject = subject(),
    RefTid = ets:info(RefId, id),
    Table = #table{
        ids = {RefId, SubId},
        tids = {RefTid, Subject:info(SubId, id)},
        type = ets:info(RefId, type),
        keypos = ets:info(RefId, keypos),
        owner = Actor
    },
    %% A table whose number is given to another one can still be reached by its name.
    Older = [{{old, RefTid}, maps:get(I, Tables)} || is_map_key(I, Tables)],
    Run#run{tables = maps:merge(Tables#{I => Table}, maps:from_list(Older))};
note(rename, _, _, {ok, RefId}, {ok, SubId}, Run) when is_atom(RefId) ->
    %% The old name is gone, so the table is found by its new one.
    update_table({raw, RefId}, fun(T) -> T#table{ids = {RefId, SubId}} end, Run);
note(safe_fixtable, [Tab, _], _, {ok, _}, _, Run) ->
    update_table(Tab, fun(T) -> T#table{was_fixed = true} end, Run);
note(_, _, _, _, _, Run) ->
    Run.

update_table(Tab, Change, #run{tables = Tables} = Run) ->
    case find_number(Tab, Run) of
        none -> Run;
        I -> Run#run{tables = maps:update_with(I, Change, Tables)}
    end.

%% ----- actors -----

start_actor(IsStrict) ->
    spawn(fun() ->
        put(?STRICT, IsStrict),
        actor_loop()
    end).

actor_loop() ->
    receive
        {run, From, Ref, Fun} ->
            Answer =
                try
                    Fun()
                catch
                    Class:Reason:Stack -> {difference, #{exception => {Class, Reason, Stack}}}
                end,
            From ! {Ref, Answer},
            actor_loop();
        {'ETS-TRANSFER', Id, Giver, Gift} ->
            put(?TRANSFERS, [{Id, Giver, Gift} | transfers()]),
            actor_loop()
    end.

transfers() ->
    case get(?TRANSFERS) of
        undefined -> [];
        Transfers -> Transfers
    end.

on_actor(Actor, Fun, #run{actors = Actors}) ->
    Pid = maps:get(Actor, Actors),
    Ref = erlang:monitor(process, Pid),
    Pid ! {run, self(), Ref, Fun},
    receive
        {Ref, Answer} ->
            erlang:demonitor(Ref, [flush]),
            Answer;
        {'DOWN', Ref, process, _, Why} ->
            {difference, #{actor_died => Why}}
    after 60000 ->
        {difference, #{hangs => erlang:process_info(Pid, current_stacktrace)}}
    end.

%% Tables and fixations are gone when the 'DOWN' message arrives.
kill_actor(Actor, #run{actors = Actors} = Run0) ->
    kill(maps:get(Actor, Actors)),
    Run = Run0#run{actors = Actors#{Actor := start_actor(Run0#run.is_strict)}},
    Pairs = [T#table.tids || T <- maps:values(Run#run.tables)],
    case [P || P <- Pairs, not agree_on_life(P)] of
        [] -> {ok, Run};
        Left -> {difference, #{outlives_its_process => Left}}
    end.

agree_on_life({RefTid, SubTid}) ->
    Subject = subject(),
    Subject:info(SubTid, owner) =:= ets:info(RefTid, owner) andalso
        fixers(ets:info(RefTid, safe_fixed)) =:= fixers(Subject:info(SubTid, safe_fixed)).

fixers({_, Fixers}) -> lists:sort(Fixers);
fixers(NotFixed) -> NotFixed.

%% Ends all actors; tells which tables are still there although their owner is not.
stop(#run{actors = Actors, tables = Tables}) ->
    lists:foreach(fun kill/1, maps:values(Actors)),
    Pairs = [T#table.tids || T <- maps:values(Tables)],
    [P || P <- Pairs, not agree_on_life(P)].

kill(Pid) ->
    Mon = erlang:monitor(process, Pid),
    exit(Pid, kill),
    receive
        {'DOWN', Mon, process, _, _} -> ok
    end.

%% ----- calling and judging -----

%% Calls a function; a failure keeps the data for the error description.
-spec call(module(), atom(), [term()]) -> {ok, term()} | {fail, atom(), term(), list()}.
call(Module, Function, Args) ->
    try
        {ok, made(Module, Function, apply(implementation(Module, Function), Function, Args))}
    catch
        Class:Reason:Stack -> {fail, Class, Reason, Stack}
    end.

implementation(ats_reference, Function) ->
    case is_beyond_ets(Function) of
        true -> ats_beyond_reference;
        false -> ats_reference
    end;
implementation(Module, _) ->
    Module.

is_beyond_ets(Function) ->
    lists:member(Function, ats_beyond_reference:functions()).

%% Tables of the subject adapt if that is forced.
made(Module, new, T) ->
    case subject() of
        Module -> ats_test_lib:adapting(T);
        _ -> T
    end;
%% A chunk is compared with all that follow.
made(Module, F, {Chunk, Continuation}) when Module =/= ats_reference, ?IN_CHUNKS(F) ->
    {chunks, [Chunk | chunks_behind(Module, Continuation)]};
made(Module, F, '$end_of_table') when Module =/= ats_reference, ?IN_CHUNKS(F) ->
    {chunks, []};
made(_, _, Result) ->
    Result.

chunks_behind(Module, Continuation) ->
    case Module:select(Continuation) of
        '$end_of_table' -> [];
        {Chunk, Next} -> [Chunk | chunks_behind(Module, Next)]
    end.

judge(F, Args, SubArgs, Ref, Sub, Run) ->
    case differs(F, Args, SubArgs, Ref, Sub, Run) of
        false ->
            {ok, Ref, Sub};
        true ->
            {difference, #{ets => Ref, subject => Sub}};
        {true, Why} ->
            {difference, #{ets => Ref, subject => Sub, why => Why}}
    end.

differs(F, [_, _, Tab] = Args, SubArgs, Ref, Sub, Run) when F =:= foldl; F =:= foldr ->
    %% The release of `ets' decides about a fold at the key '$end_of_table': it ends early, or it
    %% fails.
    case find_table(Tab, Run) of
        #table{ids = {RefId, _}} ->
            IsKey = call(ets, member, [RefId, '$end_of_table']),
            IsKey =/= {ok, true} andalso outcomes_differ(F, Args, SubArgs, Ref, Sub, Run);
        none ->
            outcomes_differ(F, Args, SubArgs, Ref, Sub, Run)
    end;
differs(F, [Tab, _] = Args, [_, Key] = SubArgs, Ref, Sub, Run) when
    F =:= next; F =:= prev; F =:= next_lookup; F =:= prev_lookup
->
    case find_table(Tab, Run) of
        #table{was_fixed = true, type = Type, ids = {RefId, _}} when Type =/= ordered_set ->
            %% A step fails or not by the time for which the position of a deleted key is
            %% remembered; that it is long enough is checked by walks under a fixation.
            call(ets, member, [RefId, Key]) =:= {ok, true} andalso
                outcomes_differ(F, Args, SubArgs, Ref, Sub, Run);
        _ ->
            outcomes_differ(F, Args, SubArgs, Ref, Sub, Run)
    end;
differs(slot, [Tab, _] = Args, [_, I] = SubArgs, Ref, Sub, Run) when is_integer(I), I > 0 ->
    case find_table(Tab, Run) of
        #table{type = Type} = Table when Type =/= ordered_set ->
            hash_slot_differs(Ref, Sub, Table);
        _ ->
            outcomes_differ(slot, Args, SubArgs, Ref, Sub, Run)
    end;
differs(F, Args, SubArgs, Ref, Sub, Run) ->
    outcomes_differ(F, Args, SubArgs, Ref, Sub, Run).

%% The number of slots is up to each side, but both or none must have a slot to look at.
hash_slot_differs(Ref, Sub, #table{ids = {RefId, SubId}}) ->
    Subject = subject(),
    case {call(ats_reference, slot, [RefId, 0]), call(Subject, slot, [SubId, 0])} of
        {{ok, _}, {ok, _}} ->
            case Sub of
                {ok, '$end_of_table'} -> false;
                {ok, Objects} -> Objects -- ets:tab2list(RefId) =/= [];
                {fail, Class, Reason, _} -> {Class, Reason} =/= {error, badarg}
            end;
        {{fail, _, _, _}, {fail, _, _, _}} ->
            not (is_failure(Ref) andalso is_failure(Sub));
        _ ->
            true
    end.

is_failure({fail, _, _, _}) -> true;
is_failure({ok, _}) -> false.

outcomes_differ(F, _, SubArgs, {fail, _, _, _} = Ref, {fail, _, _, _} = Sub, _) ->
    case compare_failures({F, SubArgs}, Ref, Sub) of
        ok -> false;
        {difference, Why} -> {true, Why}
    end;
outcomes_differ(F, Args, _, {ok, Ref}, {ok, Sub}, Run) ->
    results_differ(F, Args, Ref, Sub, Run);
outcomes_differ(_, _, _, _, _, _) ->
    true.

%% Both sides failed. The class and the reason must agree, and the failure must be described. If
%% several arguments are wrong each side may blame any of them; a strict run knows that only one is
%% wrong, and compares the blamed arguments wherever `ets' describes its errors. For functions that
%% `ets' lacks the reference has the exact text.
-spec compare_failures({atom(), [term()]}, tuple(), tuple()) -> ok | {difference, term()}.
compare_failures(_, {fail, C1, R1, _}, {fail, C2, R2, _}) when C1 =/= C2; R1 =/= R2 ->
    {difference, exception};
compare_failures({F, Args}, {fail, _, _, RefStack}, {fail, _, _, SubStack}) ->
    case subject() of
        ats_reference ->
            ok;
        Subject ->
            case SubStack of
                [{Subject, F, Args, _} | _] ->
                    compare_blame(F, length(Args), blame(RefStack), blame(SubStack));
                [{Subject, _, _, _} | _] when ?WHOLE(F) ->
                    compare_blame(F, length(Args), none, blame(SubStack));
                _ ->
                    {difference, {top_of_stack, lists:sublist(SubStack, 1)}}
            end
    end.

compare_blame(F, Arity, RefBlame, SubBlame) ->
    case is_beyond_ets(F) of
        true -> compare_words(RefBlame, SubBlame);
        false -> compare_arguments(F, Arity, RefBlame, SubBlame)
    end.

compare_words(RefBlame, none) ->
    {difference, {no_error_info, RefBlame}};
compare_words(RefBlame, SubBlame) ->
    Words = fun(_, Text) -> unicode:characters_to_list(Text) end,
    case {maps:map(Words, RefBlame), maps:map(Words, SubBlame)} of
        {Same, Same} -> ok;
        {Ref, Sub} -> {difference, {blame, Ref, Sub}}
    end.

compare_arguments(F, Arity, RefBlame, SubBlame) ->
    case {is_strict() andalso is_described_by_ets(F, Arity), RefBlame, SubBlame} of
        {_, _, none} -> {difference, no_error_info};
        {_, _, Blamed} when map_size(Blamed) =:= 0 -> {difference, no_error_text};
        {true, #{}, #{}} when map_size(RefBlame) > 0 ->
            %% One wrong argument is enough of an explanation, a right one is none.
            case maps:keys(SubBlame) -- maps:keys(RefBlame) of
                [] -> ok;
                _ -> {difference, {blame, RefBlame, SubBlame}}
            end;
        _ -> ok
    end.

is_strict() -> get(?STRICT) =:= true.

is_described_by_ets(F, _) when ?WHOLE(F); ?DIRECTED_LOOKUP(F) -> false;
is_described_by_ets(delete_all_objects, _) -> false;
is_described_by_ets(lookup_element, 4) -> false;
is_described_by_ets(update_element, 4) -> false;
is_described_by_ets(_, _) -> true.

%% Returns the error description of each argument: `#{ArgumentNumber => Text}'.
-spec blame(list()) -> map() | none.
blame([{M, _, _, Info} | _] = Stack) ->
    case proplists:get_value(error_info, Info) of
        undefined ->
            none;
        ErrorInfo ->
            Formatter = maps:get(module, ErrorInfo, M),
            try
                without_hints(Formatter:format_error(badarg, Stack))
            catch
                %% Some releases fail to describe some errors of `ets'.
                error:_ when Formatter =:= erl_stdlib_errors -> none
            end
    end;
blame(_) ->
    none.

%% Removes the part of a text of `ats' that `ets' lacks: ats_mistakes_SUITE has the whole texts.
-spec without_hints(#{term() => unicode:chardata()}) -> #{term() => unicode:chardata()}.
without_hints(Texts) ->
    Bases = [
        "invalid options",
        "not a valid match specification",
        "not a valid info item",
        "not a valid merge",
        "not a valid table identifier",
        "not an atom or a table identifier",
        "the table identifier does not refer to an existing ATS table",
        "the table identifier refers to an ATS table with insufficient access rights",
        "the table identifier refers to an ATS table of a type not supported by this operation"
    ],
    Shorten = fun(_, Text) ->
        Hinted = fun(Base) ->
            lists:any(
                fun(Mark) -> string:prefix(Text, Base ++ Mark) =/= nomatch end, [": ", "; "]
            )
        end,
        case lists:filter(Hinted, Bases) of
            [Base] when is_binary(Text) -> list_to_binary(Base);
            [Base] -> Base;
            [] -> Text
        end
    end,
    maps:map(Shorten, Texts).

results_differ(F, [Tab | _], Ref, Sub, Run) when ?DIRECTED(F) ->
    case find_table(Tab, Run) of
        #table{type = ordered_set} -> not same(Ref, Sub);
        Table -> hash_step_differs(F, Ref, Sub, Table)
    end;
results_differ(F, [Tab | _], Ref, Sub, Run) when ?DIRECTED_LOOKUP(F) ->
    case {find_table(Tab, Run), Ref, Sub} of
        {#table{type = ordered_set}, _, _} ->
            not same(Ref, Sub);
        {_, '$end_of_table', '$end_of_table'} ->
            false;
        {#table{ids = {RefId, _}} = Table, {_, _}, {Key, Objects}} ->
            objects_differ(ets:lookup(RefId, Key), Objects, Table);
        _ ->
            %% The two sides walk in different orders, so one may be at its end.
            false
    end;
results_differ(F, Args, Ref, Sub, Run) when ?WHOLE(F) ->
    #table{type = Type} = Table = find_table(table_argument(F, Args), Run),
    case Type of
        ordered_set -> not same(Ref, Sub);
        _ -> groups_differ(F, Ref, Sub, Table)
    end;
results_differ(F, [Tab | _], Ref, Sub, Run) when ?TAKES_MANY(F) ->
    case find_table(Tab, Run) of
        #table{type = ordered_set} -> not same(Ref, Sub);
        Table -> groups_differ(F, Ref, Sub, Table)
    end;
results_differ(F, [Tab, _], Ref, Sub, Run) when ?SELECTS(F) ->
    case find_table(Tab, Run) of
        #table{type = ordered_set} -> not same(Ref, Sub);
        _ -> multiset(Ref) =/= multiset(Sub)
    end;
results_differ(slot, [Tab | _], Ref, Sub, Run) ->
    case find_table(Tab, Run) of
        #table{type = ordered_set} ->
            not same(Ref, Sub);
        #table{ids = {RefId, _}} ->
            Sub =/= '$end_of_table' andalso Sub -- ets:tab2list(RefId) =/= []
    end;
results_differ(F, [Tab | _], Ref, Sub, Run) when F =:= lookup; F =:= take ->
    objects_differ(Ref, Sub, find_table(Tab, Run));
results_differ(F, [Tab | _], Ref, Sub, Run) when F =:= lookup_element; F =:= lookup_elements ->
    objects_differ(Ref, Sub, find_table(Tab, Run));
results_differ(info, _, undefined, Sub, _) ->
    Sub =/= undefined;
results_differ(info, [Tab], Ref, Sub, Run) when is_list(Sub) ->
    Table = find_table(Tab, Run),
    [K || {K, _} <- Ref] =/= [K || {K, _} <- Sub] orelse
        case [K || {{K, R}, {K, S}} <- lists:zip(Ref, Sub), item_differs(K, R, S, Table)] of
            [] -> false;
            Keys -> {true, {info, Keys}}
        end;
results_differ(info, [Tab, {raw, Item}], Ref, Sub, Run) ->
    item_differs(Item, Ref, Sub, find_table(Tab, Run));
results_differ(new, _, Ref, Sub, _) ->
    ids_differ(Ref, Sub);
results_differ(rename, [Tab, _], Ref, Sub, Run) ->
    case find_table(Tab, Run) of
        #table{tids = {Ref, Sub}} -> false;
        _ -> is_reference(Sub) orelse ids_differ(Ref, Sub)
    end;
results_differ(whereis, _, Ref, Sub, #run{tables = Tables}) ->
    case {Ref, Sub} of
        {undefined, undefined} -> false;
        _ -> not lists:any(fun(T) -> T#table.tids =:= {Ref, Sub} end, maps:values(Tables))
    end;
results_differ(all, _, Ref, Sub, #run{tables = Tables}) ->
    Pairs = [T#table.ids || T <- maps:values(Tables)],
    lists:any(fun({R, S}) -> lists:member(R, Ref) =/= lists:member(S, Sub) end, Pairs);
results_differ(_, _, Ref, Sub, _) ->
    not same(Ref, Sub).

table_argument(tab2list, [Tab]) -> Tab;
table_argument(_, [_, _, Tab]) -> Tab.

%% Returns the table an argument means on the side of `ets'. A name may have passed to another table
%% since a number was bound to it, so the identifier counts.
find_table(Arg, #run{tables = Tables} = Run) ->
    case find_number(Arg, Run) of
        none -> none;
        I -> maps:get(I, Tables)
    end.

find_number(Arg, #run{tables = Tables} = Run) ->
    RefTid =
        case realize(Arg, 1, Run) of
            Name when is_atom(Name) -> ets:whereis(Name);
            Id -> Id
        end,
    case [I || {I, #table{tids = {Tid, _}}} <- maps:to_list(Tables), Tid =:= RefTid] of
        [I | _] -> I;
        [] -> none
    end.

ids_differ(Ref, Sub) when is_reference(Ref) -> not is_reference(Sub);
ids_differ(Ref, Sub) ->
    lists:all(fun(N) -> {name(N, 1), name(N, 2)} =/= {Ref, Sub} end, lists:seq(1, 9)) andalso
        Ref =/= Sub.

%% One step through a hash table: the key must exist, and opposite directions must agree.
hash_step_differs(F, Ref, Sub, #table{ids = {RefId, SubId}}) ->
    Subject = subject(),
    Opposite =
        case F of
            first -> Subject:last(SubId);
            last -> Subject:first(SubId);
            _ -> Sub
        end,
    if
        Ref =:= '$end_of_table'; Sub =:= '$end_of_table' ->
            IsEmpty = ets:info(RefId, size) =:= 0,
            %% A walk may end anywhere, unless it ends before it begins; and the atom may be a key
            %% like any other.
            (F =:= first orelse F =:= last) andalso
                not ets:member(RefId, '$end_of_table') andalso
                (Ref =/= Sub orelse not IsEmpty);
        true ->
            not ets:member(RefId, Sub) orelse not same(Opposite, Sub)
    end.

objects_differ(Ref, Sub, #table{type = Type, was_fixed = true}) when
    Type =/= set, Type =/= ordered_set
->
    not same_multiset(Ref, Sub);
objects_differ(Ref, Sub, _) ->
    not same(Ref, Sub).

%% The result of lookup_element/4 may be a default that is no proper list.
same_multiset(Ref, Sub) ->
    case {is_proper_list(Ref), is_proper_list(Sub)} of
        {true, true} -> multiset(unsigned(Ref)) =:= multiset(unsigned(Sub));
        _ -> same(Ref, Sub)
    end.

is_proper_list(Term) ->
    try
        length(Term) >= 0
    catch
        error:badarg -> false
    end.

%% All objects of a hash table: the same objects, those of one key in the same order.
groups_differ(_, Ref, Sub, #table{type = Type, was_fixed = true}) when Type =/= set ->
    not same_multiset(Ref, Sub);
groups_differ(F, Ref, Sub, #table{keypos = KeyPos, type = Type, was_fixed = WasFixed}) ->
    IsOrdered = not WasFixed andalso F =/= tab2list andalso Type =/= set,
    multiset(Ref) =/= multiset(Sub) orelse
        (IsOrdered andalso lists_of_keys_differ(KeyPos, Ref, Sub)).

lists_of_keys_differ(KeyPos, Ref, Sub) ->
    Group = fun(Objects) -> maps:groups_from_list(fun(O) -> element(KeyPos, O) end, Objects) end,
    SubGroups = Group(Sub),
    lists:any(
        fun({Key, Objects}) -> not same(Objects, maps:get(Key, SubGroups)) end,
        maps:to_list(Group(Ref))
    ).

%% Returns the term with every -0.0 in it made 0.0.
unsigned(Float) when is_float(Float) -> Float + 0.0;
unsigned([Head | Tail]) -> [unsigned(Head) | unsigned(Tail)];
unsigned(Tuple) when is_tuple(Tuple) -> list_to_tuple(unsigned(tuple_to_list(Tuple)));
unsigned(Map) when is_map(Map) -> maps:from_list(unsigned(maps:to_list(Map)));
unsigned(Term) -> Term.

%% Counted by their encoding, since terms that differ in the sign of a zero are one key of a map.
multiset(List) ->
    lists:foldl(
        fun(X, M) -> maps:update_with(term_to_binary(X), fun(N) -> N + 1 end, 1, M) end,
        #{},
        List
    ).

item_differs(id, Ref, Sub, #table{tids = Tids}) -> {Ref, Sub} =/= Tids;
item_differs(name, Ref, Sub, _) -> ids_differ(Ref, Sub);
item_differs(memory, _, Sub, _) -> not (is_integer(Sub) andalso Sub > 0);
item_differs(stats, _, _, _) -> false;
item_differs(binary, _, Sub, #table{was_fixed = true}) ->
    %% `ets' also lists binaries of deleted objects.
    not is_list(Sub);
item_differs(binary, Ref, Sub, #table{ids = {RefId, _}}) ->
    case subject() of
        Subject when Subject =:= ats_on_btree; Subject =:= ats_on_disk ->
            %% Objects that are bytes share no binaries.
            not is_list(Sub);
        _ ->
            %% `ets' stops looking at the key '$end_of_table'.
            call(ets, member, [RefId, '$end_of_table']) =:= {ok, false} andalso
                large_binaries(Ref) =/= large_binaries(Sub)
    end;
item_differs(safe_fixed, {_, Ref}, Sub, _) -> fixers_differ(Ref, Sub, fun is_timestamp/1);
item_differs(safe_fixed_monotonic_time, {_, Ref}, Sub, _) ->
    fixers_differ(Ref, Sub, fun is_integer/1);
item_differs(_, Ref, Sub, _) -> Ref =/= Sub.

%% Returns the sizes of binaries that both sides share. Each side has got its own, and the number of
%% references to one depends on the process that asks. Whole binaries are listed, of which objects
%% may have a part: the parts that `ats_term_gen' makes lack few bytes, and whether they are large
%% enough to be shared is clear here.
large_binaries(Binaries) ->
    lists:sort([Size || {_, Size} <- lists:usort([{I, S} || {I, S, _} <- Binaries]), Size > 1100]).

fixers_differ(Ref, {Time, Sub}, IsTime) ->
    lists:sort(Ref) =/= lists:sort(Sub) orelse not IsTime(Time);
fixers_differ(_, _, _) ->
    true.

is_timestamp({A, B, C}) -> is_integer(A) andalso is_integer(B) andalso is_integer(C);
is_timestamp(_) -> false.

%% Identical, zeros with the same sign included (`=:=' ignores the sign before OTP 27).
-spec same(term(), term()) -> boolean().
same(A, B) ->
    A =:= B andalso term_to_binary(A) =:= term_to_binary(B).

%% ----- whole tables -----

compare_all(#run{tables = Tables} = Run) ->
    IsLive = fun(#table{tids = {RefTid, _}}) -> ets:info(RefTid, id) =/= undefined end,
    Live = lists:filter(IsLive, maps:values(Tables)),
    first_difference(
        [fun() -> compare_transfers(Actor, Run) end || Actor <- maps:keys(Run#run.actors)] ++
            [fun() -> compare_table(T, Run) end || T <- Live]
    ).

%% The same messages from both sides, in any order: each process dies with several tables.
compare_transfers(Actor, Run) ->
    Compare = fun() ->
        Sided = [{side(Id, Run), {Giver, Gift}} || {Id, Giver, Gift} <- transfers()],
        Ref = lists:sort([{Which, What} || {{1, Which}, What} <- Sided]),
        Sub = lists:sort([{Which, What} || {{2, Which}, What} <- Sided]),
        difference_if(not same(Ref, Sub), {transfers, Actor, Ref, Sub})
    end,
    on_actor(Actor, Compare, Run).

%% Returns the side of a table, and its number, which its counterpart shares.
side(Name, _) when is_atom(Name) ->
    [Found] = [{Side, N} || Side <- [1, 2], N <- lists:seq(1, 9), name(N, Side) =:= Name],
    Found;
side(Tid, #run{tables = Tables}) ->
    Pairs = [T#table.tids || T <- maps:values(Tables)],
    case lists:keyfind(Tid, 1, Pairs) of
        {Tid, _} = Pair ->
            {1, Pair};
        false ->
            {2, lists:keyfind(Tid, 2, Pairs)}
    end.

compare_table(#table{tids = {RefTid, SubTid}, owner = Owner} = Table, Run) ->
    Compare = fun() -> compare_contents(RefTid, SubTid, Table#table.was_fixed) end,
    %% The contents of a private table are visible to its owner alone.
    Reader =
        case [A || {A, Pid} <- maps:to_list(Run#run.actors), Pid =:= ets:info(RefTid, owner)] of
            [A] -> A;
            [] -> Owner
        end,
    on_actor(Reader, Compare, Run).

%% Compares all that can be read from two tables.
-spec compare_contents(term(), term(), boolean()) -> ok | {difference, map()}.
compare_contents(RefTid, SubTid, WasFixed) ->
    Subject = subject(),
    Table = #table{
        ids = {RefTid, SubTid},
        tids = {RefTid, SubTid},
        type = ets:info(RefTid, type),
        keypos = ets:info(RefTid, keypos),
        owner = a,
        was_fixed = WasFixed
    },
    Run = #run{actors = #{}, tables = #{1 => Table}},
    Keys = distinct([element(Table#table.keypos, O) || O <- ets:tab2list(RefTid)]),
    Calls =
        [
            {tab2list, [{tab, 1}]},
            {foldl, [{collector, reverse}, {raw, []}, {tab, 1}]},
            {foldr, [{collector, reverse}, {raw, []}, {tab, 1}]},
            {info, [{tab, 1}, {raw, size}]}
        ] ++ [{lookup, [{tab, 1}, {raw, K}]} || K <- Keys],
    Judge = fun({F, Args}) ->
        RefArgs = [realize(A, 1, Run) || A <- Args],
        SubArgs = [realize(A, 2, Run) || A <- Args],
        Ref = call(ats_reference, F, RefArgs),
        Sub = call(Subject, F, SubArgs),
        case judge(F, Args, SubArgs, Ref, Sub, Run) of
            {ok, _, _} -> ok;
            {difference, What} -> {difference, What#{final_check => {F, Args}}}
        end
    end,
    ok = ats_test_lib:count_adaptation(SubTid),
    first_difference(
        [fun() -> Judge(Call) end || Call <- Calls] ++ [fun() -> compare_slots(Table) end]
    ).

%% All slots together are the table, and behind the last one there is nothing.
compare_slots(#table{type = Type, ids = {RefId, SubId}} = Table) ->
    Subject = subject(),
    {Slots, Objects} = all_slots(Subject, SubId, 0, []),
    All = ets:tab2list(RefId),
    Beyond = call(Subject, slot, [SubId, Slots + 1]),
    case {Type, Beyond} of
        {ordered_set, {fail, error, badarg, _}} when Slots =:= length(All) ->
            difference_if(not same(All, Objects), {slots, All, Objects});
        {_, {fail, error, badarg, _}} when Type =/= ordered_set ->
            difference_if(groups_differ(slot, All, Objects, Table), {slots, All, Objects});
        _ ->
            {difference, #{slots => Slots, beyond => Beyond}}
    end.

all_slots(Subject, SubId, I, Slots) ->
    case Subject:slot(SubId, I) of
        '$end_of_table' -> {I, lists:append(lists:reverse(Slots))};
        Objects -> all_slots(Subject, SubId, I + 1, [Objects | Slots])
    end.

difference_if(true, What) -> {difference, #{what => What}};
difference_if(false, _) -> ok.

%% Told apart as tables tell them apart that compare with `=:=', or finer.
distinct(Keys) ->
    maps:values(maps:from_list([{term_to_binary(K), K} || K <- Keys])).

first_difference([]) -> ok;
first_difference([Check | Rest]) ->
    case Check() of
        ok -> first_difference(Rest);
        {difference, _} = Difference -> Difference
    end.

%% ----- printing -----

%% Returns the program as Erlang source: a reader's version, then the call that replays it.
-spec source(program()) -> iolist().
source(Program) ->
    [
        [["    ", command_source(C), "\n"] || C <- Program],
        io_lib:format("~nTo run it again: ats_oracle:replay(~0tp).~n", [Program])
    ].

command_source({kill, Actor}) ->
    io_lib:format("exit(~s, kill),", [string:uppercase(atom_to_list(Actor))]);
command_source({Actor, {new, I}, Args}) ->
    [io_lib:format("T~b = ", [I]), call_source(Actor, new, Args)];
command_source({Actor, F, Args}) ->
    call_source(Actor, F, Args).

call_source(Actor, F, Args) ->
    Note =
        case Actor of
            a -> "";
            b -> "  % in process B";
            c -> "  % in process C"
        end,
    Module =
        case subject() of
            ats_reference -> ets;
            Other -> Other
        end,
    [
        atom_to_list(Module),
        ":",
        atom_to_list(F),
        "(",
        lists:join(", ", [arg_source(A) || A <- Args]),
        "),",
        Note
    ].

arg_source({tab, I}) -> io_lib:format("T~b", [I]);
arg_source({tid, I}) -> io_lib:format("ats:info(T~b, id)", [I]);
arg_source({name, N}) -> io_lib:format("name_~b", [N]);
arg_source({raw, Term}) -> io_lib:format("~0tp", [Term]);
arg_source({recipe, R}) -> ats_term_gen:source(R);
arg_source({recipes, Rs}) -> ["[", lists:join(", ", [ats_term_gen:source(R) || R <- Rs]), "]"];
arg_source({operand, Operand}) -> ats_beyond_gen:source(Operand);
arg_source({actor, Actor}) -> string:uppercase(atom_to_list(Actor));
arg_source({options, Options}) -> io_lib:format("~0tp", [Options]);
arg_source({option, Option}) -> io_lib:format("~0tp", [Option]);
arg_source({collector, reverse}) -> "fun(O, Acc) -> [O | Acc] end";
arg_source({collector, append}) -> "fun(O, Acc) -> Acc ++ [O] end".

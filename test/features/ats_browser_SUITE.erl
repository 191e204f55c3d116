%% Tables at the shell: `i/0' and its kin print the same as those of `ets', and understand the same.
%%
%% A process plays the terminal: it answers questions by lines that it was given, and keeps the
%% output.
-module(ats_browser_SUITE).

-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0]).
-export([
    list_of_tables/1,
    columns_fit/1,
    list_of_changing_tables/1,
    pages/1,
    sessions/1,
    random_sessions/1,
    binary_terminal/1,
    long_objects/1,
    deletes/1,
    another_facade/1,
    refused/1
]).

suite() -> [{timetrap, {minutes, 15}}].

all() ->
    [
        list_of_tables,
        columns_fit,
        list_of_changing_tables,
        pages,
        sessions,
        random_sessions,
        binary_terminal,
        long_objects,
        deletes,
        another_facade,
        refused
    ].

subject() -> ats_oracle:subject().

%% ----- the list -----

list_of_tables(_) ->
    S = subject(),
    Registered = spawn_link(fun() ->
        register(an_owner, self()),
        S:new(owned_by_a_name, [named_table, bag]),
        receive stop -> ok end
    end),
    ats_test_lib:until(fun() -> S:whereis(owned_by_a_name) =/= undefined end, 5000),
    Named = S:new(a_name_longer_than_its_column, [named_table, private, ordered_set]),
    T = S:new(unnamed, [duplicate_bag]),
    S:insert(T, [{a}, {b}]),
    {ok, Text} = session([], fun() -> S:i() end),
    [_Header, _Line | Rows] = string:lexemes(Text, "\n"),
    ?assertEqual(length(S:all()), length(Rows)),
    Split = [string:lexemes(R, " ") || R <- Rows],
    ?assertMatch(
        [["owned_by_a_name", "owned_by_a_name", "bag", "0", _, "an_owner"]],
        [R || ["owned_by_a_name" | _] = R <- Split]
    ),
    Self = pid_to_list(self()),
    ?assertMatch(
        [[_, _, "ordered_set", "0", _, Self]],
        [R || ["a_name_longer_than_its_column" | _] = R <- Split]
    ),
    Id = ref_to_list(T),
    Words = integer_to_list(S:info(T, memory)),
    ?assertEqual(
        [[Id, "unnamed", "duplicate_bag", "2", Words, Self]],
        [R || [I | _] = R <- Split, I =:= Id]
    ),
    [S:delete(X) || X <- [Named, T]],
    unlink(Registered),
    ats_test_lib:kill(Registered).

%% A table whose values fit is shown as by `ets', but for its memory. Where a value needs more, its
%% column is wider in all lines; a name wider than any column moves its own line only.
columns_fit(_) ->
    S = subject(),
    [] = S:all(),
    E = ets:new(columns, [named_table]),
    E = S:new(columns, [named_table]),
    ?assertEqual(heading_and_row(fun() -> ets:i() end), heading_and_row(fun() -> S:i() end)),
    ets:delete(E),
    Name = a_name_of_more_than_forty_characters_in_all,
    Wide = list_to_atom(lists:duplicate(255, $x)),
    Tables = [S:new(Any, Options)
              || {Any, Options} <- [{Name, [named_table]}, {unnamed, [duplicate_bag]},
                                    {Wide, [named_table, bag]}]],
    true = S:insert(Name, [{N} || N <- lists:seq(1, 1_234_567)]),
    {ok, Text} = session([], fun() -> S:i() end),
    [Header, Line | Rows] = string:lexemes(Text, "\n"),
    {Wider, Fitting} = lists:partition(fun(R) -> string:find(R, "xxx") =/= nomatch end, Rows),
    ?assertEqual(3, length(Fitting)),
    Starts = starts(Header),
    ?assertEqual(lists:usort([starts(R) || R <- Fitting]), [Starts]),
    ?assertEqual(lists:last(Starts) + 20, length(Line)),
    ?assertMatch([[_, _, "bag", "0", _, _]], [string:lexemes(R, " ") || R <- Wider]),
    Text1 = atom_to_list(Name),
    ?assertMatch([[Text1, Text1, "set", "1234567", _, _]],
                 [Words || [First | _] = Words <- [string:lexemes(R, " ") || R <- Fitting],
                           First =:= Text1]),
    [S:delete(T) || T <- [E | Tables]],
    ok.

%% Returns the places at which the words of a line begin.
starts(Line) ->
    {match, Words} = re:run(Line, "[^ ]+", [global]),
    [Start || [{Start, _}] <- Words].

heading_and_row(Function) ->
    {ok, Text} = session([], Function),
    [Header, Line | Rows] = string:lexemes(Text, "\n"),
    [Row] = [R || R <- Rows, string:prefix(R, " columns") =/= nomatch],
    [A, B, C, D, _Memory, Owner] = string:lexemes(Row, " "),
    {Header, Line, string:slice(Row, 0, 47), [A, B, C, D, Owner]}.

%% Tables that come and go do not disturb a process that lists tables.
list_of_changing_tables(_) ->
    S = subject(),
    Others = [spawn_link(fun() -> make_and_delete(S) end) || _ <- [1, 2]],
    [?assertMatch({ok, _}, session([], fun() -> S:i() end)) || _ <- lists:seq(1, 100)],
    [begin unlink(P), ats_test_lib:kill(P) end || P <- Others],
    ok.

make_and_delete(S) ->
    Ts = [S:new(t, []) || _ <- [1, 2, 3]],
    [S:delete(T) || T <- Ts],
    timer:sleep(1),
    make_and_delete(S).

%% ----- pages -----

objects() ->
    [{N, "text", [a, N]} || N <- lists:seq(1, 100)] ++
        [{{wide, N}, lists:duplicate(60, N)} || N <- lists:seq(1, 5)] ++
        [{"key", <<"binary">>, 1.5}, {a}, {[], #{a => 1}}].

%% Compares output and input at the terminal with a table of each module.
compare(Options, Lines, Arguments) ->
    [Expected, Found] = [
        begin
            T = M:new(browsed, Options),
            true = M:insert(T, objects()),
            Outcome = session(Lines, fun() -> apply(M, i, [T | Arguments]) end),
            {Outcome, M:info(T, size)}
        end
     || M <- [ets, subject()]
    ],
    ?assertEqual({Lines, Arguments, Expected}, {Lines, Arguments, Found}),
    Found.

pages(_) ->
    {{ok, Text}, 108} = compare([ordered_set], lists:duplicate(10, "\n") ++ ["q\n"], []),
    ?assertEqual(108, length([L || [$<, D | _] = L <- string:lexemes(Text, "\n"), D =/= $<])),
    [
        compare([ordered_set], lists:duplicate(40, "c\n") ++ ["q\n"], Arguments)
     || Arguments <- [[], [10], [2], [1000], [10, 40], [10, 200], [5, 20]]
    ],
    %% Without order, the same objects in some order.
    {ok, Any} = begin
        T = (subject()):new(t, [bag]),
        true = (subject()):insert(T, [{N rem 3, N} || N <- lists:seq(1, 30)]),
        session(["c\n", "c\n", "c\n", "c\n", "q\n"], fun() -> (subject()):i(T, 5) end)
    end,
    ?assertEqual(
        lists:sort([{N rem 3, N} || N <- lists:seq(1, 30)]), lists:sort(objects_in(Any))
    ).

objects_in(Text) ->
    [
        begin
            {ok, Tokens, _} = erl_scan:string(Object ++ "."),
            {ok, Term} = erl_parse:parse_term(Tokens),
            Term
        end
     || "<" ++ Line <- string:lexemes(Text, "\n"), [_, Object] <- [string:split(Line, "> ")]
    ].

sessions(_) ->
    [
        compare([ordered_set], Lines, [Height])
     || Height <- [8, 40, 500],
        Lines <- [
            ["q\n"],
            [],
            ["x\n", "\n", "Q\n", "quit\n", "c \n", "q\n"],
            ["p1\n", "p3\n", "p108\n", "p109\n", "p0\n", "p-1\n", "px\n", "p\n", "p 3\n", "q\n"],
            ["/wide\n", "p1\n", "p5\n", "p6\n", "c\n", "c\n", "q\n"],
            ["/[1-5]0\n", "c\n", "p2\n", "/text\n", "c\n", "\n", "p7\n", "q\n"],
            ["/nothing like this\n", "c\n", "p1\n", "/\n", "c\n", "q\n"],
            ["/(\n", "/[\n", "/a**\n", "q\n"],
            ["c\n", "/key\n", "/a\n", "k\n"],
            ["/k"],
            ["k\n"],
            ["c\n", "c\n", "c\n", "c\n", "c\n", "c\n", "c\n", "c\n", "c\n", "k\n"]
        ]
    ],
    {{ok, _}, undefined} = compare([ordered_set], ["k\n"], []),
    ok.

random_sessions(_) ->
    rand:seed(exsss, {4, 5, 6}),
    Commands = [
        "c\n", "\n", "c\n", "p7\n", "p100\n", "p9x\n", "/wide\n", "/1\n", "/t.*5\n", "z\n"
    ],
    [
        compare(
            [ordered_set],
            [lists:nth(rand:uniform(length(Commands)), Commands) || _ <- lists:seq(1, 15)] ++
                ["q\n"],
            [2 + rand:uniform(60), 15 + rand:uniform(100)]
        )
     || _ <- lists:seq(1, 100)
    ],
    ok.

%% Some terminals answer by binaries.
binary_terminal(_) ->
    compare([ordered_set], [<<"c\n">>, <<"p3\n">>, <<"/wide\n">>, <<"c\n">>, <<"q\n">>], [10]),
    ok.

%% A line is cut where the page ends, `p' prints it as a whole.
long_objects(_) ->
    S = subject(),
    T = S:new(t, [ordered_set]),
    true = S:insert(T, [{1, lists:duplicate(500, a)}, {2, [1024, 8364], 'ü', "ü"}]),
    {ok, Text} = session(["p1\n", "q\n"], fun() -> S:i(T, 10, 60) end),
    [Shown, _] = string:split(Text, "\n<2"),
    ?assertEqual("  ...", lists:nthtail(length(Shown) - 5, Shown)),
    ?assert(length(Shown) =< 60),
    [_, Printed, _] = string:split(Text, "-->\n", all),
    {ok, Tokens, _} = erl_scan:string(hd(string:split(Printed, "EOT")) ++ "."),
    ?assertEqual({ok, {1, lists:duplicate(500, a)}}, erl_parse:parse_term(Tokens)),
    S:delete(T).

%% Objects, or a whole table, are deleted while `i' displays the table.
deletes(_) ->
    S = subject(),
    T = S:new(t, [ordered_set, public]),
    true = S:insert(T, objects()),
    {ok, Text} = session(
        [fun() -> S:delete_all_objects(T), "c\n" end, "q\n"], fun() -> S:i(T, 10) end
    ),
    ?assertMatch([_, _ | _], string:split(Text, "EOT", all)),
    true = S:insert(T, objects()),
    {{error, badarg}, _} = session(
        [fun() -> S:delete(T), "c\n" end, "q\n"], fun() -> S:i(T, 10) end
    ),
    ok.

%% The tables of another facade are shown by its functions, in the same way.
another_facade(_) ->
    Lines = ["c\n", "/[1-5]0\n", "p3\n", "c\n", "k\n"],
    Shown = fun(Browse) ->
        T = ats:new(t, [ordered_set, named_table]),
        true = ats:insert(T, objects()),
        {Outcome, Called} = ats_call_counter:count_calls(fun() ->
            session(Lines, fun() -> Browse(T) end)
        end),
        ?assertEqual(undefined, ats:info(T)),
        {Outcome, Called}
    end,
    {Expected, #{}} = Shown(fun(T) -> ats:i(T, 10) end),
    {Found, Called} = Shown(fun(T) -> ats_browser:browse(ats_call_counter, T, 1, 10, 80) end),
    ?assertEqual(Expected, Found),
    ?assertEqual([delete, first, lookup, next], lists:sort(maps:keys(Called))),
    T = ats:new(t, []),
    {{ok, Text}, #{all := 1, info := _}} = ats_call_counter:count_calls(fun() ->
        session([], fun() -> ats_browser:list(ats_call_counter) end)
    end),
    ?assertMatch([_ | _], string:find(Text, ref_to_list(T))),
    ats:delete(T).

refused(_) ->
    S = subject(),
    [
        ?assertMatch({{error, badarg}, []}, session(["q\n"], fun() -> apply(M, i, [T | A]) end))
     || M <- [ets, S], T <- [no_such_table, 1, make_ref()], A <- [[], [10], [10, 70]]
    ],
    T = S:new(t, [private]),
    [Answer] = ats_test_lib:parallel([
        fun() -> session(["q\n"], fun() -> S:i(T) end) end
    ]),
    ?assertEqual({{error, badarg}, []}, Answer),
    {fail, error, badarg, [{S, i, [no_such_table, 5], _} | _] = Stack} =
        ats_oracle:call(S, i, [no_such_table, 5]),
    Explained = erl_error:format_exception(error, badarg, Stack),
    ?assertMatch([_ | _], string:find(Explained, "argument 1: the table identifier does not")),
    S:delete(T).

%% ----- the terminal -----

%% Calls a function at a terminal at which these lines are typed; the outcome and all that was
%% printed, questions included. Behind the last line is the end of the input.
session(Lines, Function) ->
    Terminal = spawn_link(fun() -> terminal(Lines, []) end),
    Before = group_leader(),
    true = group_leader(Terminal, self()),
    Outcome =
        try Function()
        catch
            Class:{Reason, [_ | _]} -> {Class, Reason};
            Class:Reason -> {Class, Reason}
        after
            group_leader(Before, self())
        end,
    Terminal ! {stop, self()},
    receive
        {printed, Terminal, Text} -> {Outcome, unicode:characters_to_list(Text)}
    end.

terminal(Lines, Printed) ->
    receive
        {io_request, From, ReplyAs, Request} ->
            {Reply, Left, Text} = request(Request, Lines),
            From ! {io_reply, ReplyAs, Reply},
            terminal(Left, [Printed, unicode:characters_to_list(Text)]);
        {stop, From} ->
            From ! {printed, self(), Printed}
    end.

request({put_chars, _Encoding, Text}, Lines) ->
    {ok, Lines, Text};
request({put_chars, _Encoding, M, F, A}, Lines) ->
    {ok, Lines, apply(M, F, A)};
request({get_line, _Encoding, Question}, []) ->
    {eof, [], [text(Question), "\n"]};
request({get_line, _Encoding, Question}, [Action | Lines]) when is_function(Action) ->
    {Action(), Lines, [text(Question), "\n"]};
request({get_line, _Encoding, Question}, [Line | Lines]) ->
    {Line, Lines, [text(Question), "\n"]}.

%% A question may be an atom.
text(Question) -> io_lib:format("~ts", [Question]).

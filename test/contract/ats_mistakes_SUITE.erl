%% The words about mistakes that are made often, as a page of the documentation.
%%
%% The page docs/use/mistakes.md is written by this suite if ATS_WRITE_DOCS is set (`make
%% functions'). If it is not, each call must fail as the page says.
-module(ats_mistakes_SUITE).

-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0]).
-export([page/1, every_line_names_a_culprit/1, nearest_name/1, hostile_arguments/1]).

suite() -> [{timetrap, {minutes, 5}}].

all() -> [page, every_line_names_a_culprit, nearest_name, hostile_arguments].

%% ----- mistakes -----

%% Expressions, in which `Set', `Ordered', `Bag', `Of_ets', `Gone' and `Protected' are tables,
%% `named' and `of_ets' the names of tables, and `disk' that of a table on disk.
mistakes() ->
    [
        {"Making a table", [
            "ats:new(prices, [orderd_set])",
            "ats:new(prices, [named])",
            "ats:new(prices, [{key_pos, 2}])",
            "ats:new(prices, [{keypos, 0}])",
            "ats:new(prices, [{tll, 1000}])",
            "ats:new(prices, [{ttl, soon}])",
            "ats:new(prices, [ttl])",
            "ats:new(prices, [{public, true}])",
            "ats:new(prices, [{max_objects, 0}])",
            "ats:new(prices, [{write_concurrency, yes}])",
            "ats:new(prices, [{heir, server}])",
            "ats:new(prices, [{owner, none}])",
            "ats:new(prices, [{evicted, self()}])",
            "ats:new(prices, [{full_scan, warning}])",
            "ats:new(prices, #{})",
            "ats:new(\"prices\", [])",
            "ats:new(named, [named_table])",
            "ats:setopts(Set, {protection, publik})",
            "ats:setopts(Set, {keypos, 2})"
        ]},
        {"Another table than was meant", [
            "ats:lookup(Of_ets, a)",
            "ats:lookup(of_ets, a)",
            "ats:lookup(disk, a)",
            "ats:lookup(Gone, a)",
            "ats:lookup(no_such_table, a)",
            "ats:lookup(\"named\", a)",
            "ats:insert(Protected, {a, 1})",
            "dats:lookup(no_such_table, a)",
            "dats:lookup(Set, a)",
            "dats:lookup(Of_ets, a)"
        ]},
        {"Objects and elements", [
            "ats:insert(Set, [a])",
            "ats:insert(Set, {})",
            "ats:insert(Set, a, 1)",
            "ats:insert(Set, {a, 1}, #{tll => 5})",
            "ats:lookup_element(Set, a, 3)",
            "ats:lookup_element(Set, z, 2)",
            "ats:update_counter(Set, z, 1)",
            "ats:update_counter(Set, text, 1)",
            "ats:update_counter(Set, a, {3, 1})",
            "ats:update_counter(Bag, a, 1)",
            "ats:update_element(Set, a, {1, b})",
            "ats:merge(Set, a, 1, suum)",
            "ats:merge(Set, text, 1, sum)",
            "ats:next(Set, z)"
        ]},
        {"Match specifications", [
            "ats:select(Set, {{'$1', '_'}, [], ['$1']})",
            "ats:select(Set, [{{'$1', '_'}, ['$1']}])",
            "ats:select(Set, [{{'$1', '_'}, [], '$1'}])",
            "ats:select(Set, [{{'$1', '_'}, [], ['$2']}])",
            "ats:select(Set, [{{'$1', '$2'}, [], [{'$2', '$1'}]}])",
            "ats:select(Set, [{{'$1', '$2'}, [{'=', '$1', a}], ['$2']}])",
            "ats:select(Set, [{'_', [], ['$_']}, {{'$1', '_'}, [{is_atm, '$1'}], ['$_']}])",
            "ats:select(Set, [{'_', [], ['$_']}], 0)",
            "dats:select(disk, [{{'$1', '_'}, [{is_atm, '$1'}], ['$_']}])"
        ]},
        {"Ranges, snapshots and others", [
            "ats:range(Set, a, b)",
            "ats:range(Ordered, a, b, [{limt, 1}])",
            "ats:range(Ordered, a, b, [{low, open}])",
            "ats:range(Ordered, a, b, [limit])",
            "ats:range_count(Set, a, b)",
            "dats:range(disk, a, b)",
            "ats:snapshot(Set, [{max_agee, 5}])",
            "ats:snapshot(Set, [{max_age, 0}])",
            "ats:follow(Set, #{snapshop => true})",
            "ats:view(Set, [{'_', [], ['$_']}], #{evry => 20})",
            "ats:view(Set, [{'_', [], ['$_']}], #{type => orderd_set})",
            "ats:info(Set, sise)",
            "ats:rename(named, 1)",
            "ats:give_away(Set, self(), gift)"
        ]},
        {"Tables on disk", [
            "dats:open_file(prices, [{fiel, \"prices\"}])",
            "dats:open_file(prices, [{type, orderd_set}])",
            "dats:open_file(prices, [{keypos, a}])",
            "dats:open_file(prices, [{auto_save, -1}])",
            "dats:open_file(prices, [{durability, often}])",
            "dats:open_file(prices, [{memory, 0}])",
            "dats:open_file(prices, [{block_size, 1}])",
            "dats:open_file(prices, [{compressed, lz4}])",
            "dats:open_file(prices, [{access, write}])",
            "dats:open_file(prices, [sync])",
            "dats:open_file({prices}, [])",
            "dats:open_file({prices})",
            "dats:open(prices, [{select_timeout_secs, never}])",
            "dats:destroy({prices})",
            "dats:rename_table(\"prices\", {prices})",
            "dats:insert(disk, a)",
            "dats:insert(disk, [{a, 1}, b])",
            "dats:update_counter(disk, z, 1)",
            "dats:merge(disk, a, 1, suum)",
            "dats:slot(disk, -1)",
            "dats:bchunk(disk, first)",
            "dats:snapshot(disk, [{max_agee, 5}])",
            "dats:foldl(fun(_, N) -> N end, 0, no_such_table)",
            "dats:from_ets(disk, no_such_table)",
            "dats:to_ets(disk, no_such_table)"
        ]}
    ].

with_tables(Config, Fun) ->
    Directory = filename:join(proplists:get_value(priv_dir, Config), "disk"),
    {ok, disk} = dats:open_file(disk, [{file, Directory}]),
    Caller = self(),
    Owner = spawn(fun() ->
        Caller ! {protected, ats:new(protected, [])},
        receive stop -> ok end
    end),
    Protected = receive {protected, Made} -> Made end,
    Gone = ats:new(gone, []),
    true = ats:delete(Gone),
    Set = ats:new(named, [named_table, public]),
    true = ats:insert(Set, [{a, 1}, {text, "text"}]),
    Tables = #{
        'Set' => ats:whereis(Set),
        'Ordered' => ats:new(ordered, [ordered_set]),
        'Bag' => ats:new(bag, [bag]),
        'Of_ets' => ets:new(other, []),
        'Gone' => Gone,
        'Protected' => Protected
    },
    of_ets = ets:new(of_ets, [named_table]),
    try
        Fun(Tables)
    after
        Owner ! stop,
        ok = dats:close(disk),
        [true = ats:delete(T) || T <- [Set | maps:values(maps:with(['Ordered', 'Bag'], Tables))]],
        true = ets:delete(of_ets)
    end.

%% Returns the arguments to blame, and the words about them.
explained(Call, Tables) ->
    {ok, Tokens, _} = erl_scan:string(Call ++ "."),
    {ok, Expressions} = erl_parse:parse_exprs(Tokens),
    try erl_eval:exprs(Expressions, maps:to_list(Tables)) of
        {value, Value, _} -> error({succeeds, Call, Value})
    catch
        error:badarg:Stack ->
            [{_, _, _, Location} | _] = Stack,
            #{module := ats_errors} = proplists:get_value(error_info, Location),
            ats_errors:format_error(badarg, Stack)
    end.

page(Config) ->
    with_tables(Config, fun(Tables) ->
        ats_docs_page:compare("mistakes.md", [head() | sections(Tables)], fun() -> [] end)
    end).

head() ->
    "# What errors say\n\n"
    "Calls that fail with `badarg`, the argument that the exception blames, and what it says. The "
    "shell\nand a crash report print this; `erl_error:format_exception/3` returns it.\n[Errors in "
    "Rust](mistakes-in-rust.md) and [errors in Elixir](mistakes-in-elixir.md) have pages of\n"
    "their own.\n\n"
    "In these calls `Set`, `Ordered` and `Bag` are tables of `ats`, `Of_ets` is one of `ets`, "
    "`Gone` was\ndeleted, and `Protected` belongs to another process. There are tables of the "
    "names `named` of\n`ats`, `of_ets` of `ets`, and `disk` of `dats`.\n\n"
    "This page is written by `make functions`, and `make test` fails if it is out of date.\n".

sections(Tables) ->
    [
        [
            "\n## ", Title, "\n\n| call | argument | text |\n|---|---|---|\n",
            [line(Call, explained(Call, Tables)) || Call <- Calls]
        ]
     || {Title, Calls} <- mistakes()
    ].

line(Call, Texts) ->
    [{First, Text} | More] = lists:sort(maps:to_list(Texts)),
    Others = [["; argument ", integer_to_list(N), ": ", T] || {N, T} <- More],
    Said = string:replace(string:replace([Text | Others], "`", "'", all), "|", "\\|", all),
    ["| `", Call, "` | ", integer_to_list(First), " | ", Said, " |\n"].

every_line_names_a_culprit(Config) ->
    with_tables(Config, fun(Tables) ->
        [
            begin
                Texts = explained(Call, Tables),
                ?assertNotEqual({Call, #{}}, {Call, Texts}),
                [?assert(is_integer(N) andalso is_binary(T)) || {N, T} <- maps:to_list(Texts)]
            end
         || {_, Calls} <- mistakes(), Call <- Calls
        ]
    end).

%% ----- the words themselves -----

nearest_name(_) ->
    Known = [set, ordered_set, keypos, named_table, ttl],
    Nearest = fun(Name) -> lists:flatten(ats_hints:nearest(Name, Known)) end,
    ?assertEqual("; is `ordered_set' meant?", Nearest(orderedset)),
    ?assertEqual("; is `keypos' meant?", Nearest(keypso)),
    ?assertEqual("; is `named_table' meant?", Nearest(named)),
    ?assertEqual("", Nearest(colour)),
    ?assertEqual("", Nearest("ttl")),
    ?assertEqual("", Nearest(list_to_atom(lists:duplicate(255, $t)))).

%% Words are short, and come soon, whatever the argument is.
hostile_arguments(_) ->
    Set = ats:new(t, []),
    Deep = lists:foldl(fun(N, T) -> {N, T} end, [], lists:seq(1, 100000)),
    Wide = lists:seq(1, 1000000),
    Terms = [Deep, Wide, [Wide | x], fun() -> Wide end, <<0:8000000>>, #{Wide => Deep},
             list_to_atom([1024, $', $`])],
    Calls = [
        {Function, Arguments}
     || Term <- Terms,
        {Function, Arguments} <- [
            {new, [t, [Term]]}, {new, [t, [{keypos, Term}]]}, {new, [t, [{Term, 1}]]},
            {new, [t, Term]}, {info, [Set, Term]}, {snapshot, [Set, [{max_age, Term}]]},
            {select, [Set, [Term]]}, {select, [Set, Term]}, {setopts, [Set, [Term]]},
            {merge, [Set, a, 1, {2, Term}]}, {lookup, [Term, a]}, {follow, [Set, #{Term => 1}]}
        ]
    ],
    [
        try apply(ats, Function, Arguments) of
            Result -> ?assertEqual([], Result)
        catch
            error:badarg:Stack ->
                Texts = ats_errors:format_error(badarg, Stack),
                ?assertMatch(#{}, Texts),
                ?assertNotEqual(#{}, Texts),
                [?assert(is_binary(T) andalso byte_size(T) < 400) || T <- maps:values(Texts)]
        end
     || {Function, Arguments} <- Calls
    ],
    true = ats:delete(Set).

%% @doc Code that was written for `ets', moved to `ats' by `ats_transform', works as before.
%%
%% The code is Erlang/OTP's own: modules that live on tables are copied under other names, the
%% copies are compiled with the transform, and original and copy are given the same random work.
-module(ats_transplant_SUITE).

-include_lib("proper/include/proper.hrl").
-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0, end_per_testcase/2]).
-export([digraphs/1, ordered_digraphs/1, process_groups/1, parsers/1, inlining/1,
         snmp_indexes/1, documents/1, every_module_of_otp/1]).

-import(ats_module_copy, [check/2, same/2, sort/1]).

suite() -> [{timetrap, {minutes, 15}}].

all() ->
    [digraphs, ordered_digraphs, process_groups, parsers, inlining, snmp_indexes, documents,
     every_module_of_otp].

end_per_testcase(_, _) -> ok.

%% Returns the result of a call, or its failure without the stack.
result(Module, Function, Arguments) ->
    try apply(Module, Function, Arguments)
    catch Class:Reason -> {Class, Reason}
    end.

%%--------------------------------------------------------------------------------------------
%% digraph and digraph_utils
%%--------------------------------------------------------------------------------------------

%% Compares both graphs. Lists in the order of a hash table may have another order.
digraphs(_) ->
    Copies = ats_module_copy:load(moved, [digraph, digraph_utils]),
    Vertex = frequency([{9, graph_vertex()}, {1, 1.0}]),
    compare_digraphs([digraph, digraph_utils], Copies, Vertex, fun any_order/1),
    ats_module_copy:unload(Copies).

%% Both with ordered tables instead of hash tables, so that all orders are the same.
ordered_digraphs(_) ->
    Ordered = #{set => ordered_set},
    Plain = ats_module_copy:load(plain, [digraph, digraph_utils], Ordered),
    Moved = ats_module_copy:load(moved, [digraph, digraph_utils], Ordered),
    compare_digraphs(Plain, Moved, graph_vertex(), fun(Result) -> Result end),
    ats_module_copy:unload(Plain ++ Moved).

compare_digraphs(Expected, Subject, Vertex, Order) ->
    check(?FORALL({Type, Commands}, {graph_type(), list(graph_command(Vertex))},
                  begin
                      Tables = lists:sort(ats:all()),
                      A = graph_results(Expected, Type, Commands, Order),
                      B = graph_results(Subject, Type, Commands, Order),
                      same(A, B) andalso same(Tables, lists:sort(ats:all()))
                  end), 300).

graph_type() ->
    list(oneof([cyclic, acyclic, protected, private])).

graph_vertex() ->
    frequency([{12, integer(1, 7)}, {1, oneof([{a, []}, "x", <<"y">>, ['$v' | 0]])}]).

graph_edge() ->
    oneof([?LET(N, integer(0, 12), ['$e' | N]), e1, e2]).

graph_command(Vertex) ->
    Label = oneof([label, 1.5, #{}]),
    frequency(
      [{1, {add_vertex, []}},
       {8, {add_vertex, [Vertex]}},
       {2, {add_vertex, [Vertex, Label]}},
       {20, {add_edge, [Vertex, Vertex]}},
       {4, {add_edge, [Vertex, Vertex, Label]}},
       {4, {add_edge, [graph_edge(), Vertex, Vertex, Label]}},
       {1, {del_vertex, [Vertex]}},
       {1, {del_vertices, [list(Vertex)]}},
       {2, {del_edge, [graph_edge()]}},
       {1, {del_edges, [list(graph_edge())]}},
       {1, {del_path, [Vertex, Vertex]}}]).

graph_results([Digraph, Utils] = Modules, Type, Commands, Order) ->
    case result(Digraph, new, [Type]) of
        {error, _} = Error ->
            [Error];
        Graph ->
            Done = [{Command, Order(result(Digraph, Function, [Graph | Arguments]))}
                    || {Function, Arguments} = Command <- Commands],
            Seen = graph_views(Modules, Graph, Order) ++ graph_paths(Digraph, Graph)
                ++ graph_searches(Utils, Graph, Order) ++ subgraphs(Modules, Graph, Order),
            ?assert(is_topological_order(Digraph, Graph, Utils:topsort(Graph))),
            true = Digraph:delete(Graph),
            Done ++ Seen
    end.

graph_views([Digraph, Utils], Graph, Order) ->
    Vertices = sort(Digraph:vertices(Graph)),
    Edges = sort(Digraph:edges(Graph)),
    [{F, Order(Digraph:F(Graph))}
     || F <- [vertices, edges, no_vertices, no_edges, source_vertices, sink_vertices]]
        ++ [{info, lists:keydelete(memory, 1, Digraph:info(Graph))}]
        ++ [{F, Order(Utils:F(Graph))}
            || F <- [components, strong_components, cyclic_strong_components, is_acyclic,
                     arborescence_root, is_arborescence, is_tree, loop_vertices, preorder,
                     postorder, topsort]]
        ++ [{vertex, V, Digraph:vertex(Graph, V)} || V <- [none | Vertices]]
        ++ [{edge, E, Digraph:edge(Graph, E)} || E <- [none | Edges]]
        %% Neighbours are in a bag, which keeps the order of insertion; edges of both directions
        %% have two keys there.
        ++ [{F, V, Digraph:F(Graph, V)}
            || F <- [out_neighbours, in_neighbours, out_edges, in_edges, out_degree, in_degree,
                     get_cycle, get_short_cycle],
               V <- [none | Vertices]]
        ++ [{edges, V, sort(Digraph:edges(Graph, V))} || V <- [none | Vertices]].

graph_paths(Digraph, Graph) ->
    Vertices = sort(Digraph:vertices(Graph)),
    [{F, V, W, Digraph:F(Graph, V, W)}
     || F <- [get_path, get_short_path], V <- Vertices, W <- [none | Vertices]].

graph_searches(Utils, Graph, Order) ->
    [{F, Vs, Order(Utils:F(Vs, Graph))}
     || F <- [reachable, reachable_neighbours, reaching, reaching_neighbours],
        Vs <- [[], [1], [2, 3], [7, 5, 1]]].

%% New graphs, which are filled in the order of a hash table.
subgraphs([Digraph, Utils], Graph, Order) ->
    Condensed = Utils:condensation(Graph),
    Condensation = {any_order(Digraph:vertices(Condensed)),
                    sort([{any_order(V), any_order(W)}
                          || E <- Digraph:edges(Condensed),
                             {_, V, W, _} <- [Digraph:edge(Condensed, E)]])},
    true = Digraph:delete(Condensed),
    [{condensation, Condensation}
     | [{subgraph, Arguments, Content(Digraph, result(Utils, subgraph, [Graph | Arguments]))}
        || {Arguments, Content} <-
               [{[[]], fun content/2},
                {[[1, 2, 3, 4]], fun content/2},
                {[[1, 2, 3], [{keep_labels, false}]], fun content/2},
                {[[5, 1], [{type, [acyclic]}]],
                 fun(_, Part) -> acyclic_content(Digraph, Graph, Part, Order) end},
                {[[1], [{type, nonsense}]], fun content/2}]]].

%% The order decides which edges of a circle are left out. If it is not given, each of them must
%% close a circle.
acyclic_content(Digraph, _, {error, _} = Error, _) ->
    content(Digraph, Error);
acyclic_content(Digraph, Graph, Part, Order) ->
    Vertices = Digraph:vertices(Part),
    Edges = [Digraph:edge(Graph, E) || E <- Digraph:edges(Graph)],
    [
        ?assert(
            Digraph:edge(Part, E) =:= Edge orelse V =:= W orelse
                Digraph:get_path(Part, W, V) =/= false
        )
     || {E, V, W, _} = Edge <- Edges, lists:member(V, Vertices), lists:member(W, Vertices)
    ],
    {Info, Kept, KeptEdges} = content(Digraph, Part),
    ?assertEqual([], KeptEdges -- Edges),
    case is_kept(Order) of
        true -> {Info, Kept, KeptEdges};
        false -> {Info, Kept}
    end.

is_kept(Order) -> Order([b, a]) =:= [b, a].

content(_Digraph, {error, _} = Error) ->
    Error;
content(Digraph, Graph) ->
    Content = {lists:keydelete(memory, 1, Digraph:info(Graph)),
               sort([Digraph:vertex(Graph, V) || V <- Digraph:vertices(Graph)]),
               sort([Digraph:edge(Graph, E) || E <- Digraph:edges(Graph)])},
    true = Digraph:delete(Graph),
    Content.

%% Every edge leads onwards, but those from a vertex to itself.
is_topological_order(Digraph, Graph, false) ->
    lists:any(fun(V) -> Digraph:get_cycle(Graph, V) =/= false end, Digraph:vertices(Graph));
is_topological_order(Digraph, Graph, Vertices) ->
    Positions = maps:from_list(lists:zip(Vertices, lists:seq(1, length(Vertices)))),
    lists:all(fun(Edge) ->
                      {_, V, W, _} = Digraph:edge(Graph, Edge),
                      V =:= W orelse map_get(V, Positions) < map_get(W, Positions)
              end, Digraph:edges(Graph)).

any_order(List) when is_list(List), length(List) >= 0 ->
    sort([any_order(Element) || Element <- List]);
any_order(Other) ->
    Other.

%%--------------------------------------------------------------------------------------------
%% pg
%%--------------------------------------------------------------------------------------------

%% A server with a table that its clients read, here in two scopes that get the same processes.
process_groups(_) ->
    [Moved] = Copies = ats_module_copy:load(moved, [pg]),
    check(?FORALL(Commands, list(group_command()),
                  begin
                      Workers = [spawn(fun() -> receive stop -> ok end end) || _ <- "workers"],
                      {ok, A} = pg:start(ats_transplant_expected),
                      {ok, B} = Moved:start(ats_transplant_subject),
                      Scopes = [{pg, ats_transplant_expected}, {Moved, ats_transplant_subject}],
                      Same = group_commands(Commands, Scopes, list_to_tuple(Workers)),
                      [gen_server:stop(Server) || Server <- [A, B]],
                      [exit(Worker, kill) || Worker <- Workers],
                      Same andalso same(undefined, ats:whereis(ats_transplant_subject))
                  end), 150),
    ats_module_copy:unload(Copies).

group_command() ->
    Group = oneof([a, {b, 1}, <<"c">>, 1, 1.0]),
    Worker = integer(1, length("workers")),
    Workers = oneof([Worker, non_empty(list(Worker))]),
    frequency([{6, {join, Group, Workers}}, {4, {leave, Group, Workers}}, {1, {kill, Worker}}]
              ++ [{1, {monitor, Group}} || erlang:function_exported(pg, monitor, 2)]).

group_commands([], Scopes, _Workers) ->
    %% The messages of the monitors of both.
    [Expected, Got] = [told(Scope) || Scope <- Scopes],
    same(Expected, Got);
group_commands([Command | Commands], Scopes, Workers) ->
    [Expected, Got] = [group_result(Command, Scope, Workers) || Scope <- Scopes],
    same({Command, Expected}, {Command, Got}) andalso group_commands(Commands, Scopes, Workers).

group_result({kill, N}, {Pg, Scope}, Workers) ->
    Worker = element(N, Workers),
    exit(Worker, kill),
    IsGone = fun() ->
                     lists:all(fun(Group) ->
                                       not lists:member(Worker, Pg:get_members(Scope, Group))
                               end, Pg:which_groups(Scope))
             end,
    ok = ats_test_lib:until(IsGone, 5000),
    groups(Pg, Scope);
group_result({monitor, Group}, {Pg, Scope}, _Workers) ->
    {Monitor, Members} = Pg:monitor(Scope, Group),
    %% References are not in the order in which they were made.
    put({Scope, length([S || {{S, _}, _} <- get(), S =:= Scope])}, Monitor),
    {Members, groups(Pg, Scope)};
group_result({Function, Group, Numbers}, {Pg, Scope}, Workers) ->
    %% The dead are not joined: whether the server had heard of it would be a matter of luck.
    case [Worker || N <- lists:flatten([Numbers]), Worker <- [element(N, Workers)],
                    is_process_alive(Worker)] of
        [] -> none;
        [One] when is_integer(Numbers) -> {Pg:Function(Scope, Group, One), groups(Pg, Scope)};
        Several -> {Pg:Function(Scope, Group, Several), groups(Pg, Scope)}
    end.

groups(Pg, Scope) ->
    {sort(Pg:which_groups(Scope)), sort(Pg:which_local_groups(Scope)),
     [{Group, Pg:get_members(Scope, Group), Pg:get_local_members(Scope, Group)}
      || Group <- sort([none | Pg:which_groups(Scope)])]}.

told({_Pg, Scope}) ->
    %% The scope has sent all of its messages before it answers.
    _ = sys:get_state(Scope),
    Monitors = lists:sort([{N, Monitor} || {{S, N}, Monitor} <- get(), S =:= Scope]),
    [erase({Scope, N}) || {N, _} <- Monitors],
    [messages(Monitor) || {_, Monitor} <- Monitors].

messages(Monitor) ->
    receive {Monitor, What, Group, Pids} -> [{What, Group, Pids} | messages(Monitor)]
    after 0 -> []
    end.

%%--------------------------------------------------------------------------------------------
%% yecc
%%--------------------------------------------------------------------------------------------

%% A generator of parsers, whose output is a file of Erlang or a list of complaints.
parsers(Config) ->
    [Moved] = Copies = ats_module_copy:load(moved, [yecc]),
    Name = filename:join(proplists:get_value(priv_dir, Config), "ats_transplant_parser"),
    check(?FORALL(Grammar, grammar(),
                  begin
                      ok = file:write_file(Name ++ ".yrl", Grammar),
                      same(parser(yecc, Name), parser(Moved, Name))
                  end), 150),
    ats_module_copy:unload(Copies).

parser(Yecc, Name) ->
    Source = Name ++ ".erl",
    _ = file:delete(Source),
    Result = Yecc:file(Name ++ ".yrl", [return, {report, false}, {parserfile, Source}]),
    {messages_of(Result), file:read_file(Source)}.

%% Without the name of the module that explains them.
messages_of({error, Errors, Warnings}) -> {error, what(Errors), what(Warnings)};
messages_of({ok, _File, Warnings}) -> {ok, what(Warnings)}.

what(Messages) ->
    [{Location, What} || {_File, InFile} <- Messages, {Location, _Module, What} <- InFile].

%% Rules for `s', `t' and `u'; many grammars are ambiguous, some mention unknown symbols.
grammar() ->
    Symbol = frequency([{10, oneof(["s", "t", "u", "'+'", "'-'", "id", "'('", "')'"])},
                        {1, "unknown"}]),
    Right = frequency([{9, ?LET(Symbols, resize(4, non_empty(list(Symbol))),
                                lists:join($\s, Symbols))},
                       {1, "'$empty'"}]),
    Rule = ?LET({Left, R}, {oneof(["s", "t", "u"]), Right}, [Left, " -> ", R, " : '$1'.\n"]),
    Precedence = oneof(["", "Left 100 '+' '-'.\n", "Nonassoc 50 '+'.\nRight 70 '-'.\n"]),
    Expect = oneof(["", "Expect 3.\n"]),
    ?LET({Rules, P, E}, {list(Rule), Precedence, Expect},
         ["Nonterminals s t u.\nTerminals '+' '-' id '(' ')'.\nRootsymbol s.\n", P, E,
          "s -> id : '$1'.\nt -> '(' s ')' : '$2'.\nu -> t : '$1'.\n", Rules]).

%%--------------------------------------------------------------------------------------------
%% cerl_inline
%%--------------------------------------------------------------------------------------------

%% A pass of the compiler, on modules of the standard library.
inlining(_) ->
    [Moved] = Copies = ats_module_copy:load(moved, [cerl_inline]),
    Modules = [{Module, core(Module)} || Module <- [lists, ordsets, queue, gb_sets]],
    check(?FORALL({{_, Core}, Size, Effort},
                  {oneof(Modules), integer(0, 60), integer(1, 150)},
                  begin
                      Options = [{inline_size, Size}, {inline_effort, Effort}],
                      same(cerl_inline:transform(Core, Options), Moved:transform(Core, Options))
                  end), 8),
    ats_module_copy:unload(Copies).

core(Module) ->
    {ok, Module, Core} = compile:forms(ats_module_copy:forms(Module), [to_core, binary]),
    cerl:from_records(Core).

%%--------------------------------------------------------------------------------------------
%% snmp_index
%%--------------------------------------------------------------------------------------------

%% An ordered table with keys that are lists of integers.
snmp_indexes(_) ->
    [Moved] = Copies = ats_module_copy:load(moved, [snmp_index]),
    KeyTypes = oneof([{string, integer}, {fix_string, string}, {integer, integer, string}]),
    check(?FORALL(Types, KeyTypes,
                  ?FORALL(Commands, list(index_command(Types)),
                          same(index_results(snmp_index, Types, Commands),
                               index_results(Moved, Types, Commands)))), 300),
    ats_module_copy:unload(Copies).

index_command(Types) ->
    Text = resize(4, list(oneof([$a, $b, 0, 255]))),
    Key = list_to_tuple([case Type of
                             integer -> oneof([0, 1, 2, 1 bsl 40]);
                             _ -> Text
                         end || Type <- tuple_to_list(Types)]),
    Oid = resize(8, list(oneof([0, 1, 2, 3, $a, $b]))),
    frequency([{6, {insert, [Key, integer()]}}, {2, {delete, [Key]}}, {3, {get, [Oid]}},
               {6, {get_next, [Oid]}}, {1, {get_last, []}}, {3, {key, Key}}]).

index_results(Module, Types, Commands) ->
    Index = Module:new(Types),
    Results = [{Command, index_result(Module, Index, Command)} || Command <- Commands],
    true = Module:delete(Index),
    Results.

index_result(Module, Index, {key, Key}) ->
    Oid = Module:key_to_oid(Index, Key),
    {Oid, Module:get(Index, Oid), Module:get_next(Index, Oid)};
index_result(Module, Index, {Function, Arguments}) ->
    case apply(Module, Function, [Index | Arguments]) of
        Index -> index;
        Found -> Found
    end.

%%--------------------------------------------------------------------------------------------
%% xmerl
%%--------------------------------------------------------------------------------------------

%% A parser that keeps the definitions of a document in a table, and validates with them.
documents(_) ->
    [Moved, _] = Copies = ats_module_copy:load(moved, [xmerl_scan, xmerl_validate]),
    check(?FORALL({Text, Validation}, {document(), oneof([off, dtd])},
                  begin
                      Options = [{validation, Validation}, {quiet, true}],
                      same(scanned(xmerl_scan, [Text, Options]), scanned(Moved, [Text, Options]))
                  end), 300),
    ats_module_copy:unload(Copies).

%% Missing references are reported in the order of a hash table.
scanned(Module, Arguments) ->
    case result(Module, string, Arguments) of
        {exit, {fatal, {{Why, Names}, File, Line, Column}}} when is_list(Names) ->
            {exit, {fatal, {{Why, lists:sort(Names)}, File, Line, Column}}};
        Result ->
            Result
    end.

document() ->
    Name = oneof(["a", "b", "c", "d"]),
    Model = oneof(["(#PCDATA)", "ANY", "EMPTY", "(a|b)*", "(b,c?)", "(#PCDATA|c)*"]),
    Definition = oneof([?LET({N, M}, {Name, Model}, ["<!ELEMENT ", N, " ", M, ">\n"]),
                        ?LET(N, Name, ["<!ATTLIST ", N, " id ID #IMPLIED r IDREF #IMPLIED>\n"]),
                        ?LET(N, Name, ["<!ENTITY e", N, " \"text of ", N, "\">\n"])]),
    ?LET({Definitions, Content}, {list(Definition), xml_element(4, Name)},
         lists:flatten(["<!DOCTYPE a [\n", Definitions, "]>\n", Content])).

xml_element(0, Name) ->
    oneof(["text", " ", ?LET(N, Name, ["&e", N, ";"])]);
xml_element(Depth, Name) ->
    ?LET({N, Attribute, Children},
         {Name,
          oneof(["", ?LET(I, integer(1, 3), [" id='i", $0 + I, "'"]),
                 ?LET(I, integer(1, 3), [" r='i", $0 + I, "'"])]),
          resize(3, list(?LAZY(xml_element(Depth - 1, Name))))},
         ["<", N, Attribute, ">", Children, "</", N, ">"]).

%%--------------------------------------------------------------------------------------------
%% Everything
%%--------------------------------------------------------------------------------------------

%% Every module of Erlang/OTP can be transformed, and `ats' lacks no function it needs.
every_module_of_otp(_) ->
    Files = [File || Directory <- code:get_path(), lists:prefix(code:lib_dir(), Directory),
                     File <- filelib:wildcard(filename:join(Directory, "*.beam"))],
    Moved = [{Module, ats_transform:parse_transform(Forms, [])}
             || File <- Files, uses_ets(File), {Module, Forms} <- code_of(File)],
    ?assertEqual([], [{Module, what(Errors)} || {Module, {error, Errors, _}} <- Moved]),
    ?assertEqual([], [Module || {Module, Result} <- Moved, still_calls_ets(Result)]),
    ?assert(length(Moved) > 20, Moved),
    {comment, integer_to_list(length(Moved)) ++ " modules"}.

uses_ets(File) ->
    {ok, {Module, [{imports, Imports}]}} = beam_lib:chunks(File, [imports]),
    Module =/= ets andalso lists:keymember(ets, 1, Imports).

%% A distribution may leave it out.
code_of(File) ->
    case beam_lib:chunks(File, [abstract_code]) of
        {ok, {Module, [{abstract_code, {raw_abstract_v1, Forms}}]}} -> [{Module, Forms}];
        {ok, _} -> []
    end.

still_calls_ets({warning, Forms, _}) ->
    still_calls_ets(Forms);
still_calls_ets({remote, _, {atom, _, ets}, {atom, _, Function}}) ->
    Function =/= fun2ms;
still_calls_ets(Tuple) when is_tuple(Tuple) ->
    still_calls_ets(tuple_to_list(Tuple));
still_calls_ets([Head | Tail]) ->
    still_calls_ets(Head) orelse still_calls_ets(Tail);
still_calls_ets(_) ->
    false.

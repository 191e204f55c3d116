%% @private
%% @doc Tables as the source of queries: the functions that `qlc' calls.
%%
%% A query over one table becomes look-ups, if it asks for single keys, or else a match
%% specification. That is planned as any other, so conditions on the key decide how much of the
%% table is read.
%%
%% A handle reads its table by the functions of a *facade*: the module that the user called, which
%% `qlc' names when it shows the query. So this module knows no kind of tables.
-module(ats_qlc).

-export([table/3, table/4, table_of_snapshot/4]).

-export_type([option/0]).

-type option() :: {n_objects, default | pos_integer()}
                | {traverse, first_next | last_prev | select | {select, ats:match_spec()}}.

-type table() :: term().
%% A table of the facade; opaque to this module.

-type objects() :: maybe_improper_list(term(), fun(() -> objects()) | []).
%% A list whose tail is a function that returns the rest.

-type step() :: {Key :: term(), [tuple()]} | '$end_of_table'.

-type walk() :: ats_snapshot:walk() | none.
%% The table of a moment that a walk reads, or `none' if it reads the table itself.

-define(DEFAULT_N_OBJECTS, 100).

%% Results of which no moment is kept.
-define(FEW, 32).

%% Walks of a query that are begun before those are looked for that were left.
-define(FEW_WALKS, 64).

%% The source of a query: a table of a facade, of which each walk sees a moment if there is a key.
-record(source, {facade :: module(),
                 table :: table(),
                 key = none :: none | {?MODULE, reference()}}).

%% State of a running query in the dictionary of its process, under the key of the source.
-record(query, {open = [] :: [Moment :: ats:tid()],
                room = ?FEW_WALKS :: non_neg_integer(),
                outer :: #query{} | undefined}).

%% @doc Returns a handle of a table of that facade.
-spec table(Facade :: module(), table(), [option()] | option()) -> qlc:query_handle().
table(Facade, Table, Asked) ->
    table(Facade, Table, Table, Asked).

%% @doc Returns a handle of a table, which is shown with the name that the user has given it.
-spec table(Facade :: module(), Shown :: term(), table(), [option()] | option()) ->
          qlc:query_handle().
table(Facade, Shown, Table, Asked) ->
    table_of(#source{facade = Facade, table = Table}, Shown, Asked).

%% @doc Returns a handle of a table of the native library, of which each walk sees one moment.
%% Look-ups see the table as it is.
-spec table_of_snapshot(Facade :: module(), Shown :: ats:table(), ats:table(),
                      [option()] | option()) -> qlc:query_handle().
table_of_snapshot(Facade, Shown, Table, Asked) ->
    Source = #source{facade = Facade, table = Table, key = {?MODULE, make_ref()}},
    table_of(Source, Shown, Asked).

-spec table_of(#source{}, Shown :: term(), [option()] | option()) -> qlc:query_handle().
table_of(#source{facade = Facade, table = Table} = Source, Shown, Asked) ->
    {Traverse, Rest} = take(traverse, select, options(Asked)),
    {NObjects, Further} = take(n_objects, default, Rest),
    Callbacks = [{pre_fun, fun(_) -> begin_query(Source) end},
                 {post_fun, fun() -> end_query(Source) end},
                 {info_fun, fun(Item) -> info(Facade, Table, Item) end},
                 {format_fun, fun(What) -> format(Facade, Shown, Asked, What) end},
                 {key_equality, key_equality(Facade, Table)},
                 {lookup_fun, lookup_fun(Source, Traverse)}],
    Traversal = traversal(Source, Traverse, n_objects(NObjects)),
    try qlc:table(Traversal, Callbacks ++ Further)
    catch
        error:badarg -> wrong_options()
    end.

%%--------------------------------------------------------------------------------------------
%% Walks
%%
%% The table is fixed as long as a query goes on, which may walk through it many times. Each walk of
%% a source with a key has a moment, which ends with the walk. `qlc' leaves walks, for example where
%% one side of a join has no more: their moments end when the functions are freed that would go on,
%% or with the query.
%%--------------------------------------------------------------------------------------------

-spec begin_query(#source{}) -> term().
begin_query(#source{facade = Facade, table = Table, key = none}) ->
    Facade:safe_fixtable(Table, true);
begin_query(#source{facade = Facade, table = Table, key = Key}) ->
    true = Facade:safe_fixtable(Table, true),
    %% A query may have the same handle twice, also in the function of a filter.
    put(Key, #query{outer = get(Key)}).

-spec end_query(#source{}) -> term().
end_query(#source{facade = Facade, table = Table, key = none}) ->
    Facade:safe_fixtable(Table, false);
end_query(#source{facade = Facade, table = Table, key = Key}) ->
    #query{open = Open, outer = Outer} = erase(Key),
    Outer =:= undefined orelse put(Key, Outer),
    lists:foreach(fun ats_snapshot:end_walk/1, Open),
    Facade:safe_fixtable(Table, false).

-spec begin_walk(#source{}) -> walk().
begin_walk(#source{key = none}) ->
    none;
begin_walk(#source{table = Table, key = Key}) ->
    case asked(fun() -> ats_snapshot:begin_walk(Table) end) of
        none ->
            none;
        {Moment, _Held} = Walk ->
            #query{open = Open} = Query = make_room(get(Key)),
            put(Key, Query#query{open = [Moment | Open], room = Query#query.room - 1}),
            Walk
    end.

%% Makes a call that no function of the facade makes.
-spec asked(fun(() -> Answer)) -> Answer.
asked(Call) ->
    try Call()
    catch error:{ats_error, Cause} -> erlang:error(ats_errors:reason(Cause))
    end.

%% Forgets walks that have ended since they were left. So there are at most twice as many as have
%% not, and each was looked at about once.
-spec make_room(#query{}) -> #query{}.
make_room(#query{open = Open, room = 0} = Query) ->
    Left = lists:filter(fun ats_snapshot:is_on_its_way/1, Open),
    Query#query{open = Left, room = max(?FEW_WALKS, length(Left))};
make_room(Query) ->
    Query.

-spec read_by(walk(), #source{}) -> table().
read_by(none, #source{table = Table}) -> Table;
read_by({Moment, _Held}, _Source) -> Moment.

%% Ends a walk. Returns the end of the list of objects.
-spec end_walk(walk(), #source{}) -> [].
end_walk(none, _Source) ->
    [];
end_walk({Moment, _Held}, #source{key = Key}) ->
    #query{open = Open} = Query = get(Key),
    put(Key, Query#query{open = lists:delete(Moment, Open)}),
    true = ats_snapshot:end_walk(Moment),
    [].

%%--------------------------------------------------------------------------------------------
%% Options
%%--------------------------------------------------------------------------------------------

-spec options(term()) -> [term()].
options(Options) when is_list(Options) ->
    try length(Options) of
        _ -> Options
    catch
        error:badarg -> wrong_options()
    end;
options(Option) ->
    [Option].

-spec take(atom(), term(), [term()]) -> {term(), [term()]}.
take(Key, Default, Options) ->
    case lists:keytake(Key, 1, Options) of
        {value, {Key, Value}, Others} -> {Value, Others};
        {value, _, _} -> wrong_options();
        false -> {Default, Options}
    end.

-spec n_objects(term()) -> pos_integer().
n_objects(default) -> ?DEFAULT_N_OBJECTS;
n_objects(N) when is_integer(N), N >= 1 -> N;
n_objects(_) -> wrong_options().

-spec wrong_options() -> no_return().
wrong_options() ->
    erlang:error({ats_error, none}).

%%--------------------------------------------------------------------------------------------
%% Callbacks
%%--------------------------------------------------------------------------------------------

-spec traversal(#source{}, term(), pos_integer()) ->
          fun(() -> objects()) | fun((ats:match_spec()) -> objects()).
traversal(Source, select, N) ->
    fun(MatchSpec) -> select(Source, MatchSpec, N) end;
traversal(Source, {select, MatchSpec}, N) ->
    fun() -> select(Source, MatchSpec, N) end;
traversal(#source{facade = Facade} = Source, first_next, _N) ->
    fun() -> steps(Source, fun Facade:first_lookup/1, fun Facade:next_lookup/2) end;
traversal(#source{facade = Facade} = Source, last_prev, _N) ->
    fun() -> steps(Source, fun Facade:last_lookup/1, fun Facade:prev_lookup/2) end;
traversal(_Source, _Unknown, _N) ->
    wrong_options().

-spec select(#source{}, ats:match_spec(), pos_integer()) -> objects().
select(#source{facade = Facade} = Source, MatchSpec, N) ->
    case few(Source, MatchSpec) of
        more ->
            Walk = begin_walk(Source),
            chunks(Source, Walk, Facade:select(read_by(Walk, Source), MatchSpec, N));
        [] ->
            [];
        Results ->
            %% A list with a function as its tail: `qlc' would sort a complete list as a whole.
            Results ++ fun() -> [] end
    end.

%% Returns all results, if they are so few that no moment has to be kept. It is here that the option
%% `full_scan' of the table counts, which a moment does not have.
-spec few(#source{}, ats:match_spec()) -> [term()] | more.
few(#source{key = none}, _MatchSpec) -> more;
few(#source{table = Table}, MatchSpec) ->
    asked(fun() -> ats_select:few(Table, MatchSpec, ?FEW) end).

-spec chunks(#source{}, walk(), {[term()], Continuation :: term()} | '$end_of_table') -> objects().
chunks(Source, Walk, '$end_of_table') ->
    end_walk(Walk, Source);
chunks(#source{facade = Facade} = Source, Walk, {Results, Continuation}) ->
    Results ++ fun() -> chunks(Source, Walk, Facade:select(Continuation)) end.

-spec steps(#source{}, fun((table()) -> step()), fun((table(), Key :: term()) -> step())) ->
          objects().
steps(Source, First, Next) ->
    Walk = begin_walk(Source),
    Table = read_by(Walk, Source),
    steps(Source, Walk, First(Table), fun(Key) -> Next(Table, Key) end).

-spec steps(#source{}, walk(), step(), fun((Key :: term()) -> step())) -> objects().
steps(Source, Walk, '$end_of_table', _Next) -> end_walk(Walk, Source);
steps(Source, Walk, {Key, Objects}, Next) ->
    Objects ++ fun() -> steps(Source, Walk, Next(Key), Next) end.

%% A specification of the user would be lost in look-ups.
-spec lookup_fun(#source{}, term()) -> undefined | fun((pos_integer(), [term()]) -> [tuple()]).
lookup_fun(_Source, {select, _MatchSpec}) ->
    undefined;
lookup_fun(#source{facade = Facade, table = Table}, _Traverse) ->
    fun(_KeyPos, Keys) -> lists:flatmap(fun(Key) -> Facade:lookup(Table, Key) end, Keys) end.

%% An exception names the function that the user has called, and not one that was called here. The
%% type of a table is only refused if the term is no table.
-spec key_equality(module(), table()) -> '==' | '=:='.
key_equality(Facade, Table) ->
    try ats_options:is_ordered(Facade:info(Table, type)) of
        true -> '==';
        false -> '=:='
    catch
        error:badarg -> erlang:error({ats_error, type})
    end.

-spec info(module(), table(), atom()) -> term().
info(Facade, Table, num_of_objects) -> Facade:info(Table, size);
info(Facade, Table, keypos) -> Facade:info(Table, keypos);
info(Facade, Table, is_unique_objects) ->
    not lists:member(Facade:info(Table, type), [duplicate_bag, ordered_duplicate_bag]);
info(Facade, Table, is_sorted_key) ->
    ats_options:is_ordered(Facade:info(Table, type));
info(_Facade, _Table, _Item) -> undefined.

%% Returns the form in which `qlc:info/1,2' shows the table.
-spec format(module(), table(), term(), tuple()) ->
          {module(), atom(), [term()]} | iolist().
format(Facade, Table, [], {all, _N, _Shorten}) ->
    {Facade, table, [Table]};
format(Facade, Table, Options, {all, _N, _Shorten}) ->
    {Facade, table, [Table, Options]};
format(Facade, Table, Options, {match_spec, MatchSpec}) ->
    {Facade, table, [Table, [{traverse, {select, MatchSpec}} | options(Options)]]};
format(Facade, Table, _Options, {lookup, _KeyPos, [Key], _N, Shorten}) ->
    io_lib:format("~w:lookup(~w, ~w)", [Facade, Table, Shorten(Key)]);
format(Facade, Table, _Options, {lookup, _KeyPos, Keys, _N, Shorten}) ->
    io_lib:format("lists:flatmap(fun(V) -> ~w:lookup(~w, V) end, ~w)",
                  [Facade, Table, lists:map(Shorten, Keys)]).

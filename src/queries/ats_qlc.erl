%% @private
%% @doc Tables as the source of queries: the functions that `qlc' calls.
%%
%% A query over one table becomes look-ups, if it asks for single keys, or else a match
%% specification. That is planned as any other, so conditions on the key decide how much of the
%% table is read.
%%
%% A handle reads its table by the functions of a *facade*: the module that the user called, which
%% is named in what `qlc' says of the query. So this module knows no kind of tables.
-module(ats_qlc).

-export([table/3, table/4]).

-export_type([option/0]).

-type option() :: {n_objects, default | pos_integer()}
                | {traverse, first_next | last_prev | select | {select, ats:match_spec()}}.

-type table() :: term().
%% A table of the facade, which alone knows what that is.

-type objects() :: maybe_improper_list(term(), fun(() -> objects()) | []).
%% A list whose tail is a function that returns the rest.

-define(DEFAULT_N_OBJECTS, 100).

%% @doc A handle of a table of that facade.
-spec table(Facade :: module(), table(), [option()] | option()) -> qlc:query_handle().
table(Facade, Table, Asked) ->
    table(Facade, Table, Table, Asked).

%% @doc A handle of a table that is shown by what the user has called it.
-spec table(Facade :: module(), Shown :: term(), table(), [option()] | option()) ->
          qlc:query_handle().
table(Facade, Shown, Table, Asked) ->
    {Traverse, Rest} = take(traverse, select, options(Asked)),
    {NObjects, Further} = take(n_objects, default, Rest),
    Callbacks = [{pre_fun, fun(_) -> Facade:safe_fixtable(Table, true) end},
                 {post_fun, fun() -> Facade:safe_fixtable(Table, false) end},
                 {info_fun, fun(Item) -> info(Facade, Table, Item) end},
                 {format_fun, fun(What) -> format(Facade, Shown, Asked, What) end},
                 {key_equality, key_equality(Facade, Table)},
                 {lookup_fun, lookup_fun(Facade, Table, Traverse)}],
    Traversal = traversal(Facade, Table, Traverse, n_objects(NObjects)),
    try qlc:table(Traversal, Callbacks ++ Further)
    catch
        error:badarg -> wrong_options()
    end.

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

-spec traversal(module(), table(), term(), pos_integer()) ->
          fun(() -> objects()) | fun((ats:match_spec()) -> objects()).
traversal(Facade, Table, select, N) ->
    fun(MatchSpec) -> chunks(Facade, Facade:select(Table, MatchSpec, N)) end;
traversal(Facade, Table, {select, MatchSpec}, N) ->
    fun() -> chunks(Facade, Facade:select(Table, MatchSpec, N)) end;
traversal(Facade, Table, first_next, _N) ->
    fun() -> steps(Table, Facade:first_lookup(Table), fun Facade:next_lookup/2) end;
traversal(Facade, Table, last_prev, _N) ->
    fun() -> steps(Table, Facade:last_lookup(Table), fun Facade:prev_lookup/2) end;
traversal(_Facade, _Table, _Unknown, _N) ->
    wrong_options().

-spec chunks(module(), {[term()], Continuation :: term()} | '$end_of_table') -> objects().
chunks(_Facade, '$end_of_table') ->
    [];
chunks(Facade, {Results, Continuation}) ->
    Results ++ fun() -> chunks(Facade, Facade:select(Continuation)) end.

-spec steps(table(), {term(), [tuple()]} | '$end_of_table',
            fun((table(), term()) -> {term(), [tuple()]} | '$end_of_table')) -> objects().
steps(_Table, '$end_of_table', _Step) -> [];
steps(Table, {Key, Objects}, Step) ->
    Objects ++ fun() -> steps(Table, Step(Table, Key), Step) end.

%% A specification of the user would be lost in look-ups.
-spec lookup_fun(module(), table(), term()) ->
          undefined | fun((pos_integer(), [term()]) -> [tuple()]).
lookup_fun(_Facade, _Table, {select, _MatchSpec}) ->
    undefined;
lookup_fun(Facade, Table, _Traverse) ->
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

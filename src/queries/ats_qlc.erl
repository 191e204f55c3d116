%% @private
%% @doc Tables as the source of queries: the functions that `qlc' calls.
%%
%% A query over one table becomes look-ups, if it asks for single keys, or else a match
%% specification. That is planned as any other, so conditions on the key decide how much of the
%% table is read.
-module(ats_qlc).

-export([table/2]).

-export_type([option/0]).

-type option() :: {n_objects, default | pos_integer()}
                | {traverse, first_next | last_prev | select | {select, ats:match_spec()}}.

-type objects() :: maybe_improper_list(term(), fun(() -> objects()) | []).
%% A list whose tail is a function that returns the rest.

-define(DEFAULT_N_OBJECTS, 100).

-spec table(ats:table(), [option()] | option()) -> qlc:query_handle().
table(Table, Asked) ->
    {Traverse, Rest} = take(traverse, select, options(Asked)),
    {NObjects, Further} = take(n_objects, default, Rest),
    Callbacks = [{pre_fun, fun(_) -> ats:safe_fixtable(Table, true) end},
                 {post_fun, fun() -> ats:safe_fixtable(Table, false) end},
                 {info_fun, fun(Item) -> info(Table, Item) end},
                 {format_fun, fun(What) -> format(Table, Asked, What) end},
                 {key_equality, key_equality(Table)},
                 {lookup_fun, lookup_fun(Table, Traverse)}],
    Traversal = traversal(Table, Traverse, n_objects(NObjects)),
    try qlc:table(Traversal, Callbacks ++ Further)
    catch
        error:badarg -> wrong_options()
    end.

%%--------------------------------------------------------------------------------------------
%% Options
%%--------------------------------------------------------------------------------------------

-spec options(term()) -> [term()].
options(Options) when is_list(Options) ->
    case is_integer(catch length(Options)) of
        true -> Options;
        false -> wrong_options()
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

-spec traversal(ats:table(), term(), pos_integer()) ->
          fun(() -> objects()) | fun((ats:match_spec()) -> objects()).
traversal(Table, select, N) ->
    fun(MatchSpec) -> chunks(ats:select(Table, MatchSpec, N)) end;
traversal(Table, {select, MatchSpec}, N) ->
    fun() -> chunks(ats:select(Table, MatchSpec, N)) end;
traversal(Table, first_next, _N) ->
    fun() -> steps(Table, ats:first_lookup(Table), fun ats:next_lookup/2) end;
traversal(Table, last_prev, _N) ->
    fun() -> steps(Table, ats:last_lookup(Table), fun ats:prev_lookup/2) end;
traversal(_Table, _Unknown, _N) ->
    wrong_options().

-spec chunks({[term()], ats:continuation()} | '$end_of_table') -> objects().
chunks('$end_of_table') -> [];
chunks({Results, Continuation}) -> Results ++ fun() -> chunks(ats:select(Continuation)) end.

-spec steps(ats:table(), {term(), [tuple()]} | '$end_of_table',
            fun((ats:table(), term()) -> {term(), [tuple()]} | '$end_of_table')) -> objects().
steps(_Table, '$end_of_table', _Step) -> [];
steps(Table, {Key, Objects}, Step) ->
    Objects ++ fun() -> steps(Table, Step(Table, Key), Step) end.

%% A specification of the user would be lost in look-ups.
-spec lookup_fun(ats:table(), term()) ->
          undefined | fun((pos_integer(), [term()]) -> [tuple()]).
lookup_fun(_Table, {select, _MatchSpec}) ->
    undefined;
lookup_fun(Table, _Traverse) ->
    fun(_KeyPos, Keys) -> lists:flatmap(fun(Key) -> ats:lookup(Table, Key) end, Keys) end.

-spec key_equality(ats:table()) -> '==' | '=:='.
key_equality(Table) ->
    case ats_info:item(type, Table) of
        ordered_set -> '==';
        _ -> '=:='
    end.

-spec info(ats:table(), atom()) -> term().
info(Table, num_of_objects) -> ats:info(Table, size);
info(Table, keypos) -> ats:info(Table, keypos);
info(Table, is_unique_objects) -> ats:info(Table, type) =/= duplicate_bag;
info(Table, is_sorted_key) -> ats:info(Table, type) =:= ordered_set;
info(_Table, _Item) -> undefined.

%% How `qlc:info/1,2' shows the table.
-spec format(ats:table(), term(), tuple()) -> {module(), atom(), [term()]} | iolist().
format(Table, [], {all, _N, _Shorten}) ->
    {ats, table, [Table]};
format(Table, Options, {all, _N, _Shorten}) ->
    {ats, table, [Table, Options]};
format(Table, Options, {match_spec, MatchSpec}) ->
    {ats, table, [Table, [{traverse, {select, MatchSpec}} | options(Options)]]};
format(Table, _Options, {lookup, _KeyPos, [Key], _N, Shorten}) ->
    io_lib:format("ats:lookup(~w, ~w)", [Table, Shorten(Key)]);
format(Table, _Options, {lookup, _KeyPos, Keys, _N, Shorten}) ->
    io_lib:format("lists:flatmap(fun(V) -> ats:lookup(~w, V) end, ~w)",
                  [Table, lists:map(Shorten, Keys)]).

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

-export([table/3, table/4, table_of_moment/4]).

-export_type([option/0]).

-type option() :: {n_objects, default | pos_integer()}
                | {traverse, first_next | last_prev | select | {select, ats:match_spec()}}.

-type table() :: term().
%% A table of the facade, which alone knows what that is.

-type objects() :: maybe_improper_list(term(), fun(() -> objects()) | []).
%% A list whose tail is a function that returns the rest.

-define(DEFAULT_N_OBJECTS, 100).

%% What a query reads: the table that it finds then, and what is done before and after.
-record(source, {facade :: module(),
                 table :: fun(() -> table()),
                 pre :: fun(() -> term()),
                 post :: fun(() -> term())}).

%% @doc A handle of a table of that facade.
-spec table(Facade :: module(), table(), [option()] | option()) -> qlc:query_handle().
table(Facade, Table, Asked) ->
    table(Facade, Table, Table, Asked).

%% @doc A handle of a table that is shown by what the user has called it.
-spec table(Facade :: module(), Shown :: term(), table(), [option()] | option()) ->
          qlc:query_handle().
table(Facade, Shown, Table, Asked) ->
    Fixed = #source{facade = Facade,
                    table = fun() -> Table end,
                    pre = fun() -> Facade:safe_fixtable(Table, true) end,
                    post = fun() -> Facade:safe_fixtable(Table, false) end},
    table_of(Fixed, Shown, Table, Asked).

%% @doc A handle of a table of the native library, of which a query reads one moment.
%%
%% The process that runs a query keeps the moment in its dictionary, since it reads by functions
%% that were made before the query has begun.
-spec table_of_moment(Facade :: module(), Shown :: ats:table(), ats:table(),
                      [option()] | option()) -> qlc:query_handle().
table_of_moment(Facade, Shown, Table, Asked) ->
    Key = {?MODULE, make_ref()},
    Begin = fun() ->
                    Reading = try ats_moment:begin_reading(Table)
                              catch error:{ats_error, Cause} ->
                                      erlang:error(ats_errors:reason(Cause))
                              end,
                    put(Key, {Reading, get(Key)})
            end,
    End = fun() ->
                  case erase(Key) of
                      {Reading, undefined} -> ats_moment:end_reading(Reading);
                      {Reading, Outer} -> put(Key, Outer), ats_moment:end_reading(Reading)
                  end
          end,
    Source = fun() ->
                     case get(Key) of
                         undefined -> Table;
                         {Reading, _Outer} -> ats_moment:source(Reading)
                     end
             end,
    OfMoment = #source{facade = Facade, table = Source, pre = Begin, post = End},
    table_of(OfMoment, Shown, Table, Asked).

-spec table_of(#source{}, Shown :: term(), table(), [option()] | option()) -> qlc:query_handle().
table_of(#source{facade = Facade} = Source, Shown, Table, Asked) ->
    {Traverse, Rest} = take(traverse, select, options(Asked)),
    {NObjects, Further} = take(n_objects, default, Rest),
    Callbacks = [{pre_fun, fun(_) -> (Source#source.pre)() end},
                 {post_fun, Source#source.post},
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
traversal(#source{facade = Facade, table = Source}, select, N) ->
    fun(MatchSpec) -> chunks(Facade, Facade:select(Source(), MatchSpec, N)) end;
traversal(#source{facade = Facade, table = Source}, {select, MatchSpec}, N) ->
    fun() -> chunks(Facade, Facade:select(Source(), MatchSpec, N)) end;
traversal(#source{facade = Facade, table = Source}, first_next, _N) ->
    fun() ->
            Table = Source(),
            steps(Table, Facade:first_lookup(Table), fun Facade:next_lookup/2)
    end;
traversal(#source{facade = Facade, table = Source}, last_prev, _N) ->
    fun() ->
            Table = Source(),
            steps(Table, Facade:last_lookup(Table), fun Facade:prev_lookup/2)
    end;
traversal(_Source, _Unknown, _N) ->
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
-spec lookup_fun(#source{}, term()) -> undefined | fun((pos_integer(), [term()]) -> [tuple()]).
lookup_fun(_Source, {select, _MatchSpec}) ->
    undefined;
lookup_fun(#source{facade = Facade, table = Source}, _Traverse) ->
    fun(_KeyPos, Keys) ->
            Table = Source(),
            lists:flatmap(fun(Key) -> Facade:lookup(Table, Key) end, Keys)
    end.

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

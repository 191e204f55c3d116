%% @doc Numbers of tables for Prometheus, taken when they are asked for: a collector for the library
%% `prometheus', and for programs without it {@link text/0}.
%%
%% ```
%% ok = ats_prometheus:register().
%% '''
%%
%% or `{prometheus, [{collectors, [default, ats_prometheus]}]}' in the environment. The parameter
%% `prometheus_tables' of this application, 20 by default, says how many tables have series of their
%% own: those that take most memory. All others are one, with the name `others'. Tables of one name
%% and type are one, too. Prometheus refuses all series if one is there twice, so names that are not
%% plain atoms stand as Erlang writes them, and tables on disk whose names are written alike even
%% then, such as two funs, are one. The library has to be there, which this application does not
%% depend on.
%%
%% <dl>
%% <dt>`ats_tables', `ats_objects', `ats_bytes'</dt><dd>the sums over all tables in memory</dd>
%% <dt>`ats_table_objects', `ats_table_bytes', `ats_table_locks', `ats_table_fixations',
%% `ats_table_contended_total', `ats_table_uncontended_total', `ats_table_expired_total',
%% `ats_table_evicted_total', `ats_table_hits_total', `ats_table_misses_total'</dt>
%% <dd>labels `table', `type'</dd>
%% <dt>`ats_disk_' and an item of `dats:info(Name, stats)'</dt><dd>label `table'</dd>
%% </dl>
-module(ats_prometheus).

-export([register/0, text/0, collect_mf/2, deregister_cleanup/1]).

%% A series of numbers with its name, help and type, each number with its labels.
-type family() :: {Name :: iolist(), Help :: string(), gauge | counter | untyped,
                   [{[{atom(), atom() | binary()}], integer()}]}.

-define(TABLE, [{objects, size, gauge, "Objects in a table."},
                {bytes, memory_bytes, gauge, "Memory that a table takes."},
                {locks, locks, gauge, "Parts of a table that can be written at the same time."},
                {fixations, fixations, gauge, "Processes that fix a table."},
                {contended_total, contended, counter, "Writes that had to wait for a lock."},
                {uncontended_total, uncontended, counter, "Writes that got a lock at once."},
                {expired_total, expired, counter, "Keys whose time has passed."},
                {evicted_total, evicted, counter, "Keys that went because of a bound."},
                {hits_total, hits, counter, "Reads that found a key, about."},
                {misses_total, misses, counter, "Reads that found no key, about."}]).
-define(TOTAL, [{tables, tables, "Tables in memory."}, {objects, size, "Objects in memory."},
                {bytes, memory_bytes, "Memory that tables take."}]).

%% @doc Registers the collector.
-spec register() -> ok.
register() ->
    Registry = library(prometheus_registry),
    ok = Registry:register_collector(?MODULE).

%% @doc Returns the numbers in the text format of Prometheus, version 0.0.4, for a handler of
%% `/metrics' that a program has itself. The media type is `text/plain; version=0.0.4'.
-spec text() -> binary().
text() ->
    <<_/binary>> = unicode:characters_to_binary([in_text(Family) || Family <- families()]).

-spec in_text(family()) -> unicode:chardata().
in_text({_Name, _Help, _Type, []}) ->
    [];
in_text({Name, Help, Type, Numbers}) ->
    [["# HELP ", Name, " ", Help, "\n# TYPE ", Name, " ", atom_to_list(Type), "\n"]
     | [[Name, in_braces(Labels), " ", integer_to_list(Number), "\n"]
        || {Labels, Number} <- Numbers]].

-spec in_braces([{atom(), atom() | binary()}]) -> unicode:chardata().
in_braces([]) ->
    [];
in_braces(Labels) ->
    ["{", lists:join(",", [[atom_to_list(Label), "=\"", escaped(Value), "\""]
                           || {Label, Value} <- Labels]), "}"].

-spec escaped(atom() | binary()) -> unicode:chardata().
escaped(Value) when is_atom(Value) ->
    atom_to_list(Value);
escaped(Value) ->
    Escapes = [{"\\", "\\\\"}, {"\"", "\\\""}, {"\n", "\\n"}],
    lists:foldl(fun({Mark, Escape}, Text) -> string:replace(Text, Mark, Escape, all) end, Value,
                Escapes).

%% The name is not written where it is called, because the module need not exist.
-spec library(module()) -> module().
library(Module) ->
    case code:ensure_loaded(Module) of
        {module, Module} -> Module;
        {error, _} -> error({no_library, Module})
    end.

%% @hidden
-spec deregister_cleanup(term()) -> ok.
deregister_cleanup(_) -> ok.

%% @hidden
-spec collect_mf(Registry :: term(), fun((term()) -> term())) -> ok.
collect_mf(_, Callback) ->
    lists:foreach(fun(Family) -> emit(Callback, Family) end, families()).

-spec families() -> [family()].
families() ->
    Totals = ats_metrics:totals(),
    Tables = ats_watch:tables(application:get_env(ats, prometheus_tables, 20)),
    Disk = lists:foldl(fun({Name, Stats}, Sums) ->
                               maps:update_with(label(Name), fun(Sum) -> add(Sum, Stats) end, Stats,
                                                Sums)
                       end, #{}, ats_metrics:disk()),
    Items = lists:usort(lists:append([maps:keys(Stats) || Stats <- maps:values(Disk)])),
    [{["ats_", name(Name)], Help, gauge, [{[], maps:get(Key, Totals)}]}
     || {Name, Key, Help} <- ?TOTAL]
        ++ [{["ats_table_", name(Name)], Help, Type,
             [{[{table, label(Table)}, {type, Kind}], maps:get(Key, Numbers)}
              || #{name := Table, type := Kind} = Numbers <- Tables]}
            || {Name, Key, Type, Help} <- ?TABLE]
        ++ [{["ats_disk_", name(Item)], "See dats:info(Name, stats).", untyped,
             [{[{table, Label}], Number} || {Label, #{Item := Number}} <- maps:to_list(Disk)]}
            || Item <- Items].

-spec add(Stats, Stats) -> Stats when Stats :: #{atom() => integer()}.
add(A, B) -> maps:merge_with(fun(_, X, Y) -> X + Y end, A, B).

-spec name(atom()) -> string().
name(Name) -> atom_to_list(Name).

%% A plain atom without quotes looks like no other term.
-spec label(term()) -> binary().
label(Name) ->
    Plain = is_atom(Name) andalso
        re:run(atom_to_binary(Name), "^[a-zA-Z_][a-zA-Z0-9_@.]*$", [dollar_endonly]) =/= nomatch,
    case Plain of
        true -> atom_to_binary(Name);
        false -> unicode:characters_to_binary(io_lib:format("~0tp", [Name]))
    end.

-spec emit(fun((term()) -> term()), family()) -> term().
emit(_Callback, {_Name, _Help, _Type, []}) ->
    ok;
emit(Callback, {Name, Help, Type, Metrics}) ->
    Model = library(prometheus_model_helpers),
    Callback(Model:create_mf(iolist_to_binary(Name), Help, Type, Metrics)).

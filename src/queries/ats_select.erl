%% @private
%% @doc Match specifications on tables: the calls that take more than one native call.
%%
%% A native call does about half a millisecond's worth of work. If there is more to do it returns
%% its state: the table's identifier, a reference to the compiled specification and a position. All
%% of it are terms of the calling process, so nothing is left behind when that is killed; and
%% between two calls other processes have their turn.
%%
%% A slice of a snapshot of a table on disk may end before a key whose values a module has to merge
%% first. They are merged between two calls, and the next slice begins with this key. A chunk of the
%% table itself is `pending' then.
-module(ats_select).

-include_lib("kernel/include/logger.hrl").

-export([list/3, few/3, take/2, count/2, delete/2, replace/2, chunk/4, continue/1, repair/2]).
-export([compile/1, run/2, explain/2]).
-export([list_more/2, count_more/2, fill_range/3, objects/1]).
-export([table_of/1, move_to/2]).

-export_type([continuation/0, explanation/0]).

-type source() :: ats:table() | {Moment :: ats:tid(), ats:table()}.
%% The source of the chunks of a query: a moment of the table, or the table itself.
-opaque continuation() ::
        {source(), ats_nif:place(), Limit :: pos_integer(),
         ats:compiled_match_spec() | {range, ats:compiled_match_spec()},
         Rest :: [term()]} | '$end_of_table'.
%% `Rest' are results that were found together with the last ones of a chunk, but were too many. A
%% compiled range knows its ends, which no specification tells. The table is a name only if it is an
%% `ordered_set' that the caller knows by that.

-type explanation() ::
        #{access := nothing | points | ranges | everything,
          plan := [Condition :: binary()],
          known := boolean(),
          compile_nanoseconds := non_neg_integer(),
          rows_read := non_neg_integer(),
          rows_returned := non_neg_integer(),
          run_microseconds := non_neg_integer()}.

-define(OBJECTS, [{'_', [], ['$_']}]).

-type chunk() :: {[term()], continuation()} | '$end_of_table' | pending.

%% Returns the first slice. If it is the beginning of a full scan of which the owner of the table
%% wants to hear, that is said first.
-spec start(ats:table(), ats:match_spec(), ats_nif:how()) -> ats_nif:selected() | more.
start(Table, MatchSpec, How) ->
    case ats_nif:select_start(Table, MatchSpec, How) of
        warn ->
            ?LOG_WARNING("~tp reads the whole table ~tp for the match specification ~tp",
                         [self(), Table, MatchSpec],
                         #{domain => [ats], ats_event => full_scan, ats_table => Table}),
            start(Table, MatchSpec, How);
        Selected ->
            Selected
    end.

%% @doc Returns all results, in a direction of the keys.
-spec list(ats:table(), ats:match_spec(), up | down) -> [term()].
list(Table, MatchSpec, Direction) ->
    list_more(start(Table, MatchSpec, Direction), Direction).

%% @doc Returns all results, of one moment, if one slice finds them and they are at most `Most'.
-spec few(ats:table(), ats:match_spec(), pos_integer()) -> [term()] | more.
few(Table, MatchSpec, Most) ->
    start(Table, MatchSpec, {query, Most}).

%% @doc Deletes the objects whose result is `true', and returns them.
-spec take(ats:table(), ats:match_spec()) -> [tuple()].
take(Table, MatchSpec) ->
    list_more(start(Table, MatchSpec, take), take).

%% @doc Returns the rest of a list that was begun.
-spec list_more(ats_nif:selected(), up | down | take) -> [term()].
list_more(Results, _How) when is_list(Results) ->
    Results;
list_more(Selected, How) ->
    ats_collect:list(more(How), unknown, resolve_pending(Selected)).

%% @doc Returns all objects.
-spec objects(ats:table()) -> [tuple()].
objects(Table) ->
    case ats_nif:select_start(Table, ?OBJECTS, objects) of
        Objects when is_list(Objects) ->
            Objects;
        Selected ->
            %% An object takes about as much room in a table as on a heap, often a little more.
            ats_collect:list(more(objects), words(Table), resolve_pending(Selected))
    end.

-spec more(up | down | take | objects) -> ats_collect:more().
more(How) ->
    fun(Id, Compiled, Place, SoFar) ->
            resolve_pending(ats_nif:select_more(Id, Compiled, Place, How, SoFar))
    end.

%% Returns a slice that can go on.
-spec resolve_pending(ats_nif:selected()) -> ats_nif:selected().
resolve_pending({pending, Id, Compiled, Place, SoFar}) ->
    ok = ats_merge_pending:resolve(Id),
    {more, Id, Compiled, Place, SoFar};
resolve_pending(Selected) ->
    Selected.

-spec words(ats:table()) -> non_neg_integer() | unknown.
words(Table) ->
    case ats_info:item(memory, Table) of
        undefined -> unknown;
        Words -> Words
    end.

%% @doc Counts the objects whose result is `true'.
-spec count(ats:table(), ats:match_spec()) -> non_neg_integer().
count(Table, MatchSpec) ->
    count_more(start(Table, MatchSpec, count), count).

%% @doc Deletes the objects whose result is `true', and returns how many.
-spec delete(ats:table(), ats:match_spec()) -> non_neg_integer().
delete(Table, MatchSpec) ->
    count_more(start(Table, MatchSpec, delete), delete).

%% @doc Replaces objects by their results, and returns how many.
-spec replace(ats:table(), ats:match_spec()) -> non_neg_integer().
replace(Table, MatchSpec) ->
    count_more(start(Table, MatchSpec, replace), replace).

%% @doc Returns the rest of a number that was begun.
-spec count_more(ats_nif:selected(), count | delete | replace) -> non_neg_integer().
count_more({more, Id, Compiled, Place, Count}, How) ->
    count_more(ats_nif:select_more(Id, Compiled, Place, How, Count), How);
count_more({pending, _, _, _, _} = Selected, How) ->
    count_more(resolve_pending(Selected), How);
count_more(Count, _How) ->
    Count.

%% @doc Returns the first `Limit' results, and where to go on.
-spec chunk(ats:table(), ats:match_spec(), up | down, pos_integer()) -> chunk().
chunk(Table, MatchSpec, Direction, Limit) ->
    by_name(Table, fill(start(Table, MatchSpec, {Direction, Limit}), Direction, Limit)).

%% Puts the name in the continuation of an `ordered_set' that the caller knows by its name: as in
%% `ets', it goes on in the table that has the name then. All slices of one call read the same
%% table.
-spec by_name(ats:table(), chunk()) -> chunk().
by_name(Name, {Results, {Source, Place, Limit, Compiled, Rest}} = Chunk) when is_atom(Name) ->
    case ats_info:item(type, table_of_source(Source)) of
        ordered_set -> {Results, {rename(Source, Name), Place, Limit, Compiled, Rest}};
        _ -> Chunk
    end;
by_name(_Table, Chunk) ->
    Chunk.

-spec rename(source(), atom()) -> source().
rename({Moment, _Id}, Name) -> {Moment, Name};
rename(_Id, Name) -> Name.

-spec table_of_source(source()) -> ats:table().
table_of_source({_Moment, Table}) -> Table;
table_of_source(Table) -> Table.

%% Returns the table that has the name of an `ordered_set' now.
-spec of_name(atom()) -> ats:tid().
of_name(Name) ->
    case ats_info:item(id, Name) of
        undefined ->
            erlang:error({ats_error, id});
        Id ->
            case ats_info:item(type, Id) of
                ordered_set -> Id;
                _ -> erlang:error({ats_error, none})
            end
    end.

%% @doc Returns the first chunk of a range that was begun.
-spec fill_range(ats_nif:selected(), up | down, pos_integer()) -> chunk().
fill_range(Selected, Direction, Limit) ->
    of_range(fill(Selected, Direction, Limit)).

-spec of_range(chunk()) -> chunk().
of_range({Results, {Id, Place, Limit, Compiled, Rest}}) ->
    {Results, {Id, Place, Limit, {range, Compiled}, Rest}};
of_range(LastChunk) ->
    LastChunk.

%% Completes the first chunk of a query.
-spec fill(ats_nif:selected(), up | down, pos_integer()) -> chunk().
fill({Tag, Id, Compiled, Place, Results}, Direction, Limit) ->
    %% The source is a moment of a table, or the table itself.
    Source = case ats_nif:table_of_snapshot(Id) of
                 none -> Id;
                 Table -> {Id, Table}
             end,
    fill({Tag, Source, Compiled, Place, Results}, Direction, Limit, Limit, []);
fill(Selected, Direction, Limit) ->
    fill(Selected, Direction, Limit, Limit, []).

%% Returns the next slice. A moment ends if the next chunk comes too late, or if it holds back too
%% much memory; and a continuation may have been a binary in between. Then the chunks that follow
%% show the table as it is.
-spec next(source(), ats:compiled_match_spec(), ats_nif:place(), up | down, pos_integer()) ->
          ats_nif:selected().
next({Moment, Name} = Source, Compiled, Place, Direction, Wanted) when is_atom(Name) ->
    Id = of_name(Name),
    case ats_nif:table_of_snapshot(Moment) of
        Id -> next_of_moment(Source, Compiled, Place, Direction, Wanted);
        _Other -> next(Id, Compiled, Place, Direction, Wanted)
    end;
next({_Moment, _Id} = Source, Compiled, Place, Direction, Wanted) ->
    next_of_moment(Source, Compiled, Place, Direction, Wanted);
next(Id, Compiled, Place, Direction, Wanted) ->
    ats_nif:select_more(Id, Compiled, Place, {Direction, Wanted}, []).

-spec next_of_moment({ats:tid(), ats:table()}, ats:compiled_match_spec(), ats_nif:place(),
                     up | down, pos_integer()) -> ats_nif:selected().
next_of_moment({Moment, Table} = Source, Compiled, Place, Direction, Wanted) ->
    try ats_nif:select_more(Moment, Compiled, Place, {Direction, Wanted}, []) of
        {Tag, Moment, Compiled, NewPlace, Results} ->
            {Tag, Source, Compiled, NewPlace, Results};
        Results ->
            Results
    catch
        error:{ats_error, Cause} when Cause =:= snapshot_ended; Cause =:= id; Cause =:= type ->
            next(present(Table), Compiled, Place, Direction, Wanted)
    end.

-spec present(ats:table()) -> ats:tid().
present(Name) when is_atom(Name) -> of_name(Name);
present(Id) -> Id.

%% @doc Returns the next chunk.
-spec continue(continuation()) -> chunk().
continue('$end_of_table') ->
    '$end_of_table';
continue({Id, Place, Limit, {range, Compiled}, Rest}) ->
    of_range(continue({Id, Place, Limit, Compiled, Rest}));
continue({Name, Place, Limit, Compiled, Rest}) when is_atom(Name) ->
    by_name(Name, continue({of_name(Name), Place, Limit, Compiled, Rest}));
continue({Source, Place, Limit, Compiled, Rest})
  when is_integer(Limit), Limit > 0, is_list(Rest),
       (Place =:= done orelse tuple_size(Place) =:= 3) ->
    case length(Rest) of
        Found when Found < Limit, Place =/= done ->
            {Direction, _, _} = Place,
            Wanted = Limit - Found,
            Selected = next(Source, Compiled, Place, Direction, Wanted),
            fill(Selected, Direction, Wanted, Limit, [Rest]);
        Found ->
            %% The table is not read, but it must be there.
            _ = ats_nif:first(present(table_of_source(Source))),
            case Place of
                done when Found =< Limit -> {Rest, '$end_of_table'};
                _ -> cut(Rest, Limit, Source, Compiled, Place)
            end
    end;
continue(_) ->
    erlang:error({ats_error, none}).

%% A slice may be over before a chunk is full; and if several objects have the same key, there may
%% be more in it than was wanted.
-spec fill(ats_nif:selected() | tuple(), up | down, pos_integer(), pos_integer(), [[term()]]) ->
          chunk().
fill({more, Source, Compiled, Place, Results}, Direction, Wanted, Limit, Parts) ->
    case length(Results) of
        Found when Found < Wanted ->
            Missing = Wanted - Found,
            Selected = next(Source, Compiled, Place, Direction, Missing),
            fill(Selected, Direction, Missing, Limit, [Results | Parts]);
        Wanted ->
            {ats_collect:in_order(Results, Parts), {Source, Place, Limit, Compiled, []}};
        _ ->
            cut(ats_collect:in_order(Results, Parts), Limit, Source, Compiled, Place)
    end;
fill({pending, Id, Compiled, Place, Results}, Direction, Wanted, Limit, Parts) ->
    case ats_merge_pending:resolve(Id) of
        ok -> fill({more, Id, Compiled, Place, Results}, Direction, Wanted, Limit, Parts);
        no_snapshot -> pending
    end;
fill({done, Source, Compiled, _Place, Results}, _Way, _Wanted, Limit, Parts) ->
    cut(ats_collect:in_order(Results, Parts), Limit, Source, Compiled, done);
fill(Results, _Way, _Wanted, _Limit, Parts) ->
    case ats_collect:in_order(Results, Parts) of
        [] -> '$end_of_table';
        All -> {All, '$end_of_table'}
    end.

-spec cut([term()], pos_integer(), source(), ats:compiled_match_spec(), ats_nif:place()) ->
          chunk().
cut(Results, Limit, Source, Compiled, Place) ->
    {Chunk, Rest} = lists:split(Limit, Results),
    {Chunk, {Source, Place, Limit, Compiled, Rest}}.

%% @doc Returns the table in which a continuation goes on.
-spec table_of(continuation()) -> ats:table() | '$end_of_table'.
table_of({Source, _Place, _Limit, _Compiled, _Rest}) -> table_of_source(Source);
table_of('$end_of_table') -> '$end_of_table';
table_of(_) -> erlang:error({ats_error, none}).

%% @doc Returns a continuation that goes on in another table, which has the same keys.
-spec move_to(continuation(), ats:tid()) -> continuation().
move_to('$end_of_table', _Table) -> '$end_of_table';
move_to(Continuation, Table) -> setelement(1, Continuation, Table).

%% @doc Makes a continuation that was a binary in between usable again. That of a range would lose
%% its end.
-spec repair(continuation(), ats:match_spec()) -> continuation().
repair('$end_of_table', _MatchSpec) ->
    '$end_of_table';
repair({_Id, _Place, Limit, {range, Compiled}, Rest} = Continuation, _MatchSpec)
  when is_integer(Limit), is_list(Rest) ->
    case ats_nif:is_compiled_ms(Compiled) of
        true -> Continuation;
        false -> erlang:error({ats_error, range})
    end;
repair({Id, Place, Limit, Compiled, Rest} = Continuation, MatchSpec)
  when is_integer(Limit), is_list(Rest) ->
    case ats_nif:is_compiled_ms(Compiled) of
        true -> Continuation;
        false -> {Id, Place, Limit, compile(MatchSpec), Rest}
    end.

%% @doc Compiles a specification: for tables, and by the virtual machine for lists, since these lie
%% on the heap of the caller, where its own code finds them.
-spec compile(ats:match_spec()) -> ats:compiled_match_spec().
compile(MatchSpec) ->
    try ets:match_spec_compile(MatchSpec) of
        CompiledByVm -> ats_nif:match_spec_compile(MatchSpec, CompiledByVm)
    catch
        error:badarg -> erlang:error({ats_error, none});
        error:system_limit -> erlang:error({ats_error, system_limit})
    end.

-spec run([term()], ats:compiled_match_spec()) -> [term()].
run(List, Compiled) ->
    CompiledByVm = ats_nif:match_spec_by_vm(Compiled),
    try ets:match_spec_run(List, CompiledByVm)
    catch
        error:badarg -> erlang:error({ats_error, none})
    end.

%% @doc Runs a specification without building its results, and returns the cost and its causes;
%% `pending' like a chunk.
-spec explain(ats:table(), ats:match_spec()) -> explanation() | pending.
explain(Table, MatchSpec) ->
    {Access, Plan, Known, Nanoseconds, Compiled} = ats_nif:explain(Table, MatchSpec),
    Begun = erlang:monotonic_time(),
    case rows(ats_nif:select_start(Table, Compiled, rows)) of
        pending ->
            pending;
        {Read, Returned} ->
            Time = erlang:monotonic_time() - Begun,
            #{access => Access,
              plan => binary:split(Plan, <<"\n">>, [global, trim_all]),
              known => Known,
              compile_nanoseconds => Nanoseconds,
              rows_read => Read,
              rows_returned => Returned,
              run_microseconds => erlang:convert_time_unit(Time, native, microsecond)}
    end.

-spec rows(ats_nif:selected()) -> ats_nif:rows() | pending.
rows({more, Id, Compiled, Place, Rows}) ->
    rows(ats_nif:select_more(Id, Compiled, Place, rows, Rows));
rows({pending, Id, Compiled, Place, Rows}) ->
    case ats_merge_pending:resolve(Id) of
        ok -> rows({more, Id, Compiled, Place, Rows});
        no_snapshot -> pending
    end;
rows({_Read, _Returned} = Rows) ->
    Rows.

%% @private
%% @doc Filling tables: from a function, from Dets tables, and Dets tables from them.
%%
%% The module `dets' knows tables of `ets' only, so objects are handed over by functions here.
%%
%% A table of any facade is filled from a function: if an object is refused, the caller exits with
%% the exception of the facade. Objects between Dets and a table go through the native library, so
%% that errors of the table can be told from those of Dets.
-module(ats_dets).

-export([fill/3, from_dets/2, to_dets/2]).

-export_type([init_fun/0]).

-type init_fun() :: fun((read | close) -> end_of_input | {[term()], init_fun()} | term()).

-define(CHUNK_SIZE_OBJECTS, 100).

%% @doc Inserts the objects that a function provides into a table of a facade.
-spec fill(Facade :: module(), Table :: term(), init_fun()) -> true.
fill(Facade, Table, Function) ->
    go_on(Facade, Table, Function(read)).

-spec go_on(module(), Table :: term(), term()) -> true.
go_on(_Facade, _Table, end_of_input) ->
    true;
go_on(Facade, Table, {Objects, Function}) when is_list(Objects), is_function(Function) ->
    try insert_each(Facade, Table, Objects)
    catch
        error:Reason:Stack ->
            %% The answer of the function to its end does not matter any more.
            _ = try Function(close) catch _:_ -> ok end,
            exit({Reason, Stack})
    end,
    go_on(Facade, Table, Function(read));
go_on(_Facade, _Table, Neither) ->
    exit(Neither).

%% One at a time, because an element may itself be a list of objects. The elements before a wrong
%% one are inserted.
-spec insert_each(module(), Table :: term(), term()) -> ok.
insert_each(Facade, Table, [Object | Objects]) ->
    true = Facade:insert(Table, Object),
    insert_each(Facade, Table, Objects);
insert_each(_Facade, _Table, []) ->
    ok.

%% @doc Inserts the objects of a Dets table.
-spec from_dets(ats:table(), dets:tab_name()) -> true.
from_dets(Table, DetsTable) ->
    case ats_nif:info(Table) of
        undefined -> erlang:error({ats_error, id});
        _ -> ok
    end,
    Insert = fun(Object, ok) -> check_inserted(ats_nif:insert(Table, Object)) end,
    ok = call_dets(fun() -> dets:foldl(Insert, ok, DetsTable) end),
    true.

-spec check_inserted(true) -> ok.
check_inserted(true) -> ok.

%% @doc Replaces the objects of a Dets table by those of a table.
-spec to_dets(ats:table(), DetsTable) -> DetsTable.
to_dets(Table, DetsTable) ->
    ats_snapshot:read(Table, fun(Source) -> write_dets(Source, DetsTable) end).

-spec write_dets(ats:table(), DetsTable) -> DetsTable.
write_dets(Source, DetsTable) ->
    Provider = make_provider(Source, first_chunk(Source, start, [])),
    ok = call_dets(fun() -> dets:init_table(DetsTable, Provider, [{format, term}]) end),
    DetsTable.

%% Returns as many objects as `ets' reads at first, or all: a single call returns fewer if they take
%% long.
-spec first_chunk(ats:table(), start | ats_nif:position(), [[tuple()]]) ->
          {[tuple()], done | ats_nif:position()}.
first_chunk(Table, Position, Before) ->
    Wanted = ?CHUNK_SIZE_OBJECTS - lists:sum([length(Objects) || Objects <- Before]),
    case ats_nif:chunk(Table, Position, Wanted) of
        {Objects, Next} when Next =/= done, length(Objects) < Wanted ->
            first_chunk(Table, Next, [Objects | Before]);
        {Objects, Next} ->
            {lists:append(lists:reverse(Before, [Objects])), Next}
    end.

%% The process of the Dets table calls this function, so of a private table all but the first chunk
%% are out of its reach, as in `ets'.
-spec make_provider(ats:table(), {[tuple()], done | ats_nif:position()} | done) ->
          fun((read | close) -> term()).
make_provider(Table, Chunk) ->
    fun(close) ->
            ok;
       (read) ->
            case Chunk of
                done ->
                    end_of_input;
                {Objects, done} ->
                    {Objects, make_provider(Table, done)};
                {Objects, Position} ->
                    Next = ats_nif:chunk(Table, Position, ?CHUNK_SIZE_OBJECTS),
                    {Objects, make_provider(Table, Next)}
            end
    end.

%% Calls Dets, which reports a failure in several ways: it returns an error, or the reason it
%% caught, or throws that.
-spec call_dets(fun(() -> term())) -> ok.
call_dets(Dets) ->
    Answer = try Dets()
             catch
                 throw:Thrown -> Thrown;
                 _:Raised -> raise_failure(Raised)
             end,
    case Answer of
        ok -> ok;
        {error, Reason} -> raise_failure(Reason);
        {'EXIT', {Reason, _Stack}} -> raise_failure(Reason);
        Unexpected -> raise_failure(Unexpected)
    end.

-spec raise_failure(term()) -> no_return().
raise_failure({ats_error, _} = OfTable) -> erlang:error(OfTable);
raise_failure(Reason) -> erlang:error({ats_error, {dets, Reason}}).

%% @private
%% @doc The reference-counted binaries that a table refers to, as `ats:info(Table, binary)' shows
%% them.
%%
%% A process knows which binaries it refers to, and how many references there are to each; that is
%% all that the virtual machine tells. So a process that refers to no other reads the objects, and
%% takes its own references off. Binaries that are left with no reference were made for it alone:
%% the table has that as a copy.
-module(ats_binaries).

-export([of_table/1]).

-export_type([binaries/0]).

%% Identifier, size in bytes and number of references, for each time that an object refers to it.
-type binaries() :: [{Id :: non_neg_integer(), Size :: non_neg_integer(),
                      References :: pos_integer()}].

-define(OBJECTS, [{'_', [], ['$_']}]).

%% @doc Returns the binaries of a table, also of a private one of another process, while others go
%% on to write. `undefined' if it ends meanwhile.
-spec of_table(ats:tid()) -> undefined | binaries().
of_table(Table) ->
    {Reader, Monitor} = spawn_monitor(fun() -> exit({read, read(Table)}) end),
    receive
        {'DOWN', Monitor, process, Reader, {read, Binaries}} -> Binaries;
        {'DOWN', Monitor, process, Reader, Reason} -> exit(Reason)
    end.

-spec read(ats:tid()) -> undefined | binaries().
read(Table) ->
    read(Table, ?OBJECTS, start, []).

-spec read(ats:tid(), ats:match_spec(), start | ats_nif:place(), [binaries()]) ->
          undefined | binaries().
read(Table, MatchSpec, Place, Parts) ->
    case slice(ats_nif:read_unprotected(Table, MatchSpec, Place)) of
        undefined ->
            undefined;
        {done, Part} ->
            lists:append(lists:reverse(Parts, [Part]));
        {more, Compiled, Next, Part} ->
            %% The objects must be gone before more are read, or they would be found once more.
            true = erlang:garbage_collect(),
            read(Table, Compiled, Next, [Part | Parts])
    end.

%% Returns the binaries of a slice. A function of its own, so that nothing on the stack refers to
%% the objects when it has returned.
-spec slice(undefined | ats_nif:selected()) ->
          undefined | {done, binaries()}
          | {more, ats:compiled_match_spec(), ats_nif:place(), binaries()}.
slice(undefined) ->
    undefined;
slice({part, Table, Compiled, Place, {Part, Objects}}) ->
    slice({more, Table, Compiled, Place, [Part | Objects]});
slice({more, _Table, Compiled, Place, Objects}) ->
    {more, Compiled, Place, others(Objects, process_info(self(), binary))};
slice(Objects) ->
    {done, others(Objects, process_info(self(), binary))}.

%% Returns the binaries of this process, less its own references. It has them by its objects alone,
%% which are an argument so that they are still there when the process is asked.
-spec others([tuple() | [tuple()]], {binary, binaries()}) -> binaries().
others([], _) ->
    [];
others([_ | _], {binary, Binaries}) ->
    Count = fun({Id, _, _}, Own) -> maps:update_with(Id, fun(N) -> N + 1 end, 1, Own) end,
    Own = lists:foldl(Count, #{}, Binaries),
    [{Id, Size, References - map_get(Id, Own)}
     || {Id, Size, References} <- Binaries, References > map_get(Id, Own)].

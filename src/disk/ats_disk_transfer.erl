%% @private
%% @doc Objects of tables on disk to tables in memory, and the other way round.
%%
%% They go in lists, so that neither the caller nor the journal needs more memory for more objects. After each list a function is told how many objects there were so far, and how many
%% there will be, if that is known.
-module(ats_disk_transfer).

-export([out/3, in/3]).

-export_type([progress/0]).

-type progress() :: fun((Done :: non_neg_integer(), Total :: non_neg_integer() | unknown) -> term()).
-type target() :: {ats | ets, Table :: term()}.
-type source() :: {ats | ets | dets, Table :: term()}.

-define(AT_ONCE, 1000).
-define(EVERYTHING, [{'_', [], ['$_']}]).

%% @doc Inserts all objects, as they are at one moment, into a table in memory.
-spec out(ats:tid(), target(), progress()) -> ok.
out(Table, {Module, Target}, Progress) ->
    Insert = fun(Objects, Before) ->
                     true = Module:insert(Target, Objects),
                     Done = Before + length(Objects),
                     _ = Progress(Done, unknown),
                     Done
             end,
    _ = ats_disk_walk:fold_chunks(Insert, 0, Table, up),
    ok.

%% @doc Inserts the objects of another table. An answer of `dets' that is none is the result.
-spec in(ats:tid(), source(), progress()) -> ok | {error, term()}.
in(Table, {Module, Source}, Progress) ->
    Total = Module:info(Source, size),
    _ = Module:safe_fixtable(Source, true),
    try
        First = Module:select(Source, ?EVERYTHING, ?AT_ONCE),
        in_chunks(First, Module, Table, 0, Total, Progress)
    after
        Module:safe_fixtable(Source, false)
    end.

-spec in_chunks(term(), module(), ats:tid(), non_neg_integer(), non_neg_integer() | undefined,
                progress()) -> ok | {error, term()}.
in_chunks('$end_of_table', _Module, _Table, _Done, _Total, _Progress) ->
    ok;
in_chunks({error, _} = Failed, _Module, _Table, _Done, _Total, _Progress) ->
    Failed;
in_chunks({Objects, Continuation}, Module, Table, Before, Total, Progress) ->
    true = ats_nif:insert(Table, Objects),
    Done = Before + length(Objects),
    _ = Progress(Done, Total),
    in_chunks(Module:select(Continuation), Module, Table, Done, Total, Progress).

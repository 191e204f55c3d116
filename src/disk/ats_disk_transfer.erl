%% @private
%% @doc Objects of tables on disk to tables in memory, and the other way round.
%%
%% They go in lists, so that neither the caller nor the journal needs more memory for more objects. After each list a function is told how many objects there were so far, and how many
%% there will be, if that is known.
-module(ats_disk_transfer).

-export([out/3, in/3, init/2]).

-export_type([progress/0]).

-type progress() :: fun((Done :: non_neg_integer(), Total :: non_neg_integer() | unknown) -> term()).
-type target() :: {ats | ets, Table :: term()}.
-type source() :: {ats | ets | dets, Table :: term()}.

-define(AT_ONCE, 1000).
-define(EVERYTHING, [{'_', [], ['$_']}]).

%% @doc Inserts all objects, as they are at one moment, into a table in memory. What is wrong with that
%% is found out before all is read, if it can be.
-spec out(ats:tid(), target(), progress()) -> ok.
out(Table, {Module, Target}, Progress) ->
    _ = is_there(Module, Target) orelse erlang:error({ats_error, target}),
    Insert = fun(Objects, Before) ->
                     true = asked(fun() -> Module:insert(Target, Objects) end, target),
                     Done = Before + length(Objects),
                     _ = Progress(Done, unknown),
                     Done
             end,
    _ = ats_disk_walk:fold_chunks(Insert, 0, Table, up),
    ok.

%% @doc Replaces all objects by those of another table. An answer of `dets' that is none is the result.
-spec in(ats:tid(), source(), progress()) -> ok | {error, term()}.
in(Table, {Module, Source}, Progress) ->
    _ = is_there(Module, Source) orelse erlang:error({ats_error, source}),
    Total = Module:info(Source, size),
    _ = asked(fun() -> Module:safe_fixtable(Source, true) end, source),
    try
        true = ats_nif:delete_all_objects(Table),
        First = Module:select(Source, ?EVERYTHING, ?AT_ONCE),
        in_chunks(First, Module, Table, 0, Total, Progress)
    after
        Module:safe_fixtable(Source, false)
    end.

-spec is_there(module(), term()) -> boolean().
is_there(Module, Table) ->
    try Module:info(Table, size) =/= undefined
    catch error:badarg -> false
    end.

%% What another table refuses has this cause.
-spec asked(fun(() -> Answer), source | target) -> Answer.
asked(Call, Cause) ->
    try Call()
    catch error:badarg -> erlang:error({ats_error, Cause})
    end.

%% @doc Replaces all objects by those that a function provides.
-spec init(ats:tid(), ats_dets:init_fun()) -> ok | {error, term()}.
init(Table, InitFun) ->
    true = ats_nif:delete_all_objects(Table),
    provided(Table, InitFun(read)).

-spec provided(ats:tid(), term()) -> ok | {error, term()}.
provided(_Table, end_of_input) ->
    ok;
provided(Table, {Objects, Next}) when is_list(Objects), is_function(Next) ->
    try ats_nif:insert(Table, Objects) of
        true -> provided(Table, Next(read))
    catch
        error:{ats_error, none} -> stopped(Next, {error, invalid_objects_list})
    end;
provided(_Table, Other) ->
    {error, {init_fun, Other}}.

%% What the function makes of its end does not matter any more.
-spec stopped(ats_dets:init_fun(), {error, Reason}) -> {error, Reason}.
stopped(Function, Failed) ->
    _ = catch Function(close),
    Failed.

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

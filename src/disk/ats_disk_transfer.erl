%% @private
%% @doc Objects of tables on disk to tables in memory, and the other way round.
%%
%% They go in lists, so that the caller needs no more memory for more objects. After each list a
%% function is told how many objects there were so far, and how many there will be, if that is
%% known.
-module(ats_disk_transfer).

-export([out/3, in/3, init/2]).

-export_type([progress/0]).

-type progress() :: fun((Done :: non_neg_integer(), Total :: non_neg_integer() | unknown) ->
                        term()).
-type target() :: {ats | ets, Table :: term()}.
-type source() :: {ats | ets | dets, Table :: term()}.

-define(AT_ONCE, 1000).
%% Bytes of objects that replace others at one moment. They are in memory three times then.
-define(AT_ONE_MOMENT, (128 bsl 20)).

%% The table, and where objects go: into a table in memory at first, into the table itself later.
-record(stage, {table :: ats:tid(), into :: ats:tid()}).

-define(EVERYTHING, [{'_', [], ['$_']}]).

%% @doc Inserts all objects, as they are at one moment, into a table in memory. Reasons against it
%% are found before all is read, if they can be.
-spec out(ats:tid(), target(), progress()) -> ok.
out(Table, {Module, Target}, Progress) ->
    _ = is_there(Module, Target) orelse erlang:error({ats_error, target}),
    Insert = fun(Objects, Before) ->
                     true = call_other(fun() -> Module:insert(Target, Objects) end, target),
                     Done = Before + length(Objects),
                     _ = Progress(Done, unknown),
                     Done
             end,
    _ = ats_disk_walk:fold_chunks(Insert, 0, Table, up),
    ok.

%% @doc Replaces all objects by those of another table. An error of `dets' is the result.
-spec in(ats:tid(), source(), progress()) -> ok | {error, term()} | fixed.
in(Table, {Module, Source} = From, Progress) ->
    _ = is_there(Module, Source) orelse erlang:error({ats_error, source}),
    case is_fixed(Table) of
        true -> fixed;
        false -> in_unfixed(Table, From, Progress)
    end.

%% Replacing everything would end the walk for which the table is fixed.
-spec is_fixed(ats:tid()) -> boolean().
is_fixed(Table) ->
    element(3, ats_nif:disk_kind(Table)) =/= false.

-spec in_unfixed(ats:tid(), source(), progress()) -> ok | {error, term()}.
in_unfixed(Table, {ats, Source}, Progress) ->
    Reading = try ats_snapshot:begin_reading(Source)
              catch error:{ats_error, _Cause} -> erlang:error({ats_error, source})
              end,
    try in_from(Table, {ats, ats_snapshot:source(Reading)}, Progress)
    after ats_snapshot:end_reading(Reading)
    end;
in_unfixed(Table, {Module, Named}, Progress) ->
    Source = identifier(Module, Named),
    _ = call_other(fun() -> Module:safe_fixtable(Source, true) end, source),
    try in_from(Table, {Module, Source}, Progress)
    after Module:safe_fixtable(Source, false)
    end.

%% A table of `ets' may be renamed while it is read.
-spec identifier(ets | dets, term()) -> term().
identifier(ets, Name) when is_atom(Name) ->
    case ets:whereis(Name) of
        undefined -> Name;
        Id -> Id
    end;
identifier(_, Table) ->
    Table.

-spec in_from(ats:tid(), source(), progress()) -> ok | {error, term()}.
in_from(Table, {Module, Source} = From, Progress) ->
    Total = Module:info(Source, size),
    replace_all(Table, fun(Stage) ->
                               First = Module:select(Source, ?EVERYTHING, ?AT_ONCE),
                               in_chunks(First, From, Stage, 0, Total, Progress)
                       end).

-spec is_there(module(), term()) -> boolean().
is_there(Module, Table) ->
    try Module:info(Table, size) =/= undefined
    catch error:badarg -> false
    end.

%% Calls another table. If the call is refused, the other table is the cause.
-spec call_other(fun(() -> Answer), source | target) -> Answer.
call_other(Call, Cause) ->
    try Call()
    catch error:badarg -> erlang:error({ats_error, Cause})
    end.

%% @doc Replaces all objects by those that a function provides.
-spec init(ats:tid(), ats_dets:init_fun()) -> ok | {error, term()} | fixed.
init(Table, InitFun) ->
    case is_fixed(Table) of
        true -> stop(InitFun, fixed);
        false -> replace_all(Table, fun(Stage) -> take_provided(Stage, InitFun(read)) end)
    end.

-spec take_provided(#stage{}, term()) -> ok | {error, term()}.
take_provided(Stage, end_of_input) ->
    exchange(Stage);
take_provided(Stage, {Objects, Next}) when is_list(Objects), is_function(Next) ->
    case stage_objects(Objects, fun() -> true end, Stage) of
        #stage{} = More -> take_provided(More, Next(read));
        Failed -> stop(Next, Failed)
    end;
take_provided(_Stage, Other) ->
    {error, {init_fun, Other}}.

%% Tells the function that nothing more is read. Its answer does not matter any more.
-spec stop(ats_dets:init_fun(), Failed) -> Failed.
stop(Function, Failed) ->
    _ = try Function(close) catch _:_ -> ok end,
    Failed.

-spec in_chunks(term(), source(), #stage{}, non_neg_integer(), non_neg_integer() | undefined,
                progress()) -> ok | {error, term()}.
in_chunks('$end_of_table', _From, Stage, _Done, _Total, _Progress) ->
    exchange(Stage);
in_chunks({error, _} = Failed, _From, _Stage, _Done, _Total, _Progress) ->
    Failed;
in_chunks({Objects, Continuation}, {Module, Source} = From, Stage, Before, Total, Progress) ->
    HaveKeys = fun() -> have_keys(Module, Source, Stage#stage.table) end,
    case stage_objects(Objects, HaveKeys, Stage) of
        #stage{} = More ->
            Done = Before + length(Objects),
            _ = Progress(Done, Total),
            in_chunks(Module:select(Continuation), From, More, Done, Total, Progress);
        Failed ->
            Failed
    end.

%% `true' if all objects of another table have a key where this table has it.
-spec have_keys(module(), term(), ats:tid()) -> boolean().
have_keys(Module, Source, Table) ->
    KeyPos = ats_info:item(keypos, Table),
    Lack = [{'_', [{'<', {size, '$_'}, KeyPos}], [true]}],
    Module:info(Source, keypos) >= KeyPos orelse Module:select(Source, Lack) =:= [].

%%--------------------------------------------------------------------------------------------
%% Replacing at one moment
%%
%% Objects are first inserted into a table in memory, which refuses terms that are no objects. If
%% they take more than `?AT_ONE_MOMENT', the first part replaces the contents of the table, and the
%% others are inserted into it, list by list.
%%--------------------------------------------------------------------------------------------

-spec replace_all(ats:tid(), fun((#stage{}) -> ok | {error, term()})) -> ok | {error, term()}.
replace_all(Table, Fill) ->
    Memory = ats_nif:disk_stage(Table),
    try Fill(#stage{table = Table, into = Memory})
    after
        %% The table may be gone already.
        try ats_nif:delete(Memory)
        catch error:{ats_error, _Cause} -> true
        end
    end.

%% Takes the next objects. `HaveKeys' says whether all that are still to come are objects, if that
%% can be known; it is called before the first of them replace the old objects.
-spec stage_objects([term()], fun(() -> boolean()), #stage{}) -> #stage{} | {error, term()}.
stage_objects(Objects, HaveKeys, #stage{table = Table, into = Into} = Stage) ->
    %% Other processes may write to the table itself, and a module may merge their values.
    case ats_merge_access:try_change(Into, insert, [Objects]) of
        {ok, true} when Into =:= Table -> Stage;
        {ok, true} -> empty_if_full(HaveKeys, Stage);
        {refused, none} -> {error, invalid_objects_list};
        {refused, Cause} -> erlang:error({ats_error, Cause})
    end.

-spec empty_if_full(fun(() -> boolean()), #stage{}) -> #stage{} | {error, term()}.
empty_if_full(HaveKeys, #stage{table = Table, into = Into} = Stage) ->
    case ats_nif:memory(Into) * erlang:system_info(wordsize) > ?AT_ONE_MOMENT of
        true ->
            case HaveKeys() of
                true ->
                    ok = exchange(Stage),
                    true = ats_nif:delete(Into),
                    Stage#stage{into = Table};
                false ->
                    {error, invalid_objects_list}
            end;
        false ->
            Stage
    end.

-spec exchange(#stage{}) -> ok.
exchange(#stage{table = Table, into = Table}) ->
    ok;
exchange(#stage{table = Table, into = Memory}) ->
    true = ats_nif:disk_exchange(Table, Memory),
    ok.

%% @private
%% @doc Another version of the module that merges the values of a table.
%%
%% Values that were written under a version are merged by no other. So first all pending keys are
%% merged, by the old functions or by one that converts; nothing is written to the table meanwhile
%% that would have to be merged. When that is on disk, the table gets the version that the module
%% has now. If the system stops on the way, some more keys are merged than before, and the table
%% has the version that it had.
-module(ats_merge_upgrade).

-export([upgrade/2]).

-export_type([how/0]).

-type how() :: {old, module()} | {convert, ats_merge:convert()}.

%% @doc Merges all pending keys, and gives the table the present version of its module. Returns that
%% version.
-spec upgrade(ats:tid(), how()) ->
          {ok, {module, ats_merge:program(), ats_merge:version()}} | ats_nif:disk_failure()
        | {error, reason, term()}.
upgrade(Table, How) ->
    case ats_merge_pending:program(Table) of
        none ->
            erlang:error({ats_error, none});
        {{Module, Version}, Id} ->
            case {ats_merge:check(Module), merge(How, Version)} of
                {{error, Wrong}, _} -> {error, reason, {merge, Wrong}};
                {_, {error, Wrong}} -> {error, reason, {merge, Wrong}};
                {{ok, New}, Merge} -> upgrade(Table, Module, New, {Merge, Id})
            end
    end.

-spec merge(how(), ats_merge:version()) -> ats_merge:merge() | {error, ats_merge:check_error()}.
merge({convert, Function} = Convert, _Version) when is_function(Function, 2) ->
    Convert;
merge({old, Module}, Version) ->
    case ats_merge:check(Module) of
        {ok, Version} -> {Module, Version};
        {ok, Other} -> {error, {failed, {Module, version, {other_version, Version, Other}}}};
        Wrong -> Wrong
    end;
merge(_How, _Version) ->
    erlang:error({ats_error, none}).

-spec upgrade(ats:tid(), ats_merge:program(), ats_merge:version(), ats_merge_pending:program()) ->
          {ok, {module, ats_merge:program(), ats_merge:version()}} | ats_nif:disk_failure().
upgrade(Table, Module, New, Program) ->
    true = ats_nif:disk_gate(Table, closed),
    try
        ok = merge_all(Table, Program),
        case ats_nif:disk_set_program(Table, Module, New) of
            ok -> {ok, {module, Module, New}};
            Failed -> Failed
        end
    after
        ats_nif:disk_gate(Table, open)
    end.

%% Until none is pending any more: a key may have been changed while it was merged.
-spec merge_all(ats:tid(), ats_merge_pending:program()) -> ok.
merge_all(Table, Program) ->
    case ats_disk_reading:of_table(Table, fun(S) -> merge_all(Table, Program, S, start, 0) end) of
        0 -> ok;
        _Merged -> merge_all(Table, Program)
    end.

-spec merge_all(ats:tid(), ats_merge_pending:program(), ats:tid(), start | binary(),
                non_neg_integer()) -> non_neg_integer().
merge_all(Table, Program, Snapshot, Last, Merged) ->
    case ats_nif:disk_chunk(Snapshot, up, Last) of
        {done, _, _} ->
            Merged;
        {more, _, Next} ->
            merge_all(Table, Program, Snapshot, Next, Merged);
        {pending, _, Next} ->
            Records = ats_nif:disk_pending(Snapshot),
            lists:foreach(fun(Record) -> replace(Table, Program, Record) end, Records),
            true = ats_nif:disk_resolve(Snapshot, [{Key, missing} || {Key, _} <- Records]),
            merge_all(Table, Program, Snapshot, Next, Merged + length(Records))
    end.

-spec replace(ats:tid(), ats_merge_pending:program(), ats_nif:disk_record()) -> ok.
replace(Table, Program, Record) ->
    case ats_merge_pending:replace(Table, Program, Record) of
        again -> replace(Table, Program, Record);
        ok -> ok
    end.

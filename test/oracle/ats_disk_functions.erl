%% Calls of every function of `dets', right and wrong ones, on `dets' and on `dats'; and the
%% functions of osmos and tcerl that `dats' has.
%%
%% A case is a function with arguments, on a new table of some type. Results are turned into terms
%% that must be equal. With the answer come the objects of the table after the call.
-module(ats_disk_functions).

-export([documented/0, undocumented/0, osmos/0, tcerl/0, cases/1, compare/1]).

-export_type([function_name/0, test_case/0, verdict/0]).

-type function_name() :: {atom(), arity()}.
-type argument() ::
    tab | file | closed | ets | collector | init_fun | traversing
    | {continuation, atom(), [term()]} | {raw, term()}.
-type test_case() :: {atom(), [argument()], set | bag | duplicate_bag, access()}.
-type access() :: read_write | read.
-type verdict() :: {result | exception, same | {differs, term(), term()}}.
-type counterpart() :: {function_name(), function_name() | none, Remark :: string()}.

-define(THREE, [{k1, 1, x}, {k2, 2, y}, {k3, 3, z}]).
-define(SPEC, [{{'$1', '$2', '_'}, [{'>', '$2', 1}], [{{'$2', '$1'}}]}]).
-define(TRUE_SPEC, [{{'_', '$1', '_'}, [{'>', '$1', 1}], [true]}]).
-define(PATTERN, {'$1', '_', '$2'}).
%% Terms that are no right argument anywhere, or seldom.
-define(WRONG, [none, 77, -1, 1.5, "text", <<"text">>, {}, {t, 1}, [], #{}, fun() -> ok end]).

%% Returns the documented functions of `dets' in Erlang/OTP 27.
-spec documented() -> [function_name()].
documented() ->
    [
        {Function, Arity}
     || {Function, Arities} <- [
            {all, [0]},
            {bchunk, [2]},
            {close, [1]},
            {delete, [2]},
            {delete_all_objects, [1]},
            {delete_object, [2]},
            {first, [1]},
            {foldl, [3]},
            {foldr, [3]},
            {from_ets, [2]},
            {info, [1, 2]},
            {init_table, [2, 3]},
            {insert, [2]},
            {insert_new, [2]},
            {is_compatible_bchunk_format, [2]},
            {is_dets_file, [1]},
            {lookup, [2]},
            {match, [1, 2, 3]},
            {match_delete, [2]},
            {match_object, [1, 2, 3]},
            {member, [2]},
            {next, [2]},
            {open_file, [1, 2]},
            {pid2name, [1]},
            {repair_continuation, [2]},
            {safe_fixtable, [2]},
            {select, [1, 2, 3]},
            {select_delete, [2]},
            {slot, [2]},
            {sync, [1]},
            {table, [1, 2]},
            {to_ets, [2]},
            {traverse, [2]},
            {update_counter, [3]}
        ],
        Arity <- Arities
    ].

%% Returns the other functions that `dets' exports, and why `dats' has them not.
-spec undocumented() -> [{function_name(), Why :: string()}].
undocumented() ->
    Debug = "shows the inside of a file",
    Server = "for the processes of `dets`",
    [
        {{add_user, 3}, Server},
        {{file_info, 1}, Debug ++ ": `ats disk stat`"},
        {{fsck, 1}, "checks a file: `ats disk verify`"},
        {{fsck, 2}, "checks a file: `ats disk verify`"},
        {{get_head_field, 2}, Debug},
        {{init, 2}, Server},
        {{internal_close, 1}, Server},
        {{internal_open, 3}, Server},
        {{istart_link, 1}, Server},
        {{lookup_keys, 2}, "for `qlc`: `table/2` looks keys up by `lookup/2`"},
        {{remove_user, 2}, Server},
        {{start, 0}, "`open_file/2` starts the application `ats`"},
        {{stop, 0}, "`application:stop(ats)`"},
        {{system_code_change, 4}, Server},
        {{system_continue, 3}, Server},
        {{system_terminate, 4}, Server},
        {{verbose, 0}, Debug},
        {{verbose, 1}, Debug},
        {{view, 1}, Debug ++ ": `ats disk dump`"},
        {{where, 2}, Debug}
    ].

%% Returns all functions of the module `osmos', with those that `dats' has instead.
-spec osmos() -> [counterpart()].
osmos() ->
    [
        {{start, 0}, none, "`open/2` starts the application `ats`"},
        {{stop, 0}, none, "`application:stop(ats)`, which closes all tables"},
        {{open, 2}, {open, 2},
            "formats are tuples, modules, or the records of osmos with exported functions; "
            "other options of `open_file/2` can be given"},
        {{close, 1}, {close, 1}, "answers errors of files"},
        {{read, 2}, {read, 2}, "the same; answers errors of files"},
        {{write, 3}, {write, 3}, "the same; what the merge does not take is `badarg`"},
        {{select_range, 5}, {select_range, 5}, "bounds can be told as keys, too"},
        {{select_continue, 3}, {select_continue, 3}, "the same"},
        {{info, 1}, {info, 1}, "items are those of `dets`"},
        {{info, 2}, {info, 2},
         "`files`, `file_entries` and `tree_entries` are there; `stats` has more"}
    ].

%% Returns all functions of the module `tcbdbets' of tcerl, with those that `dats' has instead.
-spec tcerl() -> [counterpart()].
tcerl() ->
    Same = "the same",
    Ordered = "in the order of the keys of an `ordered_set`",
    [
        {{bchunk, 2}, {bchunk, 2}, "chunks are of another format"},
        {{close, 1}, {close, 1}, Same},
        {{delete, 2}, {delete, 2}, Same},
        {{delete_all_objects, 1}, {delete_all_objects, 1}, "at one moment"},
        {{delete_object, 2}, {delete_object, 2}, Same},
        {{first, 1}, {first, 1}, Same},
        {{foldl, 3}, {foldl, 3}, Ordered},
        {{foldr, 3}, {foldr, 3}, Ordered},
        {{from_ets, 2}, {from_ets, 2}, Same},
        {{to_ets, 2}, {to_ets, 2}, Same},
        {{info, 1}, {info, 1}, "items are those of `dets`"},
        {{info, 2}, {info, 2}, "items are those of `dets`"},
        {{init_table, 2}, {init_table, 2}, Same},
        {{init_table, 3}, {init_table, 3}, Same},
        {{insert, 2}, {insert, 2}, "a list is one step"},
        {{insert_new, 2}, {insert_new, 2}, "one step"},
        {{is_compatible_bchunk_format, 2}, {is_compatible_bchunk_format, 2},
         "chunks are of another format"},
        {{is_tcbdbets_file, 1}, {is_dats_file, 1}, "of a directory"},
        {{unlink, 1}, {destroy, 1}, "refuses tables that are open"},
        {{last, 1}, {last, 1}, Same},
        {{lookup, 2}, {lookup, 2}, Same},
        {{match, 1}, {match, 1}, Same},
        {{match, 2}, {match, 2}, Same},
        {{match, 3}, {match, 3}, Same},
        {{match_delete, 2}, {match_delete, 2}, Same},
        {{match_object, 1}, {match_object, 1}, Same},
        {{match_object, 2}, {match_object, 2}, Same},
        {{match_object, 3}, {match_object, 3}, Same},
        {{member, 2}, {member, 2}, Same},
        {{next, 2}, {next, 2}, Same},
        {{prev, 2}, {prev, 2}, Same},
        {{open_file, 2}, {open_file, 2},
            "options are those of `dets` and of `dats`, none of Tokyo Cabinet; "
            "`ordered_duplicate_bag` is a type"},
        {{repair_continuation, 2}, {repair_continuation, 2}, Same},
        {{select, 1}, {select, 1}, "also several ranges are returned in order"},
        {{select, 2}, {select, 2}, "also several ranges are returned in order"},
        {{select, 3}, {select, 3}, "also several ranges are returned in order"},
        {{select_delete, 2}, {select_delete, 2}, Same},
        {{sync, 1}, {sync, 1}, Same},
        {{traverse, 2}, {traverse, 2}, Same},
        {{update_counter, 3}, {update_counter, 3}, "integers of any size"}
    ].

%% Right arguments.
calls() ->
    Key = {raw, k1},
    Absent = {raw, absent},
    Object = {raw, {k1, 1, x}},
    New = {raw, {k9, 9, x}},
    Two = {raw, [{k1, 5, x}, {k7, 2, y}]},
    Spec = {raw, ?SPEC},
    [
        {all, []},
        {bchunk, [tab, {raw, start}]},
        {close, [tab]},
        {delete, [tab, Key]},
        {delete, [tab, Absent]},
        {delete_all_objects, [tab]},
        {delete_object, [tab, Object]},
        {first, [tab]},
        {foldl, [collector, {raw, []}, tab]},
        {foldr, [collector, {raw, []}, tab]},
        {from_ets, [tab, ets]},
        {info, [tab]},
        {init_table, [tab, init_fun]},
        {init_table, [tab, init_fun, {raw, []}]},
        {init_table, [tab, init_fun, {raw, [{format, term}, {min_no_slots, 10}]}]},
        {insert, [tab, Object]},
        {insert, [tab, New]},
        {insert, [tab, Two]},
        {insert_new, [tab, Object]},
        {insert_new, [tab, New]},
        {insert_new, [tab, Two]},
        {is_compatible_bchunk_format, [tab, {raw, format}]},
        {is_dets_file, [file]},
        {lookup, [tab, Key]},
        {lookup, [tab, Absent]},
        {match_delete, [tab, {raw, {'_', 2, '_'}}]},
        {match_delete, [tab, {raw, '_'}]},
        {member, [tab, Key]},
        {member, [tab, Absent]},
        {next, [tab, Key]},
        {next, [tab, Absent]},
        {open_file, [closed]},
        {open_file, [{raw, new}, {raw, []}]},
        {open_file, [{raw, new}, {raw, [{keypos, 2}, {auto_save, 5}, {min_no_slots, 10}]}]},
        {open_file, [tab, {raw, []}]},
        {pid2name, [{raw, pid}]},
        {repair_continuation, [{continuation, select, [?SPEC, 1]}, Spec]},
        {safe_fixtable, [tab, {raw, true}]},
        {safe_fixtable, [tab, {raw, false}]},
        {select, [tab, Spec]},
        {select, [tab, Spec, {raw, 1}]},
        {select, [tab, Spec, {raw, default}]},
        {select, [{continuation, select, [?SPEC, 1]}]},
        {select_delete, [tab, {raw, ?TRUE_SPEC}]},
        {select_delete, [tab, {raw, [{'_', [], [true]}]}]},
        {slot, [tab, {raw, 0}]},
        {sync, [tab]},
        {table, [tab]},
        {table, [tab, {raw, [{traverse, first_next}]}]},
        {table, [tab, {raw, [{n_objects, 2}]}]},
        {to_ets, [tab, ets]},
        {traverse, [tab, traversing]},
        {update_counter, [tab, Key, {raw, 1}]},
        {update_counter, [tab, Key, {raw, {2, 1.5}}]},
        {update_counter, [tab, Absent, {raw, 1}]}
    ] ++
        [
            {info, [tab, {raw, Item}]}
         || Item <- [
                access, auto_save, bchunk_format, fixed, hash, file_size, filename, keypos, memory,
                no_keys, no_objects, no_slots, owner, ram_file, safe_fixed,
                safe_fixed_monotonic_time, size, type, users, version
            ]
        ] ++
        [
            Call
         || Match <- [match, match_object],
            Call <- [
                {Match, [tab, {raw, ?PATTERN}]},
                {Match, [tab, {raw, {k1, '_', '_'}}]},
                {Match, [tab, {raw, ?PATTERN}, {raw, 1}]},
                {Match, [tab, {raw, ?PATTERN}, {raw, default}]},
                {Match, [{continuation, Match, [?PATTERN, 1]}]}
            ]
        ].

%% Returns the cases of a function.
-spec cases(function_name()) -> [test_case()].
cases({Function, Arity}) ->
    Calls = [Args || {F, Args} <- calls(), F =:= Function, length(Args) =:= Arity],
    lists:usort(
        [{Function, Args, Type, read_write} || Args <- Calls, Type <- [set, bag, duplicate_bag]] ++
            [{Function, Args, set, read} || Args <- Calls, may_be_read_only(Function, Args)] ++
            [{Function, Wrong, set, read_write} || Args <- Calls, Wrong <- wrong(Args)]
    ).

%% `dets' spoils a table that it may only read when it deletes all objects.
may_be_read_only(Function, Args) ->
    Function =/= open_file andalso Function =/= delete_all_objects andalso
        Args =/= [tab, {raw, '_'}] andalso Args =/= [tab, {raw, [{'_', [], [true]}]}].

wrong(Args) ->
    [
        lists:sublist(Args, At - 1) ++ [{raw, Term}] ++ lists:nthtail(At, Args)
     || At <- lists:seq(1, length(Args)), Term <- ?WRONG
    ].

%% ----- both -----

-spec compare(test_case()) -> verdict().
compare(Case) ->
    [Expected, Got] = [outcome(M, Case) || M <- [dets, dats]],
    Kind =
        case Expected of
            {{raised, _, _}, _} -> exception;
            _ -> result
        end,
    case Expected =:= Got of
        true -> {Kind, same};
        false -> {Kind, {differs, Expected, Got}}
    end.

%% Runs a case in a process of its own, in an empty directory.
outcome(M, Case) ->
    {Pid, Monitor} = spawn_monitor(fun() -> exit({outcome, run(M, Case)}) end),
    Outcome =
        receive
            {'DOWN', Monitor, process, Pid, Reason} -> Reason
        end,
    _ = file:delete("t"),
    _ = file:del_dir_r("t"),
    lists:foreach(fun(File) -> file:del_dir_r(File) end, filelib:wildcard("*")),
    case Outcome of
        {outcome, Result} -> Result
    end.

run(M, {F, Args, Type, Access}) ->
    [] =:= [closed || closed <- Args] orelse
        begin
            {ok, c} = M:open_file(c, [{file, "closed"}]),
            ok = M:close(c)
        end,
    {ok, t} = M:open_file(t, [{type, Type}, {auto_save, infinity}]),
    ok = M:insert(t, ?THREE),
    Access =:= read_write orelse
        begin
            ok = M:close(t),
            {ok, t} = M:open_file(t, [{type, Type}, {auto_save, infinity}, {access, read}])
        end,
    Ets = ets:new(ets, [public]),
    true = ets:insert(Ets, [{e1, 1, x}]),
    Real = [argument(Argument, M, Ets) || Argument <- Args],
    Answer =
        try
            plain(F, Args, apply(M, F, Real), M)
        catch
            Class:Reason -> {raised, Class, plain(raised, Args, Reason, M)}
        end,
    After = content(M),
    Result = {Answer, {After, lists:sort(ets:tab2list(Ets))}},
    _ = [close(M, Name) || Name <- M:all()],
    Result.

close(M, Name) ->
    case M:close(Name) of
        ok -> close(M, Name);
        _ -> ok
    end.

content(M) ->
    case M:info(t, size) of
        undefined -> closed;
        _ -> sorted(M:match_object(t, '_'))
    end.

argument(tab, _, _) -> t;
argument(file, _, _) -> "t";
argument(closed, _, _) -> "closed";
argument(ets, _, Ets) -> Ets;
argument(collector, _, _) -> fun(Object, Objects) -> [Object | Objects] end;
argument(traversing, _, _) -> fun(Object) -> {continue, Object} end;
argument(init_fun, _, _) -> step({[{i1, 1}, {i2, 2}], step(end_of_input)});
argument({continuation, F, Args}, M, _) ->
    {Rows, Continuation} = apply(M, F, [t | Args]),
    _ = put(first_chunk, Rows),
    Continuation;
argument({raw, pid}, M, _) -> M:info(t, owner);
argument({raw, format}, M, _) -> M:info(t, bchunk_format);
argument({raw, Term}, _, _) -> Term.

step(Answer) ->
    fun
        (read) -> Answer;
        (close) -> ok
    end.

%% ----- terms that are equal on both sides -----

plain(F, [tab, {raw, I}], _, _) when F =:= info, (I =:= file_size orelse I =:= memory) -> integer;
plain(F, [tab, {raw, bchunk_format}], Format, _) when F =:= info, is_binary(Format) -> format;
plain(info, _, Pid, _) when is_pid(Pid) -> owner;
plain(info, _, [Pid], _) when is_pid(Pid) -> [user];
plain(info, _, Items, _) when is_list(Items) -> lists:keydelete(file_size, 1, Items);
plain(bchunk, _, {_, Data}, _) -> {continuation, [format || _ <- Data]};
plain(F, _, [_ | _] = Rows, _) when F =:= select; F =:= match; F =:= match_object; F =:= lookup;
                                    F =:= traverse ->
    sorted(Rows);
plain(F, _, {Rows, Next}, M) when F =:= select; F =:= match; F =:= match_object ->
    sorted(first_chunk() ++ Rows ++ rest(M, F, M:F(Next)));
plain(F, _, '$end_of_table', _) when F =:= select; F =:= match; F =:= match_object ->
    sorted(first_chunk());
plain(repair_continuation, _, Continuation, M) -> plain(select, [], M:select(Continuation), M);
plain(table, _, Table, M) when element(1, Table) =:= qlc_handle ->
    plain(select, [], qlc:eval(Table), M);
plain(F, _, List, _) when (F =:= foldl orelse F =:= foldr), is_list(List) -> folded(List, []);
plain(F, _, Key, M) when F =:= first; F =:= next -> Key =:= '$end_of_table' orelse M:member(t, Key);
%% The number of slots is not specified.
plain(slot, _, _, _) -> somewhere;
plain(open_file, _, {ok, Reference}, _) when is_reference(Reference) -> {ok, reference};
plain(to_ets, _, Reference, _) when is_reference(Reference) -> table;
plain(raised, Args, {'EXIT', {Reason, _}}, M) -> plain(raised, Args, Reason, M);
%% The first object differs between the two.
plain(raised, _, {badarity, {Function, _}}, _) -> {badarity, Function};
plain(_, _, Answer, _) -> Answer.

first_chunk() ->
    case erase(first_chunk) of
        undefined -> [];
        Rows -> Rows
    end.

rest(_, _, '$end_of_table') -> [];
rest(M, F, {Rows, Next}) -> Rows ++ rest(M, F, M:F(Next)).

folded([Object | Objects], Before) -> folded(Objects, [Object | Before]);
folded(End, Before) -> {sorted(Before), End}.

%% A damaged table of `dets' answers errors.
sorted(Rows) when is_list(Rows) -> lists:sort(Rows);
sorted(Failed) -> Failed.

%% @private
%% @doc Answers of functions of `dats' when files cannot be read or written.
%%
%% The native library names a cause, which becomes a reason with the directory in it, as those of
%% `dets' have the name of the file.
-module(ats_disk_failure).

-export([of_call/2, of_cause/2, format/1]).

-export_type([reason/0]).

-type reason() ::
        {file_error, file:filename_all(), Posix :: atom()}
      | {damaged, file:filename_all(), What :: unicode:chardata()}
      | {newer_format, file:filename_all(), What :: unicode:chardata()}
      | {not_a_dats_table, file:filename_all()}
      | {needs_repair, file:filename_all()}
      | {in_use, file:filename_all()}
      | {within_table, file:filename_all()}
      | {type_mismatch | keypos_mismatch | merge_mismatch | format_mismatch | ttl_mismatch,
         file:filename_all()}
      | {access_mode, file:filename_all()}
      | {read_only, file:filename_all(), Why :: unicode:chardata()}
      | {continuation_expired, file:filename_all()}
      | {merge_failed, file:filename_all()}
      | {merge_failed, file:filename_all(), Key :: term(), ats_merge:failure()}
      | {merge_mismatch, file:filename_all(), Key :: term(),
         {ats_merge:program(), OfTable :: ats_merge:version(), OfModule :: ats_merge:version()}}
      | {format_failed, file:filename_all(), ats_merge:failure()}
      | {merge | format, ats_merge:check_error()}
      | {system_limit, file:filename_all(), What :: unicode:chardata()}
      | {storage, file:filename_all(), What :: unicode:chardata()}.

%% @doc Returns the answer for the result of a native function that has a text besides the cause.
-spec of_call(ok | {error, atom(), term()}, Directory :: term()) -> ok | {error, term()}.
of_call(ok, _Directory) ->
    ok;
of_call({error, crash, Reason}, _Directory) ->
    {error, Reason};
of_call({error, reason, Reason}, _Directory) ->
    {error, Reason};
of_call({error, merge, _Text}, _Directory) ->
    {error, {unsupported, merge}};
of_call({error, ttl, _Text}, _Directory) ->
    {error, {unsupported, ttl}};
of_call({error, Cause, Text}, Directory) ->
    {error, reason(Cause, Directory, Text)}.

%% @doc Returns the answer for a cause that a native function has raised, unless the cause is that
%% the caller was wrong.
-spec of_cause(ats_errors:cause(), Directory :: term()) -> {error, reason()} | refused.
of_cause({merge_failed, Key, Failure}, Directory) ->
    {error, {merge_failed, Directory, Key, Failure}};
of_cause({merge_mismatch, Key, Versions}, Directory) ->
    {error, {merge_mismatch, Directory, Key, Versions}};
of_cause({format_failed, Failure}, Directory) ->
    {error, {format_failed, Directory, Failure}};
of_cause(Cause, Directory) ->
    case is_of_files(Cause) of
        true -> {error, reason(Cause, Directory, text(Cause))};
        false -> refused
    end.

-spec is_of_files(term()) -> boolean().
is_of_files(Cause) ->
    lists:member(Cause, [access, damaged, read_only, merge_failed, snapshot_expired, storage,
                         too_long])
        orelse ats_errors:is_of_system(Cause).

-spec text(atom()) -> binary().
text(damaged) -> <<"what was read is not what was written">>;
text(read_only) -> <<"the table cannot be written to until it is opened again">>;
text(too_long) ->
    <<"a key, the objects of a key, or what is written at once, has more than 2147418112 bytes">>;
text(_) -> <<"the table cannot do this">>.

-spec reason(atom(), term(), term()) -> reason().
reason(access, Directory, _Text) -> {access_mode, Directory};
reason(Mismatch, Directory, _Text)
  when Mismatch =:= type_mismatch; Mismatch =:= keypos_mismatch; Mismatch =:= merge_mismatch;
       Mismatch =:= format_mismatch; Mismatch =:= ttl_mismatch;
       Mismatch =:= not_a_dats_table; Mismatch =:= in_use; Mismatch =:= within_table;
       Mismatch =:= merge_failed ->
    {Mismatch, Directory};
reason(snapshot_expired, Directory, _Text) ->
    {continuation_expired, Directory};
reason(Cause, Directory, Text)
  when Cause =:= damaged; Cause =:= newer_format; Cause =:= read_only; Cause =:= storage ->
    {Cause, Directory, Text};
reason(too_long, Directory, Text) ->
    {system_limit, Directory, Text};
reason(Posix, Directory, _Text) ->
    {file_error, Directory, Posix}.

%% @doc Returns a reason in words.
-spec format(term()) -> unicode:chardata().
format({error, Reason}) ->
    format(Reason);
format({file_error, Directory, Posix}) ->
    io_lib:format("~ts: ~ts", [Directory, file:format_error(Posix)]);
format({What, Directory, Text})
  when What =:= damaged; What =:= newer_format; What =:= read_only; What =:= storage;
       What =:= system_limit ->
    io_lib:format("~ts: ~ts", [Directory, Text]);
format({not_a_dats_table, Directory}) ->
    io_lib:format("~ts: there is something else than a table of dats", [Directory]);
format({in_use, Directory}) ->
    io_lib:format("~ts: the table is open under another name, or in another virtual machine",
                  [Directory]);
format({within_table, Directory}) ->
    io_lib:format("~ts: the directory is below that of a table", [Directory]);
format({type_mismatch, Directory}) ->
    io_lib:format("~ts: the table is of another type", [Directory]);
format({keypos_mismatch, Directory}) ->
    io_lib:format("~ts: the table has its keys at another position", [Directory]);
format({merge_mismatch, Directory}) ->
    io_lib:format("~ts: the table was made with another merge", [Directory]);
format({format_mismatch, Directory}) ->
    io_lib:format("~ts: the table was made with another format, or another version of it",
                  [Directory]);
format({ttl_mismatch, Directory}) ->
    io_lib:format("~ts: the table was made without the option ttl", [Directory]);
format({format_failed, Directory, Failure}) ->
    io_lib:format("~ts: what was written cannot be decoded: ~ts",
                  [Directory, ats_merge:format_failure(Failure)]);
format({access_mode, Directory}) ->
    io_lib:format("~ts: the table was opened for reading only", [Directory]);
format({continuation_expired, Directory}) ->
    io_lib:format("~ts: a call or a continuation has not read on for longer than the option "
                  "continuation_age says",
                  [Directory]);
format({merge_failed, Directory}) ->
    io_lib:format("~ts: what was written to the key cannot be merged", [Directory]);
format({merge_failed, Directory, Key, Failure}) ->
    io_lib:format("~ts: what was written to the key ~0tP cannot be merged: ~ts",
                  [Directory, Key, 20, ats_merge:format_failure(Failure)]);
format({merge_mismatch, Directory, Key, {Module, OfTable, OfModule}}) ->
    io_lib:format("~ts: the module ~tw has version ~b, and what was written to the key ~0tP is of "
                  "version ~b", [Directory, Module, OfModule, Key, 20, OfTable]);
format({merge, Wrong}) ->
    ["the merge of the table: ", ats_merge:format_failure(Wrong)];
format({format, Wrong}) ->
    ["the format of the table: ", ats_merge:format_failure(Wrong)];
format({unsupported, {key_less, _}}) ->
    "keys lie in the order of terms, `fun erlang:'<'/2', or of their bytes, `bytes'. For another "
    "order, give a key format whose bytes have that order, and `bytes'";
format({unsupported, {Function, _}})
  when Function =:= merge; Function =:= short_circuit; Function =:= delete ->
    io_lib:format("~tw must be an exported function, fun Module:Name/Arity, so that the directory "
                  "of the table can remember it", [Function]);
format(incompatible_arguments) ->
    "the table is open with other options";
format({needs_repair, Directory}) ->
    io_lib:format("~ts: files of the table are damaged, and the option repair says not to "
                  "repair it",
                  [Directory]);
format({damaged_bchunk, What}) ->
    io_lib:format("the chunks of a table are damaged: ~ts", [What]);
format({incompatible_bchunk, What}) ->
    io_lib:format("the chunks of a table are of another format: ~ts", [What]);
format({fixed_table, Name}) ->
    io_lib:format("~tp: a table is not replaced while it is fixed", [Name]);
format(not_owner) ->
    "the process has not opened the table";
format({unsupported, {ttl, {idle, _}}}) ->
    "objects on disk do not expire because they were not read, since reads write nothing: {ttl, "
    "Milliseconds} counts from the last write";
format({unsupported, merge}) ->
    "there is no such merge, see ats:merge/4, or the table is a bag, whose values are not merged";
format({unsupported, ttl}) ->
    "objects on disk do not expire where a module merges them";
format({unsupported, Option}) ->
    io_lib:format("dats does not have the option ~tp", [Option]);
format(Other) ->
    io_lib:format("~tp", [Other]).

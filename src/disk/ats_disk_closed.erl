%% @private
%% @doc Tables that are not open: removing, renaming and copying them.
%%
%% Their directories are locked meanwhile, so that no virtual machine can open them. Each function
%% waits for a table that is being closed in the background.
-module(ats_disk_closed).

-export([destroy/1, rename/2, copy/2, call_with/2]).

-define(LOOK_MS, 5).

%% @doc Removes a table, and its directory unless it has other files.
-spec destroy(term()) ->
          ok | {ok, Foreign :: [file:filename_all()]} | {error, term()} | badarg.
destroy(Directory) ->
    call_with([Directory],
              fun([Native]) -> answer_destroy(Directory, ats_nif:disk_destroy(Native)) end).

-spec answer_destroy(term(), {ok, [binary()]} | ats_nif:disk_failure()) ->
          ok | {ok, [file:filename_all()]} | {error, term()}.
answer_destroy(_Directory, {ok, []}) -> ok;
answer_destroy(_Directory, {ok, Names}) ->
    {ok, [ats_disk_options:text_of_name(Name) || Name <- lists:sort(Names)]};
answer_destroy(Directory, Failed) -> ats_disk_failure:of_call(Failed, Directory).

%% @doc Renames a table, over another one if there is one.
-spec rename(term(), term()) -> ok | {error, term()} | badarg.
rename(From, To) -> call_with_two(From, To, fun ats_nif:disk_rename/2).

%% @doc Copies a table.
-spec copy(term(), term()) -> ok | {error, term()} | badarg.
copy(From, To) -> call_with_two(From, To, fun ats_nif:disk_copy/2).

-spec call_with_two(term(), term(), fun((binary(), binary()) -> ok | tuple())) ->
          ok | {error, term()} | badarg.
call_with_two(From, To, Call) ->
    call_with([From, To], fun([Source, Target]) -> answer(From, To, Call(Source, Target)) end).

-spec answer(term(), term(), ok | tuple()) -> ok | {error, term()}.
answer(_From, _To, ok) ->
    ok;
answer(From, _To, {error, source, Cause, Text}) ->
    ats_disk_failure:of_call({error, Cause, Text}, From);
answer(_From, To, {error, target, Cause, Text}) ->
    ats_disk_failure:of_call({error, Cause, Text}, To).

%% @doc Calls a function with the paths of directories, when none of them is being closed.
-spec call_with([term()], fun(([binary()]) -> Answer)) -> Answer | {error, term()} | badarg.
call_with(Directories, Call) ->
    Paths = [ats_disk_options:native_directory(Directory) || Directory <- Directories],
    case [Wrong || Wrong <- Paths, not is_tuple(Wrong) orelse element(1, Wrong) =/= ok] of
        [] -> call_when_closed([Path || {ok, Path} <- Paths], Call);
        [Wrong | _] -> Wrong
    end.

-spec call_when_closed([binary()], fun(([binary()]) -> Answer)) -> Answer.
call_when_closed(Paths, Call) ->
    Closing = [Path || Path <- Paths, ats_disk_tables:is_being_closed(Path)],
    case Closing of
        [] ->
            Call(Paths);
        _ ->
            timer:sleep(?LOOK_MS),
            call_when_closed(Paths, Call)
    end.

%% @private
%% @doc Repairing a table when it is opened, as the option `repair' says.
%%
%% A table that was left open needs no repair. A table with damaged files does: records that can be
%% read are written to new files, and the damaged files are kept beside the directory. A warning,
%% whose report is a map, logs which records were saved and which are lost.
-module(ats_disk_repair).

-include_lib("kernel/include/logger.hrl").

-export([open/3, format/1]).

-type opened() :: {ok, ats:tid()} | {error, term(), term()}.

%% @doc Opens a table by a function, and repairs it before if that is wanted.
-spec open(ats_disk_options:parsed(), Directory :: binary(), fun(() -> opened())) -> opened().
open(#{repair := force, access := Access, file := File} = Options, Directory, Open) ->
    case {ats_nif:disk_describe(Directory), Access} of
        {{error, Cause, _}, _} when Cause =/= damaged -> Open();
        {_, read} -> {error, reason, {access_mode, File}};
        _ -> repair(Options, Directory, Open)
    end;
open(#{repair := Repair, access := Access, file := File} = Options, Directory, Open) ->
    case Open() of
        {error, damaged, _} when Repair =:= false -> {error, reason, {needs_repair, File}};
        {error, damaged, _} when Repair =:= true, Access =:= read_write ->
            repair(Options, Directory, Open);
        Opened -> Opened
    end.

-spec repair(ats_disk_options:parsed(), binary(), fun(() -> opened())) -> opened().
repair(#{file := File} = Options, Directory, Open) ->
    case ats_nif:disk_repair(Directory, ats_disk_options:repair_hint(Options)) of
        {ok, Records, LostEntries, Outdated, Faults, Kept} ->
            Report = #{repaired => File, records => Records, lost_entries => LostEntries,
                       keys_without_newer_operands => Outdated, faults => Faults,
                       damaged_files => damaged_files(Kept)},
            Kept =:= default orelse
                ?LOG_WARNING(Report, #{domain => [ats], report_cb => fun ?MODULE:format/1}),
            Open();
        Failed ->
            Failed
    end.

-spec damaged_files(default | binary()) -> none | file:filename_all().
damaged_files(default) -> none;
damaged_files(Path) -> ats_disk_options:text_of_name(Path).

%% @doc Returns the outcome of a repair, in words.
-spec format(map()) -> {io:format(), [term()]}.
format(#{repaired := File, records := Records, lost_entries := Lost, faults := Faults,
         keys_without_newer_operands := Outdated, damaged_files := Kept}) ->
    {"~ts: the table was repaired: ~b records were saved; ~b entries of run files are lost; "
     "~b keys lack newer operands; the damaged files are in ~ts~n~ts",
     [File, Records, Lost, Outdated, Kept, lists:join($\n, Faults)]}.

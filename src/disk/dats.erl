%% @doc Tables on disk: what `dets' is to `ets', `dats' is to `ats'.
%%
%% The functions are those of `ats', and so of `ets', with the same arguments. A program that was
%% written for `dets' works as before, on another file format, when `dets:' is changed to `dats:';
%% one that was written for osmos finds its functions, too. A table is a directory.
%%
%% == Groups of functions ==
%% <dl>
%% <dt>Tables</dt><dd>opening, closing, describing, removing, renaming and copying them</dd>
%% <dt>Durability and space</dt><dd>what is on disk, and how much memory and room it takes</dd>
%% <dt>Writing</dt><dd>inserting, deleting and updating objects</dd>
%% <dt>Several keys as one step</dt><dd>conditions that are tested and steps that are carried out
%% together, and objects that a function replaces</dd>
%% <dt>Counters and merges</dt><dd>changes that depend on the present value, and writes that are
%% merged without reading it</dd>
%% <dt>Taking</dt><dd>removing objects and returning them, in one step</dd>
%% <dt>Reading</dt><dd>looking objects up</dd>
%% <dt>Traversal</dt><dd>going from key to key, and folds</dd>
%% <dt>Match specifications</dt><dd>selecting, counting, deleting and replacing objects</dd>
%% <dt>Ranges</dt><dd>objects between two keys, or at a rank, in ordered types</dd>
%% <dt>Snapshots</dt><dd>views of one moment, their differences, copies of an open table, and
%% messages about changes</dd>
%% <dt>Other tables and queries</dt><dd>copies from and to tables of `ets', `ats' and `dets', and
%% `qlc'</dd>
%% <dt>Names of dets</dt><dd>functions as `dets' has them, which new programs hardly need.
%% {@link open_file/2}, {@link close/1} and {@link sync/1} have their names from `dets', too</dd>
%% <dt>Names of osmos</dt><dd>the functions of osmos, under its names</dd>
%% </dl>
%%
%% == Properties ==
%% Good for: tables larger than memory, many writes in any order, ranges and prefixes of keys, data
%% that must be there after a crash. Not good for: single reads right after many writes of the same
%% keys, and counting objects, as a table does not keep their number.
%%
%% The page `docs/use/tables-on-disk.md' states the guarantees: the contents after a crash, the view
%% that each function has while others write, and the differences from `dets'.
%%
%% == Answers ==
%%
%% Answers are those of `dets'. A function that only does something returns `ok'. A wrong argument,
%% or a table that is not open, raises `badarg', and the exception says why in words. A fault of the
%% files is an answer, `{error, Reason}' (see {@link reason()}), and {@link
%% format_error/1} says it in words. Functions that return keys, such as {@link first/1}, exit with
%% that answer instead, since it could be a key.
-module(dats).

%% Tables
-export([open_file/1, open_file/2, close/1, is_dats_file/1, destroy/1, rename_table/2]).
-export([copy_table/2, all/0, info/1, info/2, format_error/1]).
%% Durability and space
-export([sync/1, flush/1, compact/1, shared_memory/0]).
%% Writing
-export([insert/2, insert_new/2, delete/2, delete_object/2, delete_all_objects/1]).
-export([update_element/3, update_element/4]).
-export([insert/3, insert_new/3, ttl/2, touch/2, touch/3]).
%% Several keys as one step
-export([transact/4, update/3]).
%% Counters and merges
-export([update_counter/3, update_counter/4, merge/3, merge/4, merge/5, upgrade_merge/2]).
%% Taking
-export([take/2, take_first/1, take_last/1, take_all_objects/1, select_take/2]).
%% Reading
-export([lookup/2, lookup_element/3, lookup_element/4, lookup_elements/3, member/2, tab2list/1]).
-export([fetch/3, fetch/4]).
%% Traversal
-export([first/1, last/1, next/2, prev/2, first_lookup/1, last_lookup/1, next_lookup/2]).
-export([prev_lookup/2, foldl/3, foldr/3, safe_fixtable/2, slot/2]).
%% Match specifications
-export([select/1, select/2, select/3, select_reverse/1, select_reverse/2, select_reverse/3]).
-export([select_count/2, select_delete/2, select_replace/2, match/1, match/2, match/3]).
-export([match_object/1, match_object/2, match_object/3, match_delete/2, repair_continuation/2]).
-export([explain/2]).
%% Ranges
-export([range/3, range/4, prefix/2, prefix/3, range_count/3, range_count/4, range_delete/3]).
-export([range_delete/4, range_fold/5, range_fold/6, rank/2, nth/2, range_nth/4, range_nth/5]).
%% Snapshots
-export([snapshot/1, snapshot/2, release/1, diff/2, diff/4, checkpoint/2, checkpoint/3]).
-export([follow/1, follow/2, follow_more/2, unfollow/1]).
%% Other tables and queries
-export([to_ets/2, to_ets/3, to_ats/2, to_ats/3, from_ets/2, from_ets/3, from_ats/2, from_ats/3]).
-export([from_dets/2, from_dets/3, table/1, table/2]).
%% Names of dets
-export([is_dets_file/1, traverse/2, init_table/2, init_table/3, bchunk/2]).
-export([is_compatible_bchunk_format/2]).
%% Names of osmos
-export([open/2, read/2, write/3, select_range/5, select_continue/3]).

-export_type([tab_name/0, option/0, durability/0, reason/0, continuation/0]).
-export_type([chunk_continuation/0, snapshot/0, snapshot_option/0, difference/0]).
-export_type([follow_ref/0, follow_options/0, follow_change/0]).

-type tab_name() :: term().
%% The name of an open table; for functions that only read, also a {@type snapshot()}.
-type snapshot() :: ats:tid().
%% A read-only view of a table as it was at one moment.
-type snapshot_option() :: {max_age, infinity | (Milliseconds :: pos_integer())}.
-type difference() :: {insert, tuple()} | {delete, tuple()}
                    | {change, Old :: tuple(), New :: tuple()}.
%% A difference of two snapshots.
-type follow_ref() :: ats:follow_ref().
%% The reference of the messages of {@link follow/2}.
-type follow_options() :: ats:follow_options().
%% The options of {@link follow/2}.
-type follow_change() :: ats:follow_change().
%% A difference, or with the option `keys' the key of one.
-type durability() :: sync | {interval, Milliseconds :: pos_integer()} | system.
-type option() ::
        {file, Directory :: file:name_all()}
      | {type, ats:table_type()}
      | {keypos, pos_integer()}
      | {access, read | read_write}
      | {durability, durability()}
      | {auto_save, infinity | Milliseconds :: non_neg_integer()}
      | {merge, replace | ats:merge() | {module, module()}}
      | {ttl, infinity | (Milliseconds :: pos_integer())}
      | {block_size, Bytes :: pos_integer()}
      | {compressed, boolean()}
      | {memory, Bytes :: pos_integer()}
      | {continuation_age, infinity | Milliseconds :: pos_integer()}
      | {snapshot_memory, Bytes :: non_neg_integer()}
      | {estimated_no_objects | min_no_slots | max_no_slots, default | non_neg_integer()}
      | {ram_file, false} | {repair, boolean() | force}.
-type reason() :: ats_disk_failure:reason() | incompatible_arguments | not_owner
                | {fixed_table, tab_name()} | {unsupported, option()}.
-opaque continuation() :: {tab_name(), what(), ats:continuation()}.
%% The position at which a chunked call goes on; opaque to callers.
-opaque chunk_continuation() :: {tab_name(), bchunk, ats_disk_bchunk:position()}.
%% The position at which {@link bchunk/2} goes on; opaque to callers.
-type what() :: select | bindings | object.
%% The kind of results of a chunked call. Each kind has its own function that goes on.

%% Turns the refusal of a native call into an exception of the function that the user has called, or
%% into an answer. This is a macro and not a function because the top of the stack trace has to be
%% the user's call, and because success must cost nothing.
-define(OTHERWISE(Call, Name, Arguments, Cause, Failed),
        try Call
        catch error:{ats_error, Cause} ->
                case ats_disk_snapshot:failure(Cause, Name) of
                    {refused, FilesRefusal} ->
                        erlang:error(ats_errors:reason(FilesRefusal), Arguments,
                                     ats_errors:options(FilesRefusal));
                    Failed
                end
        end).
-define(ANSWER(Call, Name, Arguments),
        ?OTHERWISE(Call, Name, Arguments, FilesCause, {error, _} = FilesFailed -> FilesFailed)).
-define(ANSWER_OR_EXIT(Call, Name, Arguments),
        ?OTHERWISE(Call, Name, Arguments, FilesCause, {error, _} = FilesFailed ->
            exit(FilesFailed))).
-define(DONE(Call, Name, Arguments),
        ?ANSWER(done(Call), Name, Arguments)).
-define(TABLE(Name), (ats_disk_tables:find(Name))).
%% The table for a function that changes it; a snapshot is refused.
-define(CHANGED(Name), (ats_disk_tables:find_table(Name))).

%% Fails, and says why an argument is wrong.
-define(WRONG(Number, Words, Arguments),
        erlang:error(badarg, Arguments, ats_errors:options({argument, Number, Words}))).
-define(NO_DIRECTORY, <<"not the name of a directory">>).

%% Call a native function that reads, or changes, a table whose values a module may have to merge
%% first; see {@link ats_merge_access}.
-define(READ(Function, Arguments, Name),
        ats_merge_access:read(?TABLE(Name), Function, Arguments)).
-define(CHANGE(Function, Arguments, Name),
        ats_merge_access:change(?CHANGED(Name), Function, Arguments)).

-define(FOLDED_AT_ONCE, 100).

%%--------------------------------------------------------------------------------------------
%% Tables
%%--------------------------------------------------------------------------------------------

%% @doc Opens the existing table in a directory for the caller, under a new name.
-spec open_file(Directory :: file:name_all()) -> {ok, tab_name()} | {error, reason()}.
open_file(Directory) ->
    case ats_disk_options:parse_made(Directory) of
        {ok, Options} -> open_parsed(make_ref(), Options);
        {error, _} = Failed -> Failed;
        badarg -> ?WRONG(1, ?NO_DIRECTORY, [Directory])
    end.

%% @doc Opens a table for the caller, and makes it if it does not exist.
%%
%% The table is open until each process that has opened it has closed it as often as that, or has
%% ended. A process that opens a table that is open already must ask for the same directory and the
%% same `access', and its other options must not contradict those of the open table.
%%
%% <dl>
%% <dt>`{file, Directory}'</dt><dd>the directory of the table. It is made if it does not exist; its
%% parent must exist. Without this option the name of the table is the directory, and must be an
%% atom or a string</dd>
%% <dt>`{type, Type}'</dt><dd>`set', which is the default, `ordered_set', `bag', `duplicate_bag',
%% `ordered_bag', or `ordered_duplicate_bag'. An existing table must have this type, if the option
%% is given</dd>
%% <dt>`{keypos, Pos}'</dt><dd>the position of the key in objects, 1 by default. An existing table
%% must have the same one, if the option is given</dd>
%% <dt>`{access, read | read_write}'</dt><dd>with `read' the table must exist, no process can change
%% objects, and nothing in the directory is written</dd>
%% <dt>`{durability, sync}'</dt><dd>a write returns when it is on disk. Writes that wait at the same
%% time share one sync</dd>
%% <dt>`{durability, {interval, Ms}}'</dt><dd>a write is on disk at most `Ms' milliseconds after it
%% returned. The default, with 1000. `{auto_save, Ms}' means the same</dd>
%% <dt>`{durability, system}'</dt><dd>the operating system decides when a write is on disk: some 30
%% seconds later on Linux. `{auto_save, infinity}' means the same</dd>
%% <dt>`{merge, Merge}'</dt><dd>how the values that {@link write/3} writes to one key are merged. A
%% value is the element behind the key. `ats:merge/4' lists the merges; `replace', which is the
%% default, keeps the last value. Not for bags. An existing table must have this merge, if the
%% option is given</dd>
%% <dt>`{ttl, Ms}'</dt><dd>objects expire when that time has passed since they were inserted, by the
%% time of day: an object is gone, for every function and at once. With `{ttl, infinity}' those
%% expire that {@link insert/3} gives a time of their own. With `{ttl, {idle, Ms}}' the answer is
%% `{error, {unsupported, Option}}', since reads would have to write. Not with `{merge,
%% {module, Module}}': the answer is `{error, {unsupported, ttl}}'. A table that was made without
%% the option is not opened with it, and one that was made with it keeps it; another time is that of
%% objects that are inserted from then on. See `docs/use/tables-on-disk.md'</dd>
%% <dt>`{block_size, Bytes}'</dt><dd>approximate size of a block, the unit of reads from disk;
%% 4096</dd>
%% <dt>`{compressed, true}'</dt><dd>sorted files that are written from now on are compressed with
%% LZ4, block by block, where that makes a block smaller by an eighth at least. The files are often
%% half as large. The default</dd>
%% <dt>`{compressed, false}'</dt><dd>they are not: a point read that is not in memory takes some
%% microseconds less. Each setting reads files of the other</dd>
%% <dt>`{memory, Bytes}'</dt><dd>limit of the memory for the latest writes and for cached blocks of
%% this table alone. Tables without the option share one limit: see {@link shared_memory/0}</dd>
%% <dt>`{continuation_age, Ms}'</dt><dd>lifetime of the view of one moment that a call, or a
%% continuation of {@link select_range/5}, has of the table, if it does not read on. A function that
%% goes on later answers `{error, {continuation_expired, Directory}}'. An hour by default;
%% `infinity' is never. Snapshots of {@link snapshot/1} have the option `max_age' instead</dd>
%% <dt>`{snapshot_memory, Bytes}'</dt><dd>limit of the memory that snapshots of {@link snapshot/1}
%% hold besides that of the table. Beyond it the oldest of them end; 256 MiB</dd>
%% <dt>`{repair, true}'</dt><dd>if the table cannot be opened because files are damaged, all
%% readable objects are written to new files, and the table is opened. The damaged files are kept in
%% a directory beside it, and a logged warning names the losses</dd>
%% <dt>`{repair, false}'</dt><dd>for such a table the answer is `{error, {needs_repair,
%% Directory}}'. Without the option it is `{error, {damaged, Directory, What}}'</dd>
%% <dt>`{repair, force}'</dt><dd>all files are read and written anew, also if nothing shows yet
%% that they are damaged</dd>
%% </dl>
%%
%% The end of the virtual machine, by `halt' or by a signal, loses nothing, whatever the durability
%% is: the option is about crashes of the operating system and loss of power.
%%
%% `estimated_no_objects', `min_no_slots', `max_no_slots' and `{ram_file, false}' are accepted and
%% mean nothing. With `{ram_file, true}' the answer is `{error, {unsupported, Option}}'.
%%
%% ```
%% 1> dats:open_file(prices, [{file, "prices_on_disk"}, {type, ordered_set}]).
%% {ok,prices}
%% 2> dats:insert(prices, [{apple, 3}, {pear, 4}]).
%% ok
%% 3> dats:close(prices).
%% ok
%% 4> {ok, Name} = dats:open_file("prices_on_disk"), dats:lookup(Name, pear).
%% [{pear,4}]
%% '''
-spec open_file(tab_name(), option() | [option()]) -> {ok, tab_name()} | {error, reason()}.
open_file(Name, Options) ->
    case ats_disk_options:parse(Name, Options) of
        {ok, Parsed} -> open_parsed(Name, Parsed);
        {error, _} = Unsupported -> Unsupported;
        badarg ->
            {Number, Words} = ats_disk_options:wrong(Name, Options),
            ?WRONG(Number, Words, [Name, Options])
    end.

-spec open_parsed(tab_name(), ats_disk_options:parsed()) -> {ok, tab_name()} | {error, reason()}.
open_parsed(Name, Options) ->
    maybe_ok(ats_disk_tables:ensure_started(),
             fun() ->
                     maybe_ok(ats_disk_tables:open(Name, Options), fun() -> {ok, Name} end)
             end).

-spec maybe_ok(ok | {error, Reason}, fun(() -> Answer)) -> Answer | {error, Reason}.
maybe_ok(ok, Answer) -> Answer();
maybe_ok({error, _} = Failed, _Answer) -> Failed.

%% @doc Closes a table for the caller. When no process has the table open any more, the latest
%% writes are moved from the journal to sorted files, so that the next opening need not do this.
%% Fixations of the caller end, as in `dets'.
-spec close(tab_name()) -> ok | {error, reason()}.
close(Name) ->
    ?ANSWER(close_found(Name), Name, [Name]).

-spec close_found(tab_name()) -> ok | {error, reason()}.
close_found(Name) ->
    Table = try ?CHANGED(Name)
            catch error:{ats_error, id} -> none
            end,
    Closed = ats_disk_tables:close(Name),
    Closed =/= ok orelse unfix(Table),
    Closed.

%% Releases the fixations of the caller, for a table that others still have open.
-spec unfix(ats:tid() | none) -> ok.
unfix(Table) ->
    try ats_nif:disk_kind(Table) of
        {_Type, _KeyPos, {_, _, Users}} ->
            Times = proplists:get_value(self(), Users, 0),
            lists:foreach(fun(_) -> ats_nif:safe_fixtable(Table, false) end, lists:seq(1, Times));
        _ ->
            ok
    catch
        error:{ats_error, _} -> ok
    end.

%% @doc Returns `true' if there is a table in a directory.
%%
%% ```
%% 1> {ok, _} = dats:open_file(prices, [{type, ordered_set}]),
%%    dats:insert(prices, [{apple, 3}, {pear, 4}, {plum, 7}]).
%% ok
%% 2> dats:is_dats_file("prices").
%% true
%% 3> dats:is_dets_file("prices").
%% true
%% '''
-spec is_dats_file(Directory :: file:name_all()) -> boolean() | {error, reason()}.
is_dats_file(Directory) ->
    case ats_disk_options:describe(Directory) of
        {ok, _Type, _KeyPos} -> true;
        {error, {not_a_dats_table, _}} -> false;
        {error, _} = Failed -> Failed;
        badarg -> {error, {file_error, Directory, badarg}}
    end.

%% @doc Removes a table that is not open, and its directory. Other files in the directory stay, and
%% then the directory stays, too: the answer is `{ok, Names}' with the names of these files. A table
%% whose files are damaged can be removed, too. After a crash during the call, the same call
%% completes the removal.
-spec destroy(Directory :: file:name_all()) ->
          ok | {ok, Foreign :: [file:filename_all()]} | {error, reason()}.
destroy(Directory) ->
    case ats_disk_closed:destroy(Directory) of
        badarg -> ?WRONG(1, ?NO_DIRECTORY, [Directory]);
        Answer -> Answer
    end.

%% @doc Gives the directory of a table that is not open another name, in the same file system. A
%% table that has this name is removed: from one moment on the name is that of the renamed table,
%% also after a crash. After a crash, `From' may hold remains of the removed table.
-spec rename_table(From :: file:name_all(), To :: file:name_all()) -> ok | {error, reason()}.
rename_table(From, To) ->
    case ats_disk_closed:rename(From, To) of
        badarg -> ?WRONG(ats_disk_options:wrong_directory([From, To]), ?NO_DIRECTORY, [From, To]);
        Answer -> Answer
    end.

%% @doc Copies a table that is not open for writing to a directory that is empty or does not exist,
%% and is not below that of a table. The copy is on disk when the call returns; if it fails, or the
%% system stops meanwhile, there is none.
%%
%% ```
%% 1> {ok, _} = dats:open_file(prices, [{type, ordered_set}]),
%%    dats:insert(prices, [{apple, 3}, {pear, 4}, {plum, 7}]).
%% ok
%% 2> dats:close(prices).
%% ok
%% 3> dats:copy_table("prices", "prices_of_today").
%% ok
%% 4> dats:rename_table("prices_of_today", "prices_of_may").
%% ok
%% 5> dats:is_dats_file("prices_of_may").
%% true
%% 6> dats:destroy("prices_of_may").
%% ok
%% '''
-spec copy_table(From :: file:name_all(), To :: file:name_all()) -> ok | {error, reason()}.
copy_table(From, To) ->
    case ats_disk_closed:copy(From, To) of
        badarg -> ?WRONG(ats_disk_options:wrong_directory([From, To]), ?NO_DIRECTORY, [From, To]);
        Answer -> Answer
    end.

%% @doc Returns the names of all open tables of this node.
%%
%% ```
%% 1> {ok, _} = dats:open_file(prices, [{type, ordered_set}]),
%%    dats:insert(prices, [{apple, 3}, {pear, 4}, {plum, 7}]).
%% ok
%% 2> dats:all().
%% [prices]
%% '''
-spec all() -> [tab_name()].
all() ->
    ats_disk_tables:names().

%% @doc Describes a table. Returns `undefined' if it is not open.
-spec info(tab_name()) -> [{atom(), term()}] | undefined.
info(Name) ->
    ?ANSWER(ats_disk_info:all(Name), Name, [Name]).

%% @doc Returns one item of the description of a table; `undefined' if the table is not open, or
%% there is no such item.
%%
%% <dl>
%% <dt>`type', `keypos', `access', `durability', `compressed'</dt><dd>as it was opened</dd>
%% <dt>`auto_save'</dt><dd>the interval of `durability' in milliseconds, 0 for `sync', and
%% `infinity' for `system'</dd>
%% <dt>`ram_file'</dt><dd>`false'</dd>
%% <dt>`filename'</dt><dd>its directory, as it was spelled when it was opened</dd>
%% <dt>`size', `no_objects'</dt><dd>the number of objects. The first call after the table was
%% opened reads all of it; so does each call if objects expire</dd>
%% <dt>`no_keys'</dt><dd>the number of keys; in a bag, each call reads the whole table</dd>
%% <dt>`file_size'</dt><dd>bytes on disk, without the journal</dd>
%% <dt>`memory'</dt><dd>bytes in memory</dd>
%% <dt>`ttl'</dt><dd>the time after which objects expire: milliseconds, `infinity', or `false' in a
%% table made without the option</dd>
%% <dt>`expired'</dt><dd>the number of expired objects that were met since the table was opened,
%% while files were written. One that was replaced or deleted before is not among them</dd>
%% <dt>`users'</dt><dd>the processes that have opened it, each as often as it has</dd>
%% <dt>`owner'</dt><dd>the process that owns all open tables</dd>
%% <dt>`tree_entries', `file_entries', `files'</dt><dd>the number of keys in memory, of entries in
%% sorted files, and of sorted files, as in osmos</dd>
%% <dt>`safe_fixed', `safe_fixed_monotonic_time', `fixed'</dt><dd>as in `ets:info/2'</dd>
%% <dt>`snapshots'</dt><dd>the snapshots made by {@link snapshot/1}, as a map: their `number'; the
%% age of the `oldest' in milliseconds; the bytes that only they keep, as `memory' those of objects
%% that are in files by now, as `file_size' those of files that were replaced; and, as `evicted',
%% how many have ended by their age or by `snapshot_memory' since the table was opened</dd>
%% <dt>`snapshot_memory'</dt><dd>as it was opened</dd>
%% <dt>`stats'</dt><dd>counters of the store since it was opened, as a map; see
%% `docs/use/operating.md'</dd>
%% </dl>
%%
%% A snapshot has the items `type', `keypos', `size', `no_objects', `no_keys', `filename', `access',
%% `fixed', `safe_fixed' and `safe_fixed_monotonic_time', all as of its moment, and besides:
%%
%% <dl>
%% <dt>`snapshot_of'</dt><dd>the name of the table</dd>
%% <dt>`owner'</dt><dd>the process that has made it</dd>
%% <dt>`age'</dt><dd>its age in milliseconds</dd>
%% </dl>
%%
%% ```
%% 1> {ok, _} = dats:open_file(prices, [{type, ordered_set}]),
%%    dats:insert(prices, [{apple, 3}, {pear, 4}, {plum, 7}]).
%% ok
%% 2> dats:info(prices, size).
%% 3
%% '''
-spec info(tab_name(), Item :: atom()) -> term() | undefined.
info(Name, Item) ->
    ?ANSWER(ats_disk_info:item(Item, Name), Name, [Name, Item]).

%% @doc Says in words why a function has failed.
%%
%% ```
%% 1> Failed = dats:open_file(prices, [{file, "prices"}, {access, read}]).
%% {error,{file_error,"prices",enoent}}
%% 2> lists:flatten(dats:format_error(Failed)).
%% "prices: no such file or directory"
%% '''
-spec format_error({error, reason()} | reason()) -> unicode:chardata().
format_error(Reason) ->
    ats_disk_failure:format(Reason).

%%--------------------------------------------------------------------------------------------
%% Durability and space
%%--------------------------------------------------------------------------------------------

%% @doc Makes all earlier writes durable.
%%
%% ```
%% 1> {ok, _} = dats:open_file(prices, [{type, ordered_set}]),
%%    dats:insert(prices, [{apple, 3}, {pear, 4}, {plum, 7}]).
%% ok
%% 2> dats:sync(prices).
%% ok
%% '''
-spec sync(tab_name()) -> ok | {error, reason()}.
sync(Name) ->
    ?ANSWER(ats_disk_failure:of_call(ats_nif:disk_sync(?CHANGED(Name)),
                                     ats_disk_tables:directory(Name)),
            Name, [Name]).

%% @doc Writes the objects in memory to sorted files. Does not wait for writes that come meanwhile.
%%
%% ```
%% 1> {ok, _} = dats:open_file(prices, [{type, ordered_set}]),
%%    dats:insert(prices, [{apple, 3}, {pear, 4}, {plum, 7}]).
%% ok
%% 2> dats:flush(prices).
%% ok
%% '''
-spec flush(tab_name()) -> ok | {error, reason()}.
flush(Name) ->
    ?ANSWER(write_runs(Name, fun ats_nif:disk_flush/1), Name, [Name]).

%% @doc Compacts all sorted files into one, which has no replaced or deleted objects. Other calls go
%% on meanwhile. The table does this by itself, a part at a time; this call takes as long as reading
%% and writing the whole table.
%%
%% ```
%% 1> {ok, _} = dats:open_file(prices, [{type, ordered_set}]),
%%    dats:insert(prices, [{apple, 3}, {pear, 4}, {plum, 7}]).
%% ok
%% 2> dats:delete(prices, plum).
%% ok
%% 3> dats:compact(prices).
%% ok
%% '''
-spec compact(tab_name()) -> ok | {error, reason()}.
compact(Name) ->
    ?ANSWER(write_runs(Name, fun ats_nif:disk_compact/1), Name, [Name]).

%% Writes runs. Keys that then have several values, which a module merges, are merged soon.
-spec write_runs(tab_name(), fun((ats:tid()) -> ok | ats_nif:disk_failure())) ->
          ok | {error, reason()}.
write_runs(Name, Write) ->
    Table = ?CHANGED(Name),
    Written = ats_disk_failure:of_call(Write(Table), ats_disk_tables:directory(Name)),
    ok = ats_merge_background:pending(Table),
    Written.

%% @doc Returns the memory in bytes that tables opened without the option `memory' share. `budget'
%% is the parameter `disk_memory' that the application had when it was started, or 384 MiB;
%% `memtables' is in use for the latest writes (a third at most), and `cache' for blocks that were
%% read. While `memtables' is more than its part, the largest tables write theirs to files, and
%% writes are slowed down. Files that only snapshots read come on top.
%%
%% ```
%% 1> lists:sort(maps:keys(dats:shared_memory())).
%% [budget,cache,memtables]
%% '''
-spec shared_memory() -> #{budget := non_neg_integer(), memtables := non_neg_integer(),
                           cache := non_neg_integer()}.
shared_memory() ->
    ats_nif:disk_memory().

%%--------------------------------------------------------------------------------------------
%% Writing
%%--------------------------------------------------------------------------------------------

%% @doc Inserts an object or a list of objects, replacing those with an equal key in a `set' or
%% `ordered_set'. A list is inserted as one: after a crash all of it is there or nothing.
%%
%% ```
%% 1> {ok, _} = dats:open_file(prices, []), dats:insert(prices, [{apple, 3}, {pear, 4}]).
%% ok
%% 2> dats:insert(prices, {apple, 5}).
%% ok
%% 3> dats:lookup(prices, apple).
%% [{apple,5}]
%% '''
-spec insert(tab_name(), tuple() | [tuple()]) -> ok | {error, reason()}.
insert(Name, Objects) ->
    ?DONE(?CHANGE(insert, [Objects], Name), Name, [Name, Objects]).

%% @doc Inserts an object or a list of objects if none of their keys is in the table. Returns
%% `false', and inserts nothing, otherwise.
%%
%% ```
%% 1> {ok, _} = dats:open_file(prices, [{type, ordered_set}]),
%%    dats:insert(prices, [{apple, 3}, {pear, 4}, {plum, 7}]).
%% ok
%% 2> dats:insert_new(prices, [{fig, 9}, {pear, 5}]).
%% false
%% '''
-spec insert_new(tab_name(), tuple() | [tuple()]) -> boolean() | {error, reason()}.
insert_new(Name, Objects) ->
    ?ANSWER(?CHANGE(insert_new, [Objects], Name), Name, [Name, Objects]).

%% @doc Inserts an object or a list of objects like {@link insert/2}, for a time, as {@link
%% ats:insert/3} does. The table must have the option `ttl'.
%%
%% ```
%% 1> {ok, _} = dats:open_file(sessions, [{ttl, infinity}]).
%% {ok,sessions}
%% 2> dats:insert(sessions, {ann, online}, #{ttl => 60000}).
%% ok
%% 3> dats:ttl(sessions, ann) =< 60000.
%% true
%% '''
-spec insert(tab_name(), tuple() | [tuple()], #{ttl := ats:lifetime()}) -> ok | {error, reason()}.
insert(Name, Objects, Options) ->
    ?DONE(ats_nif:insert(?CHANGED(Name), Objects, ats_options:lifetime(Options)),
          Name, [Name, Objects, Options]).

%% @doc Inserts an object or a list of objects like {@link insert_new/2}, for a time like {@link
%% insert/3}.
-spec insert_new(tab_name(), tuple() | [tuple()], #{ttl := ats:lifetime()}) ->
          boolean() | {error, reason()}.
insert_new(Name, Objects, Options) ->
    ?ANSWER(ats_nif:insert_new(?CHANGED(Name), Objects, ats_options:lifetime(Options)),
            Name, [Name, Objects, Options]).

%% @doc Returns the milliseconds that are left to the objects of a key: `infinity' if they do not
%% expire, `undefined' if there are none.
-spec ttl(tab_name(), Key :: term()) ->
          non_neg_integer() | infinity | undefined | {error, reason()}.
ttl(Name, Key) ->
    ?ANSWER(ats_nif:ttl(?TABLE(Name), Key), Name, [Name, Key]).

%% @doc Gives the objects of a key the time of the table from now on. Otherwise the same as {@link
%% touch/3}.
%%
%% ```
%% 1> {ok, _} = dats:open_file(sessions, [{ttl, 60000}]),
%%    dats:insert(sessions, {ann, online}, #{ttl => infinity}).
%% ok
%% 2> dats:touch(sessions, ann).
%% true
%% 3> dats:ttl(sessions, ann) =< 60000.
%% true
%% '''
-spec touch(tab_name(), Key :: term()) -> boolean() | {error, reason()}.
touch(Name, Key) ->
    ?ANSWER(ats_nif:touch(?CHANGED(Name), Key, default), Name, [Name, Key]).

%% @doc Gives the objects of a key a time from now on, in milliseconds. Returns `false' if the key
%% has no objects. The table must have the option `ttl'. The objects are read, and written again.
%%
%% ```
%% 1> {ok, _} = dats:open_file(sessions, [{ttl, 60000}]),
%%    dats:insert(sessions, {ann, online}).
%% ok
%% 2> dats:touch(sessions, ann, infinity).
%% true
%% 3> dats:touch(sessions, bob, 1000).
%% false
%% '''
-spec touch(tab_name(), Key :: term(), infinity | (Milliseconds :: pos_integer())) ->
          boolean() | {error, reason()}.
touch(Name, Key, Ttl) ->
    ?ANSWER(ats_nif:touch(?CHANGED(Name), Key, ats_options:ttl(Ttl)), Name, [Name, Key, Ttl]).

%% @doc Removes all objects with a key, also if its values cannot be merged.
-spec delete(tab_name(), Key :: term()) -> ok | {error, reason()}.
delete(Name, Key) ->
    ?DONE(ats_nif:disk_delete(?CHANGED(Name), Key), Name, [Name, Key]).

%% @doc Removes exactly this object; in a `duplicate_bag' all its copies.
%%
%% ```
%% 1> {ok, _} = dats:open_file(prices, [{type, ordered_set}]),
%%    dats:insert(prices, [{apple, 3}, {pear, 4}, {plum, 7}]).
%% ok
%% 2> dats:delete_object(prices, {pear, 5}).
%% ok
%% 3> dats:member(prices, pear).
%% true
%% 4> dats:delete_object(prices, {pear, 4}).
%% ok
%% 5> dats:member(prices, pear).
%% false
%% '''
-spec delete_object(tab_name(), tuple()) -> ok | {error, reason()}.
delete_object(Name, Object) ->
    ?DONE(?CHANGE(delete_object, [Object], Name), Name, [Name, Object]).

%% @doc Removes all objects at one moment. O(1).
%%
%% ```
%% 1> {ok, _} = dats:open_file(prices, [{type, ordered_set}]),
%%    dats:insert(prices, [{apple, 3}, {pear, 4}, {plum, 7}]).
%% ok
%% 2> dats:delete_all_objects(prices).
%% ok
%% 3> dats:tab2list(prices).
%% []
%% '''
-spec delete_all_objects(tab_name()) -> ok | {error, reason()}.
delete_all_objects(Name) ->
    ?DONE(ats_nif:delete_all_objects(?CHANGED(Name)), Name, [Name]).

%% @doc Replaces elements of an object as one atomic step. Returns `false' if the key is not in
%% the table. Only for `set' and `ordered_set'.
%%
%% ```
%% 1> {ok, _} = dats:open_file(prices, [{type, ordered_set}]),
%%    dats:insert(prices, [{apple, 3}, {pear, 4}, {plum, 7}]).
%% ok
%% 2> dats:update_element(prices, pear, {2, 5}).
%% true
%% '''
-spec update_element(tab_name(), Key :: term(), ats:element_spec() | [ats:element_spec()]) ->
          boolean() | {error, reason()}.
update_element(Name, Key, ElementSpec) ->
    ?ANSWER(?CHANGE(update_element, [Key, ElementSpec], Name), Name, [Name, Key, ElementSpec]).

%% @doc Like {@link update_element/3}, starting from `Default' if the key is not in the table.
-spec update_element(tab_name(), Key :: term(), ats:element_spec() | [ats:element_spec()],
                     Default :: tuple()) -> true | {error, reason()}.
update_element(Name, Key, ElementSpec, Default) ->
    ?ANSWER(?CHANGE(update_element, [Key, ElementSpec, Default], Name),
            Name, [Name, Key, ElementSpec, Default]).

%%--------------------------------------------------------------------------------------------
%% Several keys as one step
%%--------------------------------------------------------------------------------------------

%% @doc Tests conditions on keys, and carries out the steps of `Then' if all of them hold, else
%% those of `Else', as one atomic step. Returns `true' or `false', whether they held, and the
%% results of the steps that were carried out.
%%
%% The conditions, the steps and their results are those of {@link ats:transact/4}, on tables of
%% all types. Every reader sees all changes or none, and after a crash all of them are there or
%% none: they are one write, on disk when the `durability' of the table says. No other process
%% changes one of the keys between the test and the changes. If a condition or a step fails, the
%% call fails with `badarg', and nothing has changed.
%%
%% All keys that the conditions and the steps of both branches name are read, with all their
%% objects, while writers of these keys wait. A call has up to 10000 conditions and steps together.
%% In a table whose values a module merges, the values of these keys are merged first.
%%
%% ```
%% 1> {ok, _} = dats:open_file(bank, []), dats:insert(bank, [{ann, 100}, {bob, 20}]).
%% ok
%% 2> Enough = {match, ann, {ann, '$1'}, [{'>=', '$1', 30}]},
%%    dats:transact(bank, [Enough, {present, bob}],
%%                  [{update_counter, ann, -30}, {update_counter, bob, 30}], []).
%% {true,[70,50]}
%% 3> dats:transact(bank, [{equals, {ann, 100}}], [{delete, ann}], [{lookup, ann}]).
%% {false,[[{ann,70}]]}
%% '''
-spec transact(tab_name(), [ats:condition()], Then :: [ats:step()], Else :: [ats:step()]) ->
          {boolean(), Results :: [term()]} | {error, reason()}.
transact(Name, Conditions, Then, Else) ->
    ?ANSWER(ats_disk_transactions:run(?CHANGED(Name), Conditions, Then, Else),
            Name, [Name, Conditions, Then, Else]).

%% @doc Replaces the object of a key by what a function makes of it: the function gets the list
%% that {@link lookup/2} returns, and returns the list that it is to return afterwards. Returns
%% that. Only for `set' and `ordered_set'.
%%
%% The calling process runs the function, and other processes go on meanwhile. If one of them has
%% written the key, the function is called again, up to a thousand times; then the call fails with
%% `contended'.
%%
%% ```
%% 1> {ok, _} = dats:open_file(words, []),
%%    Add = fun([]) -> [{the, 1}]; ([{the, N}]) when N < 2 -> [{the, N + 1}]; (_) -> [] end,
%%    dats:update(words, the, Add).
%% [{the,1}]
%% 2> dats:update(words, the, Add).
%% [{the,2}]
%% 3> dats:update(words, the, Add).
%% []
%% '''
-spec update(tab_name(), Key :: term(), fun((Before :: [tuple()]) -> After :: [tuple()])) ->
          After :: [tuple()] | {error, reason()}.
update(Name, Key, Function) ->
    ?ANSWER(ats_disk_transactions:update(?CHANGED(Name), Key, Function),
            Name, [Name, Key, Function]).

%%--------------------------------------------------------------------------------------------
%% Counters and merges
%%--------------------------------------------------------------------------------------------

%% @doc Adds to numbers inside an object and returns the new values. All operations of one call
%% are one atomic step. Only for `set' and `ordered_set'.
%%
%% If the operation is one number, or `{Pos, Number}', this number and the element that it is added
%% to can be floats. In all other operations they are integers, as in `ets'.
%%
%% ```
%% 1> {ok, _} = dats:open_file(prices, [{type, ordered_set}]),
%%    dats:insert(prices, [{apple, 3}, {pear, 4}, {plum, 7}]).
%% ok
%% 2> dats:update_counter(prices, pear, 2).
%% 6
%% 3> dats:update_counter(prices, pear, 0.5).
%% 6.5
%% '''
-spec update_counter(tab_name(), Key :: term(),
                     ats:update_op() | [ats:update_op()] | number()
                     | {Pos :: pos_integer(), number()}) ->
          number() | [integer()] | {error, reason()}.
update_counter(Name, Key, UpdateOp) ->
    ?ANSWER(ats_disk_number:add(?CHANGED(Name), Key, UpdateOp), Name, [Name, Key, UpdateOp]).

%% @doc Like {@link update_counter/3}, starting from `Default' if the key is not in the table.
-spec update_counter(tab_name(), Key :: term(),
                     ats:update_op() | [ats:update_op()] | integer(), Default :: tuple()) ->
          integer() | [integer()] | {error, reason()}.
update_counter(Name, Key, UpdateOp, Default) ->
    ?ANSWER(?CHANGE(update_counter, [Key, UpdateOp, Default], Name),
            Name, [Name, Key, UpdateOp, Default]).

%% @doc Merges a value with that of a key by the merge of the table, without reading it. The value
%% of a key is the element behind it. The cost is that of a write to the journal and to a tree in
%% memory, however much was written to the key before.
%%
%% In a table without merge the value replaces that of the key. Fails with `badarg' if the merge
%% does not take the value, for a bag, and if the key is not the first element of objects.
%%
%% ```
%% 1> {ok, _} = dats:open_file(visits, [{merge, sum}]), dats:merge(visits, monday, 3).
%% ok
%% 2> dats:merge(visits, monday, 4).
%% ok
%% 3> dats:lookup(visits, monday).
%% [{monday,7}]
%% '''
-spec merge(tab_name(), Key :: term(), Value :: term()) -> ok | {error, reason()}.
merge(Name, Key, Value) ->
    ?DONE(ats_osmos:merge(?CHANGED(Name), Key, Value), Name, [Name, Key, Value]).

%% @doc Merges a value into an element of the object with a key, as one atomic step, and returns the
%% new value of the element. If the key is not in the table, `{Key, Operand}' is inserted. {@link
%% ats:merge/4} lists the merges. The merge of the table has no part in it.
%%
%% ```
%% 1> {ok, _} = dats:open_file(prices, [{type, ordered_set}]),
%%    dats:insert(prices, [{apple, 3}, {pear, 4}, {plum, 7}]).
%% ok
%% 2> dats:merge(prices, pear, 9, max).
%% 9
%% 3> dats:merge(prices, fig, 5, {2, sum}).
%% 5
%% '''
-spec merge(tab_name(), Key :: term(), Operand :: term(),
            ats:merge() | {Pos :: pos_integer(), ats:merge()}) -> term().
merge(Name, Key, Operand, Merge) ->
    ?ANSWER_OR_EXIT(?CHANGE(merge, [Key, Operand, Merge], Name),
                    Name, [Name, Key, Operand, Merge]).

%% @doc Like {@link merge/4}, but if the key is not in the table, merges the operand into `Default'
%% and inserts the result under `Key'.
-spec merge(tab_name(), Key :: term(), Operand :: term(),
            ats:merge() | {Pos :: pos_integer(), ats:merge()}, Default :: tuple()) -> term().
merge(Name, Key, Operand, Merge, Default) ->
    ?ANSWER_OR_EXIT(?CHANGE(merge, [Key, Operand, Merge, Default], Name),
                    Name, [Name, Key, Operand, Merge, Default]).

-spec done(true) -> ok.
done(true) -> ok.

%% @doc Moves a table whose values a module merges to the present version of the module.
%%
%% No other version merges values that were written under one: until this is called, reads of keys
%% that are still to be merged answer `{error, {merge_mismatch, Directory, Key, {Module, OfTable,
%% OfModule}}}', and so do writes to all keys. The call first merges these keys:
%%
%% <dl>
%% <dt>`{old, OldModule}'</dt><dd>by a module with the functions of the old version, under
%% whatever name</dd>
%% <dt>`{convert, Fun}'</dt><dd>`Fun(Key, Values)' gets all values that were written to a key, the
%% oldest first, and returns `{value, Value}' or `delete'</dd>
%% </dl>
%%
%% Keys that have one value, merged already, are left as they are. If a key cannot be merged, that
%% is the answer, and the table keeps its version. The call takes as long as reading the whole
%% table.
-spec upgrade_merge(tab_name(), ats_merge_upgrade:how()) -> ok | {error, reason()}.
upgrade_merge(Name, How) ->
    ?ANSWER(finish_upgrade(Name, ats_merge_upgrade:upgrade(?CHANGED(Name), How)),
            Name, [Name, How]).

-spec finish_upgrade(tab_name(), {ok, {module, ats_merge:program(), ats_merge:version()}}
                     | ats_nif:disk_failure() | {error, reason, term()}) -> ok | {error, reason()}.
finish_upgrade(Name, {ok, Merge}) ->
    ats_disk_tables:set_merge(Name, Merge);
finish_upgrade(Name, Failed) ->
    ats_disk_failure:of_call(Failed, ats_disk_tables:directory(Name)).

%%--------------------------------------------------------------------------------------------
%% Taking
%%--------------------------------------------------------------------------------------------

%% @doc Removes and returns all objects with a key, as one atomic step.
%%
%% ```
%% 1> {ok, _} = dats:open_file(prices, [{type, ordered_set}]),
%%    dats:insert(prices, [{apple, 3}, {pear, 4}, {plum, 7}]).
%% ok
%% 2> dats:take(prices, pear).
%% [{pear,4}]
%% 3> dats:take(prices, pear).
%% []
%% '''
-spec take(tab_name(), Key :: term()) -> [tuple()] | {error, reason()}.
take(Name, Key) ->
    ?ANSWER(?CHANGE(take, [Key], Name), Name, [Name, Key]).

%% @doc Removes and returns the object with the first key of an `ordered_set'. See {@link
%% ats:take_first/1}.
%%
%% ```
%% 1> {ok, _} = dats:open_file(prices, [{type, ordered_set}]),
%%    dats:insert(prices, [{apple, 3}, {pear, 4}, {plum, 7}]).
%% ok
%% 2> dats:take_first(prices).
%% [{apple,3}]
%% '''
-spec take_first(tab_name()) -> [tuple()] | {error, reason()}.
take_first(Name) ->
    ?ANSWER(take_end(?CHANGED(Name), take_first, up), Name, [Name]).

%% @doc Like {@link take_first/1}, with the last key.
%%
%% ```
%% 1> {ok, _} = dats:open_file(prices, [{type, ordered_set}]),
%%    dats:insert(prices, [{apple, 3}, {pear, 4}, {plum, 7}]).
%% ok
%% 2> dats:take_last(prices).
%% [{plum,7}]
%% '''
-spec take_last(tab_name()) -> [tuple()] | {error, reason()}.
take_last(Name) ->
    ?ANSWER(take_end(?CHANGED(Name), take_last, down), Name, [Name]).

%% Takes the object at one end. In a table whose values a module merges this takes two steps:
%% another process may insert an object between them that would have been the first.
-spec take_end(ats:tid(), take_first | take_last, up | down) -> [tuple()].
take_end(Table, Function, Direction) ->
    case ats_nif:disk_try(Table, Function, []) of
        {ok, Taken} -> Taken;
        {refused, pending} -> take_found(Table, Function, Direction);
        {refused, Cause} -> erlang:error({ats_error, Cause})
    end.

-spec take_found(ats:tid(), take_first | take_last, up | down) -> [tuple()].
take_found(Table, Function, Direction) ->
    case ats_disk_walk:step(Table, Direction, start) of
        none ->
            [];
        Object ->
            case ats_merge_access:change(Table, take, [element(1, Object)]) of
                [] -> take_end(Table, Function, Direction);
                Taken -> Taken
            end
    end.

%% @doc Removes and returns all objects at one moment, those of an `ordered_set' in ascending order.
%% See {@link ats:take_all_objects/1}.
%%
%% The call waits for writes in progress, and for no reader, snapshot or fold. The table is empty
%% when the objects are read, which takes O(number of objects): they are lost if the caller is then
%% killed, or suspended for longer than `continuation_age', or if a file is damaged. If a module
%% merges the values, it merges them all once before the objects are removed: so a value that cannot
%% be merged is answered, and nothing is removed.
%%
%% ```
%% 1> {ok, _} = dats:open_file(prices, [{type, ordered_set}]),
%%    dats:insert(prices, [{apple, 3}, {pear, 4}, {plum, 7}]).
%% ok
%% 2> dats:take_all_objects(prices).
%% [{apple,3},{pear,4},{plum,7}]
%% 3> dats:info(prices, size).
%% 0
%% '''
-spec take_all_objects(tab_name()) -> [tuple()] | {error, reason()}.
take_all_objects(Name) ->
    ?ANSWER(take_all(?CHANGED(Name)), Name, [Name]).

-spec take_all(ats:tid()) -> [tuple()].
take_all(Table) ->
    ok = case ats_merge_access:is_merged_by_program(Table) of
             false -> ok;
             true -> ats_disk_walk:fold_chunks(fun(_Objects, ok) -> ok end, ok, Table, up)
         end,
    ats_disk_walk:take_all(Table).

%% @doc Deletes objects as {@link select_delete/2} does, and returns them. See {@link
%% ats:select_take/2}. If the specification is `[{'_',[],[true]}]', this is {@link
%% take_all_objects/1}.
%%
%% ```
%% 1> {ok, _} = dats:open_file(prices, [{type, ordered_set}]),
%%    dats:insert(prices, [{apple, 3}, {pear, 4}, {plum, 7}]).
%% ok
%% 2> dats:select_take(prices, [{{'_', '$1'}, [{'>', '$1', 3}], [true]}]).
%% [{pear,4},{plum,7}]
%% '''
-spec select_take(tab_name(), ats:match_spec()) -> [Object :: tuple()] | {error, reason()}.
select_take(Name, MatchSpec) ->
    ?ANSWER(take_selected(?CHANGED(Name), MatchSpec), Name, [Name, MatchSpec]).

-spec take_selected(ats:tid(), ats:match_spec()) -> [tuple()].
take_selected(Table, [{'_', [], [true]}]) ->
    take_all(Table);
take_selected(Table, MatchSpec) ->
    case ats_merge_access:is_merged_by_program(Table) of
        false -> ats_take:select_take(Table, MatchSpec);
        true -> ats_merge_access:take(Table, MatchSpec)
    end.

%%--------------------------------------------------------------------------------------------
%% Reading
%%--------------------------------------------------------------------------------------------

%% @doc Returns the objects with a key. An `ordered_set' compares keys with `==', the other
%% types with `=:='.
%%
%% ```
%% 1> {ok, _} = dats:open_file(prices, [{type, ordered_set}]),
%%    dats:insert(prices, [{apple, 3}, {pear, 4}, {plum, 7}]).
%% ok
%% 2> dats:lookup(prices, pear).
%% [{pear,4}]
%% 3> dats:lookup_element(prices, pear, 2).
%% 4
%% '''
-spec lookup(tab_name(), Key :: term()) -> [tuple()] | {error, reason()}.
lookup(Name, Key) ->
    ?ANSWER(ats_merge_access:lookup(?TABLE(Name), Key), Name, [Name, Key]).

%% @doc Returns one element of the object with a key, or a list of them from a bag. Fails with
%% `badarg' if the key is not in the table.
-spec lookup_element(tab_name(), Key :: term(), Pos :: pos_integer()) -> term() | [term()].
lookup_element(Name, Key, Pos) ->
    ?ANSWER_OR_EXIT(?READ(lookup_element, [Key, Pos], Name), Name, [Name, Key, Pos]).

%% @doc Like {@link lookup_element/3}, but returns `Default' if the key is not in the table.
-spec lookup_element(tab_name(), Key :: term(), Pos :: pos_integer(), Default :: term()) ->
          term() | [term()].
lookup_element(Name, Key, Pos, Default) ->
    ?ANSWER_OR_EXIT(?READ(lookup_element, [Key, Pos, Default], Name),
                    Name, [Name, Key, Pos, Default]).

%% @doc Returns several elements of the object with a key; see {@link ats:lookup_elements/3}.
%%
%% ```
%% 1> {ok, _} = dats:open_file(people, []),
%%    dats:insert(people, {ann, 1815, london, "a long text"}).
%% ok
%% 2> dats:lookup_elements(people, ann, [3, 2]).
%% [london,1815]
%% '''
-spec lookup_elements(tab_name(), Key :: term(), Positions :: [pos_integer()]) ->
          [term()] | {error, reason()}.
lookup_elements(Name, Key, Positions) ->
    ?ANSWER(?READ(lookup_elements, [Key, Positions], Name), Name, [Name, Key, Positions]).

%% @doc Returns the value of a key: the second element of its object. If the key is not there, calls
%% `Function(Key)', inserts `{Key, Value}' with the value that this returns, and returns the value.
%% One process of the node calls its function, however many fetch the key; see {@link ats:fetch/3}.
%%
%% ```
%% 1> {ok, _} = dats:open_file(squares, []).
%% {ok,squares}
%% 2> dats:fetch(squares, 12, fun(N) -> N * N end).
%% 144
%% 3> dats:fetch(squares, 12, fun(_) -> error(not_called) end).
%% 144
%% '''
-spec fetch(tab_name(), Key, fun((Key) -> Value)) -> Value.
fetch(Name, Key, Function) ->
    ?ANSWER_OR_EXIT(ats_fetch:fetch(disk, ?CHANGED(Name), Key, Function),
                    Name, [Name, Key, Function]).

%% @doc Returns the value of a key like {@link fetch/3}. A value that the function makes is there
%% for a time, like an object that {@link insert/3} inserts. The table must have the option `ttl'.
-spec fetch(tab_name(), Key, fun((Key) -> Value), #{ttl := ats:lifetime()}) -> Value.
fetch(Name, Key, Function, Options) ->
    ?ANSWER_OR_EXIT(ats_fetch:fetch(disk, ?CHANGED(Name), Key, Function,
                                    ats_options:lifetime(Options)),
                    Name, [Name, Key, Function, Options]).

%% @doc Tells whether a key is in the table.
-spec member(tab_name(), Key :: term()) -> boolean() | {error, reason()}.
member(Name, Key) ->
    ?ANSWER(?READ(member, [Key], Name), Name, [Name, Key]).

%% @doc Returns all objects as they are at one moment.
-spec tab2list(tab_name()) -> [tuple()] | {error, reason()}.
tab2list(Name) ->
    ?ANSWER(ats_disk_walk:list(?TABLE(Name)), Name, [Name]).

%%--------------------------------------------------------------------------------------------
%% Traversal
%%--------------------------------------------------------------------------------------------

%% @doc Returns the first key of the table. The order of an `ordered_set' is that of Erlang's terms;
%% that of the other types does not change, and means nothing.
%%
%% ```
%% 1> {ok, _} = dats:open_file(prices, [{type, ordered_set}]),
%%    dats:insert(prices, [{apple, 3}, {pear, 4}, {plum, 7}]).
%% ok
%% 2> dats:first(prices).
%% apple
%% 3> dats:next(prices, apple).
%% pear
%% 4> dats:last_lookup(prices).
%% {plum,[{plum,7}]}
%% '''
-spec first(tab_name()) -> Key :: term() | '$end_of_table'.
first(Name) ->
    ?ANSWER_OR_EXIT(ats_disk_walk:key(first, ?TABLE(Name), up), Name, [Name]).

%% @doc Returns the last key of an `ordered_set'; for other types the same as {@link first/1}.
%%
%% ```
%% 1> {ok, _} = dats:open_file(prices, [{type, ordered_set}]),
%%    dats:insert(prices, [{apple, 3}, {pear, 4}, {plum, 7}]).
%% ok
%% 2> dats:last(prices).
%% plum
%% '''
-spec last(tab_name()) -> Key :: term() | '$end_of_table'.
last(Name) ->
    ?ANSWER_OR_EXIT(ats_disk_walk:key(last, ?TABLE(Name), down), Name, [Name]).

%% @doc Returns the key after `Key', which itself need not be in the table.
-spec next(tab_name(), Key :: term()) -> NextKey :: term() | '$end_of_table'.
next(Name, Key) ->
    ?ANSWER_OR_EXIT(ats_disk_walk:key(next, ?TABLE(Name), up, Key), Name, [Name, Key]).

%% @doc Returns the key before `Key' in an `ordered_set'; otherwise the same as {@link next/2}.
%%
%% ```
%% 1> {ok, _} = dats:open_file(prices, [{type, ordered_set}]),
%%    dats:insert(prices, [{apple, 3}, {pear, 4}, {plum, 7}]).
%% ok
%% 2> dats:prev(prices, pear).
%% apple
%% '''
-spec prev(tab_name(), Key :: term()) -> PreviousKey :: term() | '$end_of_table'.
prev(Name, Key) ->
    ?ANSWER_OR_EXIT(ats_disk_walk:key(prev, ?TABLE(Name), down, Key), Name, [Name, Key]).

%% @doc Returns the first key together with its objects, in one step.
%%
%% ```
%% 1> {ok, _} = dats:open_file(prices, [{type, ordered_set}]),
%%    dats:insert(prices, [{apple, 3}, {pear, 4}, {plum, 7}]).
%% ok
%% 2> dats:first_lookup(prices).
%% {apple,[{apple,3}]}
%% '''
-spec first_lookup(tab_name()) -> {Key :: term(), [tuple()]} | '$end_of_table'.
first_lookup(Name) ->
    ?ANSWER_OR_EXIT(ats_disk_walk:objects(first_lookup, ?TABLE(Name), up), Name, [Name]).

%% @doc Returns the last key together with its objects, in one step.
-spec last_lookup(tab_name()) -> {Key :: term(), [tuple()]} | '$end_of_table'.
last_lookup(Name) ->
    ?ANSWER_OR_EXIT(ats_disk_walk:objects(last_lookup, ?TABLE(Name), down), Name, [Name]).

%% @doc Returns the key after `Key' together with its objects, in one step.
%%
%% ```
%% 1> {ok, _} = dats:open_file(prices, [{type, ordered_set}]),
%%    dats:insert(prices, [{apple, 3}, {pear, 4}, {plum, 7}]).
%% ok
%% 2> dats:next_lookup(prices, banana).
%% {pear,[{pear,4}]}
%% '''
-spec next_lookup(tab_name(), Key :: term()) ->
          {NextKey :: term(), [tuple()]} | '$end_of_table'.
next_lookup(Name, Key) ->
    ?ANSWER_OR_EXIT(ats_disk_walk:objects(next_lookup, ?TABLE(Name), up, Key),
                    Name, [Name, Key]).

%% @doc Returns the key before `Key' together with its objects, in one step.
%%
%% ```
%% 1> {ok, _} = dats:open_file(prices, [{type, ordered_set}]),
%%    dats:insert(prices, [{apple, 3}, {pear, 4}, {plum, 7}]).
%% ok
%% 2> dats:prev_lookup(prices, banana).
%% {apple,[{apple,3}]}
%% '''
-spec prev_lookup(tab_name(), Key :: term()) ->
          {PreviousKey :: term(), [tuple()]} | '$end_of_table'.
prev_lookup(Name, Key) ->
    ?ANSWER_OR_EXIT(ats_disk_walk:objects(prev_lookup, ?TABLE(Name), down, Key),
                    Name, [Name, Key]).

%% @doc Folds a function over the objects as they are at one moment, in ascending order of the keys
%% of an `ordered_set'. The function may change the table.
%%
%% ```
%% 1> {ok, _} = dats:open_file(prices, [{type, ordered_set}]),
%%    dats:insert(prices, [{apple, 3}, {pear, 4}, {plum, 7}]).
%% ok
%% 2> dats:foldl(fun({_, Price}, Sum) -> Price + Sum end, 0, prices).
%% 14
%% '''
-spec foldl(fun((Object :: tuple(), Acc) -> Acc), Acc, tab_name()) -> Acc | {error, reason()}.
foldl(Function, Acc, Name) ->
    ?ANSWER(fold(Function, Acc, Name, up), Name, [Function, Acc, Name]).

%% @doc Like {@link foldl/3}, in descending order of the keys of an `ordered_set'.
%%
%% ```
%% 1> {ok, _} = dats:open_file(prices, [{type, ordered_set}]),
%%    dats:insert(prices, [{apple, 3}, {pear, 4}, {plum, 7}]).
%% ok
%% 2> dats:foldr(fun({Key, _}, Keys) -> [Key | Keys] end, [], prices).
%% [apple,pear,plum]
%% '''
-spec foldr(fun((Object :: tuple(), Acc) -> Acc), Acc, tab_name()) -> Acc | {error, reason()}.
foldr(Function, Acc, Name) ->
    ?ANSWER(fold(Function, Acc, Name, down), Name, [Function, Acc, Name]).

-spec fold(fun((tuple(), Acc) -> Acc), Acc, tab_name(), up | down) -> Acc.
fold(Function, Acc, Name, Direction) ->
    ats_disk_walk:fold(Function, Acc, ?TABLE(Name), Direction).

%% @doc Fixes a table for traversal, or releases one fixation of the calling process. A traversal
%% with {@link next/2} of a fixed table meets every object that is there throughout, once.
%%
%% ```
%% 1> {ok, _} = dats:open_file(prices, [{type, ordered_set}]),
%%    dats:insert(prices, [{apple, 3}, {pear, 4}, {plum, 7}]).
%% ok
%% 2> dats:safe_fixtable(prices, true).
%% ok
%% 3> dats:info(prices, fixed).
%% true
%% 4> dats:safe_fixtable(prices, false).
%% ok
%% '''
-spec safe_fixtable(tab_name(), Fix :: boolean()) -> ok | {error, reason()}.
safe_fixtable(Name, Fix) ->
    ?DONE(ats_nif:safe_fixtable(?TABLE(Name), Fix), Name, [Name, Fix]).

%% @doc Returns the objects of the key at position `I', counted from 0, or `'$end_of_table'' behind
%% the last one. O(I).
%%
%% ```
%% 1> {ok, _} = dats:open_file(prices, [{type, ordered_set}]),
%%    dats:insert(prices, [{apple, 3}, {pear, 4}, {plum, 7}]).
%% ok
%% 2> dats:slot(prices, 1).
%% [{pear,4}]
%% '''
-spec slot(tab_name(), I :: non_neg_integer()) ->
          [tuple()] | '$end_of_table' | {error, reason()}.
slot(Name, I) when is_integer(I), I >= 0 ->
    ?ANSWER(ats_disk_walk:slot(?TABLE(Name), I), Name, [Name, I]);
slot(Name, I) ->
    ?WRONG(2, <<"not a number from 0">>, [Name, I]).

%%--------------------------------------------------------------------------------------------
%% Match specifications
%%
%% Bounds of the key, in the heads or in the guards, decide how much of a table is read: ranges and
%% prefixes of tuples and lists in an `ordered_set', single keys in the other types. Functions that
%% return everything at once read the table as it is at one moment. Each chunk of those that return
%% chunks is read at a moment of its own. Functions that change objects change each as a whole.
%%--------------------------------------------------------------------------------------------

%% @doc Returns the results of a match specification for the objects that match it, in ascending
%% order of the keys of an `ordered_set'.
%%
%% ```
%% 1> {ok, _} = dats:open_file(prices, [{type, ordered_set}]),
%%    dats:insert(prices, [{apple, 3}, {pear, 4}, {plum, 7}]).
%% ok
%% 2> dats:select(prices, [{{'$1', '$2'}, [{'>', '$2', 3}], ['$1']}]).
%% [pear,plum]
%% '''
-spec select(tab_name(), ats:match_spec()) -> [Match :: term()] | {error, reason()}.
select(Name, MatchSpec) ->
    ?ANSWER(list(Name, MatchSpec, up), Name, [Name, MatchSpec]).

%% @doc Like {@link select/2}, but returns at most `Limit' results, and a continuation for {@link
%% select/1}.
%%
%% ```
%% 1> {ok, _} = dats:open_file(prices, [{type, ordered_set}]),
%%    dats:insert(prices, [{apple, 3}, {pear, 4}, {plum, 7}]).
%% ok
%% 2> {Keys, Continuation} = dats:select(prices, [{{'$1', '_'}, [], ['$1']}], 2), Keys.
%% [apple,pear]
%% 3> {Others, _} = dats:select(Continuation), Others.
%% [plum]
%% '''
-spec select(tab_name(), ats:match_spec(), Limit :: non_neg_integer() | default) ->
          {[Match :: term()], continuation()} | '$end_of_table' | {error, reason()}.
select(Name, MatchSpec, Limit) ->
    ?ANSWER(chunk(Name, select, MatchSpec, up, Limit), Name, [Name, MatchSpec, Limit]).

%% @doc Goes on where {@link select/3}, {@link select_reverse/3}, {@link range/4} or
%% {@link prefix/3} stopped.
-spec select(continuation()) ->
          {[Match :: term()], continuation()} | '$end_of_table' | {error, reason()}.
select(Continuation) ->
    ?ANSWER(continue(select, Continuation), name_of(Continuation), [Continuation]).

%% @doc Like {@link select/2}, in descending order of the keys of an `ordered_set'.
%%
%% ```
%% 1> {ok, _} = dats:open_file(prices, [{type, ordered_set}]),
%%    dats:insert(prices, [{apple, 3}, {pear, 4}, {plum, 7}]).
%% ok
%% 2> dats:select_reverse(prices, [{{'$1', '_'}, [], ['$1']}]).
%% [plum,pear,apple]
%% '''
-spec select_reverse(tab_name(), ats:match_spec()) -> [Match :: term()] | {error, reason()}.
select_reverse(Name, MatchSpec) ->
    ?ANSWER(list(Name, MatchSpec, down), Name, [Name, MatchSpec]).

%% @doc Like {@link select/3}, in descending order of the keys of an `ordered_set'.
-spec select_reverse(tab_name(), ats:match_spec(), Limit :: non_neg_integer() | default) ->
          {[Match :: term()], continuation()} | '$end_of_table' | {error, reason()}.
select_reverse(Name, MatchSpec, Limit) ->
    ?ANSWER(chunk(Name, select, MatchSpec, down, Limit), Name, [Name, MatchSpec, Limit]).

%% @doc The same as {@link select/1}: a continuation knows its direction.
-spec select_reverse(continuation()) ->
          {[Match :: term()], continuation()} | '$end_of_table' | {error, reason()}.
select_reverse(Continuation) ->
    ?ANSWER(continue(select, Continuation), name_of(Continuation), [Continuation]).

%% @doc Counts the objects for which the result of a match specification is `true', as they are at
%% one moment.
%%
%% ```
%% 1> {ok, _} = dats:open_file(prices, [{type, ordered_set}]),
%%    dats:insert(prices, [{apple, 3}, {pear, 4}, {plum, 7}]).
%% ok
%% 2> dats:select_count(prices, [{{'_', '$1'}, [{'>', '$1', 3}], [true]}]).
%% 2
%% '''
-spec select_count(tab_name(), ats:match_spec()) -> non_neg_integer() | {error, reason()}.
select_count(Name, MatchSpec) ->
    ?ANSWER(ats_disk_reading:of_table(
              ?TABLE(Name), fun(Snapshot) -> ats_select:count(Snapshot, MatchSpec) end),
            Name, [Name, MatchSpec]).

%% @doc Deletes the objects for which the result of a match specification is `true', and returns how
%% many. Each is deleted atomically; all at one moment if the specification is `[{'_',[],[true]}]'.
%%
%% ```
%% 1> {ok, _} = dats:open_file(prices, [{type, ordered_set}]),
%%    dats:insert(prices, [{apple, 3}, {pear, 4}, {plum, 7}]).
%% ok
%% 2> dats:select_delete(prices, [{{'_', '$1'}, [{'>', '$1', 3}], [true]}]).
%% 2
%% '''
-spec select_delete(tab_name(), ats:match_spec()) -> non_neg_integer() | {error, reason()}.
select_delete(Name, [{'_', [], [true]}] = MatchSpec) ->
    ?ANSWER(ats_nif:clear(?CHANGED(Name)), Name, [Name, MatchSpec]);
select_delete(Name, MatchSpec) ->
    ?ANSWER(delete_selected(?CHANGED(Name), MatchSpec), Name, [Name, MatchSpec]).

-spec delete_selected(ats:tid(), ats:match_spec()) -> non_neg_integer().
delete_selected(_Table, []) ->
    erlang:error({ats_error, none});
delete_selected(Table, MatchSpec) ->
    case ats_merge_access:is_merged_by_program(Table) of
        false -> ats_select:delete(Table, MatchSpec);
        true -> ats_merge_access:delete(Table, MatchSpec)
    end.

%% @doc Replaces the objects that match a match specification by its results, and returns how many.
%% Each is replaced atomically. Not for a `bag'. See {@link ats:select_replace/2}.
%%
%% ```
%% 1> {ok, _} = dats:open_file(prices, [{type, ordered_set}]),
%%    dats:insert(prices, [{apple, 3}, {pear, 4}, {plum, 7}]).
%% ok
%% 2> dats:select_replace(prices, [{{'$1', '$2'}, [{'<', '$2', 5}], [{{'$1', {'+', '$2', 1}}}]}]).
%% 2
%% 3> dats:tab2list(prices).
%% [{apple,4},{pear,5},{plum,7}]
%% '''
-spec select_replace(tab_name(), ats:match_spec()) -> non_neg_integer() | {error, reason()}.
select_replace(Name, MatchSpec) ->
    ?ANSWER(replace_selected(?CHANGED(Name), MatchSpec), Name, [Name, MatchSpec]).

-spec replace_selected(ats:tid(), ats:match_spec()) -> non_neg_integer().
replace_selected(Table, MatchSpec) ->
    case ats_merge_access:is_merged_by_program(Table) of
        false -> ats_select:replace(Table, MatchSpec);
        true -> ats_merge_access:replace(Table, MatchSpec)
    end.

%% @doc Returns, for each object that matches a pattern, the list of the values of its variables, in
%% the order of their numbers.
%%
%% ```
%% 1> {ok, _} = dats:open_file(prices, [{type, ordered_set}]),
%%    dats:insert(prices, [{apple, 3}, {pear, 4}, {plum, 7}]).
%% ok
%% 2> dats:match(prices, {'$1', 4}).
%% [[pear]]
%% '''
-spec match(tab_name(), ats:match_pattern()) -> [Bindings :: [term()]] | {error, reason()}.
match(Name, Pattern) ->
    ?ANSWER(list(Name, pattern(Pattern, ['$$']), up), Name, [Name, Pattern]).

%% @doc Like {@link match/2}, but returns at most `Limit' results, and a continuation.
-spec match(tab_name(), ats:match_pattern(), Limit :: non_neg_integer() | default) ->
          {[Bindings :: [term()]], continuation()} | '$end_of_table' | {error, reason()}.
match(Name, Pattern, Limit) ->
    ?ANSWER(chunk(Name, bindings, pattern(Pattern, ['$$']), up, Limit),
            Name, [Name, Pattern, Limit]).

%% @doc Goes on where {@link match/3} stopped.
-spec match(continuation()) ->
          {[Bindings :: [term()]], continuation()} | '$end_of_table' | {error, reason()}.
match(Continuation) ->
    ?ANSWER(continue(bindings, Continuation), name_of(Continuation), [Continuation]).

%% @doc Returns the objects that match a pattern.
%%
%% ```
%% 1> {ok, _} = dats:open_file(prices, [{type, ordered_set}]),
%%    dats:insert(prices, [{apple, 3}, {pear, 4}, {plum, 7}]).
%% ok
%% 2> dats:match_object(prices, {'_', 4}).
%% [{pear,4}]
%% '''
-spec match_object(tab_name(), ats:match_pattern()) -> [Object :: tuple()] | {error, reason()}.
match_object(Name, Pattern) ->
    ?ANSWER(list(Name, pattern(Pattern, ['$_']), up), Name, [Name, Pattern]).

%% @doc Like {@link match_object/2}, but returns at most `Limit' objects, and a continuation.
-spec match_object(tab_name(), ats:match_pattern(), Limit :: non_neg_integer() | default) ->
          {[Object :: tuple()], continuation()} | '$end_of_table' | {error, reason()}.
match_object(Name, Pattern, Limit) ->
    ?ANSWER(chunk(Name, object, pattern(Pattern, ['$_']), up, Limit),
            Name, [Name, Pattern, Limit]).

%% @doc Goes on where {@link match_object/3} stopped.
-spec match_object(continuation()) ->
          {[Object :: tuple()], continuation()} | '$end_of_table' | {error, reason()}.
match_object(Continuation) ->
    ?ANSWER(continue(object, Continuation), name_of(Continuation), [Continuation]).

%% @doc Deletes the objects that match a pattern. All objects, that is the pattern `` '_' '', are
%% deleted at one moment.
%%
%% ```
%% 1> {ok, _} = dats:open_file(prices, [{type, ordered_set}]),
%%    dats:insert(prices, [{apple, 3}, {pear, 4}, {plum, 7}]).
%% ok
%% 2> dats:match_delete(prices, {'_', 4}).
%% ok
%% '''
-spec match_delete(tab_name(), ats:match_pattern()) -> ok | {error, reason()}.
match_delete(Name, '_') ->
    ?DONE(ats_nif:delete_all_objects(?CHANGED(Name)), Name, [Name, '_']);
match_delete(Name, Pattern) ->
    ?DONE(is_integer(delete_selected(?CHANGED(Name), pattern(Pattern, [true]))),
          Name, [Name, Pattern]).

%% A pattern that no tuple can match selects nothing, as in `dets'; only `ets' refuses it.
-spec pattern(term(), [term()]) -> ats:match_spec().
pattern(Pattern, Body) when is_tuple(Pattern); is_atom(Pattern) -> [{Pattern, [], Body}];
pattern(_Pattern, Body) -> [{'_', [false], Body}].

%% Refuses a specification without clauses, as `dets' does and `ets' does not.
-spec list(tab_name(), ats:match_spec(), up | down) -> [term()].
list(_Name, [], _Direction) ->
    erlang:error({ats_error, none});
list(Name, MatchSpec, Direction) ->
    ats_disk_reading:of_table(
      ?TABLE(Name), fun(Snapshot) -> ats_select:list(Snapshot, MatchSpec, Direction) end).

-spec chunk(tab_name(), what(), ats:match_spec(), up | down, pos_integer() | default) ->
          {[term()], continuation()} | '$end_of_table'.
chunk(_Name, _What, [], _Way, _Limit) ->
    erlang:error({ats_error, none});
chunk(Name, What, MatchSpec, Direction, default) ->
    chunk(Name, What, MatchSpec, Direction, ?FOLDED_AT_ONCE);
chunk(Name, What, MatchSpec, Direction, 0) ->
    %% `dets' takes 0 for as few as possible.
    chunk(Name, What, MatchSpec, Direction, 1);
chunk(Name, What, MatchSpec, Direction, Limit) ->
    Chunk = fun(Table) -> ats_select:chunk(Table, MatchSpec, Direction, Limit) end,
    with_name(Name, What, chunk_of(?TABLE(Name), Chunk)).

-spec continue(what(), continuation()) -> {[term()], continuation()} | '$end_of_table'.
continue(What, {Name, What, Continuation}) ->
    case ats_select:table_of(Continuation) of
        '$end_of_table' ->
            '$end_of_table';
        Table ->
            Next = fun(There) -> ats_select:continue(ats_select:move_to(Continuation, There)) end,
            with_name(Name, What, chunk_of(Table, Next))
    end;
continue(_, _) ->
    erlang:error({ats_error, none}).

%% Reads a chunk. If that took a snapshot, the continuation goes on in the table itself.
-spec chunk_of(ats:tid(), fun((ats:tid()) -> Chunk | pending)) -> Chunk
              when Chunk :: {[term()], ats:continuation()} | '$end_of_table'.
chunk_of(Table, Read) ->
    case ats_merge_access:live(Table, Read) of
        {Results, Continuation} -> {Results, ats_select:move_to(Continuation, Table)};
        '$end_of_table' -> '$end_of_table'
    end.

-spec with_name(tab_name(), what(), {[term()], ats:continuation()} | '$end_of_table') ->
          {[term()], continuation()} | '$end_of_table'.
with_name(Name, What, {Results, Continuation}) -> {Results, {Name, What, Continuation}};
with_name(_Name, _What, NoChunk) -> NoChunk.

-spec name_of(term()) -> tab_name().
name_of({Name, _What, _Continuation}) -> Name;
name_of(_) -> undefined.

%% @doc Makes a continuation usable again that was turned into a binary and back. `MatchSpec' is the
%% match specification it was made with.
%%
%% ```
%% 1> {ok, _} = dats:open_file(prices, [{type, ordered_set}]),
%%    dats:insert(prices, [{apple, 3}, {pear, 4}, {plum, 7}]).
%% ok
%% 2> MatchSpec = [{{'$1', '_'}, [], ['$1']}],
%%    {Keys, Continuation} = dats:select(prices, MatchSpec, 2), Keys.
%% [apple,pear]
%% 3> Kept = term_to_binary(Continuation),
%%    Repaired = dats:repair_continuation(binary_to_term(Kept), MatchSpec),
%%    {Others, _} = dats:select(Repaired), Others.
%% [plum]
%% '''
-spec repair_continuation(continuation(), ats:match_spec()) -> continuation().
repair_continuation({Name, What, Continuation} = Given, MatchSpec) ->
    ?ANSWER({Name, What, ats_select:repair(Continuation, MatchSpec)}, Name, [Given, MatchSpec]);
repair_continuation(Given, MatchSpec) ->
    ?WRONG(1, <<"invalid continuation">>, [Given, MatchSpec]).

%% @doc Runs a match specification and reports the cost. See {@link ats:explain/2}.
%%
%% ```
%% 1> {ok, _} = dats:open_file(prices, [{type, ordered_set}]),
%%    dats:insert(prices, [{apple, 3}, {pear, 4}, {plum, 7}]).
%% ok
%% 2> Explained = dats:explain(prices, [{{'$1', '_'}, [{'>', '$1', b}], ['$1']}]),
%%    maps:with([access, plan, rows_read], Explained).
%% #{access => ranges,plan => [<<"b < Key">>],rows_read => 2}
%% '''
-spec explain(tab_name(), ats:match_spec()) -> ats_select:explanation() | {error, reason()}.
explain(Name, MatchSpec) ->
    ?ANSWER(ats_merge_access:live(?TABLE(Name),
                                  fun(Table) -> ats_select:explain(Table, MatchSpec) end),
            Name, [Name, MatchSpec]).

%%--------------------------------------------------------------------------------------------
%% Ranges
%%
%% They are those of an `ordered_set', or of an ordered bag; {@link ats} describes these functions.
%% Those that return everything at once read the table as it is at one moment.
%%--------------------------------------------------------------------------------------------

%% @equiv range(Name, Low, High, [])
-spec range(tab_name(), Low :: term(), High :: term()) -> [tuple()] | {error, reason()}.
range(Name, Low, High) ->
    ?ANSWER(read_range(Name, fun(Table) -> ats_range:range(Table, Low, High, []) end),
            Name, [Name, Low, High]).

%% @doc Returns the objects with keys from `Low' to `High', in ascending order of the keys. See
%% {@link ats:range/4}.
%%
%% ```
%% 1> {ok, _} = dats:open_file(prices, [{type, ordered_set}]),
%%    dats:insert(prices, [{apple, 3}, {pear, 4}, {plum, 7}]).
%% ok
%% 2> dats:range(prices, b, pluto, []).
%% [{pear,4},{plum,7}]
%% 3> dats:range(prices, apple, plum, [keys, {low, exclusive}, reverse]).
%% [plum,pear]
%% '''
-spec range(tab_name(), Low :: term(), High :: term(), [ats:range_option()]) ->
          [term()] | {[term()], continuation()} | '$end_of_table' | {error, reason()}.
range(Name, Low, High, Options) ->
    ?ANSWER(read_range(Name, Options,
                       fun(Table) -> ats_range:range(Table, Low, High, Options) end),
            Name, [Name, Low, High, Options]).

%% @equiv prefix(Name, Pattern, [])
-spec prefix(tab_name(), Pattern :: term()) -> [tuple()] | {error, reason()}.
prefix(Name, Pattern) ->
    ?ANSWER(read_range(Name, fun(Table) -> ats_range:prefix(Table, Pattern, []) end),
            Name, [Name, Pattern]).

%% @doc Returns the objects whose keys begin with a prefix. See {@link ats:prefix/3}.
%%
%% ```
%% 1> {ok, _} = dats:open_file(mails, [{type, ordered_set}]),
%%    dats:insert(mails, [{{ann, 1}, hello}, {{bob, 1}, hi}, {{bob, 2}, bye}]).
%% ok
%% 2> dats:prefix(mails, {bob, '_'}, [keys]).
%% [{bob,1},{bob,2}]
%% '''
-spec prefix(tab_name(), Pattern :: term(), [ats:range_option()]) ->
          [term()] | {[term()], continuation()} | '$end_of_table' | {error, reason()}.
prefix(Name, Pattern, Options) ->
    ?ANSWER(read_range(Name, Options, fun(Table) -> ats_range:prefix(Table, Pattern, Options) end),
            Name, [Name, Pattern, Options]).

%% @equiv range_count(Name, Low, High, [])
-spec range_count(tab_name(), Low :: term(), High :: term()) ->
          non_neg_integer() | {error, reason()}.
range_count(Name, Low, High) ->
    ?ANSWER(count_range(?TABLE(Name), Low, High, []), Name, [Name, Low, High]).

%% @doc Counts the objects with a key from `Low' to `High', as they are at one moment. O(that
%% number).
%%
%% ```
%% 1> {ok, _} = dats:open_file(prices, [{type, ordered_set}]),
%%    dats:insert(prices, [{apple, 3}, {pear, 4}, {plum, 7}]).
%% ok
%% 2> dats:range_count(prices, apple, plum, [{high, exclusive}]).
%% 2
%% '''
-spec range_count(tab_name(), Low :: term(), High :: term(), [ats:range_bound()]) ->
          non_neg_integer() | {error, reason()}.
range_count(Name, Low, High, Bounds) ->
    ?ANSWER(count_range(?TABLE(Name), Low, High, Bounds), Name, [Name, Low, High, Bounds]).

-spec count_range(ats:tid(), term(), term(), [ats:range_bound()]) -> non_neg_integer().
count_range(Table, Low, High, Bounds) ->
    {From, To} = ats_range:cuts(Table, Low, High, Bounds),
    ats_disk_reading:of_table(
      Table, fun(Snapshot) -> ats_disk_walk:count(Snapshot, From, To) end).

%% @equiv range_delete(Name, Low, High, [])
-spec range_delete(tab_name(), Low :: term(), High :: term()) ->
          non_neg_integer() | {error, reason()}.
range_delete(Name, Low, High) ->
    ?ANSWER(delete_range(?CHANGED(Name), Low, High, []), Name, [Name, Low, High]).

%% @doc Deletes the objects with a key from `Low' to `High', each atomically, and returns how many.
%%
%% ```
%% 1> {ok, _} = dats:open_file(prices, [{type, ordered_set}]),
%%    dats:insert(prices, [{apple, 3}, {pear, 4}, {plum, 7}]).
%% ok
%% 2> dats:range_delete(prices, apple, plum, [{high, exclusive}]).
%% 2
%% '''
-spec range_delete(tab_name(), Low :: term(), High :: term(), [ats:range_bound()]) ->
          non_neg_integer() | {error, reason()}.
range_delete(Name, Low, High, Bounds) ->
    ?ANSWER(delete_range(?CHANGED(Name), Low, High, Bounds), Name, [Name, Low, High, Bounds]).

-spec delete_range(ats:tid(), term(), term(), [ats:range_bound()]) -> non_neg_integer().
delete_range(Table, Low, High, Bounds) ->
    case ats_merge_access:is_merged_by_program(Table) of
        false -> ats_range:delete(Table, Low, High, Bounds);
        true -> ats_merge_access:delete_range(Table, Low, High, Bounds)
    end.

%% @equiv range_fold(Function, Acc, Name, Low, High, [])
-spec range_fold(fun((term(), Acc) -> Acc), Acc, tab_name(), Low :: term(), High :: term()) ->
          Acc | {error, reason()}.
range_fold(Function, Acc, Name, Low, High) ->
    ?ANSWER(fold_range(Function, Acc, Name, Low, High, []),
            Name, [Function, Acc, Name, Low, High]).

%% @doc Folds a function over the results of {@link range/4}, in the same order. At most a hundred
%% of them are in memory at a time. The function may change the table.
%%
%% ```
%% 1> {ok, _} = dats:open_file(prices, [{type, ordered_set}]),
%%    dats:insert(prices, [{apple, 3}, {pear, 4}, {plum, 7}]).
%% ok
%% 2> dats:range_fold(fun({_, Price}, Sum) -> Price + Sum end, 0, prices, b, z, []).
%% 11
%% '''
-spec range_fold(fun((term(), Acc) -> Acc), Acc, tab_name(), Low :: term(), High :: term(),
                 [ats:range_option()]) -> Acc | {error, reason()}.
range_fold(Function, Acc, Name, Low, High, Options) ->
    ?ANSWER(fold_range(Function, Acc, Name, Low, High, Options),
            Name, [Function, Acc, Name, Low, High, Options]).

-spec fold_range(fun((term(), Acc) -> Acc), Acc, tab_name(), term(), term(),
                 [ats:range_option()]) -> Acc.
fold_range(Function, Acc, Name, Low, High, Options) ->
    ats_disk_reading:of_table(
      ?TABLE(Name),
      fun(Snapshot) -> ats_range:fold(Function, Acc, Snapshot, Low, High, Options) end).

-spec read_range(tab_name(), fun((ats:tid()) -> Answer)) -> Answer.
read_range(Name, Read) ->
    ats_disk_reading:of_table(?TABLE(Name), Read).

%% Reads a range of a snapshot; with a limit, a chunk whose continuation goes on in the table
%% itself.
-spec read_range(tab_name(), term(), fun((ats:tid()) -> [term()] | {[term()], ats:continuation()}
                                                  | '$end_of_table')) ->
          [term()] | {[term()], continuation()} | '$end_of_table'.
read_range(Name, Options, Read) ->
    case is_list(Options) andalso lists:keymember(limit, 1, Options) of
        true -> with_name(Name, select, chunk_of(?TABLE(Name), Read));
        false -> read_range(Name, Read)
    end.

%% @doc Returns the number of objects of an `ordered_set' whose keys are below a key. See {@link
%% ats:rank/2}. O(that number).
%%
%% ```
%% 1> {ok, _} = dats:open_file(prices, [{type, ordered_set}]),
%%    dats:insert(prices, [{apple, 3}, {pear, 4}, {plum, 7}]).
%% ok
%% 2> dats:rank(prices, plum).
%% 2
%% ''''
-spec rank(tab_name(), Key :: term()) -> non_neg_integer() | {error, reason()}.
rank(Name, Key) ->
    ?ANSWER(ats_disk_reading:of_table(
              ?TABLE(Name),
              fun(Snapshot) -> ats_disk_walk:count(Snapshot, none, {before, Key}) end),
            Name, [Name, Key]).

%% @doc Returns the object at position `N' of an `ordered_set', in the order of the keys: the first
%% for 1, the last for -1. See {@link ats:nth/2}. O(distance from that end).
%%
%% ```
%% 1> {ok, _} = dats:open_file(prices, [{type, ordered_set}]),
%%    dats:insert(prices, [{apple, 3}, {pear, 4}, {plum, 7}]).
%% ok
%% 2> dats:nth(prices, 1).
%% {apple,3}
%% 3> dats:nth(prices, -1).
%% {plum,7}
%% ''''
-spec nth(tab_name(), N :: integer()) -> Object :: tuple() | '$end_of_table'.
nth(Name, N) ->
    ?ANSWER_OR_EXIT(find_nth(?TABLE(Name), none, none, N), Name, [Name, N]).

%% @equiv range_nth(Name, Low, High, N, [])
-spec range_nth(tab_name(), Low :: term(), High :: term(), N :: integer()) ->
          Object :: tuple() | '$end_of_table'.
range_nth(Name, Low, High, N) ->
    ?ANSWER_OR_EXIT(find_nth_in_range(?TABLE(Name), Low, High, N, []), Name, [Name, Low, High, N]).

%% @doc Like {@link nth/2}, among the objects of a range only. The only options are the bounds of
%% {@link range/4}.
%%
%% ```
%% 1> {ok, _} = dats:open_file(prices, [{type, ordered_set}]),
%%    dats:insert(prices, [{apple, 3}, {pear, 4}, {plum, 7}]).
%% ok
%% 2> dats:range_nth(prices, b, z, 1, []).
%% {pear,4}
%% ''''
-spec range_nth(tab_name(), Low :: term(), High :: term(), N :: integer(), [ats:range_bound()]) ->
          Object :: tuple() | '$end_of_table'.
range_nth(Name, Low, High, N, Bounds) ->
    ?ANSWER_OR_EXIT(find_nth_in_range(?TABLE(Name), Low, High, N, Bounds),
                    Name, [Name, Low, High, N, Bounds]).

-spec find_nth_in_range(ats:tid(), term(), term(), term(), [ats:range_bound()]) ->
          tuple() | '$end_of_table'.
find_nth_in_range(Table, Low, High, N, Bounds) ->
    {From, To} = ats_range:cuts(Table, Low, High, Bounds),
    find_nth(Table, From, To, N).

-spec find_nth(ats:tid(), ats_nif:cut(), ats_nif:cut(), term()) -> tuple() | '$end_of_table'.
find_nth(Table, From, To, N) ->
    Place = ats_range:place(Table, N),
    ats_disk_reading:of_table(
      Table, fun(Snapshot) -> ats_disk_walk:nth(Snapshot, From, To, Place) end).

%%--------------------------------------------------------------------------------------------
%% Snapshots
%%--------------------------------------------------------------------------------------------

%% @equiv snapshot(Name, [])
-spec snapshot(tab_name()) -> snapshot().
snapshot(Name) ->
    ?ANSWER(ats_disk_snapshot:make(Name, []), Name, [Name]).

%% @doc Makes a snapshot: a read-only table with the objects that an open table has at this moment.
%% O(1), however large the table is; nobody waits for it.
%%
%% All functions that read take it in the place of a name, {@link table/1} and continuations
%% included, and {@link info/2}; other processes may read it, too. Functions that change a table, or
%% its files, fail with `badarg'. It has all writes from before the call, and each list of objects
%% as a whole or not at all.
%%
%% It ends with {@link release/1}, with the process that made it, when the table is closed, and when
%% it is older than the option `{max_age, Ms}' says; the default is `infinity'. Functions that read
%% it fail with `badarg' then, and the exception says why it has ended; {@link info/1} returns
%% `undefined'.
%%
%% While it exists, it keeps versions of objects in memory, and files, that were replaced since.
%% `info(Name, snapshots)' tells how many bytes these are. If all snapshots of a table hold more
%% memory than its option `snapshot_memory' says, the oldest end.
%%
%% ```
%% 1> {ok, _} = dats:open_file(prices, [{type, ordered_set}]),
%%    dats:insert(prices, [{apple, 3}, {pear, 4}, {plum, 7}]).
%% ok
%% 2> Before = dats:snapshot(prices, [{max_age, 60000}]),
%%    dats:delete_all_objects(prices).
%% ok
%% 3> dats:select(Before, [{{'$1', '$2'}, [{'>', '$2', 3}], ['$1']}]).
%% [pear,plum]
%% 4> dats:info(Before, snapshot_of).
%% prices
%% 5> dats:release(Before).
%% ok
%% '''
-spec snapshot(tab_name(), [snapshot_option()]) -> snapshot().
snapshot(Name, Options) ->
    ?ANSWER(ats_disk_snapshot:make(Name, Options), Name, [Name, Options]).

%% @doc Ends a snapshot, whichever process has made it. Memory and files that only this snapshot
%% keeps are freed at once. A snapshot that has ended otherwise may be released, too. A second call
%% fails with `badarg'.
%%
%% ```
%% 1> {ok, _} = dats:open_file(prices, [{type, ordered_set}]),
%%    Snapshot = dats:snapshot(prices),
%%    maps:get(number, dats:info(prices, snapshots)).
%% 1
%% 2> dats:release(Snapshot).
%% ok
%% '''
-spec release(snapshot()) -> ok.
release(Snapshot) ->
    ?DONE(ats_snapshot:release(Snapshot), Snapshot, [Snapshot]).

%% @doc Returns the differences between two snapshots of a table as a list. See {@link diff/4}.
%%
%% ```
%% 1> {ok, _} = dats:open_file(prices, [{type, ordered_set}]),
%%    dats:insert(prices, [{apple, 3}, {pear, 4}, {plum, 7}]).
%% ok
%% 2> Before = dats:snapshot(prices),
%%    dats:insert(prices, [{apple, 4}, {fig, 9}]),
%%    dats:delete(prices, plum).
%% ok
%% 3> dats:diff(Before, dats:snapshot(prices)).
%% [{change,{apple,3},{apple,4}},{insert,{fig,9}},{delete,{plum,7}}]
%% '''
-spec diff(First :: snapshot(), Second :: snapshot()) -> [difference()] | {error, reason()}.
diff(First, Second) ->
    ?ANSWER(lists:reverse(ats_disk_snapshot:diff(First, Second, fun(D, All) -> [D | All] end, [])),
            First, [First, Second]).

%% @doc Folds a function over the differences between two snapshots of a table: the changes that
%% turn the first into the second. Either may be the older one.
%%
%% A difference is `{insert, Object}', `{delete, Object}', or, in a `set' and an `ordered_set',
%% `{change, Old, New}'. In an ordered table, differences come in the order of the keys. A key of a
%% bag has all its deletes before its inserts; the order of the objects of a key is no difference.
%%
%% Files that both snapshots have are not read. The call takes as long as reading the writes between
%% the two, besides a look at the keys in memory. A file that a compaction made between the two, of
%% newer writes, too, counts as written, and so do the files that it has replaced, and objects in
%% ranges that were deleted as a whole. Some hundred kilobytes of differences are in memory at a
%% time, or those of one key.
%%
%% ```
%% 1> {ok, _} = dats:open_file(prices, [{type, ordered_set}]),
%%    Before = dats:snapshot(prices),
%%    dats:insert(prices, [{apple, 3}, {pear, 4}, {plum, 7}]).
%% ok
%% 2> Insert = fun({insert, {_Key, Price}}, Sum) -> Price + Sum end,
%%    dats:diff(Before, dats:snapshot(prices), Insert, 0).
%% 14
%% '''
-spec diff(First :: snapshot(), Second :: snapshot(), fun((difference(), Acc) -> Acc), Acc) ->
          Acc | {error, reason()}.
diff(First, Second, Function, Acc) ->
    ?ANSWER(ats_disk_snapshot:diff(First, Second, Function, Acc),
            First, [First, Second, Function, Acc]).

%% @equiv follow(Name, #{})
-spec follow(tab_name()) -> {ok, follow_ref()} | {error, reason()}.
follow(Name) ->
    ?ANSWER(ats_follow:follow_on_disk(Name, #{}), Name, [Name]).

%% @doc Sends the changes of a table to the caller, from now on. Returns the reference `Ref' of the
%% messages.
%%
%% The messages, the options and their meaning are those of {@link ats:follow/2}. The last message,
%% `{ats_changes, Ref, ended, Why}', has other reasons here: `closed', if the table was closed, also
%% if another one of the name has been opened since; `{error, reason()}', if the table could not be
%% read; `stopped', if the application `ats' was; or the reason with which the process that sends
%% the messages was killed. The receiver need not have opened the table, and to follow it does not
%% keep it open.
%%
%% Writes are told as soon as others see them, which may be before they are on disk. `lost' is told
%% if the snapshot of the last moment has ended by the option `snapshot_memory' of the table.
%%
%% A table in which nothing is written costs some microseconds each time. If something was, the time
%% is that of looking the changed keys up, also in a table of any size. It is longer for a moment
%% after which memory was written to a file, or files with newer writes were compacted: then keys
%% of that memory, or of these files, are looked up, too. The same holds for the first batch, and if
%% the keys that were written between two moments take more than the 16th part of the table's memory
%% for new writes, or more than 1 MiB. In a table with the option `ttl' the whole table is read for
%% each batch before which an object may have expired, in slices.
%%
%% ```
%% 1> {ok, _} = dats:open_file(prices, [{type, ordered_set}]),
%%    dats:insert(prices, {apple, 3}),
%%    {ok, Ref} = dats:follow(prices, #{snapshot => true, every => 10}),
%%    receive {ats_changes, Ref, 1, First} -> First end.
%% [{insert,{apple,3}}]
%% 2> dats:insert(prices, {apple, 5}),
%%    receive {ats_changes, Ref, 2, Second} -> Second end.
%% [{change,{apple,3},{apple,5}}]
%% 3> dats:unfollow(Ref).
%% ok
%% '''
-spec follow(tab_name(), follow_options()) -> {ok, follow_ref()} | {error, reason()}.
follow(Name, Options) ->
    ?ANSWER(ats_follow:follow_on_disk(Name, Options), Name, [Name, Options]).

%% @doc Lets `N' more batches be sent, besides those that are still allowed, or all with `true'. See
%% the option `active' of {@link ats:follow/2}. Returns `false' if the messages have ended.
%%
%% ```
%% 1> {ok, _} = dats:open_file(prices, [{type, ordered_set}]),
%%    {ok, Ref} = dats:follow(prices, #{active => 1, every => 10}),
%%    dats:follow_more(Ref, 10).
%% true
%% 2> dats:unfollow(Ref),
%%    dats:follow_more(Ref, true).
%% false
%% '''
-spec follow_more(follow_ref(), true | (N :: pos_integer())) -> boolean().
follow_more(Ref, N) ->
    ?ANSWER(ats_follow:more(Ref, N), Ref, [Ref, N]).

%% @doc Ends the messages of {@link follow/2}, and removes those that the caller has not received.
%% When the call returns, no more are sent, and the snapshot has ended. Does nothing if the messages
%% have ended before. This is {@link ats:unfollow/1} with the answer of this module; each takes the
%% references of both.
%%
%% ```
%% 1> {ok, _} = dats:open_file(prices, [{type, ordered_set}]),
%%    {ok, Ref} = dats:follow(prices),
%%    dats:unfollow(Ref).
%% ok
%% 2> maps:get(number, dats:info(prices, snapshots)).
%% 0
%% '''
-spec unfollow(follow_ref()) -> ok.
unfollow(Ref) ->
    ?DONE(ats_follow:unfollow(Ref), Ref, [Ref]).

%% @equiv checkpoint(Name, To, [])
-spec checkpoint(tab_name(), To :: file:name_all()) -> ok | {error, reason()}.
checkpoint(Name, To) ->
    ?ANSWER(ats_disk_checkpoint:make(Name, To, []), Name, [Name, To]).

%% @doc Copies an open table, as it is at one moment of the call, to another directory. The copy has
%% all writes from before the call, and each list of objects as a whole or not at all; nobody waits
%% meanwhile. The directory must be empty or not exist, and not be below that of a table. The copy
%% is on disk when the call returns; if it fails, or the system stops meanwhile, there is none.
%%
%% In the same file system the files get a second name, so the call takes milliseconds, and the copy
%% takes no room until the open table has replaced the files. In another file system they are
%% copied. The option `{since, Earlier}' names the directory of an earlier checkpoint there, which
%% is not open for writing: files that it has are not copied.
%%
%% ```
%% 1> {ok, _} = dats:open_file(prices, [{type, ordered_set}]),
%%    dats:insert(prices, [{apple, 3}, {pear, 4}, {plum, 7}]).
%% ok
%% 2> dats:checkpoint(prices, "prices_of_today", []).
%% ok
%% 3> dats:insert(prices, {apple, 4}).
%% ok
%% 4> {ok, Today} = dats:open_file("prices_of_today"),
%%    dats:lookup(Today, apple).
%% [{apple,3}]
%% '''
-spec checkpoint(tab_name(), To :: file:name_all(), [{since, Earlier :: file:name_all()}]) ->
          ok | {error, reason()}.
checkpoint(Name, To, Options) ->
    ?ANSWER(ats_disk_checkpoint:make(Name, To, Options), Name, [Name, To, Options]).

%%--------------------------------------------------------------------------------------------
%% Other tables and queries
%%--------------------------------------------------------------------------------------------

%% @equiv to_ets(Name, EtsTable, [])
-spec to_ets(tab_name(), ets:table()) -> ets:table() | {error, reason()}.
to_ets(Name, EtsTable) ->
    ?ANSWER(out(Name, {ets, EtsTable}, []), Name, [Name, EtsTable]).

%% @doc Inserts the objects, as they are at one moment, into a table of `ets', and returns that.
%%
%% With the option `{progress, Fun}', `Fun(Done, Total)' is called at least once in some thousand
%% objects, with the number of objects so far, and that of all objects, or `unknown'. The same holds
%% for the other functions that take this option.
%%
%% ```
%% 1> {ok, _} = dats:open_file(prices, [{type, ordered_set}]),
%%    dats:insert(prices, [{apple, 3}, {pear, 4}, {plum, 7}]).
%% ok
%% 2> Copy = ets:new(copy, [ordered_set, named_table]),
%%    dats:to_ets(prices, Copy, []).
%% copy
%% 3> ets:last(Copy).
%% plum
%% '''
-spec to_ets(tab_name(), ets:table(), [{progress, ats_disk_transfer:progress()}]) ->
          ets:table() | {error, reason()}.
to_ets(Name, EtsTable, Options) ->
    ?ANSWER(out(Name, {ets, EtsTable}, Options), Name, [Name, EtsTable, Options]).

%% @equiv to_ats(Name, AtsTable, [])
-spec to_ats(tab_name(), ats:table()) -> ats:table() | {error, reason()}.
to_ats(Name, AtsTable) ->
    ?ANSWER(out(Name, {ats, AtsTable}, []), Name, [Name, AtsTable]).

%% @doc Like {@link to_ets/3}, but into a table of `ats'.
%%
%% ```
%% 1> {ok, _} = dats:open_file(prices, [{type, ordered_set}]),
%%    dats:insert(prices, [{apple, 3}, {pear, 4}, {plum, 7}]).
%% ok
%% 2> Copy = ats:new(copy, [ordered_set, named_table]),
%%    dats:to_ats(prices, Copy, []).
%% copy
%% 3> ats:nth(Copy, 2).
%% {pear,4}
%% '''
-spec to_ats(tab_name(), ats:table(), [{progress, ats_disk_transfer:progress()}]) ->
          ats:table() | {error, reason()}.
to_ats(Name, AtsTable, Options) ->
    ?ANSWER(out(Name, {ats, AtsTable}, Options), Name, [Name, AtsTable, Options]).

-spec out(tab_name(), {ets | ats, Target}, [{progress, ats_disk_transfer:progress()}]) -> Target.
out(Name, {_Module, Target} = To, Options) ->
    ok = ats_disk_transfer:out(?TABLE(Name), To, progress(Options)),
    Target.

%% @equiv from_ets(Name, EtsTable, [])
-spec from_ets(tab_name(), ets:table()) -> ok | {error, reason()}.
from_ets(Name, EtsTable) ->
    ?ANSWER(in(Name, {ets, EtsTable}, []), Name, [Name, EtsTable]).

%% @doc Replaces the objects by those of a table of `ets'.
%%
%% ```
%% 1> Old = ets:new(old, []), ets:insert(Old, {apple, 3}).
%% true
%% 2> {ok, _} = dats:open_file(prices, []), dats:from_ets(prices, Old, []).
%% ok
%% 3> dats:lookup(prices, apple).
%% [{apple,3}]
%% '''
-spec from_ets(tab_name(), ets:table(), [{progress, ats_disk_transfer:progress()}]) ->
          ok | {error, reason()}.
from_ets(Name, EtsTable, Options) ->
    ?ANSWER(in(Name, {ets, EtsTable}, Options), Name, [Name, EtsTable, Options]).

%% @equiv from_ats(Name, AtsTable, [])
-spec from_ats(tab_name(), ats:table()) -> ok | {error, reason()}.
from_ats(Name, AtsTable) ->
    ?ANSWER(in(Name, {ats, AtsTable}, []), Name, [Name, AtsTable]).

%% @doc Replaces the objects by those of a table of `ats'.
%%
%% ```
%% 1> Old = ats:new(old, []), ats:insert(Old, {apple, 3}).
%% true
%% 2> {ok, _} = dats:open_file(prices, []), dats:from_ats(prices, Old, []).
%% ok
%% 3> dats:lookup(prices, apple).
%% [{apple,3}]
%% '''
-spec from_ats(tab_name(), ats:table(), [{progress, ats_disk_transfer:progress()}]) ->
          ok | {error, reason()}.
from_ats(Name, AtsTable, Options) ->
    ?ANSWER(in(Name, {ats, AtsTable}, Options), Name, [Name, AtsTable, Options]).

%% @equiv from_dets(Name, DetsTable, [])
-spec from_dets(tab_name(), dets:tab_name()) -> ok | {error, reason()}.
from_dets(Name, DetsTable) ->
    ?ANSWER(in(Name, {dets, DetsTable}, []), Name, [Name, DetsTable]).

%% @doc Replaces the objects by those of an open table of `dets'.
%%
%% ```
%% 1> {ok, _} = dets:open_file(old, [{file, "old.dets"}]),
%%    dets:insert(old, {apple, 3}).
%% ok
%% 2> {ok, _} = dats:open_file(prices, []), dats:from_dets(prices, old, []).
%% ok
%% 3> dets:close(old), dats:lookup(prices, apple).
%% [{apple,3}]
%% '''
-spec from_dets(tab_name(), dets:tab_name(), [{progress, ats_disk_transfer:progress()}]) ->
          ok | {error, reason()}.
from_dets(Name, DetsTable, Options) ->
    ?ANSWER(in(Name, {dets, DetsTable}, Options), Name, [Name, DetsTable, Options]).

-spec in(tab_name(), {ets | ats | dets, term()}, [{progress, ats_disk_transfer:progress()}]) ->
          ok | {error, term()}.
in(Name, From, Options) ->
    unless_fixed(Name, ats_disk_transfer:in(?CHANGED(Name), From, progress(Options))).

-spec progress(term()) -> ats_disk_transfer:progress().
progress([]) -> fun(_, _) -> ok end;
progress([{progress, Progress}]) when is_function(Progress, 2) -> Progress;
progress(_) -> erlang:error({ats_error, options}).

%% @equiv table(Name, [])
-spec table(tab_name()) -> qlc:query_handle().
table(Name) ->
    ?ANSWER(ats_qlc:table(?MODULE, Name, []), Name, [Name]).

%% @doc Makes a table a source of queries of `qlc'. See {@link ats:table/2}.
%%
%% ```
%% 1> {ok, _} = dats:open_file(prices, [{type, ordered_set}]),
%%    dats:insert(prices, [{apple, 3}, {pear, 4}, {plum, 7}]).
%% ok
%% 2> qlc:e(qlc:q([Key || {Key, Price} <- dats:table(prices, []), Price > 3])).
%% [pear,plum]
%% '''
-spec table(tab_name(), ats_qlc:option() | [ats_qlc:option()]) -> qlc:query_handle().
table(Name, Options) ->
    ?ANSWER(ats_qlc:table(?MODULE, Name, Options), Name, [Name, Options]).

%%--------------------------------------------------------------------------------------------
%% Names of dets
%%
%% Programs that were written for `dets' find these functions, and all others that it has.
%%--------------------------------------------------------------------------------------------

%% @equiv is_dats_file(Directory)
-spec is_dets_file(Directory :: file:name_all()) -> boolean() | {error, reason()}.
is_dets_file(Directory) ->
    is_dats_file(Directory).

%% @doc Calls a function with the objects of one moment, one after the other. Its result decides:
%%
%% <dl>
%% <dt>`continue'</dt><dd>goes on</dd>
%% <dt>`{continue, Value}'</dt><dd>goes on, and returns the value among others</dd>
%% <dt>`{done, Value}'</dt><dd>ends, and returns the value among others</dd>
%% <dt>anything else</dt><dd>ends, and returns this term</dd>
%% </dl>
%%
%% The values are returned the last one first.
%%
%% ```
%% 1> {ok, _} = dats:open_file(prices, [{type, ordered_set}]),
%%    dats:insert(prices, [{apple, 3}, {pear, 4}, {plum, 7}]).
%% ok
%% 2> dats:traverse(prices, fun({_, 3}) -> continue; ({Key, _}) -> {continue, Key} end).
%% [plum,pear]
%% '''
-spec traverse(tab_name(), fun((Object :: tuple()) -> continue | {continue, Value}
                                                    | {done, Value} | Other)) ->
          [Value] | Other | {error, reason()}.
traverse(Name, Function) ->
    ?ANSWER(try fold(fun(Object, Values) -> step(Function(Object), Values) end,
                     [], Name, up)
            catch throw:{?MODULE, traversed, Result} -> Result
            end, Name, [Name, Function]).

-spec step(continue | {continue, Value} | {done, Value} | term(), [Value]) -> [Value].
step(continue, Values) -> Values;
step({continue, Value}, Values) -> [Value | Values];
step({done, Value}, Values) -> throw({?MODULE, traversed, [Value | Values]});
step(Other, _Values) -> throw({?MODULE, traversed, Other}).

%% @equiv init_table(Name, InitFun, [])
-spec init_table(tab_name(), ats_dets:init_fun()) -> ok | {error, term()}.
init_table(Name, InitFun) ->
    ?ANSWER(init(Name, InitFun, []), Name, [Name, InitFun]).

%% @doc Replaces the objects of a table by those that a function provides. It is called with the
%% argument `read' and returns `{Objects, NextFun}', or `end_of_input'. If it returns anything else,
%% the answer is `{error, {init_fun, Returned}}', and the table is unchanged. It is also unchanged
%% if the function fails, or provides a term that is no object. For a fixed table the answer is
%% `{error, {fixed_table, Name}}'.
%%
%% With `{format, bchunk}' the function provides the chunks that {@link bchunk/2} returned for a
%% table of the same type with its keys at the same position. If a piece of a chunk is missing,
%% damaged, or of another table, the answer is `{error, {damaged_bchunk, What}}' or `{error,
%% {incompatible_bchunk, What}}'.
%%
%% Up to 128 MiB of objects replace the old ones at one moment. The same holds for {@link
%% from_ets/2} and its like. See the page `docs/use/tables-on-disk.md' for larger amounts.
%%
%% ```
%% 1> {ok, _} = dats:open_file(prices, []),
%%    Last = fun(read) -> end_of_input end,
%%    dats:init_table(prices, fun(read) -> {[{apple, 3}, {pear, 4}], Last} end, []).
%% ok
%% 2> dats:lookup(prices, pear).
%% [{pear,4}]
%% '''
-spec init_table(tab_name(), ats_dets:init_fun(), Option | [Option]) -> ok | {error, term()}
              when Option :: {min_no_slots, default | non_neg_integer()} | {format, term | bchunk}.
init_table(Name, InitFun, Options) ->
    ?ANSWER(init(Name, InitFun, Options), Name, [Name, InitFun, Options]).

-spec init(tab_name(), term(), term()) -> ok | {error, term()}.
init(Name, InitFun, Options) when is_function(InitFun) ->
    case ats_disk_options:of_init(Options) of
        term -> unless_fixed(Name, ats_disk_transfer:init(?CHANGED(Name), InitFun));
        bchunk -> unless_fixed(Name, init_by_chunks(?CHANGED(Name), InitFun));
        badarg -> erlang:error({ats_error, none})
    end;
init(_Name, _InitFun, _Options) ->
    erlang:error({ats_error, none}).

-spec init_by_chunks(ats:tid(), ats_dets:init_fun()) -> ok | {error, term()} | fixed.
init_by_chunks(Table, InitFun) ->
    {Type, KeyPos, _Fixed} = ats_nif:disk_kind(Table),
    ats_disk_bchunk:decode_objects({Type, KeyPos}, InitFun,
                                   fun(Provider) -> ats_disk_transfer:init(Table, Provider) end).

-spec unless_fixed(tab_name(), ok | {error, term()} | fixed) -> ok | {error, term()}.
unless_fixed(Name, fixed) -> {error, {fixed_table, Name}};
unless_fixed(_Name, Done) -> Done.

%% @doc Returns some objects of a table as binaries, and a continuation for the next ones; the first
%% time with `start'. {@link init_table/3} makes a table of them again. Each chunk is read at a
%% moment of its own; those of a {@link snapshot()} are of one moment. A continuation fails with
%% `badarg' if the table was closed since, also if it is open again.
%%
%% ```
%% 1> {ok, _} = dats:open_file(prices, [{type, ordered_set}]),
%%    dats:insert(prices, [{apple, 3}, {pear, 4}, {plum, 7}]).
%% ok
%% 2> {More, First} = dats:bchunk(prices, start),
%%    {End, Rest} = dats:bchunk(prices, More),
%%    dats:bchunk(prices, End).
%% '$end_of_table'
%% 3> {ok, _} = dats:open_file(copy, [{type, ordered_set}]),
%%    dats:is_compatible_bchunk_format(copy, dats:info(prices, bchunk_format)).
%% true
%% 4> Last = fun(read) -> end_of_input end,
%%    dats:init_table(copy, fun(read) -> {First ++ Rest, Last} end, [{format, bchunk}]).
%% ok
%% 5> dats:lookup(copy, pear).
%% [{pear,4}]
%% '''
-spec bchunk(tab_name(), start | chunk_continuation()) ->
          {chunk_continuation(), ats_disk_bchunk:data()} | '$end_of_table' | {error, reason()}.
bchunk(Name, start = Continuation) ->
    ?ANSWER(name_chunk(Name, ats_disk_bchunk:first(?TABLE(Name))), Name, [Name, Continuation]);
bchunk(Name, {Name, bchunk, Position} = Continuation) ->
    ?ANSWER(name_chunk(Name, ats_disk_bchunk:next(?TABLE(Name), Position)),
            Name, [Name, Continuation]);
bchunk(Name, Other) ->
    ?WRONG(2, <<"not `start', nor a continuation of this table">>, [Name, Other]).

-spec name_chunk(tab_name(), {ats_disk_bchunk:position(), [binary()]} | '$end_of_table') ->
          {chunk_continuation(), [binary()]} | '$end_of_table'.
name_chunk(Name, {Position, Pieces}) -> {{Name, bchunk, Position}, Pieces};
name_chunk(_Name, '$end_of_table') -> '$end_of_table'.

%% @doc Returns `true' if a table can be filled with chunks of a table whose `info(T,
%% bchunk_format)' is `Format'.
-spec is_compatible_bchunk_format(tab_name(), Format :: term()) -> boolean().
is_compatible_bchunk_format(Name, Format) ->
    ?ANSWER(is_compatible(?TABLE(Name), Format), Name, [Name, Format]).

-spec is_compatible(ats:tid(), term()) -> boolean().
is_compatible(Table, Format) ->
    {Type, KeyPos, _Fixed} = ats_nif:disk_kind(Table),
    ats_disk_bchunk:is_compatible(Format, Type, KeyPos).

%%--------------------------------------------------------------------------------------------
%% Names of osmos
%%
%% A table of pairs of a key and a value, in the order of the keys. A write does not read: the table
%% merges the values of a key when the key is read, or in the background. The function of this
%% module that does the same is {@link merge/3}.
%%--------------------------------------------------------------------------------------------

%% @doc Opens or makes a table, an `ordered_set', with the options of osmos.
%%
%% <dl>
%% <dt>`{directory, Directory}'</dt><dd>the directory of the table</dd>
%% <dt>`{format, {Key, Value, BlockSize}}'</dt><dd>`Key' is `term', `binary' or `string_vector'.
%% `Value' is `term_replace' or `binary_replace', which keep the last value; `uint64_sum_delete',
%% numbers that are added; `{uint64_vector_sum_delete, Size}', tuples of `Size' numbers; or
%% `uint64_vector_sum_delete', tuples of any size, which a module adds, more slowly. Both can also
%% be `{module, Module}', a format of the program: see {@link ats_format}</dd>
%% <dt>`{format, #osmos_table_format{}}'</dt><dd>a record of osmos, from `include/ats_osmos.hrl',
%% with exported functions. `key_less' is <code>fun erlang:'&lt;'/2</code>, and keys are kept as
%% terms; or `bytes', and `key_format' makes bytes of them, whose order is that of the keys.
%% `merge', `short_circuit' and `delete' are those of a module with the behaviour {@link ats_merge},
%% or any others, which have no version: values are merged by the functions that are loaded at the
%% time of the merge. The functions of osmos itself are included without osmos. A field that cannot
%% be supported is answered by `{error, {unsupported, {Field, Value}}}'</dd>
%% </dl>
%%
%% The directory remembers the format. A table is not opened with another one, nor with another
%% version of its module: `{error, {format_mismatch, Directory}}'. Without the option it is opened
%% with its own format. `read/2', `write/3', {@link merge/3} and the selects of this section take
%% and return keys and values of the program. All other functions have the stored form: for a format
%% of the program, the bytes, as in `{<<4, 3, 2, 1>>, <<0, 0, 0, 5>>}'.
%%
%% `{select_timeout_secs, Seconds | infinity}' is `{continuation_age, Ms}' of {@link open_file/2}.
%% `{max_selects, N}' limits the number of selects that the table continues: beyond it, those that
%% were not continued for longest are given up. `{max_memory_entries, N}' limits the number of keys
%% in memory: with `N' they go to a file, or before if they take too much memory. Without these two
%% there is no such limit. `{max_merge_jobs, N}' always holds: a table merges in one thread at a
%% time. All options of {@link open_file/2} but `type' and `keypos' can be given, too.
%%
%% ```
%% 1> dats:open(hits, [{directory, "hits"}, {format, {term, uint64_sum_delete, 4096}}]).
%% {ok,hits}
%% 2> dats:write(hits, home, 2).
%% ok
%% 3> dats:write(hits, home, 3).
%% ok
%% 4> dats:read(hits, home).
%% {ok,5}
%% 5> All = fun(_, _) -> true end,
%%    {ok, Rows, _} = dats:select_range(hits, unbounded, unbounded, All, 10), Rows.
%% [{home,5}]
%% '''
-spec open(tab_name(), [ats_osmos:option()]) -> {ok, tab_name()} | {error, reason()}.
open(Name, Options) ->
    case ats_osmos:options(Options) of
        badarg ->
            ?WRONG(2, ats_osmos:wrong_option(Options), [Name, Options]);
        {error, _} = Unsupported ->
            Unsupported;
        Known ->
            case ats_disk_options:parse(Name, Known) of
                {ok, Parsed} ->
                    open_parsed(Name, Parsed);
                {error, _} = Wrong ->
                    Wrong;
                badarg ->
                    {Number, Words} = ats_disk_options:wrong(Name, Known),
                    ?WRONG(Number, Words, [Name, Options])
            end
    end.

%% @doc Returns the value of a key: all values that were written to it, merged.
-spec read(tab_name(), Key :: term()) -> {ok, Value :: term()} | not_found | {error, reason()}.
read(Name, Key) ->
    case ?ANSWER(ats_osmos:read(?TABLE(Name), Key), Name, [Name, Key]) of
        no_pair -> ?WRONG(1, <<"the object of the key is no pair of it and a value">>, [Name, Key]);
        Answer -> Answer
    end.

%% @doc Merges a value with that of a key like {@link merge/3}, but `delete' deletes the key if the
%% merge cannot take it as a value.
-spec write(tab_name(), Key :: term(), Value :: term()) -> ok | {error, reason()}.
write(Name, Key, Value) ->
    ?DONE(ats_osmos:write(?CHANGED(Name), Key, Value), Name, [Name, Key, Value]).

%% @doc Returns the first `N' rows of a range that a function selects.
%%
%% `Lower(Key)' returns `true' for keys below the range, `Upper(Key)' for keys below the end of the
%% range: in the order of the keys, each is `true' up to some key, and `false' from there on. The
%% beginning of the range is found by binary search, so `Lower' is called O(log n) times, and each
%% of these calls reads at most two blocks of each sorted file. Both bounds can also be `{key,
%% Key}', which is inclusive as the beginning of the range and exclusive as its end; or `unbounded'.
%% `Select' is called with a key and a value, or with a pair of them.
%%
%% Fewer rows than `N' are the last, and the last handle is `'$end_of_table''. All rows are those of
%% one moment, also the rows that {@link select_continue/3} returns. The table keeps a snapshot of
%% that moment until there are no more rows, the calling process ends, no rows were asked for during
%% `continuation_age', or other selects were more than `max_selects'. An expired handle is answered
%% by `{error, {bad_select_handle, Handle}}'. Only the process that began a select can use its
%% handle.
%% `info(Table, stats)' tells how many snapshots there are, and how many bytes of files and of
%% memory only they keep.
-spec select_range(tab_name(), Lower :: ats_osmos:bound(), Upper :: ats_osmos:bound(),
                   Select :: fun(), N :: pos_integer()) ->
          {ok, [{Key :: term(), Value :: term()}], ats_osmos:select()} | {error, reason()}.
select_range(Name, Lower, Upper, Select, N) ->
    ?ANSWER(ats_osmos:select_range(?TABLE(Name), ats_disk_tables:max_selects(Name), Lower, Upper,
                                   Select, N),
            Name, [Name, Lower, Upper, Select, N]).

%% @doc Returns the next rows of a range.
%%
%% ```
%% 1> {ok, _} = dats:open(hits, [{directory, "hits"}, {format, {term, term_replace, 4096}}]),
%%    [ok, ok, ok] = [dats:write(hits, Key, new) || Key <- [a, b, c]], dats:read(hits, c).
%% {ok,new}
%% 2> All = fun(_, _) -> true end,
%%    {ok, Rows, Handle} = dats:select_range(hits, {key, a}, unbounded, All, 2), Rows.
%% [{a,new},{b,new}]
%% 3> dats:select_continue(hits, Handle, 2).
%% {ok,[{c,new}],'$end_of_table'}
%% '''
-spec select_continue(tab_name(), ats_osmos:select(), N :: pos_integer()) ->
          {ok, [{Key :: term(), Value :: term()}], ats_osmos:select()}
        | {error, reason() | {bad_select_handle, term()}}.
select_continue(Name, Handle, N) ->
    ?ANSWER(ats_osmos:select_continue(?TABLE(Name), Handle, N), Name, [Name, Handle, N]).

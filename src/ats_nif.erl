%% @private
%% @doc The door to the native library.
%%
%% Every function here is replaced by native code when the module is loaded. Nothing in this
%% module is meant for users: the module {@link ats} checks options, gives errors their shape
%% and is the only caller.
%%
%% A native function that refuses its arguments raises `error:{ats_error, Cause}', where `Cause'
%% names the fault (see {@link ats_errors}); {@link disk_try/3} returns the cause. Tables live in
%% the native library and not in this module, so the module may be purged and loaded again while
%% tables are in use.
-module(ats_nif).

-export([new/2, delete/1, delete/2, delete_object/2, delete_all_objects/1]).
-export([insert/2, insert_new/2, insert/3, insert_new/3, ttl/2, own_ttl/2, touch/3]).
-export([transact/1, transact/4, exchange/3]).
-export([lookup/2, lookup_element/3, lookup_element/4]).
-export([lookup_elements/3, member/2, take/2]).
-export([lookup_many/2, take_many/2, delete_many/2]).
-export([first/1, last/1, next/2, prev/2]).
-export([first_lookup/1, last_lookup/1, next_lookup/2, prev_lookup/2]).
-export([update_counter/3, update_counter/4, update_element/3, update_element/4]).
-export([info/1, size/1, memory/1, stats/1, count_retry/1, shape/1, whereis/1, rename/2, all/0]).
-export([safe_fixtable/2, slot/2, chunk/3]).
-export([select_start/3, select_more/5, range_start/5, explain/2, clear/1]).
-export([range_size/3, range_nth/4]).
-export([take_all_start/1, take_all_more/4, read_unprotected/3, take_first/1, take_last/1]).
-export([merge/4, merge/5]).
-export([match_spec_compile/2, match_spec_by_vm/1, is_compiled_ms/1]).
-export([give_away/4, setopts/3, collect/0]).
-export([disk_open/3, disk_close/1, disk_publish/1, disk_sync/1, disk_describe/1]).
-export([disk_snapshot/2]).
-export([disk_lookup/2, disk_chunk/3, disk_step/3, disk_skip/5, disk_key/2, disk_median/3]).
-export([disk_size/1]).
-export([disk_kind/1, disk_stats/1, disk_format/1, disk_ttl/1]).
-export([disk_memory/0, disk_set_memory/1]).
-export([disk_try/3, disk_write/2, disk_delete/2, disk_delete_unread/2]).
-export([disk_flush/1, disk_compact/1, disk_checkpoint/3]).
-export([disk_program/1, disk_operand/4, disk_pending/1, disk_resolve/2, disk_record/2]).
-export([disk_replace/5, disk_take_noted/2, disk_watch/2, disk_gate/2, disk_set_program/3]).
-export([disk_stage/1, disk_exchange/2, disk_take_all/1]).
-export([snapshot/2, snapshots/1, snapshot_state/1, release/1, changed_keys/2, differences/4]).
-export([table_of_snapshot/1, end_when_freed/1, may_have_changed/2]).
-export([hold_disk_snapshot/2, held_disk_snapshots/1, disk_diff/4, disk_is_current/2]).
-export([disk_destroy/1, disk_rename/2, disk_copy/2, disk_repair/2]).

-nifs([new/2, delete/1, delete/2, delete_object/2, delete_all_objects/1]).
-nifs([insert/2, insert_new/2, insert/3, insert_new/3, ttl/2, own_ttl/2, touch/3]).
-nifs([transact/1, transact/4, exchange/3]).
-nifs([lookup/2, lookup_element/3, lookup_element/4]).
-nifs([lookup_elements/3, member/2, take/2]).
-nifs([lookup_many/2, take_many/2, delete_many/2]).
-nifs([first/1, last/1, next/2, prev/2]).
-nifs([first_lookup/1, last_lookup/1, next_lookup/2, prev_lookup/2]).
-nifs([update_counter/3, update_counter/4, update_element/3, update_element/4]).
-nifs([info/1, size/1, memory/1, stats/1, count_retry/1, shape/1, whereis/1, rename/2, all/0]).
-nifs([safe_fixtable/2, slot/2, chunk/3]).
-nifs([select_start/3, select_more/5, range_start/5, explain/2, clear/1]).
-nifs([range_size/3, range_nth/4]).
-nifs([take_all_start/1, take_all_more/4, read_unprotected/3, take_first/1, take_last/1]).
-nifs([merge/4, merge/5]).
-nifs([match_spec_compile/2, match_spec_by_vm/1, is_compiled_ms/1]).
-nifs([give_away/4, setopts/3, collect/0]).
-nifs([disk_open/3, disk_close/1, disk_publish/1, disk_sync/1, disk_describe/1]).
-nifs([disk_snapshot/2]).
-nifs([disk_lookup/2, disk_chunk/3, disk_step/3, disk_skip/5, disk_key/2, disk_median/3]).
-nifs([disk_size/1]).
-nifs([disk_kind/1, disk_stats/1, disk_format/1, disk_ttl/1]).
-nifs([disk_memory/0, disk_set_memory/1]).
-nifs([disk_try/3, disk_write/2, disk_delete/2, disk_delete_unread/2]).
-nifs([disk_flush/1, disk_compact/1, disk_checkpoint/3]).
-nifs([disk_program/1, disk_operand/4, disk_pending/1, disk_resolve/2, disk_record/2]).
-nifs([disk_replace/5, disk_take_noted/2, disk_watch/2, disk_gate/2, disk_set_program/3]).
-nifs([disk_stage/1, disk_exchange/2, disk_take_all/1]).
-nifs([snapshot/2, snapshots/1, snapshot_state/1, release/1, changed_keys/2, differences/4]).
-nifs([table_of_snapshot/1, end_when_freed/1, may_have_changed/2]).
-nifs([hold_disk_snapshot/2, held_disk_snapshots/1, disk_diff/4, disk_is_current/2]).
-nifs([disk_destroy/1, disk_rename/2, disk_copy/2, disk_repair/2]).

%% Only in the build for tests.
-ifdef(FORCING).
-export([force_adaptation/3, force_slices/1, advance_clock/1]).
-nifs([force_adaptation/3, force_slices/1, advance_clock/1]).
-endif.

-export_type([disk_options/0, disk_failure/0, disk_stats/0, disk_record/0, fixed/0]).
-export_type([disk_read/0, disk_change/0, ending/0, tried/1]).
-export_type([lifetime/0, limits/0]).
-export_type([direction/0, options/0, changes/0, information/0, stats/0, shape_node/0,
              position/0]).
-export_type([how/0, place/0, selected/0, so_far/0, rows/0, cut/0, taken/0, taken_slice/0]).

-on_load(load/0).

-define(NOT_LOADED, erlang:nif_error({not_loaded, [{module, ?MODULE}, {line, ?LINE}]})).

-type options() ::
        {Type :: ats:table_type(),
         Protection :: ats:table_access(),
         KeyPos :: pos_integer(),
         Named :: boolean(),
         Heir :: none | pid(),
         HeirData :: term(),
         WriteConcurrency :: ats:write_concurrency(),
         ReadConcurrency :: boolean(),
         DecentralizedCounters :: boolean(),
         Compressed :: boolean(),
         FullScan :: ats:full_scan(),
         %% A pid is that of an application.
         Owner :: process | none | pid(),
         Backend :: atom(),
         SnapshotMemory :: default | infinity | non_neg_integer(),
         Limits :: limits(),
         Evicted :: none | pid()}.

%% The limits of a table, if it has some.
-type limits() :: false
                | {Ttl :: ats:ttl(),
                   MaxObjects :: infinity | pos_integer(),
                   MaxMemory :: infinity | pos_integer()}.

%% The time for which objects are there that are inserted; `default' is that of the table.
-type lifetime() :: default | ats:lifetime().

%% The options of opening a table in a directory. One that is `default' is as the table was made.
-type disk_options() ::
        #{create := boolean(),
          temporary := boolean(),
          access := read | read_write,
          type := default | ats:table_type(),
          keypos := default | pos_integer(),
          merge := default | binary(),
          formats := default | binary(),
          ttl := default | infinity | (Milliseconds :: pos_integer()),
          durability := sync | system | {interval, Milliseconds :: pos_integer()},
          block_size := default | pos_integer(),
          memory := default | pos_integer(),
          memtable_keys := default | pos_integer(),
          compressed := boolean(),
          continuation_age := infinity | (Milliseconds :: pos_integer()),
          snapshot_memory := non_neg_integer()}.

%% The reason why a table in a directory cannot be used.
-type disk_failure() :: {error, Cause :: atom(), Text :: binary()}.

%% A key and its value, as the store has them.
-type disk_record() :: {Key :: binary(), Value :: binary()}.

%% The reason why a snapshot has ended.
-type ending() :: released | owner_ended | max_age | memory | closed.

%% The functions that {@link disk_try/3} can call.
-type disk_read() ::
        lookup | member | lookup_element | lookup_elements
      | first | last | next | prev | first_lookup | last_lookup | next_lookup | prev_lookup | slot.
-type disk_change() ::
        insert | insert_new | delete_object | take | take_first | take_last
      | update_counter | update_element | merge | transact.

%% The answer of a call, or the reason why it was refused. The cause is `pending' if it can be made
%% again when the values of a key are merged.
-type tried(Answer) :: {ok, Answer} | {refused, ats_errors:cause()}.

%% The options that `setopts' changes; one that stays as it is, is `false'.
-type changes() ::
        {Heir :: false | none | pid(),
         HeirData :: term(),
         Protection :: false | ats:table_access(),
         Owner :: false | process | none | pid()}.

-type information() ::
        {Id :: ats:tid(),
         DecentralizedCounters :: boolean(),
         ReadConcurrency :: boolean(),
         WriteConcurrency :: ats:write_concurrency(),
         Compressed :: boolean(),
         Owner :: none | pid(),
         Heir :: none | pid(),
         Name :: atom(),
         Named :: boolean(),
         Type :: ats:table_type(),
         KeyPos :: pos_integer(),
         Protection :: ats:table_access(),
         Fixed :: fixed(),
         FullScan :: ats:full_scan(),
         Backend :: ats:backend(),
         Limits :: limits(),
         Expired :: non_neg_integer(),
         Evicted :: non_neg_integer(),
         Hits :: non_neg_integer(),
         Misses :: non_neg_integer()}.

-type fixed() :: false | {erlang:timestamp(), MonotonicNanoseconds :: integer(),
                          [{pid(), pos_integer()}]}.

%% Statistics of a store on disk: its work since it was opened, and its sizes.
-type disk_stats() :: #{file_bytes := non_neg_integer(),
                        memtable_bytes := non_neg_integer(),
                        memtable_keys := non_neg_integer(),
                        cache_bytes := non_neg_integer(),
                        atom() => non_neg_integer()}.

%% The state to which an `ordered_set', or a table of another type, has adapted under contention.
-type stats() :: tree_stats() | hash_stats().

-type tree_stats() :: #{route_nodes := non_neg_integer(),
                        base_nodes := pos_integer(),
                        depth := non_neg_integer(),
                        splits := non_neg_integer(),
                        joins := non_neg_integer(),
                        contended := non_neg_integer(),
                        uncontended := non_neg_integer(),
                        retries := non_neg_integer()}.

%% A route node of an `ordered_set', or a base node: the number of route nodes above, the number by
%% which it adapts, acquisitions of its lock that had to wait, and those that did not.
-type shape_node() :: Depth :: non_neg_integer()
                    | {Depth :: non_neg_integer(), Statistics :: integer(),
                       Contended :: non_neg_integer(), Uncontended :: non_neg_integer()}.

-type hash_stats() :: #{buckets := pos_integer(),
                        lines := non_neg_integer(),
                        locks := pos_integer(),
                        doublings := non_neg_integer(),
                        halvings := non_neg_integer(),
                        contended := non_neg_integer(),
                        uncontended := non_neg_integer(),
                        retries := non_neg_integer()}.

-type position() :: start | {after_key, Key :: term()}
                  | {within, Key :: term(), Place :: non_neg_integer()}.

%% The treatment of matching objects.
-type how() :: direction() | objects | count | delete | take | replace | rows
             | {direction(), Limit :: pos_integer()} | {objects | query, Most :: pos_integer()}.
%% A direction is that of a list of all results. `{objects, Most}' and `{query, Most}' list all
%% results, or find that there is `more'; the former is meant to read the whole table.

%% Direction of a walk over the keys of an ordered table and the objects of a key. Tables of other
%% types have only one order.
-type direction() :: up | down.

%% A position between keys; `prefix' is before or behind all keys that begin like the pattern.
-type cut() :: none | {before | behind, Key :: term()} | {prefix, Pattern :: term()}
             | {bytes, Key :: binary()}.
%% The last is before a key as a table on disk has it.

%% The position that a query has reached.
-type place() :: done
               | {direction(), Step :: non_neg_integer(),
                  start | Key :: binary() | {Key :: binary(), N :: non_neg_integer()}
                | non_neg_integer()}.

%% The result of a slice of a query: results, and, unless it is done, the state to go on with.
-type selected() :: Results :: [term()] | Count :: non_neg_integer()
                  | {more | done | pending, ats:tid(), ats:compiled_match_spec(), place(),
                     so_far()}
                  | {part, ats:tid(), ats:compiled_match_spec(), place(), part()}
                  | rows().

%% The objects of a table from which all were taken.
-type taken() :: reference().

%% The result of a slice of reading them.
-type taken_slice() :: [tuple()]
                 | {more, taken(), ats:compiled_match_spec(), place(), [tuple()]}
                 | {part, taken(), ats:compiled_match_spec(), place(), part()}.

%% The results of the key that a slice ended in, and the list of those of other keys.
-type part() :: {Part :: [term()], [term()]}.

-type so_far() :: [term()] | non_neg_integer() | rows().

-type rows() :: {Read :: non_neg_integer(), Results :: non_neg_integer()}.

%%--------------------------------------------------------------------------------------------
%% Loading
%%--------------------------------------------------------------------------------------------

-spec load() -> ok | {error, {atom(), string()}}.
load() ->
    erlang:load_nif(library_path(), 0).

%% The application's private directory is the right place, but a release tool or a plain
%% `erl -pa' may have named the application's folder differently; then the library still lies
%% beside the folder of the beam file.
-spec library_path() -> file:filename().
library_path() ->
    Candidates = [filename:join(Dir, "ats_nif") || Dir <- private_directories()],
    case [Path || Path <- Candidates, filelib:is_regular(Path ++ ".so")] of
        [Path | _] -> Path;
        [] -> hd(Candidates ++ ["ats_nif"])
    end.

-spec private_directories() -> [file:filename()].
private_directories() ->
    OfApplication = case code:priv_dir(ats) of
                        {error, bad_name} -> [];
                        Dir -> [Dir]
                    end,
    BesideBeam = case code:which(?MODULE) of
                     Beam when is_list(Beam), Beam =/= [] ->
                         [filename:join([filename:dirname(filename:dirname(Beam)), "priv"])];
                     _ ->
                         []
                 end,
    OfApplication ++ BesideBeam.

%%--------------------------------------------------------------------------------------------
%% Native functions
%%--------------------------------------------------------------------------------------------

-spec new(atom(), options()) -> atom() | reference().
new(_Name, _Options) -> ?NOT_LOADED.

-spec delete(ats:table()) -> true.
delete(_Table) -> ?NOT_LOADED.

-spec delete(ats:table(), term()) -> true.
delete(_Table, _Key) -> ?NOT_LOADED.

-spec delete_object(ats:table(), tuple()) -> true.
delete_object(_Table, _Object) -> ?NOT_LOADED.

-spec delete_all_objects(ats:table()) -> true.
delete_all_objects(_Table) -> ?NOT_LOADED.

-spec insert(ats:table(), tuple() | [tuple()]) -> true.
insert(_Table, _Objects) -> ?NOT_LOADED.

-spec insert_new(ats:table(), tuple() | [tuple()]) -> boolean().
insert_new(_Table, _Objects) -> ?NOT_LOADED.

-spec insert(ats:table(), tuple() | [tuple()], lifetime()) -> true.
insert(_Table, _Objects, _Lifetime) -> ?NOT_LOADED.

-spec insert_new(ats:table(), tuple() | [tuple()], lifetime()) -> boolean().
insert_new(_Table, _Objects, _Lifetime) -> ?NOT_LOADED.

%% Returns the number of the condition or the step that fails, from 1, and the cause.
-spec transact(ats:table(), [ats:condition()], Then :: [ats:step()], Else :: [ats:step()]) ->
          {boolean(), Results :: [term()]}
        | {condition | then | 'else', Number :: pos_integer(), ats_errors:cause()}.
transact(_Table, _Conditions, _Then, _Else) -> ?NOT_LOADED.

%% Returns the number of the element that fails, from 1, and the cause, or what `transact/4' returns
%% for its part; a list of it that is none has the number 0.
-spec transact([ats:table_part()]) ->
          {boolean(), [Results :: [term()]]}
        | {Number :: pos_integer(), ats_errors:in_table()}.
transact(_Parts) -> ?NOT_LOADED.

%% Replaces the object of `Seen' by that of `New', which has the same key, and returns `true', if
%% the table still has it. Both are lists of at most one object, which is none without one.
-spec exchange(ats:table(), Seen :: [tuple()], New :: [tuple()]) -> boolean().
exchange(_Table, _Seen, _New) -> ?NOT_LOADED.

-spec ttl(ats:table(), term()) -> non_neg_integer() | infinity | undefined.
ttl(_Table, _Key) -> ?NOT_LOADED.

%% Returns `default' if the objects of a key have the time of the table.
-spec own_ttl(ats:table(), Key :: term()) -> non_neg_integer() | infinity | undefined | default.
own_ttl(_Table, _Key) -> ?NOT_LOADED.

-spec touch(ats:table(), term(), lifetime()) -> boolean().
touch(_Table, _Key, _Lifetime) -> ?NOT_LOADED.

-spec lookup(ats:table(), term()) -> [tuple()].
lookup(_Table, _Key) -> ?NOT_LOADED.

-spec lookup_element(ats:table(), term(), pos_integer()) -> term().
lookup_element(_Table, _Key, _Pos) -> ?NOT_LOADED.

-spec lookup_element(ats:table(), term(), pos_integer(), term()) -> term().
lookup_element(_Table, _Key, _Pos, _Default) -> ?NOT_LOADED.

-spec lookup_elements(ats:table(), term(), [pos_integer()]) -> [term()].
lookup_elements(_Table, _Key, _Positions) -> ?NOT_LOADED.

-spec member(ats:table(), term()) -> boolean().
member(_Table, _Key) -> ?NOT_LOADED.

-spec take(ats:table(), term()) -> [tuple()].
take(_Table, _Key) -> ?NOT_LOADED.

-spec lookup_many(ats:table(), [term()]) -> nonempty_improper_list(Left :: [term()], [[tuple()]]).
lookup_many(_Table, _Keys) -> ?NOT_LOADED.

-spec take_many(ats:table(), [term()]) -> nonempty_improper_list(Left :: [term()], [[tuple()]]).
take_many(_Table, _Keys) -> ?NOT_LOADED.

-spec delete_many(ats:table(), [term()]) -> Left :: [term()].
delete_many(_Table, _Keys) -> ?NOT_LOADED.

-spec first(ats:table()) -> term().
first(_Table) -> ?NOT_LOADED.

-spec last(ats:table()) -> term().
last(_Table) -> ?NOT_LOADED.

-spec next(ats:table(), term()) -> term().
next(_Table, _Key) -> ?NOT_LOADED.

-spec prev(ats:table(), term()) -> term().
prev(_Table, _Key) -> ?NOT_LOADED.

-spec first_lookup(ats:table()) -> {term(), [tuple()]} | '$end_of_table'.
first_lookup(_Table) -> ?NOT_LOADED.

-spec last_lookup(ats:table()) -> {term(), [tuple()]} | '$end_of_table'.
last_lookup(_Table) -> ?NOT_LOADED.

-spec next_lookup(ats:table(), term()) -> {term(), [tuple()]} | '$end_of_table'.
next_lookup(_Table, _Key) -> ?NOT_LOADED.

-spec prev_lookup(ats:table(), term()) -> {term(), [tuple()]} | '$end_of_table'.
prev_lookup(_Table, _Key) -> ?NOT_LOADED.

-spec update_counter(ats:table(), term(), term()) -> integer() | [integer()].
update_counter(_Table, _Key, _UpdateOp) -> ?NOT_LOADED.

-spec update_counter(ats:table(), term(), term(), tuple()) -> integer() | [integer()].
update_counter(_Table, _Key, _UpdateOp, _Default) -> ?NOT_LOADED.

-spec update_element(ats:table(), term(), term()) -> boolean().
update_element(_Table, _Key, _ElementSpec) -> ?NOT_LOADED.

-spec update_element(ats:table(), term(), term(), tuple()) -> true.
update_element(_Table, _Key, _ElementSpec, _Default) -> ?NOT_LOADED.

-spec info(ats:table()) -> information() | undefined.
info(_Table) -> ?NOT_LOADED.

-spec size(ats:table()) -> non_neg_integer() | undefined.
size(_Table) -> ?NOT_LOADED.

%% Returns the memory of a table in words.
-spec memory(ats:table()) -> non_neg_integer() | undefined.
memory(_Table) -> ?NOT_LOADED.

%% Counts an attempt of an update that was in vain.
-spec count_retry(ats:table()) -> ok.
count_retry(_Table) -> ?NOT_LOADED.

-spec stats(ats:table()) -> stats() | false | undefined.
stats(_Table) -> ?NOT_LOADED.

-spec shape(ats:table()) -> [shape_node()] | false | undefined.
shape(_Table) -> ?NOT_LOADED.

-spec whereis(atom()) -> reference() | undefined.
whereis(_Name) -> ?NOT_LOADED.

-spec rename(ats:table(), atom()) -> atom() | reference().
rename(_Table, _Name) -> ?NOT_LOADED.

-spec all() -> [ats:table()].
all() -> ?NOT_LOADED.

-spec safe_fixtable(ats:table(), boolean()) -> true.
safe_fixtable(_Table, _Fix) -> ?NOT_LOADED.

-spec slot(ats:table(), non_neg_integer()) -> [tuple()] | '$end_of_table'.
slot(_Table, _I) -> ?NOT_LOADED.

%% Returns about `N' objects that follow a position, in table order. Only a key with very many
%% objects is returned in parts.
-spec chunk(ats:table(), position(), pos_integer()) -> {[tuple()], done | position()}.
chunk(_Table, _Position, _N) -> ?NOT_LOADED.

%% Begins to run a match specification, and goes on.
-spec select_start(ats:table(), ats:match_spec(), how()) -> selected() | warn | more.
select_start(_Table, _MatchSpec, _How) -> ?NOT_LOADED.

-spec select_more(ats:tid(), ats:compiled_match_spec(), place(), how(), so_far()) -> selected().
select_more(_Table, _Compiled, _Place, _How, _SoFar) -> ?NOT_LOADED.

%% Like select_start/3, but reads only the keys between two cuts.
-spec range_start(ats:table(), ats:match_spec() | keys, cut(), cut(), how()) -> selected().
range_start(_Table, _MatchSpec, _From, _To, _How) -> ?NOT_LOADED.

%% Returns the number of objects between two cuts.
-spec range_size(ats:table(), cut(), cut()) -> non_neg_integer().
range_size(_Table, _From, _To) -> ?NOT_LOADED.

%% Returns the N-th object between two cuts, from 1, or from the end, from -1.
-spec range_nth(ats:table(), cut(), cut(), N :: integer()) -> tuple() | '$end_of_table'.
range_nth(_Table, _From, _To, _N) -> ?NOT_LOADED.

%% Explains which part of a table a match specification reads.
-spec explain(ats:table(), ats:match_spec()) ->
          {nothing | points | ranges | everything, Plan :: binary(), Known :: boolean(),
           Nanoseconds :: non_neg_integer(), ats:compiled_match_spec()}.
explain(_Table, _MatchSpec) -> ?NOT_LOADED.

%% Deletes all objects, as one step, and returns how many they were.
-spec clear(ats:table()) -> non_neg_integer().
clear(_Table) -> ?NOT_LOADED.

%% Takes all objects out of a table, as one step. They are read by take_all_more/4, which begins at
%% `start', and says `wait' as long as others may still be writing to them. The first call says so
%% as long as a long list is being written, and has taken nothing then.
-spec take_all_start(ats:table()) -> wait | taken().
take_all_start(_Table) -> ?NOT_LOADED.

-spec take_all_more(taken(), ats:match_spec(), start | place(), [tuple()]) -> wait | taken_slice().
take_all_more(_Taken, _MatchSpec, _Place, _SoFar) -> ?NOT_LOADED.

%% Returns the objects of the next slice, from `start' on, also of a private table of another
%% process.
-spec read_unprotected(ats:table(), ats:match_spec(), start | place()) -> undefined | selected().
read_unprotected(_Table, _MatchSpec, _Place) -> ?NOT_LOADED.

-spec take_first(ats:table()) -> [tuple()].
take_first(_Table) -> ?NOT_LOADED.

-spec take_last(ats:table()) -> [tuple()].
take_last(_Table) -> ?NOT_LOADED.

-spec merge(ats:table(), term(), term(), term()) -> term().
merge(_Table, _Key, _Operand, _Merge) -> ?NOT_LOADED.

-spec merge(ats:table(), term(), term(), term(), tuple()) -> term().
merge(_Table, _Key, _Operand, _Merge, _Default) -> ?NOT_LOADED.

%% Compiles a match specification. The result keeps the one that `ets' compiled.
-spec match_spec_compile(ats:match_spec(), ets:compiled_match_spec()) ->
          ats:compiled_match_spec().
match_spec_compile(_MatchSpec, _CompiledByVm) -> ?NOT_LOADED.

-spec match_spec_by_vm(ats:compiled_match_spec()) -> ets:compiled_match_spec().
match_spec_by_vm(_Compiled) -> ?NOT_LOADED.

-spec is_compiled_ms(term()) -> boolean().
is_compiled_ms(_Term) -> ?NOT_LOADED.

%% `GroupLeader' is that of the caller: it says whether the caller belongs to the application that
%% owns the table.
-spec give_away(ats:table(), pid(), Gift :: term(), GroupLeader :: pid()) -> true.
give_away(_Table, _Pid, _Gift, _GroupLeader) -> ?NOT_LOADED.

-spec setopts(ats:table(), changes() | error, GroupLeader :: pid()) -> true.
setopts(_Table, _Changes, _GroupLeader) -> ?NOT_LOADED.

%% Opens the table in a directory, or makes it; the process owns it.
-spec disk_open(Directory :: binary(), disk_options(), Owner :: pid()) ->
          {ok, ats:tid()} | disk_failure().
disk_open(_Directory, _Options, _Owner) -> ?NOT_LOADED.

%% Closes it for all processes, also if that fails.
-spec disk_close(ats:tid()) -> ok | disk_failure().
disk_close(_Table) -> ?NOT_LOADED.

%% Closes a table that was made in a temporary directory, and gives it the one that it was opened
%% with, which must not be there. If that fails, there is no table.
-spec disk_publish(ats:tid()) -> ok | disk_failure().
disk_publish(_Table) -> ?NOT_LOADED.

%% Makes all earlier writes durable.
-spec disk_sync(ats:tid()) -> ok | disk_failure().
disk_sync(_Table) -> ?NOT_LOADED.

%% Describes the table in a directory.
-spec disk_describe(Directory :: binary()) ->
          {ok, ats:table_type(), KeyPos :: pos_integer(), Merge :: binary(), Format :: binary()}
        | disk_failure().
disk_describe(_Directory) -> ?NOT_LOADED.

%% Makes a snapshot that belongs to the caller. If `Most' is a number, the table has at most so many
%% of these: beyond it, the least recently used ones expire.
-spec disk_snapshot(ats:tid(), Most :: default | pos_integer()) -> ats:tid().
disk_snapshot(_Table, _Most) -> ?NOT_LOADED.

%% Makes a snapshot of a table in memory, as a table that each process may read; for a query those
%% that may read the table then, and `none' if the store of the table has no moments.
-spec snapshot(ats:table(), query | default | (MaxAge :: pos_integer())) -> ats:tid() | none.
snapshot(_Table, _MaxAge) -> ?NOT_LOADED.

%% Returns a reference: when no term leads to it any more, a snapshot for a query ends, if it has
%% not yet.
-spec end_when_freed(ats:tid()) -> reference().
end_when_freed(_Snapshot) -> ?NOT_LOADED.

%% Returns the number of snapshots of a table, and of queries on their way; the age of the oldest in
%% milliseconds, the bytes that are held back for them, and the number of snapshots that bounds have
%% ended.
-spec snapshots(ats:table()) ->
          {Number :: non_neg_integer(), Queries :: non_neg_integer(), Oldest :: non_neg_integer(),
           Memory :: non_neg_integer(), Evicted :: non_neg_integer()} | undefined.
snapshots(_Table) -> ?NOT_LOADED.

%% Returns the table, the owner and the age in milliseconds of a snapshot that a program holds, or
%% why it has ended; `none' if the term is no such snapshot.
-spec snapshot_state(term()) ->
          {disk | memory, ats:tid(), Owner :: pid(), Age :: non_neg_integer()} | none | ending().
snapshot_state(_Term) -> ?NOT_LOADED.

%% Returns the table of which a query reads a moment; `none' if the term is no moment.
-spec table_of_snapshot(ats:tid()) -> ats:tid() | none.
table_of_snapshot(_Moment) -> ?NOT_LOADED.

-spec release(Snapshot :: ats:tid()) -> true.
release(_Snapshot) -> ?NOT_LOADED.

%% Returns `false' if a table in memory has not changed since this snapshot of it was made, and
%% `true' if it has, if the snapshot has ended, or if that cannot be told at once.
-spec may_have_changed(ats:table(), Snapshot :: ats:tid()) -> boolean().
may_have_changed(_Table, _Snapshot) -> ?NOT_LOADED.

%% Returns the keys that two snapshots of a table in memory may have differently.
-spec changed_keys(ats:tid(), ats:tid()) -> reference().
changed_keys(_First, _Second) -> ?NOT_LOADED.

%% Returns the objects of some of these keys in both snapshots, from an index on.
-spec differences(ats:tid(), ats:tid(), Keys :: reference(), From :: non_neg_integer()) ->
          {[{[tuple()], [tuple()]}], Next :: non_neg_integer() | done}.
differences(_First, _Second, _Keys, _From) -> ?NOT_LOADED.

%% Makes a snapshot that the caller holds, as a table that each process may read.
-spec hold_disk_snapshot(ats:tid(), MaxAge :: default | pos_integer()) -> ats:tid().
hold_disk_snapshot(_Table, _MaxAge) -> ?NOT_LOADED.

%% Returns the number of such snapshots of a table, the age of the oldest in milliseconds, the bytes
%% in memory and of files that only they read, and the number of those that bounds have ended.
-spec held_disk_snapshots(ats:tid()) ->
          {Number :: non_neg_integer(), Oldest :: non_neg_integer(), Memory :: non_neg_integer(),
           FileBytes :: non_neg_integer(), Evicted :: non_neg_integer()}.
held_disk_snapshots(_Table) -> ?NOT_LOADED.

%% Returns the objects of some keys that two such snapshots have differently: as the external term
%% format of a list of pairs of lists. No object of the first expires before a deadline, in
%% milliseconds since 1970 (0 if that is not known), and none of the second before the least
%% deadline that all calls return.
-spec disk_diff(ats:tid(), ats:tid(), start | (Last :: binary()), Deadline :: non_neg_integer()) ->
          {more | done, Pairs :: binary(), NewLast :: binary(), Deadline :: non_neg_integer()}.
disk_diff(_First, _Second, _Last, _Deadline) -> ?NOT_LOADED.

%% Returns `true' if the table has the objects of such a snapshot now, none of which expires before
%% a deadline.
-spec disk_is_current(ats:tid(), Deadline :: non_neg_integer()) -> boolean().
disk_is_current(_Snapshot, _Deadline) -> ?NOT_LOADED.

%% Calls a native function of all tables, with the arguments behind the table.
-spec disk_try(ats:tid(), disk_read() | disk_change(), Arguments :: [term()]) -> tried(term()).
disk_try(_Table, _Function, _Arguments) -> ?NOT_LOADED.

%% Merges an object with that of its key, without reading it; or says that it cannot be merged, or
%% which program is to be asked first.
-spec disk_write(ats:tid(), tuple()) ->
          written | operand | {ask, ats_merge:program(), Version :: non_neg_integer()}.
disk_write(_Table, _Object) -> ?NOT_LOADED.

%% Removes the objects of a key, also if its values cannot be merged.
-spec disk_delete(ats:tid(), Key :: term()) -> true.
disk_delete(_Table, _Key) -> ?NOT_LOADED.

%% Removes a key of a table without bags, without reading its old value.
-spec disk_delete_unread(ats:tid(), Key :: term()) -> true.
disk_delete_unread(_Table, _Key) -> ?NOT_LOADED.

%% Returns the program that merges the values of a table, if one does, and a number that no other
%% table has.
-spec disk_program(ats:tid()) ->
          none
        | {module, ats_merge:program(), Version :: non_neg_integer(), Id :: non_neg_integer()}.
disk_program(_Table) -> ?NOT_LOADED.

%% Writes an object to a key that is merged by a module, without reading its old value: an object
%% that replaces all older values, an operand that is an object if it is alone, or one that may be
%% missing if it is alone. Tells whether the key has many values now, or so many that they should be
%% merged before more are written.
-spec disk_operand(ats:tid(), tuple(), object | present | undefined,
                   Version :: non_neg_integer()) ->
          written | hot | long | {other_version, OfTable :: non_neg_integer()}.
disk_operand(_Table, _Object, _How, _Version) -> ?NOT_LOADED.

%% Returns the pending key of a snapshot that was met last, and some that come behind it. `none' if
%% the table is no snapshot.
-spec disk_pending(ats:tid()) -> [disk_record()] | none.
disk_pending(_Table) -> ?NOT_LOADED.

%% Tells a snapshot the values of pending keys. Those that it was told before are forgotten.
-spec disk_resolve(Snapshot :: ats:tid(), [{Key :: binary(), Value :: binary() | missing}]) -> true.
disk_resolve(_Snapshot, _Values) -> ?NOT_LOADED.

%% Returns the record that the store has of a key, and whether it is pending.
-spec disk_record(ats:tid(), Key :: term()) -> {object | pending, disk_record()} | none.
disk_record(_Table, _Key) -> ?NOT_LOADED.

%% Replaces the whole value of a key, or the beginning of it, if that has not changed.
-spec disk_replace(ats:tid(), Key :: binary(), Value :: binary(), New :: binary() | missing,
                   HowMuch :: all | beginning) -> boolean().
disk_replace(_Table, _Key, _Value, _New, _HowMuch) -> ?NOT_LOADED.

%% Returns some of the keys that were noted and are pending. They are not noted any more.
-spec disk_take_noted(ats:tid(), Most :: pos_integer()) -> [disk_record()].
disk_take_noted(_Table, _Most) -> ?NOT_LOADED.

%% Sends `{pending, Table}' to a process when keys were noted.
-spec disk_watch(ats:tid(), pid()) -> true.
disk_watch(_Table, _Pid) -> ?NOT_LOADED.

%% Makes disk_operand/4 refuse its writes, or allows them again.
-spec disk_gate(ats:tid(), open | closed) -> true.
disk_gate(_Table, _Gate) -> ?NOT_LOADED.

%% Sets another program, or version, that merges from now on. All earlier values must have been
%% merged.
-spec disk_set_program(ats:tid(), ats_merge:program(), Version :: non_neg_integer()) ->
          ok | disk_failure().
disk_set_program(_Table, _Program, _Version) -> ?NOT_LOADED.

%% Writes the records in memory to sorted files.
-spec disk_flush(ats:tid()) -> ok | disk_failure().
disk_flush(_Table) -> ?NOT_LOADED.

%% Merges all sorted files into one.
-spec disk_compact(ats:tid()) -> ok | disk_failure().
disk_compact(_Table) -> ?NOT_LOADED.

%% Copies a table, as it is at this moment, to another directory.
-spec disk_checkpoint(ats:tid(), To :: binary(), default | Earlier :: binary()) ->
          ok | {error, source | target | earlier, Cause :: atom(), Text :: binary()}.
disk_checkpoint(_Table, _To, _Earlier) -> ?NOT_LOADED.

%% @doc Makes an empty table in memory, owned by the caller, for objects that will replace those of
%% a table.
-spec disk_stage(ats:tid()) -> ats:tid().
disk_stage(_Table) -> ?NOT_LOADED.

%% @doc Replaces all objects of a table by those of its stage, at one moment.
-spec disk_exchange(ats:tid(), Stage :: ats:tid()) -> true.
disk_exchange(_Table, _Stage) -> ?NOT_LOADED.

%% Removes all objects of a table, at one moment, and returns a table of the caller that has them.
-spec disk_take_all(ats:tid()) -> Taken :: ats:tid().
disk_take_all(_Table) -> ?NOT_LOADED.

%% Removes the table in a directory. The files that are not its own stay.
-spec disk_destroy(Directory :: binary()) -> {ok, Foreign :: [binary()]} | disk_failure().
disk_destroy(_Directory) -> ?NOT_LOADED.

%% Renames the directory of a table, over another one if there is one.
-spec disk_rename(From :: binary(), To :: binary()) ->
          ok | {error, source | target, Cause :: atom(), Text :: binary()}.
disk_rename(_From, _To) -> ?NOT_LOADED.

%% Copies the files of a table.
-spec disk_copy(From :: binary(), To :: binary()) ->
          ok | {error, source | target, Cause :: atom(), Text :: binary()}.
disk_copy(_From, _To) -> ?NOT_LOADED.

%% Writes all readable records of a table to new files. The type of the table is given in case its
%% files do not tell it. `Kept' is where the damaged files are.
-spec disk_repair(Directory :: binary(),
                  default | {ats:table_type(), KeyPos :: pos_integer(), default | binary()}) ->
          {ok, Records :: non_neg_integer(), LostEntries :: non_neg_integer(),
           Outdated :: non_neg_integer(), Faults :: [binary()], Kept :: default | binary()}
        | disk_failure().
disk_repair(_Directory, _Told) -> ?NOT_LOADED.

%% Like {@link lookup/2}, for an open table and not for a snapshot. Values that are still to be
%% merged are given as the store has them.
-spec disk_lookup(ats:tid(), Key :: term()) -> [tuple()] | {pending, disk_record()}.
disk_lookup(_Table, _Key) -> ?NOT_LOADED.

%% Returns the objects of some keys behind this one, as the external term format of a list, and the
%% last of the keys; and whether there are more, or the values of the next key have to be merged
%% first.
-spec disk_chunk(ats:tid(), direction(), Last) -> {done | more | pending, Objects :: binary(), Last}
              when Last :: start | (Key :: binary()).
disk_chunk(_Table, _Direction, _Last) -> ?NOT_LOADED.

%% Like {@link disk_chunk/3}, with the objects of one key.
-spec disk_step(ats:tid(), direction(), Last) -> {done | more | pending, Objects :: binary(), Last}
              when Last :: start | (Key :: binary()).
disk_step(_Table, _Direction, _Last) -> ?NOT_LOADED.

%% Passes at most so many objects between two cuts, from one end on, for half a millisecond or so.
%% Returns how many it has passed, and the object behind them, that there is none, or the bound to
%% go on from, at once or when the values of the next key are merged.
-spec disk_skip(ats:tid(), cut(), cut(), direction(), Most :: non_neg_integer()) ->
          {object, Passed :: non_neg_integer(), tuple()}
        | {done | more | pending, Passed :: non_neg_integer(), Bound :: binary() | none}.
disk_skip(_Table, _From, _To, _Direction, _Most) -> ?NOT_LOADED.

%% Returns a key as the store has it.
-spec disk_key(ats:tid(), Key :: term()) -> binary().
disk_key(_Table, _Key) -> ?NOT_LOADED.

%% Returns a bound that divides the records of a snapshot from `Low' on and below `High', and the
%% first of them that is not below the bound, as a key and an object. `none' if there are none.
-spec disk_median(ats:tid(), Bound, Bound) ->
          {binary(), none} | {binary(), Key :: binary(), Object :: tuple()} | none
              when Bound :: none | (Key :: binary()).
disk_median(_Snapshot, _Low, _High) -> ?NOT_LOADED.

%% Returns the formats of keys and values of the program, in the external term format.
-spec disk_format(ats:tid()) -> binary() | none.
disk_format(_Table) -> ?NOT_LOADED.

%% Returns the time after which objects expire, or `false' if none does.
-spec disk_ttl(ats:tid()) -> false | infinity | pos_integer().
disk_ttl(_Table) -> ?NOT_LOADED.

%% Returns the number of objects. O(objects), unless it was counted before.
-spec disk_size(ats:tid()) -> non_neg_integer().
disk_size(_Table) -> ?NOT_LOADED.

-spec disk_kind(ats:tid()) -> {ats:table_type(), KeyPos :: pos_integer(), fixed()}.
disk_kind(_Table) -> ?NOT_LOADED.

-spec disk_stats(ats:tid()) -> disk_stats().
disk_stats(_Table) -> ?NOT_LOADED.

-spec disk_memory() -> #{budget | memtables | cache := non_neg_integer()}.
disk_memory() -> ?NOT_LOADED.

%% Sets the memory in bytes that all tables on disk share.
-spec disk_set_memory(pos_integer()) -> true.
disk_set_memory(_Bytes) -> ?NOT_LOADED.

%% Frees all memory that removed objects and tables still hold and that no thread reads any more.
-spec collect() -> term().
collect() -> ?NOT_LOADED.

-ifdef(FORCING).
%% Makes one of `Splits' writes to an `ordered_set' split a part of it, as contention would, and one
%% of `Joins' join two parts; 0 means never.
-spec force_adaptation(ats:table(), Splits, Joins) -> true
    when Splits :: non_neg_integer(), Joins :: non_neg_integer().
force_adaptation(_Table, _Splits, _Joins) -> ?NOT_LOADED.

%% Ends each slice of the queries of all processes after `Ticks' keys, objects and empty slots; with
%% 0 slices end by time again.
-spec force_slices(Ticks :: non_neg_integer()) -> true.
force_slices(_Ticks) -> ?NOT_LOADED.

%% Puts the clock by which objects expire ahead, for all tables of the node.
-spec advance_clock(Ms :: non_neg_integer()) -> true.
advance_clock(_Ms) -> ?NOT_LOADED.
-endif.

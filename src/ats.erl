%% @doc Adaptive Term Storage: the tables of `ets' on data structures written for many cores.
%%
%% This module is a drop-in for `ets': the same functions with the same arguments, results,
%% guarantees and errors. Change `ets:' to `ats:' and the program works as before. The differences
%% are listed in `docs/use/differences-from-ets.md'.
%%
%% Good for: tables that several processes read and write at the same time, above all ordered
%% ones. Readers take no lock and write no shared memory, so they never wait, neither for each
%% other nor for writers.
%%
%% Not good for: tables that hold a handful of objects and are used by one process, where `ets'
%% is as fast.
%%
%% Every function fails with `badarg' when the table does not exist or the caller lacks the
%% access rights. The exception says why in words: `erl_error' and the shell print the reason
%% beside the argument it belongs to.
-module(ats).

%% Most functions wrap one native call, and only give its errors their shape. The helpers of those
%% that need several calls are at the end of the file.

%% Tables
-export([new/2, delete/1, rename/2, whereis/1, all/0, info/1, info/2, setopts/2, give_away/3]).
%% Writing
-export([insert/2, insert_new/2, delete/2, delete_many/2, delete_object/2, delete_all_objects/1]).
-export([update_element/3, update_element/4]).
%% Objects that expire
-export([insert/3, insert_new/3, ttl/2, touch/2, touch/3]).
%% Counters and merges
-export([update_counter/3, update_counter/4, merge/4, merge/5]).
%% Several steps as one
-export([transact/1, transact/4, update/3]).
%% Taking
-export([take/2, take_many/2, take_first/1, take_last/1, take_all_objects/1, select_take/2]).
%% Reading
-export([lookup/2, lookup_many/2, lookup_element/3, lookup_element/4, lookup_elements/3]).
-export([fetch/3, fetch/4]).
-export([member/2, tab2list/1]).
%% Traversal
-export([first/1, last/1, next/2, prev/2]).
-export([first_lookup/1, last_lookup/1, next_lookup/2, prev_lookup/2]).
-export([foldl/3, foldr/3, safe_fixtable/2, slot/2]).
%% Match specifications
-export([select/1, select/2, select/3, select_reverse/1, select_reverse/2, select_reverse/3]).
-export([select_count/2, select_delete/2, select_replace/2]).
-export([match/1, match/2, match/3, match_object/1, match_object/2, match_object/3]).
-export([match_delete/2, match_spec_compile/1, match_spec_run/2, is_compiled_ms/1]).
-export([test_ms/2, repair_continuation/2, fun2ms/1, explain/2]).
%% Ranges
-export([range/3, range/4, prefix/2, prefix/3, range_count/3, range_count/4]).
-export([range_delete/3, range_delete/4, range_fold/5, range_fold/6]).
-export([rank/2, nth/2, range_nth/4, range_nth/5]).
%% Snapshots
-export([snapshot/1, snapshot/2, release/1, diff/2, diff/4, checkpoint/2]).
%% Programs and tables that follow a table
-export([follow/1, follow/2, follow_more/2, unfollow/1]).
-export([view/2, view/3]).
%% Files and Dets tables
-export([tab2file/2, tab2file/3, file2tab/1, file2tab/2, tabfile_info/1]).
-export([init_table/2, from_dets/2, to_dets/2]).
%% Queries and the shell
-export([table/1, table/2, i/0, i/1, i/2, i/3]).
-export([observe/0, observe/1]).

-export_type([table/0, tab/0, tid/0, table_type/0, table_access/0]).
-export_type([ttl/0, lifetime/0]).
-export_type([write_concurrency/0, full_scan/0, backend/0, option/0, table_change/0]).
-export_type([update_op/0, element_spec/0]).
-export_type([match_pattern/0, match_spec/0, compiled_match_spec/0, comp_match_spec/0]).
-export_type([continuation/0, range_option/0, range_bound/0]).
-export_type([merge/0, simple_merge/0]).
-export_type([condition/0, step/0, table_part/0]).
-export_type([snapshot/0, snapshot_option/0, difference/0]).
-export_type([follow_ref/0, follow_options/0, follow_change/0]).
-export_type([view_options/0]).
-export_type([observe_options/0]).

%% Runs an expression whose native calls may refuse their arguments, and gives a refusal the shape
%% of an error of the standard library: the exception comes from the function the user called,
%% carries its arguments, and names the cause. This is a macro and not a function because the top of
%% the stack trace has to be the user's call, and because success must cost nothing.
-define(WITH_ERROR_INFO(Expression, Arguments),
        try Expression
        catch error:{ats_error, Cause} ->
                erlang:error(ats_errors:reason(Cause), Arguments, ats_errors:options(Cause))
        end).

-define(NATIVE(Call, Arguments), ?WITH_ERROR_INFO(ats_nif:Call, Arguments)).

%% Number of objects that a fold reads in one native call.
-define(FOLDED_AT_ONCE, 100).

-type table() :: atom() | tid().
%% A named table or a table identifier.
-type tab() :: table().
%% The older name of {@link table()}.
-opaque tid() :: reference().
%% A table identifier, as returned by {@link new/2}.
-type table_type() :: set | ordered_set | bag | duplicate_bag
                    | ordered_bag | ordered_duplicate_bag.
-type table_access() :: public | protected | private.
-type write_concurrency() ::
        boolean() | auto | {debug_hash_fixed_number_of_locks, pos_integer()}.
-type option() ::
        table_type() | table_access() | named_table | compressed
      | {keypos, pos_integer()}
      | {heir, Pid :: pid(), HeirData :: term()} | {heir, none}
      | {write_concurrency, write_concurrency()}
      | {read_concurrency, boolean()}
      | {decentralized_counters, boolean()}
      | {full_scan, full_scan()}
      | {owner, none | application}
      | {snapshot_memory, infinity | (Bytes :: non_neg_integer())}
      | {ttl, ttl()}
      | {max_objects, infinity | pos_integer()}
      | {max_memory, infinity | (Bytes :: pos_integer())}
      | {evicted, none | pid()}
      | {backend, backend()}.
-type table_change() ::
        {heir, Pid :: pid(), HeirData :: term()} | {heir, none}
      | {protection, table_access()}
      | {owner, none | application}.
%% An option that {@link setopts/2} changes.
-type snapshot() :: tid().
%% A read-only view of a table as it was at one moment.
-type snapshot_option() :: {max_age, infinity | (Milliseconds :: pos_integer())}.
-type difference() :: {insert, tuple()} | {delete, tuple()}
                    | {change, Old :: tuple(), New :: tuple()}.
%% A difference of two snapshots.
-type follow_ref() :: ats_follow:ref().
%% The reference of the messages that tell of the changes of a table.
-type follow_options() :: ats_follow:options().
%% The options of {@link follow/2}.
-type view_options() :: ats_view:options().
%% The options of {@link view/3}.
-type follow_change() :: ats_follow:change().
%% A change of a table that a message tells of: of an object, or with the option `keys' of a key.
-type ttl() :: infinity | (Milliseconds :: pos_integer()) | {idle, Milliseconds :: pos_integer()}
             | {spread, Milliseconds :: pos_integer(), Percent :: 1..99}.
%% The time after which the objects of a table expire: since they were written, or since they were
%% written or read by their key. With `spread' it is random for each object, up to so many percent
%% shorter. With `infinity' those expire that are inserted with a time of their own.
-type lifetime() :: infinity | keep | (Milliseconds :: pos_integer()).
%% The time for which objects are there that are inserted: from now on, or what is left to the
%% objects of the key.
-type full_scan() :: allow | warn | refuse.
%% The reaction to a match specification that reads a whole table.
-type backend() :: default | atom().
%% The store in which a table keeps its objects. Only builds that measure or test have others than
%% `default'.
-type update_op() ::
        {Pos :: pos_integer(), Increment :: integer()}
      | {Pos :: pos_integer(), Increment :: integer(),
         Threshold :: integer(), SetValue :: integer()}.
-type condition() ::
        {absent, Key :: term()}
      | {present, Key :: term()}
      | {equals, Object :: tuple()}
      | {match, Key :: term(), match_pattern(), Guards :: [term()]}.
%% A condition of {@link transact/4}: the key has no object; it has one; the table has exactly this
%% object; an object of the key matches, like the head and the guards of a match specification.
-type step() ::
        {insert | insert_new | delete_object, Object :: tuple()}
      | {delete | lookup | take, Key :: term()}
      | {update_element, Key :: term(), element_spec() | [element_spec()]}
      | {update_element, Key :: term(), element_spec() | [element_spec()], Default :: tuple()}
      | {update_counter, Key :: term(), update_op() | [update_op()] | integer()}
      | {update_counter, Key :: term(), update_op() | [update_op()] | integer(),
         Default :: tuple()}
      | {merge, Key :: term(), Value :: term(), merge() | {pos_integer(), merge()}}
      | {merge, Key :: term(), Value :: term(), merge() | {pos_integer(), merge()},
         Default :: tuple()}.
%% A step of {@link transact/4}: a function of this module with its arguments, without the table.
-type table_part() :: {table(), Conditions :: [condition()], Then :: [step()], Else :: [step()]}.
%% The part of {@link transact/1} that concerns one table.
-type match_pattern() :: atom() | tuple().
-type match_spec() :: [{match_pattern(), Guards :: [term()], Body :: [term()]}]
                    | compiled_match_spec().
%% Functions that take a match specification take a compiled one, too.
-opaque compiled_match_spec() :: reference().
%% The result of {@link match_spec_compile/1}.
-type comp_match_spec() :: compiled_match_spec().
%% The older name of {@link compiled_match_spec()}.
-type continuation() :: ats_select:continuation().
%% The position at which a chunked call goes on; opaque to callers.
-type range_option() :: ats_range:option().
-type range_bound() :: ats_range:bound().
-type simple_merge() :: replace | last | first | {last, Element :: pos_integer()} | sum | min | max
                       | statistics | append | union | intersection.
-type merge() :: simple_merge() | {prune, sum | append | union} | {vector, [merge()]}.
%% The operator that merges two values into one; see {@link merge/4}.
-type element_spec() :: {Pos :: pos_integer(), Value :: term()}.

%%--------------------------------------------------------------------------------------------
%% Tables
%%--------------------------------------------------------------------------------------------

%% @doc Creates a table and returns its identifier, or its name if it is a `named_table'.
%%
%% The calling process owns the table: when it ends, the table is deleted, or given to the heir if
%% there is one, see {@link setopts/2}. By the time a process receives the owner's `` 'DOWN' '' or
%% `` 'EXIT' '' message, this is done. The options `write_concurrency', `read_concurrency' and
%% `decentralized_counters' are accepted, checked and shown by {@link info/1}.
%%
%% Besides the types of `ets' there are `ordered_bag' and `ordered_duplicate_bag'. They are bags
%% whose keys are in the standard order of terms, and the same if `==', as in an `ordered_set'. The
%% objects of a key are in the order of their insertion. An `ordered_bag' has no object twice; `{1,
%% a}' and `{1.0, a}' are two objects of one key. All functions read such a table in this order,
%% object by object, or in its exact reverse. Statements of this manual about an `ordered_set' hold
%% for ordered bags as well, with these exceptions. Functions that change the one object of a key
%% fail with `badarg', as with other bags: {@link update_counter/3}, {@link update_element/3} and
%% {@link merge/4}, and {@link select_replace/2} of an `ordered_bag'. Steps such as {@link next/2}
%% go from key to key. A continuation that the caller got by the name of a table goes on in that
%% table.
%%
%% `{full_scan, How}' sets the reaction to a match specification that neither has nor implies a
%% bound of the key, so that every object must be read (see {@link explain/2}). `allow' is the
%% default. `warn' logs a warning, at most one a second. With `refuse' the call fails with `badarg'.
%% Functions that are meant to read everything, such as {@link tab2list/1}, {@link foldl/3} and
%% `select_delete(Table, [{'_', [], [true]}])', are not affected, nor is {@link explain/2}. This
%% option does not exist in `ets'.
%%
%% `{owner, Whose}' makes a table that outlives the process that creates it. With
%% `application' it belongs to the application the process is part of, and ends with it:
%% {@link info/2} shows the application's master process as the owner. With `none' it has
%% no owner and stays until it is deleted. In both cases no process of the program is the owner, so
%% the table must be `public', or the call fails. With `application', every process of the
%% application may give the table away and change its options. With `none', every process may.
%% When an application ends, its tables go to their heirs, as those of any owner do. This option
%% does not exist in `ets'.
%%
%% `{snapshot_memory, Bytes}' limits the memory that is held back for snapshots of the table (see
%% {@link snapshot/2}) and for continuations. The default is 256 MiB. This option does not exist in
%% `ets'.
%%
%% `{ttl, Milliseconds}' lets objects expire: an object is gone, for every function and at once,
%% when that time has passed since it was inserted. Its memory is given back within about a tenth of
%% a second. With `{ttl, {idle, Milliseconds}}' the time begins again when the object is read by its
%% key, as {@link lookup/2}, {@link member/2} and {@link lookup_element/3} do: at the first read in
%% each sixteenth of the time, so an object may be gone a sixteenth early. With `{ttl, infinity}'
%% those objects expire that are inserted with a time of their own: see {@link insert/3}. With
%% `{ttl, {spread, Milliseconds, Percent}}' objects that are inserted together do not expire
%% together: the time of each is random, up to so many percent shorter. {@link update_counter/3},
%% {@link update_element/3} and {@link merge/4} keep the deadline of the object, or begin the time
%% of an idle one again. In a bag all objects of a key have the deadline of the
%% last insert. Queries and snapshots see the objects that had not expired at their moment, and
%% {@link diff/2} tells an expired object as deleted. An object takes 8 bytes more, and its key and
%% 14 bytes besides if it expires. `info(Table, ttl)' is the option, `info(Table, expired)' the
%% number of keys whose objects have expired. Files of {@link tab2file/2} have the deadlines, by the
%% clock of the system. `info(Table, hits)' and `info(Table, misses)' are about how many reads by a
%% key have found objects, and none: one in 64 is counted, for all. This option does not exist in
%% `ets'.
%%
%% `{max_objects, N}' keeps a table small: when an insert brings more objects, others are removed
%% before it returns, by S3-FIFO: first those that were read at most once since they were inserted,
%% then those that were not read for longest. A read by the key counts, as with `{ttl, {idle, Ms}}'.
%% Processes that insert at the same time may each bring one object more meanwhile. A list is
%% inserted whole, and then objects are removed, maybe of the list. In a bag the objects of a key go
%% together. `info(Table, evicted)' is the number of keys whose objects were removed for that. An
%% object takes 8 bytes more, and its key and 6 bytes besides. {@link insert/3} works as with `{ttl,
%% infinity}'. This option does not exist in `ets'.
%%
%% `{max_memory, Bytes}' bounds the memory of the table in the same way: that of {@link info/2},
%% without the content of large binaries, which objects share. An object for which an empty table
%% has no room is refused.
%%
%% `{evicted, Pid}' tells a local process of the objects that are gone because of these options:
%% `{'ATS-EVICTED', Table, Reason, Objects}', where `Table' is the identifier of the table, `Reason'
%% is `expired', `max_objects' or `max_memory', and `Objects' is a list. The messages come in
%% batches, within about a tenth of a second, and once for each object. No writer sends or waits. In
%% the place of the list comes the number of objects, if more than 100 messages wait in the queue of
%% the process, if more than 10,000 objects, or 8 MiB, are gone in a tenth of a second, or if the
%% objects of a key are more than 1000 or larger than 128 KiB. Objects that a program deletes or
%% replaces in time are not told. The option starts the application, without which nobody is told,
%% and is refused for a table whose objects are never removed. It does not exist in `ets'.
%%
%% `{backend, Store}' names the store of the table. Builds that measure or test have stores to
%% compare with, see docs/inside/scaling.md; a release has `default' alone. This option does not
%% exist in `ets'.
%%
%% ```
%% 1> ats:new(prices, [ordered_set, named_table]).
%% prices
%% 2> ats:insert(prices, [{pear, 4}, {apple, 3}]).
%% true
%% 3> ats:tab2list(prices).
%% [{apple,3},{pear,4}]
%% 4> ats:info(prices, type).
%% ordered_set
%% '''
-spec new(Name :: atom(), Options :: [option()]) -> tid() | atom().
new(Name, Options) ->
    ?WITH_ERROR_INFO(ats_options:create(Name, Options), [Name, Options]).

%% @doc Deletes a table. Its name is free and the table unreachable when the call returns. A {@link
%% view/3} is deleted by the process that made it.
-spec delete(table()) -> true.
delete(Table) ->
    ?WITH_ERROR_INFO(try ats_nif:delete(Table)
                     catch error:{ats_error, access} -> ats_view:delete(Table)
                     end, [Table]).

%% @doc Makes another process the owner of a table, and sends it the message ``
%% {'ETS-TRANSFER', Table, FromPid, Gift} ''. Only for the owner. The heir stays the same, and
%% so do fixations of the old owner.
%%
%% ```
%% 1> Table = ats:new(prices, []),
%%    Keeper = spawn(fun() -> receive stop -> ok end end),
%%    ats:give_away(Table, Keeper, gift).
%% true
%% 2> ats:info(Table, owner) =:= Keeper.
%% true
%% 3> Keeper ! stop.
%% stop
%% '''
-spec give_away(table(), Pid :: pid(), Gift :: term()) -> true.
give_away(Table, Pid, Gift) ->
    ?NATIVE(give_away(Table, Pid, Gift, group_leader()), [Table, Pid, Gift]).

%% @doc Changes options of a table, all or none of them. Only for the owner.
%%
%% <dl>
%% <dt>`{heir, Pid, Data}', `{heir, none}'</dt><dd>the process that gets the table when the
%% owner ends, with the message `` {'ETS-TRANSFER', Table, FromPid, Data} ''; an heir that is
%% dead by then gets nothing, and the table is deleted</dd>
%% <dt>`{protection, Access}'</dt><dd>which processes may read and write, from now on</dd>
%% <dt>`{owner, none | application}'</dt><dd>as in {@link new/2}, not in `ets'; the way back
%% is {@link give_away/3}, also to the calling process</dd>
%% </dl>
%%
%% ```
%% 1> ats:new(prices, [named_table]).
%% prices
%% 2> ats:setopts(prices, [{protection, private}]).
%% true
%% 3> ats:info(prices, protection).
%% private
%% '''
-spec setopts(table(), Options :: table_change() | [table_change()]) -> true.
setopts(Table, Options) ->
    ?NATIVE(setopts(Table, ats_changes:parse(Options), group_leader()),
            [Table, Options]).

%% @doc Gives a table another name. An unnamed table keeps its identifier, which is returned.
%%
%% ```
%% 1> ats:new(prices, [named_table]).
%% prices
%% 2> ats:rename(prices, old_prices).
%% old_prices
%% 3> ats:whereis(prices).
%% undefined
%% '''
-spec rename(table(), Name :: atom()) -> atom() | tid().
rename(Table, Name) ->
    ?NATIVE(rename(Table, Name), [Table, Name]).

%% @doc Returns the identifier of a named table, or `undefined' if there is none of that name.
-spec whereis(Name :: atom()) -> tid() | undefined.
whereis(Name) ->
    ?NATIVE(whereis(Name), [Name]).

%% @doc Returns all tables of the node: names of named tables, identifiers of the others.
%%
%% ```
%% 1> ats:new(prices, [named_table]).
%% prices
%% 2> lists:member(prices, ats:all()).
%% true
%% '''
-spec all() -> [table()].
all() ->
    ats_nif:all().

%% @doc Describes a table, also a private one. Returns `undefined' if it does not exist.
-spec info(table()) -> [{atom(), term()}] | undefined.
info(Table) ->
    ?WITH_ERROR_INFO(ats_info:all(Table), [Table]).

%% @doc Returns one item of the description of a table: any of those in {@link info/1}, `fixed',
%% `safe_fixed', `safe_fixed_monotonic_time', `full_scan', `backend', `ttl', `expired',
%% `max_objects', `max_memory', `evicted', `hits', `misses', `binary' or
%% `stats'.
%%
%% `binary' lists the binaries that the objects share with others, an element
%% `{Identifier, Bytes, References}' for each time that an object refers to one, as
%% `process_info(Pid, binary)' does for a process. Binaries of up to 64 bytes are not shared but
%% copied, so they are not listed; the same holds for parts of larger binaries of up to a kilobyte,
%% and since Erlang/OTP 27 for all of up to a kilobyte. The table is read by a process of its own,
%% in O(size); objects that come or go meanwhile may be counted.
%%
%% `stats' tells how a table has adapted to contention since it was created or all its objects were
%% deleted, as a map of integers.
%%
%% Processes that write to an `ordered_set' at the same time show as contention, and make it split
%% into more base nodes, each with a lock of its own. Base nodes without contention are joined
%% again, within seconds even if no process writes any more.
%%
%% <dl>
%% <dt>`base_nodes'</dt><dd>parts of the table with a lock of their own; 1 at first</dd>
%% <dt>`route_nodes'</dt><dd>nodes that lead to base nodes</dd>
%% <dt>`depth'</dt><dd>most route nodes on the way to a base node</dd>
%% <dt>`splits'</dt><dd>base nodes that were split in two</dd>
%% <dt>`joins'</dt><dd>pairs of base nodes that were joined</dd>
%% <dt>`contended'</dt><dd>times that a writer had to wait for the lock of a base
%% node</dd>
%% <dt>`uncontended'</dt><dd>times that it did not have to</dd>
%% <dt>`retries'</dt><dd>times that {@link update/3} called its function again, because another
%% process had written the key</dd>
%% </dl>
%%
%% The other types keep objects in buckets, which share locks. Contention doubles the number of
%% locks, and many writes without contention halve it.
%%
%% <dl>
%% <dt>`buckets'</dt><dd>buckets; grows and shrinks with the number of objects</dd>
%% <dt>`lines'</dt><dd>cache lines of buckets that need more than one</dd>
%% <dt>`locks'</dt><dd>locks; 1 at first</dd>
%% <dt>`doublings'</dt><dd>times that the number of locks was doubled</dd>
%% <dt>`halvings'</dt><dd>times that it was halved</dd>
%% <dt>`contended'</dt><dd>times that a writer had to wait for a lock</dd>
%% <dt>`uncontended'</dt><dd>times that it did not have to</dd>
%% <dt>`retries'</dt><dd>as above</dd>
%% </dl>
%%
%% The numbers are exact when no process writes. The time of the call grows with the number of base
%% nodes, or of locks.
-spec info(table(), Item :: atom()) -> term() | undefined.
info(Table, Item) ->
    ?WITH_ERROR_INFO(ats_info:item(Item, Table), [Table, Item]).

%%--------------------------------------------------------------------------------------------
%% Writing
%%--------------------------------------------------------------------------------------------

%% @doc Inserts an object or a list of objects, replacing those with an equal key in a `set' or
%% `ordered_set'; a bag adds them behind those of the key. A list takes effect at one moment: once a
%% lookup has found one of its objects, later lookups find no older objects of its other keys.
%% Queries such as {@link tab2list/1} and {@link select/2} see all of it or nothing. A walk by
%% {@link first/1} and {@link next/2} may find only some objects of a list that is inserted
%% meanwhile.
%%
%% ```
%% 1> ats:new(prices, [named_table]).
%% prices
%% 2> ats:insert(prices, [{apple, 3}, {pear, 4}]).
%% true
%% 3> ats:insert(prices, {apple, 5}).
%% true
%% 4> ats:lookup(prices, apple).
%% [{apple,5}]
%% '''
-spec insert(table(), tuple() | [tuple()]) -> true.
insert(Table, Objects) ->
    ?NATIVE(insert(Table, Objects), [Table, Objects]).

%% @doc Inserts an object or a list of objects like {@link insert/2}, for a time. The table must
%% have the option `ttl'.
%%
%% `ttl' is the time in milliseconds, from 1 to 34 years, `infinity', or `keep' for the time that is
%% left to the objects of the key, or that of the table if there are none. Object and deadline are
%% one atomic step. Past the deadline no function finds the object. Reading it does not put the
%% deadline off. In a bag all objects of a key have the deadline of the last insert. There is no
%% such function in `ets'.
%%
%% ```
%% 1> ats:new(sessions, [named_table, {ttl, infinity}]).
%% sessions
%% 2> ats:insert(sessions, {ann, online}, #{ttl => 10}).
%% true
%% 3> timer:sleep(10), ats:lookup(sessions, ann).
%% []
%% '''
-spec insert(table(), tuple() | [tuple()], #{ttl := lifetime()}) -> true.
insert(Table, Objects, Options) ->
    ?WITH_ERROR_INFO(ats_nif:insert(Table, Objects, ats_options:lifetime(Options)),
                     [Table, Objects, Options]).

%% @doc Inserts an object or a list of objects if none of their keys is in the table. Returns
%% `false', and inserts nothing, otherwise.
%%
%% ```
%% 1> ats:new(prices, [named_table]).
%% prices
%% 2> ats:insert_new(prices, {apple, 3}).
%% true
%% 3> ats:insert_new(prices, [{apple, 5}, {pear, 4}]).
%% false
%% 4> ats:tab2list(prices).
%% [{apple,3}]
%% '''
-spec insert_new(table(), tuple() | [tuple()]) -> boolean().
insert_new(Table, Objects) ->
    ?NATIVE(insert_new(Table, Objects), [Table, Objects]).

%% @doc Inserts an object or a list of objects like {@link insert_new/2}, for a time like {@link
%% insert/3}. A lock that is given up by itself is such an object.
%%
%% ```
%% 1> ats:new(locks, [named_table, public, {ttl, 30000}]).
%% locks
%% 2> ats:insert_new(locks, {report, self()}, #{ttl => 5000}).
%% true
%% 3> ats:insert_new(locks, {report, self()}, #{ttl => 5000}).
%% false
%% '''
-spec insert_new(table(), tuple() | [tuple()], #{ttl := lifetime()}) -> boolean().
insert_new(Table, Objects, Options) ->
    ?WITH_ERROR_INFO(ats_nif:insert_new(Table, Objects, ats_options:lifetime(Options)),
                     [Table, Objects, Options]).

%% @doc Returns the milliseconds that are left to the objects of a key: `infinity' if they do not
%% expire, `undefined' if there are none. Does not put the deadline off. There is no such function
%% in `ets'.
%%
%% ```
%% 1> ats:new(sessions, [named_table, {ttl, infinity}]).
%% sessions
%% 2> ats:insert(sessions, {ann, online}).
%% true
%% 3> ats:ttl(sessions, ann).
%% infinity
%% 4> ats:touch(sessions, ann, 60000).
%% true
%% 5> ats:ttl(sessions, ann) =< 60000.
%% true
%% '''
-spec ttl(table(), Key :: term()) -> non_neg_integer() | infinity | undefined.
ttl(Table, Key) ->
    ?NATIVE(ttl(Table, Key), [Table, Key]).

%% @doc Gives the objects of a key the time of the table from now on. Otherwise the same as {@link
%% touch/3}.
-spec touch(table(), Key :: term()) -> boolean().
touch(Table, Key) ->
    ?NATIVE(touch(Table, Key, default), [Table, Key]).

%% @doc Gives the objects of a key a time from now on, in milliseconds. Returns `false' if the key
%% has no objects. The table must have the option `ttl'. There is no such function in `ets'.
%%
%% ```
%% 1> ats:new(sessions, [named_table, {ttl, 60000}]).
%% sessions
%% 2> ats:insert(sessions, {ann, online}).
%% true
%% 3> ats:touch(sessions, ann, infinity).
%% true
%% 4> ats:touch(sessions, bob, 1000).
%% false
%% '''
-spec touch(table(), Key :: term(), infinity | (Milliseconds :: pos_integer())) -> boolean().
touch(Table, Key, Ttl) ->
    ?WITH_ERROR_INFO(ats_nif:touch(Table, Key, ats_options:ttl(Ttl)), [Table, Key, Ttl]).

%% @doc Tests conditions on keys, and carries out the steps of `Then' if all of them hold, else
%% those of `Else', as one atomic step. Returns `true' or `false', whether they held, and the
%% results of the steps that were carried out, as the functions of their names return them.
%%
%% Every reader sees all changes or none, and no other process changes one of the keys between the
%% test and the changes. Steps on the same key see what earlier steps have made of it. If a
%% condition or a step fails, the call fails with `badarg', and nothing has changed.
%%
%% All keys that the conditions and the steps of both branches name are held meanwhile: their
%% readers see the objects before, and their writers wait. A call has up to 10000 conditions and
%% steps together. No step concerns a range of keys, as {@link range_delete/3} does: a range has
%% keys that are not there yet, so nobody can hold them. Name each key instead. {@link
%% transact/1} changes several tables, and {@link dats:transact/4} one on disk.
%%
%% ```
%% 1> ats:new(bank, [named_table]),
%%    ats:insert(bank, [{ann, 100}, {bob, 20}]).
%% true
%% 2> Enough = {match, ann, {ann, '$1'}, [{'>=', '$1', 30}]},
%%    ats:transact(bank, [Enough, {present, bob}],
%%                 [{update_counter, ann, -30}, {update_counter, bob, 30}], []).
%% {true,[70,50]}
%% 3> ats:transact(bank, [{equals, {ann, 100}}], [{delete, ann}], [{lookup, ann}]).
%% {false,[[{ann,70}]]}
%% '''
-spec transact(table(), [condition()], Then :: [step()], Else :: [step()]) ->
          {boolean(), Results :: [term()]}.
transact(Table, Conditions, Then, Else) ->
    ?WITH_ERROR_INFO(ats_transactions:run(Table, Conditions, Then, Else),
                     [Table, Conditions, Then, Else]).

%% @doc Tests conditions on keys of several tables, and carries out the steps of all of them, as one
%% atomic step: those of each `Then' if all conditions of all tables hold, else those of each
%% `Else'. Returns `true' or `false', whether the conditions held, and for each table the results of
%% its steps. Conditions and steps are those of {@link transact/4}.
%%
%% No reader sees a part of it, in whatever order it looks at the tables: once it has seen a change
%% in one table, it sees all changes in all tables. A snapshot or a query of each of two tables, one
%% after the other, is no exception; but {@link ats} has no snapshot of several tables at one
%% moment. Nothing has changed if a condition or a step fails, or if one of the tables is deleted
%% meanwhile, ends with its owner, or is not writable for the caller any more: the call fails with
%% `badarg', and the text of the exception has the number of the table.
%%
%% A table may be there several times: all conditions are tested in order, and then all steps are
%% carried out in order. A call has up to 64 tables, and up to 10000 tables, conditions and steps
%% together. Tables on disk are refused here: {@link dats:transact/4} changes one of them.
%%
%% ```
%% 1> ats:new(waiting, [ordered_set, named_table]), ats:new(running, [named_table]).
%% running
%% 2> ats:insert(waiting, {1, print}).
%% true
%% 3> Start = [{waiting, [{present, 1}], [{take, 1}], []},
%%             {running, [{absent, printer}], [{insert, {printer, 1}}], [{lookup, printer}]}],
%%    ats:transact(Start).
%% {true,[[[{1,print}]],[true]]}
%% 4> ats:transact(Start).
%% {false,[[],[[{printer,1}]]]}
%% '''
-spec transact([table_part()]) -> {boolean(), [Results :: [term()]]}.
transact(Tables) ->
    ?WITH_ERROR_INFO(ats_transactions:run(Tables), [Tables]).

%% @doc Replaces the object of a key by what a function makes of it: the function gets the list
%% that {@link lookup/2} returns, and returns the list that it is to return afterwards. Returns
%% that. Only for `set' and `ordered_set'.
%%
%% The calling process runs the function, and other processes go on meanwhile. If one of them has
%% written the key, the function is called again, up to a thousand times; then the call fails with
%% `contended'.
%%
%% ```
%% 1> ats:new(words, [named_table]),
%%    Add = fun([]) -> [{the, 1}]; ([{the, N}]) when N < 2 -> [{the, N + 1}]; (_) -> [] end,
%%    ats:update(words, the, Add).
%% [{the,1}]
%% 2> ats:update(words, the, Add).
%% [{the,2}]
%% 3> ats:update(words, the, Add).
%% []
%% '''
-spec update(table(), Key :: term(), fun((Before :: [tuple()]) -> After :: [tuple()])) ->
          After :: [tuple()].
update(Table, Key, Function) ->
    ?WITH_ERROR_INFO(ats_transactions:update(Table, Key, Function), [Table, Key, Function]).

%% @doc Removes and returns all objects with a key, as one atomic step.
%%
%% ```
%% 1> ats:new(prices, [ordered_set, named_table]),
%%    ats:insert(prices, [{apple, 3}, {pear, 4}, {plum, 7}]).
%% true
%% 2> ats:take(prices, pear).
%% [{pear,4}]
%% 3> ats:take(prices, pear).
%% []
%% '''
-spec take(table(), Key :: term()) -> [tuple()].
take(Table, Key) ->
    ?NATIVE(take(Table, Key), [Table, Key]).

%% @doc Removes and returns all objects with each key of a list: the same as {@link take/2} of one
%% key after the other, in less time. The result has a list of objects for each key, in the order of
%% the keys. Each key has its own moment, so other processes may see some keys gone and others not.
%% The objects of the keys that are done are lost if the caller is killed meanwhile.
%%
%% There is no such function in `ets'.
%%
%% ```
%% 1> ats:new(prices, [ordered_set, named_table]),
%%    ats:insert(prices, [{apple, 3}, {pear, 4}, {plum, 7}]).
%% true
%% 2> ats:take_many(prices, [plum, fig, apple]).
%% [[{plum,7}],[],[{apple,3}]]
%% 3> ats:tab2list(prices).
%% [{pear,4}]
%% '''
-spec take_many(table(), Keys :: [term()]) -> [[tuple()]].
take_many(Table, Keys) ->
    ?WITH_ERROR_INFO(ats_several_keys:take(identifier(Table), Keys), [Table, Keys]).

%% @doc Removes all objects with a key.
-spec delete(table(), Key :: term()) -> true.
delete(Table, Key) ->
    ?NATIVE(delete(Table, Key), [Table, Key]).

%% @doc Removes all objects with each key of a list: the same as {@link delete/2} of one key after
%% the other, in less time. Each key has its own moment, so other processes may see some keys gone
%% and others not.
%%
%% There is no such function in `ets'.
%%
%% ```
%% 1> ats:new(prices, [ordered_set, named_table]),
%%    ats:insert(prices, [{apple, 3}, {pear, 4}, {plum, 7}]).
%% true
%% 2> ats:delete_many(prices, [plum, fig, apple]).
%% true
%% 3> ats:tab2list(prices).
%% [{pear,4}]
%% '''
-spec delete_many(table(), Keys :: [term()]) -> true.
delete_many(Table, Keys) ->
    ?WITH_ERROR_INFO(ats_several_keys:delete(identifier(Table), Keys), [Table, Keys]).

%% @doc Removes exactly this object; in a bag that has it several times all its copies.
%%
%% ```
%% 1> ats:new(seen, [bag, named_table]),
%%    ats:insert(seen, [{ann, 1}, {ann, 2}, {ann, 3}]).
%% true
%% 2> ats:delete_object(seen, {ann, 2}).
%% true
%% 3> ats:lookup(seen, ann).
%% [{ann,1},{ann,3}]
%% '''
-spec delete_object(table(), tuple()) -> true.
delete_object(Table, Object) ->
    ?NATIVE(delete_object(Table, Object), [Table, Object]).

%% @doc Removes all objects, as one atomic step.
%%
%% ```
%% 1> ats:new(prices, [ordered_set, named_table]),
%%    ats:insert(prices, [{apple, 3}, {pear, 4}, {plum, 7}]).
%% true
%% 2> ats:delete_all_objects(prices).
%% true
%% 3> ats:tab2list(prices).
%% []
%% '''
-spec delete_all_objects(table()) -> true.
delete_all_objects(Table) ->
    ?NATIVE(delete_all_objects(Table), [Table]).

%% @doc Adds to integers inside an object and returns the new values. All operations of one call
%% are one atomic step. Only for `set' and `ordered_set'.
%%
%% ```
%% 1> ats:new(hits, [named_table]),
%%    ats:insert(hits, {home, 0}).
%% true
%% 2> ats:update_counter(hits, home, 3).
%% 3
%% 3> ats:update_counter(hits, home, {2, 4, 5, 0}).
%% 0
%% '''
-spec update_counter(table(), Key :: term(), update_op() | [update_op()] | integer()) ->
          integer() | [integer()].
update_counter(Table, Key, UpdateOp) ->
    ?NATIVE(update_counter(Table, Key, UpdateOp), [Table, Key, UpdateOp]).

%% @doc Like {@link update_counter/3}, starting from `Default' if the key is not in the table.
%%
%% ```
%% 1> ats:new(hits, [named_table]).
%% hits
%% 2> ats:update_counter(hits, home, 1, {home, 0}).
%% 1
%% 3> ats:update_counter(hits, home, 1, {home, 0}).
%% 2
%% '''
-spec update_counter(table(), Key :: term(), update_op() | [update_op()] | integer(),
                     Default :: tuple()) -> integer() | [integer()].
update_counter(Table, Key, UpdateOp, Default) ->
    ?NATIVE(update_counter(Table, Key, UpdateOp, Default), [Table, Key, UpdateOp, Default]).

%% @doc Replaces elements of an object as one atomic step. Returns `false' if the key is not in
%% the table. Only for `set' and `ordered_set'.
%%
%% ```
%% 1> ats:new(prices, [ordered_set, named_table]),
%%    ats:insert(prices, [{apple, 3}, {pear, 4}, {plum, 7}]).
%% true
%% 2> ats:update_element(prices, pear, {2, 5}).
%% true
%% 3> ats:update_element(prices, fig, {2, 9}).
%% false
%% 4> ats:lookup(prices, pear).
%% [{pear,5}]
%% '''
-spec update_element(table(), Key :: term(), element_spec() | [element_spec()]) -> boolean().
update_element(Table, Key, ElementSpec) ->
    ?NATIVE(update_element(Table, Key, ElementSpec), [Table, Key, ElementSpec]).

%% @doc Like {@link update_element/3}, starting from `Default' if the key is not in the table.
-spec update_element(table(), Key :: term(), element_spec() | [element_spec()],
                     Default :: tuple()) -> true.
update_element(Table, Key, ElementSpec, Default) ->
    ?NATIVE(update_element(Table, Key, ElementSpec, Default),
            [Table, Key, ElementSpec, Default]).

%%--------------------------------------------------------------------------------------------
%% Reading
%%--------------------------------------------------------------------------------------------

%% @doc Returns the objects with a key. An `ordered_set' compares keys with `==', the other
%% types with `=:='.
%%
%% ```
%% 1> ats:new(seen, [ordered_set, named_table]),
%%    ats:insert(seen, {1, ann}).
%% true
%% 2> ats:lookup(seen, 1.0).
%% [{1,ann}]
%% 3> ats:lookup(seen, 2).
%% []
%% '''
-spec lookup(table(), Key :: term()) -> [tuple()].
lookup(Table, Key) ->
    ?NATIVE(lookup(Table, Key), [Table, Key]).

%% @doc Returns the objects with each key of a list: the same as {@link lookup/2} of one key after
%% the other, in less time, because the keys' objects are fetched from memory together. The result
%% has a list of objects for each key, in the order of the keys. Each key has its own moment; those
%% of a {@link snapshot/1} have one.
%%
%% There is no such function in `ets'.
%%
%% ```
%% 1> ats:new(prices, [ordered_set, named_table]),
%%    ats:insert(prices, [{apple, 3}, {pear, 4}, {plum, 7}]).
%% true
%% 2> ats:lookup_many(prices, [plum, fig, apple]).
%% [[{plum,7}],[],[{apple,3}]]
%% '''
-spec lookup_many(table(), Keys :: [term()]) -> [[tuple()]].
lookup_many(Table, Keys) ->
    ?WITH_ERROR_INFO(ats_several_keys:lookup(identifier(Table), Keys), [Table, Keys]).

%% @doc Returns one element of the object with a key, or a list of them from a bag. Fails with
%% `badarg' if the key is not in the table.
%%
%% ```
%% 1> ats:new(prices, [ordered_set, named_table]),
%%    ats:insert(prices, [{apple, 3}, {pear, 4}, {plum, 7}]).
%% true
%% 2> ats:lookup_element(prices, pear, 2).
%% 4
%% '''
-spec lookup_element(table(), Key :: term(), Pos :: pos_integer()) -> term() | [term()].
lookup_element(Table, Key, Pos) ->
    ?NATIVE(lookup_element(Table, Key, Pos), [Table, Key, Pos]).

%% @doc Like {@link lookup_element/3}, but returns `Default' if the key is not in the table.
%%
%% ```
%% 1> ats:new(prices, [ordered_set, named_table]),
%%    ats:insert(prices, [{apple, 3}, {pear, 4}, {plum, 7}]).
%% true
%% 2> ats:lookup_element(prices, fig, 2, none).
%% none
%% '''
-spec lookup_element(table(), Key :: term(), Pos :: pos_integer(), Default :: term()) ->
          term() | [term()].
lookup_element(Table, Key, Pos, Default) ->
    ?NATIVE(lookup_element(Table, Key, Pos, Default), [Table, Key, Pos, Default]).

%% @doc Returns several elements of the object with a key as a list, or a list of such lists from a
%% bag. Other elements are not copied. Positions can come in any order, and more than once. The
%% object is read as a whole, so the elements belong together. Fails with `badarg' if the key is not
%% in the table, or an object is shorter than a position, as {@link lookup_element/3} does.
%%
%% There is no such function in `ets'.
%%
%% ```
%% 1> ats:new(people, [named_table]),
%%    ats:insert(people, {ann, 1815, london, "a long text"}).
%% true
%% 2> ats:lookup_elements(people, ann, [3, 2]).
%% [london,1815]
%% '''
-spec lookup_elements(table(), Key :: term(), Positions :: [pos_integer()]) -> [term()].
lookup_elements(Table, Key, Positions) ->
    ?NATIVE(lookup_elements(Table, Key, Positions), [Table, Key, Positions]).

%% @doc Returns the value of a key: the second element of its object. If the key is not there, calls
%% `Function(Key)', inserts `{Key, Value}' with the value that this returns, and returns the value.
%%
%% However many processes fetch a missing key at the same time, on this node, one of them calls its
%% function, and all get its value. If the function fails, its process gets the exception, and the
%% next one calls its own function; so it is if the process ends. An object that is inserted
%% meanwhile is not replaced: the call returns that value then.
%%
%% The function runs in the calling process, for as long as it takes, and may fetch other keys; a
%% call that would wait for itself is refused. The value is sent to the processes that wait, even if
%% it is not in the table any more.
%%
%% A key that is there costs a lookup. Only for `set' and `ordered_set' with the key as the first
%% element. There is no such function in `ets'.
%%
%% ```
%% 1> ats:new(squares, [named_table, public]).
%% squares
%% 2> ats:fetch(squares, 12, fun(N) -> N * N end).
%% 144
%% 3> ats:fetch(squares, 12, fun(_) -> error(not_called) end).
%% 144
%% '''
-spec fetch(table(), Key, fun((Key) -> Value)) -> Value.
fetch(Table, Key, Function) ->
    ?WITH_ERROR_INFO(ats_fetch:fetch(memory, identifier(Table), Key, Function),
                     [Table, Key, Function]).

%% @doc Returns the value of a key like {@link fetch/3}. A value that the function makes is there
%% for a time, like an object that {@link insert/3} inserts. The table must have the option `ttl' or
%% `max_objects'.
%%
%% ```
%% 1> ats:new(tokens, [named_table, public, {ttl, infinity}]).
%% tokens
%% 2> ats:fetch(tokens, ann, fun(_) -> secret end, #{ttl => 60000}).
%% secret
%% 3> ats:ttl(tokens, ann) =< 60000.
%% true
%% '''
-spec fetch(table(), Key, fun((Key) -> Value), #{ttl := lifetime()}) -> Value.
fetch(Table, Key, Function, Options) ->
    ?WITH_ERROR_INFO(ats_fetch:fetch(memory, identifier(Table), Key, Function,
                                     ats_options:lifetime(Options)),
                     [Table, Key, Function, Options]).

%% @doc Tells whether a key is in the table.
%%
%% ```
%% 1> ats:new(prices, [ordered_set, named_table]),
%%    ats:insert(prices, [{apple, 3}, {pear, 4}, {plum, 7}]).
%% true
%% 2> ats:member(prices, fig).
%% false
%% '''
-spec member(table(), Key :: term()) -> boolean().
member(Table, Key) ->
    ?NATIVE(member(Table, Key), [Table, Key]).

%% @doc Returns the first key of the table. Only an `ordered_set' has an order worth the name.
%%
%% ```
%% 1> ats:new(prices, [ordered_set, named_table]),
%%    ats:insert(prices, [{apple, 3}, {pear, 4}, {plum, 7}]).
%% true
%% 2> ats:first(prices).
%% apple
%% 3> ats:next(prices, apple).
%% pear
%% 4> ats:last(prices).
%% plum
%% 5> ats:next(prices, plum).
%% '$end_of_table'
%% '''
-spec first(table()) -> Key :: term() | '$end_of_table'.
first(Table) ->
    ?NATIVE(first(Table), [Table]).

%% @doc Returns the last key of an `ordered_set'; for other types the same as {@link first/1}.
-spec last(table()) -> Key :: term() | '$end_of_table'.
last(Table) ->
    ?NATIVE(last(Table), [Table]).

%% @doc Returns the key after `Key'. In an `ordered_set', `Key' itself need not be in the table.
-spec next(table(), Key :: term()) -> NextKey :: term() | '$end_of_table'.
next(Table, Key) ->
    ?NATIVE(next(Table, Key), [Table, Key]).

%% @doc Returns the key before `Key' in an `ordered_set'; otherwise the same as {@link next/2}.
%%
%% ```
%% 1> ats:new(prices, [ordered_set, named_table]),
%%    ats:insert(prices, [{apple, 3}, {pear, 4}, {plum, 7}]).
%% true
%% 2> ats:prev(prices, pear).
%% apple
%% 3> ats:prev(prices, apple).
%% '$end_of_table'
%% '''
-spec prev(table(), Key :: term()) -> PreviousKey :: term() | '$end_of_table'.
prev(Table, Key) ->
    ?NATIVE(prev(Table, Key), [Table, Key]).

%% @doc Returns the first key together with its objects, in one step.
%%
%% ```
%% 1> ats:new(prices, [ordered_set, named_table]),
%%    ats:insert(prices, [{apple, 3}, {pear, 4}, {plum, 7}]).
%% true
%% 2> ats:first_lookup(prices).
%% {apple,[{apple,3}]}
%% '''
-spec first_lookup(table()) -> {Key :: term(), [tuple()]} | '$end_of_table'.
first_lookup(Table) ->
    ?NATIVE(first_lookup(Table), [Table]).

%% @doc Returns the last key together with its objects, in one step.
%%
%% ```
%% 1> ats:new(prices, [ordered_set, named_table]),
%%    ats:insert(prices, [{apple, 3}, {pear, 4}, {plum, 7}]).
%% true
%% 2> ats:last_lookup(prices).
%% {plum,[{plum,7}]}
%% '''
-spec last_lookup(table()) -> {Key :: term(), [tuple()]} | '$end_of_table'.
last_lookup(Table) ->
    ?NATIVE(last_lookup(Table), [Table]).

%% @doc Returns the key after `Key' together with its objects, in one step.
%%
%% ```
%% 1> ats:new(prices, [ordered_set, named_table]),
%%    ats:insert(prices, [{apple, 3}, {pear, 4}, {plum, 7}]).
%% true
%% 2> ats:next_lookup(prices, banana).
%% {pear,[{pear,4}]}
%% '''
-spec next_lookup(table(), Key :: term()) ->
          {NextKey :: term(), [tuple()]} | '$end_of_table'.
next_lookup(Table, Key) ->
    ?NATIVE(next_lookup(Table, Key), [Table, Key]).

%% @doc Returns the key before `Key' together with its objects, in one step.
%%
%% ```
%% 1> ats:new(prices, [ordered_set, named_table]),
%%    ats:insert(prices, [{apple, 3}, {pear, 4}, {plum, 7}]).
%% true
%% 2> ats:prev_lookup(prices, pear).
%% {apple,[{apple,3}]}
%% '''
-spec prev_lookup(table(), Key :: term()) ->
          {PreviousKey :: term(), [tuple()]} | '$end_of_table'.
prev_lookup(Table, Key) ->
    ?NATIVE(prev_lookup(Table, Key), [Table, Key]).

%% @doc Fixes a table for traversal, or releases one fixation of the calling process. A traversal
%% with {@link next/2} of a fixed table meets every object that is there throughout, once.
%%
%% ```
%% 1> ats:new(prices, [ordered_set, named_table]),
%%    ats:insert(prices, [{apple, 3}, {pear, 4}, {plum, 7}]).
%% true
%% 2> ats:safe_fixtable(prices, true).
%% true
%% 3> ats:info(prices, fixed).
%% true
%% 4> ats:safe_fixtable(prices, false).
%% true
%% '''
-spec safe_fixtable(table(), Fix :: boolean()) -> true.
safe_fixtable(Table, Fix) ->
    ?NATIVE(safe_fixtable(Table, Fix), [Table, Fix]).

%% @doc Returns the objects of a slot, counted from 0, or `'$end_of_table'' behind the last one.
%%
%% Slots are parts of a table: every object is in one of them. While a table is fixed its slots do
%% not change, although it may grow. In an `ordered_set' slot `I' holds the object at that position,
%% and takes as long as {@link nth/2}.
%%
%% ```
%% 1> ats:new(prices, [ordered_set, named_table]),
%%    ats:insert(prices, [{apple, 3}, {pear, 4}, {plum, 7}]).
%% true
%% 2> ats:slot(prices, 1).
%% [{pear,4}]
%% '''
-spec slot(table(), I :: non_neg_integer()) -> [tuple()] | '$end_of_table'.
slot(Table, I) ->
    ?NATIVE(slot(Table, I), [Table, I]).

%% @doc Returns all objects that the table has at one moment between the begin and the end of the
%% call. Writers go on meanwhile; objects that they replace or remove stay in memory until the call
%% ends.
-spec tab2list(table()) -> [tuple()].
tab2list(Table) ->
    ?WITH_ERROR_INFO(ats_select:objects(Table), [Table]).

%% @doc Folds a function over the objects, in ascending order of the keys of an `ordered_set'.
%%
%% The objects are those of one moment between the begin and the end of the call. The function may
%% change the table, and does not see its own changes.
%%
%% ```
%% 1> ats:new(prices, [ordered_set, named_table]),
%%    ats:insert(prices, [{apple, 3}, {pear, 4}, {plum, 7}]).
%% true
%% 2> ats:foldl(fun({_, Price}, Sum) -> Price + Sum end, 0, prices).
%% 14
%% '''
-spec foldl(fun((Object :: tuple(), Acc) -> Acc), Acc, table()) -> Acc.
foldl(Function, Acc, Table) ->
    case ?WITH_ERROR_INFO(ats_snapshot:begin_fold(Table), [Function, Acc, Table]) of
        {few, Objects} ->
            fold_list(Function, Acc, Objects);
        {reading, Reading} ->
            Source = ats_snapshot:source(Reading),
            try fold_forwards(Function, Acc, Source, chunk(Source, start))
            after ats_snapshot:end_reading(Reading)
            end
    end.

%% @doc Like {@link foldl/3}, but in descending order of the keys of an `ordered_set'.
%%
%% ```
%% 1> ats:new(prices, [ordered_set, named_table]),
%%    ats:insert(prices, [{apple, 3}, {pear, 4}, {plum, 7}]).
%% true
%% 2> ats:foldr(fun({Key, _}, Keys) -> [Key | Keys] end, [], prices).
%% [apple,pear,plum]
%% '''
-spec foldr(fun((Object :: tuple(), Acc) -> Acc), Acc, table()) -> Acc.
foldr(Function, Acc, Table) ->
    Reading = ?WITH_ERROR_INFO(ats_snapshot:begin_reading(Table), [Function, Acc, Table]),
    Source = ats_snapshot:source(Reading),
    try fold_backwards(Function, Acc, Source, last_lookup(Source))
    after ats_snapshot:end_reading(Reading)
    end.

%%--------------------------------------------------------------------------------------------
%% Moments
%%--------------------------------------------------------------------------------------------

%% @equiv snapshot(Table, [])
-spec snapshot(table()) -> snapshot().
snapshot(Table) ->
    ?WITH_ERROR_INFO(ats_snapshot:make(Table, []), [Table]).

%% @doc Returns a snapshot: a read-only table with the objects that this one has at one moment
%% between the begin and the end of the call. The call takes as long for a large table as for a
%% small one.
%%
%% Every function that reads a table reads a snapshot, {@link table/2} for queries of `qlc' too;
%% every process may do so, also if the table is private. A function that changes a table fails with
%% `badarg', and so do {@link rename/2}, {@link give_away/3} and {@link setopts/2}. Steps and
%% look-ups take as long as in the table; {@link nth/2}, {@link rank/2}, {@link range_count/3} and
%% {@link slot/2} take the time of walking over the objects.
%%
%% A snapshot belongs to the caller, and ends with it. It also ends by {@link release/1}, if the
%% caller deletes it by {@link delete/1}, and after `max_age' milliseconds, if that option is given.
%% The oldest snapshot of a table ends when more memory is held back for its snapshots than its
%% option `snapshot_memory' allows. Then functions that read it fail with `badarg', and the
%% exception tells why; `info' returns `undefined'. A snapshot outlives its table.
%%
%% Writers go on. Objects that they replace or remove stay in memory as long as a snapshot shows
%% them: at most one version of a key for each snapshot. `info(Table, snapshots)' tells how much
%% memory that is, and how many snapshots have ended by their age or by `snapshot_memory', as
%% `evicted'.
%%
%% ```
%% 1> ats:new(prices, [ordered_set, named_table]),
%%    ats:insert(prices, [{apple, 3}, {pear, 4}]).
%% true
%% 2> Before = ats:snapshot(prices, [{max_age, 60000}]),
%%    ats:insert(prices, {apple, 5}).
%% true
%% 3> ats:tab2list(Before).
%% [{apple,3},{pear,4}]
%% 4> ats:info(Before, snapshot_of) =:= ats:whereis(prices).
%% true
%% 5> ats:release(Before).
%% true
%% '''
-spec snapshot(table(), [snapshot_option()]) -> snapshot().
snapshot(Table, Options) ->
    ?WITH_ERROR_INFO(ats_snapshot:make(Table, Options), [Table, Options]).

%% @doc Ends a snapshot, whichever process has made it. Memory that is held back for it alone is
%% freed at once. A snapshot that has ended otherwise may be released, too. A second call fails with
%% `badarg'.
%%
%% ```
%% 1> ats:new(prices, [named_table]),
%%    Snapshot = ats:snapshot(prices),
%%    maps:get(number, ats:info(prices, snapshots)).
%% 1
%% 2> ats:release(Snapshot),
%%    maps:get(number, ats:info(prices, snapshots)).
%% 0
%% '''
-spec release(snapshot()) -> true.
release(Snapshot) ->
    ?WITH_ERROR_INFO(ats_snapshot:release(Snapshot), [Snapshot]).

%% @doc Returns the differences between two snapshots of a table as a list. See {@link diff/4}.
%%
%% ```
%% 1> ats:new(prices, [named_table]),
%%    ats:insert(prices, [{apple, 3}, {pear, 4}]).
%% true
%% 2> Before = ats:snapshot(prices),
%%    ats:insert(prices, {apple, 5}).
%% true
%% 3> ats:diff(Before, ats:snapshot(prices)).
%% [{change,{apple,3},{apple,5}}]
%% '''
-spec diff(First :: snapshot(), Second :: snapshot()) -> [difference()].
diff(First, Second) ->
    Collect = fun(Difference, All) -> [Difference | All] end,
    ?WITH_ERROR_INFO(lists:reverse(ats_snapshot:diff(First, Second, Collect, [])), [First, Second]).

%% @doc Folds a function over the differences between two snapshots of a table: the changes that
%% turn the first, which is the older one, into the second. The function is called with `{insert,
%% Object}', `{delete, Object}' or, for types where a key has one object, `{change, Old, New}', and
%% with the accumulator.
%%
%% The call finds the keys that were changed since the first snapshot was made, and looks these up.
%% If all objects of the table were deleted at once between the two, it reads all objects.
%%
%% ```
%% 1> ats:new(prices, [named_table]),
%%    Before = ats:snapshot(prices),
%%    ats:insert(prices, [{apple, 3}, {pear, 4}]).
%% true
%% 2> Insert = fun({insert, {_, Price}}, Sum) -> Sum + Price end,
%%    ats:diff(Before, ats:snapshot(prices), Insert, 0).
%% 7
%% '''
-spec diff(First :: snapshot(), Second :: snapshot(), fun((difference(), Acc) -> Acc), Acc) -> Acc.
diff(First, Second, Function, Acc) ->
    ?WITH_ERROR_INFO(ats_snapshot:diff(First, Second, Function, Acc),
                     [First, Second, Function, Acc]).

%% @equiv follow(Table, #{})
-spec follow(table()) -> {ok, follow_ref()}.
follow(Table) ->
    ?WITH_ERROR_INFO(ats_follow:follow(Table, #{}), [Table]).

%% @doc Sends the changes of a table to the caller, from now on. Returns the reference `Ref' of the
%% messages:
%%
%% <ul>
%% <li>`{ats_changes, Ref, Seq, Changes}': a batch, the list of the differences between two moments
%%   of the table, as {@link diff/4} has them. The second moment is the first one of the next batch.
%%   `Seq' counts the batches from 1. There is no empty batch, except for the first with
%%   `snapshot'.</li>
%% <li>`{ats_changes, Ref, Seq, {part, Changes}}': the first 1000 changes of a batch that has more.
%%   Its other messages have the same `Seq'; the last is the one with a list.</li>
%% <li>`{ats_changes, Ref, Seq, lost}': some changes will not be told, because the snapshot of the
%%   last moment has ended by the table's option `snapshot_memory'. Also what was told in parts
%%   since the last list is not complete. The next batch begins at this moment. With `snapshot' it
%%   has all objects once more.</li>
%% <li>`{ats_changes, Ref, ended, Why}': the last message. `Why' is `deleted', if the table does not
%%   exist any more; `private', if the table has become private; `stopped', if the application was;
%%   or the reason with which the process that sends the messages was killed.</li>
%% </ul>
%%
%% A list of objects that is inserted as one is never in two batches. Changes of one key between two
%% moments are one change, or none if it has changed back. In a bag, `{delete, Object}' is about one
%% of equal objects, and the order of the objects of a key is not told. Expired objects are told as
%% deleted. Nothing that is read for this counts as a read of {@link new/2}.
%%
%% The options are a map:
%%
%% <ul>
%% <li>`snapshot => true': the first batch inserts all objects into an empty table. So the receiver
%%   has an exact copy of the table at one moment after each message that has a list.</li>
%% <li>`spec => MatchSpec': only objects that match are told. An object that begins to match is told
%%   as inserted, one that does not match any more as deleted. The body of each clause must be
%%   ``['$_']''.</li>
%% <li>`keys => true': changes are `{insert, Key}' for a key that had no object, `{delete, Key}' for
%%   one that has none any more, and `{change, Key}'.</li>
%% <li>`every => Ms': the time in milliseconds from the end of a batch to the next moment. The
%%   default is 100.</li>
%% <li>`at_least => N': a batch is sent when there are as many changes. Until then they wait: each
%%   `every' milliseconds, those of a further moment are joined to them, and a key that has changed
%%   back does not count any more. The first batch with `snapshot', and `lost', do not wait. The
%%   default is 1.</li>
%% <li>`within => Ms': changes that have waited for so many milliseconds are sent, however few they
%%   are. The default is `infinity': then they wait for others, and the end of the table is told
%%   without them.</li>
%% <li>`active => N': after so many batches, `lost' among them, nothing is sent until {@link
%%   follow_more/2} is called. The default is `true', without limit.</li>
%% <li>`max_queue => N': while the receiver has more messages in its queue, nothing is sent. The
%%   default is 20.</li>
%% <li>`to => Pid': the receiver, also one on another node. The default is the caller.</li>
%% </ul>
%%
%% While nothing is sent, changes are merged: the next batch goes from the last told moment to the
%% present. So a receiver that is slow gets few batches, and the last state.
%%
%% The table must be public or protected. Writers pay for a {@link snapshot/2} that is always there,
%% and for nothing else. The messages end with the receiver, with the table, and by {@link
%% unfollow/1}. The application `ats' is started if it does not run.
%%
%% ```
%% 1> ats:new(prices, [named_table]),
%%    ats:insert(prices, {apple, 3}),
%%    {ok, Ref} = ats:follow(prices, #{snapshot => true, every => 10}),
%%    receive {ats_changes, Ref, 1, First} -> First end.
%% [{insert,{apple,3}}]
%% 2> ats:insert(prices, {apple, 5}),
%%    receive {ats_changes, Ref, 2, Second} -> Second end.
%% [{change,{apple,3},{apple,5}}]
%% 3> ats:unfollow(Ref).
%% true
%% '''
-spec follow(table(), follow_options()) -> {ok, follow_ref()}.
follow(Table, Options) ->
    ?WITH_ERROR_INFO(ats_follow:follow(Table, Options), [Table, Options]).

%% @doc Lets `N' more batches be sent, besides those that are still allowed, or all with `true'. See
%% the option `active' of {@link follow/2}. Returns `false' if the messages have ended.
%%
%% ```
%% 1> ats:new(prices, [named_table]),
%%    {ok, Ref} = ats:follow(prices, #{active => 1, every => 10}),
%%    ats:follow_more(Ref, 10).
%% true
%% 2> ats:unfollow(Ref),
%%    ats:follow_more(Ref, true).
%% false
%% '''
-spec follow_more(follow_ref(), true | (N :: pos_integer())) -> boolean().
follow_more(Ref, N) ->
    ?WITH_ERROR_INFO(ats_follow:more(Ref, N), [Ref, N]).

%% @doc Ends the messages of {@link follow/2}, and removes those that the caller has not received.
%% When the call returns, no more are sent, and the snapshot has ended. Does nothing if the messages
%% have ended before.
%%
%% ```
%% 1> ats:new(prices, [named_table]),
%%    {ok, Ref} = ats:follow(prices),
%%    ats:unfollow(Ref).
%% true
%% 2> maps:get(number, ats:info(prices, snapshots)).
%% 0
%% '''
-spec unfollow(follow_ref()) -> true.
unfollow(Ref) ->
    ?WITH_ERROR_INFO(ats_follow:unfollow(Ref), [Ref]).

%% @equiv view(Table, MatchSpec, #{})
-spec view(table(), match_spec()) -> tid() | atom().
view(Table, MatchSpec) ->
    ?WITH_ERROR_INFO(ats_view:view(Table, MatchSpec, #{}), [Table, MatchSpec]).

%% @doc Makes a view: a table of the objects that a match specification makes of another table, its
%% source. It follows the source: a secondary index, a filter, or another order of the objects,
%% without code in the writers. Returns the identifier of the view, or its name. By then it shows
%% the present.
%%
%% The body of each clause must make a tuple with a key for the view: ``{{...}}'', `{const, Tuple}',
%% or ``'$_' '' if the head or the source tells that there is an element at that position. An object
%% for which no clause matches has none in the view.
%%
%% The options are a map:
%%
%% <ul>
%% <li>`type => Type', `keypos => Pos', `compressed => true': as of {@link new/2}. The type is by
%%   default `set'.</li>
%% <li>`name => Name': the view is a named table.</li>
%% <li>`every => Ms': the time in milliseconds from one look at the source to the next. The default
%%   is 100.</li>
%% <li>`protection => protected', the default and all there is: every process may read the view,
%%   and none may write to it.</li>
%% </ul>
%%
%% The view shows its source as it was at one moment, and some milliseconds later as it was at a
%% later moment. Its readers see all changes between the two at once, if they are not more than
%% 5000. More come in parts, and in parts the view is filled first.
%%
%% If several objects have the same key, a `duplicate_bag' has all of them, also equal ones, and a
%% `bag' one of equal ones. A `set' shows the least one in the order of terms, and the next when
%% that is gone. So a view depends on the present of its source, and not on its history. The order
%% of the objects of a key of a bag may be any.
%%
%% `info(View, lag)' is the time in milliseconds since the moment that the view shows: while nobody
%% writes, since the last look. `info(View, view)' is a map: the `source', the `spec', `every', and
%% the number of objects that are `hidden', because others with the same key are shown. Both are
%% `undefined' for other tables.
%%
%% The view ends with its source, also if that is made `private'; with the process that made it;
%% with the application `ats', which is started if it does not run; and when the process that made
%% it calls {@link delete/1}. Its owner is a process of the application. If that is killed, another
%% one takes its place: the view stays as it is, and shows the present again soon after.
%%
%% The source must be public or protected, and may be a view. Writers pay for a {@link snapshot/2}
%% that is always there, and for nothing else. If that is ended by the option `snapshot_memory' of
%% the source, the view is compared with all objects that it should have.
%% If snapshots end before the view is filled for the first time, again and again, the call fails
%% with `badarg', and there is no view.
%%
%% ```
%% 1> ats:new(users, [named_table]),
%%    ats:insert(users, [{1, ann, paris}, {2, bob, rome}, {3, eve, paris}]),
%%    ByCity = [{{'$1', '$2', '$3'}, [], [{{{{'$3', '$1'}}, '$2'}}]}],
%%    ats:view(users, ByCity, #{type => ordered_set, name => users_by_city}).
%% users_by_city
%% 2> ats:select(users_by_city, [{{{paris, '_'}, '$1'}, [], ['$1']}]).
%% [ann,eve]
%% 3> ats:delete(users_by_city).
%% true
%% '''
-spec view(table(), match_spec(), view_options()) -> tid() | atom().
view(Table, MatchSpec, Options) ->
    ?WITH_ERROR_INFO(ats_view:view(Table, MatchSpec, Options), [Table, MatchSpec, Options]).

%% @doc Writes the objects that a table has at one moment to a directory, as a table of `dats' of
%% the same type. Returns when the copy is on disk. The directory must not exist, nor be below that
%% of a table.
%%
%% ```
%% 1> ats:new(prices, [ordered_set, named_table]),
%%    ats:insert(prices, [{apple, 3}, {pear, 4}]).
%% true
%% 2> ats:checkpoint(prices, "prices.checkpoint").
%% ok
%% 3> {ok, Copy} = dats:open_file("prices.checkpoint"),
%%    dats:lookup(Copy, pear).
%% [{pear,4}]
%% '''
-spec checkpoint(table(), Directory :: file:name_all()) -> ok | {error, dats:reason()}.
checkpoint(Table, Directory) ->
    ?WITH_ERROR_INFO(ats_checkpoint:make(Table, Directory), [Table, Directory]).

%%--------------------------------------------------------------------------------------------
%% Match specifications
%%
%% Bounds of the key, in the heads or in the guards, decide how much of a table is read: ranges and
%% prefixes of tuples and lists in an `ordered_set', single keys in the other types. Functions that
%% read, and have no limit, see the table as it was at one moment. The others go from key to key:
%% each object is read, deleted or replaced as a whole, but a list that is inserted meanwhile may be
%% met in part. Objects that are in the table throughout are met once. Long calls let other
%% processes run.
%%--------------------------------------------------------------------------------------------

%% @doc Returns the results of a match specification for the objects that match it, in ascending
%% order of the keys of an `ordered_set'.
%%
%% ```
%% 1> ats:new(prices, [ordered_set, named_table]),
%%    ats:insert(prices, [{apple, 3}, {pear, 4}, {plum, 7}]).
%% true
%% 2> ats:select(prices, [{{'$1', '$2'}, [{'>', '$2', 3}], ['$1']}]).
%% [pear,plum]
%% 3> ats:select(prices, ats:fun2ms(fun({Key, Price}) when Price < 5 -> {Price, Key} end)).
%% [{3,apple},{4,pear}]
%% '''
-spec select(table(), match_spec()) -> [Match :: term()].
select(Table, MatchSpec) ->
    ?WITH_ERROR_INFO(ats_select:list(Table, MatchSpec, up), [Table, MatchSpec]).

%% @doc Like {@link select/2}, but returns at most `Limit' results, and a continuation for {@link
%% select/1}.
%%
%% Tables need not be fixed between the calls, but it does no harm.
%%
%% ```
%% 1> ats:new(prices, [ordered_set, named_table]),
%%    ats:insert(prices, [{apple, 3}, {pear, 4}, {plum, 7}]).
%% true
%% 2> {Keys, Continuation} = ats:select(prices, [{{'$1', '_'}, [], ['$1']}], 2), Keys.
%% [apple,pear]
%% 3> {Others, _} = ats:select(Continuation), Others.
%% [plum]
%% '''
-spec select(table(), match_spec(), Limit :: pos_integer()) ->
          {[Match :: term()], continuation()} | '$end_of_table'.
select(Table, MatchSpec, Limit) ->
    ?WITH_ERROR_INFO(ats_select:chunk(Table, MatchSpec, up, Limit), [Table, MatchSpec, Limit]).

%% @doc Goes on where {@link select/3}, or another function that returns a continuation, stopped.
-spec select(continuation()) -> {[Match :: term()], continuation()} | '$end_of_table'.
select(Continuation) ->
    ?WITH_ERROR_INFO(ats_select:continue(Continuation), [Continuation]).

%% @doc Like {@link select/2}, in descending order of the keys of an `ordered_set'. An ordered bag
%% is read in the exact reverse, also among the objects of a key.
%%
%% ```
%% 1> ats:new(prices, [ordered_set, named_table]),
%%    ats:insert(prices, [{apple, 3}, {pear, 4}, {plum, 7}]).
%% true
%% 2> ats:select_reverse(prices, [{{'$1', '_'}, [], ['$1']}]).
%% [plum,pear,apple]
%% '''
-spec select_reverse(table(), match_spec()) -> [Match :: term()].
select_reverse(Table, MatchSpec) ->
    ?WITH_ERROR_INFO(ats_select:list(Table, MatchSpec, down), [Table, MatchSpec]).

%% @doc Like {@link select/3}, in descending order of the keys of an `ordered_set'.
-spec select_reverse(table(), match_spec(), Limit :: pos_integer()) ->
          {[Match :: term()], continuation()} | '$end_of_table'.
select_reverse(Table, MatchSpec, Limit) ->
    ?WITH_ERROR_INFO(ats_select:chunk(Table, MatchSpec, down, Limit),
                     [Table, MatchSpec, Limit]).

%% @doc The same as {@link select/1}: a continuation knows its direction.
-spec select_reverse(continuation()) -> {[Match :: term()], continuation()} | '$end_of_table'.
select_reverse(Continuation) ->
    ?WITH_ERROR_INFO(ats_select:continue(Continuation), [Continuation]).

%% @doc Counts the objects for which the result of a match specification is `true'. Builds nothing.
%%
%% ```
%% 1> ats:new(prices, [ordered_set, named_table]),
%%    ats:insert(prices, [{apple, 3}, {pear, 4}, {plum, 7}]).
%% true
%% 2> ats:select_count(prices, [{{'_', '$1'}, [{'>', '$1', 3}], [true]}]).
%% 2
%% '''
-spec select_count(table(), match_spec()) -> non_neg_integer().
select_count(Table, MatchSpec) ->
    ?WITH_ERROR_INFO(ats_select:count(Table, MatchSpec), [Table, MatchSpec]).

%% @doc Deletes the objects for which the result of a match specification is `true', and returns how
%% many.
%%
%% Finds them as of one moment, and deletes those that no other process has written since, each
%% atomically, one after the other. Objects that are inserted meanwhile stay, also under the same
%% key. If the specification is `[{'_',[],[true]}]', all are deleted at one moment.
%%
%% ```
%% 1> ats:new(prices, [ordered_set, named_table]),
%%    ats:insert(prices, [{apple, 3}, {pear, 4}, {plum, 7}]).
%% true
%% 2> ats:select_delete(prices, [{{'_', '$1'}, [{'>', '$1', 3}], [true]}]).
%% 2
%% 3> ats:tab2list(prices).
%% [{apple,3}]
%% '''
-spec select_delete(table(), match_spec()) -> non_neg_integer().
select_delete(Table, [{'_', [], [true]}] = MatchSpec) ->
    ?NATIVE(clear(Table), [Table, MatchSpec]);
select_delete(Table, MatchSpec) ->
    ?WITH_ERROR_INFO(ats_select:delete(Table, MatchSpec), [Table, MatchSpec]).

%% @doc Replaces the objects that match a match specification by its results, and returns how many.
%%
%% Finds them as of one moment, and replaces those that no other process has written since, each
%% atomically, one after the other. Objects that are inserted meanwhile, or have replaced others,
%% stay as they are. Fails with `badarg' unless the specification shows that the keys stay the same.
%% Not for a `bag'.
%%
%% ```
%% 1> ats:new(prices, [ordered_set, named_table]),
%%    ats:insert(prices, [{apple, 3}, {pear, 4}, {plum, 7}]).
%% true
%% 2> ats:select_replace(prices, [{{'$1', '$2'}, [{'<', '$2', 5}], [{{'$1', {'+', '$2', 1}}}]}]).
%% 2
%% 3> ats:tab2list(prices).
%% [{apple,4},{pear,5},{plum,7}]
%% '''
-spec select_replace(table(), match_spec()) -> non_neg_integer().
select_replace(Table, MatchSpec) ->
    ?WITH_ERROR_INFO(ats_select:replace(Table, MatchSpec), [Table, MatchSpec]).

%% @doc Returns, for each object that matches a pattern, the list of the values of its variables, in
%% the order of their numbers.
%%
%% ```
%% 1> ats:new(prices, [ordered_set, named_table]),
%%    ats:insert(prices, [{apple, 3}, {pear, 4}, {plum, 7}]).
%% true
%% 2> ats:match(prices, {'$1', 4}).
%% [[pear]]
%% '''
-spec match(table(), match_pattern()) -> [Bindings :: [term()]].
match(Table, Pattern) ->
    ?WITH_ERROR_INFO(ats_select:list(Table, [{Pattern, [], ['$$']}], up), [Table, Pattern]).

%% @doc Like {@link match/2}, but returns at most `Limit' results, and a continuation.
-spec match(table(), match_pattern(), Limit :: pos_integer()) ->
          {[Bindings :: [term()]], continuation()} | '$end_of_table'.
match(Table, Pattern, Limit) ->
    ?WITH_ERROR_INFO(ats_select:chunk(Table, [{Pattern, [], ['$$']}], up, Limit),
                     [Table, Pattern, Limit]).

%% @doc The same as {@link select/1}.
-spec match(continuation()) -> {[Bindings :: [term()]], continuation()} | '$end_of_table'.
match(Continuation) ->
    ?WITH_ERROR_INFO(ats_select:continue(Continuation), [Continuation]).

%% @doc Returns the objects that match a pattern.
%%
%% ```
%% 1> ats:new(prices, [ordered_set, named_table]),
%%    ats:insert(prices, [{apple, 3}, {pear, 4}, {plum, 7}]).
%% true
%% 2> ats:match_object(prices, {'_', 4}).
%% [{pear,4}]
%% '''
-spec match_object(table(), match_pattern()) -> [Object :: tuple()].
match_object(Table, Pattern) ->
    ?WITH_ERROR_INFO(ats_select:list(Table, [{Pattern, [], ['$_']}], up), [Table, Pattern]).

%% @doc Like {@link match_object/2}, but returns at most `Limit' objects, and a continuation.
-spec match_object(table(), match_pattern(), Limit :: pos_integer()) ->
          {[Object :: tuple()], continuation()} | '$end_of_table'.
match_object(Table, Pattern, Limit) ->
    ?WITH_ERROR_INFO(ats_select:chunk(Table, [{Pattern, [], ['$_']}], up, Limit),
                     [Table, Pattern, Limit]).

%% @doc The same as {@link select/1}.
-spec match_object(continuation()) -> {[Object :: tuple()], continuation()} | '$end_of_table'.
match_object(Continuation) ->
    ?WITH_ERROR_INFO(ats_select:continue(Continuation), [Continuation]).

%% @doc Deletes the objects that match a pattern, as {@link select_delete/2}. All objects, that is
%% the pattern `` '_' '', are deleted at one moment.
%%
%% ```
%% 1> ats:new(prices, [ordered_set, named_table]),
%%    ats:insert(prices, [{apple, 3}, {pear, 4}, {plum, 7}]).
%% true
%% 2> ats:match_delete(prices, {'_', 4}).
%% true
%% 3> ats:tab2list(prices).
%% [{apple,3},{plum,7}]
%% '''
-spec match_delete(table(), match_pattern()) -> true.
match_delete(Table, '_') ->
    ?NATIVE(delete_all_objects(Table), [Table, '_']);
match_delete(Table, Pattern) ->
    MatchSpec = [{Pattern, [], [true]}],
    Count = ?WITH_ERROR_INFO(ats_select:delete(Table, MatchSpec), [Table, Pattern]),
    is_integer(Count).

%% @doc Compiles a match specification, for {@link match_spec_run/2}, and for all functions that
%% take one. These functions cache the specifications they met last, so compiling saves little
%% there.
-spec match_spec_compile(match_spec()) -> compiled_match_spec().
match_spec_compile(MatchSpec) ->
    ?WITH_ERROR_INFO(ats_select:compile(MatchSpec), [MatchSpec]).

%% @doc Returns the results of a compiled match specification for the terms of a list.
%%
%% ```
%% 1> Compiled = ats:match_spec_compile([{{'$1', '_'}, [], ['$1']}]),
%%    ats:match_spec_run([{a, 1}, {b, 2}], Compiled).
%% [a,b]
%% '''
-spec match_spec_run([term()], compiled_match_spec()) -> [term()].
match_spec_run(List, CompiledMatchSpec) ->
    ?WITH_ERROR_INFO(ats_select:run(List, CompiledMatchSpec), [List, CompiledMatchSpec]).

%% @doc Tells whether a term is a compiled match specification, of `ats' and of this node.
%%
%% ```
%% 1> ats:is_compiled_ms(ats:match_spec_compile([{'_', [], ['$_']}])).
%% true
%% '''
-spec is_compiled_ms(term()) -> boolean().
is_compiled_ms(Term) ->
    ats_nif:is_compiled_ms(Term).

%% @doc Tries a match specification on a tuple. Returns its result, or the faults of the
%% specification.
%%
%% ```
%% 1> ats:test_ms({apple, 3}, [{{'$1', '$2'}, [{'>', '$2', 1}], ['$1']}]).
%% {ok,apple}
%% '''
-spec test_ms(tuple(), match_spec()) ->
          {ok, Result :: term()} | {error, [{warning | error, string()}]}.
test_ms(Tuple, MatchSpec) ->
    ets:test_ms(Tuple, MatchSpec).

%% @doc Runs a match specification without building its results, and reports the cost.
%%
%% <dl>
%% <dt>`access'</dt><dd>how much of the table has to be read: `nothing', `points' (single keys),
%% `ranges' of keys, or `everything'</dd>
%% <dt>`plan'</dt><dd>the conditions on the key that bound this, each a binary in the syntax of
%% Erlang; a key that meets one of them is read</dd>
%% <dt>`rows_read', `rows_returned'</dt>
%%     <dd>how many objects were read, and how many matched</dd>
%% <dt>`run_microseconds'</dt><dd>how long that took</dd>
%% <dt>`known'</dt> <dd>`true' if this function or another one on the same scheduler compiled and
%%     planned the specification not long ago</dd>
%% <dt>`compile_nanoseconds'</dt>
%%     <dd>how long it took to compile and plan it, or to find it among
%% those that are known</dd>
%% </dl>
%%
%% There is no such function in `ets'.
%%
%% ```
%% 1> ats:new(prices, [ordered_set, named_table]),
%%    ats:insert(prices, [{apple, 3}, {pear, 4}, {plum, 7}]).
%% true
%% 2> Explained = ats:explain(prices, [{{'$1', '_'}, [{'>', '$1', b}], ['$1']}]),
%%    maps:with([access, plan, rows_read], Explained).
%% #{access => ranges,plan => [<<"b < Key">>],rows_read => 2}
%% '''
-spec explain(table(), match_spec()) -> ats_select:explanation().
explain(Table, MatchSpec) ->
    ?WITH_ERROR_INFO(ats_select:explain(Table, MatchSpec), [Table, MatchSpec]).

%% @doc Makes a continuation usable again that was turned into a binary and back. `MatchSpec' is the
%% match specification it was made with. Fails with `badarg' for the continuation of a {@link
%% range/4. range} that is not usable any more: no specification says where it ends. Begin another
%% range behind the last key, with `{low, exclusive}'.
%%
%% ```
%% 1> ats:new(prices, [ordered_set, named_table]),
%%    ats:insert(prices, [{apple, 3}, {pear, 4}, {plum, 7}]).
%% true
%% 2> MatchSpec = [{{'$1', '_'}, [], ['$1']}],
%%    {Keys, Continuation} = ats:select(prices, MatchSpec, 2), Keys.
%% [apple,pear]
%% 3> Kept = term_to_binary(Continuation),
%%    Repaired = ats:repair_continuation(binary_to_term(Kept), MatchSpec),
%%    {Others, _} = ats:select(Repaired), Others.
%% [plum]
%% '''
-spec repair_continuation(continuation(), match_spec()) -> continuation().
repair_continuation(Continuation, MatchSpec) ->
    ?WITH_ERROR_INFO(ats_select:repair(Continuation, MatchSpec), [Continuation, MatchSpec]).

%% @doc Makes a match specification of a fun, in modules that use the parse transform {@link
%% ats_ms_transform}, and in the shell. Any other call fails.
%%
%% ```
%% 1> ats:fun2ms(fun({Key, Price}) when Price > 3 -> Key end).
%% [{{'$1','$2'},[{'>','$2',3}],['$1']}]
%% '''
-spec fun2ms(fun((term()) -> term())) -> match_spec().
fun2ms(ShellFun) ->
    try ets:fun2ms(ShellFun)
    catch exit:{badarg, {ets, fun2ms, Why}} -> exit({badarg, {?MODULE, fun2ms, Why}})
    end.

%%--------------------------------------------------------------------------------------------
%% Ranges of an ordered_set, or an ordered bag
%%
%% These functions do not exist in `ets'. They read the objects with keys between two others, which
%% need not be in the table, in O(log size of the table + number of these objects). Keys are
%% compared as the table does it: 1 and 1.0 are one key. Functions that read, and have no limit, see
%% the table as it was at one moment. The others read or delete each object as a whole, and meet
%% each object that is in the table throughout once. Long calls let other processes run.
%%--------------------------------------------------------------------------------------------

%% @equiv range(Table, Low, High, [])
-spec range(table(), Low :: term(), High :: term()) -> [Object :: tuple()].
range(Table, Low, High) ->
    ?WITH_ERROR_INFO(ats_range:range(Table, Low, High, []), [Table, Low, High]).

%% @doc Returns the objects with keys from `Low' to `High', in ascending order of the keys; none if
%% `Low' is greater than `High'.
%%
%% <dl>
%% <dt>`{low, inclusive | exclusive | unbounded}'</dt><dd>`inclusive', the default: an object with
%% the key `Low' belongs to the range; `exclusive': it does not; `unbounded': the range begins with
%% the first key, and `Low' has no meaning</dd>
%% <dt>`{high, inclusive | exclusive | unbounded}'</dt><dd>likewise</dd>
%% <dt>`reverse', `{reverse, boolean()}'</dt><dd>descending order</dd>
%% <dt>`{limit, N}'</dt><dd>at most `N' of them, and a continuation for {@link
%% select/1}, or `` '$end_of_table' ''. The continuation keeps to the range, and cannot be {@link
%% repair_continuation/2. repaired}</dd>
%% <dt>`objects', `keys', `{positions, [Pos]}'</dt><dd>the form of the results: objects, which is
%% the default; keys; or lists of these elements, with the atom `` 'EXIT' '' for an element that an
%% object does not have. Nothing else is copied</dd>
%% </dl>
%%
%% If options conflict, the last one wins. Fails with `badarg' if the table is no `ordered_set'.
%%
%% ```
%% 1> ats:new(prices, [ordered_set, named_table]),
%%    ats:insert(prices, [{apple, 3}, {pear, 4}, {plum, 7}]).
%% true
%% 2> ats:range(prices, b, pluto, []).
%% [{pear,4},{plum,7}]
%% 3> ats:range(prices, apple, plum, [keys, {low, exclusive}, reverse]).
%% [plum,pear]
%% '''
-spec range(table(), Low :: term(), High :: term(), [range_option()]) ->
          [term()] | {[term()], continuation()} | '$end_of_table'.
range(Table, Low, High, Options) ->
    ?WITH_ERROR_INFO(ats_range:range(Table, Low, High, Options), [Table, Low, High, Options]).

%% @equiv range_count(Table, Low, High, [])
-spec range_count(table(), Low :: term(), High :: term()) -> non_neg_integer().
range_count(Table, Low, High) ->
    ?WITH_ERROR_INFO(ats_range:count(Table, Low, High, []), [Table, Low, High]).

%% @doc Counts the objects of a range. The only options are the bounds of {@link range/4}.
%%
%% Takes O(log n) for each base node of the table (see {@link info/2}), however long the range is.
%% The first call that counts a part of the table walks through that part, without looking at the
%% objects. So does a later call if much has been inserted there since. The number is that of one
%% moment: it includes all objects of a list that a process inserts meanwhile, or none. While lists
%% are inserted all the time, a call may have to walk over the objects of the range.
%%
%% Parts of a table that were counted keep their numbers up to date from then on. This makes
%% inserting or deleting a key there a few dozen nanoseconds slower. In an ordered bag, objects are
%% counted, not keys: the first count looks at the keys that have several objects, and changes of
%% such a key take longer from then on.
%%
%% ```
%% 1> ats:new(prices, [ordered_set, named_table]),
%%    ats:insert(prices, [{apple, 3}, {pear, 4}, {plum, 7}]).
%% true
%% 2> ats:range_count(prices, apple, plum, [{high, exclusive}]).
%% 2
%% '''
-spec range_count(table(), Low :: term(), High :: term(), [range_bound()]) -> non_neg_integer().
range_count(Table, Low, High, Bounds) ->
    ?WITH_ERROR_INFO(ats_range:count(Table, Low, High, Bounds), [Table, Low, High, Bounds]).

%% @doc Returns the number of objects of an `ordered_set' whose keys are below a key, which need not
%% be in the table. It is the number at one moment, and costs as much as {@link range_count/4}.
%%
%% If there is an object with this key it is `nth(Table, rank(Table, Key) + 1)'. Fails with `badarg'
%% if the table is no `ordered_set'. There is no such function in `ets'.
%%
%% ```
%% 1> ats:new(prices, [ordered_set, named_table]),
%%    ats:insert(prices, [{apple, 3}, {pear, 4}, {plum, 7}]).
%% true
%% 2> ats:rank(prices, plum).
%% 2
%% 3> ats:nth(prices, 3).
%% {plum,7}
%% '''
-spec rank(table(), Key :: term()) -> non_neg_integer().
rank(Table, Key) ->
    ?WITH_ERROR_INFO(ats_range:rank(Table, Key), [Table, Key]).

%% @doc Returns the object at position `N' of an `ordered_set', in the order of the keys: the first
%% for 1, as `lists:nth/2', the last for -1, the last but one for -2. Returns `` '$end_of_table' ''
%% if there are fewer objects. The result is the object at one moment. It costs as much as {@link
%% range_count/4}.
%%
%% So `nth(Table, rand:uniform(info(Table, size)))' is an object chosen at random, and a median or
%% percentile is as easy to get. Fails with `badarg' if `N' is 0 or the table is no `ordered_set'.
%% There is no such function in `ets'; see also {@link slot/2}. In an ordered bag, skipping an
%% object of a key that has many takes about a nanosecond.
%%
%% ```
%% 1> ats:new(prices, [ordered_set, named_table]),
%%    ats:insert(prices, [{apple, 3}, {pear, 4}, {plum, 7}]).
%% true
%% 2> ats:nth(prices, 1).
%% {apple,3}
%% 3> ats:nth(prices, -1).
%% {plum,7}
%% '''
-spec nth(table(), N :: integer()) -> Object :: tuple() | '$end_of_table'.
nth(Table, N) ->
    ?WITH_ERROR_INFO(ats_range:nth(Table, N), [Table, N]).

%% @equiv range_nth(Table, Low, High, N, [])
-spec range_nth(table(), Low :: term(), High :: term(), N :: integer()) ->
          Object :: tuple() | '$end_of_table'.
range_nth(Table, Low, High, N) ->
    ?WITH_ERROR_INFO(ats_range:nth(Table, Low, High, N, []), [Table, Low, High, N]).

%% @doc Like {@link nth/2}, among the objects of a range only. The only options are the bounds of
%% {@link range/4}. The result is always in the range.
%%
%% ```
%% 1> ats:new(prices, [ordered_set, named_table]),
%%    ats:insert(prices, [{apple, 3}, {pear, 4}, {plum, 7}]).
%% true
%% 2> ats:range_nth(prices, b, z, -1, []).
%% {plum,7}
%% '''
-spec range_nth(table(), Low :: term(), High :: term(), N :: integer(), [range_bound()]) ->
          Object :: tuple() | '$end_of_table'.
range_nth(Table, Low, High, N, Bounds) ->
    ?WITH_ERROR_INFO(ats_range:nth(Table, Low, High, N, Bounds), [Table, Low, High, N, Bounds]).

%% @equiv range_delete(Table, Low, High, [])
-spec range_delete(table(), Low :: term(), High :: term()) -> non_neg_integer().
range_delete(Table, Low, High) ->
    ?WITH_ERROR_INFO(ats_range:delete(Table, Low, High, []), [Table, Low, High]).

%% @doc Deletes the objects that a range has at one moment, each atomically, and returns how many.
%% Those that another process has written since stay, as {@link select_delete/2} says. The only
%% options are the bounds of {@link range/4}.
%%
%% ```
%% 1> ats:new(prices, [ordered_set, named_table]),
%%    ats:insert(prices, [{apple, 3}, {pear, 4}, {plum, 7}]).
%% true
%% 2> ats:range_delete(prices, apple, plum, [{high, exclusive}]).
%% 2
%% '''
-spec range_delete(table(), Low :: term(), High :: term(), [range_bound()]) -> non_neg_integer().
range_delete(Table, Low, High, Bounds) ->
    ?WITH_ERROR_INFO(ats_range:delete(Table, Low, High, Bounds), [Table, Low, High, Bounds]).

%% @equiv range_fold(Function, Acc, Table, Low, High, [])
-spec range_fold(fun((term(), Acc) -> Acc), Acc, table(), Low :: term(), High :: term()) -> Acc.
range_fold(Function, Acc, Table, Low, High) ->
    ?WITH_ERROR_INFO(ats_range:fold(Function, Acc, Table, Low, High, []),
                     [Function, Acc, Table, Low, High]).

%% @doc Folds a function over the results of {@link range/4}, in the same order. At most a hundred
%% of them are in memory at a time. The function may change the table.
%%
%% ```
%% 1> ats:new(prices, [ordered_set, named_table]),
%%    ats:insert(prices, [{apple, 3}, {pear, 4}, {plum, 7}]).
%% true
%% 2> ats:range_fold(fun({_, Price}, Sum) -> Price + Sum end, 0, prices, b, z, []).
%% 11
%% '''
-spec range_fold(fun((term(), Acc) -> Acc), Acc, table(), Low :: term(), High :: term(),
                 [range_option()]) -> Acc.
range_fold(Function, Acc, Table, Low, High, Options) ->
    ?WITH_ERROR_INFO(ats_range:fold(Function, Acc, Table, Low, High, Options),
                     [Function, Acc, Table, Low, High, Options]).

%% @equiv prefix(Table, Pattern, [])
-spec prefix(table(), Pattern :: term()) -> [Object :: tuple()].
prefix(Table, Pattern) ->
    ?WITH_ERROR_INFO(ats_range:prefix(Table, Pattern, []), [Table, Pattern]).

%% @doc Returns the objects whose keys begin with a prefix, given as a pattern: a term whose last
%% parts are the atom `` '_' ''.
%%
%% <dl>
%% <dt>`` {user, 17, '_'} ''</dt><dd>all tuples of three elements that begin with these
%% two</dd>
%% <dt>`` {{user, '_'}, '_'} ''</dt><dd>all pairs whose first element is a pair that begins with
%% `user'</dd>
%% <dt>`` [a, b | '_'] ''</dt><dd>all lists that begin with these, also `[a, b]'</dd>
%% <dt>`` "ab" ++ '_' ''</dt><dd>all strings that begin with these characters</dd>
%% <dt>`` '_' ''</dt><dd>every key</dd>
%% <dt>`{user, 17}'</dt><dd>this key alone</dd>
%% </dl>
%%
%% Fails with `badarg' if anything but `` '_' '' comes behind the first one, as in `` {'_', 17} ''
%% or in `` [a, '_'] '', where the list ends; or if `` '_' '' is in a map. Binaries have no such
%% pattern: use `` range(Table, <<"ab">>, <<"ac">>, [{high, exclusive}]) ''.
%%
%% The options are those of {@link range/4} without the bounds.
%%
%% ```
%% 1> ats:new(mails, [ordered_set, named_table]),
%%    ats:insert(mails, [{{ann, 1}, hello}, {{bob, 1}, hi}, {{bob, 2}, bye}]).
%% true
%% 2> ats:prefix(mails, {bob, '_'}, [keys]).
%% [{bob,1},{bob,2}]
%% '''
-spec prefix(table(), Pattern :: term(), [range_option()]) ->
          [term()] | {[term()], continuation()} | '$end_of_table'.
prefix(Table, Pattern, Options) ->
    ?WITH_ERROR_INFO(ats_range:prefix(Table, Pattern, Options), [Table, Pattern, Options]).

%%--------------------------------------------------------------------------------------------
%% Files, Dets tables, queries, and tables at the shell
%%--------------------------------------------------------------------------------------------

%% @equiv tab2file(Table, File, [])
-spec tab2file(table(), file:name()) -> ok | {error, Reason :: term()}.
tab2file(Table, File) ->
    ?WITH_ERROR_INFO(ats_file:write(Table, File, []), [Table, File]).

%% @doc Writes a table to a file, which {@link file2tab/2} and `ets:file2tab/2' read. A file of
%% that name is replaced.
%%
%% The table may change meanwhile: objects that are there throughout are written once. The memory
%% that this takes does not depend on the size of the table.
%%
%% <dl>
%% <dt>`{extended_info, [object_count]}'</dt><dd>also writes how many objects there
%% are</dd>
%% <dt>`{extended_info, [md5sum]}'</dt><dd>also writes a checksum of the objects</dd>
%% <dt>`{sync, true}'</dt><dd>returns when the file is on the disk</dd>
%% </dl>
%%
%% ```
%% 1> ats:new(prices, [ordered_set, named_table]),
%%    ats:insert(prices, [{apple, 3}, {pear, 4}, {plum, 7}]).
%% true
%% 2> ats:tab2file(prices, "prices.tab", [{sync, true}]).
%% ok
%% 3> ats:delete(prices).
%% true
%% 4> ats:file2tab("prices.tab").
%% {ok,prices}
%% '''
-spec tab2file(table(), file:name(), [ats_file:write_option()]) ->
          ok | {error, Reason :: term()}.
tab2file(Table, File, Options) ->
    ?WITH_ERROR_INFO(ats_file:write(Table, File, Options), [Table, File, Options]).

%% @equiv file2tab(File, [])
-spec file2tab(file:name()) -> {ok, table()} | {error, Reason :: term()}.
file2tab(File) ->
    ?WITH_ERROR_INFO(ats_file:read(File, []), [File]).

%% @doc Makes a table of a file that {@link tab2file/3} or `ets:tab2file/3' wrote. The caller owns
%% it. It has the name, type, protection and key position of the table that was written, is
%% compressed if that was, and has the same options of concurrency, but no heir.
%%
%% With the option `{verify, true}' the objects are counted, and compared with the checksum if there
%% is one; no table is made of a damaged file. Without it, a table is made of all objects that can
%% be read.
-spec file2tab(file:name(), [ats_file:read_option()]) ->
          {ok, table()} | {error, Reason :: term()}.
file2tab(File, Options) ->
    ?WITH_ERROR_INFO(ats_file:read(File, Options), [File, Options]).

%% @doc Describes the table in a file, without reading its objects.
%%
%% ```
%% 1> ats:new(prices, [ordered_set, named_table]),
%%    ats:insert(prices, [{apple, 3}, {pear, 4}, {plum, 7}]).
%% true
%% 2> ats:tab2file(prices, "prices.tab").
%% ok
%% 3> {ok, Info} = ats:tabfile_info("prices.tab"), proplists:get_value(size, Info).
%% 3
%% '''
-spec tabfile_info(string() | atom()) ->
          {ok, ats_file:description()} | {error, Reason :: term()}.
tabfile_info(File) when is_list(File); is_atom(File) ->
    ats_file:describe(File).

%% @doc Replaces the objects of a table by those that a function provides. It is called with the
%% argument `read' and returns a list of objects, together with the function to be called next, or
%% `end_of_input'. If it returns anything else, the caller exits with that term as the reason. If
%% its objects cannot be inserted, it is called with `close', and the caller exits.
%%
%% ```
%% 1> ats:new(prices, [named_table]),
%%    Last = fun(read) -> end_of_input end,
%%    ats:init_table(prices, fun(read) -> {[{apple, 3}, {pear, 4}], Last} end).
%% true
%% 2> ats:lookup(prices, pear).
%% [{pear,4}]
%% '''
-spec init_table(table(), ats_dets:init_fun()) -> true.
init_table(Table, InitFun) ->
    Id = ?WITH_ERROR_INFO(empty_table(Table), [Table, InitFun]),
    ats_dets:fill(?MODULE, Id, InitFun).

-spec empty_table(table()) -> table().
empty_table(Table) ->
    Id = identifier(Table),
    true = ats_nif:delete_all_objects(Id),
    Id.

%% @doc Inserts the objects of an open Dets table. Objects that are there stay, unless they are
%% replaced.
%%
%% ```
%% 1> {ok, _} = dets:open_file(prices, [{file, "prices.dets"}]),
%%    dets:insert(prices, {apple, 3}).
%% ok
%% 2> ats:new(prices, [named_table]), ats:from_dets(prices, prices).
%% true
%% 3> ats:lookup(prices, apple).
%% [{apple,3}]
%% 4> dets:close(prices).
%% ok
%% '''
-spec from_dets(table(), dets:tab_name()) -> true.
from_dets(Table, DetsTable) ->
    ?WITH_ERROR_INFO(ats_dets:from_dets(identifier(Table), DetsTable), [Table, DetsTable]).

%% @doc Replaces the objects of an open Dets table by those of a table.
%%
%% ```
%% 1> ats:new(prices, [ordered_set, named_table]),
%%    ats:insert(prices, [{apple, 3}, {pear, 4}, {plum, 7}]).
%% true
%% 2> {ok, _} = dets:open_file(prices, [{file, "prices.dets"}]),
%%    ats:to_dets(prices, prices).
%% prices
%% 3> dets:lookup(prices, pear).
%% [{pear,4}]
%% 4> dets:close(prices).
%% ok
%% '''
-spec to_dets(table(), DetsTable) -> DetsTable when DetsTable :: dets:tab_name().
to_dets(Table, DetsTable) ->
    ?WITH_ERROR_INFO(ats_dets:to_dets(Table, DetsTable), [Table, DetsTable]).

%% @equiv table(Table, [])
-spec table(table()) -> qlc:query_handle().
table(Table) ->
    ?WITH_ERROR_INFO(ats_qlc:table_of_snapshot(?MODULE, Table, identifier(Table), []), [Table]).

%% @doc Makes a table a source of queries of `qlc'.
%%
%% A query that asks for single keys looks them up. Other queries become match specifications as
%% far as they can, and their conditions on the key decide how much of the table is read (see
%% {@link explain/2}).
%%
%% A walk through the table reads it as of the moment the walk begins; a look-up reads the current
%% objects. The table is fixed while a query runs ({@link safe_fixtable/2}).
%%
%% <dl>
%% <dt>`{traverse, select}'</dt><dd>the default, as described</dd>
%% <dt>`{traverse, {select, MatchSpec}}'</dt><dd>the query reads the results of this match
%% specification</dd>
%% <dt>`{traverse, first_next}'</dt><dd>one key after the other, from the first to the
%% last</dd>
%% <dt>`{traverse, last_prev}'</dt><dd>from the last to the first</dd>
%% <dt>`{n_objects, N}'</dt><dd>how many results of a match specification are fetched at a
%% time, 100 by default</dd>
%% </dl>
%%
%% ```
%% 1> ats:new(prices, [ordered_set, named_table]),
%%    ats:insert(prices, [{apple, 3}, {pear, 4}, {plum, 7}]).
%% true
%% 2> qlc:e(qlc:q([Key || {Key, Price} <- ats:table(prices, []), Price > 3])).
%% [pear,plum]
%% '''
-spec table(table(), ats_qlc:option() | [ats_qlc:option()]) -> qlc:query_handle().
table(Table, Options) ->
    ?WITH_ERROR_INFO(ats_qlc:table_of_snapshot(?MODULE, Table, identifier(Table), Options),
                     [Table, Options]).

%% @equiv observe(#{})
-spec observe() -> ok.
observe() ->
    observe(#{}).

-type observe_options() :: ats_observe:options().
%% Options of {@link observe/1}.

%% @doc Watches the tables of `ets' of this node for a while, and prints which are called most,
%% which are read as a whole, and what each would gain or lose if it were one of `ats'. It changes
%% nothing: it is the first thing to run in a program that knows nothing of `ats' yet.
%%
%% <dl>
%% <dt>`time'</dt><dd>for how many milliseconds, from 1 to an hour; 5000 if missing</dd>
%% <dt>`calls'</dt><dd>how many calls may be seen each second, from 1 to 100,000; 4000 if missing.
%% When a quarter of a second has seen its share, tracing pauses for the rest of it</dd>
%% <dt>`lines'</dt><dd>how many tables to print, those with most calls; 20 if missing</dd>
%% </dl>
%%
%% Calls are seen by tracing, which slows them down while it is on, so rates are lower than without.
%% On Erlang/OTP 27 and later the call has a trace session of its own. Before that it fails with
%% `badarg' if the node is traced by somebody else, and code that begins to trace meanwhile disturbs
%% it. Tracing ends with the call, and with the process that calls. Objects are not read.
%%
%% There is no such function in `ets'.
%%
%% ```
%% 1> ats:observe(#{time => 50, lines => 5}).
%% ok
%% '''
-spec observe(observe_options()) -> ok.
observe(Options) ->
    ?WITH_ERROR_INFO(ats_observe:run(Options), [Options]).

%% @doc Prints a list of all tables.
-spec i() -> ok.
i() ->
    ats_browser:list(?MODULE).

%% @doc Shows the objects of a table page by page, at the shell.
%%
%% After each page a line is read: `c' or nothing goes on; `q' quits; `k' deletes the table; `p'
%% and a number print that object as a whole; `/' and a regular expression show only objects that
%% match it.
-spec i(table()) -> ok.
i(Table) ->
    browse(?WITH_ERROR_INFO(browse_start(Table), [Table]), 40, 80).

%% @doc Like {@link i/1}, on pages of `Height' lines.
-spec i(table(), Height :: pos_integer()) -> ok.
i(Table, Height) ->
    browse(?WITH_ERROR_INFO(browse_start(Table), [Table, Height]), Height, 80).

%% @doc Like {@link i/2}, with lines of at most `Width' characters.
-spec i(table(), Height :: pos_integer(), Width :: pos_integer()) -> ok.
i(Table, Height, Width) ->
    browse(?WITH_ERROR_INFO(browse_start(Table), [Table, Height, Width]), Height, Width).

%% Finds the first key, so that a table that cannot be read fails before the first page.
-spec browse_start(table()) -> {table(), term()}.
browse_start(Table) ->
    Id = identifier(Table),
    {Id, ats_nif:first(Id)}.

-spec browse({table(), term()}, Height :: pos_integer(), Width :: pos_integer()) -> ok.
browse({Id, First}, Height, Width) ->
    ats_browser:browse(?MODULE, Id, First, Height, Width).

%%--------------------------------------------------------------------------------------------
%% Beyond ets
%%
%% These functions do not exist in `ets'. Each does in one step the work of two calls of `ets',
%% between which other processes can write.
%%--------------------------------------------------------------------------------------------

%% @doc Removes and returns the objects for which the result of a match specification is `true' at
%% one moment: a {@link select_delete/2} that returns the deleted objects.
%%
%% Objects that another process has written since that moment stay. Each object is taken atomically:
%% if several processes take the same one, exactly one gets it. Objects of an `ordered_set' are
%% returned in ascending order, those of one key of any bag oldest first. If the specification is
%% `[{'_',[],[true]}]', this is {@link take_all_objects/1}.
%%
%% Costs as much as {@link select/2} with the same specification, and O(log size of the table) for
%% each object of an `ordered_set', O(1) of a `set'. Long calls let other processes run. If the
%% calling process is killed meanwhile, the objects that it has taken so far are lost.
%%
%% ```
%% 1> ats:new(prices, [ordered_set, named_table]),
%%    ats:insert(prices, [{apple, 3}, {pear, 4}, {plum, 7}]).
%% true
%% 2> ats:select_take(prices, [{{'_', '$1'}, [{'>', '$1', 3}], [true]}]).
%% [{pear,4},{plum,7}]
%% 3> ats:tab2list(prices).
%% [{apple,3}]
%% '''
-spec select_take(table(), match_spec()) -> [Object :: tuple()].
select_take(Table, [{'_', [], [true]}] = MatchSpec) ->
    ?WITH_ERROR_INFO(ats_take:take_all(Table), [Table, MatchSpec]);
select_take(Table, MatchSpec) ->
    ?WITH_ERROR_INFO(ats_take:select_take(Table, MatchSpec), [Table, MatchSpec]).

%% @doc Takes all objects out of a table at one moment, and returns them, those of an `ordered_set'
%% in ascending order.
%%
%% No object is lost or returned twice: each insert, and each change of a counter, is in the result
%% of one call or in the table afterwards. A list that was inserted as one comes out as one. The
%% caller waits for lists of more than 256 objects that are being inserted, before it takes
%% anything; further such lists wait for the caller. Then the table becomes empty for all, and the
%% caller waits for calls that were writing at that moment, which takes less than a millisecond as a
%% rule. It waits for no snapshot, continuation or fold. It reads in slices, in O(number of
%% objects), and lets other processes run. If it is killed once the table is empty, the objects are
%% lost.
%%
%% ```
%% 1> ats:new(prices, [ordered_set, named_table]),
%%    ats:insert(prices, [{apple, 3}, {pear, 4}, {plum, 7}]).
%% true
%% 2> ats:take_all_objects(prices).
%% [{apple,3},{pear,4},{plum,7}]
%% 3> ats:info(prices, size).
%% 0
%% '''
-spec take_all_objects(table()) -> [Object :: tuple()].
take_all_objects(Table) ->
    ?WITH_ERROR_INFO(ats_take:take_all(Table), [Table]).

%% @doc Takes the object with the first key out of an `ordered_set', and returns it in a list, which
%% is empty if the table is.
%%
%% At the moment of its removal the table has no object with a smaller key, so a table is a priority
%% queue for any number of producers and consumers. O(log size of the table).
%%
%% From an ordered bag it takes the oldest object of the first key: among equal priorities, first in
%% is first out. From types without order it takes some object, from a bag the oldest one of some
%% key. There the list is empty only if no object was in the table during all of the call. O(1),
%% amortised.
%%
%% ```
%% 1> ats:new(jobs, [ordered_bag, named_table]).
%% jobs
%% 2> ats:insert(jobs, [{2, mail}, {1, build}, {2, test}]).
%% true
%% 3> ats:take_first(jobs).
%% [{1,build}]
%% 4> ats:take_first(jobs).
%% [{2,mail}]
%% '''
-spec take_first(table()) -> [Object :: tuple()].
take_first(Table) ->
    ?NATIVE(take_first(Table), [Table]).

%% @doc Like {@link take_first/1}, with the last key of an `ordered_set'. For types without order it
%% is {@link take_first/1}. From an ordered bag it takes the newest object of the last key.
%%
%% ```
%% 1> ats:new(prices, [ordered_set, named_table]),
%%    ats:insert(prices, [{apple, 3}, {pear, 4}, {plum, 7}]).
%% true
%% 2> ats:take_last(prices).
%% [{plum,7}]
%% '''
-spec take_last(table()) -> [Object :: tuple()].
take_last(Table) ->
    ?NATIVE(take_last(Table), [Table]).

%% @doc Merges a value into an element of the object with a key, as one atomic step, and returns the
%% new value of the element. If the key is not in the table, `{Key, Operand}' is inserted. Only for
%% `set' and `ordered_set'.
%%
%% The element is the one behind the key, or the one at `Pos'. The operand is the later value, the
%% value in the table the earlier one:
%%
%% <dl>
%% <dt>`replace', `last'</dt><dd>any terms: `Later'</dd>
%% <dt>`first'</dt><dd>any terms: `Earlier'</dd>
%% <dt>`{last, N}'</dt><dd>tuples of `N' elements or more: the one whose element `N' is greater,
%% such as a timestamp; `Later' if these are `=='</dd>
%% <dt>`sum'</dt><dd>numbers, also floats: `Earlier + Later'</dd>
%% <dt>`min', `max'</dt><dd>any terms: `min(Earlier, Later)', `max(Earlier, Later)'</dd>
%% <dt>`statistics'</dt><dd>`{Min, Max, Sum, Count}' of numbers. An operand is a number, or
%% such a tuple</dd>
%% <dt>`append'</dt><dd>proper lists: `Earlier ++ Later'; or binaries:
%% `<<Earlier/binary, Later/binary>>'</dd>
%% <dt>`union'</dt>
%%     <dd>ordered lists without duplicates, as those of `ordsets': `lists:umerge(Earlier,
%% Later)'; or maps:
%% `maps:merge(Earlier, Later)'</dd>
%% <dt>`intersection'</dt>
%%     <dd>such lists: the elements of `Earlier' that are `==' to one of `Later'; or maps:
%% `maps:intersect(Earlier, Later)'</dd>
%% <dt>`{prune, Merge}'</dt><dd>`sum', `append' or `union'; and if that gives `0', `[]', `<<>>' or
%% `#{}', the object is removed. An operand or a value that is one of these, if `Merge' takes it,
%% counts as missing</dd>
%% <dt>`{vector, Merges}'</dt><dd>tuples: each element by the merge at its position in the list.
%% The object is removed if all merges are `{prune, _}' and all elements are empty. Vectors may be
%% in vectors, up to 8 deep</dd>
%% </dl>
%%
%% All merges are associative (sums of floats up to rounding), so values may be merged with each
%% other before they are merged into the table.
%%
%% Sums, minima and maxima of integers of less than 60 bits are as fast as {@link update_counter/3}.
%% All others write the object anew, under a lock: O(size of the object), so appending many times to
%% one long list takes quadratic time. Large lists, sets and maps are merged on a dirty scheduler.
%%
%% Fails with `badarg', and changes nothing, if one of the two values cannot be merged in this way,
%% if the key is not in the table and `{Key, Operand}' would not be an object of this table with the
%% operand at the position, or if there is no such position.
%%
%% ```
%% 1> ats:new(visits, [named_table]).
%% visits
%% 2> ats:merge(visits, monday, 3, sum).
%% 3
%% 3> ats:merge(visits, monday, 1.5, sum).
%% 4.5
%% 4> ats:merge(visits, pages, [home], union).
%% [home]
%% 5> ats:merge(visits, pages, [about, home], union).
%% [about,home]
%% '''
-spec merge(table(), Key :: term(), Operand :: term(),
            merge() | {Pos :: pos_integer(), merge()}) -> term().
merge(Table, Key, Operand, Merge) ->
    ?NATIVE(merge(Table, Key, Operand, Merge), [Table, Key, Operand, Merge]).

%% @doc Like {@link merge/4}, but if the key is not in the table, merges the operand into `Default'
%% and inserts the result under `Key'.
-spec merge(table(), Key :: term(), Operand :: term(),
            merge() | {Pos :: pos_integer(), merge()}, Default :: tuple()) -> term().
merge(Table, Key, Operand, Merge, Default) ->
    ?NATIVE(merge(Table, Key, Operand, Merge, Default), [Table, Key, Operand, Merge, Default]).

%%--------------------------------------------------------------------------------------------
%% Functions that take more than one native call
%%--------------------------------------------------------------------------------------------

%% Resolves a name once, so that a function of many steps stays with its table if that is renamed,
%% or deleted and created again, on the way.
-spec identifier(table()) -> table().
identifier(Name) when is_atom(Name) ->
    case ats_nif:whereis(Name) of
        undefined -> erlang:error({ats_error, id});
        Id -> Id
    end;
identifier(Id) ->
    Id.

-spec fold_forwards(fun((tuple(), Acc) -> Acc), Acc, table(),
                    {[tuple()], ats_nif:position() | done}) -> Acc.
fold_forwards(Function, Acc, _Source, {Objects, done}) ->
    fold_list(Function, Acc, Objects);
fold_forwards(Function, Acc, Source, {Objects, Next}) ->
    fold_forwards(Function, fold_list(Function, Acc, Objects), Source, chunk(Source, Next)).

%% Like `lists:foldl/3', but does not look at the function if there are no objects.
-spec fold_list(fun((tuple(), Acc) -> Acc), Acc, [tuple()]) -> Acc.
fold_list(_Function, Acc, []) -> Acc;
fold_list(Function, Acc, Objects) -> lists:foldl(Function, Acc, Objects).

%% Reads the next objects. The table or snapshot may have ended since the last call, so errors get
%% their shape here, too.
-spec chunk(table(), start | ats_nif:position()) -> {[tuple()], ats_nif:position() | done}.
chunk(Source, Position) ->
    ?NATIVE(chunk(Source, Position, ?FOLDED_AT_ONCE), [Source, Position]).

-spec fold_backwards(fun((tuple(), Acc) -> Acc), Acc, table(),
                     {term(), [tuple()]} | '$end_of_table') -> Acc.
fold_backwards(_Function, Acc, _Id, '$end_of_table') ->
    Acc;
fold_backwards(Function, Acc, Id, {Key, Objects}) ->
    fold_backwards(Function, lists:foldr(Function, Acc, Objects), Id, prev_lookup(Id, Key)).

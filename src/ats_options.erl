%% @private
%% @doc Reads the option list of `ats:new/2', and makes tables by it.
%%
%% The list of new/2 is read from left to right, exactly as `ets' reads it, with its three
%% surprises: `set' and `protected' change nothing (`[bag, set]' is a bag), later options of one
%% kind overwrite earlier ones, and the default of `decentralized_counters' depends on the order in
%% which the other options appear. The result are the *effective* options, which `info/1' shows: a
%% private table has no use for concurrency options, and neither has a virtual machine with one
%% scheduler for `write_concurrency'.
-module(ats_options).

-export([create/2, is_ordered/1, lifetime/1, ttl/1]).

-define(MAX_SMALL_INTEGER, ((1 bsl 59) - 1)).
%% The longest time after which objects expire, in milliseconds: 34 years.
-define(MAX_TTL, ((1 bsl 40) - 2)).
-define(IS_TTL(Ms), (is_integer(Ms) andalso Ms > 0 andalso Ms =< ?MAX_TTL)).
-define(IS_BOUND(Max),
        (Max =:= infinity
         orelse is_integer(Max) andalso Max > 0 andalso Max =< ?MAX_SMALL_INTEGER)).
-define(MIN_LOCKS, 64).
-define(MAX_LOCKS, 32768).
-define(IS_ORDERED(Type),
        (Type =:= ordered_set orelse Type =:= ordered_bag orelse Type =:= ordered_duplicate_bag)).

%% Only the build for tests has tables that are made by ats:new/2 and are on disk.
-ifdef(FORCING).
-define(FOR_TESTS,
        option({backend, {disk, Directory} = Wanted}, Read) when is_binary(Directory) ->
               Read#options{backend = Wanted};).
-else.
-define(FOR_TESTS, ).
-endif.

-record(options,
        {type = set :: ats:table_type(),
         protection = protected :: ats:table_access(),
         keypos = 1 :: pos_integer(),
         named = false :: boolean(),
         heir = none :: none | pid(),
         heir_data = undefined :: term(),
         write_concurrency = false :: ats:write_concurrency(),
         read_concurrency = false :: boolean(),
         compressed = false :: boolean(),
         full_scan = allow :: ats:full_scan(),
         owner = process :: process | none | pid(),
         snapshot_memory = default :: default | infinity | non_neg_integer(),
         ttl = false :: false | ats:ttl(),
         max_objects = infinity :: infinity | pos_integer(),
         max_memory = infinity :: infinity | pos_integer(),
         evicted = none :: none | pid(),
         backend = default :: atom(),
         %% Implied by the other options, and asked for by name.
         decentralized_implied = false :: boolean(),
         decentralized_asked = default :: default | boolean()}).

%% @doc Makes a table with that name and these options.
-spec create(term(), term()) -> ats:tid() | atom().
create(Name, Options) when is_atom(Name) ->
    case plain(Options, set, protected, false, Options) of
        {ok, Parsed} -> ats_nif:new(Name, Parsed);
        error -> erlang:error({ats_error, {invalid, wrong_option(Options)}})
    end;
create(_Name, _Options) ->
    erlang:error({ats_error, none}).

%% The options that most tables are made with, without a record that is copied for each of them. If
%% there is any other, parse/1 reads the whole list.
-spec plain(term(), ats:table_type(), ats:table_access(), boolean(), term()) ->
          {ok, ats_nif:options()} | error.
plain([Option | Options], Type, Protection, Named, All) ->
    case Option of
        set -> plain(Options, Type, Protection, Named, All);
        ordered_set -> plain(Options, ordered_set, Protection, Named, All);
        bag -> plain(Options, bag, Protection, Named, All);
        duplicate_bag -> plain(Options, duplicate_bag, Protection, Named, All);
        ordered_bag -> plain(Options, ordered_bag, Protection, Named, All);
        ordered_duplicate_bag -> plain(Options, ordered_duplicate_bag, Protection, Named, All);
        protected -> plain(Options, Type, Protection, Named, All);
        public -> plain(Options, Type, public, Named, All);
        private -> plain(Options, Type, private, Named, All);
        named_table -> plain(Options, Type, Protection, true, All);
        _ -> parse(All)
    end;
plain([], Type, Protection, Named, _All) ->
    {ok, {Type, Protection, 1, Named, none, undefined, false, false, false, false, allow, process,
          default, default, false, none}};
plain(_NotAList, _Type, _Protection, _Named, _All) ->
    error.

-spec parse(term()) -> {ok, ats_nif:options()} | error.
parse(Options) ->
    case read(Options, #options{}) of
        #options{} = Read -> finish(effective(Read));
        error -> error
    end.

-spec read(term(), #options{}) -> #options{} | error.
read([Option | Options], Read0) ->
    case option(Option, Read0) of
        #options{} = Read -> read(Options, Read);
        error -> error
    end;
read([], Read) ->
    Read;
read(_NotAList, _Read) ->
    error.

-spec option(term(), #options{}) -> #options{} | error.
option(set, Read) ->
    Read;
option(Type, Read) when ?IS_ORDERED(Type) ->
    Read#options{type = Type, decentralized_implied = true};
option(Type, Read) when Type =:= bag; Type =:= duplicate_bag ->
    Read#options{type = Type};
option(protected, Read) ->
    Read;
option(Protection, Read) when Protection =:= public; Protection =:= private ->
    Read#options{protection = Protection};
option(named_table, Read) ->
    Read#options{named = true};
option(compressed, Read) ->
    Read#options{compressed = true};
option({full_scan, Wanted}, Read) when Wanted =:= allow; Wanted =:= warn; Wanted =:= refuse ->
    Read#options{full_scan = Wanted};
?FOR_TESTS
%% The native library knows which stores its build has.
option({backend, Wanted}, Read) when is_atom(Wanted) ->
    Read#options{backend = Wanted};
option({owner, Wanted}, Read) ->
    case ats_changes:owner(Wanted) of
        error -> error;
        Owner -> Read#options{owner = Owner}
    end;
option({snapshot_memory, Bytes}, Read)
  when Bytes =:= infinity; is_integer(Bytes), Bytes >= 0, Bytes =< ?MAX_SMALL_INTEGER ->
    Read#options{snapshot_memory = Bytes};
option({ttl, infinity}, Read) ->
    Read#options{ttl = infinity};
option({ttl, Ms}, Read) when ?IS_TTL(Ms) ->
    Read#options{ttl = Ms};
option({ttl, {idle, Ms} = Ttl}, Read) when ?IS_TTL(Ms) ->
    Read#options{ttl = Ttl};
option({ttl, {spread, Ms, Percent} = Ttl}, Read)
  when ?IS_TTL(Ms), is_integer(Percent), Percent > 0, Percent < 100 ->
    Read#options{ttl = Ttl};
option({max_objects, Max}, Read) when ?IS_BOUND(Max) ->
    Read#options{max_objects = Max};
option({max_memory, Max}, Read) when ?IS_BOUND(Max) ->
    Read#options{max_memory = Max};
option({evicted, none}, Read) ->
    Read#options{evicted = none};
option({evicted, Pid}, Read) when is_pid(Pid), node(Pid) =:= node() ->
    Read#options{evicted = Pid};
option({keypos, Pos}, Read) when is_integer(Pos), Pos > 0, Pos =< ?MAX_SMALL_INTEGER ->
    Read#options{keypos = Pos};
option({heir, none}, Read) ->
    Read#options{heir = none, heir_data = undefined};
option({heir, Pid, Data}, Read) when is_pid(Pid), node(Pid) =:= node() ->
    Read#options{heir = Pid, heir_data = Data};
option({read_concurrency, Wanted}, Read) when is_boolean(Wanted) ->
    Read#options{read_concurrency = Wanted};
option({decentralized_counters, Wanted}, Read) when is_boolean(Wanted) ->
    Read#options{decentralized_asked = Wanted};
option({write_concurrency, Wanted}, Read) ->
    write_concurrency(Wanted, Read);
option(_Unknown, _Read) ->
    error.

%% Says which option of a list is wrong.
-spec wrong_option(term()) -> binary().
wrong_option(Options) ->
    Flags = [set, ordered_set, bag, duplicate_bag, ordered_bag, ordered_duplicate_bag, public,
             protected, private, named_table, compressed],
    Bound = "a positive number or `infinity'",
    Known = #{keypos => "a position from 1",
              write_concurrency => "`true', `false' or `auto'",
              read_concurrency => "a boolean",
              decentralized_counters => "a boolean",
              full_scan => "`allow', `warn' or `refuse'",
              backend => "an atom",
              snapshot_memory => "a number of bytes or `infinity'",
              ttl => "`infinity', milliseconds from 1 to 34 years, {idle, Milliseconds} or "
                     "{spread, Milliseconds, Percent}",
              max_objects => Bound,
              max_memory => Bound,
              evicted => "`none' or a pid of this node"},
    IsRight = fun(Option) -> option(Option, #options{}) =/= error end,
    All = lists:foldl(fun maps:merge/2, Known, [ats_changes:known(), maps:from_keys(Flags, flag)]),
    ats_hints:options(Options, maps:remove(protection, All), IsRight, conflict(Options)).

%% Says which options do not go together.
-spec conflict(term()) -> string().
conflict(Options) ->
    case read(Options, #options{}) of
        #options{owner = Owner, protection = Protection}
          when Owner =/= process, Protection =/= public ->
            "the option `owner' needs the option `public'";
        #options{evicted = Pid} when is_pid(Pid) ->
            "the option `evicted' needs one of `ttl', `max_objects' and `max_memory'";
        #options{} ->
            "a number of locks needs a hash table";
        error ->
            ""
    end.

-spec write_concurrency(term(), #options{}) -> #options{} | error.
write_concurrency(false, Read) ->
    Read#options{write_concurrency = false};
write_concurrency(true, #options{type = Type} = Read) when ?IS_ORDERED(Type) ->
    Read#options{write_concurrency = true};
write_concurrency(true, Read) ->
    Read#options{write_concurrency = true, decentralized_implied = false};
write_concurrency(auto, Read) ->
    Read#options{write_concurrency = auto, decentralized_implied = true};
write_concurrency({debug_hash_fixed_number_of_locks, N}, Read)
  when is_integer(N), N >= 1, N =< ?MAX_LOCKS ->
    Locks = power_of_two_below(N, ?MIN_LOCKS),
    Read#options{write_concurrency = {debug_hash_fixed_number_of_locks, Locks},
                 decentralized_implied = true};
write_concurrency(_Unknown, _Read) ->
    error.

-spec power_of_two_below(pos_integer(), pos_integer()) -> pos_integer().
power_of_two_below(N, Power) when Power * 2 > N -> Power;
power_of_two_below(N, Power) -> power_of_two_below(N, Power * 2).

-spec effective(#options{}) -> #options{} | error.
effective(#options{type = Type, write_concurrency = {_, _}}) when ?IS_ORDERED(Type) ->
    %% A number of bucket locks asked of a table without buckets is an error even where
    %% write_concurrency has no effect.
    error;
effective(#options{owner = Owner, protection = Protection})
  when Owner =/= process, Protection =/= public ->
    %% A private table without an owner could be written or deleted by no process.
    error;
effective(#options{evicted = Pid, ttl = false, max_objects = infinity, max_memory = infinity})
  when is_pid(Pid) ->
    %% Nothing would ever be told.
    error;
effective(#options{protection = private} = Read) ->
    Read#options{write_concurrency = false, read_concurrency = false};
effective(#options{write_concurrency = false} = Read) ->
    Read;
effective(Read) ->
    case erlang:system_info(schedulers) of
        1 -> Read#options{write_concurrency = false};
        _ -> Read
    end.

-spec finish(#options{} | error) -> {ok, ats_nif:options()} | error.
finish(error) ->
    error;
finish(#options{} = Read) ->
    {ok, {Read#options.type,
          Read#options.protection,
          Read#options.keypos,
          Read#options.named,
          Read#options.heir,
          Read#options.heir_data,
          Read#options.write_concurrency,
          Read#options.read_concurrency,
          decentralized_counters(Read),
          Read#options.compressed,
          Read#options.full_scan,
          Read#options.owner,
          Read#options.backend,
          Read#options.snapshot_memory,
          limits(Read),
          evicted(Read)}}.

%% The process that tells of objects that are gone belongs to the application.
-spec evicted(#options{}) -> none | pid().
evicted(#options{evicted = none}) ->
    none;
evicted(#options{evicted = Pid}) ->
    ok = ats_disk_tables:ensure_started(),
    Pid.

-spec limits(#options{}) -> ats_nif:limits().
limits(#options{ttl = false, max_objects = infinity, max_memory = infinity}) ->
    false;
limits(#options{ttl = false, max_objects = Objects, max_memory = Memory}) ->
    {infinity, Objects, Memory};
limits(#options{ttl = Ttl, max_objects = Objects, max_memory = Memory}) ->
    {Ttl, Objects, Memory}.

%% Only a table with several locks has counters worth spreading.
-spec decentralized_counters(#options{}) -> boolean().
decentralized_counters(#options{write_concurrency = false}) -> false;
decentralized_counters(#options{decentralized_asked = default} = Read) ->
    Read#options.decentralized_implied;
decentralized_counters(#options{decentralized_asked = Asked}) ->
    Asked.

%% @doc Returns `true' if tables of this type have their keys in the standard order of terms, where
%% keys are the same if `=='.
-spec is_ordered(ats:table_type()) -> boolean().
is_ordered(Type) -> ?IS_ORDERED(Type).

%% @doc Reads the options of an insert: the time for which the objects are there.
-spec lifetime(term()) -> ats_nif:lifetime().
lifetime(#{ttl := Ttl} = Options) when map_size(Options) =:= 1 ->
    ttl(Ttl);
lifetime(_Unknown) ->
    erlang:error({ats_error, options}).

%% @doc Reads a time for which objects are there.
-spec ttl(term()) -> ats_nif:lifetime().
ttl(Ttl) when Ttl =:= infinity; Ttl =:= keep; Ttl =:= default; ?IS_TTL(Ttl) -> Ttl;
ttl(_Unknown) -> erlang:error({ats_error, options}).

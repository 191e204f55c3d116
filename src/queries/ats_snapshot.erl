%% @private @doc Moments of tables: snapshots that programs hold, and views that are read in many
%% calls.
%%
%% A snapshot is a native table of its own, which shows a moment. Its identifier stands where
%% otherwise a table does. When it has ended, it still tells why.
-module(ats_snapshot).

-export([make/2, release/1, max_age/1, diff/4, differences/2, second/1]).
-export([read/2, begin_reading/1, begin_fold/1, source/1, end_reading/1]).
-export([begin_walk/1, is_on_its_way/1, end_walk/1]).

-export_type([reading/0, walk/0]).

%% Objects of a table of which no moment is kept to fold over it.
-define(FEW, 32).

-opaque reading() :: {moment | fixed, ats:table()}.
%% A table that is read in many calls.

-type walk() :: {ats:tid(), Held :: reference()}.
%% A moment, and a reference with which it ends.

%%--------------------------------------------------------------------------------------------
%% Snapshots
%%--------------------------------------------------------------------------------------------

%% @doc Makes a snapshot of a table in memory, which belongs to the caller.
-spec make(ats:table(), Options :: term()) -> ats:snapshot().
make(Table, Options) ->
    ats_nif:snapshot(Table, max_age(Options)).

%% @doc Reads the options of a snapshot.
-spec max_age(term()) -> default | pos_integer().
max_age([]) -> default;
max_age([{max_age, infinity} | Options]) -> max_age(Options);
max_age([{max_age, Ms} | Options]) when is_integer(Ms), Ms > 0, Ms < 1 bsl 59 ->
    _ = max_age(Options),
    Ms;
max_age(Options) ->
    IsRight = fun({max_age, infinity}) -> true;
                 ({max_age, Ms}) -> is_integer(Ms) andalso Ms > 0 andalso Ms < 1 bsl 59;
                 (_) -> false
              end,
    Known = #{max_age => "a positive number of milliseconds or `infinity'"},
    Text = ats_hints:options(Options, Known, IsRight, ""),
    erlang:error({ats_error, {invalid, Text}}).

%% @doc Ends a snapshot, also one of a table on disk.
-spec release(term()) -> true.
release(Snapshot) ->
    case ats_nif:snapshot_state(Snapshot) of
        none -> erlang:error({ats_error, no_snapshot});
        _ -> ats_nif:release(Snapshot)
    end.

%%--------------------------------------------------------------------------------------------
%% Differences
%%--------------------------------------------------------------------------------------------

%% @doc Folds a function over the differences between two snapshots of a table in memory.
-spec diff(ats:snapshot(), ats:snapshot(), fun((ats:difference(), Acc) -> Acc), Acc) -> Acc.
diff(First, Second, Function, Acc) ->
    ok = check(First),
    ok = second(fun() -> check(Second) end),
    Keys = ats_nif:changed_keys(First, Second),
    Type = ats_info:item(type, First),
    Each = fun(Pair, Before) -> lists:foldl(Function, Before, differences(Type, Pair)) end,
    chunks(First, Second, Keys, Each, Acc, 0).

-spec chunks(ats:snapshot(), ats:snapshot(), reference(), fun(({[tuple()], [tuple()]}, Acc) -> Acc),
             Acc, non_neg_integer() | done) -> Acc.
chunks(_First, _Second, _Keys, _Each, Acc, done) ->
    Acc;
chunks(First, Second, Keys, Each, Before, From) ->
    {Pairs, Next} = ats_nif:differences(First, Second, Keys, From),
    chunks(First, Second, Keys, Each, lists:foldl(Each, Before, Pairs), Next).

%% Fails if a term is no snapshot of a table in memory, or has ended.
-spec check(term()) -> ok.
check(Snapshot) ->
    case ats_nif:snapshot_state(Snapshot) of
        {memory, _Table, _Owner, _Age} -> ok;
        Why when is_atom(Why), Why =/= none -> erlang:error({ats_error, {snapshot_ended, Why}});
        _ -> erlang:error({ats_error, no_snapshot})
    end.

%% @doc Makes a call about the second argument of the user's: a refusal says so.
-spec second(fun(() -> Answer)) -> Answer.
second(Call) ->
    try Call()
    catch error:{ats_error, Cause} -> erlang:error({ats_error, {second, Cause}})
    end.

%% @doc Returns the differences of the objects that a key of a table of this type has had at two
%% moments.
-spec differences(ats:table_type(), {Old :: [tuple()], New :: [tuple()]}) -> [ats:difference()].
differences(Type, Pair) when Type =:= set; Type =:= ordered_set -> of_object(Pair);
differences(_Bag, {Old, New}) ->
    [{delete, Object} || Object <- Old -- New] ++ [{insert, Object} || Object <- New -- Old].

-spec of_object({[tuple()], [tuple()]}) -> [ats:difference()].
of_object({Same, Same}) -> [];
of_object({[], [New]}) -> [{insert, New}];
of_object({[Old], []}) -> [{delete, Old}];
of_object({[Old], [New]}) -> [{change, Old, New}].

%%--------------------------------------------------------------------------------------------
%% Reading in many calls
%%--------------------------------------------------------------------------------------------

%% @doc Has a function read a table as it is at one moment, however long that takes. If the store of
%% the table has no moments, the table is fixed meanwhile. The function gets the table to read.
-spec read(ats:table(), fun((ats:table()) -> Answer)) -> Answer.
read(Table, Read) ->
    Reading = begin_reading(Table),
    try Read(source(Reading))
    after end_reading(Reading)
    end.

%% @doc Begins to read a table as {@link read/2} does.
-spec begin_reading(ats:table()) -> reading().
begin_reading(Table) ->
    case ats_nif:snapshot(Table, query) of
        none ->
            %% A name is resolved once, so that all calls read the same table.
            Id = identifier(Table),
            true = ats_nif:safe_fixtable(Id, true),
            {fixed, Id};
        Moment ->
            {moment, Moment}
    end.

%% @doc Begins to fold over a table. If it has a few objects they are read at once, which takes less
%% time than to keep a moment.
-spec begin_fold(ats:table()) -> {few, [tuple()]} | {reading, reading()}.
begin_fold(Table) ->
    case ats_nif:select_start(Table, [{'_', [], ['$_']}], {objects, ?FEW}) of
        more -> {reading, begin_reading(Table)};
        Objects -> {few, Objects}
    end.

%% @doc Returns the table to read.
-spec source(reading()) -> ats:table().
source({_, Source}) -> Source.

%% @doc Ends a reading.
-spec end_reading(reading()) -> true.
end_reading({moment, Moment}) ->
    ats_nif:delete(Moment);
end_reading({fixed, Id}) ->
    %% The table may have been deleted meanwhile.
    try ats_nif:safe_fixtable(Id, false)
    catch error:{ats_error, _Cause} -> true
    end.

%% @doc Begins to read a moment of a table for a reader that may stop without a word: when no term
%% leads to the reference any more, the moment ends. Returns `none' if the store of the table has no
%% moments.
-spec begin_walk(ats:table()) -> walk() | none.
begin_walk(Table) ->
    case ats_nif:snapshot(Table, query) of
        none -> none;
        Moment -> {Moment, ats_nif:end_when_freed(Moment)}
    end.

-spec is_on_its_way(Moment :: ats:tid()) -> boolean().
is_on_its_way(Moment) -> ats_info:item(id, Moment) =/= undefined.

%% @doc Ends a walk, which may have ended.
-spec end_walk(Moment :: ats:tid()) -> true.
end_walk(Moment) ->
    try ats_nif:delete(Moment)
    catch error:{ats_error, id} -> true
    end.

-spec identifier(ats:table()) -> ats:tid().
identifier(Table) ->
    case ats_info:item(id, Table) of
        undefined -> erlang:error({ats_error, id});
        Id -> Id
    end.

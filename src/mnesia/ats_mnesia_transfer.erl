%% @private
%% @doc Copies of tables of Mnesia on their way to other nodes.
%%
%% Between two tables on disk go the chunks of `dats:bchunk/2', whose objects are not decoded on the
%% way, if both nodes have the same version of the application; else, and wherever a table in memory
%% or one of Mnesia's own types is at an end, lists of objects. The receiver asks for each chunk
%% when it has taken the one before.
%%
%% Each chunk is read at a moment of its own. The receiver is a subscriber of all changes from
%% before the first chunk on, and applies them after the last one; that is the work of Mnesia.
-module(ats_mnesia_transfer).

-export([version/0, send/2, send_objects/1, begin_receiving/1, take/3, finish/1]).

-export_type([receiver/0]).

%% Approximate size in bytes of the objects of a chunk; the value that Mnesia takes for its own
%% tables.
-define(CHUNK, 64000).
-define(EVERYTHING, [{'_', [], ['$_']}]).

-opaque receiver() :: objects | binaries | {binaries, pid(), reference()}.

%% @doc Returns the version of the application on this node, of which chunks are understood.
-spec version() -> term().
version() ->
    _ = application:load(ats),
    application:get_key(ats, vsn).

%% @doc Prepares sending to a table on disk, and tells the receiver the format of the chunks.
-spec send(ats_mnesia_tables:store(), pid()) -> {standard, fun(), fun()} | {fun(), fun()}.
send({ats, _} = Store, _Receiver) ->
    send_objects(Store);
send(Store, Receiver) ->
    case rpc:call(node(Receiver), ?MODULE, version, []) =:= version() of
        true ->
            Receiver ! {self(), {first, binaries}},
            Name = element(tuple_size(Store), Store),
            {fun() -> first_chunk(Name) end, fun(Position) -> chunk(Name, Position) end};
        false ->
            send_objects(Store)
    end.

%% The receiver gets all later changes by itself; earlier ones must be on disk.
first_chunk(Name) ->
    ok = ats_mnesia_writer:flush(),
    chunk(Name, start).

chunk(Name, Position) ->
    case dats:bchunk(Name, Position) of
        {error, Reason} -> exit({ats_mnesia, Reason});
        {Next, Binaries} -> {{binaries, Binaries}, Next};
        '$end_of_table' -> '$end_of_table'
    end.

%% @doc Prepares sending objects to a table of any type.
-spec send_objects(ats_mnesia_tables:store()) -> {standard, fun(), fun()}.
send_objects({both, Table, _Name}) ->
    send_objects({ats, Table});
send_objects({pending, _Pending, Name}) ->
    send_objects({dats, Name});
send_objects({Module, Table}) ->
    {standard,
     fun() ->
             Module =:= ats orelse ats_mnesia_writer:flush(),
             Module:select(Table, ?EVERYTHING, count_per_chunk(Module, Table))
     end,
     fun('$end_of_table') -> '$end_of_table';
        (Continuation) -> Module:select(Continuation)
     end}.

count_per_chunk(Module, Table) ->
    case Module:first(Table) of
        '$end_of_table' -> 1;
        Key -> ?CHUNK div erlang:external_size(Module:lookup(Table, Key)) + 1
    end.

%% @doc Begins to receive, by the first message of the sender, which is the number of objects if
%% objects come.
-spec begin_receiving(binaries | non_neg_integer()) -> {non_neg_integer(), receiver()}.
begin_receiving(binaries) -> {0, binaries};
begin_receiving(Size) -> {Size, objects}.

%% @doc Takes a chunk into a table.
-spec take(Chunk :: term(), ats_mnesia_tables:store(), receiver()) -> receiver().
take(Objects, {Module, Table}, objects) when is_list(Objects) ->
    case Module:insert(Table, Objects) of
        Done when Done =:= true; Done =:= ok -> objects;
        {error, Reason} -> exit({ats_mnesia, Reason})
    end;
take({binaries, _} = Chunk, {dats, Name} = Store, binaries) ->
    take(Chunk, Store, start_filling(Name));
take({binaries, Binaries}, _Store, {binaries, Filler, Monitor} = Receiver) ->
    Filler ! {chunk, self(), Binaries},
    receive
        {taken, Filler} -> Receiver;
        {'DOWN', Monitor, process, Filler, Reason} -> exit({ats_mnesia, Reason})
    end.

%% @doc Waits until all is in the table.
-spec finish(receiver()) -> ok.
finish({binaries, Filler, Monitor}) ->
    Filler ! end_of_input,
    receive
        {'DOWN', Monitor, process, Filler, normal} -> ok;
        {'DOWN', Monitor, process, Filler, Reason} -> exit({ats_mnesia, Reason})
    end;
finish(_Receiver) ->
    ok.

%% `dats:init_table/3' asks for the chunks, and the loader of Mnesia brings them, so each needs a
%% process. They are not linked: the loader takes the end of any process for one of Mnesia's.
-spec start_filling(dats:tab_name()) -> receiver().
start_filling(Name) ->
    Loader = self(),
    {Filler, Monitor} =
        spawn_monitor(fun() ->
                              Ended = erlang:monitor(process, Loader),
                              Fill = fun(read) -> provide(Ended); (close) -> ok end,
                              case dats:init_table(Name, Fill, [{format, bchunk}]) of
                                  ok -> ok;
                                  {error, Reason} -> exit(Reason)
                              end
                      end),
    {binaries, Filler, Monitor}.

provide(Ended) ->
    receive
        {chunk, Loader, Binaries} ->
            Loader ! {taken, self()},
            {Binaries, fun(read) -> provide(Ended); (close) -> ok end};
        end_of_input ->
            end_of_input;
        {'DOWN', Ended, process, _, _} ->
            exit(normal)
    end.

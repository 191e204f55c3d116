%% @private
%% @doc The process that owns the tables which Mnesia has on this node.
%%
%% It is started under the supervisor that Mnesia has for this, by the first function that is
%% called, and ends with Mnesia; then tables in memory are gone and those on disk are closed. It
%% makes, opens, closes and removes tables. Long work, such as filling tables, is done by its
%% callers. Users find a table by its name in a table of `ats', without asking this process.
%%
%% A table on disk is a directory in that of Mnesia, `Name.Cookie.dats'. Mnesia gives each table a
%% cookie when it is made. So a table that was deleted and made anew while this node was down does
%% not get back its old objects: directories of other cookies that were there when this process
%% began are removed when it is opened. Those of its indexes begin with the same name and cookie,
%% and are removed with it.
%%
%% An index on disk is used as it is if it was complete and closed; a `built' object in it says so.
%% The object is deleted, durably, before the index is used, so after a crash Mnesia builds the
%% index anew. It does so, too, after it has replayed its log into the table, in which it does not
%% change indexes.
%%
%% A copy that comes from another node goes to a new table, which takes the place of the old one
%% when it is complete. If it is broken off the new one is removed.
-module(ats_mnesia_tables).

-behaviour(gen_server).

-export([start_link/0]).
-export([open/3, load/4, close/1, delete/2, find/1, is_open/1]).
-export([loading/1, finish_loading/1, stop_loading/1]).
-export([is_built/1, set_built/2]).
-export([check_options/2, suffixes/0, temporary_suffixes/0]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2, terminate/2]).

-export_type([store/0]).

%% A table in memory, on disk, in both, or on disk with changes that are not there yet.
-type store() :: {ats, ats:table()} | {dats, dats:tab_name()}
               | {both, ats:table(), dats:tab_name()}
               | {pending, ats_mnesia_pending:pending(), dats:tab_name()}.
-type tab() :: ats_mnesia:tab().
-type properties() :: [{atom(), term()}].

%% An open table. `built' is `no' if it is no index on disk.
-record(open, {alias :: ats_mnesia:alias(),
               properties :: properties(),
               store :: store(),
               filled = false :: boolean(),
               replayed = false :: boolean(),
               built = no :: boolean() | no}).

-record(state, {open = #{} :: #{tab() => #open{}},
                %% Names in the directory of Mnesia, from before this process.
                found :: gb_sets:set(file:filename()),
                %% Tables that take the objects received from another node.
                loading = #{} :: #{tab() => store()}}).

%% `{Tab, Store}'.
-define(STORES, ?MODULE).
-define(TABLE_SUFFIX, ".dats").
-define(INDEX_SUFFIX, ".dats_index").
-define(TEMPORARY_SUFFIX, ".dats_tmp").
%% Marks an index as complete. The objects of an index never look like this: they are `{Value, Key}'
%% or `{{Value, Key}}'.
-define(BUILT, {built}).

%%--------------------------------------------------------------------------------------------
%% Calls
%%--------------------------------------------------------------------------------------------

-spec start_link() -> {ok, pid()} | {error, term()}.
start_link() ->
    gen_server:start_link({local, ?MODULE}, ?MODULE, [], []).

%% @doc Opens a table, or makes it, if it is not open.
-spec open(ats_mnesia:alias(), tab(), properties()) -> ok | {error, term()}.
open(Alias, Tab, Properties) ->
    call({open, Alias, Tab, Properties}).

%% @doc Opens a table, and brings its objects into memory or prepares receiving them, as Mnesia's
%% reason demands.
-spec load(ats_mnesia:alias(), tab(), Reason :: term(), properties()) -> ok | {error, term()}.
load(Alias, Tab, Reason, Properties) ->
    case {open(Alias, Tab, Properties), Reason} of
        {ok, {net_load, _Node}} ->
            call({begin_loading, Tab});
        {ok, startup} ->
            call({begin_replay, Tab});
        {ok, Reason} when Reason =:= init_index; Reason =:= restore ->
            ok;
        {ok, _} ->
            fill(Tab, Reason);
        {Failed, _} ->
            Failed
    end.

-spec fill(tab(), term()) -> ok | {error, term()}.
fill(Tab, Reason) ->
    case call({begin_filling, Tab}) of
        {both, Table, Name} ->
            case dats:to_ats(Name, Table) of
                {error, _} = Failed -> Failed;
                Table -> ok
            end;
        {ats, Table} when is_atom(Tab) ->
            is_dumper(Reason) orelse fill_from_dump(Tab, Table),
            ok;
        _ ->
            ok
    end.

%% Mnesia itself brings the objects.
is_dumper({dumper, _}) -> true;
is_dumper(_Reason) -> false.

%% Mnesia has restored the table from a backup: to the files of a table in memory.
-spec fill_from_dump(atom(), ats:table()) -> ok.
fill_from_dump(Tab, Table) ->
    case mnesia_monitor:use_dir() andalso mnesia_lib:exists(mnesia_lib:tab2dcd(Tab)) of
        true ->
            Tab = ets:new(Tab, [named_table, public, {keypos, 2}, ats:info(Table, type)]),
            _ = mnesia_log:dcd2ets(Tab, mnesia_monitor:get_env(auto_repair)),
            true = ats:init_table(Table, insert_chunks(ets:select(Tab, [{'_', [], ['$_']}], 1000))),
            true = ets:delete(Tab),
            ok;
        false ->
            ok
    end.

insert_chunks(Chunk) ->
    fun(close) -> ok;
       (read) ->
            case Chunk of
                '$end_of_table' -> end_of_input;
                {Objects, Continuation} -> {Objects, insert_chunks(ets:select(Continuation))}
            end
    end.

%% @doc Closes a table, so that it can be opened as it is. One in memory is gone then.
-spec close(tab()) -> ok | {error, term()}.
close(Tab) ->
    call({close, Tab}).

%% @doc Removes a table and its indexes.
-spec delete(ats_mnesia:alias(), tab()) -> ok | {error, term()}.
delete(Alias, Tab) ->
    call({delete, Alias, Tab}).

%% @doc Returns where a table is. Fails with `badarg' if it is not open.
-spec find(tab()) -> store().
find(Tab) ->
    ats:lookup_element(?STORES, Tab, 2).

-spec is_open(tab()) -> boolean().
is_open(Tab) ->
    ok = ensure_started(),
    ats:member(?STORES, Tab).

%% @doc Returns the table that takes the received objects.
-spec loading(tab()) -> store().
loading(Tab) ->
    ats:lookup_element(?STORES, {loading, Tab}, 2).

%% @doc Puts the table that was received in the place of the other.
-spec finish_loading(tab()) -> ok | {error, term()}.
finish_loading(Tab) ->
    case call({finish_loading, Tab}) of
        ok -> fill(Tab, {dumper, net_load});
        Failed -> Failed
    end.

%% @doc Removes the table that takes the received objects, if there is one.
-spec stop_loading(tab()) -> ok | {error, term()}.
stop_loading(Tab) ->
    call({stop_loading, Tab}).

%% @doc Returns `true' if an index has all that it must have.
-spec is_built(tab()) -> boolean().
is_built(Tab) ->
    call({is_built, Tab}).

-spec set_built(tab(), boolean()) -> ok.
set_built(Tab, IsBuilt) ->
    call({set_built, Tab, IsBuilt}).

-spec call(term()) -> term().
call(Request) ->
    ok = ensure_started(),
    gen_server:call(?MODULE, Request, infinity).

ensure_started() ->
    case erlang:whereis(?MODULE) of
        undefined ->
            case mnesia_ext_sup:start_proc(?MODULE, ?MODULE, start_link, []) of
                {ok, _} -> ok;
                {error, {already_started, _}} -> ok
            end;
        _ ->
            ok
    end.

%%--------------------------------------------------------------------------------------------
%% Names and options
%%--------------------------------------------------------------------------------------------

-spec suffixes() -> [string()].
suffixes() -> [?TABLE_SUFFIX, ?INDEX_SUFFIX].

-spec temporary_suffixes() -> [string()].
temporary_suffixes() -> [?TEMPORARY_SUFFIX].

%% @doc Checks the options of a table, all but those that Mnesia decides.
-spec check_options(ats_mnesia:alias(), properties()) -> ok | {error, term()}.
check_options(Alias, Properties) ->
    Given = proplists:get_value(storage_properties, Properties, []),
    Wrong = [{Kind, Option} || {Kind, Fixed} <- fixed_options(),
                               Option <- proplists:get_value(Kind, Given, []),
                               lists:member(name_option(Option), Fixed)],
    case Wrong of
        [] -> check_values(Alias, Properties);
        _ -> {error, {storage_properties, Wrong}}
    end.

fixed_options() ->
    [{ats, [set, ordered_set, bag, duplicate_bag, ordered_bag, ordered_duplicate_bag, public,
            protected, private, named_table, keypos, heir, owner]},
     {dats, [file, type, keypos, access, merge]}].

name_option(Option) when is_tuple(Option), tuple_size(Option) > 0 -> element(1, Option);
name_option(Option) -> Option.

check_values(Alias, Properties) ->
    {InMemory, OnDisk} = options(Alias, check, Properties),
    try
        true = InMemory =:= none orelse ats:delete(ats:new(check, InMemory)),
        OnDisk =:= none orelse ats_disk_options:parse("check", OnDisk)
    of
        true -> ok;
        {ok, _} -> ok;
        badarg -> {error, {storage_properties, {dats, OnDisk}}};
        {error, _} = Failed -> Failed
    catch
        error:badarg -> {error, {storage_properties, {ats, InMemory}}}
    end.

%% Options of the table in memory and of the one on disk, `none' where there is none.
-spec options(ats_mnesia:alias(), tab(), properties()) ->
          {none | [ats:option()], none | [dats:option()]}.
options(Alias, Tab, Properties) ->
    Given = proplists:get_value(storage_properties, Properties, []),
    {Type, KeyPos} = kind(Tab, proplists:get_value(type, Properties, set)),
    OfMemory = proplists:get_value(ets, Given, []) ++ proplists:get_value(ats, Given, []),
    InMemory = [Type, public, {keypos, KeyPos} | OfMemory],
    OnDisk = [{type, Type}, {keypos, KeyPos} | proplists:get_value(dats, Given, [])],
    case Alias of
        ats_ram -> {InMemory, none};
        dats_disc -> {none, OnDisk};
        ats_disc when is_tuple(Tab) -> {InMemory, none};
        ats_disc -> {InMemory, OnDisk}
    end.

%% An index is bag or set of its objects, and a retainer a set of keys.
kind({_, index, {_, ordered}}, _Type) -> {ordered_set, 1};
kind({_, index, {_, bag}}, _Type) -> {bag, 1};
kind({_, retainer, _}, _Type) -> {set, 2};
kind(_Tab, Type) -> {Type, 2}.

-spec directory(tab(), properties()) -> file:filename().
directory(Tab, Properties) ->
    Cookie = erlang:phash2(proplists:get_value(cookie, Properties), 1 bsl 32),
    Name = io_lib:format("~ts.~8.16.0b~ts", [main_table(Tab), Cookie, ending(Tab)]),
    mnesia_lib:dir(lists:flatten(Name)).

main_table({Tab, _, _}) -> Tab;
main_table(Tab) -> Tab.

ending({_, index, {{Plugin}, Type}}) ->
    lists:concat([".{", Plugin, "}.", Type, ?INDEX_SUFFIX]);
ending({_, index, {Position, Type}}) ->
    lists:concat([".", Position, ".", Type, ?INDEX_SUFFIX]);
ending({_, retainer, Checkpoint}) ->
    %% The name of a checkpoint is any term.
    Hash = binary:encode_hex(erlang:md5(term_to_binary(Checkpoint))),
    "." ++ binary_to_list(Hash) ++ ?TEMPORARY_SUFFIX;
ending(_Tab) ->
    ?TABLE_SUFFIX.

%% Returns the directories of a table, with any cookie.
-spec directories(tab()) -> [file:filename()].
directories(Tab) ->
    Ending = ending(Tab),
    find_directories(main_table(Tab), fun(End) -> End =:= Ending end).

-spec index_directories(atom()) -> [file:filename()].
index_directories(Tab) ->
    find_directories(Tab, fun(End) -> lists:suffix(?INDEX_SUFFIX, End) end).

-spec find_directories(atom(), fun((Ending :: string()) -> boolean())) -> [file:filename()].
find_directories(MainTable, Fits) ->
    Prefix = prefix(MainTable),
    [mnesia_lib:dir(Name) || Name <- list_directory(), fits(Name, Prefix, Fits)].

-spec list_directory() -> [file:filename()].
list_directory() ->
    case file:list_dir(mnesia_lib:dir()) of
        {ok, Names} -> Names;
        {error, enoent} -> []
    end.

%% Takes the directories of a table out of the sorted names. They are neighbours, so not all names
%% are read.
-spec take_found(tab(), gb_sets:set(file:filename())) -> [file:filename()].
take_found(Tab, Found) ->
    Prefix = prefix(main_table(Tab)),
    Ending = ending(Tab),
    IsOfTable = fun(Name) -> fits(Name, Prefix, fun(End) -> End =:= Ending end) end,
    lists:filter(IsOfTable, take_while(Prefix, gb_sets:next(gb_sets:iterator_from(Prefix, Found)))).

take_while(Prefix, {Name, Iterator}) ->
    case lists:prefix(Prefix, Name) of
        true -> [Name | take_while(Prefix, gb_sets:next(Iterator))];
        false -> []
    end;
take_while(_Prefix, none) ->
    [].

prefix(MainTable) -> atom_to_list(MainTable) ++ ".".

fits(Name, Prefix, Fits) ->
    lists:prefix(Prefix, Name) andalso fits_ending(lists:nthtail(length(Prefix), Name), Fits).

%% Another table may have a name that begins like this one.
fits_ending(CookieAndEnding, Fits) when length(CookieAndEnding) > 8 ->
    {Cookie, Ending} = lists:split(8, CookieAndEnding),
    lists:all(fun(C) -> C >= $0 andalso C =< $9 orelse C >= $a andalso C =< $f end, Cookie)
        andalso Fits(Ending);
fits_ending(_Other, _Fits) ->
    false.

%%--------------------------------------------------------------------------------------------
%% The process
%%--------------------------------------------------------------------------------------------

%% Tables in memory are lost with this process, so Mnesia must not go on without them.
%% @private
-spec init([]) -> {ok, #state{}}.
init([]) ->
    process_flag(trap_exit, true),
    Started = {?MODULE, started},
    ets:member(mnesia_gvar, Started)
        andalso mnesia_lib:fatal("The owner of tables of ats has ended~n", []),
    mnesia_lib:set(Started, true),
    ?STORES = ats:new(?STORES, [named_table, protected]),
    ok = ats_mnesia_log:start(),
    {ok, _} = ats_mnesia_writer:start_link(),
    {ok, #state{found = gb_sets:from_list(list_directory())}}.

%% @private
-spec handle_call(term(), gen_server:from(), #state{}) -> {reply, term(), #state{}}.
handle_call({open, Alias, Tab, Properties}, _From, State) ->
    try_change(fun() -> open_if_closed(Alias, Tab, Properties, State) end, State);
handle_call({close, Tab}, _From, State) ->
    try_change(fun() -> {ok, close_if_open(Tab, State)} end, State);
handle_call({delete, Alias, Tab}, _From, State) ->
    try_change(fun() -> {ok, remove(Alias, Tab, State)} end, State);
handle_call({begin_replay, Tab}, _From, State) ->
    try_change(fun() -> {ok, begin_replay(Tab, State)} end, State);
handle_call({begin_filling, Tab}, _From, #state{open = Open} = State) ->
    case Open of
        #{Tab := #open{filled = true}} ->
            {reply, filled, State};
        #{Tab := #open{store = Store} = Table} ->
            {reply, Store, State#state{open = Open#{Tab := Table#open{filled = true}}}}
    end;
handle_call({begin_loading, Tab}, _From, State) ->
    try_change(fun() -> {ok, begin_loading(Tab, State)} end, State);
handle_call({stop_loading, Tab}, _From, State) ->
    try_change(fun() -> {ok, stop_loading(Tab, State)} end, State);
handle_call({finish_loading, Tab}, _From, State) ->
    try_change(fun() -> {ok, replace(Tab, State)} end, State);
handle_call({is_built, Tab}, _From, #state{open = Open} = State) ->
    #{Tab := #open{built = IsBuilt}} = Open,
    {reply, IsBuilt =:= true orelse is_replayed(element(1, Tab), State), State};
handle_call({set_built, Tab, IsBuilt}, _From, #state{open = Open} = State) ->
    case Open of
        #{Tab := #open{built = no}} ->
            {reply, ok, State};
        #{Tab := Table} ->
            {reply, ok, State#state{open = Open#{Tab := Table#open{built = IsBuilt}}}}
    end.

%% Errors of `dats' are thrown by `done/1'.
-spec try_change(fun(() -> {Answer, #state{}}), #state{}) -> {reply, Answer | Failed, #state{}}
              when Failed :: {error, term()}.
try_change(Change, State) ->
    try Change() of
        {Answer, Changed} -> {reply, Answer, Changed}
    catch
        throw:{error, _} = Failed -> {reply, Failed, State}
    end.

done(ok) -> ok;
done({error, _} = Failed) -> throw(Failed).

%% @private
-spec handle_cast(term(), #state{}) -> {noreply, #state{}}.
handle_cast(_Cast, State) ->
    {noreply, State}.

%% The process that brings changes to disk has ended. If a change has failed Mnesia is about to
%% stop.
%% @private
-spec handle_info({'EXIT', pid(), term()}, #state{}) ->
          {noreply, #state{}} | {stop, term(), #state{}}.
handle_info({'EXIT', _Pid, {ats_mnesia, _Tab}}, State) ->
    {noreply, State};
handle_info({'EXIT', _Pid, Reason}, State) ->
    {stop, Reason, State}.

%% @private
-spec terminate(term(), #state{}) -> ok.
%% Mnesia has stopped; an error of a file is found when the table is opened.
terminate(_Reason, #state{open = Open} = State) ->
    lists:foreach(fun(Tab) ->
                          try close_if_open(Tab, State)
                          catch
                              throw:{error, _} -> closed_by_dats;
                              error:badarg -> closed_with_dats;
                              exit:{ats_mnesia_writer, _} -> in_the_log
                          end
                  end, maps:keys(Open)).

open_if_closed(Alias, Tab, Properties, #state{open = Open} = State) ->
    case Open of
        #{Tab := #open{alias = Alias}} -> {ok, State};
        #{} -> {ok, open_table(Alias, Tab, Properties, close_if_open(Tab, State))}
    end.

-spec open_table(ats_mnesia:alias(), tab(), properties(), #state{}) -> #state{}.
open_table(Alias, Tab, Properties, #state{open = Open} = State) ->
    Directory = directory(Tab, Properties),
    Store = add_pending(Alias, Tab, Properties,
                        open_store(options(Alias, Tab, Properties), Tab, Directory)),
    Found = take_found(Tab, State#state.found),
    Others = [mnesia_lib:dir(Name) || Name <- Found] -- [Directory],
    %% The directories may be gone with an earlier table of this name.
    ok = remove_directories(lists:filter(fun filelib:is_dir/1, Others)),
    true = ats:insert(?STORES, {Tab, Store}),
    State#state{found = lists:foldl(fun gb_sets:delete/2, State#state.found, Found),
                open = Open#{Tab => #open{alias = Alias, properties = Properties, store = Store,
                                          built = take_built(Tab, Store)}}}.

-spec open_store({none | [ats:option()], none | [dats:option()]}, Name :: term(),
                 file:filename()) -> store().
open_store({InMemory, none}, _Name, _Directory) ->
    {ats, ats:new(?MODULE, InMemory)};
open_store({none, OnDisk}, Name, Directory) ->
    mnesia_monitor:use_dir() orelse throw({error, {has_no_disc, node()}}),
    case dats:open_file({?MODULE, Name}, [{file, Directory} | OnDisk]) of
        {ok, Opened} -> {dats, Opened};
        {error, _} = Failed -> throw(Failed)
    end;
open_store({InMemory, OnDisk}, Name, Directory) ->
    {dats, Opened} = open_store({none, OnDisk}, Name, Directory),
    {both, ats:new(?MODULE, InMemory), Opened}.

%% Indexes are made anew after a crash and retainers are gone, so neither must be behind the log.
-spec add_pending(ats_mnesia:alias(), tab(), properties(), store()) -> store().
add_pending(dats_disc, Tab, Properties, {dats, Name}) when is_atom(Tab) ->
    {pending, ats_mnesia_pending:new(proplists:get_value(type, Properties, set)), Name};
add_pending(_Alias, _Tab, _Properties, Store) ->
    Store.

-spec take_built(tab(), store()) -> boolean() | no.
take_built({_, index, _}, {dats, Name}) ->
    IsBuilt = dats:member(Name, element(1, ?BUILT)),
    is_boolean(IsBuilt) orelse throw(IsBuilt),
    done(dats:delete(Name, element(1, ?BUILT))),
    done(dats:sync(Name)),
    IsBuilt;
take_built(_Tab, _Store) ->
    no.

-spec close_if_open(tab(), #state{}) -> #state{}.
close_if_open(Tab, #state{open = Open} = State) ->
    case maps:take(Tab, Open) of
        {#open{store = Store, built = Built, replayed = IsReplayed}, Others} ->
            true = ats:delete(?STORES, Tab),
            Built =:= true andalso done(dats:insert(element(2, Store), ?BUILT)),
            close_store(Store),
            Closed = State#state{open = Others},
            case IsReplayed of
                true -> remove_indexes(Tab, Closed);
                false -> Closed
            end;
        error ->
            State
    end.

%% Closes a store, whose changes are durable then.
-spec close_store(store()) -> ok.
close_store({ats, Table}) ->
    true = ats:delete(Table),
    ok;
close_store({dats, Name}) ->
    done(dats:sync(Name)),
    done(dats:close(Name));
close_store({both, Table, Name}) ->
    ok = ats_mnesia_writer:flush(),
    close_store({ats, Table}),
    close_store({dats, Name});
close_store({pending, Pending, Name}) ->
    ok = ats_mnesia_writer:flush(),
    ok = ats_mnesia_pending:delete(Pending),
    close_store({dats, Name}).

-spec remove(ats_mnesia:alias(), tab(), #state{}) -> #state{}.
remove(Alias, Tab, State) ->
    Closed = stop_loading(Tab, close_if_open(Tab, State)),
    ok = remove_directories(directories(Tab)),
    ok = remove_dump(Alias, Tab),
    remove_indexes(Tab, Closed).

%% See `ats_mnesia_tables:load/4'.
-spec remove_dump(ats_mnesia:alias(), tab()) -> ok.
remove_dump(ats_ram, Tab) when is_atom(Tab) ->
    Files = [mnesia_lib:tab2dcd(Tab), mnesia_lib:tab2dcl(Tab)],
    _ = [file:delete(File) || mnesia_monitor:use_dir(), File <- Files],
    ok;
remove_dump(_Alias, _Tab) ->
    ok.

-spec remove_indexes(tab(), #state{}) -> #state{}.
remove_indexes(Tab, #state{open = Open} = State) when is_atom(Tab) ->
    Indexes = [Index || {MainTable, index, _} = Index <- maps:keys(Open), MainTable =:= Tab],
    Closed = lists:foldl(fun close_if_open/2, State, Indexes),
    ok = remove_directories(index_directories(Tab)),
    Closed;
remove_indexes(_Tab, State) ->
    State.

%% Mnesia replays its log into the table, and not into indexes, not even into one that the log adds.
%% So none is kept, and none is built until the table is closed.
-spec begin_replay(tab(), #state{}) -> #state{}.
begin_replay(Tab, State) ->
    #state{open = #{Tab := Table} = Open} = Removed = remove_indexes(Tab, State),
    Removed#state{open = Open#{Tab := Table#open{replayed = true}}}.

-spec is_replayed(atom(), #state{}) -> boolean().
is_replayed(Tab, #state{open = Open}) ->
    case Open of
        #{Tab := #open{replayed = IsReplayed}} -> IsReplayed;
        #{} -> false
    end.

-spec remove_directories([file:filename()]) -> ok.
remove_directories(Directories) ->
    lists:foreach(fun(Directory) ->
                          case dats:destroy(Directory) of
                              ok -> ok;
                              {ok, Foreign} -> throw({error, {not_empty, Directory, Foreign}});
                              {error, _} = Failed -> throw(Failed)
                          end
                  end, Directories).

-spec begin_loading(tab(), #state{}) -> #state{}.
begin_loading(Tab, State) ->
    #state{open = #{Tab := Open}, loading = Loading} = Stopped = stop_loading(Tab, State),
    #open{alias = Alias, properties = Properties} = Open,
    Options = case options(Alias, Tab, Properties) of
                  {InMemory, none} -> {InMemory, none};
                  {_, OnDisk} -> {none, OnDisk}
              end,
    Store = open_store(Options, {loading, Tab}, directory(Tab, Properties) ++ ?TEMPORARY_SUFFIX),
    true = ats:insert(?STORES, {{loading, Tab}, Store}),
    Stopped#state{loading = Loading#{Tab => Store}}.

-spec stop_loading(tab(), #state{}) -> #state{}.
stop_loading(Tab, #state{loading = Loading} = State) ->
    case maps:take(Tab, Loading) of
        {Store, Others} ->
            Directory = case Store of
                            {dats, Name} -> [dats:info(Name, filename)];
                            {ats, _} -> []
                        end,
            true = ats:delete(?STORES, {loading, Tab}),
            close_store(Store),
            ok = remove_directories(Directory),
            State#state{loading = Others};
        error ->
            State
    end.

%% The directories change places in one step, so after a crash the table is the old or the new one.
-spec replace(tab(), #state{}) -> #state{}.
replace(Tab, #state{open = Open, loading = Loading} = State) ->
    #{Tab := #open{alias = Alias, properties = Properties} = Table} = Open,
    {Received, Others} = maps:take(Tab, Loading),
    true = ats:delete(?STORES, {loading, Tab}),
    case Received of
        {ats, _} ->
            true = ats:insert(?STORES, {Tab, Received}),
            close_store(Table#open.store),
            State#state{open = Open#{Tab := Table#open{store = Received, filled = true}},
                        loading = Others};
        {dats, Name} ->
            Directory = directory(Tab, Properties),
            Temporary = dats:info(Name, filename),
            close_store(Received),
            Closed = remove_indexes(Tab, close_if_open(Tab, State#state{loading = Others})),
            done(dats:rename_table(Temporary, Directory)),
            open_table(Alias, Tab, Properties, Closed)
    end.

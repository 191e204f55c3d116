%% @private
%% @doc The tables of this node that servers keep, and the names under which they are found.
%%
%% A table is made anew when its server starts, and when that gets the snapshot of another member.
%% So no table on disk of an earlier time has to fit to the log.
-module(ats_ra_table).

-export([make/3, check/2, publish/2, find/1, delete/1]).

-export_type([config/0, table/0]).

-type config() :: {ats | dats, Options :: [term()]}.
-type table() :: {ats, ats:tid()} | {dats, dats:tab_name()}.

%% @doc Makes a table that cannot be found by its name yet. It needs no durability of its own, as
%% its objects are in the log. A table on disk begins with the objects of the table in the directory
%% `From'.
-spec make(Server :: atom(), config(), From :: file:filename() | none) -> table().
make(_Server, {ats, Options}, _From) ->
    %% A snapshot that is being written must not end.
    {ats, ats:new(?MODULE, [{snapshot_memory, infinity} | Options])};
make(Server, {dats, Options}, From) ->
    Unique = [erlang:system_time(), erlang:unique_integer([positive])],
    Dir = filename:join(directory(Server), io_lib:format("~b_~b", Unique)),
    ok = filelib:ensure_dir(Dir),
    _ = From =:= none orelse link(From, Dir, Options),
    {ok, Name} = open(Dir, [{durability, system} | Options]),
    {dats, Name}.

%% Makes a table of a closed one, by links to its files.
link(From, To, Options) ->
    {ok, Name} = open(From, Options),
    ok = dats:checkpoint(Name, To),
    ok = dats:close(Name).

%% @doc Returns `ok' if a closed table can be opened.
-spec check(file:filename(), config()) -> ok | {error, term()}.
check(Dir, {dats, Options}) ->
    case open(Dir, [{access, read} | Options]) of
        {ok, Name} -> dats:close(Name);
        Failed -> Failed
    end.

open(Dir, Options) -> dats:open_file({?MODULE, make_ref()}, [{file, Dir} | Options]).

%% @doc Publishes a table under its name, and removes the one before it.
-spec publish(Server :: atom(), table()) -> ok.
publish(Server, Table) ->
    _ = remove(find(Server)),
    ok = persistent_term:put({?MODULE, Server}, Table),
    Kept = [dats:info(Name, filename) || {dats, Name} <- [Table]],
    Dirs = filelib:wildcard(filename:join(directory(Server), "*")),
    lists:foreach(fun file:del_dir_r/1, Dirs -- Kept).

-spec find(Server :: atom()) -> table() | undefined.
find(Server) ->
    persistent_term:get({?MODULE, Server}, undefined).

%% @doc Removes the table for good.
-spec delete(Server :: atom()) -> ok.
delete(Server) ->
    _ = remove(find(Server)),
    _ = persistent_term:erase({?MODULE, Server}),
    _ = file:del_dir_r(directory(Server)),
    ok.

%% A table of an earlier server ended with that.
remove({ats, Id}) -> try ats:delete(Id) catch error:badarg -> true end;
remove({dats, Name}) -> dats:close(Name);
remove(undefined) -> true.

%% The directory is in that of the parameter `data_dir', or beside the logs of `ra'.
directory(Server) ->
    Dir = application:get_env(ats_ra, data_dir, filename:join(ra_env:data_dir(), "ats_ra")),
    filename:join(Dir, atom_to_list(Server)).

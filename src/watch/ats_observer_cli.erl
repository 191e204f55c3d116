%% @doc A sheet of tables for `observer_cli'.
%%
%% ```
%% {observer_cli, [{plugins, [#{module => ats_observer_cli, title => "Ats", interval => 1500,
%%                              shortcut => "A", sort_column => 4}]}]}
%% '''
%%
%% in the environment shows it under the key of `shortcut'. The keys of the columns sort: by name,
%% type, objects, bytes, locks, and share of writes that had to wait.
-module(ats_observer_cli).

-export([attributes/1, sheet_header/0, sheet_body/1]).

%% @doc Returns the lines above the sheet: sums over all tables in memory, and those on disk.
-spec attributes(State) -> {[[map()]], State}.
attributes(State) ->
    #{tables := Tables, size := Size, memory_bytes := Bytes} = ats_metrics:totals(),
    Disk = ats_metrics:disk(),
    Sum = fun(Item) -> lists:sum([maps:get(Item, Stats, 0) || {_, Stats} <- Disk]) end,
    {[[cell("Tables in memory", 20), cell(Tables, 18), cell("Objects", 20), cell(Size, 18),
       cell("Memory", 20), cell({byte, Bytes}, 18)],
      [cell("Tables on disk", 20), cell(length(Disk), 18), cell("Stalls", 20),
       cell(Sum(stalls), 18), cell("Files", 20), cell({byte, Sum(file_bytes)}, 18)]],
     State}.

-spec cell(term(), pos_integer()) -> map().
cell(Content, Width) -> #{content => Content, width => Width}.

%% @doc Returns the columns.
-spec sheet_header() -> [map()].
sheet_header() ->
    [#{title => "Name", width => 36, shortcut => "N"},
     #{title => "Type", width => 20, shortcut => "T"},
     #{title => "Objects", width => 18, shortcut => "O"},
     #{title => "Bytes", width => 18, shortcut => "B"},
     #{title => "Locks", width => 14, shortcut => "L"},
     #{title => "Waited %", width => 18, shortcut => "W"}].

%% @doc Returns a line for each table; tables of one name and type have one line.
-spec sheet_body(State) -> {[[term()]], State}.
sheet_body(State) ->
    {[[Name, Type, Size, Bytes, Locks, waited(Contended, Uncontended)]
      || #{name := Name, type := Type, size := Size, memory_bytes := Bytes, locks := Locks,
           contended := Contended, uncontended := Uncontended} <- ats_watch:tables(1000)],
     State}.

-spec waited(non_neg_integer(), non_neg_integer()) -> float().
waited(Contended, Uncontended) ->
    round(1000 * Contended / max(1, Contended + Uncontended)) / 10.

%% The backend of mnesia for tables of ats and dats, with a fault: to see that tests find it. Nodes
%% are told which fault by their arguments: see arguments/1.
-module(ats_faulty_backend).

-export([faults/0, arguments/1, types/0]).

-export_type([fault/0]).

-include("../support/ats_mnesia_backend.hrl").

-type fault() ::
    %% Absence of faults: it shows that findings do not come from this module.
    none
    %% Writes return before they are done.
    | answers_early
    %% Deletes are forgotten by the disk when they are written to memory and disk.
    | forgets_disk
    | forgets_deletes
    %% Old objects are still there after a copy has come from another node.
    | keeps_stale_objects
    %% One object of each chunk of a copy is missing.
    | loses_an_object.

-define(EARLY_MS, 40).

-spec faults() -> [fault()].
faults() ->
    [answers_early, forgets_disk, forgets_deletes, keeps_stale_objects, loses_an_object].

-spec arguments(fault()) -> [string()].
arguments(Fault) ->
    ["-ats", "planted_fault", atom_to_list(Fault)].

types() ->
    [{Alias, ?MODULE} || {Alias, _} <- ats_mnesia:types()].

callback(Function, Arguments) ->
    faulty(application:get_env(ats, planted_fault, none), Function, Arguments).

faulty(answers_early, Function, Arguments)
  when Function =:= insert; Function =:= delete; Function =:= match_delete ->
    _ = spawn(fun() ->
        timer:sleep(rand:uniform(?EARLY_MS)),
        right(Function, Arguments)
    end),
    ok;
faulty(forgets_disk, Function, [ats_disc, Tab, Argument])
  when Function =:= insert; Function =:= delete ->
    {both, Table, _} = ats_mnesia_tables:find(Tab),
    true = ats:Function(Table, Argument),
    ok;
faulty(forgets_deletes, delete, _) ->
    ok;
faulty(loses_an_object, receive_data, [[_ | Objects] | More]) ->
    right(receive_data, [Objects | More]);
faulty(keeps_stale_objects, receive_done, [Alias, Tab | _] = Arguments) ->
    Stale = ats_mnesia:select(Alias, Tab, [{'_', [], ['$_']}]),
    ok = right(receive_done, Arguments),
    lists:foreach(
        fun(Object) ->
            [] =/= ats_mnesia:lookup(Alias, Tab, element(2, Object)) orelse
                ats_mnesia:insert(Alias, Tab, Object)
        end,
        Stale
    );
%% The sender must know its like.
faulty(_, sender_init, [Alias, Tab, {ext, Remote, ?MODULE}, Receiver]) ->
    ats_mnesia:sender_init(Alias, Tab, {ext, Remote, ats_mnesia}, Receiver);
faulty(_, Function, Arguments) ->
    right(Function, Arguments).

right(Function, Arguments) ->
    apply(ats_mnesia, Function, Arguments).

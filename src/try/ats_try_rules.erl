%% @private
%% @doc Calls and atoms that see the inside of `ets', or that mean another thing in a copy, and a
%% sentence about each.
-module(ats_try_rules).

-export([call/4, call_in_variables/4, data/1, is_applying/2, self_process/0, unknown/0]).

-export_type([context/0, finding/0]).

-type context() :: #{lacking := [{atom(), arity()}], stays := boolean()}.
%% Functions of `ets' that `ats' does not have, and whether calls of `ets' in variables stay as they
%% are.

-type finding() :: {certain | if_ets, string()} | none.
%% A sentence, and whether it holds in any case, or only if a module in a variable is `ets'. A call
%% or an atom that does the same in a copy has none.

-define(UNKNOWN, '_').
%% The process that runs the code.
-define(SELF, 'self()').

-define(APPLYING, [{erlang, apply}, {erlang, spawn}, {erlang, spawn_link}, {erlang, spawn_monitor},
                   {erlang, make_fun}, {proc_lib, spawn}, {proc_lib, spawn_link}, {timer, tc}]).
-define(STAYS, "stays with ets, as the module has the atom for something else, too").
-define(NO_TABLES, "shows no tables of ats").

%% @doc Returns the term for a part of an argument that is not written out.
-spec unknown() -> atom().
unknown() -> ?UNKNOWN.

%% @doc Returns the term for the process that runs the code.
-spec self_process() -> atom().
self_process() -> ?SELF.

%% @doc Tells whether a function of three arguments calls that which they name.
-spec is_applying(module(), atom()) -> boolean().
is_applying(Module, Name) -> lists:member({Module, Name}, ?APPLYING).

%% @doc Returns the finding of a call.
-spec call(module(), atom(), Arguments :: [term()], context()) -> finding().
call(erlang, apply, [?UNKNOWN, Name, _], _) ->
    case lists:keymember(Name, 1, table_functions()) of
        true -> if_ets(io_lib:format("apply(_, ~tw, _)", [Name]));
        false -> none
    end;
call(Module, Name, Arguments, Context) ->
    case about(Module, Name, Arguments, Context) of
        none -> none;
        Words -> certain("~ts: ~ts", [shown(Module, Name, Arguments), Words])
    end.

%% @doc Returns the finding of a call whose module or function is in a variable.
-spec call_in_variables(term(), term(), arity(), context()) -> finding().
call_in_variables(ets, Name, Arity, #{stays := true}) ->
    certain("~ts: ~ts", [applied("ets", Name, Arity), ?STAYS]);
call_in_variables(?UNKNOWN, Name, Arity, _) ->
    case lists:member({Name, Arity}, table_functions()) of
        true -> if_ets(applied("_", Name, Arity));
        false -> none
    end;
call_in_variables(_, _, _, _) ->
    none.

%% @doc Returns the finding of an atom that is data.
-spec data(atom()) -> finding().
data(ets) ->
    certain("the atom ets is data, and stays", []);
data('ETS-TRANSFER') ->
    certain("'ETS-TRANSFER': of a table of ats, maybe after the 'DOWN' of its owner", []);
data(_) ->
    none.

-spec certain(io:format(), [term()]) -> finding().
certain(Format, Parts) ->
    {certain, unicode:characters_to_list(io_lib:format(Format, Parts))}.

-spec if_ets(unicode:chardata()) -> finding().
if_ets(Call) ->
    {certain, Text} = certain("~ts: stays with ets if that is the module in the variable", [Call]),
    {if_ets, Text}.

%%--------------------------------------------------------------------------------------------
%% Rules
%%--------------------------------------------------------------------------------------------

-spec about(module(), atom(), [term()], context()) -> string() | none.
about(ets, Name, Arguments, #{lacking := Lacking}) ->
    case lists:member({Name, length(Arguments)}, Lacking) of
        true -> "stays with ets, as ats does not have the function";
        false -> of_ets(Name, Arguments)
    end;
about(Module, Name, Arguments, Context) ->
    case from_outside(Module, Name, Arguments) of
        none -> with_atom(Module, Name, Arguments, Context);
        Words -> Words
    end.

%% Calls that go to `ats' in a copy.
-spec of_ets(atom(), [term()]) -> string() | none.
of_ets(info, [_]) -> "the memory has other numbers, in words as in ets";
of_ets(info, [_, Item]) -> item(Item);
of_ets(all, []) -> "returns the tables of ats, and those of ets no more";
of_ets(i, []) -> "prints the tables of ats, and those of ets no more";
of_ets(i, [_ | _]) -> "prints objects in the order of ats";
of_ets(slot, [_, _]) -> "objects are in other slots, and their number is another one";
of_ets(table, [_ | _]) -> "each walk shows the table of one moment, and qlc:info/1 names ats";
of_ets(match_spec_compile, [_]) -> "the result is one of ats alone";
of_ets(fun2ms, [_ | _]) -> "was not translated by the compiler, and fails as in ets";
of_ets(module_info, _) -> "tells of the module ats";
of_ets(_, _) -> none.

-spec item(term()) -> string() | none.
item(memory) -> "other numbers, in words as in ets";
item(stats) -> "a map of figures about the structures of ats";
item(Fixed) when Fixed =:= safe_fixed; Fixed =:= safe_fixed_monotonic_time; Fixed =:= fixed ->
    "a select under way fixes no table, and is not shown";
item(binary) -> "lists other binaries, as small ones are copied";
item(data) -> "badarg, as ats does not know the item";
item(?UNKNOWN) -> "memory, stats, safe_fixed and binary have other values than in ets";
item(_) -> none.

%% Calls that look at `ets' from outside, and stay as they are.
-spec from_outside(module(), atom(), [term()]) -> string() | none.
from_outside(erlang, memory, []) -> "counts no tables of ats, neither in ets nor in total";
from_outside(erlang, memory, [Kinds]) ->
    case [Kind || Kind <- [ets, total], Kind =:= Kinds orelse is_in(Kind, Kinds)] of
        [] -> none;
        _ -> "counts no tables of ats"
    end;
from_outside(erlang, system_info, [ets_limit]) -> "the number is no limit of tables of ats";
from_outside(erlang, system_info, [ets_count]) -> "counts no tables of ats";
from_outside(erlang, system_info, [{Kind, ets_alloc}])
  when Kind =:= allocator; Kind =:= allocator_sizes ->
    "tables of ats are in no allocator of the emulator";
from_outside(erts_debug, Name, _)
  when Name =:= get_internal_state; Name =:= set_internal_state ->
    "the emulator knows no tables of ats";
from_outside(instrument, Name, _) when Name =:= allocations; Name =:= carriers ->
    "tables of ats are in no allocator of the emulator";
from_outside(erlang, process_info, [?SELF | _]) -> none;
from_outside(erlang, process_info, [_]) ->
    names_functions();
from_outside(erlang, process_info, [_, Items]) ->
    Stacks = [current_function, current_location, current_stacktrace],
    case [Item || Item <- Stacks, Item =:= Items orelse is_in(Item, Items)] of
        [] -> none;
        _ -> names_functions()
    end;
from_outside(erlang, load_nif, _) -> native();
from_outside(erl_ddll, Name, _)
  when Name =:= load; Name =:= load_driver; Name =:= reload; Name =:= reload_driver;
       Name =:= try_load -> native();
from_outside(sys, Name, _)
  when Name =:= get_state; Name =:= get_status; Name =:= replace_state ->
    "a table in the state is one of ats if the process runs copied code";
from_outside(mnesia, create_table, _) -> "the table is in ats only if Mnesia is copied, too";
from_outside(mnesia, table_info, [_, memory]) ->
    "other numbers than with ets if Mnesia is copied, too";
from_outside(mnesia, ets, _) -> "works as before: a kind of access of Mnesia";
from_outside(mnesia, activity, [ets | _]) -> "works as before: a kind of access of Mnesia";
from_outside(observer, _, _) -> ?NO_TABLES;
from_outside(observer_backend, Name, _)
  when Name =:= get_table; Name =:= get_table_list; Name =:= sys_info; Name =:= etop_collect ->
    ?NO_TABLES;
from_outside(crashdump_viewer, _, _) -> ?NO_TABLES;
from_outside(etop, _, _) -> "its memory of ets has no tables of ats";
from_outside(_, _, _) -> none.

-spec names_functions() -> string().
names_functions() -> "may name functions of ats in the place of ets".

-spec native() -> string().
native() -> "native code is not looked into".

%% Calls that get the atom `ets' in an argument.
-spec with_atom(module(), atom(), [term()], context()) -> string() | none.
with_atom(Module, Name, Arguments, #{stays := Stays}) ->
    case is_in(ets, Arguments) of
        false ->
            none;
        true ->
            case kind(Module, Name, Arguments) of
                applies when not Stays -> none;
                applies -> ?STAYS;
                on_node -> "ets of the node has no tables of copies";
                traces -> "sees calls of ets, and copies call ats";
                replaces -> "replaces ets, and copies call ats";
                other -> "gets the atom ets, which stays"
            end
    end.

-spec kind(module(), atom(), [term()]) -> applies | on_node | traces | replaces | other.
kind(erlang, trace_pattern, _) -> traces;
kind(Module, _, _) when Module =:= rpc; Module =:= erpc -> on_node;
kind(Module, _, _)
  when Module =:= dbg; Module =:= trace; Module =:= ttb; Module =:= redbug;
       Module =:= recon_trace ->
    traces;
kind(Module, _, _)
  when Module =:= meck; Module =:= 'Elixir.Mimic'; Module =:= 'Elixir.Mock';
       Module =:= 'Elixir.Patch' ->
    replaces;
kind(Module, Name, [ets, _, _]) ->
    case is_applying(Module, Name) of
        true -> applies;
        false -> other
    end;
kind(erlang, Name, [_, ets | _]) ->
    case lists:member(Name, [spawn, spawn_link, spawn_monitor, spawn_opt]) of
        true -> on_node;
        false -> other
    end;
kind(_, _, _) -> other.

-spec is_in(atom(), term()) -> boolean().
is_in(Atom, Term) ->
    ats_try_terms:fold(fun(Part, Found) -> Found orelse Part =:= Atom end, false, Term).

%% Functions of `ets' that a module in a variable may be called with.
-spec table_functions() -> [{atom(), arity()}].
table_functions() -> ets:module_info(exports) -- [{module_info, 0}, {module_info, 1}].

%%--------------------------------------------------------------------------------------------
%% Text
%%--------------------------------------------------------------------------------------------

-spec shown(module(), atom(), [term()]) -> unicode:chardata().
shown(Module, Name, Arguments) ->
    Texts = lists:join(", ", [argument(Argument) || Argument <- Arguments]),
    io_lib:format("~tw:~tw(~ts)", [Module, Name, Texts]).

-spec argument(term()) -> unicode:chardata().
argument(Term) ->
    lists:foldl(fun(Atom, Text) ->
                        string:replace(Text, io_lib:format("~tw", [Atom]), atom_to_list(Atom), all)
                end, io_lib:format("~tP", [Term, 6]), [?UNKNOWN, ?SELF]).

-spec applied(string(), term(), arity()) -> unicode:chardata().
applied(Module, ?UNKNOWN, Arity) -> io_lib:format("~ts:_/~b", [Module, Arity]);
applied(Module, Name, Arity) -> io_lib:format("~ts:~tw/~b", [Module, Name, Arity]).

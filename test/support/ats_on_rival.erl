%% The module `ats' with tables in the stores for comparison that suit their types, for the oracle:
%% ATS_SUBJECT names this module. ATS_RIVAL names the store of an `ordered_set'.
-module(ats_on_rival).

-export([ordered/0, new/2, '$handle_undefined_function'/2]).

new(Name, Options) ->
    ats_subject:call(?MODULE, new, [Name, [{backend, backend(Options, hash_map)} | Options]],
                     [Name, Options]).

'$handle_undefined_function'(Function, Arguments) ->
    ats_subject:call(?MODULE, Function, Arguments, Arguments).

%% The stores for an `ordered_set'.
ordered() -> [skip_list, lock_free_tree].

%% The last of several types wins, except that `set' changes nothing.
backend([ordered_set | Options], _) ->
    backend(Options, list_to_existing_atom(os:getenv("ATS_RIVAL", "skip_list")));
backend([Type | Options], _) when Type =:= bag; Type =:= duplicate_bag ->
    backend(Options, hash_map);
backend([_ | Options], Backend) -> backend(Options, Backend);
backend(_, Backend) -> Backend.

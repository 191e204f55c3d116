%% The module `ats' with tables on a plain B-tree, for the oracle: ATS_SUBJECT names this module.
-module(ats_on_btree).

-export([new/2, '$handle_undefined_function'/2]).

new(Name, Options) ->
    ats_subject:call(?MODULE, new, [Name, [{backend, btree} | Options]], [Name, Options]).

'$handle_undefined_function'(Function, Arguments) ->
    ats_subject:call(?MODULE, Function, Arguments, Arguments).

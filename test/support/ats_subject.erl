%% Functions that modules share which stand for `ats' with tables of another kind, for the oracle:
%% see ats_on_btree and ats_on_disk.
-module(ats_subject).

-export([call/4]).

%% Calls a function of `ats' for a module that was called with other arguments. An exception looks
%% as if it came from there.
-spec call(module(), atom(), [term()], [term()]) -> term().
call(Module, Function, Arguments, Told) ->
    try
        apply(ats, Function, Arguments)
    catch
        Class:Reason:Stack -> erlang:raise(Class, Reason, here(Module, Function, Told, Stack))
    end.

here(Module, Function, Told, [{ats, Function, _, Location} | Callers]) ->
    [{Module, Function, Told, Location} | Callers];
here(Module, _, _, [{ats, Inner, Arguments, Location} | Callers]) ->
    [{Module, Inner, Arguments, Location} | Callers];
here(_, _, _, Stack) ->
    Stack.

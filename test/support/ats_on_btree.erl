%% The module `ats' with tables on a plain B-tree: what the oracle runs when ATS_SUBJECT names this module.
-module(ats_on_btree).

-export([new/2, '$handle_undefined_function'/2]).

new(Name, Options) ->
    call(new, [Name, [{backend, btree} | Options]], [Name, Options]).

'$handle_undefined_function'(Function, Arguments) ->
    call(Function, Arguments, Arguments).

%% An exception looks as if it came from here.
call(Function, Arguments, Told) ->
    try
        apply(ats, Function, Arguments)
    catch
        Class:Reason:Stack -> erlang:raise(Class, Reason, here(Function, Told, Stack))
    end.

here(Function, Told, [{ats, Function, _, Location} | Callers]) ->
    [{?MODULE, Function, Told, Location} | Callers];
here(_, _, [{ats, Inner, Arguments, Location} | Callers]) ->
    [{?MODULE, Inner, Arguments, Location} | Callers];
here(_, _, Stack) ->
    Stack.

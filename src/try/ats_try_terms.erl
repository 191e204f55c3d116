%% @private
%% @doc Parts of terms in compiled modules.
-module(ats_try_terms).

-export([fold/3, funs/1, name_of/1]).

%% @doc Goes through the parts of a term that have no parts of their own.
-spec fold(fun((term(), Acc) -> Acc), Acc, term()) -> Acc.
fold(Fun, Acc, [First | Rest]) -> fold(Fun, fold(Fun, Acc, First), Rest);
fold(Fun, Acc, Tuple) when is_tuple(Tuple) -> fold(Fun, Acc, tuple_to_list(Tuple));
fold(Fun, Acc, Map) when is_map(Map) -> fold(Fun, Acc, maps:to_list(Map));
fold(Fun, Acc, Term) -> Fun(Term, Acc).

%% @doc Returns the functions of `ets' that are in a term as funs, which literals of modules are.
-spec funs(term()) -> [{atom(), arity()}].
funs(Term) ->
    fold(fun(Fun, Found) when is_function(Fun) ->
                 case erlang:fun_info(Fun, module) of
                     {module, ets} -> [name_of(Fun) | Found];
                     _ -> Found
                 end;
            (_, Found) ->
                 Found
         end, [], Term).

%% @doc Returns the name of the function that a fun calls.
-spec name_of(fun()) -> {atom(), arity()}.
name_of(Fun) ->
    {name, Name} = erlang:fun_info(Fun, name),
    {arity, Arity} = erlang:fun_info(Fun, arity),
    {Name, Arity}.

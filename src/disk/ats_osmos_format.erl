%% @private
%% @doc Formats of tables as programs of osmos tell them: records with functions.
%%
%% A function that is exported has a name, which the directory of a table can remember; any other is
%% refused. Functions of osmos itself that mean the same as a merge that the store knows are
%% replaced by that merge.
-module(ats_osmos_format).

-include("ats_osmos.hrl").

-export([options/1]).

-type option() :: dats:option() | {merge, {module, ats_merge:program()}}.

%% The module of osmos that has the functions of its own formats.
-define(OSMOS, osmos_table_format).

%% @doc Returns the options of `dats:open_file/2' for a format. Throws `{unsupported, {Field,
%% Value}}'.
-spec options(#osmos_table_format{}) -> [option() | {formats, term()}].
options(#osmos_table_format{block_size = BlockSize, key_format = Key, key_less = Less,
                            value_format = Value, merge = Merge, short_circuit = ShortCircuit,
                            delete = Delete}) ->
    KeyFormat = case is_order_of_terms(Less) of
                    true -> term;
                    false -> format(key_format, Key)
                end,
    {Values, Merges} = merge({name(merge, Merge, 3), name(short_circuit, ShortCircuit, 2),
                              name(delete, Delete, 2)}),
    ValueFormat = case Values of
                      as_terms -> term;
                      as_told -> format(value_format, Value)
                  end,
    [{block_size, BlockSize}, {formats, {KeyFormat, ValueFormat}} | Merges].

-spec is_order_of_terms(term()) -> boolean().
is_order_of_terms(bytes) ->
    false;
is_order_of_terms(Less) when is_function(Less, 2) ->
    case name(key_less, Less, 2) of
        {erlang, '<'} -> true;
        {?OSMOS, erlang_less} -> true;
        _ -> throw({unsupported, {key_less, Less}})
    end;
is_order_of_terms(Other) ->
    throw({unsupported, {key_less, Other}}).

-spec format(atom(), term()) -> ats_format:given().
format(Field, #osmos_format{to_binary = Encode, from_binary = Decode}) ->
    case {name(Field, Encode, 1), name(Field, Decode, 1)} of
        {{erlang, term_to_binary}, {erlang, binary_to_term}} -> term;
        {Encoder, Decoder} -> {functions, Encoder, Decoder}
    end;
format(Field, Other) ->
    throw({unsupported, {Field, Other}}).

%% Returns the module and the name of a function that is exported.
-spec name(atom(), term(), arity()) -> ats_merge:function_name().
name(Field, Function, Arity) when is_function(Function, Arity) ->
    case erlang:fun_info(Function, type) of
        {type, external} ->
            {module, Module} = erlang:fun_info(Function, module),
            {name, Name} = erlang:fun_info(Function, name),
            {Module, Name};
        {type, local} ->
            throw({unsupported, {Field, Function}})
    end;
name(Field, Other, _Arity) ->
    throw({unsupported, {Field, Other}}).

%% Returns how values are kept, and the options of their merge.
-spec merge({ats_merge:function_name(), ats_merge:function_name(), ats_merge:function_name()}) ->
          {as_told | as_terms, [option()]}.
merge({{?OSMOS, merge_return_later}, {?OSMOS, always}, {?OSMOS, never}}) ->
    {as_told, []};
merge({{?OSMOS, merge_uint64_sum_delete}, Delete, Delete})
  when Delete =:= {?OSMOS, value_is_delete} ->
    {as_terms, [{merge, sum}]};
merge({{?OSMOS, merge_uint64_vector_sum_delete}, Delete, Delete})
  when Delete =:= {?OSMOS, value_is_delete} ->
    {as_terms, [{merge, {module, ats_osmos_vector}}]};
merge({{Module, merge}, {Module, short_circuit}, {Module, delete}} = Functions) ->
    _ = code:ensure_loaded(Module),
    case erlang:function_exported(Module, version, 0) of
        true -> {as_told, [{merge, {module, Module}}]};
        false -> {as_told, functions(Functions)}
    end;
merge(Functions) ->
    {as_told, functions(Functions)}.

-spec functions({ats_merge:function_name(), ats_merge:function_name(),
                 ats_merge:function_name()}) -> [option()].
functions({Merge, ShortCircuit, Delete}) ->
    [{merge, {module, {functions, own(merge, Merge, 3), own(short_circuit, ShortCircuit, 2),
                       own(delete, Delete, 2)}}}].

%% A function that osmos has itself is one of ours, so that the table needs no osmos.
-spec own(atom(), ats_merge:function_name(), arity()) -> ats_merge:function_name().
own(Field, {?OSMOS, Name}, Arity) ->
    case lists:member({Name, Arity}, ats_osmos_functions:module_info(exports)) of
        true -> {ats_osmos_functions, Name};
        false -> throw({unsupported, {Field, fun ?OSMOS:Name/Arity}})
    end;
own(_Field, Function, _Arity) ->
    Function.

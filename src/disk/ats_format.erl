%% @doc Formats of keys and values that a program has of its own, for tables on disk.
%%
%% A table keeps keys and values as terms. A program that wants other bytes on disk writes a
%% module with this behaviour, and names it when it makes the table, with `dats:open/2':
%%
%% ```
%% -module(ip_address).
%% -behaviour(ats_format).
%% -export([encode/1, decode/1, version/0]).
%%
%% encode({A, B, C, D}) -> <<A, B, C, D>>.
%% decode(<<A, B, C, D>>) -> {A, B, C, D}.
%% version() -> 1.
%% '''
%%
%% == Laws ==
%%
%% <ul>
%% <li>`decode(encode(Term))' is the term again.</li>
%% <li>The bytes of keys have the order that the keys shall have: as binaries, they are compared
%% byte by byte. Keys with the same bytes are the same key.</li>
%% <li>Both are functions of their arguments. They are called by the process that reads or writes,
%% and by those that merge.</li>
%% <li>`version()' changes whenever one of the others changes its meaning: data that was written
%% under one version is read by no other.</li>
%% </ul>
%%
%% A term that cannot be encoded raises `badarg'. Bytes that cannot be decoded are answered by
%% `{error, {format_failed, Directory, Failure}}'.
-module(ats_format).

-export([check/1, check_stored/1, of_table/1, are_formats/1]).
-export([key/2, value/2, decode_key/2, decode_pair/2, decode_value/2]).

-export_type([format/0, formats/0, given/0, version/0]).

-type version() :: 0..16#FFFFFFFF.
-type given() :: term | {module, module()}
               | {functions, Encode :: {module(), atom()}, Decode :: {module(), atom()}}.
%% The name that a program gives a format.
-type format() :: term | {module, module(), version()}
                | {functions, Encode :: {module(), atom()}, Decode :: {module(), atom()}}.
%% A format as a table remembers it. Functions have no version.
-type formats() :: none | {Key :: format(), Value :: format()}.

-callback encode(term()) -> binary().
-callback decode(binary()) -> term().
-callback version() -> version().

-define(CALLBACKS, [{encode, 1}, {decode, 1}, {version, 0}]).

%% @doc Checks that the functions of a format are there.
-spec check(given() | term()) -> {ok, format()} | {error, ats_merge:check_error()} | badarg.
check(term) ->
    {ok, term};
check({module, Module}) ->
    case ats_merge:check(Module, ?CALLBACKS) of
        {ok, Version} -> {ok, {module, Module, Version}};
        {error, {not_a_module, _}} -> badarg;
        {error, _} = Wrong -> Wrong
    end;
check({functions, {Encoder, Encode}, {Decoder, Decode}} = Functions)
  when is_atom(Encoder), is_atom(Encode), is_atom(Decoder), is_atom(Decode) ->
    case ats_merge:check_functions([{{Encoder, Encode}, 1}, {{Decoder, Decode}, 1}]) of
        ok -> {ok, Functions};
        {error, _} = Wrong -> Wrong
    end;
check(_Other) ->
    badarg.

%% @doc Checks that the formats that a table remembers are there, of the same version.
-spec check_stored(formats()) -> ok | {error, ats_merge:check_error()}.
check_stored(none) ->
    ok;
check_stored({Key, Value}) ->
    case check_same(Key) of
        ok -> check_same(Value);
        Wrong -> Wrong
    end.

-spec check_same(format()) -> ok | {error, ats_merge:check_error()}.
check_same({module, Module, Version} = Format) ->
    case check({module, Module}) of
        {ok, Format} -> ok;
        {ok, {module, Module, Other}} ->
            {error, {failed, {Module, version, {other_version, Version, Other}}}};
        {error, _} = Wrong -> Wrong
    end;
check_same(Format) ->
    case check(Format) of
        {ok, Format} -> ok;
        Wrong -> Wrong
    end.

%% @doc Returns the formats of an open table, or of a snapshot of one.
-spec of_table(ats:tid()) -> formats().
of_table(Table) ->
    case ats_nif:disk_format(Table) of
        none -> none;
        Bytes -> binary_to_term(Bytes)
    end.

%% @doc Returns `true' if {@link of_table/1} may return a term.
-spec are_formats(term()) -> boolean().
are_formats(none) -> true;
are_formats({Key, Value}) -> is_format(Key) andalso is_format(Value);
are_formats(_) -> false.

-spec is_format(term()) -> boolean().
is_format(term) -> true;
is_format({module, Module, _Version}) -> is_atom(Module);
is_format({functions, {A, B}, {C, D}}) -> lists:all(fun erlang:is_atom/1, [A, B, C, D]);
is_format(_) -> false.

%% @doc Returns a key as the table keeps it.
-spec key(formats(), Key :: term()) -> term().
key(none, Key) -> Key;
key({Format, _}, Key) -> encode(Format, Key, key_format).

%% @doc Returns a value as the table keeps it.
-spec value(formats(), Value :: term()) -> term().
value(none, Value) -> Value;
value({_, Format}, Value) -> encode(Format, Value, value_format).

-spec encode(format(), term(), key_format | value_format) -> term().
encode(term, Term, _Cause) ->
    Term;
encode(Format, Term, Cause) ->
    {Module, Function} = encoder(Format),
    try Module:Function(Term) of
        Bytes when is_binary(Bytes) -> Bytes;
        Other -> erlang:error({ats_error, {Cause, {Module, Function, {returned, Other}}}})
    catch
        Class:Reason:Stack ->
            Failure = {Module, Function, {raised, Class, Reason, Stack}},
            erlang:error({ats_error, {Cause, Failure}})
    end.

%% @doc Returns a key as the program has it.
-spec decode_key(formats(), term()) -> term().
decode_key(none, Key) -> Key;
decode_key({Format, _}, Key) -> decode(Format, Key).

%% @doc Returns a value as the program has it.
-spec decode_value(formats(), term()) -> term().
decode_value(none, Value) -> Value;
decode_value({_, Format}, Value) -> decode(Format, Value).

%% @doc Returns key and value of an object that has both, as the program has them.
-spec decode_pair(formats(), tuple()) -> {Key :: term(), Value :: term()}.
decode_pair(Formats, Object) ->
    {decode_key(Formats, element(1, Object)), decode_value(Formats, element(2, Object))}.

-spec decode(format(), term()) -> term().
decode(term, Term) ->
    Term;
decode(Format, Bytes) ->
    {Module, Function} = decoder(Format),
    try Module:Function(Bytes)
    catch
        Class:Reason:Stack ->
            Failure = {Module, Function, {raised, Class, Reason, Stack}},
            erlang:error({ats_error, {format_failed, Failure}})
    end.

-spec encoder(format()) -> {module(), atom()}.
encoder({module, Module, _Version}) -> {Module, encode};
encoder({functions, Encode, _Decode}) -> Encode.

-spec decoder(format()) -> {module(), atom()}.
decoder({module, Module, _Version}) -> {Module, decode};
decoder({functions, _Encode, Decode}) -> Decode.

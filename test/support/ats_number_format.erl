%% A format of numbers of 32 bits, and the functions of a format that is told by functions.
-module(ats_number_format).

-behaviour(ats_format).

-export([encode/1, decode/1, version/0, to_binary/1, from_binary/1, not_a_binary/1]).
-export([larger/3, is_million/2]).

-spec encode(term()) -> binary().
encode(N) when N >= 0, N < 1 bsl 32 -> <<N:32>>.

-spec decode(binary()) -> term().
decode(<<N:32>>) -> N.

-spec version() -> ats_format:version().
version() -> 1.

-spec to_binary(term()) -> binary().
to_binary(Term) -> encode(Term).

-spec from_binary(binary()) -> term().
from_binary(Bytes) -> decode(Bytes).

-spec not_a_binary(term()) -> term().
not_a_binary(Term) -> [Term].

%% A merge under a name of its own, of numbers up to a million. It does not like 13.
-spec larger(term(), non_neg_integer(), non_neg_integer()) -> non_neg_integer().
larger(_Key, 13, _Later) -> error(unlucky);
larger(_Key, Earlier, Later) -> max(Earlier, Later).

-spec is_million(term(), non_neg_integer()) -> boolean().
is_million(_Key, Value) -> Value =:= 1_000_000.

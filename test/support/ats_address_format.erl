%% A format of addresses, four numbers from 0 to 255, whose bytes have another order than the terms:
%% the last number counts first. The test sets the version.
-module(ats_address_format).

-behaviour(ats_format).

-export([encode/1, decode/1, version/0]).

-spec encode(term()) -> binary().
encode({A, B, C, D}) -> <<D, C, B, A>>.

-spec decode(binary()) -> term().
decode(<<D, C, B, A>>) -> {A, B, C, D}.

-spec version() -> ats_format:version().
version() -> persistent_term:get(?MODULE, 1).

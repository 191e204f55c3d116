%% The hook that suites of Erlang/OTP name, which is not part of an installation. It gives names of
%% nodes to a suite that wants some.
-module(ts_install_cth).

-export([id/1, init/2, pre_init_per_testcase/4]).

id(Options) -> {?MODULE, Options}.

init(_, Options) -> {ok, proplists:get_value(nodenames, Options, 0)}.

pre_init_per_testcase(_, Case, Config, Count) ->
    Names = [list_to_atom(lists:concat([Case, "_", erlang:unique_integer([positive]), "_", N]))
             || N <- lists:seq(1, Count)],
    {lists:keystore(nodenames, 1, Config, {nodenames, Names}), Count}.

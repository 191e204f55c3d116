%% @private The loops of the benchmark for `ets'.
-module(ats_bench_ets).

-define(TABLES, ets).
-define(LOOKUP_MANY(Table, Keys), [ets:lookup(Table, Key) || Key <- Keys]).
-include("ats_bench_loops.hrl").

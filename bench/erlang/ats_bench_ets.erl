%% @private The loops of the benchmark for `ets'.
-module(ats_bench_ets).

-define(TABLES, ets).
-include("ats_bench_loops.hrl").

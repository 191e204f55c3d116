%% @private The loops of the benchmark for `ats'.
-module(ats_bench_ats).

-define(TABLES, ats).
-include("ats_bench_loops.hrl").

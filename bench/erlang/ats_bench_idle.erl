%% @private The loops of the benchmark for tables that do nothing: the cost of the loops themselves.
-module(ats_bench_idle).

-define(TABLES, ats_bench_nothing).
-include("ats_bench_loops.hrl").

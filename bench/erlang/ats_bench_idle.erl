%% @private The loops of the benchmark for tables that do nothing: the cost of the loops themselves.
-module(ats_bench_idle).

-define(TABLES, ats_bench_nothing).
-define(LOOKUP_MANY(Table, Keys), begin _ = Table, length(Keys) end).
-include("ats_bench_loops.hrl").

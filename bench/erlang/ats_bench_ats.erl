%% @private The loops of the benchmark for `ats'.
-module(ats_bench_ats).

-define(TABLES, ats).
-define(LOOKUP_MANY(Table, Keys), ats:lookup_many(Table, Keys)).
-include("ats_bench_loops.hrl").

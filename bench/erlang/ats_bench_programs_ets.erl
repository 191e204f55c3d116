%% @private The everyday programs on tables of `ets'.
-module(ats_bench_programs_ets).

-define(TABLES, ets).
-include("ats_bench_programs.hrl").

%% @private The everyday programs on tables of `ats'.
-module(ats_bench_programs_ats).

-define(TABLES, ats).
-include("ats_bench_programs.hrl").

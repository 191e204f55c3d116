%% Makes match specifications of the funs in calls of `ats:fun2ms/1', and of `ets:fun2ms/1'.
-compile({parse_transform, ats_ms_transform}).

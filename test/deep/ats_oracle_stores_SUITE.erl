%% The comparisons of ats_oracle_SUITE, in stores that tables have not by default.
-module(ats_oracle_stores_SUITE).

-export([all/0, suite/0, init_per_suite/1, end_per_suite/1]).
-export([on_a_store_of_bytes/1, on_rivals/1, on_disk/1]).

suite() -> ats_oracle_SUITE:suite().

all() -> [on_a_store_of_bytes, on_rivals, on_disk].

init_per_suite(Config) -> ats_oracle_SUITE:init_per_suite(Config).

end_per_suite(_) -> ok.

%% An eighth of the commands, on tables whose objects are bytes in a plain B-tree.
on_a_store_of_bytes(_) ->
    on(ats_on_btree, btree, 1 / 8).

%% An eighth, in the stores for comparison.
on_rivals(_) ->
    Rivals = ats_on_rival:ordered(),
    lists:foreach(
        fun(Rival) ->
            os:putenv("ATS_RIVAL", atom_to_list(Rival)),
            try
                Rival = ats:info(ats_on_rival:new(t, [ordered_set]), backend),
                on(ats_on_rival, hash_map, 1 / (8 * length(Rivals)))
            after
                os:unsetenv("ATS_RIVAL")
            end
        end,
        Rivals
    ).

%% A quarter, on tables on disk, which are closed, killed, opened, flushed and merged all the time.
on_disk(_) ->
    on(ats_on_disk, btree, 1 / 4).

on(Subject, Backend, Part) ->
    case ats_oracle:subject() of
        ats ->
            Commands = integer_to_list(ats_oracle_SUITE:commands(196000)),
            Soak = os:getenv("ATS_SOAK_SECONDS", "0"),
            Share = fun(Number) -> integer_to_list(round(list_to_integer(Number) * Part)) end,
            os:putenv("ATS_SUBJECT", atom_to_list(Subject)),
            os:putenv("ATS_ORACLE_COMMANDS", Share(Commands)),
            os:putenv("ATS_SOAK_SECONDS", Share(Soak)),
            try
                Backend = Subject:info(Subject:new(t, []), backend),
                ats_oracle_SUITE:compare_everything()
            after
                os:unsetenv("ATS_SUBJECT"),
                os:putenv("ATS_ORACLE_COMMANDS", Commands),
                os:putenv("ATS_SOAK_SECONDS", Soak)
            end;
        _ ->
            {skip, "only ats has other stores"}
    end.

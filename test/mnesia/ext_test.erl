%% The storage types that the test suites of mnesia know, as those of ats_mnesia. The suites bring a
%% module of this name, whose place this one takes: so their cases with tables of an external type
%% run on ours. Besides the names of the types nothing is changed on the way.
-module(ext_test).

-include("../support/ats_mnesia_backend.hrl").

callback(Function, [Aliases]) when Function =:= add_aliases; Function =:= remove_aliases ->
    apply(ats_mnesia, Function, [lists:map(fun ours/1, Aliases)]);
callback(Function, Arguments) ->
    apply(ats_mnesia, Function, lists:map(fun ours/1, Arguments)).

%% Erlang/OTP 25 has the first two, 27 the others.
ours(ext_ets) -> ats_ram;
ours(ext_dets) -> dats_disc;
ours(ext_ram_copies) -> ats_ram;
ours(ext_disc_only_copies) -> dats_disc;
%% Returns the storage of another node.
ours({ext, Alias, ?MODULE}) -> {ext, ours(Alias), ats_mnesia};
ours(Other) -> Other.

%% A supervisor of these children.
-module(ats_test_supervisor).

-behaviour(supervisor).

-export([start_link/1, start_link/2, init/1]).

-spec start_link([supervisor:child_spec()]) -> {ok, pid()}.
start_link(Children) ->
    start_link(#{}, Children).

-spec start_link(supervisor:sup_flags(), [supervisor:child_spec()]) -> {ok, pid()}.
start_link(Flags, Children) ->
    {ok, _} = supervisor:start_link(?MODULE, {Flags, Children}).

-spec init(Description) -> {ok, Description}
              when Description :: {supervisor:sup_flags(), [supervisor:child_spec()]}.
init(Description) ->
    {ok, Description}.

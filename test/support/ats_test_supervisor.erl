%% A supervisor of these children.
-module(ats_test_supervisor).

-behaviour(supervisor).

-export([start_link/1, init/1]).

-spec start_link([supervisor:child_spec()]) -> {ok, pid()}.
start_link(Children) ->
    {ok, _} = supervisor:start_link(?MODULE, Children).

-spec init([supervisor:child_spec()]) -> {ok, {supervisor:sup_flags(), [supervisor:child_spec()]}}.
init(Children) ->
    {ok, {#{}, Children}}.

%% @private
%% @doc Reads the options of `ats:setopts/2', which change a table that is there.
-module(ats_changes).

-export([parse/1, wrong/1, known/0, owner/1]).

%% The changes of no option.
-define(NO_CHANGES, {false, undefined, false, false}).

%% @doc Reads the options of {@link ats:setopts/2}: one option or a list, none of them twice.
-spec parse(term()) -> ats_nif:changes() | error.
parse(Options) when is_list(Options) ->
    changes(Options, ?NO_CHANGES);
parse(Option) ->
    parse([Option]).

%% @doc Says which option of {@link ats:setopts/2} is wrong.
-spec wrong(term()) -> binary().
wrong(Options) when is_list(Options) ->
    IsRight = fun(Option) -> changes([Option], ?NO_CHANGES) =/= error end,
    ats_hints:options(Options, known(), IsRight, "an option is there twice");
wrong(Option) ->
    wrong([Option]).

-spec changes(term(), ats_nif:changes()) -> ats_nif:changes() | error.
changes([{heir, none} | Rest], {false, _, Protection, Owner}) ->
    changes(Rest, {none, undefined, Protection, Owner});
changes([{heir, Pid, Data} | Rest], {false, _, Protection, Owner})
  when is_pid(Pid), node(Pid) =:= node() ->
    changes(Rest, {Pid, Data, Protection, Owner});
changes([{protection, Wanted} | Rest], {Heir, Data, false, Owner})
  when Wanted =:= public; Wanted =:= protected; Wanted =:= private ->
    changes(Rest, {Heir, Data, Wanted, Owner});
changes([{owner, Wanted} | Rest], {Heir, Data, Protection, false}) ->
    case owner(Wanted) of
        error -> error;
        Owner -> changes(Rest, {Heir, Data, Protection, Owner})
    end;
changes([], Changes) ->
    Changes;
changes(_Unknown, _Changes) ->
    error.

%% @doc Returns the names of the options, with the values that they have.
-spec known() -> ats_hints:known().
known() ->
    #{heir => "`none', or {heir, Pid, Data} with a pid of this node",
      owner => "`none', or `application' in a process of an application",
      protection => "`public', `protected' or `private'"}.

%% @doc Reads the option `owner'. The processes of an application have the same group leader, which
%% lives as long as the application and nothing else.
-spec owner(term()) -> none | pid() | error.
owner(none) ->
    none;
owner(application) ->
    case application:get_application() of
        {ok, _Application} -> group_leader();
        undefined -> error
    end;
owner(_Unknown) ->
    error.

%% @private
%% @doc The list of the views, which `ats:info/2' reads and {@link ats_view} writes.
%%
%% The process that maintains a view notes its moment and its hidden objects in two numbers, so
%% nobody waits for it.
-module(ats_view_list).

-export([make/0, add/2, remove/1, numbers/0, note/3, is_filled/1, item/2]).

-export_type([description/0, numbers/0]).

-type description() ::
        #{source := ats:tid(),
          spec := ats:match_spec(),
          every := pos_integer(),
          numbers := numbers(),
          atom() => term()}.
-opaque numbers() :: atomics:atomics_ref().

-define(MOMENT, 1).
-define(HIDDEN, 2).
%% 1 if the view has shown a moment.
-define(FILLED, 3).

%% @doc Makes the empty list, which ends with the caller.
-spec make() -> ok.
make() ->
    ?MODULE = ets:new(?MODULE, [named_table, {read_concurrency, true}]),
    ok.

-spec add(View :: ats:tid(), description()) -> true.
add(View, Description) -> ets:insert(?MODULE, {View, Description}).

-spec remove(View :: ats:tid()) -> true.
remove(View) -> ets:delete(?MODULE, View).

-spec numbers() -> numbers().
numbers() ->
    Numbers = atomics:new(3, [{signed, true}]),
    ok = atomics:put(Numbers, ?MOMENT, now_in_ms()),
    Numbers.

%% @doc Notes the moment that a view shows, in milliseconds of the monotonic time, and the number of
%% objects that it hides.
-spec note(numbers(), Moment :: integer(), Hidden :: non_neg_integer()) -> ok.
note(Numbers, Moment, Hidden) ->
    ok = atomics:put(Numbers, ?HIDDEN, Hidden),
    ok = atomics:put(Numbers, ?FILLED, 1),
    atomics:put(Numbers, ?MOMENT, Moment).

%% @doc Tells whether a moment of the view was noted.
-spec is_filled(numbers()) -> boolean().
is_filled(Numbers) -> atomics:get(Numbers, ?FILLED) =:= 1.

%% @doc Returns an item of a view; `undefined' for all other terms.
-spec item(view | lag, View :: term()) -> map() | non_neg_integer() | undefined.
item(Item, View) ->
    try ets:lookup(?MODULE, View) of
        [{_, #{numbers := Numbers}}] when Item =:= lag ->
            max(0, now_in_ms() - atomics:get(Numbers, ?MOMENT));
        [{_, #{numbers := Numbers} = Description}] ->
            About = maps:with([source, spec, every], Description),
            About#{hidden => atomics:get(Numbers, ?HIDDEN)};
        [] ->
            undefined
    catch
        %% The application does not run.
        error:badarg -> undefined
    end.

-spec now_in_ms() -> integer().
now_in_ms() -> erlang:monotonic_time(millisecond).

%% A facade as `ats' is one: it forwards calls to `ats', and counts them for the process that makes
%% them.
-module(ats_call_counter).

-export([count_calls/1]).
-export([all/0, info/1, info/2, delete/1, insert/2, lookup/2, safe_fixtable/2]).
-export([first/1, next/2, first_lookup/1, last_lookup/1, next_lookup/2, prev_lookup/2]).
-export([select/1, select/3]).

%% Returns the result of a function, and how often it has called which function here.
-spec count_calls(fun(() -> Result)) -> {Result, #{atom() => pos_integer()}}.
count_calls(Function) ->
    undefined = put(?MODULE, #{}),
    Result = Function(),
    {Result, erase(?MODULE)}.

all() -> forward(all, []).
info(T) -> forward(info, [T]).
info(T, Item) -> forward(info, [T, Item]).
delete(T) -> forward(delete, [T]).
insert(T, Objects) -> forward(insert, [T, Objects]).
lookup(T, Key) -> forward(lookup, [T, Key]).
safe_fixtable(T, Fix) -> forward(safe_fixtable, [T, Fix]).
first(T) -> forward(first, [T]).
next(T, Key) -> forward(next, [T, Key]).
first_lookup(T) -> forward(first_lookup, [T]).
last_lookup(T) -> forward(last_lookup, [T]).
next_lookup(T, Key) -> forward(next_lookup, [T, Key]).
prev_lookup(T, Key) -> forward(prev_lookup, [T, Key]).
select(Continuation) -> forward(select, [Continuation]).
select(T, MatchSpec, Limit) -> forward(select, [T, MatchSpec, Limit]).

forward(Name, Arguments) ->
    Counts = get(?MODULE),
    put(?MODULE, maps:update_with(Name, fun(N) -> N + 1 end, 1, Counts)),
    apply(ats, Name, Arguments).

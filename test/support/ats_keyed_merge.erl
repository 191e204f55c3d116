%% A merge that puts lists one behind the other, unless the key tells it to do harm.
-module(ats_keyed_merge).

-behaviour(ats_merge).

-export([merge/3, short_circuit/2, delete/2, version/0]).

-spec merge(term(), term(), term()) -> term().
merge({raise, Class, Reason}, _, _) ->
    erlang:raise(Class, Reason, []);
merge({tell, Pid}, _, _) ->
    Pid ! {worker, self()},
    timer:sleep(infinity);
merge({after_ms, Ms}, A, B) ->
    timer:sleep(Ms),
    A ++ B;
merge(sleeps, _, _) ->
    timer:sleep(infinity);
merge(loops, A, B) ->
    loop(A, B);
merge(traps, A, B) ->
    process_flag(trap_exit, true),
    loop(A, B);
merge(eats, A, B) ->
    eat(A, B);
merge(kills, _, _) ->
    exit(self(), kill),
    timer:sleep(infinity);
merge(links, _, _) ->
    spawn_link(fun() -> exit(linked) end),
    timer:sleep(infinity);
merge(chats, A, B) ->
    [self() ! {make_ref(), {put, nonsense}} || _ <- lists:seq(1, 10)],
    A ++ B;
merge(longest, A, B) ->
    max(A, B);
merge(_, A, B) ->
    A ++ B.

loop(A, B) -> loop(B, A).
eat(A, B) -> eat([A | B], [B | A]).

-spec short_circuit(term(), term()) -> boolean().
short_circuit(is_no_boolean, _) -> 'maybe';
short_circuit({raise_in, short_circuit}, _) -> error(here);
short_circuit(_, Value) -> lists:member(base, Value).

-spec delete(term(), term()) -> boolean().
delete(is_no_boolean, _) -> [];
delete({raise_in, delete}, _) -> throw({ats_merge, {strange, f, not_tried}});
delete(_, Value) -> Value =:= [].

-spec version() -> ats_merge:version().
version() -> 7.

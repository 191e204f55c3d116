%% Exceptions of `dats' name the call that failed and, in words, the fault.
-module(ats_disk_errors_SUITE).

-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0, init_per_testcase/2, end_per_testcase/2]).
-export([the_stack_begins_with_the_call/1, filters/1, handles/1]).

suite() -> [{timetrap, {minutes, 15}}].

all() ->
    [the_stack_begins_with_the_call, filters, handles].

init_per_testcase(Case, Config) ->
    ats_disk_lib:begin_case(Case, Config).

end_per_testcase(_, _) ->
    ats_disk_lib:end_case().

%% Calls of all functions with a table that is not open, or with other wrong arguments.
the_stack_begins_with_the_call(Config) ->
    T = ats_disk_lib:open(Config, t, []),
    ok = dats:insert(T, {1, 1}),
    E = ets:new(e, []),
    Private = ats_test_lib:private_table(),
    MS = [{'_', [], ['$_']}],
    Read = fun(read) -> end_of_input end,
    Yes = fun(_, _) -> true end,
    Calls = [
        {sync, [none]}, {flush, [none]}, {compact, [none]},
        {insert, [none, {1}]}, {insert, [T, x]}, {insert_new, [none, {1}]}, {delete, [none, 1]},
        {delete_object, [none, {1}]}, {delete_all_objects, [none]}, {take, [none, 1]},
        {take_first, [none]}, {take_last, [none]}, {take_all_objects, [none]},
        {merge, [none, 1, 1]}, {merge, [none, 1, 1, sum]}, {merge, [none, 1, 1, sum, {1, 1}]},
        {merge, [T, 1, 1, x]}, {merge, [T, 2, a, sum, {2, 2}]},
        {lookup, [none, 1]}, {lookup_element, [none, 1, 1]}, {lookup_element, [none, 1, 1, d]},
        {lookup_elements, [none, 1, [1]]}, {member, [none, 1]},
        {update_counter, [none, 1, 1]}, {update_counter, [none, 1, 1, {1, 1}]},
        {update_element, [none, 1, {2, 2}]}, {update_element, [none, 1, {2, 2}, {1, 1}]},
        {first, [none]}, {last, [none]}, {next, [none, 1]}, {prev, [none, 1]},
        {first_lookup, [none]}, {last_lookup, [none]},
        {next_lookup, [none, 1]}, {prev_lookup, [none, 1]},
        {select, [none, MS]}, {select, [none, MS, 1]}, {select, [nonsense]}, {select, [T, x]},
        {select_reverse, [none, MS]}, {select_reverse, [none, MS, 1]}, {select_reverse, [x]},
        {select_count, [none, MS]}, {select_delete, [none, MS]}, {select_replace, [none, MS]},
        {select_delete, [none, [{'_', [], [true]}]]}, {select_take, [none, MS]},
        {match, [none, '_']}, {match, [none, '_', 1]}, {match, [x]},
        {match_object, [none, '_']}, {match_object, [none, '_', 1]}, {match_object, [x]},
        {match_delete, [none, '_']}, {match_delete, [none, {1}]}, {explain, [none, MS]},
        {repair_continuation, [x, MS]},
        {range, [none, 1, 2]}, {range, [none, 1, 2, []]}, {range, [T, 1, 2, [x]]},
        {range_count, [none, 1, 2]}, {range_count, [none, 1, 2, []]},
        {rank, [none, 1]}, {rank, [T, 1]}, {nth, [none, 1]}, {nth, [T, 1]}, {nth, [T, 0]},
        {range_nth, [none, 1, 2, 1]}, {range_nth, [T, 1, 2, 1]},
        {range_nth, [none, 1, 2, 1, []]}, {range_nth, [T, 1, 2, 1, [x]]},
        {range_delete, [none, 1, 2]}, {range_delete, [none, 1, 2, []]},
        {range_fold, [Yes, 0, none, 1, 2]}, {range_fold, [Yes, 0, none, 1, 2, []]},
        {prefix, [none, {1}]}, {prefix, [none, {1}, []]},
        {safe_fixtable, [none, true]}, {safe_fixtable, [T, x]}, {slot, [none, 0]},
        {foldl, [Yes, 0, none]}, {foldr, [Yes, 0, none]},
        {traverse, [none, fun(_) -> continue end]}, {tab2list, [none]},
        {init_table, [none, Read]}, {init_table, [none, Read, []]},
        {init_table, [T, x]}, {init_table, [T, x, []]}, {init_table, [T, Read, x]},
        {to_ets, [none, E]}, {to_ets, [none, E, []]}, {to_ets, [T, none]}, {to_ets, [T, none, []]},
        {to_ets, [T, E, x]}, {to_ets, [T, Private]}, {to_ats, [T, E]},
        {to_ats, [none, none]}, {to_ats, [T, none, []]},
        {from_ets, [none, E]}, {from_ets, [none, E, []]}, {from_ets, [T, none]},
        {from_ets, [T, none, []]}, {from_ets, [T, E, x]}, {from_ets, [T, E, [{progress, x}]]},
        {from_ets, [T, Private]}, {from_ats, [none, none]}, {from_ats, [T, none, []]},
        {from_dets, [none, none]}, {from_dets, [T, none]}, {from_dets, [T, none, []]},
        {open_file, [{t}]}, {open_file, [{t}, []]}, {open, [t, x]},
        {destroy, [1]}, {rename_table, [1, "t"]}, {copy_table, ["t", 1]},
        {checkpoint, [none, "t"]}, {checkpoint, [none, "t", []]}, {checkpoint, [T, 1]},
        {checkpoint, [T, "t", [{since, 1}]]}, {checkpoint, [T, "t", x]},
        {snapshot, [none]}, {snapshot, [none, []]}, {snapshot, [T, x]}, {release, [none]},
        {diff, [none, none]}, {diff, [T, T]}, {diff, [none, none, Yes, 0]},
        {bchunk, [none, start]}, {bchunk, [T, x]}, {is_compatible_bchunk_format, [none, x]},
        {read, [none, 1]}, {write, [none, 1, 1]},
        {select_range, [none, unbounded, unbounded, Yes, 1]},
        {select_continue, [none, x, 1]}, {select_continue, [T, x, 0]}
    ],
    Tops = [{Call, top(Call)} || Call <- Calls],
    ?assertEqual([], [{Call, Top} || {{F, Args} = Call, Top} <- Tops, Top =/= {dats, F, Args}]),
    ?assertEqual([{1, 1}], dats:tab2list(T)).

%% The first function of the stack, with its arguments.
top({Function, Arguments}) ->
    try
        {answer, apply(dats, Function, Arguments)}
    catch
        error:badarg:Stack ->
            #{} = ats_oracle:without_hints(ats_errors:format_error(badarg, Stack)),
            [{Module, F, A, _} | _] = Stack,
            {Module, F, A}
    end.

%% Returns the words that an exception has for its arguments.
words(Call) ->
    try
        {answer, Call()}
    catch
        error:badarg:Stack ->
            [{dats, _, _, _} | _] = Stack,
            ats_oracle:without_hints(ats_errors:format_error(badarg, Stack))
    end.

filters(Config) ->
    T = ats_disk_lib:open(Config, t, [{type, ordered_set}]),
    [ok = dats:write(T, N, N) || N <- lists:seq(1, 9)],
    Range = fun(Lower, Upper, Select, N) ->
        words(fun() -> dats:select_range(T, Lower, Upper, Select, N) end)
    end,
    Yes = fun(_) -> true end,
    Odd = fun(_) -> odd end,
    Wrong = <<"has not returned a boolean">>,
    ?assertEqual(#{4 => Wrong}, Range(unbounded, unbounded, Odd, 2)),
    ?assertEqual(#{4 => Wrong}, Range(unbounded, unbounded, fun(_, _) -> 1 end, 2)),
    ?assertEqual(#{2 => Wrong}, Range(Odd, unbounded, Yes, 2)),
    ?assertEqual(#{3 => Wrong}, Range(unbounded, Odd, Yes, 2)),
    ?assertMatch(#{4 := <<"not a function", _/binary>>}, Range(unbounded, unbounded, x, 2)),
    ?assertMatch(#{2 := <<"not a function", _/binary>>}, Range(x, unbounded, Yes, 2)),
    ?assertMatch(#{3 := <<"not a function", _/binary>>}, Range(unbounded, x, Yes, 2)),
    ?assertMatch(#{5 := <<"out of range">>}, Range(unbounded, unbounded, Yes, 0)),
    %% The function errs later.
    Late = fun(Key, _) -> Key < 3 orelse late end,
    {ok, [{1, 1}, {2, 2}], Handle} = dats:select_range(T, unbounded, unbounded, Late, 2),
    ?assertEqual(
        #{2 => <<"its function has not returned a boolean">>},
        words(fun() -> dats:select_continue(T, Handle, 2) end)
    ),
    ok = dats:insert(T, {0}),
    ?assertEqual(
        #{1 => <<"the table has an object that is no pair of a key and a value">>},
        Range(unbounded, unbounded, Yes, 2)
    ).

%% A term that is no handle, or the handle of an ended select, has an answer.
handles(Config) ->
    T = ats_disk_lib:open(Config, t, [{type, ordered_set}]),
    [ok = dats:write(T, N, N) || N <- lists:seq(1, 300)],
    Yes = fun(_, _) -> true end,
    {ok, [{1, 1}], Handle} = dats:select_range(T, unbounded, unbounded, Yes, 1),
    Ref = make_ref(),
    Range = element(4, Handle),
    With = fun(Index, Element) -> setelement(4, Handle, setelement(Index, Range, Element)) end,
    Nonsense = [
        x, {}, {x}, {1, 2, 3, 4}, {select, '$end_of_table', [], {a, none, b, c}},
        {select, {}, [], {x, none, unbounded, Yes}}, {select, {}, [], {Ref, none, unbounded, Yes}},
        {select, {1, 2, 3, 4, 5}, [], {Ref, none, unbounded, Yes}},
        {select, '$end_of_table', [], {Ref, none, unbounded, x}}, setelement(3, Handle, x),
        setelement(4, Handle, x), With(1, Ref), With(2, x), With(2, {x, term}), With(3, x),
        With(4, x),
        erlang:append_element(Handle, x)
    ],
    [
        ?assertEqual({error, {bad_select_handle, H}}, dats:select_continue(T, H, 150))
     || H <- Nonsense
    ],
    ?assertMatch({ok, [{2, 2}], _}, dats:select_continue(T, Handle, 1)).

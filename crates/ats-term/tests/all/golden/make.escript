#!/usr/bin/env escript
%% -*- erlang -*-
%%! +S 1

%% Writes terms of every kind in the order of the Erlang machine that runs this, for
%% ../golden.rs to compare with. Usage: make.escript FILE
%%
%% The file is the OTP release (one byte), then for each term: the length of its external form (32
%% bits), a mark (one byte: 0 if the term is greater than the one before it, 1 if it is `==`, 3 if
%% it is also `=:=`), and the external form.

-mode(compile).

main([File]) ->
    _ = rand:seed(exsss, {25, 2, 3}),
    Leaves = leaves(),
    Terms = Leaves ++ shapes(Leaves) ++ random_terms(2500, list_to_tuple(Leaves)),
    Sorted = lists:sort(Terms),
    Release = list_to_integer(erlang:system_info(otp_release)),
    ok = file:write_file(File, [Release | records(Sorted)]),
    io:format("~b terms, ~b bytes~n", [length(Sorted), filelib:file_size(File)]).

records([First | Rest]) ->
    [record(First, 0) | records(First, Rest)].

records(_, []) ->
    [];
records(Previous, [Term | Rest]) ->
    [record(Term, mark(Previous, Term)) | records(Term, Rest)].

record(Term, Mark) ->
    Bytes = term_to_binary(Term, [{minor_version, 2}]),
    [<<(byte_size(Bytes)):32, Mark>>, Bytes].

mark(A, B) when A =:= B -> 3;
mark(A, B) when A == B -> 1;
mark(A, B) when A < B -> 0.

leaves() ->
    integers() ++ floats() ++ atoms() ++ bitstrings() ++ identifiers() ++ funs() ++ [[], {}, #{}].

integers() ->
    Near = [S * ((1 bsl Bits) + D)
            || Bits <- [7, 8, 15, 16, 31, 32, 52, 53, 54, 58, 59, 60, 62, 63, 64, 65, 70, 127, 128,
                        1023, 1024, 2040, 2048],
               D <- [-2, -1, 0, 1, 2],
               S <- [1, -1]],
    lists:seq(-3, 3) ++ Near.

floats() ->
    Powers = [power_of_two(E)
              || E <- [-1074, -1073, -1022, -1, 0, 1, 31, 51, 52, 53, 54, 58, 59, 60, 62, 63, 64,
                       65, 70, 127, 128, 1023]],
    Near = [F || P <- Powers, Steps <- [-1, 0, 1], F <- step(P, Steps)],
    Halves = [H / 2 || H <- lists:seq(-6, 6)],
    [Max] = from_bits(16#7FEFFFFFFFFFFFFF),
    Zeros = from_bits(0) ++ from_bits(1 bsl 63),
    Zeros ++ Halves ++ [Max, -Max, 0.1, 3.14, 1.0e22] ++ Near ++ [-F || F <- Near].

power_of_two(E) when E < -1022 -> hd(from_bits(1 bsl (E + 1074)));
power_of_two(E) -> hd(from_bits((E + 1023) bsl 52)).

step(Float, Steps) ->
    <<Bits:64>> = <<Float:64/float>>,
    from_bits(Bits + Steps).

%% The float with these bits, if there is one.
from_bits(Bits) ->
    case <<Bits:64>> of
        <<Float:64/float>> -> [Float];
        _ -> []
    end.

atoms() ->
    ['', a, 'a\0', 'a\0\0', 'a\0b', 'a\1', aa, ab, b, 'A', 'é', 'aé', 'ÿ', 'ж', 'жж', '日本', '🦀', '~',
     undefined, true, false,
     list_to_atom(lists:duplicate(255, $x)),
     list_to_atom(lists:duplicate(255, 16#65E5)),
     list_to_atom(lists:duplicate(254, $x))].

bitstrings() ->
    Bytes = [<<>>, <<0>>, <<0, 0>>, <<1>>, <<255>>, <<0, 255>>, <<0, 1>>, <<"abc">>, <<"abd">>,
             <<255, 255, 255>>, binary:copy(<<7>>, 300)],
    Cut = [<<B:Size/bitstring>>
           || Bin <- [<<0, 0>>, <<255, 255>>, <<16#A5, 16#5A>>],
              Size <- lists:seq(0, 16),
              <<B:Size/bitstring, _/bitstring>> <- [Bin]],
    Bytes ++ Cut.

%% Identifiers of this node and of others, made from their external form.
identifiers() ->
    Nodes = [{<<"a@h">>, 1}, {<<"a@h">>, 2}, {<<"a@h">>, 16#FF0000FF}, {<<"b@h">>, 1},
             {<<"a@h\0">>, 1}, {<<"a@h\0">>, 16#FF0000FF}, {<<"日本@h"/utf8>>, 7}],
    Pids = [external([88, node_name(Name), <<Number:32, Serial:32, Creation:32>>])
            || {Name, Creation} <- Nodes, {Number, Serial} <- [{0, 1}, {1, 0}, {300, 0}, {2, 2}]],
    Ports = [external([120, node_name(Name), <<Number:64, Creation:32>>])
             || {Name, Creation} <- Nodes, Number <- [0, 1, 1 bsl 31, 1 bsl 33]],
    Refs = [external([90, <<(length(Words)):16>>, node_name(Name), <<Creation:32>>,
                      [<<Word:32>> || Word <- Words]])
            || {Name, Creation} <- Nodes,
               Words <- [[1], [2, 1], [1, 2], [1, 2, 0], [1, 2, 3], [3, 2, 1, 1], [1, 0, 0, 0, 9]]],
    Own = [self(), group_leader(), make_ref(), make_ref(), alias()] ++ erlang:ports(),
    Own ++ Pids ++ Ports ++ Refs.

node_name(Name) ->
    [119, byte_size(Name), Name].

external(Bytes) ->
    binary_to_term(iolist_to_binary([131 | Bytes])).

funs() ->
    X = length(erlang:ports()),
    Real = [fun() -> X end, fun(Y) -> X + Y end, fun lists:map/2, fun lists:map/3, fun lists:seq/2,
            fun maps:map/2, fun erlang:node/0],
    Made = [made_fun(Module, Index, OldUniq, Free)
            || Module <- [m, n],
               {Index, OldUniq} <- [{0, 5}, {1, 4}, {1, 5}, {1, 1 bsl 26}],
               Free <- [[], [1], [1.0], [2], [1, a]]],
    Real ++ Made.

made_fun(Module, Index, OldUniq, Free) ->
    Encoded = fun(Term) -> binary_part_after_version(term_to_binary(Term)) end,
    Body = iolist_to_binary(
             [<<0, 0:128, Index:32, (length(Free)):32>>, Encoded(Module), Encoded(Index),
              Encoded(OldUniq), Encoded(hd(remote_pid())), [Encoded(F) || F <- Free]]),
    external([112, <<(byte_size(Body) + 4):32>>, Body]).

remote_pid() ->
    [external([88, node_name(<<"a@h">>), <<1:32, 0:32, 1:32>>])].

binary_part_after_version(<<131, Rest/binary>>) -> Rest.

%% Compound terms that differ in the places where order is easily got wrong.
shapes(Leaves) ->
    Small = [1, 1.0, 2, -1, -1.5, 1.5, a, [], <<"a">>, 1 bsl 64, 18446744073709551616.0, {}, #{}],
    Pairs = [{A, B} || A <- Small, B <- Small],
    Lists = [[A | B] || A <- Small, B <- Small] ++ [[A, B | C] || A <- [1, 1.0, a],
                                                                  B <- [1, 1.5], C <- Small],
    Maps = [#{A => B} || A <- Small, B <- [1, 1.0, a]]
        ++ [#{A => 1, B => 2} || A <- Small, B <- Small]
        ++ [#{{A, 1} => 1, {B, 1.0} => 2} || A <- Small, B <- Small],
    Nested = [#{#{A => 1} => 2} || A <- Small] ++ [{#{a => M}} || M <- lists:sublist(Maps, 10)]
        ++ [#{a => A, #{1 => A} => #{A => 1.0}} || A <- Small],
    Single = [{L} || L <- Leaves] ++ [[L] || L <- Leaves],
    Strings = ["", "a", "ab", "abc", lists:duplicate(300, $z), [256], "a" ++ [256]],
    Sizes = [list_to_tuple(lists:duplicate(N, 0)) || N <- [1, 2, 247, 248, 249, 255, 256, 300]],
    Zeros = [#{Key => Value, b => 1} || Zero <- from_bits(0) ++ from_bits(1 bsl 63),
                                        Key <- [Zero, {Zero, 1}, {Zero, 2}, #{Zero => Zero}],
                                        Value <- [1, Zero]],
    Single ++ Pairs ++ Lists ++ Maps ++ Nested ++ Strings ++ Sizes ++ Zeros ++ large_maps().

%% More than 32 keys make a map of another kind in the machine.
large_maps() ->
    Base = maps:from_list([{N, N} || N <- lists:seq(1, 40)]),
    Mixed = maps:from_list([{N * 1.0, N} || N <- lists:seq(1, 40)]),
    [maps:without(lists:seq(33, 40), Base), maps:without(lists:seq(34, 40), Base),
     Base, Base#{5 => 0}, Base#{5 => 5.0}, Base#{40 => 41}, Base#{5 => 6, 7 => 6},
     Base#{0 => 0}, maps:remove(1, Base#{0 => 0}), maps:remove(40, Base#{41 => 1}),
     maps:remove(40, Base#{40.0 => 1}), maps:remove(1, Base#{1.0 => 1}), Mixed,
     maps:merge(maps:without([1, 2], Base), #{a => 1, {1} => 2}),
     maps:merge(maps:without([1, 2], Base), #{a => 1, {1.0} => 2}),
     #{Base => 1}, #{Mixed => 1}].

random_terms(0, _) ->
    [];
random_terms(N, Leaves) ->
    [random_term(3, Leaves) | random_terms(N - 1, Leaves)].

random_term(0, Leaves) ->
    element(rand:uniform(tuple_size(Leaves)), Leaves);
random_term(Depth, Leaves) ->
    Part = fun() -> random_term(rand:uniform(Depth) - 1, Leaves) end,
    Parts = [Part() || _ <- lists:seq(1, rand:uniform(4) - 1)],
    case rand:uniform(6) of
        1 -> Parts;
        2 -> list_to_tuple(Parts);
        3 -> maps:from_list([{P, Part()} || P <- Parts]);
        4 -> Parts ++ Part();
        5 -> {a, Part()};
        6 -> Part()
    end.

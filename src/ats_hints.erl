%% @private
%% @doc Words that name the part of an argument which is wrong, and the one that was meant, perhaps.
%%
%% They are looked for only when a call has failed.
-module(ats_hints).

-export([refuse/3, options/4, unknown_option/2, nearest/2, match_spec/1, other_table/1, type/1]).
-export([merge/1]).

-export_type([known/0]).

-type known() :: #{atom() => flag | unicode:chardata()}.
%% Names of options, each with its values in words, or `flag' if it has none.

%% The most characters of a term in a text, and the longest name that is compared with others.
-define(CHARACTERS, 60).
-define(LONGEST, 40).

%% @doc Fails, and says why the argument with a number is wrong.
-spec refuse(pos_integer(), io:format(), [term()]) -> no_return().
refuse(Number, Format, Arguments) ->
    Text = unicode:characters_to_binary(io_lib:format(Format, Arguments)),
    erlang:error({ats_error, {argument, Number, Text}}).

%% @doc Returns a text about the first option that is wrong by itself, or else the given text, since
%% options do not go together.
-spec options(term(), known(), fun((term()) -> boolean()), unicode:chardata()) -> binary().
options([Option | Options], Known, IsRight, Otherwise) ->
    case IsRight(Option) of
        true -> options(Options, Known, IsRight, Otherwise);
        false -> text(option(Option, Known))
    end;
options([], _Known, _IsRight, Otherwise) ->
    text(Otherwise);
options(_NotAList, _Known, _IsRight, _Otherwise) ->
    <<"not a proper list">>.

-spec option(term(), known()) -> unicode:chardata().
option({Name, Value}, Known) when is_map_key(Name, Known) ->
    case Known of
        #{Name := flag} ->
            io_lib:format("`~ts' is an option without a value", [Name]);
        #{Name := What} ->
            io_lib:format("the option `~ts' is ~ts, not ~ts", [Name, What, term(Value)])
    end;
option(Name, Known) when is_map_key(Name, Known) ->
    io_lib:format("the option `~ts' has a value, {~ts, Value}: ~ts",
                  [Name, Name, map_get(Name, Known)]);
option(Tuple, Known) when is_tuple(Tuple), is_map_key(element(1, Tuple), Known) ->
    io_lib:format("the option `~ts' is ~ts, not ~ts",
                  [element(1, Tuple), map_get(element(1, Tuple), Known), term(Tuple)]);
option(Tuple, Known) when tuple_size(Tuple) > 0 ->
    unknown_option(element(1, Tuple), maps:keys(Known));
option(Option, Known) ->
    unknown_option(Option, maps:keys(Known)).

%% @doc Returns a text about an option that does not exist, with the known one that is most like it.
-spec unknown_option(term(), [atom()]) -> unicode:chardata().
unknown_option(Name, Known) ->
    [io_lib:format("there is no option ~ts", [term(Name)]), nearest(Name, Known)].

%% @doc Returns a question after the name that is most like a term, or nothing if none is.
-spec nearest(term(), [atom()]) -> unicode:chardata().
nearest(Name, Known) when is_atom(Name) ->
    Word = atom_to_list(Name),
    %% Up to half of the letters may be wrong, but not more than three, or the end be missing.
    Most = max(1, min(3, length(Word) div 2)),
    Near = [{Distance, Other} || Other <- Known, length(Word) =< ?LONGEST,
                                 Text <- [atom_to_list(Other)],
                                 Distance <- [distance(Word, Text)],
                                 Distance =< Most orelse
                                     length(Word) > 2 andalso lists:prefix(Word, Text)],
    case lists:sort(Near) of
        [{_, Nearest} | _] -> io_lib:format("; is `~ts' meant?", [Nearest]);
        [] -> ""
    end;
nearest(_NoName, _Known) ->
    "".

%% Number of letters to be changed, added and removed (V. Levenshtein, 1966), row by row.
-spec distance(string(), string()) -> non_neg_integer().
distance(From, To) ->
    Row = fun(Letter, [First | _] = Above) -> row(Letter, To, Above, [First + 1]) end,
    lists:last(lists:foldl(Row, lists:seq(0, length(To)), From)).

row(Letter, [Other | To], [Diagonal, Up | Above], [Left | _] = Done) ->
    Same = case Letter of
               Other -> Diagonal;
               _ -> Diagonal + 1
           end,
    row(Letter, To, [Up | Above], [lists:min([Same, Up + 1, Left + 1]) | Done]);
row(_Letter, [], _Last, Done) ->
    lists:reverse(Done).

%% @doc Returns the text about a match specification that is wrong, with the first wrong clause and
%% the words of Erlang about it.
-spec match_spec(term()) -> unicode:chardata().
match_spec(Spec) ->
    ["not a valid match specification", clause(1, Spec)].

-spec clause(pos_integer(), term()) -> unicode:chardata().
clause(Number, [Clause | Rest]) ->
    case explained(Clause) of
        [] -> clause(Number + 1, Rest);
        Why -> io_lib:format(": clause ~b: ~ts", [Number, Why])
    end;
clause(1, []) ->
    ": it has no clause";
clause(1, _NoList) ->
    ": it is a list of clauses {Head, Guards, Body}";
clause(_Number, _End) ->
    "".

-spec explained(term()) -> unicode:chardata().
explained({_Head, _Guards, Body} = Clause) when is_list(Body) ->
    try ets:test_ms({}, [Clause]) of
        {error, Findings} ->
            Why = [Text || {error, Text} <- Findings],
            [lists:join("; ", [said(Text) || Text <- Why]), tuple_hint(Why, Body)];
        {ok, _} ->
            ""
    catch
        error:_ -> ""
    end;
explained({_Head, _Guards, _Body}) ->
    "the body is a list of one result or more";
explained(Clause) ->
    io_lib:format("it is {Head, Guards, Body}, not ~ts", [term(Clause)]).

-spec said(string()) -> unicode:chardata().
said(Text) ->
    string:replace(string:trim(Text, trailing, "."), "does_not_exist", "does not exist").

%% The commonest mistake is a tuple in a body that is taken for a call.
-spec tuple_hint([string()], list()) -> string().
tuple_hint(Why, Body) ->
    IsCall = [Text || Text <- Why, string:find(Text, "does_not_exist") =/= nomatch] =/= [],
    case IsCall andalso lists:any(fun is_tuple/1, Body) of
        true -> "; a result that is a tuple is written {{A, B}}";
        false -> ""
    end.

%% @doc Returns a text about a table of another module.
-spec other_table(term()) -> unicode:chardata().
other_table(Table) ->
    %% The names of open tables on disk are in a table of `ets'.
    IsOnDisk = try ets:member(ats_disk_tables, Table) catch error:badarg -> false end,
    IsOfEts = try ets:info(Table, id) =/= undefined catch error:badarg -> false end,
    IsInMemory = try ats_nif:info(Table) =/= undefined catch error:_ -> false end,
    if
        IsOnDisk -> ": it is a table of dats";
        IsOfEts -> ": it is a table of ets";
        IsInMemory -> ": it is a table of ats";
        true -> ""
    end.

%% @doc Returns the words for a type of tables.
-spec type(ats:table_type()) -> string().
type(ordered_set) -> "an ordered_set";
type(ordered_bag) -> "an ordered_bag";
type(ordered_duplicate_bag) -> "an ordered_duplicate_bag";
type(Type) -> "a " ++ atom_to_list(Type).

%% @doc Returns the text about a merge that does not exist, or of which no value can be merged.
-spec merge(term()) -> unicode:chardata().
merge({_Position, Merge}) when is_atom(Merge) ->
    merge(Merge);
merge(Merge) ->
    Known = [replace, last, first, sum, min, max, statistics, append, union, intersection, prune,
             vector],
    case is_atom(Merge) andalso not lists:member(Merge, Known) of
        true -> [<<"not a valid merge">>, nearest(Merge, Known)];
        false -> <<"not a valid merge">>
    end.

%% Writes a term as far as there is room.
-spec term(term()) -> unicode:chardata().
term(Term) ->
    io_lib:format("~0tp", [Term], [{chars_limit, ?CHARACTERS}]).

-spec text(unicode:chardata()) -> binary().
text(Text) ->
    <<_/binary>> = unicode:characters_to_binary(Text).

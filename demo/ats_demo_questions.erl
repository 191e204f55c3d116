%% @doc Questions about characters, asked of ats and of ets.
%%
%% A question is a function of the module to ask (`ats' or `ets') and of that module's tables.
%% That one function serves both is the point: the interface is the same. Only the functions
%% that OTP 27 added to `ets' are missing from older versions of it, and there two calls stand
%% in for one.
-module(ats_demo_questions).

-export([load/3, ask_all/2]).

-export_type([tables/0]).

-type tables() :: #{by_category | by_code | by_name | by_word | by_number | totals =>
                        ets:tab() | ats:table()}.
-type question() ::
        {Text :: string(),
         Ask :: fun((ats | ets, tables()) -> term()),
         Show :: fun((term()) -> unicode:chardata())}.

%% Larger than any code point, so `{Category, ?BEYOND}' lies after all of a category.
-define(BEYOND, 16#110000).
-define(REPORT_EVERY, 4096).
-define(TOO_SHORT_NS, 1_000_000).

%%--------------------------------------------------------------------------------------------
%% Tables
%%--------------------------------------------------------------------------------------------

-spec load(ats | ets, [ats_demo_unicode:character()], fun((non_neg_integer()) -> ok)) ->
          tables().
load(M, Characters, Report) ->
    Concurrent = [public, {write_concurrency, true}, {read_concurrency, true}],
    Tables = #{by_category => M:new(by_category, [ordered_set | Concurrent]),
               by_code => M:new(by_code, [ordered_set | Concurrent]),
               by_word => M:new(by_word, [ordered_set | Concurrent]),
               by_name => M:new(by_name, [set | Concurrent]),
               by_number => M:new(by_number, [bag]),
               totals => M:new(totals, [set])},
    _ = lists:foldl(fun(Character, Done) ->
                            add(M, Tables, Character),
                            _ = [Report(Done) || Done rem ?REPORT_EVERY =:= 0],
                            Done + 1
                    end, 0, Characters),
    Report(length(Characters)),
    Tables.

-spec add(ats | ets, tables(), ats_demo_unicode:character()) -> ok.
add(M, Tables, {Code, Category, Name, Numeric, Lowercase}) ->
    #{by_category := ByCategory, by_code := ByCode, totals := Totals} = Tables,
    true = M:insert(ByCategory, {{Category, Code}, Name, Lowercase}),
    true = M:insert(ByCode, {Code, Category, Name}),
    _ = M:update_counter(Totals, Category, 1, {Category, 0}),
    add_name(M, Tables, Code, Category, Name),
    add_number(M, Tables, Code, Numeric).

-spec add_name(ats | ets, tables(), non_neg_integer(), atom(), binary()) -> ok.
add_name(_M, _Tables, _Code, _Category, <<>>) ->
    ok;
add_name(M, #{by_name := ByName, by_word := ByWord}, Code, Category, Name) ->
    _ = M:insert_new(ByName, {Name, Code, Category}),
    %% All words of one name become visible together.
    true = M:insert(ByWord, [{{Word, Code}} || Word <- ats_demo_unicode:words(Name)]),
    ok.

-spec add_number(ats | ets, tables(), non_neg_integer(), binary()) -> ok.
add_number(_M, _Tables, _Code, <<>>) ->
    ok;
add_number(M, #{by_number := ByNumber}, Code, Numeric) ->
    true = M:insert(ByNumber, {Numeric, Code}),
    ok.

%%--------------------------------------------------------------------------------------------
%% Asking
%%--------------------------------------------------------------------------------------------

%% @doc Asks everything of both, shows answers and times, and tells whether all were equal.
-spec ask_all(tables(), tables()) -> boolean().
ask_all(AtsTables, EtsTables) ->
    Equal = [ask(Question, AtsTables, EtsTables) || Question <- questions()],
    lists:all(fun(IsEqual) -> IsEqual end, Equal).

-spec ask(question(), tables(), tables()) -> boolean().
ask({Text, Ask, Show}, AtsTables, EtsTables) ->
    {AtsAnswer, AtsTime} = best_time(fun() -> Ask(ats, AtsTables) end),
    {EtsAnswer, EtsTime} = best_time(fun() -> Ask(ets, EtsTables) end),
    Equal = AtsAnswer =:= EtsAnswer,
    ats_demo_terminal:line("~n~ts~n  ~ts", [Text, Show(AtsAnswer)]),
    ats_demo_terminal:line("  (~ts~ts)", [times(AtsTime, EtsTime),
                                          case Equal of
                                              true -> "equal answers";
                                              false -> "DIFFERENT"
                                          end]),
    [ats_demo_terminal:line("  ets says: ~tp", [EtsAnswer]) || not Equal],
    Equal.

%% An answer of some microseconds shows what the functions do, and says nothing of speed.
-spec times(Ats :: non_neg_integer(), Ets :: non_neg_integer()) -> string().
times(Ats, Ets) when Ats < ?TOO_SHORT_NS; Ets < ?TOO_SHORT_NS ->
    "";
times(Ats, Ets) ->
    "ats " ++ ats_demo_terminal:milliseconds(Ats) ++
        ", ets " ++ ats_demo_terminal:milliseconds(Ets) ++ ", ".

%% Returns the best time of five runs: the cost without disturbance.
-spec best_time(fun(() -> Answer)) -> {Answer, Nanoseconds :: non_neg_integer()}.
best_time(Ask) ->
    Runs = [time(Ask) || _ <- lists:seq(1, 5)],
    {_, Answer} = hd(Runs),
    {Answer, lists:min([Time || {Time, _} <- Runs])}.

time(Ask) ->
    Start = erlang:monotonic_time(),
    Answer = Ask(),
    Time = erlang:monotonic_time() - Start,
    {erlang:convert_time_unit(Time, native, nanosecond), Answer}.

%%--------------------------------------------------------------------------------------------
%% The questions
%%--------------------------------------------------------------------------------------------

-spec questions() -> [question()].
questions() ->
    [{"Which character is called SNOWMAN?",
      fun(M, #{by_name := Names}) -> M:lookup(Names, <<"SNOWMAN">>) end,
      fun([{_Name, Code, Category}]) -> [glyph(Code), io_lib:format(", a ~s", [Category])] end},

     {"What is the first currency symbol, and what the last?",
      fun(M, #{by_category := Table}) ->
              [next_object(M, Table, {'Sc', -1}), prev_object(M, Table, {'Sc', ?BEYOND})]
      end,
      fun glyphs_and_names/1},

     {"Which currency symbol follows the euro sign?",
      fun(M, #{by_category := Table}) -> [next_object(M, Table, {'Sc', 16#20AC})] end,
      fun glyphs_and_names/1},

     {"And which character of any kind comes after it?",
      fun(M, #{by_code := Table}) -> next_object(M, Table, 16#20AC) end,
      fun({Code, Category, Name}) -> io_lib:format("~ts ~ts (~s)", [glyph(Code), Name, Category])
      end},

     {"Which capital letters lie between Alpha and Omega?",
      fun(M, #{by_category := Table}) ->
              between(M, Table, {'Lu', 16#0391 - 1}, {'Lu', 16#03A9})
      end,
      fun(Objects) -> [[Code] || {{_, Code}, _, _} <- Objects] end},

     {"And what are these letters in lower case?",
      fun(M, #{by_category := Table}) ->
              Capitals = between(M, Table, {'Lu', 16#0391 - 1}, {'Lu', 16#03A9}),
              [M:lookup_element(Table, Key, 3) || {Key, _, _} <- Capitals]
      end,
      fun(Codes) -> Codes end},

     {"Which characters have the word DRAGON in their name?",
      fun(M, #{by_word := Words, by_code := Table}) ->
              Keys = between(M, Words, {<<"DRAGON">>, -1}, {<<"DRAGON">>, ?BEYOND}),
              [M:lookup_element(Table, Code, 3) || {{_, Code}} <- Keys]
      end,
      fun(Names) -> lists:join(", ", Names) end},

     {"How many characters stand for one half?",
      fun(M, #{by_number := Numbers}) -> lists:sort(M:lookup(Numbers, <<"1/2">>)) end,
      fun(Objects) ->
              io_lib:format("~b: ~ts", [length(Objects),
                                        lists:join(" ", [[Code] || {_, Code} <- Objects])])
      end},

     {"What is the first character of each category? (one step per category)",
      fun(M, #{by_category := Table}) -> firsts(M, Table, M:first(Table)) end,
      fun(Keys) ->
              io_lib:format("~b categories: ~ts",
                            [length(Keys), lists:join(" ", [first_label(Key) || Key <- Keys])])
      end},

     {"How many characters are in each category? (walking over all of them with next)",
      fun(M, #{by_category := Table}) -> census(M, Table, M:first(Table), #{}) end,
      fun largest_categories/1},

     {"Do the counters that were kept while loading say the same? (foldl)",
      fun(M, #{totals := Totals}) ->
              M:foldl(fun({Category, Count}, Acc) -> Acc#{Category => Count} end, #{}, Totals)
      end,
      fun largest_categories/1},

     {"Which names are longest? (foldr over every character)",
      fun(M, #{by_code := Table}) -> M:foldr(fun longest/2, {0, []}, Table) end,
      fun({Length, Names}) ->
              io_lib:format("~b letters: ~ts", [Length, lists:join(", ", Names)])
      end}].

-spec between(ats | ets, ets:tab() | ats:table(), After :: term(), Last :: term()) -> [tuple()].
between(M, Table, After, Last) ->
    case next_object(M, Table, After) of
        '$end_of_table' -> [];
        Object when element(1, Object) > Last -> [];
        Object -> [Object | between(M, Table, element(1, Object), Last)]
    end.

%% The key after the last possible one of a category is the first of the next category.
-spec firsts(ats | ets, ets:tab() | ats:table(), term()) -> [{atom(), non_neg_integer()}].
firsts(_M, _Table, '$end_of_table') ->
    [];
firsts(M, Table, {Category, _} = Key) ->
    [Key | firsts(M, Table, M:next(Table, {Category, ?BEYOND}))].

-spec census(ats | ets, ets:tab() | ats:table(), term(), map()) -> #{atom() => pos_integer()}.
census(_M, _Table, '$end_of_table', Counts) ->
    Counts;
census(M, Table, {Category, _} = Key, Counts) ->
    census(M, Table, M:next(Table, Key),
           maps:update_with(Category, fun(Count) -> Count + 1 end, 1, Counts)).

longest({_Code, _Category, Name}, {Length, Names}) ->
    case byte_size(Name) of
        Longer when Longer > Length -> {Longer, [Name]};
        Length -> {Length, [Name | Names]};
        _Shorter -> {Length, Names}
    end.

%% `ats' has these functions on every version of Erlang; `ets' since OTP 27.
next_object(ats, Table, Key) -> object(ats:next_lookup(Table, Key));
next_object(ets, Table, Key) -> object(ets_lookup(Table, ets:next(Table, Key))).

prev_object(ats, Table, Key) -> object(ats:prev_lookup(Table, Key));
prev_object(ets, Table, Key) -> object(ets_lookup(Table, ets:prev(Table, Key))).

ets_lookup(_Table, '$end_of_table') -> '$end_of_table';
ets_lookup(Table, Key) -> {Key, ets:lookup(Table, Key)}.

object('$end_of_table') -> '$end_of_table';
object({_Key, [Object]}) -> Object.

%%--------------------------------------------------------------------------------------------
%% Answers as people read them
%%--------------------------------------------------------------------------------------------

-spec glyph(non_neg_integer()) -> unicode:chardata().
glyph(Code) ->
    io_lib:format("~ts ~ts", [[Code], code_label(Code)]).

%% Returns a code point with at least four digits, as the standard writes it.
-spec code_label(non_neg_integer()) -> unicode:chardata().
code_label(Code) ->
    ["U+", string:pad(integer_to_list(Code, 16), 4, leading, $0)].

glyphs_and_names(Objects) ->
    lists:join("; ", [io_lib:format("~ts ~ts", [glyph(Code), Name])
                      || {{_, Code}, Name, _} <- Objects]).

%% Control characters, separators and the like would upset a terminal.
first_label({Category, Code}) ->
    case lists:member(hd(atom_to_list(Category)), "LNPS") of
        true -> io_lib:format("~s=~ts", [Category, [Code]]);
        false -> io_lib:format("~s=~ts", [Category, code_label(Code)])
    end.

largest_categories(Counts) ->
    Descending = lists:reverse(lists:keysort(2, maps:to_list(Counts))),
    {Largest, Others} = lists:split(6, Descending),
    Texts = [io_lib:format("~s ~ts", [Category, ats_demo_terminal:count(Count)])
             || {Category, Count} <- Largest],
    Rest = lists:sum([Count || {_, Count} <- Others]),
    io_lib:format("~ts and ~ts more in ~b other categories",
                  [lists:join(", ", Texts), ats_demo_terminal:count(Rest), length(Others)]).

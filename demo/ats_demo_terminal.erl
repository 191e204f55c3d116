%% @doc The output of the demonstration: headings, progress, tables.
%%
%% On a terminal a progress bar is drawn over and over on one line. Anywhere else (a file, a
%% pipe, a build log) nothing is overwritten and each activity leaves one plain line.
-module(ats_demo_terminal).

-export([init/1, heading/1, line/2, progress/3, table/2]).
-export([count/1, seconds/1, milliseconds/1, ratio/1]).

-define(BAR_COLUMNS, 30).
-define(KIND, {?MODULE, kind}).

-spec init(terminal | plain) -> ok.
init(Kind) ->
    ok = io:setopts(standard_io, [{encoding, unicode}]),
    _ = put(?KIND, Kind),
    ok.

-spec heading(string()) -> ok.
heading(Text) ->
    io:format("~n~ts~n~ts~n", [bold(Text), lists:duplicate(string:length(Text), $-)]).

-spec line(io:format(), [term()]) -> ok.
line(Format, Arguments) ->
    io:format(Format ++ "~n", Arguments).

%% @doc Runs a function that reports how far it is, and shows that. The function is called with
%% a function to call with the number of steps done so far. Returns the result and the time.
-spec progress(string(), Total :: pos_integer(),
               fun((fun((Done :: non_neg_integer()) -> ok)) -> Result)) ->
          {Result, Microseconds :: non_neg_integer()}.
progress(Label, Total, Work) ->
    Kind = get(?KIND),
    draw(Kind, Label, 0, Total),
    {Time, Result} = timer:tc(fun() -> Work(fun(Done) -> draw(Kind, Label, Done, Total) end) end),
    finish(Kind, Label, Time),
    {Result, Time}.

-spec draw(terminal | plain, string(), non_neg_integer(), pos_integer()) -> ok.
draw(plain, _Label, _Done, _Total) ->
    ok;
draw(terminal, Label, Done, Total) ->
    Full = Done * ?BAR_COLUMNS div Total,
    io:format("\r  ~-38ts [~ts~ts] ~3b %",
              [Label, lists:duplicate(Full, $#), lists:duplicate(?BAR_COLUMNS - Full, $.),
               Done * 100 div Total]).

-spec finish(terminal | plain, string(), non_neg_integer()) -> ok.
finish(Kind, Label, Time) ->
    Start = case Kind of terminal -> "\r\e[K"; plain -> "" end,
    io:format("~ts  ~-38ts ~ts~n", [Start, Label, seconds(Time)]).

%% @doc Prints rows of texts in columns: the first to the left, the others to the right.
-spec table(Head :: [string()], Rows :: [[string()]]) -> ok.
table(Head, Rows) ->
    Widths = [lists:max([string:length(Cell) || Cell <- Column])
              || Column <- transpose([Head | Rows])],
    io:format("~n~ts~n", [bold(row(Widths, Head))]),
    io:format("  ~ts~n", [lists:join("  ", [lists:duplicate(Width, $-) || Width <- Widths])]),
    lists:foreach(fun(Row) -> io:format("~ts~n", [row(Widths, Row)]) end, Rows).

-spec row([non_neg_integer()], [string()]) -> unicode:chardata().
row([FirstWidth | Widths], [First | Cells]) ->
    Padded = [string:pad(First, FirstWidth, trailing)
             | [string:pad(Cell, Width, leading) || {Width, Cell} <- lists:zip(Widths, Cells)]],
    ["  ", lists:join("  ", Padded)].

-spec transpose([[string()]]) -> [[string()]].
transpose([[] | _]) -> [];
transpose(Rows) -> [[hd(Row) || Row <- Rows] | transpose([tl(Row) || Row <- Rows])].

-spec bold(unicode:chardata()) -> unicode:chardata().
bold(Text) ->
    case get(?KIND) of
        terminal -> ["\e[1m", Text, "\e[0m"];
        plain -> Text
    end.

%%--------------------------------------------------------------------------------------------
%% Numbers as people read them
%%--------------------------------------------------------------------------------------------

%% @doc 1234567 is "1,234,567".
-spec count(non_neg_integer()) -> string().
count(N) ->
    Digits = lists:reverse(integer_to_list(N)),
    lists:reverse(lists:flatten(lists:join($,, thousands(Digits)))).

-spec thousands(string()) -> [string()].
thousands([A, B, C | [_ | _] = Rest]) -> [[A, B, C] | thousands(Rest)];
thousands(Digits) -> [Digits].

-spec seconds(Microseconds :: non_neg_integer()) -> string().
seconds(Microseconds) ->
    lists:flatten(io_lib:format("~.2f s", [Microseconds / 1.0e6])).

-spec milliseconds(Nanoseconds :: non_neg_integer()) -> string().
milliseconds(Ns) ->
    lists:flatten(io_lib:format("~b ms", [Ns div 1_000_000])).

-spec ratio(float()) -> string().
ratio(Ratio) ->
    lists:flatten(io_lib:format("~.2f x", [Ratio])).

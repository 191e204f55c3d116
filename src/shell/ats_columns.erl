%% @private
%% @doc Lines of text in columns, for a person at the shell.
%%
%% The last text of a row follows the columns, whatever its width.
-module(ats_columns).

-export([widths/2, line/2]).

%% A text beyond this many characters widens no column: it is whole, and moves the rest of its line.
-define(WIDEST, 48).

%% @doc Returns the width of each column: that of its widest text, and no less than that of
%% `Least', which has an element for each column.
-spec widths(Rows :: [[unicode:chardata()]], Least :: [non_neg_integer()]) -> [non_neg_integer()].
widths(Rows, Least) ->
    lists:foldl(fun widen/2, Least, Rows).

-spec widen([unicode:chardata()], [non_neg_integer()]) -> [non_neg_integer()].
widen([Text | Texts], [Width | Widths]) ->
    [case string:length(Text) of
         Length when Length =< ?WIDEST -> max(Length, Width);
         _ -> Width
     end | widen(Texts, Widths)];
widen(_, []) ->
    [].

%% @doc Returns a row as a line, without its end.
-spec line(Row :: [unicode:chardata()], Widths :: [non_neg_integer()]) -> unicode:chardata().
line(Row, Widths) ->
    {Columns, Rest} = lists:split(length(Widths), Row),
    Padded = [string:pad(Text, Width) || {Text, Width} <- lists:zip(Columns, Widths)],
    lists:join($\s, Padded ++ Rest).

%% @private @doc Draws a number over time as a picture in SVG: steps, on a logarithmic axis to the
%% base of two, with labelled bands for the phases.
%%
%% The background is transparent and all colours are of medium lightness, so that the picture can
%% be read on white and on black.
-module(ats_bench_svg).

-export([steps/1]).

-export_type([chart/0]).

-type chart() ::
        #{title := string(),
          x_title := string(),
          %% The beginning and the end of a band, in the unit of the x axis.
          bands := [{number(), number(), string()}, ...],
          %% Ascending in X; Y is at least 1.
          points := [{X :: number(), Y :: pos_integer()}, ...]}.

-define(WIDTH, 960).
-define(HEIGHT, 380).
-define(LEFT, 56).
-define(RIGHT, 16).
-define(TOP, 64).
-define(BOTTOM, 52).
-define(MOST_TICKS, 9).

-define(INK, "#7a7a7a").
-define(BLUE, "#1f7fd0").

%% The scales: from the numbers of an axis to places in the picture.
-record(scales,
        {first :: number(),
         last :: number(),
         %% The top of the y axis, as a power of two.
         log2 :: pos_integer()}).

%% @doc Returns the text of the picture.
-spec steps(chart()) -> iodata().
steps(#{title := Title, x_title := XTitle, bands := Bands, points := Points}) ->
    Scales = scales(Points),
    [io_lib:format("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 ~b ~b\" role=\"img\" "
                   "font-family=\"sans-serif\" font-size=\"13\" fill=\"~s\">~n",
                   [?WIDTH, ?HEIGHT, ?INK]),
     element("title", "", Title),
     text(?LEFT, 22, "start", "font-size=\"15\" font-weight=\"bold\"", Title),
     [shaded(Scales, Index, Band) || {Index, Band} <- numbered(Bands)],
     [y_tick(Scales, Power) || Power <- ticks(0, Scales#scales.log2, 1)],
     [x_tick(Scales, X) || X <- x_ticks(Scales)],
     text((?LEFT + ?WIDTH - ?RIGHT) / 2, ?HEIGHT - 10, "middle", "", XTitle),
     line(Scales, Points),
     "</svg>\n"].

scales(Points) ->
    {First, _} = hd(Points),
    {Last, _} = lists:last(Points),
    Highest = lists:max([Y || {_, Y} <- Points]),
    #scales{first = First, last = max(Last, First + 1), log2 = max(1, ceil(math:log2(Highest)))}.

x(#scales{first = First, last = Last}, X) ->
    ?LEFT + (?WIDTH - ?LEFT - ?RIGHT) * (X - First) / (Last - First).

y(#scales{log2 = Log2}, Y) ->
    ?HEIGHT - ?BOTTOM - (?HEIGHT - ?TOP - ?BOTTOM) * math:log2(Y) / Log2.

%% Every second band is shaded.
shaded(Scales, Index, {From, To, Label}) ->
    Left = x(Scales, From),
    Width = x(Scales, To) - Left,
    Opacity = case Index rem 2 of
                  1 -> "0.14";
                  0 -> "0.04"
              end,
    [io_lib:format("<rect x=\"~.1f\" y=\"~b\" width=\"~.1f\" height=\"~b\" "
                   "fill-opacity=\"~s\"/>~n",
                   [Left, ?TOP - 24, Width, ?HEIGHT - ?TOP - ?BOTTOM + 24, Opacity]),
     text(Left + Width / 2, ?TOP - 8, "middle", "", Label)].

y_tick(Scales, Power) ->
    Y = y(Scales, 1 bsl Power),
    [io_lib:format("<line x1=\"~b\" y1=\"~.1f\" x2=\"~b\" y2=\"~.1f\" stroke=\"~s\" "
                   "stroke-opacity=\"0.35\"/>~n", [?LEFT, Y, ?WIDTH - ?RIGHT, Y, ?INK]),
     text(?LEFT - 8, Y + 4, "end", "", integer_to_list(1 bsl Power))].

x_tick(Scales, X) ->
    text(x(Scales, X), ?HEIGHT - ?BOTTOM + 18, "middle", "", integer_to_list(X)).

%% Whole numbers, in steps of one, two or five times a power of ten.
x_ticks(#scales{first = First, last = Last}) ->
    ticks(ceil(First), floor(Last), 1).

ticks(First, Last, Step) when (Last - First) div Step < ?MOST_TICKS ->
    lists:seq(First, Last, Step);
ticks(First, Last, Step) ->
    ticks(First, Last, wider(Step)).

wider(Step) ->
    case hd(integer_to_list(Step)) of
        $2 -> Step div 2 * 5;
        _ -> Step * 2
    end.

%% Only points where the number changes need a corner.
line(Scales, [{X0, Y0} | Rest] = Points) ->
    {LastX, _} = lists:last(Points),
    {Corners, _} = lists:mapfoldl(
        fun({_, Y}, Y) -> {[], Y};
           ({X, Y}, _) -> {io_lib:format("H~.1fV~.1f", [x(Scales, X), y(Scales, Y)]), Y}
        end, Y0, Rest),
    io_lib:format("<path d=\"M~.1f ~.1f~sH~.1f\" fill=\"none\" stroke=\"~s\" stroke-width=\"2\" "
                  "stroke-linejoin=\"round\"/>~n",
                  [x(Scales, X0), y(Scales, Y0), Corners, x(Scales, LastX), ?BLUE]).

text(X, Y, Anchor, Attributes, Text) ->
    element("text", io_lib:format(" x=\"~.1f\" y=\"~.1f\" text-anchor=\"~s\" ~s",
                                  [float(X), float(Y), Anchor, Attributes]), Text).

element(Name, Attributes, Text) ->
    [$<, Name, Attributes, $>, [escaped(C) || C <- Text], "</", Name, ">\n"].

escaped($<) -> "&lt;";
escaped($>) -> "&gt;";
escaped($&) -> "&amp;";
escaped(C) when C > 127 -> io_lib:format("&#~b;", [C]);
escaped(C) -> C.

numbered(List) -> lists:zip(lists:seq(1, length(List)), List).

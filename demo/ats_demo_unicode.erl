%% @doc Reads the Unicode Character Database: the file UnicodeData.txt, compressed.
%%
%% Each line describes one code point, or with its successor a range of code points that are all
%% alike, such as the ideographs. The ranges are spread out here, so that every code point is
%% one character, and names that the standard derives by rule are derived.
-module(ats_demo_unicode).

-export([read/1, words/1]).

-export_type([character/0]).

-type character() ::
        {CodePoint :: non_neg_integer(),
         Category :: atom(),
         Name :: binary(),
         Numeric :: binary(),
         Lowercase :: none | non_neg_integer()}.
%% A character. `Name' is empty for code points that have none, `Numeric' for characters that
%% do not stand for a number.

%% @doc Reads all characters in the order of their code points.
-spec read(file:filename()) -> [character()].
read(File) ->
    {ok, Compressed} = file:read_file(File),
    Lines = binary:split(zlib:gunzip(Compressed), <<"\n">>, [global, trim_all]),
    characters(Lines, []).

%% @doc Splits the name of a character into its words.
-spec words(binary()) -> [binary()].
words(Name) ->
    binary:split(Name, [<<" ">>, <<"-">>], [global, trim_all]).

-spec characters([binary()], [character()]) -> [character()].
characters([Line | Lines], Characters) ->
    [Code, Label | _] = Fields = binary:split(Line, <<";">>, [global]),
    case binary:split(Label, <<", First>">>) of
        [<<"<", Range/binary>>, <<>>] ->
            [LastLine | Rest] = Lines,
            [LastCode, _] = binary:split(LastLine, <<";">>),
            All = lists:seq(code_point(Code), code_point(LastCode)),
            characters(Rest, prepend_range(All, Range, Fields, Characters));
        [Label] ->
            characters(Lines, [character(Fields) | Characters])
    end;
characters([], Characters) ->
    lists:reverse(Characters).

-spec prepend_range([non_neg_integer()], binary(), [binary()], [character()]) -> [character()].
prepend_range(CodePoints, Range, [_Code, _Label, Category | _], Characters) ->
    lists:foldl(fun(CodePoint, Acc) ->
                        [{CodePoint, binary_to_atom(Category),
                          derived_name(Range, CodePoint), <<>>, none} | Acc]
                end, Characters, CodePoints).

-spec character([binary()]) -> character().
character([Code, Label, Category, _Class, _Bidi, _Decomposition, _Decimal, _Digit, Numeric,
           _Mirrored, OldName, _Comment, _Uppercase, Lowercase, _Titlecase]) ->
    {code_point(Code), binary_to_atom(Category), name(Label, OldName), Numeric,
     optional_code_point(Lowercase)}.

%% Control characters have no name in the standard; people know them by their old one.
-spec name(binary(), binary()) -> binary().
name(<<"<control>">>, OldName) -> OldName;
name(Name, _OldName) -> Name.

-spec code_point(binary()) -> non_neg_integer().
code_point(Hexadecimal) -> binary_to_integer(Hexadecimal, 16).

-spec optional_code_point(binary()) -> none | non_neg_integer().
optional_code_point(<<>>) -> none;
optional_code_point(Hexadecimal) -> code_point(Hexadecimal).

%%--------------------------------------------------------------------------------------------
%% Names by rule (The Unicode Standard, sections 3.12 and 4.8)
%%--------------------------------------------------------------------------------------------

-spec derived_name(Range :: binary(), non_neg_integer()) -> binary().
derived_name(<<"CJK Ideograph", _/binary>>, CodePoint) ->
    numbered_name(<<"CJK UNIFIED IDEOGRAPH-">>, CodePoint);
derived_name(<<"Tangut Ideograph", _/binary>>, CodePoint) ->
    numbered_name(<<"TANGUT IDEOGRAPH-">>, CodePoint);
derived_name(<<"Hangul Syllable">>, CodePoint) ->
    hangul_name(CodePoint - 16#AC00);
derived_name(_Unnamed, _CodePoint) ->
    <<>>.

-spec numbered_name(binary(), non_neg_integer()) -> binary().
numbered_name(Prefix, CodePoint) ->
    <<Prefix/binary, (integer_to_binary(CodePoint, 16))/binary>>.

%% A syllable is a leading consonant, a vowel and perhaps a trailing consonant; the code points
%% count through all combinations.
-spec hangul_name(non_neg_integer()) -> binary().
hangul_name(Index) ->
    Leading = element(1 + Index div (21 * 28), leading_consonants()),
    Vowel = element(1 + Index div 28 rem 21, vowels()),
    Trailing = element(1 + Index rem 28, trailing_consonants()),
    iolist_to_binary(["HANGUL SYLLABLE ", Leading, Vowel, Trailing]).

leading_consonants() ->
    {"G", "GG", "N", "D", "DD", "R", "M", "B", "BB", "S", "SS", "", "J", "JJ", "C", "K", "T",
     "P", "H"}.

vowels() ->
    {"A", "AE", "YA", "YAE", "EO", "E", "YEO", "YE", "O", "WA", "WAE", "OE", "YO", "U", "WEO",
     "WE", "WI", "YU", "EU", "YI", "I"}.

trailing_consonants() ->
    {"", "G", "GG", "GS", "N", "NJ", "NH", "D", "L", "LG", "LM", "LB", "LS", "LT", "LP", "LH",
     "M", "B", "BS", "S", "SS", "NG", "J", "C", "K", "T", "P", "H"}.

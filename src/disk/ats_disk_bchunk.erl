%% @private
%% @doc Chunks of tables, as `dats:bchunk/2' gives and `dats:init_table/3' takes them.
%%
%% A table is a row of pieces: its format, lists of objects, and the end. Each piece is a binary
%%
%% <pre>
%% "ats bchunk" | version, 8 bits | kind, 8 | number, 64 | checksum, 32 | content
%% </pre>
%%
%% of which the checksum is CRC-32 of the kind, the number and the content. Pieces are numbered from
%% 0 on, and the end tells how many objects there were: so it is noticed when one is missing, comes
%% twice, or is that of another row. The content of objects is the external term format of a list.
-module(ats_disk_bchunk).

-export([format/2, is_compatible/3, first/1, next/2, decode_objects/3]).

-export_type([data/0, position/0]).

-type data() :: binary() | tuple() | [binary()].
%% Some pieces.
-opaque position() :: {ats:tid(), start | eof | (Key :: binary()), Number :: pos_integer(),
                       Objects :: non_neg_integer()}.

-define(MAGIC, "ats bchunk").
-define(VERSION, 1).

-type kind() :: format | objects | 'end'.
-type table() :: {ats:table_type(), KeyPos :: pos_integer()}.
-type failure() :: {damaged_bchunk | incompatible_bchunk, What :: unicode:chardata()}.

%%--------------------------------------------------------------------------------------------
%% Writing
%%--------------------------------------------------------------------------------------------

%% @doc Returns the piece that says which table others are of.
-spec format(ats:table_type(), KeyPos :: pos_integer()) -> binary().
format(Type, KeyPos) ->
    piece(format, 0, <<(atom_to_binary(Type))/binary, $\n, (integer_to_binary(KeyPos))/binary>>).

%% @doc Returns `true' if pieces with this format are taken by a table.
-spec is_compatible(term(), ats:table_type(), KeyPos :: pos_integer()) -> boolean().
is_compatible(Format, Type, KeyPos) ->
    try table_of(Format) =:= {Type, KeyPos}
    catch throw:{?MODULE, _} -> false
    end.

%% @doc Returns the first pieces of a table, and where to go on.
-spec first(ats:tid()) -> {position(), [binary()]}.
first(Table) ->
    {Type, KeyPos, _Fixed} = ats_nif:disk_kind(Table),
    {{Table, start, 1, 0}, [format(Type, KeyPos)]}.

%% @doc Returns the next pieces, as they are at the moment. The position must be one of this opening
%% of the table.
-spec next(ats:tid(), position() | term()) -> {position(), [binary()]} | '$end_of_table'.
next(Table, {Table, eof, _Number, _Before}) ->
    '$end_of_table';
next(Table, {Table, Last, Number, Before})
  when Last =:= start orelse is_binary(Last), is_integer(Number), Number > 0,
       is_integer(Before), Before >= 0 ->
    {Tag, <<_Version, _List, Count:32, _/binary>> = Objects, Next} =
        ats_disk_walk:chunk(Table, up, Last),
    Piece = piece(objects, Number, Objects),
    case Tag of
        more ->
            {{Table, Next, Number + 1, Before + Count}, [Piece]};
        done ->
            End = piece('end', Number + 1, <<(Before + Count):64>>),
            {{Table, eof, Number + 1, Before + Count}, [Piece, End]}
    end;
next(_Table, _NoPosition) ->
    erlang:error({ats_error, none}).

-spec piece(kind(), non_neg_integer(), binary()) -> binary().
piece(Kind, Number, Content) ->
    Head = <<(code(Kind)), Number:64>>,
    Checksum = erlang:crc32([Head, Content]),
    <<?MAGIC, ?VERSION, Head/binary, Checksum:32, Content/binary>>.

-spec code(kind()) -> byte().
code(format) -> 0;
code(objects) -> 1;
code('end') -> 2.

%%--------------------------------------------------------------------------------------------
%% Reading
%%--------------------------------------------------------------------------------------------

%% @doc Has a call read objects from a function that provides pieces. If one of them is damaged, or
%% of another table, that is the answer.
-spec decode_objects(table(), ats_dets:init_fun(), fun((ats_dets:init_fun()) -> Answer)) ->
          Answer | {error, failure()}.
decode_objects(Table, InitFun, Call) ->
    try Call(make_provider(Table, 0, 0, InitFun))
    catch throw:{?MODULE, Failure} -> {error, Failure}
    end.

%% Returns a function that provides objects, behind `Number' pieces and `Before' objects.
-spec make_provider(table(), non_neg_integer() | eof, non_neg_integer(), ats_dets:init_fun()) ->
          ats_dets:init_fun().
make_provider(Table, Number, Before, InitFun) ->
    fun(close) ->
            InitFun(close);
       (read) ->
            case InitFun(read) of
                end_of_input when Number =:= eof ->
                    end_of_input;
                end_of_input ->
                    throw({?MODULE, {damaged_bchunk, "the last pieces are missing"}});
                {Data, Next} when is_function(Next) ->
                    read_pieces(Table, pieces(Data), Number, Before, [], Next);
                Other ->
                    Other
            end
    end.

-spec pieces(term()) -> [term()].
pieces(Data) when is_list(Data) -> Data;
pieces(Data) when is_tuple(Data) -> tuple_to_list(Data);
pieces(Data) -> [Data].

%% The caller answers for a result that is no list of pieces.
-spec read_pieces(table(), [term()], non_neg_integer() | eof, non_neg_integer(), [[term()]],
                  ats_dets:init_fun()) -> {[term()], ats_dets:init_fun()} | term().
read_pieces(Table, [], Number, Count, Objects, Next) ->
    {lists:append(lists:reverse(Objects)), make_provider(Table, Number, Count, Next)};
read_pieces(Table, [Piece | Pieces], Number, Count, Objects, Next) when is_list(Pieces) ->
    try read(Table, Piece, Number, Count) of
        {More, NextNumber} ->
            read_pieces(Table, Pieces, NextNumber, Count + length(More), [More | Objects], Next)
    catch
        throw:{?MODULE, _} = Failure ->
            %% The answer of the function to its end does not matter any more.
            _ = try Next(close) catch _:_ -> ok end,
            throw(Failure)
    end;
read_pieces(_Table, NotAList, _Number, _Count, _Objects, _Next) ->
    NotAList.

-spec read(table(), term(), non_neg_integer() | eof, non_neg_integer()) ->
          {[term()], pos_integer() | eof}.
read(Table, Piece, 0, _Count) ->
    case table_of(Piece) of
        Table ->
            {[], 1};
        {Type, KeyPos} ->
            What = io_lib:format("the pieces are of a ~s with its keys at ~b", [Type, KeyPos]),
            throw({?MODULE, {incompatible_bchunk, What}})
    end;
read(_Table, Piece, Number, Count) ->
    case open_piece(Piece) of
        {1, Number, Content} -> {objects(Content), Number + 1};
        {2, Number, <<Count:64>>} -> {[], eof};
        {2, Number, _} -> throw({?MODULE, {damaged_bchunk, "there are not as many objects"}});
        _ -> throw({?MODULE, {damaged_bchunk, "a piece is missing, or comes twice"}})
    end.

-spec objects(binary()) -> [term()].
objects(Content) ->
    try binary_to_term(Content) of
        Objects when is_list(Objects) -> Objects;
        _ -> throw({?MODULE, {damaged_bchunk, "a piece has no list of objects"}})
    catch
        error:badarg -> throw({?MODULE, {damaged_bchunk, "a piece has no terms"}})
    end.

-spec table_of(term()) -> table().
table_of(Piece) ->
    case open_piece(Piece) of
        {0, 0, Content} ->
            [Type, KeyPos] = binary:split(Content, <<$\n>>),
            {type(Type), binary_to_integer(KeyPos)};
        _ ->
            throw({?MODULE, {damaged_bchunk, "the first piece is missing"}})
    end.

-spec type(binary()) -> ats:table_type().
type(<<"set">>) -> set;
type(<<"ordered_set">>) -> ordered_set;
type(<<"bag">>) -> bag;
type(<<"duplicate_bag">>) -> duplicate_bag;
type(<<"ordered_bag">>) -> ordered_bag;
type(<<"ordered_duplicate_bag">>) -> ordered_duplicate_bag;
type(_) -> throw({?MODULE, {incompatible_bchunk, "the pieces are of an unknown type"}}).

-spec open_piece(term()) -> {byte(), non_neg_integer(), Content :: binary()}.
open_piece(<<?MAGIC, ?VERSION, Head:9/binary, Checksum:32, Content/binary>>) ->
    case erlang:crc32([Head, Content]) of
        Checksum ->
            <<Kind, Number:64>> = Head,
            {Kind, Number, Content};
        _ ->
            throw({?MODULE, {damaged_bchunk, "a piece has a wrong checksum"}})
    end;
open_piece(<<?MAGIC, Version, _/binary>>) when Version =/= ?VERSION ->
    What = io_lib:format("a piece has version ~b, and not ~b", [Version, ?VERSION]),
    throw({?MODULE, {incompatible_bchunk, What}});
open_piece(<<?MAGIC, _/binary>>) ->
    throw({?MODULE, {damaged_bchunk, "a piece is too short"}});
open_piece(_) ->
    throw({?MODULE, {incompatible_bchunk, "a piece is none of dats"}}).

%% @private
%% @doc Recognises logs that `disk_log' would read forever.
%%
%% A log is a head of eight bytes, and items: the size of an image, four bytes that are always the
%% same, and the image. From a certain size on a checksum of the size stands before the image. If
%% such an item begins so near to the end of a file that not even its checksum is there,
%% `disk_log' tries to read it again and again (seen in Erlang/OTP 25). One wrong bit in the size
%% of the last item is enough for this.
-module(ats_file_check).

-export([is_endless/1]).

-define(HEAD_BYTES, 8).
-define(ITEM_HEAD_BYTES, 8).
-define(MAGIC, 98, 87, 76, 65).
%% The size from which items have a checksum, and the bytes of that.
-define(LARGE, 65528).
-define(CHECKSUM_BYTES, 16).
%% A large item with only its checksum begins at most this far from the end.
-define(TAIL_BYTES, (?ITEM_HEAD_BYTES + ?CHECKSUM_BYTES)).
-define(READ_AHEAD_BYTES, 65536).

%% Nearly every file shows by its last bytes that it is not one of these. Only of the others the
%% items must be followed from the first on, because the same bytes may be part of an object.
-spec is_endless(file:name()) -> boolean().
is_endless(File) ->
    case file:open(File, [read, raw, binary, {read_ahead, ?READ_AHEAD_BYTES}]) of
        {ok, Device} ->
            try
                {ok, Size} = file:position(Device, eof),
                has_large_head(tail(Device, Size)) andalso is_damaged(Device, ?HEAD_BYTES, Size)
            after
                file:close(Device)
            end;
        {error, _} ->
            false
    end.

-spec tail(file:fd(), non_neg_integer()) -> binary().
tail(Device, Size) ->
    Start = max(0, Size - ?TAIL_BYTES),
    case file:pread(Device, Start, Size - Start) of
        {ok, Bytes} -> Bytes;
        _ -> <<>>
    end.

-spec has_large_head(binary()) -> boolean().
has_large_head(<<Size:32, ?MAGIC, _/binary>>) when Size >= ?LARGE -> true;
has_large_head(<<_, Rest/binary>>) -> has_large_head(Rest);
has_large_head(<<>>) -> false.

%% Returns `true' if the items do not end where the file does.
-spec is_damaged(file:fd(), non_neg_integer(), non_neg_integer()) -> boolean().
is_damaged(_Device, Size, Size) ->
    false;
is_damaged(Device, Place, Size) ->
    case file:pread(Device, Place, ?ITEM_HEAD_BYTES) of
        {ok, <<Bytes:32, ?MAGIC>>} when Bytes >= ?LARGE ->
            is_damaged(Device, Place + ?ITEM_HEAD_BYTES + ?CHECKSUM_BYTES + Bytes, Size);
        {ok, <<Bytes:32, ?MAGIC>>} ->
            is_damaged(Device, Place + ?ITEM_HEAD_BYTES + Bytes, Size);
        _ ->
            true
    end.

%% @private @doc Finds the beginning of a range that is given by a function of the program.
%%
%% `IsBelow(Key)' says whether a key is below the range. It must be true for the first keys of a
%% table, none or some or all, and false for the others. The native library cannot call it, so the
%% search is a dialogue: the library divides the remaining keys by those in memory and in indexes,
%% and shows the first key of the upper part. So the function is called O(log n) times, with keys
%% that the table has or that count as missing. Each call reads at most a part of the index and one
%% block of each run.
-module(ats_disk_bisect).

-export([low_cut/2]).

%% @doc Returns the cut of a snapshot between the keys that are below the range and the others.
-spec low_cut(Snapshot :: ats:tid(), fun((Key :: term()) -> boolean())) -> ats_nif:cut().
low_cut(Snapshot, IsBelow) ->
    low_cut(Snapshot, IsBelow, none, none).

-spec low_cut(ats:tid(), fun((term()) -> boolean()), none | binary(), none | binary()) ->
          ats_nif:cut().
low_cut(Snapshot, IsBelow, Low, High) ->
    case ats_nif:disk_median(Snapshot, Low, High) of
        none when Low =:= none ->
            none;
        none ->
            {bytes, Low};
        {Median, none} ->
            low_cut(Snapshot, IsBelow, Low, Median);
        {Median, Bytes, Object} ->
            case IsBelow(element(1, Object)) of
                true -> low_cut(Snapshot, IsBelow, <<Bytes/binary, 0>>, High);
                false -> low_cut(Snapshot, IsBelow, Low, Median)
            end
    end.

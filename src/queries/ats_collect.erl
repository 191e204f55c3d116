%% @private
%% @doc Lists of results that take more than one native call to make, and room for them on the heap
%% of the caller.
%%
%% A large heap that becomes full is collected, and is then a fifth larger. While a list of millions
%% is built, its elements are copied half a dozen times in that way, which takes longer than to find
%% them, and keeps a processor from others. So the heap is told beforehand to be larger the next
%% time: as large as the list is going to be, if that is known, or else several times as large as
%% the list is so far. Memory that was not written to is only reserved.
%%
%% A heap is also collected when the binaries that it shares with others have become many, however
%% empty it is. So the part in use decides, and not the size of the heap.
%%
%% The heap of a process that has a limit (`max_heap_size') is left alone: room that is never used
%% counts, too.
-module(ats_collect).

-export([list/3, in_order/2]).

-export_type([more/0]).

-type more() ::
        fun((ats:tid() | ats_nif:taken(), ats:compiled_match_spec(), ats_nif:place(),
             SoFar :: [term()]) -> ats_nif:selected() | ats_nif:taken_slice()).

%% The size of the heap at first, in words, and the factor by which it grows each time after: more
%% if the length of the list is unknown.
-define(FIRST, 262144).
-define(GROWTH_OF_UNKNOWN, 4).
-define(GROWTH_OF_EXPECTED, 2).

-record(room,
        {%% The wanted size of the young heap after the next collection.
         wanted :: pos_integer(),
         growth :: pos_integer(),
         %% The size of the heap when it was last looked at, used or not.
         heap :: non_neg_integer()}).

%% @doc Returns the whole list, whose first slice is given. `More' makes the next; `Expected' is how
%% many words the list will take, more or less.
-spec list(more(), Expected :: non_neg_integer() | unknown,
           ats_nif:selected() | ats_nif:taken_slice()) -> [term()].
list(_More, _Expected, List) when is_list(List) ->
    List;
list(More, Expected, Slice) ->
    case has_limit() of
        true ->
            slices(Slice, More, [], none);
        false ->
            Room = room(Expected),
            Usual = process_flag(min_heap_size, Room#room.wanted),
            try slices(Slice, More, [], Room)
            after process_flag(min_heap_size, Usual)
            end
    end.

%% Joins the results of slices. A slice comes in front of those before it. But if it ends among the
%% objects of a key of a bag, of which the oldest come first, its objects of that key come in front
%% of those that later slices find of the key: it is kept as a part until then. The first slice that
%% does not end there again has found the last of the key, and nothing else.
-spec slices(ats_nif:selected() | ats_nif:taken_slice(), more(), Parts :: [[term()]],
             #room{} | none) -> [term()].
slices({more, Id, Compiled, Place, Results}, More, Parts, Room) ->
    slices(More(Id, Compiled, Place, in_order(Results, Parts)), More, [], enlarge(Room));
slices({part, Id, Compiled, Place, {Part, SoFar}}, More, Parts, Room) ->
    slices(More(Id, Compiled, Place, SoFar), More, [Part | Parts], enlarge(Room));
slices(Results, _More, Parts, _Room) ->
    in_order(Results, Parts).

%% @doc Joins the parts of a list, of which the last comes first.
%%
%% The virtual machine reckons that `++' copies forty elements in the time of one call. If they
%% have left the caches meanwhile, a process that does little else has twenty milliseconds at a
%% time; so this counts each element.
-spec in_order(Last :: [term()], Parts :: [[term()]]) -> [term()].
in_order(Rest, []) -> Rest;
in_order(Rest, [Part | Parts]) -> in_order(prepend(Part, Rest), Parts).

-spec prepend([term()], [term()]) -> [term()].
prepend([Element | Part], Rest) -> [Element | prepend(Part, Rest)];
prepend([], Rest) -> Rest.

%%--------------------------------------------------------------------------------------------
%% Room
%%--------------------------------------------------------------------------------------------

-spec has_limit() -> boolean().
has_limit() ->
    {garbage_collection, Settings} = process_info(self(), garbage_collection),
    case proplists:get_value(max_heap_size, Settings) of
        #{size := 0} -> false;
        _ -> true
    end.

-spec room(Expected :: non_neg_integer() | unknown) -> #room{}.
room(unknown) ->
    #room{wanted = ?FIRST, growth = ?GROWTH_OF_UNKNOWN, heap = element(1, heap())};
room(Expected) ->
    #room{wanted = max(Expected, ?FIRST), growth = ?GROWTH_OF_EXPECTED, heap = element(1, heap())}.

%% Has the next collection make more room if the last one has made some, in proportion to the part
%% that is in use. A heap that is smaller than before either has become full already, and new terms
%% are put aside until it is collected; or it was collected as a whole, and has not got the size
%% that was wanted.
-spec enlarge(#room{} | none) -> #room{} | none.
enlarge(none) ->
    none;
enlarge(#room{wanted = Wanted, growth = Growth, heap = Heap} = Room) ->
    case heap() of
        {NewHeap, InUse} when NewHeap > Heap ->
            NewWanted = max(Wanted, min(Growth * Wanted, Growth * InUse)),
            _ = process_flag(min_heap_size, NewWanted),
            Room#room{wanted = NewWanted, heap = NewHeap};
        {NewHeap, _} ->
            Room#room{heap = NewHeap}
    end.

%% Returns the size of the heap, used or not, and the part that the last collection has left in use,
%% in words. Terms that were put aside because it is full are not counted.
-spec heap() -> {non_neg_integer(), non_neg_integer()}.
heap() ->
    {garbage_collection_info, Info} = process_info(self(), garbage_collection_info),
    Sum = fun(Items) -> lists:sum([proplists:get_value(Item, Info) || Item <- Items]) end,
    {Sum([heap_block_size, old_heap_block_size]), Sum([recent_size, old_heap_size])}.

%% @private
%% @doc Tables as files: those that `ets' writes and reads, in both directions.
%%
%% A file is a log of `disk_log' with these terms: a header, one tuple with the result of `info/1'
%% for the table and the kinds of extended information; the objects; and if there is extended
%% information, a last term with it. A checksum covers the external format of the header and of all
%% objects, in the order in which they are in the file.
%%
%% The header of a table with a time or a bound has these options, too, and its extended information
%% the number of objects and their deadlines, by the clock of the system: 48 bits for each object,
%% in the order of the objects. `ets' passes over them.
%%
%% Neither direction holds more than some hundred objects in memory at a time, and all deadlines.
%%
%% A failure of the file, or a wrong option, is thrown as the reason of an `{error, Reason}'. A
%% failure of the table is an exception, which leaves no half written file behind, and no half read
%% table.
-module(ats_file).

-export([write/3, read/2, describe/1]).

-export_type([write_option/0, read_option/0, extended_info/0, description/0]).

-type extended_info() :: object_count | md5sum.
-type write_option() :: {extended_info, [extended_info()]} | {sync, boolean()}.
-type read_option() :: {verify, boolean()}.
-type description() ::
        [{name, atom()} | {type, ats:table_type()} | {protection, ats:table_access()}
         | {named_table, boolean()} | {keypos, pos_integer()} | {size, non_neg_integer()}
         | {extended_info, [extended_info()]}
         | {version, {Major :: non_neg_integer(), Minor :: non_neg_integer()}}].

-define(MAJOR_VERSION, 1).
-define(MINOR_VERSION, 0).
-define(CHUNK_SIZE_OBJECTS, 100).
-define(END_OF_TABLE, '$end_of_table').

-record(wanted, {object_count = false :: boolean(),
                 md5sum = false :: boolean(),
                 sync = false :: boolean()}).

%% Deadlines that are no time: of objects that do not expire, and of those that have the time of a
%% table whose objects expire when they are not read.
-define(NEVER, 0).
-define(OF_TABLE, 1).
-define(DEADLINE_BITS, 48).
-define(LIMITS, [ttl, max_objects, max_memory]).
%% The longest time of an object in milliseconds.
-define(MAX_LIFETIME, (1 bsl 40 - 2)).

%% A log that is being written or read: the position, and the count and checksum so far.
-record(log, {name :: reference(),
              place = start :: start | disk_log:continuation(),
              verify = false :: boolean(),
              count = 0 :: non_neg_integer(),
              %% `none' if there is no checksum, or it need not be compared.
              md5 = none :: none | binary(),
              %% The deadlines of the objects that were written, last first, or that are to be read.
              deadlines = none :: none | [binary()] | binary(),
              %% The content of the last term, once it has been read.
              trailer = none :: none | {trailer, term()}}).

%%--------------------------------------------------------------------------------------------
%% Writing
%%--------------------------------------------------------------------------------------------

%% @doc Writes a table to a file, and replaces an existing file.
-spec write(ats:table(), file:name(), [write_option()]) -> ok | {error, term()}.
write(Table, File, Options) ->
    try
        Wanted = write_options(Options),
        ok = make_way(File),
        write_log(Table, File, Wanted, open(File, write))
    catch
        throw:Reason -> {error, Reason};
        exit:Reason -> {error, Reason}
    end.

-spec make_way(file:name()) -> ok.
make_way(File) ->
    _ = file:delete(File),
    case file:read_file_info(File) of
        {error, enoent} -> ok;
        _ -> throw(eaccess)
    end.

%% Closing a log can fail, too, and then something was not written.
-spec write_log(ats:table(), file:name(), #wanted{}, reference()) -> ok | {error, term()}.
write_log(Table, File, Wanted, Name) ->
    try
        ok = write_all(Table, Name, Wanted),
        sync(Name, Wanted)
    of
        ok -> disk_log:close(Name)
    catch
        Class:Reason:Stack ->
            _ = disk_log:close(Name),
            _ = file:delete(File),
            erlang:raise(Class, Reason, Stack)
    end.

-spec new_log(reference(), #wanted{}) -> #log{}.
new_log(Name, #wanted{md5sum = false}) -> #log{name = Name};
new_log(Name, #wanted{md5sum = true}) -> #log{name = Name, md5 = erlang:md5_init()}.

%% The description and the objects are those of one moment.
-spec write_all(ats:table(), reference(), #wanted{}) -> ok.
write_all(Table, Name, Wanted) ->
    [{id, Id} | _] = Info = case ats_info:all(Table) of
                                undefined -> throw(badtab);
                                Found -> Found
                            end,
    %% The table may have been deleted since it was described.
    Reading = try ats_snapshot:begin_reading(Id)
              catch error:{ats_error, id} -> throw(badtab)
              end,
    try
        Source = ats_snapshot:source(Reading),
        Limits = [{Limit, ats_info:item(Limit, Id)} || Limit <- ?LIMITS],
        Sized = lists:keyreplace(size, 1, Info, {size, ats_nif:size(Source)}),
        case Limits of
            [{ttl, false} | _] ->
                Log = write_terms([header(Sized, Wanted)], new_log(Name, Wanted)),
                write_trailer(write_chunks(Source, start, Log#log{count = 0}), Wanted);
            [{ttl, Ttl} | _] ->
                Counted = Wanted#wanted{object_count = true},
                Log = write_terms([header(Sized ++ Limits, Counted)], new_log(Name, Counted)),
                Dated = {deadline(Ttl, Source), start, Log#log{count = 0, deadlines = []}},
                write_trailer(write_dated(Source, Dated), Counted)
        end
    after
        ats_snapshot:end_reading(Reading)
    end.

-spec header([{atom(), term()}], #wanted{}) -> tuple().
header(Info, Wanted) ->
    list_to_tuple(Info ++ [{major_version, ?MAJOR_VERSION},
                           {minor_version, ?MINOR_VERSION},
                           {extended_info, extended_info(Wanted)}]).

-spec extended_info(#wanted{}) -> [extended_info()].
extended_info(#wanted{object_count = Count, md5sum = Md5}) ->
    [object_count || Count] ++ [md5sum || Md5].

-spec write_chunks(ats:table(), ats_nif:position(), #log{}) -> #log{}.
write_chunks(Table, Position, Log) ->
    case ats_nif:chunk(Table, Position, ?CHUNK_SIZE_OBJECTS) of
        {Objects, done} -> write_terms(Objects, Log);
        {Objects, Next} -> write_chunks(Table, Next, write_terms(Objects, Log))
    end.

-spec write_dated(ats:table(), {fun((tuple()) -> binary()), ats_nif:position(), #log{}}) -> #log{}.
write_dated(Table, {Deadline, Position, #log{deadlines = Deadlines} = Log}) ->
    {Objects, Next} = ats_nif:chunk(Table, Position, ?CHUNK_SIZE_OBJECTS),
    More = << <<(Deadline(Object))/binary>> || Object <- Objects >>,
    Written = (write_terms(Objects, Log))#log{deadlines = [More | Deadlines]},
    case Next of
        done -> Written;
        _ -> write_dated(Table, {Deadline, Next, Written})
    end.

%% Returns a function of the deadlines of objects.
-spec deadline(ats:ttl(), ats:table()) -> fun((tuple()) -> binary()).
deadline(Ttl, Source) ->
    KeyPos = ats_info:item(keypos, Source),
    Left = case Ttl of
               {idle, _} -> fun(Key) -> ats_nif:own_ttl(Source, Key) end;
               _ -> fun(Key) -> ats_nif:ttl(Source, Key) end
           end,
    fun(Object) ->
            Deadline = case Left(element(KeyPos, Object)) of
                           infinity -> ?NEVER;
                           default -> ?OF_TABLE;
                           Ms -> erlang:system_time(millisecond) + Ms
                       end,
            <<Deadline:?DEADLINE_BITS>>
    end.

-spec write_terms([term()], #log{}) -> #log{}.
write_terms([], Log) ->
    Log;
write_terms(Terms, #log{name = Name, md5 = none, count = Count} = Log) ->
    ok = check_written(disk_log:log_terms(Name, Terms)),
    Log#log{count = Count + length(Terms)};
write_terms(Terms, #log{name = Name, md5 = Md5, count = Count} = Log) ->
    Images = [term_to_binary(Term) || Term <- Terms],
    ok = check_written(disk_log:blog_terms(Name, Images)),
    Log#log{md5 = erlang:md5_update(Md5, Images), count = Count + length(Terms)}.

-spec write_trailer(#log{}, #wanted{}) -> ok.
write_trailer(Log, Wanted) ->
    case [{count, Log#log.count} || Wanted#wanted.object_count]
        ++ [{md5, erlang:md5_final(Log#log.md5)} || Wanted#wanted.md5sum]
        ++ [{deadlines, Deadlines, erlang:crc32(Deadlines)}
            || Log#log.deadlines =/= none,
               Deadlines <- [iolist_to_binary(lists:reverse(Log#log.deadlines))]] of
        [] -> ok;
        Said -> check_written(disk_log:log(Log#log.name, [?END_OF_TABLE, Said]))
    end.

-spec sync(reference(), #wanted{}) -> ok.
sync(_Name, #wanted{sync = false}) -> ok;
sync(Name, #wanted{sync = true}) -> check_written(disk_log:sync(Name)).

-spec check_written(ok | {error, term()}) -> ok.
check_written(ok) -> ok;
check_written({error, Reason}) -> throw(Reason).

%%--------------------------------------------------------------------------------------------
%% Reading
%%--------------------------------------------------------------------------------------------

%% @doc Makes a table of a file.
-spec read(file:name(), [read_option()]) -> {ok, ats:table()} | {error, term()}.
read(File, Options) ->
    try
        {Verify, Given} = read_options(Options),
        reading(File, Verify,
                fun(Header, Log) -> {ok, read_table(Header, Log, Given)} end)
    catch
        throw:Reason -> {error, Reason};
        exit:Reason -> {error, Reason}
    end.

%% @doc Describes the contents of a file.
-spec describe(file:name()) -> {ok, description()} | {error, term()}.
describe(File) ->
    try
        reading(File, false, fun(Header, _Log) -> {ok, description(Header)} end)
    catch
        throw:Reason -> {error, Reason};
        exit:Reason -> {error, Reason}
    end.

-spec reading(file:name(), boolean(), fun(([term()], #log{}) -> Result)) -> Result.
reading(File, Verify, Function) ->
    Name = open(File, read),
    try
        ats_file_check:is_endless(File) andalso throw(badfile),
        {Header, Log} = read_header(#log{name = Name, verify = Verify}),
        Function(Header, Log)
    after
        disk_log:close(Name)
    end.

-spec open(file:name(), write | read) -> reference().
open(File, Mode) ->
    Name = make_ref(),
    %% The reason of an error with these options is that of `ets'.
    Options = case Mode of
                  write -> [{repair, truncate}];
                  read -> [{mode, read_only}]
              end,
    case disk_log:open([{name, Name}, {file, File} | Options]) of
        {ok, Name} -> Name;
        {error, Reason} when Mode =:= write -> throw(Reason);
        {error, Reason} -> throw({read_error, Reason})
    end.

%% Returns the header as a list, and the log behind it, ready to be summed up if that is wanted.
-spec read_header(#log{}) -> {[term()], #log{}}.
read_header(#log{verify = false} = Log0) ->
    {Terms, Log} = next(fun disk_log:chunk/3, 1, Log0),
    {header_terms(Terms), Log};
read_header(#log{verify = true} = Log0) ->
    {Images, Log} = next(fun disk_log:bchunk/3, 1, Log0),
    Header = header_terms(lists:flatmap(fun decode/1, Images)),
    case lists:member(md5sum, read_extended_info(Header)) of
        true -> {Header, Log#log{md5 = erlang:md5_update(erlang:md5_init(), Images)}};
        false -> {Header, Log}
    end.

%% Terms, or their images, that follow in the log; none at its end.
-spec next(fun((reference(), start | disk_log:continuation(), pos_integer()) -> tuple() | eof),
           pos_integer(), #log{}) -> {[term()], #log{}}.
next(Read, N, #log{name = Name, place = Place, verify = Verify} = Log) ->
    case Read(Name, Place, N) of
        eof -> {[], Log};
        {error, Reason} -> throw({read_error, Reason});
        {_Next, _Terms, BadBytes} when Verify, BadBytes > 0 -> throw(badfile);
        {Next, Terms, _BadBytes} -> {Terms, Log#log{place = Next}};
        {Next, Terms} -> {Terms, Log#log{place = Next}}
    end.

%% Returns the term in an image, in a list that is empty if the image is damaged.
-spec decode(binary()) -> [term()].
decode(Image) ->
    try [binary_to_term(Image)]
    catch error:badarg -> []
    end.

-spec header_terms([term()]) -> [term()].
header_terms([Tuple]) when is_tuple(Tuple) ->
    Terms = tuple_to_list(Tuple),
    Mandatory = [name, type, protection, named_table, keypos, size],
    case length([Tag || {Tag, _} <- Terms, lists:member(Tag, Mandatory)]) of
        6 -> Terms;
        _ -> throw(badfile)
    end;
header_terms(_) ->
    throw(badfile).

-spec read_extended_info([term()]) -> [term()].
read_extended_info(Header) ->
    case optional(extended_info, Header, []) of
        List when is_list(List) -> List;
        _ -> []
    end.

-spec version([term()]) -> {term(), term()}.
version(Header) ->
    {optional(major_version, Header, 0), optional(minor_version, Header, 0)}.

-spec description([term()]) -> description().
description(Header) ->
    [{Tag, mandatory(Tag, Header)}
     || Tag <- [name, type, protection, named_table, keypos, size]]
        ++ [{extended_info, optional(extended_info, Header, [])}, {version, version(Header)}].

%% A damaged header can have two names and no type.
-spec mandatory(atom(), [term()]) -> term().
mandatory(Tag, Header) ->
    case lists:keyfind(Tag, 1, Header) of
        {Tag, Value} -> Value;
        _ -> throw(badfile)
    end.

-spec optional(atom(), [term()], term()) -> term().
optional(Tag, Header, Default) ->
    case lists:keyfind(Tag, 1, Header) of
        {Tag, Value} -> Value;
        _ -> Default
    end.

-spec read_table([term()], #log{}, new | {given, ats:table()}) -> ats:table().
read_table(Header, Log, Given) ->
    case version(Header) of
        {Major, _} = Version when Major > ?MAJOR_VERSION ->
            throw({unsupported_file_version, Version});
        _ ->
            ok
    end,
    Size = mandatory(size, Header),
    Deadlines = deadlines(Header, Log),
    Table = target(Header, Given),
    try
        Dated = case ats_info:item(ttl, Table) of
                    false -> Log;
                    _ -> Log#log{deadlines = Deadlines}
                end,
        ok = judge(read_objects(Table, Dated), Size, read_extended_info(Header)),
        Table
    catch
        Class:Reason:Stack ->
            true = ats_nif:delete(Table),
            erlang:raise(Class, Reason, Stack)
    end.

-spec target([term()], new | {given, ats:table()}) -> ats:table().
target(_Header, {given, Table}) ->
    Table;
target(Header, new) ->
    Options = [mandatory(type, Header), mandatory(protection, Header),
               {keypos, mandatory(keypos, Header)}]
        ++ [named_table || is_true(mandatory(named_table, Header))]
        ++ [compressed || is_true(optional(compressed, Header, false))]
        ++ [Option || Tag <- [write_concurrency, read_concurrency | ?LIMITS],
                      {_, _} = Option <- [lists:keyfind(Tag, 1, Header)]],
    try ats_options:create(mandatory(name, Header), Options)
    catch
        error:{ats_error, Cause} when Cause =:= none; Cause =:= already_exists ->
            throw(cannot_create_table);
        error:{ats_error, {invalid, _Why}} ->
            throw(cannot_create_table)
    end.

-spec is_true(term()) -> boolean().
is_true(Value) when is_boolean(Value) -> Value;
is_true(_Value) -> throw(badfile).

%% The terms behind a chunk without objects are not read. There is such a chunk behind the last
%% object, and there may be others in a damaged file.
-spec read_objects(ats:table(), #log{}) -> #log{}.
read_objects(Table, Log0) ->
    case read_chunk(Log0) of
        {[], Log} ->
            Log;
        {Objects, #log{deadlines = none} = Log} ->
            ok = insert(Table, Objects, default),
            read_objects(Table, Log);
        {Objects, #log{deadlines = Deadlines} = Log} ->
            Bytes = length(Objects) * ?DEADLINE_BITS div 8,
            case Deadlines of
                <<These:Bytes/binary, Later/binary>> ->
                    Times = [Time || <<Time:?DEADLINE_BITS>> <= These],
                    Runs = runs(lists:zip([lifetime(Time) || Time <- Times], Objects)),
                    _ = [ok = insert(Table, Run, Lifetime) || {Lifetime, Run} <- Runs],
                    read_objects(Table, Log#log{deadlines = Later});
                _ ->
                    throw(badfile)
            end
    end.

%% Returns the deadlines of the objects, which are in the trailer; `none' if the file has none.
-spec deadlines([term()], #log{}) -> none | binary().
deadlines(Header, Log) ->
    case optional(ttl, Header, false) of
        false -> none;
        _ -> deadlines(Log#log{verify = false, md5 = none})
    end.

-spec deadlines(#log{}) -> none | binary().
deadlines(Log) ->
    case read_chunk(Log) of
        {[], #log{trailer = {trailer, [_ | _] = Said}}} ->
            case lists:keyfind(deadlines, 1, Said) of
                {deadlines, Deadlines, Sum} when is_binary(Deadlines) ->
                    ok = same(erlang:crc32(Deadlines), Sum, checksum_error),
                    Deadlines;
                _ ->
                    none
            end;
        {[], _} ->
            none;
        {_Objects, Next} ->
            deadlines(Next)
    end.

%% Returns the time that is left to an object of a file; `expired' if it has passed.
-spec lifetime(non_neg_integer()) -> ats_nif:lifetime() | expired.
lifetime(?NEVER) -> infinity;
lifetime(?OF_TABLE) -> default;
lifetime(Deadline) ->
    case Deadline - erlang:system_time(millisecond) of
        Left when Left > ?MAX_LIFETIME -> infinity;
        Left when Left > 0 -> Left;
        _ -> expired
    end.

%% Returns the objects that follow on each other and have the same time, together.
-spec runs([{Lifetime, tuple()}]) -> [{Lifetime, [tuple()]}].
runs([{Lifetime, Object} | More]) ->
    {Same, Others} = lists:splitwith(fun({Other, _}) -> Other =:= Lifetime end, More),
    [{Lifetime, [Object | [Next || {_, Next} <- Same]]} | runs(Others)];
runs([]) ->
    [].

-spec read_chunk(#log{}) -> {[term()], #log{}}.
read_chunk(#log{md5 = none} = Log0) ->
    {Terms, Log} = next(fun disk_log:chunk/3, ?CHUNK_SIZE_OBJECTS, Log0),
    without_trailer(Terms, Log);
read_chunk(Log0) ->
    {Images, Log} = next(fun disk_log:bchunk/3, ?CHUNK_SIZE_OBJECTS, Log0),
    sum_up(Images, [], Log).

%% The last term of the last chunk may be the trailer.
-spec without_trailer([term()], #log{}) -> {[term()], #log{}}.
without_trailer([], Log) ->
    {[], Log};
without_trailer(Terms, #log{count = Count} = Log) ->
    {Objects, Trailer} = case lists:split(length(Terms) - 1, Terms) of
                             {Before, [[?END_OF_TABLE, Said]]} -> {Before, {trailer, Said}};
                             _ -> {Terms, none}
                         end,
    {Objects, Log#log{count = Count + length(Objects), trailer = Trailer}}.

%% The checksum will show that an image was passed over.
-spec sum_up([binary()], [term()], #log{}) -> {[term()], #log{}}.
sum_up([Image | Images], Objects, #log{md5 = Md5, count = Count} = Log) ->
    case decode(Image) of
        [] ->
            sum_up(Images, Objects, Log);
        [[?END_OF_TABLE, Said]] ->
            {lists:reverse(Objects), Log#log{trailer = {trailer, Said}}};
        [Object] ->
            sum_up(Images, [Object | Objects],
                   Log#log{md5 = erlang:md5_update(Md5, Image), count = Count + 1,
                           trailer = none})
    end;
sum_up([], Objects, Log) ->
    {lists:reverse(Objects), Log}.

%% A term that cannot be an object of the table comes from the file. Anything else is about the
%% table.
-spec insert(ats:table(), [term()], ats_nif:lifetime() | expired) -> ok.
insert(_Table, _Objects, expired) ->
    ok;
insert(Table, Objects, Lifetime) ->
    try
        true = case Lifetime of
                   default -> ats_nif:insert(Table, Objects);
                   _ -> ats_nif:insert(Table, Objects, Lifetime)
               end,
        ok
    catch
        error:{ats_error, none} -> throw(badfile)
    end.

%% Compares the objects that were read with the count and checksum of the file, if the user wants
%% that.
-spec judge(#log{}, Size :: term(), [term()]) -> ok.
judge(#log{trailer = none, verify = false}, _Size, _Extended) ->
    ok;
judge(#log{trailer = none, count = Count}, Size, Extended) ->
    case lists:member(md5sum, Extended) orelse lists:member(object_count, Extended) of
        true -> throw(badfile);
        false -> same(Count, Size, invalid_object_count)
    end;
judge(#log{trailer = {trailer, Said}} = Log, Size, Extended) ->
    %% A trailer that cannot be read is damage, whether or not the user wants the check.
    SaidCount = trailer_item(count, Said),
    SaidMd5 = trailer_item(md5, Said),
    ok = judge_md5(Log, SaidMd5),
    case lists:member(object_count, Extended) of
        _ when not Log#log.verify -> ok;
        true -> same(Log#log.count, SaidCount, invalid_object_count);
        false when Log#log.md5 =:= none -> same(Log#log.count, Size, invalid_object_count);
        false -> ok
    end.

-spec judge_md5(#log{}, term()) -> ok.
judge_md5(#log{md5 = none}, _Said) -> ok;
judge_md5(#log{md5 = Md5}, Said) -> same(erlang:md5_final(Md5), Said, checksum_error).

-spec same(term(), term(), invalid_object_count | checksum_error) -> ok.
same(Found, Found, _Otherwise) -> ok;
same(_Found, _Said, Otherwise) -> throw(Otherwise).

-spec trailer_item(count | md5, term()) -> term().
trailer_item(Tag, Said) ->
    try lists:keyfind(Tag, 1, Said) of
        {Tag, Value} -> Value;
        _ -> false
    catch
        error:badarg -> throw(badfile)
    end.

%%--------------------------------------------------------------------------------------------
%% Options
%%--------------------------------------------------------------------------------------------

-spec write_options([write_option()]) -> #wanted{}.
write_options(Options) when is_list(Options) ->
    write_options(Options, #wanted{}, may_extend).

-spec write_options(term(), #wanted{}, may_extend | is_extended) -> #wanted{}.
write_options([{sync, true} | Options], Wanted, Extension) ->
    write_options(Options, Wanted#wanted{sync = true}, Extension);
write_options([{sync, false} | Options], Wanted, Extension) ->
    write_options(Options, Wanted, Extension);
write_options([{extended_info, Extended} | Options], Wanted, may_extend) ->
    write_options(Options, extended_options(Extended, Wanted), is_extended);
write_options([], Wanted, _Extension) ->
    Wanted;
write_options([Option | _], _Wanted, _Extension) ->
    throw({unknown_option, Option});
write_options(NoList, _Wanted, _Extension) ->
    throw({malformed_option, NoList}).

-spec extended_options(term(), #wanted{}) -> #wanted{}.
extended_options([object_count | Extended], Wanted) ->
    extended_options(Extended, Wanted#wanted{object_count = true});
extended_options([md5sum | Extended], Wanted) ->
    extended_options(Extended, Wanted#wanted{md5sum = true});
extended_options([], Wanted) ->
    Wanted;
extended_options([Unknown | _], _Wanted) ->
    throw({unknown_option, [{extended_info, [Unknown]}]});
extended_options(NoList, _Wanted) ->
    throw({malformed_option, NoList}).

%% Like `ets', this knows an option that the documentation does not mention: `{table, Table}', to
%% read into a table that exists.
-spec read_options(term()) -> {Verify :: boolean(), new | {given, ats:table()}}.
read_options(Options) ->
    read_options(Options, false, new).

-spec read_options(term(), boolean(), new | {given, ats:table()}) ->
          {Verify :: boolean(), new | {given, ats:table()}}.
read_options([{verify, true} | Options], _Verify, Given) ->
    read_options(Options, true, Given);
read_options([{verify, false} | Options], Verify, Given) ->
    read_options(Options, Verify, Given);
read_options([{table, Table} | Options], Verify, new) ->
    read_options(Options, Verify, {given, Table});
read_options([], Verify, Given) ->
    {Verify, Given};
read_options([Option | _], _Verify, _Given) ->
    throw({unknown_option, Option});
read_options(NoList, _Verify, _Given) ->
    throw({malformed_option, NoList}).

%% @private
%% @doc Reads the option lists of `dats:open_file/2'.
%%
%% An option that is none, or has a wrong value, is an error of the caller, `badarg'. One that `dets'
%% has and `dats' cannot serve is an answer, `{error, {unsupported, Option}}': the program may be right,
%% but not here.
-module(ats_disk_options).

-export([parse/2, native/1, fits/2, described/1, check_modules/1, set_shared_memory/1]).

-export_type([parsed/0]).

-type parsed() ::
        #{directory := file:filename_all(),
          create := boolean(),
          access := read | read_write,
          type := default | ats:table_type(),
          keypos := default | pos_integer(),
          merge := default | term(),
          formats := default | ats_format:formats(),
          durability := sync | system | {interval, pos_integer()},
          block_size := default | pos_integer(),
          memory := default | pos_integer(),
          snapshot_age := infinity | pos_integer(),
          max_memory_entries := default | pos_integer(),
          max_selects := default | pos_integer()}.
%% What was not given is the default.

-define(MAX_SMALL_INTEGER, ((1 bsl 59) - 1)).
%% Of a block: below, every record would be one; above, each read of a key would be long.
-define(BLOCK_SIZES, 64, 16#1000000).
%% With less, what is in memory would be less than what it takes to find it.
-define(LEAST_MEMORY, 65536).
%% A power failure loses at most the writes of the last second.
-define(DURABILITY, {interval, 1000}).

%% A snapshot that nobody reads for an hour was forgotten. Osmos has the same limit.
-define(SNAPSHOT_AGE, 3600000).

%% @doc Sets the memory that tables share, which is a parameter of the application.
-spec set_shared_memory(Bytes :: term()) -> ok | {error, {bad_parameter, term()}}.
set_shared_memory(Bytes)
  when is_integer(Bytes), Bytes >= ?LEAST_MEMORY, Bytes =< ?MAX_SMALL_INTEGER ->
    true = ats_nif:disk_set_memory(Bytes),
    ok;
set_shared_memory(Other) ->
    {error, {bad_parameter, {disk_memory, Other}}}.

%% @doc What the options of a table of that name say. The name is the directory, if that is not given.
-spec parse(Name :: term(), Options :: term()) ->
          {ok, parsed()} | badarg | {error, {unsupported | merge | format, term()}}.
parse(Name, Options) ->
    Defaults = #{directory => default,
                 create => true,
                 access => read_write,
                 type => default,
                 keypos => default,
                 merge => default,
                 formats => default,
                 durability => ?DURABILITY,
                 block_size => default,
                 memory => default,
                 snapshot_age => ?SNAPSHOT_AGE,
                 max_memory_entries => default,
                 max_selects => default},
    case read(Options, Defaults) of
        #{directory := default} = Parsed when is_atom(Name) ->
            {ok, created(Parsed#{directory := filename:absname(atom_to_list(Name))})};
        #{directory := default} ->
            badarg;
        #{} = Parsed ->
            {ok, created(Parsed)};
        Wrong ->
            Wrong
    end.

%% A table that can only be read must be there.
-spec created(parsed()) -> parsed().
created(#{access := read} = Parsed) -> Parsed#{create := false};
created(Parsed) -> Parsed.

-spec read(term(), map()) -> map() | badarg | {error, {unsupported | merge | format, term()}}.
read([Option | Options], Read) ->
    case option(Option, Read) of
        #{} = More -> read(Options, More);
        Wrong -> Wrong
    end;
read([], Read) ->
    Read;
read(_NotAList, _Read) ->
    badarg.

-spec option(term(), map()) -> map() | badarg | {error, {unsupported | merge | format, term()}}.
option({file, Name}, Read) ->
    case directory(Name) of
        badarg -> badarg;
        Directory -> Read#{directory := Directory}
    end;
option({type, Type}, Read)
  when Type =:= set; Type =:= ordered_set; Type =:= bag; Type =:= duplicate_bag;
       Type =:= ordered_bag; Type =:= ordered_duplicate_bag ->
    Read#{type := Type};
option({keypos, Pos}, Read) when is_integer(Pos), Pos > 0, Pos =< ?MAX_SMALL_INTEGER ->
    Read#{keypos := Pos};
option({access, Access}, Read) when Access =:= read; Access =:= read_write ->
    Read#{access := Access};
option({durability, sync}, Read) ->
    Read#{durability := sync};
option({durability, system}, Read) ->
    Read#{durability := system};
option({durability, {interval, Ms}}, Read)
  when is_integer(Ms), Ms > 0, Ms =< ?MAX_SMALL_INTEGER ->
    Read#{durability := {interval, Ms}};
option({auto_save, infinity}, Read) ->
    Read#{durability := system};
option({auto_save, Ms}, Read) when is_integer(Ms), Ms >= 0, Ms =< ?MAX_SMALL_INTEGER ->
    Read#{durability := {interval, max(Ms, 1)}};
option({block_size, Bytes}, Read) when is_integer(Bytes) ->
    within(Bytes, ?BLOCK_SIZES, block_size, Read);
option({memory, Bytes}, Read) when is_integer(Bytes) ->
    within(Bytes, ?LEAST_MEMORY, ?MAX_SMALL_INTEGER, memory, Read);
option({snapshot_age, infinity}, Read) ->
    Read#{snapshot_age := infinity};
option({snapshot_age, Ms}, Read) when is_integer(Ms), Ms > 0, Ms =< ?MAX_SMALL_INTEGER ->
    Read#{snapshot_age := Ms};
option({Limit, N}, Read)
  when Limit =:= max_memory_entries orelse Limit =:= max_selects,
       is_integer(N), N > 0, N =< ?MAX_SMALL_INTEGER ->
    Read#{Limit := N};
%% A table merges in one thread at a time, so there are never more.
option({max_merge_jobs, N}, Read) when is_integer(N), N > 0 ->
    Read;
option({merge, {module, Module}}, Read) ->
    case ats_merge:check(Module) of
        {ok, Version} -> Read#{merge := {module, Module, Version}};
        {error, {not_a_module, _}} -> badarg;
        {error, Wrong} -> {error, {merge, Wrong}}
    end;
option({merge, Merge}, Read) ->
    Read#{merge := Merge};
%% What is kept as terms has no format.
option({formats, {term, term}}, Read) ->
    Read#{formats := none};
option({formats, {Key, Value}}, Read) ->
    case {ats_format:check(Key), ats_format:check(Value)} of
        {{ok, KeyFormat}, {ok, ValueFormat}} -> Read#{formats := {KeyFormat, ValueFormat}};
        {badarg, _} -> badarg;
        {_, badarg} -> badarg;
        {{error, Wrong}, _} -> {error, {format, Wrong}};
        {_, {error, Wrong}} -> {error, {format, Wrong}}
    end;
%% A table has no slots, and grows as its objects do.
option({Slots, Number}, Read)
  when Slots =:= estimated_no_objects; Slots =:= min_no_slots; Slots =:= max_no_slots ->
    case is_integer(Number) andalso Number >= 0 orelse Number =:= default of
        true -> Read;
        false -> badarg
    end;
option({ram_file, false}, Read) ->
    Read;
option({ram_file, true}, _Read) ->
    {error, {unsupported, {ram_file, true}}};
%% A table that was not closed is opened as it was: there is nothing to choose.
option({repair, Repair}, Read) when is_boolean(Repair) ->
    Read;
option({repair, force}, _Read) ->
    {error, {unsupported, {repair, force}}};
option({version, default}, Read) ->
    Read;
option(_Unknown, _Read) ->
    badarg.

-spec within(integer(), pos_integer(), pos_integer(), atom(), map()) -> map() | badarg.
within(Number, Least, Most, Item, Read) when Number >= Least, Number =< Most ->
    Read#{Item := Number};
within(_Number, _Least, _Most, _Item, _Read) ->
    badarg.

-spec directory(term()) -> file:filename_all() | badarg.
directory(Name) when is_list(Name); is_binary(Name); is_atom(Name), Name =/= default ->
    try filename:absname(Name) of
        Absolute ->
            case is_binary(native_name(Absolute)) of
                true -> Absolute;
                false -> badarg
            end
    catch
        error:_ -> badarg
    end;
directory(_) ->
    badarg.

%% A binary is a name as the system has it; zeros end names there.
-spec native_name(file:filename_all()) -> binary() | error.
native_name(Name) ->
    Native = case is_binary(Name) of
                 true -> Name;
                 false -> unicode:characters_to_binary(Name, unicode, file:native_name_encoding())
             end,
    case is_binary(Native) andalso Native =/= <<>>
        andalso binary:match(Native, <<0>>) =:= nomatch of
        true -> Native;
        false -> error
    end.

%% @doc What the native library is told.
-spec native(parsed()) -> {binary(), ats_nif:disk_options()}.
native(#{directory := Directory, create := Create, access := Access, type := Type,
         keypos := KeyPos, merge := Merge, durability := Durability, block_size := BlockSize,
         memory := Memory, snapshot_age := Age, max_memory_entries := Keys,
         formats := Formats}) ->
    Native = case Durability of
                 {interval, Ms} -> Ms;
                 Other -> Other
             end,
    {native_name(Directory),
     {Create, Access =:= read_write, Type, KeyPos, merge(Merge), Native, BlockSize, Memory,
      case Age of infinity -> default; _ -> Age end, Keys, formats(Formats)}}.

%% How the file that describes a table says it. What is replaced is not merged.
-spec merge(term()) -> default | binary().
merge(default) -> default;
merge(replace) -> <<>>;
merge(Merge) -> term_to_binary(Merge, [{minor_version, 2}]).

-spec formats(default | ats_format:formats()) -> default | binary().
formats(default) -> default;
formats(none) -> <<>>;
formats(Formats) -> term_to_binary(Formats, [{minor_version, 2}]).

%% @doc Whether the modules are there that a table remembers, if options do not name others. If that
%% which merges has another version than the table, the table can be opened: keys that are merged
%% can be read, and `dats:upgrade_merge/2' merges the others.
-spec check_modules(parsed()) -> ok | {error, reason, term()}.
check_modules(#{directory := Directory, merge := Merge, formats := Formats}) ->
    case ats_nif:disk_describe(native_name(Directory)) of
        {ok, _Type, _KeyPos, OfTable, FormatsOfTable} ->
            case check_formats(Formats, FormatsOfTable) of
                ok when Merge =:= default -> check_program(OfTable);
                Checked -> Checked
            end;
        %% What is wrong with it, opening it says.
        _ ->
            ok
    end.

-spec check_formats(default | ats_format:formats(), binary()) -> ok | {error, reason, term()}.
check_formats(default, <<_, _/binary>> = Formats) ->
    case ats_format:check_stored(binary_to_term(Formats)) of
        ok -> ok;
        {error, Wrong} -> {error, reason, {format, Wrong}}
    end;
check_formats(_Given, _OfTable) ->
    ok.

-spec check_program(term()) -> ok | {error, reason, term()}.
check_program(<<>>) ->
    ok;
check_program(Merge) when is_binary(Merge) ->
    check_program(binary_to_term(Merge));
check_program(Merge) when element(1, Merge) =:= module ->
    case ats_merge:check(element(2, Merge)) of
        {ok, _Version} -> ok;
        {error, Wrong} -> {error, reason, {merge, Wrong}}
    end;
check_program(_Named) ->
    ok.

%% @doc Whether a table that was opened with some options can be used by a process that asks for others. What
%% only says how fast it is, or how durable, is decided by the first.
-spec fits(Asked :: parsed(), Opened :: parsed()) -> boolean().
fits(Asked, Opened) ->
    Same = fun(Item) -> maps:get(Item, Asked) =:= maps:get(Item, Opened) end,
    SameIfGiven = fun(Item) -> maps:get(Item, Asked) =:= default orelse Same(Item) end,
    lists:all(Same, [directory, access])
        andalso lists:all(SameIfGiven, [type, keypos, merge, formats]).

%% @doc What table is in a directory.
-spec described(term()) ->
          {ok, ats:table_type(), pos_integer()} | {error, ats_disk_failure:reason()} | badarg.
described(Name) ->
    case directory(Name) of
        badarg ->
            badarg;
        Directory ->
            case ats_nif:disk_describe(native_name(Directory)) of
                {ok, Type, KeyPos, _Merge, _Format} -> {ok, Type, KeyPos};
                Failed -> ats_disk_failure:of_call(Failed, Directory)
            end
    end.

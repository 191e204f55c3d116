%% @private
%% @doc Reads the option lists of `dats:open_file/2'.
%%
%% Later options replace earlier ones. The defaults are those of `dets': a `set' with its keys at
%% position 1.
%%
%% An option that is none, or has a wrong value, is an error of the caller, `badarg'. One that
%% `dets' has and `dats' cannot serve is an answer, `{error, {unsupported, Option}}': the program
%% may be right, but not here.
-module(ats_disk_options).

-export([parse/2, parse_made/1, parse_temporary/1, native/1, fits/2, describe/1, check_modules/1]).
-export([wrong/2, wrong_directory/1]).
-export([set_shared_memory/1]).
-export([is_bag/1, of_init/1, native_directory/1, text_of_name/1, repair_hint/1]).

-export_type([parsed/0]).

-type parsed() ::
        #{file := file:filename_all(),
          directory := file:filename_all(),
          create := boolean(),
          temporary := boolean(),
          access := read | read_write,
          repair := default | boolean() | force,
          type := default | ats:table_type(),
          keypos := default | pos_integer(),
          merge := default | term(),
          formats := default | ats_format:formats(),
          ttl := default | false | infinity | pos_integer(),
          durability := sync | system | {interval, pos_integer()},
          auto_save := infinity | non_neg_integer(),
          block_size := default | pos_integer(),
          memory := default | pos_integer(),
          continuation_age := infinity | pos_integer(),
          snapshot_memory := non_neg_integer(),
          compressed := boolean(),
          max_memory_entries := default | pos_integer(),
          max_selects := default | pos_integer()}.
%% `file' is the directory as the user spells it, which answers name. The type and the position of
%% the key are `default' if the table is opened as it was made, and so is the time after which
%% objects expire, which is `false' in an open table whose objects do not.

-define(MAX_SMALL_INTEGER, ((1 bsl 59) - 1)).
%% The longest time of an object, as in memory: 34 years.
-define(MAX_TTL, ((1 bsl 40) - 2)).
%% Bounds of the block size. Below, every record would be a block; above, each read of a key would
%% be long.
-define(BLOCK_SIZES, 64, 16#1000000).
%% Lower bound of the memory. Below it, the index of the records in memory would be larger than the
%% records.
-define(LEAST_MEMORY, 65536).
%% A power failure loses at most the writes of the last second.
-define(INTERVAL, 1000).
%% The numbers of slots that `dets' takes, of which a table has none.
-define(LEAST_SLOTS, 256).
-define(MOST_SLOTS, ((1 bsl 31) - 1)).

%% Default time in which a call or a continuation must read on: an hour, as in osmos.
-define(CONTINUATION_AGE, 3600000).
%% Memory that snapshots of programs hold besides that of the table.
-define(SNAPSHOT_MEMORY, (256 bsl 20)).

%% @doc Sets the memory that tables share, which is a parameter of the application.
-spec set_shared_memory(Bytes :: term()) -> ok | {error, {bad_parameter, term()}}.
set_shared_memory(Bytes)
  when is_integer(Bytes), Bytes >= ?LEAST_MEMORY, Bytes =< ?MAX_SMALL_INTEGER ->
    true = ats_nif:disk_set_memory(Bytes),
    ok;
set_shared_memory(Other) ->
    {error, {bad_parameter, {disk_memory, Other}}}.

%% @doc Returns `true' if a key can have several objects in tables of a type.
-spec is_bag(ats:table_type()) -> boolean().
is_bag(Type) -> Type =/= set andalso Type =/= ordered_set.

%% @doc Reads the options of a table. Its name is the directory, if that is not given. An option
%% that is no list is the only one.
-spec parse(Name :: term(), Options :: term()) ->
          {ok, parsed()} | badarg | {error, term()}.
parse(Name, Options) when is_list(Options) ->
    case read(Options, defaults()) of
        #{file := default} = Parsed when is_atom(Name); is_list(Name) ->
            in_directory(option({file, Name}, Parsed));
        #{file := default} ->
            badarg;
        Read ->
            in_directory(Read)
    end;
parse(Name, Option) ->
    parse(Name, [Option]).

%% @doc Returns the options that open the table in a directory with the type that it was made with.
-spec parse_made(Directory :: term()) -> {ok, parsed()} | badarg | {error, term()}.
parse_made(Directory) ->
    in_directory(option({file, Directory}, (defaults())#{create := false})).

%% @doc Returns the options of a table that is made elsewhere until it is published.
-spec parse_temporary([term()]) -> {ok, parsed()} | badarg | {error, term()}.
parse_temporary(Options) ->
    case parse(none, Options) of
        {ok, Parsed} -> {ok, Parsed#{temporary := true}};
        Wrong -> Wrong
    end.

-spec defaults() -> map().
defaults() ->
    #{file => default,
      directory => default,
      create => true,
      temporary => false,
      access => read_write,
      repair => default,
      type => default,
      keypos => default,
      merge => default,
      formats => default,
      ttl => default,
      durability => {interval, ?INTERVAL},
      auto_save => ?INTERVAL,
      block_size => default,
      memory => default,
      continuation_age => ?CONTINUATION_AGE,
      snapshot_memory => ?SNAPSHOT_MEMORY,
      compressed => true,
      max_memory_entries => default,
      max_selects => default,
      min_slots => default,
      max_slots => default}.

-spec in_directory(map() | Wrong) -> {ok, parsed()} | Wrong.
in_directory(#{file := None}) when None =:= ""; None =:= <<>> ->
    {error, {file_error, None, enoent}};
in_directory(#{min_slots := Least, max_slots := Most})
  when is_integer(Least), is_integer(Most), Least > Most ->
    badarg;
in_directory(#{file := File} = Read) ->
    Parsed = Read#{directory := directory(File)},
    {ok, without_create(maps:without([min_slots, max_slots], Parsed))};
in_directory(Wrong) ->
    Wrong.

%% A table that can only be read must be there.
-spec without_create(parsed()) -> parsed().
without_create(#{access := read} = Parsed) -> Parsed#{create := false};
without_create(Parsed) -> Parsed.

-spec read(term(), map()) -> map() | badarg | {error, term()}.
read([Option | Options], Read) ->
    case option(Option, Read) of
        #{} = More -> read(Options, More);
        Wrong -> Wrong
    end;
read([], Read) ->
    Read;
read(_NotAList, _Read) ->
    badarg.

-spec option(term(), map()) -> map() | badarg | {error, term()}.
option({file, Name}, Read) ->
    case directory(Name) of
        badarg -> badarg;
        _ when is_atom(Name) -> Read#{file := atom_to_list(Name)};
        _ -> Read#{file := Name}
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
    Read#{durability := sync, auto_save := 0};
option({durability, system}, Read) ->
    Read#{durability := system, auto_save := infinity};
option({durability, {interval, Ms}}, Read)
  when is_integer(Ms), Ms > 0, Ms =< ?MAX_SMALL_INTEGER ->
    Read#{durability := {interval, Ms}, auto_save := Ms};
option({auto_save, infinity}, Read) ->
    Read#{durability := system, auto_save := infinity};
option({auto_save, Ms}, Read) when is_integer(Ms), Ms >= 0, Ms =< ?MAX_SMALL_INTEGER ->
    Read#{durability := {interval, max(Ms, 1)}, auto_save := Ms};
option({ttl, Ttl}, Read)
  when Ttl =:= infinity; is_integer(Ttl), Ttl > 0, Ttl =< ?MAX_TTL ->
    Read#{ttl := Ttl};
%% Reads would have to write.
option({ttl, {idle, Ms}}, _Read) when is_integer(Ms), Ms > 0, Ms =< ?MAX_TTL ->
    {error, {unsupported, {ttl, {idle, Ms}}}};
option({block_size, Bytes}, Read) when is_integer(Bytes) ->
    within(Bytes, ?BLOCK_SIZES, block_size, Read);
option({memory, Bytes}, Read) when is_integer(Bytes) ->
    within(Bytes, ?LEAST_MEMORY, ?MAX_SMALL_INTEGER, memory, Read);
option({continuation_age, infinity}, Read) ->
    Read#{continuation_age := infinity};
option({continuation_age, Ms}, Read) when is_integer(Ms), Ms > 0, Ms =< ?MAX_SMALL_INTEGER ->
    Read#{continuation_age := Ms};
option({snapshot_memory, Bytes}, Read)
  when is_integer(Bytes), Bytes >= 0, Bytes =< ?MAX_SMALL_INTEGER ->
    Read#{snapshot_memory := Bytes};
option({compressed, Compressed}, Read) when is_boolean(Compressed) ->
    Read#{compressed := Compressed};
option({Limit, N}, Read)
  when Limit =:= max_memory_entries orelse Limit =:= max_selects,
       is_integer(N), N > 0, N =< ?MAX_SMALL_INTEGER ->
    Read#{Limit := N};
%% A table merges in one thread at a time, so there are never more.
option({max_merge_jobs, N}, Read) when is_integer(N), N > 0 ->
    Read;
option({merge, {module, Program}}, Read) ->
    case ats_merge:check(Program) of
        {ok, Version} -> Read#{merge := {module, Program, Version}};
        {error, {not_a_module, _}} -> badarg;
        {error, Wrong} -> {error, {merge, Wrong}}
    end;
option({merge, Merge}, Read) ->
    Read#{merge := Merge};
%% Keys and values that are kept as terms have no format.
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
option({Slots, Number}, Read) when Slots =:= estimated_no_objects; Slots =:= min_no_slots ->
    case slots(Number) of
        badarg -> badarg;
        Least -> Read#{min_slots := Least}
    end;
option({max_no_slots, Most}, Read)
  when Most =:= default; is_integer(Most), Most > 0, Most =< ?MOST_SLOTS ->
    Read#{max_slots := Most};
option({ram_file, false}, Read) ->
    Read;
option({ram_file, true}, _Read) ->
    {error, {unsupported, {ram_file, true}}};
option({repair, Repair}, Read) when is_boolean(Repair); Repair =:= force ->
    Read#{repair := Repair};
option({version, Version}, Read) when Version =:= default; Version =:= 9 ->
    Read;
option(_Unknown, _Read) ->
    badarg.

%% @doc Says which argument of parse/2 is wrong, and why.
-spec wrong(Name :: term(), Options :: term()) -> {1 | 2, binary()}.
wrong(_Name, Options) when is_list(Options) ->
    IsRight = fun(Option) -> option(Option, defaults()) =/= badarg end,
    case read(Options, defaults()) of
        #{file := default} ->
            {1, <<"not an atom or a string that names a directory, and there is no option "
                  "`file'">>};
        _ ->
            {2, ats_hints:options(Options, known(), IsRight,
                                  "min_no_slots is larger than max_no_slots")}
    end;
wrong(Name, Option) ->
    wrong(Name, [Option]).

-spec known() -> ats_hints:known().
known() ->
    {Least, Most} = {?BLOCK_SIZES},
    Milliseconds = "a number of milliseconds or `infinity'",
    Slots = "a number, which means nothing here",
    #{file => "the name of a directory",
      type => "`set', `ordered_set', `bag', `duplicate_bag', `ordered_bag' or "
              "`ordered_duplicate_bag'",
      keypos => "a position from 1",
      access => "`read' or `read_write'",
      durability => "`sync', `system' or {interval, Milliseconds}",
      auto_save => Milliseconds,
      ttl => "`infinity', or milliseconds from 1 to 34 years",
      block_size => io_lib:format("a number of bytes from ~b to ~b", [Least, Most]),
      memory => io_lib:format("a number of bytes from ~b", [?LEAST_MEMORY]),
      continuation_age => Milliseconds,
      snapshot_memory => "a number of bytes",
      compressed => "a boolean",
      max_memory_entries => "a positive number",
      max_selects => "a positive number",
      max_merge_jobs => "a positive number",
      merge => "a merge of ats:merge/4, or {module, Module}",
      formats => "a pair of formats, each `term' or a module",
      estimated_no_objects => Slots,
      min_no_slots => Slots,
      max_no_slots => Slots,
      ram_file => "`false'",
      repair => "a boolean or `force'",
      version => "`default' or 9"}.

%% @doc Returns the number of the first name that is no name of a directory.
-spec wrong_directory([term()]) -> pos_integer().
wrong_directory(Names) ->
    1 + length(lists:takewhile(fun(Name) -> directory(Name) =/= badarg end, Names)).

%% @doc Reads the options of `dats:init_table/3', each of which may be given once. Returns the
%% format.
-spec of_init(term()) -> term | bchunk | badarg.
of_init(Options) when is_list(Options) -> of_init(Options, #{});
of_init(Option) -> of_init([Option]).

-spec of_init(term(), #{format | min_no_slots => term()}) -> term | bchunk | badarg.
of_init([{Item, Value} | Options], Read) when not is_map_key(Item, Read) ->
    IsRight = case Item of
                  format -> Value =:= term orelse Value =:= bchunk;
                  min_no_slots -> slots(Value) =/= badarg;
                  _ -> false
              end,
    case IsRight of
        true -> of_init(Options, Read#{Item => Value});
        false -> badarg
    end;
of_init([], Read) ->
    maps:get(format, Read, term);
of_init(_, _Read) ->
    badarg.

%% Returns the least number of slots that `dets' makes of the option `min_no_slots'.
-spec slots(term()) -> default | pos_integer() | badarg.
slots(default) -> default;
slots(Number) when is_integer(Number), Number >= 0 -> max(Number, ?LEAST_SLOTS);
slots(_) -> badarg.

-spec within(integer(), pos_integer(), pos_integer(), atom(), map()) -> map() | badarg.
within(Number, Least, Most, Item, Read) when Number >= Least, Number =< Most ->
    Read#{Item := Number};
within(_Number, _Least, _Most, _Item, _Read) ->
    badarg.

-spec directory(term()) -> file:filename_all() | badarg.
directory(Name) when is_list(Name); is_binary(Name); is_atom(Name) ->
    try without_dots(filename:absname(Name)) of
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

%% Removes parts that are `.', which cannot be resolved in a directory that does not exist yet.
-spec without_dots(file:filename_all()) -> file:filename_all().
without_dots(Name) ->
    filename:join([Part || Part <- filename:split(Name), Part =/= ".", Part =/= <<".">>]).

%% Returns the name as the system has it. A binary is that already; zeros would end a name there.
%% Names with the prefix of temporary directories are refused: the native library makes incomplete
%% tables in these, and removes their contents.
-spec native_name(file:filename_all()) -> binary() | error.
native_name(Name) ->
    Native = case is_binary(Name) of
                 true -> Name;
                 false -> unicode:characters_to_binary(Name, unicode, file:native_name_encoding())
             end,
    case is_binary(Native) andalso Native =/= <<>>
        andalso binary:match(Native, [<<0>>, <<"/.ats-temporary-">>]) =:= nomatch of
        true -> Native;
        false -> error
    end.

%% @doc Returns a name of the system as text, or unchanged if it is no text.
-spec text_of_name(binary()) -> file:filename_all().
text_of_name(Native) ->
    case unicode:characters_to_list(Native, file:native_name_encoding()) of
        Name when is_list(Name) -> Name;
        _ -> Native
    end.

%% @doc Returns the path of a directory as the native library wants it.
-spec native_directory(term()) -> {ok, binary()} | badarg | {error, term()}.
native_directory(None) when None =:= ""; None =:= <<>> ->
    {error, {file_error, None, enoent}};
native_directory(Name) ->
    case directory(Name) of
        badarg -> badarg;
        Directory -> {ok, native_name(Directory)}
    end.

%% @doc Returns the type, key position and merge that the options give for a table whose description
%% is damaged.
-spec repair_hint(parsed()) -> default | {ats:table_type(), pos_integer(), default | binary()}.
repair_hint(#{type := default}) -> default;
repair_hint(#{keypos := default} = Parsed) -> repair_hint(Parsed#{keypos := 1});
repair_hint(#{type := Type, keypos := KeyPos, merge := Merge}) -> {Type, KeyPos, merge(Merge)}.

%% @doc Returns the path and the options that the native library gets.
-spec native(parsed()) -> {binary(), ats_nif:disk_options()}.
native(#{directory := Directory, merge := Merge, formats := Formats,
         max_memory_entries := MemtableKeys} = Parsed) ->
    Same = maps:with([create, temporary, access, type, keypos, ttl, durability, block_size,
                      memory, continuation_age, snapshot_memory, compressed], Parsed),
    {native_name(Directory),
     Same#{merge => merge(Merge), formats => formats(Formats), memtable_keys => MemtableKeys}}.

%% Returns the merge as the file that describes a table has it. Values that are replaced are not
%% merged.
-spec merge(term()) -> default | binary().
merge(default) -> default;
merge(replace) -> <<>>;
merge(Merge) -> term_to_binary(Merge, [{minor_version, 2}]).

-spec formats(default | ats_format:formats()) -> default | binary().
formats(default) -> default;
formats(none) -> <<>>;
formats(Formats) -> term_to_binary(Formats, [{minor_version, 2}]).

%% @doc Checks that the modules are there that a table remembers, unless options name others. A
%% table can be opened if the module that merges has another version: keys that are merged can be
%% read, and `dats:upgrade_merge/2' merges the others.
-spec check_modules(parsed()) -> ok | {error, reason, term()}.
check_modules(#{directory := Directory, merge := Merge, formats := Formats}) ->
    case ats_nif:disk_describe(native_name(Directory)) of
        {ok, _Type, _KeyPos, OfTable, FormatsOfTable} ->
            case check_formats(Formats, FormatsOfTable) of
                ok when Merge =:= default -> check_program(OfTable);
                Checked -> Checked
            end;
        %% Opening the table reports its faults.
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

%% @doc Returns `true' if a process that asks for some options can use a table that was opened with
%% others. Options that only concern speed or durability are decided by the first process that opens
%% the table.
-spec fits(Asked :: parsed(), Opened :: parsed()) -> boolean().
fits(Asked, Opened) ->
    Same = fun(Item) -> maps:get(Item, Asked) =:= maps:get(Item, Opened) end,
    SameIfGiven = fun(Item) -> maps:get(Item, Asked) =:= default orelse Same(Item) end,
    lists:all(Same, [directory, access])
        andalso lists:all(SameIfGiven, [type, keypos, merge, formats, ttl]).

%% @doc Returns the type and the position of the key of the table in a directory.
-spec describe(term()) ->
          {ok, ats:table_type(), pos_integer()} | {error, ats_disk_failure:reason()} | badarg.
describe(Name) ->
    case native_directory(Name) of
        {ok, Native} ->
            case ats_nif:disk_describe(Native) of
                {ok, Type, KeyPos, _Merge, _Format} -> {ok, Type, KeyPos};
                Failed -> ats_disk_failure:of_call(Failed, Name)
            end;
        Wrong ->
            Wrong
    end.

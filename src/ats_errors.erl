%% @private @doc The errors of `ats': the reasons of exceptions and their messages.
%%
%% A native function refuses its arguments with a *cause*. Most causes speak about the table (`id':
%% there is no such table), some about another argument (`badkey'), and `none' says only that
%% something other than the table is wrong. The exception a user sees is `badarg' with `error_info',
%% as exceptions of the standard library are; the shell and `erl_error' then ask {@link
%% format_error/2} for words, and only then is time spent on finding the argument to blame. Facts
%% about the table are asked of the module that raised the exception.
-module(ats_errors).

-export([reason/1, is_of_system/1, options/1, format_error/2]).

-export_type([cause/0, in_table/0]).

-type cause() ::
        type | id | access | table_type | ttl | max_memory  % what is wrong with the table
      | badkey | keypos | position             % what is wrong with another argument
      | options | function | range
      | waits_for_itself | key_not_first      % of fetch/3
      | private                              % of follow/2, view/3
      | {invalid, Option :: binary()}        % options, with the words about them
      | {argument, Number :: pos_integer(), Words :: binary()}
      | owner | not_owner | already_exists
      | full_scan
      | backend                                % of new/2
      | merge | operand | value | default    % of merge/3,4,5
      | object | contended                     % of update/3
      | steps | no_such_part | pattern        % of transact/4
      | {part, condition | then | 'else', pos_integer(), cause()}
      | {in_table, pos_integer(), in_table()}
      | tables | table | disk                 % of transact/1
      | none
      | system_limit
      | source | target | filter | lower | upper | row % of functions of `dats'
      | storage | damaged | read_only | merge_failed  % the store of the table failed
      | too_long                                      % for the store of the table
      | pending                                % a module has to merge the values of a key first
      | snapshot_expired
      | snapshot | no_snapshot | other_table         % of snapshots
      | snapshot_ended
      | {snapshot_ended, Why :: atom()}
      | {second, cause()}                            % the second argument is to blame
      | {merge_failed, Key :: term(), Failure :: term()}
      | {merge_mismatch, Key :: term(), Versions :: term()}
      | {key_format | value_format | format_failed, Failure :: term()}
      | posix()
      | {dets, Reason :: term()}               % what Dets says
      | {panic, Text :: term()}.

-type posix() ::
        eacces | eagain | ebadf | ebusy | edquot | eexist | efbig | einval | eio | eisdir | eloop
      | emfile | enametoolong | enfile | enodev | enoent | enolck | enomem | enospc | enotdir
      | enotempty | enxio | eopnotsupp | eperm | erofs | estale | etimedout | etxtbsy | exdev.
%% The errors of the system that a native function names by their codes.

-type in_table() :: cause() | {condition | then | 'else', non_neg_integer(), cause()}.
%% The fault of a table in a transaction over several.

-type message() :: none | unicode:chardata().
%% The fault of one argument; `none' if it has none.
-type table() :: {Facade :: module(), Table :: term()}.

%% @doc Returns the reason of the exception for a cause.
%%
%% A panic is a programming error in the native library that was caught before it could harm the
%% virtual machine. It must never be mistaken for a wrong argument, so it has a name of its own.
-spec reason(cause()) ->
          badarg | system_limit | contended | storage_failed | {ats_internal_error, term()}
        | Dets :: term().
reason(system_limit) -> system_limit;
reason(too_long) -> system_limit;
reason(contended) -> contended;
reason({part, _Part, _Number, Cause}) -> reason(Cause);
reason({in_table, _Number, {_Part, _PartNumber, Cause}}) -> reason(Cause);
reason({in_table, _Number, Cause}) -> reason(Cause);
reason(Failure)
  when Failure =:= storage; Failure =:= damaged; Failure =:= read_only; Failure =:= merge_failed;
       Failure =:= snapshot_expired ->
    storage_failed;
reason({dets, Reason}) -> Reason;
reason({panic, Text}) -> {ats_internal_error, Text};
reason(Cause) ->
    case is_of_system(Cause) of
        true -> storage_failed;
        false -> badarg
    end.

%% @doc Tells whether a cause is an error of the system, a {@type posix()}.
-spec is_of_system(term()) -> boolean().
is_of_system(Cause) ->
    lists:member(Cause, [eacces, eagain, ebadf, ebusy, edquot, eexist, efbig, einval, eio, eisdir,
                         eloop, emfile, enametoolong, enfile, enodev, enoent, enolck, enomem,
                         enospc, enotdir, enotempty, enxio, eopnotsupp, eperm, erofs, estale,
                         etimedout, etxtbsy, exdev]).

%% @doc Returns the options of `erlang:error/3' that let the exception explain itself.
-spec options(cause()) -> [{error_info, map()}].
options(Cause) ->
    [{error_info, #{module => ?MODULE, cause => Cause}}].

%% @doc Names the wrong argument and says why it is wrong: the callback behind `error_info'.
-spec format_error(Reason :: term(), erlang:stacktrace()) ->
          #{pos_integer() | general | reason => unicode:chardata()}.
format_error({ats_internal_error, _Text}, _StackTrace) ->
    #{general => <<"a failure inside ats; please report it with this text">>};
format_error(storage_failed, _StackTrace) ->
    #{general => <<"the store of the table could not read or write its objects">>};
format_error(_Reason, [{Facade, Function, Arguments, Location} | _])
  when is_list(Arguments) ->
    case maps:get(cause, proplists:get_value(error_info, Location, #{}), none) of
        too_long ->
            #{general => <<"a key, an object, or a list of objects takes more than 2 GiB in the "
                           "external term format, the limit of tables on disk, or a binary in "
                           "a fun 4 GiB">>};
        Cause ->
            argument_messages(Facade, Function, Arguments, Cause)
    end;
format_error(_Reason, _StackTrace) ->
    #{}.

-spec argument_messages(module(), atom(), [term()], cause()) ->
          #{pos_integer() => unicode:chardata()}.
argument_messages(Facade, Function, Arguments, Cause) ->
    number_messages(case plain_messages(Facade, Function, Arguments, Cause) of
                 table_comes_first -> messages(Facade, Function, Arguments, Cause);
                 Messages -> Messages
             end).

-spec number_messages([message()]) -> #{pos_integer() => unicode:chardata()}.
number_messages(Messages) ->
    Numbered = lists:zip(lists:seq(1, length(Messages)), Messages),
    maps:from_list([{Number, unicode:characters_to_binary(Message)}
                    || {Number, Message} <- Numbered, Message =/= none]).

%%--------------------------------------------------------------------------------------------
%% One list of messages for each function, in the order of its arguments
%%--------------------------------------------------------------------------------------------

%% Returns messages that need no look at the table in the first argument.
-spec plain_messages(module(), atom(), [term()], cause()) -> [message()] | table_comes_first.
plain_messages(_Facade, _Function, _Arguments, Limit)
  when Limit =:= system_limit; Limit =:= too_long ->
    [];
plain_messages(_Facade, transact, [Tables], Cause) ->
    [transaction(Tables, Cause)];
plain_messages(_Facade, new, [Name, Options], Cause) ->
    new_messages(Name, Options, Cause);
plain_messages(_Facade, _Function, _Arguments, {argument, Number, Text}) ->
    lists:duplicate(Number - 1, none) ++ [Text];
plain_messages(_Facade, whereis, [Name], _Cause) ->
    [table_name(Name)];
plain_messages(_Facade, _Continue, [{Snapshot, _What, _Continuation}],
               {snapshot_ended, _Why} = Cause) ->
    [table(Snapshot, Cause)];
plain_messages(_Facade, Continue, [_Continuation], _Cause)
  when Continue =:= select; Continue =:= select_reverse;
       Continue =:= match; Continue =:= match_object ->
    [<<"invalid continuation">>];
plain_messages(_Facade, unfollow, [_Ref], _Cause) ->
    [following()];
plain_messages(_Facade, follow_more, [Ref, _Number], _Cause) when not is_reference(Ref) ->
    [following()];
plain_messages(_Facade, follow_more, [_Ref, _Number], _Cause) ->
    [none, <<"not a positive number, nor true">>];
plain_messages(_Facade, match_spec_compile, [MatchSpec], _Cause) ->
    [match_spec(MatchSpec)];
plain_messages(_Facade, match_spec_run, [List, Compiled], _Cause) ->
    [proper_list(List), compiled_message(Compiled)];
plain_messages(_Facade, repair_continuation, [_Continuation, _MatchSpec], range) ->
    [<<"the continuation of a range, which cannot be repaired">>];
plain_messages(_Facade, repair_continuation, [_Continuation, MatchSpec], _Cause) ->
    [none, first_of([match_spec(MatchSpec), <<"not a valid match specification">>])];
plain_messages(_Facade, range_fold, [_Function, _Acc, _Table, _Low, _High | _Options], function) ->
    [<<"not a function of two arguments">>];
plain_messages(Facade, range_fold, [Function, Acc, Table, Low, High], Cause) ->
    plain_messages(Facade, range_fold, [Function, Acc, Table, Low, High, []], Cause);
plain_messages(Facade, range_fold, [_Function, _Acc, Table, _Low, _High, Options], Cause) ->
    [none, none, table(Facade, range_fold, Table, Cause), none, none,
     range_options(any, Options)];
plain_messages(_Facade, file2tab, [_File], _Cause) ->
    [];
plain_messages(_Facade, file2tab, [_File, Options], Cause) ->
    [none, table(proplists:get_value(table, Options), Cause)];
plain_messages(_Facade, _Function, [_Table, _DetsTable], {dets, badarg}) ->
    [none, <<"not an open Dets table">>];
plain_messages(Facade, Fold, [_Function, _Acc, Table], Cause) when Fold =:= foldl; Fold =:= foldr ->
    [none, none, table(Facade, Fold, Table, Cause)];
plain_messages(_Facade, update_counter, [_Table, _Key, Operations, Default], Cause)
  when not is_tuple(Default), Cause =/= type, Cause =/= id, Cause =/= access ->
    %% `ets' looks at the default object once the table may be written, before all else.
    [none | counter_messages(Operations, tuple(1, Default), none)];
plain_messages(_Facade, _Function, [_Table | _Arguments], _Cause) ->
    table_comes_first;
plain_messages(_Facade, _Function, _Arguments, _Cause) ->
    [].

-spec messages(module(), atom(), [term()], cause()) -> [message()].
messages(Facade, Function, [Table | Arguments], Cause) ->
    case table(Facade, Function, Table, Cause) of
        none -> [none | other_messages(Function, {Facade, Table}, Arguments, Cause)];
        Message -> [Message | further_messages(Function, Arguments, Cause)]
    end.

%% Returns the text for a table that is a snapshot which has ended, if it is one.
-spec ended(term(), message()) -> message().
ended(Table, Otherwise) ->
    case ats_nif:snapshot_state(Table) of
        Why when is_atom(Why), Why =/= none -> table(Table, {snapshot_ended, Why});
        _ -> Otherwise
    end.

-spec table(module(), atom(), term(), cause()) -> message().
table(dats, _Function, Table, id) ->
    ended(Table, [<<"this table of dats is not open">>, ats_hints:other_table(Table)]);
table(Facade, Function, Table, table_type) ->
    [table(Table, table_type), needed_type(Function, Facade:info(Table, type))];
table(_Facade, _Function, Table, Cause) ->
    table(Table, Cause).

%% The table may be gone by now.
-spec needed_type(atom(), ats:table_type() | undefined) -> unicode:chardata().
needed_type(_Function, undefined) ->
    "";
needed_type(Function, Type) ->
    Needed = case lists:member(Function, [range, range_count, range_delete, range_fold, prefix,
                                          rank, nth, range_nth]) of
                 true -> "an ordered table";
                 false -> "a set or an ordered_set"
             end,
    io_lib:format(": it is ~ts, and ~ts needs ~ts", [ats_hints:type(Type), Function, Needed]).

-spec table(term(), cause()) -> message().
table(Table, type) when is_reference(Table) ->
    [<<"not a valid table identifier">>, ats_hints:other_table(Table)];
table(Table, type) ->
    [<<"not an atom or a table identifier">>, ats_hints:other_table(Table)];
table(Table, id) ->
    ended(Table, [<<"the table identifier does not refer to an existing ATS table">>,
                  no_table(Table)]);
table(Table, access) ->
    [<<"the table identifier refers to an ATS table with insufficient access rights">>,
     access(Table)];
table(_Table, private) ->
    <<"the table is private, so no other process can tell its owner of changes">>;
table(_Table, table_type) ->
    <<"the table identifier refers to an ATS table of a type not supported by this operation">>;
table(_Table, ttl) ->
    <<"the objects of the table do not expire: it was made without the option `ttl'">>;
table(_Table, max_memory) ->
    <<"the objects of a key are larger than the option `max_memory' of the table says">>;
table(_Table, snapshot) ->
    <<"the table is a snapshot, which can only be read">>;
table(_Table, key_not_first) ->
    <<"the key of the table is not the first element of its objects">>;
table(_Table, no_snapshot) ->
    <<"not a snapshot of a table">>;
table(Snapshot, snapshot_ended) ->
    ended(Snapshot, <<"what was read at one moment has ended with its table">>);
table(_Table, backend) ->
    <<"the store of the table has no snapshots">>;
table(_Table, {snapshot_ended, released}) ->
    <<"the snapshot was released">>;
table(_Table, {snapshot_ended, owner_ended}) ->
    <<"the snapshot has ended with the process that made it">>;
table(_Table, {snapshot_ended, max_age}) ->
    <<"the snapshot has ended: it is older than its option `max_age' says">>;
table(_Table, {snapshot_ended, memory}) ->
    <<"the snapshot has ended: it was the oldest when snapshots held more memory than the option "
      "`snapshot_memory' of the table says">>;
table(_Table, {snapshot_ended, closed}) ->
    <<"the snapshot has ended: its table was closed">>;
table(_Table, disk) ->
    <<"the table is on disk: dats:transact/4 changes it, and no other table with it">>;
table(_Table, row) ->
    <<"the table has an object that is no pair of a key and a value">>;
table(_Table, _Cause) ->
    none.

%% Says why there is no table.
-spec no_table(term()) -> unicode:chardata().
no_table(Table) when is_reference(Table) -> <<": it was deleted, or its owner has ended">>;
no_table(Name) -> ats_hints:other_table(Name).

-spec access(term()) -> unicode:chardata().
access(Table) ->
    case ats_info:item(protection, Table) of
        protected -> <<": it is `protected', and another process is its owner">>;
        private -> <<": it is `private', and another process is its owner">>;
        _ -> ""
    end.

-spec backend() -> message().
backend() ->
    <<"invalid options: `backend' names no store of this build; stores for comparison are in "
      "builds with the cargo feature `rivals' (rebar3 as bench)">>.

-spec new_messages(term(), term(), cause()) -> [message()].
new_messages(Name, Options, Cause) ->
    case [name(Name), proper_list(Options)] of
        [none, none] when Cause =:= already_exists -> [<<"table name already exists">>];
        [none, none] when Cause =:= backend -> [none, backend()];
        [none, none] -> [none, invalid_options(Cause)];
        Messages -> Messages
    end.

-spec invalid_options(cause()) -> message().
invalid_options({invalid, Text}) -> [<<"invalid options: ">>, Text];
invalid_options(_Cause) -> <<"invalid options">>.

%% The table is to blame, but some functions can say without it that another argument is wrong
%% too. They are those of which `ets' says it, so that both explain a call in the same words.
-spec further_messages(atom(), [term()], cause()) -> [message()].
further_messages(Insert, [Objects], _Cause) when Insert =:= insert; Insert =:= insert_new ->
    [objects(1, Objects)];
further_messages(delete_object, [Object], _Cause) ->
    [tuple(1, Object)];
further_messages(lookup_element, [_Key, Pos | _], _Cause) ->
    [none, positive(Pos)];
further_messages(give_away, [Pid, _Gift], _Cause) ->
    [pid(Pid)];
further_messages(rename, [NewName], _Cause) ->
    [table_name(NewName)];
further_messages(update_counter, [_Key, Operations], _Cause) ->
    [none, counter_operations(Operations)];
further_messages(update_element, [_Key, Elements], _Cause) ->
    [none, element_specifications(Elements)];
further_messages(Select, [MatchSpec, Limit], _Cause)
  when Select =:= select; Select =:= select_reverse ->
    [match_spec(MatchSpec), positive(Limit)];
further_messages(Match, [_Pattern, Limit], _Cause)
  when Match =:= match; Match =:= match_object ->
    [none, positive(Limit)];
further_messages(_Function, _Arguments, _Cause) ->
    [].

%% The table is in order here, so one of the other arguments is not.
-spec other_messages(atom(), table(), [term()], cause()) -> [message()].
other_messages(diff, _Table, [Second | _], {second, Cause}) ->
    [table(Second, Cause)];
other_messages(diff, _Table, [_Second | _], other_table) ->
    [<<"a snapshot of another table">>];
other_messages(fetch, _Table, [_Key, _Function, Options], options) ->
    [none, none, lifetime(Options)];
other_messages(fetch, _Table, [_Key, _Function | _], function) ->
    [none, <<"not a function of one argument">>];
other_messages(fetch, _Table, [_Key, _Function | _], waits_for_itself) ->
    [<<"a key whose value is being made by this process, or by one that waits for it">>];
other_messages(fetch, _Table, [_Key, _Function | _], position) ->
    [<<"the key of an object without a second element">>];
other_messages(info, _Table, [Item], _Cause) ->
    [[<<"not a valid info item">>, ats_hints:nearest(Item, ats_info:items())]];
other_messages(Insert, Table, [Objects], _Cause) when Insert =:= insert; Insert =:= insert_new ->
    [objects(keypos(Table), Objects)];
other_messages(Insert, _Table, [_Objects, Options], options)
  when Insert =:= insert; Insert =:= insert_new ->
    [none, lifetime(Options)];
other_messages(Insert, Table, [Objects, _Options], _Cause)
  when Insert =:= insert; Insert =:= insert_new ->
    [objects(keypos(Table), Objects)];
other_messages(touch, _Table, [_Key, _Ttl], options) ->
    [none, no_time()];
other_messages(delete_object, Table, [Object], _Cause) ->
    [tuple(keypos(Table), Object)];
other_messages(lookup_element, _Table, [_Key, Pos | _], badkey) ->
    [<<"not a key that exists in the table">>, positive(Pos)];
other_messages(lookup_element, _Table, [_Key, Pos | _], _Cause) ->
    [none, first_of([positive(Pos), <<"position is greater than the size of the object">>])];
other_messages(Step, _Table, [_Key], _Cause)
  when Step =:= next; Step =:= prev; Step =:= next_lookup; Step =:= prev_lookup ->
    [<<"not a key that exists in the table">>];
other_messages(_Select, _Table, [_MatchSpec | _], full_scan) ->
    [<<"reads the whole table, which its option full_scan refuses">>];
other_messages(rename, _Table, [NewName], _Cause) ->
    [first_of([table_name(NewName), <<"table name already exists">>])];
other_messages(Select, _Table, [MatchSpec], _Cause)
  when Select =:= select; Select =:= select_reverse; Select =:= select_count;
       Select =:= select_delete; Select =:= select_replace; Select =:= select_take;
       Select =:= explain ->
    [first_of([match_spec(MatchSpec), keeps_no_key()])];
other_messages(Select, _Table, [MatchSpec, Limit], _Cause)
  when Select =:= select; Select =:= select_reverse ->
    [match_spec(MatchSpec), positive(Limit)];
other_messages(Match, _Table, [_Pattern], _Cause)
  when Match =:= match; Match =:= match_object; Match =:= match_delete ->
    [<<"not a valid match pattern">>];
other_messages(Match, _Table, [_Pattern, Limit], _Cause)
  when Match =:= match; Match =:= match_object ->
    [none, positive(Limit)];
other_messages(range, _Table, [_Low, _High, Options], _Cause) ->
    [none, none, range_options(any, Options)];
other_messages(Change, _Table, [_Low, _High, Options], _Cause)
  when Change =:= range_count; Change =:= range_delete ->
    [none, none, range_options(bounds, Options)];
other_messages(nth, _Table, [N], _Cause) ->
    [place(N)];
other_messages(range_nth, _Table, [_Low, _High, N | Options], _Cause) ->
    [none, none, place(N) | [range_options(bounds, Bounds) || Bounds <- Options]];
other_messages(prefix, _Table, [_Pattern, Options], options) ->
    [none, range_options(no_bounds, Options)];
other_messages(prefix, _Table, [_Pattern | _], _Cause) ->
    [<<"not a pattern with '_' at its end only">>];
other_messages(lookup_elements, _Table, [_Key, _Positions], badkey) ->
    [<<"not a key that exists in the table">>];
other_messages(lookup_elements, _Table, [_Key, _Positions], position) ->
    [none, <<"a position is greater than the size of the object">>];
other_messages(lookup_elements, _Table, [_Key, _Positions], _Cause) ->
    [none, <<"not a list of positions">>];
other_messages(Many, _Table, [_Keys], _Cause)
  when Many =:= lookup_many; Many =:= take_many; Many =:= delete_many ->
    [<<"not a list of keys">>];
other_messages(give_away, _Table, [_Pid, _Gift], owner) ->
    [<<"the process is already the owner of the table">>];
other_messages(give_away, _Table, [_Pid, _Gift], not_owner) ->
    [<<"the current process is not the owner">>];
other_messages(give_away, _Table, [Pid, _Gift], _Cause) ->
    [first_of([pid(Pid), <<"the pid refers to a terminated process">>])];
other_messages(setopts, _Table, [Options], _Cause) ->
    [[<<"invalid options: ">>, ats_changes:wrong(Options)]];
other_messages(Function, _Table, [_Options], Cause)
  when Function =:= table; Function =:= snapshot ->
    [invalid_options(Cause)];
other_messages(slot, _Table, [_Number], _Cause) ->
    [<<"out of range">>];
other_messages(safe_fixtable, _Table, [_Fix], _Cause) ->
    [<<"not a boolean value">>];
other_messages(update_counter, Table, [_Key, Operations | Default], Cause) ->
    counter_messages(Operations, default_object(Table, Default), Cause);
other_messages(update, _Table, [_Key, _Function], function) ->
    [none, <<"not a function of one argument">>];
other_messages(update, _Table, [_Key, _Function], object) ->
    [none, <<"has not returned a list of no object or of one with this key">>];
other_messages(transact, _Table, Lists, {part, Part, Number, Cause}) ->
    Message = io_lib:format("number ~b: ~ts", [Number, part(Lists, Part, Number, Cause)]),
    case Part of
        condition -> [Message];
        then -> [none, Message];
        'else' -> [none, none, Message]
    end;
other_messages(transact, _Table, [_Conditions, _Then, _Else], steps) ->
    [<<"more than 10000 conditions and steps">>];
other_messages(transact, _Table, [Conditions, Then, Else], _Cause) ->
    [proper_list(Conditions), proper_list(Then), proper_list(Else)];
other_messages(update_element, Table, [_Key, Elements | Default], Cause) ->
    element_messages(Elements, default_object(Table, Default), Cause);
other_messages(merge, Table, [_Key, _Operand, Merge | Default], Cause) ->
    merge_messages(Merge, default_object(Table, Default), Cause);
other_messages(Write, _Table, [_Key, _Value], operand) when Write =:= merge; Write =:= write ->
    [none, <<"not a value that the merge of the table takes">>];
other_messages(_From, _Table, [_Source | _Options], source) ->
    [<<"not a table that can be read">>];
other_messages(view, _Table, [_Spec, _Options], already_exists) ->
    [none, <<"table name already exists">>];
other_messages(_To, _Table, [_Target | _Options], target) ->
    [<<"not a table that can be written">>];
other_messages(_Function, _Table, [_Key | _], {key_format, {Module, Encode, _}}) ->
    [encode_message(Module, Encode)];
other_messages(_Function, _Table, [_Key, _Value], {value_format, {Module, Encode, _}}) ->
    [none, encode_message(Module, Encode)];
other_messages(select_range, _Table, [_Lower, _Upper, _Select, _N], filter) ->
    [none, none, <<"has not returned a boolean">>];
other_messages(select_range, _Table, [_Lower, _Upper, _Select, _N], lower) ->
    [<<"has not returned a boolean">>];
other_messages(select_range, _Table, [_Lower, _Upper, _Select, _N], upper) ->
    [none, <<"has not returned a boolean">>];
other_messages(select_range, _Table, [Lower, Upper, Select, N], _Cause) ->
    [bound(Lower), bound(Upper), select_function_message(Select), positive(N)];
other_messages(select_continue, _Table, [_Handle, _N], Cause)
  when Cause =:= filter; Cause =:= upper ->
    [<<"its function has not returned a boolean">>];
other_messages(select_continue, _Table, [_Handle, N], _Cause) ->
    [none, positive(N)];
other_messages(_Function, _Table, _Arguments, _Cause) ->
    [].

%% Says why a condition or a step fails.
%% The fault of the list of tables of a transaction.
-spec transaction(term(), cause()) -> message().
transaction(Tables, {in_table, Number, Cause}) ->
    Message = in_table(lists:nth(Number, Tables), Cause),
    io_lib:format("table number ~b~ts", [Number, Message]);
transaction(_Tables, steps) ->
    <<"more than 10000 tables, conditions and steps">>;
transaction(Tables, _Cause) ->
    proper_list(Tables).

-spec in_table(term(), in_table()) -> unicode:chardata().
in_table(_Element, table) ->
    ": not a tuple of a table, conditions, and two lists of steps";
in_table(_Element, tables) ->
    ": a transaction has up to 64 tables";
in_table({_Table, _, _, _}, {Part, 0, _Cause}) ->
    Name = case Part of condition -> "conditions"; then -> "Then"; 'else' -> "Else" end,
    [", ", Name, ": not a proper list"];
in_table({_Table, Conditions, Then, Else}, {Part, Number, Cause}) ->
    Message = part([Conditions, Then, Else], Part, Number, Cause),
    Format = case Part of
                 condition -> ", condition number ~b: ~ts";
                 then -> ", step number ~b of Then: ~ts";
                 'else' -> ", step number ~b of Else: ~ts"
             end,
    io_lib:format(Format, [Number, Message]);
in_table({Table, _, _, _}, Cause) ->
    [": ", table(Table, Cause)].

%% The fault of a part of a transaction, which is in one of these lists.
-spec part([term()], condition | then | 'else', pos_integer(), cause()) -> binary().
part([_Conditions, Then, Else], Part, Number, no_such_part) when Part =/= condition ->
    Steps = case Part of then -> Then; 'else' -> Else end,
    case lists:nth(Number, Steps) of
        Step when is_tuple(Step), tuple_size(Step) > 0 ->
            case lists:member(element(1, Step), [range_delete, match_delete, select_delete,
                                                 select_take, select_replace]) of
                true ->
                    <<"a transaction holds the keys that it names, and this step would need "
                      "others: name each key, as in a step `delete'">>;
                false ->
                    part(no_such_part)
            end;
        _ ->
            part(no_such_part)
    end;
part(_Lists, _Part, _Number, Cause) ->
    part(Cause).

-spec part(cause()) -> binary().
part(no_such_part) -> <<"not a condition or a step">>;
part(pattern) -> <<"not a valid pattern with guards">>;
part(badkey) -> <<"not a key that exists in the table">>;
part(keypos) -> same_as_keypos();
part(position) -> <<"a position is out of range">>;
part(operand) -> <<"not a value that can be merged in this way">>;
part(value) -> <<"the value in the object cannot be merged in this way">>;
part(merge) -> <<"not a valid merge">>;
part(table_type) -> <<"not supported by tables of this type">>;
part(system_limit) -> <<"the result is larger than an integer may be">>;
part(_Cause) -> <<"not a valid object, operation, or counter">>.

-spec encode_message(module(), atom()) -> message().
encode_message(Module, Encode) ->
    io_lib:format("~tw:~tw/1 makes no binary of it", [Module, Encode]).

-spec merge_messages(term(), message(), cause()) -> [message()].
merge_messages(_Merge, Default, badkey) ->
    [<<"not a key that exists in the table, and its object would need more than the operand">>,
     none, none, Default];
merge_messages(Merge, _Default, operand) ->
    [none, explain_merge(<<"not a value that can be merged in this way">>, Merge)];
merge_messages(Merge, _Default, value) ->
    [none, none,
     explain_merge(<<"the value in the given position, in the object, cannot be merged in this "
                     "way">>, Merge)];
merge_messages(_Merge, _Default, position) ->
    [none, none, <<"the position is out of range">>];
merge_messages(_Merge, _Default, keypos) ->
    [none, none, same_as_keypos()];
merge_messages(_Merge, Default, default) ->
    [none, none, none, Default];
merge_messages(Merge, _Default, _Cause) ->
    [none, none, ats_hints:merge(Merge)].

%% Adds the type of value that the merge, or the merge in `{Position, Merge}', needs.
-spec explain_merge(binary(), term()) -> binary().
explain_merge(Message, {Position, Merge}) when is_integer(Position) ->
    explain_merge(Message, Merge);
explain_merge(Message, Merge) ->
    <<Message/binary, ": ", (merge_needs(Merge))/binary>>.

%% Says which values a merge needs, if it does not take all terms.
-spec merge_needs(ats:merge()) -> binary().
merge_needs(sum) ->
    <<"sum needs a number">>;
merge_needs(statistics) ->
    <<"statistics needs a number, or {Min, Max, Sum, Count} of numbers">>;
merge_needs(append) ->
    <<"append needs proper lists, or binaries">>;
merge_needs(Merge) when Merge =:= union; Merge =:= intersection ->
    <<(atom_to_binary(Merge))/binary,
      " needs lists in ascending order without duplicates, or maps">>;
merge_needs({prune, Merge}) ->
    merge_needs(Merge);
merge_needs({last, Element}) ->
    <<"{last, ", (integer_to_binary(Element))/binary,
      "} needs a tuple that has this element">>;
merge_needs({vector, Merges}) ->
    <<"{vector, _} needs a tuple of size ", (integer_to_binary(length(Merges)))/binary,
      ", each element as its merge needs it">>;
merge_needs(_Any) ->
    <<"it takes any term">>.

-spec counter_messages(term(), message(), cause()) -> [message()].
counter_messages(Operations, Default, badkey) ->
    [<<"not a key that exists in the table">>, counter_operations(Operations), Default];
counter_messages(_Operations, Default, keypos) ->
    [none, same_as_keypos(), Default];
counter_messages(_Operations, _Default, position) ->
    [none, <<"the position in the update operation is out of range">>];
counter_messages(Operations, Default, _Cause) ->
    case {counter_operations(Operations), Default} of
        {none, none} ->
            %% All arguments of the caller are valid, so the fault is in the object of the table.
            [none,
             <<"the value in the given position, in the object, is not an integer">>];
        {Message, _} ->
            [none, Message, Default]
    end.

-spec element_messages(term(), message(), cause()) -> [message()].
element_messages(Elements, Default, position) ->
    %% `ets' looks at the numbers of positions only since Erlang/OTP 27.
    case list_to_integer(erlang:system_info(otp_release)) >= 27 of
        true -> [none, <<"the position in the update operation is out of range">>];
        false -> element_messages(Elements, Default, none)
    end;
element_messages(_Elements, Default, keypos) ->
    [none, same_as_keypos(), Default];
element_messages(Elements, Default, _Cause) ->
    case {element_specifications(Elements), Default} of
        {none, none} -> [none, <<"out of range">>];
        {Message, _} -> [none, Message, Default]
    end.

%%--------------------------------------------------------------------------------------------
%% Messages about one argument
%%--------------------------------------------------------------------------------------------

-spec same_as_keypos() -> message().
same_as_keypos() ->
    <<"the position is the same as the key position">>.

-spec bound(term()) -> message().
bound({key, _Key}) -> none;
bound(unbounded) -> none;
bound(Less) when is_function(Less, 1) -> none;
bound(_Bound) -> <<"not a function of one argument, {key, Key} or unbounded">>.

-spec select_function_message(term()) -> message().
select_function_message(Select) when is_function(Select, 1); is_function(Select, 2) -> none;
select_function_message(_Select) -> <<"not a function of one or two arguments">>.

-spec pid(term()) -> message().
pid(Pid) when is_pid(Pid) -> none;
pid(_Pid) -> <<"not a pid">>.

-spec name(term()) -> message().
name(Name) when is_atom(Name) -> none;
name(_Name) -> <<"not an atom">>.

-spec proper_list(term()) -> message().
proper_list(List) when is_list(List) ->
    case is_proper(List) of
        true -> none;
        false -> <<"not a proper list">>
    end;
proper_list(_List) ->
    <<"not a list">>.

-spec positive(term()) -> message().
positive(N) when is_integer(N), N >= 1 -> none;
positive(N) when is_integer(N) -> <<"out of range">>;
positive(_N) -> <<"not an integer">>.

-spec place(term()) -> message().
place(N) when is_integer(N), N =/= 0 -> none;
place(N) when is_integer(N) -> <<"out of range">>;
place(_N) -> <<"not an integer">>.

-spec following() -> message().
following() ->
    <<"not a reference of follow/2">>.

-spec keeps_no_key() -> message().
keeps_no_key() ->
    <<"not a valid match specification: a result is no object with the same key">>.

-spec match_spec(term()) -> message().
match_spec(MatchSpec) ->
    try ats_nif:is_compiled_ms(MatchSpec) orelse ats_select:compile(MatchSpec) of
        _ -> none
    catch
        error:_ -> ats_hints:match_spec(MatchSpec)
    end.

-spec range_options(any | bounds | no_bounds, term()) -> message().
range_options(Possible, Options) ->
    first_of([proper_list(Options),
              case [ats_range:are_options(P, Options) || P <- [any, Possible]] of
                  [true, true] -> none;
                  [true, false] when Possible =:= bounds -> <<"invalid options (not only bounds)">>;
                  [true, false] -> <<"invalid options (a prefix has no bounds)">>;
                  [false, _] -> [<<"invalid options: ">>, ats_range:wrong_option(Options)]
              end]).

-spec compiled_message(term()) -> message().
compiled_message(Compiled) ->
    case ats_nif:is_compiled_ms(Compiled) of
        true -> none;
        false -> <<"not a compiled match specification">>
    end.

-spec table_name(term()) -> message().
table_name(Name) when is_atom(Name) -> none;
table_name(_Name) -> <<"invalid table name (must be an atom)">>.

-spec objects(pos_integer(), term()) -> message().
objects(KeyPos, Objects) when is_list(Objects) ->
    case every(fun(Object) -> tuple(KeyPos, Object) =:= none end, Objects) of
        true -> none;
        false -> list_of_objects(KeyPos, Objects)
    end;
objects(KeyPos, Object) ->
    tuple(KeyPos, Object).

-spec list_of_objects(pos_integer(), term()) -> message().
list_of_objects(KeyPos, Objects) ->
    case every(fun(Object) -> is_tuple(Object) andalso Object =/= {} end, Objects) of
        true -> [<<"a tuple in the list ">>, no_key(KeyPos)];
        false -> <<"not a non-empty tuple or a list of non-empty tuples">>
    end.

-spec tuple(pos_integer(), term()) -> message().
tuple(_KeyPos, {}) -> <<"is an empty tuple">>;
tuple(KeyPos, Tuple) when tuple_size(Tuple) >= KeyPos -> none;
tuple(KeyPos, Tuple) when is_tuple(Tuple) -> no_key(KeyPos);
tuple(_KeyPos, _Other) -> <<"not a tuple">>.

-spec lifetime(term()) -> message().
lifetime(#{ttl := _} = Options) when map_size(Options) =:= 1 -> no_time();
lifetime(Options) when is_map(Options) -> <<"not a map with the key `ttl' alone">>;
lifetime(_Other) -> <<"not a map with the key `ttl'; an object is a tuple, {Key, Value}">>.

-spec no_time() -> message().
no_time() ->
    <<"not a time: `infinity', or milliseconds from 1 to 34 years; an insert may also `keep' it">>.

-spec no_key(pos_integer()) -> message().
no_key(KeyPos) ->
    [<<"has no element at the key position ">>, integer_to_binary(KeyPos)].

-spec default_object(table(), [term()]) -> message().
default_object(_Table, []) -> none;
default_object(Table, [Default]) -> tuple(keypos(Table), Default).

-spec counter_operations(term()) -> message().
counter_operations(Operations) ->
    case every(fun is_counter_operation/1, as_list(Operations)) of
        true -> none;
        false -> <<"not a valid update operation">>
    end.

-spec is_counter_operation(term()) -> boolean().
is_counter_operation({Pos, Increment}) ->
    is_integer(Pos) andalso is_integer(Increment);
is_counter_operation({Pos, Increment, Threshold, SetValue}) ->
    lists:all(fun is_integer/1, [Pos, Increment, Threshold, SetValue]);
is_counter_operation(Increment) ->
    is_integer(Increment).

-spec element_specifications(term()) -> message().
element_specifications(Elements) ->
    case every(fun is_element_specification/1, as_list(Elements)) of
        true -> none;
        false -> <<"is not a valid element specification">>
    end.

-spec is_element_specification(term()) -> boolean().
is_element_specification({Pos, _Value}) -> is_integer(Pos) andalso Pos > 0;
is_element_specification(_Other) -> false.

%%--------------------------------------------------------------------------------------------
%% Helpers
%%--------------------------------------------------------------------------------------------

%% Returns the key position of a table, or 1 if the table is gone by the time the error is
%% formatted, which may be long after the call and on another node.
-spec keypos(table()) -> pos_integer().
keypos({Facade, Table}) ->
    try Facade:info(Table, keypos) of
        undefined -> 1;
        KeyPos -> KeyPos
    catch
        error:_ -> 1
    end.

-spec as_list(term()) -> maybe_improper_list().
as_list(List) when is_list(List) -> List;
as_list(Term) -> [Term].

%% Like lists:all/2, but a list without a proper end has no such property.
-spec every(fun((term()) -> boolean()), term()) -> boolean().
every(Predicate, [Element | Rest]) -> Predicate(Element) andalso every(Predicate, Rest);
every(_Predicate, []) -> true;
every(_Predicate, _ImproperEnd) -> false.

-spec is_proper(term()) -> boolean().
is_proper(List) ->
    every(fun(_) -> true end, List).

-spec first_of([message()]) -> message().
first_of([none | Messages]) -> first_of(Messages);
first_of([Message | _]) -> Message;
first_of([]) -> none.

%% Faults that tests have to find: the modules of the application with one text in place of another.
-module(ats_ra_faults).

-export([with/2, code/1]).

%% Does something in this virtual machine with a fault.
-spec with(atom(), fun(() -> Result)) -> Result.
with(Fault, Do) ->
    {Module, File, Faulty} = code(Fault),
    Right = code:which(Module),
    {module, Module} = code:load_binary(Module, File, Faulty),
    try
        Do()
    after
        _ = code:purge(Module),
        {module, Module} = code:load_abs(filename:rootname(Right)),
        code:purge(Module)
    end.

%% Returns the module with a fault, for `code:load_binary/3'.
-spec code(atom()) -> {module(), file:filename(), binary()}.
code(Fault) ->
    {Module, Changes} = fault(Fault),
    File = proplists:get_value(source, Module:module_info(compile)),
    {ok, Source} = file:read_file(File),
    Text = lists:foldl(
        fun({From, To}, Before) ->
            [First, Rest] = binary:split(Before, list_to_binary(From)),
            iolist_to_binary([First, To, Rest])
        end,
        Source,
        Changes
    ),
    Copy = filename:join(os:getenv("ATS_RA_COPIES", "/tmp"), filename:basename(File)),
    ok = file:write_file(Copy, Text),
    {ok, Module, Binary} = compile:file(filename:rootname(Copy), [binary, debug_info]),
    ok = file:delete(Copy),
    {Module, File, Binary}.

%% The moment is that before the last command.
fault(early_snapshot) ->
    {ats_ra_machine, [
        {"    Answer = ats_ra_command:run",
            "    Early = case is_due(Since + 1, State) of\n"
            "                true -> ats_ra_moment:take(Table);\n"
            "                false -> none\n"
            "            end,\n"
            "    Answer = ats_ra_command:run"},
        {"ats_ra_moment:take(Table)},", "Early},"}
    ]};
%% The moment is that at which the first chunk is asked for.
fault(late_snapshot) ->
    Now = "    Snapshot = ats:snapshot(Id),\n",
    Then = "    ok = proc_lib:init_ack({reader, self()}),\n",
    Wait = "    receive {next, _, _} = Next -> self() ! Next end,\n",
    {ats_ra_moment, [{Now ++ Then, Then ++ Wait ++ Now}]};
fault(no_sync) ->
    {ats_ra_snapshot, [{"    ok = file:sync(File),\n", ""}]};
fault(no_sync_of_directories) ->
    {ats_ra_snapshot, [{"close_durably(open(Dir, [read, directory]))",
                        "file:close(open(Dir, [read, directory]))"}]};
%% The snapshot is the table itself, which goes on.
fault(no_checkpoint) ->
    {ats_ra_moment, [{"ok = dats:checkpoint(Name, Dir),\n    {checkpoint, Dir}",
                      "{checkpoint, element(1, {dats:info(Name, filename), Dir})}"}]};
fault(no_flush) ->
    {ats_ra_moment, [{"    ok = dats:flush(Name),\n", ""}]};
fault(no_links) ->
    {ats_ra_table, [{"orelse link(From, Dir, Options)", "orelse {From, Dir, Options}"}]};
fault(no_check) ->
    {ats_ra_snapshot, [{"ats_ra_table:check(directory(Dir), Table)", "_ = Table, ok"}]};
fault(no_checksum) ->
    {ats_ra_snapshot, [{"case erlang:crc32(Bytes) of", "case Checksum of"}]};
fault(no_end) ->
    End = "        _ -> {error, damaged}\n    end.\n",
    {ats_ra_snapshot, [{End, "        _ -> {ok, Acc}\n    end.\n"}]};
fault(half_of_a_list) ->
    {ats_ra_command, [
        {"|| {Key, Objects} <- Saved]", "|| {Key, Objects} <- Saved, Key =:= none]"}
    ]};
%% The table that is on disk is used again, and the log is applied to it once more.
fault(old_table) ->
    {ats_ra_table, [{"io_lib:format(\"~b_~b\", Unique)", "element(1, {\"table\", Unique})"}]};
fault(stale_reads) ->
    {ats_ra, [{"answer(ra:consistent_query(Server,", "answer(ra:local_query(Server,"}]}.

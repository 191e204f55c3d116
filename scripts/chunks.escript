#!/usr/bin/env escript
%% Writes chunks of documentation of modules; see chunks.sh. EDoc knows no groups of functions, so
%% they are told here, and added to the metadata of the functions, where ex_doc finds them. EDoc
%% lists functions that are not exported, too; they are taken out.

groups(ats) ->
    [{"Tables", [new, {delete, 1}, rename, whereis, all, info, setopts, give_away]},
     {"Writing", [insert, insert_new, {delete, 2}, delete_object, delete_all_objects,
                  update_element]},
     {"Counters and merges", [update_counter, merge]},
     {"Taking", [take, take_first, take_last, select_take, take_all_objects]},
     {"Reading", [lookup, lookup_element, lookup_elements, member, tab2list]},
     {"Traversal", [first, last, next, prev, first_lookup, last_lookup, next_lookup, prev_lookup,
                    foldl, foldr, safe_fixtable, slot]},
     {"Match specifications", [select, select_reverse, select_count, select_delete, select_replace,
                               match, match_object, match_delete, match_spec_compile,
                               match_spec_run, is_compiled_ms, test_ms, explain,
                               repair_continuation, fun2ms]},
     {"Ranges", [range, range_count, range_delete, range_fold, range_nth, prefix, rank, nth]},
     {"Snapshots", [snapshot, release, diff, checkpoint]},
     {"Files and Dets tables", [tab2file, file2tab, tabfile_info, init_table, from_dets, to_dets]},
     {"Queries and the shell", [table, i]}];
groups(dats) ->
    [{"Opening and closing", [open_file, close, is_dats_file, is_dets_file, all, info,
                              format_error]},
     {"Durability and space", [sync, flush, compact, shared_memory]},
     {"Snapshots", [snapshot, release, diff]},
     {"Copies and closed tables", [checkpoint, copy_table, rename_table, destroy]},
     {"Writing", [insert, insert_new, delete, delete_object, delete_all_objects, update_element]},
     {"Counters", [update_counter]},
     {"Taking", [take, take_first, take_last, select_take]},
     {"Reading", [lookup, lookup_element, lookup_elements, member, tab2list]},
     {"Traversal", [first, last, next, prev, first_lookup, last_lookup, next_lookup, prev_lookup,
                    foldl, foldr, traverse, safe_fixtable, slot]},
     {"Match specifications", [select, select_reverse, select_count, select_delete, select_replace,
                               match, match_object, match_delete, explain, repair_continuation]},
     {"Ranges", [range, range_count, range_delete, range_fold, prefix]},
     {"Copying and queries", [init_table, to_ets, from_ets, to_ats, from_ats, from_dets, bchunk,
                              is_compatible_bchunk_format, table]},
     {"Pairs that are merged", [open, read, write, select_range, select_continue, upgrade_merge]}];
groups(_) ->
    [].

main([Folder | Sources]) ->
    case code:which(edoc) of
        non_existing ->
            io:put_chars(standard_error, "chunks: Erlang/OTP has no EDoc here\n"),
            halt(1);
        _ ->
            ok = edoc:files(Sources, [{doclet, edoc_doclet_chunks}, {layout, edoc_layout_chunks},
                                      {preprocess, true}, {dir, Folder}]),
            lists:foreach(fun(Source) -> finish(Folder, Source) end, Sources)
    end.

finish(Folder, Source) ->
    Module = filename:basename(Source, ".erl"),
    File = filename:join([Folder, "chunks", Module ++ ".chunk"]),
    {ok, Chunk} = file:read_file(File),
    {ok, Forms} = epp:parse_file(Source, []),
    Exported = lists:append([Functions || {attribute, _, export, Functions} <- Forms]),
    Groups = [{Function, list_to_binary(Group)}
              || {Group, Functions} <- groups(list_to_atom(Module)), Function <- Functions],
    Docs = binary_to_term(Chunk),
    Entries = [with_group(Entry, Groups) || Entry <- element(7, Docs), is_public(Entry, Exported)],
    ok = file:write_file(File, term_to_binary(setelement(7, Docs, Entries), [compressed])).

is_public({{function, Name, Arity}, _, _, _, _}, Exported) -> lists:member({Name, Arity}, Exported);
is_public(_Entry, _Exported) -> true.

with_group({{function, Name, Arity} = Id, Anno, Signature, Doc, Metadata}, Groups) ->
    case [Group || {Function, Group} <- Groups, lists:member(Function, [Name, {Name, Arity}])] of
        [Group] -> {Id, Anno, Signature, Doc, Metadata#{group => Group}};
        [] -> {Id, Anno, Signature, Doc, Metadata}
    end;
with_group(Entry, _Groups) ->
    Entry.

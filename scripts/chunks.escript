#!/usr/bin/env escript
%% Writes chunks of documentation of modules; see chunks.sh. EDoc knows no groups of functions, so
%% they are told here, and added to the metadata of the functions, where ex_doc finds them.

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
     {"Files and Dets tables", [tab2file, file2tab, tabfile_info, init_table, from_dets, to_dets]},
     {"Queries and the shell", [table, i]}];
groups(dats) ->
    [{"Opening and closing", [open_file, close, is_dats_file, is_dets_file, all, info,
                              format_error]},
     {"Durability and space", [sync, flush, compact, shared_memory]},
     {"Closed tables", [copy_table, rename_table, destroy]},
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
     {"Pairs that are merged", [open, read, write, select_range, select_continue, upgrade_merge]}].

main([Folder | Sources]) ->
    case code:which(edoc) of
        non_existing ->
            io:put_chars(standard_error, "chunks: Erlang/OTP has no EDoc here\n"),
            halt(1);
        _ ->
            ok = edoc:files(Sources, [{doclet, edoc_doclet_chunks}, {layout, edoc_layout_chunks},
                                      {preprocess, true}, {dir, Folder}]),
            lists:foreach(fun(Module) -> add_groups(Folder, Module) end, [ats, dats])
    end.

add_groups(Folder, Module) ->
    File = filename:join([Folder, "chunks", atom_to_list(Module) ++ ".chunk"]),
    {ok, Chunk} = file:read_file(File),
    Docs = binary_to_term(Chunk),
    Groups = [{Function, list_to_binary(Group)} || {Group, Functions} <- groups(Module),
                                                   Function <- Functions],
    Entries = [add_group(Entry, Groups) || Entry <- element(7, Docs)],
    ok = file:write_file(File, term_to_binary(setelement(7, Docs, Entries), [compressed])).

add_group({{function, Name, Arity} = Id, Anno, Signature, Doc, Metadata}, Groups) ->
    case [Group || {Function, Group} <- Groups, Function =:= Name orelse Function =:= {Name, Arity}] of
        [Group] -> {Id, Anno, Signature, Doc, Metadata#{group => Group}};
        [] -> {Id, Anno, Signature, Doc, Metadata}
    end;
add_group(Type, _Groups) ->
    Type.

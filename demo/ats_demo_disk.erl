%% @doc Tables on disk: another virtual machine writes the Unicode Character Database, is killed,
%% and this one reads the tables.
%%
%% One table has the characters. The other counts the words of their names, each by a write that
%% merges: nothing is read until the sum is asked for.
-module(ats_demo_disk).

-export([run/2, write/2]).

-define(AT_ONCE, 1000).
-define(SHOWN, 5).

%% @doc Shows it, and returns whether all that was written is there.
-spec run(file:filename(), [ats_demo_unicode:character()]) -> boolean().
run(DataFile, Characters) ->
    ats_demo_terminal:heading("4. On disk"),
    ats_demo_terminal:line(
      "Another virtual machine writes the characters to one table of dats, and the words of their~n"
      "names to another, which counts them by merging. Then it is killed (kill -9), and "
      "the tables~n"
      "are opened here.", []),
    Directory = filename:join(os:getenv("TMPDIR", "/tmp"), "ats-demo-" ++ os:getpid()),
    ok = file:make_dir(Directory),
    try written(DataFile, Directory) of
        WriteTime -> ask(Directory, Characters, WriteTime)
    after
        _ = file:del_dir_r(Directory)
    end.

-spec written(file:filename(), file:filename()) -> Microseconds :: non_neg_integer().
written(DataFile, Directory) ->
    Paths = lists:append([["-pa", Path] || Path <- code:get_path(), filelib:is_dir(Path)]),
    {ok, Vm, _Node} = peer:start(#{connection => standard_io, args => Paths}),
    {Time, _} = ats_demo_terminal:progress(
                  "writing, in another virtual machine", 1,
                  fun(_) ->
                          peer:call(Vm, ?MODULE, write, [filename:absname(DataFile), Directory],
                                    infinity)
                  end),
    Monitor = erlang:monitor(process, Vm),
    _ = os:cmd("kill -9 " ++ peer:call(Vm, os, getpid, [])),
    receive {'DOWN', Monitor, process, Vm, _} -> Time end.

%% @doc Does the work of the other virtual machine. Returns the time that it took. It leaves the
%% tables open.
-spec write(file:filename(), file:filename()) -> Microseconds :: non_neg_integer().
write(DataFile, Directory) ->
    Characters = ats_demo_unicode:read(DataFile),
    Me = self(),
    _ = spawn(fun() ->
                      {Time, ok} = timer:tc(fun() -> write_all(Characters, Directory) end),
                      Me ! {written, Time},
                      timer:sleep(infinity)
              end),
    receive {written, Time} -> Time end.

-spec write_all([ats_demo_unicode:character()], file:filename()) -> ok.
write_all(Characters, Directory) ->
    {ok, characters} = open(characters, Directory),
    {ok, words} = open(words, Directory),
    insert(Characters),
    lists:foreach(fun(Word) -> ok = dats:write(words, Word, 1) end, words(Characters)).

-spec insert([ats_demo_unicode:character()]) -> ok.
insert([]) ->
    ok;
insert(Characters) ->
    {Some, Rest} = lists:split(min(?AT_ONCE, length(Characters)), Characters),
    ok = dats:insert(characters, [{{Category, Code}, Name}
                                  || {Code, Category, Name, _, _} <- Some]),
    insert(Rest).

-spec words([ats_demo_unicode:character()]) -> [binary()].
words(Characters) ->
    lists:flatmap(fun({_, _, Name, _, _}) -> ats_demo_unicode:words(Name) end, Characters).

-spec open(characters | words, file:filename()) -> {ok, characters | words}.
open(characters, Directory) ->
    dats:open_file(characters, [{file, filename:join(Directory, "characters")},
                                {type, ordered_set}]);
open(words, Directory) ->
    dats:open_file(words, [{file, filename:join(Directory, "words")}, {merge, sum}]).

-spec ask(file:filename(), [ats_demo_unicode:character()], non_neg_integer()) -> boolean().
ask(Directory, Characters, WriteTime) ->
    {OpenTime, [{ok, characters}, {ok, words}]} =
        timer:tc(fun() -> [open(Table, Directory) || Table <- [characters, words]] end),
    Objects = dats:tab2list(characters),
    Counts = dats:tab2list(words),
    Currencies = dats:prefix(characters, {'Sc', '_'}),
    ok = dats:close(characters),
    ok = dats:close(words),
    Expected = lists:sort([{{Category, Code}, Name} || {Code, Category, Name, _, _} <- Characters]),
    Words = words(Characters),
    Add = fun(Word, Sums) -> maps:update_with(Word, fun(N) -> N + 1 end, 1, Sums) end,
    Equal = Objects =:= Expected
        andalso maps:from_list(Counts) =:= lists:foldl(Add, #{}, Words),
    ats_demo_terminal:line("  ~ts characters and ~ts words written in ~ts, opened after that in "
                           "~ts: ~ts",
                           [ats_demo_terminal:count(length(Objects)),
                            ats_demo_terminal:count(length(Words)),
                            ats_demo_terminal:seconds(WriteTime),
                            ats_demo_terminal:seconds(OpenTime),
                            case Equal of true -> "all there"; false -> "NOT as written" end]),
    ats_demo_terminal:line("  currency signs, one range of the keys: ~b, from ~ts to ~ts",
                           [length(Currencies), element(2, hd(Currencies)),
                            element(2, lists:last(Currencies))]),
    Most = lists:sublist(lists:reverse(lists:keysort(2, Counts)), ?SHOWN),
    ats_demo_terminal:line("  the most frequent words: ~ts",
                           [lists:join(", ",
                                       [io_lib:format("~ts ~ts", [Word, ats_demo_terminal:count(N)])
                                              || {Word, N} <- Most])]),
    Equal.

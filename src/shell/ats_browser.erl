%% @private
%% @doc Tables for a person at the shell: a list of all, and one of them page by page.
%%
%% The pages are read from and written to the group leader of the calling process. Tables are shown
%% by the functions of the facade that the user called.
-module(ats_browser).

-export([list/1, browse/5]).

-define(COLUMNS, [15, 17, 5, 6, 8]).
-define(COMMANDS, "(q)uit (p)Digits (k)ill /Regexp -->").

-type table() :: term().
%% A table of the facade; opaque to this module.

%% The view of a table: `all' objects, or those whose text matches a regular expression.
-record(view, {facade :: module(),
               table :: table(),
               height :: pos_integer(),
               width :: pos_integer(),
               filter = all :: all | {matching, tuple()}}).

%%--------------------------------------------------------------------------------------------
%% All tables
%%--------------------------------------------------------------------------------------------

%% @doc Prints a line for each table. A column is no narrower than that of `ets:i/0'.
-spec list(Facade :: module()) -> ok.
list(Facade) ->
    Header = [atom_to_list(Title) || Title <- [id, name, type, size, mem, owner]],
    Rows = [table_row(Facade, Table) || Table <- lists:sort(Facade:all())],
    Widths = ats_columns:widths([Header | [Row || {table, Row} <- Rows]], ?COLUMNS),
    print_row({table, Header}, Widths),
    io:format(" ~s~n", [lists:duplicate(lists:sum(Widths) + 25, $-)]),
    lists:foreach(fun(Row) -> print_row(Row, Widths) end, Rows).

-type row() :: {table, [string()]} | {unreadable, string()}.

%% A table may be gone by the time that its line is made.
-spec table_row(module(), table()) -> row().
table_row(Facade, Table) ->
    case Facade:info(Table) of
        undefined ->
            {unreadable, text(Table)};
        Info ->
            Items = [proplists:get_value(Item, Info) || Item <- [name, type, size, memory]],
            Owner = registered_name(proplists:get_value(owner, Info)),
            {table, [text(Value) || Value <- [Table | Items] ++ [Owner]]}
    end.

-spec registered_name(pid()) -> atom() | pid().
registered_name(Pid) ->
    case process_info(Pid, registered_name) of
        {registered_name, Name} -> Name;
        _ -> Pid
    end.

-spec print_row(row(), [non_neg_integer()]) -> ok.
print_row({unreadable, Table}, _Widths) ->
    io:format("~-10s ... unreadable ~n", [Table]);
print_row({table, Row}, Widths) ->
    io:format(" ~s~n", [ats_columns:line(Row, Widths)]).

%%--------------------------------------------------------------------------------------------
%% The objects of one table
%%--------------------------------------------------------------------------------------------

%% @doc Shows the objects of a table from its first key on, as many lines at a time as the screen
%% is high.
-spec browse(Facade :: module(), table(), First :: term(), Height :: pos_integer(),
             Width :: pos_integer()) -> ok.
browse(Facade, Table, First, Height, Width) ->
    View = #view{facade = Facade, table = Table, height = Height, width = Width},
    page(First, 1, 1, View).

%% Shows objects from a key on until the page is full. The objects of one key stay on one page.
-spec page(Key :: term(), Line :: pos_integer(), Number :: pos_integer(), #view{}) -> ok.
page('$end_of_table', _Line, Number, View) ->
    ask("EOT  " ?COMMANDS, '$end_of_table', Number, View);
page(Key, Line, Number, #view{height = Height} = View) when Line >= Height ->
    ask("(c)ontinue " ?COMMANDS, Key, Number, View);
page(Key, Line, Number, View) ->
    show(Key, Line, Number, View).

-spec show(Key :: term(), Line :: pos_integer(), Number :: pos_integer(), #view{}) -> ok.
show(Key, Line, Number, #view{facade = Facade, table = Table, width = Width} = View) ->
    Objects = visible_objects(Key, View),
    _ = [print_object(N, Object, Width)
         || {N, Object} <- lists:zip(lists:seq(Number, Number + length(Objects) - 1), Objects)],
    page(Facade:next(Table, Key), Line + length(Objects), Number + length(Objects), View).

%% A page can be continued also behind the last key, where there is nothing to show but the
%% question.
-spec ask(string(), Key :: term(), Number :: pos_integer(), #view{}) -> ok.
ask(Question, Key, Number, #view{facade = Facade, table = Table} = View) ->
    case command(io:get_line(Question)) of
        continue when Key =/= '$end_of_table' ->
            show(Key, 1, Number, View);
        quit ->
            ok;
        kill ->
            true = Facade:delete(Table),
            ok;
        {print, Text} ->
            print_number(Text, View),
            ask(Question, Key, Number, View);
        {filter, Text} ->
            case re:compile(Text, [unicode]) of
                {ok, Expression} ->
                    Filtered = View#view{filter = {matching, Expression}},
                    page(Facade:first(Table), 1, 1, Filtered);
                {error, {Wrong, _Position}} ->
                    io:format("~ts~n", [Wrong]),
                    ask(Question, Key, Number, View)
            end;
        _ ->
            ask(Question, Key, Number, View)
    end.

-spec command(io:server_no_data() | string() | binary()) ->
          continue | quit | kill | {print, string()} | {filter, string()} | unknown.
command(eof) -> quit;
command({error, _}) -> quit;
command(Line) when is_binary(Line) -> command(unicode:characters_to_list(Line));
command("\n") -> continue;
command("c\n") -> continue;
command("q\n") -> quit;
command("k\n") -> kill;
command([$p | Text]) -> {print, string:trim(Text, trailing, "\n")};
command([$/ | Text]) -> {filter, string:trim(Text, trailing, "\n")};
command(_) -> unknown.

%% The object with that number is printed as a whole; there need not be one.
-spec print_number(string(), #view{}) -> ok.
print_number(Text, #view{facade = Facade, table = Table} = View) ->
    try list_to_integer(Text) of
        Number when Number >= 1 -> print_nth(Number, Facade:first(Table), View);
        _ -> ok
    catch
        error:badarg -> io:put_chars("Bad digits\n")
    end.

-spec print_nth(pos_integer(), Key :: term(), #view{}) -> ok.
print_nth(_Number, '$end_of_table', _View) ->
    ok;
print_nth(Number, Key, #view{facade = Facade, table = Table} = View) ->
    Objects = visible_objects(Key, View),
    case Number - length(Objects) of
        Left when Left >= 1 -> print_nth(Left, Facade:next(Table, Key), View);
        _ -> io:format("~p~n", [lists:nth(Number, Objects)])
    end.

-spec visible_objects(Key :: term(), #view{}) -> [tuple()].
visible_objects(Key, #view{facade = Facade, table = Table, filter = all}) ->
    Facade:lookup(Table, Key);
visible_objects(Key, #view{facade = Facade, table = Table, filter = {matching, Expression}}) ->
    [Object || Object <- Facade:lookup(Table, Key),
               re:run(text(Object), Expression, [{capture, none}]) =:= match].

-spec print_object(pos_integer(), tuple(), pos_integer()) -> ok.
print_object(Number, Object, Width) ->
    Text = text(Object),
    Fitting = case length(Text) > Width - 8 of
                  true -> string:slice(Text, 0, max(0, Width - 13)) ++ "  ...";
                  false -> Text
              end,
    io:format("<~-4w> ~s~n", [Number, Fitting]).

-spec text(term()) -> string().
text(Term) ->
    lists:flatten(io_lib:format("~p", [Term])).

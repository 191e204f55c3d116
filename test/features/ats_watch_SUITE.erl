%% @doc Tools for watching: their data about tables in memory and on disk.
%%
%% `telemetry' is played by this module. `prometheus' and `observer_cli' are those that RabbitMQ of
%% Debian carries, where it is installed or was downloaded by scripts/others/servers.sh.
-module(ats_watch_SUITE).

-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0, init_per_testcase/2, end_per_testcase/2]).
-export([largest_first/1, others_are_one/1, events_of_tables/1, events_of_disk/1]).
-export([evictions/1, full_scans/1, killed/1, killed_with_the_application/1, no_library/1]).
-export([bad_options/1, names_that_look_alike/1, scraped/1, text/1, sheet/1, terminal/1]).
%% Stand-ins for `telemetry', `prometheus', and an application.
-export([execute/3, create_mf/4, start/2, stop/1]).

suite() -> [{timetrap, {minutes, 15}}].

all() ->
    [largest_first, others_are_one, events_of_tables, events_of_disk, evictions, full_scans,
     killed, killed_with_the_application, no_library, bad_options, names_that_look_alike, scraped,
     text,
     sheet, terminal].

init_per_testcase(_, Config) ->
    {ok, _} = application:ensure_all_started(ats),
    true = register(?MODULE, self()),
    Config.

end_per_testcase(_, _) ->
    ats_disk_lib:end_case().

execute(Event, Measurements, Metadata) ->
    ?MODULE ! {event, Event, Measurements, Metadata}.

start(Options) ->
    {ok, Pid} = ats_telemetry:start_link([{library, ?MODULE} | Options]),
    unlink(Pid),
    Pid.

%% The first event that fits.
event(Fits) ->
    receive
        {event, Event, Measurements, Metadata} ->
            case Fits(Event, Metadata) of
                true -> Measurements;
                false -> event(Fits)
            end
    after 10000 -> ct:fail(no_event)
    end.

filled(Name, Type, Number) ->
    Table = ats:new(Name, [Type, public]),
    true = ats:insert(Table, [{N, N} || N <- lists:seq(1, Number)]),
    Table.

%% ----- numbers -----

largest_first(_) ->
    filled(small, set, 10),
    filled(large, set, 10000),
    filled(large, set, 10000),
    filled(large, ordered_set, 100),
    [First | _] = All = ats_watch:tables(1000),
    ?assertMatch(#{name := large, type := set, tables := 2, size := 20000}, First),
    Bytes = [B || #{memory_bytes := B} <- All],
    ?assertEqual(Bytes, lists:reverse(lists:sort(Bytes))),
    ?assertMatch([_], [T || #{name := large, type := ordered_set} = T <- All]).

others_are_one(_) ->
    [filled(list_to_atom("many" ++ integer_to_list(N)), set, N) || N <- lists:seq(1, 30)],
    All = ats_watch:tables(1000),
    [_, _, _, Others] = Some = ats_watch:tables(3),
    ?assertMatch(#{name := others, type := others}, Others),
    [?assertEqual(sum(Item, All), sum(Item, Some)) || Item <- [tables, size]],
    ?assertMatch([#{name := others}], ats_watch:tables(0)).

sum(Item, Tables) -> lists:sum([maps:get(Item, Table) || Table <- Tables]).

%% ----- telemetry -----

events_of_tables(_) ->
    filled(watched, ordered_set, 500),
    Pid = start([{period, 20}]),
    Fits = fun(Event, Metadata) ->
               Event =:= [ats, table] andalso Metadata =:= #{name => watched, type => ordered_set}
           end,
    ?assertMatch(#{size := 500, tables := 1, memory_bytes := _}, event(Fits)),
    ?assertMatch(#{tables := _, size := _}, event(fun(Event, _) -> Event =:= [ats, total] end)),
    gen_server:stop(Pid).

events_of_disk(Config) ->
    Folder = filename:join(proplists:get_value(priv_dir, Config), "watched"),
    {ok, watched} = dats:open_file(watched, [{file, Folder}]),
    Pid = start([{period, 20}]),
    Of = fun(Wanted) ->
             fun(Event, Metadata) -> Event =:= Wanted andalso Metadata =:= #{name => watched} end
         end,
    ?assertMatch(#{writes := 0, stalls := 0}, event(Of([ats, disk]))),
    [begin
         ok = dats:insert(watched, [{N, N} || N <- lists:seq(1, 1000)]),
         ok = dats:flush(watched)
     end || _ <- lists:seq(1, 3)],
    ok = dats:compact(watched),
    ?assertMatch(#{count := Count, written_bytes := Bytes} when Count > 0 andalso Bytes > 0,
                 event(Of([ats, disk, merge]))),
    gen_server:stop(Pid),
    ok = dats:close(watched).

%% Snapshots that end by themselves, and none that is released.
evictions(Config) ->
    Folder = filename:join(proplists:get_value(priv_dir, Config), evicting),
    {ok, evicting} = dats:open_file(evicting, [{file, Folder}]),
    Table = ats:new(evicting, [set, public]),
    Pid = start([{period, 20}]),
    Of = fun(Wanted) -> fun(Event, Metadata) ->
                            Event =:= [ats, evicted] andalso Metadata =:= Wanted
                        end
         end,
    [true = ats:release(ats:snapshot(Table)) || _ <- [1, 2, 3]],
    _ = [ats:snapshot(Table, [{max_age, 50}]) || _ <- [1, 2]],
    Sum = fun Sum(0, _) -> ok;
              Sum(Left, Wanted) ->
                  #{count := Count} = event(Of(Wanted)),
                  ?assert(Count > 0 andalso Count =< Left),
                  Sum(Left - Count, Wanted)
          end,
    Sum(2, #{table => Table, kind => memory}),
    ok = dats:release(dats:snapshot(evicting)),
    _ = dats:snapshot(evicting, [{max_age, 50}]),
    Sum(1, #{table => evicting, kind => disk}),
    ?assertMatch(#{evicted := 2}, ats:info(Table, snapshots)),
    ?assertMatch(#{evicted := 1}, dats:info(evicting, snapshots)),
    gen_server:stop(Pid),
    ok = dats:close(evicting).

full_scans(_) ->
    Table = ats:new(scanned, [set, {full_scan, warn}]),
    Pid = start([{period, 100000}]),
    [] = ats:select(Table, [{{'_', 7}, [], [true]}]),
    Self = self(),
    ?assertEqual(#{count => 1},
                 event(fun(Event, Metadata) ->
                           Event =:= [ats, full_scan] andalso
                               Metadata =:= #{table => Table, pid => Self}
                       end)),
    gen_server:stop(Pid),
    ?assertMatch({error, _}, logger:get_handler_config(ats_telemetry)).

%% Whichever of its processes is killed, the reporter is started again with one handler.
killed(_) ->
    Table = ats:new(scanned, [set, {full_scan, warn}]),
    Child = ats_telemetry:child_spec([{library, ?MODULE}, {period, 100000}]),
    Flags = #{intensity => 10, period => 60},
    {ok, Supervisor} = ats_test_supervisor:start_link(Flags, [Child]),
    unlink(Supervisor),
    [begin
         Killed = whereis(Name),
         true = exit(Killed, kill),
         Fresh = fun() ->
                         Now = whereis(Name),
                         is_pid(Now) andalso Now =/= Killed andalso
                             supervisor:which_children(Supervisor) =/= [] andalso has_handler()
                 end,
         ats_test_lib:until(Fresh, 10000)
     end || Name <- [ats_telemetry, ats_telemetry_handler, ats_telemetry]],
    ?assert(is_process_alive(Supervisor)),
    [] = ats:select(Table, [{{'_', 7}, [], [true]}]),
    Full = fun(Event, _) -> Event =:= [ats, full_scan] end,
    ?assertEqual(#{count => 1}, event(Full)),
    receive {event, [ats, full_scan], _, _} -> ct:fail(twice) after 50 -> ok end,
    gen_server:stop(Supervisor),
    ?assertNot(has_handler()).

%% Nothing is left to start the reporter again, nor to end it.
killed_with_the_application(_) ->
    ok = application:load({application, watched_program, [{mod, {?MODULE, []}}]}),
    [begin
         ok = application:start(watched_program),
         ?assert(has_handler()),
         Supervisor = whereis(watched_program),
         [true = exit(Pid, kill) || Pid <- Kill(Supervisor)],
         Gone = fun() ->
                        not has_handler() andalso
                            not lists:keymember(watched_program, 1,
                                                application:which_applications())
                end,
         ats_test_lib:until(Gone, 10000)
     end || Kill <- [fun(Supervisor) -> [Supervisor] end,
                     fun(Supervisor) -> [Supervisor, whereis(ats_telemetry)] end,
                     fun(Supervisor) -> [whereis(ats_telemetry), Supervisor] end]],
    ok = application:unload(watched_program).

start(_, _) ->
    Child = ats_telemetry:child_spec([{library, ?MODULE}]),
    {ok, Supervisor} = ats_test_supervisor:start_link(#{}, [Child]),
    true = register(watched_program, Supervisor),
    {ok, Supervisor}.

stop(_) -> ok.

has_handler() -> lists:member(ats_telemetry, logger:get_handler_ids()).

no_library(_) ->
    process_flag(trap_exit, true),
    [?assertEqual({error, {no_library, Library}}, ats_telemetry:start_link([{library, Library}]))
     || Library <- [no_such_library, lists]],
    case code:which(telemetry) of
        non_existing ->
            ?assertEqual({error, {no_library, telemetry}}, ats_telemetry:start_link([]));
        _ ->
            ok
    end.

bad_options(_) ->
    process_flag(trap_exit, true),
    [?assertEqual({error, {bad_option, Option}}, ats_telemetry:start_link([Option]))
     || Option <- [{period, 0}, {period, x}, {period, 1 bsl 32}, {tables, -1}, {tables, all},
                   {library, "telemetry"}, {periods, 1}, period]],
    ?assertEqual({error, {bad_option, all}}, ats_telemetry:start_link([{tables, 1} | all])),
    ?assertNot(has_handler()).

%% ----- libraries of others -----

%% Returns the folders of object files of libraries, or none.
libraries(Names) ->
    Homes = ["/usr/lib/rabbitmq/lib/*/plugins",
             filename:join(ats_test_lib:project(),
                           "_build/servers/rabbitmq-server/usr/lib/rabbitmq/lib/*/plugins")],
    Found = [filelib:wildcard(filename:join([Home, Name ++ "-[0-9]*", "ebin"]))
             || Home <- Homes, Name <- Names],
    case lists:usort([filename:basename(filename:dirname(F)) || [F | _] <- Found]) of
        Each when length(Each) =:= length(Names) -> [F || [F | _] <- Found];
        _ -> none
    end.

%% A name and the numbers of a family.
create_mf(Name, _Help, _Type, Metrics) -> {Name, Metrics}.

%% The test module plays the library.
names_that_look_alike(Config) ->
    Helpers = prometheus_model_helpers,
    ok = ats_test_lib:load_module(Helpers, "create_mf(N, H, T, M) ->"
                                  " ats_watch_SUITE:create_mf(N, H, T, M)."),
    Fun = fun(X) -> fun() -> X end end,
    Names = [1, '1', 1.0, '1.0', {a}, '{a}', a, "a", 'fun lists:map/2', fun lists:map/2, 'Elixir.A',
             'é', "é", <<"é"/utf8>>, 'with space', '\'q\'', 'n\n', [], '[]', '', Fun(1), Fun(2)],
    [begin
         {ok, Name} = dats:open_file(Name, [{file, in(Config, integer_to_list(N))}]),
         ok = dats:insert(Name, {N})
     end || {N, Name} <- lists:enumerate(Names)],
    [filled(Name, Type, 1) || Name <- Names, is_atom(Name), Type <- [set, set, bag]],
    filled(others, set, 1),
    Self = self(),
    ok = ats_prometheus:collect_mf(default, fun(Family) -> Self ! {family, Family} end),
    Families = families(),
    [?assertEqual(lists:usort(Labels), lists:sort(Labels), Name)
     || {Name, Metrics} <- Families, Labels <- [[L || {L, _} <- Metrics]]],
    Writes = [{Label, N} || {[{table, Label}], N} <- proplists:get_value(<<"ats_disk_writes">>,
                                                                         Families)],
    %% The two funs are written alike, so their tables have one series.
    ?assertEqual(length(Names) - 1, length(Writes)),
    ?assertEqual(length(Names), lists:sum([N || {_, N} <- Writes])),
    [?assert(lists:keymember(Label, 1, Writes), Label)
     || Label <- [<<"1">>, <<"'1'">>, <<"{a}">>, <<"'{a}'">>, <<"a">>, <<"Elixir.A">>]],
    [?assert(is_list(unicode:characters_to_list(Label)), Label)
     || {_, Metrics} <- Families, {[{table, Label} | _], _} <- Metrics],
    [code:purge(Helpers), true = code:delete(Helpers), code:purge(Helpers)].

families() ->
    receive {family, Family} -> [Family | families()]
    after 0 -> []
    end.

in(Config, File) -> filename:join(proplists:get_value(priv_dir, Config), File).

%% A server of this machine is asked as Prometheus asks.
scraped(Config) ->
    case libraries(["prometheus", "quantile_estimator"]) of
        none ->
            {skip, "there is no prometheus here"};
        Folders ->
            ok = code:add_pathsa(Folders),
            {ok, _} = application:ensure_all_started(prometheus),
            ok = ats_prometheus:register(),
            filled(scraped, ordered_set, 321),
            filled('odd "name"\n', set, 1),
            filled('é', set, 1),
            [{ok, _} = dats:open_file(Name, [{file, in(Config, File)}])
             || {Name, File} <- [{'1', "atom"}, {1, "number"}]],
            [filled(scraped, set, 1000) || _ <- [1, 2]],
            Text = prometheus_text_format:format(),
            Lines = binary:split(Text, <<"\n">>, [global]),
            Has = fun(Line) -> ?assert(lists:member(Line, Lines), {Line, Text}) end,
            Has(<<"ats_table_objects{table=\"scraped\",type=\"ordered_set\"} 321">>),
            Has(<<"ats_table_objects{table=\"scraped\",type=\"set\"} 2000">>),
            Has(<<"# TYPE ats_table_contended_total counter">>),
            %% Each series comes once.
            Series = [hd(binary:split(Line, <<"} ">>)) || <<"ats_", _/binary>> = Line <- Lines],
            ?assert(is_list(unicode:characters_to_list(Text))),
            ?assertEqual(length(Series), length(lists:usort(Series))),
            prometheus_registry:deregister_collector(ats_prometheus),
            ok = application:stop(prometheus)
    end.

%% A program without a library has the same lines.
text(Config) ->
    filled(written, ordered_set, 321),
    filled('odd "name"\n', set, 1),
    filled('back\\slash', set, 2),
    filled('é', set, 3),
    {ok, D} = dats:open_file(<<"é"/utf8>>, [{file, in(Config, "text")}]),
    ok = dats:insert(D, {1}),
    Text = ats_prometheus:text(),
    Lines = binary:split(Text, <<"\n">>, [global]),
    [?assert(lists:member(Line, Lines), {Line, Text})
     || Line <- [<<"# HELP ats_table_objects Objects in a table.">>,
                 <<"# TYPE ats_table_objects gauge">>,
                 <<"# TYPE ats_table_contended_total counter">>,
                 <<"ats_table_objects{table=\"written\",type=\"ordered_set\"} 321">>,
                 <<"ats_table_objects{table=\"'odd \\\"name\\\"\\\\n'\",type=\"set\"} 1">>,
                 <<"ats_table_objects{table=\"'back\\\\\\\\slash'\",type=\"set\"} 2">>,
                 <<"ats_table_objects{table=\"é\",type=\"set\"} 3"/utf8>>,
                 <<"ats_disk_writes{table=\"<<\\\"é\\\"/utf8>>\"} 1"/utf8>>]],
    Label = "[a-z]+=\"([^\"\\\\]|\\\\.)*\"",
    Form = ["^(|# (HELP|TYPE) [a-z_]+ .+|[a-z_]+({", Label, "(,", Label, ")?})? [0-9]+)$"],
    [?assertEqual({Line, match}, {Line, re:run(Line, Form, [unicode, {capture, none}])})
     || Line <- Lines].

sheet(_) ->
    filled(shown, ordered_set, 77),
    Columns = ats_observer_cli:sheet_header(),
    {Lines, state} = ats_observer_cli:sheet_body(state),
    ?assertMatch([[shown, ordered_set, 77 | _]], [L || [shown | _] = L <- Lines]),
    [?assertEqual(length(Columns), length(Line)) || Line <- Lines],
    {[_, _], state} = ats_observer_cli:attributes(state).

%% A real terminal shows the sheet.
terminal(Config) ->
    case {libraries(["observer_cli", "recon"]), os:find_executable("tmux")} of
        {none, _} ->
            {skip, "there is no observer_cli here"};
        {_, false} ->
            {skip, "there is no tmux here"};
        {Folders, _} ->
            Own = filename:dirname(code:which(ats)),
            Quoted = fun ats_test_lib:quoted/1,
            Paths = [[" -pa ", Quoted(Folder)] || Folder <- [Own | Folders]],
            File = filename:join(proplists:get_value(priv_dir, Config), "sys.config"),
            Plugin = #{module => ats_observer_cli, title => "Ats", interval => 1500,
                       shortcut => "A", sort_column => 4},
            Environment = [{observer_cli, [{plugins, [Plugin]}]}],
            ok = file:write_file(File, io_lib:format("~p.~n", [Environment])),
            Socket = filename:join("/tmp", "ats-tmux-" ++ os:getpid()),
            Tmux = fun(Command) -> os:cmd(["tmux -S ", Socket, " ", Command]) end,
            Erl = lists:flatten(["erl -config ", Quoted(filename:rootname(File)), Paths]),
            Tmux(["new-session -d -x 160 -y 50 ", Quoted(Erl)]),
            Shown = fun(Text) ->
                        fun() -> string:find(Tmux("capture-pane -p"), Text) =/= nomatch end
                    end,
            try
                ats_test_lib:until(Shown("1>"), 30000),
                Tmux("send-keys 'application:load(observer_cli), "
                     "ats:new(on_the_screen, [ordered_set]), observer_cli:start().' Enter"),
                ats_test_lib:until(Shown("Home"), 30000),
                Tmux("send-keys P Enter"),
                %% The command at first has the name, too.
                Line = "on_the_screen                      | ordered_set",
                ats_test_lib:until(Shown(Line), 30000),
                ct:pal("~ts", [Tmux("capture-pane -p")])
            after
                Tmux("kill-server")
            end
    end.

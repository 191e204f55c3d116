%% Tables on disk in a directory of each test.
-module(ats_disk_lib).

-export([begin_case/2, end_case/0, file/2, open/3, hold_open/2, peak/0]).

-type config() :: [{atom(), term()}].

%% Gives a test a directory, which is empty also if the test is repeated.
-spec begin_case(atom(), config()) -> config().
begin_case(Case, Config) ->
    Directory = filename:join(proplists:get_value(priv_dir, Config), atom_to_list(Case)),
    _ = file:del_dir_r(Directory),
    ok = filelib:ensure_dir(filename:join(Directory, "x")),
    [{directory, Directory} | Config].

%% Closes tables that the test has left open.
-spec end_case() -> ok.
end_case() ->
    _ = [dats:close(Name) || Name <- dats:all()],
    ok.

%% A file or directory in that of the test.
-spec file(config(), atom() | file:filename()) -> file:filename().
file(Config, Name) ->
    filename:join(proplists:get_value(directory, Config), Name).

%% Opens a table with its name in the directory of the test.
-spec open(config(), atom(), [term()]) -> atom().
open(Config, Name, Options) ->
    {ok, Name} = dats:open_file(Name, [{file, file(Config, Name)} | Options]),
    Name.

%% Opens a table for a process that does not end.
-spec hold_open(atom(), [term()]) -> {ok, atom()} | {error, term()}.
hold_open(Name, Options) ->
    Caller = self(),
    Pid = spawn(fun() ->
        Caller ! {self(), dats:open_file(Name, Options)},
        receive after infinity -> ok end
    end),
    receive
        {Pid, Answer} -> Answer
    end.

%% The most memory that this virtual machine has had at a time, in bytes; 0 where the system does
%% not tell.
-spec peak() -> non_neg_integer().
peak() ->
    case file:read_file("/proc/self/status") of
        {ok, Status} ->
            {match, [Kb]} = re:run(Status, "VmHWM:\\s*(\\d+) kB", [{capture, [1], list}]),
            1024 * list_to_integer(Kb);
        {error, _} ->
            0
    end.

%% The module `ats' with tables on disk, on which as much happens in a few calls as otherwise in
%% days, for the oracle: ATS_SUBJECT names this module. Directories are made where the system keeps
%% files in memory, if it does.
-module(ats_on_disk).

-export([new/2, '$handle_undefined_function'/2]).

new(Name, Options) when is_list(Options) ->
    ats_subject:call(?MODULE, new, [Name, [{backend, {disk, directory()}} | Options]],
                     [Name, Options]);
new(Name, Options) ->
    ats_subject:call(?MODULE, new, [Name, Options], [Name, Options]).

'$handle_undefined_function'(Function, Arguments) ->
    ats_subject:call(?MODULE, Function, Arguments, Arguments).

directory() ->
    Number = erlang:unique_integer([positive]),
    Name = io_lib:format("ats-on-disk-~s-~b", [os:getpid(), Number]),
    unicode:characters_to_binary(filename:join(parent(), Name)).

parent() ->
    case filelib:is_dir("/dev/shm") of
        true -> "/dev/shm";
        false -> os:getenv("TMPDIR", "/tmp")
    end.

%% The way in which nodes of ats_cluster find each other, instead of epmd, and the network between
%% them.
%%
%% Each node leaves its port in a file. A node that asks for the port of another node is given that
%% of a relay in its own virtual machine, a process that passes on the bytes it reads, in both
%% directions. When nothing shall pass between two nodes, the relays between them stand still: both
%% sides behave as if packets were lost. They wait, notice that the other is silent, and cannot
%% connect. If it is over before they gave up, the delayed bytes arrive.
%%
%% One thing differs: when a node is killed while it is cut off, the others are told at once.
-module(ats_cluster_network).

-export([start_link/0, register_node/2, register_node/3, port_please/2, port_please/3, names/1]).
-export([block/1]).

-define(BLOCKED, {?MODULE, blocked}).
-define(LOOPBACK, {127, 0, 0, 1}).
-define(SOCKET, [binary, {active, false}, {nodelay, true}]).
-define(CONNECT_MS, 10000).
-define(POLL_MS, 5).
%% Version of the protocol between nodes.
-define(VERSION, 6).

%% ----- callbacks of the distribution -----

start_link() ->
    ignore.

register_node(Name, Port) ->
    register_node(Name, Port, inet).

register_node(Name, Port, _Family) ->
    %% The file server does not run yet.
    ok = file:write_file(file_of(Name), [integer_to_list(Port), $\n], [raw]),
    %% Tells incarnations of a node apart.
    {ok, erlang:system_time() band 16#fffffffe bor 4}.

port_please(Name, Host) ->
    port_please(Name, Host, infinity).

port_please(Name, _Host, _Timeout) ->
    case {read_port(Name), init:get_argument(ats_cluster_direct)} of
        {none, _} -> noport;
        {Port, error} -> {port, start_relay(Name, Port), ?VERSION};
        {Port, _} -> {port, Port, ?VERSION}
    end.

names(_Host) ->
    {error, address}.

read_port(Name) ->
    case file:read_file(file_of(Name)) of
        {ok, Text} ->
            case binary:split(Text, <<"\n">>) of
                [Port, <<>>] -> binary_to_integer(Port);
                %% The node is about to write it.
                [_] -> none
            end;
        {error, enoent} ->
            none
    end.

file_of(Name) ->
    {ok, [[Directory]]} = init:get_argument(ats_cluster),
    filename:join(Directory, lists:flatten(io_lib:format("~s.port", [Name]))).

%% ----- relays -----

%% Lets nothing pass to and from these nodes, and everything to and from all others.
-spec block([node()]) -> ok.
block(Nodes) ->
    persistent_term:put(?BLOCKED, [short(Node) || Node <- Nodes]).

short(Node) ->
    hd(string:split(atom_to_list(Node), "@")).

%% A relay for one connection; returns its port.
start_relay(Name, Port) ->
    Me = self(),
    {_, Monitor} = spawn_opt(
        fun() ->
            {ok, Listening} = gen_tcp:listen(0, [{ip, ?LOOPBACK} | ?SOCKET]),
            {ok, Own} = inet:port(Listening),
            Me ! {relay, self(), Own},
            %% An error ends the connection, and need not be reported.
            try relay(Listening, name(Name), Port) catch error:{badmatch, _} -> ok end
        end,
        [monitor, {priority, high}]
    ),
    receive
        {relay, _, Own} ->
            erlang:demonitor(Monitor, [flush]),
            Own;
        {'DOWN', Monitor, process, _, Reason} ->
            exit(Reason)
    end.

name(Name) when is_atom(Name) -> atom_to_list(Name);
name(Name) -> Name.

relay(Listening, Name, Port) ->
    {ok, Near} = gen_tcp:accept(Listening, ?CONNECT_MS),
    ok = gen_tcp:close(Listening),
    %% Whoever connects speaks first.
    {ok, First} = gen_tcp:recv(Near, 0, ?CONNECT_MS),
    wait_while_blocked(Name),
    %% A connection that was given up before it was there never reaches the other side.
    {error, timeout} = gen_tcp:recv(Near, 0, 0),
    {ok, Far} = gen_tcp:connect(?LOOPBACK, Port, ?SOCKET, ?CONNECT_MS),
    ok = gen_tcp:send(Far, First),
    spawn_opt(fun() -> pass(Name, Far, Near) end, [link, {priority, high}]),
    pass(Name, Near, Far).

%% The end of this process closes both sockets: one is its own, and the process of the other ends
%% with it, by the link or because nothing comes any more.
pass(Name, From, To) ->
    Read = gen_tcp:recv(From, 0),
    wait_while_blocked(Name),
    case Read of
        {ok, Data} ->
            case gen_tcp:send(To, Data) of
                ok -> pass(Name, From, To);
                {error, _} -> exit(closed)
            end;
        {error, _} ->
            exit(closed)
    end.

wait_while_blocked(Name) ->
    case lists:member(Name, persistent_term:get(?BLOCKED, [])) of
        true ->
            timer:sleep(?POLL_MS),
            wait_while_blocked(Name);
        false ->
            ok
    end.

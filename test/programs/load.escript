#!/usr/bin/env escript
%% Clients that load a program for some seconds, and what came of it.
%%
%%   escript load.escript WORKLOAD NODE PORT WARM SECONDS
%%
%% The node is that of the program; its cookie is in the home folder. Each client does one operation
%% after the other. The line that is printed has the operations of a second, the milliseconds within
%% which half and 99 of 100 operations were done, the microseconds of processors that the program
%% took for an operation, and its megabytes of memory at the end.
-mode(compile).

-record('P_basic', {content_type, content_encoding, headers, delivery_mode, priority,
                    correlation_id, reply_to, expiration, message_id, timestamp, type, user_id,
                    app_id, cluster_id}).

%% A workload: what its clients do. `clients' make their state and then change it by operations;
%% `others' are clients that are not measured; `finish' tidies up.
-record(load, {clients :: [{fun(() -> term()), fun((term()) -> term())}],
               others = [] :: [{fun(() -> term()), fun((term()) -> term())}],
               finish = fun() -> ok end :: fun(() -> term())}).

main([Workload, NodeName, Port, Warm, Seconds]) ->
    %% Reports of libraries would stand among the figures.
    ok = logger:set_primary_config(level, critical),
    {ok, _} = net_kernel:start([list_to_atom("load" ++ os:getpid() ++ "@localhost"), shortnames]),
    Node = list_to_atom(NodeName),
    Process = erpc:call(Node, os, getpid, []),
    Load = load(Workload, Node, list_to_integer(Port)),
    Phase = atomics:new(1, []),
    Main = self(),
    Measured = start(Load#load.clients, Phase, Main),
    Others = start(Load#load.others, Phase, Main),
    [Client ! go || Client <- Measured ++ Others],
    timer:sleep(list_to_integer(Warm) * 1000),
    Cpu = cpu_seconds(Process),
    Begin = erlang:monotonic_time(),
    atomics:put(Phase, 1, 1),
    timer:sleep(list_to_integer(Seconds) * 1000),
    atomics:put(Phase, 1, 2),
    Time = erlang:monotonic_time() - Begin,
    Used = cpu_seconds(Process) - Cpu,
    Memory = megabytes(Process),
    Times = lists:sort(lists:append([receive {done, Pid, Times} -> Times end || Pid <- Measured])),
    [receive {done, Pid, _} -> ok end || Pid <- Others],
    (Load#load.finish)(),
    Number = length(Times),
    io:format("~.1f ~.2f ~.2f ~.1f ~b~n",
              [Number / (Time / erlang:convert_time_unit(1, second, native)),
               quantile(0.5, Times), quantile(0.99, Times), Used * 1.0e6 / max(1, Number), Memory]),
    halt(0).

%% Servers do not take many connections at once: each begins when the one before is there. The
%% clients load the server when all are.
start(Clients, Phase, Main) ->
    [begin
         Client = spawn_link(fun() ->
                                     State = Begin(),
                                     Main ! {ready, self()},
                                     receive go -> ok end,
                                     client(Do, State, Phase, Main, [])
                             end),
         receive {ready, Client} -> Client end
     end || {Begin, Do} <- Clients].

%% A client that is done still takes its messages until all are.
client(Do, State, Phase, Main, Times) ->
    Begin = erlang:monotonic_time(microsecond),
    Next = Do(State),
    Time = (erlang:monotonic_time(microsecond) - Begin) / 1000,
    case atomics:get(Phase, 1) of
        0 -> client(Do, Next, Phase, Main, Times);
        1 -> client(Do, Next, Phase, Main, [Time | Times]);
        2 -> Main ! {done, self(), Times}, take_messages(Next)
    end.

take_messages(State) ->
    receive Message -> take_messages(taken(Message, State)) end.

quantile(_, []) -> 0.0;
quantile(Part, Times) -> lists:nth(max(1, ceil(Part * length(Times))), Times).

%% The kernel counts hundredths of a second.
cpu_seconds(Process) ->
    {ok, Text} = file:read_file("/proc/" ++ Process ++ "/stat"),
    [_, Rest] = string:split(Text, ") ", trailing),
    Fields = string:lexemes(Rest, " "),
    (binary_to_integer(lists:nth(12, Fields)) + binary_to_integer(lists:nth(13, Fields))) / 100.

megabytes(Process) ->
    {ok, Text} = file:read_file("/proc/" ++ Process ++ "/status"),
    {match, [Kilobytes]} = re:run(Text, "VmRSS:\\s*(\\d+)", [{capture, all_but_first, list}]),
    list_to_integer(Kilobytes) div 1024.

random(Number) -> integer_to_binary(rand:uniform(Number)).

%% ----- RabbitMQ -----

-define(QUEUES, 200).

%% Messages to many queues, each confirmed, and taken by consumers.
load("queues", _, Port) ->
    {Close, Channel} = connected(Port),
    declare_queues(Channel, ?QUEUES),
    consume(Channel, ?QUEUES),
    #load{clients = [{fun() -> publisher(Port) end,
                      fun(C) -> publish(C, <<>>, queue(rand:uniform(?QUEUES))) end}
                     || _ <- lists:seq(1, 16)],
          finish = fun() -> delete_queues(Channel, ?QUEUES), Close() end};
%% Messages whose topic is compared with 1000 patterns of 50 queues.
load("topics", _, Port) ->
    {Close, Channel} = connected(Port),
    declare_queues(Channel, 50),
    {'exchange.declare_ok'} =
        amqp_channel:call(Channel, {'exchange.declare', 0, <<"topics">>, <<"topic">>, false, false,
                                    false, false, false, []}),
    rand:seed(exsss, 1),
    [bind(Channel, queue(Q), pattern(rand:uniform(3)))
     || Q <- lists:seq(1, 50), _ <- lists:seq(1, 20)],
    consume(Channel, 50),
    #load{clients = [{fun() -> publisher(Port) end,
                      fun(C) -> publish(C, <<"topics">>, words([random(20) || _ <- [1, 2, 3]])) end}
                     || _ <- lists:seq(1, 16)],
          finish = fun() ->
                           delete_queues(Channel, 50),
                           {'exchange.delete_ok'} =
                               amqp_channel:call(Channel, {'exchange.delete', 0, <<"topics">>,
                                                           false, false}),
                           Close()
                   end};
%% Queues that are declared, bound and deleted.
load("declarations", _, Port) ->
    {Close, Channel} = connected(Port),
    {'exchange.declare_ok'} =
        amqp_channel:call(Channel, {'exchange.declare', 0, <<"topics">>, <<"topic">>, false, false,
                                    false, false, false, []}),
    Do = fun({C, Name}) ->
                 declare(C, Name),
                 [bind(C, Name, pattern(N)) || N <- [1, 2, 3]],
                 publish(C, <<>>, Name),
                 {'queue.delete_ok', _} =
                     amqp_channel:call(C, {'queue.delete', 0, Name, false, false, false}),
                 {C, Name}
         end,
    #load{clients = [{fun() -> {publisher(Port), <<"own", (integer_to_binary(N))/binary>>} end, Do}
                     || N <- lists:seq(1, 8)],
          finish = fun() ->
                           {'exchange.delete_ok'} =
                               amqp_channel:call(Channel, {'exchange.delete', 0, <<"topics">>,
                                                           false, false}),
                           Close()
                   end};
%% Lists of the queues, as `rabbitmqctl list_queues' has them, while messages go through them.
load("lists", Node, Port) ->
    {Close, Channel} = connected(Port),
    declare_queues(Channel, ?QUEUES),
    consume(Channel, ?QUEUES),
    Items = [name, state, messages, consumers, message_stats],
    #load{clients = [{fun() -> ok end,
                      fun(_) ->
                              Listed = erpc:call(Node, rabbit_amqqueue, info_all, [<<"/">>, Items]),
                              true = length(Listed) >= ?QUEUES,
                              _ = erpc:call(Node, rabbit_channel, info_all, []),
                              ok
                      end}],
          %% So few that they take little of the processors, on either side.
          others = [{fun() -> publisher(Port) end,
                     fun(C) ->
                             timer:sleep(10),
                             publish(C, <<>>, queue(rand:uniform(?QUEUES)))
                     end}
                    || _ <- lists:seq(1, 4)],
          finish = fun() -> delete_queues(Channel, ?QUEUES), Close() end};

%% ----- ejabberd -----

%% Messages from each session to others, one at a time.
load("messages", Node, Port) ->
    Users = users(Node, 200),
    Sessions = list_to_tuple(Users),
    Names = ets:new(names, [public]),
    #load{clients = [{fun() ->
                              Session = session(User, Port),
                              ets:insert(Names, {User, self()}),
                              Session
                      end,
                      fun(Session) ->
                              To = element(rand:uniform(tuple_size(Sessions)), Sessions),
                              message(Names, User, To, Session)
                      end} || User <- Users]};
%% Sessions that begin and end.
load("sessions", Node, Port) ->
    #load{clients = [{fun() -> ok end,
                      fun(_) ->
                              {Socket, _} = session(User, Port),
                              send(Socket, "</stream:stream>"),
                              ok = gen_tcp:close(Socket)
                      end} || User <- users(Node, 20)]};
%% Presence for the contacts of each session, and its roster.
load("rosters", Node, Port) ->
    Users = users(Node, 100),
    _ = [erpc:call(Node, mod_admin_extra, add_rosteritem,
                   [User, <<"localhost">>, Contact, <<"localhost">>, Contact, <<"friends">>,
                    <<"both">>])
         || {N, User} <- lists:enumerate(Users), D <- lists:seq(1, 10),
            Contact <- [lists:nth((N - 1 + D) rem 100 + 1, Users),
                        lists:nth((N - 1 - D + 100) rem 100 + 1, Users)]],
    #load{clients = [{fun() -> session(User, Port) end, fun roster/1} || User <- Users]}.

connected(Port) ->
    {ok, Connection} = amqp_connection:start(
        {amqp_params_network, <<"guest">>, <<"guest">>, <<"/">>, "localhost", Port, 2047, 0, 10,
         60000, none, [fun amqp_auth_mechanisms:plain/3], [], []}),
    {ok, Channel} = amqp_connection:open_channel(Connection),
    {fun() -> amqp_connection:close(Connection) end, Channel}.

publisher(Port) ->
    {_, Channel} = connected(Port),
    {'confirm.select_ok'} = amqp_channel:call(Channel, {'confirm.select', false}),
    Channel.

publish(Channel, Exchange, Key) ->
    ok = amqp_channel:call(Channel, {'basic.publish', 0, Exchange, Key, false, false},
                           {amqp_msg, #'P_basic'{}, <<0:800>>}),
    true = amqp_channel:wait_for_confirms(Channel, 60),
    Channel.

declare(Channel, Name) ->
    {'queue.declare_ok', _, _, _} =
        amqp_channel:call(Channel, {'queue.declare', 0, Name, false, false, false, false, false,
                                    []}).

declare_queues(Channel, Number) -> [declare(Channel, queue(N)) || N <- lists:seq(1, Number)].

delete_queues(Channel, Number) ->
    [{'queue.delete_ok', _} =
         amqp_channel:call(Channel, {'queue.delete', 0, queue(N), false, false, false})
     || N <- lists:seq(1, Number)].

queue(Number) -> <<"queue", (integer_to_binary(Number))/binary>>.

bind(Channel, Queue, Pattern) ->
    {'queue.bind_ok'} = amqp_channel:call(Channel, {'queue.bind', 0, Queue, <<"topics">>, Pattern,
                                                    false, []}).

pattern(1) -> words([random(20), <<"*">>, random(20)]);
pattern(2) -> words([random(20), random(20), <<"#">>]);
pattern(3) -> words([<<"*">>, random(20), random(20)]).

words(Words) -> iolist_to_binary(lists:join(".", Words)).

%% One process takes all messages.
consume(Channel, Number) ->
    Sink = spawn_link(fun Take() -> receive _ -> Take() end end),
    [{'basic.consume_ok', _} =
         amqp_channel:subscribe(Channel, {'basic.consume', 0, queue(N), <<>>, false, true, false,
                                          false, []}, Sink)
     || N <- lists:seq(1, Number)].

users(Node, Number) ->
    Users = [<<"user", (integer_to_binary(N))/binary>> || N <- lists:seq(1, Number)],
    _ = [erpc:call(Node, ejabberd_auth, try_register, [User, <<"localhost">>, <<"secret">>])
         || User <- Users],
    Users.

%% Logs in. The socket sends what it receives as messages.
session(User, Port) ->
    {ok, Socket} = gen_tcp:connect("127.0.0.1", Port, [binary, {active, false}, {nodelay, true}]),
    stream(Socket),
    send(Socket, ["<auth xmlns='urn:ietf:params:xml:ns:xmpp-sasl' mechanism='PLAIN'>",
                  base64:encode(iolist_to_binary([0, User, 0, "secret"])), "</auth>"]),
    read(Socket, <<"<success">>, <<>>),
    stream(Socket),
    send(Socket, "<iq type='set' id='b'><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'>"
                 "<resource>load</resource></bind></iq>"),
    read(Socket, <<"<jid>">>, <<>>),
    send(Socket, "<presence/>"),
    %% The server has taken the presence when it answers.
    send(Socket, "<iq type='get' id='taken'><ping xmlns='urn:xmpp:ping'/></iq>"),
    read(Socket, <<"taken">>, <<>>),
    ok = inet:setopts(Socket, [{active, true}]),
    {Socket, <<>>}.

stream(Socket) ->
    send(Socket, "<stream:stream xmlns='jabber:client' version='1.0' to='localhost' "
                 "xmlns:stream='http://etherx.jabber.org/streams'>"),
    read(Socket, <<"</stream:features>">>, <<>>).

send(Socket, Text) -> ok = gen_tcp:send(Socket, Text).

read(Socket, Text, Before) ->
    case binary:match(Before, Text) of
        nomatch ->
            {ok, Bytes} = gen_tcp:recv(Socket, 0, 60000),
            read(Socket, Text, <<Before/binary, Bytes/binary>>);
        _ ->
            ok
    end.

%% A message has been delivered when the session of the other has it.
message(Names, User, To, {Socket, _} = Session) ->
    send(Socket, ["<message type='chat' to='", To, "@localhost/load'><body>", User,
                  "</body></message>"]),
    delivered(Names, Session).

delivered(Names, Session) ->
    receive
        delivered -> Session;
        {tcp, _, Bytes} -> delivered(Names, tell(Names, Bytes, Session))
    end.

tell(Names, Bytes, {Socket, Before}) ->
    put(names, Names),
    All = <<Before/binary, Bytes/binary>>,
    case binary:split(All, <<"</message>">>) of
        [Message, Rest] ->
            {match, [From]} = re:run(Message, "<body>(user\\d+)</body>",
                                     [{capture, all_but_first, binary}]),
            case ets:lookup(Names, From) of
                [{_, Pid}] -> Pid ! delivered;
                [] -> ok
            end,
            tell(Names, Rest, {Socket, <<>>});
        [Part] ->
            {Socket, Part}
    end.

roster({Socket, Number}) when is_integer(Number) ->
    Id = integer_to_list(Number),
    send(Socket, ["<presence><status>", Id, "</status></presence><iq type='get' id='get", Id,
                  "end'><query xmlns='jabber:iq:roster'/></iq>"]),
    answered(list_to_binary(["get", Id, "end"]), <<>>),
    {Socket, Number + 1};
roster({Socket, <<>>}) ->
    roster({Socket, 1}).

answered(Id, Before) ->
    receive
        {tcp, _, Bytes} ->
            All = <<Before/binary, Bytes/binary>>,
            case binary:match(All, Id) of
                nomatch -> answered(Id, binary:part(All, byte_size(All), -min(30, byte_size(All))));
                _ -> ok
            end
    end.

%% Takes a message after the measurement; others may still wait for their own.
taken({tcp, _, Bytes}, {Socket, Before}) when is_binary(Before) ->
    case get(names) of
        undefined -> {Socket, Before};
        Names -> tell(Names, Bytes, {Socket, Before})
    end;
taken(_, State) ->
    State.

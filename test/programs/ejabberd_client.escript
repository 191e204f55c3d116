#!/usr/bin/env escript
%% Two clients of XMPP: each logs in, and they send each other messages, and one to an account that
%% is not there until later.
%%
%%   escript ejabberd_client.escript PORT HOST NUMBER
-mode(compile).

main([Port, Host, Number]) ->
    Address = list_to_integer(Port),
    Ann = log_in("ann", Address, Host),
    [send(Ann, message("bob@" ++ Host, N)) || N <- [1, 2, 3]],
    %% The answer comes after the server has taken all earlier messages.
    send(Ann, "<iq type='get' id='taken'><ping xmlns='urn:xmpp:ping'/></iq>"),
    Ann1 = read(Ann, "id='taken'"),
    Bob = log_in("bob", Address, Host),
    Bob1 = lists:foldl(fun(N, C) -> read(C, body(N)) end, Bob, [1, 2, 3]),
    {_, _} = lists:foldl(fun(N, {A, B}) ->
                                 send(A, message("bob@" ++ Host, N)),
                                 B1 = read(B, body(N)),
                                 send(B1, message("ann@" ++ Host, -N)),
                                 {read(A, body(-N)), B1}
                         end, {Ann1, Bob1}, lists:seq(4, list_to_integer(Number))),
    io:format("~s messages in each direction: done~n", [Number]).

message(To, N) ->
    ["<message type='chat' to='", To, "'><body>number ", integer_to_list(N), "</body></message>"].

body(N) -> ["<body>number ", integer_to_list(N), "</body>"].

log_in(User, Port, Host) ->
    {ok, Socket} = gen_tcp:connect("127.0.0.1", Port, [binary, {active, false}]),
    C0 = stream({Socket, <<>>}, Host),
    send(C0, ["<auth xmlns='urn:ietf:params:xml:ns:xmpp-sasl' mechanism='PLAIN'>",
              base64:encode(iolist_to_binary([0, User, 0, "secret"])), "</auth>"]),
    C1 = stream(read(C0, "<success"), Host),
    send(C1, ["<iq type='set' id='b'><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'>"
              "<resource>", User, "</resource></bind></iq>"]),
    C2 = read(C1, "<jid>"),
    send(C2, "<presence/>"),
    C2.

stream(Client, Host) ->
    send(Client, ["<stream:stream xmlns='jabber:client' version='1.0' to='", Host,
                  "' xmlns:stream='http://etherx.jabber.org/streams'>"]),
    read(Client, "</stream:features>").

send({Socket, _}, Text) -> ok = gen_tcp:send(Socket, Text).

%% Reads until a text has come; keeps the rest.
read({Socket, Before}, Text) ->
    case binary:split(quoted(Before), quoted(Text)) of
        [_, After] ->
            {Socket, After};
        _ ->
            case gen_tcp:recv(Socket, 0, 30000) of
                {ok, Bytes} ->
                    read({Socket, <<Before/binary, Bytes/binary>>}, Text);
                Error ->
                    io:format("~p; no ~ts in~n~ts~n", [Error, Text, Before]),
                    halt(1)
            end
    end.

%% Both kinds of quotes mean the same.
quoted(Text) -> binary:replace(iolist_to_binary(Text), <<"\"">>, <<"'">>, [global]).

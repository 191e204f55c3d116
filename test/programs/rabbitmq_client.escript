#!/usr/bin/env escript
%% A client of RabbitMQ: publishes messages to a durable queue, or consumes them and checks each.
%%
%%   escript rabbitmq_client.escript publish|consume PORT NUMBER
-mode(compile).

-record('P_basic', {content_type, content_encoding, headers, delivery_mode, priority,
                    correlation_id, reply_to, expiration, message_id, timestamp, type, user_id,
                    app_id, cluster_id}).

main([What, Port, Number]) ->
    %% The records of the client, as its own include files have them.
    {ok, Connection} = amqp_connection:start(network(list_to_integer(Port))),
    {ok, Channel} = amqp_connection:open_channel(Connection),
    work(What, Channel, list_to_integer(Number)),
    ok = amqp_connection:close(Connection),
    io:format("~s ~s: done~n", [What, Number]).

network(Port) ->
    {amqp_params_network, <<"guest">>, <<"guest">>, <<"/">>, "localhost", Port, 2047, 0, 10, 60000,
     none, [fun amqp_auth_mechanisms:plain/3], [], []}.

work("publish", Channel, Number) ->
    {'queue.declare_ok', _, _, _} =
        amqp_channel:call(Channel, {'queue.declare', 0, <<"tried">>, false, true, false, false,
                                    false, []}),
    {'confirm.select_ok'} = amqp_channel:call(Channel, {'confirm.select', false}),
    [ok = amqp_channel:call(Channel, {'basic.publish', 0, <<>>, <<"tried">>, false, false},
                            {amqp_msg, #'P_basic'{delivery_mode = 2}, <<N:64>>})
     || N <- lists:seq(1, Number)],
    true = amqp_channel:wait_for_confirms(Channel, 120);
work("consume", Channel, Number) ->
    {'basic.qos_ok'} = amqp_channel:call(Channel, {'basic.qos', 0, 1000, false}),
    Consume = {'basic.consume', 0, <<"tried">>, <<"me">>, false, false, false, false, []},
    {'basic.consume_ok', _} = amqp_channel:subscribe(Channel, Consume, self()),
    receive {'basic.consume_ok', _} -> ok end,
    receive_all(Channel, 1, Number).

%% In the order in which they were published.
receive_all(_, N, Number) when N > Number ->
    ok;
receive_all(Channel, N, Number) ->
    receive
        {{'basic.deliver', _, Tag, _, _, _}, {amqp_msg, _, <<N:64>>}} ->
            ok = amqp_channel:cast(Channel, {'basic.ack', Tag, false}),
            receive_all(Channel, N + 1, Number);
        Other ->
            io:format("instead of ~b: ~p~n", [N, Other]),
            halt(1)
    after 60000 ->
        io:format("nothing after ~b~n", [N - 1]),
        halt(1)
    end.

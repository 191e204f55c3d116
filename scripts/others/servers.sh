#!/bin/sh
# Runs large programs of others on tables of ats: their compiled modules, as Debian has them,
# changed by ats_try.
#
#   scripts/others/servers.sh [PROGRAM...]     rabbitmq or ejabberd; without one, both
#
# RabbitMQ declares a queue, takes MESSAGES messages (100,000 if it is not set), is restarted, and
# delivers them. ejabberd registers two accounts, and passes messages between them. Mnesia is
# changed, too. The project has to be built (`make build`).
#
# The packages are downloaded (apt checks their signatures) and unpacked into a folder; nothing is
# installed on this machine.
#
#   ATS_SERVERS_DIR     where they are kept; default _build/servers
#
# If it cannot be done here the last line says "NOT RUN: reason" and the status is 77.
set -u
cd "$(dirname "$0")/../.."

# shellcheck source=scripts/others/unpacked.sh
. scripts/others/unpacked.sh
messages=${MESSAGES:-100000}
status=0

# `try WHAT COMMAND...`
try() {
    what=$1
    shift
    if "$@"; then
        echo "ok: $what"
    else
        echo "not ok: $what"
        status=1
    fi
}

# ----- RabbitMQ -----

rabbitmq() {
    unpack_rabbitmq
    tried=$dir/rabbitmq
    rm -rf "$tried" && mkdir -p "$tried"
    try "RabbitMQ is copied" copies "$tried/plugins" "$home"/plugins/*-[0-9]* mnesia
    cp -R "$home/sbin" "$home/escript" "$tried/"
    rabbitmq_environment "ats-tried-$$@localhost"
    mnesia=$(echo "$tried"/plugins/mnesia-*/ebin)
    export RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS="-pa $ats/ebin $mnesia"
    try "RabbitMQ starts" start_rabbitmq
    try "RabbitMQ takes $messages messages" rabbitmq_client publish
    try "RabbitMQ has its tables in ats" rabbitmq_tables
    try "RabbitMQ counts messages" sh -c \
        "'$tried/sbin/rabbitmqctl' -q list_queues name messages | grep -q '^tried.$messages\$'"
    try "RabbitMQ stops" "$tried/sbin/rabbitmqctl" -q stop
    wait "$server"
    try "RabbitMQ starts again" start_rabbitmq
    try "RabbitMQ delivers $messages messages" rabbitmq_client consume
    try "RabbitMQ has a user more" sh -c "'$tried/sbin/rabbitmqctl' -q add_user ann secret &&
        '$tried/sbin/rabbitmqctl' -q list_users | grep -q ^ann"
    try "RabbitMQ stops again" "$tried/sbin/rabbitmqctl" -q stop
    wait "$server"
}

rabbitmq_client() {
    ERL_LIBS="$home/plugins:$ERL_LIBS" timeout 300 escript \
        "$project/test/programs/rabbitmq_client.escript" "$1" "$RABBITMQ_NODE_PORT" "$messages"
}

# Tables of RabbitMQ and of Mnesia are there, and not in ets.
rabbitmq_tables() {
    "$tried/sbin/rabbitmqctl" -q eval '
        io:format("~b tables of ats~n", [length(ats:all())]),
        true = lists:all(fun(T) -> ats:info(T, size) =/= undefined andalso
                                   ets:info(T, size) =:= undefined
                         end, [rabbit_queue, rabbit_user, mnesia_gvar, rabbit_registry]).'
}

# ----- ejabberd -----

ejabberd() {
    unpack_ejabberd
    tried=$dir/ejabberd
    rm -rf "$tried" && mkdir -p "$tried"
    # The first folders win, so copies come before what is installed here.
    export ERL_LIBS="$tried/lib:$root/usr/lib/erlang/lib"
    try "ejabberd is copied" copies "$tried/lib" "$root"/usr/lib/*/ejabberd-[0-9]*-[0-9]* \
        "$root"/usr/lib/erlang/lib/p1_*-* mnesia
    ejabberd_environment
    node=ats-ejabberd-$$@localhost
    try "ejabberd starts" start_ejabberd
    for user in ann bob; do
        try "ejabberd registers $user" ejabberdctl register "$user" localhost secret
    done
    try "ejabberd passes messages" timeout 300 escript \
        "$project/test/programs/ejabberd_client.escript" "$port" localhost 500
    try "ejabberd has its tables in ats" ejabberd_tables
    try "ejabberd stops" stop_ejabberd
    try "ejabberd starts again" start_ejabberd
    try "ejabberd has both accounts" sh -c "ERL_LIBS='$ERL_LIBS' erl -noinput -sname c$$@localhost \
        -s ejabberd_ctl -extra $node registered_users localhost | paste -s -d , - | grep -x ann,bob"
    try "ejabberd passes messages again" timeout 300 escript \
        "$project/test/programs/ejabberd_client.escript" "$port" localhost 50
    try "ejabberd stops again" stop_ejabberd
}

ejabberd_tables() {
    erl -noinput -sname "t$$@localhost" -eval '
        [Node] = [list_to_atom(N) || N <- init:get_plain_arguments()],
        Sizes = fun(M) -> [erpc:call(Node, M, info, [T, size])
                            || T <- [session, hooks, mnesia_gvar]] end,
        io:format("~p of ats, ~p of ets~n", [Sizes(ats), Sizes(ets)]),
        halt(case lists:member(undefined, Sizes(ats)) orelse
                 lists:usort(Sizes(ets)) =/= [undefined] of true -> 1; false -> 0 end).
        ' -extra "$node"
}

# ----- all -----

[ $# -gt 0 ] || set -- rabbitmq ejabberd
for program; do
    "$program"
done
exit $status

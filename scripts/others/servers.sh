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

# Scripts of RabbitMQ do not work in a folder whose path has a space: they get one by a link.
case $PWD in
    *" "*)
        linked=$(mktemp -d) && ln -s "$PWD" "$linked/ats" && cd "$linked/ats" || exit 1
        trap 'rm -rf "$linked"' EXIT
        ATS_RELEASE=$linked/ats/_build/default/lib/ats
        ;;
esac
dir=${ATS_SERVERS_DIR:-_build/servers}
mkdir -p "$dir" && dir=$(cd "$dir" && pwd) || exit 1
project=$PWD
ats=${ATS_RELEASE:-$PWD/_build/default/lib/ats}
messages=${MESSAGES:-100000}
status=0

not_run() {
    echo "NOT RUN: $*"
    exit 77
}

# `unpack FOLDER PACKAGE...`
unpack() {
    root=$dir/$1
    shift
    [ ! -f "$root/complete" ] || return 0
    for command in apt-get dpkg-deb; do
        command -v "$command" >/dev/null 2>&1 || not_run "there is no $command here"
    done
    rm -rf "$root"
    mkdir -p "$root/packages"
    (cd "$root/packages" && apt-get -q download "$@") ||
        not_run "packages of Debian cannot be downloaded: $*"
    for package in "$root"/packages/*.deb; do
        dpkg-deb -x "$package" "$root" || not_run "$package cannot be unpacked"
    done
    rm -rf "$root/packages"
    touch "$root/complete"
}

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

# `copies FOLDER APPLICATION...` changes copies; what was found goes to a file beside them.
copies() {
    out=$1
    shift
    rm -rf "$out" && mkdir -p "$out" &&
        erl -noinput -pa "$ats/ebin" -run ats_try main "$@" "$out" >"$out.report"
}

# A free port of this machine.
port() {
    erl -noinput -eval '{ok, S} = gen_tcp:listen(0, []), {ok, P} = inet:port(S),
        io:format("~b", [P]), halt().'
}

# ----- RabbitMQ -----

rabbitmq() {
    unpack rabbitmq-server rabbitmq-server erlang-os-mon erlang-eldap
    home=$(echo "$dir"/rabbitmq-server/usr/lib/rabbitmq/lib/rabbitmq_server-*)
    export ERL_LIBS="$dir/rabbitmq-server/usr/lib/erlang/lib"
    tried=$dir/rabbitmq
    rm -rf "$tried" && mkdir -p "$tried"
    try "RabbitMQ is copied" copies "$tried/plugins" "$home"/plugins/*-[0-9]* mnesia
    cp -R "$home/sbin" "$home/escript" "$tried/"
    export RABBITMQ_NODENAME="ats-tried-$$@localhost" RABBITMQ_MNESIA_BASE="$tried/data" \
        RABBITMQ_LOG_BASE="$tried/log" RABBITMQ_PLUGINS_DIR="$tried/plugins" \
        RABBITMQ_NODE_PORT RABBITMQ_DIST_PORT RABBITMQ_ENABLED_PLUGINS_FILE="$tried/enabled" \
        RABBITMQ_CONFIG_FILE="$tried/none" RABBITMQ_CONF_ENV_FILE="$tried/none" HOME="$tried"
    RABBITMQ_NODE_PORT=$(port)
    RABBITMQ_DIST_PORT=$(port)
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

start_rabbitmq() {
    "$tried/sbin/rabbitmq-server" >"$tried/output" 2>&1 &
    server=$!
    for _ in $(seq 60); do
        sleep 1
        "$tried/sbin/rabbitmqctl" -q await_startup --timeout 60 >/dev/null 2>&1 && return 0
        kill -0 "$server" 2>/dev/null || break
    done
    tail -n 40 "$tried/output"
    return 1
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
    unpack ejabberd-server ejabberd erlang-os-mon erlang-odbc erlang-base64url erlang-goldrush \
        erlang-idna erlang-jiffy erlang-jose erlang-lager erlang-p1-acme erlang-p1-cache-tab \
        erlang-p1-eimp erlang-p1-mqtree erlang-p1-pkix erlang-p1-stringprep erlang-p1-stun \
        erlang-p1-tls erlang-p1-utils erlang-p1-xml erlang-p1-xmpp erlang-p1-yaml erlang-p1-yconf \
        erlang-p1-zlib erlang-unicode-util-compat
    root=$dir/ejabberd-server
    tried=$dir/ejabberd
    rm -rf "$tried" && mkdir -p "$tried"
    # The first folders win, so copies come before what is installed here.
    export ERL_LIBS="$tried/lib:$root/usr/lib/erlang/lib"
    try "ejabberd is copied" copies "$tried/lib" "$root"/usr/lib/*/ejabberd-[0-9]*-[0-9]* \
        "$root"/usr/lib/erlang/lib/p1_*-* mnesia
    port=$(port)
    cat >"$tried/ejabberd.yml" <<END
hosts: [localhost]
listen:
  - {port: $port, ip: "127.0.0.1", module: ejabberd_c2s, starttls: false}
modules:
  mod_admin_extra: {}
  mod_offline: {}
  mod_ping: {}
  mod_roster: {}
  mod_last: {}
END
    export EJABBERD_CONFIG_PATH="$tried/ejabberd.yml" EJABBERD_LOG_PATH="$tried/ejabberd.log"
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

start_ejabberd() {
    erl -noinput -sname "$node" -pa "$ats/ebin" "$(echo "$tried"/lib/mnesia-*/ebin)" \
        -mnesia dir "\"$tried/data\"" -s ejabberd >"$tried/output" 2>&1 &
    server=$!
    for _ in $(seq 60); do
        sleep 1
        ejabberdctl status >/dev/null 2>&1 && return 0
        kill -0 "$server" 2>/dev/null || break
    done
    tail -n 40 "$tried/output" "$tried/ejabberd.log"
    return 1
}

stop_ejabberd() {
    ejabberdctl stop && wait "$server"
}

# The command of ejabberd, without the script around it.
ejabberdctl() {
    erl -noinput -sname "c$$@localhost" -s ejabberd_ctl -extra "$node" "$@"
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

[ -f "$ats/ebin/ats.app" ] || {
    echo "servers: please run first: make build" >&2
    exit 1
}
[ $# -gt 0 ] || set -- rabbitmq ejabberd
for program; do
    "$program"
done
exit $status

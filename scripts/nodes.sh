# Functions of scripts that start nodes, which others than those of this script do not find.
# shellcheck shell=sh

# Starts an epmd on ports that nobody listens on. It ends with the script.
start_epmd() {
    ERL_EPMD_PORT=$(erl -noinput -eval '{ok, S} = gen_tcp:listen(0, []), {ok, P} = inet:port(S),
        io:format("~b", [P]), halt().')
    ERL_EPMD_ADDRESS=127.0.0.1
    export ERL_EPMD_PORT ERL_EPMD_ADDRESS
    epmd &
    epmd=$!
    trap stop EXIT
    trap 'exit 143' TERM
    trap 'exit 130' INT
}

# Nodes that the first one started end with it.
stop() {
    [ -z "${node:-}" ] || kill -KILL "$node"
    kill "$epmd"
    wait
}

# `start_node ARGUMENT...` runs a node, and returns its status. It makes a cookie in this folder.
start_node() {
    # What the nodes that it starts get, too.
    HOME=$PWD
    ERL_AFLAGS="-kernel inet_dist_use_interface {127,0,0,1}"
    ERL_CRASH_DUMP_SECONDS=0
    export HOME ERL_AFLAGS ERL_CRASH_DUMP_SECONDS
    erl -noinput "$@" &
    node=$!
    wait "$node"
    status=$?
    node=""
    return $status
}

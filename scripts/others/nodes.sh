# Functions of scripts that start nodes, which others than those of this script do not find.
# shellcheck shell=sh

# Starts an epmd on ports that nobody listens on. It ends with the script.
start_epmd() {
    ERL_EPMD_PORT=$(erl -noinput -eval '{ok, S} = gen_tcp:listen(0, []), {ok, P} = inet:port(S),
        io:format("~b", [P]), halt().')
    ERL_EPMD_ADDRESS=127.0.0.1
    export ERL_EPMD_PORT ERL_EPMD_ADDRESS
    nodes=""
    epmd &
    epmd=$!
    trap stop EXIT
    trap 'exit 143' TERM
    trap 'exit 130' INT
}

# Nodes that these started end with them.
stop() {
    # shellcheck disable=SC2086 # a list of numbers
    [ -z "$nodes" ] || kill -KILL $nodes
    kill "$epmd"
    wait
}

# `start_node ARGUMENT...` starts a node. It makes a cookie in this folder.
start_node() {
    # What the nodes that it starts get, too.
    HOME=$PWD
    ERL_AFLAGS="-kernel inet_dist_use_interface {127,0,0,1} ${node_flags:-}"
    ERL_CRASH_DUMP_SECONDS=0
    export HOME ERL_AFLAGS ERL_CRASH_DUMP_SECONDS
    erl -noinput "$@" &
    nodes="$nodes $!"
}

# Waits for all nodes that were started, and returns the status of the last.
wait_for_nodes() {
    status=0
    for node in $nodes; do
        wait "$node"
        status=$?
        nodes=${nodes#" $node"}
    done
    return $status
}

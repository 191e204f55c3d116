# shellcheck shell=sh
# shellcheck disable=SC2034,SC2154 # Names of the script that reads this file.
# Shell functions for scripts that run RabbitMQ and ejabberd as Debian packages them. The packages
# are downloaded (apt checks their signatures) and unpacked into a folder; nothing is installed.
#
# The script that reads this file is in the root folder of the project.
#
#   ATS_SERVERS_DIR     where they are kept; default _build/servers
#
# A program runs in the folder $tried.

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

[ -f "$ats/ebin/ats.app" ] || {
    echo "$0: please run first: make build" >&2
    exit 1
}

. scripts/others/debian.sh

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

# Afterwards $home is its folder.
unpack_rabbitmq() {
    get_packages "$dir/rabbitmq-server" rabbitmq-server erlang-os-mon erlang-eldap
    home=$(echo "$dir"/rabbitmq-server/usr/lib/rabbitmq/lib/rabbitmq_server-*)
    export ERL_LIBS="$dir/rabbitmq-server/usr/lib/erlang/lib"
}

# `rabbitmq_environment NODE` sets what its scripts ask for.
rabbitmq_environment() {
    export RABBITMQ_NODENAME="$1" RABBITMQ_MNESIA_BASE="$tried/data" \
        RABBITMQ_LOG_BASE="$tried/log" RABBITMQ_PLUGINS_DIR="$tried/plugins" \
        RABBITMQ_NODE_PORT RABBITMQ_DIST_PORT RABBITMQ_ENABLED_PLUGINS_FILE="$tried/enabled" \
        RABBITMQ_CONFIG_FILE="$tried/none" RABBITMQ_CONF_ENV_FILE="$tried/none" HOME="$tried"
    RABBITMQ_NODE_PORT=$(port)
    RABBITMQ_DIST_PORT=$(port)
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

# ----- ejabberd -----

# Afterwards $root is its folder.
unpack_ejabberd() {
    get_packages "$dir/ejabberd-server" ejabberd erlang-os-mon erlang-odbc erlang-base64url \
        erlang-goldrush erlang-idna erlang-jiffy erlang-jose erlang-lager erlang-p1-acme \
        erlang-p1-cache-tab erlang-p1-eimp erlang-p1-mqtree erlang-p1-pkix erlang-p1-stringprep \
        erlang-p1-stun erlang-p1-tls erlang-p1-utils erlang-p1-xml erlang-p1-xmpp erlang-p1-yaml \
        erlang-p1-yconf erlang-p1-zlib erlang-unicode-util-compat
    root=$dir/ejabberd-server
}

# Writes its configuration; $port is its port.
ejabberd_environment() {
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

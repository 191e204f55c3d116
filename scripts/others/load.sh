#!/bin/sh
# Compares whole programs on tables of ets, their modules as Debian has them, and on tables of ats,
# the same modules changed by ats_try, under load.
#
#   scripts/others/load.sh [PROGRAM...]     rabbitmq or ejabberd; without one, both
#
# Both servers run at the same time, and the clients load one after the other, in pairs whose order
# alternates. Servers and clients share this machine, so rates depend on the clients, too; the
# processor time of the server for an operation does not. The result is a table: for each workload
# the medians of both sides, and the median, the lowest and the highest ratio of the pairs. The
# project has to be built (`make build`).
#
#   PAIRS               pairs of runs of each workload; default 5
#   WARM, MEASURE       seconds before and of the measurement of a run; default 3 and 15
#   WORKLOADS           default: all of the program
#   ATS_SERVERS_DIR     where the programs are kept; default _build/servers
#
# If it cannot be done here the last line says "NOT RUN: reason" and the status is 77.
set -u
cd "$(dirname "$0")/../.." || exit 1

# shellcheck source=scripts/others/unpacked.sh
. scripts/others/unpacked.sh
pairs=${PAIRS:-5}
warm=${WARM:-3}
measure=${MEASURE:-15}
runs=$dir/load.runs
# Schedulers that wait for work use no processor time.
quiet="+sbwt none +sbwtdcpu none +sbwtdio none"

# `failed WHAT` ends the script, and the servers with it.
failed() {
    echo "load: $*" >&2
    exit 1
}

# `run PROGRAM WORKLOAD SIDE NODE PORT` adds a line to the runs.
run() {
    line=$(ERL_CRASH_DUMP_SECONDS=0 timeout 300 escript "$project/test/programs/load.escript" \
        "$2" "$4" "$5" "$warm" "$measure") || failed "$1 $2 on $3: $line"
    echo "$line" | grep -Eqx '([0-9.]+ ){4}[0-9]+' || failed "$1 $2 on $3: $line"
    echo "$1 $2 $3 $line" | tee -a "$runs"
}

# `alternate PROGRAM WORKLOAD` makes all pairs of runs; `of_SIDE` makes one.
alternate() {
    for pair in $(seq "$pairs"); do
        case $((pair % 2)) in
            1) of_ets "$@" && of_ats "$@" ;;
            0) of_ats "$@" && of_ets "$@" ;;
        esac
    done
}

# Prints the table of all runs: the n-th lines of both sides are a pair.
table() {
    awk -v machine="$(nproc) processors" '
        function sorted(list, n,   i, j, x) {
            for (i = 2; i <= n; i++) {
                x = list[i]
                for (j = i - 1; j > 0 && list[j] > x; j--) list[j + 1] = list[j]
                list[j + 1] = x
            }
        }
        function median(list, n) {
            return n % 2 ? list[(n + 1) / 2] : (list[n / 2] + list[n / 2 + 1]) / 2
        }
        BEGIN { split("rate p50_ms p99_ms cpu_us megabytes", names) }
        {
            key = $1 "," $2
            if (!(key in seen)) { order[++keys] = key; seen[key] = 1 }
            n = ++count[key, $3]
            for (f = 1; f <= 5; f++) value[key, $3, f, n] = $(f + 3)
        }
        END {
            print "# Whole programs on tables of ats beside the same on ets: scripts/others/load.sh"
            print "# Servers and clients share a machine of " machine "."
            print "# ratio, lowest, highest: ats over ets, of the pairs of runs."
            print "program,workload,figure,ets,ats,ratio,lowest,highest"
            for (k = 1; k <= keys; k++) for (f = 1; f <= 5; f++) {
                key = order[k]; n = count[key, "ets"]
                if (count[key, "ats"] < n) n = count[key, "ats"]
                if (n == 0) continue
                for (i = 1; i <= n; i++) {
                    a[i] = value[key, "ets", f, i] + 0; b[i] = value[key, "ats", f, i] + 0
                    r[i] = a[i] > 0 ? b[i] / a[i] : 0
                }
                sorted(a, n); sorted(b, n); sorted(r, n)
                printf "%s,%s,%g,%g,%.2f,%.2f,%.2f\n", key, names[f], median(a, n), median(b, n),
                    median(r, n), r[1], r[n]
            }
        }' "$runs"
}

# ----- RabbitMQ -----

rabbitmq() {
    unpack_rabbitmq
    clients=$home/plugins:$ERL_LIBS
    for side in ets ats; do
        tried=$dir/load-rabbitmq-$side
        rm -rf "$tried" && mkdir -p "$tried"
        # Both servers take the same cookie.
        cp "$dir/load.cookie" "$tried/.erlang.cookie"
        echo "[rabbitmq_management_agent]." >"$tried/enabled"
        case $side in
            ets) mkdir "$tried/plugins" && ln -s "$home"/plugins/*-[0-9]* "$tried/plugins/" ;;
            ats) copies "$tried/plugins" "$home"/plugins/*-[0-9]* mnesia ||
                failed "RabbitMQ is not copied" ;;
        esac
        cp -R "$home/sbin" "$home/escript" "$tried/"
        rabbitmq_environment "ats-load-$side-$$@localhost"
        export RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS="$quiet"
        [ $side = ets ] || RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS="$quiet -pa $ats/ebin $(echo \
            "$tried"/plugins/mnesia-*/ebin)"
        start_rabbitmq || failed "RabbitMQ does not start on $side"
        servers="$servers $(server_process "$RABBITMQ_NODENAME")"
        eval "node_$side=$RABBITMQ_NODENAME port_$side=$RABBITMQ_NODE_PORT"
    done
    check_tables rabbit_queue
    export ERL_LIBS="$clients"
    for workload in ${WORKLOADS:-queues topics declarations lists}; do
        alternate rabbitmq "$workload"
    done
    stop_servers
}

# ----- ejabberd -----

ejabberd() {
    unpack_ejabberd
    for side in ets ats; do
        tried=$dir/load-ejabberd-$side
        rm -rf "$tried" && mkdir -p "$tried"
        cp "$dir/load.cookie" "$tried/.erlang.cookie"
        # The first folders win, so copies come before what is installed here.
        export HOME="$tried" ERL_LIBS="$tried/lib:$root/usr/lib/erlang/lib"
        case $side in
            ets)
                mkdir "$tried/lib" &&
                    ln -s "$root"/usr/lib/*/ejabberd-[0-9]*-[0-9]* "$tried/lib/"
                ;;
            ats) copies "$tried/lib" "$root"/usr/lib/*/ejabberd-[0-9]*-[0-9]* \
                "$root"/usr/lib/erlang/lib/p1_*-* mnesia || failed "ejabberd is not copied" ;;
        esac
        ejabberd_environment
        # A line in the log for each session would be most of the work.
        echo "loglevel: warning" >>"$tried/ejabberd.yml"
        node=ats-load-$side-$$@localhost
        ERL_FLAGS=$quiet start_ejabberd || failed "ejabberd does not start on $side"
        servers="$servers $server"
        eval "node_$side=$node port_$side=$port"
    done
    check_tables session
    for workload in ${WORKLOADS:-messages sessions rosters}; do
        alternate ejabberd "$workload"
    done
    stop_servers
}

# ----- both -----

of_ets() { run "$1" "$2" ets "$node_ets" "$port_ets"; }
of_ats() { run "$1" "$2" ats "$node_ats" "$port_ats"; }

# `has_tables NODE TABLE` tells whether a server has the table in ats.
has_tables() {
    erl -noinput -sname "t$$@localhost" -eval '
        [Node, Table] = [list_to_atom(N) || N <- init:get_plain_arguments()],
        HasAts = erpc:call(Node, code, which, [ats]) =/= non_existing,
        halt(case HasAts andalso erpc:call(Node, ats, info, [Table, size]) of
                 Size when is_integer(Size) -> 0;
                 _ -> 1
             end).' -extra "$1" "$2"
}

# `check_tables TABLE` ends the script if the table of a server is on the other side.
check_tables() {
    has_tables "$node_ats" "$1" || failed "the table $1 is not in ats"
    ! has_tables "$node_ets" "$1" || failed "the table $1 is not in ets"
}

# `server_process NODE` prints the number of its process.
server_process() {
    erl -noinput -sname "t$$@localhost" -eval '
        [Node] = [list_to_atom(N) || N <- init:get_plain_arguments()],
        io:put_chars(erpc:call(Node, os, getpid, [])), halt().' -extra "$1"
}

stop_servers() {
    for process in $servers; do
        kill "$process" 2>/dev/null
    done
    wait
    servers=""
}

ended() {
    stop_servers
    [ -z "${linked:-}" ] || rm -rf "$linked"
}

servers="" node_ets="" node_ats="" port_ets="" port_ats=""
trap ended EXIT
trap 'exit 1' INT TERM
(umask 077 && od -An -N12 -tx1 /dev/urandom | tr -d ' \n' >"$dir/load.cookie") || exit 1
chmod 400 "$dir/load.cookie"
: >"$runs"
[ $# -gt 0 ] || set -- rabbitmq ejabberd
for program; do
    "$program"
done
table

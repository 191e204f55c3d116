#!/bin/sh
# Tests apps/ats_ra, which keeps tables on several nodes by Raft.
#
#   scripts/others/ra.sh [SUITE...]     for example: scripts/others/ra.sh ats_ra_SUITE
#
# Without a suite named, all of apps/ats_ra/test run. The project has to be built (`make build`).
#
# The package rabbitmq-server of Debian 12 has `ra` and what that needs, compiled. It is downloaded
# (apt checks its signature) and unpacked into a folder; nothing is installed on this machine. Users
# take `ra` from hex, and this project does not need it otherwise. That release answers some reads
# too early, which later ones do not: it is mended here (see apps/ats_ra/test/ats_ra_mended.erl).
#
#   ATS_RA_DIR       where it is kept; default _build/ra
#   ATS_RA_ROUNDS    rounds of each fault; default 5
#
# If it cannot be done here the last line says "NOT RUN: reason" and the status is 77.
set -u
cd "$(dirname "$0")/../.."

dir=${ATS_RA_DIR:-_build/ra}
mkdir -p "$dir" && dir=$(cd "$dir" && pwd) || exit 1
release=$PWD/_build/default/lib/ats
page=$PWD/docs/use/raft.md
libraries="ra gen_batch_server seshat aten"

not_run() {
    echo "NOT RUN: $*"
    exit 77
}

# The beams of the libraries, one folder each.
unpack() {
    [ ! -f "$dir/lib/complete" ] || return 0
    for command in apt-get dpkg-deb; do
        command -v "$command" >/dev/null 2>&1 || not_run "there is no $command here"
    done
    rm -rf "$dir/lib" "$dir/package"
    mkdir -p "$dir/lib" "$dir/package"
    (cd "$dir/package" && apt-get -q download rabbitmq-server) ||
        not_run "the package rabbitmq-server of Debian cannot be downloaded"
    dpkg-deb -x "$dir"/package/*.deb "$dir/package/root" ||
        not_run "the package rabbitmq-server of Debian cannot be unpacked"
    for library in $libraries; do
        found=$(find "$dir/package/root" -type d -path "*/plugins/$library-[0-9]*/ebin")
        [ -n "$found" ] || not_run "that release of rabbitmq-server has no $library"
        mkdir -p "$dir/lib/$library"
        cp -R "$found" "$dir/lib/$library/"
    done
    rm -rf "$dir/package"
    touch "$dir/lib/complete"
}

# `with_paths COMMAND ARGUMENT...`: with the folders of all modules.
with_paths() {
    command=$1
    shift
    for folder in "$release/ebin" "$dir/ebin" "$dir/test" "$dir/mended"; do
        set -- -pa "$folder" "$@"
    done
    for library in $libraries; do
        set -- -pa "$dir/lib/$library/ebin" "$@"
    done
    "$command" "$@"
}

compile() {
    rm -rf "$dir/ebin" "$dir/test" "$dir/mended"
    mkdir -p "$dir/ebin" "$dir/test" "$dir/mended" "$dir/logs" "$dir/copies"
    with_paths erlc -Werror +debug_info +warn_missing_spec +warn_export_vars -o "$dir/ebin" \
        "$PWD"/apps/ats_ra/src/*.erl &&
        cp apps/ats_ra/src/ats_ra.app.src "$dir/ebin/ats_ra.app" &&
        with_paths erlc -Werror +debug_info -o "$dir/test" test/cluster/ats_history.erl \
            test/cluster/ats_cluster.erl test/cluster/ats_cluster_network.erl \
            test/support/ats_test_report.erl \
            apps/ats_ra/test/*.erl &&
        erl -noinput -pa "$dir/test" -eval '
            [From, To] = init:get_plain_arguments(), ok = ats_ra_mended:write(From, To), halt().
            ' -extra "$dir/lib/ra/ebin" "$dir/mended"
}

run_suites() {
    cd "$dir" || return 1
    export ATS_RA_COPIES="$dir/copies" ATS_RA_PAGE="$page"
    with_paths erl -noinput -run ats_test_report main test logs "$@"
}

[ -f "$release/ebin/ats.app" ] || {
    echo "ra: please run first: make build" >&2
    exit 1
}
unpack
compile || exit 1
[ $# -gt 0 ] || set -- $(find apps/ats_ra/test -name '*_SUITE.erl' -exec basename {} .erl \;)
run_suites "$@"

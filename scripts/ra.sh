#!/bin/sh
# Tests apps/ats_ra, which keeps tables on several nodes by Raft.
#
#   scripts/ra.sh [SUITE...]     for example: scripts/ra.sh ats_ra_SUITE
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
cd "$(dirname "$0")/.."

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

paths() {
    for library in $libraries; do
        printf -- '-pa %s ' "$dir/lib/$library/ebin"
    done
    echo "-pa $release/ebin -pa $dir/ebin -pa $dir/test -pa $dir/mended"
}

compile() {
    rm -rf "$dir/ebin" "$dir/test" "$dir/mended"
    mkdir -p "$dir/ebin" "$dir/test" "$dir/mended" "$dir/logs" "$dir/copies"
    # shellcheck disable=SC2046 # A list of words.
    erlc -Werror +debug_info +warn_missing_spec +warn_export_vars $(paths) -o "$dir/ebin" \
        "$PWD"/apps/ats_ra/src/*.erl &&
        cp apps/ats_ra/src/ats_ra.app.src "$dir/ebin/ats_ra.app" &&
        erlc -Werror +debug_info $(paths) -o "$dir/test" test/cluster/ats_history.erl \
            test/cluster/ats_cluster.erl test/cluster/ats_cluster_network.erl \
            apps/ats_ra/test/*.erl &&
        erl -noinput -pa "$dir/test" -eval '
            [From, To] = init:get_plain_arguments(), ok = ats_ra_mended:write(From, To), halt().
            ' -extra "$dir/lib/ra/ebin" "$dir/mended"
}

# Ends with a line as rebar3 has it, and before that one for each test that failed.
run_suites() {
    cd "$dir" || return 1
    # shellcheck disable=SC2046 # A list of words.
    env ATS_RA_COPIES="$dir/copies" ATS_RA_PAGE="$page" erl -noinput $(paths) -eval '
        Suites = [list_to_atom(S) || S <- init:get_plain_arguments()],
        {Passed, Failed, {Left, Unprepared}} = ct:run_test([
            {dir, "test"}, {suite, Suites}, {auto_compile, false}, {logdir, "logs"}]),
        io:format("Failed ~b tests. Skipped ~b (~b, ~b) tests. Passed ~b tests.~n",
                  [Failed, Left + Unprepared, Left, Unprepared, Passed]),
        halt(case Failed + Unprepared of 0 -> 0; _ -> 1 end).
        ' -extra "$@"
}

[ -f "$release/ebin/ats.app" ] || {
    echo "ra: please run first: make build" >&2
    exit 1
}
unpack
compile || exit 1
[ $# -gt 0 ] || set -- $(find apps/ats_ra/test -name '*_SUITE.erl' -exec basename {} .erl \;)
run_suites "$@"

#!/bin/sh
# Runs the tests that come with programs of others, as they are and with the programs and the tests
# changed by ats_try, so that they keep their tables in ats, and compares the two.
#
#   scripts/programs.sh [PROGRAM...]     those of test/programs/programs.terms; without one, all
#   scripts/programs.sh quick            a few that are done in a minute
#   scripts/programs.sh page             runs all, and writes docs/use/programs.md
#
# The tests are in source packages of Debian. Packages that the programs need are unpacked into a
# folder; apt checks the signature of what is downloaded, and nothing is installed on this machine.
# Nodes listen on 127.0.0.1 only, have an epmd of their own, and end when the script ends. The
# project has to be built (`make build').
#
# A line for each program says "ok: PROGRAM: N tests" and what shows that they ran on ats, "not ok:
# PROGRAM: TEST passes with ets and not with ats: why" for each such test, or "not run: PROGRAM:
# why". A test that does not pass as it is does not count.
#
#   ATS_PROGRAMS_DIR  where all is kept; default _build/programs
#   ATS_APT_OPTIONS   further options of apt-get (see scripts/others/otp27.sh)
#
# If none can be run here the last line says "NOT RUN: reason" and the status is 77.
set -u
cd "$(dirname "$0")/.." || exit 1

debian=$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release 2>/dev/null)
project=$PWD
ats=$project/_build/default/lib/ats
[ -f "$ats/ebin/ats.app" ] || {
    echo "programs: please run first: make build" >&2
    exit 1
}
kept=${ATS_PROGRAMS_DIR:-_build/programs}
mkdir -p "$kept" && kept=$(cd "$kept" && pwd) || exit 1
# Tests of others do not expect a space in a path: they run in a folder without one, and see all
# else by links.
links=$(mktemp -d) || exit 1
trap 'rm -rf "$links"' EXIT
ln -s "$kept" "$links/kept" && ln -s "$ats" "$links/ats" || exit 1
dir=$links/kept
work=$links/work
table=$project/test/programs/programs.terms
. scripts/others/debian.sh
. scripts/others/nodes.sh

# ----- what is needed -----

# `get SOURCES PACKAGE...` gets what a program needs. The sources have commas between them.
get() {
    for source in $(echo "$1" | tr , ' '); do
        # Little of it is not in this folder.
        case $source in
            erlang) path=lib ;;
            *) path=. ;;
        esac
        get_source "$source" "$debian" "$dir/sources/$source" "$path"
    done
    shift
    for package; do
        get_packages "$dir/packages/$package" "$package"
    done
}

compile() {
    rm -rf "$dir/ebin" && mkdir -p "$dir/ebin"
    erlc -pa "$ats/ebin" -o "$dir/ebin" "$project"/test/otp/*.erl "$project"/test/programs/*.erl ||
        exit 1
}

# Folders in which Erlang looks for applications.
libraries() {
    for folder in "$dir"/packages/*/usr/lib/erlang/lib "$dir"/packages/*/usr/lib/elixir/lib; do
        [ ! -d "$folder" ] || printf ':%s' "$folder"
    done
}

# ----- running -----

# `ats_programs FUNCTION ARGUMENT...` calls a function, without the flags of the last node.
ats_programs() {
    ERL_AFLAGS="" ERL_CRASH_DUMP_SECONDS=0 \
        erl -noinput -pa "$links/ats/ebin" "$dir/ebin" -run ats_programs "$@"
}

# `run PROGRAM theirs` or `run PROGRAM ours`
run() {
    folder=$work/run_$2
    mkdir -p "$folder" && cd "$folder" || exit 1
    node_flags=$(cat "$work/$2.flags")
    [ "$2" = theirs ] || node_flags="$node_flags -pa $links/ats/ebin"
    start_node -sname "ats_programs_$2_$$@localhost" -pa "$dir/ebin" \
        -run ats_programs run "$table" "$work" "$1" "$2" >log 2>&1
    wait_for_nodes
    cd "$project" || exit 1
}

# Ends processes that tests have left behind. Their command lines name a folder of this run.
end_left() {
    # shellcheck disable=SC2013 # a list of words
    for process in $(grep -alF "$links/" /proc/[0-9]*/cmdline 2>/dev/null); do
        process=${process#/proc/}
        kill -KILL "${process%/cmdline}" 2>/dev/null
    done
}

# `try PROGRAM SOURCES PACKAGE...`
try() {
    program=$1
    shift
    if ! why=$(get "$@" 2>"$dir/get.log"); then
        echo "not run: $program: ${why#NOT RUN: }"
        rm -rf "$dir/work/$program"
        return 77
    fi
    ERL_LIBS=$(libraries)
    export ERL_LIBS
    if ! ats_programs prepare "$table" "$dir" "$work" "$program"; then
        echo "not ok: $program: its tests cannot be compiled"
        return 1
    fi
    # Tests of others may fail once on a busy machine: what fails has failed twice.
    for which in theirs ours ours; do
        rm -rf "$work/run_$which"
        run "$program" "$which"
        end_left
        [ "$which" = ours ] || continue
        ats_programs compare "$table" "$work" "$program" >"$work/compared"
        status=$?
        [ "$status" -ne 0 ] || break
    done
    cat "$work/compared"
    rm -rf "$dir/work/$program" && mkdir -p "$dir/work" && mv "$work" "$dir/work/$program"
    return "$status"
}

# ----- all -----

page=false
[ "${1:-}" != page ] || { page=true && shift; }
compile
programs=$(ats_programs list "$table" "$@") || exit 1
start_epmd
trap 'stop; end_left; rm -rf "$links"' EXIT
failed=0
had=0
while read -r program sources packages; do
    # shellcheck disable=SC2086 # a list of words
    try "$program" "$sources" $packages </dev/null
    case $? in
        0) had=$((had + 1)) ;;
        77) ;;
        *) failed=1 had=$((had + 1)) ;;
    esac
done <<END
$programs
END
[ "$had" -gt 0 ] || not_run "no program could be had"
[ "$page" = false ] || ats_programs page "$table" "$dir" "$project/docs/use/programs.md"
exit $failed

#!/bin/sh
# Runs test suites of Erlang/OTP, which are in the source package of Erlang of Debian, as they are
# and with tables of ours in the place of its own, and compares the two.
#
#   scripts/otp-suites.sh [SUITE...]     SUITE is a suite or SUITE:CASE
#   scripts/otp-suites.sh quick          qlc_SUITE: two minutes at most
#
# In qlc_SUITE and ets_SUITE each `ets' is replaced by `ats'; in dets_SUITE `dets' by `dats', too.
# Without a suite named, all three run. The project has to be built (`make build').
#
# apt checks the signature of what is downloaded; nothing is installed on this machine. Nodes listen
# on 127.0.0.1 only, have an epmd of their own, and end when the script ends.
#
# A line for each case says "ok: CASE", "not ok: CASE: why" or "not run: CASE: why". A case that
# does not pass as it is is not run, and neither are those that test/otp/cases.txt lists. The pages
# of common_test are kept.
#
#   ATS_OTP_DIR       where all is kept; default _build/otp-suites
#   ATS_APT_OPTIONS   further options of apt-get (see scripts/otp27.sh)
#
# If it cannot be done here the last line says "NOT RUN: reason" and the status is 77.
set -u
cd "$(dirname "$0")/.."

[ "${1:-}" != quick ] || set -- qlc_SUITE
[ $# -gt 0 ] || set -- qlc_SUITE ets_SUITE dets_SUITE
debian=$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release 2>/dev/null)
dir=${ATS_OTP_DIR:-_build/otp-suites}
mkdir -p "$dir" && dir=$(cd "$dir" && pwd) || exit 1
project=$PWD
release=$project/_build/default/lib/ats/ebin
listed=$project/test/otp/cases.txt
. scripts/debian.sh
. scripts/nodes.sh

# ----- sources -----

# `compile_suites FOLDER` compiles the suites as they are, `compile_suites FOLDER replace` with our
# tables. The hook that they name is not part of an installation. Suites have more code than a
# compiler likes; to optimise it would take longer than to run it.
compile_suites() {
    folder=$dir/$1
    replace=${2:-true}
    rm -rf "$folder"
    mkdir "$folder"
    for suite in $suites; do
        sed 's/{ct_hooks, *\[ts_install_cth\]},//' "$dir/source/$suite.erl" >"$folder/$suite.erl"
        [ ! -d "$dir/source/${suite}_data" ] || cp -R "$dir/source/${suite}_data" "$folder"
        $replace "$folder/$suite.erl" "$suite"
    done
    erlc +no_ssa_opt +nowarn_deprecated_function +nowarn_export_all -pa "$release" \
        -I "$dir/source" -o "$folder" "$project/test/otp/ats_otp_cases.erl" "$folder"/*.erl \
        >"$folder/compile.log" 2>&1 || { cat "$folder/compile.log"; exit 1; }
}

# What `qlc' makes itself stays: specifications that are run on lists, and the cache of that name.
replace() {
    sed -i -E 's/\bets:/ats:/g; s/\b(apply|equal_results)\(ets\b/\1(ats/g
        s/\{ets, ?(_|table|F|Args|ActualF|internal_delete_all|InsertFunc)\b/{ats,\1/g
        s/\{table, ?ets\b/{table,ats/
        s/"(stdlib\/include\/ms_transform.hrl)"/"ats\/include\/ms_transform.hrl"/' "$1"
    case $2 in
        qlc_SUITE) sed -i -E 's/\bats:(match_spec_(run|compile))/ets:\1/g' "$1" ;;
        dets_SUITE) sed -i -E 's/\bdets:/dats:/g; s/\bapply\(dets\b/apply(dats/g' "$1" ;;
    esac
}

# ----- running -----

# `run FOLDER SUITE...` leaves the verdicts in a file of a folder.
run() {
    folder=$1
    shift
    rm -rf "$dir/run_$folder"
    mkdir "$dir/run_$folder" && cd "$dir/run_$folder" || exit 1
    : >verdicts
    start_node -sname "ats_otp_$$@localhost" -pa "$release" -pa "$dir/$folder" \
        -run ats_otp_cases run "$dir/$folder" "$listed" "$@" >log 2>&1
    cd "$project" || exit 1
}

get_erlang_source "$debian" "$dir/source" lib/stdlib/test
suites=$(printf '%s\n' "$@" | sed 's/:.*//' | sort -u)
compile_suites theirs
compile_suites ours replace
start_epmd
run theirs "$@"
run ours "$@"
erl -noinput -pa "$dir/ours" -run ats_otp_cases compare \
    "$dir/run_theirs/verdicts" "$dir/run_ours/verdicts" "$listed"

#!/bin/sh
# Runs test suites of Erlang/OTP, which are in the source package of Erlang of Debian, as they are
# and with tables of ours in the place of its own, and compares the two.
#
#   scripts/others/otp.sh [SUITE...]     SUITE is a suite or SUITE:CASE
#   scripts/others/otp.sh quick          qlc_SUITE: two minutes at most
#
# In qlc_SUITE and ets_SUITE each `ets' is replaced by `ats', in dets_SUITE each `dets' by `dats'.
# Without a suite named, all three run. The project has to be built (`make build'). Both runs go on
# beside each other.
#
# apt checks the signature of what is downloaded; nothing is installed on this machine. Nodes listen
# on 127.0.0.1 only, have an epmd of their own, and end when the script ends.
#
# A line for each case says "ok: CASE", "not ok: CASE: why" or "not run: CASE: why". A case that
# does not pass as it is is not run, and neither are those that test/otp/cases.txt lists. The pages
# of common_test are kept.
#
#   ATS_OTP_DIR       where all is kept; default _build/otp-suites
#   ATS_APT_OPTIONS   further options of apt-get (see scripts/others/otp27.sh)
#
# If it cannot be done here the last line says "NOT RUN: reason" and the status is 77.
set -u
cd "$(dirname "$0")/../.."

[ "${1:-}" != quick ] || set -- qlc_SUITE
[ $# -gt 0 ] || set -- qlc_SUITE ets_SUITE dets_SUITE
debian=$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release 2>/dev/null)
dir=${ATS_OTP_DIR:-_build/otp-suites}
mkdir -p "$dir" && dir=$(cd "$dir" && pwd) || exit 1
project=$PWD
# Nodes that the suites start find it, too.
ERL_LIBS=$project/_build/default/lib
export ERL_LIBS
listed=$project/test/otp/cases.txt
. scripts/others/debian.sh
. scripts/others/nodes.sh

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
        sed -E -e 's/\{ct_hooks, *\[ts_install_cth\]\},//' \
            -e 's/\{timetrap, *\{minutes, *[0-9]+\}\}/{timetrap, {minutes, 5}}/' \
            -e 's/\bct:timetrap\(\{minutes, *[0-9]+\}\)/ok/' \
            "$dir/source/$suite.erl" >"$folder/$suite.erl"
        [ ! -d "$dir/source/${suite}_data" ] || cp -R "$dir/source/${suite}_data" "$folder"
        $replace "$folder/$suite.erl" "$suite"
    done
    erlc +no_ssa_opt +nowarn_deprecated_function +nowarn_export_all \
        -I "$dir/source" -o "$folder" "$project"/test/otp/*.erl "$folder"/*.erl \
        >"$folder/compile.log" 2>&1 || { cat "$folder/compile.log"; exit 1; }
}

# What `qlc' makes itself stays: specifications that are run on lists, and the cache of that name.
#
# Lines that look at the inside of tables of `ets' are taken out, so that the rest of a case still
# says something: no tree is split by a hook of the emulator, buckets and objects that a fixed table
# keeps are not counted, and where the memory of all tables is compared it is their number.
#
# A table of `dats' is a folder, is never in memory only, and has no slots. What comes after a case
# has damaged an object at its place in the file is left out, and so are the parts of two cases that
# write into the file or into binaries of `bchunk'. Functions that are not documented are replaced
# by those that are.
replace() {
    case $2 in
        qlc_SUITE)
            replace_ets "$1"
            sed -i -E 's/\bats:(match_spec_(run|compile))/ets:\1/g' "$1"
            ;;
        ets_SUITE)
            replace_ets "$1"
            sed -i -E 's/true -> stimulate_contention\(T,.*/true -> ok/
                s/\w+ = get_kept_objects\(\w+\)( >= Left)?/ok/
                s/^( +)verify_table_load\(smp_insert\)/\1ok/
                s/^num_of_buckets\(T\) ->/num_of_buckets(_) -> 1.\n\nunused_num_of_buckets(T) ->/
                s/erts_debug:alloc_blocks_size\(ets_alloc\)|erlang:memory\(ets\)/length(ats:all())/
                s/\bats:module_info\(/ets:module_info(/
                s/^(\s+)ets, (to|from)_dets, /\1ats, \2_dets, /' "$1"
            ;;
        dets_SUITE) replace_dets "$1" ;;
    esac
}

replace_ets() {
    sed -i -E 's/\bets:/ats:/g; s/\b(apply|equal_results)\(ets\b/\1(ats/g
        s/\{ets, ?(_|table|F|Args|ActualF)\b/{ats,\1/g; s/\{table, ?ets\b/{table,ats/
        s/"(stdlib\/include\/ms_transform.hrl)"/"ats\/include\/ms_transform.hrl"/' "$1"
}

replace_dets() {
    sed -i -E 's/\bdets:/dats:/g; s/\bapply\(dets\b/apply(dats/g
        s/(^|\(Node,)(\s*)dets, /\1\2dats, /
        s/\bdats:start\(\)/application:ensure_all_started(ats)/; s/\bdats:verbose\(/dets:verbose(/
        s/\{ram_file, *true\}/{ram_file, false}/g
        s/\bfile:delete\(/ats_otp_cases:delete(/
        s/true = ets:from_dets\(Tab, Tab\)/Tab = dats:to_ets(Tab, Tab)/
        s/Tab = ets:to_dets\(Ets, Tab\)/ok = dats:from_ets(Tab, Ets)/
        s/case search_slot\(T, 0\) of/case {N + 9, [N + 4, N + 6]} of/
        /9 = dats:info\(T, version\)/d
        s/^ +(open_1|fast_init_table)\(Config\)\./    ok./
        /= dats:where\(/,/:delete\(/{
            s/.*= dats:where\((\w+),.*/    dats:close(\1),/
            /^    dats:close\(|:delete\(/!d
        }
        /check_badarg\(catch dats:lookup_keys/,/\]\),$/d
        s/\bdats:lookup_keys\(/ats_otp_cases:lookup_keys(/
        /catch dats:foldr\(/{n; s/dets, foldl/dats, foldr/}
        /catch dats:init_table\(no_table, IF\)/{n; s/dets(, .*),\[\]\]/dats\1]/}
        s/\{delayed_write, *DelayedWrite\}/{ram_file, false}/
        s/\bnot_a_dets_file\b/not_a_dats_table/; s/true = FileSize1 > FileSize2/ok/
        s/\bpeer:stop\(Peer\),/& timer:sleep(1000),/
        s/^check_dets_tables\(\) ->/& [] = dats:all(), ok.\n\nunused_check() ->/' "$1"
}

# ----- running -----

# `start FOLDER SUITE...` starts a run, which leaves the verdicts in a file of a folder.
start() {
    folder=$1
    shift
    rm -rf "$dir/run_$folder"
    mkdir "$dir/run_$folder" && cd "$dir/run_$folder" || exit 1
    : >verdicts
    start_node -sname "ats_otp_${folder}_$$@localhost" -pa "$dir/$folder" \
        -run ats_otp_cases run "$dir/$folder" "$listed" "$@" >log 2>&1
    cd "$project" || exit 1
}

get_source erlang "$debian" "$dir/source" lib/stdlib/test
suites=$(printf '%s\n' "$@" | sed 's/:.*//' | sort -u)
compile_suites theirs
compile_suites ours replace
start_epmd
start theirs "$@"
start ours "$@"
wait_for_nodes
erl -noinput -pa "$dir/ours" -run ats_otp_cases compare \
    "$dir/run_theirs/verdicts" "$dir/run_ours/verdicts" "$listed"

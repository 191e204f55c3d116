#!/bin/sh
# Runs test suites of mnesia itself, which are in the source package of Erlang of Debian.
#
#   scripts/others/mnesia.sh                     all modes but base: two hours
#   scripts/others/mnesia.sh MODE [SUITE...]     SUITE is a suite, SUITE:CASE or SUITE:GROUP
#   scripts/others/mnesia.sh tpcb     compiles mnesia_tpcb, which measures, and prints its folder
#   ATS_OTP=27 scripts/others/mnesia.sh ext      mnesia of Erlang/OTP 27, on the release here
#
# The modes are
#   base      as they are;
#   ext       cases with tables of an external storage type, for which the suites have a module of
#             their own: another one takes its place, which passes all calls on to ats_mnesia;
#   types     all suites, with ats_ram and dats_disc in the place of ram_copies and
#             disc_only_copies wherever a case names these;
#   disc      the same with ats_disc in the place of disc_copies.
# Without a suite named, all that concern the mode run: half an hour but for ext. All modes but base
# want the project built (`make build`).
#
# mnesia is compiled with its debug instrumentation, without which many cases skip themselves. apt
# checks the signature of what is downloaded; nothing is installed on this machine. Nodes listen
# on 127.0.0.1 only, have an epmd of their own, and end when the script ends.
#
# A line for each case says "ok: CASE", "not ok: CASE" or "not run: CASE: why". Cases that
# test/mnesia/cases.txt lists are not run, or say so when they failed. What a case printed is in a
# file of its own.
#
#   ATS_MNESIA_DIR    where all is kept; default _build/mnesia-suites
#   ATS_APT_OPTIONS   further options of apt-get (see scripts/others/otp27.sh)
#
# If it cannot be done here the last line says "NOT RUN: reason" and the status is 77.
set -u
cd "$(dirname "$0")/../.."

if [ $# -eq 0 ]; then
    status=0
    scripts/others/mnesia.sh ext || status=$?
    ATS_OTP=27 scripts/others/mnesia.sh ext || status=$?
    scripts/others/mnesia.sh types || status=$?
    scripts/others/mnesia.sh disc || status=$?
    exit $status
fi
mode=$1
shift
case ${ATS_OTP:-} in
    "")
        debian=$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release 2>/dev/null)
        name=here
        ;;
    27) debian=trixie name=27 ;;
    *) echo "mnesia-suites: no distribution of Debian is known with $ATS_OTP" >&2 && exit 1 ;;
esac
dir=${ATS_MNESIA_DIR:-_build/mnesia-suites}/$name
mkdir -p "$dir" && dir=$(cd "$dir" && pwd) || exit 1
source=$dir/mnesia
project=$PWD
release=$project/_build/default/lib/ats/ebin
listed=$project/test/mnesia/cases.txt
. scripts/others/debian.sh
. scripts/others/nodes.sh

# ----- cases -----

default_cases() {
    case $mode in
        ext) ext_cases ;;
        types) echo mnesia_index_plugin_test mnesia_index_plugin_disc_test $all_suites ;;
        disc) echo mnesia_index_plugin_test $all_suites ;;
        base) echo mnesia_index_plugin_test mnesia_frag_test $all_suites ;;
    esac
}

all_suites="mnesia_install_test mnesia_nice_coverage_test mnesia_qlc_test mnesia_registry_test
    mnesia_examples_test mnesia_majority_test mnesia_config_test mnesia_evil_coverage_test
    mnesia_atomicity_test mnesia_isolation_test mnesia_durability_test mnesia_recovery_test
    mnesia_consistency_test"

# Those that name a type of the other module, or a function of the suite that does.
ext_cases() {
    awk '/^[a-z][A-Za-z0-9_]*\(Config\)/ { split($0, word, "("); name = word[1] }
        name && /ext_(ets|dets|ram_copies|disc_only_copies)/ {
            suite = FILENAME
            gsub(/^.*\/|\.erl$/, "", suite)
            if (!done[suite name]++) print suite ":" name
        }' "$tests"/mnesia_*_test.erl
}

# ----- sources -----

compile_mnesia() {
    ebin=$dir/ebin
    [ ! -d "$ebin" ] || return 0
    rm -rf "$ebin.new"
    mkdir "$ebin.new"
    version=$(sed -n 's/^MNESIA_VSN *= *//p' "$source/vsn.mk")
    for file in "$source"/src/*.erl; do
        remove_documentation <"$file" >"$ebin.new/$(basename "$file")"
    done
    erlc -Ddebug -I "$source/src" -o "$ebin.new" "$ebin.new"/*.erl || exit 1
    sed "s/%VSN%/$version/" "$source/src/mnesia.app.src" >"$ebin.new/mnesia.app"
    mv "$ebin.new" "$ebin"
}

# Attributes and strings that Erlang/OTP 25 does not know.
remove_documentation() {
    awk '/^-(module)?doc/ && !inside { inside = /"""/ ? "^\"\"\"" : "\\.$"
            if (/"""/ || !/\.$/) next
            inside = ""
            next
        }
        inside { if ($0 ~ inside) inside = ""; next }
        { print }'
}

# The suites, the module of external types, and what runs the cases.
compile_suites() {
    tests=$dir/suites
    types=$dir/ours
    type_source=$project/test/mnesia/ext_test.erl
    replace=true
    case $mode in
        types) tests=$dir/types replace=replace_types ;;
        disc) tests=$dir/disc replace=replace_types ;;
        base) types=$dir/theirs type_source=$source/test/ext_test.erl ;;
    esac
    rm -rf "$types"
    mkdir "$types"
    compile "$types" "$type_source" "$project/test/mnesia/ats_mnesia_cases.erl"
    rm -rf "$tests.new"
    mkdir -p "$tests" "$tests.new"
    cp "$source"/test/*.?rl "$source"/doc/src/*.?rl "$tests.new"
    rm "$tests.new/ext_test.erl"
    $replace "$tests.new"
    # shellcheck disable=SC2046 # a list of words
    set -- $(changed_sources)
    [ $# -eq 0 ] || (cd "$tests" && compile "$tests" "$@") || exit 1
    rm -rf "$tests.new"
}

# The names of sources that are not compiled as they are now, copied to where they will be.
changed_sources() {
    cmp -s "$tests.new/mnesia_test_lib.hrl" "$tests/mnesia_test_lib.hrl" || rm -f "$tests"/*.beam
    cp "$tests.new"/*.hrl "$tests"
    for file in "$tests.new"/*.erl; do
        compiled=$tests/$(basename "$file" .erl)
        [ -f "$compiled.beam" ] && cmp -s "$file" "$compiled.erl" && continue
        rm -f "$compiled.beam"
        cp "$file" "$compiled.erl"
        basename "$compiled.erl"
    done
}

# It looks for a type of mnesia, and reports to common_test, which need not be there.
compile_tpcb() {
    mkdir -p "$dir/tpcb"
    sed -E -e 's/length\(mnesia:table_info\(Tab, disc_only_copies\)\)/1/' \
        -e 's/^-include_lib\("common_test.*/-record(event, {name, data})./' \
        "$source/examples/mnesia_tpcb.erl" >"$dir/tpcb/mnesia_tpcb.erl"
    compile "$dir/tpcb" "$dir/tpcb/mnesia_tpcb.erl"
    echo "$dir/tpcb"
}

# Suites have more code than mnesia; to optimise it would take longer than to run it.
compile() {
    folder=$1
    shift
    erlc +no_ssa_opt +nowarn_deprecated_function -pa "$dir/ebin" -pa "$release" -I "$source/test" \
        -o "$folder" "$@" >"$folder/compile.log" 2>&1 || { cat "$folder/compile.log"; exit 1; }
}

# The table `schema` stays as it is: it has mnesia's own types only. Types of tables are told as
# `{ext, Alias, Module}`, which is made the alias again where a case compares it. The access context
# `ets` is for mnesia's own tables in memory; another one without locks takes its place. Tables that
# say nothing of their type are in memory, of mnesia's type, and so is a copy for a node that is
# down. What another node writes without a transaction is there a moment later, and so is a
# checkpoint of a table that was loaded.
replace_types() {
    case $mode in
        types)
            in_memory=ats_ram
            renamed="s/\bram_copies\b/ats_ram/g; s/\bdisc_only_copies\b/dats_disc/g"
            ;;
        disc) in_memory=ats_disc renamed="s/\bdisc_copies\b/ats_disc/g" ;;
    esac
    header=$1/mnesia_test_lib.hrl
    ours="{ats_ram, ats_mnesia}, {ats_disc, ats_mnesia}, {dats_disc, ats_mnesia}"
    sed -i "s/{backend_types, \[/&$ours, /" "$header"
    told=$(sed -n 's/^-define(BACKEND, \(.*\))\.$/\1/p' "$header")
    nodes='\[[^],]*\]|[A-Z][a-zA-Z]*'
    sed -i -E \
        -e "/\bschema,/!{$renamed;}" \
        -e "s/mnesia:create_schema\(($nodes)\)/mnesia:create_schema(\1, $told)/" \
        -e 's/rpc:call\([^()]*(storage_type|where_to_commit)\}?\]\)/ats_mnesia_cases:plain(&)/' \
        -e 's/\bmnesia:ets\(/mnesia:async_dirty(/; s/ctivity\(ets\b/ctivity(async_dirty/' \
        -e 's/Key \/= included_applications/&, Key \/= schema/' \
        -e '/\[schema, where_to_commit\]/s/match\(W2C,/match([{_, disc_copies} | _],/' \
        -e 's/add_table_copy\(tab1, N2, ats_ram\)/add_table_copy(tab1, N2, ram_copies)/' \
        -e 's/start_mnesia\(\[Node1\],\[Tab\]\),/& timer:sleep(300),/' \
        -e '/^verify_tab/,/^$/s/\?match\(\[\{itrpt,a,a\}\], rpc:call\(Node1/timer:sleep(300), &/' \
        "$1"/mnesia_*_test.erl "$1"/mnesia_evil_backup.erl "$1"/mnesia_test_lib.erl \
        "$1"/mnesia_meter.erl "$1"/mnesia_tpcb.erl
    both='(&++mnesia:table_info(Tab, \1_copies))'
    sed -i -E "s/mnesia:table_info\(Tab, ats_(ram|disc)\)/$both/" "$1/mnesia_test_lib.erl"
    # A suite that says nothing of types, once with each.
    sed 's/^-module(.*/-module(mnesia_index_plugin_disc_test)./
        s/mnesia:create_table([a-z0-9]*, \[/&{dats_disc, [node()]}, /' \
        "$source/test/mnesia_index_plugin_test.erl" >"$1/mnesia_index_plugin_disc_test.erl"
    sed -i "s/mnesia:create_table([a-z0-9]*, \[/&{$in_memory, [node()]}, /" \
        "$1/mnesia_index_plugin_test.erl"
    # Nodes without a schema on disk make one by the parameter of mnesia.
    sed "s/^ *{mod,/{env, [{schema, $told}]}, &/" "$dir/ebin/mnesia.app" >"$tests/mnesia.app"
}

# ----- running -----

run() {
    rm -rf "$dir/run_$mode"
    mkdir "$dir/run_$mode" && cd "$dir/run_$mode" || exit 1
    start_node -name "ats_mnesia_$$_@127.0.0.1" \
        -pa "$release" -pa "$dir/ebin" -pa "$tests" -pa "$types" \
        -run ats_mnesia_cases main "$mode" "$listed" "$@"
    wait_for_nodes
}

get_source erlang "$debian" "$source" lib/mnesia
[ "$mode" != tpcb ] || { compile_tpcb; exit; }
compile_mnesia
compile_suites
[ $# -gt 0 ] || set -- $(default_cases)
start_epmd
run "$@"

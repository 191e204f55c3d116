#!/bin/sh
# Counts comments of documentation that begin with a question word, which a reader has to decode:
# "Whether it is over" instead of "Returns `true` if it is over". Prints the numbers of each crate,
# of the Erlang modules, of benchmarks and tools, and of all. Fails at more than 2 in 100, and at
# any "Whether".
set -eu
cd "$(dirname "$0")/.."
find crates/*/src bench demo fuzz tools src apps/*/src -name '*.rs' -o -name '*.erl' |
    sort | xargs awk '
BEGIN {
    question = "What|Whether|Where|How|When|Why|Which|Whose|Who|As|Of which|By which"
    question = "^(" question "|So (many|long|much|often))( |,|$)"
}
function look(text) {
    blocks++
    split(FILENAME, folders, "/")
    part = folders[1] == "crates" ? folders[2] : folders[1]
    blocks_of[part]++
    if (text ~ question) {
        print FILENAME ":" FNR ": " text
        bad++
        bad_of[part]++
        if (text ~ /^Whether /) whether++
    }
}
FNR == 1 { before = "" }
{
    line = $0
    sub(/^[ \t]+/, "", line)
    kind = line ~ /^\/\/\/( |$)/ ? "///" : line ~ /^\/\/!( |$)/ ? "//!" : ""
    if (kind != "" && kind != before) look(substr(line, 5))
    if (line ~ /^%% @doc /) look(substr(line, 9))
    before = kind
}
END {
    for (part in blocks_of) printf "%s: %d of %d\n", part, bad_of[part], blocks_of[part]
    printf "%d of %d comments begin with a question word\n", bad, blocks
    exit (bad * 50 > blocks || whether > 0)
}'

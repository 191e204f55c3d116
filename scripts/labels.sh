#!/bin/sh
# Checks the labels of invariants, such as EPOCH-3. The list item or the bold word that begins with
# a label defines it: once, in the file of the module whose name the label has. All others cite it.
# Fails if a label is defined twice, or elsewhere, or is cited but not defined.
# scripts/labels.sh FOLDER checks the files of another folder.
set -eu
cd "${1:-$(dirname "$0")/..}"
find . \( -name target -o -name _build -o -name deps -o -name .git \) -prune -o -type f \
    \( -name '*.rs' -o -name '*.erl' -o -name '*.hrl' -o -name '*.md' \) -print |
    sort | xargs awk '
# The name of the module that a file is: of its folder, if the file is named for what it is there.
function module_of(path) {
    sub(/(\/src\/lib|\/mod)\.rs$/, "", path)
    sub(/\.[a-z]+$/, "", path)
    sub(/.*\//, "", path)
    sub(/^ats-/, "", path)
    return toupper(path)
}
function fail(place, label, text) {
    print place ": " label " " text
    bad++
}
# Code of Erlang subtracts numbers from names. Names of others that look like labels are taken out.
FILENAME ~ /\.[eh]rl$/ && !/^[ \t]*%/ { next }
{
    line = $0
    gsub(/(UTF|CRC|SHA|ISO|SSE)-[0-9]+/, "", line)
    begin = match(line, /^[ \t]*\/\/[\/!] - [A-Z]/) ? RSTART + RLENGTH - 1 : 0
    done = 0
    while (match(line, /[A-Z][A-Z_]*-[0-9]+/)) {
        at = done + RSTART
        label = substr(line, RSTART, RLENGTH)
        before = RSTART == 1 ? "" : substr(line, RSTART - 1, 1)
        behind = substr(line, RSTART + RLENGTH)
        bold = RSTART > 2 && substr(line, RSTART - 2, 2) == "**" && behind ~ /^\*\*/
        done += RSTART + RLENGTH - 1
        line = behind
        if (before ~ /[A-Za-z0-9_?-]/ || behind ~ /^[A-Za-z_-]/) continue
        place = FILENAME ":" FNR
        if (!bold && !(at == begin && behind ~ /^\. /)) {
            cited[++citations] = label
            where[citations] = place
        } else if (label in defined) {
            fail(place, label, "is defined at " defined[label] ", too")
        } else {
            defined[label] = place
            labels++
            prefix = label
            sub(/-[0-9]+$/, "", prefix)
            if (prefix != module_of(FILENAME)) {
                fail(place, label, "is not named after its module, " module_of(FILENAME))
            }
        }
    }
}
END {
    for (i = 1; i <= citations; i++) {
        if (!(cited[i] in defined)) fail(where[i], cited[i], "is defined nowhere")
    }
    printf "%d labels, cited %d times: %d are wrong\n", labels, citations, bad
    exit (bad > 0)
}'

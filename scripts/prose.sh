#!/bin/sh
# Checks the wording of comments: how blocks of comment lines begin, and the noun "what". Prints for
# each folder its blocks, those that begin with a bad first word, and those with the noun. Fails at
#
# - a bad first word outside of tests, and more than five of them in the tests of a folder;
# - more than one block in 40 with the noun, in tests one in 20;
# - a word that is no longer used.
#
# LIMITS has exceptions, for folders that are still to be mended: the folder, its bad first words
# and its blocks with the noun that are allowed. Delete a line, or lower its numbers, when the
# folder is mended. Tests inside of files of `src` count as the folder that they are in.
# scripts/prose.sh -v [FOLDER...] prints each block that is counted, of these folders only.
set -eu
cd "$(dirname "$0")/.."

LIMITS='
crates/ats 81 166
crates/ats-cli 9 20
crates/ats-cli/tests 5 3
crates/ats-derive 0 3
crates/ats-disk 172 273
crates/ats-disk/tests 81 119
crates/ats-match 39 46
crates/ats-match/tests 8 8
crates/ats-mem 105 216
crates/ats-mem/tests 20 56
crates/ats-merge 9 6
crates/ats-merge/tests 4 2
crates/ats-nif 59 133
crates/ats-rivals 32 63
crates/ats-rivals/tests 3 9
crates/ats-store 3 20
crates/ats-sync 30 69
crates/ats-sync/tests 4 4
crates/ats-term 25 77
crates/ats-term/tests 8 17
crates/ats/tests 28 42
'

# A comment that begins with one of these has no subject yet: "Whether it is over" instead of
# "Returns `true` if it is over".
FIRST='Of As To For That Those It Its None What Whatever Where In By With This These They Them Who
Whose Which How When Whether If While At From On So There Here Not No'

# Names of the past, and the words that took their place; see docs/inside/renames.md.
GONE='doomed:obsolete lull:idle politely:non-blocking restless:stress planted:injected bell:wake-up'

verbose=0
if [ "${1:-}" = -v ]; then
    verbose=1
    shift
fi
[ $# -gt 0 ] || set -- crates src apps lib include bench demo examples tools fuzz test
find "$@" \( -name target -o -name _build -o -name deps \) -prune -o -type f \
    \( -name '*.rs' -o -name '*.erl' -o -name '*.hrl' \) -print |
    sort | LC_ALL=C xargs awk -v verbose="$verbose" -v limits="$(echo $LIMITS)" \
    -v first="$(echo $FIRST)" -v gone="$(echo $GONE)" '
# The folder that a file counts for: a crate, or two levels of all others; tests on their own.
function part_of(path,    folders, part) {
    split(path, folders, "/")
    part = folders[1] "/" folders[2]
    if (folders[2] ~ /\./) part = folders[1]
    if (folders[1] != "test" && path ~ /\/tests?(\/|\.rs$)/) part = part "/tests"
    return part
}
# Counts a block when it is over.
function look(    word, name) {
    if (text == "") return
    sub(/^ *([-=]+ *)?(@(doc|private) +)*/, "", text)
    # Code, in Rust and in edoc.
    gsub(/`[^`\047]*[`\047]/, "x", text)
    if (length(text) > 8) {
        blocks[part]++
        word = text
        sub(/[^A-Za-z].*/, "", word)
        if (word in is_bad) count(bad, "first word")
        if (text ~ /(^|[^A-Za-z])[Ww]hat(ever)?([^A-Za-z_]|$)/) count(nouns, "what")
        for (name in new_word)
            if (text ~ "(^|[^A-Za-z])" name "([^A-Za-z]|$)") {
                print place ": \"" name "\" is now \"" new_word[name] "\""
                failed++
            }
    }
    text = ""
}
function count(counts, cause) {
    counts[part]++
    if (verbose) print place ": " cause ": " substr(text, 1, 120)
}
BEGIN {
    n = split(first, words)
    for (i = 1; i <= n; i++) is_bad[words[i]]
    n = split(gone, words)
    for (i = 1; i <= n; i++) {
        split(words[i], pair, ":")
        new_word[pair[1]] = pair[2]
    }
    n = split(limits, words)
    for (i = 1; i < n; i += 3) {
        most_bad[words[i]] = words[i + 1]
        most_nouns[words[i]] = words[i + 2]
    }
}
FNR == 1 {
    look()
    part = part_of(FILENAME)
    kind = ""
}
{
    line = $0
    sub(/^[ \t]+/, "", line)
    before = kind
    kind = match(line, /^(\/\/[\/!]?|%+)/) ? substr(line, 1, RLENGTH) : ""
    if (kind != before) look()
    if (kind == "") next
    if (text == "") place = FILENAME ":" FNR
    text = text " " substr(line, length(kind) + 1)
}
END {
    look()
    for (part in blocks) {
        tests = part ~ /^test\/|\/tests$/
        allowed = part in most_bad ? most_bad[part] : tests ? 5 : 0
        allowed_nouns = int(blocks[part] / (tests ? 20 : 40))
        if (part in most_nouns) allowed_nouns = most_nouns[part]
        wrong = bad[part] > allowed || nouns[part] > allowed_nouns
        failed += wrong
        line = sprintf("%s: %d blocks, %d bad first words, %d with the noun \"what\"", part,
            blocks[part], bad[part], nouns[part])
        if (wrong) line = line ", which is more than " allowed " and " allowed_nouns
        print line | "sort"
        all += blocks[part]
        all_bad += bad[part]
        all_nouns += nouns[part]
    }
    close("sort")
    printf "all: %d blocks, %d bad first words, %d with the noun \"what\"\n",
        all, all_bad, all_nouns
    exit (failed > 0)
}'

#!/bin/sh
# Checks the text of the project: comments, pages and scripts, without a build.
#
#   scripts/text.sh [-v] [CHECK] [FOLDER]
#
# CHECK is prose, labels, lines or links; without one all four run, even if one fails. FOLDER is
# another copy of the project. The script fails if a check fails. -v lists the comments that the
# check of prose counts, each with its place.
set -u

# ----- settings of the check of prose -----

# A comment that begins with one of these has no subject yet: "Whether it is over" instead of
# "Returns `true` if it is over".
FIRST='Of As To For That Those It Its None What Whatever Where In By With This These They Them Who
Whose Which How When Whether If While At From On So There Here Not No'

# Old words, and the terms of the field that replace them.
GONE='doomed:obsolete lull:idle politely:non-blocking restless:stress planted:injected bell:wake-up
cutting:reclaiming'

# ----- files -----

# Prints the files of folders, sorted, whose names match: find_files FOLDER... -- TEST...
find_files() {
    folders=""
    while [ "$1" != -- ]; do
        folders="$folders $1"
        shift
    done
    shift
    # shellcheck disable=SC2086 # A list of words.
    find $folders \( -name target -o -name _build -o -name deps -o -name .git \) -prune -o \
        -type f \( "$@" \) -print | sort
}

# ----- checks -----

# Checks the wording of comments: how blocks of comment lines begin, and the noun "what". Prints for
# each folder its blocks, those that begin with a bad first word, and those with the noun. Fails at
#
# - a bad first word outside of tests, and more than five of them in the tests of a folder;
# - more than one block in 40 with the noun, in tests one in 20;
# - a word that is no longer used.
#
# Tests inside of files of `src` count as the folder that they are in.
prose() {
    written=""
    for folder in crates src apps lib include bench demo examples tools fuzz test; do
        [ ! -d "$folder" ] || written="$written $folder"
    done
    # shellcheck disable=SC2086 # A list of words.
    find_files ${written:-.} -- -name '*.rs' -o -name '*.erl' -o -name '*.hrl' |
        xargs awk -v verbose="$verbose" -v first="$(echo $FIRST)" \
            -v gone="$(echo $GONE)" '
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
        allowed_nouns = int(blocks[part] / 40)
        wrong = bad[part] > 0 || nouns[part] > allowed_nouns
        failed += wrong
        line = sprintf("%s: %d blocks, %d bad first words, %d with the noun \"what\"", part,
            blocks[part], bad[part], nouns[part])
        if (wrong) line = line ", which is more than 0 and " allowed_nouns
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
}

# Checks the labels of invariants, such as EPOCH-3. The list item or the bold word that begins with
# a label defines it: once, in the file of the module whose name the label has. All others cite it.
# Fails if a label is defined twice, or elsewhere, or is cited but not defined.
labels() {
    find_files . -- -name '*.rs' -o -name '*.erl' -o -name '*.hrl' -o -name '*.md' |
        xargs awk '
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
}

# Checks that no line is longer than 100 characters. Tables cannot be broken, and drawings stand
# between fences; lines with addresses may be longer, too. Fails if another line is.
lines() {
    find_files . -- -name '*.rs' -o -name '*.erl' -o -name '*.hrl' -o -name '*.sh' -o -name '*.md' |
        xargs awk '
FNR == 1 { fenced = 0 }
{
    text = $0
    sub(/^[ \t]*(\/\/[\/!]?|%+)?[ \t]*/, "", text)
}
# In Erlang three quotes end what three backquotes begin.
FILENAME !~ /\.[eh]rl$/ && text ~ /^(```|~~~)/ { fenced = !fenced }
FILENAME ~ /\.[eh]rl$/ && text ~ /```/ { fenced = 1 }
FILENAME ~ /\.[eh]rl$/ && text ~ /\047\047\047/ { fenced = 0 }
length($0) > 100 && !fenced && text !~ /^\|/ && text !~ /:\/\// {
    line = $0
    # Bytes that continue a character are none of their own.
    gsub(/[\200-\277]/, "", line)
    if (length(line) > 100) {
        print FILENAME ":" FNR ": " length(line) " characters"
        bad++
    }
}
END {
    printf "%d lines are longer than 100 characters\n", bad
    exit (bad > 0)
}'
}

# Checks the links of all Markdown files: a file that is linked exists, and so does the heading
# behind a "#". Addresses with a scheme are not looked at. Fails if a link leads nowhere.
links() {
    find_files . -- -name '*.md' | xargs awk '
# The name that a heading gets: that of GitHub.
function name_of(heading) {
    gsub(/\]\([^)]*\)/, "", heading)
    heading = tolower(heading)
    gsub(/[^a-z0-9 _\200-\377-]/, "", heading)
    gsub(/ /, "-", heading)
    return heading
}
# A path without "." and "..".
function plain(path,    parts, kept, i, n, count) {
    n = split(path, parts, "/")
    for (i = 1; i <= n; i++) {
        if (parts[i] == ".." && count) count--
        else if (parts[i] != "." && parts[i] != "") kept[++count] = parts[i]
    }
    path = "."
    for (i = 1; i <= count; i++) path = path "/" kept[i]
    return path
}
FNR == 1 { fenced = 0 }
/^[ \t]*(```|~~~)/ { fenced = !fenced }
fenced { next }
/^#+ / {
    heading = $0
    sub(/^#+ +/, "", heading)
    name = FILENAME "#" name_of(heading)
    if (name in seen) name = name "-" seen[name]++
    else seen[name] = 1
    headings[name] = 1
}
{
    line = $0
    gsub(/`[^`]*`/, "", line)
    while (match(line, /\]\([^) ]*/)) {
        link = substr(line, RSTART + 2, RLENGTH - 2)
        line = substr(line, RSTART + RLENGTH)
        if (link ~ /^[a-z]+:/) continue
        where[++links] = FILENAME ":" FNR
        from[links] = FILENAME
        to[links] = link
    }
}
END {
    for (i = 1; i <= links; i++) {
        path = to[i]
        sub(/#.*/, "", path)
        folder = from[i]
        sub(/[^\/]*$/, "", folder)
        path = path == "" ? from[i] : plain(folder path)
        anchor = index(to[i], "#") ? substr(to[i], index(to[i], "#")) : ""
        if (!(path in there)) there[path] = system("test -e \"" path "\"") == 0
        if (!there[path] || (anchor != "" && !((path anchor) in headings))) {
            print where[i] ": leads nowhere: " to[i]
            bad++
        }
    }
    printf "%d of %d links lead nowhere\n", bad, links
    exit (bad > 0)
}'
}

# ----- the call -----

# Bytes are compared, and patterns match bytes, on every machine.
export LC_ALL=C
verbose=0
if [ "${1:-}" = -v ]; then
    verbose=1
    shift
fi
checks="prose labels lines links"
case ${1:-} in
    prose | labels | lines | links)
        checks=$1
        shift
        ;;
esac
cd "${1:-$(dirname "$0")/..}" || exit

failed=""
for check in $checks; do
    "$check" || failed="$failed $check"
done
[ -z "$failed" ] || {
    echo "not in order:$failed" >&2
    exit 1
}

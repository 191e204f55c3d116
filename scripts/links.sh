#!/bin/sh
# Checks the links of all Markdown files: a file that is linked exists, and so does the heading
# behind a "#". Addresses with a scheme are not looked at. Fails if a link leads nowhere.
# scripts/links.sh FOLDER checks the files of another folder.
set -eu
cd "${1:-$(dirname "$0")/..}"
find . \( -name target -o -name _build -o -name deps -o -name .git \) -prune -o \
    -name '*.md' -print | sort | xargs awk '
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

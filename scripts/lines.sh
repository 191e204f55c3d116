#!/bin/sh
# Checks that no line is longer than 100 characters. Tables cannot be broken, and drawings stand
# between fences; lines with addresses may be longer, too. Fails if another line is.
# scripts/lines.sh FOLDER checks the files of another folder.
set -eu
cd "${1:-$(dirname "$0")/..}"
find . \( -name target -o -name _build -o -name deps -o -name .git \) -prune -o -type f \
    \( -name '*.rs' -o -name '*.erl' -o -name '*.hrl' -o -name '*.sh' -o -name '*.md' \) -print |
    sort | LC_ALL=C xargs awk '
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

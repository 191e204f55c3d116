#!/bin/sh
# Checks that a precompiled library needs nothing that its target may not have.
#
#   scripts/library-needs.sh LIBRARY TARGET
#
# TARGET is a target as Rust calls it. A library for glibc may need the version ATS_GLIBC of it, or
# older ones; the default is 2.31. One for musl may not need libgcc_s, which small systems do not
# have. Either is kept in memory once it is there. Libraries of other systems are not looked at.
set -eu

library=$1
target=$2
glibc=${ATS_GLIBC:-2.31}

case $target in
    *-linux-gnu*) allowed='lib(c|m|pthread|dl|rt|gcc_s)\.so\.[0-9]+|ld-linux[a-z0-9_.-]*' ;;
    *-linux-musl*) allowed='libc\.so|libc\.musl-[a-z0-9_]+\.so\.1' ;;
    *)
        echo "library-needs.sh: nothing is known of $target" >&2
        exit 0
        ;;
esac

status=0
bad() {
    echo "library-needs.sh: $library $*" >&2
    status=1
}

dynamic=$(LC_ALL=C readelf --wide --dynamic "$library")
for needed in $(echo "$dynamic" | sed -n 's/.*(NEEDED).*\[\(.*\)\]$/\1/p'); do
    echo "$needed" | grep -qxE "$allowed" || bad "needs $needed"
done
echo "$dynamic" | grep -q '(FLAGS_1).*NODELETE' || bad "is not marked NODELETE"
LC_ALL=C readelf --wide --dyn-syms "$library" | grep -qE ' [1-9][0-9]* nif_init$' ||
    bad "has no function nif_init"

newest=$(LC_ALL=C readelf --wide --version-info "$library" |
    sed -n 's/.*Name: GLIBC_\([0-9.]*\) .*/\1/p' | sort -uV | tail -n 1)
case $target in
    *-linux-musl*) [ -z "$newest" ] || bad "needs glibc $newest" ;;
    *)
        [ "$(printf '%s\n' "$newest" "$glibc" | sort -V | tail -n 1)" = "$glibc" ] ||
            bad "needs glibc $newest, which is newer than $glibc"
        ;;
esac
exit $status

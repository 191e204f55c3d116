#!/bin/sh
# Builds the library for musl, looks at what it needs, and loads it with the loader of musl.
#
#   scripts/others/musl.sh
#
# A program of C is the virtual machine: it has functions of the names that the library asks the
# virtual machine for, and asks the library for its description, as the virtual machine does.
#
# It needs musl-gcc (Debian: musl-tools) and `rustup target add ARCHITECTURE-unknown-linux-musl`. If
# one of them is missing the last line says "NOT RUN: reason" and the status is 77.
set -eu
cd "$(dirname "$0")/../.."

not_run() {
    echo "NOT RUN: $*"
    exit 77
}

target=$(uname -m)-unknown-linux-musl
command -v musl-gcc >/dev/null 2>&1 || not_run "musl: there is no musl-gcc (Debian: musl-tools)"
[ -d "$(rustc --print target-libdir --target "$target" 2>/dev/null)" ] ||
    not_run "musl: Rust has no standard library for $target (rustup target add)"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
ATS_PROFILE=forcing ./scripts/precompile.sh --no-archive "$target" >"$work/path" || {
    echo "not ok: the library for musl needs nothing but musl"
    exit 1
}
echo "ok: the library for musl needs nothing but musl"
library=$(cat "$work/path")

{
    nm --dynamic --undefined-only "$library" |
        sed -n 's/.* U \(enif_[a-z0-9_]*\)$/void \1(void) { abort(); }/p'
    cat <<'END'
int main(int arguments, char **argument) {
    void *library = dlopen(argument[1], RTLD_NOW);
    struct { int major, minor; const char *name; int functions; } *(*describe)(void);
    if (!library || !(describe = dlsym(library, "nif_init"))) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    printf("%s: %d functions\n", describe()->name, describe()->functions);
    return arguments != 2 || strcmp(describe()->name, "ats_nif") || describe()->functions < 100;
}
END
} >"$work/functions.c"
printf '#include <%s>\n' dlfcn.h stdio.h stdlib.h string.h | cat - "$work/functions.c" >"$work/vm.c"
if musl-gcc -w -rdynamic -o "$work/vm" "$work/vm.c" -ldl &&
    "$work/vm" "$library"; then
    echo "ok: musl loads the library"
else
    echo "not ok: musl loads the library"
    exit 1
fi

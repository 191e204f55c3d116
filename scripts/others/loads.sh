#!/bin/sh
# Loads a library of ats without an Erlang, for systems other than this one.
#
#   scripts/others/loads.sh LIBRARY COMPILER [RUNNER...]
#
# A program of C is the virtual machine: it has functions of the names that the library asks the
# virtual machine for, and asks the library for its description, as the virtual machine does. None
# of the functions of the library is called. COMPILER compiles that program for the system of the
# library, and RUNNER is a command that runs it, for example
# `qemu-aarch64-static -L /usr/aarch64-linux-gnu`.
set -eu
library=$1
compiler=$2
shift 2

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
{
    printf '#include <%s>\n' dlfcn.h stdio.h stdlib.h string.h
    LC_ALL=C readelf --wide --dyn-syms "$library" |
        sed -n 's/.* UND \(enif_[a-z0-9_]*\)$/void \1(void) { abort(); }/p'
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
} >"$work/vm.c"
"$compiler" -w -rdynamic -o "$work/vm" "$work/vm.c" -ldl
"$@" "$work/vm" "$library"

#!/bin/sh
# Runs common_test suites on Erlang/OTP 27 or 29, whatever release is installed here.
#
#   scripts/others/otp27.sh [SUITE...]     for example: scripts/others/otp27.sh ats_slices_SUITE
#   ATS_OTP=29 scripts/others/otp27.sh [SUITE...]
#
# Without a suite named, all run. The project has to be built (`make build`), and once more for its
# tests (`rebar3 as test compile`).
#
# Debian 13 has OTP 27, and the unstable distribution of Debian has 29. The few of its packages
# that Erlang needs are downloaded (apt checks their signatures) and unpacked into a folder; nothing
# is installed on this machine. The project is copied there and the Erlang code is compiled by that
# release, but the native libraries are those that were built here. Then the folder becomes the root
# of the tests. Where the kernel allows it they get namespaces of their own, so that no mount and no
# process is left behind.
#
#   ATS_OTP27_DIR     where the packages and the folder are kept; default _build/otp27
#   ATS_APT_OPTIONS   further options of apt-get; a mirror that has been frozen wants
#                     "-o Acquire::Check-Valid-Until=false"
#   ATS_...           whatever the suites understand
#
# If it cannot be done here the last line says "NOT RUN: reason" and the status is 77.
set -u
cd "$(dirname "$0")/../.."

release_of_otp=${ATS_OTP:-27}
case $release_of_otp in
    27) debian=trixie ;;
    29) debian=sid ;;
    *)
        echo "otp27: no distribution of Debian is known that has Erlang/OTP $release_of_otp" >&2
        exit 1
        ;;
esac

dir=${ATS_OTP27_DIR:-_build/otp$release_of_otp}
mkdir -p "$dir" && dir=$(cd "$dir" && pwd) || exit 1
root=$dir/root
release=_build/default/lib/ats
tested=_build/test/lib/ats/priv/ats_nif.so
target=${CARGO_TARGET_DIR:-$PWD/target}

# Of what common_test depends on, it needs these to run; the others would bring a web browser.
erlang="erlang-base erlang-common-test erlang-crypto erlang-dev erlang-mnesia erlang-proper
    erlang-proper-dev erlang-runtime-tools erlang-syntax-tools erlang-tools"
# Programs that the suites try `ats` on.
programs="erlang-parsetools erlang-snmp erlang-xmerl"
system="busybox-static libc6 libcap2 libgcc-s1 libsctp1 libssl3t64 libstdc++6 libsystemd0 libtinfo6
    libzstd1 zlib1g"

. scripts/others/debian.sh

# ----- the system -----

make_root() {
    # shellcheck disable=SC2086,SC2116 # lists of words, in one line
    packages=$(echo $erlang $programs $system)
    [ "$(cat "$root/packages" 2>/dev/null)" != "$packages" ] || return 0
    need_debian dpkg-deb tar
    rm -rf "$dir/debs" "$root.new"
    # shellcheck disable=SC2086 # a list of words
    download_from deb "$debian" "$dir/debs" download $packages ||
        not_run "the packages of Debian ($debian) cannot be downloaded"
    unpack || not_run "the packages of Debian ($debian) cannot be unpacked"
    echo "$packages" >"$root.new/packages"
    rm -rf "$root" "$dir/debs"
    mv "$root.new" "$root"
}

# The packages are unpacked and not installed, so what their scripts do has to be done here: the
# folders of Debian that are links, a shell, and the files of other packages that links lead to.
unpack() {
    mkdir -p "$root.new" && cd "$root.new" || return 1
    mkdir -p dev etc proc tmp usr/bin usr/lib usr/lib64 usr/sbin
    for folder in bin lib lib64 sbin; do
        ln -s "usr/$folder" "$folder"
    done
    for package in "$dir"/debs/*.deb; do
        dpkg-deb --fsys-tarfile "$package" |
            tar -x --no-same-owner --exclude=./usr/share/doc --exclude=./usr/share/man \
                --exclude=./usr/share/locale || return 1
    done
    for applet in $(usr/bin/busybox --list); do
        [ -e "usr/bin/$applet" ] || ln -s busybox "usr/bin/$applet"
    done
    echo "root:x:0:0:root:/tmp:/bin/sh" >etc/passwd
    echo "127.0.0.1 localhost $(uname -n)" >etc/hosts
    for script in usr/lib/erlang/lib/common_test-*/priv/*.js; do
        [ -e "$script" ] || { rm "$script" && : >"$script"; }
    done
    cd "$OLDPWD" || return 1
}

# ----- inside -----

# Which way there is to make a folder the root.
choose_way() {
    if unshare --mount --pid --fork --kill-child --map-root-user true 2>/dev/null; then
        way=namespaces
    elif [ "$(id -u)" -eq 0 ] && make_devices; then
        way=chroot
    else
        not_run "no namespaces may be made here (unshare), and only root can do without"
    fi
}

make_devices() {
    for device in null:3 zero:5 random:8 urandom:9; do
        [ -e "$root/dev/${device%:*}" ] ||
            mknod -m 666 "$root/dev/${device%:*}" c 1 "${device#*:}" || return 1
    done
}

# Runs a command with the folder as its root.
inside() {
    set -- env -u ROOTDIR -u BINDIR -u EMU -u PROGNAME -u ERL_LIBS -u ERL_FLAGS -u ERL_AFLAGS \
        -u ERL_ZFLAGS PATH=/usr/bin:/usr/sbin HOME=/tmp TMPDIR=/tmp LANG=C.UTF-8 "$@"
    case $way in
        namespaces)
            # shellcheck disable=SC2016 # expanded by the inner shell
            unshare --mount --pid --fork --kill-child --map-root-user sh -c '
                root=$1
                shift
                mount --rbind /dev "$root/dev" && mount -t proc proc "$root/proc" || exit 1
                # Not exec: the first process of the namespace has to wait for orphans.
                chroot "$root" "$@"' sh "$root" "$@"
            ;;
        chroot)
            chroot "$root" "$@"
            ;;
    esac
}

# ----- the project -----

copy_project() {
    [ -f "$release/ebin/ats.app" ] && [ -f priv/ats_nif.so ] && [ -f "$tested" ] || {
        echo "otp27: please run first: make build; rebar3 as test compile" >&2
        exit 1
    }
    rm -rf "$root/ats"
    mkdir -p "$root/ats/ebin" "$root/ats/logs" "$root/ats/priv" "$root/ats/release/priv"
    cp -R README.md docs src include test "$root/ats/"
    cp "$tested" "$root/ats/priv/"
    cp "$release/ebin/ats.app" "$root/ats/ebin/"
    [ ! -d "$release/doc" ] || cp -R "$release/doc" "$root/ats/"
    cp priv/ats_nif.so "$root/ats/release/priv/"
    cp -R "$release/ebin" "$root/ats/release/"
}

# The native library, and what was compiled here, must do there, too.
check_built_here() {
    output=$(inside erl -noinput -pa /ats/release/ebin -eval '
        T = ats:new(smoke, [ordered_set]),
        true = ats:insert(T, [{K, K} || K <- lists:seq(1, 1000)]),
        1000 = length(ats:tab2list(T)),
        io:put_chars(erlang:system_info(otp_release)),
        halt().' 2>&1)
    case $output in
        "$release_of_otp") echo "ok: what was built here works on Erlang/OTP $output" ;;
        *GLIBC_*) not_run "the library was built for a C library newer than that of $debian" ;;
        *)
            echo "$output"
            echo "not ok: what was built here works on Erlang/OTP $release_of_otp"
            exit 1
            ;;
    esac
}

# Compiles the application, the suites that run, and the modules that suites need. Those that run
# programs of others are for scripts/programs.sh, and need more of Erlang/OTP than is here.
compile() {
    # shellcheck disable=SC2046 # A list of files, whose names have no spaces.
    set -- $(cd "$root/ats" &&
            find test -name '*.erl' ! -name '*_SUITE.erl' ! -path 'test/programs/*'
        for suite; do (cd "$root/ats" && find test -name "$suite.erl"); done)
    inside sh -c 'cd /ats &&
        erlc -Werror -pa ebin +debug_info +warn_missing_spec +warn_export_vars -DFORCING \
            -I include \
            -o ebin src/*/*/*.erl src/*.erl src/follow/ats_follower.erl src/*/*.erl &&
        erlc -Werror +debug_info +nowarn_missing_spec -I include -pa /ats/ebin -o test "$@"' \
        sh "$@"
}

# The suite of terms wants a library that has functions for it, and cannot build it there.
build_term_nif() {
    CARGO_PROFILE_DEV_OPT_LEVEL=1 CARGO_PROFILE_DEV_DEBUG=0 \
        cargo build --locked -p ats-nif --features test-nifs --target-dir "$target" &&
        cp "$target/debug/libats_nif.so" "$root/ats/ats_term_nif.so"
}

run_suites() {
    inside env ATS_TERM_NIF=/ats/ats_term_nif ATS_RELEASE=/ats/release sh -c '
        cd /ats && exec erl -noinput -pa /ats/ebin /ats/test \
            -run ats_test_report main test logs "$@"' sh "$@"
}

make_root
choose_way
copy_project
check_built_here
[ $# -gt 0 ] || set -- $(find test -name '*_SUITE.erl' -exec basename {} .erl \;)
compile "$@" || exit 1
case " $* " in
    *" ats_term_SUITE "*) build_term_nif || exit 1 ;;
esac
run_suites "$@"

#!/bin/sh
# Makes sure that everything needed to build and test ats is on this machine.
#
# On Debian and its relatives missing Erlang packages are installed from the distribution; elsewhere
# the script says what is missing and fails. It never asks anything, changes nothing when nothing is
# missing, and may be run any number of times. Without Elixir a few tests cannot be run, which
# `scripts/test.sh` counts; so it is installed where that is possible, and not asked for elsewhere.
# `scripts/setup.sh release` treats the compilers for other systems in the same way.
set -eu

minimum_otp=25
minimum_rust=1.89

say() { echo "setup: $*"; }

fail() {
    echo "setup: $*" >&2
    exit 1
}

has_command() { command -v "$1" >/dev/null 2>&1; }

# Succeeds if Erlang finds an application, for example `has_application proper`.
has_application() {
    has_command erl && erl -noinput -boot start_clean -eval "
        case code:lib_dir($1) of {error, _} -> halt(1); _ -> halt(0) end." >/dev/null 2>&1
}

# `version_at_least 1.95.0 1.89` compares versions field by field.
version_at_least() {
    [ "$(printf '%s\n%s\n' "$2" "$1" | sort -V | head -n 1)" = "$2" ]
}

# Prints one Debian package a line for each thing that is missing.
missing_packages() {
    has_command erl || echo erlang-base
    has_command erlc || echo erlang-base
    [ -n "$(erl_nif_header)" ] || echo erlang-dev
    has_command rebar3 || echo rebar3
    has_command dialyzer || echo erlang-dialyzer
    has_application common_test || echo erlang-common-test
    has_application eunit || echo erlang-eunit
    has_application tools || echo erlang-tools
    has_application mnesia || echo erlang-mnesia
    has_application proper || echo erlang-proper-dev
    has_command cc || echo "gcc libc6-dev"
}

erl_nif_header() {
    has_command erl || return 0
    erl -noinput -boot start_clean -eval '
        Header = filename:join([code:root_dir(), "usr", "include", "erl_nif.h"]),
        [io:put_chars(Header) || filelib:is_regular(Header)],
        halt().' 2>/dev/null || true
}

as_root() {
    if [ "$(id -u)" -eq 0 ]; then
        "$@"
    else
        sudo "$@"
    fi
}

install_packages() {
    say "missing on this machine: $packages"
    has_command apt-get ||
        fail "please install Erlang/OTP $minimum_otp or newer with common_test, eunit, dialyzer" \
             "and its C headers, rebar3, PropEr (found by erl), and a C compiler (as linker)." \
             "What Debian calls it: $packages"
    [ "$(id -u)" -eq 0 ] || has_command sudo ||
        fail "installing packages needs root or sudo; as root run: apt-get install $packages"
    say "installing them from the packages of the distribution (apt-get), because ats is"
    say "built with rebar3 for Erlang/OTP and tested with common_test and PropEr"
    as_root env DEBIAN_FRONTEND=noninteractive apt-get update -q
    # shellcheck disable=SC2086 # a list of words
    as_root env DEBIAN_FRONTEND=noninteractive \
        apt-get install -q -y --no-install-recommends $packages
}

# Elixir works if it starts on this Erlang, and finds its build tool.
has_elixir() {
    has_command elixir && has_command mix && elixir -e ':ok' >/dev/null 2>&1
}

install_elixir() {
    say "Elixir is missing; the tests of ats on it need the package elixir"
    if ! has_command apt-get; then
        say "there is no apt-get here: these tests will not be run"
    elif [ "$(id -u)" -ne 0 ] && ! has_command sudo; then
        say "installing it needs root or sudo: these tests will not be run"
    elif as_root env DEBIAN_FRONTEND=noninteractive apt-get update -q &&
        as_root env DEBIAN_FRONTEND=noninteractive \
            apt-get install -q -y --no-install-recommends elixir && has_elixir; then
        say "Elixir is installed"
    else
        say "Elixir cannot be installed, or does not start: these tests will not be run"
    fi
}

# Other systems' compilers, and what runs their programs. A release goes without the libraries that
# they are missing for, and says so.
install_compilers() {
    wanted=""
    has_command musl-gcc || wanted="$wanted musl-tools"
    has_command aarch64-linux-gnu-gcc ||
        wanted="$wanted gcc-aarch64-linux-gnu libc6-dev-arm64-cross"
    has_command qemu-aarch64-static || has_command qemu-aarch64 || wanted="$wanted qemu-user-static"
    [ -n "$wanted" ] || return 0
    say "libraries for other systems need$wanted"
    if has_command apt-get && { [ "$(id -u)" -eq 0 ] || has_command sudo; }; then
        # shellcheck disable=SC2086 # a list of words
        as_root env DEBIAN_FRONTEND=noninteractive apt-get update -q &&
            as_root env DEBIAN_FRONTEND=noninteractive \
                apt-get install -q -y --no-install-recommends $wanted ||
            say "they cannot be installed"
    else
        say "this script cannot install them"
    fi
}

check_rust() {
    has_command cargo || fail "Rust is missing: the core of ats is written in it. Install Rust" \
        "$minimum_rust or newer from https://rustup.rs and run this again."
    rust_version=$(cargo --version | cut -d ' ' -f 2)
    version_at_least "$rust_version" "$minimum_rust" ||
        fail "Rust $rust_version is too old: ats needs $minimum_rust. Try: rustup update stable"
}

check_otp() {
    otp_version=$(erl -noinput -boot start_clean -eval '
        io:put_chars(erlang:system_info(otp_release)), halt().')
    version_at_least "$otp_version" "$minimum_otp" ||
        fail "Erlang/OTP $otp_version is too old: ats needs $minimum_otp or newer."
}

# rustup puts cargo here, and a shell started before that does not know.
if ! has_command cargo && [ -x "${HOME:-/root}/.cargo/bin/cargo" ]; then
    PATH="$PATH:${HOME:-/root}/.cargo/bin"
fi

check_rust
packages=$(missing_packages | sort -u | tr '\n' ' ')
if [ -n "$packages" ]; then
    install_packages
    packages=$(missing_packages | sort -u | tr '\n' ' ')
    [ -z "$packages" ] || fail "still missing after the installation: $packages"
fi
check_otp
has_elixir || install_elixir
[ "${1:-}" != release ] || install_compilers
rebar3_version=$(rebar3 --version 2>/dev/null | cut -d ' ' -f 1,2)
say "Erlang/OTP $otp_version, $rebar3_version, Rust $rust_version: complete"

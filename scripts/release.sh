#!/bin/sh
# Makes all that users of a release get, from the last commit, in _build/releases/ats-VERSION.
#
#   scripts/release.sh [SINCE]
#   scripts/release.sh --crates [FLAG...]    only packs the crates, with flags for `cargo package`
#
# SINCE is the revision of the last release, which the interfaces are compared with; by default the
# latest tag `v...' before the commit. Everything is built in a clone, so changes that are not
# committed have no part in it. What is there in the end:
#
#   ats-VERSION.tar              the package as hex has it, for rebar3 and Mix
#   ats_nif-*.tar.gz             precompiled libraries; checksums.term, which is in the package, too
#   ats-VERSION.cdx.json         what is in the libraries: crates, licenses and sums (CycloneDX)
#   crates                       the packages of the crates; `order' lists them, users last
#   doc/erlang, doc/rust         pages by EDoc and rustdoc
#   interfaces.txt               what has changed since the last release
#   SHA256SUMS                   sums of all files but those of `doc'
#
# The last lines name what could not be made here, and why. If a step fails, the others are tried
# all the same, and the folder is called `ats-VERSION.unfinished'.
#
#   ATS_TARGETS    the targets of precompiled libraries in the place of those below
#   ATS_GLIBC      the newest glibc that one may need; by default 2.31 with cargo-zigbuild, and that
#                  of this machine without
set -u
cd "$(dirname "$0")/.."

targets=${ATS_TARGETS:-x86_64-unknown-linux-gnu x86_64-unknown-linux-musl aarch64-unknown-linux-gnu}
# A release goes out with it, or not at all.
required=x86_64-unknown-linux-gnu
# Crates that are packed: those that other projects can name.
published="--workspace --exclude ats-nif --exclude ats-derive-cases"
# All features that users of the crate `ats` can choose.
features=ats/derive,ats/disk,ats/serde,ats/uuid,ats/chrono

# Each crate has all that its package needs, in the order in which they depend on each other.
# Without `--no-verify` each is built from its package.
pack_crates() {
    # shellcheck disable=SC2086 # A list of words.
    cargo package $published --locked "$@"
}

if [ "${1:-}" = --crates ]; then
    shift
    pack_crates "$@"
    exit
fi

# ----- the clone -----

fail() {
    echo "release.sh: $*" >&2
    exit 1
}

began=$(date +%s)
project=$PWD
CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-target}
case $CARGO_TARGET_DIR in /*) ;; *) CARGO_TARGET_DIR=$project/$CARGO_TARGET_DIR ;; esac
export CARGO_TARGET_DIR
# Little of what is built in the profile of development runs.
export CARGO_PROFILE_DEV_OPT_LEVEL=0 CARGO_PROFILE_DEV_DEBUG=0 CARGO_INCREMENTAL=0
# Variables for builds by users would change what is in the release.
unset ATS_NIF_PATH ATS_SKIP_NIF_BUILD ATS_PRECOMPILED_URL ATS_PRECOMPILED_CHECKSUMS ATS_PROFILE \
    ATS_CARGO_FLAGS CARGO_BUILD_TARGET

commit=$(git rev-parse --verify --quiet HEAD) || fail "the project is no clone by git"
uncommitted=$(git status --porcelain)
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH
since=${1:-$(git describe --tags --abbrev=0 --match 'v[0-9]*' "$commit^" 2>/dev/null)}

clone=$project/_build/releases/clone
rm -rf "$clone"
git clone -q --no-hardlinks "$project" "$clone" || exit
cd "$clone" || exit
version=$(sed -n 's/.*{vsn, "\(.*\)"}.*/\1/p' src/ats.app.src)
release=$project/_build/releases/ats-$version
made=$release.unfinished
rm -rf "$made"
mkdir -p "$made/crates" "$made/doc"

# ----- steps -----

failed=""
notes=""

note() {
    notes="$notes$*
"
}

step() {
    name=$1
    shift
    printf '\n== %s\n' "$name"
    before=$(date +%s)
    if "$@"; then
        echo "ok: $name ($(($(date +%s) - before)) s)"
    else
        echo "not ok: $name"
        failed="$failed $name,"
    fi
}

# Erlang, Elixir and Rust have the same version.
versions() {
    grep -qF "version: \"$version\"" mix.exs || { echo "mix.exs has another version" && return 1; }
    others=$(sed -n -e 's/^version = "\(.*\)"$/\1/p' \
        -e 's/^ats.* = { path = .*version = "\(.*\)" }$/\1/p' Cargo.toml | grep -vxF "$version")
    [ -z "$others" ] || { echo "Cargo.toml has the versions $others" && return 1; }
}

# Users learn from the CHANGELOG which functions are new and which are gone.
interfaces() {
    if [ -z "$since" ]; then
        note "not done: the comparison of interfaces, because no tag v... names an earlier" \
            "release (make release SINCE=REVISION)"
        return 0
    fi
    escript scripts/interfaces.escript "$since" "$commit" CHANGELOG.md >"$made/interfaces.txt" 2>&1
    status=$?
    cat "$made/interfaces.txt"
    return $status
}

library() {
    target=$1
    if ! why=$(scripts/precompile.sh --can "$target"); then
        # rustup installs the standard library if that is what is missing, and if it can.
        case $why in *"rustup target add"*) timeout 600 rustup target add "$target" ;; esac
        if ! why=$(scripts/precompile.sh --can "$target"); then
            echo "not made: $why"
            note "not made: the library for $target: $why"
            [ "$target" != "$required" ]
            return
        fi
    fi
    cargo-zigbuild --version >/dev/null 2>&1 ||
        export ATS_GLIBC="${ATS_GLIBC:-$(getconf GNU_LIBC_VERSION 2>/dev/null | cut -d ' ' -f 2)}"
    scripts/precompile.sh "$target" || return
    cp "_build/precompiled/ats_nif-$version-nif-"*"-$target.tar.gz" "$made" || return
    tar -xzf "$made/ats_nif-$version-nif-"*"-$target.tar.gz" -C _build || return
    needs=$(scripts/precompile.sh --needs _build/ats_nif.so "$target") || return
    loaded=$(runs_here "$target" _build/ats_nif.so)
    note "library for $target: $needs; $loaded"
    case $loaded in "cannot be loaded"*) return 1 ;; esac
}

# Has the loader of its system load a library, where that is possible. Prints what it did.
runs_here() {
    target=$1
    case $target in
        "$(uname -m)"-*-linux-gnu) set -- "$2" cc ;;
        "$(uname -m)"-*-linux-musl) set -- "$2" musl-gcc ;;
        *-linux-gnu)
            emulator=qemu-${target%%-*}-static
            set -- "$2" "${target%%-*}-linux-gnu-gcc" "$emulator" -L "/usr/${target%%-*}-linux-gnu"
            ;;
        *) echo "not loaded: this machine cannot run it" && return ;;
    esac
    for program in "$2" ${3:+"$3"}; do
        command -v "$program" >/dev/null 2>&1 ||
            { echo "not loaded: there is no $program here" && return; }
    done
    if said=$(scripts/others/loads.sh "$@" 2>&1); then
        echo "loaded${3:+ by $3}"
    else
        echo "cannot be loaded: $said"
    fi
}

package() {
    cp _build/precompiled/checksums.term "$made" && cmp checksums.term "$made/checksums.term" &&
        escript scripts/package.escript "$made/ats-$version.tar"
}

# A project without Rust takes the package, and names the folder of the release.
trial() (
    work=$clone/_build/trial
    rm -rf "$work"
    mkdir -p "$work/_checkouts/ats" "$work/bin" "$work/src"
    tar -xOf "$made/ats-$version.tar" contents.tar.gz | tar -xz -C "$work/_checkouts/ats" || return
    printf '#!/bin/sh\necho "cargo was called" >&2\nexit 1\n' >"$work/bin/cargo"
    chmod +x "$work/bin/cargo"
    echo '{deps, [ats]}.' >"$work/rebar.config"
    cat >"$work/src/shop.app.src" <<'END'
{application, shop,
 [{description, "A project without Rust"}, {vsn, "1"}, {applications, [kernel, stdlib, ats]}]}.
END
    cd "$work" || return
    unset CARGO_TARGET_DIR
    PATH=$work/bin:$PATH ATS_PRECOMPILED_URL=file://$made ATS_PRECOMPILED_CACHE=$work/cache \
        rebar3 compile || return
    said=$(erl -noinput -pa _build/default/checkouts/ats/ebin -eval '
        T = ats:new(t, []), true = ats:insert(T, {k, v}), io:format("~p", [ats:lookup(T, k)]),
        halt().')
    [ "$said" = "[{k,v}]" ] || { echo "a table in the trial said $said" && return 1; }
)

# An Erlang for aarch64 works with its library, under QEMU.
emulated() {
    archive=$(find "$made" -name 'ats_nif-*-aarch64-unknown-linux-gnu.tar.gz')
    [ -n "$archive" ] || return 0
    tar -xzf "$archive" -C _build || return
    ATS_AARCH64_DIR=$project/_build/aarch64 scripts/others/aarch64.sh _build/ats_nif.so \
        _build/trial/_build/default/checkouts/ats/ebin >_build/emulated.log 2>&1
    status=$?
    cat _build/emulated.log
    note "library for aarch64 in an Erlang: $(tail -n 1 _build/emulated.log)"
    [ "$status" -eq 0 ] || [ "$status" -eq 77 ]
}

crates() {
    rm -rf "$CARGO_TARGET_DIR/package"
    pack_crates --features "$features" >_build/crates.log 2>&1
    status=$?
    grep -E '^ *(Packaging|Packaged|Verifying|warning|error)' _build/crates.log
    [ "$status" -eq 0 ] || { cat _build/crates.log && return "$status"; }
    cp "$CARGO_TARGET_DIR/package/"*"-$version.crate" "$made/crates" &&
        sed -n 's/^ *Packaging \([^ ]*\) v.*/\1/p' _build/crates.log >"$made/crates/order"
}

bill() {
    # shellcheck disable=SC2086 # A list of words.
    escript scripts/sbom.escript "$made/ats-$version.cdx.json" $targets
}

rust_pages() {
    # shellcheck disable=SC2086 # A list of words.
    RUSTDOCFLAGS="-D warnings -A rustdoc::redundant_explicit_links" cargo doc $published --no-deps \
        --locked --features "$features" \
        --target-dir _build/rust --quiet && cp -R _build/rust/doc "$made/doc/rust"
}

# Those of modules for users, as scripts/chunks.sh.
erlang_pages() {
    public=$(find src -name '*.erl' -exec grep -L '^%% @private' {} + |
        sed 's/.*/"&"/' | paste -sd , -)
    erl -noinput -boot start_clean -eval "
        edoc:files([$public], [{preprocess, true}, {dir, \"_build/pages\"}]), halt()." || return
    cp -R _build/pages "$made/doc/erlang"
}

step "versions" versions
step "interfaces since ${since:-the last release}" interfaces
for target in $targets; do
    step "library for $target" library "$target"
done
step "package" package
step "a project without Rust" trial
step "an Erlang for aarch64" emulated
step "list of what is in the library" bill
step "pages of Erlang" erlang_pages
step "pages of Rust" rust_pages
step "packages of the crates" crates
(cd "$made" && find . -path ./doc -prune -o -type f ! -name SHA256SUMS -print | sort |
    sed 's/^/"/; s/$/"/' | xargs sha256sum >SHA256SUMS)

# ----- the end -----

cd "$project" || exit
if [ -z "$failed" ]; then
    rm -rf "$release" "$clone"
    mv "$made" "$release"
    made=$release
fi
printf '\n== ats %s, commit %s\n' "$version" "$commit"
(cd "$made" && du -ah --apparent-size --max-depth=1 | sort -k 2)
echo "made in $(($(date +%s) - began)) s: $made"
printf '%s' "$notes"
[ -z "$uncommitted" ] || echo "not in it: changes that are not committed"
if [ -n "$failed" ]; then
    echo "not in order:$failed see above"
    exit 1
fi

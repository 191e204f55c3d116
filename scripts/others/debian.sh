# Functions of scripts that get packages of Debian without installing anything. apt checks their
# signatures. The script that reads this file sets `dir`, the folder that apt may write to.
# shellcheck shell=sh disable=SC2154

keyring=/usr/share/keyrings/debian-archive-keyring.gpg

not_run() {
    echo "NOT RUN: $*"
    exit 77
}

# `need_debian COMMAND...` ends the script if a command is missing, or what apt wants.
need_debian() {
    for command in apt-get "$@"; do
        command -v "$command" >/dev/null 2>&1 || not_run "there is no $command here"
    done
    [ -r "$keyring" ] || not_run "there is no $keyring (package debian-archive-keyring)"
    mirror=$(mirror)
    [ -n "$mirror" ] || not_run "no repository of Debian is configured on this machine"
}

# The mirror from which the machine itself gets the packages of Debian.
mirror() {
    apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Component: main' |
        grep '/debian/*$' | head -n 1
}

# apt with a configuration and a state of its own, which know of no package that is installed.
apt() {
    # shellcheck disable=SC2086 # a list of words
    APT_CONFIG=$dir/apt/apt.conf apt-get -q ${ATS_APT_OPTIONS:-} "$@"
}

# `download_from KIND DISTRIBUTION FOLDER ARGUMENT...` calls apt in the folder; KIND is deb or
# deb-src.
download_from() {
    kind=$1
    distribution=$2
    folder=$3
    shift 3
    mkdir -p "$dir/apt/lists/partial" "$dir/apt/archives/partial" "$dir/apt/etc" "$folder"
    : >"$dir/apt/status"
    cat >"$dir/apt/apt.conf" <<END
Dir "$dir/apt";
Dir::Etc "$dir/apt/etc";
Dir::Etc::sourceparts "/dev/null";
Dir::Etc::parts "/dev/null";
Dir::Etc::preferencesparts "/dev/null";
Dir::State "$dir/apt";
Dir::State::status "$dir/apt/status";
Dir::Cache "$dir/apt";
APT::Sandbox::User "";
Acquire::Languages "none";
Acquire::Retries "2";
Acquire::http::Timeout "20";
END
    echo "$kind [signed-by=$keyring] $mirror $distribution main" >"$dir/apt/etc/sources.list"
    apt update >&2 && (cd "$folder" && apt "$@" >&2)
    status=$?
    # The lists are larger than all packages, and would be old the next time.
    rm -rf "$dir/apt"
    return $status
}

# `get_packages FOLDER PACKAGE...` unpacks packages of the distribution of this machine.
get_packages() {
    unpacked=$1
    shift
    [ ! -f "$unpacked/complete" ] || return 0
    for command in apt-get dpkg-deb; do
        command -v "$command" >/dev/null 2>&1 || not_run "there is no $command here"
    done
    rm -rf "$unpacked"
    mkdir -p "$unpacked/packages"
    (cd "$unpacked/packages" && apt-get -q download "$@" >&2) ||
        not_run "packages of Debian cannot be downloaded: $*"
    for package in "$unpacked"/packages/*.deb; do
        dpkg-deb -x "$package" "$unpacked" || not_run "$package cannot be unpacked"
    done
    rm -rf "$unpacked/packages"
    touch "$unpacked/complete"
}

# `get_source PACKAGE DISTRIBUTION FOLDER PATH` unpacks a folder of a source package, `.` for all,
# and writes its version into FOLDER.version.
get_source() {
    [ ! -d "$3" ] || return 0
    need_debian tar xz
    [ -n "$2" ] || not_run "this is no Debian"
    rm -rf "$dir/packages" "$3.new"
    download_from deb-src "$2" "$dir/packages" source --download-only --tar-only "$1" ||
        not_run "the source package of $1 of Debian ($2) cannot be downloaded"
    mkdir -p "$3.new"
    path=${4#.}
    slashes=$(printf %s "${path:+$path/}" | tr -cd /)
    tar -x -f "$dir/packages/$1"_*.orig.tar.* -C "$3.new" --no-same-owner \
        --strip-components=$((${#slashes} + 1)) --wildcards "*/${path:+$path/}*" ||
        not_run "the source package of $1 cannot be unpacked"
    basename "$dir/packages/$1"_*.orig.tar.* | sed 's/^[^_]*_//; s/\.orig\.tar.*//' >"$3.version"
    rm -rf "$dir/packages"
    mv "$3.new" "$3"
}

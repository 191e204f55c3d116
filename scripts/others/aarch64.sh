#!/bin/sh
# Has an Erlang for aarch64 load a library, and compares its tables with those of ets.
#
#   scripts/others/aarch64.sh LIBRARY EBIN
#
# EBIN is the folder of the compiled modules. The Erlang is that of Debian 13, whose packages are
# unpacked into a folder as scripts/others/otp27.sh does; QEMU (Debian: qemu-user-static) runs it.
# Machine code that is written while it runs has to be in memory once, which Erlang/OTP 26 and newer
# can do (`+JMsingle true').
#
#   ATS_AARCH64_DIR    where the folder is kept; default _build/aarch64
#
# If it cannot be done here the last line says "NOT RUN: reason" and the status is 77.
set -u
cd "$(dirname "$0")/../.."

dir=${ATS_AARCH64_DIR:-_build/aarch64}
mkdir -p "$dir" && dir=$(cd "$dir" && pwd) || exit 1
root=$dir/root
packages="erlang-base libc6 libcap2 libgcc-s1 libssl3t64 libstdc++6 libsystemd0 libtinfo6 libzstd1
    zlib1g"

. scripts/others/debian.sh

command -v qemu-aarch64-static >/dev/null 2>&1 ||
    not_run "there is no qemu-aarch64-static here (Debian: qemu-user-static)"

unpack() {
    mkdir -p "$root.new/usr/lib" && ln -s usr/lib "$root.new/lib" || return 1
    for package in "$dir"/debs/*.deb; do
        dpkg-deb --extract "$package" "$root.new" || return 1
    done
}

if [ ! -d "$root" ]; then
    need_debian dpkg-deb
    rm -rf "$dir/debs" "$root.new"
    ATS_APT_OPTIONS="${ATS_APT_OPTIONS:-} -o APT::Architecture=arm64 -o APT::Architectures=arm64"
    # shellcheck disable=SC2086 # a list of words
    download_from deb trixie "$dir/debs" download $packages ||
        not_run "the packages of Debian (trixie, arm64) cannot be downloaded"
    unpack || not_run "the packages of Debian (trixie, arm64) cannot be unpacked"
    rm -rf "$dir/debs"
    mv "$root.new" "$root"
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/ats/priv" "$work/bin"
cp -R "$2" "$work/ats/ebin"
cp "$1" "$work/ats/priv/ats_nif.so"
# Programs that the virtual machine starts, and that this machine cannot run on its own.
erts=$(echo "$root"/usr/lib/erlang/erts-*/bin)
for program in erl_child_setup inet_gethost; do
    printf '#!/bin/sh\nexec qemu-aarch64-static -L "%s" "%s" "$@"\n' "$root" "$erts/$program" \
        >"$work/bin/$program"
    chmod +x "$work/bin/$program"
done

cat >"$work/ats_aarch64.erl" <<'END'
-module(ats_aarch64).
-export([main/0]).

main() ->
    try
        {ok, _} = application:ensure_all_started(ats),
        [compare(Type, Of) || {Type, Of} <- [{set, set}, {ordered_set, ordered_set}, {bag, bag},
                                             {duplicate_bag, duplicate_bag}, {ordered_bag, bag}]],
        {ok, T} = dats:open_file(t, [{file, os:getenv("ATS_TABLE")}, {type, ordered_set}]),
        ok = dats:insert(T, [{N, <<N:8000>>} || N <- lists:seq(1, 2000)]),
        ok = dats:close(T),
        {ok, T} = dats:open_file(t, [{file, os:getenv("ATS_TABLE")}, {type, ordered_set}]),
        {2000, [{7, <<7:8000>>}]} = {dats:info(T, size), dats:lookup(T, 7)},
        ok = dats:close(T),
        io:format("~s, Erlang/OTP ~s: tables of five types, and one on disk~n",
                  [erlang:system_info(system_architecture), erlang:system_info(otp_release)]),
        halt(0)
    catch
        Class:Reason:Stack ->
            io:format("~p~n", [{Class, Reason, Stack}]),
            halt(1)
    end.

%% Four processes write at the same time.
compare(Type, Of) ->
    T = ats:new(t, [Type, public]),
    E = ets:new(t, [Of, public]),
    Objects = [{rand:uniform(500), rand:uniform(3), <<N:800>>, #{a => [N / 3, -N, 1 bsl 90]}}
               || N <- lists:seq(1, 5000)],
    [[true = Module:insert(Table, Object) || Object <- Objects]
     || {Module, Table} <- [{ats, T}, {ets, E}]],
    [[true = Module:delete(Table, Key) || Key <- lists:seq(1, 100)]
     || {Module, Table} <- [{ats, T}, {ets, E}]],
    Written = fun(Writer) -> [{{Writer, N}, N, x, y} || N <- lists:seq(1, 1000)] end,
    Writers = [spawn_monitor(fun() -> [ats:insert(T, O) || O <- Written(Writer)] end)
               || Writer <- lists:seq(1, 4)],
    [receive {'DOWN', Ref, _, _, normal} -> ok end || {_, Ref} <- Writers],
    [ets:insert(E, Written(Writer)) || Writer <- lists:seq(1, 4)],
    Big = [{{'$1', '$2', '_', '_'}, [{'>', '$2', 1}], ['$_']}],
    true = lists:sort(ats:tab2list(T)) =:= lists:sort(ets:tab2list(E)),
    true = lists:sort(ats:select(T, Big)) =:= lists:sort(ets:select(E, Big)),
    true = ats:delete(T).
END
erlc -o "$work" "$work/ats_aarch64.erl" || exit 1

# As the script `erl' starts it.
export BINDIR="$work/bin" ROOTDIR="$root/usr/lib/erlang" EMU=beam PROGNAME=erl
export ATS_TABLE="$work/table"
cd "$work" || exit 1
timeout 300 qemu-aarch64-static -L "$root" "$erts/beam.smp" -JMsingle true -S 2:2 -- \
    -root "$ROOTDIR" -bindir "$BINDIR" -progname erl -- -home "$work" -- -noshell -noinput \
    -pa "$work/ats/ebin" -pa "$work" -s ats_aarch64 main

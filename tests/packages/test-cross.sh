#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Builds the Debian packages for arm64 with a cross compiler, in a root with
# $RELEASE: their programs are for arm64, and have printed their help in an
# emulator, of which completions are made.
#
# $DIST-arm64 is a folder that ./package has made, which is used instead of a
# build.
set -eu
. "$SOURCE/tests/lab/lab-functions.sh"

PATH=$PATH:/usr/sbin:/sbin
need_root
need dpkg-buildpackage mmdebstrap apt-ftparchive readelf unshare
begin cross
show() { tail -n 40 "$dir/last" 2>/dev/null; }
quietly() { "$@" >"$dir/last" 2>&1 || fail "$*"; }

dist=${DIST:+$DIST-arm64}
[ -n "$dist" ] || dist=$dir/dist
[ -n "${DIST:-}" ] ||
    quietly "$SOURCE/package" --out "$dist" --release "$RELEASE" --arch arm64
for name in agent shim controller cli; do
    deb=$(echo "$dist"/stagecoach-${name}_*_arm64.deb)
    quietly dpkg-deb -x "$deb" "$dir/$name"
    programs=$(find "$dir/$name" -type f -perm -u+x -name 'stagecoach*' \
        ! -name '*.sh')
    [ -n "$programs" ] || fail "$deb: no program"
    for program in $programs; do
        head -c 4 "$program" | grep -q ELF || continue
        readelf -h "$program" | grep -q 'Machine: *AArch64' ||
            fail "$program: not for arm64"
    done
done
for shell in bash-completion/completions/stagecoach \
    zsh/vendor-completions/_stagecoach; do
    grep -q doctor "$dir/cli/usr/share/$shell" || fail "$shell: no commands"
done
echo "ok: packages for arm64"

echo PASS

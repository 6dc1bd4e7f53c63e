#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# build.sh SOURCE WORK OUT PYTHON CFLAGS [--host=TYPE CC=COMPILER]
#
# Builds the static libopenvswitch that our daemons link from SOURCE of Debian's
# openvswitch-source, a tarball or a folder: OUT/libopenvswitch.a,
# OUT/libopenvswitchavx512.a, OUT/ovs-built.h with what differs between versions,
# which sources depend on, and, for the headers and the IDL compiler, the tree
# WORK/openvswitch.  Build directories may share WORK if their
# CFLAGS are the same.
#
# The hash of the source is pinned because we use the library's private interface,
# which upstream changes at will.  What configure would detect by itself and
# then want at our link (numa, unwind, unbound, xdp, cap-ng) is switched off.
set -eu
source=$1 work=$2 out=$3 python=$4 cflags=$5
shift 5

# That of a folder is the hash of its files' names and hashes, without Debian's.
if [ -d "$source" ]; then
    sha256=$(cd "$source" &&
        find . -path ./debian -prune -o -type f -print0 | LC_ALL=C sort -z |
        xargs -0 sha256sum | sha256sum)
else
    sha256=$(sha256sum <"$source")
fi
sha256=${sha256%% *}
case $sha256 in
82dde6737921b63b284ad8399f95c7f1de94e1b96b2036dcf4a78c9f969ab03f) ;; # 3.1.0
fdedb1a06ceb4d4ff93f3db9dbe27e3c7869fe23d1608bd18d6eb2d838b0c08b) ;; # 3.5.0
*)
    echo "$source: sha256 $sha256 is unknown; expected OVS 3.1.0 of Debian 12" \
        "or 3.5.0 of Debian 13" >&2
    exit 1
    ;;
esac

mkdir -p "$work" "$out"
work=$(cd "$work" && pwd) out=$(cd "$out" && pwd)
# Several build directories may share WORK and build at the same time.
exec 9>"$work/build.lock"
flock 9
log=$work/build.log
stamp=$work/openvswitch/.built-$sha256

if [ ! -e "$stamp" ]; then
    rm -rf "$work/openvswitch"
    if [ -d "$source" ]; then
        cp -a "$source" "$work/openvswitch"
    else
        tar -xzf "$source" -C "$work"
    fi
    cd "$work/openvswitch"
    {
        PYTHON3=$python \
        ac_cv_lib_numa_numa_alloc_onnode=no \
        ac_cv_lib_unwind_unw_backtrace=no \
        ac_cv_lib_unbound_ub_ctx_create=no \
        ./configure --enable-ssl --enable-afxdp=no --disable-libcapng \
            --enable-shared=no --prefix=/usr --sysconfdir=/etc \
            --localstatedir=/var \
            CFLAGS="$cflags" "$@" &&
        # odp-netlink.h and others hang on 'all' only; name them ourselves.
        printf '%s\n' 'include Makefile' '.PHONY: ovs-libs' \
            'ovs-libs: $(BUILT_SOURCES)' \
            '	$(MAKE) -f Makefile lib/libopenvswitch.la' >ovs-libs.mk &&
        make -f ovs-libs.mk -j"$(nproc)" ovs-libs
    } >"$log" 2>&1 || { tail -n 40 "$log" >&2; exit 1; }
    : >"$stamp"
fi

cd "$work/openvswitch"
cp lib/.libs/libopenvswitch.a "$out/"
if [ -f lib/.libs/libopenvswitchavx512.a ]; then
    cp lib/.libs/libopenvswitchavx512.a "$out/"
else
    rm -f "$out/libopenvswitchavx512.a"
    ar rcs "$out/libopenvswitchavx512.a"
fi
# Access to the datapath, and to hardware ports since 3.5.
access=false
! grep -q 'daemonize_start(.*,' lib/daemon.h || access='false, false'
echo "#define DAEMONIZE_START() daemonize_start($access)" >"$out/ovs-built.h"

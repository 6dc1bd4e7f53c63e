#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# build.sh TARBALL SHA256 WORK OUT PYTHON CFLAGS
#
# Builds the static libopenvswitch that our daemons link from Debian's
# openvswitch-source tarball: OUT/libopenvswitch.a, OUT/libopenvswitchavx512.a,
# an empty OUT/ovs-built.h to depend on and, for the headers and the IDL
# compiler, the tree WORK/openvswitch.  Build directories may share WORK if their
# CFLAGS are the same.
#
# The tarball's hash is pinned because we use the library's private interface,
# which upstream changes at will.  What configure would detect by itself and
# then want at our link (numa, unwind, unbound, xdp, cap-ng) is switched off.
set -eu
tarball=$1 sha256=$2 work=$3 out=$4 python=$5 cflags=$6

found=$(sha256sum "$tarball" | cut -d' ' -f1)
if [ "$found" != "$sha256" ]; then
    echo "$tarball: sha256 is $found, only $sha256 is allowed" >&2
    exit 1
fi

mkdir -p "$work" "$out"
work=$(cd "$work" && pwd) out=$(cd "$out" && pwd)
# Several build directories may share WORK and build at the same time.
exec 9>"$work/build.lock"
flock 9
log=$work/build.log
stamp=$work/openvswitch/.built-$sha256

if [ ! -e "$stamp" ]; then
    rm -rf "$work/openvswitch"
    tar -xzf "$tarball" -C "$work"
    cd "$work/openvswitch"
    {
        PYTHON3=$python \
        ac_cv_lib_numa_numa_alloc_onnode=no \
        ac_cv_lib_unwind_unw_backtrace=no \
        ac_cv_lib_unbound_ub_ctx_create=no \
        ./configure --enable-ssl --enable-afxdp=no --disable-libcapng \
            --enable-shared=no --prefix=/usr --sysconfdir=/etc \
            --localstatedir=/var \
            CFLAGS="$cflags" &&
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
: >"$out/ovs-built.h"

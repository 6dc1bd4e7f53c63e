#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# setup.sh: makes ./build from a fresh checkout on a fresh Debian 12.
#
# Prints what it will install and change, installs the packages that are
# missing, configures and builds, one line of progress for each step and the
# log's tail when one fails.  Does nothing twice and needs no network when all
# is there.  An ordinary user can build if the packages are installed.
# $BUILD_FOR=run: only what ./run and other uses of the programs need, without
# tests; default "test".  $BUILD_HUGE_PAGES=false: no huge pages, which only
# shims use.  $BUILD_WERROR=true makes warnings
# errors, as CI does; $BUILD_TORCH=true also installs PyTorch (50 to 150 MB to
# download, 640 MB on the disk), without which its test and bench are skipped,
# and $BUILD_WEB=true a browser (120 MB to download, 410 MB on the disk), without
# which the dashboard's test is.  $BUILD_VM=true: an emulator, installed, and
# kernels for its guests, in ./build (320 MB to download, 1.6 GB on the disk).
# $BUILD_PACKAGES=true: what builds and checks Debian packages and images of
# containers (40 MB to download, 125 MB on the disk); "only": what builds packages,
# no ./build.  $BUILD_FORMAT=true: clang-format, without which the test of the
# format of C is skipped.
set -eu
cd "$(dirname "$0")/.."

# What each is for: docs/dependencies.md.
packages="
    gcc clang libc6-dev meson ninja-build pkg-config python3 make
    openvswitch-source openvswitch-switch openvswitch-common libssl-dev
    libdpdk-dev libcjson-dev libopenblas-dev libmicrohttpd-dev libgnutls28-dev libsqlite3-dev
    libpcap-dev libmnl-dev libbpf-dev libcap-ng-dev libpcre2-dev libsodium-dev libxxhash-dev libyaml-dev
    zlib1g-dev
    iproute2 ethtool
"
# Without these, plug-ins of Slurm and Kubernetes and the tests are not built.
test_packages="
    dpdk-dev libjansson-dev libcurl4-openssl-dev
    libslurm-dev slurmctld slurmd slurm-client munge python3-yaml python3-optuna
    systemd tshark libcmocka-dev libglpk-dev python3-jsonschema mandoc openssl prometheus
"
torch_packages="python3-torch"
web_packages="chromium"
debian_packages="debhelper dh-python dpkg-dev apt-utils lintian mmdebstrap"
image_packages="buildah crun python3-kubernetes"
format_packages="clang-format"
steps=4
command -v npm >/dev/null || web_packages="$web_packages nodejs npm"
[ "${BUILD_FOR:-test}" = run ] || packages="$packages $test_packages"
if [ "${BUILD_TORCH:-false}" = true ]; then
    packages="$packages $torch_packages"
fi
if [ "${BUILD_WEB:-false}" = true ]; then
    packages="$packages $web_packages"
fi
if [ "${BUILD_FORMAT:-false}" = true ]; then
    packages="$packages $format_packages"
fi
if [ "${BUILD_PACKAGES:-false}" != false ]; then
    packages="$packages $debian_packages"
fi
case ${BUILD_PACKAGES:-false} in
true) packages="$packages $image_packages" ;;
only) steps=1 ;;
esac
if [ "${BUILD_VM:-false}" = true ]; then
    packages="$packages qemu-system-x86 dpdk kmod"
    steps=5
fi
. deps/steps.sh

# What drives the browser, as tests/web/package-lock.json has it.
install_web() {
    [ "${BUILD_WEB:-false}" = true ] || return 0
    installed=tests/web/node_modules/.package-lock.json
    [ $installed -nt tests/web/package-lock.json ] ||
        (cd tests/web && npm ci --ignore-scripts --no-audit --no-fund)
}

# Installs $missing.
install_missing() {
    if [ "$(id -u)" != 0 ]; then
        echo "to be installed by root:$missing"
        return 1
    fi
    # A service must not start on this machine because we use its programs.
    policy=/usr/sbin/policy-rc.d
    if [ ! -e $policy ]; then
        printf '#!/bin/sh\nexit 101\n' >$policy
        chmod +x $policy
        trap 'rm -f "$log" /usr/sbin/policy-rc.d' EXIT
    fi
    export DEBIAN_FRONTEND=noninteractive
    # shellcheck disable=SC2086
    apt-get install -y --no-install-recommends $missing ||
        { apt-get update &&
          apt-get install -y --no-install-recommends $missing; }
}

find_missing() {
    missing=
    for package in $packages; do
        dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null |
            grep -qx installed || missing="$missing $package"
    done
}

# Prints what the steps will change on this machine.
announce() {
    if [ -n "$missing" ]; then
        # shellcheck disable=SC2086
        set -- $missing
        printf 'will install %d packages of Debian and what they depend on:%s\n' \
            $# "$missing" | fold -s -w 79 >&2
    fi
    [ "${BUILD_PACKAGES:-false}" != only ] || return 0
    huge=$(count_huge_pages)
    [ "$huge" = 0 ] ||
        echo "will reserve $huge huge pages of 2 MiB for the shims" >&2
    echo "will build in $PWD/build" >&2
}

# "set -e" has no effect in a step.
install_packages() {
    if [ -n "$missing" ]; then
        install_missing || return 1
    fi
    install_web
}

# A shim takes 40 huge pages of 2 MiB if there are, and does without if not: so
# may this step.  A small machine keeps its memory.  Prints how many pages are
# to be added.
pages=/sys/kernel/mm/hugepages/hugepages-2048kB
count_huge_pages() {
    want=240
    [ "${BUILD_HUGE_PAGES:-true}" = true ] || want=0
    free=$want
    available=$(awk '$1 == "MemAvailable:" { print $2 }' /proc/meminfo)
    if [ -w $pages/nr_hugepages ] && [ "$available" -gt 4000000 ]; then
        free=$(cat $pages/free_hugepages)
    fi
    echo $((free < want ? want - free : 0))
}

reserve_huge_pages() {
    more=$(count_huge_pages)
    [ "$more" = 0 ] || echo $(($(cat $pages/nr_hugepages) + more)) \
        >$pages/nr_hugepages || true
}

# The system's Python runs Debian's meson whatever else is in PATH.
configure() {
    werror=${BUILD_WERROR:-false}
    tests=auto
    [ "${BUILD_FOR:-test}" != run ] || tests=disabled
    if [ ! -e build/build.ninja ]; then
        rm -rf build
        meson setup build -Dwerror="$werror" -Dtests=$tests \
            ${OVS_WORK:+-Dovs_work="$OVS_WORK"}
    elif [ $tests = auto ] &&
        grep -q '^tests = disabled' build/meson-private/cmd_line.txt; then
        # Packages that were missing are there now.
        meson configure build --clearcache
        meson configure build -Dwerror="$werror" -Dtests=auto
    else
        meson configure build -Dwerror="$werror"
    fi
}

# Without the network of Debian's next release, its tests are skipped.
guest_kernels() {
    deps/guest-kernel.sh build/guest-kernel &&
        deps/guest-kernel.sh build/guest-kernel-6.12 6.12 || return 1
    deps/guest-kernel.sh build/guest-kernel-backports backports || true
}

find_missing
announce
run_step "packages" install_packages
[ "${BUILD_PACKAGES:-false}" != only ] || exit 0
run_step "huge pages (if there is room)" reserve_huge_pages
run_step "configuration" configure
run_step "build (a few minutes the first time)" ninja -C build

if [ "${BUILD_VM:-false}" = true ]; then
    run_step "kernels for guests" guest_kernels
fi

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Tasks whose parameters are keys, on nodes in namespaces with links of 1 Gbit/s:
# keys that move against keys that stay, against copies of bounded staleness, and
# against blocks sent by hand.  One JSON object on standard output; progress on
# standard error.
set -eu
cd "$(dirname "$0")/../.."
prefix=k$(($$ % 100000))-
net=tests/bench/localize-net.sh

clean_up() {
    sh "$net" down "$prefix" 4
}
trap clean_up EXIT
trap 'exit 1' INT TERM HUP

if [ "$(id -u)" != 0 ]; then
    echo "localize: needs root for network namespaces" >&2
    exit 77
fi
sh "$net" up "$prefix" 4 1gbit
timeout 480 python3 tests/bench/localize.py build/trainer/stagecoach-trainer \
    "$prefix"

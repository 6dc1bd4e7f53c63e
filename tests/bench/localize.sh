#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Tasks whose parameters are keys, on nodes in namespaces with links of 1 Gbit/s:
# keys that move against keys that stay, against copies of bounded staleness, and
# against blocks sent by hand.  One JSON object on standard output; progress on
# standard error.
set -eu
cd "$(dirname "$0")/../.."
. tests/lab/lab-functions.sh

need_root
begin localize
prefix=k$(($$ % 100000))-
net=tests/lab/localize-net.sh

clean_up() { sh "$net" down "$prefix" 8; }

sh "$net" up "$prefix" 8 1gbit
timeout 480 python3 tests/bench/localize.py build/trainer/stagecoach-trainer \
    "$prefix"

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Measures the plug-ins of NCCL without NCCL: nccl-order.c with $SWAPS (default
# 15), and nccl-deadlocks.c with $COLLECTIVES (default 10,000) under ThreadSanitizer.  Prints one JSON
# object on standard output.
set -eu
cd "$(dirname "$0")/../.."
build=$(realpath "${BUILD:-build}") bench=${BUILD:-build}/tests/bench
export TSAN_OPTIONS=halt_on_error=1

order=$("$bench/nccl-order" "$build/agent/launch/libnccl-net-stagecoach.so" \
    "$build/tests/unit/libnccl-wire.so" "${SWAPS:-15}")
deadlocks=$("$bench/nccl-deadlocks" "$build/tests/bench/libnccl-gate-tsan.so" \
    "$build/tests/bench/libnccl-wire-tsan.so" "${COLLECTIVES:-10000}" 1)
printf '{"bench": "nccl", "figures": {%s,\n%s}}\n' "$order" "$deadlocks"

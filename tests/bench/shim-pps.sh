#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Measures the cost of a packet in the shim's pipeline, and that of
# dpdk-testpmd in the same run.  Prints one JSON object on standard output; see
# shim-pps.py.
set -eu
cd "$(dirname "$0")/../.."
if [ ! -x "${BUILD:-build}/tests/bench/shim-pps" ]; then
    echo "shim-pps: it was not built, DPDK is missing" >&2
    exit 77
fi
exec python3 tests/bench/shim-pps.py

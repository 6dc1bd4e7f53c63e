#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Does the gain of the main scenario carry over to faster links?  As root.
# Prints one JSON object on standard output, progress on standard error.
set -eu
cd "$(dirname "$0")/../.."
if ! /usr/bin/python3 -c 'import torch' 2>/dev/null; then
    echo "bpf-rate: needs python3-torch, which \$BUILD_TORCH=true makes" \
         "deps/setup.sh install" >&2
    exit 77
fi
exec python3 tests/bench/bpf-rate.py

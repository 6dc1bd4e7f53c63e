#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Measures what the kernel's programs cost, and what they miss, between network
# namespaces.  As root.  Prints one JSON object on standard output, progress on
# standard error.
set -eu
cd "$(dirname "$0")/../.."
exec python3 tests/bench/bpf.py build

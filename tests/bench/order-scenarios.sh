#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Measures the gain of the policies on $SEEDS (default 200) random clusters of
# searches.  Prints one JSON object on standard output, progress on standard
# error.
set -eu
cd "$(dirname "$0")/../.."
exec "${BUILD:-build}/tests/bench/order-scenarios" "${SEEDS:-200}"

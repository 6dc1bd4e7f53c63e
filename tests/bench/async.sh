#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Measures orders of searches that judge their trials one by one, with $SEEDS
# (default 200) seeds.  Prints one JSON object on standard output, progress on
# standard error; see async.c.
set -eu
cd "$(dirname "$0")/../.."
exec "${BUILD:-build}/tests/bench/async" "${SEEDS:-200}"

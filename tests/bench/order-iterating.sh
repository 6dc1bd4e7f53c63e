#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Measures the orders of jobs that iterate on $SEEDS (default 200) random
# placements of each family of searches.  Prints one JSON object on standard
# output, progress on standard error; see order-iterating.c.
set -eu
cd "$(dirname "$0")/../.."
exec build/tests/bench/order-iterating "${SEEDS:-200}"

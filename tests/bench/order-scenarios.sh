#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# What orders are worth on $SEEDS (default 200) clusters of searches made by
# chance, and on $EARLY (default 24) of jobs that train for long.  One JSON
# object on standard output; progress on standard error.
set -eu
cd "$(dirname "$0")/../.."
exec build/tests/bench/order-scenarios "${SEEDS:-200}" "${EARLY:-24}"

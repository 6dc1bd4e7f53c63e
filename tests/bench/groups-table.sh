#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Measures the scheme groups in virtual time, beside one and four stragglers,
# for each number of groups and for the automatic choice.  See groups-table.py.
set -eu
cd "$(dirname "$0")/../.."
exec python3 tests/bench/groups-table.py \
    "${BUILD:-build}/tests/bench/schemes-virtual"

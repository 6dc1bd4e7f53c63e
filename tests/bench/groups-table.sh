#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Measures the scheme groups in virtual time, beside one and four stragglers,
# for each number of groups and for the automatic choice.  See groups-table.c.
set -eu
cd "$(dirname "$0")/../.."
exec "${BUILD:-build}/tests/bench/groups-table"

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Measures orders that prefer jobs in their early stage on $SEEDS (default 20)
# random clusters of each load and number of hosts.  Prints one JSON object on
# standard output, progress on standard error; see order-early.c.
set -eu
cd "$(dirname "$0")/../.."
exec build/tests/bench/order-early "${SEEDS:-20}"

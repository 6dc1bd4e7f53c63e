#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Measures what the order gains by seeing the links between leaves and spines,
# on $SEEDS (default 20) random clusters of searches.  Prints one JSON object on
# standard output, progress on standard error; see order-fabric.c.
set -eu
cd "$(dirname "$0")/../.."
exec build/tests/bench/order-fabric "${SEEDS:-20}"

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Measures the iterations a second of CifarNet on CIFAR-10 under lbbsp-cpu, bsp
# and others with four workers on this machine, with quotas that change and
# programs of others; see lbbsp-real.py.  Needs root, for cgroups, and in
# $CIFAR10 (default ../shared/data/images/cifar10) the binary files of CIFAR-10,
# which may be compressed.  Prints one JSON object on standard output, progress
# on standard error.
set -eu
cd "$(dirname "$0")/../.."
exec python3 tests/bench/lbbsp-real.py build/trainer/stagecoach-trainer \
    build/tests/bench/predictors "${CIFAR10:-../shared/data/images/cifar10}"

# SPDX-License-Identifier: Apache-2.0
#
# shellcheck shell=sh
#
# What the tests of trainings by real programs share.  Sourced.  $trainer is the
# program and $dir a folder for what it says.
. "$SOURCE/tests/lab/lab-functions.sh"

trainer=$BUILD/trainer/stagecoach-trainer
if [ ! -x "$trainer" ]; then
    echo "needs trainer/stagecoach-trainer, which is not built"
    exit 77
fi
begin trainer
# shellcheck disable=SC2034
logs="*.err"

wait_until() { await "$*" "$@"; }

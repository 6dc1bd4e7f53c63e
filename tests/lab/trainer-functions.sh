# SPDX-License-Identifier: Apache-2.0
#
# shellcheck shell=sh
#
# Functions for tests of trainings with real programs.  Sourced. $trainer is
# the program and $dir the folder for its output.
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

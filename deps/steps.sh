# SPDX-License-Identifier: Apache-2.0
#
# shellcheck shell=sh
#
# run_step for scripts that show their progress.  Sourced; $steps is their
# number.

log=$(mktemp)
trap 'rm -f "$log"' EXIT
step=0

# run_step TEXT COMMAND...: prints TEXT, runs COMMAND, prints how long it took.
run_step() {
    step=$((step + 1))
    printf '[%d/%d] %s ... ' "$step" "$steps" "$1" >&2
    shift
    began=$(date +%s)
    if "$@" >"$log" 2>&1; then
        printf 'done (%d s)\n' "$(($(date +%s) - began))" >&2
    else
        printf 'failed; the last lines of its output:\n' >&2
        tail -n 30 "$log" >&2
        exit 1
    fi
}

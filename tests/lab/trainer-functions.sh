# SPDX-License-Identifier: Apache-2.0
#
# What the tests of trainings by real programs share.  Sourced.  $trainer is the
# program and $dir a folder for what it says; both folder and the processes in
# $pids are gone when the test ends, however it ends.
trainer=$BUILD/trainer/stagecoach-trainer
dir=$(mktemp -d)
pids=
. "$SOURCE/tests/lab/lab-functions.sh"

clean_up() {
    for pid in $pids; do
        kill -9 "$pid" 2>/dev/null || true
    done
    rm -rf "$dir"
}
trap clean_up EXIT
trap 'exit 1' INT TERM HUP

if [ ! -x "$trainer" ]; then
    echo "needs trainer/stagecoach-trainer, which is not built"
    exit 77
fi

# Waits up to 20 s until "$@" succeeds.
wait_until() {
    tries=400
    until "$@" >/dev/null 2>&1; do
        tries=$((tries - 1))
        [ $tries -gt 0 ] || fail "not within 20 s: $*: $(cat "$dir"/*.err)"
        sleep 0.05
    done
}

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# isolated.sh TEST [ARG...]: runs a lab test in PID, network, mount, IPC, UTS
# and cgroup namespaces of its own.  The test sees no process of another test,
# and both may use the same names.  /run, /dev/shm and the tree of control
# groups are empty; /tmp is shared, so names in it come from mktemp(1).  All
# processes, mounts and control groups of the test end with it.  Without the
# rights or without cgroup v2 the test runs as it is, one at a time, and skips
# by itself what it cannot do; in the namespaces, $ISOLATED is 1.
#
# A test with HOST_PIDS=1 has no PID namespace of its own: the kernel tells an
# agent about processes by their ids in the first one.  The end of its control
# group ends its processes.
#
# $NICE is the nice value, against other sessions, of a test that measures rates
# or times, so that other load on the machine changes them less: where the kernel
# schedules sessions as groups (sched(7)) and the session is the test's.  Nice
# values within the test stay as they are, as shims have a better one.
set -eu
. "$SOURCE/tests/lab/lab-functions.sh"
pids="--pid --mount-proc"
[ -z "${HOST_PIDS:-}" ] || pids=
isolated() {
    # shellcheck disable=SC2086
    unshare $pids --net --mount --ipc --uts --cgroup --fork --kill-child "$@"
}

mount=$(cgroup_mount)
if [ -z "$mount" ] || ! isolated true 2>/dev/null ||
    ! group=$(mktemp -d "$mount/sct-test-XXXXXX" 2>/dev/null); then
    exec flock "$BUILD/tests/lab" sh "$@"
fi
read -r _ _ _ _ _ session _ <"/proc/$$/stat"
if [ -n "${NICE:-}" ] && [ -e /proc/self/autogroup ] &&
    [ "$session" -eq $$ ]; then
    echo "$NICE" >/proc/self/autogroup
fi
trap 'set +e; remove_cgroup "${group##*/}"' EXIT
trap 'exit 1' INT TERM HUP

# The namespace's first process reaps orphans until the test ends, so it must
# not be the test itself.
# shellcheck disable=SC2016 # Variables of the inner shell.
(
    echo 0 >"$group/cgroup.procs"
    isolated sh -c '
        set -eu
        umount --lazy --recursive /sys
        mount -t sysfs sysfs /sys
        mount -t cgroup2 cgroup2 /sys/fs/cgroup
        mount -t tmpfs -o mode=755 tmpfs /run
        mount -t tmpfs tmpfs /dev/shm
        ip link set lo up
        export ISOLATED=1
        sh "$@"
        exit $?
    ' sh "$@"
)

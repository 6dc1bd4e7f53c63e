# SPDX-License-Identifier: Apache-2.0
#
# shellcheck shell=sh disable=SC2034,SC2154
#
# The frame of tests in the lab.  Sourced.

fail() {
    echo "FAILED: $*" >&2
    exit 1
}

need_root() {
    [ "$(id -u)" = 0 ] || { echo "skip: not root"; exit 77; }
}

# need PROGRAM...: skips the test if there is one that is not in PATH.
need() {
    for program; do
        command -v "$program" >/dev/null ||
            { echo "skip: no $program"; exit 77; }
    done
}

# begin NAME: makes the test's own folder, "$dir".  At the end, however it
# comes, the processes in $pids are ended, the test's clean_up is called, and
# what it leaves in $dir is removed; if it failed, its show is called and $logs
# are shown before.
clean_up() { :; }
show() { :; }
begin() {
    pids=
    logs="*.log */*.log */*/*.log"
    dir=$(mktemp -d "${TMPDIR:-/tmp}/sct-$1-$$-XXXXXX")
    trap end EXIT
    trap 'exit 1' INT TERM HUP
}

end() {
    status=$?
    trap - EXIT INT TERM HUP
    set +e
    for pid in $pids; do
        kill "$pid" 2>/dev/null
    done
    [ $status = 0 ] || show >&2
    clean_up
    if [ $status != 0 ]; then
        # shellcheck disable=SC2086
        (cd "$dir" && tail -n 15 $logs 2>/dev/null) >&2
    fi
    rm -rf "$dir"
    exit $status
}

# await WHAT COMMAND...: waits until COMMAND succeeds, for 20 s.
await() {
    what=$1
    shift
    tries=0
    until "$@" >/dev/null 2>&1; do
        tries=$((tries + 1))
        [ $tries -lt 400 ] || fail "$what"
        sleep 0.05
    done
    echo "ok: $what"
}

# Of "stagecoach lab", after 'name' was set to the name of the test's own.

# LAB_BIN: programs to use instead of the built ones, for those who develop.
lab() {
    command=$1
    shift
    "$BUILD/cli/stagecoach" lab "$command" --name "$name" \
        ${LAB_BIN:+--bin "$LAB_BIN"} "$@"
}

need_root_and_programs() {
    if [ "$(id -u)" != 0 ]; then
        echo "needs root"
        exit 77
    fi
    [ -n "${LAB_BIN:-}" ] && return
    for program in controller/stagecoach-controller agent/stagecoach-agent \
        shim/stagecoach-shim trainer/stagecoach-trainer; do
        if [ ! -x "$BUILD/$program" ]; then
            echo "needs $program, which is not built"
            exit 77
        fi
    done
}


cgroup_mount() {
    awk '$3 == "cgroup2" { print $2; exit }' /proc/mounts
}

# Prints what there is of the lab.
leftovers() {
    for path in "/run/netns/scl-$name-"* \
        "$(cgroup_mount)/stagecoach/lab-$name" \
        "/run/stagecoach/lab-$name" "/run/stagecoach/lab-$name.lock" \
        "/run/dpdk/$name-"*; do
        [ ! -e "$path" ] || echo "$path"
    done
    for dir in /proc/[0-9]*; do
        if tr '\0' ' ' 2>/dev/null <"$dir/cmdline" |
            grep -q "/lab-$name/\|scl-$name-"; then
            echo "process ${dir#/proc/}: $(tr '\0' ' ' <"$dir/cmdline")"
        fi
    done 2>/dev/null
    return 0
}

assert_clean() {
    left=$(leftovers)
    [ -z "$left" ] || fail "$1 left behind: $left"
}

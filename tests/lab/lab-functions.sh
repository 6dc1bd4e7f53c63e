# SPDX-License-Identifier: Apache-2.0
#
# What the tests of "stagecoach lab" share.  Sourced, after 'name' was set to
# the name of the test's own lab.

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

fail() {
    echo "FAILED: $*" >&2
    exit 1
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

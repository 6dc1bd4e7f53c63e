# SPDX-License-Identifier: Apache-2.0
#
# shellcheck shell=sh disable=SC2154
#
# Functions for machines with systemd as their first process, for tests that
# install the built files and run them by their units.  Sourced after
# lab-functions.sh; the names of network namespaces and control groups begin
# with "$prefix".

need_systemd() {
    need unshare nsenter systemctl ip
    need_cgroups
    [ -x /lib/systemd/systemd ] || { echo "skip: no systemd"; exit 77; }
}

# make_machines: creates $machines, a folder for installed files and for files
# written by machines, on a file system of its own because overlays need one.
make_machines() {
    machines=$dir/machines
    logs="$logs machines/*/console"
    mkdir "$machines"
    mount -t tmpfs tmpfs "$machines"
}

# make_switch: creates the network of connect(), a bridge.
make_switch() {
    ip netns add "${prefix}switch"
    ip -n "${prefix}switch" link add br0 type bridge
    ip -n "${prefix}switch" link set br0 up
}

# connect NAME ADDRESS: creates the network namespace of a machine, whose eth0
# has the address and is connected to the switch.  Its hardware address follows
# from the address, as a network card keeps its own.
connect() {
    ip netns add "$prefix$1"
    ip -n "$prefix$1" link set lo up
    # shellcheck disable=SC2046 # Numbers are words.
    ip link add eth0 netns "$prefix$1" \
        address "02:00$(printf ':%02x' $(echo "$2" | tr . ' '))" type veth \
        peer name "to-$1" netns "${prefix}switch"
    ip -n "${prefix}switch" link set "to-$1" master br0 up
    ip -n "$prefix$1" addr add "$2/24" brd + dev eth0
    ip -n "$prefix$1" link set eth0 up
}

# install_version NAME: installs the built files as a package would.
install_version() {
    DESTDIR="$machines/$1" meson install -C "$BUILD" --no-rebuild --quiet ||
        fail "meson install"
    bindir=$(sed -n 's|^ExecStart=\(.*\)/stagecoach-agent .*|\1|p' \
        "$BUILD/packaging/stagecoach-agent.service")
}

# boot NAME VERSION [BASE]: boots a machine called NAME with the files installed
# as VERSION, on this machine's root file system or the folder BASE, and with
# the network namespace "$prefix$NAME" if it exists; returns when the machine is
# up.
boot() {
    folder=$machines/$1
    mkdir -p "$folder" "$mount/$prefix$1"
    [ -e "/run/netns/$prefix$1" ] || ip netns add "$prefix$1"
    (
        echo 0 >"$mount/$prefix$1/cgroup.procs"
        exec nsenter --net="/run/netns/$prefix$1" \
            unshare --mount --pid --ipc --uts --cgroup --fork --kill-child \
            sh "$SOURCE/tests/lab/boot-machine.sh" "$1" "$folder" \
            "$machines/$2" "${3:-/}"
    ) </dev/null >"$folder/console" 2>&1 &
    echo $! >"$folder/unshare"
    pids="$pids $!"
    await "$1 is up" is_up "$1"
    in_machine "$1" test -x "$BUILD/tests/lab/traffic" ||
        fail "$1 has no $BUILD/tests/lab/traffic"
}
is_up() { in_machine "$1" systemctl is-system-running --wait | grep -x running; }

# Prints the process id of the machine's first process.
first_process() {
    cat "/proc/$(cat "$machines/$1/unshare")/task/"*/children | tr -d ' '
}

# in_machine NAME COMMAND...
in_machine() (
    first=$(first_process "$1")
    mkdir -p "$mount/$prefix$1/commands"
    echo 0 >"$mount/$prefix$1/commands/cgroup.procs"
    shift
    exec nsenter --target "$first" --all env PATH="$bindir:$PATH" "$@"
)

# switch_off NAME: kills the machine at once, like a power failure.
switch_off() {
    kill -9 "$(first_process "$1")"
    end_process "$(cat "$machines/$1/unshare")" || :
}

# disconnect NAME: removes the network of a machine that is to be switched off.
disconnect() {
    ip -n "${prefix}switch" link del "to-$1"
    ip netns del "$prefix$1"
}

# forget_machines NAME...: removes all state of the machines.
forget_machines() {
    for machine; do
        remove_cgroup "$prefix$machine"
        ip netns del "$prefix$machine" 2>/dev/null
    done
    umount "$machines"
}

# unit_says NAME UNIT PROPERTY VALUE
unit_says() {
    [ "$(in_machine "$1" systemctl show -P "$3" "$2")" = "$4" ]
}

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Checks the systemd units on a machine, installed as a package would: each
# service runs with the rights of its unit, with any options; is restarted when
# it dies; continues after reload or replacement; and is started at boot.
set -eu
. "$SOURCE/tests/lab/lab-functions.sh"
. "$SOURCE/tests/lab/machine-functions.sh"

PATH=$PATH:/usr/sbin:/sbin
need_root
need_systemd
need ovsdb-server ovs-appctl python3
[ -x "$BUILD/shim/stagecoach-shim" ] || { echo "skip: no DPDK"; exit 77; }
begin units
prefix=scu$(($$ % 100000))-
traffic=$BUILD/tests/lab/traffic

clean_up() { forget_machines h0 far; }
show() {
    in_machine h0 journalctl --no-pager --lines 40
    in_machine h0 stagecoach-shim --show /run/stagecoach/shim.sock
    in_machine h0 ip -s link
}

# The host's own interface is cabled to the shim's.
ip netns add "${prefix}h0"
ip netns add "${prefix}far"
ip link add eth0 netns "${prefix}h0" type veth \
    peer name hostside netns "${prefix}h0"
ip link add uplink netns "${prefix}h0" type veth \
    peer name eth0 netns "${prefix}far"
ip -n "${prefix}h0" addr add 10.99.0.1/24 dev eth0
ip -n "${prefix}far" addr add 10.99.0.2/24 dev eth0
for link in h0:eth0 h0:hostside h0:uplink far:eth0 h0:lo far:lo; do
    ip -n "$prefix${link%:*}" link set "${link#*:}" up
done
in_far() { ip netns exec "${prefix}far" "$@"; }
ip netns exec "${prefix}far" "$traffic" echo 200000 7000 & pids="$pids $!"
ip netns exec "${prefix}far" "$traffic" sink 200000 5001 >/dev/null &
pids="$pids $!"

make_machines
install_version installed
boot h0 installed

h0() { in_machine h0 "$@"; }
ping() { h0 "$traffic" ping 10.99.0.2 7000 "$1" 100 >/dev/null; }
pings() { ping 3; }

# Checks that all units are active, each with its user.
shim_options() {
    echo "OPTIONS=\"$* --rate 200Mbit\"" |
        h0 tee /etc/default/stagecoach-shim >/dev/null
}
units="stagecoach-shim stagecoach-agent stagecoach-controller
    stagecoach-database@intent stagecoach-database@hosts"
are_up() {
    for one in $units; do
        unit_says h0 "$one" ActiveState active || return
    done
}
shim_options --host-port af_packet:hostside --uplink af_packet:uplink
echo 'OPTIONS="--actuator shim --uplink eth0"' |
    h0 tee /etc/default/stagecoach-agent >/dev/null
h0 systemctl enable --now stagecoach-shim stagecoach-agent stagecoach-controller
await "all units are up" are_up
user_of() {
    h0 stat -c %U "/proc/$(h0 systemctl show -P MainPID "$1")"
}
for unit in controller database@intent database@hosts; do
    [ "$(user_of stagecoach-$unit)" = stagecoach ] || fail "the user of $unit"
done
# Only root can change the directory of agent and shim.
[ "$(h0 stat -c %U:%a /run/stagecoach)" = root:755 ] || fail "/run/stagecoach"
[ "$(h0 stat -c %U:%a /run/stagecoach/controller)" = stagecoach:755 ] ||
    fail "/run/stagecoach/controller"
h0 setpriv --reuid=stagecoach --clear-groups \
    ln -s /etc/shadow /run/stagecoach/link 2>/dev/null &&
    fail "the controller's user can make links for root"
is_ordered() { h0 stagecoach hosts | grep -q '^h0 .*connected *ordered'; }
await "the host follows the order" is_ordered
await "the shim forwards" pings

# A job in its cgroup.
h0 stagecoach stage begin --cojob c --rung 0 --iterations 10 --jobs j >/dev/null
h0 stagecoach run --cojob c --job j -- \
    "$traffic" source 10.99.0.2 5001 6001 0 0 60000 >/dev/null &
pids="$pids $!"
# A job in a network namespace of its own, as in a pod.
h0 ip netns add pod
h0 ip link add pod0 type veth peer name eth0 netns pod
h0 ip addr add 10.98.0.1/24 dev pod0
h0 ip link set pod0 up
h0 ip -n pod addr add 10.98.0.2/24 dev eth0
h0 ip -n pod link set eth0 up
h0 ip -n pod route add default via 10.98.0.1
ip netns exec "${prefix}h0" sysctl -qw net.ipv4.ip_forward=1
ip -n "${prefix}far" route add 10.98.0.0/24 via 10.99.0.1
h0 nsenter --net=/run/netns/pod stagecoach run --cojob c --job p -- \
    "$traffic" source 10.99.0.2 5001 6003 0 0 60000 >/dev/null &
pids="$pids $!"
has_job() {
    h0 ovs-appctl -t /run/stagecoach/agent.ctl agent/jobs |
        grep -q "\"job\":\"$1\"[^}]*\"tx_bytes\":[1-9][0-9]\{5\}"
}
await "the agent finds jobs by control groups" has_job c/j
await "the agent finds jobs of pods" has_job c/p
# Logs of an unprivileged user in folders that the unit hides from the agent.
h0 mkdir -p /home/tenant
echo "step 5" | h0 tee /home/tenant/log >/dev/null
echo "step 6" | h0 tee /tmp/tenant.log >/dev/null
h0 chown -R 65534 /home/tenant /tmp/tenant.log
h0 chmod 700 /home/tenant /tmp/tenant.log
run_logged() {
    h0 stagecoach run --cojob c --job "$1" \
        --log "regex:$2,iteration=step ([0-9]+)" -- \
        setpriv --reuid=65534 --regid=65534 --clear-groups sleep 300 &
    pids="$pids $!"
}
run_logged home /home/tenant/log
run_logged tmp /tmp/tenant.log
has_iteration() {
    h0 ovs-appctl -t /run/stagecoach/agent.ctl agent/jobs |
        grep -q "\"iteration\":$2,\"job\":\"$1\""
}
await "a log in /home is read" has_iteration c/home 5
await "a log in /tmp is read" has_iteration c/tmp 6
tagged() {
    in_far "$traffic" dscp 300 eth0 >"$dir/dscp"
    awk '$1 == 5001 && $2 > 0 { found = 1 } END { exit !found }' "$dir/dscp"
}
await "flows have a DSCP" tagged

# A killed unit is restarted, and no other unit is.
main_pids() {
    for one in $units; do
        [ "$one" = "$1" ] || h0 systemctl show -P MainPID "$one"
    done
}
for unit in $units; do
    others=$(main_pids $unit)
    h0 systemctl kill --kill-whom main --signal KILL $unit
    is_back() { unit_says h0 $unit NRestarts 1 && are_up; }
    await "$unit is back" is_back
    [ "$(main_pids $unit)" = "$others" ] || fail "others were restarted"
done
await "the host follows the order again" is_ordered
await "the shim forwards again" pings
await "flows have a DSCP again" tagged

# Units that hang are killed and restarted as well.
for unit in shim agent controller; do
    h0 systemctl kill --kill-whom main --signal STOP stagecoach-$unit
done
are_back() {
    for one in shim agent controller; do
        unit_says h0 stagecoach-$one NRestarts 2 || return
    done
    are_up
}
await "what hung is back" are_back
await "the host follows the order after that" is_ordered
await "the shim forwards after that" pings

# A reload starts another shim in the same service, which takes over and is not
# killed by the watchdog; a shim that cannot start does not take over.
before=$(h0 systemctl show -P MainPID stagecoach-shim)
h0 "$traffic" beat 10.99.0.2 7000 8000 1000 >"$dir/beat" &
beat=$!
sleep 0.5
h0 systemctl reload stagecoach-shim || fail "reload"
wait $beat
after=$(h0 systemctl show -P MainPID stagecoach-shim)
[ "$after" != "$before" ] || fail "the same shim"
echo "taken over: $(tr '\n' ' ' <"$dir/beat")"
[ "$(awk '$1 == "gap_us" { print $2 }' "$dir/beat")" -le 200000 ] ||
    fail "a gap"
unit_says h0 stagecoach-shim ActiveState active || fail "the unit"
shim_options --host-port af_packet:nothing --uplink af_packet:uplink
h0 systemctl reload stagecoach-shim 2>/dev/null && fail "it should not reload"
unit_says h0 stagecoach-shim MainPID "$after" || fail "the old shim is away"
ping 3 || fail "the old shim does not forward"
echo "ok: a shim that cannot start leaves the old one alone"

# Files that services read again.
h0 systemctl reload stagecoach-controller stagecoach-agent || fail "SIGHUP"
unit_says h0 stagecoach-controller NRestarts 2 || fail "it was restarted"

# The uplink appears late, after more restarts than systemd allows by default.
shim_options --host-port af_packet:hostside --uplink af_packet:late
h0 systemctl restart stagecoach-shim 2>/dev/null && fail "there is no uplink"
has_tried() { [ "$(h0 systemctl show -P NRestarts stagecoach-shim)" -ge 8 ]; }
await "the shim tries again and again" has_tried
h0 ip link set uplink name late
await "the shim has its uplink" unit_says h0 stagecoach-shim ActiveState active
await "the shim forwards" pings
h0 ip link set late name uplink

# Every kind of port under the unit's rights.
try_ports() {
    shim_options "$@"
    h0 systemctl restart stagecoach-shim || fail "$*"
}
forwards() {
    await "$1" pings
    # A SYN may be lost between the kernel, which may have replied, and the
    # shim.
    await "$1: TCP" h0 "$traffic" source 10.99.0.2 5001 0 0 0 300
}
try_ports --host-port af_xdp:hostside --uplink af_xdp:uplink
forwards "af_xdp"
try_ports --host-port af_packet:hostside --uplink af_packet:uplink --no-huge
forwards "no huge pages"
try_ports --host-port af_packet:hostside --uplink af_packet:uplink --cc on
forwards "congestion control"
try_ports --host-port tap:host0 --uplink af_packet:uplink
h0 ip link set eth0 down
h0 ip addr add 10.99.0.3/24 dev host0
h0 ip link set host0 up
forwards "tap"
h0 ip link set eth0 up

# On a host without a shim the agent manages the kernel's queues.
h0 systemctl disable --now stagecoach-shim
echo 'OPTIONS="--tc=uplink:100Mbit"' |
    h0 tee /etc/default/stagecoach-agent >/dev/null
h0 systemctl restart stagecoach-agent
has_queues() { h0 tc qdisc show dev uplink | grep -q htb; }
await "the agent makes queues" has_queues

# No access was denied, but to libxdp, which tries whether it may share an
# interface with other XDP programs, and goes on without.
nothing_was_denied() {
    if h0 journalctl --no-pager --unit 'stagecoach-*' | grep -v \
        -e 'libbpf: prog .xdp_pass' -e 'libxdp: Compat' | grep -i -e 'not permitted' -e 'denied' -e 'read-only'; then
        fail "something was denied"
    fi
}
nothing_was_denied

# After a power failure, enabled units start at boot.
switch_off h0
boot h0 installed
units="stagecoach-agent stagecoach-controller stagecoach-database@intent
    stagecoach-database@hosts"
await "the units came with the machine" are_up
await "the host follows the order" is_ordered
has_stage() { h0 stagecoach order | grep -qw c; }
await "the stage is there" has_stage
unit_says h0 stagecoach-shim ActiveState inactive || fail "the shim came"

# All units stop on request.
for unit in $units; do
    h0 systemctl stop "$unit"
    unit_says h0 "$unit" Result success || fail "the end of $unit"
done
[ -z "$(h0 systemctl --failed --quiet)" ] || fail "units failed"
nothing_was_denied
echo PASS

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Cuts one of three machines, each with a member of both databases, off from the
# other two and from all agents while two searches train: first the machine
# whose members and controller lead, then one where nothing leads, then the one
# whose controller leads while the leader of the intent database is on another.
# Two of the machines have a controller; one that only pauses keeps the lead.
# The switch and the searches reach all machines all the time, so that both
# controllers could change the switch.  At last, a member of one database loses
# only its connections to the other members.
set -eu
. "$SOURCE/tests/lab/lab-functions.sh"
. "$SOURCE/tests/lab/fault-functions.sh"

PATH=$PATH:/usr/sbin:/sbin
need_root
need ovsdb-server ovsdb-client ovs-appctl ip nsenter python3

# on N VERB...: runs "stagecoach controller" on machine N, 10.99.0.N.
on() {
    n=$1
    shift
    STAGECOACH_RUNDIR="$dir/run$n" timeout 60 \
        nsenter --net="/run/netns/$nets-c$n" \
        "$BUILD/cli/stagecoach" controller "$@"
}

stop_machines() {
    for n in 1 2 3; do
        on "$n" stop
        ip netns del "$nets-c$n"
    done
    ip netns del "$nets-net"
}

# write_programs: starts the databases, and writes an agent and a controller
# that use them.  The lab starts the first controller, which starts the second.
write_programs() {
    nets=scp-$name pki="$dir/pki" intent='' relays=''
    # shellcheck disable=SC2317 # Called at the end.
    clean_up() {
        lab down >/dev/null 2>&1
        stop_machines
    }
    "$BUILD/cli/stagecoach" pki init --dir "$pki"
    "$BUILD/cli/stagecoach" pki issue controller c1 c2 c3 --dir "$pki"
    "$BUILD/cli/stagecoach" pki issue agent h0 h1 h2 --dir "$pki"
    cat >"$dir/connect" <<SCRIPT
#!/bin/sh
# connect NETNS PORT ADDRESS: connects NETNS to the network of the machines.
ip -n $nets-net link add "\$2" type veth peer name mgmt netns "\$1"
ip -n $nets-net link set "\$2" master bridge0 up
ip -n "\$1" address add "\$3/24" dev mgmt
ip -n "\$1" link set mgmt up
SCRIPT
    cat >"$dir/bin/stagecoach-controller" <<SCRIPT
#!/bin/sh
# run_controller N: runs the controller of machine N.
run_controller() {
    STAGECOACH_RUNDIR="$dir/run\$1" exec nsenter \
        --net="/run/netns/$nets-c\$1" "$BUILD/cli/stagecoach" controller exec \
        controller --address "10.99.0.\$1" --tls "$pki/controllers/c\$1" \
        --dbdir "$dir/db\$1" --policy "$dir/policy.json" -- -vconsole:info "--switch=\$switch"
}
last=
for word; do
    [ "\$last" != --switch ] || switch=\$word
    last=\$word
done
if [ ! -L "$rundir/controller.ctl" ]; then
    for i in 0 1 2; do
        "$dir/connect" "scl-$name-h\$i" "h\$i" "10.99.0.1\$i"
    done
    ln -s "$dir/run1/controller.ctl" "$rundir/controller.ctl"
    ln -s "$dir/run2/controller.ctl" "$rundir/controller-1.ctl"
    # In place of the lab's own.
    ln -sf "$dir/run3/intent.sock" "$rundir/intent.sock"
    (sleep 2; run_controller 2 2>"$dir/controller-2.log") &
fi
run_controller 1
SCRIPT
    chmod 755 "$dir/connect" "$dir/bin/stagecoach-controller"
    ip netns add "$nets-net"
    ip -n "$nets-net" link add name bridge0 type bridge
    ip -n "$nets-net" link set bridge0 up
    for n in 1 2 3; do
        ip netns add "$nets-c$n"
        ip -n "$nets-c$n" link set lo up
        "$dir/connect" "$nets-c$n" "c$n" "10.99.0.$n"
        [ $n = 1 ] || on "$n" join 10.99.0.1 --address "10.99.0.$n" \
            --dbdir "$dir/db$n" || fail "join $n"
        on "$n" start --address "10.99.0.$n" --dbdir "$dir/db$n" \
            --tls "$pki/controllers/c$n" --policy "$dir/policy.json" ||
            fail "the databases of machine $n"
        end_process "$(cat "$dir/run$n/controller.pid")"
        intent="${intent:+$intent,}unix:$dir/run$n/intent.sock"
        relays="${relays:+$relays,}ssl:10.99.0.$n:6640"
    done
    write_agent "$relays" ssl:10.99.0.1:6650,ssl:10.99.0.2:6650
}

is_leader() {
    ovs-appctl -T 2 -t "$dir/run$1/$2-db.ctl" cluster/status \
        "Stagecoach_$3" 2>/dev/null | grep -q '^Role: leader'
}
is_active() {
    [ -S "$dir/run$1/controller.ctl" ] &&
        ovs-appctl -T 2 -t "$dir/run$1/controller.ctl" controller/status |
        grep -q '"state":"active"'
}
# leads N, follows N: all of machine N leads, or nothing of it.
leads() {
    is_active "$1" && is_leader "$1" intent Intent && is_leader "$1" hosts Hosts
}
follows() {
    ! is_active "$1" && ! is_leader "$1" intent Intent &&
        ! is_leader "$1" hosts Hosts
}
# one_follows: stores a machine of which nothing leads in $machine.  There is none
# if the controller and both databases have their leaders on three machines: then
# the leader of the hosts database makes another member the leader.
one_follows() {
    for machine in 1 2 3; do
        ! follows $machine || return 0
    done
    for machine in 1 2 3; do
        if is_leader $machine hosts Hosts; then
            ovs-appctl -T 2 -t "$dir/run$machine/hosts-db.ctl" \
                cluster/failure-test transfer-leadership || :
            sleep 2
            break
        fi
    done
    return 1
}
put() {
    timeout 3 python3 "$SOURCE/tests/lab/rest-client.py" \
        "$dir/run$1/rest.sock" put "/v1/cojobs/$2" '{}' | grep -q '^200 '
}
# is_stored COJOB: all members have it.
is_stored() {
    for n in 1 2 3; do
        ovsdb-client --no-leader-only -t 2 -f csv --no-headings dump \
            "unix:$dir/run$n/intent.sock" Stagecoach_Intent Cojob name |
            grep -q "$1" || return 1
    done
}
one_is_active() {
    [ "$(is_active 1; echo $?)" != "$(is_active 2; echo $?)" ]
}
# one_leads: one controller is active and has both databases.
one_leads() {
    one_is_active && for n in 1 2; do
        ! is_active $n ||
            ovs-appctl -T 2 -t "$dir/run$n/controller.ctl" controller/status
    done | grep '"intent_connected":true' | grep -q '"hosts_connected":true'
}
# is_whole DB SCHEMA: the members have one leader.  A member that returns has a
# term of its own until the others have elected a leader again.
is_whole() {
    for n in 1 2 3; do
        ovs-appctl -T 2 -t "$dir/run$n/$1-db.ctl" cluster/status \
            "Stagecoach_$2" || return 1
    done >"$dir/members"
    [ "$(grep '^Term: ' "$dir/members" | sort -u | wc -l)" = 1 ] &&
        [ "$(grep -c '^Role: leader' "$dir/members")" = 1 ] &&
        [ "$(grep -c '^Leader: unknown' "$dir/members")" = 0 ]
}

# has_alarm TEXT, has_no_alarm TEXT: of the controller that leads.
has_alarm() {
    for n in 1 2; do
        ! is_active $n ||
            ovs-appctl -T 2 -t "$dir/run$n/controller.ctl" controller/status
    done | grep -q "$1"
}
has_no_alarm() {
    one_is_active && ! has_alarm "$1"
}

# partition FAULT N OPTION...: cuts machine N off until the others have the
# order, have written a row and could have elected leaders several times, then
# connects it.  The controller that leads has an alarm for both members of
# machine N while it is cut off, and not afterwards.
partition() {
    label=$1 cut=$2
    shift 2
    others=$(echo 123 | tr -d "$cut")
    # The measures are those of the majority.
    ln -sf "$dir/run${others#?}/intent.sock" "$rundir/intent.sock"
    fault "$label" "$@" \
        --lasting "member ssl:10.99.0.$cut:6641 of the intent database has not answered" \
        --lasting "member ssl:10.99.0.$cut:6642 of the hosts database has not answered" \
        "ip -n $nets-net link set c$cut nomaster"
    for n in 1 2; do
        if [ $n = "$cut" ]; then
            ! put $n "$label-cut" || fail "$label: machine $n writes alone"
        elif is_active $n; then
            put $n "$label-row" || fail "$label: machine $n does not write"
        fi
    done
    fault "$label-heal" "ip -n $nets-net link set c$cut master bridge0"
    wait_for 5 "no alarm for machine $cut" has_no_alarm "member ssl:10.99.0.$cut:"
    [ "$took" -le 5000 ] || fail "the alarm is there for $took ms"
    await "the intent database is whole" is_whole intent Intent
    await "the hosts database is whole" is_whole hosts Hosts
    await "one controller leads" one_leads
    await "all members have the row" is_stored "$label-row"
}

# one_leads_alone: stores the machine of the controller that leads in $machine.
# If the leader of the intent database is there, it makes another member the
# leader; the controllers then compete for the lead.
one_leads_alone() {
    is_whole intent Intent && is_whole hosts Hosts && one_leads || return 1
    machine=1
    is_active 1 || machine=2
    is_leader $machine intent Intent || return 0
    ovs-appctl -T 2 -t "$dir/run$machine/intent-db.ctl" \
        cluster/failure-test transfer-leadership || :
    sleep 2
    return 1
}

# pause N: stops the controller of machine N, which leads, for one second, and
# fails if another one takes the lead meanwhile.
pause() {
    before=$(generation "$1")
    pid=$(pid_of "stagecoach-controller .*--unixctl=$dir/run$1/")
    kill -STOP "$pid"
    sleep 1
    kill -CONT "$pid"
    sleep 2
    [ -n "$before" ] && [ "$(generation "$1")" = "$before" ] ||
        fail "a short silence of the controller of machine $1 ended its lead"
}
# generation N: prints the generation of the controller of machine N if it leads.
generation() {
    ovs-appctl -T 2 -t "$dir/run$1/controller.ctl" controller/status |
        sed -n '/"state":"active"/s/.*"generation":\([0-9]*\).*/\1/p'
}

# isolate: has the other members of the intent database not reach one that follows.
isolate() {
    for member in 1 2 3; do
        is_active $member || is_leader $member intent Intent || break
    done
    # A controller beside it has another name for it.
    alarm="member .* of the intent database has been without a leader"
    ovs-appctl -t "$dir/run$member/intent-db.ctl" \
        cluster/failure-test stop-raft-rpc
    await "an alarm: member $member has no leader" has_alarm "$alarm"
    ovs-appctl -t "$dir/run$member/intent-db.ctl" cluster/failure-test clear
    await "the end of that alarm" has_no_alarm "$alarm"
}

begin_faults fp write_programs
ovs-appctl -t "$rundir/ovs/vswitchd.ctl" vlog/disable-rate-limit vconn
ovs-appctl -t "$rundir/ovs/vswitchd.ctl" vlog/set vconn:console:dbg
# All members have the same log, so one shows all orders that were accepted.
ovsdb-client --no-leader-only -f csv --no-headings monitor \
    "unix:$dir/run3/hosts.sock" Stagecoach_Hosts Host_Wanted host,generation \
    >"$dir/wanted" &
monitor=$!
pids="$pids $monitor"
await "machine 1 leads" leads 1
partition partition-leader 1 --alarm "intent database is unreachable"
await "a machine follows" one_follows
echo "machine $machine follows"
partition partition-follower "$machine"
await "a controller leads without its member" one_leads_alone
echo "the controller of machine $machine leads without its member"
pause "$machine"
partition partition-controller "$machine" --alarm "intent database is unreachable"
isolate

kill "$monitor"
python3 - "$dir/wanted" <<'PYTHON'
import csv, sys

newest, n = {}, 0
with open(sys.argv[1], encoding="utf-8") as f:
    for _, action, host, generation in (r for r in csv.reader(f) if len(r) == 4):
        if action in ("initial", "insert", "new"):
            assert int(generation) >= newest.get(host, 0), (host, generation)
            newest[host] = int(generation)
            n += 1
print(f"ok: {n} orders of hosts, up to the generations {newest}")
assert len(newest) == 3
PYTHON
"$BUILD/tests/lab/switch-masters" "$rundir/log/ovs-vswitchd.log" ||
    fail "the switch obeyed two controllers"
end_faults

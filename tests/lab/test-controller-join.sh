#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Checks databases that grow from one member to three, with TLS, and keep
# working when the machine with the leader dies.  The machines are addresses of
# one namespace.
set -eu
. "$SOURCE/tests/lab/lab-functions.sh"

PATH=$PATH:/usr/sbin:/sbin
need ovsdb-server ovsdb-client ovs-appctl ip python3
need_root

begin join
ns=sctjoin-$$

# on N COMMAND...: runs "stagecoach" on machine N, 127.0.0.N.
on() {
    n=$1
    shift
    STAGECOACH_RUNDIR="$dir/run$n" timeout 60 ip netns exec $ns \
        "$BUILD/cli/stagecoach" "$@"
}

clean_up() {
    for n in 1 2 3; do
        on $n controller stop
    done
    ip netns del $ns 2>/dev/null
}

start() {
    on "$1" controller start --address "127.0.0.$1" --dbdir "$dir/db$1" \
        --tls "$dir/pki/controllers/c$1" \
        --policy "$SOURCE/policies/stage.json" || fail "start $1"
}
join() {
    on "$1" controller join 127.0.0.1 --address "127.0.0.$1" \
        --dbdir "$dir/db$1"
}
state_is() {
    ovs-appctl -T 10 -t "$dir/run$1/controller.ctl" controller/status |
        grep -q "\"state\":\"$2\""
}
one_leads() { state_is 2 active || state_is 3 active; }

ip netns add $ns
ip -n $ns link set lo up
"$BUILD/cli/stagecoach" pki init --dir "$dir/pki"
"$BUILD/cli/stagecoach" pki issue controller c1 c2 c3 --dir "$dir/pki"
start 1
on 1 stage begin --cojob asha --rung 0 --iterations 10 --jobs t0
for n in 2 3; do
    join $n || fail "join $n"
    start $n
done
if join 2 2>"$dir/again"; then
    fail "a member joins twice"
fi
grep -q 'exists, a member that joins must not have' "$dir/again" ||
    fail "$(cat "$dir/again")"
on 3 controller status --format json >"$dir/status" || fail "status"
grep -q '"members":\["ssl:127.0.0.1:6643","ssl:127.0.0.2:6643","ssl:127.0.0.3:6643"\]' \
    "$dir/status" || fail "status: $(cat "$dir/status")"
echo "ok: three members"
await "the first controller leads" state_is 1 active
await "the second controller stands by" state_is 2 standby

# The first machine's databases are killed.  Its controller started when they
# were the only members, and connects to the newer members.
knows_all() {
    for db in intent hosts; do
        grep -q "$db: members have changed: .*127.0.0.2.*127.0.0.3" \
            "$dir/run1/controller.log" || return 1
    done
}
await "the first controller hears of the new members" knows_all
kill -9 "$(cat "$dir/run1/hosts-db.pid")" "$(cat "$dir/run1/intent-db.pid")"
is_connected() {
    ovs-appctl -T 10 -t "$dir/run1/controller.ctl" controller/status |
        grep '"hosts_connected":true' | grep -q '"intent_connected":true'
}
is_away() { ! is_connected; }
await "the first controller loses its databases" is_away
await "the first controller finds the new members" is_connected
put_over_http() {
    python3 "$SOURCE/tests/lab/rest-client.py" "$dir/run1/rest.sock" \
        put /v1/cojobs/later '{}' | grep -q '^200 '
}
await "changes by it get there too" put_over_http

# The other processes of the first machine are killed.
for name in controller relay; do
    kill -9 "$(cat "$dir/run1/$name.pid")"
done
await "another controller leads" one_leads
has_cojob() {
    ovsdb-client --no-leader-only -t 2 -f csv --no-headings dump \
        "unix:$dir/run$1/intent.sock" Stagecoach_Intent Cojob name |
        grep -q asha
}
await "the second machine has the cojob" has_cojob 2
await "the third machine has the cojob" has_cojob 3

# The first machine rejoins as one of three members.
rm -f "$dir"/run1/*.pid
start 1
is_back() { state_is 1 standby || state_is 1 active; }
await "the first controller is back" is_back

# Without a majority of the members there is no leader, and status reports
# that.
for n in 2 3; do
    on $n controller stop || fail "stop $n"
done
alone() { ! on 1 controller status; }
await "one of three does not lead" alone
echo "ok: all"

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Checks access control by certificate: a controller with TLS in a namespace of
# its own, agents that do what they are allowed, and attempts that must be
# rejected: writing another agent's row, creating rows, accessing the intent
# database, stealing the controller's lock, using another agent's name, acting
# as the controller, using the certificate of a client of the HTTP server, and
# using an expired one.
set -eu
. "$SOURCE/tests/lab/lab-functions.sh"

PATH=$PATH:/usr/sbin:/sbin
need ovsdb-server ovsdb-client ovs-appctl ip ss
need_root

begin tls
ns=sctls-$$
export STAGECOACH_RUNDIR="$dir/run"
stagecoach="ip netns exec $ns $BUILD/cli/stagecoach"

clean_up() {
    $stagecoach controller stop
    ip netns del $ns 2>/dev/null
}

pki() { "$BUILD/cli/stagecoach" pki "$@" --dir "$dir/pki"; }
ask() { ovs-appctl -T 10 -t "$dir/run/controller.ctl" "$@"; }
asks() { ask "$1" | grep -q -- "$2"; }

listens() { ip netns exec $ns ss -Hltn "sport = :$1" | grep -q .; }

# client WHO COMMAND...: runs ovsdb-client with the certificate of WHO (such as
# agents/h0).
client() {
    who=$1
    shift
    timeout 10 ip netns exec $ns ovsdb-client -t 4 \
        -p "$dir/pki/$who/identity.pem" -c "$dir/pki/$who/identity.pem" \
        -C "$dir/pki/$who/ca.pem" -vconsole:off "$@" 2>&1
}

# hosts WHO OPERATION: runs a transaction of the hosts database through the
# relay.
hosts() { client "$1" transact $relay "[\"Stagecoach_Hosts\", $2]"; }
# refuses WHAT REPLY: checks that the access control rejected the request.
refuses() {
    echo "$2" | grep -q 'permission error' || fail "$1: $2"
    echo "ok: $1 is refused"
}

relay=ssl:127.0.0.1:6640
ip netns add $ns
ip -n $ns link set lo up
pki init
pki issue controller c1
pki issue agent h0 h1
pki issue client h2 --role operator
for bad in "issue agent a/b" "issue host h0" "issue agent h0 --days 0" \
    "issue client eva" "issue agent h0 --role read" \
    "issue client eva --role root" "rotate h7" "issue"; do
    # shellcheck disable=SC2086
    if pki $bad >/dev/null 2>"$dir/bad"; then
        fail "pki $bad succeeds"
    fi
    grep -q '^stagecoach pki: [A-Z-]*[a-z]*.*: ' "$dir/bad" ||
        fail "pki $bad: $(cat "$dir/bad")"
done
echo "ok: pki reports errors"
timeout 60 $stagecoach controller start --dbdir "$dir/db" \
    --policy "$SOURCE/policies/stage.json" --address 127.0.0.1 \
    --tls "$dir/pki/controllers/c1" || fail "controller start"
$stagecoach controller status >"$dir/status" || fail "controller status"
grep -q '^intent *leader .* ssl:127.0.0.1:6643' "$dir/status" ||
    fail "controller status: $(cat "$dir/status")"
for name in intent hosts relay; do
    mode=$(stat -c %a "$dir/run/$name.sock")
    [ $((0$mode & 077)) = 0 ] || fail "$name.sock has mode $mode"
done
echo "ok: sockets are for one user"

# Two agents, a real one and an emulated one.
ip netns exec $ns "$BUILD/agent/stagecoach-agent" --host=h0 --db=$relay \
    --controller=ssl:127.0.0.9:6650,ssl:127.0.0.1:6650 --rundir="$dir/h0" \
    -p "$dir/pki/agents/h0/identity.pem" \
    -c "$dir/pki/agents/h0/identity.pem" -C "$dir/pki/agents/h0/ca.pem" \
    -vconsole:info -vsyslog:off 2>"$dir/h0.log" &
pids="$pids $!"
reported() {
    ovsdb-client -t 5 -f csv --no-headings dump "unix:$dir/run/hosts.sock" \
        Stagecoach_Hosts Host_Reported agent host | tr -d '"' | grep -qx "$1"
}
await "the agent's row is made for it, and it writes there" \
    reported '[0-9][^,]*,h0'
await "the host has an order" \
    asks controller/hosts '"host":"h0".*"state":"ordered"'

# Rejected by the access control, with the certificate of h1.
reply=$(hosts agents/h0 '{"op": "update", "table": "Host_Reported",
    "where": [["host", "==", "h0"]], "row": {"agent": "own"}}')
echo "$reply" | grep -q '"count":1' || fail "its own row: $reply"
echo "ok: an agent writes its own row"
refuses "another's row" "$(hosts agents/h1 '{"op": "update",
    "table": "Host_Reported", "where": [["host", "==", "h0"]],
    "row": {"state": "fair"}}')"
refuses "what the controller writes" "$(hosts agents/h0 '{"op": "update",
    "table": "Host_Wanted", "where": [["host", "==", "h0"]],
    "row": {"version": 99}}')"
refuses "an insertion" "$(hosts agents/h1 '{"op": "insert",
    "table": "Host_Reported", "row": {"host": "h1", "state": "fair"}}')"
refuses "a removal" "$(hosts agents/h0 '{"op": "delete",
    "table": "Host_Reported", "where": [["host", "==", "h0"]]}')"
refuses "a change of the access control" "$(hosts agents/h0 '{"op": "delete",
    "table": "RBAC_Permission", "where": []}')"
refuses "a connection without a role" "$(hosts agents/h0 '{"op": "update",
    "table": "Connection", "where": [], "row": {"role": ""}}')"
reported '.*,h0' || fail "h0's row is gone"

# Rejected by the certificate authority: agents have no access to the databases
# themselves.
refuses_tls() {
    if reply=$(client "$2" list-dbs "$3"); then
        fail "$1: $reply"
    fi
    echo "ok: $1 is refused"
}
refuses_tls "the intent database to an agent" agents/h0 ssl:127.0.0.1:6641
refuses_tls "the hosts database itself to an agent" agents/h0 \
    ssl:127.0.0.1:6642
for port in 6640 6641 6642; do
    refuses_tls "port $port to a client of the HTTP server" clients/h2 \
        ssl:127.0.0.1:$port
done
# An agent can read exactly what docs/operations.md lists.
client agents/h0 list-dbs $relay >"$dir/dbs"
[ "$(grep -v '^_Server$' "$dir/dbs")" = Stagecoach_Hosts ] ||
    fail "the relay has $(cat "$dir/dbs")"
client agents/h1 dump $relay Stagecoach_Hosts Host_Wanted host |
    grep -q h0 || fail "an agent does not read another's row"
if client agents/h1 transact $relay '["Stagecoach_Intent",
    {"op": "select", "table": "Event", "where": []}]' >"$dir/event" 2>&1 &&
    grep -q '"rows"' "$dir/event"; then
    fail "the relay has the audit: $(cat "$dir/event")"
fi
echo "ok: an agent reads the hosts database and nothing else"
client controllers/c1 list-dbs ssl:127.0.0.1:6641 | grep -q Stagecoach_Intent ||
    fail "the intent database to a controller"
client controllers/c1 list-dbs ssl:127.0.0.1:6642 | grep -q Stagecoach_Hosts ||
    fail "the hosts database to a controller"
for port in 6640 6641 6642 6650; do
    listens $port || fail "no server listens on port $port"
    if timeout 5 ip netns exec $ns ovsdb-client -t 3 -vconsole:off list-dbs \
        "tcp:127.0.0.1:$port" >/dev/null 2>&1; then
        fail "port $port without TLS"
    fi
done
echo "ok: no port answers without TLS"
if command -v openssl >/dev/null; then
    for version in -tls1 -tls1_1; do
        # The connection must end.
        if timeout 5 ip netns exec $ns openssl s_client $version \
            -cipher ALL:@SECLEVEL=0 -connect 127.0.0.1:6640 </dev/null 2>&1 |
            grep -q 'Cipher is [A-Z]*[0-9]*-'; then
            fail "the relay speaks $version"
        fi
    done
    echo "ok: nothing below TLS 1.2"
fi

# Only the relay itself can hold a lock at the relay.
generation() { ask controller/status | sed 's/.*"generation":\([0-9]*\).*/\1/'; }
before=$(generation)
client agents/h0 -t 1 steal $relay stagecoach >"$dir/steal" || :
grep -q locked "$dir/steal" || fail "steal: $(cat "$dir/steal")"
asks controller/status '"state":"active"' || fail "the lock is stolen"
[ "$(generation)" = "$before" ] || fail "the lead has changed"
echo "ok: the controller's lock cannot be stolen"

# h1 can neither send telemetry as h0 nor act as the controller.
says() {
    ip netns exec $ns "$BUILD/tests/lab/fake-agent" ssl:127.0.0.1:6650 \
        --tls "$dir/pki/$1" "$2" 1000000000 >"$dir/says.out" 2>&1 &
    pid=$!
    pids="$pids $pid"
}
says agents/h1 h1
await "h1 is heard" asks controller/hosts '"connected":true,\("coverage":[0-9.]*,\)\?"host":"h1"'
kill $pid
await "h1 is gone" asks controller/status '"agents":1'
says agents/h1 h0
await "telemetry for another host is rejected" grep -q \
    'the certificate is of "h1" and not of "h0"' "$dir/run/controller.log"
kill $pid
says clients/h2 h2
await "telemetry of a client is rejected" grep -q \
    'certificate verify failed' "$dir/run/controller.log"
kill $pid
asks controller/hosts '"connected":true,\("coverage":[0-9.]*,\)\?"host":"h2"' &&
    fail "a client is heard as a host"
if "$BUILD/controller/stagecoach-controller" --telemetry=ptcp:6655 \
    --policy="$SOURCE/policies/stage.json" --unixctl="$dir/bad.ctl" \
    2>"$dir/bad"; then
    fail "telemetry without TLS"
fi
grep -q '^stagecoach-controller: ptcp:6655: not without TLS; ' "$dir/bad" ||
    fail "telemetry without TLS: $(cat "$dir/bad")"
echo "ok: no telemetry without TLS"
ovsdb-tool create "$dir/fake.db" "$SOURCE/wire/hosts.ovsschema"
ip netns exec $ns ovsdb-server --remote=pssl:6700 \
    -p "$dir/pki/agents/h1/identity.pem" -c "$dir/pki/agents/h1/identity.pem" \
    -C "$dir/pki/agents/h1/ca.pem" --unixctl="$dir/fake.ctl" -vsyslog:off \
    -vconsole:off "$dir/fake.db" &
pids="$pids $!"
await "a server of an agent's certificate listens" listens 6700
refuses_tls "an agent in a database's place" controllers/c1 ssl:127.0.0.1:6700
refuses_tls "it, to another agent," agents/h0 ssl:127.0.0.1:6700

# Certificates expire, and are replaced without a restart.
pki issue agent h2 --days 0.00002
sleep 3
refuses_tls "a certificate that has ended" agents/h2 $relay
pki rotate h2 >"$dir/rotated"
printf 'agent h2\nclient h2\n' | cmp -s - "$dir/rotated" || fail "rotate h2"
client agents/h2 list-dbs $relay | grep -q Stagecoach_Hosts || fail "h2"
serial() {
    echo | timeout 5 ip netns exec $ns openssl s_client \
        -connect "127.0.0.1:$1" -cert "$dir/pki/agents/h0/identity.pem" \
        -key "$dir/pki/agents/h0/identity.pem" 2>/dev/null |
        openssl x509 -noout -serial
}
if command -v openssl >/dev/null; then
    relay_serial=$(serial 6640)
    controller_serial=$(serial 6650)
    pki rotate >"$dir/rotated"
    [ ! -s "$dir/rotated" ] || fail "rotate takes what is new"
    pki rotate c1 >/dev/null
    changed() { [ "$(serial "$1")" != "$2" ]; }
    await "the relay has its new certificate" changed 6640 "$relay_serial"
    await "the controller has its new certificate" changed 6650 \
        "$controller_serial"
    [ "$(generation)" = "$before" ] || fail "the lead has changed"
    asks controller/hosts '"connected":true,[^{}]*"host":"h0"' ||
        fail "the agent has lost its connection"
fi
for role in agent operator; do
    pki show --format json | grep -q '"name":"h2","role":"'$role'"' ||
        fail "show: $role"
done

# A controller of an older generation: agents follow the newest one that they
# have seen.  The controller repairs the row at once, maybe before the agent
# has read it.
old_order() {
    ovsdb-client transact "unix:$dir/run/hosts.sock" '["Stagecoach_Hosts",
        {"op": "update", "table": "Host_Wanted",
         "where": [["host", "==", "h0"]],
         "row": {"generation": 0, "version": 999}}]' >/dev/null
    sleep 0.1
    grep -q 'ignoring order 999 of generation 0, older than' "$dir/h0.log"
}
await "an older generation's order is ignored" old_order
echo "ok: all"

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Checks a controller's HTTP API: docs/openapi.json, changes, metrics,
# limits, and TLS with the roles of clients.  Needs neither root nor
# namespaces.
set -eu
. "$SOURCE/tests/lab/lab-functions.sh"

PATH=$PATH:/usr/sbin:/sbin
stagecoach=$BUILD/cli/stagecoach
need ovsdb-server ovsdb-client python3
python3 -c 'import jsonschema' 2>/dev/null ||
    { echo "skip: no python3-jsonschema"; exit 77; }

begin rest
export STAGECOACH_RUNDIR="$dir/run"

clean_up() {
    "$stagecoach" controller stop
}

check() {
    timeout 200 python3 -W ignore "$SOURCE/tests/lab/rest-check.py" "$@" ||
        fail "rest-check.py $*"
    echo "ok: $2"
}
cp "$SOURCE/policies/stage.json" "$dir/policy.json"
"$stagecoach" controller init --dbdir "$dir/db" || fail "controller init"
timeout 60 "$stagecoach" controller start --dbdir "$dir/db" \
    --policy "$dir/policy.json" || fail "controller start"
for host in h0 h1; do
    "$BUILD/tests/lab/fake-agent" "unix:$dir/run/telemetry.sock" $host \
        1000000000 contract/t0:100000:20 >"$dir/$host.out" &
    pids="$pids $!"
done
socket=$dir/run/rest.sock
connected() {
    ovs-appctl -t "$dir/run/controller.ctl" controller/status |
        grep -q '"agents":2'
}
await "agents connect" connected

check "$socket" openapi "$SOURCE/docs/openapi.json"
check "$socket" writes "$(id -un)" asha-9
check "$socket" trials one-by-one
check "$socket" metrics "$SOURCE/packaging/grafana/stagecoach.json" \
    "$SOURCE/packaging/prometheus/stagecoach.rules.yml"
if command -v promtool >/dev/null; then
    python3 - "$socket" >"$dir/metrics" <<'EOF'
import http.client, socket, sys
client = http.client.HTTPConnection("localhost")
client.sock = socket.socket(socket.AF_UNIX)
client.sock.connect(sys.argv[1])
client.request("GET", "/metrics")
sys.stdout.write(client.getresponse().read().decode())
EOF
    promtool check metrics <"$dir/metrics" || fail "promtool check metrics"
    promtool check rules \
        "$SOURCE/packaging/prometheus/stagecoach.rules.yml" ||
        fail "promtool check rules"
    echo "ok: promtool"
else
    echo "no promtool: the format is checked by rest-check.py alone"
fi
# Prints the changes in the audit: whose, with which role, what, why.
changes() {
    ovsdb-client -f csv --no-headings dump "unix:$dir/run/intent.sock" \
        Stagecoach_Intent Event actor role what why | tr -d '"'
}
changes >"$dir/events"
grep -q "^$(id -un),operator,change,stage asha-9/0 begins" "$dir/events" ||
    fail "no row of a change: $(cat "$dir/events")"
[ "$(grep -c ',operator,change,cojob asha-9 begins' "$dir/events")" = 1 ] ||
    fail "a request without a change has a row"

# A database that hangs delays only requests that change it.
intent_pid=$(cat "$dir/run/intent-db.pid")
kill -STOP "$intent_pid"
timeout 200 python3 "$SOURCE/tests/lab/rest-check.py" "$socket" away ||
    { kill -CONT "$intent_pid"; fail "rest-check.py away"; }
kill -CONT "$intent_pid"
echo "ok: away"
check "$socket" writes "$(id -un)" asha-7

# TLS: clients with a role, a host, and a client of another authority.
pki() { "$stagecoach" pki "$@" --dir "$dir/$pki" >/dev/null || fail "pki $*"; }
for pki in fake pki; do
    pki init
    pki issue client eva --role operator
done
pki issue controller c1
pki issue agent h0
pki issue client alice --role user
tls="--private-key=$dir/pki/controllers/c1/identity.pem
    --certificate=$dir/pki/controllers/c1/identity.pem"
authority=--rest-ca-cert=$dir/pki/controllers/c1/clients-ca.pem
port=$(python3 -c 'import socket
s = socket.socket()
s.bind(("127.0.0.1", 0))
print(s.getsockname()[1])')
# Starts a controller that listens with TLS.
tls_controller() {
    exec "$BUILD/controller/stagecoach-controller" --policy="$dir/policy.json" \
        --telemetry="unix:$dir/run/second.sock" \
        --unixctl="$dir/run/second.ctl" --rest="pssl:$port:127.0.0.1" \
        -vconsole:info -vsyslog:off "$@"
}
for wrong in "$authority" "$tls"; do
    # shellcheck disable=SC2086
    if (tls_controller $wrong) 2>"$dir/tls.log"; then
        fail "TLS without all of it: $wrong"
    fi
    grep -q -- '--rest: "pssl:.* required$' "$dir/tls.log" ||
        fail "$wrong: $(cat "$dir/tls.log")"
done
python3 -c 'import socket, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.bind(sys.argv[1])
s.settimeout(30)
print(s.recv(99).decode())' "$dir/notify" >"$dir/ready" &
pids="$pids $!"
await "a service manager listens" test -S "$dir/notify"
notifying_controller() {
    NOTIFY_SOCKET="$dir/notify"
    export NOTIFY_SOCKET
    tls_controller "$@"
}
# shellcheck disable=SC2086
notifying_controller $tls "$authority" \
    --rest="unix:$dir/run/second-rest.sock" --rest-users 2>"$dir/tls.log" &
pids="$pids $!"
await "the service manager is notified" grep -qx READY=1 "$dir/ready"
# at NAME: the place for the client with the files of NAME.
at() {
    echo "127.0.0.1:$port,$dir/$1/identity.pem,$dir/$1/identity.pem,$dir/pki/agents/h0/ca.pem"
}
status_of() {
    timeout 60 python3 "$SOURCE/tests/lab/rest-check.py" "$@" 2>&1 ||
        echo refused
}
eva_is_answered() { [ "$(status_of "$(at pki/clients/eva)" status)" = 200 ]; }
await "eva is answered over TLS" eva_is_answered
[ "$(status_of "$dir/run/second-rest.sock" status)" = 200 ] ||
    fail "the unix socket is not served"
[ "$(stat -c %a "$socket" "$dir/run/second-rest.sock" | xargs)" = "600 666" ] ||
    fail "the modes of the sockets"
for stranger in pki/agents/h0 pki/controllers/c1; do
    [ "$(status_of "$(at $stranger)" status)" = 403 ] ||
        fail "$stranger is served"
done
[ "$(status_of "127.0.0.1:$port,,,$dir/pki/agents/h0/ca.pem" status)" = 403 ] ||
    fail "a client without a certificate is served"
[ "$(status_of "$(at fake/clients/eva)" status)" != 200 ] ||
    fail "any authority is accepted"
echo "ok: other clients are rejected"
check "$(at pki/clients/eva)" writes eva asha-8
changes | grep -q "^eva,operator,change,cojob asha-8 begins" ||
    fail "no row of eva's change"
timeout 60 python3 "$SOURCE/tests/lab/rest-client.py" "$socket" put \
    /v1/cojobs/asha-5 '{}' | grep -q '^200 ' || fail "asha-5 begins"
check "$(at pki/clients/alice)" limited asha-6 asha-5
changes | grep -q "^alice,user,change,cojob asha-6 begins" ||
    fail "no row of alice's change"
if timeout 3 python3 -c 'import socket, sys
s = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
s.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
sys.exit(0 if s.recv(100).startswith(b"HTTP") else 1)' "$port" 2>/dev/null
then
    fail "it is answered in clear"
fi
echo "ok: all"

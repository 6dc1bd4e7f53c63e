#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Checks a controller's HTTP API: docs/openapi.json, changes, events, metrics,
# limits, and TLS with one authorized client name.  Needs neither root nor
# namespaces.
set -eu
. "$SOURCE/tests/lab/lab-functions.sh"

PATH=$PATH:/usr/sbin:/sbin
stagecoach=$BUILD/cli/stagecoach
need ovsdb-server ovsdb-client openssl python3
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
check "$socket" events
check "$socket" full
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
# Prints the changes in the audit: what, who, why.
changes() {
    ovsdb-client -f csv --no-headings dump "unix:$dir/run/intent.sock" \
        Stagecoach_Intent Event who what why | tr -d '"'
}
changes >"$dir/events"
grep -q "^change,$(id -un),stage asha-9/0 begins" "$dir/events" ||
    fail "no row of a change: $(cat "$dir/events")"
[ "$(grep -c '^change,.*,cojob asha-9 begins' "$dir/events")" = 1 ] ||
    fail "a request without a change has a row"

# A database that hangs delays only requests that change it.
intent_pid=$(cat "$dir/run/intent-db.pid")
kill -STOP "$intent_pid"
timeout 200 python3 "$SOURCE/tests/lab/rest-check.py" "$socket" away ||
    { kill -CONT "$intent_pid"; fail "rest-check.py away"; }
kill -CONT "$intent_pid"
echo "ok: away"
check "$socket" writes "$(id -un)" asha-7

# A client that does not read its events.
check "$socket" deaf 60

# TLS: certificates of one authority; only one name is authorized.
openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj "/CN=authority" \
    -keyout "$dir/ca.key" -out "$dir/ca.pem" 2>/dev/null
for name in controller alice h0; do
    openssl req -newkey rsa:2048 -nodes -subj "/CN=$name" \
        -keyout "$dir/$name.key" -out "$dir/$name.csr" 2>/dev/null
    openssl x509 -req -in "$dir/$name.csr" -CA "$dir/ca.pem" \
        -CAkey "$dir/ca.key" -CAcreateserial -days 2 \
        -out "$dir/$name.pem" 2>/dev/null
done
openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj "/CN=alice" \
    -keyout "$dir/fake.key" -out "$dir/fake.pem" 2>/dev/null
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
for wrong in "--rest-client=alice" \
    "--private-key=$dir/controller.key --certificate=$dir/controller.pem
     --ca-cert=$dir/ca.pem"; do
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
notifying_controller --private-key="$dir/controller.key" \
    --certificate="$dir/controller.pem" --ca-cert="$dir/ca.pem" \
    --rest-client=alice --rest="unix:$dir/run/second-rest.sock" \
    2>"$dir/tls.log" &
pids="$pids $!"
await "the service manager is notified" grep -qx READY=1 "$dir/ready"
at() { echo "127.0.0.1:$port,$dir/$1.key,$dir/$1.pem,$dir/ca.pem"; }
status_of() {
    timeout 60 python3 "$SOURCE/tests/lab/rest-check.py" "$1" status 2>&1 ||
        echo refused
}
alice_is_answered() { [ "$(status_of "$(at alice)")" = 200 ]; }
await "alice is answered over TLS" alice_is_answered
[ "$(status_of "$dir/run/second-rest.sock")" = 200 ] ||
    fail "the unix socket is not served"
[ "$(status_of "$(at h0)")" = 403 ] || fail "a host is served"
[ "$(status_of "127.0.0.1:$port,,,$dir/ca.pem")" = 403 ] ||
    fail "a client without a certificate is served"
[ "$(status_of "$(at fake)")" != 200 ] || fail "any authority is accepted"
echo "ok: other clients are rejected"
check "$(at alice)" writes alice asha-8
changes | grep -q "^change,alice,cojob asha-8 begins" ||
    fail "no row of alice's change"
if timeout 3 python3 -c 'import socket, sys
s = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
s.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
sys.exit(0 if s.recv(100).startswith(b"HTTP") else 1)' "$port" 2>/dev/null
then
    fail "it is answered in clear"
fi
echo "ok: all"

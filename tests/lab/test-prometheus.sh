#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Checks metrics, dashboard and alerts by a real Prometheus, which scrapes a
# controller over TLS with the role "read" and sets the labels that its operator
# sets: it renames none, each panel has its lines, one for each job, and each
# alert is evaluated.  Needs neither root nor namespaces.
set -eu
. "$SOURCE/tests/lab/lab-functions.sh"

PATH=$PATH:/usr/sbin:/sbin
need ovsdb-server ovs-appctl python3 prometheus promtool

begin prometheus
export STAGECOACH_RUNDIR="$dir/run"
clean_up() { stop_databases run; }

start_databases run
pki() {
    "$BUILD/cli/stagecoach" pki "$@" --dir "$dir/pki" >/dev/null || fail "pki $*"
}
pki init
pki issue controller c1
pki issue client prometheus --role read
free_port() {
    python3 -c 'import socket
s = socket.socket()
s.bind(("127.0.0.1", 0))
print(s.getsockname()[1])'
}
rest=$(free_port)
identity=$dir/pki/controllers/c1/identity.pem
"$BUILD/controller/stagecoach-controller" --policy="$SOURCE/policies/stage.json" \
    --telemetry="unix:$dir/run/telemetry.sock" --unixctl="$dir/run/prom.ctl" \
    --rest="pssl:$rest:127.0.0.1" --rest="unix:$dir/run/rest.sock" \
    --private-key="$identity" --certificate="$identity" \
    --rest-ca-cert="$dir/pki/controllers/c1/clients-ca.pem" \
    -vconsole:off -vsyslog:off --log-file="$dir/controller.log" &
pids="$pids $!"
leads() {
    ovs-appctl -t "$dir/run/prom.ctl" controller/status 2>/dev/null |
        grep -q '"state":"active"'
}
await "the controller leads" leads
export FAKE_AGENT_APPLIES=yes
for host in h0 gone; do
    "$BUILD/tests/lab/fake-agent" "unix:$dir/run/telemetry.sock" $host \
        1000000000 asha/t0:100000:20 >"$dir/$host.out" &
    pids="$pids $!"
done
gone=$!
connected() {
    timeout 20 python3 "$SOURCE/tests/lab/rest-client.py" "$dir/run/rest.sock" \
        get /metrics | grep -qx "stagecoach_agent_connected{host=\"$1\"} $2"
}
await "h0 reports" connected h0 1
await "another host reports" connected gone 1
kill $gone
await "it is gone" connected gone 0

client=$dir/pki/clients/prometheus/identity.pem
rules=$SOURCE/packaging/prometheus/stagecoach.rules.yml
cat >"$dir/prometheus.yml" <<END
global: {scrape_interval: 1s, evaluation_interval: 1s}
rule_files: ["$rules"]
scrape_configs:
- job_name: stagecoach
  scheme: https
  tls_config: {cert_file: "$client", key_file: "$client", insecure_skip_verify: true}
  static_configs:
  - targets: ["127.0.0.1:$rest"]
    labels: {namespace: ns, pod: p-0, container: c, service: s, endpoint: rest, node: n1}
END
promtool check config "$dir/prometheus.yml" >"$dir/promtool.log" 2>&1 ||
    fail "promtool check config"
web=$(free_port)
prometheus --config.file="$dir/prometheus.yml" --storage.tsdb.path="$dir/tsdb" \
    --web.listen-address="127.0.0.1:$web" 2>"$dir/prometheus.log" &
pids="$pids $!"
timeout 100 python3 "$SOURCE/tests/lab/prometheus-check.py" "127.0.0.1:$web" \
    "$dir/run/rest.sock" "$SOURCE/packaging/grafana/stagecoach.json" "$rules" ||
    fail "prometheus-check.py"
echo PASS

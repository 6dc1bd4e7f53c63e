#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Trains across two racks with two spines: the uplinks have their rate and are
# ports of the order.  A job that sends only within racks does not count there,
# although nothing but the agents' measurement shows that.  A link that is cut
# during the run leaves the routes and the order, both return with it, and the
# run completes.
set -eu
. "$SOURCE/tests/lab/lab-functions.sh"

begin_lab r
cat >"$dir/local.sh" <<EOF_SH
case \$1 in
    1) exec "$BUILD/tests/lab/traffic" source 10.77.0.1 6000 0 0 1500 25000 ;;
    0) exec "$BUILD/tests/lab/traffic" sink-each 90000 6000 ;;
    3) exec "$BUILD/tests/lab/traffic" source 10.77.0.3 6002 0 0 1500 25000 ;;
    2) exec "$BUILD/tests/lab/traffic" sink-each 90000 6002 ;;
esac
EOF_SH
cat >"$dir/racks.json" <<'EOF_JSON'
{"name": "racks", "hosts": 4, "slots": 4, "rate": "40Mbit",
 "fabric": {"leaf_spine": {"leaves": 2, "spines": 2, "over": 2}},
 "policies": ["stage"], "timeout_s": 150,
 "searches": [{"search": {
     "name": "asha", "trials": 2,
     "space": {"learning_rate": [0.1, 0.2], "width": [288], "batch": [32]},
     "rungs": [{"iterations": 12, "keep": 1}, {"iterations": 80}],
     "placements": [{"workers": ["h0", "h1"], "servers": ["h2", "h3"]}],
     "model": {"inputs": 64, "hidden_layers": 2, "classes": 10},
     "data": {"kind": "generated", "samples": 2000}, "backend": "cpu"}}],
 "cojobs": [{"name": "local", "stages": [{"iterations": 1000}],
             "jobs": [{"name": "t0", "hosts": ["h0", "h1", "h2", "h3"],
                       "command": ["sh", "%scenario/local.sh", "%rank"]}]}]}
EOF_JSON

says() {
    ovs-appctl -t "/run/stagecoach/lab-$name/controller.ctl" "controller/$1" |
        grep -q -- "$2"
}
in_fabric() { nsenter --net="/run/netns/scl-$name-fab" "$@"; }
# Prints the bytes that interface $1 of the fabric has sent.
sent() {
    in_fabric cat /proc/net/dev | awk -v dev="$1:" '$1 == dev { print $10 }'
}
sends() { [ "$(sent "$1")" -gt $(($2 + 500000)) ]; }
# Checks that both senders of job "local" use host ports of the order and hardly
# its uplinks.  The formula for peers, a ring from h0 to h3, would have all of it
# there.  Acknowledgements are not data, and follow it.
is_local() {
    ovs-appctl -t "/run/stagecoach/lab-$name/controller.ctl" controller/order |
        python3 -c '
import json, sys

demand, = (row["demand"] for row in json.load(sys.stdin)["order"]
           if row["cojob"] == "local")
uplinks = sum(s for port, s in demand.items() if ">" in port)
sent = [demand[port] for port in ("h1:tx", "h0:rx", "h3:tx", "h2:rx")]
sys.exit(not uplinks < 0.1 * max(sent) < 0.2 * min(sent))'
}

lab up "$SOURCE/lab/scenarios/smoke.json" --blind 2>"$dir/errors" &&
    fail "no links to hide"
grep -q '^--blind: .*smoke.json has no links between switches' "$dir/errors" ||
    fail "$(cat "$dir/errors")"

start_run "$dir/racks.json"
wait_in_run 30 says order '"leaf0>spine0+spine1":[0-9]'
wait_in_run 20 sends l0s0 0
wait_in_run 20 is_local
for port in l0s0 s1l1; do
    in_fabric tc class show dev $port classid 1:1 | grep -q "rate 20Mbit " ||
        fail "$port: $(in_fabric tc class show dev $port classid 1:1)"
done
in_fabric ip link set l0s0 down
wait_in_run 20 says switches '"links_down":1'
wait_in_run 20 says order '"leaf0>spine1":[0-9]'
wait_in_run 20 sends l0s1 "$(sent l0s1)"
in_fabric ip link set l0s0 up
wait_in_run 20 says switches '"links_down":0'
wait_in_run 20 says order '"leaf0>spine0+spine1":[0-9]'
wait_in_run 20 sends l0s0 "$(sent l0s0)"
end_run
python3 - "$dir/report/report.json" <<'PYTHON' || fail "the report"
import json, sys

report = json.load(open(sys.argv[1]))
policy, = report["policies"]
assert report["setting"].endswith("leaf-spine 2 x 2, 2:1"), report["setting"]
assert policy["complete"] and policy["stages"] == 3, policy
assert policy["restarts"] == 0 and policy["coverage"] > 0.97, policy
assert all(s["loss"] < 2.3 for s in report["searches"]
           if s["cojob"] == "asha"), report["searches"]
PYTHON
assert_clean "a run with racks"
echo PASS

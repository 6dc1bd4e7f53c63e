#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Checks that a search is in the order from its first bytes: beside a search
# that has much more to do and fills the links, the jobs of a short search have
# lower ranks and higher levels than it before their first iteration.
set -eu
. "$SOURCE/tests/lab/lab-functions.sh"

begin_lab ss
show() { grep -v '"progress"' "$dir"/*.out; cat "$dir/samples"; }
need python3
weights=$(((64 * 512 + 512 + 512 * 512 + 512 + 512 * 10 + 10) * 4))
rundir=/run/stagecoach/lab-$name
lab up "$SOURCE/lab/scenarios/smoke.json" --policy "$SOURCE/policies/stage.json" \
    >"$dir/up.out" || fail "lab up"
python3 - "$dir" "$rundir" "$name" <<'PYTHON'
import json, sys

folder, rundir, name = sys.argv[1:]
hosts = [{"name": f"h{i}", "address": f"10.77.0.{i + 1}", "launch": "netns",
          "netns": f"scl-{name}-h{i}", "rundir": f"{rundir}/hosts/h{i}",
          "cgroup": f"stagecoach/lab-{name}/hosts/h{i}", "slots": 8}
         for i in range(3)]
with open(f"{folder}/cluster.json", "w") as f:
    json.dump({"hosts": hosts}, f)
for search, trials, iterations in ("long", 3, 1000000), ("short", 2, 20):
    with open(f"{folder}/{search}.json", "w") as f:
        json.dump({
            "name": search, "seed": 1, "trials": trials, "backend": "cpu",
            "space": {"learning_rate": [0.1], "width": [512], "batch": [16]},
            "rungs": [{"iterations": iterations}],
            "placements": [{"workers": ["h0", "h1"], "servers": ["h2"]}],
            "model": {"inputs": 64, "hidden_layers": 2, "classes": 10},
            "data": {"kind": "generated", "samples": 500}}, f)
PYTHON
search() {
    "$BUILD/cli/stagecoach" search run "$dir/$1.json" \
        --cluster "$dir/cluster.json" --intent "unix:$rundir/intent.sock" \
        --format json >"$dir/$1.out" 2>"$dir/$1.log" &
    searches="${searches:-} $!"
    pids="$pids $!"
}
trains() { [ "$(grep -c '"progress"' "$dir/long.out")" -ge 3 ]; }

search long
await "the long search trains" trains

# Samples the jobs of the short search on h2, which sends them their first
# weights, until it has sent twice as much.
python3 - "$rundir/hosts/h2/agent.ctl" $weights >"$dir/samples" <<'PYTHON' &
import json, socket, sys, time

ready, last = set(), {}
print("null", flush=True)
while len(ready) < 2:
    with socket.socket(socket.AF_UNIX) as s:
        s.connect(sys.argv[1])
        s.sendall(json.dumps({"id": 0, "method": "agent/jobs",
                              "params": []}).encode())
        text = ""
        while True:
            text += s.recv(65536).decode()
            try:
                reply = json.loads(text)
                break
            except ValueError:
                pass
    result = reply["result"]
    jobs = json.loads(result) if isinstance(result, str) else result
    others = [job for job in jobs["jobs"] if job["job"].startswith("long/")]
    long = [min(job["rank"] for job in others),
            max(job["dscp"] for job in others)]
    for job in jobs["jobs"]:
        if job["job"].startswith("short/"):
            line = json.dumps({"job": job["job"], "tx_bytes": job["tx_bytes"],
                               "rank": job.get("rank"),
                               "dscp": job["dscp"], "long": long})
            if line != last.get(job["job"]):
                print(line, flush=True)
            last[job["job"]] = line
            if job["tx_bytes"] > 4 * int(sys.argv[2]):
                ready.add(job["job"])
    time.sleep(0.01)
PYTHON
sampler=$!
pids="$pids $sampler"
await "the sampler has begun" test -s "$dir/samples"
search short
both_ready() { [ "$(grep -c '"job-ready"' "$dir/short.out")" = 2 ]; }
await "the short search trains" both_ready
wait $sampler || fail "the sampler"

python3 - "$dir" $weights <<'PYTHON' || fail "the start"
import json, sys

samples = [json.loads(line) for line in open(f"{sys.argv[1]}/samples")][1:]
weights = int(sys.argv[2])
for name in "short/t0", "short/t1":
    # The weights go to two workers.  The agent may see a job some milliseconds
    # before its order arrives.
    start = [s for s in samples
             if s["job"] == name and s["tx_bytes"] < 2 * weights]
    assert start, f"{name} has no sample of its start"
    for s in [s for s in start if s["tx_bytes"] > 0] + start[-1:]:
        assert s["rank"] < s["long"][0], s
    assert s["dscp"] > s["long"][1] > 0, s
events = [json.loads(line) for line in open(f"{sys.argv[1]}/short.out")]
kinds = [e["event"] for e in events]
assert kinds.index("stage-begin") < kinds.index("job-ready"), kinds
PYTHON
for search in $searches; do
    kill "$search"
    wait "$search" || :
done
lab down
assert_clean "the lab"
echo PASS

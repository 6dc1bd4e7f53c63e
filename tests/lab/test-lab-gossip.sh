#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Checks that peers which train without a server are handled like other jobs:
# their flows have the DSCPs of their stages, the agents of their hosts know
# their links, and when one peer is killed the others go on or end as their
# scheme requires.
set -eu
. "$SOURCE/tests/lab/lab-functions.sh"

begin_lab g

# Queries the agent of host h0.
ask() {
    ovs-appctl -T 10 -t "/run/stagecoach/lab-$name/hosts/h0/agent.ctl" "$@" \
        2>/dev/null
}

# Both jobs have different ranks and the corresponding DSCPs, and the
# throughput of connections to other hosts is known.
are_ordered() {
    ask agent/jobs >"$dir/jobs" && ask agent/links asker t0 >"$dir/links" &&
        python3 - "$dir/jobs" "$dir/links" <<'PYTHON'
import json, sys

jobs = {j["job"]: j for j in json.load(open(sys.argv[1]))["jobs"]}
links = json.load(open(sys.argv[2]))
good = (set(jobs) == {"asker/t0", "summer/t0"}
        and all("rank" in j and j["dscp"] > 0 and j["tx_bytes"] > 100000
                for j in jobs.values())
        and len({j["rank"] for j in jobs.values()}) == 2
        and links["capacity_bps"] == 50000000
        and 0 < links["left_bps"] <= 50000000
        and sum("rtt_us" in link for link in links["links"]) == 3
        and any(1e6 < link.get("bps", 0) < 1e9 for link in links["links"]))
sys.exit(not good)
PYTHON
}

# The shipped scenario with fewer iterations and one policy.
python3 - "$SOURCE/lab/scenarios/gossip.json" >"$dir/short.json" <<'PYTHON'
import json, sys

scenario = json.load(open(sys.argv[1]))
scenario.update(name="gossip-short", policies=["stage"])
for cojob, (first, last) in zip(scenario["cojobs"], ((10, 25), (8, 16))):
    cojob["stages"] = [{"iterations": first}, {"iterations": last}]
    command = cojob["jobs"][0]["command"]
    command[command.index("--iterations") + 1] = str(last)
print(json.dumps(scenario))
PYTHON
start_run "$dir/short.json"
wait_in_run 40 are_ordered
end_run
python3 - "$dir/report/report.json" <<'PYTHON' || fail "the run"
import json, sys

report = json.load(open(sys.argv[1]))
policy, = report["policies"]
# A connection is known some 20 ms after its first packet, and these jobs have
# few bytes.
assert policy["coverage"] >= 0.97, policy
assert policy["coverage_fabric"] >= 0.97, policy
assert policy["stalls"] == 0 and policy["restarts"] == 0, policy
stages = {(s["cojob"], s["rung"]) for s in report["stages"]}
assert stages == {(c, r) for c in ("asker", "summer") for r in (0, 1)}, stages
PYTHON
assert_clean "the run"

# One of four peers is killed under each scheme.
python3 - "$dir" >"$dir/kill.json" <<'PYTHON'
import json, sys

dir = sys.argv[1]
hosts = ["h0", "h1", "h2", "h3"]


# With a scheme that needs all peers, the job trains until one is killed.
def until(scheme):
    return 150 if scheme in ("netmax", "adpsgd") else 100000


def command(scheme):
    run = ('"$@" 2>DIR/said-SCHEME-%rank & echo $! >DIR/pid-SCHEME-%rank;'
           ' wait $!; echo $? >DIR/code-SCHEME-%rank'
           ).replace("DIR", dir).replace("SCHEME", scheme)
    return ["/bin/sh", "-c", run, "sh", "%trainer", "peer", "--scheme", scheme,
            "--peers", "%hosts", "--port", "%port", "--rank", "%rank",
            "--address", "0.0.0.0", "--shape", "64,128,128,10", "--batch",
            "128", "--sample-cost-us", "1000", "--backend", "cpu", "--iterations",
            str(until(scheme))]


print(json.dumps({
    "name": "gossip-kill", "hosts": 4, "slots": 8, "rate": "50Mbit",
    "policies": ["stage"], "timeout_s": 60, "cojobs": [
        {"name": scheme, "stages": [{"iterations": until(scheme)}], "jobs": [
            {"name": "t0", "hosts": hosts, "command": command(scheme)}]}
        for scheme in ("netmax", "adpsgd", "prague", "allreduce")]}))
PYTHON

# Prints the schemes that have progressed far enough.
ready() {
    ask agent/jobs >"$dir/jobs" && python3 -c '
import json, sys
print(*(j["job"].split("/")[0] for j in json.load(open(sys.argv[1]))["jobs"]
        if j.get("iteration", 0) >= 5))
' "$dir/jobs"
}

# Kills one peer of each scheme that is ready, until all schemes have lost one:
# the order of the stages decides which is the first, and it may end before the
# last has begun.
kill_ready() {
    for scheme in $(ready); do
        case $unharmed in
        *" $scheme "*)
            kill -KILL "$(cat "$dir/pid-$scheme-2")" || early="$early $scheme"
            unharmed=$(echo "$unharmed" | sed "s/ $scheme / /")
            ;;
        esac
    done
    [ "$unharmed" = " " ]
}

start_run "$dir/kill.json"
unharmed=" netmax adpsgd prague allreduce "
early=
wait_in_run 60 kill_ready
[ -z "$early" ] || fail "over before a peer was killed:$early"
end_run
for scheme in netmax adpsgd prague allreduce; do
    case $scheme in
    netmax | adpsgd) code=0 ;;
    *) code=1 ;;
    esac
    for rank in 0 1 3; do
        said="$dir/said-$scheme-$rank"
        [ "$(cat "$dir/code-$scheme-$rank")" = $code ] ||
            fail "$scheme: peer $rank ended with $(cat "$dir/code-$scheme-$rank"): $(cat "$said")"
        [ "$(grep -c 'died' "$said")" = 1 ] && [ "$(wc -l <"$said")" = 1 ] ||
            fail "$scheme: peer $rank said: $(cat "$said")"
    done
done
assert_clean "the run with deaths"
echo PASS

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Checks that two unmodified ranks of PyTorch's DistributedDataParallel are
# handled as a job of the lab: their traffic has DSCPs, their iterations are
# counted, and the count ends the first stage.  With hosts that order in the
# kernel nearly no byte is of no job.  Also checks the handling of a command that
# fails.
set -eu
. "$SOURCE/tests/lab/lab-functions.sh"

begin_lab y

# scenario COMMAND...: prints a scenario; the command is given as JSON strings.
scenario() {
    cat <<EOF_JSON
{"name": "pytorch-short", "hosts": 2, "rate": "50Mbit", "policies": ["stage"],
 "timeout_s": 80,
 "cojobs": [{"name": "ddp", "stages": [{"iterations": 15}, {"iterations": 30}],
             "jobs": [{"name": "t0", "hosts": ["h0", "h1"],
                       "command": [$*]}]}]}
EOF_JSON
}

scenario '"/bin/sh", "-c", "echo rank %rank of %world; exit 3"' \
    >"$dir/fails.json"
if lab run "$dir/fails.json" --out "$dir/report" >"$dir/out" 2>&1; then
    fail "a command that fails is no failure"
fi
grep -q 'ddp/t0: the process of rank [01] failed (exit status 3)' \
    "$dir/out" || fail "the run"
grep -q 'rank [01] of 2' "$dir/out" || fail "the run"
assert_clean "a command that failed"

# Uses the Debian interpreter, whatever else is in PATH.
if ! /usr/bin/python3 -c 'import torch' 2>/dev/null; then
    echo "needs python3-torch"
    exit 77
fi
scenario '"/usr/bin/python3", "%scenario/pytorch-ddp.py", "--iterations",
    "30", "--step-ms", "100", "--times", "%log/times-%rank"' \
    >"$dir/pytorch.json"
cp "$SOURCE/lab/scenarios/pytorch-ddp.py" "$dir"
for run in shim:0.98 bpf:0.999; do
    actuator=${run%:*} least=${run#*:}
    if [ "$actuator" = bpf ] && ! grep -qw bpf /proc/filesystems; then
        echo "skip: no BPF"
        exit 77
    fi
    lab run "$dir/pytorch.json" --actuator "$actuator" --keep \
        --out "$dir/$actuator" >"$dir/out" 2>&1 || fail "the run with $actuator"
    python3 - "$dir/$actuator" "$least" <<'PYTHON' || fail "the report with $actuator"
import json, sys

report = json.load(open(sys.argv[1] + "/report.json"))
times = [float(line.split()[1])
         for line in open(sys.argv[1] + "/logs/stage/times-0")]
cojob, = report["cojobs"]
assert len(times) == 30, times
# The two ranks exchange a broadcast of the model and 30 sums of gradients, of
# 1.3 MB each.
assert 60e6 < cojob["tagged_bytes"] < 110e6, cojob
assert cojob["coverage"] >= float(sys.argv[2]), cojob
assert abs(cojob["iterations"]["t0"] - 30) <= 1.5, cojob
begin, end = [s for s in report["stages"] if s["policy"] == "stage"]
assert end["end"] - end["start"] > 1, report["stages"]
PYTHON
    assert_clean "a job of PyTorch with $actuator"
done
echo PASS

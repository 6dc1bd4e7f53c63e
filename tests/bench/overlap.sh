#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Measures the gain of overlap: gradients are sent in parts while others are
# computed, and weights return meanwhile.  A worker and a server run in
# namespaces of their own, joined by a link of each of $RATES (Mbit/s each way,
# default "200 1000"), alternately with and without --overlap, $ROUNDS times
# (default 3).  Reports medians.  Prints one JSON object on standard output.
#
# The model is an MLP of 784,1024,1024,10, 7.4 MB, with batches of 256.
set -eu
cd "$(dirname "$0")/../.."
trainer=$PWD/build/trainer/stagecoach-trainer
skip() {
    echo "{\"bench\": \"overlap\", \"skipped\": \"$*\"}"
    exit 0
}
[ "$(id -u)" = 0 ] || skip "needs root"
[ -x "$trainer" ] || skip "built without OpenBLAS"

prefix=scover-$$
dir=$(mktemp -d "/tmp/$prefix.XXXXXX")
server=
cleanup() {
    trap - EXIT INT TERM HUP
    if [ -n "$server" ]; then
        kill "$server" 2>/dev/null || true
    fi
    for end in s w; do
        ip netns del "$prefix-$end" 2>/dev/null || true
    done
    rm -rf "$dir"
}
trap cleanup EXIT
trap 'exit 1' INT TERM HUP

inside() {      # s|w COMMAND...
    end=$1
    shift
    timeout 60 ip netns exec "$prefix-$end" "$@"
}

net() {         # MBIT_PER_S
    for end in s w; do
        inside "$end" tc qdisc replace dev l0 root tbf rate "$1mbit" \
            burst 64kb latency 30ms
    done
}

model="--shape 784,1024,1024,10 --batch 256 --samples 2048 --validation 64
       --eval-every 1 --backend cpu"

# Its milliseconds an iteration are between the second event and the last.
train() {       # RATE on|off ROUND
    inside s "$trainer" server --address 10.0.0.1 --port 4000 \
        > "$dir/server" < /dev/null &
    server=$!
    # shellcheck disable=SC2086
    inside w "$trainer" worker --server 10.0.0.1:4000 --overlap "$2" $model \
        --iterations 12 < /dev/null > "$dir/$1.$2.$3"
    wait "$server"
    server=
}

for end in s w; do
    ip netns add "$prefix-$end"
done
ip link add l0 netns "$prefix-s" type veth peer name l0 \
    netns "$prefix-w"
ip -n "$prefix-s" addr add 10.0.0.1/24 dev l0
ip -n "$prefix-w" addr add 10.0.0.2/24 dev l0
for end in s w; do
    ip -n "$prefix-$end" link set l0 up
done
# shellcheck disable=SC2086
timeout 60 "$trainer" local $model --iterations 12 < /dev/null > "$dir/alone"
round=0
while [ $round -lt "${ROUNDS:-3}" ]; do
    round=$((round + 1))
    for rate in ${RATES:-200 1000}; do
        net "$rate"
        for overlap in off on; do
            echo "round $round, $rate Mbit/s, overlap $overlap" >&2
            train "$rate" "$overlap" "$round"
        done
    done
done
python3 - "$dir" <<'EOF_PYTHON'
import glob
import json
import os
import statistics
import sys


def iteration_ms(path):
    """Milliseconds of an iteration, and the last loss."""
    lines = [json.loads(line) for line in open(path)]
    steps = [line for line in lines if line["event"] == "progress"]
    first, last = steps[1], steps[-1]
    return ((last["time"] - first["time"])
            / (last["iteration"] - first["iteration"]), last["loss"])


figures, baseline, losses = {}, {}, set()
for path in glob.glob(os.path.join(sys.argv[1], "*.off.1")):
    rate = os.path.basename(path).split(".")[0]
    times = {}
    for overlap in ("on", "off"):
        runs = [iteration_ms(p) for p in
                glob.glob(os.path.join(sys.argv[1], f"{rate}.{overlap}.*"))]
        times[overlap] = statistics.median(run[0] for run in runs)
        losses |= {run[1] for run in runs}
    figures[f"ms_at_{rate}"] = round(times["on"], 1)
    figures[f"vs_whole_at_{rate}"] = round(times["on"] / times["off"], 3)
    baseline[f"whole_ms_at_{rate}"] = round(times["off"], 1)
    baseline[f"wire_ms_at_{rate}"] = round(
        4 * (784 * 1024 + 1024 + 1024 * 1024 + 1024 + 1024 * 10 + 10) * 8
        / float(rate) / 1e3, 1)
baseline["alone_ms"] = round(iteration_ms(
    os.path.join(sys.argv[1], "alone"))[0], 1)
figures["same_loss"] = len(losses) == 1
print(json.dumps({"bench": "overlap", "figures": figures,
                  "baseline": baseline}))
EOF_PYTHON

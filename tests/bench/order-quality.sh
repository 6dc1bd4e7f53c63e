#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Measures the quality of orders on the public coflow trace, with all coflows
# at time 0 or with their arrival times, and on a larger trace sampled from it:
# mean completion times under the policies, compared with the bound of the
# linear program and with the better of sincronia and sebf.  Every policy runs
# on the trace with arrival times; the slow policies skip the other traces.
# Prints one JSON object on standard output, progress on standard error.
set -eu
cd "$(dirname "$0")/../.."
data=${STAGECOACH_DATA:-../shared/data}/coflow
if [ ! -e "$data/FB2010-1Hr-150-0.txt" ]; then
    echo "{\"bench\": \"order-quality\", \"skipped\": \"no traces in $data," \
         "set STAGECOACH_DATA\"}"
    exit 0
fi
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
trap 'exit 1' INT TERM HUP
gunzip -c "$data/FBUP-2000-0.9-s1.txt.gz" > "$dir/up.txt"

simulate() {    # NAME FILE POLICIES [OPTION]...
    name=$1 file=$2 policies=$3
    shift 3
    echo "$name: $policies" >&2
    for policy in $policies; do
        set -- "$@" --policy "$policy"
    done
    build/cli/stagecoach sim "$file" --format json "$@" > "$dir/$name.json"
}

# The bound does not depend on the order: coflows come when they come.
bound() {       # NAME FILE [OPTION]...
    name=$1 file=$2
    shift 2
    simulate "$name-bound" "$file" stage --bound lp "$@"
}
trace=$data/FB2010-1Hr-150-0.txt
{
    bound fb_online "$trace"
    bound fb_offline "$trace" --offline
    bound fbup2000_online "$dir/up.txt"
} &
simulate fb_online "$trace" "stage sincronia sebf sebf-static tcf stage-early \
    early intensity fifo plain"
simulate fb_offline "$trace" "stage sincronia sebf tcf" --offline
simulate fbup2000_online "$dir/up.txt" "stage sincronia sebf tcf"
wait $!
python3 - "$dir" <<'EOF_PYTHON'
import json
import os
import sys


def read(name):
    with open(os.path.join(sys.argv[1], name + ".json")) as stream:
        return json.load(stream)["policies"]


figures, baseline = {}, {}
for name in ("fb_offline", "fb_online", "fbup2000_online"):
    means = {p["name"]: p["mean"] for p in read(name)}
    bound = read(name + "-bound")[0]["bound"]
    best = min(means["sincronia"], means["sebf"])
    figures[name + "_gap"] = round(means["stage"] / bound - 1, 4)
    figures["gain_" + name.replace("2000_online", "2000")] = round(
        1 - means["stage"] / best, 4)
    baseline[name] = {"lp_bound": round(bound, 4)}
    baseline[name].update(
        (policy, {"mean": round(mean, 4), "gap": round(mean / bound - 1, 4)})
        for policy, mean in means.items())
print(json.dumps({"bench": "order-quality", "figures": figures,
                  "baseline": baseline}))
EOF_PYTHON

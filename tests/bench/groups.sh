#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Compares the scheme groups, with one of eight workers delayed by 300 %, with
# bsp and eight equal workers: the ratio of the times to a loss, the loss of
# accuracy after the same number of iterations, and the final number of groups.
# Prints one JSON object on standard output, progress on standard error.
set -eu
cd "$(dirname "$0")/../.."
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
trap 'exit 1' INT TERM HUP

spec() {        # NAME SCHEMES
    cat > "$dir/$1.json" <<EOF_SPEC
{"schemes": [$2], "workers": 8, "profile": "$1-profile.json",
 "arguments": ["--batch", "512", "--shape", "32,48,10", "--learning-rate",
               "0.1", "--eval-every", "2", "--validation", "2048", "--backend",
               "cpu"],
 "iterations": 150, "limit_s": 25}
EOF_SPEC
}
cat > "$dir/equal-profile.json" <<'EOF_PROFILE'
{"name": "equal", "workers": [{"samples_per_s": 800, "jitter": 0.03}]}
EOF_PROFILE
cat > "$dir/delayed-profile.json" <<'EOF_PROFILE'
{"name": "delayed", "workers": [
    {"count": 7, "samples_per_s": 800, "jitter": 0.03},
    {"samples_per_s": 200, "jitter": 0.03}]}
EOF_PROFILE
spec equal '"bsp"'
spec delayed '"groups"'
for name in equal delayed; do
    timeout 150 build/trainer/stagecoach-trainer compare "$dir/$name.json" \
        --format json > "$dir/$name.out" 2> "$dir/$name.err"
    cat "$dir/$name.err" >&2
done
python3 - "$dir" <<'EOF_PYTHON'
import json
import re
import sys

TARGET = 1.5
dir = sys.argv[1]
none, = json.load(open(dir + "/equal.out"))["schemes"]
groups, = json.load(open(dir + "/delayed.out"))["schemes"]


def seconds(run):
    return next(p[0] for p in run["points"] if p[2] <= TARGET)


counts = re.findall(r"(\d+) groups", open(dir + "/delayed.err").read())
print(json.dumps({
    "bench": "groups",
    "figures": {
        "time_vs_no_delay": round(seconds(groups) / seconds(none), 3),
        "accuracy_loss": round(none["accuracy"] - groups["accuracy"], 4),
        "groups": int(counts[-1]) if counts else 1,
    },
    "baseline": {
        "no_delay_s": round(seconds(none), 2),
        "groups_s": round(seconds(groups), 2),
        "no_delay_accuracy": none["accuracy"],
        "groups_accuracy": groups["accuracy"],
    },
}))
EOF_PYTHON

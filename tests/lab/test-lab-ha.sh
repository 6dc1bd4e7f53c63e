#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Checks a run in which leaders are killed repeatedly: the order returns, no
# stage is lost, and the switch has one master and keeps its flows.
set -eu
. "$SOURCE/tests/lab/lab-functions.sh"

need_root
begin ha

timeout 200 "$BUILD/cli/stagecoach" lab run --ha --name tha --policy stage \
    --out "$dir" "$SOURCE/lab/scenarios/quickstart.json" 2>"$dir/run.log" ||
    fail "the run"
python3 - "$dir/report.json" <<'END'
import json
import sys

with open(sys.argv[1]) as f:
    ha = json.load(f)["policies"][0]["ha"]
print(ha)
# The last fault may be too near to the end for a recovery.
assert ha["faults"] >= 3 and ha["back"] >= ha["faults"] - 1
assert ha["order_back_s"] < 15
# From the switch's log: changes that it accepted from a controller that was
# not primary.
assert ha["double_masters"] == 0 and ha["switch_changes"] > 0
# A replaced leader learns that within one probe interval of its database.
assert ha["same_leads"] == 0 and ha["overlap_s"] <= 5
assert ha["flows_flushed"] == 0
assert ha["stages_lost"] == 0
END
echo "ok: all"

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# A run in which what leads is killed again and again: the order comes back,
# no stage is lost, the switch has one master and keeps its flows.
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
# The last fault may be too near to the end for anybody to come back.
assert ha["faults"] >= 3 and ha["back"] >= ha["faults"] - 1
assert ha["order_back_s"] < 15
# By the switch's account: a change that it took from who was not primary.
assert ha["double_masters"] == 0 and ha["switch_changes"] > 0
# Who has been replaced hears of it, within a probe of its database.
assert ha["same_leads"] == 0 and ha["overlap_s"] <= 5
assert ha["flows_flushed"] == 0
assert ha["stages_lost"] == 0
END
echo "ok: all"

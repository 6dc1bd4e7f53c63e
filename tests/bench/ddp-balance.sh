#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Runs ddp-balance.py, which has the figures, in the lab: one rank of PyTorch's
# DistributedDataParallel on each host.  Prints one JSON object on standard
# output, progress on standard error.
set -eu
cd "$(dirname "$0")/../.."
build=$(realpath "${BUILD:-build}")
if ! /usr/bin/python3 -c 'import torch' 2>/dev/null; then
    echo "ddp-balance: needs python3-torch, which \$BUILD_TORCH=true makes" \
         "deps/setup.sh install" >&2
    exit 77
fi
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
trap 'exit 1' INT TERM HUP
cat >"$dir/ddp-balance.json" <<EOF_JSON
{"name": "ddp-balance", "hosts": 3, "rate": "500Mbit", "policies": ["stage"],
 "timeout_s": 200,
 "cojobs": [{"name": "ddp", "stages": [{"iterations": 100}],
             "jobs": [{"name": "t0", "hosts": ["h0", "h1", "h2"],
                       "command": ["/bin/sh", "-c",
  "LD_LIBRARY_PATH=$build/trainer PYTHONPATH=$PWD/docs/integrations exec /usr/bin/python3 -B $PWD/tests/bench/ddp-balance.py >%log/figures-%rank"]}]}]}
EOF_JSON
"$build/cli/stagecoach" lab run "$dir/ddp-balance.json" --keep \
    --name "q$(($$ % 1000000))" --out "$dir/report" >&2
echo "{\"bench\": \"ddp-balance\"," \
    "\"figures\": $(cat "$dir/report/logs/stage/figures-0")}"

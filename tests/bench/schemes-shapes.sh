#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Measures each scheme with several kinds of stragglers, with eight workers of
# 1,600 samples per second and batch 512 (an iteration of 0.04 s without a
# straggler): in virtual time (clusters.py), and as root with workers' links of
# 100 Mbit/s, transfers about as long as computing (essp-links.py).
#
# Prints one JSON object on standard output, progress on standard error.
set -eu
cd "$(dirname "$0")/../.."
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
trap 'exit 1' INT TERM HUP

python3 tests/bench/clusters.py build/tests/bench/schemes-virtual shapes \
    > "$dir/shapes"
echo null > "$dir/links"
if [ "$(id -u)" = 0 ]; then
    timeout 100 python3 tests/bench/essp-links.py > "$dir/links"
fi
python3 - "$dir" <<'EOF_PYTHON'
import json
import sys

shapes, links = (json.load(open(f"{sys.argv[1]}/{name}"))
                 for name in ("shapes", "links"))
print(json.dumps({
    "bench": "schemes-shapes", "figures": shapes["figures"] | {
        "links_ssp_vs_essp": links and round(links["ssp"] / links["essp"], 3)},
    "baseline": {"links": links, **shapes["baseline"]}}))
EOF_PYTHON

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Measures the time of the simulator: the public coflow trace by rank and in
# the plain network, and clusters of searches of increasing size, up to $HOSTS hosts
# (default 10000).  Prints one JSON object on standard output, a plot of the
# processor time in $PLOT (default build/sim-speed.svg), and progress on
# standard error.
set -eu
cd "$(dirname "$0")/../.."
bench=build/tests/bench/sim-speed
trace=${STAGECOACH_DATA:-../shared/data}/coflow/FB2010-1Hr-150-0.txt
if [ ! -e "$trace" ]; then
    echo "{\"bench\": \"sim-speed\", \"skipped\": \"no trace $trace, set" \
         "STAGECOACH_DATA\"}"
    exit 0
fi
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
trap 'exit 1' INT TERM HUP

for order in stage plain; do
    echo "trace, $order" >&2
    "$bench" trace "$trace" $order > "$dir/$order"
done
for hosts in 625 1250 2500 5000 10000; do
    [ $hosts -le "${HOSTS:-10000}" ] || continue
    echo "$hosts hosts" >&2
    "$bench" searches $hosts > "$dir/$hosts"
done
python3 - "$dir" "${PLOT:-build/sim-speed.svg}" <<'EOF_PYTHON'
import json
import math
import os
import sys

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 720, 420, 80, 40, 30, 50


def log_axis(values, begin, end):
    """Where values are between begin and end, and the powers of 10 there."""
    low = math.floor(math.log10(min(values)))
    high = math.ceil(math.log10(max(values)))

    def place(value):
        share = (math.log10(value) - low) / (high - low)
        return round(begin + (end - begin) * share, 1)
    return place, [10.0 ** i for i in range(low, high + 1)]


def plot(growth, path):
    """Draws processor time by hosts, and beside it what linear growth is."""
    hosts = sorted(growth)
    first = growth[hosts[0]] / hosts[0]
    lines = [("measured", "#0969da", "", [growth[n] for n in hosts]),
             ("linear", "#888", "6 4", [first * n for n in hosts])]
    x, xs = log_axis(hosts, LEFT, WIDTH - RIGHT)
    y, ys = log_axis(lines[0][3] + lines[1][3], HEIGHT - BOTTOM, TOP)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} '
           f'{HEIGHT}" font-family="sans-serif" font-size="12">',
           f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>']
    for n in xs:
        out.append(f'<path d="M{x(n)} {TOP}V{HEIGHT - BOTTOM}" stroke="#ddd"/>'
                   f'<text x="{x(n)}" y="{HEIGHT - BOTTOM + 18}" '
                   f'text-anchor="middle">{n:g}</text>')
    for s in ys:
        out.append(f'<path d="M{LEFT} {y(s)}H{WIDTH - RIGHT}" stroke="#ddd"/>'
                   f'<text x="{LEFT - 8}" y="{y(s) + 4}" '
                   f'text-anchor="end">{s:g} s</text>')
    for i, (name, colour, dash, seconds) in enumerate(lines):
        points = " ".join(f"{x(n)},{y(s)}" for n, s in zip(hosts, seconds))
        out.append(f'<polyline points="{points}" fill="none" stroke="{colour}"'
                   f' stroke-width="2" stroke-dasharray="{dash}"/>'
                   f'<text x="{LEFT + 20}" y="{TOP + 20 + 18 * i}" '
                   f'fill="{colour}">{name}</text>')
    out.append(f'<text x="{WIDTH / 2}" y="{HEIGHT - 10}" '
               'text-anchor="middle">hosts</text></svg>')
    with open(path, "w") as stream:
        print("\n".join(out), file=stream)


runs = {}
for name in os.listdir(sys.argv[1]):
    with open(os.path.join(sys.argv[1], name)) as stream:
        runs[name] = json.load(stream)
growth = {int(name): run["cpu_seconds"] for name, run in runs.items()
          if name.isdigit()}
if len(growth) > 1:
    plot(growth, sys.argv[2])
largest = max(growth)
print(json.dumps({
    "bench": "sim-speed",
    "figures": {
        "fb_seconds": runs["stage"]["seconds"],
        "fb_plain_seconds": runs["plain"]["seconds"],
        "fb_rss_mib": max(runs[o]["rss_mib"] for o in ("stage", "plain")),
        "big_seconds": runs[str(largest)]["seconds"],
        "big_cpu_seconds": growth[largest],
        "big_hosts": largest,
        "big_rss_mib": runs[str(largest)]["rss_mib"],
        "growth": [[hosts, growth[hosts]] for hosts in sorted(growth)],
    },
    "baseline": {},
}))
EOF_PYTHON

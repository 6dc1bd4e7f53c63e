#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# check-units.sh UNIT...: systemd takes the units as they are, and finds that
# each gives up what it can.  Exits 77 to skip.
set -eu

command -v systemd-analyze >/dev/null ||
    { echo "skip: no systemd-analyze"; exit 77; }
dir=$(mktemp -d "${TMPDIR:-/tmp}/sct-units-$$-XXXXXX")
trap 'rm -rf "$dir"' EXIT

# Programs need not be installed for this; an instance stands for its template.
for unit in "$@"; do
    name=$(basename "$unit" | sed 's/@\.service/@intent.service/')
    sed 's|^\(Exec[A-Za-z]*=\)[^ ]*|\1/bin/true|; s/%i/intent/' "$unit" \
        >"$dir/$name"
done
cp "$dir/stagecoach-database@intent.service" \
    "$dir/stagecoach-database@hosts.service"
if ! systemd-analyze verify --man=no "$dir"/*.service 2>"$dir/out"; then
    cat "$dir/out" >&2
    exit 1
fi
if grep "$dir" "$dir/out" >&2; then
    exit 1
fi
# Exposure in tenths at most: agent and shim have root's work to do.
for pair in controller:15 database@intent:15 card@intent:25 agent:45 \
    shim:50; do
    unit=$dir/stagecoach-${pair%:*}.service
    systemd-analyze security --offline=true --no-pager \
        --threshold="${pair#*:}" "$unit" >"$dir/out" 2>&1 || {
        cat "$dir/out" >&2
        echo "FAIL: ${pair%:*} is more exposed than ${pair#*:}" >&2
        exit 1
    }
    tail -n 1 "$dir/out"
done

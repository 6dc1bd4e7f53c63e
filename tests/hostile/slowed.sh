#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# shellcheck disable=SC2086
#
# How much attacks of the scenes identity, tables and controller slow Ann down.
# A job of hers sends a fixed number of bytes from h0 to h1; somebody without a
# job sends there all the time, so that she would take twice the time without
# her level.  Each attack runs beside that, with its trick and without; one JSON
# line for each.  With one pair, only quick attacks, and no limit.  A storm of
# forks is not among them: it takes the processors with sockets or without.
set -eu
. "$SOURCE/tests/lab/lab-functions.sh"
. "$SOURCE/tests/hostile/slowed-functions.sh"

begin_lab sl
need setpriv python3
show() { "$stagecoach" status; cat "$dir/attack.out"; }
STAGECOACH_RUNDIR=/run/stagecoach/lab-$name
export STAGECOACH_RUNDIR
stagecoach=$BUILD/cli/stagecoach
size=4000000 failed=
[ $pairs -gt 1 ] || size=1000000
bob="setpriv --reuid 12002 --regid 12002 --clear-groups --no-new-privs"
named="env STAGECOACH_COJOB=bob STAGECOACH_JOB=b0"
chmod 755 "$dir"
cp "$BUILD/tests/lab/traffic" "$BUILD/tests/lab/fake-job" \
    "$BUILD/tests/hostile/crowd" "$SOURCE/tests/hostile/identity.py" \
    "$SOURCE/tests/hostile/shim_messages.py" "$dir/"

# One of two words, by the trick.
either() { if [ "$1" = yes ]; then echo "$2"; else echo "$3"; fi; }
await_ready() { await "$1 processes are there" grep -q ready "$dir/attack.out"; }

# As another user.
hijack() {
    launch h0 env "$(either $1 STAGECOACH_COJOB=ranked STAGECOACH_COJOB=bob)" \
        STAGECOACH_JOB=a0 $bob unshare -Urn python3 "$dir/identity.py" hijack \
        10.77.0.1 "$(either $1 5008 5009)" 10.77.0.2 6008
}
subordinates() {
    launch h0 python3 "$dir/identity.py" subordinates 12002 "$dir/fake-job" \
        10.77.0.2 6001 $(either $1 "" --plain)
}
rogue() {
    launch h0 python3 "$dir/identity.py" rogue "$telemetry" 0 \
        "$(either $1 ranked rogue)/a0"
}

# Tables.
crowd() { launch h0 $named $bob "$dir/crowd" "$@"; }
flows() { crowd flows 4000000 10.77.0.3 "$(either $1 20000 20001)"; }
claims() {
    crowd stay 4600 "$(either $1 10.77.0.3 0.0.0.0)" 6102
    await_ready 4600
}
remotes() {
    crowd connect 1000 "$(either $1 10.99.0.1 10.77.0.1)" 6107
    await_ready 1
}
connections() {
    crowd connect 4200 "$(either $1 10.77.0.3 10.77.0.1)" 6106
    await_ready 1
}
namespaces() {
    # shellcheck disable=SC2016 # Variables of the inner shell.
    launch h0 env "$(either $1 STAGECOACH_COJOB=bob NO_COJOB=bob)" $bob sh -c '
        for i in $(seq 300); do
            STAGECOACH_JOB=b$i unshare $1 "$2" stay 0 "$3" 1 &
        done
        wait' sh "$(either $1 -Urn -Ur)" "$dir/crowd" \
        "$(either $1 127.0.0.1 0.0.0.0)"
    sleep 3
}
cgroups() {                     # The agent removes empty ones, too.
    find "$tree/bob" "$other" -depth -type d -exec rmdir {} + 2>/dev/null || true
    mkdir -p "$tree/bob" "$other"
    chown 12002 "$tree/bob" "$other"
    (cd "$(either $1 "$tree/bob" "$other")" && seq 2000 | $bob xargs mkdir)
}

# The controller.
cat >"$dir/clients.py" <<'PYTHON'
import os, sys, time
sys.path.insert(0, os.environ["SOURCE"] + "/tests/hostile")
import controller

what, path, trick = sys.argv[1], sys.argv[2], sys.argv[3] == "yes"
if what == "generation":
    controller.Agent(path, "h6", **({"generation": 2**63 - 1} if trick else {}))
    time.sleep(60)
rest = controller.Rest(path)
for i in range(10000):
    name = f"/v1/cojobs/s{i % 400 if trick else 0}"
    rest.ask("PUT", name, {"weight": 1})
    rest.ask("PUT", name + "/stages/0", {"iterations": 100, "jobs": ["t"]})
PYTHON
client() { launch h0 env BUILD="$BUILD" SOURCE="$SOURCE" python3 "$dir/clients.py" "$@"; }
generation() { client generation "$telemetry" "$1"; }
stages() { client stages "$rest" "$1"; }

transfer() {
    on h0 "$stagecoach" run --cojob ranked --job a0 -- python3 \
        "$dir/shim_messages.py" transfer 10.77.0.2 6008 5008 $size
}
# slowed ATTACK FUNCTION
slowed() {
    measure "$1" transfer "$2"
    echo "{\"attack\": \"$1\", \"slowed\": $slowed}"
    [ $pairs = 1 ] || ! is_above 1.05 || failed="$failed $1"
}
long() { [ $pairs = 1 ] || slowed "$@"; }

sed 's/"order":/"trust": "environment", "order":/' \
    "$SOURCE/policies/stage.json" >"$dir/policy.json"
lab up "$SOURCE/lab/scenarios/smoke.json" --policy "$dir/policy.json" >"$dir/out"
telemetry=$(find "$STAGECOACH_RUNDIR/" -name 'telemetry*.sock' | head -n 1)
rest=$(find "$STAGECOACH_RUNDIR/" -name 'rest*.sock' | head -n 1)
# shellcheck disable=SC2016 # The host's own variable.
tree=$(cgroup_mount)/$(on h0 sh -c 'echo "$STAGECOACH_CGROUP"')
other=$(cgroup_mount)/other
chmod a+x "$(cgroup_mount)"
on h1 python3 "$dir/shim_messages.py" sink 6001 6008 >"$dir/sink" 2>&1 &
pids="$pids $!"
on h2 ip route add local 10.99.0.0/16 dev lo
on h0 ip route add 10.99.0.0/16 via 10.77.0.3
on h2 timeout 900 python3 -c 'import socket, time
servers = [socket.create_server(("", p), backlog=4096) for p in (6106, 6107)]
time.sleep(900)' &
pids="$pids $!"
await "somebody listens" \
    on h1 grep -qi ":$(printf %04X 6008) " /proc/net/tcp
on h0 $bob "$dir/traffic" bulk 10.77.0.2 6001 3000000 >"$dir/rival" 2>&1 &
pids="$pids $!"
"$stagecoach" stage begin --cojob ranked --rung 0 --iterations 1000 --jobs a0
on h0 "$stagecoach" run --cojob ranked --job a0 -- sleep 3000 &
pids="$pids $!"
sleep 1
alone=$(transfer)
echo "$alone s without an attack" >&2

slowed netns-hijack-env hijack
slowed rogue-host rogue
long flows flows
slowed cc-table connections
long largest-generation generation
slowed many-stages stages
long subordinate-users subordinates
long claims claims
long namespaces namespaces
long cc-remotes remotes
long cgroups cgroups
lab down
[ -z "$failed" ] || fail "slowed Ann down:$failed"
echo PASS

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Checks that one address cannot take all places of the controller's telemetry
# port: while it holds as many silent connections as it gets, an agent of
# another address connects at once.  Needs neither root nor namespaces.
set -eu
. "$SOURCE/tests/lab/lab-functions.sh"

PATH=$PATH:/usr/sbin:/sbin
need ovsdb-server ovs-appctl python3
begin limits
[ "$(ulimit -Hn)" = unlimited ] || [ "$(ulimit -Hn)" -ge 10000 ] ||
    { echo "skip: few file descriptors"; exit 77; }
ulimit -n 10000
clean_up() { stop_databases run; }

port=$(python3 -c 'import socket
s = socket.create_server(("127.0.0.1", 0))
print(s.getsockname()[1])')
start_databases run
"$BUILD/controller/stagecoach-controller" \
    --policy="$SOURCE/policies/stage.json" --unixctl="$dir/ctl" \
    --intent="unix:$dir/run/intent.sock" --hosts="unix:$dir/run/hosts.sock" \
    --telemetry="ptcp:$port:127.0.0.1" --max-agents=4096 --rest=none \
    -vconsole:info -vsyslog:off 2>"$dir/controller.log" &
pids="$pids $!"
ask() { ovs-appctl -T 10 -t "$dir/ctl" "$@"; }
leads() { ask controller/status | grep -q '"state":"active"'; }
await "the controller leads" leads

# 4,200 connections from 127.0.0.2, each opened again when it is closed; prints
# how many it holds.
cat >"$dir/silent.py" <<'PYTHON'
import select, socket, sys, time

held = {}
poll = select.poll()
opened = 0

def add():
    sock = socket.socket()
    sock.setblocking(False)
    sock.bind(("127.0.0.2", 0))
    sock.connect_ex(("127.0.0.1", int(sys.argv[1])))
    held[sock.fileno()] = sock
    poll.register(sock, select.POLLIN)

def is_open(sock):
    try:
        sock.getpeername()
        return True
    except OSError:
        return False

end = time.monotonic() + 60
shown = 0
while time.monotonic() < end:
    while len(held) < 4200:
        add()
        opened += 1
    for fd, _ in poll.poll(20):
        poll.unregister(fd)
        held.pop(fd).close()
    if time.monotonic() > shown + 0.5:
        shown = time.monotonic()
        print(opened, sum(map(is_open, held.values())), flush=True)
PYTHON
python3 "$dir/silent.py" "$port" >"$dir/held" 2>"$dir/silent.log" &
pids="$pids $!"
many_are_opened() { [ "$(tail -n 1 "$dir/held" | cut -d' ' -f1)" -ge 4400 ]; }
await "silent connections are closed and opened again" many_are_opened

"$BUILD/tests/lab/fake-agent" "tcp:127.0.0.1:$port" h0 1000000000 \
    >"$dir/agent.out" &
pids="$pids $!"
agent_is_connected() { ask controller/status | grep -q '"agents":1'; }
wait_for 5 "an agent connects beside them" agent_is_connected
echo "after $took ms"
# The program adds up its counters once a second.
is_limited() { ask coverage/show | grep -q '^telemetry_stranger '; }
wait_for 5 "connections were closed by the limit" is_limited
[ "$(grep -c 'connections without a report, the oldest is closed' \
    "$dir/controller.log")" -le 20 ] || fail "the log is full"

# More agents than the process may have files for.
(
    ulimit -n 3000
    timeout 10 "$BUILD/controller/stagecoach-controller" --max-agents=4096 \
        --policy="$SOURCE/policies/stage.json" --unixctl="$dir/few" \
        --telemetry="unix:$dir/few.sock" --rest=none 2>"$dir/few.log"
) && fail "a controller with too few files starts"
grep -qF -- '--max-agents: 5120 open files are needed and 3000 are allowed' \
    "$dir/few.log" || fail "$(cat "$dir/few.log")"
echo "ok: all"

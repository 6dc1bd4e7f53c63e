#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Checks databases that hang, have no space and are damaged, on a machine with
# systemd: each is an alarm within 5 s, heals without an operator where it can,
# and no stage is lost, except those in a damaged file, which is kept.
set -eu
. "$SOURCE/tests/lab/lab-functions.sh"
. "$SOURCE/tests/lab/machine-functions.sh"

PATH=$PATH:/usr/sbin:/sbin
need_root
need_systemd
need ovsdb-server ovs-appctl python3
begin database-faults
prefix=scf$(($$ % 100000))-

clean_up() { forget_machines c1; }
show() { in_machine c1 journalctl --no-pager --lines 60 --unit 'stagecoach-*'; }

make_machines
install_version installed
boot c1 installed
c1() { in_machine c1 "$@"; }
state=/var/lib/stagecoach
unit=stagecoach-database@intent

# The databases are on a small disk of their own.
c1 mkdir -p $state
c1 mount -t tmpfs -o size=160m tmpfs $state
c1 chown stagecoach: $state
c1 systemctl enable --now stagecoach-controller
run=/proc/$(first_process c1)/root/run/stagecoach/controller
ask() { ovs-appctl -T 2 -t "$run/controller.ctl" "$@"; }
leads() { ask controller/status | grep -q '"state":"active"'; }
await "the controller leads" leads
# health.py SECONDS ALARM STATUS [COMMAND...]: runs COMMAND and waits until an
# alarm that contains ALARM ("": none) and the status of /readyz ("any": not
# looked at) are there.  The stages of this test have no processes, so that
# their alarm does not count.
cat >"$dir/health.py" <<'PYTHON'
import http.client, json, socket, subprocess, sys, time

RUN, SECONDS, ALARM, STATUS = sys.argv[1:5]

def call(method):
    with socket.socket(socket.AF_UNIX) as sock:
        sock.settimeout(2)
        sock.connect(RUN + "/controller.ctl")
        request = {"method": method, "params": [], "id": 1}
        sock.sendall(json.dumps(request).encode())
        text = ""
        while True:
            text += sock.recv(65536).decode()
            try:
                result = json.loads(text)["result"]
            except ValueError:
                continue
            return json.loads(result) if isinstance(result, str) else result

def readyz():
    client = http.client.HTTPConnection("localhost", timeout=2)
    client.sock = socket.socket(socket.AF_UNIX)
    client.sock.connect(RUN + "/rest.sock")
    client.request("GET", "/readyz")
    return client.getresponse().status

subprocess.run(sys.argv[5:] or ["true"], check=True)
begin = time.monotonic()
while True:
    alarms = [alarm["text"] for alarm in call("controller/status")["alarms"]
              if alarm["code"] != "stage-idle"]
    if (any(ALARM in alarm for alarm in alarms) if ALARM else not alarms) \
            and STATUS in ("any", str(readyz())):
        break
    if time.monotonic() > begin + float(SECONDS):
        sys.exit(f"alarms {alarms}, /readyz {readyz()}")
    time.sleep(0.05)
print("ok: %s after %d ms" % (alarms or "no alarm",
                              1000 * (time.monotonic() - begin)))
PYTHON
health() { python3 "$dir/health.py" "$run" "$@" || fail "$*"; }
stages() { ask controller/order | grep -o '"rung":[0-9]*' | wc -l; }
has_stages() { [ "$(stages)" = "$1" ]; }
begin_stage() {
    c1 stagecoach stage begin --cojob c"$1" --rung 0 --iterations 10 --jobs t
}
for i in $(seq 12); do
    begin_stage $i >/dev/null
done
await "twelve stages run" has_stages 12
health 5 "" 200

# A database that hangs.
pid=$(c1 systemctl show -P MainPID $unit)
health 5 "the intent database is unreachable" 503 \
    nsenter --target "$(first_process c1)" --pid --mount kill -STOP "$pid"
restarted() { unit_says c1 $unit NRestarts "$1"; }
wait_for 10 "it is restarted" restarted 1
health 15 "" 200
await "no stage is lost" has_stages 12

# A full disk.
fill() {
    c1 dd if=/dev/zero of=$state/filler bs=4k oflag=append conv=notrunc \
        status=none 2>/dev/null || :
}
fill
health 5 " of free space, 64 are needed" 200
write="[\"Stagecoach_Intent\", {\"op\": \"insert\", \"table\": \"Event\",
    \"row\": {\"why\": \"$(seq 3000 | xargs)\"}}]"
failed() {
    fill
    ovsdb-client -t 1 transact "unix:$run/intent.sock" "$write" \
        >/dev/null 2>&1 || :
    ovs-appctl -T 2 -t "$run/intent-db.ctl" cluster/status \
        Stagecoach_Intent | grep -q '^Status: failed'
}
await "the database cannot write" failed
c1 rm $state/filler
await "it is restarted when there is space" restarted 2
health 15 "" 200
begin_stage 13 >/dev/null || fail "no new stage"
await "the stages of before are there, and a new one" has_stages 13

# A damaged file.
before=$(stages)
c1 systemctl stop $unit
size=$(c1 stat -c %s $state/intent.db)
c1 python3 -c "
with open('$state/intent.db', 'r+b') as f:
    f.seek($size // 2)
    f.write(b'x' * 40)"
health 5 "/intent.db was damaged at byte " any \
    nsenter --target "$(first_process c1)" --all systemctl start $unit
health 15 "/intent.db was damaged at byte " 200
[ "$(c1 stat -c %s $state/intent.db.damaged-1)" = "$size" ] ||
    fail "the damaged file is not kept"
c1 ovsdb-tool check-cluster $state/intent.db.good || fail "no sound copy"
echo "$before stages before, $(stages) after"
c1 rm $state/intent.db.alarm
health 5 "" 200
echo "ok: all"

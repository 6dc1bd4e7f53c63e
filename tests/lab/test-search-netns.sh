#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Checks a search with jobs in network namespaces: it finds the best job, its
# jobs communicate with each other and with the agent's socket, and a signal
# ends all its processes.

set -eu
. "$SOURCE/tests/lab/lab-functions.sh"

need_root
[ -x "$BUILD/trainer/stagecoach-trainer" ] || exit 77

begin search
id=sct-$$
logs="events errors"

clean_up() {
    for i in 0 1; do
        ip netns del "$id-h$i" 2>/dev/null
    done
}

for i in 0 1; do
    ip netns add "$id-h$i"
    ip -n "$id-h$i" link set lo up
    mkdir "$dir/h$i"
done
ip link add "veth" netns "$id-h0" type veth peer name "veth" netns "$id-h1"
for i in 0 1; do
    ip -n "$id-h$i" address add "10.78.0.$((i + 1))/24" dev veth
    ip -n "$id-h$i" link set veth up
done

cat > "$dir/cluster.json" <<EOF
{"hosts": [{"name": "h0", "address": "10.78.0.1", "launch": "netns",
            "netns": "$id-h0", "rundir": "$dir/h0", "slots": 4},
           {"name": "h1", "address": "10.78.0.2", "launch": "netns",
            "netns": "$id-h1", "rundir": "$dir/h1", "slots": 4}]}
EOF
cat > "$dir/search.json" <<EOF
{"name": "$id", "seed": 2, "trials": 2,
 "space": {"learning_rate": [0.05, 0.00001], "width": [64], "batch": [32]},
 "rungs": [{"iterations": 10, "keep": 1}, {"iterations": 40}],
 "placements": [{"workers": ["h0", "h1"], "servers": ["h1"]},
                {"workers": ["h0"], "servers": ["h1", "h0"]}],
 "model": {"inputs": 32, "hidden_layers": 2, "classes": 5},
 "data": {"kind": "generated", "samples": 1024}}
EOF

# Receives the reports of rank 0, which is on h0, to the agent.
python3 - "$dir/h0/progress.sock" "$dir/datagrams" <<'EOF' &
import json, socket, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.bind(sys.argv[1])
s.settimeout(60)
with open(sys.argv[2], "w") as out:
    while True:
        print(json.dumps(json.loads(s.recv(4096))), file=out, flush=True)
EOF
pids=$!
await "the agent's socket exists" test -S "$dir/h0/progress.sock"

run() {
    timeout 60 "$BUILD/cli/stagecoach" search run "$1" \
        --cluster "$dir/cluster.json" --bare --format json \
        > "$dir/events" 2> "$dir/errors"
}
veth_bytes() {
    ip -n "$id-h0" -s -j link show veth |
        python3 -c 'import json, sys
print(json.load(sys.stdin)[0]["stats64"]["tx"]["bytes"])'
}

before=$(veth_bytes)
run "$dir/search.json" || fail "search run ended with $?"
after=$(veth_bytes)

# The best is the job with the rate that learns, and its loss has fallen.
python3 - "$dir/events" "$dir/datagrams" "$id" $((after - before)) <<'EOF' ||
import json, sys
events = [json.loads(line) for line in open(sys.argv[1])]
datagrams = [json.loads(line) for line in open(sys.argv[2])]
cojob, crossed = sys.argv[3], int(sys.argv[4])
of = lambda kind: [e for e in events if e["event"] == kind]
rates = {e["job"]: e["hyperparameters"]["learning_rate"]
         for e in of("job-begin")}
best = of("search-end")[0]["best"]
losses = [e["loss"] for e in of("progress") if e["job"] == best]
assert rates[best] == 0.05, rates
assert losses[-1] < 1.35, losses            # Untrained: log 5 is 1.61.
assert [e["rung"] for e in of("stage-end")] == [0, 1]
assert {e["job"]: e["outcome"] for e in of("job-end")} == {
    best: "done", {"t0": "t1", "t1": "t0"}[best]: "stopped"}
assert all(d["cojob"] == cojob for d in datagrams)
last = [d for d in datagrams if d["job"] == best and "iteration" in d][-1]
assert (last["iteration"], last["stage"]) == (40, 1), last
right = [e["accuracy"] for e in of("progress") if e["job"] == best]
assert last["metric"] == "accuracy" and abs(last["value"] - right[-1]) < 1e-4, (
    last, right[-1])
# Pushes of h0 cross: of rank 0 in t0, of half of the model in t1.
model = (32 * 64 + 64 + 64 * 64 + 64 + 64 * 5 + 5) * 4
assert crossed > 10 * model * 1.5, (crossed, model)
EOF
    fail "the events are not what they should be"

# With groups, workers pause between rungs, and each trains to the end.  Ten
# iterations do not always separate the losses of the two jobs.
sed 's/"seed": 2,/"seed": 2, "sync": "groups,groups=2",/
     s/"iterations": 10/"iterations": 30/
     s/"servers": \["h1", "h0"\]/"servers": ["h1"]/
     s/"workers": \["h0"\]/"workers": ["h0", "h0"]/' "$dir/search.json" \
    > "$dir/groups.json"
run "$dir/groups.json" || fail "search run with groups ended with $?"
python3 - "$dir/events" <<'EOF' || fail "the events with groups are wrong"
import json, sys
events = [json.loads(line) for line in open(sys.argv[1])]
of = lambda kind: [e for e in events if e["event"] == kind]
best = of("search-end")[0]["best"]
rates = {e["job"]: e["hyperparameters"]["learning_rate"]
         for e in of("job-begin")}
losses = [e["loss"] for e in of("progress") if e["job"] == best]
assert rates[best] == 0.05, rates
assert losses[-1] < 1.35, losses
assert [e["rung"] for e in of("stage-end")] == [0, 1]
EOF

# Hosts that ssh reaches; this client is a shell in the network namespace of the
# host.  Nothing secret is in its command.
mkdir "$dir/bin"
cat > "$dir/bin/ssh" <<EOF
#!/bin/sh -e
[ "\$1 \$2" = "-oBatchMode=yes --" ]
echo "\$4" >> "$dir/commands"
exec nsenter --net="/run/netns/$id-h\$((\${3##*.} - 1))" \\
    env -i PATH="\$PATH" sh -c "\$4"
EOF
chmod +x "$dir/bin/ssh"
cp "$dir/cluster.json" "$dir/netns.json"
sed 's/"netns",$/"ssh",/; s/"netns": "[^"]*", "rundir": "[^"]*", //' \
    "$dir/netns.json" > "$dir/cluster.json"
PATH=$dir/bin:$PATH run "$dir/search.json" || fail "search by ssh ended with $?"
grep -q '"event":"search-end".*"best":"t' "$dir/events" || fail "no best by ssh"
grep -q "^set -e; IFS= read .* exec '.*stagecoach-trainer' 'server' " \
    "$dir/commands" || fail "commands by ssh: $(cat "$dir/commands")"
! grep TOKEN "$dir/commands" || fail "a secret is in a command line"
cp "$dir/netns.json" "$dir/cluster.json"

# A file with too large values is rejected in one line.
sed 's/"slots": 4/"slots": 1/' "$dir/cluster.json" > "$dir/small.json"
status=0
"$BUILD/cli/stagecoach" search check "$dir/search.json" \
    --cluster "$dir/small.json" 2> "$dir/errors" || status=$?
[ $status = 1 ] || fail "search check ended with $status"
[ "$(wc -l < "$dir/errors")" = 1 ] || fail "more than one line"
grep -q '/placements/0/workers/0: needs 3 processes on h0; expected at most 1' \
    "$dir/errors" || fail "search check prints another message"

# A signal ends a search that would go on, and all that it started.
sed 's/"iterations": 40/"iterations": 1000000/' "$dir/search.json" \
    > "$dir/long.json"
start_long() {
    rm -f "$dir/events"         # Of the last search.
    "$BUILD/cli/stagecoach" search run "$dir/long.json" \
        --cluster "$dir/cluster.json" --bare --format json \
        > "$dir/events" 2> "$dir/errors" &
    search=$!
    pids="$pids $search"
    await "the second rung begins" grep -q '"rung":1' "$dir/events"
    is_over && fail "nothing runs"
    :
}
is_over() { [ -z "$(ip netns pids "$id-h0")$(ip netns pids "$id-h1")" ]; }

start_long
kill -TERM $search
status=0
wait $search || status=$?
[ $status = 143 ] || fail "ended with $status after SIGTERM"
grep -qx 'interrupted after 1 of 2 stages' "$dir/errors" ||
    fail "it said $(cat "$dir/errors")"
is_over || fail "processes are left"

# SIGKILL of the search ends all of it as well.
start_long
kill -KILL $search
wait $search || :
wait_for 5 "nothing is left after SIGKILL" is_over
echo ok

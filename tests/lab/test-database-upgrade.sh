#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Checks database upgrades: databases of an older version are converted to the
# current schema when they start, and keep their rows; those of a newer version
# are rejected.  A controller, an agent and the commands of this version also
# work with databases of the previous version, as before the first member of a
# cluster is upgraded.  Needs neither root nor namespaces.
set -eu
. "$SOURCE/tests/lab/lab-functions.sh"

PATH=$PATH:/usr/sbin:/sbin
stagecoach=$BUILD/cli/stagecoach
need ovsdb-server ovsdb-client ovsdb-tool python3

begin upgrade
export STAGECOACH_RUNDIR="$dir/run"
hosts=unix:$dir/run/hosts.sock

clean_up() {
    "$stagecoach" controller stop --rundir "$dir/run"
}

# old DATABASE VERSION [COLUMN...]: prints the schema with VERSION, without the
# columns that it did not have.
old() {
    python3 - "$SOURCE/wire/$1.ovsschema" "$@" <<'PY'
import json, sys
schema = json.load(open(sys.argv[1]))
schema["version"] = sys.argv[3]
for table in schema["tables"].values():
    for column in sys.argv[4:]:
        table["columns"].pop(column, None)
print(json.dumps(schema))
PY
}
start() {
    "$stagecoach" controller start --dbdir "$dir/db" \
        --policy "$SOURCE/policies/stage.json"
}

mkdir -p "$dir/db" "$dir/run"
old hosts 0.9.0 min_share congestion level_dscp >"$dir/old.ovsschema"
if cmp -s "$dir/old.ovsschema" "$SOURCE/wire/hosts.ovsschema"; then
    fail "the old schema is the new one"
fi
ovsdb-tool create-cluster "$dir/db/hosts.db" "$dir/old.ovsschema" \
    "unix:$dir/db/hosts.db.raft"
# The old intent database has no table for overrides.
python3 - "$SOURCE/wire/intent.ovsschema" >"$dir/old-intent.ovsschema" <<'PY'
import json, sys
schema = json.load(open(sys.argv[1]))
schema["version"] = "0.9.0"
del schema["tables"]["Override"]
print(json.dumps(schema))
PY
ovsdb-tool create-cluster "$dir/db/intent.db" "$dir/old-intent.ovsschema" \
    "unix:$dir/db/intent.db.raft"
# A row written before the upgrade, by a server without knowledge of
# Stagecoach.
ovsdb-server --detach --no-chdir --pidfile="$dir/first.pid" \
    --unixctl="$dir/first.ctl" --remote="punix:$dir/run/hosts.sock" \
    -vconsole:off "$dir/db/hosts.db"
ovsdb-client wait --timeout=10 "$hosts" Stagecoach_Hosts connected
ovsdb-client transact --timeout=10 "$hosts" '["Stagecoach_Hosts",
    {"op": "insert", "table": "Host_Wanted",
     "row": {"host": "veteran", "version": 7}}]' | grep -q uuid ||
    fail "no row in the old database"
ovs-appctl -t "$dir/first.ctl" exit

start || fail "controller start"
version=$(ovsdb-client get-schema-version "$hosts" Stagecoach_Hosts)
wanted=$(ovsdb-tool schema-version "$SOURCE/wire/hosts.ovsschema")
[ "$version" = "$wanted" ] || fail "schema $version after the start"
ovsdb-client dump "$hosts" Stagecoach_Hosts Host_Wanted host |
    grep -q veteran || fail "the row is lost"
"$stagecoach" observe >"$dir/out" || fail "observe"
stored() {
    ovsdb-client dump "unix:$dir/run/intent.sock" Stagecoach_Intent Override \
        kind | grep -q observe
}
await "the intent database has overrides" stored
echo "ok: an old database is converted and keeps its rows"

# A second start changes nothing.  Then a newer database, as an older
# Stagecoach would find it.
start || fail "a second start"
"$stagecoach" controller stop || fail "controller stop"
echo "ok: one of today is left alone"
rm "$dir/db/"hosts.db*
old hosts 99.0.0 >"$dir/new.ovsschema"
ovsdb-tool create-cluster "$dir/db/hosts.db" "$dir/new.ovsschema" \
    "unix:$dir/db/hosts.db.raft"
if start 2>"$dir/stderr"; then
    fail "a newer database is taken"
fi
grep -q 'the hosts database has schema 99.0.0; expected up to ' "$dir/stderr" ||
    fail "$(cat "$dir/stderr")"
echo "ok: a newer database is refused"

# Databases of the previous version, whose servers keep running.
for pidfile in "$dir/run/"*.pid; do
    [ ! -e "$pidfile" ] || end_process "$(cat "$pidfile")"
done
rm -rf "$dir/db" "$dir/run"
mkdir "$dir/db" "$dir/run"
old hosts 0.9.0 >"$dir/hosts.ovsschema"
old intent 0.9.0 >"$dir/intent.ovsschema"
for db in hosts intent; do
    ovsdb-tool create-cluster "$dir/db/$db.db" "$dir/$db.ovsschema" \
        "unix:$dir/db/$db.db.raft"
    ovsdb-server --remote="punix:$dir/run/$db.sock" \
        --unixctl="$dir/run/$db-db.ctl" -vconsole:off "$dir/db/$db.db" &
    pids="$pids $!"
    await "there is a database $db" test -S "$dir/run/$db.sock"
done
"$BUILD/controller/stagecoach-controller" --unixctl="$dir/run/controller.ctl" \
    --policy "$SOURCE/policies/stage.json" -vsyslog:off 2>"$dir/new.log" &
pids="$pids $!"
"$BUILD/agent/stagecoach-agent" --host h0 --rate 1Gbit -vsyslog:off \
    2>"$dir/agent.log" &
pids="$pids $!"
is_active() {
    ovs-appctl -T 10 -t "$dir/run/controller.ctl" controller/status |
        grep -q '"state":"active"'
}
await "the controller leads" is_active
"$stagecoach" stage begin --cojob veteran --rung 0 --rungs 10:1,30 \
    --jobs t0 || fail "stage begin"
follows() {
    ovs-appctl -T 10 -t "$dir/run/agent.ctl" agent/status |
        grep '"state":"ordered"' | grep -q '"database":true'
}
await "the agent follows an order" follows
"$stagecoach" stage end --cojob veteran --rung 0 || fail "stage end"
is_done() {
    ovsdb-client dump "unix:$dir/run/intent.sock" Stagecoach_Intent Stage \
        state | grep -q done
}
await "the stage ends" is_done
version=$(ovsdb-client get-schema-version "$hosts" Stagecoach_Hosts)
[ "$version" = 0.9.0 ] || fail "the schema is $version"
echo "ok: programs of this version work with databases of the previous one"

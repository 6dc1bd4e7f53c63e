#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Checks database upgrades: databases of an older version are converted to the
# current schema when they start, and keep their rows; those of a newer version
# are rejected.  Needs neither root nor namespaces.
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

# old VERSION [COLUMN...]: prints the hosts schema of VERSION, without the
# columns.
old() {
    python3 - "$SOURCE/wire/hosts.ovsschema" "$@" <<'PY'
import json, sys
schema = json.load(open(sys.argv[1]))
schema["version"] = sys.argv[2]
for table in schema["tables"].values():
    for column in sys.argv[3:]:
        table["columns"].pop(column, None)
print(json.dumps(schema))
PY
}
start() {
    "$stagecoach" controller start --dbdir "$dir/db" \
        --policy "$SOURCE/policies/stage.json"
}

mkdir -p "$dir/db" "$dir/run"
old 1.0.0 guard_share congestion >"$dir/old.ovsschema"
if cmp -s "$dir/old.ovsschema" "$SOURCE/wire/hosts.ovsschema"; then
    fail "the old schema is the new one"
fi
ovsdb-tool create-cluster "$dir/db/hosts.db" "$dir/old.ovsschema" \
    "unix:$dir/db/hosts.db.raft"
# The old intent database has no table for overrides.
python3 - "$SOURCE/wire/intent.ovsschema" >"$dir/old-intent.ovsschema" <<'PY'
import json, sys
schema = json.load(open(sys.argv[1]))
schema["version"] = "1.0.0"
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
old 99.0.0 >"$dir/new.ovsschema"
ovsdb-tool create-cluster "$dir/db/hosts.db" "$dir/new.ovsschema" \
    "unix:$dir/db/hosts.db.raft"
if start 2>"$dir/stderr"; then
    fail "a newer database is taken"
fi
grep -q 'the hosts database has schema 99.0.0, up to ' "$dir/stderr" ||
    fail "$(cat "$dir/stderr")"
echo "ok: a newer database is refused"

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Runs all commands of docs/operations.md on machines with systemd, while a
# host checks that it keeps its order.  The new version of the upgrade has
# newer schemas.
set -eu
. "$SOURCE/tests/lab/lab-functions.sh"
. "$SOURCE/tests/lab/machine-functions.sh"

PATH=$PATH:/usr/sbin:/sbin
need_root
need_systemd
need ovsdb-server ovsdb-client ovs-appctl python3
begin operations
prefix=sco$(($$ % 100000))-
machines_up="c1 c2 c3 h0"

clean_up() {
    # shellcheck disable=SC2086
    forget_machines keys switch $machines_up
    rmdir /etc/stagecoach 2>/dev/null || :
}
show() {
    for machine in $machines_up; do
        in_machine "$machine" journalctl --no-pager --lines 20 \
            --unit 'stagecoach-*'
    done
}

# First the networks, each with a switch.
make_switch
connect keys 10.0.0.20
connect c1 10.0.0.1
connect c2 10.0.0.2
connect c3 10.0.0.3
connect h0 10.0.0.10

# The installed versions: the current one, and the new files of the next one.
make_machines
install_version installed
for db in intent hosts; do
    schema=$bindir/../share/stagecoach/$db.ovsschema
    mkdir -p "$machines/installed/opt/new/${schema%/*}"
    python3 - "$machines/installed$schema" \
        >"$machines/installed/opt/new$schema" <<'END'
import json
import sys

with open(sys.argv[1]) as f:
    schema = json.load(f)
major, minor, patch = map(int, schema["version"].split("."))
schema["version"] = f"{major}.{minor + 1}.{patch}"
print(json.dumps(schema))
END
done
for machine in $machines_up; do
    boot "$machine" installed
done
# run_of NAME, controller_of NAME: print the path of the machine's
# /run/stagecoach, and of the controller's directory in it.
run_of() { echo "/proc/$(first_process "$1")/root/run/stagecoach"; }
controller_of() { echo "$(run_of "$1")/controller"; }

# Keys are in a folder of their own, on no machine with services.  There "rsync
# -a [--chown=USER:] FROM/ ADDRESS:TO" does not need a login.
mkdir -p "$dir/keys" "$dir/tools" /etc/stagecoach
cat >"$dir/functions" <<END
. "$SOURCE/tests/lab/machine-functions.sh"
prefix=$prefix machines=$machines mount=$mount bindir=$bindir
END
cat >"$dir/tools/rsync" <<END
#!/bin/sh -e
. "$dir/functions"
owner=
for word; do
    case \$word in
    --chown=*) owner=\${word#*=} ;;
    -*) ;;
    *:*) address=\${word%%:*} to=\${word#*:} ;;
    *) from=\$word ;;
    esac
done
case \$address in 10.0.0.10) name=h0 ;; *) name=c\${address##*.} ;; esac
for file in "\$from"*; do
    in_machine "\$name" sh -ec 'cat >"\$1.\$2"
        [ -z "\$3" ] || chown "\$3" "\$1.\$2"
        chmod 600 "\$1.\$2"
        mv "\$1.\$2" "\$1\$2"' copy "\$to" "\${file##*/}" "\$owner" <"\$file"
done
END
cat >"$dir/shell" <<END
#!/bin/sh
. "$dir/functions"
[ "\$1" = keys ] || in_machine "\$1" sh -e || exit
[ "\$1" != keys ] || nsenter --net="/run/netns/${prefix}keys" unshare --mount sh -ec '
    mount --bind "$dir/keys" /etc/stagecoach
    export PATH="$dir/tools:$machines/installed$bindir:$PATH"
    exec sh -e'
END
chmod +x "$dir/tools/rsync" "$dir/shell"

# Records the host's state ten times a second, from the time when it first has
# an order.
watch_host() {
    agent=$(run_of h0)/agent.ctl
    until ovs-appctl -T 2 -t "$agent" agent/status 2>/dev/null |
        grep -q '"state":"ordered"'; do
        sleep 0.1
    done
    while :; do
        ovs-appctl -T 2 -t "$agent" agent/status 2>/dev/null |
            sed 's/.*"state":"\([a-z]*\)".*/\1/' | grep . || echo away
        sleep 0.1
    done >"$dir/states"
}
watch_host &
pids="$pids $!"

# The first sentence of the upgrade has no command, because the packages differ
# between distributions.
for machine in $machines_up; do
    printf '<!-- on %s -->\n```sh\ncp -r /opt/new/. /\n```\n' "$machine"
done >"$dir/upgrade"
sed "/^Install the new version everywhere/r $dir/upgrade" \
    "$SOURCE/docs/operations.md" >"$dir/operations.md"
grep -q /opt/new "$dir/operations.md" || fail "no upgrade"
timeout 200 python3 "$SOURCE/tests/lab/run-document.py" \
    --machine "$dir/shell" "$dir/operations.md" || fail "operations.md"
echo "ok: every command"

# The new version's schemas are in use, and the stage still exists.
for n in 1 2 3; do
    version=$(ovsdb-client --no-leader-only get-schema-version \
        "unix:$(controller_of c$n)/intent.sock" Stagecoach_Intent)
    [ "$version" = "$(ovsdb-tool schema-version \
        "$machines/installed/opt/new$bindir/../share/stagecoach/intent.ovsschema")" ] ||
        fail "c$n has schema $version"
done
echo "ok: the schema is the new one"
leads() {
    for n in 1 2 3; do
        ovs-appctl -T 2 -t "$(controller_of c$n)/controller.ctl" controller/order |
            grep -q '"cojob":"trial"' && return
    done
    return 1
}
await "the stage is there at the end" leads

# A restarted agent uses fair sharing until it has its order again.
follows() {
    ovs-appctl -T 2 -t "$(run_of h0)/agent.ctl" agent/status |
        grep -q '"state":"ordered"'
}
await "the host is ordered at the end" follows
grep -c ordered "$dir/states" >"$dir/ordered"
lost=$(grep -vc ordered "$dir/states" || :)
echo "the host was ordered in $(cat "$dir/ordered") looks, and not in $lost"
[ "$lost" -le 30 ] || fail "the order was lost for $lost looks"

# After the restore of a backup that is older than the last leaders, hosts
# still accept the next leader.
machine_that_leads() {
    for n in 1 2 3; do
        if ovs-appctl -T 2 -t "$(controller_of c$n)/controller.ctl" \
            controller/status 2>/dev/null | grep -q '"state":"active"'; then
            echo c$n
        fi
    done
}
# Prints member $2 of the status of the program at control socket $1.
status_member() {
    ovs-appctl -T 2 -t "$1.ctl" "${1##*/}/status" |
        sed "s/.*\"$2\":\"\{0,1\}\([a-z0-9]*\).*/\1/"
}
one_leads() { [ "$(machine_that_leads | wc -l)" = 1 ]; }
# restart_leader: restarts the leader; the same or another controller leads
# then.
restart_leader() {
    await "one controller leads" one_leads
    echo "systemctl restart stagecoach-controller" |
        "$dir/shell" "$(machine_that_leads)"
    await "one controller leads again" one_leads
}
# Sets $generation to the leader's; succeeds if the host has the same one.
obeys() {
    one_leads || return
    leader=$(controller_of "$(machine_that_leads)")/controller
    generation=$(status_member "$leader" generation)
    [ "$(status_member "$(run_of h0)/agent" generation)" = "$generation" ] &&
        [ "$(status_member "$leader" agents)" = 1 ] && follows
}
obeys_newer() { obeys && [ "$generation" -gt "$heard" ]; }
restart_leader
await "the host follows the leader before the restore" obeys
heard=$generation
sed -n '/^ovsdb-client .* restore/p' "$dir/operations.md" | "$dir/shell" c1
restart_leader
await "the host follows the leader after the restore" obeys_newer

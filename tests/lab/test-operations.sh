#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# docs/operations.md from its first command to its last, as it stands there, on
# machines that are namespaces, while a host watches whether it loses its
# order.  Services are run by the lines of their units, since no systemd is in
# charge; the new version of the upgrade has newer schemas.
set -eu
. "$SOURCE/tests/lab/lab-functions.sh"

PATH=$PATH:/usr/sbin:/sbin
need_root
need ovsdb-server ovsdb-client ovs-appctl ip python3 chown
begin operations
prefix=sco$(($$ % 100000))-
machines="keys c1 c2 c3 h0"

clean_up() {
    for pidfile in "$dir"/*/services/*.pid; do
        [ ! -e "$pidfile" ] || kill "$(cat "$pidfile")" 2>/dev/null || :
    done
    for machine in $machines switch; do
        ip netns del "$prefix$machine" 2>/dev/null || :
    done
    rmdir /etc/stagecoach /var/lib/stagecoach 2>/dev/null || :
}

# A machine: a namespace at a switch, and folders of its own where the
# document's are.
ip netns add "${prefix}switch"
ip -n "${prefix}switch" link add br0 type bridge
ip -n "${prefix}switch" link set br0 up
make_machine() {
    ip netns add "$prefix$1"
    ip -n "$prefix$1" link set lo up
    ip link add eth0 netns "$prefix$1" type veth \
        peer name "to-$1" netns "${prefix}switch"
    ip -n "${prefix}switch" link set "to-$1" master br0 up
    ip -n "$prefix$1" addr add "$2/24" dev eth0
    ip -n "$prefix$1" link set eth0 up
    for folder in etc run lib default services; do
        mkdir -p "$dir/$1/$folder"
    done
    mkdir -p "$dir/$1/etc/tls"
    ln -sfn "$dir/$1" "$dir/at-$2"
}
address=20
for machine in $machines; do
    case $machine in
    c[1-3]) make_machine "$machine" "10.0.0.${machine#c}" ;;
    h0) make_machine h0 10.0.0.10 ;;
    *) make_machine "$machine" "10.0.0.$address" ;;
    esac
    address=$((address + 1))
done
mkdir -p /etc/stagecoach /var/lib/stagecoach /run/stagecoach /etc/default

# What a machine has installed: this version, and one with newer schemas.
install_version() {
    mkdir -p "$dir/$1/bin" "$dir/$1/share/stagecoach/policies"
    for program in cli/stagecoach controller/stagecoach-controller \
        agent/stagecoach-agent; do
        cp "$BUILD/$program" "$dir/$1/bin"
    done
    cp "$SOURCE"/policies/*.json "$dir/$1/share/stagecoach/policies"
    for db in intent hosts; do
        python3 - "$SOURCE/controller/$db.ovsschema" "$2" \
            >"$dir/$1/share/stagecoach/$db.ovsschema" <<'END'
import json
import sys

with open(sys.argv[1]) as f:
    schema = json.load(f)
major, minor, patch = map(int, schema["version"].split("."))
schema["version"] = f"{major}.{minor + int(sys.argv[2])}.{patch}"
print(json.dumps(schema))
END
    done
}
install_version old 0
install_version new 1
ln -s old "$dir/installed"

# Stands for what a machine has and a namespace has not.
mkdir "$dir/tools"
cat >"$dir/tools/systemctl" <<END
#!/bin/sh
exec python3 "$SOURCE/tests/lab/systemctl.py" "\$@"
END
cat >"$dir/tools/rsync" <<END
#!/bin/sh
# rsync -a [--chown=USER:] FROM/ ADDRESS:/etc/stagecoach/TO
while case \$1 in -*) ;; *) false ;; esac; do shift; done
to=$dir/at-\${2%%:*}/etc/\${2#*:/etc/stagecoach/}
for file in "\$1"*; do
    cp "\$file" "\$to/.\${file##*/}"
    mv "\$to/.\${file##*/}" "\$to/\${file##*/}"
done
END
cat >"$dir/tools/chown" <<END
#!/bin/sh
# There is no user of the services here: root runs them.
[ "\$*" = "-R stagecoach: /var/lib/stagecoach" ]
END
cat >"$dir/shell" <<END
#!/bin/sh
exec ip netns exec "$prefix\$1" sh "$dir/inside" "\$1"
END
cat >"$dir/inside" <<END
set -e
mount --bind "$dir/\$1/etc" /etc/stagecoach
mount --bind "$dir/\$1/run" /run/stagecoach
mount --bind "$dir/\$1/lib" /var/lib/stagecoach
mount --bind "$dir/\$1/default" /etc/default
unset STAGECOACH_RUNDIR
export PATH="$dir/tools:$dir/installed/bin:$PATH"
export UNITS="$BUILD/packaging" BIN="$dir/installed/bin"
export BINDIR="$(sed -n 's|^ExecStart=\(.*\)/stagecoach-agent .*|\1|p' \
    "$BUILD/packaging/stagecoach-agent.service")"
export SERVICES="$dir/\$1/services" STAGECOACH_CGROUP="${prefix}jobs"
exec sh -e
END
chmod +x "$dir/tools/"* "$dir/shell"

# The host's state, ten times a second, from when it is first ordered.
watch_host() {
    until ovs-appctl -T 2 -t "$dir/h0/run/agent.ctl" agent/status 2>/dev/null |
        grep -q '"state":"ordered"'; do
        sleep 0.1
    done
    while :; do
        ovs-appctl -T 2 -t "$dir/h0/run/agent.ctl" agent/status 2>/dev/null |
            sed 's/.*"state":"\([a-z]*\)".*/\1/' | grep . || echo away
        sleep 0.1
    done >"$dir/states"
}
watch_host &
pids="$pids $!"

# The upgrade's first sentence has no command: packages are everybody's own.
sed 's|^Install the new version everywhere.*|<!-- on keys -->\n```sh\nln -sfn new '"$dir"'/installed\n```\n&|' \
    "$SOURCE/docs/operations.md" >"$dir/operations.md"
grep -q "ln -sfn new" "$dir/operations.md" || fail "no upgrade"
timeout 200 python3 "$SOURCE/tests/lab/run-document.py" \
    --machine "$dir/shell" "$dir/operations.md" || fail "operations.md"
echo "ok: every command"

# The new version's schemas are in force, and the stage is still there.
for n in 1 2 3; do
    version=$(ovsdb-client --no-leader-only get-schema-version \
        "unix:$dir/c$n/run/intent.sock" Stagecoach_Intent)
    [ "$version" = "$(ovsdb-tool schema-version \
        "$dir/new/share/stagecoach/intent.ovsschema")" ] ||
        fail "c$n has schema $version"
done
echo "ok: the schema is the new one"
leads() {
    for n in 1 2 3; do
        ovs-appctl -T 2 -t "$dir/c$n/run/controller.ctl" controller/order |
            grep -q '"cojob":"trial"' && return
    done
    return 1
}
await "the stage is there at the end" leads

# An agent that is restarted is fair until it has its order again.
follows() {
    ovs-appctl -T 2 -t "$dir/h0/run/agent.ctl" agent/status |
        grep -q '"state":"ordered"'
}
await "the host is ordered at the end" follows
grep -c ordered "$dir/states" >"$dir/ordered"
lost=$(grep -vc ordered "$dir/states" || :)
echo "the host was ordered in $(cat "$dir/ordered") looks, and not in $lost"
[ "$lost" -le 30 ] || fail "the order was lost for $lost looks"

# A backup from before others led does not make hosts deaf to who leads next.
machine_that_leads() {
    for n in 1 2 3; do
        if ovs-appctl -T 2 -t "$dir/c$n/run/controller.ctl" \
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
# restart_leader: another one leads then, or the same once more.
restart_leader() {
    await "one controller leads" one_leads
    echo "systemctl restart stagecoach-controller" |
        "$dir/shell" "$(machine_that_leads)"
    await "one controller leads again" one_leads
}
before=$(status_member "$dir/$(machine_that_leads)/run/controller" generation)
restart_leader
sed -n '/^ovsdb-client .* restore/p' "$dir/operations.md" | "$dir/shell" c1
restart_leader
obeys() {
    leader=$dir/$(machine_that_leads)/run/controller
    generation=$(status_member "$leader" generation)
    [ "$generation" -gt "$((before + 1))" ] &&
        [ "$(status_member "$dir/h0/run/agent" generation)" = "$generation" ] &&
        [ "$(status_member "$leader" agents)" = 1 ] && follows
}
await "the host obeys who leads after the backup" obeys

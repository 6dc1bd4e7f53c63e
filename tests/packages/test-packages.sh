#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Builds the Debian packages, checks them, and uses them on a machine with
# systemd that has Debian's minimal packages only: no compiler, no meson.  The
# previous version is installed from its repository, its services run, the
# upgrade keeps databases and order, and nothing is left after the purge.  A job
# runs all the time, and its packets are marked from when the services run until
# they are removed.
#
# $RELEASE is the release of Debian (default: that of this machine).  $DIST, and
# $DIST-$RELEASE, are folders that ./package has made, used instead of a build.
set -eu
. "$SOURCE/tests/lab/lab-functions.sh"
. "$SOURCE/tests/lab/machine-functions.sh"

PATH=$PATH:/usr/sbin:/sbin
need_root
need dpkg-buildpackage dh lintian mmdebstrap apt-ftparchive ovs-appctl python3
need_systemd
begin packages
prefix=scp$(($$ % 100000))-
far=${prefix}far
clean_up() {
    forget_machines m
    ip netns del "$far" 2>/dev/null
}
show() {
    tail -n 40 "$dir/last" 2>/dev/null
    [ ! -e "${machines:-}/m/unshare" ] ||
        in_machine m journalctl --no-pager --lines 40 --unit 'stagecoach-*'
}
# quietly COMMAND...: keeps the output, which "show" prints.
quietly() { "$@" >"$dir/last" 2>&1 || fail "$*"; }

# The packages.
DIST=${DIST:+$DIST${RELEASE:+-$RELEASE}}
dist=${DIST:-$dir/dist}
# shellcheck source=/dev/null
release=${RELEASE:-$(. /etc/os-release && echo "$VERSION_CODENAME")}
[ -n "$DIST" ] ||
    quietly "$SOURCE/package" --out "$dist" ${RELEASE:+--release "$RELEASE"}
(cd "$dist" && sha256sum --quiet --check SHA256SUMS) || fail "SHA256SUMS"
echo "ok: packages and their checksums"
quietly lintian --fail-on error,warning --tag-display-limit 0 "$dist"/*.changes
echo "ok: lintian"
version=$(dpkg-deb -f "$dist"/stagecoach-cli_*.deb Version)
old=0.0.9
python3 "$SOURCE/tests/packages/previous.py" "$dist" "$dir/previous" $old
quietly sh -c 'cd "$1" && apt-ftparchive packages . >Packages' sh \
    "$dir/previous"

# The base of the machine: Debian, and the archives of all dependencies.
make_machines
cat >"$dir/in-base" <<END
#!/bin/sh
set -eu
mkdir -p "\$1/srv/new" "\$1/srv/old" "\$1/etc/apt/sources.list.d"
cp "$dir/previous"/* "\$1/srv/old"
find "$dist" -maxdepth 1 -type f -exec cp -t "\$1/srv/new" {} +
echo 'deb [trusted=yes] file:/srv/old ./' \
    >"\$1/etc/apt/sources.list.d/stagecoach.list"
chroot "\$1" apt-get update
chroot "\$1" apt-get install -y --no-install-recommends --download-only \
    \$(sed -n 's/^Package: //p' "$dir/previous/Packages")
END
chmod +x "$dir/in-base"
quietly mmdebstrap --variant=minbase --include=systemd-sysv,iproute2,procps \
    --skip=cleanup/apt --customize-hook="$dir/in-base" \
    "$release" "$machines/base"
echo "ok: base"

# The machine.  Its own interface is cabled to the shim's.
ip netns add "${prefix}m"
ip link add eth0 netns "${prefix}m" type veth \
    peer name hostside netns "${prefix}m"
ip link add uplink netns "${prefix}m" type veth \
    peer name far netns "${prefix}m"
for link in lo eth0 hostside uplink far; do
    ip -n "${prefix}m" link set $link up
done
# Jobs send by another one.
ip netns add "$far"
ip link add job0 netns "${prefix}m" type veth peer name job0 netns "$far"
for ns in "1:${prefix}m" "2:$far"; do
    ip -n "${ns#*:}" addr add "10.9.0.${ns%%:*}/24" dev job0
    ip -n "${ns#*:}" link set job0 up
done
traffic="ip netns exec $far $BUILD/tests/lab/traffic"
$traffic sink 3000000 5001 >"$dir/sink" &
pids="$pids $!"
sent() { awk '{ n += $3 } END { print n + 0 }' "$dir/sink"; }
sent_more() { [ "$(sent)" -gt $(($1 + 20000)) ]; }
goes_on() { await "$1: the job sends" sent_more "$(sent)"; }
dscps() { awk '$1 == 5001 { print $2 }'; }
has_dscp() { [ "$($traffic dscp 300 job0 | dscps)" = "$1" ]; }
# Prints what Stagecoach may have in the kernel.
in_kernel() {
    m sh -c 'tc qdisc show; tc filter show dev job0 egress
        ls -d /sys/fs/cgroup/stagecoach /sys/fs/bpf/* 2>/dev/null' || :
    python3 "$SOURCE/tests/lab/kernel-state.py" programs "$mount/${prefix}m"
}

mkdir "$machines/nothing"
bindir=/usr/bin
boot m nothing "$machines/base"
m() { in_machine m env DEBIAN_FRONTEND=noninteractive "$@"; }
for tool in gcc cc make meson ninja; do
    m sh -c "command -v $tool" >/dev/null && fail "the machine has $tool"
done

# Dependencies first, to see later what the packages themselves leave.  Services
# of other packages stay off.
printf '#!/bin/sh\nexit 101\n' | m tee /usr/sbin/policy-rc.d >/dev/null
m chmod +x /usr/sbin/policy-rc.d
packages=$(sed -n 's/^Package: //p' "$dir/previous/Packages")
# shellcheck disable=SC2086
m apt-get install -s --no-install-recommends $packages |
    sed -n 's/^Inst \([^ ]*\) .*/\1/p' | grep -v stagecoach >"$dir/needed"
# shellcheck disable=SC2046
quietly m apt-get install -y --no-install-recommends $(cat "$dir/needed")
m rm /usr/sbin/policy-rc.d
list_files() {
    m find / -xdev \
        \( -path /proc -o -path /sys -o -path /dev -o -path /run -o \
        -path /tmp -o -path /srv -o -path "$SOURCE" -o -path "$BUILD" -o \
        -path /var/log -o -path /var/cache/apt -o -path /var/lib/apt -o \
        -path /var/lib/dpkg -o -path /var/lib/systemd \) -prune -o -print |
        sort
}
list_files >"$dir/before"
in_kernel >"$dir/kernel"

# The previous version, and what an operator does with it.
# shellcheck disable=SC2086
quietly m apt-get install -y --no-install-recommends $packages
m sh -c 'for file in /usr/bin/stagecoach* /usr/libexec/stagecoach/stagecoach-cni \
    /usr/lib/*/stagecoach/*.so; do ldd "$file"; done' >"$dir/last" 2>&1
! grep 'not found' "$dir/last" || fail "libraries are missing"
m systemctl is-enabled stagecoach-controller stagecoach-agent \
    stagecoach-shim >"$dir/last" 2>&1 && fail "services are enabled"
m sh -c 'echo "OPTIONS=--address 127.0.0.1" >/etc/default/stagecoach
    tls=/etc/stagecoach/agent
    echo "OPTIONS=\"--host=h0 --db=ssl:127.0.0.1:6640 \
--controller=ssl:127.0.0.1:6650 --private-key=$tls/identity.pem \
--certificate=$tls/identity.pem --ca-cert=$tls/ca.pem --uplink=job0 \
--actuator=bpf --tc=job0:100Mbit --pins=/sys/fs/bpf/own\"" \
        >/etc/default/stagecoach-agent
    echo "OPTIONS=\"--host-port af_packet:hostside --uplink af_packet:uplink \
--rate 100Mbit\"" >/etc/default/stagecoach-shim'
quietly m stagecoach pki init
quietly m stagecoach pki issue controller m
quietly m stagecoach pki issue agent h0
m sh -ec 'cd /etc/stagecoach
    cp -p pki/controllers/m/* tls
    chown -R stagecoach: tls
    cp -pr pki/agents/h0 agent'
m systemctl enable --now stagecoach-database@relay stagecoach-controller \
    stagecoach-agent stagecoach-shim >"$dir/last" 2>&1 || fail "services"
units="stagecoach-shim stagecoach-agent stagecoach-controller
    stagecoach-database@intent stagecoach-database@hosts
    stagecoach-database@relay"
are_up() {
    for one in $units; do
        unit_says m "$one" ActiveState active || return
    done
}
await "all services are up" are_up
has_host() {
    m stagecoach status >"$dir/last" &&
        grep -q '^hosts  *1, 1 with a connected agent' "$dir/last"
}
await "stagecoach status has a host" has_host
m stagecoach stage begin --cojob trial --rung 0 --iterations 1000000 --jobs t0 \
    >"$dir/last"
m stagecoach run --cojob trial --job t0 -- "$BUILD/tests/lab/traffic" \
    drip 10.9.0.2 5001 3000000 500 >"$dir/job" 2>&1 &
job=$!
pids="$pids $job"
follows() { m stagecoach hosts | grep -q '^h0 .*connected *ordered'; }
has_stage() { m stagecoach order | grep -qw trial; }
await "the host follows the order" follows
await "the order has the stage" has_stage
await "the job's packets are marked" has_dscp 35
schema() {
    m ovsdb-client --no-leader-only get-schema-version \
        unix:/run/stagecoach/controller/intent.sock Stagecoach_Intent
}
before=$(schema)

# Programs without a service.
m stagecoach sim /usr/share/stagecoach/lab/scenarios/quickstart.json \
    >"$dir/last" || fail "sim"
m stagecoach-trainer train --iterations 20 --workers 1 >"$dir/last" 2>&1 ||
    fail "train"
m python3 -c 'from stagecoach_balance import BatchSizes
assert sum(BatchSizes(n_workers=3, batch=30).next()) == 30' || fail "Python"
m python3 -c 'from stagecoach_keys import Store
worker = Store([(9, 2)]).workers[0]
worker.push([4], [1, 2])
assert worker.pull([4]).wait().sum() == 3' || fail "Python, keys"
for page in man1/stagecoach.1 man8/stagecoach-agent.8 man5/stagecoach-policy.5; do
    m test -e "/usr/share/man/$page.gz" || fail "no $page"
done
m test -e /usr/share/doc/stagecoach/docs/operations.md || fail "no documents"
echo "ok: programs, module and documents"

# The upgrade restarts nothing, and keeps configuration, databases and order.
processes() {
    for one in $units; do
        unit_says m "$one" ActiveState active || return
        m systemctl show -P MainPID "$one"
    done
}
processes >"$dir/pids" || fail "services before the upgrade"
$traffic dscp 3000000 job0 >"$dir/watch" &
watch=$!
pids="$pids $watch"
m sed -i s/old/new/ /etc/apt/sources.list.d/stagecoach.list
quietly m apt-get update -o APT::Get::List-Cleanup=0 \
    -o Dir::Etc::SourceList=/etc/apt/sources.list.d/stagecoach.list \
    -o Dir::Etc::SourceParts=-
# shellcheck disable=SC2086
quietly m apt-get install -y --no-install-recommends $packages
[ "$(m dpkg-query -W -f '${Version}\n' $packages | sort -u)" = "$version" ] ||
    fail "versions after the upgrade"
processes | cmp -s - "$dir/pids" || fail "the upgrade restarted a service"
m grep -qx 'OPTIONS=--address 127.0.0.1' /etc/default/stagecoach ||
    fail "the configuration"
follows || fail "the order during the upgrade"
kill $watch
wait $watch || fail "wrong checksums"
[ "$(dscps <"$dir/watch")" = 35 ] ||
    fail "during the upgrade: $(tr '\n' ',' <"$dir/watch")"
m systemctl restart 'stagecoach-database@*' stagecoach-controller \
    stagecoach-agent
m systemctl reload stagecoach-shim || fail "the new shim"
await "all services are up after the upgrade" are_up
await "the databases kept the stage" has_stage
await "the host follows the order after the upgrade" follows
await "and the job's packets are marked" has_dscp 35
[ "$(schema)" != "$before" ] || fail "schema $before after the upgrade"
processes | cmp -s - "$dir/pids" && fail "services run the previous version"

# Removal stops the services and keeps what an operator has, for a new
# installation; purge leaves nothing.
# shellcheck disable=SC2086
quietly m apt-get remove -y $packages
for one in $units; do
    unit_says m "$one" ActiveState inactive || fail "$one after the removal"
done
m test -e /var/lib/stagecoach/intent.db || fail "removal took the databases"
goes_on "after the removal"
await "its packets are not marked" has_dscp 0
in_kernel | diff "$dir/kernel" - >"$dir/last" || fail "the kernel's state"
kill -0 $job || fail "the removal ended the job"
# shellcheck disable=SC2086
quietly m apt-get purge -y $packages
list_files >"$dir/after"
diff "$dir/before" "$dir/after" >"$dir/last" || fail "files after the purge"
m test ! -e /run/stagecoach || fail "/run/stagecoach"
m dpkg-query -W -f '${Package} ${Status}\n' | grep stagecoach &&
    fail "packages after the purge"
[ -z "$(m systemctl --failed --quiet --no-legend)" ] || fail "units failed"
echo PASS

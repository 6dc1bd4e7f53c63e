#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Runs all commands of docs/install.md, in this order, on three machines with
# systemd that have Debian's minimal packages only, and looks at the packets
# between them: nothing is marked while agents or the controller observe, the
# search is marked when it is ordered, by kernels and then by shims, also by a
# host that was switched off and has booted again, and afterwards the hosts are
# as before.
#
# $RELEASE is the release of Debian (default: that of this machine).  $DIST, and
# $DIST-$RELEASE, are folders that ./package has made, used instead of a build.
# Prints "install_s SECONDS", the time of all commands.
set -eu
. "$SOURCE/tests/lab/lab-functions.sh"
. "$SOURCE/tests/lab/machine-functions.sh"

PATH=$PATH:/usr/sbin:/sbin
need_root
need dpkg-buildpackage mmdebstrap apt-ftparchive python3 ethtool
need_systemd
begin install
prefix=sci$(($$ % 100000))-
names="c1 h0 h1"
clean_up() {
    # shellcheck disable=SC2086 # Names are words.
    forget_machines switch $names
}
show() {
    tail -n 40 "$dir/last"
    for machine in $names; do
        [ -e "${machines:-}/$machine/unshare" ] || continue
        in_machine "$machine" sh -c 'tail -n 5 /root/*.log' 2>/dev/null
        in_machine "$machine" journalctl --no-pager --lines 20 \
            --unit 'stagecoach-*'
    done
}
quietly() { "$@" >"$dir/last" 2>&1 || fail "$*"; }

DIST=${DIST:+$DIST${RELEASE:+-$RELEASE}}
dist=${DIST:-$dir/dist}
# shellcheck source=/dev/null
release=${RELEASE:-$(. /etc/os-release && echo "$VERSION_CODENAME")}
[ -n "$DIST" ] ||
    quietly "$SOURCE/package" --out "$dist" ${RELEASE:+--release "$RELEASE"}
echo "ok: packages"

# The base of the machines: Debian with ssh.  Its only mirror is a folder with
# what the page installs, because the machines reach no other network.
make_machines
cat >"$dir/in-base" <<END
#!/bin/sh
set -eu
mkdir -p "\$1/srv/stagecoach" "\$1/srv/debian"
find "$dist" -maxdepth 1 -type f -exec cp -t "\$1/srv/stagecoach" {} +
ours=\$1/etc/apt/sources.list.d/stagecoach.list
echo 'deb [trusted=yes] file:/srv/stagecoach ./' >"\$ours"
chroot "\$1" apt-get update
chroot "\$1" apt-get install -y --download-only curl stagecoach-controller \
    stagecoach-agent stagecoach-shim stagecoach-cli stagecoach-trainer
mv "\$1"/var/cache/apt/archives/*.deb "\$1/srv/debian"
rm -f "\$ours" "\$1"/srv/stagecoach/*-dbgsym_*
(cd "\$1/srv/debian" && apt-ftparchive packages . >Packages)
echo 'deb [trusted=yes] file:/srv/debian ./' >"\$1/etc/apt/sources.list"
rm -rf "\$1"/var/lib/apt/lists/* "\$1"/etc/apt/sources.list.d/*
mkdir -m 700 -p "\$1/root/.ssh"
chroot "\$1" ssh-keygen -q -t ed25519 -N '' -f /root/.ssh/id_ed25519
cp "\$1/root/.ssh/id_ed25519.pub" "\$1/root/.ssh/authorized_keys"
echo 'StrictHostKeyChecking accept-new' >"\$1/root/.ssh/config"
END
chmod +x "$dir/in-base"
quietly mmdebstrap --variant=minbase --skip=cleanup/apt \
    --include=systemd-sysv,iproute2,procps,openssh-server,openssh-client \
    --customize-hook="$dir/in-base" \
    "$release" "$machines/base"
echo "ok: base"

# Variables and a function that the scripts below also need.
cat >"$dir/functions" <<END
prefix=$prefix machines=$machines mount=$mount bindir=/usr/bin dir=$dir
# start NAME ADDRESS: connects and boots a machine.  Its link does what network
# cards do: it delivers segments with checksums.
start() {
    connect "\$1" "\$2"
    ip netns exec "$prefix\$1" ethtool -K eth0 tx off >/dev/null
    ip netns exec "${prefix}switch" ethtool -K "to-\$1" tx off >/dev/null
    boot "\$1" nothing "$machines/base"
    in_machine "\$1" systemctl start ssh
}
END
# shellcheck source=/dev/null
. "$dir/functions"
make_switch
mkdir "$machines/nothing"
start c1 10.0.0.1
start h0 10.0.0.10
start h1 10.0.0.11
for machine in $names; do
    for tool in gcc cc make meson ninja; do
        ! in_machine "$machine" sh -c "command -v $tool" >/dev/null ||
            fail "$machine has $tool"
    done
done

# The shells of the page.  "net" is the switch, which sees all packets; "power"
# switches machines off and on.
cat >"$dir/shell" <<END
#!/bin/sh
. "$SOURCE/tests/lab/machine-functions.sh"
. "$dir/functions"
case \$1 in
net) PATH=$dir:\$PATH exec ip netns exec "${prefix}switch" sh -e ;;
power) PATH=$dir:\$PATH exec sh -e ;;
esac
in_machine "\$1" env DEBIAN_FRONTEND=noninteractive sh -ec 'cd /root; exec sh -e'
END
# off_and_on NAME ADDRESS: a power failure, after which the machine boots.  The
# others receive no end of its connections, and its card has no state from
# before.
cat >"$dir/off_and_on" <<END
#!/bin/sh -e
. "$SOURCE/tests/lab/lab-functions.sh"
. "$SOURCE/tests/lab/machine-functions.sh"
. "$dir/functions"
disconnect "\$1"
switch_off "\$1"
start "\$1" "\$2"
END
# marked none|most: looks for two seconds at the packets of h0 and of h1, again
# until there are many.  Jobs of the first level have DSCP 35, which ssh does
# not use.
cat >"$dir/marked" <<SCRIPT
#!/bin/sh -e
# look HOST KIND: fails if there are few packets.
look() {
    set -- "\$1" "\$2" \$(awk '{ n += \$3 } \$2 == 35 { marked += \$3 }
        END { print n + 0, marked + 0 }' "$dir/dscp-\$1")
    echo "\$4 of \$3 packets of \$1 are marked"
    [ \$3 -ge 100 ] || return 1
    case \$2 in
    none) [ \$4 = 0 ] ;;
    most) [ \$4 -ge \$((\$3 / 2)) ] ;;
    esac || exit 1
}
for _ in 1 2 3 4 5 6 7 8; do
    "$BUILD/tests/lab/traffic" dscp 2000 to-h0 >"$dir/dscp-h0" &
    "$BUILD/tests/lab/traffic" dscp 2000 to-h1 >"$dir/dscp-h1"
    wait \$!
    ! look h0 "\$1" || ! look h1 "\$1" || exit 0
done
exit 1
SCRIPT
chmod +x "$dir/shell" "$dir/off_and_on" "$dir/marked"

# The page, with what this test looks at between its blocks.
python3 - "$SOURCE/docs/install.md" >"$dir/install.md" <<'END'
import sys

with open(sys.argv[1], encoding="utf-8") as f:
    page = f.read()


def block(machines, commands):
    return f"\n<!-- on {machines} -->\n```sh\n{commands}\n```\n"


def insert(after, what, last=False):
    """Inserts blocks at the end of the first block that has the text 'after',
    or of the last one."""
    global page
    at = page.rindex(after) if last else page.index(after)
    at = page.index("\n```\n", at) + 5
    page = page[:at] + what + page[at:]


insert("   0      0    35  first ", block("net", "marked none"))
insert("nothing is missing",
       block("power", "off_and_on h1 10.0.0.11")
       + block("h1", "ip -4 -brief address show dev stage0 |"
                     " grep -F 10.0.0.11/24\n"
                     "ip route get 10.0.0.1 | grep 'dev stage0'\n"
                     "stagecoach agent doctor --db none --controller none")
       + block("c1", "search first.json >shim.log 2>&1 &\n"
                     "until [ \"$(stagecoach hosts | grep -c '%$')\" = 2 ]\n"
                     "do sleep 0.1; done")
       + block("net", "marked most") + block("c1", "wait"), last=True)
insert("h1    connected  ordered  ...%", block("net", "marked most"))
insert("stagecoach observe --reason 'a complaint'",
       block("c1", "search first.json >back.log 2>&1 &\nsleep 2")
       + block("net", "marked none") + block("c1", "wait\ntail -n 1 back.log"))
insert("eth0... UP", block(
    "h0 and h1",
    "[ ! -e /sys/class/net/stage0 ]\n"
    "ip route get 10.0.0.1 | grep 'dev eth0'")
    + block("c1", "ssh 10.0.0.10 true\nssh 10.0.0.11 true"))
page += block("h0 and h1 and c1",
              "[ -z \"$(dpkg-query -W -f '${Package} ${Status}\\n' |"
              " grep '^stagecoach')\" ]\n"
              "[ -z \"$(ls -d /etc/stagecoach /var/lib/stagecoach"
              " /run/stagecoach 2>/dev/null)\" ]\n"
              "[ -z \"$(systemctl --failed --quiet --no-legend)\" ]")
print(page)
END

# Links and the search are smaller than on real machines.
timeout 800 python3 "$SOURCE/tests/lab/run-document.py" \
    --machine "$dir/shell" "$dir/install.md" 25Gbit=100Mbit 10000=61 5000=43 \
    2500=23 >"$dir/last" 2>&1 || fail "install.md"
cat "$dir/last"
awk '/^line / { s += $3 } END { print "install_s", s }' "$dir/last"
echo PASS

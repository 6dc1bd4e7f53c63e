#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Cuts an agent off from its controller and the hosts database, for less and for
# more than its lease, and loses, duplicates, delays and reorders packets
# between them, while two searches train.  The kernels of the tests have no
# netem, so agents reach the controller through fault-network.py, by TLS.
set -eu
. "$SOURCE/tests/lab/lab-functions.sh"
. "$SOURCE/tests/lab/fault-functions.sh"

PATH=$PATH:/usr/sbin:/sbin
need_root
need ovsdb-server ip python3
[ -c /dev/net/tun ] || { echo "skip: no /dev/net/tun"; exit 77; }

# write_programs: writes a controller, which makes the network and a relay of
# the hosts database first, and an agent, both with TLS.
write_programs() {
    pki="$dir/pki"
    "$BUILD/cli/stagecoach" pki init --dir "$pki"
    "$BUILD/cli/stagecoach" pki issue controller c1 --dir "$pki"
    "$BUILD/cli/stagecoach" pki issue agent h0 h1 h2 --dir "$pki"
    cat >"$dir/bin/stagecoach-controller" <<SCRIPT
#!/bin/sh
if [ ! -e "$dir/network.out" ]; then
    python3 "$SOURCE/tests/lab/fault-network.py" "$dir/mode" \
        scl-$name-h0 scl-$name-h1 scl-$name-h2 >"$dir/network.out" \
        2>"$dir/network.log" &
    until grep -q ready "$dir/network.out"; do sleep 0.05; done
    ovsdb-server --remote=pssl:6640:10.99.0.1 --unixctl="$dir/relay.ctl" \
        -p "$pki/controllers/c1/identity.pem" \
        -c "$pki/controllers/c1/identity.pem" \
        -C "$pki/controllers/c1/ca.pem" -vconsole:warn -vsyslog:off \
        "relay:Stagecoach_Hosts:unix:$rundir/hosts.sock" \
        2>"$dir/relay.log" &
fi
for word; do
    shift
    case \$word in punix:*) word=pssl:6650:10.99.0.1 ;; esac
    set -- "\$@" "\$word"
done
exec "$BUILD/controller/stagecoach-controller" "\$@" \
    -p "$pki/controllers/c1/identity.pem" \
    -c "$pki/controllers/c1/identity.pem" -C "$pki/controllers/c1/ca.pem"
SCRIPT
    write_agent ssl:10.99.0.1:6640 ssl:10.99.0.1:6650
    chmod 755 "$dir/bin/"*
}
begin_faults fn write_programs

# network FAULT SECONDS MODE OPTION...
network() {
    fault_=$1 seconds=$2 mode=$3
    shift 3
    fault "$fault_" --hold "$seconds" "$@" \
        "echo $mode scl-$name-h1 >$dir/mode" ": >$dir/mode"
}
network partition-agent 6 "1 0 0" --alarm "agent disconnected on h1"
network partition-agent-long 13 "1 0 0" --alarm "agent disconnected on h1"
network packets 6 "0.1 0.2 100"
end_faults

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Checks the certificates of switches: a controller and Open vSwitch bridges
# over TLS.  A switch gets its flows if its certificate is that of its datapath
# id.  It is rejected with one log line if the certificate is another switch's,
# is not configured, or is from an unknown authority.  A switch rejects a
# controller of an older generation.  Needs neither root nor namespaces.
set -eu
. "$SOURCE/tests/lab/lab-functions.sh"

PATH=$PATH:/usr/sbin:/sbin
need ovs-vswitchd ovs-vsctl ovs-ofctl ovsdb-server ovs-appctl openssl

begin swtls
base=$((20000 + $$ % 9000 * 4))
. "$SOURCE/tests/lab/switch-functions.sh"

clean_up() {
    stop_databases new
    stop_databases old
}
show() { ovs-appctl -t "$dir/new.ctl" controller/switches; }

# authority NAME, certificate NAME AUTHORITY
authority() {
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes \
        -days 2 -subj "/CN=$1" -keyout "$dir/$1.key" -out "$dir/$1.pem" \
        2>/dev/null
}
certificate() {
    openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes \
        -subj "/CN=$1" -keyout "$dir/$1.key" -out "$dir/$1.csr" 2>/dev/null
    openssl x509 -req -in "$dir/$1.csr" -CA "$dir/$2.pem" \
        -CAkey "$dir/$2.key" -CAcreateserial -days 2 -out "$dir/$1.pem" \
        2>/dev/null
}

# bridge NAME DATAPATH PORT: creates a bridge that listens for TLS.
bridge() {
    ovs-vsctl --timeout=20 add-br "$1" -- set bridge "$1" \
        datapath_type=dummy fail_mode=secure \
        protocols=OpenFlow13,OpenFlow14 "other_config:datapath-id=$2" \
        -- set-controller "$1" "pssl:$3:127.0.0.1" \
        -- set controller "$1" connection-mode=out-of-band
}

# Gives the switch with all bridges the certificate of $1.
become() {
    ovs-vsctl set-ssl "$dir/$1.key" "$dir/$1.pem" "$dir/ours.pem"
}

# controller NAME OPTION...: starts a controller with a database of its own.
controller() {
    name=$1
    shift
    "$BUILD/controller/stagecoach-controller" --policy="$SOURCE/policies/stage.json" \
        --intent="unix:$dir/$name/intent.sock" \
        --hosts="unix:$dir/$name/hosts.sock" \
        --telemetry="unix:$dir/$name/fabric-telemetry.sock" --rest=none \
        --unixctl="$dir/$name.ctl" -vconsole:off -vsyslog:off \
        --log-file="$dir/$name.log" -p "$dir/c1.key" -c "$dir/c1.pem" \
        -C "$dir/ours.pem" "$@" &
    pids="$pids $!"
}

# says CONTROLLER SWITCH TEXT: checks the status of the switch with the port
# SWITCH.
says() {
    ovs-appctl -T 10 -t "$dir/$1.ctl" controller/switches |
        sed 's/{"applied"/\n&/g' | grep "127.0.0.1:$2\"" | grep -q -- "$3"
}
n_flows() {
    ovs-ofctl -O OpenFlow14 dump-flows "unix:$dir/ovs/$1.mgmt" \
        cookie=0x7374616765000000/0xffffffffff000000 | grep -c set_queue || :
}
has_flows() { [ "$(n_flows "$1")" = 8 ]; }

authority ours
authority theirs
certificate c1 ours
certificate tor0 ours
certificate tor1 ours
certificate rogue theirs
mv "$dir/rogue.pem" "$dir/foreign.pem"
mv "$dir/rogue.key" "$dir/foreign.key"

start_switch_database
start_switch ovs-vswitchd --enable-dummy=override
become tor0
bridge br0 0000000000000001 $base
bridge br1 0000000000000002 $((base + 1))
bridge br2 0000000000000003 $((base + 2))

# The database decides which controller is newer.
start_databases new
lead_from new 86400000
start_databases old
controller new --switch=ssl:127.0.0.1:$base \
    --switch=ssl:127.0.0.1:$((base + 1)) \
    --switch=ssl:127.0.0.1:$((base + 2)) \
    --switch-identity=0000000000000001:tor0 \
    --switch-identity=0000000000000002:tor1
new=$!
await "a switch with its own certificate is in sync" \
    says new $base '"state":"in sync"'
await "with all its flows" has_flows br0
await "another datapath id with that certificate is refused" \
    says new $((base + 1)) \
    'certificate of .*"tor0.*0002, which is that of .*"tor1'
await "a datapath id that is not configured is refused" \
    says new $((base + 2)) '0003, which no --switch-identity has'
[ "$(n_flows br1)" = 0 ] || fail "br1 was changed: $(n_flows br1) flows"
[ "$(n_flows br2)" = 0 ] || fail "br2 was changed: $(n_flows br2) flows"
lines=$(grep -c 'which is that of "tor1"' "$dir/new.log")
[ "$lines" -le 2 ] || fail "$lines lines of one refusal"
echo "ok: what was refused has no flow, and one line"

# With the other switch's certificate, the other switch is accepted.
become tor1
ovs-vsctl del-controller br1 -- del-controller br0
ovs-vsctl set-controller br1 "pssl:$((base + 1)):127.0.0.1" \
    -- set controller br1 connection-mode=out-of-band
await "with the right certificate it is in sync" \
    says new $((base + 1)) '"certificate":"tor1".*"state":"in sync"'
has_flows br1 || fail "br1 has $(n_flows br1) flows"

# A controller of an older generation, with a valid certificate.
controller old --switch=ssl:127.0.0.1:$((base + 1))
await "an older generation is refused by the switch" \
    says old $((base + 1)) 'another controller is newer'
says new $((base + 1)) '"state":"in sync"' ||
    fail "the newer controller has lost its switch"
has_flows br1 || fail "br1 has $(n_flows br1) flows"
kill "$!"

# A switch with a certificate of an unknown authority.
kill $new
wait $new || fail "the controller ended with $?"
become foreign
ovs-vsctl del-controller br1 -- set-controller br2 \
    "pssl:$((base + 3)):127.0.0.1" \
    -- set controller br2 connection-mode=out-of-band
controller new --switch=ssl:127.0.0.1:$((base + 3))
await "a certificate of another authority gets no answer" \
    grep -q "127.0.0.1:$((base + 3)): connection failed" "$dir/new.log"
says new $((base + 3)) '"state":"disconnected"' || fail "it is not away"
[ "$(n_flows br2)" = 0 ] || fail "br2 was changed: $(n_flows br2) flows"
echo PASS

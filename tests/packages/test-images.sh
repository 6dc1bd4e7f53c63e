#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Builds the images, checks them, and runs the containers of the chart from them
# by a runtime of OCI, on four nodes that are network namespaces: three
# controllers, of which one creates the databases and two join it, and agents.
#
# $DIST is a folder that ./package has made, which is used instead of a build,
# with the images in it if there are.
set -eu
. "$SOURCE/tests/lab/lab-functions.sh"

PATH=$PATH:/usr/sbin:/sbin
python=/usr/bin/python3
need_root
need buildah crun unshare dpkg-buildpackage apt-ftparchive ip
$python -c "import jsonschema, yaml" 2>/dev/null ||
    { echo "skip: no jsonschema and yaml for Python"; exit 77; }
need_cgroups
begin images
prefix=sci$(($$ % 100000))
started=
# crun refuses machines with both versions of control groups; containers see the
# second one only.
crun() {
    unshare --mount sh -c 'mount --bind "$1" /sys/fs/cgroup
        shift
        exec crun --cgroup-manager=disabled "$@"' sh "$mount" \
        --root "$dir/crun" "$@"
}
clean_up() {
    for container in $started; do
        crun kill "$container" KILL
    done
    wait
    for node in net k1 k2 k3 w1; do
        ip netns delete "$prefix-$node"
    done
    remove_cgroup "$prefix"
} 2>/dev/null
show() { tail -n 20 "$dir/last" "$dir"/*.out; }
quietly() { "$@" >"$dir/last" 2>&1 || fail "$*"; }

# The images.
dist=${DIST:-$dir/dist}
[ -n "${DIST:-}" ] || quietly "$SOURCE/package" --out "$dist"
archives=$dist/images
[ -d "$archives" ] || quietly "$SOURCE/packaging/container/build.py" \
    --dist "$dist"
quietly "$SOURCE/packaging/container/build.py" --dist "$dist" \
    --out "$dir/again" agent
cmp "$archives/stagecoach-agent.spdx.json" \
    "$dir/again/stagecoach-agent.spdx.json" || fail "a second list of packages"
digest() { tar -xOf "$1/stagecoach-agent.tar" index.json; }
[ "$(digest "$archives")" = "$(digest "$dir/again")" ] ||
    fail "a second build is another image"
mkdir "$dir/images"
quietly $python "$SOURCE/tests/packages/images.py" "$SOURCE" "$archives" \
    "$dir/images"
echo "ok: images"

# Nodes: controllers on k1 to k3, agents on all.
ip netns add "$prefix-net"
ip -n "$prefix-net" link add br0 type bridge
ip -n "$prefix-net" link set br0 up
add_node() {
    node=$dir/$1
    mkdir -p "$node/opt/cni/bin" "$node/etc/stagecoach" "$node/secrets"
    ip netns add "$prefix-$1"
    ip link add eth0 netns "$prefix-$1" type veth peer name "$1" \
        netns "$prefix-net"
    ip -n "$prefix-net" link set "$1" master br0 up
    ip -n "$prefix-$1" address add "$2/24" dev eth0
    ip -n "$prefix-$1" link set lo up
    ip -n "$prefix-$1" link set eth0 up
    quietly pki issue agent "$1"
    cp -r "$dir/pki/agents/$1" "$node/etc/stagecoach/tls"
    cp -r "$dir/pki/controllers/k" "$node/secrets/stagecoach-controller-tls"
}
pki() { "$BUILD/cli/stagecoach" pki "$@" --dir "$dir/pki"; }
quietly pki init
quietly pki issue controller k
quietly pki issue client prometheus --role read
address() {
    case $1 in w1) echo 10.98.0.9 ;; k*) echo "10.98.0.${1#k}" ;; esac
}
for node in k1 k2 k3 w1; do
    add_node $node "$(address $node)"
done

cat >"$dir/values.yaml" <<END
image: {registry: registry.example.com}
controller:
  addresses: [10.98.0.1, 10.98.0.2, 10.98.0.3]
  rest: {create: true}
agent:
  options: ["--cgroup=$prefix", "--rate=1Gbit"]
END
printf '  policy: |\n' >"$dir/policy"
sed 's/^/    /' "$SOURCE/policies/work.json" >>"$dir/policy"
sed -i "/^controller:/r $dir/policy" "$dir/values.yaml"
$python "$SOURCE/tests/unit/chart.py" "$SOURCE/packaging/chart" \
    "$dir/values.yaml" >"$dir/manifest.yaml" || fail "the chart"

# run_container NODE KIND CONTAINER
run_container() {
    crun run --bundle "$dir/$1/pod/$2/$3" "$prefix-$1-$3" \
        </dev/null >>"$dir/$1-$3.out" 2>&1
}
# start_pod NODE KIND: starts the pod's containers after its initContainers,
# which are repeated until they succeed.
start_pod() {
    $python "$SOURCE/tests/packages/pod.py" "$dir/manifest.yaml" "$2" \
        "$dir/images" "$dir/$1" "$1" "$(address "$1")" "$prefix-$1" \
        >"$dir/containers" || fail "the pod of $2 on $1"
    for container in $(cat "$dir/containers"); do
        case $container in
        -*)
            await "$1: ${container#-} has ended" \
                run_container "$1" "$2" "${container#-}"
            ;;
        *)
            started="$started $prefix-$1-$container"
            run_container "$1" "$2" "$container" &
            ;;
        esac
    done
}
# in_container NODE KIND CONTAINER COMMAND...: as "kubectl exec".
in_container() {
    user=$(cat "$dir/$1/pod/$2/$3/user")
    container=$prefix-$1-$3
    shift 3
    crun exec --user "$user" "$container" "$@" </dev/null
}
# passes NODE KIND CONTAINER PROBE
passes() (
    IFS="
"
    # shellcheck disable=SC2046
    in_container "$1" "$2" "$3" $(cat "$dir/$1/pod/$2/$3/$4")
)

is_ready() {
    await "$1 has started" passes "$1" StatefulSet controller startupProbe
    await "$1 is ready" passes "$1" StatefulSet controller readinessProbe
}

# The second machine waits for the first, and one that is no controller's does
# not start.
chart_pod() {
    $python "$SOURCE/tests/packages/pod.py" "$dir/manifest.yaml" "$@" \
        >/dev/null
}
chart_pod StatefulSet "$dir/images" "$dir/k2" k2 10.98.0.2 "$prefix-k2"
quietly run_container k2 StatefulSet owner
run_container k2 StatefulSet member && fail "k2 did not wait for k1"
grep -q "no other machine .* answers yet" "$dir/k2-member.out" ||
    fail "k2 waits"
rm -r "$dir/k2/pod"
chart_pod StatefulSet "$dir/images" "$dir/w1" w1 10.98.0.9 "$prefix-w1"
run_container w1 StatefulSet member && fail "w1 became a controller's machine"
grep -q "not one of controller.addresses" "$dir/w1-member.out" ||
    fail "w1 is refused"

for node in k1 k2 k3; do
    start_pod $node StatefulSet
    is_ready $node
done
in_container k1 StatefulSet controller stagecoach controller status >"$dir/last"
[ "$(grep -c 'ssl:10.98.0.1:664[34] .*ssl:10.98.0.2:.*ssl:10.98.0.3:' \
    "$dir/last")" = 2 ] || fail "the databases have three members"
for container in intent hosts relay controller; do
    passes k3 StatefulSet $container livenessProbe >"$dir/last" 2>&1 ||
        fail "$container is alive"
done

for node in k1 w1; do
    start_pod $node DaemonSet
    await "$node: the agent is alive" \
        passes $node DaemonSet agent livenessProbe
    cmp "$dir/$node/opt/cni/bin/stagecoach-cni" \
        "$dir/images/stagecoach-agent/usr/libexec/stagecoach/stagecoach-cni" ||
        fail "the CNI plug-in of $node"
done
# The controller that leads knows all.
in_some() {
    for node in k1 k2 k3; do
        in_container $node StatefulSet controller stagecoach "$@" \
            >"$dir/last" 2>&1 && grep -q "$pattern" "$dir/last" && return
    done
    return 1
}
pattern='^w1 .*connected *ordered'
await "the agents follow the order" in_some hosts
grep -q '^k1 .*connected *ordered' "$dir/last" || fail "k1's agent"
pattern='work'
await "the policy of the values is in force" in_some status
in_container w1 DaemonSet pods ls / >/dev/null || fail "stagecoach-pods runs"

# Metrics, by the certificate of a client; a host has no role.
metrics() {
    nsenter --net="/run/netns/$prefix-w1" $python - "$1" <<END
import ssl, sys, urllib.request
context = ssl._create_unverified_context()
context.load_cert_chain("$dir/pki/" + sys.argv[1] + "/identity.pem")
print(urllib.request.urlopen("https://10.98.0.1:8443/metrics",
                             context=context, timeout=5).read().decode())
END
}
metrics clients/prometheus >"$dir/last" 2>&1 || fail "metrics"
grep -q '^stagecoach_database_intent_connected 1' "$dir/last" || fail "metrics"
metrics agents/w1 >"$dir/last" 2>&1 && fail "metrics for a host"
echo "ok: metrics"

# A pod that is created again on its node finds its databases.
for container in controller relay hosts intent; do
    crun kill "$prefix-k3-$container" TERM
done
is_gone() { ! crun state "$prefix-k3-$1"; }
for container in controller relay hosts intent; do
    await "$container of k3 has ended" is_gone $container
done
rm -r "$dir/k3/pod"
start_pod k3 StatefulSet
is_ready k3
echo PASS

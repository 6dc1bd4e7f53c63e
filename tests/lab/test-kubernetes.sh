#!/bin/sh
# SPDX-License-Identifier: Apache-2.0

# Checks that the packets of a pod belong to its job, from the container
# runtime's calls of the CNI plug-in and from the kubelet's list in
# stagecoach-pods.  The agent is real; the namespace and cgroups are like those
# of a pod.

set -u
. "$SOURCE/tests/lab/lab-functions.sh"

need_root
need ip nsenter ovs-appctl python3
for program in stagecoach-cni stagecoach-pods; do
    [ -x "$BUILD/agent/launch/$program" ] \
        || { echo "needs $program, which is not built"; exit 77; }
done
need_cgroups
grep -qw bpf /proc/filesystems || { echo "skip: no BPF"; exit 77; }

begin pods
name=sct-pods-$$
pod_netns="nsenter --net=/run/netns/$name-pod"
uid=c3a1f0d2-0f1e-4b7c-9d58-1234567890ab
container=$(printf '0123456789abcdef%.0s' 1 2 3 4)
export STAGECOACH_CGROUP="$name/jobs" STAGECOACH_RUNDIR="$dir"

clean_up() {
    exec 3>&-
    remove_cgroup "$name"
    remove_uplink
}
show() {
    agent_asks agent/claims
    cat "$dir/tags"
}

agent_asks() {
    ovs-appctl -T 10 -t "$dir/agent.ctl" "$@" 2>/dev/null
}

agent_says() {
    agent_asks "$1" | grep -q -- "$2"
}

# packets_are JOB: checks that the client's packets have the slot of the job.
packets_are() {
    slot=$(sed -n "s,^slot \([0-9]*\) .* $1\$,\1,p" "$dir/shim.log")
    [ -n "$slot" ] && has_tag "$client_port" "$slot"
}

job_is_gone() {
    agent_says agent/jobs '"jobs":' && ! agent_says agent/jobs "\"$1\""
}

start_agent() {
    # shellcheck disable=SC2086
    $netns "$BUILD/agent/stagecoach-agent" --host=n1 --rate=1Gbit $uplink \
        -vconsole:info -vsyslog:off 2>>"$dir/agent.log" &
    agent=$!
    pids="$pids $agent"
    wait_for 3 "the agent answers" agent_says agent/status '"host":"n1"'
}

# talk PORT COMMAND...: a process of a pod, by COMMAND, connects to a server.
talk() {
    port=$1
    shift
    $away "$BUILD/tests/lab/fake-job" listen 10.98.0.2 "$port" \
        >"$dir/listening" 2>>"$dir/job.log" &
    pids="$pids $!"
    wait_for 2 "a server listens" test -s "$dir/listening"
    "$@" $pod_netns "$BUILD/tests/lab/fake-job" connect 10.98.0.2 "$port" \
        >"$dir/port" 2>>"$dir/job.log" &
    client=$!
    pids="$pids $client"
    wait_for 2 "a client is connected" test -s "$dir/port"
    client_port=$(cat "$dir/port")
    rm "$dir/listening" "$dir/port"
}

# cni COMMAND: calls the plug-in like a container runtime.
cni() {
    CNI_COMMAND=$1 CNI_CONTAINERID=$container CNI_IFNAME=eth0 CNI_PATH=/ \
        CNI_NETNS=/run/netns/$name-pod "$BUILD/agent/launch/stagecoach-cni" <<END
{"cniVersion": "1.0.0", "name": "n", "type": "stagecoach-cni",
 "rundir": "$dir", "prevResult": {"cniVersion": "1.0.0", "ips": []},
 "runtimeConfig": {"io.kubernetes.cri.pod-annotations": {
     "stagecoach.dev/stage": "asha7/2", "stagecoach.dev/job": "t1"}}}
END
}

mkdir -p "$mount/$name/jobs" || exit 77
: >"$dir/agent.log"
make_uplink
make_pod
mkfifo "$dir/commands"
"$BUILD/tests/lab/fake-shim" "$dir/shim.sock" <"$dir/commands" \
    >"$dir/shim.log" 2>&1 &
pids="$pids $!"
exec 3>"$dir/commands"
start_agent
wait_for 3 "the agent is connected to the shim" \
    agent_says agent/status '"shim":"connected"'

# The plug-in is called before the pod's first process.
[ "$(cni ADD)" = '{"cniVersion":"1.0.0","ips":[]}' ] || fail "ADD"
talk 5000 env
wait_for 3 "a pod's packets are its job's" packets_are asha7/t1
agent_says agent/jobs '"rung":2' || fail "its rung"
cni CHECK || fail "CHECK"
cni DEL || fail "DEL"
wait_for 3 "after the pod the job is gone" job_is_gone asha7/t1

# A kubelet's list of pods, with cgroups like those of its driver.
pod=$mount/$name/kubepods/burstable/pod$uid
mkdir -p "$pod/$container"
cat >"$dir/pods.json" <<END
{"kind": "PodList", "items": [
 {"metadata": {"name": "bert-worker-0", "namespace": "ml", "uid": "$uid",
   "labels": {"training.kubeflow.org/job-name": "bert"},
   "annotations": {"stagecoach.dev/stage": "asha8/1"}}}]}
END
in_pod() {
    sh -c 'echo 0 >"$1/cgroup.procs" && shift && exec "$@"' - \
        "$pod/$container" "$@"
}
look_at_pods() {
    "$BUILD/agent/launch/stagecoach-pods" --once \
        --pods "file://$dir/pods.json" --cgroup-mount "$mount/$name" \
        2>>"$dir/pods.log"
}
talk 5001 in_pod
look_at_pods || fail "stagecoach-pods: $(cat "$dir/pods.log")"
wait_for 3 "a pod's packets are its job's, in its cgroup" \
    packets_are asha8/bert

# A restarted agent gets the claims again.
kill -9 $agent
wait $agent 2>/dev/null
start_agent
look_at_pods || fail "stagecoach-pods: $(cat "$dir/pods.log")"
agent_says agent/claims '"job":"asha8/bert"' || fail "not claimed again"
echo "ok: a new agent gets the claims again"

# A process of a search claims another process, and does not wait for the
# reply.
python3 - $client "$dir/agent.ctl" <<'END' || fail "a claim in passing"
import json, socket, sys
sock = socket.socket(socket.AF_UNIX)
sock.connect(sys.argv[2])
sock.send(json.dumps({"id": 0, "method": "agent/claim", "params": [
    "registration", "asha9", "t3", "pid", sys.argv[1]]}).encode())
sock.close()
END
wait_for 3 "a claim without waiting is accepted" \
    agent_says agent/claims '"job":"asha9/t3"'

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0

# Checks the Slurm plug-in: an ordinary user's job with --stagecoach becomes a
# job of its cojob, in its own cgroup from its first socket to its end, and
# starts with or without an agent, and with the variables of RDMA; so do tasks of an array, components of a
# heterogeneous job, and a job that is requeued.  Runs a whole cluster in a
# namespace: n1, and n2, which has its configuration from the controller.

set -u
. "$SOURCE/tests/lab/lab-functions.sh"

PATH=$PATH:/usr/sbin
need_root
need ip nsenter runuser ovs-appctl munged slurmctld slurmd srun
grep -qw bpf /proc/filesystems || { echo "skip: no BPF"; exit 77; }
plugin=$BUILD/agent/launch/stagecoach-spank.so
[ -e "$plugin" ] || { echo "needs stagecoach-spank.so, which is not built"; exit 77; }
need_cgroups

begin slurm
name=sct-slurm-$$
address=10.98.0.1
user=nobody
netns="nsenter --net=/run/netns/$name"
export SLURM_CONF="$dir/etc/slurm.conf"
export STAGECOACH_CGROUP="$name/jobs" STAGECOACH_RUNDIR="$dir"

# All processes of the test are in one cgroup, because Slurm's daemons have
# children that outlive them.
clean_up() {
    remove_cgroup "$name"
    remove_uplink
}

show() { $netns scontrol show job; }

# start NAME COMMAND...: starts COMMAND in the namespace and the cgroup, and
# sets $pid.
start() {
    log=$dir/$1.log
    shift
    sh -c 'echo 0 >"$1/cgroup.procs" && shift && exec "$@"' - \
        "$mount/$name/slurmd.service" $netns "$@" >>"$log" 2>&1 </dev/null &
    pid=$!
    pids="$pids $pid"
}

start_agent() {
    start agent "$BUILD/agent/stagecoach-agent" --host=n1 --rate=1Gbit \
        --actuator=observe --uplink=sl0 --pins="/sys/fs/bpf/$name" \
        -vconsole:info -vsyslog:off
    agent=$pid
    wait_for 3 "the agent answers" agent_says agent/status '"host":"n1"'
}

agent_says() {
    ovs-appctl -T 10 -t "$dir/agent.ctl" "$1" 2>/dev/null | grep -q -- "$2"
}

# as_user COMMAND...: runs COMMAND as $user, for at most a minute.
as_user() {
    $netns timeout 60 runuser -u $user -- "$@"
}

in_cgroup() {
    grep -q "$1" "$2" 2>/dev/null
}

# submit OPTION...: submits the script on standard input, and sets $job.
submit() {
    cat >"$dir/batch"
    as_user sbatch --chdir=/ --output="$dir/out/log" "$@" "$dir/batch" \
        >"$dir/out/sbatch" || fail "sbatch: $(cat "$dir/out/sbatch")"
    job=$(sed 's/[^0-9]*//' "$dir/out/sbatch")
}

mkdir -p "$mount/$name/slurmd.service" "$mount/$name/jobs" || exit 77
chmod 755 "$dir"
mkdir -m 777 "$dir/out"
mkdir "$dir/etc" "$dir/state" "$dir/spool-n1" "$dir/spool-n2"
cp "$BUILD/tests/lab/fake-job" "$SOURCE"/agent/launch/slurm-*log "$dir/"
: >"$dir/agent.log"

# Slurm's daemons find the controller only with an address besides that of lo.
ip netns add $name || exit 77
ip netns add $name-far
$netns ip link set lo up
$netns ip link add sl0 type veth peer name sl1 netns $name-far
$netns ip address add $address/24 dev sl0
$netns ip link set sl0 up
ip -n $name-far address add 10.98.0.2/24 dev sl1
ip -n $name-far link set sl1 up
ip netns exec $name-far "$dir/fake-job" listen 10.98.0.2 6000 >/dev/null &
pids="$pids $!"

for hook in prolog epilog task-prolog; do
    cat >"$dir/$hook" <<END
#!/bin/sh
PATH=$BUILD/cli:\$PATH STAGECOACH_LEVEL=2
STAGECOACH_CGROUP=$STAGECOACH_CGROUP STAGECOACH_RUNDIR=$STAGECOACH_RUNDIR
export PATH STAGECOACH_LEVEL STAGECOACH_CGROUP STAGECOACH_RUNDIR
"$dir/slurm-$hook" || exit 1
[ $hook = task-prolog ] || echo "\$SLURM_JOB_ID \${SPANK__SLURM_SPANK_OPTION_stagecoach_stagecoach:-}" \\
    >>"$dir/$hook.log"
END
    chmod 755 "$dir/$hook"
done
cat >"$dir/etc/plugstack.conf" <<END
optional $plugin cgroup=$STAGECOACH_CGROUP
END
echo "CgroupPlugin=cgroup/v1" >"$dir/etc/cgroup.conf"
host=$(hostname -s)
cat >"$SLURM_CONF" <<END
ClusterName=stagecoach
SlurmctldHost=$host($address)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$dir/munge.socket,cred_expire=8
CredType=cred/munge
SlurmctldPort=16817
StateSaveLocation=$dir/state
SlurmctldPidFile=$dir/slurmctld.pid
SlurmctldParameters=enable_configless
SchedulerParameters=bf_interval=1
SlurmdSpoolDir=$dir/spool-%n
SlurmdPidFile=$dir/slurmd-%n.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
MpiDefault=none
ReturnToService=2
KillWait=1
Prolog=$dir/prolog
Epilog=$dir/epilog
TaskProlog=$dir/task-prolog
NodeName=n1 NodeHostname=$host NodeAddr=$address Port=16818 CPUs=4
NodeName=n2 NodeHostname=$host NodeAddr=$address Port=16819 CPUs=4
PartitionName=all Nodes=n1 Default=YES State=UP
PartitionName=both Nodes=n1,n2 State=UP
END

head -c 1024 /dev/urandom >"$dir/munge.key"
chmod 600 "$dir/munge.key"
start munged munged --foreground --force --socket="$dir/munge.socket" \
    --key-file="$dir/munge.key" --pid-file="$dir/munge.pid" \
    --log-file="$dir/munge.log" --seed-file="$dir/munge.seed"
wait_for 5 "munged listens" test -S "$dir/munge.socket"
start slurmctld slurmctld -D -f "$SLURM_CONF"
# Settings in plugstack.conf override slurmd's environment.
start slurmd env STAGECOACH_CGROUP=elsewhere slurmd -D -N n1 -f "$SLURM_CONF"
slurmd=$pid
# n2 has no file of Slurm, only the socket of munge in its usual place.
start slurmd2 env -u SLURM_CONF unshare --mount sh -c '
    mount -t tmpfs tmpfs "$0/etc" && mount -t tmpfs tmpfs /run &&
    mkdir /run/munge && ln -s "$0/munge.socket" /run/munge/munge.socket.2 &&
    exec "$@"' "$dir" slurmd -D -N n2 --conf-server "$address:16817"
start_agent
nodes_are_idle() {
    [ "$($netns sinfo -h -N -p both -o %t 2>/dev/null | tr '\n' ' ')" = \
        "idle idle " ]
}
wait_for 20 "the nodes are there" nodes_are_idle

# A bad option is rejected before the job is created.
if as_user srun --stagecoach=a/b:1 true 2>"$dir/refused"; then
    fail "a/b:1 was accepted"
fi
grep -q 'stagecoach: "a/b:1" is not a stage; expected COJOB' "$dir/refused" \
    || fail "what srun said: $(cat "$dir/refused")"
echo "ok: a bad option is refused"

# Two tasks that send.
cat >"$dir/task" <<END
#!/bin/sh
cat /proc/self/cgroup >"$dir/out/cgroup.\$SLURM_PROCID"
env >"$dir/out/env.\$SLURM_PROCID"
exec "$dir/fake-job" connect 10.98.0.2 6000
END
chmod 755 "$dir/task"
$netns timeout 60 runuser -u $user -- srun -n 2 -K --stagecoach=asha7:2 \
    "$dir/task" >"$dir/out/srun" 2>&1 &
srun=$!
pids="$pids $srun"
wait_for 20 "task 1 has its cgroup" test -s "$dir/out/env.1"
job=$(sed -n 's/^SLURM_JOB_ID=//p' "$dir/out/env.1")
[ -n "$job" ] || fail "no SLURM_JOB_ID"
wait_for 5 "task 0, too" test -s "$dir/out/env.0"
for task in 0 1; do
    in_cgroup "^0::/$name/jobs/asha7/slurm-$job$" "$dir/out/cgroup.$task" \
        || fail "task $task is in $(cat "$dir/out/cgroup.$task")"
    for line in STAGECOACH_COJOB=asha7 "STAGECOACH_JOB=slurm-$job" \
        "STAGECOACH_RUNDIR=$dir" STAGECOACH_STAGE=asha7:2 \
        "STAGECOACH_CGROUP=$STAGECOACH_CGROUP" NCCL_IB_TC=76 NCCL_IB_SL=4 \
        NCCL_IB_FIFO_TC=156 UCX_IB_TRAFFIC_CLASS=76; do
        grep -qx "$line" "$dir/out/env.$task" || fail "task $task: no $line"
    done
done
grep -qx "USER=$user" "$dir/out/env.0" || fail "the task is not $user's"
wait_for 2 "the prolog ran for it" grep -qx "$job asha7:2" "$dir/prolog.log"
wait_for 3 "the agent has the job" agent_says agent/jobs "\"asha7/slurm-$job\""
wait_for 3 "the kernel counts its bytes" agent_says agent/jobs \
    "\"job\":\"asha7/slurm-$job\".*\"tx_bytes\":[1-9]"

# A job without --stagecoach is not registered.
as_user srun cat /proc/self/cgroup >"$dir/out/stranger" || fail "a plain job"
in_cgroup "/$name/jobs" "$dir/out/stranger" && fail "a plain job was moved"
echo "ok: a plain job is left alone"

# The end of the job.
$netns scancel "$job"
wait $srun 2>/dev/null
wait_for 10 "the epilog ran for it" grep -qx "$job asha7:2" "$dir/epilog.log"
test ! -e "$dir/slurm-$job.env" || fail "its variables are left"
wait_for 3 "its cgroup is gone" test ! -e "$mount/$name/jobs/asha7/slurm-$job"
job_is_gone() {
    agent_says agent/jobs '"jobs":' &&
        ! agent_says agent/jobs "asha7/slurm-$job"
}
wait_for 8 "the agent has forgotten it" job_is_gone

# Steps of a batch script belong to the script's job.
submit <<END
#!/bin/sh
#SBATCH --stagecoach=asha7
cat /proc/self/cgroup >"$dir/out/batch"
srun cat /proc/self/cgroup >"$dir/out/step"
END
wait_for 20 "the batch job ends" grep -q "^$job " "$dir/epilog.log"
in_cgroup "/jobs/asha7/slurm-$job$" "$dir/out/batch" \
    || fail "the script is in $(cat "$dir/out/batch")"
in_cgroup "/jobs/asha7/slurm-$job$" "$dir/out/step" \
    || fail "its step is in $(cat "$dir/out/step") $(cat "$dir/out/log")"
echo "ok: the script's step is the script's job"

# A node without a file of Slurm has the plug-in from the controller's.
as_user srun -p both -w n2 --stagecoach=asha9 cat /proc/self/cgroup \
    >"$dir/out/configless" || fail "a job on the configless node"
in_cgroup "/jobs/asha9/slurm-" "$dir/out/configless" ||
    fail "it is in $(cat "$dir/out/configless")"
echo "ok: a configless node"

# Each task of an array is a job, with the number that squeue has for it.
submit --array=3-4 --stagecoach=asha10:0 <<END
#!/bin/sh
exec "$dir/fake-job" connect 10.98.0.2 6000
END
array_jobs() { $netns squeue -h -t R -j "$job" -o slurm-%A; }
array_runs() { [ "$(array_jobs | wc -l)" = 2 ]; }
wait_for 20 "both tasks of an array run" array_runs
for task in $(array_jobs); do
    wait_for 5 "$task is a job" agent_says agent/jobs "\"asha10/$task\""
done
$netns scancel "$job"

# Each component of a heterogeneous job is a job, by the option of the first.
submit <<END
#!/bin/sh
#SBATCH -p both -w n1 --stagecoach=asha11:1
#SBATCH hetjob
#SBATCH -p both -w n2
srun --het-group=0,1 sh -c 'cat /proc/self/cgroup >$dir/out/het.\$SLURM_PROCID
    exec $dir/fake-job connect 10.98.0.2 6000'
END
wait_for 30 "both components run" test -s "$dir/out/het.0" -a -s "$dir/out/het.1"
for component in 0 1; do
    in_cgroup "/jobs/asha11/slurm-$((job + component))$" \
        "$dir/out/het.$component" ||
        fail "component $component is in $(cat "$dir/out/het.$component")"
done
$netns scancel "$job"

# A job that is requeued, which takes "cred_expire", is the same one.
submit --requeue --stagecoach=asha12 <<END
#!/bin/sh
cat /proc/self/cgroup >"$dir/out/run.\${SLURM_RESTART_COUNT:-0}"
exec "$dir/fake-job" connect 10.98.0.2 6000
END
wait_for 20 "a job runs" test -s "$dir/out/run.0"
$netns scontrol requeue "$job" || fail "requeue"
wait_for 20 "it runs again" test -s "$dir/out/run.1"
in_cgroup "/jobs/asha12/slurm-$job$" "$dir/out/run.1" ||
    fail "it is in $(cat "$dir/out/run.1") now"
wait_for 3 "the agent has it" agent_says agent/jobs "\"asha12/slurm-$job\""
$netns scancel "$job"

# If Slurm has cgroups of its own, tasks stay in them, whatever the names are:
# SLUIDs or numbers of jobs and names of nodes, by a seed.
python3 - >"$dir/own" <<'END'
from random import Random

random = Random(66)
for _ in range(6):
    node = random.choice(["", "n1_", "gpu-7.example.com_"])
    job = random.choice([f"job_{random.randrange(10**7)}", "s" + "".join(
        random.choices("0123456789ABCDEFGHJKMNPQRSTVWXYZ", k=13))])
    step = random.choice(["step_0/user/task_0", "step_batch/user", "step_0"])
    print(f"{node}slurmstepd.scope/{job} {step}")
END
while read -r own step; do
    job=$((job + 1))
    own=$name/$own
    mkdir -p "$mount/$own/$step"
    : >"$dir/out/own" # The step before has written there.
    echo "$slurmd" >"$mount/$own/$step/cgroup.procs"
    as_user srun --stagecoach=asha8:1 -K --export=ALL,SLURM_GPUS_ON_NODE=2 \
        sh -c "cat /proc/self/cgroup
            exec '$dir/fake-job' listen $address 6001" \
        >"$dir/out/own" 2>&1 </dev/null &
    srun=$!
    pids="$pids $srun"
    wait_for 20 "a job in Slurm's cgroup" grep -q listening "$dir/out/own"
    in_cgroup "^0::/$own/$step$" "$dir/out/own" ||
        fail "it is in $(cat "$dir/out/own")"
    wait_for 3 "is claimed" agent_says agent/claims \
        "\"job\":\"asha8/slurm-$job\",\"path\":\"$mount/$own\""
    agent_says agent/jobs '"rung":1' || fail "its rung"
    agent_says agent/jobs '"gpus":2' || fail "its GPUs"
    $netns scancel $job
    wait $srun 2>/dev/null
    echo "$slurmd" >"$mount/$name/slurmd.service/cgroup.procs"
    echo "case scheduler ok: $own/$step"
done <"$dir/own"

# Jobs start while the agent hangs, and without an agent.
kill -STOP "$agent"
as_user srun --stagecoach=asha7:3 cat /proc/self/cgroup >"$dir/out/hangs" \
    || fail "a job beside an agent that hangs"
in_cgroup "/jobs/asha7/slurm-" "$dir/out/hangs" || fail "it was not moved"
echo "ok: an agent that hangs stops no job"
kill -KILL "$agent"
wait "$agent" 2>/dev/null
as_user srun --stagecoach=asha7:3 cat /proc/self/cgroup >"$dir/out/none" \
    || fail "a job without an agent"
in_cgroup "/jobs/asha7/slurm-" "$dir/out/none" || fail "it was not moved"
echo "ok: nor does one that is not there"

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# slurm.sh NAME: starts Slurm on the hosts of the lab NAME, which is up: a
# controller on h0 and a node on each host, with Stagecoach's plug-in, as root
# and without systemd.  "stagecoach lab down" ends all of it: the daemons are
# in the lab's cgroup, their files in its run directory.
#
# On a host, SLURM_CONF=/run/stagecoach/lab-NAME/slurm/slurm.conf is all that
# srun and the others need.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
PATH=${BUILD:-$here/../build}/cli:$PATH:/usr/sbin
cpus=8                          # That each node says it has.

fail() {
    echo "slurm.sh: $*" >&2
    exit 1
}

[ $# = 1 ] || fail "usage: slurm.sh NAME (of a lab that is up)"
name=$1
rundir=/run/stagecoach/lab-$name
dir=$rundir/slurm
for program in munged slurmctld slurmd srun; do
    command -v $program >/dev/null ||
        fail "needs $program: apt-get install munge slurmctld slurmd slurm-client"
done
plugin=${BUILD:-$here/../build}/agent/launch/stagecoach-spank.so
[ -e "$plugin" ] || fail "needs $plugin, which is built where libslurm-dev is"
[ -d "$rundir/hosts" ] || fail "no lab \"$name\" is up"
[ ! -e "$dir" ] || fail "Slurm runs in the lab \"$name\" already"

# on HOST COMMAND...: replaces the shell that runs it.
on() {
    host=$1
    shift
    exec stagecoach lab exec --name "$name" "$host" -- "$@"
}

# wait_for WHAT COMMAND...: until the command succeeds, for 20 s.
wait_for() {
    what=$1
    shift
    tries=0
    until "$@"; do
        tries=$((tries + 1))
        [ $tries -lt 200 ] || fail "$what; logs are in $dir"
        sleep 0.1
    done
}

mkdir -p "$dir/state"
chmod 755 "$dir"
machine=$(hostname -s)
cp "$plugin" "$dir/"
echo "optional $dir/stagecoach-spank.so" >"$dir/plugstack.conf"
echo "CgroupPlugin=cgroup/v1" >"$dir/cgroup.conf"
cat >"$dir/slurm.conf" <<END
ClusterName=stagecoach
SlurmctldHost=$machine(10.77.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$dir/munge.socket
CredType=cred/munge
SlurmctldPort=16817
StateSaveLocation=$dir/state
SlurmctldPidFile=$dir/slurmctld.pid
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
PlugStackConfig=$dir/plugstack.conf
END
hosts=
for path in "$rundir"/hosts/h*; do
    host=${path##*/}
    mkdir "$dir/spool-$host"
    echo "NodeName=$host NodeHostname=$machine" \
        "NodeAddr=10.77.0.$((${host#h} + 1)) Port=16818 CPUs=$cpus" \
        >>"$dir/slurm.conf"
    hosts="$hosts $host"
done
echo "PartitionName=all Nodes=ALL Default=YES State=UP" >>"$dir/slurm.conf"

head -c 1024 /dev/urandom >"$dir/munge.key"
chmod 600 "$dir/munge.key"
on h0 munged --foreground --force --socket="$dir/munge.socket" \
    --key-file="$dir/munge.key" --pid-file="$dir/munge.pid" \
    --log-file="$dir/munge.log" --seed-file="$dir/munge.seed" \
    >"$dir/munged.out" 2>&1 </dev/null &
wait_for "munged does not listen" test -S "$dir/munge.socket"
on h0 slurmctld -D -f "$dir/slurm.conf" \
    >"$dir/slurmctld.log" 2>&1 </dev/null &
# A task leaves the cgroup of the service that starts it, and no other.
# shellcheck disable=SC2016
as_service='cgroup=$(sed -n "s/^[^ ]* \([^ ]*\) cgroup2 .*/\1/p" /proc/mounts |
    head -n 1)$(sed -n "s/^0:://p" /proc/self/cgroup)/slurmd.service
mkdir -p "$cgroup" && echo 0 >"$cgroup/cgroup.procs" && exec "$@"'
for host in $hosts; do
    on "$host" sh -c "$as_service" - slurmd -D -N "$host" -f "$dir/slurm.conf" \
        >"$dir/slurmd-$host.log" 2>&1 </dev/null &
done

export SLURM_CONF="$dir/slurm.conf"
all_idle() {
    states=$(stagecoach lab exec --name "$name" h0 -- sinfo -h -N -o %t \
             2>/dev/null) || return 1
    [ "$(echo "$states" | sort -u)" = idle ]
}
wait_for "not all nodes are there" all_idle
echo "Slurm runs on$hosts; SLURM_CONF=$SLURM_CONF"

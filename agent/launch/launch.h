/* SPDX-License-Identifier: Apache-2.0 */

#ifndef AGENT_LAUNCH_LAUNCH_H
#define AGENT_LAUNCH_LAUNCH_H 1

/* What launchers of jobs share: cgroups of jobs, and names of stages.
 *
 * The traffic of a process in ROOT/COJOB/JOB of the cgroup v2 tree, and of its
 * descendants, belongs to that job without further registration (see
 * agent/identify/process.h).  "stagecoach run" moves itself there; the plug-in
 * of a cluster manager moves other processes before they execute their
 * program.
 *
 * Where somebody else has put the process, it stays: a move would take it out
 * of the limits, the accounting and the end of its scheduler's job.  Slurm's
 * job is the directory below its slurmstepd.scope, whatever its name, a pod is
 * the directory of the kubelet with its UID (pod-path.h); both hold the job
 * alone, and are claimed whole.  A task may leave only the cgroup of what
 * starts it: slurmd's service, a login session, or the root.
 *
 * Users pass the name of a stage, "COJOB:RUNG", to srun, or write it into the
 * annotation of a pod (with "/" instead of ":").  Mistakes are reported where
 * the user sees them, so the message has what is expected.
 *
 *    path = job_cgroup_path(pid);
 *    whole = job_cgroup_of_scheduler(path);
 *    if (!whole && job_cgroup_may_leave(path)) ...job_cgroup_enter()...
 *
 *    char dir[] = "/sys/fs/cgroup/stagecoach/asha7/t0";
 *
 *    error = job_cgroup_enter(dir, pid);
 *    message = stage_name_parse("--stagecoach", "asha7:2", ':', &stage);
 *
 * Plain C without any library.  Thread-safe, except
 * job_cgroup_of_scheduler(). */

#include <stdbool.h>
#include <sys/types.h>

#include "base/name.h"

/* Creates 'dir' and moves process 'pid', 0 for the caller's, into it.  Returns
 * 0 or a positive errno value. */
int job_cgroup_enter(char *dir, pid_t pid);

/* Returns the path of the cgroup of version 2 of process 'pid', relative to
 * the mount, or NULL.  The caller frees it. */
char *job_cgroup_path(pid_t pid);

/* Returns the part of 'path' that names the directory of a scheduler's job, or
 * NULL without one.  The caller frees it. */
char *job_cgroup_of_scheduler(const char *path);

/* Returns true if a process may be moved out of 'path'. */
bool job_cgroup_may_leave(const char *path);

#define STAGE_NAME_MAX_RUNG 1000

struct stage_name {
    char cojob[NAME_SIZE];
    int rung;                   /* -1 without a rung: "asha7". */
};

/* Returns NULL or a malloc()'d message; then '*stage' is unchanged. */
char *stage_name_parse(const char *place, const char *text, char separator,
                       struct stage_name *stage);

#endif /* agent/launch/launch.h */

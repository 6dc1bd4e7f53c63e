/* SPDX-License-Identifier: Apache-2.0 */

/* Plug-in of Slurm (SPANK): srun and sbatch --stagecoach=COJOB:RUNG.
 *
 * Slurm calls task_post_fork as root on each node, between the fork and the
 * exec of each task.  The plug-in then moves the task into the cgroup of its
 * job, so that all its sockets belong to the job.  If Slurm itself keeps its
 * jobs in cgroups of version 2, the task stays there, and the plug-in claims
 * that cgroup from the agent.  The Slurm job JOBID is the job slurm-JOBID of
 * COJOB.  A failure never prevents a task from running; it is one line in
 * slurmd's log.  Only an invalid value of the option stops srun and sbatch,
 * before there is a job.
 *
 * Steps of a batch script have no option of their own; they use the script's,
 * from STAGECOACH_STAGE, which the plug-in sets in each task. */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <slurm/spank.h>

#include "agent/launch/launch.h"
#include "base/name.h"
#include "wire/agent-call.h"
#include "wire/cgroup-path.h"

SPANK_PLUGIN(stagecoach, 1);

#define STAGE_VARIABLE "STAGECOACH_STAGE"

/* A process loads the plug-in once, for one job. */
static struct stage_name stage; /* 'cojob' is empty for other jobs. */
static const char *rundir = AGENT_RUNDIR;
static const char *root = "stagecoach";

static int
take_option(int val, const char *text, int remote)
{
    char *error = stage_name_parse("--stagecoach", text ? text : "", ':',
                                   &stage);

    if (error) {
        slurm_error("%s", error);
        free(error);
        return remote ? ESPANK_SUCCESS : ESPANK_BAD_ARG;
    }
    return ESPANK_SUCCESS;
}

/* Reads slurmd's environment, so that several slurmds of a machine can share a
 * plugstack.conf, and then the arguments after the plug-in's name. */
static void
read_arguments(int argc, char *argv[])
{
    const char *env_rundir = getenv("STAGECOACH_RUNDIR");
    const char *env_root = getenv("STAGECOACH_CGROUP");

    rundir = env_rundir && env_rundir[0] ? env_rundir : rundir;
    root = env_root && cgroup_root_is_valid(env_root) ? env_root : root;
    for (int i = 0; i < argc; i++) {
        if (!strncmp(argv[i], "rundir=", 7)) {
            rundir = argv[i] + 7;
        } else if (!strncmp(argv[i], "cgroup=", 7)
                   && cgroup_root_is_valid(argv[i] + 7)) {
            root = argv[i] + 7;
        } else {
            slurm_error(
                "stagecoach: plugstack.conf: \"%s\"; expected "
                "rundir=DIRECTORY or cgroup=PATH below the cgroup v2 mount",
                argv[i]);
        }
    }
}

int
slurm_spank_init(spank_t sp, int argc, char *argv[])
{
    static struct spank_option option = {
        (char *) "stagecoach", (char *) "COJOB[:RUNG]",
        (char *) "the search, and its stage, that this job's traffic is of",
        1, 0, take_option
    };

    read_arguments(argc, argv);
    return spank_option_register(sp, &option);
}

/* Reads the stage from the environment if the option is missing. */
static void
take_variable(spank_t sp)
{
    char text[NAME_SIZE + 16], *error;

    if (!stage.cojob[0] && spank_getenv(sp, STAGE_VARIABLE, text, sizeof text)
                           == ESPANK_SUCCESS) {
        error = stage_name_parse(STAGE_VARIABLE, text, ':', &stage);
        if (error) {
            slurm_info("stagecoach: %s", error);
            free(error);
        }
    }
}

/* Determines the job of the task. */
static bool
get_job(spank_t sp, char job[32], uint32_t *id)
{
    take_variable(sp);
    if (!stage.cojob[0]
        || spank_get_item(sp, S_JOB_ID, id) != ESPANK_SUCCESS) {
        return false;
    }
    snprintf(job, 32, "slurm-%u", (unsigned int) *id);
    return true;
}

/* Runs as the task's user. */
int
slurm_spank_task_init(spank_t sp, int argc, char *argv[])
{
    char job[32], text[NAME_SIZE + 16];
    uint32_t id;

    if (get_job(sp, job, &id)) {
        int n = snprintf(text, sizeof text, "%s", stage.cojob);

        if (stage.rung >= 0) {
            snprintf(text + n, sizeof text - n, ":%d", stage.rung);
        }
        spank_setenv(sp, STAGE_VARIABLE, text, 1);
        spank_setenv(sp, "STAGECOACH_COJOB", stage.cojob, 1);
        spank_setenv(sp, "STAGECOACH_JOB", job, 1);
        spank_setenv(sp, "STAGECOACH_RUNDIR", rundir, 1);
        spank_setenv(sp, "STAGECOACH_CGROUP", root, 1);
    }
    return ESPANK_SUCCESS;
}

/* Claims the cgroup 'what', or the process with that id, for 'job'. */
static void
tell_agent(spank_t sp, const char *job, const char *kind, const char *what)
{
    long long until = agent_call_until(AGENT_CALL_MS);
    const char *words[] = { "agent/register", stage.cojob, job };
    char rung[32], user[32], gpus[32] = "gpus=";
    const char *claim[9] = { "agent/claim", "launcher", stage.cojob,
                             job,           kind,       what };
    size_t n = 6;
    uid_t uid;
    int error;

    if (stage.rung >= 0) {
        snprintf(rung, sizeof rung, "rung=%d", stage.rung);
        claim[n++] = rung;
    }
    if (spank_get_item(sp, S_JOB_UID, &uid) == ESPANK_SUCCESS) {
        snprintf(user, sizeof user, "uid=%u", (unsigned int) uid);
        claim[n++] = user;
    }
    if (spank_getenv(sp, "SLURM_GPUS_ON_NODE", gpus + 5, sizeof gpus - 5)
            == ESPANK_SUCCESS
        && gpus[5] && !gpus[5 + strspn(gpus + 5, "0123456789")]) {
        claim[n++] = gpus;
    }
    error = agent_call(rundir, until, claim, n, NULL);
    if (!error) {
        error = agent_call(rundir, until, words, 3, NULL);
    }
    if (error) {
        slurm_info("stagecoach: %s/%s: %s/agent.ctl: the agent does not "
                   "reply (%s), going on without",
                   stage.cojob, job, rundir, strerror(error));
    }
}

/* Moves task 'pid' into the cgroup of 'job'.  One task per node registers the
 * job with the agent. */
static void
enter(spank_t sp, const char *job, pid_t pid, bool tell)
{
    char *mount = cgroup_mount_from("/proc/mounts");
    char *dir = NULL;
    int error;

    if (!mount) {
        slurm_info("stagecoach: no cgroup v2 file system is mounted, going on "
                   "without");
    } else if (asprintf(&dir, "%s/%s/%s/%s", mount, root, stage.cojob,
                        job) < 0) {
        dir = NULL;
    } else {
        error = job_cgroup_enter(dir, pid);
        if (error) {
            slurm_info("stagecoach: %s: cannot move task %ld there (%s), "
                       "going on without", dir, (long) pid, strerror(error));
        } else if (tell) {
            tell_agent(sp, job, "cgroup", dir);
        }
    }
    free(dir);
    free(mount);
}

/* Runs as root, before the task executes its command. */
int
slurm_spank_task_post_fork(spank_t sp, int argc, char *argv[])
{
    uint32_t id, task = 0;
    char job[32], text[32], *path, *own;
    pid_t pid;

    if (!get_job(sp, job, &id)
        || spank_get_item(sp, S_TASK_PID, &pid) != ESPANK_SUCCESS) {
        return ESPANK_SUCCESS;
    }
    spank_get_item(sp, S_TASK_ID, &task);
    path = job_cgroup_path(pid);
    own = path ? job_cgroup_of_scheduler(path) : NULL;
    if (own) {
        if (task == 0) {
            tell_agent(sp, job, "cgroup", own);
        }
    } else if (!path || job_cgroup_may_leave(path)) {
        enter(sp, job, pid, task == 0);
    } else {
        snprintf(text, sizeof text, "%ld", (long) pid);
        tell_agent(sp, job, "pid", text);
    }
    free(own);
    free(path);
    return ESPANK_SUCCESS;
}

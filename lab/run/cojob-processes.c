/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "lab/run/cojob-processes.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lab/cluster/plan.h"
#include "lab/cluster/say.h"
#include "scenario/scenario.h"
#include "lab/cluster/spawn.h"
#include "process.h"
#include "svec.h"
#include "timeval.h"
#include "util.h"

#define STOP_MS 2000            /* From SIGTERM to SIGKILL. */
#define TAIL_LINES 5            /* Of a process's log, when it fails. */
#define FIRST_PORT 29500        /* Of the jobs' rendezvous. */

struct job_process {
    const struct scenario_job *job;
    size_t rank;
    pid_t pid;                  /* 0 before it starts and after its end. */
};

struct cojob_processes {
    const struct plan *plan;
    const struct scenario *scenario;
    const struct scenario_cojob *cojob;
    size_t n;
    struct job_process *processes;      /* Job by job, by rank. */
};

struct cojob_processes *
cojob_processes_create(const struct plan *plan,
                       const struct scenario *scenario,
                       const struct scenario_cojob *cojob)
{
    struct cojob_processes *cp = xzalloc(sizeof *cp);
    size_t n = 0;

    cp->plan = plan;
    cp->scenario = scenario;
    cp->cojob = cojob;
    for (size_t i = 0; i < cojob->n_jobs; i++) {
        n += cojob->jobs[i].n_hosts;
    }
    cp->processes = xcalloc(n, sizeof *cp->processes);
    for (size_t i = 0; i < cojob->n_jobs; i++) {
        for (size_t rank = 0; rank < cojob->jobs[i].n_hosts; rank++) {
            struct job_process *p = &cp->processes[cp->n++];

            p->job = &cojob->jobs[i];
            p->rank = rank;
        }
    }
    return cp;
}

/* Ends the processes that still run, with all that they have started and that
 * did not leave their process group. */
void
cojob_processes_stop(struct cojob_processes *cp)
{
    long long deadline = time_msec() + STOP_MS;

    for (size_t i = 0; i < cp->n; i++) {
        if (cp->processes[i].pid) {
            kill(-cp->processes[i].pid, SIGTERM);
        }
    }
    for (size_t i = 0; i < cp->n; i++) {
        struct job_process *p = &cp->processes[i];
        int status;

        if (p->pid) {
            if (!wait_child(p->pid, MAX(0, deadline - time_msec()),
                            &status)) {
                kill(-p->pid, SIGKILL);
                waitpid(p->pid, &status, 0);
            }
            p->pid = 0;
        }
    }
}

void
cojob_processes_destroy(struct cojob_processes *cp)
{
    if (cp) {
        cojob_processes_stop(cp);
        free(cp->processes);
        free(cp);
    }
}

static char *
address(int host)
{
    return xasprintf("10.77.0.%d", host + 1);
}

static char *
addresses(const struct scenario_job *job)
{
    struct svec svec = SVEC_EMPTY_INITIALIZER;
    char *text;

    for (size_t i = 0; i < job->n_hosts; i++) {
        svec_add_nocopy(&svec, address(job->hosts[i]));
    }
    text = svec_join(&svec, ",", "");
    svec_destroy(&svec);
    return text;
}

/* A number that no other job of the scenario has. */
static int
job_port(const struct cojob_processes *cp, const struct scenario_job *job)
{
    const struct scenario *s = cp->scenario;
    int port = FIRST_PORT + (job - cp->cojob->jobs);

    for (const struct scenario_cojob *c = s->cojobs; c != cp->cojob; c++) {
        port += c->n_jobs;
    }
    return port;
}

/* Fills 'values', which the caller frees, for scenario_substitute(). */
static void
get_words(const struct cojob_processes *cp, const struct job_process *p,
          char *values[N_WORDS])
{
    values[WORD_RANK] = xasprintf("%"PRIuSIZE, p->rank);
    values[WORD_WORLD] = xasprintf("%"PRIuSIZE, p->job->n_hosts);
    values[WORD_HOSTS] = addresses(p->job);
    values[WORD_MASTER] = address(p->job->hosts[0]);
    values[WORD_PORT] = xasprintf("%d", job_port(cp, p->job));
    values[WORD_SCENARIO] = xstrdup(cp->scenario->dir);
    values[WORD_LOG] = xasprintf("%s/log", cp->plan->rundir);
    values[WORD_TRAINER] = plan_program(cp->plan, "stagecoach-trainer");
}

/* "stagecoach run" and the command. */
static void
compose_argv(const struct cojob_processes *cp, const struct job_process *p,
             char *const values[], struct svec *argv)
{
    svec_add_nocopy(argv, plan_program(cp->plan, "stagecoach"));
    svec_add(argv, "run");
    svec_add(argv, "--cojob");
    svec_add(argv, cp->cojob->name);
    svec_add(argv, "--job");
    svec_add(argv, p->job->name);
    if (p->job->log) {
        svec_add(argv, "--log");
        svec_add_nocopy(argv, scenario_substitute(
                            p->job->log, (const char *const *) values));
    }
    svec_add(argv, "--");
    for (size_t i = 0; i < p->job->n_command; i++) {
        svec_add_nocopy(argv, scenario_substitute(
                            p->job->command[i],
                            (const char *const *) values));
    }
    svec_terminate(argv);
}

/* What everything on a host has, and what launchers of distributed training
 * set: a command that reads the latter needs no arguments. */
static void
compose_env(const struct cojob_processes *cp, const struct job_process *p,
            char *const values[], struct svec *env)
{
    int host = p->job->hosts[p->rank];
    char *dir = plan_host_dir(cp->plan, host);
    char *cgroup = plan_host_cgroup(cp->plan, host);

    svec_add_nocopy(env, xasprintf("STAGECOACH_RUNDIR=%s", dir));
    svec_add_nocopy(env, xasprintf("STAGECOACH_CGROUP=%s", cgroup));
    svec_add_nocopy(env, xasprintf("RANK=%s", values[WORD_RANK]));
    svec_add_nocopy(env, xasprintf("WORLD_SIZE=%s", values[WORD_WORLD]));
    svec_add_nocopy(env, xasprintf("MASTER_ADDR=%s", values[WORD_MASTER]));
    svec_add_nocopy(env, xasprintf("MASTER_PORT=%s", values[WORD_PORT]));
    svec_add(env, "LOCAL_RANK=0");
    svec_add(env, "GLOO_SOCKET_IFNAME=eth0");
    svec_terminate(env);
    free(cgroup);
    free(dir);
}

static char *
log_name(const struct cojob_processes *cp, const struct job_process *p)
{
    char *name = xasprintf("job-%s-%s-%"PRIuSIZE, cp->cojob->name,
                           p->job->name, p->rank);
    char *log = plan_log(cp->plan, name);

    free(name);
    return log;
}

static int
start_process(struct cojob_processes *cp, struct job_process *p)
{
    struct svec argv = SVEC_EMPTY_INITIALIZER, env = SVEC_EMPTY_INITIALIZER;
    char *values[N_WORDS];
    char *netns = plan_host_ns(cp->plan, p->job->hosts[p->rank]);
    char *cgroup = xasprintf("%s/daemons", cp->plan->cgroup);
    char *log = log_name(cp, p);
    int fd = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    int error = fd < 0 ? errno : 0;

    get_words(cp, p, values);
    compose_argv(cp, p, values, &argv);
    compose_env(cp, p, values, &env);
    if (!error) {
        struct spawn s = {
            .argv = (const char *const *) argv.names,
            .env = (const char *const *) env.names,
            .netns = netns, .cgroup = cgroup, .out = fd, .err = fd,
        };

        error = spawn(&s, &p->pid);
        close(fd);
    }
    for (int i = 0; i < N_WORDS; i++) {
        free(values[i]);
    }
    svec_destroy(&argv);
    svec_destroy(&env);
    free(log);
    free(cgroup);
    free(netns);
    return error;
}

char *
cojob_processes_start(struct cojob_processes *cp)
{
    for (size_t i = 0; i < cp->n; i++) {
        int error = start_process(cp, &cp->processes[i]);

        if (error) {
            return xasprintf("cojob %s: cannot be started (%s)",
                             cp->cojob->name, ovs_strerror(error));
        }
    }
    return NULL;
}

/* Returns NULL or how 'p' failed. */
static char *
process_ended(const struct cojob_processes *cp, struct job_process *p,
              int status)
{
    char *error = NULL;

    p->pid = 0;
    if (status) {
        char *how = process_status_msg(status);
        char *log = log_name(cp, p);
        char *tail = say_tail(log, TAIL_LINES);

        error = xasprintf("%s/%s: the process of rank %"PRIuSIZE" failed "
                          "(%s)%s%s", cp->cojob->name, p->job->name, p->rank,
                          how, *tail ? ":\n" : "", tail);
        free(tail);
        free(log);
        free(how);
    }
    return error;
}

char *
cojob_processes_reap(struct cojob_processes *cp)
{
    char *first = NULL;

    for (size_t i = 0; i < cp->n; i++) {
        struct job_process *p = &cp->processes[i];
        int status;

        if (p->pid && waitpid(p->pid, &status, WNOHANG) == p->pid) {
            char *error = process_ended(cp, p, status);

            if (first) {
                free(error);
            } else {
                first = error;
            }
        }
    }
    return first;
}

bool
cojob_processes_are_running(const struct cojob_processes *cp,
                            const struct scenario_job *job)
{
    for (size_t i = 0; i < cp->n; i++) {
        if (cp->processes[i].pid && (!job || cp->processes[i].job == job)) {
            return true;
        }
    }
    return false;
}

/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "lab/cojob-run.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/report.h"
#include "controller/database.h"
#include "controller/intent-client.h"
#include "lab/cojob-watch.h"
#include "lab/members.h"
#include "lab/plan.h"
#include "lab/say.h"
#include "lab/scenario.h"
#include "lab/spawn.h"
#include "openvswitch/dynamic-string.h"
#include "openvswitch/poll-loop.h"
#include "process.h"
#include "svec.h"
#include "timeval.h"
#include "util.h"

#define INTENT_MS 2000          /* For the database to answer. */
#define STOP_MS 2000            /* From SIGTERM to SIGKILL. */
#define POLL_MS 100             /* Between two looks at processes and
                                 * agents. */
#define TAIL_LINES 5            /* Of a process's log, when it fails. */
#define FIRST_PORT 29500        /* Of the jobs' rendezvous. */

struct job_process {
    const struct scenario_job *job;
    size_t rank;
    pid_t pid;                  /* 0 before it starts and after its end. */
};

struct cojob_run {
    const struct plan *plan;
    const struct scenario *scenario;
    const struct scenario_cojob *cojob;
    struct report_policy *policy;
    long long epoch_ms;
    struct intent_client *intent;
    struct cojob_watch *watch;

    size_t n_processes;
    struct job_process *processes;
    int rung;                   /* That runs, -1 before and after all. */
    long long next_poll;
    char *error;                /* Why it failed. */
    bool over;
};

static double
elapsed(const struct cojob_run *cr)
{
    return (time_wall_msec() - cr->epoch_ms) / 1000.0;
}

struct cojob_run *
cojob_run_create(const struct plan *plan, const struct scenario *scenario,
                 const struct scenario_cojob *cojob,
                 struct report_policy *policy, long long epoch_ms)
{
    struct cojob_run *cr = xzalloc(sizeof *cr);
    char *remote = members_remote(plan, &database_intent);
    size_t n = 0;

    cr->plan = plan;
    cr->scenario = scenario;
    cr->cojob = cojob;
    cr->policy = policy;
    cr->epoch_ms = epoch_ms;
    cr->rung = -1;
    cr->intent = intent_client_create(remote, INTENT_MS);
    cr->watch = cojob_watch_create(plan, cojob);
    for (size_t i = 0; i < cojob->n_jobs; i++) {
        n += cojob->jobs[i].n_hosts;
    }
    cr->processes = xcalloc(n, sizeof *cr->processes);
    for (size_t i = 0; i < cojob->n_jobs; i++) {
        for (size_t rank = 0; rank < cojob->jobs[i].n_hosts; rank++) {
            struct job_process *p = &cr->processes[cr->n_processes++];

            p->job = &cojob->jobs[i];
            p->rank = rank;
        }
    }
    free(remote);
    return cr;
}

/* Ends the processes that still run, with all that they have started and that
 * did not leave their process group. */
static void
stop(struct cojob_run *cr)
{
    long long deadline = time_msec() + STOP_MS;

    for (size_t i = 0; i < cr->n_processes; i++) {
        if (cr->processes[i].pid) {
            kill(-cr->processes[i].pid, SIGTERM);
        }
    }
    for (size_t i = 0; i < cr->n_processes; i++) {
        struct job_process *p = &cr->processes[i];
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
cojob_run_destroy(struct cojob_run *cr)
{
    if (cr) {
        stop(cr);
        cojob_watch_destroy(cr->watch);
        intent_client_destroy(cr->intent);
        free(cr->processes);
        free(cr->error);
        free(cr);
    }
}

static void
fail(struct cojob_run *cr, char *error)
{
    if (cr->error) {
        free(error);
    } else {
        cr->error = error;
    }
    cr->over = true;
}

/* Announcing is for the order; the jobs run without it. */
static void
announced(const struct cojob_run *cr, char *error)
{
    if (error) {
        say("cojob %s: %s", cr->cojob->name, error);
        free(error);
    }
}

static void
announce_job(struct cojob_run *cr, const struct scenario_job *job)
{
    struct announce_worker *workers = xcalloc(job->n_hosts, sizeof *workers);
    char **names = xcalloc(job->n_hosts, sizeof *names);

    for (size_t i = 0; i < job->n_hosts; i++) {
        names[i] = xasprintf("h%d", job->hosts[i]);
        workers[i] = (struct announce_worker) {
            .host = names[i], .role = "peer", .index = i,
        };
    }
    announced(cr, intent_client_job_begin(cr->intent, cr->cojob->name,
                                          job->name, workers, job->n_hosts,
                                          0));
    for (size_t i = 0; i < job->n_hosts; i++) {
        free(names[i]);
    }
    free(names);
    free(workers);
}

static void
begin_stage(struct cojob_run *cr)
{
    const struct scenario_cojob *cojob = cr->cojob;
    const char **names = xcalloc(cojob->n_jobs, sizeof *names);

    cr->rung++;
    for (size_t i = 0; i < cojob->n_jobs; i++) {
        names[i] = cojob->jobs[i].name;
    }
    announced(cr, intent_client_stage_begin(cr->intent, cojob->name, cr->rung,
                                            cojob->stages[cr->rung], names,
                                            cojob->n_jobs));
    report_stage_begin(cr->policy, cojob->name, cr->rung, elapsed(cr),
                       cojob->n_jobs);
    free(names);
}

static void
end_stage(struct cojob_run *cr)
{
    report_stage_end(cr->policy, cr->cojob->name, cr->rung, elapsed(cr));
    announced(cr, intent_client_stage_end(cr->intent, cr->cojob->name,
                                          cr->rung));
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
job_port(const struct cojob_run *cr, const struct scenario_job *job)
{
    const struct scenario *s = cr->scenario;
    int port = FIRST_PORT + (job - cr->cojob->jobs);

    for (const struct scenario_cojob *c = s->cojobs; c != cr->cojob; c++) {
        port += c->n_jobs;
    }
    return port;
}

/* Fills 'values', which the caller frees, for scenario_substitute(). */
static void
get_words(const struct cojob_run *cr, const struct job_process *p,
          char *values[N_WORDS])
{
    values[WORD_RANK] = xasprintf("%"PRIuSIZE, p->rank);
    values[WORD_WORLD] = xasprintf("%"PRIuSIZE, p->job->n_hosts);
    values[WORD_HOSTS] = addresses(p->job);
    values[WORD_MASTER] = address(p->job->hosts[0]);
    values[WORD_PORT] = xasprintf("%d", job_port(cr, p->job));
    values[WORD_SCENARIO] = xstrdup(cr->scenario->dir);
    values[WORD_LOG] = xasprintf("%s/log", cr->plan->rundir);
    values[WORD_TRAINER] = plan_program(cr->plan, "stagecoach-trainer");
}

/* "stagecoach run" and the command. */
static void
compose_argv(const struct cojob_run *cr, const struct job_process *p,
             char *const values[], struct svec *argv)
{
    svec_add_nocopy(argv, plan_program(cr->plan, "stagecoach"));
    svec_add(argv, "run");
    svec_add(argv, "--cojob");
    svec_add(argv, cr->cojob->name);
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
compose_env(const struct cojob_run *cr, const struct job_process *p,
            char *const values[], struct svec *env)
{
    int host = p->job->hosts[p->rank];
    char *dir = plan_host_dir(cr->plan, host);
    char *cgroup = plan_host_cgroup(cr->plan, host);

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
log_name(const struct cojob_run *cr, const struct job_process *p)
{
    char *name = xasprintf("job-%s-%s-%"PRIuSIZE, cr->cojob->name,
                           p->job->name, p->rank);
    char *log = plan_log(cr->plan, name);

    free(name);
    return log;
}

static int
start_process(struct cojob_run *cr, struct job_process *p)
{
    struct svec argv = SVEC_EMPTY_INITIALIZER, env = SVEC_EMPTY_INITIALIZER;
    char *values[N_WORDS];
    char *netns = plan_host_ns(cr->plan, p->job->hosts[p->rank]);
    char *cgroup = xasprintf("%s/daemons", cr->plan->cgroup);
    char *log = log_name(cr, p);
    int fd = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    int error = fd < 0 ? errno : 0;

    get_words(cr, p, values);
    compose_argv(cr, p, values, &argv);
    compose_env(cr, p, values, &env);
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

/* Announces the cojob and its first stage, and starts its processes. */
char *
cojob_run_start(struct cojob_run *cr)
{
    const struct scenario_cojob *cojob = cr->cojob;

    report_search_begin(cr->policy, cojob->name, elapsed(cr));
    announced(cr, intent_client_cojob_begin(cr->intent, cojob->name,
                                            cojob->weight));
    for (size_t i = 0; i < cojob->n_jobs; i++) {
        announce_job(cr, &cojob->jobs[i]);
    }
    cojob_watch_begin(cr->watch);
    begin_stage(cr);
    for (size_t i = 0; i < cr->n_processes; i++) {
        int error = start_process(cr, &cr->processes[i]);

        if (error) {
            return xasprintf("cojob %s: cannot be started (%s)", cojob->name,
                             ovs_strerror(error));
        }
    }
    return NULL;
}

static void
process_ended(struct cojob_run *cr, struct job_process *p, int status)
{
    p->pid = 0;
    if (status) {
        char *how = process_status_msg(status);
        char *log = log_name(cr, p);
        char *tail = say_tail(log, TAIL_LINES);

        fail(cr, xasprintf("%s/%s: the process of rank %"PRIuSIZE" failed "
                           "(%s)%s%s", cr->cojob->name, p->job->name, p->rank,
                           how, *tail ? ":\n" : "", tail));
        free(tail);
        free(log);
        free(how);
    }
}

static void
reap(struct cojob_run *cr)
{
    for (size_t i = 0; i < cr->n_processes; i++) {
        struct job_process *p = &cr->processes[i];
        int status;

        if (p->pid && waitpid(p->pid, &status, WNOHANG) == p->pid) {
            process_ended(cr, p, status);
        }
    }
}

static bool
is_running(const struct cojob_run *cr, const struct scenario_job *job)
{
    for (size_t i = 0; i < cr->n_processes; i++) {
        if (cr->processes[i].pid && (!job || cr->processes[i].job == job)) {
            return true;
        }
    }
    return false;
}

/* A job that has ended has done all that it will do. */
static bool
stage_is_done(const struct cojob_run *cr)
{
    const struct scenario_cojob *cojob = cr->cojob;

    if (cr->rung + 1 == (int) cojob->n_stages && cojob->until_exit) {
        return !is_running(cr, NULL);
    }
    for (size_t i = 0; i < cojob->n_jobs; i++) {
        if (is_running(cr, &cojob->jobs[i])
            && cojob_watch_iteration(cr->watch, i)
               < cojob->stages[cr->rung]) {
            return false;
        }
    }
    return true;
}

static void
finish(struct cojob_run *cr)
{
    const struct scenario_cojob *cojob = cr->cojob;

    stop(cr);
    cojob_watch_run(cr->watch);
    for (size_t i = 0; i < cojob->n_jobs; i++) {
        const char *name = cojob->jobs[i].name;

        report_progress(cr->policy, cojob->name, name, elapsed(cr),
                        MAX(0, cojob_watch_iteration(cr->watch, i)), NAN,
                        NAN);
        report_job_end(cr->policy, cojob->name, name, "done");
        announced(cr, intent_client_job_end(cr->intent, cojob->name, name,
                                            "done"));
    }
    announced(cr, intent_client_cojob_end(cr->intent, cojob->name));
    report_search_end(cr->policy, cojob->name, elapsed(cr), NULL);
    cojob_watch_report(cr->watch, cr->policy);
    cr->rung = -1;
    cr->over = true;
}

void
cojob_run_run(struct cojob_run *cr)
{
    if (cr->over || time_msec() < cr->next_poll) {
        return;
    }
    cr->next_poll = time_msec() + POLL_MS;
    reap(cr);
    cojob_watch_run(cr->watch);
    if (!cr->over && stage_is_done(cr)) {
        end_stage(cr);
        if (cr->rung + 1 < (int) cr->cojob->n_stages) {
            begin_stage(cr);
        } else {
            finish(cr);
        }
    }
}

void
cojob_run_wait(struct cojob_run *cr)
{
    if (!cr->over) {
        poll_timer_wait_until(cr->next_poll);
    }
}

bool
cojob_run_is_over(const struct cojob_run *cr)
{
    return cr->over;
}

char *
cojob_run_error(const struct cojob_run *cr)
{
    return nullable_xstrdup(cr->error);
}

size_t
cojob_run_jobs(const struct cojob_run *cr, struct search_job jobs[],
               size_t max)
{
    const struct scenario_cojob *cojob = cr->cojob;
    size_t n = 0;

    for (size_t i = 0; cr->rung >= 0 && i < cojob->n_jobs && n < max; i++) {
        const struct scenario_job *job = &cojob->jobs[i];
        struct search_job sj = {
            .cojob = cojob->name, .job = job->name,
            .iteration = cojob_watch_iteration(cr->watch, i),
            .target = cojob->stages[cr->rung],
        };

        for (size_t j = 0; j < job->n_hosts; j++) {
            sj.hosts |= UINT64_C(1) << job->hosts[j];
        }
        if (is_running(cr, job) && sj.iteration > 0
            && sj.iteration < sj.target) {
            jobs[n++] = sj;
        }
    }
    return n;
}

void
cojob_run_status(const struct cojob_run *cr, struct ds *ds)
{
    const struct scenario_cojob *cojob = cr->cojob;
    long long least = INT64_MAX;

    ds_put_cstr(ds, cojob->name);
    if (cr->over) {
        ds_put_cstr(ds, cr->error ? " failed" : " done");
        return;
    }
    for (size_t i = 0; i < cojob->n_jobs; i++) {
        least = MIN(least, cojob_watch_iteration(cr->watch, i));
    }
    ds_put_format(ds, " rung %d %lld/%"PRId64, cr->rung, MAX(0, least),
                  cojob->stages[cr->rung]);
}

/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "lab/run/run.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "controller/intent/intent-client.h"
#include "controller/ovsdb/database.h"
#include "lab/cluster/cluster.h"
#include "lab/cluster/console.h"
#include "lab/cluster/plan.h"
#include "lab/cluster/spawn.h"
#include "openvswitch/dynamic-string.h"
#include "openvswitch/poll-loop.h"
#include "reporting/report.h"
#include "scenario/scenario.h"
#include "svec.h"
#include "timeval.h"
#include "trainer/net/token.h"
#include "util.h"

#define STOP_MS 2000            /* From SIGTERM to SIGKILL. */
#define FIRST_PORT 29500        /* TCP port of the rendezvous of the first
                                 * job. */
#define ASK_MS 300              /* Timeout of a call of an agent. */
#define INTENT_MS 2000          /* Timeout of the intent database. */
#define POLL_MS 100             /* Interval of reading processes and agents. */

struct job_process {
    const struct scenario_job *job;
    size_t rank;
    const char *token;          /* Secret of the job's trainers: one of the
                                 * run's 'tokens'. */
    pid_t pid;                  /* 0 before it starts and after its end. */
};

/* A job as the agent of one host reports it. */
struct job_there {
    double tx_bytes;            /* Bytes sent in the class of the job. */
    long long reported, counted; /* Iterations reported by the job, and
                                  * estimated from its traffic; -1 if
                                  * unknown. */
};

struct cojob_run {
    struct run up;
    const struct scenario *scenario;
    const struct scenario_cojob *cojob;
    struct intent_client *intent;       /* NULL before the start. */
    size_t n;
    struct job_process *processes;      /* Ordered by job, then by rank. */
    struct svec tokens;         /* One for each job. */

    uint64_t hosts;             /* Bit i: a process runs on host i. */
    struct job_there *there;    /* 'cojob->n_jobs' rows of 'plan->n_hosts'
                                 * elements. */
    double *untagged_before;    /* Unclassified IP bytes of each host at the
                                 * start. */
    double *untagged;           /* Unclassified IP bytes of each host at the
                                 * last call. */

    int rung;                   /* Running rung, -1 before the first and after
                                 * the last one. */
    long long next_poll;
};

static struct cojob_run *
cojob_run_cast(const struct run *run)
{
    return CONTAINER_OF(run, struct cojob_run, up);
}

/* Kills the running processes and their process groups. */
static void
stop_processes(struct cojob_run *cr)
{
    long long deadline = time_msec() + STOP_MS;

    for (size_t i = 0; i < cr->n; i++) {
        if (cr->processes[i].pid) {
            kill(-cr->processes[i].pid, SIGTERM);
        }
    }
    for (size_t i = 0; i < cr->n; i++) {
        struct job_process *p = &cr->processes[i];
        int status;

        if (p->pid) {
            end_child(p->pid, -p->pid, deadline, &status);
            p->pid = 0;
        }
    }
}

static char *
addresses(const struct plan *plan, const struct scenario_job *job)
{
    struct svec svec = SVEC_EMPTY_INITIALIZER;
    char *text;

    for (size_t i = 0; i < job->n_hosts; i++) {
        svec_add(&svec, plan->hosts[job->hosts[i]].address);
    }
    text = svec_join(&svec, ",", "");
    svec_destroy(&svec);
    return text;
}

/* Returns a TCP port that no other job of the scenario has. */
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
    values[WORD_HOSTS] = addresses(cr->up.plan, p->job);
    values[WORD_MASTER] = xstrdup(
        cr->up.plan->hosts[p->job->hosts[0]].address);
    values[WORD_PORT] = xasprintf("%d", job_port(cr, p->job));
    values[WORD_SCENARIO] = xstrdup(cr->scenario->dir);
    values[WORD_LOG] = xasprintf("%s/log", cr->up.plan->rundir);
    values[WORD_TRAINER] = plan_program(cr->up.plan, "stagecoach-trainer");
}

/* Composes "stagecoach run" and the command. */
static void
compose_argv(const struct cojob_run *cr, const struct job_process *p,
             char *const values[], struct svec *argv)
{
    svec_add_nocopy(argv, plan_program(cr->up.plan, "stagecoach"));
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

/* Adds the environment of a host, and the variables of launchers of
 * distributed training, so that a command that reads these needs no
 * arguments. */
static void
compose_env(const struct cojob_run *cr, const struct job_process *p,
            char *const values[], struct svec *env)
{
    const struct plan_host *host = &cr->up.plan->hosts[p->job->hosts[p->rank]];

    svec_add_nocopy(env, xasprintf("STAGECOACH_RUNDIR=%s", host->dir));
    svec_add_nocopy(env, xasprintf("STAGECOACH_CGROUP=%s", host->cgroup));
    svec_add_nocopy(env, xasprintf(TOKEN_VARIABLE "=%s", p->token));
    svec_add_nocopy(env, xasprintf("RANK=%s", values[WORD_RANK]));
    svec_add_nocopy(env, xasprintf("WORLD_SIZE=%s", values[WORD_WORLD]));
    svec_add_nocopy(env, xasprintf("MASTER_ADDR=%s", values[WORD_MASTER]));
    svec_add_nocopy(env, xasprintf("MASTER_PORT=%s", values[WORD_PORT]));
    svec_add(env, "LOCAL_RANK=0");
    svec_add(env, "GLOO_SOCKET_IFNAME=eth0");
    svec_terminate(env);
}

static char *
log_name(const struct cojob_run *cr, const struct job_process *p)
{
    char *name = xasprintf("job-%s-%s-%"PRIuSIZE, cr->cojob->name,
                           p->job->name, p->rank);
    char *log = plan_log(cr->up.plan, name);

    free(name);
    return log;
}

static int
start_process(struct cojob_run *cr, struct job_process *p)
{
    struct svec argv = SVEC_EMPTY_INITIALIZER, env = SVEC_EMPTY_INITIALIZER;
    char *values[N_WORDS];
    char *log = log_name(cr, p);
    int fd = open_log(log);
    int error = fd < 0 ? errno : 0;

    get_words(cr, p, values);
    compose_argv(cr, p, values, &argv);
    compose_env(cr, p, values, &env);
    if (!error) {
        struct spawn s = {
            .argv = (const char *const *) argv.names,
            .env = (const char *const *) env.names,
            .netns = cr->up.plan->hosts[p->job->hosts[p->rank]].ns,
            .cgroup = cr->up.plan->daemons_cgroup, .out = fd, .err = fd,
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
    return error;
}

static char *
start_processes(struct cojob_run *cr)
{
    for (size_t i = 0; i < cr->n; i++) {
        int error = start_process(cr, &cr->processes[i]);

        if (error) {
            return xasprintf("cojob %s: cannot be started (%s)",
                             cr->cojob->name, ovs_strerror(error));
        }
    }
    return NULL;
}

/* Returns a message about the failure of 'p'. */
static char *
process_failed(const struct cojob_run *cr, const struct job_process *p,
               int status)
{
    char *what = xasprintf("%s/%s: the process of rank %"PRIuSIZE,
                           cr->cojob->name, p->job->name, p->rank);
    char *log = log_name(cr, p);
    char *error = say_failure(what, status, log);

    free(log);
    free(what);
    return error;
}

/* Returns NULL or a message about the first process that has failed. */
static char *
reap_processes(struct cojob_run *cr)
{
    char *error = NULL;

    for (size_t i = 0; i < cr->n; i++) {
        struct job_process *p = &cr->processes[i];
        int status;

        if (p->pid && waitpid(p->pid, &status, WNOHANG) == p->pid) {
            p->pid = 0;
            if (status && !error) {
                error = process_failed(cr, p, status);
            }
        }
    }
    return error;
}

/* Returns true if a process of 'job', or of any job if it is null, runs. */
static bool
is_running(const struct cojob_run *cr, const struct scenario_job *job)
{
    for (size_t i = 0; i < cr->n; i++) {
        if (cr->processes[i].pid && (!job || cr->processes[i].job == job)) {
            return true;
        }
    }
    return false;
}

/* Stores the number 'member' of 'object' in '*valuep'.  Returns false if it is
 * missing. */
static bool
get_number(const cJSON *object, const char *member, double *valuep)
{
    const cJSON *item = cJSON_GetObjectItem(object, member);

    if (!cJSON_IsNumber(item)) {
        return false;
    }
    *valuep = item->valuedouble;
    return true;
}

static void
take_job(struct cojob_run *cr, size_t i, int host, const cJSON *json)
{
    struct job_there *there = &cr->there[i * cr->up.plan->n_hosts + host];
    double n;

    get_number(json, "tx_bytes", &there->tx_bytes);
    if (get_number(json, "iteration", &n)) {
        there->reported = n;
    }
    if (get_number(json, "counted", &n)) {
        there->counted = n;
    }
}

static void
take_jobs(struct cojob_run *cr, int host, const cJSON *jobs)
{
    const cJSON *json;

    cJSON_ArrayForEach (json, jobs) {
        const char *name = cJSON_GetStringValue(cJSON_GetObjectItem(json,
                                                                    "job"));

        for (size_t i = 0; name && i < cr->cojob->n_jobs; i++) {
            char *full = xasprintf("%s/%s", cr->cojob->name,
                                   cr->cojob->jobs[i].name);

            if (!strcmp(full, name)) {
                take_job(cr, i, host, json);
            }
            free(full);
        }
    }
}

static void
ask_status(struct cojob_run *cr, double untagged[])
{
    for (int host = 0; host < cr->up.plan->n_hosts; host++) {
        if (cr->hosts & (UINT64_C(1) << host)) {
            cJSON *status =
                cluster_ask_agent(cr->up.plan, host, "agent/status", ASK_MS);

            get_number(status, "default_bytes", &untagged[host]);
            cJSON_Delete(status);
        }
    }
}

static void
ask_agents(struct cojob_run *cr)
{
    ask_status(cr, cr->untagged);
    for (int host = 0; host < cr->up.plan->n_hosts; host++) {
        if (cr->hosts & (UINT64_C(1) << host)) {
            cJSON *reply =
                cluster_ask_agent(cr->up.plan, host, "agent/jobs", ASK_MS);

            take_jobs(cr, host, cJSON_GetObjectItem(reply, "jobs"));
            cJSON_Delete(reply);
        }
    }
}

/* Returns the largest reported iteration count, otherwise the smallest
 * estimated one, as the controller does; -1 if both are unknown. */
static long long
iteration_of(const struct cojob_run *cr, size_t job)
{
    long long reported = -1, counted = -1;

    for (int host = 0; host < cr->up.plan->n_hosts; host++) {
        const struct job_there *there = &cr->there[job * cr->up.plan->n_hosts
                                                  + host];

        reported = MAX(reported, there->reported);
        if (there->counted >= 0 && (counted < 0 || there->counted < counted)) {
            counted = there->counted;
        }
    }
    return reported >= 0 ? reported : counted;
}

/* Attributes all unclassified bytes that the hosts sent during the run to the
 * cojob, so that the reported coverage is a lower bound. */
static void
report_coverage(const struct cojob_run *cr)
{
    double tagged = 0, untagged = 0;

    for (size_t i = 0; i < cr->cojob->n_jobs * cr->up.plan->n_hosts; i++) {
        tagged += cr->there[i].tx_bytes;
    }
    for (int host = 0; host < cr->up.plan->n_hosts; host++) {
        untagged += MAX(0, cr->untagged[host] - cr->untagged_before[host]);
    }
    report_cojob(cr->up.policy, cr->cojob->name, tagged, untagged);
}

/* Announces a change of the cojob.  The jobs run even if that fails. */
static void
announce(const struct cojob_run *cr, struct intent_edit edit)
{
    char *error;

    edit.cojob = cr->cojob->name;
    error = intent_client_write(cr->intent, &edit, NULL);
    if (error) {
        say("cojob %s: %s", cr->cojob->name, error);
        free(error);
    }
}

static void
announce_job(struct cojob_run *cr, const struct scenario_job *job)
{
    struct intent_worker *workers = xcalloc(job->n_hosts, sizeof *workers);

    for (size_t i = 0; i < job->n_hosts; i++) {
        workers[i] = (struct intent_worker) {
            .host = cr->up.plan->hosts[job->hosts[i]].name, .role = "peer",
            .index = i,
        };
    }
    announce(cr, (struct intent_edit) {
        .kind = INTENT_JOB_BEGIN, .job = job->name, .workers = workers,
        .n = job->n_hosts,
    });
    free(workers);
}

static void
begin_stage(struct cojob_run *cr)
{
    const struct scenario_cojob *cojob = cr->cojob;
    const char **names = xcalloc(cojob->n_jobs, sizeof *names);
    struct search_rung *rungs = xcalloc(cojob->n_stages, sizeof *rungs);

    cr->rung++;
    for (size_t i = 0; i < cojob->n_jobs; i++) {
        names[i] = cojob->jobs[i].name;
    }
    for (size_t i = cr->rung; i < cojob->n_stages; i++) {
        rungs[i] = (struct search_rung){ cojob->stages[i], cojob->n_jobs };
    }
    announce(cr, (struct intent_edit){
                     .kind = INTENT_STAGE_BEGIN,
                     .rung = cr->rung,
                     .rungs = &rungs[cr->rung],
                     .n_rungs = cojob->n_stages - cr->rung,
                     .jobs = names,
                     .n = cojob->n_jobs,
                 });
    free(rungs);
    report_stage_begin(cr->up.policy, cojob->name, cr->rung,
                       run_elapsed(&cr->up), cojob->n_jobs);
    free(names);
}

static void
end_stage(struct cojob_run *cr)
{
    report_stage_end(cr->up.policy, cr->cojob->name, cr->rung,
                     run_elapsed(&cr->up));
    announce(cr, (struct intent_edit){ .kind = INTENT_STAGE_END,
                                       .rung = cr->rung });
}

/* Announces the cojob and its first stage, and starts its processes. */
static char *
cojob_run_start(struct run *run)
{
    struct cojob_run *cr = cojob_run_cast(run);
    const struct scenario_cojob *cojob = cr->cojob;
    char *remote = plan_remote(run->plan, &database_intent);

    cr->intent = intent_client_create(remote, INTENT_MS);
    free(remote);

    report_search_begin(cr->up.policy, cojob->name, run_elapsed(&cr->up));
    announce(cr, (struct intent_edit){ .kind = INTENT_COJOB_BEGIN,
                                       .weight = cojob->weight });
    for (size_t i = 0; i < cojob->n_jobs; i++) {
        announce_job(cr, &cojob->jobs[i]);
    }
    ask_status(cr, cr->untagged_before);
    begin_stage(cr);
    return start_processes(cr);
}

/* Returns true if all jobs have reached the iterations of the stage or have
 * ended. */
static bool
stage_is_done(const struct cojob_run *cr)
{
    const struct scenario_cojob *cojob = cr->cojob;

    if (cr->rung + 1 == (int) cojob->n_stages && cojob->until_exit) {
        return !is_running(cr, NULL);
    }
    for (size_t i = 0; i < cojob->n_jobs; i++) {
        if (is_running(cr, &cojob->jobs[i])
            && iteration_of(cr, i) < cojob->stages[cr->rung]) {
            return false;
        }
    }
    return true;
}

static void
finish(struct cojob_run *cr)
{
    const struct scenario_cojob *cojob = cr->cojob;

    stop_processes(cr);
    ask_agents(cr);
    for (size_t i = 0; i < cojob->n_jobs; i++) {
        const char *name = cojob->jobs[i].name;

        report_progress(cr->up.policy, cojob->name, name, run_elapsed(&cr->up),
                        MAX(0, iteration_of(cr, i)), NAN, NAN);
        report_job_end(cr->up.policy, cojob->name, name, "done", NAN);
        announce(cr, (struct intent_edit) {
            .kind = INTENT_JOB_END, .job = name, .outcome = "done",
        });
    }
    announce(cr, (struct intent_edit) { .kind = INTENT_COJOB_END });
    report_search_end(cr->up.policy, cojob->name, run_elapsed(&cr->up), NULL);
    report_coverage(cr);
    cr->rung = -1;
    cr->up.over = true;
}

static void
cojob_run_run(struct run *run)
{
    struct cojob_run *cr = cojob_run_cast(run);

    if (run->over || time_msec() < cr->next_poll) {
        return;
    }
    cr->next_poll = time_msec() + POLL_MS;
    run->error = reap_processes(cr);
    run->over = run->error;
    ask_agents(cr);
    if (!run->over && stage_is_done(cr)) {
        end_stage(cr);
        if (cr->rung + 1 < (int) cr->cojob->n_stages) {
            begin_stage(cr);
        } else {
            finish(cr);
        }
    }
}

static void
cojob_run_wait(struct run *run)
{
    if (!run->over) {
        poll_timer_wait_until(cojob_run_cast(run)->next_poll);
    }
}

static size_t
cojob_run_jobs(const struct run *run, struct run_job jobs[], size_t max)
{
    const struct cojob_run *cr = cojob_run_cast(run);
    const struct scenario_cojob *cojob = cr->cojob;
    size_t n = 0;

    for (size_t i = 0; cr->rung >= 0 && i < cojob->n_jobs && n < max; i++) {
        const struct scenario_job *job = &cojob->jobs[i];
        struct run_job rj = {
            .cojob = cojob->name, .job = job->name,
            .iteration = iteration_of(cr, i), .target = cojob->stages[cr->rung]
        };

        for (size_t j = 0; j < job->n_hosts; j++) {
            rj.hosts |= UINT64_C(1) << job->hosts[j];
        }
        if (is_running(cr, job) && rj.iteration > 0
            && rj.iteration < rj.target) {
            jobs[n++] = rj;
        }
    }
    return n;
}

static void
cojob_run_status(const struct run *run, struct ds *ds)
{
    const struct cojob_run *cr = cojob_run_cast(run);
    long long least = INT64_MAX;

    for (size_t i = 0; i < cr->cojob->n_jobs; i++) {
        least = MIN(least, iteration_of(cr, i));
    }
    ds_put_format(ds, " rung %d %lld/%"PRId64, cr->rung, MAX(0, least),
                  cr->cojob->stages[cr->rung]);
}

static void
cojob_run_destroy(struct run *run)
{
    struct cojob_run *cr = cojob_run_cast(run);

    stop_processes(cr);
    intent_client_destroy(cr->intent);
    free(cr->processes);
    free(cr->there);
    svec_destroy(&cr->tokens);
    free(cr->untagged_before);
    free(cr->untagged);
    free(run->error);
    free(cr);
}

static const struct run_class cojob_run_class = {
    .start = cojob_run_start, .run = cojob_run_run, .wait = cojob_run_wait,
    .jobs = cojob_run_jobs, .status = cojob_run_status,
    .destroy = cojob_run_destroy, .of_commands = true
};

/* Adds the processes of 'job'. */
static void
add_job(struct cojob_run *cr, const struct scenario_job *job)
{
    size_t n_hosts = cr->up.plan->n_hosts;
    struct job_there *there = &cr->there[(job - cr->cojob->jobs) * n_hosts];

    for (size_t i = 0; i < n_hosts; i++) {
        there[i].reported = there[i].counted = -1;
    }
    cr->processes = xrealloc(cr->processes, (cr->n + job->n_hosts)
                                            * sizeof *cr->processes);
    svec_add_nocopy(&cr->tokens, token_create());
    for (size_t rank = 0; rank < job->n_hosts; rank++) {
        cr->processes[cr->n++] = (struct job_process) {
            .job = job, .rank = rank, .token = svec_back(&cr->tokens),
        };
        cr->hosts |= UINT64_C(1) << job->hosts[rank];
    }
}

struct run *
cojob_run_create(const struct plan *plan, const struct scenario *scenario,
                 const struct scenario_cojob *cojob,
                 struct report_policy *policy, long long begin_ms)
{
    struct cojob_run *cr = xzalloc(sizeof *cr);

    cr->up = (struct run) {
        .class = &cojob_run_class, .cojob = cojob->name,
        .start_s = cojob->start_s, .plan = plan, .policy = policy,
        .begin_ms = begin_ms,
    };
    cr->scenario = scenario;
    cr->cojob = cojob;
    cr->rung = -1;
    svec_init(&cr->tokens);
    cr->there = xcalloc(cojob->n_jobs * plan->n_hosts, sizeof *cr->there);
    cr->untagged_before = xcalloc(plan->n_hosts, sizeof *cr->untagged_before);
    cr->untagged = xcalloc(plan->n_hosts, sizeof *cr->untagged);
    for (size_t i = 0; i < cojob->n_jobs; i++) {
        add_job(cr, &cojob->jobs[i]);
    }
    return &cr->up;
}

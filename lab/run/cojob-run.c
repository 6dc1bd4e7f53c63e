/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "lab/run/cojob-run.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <fcntl.h>
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
#include "controller/ovsdb/rpc-call.h"
#include "lab/cluster/members.h"
#include "lab/cluster/plan.h"
#include "lab/cluster/console.h"
#include "lab/cluster/spawn.h"
#include "openvswitch/dynamic-string.h"
#include "openvswitch/poll-loop.h"
#include "process.h"
#include "reporting/report.h"
#include "scenario/scenario.h"
#include "svec.h"
#include "timeval.h"
#include "util.h"

#define STOP_MS 2000            /* From SIGTERM to SIGKILL. */
#define TAIL_LINES 5            /* Lines of a log in the message about a failed
                                 * process. */
#define FIRST_PORT 29500        /* TCP port of the rendezvous of the first
                                 * job. */

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
    struct job_process *processes;      /* Ordered by job, then by rank. */
};

static struct cojob_processes *
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

/* Kills the running processes and their process groups. */
static void
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

static void
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

/* Returns a TCP port that no other job of the scenario has. */
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

/* Composes "stagecoach run" and the command. */
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

/* Adds the environment of a host, and the variables of launchers of
 * distributed training, so that a command that reads these needs no
 * arguments. */
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

static char *
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

/* Returns NULL or a message about the failure of 'p'. */
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

static char *
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

static bool
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

#define ASK_MS 300              /* Timeout of a call of an agent. */

/* A job as the agent of one host reports it. */
struct job_there {
    double tx_bytes;            /* Bytes sent in the class of the job. */
    long long told, counted;    /* Iterations reported by the job, and
                                 * estimated from its traffic; -1 if
                                 * unknown. */
};

struct cojob_watch {
    const struct plan *plan;
    const struct scenario_cojob *cojob;
    uint64_t hosts;             /* Bit i: a process runs on host i. */
    struct job_there *there;    /* 'cojob->n_jobs' rows of 'plan->n_hosts'
                                 * elements. */
    double *untagged_before;    /* Unclassified IP bytes of each host at the
                                 * start. */
    double *untagged;           /* Unclassified IP bytes of each host at the
                                 * last call. */
};

static struct cojob_watch *
cojob_watch_create(const struct plan *plan,
                   const struct scenario_cojob *cojob)
{
    struct cojob_watch *w = xzalloc(sizeof *w);
    size_t n = plan->n_hosts;

    w->plan = plan;
    w->cojob = cojob;
    w->there = xcalloc(cojob->n_jobs * n, sizeof *w->there);
    w->untagged_before = xcalloc(n, sizeof *w->untagged_before);
    w->untagged = xcalloc(n, sizeof *w->untagged);
    for (size_t i = 0; i < cojob->n_jobs; i++) {
        const struct scenario_job *job = &cojob->jobs[i];

        for (size_t j = 0; j < n; j++) {
            w->there[i * n + j].told = w->there[i * n + j].counted = -1;
        }
        for (size_t j = 0; j < job->n_hosts; j++) {
            w->hosts |= UINT64_C(1) << job->hosts[j];
        }
    }
    return w;
}

static void
cojob_watch_destroy(struct cojob_watch *w)
{
    if (w) {
        free(w->there);
        free(w->untagged_before);
        free(w->untagged);
        free(w);
    }
}

/* Calls the agent of 'host'.  Returns its reply, or NULL if it does not reply,
 * for example during a restart. */
static cJSON *
ask(const struct cojob_watch *w, int host, const char *command)
{
    char *dir = plan_host_dir(w->plan, host);
    char *ctl = xasprintf("%s/agent.ctl", dir);
    char *reply;
    int errnum;
    char *error = rpc_unixctl(ctl, command, 0, NULL, ASK_MS, &reply,
                              &errnum);
    cJSON *json = error ? NULL : cJSON_Parse(reply);

    free(error);
    free(reply);
    free(ctl);
    free(dir);
    return json;
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
take_job(struct cojob_watch *w, size_t i, int host, const cJSON *json)
{
    struct job_there *there = &w->there[i * w->plan->n_hosts + host];
    double n;

    get_number(json, "tx_bytes", &there->tx_bytes);
    if (get_number(json, "iteration", &n)) {
        there->told = n;
    }
    if (get_number(json, "counted", &n)) {
        there->counted = n;
    }
}

static void
take_jobs(struct cojob_watch *w, int host, const cJSON *jobs)
{
    const cJSON *json;

    cJSON_ArrayForEach (json, jobs) {
        const char *name = cJSON_GetStringValue(cJSON_GetObjectItem(json,
                                                                    "job"));

        for (size_t i = 0; name && i < w->cojob->n_jobs; i++) {
            char *full = xasprintf("%s/%s", w->cojob->name,
                                   w->cojob->jobs[i].name);

            if (!strcmp(full, name)) {
                take_job(w, i, host, json);
            }
            free(full);
        }
    }
}

static void
ask_status(struct cojob_watch *w, double untagged[])
{
    for (int host = 0; host < w->plan->n_hosts; host++) {
        if (w->hosts & (UINT64_C(1) << host)) {
            cJSON *status = ask(w, host, "agent/status");

            get_number(status, "default_bytes", &untagged[host]);
            cJSON_Delete(status);
        }
    }
}

static void
cojob_watch_begin(struct cojob_watch *w)
{
    ask_status(w, w->untagged_before);
}

static void
cojob_watch_run(struct cojob_watch *w)
{
    ask_status(w, w->untagged);
    for (int host = 0; host < w->plan->n_hosts; host++) {
        if (w->hosts & (UINT64_C(1) << host)) {
            cJSON *reply = ask(w, host, "agent/jobs");

            take_jobs(w, host, cJSON_GetObjectItem(reply, "jobs"));
            cJSON_Delete(reply);
        }
    }
}

/* Returns the largest reported iteration count, otherwise the smallest
 * estimated one, as the controller does; -1 if both are unknown. */
static long long
cojob_watch_iteration(const struct cojob_watch *w, size_t job)
{
    long long told = -1, counted = -1;

    for (int host = 0; host < w->plan->n_hosts; host++) {
        const struct job_there *there = &w->there[job * w->plan->n_hosts
                                                  + host];

        told = MAX(told, there->told);
        if (there->counted >= 0
            && (counted < 0 || there->counted < counted)) {
            counted = there->counted;
        }
    }
    return told >= 0 ? told : counted;
}

/* Attributes all unclassified bytes that the hosts sent during the run to the
 * cojob, so that the reported coverage is a lower bound. */
static void
cojob_watch_report(const struct cojob_watch *w, struct report_policy *policy)
{
    double tagged = 0, untagged = 0;

    for (size_t i = 0; i < w->cojob->n_jobs * w->plan->n_hosts; i++) {
        tagged += w->there[i].tx_bytes;
    }
    for (int host = 0; host < w->plan->n_hosts; host++) {
        untagged += MAX(0, w->untagged[host] - w->untagged_before[host]);
    }
    report_cojob(policy, w->cojob->name, tagged, untagged);
}

#define INTENT_MS 2000          /* Timeout of the intent database. */
#define POLL_MS 100             /* Interval of reading processes and agents. */

struct cojob_run {
    const struct scenario_cojob *cojob;
    struct report_policy *policy;
    long long epoch_ms;
    struct intent_client *intent;
    struct cojob_watch *watch;
    struct cojob_processes *processes;

    int rung;                   /* Running rung, -1 before the first and after
                                 * the last one. */
    long long next_poll;
    char *error;                /* Reason of the failure, or NULL. */
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

    cr->cojob = cojob;
    cr->policy = policy;
    cr->epoch_ms = epoch_ms;
    cr->rung = -1;
    cr->intent = intent_client_create(remote, INTENT_MS);
    cr->watch = cojob_watch_create(plan, cojob);
    cr->processes = cojob_processes_create(plan, scenario, cojob);
    free(remote);
    return cr;
}

void
cojob_run_destroy(struct cojob_run *cr)
{
    if (cr) {
        cojob_processes_destroy(cr->processes);
        cojob_watch_destroy(cr->watch);
        intent_client_destroy(cr->intent);
        free(cr->error);
        free(cr);
    }
}

/* Announces a change of the cojob.  The jobs run even if that fails. */
static void
announce(const struct cojob_run *cr, struct intent_edit edit)
{
    char *error;

    edit.cojob = cr->cojob->name;
    error = intent_client_write(cr->intent, &edit);
    if (error) {
        say("cojob %s: %s", cr->cojob->name, error);
        free(error);
    }
}

static void
announce_job(struct cojob_run *cr, const struct scenario_job *job)
{
    struct intent_worker *workers = xcalloc(job->n_hosts, sizeof *workers);
    char **names = xcalloc(job->n_hosts, sizeof *names);

    for (size_t i = 0; i < job->n_hosts; i++) {
        names[i] = xasprintf("h%d", job->hosts[i]);
        workers[i] = (struct intent_worker) {
            .host = names[i], .role = "peer", .index = i,
        };
    }
    announce(cr, (struct intent_edit) {
        .kind = INTENT_JOB_BEGIN, .job = job->name, .workers = workers,
        .n = job->n_hosts,
    });
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
    announce(cr, (struct intent_edit) {
        .kind = INTENT_STAGE_BEGIN, .rung = cr->rung,
        .iterations = cojob->stages[cr->rung], .jobs = names,
        .n = cojob->n_jobs,
    });
    report_stage_begin(cr->policy, cojob->name, cr->rung, elapsed(cr),
                       cojob->n_jobs);
    free(names);
}

static void
end_stage(struct cojob_run *cr)
{
    report_stage_end(cr->policy, cr->cojob->name, cr->rung, elapsed(cr));
    announce(cr, (struct intent_edit) {
        .kind = INTENT_STAGE_END, .rung = cr->rung,
    });
}

/* Announces the cojob and its first stage, and starts its processes. */
char *
cojob_run_start(struct cojob_run *cr)
{
    const struct scenario_cojob *cojob = cr->cojob;

    report_search_begin(cr->policy, cojob->name, elapsed(cr));
    announce(cr, (struct intent_edit) {
        .kind = INTENT_COJOB_BEGIN, .weight = cojob->weight,
    });
    for (size_t i = 0; i < cojob->n_jobs; i++) {
        announce_job(cr, &cojob->jobs[i]);
    }
    cojob_watch_begin(cr->watch);
    begin_stage(cr);
    return cojob_processes_start(cr->processes);
}

/* Returns true if all jobs have reached the iterations of the stage or have
 * ended. */
static bool
stage_is_done(const struct cojob_run *cr)
{
    const struct scenario_cojob *cojob = cr->cojob;

    if (cr->rung + 1 == (int) cojob->n_stages && cojob->until_exit) {
        return !cojob_processes_are_running(cr->processes, NULL);
    }
    for (size_t i = 0; i < cojob->n_jobs; i++) {
        if (cojob_processes_are_running(cr->processes, &cojob->jobs[i])
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

    cojob_processes_stop(cr->processes);
    cojob_watch_run(cr->watch);
    for (size_t i = 0; i < cojob->n_jobs; i++) {
        const char *name = cojob->jobs[i].name;

        report_progress(cr->policy, cojob->name, name, elapsed(cr),
                        MAX(0, cojob_watch_iteration(cr->watch, i)), NAN,
                        NAN);
        report_job_end(cr->policy, cojob->name, name, "done");
        announce(cr, (struct intent_edit) {
            .kind = INTENT_JOB_END, .job = name, .outcome = "done",
        });
    }
    announce(cr, (struct intent_edit) { .kind = INTENT_COJOB_END });
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
    cr->error = cojob_processes_reap(cr->processes);
    cr->over = cr->error;
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
        if (cojob_processes_are_running(cr->processes, job) && sj.iteration > 0
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

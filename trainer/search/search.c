/* SPDX-License-Identifier: Apache-2.0 */

#include "trainer/search/search.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/directory.h"
#include "base/memory.h"
#include "trainer/net/token.h"
#include "trainer/search/halving.h"
#include "trainer/search/hosts.h"
#include "trainer/search/launch.h"
#include "trainer/search/spec.h"

#define MAX_ARGS 192
#define START_MS                                                           \
    60000                       /* Time limit until all workers are ready, \
                                 * from the last event on. */
#define STOP_MS 5000            /* From "stop" to SIGTERM. */
#define TERM_MS 2000            /* From SIGTERM to SIGKILL. */
#define INTERRUPT_MS 1000       /* Time from a signal to the search until
                                 * SIGKILL of its jobs. */
#define WAKE_MS 250             /* Interval of checks of time limits. */

/* One job of a search: its processes and their progress.
 *
 * The servers of a job start first, since its workers need their ports.
 * Peers, under a scheme without a server, all start first and then get the
 * ports.  The workers connect, get their initial weights and wait for each
 * other.  Then they receive iteration targets.  The progress of a job is that
 * of its slowest worker; a job has failed as soon as one of its processes ends
 * by itself.  Its functions never block. */
enum job_state {
    JOB_SERVERS, /* Servers, or peers, are starting. */
    JOB_WORKERS, /* Workers are starting. */
    JOB_RUNNING, /* Running until 'target'. */
    JOB_ENDING,  /* Requested to end. */
    JOB_GONE,    /* All processes have ended. */
};

struct job {
    const struct search_config *config;
    const struct search_spec *spec; /* Of 'config'. */
    char name[32];                  /* "t0". */
    struct search_trial trial;
    char *token; /* Secret of its processes: net/token.h. */

    enum job_state state;
    bool failed;
    char *error;         /* Reason of a failed start, else NULL. */
    int64_t deadline_ms; /* Time limit of the start, or time of the
                          * next signal. */
    int signal;          /* Last signal sent. */

    int n_servers, n_children; /* Servers come first. */
    struct job_process *processes;
    int64_t target; /* Iteration target. */

    /* Last report of rank 0. */
    int64_t iteration;
    double loss, accuracy; /* NAN if unknown. */
    bool has_news;         /* Reports have arrived since the search
                            * last checked. */
    int64_t bytes;         /* Bytes that all workers have sent and
                            * received; known after a regular end. */
    double exchange_s;     /* Seconds that all workers have spent in
                            * exchanges without computing, likewise. */
};

struct job_process {
    struct child child;
    const struct search_host *host;
    int index;      /* Index within its role. */
    int port;       /* Port of a server or a peer, 0 if
                     * unknown. */
    int64_t paused; /* Iteration at which a worker waits, -1 if
                     * none. */
    bool reported;  /* The worker has reported "done" with its
                     * bytes. */
};

/* Argument list that owns its strings. */
struct args {
    const char *argv[MAX_ARGS + 1];
    int n;
};

static void
job_init(struct job *job, const struct search_config *config, int index)
{
    const struct search_placement *p;

    *job = (struct job){
        .config = config,
        .spec = config->spec,
        .loss = NAN,
        .accuracy = NAN,
        .trial = search_spec_trial(config->spec, index),
    };
    snprintf(job->name, sizeof job->name, "t%d", index);
    job->token = token_create();
    p = job->trial.placement;
    job->n_servers = p->n_servers;
    job->n_children = p->n_servers + p->n_workers;
    job->processes = allocate(job->n_children, sizeof *job->processes);
    for (int i = 0; i < job->n_children; i++) {
        struct job_process *jp = &job->processes[i];
        bool server = i < job->n_servers;

        child_init(&jp->child);
        jp->index = server ? i : i - job->n_servers;
        jp->host =
            search_hosts_find(config->hosts, server ? p->servers[jp->index]
                                                    : p->workers[jp->index]);
        jp->paused = -1;
    }
}

static void
job_uninit(struct job *job)
{
    for (int i = 0; i < job->n_children; i++) {
        child_uninit(&job->processes[i].child);
    }
    free(job->processes);
    free(job->token);
    free(job->error);
}

/* Starting. */

static void
add(struct args *args, char *string)
{
    if (args->n < MAX_ARGS) {
        args->argv[args->n++] = string;
    } else {
        free(string);
    }
}

static void
add_option(void *args, const char *name, char *value)
{
    add(args, duplicate(name));
    add(args, value);
}

static void
args_uninit(struct args *args)
{
    for (int i = 0; i < args->n; i++) {
        free((char *) args->argv[i]);
    }
}

/* Whether the workers are peers. */
static bool
has_peers(const struct job *job)
{
    return !job->n_servers;
}

static void
add_worker_options(struct args *args, const struct job *job,
                   const struct job_process *jp)
{
    const struct search_spec *spec = job->spec;

    if (has_peers(job)) {
        add_option(args, "--peers", duplicate("-"));
        add_option(args, "--address", duplicate(jp->host->address));
        sync_spec_peer_options(&spec->scheme, add_option, args);
    }
    for (int i = 0; i < job->n_servers; i++) {
        const struct job_process *server = &job->processes[i];
        const char *address = server->host->address;

        add_option(args, "--server",
                   message(strchr(address, ':') ? "[%s]:%d" : "%s:%d", address,
                           server->port));
    }
    add_option(args, "--rank", message("%d", jp->index));
    search_model_options(&spec->model, job->trial.width, add_option, args);
    add_option(args, "--batch", message("%d", job->trial.batch));
    add_option(args, "--learning-rate",
               message("%.9g", job->trial.learning_rate));
    add_option(args, "--momentum", message("%.9g", spec->momentum));
    add_option(args, "--seed", message("%lld", (long long) spec->seed));
    add_option(args, "--eval-every",
               message("%lld", (long long) spec->eval_every));
    add_option(args, "--sample-cost-us",
               message("%.9g", spec->sample_cost_us));
    add_option(args, "--backend", duplicate(spec->backend));
    add_option(args, "--iterations", duplicate("0"));
}

static void
start_process(struct job *job, struct job_process *jp, bool server)
{
    char *env[4] = {
        message("STAGECOACH_COJOB=%s", job->spec->name),
        message("STAGECOACH_JOB=%s", job->name),
        message(TOKEN_VARIABLE "=%s", job->token),
        NULL,
    };
    struct args args = { .n = 0 };
    char *error;

    if (job->config->wrapper) {
        add(&args, duplicate(job->config->wrapper));
        add(&args, duplicate("run"));
        add_option(&args, "--cojob", duplicate(job->spec->name));
        add_option(&args, "--job", duplicate(job->name));
        add(&args, duplicate("--"));
    }
    add(&args, duplicate(job->config->trainer));
    add(&args, duplicate(server           ? "server"
                         : has_peers(job) ? "peer"
                                          : "worker"));
    if (!has_peers(job)) {
        add_option(&args, "--workers",
                   message("%d", job->n_children - job->n_servers));
    }
    if (job->spec->congestion) {
        add_option(&args, "--congestion", duplicate(job->spec->congestion));
    }
    if (server) {
        add_option(&args, "--address", duplicate(jp->host->address));
        if (job->spec->sync) {
            add_option(&args, "--sync", duplicate(job->spec->sync));
        }
    } else {
        add_worker_options(&args, job, jp);
    }
    error = child_start(&jp->child, jp->host, args.argv,
                        (const char *const *) env);
    if (error) {
        job->failed = true;
        free(job->error);
        job->error = error;
    }
    args_uninit(&args);
    free(env[0]);
    free(env[1]);
    free(env[2]);
}

static void
signal_all(struct job *job, int signal, int grace_ms)
{
    job->signal = signal;
    job->deadline_ms = clock_monotonic_ms() + grace_ms;
    for (int i = 0; i < job->n_children; i++) {
        child_kill(&job->processes[i].child, signal);
    }
}

/* Ends the job by signals. */
static void
job_kill(struct job *job, int grace_ms)
{
    if (job->state != JOB_GONE) {
        job->state = JOB_ENDING;
        signal_all(job, SIGTERM, grace_ms);
    }
}

static void
start_some(struct job *job, int begin, int end)
{
    for (int i = begin; i < end && !job->failed; i++) {
        start_process(job, &job->processes[i], i < job->n_servers);
    }
    if (job->failed) {
        job_kill(job, TERM_MS);
    }
}

/* Returns the number of processes that start first. */
static int
n_first(const struct job *job)
{
    return has_peers(job) ? job->n_children : job->n_servers;
}

static void
job_start(struct job *job)
{
    job->state = JOB_SERVERS;
    job->deadline_ms = clock_monotonic_ms() + START_MS;
    start_some(job, 0, n_first(job));
}

/* Commands to processes. */

static void
tell_workers(struct job *job, const char *text)
{
    for (int i = job->n_servers; i < job->n_children; i++) {
        child_say(&job->processes[i].child, text);
    }
}

/* Sets the target.  A job that is starting trains when its workers are ready,
 * one that has reached its previous target continues. */
static void
job_run_until(struct job *job, int64_t iterations)
{
    job->target = iterations;
    if (job->state == JOB_RUNNING) {
        char *text = message("until %lld\n", (long long) iterations);

        tell_workers(job, text);
        free(text);
    }
}

/* Requests a regular end. */
static void
job_stop(struct job *job)
{
    if (job->state < JOB_ENDING) {
        job->state = JOB_ENDING;
        job->deadline_ms = clock_monotonic_ms() + STOP_MS;
        tell_workers(job, "stop\n");
    }
}

/* Reports of processes. */

static double
number_of(const cJSON *object, const char *name)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, name);

    return cJSON_IsNumber(item) ? item->valuedouble : NAN;
}

static int64_t
integer_of(const cJSON *object, const char *name)
{
    double x = number_of(object, name);

    return x >= 0 && x < 1e15 ? x : 0;
}

static void
take_event(struct job *job, struct job_process *jp, bool server,
           const cJSON *event)
{
    const char *type =
        cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(event, "event"));
    bool first = !server && !jp->index;

    if (!type) {
        return;
    }
    if (!strcmp(type, "listening")) {
        jp->port = integer_of(event, "port") & 0xffff;
    } else if (server) {
        return;
    } else if (!strcmp(type, "paused")) {
        jp->paused = integer_of(event, "iteration");
    } else if (!strcmp(type, "done") && !jp->reported) {
        jp->reported = true;
        job->bytes += integer_of(event, "bytes_sent")
                      + integer_of(event, "bytes_received");
        job->exchange_s += number_of(event, "exchange_s");
    }
    if (first && (!strcmp(type, "progress") || !strcmp(type, "done"))) {
        job->iteration = integer_of(event, "iteration");
        job->loss = number_of(event, "loss");
        job->accuracy = number_of(event, "accuracy");
        job->has_news = job->has_news || *type == 'p';
    }
}

static void
take_lines(struct job *job, struct job_process *jp, bool server)
{
    char *line;

    while ((line = child_line(&jp->child.out))) {
        cJSON *event = cJSON_Parse(line);

        take_event(job, jp, server, event);
        if (job->state <= JOB_WORKERS) {
            job->deadline_ms = clock_monotonic_ms() + START_MS;
        }
        cJSON_Delete(event);
    }
}

static int
count_alive(const struct job *job, int begin, int end)
{
    int n = 0;

    for (int i = begin; i < end; i++) {
        n += job->processes[i].child.pid > 0;
    }
    return n;
}

static bool
all_listen(const struct job *job)
{
    for (int i = 0; i < n_first(job); i++) {
        if (!job->processes[i].port) {
            return false;
        }
    }
    return true;
}

static void
send_peers(struct job *job)
{
    char *list = NULL;

    for (int i = 0; i < job->n_children; i++) {
        add_peer_address(&list, job->processes[i].host->address,
                         job->processes[i].port);
    }
    for (int i = 0; i < job->n_children; i++) {
        child_say_peers(&job->processes[i].child, list);
    }
    free(list);
}

static bool
all_paused(const struct job *job, int64_t iteration)
{
    for (int i = job->n_servers; i < job->n_children; i++) {
        if (job->processes[i].paused < iteration) {
            return false;
        }
    }
    return true;
}

/* Returns true if all workers have reached the target. */
static bool
job_has_reached(const struct job *job)
{
    return job->state == JOB_RUNNING && all_paused(job, job->target);
}

/* Signals processes that have not ended in time. */
static void
run_ending(struct job *job)
{
    if (!count_alive(job, job->n_servers, job->n_children)) {
        for (int i = 0; i < job->n_servers; i++) {
            child_hang_up(&job->processes[i].child);
        }
    }
    if (!count_alive(job, 0, job->n_children)) {
        job->state = JOB_GONE;
    } else if (clock_monotonic_ms() >= job->deadline_ms) {
        signal_all(job, job->signal ? SIGKILL : SIGTERM, TERM_MS);
    }
}

/* Handles reports and ends of processes, and sends signals that are due.
 * Updates 'state', 'failed' and 'has_news'. */
static void
job_run(struct job *job)
{
    if (job->state == JOB_GONE) {
        return;
    }
    for (int i = 0; i < job->n_children; i++) {
        struct job_process *jp = &job->processes[i];
        bool ended = child_reap(&jp->child);

        take_lines(job, jp, i < job->n_servers);
        if (ended && job->state < JOB_ENDING) {
            job->failed = true;
        }
    }
    if (job->state <= JOB_WORKERS && clock_monotonic_ms() > job->deadline_ms) {
        job->failed = true;
    }
    if (job->failed && job->state < JOB_ENDING) {
        job_kill(job, TERM_MS);
    }
    if (job->state == JOB_SERVERS && all_listen(job)) {
        job->state = JOB_WORKERS;
        if (has_peers(job)) {
            send_peers(job);
        } else {
            start_some(job, job->n_servers, job->n_children);
        }
    } else if (job->state == JOB_WORKERS && all_paused(job, 0)) {
        job->state = JOB_RUNNING;
        job_run_until(job, job->target);
    }
    if (job->state == JOB_ENDING) {
        run_ending(job);
    }
}

/* Stores the descriptors to poll, 'n_children' elements. */
static void
job_poll_fds(const struct job *job, struct pollfd *fds)
{
    for (int i = 0; i < job->n_children; i++) {
        fds[i] = (struct pollfd){ .fd = job->processes[i].child.out.fd,
                                  .events = POLLIN };
    }
}

struct search {
    const struct search_config *config;
    const struct search_spec *spec;
    struct halving halving;
    int n_jobs;
    struct job *jobs;
    bool *ended;                /* By job: its end has been announced. */

    bool judged;                /* No further stage will begin. */
    int64_t begin_ms, stage_ms, answer_ms;      /* Monotonic. */
    const char **names;         /* Names of jobs, for an event. */
    int *ranking;               /* Ranking of the last stage, 'n_ranked'
                                 * jobs. */
    int n_ranked;
    int best;                   /* Best job, -1 if none yet. */
    int signal_fd;
    int signal;                 /* Received signal: the search is ending. */
    struct pollfd *fds;
    int n_fds;
};

/* Creates an event of docs/interfaces.md; event_send() frees it.  cJSON prints
 * numbers that are not finite, which are unknown, as null. */
static cJSON *
event_create(const struct search *s, const char *type)
{
    cJSON *event = cJSON_CreateObject();

    cJSON_AddStringToObject(event, "event", type);
    cJSON_AddNumberToObject(event, "time", clock_wall_ms());
    cJSON_AddStringToObject(event, "cojob", s->spec->name);
    return event;
}

static void
event_send(const struct search *s, cJSON *event)
{
    if (s->config->event) {
        s->config->event(s->config->event_aux, event);
    }
    cJSON_Delete(event);
}

/* Adds the first 'n' of the names. */
static void
add_names(const struct search *s, cJSON *event, const char *member, int n)
{
    cJSON_AddItemToObject(event, member, cJSON_CreateStringArray(s->names, n));
}

static void
add_state(cJSON *event, const struct job *job)
{
    cJSON_AddStringToObject(event, "job", job->name);
    cJSON_AddNumberToObject(event, "iteration", job->iteration);
    cJSON_AddNumberToObject(event, "loss", job->loss);
    cJSON_AddNumberToObject(event, "accuracy", job->accuracy);
}

/* Announces a change of the search. */
static void
announce(const struct search *s, struct intent_edit edit)
{
    if (s->config->announce) {
        edit.cojob = s->spec->name;
        s->config->announce(s->config->announce_aux, &edit);
    }
}

/* Begin and end of jobs. */

static void
announce_job(struct search *s, const struct job *job)
{
    const struct search_placement *p = job->trial.placement;
    size_t n = p->n_workers + p->n_servers;
    struct intent_worker *workers = allocate(n, sizeof *workers);

    for (size_t i = 0; i < n; i++) {
        bool server = i >= p->n_workers;
        size_t index = server ? i - p->n_workers : i;

        workers[i] = (struct intent_worker) {
            .host = server ? p->servers[index] : p->workers[index],
            .role = server ? "server" : p->n_servers ? "worker" : "peer",
            .index = index,
        };
    }
    announce(s, (struct intent_edit) {
        .kind = INTENT_JOB_BEGIN, .job = job->name, .workers = workers, .n = n,
        .model_bytes = search_model_n_parameters(&s->spec->model,
                                                  job->trial.width)
                       * sizeof(float),
    });
    free(workers);
}

static void
report_job_begin(const struct search *s, const struct job *job)
{
    cJSON *event = event_create(s, "job-begin");
    cJSON *hyper;

    cJSON_AddStringToObject(event, "job", job->name);
    hyper = cJSON_AddObjectToObject(event, "hyperparameters");
    cJSON_AddNumberToObject(hyper, "learning_rate", job->trial.learning_rate);
    if (search_model_has_width(&s->spec->model)) {
        cJSON_AddNumberToObject(hyper, "width", job->trial.width);
    }
    cJSON_AddNumberToObject(hyper, "batch", job->trial.batch);
    event_send(s, event);
}

static const char *
outcome(const struct search *s, int i)
{
    enum halving_state state = s->halving.jobs[i].state;

    return state == HALVING_FAILED ? "failed"
           : state == HALVING_DONE ? "done" : "stopped";
}

/* Announces the end of jobs without processes. */
static void
announce_ends(struct search *s)
{
    for (int i = 0; i < s->n_jobs; i++) {
        if (s->jobs[i].state == JOB_GONE && !s->ended[i]) {
            cJSON *event = event_create(s, "job-end");

            s->ended[i] = true;
            add_state(event, &s->jobs[i]);
            cJSON_AddStringToObject(event, "outcome", outcome(s, i));
            cJSON_AddNumberToObject(event, "bytes", s->jobs[i].bytes);
            cJSON_AddNumberToObject(event, "exchange_s",
                                    s->jobs[i].exchange_s);
            event_send(s, event);
        }
    }
}

/* Begin and end of stages. */

/* Stores the names of the running jobs and returns their number. */
static int
name_running_jobs(struct search *s)
{
    int n = 0;

    for (int i = 0; i < s->n_jobs; i++) {
        if (s->halving.jobs[i].state == HALVING_RUNNING) {
            s->names[n++] = s->jobs[i].name;
        }
    }
    return n;
}

/* Starts the stage.  announce_stage_begin() follows it: no job waits for the
 * controller, and jobs that continue have their previous ranks until then. */
static void
begin_stage(struct search *s)
{
    int64_t target = halving_target(&s->halving);
    cJSON *event;

    s->stage_ms = clock_monotonic_ms();
    for (int i = 0; i < s->n_jobs; i++) {
        if (s->halving.jobs[i].state == HALVING_RUNNING) {
            job_run_until(&s->jobs[i], target);
        }
    }
    event = event_create(s, "stage-begin");
    cJSON_AddNumberToObject(event, "rung", s->halving.rung);
    cJSON_AddNumberToObject(event, "iterations", target);
    add_names(s, event, "jobs", name_running_jobs(s));
    event_send(s, event);
}

static void
announce_stage_begin(struct search *s)
{
    struct search_rung *rungs = allocate(s->spec->n_rungs, sizeof *rungs);

    announce(s, (struct intent_edit){
                    .kind = INTENT_STAGE_BEGIN,
                    .rung = s->halving.rung,
                    .rungs = rungs,
                    .n_rungs = halving_rungs(&s->halving, rungs),
                    .jobs = s->names,
                    .n = name_running_jobs(s),
                });
    free(rungs);
}

/* Begins the search and its first stage.  The jobs start after they have been
 * announced, so that their first bytes are tagged and in the order.  If the
 * controller is away, this costs the time limit of one announcement. */
static void
begin_search(struct search *s)
{
    cJSON *event = event_create(s, "search-begin");

    s->begin_ms = clock_monotonic_ms();
    add_names(s, event, "jobs", name_running_jobs(s));
    event_send(s, event);
    for (int i = 0; i < s->n_jobs; i++) {
        report_job_begin(s, &s->jobs[i]);
    }
    begin_stage(s);
    announce(s, (struct intent_edit){ .kind = INTENT_COJOB_BEGIN,
                                      .weight = s->spec->weight });
    for (int i = 0; i < s->n_jobs; i++) {
        announce_job(s, &s->jobs[i]);
    }
    announce_stage_begin(s);
    for (int i = 0; i < s->n_jobs; i++) {
        job_start(&s->jobs[i]);
    }
}

/* Announces the end of stage 'rung' and of the jobs that do not continue. */
static void
announce_stage_end(struct search *s, int rung)
{
    announce(s,
             (struct intent_edit){ .kind = INTENT_STAGE_END, .rung = rung });
    for (int i = 0; i < s->n_ranked; i++) {
        int job = s->ranking[i];

        if (s->halving.jobs[job].state != HALVING_RUNNING) {
            announce(s, (struct intent_edit){ .kind = INTENT_JOB_END,
                                              .job = s->jobs[job].name,
                                              .outcome = outcome(s, job) });
        }
    }
}

static void
end_stage(struct search *s)
{
    int rung = s->halving.rung;
    cJSON *event = event_create(s, "stage-end");

    cJSON_AddNumberToObject(event, "rung", rung);
    cJSON_AddNumberToObject(event, "seconds",
                            (clock_monotonic_ms() - s->stage_ms) / 1e3);
    s->n_ranked = halving_end_stage(&s->halving, s->ranking);
    s->best = s->n_ranked ? s->ranking[0] : -1;
    for (int i = 0; i < s->n_ranked; i++) {
        s->names[i] = s->jobs[s->ranking[i]].name;
    }
    add_names(s, event, "ranking", s->n_ranked);
    event_send(s, event);
    for (int i = 0; i < s->n_ranked; i++) {
        if (s->halving.jobs[s->ranking[i]].state != HALVING_RUNNING) {
            job_stop(&s->jobs[s->ranking[i]]);
        }
    }
    if (!halving_is_over(&s->halving)) {
        begin_stage(s);
    } else {
        s->judged = true;
        s->answer_ms = clock_monotonic_ms();
    }
    announce_stage_end(s, rung);
    if (!s->judged) {
        announce_stage_begin(s);
    }
}

static void
fail_job(struct search *s, int i)
{
    if (s->halving.jobs[i].state == HALVING_RUNNING
        || s->halving.jobs[i].state == HALVING_REACHED) {
        const struct job *job = &s->jobs[i];

        halving_failed(&s->halving, i);
        fprintf(stderr, "%s/%s: failed at iteration %lld%s%s\n",
                s->spec->name, job->name, (long long) job->iteration,
                job->error ? ": " : "", job->error ? job->error : "");
        announce(s, (struct intent_edit) {
            .kind = INTENT_JOB_END, .job = job->name, .outcome = "failed",
        });
    }
}

/* Handles the progress of job 'i'. */
static void
step_job(struct search *s, int i)
{
    struct job *job = &s->jobs[i];
    bool starting = job->state < JOB_RUNNING;

    job_run(job);
    if (starting && job->state == JOB_RUNNING) {
        cJSON *event = event_create(s, "job-ready");

        cJSON_AddStringToObject(event, "job", job->name);
        cJSON_AddNumberToObject(event, "seconds",
                                (clock_monotonic_ms() - s->begin_ms) / 1e3);
        event_send(s, event);
    } else if (!starting && job->has_news && !s->judged) {
        cJSON *event = event_create(s, "progress");

        cJSON_AddNumberToObject(event, "rung", s->halving.rung);
        add_state(event, job);
        event_send(s, event);
    }
    job->has_news = false;
    if (job->failed) {
        fail_job(s, i);
    } else if (job_has_reached(job)) {
        halving_reached(&s->halving, i, job->loss);
    }
}

static void
search_step(struct search *s)
{
    for (int i = 0; i < s->n_jobs; i++) {
        step_job(s, i);
    }
    if (!s->judged && !s->signal && halving_stage_is_over(&s->halving)) {
        end_stage(s);
    }
    announce_ends(s);
}

/* Main loop. */

static void
take_signals(struct search *s)
{
    struct signalfd_siginfo info;

    while (read(s->signal_fd, &info, sizeof info) == sizeof info) {
        if (info.ssi_signo != SIGCHLD) {
            /* A second signal ends the search at once. */
            int grace_ms = s->signal ? 0 : INTERRUPT_MS;

            s->signal = info.ssi_signo;
            for (int i = 0; i < s->n_jobs; i++) {
                job_kill(&s->jobs[i], grace_ms);
            }
        }
    }
}

static bool
all_gone(const struct search *s)
{
    for (int i = 0; i < s->n_jobs; i++) {
        if (s->jobs[i].state != JOB_GONE) {
            return false;
        }
    }
    return true;
}

static void
search_loop(struct search *s)
{
    do {
        struct pollfd *fd = s->fds;

        *fd++ = (struct pollfd) { .fd = s->signal_fd, .events = POLLIN };
        for (int i = 0; i < s->n_jobs; i++) {
            job_poll_fds(&s->jobs[i], fd);
            fd += s->jobs[i].n_children;
        }
        poll(s->fds, s->n_fds, WAKE_MS);
        take_signals(s);
        search_step(s);
        if (s->config->announce_again) {
            s->config->announce_again(s->config->announce_aux);
        }
    } while (!all_gone(s));
}

/* Makes the signals readable.  '*old' is what to set again afterwards. */
static int
open_signals(sigset_t *old)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGCHLD);
    sigprocmask(SIG_BLOCK, &set, old);
    return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

static void
search_init(struct search *s, const struct search_config *config)
{
    memset(s, 0, sizeof *s);
    s->config = config;
    s->spec = config->spec;
    s->n_jobs = s->spec->n_trials;
    s->jobs = allocate(s->n_jobs, sizeof *s->jobs);
    s->ended = allocate(s->n_jobs, sizeof *s->ended);
    s->names = allocate(s->n_jobs, sizeof *s->names);
    s->ranking = allocate(s->n_jobs, sizeof *s->ranking);
    s->best = -1;
    halving_init(&s->halving, s->spec->rungs, s->spec->n_rungs, s->n_jobs);
    s->n_fds = 1;
    for (int i = 0; i < s->n_jobs; i++) {
        job_init(&s->jobs[i], config, i);
        s->n_fds += s->jobs[i].n_children;
    }
    s->fds = allocate(s->n_fds, sizeof *s->fds);
}

static void
search_uninit(struct search *s)
{
    for (int i = 0; i < s->n_jobs; i++) {
        job_uninit(&s->jobs[i]);
    }
    halving_uninit(&s->halving);
    free(s->jobs);
    free(s->ended);
    free(s->names);
    free(s->ranking);
    free(s->fds);
}

static void
report_end(const struct search *s)
{
    int64_t end_ms = s->judged ? s->answer_ms : clock_monotonic_ms();
    cJSON *event = event_create(s, "search-end");

    cJSON_AddItemToObject(event, "best",
                          s->best < 0 ? cJSON_CreateNull()
                          : cJSON_CreateString(s->jobs[s->best].name));
    cJSON_AddNumberToObject(event, "seconds", (end_ms - s->begin_ms) / 1e3);
    event_send(s, event);
}

char *
search_execute(const struct search_config *config,
               struct search_result *result)
{
    void (*old_pipe)(int) = signal(SIGPIPE, SIG_IGN);
    struct search s;
    sigset_t old;

    search_init(&s, config);
    s.signal_fd = open_signals(&old);
    if (s.signal_fd < 0) {
        search_uninit(&s);
        return message("signalfd: %s", strerror(errno));
    }
    begin_search(&s);
    search_loop(&s);
    announce(&s, (struct intent_edit) { .kind = INTENT_COJOB_END });
    report_end(&s);
    *result = (struct search_result) { .best = s.best, .signal = s.signal };
    for (int i = 0; i < s.n_jobs; i++) {
        result->n_failed += s.halving.jobs[i].state == HALVING_FAILED;
    }
    close(s.signal_fd);
    search_uninit(&s);
    sigprocmask(SIG_SETMASK, &old, NULL);
    signal(SIGPIPE, old_pipe);
    return NULL;
}

char *
search_find_program(const char *folder, const char *name)
{
    static const char *const places[] = { ".", "../trainer", "../cli", NULL };
    char *path;

    if (!folder) {
        return directory_find(places, name, X_OK);
    }
    path = message("%s/%s", folder, name);
    if (access(path, X_OK)) {
        free(path);
        path = NULL;
    }
    return path;
}

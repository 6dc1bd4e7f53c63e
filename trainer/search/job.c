/* SPDX-License-Identifier: Apache-2.0 */

#include "trainer/search/job.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "trainer/net/token.h"
#include "trainer/search/hosts.h"
#include "trainer/search/launch.h"
#include "trainer/search/search.h"

#define MAX_ARGS 192
#define START_MS                                                           \
    60000                       /* Time limit until all workers are ready, \
                                 * from the last event on. */
#define STOP_MS 5000            /* From "stop" to SIGTERM. */
#define TERM_MS 2000            /* Time from SIGTERM to SIGKILL, ms. */

struct job_process {
    struct child child;
    const struct search_host *host;
    int index;                  /* Index within its role. */
    int port;                   /* Port of a server or a peer, 0 if
                                 * unknown. */
    int64_t paused;             /* Iteration at which a worker waits, -1 if
                                 * none. */
    bool reported;              /* The worker has reported "done" with its
                                 * bytes. */
};

/* Argument list that owns its strings. */
struct args {
    const char *argv[MAX_ARGS + 1];
    int n;
};

void
job_init(struct job *job, const struct search_config *config, int index)
{
    const struct search_placement *p;

    *job = (struct job) {
        .config = config, .spec = config->spec, .loss = NAN, .accuracy = NAN,
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
        jp->host = search_hosts_find(config->hosts,
                                     server ? p->servers[jp->index]
                                            : p->workers[jp->index]);
        jp->paused = -1;
    }
}

void
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
                   message(strchr(address, ':') ? "[%s]:%d" : "%s:%d",
                           address, server->port));
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
    add(&args, duplicate(server ? "server" : has_peers(job) ? "peer"
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

void
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

void
job_run_until(struct job *job, int64_t iterations)
{
    job->target = iterations;
    if (job->state == JOB_RUNNING) {
        char *text = message("until %lld\n", (long long) iterations);

        tell_workers(job, text);
        free(text);
    }
}

void
job_stop(struct job *job)
{
    if (job->state < JOB_ENDING) {
        job->state = JOB_ENDING;
        job->deadline_ms = clock_monotonic_ms() + STOP_MS;
        tell_workers(job, "stop\n");
    }
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

void
job_kill(struct job *job, int grace_ms)
{
    if (job->state != JOB_GONE) {
        job->state = JOB_ENDING;
        signal_all(job, SIGTERM, grace_ms);
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
    const char *type = cJSON_GetStringValue(
        cJSON_GetObjectItemCaseSensitive(event, "event"));
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

bool
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

void
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

void
job_poll_fds(const struct job *job, struct pollfd *fds)
{
    for (int i = 0; i < job->n_children; i++) {
        fds[i] = (struct pollfd){ .fd = job->processes[i].child.out.fd,
                                  .events = POLLIN };
    }
}

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
#include "trainer/search/halving.h"
#include "trainer/search/hosts.h"
#include "trainer/search/launch.h"
#include "trainer/search/spec.h"
#include "trainer/search/team.h"

#define INTERRUPT_MS 1000       /* Time from a signal to the search until
                                 * SIGKILL of its jobs. */
#define STOP_MS 5000            /* From "stop" to SIGTERM. */
#define NEVER "1000000000000"   /* Iterations: only the last checkpoint. */
#define WAKE_MS 250             /* Interval of checks of time limits. */

/* A team, and its progress, which its slowest worker determines. */
struct job {
    const struct search_config *config;
    char name[32]; /* "t0". */
    struct search_trial trial;
    struct team *team;
    struct team_config team_config; /* Of the team, and what it has: */
    struct words of_servers, of_workers;
    const struct search_host **hosts;
    int n;            /* Processes. */
    char *checkpoint; /* Folder, or NULL. */

    bool failed;
    char *error;    /* The reason, or NULL. */
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

struct search {
    const struct search_config *config;
    const struct search_spec *spec;
    struct halving halving;
    int n_jobs;
    struct job *jobs;
    bool *ended;                /* By job: its end has been announced. */

    bool judged;                /* No further stage will begin. */
    bool changed;               /* Trials have begun or ended since the last
                                 * announcement of an asynchronous stage. */
    int64_t begin_ms, stage_ms, answer_ms;      /* Monotonic. */
    const char **names;         /* Names of jobs, for an event. */
    int *ranking;               /* Ranking of the last stage, 'n_ranked'
                                 * jobs. */
    int n_ranked;
    int best;                   /* Best job, -1 if none yet. */
    int signal_fd;
    int signal;                 /* Received signal: the search is ending. */
    struct pollfd *fds;
};

/* Jobs. */

static void
add_worker_arguments(struct words *w, const struct job *job)
{
    const struct search_spec *spec = job->config->spec;

    if (!job->trial.placement->n_servers) {
        sync_spec_peer_options(&spec->scheme, words_add_option, w);
    }
    search_model_options(&spec->model, job->trial.width, words_add_option, w);
    words_add(w, message("--batch=%d", job->trial.batch));
    words_add(w, message("--learning-rate=%.9g", job->trial.learning_rate));
    words_add(w, message("--momentum=%.9g", spec->momentum));
    words_add(w, message("--seed=%lld", (long long) spec->seed));
    words_add(w, message("--eval-every=%lld", (long long) spec->eval_every));
    words_add(w, message("--sample-cost-us=%.9g", spec->sample_cost_us));
    words_add(w, message("--backend=%s", spec->backend));
}

static void
add_arguments(struct job *job)
{
    const struct search_spec *spec = job->config->spec;

    if (spec->sync) {
        words_add(&job->of_servers, message("--sync=%s", spec->sync));
    }
    if (job->checkpoint) {
        words_add(&job->of_servers,
                  message("--checkpoint=%s", job->checkpoint));
        words_add(&job->of_servers, duplicate("--checkpoint-every=" NEVER));
        words_add(&job->of_servers, duplicate("--no-resume"));
    }
    add_worker_arguments(&job->of_workers, job);
    if (spec->congestion) {
        words_add(&job->of_servers,
                  message("--congestion=%s", spec->congestion));
        words_add(&job->of_workers,
                  message("--congestion=%s", spec->congestion));
    }
}

static int64_t
integer_of(const cJSON *object, const char *name)
{
    double x = team_number(object, name);

    return x >= 0 && x < 1e15 ? x : 0;
}

static void
take_event(void *job_, int rank, const cJSON *event)
{
    const char *type = cJSON_GetObjectItem(event, "event")->valuestring;
    struct job *job = job_;
    bool done = !strcmp(type, "done");

    if (done) {
        job->bytes += integer_of(event, "bytes_sent")
                      + integer_of(event, "bytes_received");
        job->exchange_s += team_number(event, "exchange_s");
    }
    if (!rank && (done || !strcmp(type, "progress"))) {
        job->iteration = integer_of(event, "iteration");
        job->loss = team_number(event, "loss");
        job->accuracy = team_number(event, "accuracy");
        job->has_news = job->has_news || !done;
    }
}

/* The team keeps a pointer to the job, which must not move. */
static void
job_init(struct job *job, const struct search_config *config, int index)
{
    const struct search_placement *p;

    *job = (struct job){
        .config = config,
        .loss = NAN,
        .accuracy = NAN,
        .trial = search_spec_trial(config->spec, index),
    };
    p = job->trial.placement;
    snprintf(job->name, sizeof job->name, "t%d", index);
    job->n = p->n_servers + p->n_workers;
    if (config->checkpoints && p->n_servers) {
        job->checkpoint = message("%s/%s/%s", config->checkpoints,
                                  config->spec->name, job->name);
    }
    job->hosts = allocate(job->n, sizeof *job->hosts);
    for (int i = 0; i < job->n; i++) {
        bool server = i < p->n_servers;

        job->hosts[i] = search_hosts_find(
            config->hosts,
            server ? p->servers[i] : p->workers[i - p->n_servers]);
    }
    add_arguments(job);
    job->team_config = (struct team_config){
        .program = config->trainer,
        .wrapper = config->wrapper,
        .cojob = config->spec->name,
        .job = job->name,
        .n_servers = p->n_servers,
        .n_workers = p->n_workers,
        .hosts = job->hosts,
        .server_arguments = (const char *const *) job->of_servers.words,
        .worker_arguments = (const char *const *) job->of_workers.words,
        .report = take_event,
        .aux = job,
    };
    job->team = team_create(&job->team_config);
}

static void
job_uninit(struct job *job)
{
    team_destroy(job->team);
    words_uninit(&job->of_servers);
    words_uninit(&job->of_workers);
    free(job->hosts);
    free(job->checkpoint);
    free(job->error);
}

/* Sets the target.  A job that is starting trains when its workers are ready,
 * one that has reached its previous target continues. */
static void
job_run_until(struct job *job, int64_t iterations)
{
    job->target = iterations;
    team_until(job->team, iterations);
}

static bool
job_has_reached(const struct job *job)
{
    return team_state(job->team) == TEAM_RUNNING
           && team_has_reached(job->team, job->target);
}

/* Handles reports and ends of processes, and sends signals that are due.  A
 * job has failed as soon as one of its processes ends by itself. */
static void
job_run(struct job *job)
{
    bool ending = team_state(job->team) >= TEAM_ENDING;
    char *error = team_run(job->team, 0);

    if (error && !ending) {
        job->failed = true;
        job->error = error;
    } else {
        free(error); /* A consequence of the request to end. */
    }
}

/* Events. */

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
add_hyperparameters(const struct search *s, cJSON *event,
                    const struct job *job)
{
    cJSON *hyper = cJSON_AddObjectToObject(event, "hyperparameters");

    cJSON_AddNumberToObject(hyper, "learning_rate", job->trial.learning_rate);
    if (search_model_has_width(&s->spec->model)) {
        cJSON_AddNumberToObject(hyper, "width", job->trial.width);
    }
    cJSON_AddNumberToObject(hyper, "batch", job->trial.batch);
}

static void
report_job_begin(const struct search *s, const struct job *job)
{
    cJSON *event = event_create(s, "job-begin");

    cJSON_AddStringToObject(event, "job", job->name);
    add_hyperparameters(s, event, job);
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
        if (team_state(s->jobs[i].team) == TEAM_GONE && !s->ended[i]
            && s->halving.jobs[i].state != HALVING_WAITING) {
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

/* Stores the names of the running jobs of 'bracket', or, if that is -1, of all
 * that run or have not begun, and returns their number. */
static int
name_running_jobs(struct search *s, int bracket)
{
    int n_brackets = s->spec->method.n_brackets, n = 0;

    for (int i = 0; i < s->n_jobs; i++) {
        enum halving_state state = s->halving.jobs[i].state;

        if (bracket < 0
                ? state <= HALVING_RUNNING
                : state == HALVING_RUNNING && i % n_brackets == bracket) {
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
    bool asynchronous = s->spec->method.places;
    cJSON *event;

    s->stage_ms = clock_monotonic_ms();
    for (int i = 0; i < s->n_jobs; i++) {
        if (s->halving.jobs[i].state == HALVING_RUNNING) {
            job_run_until(&s->jobs[i], halving_target(&s->halving, i));
        }
    }
    event = event_create(s, "stage-begin");
    cJSON_AddNumberToObject(event, "rung", s->halving.rung);
    cJSON_AddNumberToObject(
        event, "iterations",
        s->spec->rungs[asynchronous ? s->spec->n_rungs - 1 : s->halving.rung]
            .iterations);
    add_names(s, event, "jobs", name_running_jobs(s, -1));
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
                    .n = name_running_jobs(s, -1),
                });
    free(rungs);
}

/* Trials. */

/* Announces the brackets of an asynchronous search, each of them a stage. */
static void
announce_trials(struct search *s)
{
    const struct search_spec *spec = s->spec;

    for (int b = 0; b < spec->method.n_brackets; b++) {
        int to_come = halving_count(&s->halving, HALVING_WAITING, b);
        int n = name_running_jobs(s, b);

        announce(s, (struct intent_edit){
                        .kind = n || to_come ? INTENT_STAGE_BEGIN
                                             : INTENT_STAGE_END,
                        .rung = b,
                        .rungs = &spec->rungs[b],
                        .n_rungs = spec->n_rungs - b,
                        .eta = spec->method.eta,
                        .to_come = to_come,
                        .jobs = s->names,
                        .n = n,
                    });
    }
    s->changed = false;
}

/* Returns true if the processes of job 'i' have been started and may run. */
static bool
has_processes(const struct search *s, int i)
{
    return s->halving.jobs[i].state != HALVING_WAITING
           && team_state(s->jobs[i].team) != TEAM_GONE;
}

/* Begins trials, in their order, as long as there are places. */
static void
begin_trials(struct search *s)
{
    int n = 0, first = 0, end = 0, i;

    for (i = 0; i < s->n_jobs; i++) {
        n += has_processes(s, i);
    }
    while (n < s->spec->method.places
           && (i = halving_begin(&s->halving)) >= 0) {
        report_job_begin(s, &s->jobs[i]);
        job_run_until(&s->jobs[i], halving_target(&s->halving, i));
        announce_job(s, &s->jobs[i]);
        first = end ? first : i;
        end = i + 1;
        n++;
        s->changed = true;
    }
    if (s->changed) {
        announce_trials(s);
    }
    for (i = first; i < end; i++) {
        team_start(s->jobs[i].team);
    }
}

/* Lets a trial go on that has reached a rung, or ends it. */
static void
continue_trial(struct search *s, int i)
{
    struct job *job = &s->jobs[i];

    if (s->halving.jobs[i].state == HALVING_RUNNING) {
        job_run_until(job, halving_target(&s->halving, i));
    } else {
        team_stop(job->team, STOP_MS);
        announce(s, (struct intent_edit){ .kind = INTENT_JOB_END,
                                          .job = job->name,
                                          .outcome = outcome(s, i) });
        s->changed = true;
    }
}

/* Begins the search and its first stage.  The jobs start after they have been
 * announced, so that their first bytes are tagged and in the order.  If the
 * controller is away, this costs the time limit of one announcement. */
static void
begin_search(struct search *s)
{
    cJSON *event = event_create(s, "search-begin");

    s->begin_ms = clock_monotonic_ms();
    add_names(s, event, "jobs", name_running_jobs(s, -1));
    event_send(s, event);
    for (int i = 0; i < s->n_jobs && !s->spec->method.places; i++) {
        report_job_begin(s, &s->jobs[i]);
    }
    begin_stage(s);
    announce(s, (struct intent_edit){ .kind = INTENT_COJOB_BEGIN,
                                      .weight = s->spec->weight });
    if (s->spec->method.places) {
        begin_trials(s);
        return;
    }
    for (int i = 0; i < s->n_jobs; i++) {
        announce_job(s, &s->jobs[i]);
    }
    announce_stage_begin(s);
    for (int i = 0; i < s->n_jobs; i++) {
        team_start(s->jobs[i].team);
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
    bool asynchronous = s->spec->method.places;
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
            team_stop(s->jobs[s->ranking[i]].team, STOP_MS);
        }
    }
    if (!halving_is_over(&s->halving)) {
        begin_stage(s);
    } else {
        s->judged = true;
        s->answer_ms = clock_monotonic_ms();
    }
    if (!asynchronous) {
        announce_stage_end(s, rung);
    }
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
        s->changed = true;
    }
}

/* Handles the progress of job 'i'. */
static void
step_job(struct search *s, int i)
{
    struct job *job = &s->jobs[i];
    bool starting = team_state(job->team) < TEAM_RUNNING;

    job_run(job);
    if (starting && team_state(job->team) == TEAM_RUNNING) {
        cJSON *event = event_create(s, "job-ready");

        cJSON_AddStringToObject(event, "job", job->name);
        cJSON_AddNumberToObject(event, "seconds",
                                (clock_monotonic_ms() - s->begin_ms) / 1e3);
        event_send(s, event);
    } else if (!starting && job->has_news && !s->judged) {
        cJSON *event = event_create(s, "progress");

        cJSON_AddNumberToObject(event, "rung",
                                s->spec->method.places
                                    ? s->halving.jobs[i].rung
                                    : s->halving.rung);
        add_state(event, job);
        event_send(s, event);
    }
    job->has_news = false;
    if (job->failed) {
        fail_job(s, i);
    } else if (job_has_reached(job)) {
        halving_reached(&s->halving, i, job->loss);
        if (s->spec->method.places) {
            continue_trial(s, i);
        }
    }
}

static void
search_step(struct search *s)
{
    for (int i = 0; i < s->n_jobs; i++) {
        if (has_processes(s, i)) {
            step_job(s, i);
        }
    }
    if (s->spec->method.places && !s->signal) {
        begin_trials(s);
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
                team_kill(s->jobs[i].team, grace_ms);
            }
        }
    }
}

static bool
all_gone(const struct search *s)
{
    bool waiting =
        !s->signal && halving_count(&s->halving, HALVING_WAITING, -1);

    for (int i = 0; i < s->n_jobs && !waiting; i++) {
        waiting = has_processes(s, i);
    }
    return !waiting;
}

static void
search_loop(struct search *s)
{
    do {
        struct pollfd *fd = s->fds;

        *fd++ = (struct pollfd) { .fd = s->signal_fd, .events = POLLIN };
        for (int i = 0; i < s->n_jobs; i++) {
            if (has_processes(s, i)) {
                team_poll_fds(s->jobs[i].team, fd);
                fd += 2 * s->jobs[i].n;
            }
        }
        poll(s->fds, fd - s->fds, WAKE_MS);
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
    int n_fds = 1;

    memset(s, 0, sizeof *s);
    s->config = config;
    s->spec = config->spec;
    s->n_jobs = s->spec->n_trials;
    s->jobs = allocate(s->n_jobs, sizeof *s->jobs);
    s->ended = allocate(s->n_jobs, sizeof *s->ended);
    s->names = allocate(s->n_jobs, sizeof *s->names);
    s->ranking = allocate(s->n_jobs, sizeof *s->ranking);
    s->best = -1;
    halving_init(&s->halving, s->spec->rungs, s->spec->n_rungs,
                 &s->spec->method, s->n_jobs);
    for (int i = 0; i < s->n_jobs; i++) {
        job_init(&s->jobs[i], config, i);
        n_fds += 2 * s->jobs[i].n;
    }
    s->fds = allocate(n_fds, sizeof *s->fds);
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

    const struct job *best = s->best < 0 ? NULL : &s->jobs[s->best];

    cJSON_AddItemToObject(event, "best",
                          best ? cJSON_CreateString(best->name)
                               : cJSON_CreateNull());
    cJSON_AddNumberToObject(event, "seconds", (end_ms - s->begin_ms) / 1e3);
    if (best) {
        cJSON_AddNumberToObject(event, "loss", best->loss);
        add_hyperparameters(s, event, best);
        cJSON_AddItemToObject(event, "checkpoint",
                              best->checkpoint
                                  ? cJSON_CreateString(best->checkpoint)
                                  : cJSON_CreateNull());
    }
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
    *result = (struct search_result){ .best = s.best,
                                      .signal = s.signal,
                                      .n_stages = s.halving.rung };
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

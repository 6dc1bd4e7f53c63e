/* SPDX-License-Identifier: Apache-2.0 */

#include "trainer/search/job.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "trainer/search/hosts.h"
#include "trainer/search/search.h"

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

void
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

void
job_uninit(struct job *job)
{
    team_destroy(job->team);
    words_uninit(&job->of_servers);
    words_uninit(&job->of_workers);
    free(job->hosts);
    free(job->error);
}

void
job_run_until(struct job *job, int64_t iterations)
{
    job->target = iterations;
    team_until(job->team, iterations);
}

bool
job_has_reached(const struct job *job)
{
    return team_state(job->team) == TEAM_RUNNING
           && team_has_reached(job->team, job->target);
}

void
job_run(struct job *job)
{
    bool ending = team_state(job->team) >= TEAM_ENDING;
    char *error = team_run(job->team, 0);

    if (error && !ending) {
        job->failed = true;
        job->error = error;
    } else {
        free(error); /* A consequence of being told to end. */
    }
}

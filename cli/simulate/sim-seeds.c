/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/simulate/sim-seeds.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "cli/simulate/sim-setting.h"
#include "policies/policy.h"
#include "reporting/placements.h"
#include "sim/run/by-policy.h"

/* The outcome of one seed. */
struct outcome {
    char *error;     /* NULL if it was simulated. */
    char *csv;       /* Lines of its stages, or NULL. */
    size_t csv_size; /* Bytes. */
};

struct seeds_run {
    const struct sim_seeds *args;
    struct outcome *outcomes; /* One for each seed. */
    double begin;             /* clock_monotonic_s(). */
    pthread_mutex_t mutex;    /* Protects the members below. */
    size_t n_begun, n_ended;  /* Seeds. */
    bool failed;
    struct placements *results;
};

static uint64_t
seed_at(const struct seeds_run *sr, size_t i)
{
    return sr->args->setting->seeds.first + i;
}

static size_t
n_seeds(const struct seeds_run *sr)
{
    return sr->args->setting->seeds.n;
}

/* Names are those of json_name(), or numbered, so none has a comma. */
static void
put_stages(uint64_t seed, const struct report_policy *rp, FILE *stream)
{
    for (size_t i = 0; i < rp->n_stages; i++) {
        const struct report_stage *s = &rp->stages[i];

        fprintf(stream, "%" PRIu64 ",%s,%s,%d,%.6f,%.6f,%.6f\n", seed,
                rp->name, s->cojob, s->rung, s->start, s->end,
                s->end - s->start);
    }
}

/* Simulates seed 'i' under policy 'k'. */
static void
run_policy(struct seeds_run *sr, size_t i, size_t k,
           const struct workload_input *input, FILE *csv)
{
    const struct policy *policy = sr->args->policies[k];
    struct sim_options options =
        sim_setting_options(sr->args->setting, input, policy);
    struct report *report = report_create("", "sim");
    struct report_policy *rp = report_add_policy(report, policy->name);
    struct sim_result result;

    simulate_by_policy(input->workload, policy, &options, &result);
    sim_setting_report(input->workload, &result, rp);
    report_finish(report);
    pthread_mutex_lock(&sr->mutex);
    placements_set(sr->results, i, k, rp);
    pthread_mutex_unlock(&sr->mutex);
    if (csv) {
        put_stages(seed_at(sr, i), rp, csv);
    }
    report_destroy(report);
    sim_result_uninit(&result);
}

/* Simulates seed 'i' under all policies. */
static void
run_seed(struct seeds_run *sr, size_t i)
{
    struct outcome *o = &sr->outcomes[i];
    uint64_t seed = seed_at(sr, i);
    struct workload_input input;
    char *error = sim_setting_open(sr->args->setting, &seed, &input);
    FILE *csv = NULL;

    if (!error && sr->args->csv) {
        csv = must(open_memstream(&o->csv, &o->csv_size));
    }
    for (size_t k = 0; !error && k < sr->args->n_policies; k++) {
        run_policy(sr, i, k, &input, csv);
    }
    if (csv) {
        fclose(csv);
    }
    workload_input_uninit(&input);
    if (error) {
        o->error = message("with seed %" PRIu64 ": %s", seed, error);
        free(error);
    }
}

/* Ends seed 'i' in the books.  The caller holds the mutex. */
static void
count_seed(struct seeds_run *sr, size_t i)
{
    sr->failed |= sr->outcomes[i].error != NULL;
    sr->n_ended++;
    if (sr->args->progress) {
        sim_show_progress(sr->args->setting->what, "seed", sr->n_ended,
                          n_seeds(sr), clock_monotonic_s() - sr->begin);
    }
}

/* Simulates one seed after the other until none is left. */
static void *
work(void *sr_)
{
    struct seeds_run *sr = sr_;

    pthread_mutex_lock(&sr->mutex);
    while (sr->n_begun < n_seeds(sr) && !sr->failed) {
        size_t i = sr->n_begun++;

        pthread_mutex_unlock(&sr->mutex);
        run_seed(sr, i);
        pthread_mutex_lock(&sr->mutex);
        count_seed(sr, i);
    }
    pthread_mutex_unlock(&sr->mutex);
    return NULL;
}

static size_t
n_processors(void)
{
    cpu_set_t set;

    return sched_getaffinity(0, sizeof set, &set) ? 1 : CPU_COUNT(&set);
}

/* Runs the threads; this one is the first.  If the system refuses
 * others, there are fewer. */
static void
run_threads(struct seeds_run *sr)
{
    size_t n = sr->args->n_threads ? sr->args->n_threads : n_processors();
    pthread_t *threads = allocate(n, sizeof *threads);
    size_t n_created = 0;

    while (n_created + 1 < n && n_created + 1 < n_seeds(sr)
           && !pthread_create(&threads[n_created], NULL, work, sr)) {
        n_created++;
    }
    work(sr);
    for (size_t i = 0; i < n_created; i++) {
        pthread_join(threads[i], NULL);
    }
    free(threads);
    if (sr->args->progress) {
        fputs("\r\033[K", stderr);
    }
}

static struct placements *
create_results(const struct sim_seeds *args)
{
    const char **names = allocate(args->n_policies, sizeof *names);
    struct placements *results;

    for (size_t k = 0; k < args->n_policies; k++) {
        names[k] = args->policies[k]->name;
    }
    results =
        placements_create(args->setting->what, "seed", names, args->n_policies,
                          args->setting->seeds.first, args->setting->seeds.n);
    free(names);
    return results;
}

/* Returns the error of the first seed that failed, or NULL. */
static char *
take_error(struct seeds_run *sr)
{
    char *error = NULL;

    for (size_t i = 0; !error && i < n_seeds(sr); i++) {
        error = sr->outcomes[i].error;
        sr->outcomes[i].error = NULL;
    }
    return error;
}

/* Writes the stages of all seeds and closes the file.  Returns NULL or a
 * message. */
static char *
write_csv(const struct seeds_run *sr, FILE *stream)
{
    bool failed;

    fputs("seed,policy,cojob,rung,begin,end,seconds\n", stream);
    for (size_t i = 0; i < n_seeds(sr); i++) {
        fwrite(sr->outcomes[i].csv, 1, sr->outcomes[i].csv_size, stream);
    }
    failed = ferror(stream);
    failed = fclose(stream) || failed;
    return failed ? message("%s: %s", sr->args->csv, strerror(errno)) : NULL;
}

char *
sim_seeds_run(const struct sim_seeds *args, struct placements **resultsp)
{
    struct seeds_run sr = { .args = args, .begin = clock_monotonic_s() };
    FILE *csv = args->csv ? fopen(args->csv, "we") : NULL;
    char *error;

    *resultsp = NULL;
    if (args->csv && !csv) {
        return message("%s: %s", args->csv, strerror(errno));
    }
    pthread_mutex_init(&sr.mutex, NULL);
    sr.outcomes = allocate(n_seeds(&sr), sizeof *sr.outcomes);
    sr.results = create_results(args);
    run_threads(&sr);
    error = take_error(&sr);
    if (csv && error) {
        fclose(csv);
    } else if (csv) {
        error = write_csv(&sr, csv);
    }
    for (size_t i = 0; i < n_seeds(&sr); i++) {
        free(sr.outcomes[i].error);
        free(sr.outcomes[i].csv);
    }
    free(sr.outcomes);
    pthread_mutex_destroy(&sr.mutex);
    if (error) {
        placements_destroy(sr.results);
        sr.results = NULL;
    }
    *resultsp = sr.results;
    return error;
}

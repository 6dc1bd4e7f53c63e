/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/simulate/sim-seeds.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/task-pool.h"
#include "cli/simulate/sim-setting.h"
#include "policies/policy.h"
#include "reporting/placements.h"
#include "sim/run/by-policy.h"
#include "sim/workload/workload.h"

/* Lines of the stages of one simulation. */
struct lines {
    char *text;
    size_t size; /* Bytes. */
};

struct seeds_run {
    const struct sim_seeds *args;
    struct lines *csv;     /* One for each seed and policy, or NULL. */
    pthread_mutex_t mutex; /* Protects what follows. */
    struct placements *results;
    size_t *n_done; /* Of each seed, the simulations that have ended. */
};

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

/* Simulates the seed with index 'i' under policy 'k', and keeps the result if
 * there is one. */
static void
run_policy(struct seeds_run *sr, size_t i, size_t k, uint64_t seed,
           const struct workload_input *input)
{
    const struct policy *policy = sr->args->policies[k];
    struct sim_options options =
        sim_setting_options(sr->args->setting, input, policy);
    struct report_policy *rp;
    struct report *report;
    struct sim_result result;

    simulate_by_policy(input->workload, policy, &options, &result);
    if (result.n_stages < input->workload->n_stages) {
        return;
    }
    report = report_create("", "sim");
    rp = report_add_policy(report, policy->name);
    sim_setting_report(input->workload, &result, rp);
    report_finish(report);
    pthread_mutex_lock(&sr->mutex);
    placements_set(sr->results, i, k, rp);
    sr->n_done[i]++;
    pthread_mutex_unlock(&sr->mutex);
    if (sr->csv) {
        struct lines *lines = &sr->csv[i * sr->args->n_policies + k];
        FILE *stream = must(open_memstream(&lines->text, &lines->size));

        put_stages(seed, rp, stream);
        fclose(stream);
    }
    report_destroy(report);
    sim_result_uninit(&result);
}

static char *
run_task(void *sr_, size_t task)
{
    struct seeds_run *sr = sr_;
    size_t i = task / sr->args->n_policies;
    uint64_t seed = sr->args->setting->seeds.first + i;
    struct workload_input input;
    char *cause = sim_setting_open(sr->args->setting, &seed, &input);
    char *error = NULL;

    if (cause) {
        error = message("with seed %" PRIu64 ": %s", seed, cause);
        free(cause);
    } else {
        run_policy(sr, i, task % sr->args->n_policies, seed, &input);
    }
    workload_input_uninit(&input);
    return error;
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

/* Writes the stages of those of the 'n' simulations that have ended.  Returns
 * NULL or a message. */
static char *
write_csv(const struct seeds_run *sr, size_t n)
{
    FILE *stream = fopen(sr->args->csv, "we");
    bool failed = !stream;

    if (stream) {
        fputs("seed,policy,cojob,rung,begin,end,seconds\n", stream);
        for (size_t i = 0; i < n; i++) {
            fputs(sr->csv[i].text ? sr->csv[i].text : "", stream);
        }
        failed = ferror(stream);
        failed = fclose(stream) || failed;
    }
    return failed ? message("%s: %s", sr->args->csv, strerror(errno)) : NULL;
}

char *
sim_seeds_run(const struct sim_seeds *args, struct placements **resultsp,
              size_t *n_done)
{
    size_t n_seeds = args->setting->seeds.n, n = n_seeds * args->n_policies;
    struct seeds_run sr = { .args = args };
    char *error;

    pthread_mutex_init(&sr.mutex, NULL);
    sr.csv = args->csv ? allocate(n, sizeof *sr.csv) : NULL;
    sr.n_done = allocate(n_seeds, sizeof *sr.n_done);
    sr.results = create_results(args);
    error = task_pool_run(&(struct task_pool){ .n = n,
                                               .n_threads = args->n_threads,
                                               .run = run_task,
                                               .aux = &sr,
                                               .label = args->setting->what,
                                               .noun = "simulation" });
    *n_done = 0;
    for (size_t i = 0; i < n_seeds; i++) {
        *n_done += sr.n_done[i] == args->n_policies;
    }
    if (!error && *n_done && args->csv) {
        error = write_csv(&sr, n);
    }
    for (size_t i = 0; sr.csv && i < n; i++) {
        free(sr.csv[i].text);
    }
    free(sr.csv);
    free(sr.n_done);
    pthread_mutex_destroy(&sr.mutex);
    if (error) {
        placements_destroy(sr.results);
        sr.results = NULL;
    }
    *resultsp = sr.results;
    return error;
}

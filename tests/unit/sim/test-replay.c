/* SPDX-License-Identifier: Apache-2.0 */

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "policies/policy.h"
#include "scenario/scenario.h"
#include "sim/run/by-policy.h"
#include "sim/run/simulate.h"
#include "sim/workload/workload-recording.h"
#include "sim/workload/workload-training.h"
#include "sim/workload/workload.h"
#include "tests/unit/unit-test.h"

#define N_SEEDS 6

/* Searches that a cluster has run under "stage" are simulated a second time
 * from what a controller records of them: how much sooner their stages
 * complete than without Stagecoach must be found again. */

static double
simulated_mean(const struct workload *w, const char *order,
               struct sim_result *r)
{
    struct policy *policy;
    char *text;

    assert_true(asprintf(&text, "{\"name\": \"p\", \"order\": \"%s\"}", order)
                > 0);
    assert_null(policy_from_string("p", text, &policy));
    simulate_by_policy(w, policy, NULL, r);
    policy_destroy(policy);
    free(text);
    return r->mean;
}

/* Seconds of 'port' of an iteration of 'job'. */
static double
seconds_of(const struct workload *w, const struct workload_job *job, int port)
{
    double bytes = 0;

    for (size_t i = 0; i < job->n_transfers; i++) {
        const struct workload_transfer *t = &job->transfers[i];

        bytes += port == 2 * t->src || port == 2 * t->dst + 1 ? t->bytes : 0;
    }
    return bytes / w->fabric->capacity[port];
}

/* Prints to 'f' what a controller records of 'job' in 'n' iterations without
 * delay. */
static void
record_job(FILE *f, const struct workload *w, const struct workload_job *job,
           int64_t n)
{
    const char *comma = "";

    fprintf(f, "{\"job\": \"%s\", \"bytes\": {", job->name);
    for (int port = 0; port < 2 * w->fabric->n_hosts; port++) {
        double seconds = n * seconds_of(w, job, port);

        if (seconds > 0) {
            fprintf(f, "%s\"h%d:%s\": %.0f", comma, port / 2,
                    port % 2 ? "rx" : "tx",
                    seconds * w->fabric->capacity[port]);
            comma = ", ";
        }
    }
    comma = "";
    fprintf(f, "}, \"servers\": [");
    for (int s = 0; job->n_phases > 1 && s < job->n_shards; s++) {
        for (size_t i = 0; i < job->n_transfers; i++) {
            const struct workload_transfer *t = &job->transfers[i];

            if (t->shard == s && !t->phase) { /* It is pushed. */
                fprintf(f, "%s\"h%d\"", comma, t->dst);
                comma = ", ";
                break;
            }
        }
    }
    fprintf(f, "], \"busy_s\": %.9f, \"waited_s\": 0}",
            n * workload_exchange_time(job, w->fabric));
}

/* Prints to 'f' what a controller records of 's'. */
static void
record_stage(FILE *f, const struct workload *w, const struct sim_stage *s)
{
    const struct workload_cojob *cojob = &w->cojobs[s->cojob];
    const struct workload_rung *rung = &cojob->rungs[s->rung];
    int64_t n = rung->iterations - (s->rung ? rung[-1].iterations : 0);
    double compute = 0;

    for (size_t j = 0; j < rung->n_jobs; j++) {
        compute = fmax(compute, cojob->jobs[j].compute);
    }
    fprintf(f,
            "{\"cojob\": \"%s\", \"rung\": %zu, \"began\": %.0f,"
            " \"ended\": %.0f, \"iterations\": %lld, \"compute_s\": %.9f,"
            " \"demand\": {",
            cojob->name, s->rung, 1e3 * s->begin + 1e6, 1e3 * s->end + 1e6,
            (long long) n, compute);
    for (int port = 0; port < 2 * w->fabric->n_hosts; port++) {
        double seconds = 0;

        for (size_t j = 0; j < rung->n_jobs; j++) {
            seconds += n * seconds_of(w, &cojob->jobs[j], port);
        }
        fprintf(f, "%s\"h%d:%s\": %.9f", port ? ", " : "", port / 2,
                port % 2 ? "rx" : "tx", seconds);
    }
    fprintf(f, "}, \"jobs\": [");
    for (size_t j = 0; j < rung->n_jobs; j++) {
        fprintf(f, "%s", j ? ", " : "");
        record_job(f, w, &cojob->jobs[j], n);
    }
    fprintf(f, "]}");
}

static struct workload *
replay(const struct workload *w)
{
    struct workload *replayed;
    struct sim_result r;
    char *text;
    size_t size;
    FILE *f = open_memstream(&text, &size);

    simulated_mean(w, "stage", &r);
    fprintf(f, "{\"stages\": [");
    for (size_t i = 0; i < r.n_stages; i++) {
        fprintf(f, "%s", i ? ", " : "");
        record_stage(f, w, &r.stages[i]);
    }
    fprintf(f, "]}");
    fclose(f);
    sim_result_uninit(&r);
    assert_no_error(workload_recording_from_string("r.json", text, &replayed));
    free(text);
    return replayed;
}

/* Adds the means under "stage" and "plain" to 'sums'. */
static void
add_means(const struct workload *w, double sums[2])
{
    struct sim_result r;

    sums[0] += simulated_mean(w, "stage", &r);
    sim_result_uninit(&r);
    sums[1] += simulated_mean(w, "plain", &r);
    sim_result_uninit(&r);
}

/* Adds those of the scenario in 'file' with 'seed', as it is and as recorded.
 */
static void
add_scenario(const char *file, int64_t seed, double sums[2],
             double replayed_sums[2])
{
    struct workload *w, *replayed;
    struct scenario *s;

    assert_null(scenario_from_file(file, &seed, &s));
    w = workload_training_create(s);
    replayed = replay(w);
    add_means(w, sums);
    add_means(replayed, replayed_sums);
    workload_destroy(w);
    workload_destroy(replayed);
    scenario_destroy(s);
}

/* Of one placement the two differ by up to 5 %: an order that is another one
 * for a moment has other consequences. */
UNIT_TEST(a_replay_finds_the_gain)
{
    static const char *const names[] = { "lab/scenarios/quickstart.json",
                                         "lab/scenarios/main.json" };

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        double sums[2] = { 0 }, replayed[2] = { 0 }, gain, found;

        for (int64_t seed = 1; seed <= N_SEEDS; seed++) {
            add_scenario(names[i], seed, sums, replayed);
        }
        gain = sums[0] / sums[1];
        found = replayed[0] / replayed[1];
        print_message("%s: %.3f, replayed %.3f\n", names[i], gain, found);
        assert_true(fabs(found / gain - 1) < 0.03);
    }
}

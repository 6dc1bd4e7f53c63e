/* SPDX-License-Identifier: Apache-2.0 */

/* predictors RECORDING [FIRST_SEED]: measures the prediction errors of the
 * predictors.
 *
 * predictors --of RECORDING...: prints the errors on these recordings only,
 * one JSON object; of short ones, without the first 4 iterations.
 *
 * Errors are root mean squares, as parts of the trace's mean speed, without
 * the first iterations.  Use the seeds from 1 to tune a predictor; the
 * published figures come from the seeds from 1001 and from the recording,
 * which must not be used for tuning. */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/bench/load-trace.h"
#include "trainer/balance/predictor.h"

#define TEST_SEED 1001
#define N_SEEDS 8
#define N_ITERATIONS 1500
#define N_SKIPPED 100           /* Initial iterations that are not measured. */
#define N_SKIPPED_SHORT 4       /* The same, for "--of". */
#define AFTER 10                /* Number of iterations that count as after
                                 * a step. */
#define STEP 0.08               /* Change of the CPU load that counts as a
                                 * step. */
#define MAX_CLASSES 16

/* Sums of squares of one predictor. */
struct errors {
    double all, after;
    size_t n, n_after;
};

static double
mean(const double *values, size_t n)
{
    double sum = 0;

    for (size_t i = 0; i < n; i++) {
        sum += values[i];
    }
    return sum / n;
}

static void
replay(const struct predictor_class *class, uint64_t seed,
       const struct load_trace *lt, size_t n_skipped, struct errors *errors)
{
    struct predictor *p = predictor_create(class, seed);
    double scale = mean(lt->speeds, lt->n);
    size_t last_step = 0;

    for (size_t i = 0; i < lt->n; i++) {
        double e = (predictor_predict(p) - lt->speeds[i]) / scale;
        predictor_update(p, lt->speeds[i], lt->cpus[i + 1],
                         lt->memories[i + 1]);
        if (i && fabs(lt->cpus[i] - lt->cpus[i - 1]) > STEP) {
            last_step = i;
        }
        if (i >= n_skipped) {
            errors->all += e * e;
            errors->n++;
            if (last_step && i < last_step + AFTER) {
                errors->after += e * e;
                errors->n_after++;
            }
        }
    }
    predictor_destroy(p);
}

static void
replay_kind(enum load_kind kind, uint64_t first_seed, struct errors *errors)
{
    for (int i = 0; i < N_SEEDS; i++) {
        struct load_trace lt;

        load_trace_generate(kind, first_seed + i, N_ITERATIONS, &lt);
        for (size_t j = 0; predictor_classes[j]; j++) {
            replay(predictor_classes[j], i, &lt, N_SKIPPED, &errors[j]);
        }
        load_trace_uninit(&lt);
    }
}

static void
print_values(const struct errors *errors)
{
    printf("{");
    for (size_t j = 0; predictor_classes[j]; j++) {
        printf("%s\"%s\": %.4f", j ? ", " : "", predictor_classes[j]->name,
               sqrt(errors[j].all / errors[j].n));
    }
    printf("}");
}

static void
print_rmse(const char *name, const struct errors *errors)
{
    printf("\"rmse_%s\": ", name);
    print_values(errors);
    printf(", ");
}

static void
print_after(const char *name, const struct errors *errors)
{
    printf("\"rmse_after_%s\": {", name);
    for (size_t j = 0; predictor_classes[j]; j++) {
        printf("%s\"%s\": %.4f", j ? ", " : "", predictor_classes[j]->name,
               sqrt(errors[j].after / errors[j].n_after));
    }
    printf("}, ");
}

/* Replays each of 'n' recordings with N_SEEDS seeds. */
static int
print_of(int n, char *files[])
{
    struct errors errors[MAX_CLASSES] = { 0 };

    for (int k = 0; k < n; k++) {
        struct load_trace lt;

        if (load_trace_read(files[k], &lt)) {
            fprintf(stderr,
                    "%s: cannot be read; expected lines \"SPEED CPU MEMORY\""
                    "\n",
                    files[k]);
            return 1;
        }
        for (size_t j = 0; predictor_classes[j]; j++) {
            for (int i = 0; i < N_SEEDS; i++) {
                replay(predictor_classes[j], i, &lt, N_SKIPPED_SHORT,
                       &errors[j]);
            }
        }
        load_trace_uninit(&lt);
    }
    print_values(errors);
    printf("\n");
    return 0;
}

int
main(int argc, char *argv[])
{
    uint64_t seed = argc > 2 ? atoi(argv[2]) : TEST_SEED;
    struct errors steps[MAX_CLASSES] = { 0 }, spikes[MAX_CLASSES] = { 0 };
    struct errors drift[MAX_CLASSES] = { 0 }, recorded[MAX_CLASSES] = { 0 };
    struct load_trace lt;

    if (argc > 2 && !strcmp(argv[1], "--of")) {
        return print_of(argc - 2, argv + 2);
    }
    replay_kind(LOAD_STEPS, seed, steps);
    replay_kind(LOAD_SPIKES, seed, spikes);
    replay_kind(LOAD_DRIFT, seed, drift);
    printf("{\"bench\": \"predictors\", \"figures\": {");
    print_rmse("steps", steps);
    print_after("steps", steps);
    print_rmse("spikes", spikes);
    print_rmse("drift", drift);
    if (argc > 1 && !load_trace_read(argv[1], &lt)) {
        for (size_t j = 0; predictor_classes[j]; j++) {
            for (int i = 0; i < N_SEEDS; i++) {
                replay(predictor_classes[j], i, &lt, N_SKIPPED, &recorded[j]);
            }
        }
        print_rmse("recorded", recorded);
        print_after("recorded", recorded);
        load_trace_uninit(&lt);
    }
    printf("\"seeds\": %d}, \"baseline\": {}}\n", N_SEEDS);
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */

#include "tests/bench/load-trace.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "trainer/balance/speed-profile.h"
#include "trainer/data/seeded.h"

#define SAMPLES_PER_S 1000.0
#define BATCH 50                /* 50 ms of an undisturbed worker. */
#define PAUSE_S 0.005           /* Time to exchange parameters between
                                 * iterations. */
#define N_STEPS 200
#define STEP_S 4.0              /* Mean time from one step to the next. */
#define MAX_LINE 256

/* Prints steps at random times to random loads; half of the loads also
 * allocate memory. */
static void
print_steps(FILE *stream, struct seeded *rs)
{
    double t = 0;

    fprintf(stream, ", \"steps\": [");
    for (int i = 0; i < N_STEPS; i++) {
        double factor = seeded_uniform(rs) < 0.3
                        ? 1 : 0.25 + 0.65 * seeded_uniform(rs);

        t += 0.2 - STEP_S * log(1 - seeded_uniform(rs));
        fprintf(stream, "%s{\"at_s\": %.4f, \"factor\": %.3f, "
                "\"memory\": %.3f}", i ? ", " : "", t, factor,
                seeded_below(rs, 2) ? (1 - factor) / 2 : 0.1);
    }
    fprintf(stream, "]");
}

/* Returns an emulated worker of at most 'samples_per_s' with load of 'kind'.
 * Only the times of load changes depend on the seed. */
static struct speed_profile *
load_profile(enum load_kind kind, double samples_per_s, uint64_t seed)
{
    struct speed_profile_set *set;
    struct speed_profile *profile;
    struct seeded rs;
    char *text, *error;
    size_t size;
    FILE *stream = open_memstream(&text, &size);

    seeded_init(&rs, seed, 1000 + kind);
    fprintf(stream, "{\"name\": \"load\", \"workers\": [{"
            "\"samples_per_s\": %g, \"jitter\": 0.03", samples_per_s);
    if (kind == LOAD_STEPS) {
        print_steps(stream, &rs);
    }
    if (kind == LOAD_SPIKES) {
        fprintf(stream, ", \"spikes\": {\"probability\": 0.03, "
                "\"factor\": 0.4}");
    }
    fprintf(stream, ", \"drift\": {\"period_s\": %.3f, \"depth\": %.2f}}]}",
            20 + 20 * seeded_uniform(&rs), kind == LOAD_DRIFT ? 0.5 : 0.2);
    fclose(stream);
    error = speed_profile_set_from_string("load", text, &set);
    if (error) {
        fprintf(stderr, "%s\n", error);
        exit(1);
    }
    profile = speed_profile_create(set, 0, seed);
    speed_profile_set_destroy(set);
    free(text);
    return profile;
}

static void
allocate_trace(struct load_trace *lt, size_t n)
{
    lt->n = n;
    lt->speeds = allocate(n + 1, sizeof *lt->speeds);
    lt->cpus = allocate(n + 1, sizeof *lt->cpus);
    lt->memories = allocate(n + 1, sizeof *lt->memories);
}

void
load_trace_generate(enum load_kind kind, uint64_t seed, size_t n,
                    struct load_trace *lt)
{
    struct speed_profile *profile = load_profile(kind, SAMPLES_PER_S, seed);
    double t = 0;

    allocate_trace(lt, n);
    speed_profile_use(profile, t, t, &lt->cpus[0], &lt->memories[0]);
    for (size_t i = 0; i < n; i++) {
        double seconds = speed_profile_seconds(profile, BATCH, t);

        lt->speeds[i] = BATCH / seconds;
        t += seconds + PAUSE_S;
        speed_profile_use(profile, t - seconds - PAUSE_S, t, &lt->cpus[i + 1],
                          &lt->memories[i + 1]);
    }
    speed_profile_destroy(profile);
}

int
load_trace_read(const char *file, struct load_trace *lt)
{
    FILE *stream = fopen(file, "r");
    char line[MAX_LINE];
    size_t n = 0;

    if (!stream) {
        return errno;
    }
    while (fgets(line, sizeof line, stream)) {
        n += line[0] != '#';
    }
    rewind(stream);
    allocate_trace(lt, n);
    n = 0;
    while (fgets(line, sizeof line, stream)) {
        if (line[0] != '#'
            && sscanf(line, "%lf %lf %lf", &lt->speeds[n], &lt->cpus[n + 1],
                      &lt->memories[n + 1]) == 3) {
            lt->cpus[n + 1] /= 1000;
            lt->memories[n + 1] /= 1000;
            n++;
        }
    }
    fclose(stream);
    lt->n = n;
    lt->cpus[0] = lt->cpus[1];
    lt->memories[0] = lt->memories[1];
    return n ? 0 : EINVAL;
}

void
load_trace_uninit(struct load_trace *lt)
{
    free(lt->speeds);
    free(lt->cpus);
    free(lt->memories);
}

/* SPDX-License-Identifier: Apache-2.0 */

#ifndef WORKLOAD_OPEN_H
#define WORKLOAD_OPEN_H 1

/* Opens workloads, and fabrics, for "stagecoach sim" and "stagecoach
 * policy".
 *
 *    char *error = workload_open("trace.txt", NULL, &input);
 *
 * "generate:SEED,NAME=VALUE..." generates random searches
 * (sim/workload/workload-generate.h).  A JSON file is a scenario of the
 * simulator if it has "cojobs", a recording of a controller if it has
 * "stages", otherwise a scenario of the lab.  "FILE,NAME=VALUE..." and files
 * in its format are traces of jobs (sim/workload/job-trace.h,
 * workload-jobs.h). Other files are traces of coflow-benchmark.
 *
 * A random workload is simulated with each seed of a range:
 *
 *    struct seed_range seeds;
 *
 *    error = seed_range_parse("1-100", &seeds);
 *    for (size_t i = 0; !error && i < seeds.n; i++) {
 *        error = seed_range_open("generate:1", seeds.first + i, &input);
 *        ...
 *        workload_input_uninit(&input);
 *    } */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct workload;

struct workload_input {
    struct workload *workload;
    bool seeded;                /* True if a seed changes it. */
    bool levels;                /* True for a lab scenario, which is served in
                                 * levels. */
    uint64_t seed;              /* Of a lab scenario. */
    size_t n_policies;
    char **policies;            /* Policies of the workload, by name or
                                 * file. */
};

struct seed_range {
    uint64_t first;
    size_t n; /* Number of seeds; 0 without a range. */
};

/* Opens 'what'.  '*seed', unless null, replaces the seed of random searches,
 * or of the random placements of a lab scenario; other workloads ignore it.
 * Returns NULL or a malloc()'d message, in which case '*input' is empty.  The
 * caller must call workload_input_uninit(). */
char *workload_open(const char *what, const uint64_t *seed,
                    struct workload_input *);
void workload_input_uninit(struct workload_input *);

/* Parses "FIRST-LAST" into the struct seed_range at 'range', which is the
 * 'parse' of an option's row.  Returns NULL or a malloc()'d message. */
char *seed_range_parse(const char *text, void *range);

/* Like workload_open(), but an error if 'seed' does not change 'what'. */
char *seed_range_open(const char *what, uint64_t seed,
                      struct workload_input *);

/* Replaces the fabric of 'w' by 'what', with the same hosts and link rates:
 * "switch", "leaf-spine,leaf=16,over=4" (leaves of 16 hosts, 4 times
 * oversubscribed) or "FILE.csv,over=4" (a topology, sim/fabric/topology.c).
 * Returns NULL, or a malloc()'d message and leaves 'w' unchanged. */
char *fabric_open(const char *what, struct workload *w);

#endif /* cli/simulate/workload-open.h */

/* SPDX-License-Identifier: Apache-2.0 */

#ifndef WORKLOAD_OPEN_H
#define WORKLOAD_OPEN_H 1

/* Opens workloads, and fabrics, for "stagecoach sim" and "stagecoach
 * policy".
 *
 *    char *error = workload_open("trace.txt", NULL, &network, &input);
 *
 * "generate:SEED,NAME=VALUE..." generates random searches
 * (sim/workload/workload-generate.h).  A JSON file is a scenario of the
 * simulator if it has "cojobs", a recording of a controller if it has
 * "stages", otherwise a scenario of the lab.  "FILE,NAME=VALUE..." and files
 * in its format are traces of jobs (sim/workload/job-trace.h,
 * workload-jobs.h).  A file that begins with a digit is a trace of
 * coflow-benchmark.  Traces may be gzipped.
 *
 * A random workload is simulated with each seed of a range:
 *
 *    struct seed_range seeds;
 *
 *    error = seed_range_parse("1-100", &seeds);
 *    for (size_t i = 0; !error && i < seeds.n; i++) {
 *        error = seed_range_open("generate:1", seeds.first + i, &network,
 *                                &input);
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

/* What replaces the network of a workload. */
struct workload_network {
    const char *fabric; /* "switch", "leaf-spine,leaf=16,over=4" (leaves of 16
                         * hosts, 4 times oversubscribed) or "FILE.csv,over=4"
                         * (a topology, sim/fabric/topology.c); NULL: as it
                         * is. */
    int64_t rate_bps;   /* Bits per second of the links of hosts, others in
                         * proportion; 0: as they are. */
};

/* Options that store a network in MEMBER of TYPE. */
#define WORKLOAD_NETWORK_ROWS(TYPE, MEMBER, MODES)                           \
    { "fabric",                                                              \
      OPTION_TEXT,                                                           \
      OPTION_AT(TYPE, MEMBER.fabric),                                        \
      .value = "F",                                                          \
      .modes = MODES,                                                        \
      .help = "\"switch\"; \"leaf-spine,leaf=N,over=X\": N hosts per leaf, " \
              "uplinks oversubscribed X times; or \"FILE.csv,over=X\", a "   \
              "topology" },                                                  \
    {                                                                        \
        "rate", OPTION_CUSTOM, OPTION_AT(TYPE, MEMBER.rate_bps),             \
            .value = "R", .modes = MODES, .parse = rate_option,              \
            .help = "rate of the links of hosts, such as 100Gbit"            \
    }

/* Opens 'what'.  '*seed', unless null, replaces the seed of random searches,
 * or of the random placements of a lab scenario; other workloads ignore it.
 * Returns NULL or a malloc()'d message, in which case '*input' is empty.  The
 * caller must call workload_input_uninit(). */
char *workload_open(const char *what, const uint64_t *seed,
                    const struct workload_network *, struct workload_input *);
void workload_input_uninit(struct workload_input *);

/* Parses "FIRST-LAST" into the struct seed_range at 'range', which is the
 * 'parse' of an option's row.  Returns NULL or a malloc()'d message. */
char *seed_range_parse(const char *text, void *range);

/* Like workload_open(), but an error if 'seed' does not change 'what'. */
char *seed_range_open(const char *what, uint64_t seed,
                      const struct workload_network *,
                      struct workload_input *);

/* Replaces the network of 'w', which keeps its hosts.  Returns NULL or a
 * malloc()'d message. */
char *workload_set_network(struct workload *w,
                           const struct workload_network *);

#endif /* cli/simulate/workload-open.h */

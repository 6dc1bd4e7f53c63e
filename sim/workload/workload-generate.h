/* SPDX-License-Identifier: Apache-2.0 */

#ifndef WORKLOAD_GENERATE_H
#define WORKLOAD_GENERATE_H 1

/* Generates random searches.
 *
 * An order must be tested on many clusters that were not chosen for it.  A
 * seed generates a cluster: the number of hosts and searches, the sizes of the
 * models, the compute times, the communication patterns and the arrivals.
 * Each search is a successive halving: its jobs have different sizes and
 * learning curves, and the better half continues.  Links are contended: the
 * arrivals follow from the load, at which stages under fair sharing take two
 * to four times their isolated time.
 *
 *    struct generate_options options;
 *    char *error = generate_options_parse("7,hosts=16", &options);
 *
 *    if (!error) {
 *        struct workload *w = workload_generate(&options);
 *
 *        ...
 *        workload_destroy(w);
 *    }
 *
 * Options that are not given are drawn too, from the ranges in brackets:
 *
 *    hosts=N       2 to 4096 [8 to 64]
 *    cojobs=N      searches, 1 to 10000 [4 to 32]
 *    jobs=N        of a search at first, 1 to 256 [each its own, 8 to 24]
 *    rungs=N       1 to 8 [3]
 *    iterations=N  of the first rung, 1 to 100000 [each its own, 4 to 12]
 *    placement=P   "ps", "ring" or "mixed" [mixed]
 *    compute=X     share of an iteration alone in which a job computes, 0 to
 *                  0.95 [0 to 0.8]
 *    load=X        of the average port, 0.01 to 10 [2]
 *
 * The workload is the caller's. */

#include <stdint.h>

struct workload;

enum generate_placement { GENERATE_PS, GENERATE_RING, GENERATE_MIXED };

struct generate_options {
    uint64_t seed;              /* Below 2^53. */
    int n_hosts;
    int n_cojobs;
    int n_jobs;                 /* 0: each search draws its own. */
    int n_rungs;
    int iterations;             /* 0: each search draws its own. */
    int placement;              /* enum generate_placement. */
    double compute;             /* Share of an iteration, 0 to 0.95. */
    double load;                /* Of the average port, > 0. */
};

/* Draws everything but the seed. */
void generate_options_draw(struct generate_options *, uint64_t seed);

/* Reads "SEED,NAME=VALUE...".  Returns NULL or a malloc()'d message,
 * "generate: what was found, what is allowed". */
char *generate_options_parse(const char *text, struct generate_options *);

struct workload *workload_generate(const struct generate_options *);

#endif /* sim/workload/workload-generate.h */

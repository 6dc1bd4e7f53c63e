/* SPDX-License-Identifier: Apache-2.0 */

#ifndef RANDOM_PLACEMENTS_H
#define RANDOM_PLACEMENTS_H 1

/* Hosts of the jobs of a scenario, drawn at random from a seed.
 *
 * A result at hosts that somebody chose may hold at those hosts only.  With
 *
 *    "random_placements": {"seed": 1, "workers": 2, "servers": 2}
 *
 * in a scenario, each trial of a search that has no "placements" runs on
 * hosts that are drawn from the seed, the index of the search and the number
 * of the trial, all of them different.  Another seed is another experiment of
 * the same size, and a seed gives the same hosts on every machine.
 *
 * The text of the scenario is expanded before it is read, so that the lab, the
 * simulator and "search run" see ordinary placements.
 *
 * Plain data of the caller. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RANDOM_PLACEMENTS_MAX_SEED INT64_C(1000000000000)

struct cJSON;
struct json_at;

struct random_placements {
    int64_t seed;
    int n_workers, n_servers;   /* Of each job. */
};

/* Reads the object 'at' of a scenario with 'n_hosts' hosts. */
void random_placements_read(const struct json_at *at, int n_hosts,
                            struct random_placements *);

/* Stores the numbers of the hosts of a trial in 'hosts': first those of the
 * workers, then those of the servers. */
void random_placements_draw(const struct random_placements *, int n_hosts,
                            int search, int trial, int hosts[]);

/* Adds "placements" to 'search', element 'index' of the searches.  Returns
 * false if it has them, or is invalid. */
bool random_placements_add(struct cJSON *search,
                           const struct random_placements *, int n_hosts,
                           int index);

/* Returns 'text', a scenario, with "placements" in each search that had none,
 * stores the number of these searches in '*n_placed', and with '*seed' as the
 * seed unless 'seed' is null.  Returns a copy of the text if it has no valid
 * member "random_placements"; its reader reports the error.  The caller
 * frees. */
char *random_placements_expand(const char *text, const int64_t *seed,
                               size_t *n_placed);

#endif /* scenario/random-placements.h */

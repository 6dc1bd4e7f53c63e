/* SPDX-License-Identifier: Apache-2.0 */

#ifndef REPORTING_OBSERVED_H
#define REPORTING_OBSERVED_H 1

/* What was observed of a cluster, on one page.
 *
 * The first question about a network is what it does without an order: how
 * much of each card's bytes is of known jobs, which jobs share links, how long
 * each waited for the network, and what an order would have saved.  The page
 * is computed from the history of a controller.
 *
 *    error = observed_create("history.db", stages, &o);
 *    observed_add_card(o, "h0:tx", 9e9, 10e9);
 *    for (size_t i = 0; i < o->n_stages; i++) {
 *        observed_simulated(o, i, plain_s, ordered_s);
 *    }
 *    o->since = since;
 *    o->until = until;
 *    o->policy = "stage";
 *    observed_put_page(o, stdout);
 *    observed_destroy(o);
 *
 * Waiting is what agents measure (agent/progress/iterations.h), at the host of
 * the job that moved most.  GPU-hours are the hours of a stage times the GPUs
 * of its jobs: as many as its launcher knows, else one for each announced
 * process that computes, else one for each host.  A stage that would take
 * ORDERED instead of PLAIN seconds in the simulator saves 1 - ORDERED / PLAIN
 * of the GPU-hours that it took.  Not thread-safe. */

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct cJSON;

struct observed {
    int64_t since, until; /* Epoch ms. */
    int64_t cut;          /* Epoch ms up to which rows were deleted because the
                           * recording had reached its limit, 0 if none. */
    const char *policy;   /* Name of the simulated order. */
    struct observed_stage *stages;
    size_t n_stages;
    struct observed_card *cards;
    size_t n_cards;
    struct cJSON *recording; /* Owns what stages point to. */
};

/* Reads 'text', {"stages": [...]} of a controller's history, with messages
 * that begin with 'name'.  Returns NULL and stores the object, or a malloc()'d
 * message and NULL.  Stages that have not ended are left out. */
char *observed_create(const char *name, const char *text, struct observed **);
void observed_destroy(struct observed *);

/* Adds a direction of a host's card: its bytes of jobs, and of all; 0 for
 * 'all' if the card did not count. */
void observed_add_card(struct observed *, const char *port, double of_jobs,
                       double all);

/* Stages are in the order of workload_recording_from_string(): by cojob, then
 * by begin, then by rung. */
void observed_simulated(struct observed *, size_t stage, double plain_s,
                        double ordered_s);

void observed_put_page(const struct observed *, FILE *);
struct cJSON *observed_to_json(const struct observed *);

#endif /* reporting/observed.h */

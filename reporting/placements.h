/* SPDX-License-Identifier: Apache-2.0 */

#ifndef REPORT_PLACEMENTS_H
#define REPORT_PLACEMENTS_H 1

/* Results of the same policies at several random placements of the jobs, or
 * with several random searches.
 *
 * How much a policy gains depends on the hosts of the jobs.  A gain is
 * therefore measured at several placements: each policy runs at each of them,
 * its figures are divided by those of the baseline at the same placement, and
 * the mean of these ratios has a confidence interval.
 *
 *    struct placements *ps = placements_create("quickstart", "placement",
 *                                              names, 2, 1, 10);
 *
 *    error = placements_read(ps, i, k, file, inputs, &done);
 *    if (!error && !done) {
 *        ...run policy k at placement i...
 *        placements_set(ps, i, k, policy);
 *    }
 *    placements_put_one(ps, i, stdout);
 *    ...
 *    placements_put_summary(ps, stdout);
 *    error = placements_write(ps, "report");
 *    placements_destroy(ps);
 *
 * The object copies its arguments.  Not thread-safe. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "reporting/interval.h"
#include "reporting/report.h"

struct placements;

enum placements_figure {
    PLACEMENTS_MEAN, /* Mean SCT. */
    PLACEMENTS_P95,  /* 95th percentile of the SCT. */
    PLACEMENTS_MAKESPAN,
    PLACEMENTS_EXCHANGE, /* Seconds that workers waited in exchanges,
                          * NAN without a search and in simulations.  Not
                          * shown if no run has it. */
    PLACEMENTS_N_FIGURES
};

/* The 'n' placements have the seeds 'first_seed', 'first_seed' + 1...  'noun'
 * is what tables call one of them.  The baseline is the first policy with the
 * highest report_baseline_rank(). */
struct placements *placements_create(const char *title, const char *noun,
                                     const char *const policies[],
                                     size_t n_policies, int64_t first_seed,
                                     size_t n);
void placements_destroy(struct placements *);

/* Stores the result of a run, after report_finish(), unless it failed. */
void placements_set(struct placements *, size_t placement, size_t policy,
                    const struct report_policy *);

/* Reads the result from a report.json of this policy alone.  Stores in
 * '*donep' whether it was there: a file that is missing, that is not complete,
 * or of a run that failed has none.  Returns NULL, or a malloc()'d message if
 * the member "inputs" is not 'inputs', so that the result is of something
 * else. */
char *placements_read(struct placements *, size_t placement, size_t policy,
                      const char *file, const char *inputs, bool *donep);

/* Returns a figure of 'policy', in seconds, over all placements that have it,
 * and the same relative to the baseline. */
struct interval placements_seconds(const struct placements *, size_t policy,
                                   enum placements_figure);
struct interval placements_ratio(const struct placements *, size_t policy,
                                 enum placements_figure);

/* Returns how the times of searches compare with those under the baseline at
 * the same placement. */
struct interval placements_searches(const struct placements *, size_t policy,
                                    enum report_search_ratio);

/* Print the table of one placement, and of all; these as JSON, and as a page
 * with a picture, which needs no JavaScript. */
void placements_put_one(const struct placements *, size_t placement, FILE *);
void placements_put_summary(const struct placements *, FILE *);
void placements_put_json(const struct placements *, FILE *);
void placements_put_html(const struct placements *, FILE *);

/* Write the page, or placements.json and placements.html in 'dir'.  Return
 * NULL or a malloc()'d message. */
char *placements_write_html(const struct placements *, const char *file);
char *placements_write(const struct placements *, const char *dir);

#endif /* reporting/placements.h */

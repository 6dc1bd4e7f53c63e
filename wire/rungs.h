/* SPDX-License-Identifier: Apache-2.0 */

#ifndef RUNGS_H
#define RUNGS_H 1

/* Rungs of a search: where jobs are compared, and how many of them continue.
 *
 *    "rungs": [{"iterations": 20, "keep": 3}, {"iterations": 60}]
 *
 * Search files, scenarios of the simulator and announcements of stages have
 * this member.  "keep" of the last rung is 1 by default.  Files also have how
 * a search judges, such as "method": "asynchronous" with "places", "eta" and
 * "brackets".
 *
 *    rungs = search_method_read(top, n_jobs, &method, &n);
 *    ...
 *    free(rungs);
 *
 * No state. */

#include <stddef.h>
#include <stdint.h>

struct json_at;

#define RUNG_MAX_ITERATIONS 1000000000

struct search_rung {
    int64_t iterations; /* Since the beginning of a job; ascending. */
    int keep;           /* Jobs that continue: at least 1, and no more
                         * than are in it. */
};

/* How a search judges its jobs, which stagecoach-scenario(5) describes. */
struct search_method {
    int places;     /* Asynchronous: trials that run at the same time; 0:
                     * synchronous. */
    double eta;     /* A rung keeps the best 1 / eta, at least 2; 0: "keep". */
    int n_brackets; /* Job i is judged from rung i modulo this on, among the
                     * jobs of its bracket.  1 without 'eta'. */
};

/* Returns how many of 'n' jobs a rung keeps. */
static inline size_t
search_rung_keeps(size_t n, double eta)
{
    return n >= eta ? n / eta : n > 0;
}

/* Reads the rungs of a search of 'n_jobs' jobs, and stores their number in
 * '*n'.  Those of an asynchronous search, 'n_jobs' 0, have no "keep".  The
 * caller frees. */
struct search_rung *search_rungs_read(const struct json_at *, int n_jobs,
                                      size_t *n);

/* Reads how the search judges as well.  With 'eta', "keep" of a synchronous
 * search is what all brackets keep. */
struct search_rung *search_method_read(const struct json_at *, int n_jobs,
                                       struct search_method *, size_t *n);

#endif /* wire/rungs.h */

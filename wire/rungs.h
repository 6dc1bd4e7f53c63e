/* SPDX-License-Identifier: Apache-2.0 */

#ifndef RUNGS_H
#define RUNGS_H 1

/* Rungs of a search: where jobs are compared, and how many of them continue.
 *
 *    "rungs": [{"iterations": 20, "keep": 3}, {"iterations": 60}]
 *
 * Search files, scenarios of the simulator and announcements of stages have
 * this member.  "keep" of the last rung is 1 by default.
 *
 *    rungs = search_rungs_read(top, n_jobs, &n);
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

/* Reads the rungs of a search of 'n_jobs' jobs, and stores their number in
 * '*n'.  Those of an asynchronous search, 'n_jobs' 0, have no "keep".  The
 * caller frees. */
struct search_rung *search_rungs_read(const struct json_at *, int n_jobs,
                                      size_t *n);

#endif /* wire/rungs.h */

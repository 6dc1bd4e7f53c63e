/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "controller/model/progress-bound.h"

#include "util.h"

/* Part of the credit of a job with traffic that it regains in a second. */
#define SEEN_SHARE 0.1

/* Iterations after a gap, by those at the job's pace. */
#define GAP_FACTOR 2

/* 'began' is the time_msec() at which the job began. */
void
progress_bound_init(struct progress_bound *b, int64_t began)
{
    *b =
        (struct progress_bound){ .iteration = -1, .refused = -1, .at = began };
}

/* Returns the iterations that the bytes can have carried. */
static double
carried(const struct progress_bound_facts *facts)
{
    return (facts->per_iteration > 0
                ? PROGRESS_BOUND_FACTOR * facts->bytes / facts->per_iteration
                : facts->bytes / PROGRESS_BOUND_BYTES);
}

/* Lets the credit grow until 'now'.  The iteration of a first report is not
 * limited, because the whole time since the job began counts. */
static void
refill(struct progress_bound *b, const struct progress_bound_facts *facts,
       int64_t now)
{
    double most = facts->seen ? PROGRESS_BOUND_SEEN : PROGRESS_BOUND_UNSEEN;
    double credit =
        MAX(now - b->at, 0) / 1000.0 * most * (facts->seen ? SEEN_SHARE : 1);

    b->credit += b->iteration < 0 ? credit
                 : MAX(MIN(credit, most - b->credit), 0);
    b->at = now;
}

void
progress_bound_gap(struct progress_bound *b, double period, int64_t now)
{
    if (period > 0 && b->iteration >= 0) {
        b->credit += GAP_FACTOR * MAX(now - b->at, 0) / 1000.0 / period;
    }
}

static bool
refuse(struct progress_bound *b, int64_t iteration, int64_t now)
{
    b->n_refused += iteration != b->refused;    /* Hosts repeat reports. */
    b->refused = iteration;
    b->refused_at = now;
    return false;
}

/* Returns true if a report of 'iteration' counts, at time_msec() 'now'. */
bool
progress_bound_admits(struct progress_bound *b, int64_t iteration,
                      const struct progress_bound_facts *facts, int64_t now)
{
    bool first = b->iteration < 0;
    double more, steps;

    refill(b, facts, now);
    if (iteration <= b->iteration) {
        return true;
    }
    steps = iteration - (first ? MAX(facts->target, 0) : b->iteration);
    more = carried(facts);
    if ((!first || facts->target >= 0)
        && steps > more + b->credit + (first ? PROGRESS_BOUND_UNSEEN : 0)) {
        return refuse(b, iteration, now);
    }
    b->credit =
        (first ? facts->seen ? PROGRESS_BOUND_SEEN : PROGRESS_BOUND_UNSEEN
               : b->credit - MAX(steps - more, 0));
    b->iteration = iteration;
    return true;
}

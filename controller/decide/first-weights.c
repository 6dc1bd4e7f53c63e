/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "controller/decide/first-weights.h"

#include <stdlib.h>
#include <string.h>

#include "controller/decide/decide-override.h"
#include "controller/decide/decide-problem.h"
#include "controller/decide/job-assignment.h"
#include "order/order.h"
#include "policies/policy.h"
#include "util.h"

static bool
is_starting(const struct job_assignment *a)
{
    return a->dj->starting && !decide_override_class(a->dj);
}

/* Returns, by stage, the bytes of an iteration of all its jobs that start; the
 * caller frees. */
static double *
bytes_of_starts(const struct job_assignments *assigned)
{
    double *bytes = xcalloc(MAX(assigned->n_stages, 1), sizeof *bytes);

    for (size_t k = 0; k < assigned->n_jobs; k++) {
        const struct decide_job *dj = assigned->jobs[k].dj;

        if (is_starting(&assigned->jobs[k])) {
            bytes[dj->stage] += dj->traits.bytes / dj->iterations;
        }
    }
    return bytes;
}

/* Moves the job of place 'k' before those that have more than 'bytes' to
 * their end.  The level of no other job changes. */
static void
move_forward(struct job_assignments *assigned, size_t k, double bytes)
{
    struct job_assignment *jobs = assigned->jobs, job = jobs[k];
    size_t to = 0;

    while (to < k
           && (decide_override_class(jobs[to].dj) || is_starting(&jobs[to])
               || jobs[to].dj->traits.bytes <= bytes)) {
        to++;
    }
    if (to < k) {
        job.level = MIN(job.level, jobs[to].level);
        job.moved = true;
        memmove(&jobs[to + 1], &jobs[to], (k - to) * sizeof *jobs);
        jobs[to] = job;
    }
}

void
first_weights_place(struct job_assignments *assigned,
                    const struct policy *policy)
{
    enum order_kind kind = policy->order.kind;
    double *bytes;

    if (order_is_whole(kind)
        || order_classes[kind].service == ORDER_SERVICE_SHARE) {
        return;
    }
    bytes = bytes_of_starts(assigned);
    for (size_t k = 1; k < assigned->n_jobs; k++) {
        if (is_starting(&assigned->jobs[k])) {
            move_forward(assigned, k, bytes[assigned->jobs[k].dj->stage]);
        }
    }
    for (size_t k = 0; k < assigned->n_jobs; k++) {
        assigned->jobs[k].rank = k;
    }
    free(bytes);
}

/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "controller/decide/stage-claim.h"

#include <stdlib.h>

#include "controller/decide/decide-problem.h"
#include "controller/model/cluster.h"
#include "controller/model/demand.h"
#include "openvswitch/vlog.h"
#include "util.h"

VLOG_DEFINE_THIS_MODULE(stage_claim);

/* Iterations of a job before its bytes have been counted. */
#define UNCOUNTED (1 + DEMAND_AVERAGE_ITERATIONS)

/* Stores 'ratio', of what was counted by what was announced, in '*wrong', or 0
 * if it is tolerable. */
static void
judge(const struct stage *stage, const char *what, double ratio, double *wrong)
{
    bool right =
        (ratio <= STAGE_CLAIM_TOLERANCE && ratio >= 1 / STAGE_CLAIM_TOLERANCE);

    if (!right && !(*wrong > 0)) {
        char *name = stage_name(stage);

        VLOG_WARN("stage %s: %.2f times the %s of an iteration that were "
                  "announced",
                  name, ratio, what);
        free(name);
    }
    *wrong = right ? 0 : ratio;
}

static void
check_bytes(struct stage *stage, const struct decide_job *jobs, size_t n)
{
    struct stage_claim *claim = &stage->claim;
    double sum = 0;

    for (size_t i = 0; i < n; i++) {
        double bytes = demand_counted_bytes(jobs[i].job);

        if (!(bytes > 0)) {
            return;
        }
        sum += bytes;
    }
    judge(stage, "bytes", sum / (n * claim->bytes), &claim->bytes_ratio);
    stage->cojob->bytes_ratio = claim->bytes_ratio;
    stage->announcement.understated =
        claim->bytes_ratio > 1 && !stage->first_iteration
            ? n * UNCOUNTED * (1 - 1 / claim->bytes_ratio)
            : 0;
}

static void
check_compute(struct stage *stage, const struct decide_job *jobs, size_t n)
{
    struct stage_claim *claim = &stage->claim;
    double period = 0, alone = 0, burst = 0, most;

    for (size_t i = 0; i < n; i++) {
        const struct job_progress *p = &jobs[i].job->progress;

        if (!(p->period > 0) || !(demand_counted_bytes(jobs[i].job) > 0)) {
            return;
        }
        period = MAX(period, p->period);
        alone = MAX(alone, p->first_period);
        burst = MAX(burst, jobs[i].burst);
    }
    most = claim->compute + 2 * burst;
    judge(stage, "seconds",
          period < claim->compute ? period / claim->compute
          : alone > most          ? alone / most
                                  : 1,
          &claim->compute_ratio);
    stage->cojob->compute_refuted |= claim->compute_ratio > 0;
}

void
stage_claim_check(struct stage *stage, const struct decide_job *jobs, size_t n)
{
    if (!n || n < stage->n_jobs) {
        return;
    }
    if (stage->claim.bytes > 0) {
        check_bytes(stage, jobs, n);
    }
    if (stage->claim.compute > 0) {
        check_compute(stage, jobs, n);
    }
}

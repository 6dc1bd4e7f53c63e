/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "controller/model/job-progress.h"

#include <stdlib.h>
#include <string.h>

#include "policies/policy.h"
#include "util.h"

/* Shortest duration of a measurement.  Hosts report iterations within 200 ms,
 * so the error is at most a tenth. */
#define PACE_MS 2000

/* 'began' is the time_msec() at which the job began. */
void
job_progress_init(struct job_progress *p, int64_t began)
{
    p->period = p->first_period = 0;
    p->waits = p->waited = false;
    p->metric = NULL;
    p->value = 0;
    job_progress_pause(p);
    progress_curve_init(&p->curve, began / 1000.0);
}

void
job_progress_uninit(struct job_progress *p)
{
    free(p->metric);
}

/* Ends the running measurement, because the job may pause now. */
void
job_progress_pause(struct job_progress *p)
{
    p->last = p->mark_iteration = -1;
    p->mark_at = 0;
}

/* Sets whether other jobs have priority on one of the job's ports. */
void
job_progress_wait(struct job_progress *p, bool waits)
{
    p->waits = waits;
    p->waited |= waits;
}

static double
min_known(double known, double period)
{
    return known > 0 ? MIN(known, period) : period;
}

/* Updates the period.  'iteration' is the current one, -1 if unknown. */
void
job_progress_pace(struct job_progress *p, int64_t iteration, int64_t now)
{
    int64_t n = iteration - p->mark_iteration;

    if (iteration < 0 || iteration == p->last) {
        return;
    }
    p->last = iteration;
    if (p->mark_iteration >= 0 && p->mark_at && n > 0) {
        double period = (now - p->mark_at) / 1000.0 / n;

        if (now < p->mark_at + PACE_MS) {
            return;
        }
        p->period = min_known(p->period, period);
        if (!p->waited) {
            p->first_period = min_known(p->first_period, period);
        }
    }
    p->waited = p->waits;
    p->mark_at = p->mark_iteration >= 0 ? now : 0;
    p->mark_iteration = iteration;
}

static bool
is_loss(const char *metric)
{
    static const char *const words[] = { "loss", "error", "perplexity" };

    for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
        if (strcasestr(metric, words[i])) {
            return true;
        }
    }
    return false;
}

/* Adds a report that 'metric' was 'value' after 'iteration'.  '*last' is the
 * iteration of the last report of the same source, -1 if none: sources repeat
 * reports, and one of several may lag, which does not mean that the job went
 * back.  An unchanged value is the same evaluation.  Only the first metric of
 * a job is used.  Returns true if the sample is new. */
bool
job_progress_sample(struct job_progress *p, int64_t *last, const char *metric,
                    int64_t iteration, double value, int64_t now)
{
    const struct progress_curve *curve = &p->curve;
    bool back = iteration < *last;

    if (!p->metric) {
        p->metric = xstrdup(metric);
    } else if (strcmp(p->metric, metric) || iteration == *last
               || (!back && curve->n && (iteration
                                         < curve->samples[curve->n - 1].k))) {
        return false;
    }
    *last = iteration;
    value = is_loss(metric) ? -value : value;
    if (curve->n && !back && value >= p->value && value <= p->value) {
        return false;
    }
    p->value = value;
    progress_curve_add(&p->curve, iteration, value, now / 1000.0);
    return true;
}

/* Sets the members of 'traits' that depend on progress, with the parameters of
 * 'policy'.  'iteration' is the current one, -1 if unknown, 'left' is the
 * number of those to the end of the stage, 1 if unknown, and 'later' is the
 * number that the job is expected to do in later stages of its search. */
void
job_progress_score(struct job_progress *p, const struct policy *policy,
                   int64_t iteration, int64_t left, double later, int64_t now,
                   struct order_traits *traits)
{
    const struct progress_options options = {
        .theta = policy->order.early_theta,
        .samples = MIN(policy->early_samples, PROGRESS_WINDOW),
        .boot_s = policy->early_boot_s, .period_s = policy->early_period_s,
        .end = left > 1 ? MAX(0, iteration) + left + later : 0
    };

    progress_curve_score(&p->curve, &options, MAX(0, iteration), p->period,
                         now / 1000.0, &traits->gain, &traits->early);
    traits->iterations_to_theta = progress_curve_to_theta(&p->curve, &options,
                                         MAX(0, iteration));
}

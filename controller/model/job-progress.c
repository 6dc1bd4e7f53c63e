/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "controller/model/job-progress.h"

#include <stdlib.h>
#include <string.h>

#include "policies/policy.h"
#include "util.h"

/* A measurement takes so long at least: hosts tell every 200 ms, and more
 * than a tenth of it should not be chance. */
#define PACE_MS 2000

/* Of a job that began at 'began'. */
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

/* The job may stand still from now on: what takes long does not count. */
void
job_progress_pause(struct job_progress *p)
{
    p->told = p->mark_iteration = -1;
    p->mark_at = 0;
}

/* From now on others go before the job on its ports, if 'waits'. */
void
job_progress_wait(struct job_progress *p, bool waits)
{
    p->waits = waits;
    p->waited |= waits;
}

static double
shorter(double known, double period)
{
    return known > 0 ? MIN(known, period) : period;
}

/* The job is known 'now' to be at 'iteration', -1 if it never told. */
void
job_progress_pace(struct job_progress *p, int64_t iteration, int64_t now)
{
    int64_t n = iteration - p->mark_iteration;

    if (iteration < 0 || iteration == p->told) {
        return;
    }
    p->told = iteration;
    if (p->mark_iteration >= 0 && p->mark_at && n > 0) {
        double period = (now - p->mark_at) / 1000.0 / n;

        if (now < p->mark_at + PACE_MS) {
            return;
        }
        p->period = shorter(p->period, period);
        if (!p->waited) {
            p->first_period = shorter(p->first_period, period);
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

/* A host tells that 'metric' was 'value' after 'iteration'.  '*last' is what
 * that host told last, -1 if nothing: hosts repeat themselves, and one of
 * several may be behind, which does not mean that the job went back.  What
 * has not changed since is the same evaluation, and the job's first metric is
 * the one that counts.  Returns true if that is news. */
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

/* Fills what order_traits say of progress, as 'policy' wants it, for the job
 * that is at 'iteration', -1 if it never told. */
void
job_progress_score(struct job_progress *p, const struct policy *policy,
                   int64_t iteration, int64_t now,
                   struct order_traits *traits)
{
    const struct progress_options options = {
        .theta = policy->order.early_theta,
        .samples = MIN(policy->early_samples, PROGRESS_WINDOW),
        .boot_s = policy->early_boot_s,
        .period_s = policy->early_period_s,
    };

    progress_curve_score(&p->curve, &options, MAX(0, iteration), p->period,
                         now / 1000.0, &traits->gain, &traits->early);
    traits->iterations_to_theta = progress_curve_to_theta(&p->curve, &options,
                                         MAX(0, iteration));
}

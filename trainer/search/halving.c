/* SPDX-License-Identifier: Apache-2.0 */

#include "trainer/search/halving.h"

#include <math.h>
#include <stdlib.h>

#include "base/memory.h"
#include "trainer/search/spec.h"

void
halving_init(struct halving *h, const struct search_rung *rungs, int n_rungs,
             int n_jobs)
{
    *h = (struct halving) {
        .rungs = rungs, .n_rungs = n_rungs, .n_jobs = n_jobs,
        .jobs = allocate(n_jobs, sizeof *h->jobs),
    };
}

void
halving_uninit(struct halving *h)
{
    free(h->jobs);
}

int64_t
halving_target(const struct halving *h)
{
    return h->rungs[h->rung].iterations;
}

void
halving_reached(struct halving *h, int job, double loss)
{
    if (h->jobs[job].state == HALVING_RUNNING) {
        h->jobs[job].state = HALVING_REACHED;
        h->jobs[job].loss = loss;
    }
}

/* A job that has been ranked cannot fail any more. */
void
halving_failed(struct halving *h, int job)
{
    if (h->jobs[job].state == HALVING_RUNNING
        || h->jobs[job].state == HALVING_REACHED) {
        h->jobs[job].state = HALVING_FAILED;
    }
}

static int
count(const struct halving *h, enum halving_state state)
{
    int n = 0;

    for (int i = 0; i < h->n_jobs; i++) {
        n += h->jobs[i].state == state;
    }
    return n;
}

int
halving_rungs(const struct halving *h, struct search_rung *rungs)
{
    int n = 0, left = count(h, HALVING_RUNNING);

    for (int i = h->rung; i < h->n_rungs; i++) {
        left = left < h->rungs[i].keep ? left : h->rungs[i].keep;
        rungs[n++] = (struct search_rung){ h->rungs[i].iterations, left };
    }
    return n;
}

bool
halving_stage_is_over(const struct halving *h)
{
    return !count(h, HALVING_RUNNING);
}

static bool
is_better(const struct halving *h, int a, int b)
{
    double x = h->jobs[a].loss, y = h->jobs[b].loss;

    return isnan(x) ? false : isnan(y) || x < y;
}

/* Inserts 'job' behind all that are as good, so that the order is stable. */
static void
insert(const struct halving *h, int ranking[], int n, int job)
{
    while (n > 0 && is_better(h, job, ranking[n - 1])) {
        ranking[n] = ranking[n - 1];
        n--;
    }
    ranking[n] = job;
}

int
halving_end_stage(struct halving *h, int ranking[])
{
    int keep = h->rungs[h->rung].keep, n = 0;
    bool last = h->rung == h->n_rungs - 1;

    for (int i = 0; i < h->n_jobs; i++) {
        if (h->jobs[i].state == HALVING_REACHED) {
            insert(h, ranking, n++, i);
        }
    }
    for (int i = 0; i < n; i++) {
        h->jobs[ranking[i]].state = i >= keep ? HALVING_STOPPED
                                    : last ? HALVING_DONE : HALVING_RUNNING;
    }
    h->rung++;
    return n;
}

bool
halving_is_over(const struct halving *h)
{
    return h->rung >= h->n_rungs
           || (!count(h, HALVING_RUNNING) && !count(h, HALVING_REACHED));
}

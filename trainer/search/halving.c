/* SPDX-License-Identifier: Apache-2.0 */

#include "trainer/search/halving.h"

#include <math.h>
#include <stdlib.h>

#include "base/memory.h"
#include "order/problem/trials.h"

void
halving_init(struct halving *h, const struct search_rung *rungs, int n_rungs,
             const struct search_method *method, int n_jobs)
{
    *h = (struct halving){
        .rungs = rungs,
        .n_rungs = n_rungs,
        .n_jobs = n_jobs,
        .method = *method,
        .jobs = allocate(n_jobs, sizeof *h->jobs),
        .judged = allocate(method->n_brackets * n_rungs, sizeof *h->judged),
    };
    for (int i = 0; i < n_jobs && !method->places; i++) {
        h->jobs[i].state = HALVING_RUNNING;
    }
}

void
halving_uninit(struct halving *h)
{
    for (int i = 0; i < h->method.n_brackets * h->n_rungs; i++) {
        trial_rung_uninit(&h->judged[i]);
    }
    free(h->judged);
    free(h->jobs);
}

static int
bracket_of(const struct halving *h, int job)
{
    return job % h->method.n_brackets;
}

int
halving_begin(struct halving *h)
{
    for (int i = 0; i < h->n_jobs; i++) {
        if (h->jobs[i].state == HALVING_WAITING) {
            h->jobs[i].state = HALVING_RUNNING;
            h->jobs[i].rung = bracket_of(h, i);
            return i;
        }
    }
    return -1;
}

int64_t
halving_target(const struct halving *h, int job)
{
    return h->rungs[h->method.places ? h->jobs[job].rung : h->rung].iterations;
}

void
halving_reached(struct halving *h, int job, double loss)
{
    struct halving_job *j = &h->jobs[job];

    if (j->state != HALVING_RUNNING) {
        return;
    }
    j->loss = loss;
    if (!h->method.places) {
        j->state = HALVING_REACHED;
    } else if (!trial_rung_judge(
                   &h->judged[bracket_of(h, job) * h->n_rungs + j->rung],
                   -loss, h->method.eta)) {
        j->state = HALVING_STOPPED;
    } else if (j->rung == h->n_rungs - 1) {
        j->state = HALVING_DONE;
    } else {
        j->rung++;
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

int
halving_count(const struct halving *h, enum halving_state state, int bracket)
{
    int n = 0;

    for (int i = 0; i < h->n_jobs; i++) {
        n += h->jobs[i].state == state
             && (bracket < 0 || bracket_of(h, i) == bracket);
    }
    return n;
}

int
halving_rungs(const struct halving *h, struct search_rung *rungs)
{
    int n = 0, left = halving_count(h, HALVING_RUNNING, -1);

    for (int i = h->rung; i < h->n_rungs; i++) {
        left = left < h->rungs[i].keep ? left : h->rungs[i].keep;
        rungs[n++] = (struct search_rung){ h->rungs[i].iterations, left };
    }
    return n;
}

bool
halving_stage_is_over(const struct halving *h)
{
    return !halving_count(h, HALVING_RUNNING, -1)
           && !halving_count(h, HALVING_WAITING, -1);
}

static bool
is_better(const struct halving *h, int a, int b)
{
    double x = h->jobs[a].loss, y = h->jobs[b].loss;

    return (h->jobs[a].rung != h->jobs[b].rung
                ? h->jobs[a].rung > h->jobs[b].rung
                : !isnan(x) && (isnan(y) || x < y));
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

/* Judges the jobs of 'bracket' among the 'n' of 'ranking'. */
static void
judge(struct halving *h, int bracket, const int ranking[], int n)
{
    int reached = halving_count(h, HALVING_REACHED, bracket);
    int keep = (!h->method.eta ? h->rungs[h->rung].keep
                : bracket > h->rung
                    ? reached
                    : (int) search_rung_keeps(reached, h->method.eta));

    for (int i = 0; i < n; i++) {
        if (bracket_of(h, ranking[i]) == bracket) {
            h->jobs[ranking[i]].state = keep-- <= 0 ? HALVING_STOPPED
                                        : h->rung == h->n_rungs - 1
                                            ? HALVING_DONE
                                            : HALVING_RUNNING;
        }
    }
}

int
halving_end_stage(struct halving *h, int ranking[])
{
    int n = 0;

    for (int i = 0; i < h->n_jobs; i++) {
        enum halving_state state = h->jobs[i].state;

        if (h->method.places
                ? state == HALVING_STOPPED || state == HALVING_DONE
                : state == HALVING_REACHED) {
            insert(h, ranking, n++, i);
        }
    }
    for (int b = 0; b < h->method.n_brackets && !h->method.places; b++) {
        judge(h, b, ranking, n);
    }
    h->rung = h->method.places ? h->n_rungs : h->rung + 1;
    return n;
}

bool
halving_is_over(const struct halving *h)
{
    return h->rung >= h->n_rungs
           || (halving_stage_is_over(h)
               && !halving_count(h, HALVING_REACHED, -1));
}

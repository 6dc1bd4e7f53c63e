/* SPDX-License-Identifier: Apache-2.0 */

#include "order/problem/announcement.h"

#include <math.h>
#include <stdbool.h>

/* Counts what a search hid in addition to what it still needs. */
#define HIDDEN_FACTOR 1.5

double
announced_iterations(const struct announced_rung *rungs, size_t n)
{
    double sum = 0;

    for (size_t i = 0; i < n; i++) {
        sum += (double) rungs[i].iterations * rungs[i].n_jobs;
    }
    return sum;
}

void
announcement_init(struct announcement *a, double later)
{
    *a = (struct announcement) { .later = later };
}

void
announcement_next(struct announcement *a, double own, double later)
{
    a->hidden += fmax(own + later - a->later, 0);
    a->after_first += own;
    a->later = later;
}

/* Returns false if the search has shown no stage after its first one. */
static bool
find_candor(const struct announcement *a, double *candor)
{
    double all = a->after_first + a->later;

    if (all > 0) {
        *candor = fmax(1 - a->hidden / all, 0);
    }
    return all > 0;
}

void
candor_add(struct candor *candor, const struct announcement *a)
{
    double own;

    if (find_candor(a, &own)) {
        candor->announced += own;
        candor->n++;
    }
}

void
candor_remove(struct candor *candor, const struct announcement *a)
{
    double own;

    if (find_candor(a, &own)) {
        candor->announced -= own;
        candor->n--;
    }
}

double
announcement_debt(const struct announcement *a, const struct candor *candor)
{
    double own, hidden = a->understated;

    if (find_candor(a, &own) && candor->n > 1) {
        hidden +=
            a->hidden * fmax(candor->announced - own, 0) / (candor->n - 1);
    }
    return HIDDEN_FACTOR * hidden;
}

size_t
announced_rungs_add(struct announced_rung *rungs, size_t n, double hidden)
{
    size_t n_jobs = rungs[n - 1].n_jobs;
    int64_t iterations = llround(hidden / n_jobs);

    if (iterations > 0) {
        rungs[n++] = (struct announced_rung){ iterations, n_jobs };
    }
    return n;
}

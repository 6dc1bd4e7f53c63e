/* SPDX-License-Identifier: Apache-2.0 */

#include "sim/workload/workload-view.h"

#include <math.h>

#include "order/problem/memory.h"
#include "policies/policy.h"
#include "sim/workload/workload.h"

/* Returns the cojobs with these 'n' indexes, in this order. */
static struct workload *
create_view(const struct workload *w, const size_t *cojobs, size_t n)
{
    struct workload *view = order_alloc(1, sizeof *view);

    *view = *w;
    view->cojobs = order_alloc(n, sizeof *view->cojobs);
    view->n_cojobs = view->allocated_cojobs = n;
    view->n_stages = 0;
    for (size_t i = 0; i < n; i++) {
        view->cojobs[i] = w->cojobs[cojobs[i]];
        view->n_stages += view->cojobs[i].n_rungs;
    }
    return view;
}

void
workload_view_destroy(struct workload *view)
{
    if (view) {
        free(view->cojobs);
        free(view);
    }
}

/* Returns the indexes of all cojobs; the caller frees. */
static size_t *
all_cojobs(const struct workload *w)
{
    size_t *indexes = order_alloc(w->n_cojobs, sizeof *indexes);

    for (size_t i = 0; i < w->n_cojobs; i++) {
        indexes[i] = i;
    }
    return indexes;
}

struct workload *
workload_view_weighted(const struct workload *w, const struct policy *policy)
{
    size_t *indexes = all_cojobs(w);
    struct workload *view = create_view(w, indexes, w->n_cojobs);

    for (size_t i = 0; i < view->n_cojobs; i++) {
        struct workload_cojob *cojob = &view->cojobs[i];

        cojob->weight *= policy_weight(policy, cojob->user, cojob->name);
    }
    free(indexes);
    return view;
}

static int
compare_arrivals(const void *a_, const void *b_, void *w_)
{
    const struct workload *w = w_;
    size_t a = *(const size_t *) a_;
    size_t b = *(const size_t *) b_;
    double x = w->cojobs[a].arrival;
    double y = w->cojobs[b].arrival;

    return x < y ? -1 : x > y ? 1 : a < b ? -1 : a > b;
}

void
workload_view_split(const struct workload *w, double share,
                    struct workload **first, struct workload **rest)
{
    size_t *indexes = all_cojobs(w);
    size_t n = ceil(w->n_cojobs * share);

    qsort_r(indexes, w->n_cojobs, sizeof *indexes, compare_arrivals,
            (void *) w);
    if (n && n == w->n_cojobs) {
        n--;
    }
    *first = create_view(w, indexes, n);
    *rest = create_view(w, indexes + n, w->n_cojobs - n);
    free(indexes);
}

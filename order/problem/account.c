/* SPDX-License-Identifier: Apache-2.0 */

#include "order/problem/account.h"

#include <math.h>
#include <string.h>

#include "order/problem/memory.h"

/* Counts what an owner was served beyond two searches. */
#define SLICES_FACTOR 0.85

/* Returns what 'a' has beyond its two largest searches, as far as all but the
 * largest are smaller than 'others', the mean of the other owners. */
static double
excess(const struct account *a, double others)
{
    double rest = (a->total - a->first) / fmax(a->count - 1, 1);

    return (others > rest ? fmax(a->total - a->first - a->second, 0)
                                * (1 - rest / others)
                          : 0);
}

void
account_add(struct account *a, double work, double now, double memory_s)
{
    double kept = exp2(-fmax(now - a->at, 0) / memory_s);

    a->at = now;
    a->total = kept * a->total + work;
    a->count = kept * a->count + 1;
    a->first *= kept;
    a->second *= kept;
    if (work > a->first) {
        a->second = a->first;
        a->first = work;
    } else {
        a->second = fmax(a->second, work);
    }
}

/* The running searches of one owner. */
struct running {
    double work;
    size_t n;
};

void
account_debts(const struct account *accounts, size_t n_accounts, double now,
              double memory_s, struct account_search *searches, size_t n)
{
    struct account *sums;
    struct running *own, all = { .n = n };
    double least = INFINITY;

    for (size_t i = 0; i < n; i++) {
        searches[i].debt = 0;
    }
    if (!(memory_s > 0) || !n) {
        return;
    }
    own = order_alloc(n_accounts, sizeof *own);
    sums = order_alloc(n_accounts, sizeof *sums);
    memcpy(sums, accounts, n_accounts * sizeof *sums);
    for (size_t i = 0; i < n; i++) {
        const struct account_search *s = &searches[i];

        account_add(&sums[s->owner], s->work, now, memory_s);
        own[s->owner].work += s->work;
        own[s->owner].n++;
        all.work += s->work;
    }
    for (size_t i = 0; i < n; i++) {
        struct account_search *s = &searches[i];
        const struct running *o = &own[s->owner];

        s->debt =
            (all.n > o->n ? SLICES_FACTOR
                                * excess(&sums[s->owner],
                                         (all.work - o->work) / (all.n - o->n))
                          : 0);
        least = fmin(least, s->debt);
    }
    for (size_t i = 0; i < n; i++) {
        searches[i].debt -= least;
    }
    free(sums);
    free(own);
}

/* SPDX-License-Identifier: Apache-2.0 */

#include "order/problem/account.h"

#include <math.h>
#include <string.h>

#include "order/problem/memory.h"

/* How much of what an owner was served beyond two searches counts, for small
 * searches and for more than others had. */
#define SMALL_FACTOR 0.85
#define MORE_FACTOR 1.2

/* The other owners with running searches. */
struct others {
    double search; /* Their mean running search. */
    double total;  /* What they were served, in the mean. */
};

/* Returns what 'a' has beyond its two largest searches, as far as all but the
 * largest are smaller than those of 'others', or as 'a' has more than they. */
static double
excess(const struct account *a, const struct others *others)
{
    double rest = (a->total - a->first) / fmax(a->count - 1, 1);
    double small = SMALL_FACTOR * fmax(1 - rest / others->search, 0);
    double more = MORE_FACTOR * fmax(1 - others->total / a->total, 0);

    return fmax(a->total - a->first - a->second, 0) * fmax(small, more);
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

/* The running searches of one owner, or of all. */
struct running {
    double work;
    size_t n;
    double total; /* What the owner was served, or all owners. */
    size_t owners;
};

/* Returns the means of 'all' but 'own', which must not be all. */
static struct others
others_than(const struct running *own, const struct running *all)
{
    return (struct others){
        .search = (all->work - own->work) / (all->n - own->n),
        .total = (all->total - own->total) / (all->owners - 1),
    };
}

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
    for (size_t o = 0; o < n_accounts; o++) {
        if (own[o].n) {
            own[o].total = sums[o].total;
            all.total += sums[o].total;
            all.owners++;
        }
    }
    for (size_t i = 0; i < n; i++) {
        struct account_search *s = &searches[i];
        const struct running *o = &own[s->owner];

        if (all.n > o->n) {
            struct others others = others_than(o, &all);

            s->debt = excess(&sums[s->owner], &others);
        }
        least = fmin(least, s->debt);
    }
    for (size_t i = 0; i < n; i++) {
        searches[i].debt -= least;
    }
    free(sums);
    free(own);
}

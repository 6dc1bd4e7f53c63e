/* SPDX-License-Identifier: Apache-2.0 */

#include "order/problem/account.h"

#include <math.h>
#include <string.h>

#include "order/problem/memory.h"

/* Counts what an owner was served beyond two searches. */
#define SLICES_FACTOR 4

/* Returns what 'a' has beyond its two largest searches. */
static double
excess(const struct account *a)
{
    return fmax(a->total - a->first - a->second, 0);
}

void
account_add(struct account *a, double work, double now, double memory_s)
{
    double kept = exp2(-fmax(now - a->at, 0) / memory_s);

    a->at = now;
    a->total = kept * a->total + work;
    a->first *= kept;
    a->second *= kept;
    if (work > a->first) {
        a->second = a->first;
        a->first = work;
    } else {
        a->second = fmax(a->second, work);
    }
}

void
account_debts(const struct account *accounts, size_t n_accounts, double now,
              double memory_s, struct account_search *searches, size_t n)
{
    struct account *sums;
    double least = INFINITY;

    for (size_t i = 0; i < n; i++) {
        searches[i].debt = 0;
    }
    if (!(memory_s > 0) || !n) {
        return;
    }
    sums = order_alloc(n_accounts, sizeof *sums);
    memcpy(sums, accounts, n_accounts * sizeof *sums);
    for (size_t i = 0; i < n; i++) {
        account_add(&sums[searches[i].owner], searches[i].work, now, memory_s);
    }
    for (size_t i = 0; i < n; i++) {
        searches[i].debt = SLICES_FACTOR * excess(&sums[searches[i].owner]);
        least = fmin(least, searches[i].debt);
    }
    for (size_t i = 0; i < n; i++) {
        searches[i].debt -= least;
    }
    free(sums);
}

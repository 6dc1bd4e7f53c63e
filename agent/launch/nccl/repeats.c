/* SPDX-License-Identifier: Apache-2.0 */

#include "agent/launch/nccl/repeats.h"

#define TIMES 3 /* That a period has occurred when it is believed. */

/* Returns symbol 'i', the last one being 1. */
static uint64_t
last(const struct repeats *r, uint64_t i)
{
    return r->symbols[(r->n - i) % REPEATS_WINDOW];
}

/* Returns the number of the 'known' last symbols that 'period' explains. */
static uint64_t
explained(const struct repeats *r, uint64_t known, uint64_t period)
{
    uint64_t i = period;

    while (i < known && last(r, i + 1) == last(r, i + 1 - period)) {
        i++;
    }
    return i;
}

/* Searches a period that holds. */
static void
find_period(struct repeats *r)
{
    uint64_t known = r->n < REPEATS_WINDOW ? r->n : REPEATS_WINDOW;
    uint64_t best = 0, most = 0;

    for (uint64_t p = 1; p <= known / TIMES; p++) {
        uint64_t n = explained(r, known, p);

        if (n >= TIMES * p && 2 * n >= known && n > most) {
            best = p;
            most = n;
        }
    }
    if (!best) {
        return;
    }
    if (r->run < best) {
        r->before = r->from = 0;
    } else {
        r->before += (double) (r->n - most - r->from) / r->period;
        r->from = r->n - most;
    }
    r->period = best;
    r->run = most;
    r->lost = 0;
}

/* Adds the symbol of a call.  Returns the number of iterations that have
 * ended, or -1. */
int64_t
repeats_add(struct repeats *r, uint64_t symbol)
{
    r->symbols[r->n++ % REPEATS_WINDOW] = symbol;
    if (r->period && !r->lost && symbol == last(r, r->period + 1)) {
        r->run++;
    } else {
        r->lost = 1;
        find_period(r);
    }
    if (!r->period || r->n < REPEATS_LEAST) {
        return -1;
    }
    return r->before + (double) (r->n - r->from) / r->period + 1e-6;
}

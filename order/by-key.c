/* SPDX-License-Identifier: Apache-2.0 */

#include "order/by-key.h"

#include <math.h>

#include "order/scratch.h"

#define N_KEYS (sizeof ((struct order_key *) 0)->by / sizeof (double))

struct keyed_stage {
    struct order_key key;
    uint64_t id;
    int stage;
};

static int
compare_keys(const void *a_, const void *b_)
{
    const struct keyed_stage *a = a_, *b = b_;

    for (size_t i = 0; i < N_KEYS; i++) {
        if (a->key.by[i] != b->key.by[i]) {
            return a->key.by[i] < b->key.by[i] ? -1 : 1;
        }
    }
    if (a->id != b->id) {
        return a->id < b->id ? -1 : 1;
    }
    return (a->stage > b->stage) - (a->stage < b->stage);
}

void
sort_by_key(const struct order_problem *op,
            const struct order_options *options, order_key_func *key,
            int *order)
{
    struct keyed_stage *keyed = scratch_take(op->scratch, op->n_stages,
                                             sizeof *keyed);

    for (size_t i = 0; i < op->n_stages; i++) {
        keyed[i].key = key(&op->stages[i], options);
        for (size_t j = 0; j < N_KEYS; j++) {
            if (isnan(keyed[i].key.by[j])) {
                keyed[i].key.by[j] = INFINITY;
            }
        }
        keyed[i].id = op->stages[i].id;
        keyed[i].stage = i;
    }
    scratch_sort(op->scratch, keyed, op->n_stages, sizeof *keyed,
                 compare_keys);
    for (size_t i = 0; i < op->n_stages; i++) {
        order[i] = keyed[i].stage;
    }
    scratch_give(op->scratch, keyed);
}

double
order_stage_arrived(const struct order_stage *stage)
{
    return stage->release > 0 ? stage->release : -stage->traits.arrival;
}

bool
order_has_sent(const struct order_stage *stage, double bytes)
{
    return stage->traits.sent >= bytes * (1 - 1e-9);
}

double
order_stage_bottleneck(const struct order_stage *stage)
{
    double most = 0;

    for (size_t i = 0; i < stage->n_demands; i++) {
        most = fmax(most, stage->demands[i].seconds);
    }
    return most;
}

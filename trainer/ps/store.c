/* SPDX-License-Identifier: Apache-2.0 */

#include "trainer/ps/store.h"

#include <stdlib.h>

#include "base/memory.h"
#include "trainer/ps/sparse.h"

struct store *
store_create(struct shard shard, uint32_t width,
             const struct optimiser_config *optimiser)
{
    struct store *store = allocate(1, sizeof *store);

    store->optimiser = *optimiser;
    store->shard = shard;
    store->width = width;
    for (int v = 0; v <= optimiser->class->n_states; v++) {
        store->vectors[v] = allocate(shard.n, sizeof(float));
    }
    store->sparse = sparse_create(width, optimiser);
    return store;
}

void
store_destroy(struct store *store)
{
    if (store) {
        for (int v = 0; v <= store->optimiser.class->n_states; v++) {
            free(store->vectors[v]);
        }
        sparse_destroy(store->sparse);
        free(store);
    }
}

void
store_update(struct store *store, uint64_t first, size_t n,
             const float *gradients)
{
    float *state[OPTIMISER_MAX_STATES];
    size_t at = first - store->shard.first;

    for (int v = 0; v < store->optimiser.class->n_states; v++) {
        state[v] = store->vectors[1 + v] + at;
    }
    store->optimiser.class->step(&store->optimiser, n, gradients, state,
                                 store->vectors[0] + at);
}

float *
store_values(const struct store *store, uint64_t first)
{
    return store->vectors[0] + (first - store->shard.first);
}

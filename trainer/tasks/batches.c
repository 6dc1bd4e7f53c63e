/* SPDX-License-Identifier: Apache-2.0 */

#include "trainer/tasks/batches.h"

#include <stdlib.h>

#include "base/memory.h"
#include "trainer/keys/key-store.h"
#include "trainer/tasks/gather.h"

struct batch {
    struct gather *gather;
    size_t *places;             /* 'n_places' of each sample. */
    size_t n;                   /* Samples; 0: the batch is empty. */
    key_handle pull;            /* Request of their vectors. */
};

struct batches {
    struct key_worker *worker;
    struct batches_size size;
    struct batch all[2];        /* One is trained, the other one pulled. */
    int next;                   /* The one to train next. */
};

static size_t
least(size_t a, size_t b)
{
    return a < b ? a : b;
}

struct batches *
batches_create(struct key_worker *worker, const struct batches_size *size)
{
    struct batches *b = allocate(1, sizeof *b);

    b->worker = worker;
    b->size = *size;
    for (int i = 0; i < (size->n > 1 ? 2 : 1); i++) {
        b->all[i].gather = gather_create(
            worker, least(size->n * size->keys, size->all_keys),
            least(size->n * size->values, size->all_values), size->n > 1);
        b->all[i].places = allocate(size->n * size->n_places,
                                    sizeof *b->all[i].places);
    }
    return b;
}

void
batches_destroy(struct batches *b)
{
    if (b) {
        for (int i = 0; i < 2; i++) {
            gather_destroy(b->all[i].gather);
            free(b->all[i].places);
        }
        free(b);
    }
}

/* Collects a batch, and requests its vectors. */
static void
request(struct batches *b, struct batch *batch,
        const struct batches_ops *ops, void *aux)
{
    gather_clear(batch->gather);
    while (batch->n < b->size.n
           && ops->add(aux, batch->gather,
                       batch->places + batch->n * b->size.n_places)) {
        batch->n++;
    }
    if (batch->n) {
        batch->pull = gather_request(batch->gather);
    }
}

char *
batches_train(struct batches *b, const struct batches_ops *ops, void *aux,
              size_t *n)
{
    struct batch *batch = &b->all[b->next];
    char *error;

    if (!batch->n) {
        request(b, batch, ops, aux);
    }
    if (b->size.n > 1) {
        b->next = !b->next;
        request(b, &b->all[b->next], ops, aux);
    }
    *n = batch->n;
    if (!batch->n) {
        return NULL;
    }
    error = key_wait(b->worker, batch->pull);
    for (size_t i = 0; i < batch->n && !error; i++) {
        ops->step(aux, batch->gather, batch->places + i * b->size.n_places);
    }
    batch->n = 0;
    if (!error) {
        gather_push(batch->gather);
    }
    return error;
}

void
batches_drop(struct batches *b)
{
    struct batch *batch = &b->all[b->next];

    if (batch->n) {
        free(key_wait(b->worker, batch->pull));
        batch->n = 0;
    }
}

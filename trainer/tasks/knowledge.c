/* SPDX-License-Identifier: Apache-2.0 */

/* Embeddings of a knowledge graph, by AdaGrad.
 *
 * A worker has the triples of some relations, and the parameters of these are
 * localized there for the whole training; entities are prefetched as they are
 * needed.  Negative samples are drawn from the entities that are local.
 *
 * Each vector is followed by its sums of squares: an entity is one key, a
 * relation consists of as many keys as it needs. */

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "trainer/data/seeded.h"
#include "trainer/data/triples.h"
#include "trainer/models/vector.h"
#include "trainer/process/options.h"
#include "trainer/schemes/shard.h"
#include "trainer/tasks/batches.h"
#include "trainer/tasks/clustering.h"
#include "trainer/tasks/gather.h"
#include "trainer/tasks/knowledge-model.h"
#include "trainer/tasks/node-task.h"
#include "trainer/tasks/prefetch.h"

#define FIRST_DEVIATION 0.3     /* Deviation of initial values. */
#define TRIPLE_KEYS 3       /* Subject, object, relation. */

/* Streams of the seed. */
#define STREAM_VALUES (UINT64_C(0x4b47) << 32)
#define STREAM_WRONG (UINT64_C(0x4b48) << 32)

struct knowledge {
    struct node_task task;
    const struct knowledge_model *model;
    struct triples *triples;
    struct triples_index *index;
    struct clustering *relations;
    size_t length, relation_length;     /* Number of floats of vectors. */
    uint32_t entity_width;      /* Number of values of a key. */
    uint32_t relation_width;
    uint32_t n_parts;           /* Number of keys of a relation. */
};

/* State of a worker. */
struct state {
    uint32_t *own;              /* Its triples. */
    size_t n_own, next;         /* Number of its triples, and of those
                                 * processed in this epoch. */
    struct seeded random;       /* For negative samples. */
    struct prefetch *ahead;
    struct batches *batches;
    struct gather *gather;      /* A relation, to validate. */
    float *scratch;
};

/* Indices of the vectors of a triple: subject, object, relation, and then
 * negative objects and negative subjects. */
#define FIRST_WRONG 3

static struct knowledge *
knowledge_cast(const struct node_task *task)
{
    return (struct knowledge *) task;
}

/* Chooses the width of keys: a whole vector, or as much as divides a matrix by
 * rows. */
static void
choose_widths(struct knowledge *k, const struct options *o)
{
    k->length = k->model->n_floats * o->dimension;
    k->relation_length = k->model->matrix ? k->length * k->length : k->length;
    k->entity_width = 2 * k->length;
    k->relation_width = 2 * k->relation_length <= KEY_STORE_MAX_WIDTH
                        ? 2 * k->relation_length : o->dimension;
    k->n_parts = 2 * k->relation_length / k->relation_width;
}

static void
knowledge_destroy(struct node_task *task)
{
    struct knowledge *k = knowledge_cast(task);

    triples_destroy(k->triples);
    triples_index_destroy(k->index);
    clustering_destroy(k->relations);
    free(k);
}

static char *
knowledge_create(const struct options *o, int n_workers,
                 struct node_task **taskp)
{
    struct knowledge *k = allocate(1, sizeof *k);
    const struct triples *t;
    char *error;

    k->task = (struct node_task) { &node_task_knowledge, o };
    *taskp = &k->task;
    k->model = !strcmp(o->embedding, "rescal") ? &knowledge_rescal
                                               : &knowledge_complex;
    choose_widths(k, o);
    error = triples_open(o->data, &(struct triples_config) {
        .n_entities = o->entities, .n_relations = o->relations,
        .n = o->samples, .seed = o->seed,
    }, &k->triples);
    if (error) {
        return error;
    }
    t = k->triples;
    k->index = triples_index_create(t);
    k->relations = clustering_create(&t->all->relation, sizeof *t->all,
                                     t->first[TRIPLES_VALID],
                                     t->n_relations, n_workers);
    return NULL;
}

static int
knowledge_ranges(const struct node_task *task, struct key_range *ranges)
{
    const struct knowledge *k = knowledge_cast(task);
    const struct triples *t = k->triples;

    ranges[0] = (struct key_range){ t->n_entities, k->entity_width };
    ranges[1] = (struct key_range){ (uint64_t) t->n_relations * k->n_parts,
                                    k->relation_width };
    return 2;
}

static uint64_t
relation_key(const struct knowledge *k, uint32_t relation)
{
    return k->triples->n_entities + (uint64_t) relation * k->n_parts;
}

/* Initial values.  Sums of squares are 0: the second half of the values of
 * an entity, or of a relation of one key; otherwise the second half of the
 * keys. */
static void
knowledge_init(const struct node_task *task, uint64_t key, float *values)
{
    const struct knowledge *k = knowledge_cast(task);
    uint64_t first_relation = relation_key(k, 0);
    size_t n = k->length;
    struct seeded rs;

    if (key >= first_relation && k->n_parts == 1) {
        n = k->relation_length;
    } else if (key >= first_relation) {
        n = (key - first_relation) % k->n_parts < k->n_parts / 2
            ? k->relation_width : 0;
    }
    seeded_init(&rs, task->o->seed, STREAM_VALUES + key);
    for (size_t i = 0; i < n; i++) {
        values[i] = FIRST_DEVIATION * seeded_normal(&rs);
    }
}

static void
find_own(const struct node_worker *worker, const struct knowledge *k,
         struct state *state)
{
    size_t n = k->triples->first[TRIPLES_VALID];

    state->own = allocate(n, sizeof *state->own);
    for (size_t i = 0; i < n; i++) {
        if (k->relations->worker_of_sample[i] == worker->index) {
            state->own[state->n_own++] = i;
        }
    }
}

static char *
localize_relations(struct node_worker *worker, const struct knowledge *k)
{
    uint32_t n_relations = k->triples->n_relations;
    uint64_t *keys = allocate((size_t) n_relations * k->n_parts, sizeof *keys);
    size_t n = 0;
    char *error;

    for (uint32_t r = 0; r < n_relations; r++) {
        if (k->relations->home[r] == worker->index) {
            for (uint32_t i = 0; i < k->n_parts; i++) {
                keys[n++] = relation_key(k, r) + i;
            }
        }
    }
    error = key_wait(worker->keys, key_localize(worker->keys, keys, n));
    free(keys);
    return error;
}

static char *
knowledge_begin(struct node_worker *worker, void **statep)
{
    const struct knowledge *k = knowledge_cast(worker->task);
    struct state *state = *statep = allocate(1, sizeof *state);
    const struct triples *t = k->triples;
    size_t n_places = FIRST_WRONG + 2 * worker->task->o->negatives;
    size_t n_relation_keys = (size_t) t->n_relations * k->n_parts;

    find_own(worker, k, state);
    seeded_init(&state->random, worker->task->o->seed,
                STREAM_WRONG + worker->index);
    state->ahead = prefetch_create(worker->keys, worker->task->o->prefetch,
                                    TRIPLE_KEYS);
    state->batches = batches_create(worker->keys, &(struct batches_size) {
        .n = worker->task->o->exchange, .n_places = n_places,
        .keys = n_places - 1 + k->n_parts,
        .values = (n_places - 1) * k->entity_width + 2 * k->relation_length,
        .all_keys = t->n_entities + n_relation_keys,
        .all_values = (size_t) t->n_entities * k->entity_width
                      + n_relation_keys * k->relation_width,
    });
    state->gather = gather_create(worker->keys, k->n_parts,
                                  2 * k->relation_length, false);
    state->scratch = allocate(2 * k->length, sizeof *state->scratch);
    return localize_relations(worker, k);
}

static void
knowledge_end(void *state_)
{
    struct state *state = state_;

    prefetch_destroy(state->ahead);
    batches_destroy(state->batches);
    gather_destroy(state->gather);
    free(state->own);
    free(state->scratch);
    free(state);
}

/* Adds the keys of the relation, which are consecutive. */
static size_t
add_relation(const struct knowledge *k, struct gather *g, uint64_t first_key)
{
    size_t at = gather_add(g, first_key, k->relation_width);

    for (uint32_t i = 1; i < k->n_parts; i++) {
        gather_add(g, first_key + i, k->relation_width);
    }
    return at;
}

/* Turns the gradients of a vector of 'length' into its changes. */
static void
make_change(struct gather *g, size_t at, size_t length, float rate)
{
    float *changes = gather_gradients(g) + at;

    vector_adagrad(length, rate, g->values + at + length, changes,
                   changes + length);
    gather_change(g, at, 2 * length);
}

static void
add_triple(struct node_worker *worker, void *state_, struct gather *g,
           const uint64_t keys[], size_t places[])
{
    struct state *state = state_;
    const struct knowledge *k = knowledge_cast(worker->task);

    places[0] = gather_add(g, keys[0], k->entity_width);
    places[1] = gather_add(g, keys[1], k->entity_width);
    places[2] = add_relation(k, g, keys[2]);
    for (int64_t i = 0; i < 2 * worker->task->o->negatives; i++) {
        int64_t n_draws = 0;
        uint64_t key;

        do {
            key = seeded_below(&state->random, k->triples->n_entities);
        } while (node_worker_redraws(worker, key, &n_draws));
        places[FIRST_WRONG + i] = gather_add(g, key, k->entity_width);
    }
}

static double
step_triple(struct node_worker *worker, void *state_, struct gather *g,
            const size_t places[])
{
    struct state *state = state_;
    const struct knowledge *k = knowledge_cast(worker->task);
    const struct options *o = worker->task->o;
    struct knowledge_sample x = {
        .values = g->values, .gradients = gather_gradients(g),
        .s = places[0], .o = places[1], .r = places[2],
        .n_wrong = o->negatives, .wrong_o = places + FIRST_WRONG,
        .wrong_s = places + FIRST_WRONG + o->negatives,
    };
    double loss = knowledge_step(k->model, o->dimension, &x, state->scratch);

    for (int64_t i = 0; i < FIRST_WRONG + 2 * o->negatives; i++) {
        if (!gather_is_repeated(places, i)) {
            make_change(g, places[i], i == 2 ? k->relation_length : k->length,
                        o->learning_rate);
        }
    }
    return loss;
}

static bool
next_triple(struct node_worker *worker, void *state_, uint64_t *keys)
{
    const struct knowledge *k = knowledge_cast(worker->task);
    struct state *state = state_;
    const struct triple *t;
    size_t own;

    if (state->next == state->n_own) {
        return false;
    }
    own = seeded_permute(worker->task->o->seed + worker->epoch, state->next++,
                         state->n_own);
    t = &k->triples->all[state->own[own]];
    keys[0] = t->subject;
    keys[1] = t->object;
    keys[2] = relation_key(k, t->relation);
    return true;
}

static char *
knowledge_epoch(struct node_worker *worker, void *state_,
                struct node_task_sums *sums)
{
    static const struct node_samples samples = { TRIPLE_KEYS, 2, next_triple,
                                                 add_triple, step_triple };
    const struct knowledge *k = knowledge_cast(worker->task);
    struct state *state = state_;

    state->next = 0;
    return node_worker_train(worker, state, &samples, state->ahead,
                             state->batches,
                             k->triples->first[TRIPLES_VALID], sums);
}

/* Ranks 'n' test triples by the current entities. */
static char *
judge_triples(struct node_worker *worker, struct state *state,
              const struct triple *t, size_t n, const float *entities,
              struct node_task_sums *sums)
{
    const struct knowledge *k = knowledge_cast(worker->task);
    struct knowledge_rank_in in = {
        k->model, worker->task->o->dimension, k->index,
        k->triples->n_entities, entities, k->entity_width
    };
    struct knowledge_ranks ranks = { .n = 0 };
    char *error = NULL;

    for (size_t i = 0; i < n && !error; i++) {
        gather_clear(state->gather);
        add_relation(k, state->gather, relation_key(k, t[i].relation));
        error = gather_pull(state->gather);
        if (!error) {
            knowledge_rank(&in, &t[i], state->gather->values, state->scratch,
                           &ranks);
        }
    }
    sums->n_judged += ranks.n;
    sums->quality[0] += ranks.reciprocal;
    sums->quality[1] += ranks.hits10;
    return error;
}

static char *
knowledge_judge(struct node_worker *worker, void *state,
                struct node_task_sums *sums)
{
    const struct knowledge *k = knowledge_cast(worker->task);
    const struct triples *t = k->triples;
    size_t held_out = worker->task->o->validation;
    size_t n_test = t->n - t->first[TRIPLES_TEST];
    struct shard share = shard_range(n_test < held_out ? n_test : held_out,
                                     worker->index, worker->n);
    uint64_t *keys = allocate(t->n_entities, sizeof *keys);
    float *entities = allocate((size_t) t->n_entities * k->entity_width,
                               sizeof *entities);
    char *error;

    for (uint32_t i = 0; i < t->n_entities; i++) {
        keys[i] = i;
    }
    error = key_wait(worker->keys, key_pull(worker->keys, keys,
                                            t->n_entities, entities));
    error = error ? error
            : judge_triples(worker, state,
                            &t->all[t->first[TRIPLES_TEST] + share.first],
                            share.n, entities, sums);
    free(keys);
    free(entities);
    return error;
}

const struct node_task_class node_task_knowledge = {
    .name = "knowledge",
    .qualities = { "mrr", "hits10" },
    .create = knowledge_create,
    .destroy = knowledge_destroy,
    .ranges = knowledge_ranges,
    .init = knowledge_init,
    .begin = knowledge_begin,
    .end = knowledge_end,
    .epoch = knowledge_epoch,
    .judge = knowledge_judge,
};

/* SPDX-License-Identifier: Apache-2.0 */

/* Word vectors: skip-gram with negative sampling.
 *
 * A worker has a part of the text.  The words that it will come to, and those
 * around them, are localized ahead; wrong ones are drawn among the words that
 * are here.
 *
 * Word i has its vector in key i, and its vector as a context in key n_words +
 * i. */

#include "trainer/tasks/skipgram.h"

#include <math.h>
#include <stdlib.h>

#include "base/memory.h"
#include "trainer/data/corpus.h"
#include "trainer/data/seeded.h"
#include "trainer/models/vector.h"
#include "trainer/process/options.h"
#include "trainer/schemes/shard.h"
#include "trainer/tasks/batches.h"
#include "trainer/tasks/gather.h"
#include "trainer/tasks/knowledge-model.h"
#include "trainer/tasks/node-task.h"
#include "trainer/tasks/prefetch.h"

#define HELD_OUT 20             /* One part of HELD_OUT of the text. */
#define PAIR 2                  /* Keys of a word and one near it. */

#define STREAM_VALUES (UINT64_C(0x5732) << 32)
#define STREAM_PAIRS (UINT64_C(0x5733) << 32)
#define STREAM_WRONG (UINT64_C(0x5734) << 32)
#define STREAM_JUDGE (UINT64_C(0x5735) << 32)

double
skipgram_step(size_t dimension, const float *values, size_t n_wrong,
              const size_t *places, float *gradients)
{
    const float *word = values + places[0];
    double loss = 0;

    for (size_t i = 0; i <= n_wrong; i++) {
        const float *context = values + places[1 + i];
        float sign = i ? 1 : -1;
        float score = sign * vector_dot(dimension, word, context);
        float slope = sign * logistic_slope(score);

        loss += logistic_loss(score);
        vector_add(dimension, slope, context, gradients + places[0]);
        vector_add(dimension, slope, word, gradients + places[1 + i]);
    }
    return loss;
}

/* Walker's alias table: column i is word i with probability 'keep', and
 * otherwise 'other'. */
struct alias {
    float keep;
    uint32_t other;
};

struct skipgram_sampler {
    uint32_t n;
    struct alias *aliases;
    float *keeps;
};

/* 'weights' have a mean of 1 and are used up.  Each column below the mean is
 * filled from one above it. */
static void
fill_aliases(uint32_t n, double *weights, struct alias *aliases)
{
    uint32_t *todo = allocate(n, sizeof *todo), n_low = 0, n_high = 0;

    for (uint32_t i = 0; i < n; i++) {
        aliases[i] = (struct alias) { 1, i };
        if (weights[i] < 1) {
            todo[n_low++] = i;
        } else {
            todo[n - ++n_high] = i;
        }
    }
    while (n_low && n_high) {
        uint32_t low = todo[--n_low], high = todo[n - n_high];

        aliases[low] = (struct alias) { weights[low], high };
        weights[high] -= 1 - weights[low];
        if (weights[high] < 1) {
            n_high--;
            todo[n_low++] = high;
        }
    }
    free(todo);
}

struct skipgram_sampler *
skipgram_sampler_create(const struct corpus *c, double often)
{
    struct skipgram_sampler *sampler = allocate(1, sizeof *sampler);
    double *weights = allocate(c->n_words, sizeof *weights), sum = 0;

    sampler->n = c->n_words;
    sampler->aliases = allocate(c->n_words, sizeof *sampler->aliases);
    sampler->keeps = allocate(c->n_words, sizeof *sampler->keeps);
    for (uint32_t i = 0; i < c->n_words; i++) {
        double part = (double) c->counts[i] / c->n;

        sum += weights[i] = pow(c->counts[i], 0.75);
        sampler->keeps[i] = part > often && often
                            ? sqrt(often / part) + often / part : 1;
    }
    for (uint32_t i = 0; i < c->n_words; i++) {
        weights[i] *= c->n_words / sum;
    }
    fill_aliases(c->n_words, weights, sampler->aliases);
    free(weights);
    return sampler;
}

void
skipgram_sampler_destroy(struct skipgram_sampler *sampler)
{
    if (sampler) {
        free(sampler->aliases);
        free(sampler->keeps);
        free(sampler);
    }
}

uint32_t
skipgram_sampler_draw(const struct skipgram_sampler *sampler,
                      struct seeded *rs)
{
    uint32_t i = seeded_below(rs, sampler->n);
    const struct alias *alias = &sampler->aliases[i];

    return seeded_uniform(rs) < alias->keep ? i : alias->other;
}

float
skipgram_sampler_keeps(const struct skipgram_sampler *sampler, uint32_t word)
{
    return sampler->keeps[word];
}

struct skipgram {
    struct node_task task;
    struct corpus *corpus;
    struct skipgram_sampler *sampler;
    size_t n_train;             /* Words of the text; the others are held
                                 * out. */
};

/* Where in the text pairs come from: each word that is kept, with those that
 * are near it. */
struct cursor {
    struct seeded random;
    size_t begin, end;          /* Part of the text. */
    size_t word;                /* The next one. */
    size_t centre;              /* The present one; */
    size_t near, near_end;      /* what is near it, from the next one on. */
};

/* Of a worker. */
struct state {
    struct cursor cursor;       /* Of the epoch. */
    struct seeded wrong;
    struct prefetch *ahead;
    struct batches *batches;
    struct gather *gather;      /* A pair, to validate. */
    size_t *places;             /* Its indices. */
};

static struct skipgram *
skipgram_cast(const struct node_task *task)
{
    return (struct skipgram *) task;
}

static char *
skipgram_create(const struct options *o, int n_workers,
                struct node_task **taskp)
{
    struct skipgram *sg = allocate(1, sizeof *sg);
    char *error = corpus_open(o->data, &(struct corpus_config) {
        .n_words = o->vocabulary, .n = o->samples,
        .min_count = o->min_count, .seed = o->seed,
    }, &sg->corpus);

    sg->task = (struct node_task) { &node_task_skipgram, o };
    *taskp = &sg->task;
    if (!error) {
        sg->sampler = skipgram_sampler_create(sg->corpus, o->subsample);
        sg->n_train = sg->corpus->n - sg->corpus->n / HELD_OUT;
    }
    return error;
}

static void
skipgram_destroy(struct node_task *task)
{
    struct skipgram *sg = skipgram_cast(task);

    corpus_destroy(sg->corpus);
    skipgram_sampler_destroy(sg->sampler);
    free(sg);
}

static int
skipgram_ranges(const struct node_task *task, struct key_range *ranges)
{
    uint32_t n_words = skipgram_cast(task)->corpus->n_words;

    ranges[0] = (struct key_range) { 2 * (uint64_t) n_words,
                                     task->o->dimension };
    return 1;
}

/* Contexts begin as zeros. */
static void
skipgram_init(const struct node_task *task, uint64_t key, float *values)
{
    struct seeded rs;

    if (key < skipgram_cast(task)->corpus->n_words) {
        seeded_init(&rs, task->o->seed, STREAM_VALUES + key);
        for (int64_t i = 0; i < task->o->dimension; i++) {
            values[i] = (seeded_uniform(&rs) - 0.5) / task->o->dimension;
        }
    }
}

static uint64_t
context_key(const struct skipgram *sg, uint32_t word)
{
    return (uint64_t) sg->corpus->n_words + word;
}

static char *
skipgram_begin(struct node_worker *worker, void **statep)
{
    const struct options *o = worker->task->o;
    struct state *state = *statep = allocate(1, sizeof *state);
    size_t n = PAIR + o->negatives;
    size_t n_keys = 2 * (size_t) skipgram_cast(worker->task)->corpus->n_words;

    seeded_init(&state->wrong, o->seed, STREAM_WRONG + worker->index);
    state->ahead = prefetch_create(worker->keys, o->prefetch, PAIR);
    state->batches = batches_create(worker->keys, &(struct batches_size) {
        .n = o->exchange, .n_places = n, .keys = n,
        .values = n * o->dimension, .all_keys = n_keys,
        .all_values = n_keys * o->dimension,
    });
    state->gather = gather_create(worker->keys, n, n * o->dimension, false);
    state->places = allocate(n, sizeof *state->places);
    return NULL;
}

static void
skipgram_end(void *state_)
{
    struct state *state = state_;

    prefetch_destroy(state->ahead);
    batches_destroy(state->batches);
    gather_destroy(state->gather);
    free(state->places);
    free(state);
}

/* The part 'share' of the text, from word 'first' on. */
static struct cursor
begin_text(size_t first, struct shard share)
{
    size_t begin = first + share.first;

    return (struct cursor) {
        .begin = begin, .end = begin + share.n, .word = begin,
    };
}

/* Goes to the next word that is kept, and draws how far is near.  Returns
 * false at the end of the text. */
static bool
next_word(const struct skipgram *sg, struct cursor *c)
{
    const uint32_t *text = sg->corpus->text;
    size_t far;

    while (c->word < c->end && seeded_uniform(&c->random)
           >= skipgram_sampler_keeps(sg->sampler, text[c->word])) {
        c->word++;
    }
    if (c->word >= c->end) {
        return false;
    }
    c->centre = c->word++;
    far = 1 + seeded_below(&c->random, sg->task.o->window);
    c->near = c->centre > c->begin + far ? c->centre - far : c->begin;
    c->near_end = c->centre + far < c->end ? c->centre + far + 1 : c->end;
    return true;
}

/* Stores the keys of the next pair.  Returns false at the end of the text. */
static bool
next_pair(const struct skipgram *sg, struct cursor *c, uint64_t keys[PAIR])
{
    for (;;) {
        while (c->near < c->near_end) {
            size_t near = c->near++;

            if (near != c->centre) {
                keys[0] = sg->corpus->text[c->centre];
                keys[1] = context_key(sg, sg->corpus->text[near]);
                return true;
            }
        }
        if (!next_word(sg, c)) {
            return false;
        }
    }
}

/* Adds the vectors of a pair and of wrong contexts: the word, the context, the
 * wrong ones.  If 'here', wrong contexts are drawn again until they are
 * here. */
static void
add_vectors(struct node_worker *worker, struct gather *g,
            const uint64_t keys[PAIR], struct seeded *random, bool here,
            size_t places[])
{
    const struct skipgram *sg = skipgram_cast(worker->task);
    const struct options *o = worker->task->o;

    places[0] = gather_add(g, keys[0], o->dimension);
    places[1] = gather_add(g, keys[1], o->dimension);
    for (int64_t i = 0; i < o->negatives; i++) {
        int64_t n_draws = 0;
        uint64_t key;

        do {
            key = context_key(sg, skipgram_sampler_draw(sg->sampler, random));
        } while (here && node_worker_redraws(worker, key, &n_draws));
        places[PAIR + i] = gather_add(g, key, o->dimension);
    }
}

/* Adds to the gradients; returns the loss. */
static double
loss_of_pair(struct node_worker *worker, struct gather *g,
             const size_t places[])
{
    const struct options *o = worker->task->o;

    return skipgram_step(o->dimension, g->values, o->negatives, places,
                         gather_gradients(g));
}

static void
add_pair(struct node_worker *worker, void *state_, struct gather *g,
         const uint64_t keys[], size_t places[])
{
    struct state *state = state_;

    add_vectors(worker, g, keys, &state->wrong, true, places);
}

static double
step_pair(struct node_worker *worker, void *state, struct gather *g,
          const size_t places[])
{
    const struct options *o = worker->task->o;
    double loss = loss_of_pair(worker, g, places);

    (void) state;
    for (int64_t i = 0; i < PAIR + o->negatives; i++) {
        if (!gather_is_repeated(places, i)) {
            float *change = gather_gradients(g) + places[i];

            for (int64_t j = 0; j < o->dimension; j++) {
                change[j] *= -(float) o->learning_rate;
            }
            gather_change(g, places[i], o->dimension);
        }
    }
    return loss;
}

static bool
next_of_text(struct node_worker *worker, void *state_, uint64_t *keys)
{
    struct state *state = state_;

    return next_pair(skipgram_cast(worker->task), &state->cursor, keys);
}

static char *
skipgram_epoch(struct node_worker *worker, void *state_,
               struct node_task_sums *sums)
{
    static const struct node_samples samples = { PAIR, PAIR, next_of_text,
                                                 add_pair, step_pair };
    const struct skipgram *sg = skipgram_cast(worker->task);
    struct state *state = state_;

    state->cursor = begin_text(0, shard_range(sg->n_train, worker->index,
                                              worker->n));
    seeded_init(&state->cursor.random, worker->task->o->seed + worker->epoch,
                STREAM_PAIRS + worker->index);
    return node_worker_train(worker, state, &samples, state->ahead,
                             state->batches,
                             sg->n_train * worker->task->o->window, sums);
}

/* The loss of held-out pairs, which are the same ones for each caller. */
static char *
skipgram_judge(struct node_worker *worker, void *state_,
               struct node_task_sums *sums)
{
    struct state *state = state_;
    const struct skipgram *sg = skipgram_cast(worker->task);
    const struct options *o = worker->task->o;
    struct cursor cursor = begin_text(
        sg->n_train, shard_range(sg->corpus->n - sg->n_train, worker->index,
                                 worker->n));
    size_t n = shard_range(o->validation, worker->index, worker->n).n;
    struct seeded wrong;
    uint64_t keys[PAIR];
    char *error = NULL;

    seeded_init(&cursor.random, o->seed, STREAM_JUDGE + 2 * worker->index);
    seeded_init(&wrong, o->seed, STREAM_JUDGE + 2 * worker->index + 1);
    for (size_t i = 0; i < n && !error && next_pair(sg, &cursor, keys); i++) {
        gather_clear(state->gather);
        add_vectors(worker, state->gather, keys, &wrong, false, state->places);
        error = gather_pull(state->gather);
        if (!error) {
            sums->quality[0] += loss_of_pair(worker, state->gather,
                                             state->places);
            sums->n_judged++;
        }
    }
    return error;
}

const struct node_task_class node_task_skipgram = {
    .name = "skipgram",
    .qualities = { "held_out_loss" },
    .create = skipgram_create,
    .destroy = skipgram_destroy,
    .ranges = skipgram_ranges,
    .init = skipgram_init,
    .begin = skipgram_begin,
    .end = skipgram_end,
    .epoch = skipgram_epoch,
    .judge = skipgram_judge,
};

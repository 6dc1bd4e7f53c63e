/* SPDX-License-Identifier: Apache-2.0 */

#include "trainer/tasks/skipgram-step.h"

#include <math.h>
#include <stdlib.h>

#include "base/memory.h"
#include "trainer/data/corpus.h"
#include "trainer/tasks/knowledge-model.h"
#include "trainer/data/seeded.h"
#include "trainer/models/vector.h"

double
skipgram_step(size_t dimension, const float *word, size_t n_wrong,
              const float *const *contexts, float *g_word,
              float *const *g_contexts)
{
    double loss = 0;

    for (size_t i = 0; i <= n_wrong; i++) {
        float sign = i ? 1 : -1;
        float score = sign * vector_dot(dimension, word, contexts[i]);
        float slope = sign * logistic_slope(score);

        loss += logistic_loss(score);
        vector_add(dimension, slope, contexts[i], g_word);
        vector_add(dimension, slope, word, g_contexts[i]);
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

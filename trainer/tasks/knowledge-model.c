/* SPDX-License-Identifier: Apache-2.0 */

#include "trainer/tasks/knowledge-model.h"

#include <math.h>
#include <string.h>

#include "trainer/data/triples.h"
#include "trainer/models/vector.h"

double
logistic_loss(float x)
{
    return x > 0 ? x + log1p(exp(-x)) : log1p(exp(x));
}

float
logistic_slope(float x)
{
    return 1 / (1 + expf(-x));
}

static void
rescal_for_object(size_t n, const float *s, const float *r, float *q)
{
    memset(q, 0, n * sizeof *q);
    for (size_t i = 0; i < n; i++) {
        vector_add(n, s[i], r + i * n, q);
    }
}

static void
rescal_for_subject(size_t n, const float *r, const float *o, float *q)
{
    for (size_t i = 0; i < n; i++) {
        q[i] = vector_dot(n, r + i * n, o);
    }
}

static void
rescal_for_relation(size_t n, const float *s, const float *o, float *q)
{
    for (size_t i = 0; i < n; i++) {
        vector_add(n, s[i], o, q + i * n);
    }
}

const struct knowledge_model knowledge_rescal = {
    .n_floats = 1, .matrix = true, .for_object = rescal_for_object,
    .for_subject = rescal_for_subject, .for_relation = rescal_for_relation
};

/* Complex vectors: all real parts, then all imaginary parts. */
static void
complex_for_object(size_t n, const float *s, const float *r, float *restrict q)
{
    for (size_t i = 0; i < n; i++) {
        q[i] = s[i] * r[i] - s[n + i] * r[n + i];
        q[n + i] = s[i] * r[n + i] + s[n + i] * r[i];
    }
}

static void
complex_for_subject(size_t n, const float *r, const float *o,
                    float *restrict q)
{
    for (size_t i = 0; i < n; i++) {
        q[i] = r[i] * o[i] + r[n + i] * o[n + i];
        q[n + i] = r[i] * o[n + i] - r[n + i] * o[i];
    }
}

static void
complex_for_relation(size_t n, const float *s, const float *o,
                     float *restrict q)
{
    for (size_t i = 0; i < n; i++) {
        q[i] += s[i] * o[i] + s[n + i] * o[n + i];
        q[n + i] += s[i] * o[n + i] - s[n + i] * o[i];
    }
}

const struct knowledge_model knowledge_complex = {
    .n_floats = 2, .for_object = complex_for_object,
    .for_subject = complex_for_subject, .for_relation = complex_for_relation
};

/* Processes one side of a triple: 'q' is multiplied by 'right' and by each of
 * 'wrong'.  Adds to their gradients, and stores in 'sum' the sum of these
 * vectors weighted by the slopes of their losses.  Returns the loss. */
static double
classify(const struct knowledge_sample *x, size_t length, const float *q,
         size_t right, const size_t *wrong, float *sum)
{
    float score = vector_dot(length, q, x->values + right);
    float slope = -logistic_slope(-score);
    double loss = logistic_loss(-score);

    vector_add(length, slope, q, x->gradients + right);
    vector_scale(length, slope, x->values + right, sum);
    for (size_t i = 0; i < x->n_wrong; i++) {
        score = vector_dot(length, q, x->values + wrong[i]);
        slope = logistic_slope(score);
        loss += logistic_loss(score);
        vector_add(length, slope, q, x->gradients + wrong[i]);
        vector_add(length, slope, x->values + wrong[i], sum);
    }
    return loss;
}

double
knowledge_step(const struct knowledge_model *model, size_t dimension,
               const struct knowledge_sample *x, float *scratch)
{
    size_t length = model->n_floats * dimension;
    const float *s = x->values + x->s, *r = x->values + x->r;
    const float *o = x->values + x->o;
    float *q = scratch, *sum = scratch + length;
    double loss;

    model->for_object(dimension, s, r, q);
    loss = classify(x, length, q, x->o, x->wrong_o, sum);
    model->for_relation(dimension, s, sum, x->gradients + x->r);
    model->for_subject(dimension, r, sum, q);
    vector_add(length, 1, q, x->gradients + x->s);

    model->for_subject(dimension, r, o, q);
    loss += classify(x, length, q, x->s, x->wrong_s, sum);
    model->for_relation(dimension, sum, o, x->gradients + x->r);
    model->for_object(dimension, sum, r, q);
    vector_add(length, 1, q, x->gradients + x->o);
    return loss;
}

/* Returns the amount by which an entity with this score lowers the rank of the
 * right one. */
static double
worse(float score, float right)
{
    return score > right ? 1 : score == right ? 0.5 : 0;
}

static float
score(const struct knowledge_rank_in *in, size_t length, const float *q,
      uint32_t entity)
{
    return vector_dot(length, q, in->entities + entity * in->stride);
}

/* 'known' has all right entities, including 'right'. */
static void
add_rank(const struct knowledge_rank_in *in, const float *q, uint32_t right,
         const uint32_t *known, size_t n_known, struct knowledge_ranks *ranks)
{
    size_t length = in->model->n_floats * in->dimension;
    float goal = score(in, length, q, right);
    double rank = 1;

    for (size_t i = 0; i < in->n_entities; i++) {
        rank += worse(score(in, length, q, i), goal);
    }
    for (size_t i = 0; i < n_known; i++) {
        rank -= worse(score(in, length, q, known[i]), goal);
    }
    ranks->n++;
    ranks->reciprocal += 1 / rank;
    ranks->hits10 += rank <= 10;
}

void
knowledge_rank(const struct knowledge_rank_in *in, const struct triple *t,
               const float *relation, float *q, struct knowledge_ranks *ranks)
{
    const uint32_t *known;
    size_t n;

    in->model->for_object(in->dimension,
                          in->entities + t->subject * in->stride, relation, q);
    known = triples_index_objects(in->index, t, &n);
    add_rank(in, q, t->object, known, n, ranks);

    in->model->for_subject(in->dimension, relation,
                           in->entities + t->object * in->stride, q);
    known = triples_index_subjects(in->index, t, &n);
    add_rank(in, q, t->subject, known, n, ranks);
}

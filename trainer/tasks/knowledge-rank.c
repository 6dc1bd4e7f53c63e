/* SPDX-License-Identifier: Apache-2.0 */

#include "trainer/tasks/knowledge-rank.h"

#include <stdint.h>

#include "trainer/tasks/knowledge-model.h"
#include "trainer/data/triples.h"
#include "trainer/models/vector.h"

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
    size_t length = in->model->entity_length(in->dimension);
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
               const float *relation, float *q,
               struct knowledge_ranks *ranks)
{
    const uint32_t *known;
    size_t n;

    in->model->for_object(in->dimension,
                          in->entities + t->subject * in->stride, relation,
                          q);
    known = triples_index_objects(in->index, t, &n);
    add_rank(in, q, t->object, known, n, ranks);

    in->model->for_subject(in->dimension, relation,
                           in->entities + t->object * in->stride, q);
    known = triples_index_subjects(in->index, t, &n);
    add_rank(in, q, t->subject, known, n, ranks);
}

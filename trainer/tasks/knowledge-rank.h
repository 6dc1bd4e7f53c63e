/* SPDX-License-Identifier: Apache-2.0 */

#ifndef KNOWLEDGE_RANK_H
#define KNOWLEDGE_RANK_H 1

/* Quality of a model of a knowledge graph: ranks of test triples.
 *
 * For each triple, all entities are ranked by their score as its object and as
 * its subject.  The ranking is filtered: entities that are right by another
 * known triple are not counted.  Of entities with an equal score, half count.
 *
 * The caller owns all data; one thread. */

#include <stddef.h>

struct knowledge_model;
struct triple;
struct triples_index;

struct knowledge_rank_in {
    const struct knowledge_model *model;
    size_t dimension;
    const struct triples_index *index;
    size_t n_entities;
    const float *entities;      /* Vectors of all entities. */
    size_t stride;              /* Distance between vectors, in floats. */
};

struct knowledge_ranks {
    size_t n;                   /* Number of ranks, two per triple. */
    double reciprocal;          /* Sum of 1 / rank. */
    double hits10;              /* Number of ranks up to 10. */
};

/* Adds both ranks of the triple.  'scratch' has space for an entity. */
void knowledge_rank(const struct knowledge_rank_in *, const struct triple *,
                    const float *relation, float *scratch,
                    struct knowledge_ranks *);

#endif /* trainer/tasks/knowledge-rank.h */

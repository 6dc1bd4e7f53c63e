/* SPDX-License-Identifier: Apache-2.0 */

#ifndef KNOWLEDGE_RANK_H
#define KNOWLEDGE_RANK_H 1

/* How well a model of a knowledge graph finds what was kept from it.
 *
 * For each triple, all entities are ranked as its object, and as its subject,
 * by their scores.  Filtered: an entity that is right by some other triple is
 * not counted.  Of entities with the same score half count.
 *
 * The caller owns everything; one thread. */

#include <stddef.h>

struct knowledge_model;
struct triple;
struct triples_index;

struct knowledge_rank_in {
    const struct knowledge_model *model;
    size_t dimension;
    const struct triples_index *index;
    size_t n_entities;
    const float *entities;      /* Vectors of all, */
    size_t stride;              /* so many floats apart. */
};

struct knowledge_ranks {
    size_t n;                   /* Two for each triple. */
    double reciprocal;          /* Sums: of 1 / rank, */
    double hits10;              /* of those at most 10. */
};

/* Adds both ranks of the triple.  'scratch' has place for an entity. */
void knowledge_rank(const struct knowledge_rank_in *, const struct triple *,
                    const float *relation, float *scratch,
                    struct knowledge_ranks *);

#endif /* trainer/tasks/knowledge-rank.h */

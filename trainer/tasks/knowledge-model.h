/* SPDX-License-Identifier: Apache-2.0 */

#ifndef KNOWLEDGE_MODEL_H
#define KNOWLEDGE_MODEL_H 1

/* Models of knowledge graph embeddings, and their quality.
 *
 * A model computes a score of a triple of vectors s, r, o that is linear in
 * each of them:
 *
 *    rescal      s' R o, where R is a matrix
 *    complex     the real part of the sum of s r conj(o), complex vectors
 *
 * A model therefore consists of three functions: the vectors that give the
 * score when multiplied by the object, the subject or the relation.  They are
 * also the gradients.  Because of the linearity, the weighted sum of any
 * number of negative objects acts as one object.
 *
 * A triple is trained together with negative objects and negative subjects, as
 * a classifier with logistic loss.
 *
 * Pure functions; vectors must not overlap. */

#include <stdbool.h>
#include <stddef.h>

struct triple;
struct triples_index;

struct knowledge_model {
    size_t n_floats;            /* Floats of an entity per dimension. */
    bool matrix;                /* A relation has the square of an entity's
                                 * floats, otherwise as many. */

    /* Store the vector 'q' that gives the score when multiplied by the object,
     * or by the subject. */
    void (*for_object)(size_t dimension, const float *s, const float *r,
                       float *q);
    void (*for_subject)(size_t dimension, const float *r, const float *o,
                        float *q);

    /* Adds the vector for the relation to 'q'. */
    void (*for_relation)(size_t dimension, const float *s, const float *o,
                         float *q);
};

extern const struct knowledge_model knowledge_rescal, knowledge_complex;

/* A triple, and negative samples for its ends. */
struct knowledge_sample {
    const float *values;        /* All vectors, by the indices below. */
    float *gradients;           /* Of the loss, by the same indices. */
    size_t s, r, o;
    size_t n_wrong;             /* Number of negative objects and of
                                 * negative subjects. */
    const size_t *wrong_o, *wrong_s;
};

/* Adds to the gradients of a sample and returns its loss.  'scratch' has space
 * for two entities. */
double knowledge_step(const struct knowledge_model *, size_t dimension,
                      const struct knowledge_sample *, float *scratch);

/* Quality of a model: ranks of test triples.  For each triple, all entities
 * are ranked by their score as its object and as its subject.  The ranking is
 * filtered: entities that are right by another known triple are not counted.
 * Of entities with an equal score, half count. */
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

/* log(1 + exp(x)), and its derivative. */
double logistic_loss(float x);
float logistic_slope(float x);

#endif /* trainer/tasks/knowledge-model.h */

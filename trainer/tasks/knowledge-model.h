/* SPDX-License-Identifier: Apache-2.0 */

#ifndef KNOWLEDGE_MODEL_H
#define KNOWLEDGE_MODEL_H 1

/* What knowledge-graph embeddings compute.
 *
 *
 * Motivation
 * ==========
 *
 * A model gives a triple of vectors s, r, o a score that is linear in each of
 * the three:
 *
 *    rescal      s' R o, where R is a matrix
 *    complex     the real part of the sum of s r conj(o), complex vectors
 *
 * So a model is three functions: the vector that is multiplied by an object to
 * give the score, that for a subject, and that for a relation.  They are the
 * gradients, too; and, being linear, they turn any number of wrong objects
 * into one by their weighted sum.
 *
 * A triple is trained together with wrong objects and wrong subjects, as a
 * classifier of right and wrong with logistic loss.
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * Pure functions of what they are given; vectors do not overlap. */

#include <stdbool.h>
#include <stddef.h>

struct knowledge_model {
    const char *name;

    /* Floats of vectors, by the dimension that a person asks for. */
    size_t (*entity_length)(size_t dimension);
    size_t (*relation_length)(size_t dimension);

    /* 'q', of which the score is the product with the object, or with the
     * subject. */
    void (*for_object)(size_t dimension, const float *s, const float *r,
                       float *q);
    void (*for_subject)(size_t dimension, const float *r, const float *o,
                        float *q);

    /* Adds that for the relation to 'q'. */
    void (*for_relation)(size_t dimension, const float *s, const float *o,
                         float *q);
};

extern const struct knowledge_model knowledge_rescal, knowledge_complex;

/* A triple, and what is wrong in its place. */
struct knowledge_sample {
    const float *s, *r, *o;
    size_t n_wrong;             /* Of each kind. */
    const float *const *wrong_o, *const *wrong_s;
};

/* Where to add the loss's gradients. */
struct knowledge_gradient {
    float *s, *r, *o;
    float *const *wrong_o, *const *wrong_s;
};

/* Returns the loss.  'scratch' has place for two entities. */
double knowledge_step(const struct knowledge_model *, size_t dimension,
                      const struct knowledge_sample *,
                      const struct knowledge_gradient *, float *scratch);

/* log(1 + exp(x)), and its derivative. */
double logistic_loss(float x);
float logistic_slope(float x);

#endif /* trainer/tasks/knowledge-model.h */

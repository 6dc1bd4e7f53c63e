/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SKIPGRAM_H
#define SKIPGRAM_H 1

/* What word vectors compute: skip-gram with negative sampling.
 *
 * A word's vector is to have a high product with the context vector of a word
 * that stands near it, and low ones with those of words that do not, by
 * logistic loss.
 *
 * Words are drawn by powers of how often they occur: frequent ones are left
 * out at times, and wrong ones are drawn by counts to the 3/4.
 *
 * Pure functions, and a sampler that is not changed once made. */

#include <stddef.h>
#include <stdint.h>

struct corpus;
struct seeded;

/* 'places' are indices of vectors among 'values', and of their gradients: the
 * word's, the right context's, and 'n_wrong' wrong ones.  Adds to the
 * gradients; returns the loss. */
double skipgram_step(size_t dimension, const float *values, size_t n_wrong,
                     const size_t *places, float *gradients);

struct skipgram_sampler;

/* 'often' is the part of a text above which words are left out at times; 0:
 * none is. */
struct skipgram_sampler *skipgram_sampler_create(const struct corpus *,
                                                 double often);
void skipgram_sampler_destroy(struct skipgram_sampler *);

/* A word by its count to the 3/4, in constant time. */
uint32_t skipgram_sampler_draw(const struct skipgram_sampler *,
                               struct seeded *);

/* The chance of a word of the text to be kept. */
float skipgram_sampler_keeps(const struct skipgram_sampler *, uint32_t word);

#endif /* trainer/tasks/skipgram.h */

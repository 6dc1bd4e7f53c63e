/* SPDX-License-Identifier: Apache-2.0 */

#ifndef CORPUS_H
#define CORPUS_H 1

/* A text as numbers of words.
 *
 *
 * Motivation
 * ==========
 *
 * All nodes of a job read or make the same text, and each trains on its part.
 * Words are what is between blanks; words that occur seldom are left out.
 * They are numbered by how often they occur, the most frequent one is 0.
 *
 * Generated text is of sentences, each about one of some topics that have
 * words of their own, beside words that all have.
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * Plain data, not changed once made; one thread makes it. */

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct corpus {
    uint32_t n_words;           /* Different ones. */
    size_t n, max_n;
    uint32_t *text;
    uint64_t *counts;           /* Of each word. */
};

struct corpus_config {
    uint32_t n_words;           /* Of a generated text. */
    size_t n;                   /* Likewise; of a file at most so many. */
    uint32_t min_count;         /* Of a file, words there are so often. */
    uint64_t seed;
};

#define CORPUS_MAX_WORD 255     /* Bytes. */

/* 'source' is "generated", or a file.  Returns NULL or a message. */
char *corpus_open(const char *source, const struct corpus_config *,
                  struct corpus **);
void corpus_destroy(struct corpus *);

/* Reads at most 'config->n' words.  'file' is that of messages. */
char *corpus_read(const char *file, FILE *stream,
                  const struct corpus_config *, struct corpus *);

#endif /* trainer/data/corpus.h */

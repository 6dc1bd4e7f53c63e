/* SPDX-License-Identifier: Apache-2.0 */

#ifndef CORPUS_H
#define CORPUS_H 1

/* Text as a sequence of word numbers.
 *
 * All nodes of a job read or generate the same text, and each trains on its
 * part.  Words are separated by white space; rare words are dropped.  They are
 * numbered by frequency, the most frequent one is 0.
 *
 * Generated text consists of sentences, each about one topic with words of its
 * own, besides words that belong to no topic.
 *
 * Plain data, constant after creation by one thread. */

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct corpus {
    uint32_t n_words;           /* Number of different words. */
    size_t n, max_n;
    uint32_t *text;
    uint64_t *counts;           /* Occurrences of each word. */
};

struct corpus_config {
    uint32_t n_words;           /* Generated text: number of different
                                 * words. */
    size_t n;                   /* Generated text: length; file: maximum
                                 * length. */
    uint32_t min_count;         /* File: minimum number of occurrences of a
                                 * word. */
    uint64_t seed;
};

#define CORPUS_MAX_WORD 255     /* Bytes. */

/* Opens 'source', "generated" or a file.  Returns NULL or a message. */
char *corpus_open(const char *source, const struct corpus_config *,
                  struct corpus **);
void corpus_destroy(struct corpus *);

/* Reads at most 'config->n' words.  'file' is the name for messages. */
char *corpus_read(const char *file, FILE *stream,
                  const struct corpus_config *, struct corpus *);

#endif /* trainer/data/corpus.h */

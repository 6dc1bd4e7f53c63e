/* SPDX-License-Identifier: Apache-2.0 */

/* Fuzzes the readers of ratings, triples and words: they reject a file with a
 * message of one line, or the values are within their bounds.  The first byte
 * selects the kind of file. */

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/fuzz/fuzz-file.h"
#include "trainer/data/corpus.h"
#include "trainer/data/ratings.h"
#include "trainer/data/triples.h"

#define MAX_SAMPLES 50

static char *
read_ratings(FILE *stream)
{
    struct ratings r = { .n = 0 };
    char *error = ratings_read("f", stream, MAX_SAMPLES, &r);

    must(r.n <= MAX_SAMPLES);
    for (size_t i = 0; i < r.n; i++) {
        must(isfinite(r.all[i].value));
    }
    free(r.all);
    return error;
}

static char *
read_triples(FILE *stream, struct triples_names *names)
{
    struct triples t = { .n = 0 };
    char *error = triples_read("f", stream, names, &t);

    for (size_t i = 0; i < t.n; i++) {
        must(t.all[i].subject < t.n_entities);
        must(t.all[i].object < t.n_entities);
        must(t.all[i].relation < t.n_relations);
    }
    if (!error) {
        struct triples_index *index = triples_index_create(&t);

        for (size_t i = 0; i < t.n; i++) {
            size_t n;

            triples_index_objects(index, &t.all[i], &n);
            must(n >= 1);
            triples_index_subjects(index, &t.all[i], &n);
            must(n >= 1);
        }
        triples_index_destroy(index);
    }
    triples_names_destroy(names);
    free(t.all);
    return error;
}

static char *
read_corpus(FILE *stream)
{
    struct corpus_config config = { .n = MAX_SAMPLES, .min_count = 2 };
    struct corpus c = { .n = 0 };
    char *error = corpus_read("f", stream, &config, &c);

    must(c.n <= MAX_SAMPLES);
    for (size_t i = 0; i < c.n; i++) {
        must(c.text[i] < c.n_words && c.counts[c.text[i]] >= 2);
    }
    free(c.text);
    free(c.counts);
    return error;
}

static char *
read_kind(int kind, FILE *stream)
{
    switch (kind % 4) {
    case 0:
        return read_ratings(stream);
    case 1:
        return read_triples(stream, triples_names_create());
    case 2:
        return read_triples(stream, NULL);
    default:
        return read_corpus(stream);
    }
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_file(data, size, read_kind);
    return 0;
}

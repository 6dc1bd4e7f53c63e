/* SPDX-License-Identifier: Apache-2.0 */

#include "trainer/data/corpus.h"

#include <math.h>
#include <search.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "trainer/data/readers.h"
#include "trainer/data/seeded.h"

#define N_TOPICS 20             /* Topics of a generated text. */
#define SENTENCE 20             /* Words of a sentence. */
#define COMMON 0.3              /* Fraction of the words that belong to no
                                 * topic. */

enum { STREAM_TEXT = 0x5732 };

struct word {
    uint64_t count;
    uint32_t number;            /* Order of appearance, later rank by
                                 * frequency. */
    char text[];
};

struct reading {
    void *tree;                 /* Tree of tsearch(). */
    struct word **words;        /* Words in order of appearance. */
    size_t n_words, max_words;
};

static int
compare_texts(const void *a, const void *b)
{
    return strcmp(((const struct word *) a)->text,
                  ((const struct word *) b)->text);
}

/* Orders words by decreasing frequency, then by appearance. */
static int
compare_counts(const void *a_, const void *b_)
{
    const struct word *a = *(struct word *const *) a_;
    const struct word *b = *(struct word *const *) b_;

    if (a->count != b->count) {
        return a->count > b->count ? -1 : 1;
    }
    return a->number < b->number ? -1 : a->number > b->number;
}

static void
add(struct corpus *c, uint32_t word)
{
    c->text = grow(c->text, c->n, &c->max_n, sizeof *c->text);
    c->text[c->n++] = word;
}

static void
add_word(struct reading *reading, const char *text, struct corpus *c)
{
    size_t size = strlen(text) + 1;
    struct word *word = allocate(1, sizeof *word + size), **found;

    memcpy(word->text, text, size);
    found = tsearch(word, &reading->tree, compare_texts);
    if (!found) {
        abort();                /* Out of memory. */
    }
    if (*found != word) {
        free(word);
    } else {
        reading->words = grow(reading->words, reading->n_words,
                              &reading->max_words, sizeof *reading->words);
        word->number = reading->n_words;
        reading->words[reading->n_words++] = word;
    }
    (*found)->count++;
    add(c, (*found)->number);
}

/* Drops rare words and numbers the others by frequency. */
static void
renumber(struct reading *reading, uint32_t min_count, struct corpus *c)
{
    uint32_t *numbers = allocate(reading->n_words + 1, sizeof *numbers);
    size_t n = 0;

    if (reading->n_words) {
        qsort(reading->words, reading->n_words, sizeof *reading->words,
              compare_counts);
    }
    c->counts = allocate(reading->n_words + 1, sizeof *c->counts);
    for (size_t i = 0; i < reading->n_words; i++) {
        const struct word *word = reading->words[i];

        numbers[word->number] = UINT32_MAX;
        if (word->count >= min_count) {
            numbers[word->number] = c->n_words;
            c->counts[c->n_words++] = word->count;
        }
    }
    for (size_t i = 0; i < c->n; i++) {
        uint32_t number = numbers[c->text[i]];

        if (number != UINT32_MAX) {
            c->text[n++] = number;
        }
    }
    c->n = n;
    free(numbers);
}

/* Reads the next word.  Returns false at the end.  A word that is too long is
 * cut one byte after the limit. */
static bool
read_word(FILE *stream, char word[CORPUS_MAX_WORD + 2], size_t *line)
{
    size_t length = 0;
    int c;

    while ((c = getc(stream)) != EOF) {
        bool blank = !c || c == ' ' || c == '\t' || c == '\r' || c == '\n';

        if (blank && length) {
            ungetc(c, stream);
            break;
        }
        *line += c == '\n';
        if (!blank) {
            word[length++] = c;
            if (length > CORPUS_MAX_WORD) {
                break;
            }
        }
    }
    word[length] = '\0';
    return length;
}

char *
corpus_read(const char *file, FILE *stream,
            const struct corpus_config *config, struct corpus *c)
{
    struct reading reading = { .n_words = 0 };
    char word[CORPUS_MAX_WORD + 2], *error = NULL;
    size_t line = 1;

    while (!error && c->n < config->n && read_word(stream, word, &line)) {
        if (strlen(word) > CORPUS_MAX_WORD) {
            error = message(
                "%s:%zu: a word of more than %d bytes; expected a shorter one",
                file, line, CORPUS_MAX_WORD);
        } else {
            add_word(&reading, word, c);
        }
    }
    renumber(&reading, config->min_count, c);
    tdestroy(reading.tree, free);
    free(reading.words);
    return error;
}

static char *
read_file(const char *file, const struct corpus_config *config,
          struct corpus *c)
{
    FILE *stream;
    char *error = data_open(file, &stream);

    error =
        error ? error
              : data_close(file, stream, corpus_read(file, stream, config, c));
    if (!error && (c->n_words < 2 || c->n < 100)) {
        error = message("%s: %zu words of %u kinds that are there %u times, "
                        "at least 100 of 2 are needed", file, c->n,
                        c->n_words, config->min_count);
    }
    return error;
}

/* Draws a word by Zipf's law of 'n' words, by the inverse of its integral. */
static uint32_t
draw_zipf(struct seeded *rs, uint32_t n)
{
    uint32_t rank = pow(n + 1.0, seeded_uniform(rs)) - 1;

    return rank < n ? rank : n - 1;
}

/* Assigns words to topics in turn, so that frequent words have low numbers. */
static void
generate(const struct corpus_config *config, struct corpus *c)
{
    uint32_t n_topics = config->n_words >= 4 * N_TOPICS ? N_TOPICS : 1;
    uint32_t n_own = config->n_words / (n_topics + 1), topic = 0;
    struct seeded rs;

    seeded_init(&rs, config->seed, STREAM_TEXT);
    c->n_words = config->n_words;
    c->counts = allocate(c->n_words, sizeof *c->counts);
    for (size_t i = 0; i < config->n; i++) {
        uint32_t word;

        if (i % SENTENCE == 0) {
            topic = 1 + seeded_below(&rs, n_topics);
        }
        word = draw_zipf(&rs, n_own) * (n_topics + 1);
        word += seeded_uniform(&rs) < COMMON ? 0 : topic;
        c->counts[word]++;
        add(c, word);
    }
}

char *
corpus_open(const char *source, const struct corpus_config *config,
            struct corpus **cp)
{
    struct corpus *c = allocate(1, sizeof *c);
    char *error = NULL;

    if (!strcmp(source, "generated")) {
        generate(config, c);
    } else {
        error = read_file(source, config, c);
    }
    if (error) {
        corpus_destroy(c);
        c = NULL;
    }
    *cp = c;
    return error;
}

void
corpus_destroy(struct corpus *c)
{
    if (c) {
        free(c->text);
        free(c->counts);
        free(c);
    }
}

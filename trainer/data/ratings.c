/* SPDX-License-Identifier: Apache-2.0 */

#include "trainer/data/ratings.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/compare.h"
#include "base/memory.h"
#include "trainer/data/fields.h"
#include "trainer/data/readers.h"
#include "trainer/data/seeded.h"

#define HELD_OUT 20             /* One rating in HELD_OUT is for validation. */
#define TRUE_RANK 8             /* Rank of a generated matrix. */
#define NOISE 0.1               /* Deviation of the noise; the matrix itself
                                 * has 1. */

/* Streams of the seed, different from those of other data. */
enum { STREAM_FACTORS = 0x4d46, STREAM_PLACES, STREAM_ORDER };

static void
add(struct ratings *r, const struct rating *rating)
{
    r->all = grow(r->all, r->n, &r->max_n, sizeof *r->all);
    r->all[r->n++] = *rating;
}

static bool
read_line(char *s, struct rating *rating)
{
    static const char *const separators[] = { "::", ",", "\t" };
    const char *separator = NULL;
    uint32_t time;

    if (!fields_integer(&s, &rating->row)) {
        return false;
    }
    for (int i = 0; i < 3 && !separator; i++) {
        separator = fields_word(&s, separators[i]) ? separators[i] : NULL;
    }
    return separator && fields_integer(&s, &rating->column)
           && fields_word(&s, separator) && fields_number(&s, &rating->value)
           && (fields_end(s) || (fields_word(&s, separator)
                                 && fields_integer(&s, &time)
                                 && fields_end(s)));
}

char *
ratings_read(const char *name, FILE *stream, size_t max_n, struct ratings *r)
{
    char *text = NULL, *error = NULL;
    size_t size = 0;

    for (size_t line = 1; r->n < max_n && !error; line++) {
        struct rating rating;

        if (getline(&text, &size, stream) < 0) {
            break;
        }
        if (read_line(text, &rating)) {
            add(r, &rating);
        } else if (!fields_end(text)
                   && (line > 1 || strncmp(text, "userId,", 7))) {
            error = message(
                "%s:%zu: not a rating; expected \"ROW::COLUMN::VALUE\" "
                "with \"::\", commas or tabs, and a time after "
                "it",
                name, line);
        }
    }
    free(text);
    return error;
}

/* Renumbers the rows or columns, at 'offset' in a rating, from 0 on.  Returns
 * their number. */
static uint32_t
renumber(struct ratings *r, size_t offset)
{
    uint32_t *known = allocate(r->n + 1, sizeof *known), n = 0;

    for (size_t i = 0; i < r->n; i++) {
        known[i] = *(uint32_t *) ((char *) &r->all[i] + offset);
    }
    qsort(known, r->n, sizeof *known, compare_u32);
    for (size_t i = 0; i < r->n; i++) {
        if (!i || known[i] != known[n - 1]) {
            known[n++] = known[i];
        }
    }
    for (size_t i = 0; i < r->n; i++) {
        uint32_t *x = (uint32_t *) ((char *) &r->all[i] + offset);

        *x = (uint32_t *) bsearch(x, known, n, sizeof *known, compare_u32)
             - known;
    }
    free(known);
    return n;
}

static char *
read_file(const char *name, size_t max_n, struct ratings *r)
{
    FILE *stream;
    char *error = data_open(name, &stream);

    error =
        error ? error
              : data_close(name, stream, ratings_read(name, stream, max_n, r));
    if (!error && r->n < HELD_OUT) {
        error = message("%s: %zu ratings, at least %d are needed", name, r->n,
                        HELD_OUT);
    }
    r->n_rows = renumber(r, offsetof(struct rating, row));
    r->n_columns = renumber(r, offsetof(struct rating, column));
    return error;
}

/* Draws 'n' vectors with products of variance 1. */
static float *
draw_factors(struct seeded *rs, size_t n)
{
    float *factors = allocate(n * TRUE_RANK, sizeof *factors);

    for (size_t i = 0; i < n * TRUE_RANK; i++) {
        factors[i] = seeded_normal(rs) / sqrt(sqrt(TRUE_RANK));
    }
    return factors;
}

/* Generates ratings.  The most popular tenth of the columns has a fifth of the
 * ratings. */
static void
generate(const struct ratings_config *config, struct ratings *r)
{
    struct seeded rs;
    float *rows, *columns;

    seeded_init(&rs, config->seed, STREAM_FACTORS);
    rows = draw_factors(&rs, config->n_rows);
    columns = draw_factors(&rs, config->n_columns);
    seeded_init(&rs, config->seed, STREAM_PLACES);
    r->n_rows = config->n_rows;
    r->n_columns = config->n_columns;
    for (size_t i = 0; i < config->n; i++) {
        struct rating rating = {
            .row = seeded_below(&rs, r->n_rows),
            .column = r->n_columns * pow(seeded_uniform(&rs), 1.4),
            .value = NOISE * seeded_normal(&rs),
        };

        for (int k = 0; k < TRUE_RANK; k++) {
            rating.value += rows[(size_t) rating.row * TRUE_RANK + k]
                            * columns[(size_t) rating.column * TRUE_RANK + k];
        }
        add(r, &rating);
    }
    free(rows);
    free(columns);
}

/* Shuffles the ratings, so that the last ones are a random sample. */
static void
shuffle(struct ratings *r, uint64_t seed)
{
    struct seeded rs;

    seeded_init(&rs, seed, STREAM_ORDER);
    for (size_t i = r->n; i > 1; i--) {
        size_t j = seeded_below(&rs, i);
        struct rating last = r->all[i - 1];

        r->all[i - 1] = r->all[j];
        r->all[j] = last;
    }
}

char *
ratings_open(const char *source, const struct ratings_config *config,
             struct ratings **rp)
{
    struct ratings *r = allocate(1, sizeof *r);
    char *error = NULL;

    if (!strcmp(source, "generated")) {
        generate(config, r);
    } else {
        error = read_file(source, config->n, r);
    }
    if (error) {
        ratings_destroy(r);
        r = NULL;
    } else {
        shuffle(r, config->seed);
        r->n_train = r->n - r->n / HELD_OUT;
        if (r->n > r->n_train + config->n_held) {
            r->n = r->n_train + config->n_held;
        }
    }
    *rp = r;
    return error;
}

void
ratings_destroy(struct ratings *r)
{
    if (r) {
        free(r->all);
        free(r);
    }
}

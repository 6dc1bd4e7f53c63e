/* SPDX-License-Identifier: Apache-2.0 */

/* Sparse samples of two classes in LibSVM's text form. */

#include "trainer/data/dataset.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "trainer/data/fields.h"
#include "trainer/data/readers.h"

#define MAX_KEYS ((size_t) UINT32_MAX)  /* Largest number of keys in all
                                         * rows. */

static void
reserve(struct libsvm *f)
{
    if (f->n + 1 >= f->max_n) {
        f->max_n = f->max_n ? 2 * f->max_n : 256;
        f->labels = reallocate(f->labels, f->max_n, sizeof *f->labels);
        f->rows.starts = reallocate(f->rows.starts, f->max_n,
                                    sizeof *f->rows.starts);
        f->rows.starts[f->n] = f->n_keys;
    }
    if (f->n_keys >= f->max_keys) {
        f->max_keys = f->max_keys ? 2 * f->max_keys : 4096;
        f->rows.keys = reallocate(f->rows.keys, f->max_keys,
                                  sizeof *f->rows.keys);
        f->rows.values = reallocate(f->rows.values, f->max_keys,
                                    sizeof *f->rows.values);
    }
}

static bool
is_end(char c)
{
    return !c || c == '\n' || c == '\r' || c == '#';
}

static char *
skip_blanks(char *s)
{
    return s + strspn(s, " \t");
}

/* Parses "key:value" at '*s' and moves '*s' behind it.  Returns false if it is
 * invalid. */
static bool
read_pair(char **s, uint32_t n_inputs, uint32_t last, uint32_t *key,
          float *value)
{
    return fields_integer(s, key) && *key > last && *key <= n_inputs
           && fields_word(s, ":") && fields_number(s, value)
           && (is_end(**s) || **s == ' ' || **s == '\t');
}

static char *
read_line(const char *name, size_t line, char *s, int n_inputs,
          struct libsvm *f)
{
    uint32_t last = 0, key;
    char *end;

    reserve(f);
    f->labels[f->n] = strtod(s, &end);
    if (end == s || !isfinite(f->labels[f->n])
        || !(is_end(*end) || *end == ' ' || *end == '\t')) {
        return message("%s:%zu: not a label, a number is needed", name, line);
    }
    for (s = skip_blanks(end); !is_end(*s); s = skip_blanks(s)) {
        float value;

        if (f->n_keys >= MAX_KEYS
            || !read_pair(&s, n_inputs, last, &key, &value)) {
            return message(
                "%s:%zu: not a \"key:value\" after %u; expected keys up "
                "to %d that ascend",
                name, line, last, n_inputs);
        }
        reserve(f);
        f->rows.keys[f->n_keys] = key - 1;
        f->rows.values[f->n_keys++] = value;
        last = key;
    }
    f->rows.starts[++f->n] = f->n_keys;
    return NULL;
}

char *
libsvm_read(const char *name, FILE *stream, size_t max_n, int n_inputs,
            struct libsvm *f)
{
    char *text = NULL, *error = NULL;
    size_t size = 0;

    for (size_t line = 1; f->n < max_n && !error; line++) {
        char *s;

        if (getline(&text, &size, stream) < 0) {
            break;
        }
        s = skip_blanks(text);
        if (!is_end(*s)) {
            error = read_line(name, line, s, n_inputs, f);
        }
    }
    free(text);
    return error;
}

void
libsvm_uninit(struct libsvm *f)
{
    free(f->labels);
    free(f->rows.starts);
    free(f->rows.keys);
    free(f->rows.values);
}

static char *
read_file(const char *name, size_t max_n, int n_inputs, struct libsvm *f)
{
    FILE *stream;
    char *error = data_open(name, &stream);

    return error ? error
                 : data_close(name, stream,
                              libsvm_read(name, stream, max_n, n_inputs, f));
}

/* Determines the two labels; the smaller one is class 0. */
static char *
find_labels(const char *name, const struct libsvm *f, double labels[2])
{
    labels[0] = INFINITY;
    labels[1] = -INFINITY;
    for (size_t i = 0; i < f->n; i++) {
        labels[0] = fmin(labels[0], f->labels[i]);
        labels[1] = fmax(labels[1], f->labels[i]);
    }
    for (size_t i = 0; i < f->n; i++) {
        if (f->labels[i] != labels[0] && f->labels[i] != labels[1]) {
            return message("%s: labels %g, %g and %g; expected two", name,
                           labels[0], f->labels[i], labels[1]);
        }
    }
    if (!f->n || labels[0] == labels[1]) {
        return message("%s: %zu samples of one label, two labels are needed",
                       name, f->n);
    }
    return NULL;
}

/* Copies 'n' rows from 'first' on. */
static void
take(const struct libsvm *f, size_t first, size_t n, struct sparse *to)
{
    const struct sparse *from = &f->rows;
    size_t at = from->starts[first], n_keys = from->starts[first + n] - at;

    to->starts = allocate(n + 1, sizeof *to->starts);
    to->keys = allocate(n_keys, sizeof *to->keys);
    to->values = allocate(n_keys, sizeof *to->values);
    for (size_t i = 0; i <= n; i++) {
        to->starts[i] = from->starts[first + i] - at;
    }
    if (n_keys) {
        memcpy(to->keys, from->keys + at, n_keys * sizeof *to->keys);
        memcpy(to->values, from->values + at, n_keys * sizeof *to->values);
    }
}

/* Creates the data set: the first 'n_train' samples for training, all others
 * for validation. */
static char *
make_dataset(const char *name, const struct libsvm *f, size_t n_train,
             int n_inputs, struct dataset **dsp)
{
    size_t n_held = f->n - n_train;
    double labels[2];
    struct dataset *ds;
    char *error = find_labels(name, f, labels);

    if (error) {
        return error;
    }
    ds = dataset_create(0, 2, n_train, n_held);
    ds->n_inputs = n_inputs;
    take(f, 0, n_train, &ds->train);
    take(f, n_train, n_held, &ds->held);
    for (size_t i = 0; i < f->n; i++) {
        int32_t *to = i < n_train ? &ds->train_labels[i]
                                  : &ds->held_labels[i - n_train];

        *to = f->labels[i] == labels[1];
    }
    *dsp = ds;
    return NULL;
}

char *
dataset_libsvm(const struct dataset_config *config, const char *file,
               struct dataset **dsp)
{
    char *held_file = message("%s.t", file), *error;
    bool apart = data_exists(held_file);
    struct libsvm f = { .n = 0 };
    size_t n_train, n_held = !apart && config->n_held == DATASET_ALL
                                 ? DATASET_HELD
                                 : config->n_held;

    *dsp = NULL;
    error = read_file(file, config->n_train + (apart ? 0 : n_held),
                      config->n_inputs, &f);
    n_train = f.n;
    if (!error && apart) {
        error = read_file(held_file, n_train + n_held, config->n_inputs, &f);
    } else if (!error) {
        n_train = f.n > n_held ? f.n - n_held : 0;
    }
    if (!error && (!n_train || f.n == n_train)) {
        error = message("%s: %zu samples, more than the %zu to judge by are "
                        "needed",
                        file, f.n, n_held);
    }
    if (!error) {
        error = make_dataset(file, &f, n_train, config->n_inputs, dsp);
    }
    libsvm_uninit(&f);
    free(held_file);
    return error;
}

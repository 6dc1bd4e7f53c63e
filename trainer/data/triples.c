/* SPDX-License-Identifier: Apache-2.0 */

#include "trainer/data/triples.h"

#include <math.h>
#include <search.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "trainer/data/fields.h"
#include "trainer/data/readers.h"
#include "trainer/data/seeded.h"

#define HELD_OUT 20 /* Triples for one in each of the other parts. */
#define MAX_TRIPLES ((size_t) UINT32_MAX)

enum { STREAM_TRIPLES = 0x4b47 };

/* A name and its number. */
struct name {
    uint32_t number;
    char text[];
};

struct triples_names {
    void *entities, *relations; /* Trees of tsearch(). */
};

static int
compare_names(const void *a, const void *b)
{
    return strcmp(((const struct name *) a)->text,
                  ((const struct name *) b)->text);
}

struct triples_names *
triples_names_create(void)
{
    return allocate(1, sizeof(struct triples_names));
}

void
triples_names_destroy(struct triples_names *names)
{
    if (names) {
        tdestroy(names->entities, free);
        tdestroy(names->relations, free);
        free(names);
    }
}

/* Returns the number of the name in 'text', the next free one if it is new. */
static uint32_t
number_of(void **tree, const char *text, size_t length, uint32_t *n)
{
    struct name *name = allocate(1, sizeof *name + length + 1), **found;

    memcpy(name->text, text, length);
    name->number = *n;
    found = tsearch(name, tree, compare_names);
    if (!found) {
        abort();                /* Out of memory. */
    }
    if (*found == name) {
        ++*n;
    } else {
        free(name);
    }
    return (*found)->number;
}

static void
add(struct triples *t, const struct triple *triple)
{
    t->all = grow(t->all, t->n, &t->max_n, sizeof *t->all);
    t->all[t->n++] = *triple;
}

static bool
read_named(const char *s, struct triples_names *names, struct triples *t)
{
    size_t subject = strcspn(s, "\t\r\n");
    const char *relation = s + subject + 1;
    size_t n_relation = s[subject] == '\t' ? strcspn(relation, "\t\r\n") : 0;
    const char *object = relation + n_relation + 1;
    size_t n_object = n_relation && relation[n_relation] == '\t'
                      ? strcspn(object, "\t\r\n") : 0;
    struct triple triple;

    if (!subject || !n_object || !fields_end(object + n_object)) {
        return false;
    }
    triple.subject = number_of(&names->entities, s, subject, &t->n_entities);
    triple.relation = number_of(&names->relations, relation, n_relation,
                                &t->n_relations);
    triple.object = number_of(&names->entities, object, n_object,
                              &t->n_entities);
    add(t, &triple);
    return true;
}

static bool
skip_blanks(char **s)
{
    size_t n = strspn(*s, " \t");

    *s += n;
    return n;
}

/* Numbers are kept: the largest one determines the number of entities. */
static bool
read_numbered(char *s, struct triples *t)
{
    struct triple triple;
    uint32_t most;

    if (!fields_integer(&s, &triple.subject) || !skip_blanks(&s)
        || !fields_integer(&s, &triple.object) || !skip_blanks(&s)
        || !fields_integer(&s, &triple.relation) || !fields_end(s)) {
        return false;
    }
    most = triple.subject > triple.object ? triple.subject : triple.object;
    if (most >= TRIPLES_MAX_NUMBER || triple.relation >= TRIPLES_MAX_NUMBER) {
        return false;
    }
    if (most >= t->n_entities) {
        t->n_entities = most + 1;
    }
    if (triple.relation >= t->n_relations) {
        t->n_relations = triple.relation + 1;
    }
    add(t, &triple);
    return true;
}

static char *
read_count(const char *file, char *text, uint32_t *n)
{
    char *s = text;

    return fields_integer(&s, n) && fields_end(s) ? NULL
           : message("%s:1: not a number, how many lines follow is needed",
                     file);
}

char *
triples_read(const char *file, FILE *stream, struct triples_names *names,
             struct triples *t)
{
    char *text = NULL, *error = NULL;
    size_t size = 0, first = t->n, line = 0;
    uint32_t said = 0;

    while (!error && getline(&text, &size, stream) >= 0) {
        if (++line == 1 && !names) {
            error = read_count(file, text, &said);
        } else if (!fields_end(text)
                   && (t->n >= MAX_TRIPLES
                       || !(names ? read_named(text, names, t)
                                  : read_numbered(text, t)))) {
            error = message("%s:%zu: not a triple; expected %s", file, line,
                            names ? "\"SUBJECT\\tRELATION\\tOBJECT\""
                                  : "\"SUBJECT OBJECT RELATION\" by numbers "
                                    "below 2^28");
        }
    }
    free(text);
    if (!error && !names && t->n - first != said) {
        error = message("%s:1: %u lines are said to follow, not the %zu that "
                        "do", file, said, t->n - first);
    }
    return error;
}

static char *
read_folder(const char *folder, struct triples *t)
{
    static const char *const parts[] = { "train", "valid", "test" };
    struct triples_names *names = NULL;
    char *path = message("%s/train2id.txt", folder), *error = NULL;

    if (!data_exists(path)) {
        names = triples_names_create();
    }
    free(path);
    for (int i = 0; i < TRIPLES_N_PARTS && !error; i++) {
        FILE *stream;

        path = message("%s/%s%s.txt", folder, parts[i], names ? "" : "2id");
        error = data_open(path, &stream);
        t->first[i] = t->n;
        error = error ? error
                      : data_close(path, stream,
                                   triples_read(path, stream, names, t));
        if (!error && t->n == t->first[i]) {
            error = message("%s: no triples, at least one is needed", path);
        }
        free(path);
    }
    triples_names_destroy(names);
    return error;
}

/* Generates triples.  Entities are on a circle, and each relation leads from
 * subjects to objects at a distance of its own, with some noise. */
static void
generate(const struct triples_config *config, struct triples *t)
{
    size_t n_held = config->n / HELD_OUT;
    struct seeded rs;

    seeded_init(&rs, config->seed, STREAM_TRIPLES);
    t->n_entities = config->n_entities;
    t->n_relations = config->n_relations;
    for (size_t i = 0; i < config->n + 2 * n_held; i++) {
        double u = seeded_uniform(&rs);
        struct triple triple = {
            .subject = seeded_below(&rs, t->n_entities),
            .relation = t->n_relations * u * u,
        };
        uint64_t distance = seeded_permute(config->seed, triple.relation,
                                           t->n_relations)
                            * t->n_entities / t->n_relations
                            + llround(fabs(seeded_normal(&rs)));

        triple.object = (triple.subject + distance) % t->n_entities;
        add(t, &triple);
    }
    t->first[TRIPLES_VALID] = config->n;
    t->first[TRIPLES_TEST] = config->n + n_held;
}

char *
triples_open(const char *source, const struct triples_config *config,
             struct triples **tp)
{
    struct triples *t = allocate(1, sizeof *t);
    char *error = NULL;

    if (!strcmp(source, "generated")) {
        generate(config, t);
    } else {
        error = read_folder(source, t);
    }
    t->first[TRIPLES_N_PARTS] = t->n;
    if (error) {
        triples_destroy(t);
        t = NULL;
    }
    *tp = t;
    return error;
}

void
triples_destroy(struct triples *t)
{
    if (t) {
        free(t->all);
        free(t);
    }
}

/* Index entry: a relation, a known end and the other end. */
struct index_entry {
    uint32_t relation, known, other;
};

/* Sorted entries, and an array of their 'other' members. */
struct table {
    size_t n;
    struct index_entry *entries;
    uint32_t *others;
};

enum { OBJECTS, SUBJECTS };

struct triples_index {
    struct table tables[2];
};

static int
compare(const void *a_, const void *b_)
{
    const struct index_entry *a = a_, *b = b_;

    if (a->relation != b->relation) {
        return a->relation < b->relation ? -1 : 1;
    }
    if (a->known != b->known) {
        return a->known < b->known ? -1 : 1;
    }
    return a->other < b->other ? -1 : a->other > b->other;
}

static void
sort(struct table *table)
{
    size_t n = 0;

    qsort(table->entries, table->n, sizeof *table->entries, compare);
    for (size_t i = 0; i < table->n; i++) {
        if (!i || compare(&table->entries[i], &table->entries[n - 1])) {
            table->entries[n] = table->entries[i];
            table->others[n++] = table->entries[i].other;
        }
    }
    table->n = n;
}

struct triples_index *
triples_index_create(const struct triples *t)
{
    struct triples_index *index = allocate(1, sizeof *index);

    for (int i = 0; i < 2; i++) {
        struct table *table = &index->tables[i];

        table->n = t->n;
        table->entries = allocate(t->n + 1, sizeof *table->entries);
        table->others = allocate(t->n + 1, sizeof *table->others);
        for (size_t j = 0; j < t->n; j++) {
            const struct triple *x = &t->all[j];

            table->entries[j] = i == OBJECTS
                ? (struct index_entry) { x->relation, x->subject, x->object }
                : (struct index_entry) { x->relation, x->object, x->subject };
        }
        sort(table);
    }
    return index;
}

void
triples_index_destroy(struct triples_index *index)
{
    if (index) {
        for (int i = 0; i < 2; i++) {
            free(index->tables[i].entries);
            free(index->tables[i].others);
        }
        free(index);
    }
}

/* Returns the first entry that is not less than 'entry'. */
static size_t
lower_bound(const struct table *table, const struct index_entry *entry)
{
    size_t low = 0, high = table->n;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (compare(&table->entries[middle], entry) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static const uint32_t *
find(const struct table *table, uint32_t relation, uint32_t known, size_t *n)
{
    struct index_entry entry = { relation, known, 0 };
    size_t first = lower_bound(table, &entry), end = first;

    while (end < table->n && table->entries[end].relation == relation
           && table->entries[end].known == known) {
        end++;
    }
    *n = end - first;
    return table->others + first;
}

const uint32_t *
triples_index_objects(const struct triples_index *index,
                      const struct triple *t, size_t *n)
{
    return find(&index->tables[OBJECTS], t->relation, t->subject, n);
}

const uint32_t *
triples_index_subjects(const struct triples_index *index,
                       const struct triple *t, size_t *n)
{
    return find(&index->tables[SUBJECTS], t->relation, t->object, n);
}

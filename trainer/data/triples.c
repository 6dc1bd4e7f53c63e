/* SPDX-License-Identifier: Apache-2.0 */

#include "trainer/data/triples.h"

#include <errno.h>
#include <math.h>
#include <search.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "trainer/data/fields.h"
#include "trainer/data/seeded.h"

#define HELD_OUT 20             /* Of generated triples, one in so many for
                                 * each of the other parts. */
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

/* The number of the name in 'text', the next one if it is new. */
static uint32_t
number_of(void **tree, const char *text, size_t length, uint32_t *n)
{
    struct name *name = allocate(1, sizeof *name + length + 1), **found;

    memcpy(name->text, text, length);
    name->number = *n;
    found = tsearch(name, tree, compare_names);
    if (!found) {
        abort();                /* No memory. */
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
    if (t->n == t->max_n) {
        t->max_n = t->max_n ? 2 * t->max_n : 1024;
        t->all = reallocate(t->all, t->max_n, sizeof *t->all);
    }
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

/* Numbers are not made smaller: they count the entities there are. */
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
            error = message("%s:%zu: not a triple, %s is allowed", file, line,
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

    if (access(path, F_OK)) {
        names = triples_names_create();
    }
    free(path);
    for (int i = 0; i < TRIPLES_N_PARTS && !error; i++) {
        FILE *stream;

        path = message("%s/%s%s.txt", folder, parts[i], names ? "" : "2id");
        stream = fopen(path, "r");
        t->first[i] = t->n;
        error = stream ? triples_read(path, stream, names, t)
                       : message("%s: %s", path, strerror(errno));
        if (!error && t->n == t->first[i]) {
            error = message("%s: no triples, at least one is needed", path);
        }
        if (stream) {
            fclose(stream);
        }
        free(path);
    }
    triples_names_destroy(names);
    return error;
}

/* Entities stand in a circle, and each relation leads by a distance of its
 * own, and a little less or more, from subjects to objects. */
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

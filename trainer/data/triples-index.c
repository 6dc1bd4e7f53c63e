/* SPDX-License-Identifier: Apache-2.0 */

/* Triples by their relation and one end. */

#include "trainer/data/triples.h"

#include <stdlib.h>

#include "base/memory.h"

/* One end is known, the other one looked for. */
struct entry {
    uint32_t relation, known, other;
};

/* Entries in ascending order, and their 'other's apart. */
struct table {
    size_t n;
    struct entry *entries;
    uint32_t *others;
};

struct triples_index {
    struct table objects, subjects;
};

static int
compare(const void *a_, const void *b_)
{
    const struct entry *a = a_, *b = b_;

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
    struct table *const tables[] = { &index->objects, &index->subjects };

    for (int i = 0; i < 2; i++) {
        tables[i]->n = t->n;
        tables[i]->entries = allocate(t->n + 1, sizeof(struct entry));
        tables[i]->others = allocate(t->n + 1, sizeof(uint32_t));
    }
    for (size_t i = 0; i < t->n; i++) {
        const struct triple *x = &t->all[i];

        index->objects.entries[i] = (struct entry) {
            x->relation, x->subject, x->object
        };
        index->subjects.entries[i] = (struct entry) {
            x->relation, x->object, x->subject
        };
    }
    sort(&index->objects);
    sort(&index->subjects);
    return index;
}

void
triples_index_destroy(struct triples_index *index)
{
    if (index) {
        free(index->objects.entries);
        free(index->objects.others);
        free(index->subjects.entries);
        free(index->subjects.others);
        free(index);
    }
}

/* The first entry that is not below 'entry'. */
static size_t
lower_bound(const struct table *table, const struct entry *entry)
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
    struct entry entry = { relation, known, 0 };
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
    return find(&index->objects, t->relation, t->subject, n);
}

const uint32_t *
triples_index_subjects(const struct triples_index *index,
                       const struct triple *t, size_t *n)
{
    return find(&index->subjects, t->relation, t->object, n);
}

/* SPDX-License-Identifier: Apache-2.0 */

#ifndef TRIPLES_H
#define TRIPLES_H 1

/* Knowledge graph: triples of subject, relation and object.
 *
 * All nodes of a job read or generate the same triples, and each trains on its
 * part.  A folder has the triples for training, validation and test in the
 * files
 *
 *    train.txt     valid.txt     test.txt        SUBJECT\tRELATION\tOBJECT
 *    train2id.txt  valid2id.txt  test2id.txt     SUBJECT OBJECT RELATION
 *
 * The first format (FB15k-237, WN18RR) has names.  The second one (OpenKE) has
 * numbers from 0 on, and the number of lines in its first line.
 *
 * Plain data, constant after creation by one thread. */

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define TRIPLES_MAX_NUMBER (1u << 28)

struct triple {
    uint32_t subject, relation, object;
};

enum triples_part {
    TRIPLES_TRAIN,
    TRIPLES_VALID,
    TRIPLES_TEST,
    TRIPLES_N_PARTS,
};

struct triples {
    uint32_t n_entities, n_relations;
    size_t n;
    size_t first[TRIPLES_N_PARTS + 1];  /* First triple of each part, then
                                         * 'n'. */
    size_t max_n;               /* Allocated number. */
    struct triple *all;
};

struct triples_config {
    uint32_t n_entities, n_relations;   /* Size of a generated graph. */
    size_t n;                   /* Training triples of a generated graph. */
    uint64_t seed;
};

/* Opens 'source', "generated" or a folder.  Returns NULL or a message. */
char *triples_open(const char *source, const struct triples_config *,
                   struct triples **);
void triples_destroy(struct triples *);

/* Numbers of names, in order of appearance. */
struct triples_names;
struct triples_names *triples_names_create(void);
void triples_names_destroy(struct triples_names *);

/* Adds the triples of 'stream', in the first format (with 'names') or the
 * second one (NULL).  'file' is the name for messages. */
char *triples_read(const char *file, FILE *stream, struct triples_names *,
                   struct triples *);

/* Index of the triples by subject and relation, and by object and relation:
 * known triples that are excluded from a ranking. */
struct triples_index;
struct triples_index *triples_index_create(const struct triples *);
void triples_index_destroy(struct triples_index *);

/* Return the known objects of the triple's subject and relation, and the known
 * subjects of its object and relation, and store their number. */
const uint32_t *triples_index_objects(const struct triples_index *,
                                      const struct triple *, size_t *n);
const uint32_t *triples_index_subjects(const struct triples_index *,
                                       const struct triple *, size_t *n);

#endif /* trainer/data/triples.h */

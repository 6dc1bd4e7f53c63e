/* SPDX-License-Identifier: Apache-2.0 */

#ifndef TRIPLES_H
#define TRIPLES_H 1

/* A knowledge graph: which subjects stand in which relation to which objects.
 *
 *
 * Motivation
 * ==========
 *
 * All nodes of a job read or make the same triples, and each trains on its
 * part.  A folder has those to train on, those to tune by and those to judge
 * by, in the files
 *
 *    train.txt     valid.txt     test.txt        SUBJECT\tRELATION\tOBJECT
 *    train2id.txt  valid2id.txt  test2id.txt     SUBJECT OBJECT RELATION,
 *
 * of which the first form (FB15k-237, WN18RR) has names, and the second
 * (OpenKE) has numbers from 0 on and a first line that says how many lines
 * follow.
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * Plain data, not changed once made; one thread makes it. */

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
    size_t first[TRIPLES_N_PARTS + 1];  /* Of each part; then 'n'. */
    size_t max_n;               /* There is memory for so many. */
    struct triple *all;
};

struct triples_config {
    uint32_t n_entities, n_relations;   /* Of a generated graph. */
    size_t n;                   /* Likewise, triples to train on. */
    uint64_t seed;
};

/* 'source' is "generated", or a folder.  Returns NULL or a message. */
char *triples_open(const char *source, const struct triples_config *,
                   struct triples **);
void triples_destroy(struct triples *);

/* Names of what is numbered as it appears. */
struct triples_names;
struct triples_names *triples_names_create(void);
void triples_names_destroy(struct triples_names *);

/* Adds what 'stream' has, in the first form (with 'names') or in the second
 * (NULL).  'file' is that of messages. */
char *triples_read(const char *file, FILE *stream, struct triples_names *,
                   struct triples *);

/* Which triples have a subject and a relation, or an object and one: what a
 * prediction is not blamed for. */
struct triples_index;
struct triples_index *triples_index_create(const struct triples *);
void triples_index_destroy(struct triples_index *);

/* All that complete the triple: objects that its subject has, and subjects
 * that its object has.  Stores how many there are. */
const uint32_t *triples_index_objects(const struct triples_index *,
                                      const struct triple *, size_t *n);
const uint32_t *triples_index_subjects(const struct triples_index *,
                                       const struct triple *, size_t *n);

#endif /* trainer/data/triples.h */

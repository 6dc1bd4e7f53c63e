/* SPDX-License-Identifier: Apache-2.0 */

#ifndef NODE_TASK_H
#define NODE_TASK_H 1

/* What nodes train whose parameters are keys of a store.
 *
 *
 * Motivation
 * ==========
 *
 * A task knows its data, which vectors it has, and how to make an epoch's
 * steps through a store (trainer/keys/key-store.h); nodes, threads and the
 * store's variant are others' matter:
 *
 *    factorise    a matrix of two factors            (factorise.c)
 *    knowledge    embeddings of a knowledge graph    (knowledge.c)
 *    skipgram     word vectors                       (skipgram.c)
 *
 * All workers of all nodes make each epoch together; node_task_train() does
 * what is the same for all tasks: it goes through the epochs, adds up what the
 * workers found, and lets the first of them report it.
 *
 *
 * Usage
 * =====
 *
 * A node's main thread, and then each of its workers' threads:
 *
 *    class = node_task_find(options->task);
 *    error = class->create(&config, &task);
 *    n = node_task_ranges(task, ranges);
 *    ...store of these ranges, with node_task_init(task, ...)...
 *
 *    error = node_task_train(task, &worker);
 *    ...
 *    node_task_destroy(task);
 *
 * A task begins with a struct node_task.
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * A task is not changed by workers, who share it. */

#include <stdbool.h>
#include <stdint.h>

#include "trainer/keys/key-store.h"

#define NODE_TASK_MAX_RANGES 3

struct control;
struct lookahead;
struct options;
struct pace;
struct report;

/* What all nodes agree in. */
struct node_task_config {
    const struct options *o;
    int n_workers;              /* Of all nodes together. */
};

struct node_task {
    const struct node_task_class *class;
    const struct options *o;
    int n_workers;
};

/* One thread that trains.  Members below the line are node_task_train()'s. */
struct node_worker {
    struct key_worker *keys;
    enum key_variant variant;
    int index, n;               /* Of all nodes' workers. */
    bool first_of_node;
    struct control *control;
    struct report *report;      /* Of the first of all, otherwise NULL. */
    struct pace *pace;          /* How fast this one is to be, or NULL. */

    const struct node_task *task;
    uint64_t epoch;
    double loss;                /* Of the last epoch. */
    int64_t until_us;           /* When the part of an epoch is to end. */
    int clocks_left;            /* Of the part. */
};

/* Sums of an epoch, over workers.  Nothing but doubles. */
struct node_task_sums {
    double updates;             /* Samples that were trained on. */
    double loss;                /* Theirs, */
    double n_judged;            /* Held-out ones that were looked at, */
    double quality[2];          /* what was found of them. */
    double cpu_s;               /* Processor time. */
};

/* What sums mean. */
struct node_task_result {
    uint64_t epoch, updates;
    double seconds, cpu_s;      /* Of training; of all nodes. */
    double loss;                /* Mean of a sample. */
    double quality, quality2;   /* Of held-out samples, or NAN. */
};

struct node_task_class {
    const char *name;
    const char *quality;        /* Names of both, NULL for none. */
    const char *quality2;

    char *(*create)(const struct node_task_config *, struct node_task **);
    void (*destroy)(struct node_task *);

    /* Stores at most NODE_TASK_MAX_RANGES and returns how many. */
    int (*ranges)(const struct node_task *,
                  struct key_range ranges[NODE_TASK_MAX_RANGES]);

    /* First values of 'key', which are zeros so far. */
    void (*init)(const struct node_task *, uint64_t key, float *values);

    /* State of a worker, made after all keys are there; 'begin' may wait. */
    char *(*begin)(struct node_worker *, void **state);
    void (*end)(struct node_worker *, void *state);

    /* Makes the worker's steps of an epoch.  Adds to 'sums'. */
    char *(*epoch)(struct node_worker *, void *state,
                   struct node_task_sums *sums);

    /* Looks at the worker's part of what is held out; not after every epoch.
     */
    char *(*judge)(struct node_worker *, void *state,
                   struct node_task_sums *sums);

    /* What the sums of all mean: stores both qualities. */
    void (*conclude)(struct node_worker *, void *state,
                     const struct node_task_sums *sums,
                     struct node_task_result *);
};

extern const struct node_task_class node_task_factorise;
extern const struct node_task_class node_task_knowledge;
extern const struct node_task_class node_task_skipgram;

/* A word of --task, or NULL. */
const struct node_task_class *node_task_find(const char *name);

/* The task's ranges, and one for sums.  Returns how many. */
int node_task_ranges(const struct node_task *,
                     struct key_range ranges[NODE_TASK_MAX_RANGES + 1]);

/* For struct key_store_config: 'task' is a struct node_task. */
void node_task_init(void *task, uint64_t key, float *values);
void node_task_destroy(struct node_task *);

/* Trains as a worker of a task until its last epoch, after which the store is
 * finished with. */
char *node_task_train(const struct node_task *, struct node_worker *);

/* Whether held-out samples are looked at after this epoch, from 0 on. */
bool node_task_is_judged(const struct options *, uint64_t epoch);

void node_task_report(const struct node_task_class *,
                      const struct node_task_result *, struct report *);

/* An epoch is of 'n' parts.  If it is limited in time, each of them is to end
 * when node_worker_late() says so.  All workers end a part together, but where
 * some may be ahead of others.  A part has 'n_clocks' of those by which it is
 * seen who is ahead. */
void node_worker_begin_part(struct node_worker *, int n, int n_clocks);
char *node_worker_clock(struct node_worker *);
bool node_worker_late(const struct node_worker *);
char *node_worker_end_part(struct node_worker *);

/* Takes as long as 'n' samples are to take since the part began. */
void node_worker_pace(struct node_worker *, size_t n);

/* An epoch of samples that go through a queue (lookahead.h). */
struct node_samples {
    size_t n_keys;              /* Of a sample, */
    size_t n_wanted;            /* of which the first are localized. */

    /* Stores the keys of the next sample.  False: there is no more. */
    bool (*next)(struct node_worker *, void *state, uint64_t *keys);
    char *(*train)(struct node_worker *, void *state, const uint64_t *keys,
                   double *loss);
};

/* Makes it, one part of about 'n' samples of all workers. */
char *node_worker_train(struct node_worker *, void *state,
                        const struct node_samples *, struct lookahead *,
                        size_t n, struct node_task_sums *);

/* The first of --draws draws that is here; where keys do not move, the first.
 */
uint64_t node_worker_draw(const struct node_worker *,
                          uint64_t (*draw)(void *aux), void *aux);

#endif /* trainer/tasks/node-task.h */

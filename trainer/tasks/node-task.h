/* SPDX-License-Identifier: Apache-2.0 */

#ifndef NODE_TASK_H
#define NODE_TASK_H 1

/* Tasks of nodes with a key store.
 *
 * A task has its data, its vectors, and the steps of an epoch through a store
 * (trainer/keys/key-store.h).  It is independent of nodes, threads and the
 * variant of the store:
 *
 *    factorise    a matrix of two factors            (factorise.c)
 *    knowledge    embeddings of a knowledge graph    (knowledge.c)
 *    skipgram     word vectors                       (skipgram.c)
 *    linear       a linear model of sparse samples   (linear.c)
 *
 * All workers of all nodes process each epoch together.  node_task_train() has
 * what is common to all tasks: the loop of epochs, sums over workers, and the
 * report by the first worker.
 *
 * In the main thread of a node, then in the thread of each worker:
 *
 *    class = node_task_find(options->task);
 *    error = class->create(options, n_workers, &task);
 *    n = node_task_ranges(task, ranges);
 *    ...store of these ranges, with node_task_init(task, ...)...
 *
 *    error = node_task_train(&worker);
 *    ...
 *    node_task_destroy(task);
 *
 * A task begins with a struct node_task.
 *
 * Negative samples are drawn among the keys that are local, which needs no
 * messages.  The model learns slightly less (docs/training.md); "--draws 1"
 * accepts the first draw.  Nothing else in a task depends on where keys are.
 *
 * Workers share a task and do not change it. */

#include <stdbool.h>
#include <stdint.h>

#include "trainer/keys/key-store.h"

#define NODE_TASK_MAX_RANGES 3

struct batches;
struct control;
struct gather;
struct prefetch;
struct options;
struct pace;
struct reporter;
struct report_epoch;

struct node_task {
    const struct node_task_class *class;
    const struct options *o;
};

/* A training thread.  Members below the line belong to node_task_train(). */
struct node_worker {
    const struct node_task *task;
    struct key_worker *keys;
    enum key_variant variant;
    int index, n;               /* Index among all workers, and their
                                 * number. */
    bool first_of_node;
    struct control *control;
    struct reporter *report;    /* Report of the first worker, NULL for
                                 * others. */
    struct pace *pace;          /* Emulated speed, or NULL. */

    uint64_t epoch;
    double loss;                /* Loss of the last epoch. */
    int64_t until_us;           /* End of the current part of an epoch. */
    int clocks_left;            /* Clocks that the current part still has. */
};

/* Sums of an epoch over workers.  All members are doubles. */
struct node_task_sums {
    double updates;             /* Trained samples. */
    double loss;                /* Sum of their losses. */
    double n_judged;            /* Validated samples. */
    double quality[2];          /* Quality of these samples, by task. */
    double cpu_s;               /* Processor time, seconds. */
};

struct node_task_class {
    const char *name;
    const char *qualities[2];   /* Names of both, NULL for none. */

    /* Creates the task for 'n_workers' workers of all nodes.  Returns NULL or
     * a message; in either case the caller destroys the task. */
    char *(*create)(const struct options *, int n_workers,
                    struct node_task **);
    void (*destroy)(struct node_task *);

    /* Stores at most NODE_TASK_MAX_RANGES and returns how many. */
    int (*ranges)(const struct node_task *,
                  struct key_range ranges[NODE_TASK_MAX_RANGES]);

    /* First values of 'key', which are zeros so far; NULL: they stay so. */
    void (*init)(const struct node_task *, uint64_t key, float *values);

    /* State of a worker, made after all keys are there; 'begin' may wait, and
     * stores the state even if it fails. */
    char *(*begin)(struct node_worker *, void **state);
    void (*end)(void *state);

    /* Makes the worker's steps of an epoch.  Adds to 'sums'. */
    char *(*epoch)(struct node_worker *, void *state,
                   struct node_task_sums *sums);

    /* Evaluates the worker's part of the validation samples; not after every
     * epoch. */
    char *(*judge)(struct node_worker *, void *state,
                   struct node_task_sums *sums);

    /* Optional: sees the epoch of all workers, and may change the qualities,
     * which are the means of those of the validated samples. */
    void (*conclude)(void *state, struct report_epoch *);
};

extern const struct node_task_class node_task_factorise;
extern const struct node_task_class node_task_knowledge;
extern const struct node_task_class node_task_skipgram;
extern const struct node_task_class node_task_linear;

/* A word of --task, or NULL. */
const struct node_task_class *node_task_find(const char *name);

/* The task's ranges, and one for sums.  Returns how many. */
int node_task_ranges(const struct node_task *,
                     struct key_range ranges[NODE_TASK_MAX_RANGES + 1]);

/* For struct key_store_config: 'task' is a struct node_task. */
void node_task_init(void *task, uint64_t key, float *values);
void node_task_destroy(struct node_task *);

/* Trains as a worker of its task until the last epoch, after which the store
 * is finished with. */
char *node_task_train(struct node_worker *);

/* Whether held-out samples are looked at after this epoch, from 0 on. */
bool node_task_is_judged(const struct options *, uint64_t epoch);

/* Reports the epoch, with the names of the task's qualities. */
void node_task_report(const struct node_task_class *, struct report_epoch *,
                      struct reporter *);

/* An epoch is of 'n' parts.  If it is limited in time, each of them is to end
 * when node_worker_late() returns true.  All workers end a part together, but
 * where some may be ahead of others.  A part has 'n_clocks' clocks; a node
 * with a later clock than others is ahead. */
void node_worker_begin_part(struct node_worker *, int n, int n_clocks);
bool node_worker_late(const struct node_worker *);
char *node_worker_clock(struct node_worker *);
char *node_worker_end_part(struct node_worker *);

/* Takes as long as 'n' samples are to take since the part began. */
void node_worker_pace(struct node_worker *, size_t n);

/* An epoch of samples that go through a queue (prefetch.h) and are exchanged
 * in batches (batches.h). */
struct node_samples {
    size_t n_keys;              /* Of a sample, */
    size_t n_wanted;            /* and the first 'n_wanted' are localized. */

    /* Stores the keys of the next sample.  False: there is no more. */
    bool (*next)(struct node_worker *, void *state, uint64_t *keys);

    /* Adds the vectors of the sample 'keys', and stores their indices. */
    void (*add)(struct node_worker *, void *state, struct gather *,
                const uint64_t keys[], size_t places[]);

    /* As in struct batches_ops; returns the loss. */
    double (*step)(struct node_worker *, void *state, struct gather *,
                   const size_t places[]);
};

/* Makes it, one part of about 'n' samples of all workers. */
char *node_worker_train(struct node_worker *, void *state,
                        const struct node_samples *, struct prefetch *,
                        struct batches *, size_t n, struct node_task_sums *);

/* Counts a draw of 'key' in '*n_draws', which is 0 at first.  Returns true if
 * the key is to be drawn again: it is not here, and --draws allows more.
 * Where keys do not move, the first draw counts. */
bool node_worker_redraws(const struct node_worker *, uint64_t key,
                         int64_t *n_draws);

/* The task "factorise" of a node without a store (factorise-manual.c). */
struct factorise_manual_in {
    const struct options *o;
    const char *const *names;   /* "HOST:PORT" of each node. */
    int n_nodes;
    uint16_t port;              /* Port to listen on. */
    int64_t connect_us;         /* Time limit for all nodes to connect. */
    struct control *control;
    struct reporter *report; /* Of the first node, NULL on others. */
    struct pace *pace;
};

/* Blocks until the end.  Returns NULL or a message. */
char *factorise_manual_run(const struct factorise_manual_in *);

#endif /* trainer/tasks/node-task.h */

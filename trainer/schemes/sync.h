/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SYNC_H
#define SYNC_H 1

/* When gradients become weights: a synchronisation scheme, seen by a server.
 *
 *
 * Motivation
 * ==========
 *
 * A server moves bytes; a scheme decides what they mean: which gradients make
 * an update, when a worker may have the next weights, and how many samples it
 * is to take.  Schemes know no sockets and no clocks, so that the one-process
 * trainer and the tests run the same code.
 *
 *
 * Usage
 * =====
 *
 *    error = sync_spec_parse("ssp,staleness=3", &spec);
 *    struct sync *sync = spec.class->create(&config);
 *    ...write the first weights to class->weights(sync)...
 *    ...receive worker 2's gradient into class->inbox(sync, 2)...
 *    error = class->push(sync, 2, iteration, n_samples, loss);
 *    while (class->take(sync, &to, &message)) {
 *        ...send it to worker 'to'...
 *    }
 *    if (class->ready(sync, 2, &iteration, &loss)) {
 *        ...send class->weights(sync)...
 *    }
 *
 * Under most schemes a worker has its weights before it pushes again.  One
 * whose workers run ahead sends them when it has news, and is told of that:
 *
 *    while (class->ready(sync, 2, &iteration, &loss)) {
 *        ...send class->weights(sync)...
 *        class->sent(sync, 2);
 *    }
 *
 * Beside gradients and weights a scheme and its workers exchange small
 * messages.  A worker gets those that were taken before it became ready before
 * its weights.  What each kind means is below; a worker that knows them serves
 * every scheme.  If a job has several servers only the first one's scheme
 * talks, the others follow: which samples a gradient is of, it says itself.
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * A scheme allocates at creation and owns its vectors.  The weights change
 * only inside push() and part().  Those of an asynchronous scheme may change
 * while they are being sent: a worker then sees some parameters a push later
 * than others.  One thread. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trainer/schemes/optimiser.h"

#define SYNC_MAX_RATIOS 64
#define SYNC_MAX_SPANS 8
#define SYNC_MAX_AHEAD 64       /* Weights on their way to a worker. */

struct backend;
struct shard;
struct sync;
struct sync_spec;

enum sync_kind {
    /* To a worker, by what is in 'n': SYNC_ROLE_REPORTS, "tell me how long you
     * take"; SYNC_ROLE_TRANSFERS, "and your transfers"; SYNC_ROLE_STEALS,
     * "work in 'total' pieces and help others"; SYNC_ROLE_AHEAD, "go on with
     * the weights that you have, if at most 'total' of your gradients lack
     * their answer"; SYNC_ROLE_SKIPS, "work in 'total' pieces and listen". */
    SYNC_ROLE = 1,

    /* To a worker: from the next weights on you have the samples from 'first'
     * / 'total' to ('first' + 'n') / 'total' of each batch. */
    SYNC_ASSIGN,

    /* Of a worker, before its gradient: 'n' samples took 'seconds', others
     * use 'cpu' and 'memory' of the machine, and there is memory for 'total'
     * samples (0: any number). */
    SYNC_REPORT,

    /* Between workers, see steal.h.  'worker' is to whom at the one that
     * sends and from whom at the one that gets it. */
    SYNC_FIND,                  /* "What have you left?", to all others. */
    SYNC_STATUS,                /* "The 'n' samples from 'first'." */
    SYNC_HELP,                  /* "Give me these." */
    SYNC_CONFIRM,               /* "They are yours." */
    SYNC_CANCEL,                /* "I need them myself." */

    /* To a worker: gradients of iterations before 'iteration' are dropped.
     * Push none of what you compute for one, and go on. */
    SYNC_SKIP,

    SYNC_N_KINDS
};

enum {
    SYNC_ROLE_REPORTS = 1 << 0,
    SYNC_ROLE_STEALS = 1 << 1,
    SYNC_ROLE_AHEAD = 1 << 2,
    SYNC_ROLE_TRANSFERS = 1 << 3,
    SYNC_ROLE_SKIPS = 1 << 4,
};

/* As it is on the wire, where numbers are little-endian. */
struct sync_message {
    uint32_t kind;              /* enum sync_kind. */
    uint32_t worker;            /* Who sent it, or whom it is about. */
    uint64_t iteration;
    uint32_t first, n, total;   /* Samples. */
    float seconds;
    float cpu, memory;          /* Parts that others use, 0 to 1. */
};

/* Stores in '*share' the samples of a batch that SYNC_ASSIGN message 'm'
 * assigns.  Both ends are rounded alike, so that the shares of all workers
 * cover the batch and do not overlap.  Returns NULL, or a message if 'm' is
 * invalid; then '*share' stays. */
char *sync_assigned_shard(const struct sync_message *m, uint64_t batch,
                          struct shard *share);

struct sync_config {
    struct backend *backend;    /* Its memory must be mapped to the host. */
    int n_workers;
    size_t n;                   /* Parameters of the shard. */
    struct optimiser_config optimiser;
    const struct sync_spec *spec;       /* Outlives creation only; NULL: the
                                         * scheme's defaults. */
    bool follows;               /* Another server's scheme leads. */
};

/* A part of a scheme's state. */
struct sync_span {
    void *data;
    size_t length;              /* Bytes. */
};

struct sync_class {
    const char *name;
    const char *help;

    struct sync *(*create)(const struct sync_config *);
    void (*destroy)(struct sync *);

    float *(*weights)(struct sync *);
    float *(*inbox)(struct sync *, int worker);

    /* The inbox of 'worker' has the mean gradient of 'n_samples' samples at
     * the weights of 'iteration'; 'loss' is their mean loss.  Returns NULL, or
     * a message if that is not what the worker may send now. */
    char *(*push)(struct sync *, int worker, uint64_t iteration,
                  uint32_t n_samples, float loss);

    /* Optional, together.  The inbox of 'worker' has what it is about to push
     * from parameter 'first' on, which may be used already.  From which one
     * on the weights are those of the next iteration, '*iteration', and may
     * be sent: the number of parameters if none are. */
    char *(*part)(struct sync *, int worker, uint64_t iteration,
                  uint32_t n_samples, size_t first);
    size_t (*fresh)(const struct sync *, uint64_t *iteration);

    /* True if 'worker' may have the weights that follow what it pushed last.
     * Says its next iteration, and the mean loss of the one before. */
    bool (*ready)(const struct sync *, int worker, uint64_t *iteration,
                  float *loss);

    /* Both or neither: how many of a worker's gradients may lack an answer
     * when it pushes another one, and that 'worker' was sent the weights for
     * which it was ready.  Each gradient is still answered once. */
    uint32_t (*ahead)(const struct sync *);
    void (*sent)(struct sync *, int worker);

    /* 'worker' says something.  Returns NULL, or why it must not.  NULL: no
     * worker has anything to say. */
    char *(*message)(struct sync *, int worker, const struct sync_message *);

    /* The next message to send, if there is one.  NULL: there never is.
     * Messages are said once: a scheme that has some cannot go on after a
     * connection was lost, unless it goes back to a checkpoint. */
    bool (*take)(struct sync *, int *worker, struct sync_message *);

    /* But what this one says may be missed: it only saves time. */
    bool may_be_missed;

    /* For checkpoints: the iterations that all workers have done; the parts of
     * memory that with it are the whole state when it has just grown, and
     * their number; their contents are now those of 'iteration', and every
     * worker is about to push the one that ready() says.  Where nobody waits
     * for all, servers may have counted more of a worker than it goes on from:
     * what it pushes again is answered, and does not count again. */
    uint64_t (*iteration)(const struct sync *);
    int (*spans)(struct sync *, struct sync_span[SYNC_MAX_SPANS]);
    void (*resume)(struct sync *, uint64_t iteration);
};

/* Bulk synchronous parallel: an update is the mean over all samples of all
 * workers.  With any split of a batch among workers the weights are the same
 * but for rounding. */
extern const struct sync_class sync_bsp;

/* The same, and batches are divided in given proportions. */
extern const struct sync_class sync_static;

/* The same, and batches are divided so that workers end together. */
extern const struct sync_class sync_lbbsp_cpu, sync_lbbsp_gpu;

/* The same, and workers that are done take samples of those that are not. */
extern const struct sync_class sync_flexrr;

/* The same, but an update is of the first workers that come; what the last
 * ones push for it is dropped.  They are told, and may stop computing it. */
extern const struct sync_class sync_backup;

/* Asynchronous: each gradient is an update at once, as one of n of a batch.
 * "ssp" holds a worker that is 'staleness' iterations ahead of the slowest.
 * "essp" does too, but sends weights to all workers whenever the slowest has
 * pushed, and nobody waits for them who has some that are new enough. */
extern const struct sync_class sync_asp, sync_ssp, sync_essp;

/* Synchronous within groups and asynchronous between them.  There is one group
 * at first, and then twice as many, the slower workers together, as long as
 * the job takes 20 % longer than it would without delays; or fewer again.  A
 * server has group servers make each group's mean, see groups.h. */
extern const struct sync_class sync_groups;

/* All of them, then NULL. */
extern const struct sync_class *const sync_classes[];

enum sync_parameter {
    SYNC_STALENESS = 1 << 0,
    SYNC_BACKUPS = 1 << 1,
    SYNC_RATIOS = 1 << 2,
    SYNC_PREDICTOR = 1 << 3,
    SYNC_GROUPS = 1 << 4,
    SYNC_PIECES = 1 << 5,
    SYNC_TAU = 1 << 6,
};

/* A scheme as a person names it: "NAME[,PARAMETER=VALUE...]". */
struct sync_spec {
    const char *name;           /* Static. */
    unsigned int parameters;    /* That it has: set of enum sync_parameter. */
    const struct sync_class *class;     /* NULL after sync_spec_read(). */
    int64_t staleness;          /* Iterations ahead of the slowest worker. */
    int64_t backups;            /* Gradients of an iteration not waited for. */
    double ratios[SYNC_MAX_RATIOS];     /* Of the batch, by rank. */
    int n_ratios;
    char predictor[16];         /* Of speeds. */
    int64_t pieces;             /* In which a worker computes its share, by
                                 * default 4 under "flexrr", else 1. */
    int64_t groups;             /* A power of 2; 0: found out. */
    int64_t tau;                /* Batches that a group's gradient may age. */
};

/* Return NULL or a message.  sync_spec_read() is for those who only pass a
 * scheme on: it needs no arithmetic. */
char *sync_spec_parse(const char *text, struct sync_spec *);
char *sync_spec_read(const char *text, struct sync_spec *);

/* Returns NULL, or why the scheme is not for 'n_workers'. */
char *sync_spec_check(const struct sync_spec *, int n_workers);

#endif /* trainer/schemes/sync.h */

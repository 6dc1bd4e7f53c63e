/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SYNC_H
#define SYNC_H 1

/* Synchronisation schemes: when gradients become weights.
 *
 * A server moves bytes; a scheme decides which gradients make an update, when
 * a worker may have the next weights, and how many samples it computes.
 * Schemes use no sockets and no clocks, so that training in one process and
 * the tests run the same code.
 *
 *    error = sync_spec_parse("ssp,staleness=3", &spec);
 *    const struct sync_class *class = spec.class;
 *    struct sync *sync = sync_create(class, &config);
 *    ...write the first weights to sync_weights(sync)...
 *    ...receive worker 2's gradient into sync_inbox(sync, 2)...
 *    error = class->push(sync, 2, iteration, n_samples, loss);
 *    while (sync_take(sync, &to, &message)) {
 *        ...send it to worker 'to'...
 *    }
 *    if (class->ready(sync, 2, &iteration, &loss)) {
 *        ...send sync_weights(sync)...
 *    }
 *
 * Under most schemes a worker has its weights before it pushes again.  A
 * scheme with max_in_flight() sends weights whenever there are new ones:
 *
 *    while (class->ready(sync, 2, &iteration, &loss)) {
 *        ...send sync_weights(sync)...
 *        class->sent(sync, 2);
 *    }
 *
 * A scheme and its workers also exchange small messages (enum sync_kind).  A
 * worker receives those that were taken before it became ready ahead of its
 * weights.  If a job has several servers, only the scheme of the first one
 * sends messages; the others follow, because a push has its number of
 * samples.
 *
 * A scheme allocates at creation and owns its vectors.  The weights change
 * only inside push() and sync_part().  Under an asynchronous scheme they may
 * change while they are being sent: a worker then sees some parameters one
 * push later than others.  One thread. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trainer/schemes/optimiser.h"

#define SYNC_MAX_RATIOS 64
#define SYNC_MAX_SPANS 8

/* Peers, or nodes, of a job: each has a connection to each other one, and
 * messages name ranks by 4 bytes, so that the number of connections, not the
 * protocol, is what a larger limit would cost. */
#define SYNC_MAX_PEERS 128
#define SYNC_MAX_IN_FLIGHT 64   /* Gradients of a worker without a reply. */

struct backend;
struct shard;
struct sync;
struct sync_spec;

enum sync_kind {
    /* To a worker: 'n' has flags of SYNC_ROLE_*. */
    SYNC_ROLE = 1,

    /* To a worker: from the next weights on it computes the samples from
     * 'first' / 'total' to ('first' + 'n') / 'total' of each batch. */
    SYNC_ASSIGN,

    /* From a worker, before its gradient: 'n' samples took 'seconds', other
     * processes use 'cpu' and 'memory' of the machine, and there is memory for
     * 'total' samples (0: no limit). */
    SYNC_REPORT,

    /* Between workers, see steal.h.  'worker' is the destination when sent and
     * the source when received. */
    SYNC_FIND,                  /* To all others: asks for SYNC_STATUS. */
    SYNC_STATUS,                /* 'n' samples from 'first' can be given. */
    SYNC_HELP,                  /* Asks for these samples. */
    SYNC_CONFIRM,               /* Gives these samples. */
    SYNC_CANCEL,                /* Refuses to give them. */

    /* To a worker: gradients of iterations before 'iteration' are dropped; it
     * pushes no samples for them, and continues. */
    SYNC_SKIP,

    SYNC_N_KINDS
};

enum {
    SYNC_ROLE_REPORTS = 1 << 0,         /* Send SYNC_REPORT. */
    SYNC_ROLE_STEALS = 1 << 1,          /* Compute in 'total' pieces, and move
                                         * samples between workers. */
    SYNC_ROLE_PIPELINE = 1 << 2,        /* Continue while at most 'total'
                                         * gradients are in flight. */
    SYNC_ROLE_TRANSFERS = 1 << 3,       /* Count transfers in 'seconds'. */
    SYNC_ROLE_SKIPS = 1 << 4,           /* Compute in 'total' pieces, and
                                         * expect SYNC_SKIP in between. */
};

/* On the wire as in memory; numbers are little-endian. */
struct sync_message {
    uint32_t kind;              /* enum sync_kind. */
    uint32_t worker;            /* Rank of the sender or of the worker
                                 * concerned; between workers, the destination
                                 * when sent, the source when received. */
    uint64_t iteration;
    uint32_t first, n, total;   /* Samples, or as 'kind' defines them. */
    float seconds;
    float cpu, memory;          /* Fractions that others use, 0 to 1. */
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
    size_t n_statistics;        /* Of the model, which checkpoints contain. */
    struct optimiser_config optimiser;
    const struct sync_spec *spec;       /* May be freed after creation; NULL is
                                         * allowed for sync_bsp. */
    bool follows;               /* Another server's scheme sends messages. */
};

/* Memory that is part of a scheme's state. */
struct sync_span {
    void *data;
    size_t length; /* Bytes. */
};

/* A scheme.  push() and ready() are required.  Its own data are 'own_size'
 * bytes, and behind them 'per_worker' for each worker; they begin as zeros. */
struct sync_class {
    const char *name;
    size_t own_size, per_worker;
    bool asynchronous;          /* Workers push at their own pace. */
    bool needs_messages;        /* A message that is lost with a connection
                                 * does harm: the training cannot continue,
                                 * except from a checkpoint. */
    bool uses_parts;            /* See sync_part(). */

    /* 'spec' may be freed afterwards. */
    void (*init)(struct sync *, const struct sync_spec *spec);
    void (*uninit)(struct sync *);

    /* start(): the training begins, or continues from a checkpoint; queues the
     * first messages.  resumed(): is called next if it continues. */
    void (*start)(struct sync *);
    void (*resumed)(struct sync *);

    /* Returns the part of the scheme's own data that checkpoints contain. */
    struct sync_span (*kept)(struct sync *);

    /* The inbox of 'worker' has the mean gradient of 'n_samples' samples at
     * the weights of 'iteration'; 'loss' is their mean loss.  Returns NULL, or
     * a message if the worker may not push that now. */
    char *(*push)(struct sync *, int worker, uint64_t iteration,
                  uint32_t n_samples, float loss);

    /* Returns true if 'worker' may have the weights that follow its last
     * push.  Stores its next iteration, and the mean loss of the one
     * before. */
    bool (*ready)(const struct sync *, int worker, uint64_t *iteration,
                  float *loss);

    /* Together.  max_in_flight(): returns how many gradients of a worker may
     * be without a reply when it pushes another one; each is still answered
     * once.  sent(): 'worker' was sent the weights for which it was ready. */
    uint32_t (*max_in_flight)(const struct sync *);
    void (*sent)(struct sync *, int worker);

    /* Takes a message of 'worker'.  Returns NULL or a message if it is not
     * allowed. */
    char *(*message)(struct sync *, int worker, const struct sync_message *);
};

struct sync *sync_create(const struct sync_class *,
                         const struct sync_config *);
void sync_destroy(struct sync *);

/* Stores the next message to send, and returns true if there is one.  Messages
 * are sent once. */
bool sync_take(struct sync *, int *worker, struct sync_message *);

/* For classes with 'uses_parts'.  sync_part(): the inbox of 'worker' has a
 * part of its next push, from parameter 'first' on, which may be used already.
 * sync_fresh(): returns from which parameter on the weights are those of the
 * next iteration, '*iteration', and may be sent; the number of parameters if
 * none are. */
char *sync_part(struct sync *, int worker, uint64_t iteration,
                uint32_t n_samples, size_t first);
size_t sync_fresh(const struct sync *, uint64_t *iteration);

/* For checkpoints.  sync_iteration(): the number of iterations that all
 * workers have made.  sync_spans(): stores the memory that is the whole state
 * whenever that number has just grown, the weights and the statistics first,
 * and returns the number of spans.
 * sync_resume(): the spans are those of 'iteration', and each worker is about
 * to push the iteration that ready() stores.  If 'asynchronous', a server may
 * have counted more pushes of a worker than it resumes from: those are
 * acknowledged again, not applied twice. */
uint64_t sync_iteration(const struct sync *);
int sync_spans(struct sync *, struct sync_span[SYNC_MAX_SPANS]);
void sync_resume(struct sync *, uint64_t iteration);

/* Bulk synchronous parallel: an update is the mean over the samples of all
 * workers.  However a batch is divided among workers, the weights are the same
 * up to rounding. */
extern const struct sync_class sync_bsp;

/* As bsp; batches are divided in configured proportions. */
extern const struct sync_class sync_static;

/* As bsp; batches are divided so that workers finish together. */
extern const struct sync_class sync_lbbsp_cpu, sync_lbbsp_gpu;

/* As bsp; workers that have finished take samples of the others. */
extern const struct sync_class sync_flexrr;

/* As bsp, but an update consists of the first gradients that arrive; later
 * ones are dropped.  Their workers are informed, and may stop early. */
extern const struct sync_class sync_backup;

/* Asynchronous: each gradient makes an update at once, with weight 1 / n of n
 * workers.  "ssp" holds a worker that is 'staleness' iterations ahead of the
 * slowest.  "essp" does too, but sends weights to all workers whenever the
 * slowest has pushed, and a worker does not wait for them while its own are
 * recent enough. */
extern const struct sync_class sync_asp, sync_ssp, sync_essp;

/* Synchronous within groups and asynchronous between them.  The number of
 * groups doubles, with the slower workers together, while the job is 20 %
 * slower than without delays, and shrinks again.  Group servers may compute
 * each group's mean, see groups.h. */
extern const struct sync_class sync_groups;

/* All of them, then NULL. */
extern const struct sync_class *const sync_classes[];

/* Vectors of the scheme: the weights, the model's statistics, which it only
 * keeps, and where to write the gradient of 'worker'. */
float *sync_weights(struct sync *);
float *sync_statistics(struct sync *);
float *sync_inbox(struct sync *, int worker);

enum sync_parameter {
    SYNC_STALENESS = 1 << 0,
    SYNC_BACKUPS = 1 << 1,
    SYNC_RATIOS = 1 << 2,
    SYNC_PREDICTOR = 1 << 3,
    SYNC_GROUPS = 1 << 4,
    SYNC_PIECES = 1 << 5,
    SYNC_TAU = 1 << 6,
    SYNC_GROUP = 1 << 7,
    SYNC_POLICY_EVERY = 1 << 8,
};

/* A scheme as on the command line: "NAME[,PARAMETER=VALUE...]". */
struct sync_spec {
    const char *name;           /* Static. */
    unsigned int parameters;    /* Those it has: set of enum sync_parameter. */
    bool serverless;            /* Peers train without a server, by this
                                 * scheme of gossip/peer.h. */
    const struct sync_class *class;     /* NULL after sync_spec_read(), and if
                                         * it is serverless. */
    int64_t staleness;          /* Iterations ahead of the slowest worker. */
    int64_t backups;            /* Gradients of an iteration not waited for. */
    double ratios[SYNC_MAX_RATIOS];     /* Of the batch, by rank. */
    int n_ratios;
    char predictor[16];         /* Of speeds. */
    int64_t pieces;             /* Of a worker's share; default 4 under
                                 * "flexrr", else 1. */
    int64_t groups;             /* A power of 2; 0: adapted, */
    int64_t max_groups;         /* to at most these; 0: no limit. */
    int64_t tau;                /* Maximum age of a group's gradient,
                                 * batches. */
    int64_t group;              /* Peers of a group. */
    double policy_every;        /* Interval of policies, seconds. */
};

/* Return NULL or a message.  sync_spec_read(), for programs that only pass a
 * scheme on, needs no arithmetic library, and also takes schemes without a
 * server. */
char *sync_spec_parse(const char *text, struct sync_spec *);
char *sync_spec_read(const char *text, struct sync_spec *);

/* Calls 'add' for each option of a peer that selects a serverless scheme; it
 * must free 'value'. */
void sync_spec_peer_options(const struct sync_spec *,
                            void (*add)(void *aux, const char *name,
                                        char *value), void *aux);

/* Returns NULL, or a message if 'n_workers' cannot use the scheme. */
char *sync_spec_check(const struct sync_spec *, int n_workers);

#endif /* trainer/schemes/sync.h */

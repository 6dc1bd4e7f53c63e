/* SPDX-License-Identifier: Apache-2.0 */

#ifndef LOOP_H
#define LOOP_H 1

/* The training loop.
 *
 * Every process that trains a model repeats the same iteration: it fills its
 * share of the next batch, computes the gradient of those samples, and
 * exchanges it for the weights of the next iteration.  Now and then it
 * evaluates the model, and at its target it pauses until a new one arrives.
 * Only the exchange differs:
 *
 *    exchange_local      updates the weights in this process
 *    exchange_server     pushes to parameter servers (ps/client.h)
 *    exchange_peers      other peers, without a server (gossip/peer.h)
 *
 * The computation is real.  A speed profile (process/pace.h) only delays its
 * end, as if the machine were slower.
 *
 *    error = loop_run(options, control, &exchange_server);
 *
 * An exchange is a struct exchange_class.  The loop calls its functions in
 * this order:
 *
 *    init, start
 *    for each iteration: begin, compute, finish
 *    at the target: pause, idle until there is a new target, resume
 *    end, uninit
 *
 * loop_run() blocks until the end.  One thread; an exchange may have others.
 * Of struct loop, they use data, model and batch, while the first does not. */

#include <stdbool.h>
#include <stdint.h>

#include "trainer/models/model.h"
#include "trainer/process/report.h"
#include "trainer/schemes/shard.h"

struct control;
struct exchange;
struct exchange_class;
struct options;

enum loop_result {
    LOOP_OK,
    LOOP_ENDED,                 /* By a signal, "stop", or another process. */
    LOOP_FAILED,                /* The 'error' of the loop is the reason. */
};

/* What an exchange may use of the loop.  An exchange writes only the
 * members that say so. */
struct loop {
    const struct options *o;
    struct control *control;
    struct backend *backend;    /* Of the model. */
    struct dataset *data;
    struct model *model;        /* 'weights' are the exchange's to write. */
    struct batch *batch;        /* The samples of the last gradient. */
    struct pace *pace;
    struct reporter *report;
    int n_workers;              /* Processes that share a batch.  init() may
                                 * set it; the default is --workers. */
    struct shard share;         /* This process's samples of each batch; the
                                 * exchange may change it. */
    uint32_t max_batch;         /* Samples that 'share' may have; 0: any
                                 * number. */
    struct report_progress progress;    /* The exchange writes 'iteration',
                                         * 'batch_loss' and 'step_s'. */
    double exchange_s;          /* Seconds in the exchange's finish(). */
    uint64_t evaluated;         /* Iteration of progress.loss; UINT64_MAX if
                                 * there was no evaluation. */
    char *error;                /* Message, after LOOP_FAILED. */

    const struct exchange_class *class;
    struct exchange *exchange;
};

/* Result of computing one gradient. */
struct loop_step {
    uint32_t n;                 /* Samples of the gradient. */
    double loss;                /* Sum of their losses. */
};

struct exchange_class {
    /* Each process has weights of its own: all evaluate, and report each
     * evaluation.  Otherwise only rank 0 evaluates. */
    bool own_weights;

    size_t size;                /* Of struct exchange, which the loop
                                 * allocates, zeroed, and frees. */

    /* Optional: called before there is a model. */
    char *(*init)(struct loop *);
    void (*uninit)(struct exchange *);

    /* Connects, and writes the first weights to the model and their iteration
     * to 'progress'. */
    enum loop_result (*start)(struct loop *);

    /* Optional: called before a gradient is computed. */
    void (*begin)(struct loop *);

    /* Optional: computes a gradient in another way than loop_compute(). */
    enum loop_result (*compute)(struct loop *, struct loop_step *);

    /* Exchanges the gradient for the weights of the next iteration. */
    enum loop_result (*finish)(struct loop *, const struct loop_step *);

    /* Optional: writes the model's weights before an evaluation. */
    enum loop_result (*load)(struct loop *);

    /* The target is reached ('pause', optional); waits for a new target, for a
     * while ('idle'; LOOP_ENDED if none can arrive); there is a new target
     * ('resume', optional). */
    void (*pause)(struct loop *);
    enum loop_result (*idle)(struct loop *);
    enum loop_result (*resume)(struct loop *);

    /* Optional: ends the exchange after a training that did not fail.  Stores
     * the bytes sent and received in all. */
    void (*end)(struct loop *, uint64_t *sent, uint64_t *received);
};

extern const struct exchange_class exchange_local;
extern const struct exchange_class exchange_server;

/* Trains.  Returns NULL if the training was stopped or reached its last
 * target, otherwise a message. */
char *loop_run(const struct options *, struct control *,
               const struct exchange_class *);

/* Trains as node 'o->rank' of a job with a parameter for each of many keys:
 * reads the task's data (tasks/node-task.h), opens its part of the store
 * (keys/key-store.h) and starts threads, which train until the task's end.  If
 * a node dies, the others end with a message that names it.  Returns NULL if
 * training reached its end or was stopped, otherwise a message. */
char *node_run(const struct options *, struct control *);

/* Open the samples and the model that the options select.  Return NULL or a
 * message. */
char *loop_open_data(const struct options *, struct dataset **);
char *loop_open_model(const struct options *, struct backend *,
                      struct model **);

/* For exchanges.  Returns NULL, or a message if there is no memory for
 * 'share'.  An emulated machine has it in fact. */
char *loop_check_share(const struct loop *);

/* For exchanges.  Fills 'batch' with the samples of this iteration. */
void loop_fill_batch(struct loop *);

/* Fills the batch and computes its gradient; 'part', which may be NULL, is
 * called as in model_gradient().  Returns once the emulated machine is
 * done. */
void loop_compute(struct loop *, model_part_func *part, void *aux,
                  struct loop_step *);

/* Splits 'list', the value of 'option': the addresses of all processes, with
 * --port for those without a port.  Stores at most 'max' of them in 'names',
 * which the caller must free, and their number in '*n'.  Returns NULL or a
 * message; one of them must be for --rank. */
char *loop_parse_names(const struct options *, const char *option,
                       const char *list, int max, char *names[], int *n);

/* Returns the port to listen at: --port, or the one in the name of this
 * rank. */
int loop_own_port(const struct options *, char *const names[]);

#endif /* trainer/loop/loop.h */
